//! Solves of a system with rows and columns scaled. Results are reported for the system that was given.
//!
//! ```text
//!   round:  r = b - A x,   (L A R) y = L r,   x += R y
//! ```
//!
//! `L` and `R` are powers of two ([`Csr::equilibration`]), so scaling rounds nothing. The host computes the
//! residual of the given system in `f64`; only if it is small enough, the rounds end with success. Damping weighs
//! the unknowns of the given system: `min |A x - b|² + d² |x|²` is solved as `min |[A; d I] x - [b; 0]|²`, and the
//! columns of `[A; d I]` are scaled.
//!
//! Source: R. D. Skeel, "Iterative refinement implies numerical stability for Gaussian elimination", Math. Comp. 35, 1980 (rounds make the
//! backward error of each row small); N. J. Higham, "Accuracy and stability of numerical algorithms", 2nd ed. 2002, 7.3 (scaling), 12.

use std::time::Instant;

use super::chain::{Attempt, FallbackSolve, try_chain};
use super::verdict::Residual;
use crate::device::Device;
use crate::error::{Result, same_length};
use crate::magnitude;
use crate::matrix::Matrix;
use crate::number::{Real, per_number};
use crate::precond::Preconditioner;
use crate::solver::{Observer, Report, Setup, Solver, Stop};
use crate::sparse::{Csr, Format, Partition};
use crate::vector::Vector;

/// A round that makes neither the residual nor the backward error half as large gains nothing.
const LEAST_GAIN: f64 = 0.5;

/// Input of [`solve_scaled_with_fallbacks`] on the host: matrix, right-hand side, format for the device, and a
/// partition of the rows if one is known, which the preconditioner `bainv` uses.
#[derive(Clone, Copy, Debug)]
pub struct HostSystem<'s, T: Real> {
    /// The matrix.
    pub a: &'s Csr<T>,
    /// The right-hand side: a number for each row.
    pub b: &'s [T],
    /// Format of the scaled matrix on the device.
    pub format: Format,
    /// Parts of the rows.
    pub partition: Option<&'s Partition>,
}

/// Solves `A x = b` with rows and columns scaled ([`Csr::equilibration`]), by the preconditioners of `chain` as [`solve_with_fallbacks`](crate::solve_with_fallbacks) takes them, from the start guess in `x`, and leaves the answer
/// there. Rounds follow each other until the residual of the system as it was given meets [`Stopping::rtol`](crate::Stopping::rtol) and `atol`, or until they gain
/// nothing more. An answer whose backward error is rounding in every row ends with [`Stop::Rounded`]. The report is that of the system as it was given;
/// its history is the scaled recurrence's, multiplied so that each round begins with the true residual.
///
/// # Cost
/// A scaled copy of the matrix on the host and on the device; for each round a product on the host beside the solve.
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) for vectors of other lengths; errors of [`Matrix::new`] and of [`solve_with_fallbacks`](crate::solve_with_fallbacks).
pub fn solve_scaled_with_fallbacks<T: Real>(
    device: &Device,
    system: HostSystem<'_, T>,
    setup: &Setup<T>,
    chain: &[Option<Preconditioner>],
    x: &mut [T],
    observer: &mut Observer<'_>,
) -> Result<FallbackSolve<T>> {
    scaled_once(device, system, setup, chain, x, observer)
}

per_number! {
    fn scaled_once<T>(
        device: &Device, system: HostSystem<'_, T>, setup: &Setup<T>, chain: &[Option<Preconditioner>], x: &mut [T],
        observer: &mut Observer<'_>
    ) -> Result<FallbackSolve<T>> = scaled_here;
}

/// `[A; d I]`.
fn stacked<T: Real>(a: &Csr<T>, damp: f64) -> Result<Csr<T>> {
    let rows = a.rows();
    Csr::from_rows(rows + a.cols(), a.cols(), |i, row| {
        if i < rows {
            let (columns, values) = a.row(i);
            row.extend(columns.iter().copied().zip(values.iter().copied()));
        } else {
            row.push(((i - rows) as u32, T::from_f64(damp)));
        }
    })
}

