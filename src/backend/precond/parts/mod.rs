//! Inverse factors of the parts of a matrix, each dense.

mod opencl;

pub(in crate::backend) use opencl::FILES;

use crate::backend::Host;
use crate::backend::run::Run;
use crate::error::Result;
use crate::number::Real;

/// A matrix without its entries between parts: rows part by part, columns within their part.
pub(crate) struct Parts<T> {
    /// First row of each part, and the number of all.
    pub(crate) starts: Vec<u32>,
    pub(crate) offsets: Vec<u32>,
    pub(crate) indices: Vec<u32>,
    pub(crate) entries: Vec<T>,
}

/// `Z` of each part, its rows from the diagonal on one after another, and the pivots of all.
pub(crate) struct Inverses<T> {
    pub(crate) triangles: Vec<T>,
    pub(crate) pivots: Vec<f64>,
}

impl<T> Parts<T> {
    /// Number of parts.
    pub(crate) fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// Rows of a part.
    pub(crate) fn rows(&self, part: usize) -> usize {
        (self.starts[part + 1] - self.starts[part]) as usize
    }

    /// First place of each part in the triangles of all, and the end.
    pub(crate) fn bases(&self) -> Vec<usize> {
        let mut bases = vec![0];
        for part in 0..self.count() {
            let m = self.rows(part);
            bases.push(bases[part] + row_start(m, m));
        }
        bases
    }
}

/// Start of row `l` of a triangle of `m` rows: its entry on the diagonal.
pub(crate) fn row_start(m: usize, l: usize) -> usize {
    l * (2 * m + 1 - l) / 2
}

/// Inverses of parts.
pub(crate) trait PartsOps<T: Real>: Send + Sync {
    /// The inverse factors, if this back end makes them and all pivots are positive: with `forced` wherever it can, else where that pays.
    fn invert_parts(&self, run: Run<'_>, parts: &Parts<T>, forced: bool) -> Result<Option<Inverses<T>>>;
}

impl<T: Real> PartsOps<T> for Host {
    fn invert_parts(&self, _: Run<'_>, _: &Parts<T>, _: bool) -> Result<Option<Inverses<T>>> {
        Ok(None)
    }
}
