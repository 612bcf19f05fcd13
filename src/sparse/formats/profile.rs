//! Row statistics of a matrix: the numbers that the choice of a format rests on.

use std::ops::Range;

use super::format::SLICE;
use crate::number::{Precision, Real};
use crate::reduction::Chunks;
use crate::sparse::{Csr, Format};
use crate::threads;

/// Row lengths and diagonals of a matrix.
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) nnz: usize,
    pub(crate) longest: usize,
    /// Rows of each length, up to the longest.
    pub(crate) histogram: Vec<usize>,
    /// Places of slices of 32 rows, rows in their order.
    pub(crate) sell_places: usize,
    /// Padding with rows sorted by length within a reduction chunk.
    pub(crate) sorted_places: usize,
    /// Occupied diagonals `column - row`, ascending.
    pub(crate) diagonals: Vec<i64>,
}

impl Profile {
    /// One pass over the row lengths, one over the columns.
    pub(crate) fn of<T: Real>(a: &Csr<T>) -> Self {
        let lengths: Vec<usize> = a.offsets().windows(2).map(|w| w[1] - w[0]).collect();
        let longest = lengths.iter().copied().max().unwrap_or(0);
        let mut histogram = vec![0; longest + 1];
        for length in &lengths {
            histogram[*length] += 1;
        }
        let places = |rows: &[usize]| -> usize {
            rows.chunks(SLICE).map(|slice| SLICE * slice.iter().copied().max().unwrap_or(0)).sum()
        };
        let chunks = Chunks::of(a.rows());
        let sorted_places = threads::sum(chunks.count, 1, |g| {
            let mut sorted = lengths[chunks.range(g)].to_vec();
            sorted.sort_unstable_by_key(|length| std::cmp::Reverse(*length));
            places(&sorted)
        });
        Self {
            rows: a.rows(),
            cols: a.cols(),
            nnz: a.nnz(),
            longest,
            histogram,
            sell_places: places(&lengths),
            sorted_places,
            diagonals: diagonals(a),
        }
    }

    /// Mean row length.
    pub(crate) fn mean(&self) -> f64 {
        self.nnz as f64 / self.rows.max(1) as f64
    }

    /// The width of the padded part of HYB that stores least.
    pub(crate) fn hybrid_width(&self, precision: Precision) -> usize {
        self.hybrid(precision).0
    }

    /// Finds that width, and the entries beyond it.
    fn hybrid(&self, precision: Precision) -> (usize, usize) {
        let (place, tail_place) = (precision.bytes() + 4, precision.bytes() + 8);
        let mut best = (usize::MAX, 0, 0);
        let (mut tail, mut longer) = (self.nnz, self.rows - self.histogram[0]);
        for width in 0..=self.longest {
            let bytes = width * self.rows * place + tail * tail_place;
            if bytes < best.0 {
                best = (bytes, width, tail);
            }
            tail -= longer;
            longer -= self.histogram.get(width + 1).copied().unwrap_or(0);
        }
        (best.1, best.2)
    }

    /// Bytes of the matrix in `format`: what a product must read of it. BSR counts as if its blocks were full, `band` as if it held entries
    /// beside windows of one column.
    pub(crate) fn stored_bytes(&self, format: Format, precision: Precision) -> u64 {
        let (size, rows, nnz) = (precision.bytes() as u64, self.rows as u64, self.nnz as u64);
        match format {
            Format::Auto | Format::Csr | Format::CsrScalar | Format::CsrAdaptive => (size + 4) * nnz + 4 * rows,
            Format::Coo => (size + 8) * nnz,
            Format::Ellpack => (size + 4) * rows * self.longest as u64,
            Format::EllpackR => (size + 4) * rows * self.longest as u64 + 4 * rows,
            Format::Sell { sigma } => {
                let sorted = sigma > 1 || (sigma == 0 && self.sell_places as f64 > 1.05 * self.nnz as f64);
                let places = if sorted { self.sorted_places } else { self.sell_places };
                (size + 4) * places as u64 + rows / 8 + if sorted { 4 * rows } else { 0 }
            }
            Format::Hyb => {
                let (width, tail) = self.hybrid(precision);
                (size + 4) * (width * self.rows) as u64 + (size + 8) * tail as u64
            }
            Format::Dia => size * rows * self.diagonals.len() as u64,
            Format::Band => (size + 4) * nnz + 8 * rows,
            Format::Bsr { .. } => size * nnz,
            Format::OnTheFly => 0,
            Format::Dense => size * rows * self.cols as u64,
        }
    }
}

