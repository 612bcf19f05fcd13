//! The launches of scripts on a device: `cl/script/scalars.cl`, `cl/script/pass.cl` and `cl/script/step.cl`.
//!
//! The kernels take more arguments than a kernel should have: a pass takes up to eight vectors, and a struct of buffers cannot be
//! passed in OpenCL C 1.2.

use std::ops::Range;

use super::ScriptOps;
use super::pass::{Blend, NO_DOTS, PASS_VECTORS, Pass, PassWords};
use super::resident::{self, Listing, RESIDENT_MATRICES, RESIDENT_VECTORS};
use super::state::{PassKey, ScriptState, StepLaunch};
use super::text::ScriptText;
use crate::backend::OpenCl;
use crate::backend::linear::product::{LONG_ROW, Stored};
use crate::backend::run::Run;
use crate::error::{Result, same_length};
use crate::kernels::{MatrixOptions, OtherMatrix, kernels};
use crate::memory::{Memory, Place};
use crate::number::Real;
use crate::ocl::{Defines, File, Plan};
use crate::recurrence::{HEADER, REGISTERS, STATES};
use crate::reduction::Chunks;
use crate::sparse::Kind;
use crate::state::{HISTORY, blend};
use crate::tuning::Family;

impl PassWords {
    fn define(&self, defines: &mut Defines) {
        for (k, statement) in self.statements.iter().enumerate() {
            defines.set(&format!("STATEMENT_{k}"), statement);
        }
        defines.set("TOUCHED", self.touched);
        defines.set("DOTS", self.dots);
    }
}

impl ScriptText {
    /// Defines the macros. A text of nothing tells the kernel to read the list.
    fn define(&self, defines: &mut Defines) {
        let Self { programs, passes } = self;
        let compiled = !(programs.is_empty() && passes.is_empty());
        defines.set("COMPILED", u32::from(compiled));
        defines.put_before(format_args!("#define PROGRAMS{programs}\n#define PASSES{passes}\n"));
    }
}

kernels! {
    file script/scalars, after [common, fold, recurrence];
    /// Scalars alone; `made` is the number of sums of the script.
    kernel step_scalars given(columns: usize, made: usize)
        (program: uint, slot: uint, programs: in_uint[program + HEADER], sums: in_sum[made],
        registers: out_sum[2 * columns * REGISTERS], status: out_int[2 * columns * STATES + columns + 1],
        history: out_sum[2 * HISTORY * columns]);
}

kernels! {
    file script/pass, after [common, fold, statement, recurrence];
    options { words: PassWords }
    shape { n, chunk, chunks, per_group, program, slot }
    /// Up to six statements and three dot products in one pass over vectors.
    kernel step_vectors<T> given(columns: usize, made: usize)
        (shape: shape, v0: out_real, v1: out_real, v2: out_real, v3: out_real, v4: out_real, v5: out_real,
        v6: out_real, v7: out_real, programs: in_uint[shape.program + HEADER], sums: out_sum[made],
        registers: out_sum[2 * columns * REGISTERS], status: out_int[2 * columns * STATES + columns + 1],
        history: out_sum[2 * HISTORY * columns]);
}

kernels! {
    file script/step, after [common, fold, format, row, recurrence];
    options { matrix: MatrixOptions, dots: u32 => DOTS, few: u32 => FEW_HELD }
    shape { n, chunk, stride, program, slot }
    /// `y = s A x + k w` with the chunk sums of `y.y` (or `y.(w y)`) and `y.z`; `added` and `multiplied` tell if it reads `w` and `z`.
    kernel step_product<T> given(value_count: usize, cols: usize, columns: usize, added: bool, multiplied: bool, made: usize)
        (shape: shape, rows: in_uint, indices: in_uint, values: in_real[value_count], x: in_real[cols * columns],
        w: in_real[if added { shape.n * columns } else { 0 }], y: out_real[shape.n * columns],
        z: in_real[if multiplied { shape.n * columns } else { 0 }],
        programs: in_uint[shape.program + HEADER], sums: out_sum[made],
        registers: out_sum[2 * columns * REGISTERS], status: out_int[2 * columns * STATES + columns + 1],
        history: out_sum[2 * HISTORY * columns]);
}

