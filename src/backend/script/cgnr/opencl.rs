//! The launches of CGNR on a device: `cl/script/cgnr_forward.cl`, `cl/script/cgnr_backward.cl`, `cl/script/cgnr_resident.cl`, `cl/script/cgnr_pixels.cl` and
//! `cl/script/cgnr_correction.cl`.
//!
//! The kernels take more arguments than a kernel should have: each launch does the work of several, and a struct of buffers cannot be
//! passed in OpenCL C 1.2.

use std::ops::Range;

use super::{CgnrOps, CgnrShape, CgnrVectors, CorrectionTerm, Edges, Pixels};
use crate::backend::OpenCl;
use crate::backend::linear::product::Stored;
use crate::backend::run::Run;
use crate::backend::script::state::{ScriptState, StepLaunch};
use crate::error::Result;
use crate::kernels::{Common, MatrixOptions, OtherMatrix, kernels};
use crate::memory::Memory;
use crate::number::Real;
use crate::ocl::{File, Plan};
use crate::recurrence::REGISTERS;
use crate::reduction::Chunks;
use crate::sparse::{Arrangement, Kind};
use crate::state::HISTORY;
use crate::state::correction::WEIGHTS;
use crate::tuning::{Family, Parameters};

/// The vector that each group of a resident launch forms in its local memory; the numbers are those of `cl/script/cgnr_resident.cl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Staged {
    Nothing = 0,
    Direction = 1,
    Residual = 2,
}

/// Chunk sums up to the last of `columns` columns: two of rows and four of pixels each.
fn sums_of(place: usize, row_groups: usize, col_groups: usize, columns: usize) -> usize {
    place + columns * (2 * row_groups + 4 * col_groups)
}

/// Diffusivities, which are there if there is total variation (`edges` 2).
fn diffusivities(pixels: usize, edges: u32) -> usize {
    if edges == 2 { pixels } else { 1 }
}

kernels! {
    file script/cgnr_forward, after [common, fold, format, row, cgnr_parts, correction, cgnr_direction];
    options { matrix: MatrixOptions, edges: u32 => EDGES, pixel_lanes: usize => PIXEL_LANES }
    shape { rows, row_chunk, row_groups, cols, col_chunk, col_groups, width, stride, slot, descent, weights, place, each }
    /// `d = s + beta d`, `q = A d`.
    kernel cgnr_forward<T> given(value_count: usize, columns: usize, edges: u32)
        (shape: shape, rows: in_uint, indices: in_uint, values: in_real[value_count],
        s: in_real[shape.cols * columns], d_old: in_real[shape.cols * columns],
        x: in_real[shape.cols * columns], phi: in_real[diffusivities(shape.cols * columns, edges)],
        d_new: out_real[shape.cols * columns], q: out_real[shape.rows * columns],
        sums: out_sum[sums_of(shape.place, shape.row_groups, shape.col_groups, columns)],
        registers: out_sum[2 * columns * REGISTERS], status: out_int[ScriptState::words(columns)],
        history: out_sum[2 * HISTORY * columns]);
}

kernels! {
    file script/cgnr_backward, after [common, fold, format, row, cgnr_parts, correction, cgnr_step];
    options { matrix: MatrixOptions, edges: u32 => EDGES, pixel_lanes: usize => PIXEL_LANES }
    shape { rows, row_chunk, row_groups, cols, col_chunk, col_groups, width, stride, slot, descent, weights, place, each }
    /// `x += alpha d`, `r -= alpha q`, `s = A'r - F(x, x)`.
    kernel cgnr_backward<T> given(value_count: usize, columns: usize, edges: u32)
        (shape: shape, starts: uint, rows: in_uint, indices: in_uint, values: in_real[value_count],
        r: in_real[shape.rows * columns], q: in_real[shape.rows * columns],
        x: in_real[shape.cols * columns], d: in_real[shape.cols * columns],
        s: in_real[shape.cols * columns], r_new: out_real[shape.rows * columns],
        x_new: out_real[shape.cols * columns], s_new: out_real[shape.cols * columns],
        phi: out_real[diffusivities(shape.cols * columns, edges)],
        sums: out_sum[sums_of(shape.place, shape.row_groups, shape.col_groups, columns)],
        registers: out_sum[2 * columns * REGISTERS], status: out_int[ScriptState::words(columns)]);
}

