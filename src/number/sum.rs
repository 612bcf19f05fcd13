//! Wide sums in device memory.

use super::accumulator::{Accumulation, Accumulator, Pair};

/// A wide sum as the device keeps it: eight bytes, a `double` or a `float2` (see `accumulator.rs`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Sum(pub(crate) u64);

impl Sum {
    /// Value of the sum; `accumulation` says how it is kept.
    #[inline]
    pub(crate) fn value(self, accumulation: Accumulation) -> f64 {
        match accumulation {
            Accumulation::Double => f64::from_bits(self.0),
            Accumulation::Pair => Accumulator::<f32>::to_f64(<Pair as Accumulator<f32>>::from_bits(self.0)),
        }
    }

    /// The sum nearest to `value`.
    #[inline]
    pub(crate) fn of(value: f64, accumulation: Accumulation) -> Self {
        Self(match accumulation {
            Accumulation::Double => value.to_bits(),
            Accumulation::Pair => Accumulator::<f32>::to_bits(<Pair as Accumulator<f32>>::from_f64(value)),
        })
    }
}
