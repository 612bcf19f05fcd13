//! The root of an approximate inverse that is kept as incomplete factors `L L'`: `W = L'^-1`, `W W' = (L L')^-1`.
//!
//! ```text
//!   L = (D + L_1 D) D^-1/2 with a strictly lower L_1:   W x = (I + L_1')^-1 D^-1/2 x,   W'x = D^1/2 (D + L_1 D)^-1 x
//! ```

use std::sync::{Mutex, PoisonError};

use crate::device::Device;
use crate::error::{Error, Result};
use crate::number::Real;
use crate::operator::{LinearOperator, check_shape};
use crate::precond::sweep::Sweep;
use crate::sparse::Csr;
use crate::vector::Vector;

#[derive(Debug)]
pub(super) struct Root<T: Real> {
    sweep: Sweep<T>,
    /// `D^1/2` and `D^-1/2`.
    scales: [Vector<T>; 2],
    scratch: Mutex<Vector<T>>,
}

impl<T: Real> Root<T> {
    /// The root of what `sweep` solves with, which was made of `factors`.
    pub(super) fn new(sweep: Sweep<T>, factors: &Csr<T>) -> Result<Self> {
        let device = sweep.device().clone();
        let roots: Vec<f64> = factors.diagonal().into_iter().map(f64::sqrt).collect();
        let vector = |scale: &dyn Fn(f64) -> f64| -> Result<Vector<T>> {
            let entries: Vec<T> = roots.iter().map(|root| T::from_f64(scale(*root))).collect();
            match entries.iter().position(|entry| !entry.is_finite()) {
                None => Vector::from_slice(&device, &entries),
                Some(row) => {
                    let what = "a pivot of incomplete factors is too small to divide by its root".into();
                    Err(Error::Structure { what, row: Some(row) })
                }
            }
        };
        let scales = [vector(&|root| root)?, vector(&|root| 1.0 / root)?];
        let scratch = Mutex::new(Vector::zeros(&device, sweep.rows())?);
        Ok(Self { sweep, scales, scratch })
    }
}

impl<T: Real> LinearOperator<T> for Root<T> {
    fn device(&self) -> &Device {
        self.sweep.device()
    }
    fn rows(&self) -> usize {
        self.sweep.rows()
    }
    fn cols(&self) -> usize {
        self.sweep.rows()
    }
    fn apply(&self, x: &Vector<T>, z: &mut Vector<T>) -> Result<()> {
        check_shape((self.rows(), self.rows()), x, z)?;
        z.product_of(&self.scales[1], x)?;
        self.sweep.back(x, z)
    }
    fn apply_adjoint(&self, x: &Vector<T>, z: &mut Vector<T>) -> Result<()> {
        check_shape((self.rows(), self.rows()), x, z)?;
        let mut between = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        self.sweep.forward(x, &mut between)?;
        z.product_of(&self.scales[0], &between)
    }
    fn has_adjoint(&self) -> bool {
        true
    }
    fn bytes(&self) -> u64 {
        self.sweep.bytes() + 3 * (self.rows() * T::PRECISION.bytes()) as u64
    }
    fn launches(&self, columns: usize) -> usize {
        self.sweep.launches(columns) / 2 + 1
    }
}