kernels! {
    file script/cgnr_pixels, after [common, fold, format, row, cgnr_parts, correction, cgnr_direction, cgnr_step];
    options { matrix: MatrixOptions, edges: u32 => EDGES, pixel_lanes: usize => PIXEL_LANES }
    shape { rows, row_chunk, row_groups, cols, col_chunk, col_groups, width, stride, slot, descent, weights, place, each }
    /// `d = s + beta d`.
    kernel cgnr_forward_pixels<T> given(columns: usize, edges: u32)
        (shape: shape, s: in_real[shape.cols * columns], d_old: in_real[shape.cols * columns],
        x: in_real[shape.cols * columns], phi: in_real[diffusivities(shape.cols * columns, edges)],
        d_new: out_real[shape.cols * columns],
        sums: out_sum[sums_of(shape.place, shape.row_groups, shape.col_groups, columns)],
        registers: out_sum[2 * columns * REGISTERS], status: out_int[ScriptState::words(columns)],
        history: out_sum[2 * HISTORY * columns]);
    /// `x += alpha d`, `s -= F(x, x)`.
    kernel cgnr_backward_pixels<T> given(columns: usize, edges: u32)
        (shape: shape, starts: uint, alpha: uint, x: in_real[shape.cols * columns], d: in_real[shape.cols * columns],
        s: in_real[shape.cols * columns], x_new: out_real[shape.cols * columns], s_new: out_real[shape.cols * columns],
        phi: out_real[diffusivities(shape.cols * columns, edges)],
        sums: out_sum[sums_of(shape.place, shape.row_groups, shape.col_groups, columns)],
        registers: in_sum[2 * columns * REGISTERS], status: in_int[ScriptState::words(columns)]);
}

kernels! {
    file script/cgnr_correction, after [common, correction];
    options { edges: u32 => EDGES }
    /// `out = F(x, v)`.
    kernel cgnr_correction<T>(n: uint, span: uint, width: uint, own: uint, weights: in_sum[WEIGHTS], x: in_real[n], v: in_real[n],
        out: out_real[n]);
}

kernels! {
    file script/cgnr_resident, after [common, fold, format, row, global_barrier, cgnr_parts, correction,
        cgnr_direction, cgnr_step];
    constants [DIRECTION = Staged::Direction, RESIDUAL = Staged::Residual];
    options { matrix: MatrixOptions, edges: u32 => EDGES, pixel_lanes: usize => PIXEL_LANES,
        staged_vector: u32 => STAGED_VECTOR }
    shape { rows, row_chunk, row_groups, cols, col_chunk, col_groups, width, stride, slot, descent, weights, place, each }
    /// `iterations` times `cgnr_backward` and `cgnr_forward`, by groups that all run at once.
    kernel cgnr_resident<T> given(value_count: usize, t_value_count: usize, columns: usize, edges: u32)
        (shape: shape, stride: uint, rows_each: uint, cols_each: uint, iterations: uint, asked: uint, parity: uint,
        rows: in_uint, indices: in_uint, values: in_real[value_count], t_rows: in_uint, t_indices: in_uint,
        t_values: in_real[t_value_count], x0: out_real[shape.cols * columns],
        x1: out_real[shape.cols * columns], r0: out_real[shape.rows * columns],
        r1: out_real[shape.rows * columns], s0: out_real[shape.cols * columns],
        s1: out_real[shape.cols * columns], d0: out_real[shape.cols * columns],
        d1: out_real[shape.cols * columns], q: out_real[shape.rows * columns],
        phi: out_real[diffusivities(shape.cols * columns, edges)],
        sums: out_sum[sums_of(shape.place, shape.row_groups, shape.col_groups, columns)],
        registers: out_sum[2 * columns * REGISTERS], status: out_int[ScriptState::words(columns)],
        history: out_sum[2 * HISTORY * columns]);
}

pub(in crate::backend) static FILES: &[&File] =
    &[&cgnr_forward::FILE, &cgnr_backward::FILE, &cgnr_pixels::FILE, &cgnr_correction::FILE, &cgnr_resident::FILE];

