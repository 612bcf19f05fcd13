//! Rows of a matrix that the host keeps, so that it can compute a few results of a device again.

use std::ops::Range;

use super::arrangement::{Arrangement, Kind};
use crate::number::Real;
use crate::sparse::Csr;

/// Rows that follow each other, and number of such runs.
const RUN: usize = 64;
const RUNS: usize = 16;
/// Most entries of a sample, but for its first, last, longest and emptiest row.
const MOST_ENTRIES: usize = 1 << 18;
/// Columns that lie nearer to each other than this are read together.
const NEAR: usize = 1024;
/// Most parts that are read of a gathered vector; of one that needs more, all is.
const MOST_PARTS: usize = 32;

/// About a thousand rows of a matrix: the first and the last ones, the longest and the emptiest with those beside them, and some that a fixed
/// hash picks.
#[derive(Clone, Debug)]
pub(crate) struct Sample<T> {
    /// Numbers of the rows, ascending.
    pub(crate) rows: Vec<u32>,
    /// Offsets of their entries as the kind of the matrix has them: for [`Kind::Adaptive`] behind a word with their place.
    pub(crate) pointers: Vec<u32>,
    pub(crate) indices: Vec<u32>,
    pub(crate) values: Vec<T>,
    /// Runs of the rows.
    pub(crate) runs: Vec<Range<usize>>,
    /// Arrangement in which the rows are summed.
    pub(crate) arrangement: Arrangement,
}

