//! Matrices by rows whose products are divided by entries.

use super::{LinearOperator, SharedOperator, check_shape, no_adjoint};
use crate::backend::split::{self as operations, SplitMatrix};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::number::{Real, per_number};
use crate::sparse::AsCsr;
use crate::vector::Vector;

/// Compressed rows whose product gives every group of a device as many entries, however they are spread over the rows. For matrices with a few
/// rows that are far longer than the others; [`Format::CsrAdaptive`](crate::Format::CsrAdaptive) gives a whole group to each of those instead.
///
/// The entries, counted from the first of the matrix, stand in parts of 1024 and in these in pieces of 32. A row adds its entries in a piece,
/// then its pieces in a part, then its parts, each in order. So the bits are the same on every device. They differ from those of a stored matrix
/// for rows that lie in several pieces.
///
/// ```
/// use residuum::operator::{LinearOperator, SplitRows};
/// use residuum::{Csr, Device, Vector};
///
/// // Ones in the first row, and on the diagonal of the others.
/// let n = 5000;
/// let a = Csr::from_rows(n, n, |i, row| match i {
///     0 => row.extend((0..n as u32).map(|j| (j, 1.0))),
///     _ => row.push((i as u32, 1.0)),
/// })?;
/// let device = Device::best()?;
/// let a = SplitRows::new(&device, &a)?;
/// let x = Vector::filled(&device, n, 2.0)?;
/// let mut y = Vector::zeros(&device, n)?;
/// a.apply(&x, &mut y)?;
/// assert_eq!(y.to_vec()?[..2], [10_000.0, 2.0]);
/// # Ok::<(), residuum::Error>(())
/// ```
///
/// # Cost
/// Two launches. `(s + 4) nnz + 4 rows` bytes for a matrix of `nnz` entries of `s` bytes, `s (rows + cols)` for the vectors.
///
/// # Source
/// dedecek-2013, figure 5.3, which adds atomically what groups have of one row. Here they keep it, and a second launch adds it.
#[derive(Debug)]
pub struct SplitRows<T: Real> {
    device: Device,
    matrix: SplitMatrix<T>,
    transposed: Option<SplitMatrix<T>>,
    norm: f64,
}

per_number! {
    fn multiply<T>(device: &Device, a: &SplitMatrix<T>, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> = multiply_here;
}

fn multiply_here<T: Real>(device: &Device, a: &SplitMatrix<T>, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
    check_shape((a.rows, a.cols), x, y)?;
    operations::on::<T>(device.backend()).split_product(device.run::<T>(), a, x.memory(), y.memory_mut())
}

impl<T: Real> SplitRows<T> {
    /// Copies the entries of `a`.
    ///
    /// # Errors
    /// [`Error::Structure`] for 2^32 entries or more; [`Error::Memory`]; [`Error::Unsupported`] for `f64` on a device without it.
    pub fn new(device: &Device, a: &(impl AsCsr<T> + ?Sized)) -> Result<Self> {
        device.require(T::PRECISION)?;
        let a = &*a.as_csr()?;
        if a.nnz() > u32::MAX as usize {
            let what = format!("{} entries are more than 32 bits count", a.nnz());
            return Err(Error::Structure { what, row: None });
        }
        let matrix = SplitMatrix::new(&device.backend().place(), a)?;
        Ok(Self { device: device.clone(), matrix, transposed: None, norm: a.frobenius().to_f64() })
    }

    /// [`SplitRows::new`] with a copy of the transposed, for least squares.
    ///
    /// # Errors
    /// As [`SplitRows::new`].
    pub fn with_transposed(device: &Device, a: &(impl AsCsr<T> + ?Sized)) -> Result<Self> {
        let a = &*a.as_csr()?;
        let forward = Self::new(device, a)?;
        let transposed = SplitMatrix::new(&device.backend().place(), &a.transpose())?;
        Ok(Self { transposed: Some(transposed), ..forward })
    }
}

impl<T: Real> From<SplitRows<T>> for SharedOperator<T> {
    fn from(split: SplitRows<T>) -> Self {
        split.shared()
    }
}

impl<T: Real> LinearOperator<T> for SplitRows<T> {
    fn device(&self) -> &Device {
        &self.device
    }

    fn rows(&self) -> usize {
        self.matrix.rows
    }

    fn cols(&self) -> usize {
        self.matrix.cols
    }

    fn apply(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        multiply(&self.device, &self.matrix, x, y)
    }

    fn apply_adjoint(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        multiply(&self.device, self.transposed.as_ref().ok_or_else(no_adjoint)?, x, y)
    }

    fn has_adjoint(&self) -> bool {
        self.transposed.is_some()
    }

    fn norm_bound(&self) -> Option<f64> {
        Some(self.norm)
    }

    fn bytes(&self) -> u64 {
        self.matrix.bytes() + self.transposed.as_ref().map_or(0, SplitMatrix::bytes)
    }

    fn launches(&self) -> usize {
        2
    }
}
