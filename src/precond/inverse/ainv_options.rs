//! Options of AINV.

use std::time::Instant;

use crate::error::{Error, Result};
use crate::number::Real;
use crate::precond::support::{reached, sum};
use crate::setters::setters;
use crate::sparse::Csr;

/// Vectors to which the columns of `Z` are made orthogonal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Orthogonalisation {
    /// SAINV: against `A z_i`. Pivots of a positive definite matrix are positive whatever is dropped.
    #[default]
    Stabilised,
    /// AINV: against row `i` of `A`. Less work, but pivots may lose their sign, which is an error.
    Plain,
    /// AINV from incomplete factors `P' D P` of the matrix, whose coefficients AINV has in exact arithmetic: the least work, on the host, and pivots
    /// that may lose their sign.
    Factored,
}

/// Options of [`Ainv::new`](crate::precond::Ainv::new).
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct AinvOptions {
    /// SAINV or AINV.
    pub orthogonalisation: Orthogonalisation,
    /// Entries of `Z` below it are dropped, 0.1 unless set. 0 drops nothing: `M` is the inverse, nearly dense.
    pub drop: f64,
    /// Power of the matrix in whose sparsity pattern `Z` may have entries: the others are dropped as soon as they come up, whatever their size. `None`
    /// for any place. With it the host makes the columns.
    pub pattern: Option<usize>,
    /// Rounds the factor to `f32` in the end and stores it so, for solves in `f64`: see [`Csr::rounded_to_f32`](crate::Csr::rounded_to_f32).
    pub stored_f32: bool,
    /// Scales the diagonal of the matrix to 1 first, as it is unless set. Without that `drop` is for the entries of the matrix as it is.
    pub scales: bool,
    /// Makes it on the device, many columns at once, or on the host, with the same bits; `None` chooses by the kind of device and the number
    /// of rows. The host does it in any case if a column is too long for the device, and says so in the log; with `pattern`, and from factors, it always does.
    pub on_device: Option<bool>,
    /// Time at which the set-up ends with [`Error::OutOfTime`] if it is not done. A device looks at it before it begins.
    pub deadline: Option<Instant>,
}

impl Default for AinvOptions {
    fn default() -> Self {
        Self::sainv(0.1)
    }
}

impl AinvOptions {
    setters! {
        with_drop: drop(f64),
        with_orthogonalisation: orthogonalisation(Orthogonalisation),
        with_pattern: pattern(impl usize),
        with_stored_f32: stored_f32(bool),
        with_scales: scales(bool),
        with_on_device: on_device(impl bool),
        with_deadline: deadline(impl Instant),
    }

    const fn new(orthogonalisation: Orthogonalisation, drop: f64) -> Self {
        Self {
            orthogonalisation,
            drop,
            pattern: None,
            stored_f32: false,
            scales: true,
            on_device: None,
            deadline: None,
        }
    }

    /// SAINV that drops entries below `drop`.
    pub const fn sainv(drop: f64) -> Self {
        Self::new(Orthogonalisation::Stabilised, drop)
    }

    /// AINV that drops entries below `drop`.
    pub const fn ainv(drop: f64) -> Self {
        Self::new(Orthogonalisation::Plain, drop)
    }

    /// AINV from factors of the matrix, both without entries below `drop`.
    pub const fn factored(drop: f64) -> Self {
        Self::new(Orthogonalisation::Factored, drop)
    }

    pub(crate) fn check(self) -> Result<()> {
        let Self { drop, pattern, .. } = self;
        if !(drop >= 0.0 && drop.is_finite()) {
            return Err(Error::Option { name: "drop", reason: format!("{drop} is not a number from 0 on") });
        }
        match pattern.filter(|power| !(1..=MOST_POWER).contains(power)) {
            None => Ok(()),
            Some(power) => {
                let reason = format!(
                    "sparsity pattern of the matrix to the power of {power}; 1 to {MOST_POWER} are possible"
                );
                Err(Error::Option { name: "pattern", reason })
            }
        }
    }
}

/// Grammar of the parameters of both kinds.
pub(super) const GRAMMAR: [&str; 2] =
    ["what is dropped, and a power of the matrix with the sparsity pattern, belong", "0.1:2"];

/// Parameters of both kinds.
pub(super) fn parameters(drop: f64, places: Option<usize>) -> String {
    places.map_or(drop.to_string(), |power| format!("{drop}:{power}"))
}

/// A bound of the columns from the diagonal on that the rows of `a^power` reach.
pub(super) fn behind<T: Real>(a: &Csr<T>, power: usize) -> usize {
    sum(reached(a, power).enumerate().map(|(i, n)| n.min(a.cols() - i)))
}

/// Highest power of the matrix whose sparsity pattern may be kept.
const MOST_POWER: usize = 8;
