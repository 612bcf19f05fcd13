//! Jacobi's preconditioner: the diagonal, or the norms of the columns for least squares.

use super::kind::{LeastSquares, Made, PreconditionerKind, Source, Symmetry};
use crate::error::Result;
use crate::number::Real;
use crate::operator::Diagonal;
use crate::sparse::Csr;

/// [`Diagonal::inverse_of`] and [`Diagonal::inverse_of_norms`] by name.
#[derive(Clone, Copy)]
pub(super) struct Jacobi;

impl PreconditionerKind for Jacobi {
    fn name(&self) -> &'static str {
        "jacobi"
    }

    fn symmetry(&self) -> Symmetry {
        Symmetry::Kept
    }

    fn least_squares(&self) -> LeastSquares {
        LeastSquares::Any
    }

    fn most_entries<T: Real>(&self, a: &Csr<T>) -> Option<usize> {
        Some(a.rows())
    }

    fn bytes<T: Real>(&self, entries: usize, _rows: usize) -> u64 {
        (2 * entries * T::PRECISION.bytes()) as u64
    }

    fn build<T: Real>(&self, Source { device, a, .. }: Source<'_, T>) -> Result<Made<T>> {
        Ok(Made::new(Diagonal::inverse_of(device, a)?, a.rows()))
    }

    fn build_for_least_squares<T: Real>(&self, Source { device, a, .. }: Source<'_, T>) -> Result<Made<T>> {
        Ok(Made::new(Diagonal::inverse_of_norms(device, a)?, a.cols()))
    }
}