/// Occupied diagonals, ascending.
fn diagonals<T: Real>(a: &Csr<T>) -> Vec<i64> {
    // One bit for each diagonal, found by blocks of rows in parallel.
    let words = (a.rows() + a.cols()).div_ceil(64);
    let least = a.rows().div_ceil(threads::count()).max(1024);
    let of_rows = |rows: Range<usize>| {
        let mut seen = vec![0u64; words];
        for i in rows {
            for column in a.row(i).0 {
                let d = *column as usize + a.rows() - 1 - i;
                seen[d / 64] |= 1 << (d % 64);
            }
        }
        seen
    };
    let both = |mut a: Vec<u64>, b: Vec<u64>| {
        a.iter_mut().zip(b).for_each(|(a, b)| *a |= b);
        a
    };
    let seen = threads::fold(a.rows(), least, of_rows, both).unwrap_or_default();
    let mut found = Vec::new();
    for (at, word) in seen.iter().enumerate() {
        let mut rest = *word;
        while rest != 0 {
            found.push((at * 64) as i64 + i64::from(rest.trailing_zeros()) - (a.rows() as i64 - 1));
            rest &= rest - 1;
        }
    }
    found
}

/// Block columns that hold an entry in block row `r`, ascending.
pub(crate) fn blocks_of_row<T: Real>(a: &Csr<T>, block: usize, r: usize) -> Vec<u32> {
    let mut found: Vec<u32> = (r * block..a.rows().min((r + 1) * block))
        .flat_map(|i| a.row(i).0.iter().map(|column| column / block as u32))
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// The block size from 2 to 8 whose dense blocks store the fewest places, and how many.
pub(crate) fn smallest_block<T: Real>(a: &Csr<T>) -> (usize, usize) {
    let places = |block: usize| -> usize {
        let blocks = threads::sum(a.rows().div_ceil(block), 256, |r| blocks_of_row(a, block, r).len());
        blocks * block * block
    };
    // Ties go to the larger block, which needs fewer column indices.
    (2..=8).map(|block| (places(block), 8 - block)).min().map_or((2, 0), |(places, rest)| (8 - rest, places))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparse::gallery;

    #[test]
    fn the_profile_of_a_grid_is_known() {
        let a = gallery::poisson_2d::<f64>(10, 0.0).expect("small");
        let profile = Profile::of(&a);
        assert_eq!(profile.diagonals, [-10, -1, 0, 1, 10]);
        assert_eq!((profile.longest, profile.histogram[3], profile.histogram[4]), (5, 4, 32));
        assert_eq!(profile.stored_bytes(Format::Dia, Precision::Double), 8 * 500);
        // The 64 rows with a fifth entry store it for 16 bytes each: less than 12 for all 100.
        assert_eq!(profile.hybrid_width(Precision::Double), 4);
    }

    #[test]
    fn blocks_are_found() {
        // Full 3 x 3 blocks on the diagonal.
        let a = Csr::from_rows(30, 30, |i, row| {
            row.extend((0..3u32).map(|k| ((i / 3 * 3) as u32 + k, 1.0f32)));
        });
        let (block, places) = smallest_block(&a.expect("valid"));
        assert_eq!((block, places), (3, 90));
    }
}
