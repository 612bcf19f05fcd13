//! Compressed rows whose product is shared out by entries, and not by rows.

use super::linear::{LinearOperator, SharedOperator, check_shape, into_shared, no_adjoint};
use crate::backend::linear::split::SplitMatrix;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::number::{Real, per_number};
use crate::sparse::{AsCsr, Csr};
use crate::vector::Vector;

/// Compressed rows. In a product each work-group takes 1024 entries, whatever rows they belong to. It is made for
/// matrices with a few rows that are far longer than the others.
/// [`Format::CsrAdaptive`](crate::Format::CsrAdaptive) gives a whole group to each long row instead.
///
/// The entries are numbered from the first of the matrix; 1024 of them are a part, and 32 of these a piece. The sum of a row is made of three kinds of
/// sums, each in ascending order: of the row's entries in one piece, of these over the pieces of one part, and of those over the parts. So every
/// device gives the same bits with the same [`Accumulation`](crate::Accumulation). A row within one piece has the bits of the
/// [sequential](crate::Format::sequential) formats; others may not.
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
/// Two launches, one for up to 1024 entries. `(s + 4) nnz + 4 rows` bytes for a matrix of `nnz` entries of `s` bytes, `s (rows + cols)` for the vectors.
/// Rows without entries are work of the group of their neighbours: many side by side are set to 0 by one group. On the host a row is added by one
/// thread. Solvers do not fuse it with the rest of an iteration.
///
/// # Source
/// dedecek-2013, figure 5.3. There a group adds its share of a row atomically to the result. Here it keeps its share, and a second launch adds
/// the shares.
#[derive(Debug)]
pub struct SplitRows<T: Real> {
    device: Device,
    matrix: SplitMatrix<T>,
    transposed: Option<SplitMatrix<T>>,
    norm: f64,
}

per_number! {
    fn stored<T>(device: &Device, a: &Csr<T>, transposed: bool) -> Result<SplitRows<T>> = SplitRows::stored_here;
    fn multiply<T>(device: &Device, a: &SplitMatrix<T>, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> = multiply_here;
}

fn multiply_here<T: Real>(device: &Device, a: &SplitMatrix<T>, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
    check_shape((a.rows, a.cols), x, y)?;
    device.backend().split::<T>().split_product(device.run::<T>(), a, x.memory(), y.memory_mut())
}

impl<T: Real> SplitRows<T> {
    /// Copies the entries of `a`.
    ///
    /// # Errors
    /// [`Error::NotFinite`]; [`Error::Structure`] for 2^32 entries or more, and for a matrix of `sprs` with a dimension beyond 32 bits;
    /// [`Error::Memory`]; [`Error::Unsupported`] for `f64` on a device without it.
    pub fn new(device: &Device, a: &(impl AsCsr<T> + ?Sized)) -> Result<Self> {
        stored(device, &*a.as_csr()?, false)
    }

    /// [`SplitRows::new`] with a copy of the transposed, for least squares.
    ///
    /// # Errors
    /// As [`SplitRows::new`].
    pub fn with_transpose(device: &Device, a: &(impl AsCsr<T> + ?Sized)) -> Result<Self> {
        stored(device, &*a.as_csr()?, true)
    }

    fn stored_here(device: &Device, a: &Csr<T>, transposed: bool) -> Result<Self> {
        device.require(T::PRECISION)?;
        if let Some(index) = a.first_not_finite() {
            return Err(Error::NotFinite { what: "the matrix".into(), index });
        }
        if a.nnz() > u32::MAX as usize {
            let what = format!("{} entries are more than 32 bits count", a.nnz());
            return Err(Error::Structure { what, row: None });
        }
        let matrix = Self::divided(device, a, 0)?;
        let transposed =
            if transposed { Some(Self::divided(device, &a.plausible_transpose()?, matrix.bytes())?) } else { None };
        Ok(Self { device: device.clone(), matrix, transposed, norm: a.frobenius().to_f64() })
    }

    /// The matrix on the device, if there is room beside what is `held`.
    fn divided(device: &Device, a: &Csr<T>, held: u64) -> Result<SplitMatrix<T>> {
        device.check_memory(held, &SplitMatrix::<T>::plan(a.rows(), a.nnz()))?;
        SplitMatrix::new(&device.backend().place(), a)
    }
}

into_shared!(SplitRows);

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

    fn launches(&self, _columns: usize) -> usize {
        self.matrix.parts.min(2)
    }
}
