//! The report of a solve.

use std::fmt::{Display, Formatter, Result as FmtResult};

use super::history::join as join_histories;
use super::iteration::Outcome;
use super::stop::Stop;
use crate::device_info::BackendKind;
use crate::number::{Accumulation, Precision, Real};
use crate::operator::LinearOperator;
use crate::solver::method::Method;
use crate::solver::stopping::RuleCurve;
use crate::solver::weight::ChosenWeight;
use crate::sparse::Format;

/// Seconds spent, by phase.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Times {
    /// Building programs on first use.
    pub compile: f64,
    /// Iterating.
    pub solve: f64,
    /// Norms and scaling before the iterations, true residuals, units of the answer: the rest of the call.
    pub verify: f64,
}

/// The outcome of a solve: how good the answer is, how it was reached, on what.
///
/// ```
/// use residuum::sparse::gallery;
/// use residuum::{Device, Format, Matrix, Method, Solver, Stop, Stopping, Vector};
///
/// let device = Device::best()?;
/// let matrix = Matrix::new(&device, &gallery::poisson_2d::<f64>(20, 0.0)?, Format::Auto)?;
/// let (b, mut x) = (Vector::filled(&device, 400, 1.0)?, Vector::zeros(&device, 400)?);
/// let report = Solver::new(&matrix, Method::Cg, Stopping::for_precision::<f64>())?.solve(&b, &mut x)?;
/// println!("{report}"); // all of it in words
/// assert_eq!(report.stop, Stop::Converged);
/// assert!(report.true_residual <= 1e-8 * report.rhs_norm && report.iterations < 100);
/// # Ok::<(), residuum::Error>(())
/// ```
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Debug)]
#[must_use]
#[non_exhaustive]
pub struct Report {
    /// The method's name.
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::text::as_text"))]
    pub method: Method,
    /// Why it stopped.
    pub stop: Stop,
    /// Iterations done. Where the solve failed, the answer may be that of an earlier one, with a smaller residual. Where a rule has ended it
    /// ([`Stop::Semiconverged`], [`Stop::Regularised`]), those of the answer; some more were done for the rule.
    pub iterations: usize,
    /// Number of the iteration whose iterate is the answer; 0 for the start guess. Less than [`Report::iterations`] if later iterates were worse.
    pub answer_iteration: usize,
    /// `|r|` of the recurrence when it stopped.
    pub residual: f64,
    /// `|b - A x|` of the answer that is returned, computed afresh.
    pub true_residual: f64,
    /// `|b|`.
    pub rhs_norm: f64,
    /// The norm of the part of `b` that lies in the null space, and was left out, if a [`NullSpace`](crate::NullSpace) was given.
    pub projected: Option<f64>,
    /// `|s|`, the norm of the objective's gradient at the answer, for least squares.
    pub gradient: Option<f64>,
    /// `max_i |b - A x|_i / (|A| |x| + |b|)_i`, the backward error of the worst row, if the host has computed it: `x` solves a system whose
    /// entries differ from those given by at most this part of themselves.
    pub backward_error: Option<f64>,
    /// The weight of damping, for a method that chooses it.
    pub weight: Option<ChosenWeight>,
    /// The rule that might end the solve, and what it looked at.
    pub rule: Option<RuleCurve>,
    /// `|r|` of the recurrence before each iteration, and at the end. Of more than 65 536 iterations, before each
    /// [`history_every`](Self::history_every)th.
    pub history: Vec<f64>,
    /// `|s|` likewise, for least squares.
    pub gradient_history: Vec<f64>,
    /// Iterations between two entries of the histories, a power of two: entry `k` is of iteration `k history_every`, the last one of the last
    /// iteration.
    pub history_every: usize,
    /// Number of times that the recurrence was started over from the true residual.
    pub restarts: usize,
    /// Kernel launches of one iteration (0 on the host).
    pub launches_per_iteration: usize,
    /// Seconds by phase.
    pub times: Times,
    /// The device's name.
    pub device: String,
    /// `opencl` or `host`.
    pub backend: BackendKind,
    /// Precision of vectors and matrix.
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::text::as_text"))]
    pub precision: Precision,
    /// Accumulation of sums.
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::text::as_text"))]
    pub accumulation: Accumulation,
    /// The matrix format; [`Format::OnTheFly`] for other operators.
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::text::as_text"))]
    pub format: Format,
    /// Work-group size, where it comes from (`default`, `user`), and what measured values are in force.
    pub tuning: String,
}