/// `shape_t` of one of the files.
macro_rules! shape_of {
    ($file:ident, $shape:expr, $call:expr, $stride:expr, $each:expr) => {{
        let (rows, cols) = (Chunks::of($shape.rows), Chunks::of($shape.cols));
        $file::Shape {
            rows: rows.len,
            row_chunk: rows.chunk,
            row_groups: rows.count,
            cols: cols.len,
            col_chunk: cols.chunk,
            col_groups: cols.count,
            width: $shape.image.width,
            stride: $stride,
            slot: $call.slot as usize,
            descent: $shape.descent,
            weights: $shape.weights,
            place: $shape.sums,
            each: $each,
        }
    }};
}

/// Shares of the groups in a resident launch.
#[derive(Clone, Copy)]
struct Residents {
    groups: usize,
    rows_each: usize,
    cols_each: usize,
}

impl Residents {
    /// Shares out chunks of rows and pixels to `most` groups.
    fn of(rows: Chunks, cols: Chunks, most: usize) -> Self {
        let most = most.max(1);
        let (rows_each, cols_each) = (rows.count.div_ceil(most).max(1), cols.count.div_ceil(most).max(1));
        // Groups without rows take the pixels if those have less to do.
        let (with_rows, with_cols) = (rows.count.div_ceil(rows_each), cols.count.div_ceil(cols_each));
        let groups = with_rows.max(with_cols).max(most.min(with_rows + cols.count)).max(1);
        Self { groups, rows_each, cols_each }
    }
}

impl OpenCl {
    /// Tells if `a` is multiplied by in a launch of its own. On CPUs a vector that is formed for every entry costs more than one
    /// that is formed before: there are no loads to hide it behind.
    fn multiplies_apart<T: Real>(&self, run: Run<'_>, a: &Stored<T>) -> bool {
        let on_cpu = run.tuning.work_group == 1 && a.places > 4 * a.rows.max(a.cols);
        on_cpu || self.has_long_rows(run, a)
    }

    /// Options of a kernel for pixels alone, and launch parameters over their chunks.
    fn pixel_options<T: Real>(
        &self,
        run: Run<'_>,
        family: Family,
        shape: CgnrShape,
        columns: usize,
    ) -> (Common, cgnr_pixels::Options, Parameters) {
        let (rows, cols) = (Chunks::of(shape.rows), Chunks::of(shape.cols));
        let found = self.plain::<T>(run, family, cols);
        let common = self.common::<T>(run, found.work_group, rows.lanes).with_columns(columns);
        let none = MatrixOptions::of(Arrangement::of(Kind::External), 1);
        let matrix = MatrixOptions { formed: true, ..none };
        (common, cgnr_pixels::Options { matrix, edges: shape.image.edges, pixel_lanes: cols.lanes }, found)
    }

    /// Options of a kernel that forms the vector it multiplies by.
    fn forming<T: Real>(
        &self,
        run: Run<'_>,
        (family, columns): (Family, usize),
        a: &Stored<T>,
        n: usize,
        cut: [usize; 2],
    ) -> (Common, MatrixOptions, Parameters) {
        let (common, matrix, found) = self.rows(run, family, a, n, cut, columns);
        (common, MatrixOptions { formed: true, ..matrix }, found)
    }

    fn plan_resident<T: Real>(
        &self,
        run: Run<'_>,
        (columns, edges): (usize, u32),
        [a, at]: [&Stored<T>; 2],
        groups: usize,
    ) -> Result<Plan> {
        let info = self.context.info();
        let (rows, cols) = (Chunks::of(a.rows), Chunks::of(a.cols));
        let (n, cut) = (a.rows + a.cols, [rows.chunk, rows.lanes]);
        let (common, matrix, found) = self.forming(run, (Family::CgnrResident, columns), a, n, cut);
        // A vector is formed in local memory if it fits beside the sums and a group reads more than all of it.
        let places_of = |stored: &Stored<T>| {
            let places = (stored.cols * columns).next_multiple_of(1024);
            let fits = (places * T::PRECISION.bytes()) as u64 <= info.local_memory / 3;
            (fits && found.work_group > 1 && stored.places / groups > stored.cols).then_some(places)
        };
        let (staged, places) = if let Some(places) = places_of(a) {
            (Staged::Direction, places)
        } else if let Some(places) = places_of(at) {
            (Staged::Residual, places)
        } else {
            (Staged::Nothing, 0)
        };
        let matrix = MatrixOptions { others: [OtherMatrix::of(at.arrangement); 2], staged: places, ..matrix };
        let options =
            cgnr_resident::Options { matrix, edges, pixel_lanes: cols.lanes, staged_vector: staged as u32 };
        let kernel = cgnr_resident::cgnr_resident::prepare(&self.context, common, &options)?;
        Ok(Plan { kernel, groups, share: 0 })
    }
}

