//! When a solve is done.

use std::time::Duration;

use super::semiconvergence::StopRule;
use crate::error::{Error, Result};
use crate::number::{Precision, Real};
use crate::setters::setters;
use crate::state::HISTORY;

/// Choice of the answer that a solve returns, if its last iterate has a larger residual than an earlier one whose
/// residual was computed from `b - A x`.
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
///
/// ```
/// use std::time::Duration;
///
/// use residuum::sparse::gallery;
/// use residuum::{Device, Format, Matrix, Method, Solver, Stop, Stopping, Vector};
///
/// let device = Device::best()?;
/// let matrix = Matrix::new(&device, &gallery::poisson_2d::<f64>(20, 0.0)?, Format::Auto)?;
/// let b = Vector::filled(&device, 400, 1.0)?;
/// // A residual of 1e-3 of the right-hand side, or five iterations, or a minute.
/// let stopping = Stopping::after(5).with_rtol(1e-3).with_time_limit(Duration::from_secs(60));
/// let report = Solver::new(&matrix, Method::Cg, stopping)?.solve(&b, &mut Vector::zeros(&device, 400)?)?;
/// assert_eq!((report.stop, report.iterations), (Stop::MaxIterations, 5));
/// # Ok::<(), residuum::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Stopping {
    /// Converged when `|b - A x| <= max(rtol |b|, atol)`, in the 2-norm, unpreconditioned.
    pub rtol: f64,
    /// See [`Stopping::rtol`].
    pub atol: f64,
    /// Converged too when `|b - A x| <= residual_reduction |b - A x_0|`, where `x_0` is the start guess: the stop of oses-2013, algorithms 1 and 2. With
    /// an `rtol` of 0 it counts alone. From `x_0 = 0` it is an `rtol`. 0 switches this off.
    pub residual_reduction: f64,
    /// Least squares are also done when the gradient is small: `|s| <= gradient_rtol |A|_F |r|`, where `s` is
    /// `A'r` less the regularization's gradient (methods that keep bounds have measures of their own, see their pages) and `r = b - A x` (for this
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
    setters! {
        with_rtol: rtol(f64),
        with_atol: atol(f64),
        with_residual_reduction: residual_reduction(f64),
        with_gradient_rtol: gradient_rtol(f64),
        with_gradient_reduction: gradient_reduction(f64),
        with_max_iterations: max_iterations(usize),
        with_patience: patience(impl usize),
        with_exact_every: exact_every(usize),
        with_answer: answer(Answer),
        with_check_every: check_every(usize),
        with_rule: rule(impl StopRule),
        with_time_limit: time_limit(impl Duration),
    }

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
        Self { rtol: 0.0, gradient_rtol: 0.0, max_iterations: iterations, ..Self::for_precision::<f64>() }
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
