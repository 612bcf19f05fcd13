//! Regularised CGNR: one stretch of `control` and `status` per column; the words of [`barrier`](super::barrier) follow those of `status`.

use std::ops::Range;

/// Parts of a launch whose product is computed elsewhere.
pub(crate) const ALL: isize = 0;
pub(crate) const ROWS_ONLY: isize = 1;
pub(crate) const PIXELS_ONLY: isize = 2;

pub(crate) const RR: usize = 0;
pub(crate) const SS: usize = 1;
pub(crate) const GD: usize = 2;
pub(crate) const BETA: usize = 3;
pub(crate) const LAST_GD: usize = 4;
pub(crate) const ALPHA: usize = 5;
pub(crate) const RESIDUAL_LIMIT: usize = 6;
pub(crate) const GRADIENT_LIMIT: usize = 7;
pub(crate) const GRADIENT_RATIO: usize = 8;
pub(crate) const TIKHONOV: usize = 9;
pub(crate) const SMOOTH: usize = 10;
pub(crate) const VARIATION: usize = 11;
pub(crate) const EPSILON2: usize = 12;
pub(crate) const BOX: usize = 13;
pub(crate) const LOWER: usize = 14;
pub(crate) const UPPER: usize = 15;
pub(crate) const CONTROL: usize = 16;
pub(crate) const STOP: usize = 0;
pub(crate) const ITERATION: usize = 1;
pub(crate) const LAST_STOP: usize = 2;
pub(crate) const NEXT_ITERATION: usize = 3;
pub(crate) const MAX_ITERATIONS: usize = 4;
pub(crate) const HISTORY_MASK: usize = 5;
pub(crate) const STATUS: usize = 6;

/// Places of the chunk sums of each quantity in `sums`.
#[derive(Clone, Copy)]
pub(crate) struct SumPlaces {
    pub(crate) columns: usize,
    /// Chunks of the rows of A.
    pub(crate) rows: usize,
    /// Chunks of its columns.
    pub(crate) cols: usize,
}

impl SumPlaces {
    fn by_rows(&self, place: usize, count: usize) -> Range<usize> {
        place * self.rows..(place + count) * self.rows
    }
    fn by_cols(&self, place: usize, count: usize) -> Range<usize> {
        let base = 2 * self.columns * self.rows;
        base + place * self.cols..base + (place + count) * self.cols
    }
    pub(crate) fn qq(&self, c: usize) -> Range<usize> {
        self.by_rows(c, 1)
    }
    pub(crate) fn all_qq(&self) -> Range<usize> {
        self.by_rows(0, self.columns)
    }
    pub(crate) fn rr(&self, c: usize) -> Range<usize> {
        self.by_rows(self.columns + c, 1)
    }
    pub(crate) fn all_rr(&self) -> Range<usize> {
        self.by_rows(self.columns, self.columns)
    }
    pub(crate) fn df(&self, c: usize) -> Range<usize> {
        self.by_cols(c, 1)
    }
    pub(crate) fn all_df(&self) -> Range<usize> {
        self.by_cols(0, self.columns)
    }
    pub(crate) fn ss(&self, c: usize) -> Range<usize> {
        self.by_cols(self.columns + c, 1)
    }
    pub(crate) fn so(&self, c: usize) -> Range<usize> {
        self.by_cols(2 * self.columns + c, 1)
    }
    pub(crate) fn sd(&self, c: usize) -> Range<usize> {
        self.by_cols(3 * self.columns + c, 1)
    }
    /// Number of chunk sums in all.
    pub(crate) fn len(&self) -> usize {
        self.sd(self.columns - 1).end
    }
}
