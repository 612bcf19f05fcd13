//! Spots of a product: rows and chunk sums that the host computes again.

use std::ops::Range;

use crate::backend::linear::product::{Sampled, Spots};
use crate::error::Result;
use crate::memory::Memory;
use crate::number::{Real, Sum};
use crate::reduction::Chunks;
use crate::sparse::joined;

/// Parts of vectors that the spots of a product need, for `columns` interleaved ones.
pub(super) struct Parts {
    columns: usize,
    /// Parts of the vector that is multiplied.
    pub(super) gathered: Vec<Range<usize>>,
    /// Parts of the result and of vectors beside it: the rows of the chunks, among which are those of the sample.
    pub(super) beside: Vec<Range<usize>>,
    /// Chunks whose sums are compared: those in which rows of the sample lie.
    pub(super) chunks: Vec<usize>,
}

impl Parts {
    /// Parts for a product with `n` rows.
    pub(super) fn of<T: Real>(a: &Sampled<'_, T>, n: usize, columns: usize) -> Self {
        let of = Chunks::of(n);
        let scaled = |range: &Range<usize>| range.start * columns..range.end * columns;
        let of_run = |run: &Range<usize>| run.start / of.chunk..=(run.end - 1) / of.chunk;
        let mut chunks: Vec<usize> = a.of.runs.iter().flat_map(of_run).collect();
        chunks.dedup();
        let beside = joined(chunks.iter().map(|g| scaled(&of.range(*g))), 0);
        Self { columns, gathered: a.gathered().iter().map(scaled).collect(), beside, chunks }
    }

    /// Numbers and sums of a result that differ from the spots that the host has computed, with the numbers compared: `differ` tells which do.
    pub(super) fn wrong<T: Real>(
        &self,
        a: &Sampled<'_, T>,
        spots: &Spots<T>,
        (found, found_sums): (&[T], &Memory<Sum>),
        (differ, sums_differ): (impl Fn(&T, &T) -> bool, impl Fn(&Sum, &Sum) -> bool),
    ) -> Result<[usize; 3]> {
        let of_row = |row: &u32| found[*row as usize * self.columns..][..self.columns].iter();
        let numbers = a.of.rows.iter().flat_map(of_row).zip(&spots.rows).filter(|(a, b)| differ(a, b)).count();
        let found_sums = found_sums.on_host()?;
        let found_sums = found_sums.host()?;
        let sums = spots.sums.iter().filter(|(place, sum)| sums_differ(&found_sums[*place], sum)).count();
        Ok([numbers, spots.rows.len(), sums])
    }
}
