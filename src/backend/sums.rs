//! Sums of the numerics contract on the host: lanes of a chunk, chunk sums, and the choice of accumulator.

use std::ops::Range;

use super::widest::widest;
use crate::number::{self, Accumulator, Real, Sum};
use crate::reduction::{Chunks, fold, fold_sums};
use crate::threads;

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

/// Lane sums of one chunk folded, `K` of them at once, over elements that lie side by side in `S` vectors of one length: `terms` yields
/// what the elements at one place add to each. More lanes than the chunk's, 32 at least, only add zeros.
#[inline]
pub(super) fn chunk_sums<T: Real, A: Accumulator<T>, const S: usize, const K: usize>(
    lanes: usize,
    vectors: [&[T]; S],
    terms: impl Fn([T; S]) -> [A; K],
) -> [Sum; K] {
    match lanes {
        0..=32 => lane_sums::<T, A, _, S, K, 32, 4>(vectors, terms),
        33..=64 => lane_sums::<T, A, _, S, K, 64, 8>(vectors, terms),
        65..=128 => lane_sums::<T, A, _, S, K, 128, 16>(vectors, terms),
        129..=256 => lane_sums::<T, A, _, S, K, 256, 32>(vectors, terms),
        257..=512 => lane_sums::<T, A, _, S, K, 512, 64>(vectors, terms),
        _ => lane_sums::<T, A, _, S, K, 1024, 128>(vectors, terms),
    }
}

widest! {
    /// [`chunk_sums`] for `LANES` lanes, `EIGHTH` times eight.
    #[inline]
    fn lane_sums<'v; T: Real, A: Accumulator<T>, F: Fn([T; S]) -> [A; K]; const S, const K, const LANES, const EIGHTH>(
        vectors: [&'v [T]; S],
        terms: F,
    ) -> [Sum; K] {
        if vectors[0].len() == LANES {
            folded_eighths::<T, A, S, K, EIGHTH>(vectors, terms)
        } else {
            folded_lanes::<T, A, S, K, LANES>(vectors, terms)
        }
    }
}

/// Sums of vectors with an element for each lane, eight times `EIGHTH`: three of the halvings are done in registers.
#[inline(always)]
fn folded_eighths<T: Real, A: Accumulator<T>, const S: usize, const K: usize, const EIGHTH: usize>(
    vectors: [&[T]; S],
    terms: impl Fn([T; S]) -> [A; K],
) -> [Sum; K] {
    let none = [T::default(); EIGHTH];
    let mut parts = [[&none; 8]; S];
    for s in 0..S {
        for (part, elements) in parts[s].iter_mut().zip(vectors[s].as_chunks::<EIGHTH>().0) {
            *part = elements;
        }
    }
    let mut lanes = [[A::default(); EIGHTH]; K];
    for l in 0..EIGHTH {
        let mut sums = [[A::default(); 8]; K];
        for r in 0..8 {
            let mut elements = [T::default(); S];
            for s in 0..S {
                elements[s] = parts[s][r][l];
            }
            let found = terms(elements);
            for k in 0..K {
                sums[k][r] = sums[k][r].add(found[k]);
            }
        }
        for k in 0..K {
            let [a, b, c, d, e, f, g, h] = sums[k];
            lanes[k][l] = (a.add(e).add(c.add(g))).add(b.add(f).add(d.add(h)));
        }
    }
    folded(lanes)
}

/// Sums of vectors of any length, in `LANES` lanes.
#[inline(always)]
fn folded_lanes<T: Real, A: Accumulator<T>, const S: usize, const K: usize, const LANES: usize>(
    vectors: [&[T]; S],
    terms: impl Fn([T; S]) -> [A; K],
) -> [Sum; K] {
    let mut lanes = [[A::default(); LANES]; K];
    let n = vectors[0].len();
    for first in (0..n).step_by(LANES) {
        let count = LANES.min(n - first);
        let mut parts = vectors;
        for part in &mut parts {
            *part = &part[first..][..count];
        }
        for l in 0..count {
            let mut elements = [T::default(); S];
            for s in 0..S {
                elements[s] = parts[s][l];
            }
            let found = terms(elements);
            for k in 0..K {
                lanes[k][l] = lanes[k][l].add(found[k]);
            }
        }
    }
    folded(lanes)
}

#[inline(always)]
fn folded<T: Real, A: Accumulator<T>, const K: usize, const N: usize>(mut lanes: [[A; N]; K]) -> [Sum; K] {
    // In place: a `map` would copy the lanes.
    number::array(|k| Sum(fold(&mut lanes[k], A::add).to_bits()))
}

/// [`chunk_sums`] of one sum over elements that lie anywhere: `term(i)` yields what element `i` adds.
pub(super) fn scattered_sum<T: Real, A: Accumulator<T>>(
    lanes: usize,
    range: Range<usize>,
    term: impl Fn(usize) -> A,
) -> Sum {
    #[inline]
    fn sum<A: Copy, const N: usize>(
        range: Range<usize>,
        zero: A,
        add: impl Fn(A, A) -> A,
        term: impl Fn(usize) -> A,
    ) -> A {
        let mut lanes = [zero; N];
        for block in range.clone().step_by(N) {
            for l in 0..N.min(range.end - block) {
                lanes[l] = add(lanes[l], term(block + l));
            }
        }
        fold(&mut lanes, add)
    }
    let zero = A::default();
    let found = match lanes {
        0..=32 => sum::<A, 32>(range, zero, A::add, term),
        33..=64 => sum::<A, 64>(range, zero, A::add, term),
        65..=128 => sum::<A, 128>(range, zero, A::add, term),
        129..=256 => sum::<A, 256>(range, zero, A::add, term),
        257..=512 => sum::<A, 512>(range, zero, A::add, term),
        _ => sum::<A, 1024>(range, zero, A::add, term),
    };
    Sum(found.to_bits())
}

/// The sum of `x y` over some rows of column `c`, for interleaved columns: one chunk, in `lanes` lanes.
#[inline]
pub(super) fn column_dot<T: Real, A: Accumulator<T>>(
    lanes: usize,
    rows: Range<usize>,
    [columns, c]: [usize; 2],
    x: &[T],
    y: &[T],
) -> Sum {
    if columns == 1 {
        let [sum] = chunk_sums(lanes, [&x[rows.clone()], &y[rows]], |[x, y]| [A::product(x, y)]);
        return sum;
    }
    scattered_sum::<T, A>(lanes, rows, |i| A::product(x[i * columns + c], y[i * columns + c]))
}

/// The second level of a reduction.
#[inline]
pub(super) fn total<T: Real, A: Accumulator<T>>(sums: &[Sum]) -> A {
    let sums: Vec<A> = sums.iter().map(|s| A::from_bits(s.0)).collect();
    fold_sums(&sums, A::default(), A::add)
}

/// Chunk sums of the squares of each column of `v`, at `sums[c * chunks.count + g]`.
#[inline]
pub(super) fn squares<T: Real, A: Accumulator<T>>(chunks: Chunks, columns: usize, v: &[T], sums: &mut [Sum]) {
    threads::each(&mut sums[..chunks.count * columns], 1, |at, sum| {
        let (c, g) = (at / chunks.count, at % chunks.count);
        *sum = column_dot::<T, A>(chunks.lanes, chunks.range(g), [columns, c], v, v);
    });
}
