//! The part of a solve that every method shares. It sets limits as soon as the first norms are known, reads status
//! and history now and then, and keeps the best answer.

use std::cmp::Ordering;
use std::ops::{ControlFlow, Range};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::driver::{self, Observer};
use super::iteration::{Iteration, Outcome};
use super::stop::Stop;
use crate::backend::script::MOST_VECTORS;
use crate::error::Result;
use crate::number::{Real, Sum};
use crate::operator::{LinearOperator, SharedOperator};
use crate::solver::engine::{Engine, Inputs, Status};
use crate::solver::regularise::{Regularization, Values};
use crate::solver::stopping::{Limits, Stopping};
use crate::solver::weight::ChosenWeight;
use crate::sparse::gallery::Random;
use crate::state::HISTORY;
use crate::vector::Vector;

/// Right-hand sides, and limits for each of them, by which `stopping` ends their solve.
#[derive(Clone, Copy)]
pub(crate) struct Task<'s, T: Real> {
    pub(crate) stopping: &'s Stopping,
    pub(crate) limits: &'s [Limits],
    pub(crate) b: &'s Vector<T>,
}

/// Results of a solve, a number for each right-hand side.
pub(crate) struct Ended {
    pub(crate) outcomes: Vec<Outcome>,
    /// Limits in force, with those that waited for the first norms.
    pub(crate) limits: Vec<Limits>,
    /// Seconds of the iterations.
    pub(crate) seconds: f64,
}

/// A method that is set up, with what a solve needs beside the method's own vectors.
pub(crate) struct Runner<T: Real> {
    engine: Engine<T>,
    best: Vector<T>,
    /// Answers that a rule may return to.
    held: Option<Vector<T>>,
    /// Squared norms of the last iterations, read at the last look.
    history: Vec<Sum>,
    /// Tells if each iterate of the method has a smaller error than the one before.
    lowers_error: bool,
}

impl<T: Real> Runner<T> {
    pub(crate) fn new(
        operator: &SharedOperator<T>,
        columns: usize,
        engine: Engine<T>,
        (holds, lowers_error): (bool, bool),
    ) -> Result<Self> {
        let vector = || Vector::zeros(operator.device(), operator.cols() * columns);
        let (best, held) = (vector()?, if holds { Some(vector()?) } else { None });
        let history = vec![Sum::default(); 2 * HISTORY * columns];
        Ok(Self { engine, best, held, history, lowers_error })
    }

    /// Solves from the start guess in `x` and leaves the answer there.
    pub(crate) fn solve(
        &mut self,
        task: &Task<'_, T>,
        x: &mut Vector<T>,
        observer: &mut Observer<'_>,
    ) -> Result<Ended> {
        self.engine.begin();
        self.run(task, x, observer)
    }

    /// [`Runner::solve`] that takes the start guess as it is.
    fn run(&mut self, task: &Task<'_, T>, x: &mut Vector<T>, observer: &mut Observer<'_>) -> Result<Ended> {
        let Task { stopping, limits, b } = *task;
        let device = x.device().clone();
        let inputs = Inputs { device: &device, run: device.run::<T>(), b };
        // The method works on the answer where it lies.
        self.engine.exchange(x)?;
        let mut solve = SolveRun { on: self, inputs, limits: limits.to_vec() };
        // An observer or an operator of the user may panic: the vector is handed back first.
        let run = AssertUnwindSafe(|| driver::run(&mut solve, stopping, observer));
        let result = catch_unwind(run);
        let limits = solve.limits;
        let returned = self.engine.exchange(x);
        let (outcomes, seconds) = result.unwrap_or_else(|panic| resume_unwind(panic))?;
        returned.map(|()| Ended { outcomes, limits, seconds })
    }

