//! Limits of a solve, in the units of the system as it is scaled.

use std::cmp::Ordering;

use super::rules::Stopping;
use crate::magnitude;
use crate::number::Real;

/// Size of what is rounded in a gradient `A'(b - A x)`, over `|A|`, from `|A| |x|`, `|b|` and `|r|`. Terms of `A x` may be larger than it, and cancel; but
/// if they are much larger, rounding hides gradients that lead to better fits: those of a 30 x 12 Hilbert matrix ended with a sum of squares a
/// tenth above the least.
pub(crate) fn rounded(product: f64, rhs: f64, residual: f64) -> f64 {
    const LARGEST: f64 = 16.0;
    product.min(LARGEST * (rhs + residual)) + rhs
}

/// Numbers that the limits of one right-hand side are made from, in the units of the scaled system (see `scaling.rs`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scales {
    /// `|b|`.
    pub(crate) rhs: f64,
    /// `|A|`, 0 if it is not known.
    pub(crate) norm: f64,
    /// `|A|` with the damping or the weights of the regularizations.
    pub(crate) stacked: f64,
    /// True if the start is 0.
    pub(crate) from_zero: bool,
    /// Rounding error of the vectors.
    pub(crate) epsilon: f64,
    /// True if the system has as many unknowns as rows, and likely a solution.
    pub(crate) square: bool,
    /// Sums of squares below this have lost digits; 0 if they never do.
    pub(crate) least_square: f64,
    /// Exponents of the powers of two by which `b` and `A` were multiplied.
    pub(crate) exponents: [i32; 2],
}

/// Squared limits of one right-hand side, as the device compares them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits {
    /// Limit of `|r|²`.
    pub(crate) residual: f64,
    /// Limit of `|r|`, which may be a number even if its square is not.
    pub(crate) residual_norm: f64,
    /// Limit of `|s|²`.
    pub(crate) gradient: f64,
    /// Limit of `|s|² / |r|²`.
    pub(crate) ratio: f64,
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
    pub(crate) rhs: f64,
    least_square: f64,
    /// See [`Scales::exponents`].
    pub(crate) exponents: [i32; 2],
}

impl Limits {
    /// The limits of a right-hand side.
    pub(crate) fn new(stopping: &Stopping, scales: Scales) -> Self {
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
    pub(crate) fn waits(&self) -> bool {
        (self.reduction > 0.0 && self.gradient == 0.0) || self.of_first > 0.0
    }

    /// Sets the limits that depend on the first norms of residual and gradient, given squared.
    pub(crate) fn set_first(&mut self, [residual, gradient]: [f64; 2]) {
        if self.reduction > 0.0 && self.gradient == 0.0 {
            self.gradient = (self.reduction * self.reduction * gradient).max(f64::MIN_POSITIVE);
        }
        let of_first = std::mem::take(&mut self.of_first);
        self.residual = self.residual.max(of_first * of_first * residual);
        self.residual_norm = self.residual_norm.max(of_first * residual.sqrt());
    }

    /// Ratio of the squared norms of residual and gradient to their limits; at most 1 is converged.
    pub(crate) fn excess(&self, norms: [f64; 2], least_squares: bool) -> f64 {
        let over = |value: f64, limit: f64| if value == 0.0 { 0.0 } else { value / limit };
        let by_residual = over(norms[0], self.residual);
        if !least_squares {
            return by_residual;
        }
        by_residual.min(over(norms[1], self.gradient.max(self.ratio * norms[0])))
    }

    /// Tells if squares of residuals at their limit cannot have vanished.
    pub(crate) fn is_certain(&self) -> bool {
        self.least_square == 0.0 || self.residual > self.least_square
    }

    /// Compares answers by their squared norms: by residuals, or by gradients if residuals of least squares differ by rounding.
    pub(crate) fn compare<T: Real>(norms: [f64; 2], others: [f64; 2], least_squares: bool) -> Ordering {
        let near = (norms[0] - others[0]).abs() <= 8.0 * T::EPSILON * others[0];
        let which = usize::from(least_squares && near);
        norms[which].partial_cmp(&others[which]).unwrap_or(Ordering::Equal)
    }

    /// Tells if the gradient, of the squared norms of residual and gradient, is no more than what rounding leaves of it at an `x`
    /// of this norm (Å. Björck, "Numerical methods for least squares problems", 1996, 2.4), while the residual is more than
    /// that. Where the residual is rounding too, the gradient is small whatever the residual was asked to be.
    pub(crate) fn is_rounding(&self, [residual, gradient]: [f64; 2], x: f64) -> bool {
        let (residual, gradient) = (residual.sqrt(), gradient.sqrt());
        let floor = self.floor * rounded(self.stacked * x, self.rhs, residual);
        gradient <= floor && gradient <= self.steepest * residual
    }

    /// Norms of residual and gradient in the units of the solve, from those in units of the system that was given.
    pub(crate) fn in_units_of_solve(&self, [residual, gradient]: [f64; 2]) -> [f64; 2] {
        let [rhs, operator] = self.exponents;
        [magnitude::scale(residual, rhs), magnitude::scale(gradient, rhs + operator)]
    }

    /// Norms of residual and gradient in units of the system that was given, from their squares here.
    pub(crate) fn in_given_units(&self, [residual, gradient]: [f64; 2]) -> [f64; 2] {
        let [rhs, operator] = self.exponents;
        [magnitude::scale(residual.sqrt(), -rhs), magnitude::scale(gradient.sqrt(), -rhs - operator)]
    }
}
