//! The launches of conjugate gradients on a device: `cl/script/cg_product.cl`, `cl/script/cg_update.cl` and `cl/script/cg_resident.cl`.

use std::ops::Range;

use super::{CgOps, CgPlaces, CgVectors};
use crate::backend::OpenCl;
use crate::backend::linear::product::Stored;
use crate::backend::run::Run;
use crate::backend::script::state::{ScriptState, StepLaunch};
use crate::error::Result;
use crate::kernels::{MatrixOptions, kernels};
use crate::memory::Memory;
use crate::number::Real;
use crate::ocl::{File, Plan};
use crate::recurrence::REGISTERS;
use crate::reduction::Chunks;
use crate::state::HISTORY;
use crate::tuning::Family;

/// Chunk sums up to the last of a solve with `diagonal` 1 or 0, of vectors in `groups` chunks.
fn count_of_sums(place: usize, diagonal: usize, groups: usize) -> usize {
    place + CgPlaces::RUNS[diagonal] * groups
}

kernels! {
    file script/cg_product, after [common, fold, format, row, cg_parts, cg_multiply];
    options { matrix: MatrixOptions, diagonal: usize => DIAGONAL, rows_together: usize => ROWS_TOGETHER }
    /// `q = A p` with the chunk sums of `p.q` and `q.Mq`; group 0 tests for the end. `diagonal` is 1 if there is an `m`, else 0.
    kernel cg_product<T> given(value_count: usize, diagonal: usize)(n: uint, chunk: uint, stride: uint, slot: uint,
        rho: uint, place: uint, rows: in_uint, indices: in_uint, values: in_real[value_count], m: in_real[diagonal * n],
        p: in_real[n], q: out_real[n], sums: out_sum[count_of_sums(place, diagonal, n.div_ceil(chunk))],
        registers: out_sum[2 * REGISTERS], status: out_int[ScriptState::words(1)], history: out_sum[2 * HISTORY]);
}

kernels! {
    file script/cg_update, after [common, fold, cg_parts, cg_advance];
    options { diagonal: usize => DIAGONAL, elements_together: usize => ELEMENTS_TOGETHER }
    /// `x += alpha p`, `r -= alpha q`, `p = M r + beta p` with the chunk sums of `r.r` and `r.Mr`.
    kernel cg_update<T> given(diagonal: usize)(n: uint, chunk: uint, groups: uint, per_group: uint, slot: uint, rho: uint,
        place: uint, m: in_real[diagonal * n], q: in_real[n], x: out_real[n], r: out_real[n], p: out_real[n],
        sums: out_sum[count_of_sums(place, diagonal, groups)], registers: in_sum[2 * REGISTERS],
        status: out_int[ScriptState::words(1)]);
}

kernels! {
    file script/cg_resident, after [common, fold, format, row, global_barrier, cg_parts, cg_advance, cg_multiply];
    options {
        matrix: MatrixOptions, diagonal: usize => DIAGONAL, rows_together: usize => ROWS_TOGETHER,
        elements_together: usize => ELEMENTS_TOGETHER,
    }
    /// `iterations` times `cg_update` and `cg_product`, by groups that all run at once.
    kernel cg_resident<T> given(value_count: usize, diagonal: usize)(n: uint, chunk: uint, stride: uint, groups: uint,
        per_group: uint, iterations: uint, asked: uint, slot: uint, rho_at: uint, place: uint, rows: in_uint,
        indices: in_uint, values: in_real[value_count], m: in_real[diagonal * n], p: out_real[n], q: out_real[n],
        x: out_real[n], r: out_real[n], all_sums: out_sum[count_of_sums(place, diagonal, groups)],
        registers: out_sum[2 * REGISTERS], status: out_int[ScriptState::words(1)], history: out_sum[2 * HISTORY]);
}

pub(in crate::backend) static FILES: &[&File] = &[&cg_product::FILE, &cg_update::FILE, &cg_resident::FILE];

/// Rows of an item whose loads are under way together, if it has as many; a power of two. On an H200 one and four are slower.
const ROWS_TOGETHER: usize = 2;
/// Elements of an item that are read before any is written; a power of two. 2 and 8 are slower there.
const ELEMENTS_TOGETHER: usize = 4;

impl OpenCl {
    fn plan_cg_product<T: Real>(&self, run: Run<'_>, a: &Stored<T>, diagonal: usize) -> Result<Plan> {
        let chunks = Chunks::of(a.rows);
        let cut = [chunks.chunk, chunks.lanes];
        let (common, matrix, _) = self.rows(run, Family::CgProduct, a, a.rows, cut, 1);
        let item_rows = (chunks.chunk / chunks.lanes.min(common.work_group)).max(1);
        let options = cg_product::Options { matrix, diagonal, rows_together: item_rows.min(ROWS_TOGETHER) };
        let kernel = cg_product::cg_product::prepare(&self.context, common, &options)?;
        Ok(Plan { kernel, groups: chunks.count + 1, share: chunks.chunk })
    }

    fn plan_cg_update<T: Real>(&self, run: Run<'_>, n: usize, diagonal: usize) -> Result<Plan> {
        let chunks = Chunks::of(n);
        let found = self.plain::<T>(run, Family::CgUpdate, chunks);
        let (groups, share) = found.share(chunks, self.units());
        let common = self.common::<T>(run, found.work_group, chunks.lanes);
        let options = cg_update::Options { diagonal, elements_together: ELEMENTS_TOGETHER };
        let kernel = cg_update::cg_update::prepare(&self.context, common, &options)?;
        Ok(Plan { kernel, groups, share })
    }

