//! A block of vectors on a device: `cl/script/basis.cl`.

use std::sync::Arc;

use super::{
    Addition, Basis, BasisOps, COSINE, FACTOR, MOST_VECTORS, PROJECTION, Part, RIGHT_SIDE, SCALE, SINE,
    ScriptState, StepCall, StepLaunch, TRIANGLE, Then, array_numbers,
};
use crate::backend::OpenCl;
use crate::backend::run::Run;
use crate::error::Result;
use crate::kernels::{Common, kernels};
use crate::memory::Memory;
use crate::number::Real;
use crate::ocl::{Context, File, Plan, Prepared};
use crate::recurrence::{DIAGONAL2, HEADER, REGISTERS, RESIDUAL2, STATES, VECTOR2};
use crate::reduction::Chunks;
use crate::state::HISTORY;
use crate::tuning::Family;

kernels! {
    file script/basis, after [common, fold, recurrence];
    constants [{MOST_VECTORS, FACTOR, SCALE, PROJECTION, COSINE, SINE, RIGHT_SIDE, TRIANGLE}, SQUARE_REGISTER = VECTOR2.0, DIAGONAL_REGISTER = DIAGONAL2.0, RESIDUAL_REGISTER = RESIDUAL2.0];
    shape { n, chunk, chunks, per_group, first, count, most, slot }
    /// The chunk sums of `Q'w`.
    kernel basis_project<T> given(columns: usize)
        (shape: shape, groups: uint, per_part: uint, basis: in_real[shape.count * shape.n * columns],
        w: in_real[shape.n * columns], status: in_int[2 * columns * STATES],
        sums: out_sum[(shape.first + shape.count) * columns * shape.chunks]);
    /// Their folds: coefficients and factors.
    kernel basis_fold given(columns: usize)
        (shape: shape, again: uint, status: in_int[2 * columns * STATES],
        sums: in_sum[shape.count * columns * shape.chunks], arrays: out_sum[array_numbers(columns, shape.most)]);
    /// `v += Q factors`, and what follows it.
    kernel basis_add<T> given(columns: usize)
        (shape: shape, adds: uint, fresh: uint, project: uint, square: uint, store: uint,
        basis: out_real[(shape.count + store) * shape.n * columns], v: out_real[shape.n * columns],
        status: in_int[2 * columns * STATES], sums: out_sum[(shape.most + 1) * columns * shape.chunks],
        arrays: out_sum[array_numbers(columns, shape.most)]);
    /// A column of GMRES's triangle, or a norm, then the program.
    kernel basis_rotate given(columns: usize, made: usize)
        (shape: shape, program: uint, step: uint, triangle: uint, programs: in_uint[program + HEADER], script_sums: in_sum[made],
        registers: out_sum[2 * columns * REGISTERS], status: out_int[2 * columns * STATES + columns + 1],
        history: out_sum[2 * HISTORY * columns], sums: in_sum[(shape.most + 1) * columns * shape.chunks],
        arrays: out_sum[array_numbers(columns, shape.most)]);
    /// The program, then columns forget vectors.
    kernel basis_drop given(columns: usize, made: usize)
        (shape: shape, program: uint, dropped: uint, programs: in_uint[program + HEADER], script_sums: in_sum[made],
        registers: out_sum[2 * columns * REGISTERS], status: out_int[2 * columns * STATES + columns + 1],
        history: out_sum[2 * HISTORY * columns], arrays: out_sum[array_numbers(columns, shape.most)]);
    /// The program, then the factors that solve the triangle.
    kernel basis_solve given(columns: usize, made: usize)
        (shape: shape, program: uint, depth: uint, programs: in_uint[program + HEADER], script_sums: in_sum[made],
        registers: out_sum[2 * columns * REGISTERS], status: out_int[2 * columns * STATES + columns + 1],
        history: out_sum[2 * HISTORY * columns], arrays: out_sum[array_numbers(columns, shape.most)]);
}

pub(in crate::backend::script) static FILE: &File = &basis::FILE;