kernels! {
    file script/step_resident, after [common, fold, format, row, global_barrier, statement, dual, recurrence];
    constants [
        resident::{MOST_WORDS, CALL, WORK, SIZE, CHUNK, OPERANDS, BLEND_STEPS, STRIDE, WEIGHTS, WIDTH, STATEMENTS},
        resident::{SUMMED, LOADED, WRITTEN, GOES_ON, RESIDENT_VECTORS, SCALARS, PRODUCT, ASCENT, DOTS},
        {NO_DOTS},
    ];
    options { matrix: MatrixOptions, script: ScriptText, col_lanes: usize => COL_LANES, image: u32 => IMAGE, along: u32 => ALONG }
    /// Many iterations in one launch, by groups that all run at once.
    kernel step_resident<T> given(value_counts: [usize; RESIDENT_MATRICES], columns: usize, made: usize)
        (words: uint, slot: uint, first: uint, iterations: uint, done: uint, list: in_uint[words], v0: out_real, v1: out_real,
        v2: out_real, v3: out_real, v4: out_real, v5: out_real, v6: out_real, v7: out_real, v8: out_real, v9: out_real,
        v10: out_real, v11: out_real, v12: out_real, rows: in_uint, indices: in_uint, values: in_real[value_counts[0]],
        other_rows: in_uint, other_indices: in_uint, other_values: in_real[value_counts[1]], third_rows: in_uint,
        third_indices: in_uint, third_values: in_real[value_counts[2]], sums: out_sum[made],
        registers: out_sum[2 * columns * REGISTERS], status: out_int[ScriptState::words(columns)],
        history: out_sum[2 * HISTORY * columns]);
}

pub(in crate::backend) static FILES: &[&File] = &[
    &scalars::FILE,
    &pass::FILE,
    &step::FILE,
    &step_resident::FILE,
    super::basis::FILE,
    super::limit::FILE,
    super::variation::FILE,
];

/// Numbers of the vectors of a pass in its own launch.
const OWN: [u8; PASS_VECTORS] = [0, 1, 2, 3, 4, 5, 6, 7];

impl OpenCl {
    fn plan_step_product<T: Real>(
        &self,
        run: Run<'_>,
        a: &Stored<T>,
        columns: usize,
        blend: Blend,
    ) -> Result<Plan> {
        let chunks = Chunks::of(a.rows);
        let cut = [chunks.chunk, chunks.lanes];
        let family = if blend.free { Family::Product } else { Family::StepProduct };
        let (common, matrix, found) = self.rows(run, family, a, a.rows, cut, columns);
        let at_once = (found.work_group / a.arrangement.lanes).max(1);
        let share = if blend.free { found.rows_of_group(chunks, at_once, self.units()) } else { chunks.chunk };
        let [steps, dots] = blend.macros();
        let options = step::Options { matrix: MatrixOptions { blend: steps, ..matrix }, dots, few: 1 };
        let kernel = step::step_product::prepare(&self.context, common, &options)?;
        // One group at least: a program runs even if there are no rows.
        Ok(Plan { kernel, groups: a.rows.div_ceil(share).max(1), share })
    }
}

impl OpenCl {
    fn plan_step_resident<T: Real>(
        &self,
        run: Run<'_>,
        [a, other, third]: [&Stored<T>; RESIDENT_MATRICES],
        columns: usize,
        listing: &Listing,
    ) -> Result<Plan> {
        let chunks = [a.rows, a.cols, other.rows, other.cols].map(Chunks::of);
        let cut = [chunks[0].chunk, chunks[0].lanes];
        let (common, matrix, found) = self.rows(run, Family::StepResident, a, a.rows.max(a.cols), cut, columns);
        let others = [other, third].map(|a| OtherMatrix::of(a.arrangement));
        let matrix = MatrixOptions { others, blend: blend::TOLD, ..matrix };
        // Compiled: on an H200 an iteration of FISTA with 1.5 million entries takes 22 us instead of 31. Where compilers are known to have faults,
        // the kernel reads the list: with PoCL 3.1 quotients of pairs came out as 0 in a compiled script.
        let compiled = run.tuning.single_items.is_none();
        let script = if compiled { ScriptText::of(&listing.words) } else { ScriptText::default() };
        let image = listing.image();
        let options = step_resident::Options {
            matrix,
            script,
            col_lanes: chunks[1].lanes,
            image: image.is_some().into(),
            along: image.is_some_and(|image| image.along).into(),
        };
        let kernel = step_resident::step_resident::prepare(&self.context, common, &options)?;
        // Groups as the longest vectors want them; each takes its part of the others.
        let groups_of =
            |chunks: &Chunks| chunks.count.div_ceil(self.resident_share(run, *chunks, found.work_group, a));
        Ok(Plan { kernel, groups: chunks.iter().map(groups_of).max().unwrap_or(1).max(1), share: 0 })
    }
}

