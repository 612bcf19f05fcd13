//! Every file of kernels.

use super::linear::{generated, pointwise, product, projection, scatter, selection, split, vector};
#[cfg(any(feature = "tuner", all(test, feature = "fem")))]
use super::pde::elements;
#[cfg(all(test, feature = "simulation"))]
use super::pde::flow;
use super::precond::{block_jacobi, elimination, factor_sweep, parts, polynomial, sweep};
use super::script;
#[cfg(all(test, feature = "imaging"))]
use super::tomography::fbp;
#[cfg(feature = "imaging")]
use super::tomography::rays;
use crate::error::Result;
use crate::ocl::{File, checksum};

/// Files of the groups that every build has, and those of traced rays.
const FILES: &[&[&File]] = &[
    vector::FILES,
    pointwise::FILES,
    product::FILES,
    generated::FILES,
    split::FILES,
    selection::FILES,
    scatter::FILES,
    sweep::FILES,
    block_jacobi::FILES,
    factor_sweep::FILES,
    elimination::FILES,
    parts::FILES,
    polynomial::FILES,
    projection::FILES,
    script::FILES,
    script::cg::FILES,
    script::cgnr::FILES,
    // Faults that spot checks find in them are kept too.
    #[cfg(feature = "imaging")]
    rays::FILES,
];

/// Files of groups that features bring.
#[cfg(test)]
const OF_FEATURES: &[&[&File]] = &[
    #[cfg(feature = "imaging")]
    fbp::FILES,
    #[cfg(feature = "simulation")]
    flow::FILES,
    #[cfg(feature = "fem")]
    elements::FILES,
];

/// Groups whose launches are tuned, beside those of every build with `imaging`.
#[cfg(feature = "tuner")]
const TUNED: &[&[&File]] = &[elements::FILES];

/// Every file of kernels.
#[cfg(test)]
pub(crate) fn kernel_files() -> impl Iterator<Item = &'static File> {
    FILES.iter().chain(OF_FEATURES).copied().flatten().copied()
}

/// Checksum of the kernels whose results are compared with the host's, as they would be built: for faults that were found with them.
///
/// # Errors
/// [`Error::File`](crate::Error::File) if `RESIDUUM_CL_DIR` names a folder without them.
pub(crate) fn kernels_checksum() -> Result<String> {
    checksum(FILES.iter().copied().flatten().copied())
}

/// Checksum of the kernels whose launches are tuned.
///
/// # Errors
/// As [`kernels_checksum`].
#[cfg(feature = "tuner")]
pub(crate) fn tuned_kernels_checksum() -> Result<String> {
    checksum(FILES.iter().chain(TUNED).copied().flatten().copied())
}
