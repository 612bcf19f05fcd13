//! A penalty of `x` as one of `y`, where `x = x_0 + M y`: for least squares with a preconditioner `M` from the right.
//!
//! ```text
//!   R_y(y) = R(x_0 + M y),   gradient M'F(x, x),   curvature M'H(x) M v
//! ```
//!
//! `F(x, v) = H(x) v` is the curvature of `R` at `x` along `v`, and `F(x, x)` its gradient, as
//! [`Penalty`](crate::Penalty) has them.
//!
//! Cost, beside the penalty: a product with `M` and one with `M'` for a gradient, one more with `M` for a
//! curvature; 4 vectors as long as `x`.

use std::sync::Arc;

use super::penalty::{Penalty, SharedPenalty, lock};
use crate::error::Result;
use crate::number::Real;
use crate::operator::{LinearOperator, SharedOperator, estimate_norm};
use crate::vector::Vector;

/// Products that estimate the norm of `M`.
const POWERS: usize = 10;

/// A penalty of `y`.
pub(crate) struct Substituted<T: Real> {
    penalty: SharedPenalty<T>,
    preconditioner: SharedOperator<T>,
    /// `x_0`.
    origin: Vector<T>,
    x: Vector<T>,
    /// `M v`.
    direction: Vector<T>,
    /// Answer of the penalty about `x`.
    asked: Vector<T>,
    /// A bound if `M` knows one of its norm, else an estimate: it scales the system, and tells what rounding leaves of gradients.
    norm_bound: f64,
}

impl<T: Real> Substituted<T> {
    /// Vectors held.
    pub(crate) const VECTORS: usize = 4;

    pub(crate) fn new(penalty: &SharedPenalty<T>, preconditioner: &SharedOperator<T>) -> Result<Self> {
        let vector = || Vector::zeros(preconditioner.device(), preconditioner.rows());
        let bound = lock(penalty).norm_bound();
        let norm = match preconditioner.norm_bound() {
            _ if bound == 0.0 => 0.0,
            Some(norm) => norm,
            None => estimate_norm(&**preconditioner, POWERS)?,
        };
        let of_y = bound * norm * norm;
        Ok(Self {
            penalty: Arc::clone(penalty),
            preconditioner: preconditioner.clone(),
            origin: vector()?,
            x: vector()?,
            direction: vector()?,
            asked: vector()?,
            norm_bound: if of_y.is_finite() { of_y } else { 0.0 },
        })
    }

    /// Takes another `x_0`.
    pub(crate) fn set_origin(&mut self, x: &Vector<T>) -> Result<()> {
        self.origin.copy_from(x)
    }

    /// `x = x_0 + M y`.
    fn substitute(&mut self, y: &Vector<T>) -> Result<()> {
        let one = T::from_f64(1.0);
        self.preconditioner.apply(y, &mut self.x)?;
        self.x.axpby(one, &self.origin, one)
    }
}

impl<T: Real> Penalty<T> for Substituted<T> {
    fn gradient(&mut self, y: &Vector<T>, out: &mut Vector<T>) -> Result<()> {
        self.substitute(y)?;
        lock(&self.penalty).gradient(&self.x, &mut self.asked)?;
        self.preconditioner.apply_adjoint(&self.asked, out)
    }

    fn has_curvature(&self) -> bool {
        lock(&self.penalty).has_curvature()
    }

    fn curvature(&mut self, y: &Vector<T>, v: &Vector<T>, out: &mut Vector<T>) -> Result<()> {
        self.substitute(y)?;
        self.preconditioner.apply(v, &mut self.direction)?;
        lock(&self.penalty).curvature(&self.x, &self.direction, &mut self.asked)?;
        self.preconditioner.apply_adjoint(&self.asked, out)
    }

    fn norm_bound(&self) -> f64 {
        self.norm_bound
    }

    fn bytes(&self) -> u64 {
        let own = Self::VECTORS * self.origin.len() * T::PRECISION.bytes();
        lock(&self.penalty).bytes() + own as u64
    }
}