/// Joins ranges that overlap or lie nearer than `gap`; they come ascending by their starts.
pub(crate) fn joined(ranges: impl IntoIterator<Item = Range<usize>>, gap: usize) -> Vec<Range<usize>> {
    let mut joined: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end + gap => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

/// Rows with the most and with the fewest entries, the first of each.
fn extremes(offsets: &[usize]) -> [usize; 2] {
    let (mut longest, mut emptiest) = ((0, 0), (usize::MAX, 0));
    for (i, ends) in offsets.windows(2).enumerate() {
        let length = ends[1] - ends[0];
        if length > longest.0 {
            longest = (length, i);
        }
        if length < emptiest.0 {
            emptiest = (length, i);
        }
    }
    [longest.1, emptiest.1]
}

impl<T: Real> Sample<T> {
    /// A sample of `a`, laid out in `arrangement`; none if rows are not summed in the order of their entries.
    pub(super) fn of(a: &Csr<T>, arrangement: Arrangement) -> Option<Self> {
        if a.rows() == 0 || (arrangement.kind == Kind::Dense && arrangement.lanes > 1) {
            return None;
        }
        let runs = Self::chosen(a.offsets());
        let rows: Vec<u32> = runs.iter().flat_map(|run| run.clone().map(|i| i as u32)).collect();
        let adaptive = arrangement.kind == Kind::Adaptive;
        let mut pointers = if adaptive { vec![1, 0] } else { vec![0] };
        let (mut indices, mut values) = (Vec::new(), Vec::new());
        for i in &rows {
            let (columns, entries) = a.row(*i as usize);
            indices.extend_from_slice(columns);
            values.extend_from_slice(entries);
            pointers.push(u32::try_from(indices.len()).ok()?);
        }
        let kind = if adaptive { Kind::Adaptive } else { Kind::Csr };
        let lanes = if arrangement.kind == Kind::Csr { arrangement.lanes } else { 1 };
        let arrangement = Arrangement { lanes, ..Arrangement::of(kind) };
        Some(Self { rows, pointers, indices, values, runs, arrangement })
    }

    /// Parts of the gathered vector, one for each of `cols` columns, that the entries meet. Sorts the indices, so only a comparison asks for it.
    pub(crate) fn gathered(&self, cols: usize) -> Vec<Range<usize>> {
        let mut columns = self.indices.clone();
        columns.sort_unstable();
        columns.dedup();
        let parts = joined(columns.iter().map(|j| *j as usize..*j as usize + 1), NEAR);
        if parts.len() > MOST_PARTS { std::iter::once(0..cols).collect() } else { parts }
    }

    /// Runs of rows: all of them if they are few.
    fn chosen(offsets: &[usize]) -> Vec<Range<usize>> {
        let rows = offsets.len() - 1;
        if rows <= RUN * RUNS && offsets[rows] <= MOST_ENTRIES {
            return std::iter::once(0..rows).collect();
        }
        let run = |start: usize| {
            let start = start.min(rows.saturating_sub(RUN));
            start..rows.min(start + RUN)
        };
        let [longest, emptiest] = extremes(offsets);
        // Rows that are there however long others are.
        let mut runs: Vec<Range<usize>> = [0, rows - 1, longest, emptiest].map(|i| i..i + 1).into();
        let hashed = (0..).map(|k: u64| {
            // The multiplier of Knuth's hash for 64 bits: the same rows on every machine.
            let hash = (k + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            run(((u128::from(hash) * rows as u128) >> 64) as usize)
        });
        let wanted = [run(0), run(rows), run(longest), run(emptiest)].into_iter().chain(hashed);
        let mut left = MOST_ENTRIES;
        for run in wanted.take(RUNS) {
            // If its rows are long, a half, a quarter, ... of the run: no run takes more than a quarter of the room that is left.
            let fits = |rows: &Range<usize>| offsets[rows.end] - offsets[rows.start] <= left / 4;
            let part = (0..7).map(|k| run.start..run.start + (run.len() >> k).max(1)).find(fits);
            if let Some(part) = part {
                left -= offsets[part.end] - offsets[part.start];
                runs.push(part);
            }
        }
        runs.sort_unstable_by_key(|run| run.start);
        joined(runs, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparse::gallery;

    #[test]
    fn first_and_last_longest_and_emptiest_rows_are_in_a_sample() {
        let rows = 20_000;
        let a = Csr::<f64>::from_rows(rows, rows, |i, row| match i {
            7_000 => row.extend((0..400).map(|j| (j, 1.0))),
            9_000 => {}
            _ => row.push((i as u32, 2.0)),
        })
        .unwrap();
        let sample = Sample::of(&a, Arrangement::of(Kind::Csr)).unwrap();
        for row in [0, 63, 7_000, 9_000, 19_999] {
            assert!(sample.rows.contains(&row), "{row}");
        }
        assert!(sample.rows.is_sorted() && (900..1_200).contains(&sample.rows.len()), "{}", sample.rows.len());
        let of_longest = sample.rows.iter().position(|i| *i == 7_000).unwrap();
        assert_eq!(sample.pointers[of_longest + 1] - sample.pointers[of_longest], 400);
        let gathered = sample.gathered(rows);
        let reads = gathered.iter().map(Range::len).sum::<usize>();
        assert!(gathered.len() <= MOST_PARTS && reads < rows / 4, "{gathered:?}");
    }

    #[test]
    fn a_small_matrix_is_its_own_sample_and_a_full_row_does_not_fill_it() {
        let a = gallery::poisson_2d::<f32>(20, 0.0).unwrap();
        let sample = Sample::of(&a, Arrangement { lanes: 4, ..Arrangement::of(Kind::Csr) }).unwrap();
        assert_eq!((sample.rows.len(), sample.values.len(), sample.arrangement.lanes), (400, a.nnz(), 4));
        let n = 300_000;
        let a = Csr::<f32>::from_rows(n, n, |i, row| match i {
            5 => row.extend((0..n as u32).map(|j| (j, 1.0))),
            _ => row.push((i as u32, 1.0)),
        })
        .unwrap();
        let sample = Sample::of(&a, Arrangement::of(Kind::Adaptive)).unwrap();
        assert!(sample.rows.contains(&5) && sample.values.len() < n + MOST_ENTRIES, "{}", sample.values.len());
        assert!(sample.rows.len() > 800 && sample.rows.contains(&0), "{}", sample.rows.len());
        assert_eq!(sample.rows.last(), Some(&(n as u32 - 1)));
        assert_eq!(sample.pointers[..3], [1, 0, 1]);
        // Rows that are all long: fewer of each run, but some of every one.
        let long = Csr::<f32>::from_rows(1500, 6000, |_, row| row.extend((0..6000).map(|j| (j, 1.0)))).unwrap();
        let sample = Sample::of(&long, Arrangement::of(Kind::Csr)).unwrap();
        assert!(sample.values.len() < MOST_ENTRIES + 4 * 6000 && sample.rows.len() > 20, "{}", sample.rows.len());
        assert!(Sample::of(&a, Arrangement { lanes: 8, ..Arrangement::of(Kind::Dense) }).is_none());
    }
}
