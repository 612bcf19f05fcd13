//! Columns of `Z` of an approximate inverse, many at once.

mod opencl;

pub(super) use opencl::FILES;

use super::{Host, Run};
use crate::error::Result;
use crate::number::Real;

/// A symmetric matrix, and how its columns are made orthogonal.
pub(crate) struct Problem<'a, T> {
    pub(crate) offsets: &'a [usize],
    pub(crate) indices: &'a [u32],
    pub(crate) entries: &'a [T],
    pub(crate) stabilised: bool,
    pub(crate) drop: f64,
    /// Tells if the device shall do it, whether that pays or not.
    pub(crate) forced: bool,
}

/// Most entries of a column.
pub(crate) const MOST_ROWS: usize = 256;
/// Most rows of `v`.
pub(crate) const MOST_PLACES: usize = 1024;
/// Most columns that meet a pivot.
pub(crate) const MOST_COLUMNS: usize = 512;
/// Places of a hash table: those of `v`, and one for each item of a group.
pub(crate) const TABLE_PLACES: usize = 2048;
/// Products of a tile, in the memory of the table.
pub(crate) const TILE: usize = 1024;
/// Columns that are ready in a round.
pub(crate) const READY: usize = 0;
/// Columns that are finished.
pub(crate) const FINISHED: usize = 1;
/// Entries that are written.
pub(crate) const WRITTEN: usize = 2;
/// Not 0 once a limit was met, or a pivot that is not positive.
pub(crate) const FAILED: usize = 3;

/// Entries of `Z` and its pivots. Those of a row come by ascending column: the first open column of a row is finished first.
pub(crate) struct Columns<T> {
    pub(crate) rows: Vec<i32>,
    pub(crate) columns: Vec<i32>,
    pub(crate) values: Vec<T>,
    pub(crate) pivots: Vec<f64>,
}

/// Elimination of columns.
pub(crate) trait EliminationOps<T: Real>: Send + Sync {
    /// The columns of `Z`, with the bits of one column after another; `None` if this back end does not find them, because a column has too
    /// many entries, a pivot is not positive, or the host is as good.
    fn columns(&self, run: Run<'_>, problem: &Problem<'_, T>) -> Result<Option<Columns<T>>>;
}
operations!(EliminationOps);

impl<T: Real> EliminationOps<T> for Host {
    fn columns(&self, _: Run<'_>, _: &Problem<'_, T>) -> Result<Option<Columns<T>>> {
        Ok(None)
    }
}