impl Report {
    /// Report of one right-hand side, from what the driver found.
    pub(crate) fn new<T: Real>(
        method: Method,
        operator: &dyn LinearOperator<T>,
        launches: usize,
        outcome: Outcome,
        rhs_norm: f64,
        times: Times,
        least_squares: bool,
    ) -> Self {
        let device = operator.device();
        let of_gradient = |h: &[f64; 2]| h[1];
        Self {
            method,
            stop: outcome.stop,
            iterations: outcome.iterations,
            answer_iteration: outcome.answer,
            residual: outcome.residual,
            true_residual: outcome.true_residual,
            rhs_norm,
            projected: None,
            backward_error: None,
            weight: None,
            rule: outcome.rule,
            gradient: least_squares.then_some(outcome.gradient),
            history: outcome.history.iter().map(|h| h[0]).collect(),
            gradient_history: outcome.history.iter().filter(|_| least_squares).map(of_gradient).collect(),
            history_every: outcome.history_every,
            restarts: outcome.restarts,
            launches_per_iteration: device.backend().context().map_or(0, |_| launches),
            times,
            device: device.info().name.clone(),
            backend: device.backend_kind(),
            precision: T::PRECISION,
            accumulation: device.accumulation(T::PRECISION),
            format: operator.stored_format(),
            tuning: device.tuning().in_force(T::PRECISION, operator.rows()),
        }
    }

    /// Tells if the answer meets a tolerance that was asked for, or the rule that it was to be chosen by.
    pub fn converged(&self) -> bool {
        matches!(
            self.stop,
            Stop::Converged | Stop::LeastSquares | Stop::Regularised | Stop::Semiconverged | Stop::Rounded
        )
    }

    /// Words for the iterate that is the answer, unless it is plainly the last one.
    pub fn which_answer(&self) -> Option<String> {
        let cut_short = matches!(self.stop, Stop::Cancelled | Stop::TimeLimit);
        match (self.answer_iteration, self.iterations) {
            (answer, done) if answer == done => {
                cut_short.then(|| format!("the answer is the iterate of iteration {done}, the last one"))
            }
            (0, _) => Some("the answer is the start guess: no iterate had a smaller residual".into()),
            (answer, _) => {
                Some(format!("the answer is the iterate of iteration {answer}, which had the smaller residual"))
            }
        }
    }

    /// Adds what a solve that went on did: iterations, histories, time. The answer, its norms and its iteration are for the caller to tell.
    pub(crate) fn join(&mut self, next: Self) {
        // A history begins with the norms of its start, which the verification or the last solve has as well.
        let goes_on = self.iterations > 0;
        if goes_on {
            let of = |report: &Self| [report.history_every, report.iterations];
            let (before, added) = (of(self), of(&next));
            join_histories(&mut self.gradient_history, before, &next.gradient_history, added);
            self.history_every = join_histories(&mut self.history, before, &next.history, added);
        } else {
            self.history = next.history;
            self.gradient_history = next.gradient_history;
            self.history_every = next.history_every;
        }
        self.restarts += next.restarts + usize::from(goes_on);
        self.iterations += next.iterations;
        (self.residual, self.stop) = (next.residual, next.stop);
        self.launches_per_iteration = next.launches_per_iteration;
        self.times.compile += next.times.compile;
        self.times.solve += next.times.solve;
        self.times.verify += next.times.verify;
    }

    /// Result of the rule that might end the solve, and which iterate is the answer; none without a rule.
    pub fn rule_in_words(&self) -> Option<String> {
        let rule = self.rule.as_ref()?;
        let answer = match (self.stop, rule.best == self.iterations) {
            (Stop::Semiconverged, _) | (_, true) => "the answer is that one".into(),
            _ => format!("the answer is iteration {}, since the rule saw no end by then", self.iterations),
        };
        Some(format!("{rule}; {answer}"))
    }

    /// Iteration of each entry of [`history`](Self::history).
    pub fn history_iterations(&self) -> impl Iterator<Item = usize> {
        let (every, count, last) = (self.history_every, self.history.len(), self.iterations_of_history());
        (0..count).map(move |k| if k + 1 == count { last } else { k * every })
    }

    /// Iteration of the last entry of the histories: a rule may have returned to an earlier one than that.
    fn iterations_of_history(&self) -> usize {
        match self.history_every {
            1 => self.history.len().saturating_sub(1),
            _ => self.iterations,
        }
    }

    /// `|b - A x| / |b|` of the answer, or the true residual itself if `b` is 0.
    pub fn relative_residual(&self) -> f64 {
        if self.rhs_norm > 0.0 { self.true_residual / self.rhs_norm } else { self.true_residual }
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        write!(
            f,
            "{}: {} after {} iterations, |b - Ax| = {:.3e} ({:.3e} relative) on {} ({}, sums in {}, {}, {})",
            self.method,
            self.stop,
            self.iterations,
            self.true_residual,
            self.relative_residual(),
            self.device,
            self.precision,
            self.accumulation,
            self.format,
            self.tuning,
        )?;
        if let Some(words) = self.which_answer() {
            write!(f, "; {words}")?;
        }
        if let Some(weight) = &self.weight {
            write!(f, "; {weight}")?;
        }
        if let Some(rule) = self.rule_in_words() {
            write!(f, "; {rule}")?;
        }
        match self.projected {
            Some(part) => write!(f, "; {part:.3e} of the right-hand side lay in the null space and was left out"),
            None => Ok(()),
        }
    }
}