impl<T: Real> ScriptOps<T> for OpenCl {
    fn step_scalars(&self, step: StepLaunch<'_>) -> Result<()> {
        let StepLaunch { run, call, state } = step;
        let on = &self.context;
        let ScriptState { programs, sums, registers, status, history, passes, .. } = state;
        let words = PassWords::default();
        let key = PassKey { launch: run.key("step_scalars", call.columns, 0), n: 0, words };
        let plan = passes.get(key, || {
            let common = self.common::<T>(run, run.tuning.work_group, 1).with_columns(call.columns);
            let kernel = scalars::step_scalars::prepare(on, common, &scalars::Options {})?;
            Ok(Plan { kernel, groups: 1, share: 0 })
        })?;
        let args = scalars::step_scalars::Args {
            columns: call.columns,
            made: call.sums,
            program: call.block as usize,
            slot: call.slot as usize,
            programs: programs.buffer(on)?,
            sums: sums.buffer(on)?,
            registers: registers.buffer_mut(on)?,
            status: status.buffer_mut(on)?,
            history: history.buffer_mut(on)?,
        };
        scalars::step_scalars::launch(&plan.kernel, plan.groups, args)
    }

    fn step_product(
        &self,
        step: StepLaunch<'_>,
        a: &Stored<T>,
        blend: Blend,
        [x, w, z]: [&Memory<T>; 3],
        y: &mut Memory<T>,
    ) -> Result<()> {
        let StepLaunch { run, call, state } = step;
        let on = &self.context;
        let [steps, dots] = blend.macros();
        let part = steps | dots << 2 | u32::from(blend.free) << 5;
        let key = run.key("step_product", call.columns, part).reading(a, a);
        let plan = a.plans.get(key, || self.plan_step_product(run, a, call.columns, blend))?;
        let ScriptState { programs, sums, registers, status, history, .. } = state;
        let args = step::step_product::Args {
            value_count: a.value_count(),
            cols: a.cols,
            columns: call.columns,
            added: blend.takes_w(),
            multiplied: blend.dots[1],
            made: call.sums,
            shape: step::Shape {
                n: a.rows,
                chunk: plan.share,
                stride: a.stride,
                program: call.block as usize,
                slot: call.slot as usize,
            },
            rows: a.pointers.buffer(on)?,
            indices: a.indices.buffer(on)?,
            values: a.values.buffer(on)?,
            x: x.buffer(on)?,
            w: w.buffer(on)?,
            y: y.buffer_mut(on)?,
            z: z.buffer(on)?,
            programs: programs.buffer(on)?,
            sums: sums.buffer_mut(on)?,
            registers: registers.buffer_mut(on)?,
            status: status.buffer_mut(on)?,
            history: history.buffer_mut(on)?,
        };
        step::step_product::launch(&plan.kernel, plan.groups, args)
    }

    fn step_vectors(
        &self,
        step: StepLaunch<'_>,
        n: usize,
        pass: &Pass,
        vectors: [&mut Memory<T>; PASS_VECTORS],
    ) -> Result<()> {
        let StepLaunch { run, call, state } = step;
        let (on, chunks) = (&self.context, Chunks::of(n));
        for (k, vector) in vectors.iter().enumerate() {
            if pass.takes(k) {
                same_length("a vector of a pass", n * call.columns, vector.len())?;
            }
        }
        let ScriptState { programs, sums, registers, status, history, passes, .. } = state;
        let words = PassWords::of(pass, &OWN);
        let key = PassKey { launch: run.key("step_vectors", call.columns, 0), n, words };
        let plan = passes.get(key, || {
            let found = self.plain::<T>(run, Family::StepVectors, chunks);
            let common = self.common::<T>(run, found.work_group, chunks.lanes).with_columns(call.columns);
            // Groups take as many chunks as have work for all of their items.
            let side_by_side = (common.work_group / chunks.lanes).max(1);
            let share = found.share(chunks, self.units()).1.next_multiple_of(side_by_side);
            let groups = chunks.count.div_ceil(share);
            let kernel = pass::step_vectors::prepare(on, common, &pass::Options { words })?;
            Ok(Plan { kernel, groups: groups.max(1), share })
        })?;
        let [v0, v1, v2, v3, v4, v5, v6, v7] = vectors;
        let args = pass::step_vectors::Args {
            columns: call.columns,
            made: call.sums,
            shape: pass::Shape {
                n,
                chunk: chunks.chunk,
                chunks: chunks.count,
                per_group: plan.share,
                program: call.block as usize,
                slot: call.slot as usize,
            },
            v0: v0.buffer_mut(on)?,
            v1: v1.buffer_mut(on)?,
            v2: v2.buffer_mut(on)?,
            v3: v3.buffer_mut(on)?,
            v4: v4.buffer_mut(on)?,
            v5: v5.buffer_mut(on)?,
            v6: v6.buffer_mut(on)?,
            v7: v7.buffer_mut(on)?,
            programs: programs.buffer(on)?,
            sums: sums.buffer_mut(on)?,
            registers: registers.buffer_mut(on)?,
            status: status.buffer_mut(on)?,
            history: history.buffer_mut(on)?,
        };
        pass::step_vectors::launch(&plan.kernel, plan.groups, args)
    }

