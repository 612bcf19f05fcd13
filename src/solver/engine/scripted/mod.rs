//! Runs the script of a method on one device: the vectors, the scalars, the launches.

mod alone;
mod blocks;
mod cg;
mod cgnr;
mod resident;
mod solve;

use std::mem::{swap, take};
use std::ops::Range;
use std::sync::Arc;

use crate::backend::linear::pointwise::Formula;
use crate::backend::script::{Basis, ScriptState, StepCall, StepLaunch};
use crate::error::{Error, Result};
use crate::number::Real;
use crate::operator::LinearOperator;
use crate::recurrence::{STATES, Scalar};
use crate::solver::engine::damping::Weighing;
use crate::solver::engine::inputs::Inputs;
use crate::solver::engine::operands::{DiagonalCopy, Operators, factors};
use crate::solver::engine::products::Products;
use crate::solver::engine::regularised::Regularised;
use crate::solver::engine::residence::Residence;
use crate::solver::regularise::{Objective, Penalised, Regularization};
use crate::solver::script::{
    Call, Damping, Draft, ElementFormula, Fused, Launch, Operand, OverPixels, Preconditioning, Script, Space,
    VectorId, X,
};
use crate::solver::stopping::Limits;
use crate::solver::weight::{Least, WeightRule};
use crate::vector::Vector;

/// Vectors and scalars of a script on one device. The loop ([`run`](crate::solver::run)) drives it.
pub(crate) struct Engine<T: Real> {
    script: Arc<Script>,
    columns: usize,
    /// Lengths of the vectors of each space, in the order of [`Space::index`].
    lengths: Vec<usize>,
    /// Products with each operand that the script names, in the order of [`Operand::index`].
    products: Vec<Option<Products<T>>>,
    /// Tells for each of them if its program and its sums are launches of their own.
    apart: Vec<bool>,
    vectors: Vec<Vector<T>>,
    diagonal: Option<DiagonalCopy<T>>,
    /// Takes the place of a vector that is being written.
    spare: Vector<T>,
    /// Formulas of elements that calls have asked for.
    formulas: Vec<(ElementFormula, Formula<T>)>,
    /// Bases of both spaces.
    bases: [Option<Basis<T>>; 2],
    /// Iterations were queued since the answer was brought up to date.
    behind: bool,
    initial: Vec<(Scalar, f64)>,
    /// Terms beside the misfit, for the methods that have some.
    objective: Option<Objective<T>>,
    /// Corrections of CGNR.
    regularised: Option<Regularised>,
    /// A penalty of the user's own.
    penalty: Option<Penalised<T>>,
    /// The weight of damping, for the method that chooses one.
    weighing: Option<Weighing>,
    /// The next start is the first since the answer was exchanged.
    first: bool,
    /// The next start does what a solve begins with.
    begins: bool,
    /// Chunk sums that the calls of the script name.
    sums: usize,
    state: ScriptState,
    /// The slot that the next launch reads.
    slot: u32,
    /// Status of both slots and the words behind them, as they were last looked at.
    seen: Vec<i32>,
    /// Iterations that each column may make, and the mask of the history, as the last start wrote them.
    limits: Vec<i32>,
    /// Calls that have kernels of their own use them.
    fuses: bool,
    /// Iterations as one launch, if they can be that.
    residence: Option<Resident<T>>,
    /// Iterations in resident launches since those were last looked at, and the number of all so far.
    resident: Range<usize>,
    resided: u32,
}

/// Way of doing many iterations in one launch.
enum Resident<T: Real> {
    Listed(Residence<T>),
    Cg,
    Cgnr,
}

/// Allocates what `script` needs to solve for as many right-hand sides at once as there are regularizations.
pub(crate) fn set_up<T: Real>(
    operators: &Operators<'_, T>,
    regularizations: Vec<Regularization>,
    weight: Option<(WeightRule, Least)>,
    plan: Draft,
    mut script: Script,
    preconditioning: Preconditioning,
) -> Result<Engine<T>> {
    let (columns, terms) = (regularizations.len(), script.terms.take());
    let parts = script.cgnr;
    let mut engine = Engine::new(operators, columns, plan, script, preconditioning)?;
    engine.regularised = parts.map(|parts| Regularised::new(parts, regularizations.clone()));
    if let Some(terms) = terms {
        engine.objective = Some(Objective::new(terms, regularizations, operators.a, operators.exponents[0])?);
    }
    engine.weighing = weight.map(|weight| Weighing::new(weight, operators.a.rows(), columns));
    Ok(engine)
}

