//! The trait that every set-up method implements: its launches, and where its vectors lie.

use std::fmt::Display;
use std::ops::Range;

use super::iteration::Status;
use crate::backend::Run;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::number::{Real, Sum};
use crate::solver::method::Method;
use crate::solver::regularise::{Correction, Values};
use crate::solver::stopping::Limits;
use crate::solver::weight::ChosenWeight;
use crate::vector::Vector;

/// The inputs of one solve: `A'`, `b'` and `x'` of `scaling.rs`.
#[derive(Clone, Copy)]
pub(crate) struct Inputs<'s, T: Real> {
    pub(crate) device: &'s Device,
    pub(crate) run: Run<'s>,
    pub(crate) b: &'s Vector<T>,
}

/// Status that the host reads at a look.
pub(crate) struct Look {
    pub(crate) columns: Vec<Status>,
    /// A resident launch found that its groups do not all run at once. It has changed nothing.
    pub(crate) abandoned: bool,
}

/// The vectors and scalars of a method on one device. [`Runner`](super::runner::Runner) drives it.
pub(crate) trait Workspace<T: Real>: Send {
    /// Swaps `x` with the vector that holds the answer: before the first launch of a solve, and after the last.
    fn exchange(&mut self, x: &mut Vector<T>) -> Result<()>;

    /// The present answer.
    fn answer(&mut self) -> &mut Vector<T>;

    /// Queues a start from the present answer: the true residual, and the stopping test of iteration 0.
    fn start(&mut self, inputs: &Inputs<'_, T>, limits: &[Limits], budget: &[usize]) -> Result<()>;

    /// Queues iterations, counted from the last start, each with the stopping test after it.
    fn steps(&mut self, inputs: &Inputs<'_, T>, indices: Range<usize>) -> Result<()>;

    /// Queues a computation of the residual afresh after `done` iterations, and another stopping test. The driver asks
    /// only methods that carry a residual.
    fn exact(&mut self, _: &Inputs<'_, T>, _done: usize) -> Result<()> {
        Ok(())
    }

    /// Waits, and reads the status of every column and the history.
    fn look(&mut self, inputs: &Inputs<'_, T>, history: &mut [Sum]) -> Result<Look>;

    /// Numbers that the history holds for each column and iteration: 2, or 1 without a gradient.
    fn numbers(&self) -> usize {
        2
    }

    /// Tells if many iterations are one launch.
    fn stays_resident(&self, _: &Inputs<'_, T>) -> bool {
        false
    }

    /// Gives resident launches up, for this solve and those after it.
    fn leave_residence(&mut self) -> Result<()> {
        Ok(())
    }

    /// Tells if an answer with a larger residual than an earlier one is a worse one.
    fn residual_decides(&self) -> bool {
        true
    }

    /// Sets the point that damping pulls the answer to.
    fn set_reference(&mut self, _: &Vector<T>) -> Result<()> {
        Err(Error::Option { name: "reference", reason: "this method has no damping".into() })
    }

    /// Sets the correction of every column.
    fn set_corrections(&mut self, _: Vec<Correction>) -> Result<()> {
        Err(no_corrections("this method"))
    }

    /// Sets the least and the greatest value of each unknown, in units of the system that was given.
    fn set_bounds(&mut self, _lower: &[T], _upper: &[T]) -> Result<()> {
        Err(no_bounds())
    }

    /// `b - A x` of the last start.
    fn residual(&self) -> &Vector<T>;

    /// `b - A x` of the present answer, between two iterations. For methods that a rule about residuals may end.
    fn present_residual(&mut self, _: &Inputs<'_, T>) -> Result<&Vector<T>> {
        Err(no_residual())
    }

    /// Launches of one iteration on a device, those of operators that are no matrix included.
    fn launches(&self) -> usize;

    /// Tells if the second number of the history is the norm of a gradient.
    fn least_squares(&self) -> bool {
        false
    }

    /// Tells if the host finds out at a look that a solve has ended, so that iterations queued beyond the end are done for nothing.
    fn ends_by_host(&self) -> bool {
        false
    }

    /// Tells if the method wants to know the singular values of an operator with these values; then the next solve finds them.
    fn begin_probe(&mut self, _: Values) -> bool {
        false
    }

    /// Keeps the singular values that the last solve has found.
    fn end_probe(&mut self, _: Values) {}

    /// The weight that was chosen in the last solve of column `c`, whose system was multiplied by 2 to these powers.
    fn chosen(&self, _c: usize, _exponents: [i32; 2]) -> Option<ChosenWeight> {
        None
    }
}

/// The refusal of corrections by `method`.
pub(crate) fn no_corrections(method: impl Display) -> Error {
    Error::Option {
        name: "corrections",
        reason: format!("{method} takes none; {} do", Method::names(Method::takes_corrections)),
    }
}

/// The refusal of bounds for each unknown.
pub(crate) fn no_bounds() -> Error {
    Error::Option {
        name: "bounds",
        reason: format!("this method keeps none for each unknown; {} do", Method::names(Method::keeps_bounds)),
    }
}

/// The refusal of a rule that looks at residuals of iterates.
pub(crate) fn no_residual() -> Error {
    Error::Option { name: "rule", reason: "this method has no residual of its iterates".into() }
}
