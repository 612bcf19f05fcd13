//! Solves of a system whose rows and columns are scaled, told as solves of the system that was given.
//!
//! ```text
//!   round:  r = b - A x,   (L A R) y = L r,   x += R y
//! ```
//!
//! `L` and `R` are powers of two ([`Csr::equilibration`]), so that scaling rounds nothing. The residual is computed by the host, in `f64`, of
//! the system that was given; only that ends the rounds with success. Damping is one of the unknowns that were given: `min |A x - b|² + d² |x|²` is solved as
//! `min |[A; d I] x - [b; 0]|²`, whose columns are scaled.
//!
//! Source: R. D. Skeel, "Iterative refinement implies numerical stability for Gaussian elimination", Math. Comp. 35, 1980 (rounds make the
//! backward error of each row small); N. J. Higham, "Accuracy and stability of numerical algorithms", 2nd ed. 2002, 7.3 (scaling), 12.

use std::time::Instant;

use super::ladder::{Climb, Rung, climb};
use super::verdict::{ROUNDED, Residual};
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

/// A system on the host for [`climb_scaled`]: the matrix, the right-hand side, the format for the device, and a partition of the rows for
/// `bainv`, if one is known.
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

/// Solves `A x = b` with rows and columns scaled ([`Csr::equilibration`]), by [`climb`] over `ladder`, from the start guess in `x`, and leaves the answer
/// there. Rounds follow each other until the residual of the system as it was given meets [`Stopping::rtol`](crate::Stopping::rtol) and `atol`, or until they gain
/// nothing more. An answer whose backward error is rounding in every row ends with [`Stop::Rounded`]. The report is that of the system as it was given;
/// its history is the scaled recurrence's, multiplied so that each round begins with the true residual.
///
/// # Cost
/// A scaled copy of the matrix on the host and on the device; for each round a product on the host beside the solve.
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) for vectors of other lengths; errors of [`Matrix::new`] and of [`climb`].
pub fn climb_scaled<T: Real>(
    device: &Device,
    system: HostSystem<'_, T>,
    setup: &Setup<T>,
    ladder: &[Option<Preconditioner>],
    x: &mut [T],
    observer: &mut Observer<'_>,
) -> Result<Climb<T>> {
    climb_scaled_once(device, system, setup, ladder, x, observer)
}

