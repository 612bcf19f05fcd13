//! Steps of flows on a device: `cl/flow_momentum.cl`, `cl/flow_pressure.cl`, `cl/flow_transport.cl` and `cl/splat.cl`.

use super::{FlowGrid, FlowOps, FlowStep, Splat};
use crate::backend::{OpenCl, Run};
use crate::error::Result;
use crate::kernels::kernels;
use crate::memory::Memory;
use crate::number::Real;
use crate::ocl::{Buffer, File};

kernels! {
    file flow_momentum, after [common, flow_grid];
    options { obstacles: u32 => OBSTACLES, cubic: u32 => CUBIC, midpoint: u32 => MIDPOINT, slip: u32 => SLIP }
    /// Both components spread by viscosity.
    kernel flow_spread<T> given(masked: usize)(n: uint, span: uint, width: uint, height: uint, lid: real, viscosity: real,
        mask: in_uint[masked], u: in_real[n], v: in_real[n], g: out_real[n], f: out_real[n]);
    /// Both components carried along.
    kernel flow_carry<T> given(masked: usize)(n: uint, span: uint, width: uint, height: uint, lid: real, step: real,
        sixth: real, mask: in_uint[masked], u: in_real[n], v: in_real[n], g: in_real[n], f: in_real[n], cu: out_real[n],
        cv: out_real[n]);
}

kernels! {
    file flow_pressure, after [common, flow_grid];
    options { obstacles: u32 => OBSTACLES, cubic: u32 => CUBIC, midpoint: u32 => MIDPOINT, slip: u32 => SLIP }
    /// `b = -` outflow of each cell.
    kernel flow_divergence<T> given(masked: usize)(n: uint, span: uint, width: uint, height: uint, mask: in_uint[masked],
        u: in_real[n], v: in_real[n], b: out_real[n]);
    /// `u = g -` difference of the pressure over the face.
    kernel subtract_gradient<T> given(masked: usize)(n: uint, span: uint, width: uint, mask: in_uint[masked], g: in_real[n],
        f: in_real[n], p: in_real[n], u: out_real[n], v: out_real[n]);
}

kernels! {
    file flow_transport, after [common, flow_grid];
    options { obstacles: u32 => OBSTACLES, cubic: u32 => CUBIC, midpoint: u32 => MIDPOINT, slip: u32 => SLIP }
    /// `carried = q` carried along.
    kernel flow_transport<T> given(masked: usize)(n: uint, span: uint, width: uint, height: uint, lid: real, step: real,
        sixth: real, mask: in_uint[masked], u: in_real[n], v: in_real[n], q: in_real[n], carried: out_real[n]);
}

kernels! {
    file splat, after [common];
    /// Adds a bump.
    kernel splat<T> given(mask_words: usize)(start: uint, end: uint, span: uint, width: uint, left: uint, right: uint, masked: uint, bits: uint,
        x: real, y: real, dx: real, dy: real, inverse: real, amount: real, mask: in_uint[mask_words], q: out_real[end]);
}

pub(in crate::backend) static FILES: &[&File] =
    &[&flow_momentum::FILE, &flow_pressure::FILE, &flow_transport::FILE, &splat::FILE];

/// Options of a file, of which each has the same.
macro_rules! options {
    ($file:ident, $grid:expr) => {
        $file::Options {
            obstacles: u32::from($grid.mask.is_some()),
            cubic: u32::from($grid.cubic),
            midpoint: u32::from($grid.midpoint),
            slip: u32::from($grid.slip),
        }
    };
}

impl FlowGrid<'_> {
    fn cells(&self) -> usize {
        self.width * self.height
    }

    /// Number of these options.
    fn part(&self) -> u32 {
        [self.mask.is_some(), self.cubic, self.midpoint, self.slip]
            .iter()
            .fold(0, |part, bit| 2 * part + u32::from(*bit))
    }
}

impl OpenCl {
    /// The mask of a grid, or any buffer of words if it has none, and its words.
    fn mask<'a>(&self, grid: &FlowGrid<'a>, none: &'a Buffer<u32>) -> Result<(&'a Buffer<u32>, usize)> {
        Ok(match grid.mask {
            Some(mask) => (mask.buffer(&self.context)?, grid.cells()),
            None => (none, 0),
        })
    }
}

fn sixth<T: Real>() -> T {
    T::from_f64(1.0 / 6.0)
}

impl<T: Real> FlowOps<T> for OpenCl {
    fn flow_spread(
        &self,
        run: Run<'_>,
        grid: FlowGrid<'_>,
        step: FlowStep<T>,
        [u, v]: [&Memory<T>; 2],
        [g, f]: [&mut Memory<T>; 2],
    ) -> Result<()> {
        use flow_momentum::flow_spread::{Args, launch, prepare};
        let (n, on) = (grid.cells(), &self.context);
        let (common, groups, span) = self.without_barriers::<T>(run, n);
        let options = options!(flow_momentum, grid);
        let kernel = self.kernel("flow_spread", common, grid.part(), || prepare(on, common, &options))?;
        let none = self.no_words()?;
        let (mask, masked) = self.mask(&grid, &none)?;
        let args = Args {
            masked,
            n,
            span,
            width: grid.width,
            height: grid.height,
            lid: step.lid,
            viscosity: step.viscosity,
            mask,
            u: u.buffer(on)?,
            v: v.buffer(on)?,
            g: g.buffer_mut(on)?,
            f: f.buffer_mut(on)?,
        };
        launch(&kernel, groups, args)
    }

