//! Compressed rows from entries in any order, and from blocks of rows.

use super::Csr;
use crate::error::{Error, Result};
use crate::number::{Real, per_number};
use crate::threads;

/// Yields the entries of a row, columns ascending.
type RowMaker<'f, T> = dyn Fn(usize, &mut Vec<(u32, T)>) + Sync + 'f;

per_number! {
    fn from_rows<'f, T>(rows: usize, cols: usize, row: &RowMaker<'f, T>) -> Result<Csr<T>> = Csr::from_rows_here;
    fn from_triplets<T>(rows: usize, cols: usize, entries: &[(usize, usize, T)]) -> Result<Csr<T>> = Csr::from_triplets_here;
}

/// Most parts that the rows are cut into. Each part's thread goes through all entries, so that more would not help.
const MOST_PARTS: usize = 8;

/// The matrix of entries `(row, column, value)` within `rows × cols`, in several stretches; entries of the same place
/// are summed in the order given. Takes 4 bytes and a number for each entry beside the entries themselves.
pub(super) fn assemble<T: Real>(rows: usize, cols: usize, stretches: &[Vec<(u32, u32, T)>]) -> Result<Csr<T>> {
    let span = rows.div_ceil(threads::count().clamp(1, MOST_PARTS)).max(1);
    // Number of entries of each row, part by part.
    let mut offsets = vec![0usize; rows + 1];
    threads::each(threads::ChunksMut(&mut offsets[1..], span), 1, |part, lengths| {
        let first = part * span;
        for (i, _, _) in stretches.iter().flatten() {
            if let Some(length) = (*i as usize).checked_sub(first).and_then(|at| lengths.get_mut(at)) {
                *length += 1;
            }
        }
    });
    for i in 0..rows {
        offsets[i + 1] += offsets[i];
    }
    let (mut indices, mut values) = (vec![0u32; offsets[rows]], vec![T::default(); offsets[rows]]);
    let mut parts = Vec::new();
    let (mut indices_left, mut values_left) = (&mut indices[..], &mut values[..]);
    for first in (0..rows).step_by(span) {
        let last = (first + span).min(rows);
        let (indices, indices_after) = indices_left.split_at_mut(offsets[last] - offsets[first]);
        let (values, values_after) = values_left.split_at_mut(offsets[last] - offsets[first]);
        (indices_left, values_left) = (indices_after, values_after);
        parts.push((&offsets[first..=last], first, indices, values));
    }
    threads::each(&mut parts[..], 1, |_, (offsets, first, indices, values)| {
        let mut next: Vec<usize> = offsets[..offsets.len() - 1].iter().map(|start| start - offsets[0]).collect();
        for (i, j, value) in stretches.iter().flatten() {
            if let Some(place) = (*i as usize).checked_sub(*first).and_then(|at| next.get_mut(at)) {
                indices[*place] = *j;
                values[*place] = *value;
                *place += 1;
            }
        }
    });
    let row = |i: usize| offsets[i]..offsets[i + 1];
    if threads::all(rows, 1024, |i| indices[row(i)].is_sorted_by(|a, b| a < b)) {
        return Csr::new(rows, cols, offsets, indices, values);
    }
    Csr::from_rows(rows, cols, |i, entries| {
        entries.extend(indices[row(i)].iter().copied().zip(values[row(i)].iter().copied()));
        // Stable, so repeated places keep the order in which they came.
        entries.sort_by_key(|e| e.0);
        entries.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            if same {
                kept.1 = kept.1 + later.1;
            }
            same
        });
    })
}

/// Rows that follow each other, made by one thread.
#[derive(Default)]
pub(crate) struct RowBlock<T> {
    pub(crate) lengths: Vec<usize>,
    pub(crate) indices: Vec<u32>,
    pub(crate) values: Vec<T>,
}

impl<T: Real> Csr<T> {
    /// Puts blocks of rows that follow each other together.
    pub(crate) fn from_blocks(rows: usize, cols: usize, blocks: Vec<RowBlock<T>>) -> Result<Self> {
        let nnz = blocks.iter().map(|block| block.indices.len()).sum();
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        let mut end = 0;
        for length in blocks.iter().flat_map(|block| &block.lengths) {
            end += length;
            offsets.push(end);
        }
        // Copied by all threads: fresh memory is touched for the first time here.
        let (mut indices, mut values) = (vec![0u32; nnz], vec![T::default(); nnz]);
        let mut copies = Vec::with_capacity(blocks.len());
        let (mut indices_left, mut values_left) = (&mut indices[..], &mut values[..]);
        for block in blocks {
            let (indices, indices_after) = indices_left.split_at_mut(block.indices.len());
            let (values, values_after) = values_left.split_at_mut(block.values.len());
            (indices_left, values_left) = (indices_after, values_after);
            copies.push((block, indices, values));
        }
        threads::each(&mut copies[..], 1, |_, (block, indices, values)| {
            indices.copy_from_slice(&block.indices);
            values.copy_from_slice(&block.values);
        });
        Self::new(rows, cols, offsets, indices, values)
    }

    /// Builds a matrix row by row, as a sensor delivers it: `row(i)` yields the entries of row `i` in ascending
    /// column order. Rows are made in parallel; the result does not depend on the number of threads.
    ///
    /// # Errors
    /// As [`Csr::new`].
    pub fn from_rows<F>(rows: usize, cols: usize, row: F) -> Result<Self>
    where
        F: Fn(usize, &mut Vec<(u32, T)>) + Sync,
    {
        from_rows(rows, cols, &row)
    }

    fn from_rows_here(rows: usize, cols: usize, row: &RowMaker<'_, T>) -> Result<Self> {
        // Blocks of rows keep the number of separate vectors small and each one long.
        const BLOCK: usize = 256;
        Self::check_dimensions(rows, cols)?;
        let blocks = threads::map(0..rows.div_ceil(BLOCK), 1, |_, block| {
            let mut entries = Vec::new();
            let mut made = RowBlock::default();
            for i in block * BLOCK..rows.min((block + 1) * BLOCK) {
                entries.clear();
                row(i, &mut entries);
                made.lengths.push(entries.len());
                made.indices.extend(entries.iter().map(|e| e.0));
                made.values.extend(entries.iter().map(|e| e.1));
            }
            made
        });
        Self::from_blocks(rows, cols, blocks)
    }

    /// Builds a matrix from entries `(row, column, value)` in any order; entries of the same place are summed in
    /// the order given.
    ///
    /// # Errors
    /// [`Error::Structure`] for an entry outside the matrix.
    pub fn from_triplets(rows: usize, cols: usize, entries: &[(usize, usize, T)]) -> Result<Self> {
        from_triplets(rows, cols, entries)
    }

    fn from_triplets_here(rows: usize, cols: usize, entries: &[(usize, usize, T)]) -> Result<Self> {
        Self::check_dimensions(rows, cols)?;
        if let Some((i, j, _)) = entries.iter().find(|(i, j, _)| *i >= rows || *j >= cols) {
            return Err(Error::Structure {
                what: format!("entry ({i}, {j}) lies outside {rows} x {cols}"),
                row: Some(*i),
            });
        }
        Self::from_stretches(rows, cols, &[entries.iter().map(|e| (e.0 as u32, e.1 as u32, e.2)).collect()])
    }

    /// [`Csr::from_triplets`] for entries in several stretches, all of them within the matrix.
    pub(crate) fn from_stretches(rows: usize, cols: usize, stretches: &[Vec<(u32, u32, T)>]) -> Result<Self> {
        assemble(rows, cols, stretches)
    }
}
