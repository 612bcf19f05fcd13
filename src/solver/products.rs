//! Where a solver's products come from: fused with the rest of an iteration, or made by an operator.

use super::scaling::rescaled;
use crate::backend::{AnyStored, Part, Stored, Vocabulary, stray};
use crate::device::Device;
use crate::error::Result;
use crate::matrix::Matrix;
use crate::number::Real;
use crate::operator::{LinearOperator, no_adjoint};
use crate::vector::Vector;

/// The matrix whose products are fused with the rest of an iteration, if `2^exponent operator` is one.
pub(super) fn fused<T: Real>(
    operator: &dyn LinearOperator<T>,
    exponent: i32,
    columns: usize,
) -> Option<&Matrix<T>> {
    operator.as_matrix().filter(|matrix| exponent == 0 && (columns > 1 || !matrix.traces_rays()))
}

/// Products with one operator, or with its transposed.
pub(super) enum Products<'a, B: Vocabulary, T: Real> {
    /// The words of the vocabulary multiply by themselves.
    Fused(&'a Stored<B, T>),
    /// The operator multiplies; `stored` tells the words to find the product in their result.
    MadeBy { operator: Box<dyn LinearOperator<T> + 'a>, stored: Stored<B, T> },
}

impl<'a, B: Vocabulary, T: Real> Products<'a, B, T> {
    fn fused(backend: &B, device: &Device, matrix: &'a AnyStored<T>) -> Result<Self> {
        backend.stored(matrix).map(Self::Fused).ok_or_else(|| stray("the matrix", device))
    }

    /// Products with `2^exponent operator`, or with its transposed, for `columns` vectors.
    fn made_by(
        backend: &B,
        operator: &'a dyn LinearOperator<T>,
        exponent: i32,
        columns: usize,
        shape: (usize, usize),
    ) -> Result<Self> {
        let stored = Stored::outside(backend, shape.0, shape.1)?;
        Ok(Self::MadeBy { operator: rescaled(operator, exponent, columns)?, stored })
    }

    /// Products with `2^exponent operator` for `columns` vectors: fused where that is a matrix as it is. One whose rays are traced is
    /// asked for its products where there is one column: they take so long that a launch more does not matter.
    pub(super) fn of(
        backend: &B,
        operator: &'a dyn LinearOperator<T>,
        exponent: i32,
        columns: usize,
    ) -> Result<Self> {
        match fused(operator, exponent, columns) {
            Some(matrix) => Self::fused(backend, operator.device(), matrix.forward()),
            None => Self::made_by(backend, operator, exponent, columns, (operator.rows(), operator.cols())),
        }
    }

    /// The same with the transposed of `operator`.
    ///
    /// # Errors
    /// [`Error::Option`](crate::Error::Option) where there is none.
    pub(super) fn of_transposed(
        backend: &B,
        operator: &'a dyn LinearOperator<T>,
        exponent: i32,
        columns: usize,
    ) -> Result<Self> {
        if let Some(matrix) = operator.as_matrix() {
            // Asked of every matrix: one that scatters has no transposed copy.
            let transposed = matrix.transposed()?;
            if fused(operator, exponent, columns).is_some() {
                return Self::fused(backend, operator.device(), transposed);
            }
        }
        if !operator.has_adjoint() {
            return Err(no_adjoint());
        }
        Self::made_by(backend, operator, exponent, columns, (operator.cols(), operator.rows()))
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
