//! Wide sums: what dot products, norms and rows of a product are added up in.
//!
//! Sums of `f32` and `f64` are kept in `f64` if the device has it ([`Accumulation::Double`]). A device without
//! 64-bit arithmetic keeps a sum as an unevaluated pair of `f32` ([`Accumulation::Pair`]), about 48 bits.
//! Everything here has a twin in `cl/common/common.cl`, operation for operation: the two must give the same bits.

use std::fmt::{Debug, Display};

/// Accumulation of sums; part of every result and named in every report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Accumulation {
    /// In `f64`.
    Double,
    /// In a pair of `f32` (error-free transformations), for devices without `f64`.
    Pair,
}

impl Display for Accumulation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Double => "fp64",
            Self::Pair => "compensated fp32",
        })
    }
}

/// Arithmetic of a sum over numbers of type `T`.
#[allow(missing_docs)] // named by a sealed trait, reachable by nobody
pub trait Accumulator<T>: Copy + Send + Sync + Debug + Default + 'static {
    /// True if every product added to 0 stays as it is (pairs round the low word of tiny ones once more).
    const KEEPS_PRODUCTS: bool;

    fn from_real(value: T) -> Self;
    /// Exact for `f32`, rounded once for `f64`.
    fn product(a: T, b: T) -> Self;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    /// NaN unless the divisor is finite and not zero.
    fn div(self, other: Self) -> Self;
    /// NaN unless the argument is finite and at least 0.
    fn sqrt(self) -> Self;
    fn less(self, other: Self) -> bool;
    fn is_nan(self) -> bool;
    fn is_finite(self) -> bool;
    fn to_real(self) -> T;
    fn to_f64(self) -> f64;
    fn from_f64(value: f64) -> Self;
    /// The eight bytes in which a device keeps such a sum.
    fn from_bits(bits: u64) -> Self;
    fn to_bits(self) -> u64;

    #[inline]
    fn abs(self) -> Self {
        if self.less(Self::default()) { Self::default().sub(self) } else { self }
    }
}

/// An unevaluated sum `high + low` with `|low| <= ulp(high) / 2`.
///
/// Source: T. J. Dekker, "A floating-point technique for extending the available precision", 1971, and
/// D. E. Knuth's two-sum; the product's error by a fused multiply-add, which OpenCL rounds correctly everywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pair {
    high: f32,
    low: f32,
}

/// `a + b` and its rounding error.
#[inline]
fn two_sum(a: f32, b: f32) -> Pair {
    let sum = a + b;
    let part = sum - a;
    Pair { high: sum, low: (a - (sum - part)) + (b - part) }
}

/// [`two_sum`] for `|a| >= |b|`.
#[inline]
fn quick_two_sum(a: f32, b: f32) -> Pair {
    let sum = a + b;
    Pair { high: sum, low: b - (sum - a) }
}

/// Splits a finite, nonzero `value` into a mantissa of magnitude in `[1, 2)` and an exponent.
#[inline]
fn exponent_of(value: f32) -> i32 {
    libm::ilogbf(value)
}

#[inline]
fn scaled(value: Pair, exponent: i32) -> Pair {
    Pair { high: libm::ldexpf(value.high, exponent), low: libm::ldexpf(value.low, exponent) }
}

const NAN_PAIR: Pair = Pair { high: f32::NAN, low: 0.0 };

impl Accumulator<f32> for Pair {
    const KEEPS_PRODUCTS: bool = false;

