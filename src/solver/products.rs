//! Where a solver's products come from: fused with the rest of an iteration, or made by an operator.

use crate::backend::{AnyStored, Part, Stored, Vocabulary, stray};
use crate::device::Device;
use crate::error::Result;
use crate::operator::LinearOperator;
use crate::real::Real;
use crate::vector::Vector;

/// Products with one operator, or with its transposed.
pub(super) enum Products<'a, B: Vocabulary, T: Real> {
    /// The words of the vocabulary multiply by themselves.
    Fused(&'a Stored<B, T>),
    /// The operator multiplies; `stored` tells the words to find the product in their result.
    MadeBy { operator: &'a dyn LinearOperator<T>, stored: Stored<B, T> },
}

impl<'a, B: Vocabulary, T: Real> Products<'a, B, T> {
    pub(super) fn fused(backend: &B, device: &Device, matrix: &'a AnyStored<T>) -> Result<Self> {
        backend.stored(matrix).map(Self::Fused).ok_or_else(|| stray("the matrix", device))
    }

    pub(super) fn made_by(backend: &B, operator: &'a dyn LinearOperator<T>) -> Result<Self> {
        let stored = Stored::outside(backend, operator.rows(), operator.cols())?;
        Ok(Self::MadeBy { operator, stored })
    }

    /// Products with the transposed of `operator`.
    pub(super) fn made_by_transposed(backend: &B, operator: &'a dyn LinearOperator<T>) -> Result<Self> {
        let stored = Stored::outside(backend, operator.cols(), operator.rows())?;
        Ok(Self::MadeBy { operator, stored })
    }

    pub(super) fn stored(&self) -> &Stored<B, T> {
        match self {
            Self::Fused(stored) => stored,
            Self::MadeBy { stored, .. } => stored,
        }
    }

    /// `y = A x`, if the words that follow do not multiply by themselves.
    pub(super) fn apply(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        match self {
            Self::Fused(_) => Ok(()),
            Self::MadeBy { operator, .. } => operator.apply(x, y),
        }
    }

    /// `y = A'x` likewise.
    pub(super) fn apply_adjoint(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        match self {
            Self::Fused(_) => Ok(()),
            Self::MadeBy { operator, .. } => operator.apply_adjoint(x, y),
        }
    }

    /// Launches that a product takes beside the word that sums it up.
    pub(super) fn launches(&self) -> usize {
        match self {
            Self::Fused(_) => 0,
            Self::MadeBy { operator, .. } => operator.launches(),
        }
    }

    /// The parts in which an iteration is done around the product: one where it is fused.
    pub(super) fn parts(&self, first: Part, second: Part) -> [Option<Part>; 2] {
        match self {
            Self::Fused(_) => [None, Some(Part::All)],
            Self::MadeBy { .. } => [Some(first), Some(second)],
        }
    }
}
