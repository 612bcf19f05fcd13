//! A method as data: its vectors, scalars and sums, and the launches that make up a start and an iteration.
//!
//! A method file declares what it holds with a [`Draft`] and returns a [`Script`]. Each [`Call`] is a step of the method. Most are one launch: a
//! product ([`Product`]), an update of vectors ([`Update`]), or scalar operations alone. These begin with a program (`crate::recurrence`). A
//! product may be done in several launches ([`Apart`]). A call over a Krylov basis takes one or two ([`OverBasis`]). CGNR has calls over the
//! pixels of an image ([`OverPixels`]). Calls of kind [`Alone`] run no program. The [`engine`](super::engine) runs scripts on any device.

mod calls;
mod draft;
mod launch;
mod multiplication;
mod subsets;
mod terms;
mod vectors;
mod work;

pub(crate) use calls::{
    Alone, CgnrKernels, CgnrParts, ElementFormula, Field, Gather, OfElements, OfPenalty, OverBasis, OverImage,
    OverPixels, StepLimit,
};
pub(crate) use draft::Draft;
pub(crate) use launch::{Apart, Call, CgParts, Fused, Launch};
pub(crate) use subsets::{distinct_lengths, subset_rows, subsets};
pub(crate) use terms::{InverseSums, Neighbours, Terms, Weight};
pub(crate) use vectors::{B, Operand, Preconditioning, Space, VectorId, X};
pub(crate) use work::{Product, Update, Work};

use crate::recurrence::Scalar;

/// A method: what is queued when it starts from `X`, and in each iteration.
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// Makes something else of the start guess, before the first start of a solve alone: a later start goes on from an answer.
    pub(crate) begin: Vec<Call>,
    pub(crate) start: Vec<Call>,
    /// Iteration `k` queues `steps[k % steps.len()]`. The last call of each makes the stopping test.
    pub(crate) steps: Vec<Vec<Call>>,
    /// Brings the answer up to date, if iterations leave it behind. Each column that has something to add is to run then;
    /// the program stops those that have not.
    pub(crate) finish: Vec<Call>,
    /// After iteration `k`, `exact[k % exact.len()]` computes the residual afresh and turns the direction after it; it ends
    /// with the stopping test like an iteration. Empty for methods that carry no residual.
    pub(crate) exact: Vec<Vec<Call>>,
    /// True if the second number of the history is the norm of a gradient.
    pub(crate) least_squares: bool,
    /// The reference point of a damped problem, which the user may set.
    pub(crate) reference: Option<VectorId>,
    /// Terms that depend on regularizations.
    pub(crate) terms: Option<Terms>,
    /// The weight of damping is chosen while it runs.
    pub(crate) damping: Option<Damping>,
    /// The vector that the first product of the start makes, between iterations.
    pub(crate) residual: Residual,
    /// Vectors that are 0 when a start begins.
    pub(crate) zeroed: Vec<VectorId>,
    /// Conjugate gradients for one column, which have kernels of their own.
    pub(crate) cg: Option<CgParts>,
    /// Regularised CGNR, whose calls over pixels these are.
    pub(crate) cgnr: Option<CgnrParts>,
}

impl Script {
    /// The first product of the start, which makes the residual, and the vector that holds it.
    pub(crate) fn first_product(&self) -> Option<(&Call, VectorId)> {
        self.start.iter().find_map(|call| match call.launch {
            Launch::Product { y, .. } => Some((call, y)),
            _ => None,
        })
    }
}

/// Use that the iterations of a script make of the vector in which the start has the residual.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Residual {
    /// It holds other things.
    #[default]
    Lost,
    /// It holds the residual of the present iterate.
    Held,
    /// None: the residual can be computed there at any time.
    Afresh,
}

/// Part of a script whose damping the host chooses ([`weight`](crate::solver::weight::choice)): a bidiagonalisation with both bases kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Damping {
    /// `-damp²`, 0 until it is chosen.
    pub(crate) minus_square: Scalar,
    /// `x - x_0`, 0 when a solve begins.
    pub(crate) change: VectorId,
}
