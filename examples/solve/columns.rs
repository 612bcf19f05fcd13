//! Solves for all right-hand sides: the first finds the preconditioner, the others follow, several at once where that can be.

use std::time::Instant;

use common::{interrupt, show};
use indicatif::ProgressBar;
use residuum::precond::{Built, Preconditioner};
use residuum::sparse::Partition;
use residuum::{
    Attempt, Columns, Csr, FallbackSolve, HostSystem, Matrix, Progress, Real, Report, Result, Setup, Solver, Stop,
    Vector, solve_scaled_with_fallbacks, solve_with_fallbacks,
};

/// Most right-hand sides at once.
const AT_ONCE: usize = 4;

/// A system without its right-hand sides, and how it is solved.
pub(crate) struct System<'a, T: Real> {
    pub(crate) matrix: &'a Matrix<T>,
    pub(crate) a: &'a Csr<T>,
    pub(crate) partition: Option<&'a Partition>,
    pub(crate) setup: &'a Setup<T>,
    pub(crate) chain: &'a [Option<Preconditioner>],
    /// Tells if rows and columns are scaled: `true` if the user asked for it, `false` if the matrix does.
    pub(crate) scale: Option<bool>,
    pub(crate) bar: &'a ProgressBar,
}

/// Answers to all right-hand sides.
pub(crate) struct Solved<T: Real> {
    pub(crate) answers: Vec<Vec<T>>,
    /// One for each answer.
    pub(crate) reports: Vec<Report>,
    pub(crate) which: Option<Preconditioner>,
    pub(crate) built: Option<Built<T>>,
    /// Preconditioners that were tried with the first.
    pub(crate) attempts: Vec<Attempt>,
    /// Seconds of all set-ups and solves.
    pub(crate) seconds: f64,
    /// Words for the way in which several were solved.
    pub(crate) way: Option<String>,
}

impl<T: Real> System<'_, T> {
    /// The set-up with the time that is left of that of all right-hand sides together.
    fn left(&self, since: Instant) -> Setup<T> {
        let mut setup = self.setup.clone();
        setup.stopping.time_limit = setup.stopping.time_limit.map(|limit| limit.saturating_sub(since.elapsed()));
        setup
    }

    /// Solves for one, with the preconditioners one after another.
    fn alone(&self, since: Instant, b: &[T], start: &[T]) -> Result<(FallbackSolve<T>, Vec<T>)> {
        let device = self.matrix.device();
        if let Some(asked) = self.scale {
            let system = HostSystem { a: self.a, b, format: self.matrix.format(), partition: self.partition };
            let mut x = start.to_vec();
            let mut watch = |progress: &Progress| {
                show(self.bar, progress);
                interrupt::flow()
            };
            let solved =
                solve_scaled_with_fallbacks(device, system, &self.left(since), self.chain, &mut x, &mut watch)?;
            if asked || solved.report.converged() || solved.report.stop == Stop::Cancelled {
                return Ok((solved, x));
            }
        }
        let (b, mut x) = (Vector::from_slice(device, b)?, Vector::from_slice(device, start)?);
        let system = (self.matrix, self.a, self.partition);
        let solved = solve_with_fallbacks(
            system,
            &self.left(since),
            self.chain,
            (&b, &mut x),
            &mut |progress: &Progress| {
                show(self.bar, progress);
                interrupt::flow()
            },
        )?;
        Ok((solved, x.to_vec()?))
    }

    /// Solves with every one of `columns`, one at least.
    pub(crate) fn solve(&self, columns: &[Vec<T>]) -> Result<Solved<T>> {
        let since = Instant::now();
        let zeros = vec![T::default(); self.matrix.cols()];
        let (first, answer) = self.alone(since, &columns[0], &zeros)?;
        let seconds = first.seconds();
        let FallbackSolve { report, which, built, attempts, .. } = first;
        let (answers, reports) = (vec![answer], vec![report]);
        let mut solved = Solved { answers, reports, which, built, attempts, seconds, way: None };
        let mut at_once = if self.scale.is_some() { 1 } else { AT_ONCE };
        let mut rest = &columns[1..];
        if self.scale.is_some() {
            for b in std::mem::take(&mut rest) {
                let (next, answer) = self.alone(since, b, &zeros)?;
                solved.seconds += next.seconds();
                solved.reports.push(next.report);
                solved.answers.push(answer);
            }
        }
        while !rest.is_empty() {
            let count = rest.len().min(at_once);
            let mut setup = self.left(since).with_columns(count);
            setup.preconditioner = solved.built.as_ref().map(|built| built.operator.clone());
            let mut solver = match Solver::with(self.matrix, setup) {
                Ok(solver) => solver,
                // The method or the preconditioner takes one, or there is no room for several.
                Err(_) if count > 1 => {
                    at_once = 1;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let (now, later) = rest.split_at(count);
            rest = later;
            self.follow(since, &mut solver, now, &mut solved)?;
        }
        let several = format!("{} right-hand sides, ", columns.len());
        solved.way = (columns.len() > 1).then(|| match at_once {
            2.. if columns.len() > 2 => several + "after the first up to 4 at once",
            _ => several + "one after another",
        });
        Ok(solved)
    }

    /// Solves with right-hand sides that follow the first, and again with all preconditioners where that fails.
    fn follow(
        &self,
        since: Instant,
        solver: &mut Solver<T>,
        columns: &[Vec<T>],
        solved: &mut Solved<T>,
    ) -> Result<()> {
        let (device, count) = (self.matrix.device(), columns.len());
        let b = Columns::new(device, columns)?;
        let mut x = Columns::zeros(device, self.matrix.cols(), count)?;
        let reports = solver.solve_many_observed(&b, &mut x, &mut |progress: &Progress| {
            show(self.bar, progress);
            interrupt::flow()
        })?;
        // Reports of one solve tell the same time.
        solved.seconds += reports.iter().map(|r| r.times.solve + r.times.verify).fold(0.0, f64::max);
        for ((b, report), answer) in columns.iter().zip(reports).zip(x.to_vecs()?) {
            if !report.stop.failed() {
                solved.reports.push(report);
                solved.answers.push(answer);
                continue;
            }
            let (again, answer) = self.alone(since, b, &answer)?;
            solved.seconds += again.seconds();
            solved.reports.push(again.report);
            solved.answers.push(answer);
        }
        Ok(())
    }
}
