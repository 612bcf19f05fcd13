//! The only iteration loop: it queues launches, reads status and history, verifies answers, stops, and records the
//! history.

use std::mem::take;
use std::ops::{ControlFlow, Range};
use std::time::Instant;

use super::column::Column;
use super::history::REPORTED;
use super::iteration::{Iteration, Outcome};
use super::stop::Stop;
use crate::error::Result;
use crate::solver::engine::Status;
use crate::solver::stopping::{Answer, Judge, Seen, Stopping};
use crate::state::{HISTORY, stop};

/// Progress of a solve, for progress bars and early ends.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// Iterations done.
    pub iteration: usize,
    /// Most iterations.
    pub max_iterations: usize,
    /// `|r|` of the recurrence, the largest over all right-hand sides.
    pub residual: f64,
    /// `|s|` for least squares, the largest over all right-hand sides.
    pub gradient: Option<f64>,
}

/// Called at every look at the device; `Break` ends the solve as [`Stop::Cancelled`].
pub type Observer<'a> = dyn FnMut(&Progress) -> ControlFlow<()> + 'a;

/// Norms before anything was computed.
const BEYOND: [f64; 2] = [f64::INFINITY; 2];

/// Iterations queued between two looks, if a quarter of those done is not more.
const LOOK_AHEAD: usize = 64;
/// Iterations queued between two looks where those beyond the end are done for nothing.
const SHORT_SIGHT: usize = 4;

/// Time after which the host looks again, if iterations are long.
const LOOK_SECONDS: f64 = 0.02;

/// Time that a solve takes, without what goes into building programs on first use.
struct Clock {
    begin: Instant,
    built: f64,
    limit: Option<f64>,
}

impl Clock {
    fn start(method: &dyn Iteration, stopping: &Stopping) -> Self {
        let limit = stopping.time_limit.map(|limit| limit.as_secs_f64());
        Self { begin: Instant::now(), built: method.build_seconds(), limit }
    }

    fn working(&self, method: &dyn Iteration) -> f64 {
        (self.begin.elapsed().as_secs_f64() - (method.build_seconds() - self.built)).max(0.0)
    }

    fn is_over(&self, method: &dyn Iteration) -> bool {
        self.limit.is_some_and(|limit| self.working(method) >= limit)
    }

    /// Tells if all that was done can be done again in the time that is left.
    fn leaves_as_much_again(&self, method: &dyn Iteration) -> bool {
        self.limit.is_none_or(|limit| 2.0 * self.working(method) < limit)
    }
}

/// Runs `method` until every column has stopped and its answer is verified.
///
/// The recurrence's word is never taken for it: when it says converged, the method is started over from the answer at
/// hand, which recomputes the true residual, and only a test passed by that ends the solve. So does every other end:
/// the numbers reported are those of a fresh start with no iterations left.
///
/// The seconds returned are those of the iterations, without building and verifying.
///
/// Every loop ends: a start that gains nothing over the one before it is the last, each start may use up what is left of the
/// iterations, and the time is looked at after each batch of iterations and each start but the first.
pub(crate) fn run(
    method: &mut dyn Iteration,
    stopping: &Stopping,
    observer: &mut Observer<'_>,
) -> Result<(Vec<Outcome>, f64)> {
    let fresh = Column { last: BEYOND, last_excess: f64::INFINITY, best: BEYOND, ..Column::default() };
    let mut columns = vec![fresh; method.columns()];
    let mut verifying = 0.0;
    let clock = Clock::start(method, stopping);
    for restarts in 0usize.. {
        let budget: Vec<usize> =
            columns.iter().map(|c| if c.stop.is_some() { 0 } else { stopping.max_iterations - c.base }).collect();
        let before = clock.working(method);
        method.start(&budget)?;
        let statuses = method.status()?;
        record(method, &mut columns, &statuses, true);
        verifying += clock.working(method) - before;
        let late = restarts > 0 && clock.is_over(method);
        let again = clock.leaves_as_much_again(method);
        judge_start(&mut columns, &statuses, (late, again), stopping.answer, method)?;
        if columns.iter().all(|c| c.stop.is_some()) {
            break;
        }
        if columns.iter().zip(&statuses).any(|(c, status)| c.stop.is_some() && status.code == stop::RUNNING) {
            // The answers of columns that gain nothing more stay as they are while the others go on.
            let rest = columns.iter().zip(&budget).map(|(c, budget)| if c.stop.is_some() { 0 } else { *budget });
            method.start(&rest.collect::<Vec<_>>())?;
        }
        let most = budget.into_iter().max().unwrap_or(0);
        let patience = stopping.patience.filter(|patience| restarts == 0 && *patience > 0);
        iterate(method, stopping, (most, patience), &clock, &mut columns, observer)?;
    }
    go_back(method, stopping, &clock, &mut columns)?;
    let iterating = (clock.working(method) - verifying).max(0.0);
    let outcome = |(c, column)| outcome(method, stopping, c, column);
    let outcomes = columns.into_iter().enumerate().map(outcome).collect();
    Ok((outcomes, iterating))
}