    /// Computes what the answer in `x` leaves, without an iteration: an outcome for each of the limits, which a solve has left.
    pub(crate) fn verify(&mut self, task: &Task<'_, T>, x: &mut Vector<T>) -> Result<Vec<Outcome>> {
        let only = Stopping { max_iterations: 0, time_limit: None, ..task.stopping.clone() };
        let only = Task { stopping: &only, ..*task };
        let Ended { mut outcomes, .. } = self.run(&only, x, &mut |_| ControlFlow::Continue(()))?;
        if self.least_squares() {
            let norms = x.column_norms(outcomes.len())?;
            for ((outcome, limits), x) in outcomes.iter_mut().zip(task.limits).zip(norms) {
                let norms = limits.in_units_of_solve([outcome.true_residual, outcome.gradient]);
                let is_rounding = limits.is_rounding(norms.map(|norm| norm * norm), x.to_f64());
                if outcome.stop == Stop::MaxIterations && is_rounding {
                    outcome.stop = Stop::LeastSquares;
                }
            }
        }
        Ok(outcomes)
    }

    /// Finds the singular values of `operator` if the method wants to know them: by a solve for random signs, the same in every column.
    /// Allocates two vectors then.
    pub(crate) fn probe(&mut self, operator: &SharedOperator<T>, columns: usize) -> Result<()> {
        let values = Values::of(&**operator);
        if !self.engine.begin_probe(values) {
            return Ok(());
        }
        let device = operator.device();
        let mut random = Random::new(PROBE);
        let mut sign = || T::from_f64(if random.next() >> 63 == 0 { 1.0 } else { -1.0 });
        let b: Vec<T> = (0..operator.rows()).flat_map(|_| std::iter::repeat_n(sign(), columns)).collect();
        let b = Vector::from_slice(device, &b)?;
        let mut x = Vector::zeros(device, operator.cols() * columns)?;
        let stopping = Stopping::after(MOST_VECTORS);
        let limits = vec![Limits::default(); columns];
        let task = Task { stopping: &stopping, limits: &limits, b: &b };
        self.solve(&task, &mut x, &mut |_| ControlFlow::Continue(()))?;
        self.engine.end_probe(values);
        Ok(())
    }

    pub(crate) fn set_reference(&mut self, reference: &Vector<T>) -> Result<()> {
        self.engine.set_reference(reference)
    }

    pub(crate) fn set_regularizations(&mut self, regularizations: Vec<Regularization>) -> Result<()> {
        self.engine.set_regularizations(regularizations)
    }

    pub(crate) fn set_bounds(&mut self, lower: &[T], upper: &[T]) -> Result<()> {
        self.engine.set_bounds(lower, upper)
    }

    /// `b - A x` of the last start.
    pub(crate) fn residual(&self) -> &Vector<T> {
        self.engine.residual()
    }

    /// Launches of one iteration on a device.
    pub(crate) fn launches(&self) -> usize {
        self.engine.launches()
    }

    /// The weight that the last solve of column `c` chose, in the units of the system that was given.
    pub(crate) fn chosen(&self, c: usize, limits: &Limits) -> Option<ChosenWeight> {
        self.engine.chosen(c, limits.exponents)
    }

    /// Tells if the second number of the history is the norm of a gradient.
    pub(crate) fn least_squares(&self) -> bool {
        self.engine.least_squares()
    }
}

/// Seed of the random signs.
const PROBE: u64 = 11;

/// A solve under way.
struct SolveRun<'s, T: Real> {
    on: &'s mut Runner<T>,
    inputs: Inputs<'s, T>,
    limits: Vec<Limits>,
}

impl<T: Real> SolveRun<'_, T> {
    fn start_once(&mut self, budget: &[usize]) -> Result<()> {
        let Self { on, inputs, limits, .. } = self;
        inputs.device.backend().queue(|| on.engine.start(inputs, limits, budget))
    }
}

