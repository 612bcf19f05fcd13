//! The back ends: groups of operations, each a trait with two implementations.
//!
//! A group is a folder: its trait and data, its host side, its OpenCL side with the kernels it declares. [`Host`] is the reference; [`OpenCl`]
//! launches kernels. Both follow the rules of docs/numerics.md, which fix the order and the precision of every sum, so that each operation gives
//! the same bits: a vector is cut into chunks, each chunk is added in lanes, and lanes are added in pairs (folded). The rest of the crate meets a
//! group by a method of [`AnyBackend`], which hands out the implementation of a device.

mod checked;
mod dispatch;
mod files;
mod host;
pub(crate) mod linear;
mod opencl;
pub(crate) mod pde;
pub(crate) mod precond;
mod run;
pub(crate) mod script;
mod sums;
#[cfg(feature = "imaging")]
pub(crate) mod tomography;
mod widest;

pub(crate) use dispatch::AnyBackend;
pub(crate) use host::Host;
pub(crate) use opencl::OpenCl;
pub(crate) use run::{PlanKey, Run};

#[cfg(test)]
pub(crate) use files::kernel_files;
pub(crate) use files::kernels_checksum;
#[cfg(feature = "tuner")]
pub(crate) use files::tuned_kernels_checksum;
