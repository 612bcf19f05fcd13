//! One column of a solve, as the driver keeps its books.

use super::history::History;
use super::iteration::Iteration;
use super::stop::Stop;
use crate::solver::engine::Status;
use crate::solver::stopping::Course;
use crate::state::stop;

/// Bookkeeping of one column between starts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Column {
    /// Iterations of earlier starts.
    pub(crate) base: usize,
    /// Iterations whose history was fetched since the last start.
    pub(crate) seen: usize,
    pub(crate) history: History,
    /// Squared norms at the last start: the true ones.
    pub(crate) verified: [f64; 2],
    /// Squared norms at the start before, and their excess.
    pub(crate) last: [f64; 2],
    pub(crate) last_excess: f64,
    /// Squared norms of the answer that is kept, and its iteration.
    pub(crate) best: [f64; 2],
    pub(crate) best_iteration: usize,
    /// Iteration of the answer that is returned.
    pub(crate) answer: usize,
    pub(crate) stop: Option<Stop>,
    /// True if the recurrence broke down: the verdict if starting over does not help.
    pub(crate) broken: bool,
    pub(crate) recurrence: f64,
    pub(crate) restarts: usize,
    /// The iteration since the last start whose residual was the least, and that, squared, by the recurrence.
    pub(crate) lowest: (usize, f64),
    /// Iterations since the last start.
    pub(crate) stretch: usize,
    /// Why it stopped is known, and verified.
    pub(crate) settled: bool,
    /// Iteration since the last start whose answer would be a better one.
    pub(crate) better: Option<usize>,
    /// Course of the rule that may end the solve.
    pub(crate) course: Course,
}

impl Column {
    /// Why it stopped, if starting over gained nothing.
    pub(crate) fn no_gain(&self) -> Stop {
        if self.broken { Stop::Breakdown } else { Stop::Stagnated }
    }

    /// Tells if norms verified by a start gained enough over those of the start before to go on.
    pub(crate) fn gained(&self, norms: [f64; 2], excess: f64) -> bool {
        if excess.is_finite() {
            return excess <= LEAST_GAIN * self.last_excess;
        }
        // Limits of 0 are beyond reach: the norms themselves count. One that stays 0 is no gain.
        (0..2).any(|which| norms[which] < LEAST_GAIN * self.last[which])
    }

    /// Tells if less than a sixteenth of the digits that were wanted are gained since the first start.
    pub(crate) fn is_slow(&self, c: usize, method: &dyn Iteration) -> bool {
        let least = self.history.iter().map(|norms| method.excess(c, *norms)).fold(f64::INFINITY, f64::min);
        // Square roots are the same everywhere; logarithms and powers need not be.
        let sixteenth = self.last_excess.sqrt().sqrt().sqrt().sqrt();
        self.last_excess.is_finite() && least * sixteenth > self.last_excess
    }

    /// Takes over what the recurrence came to since the last start.
    pub(crate) fn end(&mut self, status: &Status) {
        // The host may take an answer that is older than the last iteration looked at.
        let later = self.seen.saturating_sub(status.iteration + 1);
        self.history.truncate(self.history.len() - later);
        self.seen -= later;
        self.base += status.iteration;
        self.stretch = status.iteration;
        self.lowest = self.history.lowest().unwrap_or((0, f64::INFINITY));
        self.recurrence = self.history.last().map_or(f64::NAN, |norms| norms[0]);
        self.broken = status.code == stop::BREAKDOWN;
    }

    /// The iteration to go back to from a failed end, if one halves the residual: what the recurrence says of it is
    /// believed as far as what it says of the end is true.
    pub(crate) fn better_iteration(&self, end: f64) -> Option<usize> {
        let failed = match self.stop {
            None | Some(Stop::Converged | Stop::LeastSquares | Stop::Semiconverged) => false,
            Some(Stop::TimeLimit | Stop::Cancelled | Stop::Slow) => false,
            Some(_) => true,
        };
        let drift = if end.is_finite() { (end.sqrt() - self.recurrence.sqrt()).abs() } else { 0.0 };
        let (iteration, square) = self.lowest;
        // A NaN is never the smaller one.
        let least = end.min(self.best[0]);
        (failed && iteration > 0 && square.sqrt() + drift < (LEAST_GAIN * least).sqrt()).then_some(iteration)
    }
}

/// A restart must at least halve the norm it verifies, or the attainable accuracy is reached.
const LEAST_GAIN: f64 = 0.25;
