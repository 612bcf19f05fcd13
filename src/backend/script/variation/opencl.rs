//! Total variation on a device: `cl/script/variation.cl`.

use std::sync::Arc;

use super::{Dual, Variation, VariationOps};
use crate::backend::OpenCl;
use crate::backend::run::Run;
use crate::backend::script::pass::PassWords;
use crate::backend::script::state::{PassKey, ScriptState, StepCall, StepLaunch};
use crate::error::Result;
use crate::kernels::{Common, kernels};
use crate::memory::{Memory, Plans};
use crate::number::Real;
use crate::ocl::{Context, File, Plan, Prepared};
use crate::recurrence::{REGISTERS, STATES};
use crate::reduction::Chunks;
use crate::tuning::Family;

kernels! {
    file script/variation, after [common, fold, recurrence, dual];
    options { along: u32 => ALONG }
    shape { n, width, chunk, chunks, per_group, slot, first, place }
    /// A step of the dual variables, with the sums of its square.
    kernel variation_ascend<T> given(columns: usize, along: bool)
        (shape: shape, x: in_real[shape.n * columns], x_old: in_real[shape.n * columns], px: out_real[shape.n * columns],
        py: out_real[shape.n * columns], q: out_real[if along { shape.n * columns } else { 0 }],
        registers: in_sum[2 * columns * REGISTERS], status: in_int[2 * columns * STATES],
        sums: out_sum[shape.place + columns * shape.chunks]);
    /// `g -= D'p + (e.D)'q`.
    kernel variation_subtract<T> given(columns: usize, along: bool)
        (shape: shape, px: in_real[shape.n * columns], py: in_real[shape.n * columns],
        q: in_real[if along { shape.n * columns } else { 0 }], g: out_real[shape.n * columns],
        registers: in_sum[2 * columns * REGISTERS], status: in_int[2 * columns * STATES]);
}

pub(in crate::backend::script) static FILE: &File = &variation::FILE;

/// Function that prepares a kernel of `cl/script/variation.cl`.
type Prepare = fn(&Arc<Context>, Common, &variation::Options) -> Result<Prepared>;

impl OpenCl {
    /// A kernel over an image, and its shape.
    fn over_image<T: Real>(
        &self,
        run: Run<'_>,
        call: StepCall,
        image: Variation,
        (name, prepare): (&'static str, Prepare),
        passes: &Plans<PassKey>,
    ) -> Result<(Plan, variation::Shape)> {
        let (chunks, along) = (Chunks::of(image.n), u32::from(image.along));
        let key = PassKey { launch: run.key(name, call.columns, along), n: image.n, words: PassWords::default() };
        let plan = passes.get(key, || {
            let found = self.plain::<T>(run, Family::StepVectors, chunks);
            let (groups, share) = found.share(chunks, self.units());
            let common = self.common::<T>(run, found.work_group, chunks.lanes).with_columns(call.columns);
            let kernel = prepare(&self.context, common, &variation::Options { along })?;
            Ok(Plan { kernel, groups: groups.max(1), share })
        })?;
        let shape = variation::Shape {
            n: image.n,
            width: image.width,
            chunk: chunks.chunk,
            chunks: chunks.count,
            per_group: plan.share,
            slot: call.slot as usize,
            first: image.first,
            place: image.place,
        };
        Ok((plan, shape))
    }
}

impl<T: Real> VariationOps<T> for OpenCl {
    fn variation_ascend(
        &self,
        step: StepLaunch<'_>,
        image: Variation,
        [x, x_old]: [&Memory<T>; 2],
        Dual { p: [px, py], q }: Dual<'_, T>,
    ) -> Result<()> {
        use variation::variation_ascend::{Args, launch, prepare};
        let StepLaunch { run, call, state } = step;
        let on = &self.context;
        let ScriptState { passes, sums, registers, status, .. } = state;
        let (plan, shape) = self.over_image::<T>(run, call, image, ("variation_ascend", prepare), passes)?;
        let args = Args {
            columns: call.columns,
            along: image.along,
            shape,
            x: x.buffer(on)?,
            x_old: x_old.buffer(on)?,
            px: px.buffer_mut(on)?,
            py: py.buffer_mut(on)?,
            q: q.buffer_mut(on)?,
            registers: registers.buffer(on)?,
            status: status.buffer(on)?,
            sums: sums.buffer_mut(on)?,
        };
        launch(&plan.kernel, plan.groups, args)
    }

    fn variation_subtract(
        &self,
        step: StepLaunch<'_>,
        image: Variation,
        Dual { p: [px, py], q }: Dual<'_, T>,
        g: &mut Memory<T>,
    ) -> Result<()> {
        use variation::variation_subtract::{Args, launch, prepare};
        let StepLaunch { run, call, state } = step;
        let on = &self.context;
        let ScriptState { passes, registers, status, .. } = state;
        let (plan, shape) = self.over_image::<T>(run, call, image, ("variation_subtract", prepare), passes)?;
        let args = Args {
            columns: call.columns,
            along: image.along,
            shape,
            px: px.buffer(on)?,
            py: py.buffer(on)?,
            q: q.buffer(on)?,
            g: g.buffer_mut(on)?,
            registers: registers.buffer(on)?,
            status: status.buffer(on)?,
        };
        launch(&plan.kernel, plan.groups, args)
    }
}
