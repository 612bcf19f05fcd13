//! Least squares with a preconditioner `M` from the right: the unknowns are `y`, and `x = x_0 + M y`.
//!
//! ```text
//!   round:  r = b - A x,   min over y of |A M y - r|,   x += M y
//! ```
//!
//! The method iterates on the operator `A M`; its residual is that of `x`, its gradient `M'A'r`. These norms are
//! not trusted. After a round a start of CGLS on `A` alone computes `b - A x` and `A'r` at the new `x`. Only if
//! these meet the limits, the solve ends with success. If they do not, another round begins from `x`, with a limit
//! of the gradient ten times smaller. Rounds end if one gains nothing.
//!
//! A penalty is a function of `x`. Inside a round CGNR asks for it as a function of `y` ([`Substituted`]). The
//! start that verifies is a start of CGNR with the penalty of `x`; its gradient is that of misfit and penalty
//! together. Regularizations of the library are handled as such a penalty here ([`Regularized`]).
//!
//! Source: Y. Saad, "Iterative methods for sparse linear systems", 2nd ed. 2003, 9.3.1 and 9.5; Å. Björck, "Numerical methods for
//! least squares problems", SIAM 1996, 7.5.1.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::direct::Direct;
use super::method::Method;
use super::regularise::{Regularization, Regularized, SharedPenalty, Substituted, lock};
use super::run::{Observer, Report, Stop};
use super::setup::Setup;
use super::stopping::{Stopping, rounded};
use crate::error::{Error, Result, same_length};
use crate::number::Real;
use crate::operator::{LinearOperator, LinearOperatorExt, SharedOperator};
use crate::vector::Vector;

/// A round that does not make the residual or the gradient half as large gains nothing.
const LEAST_GAIN: f64 = 0.5;
/// Factor of the tolerance of the gradient from round to round.
const TIGHTER: f64 = 0.1;

/// A method on `A M`, and the verification with `A`.
pub(super) struct Right<T: Real> {
    a: SharedOperator<T>,
    preconditioner: SharedOperator<T>,
    inner: Direct<T>,
    verifier: Direct<T>,
    /// A penalty, as one of `y`.
    penalty: Option<Arc<Mutex<Substituted<T>>>>,
    /// The bound of the penalty's norm, 0 without one.
    of_penalty: f64,
    setup: Setup<T>,
    residual: Vector<T>,
    y: Vector<T>,
    step: Vector<T>,
    /// Answer of the round before.
    before: Vector<T>,
}

/// Progress of a solve over its rounds.
struct Rounds {
    /// Last verified report, with the history of all rounds.
    report: Report,
    /// Limits of the residual, and of the gradient if a reduction of it was asked for.
    limits: [f64; 2],
    tolerance: f64,
}

impl<T: Real> Right<T> {
    /// Sets up a method that takes rectangles; `setup` has a preconditioner of the right shape.
    pub(super) fn new(a: &SharedOperator<T>, preconditioner: SharedOperator<T>, setup: Setup<T>) -> Result<Self> {
        let refuse =
            |name, reason: &str| Err(Error::Conflict { name, reason: format!("{}: {reason}", setup.method) });
        let corrects = setup.regularizations.iter().any(|regularization| !regularization.is_nothing());
        if setup.method.damp() > 0.0 || (corrects && setup.method != Method::Cgnr) {
            return Err(no_damping(setup.method));
        }
        if setup.columns > 1 {
            return refuse("columns", "one right-hand side at a time with a preconditioner");
        }
        if !preconditioner.has_adjoint() {
            return refuse("preconditioner", "it needs one that has an adjoint");
        }
        let device = a.device();
        let penalty = match setup.regularizations.first().filter(|_| corrects) {
            Some(regularization) => {
                let corrected = Regularized::new::<T>(device, regularization, a.cols())?;
                Some(Arc::new(Mutex::new(corrected)) as SharedPenalty<T>)
            }
            None => setup.penalty.clone(),
        };
        let plain = Setup { preconditioner: None, regularizations: Vec::new(), penalty, ..setup.clone() };
        check_memory(a, &*preconditioner, &plain)?;
        let vector = |len: usize| Vector::zeros(device, len);
        let product = a.clone().times(preconditioner.clone())?.shared();
        let verified = match plain.penalty {
            None => Setup { method: Method::Cgls { damp: 0.0 }, ..plain.clone() },
            Some(_) => plain.clone(),
        };
        let substituted = |penalty| Ok(Arc::new(Mutex::new(Substituted::new(penalty, &preconditioner)?)));
        let penalty = plain.penalty.as_ref().map(substituted).transpose()?;
        let of_penalty = plain.penalty.as_ref().map_or(0.0, |penalty| lock(penalty).norm_bound());
        let of_y = penalty.clone().map(|penalty| penalty as SharedPenalty<T>);
        let inner = Setup { penalty: of_y, ..plain }.completed(&*product)?;
        Ok(Self {
            inner: Direct::new(&product, inner)?,
            verifier: Direct::new(a, verified.completed(&**a)?)?,
            penalty,
            of_penalty,
            setup,
            residual: vector(a.rows())?,
            y: vector(a.cols())?,
            step: vector(a.cols())?,
            before: vector(a.cols())?,
            a: a.clone(),
            preconditioner,
        })
    }