impl<T: Real> CgnrOps<T> for OpenCl {
    fn cgnr_direction(&self, step: StepLaunch<'_>, shape: CgnrShape, pixels: Pixels<'_, T>) -> Result<()> {
        let StepLaunch { run, call, state } = step;
        let (on, columns, Edges { edges, .. }) = (&self.context, call.columns, shape.image);
        let plan = state.plans.get(run.key("cgnr_forward_pixels", columns, edges), || {
            let (common, options, found) = self.pixel_options::<T>(run, Family::CgnrForward, shape, columns);
            let (groups, share) = found.share(Chunks::of(shape.cols), self.units());
            let kernel = cgnr_pixels::cgnr_forward_pixels::prepare(on, common, &options)?;
            Ok(Plan { kernel, groups: 1 + groups, share })
        })?;
        let Pixels { x: [x, _], s: [s, _], d: [d_old, d_new], phi } = pixels;
        let args = cgnr_pixels::cgnr_forward_pixels::Args {
            columns,
            edges,
            shape: shape_of!(cgnr_pixels, shape, call, 0, plan.share),
            s: s.buffer(on)?,
            d_old: d_old.buffer(on)?,
            x: x.buffer(on)?,
            phi: phi.buffer(on)?,
            d_new: d_new.buffer_mut(on)?,
            sums: state.sums.buffer_mut(on)?,
            registers: state.registers.buffer_mut(on)?,
            status: state.status.buffer_mut(on)?,
            history: state.history.buffer_mut(on)?,
        };
        cgnr_pixels::cgnr_forward_pixels::launch(&plan.kernel, plan.groups, args)
    }

    fn cgnr_step(&self, step: StepLaunch<'_>, shape: CgnrShape, starts: bool, pixels: Pixels<'_, T>) -> Result<()> {
        let StepLaunch { run, call, state } = step;
        let (on, columns, Edges { edges, .. }) = (&self.context, call.columns, shape.image);
        let plan = state.plans.get(run.key("cgnr_backward_pixels", columns, edges), || {
            let (common, options, found) = self.pixel_options::<T>(run, Family::CgnrBackward, shape, columns);
            let (groups, share) = found.share(Chunks::of(shape.cols), self.units());
            let kernel = cgnr_pixels::cgnr_backward_pixels::prepare(on, common, &options)?;
            Ok(Plan { kernel, groups, share })
        })?;
        let Pixels { x: [x, x_new], s: [s, s_new], d: [d, _], phi } = pixels;
        let args = cgnr_pixels::cgnr_backward_pixels::Args {
            columns,
            edges,
            shape: shape_of!(cgnr_pixels, shape, call, 0, plan.share),
            starts: starts.into(),
            alpha: shape.alpha,
            x: x.buffer(on)?,
            d: d.buffer(on)?,
            s: s.buffer(on)?,
            x_new: x_new.buffer_mut(on)?,
            s_new: s_new.buffer_mut(on)?,
            phi: phi.buffer_mut(on)?,
            sums: state.sums.buffer_mut(on)?,
            registers: state.registers.buffer(on)?,
            status: state.status.buffer(on)?,
        };
        cgnr_pixels::cgnr_backward_pixels::launch(&plan.kernel, plan.groups, args)
    }

    fn cgnr_fuses(&self, run: Run<'_>, matrices: [&Stored<T>; 2]) -> bool {
        !matrices.iter().any(|a| self.multiplies_apart(run, a))
    }

