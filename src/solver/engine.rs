//! Runs the script of a method on one device: the vectors, the scalars, the launches.

use std::cmp::Ordering;
use std::mem::{swap, take};
use std::ops::Range;

use super::driver::{self, Iteration, Observer, Outcome, Status};
use super::plan::{Act, B, Call, Of, Plan, Preconditioning, Script, Space, V, X};
use super::products::Products;
use super::stopping::{Limits, Stopping};
use super::workspace::Workspace;
use crate::backend::Run;
use crate::backend::script::{self, ScriptState, StepCall};
use crate::device::Device;
use crate::error::{Error, Result, same_length};
use crate::memory::Memory;
use crate::number::{Real, Sum};
use crate::operator::{LinearOperator, SharedOperator};
use crate::recurrence::{GRADIENT_LIMIT, GRADIENT_RATIO, REGISTERS, RESIDUAL_LIMIT, STATES, Scalar};
use crate::state::HISTORY;
use crate::vector::Vector;

/// What a script multiplies by, and the exponents of the powers of two by which both are multiplied (`scaling.rs`).
pub(super) struct Operators<'o, T: Real> {
    pub(super) a: &'o SharedOperator<T>,
    pub(super) preconditioner: Option<&'o SharedOperator<T>>,
    pub(super) exponents: [i32; 2],
}

struct Engine<T: Real> {
    script: Script,
    columns: usize,
    rows: usize,
    cols: usize,
    a: Products<T>,
    adjoint: Option<Products<T>>,
    preconditioner: Option<Products<T>>,
    vectors: Vec<Vector<T>>,
    /// Takes the place of a vector that is being written.
    spare: Vector<T>,
    best: Vector<T>,
    initial: Vec<(Scalar, f64)>,
    /// Chunk sums that the calls of the script name.
    sums: usize,
    state: ScriptState,
    /// The slot that the next launch reads.
    slot: u32,
    /// Status of both slots and norms of the last iterations, as they were last looked at.
    seen: Vec<i32>,
    ring: Vec<Sum>,
}

/// Allocates what `script` needs to solve for `columns` right-hand sides at once.
pub(super) fn boxed<T: Real>(
    operators: &Operators<'_, T>,
    columns: usize,
    plan: Plan,
    script: Script,
    preconditioning: Preconditioning,
) -> Result<Box<dyn Workspace<T>>> {
    Ok(Box::new(Engine::new(operators, columns, plan, script, preconditioning)?))
}

impl<T: Real> Engine<T> {
    fn new(
        operators: &Operators<'_, T>,
        columns: usize,
        plan: Plan,
        script: Script,
        preconditioning: Preconditioning,
    ) -> Result<Self> {
        plan.check()?;
        let device = operators.a.device();
        let (rows, cols) = (operators.a.rows(), operators.a.cols());
        let calls = || script.start.iter().chain(script.steps.iter().flatten());
        let multiplies_by =
            |which: Of| calls().any(|call| matches!(call.act, Act::Product { of, .. } if of == which));
        let [of_operator, of_preconditioner] = operators.exponents;
        let a = Products::of(operators.a, of_operator, columns)?;
        let adjoint = match multiplies_by(Of::Adjoint) {
            true => Some(Products::of_adjoint(operators.a, of_operator, columns)?),
            false => None,
        };
        let preconditioner = match operators.preconditioner {
            Some(operator) if multiplies_by(Of::Preconditioner) => {
                Some(Products::of(operator, of_preconditioner, columns)?)
            }
            _ => None,
        };
        let mut vectors = Vec::with_capacity(plan.vectors.len());
        for (k, space) in plan.vectors.iter().enumerate() {
            let len = if Plan::FILLERS.contains(&k) { 1 } else { plan.len(*space) * columns };
            vectors.push(Vector::zeros(device, len)?);
        }
        let entries = operators.preconditioner.and_then(|operator| operator.as_diagonal());
        if let (Preconditioning::Diagonal(d), Some(entries)) = (preconditioning, entries) {
            let held = &mut vectors[d.index()];
            if columns == 1 {
                held.copy_from(entries)?;
            } else {
                let entries = entries.to_vec()?;
                *held = Vector::interleaved(device, &vec![&entries[..]; columns])?;
            }
            if of_preconditioner != 0 {
                held.scale_columns(&[of_preconditioner])?;
            }
        }
        let state = ScriptState::new(&device.place(), plan.programs, columns, plan.sums)?;
        let best = Vector::zeros(device, cols * columns)?;
        let spare = Vector::zeros(device, 1)?;
        let initial = plan.registers.initial;
        Ok(Self {
            script,
            columns,
            rows,
            cols,
            a,
            adjoint,
            preconditioner,
            vectors,
            spare,
            best,
            initial,
            sums: plan.sums,
            state,
            slot: 0,
            seen: vec![0; 2 * columns * STATES],
            ring: vec![Sum::default(); 2 * HISTORY * columns],
        })
    }

