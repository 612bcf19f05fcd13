//! Conjugate gradients: two slots of `control` and `status`, then the limits.

pub(crate) const RR: usize = 0;
pub(crate) const ALPHA: usize = 1;
pub(crate) const BETA: usize = 2;
pub(crate) const RZ: usize = 3;
pub(crate) const SLOT: usize = 4;
pub(crate) const TOLERANCE: usize = 2 * SLOT;
pub(crate) const CONTROL: usize = TOLERANCE + 1;
pub(crate) const STOP: usize = 0;
pub(crate) const ITERATION: usize = 1;
pub(crate) const MAX_ITERATIONS: usize = 4;
pub(crate) const HISTORY_MASK: usize = 5;
/// Runs of chunk sums: without a preconditioner, and with a diagonal.
pub(crate) const RUNS: [usize; 2] = [4, 6];
/// The words of [`super::barrier`].
pub(crate) const BARRIER: usize = 6;
pub(crate) const STATUS: usize = BARRIER + super::barrier::WORDS;
