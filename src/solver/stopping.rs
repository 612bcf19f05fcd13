//! When a solve is done.

use std::cmp::Ordering;
use std::time::Duration;

use super::semiconvergence::StopRule;
use crate::error::{Error, Result};
use crate::magnitude;
use crate::number::{Precision, Real};
use crate::state::HISTORY;

/// Answer that a solve returns if the residual at its end is larger than at an earlier verified start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answer {
    /// The last one of a solve that was cancelled or whose time was over, if the method makes the error smaller in every iteration
    /// ([`Method::lowers_error`](crate::Method::lowers_error)): its residual may rise meanwhile. Else the one with the smaller residual.
    #[default]
    ByMethod,
    /// The one with the smaller residual.
    Best,
    /// The last one, whatever it is; none is kept. For a few iterations of a method whose error falls in another norm: conjugate
    /// gradients make the energy of the error smaller in every iteration, while the residual may rise.
    Last,
}

/// Stopping rules, shared by every method.
#[derive(Clone, Debug, PartialEq)]
pub struct Stopping {
    /// Converged when `|b - A x| <= max(rtol |b|, atol)`, in the 2-norm, unpreconditioned.
    pub rtol: f64,
    /// See [`Stopping::rtol`].
    pub atol: f64,
    /// Converged too when `|b - A x| <= residual_reduction |b - A x_0|`, where `x_0` is the start guess: the stop of oses-2013, algorithms 1 and 2. With
    /// an `rtol` of 0 it counts alone. From `x_0 = 0` it is an `rtol`. 0 switches this off.
    pub residual_reduction: f64,
    /// Least squares are also done when the gradient is small: `|s| <= gradient_rtol |A|_F |r|`, where `s` is
    /// `A'r` less the correction's gradient (methods that keep bounds have measures of their own, see their pages) and `r = b - A x` (for this
    /// test LSQR and LSMR stack it with `damp (x_ref - x)`): the `atol` of SciPy's `lsqr` and `lsmr`. A gradient at the
    /// level of rounding, `4 eps |A|_F (min(|A|_F |x|, 16 (|b| + |r|)) + |b|)`, is small enough too, if starting over no longer halves it and
    /// `|s| <= sqrt(eps) |A|_F |r|` tells that the residual is not rounding itself. MINRES takes no more than the machine
    /// epsilon in place of both, since its systems usually have a solution.
    pub gradient_rtol: f64,
    /// ... or when it has fallen by this much: `|s| <= gradient_reduction |s_0|`. 0 switches this off.
    pub gradient_reduction: f64,
    /// Most iterations.
    pub max_iterations: usize,
    /// Iterations after which a slow solve ends ([`Stop::Slow`](crate::Stop::Slow)): one whose residual, or gradient, has not gained a
    /// sixteenth of the digits that it is to gain. Looked at once, after exactly so many iterations, so that it ends in the same place
    /// everywhere. Nothing is slow if the limits are 0.
    pub patience: Option<usize>,
    /// Every so many iterations the residual is computed afresh from `b - A x`, instead of by the recurrence, and the
    /// direction follows: what rounding has added up is gone, at the cost of two products (oses-2013, 5.1, on conjugate
    /// gradients; J. R. Shewchuk 1994, B2, takes 50). 0 for never: the end is verified in any case. For methods whose
    /// recurrence carries the residual: see [`Method::carries_residual`](crate::Method::carries_residual).
    pub exact_every: usize,
    /// Answer that is returned if the residual has risen.
    pub answer: Answer,
    /// Most iterations queued between two looks at the device. Changes no result: once the test on the device is
    /// met, what is already queued changes nothing (products of operators that are no matrix are still made).
    pub check_every: usize,
    /// Rule for ill-posed problems, which may end a solve before its iterates take up noise ([`Stop::Semiconverged`](crate::Stop::Semiconverged)); for the methods
    /// of [`Method::takes_rule`](crate::Method::takes_rule), without a preconditioner.
    pub rule: Option<StopRule>,
    /// Longest time to iterate, seen at each look at the device; where it ends a solve depends on the machine.
    pub time_limit: Option<Duration>,
}