    /// Queues a part of the script.
    fn queue(&mut self, device: &Device, b: &Vector<T>, part: impl Fn(&Script) -> &[Call]) -> Result<()> {
        // Taken out, so that it can be read while the rest changes.
        let script = take(&mut self.script);
        let done = part(&script).iter().try_for_each(|call| self.call(device, b, call));
        self.script = script;
        done
    }

    /// Queues one launch.
    fn call(&mut self, device: &Device, b: &Vector<T>, call: &Call) -> Result<()> {
        let (run, operations) = (device.run::<T>(), script::on::<T>(device.backend()));
        let step = StepCall { block: call.block, slot: self.slot, columns: self.columns, sums: self.sums };
        self.slot = 1 - self.slot;
        match &call.act {
            Act::Scalars => operations.step_scalars(run, step, &mut self.state),
            Act::Product { y, .. } => {
                // What is written leaves its place, so that others may be read there.
                swap(&mut self.vectors[y.index()], &mut self.spare);
                let done = self.product(device, run, step, b, &call.act);
                swap(&mut self.vectors[y.index()], &mut self.spare);
                done
            }
            Act::Update { space, pass, vectors } => {
                let n = match space {
                    Space::Rows => self.rows,
                    Space::Cols => self.cols,
                };
                let held = self.vectors.get_disjoint_mut(vectors.map(V::index)).map_err(|_| Error::Shape {
                    what: "different vectors of a pass",
                    expected: vectors.len(),
                    found: 0,
                })?;
                let vectors = held.map(Vector::memory_mut);
                operations.step_vectors(run, step, n, pass, vectors, &mut self.state)
            }
        }
    }

    fn product(&mut self, device: &Device, run: Run<'_>, step: StepCall, b: &Vector<T>, act: &Act) -> Result<()> {
        let Act::Product { of: which, x, w, z, blend, .. } = act else { return Ok(()) };
        let Self { vectors, spare: y, state, .. } = self;
        let products = match which {
            Of::A => Some(&self.a),
            Of::Adjoint => self.adjoint.as_ref(),
            Of::Preconditioner => self.preconditioner.as_ref(),
        };
        let Some(products) = products else {
            return same_length("operators of a script", 1, 0);
        };
        let vector = |v: &V| if *v == B { b } else { &vectors[v.index()] };
        match which {
            Of::Adjoint => products.apply_adjoint(vector(x), y)?,
            _ => products.apply(vector(x), y)?,
        }
        let read = [x, w, z].map(|v| vector(v).memory());
        let operations = script::on::<T>(device.backend());
        operations.step_product(run, step, &products.stored(), *blend, read, y.memory_mut(), state)
    }
}

impl<T: Real> Workspace<T> for Engine<T> {
    fn solve(
        &mut self,
        device: &Device,
        stopping: &Stopping,
        limits: &[Limits],
        b: &Vector<T>,
        x: &mut Vector<T>,
        observer: &mut Observer<'_>,
    ) -> Result<(Vec<Outcome>, f64)> {
        // The answer is worked on where it lies.
        swap(x, &mut self.vectors[X.index()]);
        let limits = limits.to_vec();
        let result = driver::run(&mut ScriptRun { on: self, device, b, limits }, stopping, observer);
        swap(x, &mut self.vectors[X.index()]);
        result
    }

    fn set_reference(&mut self, reference: &Vector<T>) -> Result<()> {
        match self.script.reference {
            Some(v) => self.vectors[v.index()].copy_from(reference),
            None => Err(Error::Option { name: "reference", reason: "this method has no damping".into() }),
        }
    }

    fn residual(&self) -> &Vector<T> {
        // The first call of every script computes it, and nothing overwrites it before the first iteration.
        let place = match self.script.start.first().map(|call| &call.act) {
            Some(Act::Product { y, .. }) => y.index(),
            _ => X.index(),
        };
        &self.vectors[place]
    }

    fn launches(&self) -> usize {
        let steps = &self.script.steps;
        let made = |products: Option<&Products<T>>| products.map_or(0, Products::launches);
        let each = |call: &Call| match call.act {
            Act::Product { of: Of::A, .. } => 1 + made(Some(&self.a)),
            Act::Product { of: Of::Adjoint, .. } => 1 + made(self.adjoint.as_ref()),
            Act::Product { of: Of::Preconditioner, .. } => 1 + made(self.preconditioner.as_ref()),
            _ => 1,
        };
        steps.iter().flatten().map(each).sum::<usize>() / steps.len().max(1)
    }

    fn least_squares(&self) -> bool {
        self.script.least_squares
    }
}

/// A solve under way.
struct ScriptRun<'s, T: Real> {
    on: &'s mut Engine<T>,
    device: &'s Device,
    b: &'s Vector<T>,
    limits: Vec<Limits>,
}

