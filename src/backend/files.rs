//! Every file of kernels.

use super::fused::{cg, cgnr};
use super::linear::{generated, pointwise, product, projection, scatter, split, vector};
use super::pde::{elements, flow};
use super::precond::{block_jacobi, elimination, factor_sweep, parts, polynomial, sweep};
use super::script;
use super::tomography::{fbp, rays};
use crate::error::Result;
use crate::ocl::{File, checksum};

/// Files of each group.
const FILES: [&[&File]; 20] = [
    vector::FILES,
    pointwise::FILES,
    product::FILES,
    generated::FILES,
    split::FILES,
    rays::FILES,
    fbp::FILES,
    scatter::FILES,
    sweep::FILES,
    block_jacobi::FILES,
    factor_sweep::FILES,
    elimination::FILES,
    parts::FILES,
    polynomial::FILES,
    projection::FILES,
    flow::FILES,
    elements::FILES,
    script::FILES,
    cg::FILES,
    cgnr::FILES,
];

/// Every file of kernels.
pub(crate) fn kernel_files() -> impl Iterator<Item = &'static File> {
    FILES.into_iter().flatten().copied()
}

/// Checksum of all kernels as they would be built: for what was measured or found with them.
///
/// # Errors
/// [`Error::File`](crate::Error::File) if `RESIDUUM_CL_DIR` names a folder without them.
pub fn kernels_checksum() -> Result<String> {
    checksum(kernel_files())
}
