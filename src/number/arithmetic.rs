//! Divisions and square roots that give the same bits everywhere, for formulas of the user's own.

use super::accumulator::{Accumulation, Accumulator};
use super::real::{Real, sealed};

/// Divisions and square roots on the host as `quotient` and `root` of a [`Pointwise`](crate::Pointwise) make them on a device:
/// through `f64`, or through pairs of `f32` on a device without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arithmetic(Accumulation);

impl Arithmetic {
    #[inline]
    pub(crate) fn of(accumulation: Accumulation) -> Self {
        Self(accumulation)
    }

    /// `a / b`: NaN unless `b` is finite and not 0.
    #[inline]
    pub fn quotient<T: Real>(self, a: T, b: T) -> T {
        #[inline]
        fn by<T: Real, A: Accumulator<T>>(a: T, b: T) -> T {
            A::from_real(a).div(A::from_real(b)).to_real()
        }
        match self.0 {
            Accumulation::Double => by::<T, f64>(a, b),
            Accumulation::Pair => by::<T, <T as sealed::Sealed>::Narrow>(a, b),
        }
    }

    /// The square root of `a`: NaN unless `a` is finite and at least 0.
    #[inline]
    pub fn root<T: Real>(self, a: T) -> T {
        #[inline]
        fn by<T: Real, A: Accumulator<T>>(a: T) -> T {
            A::from_real(a).sqrt().to_real()
        }
        match self.0 {
            Accumulation::Double => by::<T, f64>(a),
            Accumulation::Pair => by::<T, <T as sealed::Sealed>::Narrow>(a),
        }
    }
}
