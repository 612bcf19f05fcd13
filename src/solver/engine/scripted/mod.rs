//! Runs the script of a method on one device: the vectors, the scalars, the launches.

mod blocks;
mod cgnr;
mod fused;
mod resident;

use std::mem::{swap, take};
use std::ops::Range;
use std::sync::Arc;

use crate::backend::linear::product::{SharedMatrix, Stored};
use crate::backend::script::{Basis, ScriptState, StepCall};
use crate::error::{Error, Result, same_length};
use crate::memory::Memory;
use crate::number::{Real, Sum};
use crate::operator::LinearOperator;
use crate::recurrence::{GRADIENT_LIMIT, GRADIENT_RATIO, REGISTERS, RESIDUAL_LIMIT, STATES, Scalar};
use crate::solver::engine::damping::Weighing;
use crate::solver::engine::operands::{DiagonalCopy, Operators, factors};
use crate::solver::engine::products::Products;
use crate::solver::engine::residence::Residence;
use crate::solver::regularise::{Correction, Objective, Penalised, Values};
use crate::solver::run::{Inputs, Look, Status, Workspace, no_bounds, no_corrections, no_residual};
use crate::solver::script::{
    Call, Damping, Draft, Launch, OfPenalty, Operand, Preconditioning, Residual, Script, Space, StepLimit,
    VectorId, X,
};
use crate::solver::stopping::Limits;
use crate::solver::weight::{ChosenWeight, Least, WeightRule};
use crate::state::HISTORY;
use crate::vector::Vector;
use cgnr::Regularised;