fn outcome(method: &dyn Iteration, stopping: &Stopping, c: usize, column: Column) -> Outcome {
    let given = |norms| method.in_given_units(c, norms);
    let norm = |value: f64| given([value * value, 0.0])[0];
    let rule = stopping.rule.map(|rule| column.course.into_curve(rule, norm));
    let [true_residual, gradient] = given(column.verified);
    let (history_every, history) = column.history.thinned(REPORTED);
    Outcome {
        stop: column.stop.unwrap_or(Stop::MaxIterations),
        iterations: column.base,
        answer: column.answer,
        residual: given([column.recurrence, 0.0])[0],
        true_residual,
        gradient,
        history: history.into_iter().map(given).collect(),
        history_every,
        restarts: column.restarts.saturating_sub(1),
        rule,
    }
}

/// Takes the history up to the last test. A start's entry repeats, with the true norm, the last one of the
/// recurrence before it, and takes its place.
fn record(method: &dyn Iteration, columns: &mut [Column], statuses: &[Status], fresh: bool) {
    for (c, column) in columns.iter_mut().enumerate().filter(|(_, column)| !column.settled) {
        let tested = statuses[c].iteration;
        if fresh {
            column.history.truncate(column.history.len().saturating_sub(1));
            column.history.begin();
            column.seen = 0;
            column.restarts += 1;
        }
        if tested + 1 > column.seen {
            column.history.extend((column.seen..=tested).map(|k| method.norms(c, k)));
            column.seen = tested + 1;
        }
    }
}

/// Judges a start: the true residual, and with it whether the last verdict of the recurrence stands. `late` is after the time
/// allowed; `again` is whether there is time to do again what was done.
fn judge_start(
    columns: &mut [Column],
    statuses: &[Status],
    (late, again): (bool, bool),
    answer: Answer,
    method: &mut dyn Iteration,
) -> Result<()> {
    let (mut kept, mut restored) = (Vec::new(), Vec::new());
    let residual_decides = answer != Answer::Last && method.residual_decides();
    let last_if_cut_short = answer == Answer::ByMethod && method.lowers_error();
    for (c, column) in columns.iter_mut().enumerate().filter(|(_, column)| !column.settled) {
        column.verified = column.history.last().unwrap_or([f64::NAN; 2]);
        if column.restarts == 1 {
            column.recurrence = column.verified[0];
        }
        let order = method.compare(column.verified, column.best);
        // A rule chooses by other things than the residual.
        let chosen = column.stop == Some(Stop::Semiconverged);
        let cut_short = matches!(column.stop, Some(Stop::Cancelled | Stop::TimeLimit));
        let chosen = chosen || (last_if_cut_short && cut_short);
        let worse = !column.verified[0].is_finite() || (residual_decides && !chosen && order.is_gt());
        let fails = worse && column.best[0].is_finite();
        if fails {
            column.stop = column.stop.or(Some(column.no_gain()));
        } else if column.stop.is_none() {
            let excess = method.excess(c, column.verified);
            column.stop = match statuses[c].code {
                stop::CONVERGED => Some(Stop::Converged),
                stop::GRADIENT_CONVERGED => Some(Stop::LeastSquares),
                stop::ITERATIONS_DONE => Some(Stop::MaxIterations),
                stop::NOT_FINITE => Some(Stop::NotFinite),
                stop::REGULARISED => Some(Stop::Regularised),
                _ if column.gained(column.verified, excess) => late.then_some(Stop::TimeLimit),
                _ if method.is_rounding(c, column.verified)? => Some(Stop::LeastSquares),
                _ => Some(column.no_gain()),
            };
            (column.last, column.last_excess) = (column.verified, excess);
        }
        column.settled = column.stop.is_some();
        // The answer of the last start is still the one kept: it can be gone on from once more.
        column.better = column.better_iteration(column.verified[0]).filter(|_| again && residual_decides);
        if column.better.is_some() {
            continue;
        }
        column.answer = column.base;
        if fails {
            column.verified = column.best;
            column.answer = column.best_iteration;
            restored.push(c);
        } else if order.is_lt() && answer != Answer::Last {
            column.best = column.verified;
            column.best_iteration = column.base;
            // Nothing goes back to an answer that is settled: it stays where it is.
            if !column.settled {
                kept.push(c);
            }
        }
    }
    method.restore(&restored)?;
    for c in restored {
        let column = &mut columns[c];
        let gave_up = matches!(column.stop, Some(Stop::Stagnated | Stop::Breakdown));
        if gave_up && method.is_rounding(c, column.verified)? {
            column.stop = Some(Stop::LeastSquares);
        }
    }
    method.keep(&kept)
}

