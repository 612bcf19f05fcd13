//! The launches of scripts on a device: `cl/pass.cl` and `cl/step.cl`.
//!
//! The kernels take more arguments than a kernel should have: a pass takes up to eight vectors, and a struct of buffers cannot be
//! passed in OpenCL C 1.2.

use super::{Blend, PASS_VECTORS, Pass, PassKey, ScriptOps, ScriptState, Statement, StepCall};
use crate::backend::product::Stored;
use crate::backend::{OpenCl, Run};
use crate::error::{Result, same_length};
use crate::kernels::{MatrixOptions, kernels};
use crate::memory::Memory;
use crate::number::Real;
use crate::ocl::{Defines, File, Plan};
use crate::recurrence::{HEADER, REGISTERS, STATES};
use crate::reduction::Chunks;
use crate::state::HISTORY;
use crate::tuning::Family;

/// Constants of `cl/pass.cl`: the statements, vectors and dot products of a pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct PassWords {
    statements: [u32; 4],
    touched: u32,
    dots: u32,
}

impl Default for PassWords {
    /// Nothing.
    fn default() -> Self {
        Self { statements: [NO_STATEMENT; 4], touched: 0, dots: NO_DOTS }
    }
}

impl PassWords {
    fn of(pass: &Pass) -> Self {
        let [read, written] = pass.touched();
        let mut statements = [NO_STATEMENT; 4];
        for (word, statement) in statements.iter_mut().zip(&pass.statements) {
            *word = encoded(statement);
        }
        let dot =
            |k: usize| pass.dots.get(k).map_or(NO_DOT, |[a, b]| u32::from(*a) | u32::from(*b) << 4) << (8 * k);
        Self { statements, touched: read | written << 8, dots: dot(0) | dot(1) | dot(2) }
    }

    fn define(&self, defines: &mut Defines) {
        for (k, statement) in self.statements.iter().enumerate() {
            defines.set(["STATEMENT_0", "STATEMENT_1", "STATEMENT_2", "STATEMENT_3"][k], statement);
        }
        defines.set("TOUCHED", self.touched);
        defines.set("DOTS", self.dots);
    }

    fn words(&self) -> [u32; 6] {
        let [a, b, c, d] = self.statements;
        [a, b, c, d, self.touched, self.dots]
    }
}

kernels! {
    file pass, after [common, fold, recurrence];
    options { words: PassWords }
    shape { n, chunk, chunks, per_group, program, slot }
    /// Scalars alone; `made` is the number of sums of the script.
    kernel step_scalars given(columns: usize, made: usize)
        (program: uint, slot: uint, programs: in_uint[program + HEADER], sums: in_sum[made],
        registers: out_sum[2 * columns * REGISTERS], status: out_int[2 * columns * STATES + columns + 1],
        history: out_sum[2 * HISTORY * columns]);
    /// Up to four statements and three dot products in one pass over vectors.
    kernel step_vectors<T> given(columns: usize, made: usize)
        (shape: shape, v0: out_real, v1: out_real, v2: out_real, v3: out_real, v4: out_real, v5: out_real,
        v6: out_real, v7: out_real, programs: in_uint[shape.program + HEADER], sums: out_sum[made],
        registers: out_sum[2 * columns * REGISTERS], status: out_int[2 * columns * STATES + columns + 1],
        history: out_sum[2 * HISTORY * columns]);
}

kernels! {
    file step, after [common, fold, format, row, recurrence];
    options { matrix: MatrixOptions, dots: u32 => DOTS }
    shape { n, chunk, stride, program, slot }
    /// `y = s A x + k w` with the chunk sums of `y.y` and `y.z`; `added` and `multiplied` tell if there is a `w` and a `z`.
    kernel step_product<T> given(value_count: usize, cols: usize, columns: usize, added: bool, multiplied: bool, made: usize)
        (shape: shape, rows: in_uint, indices: in_uint, values: in_real[value_count], x: in_real[cols * columns],
        w: in_real[if added { shape.n * columns } else { 0 }], y: out_real[shape.n * columns],
        z: in_real[if multiplied { shape.n * columns } else { 0 }],
        programs: in_uint[shape.program + HEADER], sums: out_sum[made],
        registers: out_sum[2 * columns * REGISTERS], status: out_int[2 * columns * STATES + columns + 1],
        history: out_sum[2 * HISTORY * columns]);
}

pub(in crate::backend) static FILES: &[&File] = &[&pass::FILE, &step::FILE, super::basis::FILE];

