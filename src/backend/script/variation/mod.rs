//! Calls of scripts over an image: total variation by its dual variables, as `cl/script/variation.cl` has it.

mod host;
mod opencl;

pub(super) use opencl::FILE;

use super::state::StepLaunch;
use crate::error::Result;
use crate::memory::Memory;
use crate::number::Real;

/// An image, and the terms that a launch computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Variation {
    /// Pixels.
    pub(crate) n: usize,
    /// Pixels of a row.
    pub(crate) width: usize,
    /// True if the derivative along a direction has a term of its own.
    pub(crate) along: bool,
    /// The first of its registers.
    pub(crate) first: usize,
    /// Start of the chunk sums.
    pub(crate) place: usize,
}

/// The dual variables: `p`, across and down, and `q`. Without a term along a direction `q` may have any length.
pub(crate) struct Dual<'v, T> {
    pub(crate) p: [&'v mut Memory<T>; 2],
    pub(crate) q: &'v mut Memory<T>,
}

/// Launches over an image. They read registers and status in slot `call.slot`; columns that have stopped stay as they are.
pub(crate) trait VariationOps<T: Real>: Send + Sync {
    /// `p += step D (2 x - x_old)`, then into its disc; `q` likewise, into its limits; with the chunk sums of the squares of their
    /// changes. `images` are `x` and `x_old`.
    fn variation_ascend(
        &self,
        step: StepLaunch<'_>,
        variation: Variation,
        images: [&Memory<T>; 2],
        dual: Dual<'_, T>,
    ) -> Result<()>;
    /// `g -= D'p + (e.D)'q`.
    fn variation_subtract(
        &self,
        step: StepLaunch<'_>,
        variation: Variation,
        dual: Dual<'_, T>,
        g: &mut Memory<T>,
    ) -> Result<()>;
}
