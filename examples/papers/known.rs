//! Solves of systems whose solution is chosen beforehand: `b = A x_sol`.

use std::time::Instant;

use residuum::operator::SharedOperator;
use residuum::sparse::gallery::Random;
use residuum::{Method, Report, Result, Setup, Solver, Stopping, Vector};

/// A solution to look for.
pub(crate) fn solution(n: usize) -> Vec<f64> {
    let mut random = Random::new(2013);
    (0..n).map(|_| 2.0 * random.uniform() - 1.0).collect()
}

/// The fastest of three solves, and how far `x` is from the solution.
pub(crate) struct Solved {
    pub(crate) report: Report,
    pub(crate) seconds: f64,
    pub(crate) distance: f64,
}

/// Solves `A x = A x_sol` three times.
pub(crate) fn solve(
    operator: SharedOperator<f64>,
    preconditioner: Option<SharedOperator<f64>>,
    x_sol: &[f64],
    rtol: f64,
) -> Result<Solved> {
    let device = operator.device().clone();
    let mut setup =
        Setup::new(Method::Cg, Stopping::for_precision::<f64>().with_rtol(rtol).with_max_iterations(4000));
    setup.preconditioner = preconditioner;
    let wanted = Vector::from_slice(&device, x_sol)?;
    let (mut b, mut x) = (Vector::zeros(&device, x_sol.len())?, Vector::zeros(&device, x_sol.len())?);
    operator.apply(&wanted, &mut b)?;
    let mut solver = Solver::with(operator, setup)?;
    let mut best: Option<(Report, f64)> = None;
    for _ in 0..3 {
        x.fill(0.0)?;
        device.synchronize()?;
        let clock = Instant::now();
        let report = solver.solve(&b, &mut x)?;
        device.synchronize()?;
        let seconds = clock.elapsed().as_secs_f64();
        if best.as_ref().is_none_or(|best| seconds < best.1) {
            best = Some((report, seconds));
        }
    }
    x.axpby(-1.0, &wanted, 1.0)?;
    let distance = x.norm2()? / wanted.norm2()?;
    let (report, seconds) = best.unwrap_or_else(|| unreachable!("three solves"));
    Ok(Solved { report, seconds, distance })
}