/// Vectors that a part of `basis_project` has at least: the most that are projected on together, `TOGETHER` of `cl/script/basis.cl`.
const LEAST_PART: usize = 4;

/// Function that prepares a kernel of `cl/script/basis.cl`.
type Prepare = fn(&Arc<Context>, Common, &basis::Options) -> Result<Prepared>;

impl OpenCl {
    /// A kernel over the basis, and its shape.
    fn over_basis<T: Real>(
        &self,
        run: Run<'_>,
        call: StepCall,
        part: Part,
        basis: &Basis<T>,
        (name, prepare): (&'static str, Prepare),
    ) -> Result<(Plan, basis::Shape)> {
        let chunks = Chunks::of(basis.n);
        let plan = basis.plans.get(run.key(name, basis.columns, 0), || {
            let found = self.plain::<T>(run, Family::StepVectors, chunks);
            let (groups, share) = found.share(chunks, self.units());
            let common = self.common::<T>(run, found.work_group, chunks.lanes).with_columns(basis.columns);
            let kernel = prepare(&self.context, common, &basis::Options {})?;
            Ok(Plan { kernel, groups: groups.max(1), share })
        })?;
        let shape = basis::Shape {
            n: basis.n,
            chunk: chunks.chunk,
            chunks: chunks.count,
            per_group: plan.share,
            first: part.first,
            count: part.count,
            most: basis.most,
            slot: call.slot as usize,
        };
        Ok((plan, shape))
    }

    /// The chunk sums of `Q'w` for the vectors of one buffer.
    fn project_on<T: Real>(
        &self,
        run: Run<'_>,
        call: StepCall,
        part: Part,
        w: &Memory<T>,
        basis: &mut Basis<T>,
        state: &ScriptState,
    ) -> Result<()> {
        use basis::basis_project::{Args, launch, prepare};
        let on = &self.context;
        let (plan, shape) = self.over_basis(run, call, part, basis, ("basis_project", prepare))?;
        let count = part.count;
        // If there are few groups, they share the vectors too.
        let parts = (4 * self.units()).div_ceil(plan.groups).clamp(1, count.div_ceil(LEAST_PART).max(1));
        let per_part = count.div_ceil(parts).next_multiple_of(LEAST_PART);
        let args = Args {
            columns: basis.columns,
            shape,
            groups: plan.groups,
            per_part,
            basis: basis.vectors[part.buffer].buffer(on)?,
            w: w.buffer(on)?,
            status: state.status.buffer(on)?,
            sums: basis.sums.buffer_mut(on)?,
        };
        launch(&plan.kernel, plan.groups * count.div_ceil(per_part.max(1)), args)
    }
}

impl<T: Real> BasisOps<T> for OpenCl {
    fn basis_project(&self, step: StepLaunch<'_>, count: usize, w: &Memory<T>, basis: &mut Basis<T>) -> Result<()> {
        let StepLaunch { run, call, state } = step;
        (0..count.div_ceil(basis.per_buffer))
            .try_for_each(|buffer| self.project_on(run, call, basis.part(buffer, count), w, basis, state))
    }

    fn basis_fold(&self, step: StepLaunch<'_>, count: usize, again: bool, basis: &mut Basis<T>) -> Result<()> {
        use basis::basis_fold::{Args, launch, prepare};
        let StepLaunch { run, call, state } = step;
        let on = &self.context;
        let all = Part { buffer: 0, first: 0, count };
        let (plan, shape) = self.over_basis(run, call, all, basis, ("basis_fold", prepare))?;
        let args = Args {
            columns: basis.columns,
            shape,
            again: again.into(),
            status: state.status.buffer(on)?,
            sums: basis.sums.buffer(on)?,
            arrays: basis.arrays.buffer_mut(on)?,
        };
        launch(&plan.kernel, count * basis.columns, args)
    }

