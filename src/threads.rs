//! Loops shared among threads: the one place that knows `rayon`.
//!
//! Parallel iterators of `rayon` are compiled anew for each loop, some seventeen functions a time, and made a third of all code of
//! the library. Here a loop is cut by functions that are compiled once for each type of what is cut ([`share`]), and the loop itself
//! is one more function.
//!
//! Pieces are cut as `rayon` cuts them: into as many as there are threads, and again if another thread took a piece. So results must
//! not depend on the cuts: parts write what is theirs, and [`fold`] wants an operation whose order does not matter.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError, TryLockError};

use rayon::{ThreadPool, ThreadPoolBuilder};

/// Parts that one thread takes at least, if a part takes some nanoseconds: others would wake up too late.
pub(crate) const LEAST: usize = 4096;

/// A row of parts that can be cut between any two.
pub(crate) trait Parts: Sized + Send {
    /// One of the parts.
    type Part;

    /// Number of parts.
    fn count(&self) -> usize;

    /// The first `at` parts, and the others.
    fn cut(self, at: usize) -> (Self, Self);

    /// The parts in their order.
    fn each(self) -> impl Iterator<Item = Self::Part>;
}

impl Parts for Range<usize> {
    type Part = usize;

    #[inline]
    fn count(&self) -> usize {
        self.len()
    }

    #[inline]
    fn cut(self, at: usize) -> (Self, Self) {
        let middle = self.start + at;
        (self.start..middle, middle..self.end)
    }

    #[inline]
    fn each(self) -> impl Iterator<Item = usize> {
        self
    }
}

impl<'a, T: Sync> Parts for &'a [T] {
    type Part = &'a T;

    #[inline]
    fn count(&self) -> usize {
        self.len()
    }

    #[inline]
    fn cut(self, at: usize) -> (Self, Self) {
        self.split_at(at)
    }

    #[inline]
    fn each(self) -> impl Iterator<Item = &'a T> {
        self.iter()
    }
}

impl<'a, T: Send> Parts for &'a mut [T] {
    type Part = &'a mut T;

    #[inline]
    fn count(&self) -> usize {
        self.len()
    }

    #[inline]
    fn cut(self, at: usize) -> (Self, Self) {
        self.split_at_mut(at)
    }

    #[inline]
    fn each(self) -> impl Iterator<Item = &'a mut T> {
        self.iter_mut()
    }
}

/// Chunks of a slice: `[1]` elements each, the last one may have fewer.
pub(crate) struct Chunks<'a, T>(pub(crate) &'a [T], pub(crate) usize);

impl<'a, T: Sync> Parts for Chunks<'a, T> {
    type Part = &'a [T];

    #[inline]
    fn count(&self) -> usize {
        self.0.len().div_ceil(self.1)
    }

    #[inline]
    fn cut(self, at: usize) -> (Self, Self) {
        let (first, rest) = self.0.split_at((at * self.1).min(self.0.len()));
        (Self(first, self.1), Self(rest, self.1))
    }

    #[inline]
    fn each(self) -> impl Iterator<Item = &'a [T]> {
        self.0.chunks(self.1)
    }
}

/// Chunks of a slice that may be written, as [`Chunks`].
pub(crate) struct ChunksMut<'a, T>(pub(crate) &'a mut [T], pub(crate) usize);

impl<'a, T: Send> Parts for ChunksMut<'a, T> {
    type Part = &'a mut [T];

    #[inline]
    fn count(&self) -> usize {
        self.0.len().div_ceil(self.1)
    }

    #[inline]
    fn cut(self, at: usize) -> (Self, Self) {
        let at = (at * self.1).min(self.0.len());
        let (first, rest) = self.0.split_at_mut(at);
        (Self(first, self.1), Self(rest, self.1))
    }

    #[inline]
    fn each(self) -> impl Iterator<Item = &'a mut [T]> {
        self.0.chunks_mut(self.1)
    }
}

impl<P: Parts, Q: Parts> Parts for (P, Q) {
    type Part = (P::Part, Q::Part);

    #[inline]
    fn count(&self) -> usize {
        self.0.count().min(self.1.count())
    }

    #[inline]
    fn cut(self, at: usize) -> (Self, Self) {
        let ((p, p_rest), (q, q_rest)) = (self.0.cut(at), self.1.cut(at));
        ((p, q), (p_rest, q_rest))
    }

