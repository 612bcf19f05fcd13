//! Diagonal operators, Jacobi's preconditioner among them.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use super::linear::{LinearOperator, SharedOperator, Structure, cannot_update, check_shape, into_shared};
use crate::device::Device;
use crate::error::{Error, Result, same_length};
use crate::number::Real;
use crate::sparse::{AsCsr, Csr};
use crate::vector::Vector;

/// `diag(d)`: multiplies element by element. If it was made from a matrix, [`LinearOperator::update_values`] takes
/// the diagonal of new values; from the first update on it holds a second vector.
///
/// ```
/// use residuum::operator::Diagonal;
/// use residuum::sparse::gallery;
/// use residuum::{Device, Format, Matrix, Method, Setup, Solver, Stopping, Vector};
///
/// let device = Device::best()?;
/// let a = gallery::poisson_2d::<f64>(20, 0.0)?;
/// let m = Diagonal::inverse_of(&device, &a)?; // the preconditioner of Jacobi
/// let matrix = Matrix::new(&device, &a, Format::Auto)?;
/// let b = Vector::filled(&device, a.rows(), 1.0)?;
/// let mut x = Vector::zeros(&device, a.cols())?;
/// let setup = Setup::new(Method::Cg, Stopping::for_precision::<f64>()).with_preconditioner(m);
/// assert!(Solver::with(&matrix, setup)?.solve(&b, &mut x)?.converged());
/// # Ok::<(), residuum::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Diagonal<T: Real> {
    device: Device,
    len: usize,
    entries: Arc<RwLock<Entries<T>>>,
    origin: Option<Origin>,
}

/// Entries, which may be replaced between solves.
#[derive(Debug)]
struct Entries<T: Real> {
    now: Arc<Vector<T>>,
    largest: f64,
    /// Entries of before, whose memory the next ones take if no solver holds them any more.
    before: Option<Arc<Vector<T>>>,
}

/// Matrix that a diagonal was made from.
#[derive(Clone, Copy, Debug)]
struct Origin {
    /// Checksum of the places of its entries.
    pattern: u64,
    of: Of,
}

/// Numbers of a matrix that are inverted.
#[derive(Clone, Copy, Debug)]
enum Of {
    Diagonal,
    ColumnNorms,
}

impl Of {
    /// The inverses, and the largest. Fails with the place of a number that has none.
    fn inverses<T: Real>(self, a: &Csr<T>) -> Result<(Vec<T>, f64)> {
        let (numbers, what) = match self {
            Self::Diagonal => {
                (a.diagonal(), "a diagonal entry too small to divide by, or missing: no Jacobi preconditioner")
            }
            Self::ColumnNorms => {
                (a.column_norms(), "the norm of the column of this number is too small to divide by")
            }
        };
        // The unknown of a column that is 0 stays what it is.
        let inverse = |d: &f64| match self {
            Self::ColumnNorms if *d == 0.0 => T::default(),
            _ => T::from_f64(1.0 / d),
        };
        let entries: Vec<T> = numbers.iter().map(inverse).collect();
        if let Some(i) = entries.iter().position(|v| !v.is_finite()) {
            return Err(Error::Structure { what: what.into(), row: Some(i) });
        }
        let largest = entries.iter().map(|v| v.to_f64().abs()).fold(0.0, f64::max);
        Ok((entries, largest))
    }
}

impl<T: Real> Diagonal<T> {
    /// The diagonal matrix of `entries`. Waits for the device, to learn the largest of them.
    ///
    /// # Errors
    /// Errors of [`Vector`].
    pub fn new(entries: Vector<T>) -> Result<Self> {
        let largest = if entries.is_empty() { 0.0 } else { entries.max()?.abs().max(entries.min()?.abs()) };
        Ok(Self::of(entries, largest, None))
    }

    /// Jacobi's preconditioner: the inverse of the diagonal of `a`.
    ///
    /// # Errors
    /// [`Error::Shape`] for a matrix that is not square, [`Error::Structure`] for one with a zero on its diagonal or an
    /// entry whose inverse overflows.
    pub fn inverse_of(device: &Device, a: &(impl AsCsr<T> + ?Sized)) -> Result<Self> {
        let a = &*a.as_csr()?;
        same_length("columns of a square matrix", a.rows(), a.cols())?;
        Self::inverse(device, a, Of::Diagonal)
    }

    /// The inverses of the norms of the columns of `a`, 0 for columns that are 0: Jacobi's preconditioner for least squares.
    ///
    /// # Errors
    /// [`Error::Structure`] with the number of a column whose inverse norm overflows.
    pub fn inverse_of_norms(device: &Device, a: &(impl AsCsr<T> + ?Sized)) -> Result<Self> {
        let a = &*a.as_csr()?;
        Self::inverse(device, a, Of::ColumnNorms)
    }

    fn inverse(device: &Device, a: &Csr<T>, of: Of) -> Result<Self> {
        let (entries, largest) = of.inverses(a)?;
        let origin = Origin { pattern: a.pattern(), of };
        Ok(Self::of(Vector::from_slice(device, &entries)?, largest, Some(origin)))
    }

    fn of(entries: Vector<T>, largest: f64, origin: Option<Origin>) -> Self {
        let (device, len) = (entries.device().clone(), entries.len());
        let entries = Entries { now: Arc::new(entries), largest, before: None };
        Self { device, len, entries: Arc::new(RwLock::new(entries)), origin }
    }

    /// Held for one call, so that entries may be replaced between any two. A writer that panicked left whole vectors.
    fn read(&self) -> RwLockReadGuard<'_, Entries<T>> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner)
    }
}

into_shared!(Diagonal cloned);

impl<T: Real> LinearOperator<T> for Diagonal<T> {
    fn device(&self) -> &Device {
        &self.device
    }
    fn rows(&self) -> usize {
        self.len
    }
    fn cols(&self) -> usize {
        self.len
    }
    fn apply(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        check_shape((self.len, self.len), x, y)?;
        // Not held during the product: a thread that waits for others may take up another product.
        let now = Arc::clone(&self.read().now);
        y.product_of(&now, x)
    }
    fn apply_adjoint(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        self.apply(x, y)
    }
    fn has_adjoint(&self) -> bool {
        true
    }
    fn norm_bound(&self) -> Option<f64> {
        Some(self.read().largest)
    }
    fn structure(&self) -> Structure<'_, T> {
        Structure::Diagonal(Arc::clone(&self.read().now))
    }
    fn bytes(&self) -> u64 {
        let vectors = 1 + usize::from(self.read().before.is_some());
        (vectors * self.len * T::PRECISION.bytes()) as u64
    }
    fn update_values(&self, a: &Csr<T>) -> Result<()> {
        let Some(Origin { pattern, of }) = self.origin else { return Err(cannot_update()) };
        a.check_pattern(pattern)?;
        let (new, largest) = of.inverses(a)?;
        let mut held = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        // A second vector, so that a solver sees either these entries or those.
        let mut entries = match held.before.take() {
            Some(before) => before,
            None => Arc::new(Vector::zeros(&self.device, self.len)?),
        };
        match Arc::get_mut(&mut entries) {
            Some(entries) => entries.write(&new)?,
            None => entries = Arc::new(Vector::from_slice(&self.device, &new)?),
        }
        held.before = Some(std::mem::replace(&mut held.now, entries));
        held.largest = largest;
        Ok(())
    }
}
