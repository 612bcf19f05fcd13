//! Where a solver's products come from: fused with the rest of an iteration, or computed by an operator.

use std::sync::RwLockReadGuard;

use super::scaling::rescaled;
use crate::backend::cgnr::Part;
use crate::backend::product::{SharedMatrix, Stored};
use crate::error::Result;
use crate::number::Real;
use crate::operator::{LinearOperator, SharedOperator, Structure, no_adjoint};
use crate::vector::Vector;

/// The stored matrix by which `operator`, or its adjoint, multiplies `columns` vectors, if it is one whose products are fused. One
/// whose rays are traced is asked for its products if there is one column: they take so long that a launch more does not matter.
fn fused<T: Real>(operator: &dyn LinearOperator<T>, adjoint: bool, columns: usize) -> Option<SharedMatrix<T>> {
    match operator.structure() {
        Structure::Matrix(matrix) if columns > 1 || !matrix.traces_rays() => {
            if adjoint {
                matrix.transposed().ok().cloned()
            } else {
                Some(matrix.forward().clone())
            }
        }
        Structure::Adjoint(operator) => fused(operator, !adjoint, columns),
        _ => None,
    }
}

/// Products with one operator, or with its adjoint.
pub(super) struct Products<T: Real> {
    stored: SharedMatrix<T>,
    /// The operator that computes the products; `stored` then tells the launches to find them in their result. Without one the
    /// launches multiply by themselves.
    external: Option<SharedOperator<T>>,
}

impl<T: Real> Products<T> {
    fn new(operator: &SharedOperator<T>, adjoint: bool, exponent: i32, columns: usize) -> Result<Self> {
        if let Some(stored) = fused(&**operator, adjoint, columns).filter(|_| exponent == 0) {
            return Ok(Self { stored, external: None });
        }
        let (rows, cols) = (operator.rows(), operator.cols());
        let (rows, cols) = if adjoint { (cols, rows) } else { (rows, cols) };
        let stored = Stored::external(&operator.device().place(), rows, cols)?;
        let external = Some(rescaled(operator, exponent, columns)?);
        Ok(Self { stored: SharedMatrix::new(stored), external })
    }

    /// Products with `2^exponent operator` for `columns` vectors: fused if that is a matrix as it is.
    pub(super) fn of(operator: &SharedOperator<T>, exponent: i32, columns: usize) -> Result<Self> {
        Self::new(operator, false, exponent, columns)
    }

    /// The same with the adjoint of `operator`.
    ///
    /// # Errors
    /// [`Error::Option`](crate::Error::Option) if there is none.
    pub(super) fn of_adjoint(operator: &SharedOperator<T>, exponent: i32, columns: usize) -> Result<Self> {
        if let Some(matrix) = operator.as_matrix() {
            // Asked of every matrix: one that scatters has no transposed copy.
            matrix.transposed()?;
        }
        if !operator.has_adjoint() {
            return Err(no_adjoint());
        }
        Self::new(operator, true, exponent, columns)
    }

    /// Tells if the launches multiply by themselves.
    pub(super) fn is_fused(&self) -> bool {
        self.external.is_none()
    }

    /// The matrix that launches are given.
    pub(super) fn stored(&self) -> RwLockReadGuard<'_, Stored<T>> {
        self.stored.read()
    }

    /// `y = A x`, if the launches that follow do not multiply by themselves.
    pub(super) fn apply(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        self.external.as_ref().map_or(Ok(()), |operator| operator.apply(x, y))
    }

    /// `y = A'x` likewise.
    pub(super) fn apply_adjoint(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        self.external.as_ref().map_or(Ok(()), |operator| operator.apply_adjoint(x, y))
    }

    /// Launches that a product takes beside the one that sums it up.
    pub(super) fn launches(&self) -> usize {
        self.external.as_ref().map_or(0, |operator| operator.launches())
    }

    /// The parts in which an iteration is done around the product: one if it is fused.
    pub(super) fn parts(&self, first: Part, second: Part) -> [Option<Part>; 2] {
        if self.is_fused() { [None, Some(Part::All)] } else { [Some(first), Some(second)] }
    }
}
