//! Times of solves and set-ups.

use std::time::Instant;

use residuum::{Csr, Device, Format, Matrix, Method, Real, Report, Result, Solver, Stopping, Vector};

/// Seconds from which a solve is not made again.
const LONG_SOLVE: f64 = 1.0;

/// The fastest of some solves after one that builds the programs.
pub(crate) fn fastest(runs: usize, mut solve: impl FnMut() -> Result<Report>) -> Result<Report> {
    let mut best = solve()?;
    for run in 0..runs {
        if best.times.solve > LONG_SOLVE {
            break;
        }
        let report = solve()?;
        if run == 0 || report.times.solve < best.times.solve {
            best = report;
        }
    }
    Ok(best)
}

/// Milliseconds of an iteration of the fastest of three solves.
pub(crate) fn iteration_ms(solve: impl FnMut() -> Result<Report>) -> Result<f64> {
    let report = fastest(3, solve)?;
    Ok(1e3 * report.times.solve / report.iterations.max(1) as f64)
}

/// A solve by conjugate gradients from a matrix and a right-hand side in memory to an answer in memory.
pub(crate) struct FromMemory {
    /// Milliseconds of all, and of the solve; programs were built before.
    pub(crate) ms: f64,
    pub(crate) solve_ms: f64,
    pub(crate) iterations: usize,
}

/// The fastest of five, the first of which builds the programs.
pub(crate) fn from_memory<T: Real>(device: &Device, a: &Csr<T>, b: &[T], stopping: Stopping) -> Result<FromMemory> {
    let mut found = FromMemory { ms: f64::INFINITY, solve_ms: f64::INFINITY, iterations: 0 };
    for _ in 0..5 {
        let clock = Instant::now();
        let matrix = Matrix::new(device, a, Format::Auto)?;
        let b = Vector::from_slice(device, b)?;
        let mut x = Vector::zeros(device, a.cols())?;
        let report = Solver::new(&matrix, Method::Cg, stopping.clone())?.solve(&b, &mut x)?;
        let _answer = x.to_vec()?;
        found.ms = found.ms.min(1e3 * (clock.elapsed().as_secs_f64() - report.times.compile));
        found.solve_ms = found.solve_ms.min(1e3 * report.times.solve);
        found.iterations = report.iterations;
    }
    Ok(found)
}

/// Seconds from which work is not done a second time for its time alone. Programs of a device take less to build.
const LONG: f64 = 20.0;

/// Milliseconds of the faster of two runs, the first of which may build programs, and the result.
pub(crate) fn timed<R>(mut work: impl FnMut() -> Result<R>) -> Result<(f64, R)> {
    let mut run = || {
        let clock = Instant::now();
        let result = work()?;
        Ok((clock.elapsed().as_secs_f64(), result))
    };
    let (first, result) = run()?;
    if first > LONG {
        return Ok((1e3 * first, result));
    }
    let (second, result) = run()?;
    Ok((1e3 * first.min(second), result))
}
