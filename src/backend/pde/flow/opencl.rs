//! Steps of flows on a device: `cl/pde/flow_momentum.cl`, `cl/pde/flow_pressure.cl`, `cl/pde/flow_transport.cl` and `cl/pde/splat.cl`.

use std::sync::Arc;

use super::{FlowGrid, FlowOps, FlowStep, Splat};
use crate::backend::OpenCl;
use crate::backend::run::Run;
use crate::error::Result;
use crate::kernels::{Common, kernels};
use crate::memory::Memory;
use crate::number::Real;
use crate::ocl::{Buffer, Context, Defines, Prepared};

kernels! {
    file pde/flow_momentum, after [common, flow_grid];
    options { rules: FlowOptions }
    /// Both components spread by viscosity.
    kernel flow_spread<T> given(masked: usize)(n: uint, span: uint, width: uint, height: uint, lid: real, viscosity: real,
        mask: in_uint[masked], u: in_real[n], v: in_real[n], g: out_real[n], f: out_real[n]);
    /// Both components carried along.
    kernel flow_carry<T> given(masked: usize)(n: uint, span: uint, width: uint, height: uint, lid: real, step: real,
        sixth: real, mask: in_uint[masked], u: in_real[n], v: in_real[n], g: in_real[n], f: in_real[n], cu: out_real[n],
        cv: out_real[n]);
}

kernels! {
    file pde/flow_pressure, after [common, flow_grid];
    options { rules: FlowOptions }
    /// `b = -` outflow of each cell.
    kernel flow_divergence<T> given(masked: usize)(n: uint, span: uint, width: uint, height: uint, mask: in_uint[masked],
        u: in_real[n], v: in_real[n], b: out_real[n]);
    /// `u = g -` difference of the pressure over the face.
    kernel subtract_gradient<T> given(masked: usize)(n: uint, span: uint, width: uint, mask: in_uint[masked], g: in_real[n],
        f: in_real[n], p: in_real[n], u: out_real[n], v: out_real[n]);
}

kernels! {
    file pde/flow_transport, after [common, flow_grid];
    options { rules: FlowOptions }
    /// `carried = q` carried along.
    kernel flow_transport<T> given(masked: usize)(n: uint, span: uint, width: uint, height: uint, lid: real, step: real,
        sixth: real, mask: in_uint[masked], u: in_real[n], v: in_real[n], q: in_real[n], carried: out_real[n]);
}

kernels! {
    file pde/splat, after [common];
    /// Adds a bump.
    kernel splat<T> given(mask_words: usize)(start: uint, end: uint, span: uint, width: uint, left: uint, right: uint, masked: uint, bits: uint,
        x: real, y: real, dx: real, dy: real, inverse: real, amount: real, mask: in_uint[mask_words], q: out_real[end]);
}

#[cfg(test)]
pub(in crate::backend) static FILES: &[&crate::ocl::File] =
    &[&flow_momentum::FILE, &flow_pressure::FILE, &flow_transport::FILE, &splat::FILE];

/// Options of a program that reads a staggered grid: the macros of `cl/pde/flow_grid.cl`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlowOptions {
    obstacles: bool,
    cubic: bool,
    midpoint: bool,
    slip: bool,
}

impl FlowOptions {
    fn of(grid: &FlowGrid<'_>) -> Self {
        Self { obstacles: grid.mask.is_some(), cubic: grid.cubic, midpoint: grid.midpoint, slip: grid.slip }
    }