    fn basis_add(
        &self,
        step: StepLaunch<'_>,
        addition: Addition,
        v: &mut Memory<T>,
        basis: &mut Basis<T>,
    ) -> Result<()> {
        use basis::basis_add::{Args, launch, prepare};
        let StepLaunch { run, call, state } = step;
        let (on, Addition { count, adds, fresh, then }) = (&self.context, addition);
        let store = then == Then::Append && count < basis.most;
        let last = (if store { count } else { count.saturating_sub(1) }) / basis.per_buffer;
        for buffer in if adds { 0 } else { last }..=last {
            let part = basis.part(buffer, count);
            let (plan, shape) = self.over_basis(run, call, part, basis, ("basis_add", prepare))?;
            let ends = buffer == last;
            let args = Args {
                columns: basis.columns,
                shape,
                adds: adds.into(),
                fresh: (fresh && buffer == 0).into(),
                project: (ends && then == Then::Project).into(),
                square: (ends && then == Then::Append).into(),
                store: (ends && store).into(),
                basis: basis.vectors[buffer].buffer_mut(on)?,
                v: v.buffer_mut(on)?,
                status: state.status.buffer(on)?,
                sums: basis.sums.buffer_mut(on)?,
                arrays: basis.arrays.buffer_mut(on)?,
            };
            launch(&plan.kernel, plan.groups, args)?;
        }
        match then {
            Then::Project => (0..last)
                .try_for_each(|buffer| self.project_on(run, call, basis.part(buffer, count), v, basis, state)),
            _ => Ok(()),
        }
    }

    fn basis_rotate(
        &self,
        step: StepLaunch<'_>,
        column: usize,
        triangle: bool,
        basis: &mut Basis<T>,
    ) -> Result<()> {
        use basis::basis_rotate::{Args, launch, prepare};
        let StepLaunch { run, call, state } = step;
        let on = &self.context;
        let (plan, shape) = self.over_basis(run, call, basis.part(0, 0), basis, ("basis_rotate", prepare))?;
        let args = Args {
            columns: call.columns,
            made: call.sums,
            shape,
            program: call.block as usize,
            step: column,
            triangle: triangle.into(),
            programs: state.programs.buffer(on)?,
            script_sums: state.sums.buffer(on)?,
            registers: state.registers.buffer_mut(on)?,
            status: state.status.buffer_mut(on)?,
            history: state.history.buffer_mut(on)?,
            sums: basis.sums.buffer(on)?,
            arrays: basis.arrays.buffer_mut(on)?,
        };
        launch(&plan.kernel, 1, args)
    }

    fn basis_drop(
        &self,
        step: StepLaunch<'_>,
        (dropped, count): (usize, usize),
        basis: &mut Basis<T>,
    ) -> Result<()> {
        use basis::basis_drop::{Args, launch, prepare};
        let StepLaunch { run, call, state } = step;
        let on = &self.context;
        let part = Part { buffer: 0, first: 0, count };
        let (plan, shape) = self.over_basis(run, call, part, basis, ("basis_drop", prepare))?;
        let args = Args {
            columns: call.columns,
            made: call.sums,
            shape,
            program: call.block as usize,
            dropped,
            programs: state.programs.buffer(on)?,
            script_sums: state.sums.buffer(on)?,
            registers: state.registers.buffer_mut(on)?,
            status: state.status.buffer_mut(on)?,
            history: state.history.buffer_mut(on)?,
            arrays: basis.arrays.buffer_mut(on)?,
        };
        launch(&plan.kernel, 1, args)
    }

    fn basis_solve(&self, step: StepLaunch<'_>, depth: usize, basis: &mut Basis<T>) -> Result<()> {
        use basis::basis_solve::{Args, launch, prepare};
        let StepLaunch { run, call, state } = step;
        let on = &self.context;
        let (plan, shape) = self.over_basis(run, call, basis.part(0, 0), basis, ("basis_solve", prepare))?;
        let args = Args {
            columns: call.columns,
            made: call.sums,
            shape,
            program: call.block as usize,
            depth,
            programs: state.programs.buffer(on)?,
            script_sums: state.sums.buffer(on)?,
            registers: state.registers.buffer_mut(on)?,
            status: state.status.buffer_mut(on)?,
            history: state.history.buffer_mut(on)?,
            arrays: basis.arrays.buffer_mut(on)?,
        };
        launch(&plan.kernel, 1, args)
    }
}