/// Brings columns that failed back to the best iterate since their last start: by going there again, since the same
/// start gives the same bits. That costs a failed solve up to its time once more, and the others neither time nor memory.
fn go_back(method: &mut dyn Iteration, stopping: &Stopping, clock: &Clock, columns: &mut [Column]) -> Result<()> {
    let ends: Vec<f64> = columns.iter().map(|c| c.verified[0]).collect();
    let nothing = vec![0; columns.len()];
    let mut goals: Vec<Option<usize>> = columns.iter().map(|c| c.better).collect();
    // Should the recurrence have lied, the better one of start and end is gone to instead.
    for last in [false, true] {
        let wanted: Vec<usize> = (0..columns.len()).filter(|c| goals[*c].is_some()).collect();
        if wanted.is_empty() {
            break;
        }
        method.restore(&wanted)?;
        let budget: Vec<usize> = goals.iter().map(|goal| goal.unwrap_or(0)).collect();
        method.start(&budget)?;
        method.status()?;
        let most = budget.into_iter().max().unwrap_or(0);
        let mut reached = 0;
        while reached < most {
            let next = most.min(reached + LOOK_AHEAD);
            queue(method, stopping, reached..next)?;
            method.status()?;
            reached = next;
            if clock.is_over(method) {
                break;
            }
        }
        method.start(&nothing)?;
        method.status()?;
        if clock.is_over(method) {
            // It took longer than before: the iterate that was reached counts if it is better than the last start.
            // A NaN is no better one.
            let is_better = |c: usize| method.norms(c, 0)[0] <= columns[c].best[0];
            let worse: Vec<usize> = wanted.iter().copied().filter(|c| !is_better(*c)).collect();
            if !worse.is_empty() {
                worse.iter().for_each(|c| goals[*c] = Some(0));
                method.restore(&worse)?;
                method.start(&nothing)?;
                method.status()?;
            }
        }
        for c in wanted {
            let column = &mut columns[c];
            column.verified = method.norms(c, 0);
            column.answer = column.best_iteration + goals[c].unwrap_or(0).min(reached);
            let lied = !(last || clock.is_over(method) || column.verified[0] <= ends[c].min(column.best[0]));
            goals[c] = lied.then_some(if ends[c] <= column.best[0] { column.stretch } else { 0 });
        }
    }
    Ok(())
}

/// Queues iterations, with exact residuals if they are wanted.
fn queue(method: &mut dyn Iteration, stopping: &Stopping, indices: Range<usize>) -> Result<()> {
    let every = stopping.exact_every;
    if every == 0 {
        return method.steps(indices);
    }
    let mut from = indices.start;
    while from < indices.end {
        let to = indices.end.min((from / every + 1) * every);
        method.steps(from..to)?;
        if to.is_multiple_of(every) {
            method.exact(to)?;
        }
        from = to;
    }
    Ok(())
}

