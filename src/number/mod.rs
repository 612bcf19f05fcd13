//! The numbers of the crate: `f32` and `f64`, wide sums of them, and functions that exist once for each.

mod accumulator;
mod arithmetic;
mod double;
mod real;
mod sum;

use crate::threads;

pub use accumulator::Accumulation;
pub(crate) use accumulator::{Accumulator, Pair};
pub use arithmetic::Arithmetic;
pub(crate) use real::{PerNumber, sealed};
pub use real::{Precision, Real};
pub(crate) use sum::Sum;

/// `[of(0), of(1), ...]`. A loop that is always inlined: `array::from_fn` may stay a call for each element, as may `map` of an array.
#[inline(always)]
pub(crate) fn array<U: Copy + Default, const N: usize>(mut of: impl FnMut(usize) -> U) -> [U; N] {
    let mut all = [U::default(); N];
    for k in 0..N {
        all[k] = of(k);
    }
    all
}

/// The bound that `x` violates, if it does.
#[inline]
pub(crate) fn violated<T: Real>(x: T, lower: T, upper: T) -> Option<T> {
    if x < lower {
        Some(lower)
    } else if x > upper {
        Some(upper)
    } else {
        None
    }
}

/// Index of the first value that is not finite; by all threads.
pub(crate) fn first_not_finite<T: Real>(values: &[T]) -> Option<usize> {
    // Whole chunks first: a test that may end at each value is several times slower.
    const CHUNK: usize = 1 << 13;
    let chunk = |k: usize| &values[k * CHUNK..values.len().min((k + 1) * CHUNK)];
    let spoilt = |k: usize| !chunk(k).iter().fold(true, |all, v| all & v.is_finite());
    let begin = CHUNK * threads::first(values.len().div_ceil(CHUNK), 1, spoilt)?;
    values[begin..].iter().position(|v| !v.is_finite()).map(|at| begin + at)
}

/// A type that device buffers can hold; its layout is that of the OpenCL C type of the same width.
pub(crate) trait Element: Copy + Send + Sync + Default + std::fmt::Debug + 'static {}
impl<T: Real> Element for T {}
impl Element for u32 {}
impl Element for i32 {}
impl Element for Sum {}

/// Declares generic functions that call what stands after the `=`, which is compiled in this crate, once for each precision.
/// Without it, every crate that calls a generic function compiles it again, with all that it calls. By custom, `x` calls `x_here`.
macro_rules! per_number {
    ($(
        $(#[$meta:meta])*
        $vis:vis fn $name:ident<$($life:lifetime,)* $t:ident>($($arg:ident: $ty:ty),* $(,)?) -> $ret:ty = $body:path;
    )+) => {$(
        $(#[$meta])*
        $vis fn $name<$($life,)* $t: $crate::number::Real>($($arg: $ty),*) -> $ret {
            struct Copies;
            impl $crate::number::PerNumber for Copies {
                type Of<$t: $crate::number::Real> = for<$($life),*> fn($($ty),*) -> $ret;
            }
            #[inline(never)]
            fn single() -> <Copies as $crate::number::PerNumber>::Of<f32> {
                $body
            }
            #[inline(never)]
            fn double() -> <Copies as $crate::number::PerNumber>::Of<f64> {
                $body
            }
            <$t as $crate::number::sealed::Sealed>::pick::<Copies>(single(), double())($($arg),*)
        }
    )+};
}
pub(crate) use per_number;