    /// Takes other regularizations, which are checked.
    pub(super) fn set_regularizations(&mut self, regularizations: Vec<Regularization>) -> Result<()> {
        let setup = Setup { regularizations, ..self.setup.clone() };
        *self = Self::new(&self.a.clone(), self.preconditioner.clone(), setup)?;
        Ok(())
    }

    pub(super) fn setup(&self) -> &Setup<T> {
        &self.setup
    }

    pub(super) fn operator(&self) -> &SharedOperator<T> {
        &self.a
    }

    /// The norm of `A`, or an upper bound of it; 0 if it is not known.
    pub(super) fn operator_norm(&self) -> f64 {
        self.verifier.operator_norm()
    }

    /// Solves from the start guess in `x`, and leaves the answer there.
    pub(super) fn solve(
        &mut self,
        b: &Vector<T>,
        x: &mut Vector<T>,
        observer: &mut Observer<'_>,
    ) -> Result<Report> {
        same_length("right-hand side", self.a.rows(), b.len())?;
        same_length("start guess", self.a.cols(), x.len())?;
        let stopping = self.setup.stopping.clone();
        let mut report = self.verified(b, x)?;
        report.method = self.setup.method;
        let scale = if report.rhs_norm > 0.0 { report.rhs_norm } else { report.true_residual };
        let reduced = stopping.gradient_reduction * report.gradient.unwrap_or(0.0);
        let first = stopping.residual_reduction * report.true_residual;
        let limits = [(stopping.rtol * scale).max(stopping.atol).max(first), reduced];
        let mut rounds = Rounds { report, limits, tolerance: stopping.gradient_rtol };
        let mut ended = Some(rounds.report.stop).filter(|_| rounds.report.converged());
        while ended.is_none() {
            self.before.copy_from(x)?;
            ended = self.round(b, x, &mut rounds, observer)?;
        }
        rounds.report.stop = ended.unwrap_or(Stop::Stagnated);
        Ok(rounds.report)
    }

