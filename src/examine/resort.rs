//! What remains for a square system when no preconditioner of a ladder led to an answer: the null space, scaling, and a verdict row by row.

use std::time::Instant;

use super::ladder::{Climb, fails, rungs};
use super::rounds::{HostSystem, climb_scaled};
use super::verdict::{ROUNDED, Residual, takes_constants_to_0};
use crate::error::Result;
use crate::matrix::Matrix;
use crate::number::Real;
use crate::precond::Preconditioner;
use crate::solver::{Answer, Method, NullSpace, Observer, Report, Setup, Solver, Stop, Stopping};
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
pub(super) fn told_whole<T: Real>(mut climb: Climb<T>, setup: &Setup<T>) -> Climb<T> {
    let report = &mut climb.report;
    let Some(part) = report.projected else { return climb };
    let whole = |norm: &mut f64| *norm = norm.hypot(part);
    [&mut report.true_residual, &mut report.residual, &mut report.rhs_norm].into_iter().for_each(whole);
    report.history.iter_mut().for_each(whole);
    let goal = (setup.stopping.rtol * report.rhs_norm).max(setup.stopping.atol);
    if report.stop == Stop::Converged && report.true_residual > goal {
        report.stop = Stop::LeastSquares;
        climb
            .rungs
            .iter_mut()
            .filter(|rung| rung.end == Ok(Stop::Converged))
            .for_each(|rung| rung.end = Ok(report.stop));
    }
    climb
}

/// A vector that a symmetric matrix takes to 0, if MINRES runs away along one: its iterates grow without end then.
fn null_vector<T: Real>(
    matrix: &Matrix<T>,
    setup: &Setup<T>,
    iterations: usize,
    b: &Vector<T>,
) -> Result<Option<NullSpace<T>>> {
    let stopping =
        Stopping { answer: Answer::Last, time_limit: setup.stopping.time_limit, ..Stopping::after(iterations) };
    let mut z = Vector::zeros(matrix.device(), matrix.cols())?;
    let _ = Solver::with(matrix, Setup::new(Method::Minres, stopping))?.solve(b, &mut z)?;
    let norm = z.norm2()?;
    if !(norm > 0.0 && norm.is_finite()) {
        return Ok(None);
    }
    z.scale(T::from_f64(1.0 / norm))?;
    Ok(Some(NullSpace::of(vec![z])?))
}

/// Goes on where `climb` ended without an answer, from what is in `x`, with the iterations and the time that are left.
pub(super) fn go_on<T: Real>(
    system: (&Matrix<T>, &Csr<T>, Option<&Partition>),
    setup: &Setup<T>,
    ladder: &[Option<Preconditioner>],
    (b, x): (&Vector<T>, &mut Vector<T>),
    clock: &Instant,
    observer: &mut Observer<'_>,
    climb: &mut Climb<T>,
) -> Result<()> {
    let (matrix, a, partition) = system;
    let minres = setup.method == Method::Minres;
    let may = a.rows() == a.cols()
        && !setup.method.takes_rectangles()
        && setup.columns == 1
        && setup.null_space.is_none()
        && climb.report.projected.is_none();
    let doubtful = minres && climb.report.stop == Stop::LeastSquares;
    // MINRES needs all its iterations to run away.
    let failed = fails(climb.report.stop) || (minres && climb.report.stop == Stop::MaxIterations);
    if !may || !(doubtful || failed) {
        return Ok(());
    }
    let rhs = on_host(b)?;
    let residual = Residual::of(a, &rhs, &on_host(x)?);
    climb.report.backward_error = Some(residual.backward);
    if doubtful {
        if residual.is_in_null_space(a) {
            return Ok(());
        }
        climb.report.stop = Stop::Stagnated;
    }
    if residual.backward <= ROUNDED * T::EPSILON {
        climb.report.stop = Stop::Rounded;
        return Ok(());
    }
    let rest = |climb: &Climb<T>| {
        let done: usize = climb.rungs.iter().map(|rung| rung.iterations).sum();
        let mut rest = setup.clone();
        rest.stopping.max_iterations = setup.stopping.max_iterations.saturating_sub(done);
        rest.stopping.time_limit = setup.stopping.time_limit.map(|limit| limit.saturating_sub(clock.elapsed()));
        rest
    };
    if minres && !doubtful {
        let space = null_vector(matrix, &rest(climb), climb.report.iterations, b)?;
        // As many iterations as there were: those before were spent on what has no answer.
        let projected = Setup { null_space: space, ..setup.clone() };
        let mut start = Vector::zeros(x.device(), x.len())?;
        // A vector that is not of the null space is refused.
        let solved = match &projected.null_space {
            Some(_) => rungs(system, &projected, ladder, (b, &mut start), observer).ok(),
            None => None,
        };
        if let Some(solved) = solved.map(|solved| told_whole(solved, &projected)).filter(|c| c.report.converged()) {
            x.copy_from(&start)?;
            take(climb, solved);
            return Ok(());
        }
    }
    let left = rest(climb);
    if left.stopping.max_iterations == 0 || left.stopping.time_limit.is_some_and(|time| time.is_zero()) {
        return Ok(());
    }
    let mut answer = x.to_vec()?;
    let rhs = b.to_vec()?;
    let host = HostSystem { a, b: &rhs, format: matrix.format(), partition };
    match climb_scaled(matrix.device(), host, &left, ladder, &mut answer, observer) {
        Ok(solved) => {
            let better = solved.report.converged()
                || solved.report.true_residual < climb.report.true_residual
                || solved.report.backward_error < climb.report.backward_error;
            if better {
                x.write(&answer)?;
                take(climb, solved);
            } else {
                climb.rungs.extend(solved.rungs);
            }
        }
        // Without memory for a second matrix, say: the answer from before stays.
        Err(error) => log::info!("the scaled system was not solved: {error}"),
    }
    Ok(())
}

/// Takes the end of another solve, and adds what was done before to it.
fn take<T: Real>(climb: &mut Climb<T>, mut solved: Climb<T>) {
    let mut rungs = std::mem::take(&mut climb.rungs);
    rungs.append(&mut solved.rungs);
    let Report { iterations, restarts, times, .. } = &climb.report;
    let report = &mut solved.report;
    if report.answer_iteration > 0 || report.converged() {
        report.answer_iteration += iterations;
    }
    report.iterations += iterations;
    report.restarts += restarts + 1;
    report.times.compile += times.compile;
    report.times.solve += times.solve;
    report.times.verify += times.verify;
    for (of_all, before) in [
        (&mut report.history, &climb.report.history),
        (&mut report.gradient_history, &climb.report.gradient_history),
    ] {
        *of_all = before.iter().copied().chain(of_all.iter().copied().skip(1)).collect();
    }
    *climb = Climb { rungs, ..solved };
}
