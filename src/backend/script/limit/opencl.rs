//! Limits of steps on a device: `cl/script/step_limit.cl`.

use std::sync::Arc;

use super::LimitOps;
use crate::backend::OpenCl;
use crate::backend::script::pass::PassWords;
use crate::backend::script::state::{PassKey, ScriptState, StepLaunch};
use crate::error::Result;
use crate::kernels::{Common, kernels};
use crate::memory::Memory;
use crate::number::Real;
use crate::ocl::{Context, File, Plan, Prepared};
use crate::recurrence::STATES;
use crate::reduction::Chunks;
use crate::tuning::Family;

kernels! {
    file script/step_limit, after [common, fold, recurrence];
    shape { n, chunk, chunks, per_group, slot, place }
    /// The largest ratio of each group.
    kernel limit_groups<T> given(columns: usize)
        (shape: shape, above: in_real[shape.n * columns], d: in_real[shape.n * columns],
        status: in_int[2 * columns * STATES], sums: out_sum[shape.place + columns * shape.chunks]);
    /// The largest of all.
    kernel limit_fold given(columns: usize)
        (shape: shape, status: in_int[2 * columns * STATES], sums: out_sum[shape.place + columns * shape.chunks]);
}

pub(in crate::backend::script) static FILE: &File = &step_limit::FILE;

/// Function that prepares a kernel of `cl/script/step_limit.cl`.
type Prepare = fn(&Arc<Context>, Common, &step_limit::Options) -> Result<Prepared>;

impl<T: Real> LimitOps<T> for OpenCl {
    fn step_limit(&self, step: StepLaunch<'_>, n: usize, [above, d]: [&Memory<T>; 2], place: usize) -> Result<()> {
        use step_limit::{Options, Shape, limit_fold, limit_groups};
        let StepLaunch { run, call, state } = step;
        let (on, chunks, columns) = (&self.context, Chunks::of(n), call.columns);
        let ScriptState { passes, sums, status, .. } = state;
        let plan_of = |name: &'static str, prepare: Prepare| {
            let key = PassKey { launch: run.key(name, columns, 0), n, words: PassWords::default() };
            passes.get(key, || {
                let found = self.plain::<T>(run, Family::StepVectors, chunks);
                let (groups, share) = found.share(chunks, self.units());
                let common = self.common::<T>(run, found.work_group, chunks.lanes).with_columns(columns);
                Ok(Plan { kernel: prepare(on, common, &Options {})?, groups: groups.max(1), share })
            })
        };
        let shape_of = |plan: &Plan| Shape {
            n,
            chunk: chunks.chunk,
            chunks: chunks.count,
            per_group: plan.share,
            slot: call.slot as usize,
            place,
        };
        let plan = plan_of("limit_groups", limit_groups::prepare)?;
        let args = limit_groups::Args {
            columns,
            shape: shape_of(&plan),
            above: above.buffer(on)?,
            d: d.buffer(on)?,
            status: status.buffer(on)?,
            sums: sums.buffer_mut(on)?,
        };
        limit_groups::launch(&plan.kernel, plan.groups, args)?;
        let plan = plan_of("limit_fold", limit_fold::prepare)?;
        let args = limit_fold::Args {
            columns,
            shape: shape_of(&plan),
            status: status.buffer(on)?,
            sums: sums.buffer_mut(on)?,
        };
        limit_fold::launch(&plan.kernel, 1, args)
    }
}
