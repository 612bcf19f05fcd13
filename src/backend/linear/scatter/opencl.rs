//! Transposed products by atomic additions on a device: `cl/linear/scatter.cl`.

use super::ScatterOps;
use crate::backend::OpenCl;
use crate::backend::linear::product::Stored;
use crate::backend::linear::vector::VectorOps;
use crate::backend::run::Run;
use crate::error::Result;
use crate::kernels::kernels;
use crate::memory::Memory;
use crate::number::Real;
use crate::ocl::{File, Plan};
use crate::reduction::Chunks;
use crate::tuning::Family;

kernels! {
    file linear/scatter, after [common];
    options { local_places: usize => LOCAL_PLACES }
    /// `y += A'x` for compressed rows.
    kernel scatter<T> given(cols: usize)
        (n: uint, span: uint, rows: in_uint[n + 1], indices: in_uint, values: in_real[indices.len()],
        x: in_real[n], y: out_real[cols]);
    /// Partial result of each group, made in local memory.
    kernel scatter_local<T>(n: uint, cols: uint, span: uint, rows: in_uint[n + 1], indices: in_uint,
        values: in_real[indices.len()], x: in_real[n], partial: out_sum[n.div_ceil(span) * cols]);
    /// Sum of the partial results of the groups.
    kernel fold_partial_results<T>(cols: uint, count: uint, partial: in_sum[count * cols], y: out_real[cols]);
}

pub(in crate::backend) static FILES: &[&File] = &[&scatter::FILE];

/// Options of the kernels that need no local memory for a result.
const NO_PLACES: scatter::Options = scatter::Options { local_places: 1 };

impl OpenCl {
    /// Places of local memory and rows of a group, if a result fits there and adding those of all groups is less work than the
    /// product.
    fn in_local_memory<T: Real>(&self, a: &Stored<T>) -> Option<[usize; 2]> {
        let info = self.context.info();
        let places = a.cols.max(1).next_multiple_of(1024);
        // Half of it, so that two groups find room on a compute unit.
        if (places * T::PRECISION.bytes()) as u64 > info.local_memory / 2 {
            return None;
        }
        let groups = 2 * info.compute_units.max(1);
        if groups * a.cols > a.places {
            return None;
        }
        Some([places, a.rows.div_ceil(groups).max(1)])
    }

    fn scatter_locally<T: Real>(
        &self,
        run: Run<'_>,
        a: &Stored<T>,
        [local_places, span]: [usize; 2],
        x: &Memory<T>,
        y: &mut Memory<T>,
    ) -> Result<()> {
        use scatter::{fold_partial_results, scatter_local};
        let (on, cols, groups) = (&self.context, a.cols, a.rows.div_ceil(span));
        let local = a.plans.get(run.key("scatter_local", 1, 0), || {
            let work_group = self.plain::<T>(run, Family::Scatter, Chunks::of(a.rows)).work_group;
            let common = self.common::<T>(run, work_group, 1);
            let kernel = scatter_local::prepare(on, common, &scatter::Options { local_places })?;
            Ok(Plan { kernel, groups, share: span })
        })?;
        let folding = a.plans.get(run.key("fold_partial_results", 1, 0), || {
            let common = self.common::<T>(run, run.tuning.work_group, 1);
            let items = common.work_group;
            let at_once = if items < 8 { items } else { items / 8 };
            let kernel = fold_partial_results::prepare(on, common, &NO_PLACES)?;
            Ok(Plan { kernel, groups: cols.div_ceil(at_once), share: at_once })
        })?;
        self.with_partial(groups * cols, |partial| {
            let args = scatter_local::Args {
                n: a.rows,
                cols,
                span,
                rows: a.pointers.buffer(on)?,
                indices: a.indices.buffer(on)?,
                values: a.values.buffer(on)?,
                x: x.buffer(on)?,
                partial,
            };
            scatter_local::launch(&local.kernel, groups, args)?;
            let args = fold_partial_results::Args { cols, count: groups, partial, y: y.buffer_mut(on)? };
            fold_partial_results::launch(&folding.kernel, folding.groups, args)
        })
    }
}

impl<T: Real> ScatterOps<T> for OpenCl {
    fn scatter(&self, run: Run<'_>, a: &Stored<T>, x: &Memory<T>, y: &mut Memory<T>) -> Result<()> {
        if let Some(places) = self.in_local_memory(a) {
            return self.scatter_locally(run, a, places, x, y);
        }
        self.fill(run, T::default(), y)?;
        let on = &self.context;
        let plan = a.plans.get(run.key("scatter", 1, 0), || {
            let (common, groups, share) = self.without_barriers::<T>(run, a.rows);
            let kernel = scatter::scatter::prepare(on, common, &NO_PLACES)?;
            Ok(Plan { kernel, groups, share })
        })?;
        let args = scatter::scatter::Args {
            cols: a.cols,
            n: a.rows,
            span: plan.share,
            rows: a.pointers.buffer(on)?,
            indices: a.indices.buffer(on)?,
            values: a.values.buffer(on)?,
            x: x.buffer(on)?,
            y: y.buffer_mut(on)?,
        };
        scatter::scatter::launch(&plan.kernel, plan.groups, args)
    }
}
