//! Sums of the numerics contract on the host: lanes of a chunk, chunk sums, and the choice of accumulator.

use std::ops::Range;

use rayon::prelude::*;

use crate::number::{Accumulator, Real, Sum};
use crate::reduction::{Chunks, fold, fold_sums};

/// Calls a function that is generic over number and accumulator with the accumulator that `$run` asks for.
macro_rules! summing {
    ($run:expr, $t:ty, $function:ident($($arg:expr),* $(,)?)) => {
        match $run.accumulation {
            $crate::number::Accumulation::Double => $function::<$t, f64>($($arg),*),
            $crate::number::Accumulation::Pair => {
                $function::<$t, <$t as $crate::number::sealed::Sealed>::Narrow>($($arg),*)
            }
        }
    };
}
pub(super) use summing;

/// Calls `$function` with the number of lanes as a constant, so that loops over lanes have a known length.
macro_rules! with_lanes {
    ($lanes:expr, $function:ident::<$t:ty, $a:ty, $k:tt>($($arg:expr),* $(,)?)) => {
        match $lanes {
            0..=32 => $function::<$t, $a, $k, 32>($($arg),*),
            33..=64 => $function::<$t, $a, $k, 64>($($arg),*),
            65..=128 => $function::<$t, $a, $k, 128>($($arg),*),
            129..=256 => $function::<$t, $a, $k, 256>($($arg),*),
            257..=512 => $function::<$t, $a, $k, 512>($($arg),*),
            _ => $function::<$t, $a, $k, 1024>($($arg),*),
        }
    };
}

pub(super) use with_lanes;

/// Lane sums of one chunk folded, `K` of them at once: `terms(i)` yields what element `i` adds to each. `LANES` lanes
/// instead of the chunk's fewer ones only add zeros.
pub(super) fn chunk_sums<T: Real, A: Accumulator<T>, const K: usize, const LANES: usize>(
    range: Range<usize>,
    mut terms: impl FnMut(usize) -> [A; K],
) -> [Sum; K] {
    let mut lanes = [[A::default(); LANES]; K];
    for block in range.clone().step_by(LANES) {
        for l in 0..LANES.min(range.end - block) {
            let term = terms(block + l);
            for k in 0..K {
                lanes[k][l] = lanes[k][l].add(term[k]);
            }
        }
    }
    // In place: a `map` would copy the lanes.
    std::array::from_fn(|k| Sum(fold(&mut lanes[k], A::add).to_bits()))
}

/// The sum of `x y` over some rows of column `c`, for interleaved columns: one chunk, in `lanes` lanes.
pub(super) fn column_dot<T: Real, A: Accumulator<T>>(
    lanes: usize,
    rows: Range<usize>,
    [columns, c]: [usize; 2],
    x: &[T],
    y: &[T],
) -> Sum {
    if columns == 1 {
        // Elements that lie side by side, at places known beforehand: vectors.
        let (x, y) = (&x[..rows.end], &y[..rows.end]);
        let [sum] = with_lanes!(lanes, chunk_sums::<T, A, 1>(rows, |i| [A::product(x[i], y[i])]));
        return sum;
    }
    let term = |i: usize| [A::product(x[i * columns + c], y[i * columns + c])];
    let [sum] = with_lanes!(lanes, chunk_sums::<T, A, 1>(rows, term));
    sum
}

/// The second level of a reduction.
pub(super) fn total<T: Real, A: Accumulator<T>>(sums: &[Sum]) -> A {
    let sums: Vec<A> = sums.iter().map(|s| A::from_bits(s.0)).collect();
    fold_sums(&sums, A::default(), A::add)
}

/// Chunk sums of the squares of each column of `v`, at `sums[c * chunks.count + g]`.
pub(super) fn squares<T: Real, A: Accumulator<T>>(chunks: Chunks, columns: usize, v: &[T], sums: &mut [Sum]) {
    sums[..chunks.count * columns].par_iter_mut().enumerate().for_each(|(at, sum)| {
        let (c, g) = (at / chunks.count, at % chunks.count);
        *sum = column_dot::<T, A>(chunks.lanes, chunks.range(g), [columns, c], v, v);
    });
}
