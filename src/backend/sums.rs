//! Sums by the rules of docs/numerics.md on the host: lanes of a chunk, chunk sums, and the choice of accumulator.

use std::ops::Range;

use super::widest::widest;
use crate::number::{self, Accumulator, Real, Sum};
use crate::reduction::{fold, fold_sums};

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
    let lanes = lanes.next_power_of_two().clamp(32, 1024);
    if vectors[0].len() != lanes {
        // Two sizes of the room for lanes: small chunks feel the time that it takes to fill it with zeros.
        return match lanes {
            0..=128 => lane_sums::<T, A, _, S, K, 128>(lanes, vectors, terms),
            _ => lane_sums::<T, A, _, S, K, 1024>(lanes, vectors, terms),
        };
    }
    // Most chunks. With loops of a known length an iteration of CG on diagonals takes 0.8 to 0.9 of the time of others.
    match lanes {
        32 => eighth_sums::<T, A, _, S, K, 4>(vectors, terms),
        64 => eighth_sums::<T, A, _, S, K, 8>(vectors, terms),
        128 => eighth_sums::<T, A, _, S, K, 16>(vectors, terms),
        256 => eighth_sums::<T, A, _, S, K, 32>(vectors, terms),
        512 => eighth_sums::<T, A, _, S, K, 64>(vectors, terms),
        _ => eighth_sums::<T, A, _, S, K, 128>(vectors, terms),
    }
}

widest! {
    /// [`chunk_sums`] with an element for each lane, eight times `EIGHTH`: three of the halvings are done in registers.
    #[inline]
    fn eighth_sums<'v; T: Real, A: Accumulator<T>, F: Fn([T; S]) -> [A; K]; const S, const K, const EIGHTH>(
        vectors: [&'v [T]; S],
        terms: F,
    ) -> [Sum; K] {
        folded_eighths::<T, A, S, K, EIGHTH>(vectors, terms)
    }

    /// [`chunk_sums`] of vectors of any length, in up to `MOST` lanes.
    #[inline]
    fn lane_sums<'v; T: Real, A: Accumulator<T>, F: Fn([T; S]) -> [A; K]; const S, const K, const MOST>(
        lanes: usize,
        vectors: [&'v [T]; S],
        terms: F,
    ) -> [Sum; K] {
        folded_lanes::<T, A, S, K, MOST>(lanes, vectors, terms)
    }
}

/// Lanes that are added side by side, in registers. Eight times as many are those of the smallest chunk.
const STRIP: usize = 4;

/// [`eighth_sums`], in the instructions of whoever calls it.
#[inline(always)]
fn folded_eighths<T: Real, A: Accumulator<T>, const S: usize, const K: usize, const EIGHTH: usize>(
    vectors: [&[T]; S],
    terms: impl Fn([T; S]) -> [A; K],
) -> [Sum; K] {
    let mut lanes = [[A::default(); EIGHTH]; K];
    for strip in 0..EIGHTH / STRIP {
        let first = strip * STRIP;
        let mut sums = [[[A::default(); STRIP]; 8]; K];
        for r in 0..8 {
            let mut parts = [[T::default(); STRIP]; S];
            for s in 0..S {
                if let Some(part) = vectors[s][r * EIGHTH + first..].first_chunk::<STRIP>() {
                    parts[s] = *part;
                }
            }
            for l in 0..STRIP {
                let mut elements = [T::default(); S];
                for s in 0..S {
                    elements[s] = parts[s][l];
                }
                let found = terms(elements);
                for k in 0..K {
                    sums[k][r][l] = sums[k][r][l].add(found[k]);
                }
            }
        }
        for k in 0..K {
            let [a, b, c, d, e, f, g, h] = sums[k];
            for l in 0..STRIP {
                let even = a[l].add(e[l]).add(c[l].add(g[l]));
                lanes[k][first + l] = even.add(b[l].add(f[l]).add(d[l].add(h[l])));
            }
        }
    }
    number::array(|k| Sum(fold(&mut lanes[k], A::add).to_bits()))
}

/// Sums of vectors of any length, in `lanes` lanes.
#[inline(always)]
fn folded_lanes<T: Real, A: Accumulator<T>, const S: usize, const K: usize, const MOST: usize>(
    lanes: usize,
    vectors: [&[T]; S],
    terms: impl Fn([T; S]) -> [A; K],
) -> [Sum; K] {
    let mut totals = [[A::default(); MOST]; K];
    let n = vectors[0].len();
    for first in (0..n).step_by(lanes) {
        let count = lanes.min(n - first);
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
                totals[k][l] = totals[k][l].add(found[k]);
            }
        }
    }
    number::array(|k| Sum(fold(&mut totals[k][..lanes], A::add).to_bits()))
}

/// [`chunk_sums`] of one sum over elements that lie anywhere: `term(i)` yields what element `i` adds.
pub(super) fn scattered_sum<T: Real, A: Accumulator<T>>(
    lanes: usize,
    range: Range<usize>,
    term: impl Fn(usize) -> A,
) -> Sum {
    #[inline]
    fn sum<A: Copy, const MOST: usize>(
        lanes: usize,
        range: Range<usize>,
        zero: A,
        add: impl Fn(A, A) -> A,
        term: impl Fn(usize) -> A,
    ) -> A {
        let mut totals = [zero; MOST];
        for block in range.clone().step_by(lanes) {
            for l in 0..lanes.min(range.end - block) {
                totals[l] = add(totals[l], term(block + l));
            }
        }
        fold(&mut totals[..lanes], add)
    }
    let zero = A::default();
    let found = match lanes.next_power_of_two().clamp(32, 1024) {
        lanes @ 0..=128 => sum::<A, 128>(lanes, range, zero, A::add, term),
        lanes => sum::<A, 1024>(lanes, range, zero, A::add, term),
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

/// Sums of a short run.
const SHORT: usize = 128;

/// The second level of a reduction.
#[inline]
pub(super) fn total<T: Real, A: Accumulator<T>>(sums: &[Sum]) -> A {
    // A lane has one sum at most, and those beyond the last one are left out: of short runs the zeros of all lanes took most of the time.
    if sums.len() <= SHORT {
        let mut lanes = [A::default(); SHORT];
        for k in 0..sums.len() {
            lanes[k] = lanes[k].add(A::from_bits(sums[k].0));
        }
        return fold(&mut lanes[..sums.len().next_power_of_two()], A::add);
    }
    let sums: Vec<A> = sums.iter().map(|s| A::from_bits(s.0)).collect();
    fold_sums(&sums, A::default(), A::add)
}