/// Iterates from a start, up to `most` times, until the device says that every column has stopped, or until all that have not are slow
/// after the iterations of `patience`.
fn iterate(
    method: &mut dyn Iteration,
    stopping: &Stopping,
    (most, patience): (usize, Option<usize>),
    clock: &Clock,
    columns: &mut [Column],
    observer: &mut Observer<'_>,
) -> Result<()> {
    let mut queued = 0;
    let mut batch = stopping.check_every.min(if method.stops_at_once() { HISTORY / 2 } else { 2 });
    let judge = stopping.rule.map(Judge::new);
    if let Some(judge) = &judge {
        columns.iter_mut().filter(|column| column.stop.is_none()).for_each(|column| {
            column.course = take(&mut column.course).begun_anew(column.base);
        });
        if judge.is_asked(0) {
            let statuses = method.status()?;
            ask(method, judge, columns, &statuses)?;
        }
    }
    loop {
        let begin = clock.working(method);
        let looked_at = patience.filter(|patience| queued < *patience).unwrap_or(most);
        let asked = judge.as_ref().map_or(most, |judge| judge.next(queued));
        batch = batch.min(looked_at.min(asked).min(most) - queued).max(1);
        queue(method, stopping, queued..queued + batch)?;
        queued += batch;
        let statuses = method.status()?;
        record(method, columns, &statuses, false);
        if let Some(judge) = judge.as_ref().filter(|judge| judge.is_asked(queued)) {
            ask(method, judge, columns, &statuses)?;
        }
        // Short solves are looked at soon, long ones rarely: a look costs a round trip to the device. Long iterations are
        // looked at often: what is queued beyond the end is wasted, and an observer wants to be heard.
        let in_time = (LOOK_SECONDS * batch as f64 / (clock.working(method) - begin)) as usize;
        let ahead = match (method.stops_at_once(), method.ends_by_host()) {
            (true, _) => HISTORY,
            (_, true) => SHORT_SIGHT,
            _ => LOOK_AHEAD.max(queued / 4),
        };
        batch = (2 * batch).min(ahead).min(stopping.check_every).min(HISTORY / 2).min(in_time.max(1));
        let norms: Vec<[f64; 2]> = columns
            .iter()
            .enumerate()
            .map(|(c, column)| method.in_given_units(c, column.history.last().unwrap_or([f64::NAN; 2])))
            .collect();
        let largest = |which: usize| norms.iter().map(|norms| norms[which]).fold(0.0, f64::max);
        let progress = Progress {
            iteration: columns.iter().zip(&statuses).map(|(c, s)| c.base + s.iteration).max().unwrap_or(0),
            max_iterations: stopping.max_iterations,
            residual: largest(0),
            gradient: Some(largest(1)).filter(|g| *g > 0.0),
        };
        let cancelled = observer(&progress).is_break();
        let running = |c: usize| statuses[c].code == stop::RUNNING && !columns[c].course.ended;
        let mut still = (0..columns.len()).filter(|c| running(*c)).peekable();
        let ended = still.peek().is_none();
        let late = clock.is_over(method);
        let slow = patience == Some(queued) && still.all(|c| columns[c].is_slow(c, method));
        if !ended && !cancelled && !late && !slow {
            continue;
        }
        let early = match (cancelled, slow) {
            (true, _) => Stop::Cancelled,
            (_, true) => Stop::Slow,
            _ => Stop::TimeLimit,
        };
        return end(method, columns, &statuses, early);
    }
}

/// Ends the iterations since a start: `early` is why those end that still run.
fn end(method: &mut dyn Iteration, columns: &mut [Column], statuses: &[Status], early: Stop) -> Result<()> {
    let mut held = Vec::new();
    for (c, (column, status)) in columns.iter_mut().zip(statuses).enumerate() {
        if column.stop.is_some() {
            continue;
        }
        if column.course.ended {
            held.push(c);
            column.end(&Status { code: stop::RUNNING, iteration: column.course.best });
            column.stop = Some(Stop::Semiconverged);
            continue;
        }
        column.end(status);
        column.stop = match status.code {
            stop::RUNNING => Some(early),
            stop::INDEFINITE => Some(Stop::Indefinite),
            stop::INDEFINITE_PRECONDITIONER => Some(Stop::IndefinitePreconditioner),
            stop::NOT_FINITE => Some(Stop::NotFinite),
            stop::ITERATIONS_DONE => Some(Stop::MaxIterations),
            // Converged, says the recurrence, or broken down: the next start will tell what it came to.
            _ => None,
        };
    }
    method.take_held(&held)
}

/// Asks the rule about the present iterates, and keeps those that are the best so far.
fn ask(method: &mut dyn Iteration, judge: &Judge, columns: &mut [Column], statuses: &[Status]) -> Result<()> {
    let count = columns.len();
    let is_asked = |c: usize| {
        let Column { stop, course, .. } = &columns[c];
        statuses[c].code == stop::RUNNING && stop.is_none() && !course.ended
    };
    let asked: Vec<usize> = (0..count).filter(|c| is_asked(*c)).collect();
    let residuals = if judge.wants_residuals() && !asked.is_empty() { method.residuals()? } else { Vec::new() };
    let mut better = Vec::new();
    for c in asked {
        let norms = columns[c].history.last().unwrap_or([f64::NAN; 2]);
        let (iteration, rhs) = (statuses[c].iteration, method.rhs(c));
        let seen = Seen { iteration, norms, rhs, residuals: &residuals, column: (count, c) };
        if judge.judge(&mut columns[c].course, &seen) {
            better.push(c);
        }
    }
    method.hold(&better)
}
