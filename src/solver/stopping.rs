//! When a solve is done.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::real::Real;

/// Stopping rules, shared by every method.
#[derive(Clone, Debug, PartialEq)]
pub struct Stopping {
    /// Converged when `|b - A x| <= max(rtol |b|, atol)`, in the 2-norm, unpreconditioned.
    pub rtol: f64,
    /// See [`Stopping::rtol`].
    pub atol: f64,
    /// Least squares are also done when the gradient is small: `|s| <= gradient_rtol |A|_F |r|`, where `s` is
    /// `A'r` less the correction's gradient and `r = b - A x`.
    pub gradient_rtol: f64,
    /// ... or when it has fallen by this much: `|s| <= gradient_reduction |s_0|`. 0 switches this off.
    pub gradient_reduction: f64,
    /// Most iterations.
    pub max_iterations: usize,
    /// Every so many iterations the residual is computed afresh from `b - A x`, instead of by the recurrence, and the
    /// direction follows: what rounding has added up is gone, at the cost of two products (oses-2013, section on conjugate
    /// gradients; J. R. Shewchuk 1994, B2, takes 50). 0 for never: the end is verified in any case. For methods whose
    /// recurrence carries the residual: see [`Method::carries_residual`](crate::Method::carries_residual).
    pub exact_every: usize,
    /// Most iterations queued between two looks at the device. Changes no result: once the test on the device is
    /// met, what is already queued changes nothing (products of operators that are no matrix are still made).
    pub check_every: usize,
    /// Longest time to iterate, seen at each look at the device; where it ends a solve depends on the machine.
    pub time_limit: Option<Duration>,
}

/// Iterations whose residuals the device keeps until the host asks; a power of two.
pub(crate) const HISTORY: usize = 1024;

impl Stopping {
    /// Defaults that suit the precision: `rtol` 1e-5 for `f32` and 1e-8 for `f64`; a gradient at rounding level.
    pub fn for_precision<T: Real>() -> Self {
        Self {
            rtol: if T::EPSILON > 1e-10 { 1e-5 } else { 1e-8 },
            atol: 0.0,
            gradient_rtol: T::EPSILON,
            gradient_reduction: 0.0,
            max_iterations: 10_000,
            exact_every: 0,
            check_every: HISTORY / 2,
            time_limit: None,
        }
    }

    /// Exactly `iterations` iterations, unless the residual or the gradient vanishes.
    pub fn after(iterations: usize) -> Self {
        Self {
            rtol: 0.0,
            atol: 0.0,
            gradient_rtol: 0.0,
            gradient_reduction: 0.0,
            max_iterations: iterations,
            exact_every: 0,
            check_every: HISTORY / 2,
            time_limit: None,
        }
    }

    /// Fails on a value that cannot be meant.
    pub(crate) fn validate(&self) -> Result<()> {
        for (name, value) in [
            ("rtol", self.rtol),
            ("atol", self.atol),
            ("gradient_rtol", self.gradient_rtol),
            ("gradient_reduction", self.gradient_reduction),
        ] {
            if !(value >= 0.0 && value.is_finite()) {
                return Err(Error::Option { name, reason: format!("{value} is not a number of at least 0") });
            }
        }
        if self.max_iterations >= i32::MAX as usize {
            return Err(Error::Option {
                name: "max_iterations",
                reason: format!("{} exceeds {}", self.max_iterations, i32::MAX - 1),
            });
        }
        if !(1..=HISTORY).contains(&self.check_every) {
            return Err(Error::Option {
                name: "check_every",
                reason: format!("{} is not between 1 and {HISTORY}", self.check_every),
            });
        }
        Ok(())
    }
}

/// Squared limits of one right-hand side, as the device compares them.
#[derive(Clone, Debug, Default)]
pub(super) struct Limits {
    /// Of `|r|²`.
    pub(super) residual: f64,
    /// Of `|s|²`.
    pub(super) gradient: f64,
    /// Of `|s|² / |r|²`.
    pub(super) ratio: f64,
    /// [`Stopping::gradient_reduction`], which sets `gradient` once the first gradient is known.
    pub(super) reduction: f64,
}

impl Limits {
    /// The limits of a right-hand side of norm `rhs`, for an operator of norm `norm`.
    pub(super) fn new(stopping: &Stopping, rhs: f64, norm: f64) -> Self {
        Self {
            residual: (stopping.rtol * rhs).max(stopping.atol).powi(2),
            gradient: 0.0,
            ratio: (stopping.gradient_rtol * norm).powi(2),
            reduction: stopping.gradient_reduction,
        }
    }

    /// Whether a limit waits for the first gradient.
    pub(super) fn waits(&self) -> bool {
        self.reduction > 0.0 && self.gradient == 0.0
    }

    /// Sets the limit that depends on the first gradient, of squared norm `first`.
    pub(super) fn set_gradient(&mut self, first: f64) {
        self.gradient = (self.reduction * self.reduction * first).max(f64::MIN_POSITIVE);
    }

    /// How far the squared norms of residual and gradient are above what they must reach; at most 1 is converged.
    pub(super) fn excess(&self, norms: [f64; 2], least_squares: bool) -> f64 {
        let over = |value: f64, limit: f64| if value == 0.0 { 0.0 } else { value / limit };
        let by_residual = over(norms[0], self.residual);
        if !least_squares {
            return by_residual;
        }
        by_residual.min(over(norms[1], self.gradient.max(self.ratio * norms[0])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_cannot_be_meant_are_refused() {
        let good = Stopping::for_precision::<f32>();
        assert!(good.validate().is_ok() && Stopping::after(0).validate().is_ok());
        assert!(good.rtol > Stopping::for_precision::<f64>().rtol);
        for bad in [
            Stopping { rtol: -1.0, ..good.clone() },
            Stopping { atol: f64::NAN, ..good.clone() },
            Stopping { gradient_rtol: f64::INFINITY, ..good.clone() },
            Stopping { check_every: 0, ..good.clone() },
            Stopping { check_every: HISTORY + 1, ..good.clone() },
            Stopping { max_iterations: usize::MAX, ..good.clone() },
        ] {
            assert!(matches!(bad.validate(), Err(Error::Option { .. })), "{bad:?}");
        }
    }
}