/// A solve in rounds.
struct Rounds<'s, T: Real> {
    system: HostSystem<'s, T>,
    setup: &'s Setup<T>,
    /// Right-hand side, with 0 for the rows of the damping.
    rhs: Vec<f64>,
    rhs_norm: f64,
    left: Vec<f64>,
    right: Vec<f64>,
    scaled: Csr<T>,
    matrix: Matrix<T>,
    clock: Instant,
    /// Limit of the residual.
    goal: f64,
    answer: Vec<f64>,
    residual: Residual,
}

fn scaled_here<T: Real>(
    device: &Device,
    system: HostSystem<'_, T>,
    setup: &Setup<T>,
    chain: &[Option<Preconditioner>],
    x: &mut [T],
    observer: &mut Observer<'_>,
) -> Result<FallbackSolve<T>> {
    same_length("right-hand side", system.a.rows(), system.b.len())?;
    same_length("start guess", system.a.cols(), x.len())?;
    let damp = setup.method.damp();
    let with_damping = if damp > 0.0 { Some(stacked(system.a, damp)?) } else { None };
    let whole = with_damping.as_ref().unwrap_or(system.a);
    let mut rounds = Rounds::new(device, system, whole, setup, x)?;
    let mut rtol = setup.stopping.rtol;
    let mut all: Option<FallbackSolve<T>> = None;
    loop {
        let (mut round, next) = rounds.round(whole, all.as_ref(), (chain, rtol), observer)?;
        let (gained, taken) = rounds.take(whole, next);
        let stop = rounds.stop(round.report.stop, gained, taken);
        let before = all.as_ref().map_or(0, |all| all.report.iterations);
        let answered = if taken { before + round.report.answer_iteration } else { 0 };
        let mut outcome = match all.take() {
            None => round,
            Some(mut all) => {
                all.attempts.append(&mut round.attempts);
                let kept = all.report.answer_iteration;
                all.report.join(round.report);
                all.report.answer_iteration = kept;
                all
            }
        };
        if taken || before == 0 {
            outcome.report.answer_iteration = answered;
        }
        let stop = stop.or_else(|| {
            (outcome.report.iterations >= setup.stopping.max_iterations).then_some(Stop::MaxIterations)
        });
        if let Some(stop) = stop {
            rounds.tell(whole, &mut outcome.report, stop);
            x.iter_mut().zip(&rounds.answer).for_each(|(x, v)| *x = T::from_f64(*v));
            return Ok(outcome);
        }
        rtol = (LEAST_GAIN * rounds.goal / rounds.residual.norm).clamp(10.0 * T::EPSILON, 0.1);
        all = Some(outcome);
    }
}

impl<'s, T: Real> Rounds<'s, T> {
    fn new(
        device: &Device,
        system: HostSystem<'s, T>,
        whole: &Csr<T>,
        setup: &'s Setup<T>,
        x: &[T],
    ) -> Result<Self> {
        let mut rhs: Vec<f64> = system.b.iter().map(|v| v.to_f64()).collect();
        rhs.resize(whole.rows(), 0.0);
        let [left, right] = whole.equilibration();
        let scaled = whole.scaled(&left, &right)?;
        let matrix = match setup.method.takes_rectangles() {
            true => Matrix::with_transpose(device, &scaled, system.format)?,
            false => Matrix::new(device, &scaled, system.format)?,
        };
        let rhs_norm = magnitude::norm(rhs.iter().copied());
        let answer: Vec<f64> = x.iter().map(|v| v.to_f64()).collect();
        let residual = Residual::of(whole, &rhs, &answer);
        let goal = (setup.stopping.rtol * rhs_norm)
            .max(setup.stopping.atol)
            .max(setup.stopping.residual_reduction * residual.norm);
        let clock = Instant::now();
        Ok(Self { system, setup, rhs, rhs_norm, left, right, scaled, matrix, clock, goal, answer, residual })
    }