    fn named(&self) -> [(&'static str, u32); 4] {
        let Self { obstacles, cubic, midpoint, slip } = *self;
        [("OBSTACLES", obstacles), ("CUBIC", cubic), ("MIDPOINT", midpoint), ("SLIP", slip)]
            .map(|(name, is)| (name, u32::from(is)))
    }

    fn define(&self, defines: &mut Defines) {
        self.named().into_iter().for_each(|(name, value)| defines.set(name, value));
    }

    /// Number of these options.
    fn part(&self) -> u32 {
        self.named().into_iter().fold(0, |part, (_, value)| 2 * part + value)
    }
}

/// Launch of a kernel over the cells of a grid.
struct CellLaunch {
    kernel: Prepared,
    n: usize,
    groups: usize,
    span: usize,
    words: Words,
}

/// Words of a mask for a kernel: those there are, or any buffer if it reads none.
struct Words(Arc<Buffer<u32>>);

impl Words {
    /// The mask, and how many words of it are read of `cells`.
    fn of<'a>(
        &'a self,
        mask: Option<&'a Memory<u32>>,
        on: &Arc<Context>,
        cells: usize,
    ) -> Result<(&'a Buffer<u32>, usize)> {
        Ok(match mask {
            Some(mask) => (mask.buffer(on)?, cells),
            None => (&self.0, 0),
        })
    }
}

impl OpenCl {
    /// Prepares a kernel for a grid.
    fn over_cells<T: Real>(
        &self,
        run: Run<'_>,
        grid: &FlowGrid<'_>,
        name: &'static str,
        prepare: impl FnOnce(&Arc<Context>, Common, FlowOptions) -> Result<Prepared>,
    ) -> Result<CellLaunch> {
        let (n, rules) = (grid.width * grid.height, FlowOptions::of(grid));
        let (common, groups, span) = self.without_barriers::<T>(run, n);
        let kernel = self.kernel(name, common, rules.part(), || prepare(&self.context, common, rules))?;
        Ok(CellLaunch { kernel, n, groups, span, words: Words(self.no_words()?) })
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
        let on = &self.context;
        let made = |on: &_, common, rules| prepare(on, common, &flow_momentum::Options { rules });
        let CellLaunch { kernel, n, groups, span, words } =
            self.over_cells::<T>(run, &grid, "flow_spread", made)?;
        let (mask, masked) = words.of(grid.mask, on, n)?;
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
        let on = &self.context;
        let made = |on: &_, common, rules| prepare(on, common, &flow_momentum::Options { rules });
        let CellLaunch { kernel, n, groups, span, words } = self.over_cells::<T>(run, &grid, "flow_carry", made)?;
        let (mask, masked) = words.of(grid.mask, on, n)?;
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
        let on = &self.context;
        let made = |on: &_, common, rules| prepare(on, common, &flow_pressure::Options { rules });
        let CellLaunch { kernel, n, groups, span, words } =
            self.over_cells::<T>(run, &grid, "flow_divergence", made)?;
        let (mask, masked) = words.of(grid.mask, on, n)?;
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
        let on = &self.context;
        let made = |on: &_, common, rules| prepare(on, common, &flow_pressure::Options { rules });
        let CellLaunch { kernel, n, groups, span, words } =
            self.over_cells::<T>(run, &grid, "subtract_gradient", made)?;
        let (mask, masked) = words.of(grid.mask, on, n)?;
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
        let on = &self.context;
        let made = |on: &_, common, rules| prepare(on, common, &flow_transport::Options { rules });
        let CellLaunch { kernel, n, groups, span, words } =
            self.over_cells::<T>(run, &grid, "flow_transport", made)?;
        let (mask, masked) = words.of(grid.mask, on, n)?;
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

    fn splat(
        &self,
        run: Run<'_>,
        width: usize,
        mask: Option<&Memory<u32>>,
        bump: Splat<T>,
        q: &mut Memory<T>,
    ) -> Result<()> {
        use splat::splat::{Args, launch, prepare};
        let (start, end, on) = (bump.rows.start * width, bump.rows.end * width, &self.context);
        if start >= end {
            return Ok(());
        }
        let (common, groups, span) = self.without_barriers::<T>(run, end - start);
        let kernel = self.kernel("splat", common, 0, || prepare(on, common, &splat::Options {}))?;
        let (masked, words) = (usize::from(mask.is_some()), Words(self.no_words()?));
        let (mask, mask_words) = words.of(mask, on, end)?;
        let args = Args {
            mask_words,
            start,
            end,
            span,
            width,
            left: bump.columns.start,
            right: bump.columns.end,
            masked,
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