/// No vector, statement or dot product, in `cl/pass.cl`.
pub(crate) const NONE: u32 = 15;
pub(crate) const NO_STATEMENT: u32 = u32::MAX;
pub(crate) const NO_DOT: u32 = 0xff;
const NO_DOTS: u32 = NO_DOT | NO_DOT << 8 | NO_DOT << 16;

/// A statement as `cl/pass.cl` reads it.
fn encoded(statement: &Statement) -> u32 {
    match statement {
        Statement::Combine { target, terms } => {
            let [a, b, d] = terms.map(|v| v.map_or(NONE, u32::from));
            u32::from(*target) | a << 4 | b << 8 | d << 12
        }
        Statement::Multiply { target, factors: [a, b] } => {
            u32::from(*target) | u32::from(*a) << 4 | u32::from(*b) << 8 | NONE << 12 | 1 << 16
        }
    }
}

impl OpenCl {
    fn plan_step_product<T: Real>(
        &self,
        run: Run<'_>,
        a: &Stored<T>,
        columns: usize,
        [blend, dots]: [u32; 2],
    ) -> Result<Plan> {
        let chunks = Chunks::of(a.rows);
        let cut = [chunks.chunk, chunks.lanes];
        let (common, matrix, _) = self.rows(run, Family::StepProduct, a, a.rows, cut, columns);
        let kernel = step::step_product::prepare(
            &self.context,
            common,
            &step::Options { matrix: MatrixOptions { blend, ..matrix }, dots },
        )?;
        // One group at least: a program runs even if there are no rows.
        Ok(Plan { kernel, groups: chunks.count.max(1), share: chunks.chunk })
    }
}

impl<T: Real> ScriptOps<T> for OpenCl {
    fn step_scalars(&self, run: Run<'_>, call: StepCall, state: &mut ScriptState) -> Result<()> {
        let on = &self.context;
        let ScriptState { programs, sums, registers, status, history, plans } = state;
        let words = PassWords::default();
        let key = PassKey { launch: run.key("step_scalars", call.columns, 0), n: 0, words: words.words() };
        let plan = plans.get(key, || {
            let common = self.common::<T>(run, run.tuning.work_group, 1).with_columns(call.columns);
            let kernel = pass::step_scalars::prepare(on, common, &pass::Options { words })?;
            Ok(Plan { kernel, groups: 1, share: 0 })
        })?;
        let args = pass::step_scalars::Args {
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
        pass::step_scalars::launch(&plan.kernel, plan.groups, args)
    }

    fn step_product(
        &self,
        run: Run<'_>,
        call: StepCall,
        a: &Stored<T>,
        blend: Blend,
        [x, w, z]: [&Memory<T>; 3],
        y: &mut Memory<T>,
        state: &mut ScriptState,
    ) -> Result<()> {
        let on = &self.context;
        let [scaled, shifted, square, dot] =
            [blend.scaled, blend.shifted, blend.dots[0], blend.dots[1]].map(u32::from);
        let macros = [scaled | shifted << 1, square | dot << 1];
        let key = run.key("step_product", call.columns, macros[0] | macros[1] << 2).reading(a, a);
        let plan = a.plans.get(key, || self.plan_step_product(run, a, call.columns, macros))?;
        let ScriptState { programs, sums, registers, status, history, .. } = state;
        let args = step::step_product::Args {
            value_count: a.value_count(),
            cols: a.cols,
            columns: call.columns,
            added: blend.shifted,
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
        run: Run<'_>,
        call: StepCall,
        n: usize,
        pass: &Pass,
        vectors: [&mut Memory<T>; PASS_VECTORS],
        state: &mut ScriptState,
    ) -> Result<()> {
        let (on, chunks) = (&self.context, Chunks::of(n));
        let [read, written] = pass.touched();
        for (k, vector) in vectors.iter().enumerate() {
            if (read | written) >> k & 1 == 1 {
                same_length("a vector of a pass", n * call.columns, vector.len())?;
            }
        }
        let ScriptState { programs, sums, registers, status, history, plans } = state;
        let words = PassWords::of(pass);
        let key = PassKey { launch: run.key("step_vectors", call.columns, 0), n, words: words.words() };
        let plan = plans.get(key, || {
            let found = self.plain::<T>(run, Family::StepVectors, chunks);
            let (groups, share) = found.share(chunks, self.units());
            let common = self.common::<T>(run, found.work_group, chunks.lanes).with_columns(call.columns);
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
}