    /// One round, and the answer that it leads to.
    fn round(
        &self,
        whole: &Csr<T>,
        before: Option<&FallbackSolve<T>>,
        (chain, rtol): (&[Option<Preconditioner>], f64),
        observer: &mut Observer<'_>,
    ) -> Result<(FallbackSolve<T>, Vec<f64>)> {
        let device = self.matrix.device();
        let rhs: Vec<T> = self.residual.r.iter().zip(&self.left).map(|(r, l)| T::from_f64(r * l)).collect();
        let start = magnitude::norm(rhs.iter().map(|v| v.to_f64()));
        let rhs = Vector::from_slice(device, &rhs)?;
        let mut y = Vector::zeros(device, whole.cols())?;
        let mut inner = Setup { method: self.setup.method.undamped(), ..self.setup.clone() };
        inner.stopping.max_iterations -= before.map_or(0, |before| before.report.iterations);
        inner.stopping.time_limit =
            inner.stopping.time_limit.map(|limit| limit.saturating_sub(self.clock.elapsed()));
        (inner.stopping.rtol, inner.stopping.atol, inner.stopping.residual_reduction) = (rtol, 0.0, 0.0);
        let mut round = match before {
            // The preconditioner that did it is kept.
            Some(FallbackSolve { which, built, .. }) => {
                inner.preconditioner = built.as_ref().map(|built| built.operator.clone());
                inner.stopping.patience = None;
                let report = Solver::with(&self.matrix, inner)?.solve_observed(&rhs, &mut y, observer)?;
                let tried = vec![Attempt::refined(*which, &report)];
                FallbackSolve { report, which: *which, built: None, attempts: tried }
            }
            None => {
                let system = (&self.matrix, &self.scaled, self.system.partition);
                try_chain(system, &inner, chain, (&rhs, &mut y), observer)?
            }
        };
        round.attempts.iter_mut().for_each(|attempt| attempt.scaled = true);
        // Norms of the scaled system, as parts of what they begin with.
        let factor = if start > 0.0 { self.residual.norm / start } else { 1.0 };
        round.report.history.iter_mut().for_each(|norm| *norm *= factor);
        round.report.residual *= factor;
        let y = y.to_vec()?;
        let rounded = |(x, (y, r)): (&f64, (&T, &f64))| T::from_f64(x + y.to_f64() * r).to_f64();
        Ok((round, self.answer.iter().zip(y.iter().zip(&self.right)).map(rounded).collect()))
    }

    /// Takes an answer if it is better than the one before; whether it gained much, and whether it was taken.
    fn take(&mut self, whole: &Csr<T>, next: Vec<f64>) -> (bool, bool) {
        let found = Residual::of(whole, &self.rhs, &next);
        let held = &self.residual;
        let gained = found.norm < LEAST_GAIN * held.norm || found.backward < LEAST_GAIN * held.backward;
        let better = if found.norm <= self.goal {
            true
        } else if self.setup.method.takes_rectangles() {
            found.norm <= held.norm * (1.0 + T::EPSILON.sqrt())
        } else {
            // Norms tell of the large rows alone, so an answer that misses the goal may be better by the error of its rows.
            found.backward < held.backward || found.norm < held.norm
        };
        if better {
            (self.answer, self.residual) = (next, found);
        }
        (gained, better)
    }

    /// End of the rounds after one that ended by `inner`, if it is the last.
    fn stop(&self, inner: Stop, gained: bool, taken: bool) -> Option<Stop> {
        let square = !self.setup.method.takes_rectangles();
        if self.residual.norm <= self.goal && self.residual.is_certain(self.goal) {
            Some(Stop::Converged)
        } else if inner == Stop::LeastSquares {
            Some(inner)
        } else if square && self.residual.is_rounding::<T>(self.rhs_norm) {
            Some(Stop::Rounded)
        } else if !matches!(inner, Stop::Converged | Stop::Stagnated | Stop::Breakdown) {
            Some(inner)
        } else if !(taken && gained) {
            Some(if inner == Stop::Converged { Stop::Stagnated } else { inner })
        } else {
            None
        }
    }

    /// Tells of the system as it was given.
    fn tell(&self, whole: &Csr<T>, report: &mut Report, stop: Stop) {
        report.method = self.setup.method;
        report.stop = stop;
        report.rhs_norm = self.rhs_norm;
        report.true_residual = magnitude::norm(self.residual.r[..self.system.a.rows()].iter().copied());
        report.backward_error = (!self.setup.method.takes_rectangles()).then_some(self.residual.backward);
        if report.gradient.is_some() {
            report.gradient = Some(gradient(whole, &self.residual.r));
        }
    }
}

/// `|A'r|`.
fn gradient<T: Real>(a: &Csr<T>, r: &[f64]) -> f64 {
    let mut sums = vec![0.0; a.cols()];
    for i in 0..a.rows() {
        let (columns, values) = a.row(i);
        columns.iter().zip(values).for_each(|(j, v)| sums[*j as usize] += v.to_f64() * r[i]);
    }
    magnitude::norm(sums.into_iter())
}