per_number! {
    fn climb_scaled_once<T>(
        device: &Device, system: HostSystem<'_, T>, setup: &Setup<T>, ladder: &[Option<Preconditioner>], x: &mut [T],
        observer: &mut Observer<'_>
    ) -> Result<Climb<T>> = climb_scaled_here;
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

fn climb_scaled_here<T: Real>(
    device: &Device,
    system: HostSystem<'_, T>,
    setup: &Setup<T>,
    ladder: &[Option<Preconditioner>],
    x: &mut [T],
    observer: &mut Observer<'_>,
) -> Result<Climb<T>> {
    let HostSystem { a, b, format, partition } = system;
    same_length("right-hand side", a.rows(), b.len())?;
    same_length("start guess", a.cols(), x.len())?;
    let damp = setup.method.damp();
    let with_damping = if damp > 0.0 { Some(stacked(a, damp)?) } else { None };
    let whole = with_damping.as_ref().unwrap_or(a);
    let mut rhs: Vec<f64> = b.iter().map(|v| v.to_f64()).collect();
    rhs.resize(whole.rows(), 0.0);
    let [left, right] = whole.equilibration();
    let scaled = whole.scaled(&left, &right)?;
    let matrix = match setup.method.takes_rectangles() {
        true => Matrix::with_transpose(device, &scaled, format)?,
        false => Matrix::new(device, &scaled, format)?,
    };
    let plain = Setup { method: setup.method.undamped(), ..setup.clone() };
    let rhs_norm = magnitude::norm(rhs.iter().copied());
    let goal = (setup.stopping.rtol * rhs_norm).max(setup.stopping.atol);
    let clock = Instant::now();
    let mut answer: Vec<f64> = x.iter().map(|v| v.to_f64()).collect();
    let mut residual = Residual::of(whole, &rhs, &answer);
    let mut all: Option<Climb<T>> = None;
    let mut rtol = setup.stopping.rtol;
    loop {
        let scaled_rhs: Vec<T> = residual.r.iter().zip(&left).map(|(r, l)| T::from_f64(r * l)).collect();
        let start = magnitude::norm(scaled_rhs.iter().map(|v| v.to_f64()));
        let scaled_rhs = Vector::from_slice(device, &scaled_rhs)?;
        let mut y = Vector::zeros(device, a.cols())?;
        let mut inner = plain.clone();
        let done = all.as_ref().map_or(0, |all| all.report.iterations);
        inner.stopping.max_iterations -= done;
        inner.stopping.time_limit = inner.stopping.time_limit.map(|limit| limit.saturating_sub(clock.elapsed()));
        (inner.stopping.rtol, inner.stopping.atol) = (rtol, 0.0);
        let mut round = match &all {
            // The preconditioner that did it is kept.
            Some(Climb { which, built, .. }) => {
                inner.preconditioner = built.as_ref().map(|built| built.operator.clone());
                inner.stopping.patience = None;
                let report = Solver::with(&matrix, inner)?.solve_observed(&scaled_rhs, &mut y, observer)?;
                let rungs = vec![Rung::solved(*which, &report)];
                Climb { report, which: *which, built: None, rungs }
            }
            None => climb((&matrix, &scaled, partition), &inner, ladder, (&scaled_rhs, &mut y), observer)?,
        };
        round.rungs.iter_mut().for_each(|rung| rung.scaled = true);
        let y = y.to_vec()?;
        let rounded = |(x, (y, r)): (&f64, (&T, &f64))| T::from_f64(x + y.to_f64() * r).to_f64();
        let next: Vec<f64> = answer.iter().zip(y.iter().zip(&right)).map(rounded).collect();
        let found = Residual::of(whole, &rhs, &next);
        let factor = if start > 0.0 { residual.norm / start } else { 1.0 };
        let inner_stop = round.report.stop;
        let gained = found.norm < LEAST_GAIN * residual.norm || found.backward < LEAST_GAIN * residual.backward;
        // Of two answers that miss the goal, the one with the smaller error of a row: norms tell of the large rows alone.
        let better = match (found.norm <= goal, setup.method.takes_rectangles()) {
            (true, _) => true,
            (_, true) => found.norm <= residual.norm * (1.0 + T::EPSILON.sqrt()),
            _ => found.backward < residual.backward || found.norm < residual.norm,
        };
        if better {
            (answer, residual) = (next, found);
        }
        let mut joined = join(all.take(), round, factor, better);
        let rounds_on = |stop| matches!(stop, Stop::Converged | Stop::Stagnated | Stop::Breakdown);
        let stop = if residual.norm <= goal && residual.norm.is_finite() {
            Some(Stop::Converged)
        } else if inner_stop == Stop::LeastSquares {
            Some(inner_stop)
        } else if residual.backward <= ROUNDED * T::EPSILON && !setup.method.takes_rectangles() {
            Some(Stop::Rounded)
        } else if !rounds_on(inner_stop) {
            Some(inner_stop)
        } else if !(better && gained) {
            Some(if inner_stop == Stop::Converged { Stop::Stagnated } else { inner_stop })
        } else if joined.report.iterations >= setup.stopping.max_iterations {
            Some(Stop::MaxIterations)
        } else {
            None
        };
        let Some(stop) = stop else {
            rtol = (LEAST_GAIN * goal / residual.norm).clamp(10.0 * T::EPSILON, 0.1);
            all = Some(joined);
            continue;
        };
        let report = &mut joined.report;
        report.method = setup.method;
        report.stop = stop;
        report.rhs_norm = rhs_norm;
        report.true_residual = magnitude::norm(residual.r[..a.rows()].iter().copied());
        report.backward_error = (!setup.method.takes_rectangles()).then_some(residual.backward);
        if report.gradient.is_some() {
            report.gradient = Some(gradient(whole, &residual.r));
        }
        x.iter_mut().zip(&answer).for_each(|(x, v)| *x = T::from_f64(*v));
        return Ok(joined);
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

/// The rounds so far and one more, whose norms are multiplied by `factor`; `taken` if its answer is kept.
fn join<T: Real>(before: Option<Climb<T>>, mut round: Climb<T>, factor: f64, taken: bool) -> Climb<T> {
    let scale = |norms: &mut Vec<f64>| norms.iter_mut().for_each(|norm| *norm *= factor);
    scale(&mut round.report.history);
    round.report.residual *= factor;
    let Some(mut all) = before else {
        if !taken {
            round.report.answer_iteration = 0;
        }
        return round;
    };
    let Report { history, gradient_history, iterations, restarts, residual, answer_iteration, times, .. } =
        round.report;
    let report = &mut all.report;
    if taken {
        report.answer_iteration = report.iterations + answer_iteration;
    }
    report.history.extend(history.into_iter().skip(1));
    report.gradient_history.extend(gradient_history.into_iter().skip(1));
    report.iterations += iterations;
    report.restarts += restarts + 1;
    report.residual = residual;
    report.times.compile += times.compile;
    report.times.solve += times.solve;
    report.times.verify += times.verify;
    all.rungs.extend(round.rungs);
    all
}
