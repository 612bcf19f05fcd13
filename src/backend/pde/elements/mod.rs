//! Products of the matrices of finite elements that are never formed: `cl/pde/elements.cl` has the algorithm.

mod host;
mod opencl;

#[cfg(any(test, feature = "tuner"))]
pub(in crate::backend) use opencl::FILES;

use crate::backend::run::Run;
use crate::error::Result;
use crate::memory::Memory;
use crate::number::Real;

/// Number of a coefficient that is 0.
pub(crate) const NO_COEFFICIENT: u32 = u32::MAX;

/// Cells of one degree, and all boxes or all mapped.
#[derive(Debug)]
pub(crate) struct Batch<T> {
    /// Shape functions along an axis: degree + 1, 2 to 9.
    pub(crate) points: usize,
    /// Number of cells.
    pub(crate) count: usize,
    /// Place of their first part.
    pub(crate) start: usize,
    /// True if cells have a metric in each Gauss point, false if they have a factor for each axis.
    pub(crate) mapped: bool,
    /// Number of the coefficient of each shape function, the first axis fastest.
    pub(crate) ids: Memory<u32>,
    /// Boxes: integrals of products of shape functions, `points x points`. Mapped cells: values at the Gauss points, slopes there, and the
    /// transposed of both.
    pub(crate) tables: Vec<T>,
    /// Boxes: a factor for each axis. Mapped cells: `xx, xy, xz, yy, yz, zz` of the metric, each in all Gauss points, the second axis
    /// fastest, then the third, then the first.
    pub(crate) geometry: Memory<T>,
}

/// Place of a shape function among the parts of its cell.
pub(crate) fn part_place([i, j, k]: [usize; 3], points: usize, mapped: bool) -> usize {
    if mapped { i + points * (j + points * k) } else { j + points * (k + points * i) }
}

/// Rows of parts that are added up, and of combinations.
#[derive(Debug)]
pub(crate) struct Sums<T> {
    pub(crate) rows: usize,
    /// Offsets and places of parts.
    pub(crate) shared: Option<[Memory<u32>; 2]>,
    /// Offsets, columns and factors.
    pub(crate) combined: Option<([Memory<u32>; 2], Memory<T>)>,
}

/// Products of finite elements.
pub(crate) trait ElementOps<T: Real>: Send + Sync {
    /// The products of the cells of a batch with the coefficients `x`, those from `free` on in `hung`: of shape functions inside a cell to `y`,
    /// of the others to `parts`.
    fn apply_elements(
        &self,
        run: Run<'_>,
        batch: &Batch<T>,
        free: usize,
        given: [&Memory<T>; 2],
        parts: &mut Memory<T>,
        y: &mut Memory<T>,
    ) -> Result<()>;
    /// `to = ` sums of `parts`, and combinations of `values`.
    fn sum_elements(
        &self,
        run: Run<'_>,
        sums: &Sums<T>,
        parts: &Memory<T>,
        values: &Memory<T>,
        to: &mut Memory<T>,
    ) -> Result<()>;
}
