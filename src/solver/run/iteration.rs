//! One method under way, as the loop sees it.

use std::cmp::Ordering;
use std::ops::Range;

use super::stop::Stop;
use crate::error::Result;
use crate::solver::engine::Status;
use crate::solver::stopping::RuleCurve;

/// A method in the middle of a solve: what the driver needs of it.
pub(crate) trait Iteration {
    /// Right-hand sides solved at once.
    fn columns(&self) -> usize;
    /// Queues a start from the present answer: the true residual, and the stopping test of iteration 0. Column `c`
    /// may do at most `budget[c]` iterations.
    fn start(&mut self, budget: &[usize]) -> Result<()>;
    /// Queues iterations (counted from the last start), each with the stopping test after it.
    fn steps(&mut self, indices: Range<usize>) -> Result<()>;
    /// Queues a computation of the residual afresh after `done` iterations, and another stopping test. Asked for only
    /// if the method carries a residual ([`Stopping::exact_every`]).
    fn exact(&mut self, _done: usize) -> Result<()> {
        Ok(())
    }
    /// Waits; what each column has come to.
    fn status(&mut self) -> Result<Vec<Status>>;
    /// Tells if iterations queued beyond the end cost nothing.
    fn stops_at_once(&self) -> bool {
        false
    }
    /// Tells if the host alone finds out that a solve has ended, at a look.
    fn ends_by_host(&self) -> bool {
        false
    }
    /// Squared norms of residual and gradient of iteration `k` of column `c` since the last start, as they were when
    /// [`Iteration::status`] was asked.
    fn norms(&self, c: usize, k: usize) -> [f64; 2];
    /// Ratio of the squared norms of column `c` to their limits; at most 1 is converged.
    fn excess(&self, c: usize, norms: [f64; 2]) -> f64;
    /// Keeps the present answers of these columns as the best ones so far.
    fn keep(&mut self, columns: &[usize]) -> Result<()>;
    /// Brings the answers kept for these columns back.
    fn restore(&mut self, columns: &[usize]) -> Result<()>;
    /// Tells if an answer with a larger residual than an earlier one is a worse one.
    fn residual_decides(&self) -> bool;
    /// Tells if each iterate has a smaller error than the one before, whatever its residual.
    fn lowers_error(&self) -> bool;
    /// Keeps the present answers of these columns as those that a rule may return to; those of other columns stay.
    fn hold(&mut self, columns: &[usize]) -> Result<()>;
    /// Brings the answers held for these columns back.
    fn take_held(&mut self, columns: &[usize]) -> Result<()>;
    /// The residuals of the present answers of all columns, interleaved. Waits.
    fn residuals(&mut self) -> Result<Vec<f64>>;
    /// `|b|` of column `c`, in the units of the norms.
    fn rhs(&self, c: usize) -> f64;
    /// Compares two answers by the squared norms of their residuals and gradients; the lesser is the better one.
    fn compare(&self, norms: [f64; 2], others: [f64; 2]) -> Ordering;
    /// Tells if the gradient of column `c`, of the squared norms, is as small as rounding lets it be. Waits.
    fn is_rounding(&mut self, c: usize, norms: [f64; 2]) -> Result<bool>;
    /// Norms of residual and gradient of column `c` in units of the system that was given, from their squares.
    fn in_given_units(&self, c: usize, norms: [f64; 2]) -> [f64; 2];
    /// Seconds spent so far building programs.
    fn build_seconds(&self) -> f64;
}

/// Outcome of one column; norms in units of the system that was given.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) stop: Stop,
    pub(crate) iterations: usize,
    /// Iteration of the answer.
    pub(crate) answer: usize,
    pub(crate) residual: f64,
    pub(crate) true_residual: f64,
    pub(crate) gradient: f64,
    /// Squared norms of every [`Outcome::history_every`]th iteration, and of the last one.
    pub(crate) history: Vec<[f64; 2]>,
    pub(crate) history_every: usize,
    pub(crate) restarts: usize,
    pub(crate) rule: Option<RuleCurve>,
}
