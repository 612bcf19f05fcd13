//! Products with divided rows on the host: rows one after another, in the order of `cl/linear/split.cl`.

use std::ops::Range;

use super::{PART, PIECE, SplitMatrix, SplitOps};
use crate::backend::Host;
use crate::backend::run::Run;
use crate::backend::sums::summing;
use crate::error::Result;
use crate::memory::Memory;
use crate::number::{Accumulator, Real};
use crate::threads;

/// Entries that a thread adds at least.
const LEAST: usize = 40_000;

/// Entries of `range` up to each multiple of `size`.
fn cut(range: Range<usize>, size: usize) -> impl Iterator<Item = Range<usize>> {
    let mut at = range.start;
    std::iter::from_fn(move || {
        let from = at;
        at = (from / size * size + size).min(range.end);
        (from < range.end).then_some(from..at)
    })
}

fn product<T: Real, A: Accumulator<T>>(offsets: &[u32], indices: &[u32], values: &[T], x: &[T], y: &mut [T]) {
    let entries = |range: Range<usize>| {
        let entries = indices[range.clone()].iter().zip(&values[range]);
        entries.fold(A::default(), |sum, (j, value)| sum.add(A::product(*value, x[*j as usize])))
    };
    let part = |range: Range<usize>| cut(range, PIECE).fold(A::default(), |sum, piece| sum.add(entries(piece)));
    let least = (LEAST * y.len() / values.len().max(1)).max(1);
    threads::each(y, least, |i, y| {
        let row = offsets[i] as usize..offsets[i + 1] as usize;
        *y = cut(row, PART).fold(A::default(), |sum, range| sum.add(part(range))).to_real();
    });
}

impl<T: Real> SplitOps<T> for Host {
    fn split_product(&self, run: Run<'_>, a: &SplitMatrix<T>, x: &Memory<T>, y: &mut Memory<T>) -> Result<()> {
        let (offsets, indices, values) = (a.offsets.host()?, a.indices.host()?, a.values.host()?);
        summing!(run, T, product(offsets, indices, values, x.host()?, y.host_mut()?));
        Ok(())
    }
}