impl Stopping {
    /// Defaults that suit the precision: `rtol` 1e-5 and `gradient_rtol` 1e-6 for `f32`, 1e-8 and 1e-11 for `f64`.
    pub fn for_precision<T: Real>() -> Self {
        let (rtol, gradient_rtol) = match T::PRECISION {
            Precision::Single => (1e-5, 1e-6),
            Precision::Double => (1e-8, 1e-11),
        };
        Self {
            rtol,
            atol: 0.0,
            residual_reduction: 0.0,
            gradient_rtol,
            gradient_reduction: 0.0,
            max_iterations: 10_000,
            patience: None,
            exact_every: 0,
            answer: Answer::ByMethod,
            check_every: HISTORY / 2,
            rule: None,
            time_limit: None,
        }
    }

    /// Exactly `iterations` iterations, unless the residual or the gradient vanishes.
    pub fn after(iterations: usize) -> Self {
        Self {
            rtol: 0.0,
            atol: 0.0,
            residual_reduction: 0.0,
            gradient_rtol: 0.0,
            gradient_reduction: 0.0,
            max_iterations: iterations,
            patience: None,
            exact_every: 0,
            answer: Answer::ByMethod,
            check_every: HISTORY / 2,
            rule: None,
            time_limit: None,
        }
    }

