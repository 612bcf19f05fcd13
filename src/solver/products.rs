//! Where a solver's products come from: fused with the rest of an iteration, or made by an operator.

use super::scaling::rescaled;
use crate::backend::cgnr::Part;
use crate::backend::product::Stored;
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
pub(super) enum Products<'a, T: Real> {
    /// The launches of the method multiply by themselves.
    Fused(&'a Stored<T>),
    /// The operator multiplies; `stored` tells the launches to find the product in their result.
    External { operator: Box<dyn LinearOperator<T> + 'a>, stored: Box<Stored<T>> },
}

impl<'a, T: Real> Products<'a, T> {
    /// Products with `2^exponent operator`, or with its transposed, for `columns` vectors.
    fn external(
        device: &Device,
        operator: &'a dyn LinearOperator<T>,
        exponent: i32,
        columns: usize,
        shape: (usize, usize),
    ) -> Result<Self> {
        let stored = Box::new(Stored::external(&device.place(), shape.0, shape.1)?);
        Ok(Self::External { operator: rescaled(operator, exponent, columns)?, stored })
    }

    /// Products with `2^exponent operator` for `columns` vectors: fused where that is a matrix as it is. One whose rays are traced is
    /// asked for its products where there is one column: they take so long that a launch more does not matter.
    pub(super) fn of(operator: &'a dyn LinearOperator<T>, exponent: i32, columns: usize) -> Result<Self> {
        match fused(operator, exponent, columns) {
            Some(matrix) => Ok(Self::Fused(matrix.forward())),
            None => {
                Self::external(operator.device(), operator, exponent, columns, (operator.rows(), operator.cols()))
            }
        }
    }

    /// The same with the transposed of `operator`.
    ///
    /// # Errors
    /// [`Error::Option`](crate::Error::Option) where there is none.
    pub(super) fn of_transposed(
        operator: &'a dyn LinearOperator<T>,
        exponent: i32,
        columns: usize,
    ) -> Result<Self> {
        if let Some(matrix) = operator.as_matrix() {
            // Asked of every matrix: one that scatters has no transposed copy.
            let transposed = matrix.transposed()?;
            if fused(operator, exponent, columns).is_some() {
                return Ok(Self::Fused(transposed));
            }
        }
        if !operator.has_adjoint() {
            return Err(no_adjoint());
        }
        Self::external(operator.device(), operator, exponent, columns, (operator.cols(), operator.rows()))
    }

    pub(super) fn stored(&self) -> &Stored<T> {
        match self {
            Self::Fused(stored) => stored,
            Self::External { stored, .. } => stored,
        }
    }

    /// `y = A x`, if the launches that follow do not multiply by themselves.
    pub(super) fn apply(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        match self {
            Self::Fused(_) => Ok(()),
            Self::External { operator, .. } => operator.apply(x, y),
        }
    }

    /// `y = A'x` likewise.
    pub(super) fn apply_adjoint(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        match self {
            Self::Fused(_) => Ok(()),
            Self::External { operator, .. } => operator.apply_adjoint(x, y),
        }
    }

    /// Launches that a product takes beside the one that sums it up.
    pub(super) fn launches(&self) -> usize {
        match self {
            Self::Fused(_) => 0,
            Self::External { operator, .. } => operator.launches(),
        }
    }

    /// The parts in which an iteration is done around the product: one where it is fused.
    pub(super) fn parts(&self, first: Part, second: Part) -> [Option<Part>; 2] {
        match self {
            Self::Fused(_) => [None, Some(Part::All)],
            Self::External { .. } => [Some(first), Some(second)],
        }
    }
}
