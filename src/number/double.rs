//! Wide sums in `f64`.

use super::{Accumulator, Real};

impl<T: Real> Accumulator<T> for f64 {
    const KEEPS_PRODUCTS: bool = true;

    #[inline]
    fn from_real(value: T) -> Self {
        value.to_f64()
    }
    #[inline]
    fn product(a: T, b: T) -> Self {
        a.to_f64() * b.to_f64()
    }
    #[inline]
    fn add(self, other: Self) -> Self {
        self + other
    }
    #[inline]
    fn sub(self, other: Self) -> Self {
        self - other
    }
    #[inline]
    fn mul(self, other: Self) -> Self {
        self * other
    }
    #[inline]
    fn div(self, other: Self) -> Self {
        if other == 0.0 || !other.is_finite() { f64::NAN } else { self / other }
    }
    #[inline]
    fn sqrt(self) -> Self {
        if self.is_finite() { f64::sqrt(self) } else { f64::NAN }
    }
    #[inline]
    fn less(self, other: Self) -> bool {
        self < other
    }
    #[inline]
    fn is_nan(self) -> bool {
        f64::is_nan(self)
    }
    #[inline]
    fn is_finite(self) -> bool {
        f64::is_finite(self)
    }
    #[inline]
    fn to_real(self) -> T {
        T::from_f64(self)
    }
    #[inline]
    fn to_f64(self) -> f64 {
        self
    }
    #[inline]
    fn from_f64(value: f64) -> Self {
        value
    }
    fn from_bits(bits: u64) -> Self {
        f64::from_bits(bits)
    }
    #[inline]
    fn to_bits(self) -> u64 {
        f64::to_bits(self)
    }
}
