//! Preconditioners.

pub(crate) mod block_jacobi;
pub(crate) mod elimination;
pub(crate) mod factor_sweep;
pub(crate) mod parts;
pub(crate) mod polynomial;
pub(crate) mod sweep;
