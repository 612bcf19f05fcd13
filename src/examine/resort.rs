//! Last resorts for a square system that no preconditioner of a chain has solved: the null space, scaling, and a verdict row by row.

use std::time::Instant;

use super::chain::{FallbackSolve, try_chain};
use super::rounds::{HostSystem, solve_scaled_with_fallbacks};
use super::verdict::{Residual, takes_constants_to_0};
use crate::error::Result;
use crate::matrix::Matrix;
use crate::number::Real;
use crate::precond::Preconditioner;
use crate::solver::{Method, NullSpace, Observer, Report, Setup, Solver, Stop, Stopping};
use crate::sparse::{Csr, Partition};
use crate::vector::Vector;

/// Methods for symmetric matrices, whose systems may be kept out of a null space.
fn is_symmetric_method(method: Method) -> bool {
    matches!(method, Method::Cg | Method::FlexibleCg | Method::Minres)
}

/// Numbers of a vector in `f64`.
fn on_host<T: Real>(v: &Vector<T>) -> Result<Vec<f64>> {
    Ok(v.to_vec()?.into_iter().map(Real::to_f64).collect())
}

/// The set-up without the constants, if `a` takes them to 0 and `b` has a part along them that no `x` can make: the Neumann problem.
pub(super) fn without_constants<T: Real>(a: &Csr<T>, setup: &Setup<T>, b: &Vector<T>) -> Result<Option<Setup<T>>> {
    let may = is_symmetric_method(setup.method) && setup.null_space.is_none() && setup.columns == 1;
    if !may || !takes_constants_to_0(a) {
        return Ok(None);
    }
    let numbers = on_host(b)?;
    let part = numbers.iter().sum::<f64>().abs() / (numbers.len() as f64).sqrt();
    let goal = (setup.stopping.rtol * b.norm2()?).max(setup.stopping.atol);
    if !(part > goal && part.is_finite()) {
        return Ok(None);
    }
    let space = NullSpace::constants(b.device(), b.len())?;
    Ok(Some(Setup { null_space: Some(space), ..setup.clone() }))
}

/// A solve without the null space, told as one of the whole right-hand side.
pub(super) fn told_whole<T: Real>(mut outcome: FallbackSolve<T>, setup: &Setup<T>) -> FallbackSolve<T> {
    let report = &mut outcome.report;
    let Some(part) = report.projected else { return outcome };
    let whole = |norm: &mut f64| *norm = libm::hypot(*norm, part);
    [&mut report.true_residual, &mut report.residual, &mut report.rhs_norm].into_iter().for_each(whole);
    report.history.iter_mut().for_each(whole);
    let goal = (setup.stopping.rtol * report.rhs_norm).max(setup.stopping.atol);
    if report.stop == Stop::Converged && report.true_residual > goal {
        report.stop = Stop::LeastSquares;
        outcome
            .attempts
            .iter_mut()
            .filter(|attempt| attempt.end == Ok(Stop::Converged))
            .for_each(|attempt| attempt.end = Ok(report.stop));
    }
    outcome
}

/// The part of `b` in the null space of a symmetric matrix, if there is one: `z = b - d` with `A d = A b`, a system that has a solution even where
/// `A x = b` has none.
fn null_vector<T: Real>(matrix: &Matrix<T>, setup: &Setup<T>, b: &Vector<T>) -> Result<Option<NullSpace<T>>> {
    let mut image = Vector::zeros(matrix.device(), matrix.rows())?;
    matrix.multiply(b, &mut image)?;
    // The limit is what rounding leaves of a product with z.
    let atol = 2.0 * T::EPSILON * matrix.frobenius_norm() * b.norm2()?;
    let stopping = Stopping {
        rtol: 0.0,
        atol,
        residual_reduction: 0.0,
        gradient_rtol: 0.0,
        gradient_reduction: 0.0,
        ..setup.stopping.clone()
    };
    let mut z = Vector::zeros(matrix.device(), matrix.cols())?;
    let _ = Solver::with(matrix, Setup::new(Method::Minres, stopping))?.solve(&image, &mut z)?;
    z.axpby(T::from_f64(1.0), b, T::from_f64(-1.0))?;
    let square = z.dot(&z)?;
    if !(square > 0.0 && square.is_finite()) {
        return Ok(None);
    }
    let space = NullSpace::of(vec![z])?;
    Ok(space.check(matrix).is_ok().then_some(space))
}