impl<T: Real> Engine<T> {
    fn new(
        operators: &Operators<'_, T>,
        columns: usize,
        plan: Draft,
        script: Script,
        preconditioning: Preconditioning,
    ) -> Result<Self> {
        plan.check()?;
        let script = Arc::new(script);
        let device = operators.a.device();
        let (rows, cols) = (operators.a.rows(), operators.a.cols());
        let products = factors(operators, &script, columns, preconditioning)?;
        let operations = device.backend().script::<T>();
        let multiplies_apart = |p: &Products<T>| operations.script_multiplies_apart(device.run::<T>(), &p.stored());
        let apart = products.iter().map(|p| p.as_ref().is_some_and(multiplies_apart)).collect();
        let mut vectors = Vec::with_capacity(plan.vectors.len());
        for (k, space) in plan.vectors.iter().enumerate() {
            // The answer's place is the user's vector during a solve.
            let is_place = k == X.index() || Draft::FILLERS.contains(&k);
            let len = if is_place { 1 } else { plan.len(*space) * columns };
            vectors.push(Vector::zeros(device, len)?);
        }
        let mut diagonal = match preconditioning {
            Preconditioning::Diagonal(place) => operators.preconditioner.map(|operator| DiagonalCopy {
                operator: Arc::clone(operator),
                copied: None,
                exponent: operators.exponents[1],
                place,
            }),
            _ => None,
        };
        diagonal.iter_mut().try_for_each(|diagonal| diagonal.refresh(columns, &mut vectors))?;
        // Kernels of their own cannot multiply by the last factor of a product of operators.
        let is_composed = products[Operand::A.index()].as_ref().is_some_and(Products::is_composed);
        let fuses_cg = script.cg.is_some() && columns == 1 && !is_composed;
        let kernels = script.cgnr.map(|parts| parts.kernels).unwrap_or_default();
        let residence = match (fuses_cg, kernels.resident) {
            (true, _) => Some(Resident::Cg),
            (_, true) => Some(Resident::Cgnr),
            _ => Residence::of(&plan, &script, &products).map(Resident::Listed),
        };
        let state = ScriptState::new(&device.place(), plan.programs, columns, plan.sums)?;
        let spare = Vector::zeros(device, 1)?;
        let basis = |n: usize, most: usize| match most {
            0 => Ok(None),
            _ => Basis::new(&device.place(), n, columns, most, device.info().largest_allocation).map(Some),
        };
        let bases = [basis(rows, plan.bases[Space::Rows.index()])?, basis(cols, plan.bases[Space::Cols.index()])?];
        let initial = plan.registers.initial;
        Ok(Self {
            script,
            columns,
            lengths: plan.lengths,
            products,
            apart,
            vectors,
            diagonal,
            spare,
            formulas: Vec::new(),
            bases,
            behind: false,
            initial,
            objective: None,
            regularised: None,
            penalty: operators.penalty.map(Penalised::new),
            weighing: None,
            first: true,
            begins: false,
            sums: plan.sums,
            state,
            slot: 0,
            seen: vec![0; ScriptState::words(columns)],
            limits: Vec::new(),
            fuses: fuses_cg || kernels.halves,
            residence,
            resident: 0..0,
            resided: 0,
        })
    }

    /// Queues a part of the script.
    fn queue(&mut self, inputs: &Inputs<'_, T>, part: impl Fn(&Script) -> &[Call]) -> Result<()> {
        let script = Arc::clone(&self.script);
        let mut calls = part(&script);
        while let [call, rest @ ..] = calls {
            calls = match call.fused.filter(|_| self.fuses) {
                Some(fused) => {
                    self.fused(inputs, call, fused)?;
                    calls.get(fused.calls()..).unwrap_or_default()
                }
                None => {
                    self.call(inputs, call)?;
                    rest
                }
            };
        }
        Ok(())
    }

    /// Queues calls that have a kernel of their own, of which `call` is the first.
    fn fused(&mut self, inputs: &Inputs<'_, T>, call: &Call, fused: Fused) -> Result<()> {
        let step = self.step_call(call.block, true);
        match fused {
            Fused::CgProduct => self.cg(inputs, step, true),
            Fused::CgUpdate => self.cg(inputs, step, false),
            Fused::CgnrForward { now } => self.half(inputs, step, (now, None), true),
            Fused::CgnrBackward { now, starts } => self.half(inputs, step, (now, Some(starts)), true),
        }
    }