    /// One round; why the solve ends, if it is the last one.
    fn round(
        &mut self,
        b: &Vector<T>,
        x: &mut Vector<T>,
        rounds: &mut Rounds,
        observer: &mut Observer<'_>,
    ) -> Result<Option<Stop>> {
        let report = &mut rounds.report;
        let left = self.setup.stopping.max_iterations - report.iterations;
        if left == 0 {
            return Ok(Some(Stop::MaxIterations));
        }
        let time = self
            .setup
            .stopping
            .time_limit
            .map(|limit| limit.saturating_sub(Duration::from_secs_f64(report.times.solve)));
        if time.is_some_and(|time| time.is_zero()) {
            return Ok(Some(Stop::TimeLimit));
        }
        self.a.apply(x, &mut self.residual)?;
        self.residual.axpby(T::from_f64(1.0), b, T::from_f64(-1.0))?;
        self.y.fill(T::default())?;
        if let Some(penalty) = &self.penalty {
            lock(penalty).set_origin(x)?;
        }
        self.inner.set_stopping(Stopping {
            rtol: 0.0,
            atol: rounds.limits[0],
            residual_reduction: 0.0,
            gradient_rtol: rounds.tolerance,
            max_iterations: left,
            patience: self.setup.stopping.patience.filter(|_| report.iterations == 0),
            time_limit: time,
            ..self.setup.stopping.clone()
        });
        let round = self.inner.solve_one(&self.residual, &mut self.y, observer)?;
        let answer = report.iterations + round.answer_iteration;
        self.preconditioner.apply(&self.y, &mut self.step)?;
        x.axpby(T::from_f64(1.0), &self.step, T::from_f64(1.0))?;
        let mut check = self.verified(b, x)?;
        let [residual, gradient] = [[check.true_residual, report.true_residual], gradients(&check, report)];
        // The residual may grow beside a penalty. Without one, if it no longer falls, the gradient may.
        let worse = match self.penalty {
            Some(_) => !(residual[0].is_finite() && gradient[0].is_finite()),
            None => {
                !(residual[0] <= residual[1] || (residual[0] <= 1.001 * residual[1] && gradient[0] <= gradient[1]))
            }
        };
        report.join(round);
        if worse {
            x.copy_from(&self.before)?;
            // The answer is that of the round before.
            return Ok(Some(if report.converged() { Stop::Stagnated } else { report.stop }));
        }
        (report.true_residual, report.gradient) = (check.true_residual, check.gradient);
        report.answer_iteration = answer;
        report.times.verify += check.times.verify;
        if residual[0] <= rounds.limits[0] {
            check.stop = Stop::Converged;
        } else if gradient[0] <= rounds.limits[1] || self.is_rounding(x, &check)? {
            check.stop = Stop::LeastSquares;
        }
        if check.converged() {
            return Ok(Some(check.stop));
        }
        rounds.tolerance *= TIGHTER;
        // Residuals beside a penalty tell of a gain only as long as one of them is asked for.
        let by_residual = self.penalty.is_none() || (rounds.limits[0] > 0.0 && residual[1] > rounds.limits[0]);
        let telling = if by_residual { &[residual, gradient][..] } else { &[gradient] };
        let gained = telling.iter().any(|[new, old]| *new < LEAST_GAIN * old);
        Ok(match report.stop {
            Stop::Converged | Stop::LeastSquares | Stop::Stagnated if gained => None,
            Stop::Converged | Stop::LeastSquares => Some(Stop::Stagnated),
            stop => Some(stop),
        })
    }

    /// Report of a start with `A` from `x`, without an iteration.
    fn verified(&mut self, b: &Vector<T>, x: &mut Vector<T>) -> Result<Report> {
        let stopping = self.setup.stopping.clone();
        self.verifier.set_stopping(Stopping {
            max_iterations: 0,
            residual_reduction: 0.0,
            time_limit: None,
            ..stopping
        });
        self.verifier.solve_one(b, x, &mut |_| ControlFlow::Continue(()))
    }

    /// Tells if the gradient is as small as rounding lets it be: see [`Stopping::gradient_rtol`].
    fn is_rounding(&self, x: &Vector<T>, check: &Report) -> Result<bool> {
        let (norm, epsilon) = (libm::hypot(self.operator_norm(), self.of_penalty.sqrt()), T::EPSILON);
        let gradient = check.gradient.unwrap_or(f64::NAN);
        let size = rounded(norm * x.norm2()?, check.rhs_norm, check.true_residual);
        Ok(gradient <= 4.0 * epsilon * norm * size && gradient <= epsilon.sqrt() * norm * check.true_residual)
    }
}

/// The refusal of weights for the unknowns of a preconditioned problem.
pub(super) fn no_damping(method: Method) -> Error {
    let reason = format!(
        "{method}: the weight of x would be one of y = M^-1 x with a preconditioner; regularizations of cgnr stay those of x"
    );
    Error::Conflict { name: "damp", reason }
}

/// Checks the memory of the vectors of the rounds, beside both operators; that of both solvers is checked as they are made.
fn check_memory<T: Real>(
    a: &SharedOperator<T>,
    preconditioner: &dyn LinearOperator<T>,
    setup: &Setup<T>,
) -> Result<()> {
    let bytes = |len: usize| (len * T::PRECISION.bytes()) as u64;
    let of_penalty = setup.penalty.as_ref().map(|penalty| lock(penalty).bytes());
    let count = if of_penalty.is_some() { 3 + Substituted::<T>::VECTORS } else { 3 };
    let mut vectors = vec![("a vector of the rounds", bytes(a.cols())); count];
    vectors.push(("the residual of the rounds", bytes(a.rows())));
    let held = (**a).bytes() + preconditioner.bytes() + of_penalty.unwrap_or(0);
    a.device().check_memory(held, &vectors)
}

/// Gradients of two reports.
fn gradients(one: &Report, other: &Report) -> [f64; 2] {
    [one, other].map(|report| report.gradient.unwrap_or(f64::NAN))
}