struct Engine<T: Real> {
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
    /// The next start is the first of a solve.
    first: bool,
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

/// Allocates what `script` needs to solve for as many right-hand sides at once as there are corrections.
pub(crate) fn boxed<T: Real>(
    operators: &Operators<'_, T>,
    corrections: Vec<Correction>,
    weight: Option<(WeightRule, Least)>,
    plan: Draft,
    mut script: Script,
    preconditioning: Preconditioning,
) -> Result<Box<dyn Workspace<T>>> {
    let (columns, terms) = (corrections.len(), script.terms.take());
    let parts = script.cgnr;
    let mut engine = Engine::new(operators, columns, plan, script, preconditioning)?;
    engine.regularised = parts.map(|parts| Regularised::new(parts, corrections.clone()));
    if let Some(terms) = terms {
        engine.objective = Some(Objective::new(terms, corrections, operators.a, operators.exponents[0])?);
    }
    engine.weighing = weight.map(|weight| Weighing::new(weight, operators.a.rows(), columns));
    Ok(Box::new(engine))
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
        let fuses_cgnr = script.cgnr.is_some_and(|parts| parts.fuses);
        let residence = match (fuses_cg, fuses_cgnr) {
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
            bases,
            behind: false,
            initial,
            objective: None,
            regularised: None,
            penalty: operators.penalty.map(Penalised::new),
            weighing: None,
            first: true,
            sums: plan.sums,
            state,
            slot: 0,
            seen: vec![0; ScriptState::words(columns)],
            limits: Vec::new(),
            fuses: fuses_cg || fuses_cgnr,
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

    /// Queues one launch.
    fn call(&mut self, inputs: &Inputs<'_, T>, call: &Call) -> Result<()> {
        let (run, operations) = (inputs.run, inputs.device.backend().script::<T>());
        if let Launch::Product { of, apart: Some(apart), .. } = &call.launch
            && self.apart[of.index()]
        {
            return self.product_apart(inputs, call, apart);
        }
        let step = self.step_call(call.block, call.launch.runs_program());
        match &call.launch {
            Launch::Scalars => operations.step_scalars(run, step, &mut self.state),
            Launch::Product { y, blend, .. } => {
                Written::new(self, y.index()).engine.product(inputs, step, &call.launch, *blend)
            }
            Launch::Update { space, pass, vectors } => {
                let n = self.length(*space);
                let held = self.vectors.get_disjoint_mut(vectors.map(VectorId::index)).map_err(|_| {
                    Error::Shape { what: "different vectors of a pass", expected: vectors.len(), found: 0 }
                })?;
                let vectors = held.map(Vector::memory_mut);
                operations.step_vectors(run, step, n, pass, vectors, &mut self.state)
            }
            Launch::Basis(of, call) => self.over_basis(inputs, step, (*of, *call)),
            Launch::Image(call) => self.over_image(inputs, step, *call),
            Launch::Pixels(call) => self.over_pixels(inputs, step, *call),
            Launch::Limit(call) => self.limit_step(inputs, step, *call),
            Launch::Gather(call) => Written::new(self, call.to.index()).engine.gather(inputs, *call),
            Launch::Penalty(call) => Written::new(self, call.out.index()).engine.ask_penalty(*call),
        }
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

    /// Asks the penalty, into the spare vector.
    fn ask_penalty(&mut self, OfPenalty { x, v, .. }: OfPenalty) -> Result<()> {
        let Self { penalty, vectors, spare, .. } = self;
        let Some(penalty) = penalty else { return same_length("penalties of a script", 1, 0) };
        penalty.ask(&vectors[x.index()], v.map(|v| &vectors[v.index()]), spare)
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

impl<T: Real> Workspace<T> for Engine<T> {
    fn exchange(&mut self, x: &mut Vector<T>) -> Result<()> {
        // The user gets the vector back that was handed in, even if the answer cannot be copied there.
        let settled = self.settle_answer();
        swap(x, &mut self.vectors[X.index()]);
        (self.behind, self.first) = (false, true);
        settled
    }

    fn answer(&mut self) -> &mut Vector<T> {
        let place = self.regularised.as_ref().map_or(X, Regularised::answer);
        &mut self.vectors[place.index()]
    }

    fn start(&mut self, inputs: &Inputs<'_, T>, limits: &[Limits], budget: &[usize]) -> Result<()> {
        self.finish(inputs)?;
        self.settle_answer()?;
        self.refresh_objective(limits)?;
        if let Some(diagonal) = &mut self.diagonal {
            diagonal.refresh(self.columns, &mut self.vectors)?;
        }
        let (columns, accumulation) = (self.columns, inputs.run.accumulation);
        let mut registers = vec![Sum::default(); 2 * columns * REGISTERS];
        for (at, file) in registers.chunks_mut(REGISTERS).enumerate() {
            let (c, limits) = (at % columns, &limits[at % columns]);
            let weights = self.own_scalars(c, limits.exponents);
            // A residual of 0 is no minimum if there are other terms: below 0 no residual is. CGNR has always ended there.
            let ends = self.is_misfit() || self.regularised.is_some() || limits.residual > 0.0;
            let residual = if ends { limits.residual } else { -1.0 };
            let limits =
                [(RESIDUAL_LIMIT, residual), (GRADIENT_LIMIT, limits.gradient), (GRADIENT_RATIO, limits.ratio)];
            for (scalar, value) in self.initial.iter().chain(&weights).chain(&limits) {
                file[usize::from(scalar.0)] = Sum::of(*value, accumulation);
            }
        }
        let mut status = vec![0; 2 * columns * STATES];
        // A basis has room for so many.
        let most = if self.weighing.is_some() { self.script.steps.len() } else { usize::MAX };
        self.limits = budget.iter().map(|b| (*b).min(most) as i32).chain([HISTORY as i32 - 1]).collect();
        status.extend(&self.limits);
        self.state.registers.write(&registers)?;
        self.state.status.write(&status)?;
        self.slot = 0;
        let Self { script, vectors, .. } = self;
        script.zeroed.iter().try_for_each(|v| vectors[v.index()].fill(T::default()))?;
        self.queue(inputs, |script| &script.start)
    }

    fn steps(&mut self, inputs: &Inputs<'_, T>, mut indices: Range<usize>) -> Result<()> {
        self.behind = true;
        if self.stays_resident(inputs) {
            let start = if self.resident.is_empty() { indices.start } else { self.resident.start };
            self.resident = start..indices.end;
            return self.reside(inputs, indices);
        }
        indices.try_for_each(|index| self.queue(inputs, |script| &script.steps[index % script.steps.len()]))
    }

    fn exact(&mut self, inputs: &Inputs<'_, T>, done: usize) -> Result<()> {
        if !self.resident.is_empty() {
            self.state.status.read(0, &mut self.seen)?;
            self.settle(inputs)?;
        }
        self.queue(inputs, |script| &script.exact[done % script.exact.len()])
    }

    fn look(&mut self, inputs: &Inputs<'_, T>, history: &mut [Sum]) -> Result<Look> {
        Memory::read_both((&self.state.status, &mut self.seen), (&self.state.history, history))?;
        if self.settle(inputs)? {
            Memory::read_both((&self.state.status, &mut self.seen), (&self.state.history, history))?;
        }
        let Self { seen, slot, columns, .. } = self;
        let count = *columns * STATES;
        let status = &seen[*slot as usize * count..][..count];
        let columns = status.chunks(STATES).map(|s| Status { code: s[0], iteration: s[1].max(0) as usize });
        let mut columns: Vec<Status> = columns.collect();
        if let Some(regularised) = &mut self.regularised {
            regularised.parity = columns.iter().map(|status| status.iteration).max().unwrap_or(0) % 2;
        }
        match &mut self.weighing {
            Some(weighing) if self.behind => {
                weighing.judge(&self.bases, inputs.run.accumulation, &mut columns, history)?;
            }
            Some(weighing) => weighing.settle(&mut columns),
            None => {}
        }
        Ok(Look { columns, abandoned: false })
    }

    fn stays_resident(&self, inputs: &Inputs<'_, T>) -> bool {
        self.residence.as_ref().is_some_and(|residence| {
            let residence = match residence {
                Resident::Listed(residence) => residence,
                Resident::Cg => return self.cg_stays_resident(inputs),
                Resident::Cgnr => return self.cgnr_stays_resident(inputs),
            };
            let stored: Vec<_> = residence.matrices.iter().map(SharedMatrix::read).collect();
            let matrices: Vec<&Stored<T>> = stored.iter().map(|stored| &**stored).collect();
            inputs.device.backend().script::<T>().script_stays_resident(inputs.run, &matrices, self.columns)
        })
    }

    fn residual_decides(&self) -> bool {
        // With damping or other terms the answer is not the one of the least residual.
        let is_misfit = self.is_misfit() && self.regularised.as_ref().is_none_or(Regularised::is_misfit);
        self.script.reference.is_none() && self.weighing.is_none() && is_misfit
    }

    fn set_reference(&mut self, reference: &Vector<T>) -> Result<()> {
        match self.script.reference {
            Some(v) => self.vectors[v.index()].copy_from(reference),
            None => Err(Error::Option { name: "reference", reason: "this method has no damping".into() }),
        }
    }

    fn set_corrections(&mut self, corrections: Vec<Correction>) -> Result<()> {
        match &mut self.objective {
            Some(objective) => objective.set_corrections(corrections),
            None if self.regularised.is_some() => self.set_weights(corrections),
            None => Err(no_corrections("this method")),
        }
    }

    fn set_bounds(&mut self, lower: &[T], upper: &[T]) -> Result<()> {
        let cols = self.length(Space::Cols);
        match &mut self.objective {
            Some(objective) => objective.set_bounds(lower, upper, cols),
            None => Err(no_bounds()),
        }
    }

    fn residual(&self) -> &Vector<T> {
        // Nothing overwrites it before the first iteration.
        let vector = self.script.first_product().map_or(X.index(), |(_, y)| y.index());
        &self.vectors[vector]
    }

    fn present_residual(&mut self, inputs: &Inputs<'_, T>) -> Result<&Vector<T>> {
        if let Some(regularised) = &self.regularised {
            return Ok(&self.vectors[regularised.residual().index()]);
        }
        let script = Arc::clone(&self.script);
        match (script.residual, script.first_product()) {
            (Residual::Held, Some((_, y))) => Ok(&self.vectors[y.index()]),
            (Residual::Afresh, Some((call, y))) => {
                self.call(inputs, call)?;
                Ok(&self.vectors[y.index()])
            }
            _ => Err(no_residual()),
        }
    }

    fn launches(&self) -> usize {
        let steps = &self.script.steps;
        let by_operator = |call: &Call| match call.launch {
            Launch::Product { of, .. } => self.products[of.index()].as_ref().map_or(0, Products::launches),
            _ => 0,
        };
        let own = |call: &Call| match call.launch {
            Launch::Product { of, ref apart, .. } => match apart {
                Some(apart) if self.apart[of.index()] => {
                    1 + usize::from(apart.has_program) + usize::from(apart.sums.is_some())
                }
                _ => 1,
            },
            Launch::Basis(_, call) => call.launches(),
            Launch::Limit(_) => StepLimit::LAUNCHES,
            _ => 1,
        };
        // Calls that a kernel of its own stands for are one launch.
        let of_step = |step: &Vec<Call>| {
            let (mut launches, mut covered) = (0, 0);
            for call in step {
                launches += by_operator(call);
                match call.fused.filter(|_| self.fuses && covered == 0) {
                    Some(fused) => (launches, covered) = (launches + 1, fused.calls()),
                    None if covered == 0 => launches += own(call),
                    None => {}
                }
                covered = usize::saturating_sub(covered, 1);
            }
            launches
        };
        steps.iter().map(of_step).sum::<usize>() / steps.len().max(1)
    }

    fn least_squares(&self) -> bool {
        self.script.least_squares
    }

    fn ends_by_host(&self) -> bool {
        self.weighing.is_some()
    }

    fn begin_probe(&mut self, values: Values) -> bool {
        self.weighing.as_mut().is_some_and(|weighing| weighing.begin_probe(values))
    }

    fn end_probe(&mut self, values: Values) {
        self.weighing.iter_mut().for_each(|weighing| weighing.end_probe(values));
    }

    fn chosen(&self, c: usize, exponents: [i32; 2]) -> Option<ChosenWeight> {
        self.weighing.as_ref().and_then(|weighing| weighing.chosen(c, exponents))
    }
}

#[cfg(test)]
mod tests {
    use crate::device::Device;
    use crate::device::tests::with_largest_allocation;
    use crate::matrix::Matrix;
    use crate::number::Precision;
    use crate::solver::{Method, Setup, Solver, Stopping};
    use crate::sparse::{Format, gallery};
    use crate::vector::Vector;

    /// Directions that one buffer cannot hold: the same bits from several, on the host and every device.
    #[test]
    fn directions_lie_in_several_buffers() {
        let side = 40;
        let a = gallery::poisson_2d::<f64>(side, -0.3).expect("a matrix");
        let n = side * side;
        for columns in [1, 3] {
            let solve = |device: &Device| {
                let matrix = Matrix::new(device, &a, Format::Csr).expect("it fits");
                let setup = Setup::new(Method::Gmres { restart: 9 }, Stopping::after(25)).with_columns(columns);
                let mut solver = Solver::with(&matrix, setup).expect("it fits");
                let b: Vec<f64> = (0..n * columns).map(|i| (i as f64).sin()).collect();
                let b = Vector::from_slice(device, &b).expect("it fits");
                let mut x = Vector::zeros(device, n * columns).expect("it fits");
                let reports = solver.solve_many(&b, &mut x).expect("a solve");
                let history: Vec<Vec<f64>> = reports.into_iter().map(|report| report.history).collect();
                (x.to_vec().expect("an answer"), history)
            };
            let wanted = solve(&Device::host());
            assert!(wanted.1.iter().all(|history| history[25] < 0.5 * history[0]), "{:?}", wanted.1);
            for per_buffer in [1, 2, 4, 8] {
                for device in Device::select_all("").expect("the host at least") {
                    if device.require(Precision::Double).is_err() {
                        continue;
                    }
                    let bytes = (per_buffer * n * columns * size_of::<f64>()).max(a.values().len() * 8);
                    let device = with_largest_allocation(device, bytes as u64);
                    assert!(solve(&device) == wanted, "{}: {per_buffer} in a buffer", device.info().name);
                }
            }
        }
    }
}