    /// Queues one launch.
    fn call(&mut self, inputs: &Inputs<'_, T>, call: &Call) -> Result<()> {
        let (run, operations) = (inputs.run, inputs.device.backend().script::<T>());
        if let Some(y) = self.result_of_operator(call) {
            return Written::new(self, y.index()).engine.apply(inputs, &call.launch);
        }
        if let Launch::Product { of, apart: Some(apart), .. } = &call.launch
            && self.apart[of.index()]
        {
            return self.product_apart(inputs, call, apart);
        }
        let step = self.step_call(call.block, call.launch.runs_program());
        match &call.launch {
            Launch::Scalars => operations.step_scalars(StepLaunch { run, call: step, state: &mut self.state }),
            Launch::Product { y, blend, .. } => {
                Written::new(self, y.index()).engine.product(inputs, step, &call.launch, *blend)
            }
            Launch::Update { space, pass, vectors } => {
                let n = self.length(*space);
                let held = self.vectors.get_disjoint_mut(vectors.map(VectorId::index)).map_err(|_| {
                    Error::Shape { what: "different vectors of a pass", expected: vectors.len(), found: 0 }
                })?;
                let vectors = held.map(Vector::memory_mut);
                operations.step_vectors(StepLaunch { run, call: step, state: &mut self.state }, n, pass, vectors)
            }
            Launch::Basis(of, call) => self.over_basis(inputs, step, (*of, *call)),
            Launch::Pixels(OverPixels::Direction { now, .. }) => self.half(inputs, step, (*now, None), false),
            Launch::Pixels(OverPixels::Step { now, starts }) => {
                self.half(inputs, step, (*now, Some(*starts)), false)
            }
            Launch::Alone(call) => self.alone(inputs, step, *call),
        }
    }

    /// Result of a call that an operator does alone.
    fn result_of_operator(&self, call: &Call) -> Option<VectorId> {
        let Launch::Product { of, y, .. } = call.launch else { return None };
        let is_external = self.products[of.index()].as_ref().is_some_and(Products::is_external);
        (is_external && call.launch.is_bare_product()).then_some(y)
    }

    /// Length of the vectors of a space, for one column.
    fn length(&self, space: Space) -> usize {
        self.lengths.get(space.index()).copied().unwrap_or(0)
    }

    /// The next launch, which reads the slot and hands it on if it runs a program.
    fn step_call(&mut self, block: u32, runs_program: bool) -> StepCall {
        let slot = self.slot;
        self.slot = if runs_program { 1 - slot } else { slot };
        StepCall { block, slot, columns: self.columns, sums: self.sums }
    }

    /// Brings the terms beside the misfit up to date, for a start.
    fn refresh_objective(&mut self, limits: &[Limits]) -> Result<()> {
        let Self { objective, penalty, vectors, .. } = self;
        penalty.iter_mut().for_each(|penalty| penalty.take_units(limits));
        if let Some(objective) = objective {
            objective.refresh()?;
            objective.write_bounds(limits, vectors)?;
            objective.write_inverse_sums(vectors)?;
        }
        if take(&mut self.first) {
            let dual = objective.iter().flat_map(|objective| &objective.terms.dual);
            let change = self.script.damping.iter().map(|damping| &damping.change);
            for v in dual.chain(change) {
                vectors[v.index()].fill(T::default())?;
            }
            self.weighing.iter_mut().for_each(Weighing::clear);
        }
        Ok(())
    }

    /// Tells if nothing stands beside the misfit, but damping.
    fn is_misfit(&self) -> bool {
        self.penalty.is_none() && self.objective.as_ref().is_none_or(Objective::is_misfit)
    }

    /// The scalars that column `c` has of its own.
    fn own_scalars(&self, c: usize, exponents: [i32; 2]) -> Vec<(Scalar, f64)> {
        let mut scalars =
            self.objective.as_ref().map_or_else(Vec::new, |objective| objective.scalars(c, exponents));
        if let (Some(Damping { minus_square, .. }), Some(weighing)) = (self.script.damping, &self.weighing) {
            scalars.push((minus_square, weighing.minus_square(c)));
        }
        scalars.extend(self.regularised.iter().flat_map(|regularised| regularised.scalars(c, exponents)));
        scalars
    }

    /// Brings the answer up to date, before a start of any column that has iterated.
    fn finish(&mut self, inputs: &Inputs<'_, T>) -> Result<()> {
        if take(&mut self.behind) && !self.script.finish.is_empty() {
            if let (Some(weighing), [_, Some(basis)]) = (&self.weighing, &mut self.bases) {
                basis.set_factors(&weighing.factors(inputs.run.accumulation))?;
            }
            // All columns run: those that have stopped have something to add too.
            let mut status = vec![0; 2 * self.columns * STATES];
            status.extend(&self.limits);
            self.state.status.write(&status)?;
            self.queue(inputs, |script| &script.finish)?;
        }
        Ok(())
    }
}

/// An engine whose vector `y` is in the place of `spare`, so that others can be read while it is written. It comes back even if an
/// operator of the user panics.
struct Written<'e, T: Real> {
    engine: &'e mut Engine<T>,
    y: usize,
}

impl<'e, T: Real> Written<'e, T> {
    fn new(engine: &'e mut Engine<T>, y: usize) -> Self {
        swap(&mut engine.vectors[y], &mut engine.spare);
        Self { engine, y }
    }
}

impl<T: Real> Drop for Written<'_, T> {
    fn drop(&mut self) {
        swap(&mut self.engine.vectors[self.y], &mut self.engine.spare);
    }
}