    #[inline]
    fn each(self) -> impl Iterator<Item = Self::Part> {
        self.0.each().zip(self.1.each())
    }
}

impl<P: Parts, Q: Parts, R: Parts> Parts for (P, Q, R) {
    type Part = (P::Part, Q::Part, R::Part);

    #[inline]
    fn count(&self) -> usize {
        self.0.count().min(self.1.count()).min(self.2.count())
    }

    #[inline]
    fn cut(self, at: usize) -> (Self, Self) {
        let ((p, p_rest), (q, q_rest), (r, r_rest)) = (self.0.cut(at), self.1.cut(at), self.2.cut(at));
        ((p, q, r), (p_rest, q_rest, r_rest))
    }

    #[inline]
    fn each(self) -> impl Iterator<Item = Self::Part> {
        self.0.each().zip(self.1.each()).zip(self.2.each()).map(|((p, q), r)| (p, q, r))
    }
}

/// Number of threads that share loops.
pub(crate) fn count() -> usize {
    rayon::current_num_threads()
}

/// Does both, by two threads if another one is free. Each is told if it came to another thread.
fn both(left: &mut (dyn FnMut(bool) + Send), right: &mut (dyn FnMut(bool) + Send)) {
    rayon::join_context(|thread| left(thread.migrated()), |thread| right(thread.migrated()));
}

/// Does both, by two threads if another one is free.
pub(crate) fn join<A: Send, B: Send>(left: impl FnOnce() -> A + Send, right: impl FnOnce() -> B + Send) -> (A, B) {
    rayon::join(left, right)
}

/// Sorts by several threads. Equal elements may change places.
pub(crate) fn sort_unstable<T: Ord + Send>(values: &mut [T]) {
    rayon::slice::ParallelSliceMut::par_sort_unstable(values);
}

/// Cuts that a piece may still see.
#[derive(Clone, Copy)]
struct Cuts {
    left: usize,
    least: usize,
}

impl Cuts {
    /// The cuts that remain after one more, if that may be made.
    fn again(self, count: usize, stolen: bool) -> Option<Self> {
        if count / 2 < self.least.max(1) || (self.left == 0 && !stolen) {
            return None;
        }
        let left = if stolen { (self.left / 2).max(self::count()) } else { self.left / 2 };
        Some(Self { left, ..self })
    }
}

fn deal<P: Parts>(first: usize, parts: P, cuts: Cuts, stolen: bool, work: &(dyn Fn(usize, P) + Sync)) {
    let count = parts.count();
    let Some(cuts) = cuts.again(count, stolen) else { return work(first, parts) };
    let middle = count / 2;
    let (left, right) = parts.cut(middle);
    let (mut left, mut right) = (Some(left), Some(right));
    both(
        &mut |stolen| {
            if let Some(parts) = left.take() {
                deal(first, parts, cuts, stolen, work);
            }
        },
        &mut |stolen| {
            if let Some(parts) = right.take() {
                deal(first + middle, parts, cuts, stolen, work);
            }
        },
    );
}

/// Cuts `parts` into pieces of `least` parts or more, shared among threads. `work` gets the number of the first part of a piece, and the piece.
pub(crate) fn share<P: Parts>(parts: P, least: usize, work: &(dyn Fn(usize, P) + Sync)) {
    let cuts = Cuts { left: count(), least };
    deal(0, parts, cuts, false, work);
}

/// Does `work` for each part and its number. A thread takes `least` parts or more.
pub(crate) fn each<P: Parts>(parts: P, least: usize, work: impl Fn(usize, P::Part) + Sync) {
    share(parts, least, &|first, parts: P| parts.each().enumerate().for_each(|(k, part)| work(first + k, part)));
}

