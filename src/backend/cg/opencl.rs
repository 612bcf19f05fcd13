//! The launches of conjugate gradients on a device: `cl/cg_product.cl`, `cl/cg_update.cl` and `cl/cg_resident.cl`.

use super::{CgOps, CgVectors};
use crate::backend::product::Stored;
use crate::backend::{OpenCl, Run, SolveState};
use crate::error::Result;
use crate::kernels::{MatrixOptions, kernels};
use crate::memory::Memory;
use crate::number::Real;
use crate::ocl::{File, Plan};
use crate::reduction::Chunks;
use crate::state::HISTORY;
use crate::state::cg::{CONTROL, STATUS};
use crate::tuning::Family;

kernels! {
    file cg_product, after [common, fold, format, row, cg_parts, cg_multiply];
    options { matrix: MatrixOptions, rows_together: usize => ROWS_TOGETHER }
    /// `q = A p` with the chunk sums of `p.q` and `q.q`; group 0 tests for the end.
    kernel cg_product<T> given(value_count: usize)(n: uint, chunk: uint, stride: uint, rows: in_uint, indices: in_uint,
        values: in_real[value_count], p: in_real[n], q: out_real[n], sums: out_sum[4 * n.div_ceil(chunk)],
        control: out_sum[CONTROL], status: out_int[STATUS], history: out_sum[HISTORY]);
}

kernels! {
    file cg_update, after [common, fold, cg_parts, cg_advance];
    options { elements_together: usize => ELEMENTS_TOGETHER }
    /// `x += alpha p`, `r -= alpha q`, `p = r + beta p` with the chunk sums of `r.r`.
    kernel cg_update<T>(n: uint, chunk: uint, groups: uint, per_group: uint, q: in_real[n], x: out_real[n],
        r: out_real[n], p: out_real[n], sums: out_sum[4 * groups], control: out_sum[CONTROL],
        status: out_int[STATUS]);
}

kernels! {
    file cg_resident, after [common, fold, format, row, global_barrier, cg_parts, cg_advance, cg_multiply];
    options { matrix: MatrixOptions, rows_together: usize => ROWS_TOGETHER, elements_together: usize => ELEMENTS_TOGETHER }
    /// `iterations` times `cg_update` and `cg_product`, by groups that all run at once.
    kernel cg_resident<T> given(value_count: usize)(n: uint, chunk: uint, stride: uint, groups: uint, per_group: uint, iterations: uint,
        rows: in_uint, indices: in_uint, values: in_real[value_count], p: out_real[n], q: out_real[n],
        x: out_real[n], r: out_real[n], sums: out_sum[4 * groups], control: out_sum[CONTROL],
        status: out_int[STATUS], history: out_sum[HISTORY]);
}

pub(in crate::backend) static FILES: &[&File] = &[&cg_product::FILE, &cg_update::FILE, &cg_resident::FILE];

/// Rows of an item whose loads are under way together, if it has as many; a power of two. On an H200 one and four are slower.
const ROWS_TOGETHER: usize = 2;
/// Elements of an item that are read before any is written; a power of two. 2 and 8 are slower there.
const ELEMENTS_TOGETHER: usize = 4;

impl OpenCl {
    fn plan_cg_product<T: Real>(&self, run: Run<'_>, a: &Stored<T>) -> Result<Plan> {
        let chunks = Chunks::of(a.rows);
        let cut = [chunks.chunk, chunks.lanes];
        let (common, matrix, _) = self.rows(run, Family::CgProduct, a, a.rows, cut, 1);
        let item_rows = (chunks.chunk / chunks.lanes.min(common.work_group)).max(1);
        let options = cg_product::Options { matrix, rows_together: item_rows.min(ROWS_TOGETHER) };
        let kernel = cg_product::cg_product::prepare(&self.context, common, &options)?;
        Ok(Plan { kernel, groups: chunks.count + 1, share: chunks.chunk })
    }

    fn plan_cg_update<T: Real>(&self, run: Run<'_>, n: usize) -> Result<Plan> {
        let chunks = Chunks::of(n);
        let found = self.plain::<T>(run, Family::CgUpdate, chunks);
        let (groups, share) = found.share(chunks, self.units());
        let common = self.common::<T>(run, found.work_group, chunks.lanes);
        let options = cg_update::Options { elements_together: ELEMENTS_TOGETHER };
        let kernel = cg_update::cg_update::prepare(&self.context, common, &options)?;
        Ok(Plan { kernel, groups, share })
    }

