//! Bits of a cell in the mask of obstacles: `cl/pde/flow_grid.cl`.

/// Fluid, not solid.
pub(crate) const FLUID: u32 = 1;
/// Both cells beside the left face are fluid.
pub(crate) const LEFT_OPEN: u32 = 2;
/// Both cells beside the upper face are fluid.
pub(crate) const UPPER_OPEN: u32 = 4;
/// Both cells beside the left face are solid.
pub(crate) const LEFT_BURIED: u32 = 8;
/// Both cells beside the upper face are solid.
pub(crate) const UPPER_BURIED: u32 = 16;