/// Goes on where `solve_with_fallbacks` ended without an answer, from what is in `x`, with the iterations and the time that are left.
pub(super) fn go_on<T: Real>(
    system: (&Matrix<T>, &Csr<T>, Option<&Partition>),
    setup: &Setup<T>,
    chain: &[Option<Preconditioner>],
    (b, x): (&Vector<T>, &mut Vector<T>),
    clock: &Instant,
    observer: &mut Observer<'_>,
    outcome: &mut FallbackSolve<T>,
) -> Result<()> {
    let (_, a, _) = system;
    let minres = setup.method == Method::Minres;
    let may = a.rows() == a.cols()
        && !setup.method.takes_rectangles()
        && setup.columns == 1
        && setup.null_space.is_none()
        && outcome.report.projected.is_none();
    let doubtful = minres && outcome.report.stop == Stop::LeastSquares;
    // MINRES that runs away may do so until all iterations are done.
    let failed = outcome.report.stop.failed() || (minres && outcome.report.stop == Stop::MaxIterations);
    if !may || !(doubtful || failed) {
        return Ok(());
    }
    let residual = Residual::of(a, &on_host(b)?, &on_host(x)?);
    outcome.report.backward_error = Some(residual.backward);
    if doubtful {
        if residual.is_in_null_space(a) {
            return Ok(());
        }
        outcome.report.stop = Stop::Stagnated;
        outcome
            .attempts
            .iter_mut()
            .filter(|attempt| attempt.end == Ok(Stop::LeastSquares))
            .for_each(|attempt| attempt.end = Ok(Stop::Stagnated));
    }
    if residual.is_rounding::<T>(outcome.report.rhs_norm) {
        outcome.report.stop = Stop::Rounded;
        return Ok(());
    }
    if minres && !doubtful && without_null_vector(system, setup, chain, (b, &mut *x), observer, outcome)? {
        return Ok(());
    }
    let done: usize = outcome.attempts.iter().map(|attempt| attempt.iterations).sum();
    let mut left = setup.clone();
    left.stopping.max_iterations = setup.stopping.max_iterations.saturating_sub(done);
    left.stopping.time_limit = setup.stopping.time_limit.map(|limit| limit.saturating_sub(clock.elapsed()));
    if left.stopping.max_iterations > 0 && left.stopping.time_limit.is_none_or(|time| !time.is_zero()) {
        with_scaling(system, &left, chain, (b, x), observer, outcome)?;
    }
    Ok(())
}

/// Solves without a null vector, if there is one; tells if that led to an answer. As many iterations are allowed as before: those were spent on
/// what has no answer.
fn without_null_vector<T: Real>(
    system: (&Matrix<T>, &Csr<T>, Option<&Partition>),
    setup: &Setup<T>,
    chain: &[Option<Preconditioner>],
    (b, x): (&Vector<T>, &mut Vector<T>),
    observer: &mut Observer<'_>,
    outcome: &mut FallbackSolve<T>,
) -> Result<bool> {
    let Some(space) = null_vector(system.0, setup, b)? else { return Ok(false) };
    let projected = Setup { null_space: Some(space), ..setup.clone() };
    let mut answer = Vector::zeros(x.device(), x.len())?;
    let solved = told_whole(try_chain(system, &projected, chain, (b, &mut answer), observer)?, &projected);
    let converged = solved.report.converged();
    if converged {
        x.copy_from(&answer)?;
        take(outcome, solved);
    }
    Ok(converged)
}

/// Solves with rows and columns scaled, from what is in `x`.
fn with_scaling<T: Real>(
    (matrix, a, partition): (&Matrix<T>, &Csr<T>, Option<&Partition>),
    setup: &Setup<T>,
    chain: &[Option<Preconditioner>],
    (b, x): (&Vector<T>, &mut Vector<T>),
    observer: &mut Observer<'_>,
    outcome: &mut FallbackSolve<T>,
) -> Result<()> {
    let (rhs, mut answer) = (b.to_vec()?, x.to_vec()?);
    let host = HostSystem { a, b: &rhs, format: matrix.format(), partition };
    let solved = match solve_scaled_with_fallbacks(matrix.device(), host, setup, chain, &mut answer, observer) {
        Ok(solved) => solved,
        // Without memory for a second matrix, say: the answer from before stays.
        Err(error) => {
            log::info!("the scaled system was not solved: {error}");
            return Ok(());
        }
    };
    let better = solved.report.converged()
        || solved.report.true_residual < outcome.report.true_residual
        || solved.report.backward_error < outcome.report.backward_error;
    if better {
        x.write(&answer)?;
        take(outcome, solved);
    } else {
        outcome.attempts.extend(solved.attempts);
    }
    Ok(())
}

/// Takes the end of another solve, and adds what was done before to it.
fn take<T: Real>(outcome: &mut FallbackSolve<T>, mut solved: FallbackSolve<T>) {
    let before = outcome.report.iterations;
    let answer = solved.report.answer_iteration;
    outcome.attempts.append(&mut solved.attempts);
    let end = solved.report.clone();
    outcome.report.join(solved.report);
    let Report { true_residual, rhs_norm, projected, gradient, backward_error, .. } = end;
    let report = &mut outcome.report;
    (report.true_residual, report.rhs_norm, report.projected) = (true_residual, rhs_norm, projected);
    (report.gradient, report.backward_error) = (gradient, backward_error);
    report.answer_iteration = before + answer;
    (outcome.which, outcome.built) = (solved.which, solved.built);
}
