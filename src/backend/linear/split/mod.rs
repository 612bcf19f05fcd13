//! Products with matrices by rows whose entries are divided evenly, not their rows: `cl/linear/split.cl`.

mod host;
mod opencl;

pub(in crate::backend) use opencl::FILES;

use crate::backend::run::{PlanKey, Run};
use crate::error::Result;
use crate::memory::{Memory, Place, Plans};
use crate::number::Real;
use crate::sparse::Csr;

/// Entries of a part, one group's share, `PART` of `cl/linear/split.cl`.
pub(crate) const PART: usize = 1024;

/// Entries of a piece, one item's share, `PIECE` of `cl/linear/split.cl`.
pub(crate) const PIECE: usize = 32;

/// Compressed rows in the memory of one back end, and the row of the first entry of each part, with the number of rows behind the last.
#[derive(Debug)]
pub(crate) struct SplitMatrix<T> {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) parts: usize,
    offsets: Memory<u32>,
    starts: Memory<u32>,
    indices: Memory<u32>,
    values: Memory<T>,
    plans: Plans<PlanKey>,
}

/// Parts of so many entries: one at least, which rows without entries need.
fn parts_of(nnz: usize) -> usize {
    nnz.div_ceil(PART).max(1)
}

impl<T: Real> SplitMatrix<T> {
    /// Copies the entries of `a`, which are fewer than 2^32.
    pub(crate) fn new(place: &Place, a: &Csr<T>) -> Result<Self> {
        let offsets: Vec<u32> = a.offsets().iter().map(|offset| *offset as u32).collect();
        let parts = parts_of(a.nnz());
        let row_of = |part: usize| offsets.partition_point(|offset| *offset as usize <= part * PART) as u32 - 1;
        let starts: Vec<u32> = std::iter::once(0).chain((1..parts).map(row_of)).chain([a.rows() as u32]).collect();
        Ok(Self {
            rows: a.rows(),
            cols: a.cols(),
            parts,
            starts: place.take(starts)?,
            offsets: place.take(offsets)?,
            indices: place.upload(a.indices())?,
            values: place.upload(a.values())?,
            plans: Plans::default(),
        })
    }

    /// Bytes of its arrays by name.
    pub(crate) fn plan(rows: usize, nnz: usize) -> [(&'static str, u64); 4] {
        [
            ("matrix row offsets", 4 * (rows as u64 + 1)),
            ("rows of parts", 4 * (parts_of(nnz) as u64 + 1)),
            ("matrix columns", 4 * nnz as u64),
            ("matrix values", T::PRECISION.bytes() as u64 * nnz as u64),
        ]
    }

    /// Bytes of its arrays.
    pub(crate) fn bytes(&self) -> u64 {
        Self::plan(self.rows, self.values.len()).iter().map(|part| part.1).sum()
    }
}

/// Products with such matrices.
pub(crate) trait SplitOps<T: Real>: Send + Sync {
    /// `y = A x`.
    fn split_product(&self, run: Run<'_>, a: &SplitMatrix<T>, x: &Memory<T>, y: &mut Memory<T>) -> Result<()>;
}