    fn script_multiplies_apart(&self, run: Run<'_>, a: &Stored<T>) -> bool {
        // Groups of the adaptive format take lists of rows, one for each chunk.
        a.arrangement.kind != Kind::Adaptive && self.has_long_rows(run, a)
    }

    fn script_stays_resident(&self, run: Run<'_>, matrices: &[&Stored<T>], columns: usize) -> bool {
        use Kind::{Csr, Dense, Ellpack, EllpackR, External, Sliced, Sorted};
        let simple = |kind| matches!(kind, Csr | EllpackR | Ellpack | Sliced | Sorted | Dense);
        let [first, others @ ..] = matrices else { return false };
        // The first may be of any kind; all are in one program with one way of reading offsets, for chunks with two numbers of lanes at most.
        let lanes = [first.rows, first.cols].map(|n| Chunks::of(n).lanes);
        let alike = |a: &Stored<T>| {
            [a.rows, a.cols].iter().all(|n| lanes.contains(&Chunks::of(*n).lanes)) && !a.arrangement.wide
        };
        let rows = first.rows.max(first.cols) * columns;
        let places = matrices.iter().map(|a| a.places).sum();
        // Scans: on an H200 an iteration of FISTA took 59 us instead of 76 with 5.6 million entries, 86 instead of 103 with 7.9 million.
        let long = first.places >= LONG_ROW * first.rows.min(first.cols);
        let times = match others {
            [] => 1,
            _ if long => 8,
            _ => 3,
        };
        first.arrangement.kind != External
            && others.iter().all(|a| simple(a.arrangement.kind))
            && matrices.iter().all(|a| alike(a))
            && run.tuning.stays_resident(times, rows, places)
    }

    fn step_resident(
        &self,
        step: StepLaunch<'_>,
        listing: &Listing,
        (iterations, done): (Range<usize>, usize),
        matrices: [&Stored<T>; RESIDENT_MATRICES],
        vectors: [&mut Memory<T>; RESIDENT_VECTORS],
    ) -> Result<()> {
        let StepLaunch { run, call, state } = step;
        let on = &self.context;
        resident::check(listing, call.columns, &vectors)?;
        let [a, other, third] = matrices;
        let ScriptState { sums, registers, status, history, plans, list, .. } = state;
        // The matrices of a script are always the same; storage of their entries may change.
        let key = run.key("step_resident", call.columns, third.arrangement.entries as u32).reading(a, other);
        let plan = plans.get(key, || self.plan_step_resident(run, matrices, call.columns, listing))?;
        let list = match list {
            Some(list) => list,
            none => none.insert(Place::OpenCl(on.clone()).upload(&listing.words)?),
        };
        let [v0, v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12] = vectors;
        let args = step_resident::step_resident::Args {
            value_counts: matrices.map(Stored::value_count),
            columns: call.columns,
            made: call.sums,
            words: list.len(),
            slot: call.slot as usize,
            first: iterations.start % listing.kinds(),
            iterations: iterations.len(),
            done,
            list: list.buffer(on)?,
            v0: v0.buffer_mut(on)?,
            v1: v1.buffer_mut(on)?,
            v2: v2.buffer_mut(on)?,
            v3: v3.buffer_mut(on)?,
            v4: v4.buffer_mut(on)?,
            v5: v5.buffer_mut(on)?,
            v6: v6.buffer_mut(on)?,
            v7: v7.buffer_mut(on)?,
            v8: v8.buffer_mut(on)?,
            v9: v9.buffer_mut(on)?,
            v10: v10.buffer_mut(on)?,
            v11: v11.buffer_mut(on)?,
            v12: v12.buffer_mut(on)?,
            rows: a.pointers.buffer(on)?,
            indices: a.indices.buffer(on)?,
            values: a.values.buffer(on)?,
            other_rows: other.pointers.buffer(on)?,
            other_indices: other.indices.buffer(on)?,
            other_values: other.values.buffer(on)?,
            third_rows: third.pointers.buffer(on)?,
            third_indices: third.indices.buffer(on)?,
            third_values: third.values.buffer(on)?,
            sums: sums.buffer_mut(on)?,
            registers: registers.buffer_mut(on)?,
            status: status.buffer_mut(on)?,
            history: history.buffer_mut(on)?,
        };
        step_resident::step_resident::launch(&plan.kernel, plan.groups, args)
    }
}
