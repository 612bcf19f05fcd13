//! Call of scripts that tells how far a step may go within lower bounds: a maximum, as `cl/script/step_limit.cl` has it.

mod host;
mod opencl;

pub(super) use opencl::FILE;

use super::state::StepLaunch;
use crate::error::Result;
use crate::memory::Memory;
use crate::number::Real;

/// Launches that find a limit. They read the status in slot `call.slot`; columns that have stopped stay as they are.
pub(crate) trait LimitOps<T: Real>: Send + Sync {
    /// The largest `-d / above` of each column over the elements with `d < 0`, for vectors of `n` rows, or -1 if it is infinite. It is what
    /// the chunk sums from `place` on add up to.
    fn step_limit(&self, step: StepLaunch<'_>, n: usize, vectors: [&Memory<T>; 2], place: usize) -> Result<()>;
}