/// Results of pieces, in the order of the pieces.
fn gather<P: Parts, U: Send>(parts: P, least: usize, piece: &(dyn Fn(usize, P) -> U + Sync)) -> Vec<U> {
    let results = Mutex::new(Vec::new());
    share(parts, least, &|first, parts| {
        let result = piece(first, parts);
        results.lock().unwrap_or_else(PoisonError::into_inner).push((first, result));
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_unstable_by_key(|(first, _)| *first);
    results.into_iter().map(|(_, result)| result).collect()
}

/// The results of all parts, in their order. A thread takes `least` parts or more.
pub(crate) fn map<P: Parts, U: Send>(parts: P, least: usize, work: impl Fn(usize, P::Part) -> U + Sync) -> Vec<U> {
    let count = parts.count();
    let of_piece =
        |first, parts: P| -> Vec<U> { parts.each().enumerate().map(|(k, part)| work(first + k, part)).collect() };
    let mut pieces = gather(parts, least, &of_piece).into_iter();
    let mut all = pieces.next().unwrap_or_default();
    all.reserve_exact(count - all.len());
    pieces.for_each(|mut results| all.append(&mut results));
    all
}

/// Results as [`map`] has them, unless one fails: then the first fault that was met. Parts after it are left out.
pub(crate) fn try_map<P: Parts, U: Send, E: Send>(
    parts: P,
    least: usize,
    work: impl Fn(usize, P::Part) -> Result<U, E> + Sync,
) -> Result<Vec<U>, E> {
    let failed = AtomicBool::new(false);
    let attempts = map(parts, least, |k, part| {
        let attempt = (!failed.load(Ordering::Relaxed)).then(|| work(k, part));
        if matches!(attempt, Some(Err(_))) {
            failed.store(true, Ordering::Relaxed);
        }
        attempt
    });
    attempts.into_iter().flatten().collect()
}

/// Results of pieces of `0..count`, in their order. Where pieces begin depends on the number of threads, and on chance.
pub(crate) fn runs<U: Send>(count: usize, least: usize, piece: impl Fn(Range<usize>) -> U + Sync) -> Vec<U> {
    gather(0..count, least, &|_, range| piece(range))
}

/// Results as [`map`] has them, written where they stay: for large arrays of numbers.
pub(crate) fn numbers<P: Parts, U: Copy + Default + Send>(
    parts: P,
    least: usize,
    work: impl Fn(usize, P::Part) -> U + Sync,
) -> Vec<U> {
    let mut results = vec![U::default(); parts.count()];
    each((&mut results[..], parts), least, |k, (result, part)| *result = work(k, part));
    results
}

/// Results of pieces of `0..count`, put together two by two by an operation whose order does not matter.
pub(crate) fn fold<U: Send>(
    count: usize,
    least: usize,
    piece: impl Fn(Range<usize>) -> U + Sync,
    put: impl Fn(U, U) -> U,
) -> Option<U> {
    runs(count, least, piece).into_iter().reduce(put)
}

/// The sum of whole numbers, one for each of `0..count`.
pub(crate) fn sum(count: usize, least: usize, number: impl Fn(usize) -> usize + Sync) -> usize {
    fold(count, least, |range| range.map(&number).sum(), |a: usize, b| a + b).unwrap_or(0)
}

/// The largest of whole numbers, one for each of `0..count`; 0 if there is none.
pub(crate) fn maximum(count: usize, least: usize, number: impl Fn(usize) -> usize + Sync) -> usize {
    fold(count, least, |range| range.map(&number).max().unwrap_or(0), usize::max).unwrap_or(0)
}

/// The first of `0..count` that `is_wanted` says yes to.
pub(crate) fn first(count: usize, least: usize, is_wanted: impl Fn(usize) -> bool + Sync) -> Option<usize> {
    let found = AtomicUsize::new(usize::MAX);
    share(0..count, least, &|_, range: Range<usize>| {
        for k in range {
            if k >= found.load(Ordering::Relaxed) {
                break;
            }
            if is_wanted(k) {
                found.fetch_min(k, Ordering::Relaxed);
                break;
            }
        }
    });
    let found = found.into_inner();
    (found != usize::MAX).then_some(found)
}

/// Tells if `holds` says yes to all of `0..count`.
pub(crate) fn all(count: usize, least: usize, holds: impl Fn(usize) -> bool + Sync) -> bool {
    first(count, least, |k| !holds(k)).is_none()
}

/// Does `work` by one of the threads that share its loops. A thread that is none of those sleeps through every loop, and to be woken
/// takes 5 to 20 us.
///
/// A pool of its own has these threads. It takes one work at a time; others stay on the threads that asked, and so does all if there
/// is no such pool. In a pool that others use too, a thread that waits for the rest of a loop takes up whatever else waits for a
/// thread, and could so wait for a lock whose holder waits for that very loop: several solves with one sum of operators did.
pub(crate) fn among_threads<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    static POOL: OnceLock<Option<ThreadPool>> = OnceLock::new();
    static ONE: Mutex<()> = Mutex::new(());
    if rayon::current_thread_index().is_some() {
        return work();
    }
    let _alone = match ONE.try_lock() {
        Ok(alone) => alone,
        // Work that panicked left nothing behind.
        Err(TryLockError::Poisoned(alone)) => alone.into_inner(),
        Err(TryLockError::WouldBlock) => return work(),
    };
    match POOL.get_or_init(|| ThreadPoolBuilder::new().num_threads(count()).build().ok()) {
        Some(pool) => pool.install(work),
        None => work(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTS: [usize; 8] = [0, 1, 2, 3, 7, 64, 1000, 5001];

    #[test]
    fn every_part_is_met_once_by_its_number() {
        for n in COUNTS {
            for least in [0, 1, 100, 10_000] {
                let from: Vec<usize> = (0..n).map(|k| 3 * k).collect();
                let (mut a, mut b) = (vec![0; n], vec![0; 2 * n + 1]);
                each((&mut a[..], &from[..]), least, |k, (to, from)| *to += from + k);
                assert!(a.iter().enumerate().all(|(k, v)| *v == 4 * k), "{n} {least}");
                each((ChunksMut(&mut b, 2), Chunks(&a, 1), 0..n), least, |k, (pair, one, number)| {
                    pair.iter_mut().for_each(|v| *v += one[0] + number + k);
                });
                assert!(b[..2 * n].iter().enumerate().all(|(k, v)| *v == 6 * (k / 2)), "{n} {least}");
                assert_eq!(b[2 * n], 0);
            }
        }
    }

    #[test]
    fn results_come_in_order() {
        for n in COUNTS {
            let wanted: Vec<usize> = (0..n).map(|k| k * k).collect();
            assert_eq!(numbers(0..n, 1, |_, k| k * k), wanted);
            assert_eq!(map(0..n, 1, |at, k| vec![at * k]).concat(), wanted);
            assert_eq!(runs(n, 1, |range| range.map(|k| k * k).collect::<Vec<_>>()).concat(), wanted);
            assert_eq!(map(Chunks(&wanted, 3), 1, |_, chunk| chunk.to_vec()).concat(), wanted);
            let refuse = |_, k: usize| if k % 1000 == 63 { Err(k) } else { Ok(k * k) };
            let tried = try_map(0..n, 1, refuse);
            match n > 63 {
                true => assert!(tried.is_err_and(|k| k % 1000 == 63)),
                false => assert_eq!(tried, Ok(wanted)),
            }
        }
    }

    #[test]
    fn sums_and_firsts_are_those_of_one_thread() {
        for n in COUNTS {
            assert_eq!(sum(n, 1, |k| k), n * n.saturating_sub(1) / 2);
            assert_eq!(maximum(n, 1, |k| (7 * k) % 5), (0..n).map(|k| (7 * k) % 5).max().unwrap_or(0));
            for wanted in [0, 1, 40, 999, 5000] {
                assert_eq!(first(n, 1, |k| k % 1000 == wanted), (0..n).find(|k| k % 1000 == wanted));
            }
            assert!(all(n, 1, |k| k < n));
            assert_eq!(all(n, 1, |k| k + 1 < n), n == 0);
            assert_eq!(fold(n, 1, |range| range.len(), |a, b| a + b).unwrap_or(0), n);
        }
        let mut values: Vec<u32> = (0..5000u32).map(|k| k.wrapping_mul(2_654_435_761)).collect();
        sort_unstable(&mut values);
        assert!(values.is_sorted());
    }

    #[test]
    fn loops_within_loops_come_to_their_end() {
        let found = numbers(0..50, 1, |_, i| sum(200, 1, |k| usize::from(all(10, 1, |l| l < 10)) * (k + i)));
        assert!(found.iter().enumerate().all(|(i, found)| *found == 19_900 + 200 * i));
        assert_eq!(among_threads(|| sum(1000, 1, |k| k)), 499_500);
    }
}
