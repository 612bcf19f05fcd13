//! Options of FSAI.

use std::time::Instant;

use super::adaptive::AdaptivePlaces;
use crate::error::Result;
use crate::precond::support::check_power;

/// Places of the entries of `G`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FsaiPlaces {
    /// The lower triangle of the matrix to this power, 1 to 4.
    Power(usize),
    /// Places that bring most, found row by row.
    Adaptive(AdaptivePlaces),
}

/// Options of [`Fsai::new`](super::Fsai::new).
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct FsaiOptions {
    /// Places of the entries. More places take fewer iterations, and more time in each.
    pub places: FsaiPlaces,
    /// Rounds `G` to `f32` in the end and stores it so, for solves in `f64`: see [`Csr::rounded_to_single`](crate::Csr::rounded_to_single).
    pub single: bool,
    /// Time at which the set-up ends with [`Error::OutOfTime`](crate::Error::OutOfTime) if it is not done.
    pub deadline: Option<Instant>,
}

impl Default for FsaiOptions {
    fn default() -> Self {
        Self::power(1)
    }
}

impl FsaiOptions {
    /// Places of the matrix to this power.
    pub const fn power(power: usize) -> Self {
        Self { places: FsaiPlaces::Power(power), single: false, deadline: None }
    }

    /// Places that are found.
    pub const fn adaptive(places: AdaptivePlaces) -> Self {
        Self { places: FsaiPlaces::Adaptive(places), single: false, deadline: None }
    }

    /// A copy whose factor is stored in `f32`.
    pub fn with_single(self, single: bool) -> Self {
        Self { single, ..self }
    }

    /// A copy whose set-up ends at a time.
    pub fn with_deadline(self, deadline: Option<Instant>) -> Self {
        Self { deadline, ..self }
    }

    pub(super) fn check(self) -> Result<()> {
        match self.places {
            FsaiPlaces::Power(power) => check_power(power),
            FsaiPlaces::Adaptive(places) => places.check(),
        }
    }
}
