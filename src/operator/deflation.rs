//! Orthogonal projection that takes one direction out.

use std::sync::Arc;

use super::linear::{LinearOperator, check_shape};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::number::{Real, per_number};
use crate::vector::Vector;

/// `P = I - v v' / (v'v)`: takes the direction of `v` out of a vector.
///
/// With the null vector of a singular matrix (ones, for a grid without fixed values), `P A P` is a system for which `P b` has a
/// solution, the one orthogonal to `v`: `p.clone().times(&a)?.times(p)?`.
///
/// # Cost
/// Held: `v`. A product reads 4 vectors and writes 2, in four launches, and waits for the device.
///
/// Source: Y. Saad, "Iterative methods for sparse linear systems", 2nd ed. 2003, section 1.12 (projectors).
#[derive(Clone, Debug)]
pub struct Deflation<T: Real> {
    /// The direction, of norm 1.
    direction: Arc<Vector<T>>,
}

per_number! {
    fn apply<T>(this: &Deflation<T>, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> = Deflation::apply_here;
}

impl<T: Real> Deflation<T> {
    /// The projection along `direction`.
    ///
    /// # Errors
    /// [`Error::Option`] for a direction whose norm is 0 or not finite; those of [`Vector`].
    pub fn new(mut direction: Vector<T>) -> Result<Self> {
        let norm = direction.norm2()?;
        let inverse = T::from_f64(1.0 / norm);
        if norm > 0.0 && norm.is_finite() && inverse.is_finite() {
            direction.scale(inverse)?;
            return Ok(Self { direction: Arc::new(direction) });
        }
        Err(Error::Option { name: "direction", reason: format!("its norm is {norm}: it has no direction") })
    }

    fn apply_here(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        check_shape((self.direction.len(), self.direction.len()), x, y)?;
        let share = self.direction.dot(x)?;
        y.copy_from(x)?;
        y.axpby(T::from_f64(-share), &self.direction, T::from_f64(1.0))
    }
}

impl<T: Real> LinearOperator<T> for Deflation<T> {
    fn device(&self) -> &Device {
        self.direction.device()
    }
    fn rows(&self) -> usize {
        self.direction.len()
    }
    fn cols(&self) -> usize {
        self.direction.len()
    }
    fn apply(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        apply(self, x, y)
    }
    fn apply_adjoint(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        self.apply(x, y)
    }
    fn has_adjoint(&self) -> bool {
        true
    }
    fn norm_bound(&self) -> Option<f64> {
        Some(1.0)
    }
    fn bytes(&self) -> u64 {
        (self.direction.len() * T::PRECISION.bytes()) as u64
    }
    fn launches(&self, _columns: usize) -> usize {
        4
    }
}
