//! Weights of the regularization of each right-hand side of CGNR, and which of the two buffers of `x` holds the answer.

use crate::backend::script::Edges;
use crate::recurrence::Scalar;
use crate::solver::regularise::{Regularization, weights_of};
use crate::solver::script::{CgnrParts, VectorId};

/// Parts of a CGNR script, and what depends on the regularizations of its columns.
pub(crate) struct Regularised {
    pub(crate) parts: CgnrParts,
    regularizations: Vec<Regularization>,
    /// Number, in pairs of vectors, of the answer as it was last looked at.
    pub(crate) parity: usize,
}

impl Regularised {
    pub(crate) fn new(parts: CgnrParts, regularizations: Vec<Regularization>) -> Self {
        Self { parts, regularizations, parity: 0 }
    }

    /// Takes other regularizations, of an image that is known to be theirs.
    pub(crate) fn set_regularizations(&mut self, image: Edges, regularizations: Vec<Regularization>) {
        (self.parts.image, self.regularizations) = (image, regularizations);
    }

    /// The scalars of column `c` in the units of a solve.
    pub(crate) fn scalars(&self, c: usize, exponents: [i32; 2]) -> impl Iterator<Item = (Scalar, f64)> {
        let weights = weights_of(&self.regularizations[c].scaled(exponents));
        let first = self.parts.weights.0;
        (first..).map(Scalar).zip(weights)
    }

    /// Tells if nothing stands beside the misfit.
    pub(crate) fn is_misfit(&self) -> bool {
        self.regularizations.iter().all(|regularization| *regularization == Regularization::none())
    }

    /// The vector that holds the answer, as it was last looked at.
    pub(crate) fn answer(&self) -> VectorId {
        self.parts.x[self.parity]
    }

    /// The vector that holds its residual; `resides` tells if iterations are done in resident launches.
    pub(crate) fn residual(&self, resides: bool) -> VectorId {
        let changes_place = self.parts.kernels.halves || resides;
        self.parts.r[if changes_place { self.parity } else { 0 }]
    }
}
