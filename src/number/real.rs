//! The two precisions a solve can run in.

use std::fmt::{Debug, Display};
use std::ops::{Add, Div, Mul, Neg, Sub};

use serde::{Deserialize, Serialize};

/// `f32` or `f64`: the numbers vectors and matrices are stored in.
///
/// Sealed: the kernels exist for these two.
pub trait Real:
    Copy
    + Send
    + Sync
    + Default
    + PartialOrd
    + Debug
    + Display
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + sealed::Sealed
    + 'static
{
    /// Name of this precision.
    const PRECISION: Precision;
    /// Distance from 1 to the next larger number.
    const EPSILON: f64;
    /// Rounds to nearest.
    fn from_f64(value: f64) -> Self;
    /// Exact.
    fn to_f64(self) -> f64;
    /// Neither NaN nor infinite.
    fn is_finite(self) -> bool;
    /// Not a number.
    fn is_nan(self) -> bool;
    /// Magnitude.
    fn abs(self) -> Self;
}

/// The type of a function that is generic in the precision.
pub trait PerNumber {
    /// A function pointer.
    type Of<T: Real>;
}

pub(crate) mod sealed {
    use crate::number::{Accumulator, Pair};

    /// Keeps [`Real`](super::Real) to the types there are kernels for, and carries what only this crate needs.
    pub trait Sealed: Sized {
        /// Picks the copy of a function for this precision: see `per_number!`.
        fn pick<F: super::PerNumber>(single: F::Of<f32>, double: F::Of<f64>) -> F::Of<Self>
        where
            Self: super::Real;
        /// The sum that is used if there is no 64-bit arithmetic.
        type Narrow: Accumulator<Self>;
        /// The value as a kernel argument.
        fn number(self) -> Number;
        /// The nearest integer, an even one of two, if that is between -2^22 and 2^22; any number otherwise.
        fn nearest(self) -> i32;
        /// The number nearest to an integer.
        fn of_integer(value: i32) -> Self;
    }

    /// A number of either precision.
    #[derive(Clone, Copy, Debug)]
    pub enum Number {
        /// `f32`
        Single(f32),
        /// `f64`
        Double(f64),
    }

    impl Sealed for f32 {
        #[inline]
        fn pick<F: super::PerNumber>(single: F::Of<f32>, _: F::Of<f64>) -> F::Of<Self> {
            single
        }
        type Narrow = Pair;
        #[inline]
        fn number(self) -> Number {
            Number::Single(self)
        }
        #[inline(always)]
        fn nearest(self) -> i32 {
            // The sum has no digits behind the point, and the integer in its last bits. A conversion would be no vector instruction.
            const SHIFT: f32 = 12_582_912.0; // 1.5 2^23
            (self + SHIFT).to_bits() as i32 - SHIFT.to_bits() as i32
        }
        #[inline(always)]
        fn of_integer(value: i32) -> Self {
            value as f32
        }
    }

    impl Sealed for f64 {
        #[inline]
        fn pick<F: super::PerNumber>(_: F::Of<f32>, double: F::Of<f64>) -> F::Of<Self> {
            double
        }
        // A device without 64-bit arithmetic refuses f64 altogether, so nothing narrower is ever needed.
        type Narrow = f64;
        #[inline]
        fn number(self) -> Number {
            Number::Double(self)
        }
        #[inline(always)]
        fn nearest(self) -> i32 {
            const SHIFT: f64 = 6_755_399_441_055_744.0; // 1.5 2^52
            (self + SHIFT).to_bits() as i32
        }
        #[inline(always)]
        fn of_integer(value: i32) -> Self {
            f64::from(value)
        }
    }
}

/// Name of a [`Real`] type at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Precision {
    /// 32-bit, `f32`.
    #[serde(rename = "fp32")]
    Single,
    /// 64-bit, `f64`.
    #[serde(rename = "fp64")]
    Double,
}

impl Precision {
    /// Bytes of one number.
    #[inline]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Single => 4,
            Self::Double => 8,
        }
    }
}

impl Display for Precision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Single => "fp32",
            Self::Double => "fp64",
        })
    }
}

macro_rules! real {
    ($type:ty, $precision:expr) => {
        impl Real for $type {
            const PRECISION: Precision = $precision;
            const EPSILON: f64 = <$type>::EPSILON as f64;
            #[inline]
            fn from_f64(value: f64) -> Self {
                value as $type
            }
            #[inline]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            #[inline]
            fn is_finite(self) -> bool {
                <$type>::is_finite(self)
            }
            #[inline]
            fn is_nan(self) -> bool {
                <$type>::is_nan(self)
            }
            #[inline]
            fn abs(self) -> Self {
                <$type>::abs(self)
            }
        }
    };
}
real!(f32, Precision::Single);
real!(f64, Precision::Double);

#[cfg(test)]
mod tests {
    use super::sealed::Sealed;

    #[test]
    fn nearest_integers_are_found_in_the_last_bits() {
        let halves = (-40..40).chain([-8_388_607, 8_388_607]).map(|half| f64::from(half) / 2.0);
        for x in halves.chain([0.49, -0.49, 1.51, 4_194_303.0, -4_194_303.0, 1e-30, -1e-30]) {
            let expected = x.round_ties_even() as i32;
            assert_eq!(x.nearest(), expected, "{x}");
            // Numbers above 2^21 have no half in single precision.
            let single = x as f32;
            assert_eq!(single.nearest(), f64::from(single).round_ties_even() as i32, "{single}");
        }
    }
}
