//! Calls of scripts over a block of vectors: `h = Q'w`, `w -= Q h`, and the small least-squares problem of GMRES.

mod host;
mod opencl;

pub(super) use opencl::FILE;

use super::state::{ScriptState, StepCall, StepLaunch};
use crate::backend::run::PlanKey;
use crate::error::Result;
use crate::memory::{Memory, Place, Plans};
use crate::number::{Element, Real, Sum};
use crate::reduction::Chunks;

/// Most vectors of a basis, as in `cl/script/basis.cl`.
pub(crate) const MOST_VECTORS: usize = 100;

/// Arrays of `most + 1` wide numbers for each column; the triangle of GMRES follows, column by column. Names of `cl/script/basis.cl`.
pub(crate) const FACTOR: usize = 0;
pub(crate) const SCALE: usize = 1;
pub(crate) const PROJECTION: usize = 2;
pub(crate) const COSINE: usize = 3;
pub(crate) const SINE: usize = 4;
pub(crate) const RIGHT_SIDE: usize = 5;
pub(crate) const TRIANGLE: usize = 6;

/// A basis `Q` of up to `most` vectors, and the arrays that go with it.
#[derive(Debug)]
pub(crate) struct Basis<T> {
    /// Rows of a vector.
    n: usize,
    columns: usize,
    most: usize,
    /// One vector after the other, `per_buffer` of them in a buffer; vector `k` has norm 1 times its scale.
    vectors: Vec<Memory<T>>,
    per_buffer: usize,
    /// Chunk sums: of each vector with the vector at hand, column by column, then of a square.
    sums: Memory<Sum>,
    arrays: Memory<Sum>,
    plans: Plans<PlanKey>,
}

/// Chunk sums of a basis.
fn sum_numbers(n: usize, columns: usize, most: usize) -> usize {
    ((most + 1) * columns * Chunks::of(n).count).max(1)
}

/// Numbers of the arrays of a basis.
fn array_numbers(columns: usize, most: usize) -> usize {
    columns * (TRIANGLE + most) * (most + 1)
}

/// Vectors of `bytes` bytes in each buffer of a basis of `most`, if no allocation may be larger than `largest` bytes; 0 is no limit.
fn vectors_of_buffers(most: usize, bytes: u64, largest: u64) -> Vec<usize> {
    let per_buffer = match largest {
        0 => most,
        largest => usize::try_from(largest / bytes.max(1)).unwrap_or(most).clamp(1, most.max(1)),
    };
    (0..most).step_by(per_buffer.max(1)).map(|first| per_buffer.min(most - first)).collect()
}

/// Bytes of the buffers of a basis of `most` vectors, numbers of `bytes` bytes, beside the smaller ones of its sums and arrays,
/// which come last.
pub(crate) fn held(n: usize, columns: usize, most: usize, bytes: usize, largest: u64) -> Vec<u64> {
    let vector = (n * columns * bytes) as u64;
    let vectors = vectors_of_buffers(most, vector, largest).into_iter().map(|count| count as u64 * vector);
    let sums = (sum_numbers(n, columns, most) + array_numbers(columns, most)) * size_of::<Sum>();
    vectors.chain([sums as u64]).collect()
}

/// Place of element `k` of array `name` of column `c`: `array_of` of `cl/script/basis.cl`.
fn place(most: usize, name: usize, c: usize, k: usize) -> usize {
    (c * (TRIANGLE + most) + name) * (most + 1) + k
}

impl<T: Element> Basis<T> {
    /// Exchanges scales and factors with another basis of as many vectors.
    pub(crate) fn exchange_arrays(&mut self, other: &mut Self) {
        std::mem::swap(&mut self.arrays, &mut other.arrays);
    }

    /// All zero, for `columns` right-hand sides of `n` rows; no buffer of vectors has more than `largest` bytes, if that is not 0.
    pub(crate) fn new(place: &Place, n: usize, columns: usize, most: usize, largest: u64) -> Result<Self> {
        let counts = vectors_of_buffers(most, (n * columns * size_of::<T>()) as u64, largest);
        let buffer = |count: &usize| place.filled(count * n * columns, T::default());
        Ok(Self {
            n,
            columns,
            most,
            per_buffer: counts.first().copied().unwrap_or(1),
            vectors: counts.iter().map(buffer).collect::<Result<Vec<_>>>()?,
            sums: place.filled(sum_numbers(n, columns, most), Sum::default())?,
            arrays: place.filled(array_numbers(columns, most), Sum::default())?,
            plans: Plans::default(),
        })
    }

