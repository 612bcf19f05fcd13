//! All preconditioners that a matrix may be solved with, one after another: `--compare`.

use std::time::{Duration, Instant};

use common::plot::Chart;
use common::{counting_bar, interrupt, say};
use residuum::precond::Preconditioner;
use residuum::{
    Csr, Device, Examination, Matrix, Method, Progress, Real, Report, Result, Setup, Solver, Stopping, Vector,
    build_for_until,
};
use serde_json::{Value, json};

use super::options::name_of;
use super::relative;

/// A preconditioner, or none, and how the solve with it went.
pub(crate) struct Candidate {
    name: String,
    setup_seconds: f64,
    entries: usize,
    /// Bytes that it holds on the device.
    bytes: u64,
    /// Report of the solve, or the reason why there was none.
    outcome: std::result::Result<Report, String>,
}

/// The candidates that were tried, and the names of those that were not, because of Ctrl-C.
pub(crate) struct Comparison {
    pub(crate) candidates: Vec<Candidate>,
    pub(crate) not_tried: Vec<String>,
}

/// Solves with every candidate, each within the time limit, and prints a line as each is done unless `quiet`. Programs of the device are built
/// by a first, short solve, which is not timed. Ends early after Ctrl-C.
pub(crate) fn run<T: Real>(
    device: &Device,
    a: &Csr<T>,
    (matrix, b): (&Matrix<T>, &Vector<T>),
    (method, stopping, found): (&Method, &Stopping, &Examination),
    quiet: bool,
) -> Result<Comparison> {
    let all = found.candidates(method);
    let bar = counting_bar(quiet, all.len());
    let mut candidates = Vec::new();
    if !quiet {
        let limit = stopping.time_limit.unwrap_or(Duration::MAX).as_secs_f64();
        say!("compare     {} candidates, up to {limit} s for each (--time-limit)", all.len());
        say!("preconditioner       set-up s    entries    iter.   solve s  us/iter.       MiB  to answer  stop");
    }
    interrupt::keep_work();
    let mut rest = all.into_iter();
    for which in rest.by_ref() {
        bar.set_message(name_of(which.as_ref()));
        let candidate = one(device, a, (matrix, b), (method, stopping), which)?;
        if !quiet {
            bar.suspend(|| candidate.print());
        }
        candidates.push(candidate);
        bar.inc(1);
        if interrupt::came() {
            break;
        }
    }
    bar.finish_and_clear();
    let not_tried = rest.map(|which| name_of(which.as_ref())).collect();
    Ok(Comparison { candidates, not_tried })
}

fn one<T: Real>(
    device: &Device,
    a: &Csr<T>,
    (matrix, b): (&Matrix<T>, &Vector<T>),
    (method, stopping): (&Method, &Stopping),
    which: Option<Preconditioner>,
) -> Result<Candidate> {
    let name = name_of(which.as_ref());
    let clock = Instant::now();
    let deadline = stopping.time_limit.and_then(|limit| clock.checked_add(limit));
    let build = |which| build_for_until(which, method, device, a, None, deadline);
    let built = match which.map(build).transpose() {
        Ok(built) => built,
        // A matrix that has none of this kind.
        Err(error) => {
            let outcome = Err(error.to_string());
            let setup_seconds = clock.elapsed().as_secs_f64();
            return Ok(Candidate { name, setup_seconds, entries: 0, bytes: 0, outcome });
        }
    };
    device.synchronize()?;
    let setup_seconds = if built.is_some() { clock.elapsed().as_secs_f64() } else { 0.0 };
    let (entries, bytes) = built.as_ref().map_or((0, 0), |built| (built.entries, built.operator.bytes()));
    let operator = built.map(|built| built.operator);
    let solve = |stopping: Stopping| {
        let mut setup = Setup::new(*method, stopping);
        setup.preconditioner.clone_from(&operator);
        let mut x = Vector::zeros(device, matrix.cols())?;
        Solver::with(matrix, setup)?.solve_observed(b, &mut x, &mut |_: &Progress| interrupt::flow())
    };
    let _programs = solve(stopping.clone().with_max_iterations(1));
    let left = stopping.time_limit.map(|limit| limit.saturating_sub(Duration::from_secs_f64(setup_seconds)));
    let outcome = solve(stopping.clone().with_time_limit(left)).map_err(|error| error.to_string());
    Ok(Candidate { name, setup_seconds, entries, bytes, outcome })
}

impl Candidate {
    /// Seconds to an answer, set-up included, if there is one.
    pub(crate) fn seconds(&self) -> Option<f64> {
        let report = self.outcome.as_ref().ok().filter(|report| report.converged())?;
        Some(self.setup_seconds + report.times.solve + report.times.verify)
    }

    fn json(&self) -> Value {
        let own = json!({
            "preconditioner": self.name, "setup_seconds": self.setup_seconds, "preconditioner_entries": self.entries,
            "bytes": self.bytes, "seconds": self.seconds(),
        });
        let of_solve = match &self.outcome {
            Ok(report) => json!({
                "stop": report.stop.to_string(), "iterations": report.iterations,
                "solve_seconds": report.times.solve + report.times.verify,
                "us_per_iteration": per_iteration(report), "relative_residual": report.relative_residual(),
            }),
            Err(why) => json!({ "error": why }),
        };
        common::merged([own, of_solve])
    }

    fn print(&self) {
        let name = &self.name;
        match &self.outcome {
            Ok(report) => say!(
                "{name:<18} {:>9.3} {:>10} {:>8} {:>9.3} {:>9.1} {:>9.2}  {:>9}  {}",
                self.setup_seconds,
                self.entries,
                report.iterations,
                report.times.solve + report.times.verify,
                per_iteration(report),
                self.bytes as f64 / f64::from(1 << 20),
                self.seconds().map_or("-".into(), |seconds| format!("{seconds:.3}")),
                report.stop
            ),
            Err(why) => say!("{name:<18} {why}"),
        }
    }
}

fn per_iteration(report: &Report) -> f64 {
    1e6 * report.times.solve / report.iterations.max(1) as f64
}

/// The name of the fastest to an answer.
fn best(candidates: &[Candidate]) -> Option<(&str, f64)> {
    let seconds = candidates.iter().filter_map(|one| Some((&*one.name, one.seconds()?)));
    seconds.min_by(|a, b| a.1.total_cmp(&b.1))
}

impl Comparison {
    /// The last line of the table.
    pub(crate) fn print_best(&self) {
        match best(&self.candidates) {
            Some((name, seconds)) => say!("fastest: {name}, {seconds:.3} s with its set-up"),
            None if self.not_tried.is_empty() => say!("no candidate converged"),
            None => say!("no candidate converged yet; {} were not tried", self.not_tried.len()),
        }
    }

    pub(crate) fn json(&self) -> Value {
        let rows: Vec<Value> = self.candidates.iter().map(Candidate::json).collect();
        let fastest = best(&self.candidates).map(|(name, _)| name);
        json!({ "candidates": rows, "fastest": fastest, "not_tried": self.not_tried })
    }
}

/// The residual over the iterations with each.
pub(crate) fn draw(title: String, candidates: &[Candidate]) -> Chart<'static> {
    let line = |one: &Candidate| {
        let report = one.outcome.as_ref().ok()?;
        Some((one.name.clone(), relative(report, &report.history, report.rhs_norm)))
    };
    Chart {
        title,
        across: "iteration",
        up: "|b - Ax| / |b|",
        lines: candidates.iter().filter_map(line).collect(),
        ..Default::default()
    }
}