    fn cgnr_forward(
        &self,
        step: StepLaunch<'_>,
        shape: CgnrShape,
        a: &Stored<T>,
        vectors: CgnrVectors<'_, T>,
    ) -> Result<()> {
        let StepLaunch { run, call, state } = step;
        let (on, columns, Edges { edges, .. }) = (&self.context, call.columns, shape.image);
        let plan = state.plans.get(run.key("cgnr_forward", columns, edges).reading(a, a), || {
            let (rows, cols) = (Chunks::of(a.rows), Chunks::of(a.cols));
            let cut = [rows.chunk, rows.lanes];
            let (common, matrix, _) = self.forming(run, (Family::CgnrForward, columns), a, a.rows, cut);
            let options = cgnr_forward::Options { matrix, edges, pixel_lanes: cols.lanes };
            let kernel = cgnr_forward::cgnr_forward::prepare(on, common, &options)?;
            Ok(Plan { kernel, groups: 1 + rows.count + cols.count, share: 1 })
        })?;
        let CgnrVectors { pixels: Pixels { x: [x, _], s: [s, _], d: [d_old, d_new], phi }, q, .. } = vectors;
        let args = cgnr_forward::cgnr_forward::Args {
            value_count: a.value_count(),
            columns,
            edges,
            shape: shape_of!(cgnr_forward, shape, call, a.stride, 1),
            rows: a.pointers.buffer(on)?,
            indices: a.indices.buffer(on)?,
            values: a.values.buffer(on)?,
            s: s.buffer(on)?,
            d_old: d_old.buffer(on)?,
            x: x.buffer(on)?,
            phi: phi.buffer(on)?,
            d_new: d_new.buffer_mut(on)?,
            q: q.buffer_mut(on)?,
            sums: state.sums.buffer_mut(on)?,
            registers: state.registers.buffer_mut(on)?,
            status: state.status.buffer_mut(on)?,
            history: state.history.buffer_mut(on)?,
        };
        cgnr_forward::cgnr_forward::launch(&plan.kernel, plan.groups, args)
    }

    fn cgnr_backward(
        &self,
        step: StepLaunch<'_>,
        shape: CgnrShape,
        starts: bool,
        at: &Stored<T>,
        vectors: CgnrVectors<'_, T>,
    ) -> Result<()> {
        let StepLaunch { run, call, state } = step;
        let (on, columns, Edges { edges, .. }) = (&self.context, call.columns, shape.image);
        let (rows, cols) = (Chunks::of(at.cols), Chunks::of(at.rows));
        let plan = state.plans.get(run.key("cgnr_backward", columns, edges).reading(at, at), || {
            let cut = [cols.chunk, rows.lanes];
            let (common, matrix, _) = self.forming(run, (Family::CgnrBackward, columns), at, at.rows, cut);
            let options = cgnr_backward::Options { matrix, edges, pixel_lanes: cols.lanes };
            let kernel = cgnr_backward::cgnr_backward::prepare(on, common, &options)?;
            Ok(Plan { kernel, groups: rows.count + cols.count, share: 1 })
        })?;
        let CgnrVectors { pixels, r: [r, r_new], q } = vectors;
        let Pixels { x: [x, x_new], s: [s, s_new], d: [d, _], phi } = pixels;
        let args = cgnr_backward::cgnr_backward::Args {
            value_count: at.value_count(),
            columns,
            edges,
            shape: shape_of!(cgnr_backward, shape, call, at.stride, 1),
            starts: starts.into(),
            rows: at.pointers.buffer(on)?,
            indices: at.indices.buffer(on)?,
            values: at.values.buffer(on)?,
            r: r.buffer(on)?,
            q: q.buffer(on)?,
            x: x.buffer(on)?,
            d: d.buffer(on)?,
            s: s.buffer(on)?,
            r_new: r_new.buffer_mut(on)?,
            x_new: x_new.buffer_mut(on)?,
            s_new: s_new.buffer_mut(on)?,
            phi: phi.buffer_mut(on)?,
            sums: state.sums.buffer_mut(on)?,
            registers: state.registers.buffer_mut(on)?,
            status: state.status.buffer_mut(on)?,
        };
        let groups = if starts { cols.count } else { plan.groups };
        cgnr_backward::cgnr_backward::launch(&plan.kernel, groups, args)
    }

