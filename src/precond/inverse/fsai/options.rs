//! Options of FSAI.

use std::time::Instant;

use super::adaptive::AdaptivePattern;
use crate::error::Result;
use crate::precond::support::check_power;
use crate::setters::setters;

/// Sparsity pattern of `G`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FsaiPattern {
    /// The lower triangle of the matrix to this power, 1 to 4.
    Power(usize),
    /// The entries that bring most, found row by row.
    Adaptive(AdaptivePattern),
}

/// Options of [`Fsai::new`](super::Fsai::new).
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct FsaiOptions {
    /// Sparsity pattern of `G`. More entries take fewer iterations, and more time in each.
    pub pattern: FsaiPattern,
    /// Rounds `G` to `f32` in the end and stores it so, for solves in `f64`: see [`Csr::rounded_to_f32`](crate::Csr::rounded_to_f32).
    pub stored_f32: bool,
    /// Time at which the set-up ends with [`Error::OutOfTime`](crate::Error::OutOfTime) if it is not done.
    pub deadline: Option<Instant>,
}

impl Default for FsaiOptions {
    fn default() -> Self {
        Self::power(1)
    }
}

impl FsaiOptions {
    setters! {
        with_pattern: pattern(FsaiPattern),
        with_stored_f32: stored_f32(bool),
        with_deadline: deadline(impl Instant),
    }

    /// The sparsity pattern of the matrix to this power.
    pub const fn power(power: usize) -> Self {
        Self { pattern: FsaiPattern::Power(power), stored_f32: false, deadline: None }
    }

    /// A sparsity pattern that is found.
    pub const fn adaptive(pattern: AdaptivePattern) -> Self {
        Self { pattern: FsaiPattern::Adaptive(pattern), stored_f32: false, deadline: None }
    }

    pub(super) fn check(self) -> Result<()> {
        match self.pattern {
            FsaiPattern::Power(power) => check_power(power),
            FsaiPattern::Adaptive(pattern) => pattern.check(),
        }
    }
}
