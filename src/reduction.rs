//! The reduction tree of the numerics contract: a function of the length alone.
//!
//! A vector of `n` elements is cut into chunks of `c(n)`. Within a chunk, virtual lane `l` of `V(n)` adds elements
//! `l, l + V, l + 2V, ...`; the lane sums are folded by halving (`l += l + V / 2`, ...). The chunk sums, never more
//! than 4096, are folded once more in the same way with 1024 lanes. A work-group of any size plays the lanes, so its
//! size changes no bit. These numbers are part of every result: changing them is a change of numerics.

/// Most lanes a chunk is summed in, and the lanes of the second level.
pub(crate) const LANES: usize = 1024;
const SMALLEST_CHUNK: usize = 32;
/// Chunks grow up to this size before there are more than 1024 of them.
const FULL_CHUNK: usize = 4096;
pub(crate) const MOST_CHUNKS: usize = 4096;

/// Chunks of a vector of some length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunks {
    /// Elements in all.
    pub(crate) len: usize,
    /// Elements of a chunk, a power of two; the last chunk may be shorter.
    pub(crate) chunk: usize,
    /// Number of chunks.
    pub(crate) count: usize,
    /// Virtual lanes of a chunk, a power of two.
    pub(crate) lanes: usize,
}

impl Chunks {
    #[inline]
    pub(crate) fn of(len: usize) -> Self {
        let wanted = len.div_ceil(1024).next_power_of_two().clamp(SMALLEST_CHUNK, FULL_CHUNK);
        let chunk = wanted.max(len.div_ceil(MOST_CHUNKS).next_power_of_two());
        Self { len, chunk, count: len.div_ceil(chunk), lanes: chunk.min(LANES) }
    }

    /// Elements of chunk `g`.
    #[inline]
    pub(crate) fn range(&self, g: usize) -> std::ops::Range<usize> {
        g * self.chunk..self.len.min((g + 1) * self.chunk)
    }
}

/// Folds lane sums by halving; `lanes.len()` is a power of two.
#[inline]
pub(crate) fn fold<A: Copy>(lanes: &mut [A], combine: impl Fn(A, A) -> A) -> A {
    let mut half = lanes.len() / 2;
    while half > 0 {
        let (low, high) = lanes.split_at_mut(half);
        // By numbers: a `zip` begins with a call, which short folds feel.
        let high = &high[..half];
        for l in 0..half {
            low[l] = combine(low[l], high[l]);
        }
        half /= 2;
    }
    lanes[0]
}

/// The second level: chunk sums folded in [`LANES`] lanes.
///
/// Lanes beyond the last sum hold the identity. They are left out: every other lane has been combined with it already.
#[inline]
pub(crate) fn fold_sums<A: Copy>(sums: &[A], identity: A, combine: impl Fn(A, A) -> A) -> A {
    let mut lanes = [identity; LANES];
    for (i, &sum) in sums.iter().enumerate() {
        lanes[i % LANES] = combine(lanes[i % LANES], sum);
    }
    fold(&mut lanes[..sums.len().next_power_of_two().min(LANES)], combine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_the_one_that_is_documented() {
        for (len, chunk, count, lanes) in [
            (0, 32, 0, 32),
            (1, 32, 1, 32),
            (3072, 32, 96, 32),
            (4096, 32, 128, 32),
            (81_545, 128, 638, 128),
            (1 << 20, 1024, 1024, 1024),
            (1 << 24, 4096, 4096, 1024),
            ((1 << 24) + 1, 8192, 2049, 1024),
            (4_294_967_295, 1 << 20, 4096, 1024),
        ] {
            assert_eq!(Chunks::of(len), Chunks { len, chunk, count, lanes }, "{len}");
        }
    }

    #[test]
    fn chunks_cover_every_element_once() {
        for len in [1, 31, 32, 33, 5000, 1_048_577] {
            let chunks = Chunks::of(len);
            let mut next = 0;
            for g in 0..chunks.count {
                assert_eq!(chunks.range(g).start, next);
                next = chunks.range(g).end;
            }
            assert_eq!(next, len);
        }
    }

    #[test]
    fn folding_halves() {
        let text = |a: String, b: String| format!("({a}{b})");
        // Strings are not Copy: fold over positions and spell the tree afterwards.
        let mut trees: Vec<&'static str> = vec!["a", "b", "c", "d"];
        let join = |a: &'static str, b: &'static str| -> &'static str {
            Box::leak(text(a.into(), b.into()).into_boxed_str())
        };
        assert_eq!(fold(&mut trees, join), "((ac)(bd))");
    }
}