impl<T: Real> ScriptRun<'_, T> {
    fn begin(&mut self, budget: &[usize]) -> Result<()> {
        let (columns, accumulation) = (self.limits.len(), self.device.accumulation(T::PRECISION));
        let mut registers = vec![Sum::default(); 2 * columns * REGISTERS];
        for (at, file) in registers.chunks_mut(REGISTERS).enumerate() {
            let limits = &self.limits[at % columns];
            let limits = [
                (RESIDUAL_LIMIT, limits.residual),
                (GRADIENT_LIMIT, limits.gradient),
                (GRADIENT_RATIO, limits.ratio),
            ];
            for (scalar, value) in self.on.initial.iter().chain(&limits) {
                file[usize::from(scalar.0)] = Sum::of(*value, accumulation);
            }
        }
        let mut status = vec![0; 2 * columns * STATES];
        status.extend(budget.iter().map(|b| *b as i32));
        status.push(HISTORY as i32 - 1);
        let on = &mut *self.on;
        on.state.registers.write(&registers)?;
        on.state.status.write(&status)?;
        on.slot = 0;
        on.queue(self.device, self.b, |script| &script.start)
    }
}

impl<T: Real> Iteration for ScriptRun<'_, T> {
    fn columns(&self) -> usize {
        self.limits.len()
    }

    fn start(&mut self, budget: &[usize]) -> Result<()> {
        self.begin(budget)?;
        if self.limits.iter().any(Limits::waits) {
            // The first norms set the limits that depend on them; the start is repeated with those in force.
            self.status()?;
            for c in 0..self.limits.len() {
                let first = self.norms(c, 0);
                self.limits[c].set_first(first);
            }
            self.begin(budget)?;
        }
        Ok(())
    }

    fn steps(&mut self, mut indices: Range<usize>) -> Result<()> {
        indices.try_for_each(|index| {
            self.on.queue(self.device, self.b, |script| &script.steps[index % script.steps.len()])
        })
    }

    fn exact(&mut self, done: usize) -> Result<()> {
        self.on.queue(self.device, self.b, |script| &script.exact[done % script.exact.len()])
    }

    fn status(&mut self) -> Result<Vec<Status>> {
        let Engine { state, seen, ring, slot, .. } = &mut *self.on;
        Memory::read_both((&state.status, seen), (&state.history, ring))?;
        let count = self.limits.len() * STATES;
        let status = &seen[*slot as usize * count..][..count];
        Ok(status.chunks(STATES).map(|s| Status { code: s[0], iteration: s[1].max(0) as usize }).collect())
    }

    fn norms(&self, c: usize, k: usize) -> [f64; 2] {
        let at = 2 * ((k % HISTORY) * self.limits.len() + c);
        let accumulation = self.device.accumulation(T::PRECISION);
        [at, at + 1].map(|at| self.on.ring[at].value(accumulation))
    }

    fn excess(&self, c: usize, norms: [f64; 2]) -> f64 {
        self.limits[c].excess(norms, self.on.script.least_squares)
    }

    fn keep(&mut self, columns: &[usize]) -> Result<()> {
        let Engine { best, vectors, .. } = &mut *self.on;
        copy_columns(self.limits.len(), columns, &vectors[X.index()], best)
    }

    fn restore(&mut self, columns: &[usize]) -> Result<()> {
        let Engine { best, vectors, .. } = &mut *self.on;
        copy_columns(self.limits.len(), columns, best, &mut vectors[X.index()])
    }

    fn residual_decides(&self) -> bool {
        // With damping the answer is not the one of the least residual.
        self.on.script.reference.is_none()
    }

    fn compare(&self, norms: [f64; 2], others: [f64; 2]) -> Ordering {
        Limits::compare::<T>(norms, others, self.on.script.least_squares)
    }

    fn is_rounding(&mut self, c: usize, norms: [f64; 2]) -> Result<bool> {
        if !self.on.script.least_squares {
            return Ok(false);
        }
        let x = self.on.vectors[X.index()].column_norms(self.limits.len())?;
        Ok(self.limits[c].is_rounding(norms, x[c].to_f64()))
    }

    fn in_given_units(&self, c: usize, norms: [f64; 2]) -> [f64; 2] {
        self.limits[c].in_given_units(norms)
    }

    fn build_seconds(&self) -> f64 {
        self.device.programs().seconds
    }
}

/// Copies some of the `count` columns of one interleaved vector into another.
pub(super) fn copy_columns<T: Real>(
    count: usize,
    columns: &[usize],
    source: &Vector<T>,
    target: &mut Vector<T>,
) -> Result<()> {
    if columns.len() == count {
        return target.copy_from(source);
    }
    if columns.is_empty() {
        return Ok(());
    }
    // Not all of them, and once per start at most: the host may do it.
    let (from, mut to) = (source.to_vec()?, target.to_vec()?);
    for (from, to) in from.chunks_exact(count).zip(to.chunks_exact_mut(count)) {
        for c in columns {
            to[*c] = from[*c];
        }
    }
    target.write(&to)
}
