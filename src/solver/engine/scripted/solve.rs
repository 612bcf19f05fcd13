//! A solve under way: starts, iterations and looks (see [`solver`](crate::solver)), as the loop asks for them.

use std::mem::{swap, take};
use std::ops::Range;
use std::sync::Arc;

use super::{Engine, Resident};
use crate::backend::linear::product::{SharedMatrix, Stored};
use crate::error::{Error, Result};
use crate::memory::Memory;
use crate::number::{Real, Sum};
use crate::recurrence::{GRADIENT_LIMIT, GRADIENT_RATIO, REGISTERS, RESIDUAL_LIMIT, STATES};
use crate::solver::engine::inputs::{Inputs, Status};
use crate::solver::engine::products::Products;
use crate::solver::engine::regularised::Regularised;
use crate::solver::regularise::{Regularization, Values, no_bounds, no_regularizations};
use crate::solver::script::{Call, Launch, Residual, Space, X};
use crate::solver::stopping::Limits;
use crate::solver::weight::ChosenWeight;
use crate::state::HISTORY;
use crate::vector::Vector;

impl<T: Real> Engine<T> {
    /// Swaps `x` with the vector that holds the answer: before the first launch of a solve, and after the last.
    pub(crate) fn exchange(&mut self, x: &mut Vector<T>) -> Result<()> {
        // The user gets the vector back that was handed in, even if the answer cannot be copied there.
        let settled = self.settle_answer();
        swap(x, &mut self.vectors[X.index()]);
        (self.behind, self.first) = (false, true);
        settled
    }

    /// Lets the next start do what a solve begins with.
    pub(crate) fn begin(&mut self) {
        self.begins = true;
    }

    /// The present answer.
    pub(crate) fn answer(&mut self) -> &mut Vector<T> {
        let place = self.regularised.as_ref().map_or(X, Regularised::answer);
        &mut self.vectors[place.index()]
    }

    /// Queues a start from the present answer: the true residual, and the stopping test of iteration 0.
    pub(crate) fn start(&mut self, inputs: &Inputs<'_, T>, limits: &[Limits], budget: &[usize]) -> Result<()> {
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
        if take(&mut self.begins) {
            self.queue(inputs, |script| &script.begin)?;
        }
        self.queue(inputs, |script| &script.start)
    }

    /// Queues iterations, counted from the last start, each with the stopping test after it.
    pub(crate) fn steps(&mut self, inputs: &Inputs<'_, T>, mut indices: Range<usize>) -> Result<()> {
        self.behind = true;
        if self.stays_resident(inputs) {
            let start = if self.resident.is_empty() { indices.start } else { self.resident.start };
            self.resident = start..indices.end;
            return self.reside(inputs, indices);
        }
        indices.try_for_each(|index| self.queue(inputs, |script| &script.steps[index % script.steps.len()]))
    }

    /// Queues a computation of the residual afresh after `done` iterations, and another stopping test. The driver asks
    /// only methods that carry a residual.
    pub(crate) fn exact(&mut self, inputs: &Inputs<'_, T>, done: usize) -> Result<()> {
        if !self.resident.is_empty() {
            self.state.status.read(0, &mut self.seen)?;
            self.settle(inputs)?;
        }
        self.queue(inputs, |script| &script.exact[done % script.exact.len()])
    }

    /// Waits, and reads the status of every column and the history.
    pub(crate) fn look(&mut self, inputs: &Inputs<'_, T>, history: &mut [Sum]) -> Result<Vec<Status>> {
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
        Ok(columns)
    }

