//! Columns of `Z` of an approximate inverse, many at once.

mod opencl;

pub(in crate::backend) use opencl::FILES;

use crate::backend::Host;
use crate::backend::run::Run;
use crate::error::Result;
use crate::number::Real;
use crate::sparse::Csr;

/// A symmetric matrix, and how its columns are made orthogonal.
pub(crate) struct Problem<'a, T: Real> {
    pub(crate) a: &'a Csr<T>,
    pub(crate) stabilised: bool,
    pub(crate) drop: f64,
    /// Tells if the device shall do it, whether that pays or not.
    pub(crate) forced: bool,
}

/// Most entries of a column.
pub(crate) const MOST_ROWS: usize = 1024;
/// Entries of a piece of a row.
pub(crate) const PIECE: usize = 8;
/// Pieces of the rows that a column meets.
pub(crate) const MOST_PIECES: usize = 8192;
/// Columns that are ready in a round.
pub(crate) const READY: usize = 0;
/// Columns that are finished.
pub(crate) const FINISHED: usize = 1;
/// Entries that are written.
pub(crate) const WRITTEN: usize = 2;
/// Reason of a failure, 0 if there is none.
pub(crate) const FAILED: usize = 3;
/// A pivot that is not positive.
pub(crate) const BAD_PIVOT: i32 = 1;
/// A column with too many entries, places or partners.
pub(crate) const TOO_LONG: i32 = 2;

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
    /// many entries, a pivot is not positive, or the host is as good. What it was is logged.
    fn columns(&self, run: Run<'_>, problem: &Problem<'_, T>) -> Result<Option<Columns<T>>>;
}

impl<T: Real> EliminationOps<T> for Host {
    fn columns(&self, _: Run<'_>, _: &Problem<'_, T>) -> Result<Option<Columns<T>>> {
        Ok(None)
    }
}
