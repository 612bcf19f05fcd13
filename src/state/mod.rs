//! Layout of the scalars of a solve in device memory: the constants of `cl/cg_parts.cl` and `cl/cgnr_parts.cl` (a test of `kernels/` compares
//! the two).

pub(crate) mod barrier;
pub(crate) mod cg;
pub(crate) mod cgnr;
pub(crate) mod stop;

/// Iterations whose norms a device keeps until the host asks; a power of two.
pub(crate) const HISTORY: usize = 1024;
