//! Kinds of incomplete factors, and their options.

use std::time::Instant;

use crate::setters::setters;

/// Kind of incomplete factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Factorisation {
    /// `L L'`, of a symmetric positive definite matrix.
    Cholesky,
    /// `L U`, of any square matrix with a full diagonal.
    Lu,
}

/// Places of incomplete factors, and the way in which their entries are found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Fill {
    /// Places of the matrix; exact, row after row on the host, in `f64`.
    #[default]
    Exact,
    /// Places of the matrix; many rows at once on the device, by this number of sweeps over them.
    Sweeps(usize),
    /// Places that the values choose, on the host, in `f64`.
    Threshold {
        /// Most entries of a row of either factor, off the diagonal.
        most: usize,
        /// Smaller entries are dropped: than this share of the norm of their row of the matrix (ILUT), or of
        /// `sqrt(a_ii a_jj)` in the rest of the matrix (IC).
        drop: f64,
    },
}

/// Options of [`Incomplete::new`](super::Incomplete::new).
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct IncompleteOptions {
    /// `L L'` or `L U`.
    pub kind: Factorisation,
    /// Places of the factors.
    pub fill: Fill,
    /// Share that is added to the diagonal, `None` to search for one.
    pub shift: Option<f64>,
    /// Jacobi sweeps of a solve with a factor; `None` solves exactly, level by level.
    pub solve_sweeps: Option<usize>,
    /// Keeps the transposed of LU factors too, for `M'x`: methods of least squares need it. Such factors take no other values.
    pub transposed: bool,
    /// Time at which the set-up ends with [`Error::OutOfTime`](crate::Error::OutOfTime) if it is not done: looked at before each shift that is tried, and
    /// at each row of factors with a threshold.
    pub deadline: Option<Instant>,
}

impl IncompleteOptions {
    setters! {
        with_kind: kind(Factorisation),
        with_shift: shift(impl f64),
        with_solve_sweeps: solve_sweeps(impl usize),
        with_transposed: transposed(bool),
        with_deadline: deadline(impl Instant),
    }

    /// Exact factors in the sparsity pattern of the matrix, solved with exactly, a shift if one is needed.
    pub const fn new(kind: Factorisation) -> Self {
        Self { kind, fill: Fill::Exact, shift: None, solve_sweeps: None, transposed: false, deadline: None }
    }

    /// Sets [`fill`](Self::fill).
    #[must_use]
    pub const fn with_fill(self, fill: Fill) -> Self {
        Self { fill, ..self }
    }
}