    /// Fails on a value that cannot be meant.
    pub(crate) fn validate(&self) -> Result<()> {
        for (name, value) in [
            ("rtol", self.rtol),
            ("atol", self.atol),
            ("residual_reduction", self.residual_reduction),
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

/// Size of what is rounded in a gradient `A'(b - A x)`, over `|A|`, from `|A| |x|`, `|b|` and `|r|`. Terms of `A x` may be larger than it, and cancel; but
/// if they are much larger, rounding hides gradients that lead to better fits: those of a 30 x 12 Hilbert matrix ended with a sum of squares a
/// tenth above the least.
pub(super) fn rounded(product: f64, rhs: f64, residual: f64) -> f64 {
    const LARGEST: f64 = 16.0;
    product.min(LARGEST * (rhs + residual)) + rhs
}

/// Numbers that the limits of one right-hand side are made from, in the units of the scaled system (see `scaling.rs`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Scales {
    /// `|b|`.
    pub(super) rhs: f64,
    /// `|A|`, 0 if it is not known.
    pub(super) norm: f64,
    /// `|A|` with the damping or the weights of the corrections.
    pub(super) stacked: f64,
    /// True if the start is 0.
    pub(super) from_zero: bool,
    /// Rounding error of the vectors.
    pub(super) epsilon: f64,
    /// True if the system has as many unknowns as rows, and likely a solution.
    pub(super) square: bool,
    /// Sums of squares below this have lost digits; 0 if they never do.
    pub(super) least_square: f64,
    /// Exponents of the powers of two by which `b` and `A` were multiplied.
    pub(super) exponents: [i32; 2],
}

/// Squared limits of one right-hand side, as the device compares them.
#[derive(Clone, Debug, Default)]
pub(super) struct Limits {
    /// Limit of `|r|²`.
    pub(super) residual: f64,
    /// Limit of `|r|`, which may be a number even if its square is not.
    residual_norm: f64,
    /// Limit of `|s|²`.
    pub(super) gradient: f64,
    /// Limit of `|s|² / |r|²`.
    pub(super) ratio: f64,
    /// [`Stopping::gradient_reduction`], which sets `gradient` once the first gradient is known.
    reduction: f64,
    /// Part of the first residual that is small enough, once that is known: [`Stopping::residual_reduction`], and [`Stopping::rtol`] if `b` is 0.
    of_first: f64,
    /// `4 eps |A|`, by which the norms of `A x` and `b` are multiplied for what rounding leaves of a gradient; 0 if no gradient
    /// is asked for.
    floor: f64,
    /// Most that such a gradient may be of `|r|`: of an `r` that is no more than rounding, nothing can be told.
    steepest: f64,
    stacked: f64,
    /// `|b|`.
    pub(super) rhs: f64,
    least_square: f64,
    /// See [`Scales::exponents`].
    pub(super) exponents: [i32; 2],
}

impl Limits {
    /// The limits of a right-hand side.
    pub(super) fn new(stopping: &Stopping, scales: Scales) -> Self {
        let Scales { rhs, norm, stacked, from_zero, epsilon, square, least_square, exponents } = scales;
        let atol = magnitude::scale(stopping.atol, exponents[0]);
        // The first residual from 0 is b.
        let rtol = if from_zero { stopping.rtol.max(stopping.residual_reduction) } else { stopping.rtol };
        let residual_norm = (rtol * rhs).max(atol);
        let known = stopping.gradient_rtol > 0.0 && norm > 0.0;
        Self {
            residual_norm,
            residual: residual_norm.powi(2),
            gradient: 0.0,
            ratio: (stopping.gradient_rtol * norm).powi(2),
            reduction: stopping.gradient_reduction,
            of_first: match (from_zero, rhs == 0.0) {
                (true, _) => 0.0,
                (false, true) => stopping.rtol.max(stopping.residual_reduction),
                (false, false) => stopping.residual_reduction,
            },
            floor: if known { 4.0 * epsilon * stacked } else { 0.0 },
            steepest: if square { 4.0 * epsilon } else { epsilon.sqrt() } * stacked,
            stacked,
            rhs,
            least_square,
            exponents,
        }
    }

    /// Tells if a limit waits for the first residual or gradient.
    pub(super) fn waits(&self) -> bool {
        (self.reduction > 0.0 && self.gradient == 0.0) || self.of_first > 0.0
    }

    /// Sets the limits that depend on the first norms of residual and gradient, given squared.
    pub(super) fn set_first(&mut self, [residual, gradient]: [f64; 2]) {
        if self.reduction > 0.0 && self.gradient == 0.0 {
            self.gradient = (self.reduction * self.reduction * gradient).max(f64::MIN_POSITIVE);
        }
        let of_first = std::mem::take(&mut self.of_first);
        self.residual = self.residual.max(of_first * of_first * residual);
    }

    /// Ratio of the squared norms of residual and gradient to their limits; at most 1 is converged.
    pub(super) fn excess(&self, norms: [f64; 2], least_squares: bool) -> f64 {
        let over = |value: f64, limit: f64| if value == 0.0 { 0.0 } else { value / limit };
        let by_residual = over(norms[0], self.residual);
        if !least_squares {
            return by_residual;
        }
        by_residual.min(over(norms[1], self.gradient.max(self.ratio * norms[0])))
    }

    /// The limit of `|r|`, if a solve began with the residual `first`.
    pub(super) fn residual_norm(&self, first: f64) -> f64 {
        self.residual_norm.max(self.of_first * first)
    }

    /// The limits of a solve that began with the residual `first`, for starts that come later.
    pub(super) fn after(&self, first: f64) -> Self {
        let residual_norm = self.residual_norm(first);
        Self { residual_norm, residual: residual_norm.powi(2), of_first: 0.0, ..self.clone() }
    }

    /// Tells if squares of residuals at their limit cannot have vanished.
    pub(super) fn is_certain(&self) -> bool {
        self.least_square == 0.0 || self.residual > self.least_square
    }

    /// Compares answers by their squared norms: by residuals, or by gradients if residuals of least squares differ by rounding.
    pub(super) fn compare<T: Real>(norms: [f64; 2], others: [f64; 2], least_squares: bool) -> Ordering {
        let near = (norms[0] - others[0]).abs() <= 8.0 * T::EPSILON * others[0];
        let which = usize::from(least_squares && near);
        norms[which].partial_cmp(&others[which]).unwrap_or(Ordering::Equal)
    }

    /// Tells if the gradient, of the squared norms of residual and gradient, is no more than what rounding leaves of it at an `x`
    /// of this norm (Å. Björck, "Numerical methods for least squares problems", 1996, 2.4), while the residual is more than
    /// that. Where the residual is rounding too, the gradient is small whatever the residual was asked to be.
    pub(super) fn is_rounding(&self, [residual, gradient]: [f64; 2], x: f64) -> bool {
        let (residual, gradient) = (residual.sqrt(), gradient.sqrt());
        let floor = self.floor * rounded(self.stacked * x, self.rhs, residual);
        gradient <= floor && gradient <= self.steepest * residual
    }

    /// Norms of residual and gradient in units of the system that was given, from their squares here.
    pub(super) fn in_given_units(&self, [residual, gradient]: [f64; 2]) -> [f64; 2] {
        let [rhs, operator] = self.exponents;
        [magnitude::scale(residual.sqrt(), -rhs), magnitude::scale(gradient.sqrt(), -rhs - operator)]
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
