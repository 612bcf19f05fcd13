//! Calls of scripts over a block of vectors: `h = Q'w`, `w -= Q h`, and the small least-squares problem of GMRES.

mod host;
mod opencl;

pub(super) use opencl::FILE;

use super::{ScriptState, StepCall};
use crate::backend::{PlanKey, Run};
use crate::error::Result;
use crate::memory::{Memory, Place, Plans};
use crate::number::{Element, Real, Sum};
use crate::reduction::Chunks;

/// Most vectors of a basis, as in `cl/basis.cl`.
pub(crate) const MOST_VECTORS: usize = 100;

/// Arrays of `most + 1` wide numbers for each column; the triangle of GMRES follows, column by column. Names of `cl/basis.cl`.
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
    /// One vector after the other; vector `k` has norm 1 times its scale.
    vectors: Memory<T>,
    /// Chunk sums: of each vector with the vector at hand, column by column, then of a square.
    sums: Memory<Sum>,
    arrays: Memory<Sum>,
    plans: Plans<PlanKey>,
}

/// Numbers of a basis: of its vectors, its chunk sums, its arrays.
fn lengths(n: usize, columns: usize, most: usize) -> [usize; 3] {
    let sums = (most + 1) * columns * Chunks::of(n).count;
    [most * n * columns, sums.max(1), array_numbers(columns, most)]
}

/// Numbers of the arrays of a basis.
fn array_numbers(columns: usize, most: usize) -> usize {
    columns * (TRIANGLE + most) * (most + 1)
}

/// Bytes of a basis of `most` vectors, numbers of `bytes` bytes.
pub(crate) fn held(n: usize, columns: usize, most: usize, bytes: usize) -> u64 {
    let [vectors, sums, arrays] = lengths(n, columns, most);
    (vectors * bytes + (sums + arrays) * size_of::<Sum>()) as u64
}

impl<T: Element> Basis<T> {
    /// All zero, for `columns` right-hand sides of `n` rows.
    pub(crate) fn new(place: &Place, n: usize, columns: usize, most: usize) -> Result<Self> {
        let [vectors, sums, arrays] = lengths(n, columns, most);
        Ok(Self {
            n,
            columns,
            most,
            vectors: place.filled(vectors, T::default())?,
            sums: place.filled(sums, Sum::default())?,
            arrays: place.filled(arrays, Sum::default())?,
            plans: Plans::default(),
        })
    }

    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// A copy on the host, without the vectors. Waits.
    pub(in crate::backend) fn scalars_on_host(&self) -> Result<Self> {
        Ok(Self {
            n: self.n,
            columns: self.columns,
            most: self.most,
            vectors: Place::Host.filled(0, T::default())?,
            sums: self.sums.on_host()?,
            arrays: self.arrays.on_host()?,
            plans: Plans::default(),
        })
    }
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
    /// Begin with `v = 0`.
    pub(crate) fresh: bool,
    pub(crate) then: Then,
}

/// Launches over a basis. They read the status in slot `call.slot`; columns that have stopped stay as they are.
pub(crate) trait BasisOps<T: Real>: Send + Sync {
    /// The chunk sums of `Q'w`, for the first `count` vectors.
    fn basis_project(
        &self,
        run: Run<'_>,
        call: StepCall,
        count: usize,
        w: &Memory<T>,
        basis: &mut Basis<T>,
        state: &ScriptState,
    ) -> Result<()>;
    /// Folds the chunk sums of `Q'w`: coefficients `h`, added to those before if this is done `again`, and the factors that take
    /// the vectors out of `w`.
    fn basis_fold(
        &self,
        run: Run<'_>,
        call: StepCall,
        count: usize,
        again: bool,
        basis: &mut Basis<T>,
        state: &ScriptState,
    ) -> Result<()>;
    /// `v += Q factors`. A factor of 0 adds nothing, whatever its vector holds.
    fn basis_add(
        &self,
        run: Run<'_>,
        call: StepCall,
        addition: Addition,
        v: &mut Memory<T>,
        basis: &mut Basis<T>,
        state: &ScriptState,
    ) -> Result<()>;
    /// Folds the square of vector `step`, brings column `step - 1` of GMRES's triangle to shape by rotations, then runs the
    /// program, which finds the squares of the new vector, the diagonal and the residual in its registers.
    fn basis_rotate(
        &self,
        run: Run<'_>,
        call: StepCall,
        step: usize,
        basis: &mut Basis<T>,
        state: &mut ScriptState,
    ) -> Result<()>;
    /// After its program: factors that solve the triangle, of as many rows as register `depth` says, for columns that run.
    fn basis_solve(
        &self,
        run: Run<'_>,
        call: StepCall,
        depth: usize,
        basis: &mut Basis<T>,
        state: &mut ScriptState,
    ) -> Result<()>;
}
operations!(BasisOps, checked);