impl<T: Real> Iteration for SolveRun<'_, T> {
    fn columns(&self) -> usize {
        self.limits.len()
    }

    fn start(&mut self, budget: &[usize]) -> Result<()> {
        self.start_once(budget)?;
        if self.limits.iter().any(Limits::waits) {
            // The first norms set the limits that depend on them; the start is repeated with those in force.
            self.status()?;
            for c in 0..self.limits.len() {
                let first = self.norms(c, 0);
                self.limits[c].set_first(first);
            }
            self.start_once(budget)?;
        }
        Ok(())
    }

    fn steps(&mut self, indices: Range<usize>) -> Result<()> {
        let Self { on, inputs, .. } = self;
        inputs.device.backend().queue(|| on.engine.steps(inputs, indices))
    }

    fn exact(&mut self, done: usize) -> Result<()> {
        let Self { on, inputs, .. } = self;
        inputs.device.backend().queue(|| on.engine.exact(inputs, done))
    }

    fn status(&mut self) -> Result<Vec<Status>> {
        let Runner { engine, history, .. } = &mut *self.on;
        engine.look(&self.inputs, history)
    }

    fn stops_at_once(&self) -> bool {
        self.on.engine.stays_resident(&self.inputs)
    }

    fn ends_by_host(&self) -> bool {
        self.on.engine.ends_by_host()
    }

    fn norms(&self, c: usize, k: usize) -> [f64; 2] {
        let at = 2 * ((k % HISTORY) * self.limits.len() + c);
        [0, 1].map(|which| self.on.history[at + which].value(self.inputs.run.accumulation))
    }

    fn excess(&self, c: usize, norms: [f64; 2]) -> f64 {
        self.limits[c].excess(norms, self.on.least_squares())
    }

    fn keep(&mut self, columns: &[usize]) -> Result<()> {
        let Runner { engine, best, .. } = &mut *self.on;
        copy_columns(self.limits.len(), columns, engine.answer(), best)
    }

    fn restore(&mut self, columns: &[usize]) -> Result<()> {
        let Runner { engine, best, .. } = &mut *self.on;
        copy_columns(self.limits.len(), columns, best, engine.answer())
    }

    fn hold(&mut self, columns: &[usize]) -> Result<()> {
        let Runner { engine, held, .. } = &mut *self.on;
        match held {
            Some(held) => copy_columns(self.limits.len(), columns, engine.answer(), held),
            None => Ok(()),
        }
    }

    fn take_held(&mut self, columns: &[usize]) -> Result<()> {
        let Runner { engine, held, .. } = &mut *self.on;
        match held {
            Some(held) => copy_columns(self.limits.len(), columns, held, engine.answer()),
            None => Ok(()),
        }
    }

    fn residuals(&mut self) -> Result<Vec<f64>> {
        let residuals = self.on.engine.present_residual(&self.inputs)?.to_vec()?;
        Ok(residuals.into_iter().map(Real::to_f64).collect())
    }

    fn rhs(&self, c: usize) -> f64 {
        self.limits[c].rhs
    }

    fn residual_decides(&self) -> bool {
        self.on.engine.residual_decides()
    }

    fn lowers_error(&self) -> bool {
        self.on.lowers_error
    }

    fn compare(&self, norms: [f64; 2], others: [f64; 2]) -> Ordering {
        Limits::compare::<T>(norms, others, self.on.least_squares())
    }

    fn is_rounding(&mut self, c: usize, norms: [f64; 2]) -> Result<bool> {
        if !self.on.least_squares() {
            return Ok(false);
        }
        let x = self.on.engine.answer().column_norms(self.limits.len())?;
        Ok(self.limits[c].is_rounding(norms, x[c].to_f64()))
    }

    fn in_given_units(&self, c: usize, norms: [f64; 2]) -> [f64; 2] {
        self.limits[c].in_given_units(norms)
    }

    fn build_seconds(&self) -> f64 {
        self.inputs.device.programs().seconds
    }
}

/// Copies some of the `count` columns of one interleaved vector into another.
fn copy_columns<T: Real>(
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
    // Not all of them: a few times in a solve, or after an iteration for a rule that tells columns apart. The host does it.
    let (from, mut to) = (source.to_vec()?, target.to_vec()?);
    for (from, to) in from.chunks_exact(count).zip(to.chunks_exact_mut(count)) {
        for c in columns {
            to[*c] = from[*c];
        }
    }
    target.write(&to)
}