    fn plan_cg_resident<T: Real>(&self, run: Run<'_>, a: &Stored<T>, diagonal: usize) -> Result<Plan> {
        let chunks = Chunks::of(a.rows);
        let cut = [chunks.chunk, chunks.lanes];
        let (common, matrix, found) = self.rows(run, Family::CgResident, a, a.rows, cut, 1);
        let share = self.resident_share(run, chunks, found.work_group, a);
        // Registers are short where all is in one kernel: no more elements together than an item has lanes.
        let item_lanes = (chunks.lanes / found.work_group).max(1);
        let elements_together = item_lanes.min(ELEMENTS_TOGETHER);
        let options = cg_resident::Options { matrix, diagonal, rows_together: 1, elements_together };
        let kernel = cg_resident::cg_resident::prepare(&self.context, common, &options)?;
        Ok(Plan { kernel, groups: chunks.count.div_ceil(share), share })
    }
}

impl<T: Real> CgOps<T> for OpenCl {
    fn cg_product(
        &self,
        step: StepLaunch<'_>,
        places: CgPlaces,
        a: &Stored<T>,
        (m, p): (Option<&Memory<T>>, &Memory<T>),
        q: &mut Memory<T>,
    ) -> Result<()> {
        let StepLaunch { run, call, state } = step;
        let on = &self.context;
        let diagonal = usize::from(m.is_some());
        let key = run.key("cg_product", 1, diagonal as u32).reading(a, a);
        let plan = state.plans.get(key, || self.plan_cg_product(run, a, diagonal))?;
        let p = p.buffer(on)?;
        let args = cg_product::cg_product::Args {
            value_count: a.value_count(),
            diagonal,
            n: a.rows,
            chunk: plan.share,
            stride: a.stride,
            slot: call.slot as usize,
            rho: places.rho,
            place: places.sums,
            rows: a.pointers.buffer(on)?,
            indices: a.indices.buffer(on)?,
            values: a.values.buffer(on)?,
            // Without a diagonal nothing is read from its place.
            m: m.map_or(Ok(p), |m| m.buffer(on))?,
            p,
            q: q.buffer_mut(on)?,
            sums: state.sums.buffer_mut(on)?,
            registers: state.registers.buffer_mut(on)?,
            status: state.status.buffer_mut(on)?,
            history: state.history.buffer_mut(on)?,
        };
        cg_product::cg_product::launch(&plan.kernel, plan.groups, args)
    }

    fn cg_update(&self, step: StepLaunch<'_>, places: CgPlaces, n: usize, vectors: CgVectors<'_, T>) -> Result<()> {
        let StepLaunch { run, call, state } = step;
        let (on, chunks) = (&self.context, Chunks::of(n));
        let CgVectors { m, x, r, p, q } = vectors;
        let diagonal = usize::from(m.is_some());
        let key = run.key("cg_update", 1, diagonal as u32);
        let plan = state.plans.get(key, || self.plan_cg_update::<T>(run, n, diagonal))?;
        let q = q.buffer(on)?;
        let args = cg_update::cg_update::Args {
            diagonal,
            n,
            chunk: chunks.chunk,
            groups: chunks.count,
            per_group: plan.share,
            slot: call.slot as usize,
            rho: places.rho,
            place: places.sums,
            m: m.map_or(Ok(q), |m| m.buffer(on))?,
            q,
            x: x.buffer_mut(on)?,
            r: r.buffer_mut(on)?,
            p: p.buffer_mut(on)?,
            sums: state.sums.buffer_mut(on)?,
            registers: state.registers.buffer(on)?,
            status: state.status.buffer_mut(on)?,
        };
        cg_update::cg_update::launch(&plan.kernel, plan.groups, args)
    }

    fn cg_stays_resident(&self, run: Run<'_>, a: &Stored<T>) -> bool {
        run.tuning.stays_resident(1, a.rows, a.places)
    }

    fn cg_resident(
        &self,
        step: StepLaunch<'_>,
        places: CgPlaces,
        a: &Stored<T>,
        (iterations, asked): (Range<usize>, usize),
        vectors: CgVectors<'_, T>,
    ) -> Result<()> {
        let StepLaunch { run, call, state } = step;
        let (on, chunks) = (&self.context, Chunks::of(a.rows));
        let CgVectors { m, x, r, p, q } = vectors;
        let diagonal = usize::from(m.is_some());
        let key = run.key("cg_resident", 1, diagonal as u32).reading(a, a);
        let plan = state.plans.get(key, || self.plan_cg_resident(run, a, diagonal))?;
        let values = a.values.buffer(on)?;
        let args = cg_resident::cg_resident::Args {
            value_count: a.value_count(),
            diagonal,
            n: a.rows,
            chunk: chunks.chunk,
            stride: a.stride,
            groups: chunks.count,
            per_group: plan.share,
            iterations: iterations.len(),
            asked,
            slot: call.slot as usize,
            rho_at: places.rho,
            place: places.sums,
            rows: a.pointers.buffer(on)?,
            indices: a.indices.buffer(on)?,
            values,
            m: m.map_or(Ok(values), |m| m.buffer(on))?,
            p: p.buffer_mut(on)?,
            q: q.buffer_mut(on)?,
            x: x.buffer_mut(on)?,
            r: r.buffer_mut(on)?,
            all_sums: state.sums.buffer_mut(on)?,
            registers: state.registers.buffer_mut(on)?,
            status: state.status.buffer_mut(on)?,
            history: state.history.buffer_mut(on)?,
        };
        cg_resident::cg_resident::launch(&plan.kernel, plan.groups, args)
    }
}
