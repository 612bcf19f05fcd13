//! Numbers that the host and several kernels agree on: places of the scalars of a solve in device memory, codes of statements. Kernels have
//! them from here: `constants!` writes them before the text of a program.

pub(crate) mod barrier;
pub(crate) mod blend;
pub(crate) mod correction;
pub(crate) mod dual;
#[cfg(feature = "simulation")]
pub(crate) mod flow;
pub(crate) mod statement;
pub(crate) mod stop;

/// Iterations whose norms a device keeps until the host asks; a power of two.
pub(crate) const HISTORY: usize = 1024;