    #[inline]
    fn from_real(value: f32) -> Self {
        Self { high: value, low: 0.0 }
    }
    #[inline]
    fn product(a: f32, b: f32) -> Self {
        let high = a * b;
        Self { high, low: a.mul_add(b, -high) }
    }
    #[inline]
    fn add(self, other: Self) -> Self {
        let mut sum = two_sum(self.high, other.high);
        let tail = two_sum(self.low, other.low);
        sum.low += tail.high;
        sum = quick_two_sum(sum.high, sum.low);
        sum.low += tail.low;
        quick_two_sum(sum.high, sum.low)
    }
    #[inline]
    fn sub(self, other: Self) -> Self {
        self.add(Self { high: -other.high, low: -other.low })
    }
    #[inline]
    fn mul(self, other: Self) -> Self {
        let mut product = Self::product(self.high, other.high);
        product.low += self.high * other.low + self.low * other.high;
        quick_two_sum(product.high, product.low)
    }
    /// A reciprocal by Newton's iteration from a linear seed, then two corrections: no native division, whose
    /// rounding differs between devices.
    fn div(self, other: Self) -> Self {
        if other.high == 0.0 || !other.high.is_finite() || !self.high.is_finite() {
            return NAN_PAIR;
        }
        let shift = exponent_of(other.high);
        let divisor = scaled(other, -shift);
        let magnitude = divisor.high.abs();
        let mut reciprocal = 1.411_764_7_f32 - 0.470_588_24_f32 * magnitude;
        for _ in 0..4 {
            let error = (-magnitude).mul_add(reciprocal, 1.0);
            reciprocal = reciprocal.mul_add(error, reciprocal);
        }
        if divisor.high < 0.0 {
            reciprocal = -reciprocal;
        }
        let mut quotient = Self::from_real(self.high * reciprocal);
        for _ in 0..2 {
            let rest = Accumulator::<f32>::sub(self, quotient.mul(divisor));
            quotient = quotient.add(Self::from_real(rest.high * reciprocal));
        }
        scaled(quotient, -shift)
    }
    fn sqrt(self) -> Self {
        if self.high == 0.0 {
            return Self::default();
        }
        if !self.high.is_finite() || self.high < 0.0 {
            return NAN_PAIR;
        }
        // An even exponent, so that its half is whole; the mantissa then lies in [1, 4).
        let shift = exponent_of(self.high) & !1;
        let value = scaled(self, -shift);
        let mut inverse = 1.18_f32 - 0.2_f32 * value.high;
        for _ in 0..6 {
            let square = inverse * inverse;
            inverse *= 1.5 - (0.5 * value.high) * square;
        }
        let mut root = Self::from_real(value.high * inverse);
        for _ in 0..2 {
            let rest = Accumulator::<f32>::sub(value, root.mul(root));
            root = root.add(Self::from_real((0.5 * inverse) * rest.high));
        }
        scaled(root, shift / 2)
    }
    #[inline]
    fn less(self, other: Self) -> bool {
        self.high < other.high || (self.high == other.high && self.low < other.low)
    }
    #[inline]
    fn is_nan(self) -> bool {
        self.high.is_nan()
    }
    #[inline]
    fn is_finite(self) -> bool {
        self.high.is_finite() && self.low.is_finite()
    }
    #[inline]
    fn to_real(self) -> f32 {
        self.high
    }
    #[inline]
    fn to_f64(self) -> f64 {
        f64::from(self.high) + f64::from(self.low)
    }
    #[inline]
    fn from_f64(value: f64) -> Self {
        let high = value as f32;
        let low = if high.is_finite() { (value - f64::from(high)) as f32 } else { 0.0 };
        Self { high, low }
    }
    #[inline]
    fn from_bits(bits: u64) -> Self {
        Self { high: f32::from_bits(bits as u32), low: f32::from_bits((bits >> 32) as u32) }
    }
    fn to_bits(self) -> u64 {
        u64::from(self.high.to_bits()) | (u64::from(self.low.to_bits()) << 32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(value: f64) -> Pair {
        <Pair as Accumulator<f32>>::from_f64(value)
    }

    fn close(found: Pair, wanted: f64) -> bool {
        (Accumulator::<f32>::to_f64(found) - wanted).abs() <= wanted.abs() * 1e-13
    }

    #[test]
    fn pairs_carry_twice_the_precision() {
        for (a, b) in [(1.0 / 3.0, 7.123_456_789), (-2.5e-8, 3.0e9), (1e20, -3.7e-12), (4.0, 0.001)] {
            let (x, y) = (pair(a), pair(b));
            let (a, b) = (Accumulator::<f32>::to_f64(x), Accumulator::<f32>::to_f64(y));
            assert!(close(x.add(y), a + b), "{a} + {b}");
            assert!(close(x.mul(y), a * b), "{a} * {b}");
            assert!(close(x.div(y), a / b), "{a} / {b}");
            assert!(close(Accumulator::<f32>::sqrt(pair(b.abs())), b.abs().sqrt()), "sqrt {b}");
        }
    }

    #[test]
    fn the_pair_sums_what_single_precision_loses() {
        let mut sum = Pair::default();
        for _ in 0..1000 {
            sum = sum.add(Pair::product(1.0, 1e-9)).add(Pair::from_real(1.0)).sub(Pair::from_real(1.0));
        }
        assert!((Accumulator::<f32>::to_f64(sum) - 1e-6).abs() < 1e-12);
    }

    #[test]
    fn bad_arguments_become_nan() {
        assert!(!Accumulator::<f32>::is_finite(pair(1.0).div(pair(0.0))));
        assert!(!Accumulator::<f32>::is_finite(Accumulator::<f32>::sqrt(pair(-1.0))));
        assert!(!Accumulator::<f32>::is_finite(pair(f64::INFINITY).div(pair(2.0))));
        assert!(<f64 as Accumulator<f64>>::div(1.0, 0.0).is_nan());
    }

    #[test]
    fn bits_survive_the_trip() {
        let value = pair(0.1);
        assert_eq!(<Pair as Accumulator<f32>>::from_bits(Accumulator::<f32>::to_bits(value)), value);
    }
}