    fn flow_carry(
        &self,
        run: Run<'_>,
        grid: FlowGrid<'_>,
        step: FlowStep<T>,
        [u, v]: [&Memory<T>; 2],
        [g, f]: [&Memory<T>; 2],
        [cu, cv]: [&mut Memory<T>; 2],
    ) -> Result<()> {
        use flow_momentum::flow_carry::{Args, launch, prepare};
        let (n, on) = (grid.cells(), &self.context);
        let (common, groups, span) = self.without_barriers::<T>(run, n);
        let options = options!(flow_momentum, grid);
        let kernel = self.kernel("flow_carry", common, grid.part(), || prepare(on, common, &options))?;
        let none = self.no_words()?;
        let (mask, masked) = self.mask(&grid, &none)?;
        let args = Args {
            masked,
            n,
            span,
            width: grid.width,
            height: grid.height,
            lid: step.lid,
            step: step.step,
            sixth: sixth(),
            mask,
            u: u.buffer(on)?,
            v: v.buffer(on)?,
            g: g.buffer(on)?,
            f: f.buffer(on)?,
            cu: cu.buffer_mut(on)?,
            cv: cv.buffer_mut(on)?,
        };
        launch(&kernel, groups, args)
    }

    fn flow_divergence(
        &self,
        run: Run<'_>,
        grid: FlowGrid<'_>,
        [u, v]: [&Memory<T>; 2],
        b: &mut Memory<T>,
    ) -> Result<()> {
        use flow_pressure::flow_divergence::{Args, launch, prepare};
        let (n, on) = (grid.cells(), &self.context);
        let (common, groups, span) = self.without_barriers::<T>(run, n);
        let options = options!(flow_pressure, grid);
        let kernel = self.kernel("flow_divergence", common, grid.part(), || prepare(on, common, &options))?;
        let none = self.no_words()?;
        let (mask, masked) = self.mask(&grid, &none)?;
        let args = Args {
            masked,
            n,
            span,
            width: grid.width,
            height: grid.height,
            mask,
            u: u.buffer(on)?,
            v: v.buffer(on)?,
            b: b.buffer_mut(on)?,
        };
        launch(&kernel, groups, args)
    }

    fn subtract_gradient(
        &self,
        run: Run<'_>,
        grid: FlowGrid<'_>,
        p: &Memory<T>,
        [g, f]: [&Memory<T>; 2],
        [u, v]: [&mut Memory<T>; 2],
    ) -> Result<()> {
        use flow_pressure::subtract_gradient::{Args, launch, prepare};
        let (n, on) = (grid.cells(), &self.context);
        let (common, groups, span) = self.without_barriers::<T>(run, n);
        let options = options!(flow_pressure, grid);
        let kernel = self.kernel("subtract_gradient", common, grid.part(), || prepare(on, common, &options))?;
        let none = self.no_words()?;
        let (mask, masked) = self.mask(&grid, &none)?;
        let args = Args {
            masked,
            n,
            span,
            width: grid.width,
            mask,
            g: g.buffer(on)?,
            f: f.buffer(on)?,
            p: p.buffer(on)?,
            u: u.buffer_mut(on)?,
            v: v.buffer_mut(on)?,
        };
        launch(&kernel, groups, args)
    }

    fn flow_transport(
        &self,
        run: Run<'_>,
        grid: FlowGrid<'_>,
        step: FlowStep<T>,
        [u, v]: [&Memory<T>; 2],
        q: &Memory<T>,
        carried: &mut Memory<T>,
    ) -> Result<()> {
        use flow_transport::flow_transport::{Args, launch, prepare};
        let (n, on) = (grid.cells(), &self.context);
        let (common, groups, span) = self.without_barriers::<T>(run, n);
        let options = options!(flow_transport, grid);
        let kernel = self.kernel("flow_transport", common, grid.part(), || prepare(on, common, &options))?;
        let none = self.no_words()?;
        let (mask, masked) = self.mask(&grid, &none)?;
        let args = Args {
            masked,
            n,
            span,
            width: grid.width,
            height: grid.height,
            lid: step.lid,
            step: step.step,
            sixth: sixth(),
            mask,
            u: u.buffer(on)?,
            v: v.buffer(on)?,
            q: q.buffer(on)?,
            carried: carried.buffer_mut(on)?,
        };
        launch(&kernel, groups, args)
    }

    fn splat(&self, run: Run<'_>, grid: FlowGrid<'_>, bump: Splat<T>, q: &mut Memory<T>) -> Result<()> {
        use splat::splat::{Args, launch, prepare};
        let (start, end, on) = (bump.rows.start * grid.width, bump.rows.end * grid.width, &self.context);
        if start >= end {
            return Ok(());
        }
        let (common, groups, span) = self.without_barriers::<T>(run, end - start);
        let kernel = self.kernel("splat", common, 0, || prepare(on, common, &splat::Options {}))?;
        let none = self.no_words()?;
        let (mask, mask_words) = self.mask(&grid, &none)?;
        let args = Args {
            mask_words,
            start,
            end,
            span,
            width: grid.width,
            left: bump.columns.start,
            right: bump.columns.end,
            masked: usize::from(grid.mask.is_some()),
            bits: bump.bits as usize,
            x: bump.place[0],
            y: bump.place[1],
            dx: bump.node[0],
            dy: bump.node[1],
            inverse: bump.inverse,
            amount: bump.amount,
            mask,
            q: q.buffer_mut(on)?,
        };
        launch(&kernel, groups, args)
    }
}
