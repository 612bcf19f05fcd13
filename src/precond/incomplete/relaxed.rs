//! Solves with incomplete factors by a number of Jacobi sweeps: products with the triangles, in which no row waits for another.
//!
//! ```text
//!   M = (I + N) D (I + V),   N strictly lower, V strictly upper
//!   (I + N) y = x:   y = x at first, then k times  y = x - N y
//! ```
//!
//! Row `i` depends on row `j` if `n_ij` is not 0. The solve is exact if `k` is at least the length of the longest chain of rows of
//! which each depends on the one before. With `V = N'` the preconditioner is symmetric, and positive definite, for every `k`.
//!
//! Source: E. Chow, A. Patel, "Fine-grained parallel incomplete LU factorization", SIAM J. Sci. Comput. 37 (2015), section 2.5; H. Anzt,
//! E. Chow, J. Dongarra, "Iterative sparse triangular solves for preconditioning", Euro-Par 2015.

use std::sync::{Mutex, PoisonError};

use super::Factorisation;
use crate::backend::linear::product::{Combine, Product, SharedMatrix};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::matrix::Matrix;
use crate::number::{Real, per_number};
use crate::operator::{Diagonal, LinearOperator, check_shape};
use crate::sparse::{Csr, Format};
use crate::vector::Vector;

#[derive(Debug)]
pub(super) struct Relaxed<T: Real> {
    /// `N`, of Cholesky with its transposed.
    lower: Matrix<T>,
    /// `V`, unless it is `N'`.
    upper: Option<Matrix<T>>,
    /// `D^-1`.
    pivots: Diagonal<T>,
    sweeps: usize,
    /// Vectors in between, for one product at a time.
    scratch: Mutex<[Vector<T>; 3]>,
}

per_number! {
    fn apply<T>(this: &Relaxed<T>, x: &Vector<T>, z: &mut Vector<T>) -> Result<()> = Relaxed::apply_here;
}

impl<T: Real> Relaxed<T> {
    /// Solves with the factors together in `factors`, `D + L D + U`, of this kind, by `sweeps` sweeps.
    pub(super) fn new(device: &Device, factors: &Csr<T>, kind: Factorisation, sweeps: usize) -> Result<Self> {
        if sweeps == 0 {
            return Err(Error::Option { name: "sweeps", reason: "no sweeps solve nothing".into() });
        }
        let n = factors.rows();
        let pivots = factors.diagonal();
        let inverses: Vec<T> = pivots.iter().map(|pivot| T::from_f64(pivot.recip())).collect();
        if let Some(row) = inverses.iter().position(|v| !v.is_finite()) {
            let what = format!("pivot {:e} of incomplete factors is too small to divide by", pivots[row]);
            return Err(Error::Structure { what, row: Some(row) });
        }
        let triangle = |before: bool| {
            Csr::from_rows(n, n, |i, row| {
                let (columns, values) = factors.row(i);
                for (j, value) in columns.iter().zip(values) {
                    let k = *j as usize;
                    let (inside, pivot) = if before { (k < i, pivots[k]) } else { (k > i, pivots[i]) };
                    if inside {
                        row.push((*j, T::from_f64(value.to_f64() / pivot)));
                    }
                }
            })
        };
        let (lower, upper) = match kind {
            Factorisation::Cholesky => (Matrix::with_transpose(device, &triangle(true)?, Format::Auto)?, None),
            Factorisation::Lu => {
                let upper = Matrix::new(device, &triangle(false)?, Format::Auto)?;
                (Matrix::new(device, &triangle(true)?, Format::Auto)?, Some(upper))
            }
        };
        let pivots = Diagonal::new(Vector::from_slice(device, &inverses)?)?;
        let vector = || Vector::zeros(device, n);
        let scratch = Mutex::new([vector()?, vector()?, vector()?]);
        Ok(Self { lower, upper, pivots, sweeps, scratch })
    }

    fn apply_here(&self, x: &Vector<T>, z: &mut Vector<T>) -> Result<()> {
        check_shape((self.rows(), self.rows()), x, z)?;
        // Each product overwrites what another, perhaps one that panicked, left.
        let mut scratch = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        let [one, other, middle] = &mut *scratch;
        self.solve(self.lower.forward(), x, one, other)?;
        self.pivots.apply(one, middle)?;
        let upper = match &self.upper {
            None => self.lower.transposed()?,
            Some(upper) => upper.forward(),
        };
        self.solve(upper, middle, z, one)
    }

    /// `y` with `(I + A) y = x` nearly, by sweeps that `other` takes part in.
    fn solve(&self, a: &SharedMatrix<T>, x: &Vector<T>, y: &mut Vector<T>, other: &mut Vector<T>) -> Result<()> {
        let device = self.device();
        let (run, products, a) = (device.run::<T>(), device.backend().product::<T>(), a.read());
        for k in 0..self.sweeps {
            // The last goes into `y`.
            let into_y = (self.sweeps - k) % 2 == 1;
            let (from, into) = if into_y { (&*other, &mut *y) } else { (&*y, &mut *other) };
            let from = if k == 0 { x } else { from };
            let product = Product { a: &a, columns: 1, x: from.memory() };
            products.multiply_with(run, product, Combine::From, x.memory(), into.memory_mut())?;
        }
        Ok(())
    }
}

impl<T: Real> LinearOperator<T> for Relaxed<T> {
    fn device(&self) -> &Device {
        self.lower.device()
    }
    fn rows(&self) -> usize {
        self.lower.rows()
    }
    fn cols(&self) -> usize {
        self.lower.rows()
    }
    fn apply(&self, x: &Vector<T>, z: &mut Vector<T>) -> Result<()> {
        apply(self, x, z)
    }
    fn bytes(&self) -> u64 {
        let vectors = 4 * self.rows() * T::PRECISION.bytes();
        self.lower.bytes() + self.upper.as_ref().map_or(0, Matrix::bytes) + vectors as u64
    }
    fn launches(&self, _columns: usize) -> usize {
        2 * self.sweeps + 1
    }
}
