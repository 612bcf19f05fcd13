//! A method is described as data, a script: a list of calls. Most calls are one launch. It first runs a short program of scalar operations
//! (`crate::recurrence`), which computes coefficients such as alpha and beta. Then it does nothing more, or a product that is combined with
//! another vector (a blend), or statements over vectors element by element (a pass). More terms: the glossary of ARCHITECTURE.md.

pub(crate) mod basis;
pub(crate) mod cg;
pub(crate) mod cgnr;
mod host;
pub(crate) mod limit;
mod opencl;
mod pass;
pub(crate) mod resident;
mod state;
mod statements;
mod text;
pub(crate) mod variation;

use std::ops::Range;

pub(crate) use basis::{Addition, Basis, BasisOps, MOST_VECTORS, Then};
pub(crate) use cg::{CgOps, CgPlaces, CgVectors};
pub(crate) use cgnr::{CgnrOps, CgnrShape, CgnrVectors, CorrectionTerm, Edges, Pixels};
pub(in crate::backend) use host::product_spots;
pub(in crate::backend) use opencl::FILES;
pub(crate) use pass::{Blend, MOST_STATEMENTS, PASS_VECTORS, Pass, Statement};
pub(crate) use resident::{Listing, RESIDENT_MATRICES, RESIDENT_VECTORS, ResidentCall, ResidentWork};
pub(crate) use state::{ScriptState, StepCall, StepLaunch};
pub(crate) use variation::{Dual, Variation};

use crate::backend::Run;
use crate::backend::linear::product::Stored;
use crate::error::Result;
use crate::memory::Memory;
use crate::number::Real;

/// Launches of a script.
pub(crate) trait ScriptOps<T: Real>: Send + Sync {
    /// The program alone.
    fn step_scalars(&self, step: StepLaunch<'_>) -> Result<()>;
    /// The program, then `y = s A x + k w` with `y.y` (or `y.(w y)`) and `y.z`; `vectors` are `x`, `w` and `z`.
    fn step_product(
        &self,
        step: StepLaunch<'_>,
        a: &Stored<T>,
        blend: Blend,
        vectors: [&Memory<T>; 3],
        y: &mut Memory<T>,
    ) -> Result<()>;
    /// The program, then the statements of `pass` for vectors of `n` rows.
    fn step_vectors(
        &self,
        step: StepLaunch<'_>,
        n: usize,
        pass: &Pass,
        vectors: [&mut Memory<T>; PASS_VECTORS],
    ) -> Result<()>;
    /// Tells if [`ScriptOps::step_resident`] does many iterations with these matrices in one launch, and gains by it.
    fn script_stays_resident(&self, _: Run<'_>, _: &[&Stored<T>], _columns: usize) -> bool {
        false
    }
    /// Tells if a product by this matrix is faster without its program and its sums, in launches of their own.
    fn script_multiplies_apart(&self, _: Run<'_>, _: &Stored<T>) -> bool {
        false
    }
    /// Iterations in one launch, as `listing` says, with the same matrices in each launch of a state. `call` has the slot, which stays the
    /// same. It may give up before it changes anything, and those after it do too: word `DONE` behind the status keeps the number
    /// beside the iterations of the last that did not.
    ///
    /// # Errors
    /// [`Error::Conflict`](crate::Error::Conflict) where [`ScriptOps::script_stays_resident`] says no.
    fn step_resident(
        &self,
        _: StepLaunch<'_>,
        _listing: &Listing,
        _iterations: (Range<usize>, usize),
        _matrices: [&Stored<T>; RESIDENT_MATRICES],
        _vectors: [&mut Memory<T>; RESIDENT_VECTORS],
    ) -> Result<()> {
        Err(cg::not_resident())
    }
}
