//! Products with a matrix, and with its transposed.

use super::{Backward, Matrix, Way, multiply_with, product as multiply};
use crate::backend::linear::product::{Combine, Product, SharedMatrix, check_columns};
use crate::columns::Columns;
use crate::error::{Result, same_length};
use crate::number::Real;
use crate::vector::Vector;

impl<T: Real> Matrix<T> {
    /// `y = A x`.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) unless `x` has `cols` and `y` has `rows` elements, [`Error::DeviceMismatch`](crate::Error::DeviceMismatch).
    ///
    /// # Cost
    /// One launch; [`Matrix::product_bytes`]: in CSR `(size + 4) nnz + 4 rows` bytes of matrix unless it is packed ([`Packing`](crate::Packing)),
    /// `size (cols + rows)` bytes of vectors.
    pub fn multiply(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        self.multiply_interleaved(1, x, y)
    }

    /// [`Matrix::multiply`] for 1 to 4 columns, which share each read of the matrix.
    ///
    /// # Errors
    /// As [`Matrix::multiply`]; [`Error::Shape`](crate::Error::Shape) unless `x` and `y` have as many columns;
    /// [`Error::Option`](crate::Error::Option) for more than 4.
    pub fn multiply_columns(&self, x: &Columns<T>, y: &mut Columns<T>) -> Result<()> {
        same_length("columns of a product", x.count(), y.count())?;
        self.multiply_interleaved(x.count(), x.as_vector(), y.as_vector_mut())
    }

    /// [`Matrix::multiply_transposed`] for 1 to 4 columns, from the transposed copy.
    ///
    /// # Errors
    /// As [`Matrix::multiply_columns`] with the lengths exchanged; [`Error::Conflict`](crate::Error::Conflict) without a transposed copy.
    pub fn multiply_columns_transposed(&self, x: &Columns<T>, y: &mut Columns<T>) -> Result<()> {
        same_length("columns of a product", x.count(), y.count())?;
        self.multiply_interleaved_transposed(x.count(), x.as_vector(), y.as_vector_mut())
    }

    pub(crate) fn multiply_interleaved(&self, columns: usize, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        multiply(self, &self.forward, Way::Forward, columns, x, y)
    }

    pub(crate) fn multiply_interleaved_transposed(
        &self,
        columns: usize,
        x: &Vector<T>,
        y: &mut Vector<T>,
    ) -> Result<()> {
        multiply(self, self.transposed()?, Way::Backward, columns, x, y)
    }

    /// `y = A'x`, as [`Storage::transposed`](crate::Storage::transposed) said.
    ///
    /// # Errors
    /// As [`Matrix::multiply`] with the lengths exchanged; [`Error::Conflict`](crate::Error::Conflict) when the matrix was made without a
    /// transposed copy.
    pub fn multiply_transposed(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        match &self.transposed {
            Backward::Scatter => multiply(self, &self.forward, Way::Scatter, 1, x, y),
            _ => self.multiply_interleaved_transposed(1, x, y),
        }
    }

    /// `result = A x op y`: the sum, the difference or the product, element by element, of `A x` and a vector, in one pass. All is formed
    /// in wide arithmetic and rounded once (`clMatVec` of krueger-westermann-2003, 3.2; without `y` it is [`Matrix::multiply`], without `A`
    /// [`Vector::sum_of`] and [`Vector::product_of`]).
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) unless `x` has `cols`, `y` and `result` have `rows` elements, [`Error::DeviceMismatch`](crate::Error::DeviceMismatch).
    ///
    /// # Cost
    /// One launch; [`Matrix::product_bytes`] and `size rows` bytes for `y`.
    pub fn multiply_with(&self, x: &Vector<T>, op: Combine, y: &Vector<T>, result: &mut Vector<T>) -> Result<()> {
        multiply_with(self, x, op, y, result)
    }

    pub(super) fn multiply_with_here(
        &self,
        x: &Vector<T>,
        op: Combine,
        y: &Vector<T>,
        result: &mut Vector<T>,
    ) -> Result<()> {
        same_length("vector beside a product", self.rows, y.len())?;
        same_length("vector to multiply", self.cols, x.len())?;
        same_length("result of a product", self.rows, result.len())?;
        let (run, backend) = (self.device.run::<T>(), self.device.backend());
        let (x, y, result) = (x.memory(), y.memory(), result.memory_mut());
        let ax = Product { a: &self.forward.read(), columns: 1, x };
        backend.product().multiply_with(run, ax, op, y, result)
    }

    pub(super) fn product_here(
        &self,
        stored: &SharedMatrix<T>,
        way: Way,
        columns: usize,
        x: &Vector<T>,
        y: &mut Vector<T>,
    ) -> Result<()> {
        check_columns(columns)?;
        let stored = &*stored.read();
        let (from, to) = match way {
            Way::Forward | Way::Backward => (stored.cols, stored.rows),
            Way::Scatter => (stored.rows, stored.cols),
        };
        same_length("vector to multiply", from * columns, x.len())?;
        same_length("result of a product", to * columns, y.len())?;
        let (run, backend) = (self.device.run::<T>(), self.device.backend());
        let (x, y) = (x.memory(), y.memory_mut());
        match way {
            Way::Forward | Way::Backward => backend.product().multiply(run, Product { a: stored, columns, x }, y),
            Way::Scatter => backend.scatter().scatter(run, stored, x, y),
        }
    }
}
