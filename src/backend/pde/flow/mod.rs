//! Steps of flows on staggered grids: `cl/pde/flow_grid.cl` says where the nodes lie.

mod host;
mod opencl;
mod sampling;

#[cfg(test)]
pub(in crate::backend) use opencl::FILES;

use std::ops::Range;

use crate::backend::run::Run;
use crate::error::Result;
use crate::memory::Memory;
use crate::number::Real;
pub(crate) use crate::state::flow::{FLUID, LEFT_BURIED, LEFT_OPEN, UPPER_BURIED, UPPER_OPEN};

/// A staggered grid, and how values between its nodes are found.
#[derive(Clone, Copy)]
pub(crate) struct FlowGrid<'v> {
    pub(crate) width: usize,
    pub(crate) height: usize,
    /// Bits of each cell, if there are obstacles.
    pub(crate) mask: Option<&'v Memory<u32>>,
    /// True if values between nodes are found by cubic polynomials, else linearly.
    pub(crate) cubic: bool,
    /// True if the flow is traced back by the midpoint rule, else by Euler's.
    pub(crate) midpoint: bool,
    /// True if the flow slips along walls.
    pub(crate) slip: bool,
}

/// Numbers of a time step.
#[derive(Clone, Copy)]
pub(crate) struct FlowStep<T> {
    /// Velocity of the wall above row 0.
    pub(crate) lid: T,
    /// Time step over the side of a cell.
    pub(crate) step: T,
    /// Viscosity times the time step over the square of that side.
    pub(crate) viscosity: T,
}

/// A bump `amount (1 - d^2 / radius^2)^2` around `place`, in units of a cell.
#[derive(Clone)]
pub(crate) struct Splat<T> {
    pub(crate) place: [T; 2],
    /// Place of a node in its cell.
    pub(crate) node: [T; 2],
    /// `1 / radius^2`.
    pub(crate) inverse: T,
    pub(crate) amount: T,
    /// Columns and rows that take part.
    pub(crate) columns: Range<usize>,
    pub(crate) rows: Range<usize>,
    /// Bits of the cells that take part, if there is a mask.
    pub(crate) bits: u32,
}

/// Steps of flows. Vectors have a number for each cell.
pub(crate) trait FlowOps<T: Real>: Send + Sync {
    /// `to = from` spread by viscosity, both components.
    fn flow_spread(
        &self,
        run: Run<'_>,
        grid: FlowGrid<'_>,
        step: FlowStep<T>,
        from: [&Memory<T>; 2],
        to: [&mut Memory<T>; 2],
    ) -> Result<()>;
    /// `to = from` carried along by `velocity`, both components.
    fn flow_carry(
        &self,
        run: Run<'_>,
        grid: FlowGrid<'_>,
        step: FlowStep<T>,
        velocity: [&Memory<T>; 2],
        from: [&Memory<T>; 2],
        to: [&mut Memory<T>; 2],
    ) -> Result<()>;
    /// `b = -` outflow of each cell.
    fn flow_divergence(
        &self,
        run: Run<'_>,
        grid: FlowGrid<'_>,
        velocity: [&Memory<T>; 2],
        b: &mut Memory<T>,
    ) -> Result<()>;
    /// `to = from -` differences of the pressure `p` over the faces.
    fn subtract_gradient(
        &self,
        run: Run<'_>,
        grid: FlowGrid<'_>,
        p: &Memory<T>,
        from: [&Memory<T>; 2],
        to: [&mut Memory<T>; 2],
    ) -> Result<()>;
    /// `carried = q` carried along.
    fn flow_transport(
        &self,
        run: Run<'_>,
        grid: FlowGrid<'_>,
        step: FlowStep<T>,
        velocity: [&Memory<T>; 2],
        q: &Memory<T>,
        carried: &mut Memory<T>,
    ) -> Result<()>;
    /// Adds a bump to `q`, on a grid of this width, where `mask` has one of its bits.
    fn splat(
        &self,
        run: Run<'_>,
        width: usize,
        mask: Option<&Memory<u32>>,
        splat: Splat<T>,
        q: &mut Memory<T>,
    ) -> Result<()>;
}