    /// Tells if many iterations are one launch.
    pub(crate) fn stays_resident(&self, inputs: &Inputs<'_, T>) -> bool {
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

    /// Tells if an answer with a larger residual than an earlier one is a worse one.
    pub(crate) fn residual_decides(&self) -> bool {
        // With damping or other terms, or if counts are explained, the answer is not the one of the least residual.
        let likelihood = self.objective.as_ref().is_some_and(|objective| objective.terms.likelihood);
        let is_misfit =
            !likelihood && self.is_misfit() && self.regularised.as_ref().is_none_or(Regularised::is_misfit);
        self.script.reference.is_none() && self.weighing.is_none() && is_misfit
    }

    /// Sets the point that damping pulls the answer to.
    pub(crate) fn set_reference(&mut self, reference: &Vector<T>) -> Result<()> {
        match self.script.reference {
            Some(v) => self.vectors[v.index()].copy_from(reference),
            None => Err(Error::Conflict { name: "reference", reason: "this method has no damping".into() }),
        }
    }

    /// Sets the regularization of every column.
    pub(crate) fn set_regularizations(&mut self, regularizations: Vec<Regularization>) -> Result<()> {
        match &mut self.objective {
            Some(objective) => objective.set_regularizations(regularizations),
            None if self.regularised.is_some() => self.set_weights(regularizations),
            None => Err(no_regularizations("this method")),
        }
    }

    /// Sets the least and the greatest value of each unknown, in units of the system that was given.
    pub(crate) fn set_bounds(&mut self, lower: &[T], upper: &[T]) -> Result<()> {
        let cols = self.length(Space::Cols);
        match &mut self.objective {
            Some(objective) => objective.set_bounds(lower, upper, cols),
            None => Err(no_bounds()),
        }
    }

    /// `b - A x` of the last start.
    pub(crate) fn residual(&self) -> &Vector<T> {
        // Nothing overwrites it before the first iteration.
        let vector = self.script.first_product().map_or(X.index(), |(_, y)| y.index());
        &self.vectors[vector]
    }

    /// `b - A x` of the present answer, between two iterations. For methods that a rule about residuals may end.
    pub(crate) fn present_residual(&mut self, inputs: &Inputs<'_, T>) -> Result<&Vector<T>> {
        if let Some(regularised) = &self.regularised {
            return Ok(&self.vectors[regularised.residual(self.residence.is_some()).index()]);
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

    /// Launches of one iteration on a device, those of operators that are no matrix included.
    pub(crate) fn launches(&self) -> usize {
        let steps = &self.script.steps;
        let by_operator = |call: &Call| match call.launch {
            Launch::Product { of, .. } => self.products[of.index()].as_ref().map_or(0, Products::launches),
            _ => 0,
        };
        let own = |call: &Call| match call.launch {
            _ if self.result_of_operator(call).is_some() => 0,
            Launch::Product { of, ref apart, .. } => match apart {
                Some(apart) if self.apart[of.index()] => {
                    1 + usize::from(apart.has_program) + usize::from(apart.sums.is_some())
                }
                _ => 1,
            },
            Launch::Basis(_, call) => call.launches(),
            Launch::Alone(call) => call.launches(),
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

    /// Tells if the second number of the history is the norm of a gradient.
    pub(crate) fn least_squares(&self) -> bool {
        self.script.least_squares
    }

    /// Tells if the host finds out at a look that a solve has ended, so that iterations queued beyond the end are done for nothing.
    pub(crate) fn ends_by_host(&self) -> bool {
        self.weighing.is_some()
    }

    /// Tells if the method wants to know the singular values of an operator with these values; then the next solve finds them.
    pub(crate) fn begin_probe(&mut self, values: Values) -> bool {
        self.weighing.as_mut().is_some_and(|weighing| weighing.begin_probe(values))
    }

    /// Keeps the singular values that the last solve has found.
    pub(crate) fn end_probe(&mut self, values: Values) {
        self.weighing.iter_mut().for_each(|weighing| weighing.end_probe(values));
    }

    /// The weight that was chosen in the last solve of column `c`, whose system was multiplied by 2 to these powers.
    pub(crate) fn chosen(&self, c: usize, exponents: [i32; 2]) -> Option<ChosenWeight> {
        self.weighing.as_ref().and_then(|weighing| weighing.chosen(c, exponents))
    }
}

/// The refusal of a rule that looks at residuals of iterates.
fn no_residual() -> Error {
    Error::Conflict { name: "rule", reason: "this method has no residual of its iterates".into() }
}

#[cfg(test)]
mod tests {
    use crate::columns::Columns;
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
                let b = Vector::from_slice(device, &b).and_then(|b| Columns::from_vector(b, columns));
                let b = b.expect("it fits");
                let mut x = Columns::zeros(device, n, columns).expect("it fits");
                let reports = solver.solve_many(&b, &mut x).expect("a solve");
                let history: Vec<Vec<f64>> = reports.into_iter().map(|report| report.history).collect();
                (x.to_vecs().expect("an answer"), history)
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