    fn cgnr_stays_resident(&self, run: Run<'_>, [a, at]: [&Stored<T>; 2]) -> bool {
        // Both formats are in one program: those that need nothing but where a row starts.
        let simple = |stored: &Stored<T>| {
            use Kind::{Csr, Dense, Ellpack, EllpackR, Sliced, Sorted};
            matches!(stored.arrangement.kind, Csr | EllpackR | Ellpack | Sliced | Sorted | Dense)
                && !stored.arrangement.wide
        };
        let (rows, places) = (a.rows + a.cols, a.places + at.places);
        // The two launches gather two vectors for every entry: on an H200 one launch is up to twice as fast, at sizes up to eight times those
        // of CG (12 000 x 640 000 with 7 million entries 141 and 190 us, 20 000 square with 2 million alike).
        simple(a) && simple(at) && run.tuning.stays_resident(8, rows, places)
    }

    fn cgnr_resident(
        &self,
        step: StepLaunch<'_>,
        shape: CgnrShape,
        [a, at]: [&Stored<T>; 2],
        (iterations, asked): (Range<usize>, usize),
        vectors: CgnrVectors<'_, T>,
    ) -> Result<()> {
        let StepLaunch { run, call, state } = step;
        let (on, columns, Edges { edges, .. }) = (&self.context, call.columns, shape.image);
        let (rows, cols) = (Chunks::of(a.rows), Chunks::of(a.cols));
        let Residents { groups, rows_each, cols_each } = Residents::of(rows, cols, run.tuning.resident_groups);
        let key = run.key("cgnr_resident", columns, edges).reading(a, at);
        let plan = state.plans.get(key, || self.plan_resident(run, (columns, edges), [a, at], groups))?;
        let CgnrVectors { pixels, r: [r0, r1], q } = vectors;
        let Pixels { x: [x0, x1], s: [s0, s1], d: [d0, d1], phi } = pixels;
        let args = cgnr_resident::cgnr_resident::Args {
            value_count: a.value_count(),
            t_value_count: at.value_count(),
            columns,
            edges,
            shape: shape_of!(cgnr_resident, shape, call, a.stride, 1),
            stride: at.stride,
            rows_each,
            cols_each,
            iterations: iterations.len(),
            asked,
            parity: iterations.start % 2,
            rows: a.pointers.buffer(on)?,
            indices: a.indices.buffer(on)?,
            values: a.values.buffer(on)?,
            t_rows: at.pointers.buffer(on)?,
            t_indices: at.indices.buffer(on)?,
            t_values: at.values.buffer(on)?,
            x0: x0.buffer_mut(on)?,
            x1: x1.buffer_mut(on)?,
            r0: r0.buffer_mut(on)?,
            r1: r1.buffer_mut(on)?,
            s0: s0.buffer_mut(on)?,
            s1: s1.buffer_mut(on)?,
            d0: d0.buffer_mut(on)?,
            d1: d1.buffer_mut(on)?,
            q: q.buffer_mut(on)?,
            phi: phi.buffer_mut(on)?,
            sums: state.sums.buffer_mut(on)?,
            registers: state.registers.buffer_mut(on)?,
            status: state.status.buffer_mut(on)?,
            history: state.history.buffer_mut(on)?,
        };
        cgnr_resident::cgnr_resident::launch(&plan.kernel, plan.groups, args)
    }

    fn cgnr_correction(
        &self,
        run: Run<'_>,
        term: &CorrectionTerm,
        x: &Memory<T>,
        v: Option<&Memory<T>>,
        out: &mut Memory<T>,
    ) -> Result<()> {
        let (on, n) = (&self.context, x.len());
        let Edges { edges, width } = term.image;
        let (common, groups, share) = self.without_barriers::<T>(run, n);
        let key = run.key("cgnr_correction", 1, common.work_group as u32);
        let plan = term.plans.get(key, || {
            let options = cgnr_correction::Options { edges };
            let kernel = cgnr_correction::cgnr_correction::prepare(&self.context, common, &options)?;
            Ok(Plan { kernel, groups, share })
        })?;
        let args = cgnr_correction::cgnr_correction::Args {
            n,
            span: plan.share,
            width,
            own: usize::from(v.is_none()),
            weights: term.weights.buffer(on)?,
            x: x.buffer(on)?,
            v: v.unwrap_or(x).buffer(on)?,
            out: out.buffer_mut(on)?,
        };
        cgnr_correction::cgnr_correction::launch(&plan.kernel, plan.groups, args)
    }
}