    /// The first vector of a buffer, and the number of those of the first `count` that lie in it.
    fn part(&self, buffer: usize, count: usize) -> Part {
        let first = buffer * self.per_buffer;
        Part { buffer, first, count: count.saturating_sub(first).min(self.per_buffer) }
    }

    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// Norms of the first `norms.len()` vectors of column `c`, as launches without a triangle keep them. Waits.
    pub(crate) fn norms(&self, c: usize, norms: &mut [Sum]) -> Result<()> {
        self.arrays.read(place(self.most, RIGHT_SIDE, c, 0), norms)
    }

    /// Sets the factors of the vectors, those of each column together, for an addition; the rest are 0. Waits.
    pub(crate) fn set_factors(&mut self, factors: &[Vec<Sum>]) -> Result<()> {
        let mut arrays = vec![Sum::default(); self.arrays.len()];
        self.arrays.read(0, &mut arrays)?;
        for (c, factors) in factors.iter().enumerate() {
            for k in 0..self.most {
                arrays[place(self.most, FACTOR, c, k)] = factors.get(k).copied().unwrap_or_default();
            }
        }
        self.arrays.write(&arrays)
    }

    /// A copy on the host, without the vectors. Waits.
    pub(in crate::backend) fn scalars_on_host(&self) -> Result<Self> {
        Ok(Self {
            n: self.n,
            columns: self.columns,
            most: self.most,
            vectors: Vec::new(),
            per_buffer: self.per_buffer,
            sums: self.sums.on_host()?,
            arrays: self.arrays.on_host()?,
            plans: Plans::default(),
        })
    }
}

/// Vectors of one buffer of a basis.
#[derive(Clone, Copy, Debug)]
struct Part {
    buffer: usize,
    /// Number of its first vector.
    first: usize,
    count: usize,
}

/// Work after `v += Q h` in the same launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    Nothing,
    /// The chunk sums of `Q'v`.
    Project,
    /// The chunk sums of `v.v`; and `v` becomes the next vector of the basis, if there is room.
    Append,
}

/// `v += Q factors`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addition {
    /// Vectors of `Q`.
    pub(crate) count: usize,
    /// Adds nothing if false: what follows is all that is done.
    pub(crate) adds: bool,
    /// Begin with `v = 0`.
    pub(crate) fresh: bool,
    pub(crate) then: Then,
}

/// Launches over a basis. They read the status in slot `call.slot`; columns that have stopped stay as they are.
pub(crate) trait BasisOps<T: Real>: Send + Sync {
    /// The chunk sums of `Q'w`, for the first `count` vectors.
    fn basis_project(&self, step: StepLaunch<'_>, count: usize, w: &Memory<T>, basis: &mut Basis<T>) -> Result<()>;
    /// Folds the chunk sums of `Q'w`: coefficients `h`, added to those before if this is done `again`, and the factors that take
    /// the vectors out of `w`.
    fn basis_fold(&self, step: StepLaunch<'_>, count: usize, again: bool, basis: &mut Basis<T>) -> Result<()>;
    /// `v += Q factors`. A factor of 0 adds nothing, whatever its vector holds.
    fn basis_add(
        &self,
        step: StepLaunch<'_>,
        addition: Addition,
        v: &mut Memory<T>,
        basis: &mut Basis<T>,
    ) -> Result<()>;
    /// Folds the square of vector `column`, brings column `column - 1` of GMRES's triangle to shape by rotations, then runs the
    /// program, which finds the squares of the new vector, the diagonal and the residual in its registers. Without a `triangle` the norm is
    /// kept in the place of the right side instead, and the program finds its square.
    fn basis_rotate(&self, step: StepLaunch<'_>, column: usize, triangle: bool, basis: &mut Basis<T>)
    -> Result<()>;
    /// After its program: columns forget vectors, whose factors and scales become 0. `dropped` names the register that is above 0 in such a
    /// column, and the number of the first vectors that it forgets.
    fn basis_drop(&self, step: StepLaunch<'_>, dropped: (usize, usize), basis: &mut Basis<T>) -> Result<()>;
    /// After its program: factors that solve the triangle, of as many rows as register `depth` says, for columns that run.
    fn basis_solve(&self, step: StepLaunch<'_>, depth: usize, basis: &mut Basis<T>) -> Result<()>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_shared_out_over_buffers() {
        assert_eq!(vectors_of_buffers(30, 8, 0), [30]);
        assert_eq!(vectors_of_buffers(30, 8, 240), [30]);
        assert_eq!(vectors_of_buffers(30, 8, 239), [29, 1]);
        assert_eq!(vectors_of_buffers(7, 10, 29), [2, 2, 2, 1]);
        // One that does not fit is asked for all the same: the allocation says what is wrong.
        assert_eq!(vectors_of_buffers(2, 10, 9), [1, 1]);
        assert_eq!(vectors_of_buffers(3, 0, 9), [3]);
        let held = held(10, 2, 7, 8, 320);
        assert_eq!(held[..4], [320, 320, 320, 160]);
        assert_eq!(held.len(), 5);
    }
}