    fn plan_cg_resident<T: Real>(&self, run: Run<'_>, a: &Stored<T>) -> Result<Plan> {
        let chunks = Chunks::of(a.rows);
        let cut = [chunks.chunk, chunks.lanes];
        let (common, matrix, found) = self.rows(run, Family::CgResident, a, a.rows, cut, 1);
        let share = self.resident_share(run, chunks, found.work_group, a);
        // Registers are short where all is in one kernel: no more elements together than an item has lanes.
        let item_lanes = (chunks.lanes / found.work_group).max(1);
        let elements_together = item_lanes.min(ELEMENTS_TOGETHER);
        let options = cg_resident::Options { matrix, rows_together: 1, elements_together };
        let kernel = cg_resident::cg_resident::prepare(&self.context, common, &options)?;
        Ok(Plan { kernel, groups: chunks.count.div_ceil(share), share })
    }
}

impl<T: Real> CgOps<T> for OpenCl {
    fn cg_product(
        &self,
        run: Run<'_>,
        a: &Stored<T>,
        p: &Memory<T>,
        q: &mut Memory<T>,
        state: &mut SolveState,
    ) -> Result<()> {
        let on = &self.context;
        let plan = state.plans.get(run.key("cg_product", 1, 0).reading(a, a), || self.plan_cg_product(run, a))?;
        let args = cg_product::cg_product::Args {
            value_count: a.value_count(),
            n: a.rows,
            chunk: plan.share,
            stride: a.stride,
            rows: a.pointers.buffer(on)?,
            indices: a.indices.buffer(on)?,
            values: a.values.buffer(on)?,
            p: p.buffer(on)?,
            q: q.buffer_mut(on)?,
            sums: state.sums.buffer_mut(on)?,
            control: state.control.buffer_mut(on)?,
            status: state.status.buffer_mut(on)?,
            history: state.history.buffer_mut(on)?,
        };
        cg_product::cg_product::launch(&plan.kernel, plan.groups, args)
    }

    fn cg_update(&self, run: Run<'_>, n: usize, vectors: CgVectors<'_, T>, state: &mut SolveState) -> Result<()> {
        let (on, chunks) = (&self.context, Chunks::of(n));
        let CgVectors { x, r, p, q } = vectors;
        let plan = state.plans.get(run.key("cg_update", 1, 0), || self.plan_cg_update::<T>(run, n))?;
        let args = cg_update::cg_update::Args {
            n,
            chunk: chunks.chunk,
            groups: chunks.count,
            per_group: plan.share,
            q: q.buffer(on)?,
            x: x.buffer_mut(on)?,
            r: r.buffer_mut(on)?,
            p: p.buffer_mut(on)?,
            sums: state.sums.buffer_mut(on)?,
            control: state.control.buffer_mut(on)?,
            status: state.status.buffer_mut(on)?,
        };
        cg_update::cg_update::launch(&plan.kernel, plan.groups, args)
    }

    fn cg_stays_resident(&self, run: Run<'_>, a: &Stored<T>) -> bool {
        run.tuning.stays_resident(Family::CgResident, a.rows, a.places)
    }

    fn cg_resident(
        &self,
        run: Run<'_>,
        a: &Stored<T>,
        iterations: usize,
        vectors: CgVectors<'_, T>,
        state: &mut SolveState,
    ) -> Result<()> {
        let (on, chunks) = (&self.context, Chunks::of(a.rows));
        let CgVectors { x, r, p, q } = vectors;
        let plan = state.plans.get(run.key("cg_resident", 1, 0).reading(a, a), || self.plan_cg_resident(run, a))?;
        let args = cg_resident::cg_resident::Args {
            value_count: a.value_count(),
            n: a.rows,
            chunk: chunks.chunk,
            stride: a.stride,
            groups: chunks.count,
            per_group: plan.share,
            iterations,
            rows: a.pointers.buffer(on)?,
            indices: a.indices.buffer(on)?,
            values: a.values.buffer(on)?,
            p: p.buffer_mut(on)?,
            q: q.buffer_mut(on)?,
            x: x.buffer_mut(on)?,
            r: r.buffer_mut(on)?,
            sums: state.sums.buffer_mut(on)?,
            control: state.control.buffer_mut(on)?,
            status: state.status.buffer_mut(on)?,
            history: state.history.buffer_mut(on)?,
        };
        cg_resident::cg_resident::launch(&plan.kernel, plan.groups, args)
    }
}
