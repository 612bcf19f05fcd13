//! Calls of the script of conjugate gradients in kernels of their own: faster than kernels that take any script, and the same numbers.

mod host;
mod opencl;

pub(in crate::backend) use opencl::FILES;

use std::ops::Range;

use super::pass::Blend;
use super::state::StepLaunch;
use crate::backend::linear::product::Stored;
use crate::backend::run::Run;
use crate::error::{Error, Result};
use crate::memory::Memory;
use crate::number::Real;

/// The vectors of a conjugate gradient solve.
#[derive(Debug)]
pub(crate) struct CgVectors<'v, T> {
    /// The diagonal preconditioner, if there is one.
    pub(crate) m: Option<&'v Memory<T>>,
    pub(crate) x: &'v mut Memory<T>,
    pub(crate) r: &'v mut Memory<T>,
    pub(crate) p: &'v mut Memory<T>,
    pub(crate) q: &'v mut Memory<T>,
}

/// Places of the numbers of a conjugate gradient solve in the state of its script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CgPlaces {
    /// Register of `r.r`, or of `r.Mr` with a preconditioner.
    pub(crate) rho: usize,
    /// Start of the chunk sums: `p.q`, `q.q` (or `q.Mq`) and twice `r.r`; with a preconditioner then twice `r.Mr`.
    pub(crate) sums: usize,
}

impl CgPlaces {
    /// Runs of chunk sums: without a preconditioner, and with a diagonal.
    pub(crate) const RUNS: [usize; 2] = [4, 6];
}

/// Launches of conjugate gradients for one column. Each stands for a call of the script, whose block `call` names.
pub(crate) trait CgOps<T: Real>: Send + Sync {
    /// The stopping test, then `q = A p` with `p.q` and `q.q`, or `q.Mq` with a preconditioner `m`. If an operator has computed the product, `q`
    /// holds it already.
    fn cg_product(
        &self,
        step: StepLaunch<'_>,
        places: CgPlaces,
        a: &Stored<T>,
        m_and_p: (Option<&Memory<T>>, &Memory<T>),
        q: &mut Memory<T>,
    ) -> Result<()>;
    /// `alpha`, `beta`; `x += alpha p`, `r -= alpha q`, `p = M r + beta p` with `r.r` and `r.Mr`, for `n` rows.
    fn cg_update(&self, step: StepLaunch<'_>, places: CgPlaces, n: usize, vectors: CgVectors<'_, T>) -> Result<()>;
    /// Tells if [`CgOps::cg_resident`] does many iterations in one launch, and gains by it.
    fn cg_stays_resident(&self, _: Run<'_>, _: &Stored<T>) -> bool {
        false
    }
    /// [`CgOps::cg_update`] and [`CgOps::cg_product`] for each of `iterations`, as
    /// [`ScriptOps::step_resident`](super::ScriptOps::step_resident) does others.
    ///
    /// # Errors
    /// [`Error::Conflict`] where [`CgOps::cg_stays_resident`] says no.
    fn cg_resident(
        &self,
        _: StepLaunch<'_>,
        _: CgPlaces,
        _: &Stored<T>,
        _iterations: (Range<usize>, usize),
        _: CgVectors<'_, T>,
    ) -> Result<()> {
        Err(not_resident())
    }
}

/// Sums of the product: `q.q`, or `q.Mq`, and `q.p`.
pub(in crate::backend) fn blend(diagonal: bool) -> Blend {
    Blend { dots: [true; 2], weighted: diagonal, ..Blend::PLAIN }
}

/// The refusal of many iterations in one launch.
pub(super) fn not_resident() -> Error {
    Error::Conflict {
        name: "resident_groups",
        reason: "this device does not do many iterations in one launch".into(),
    }
}
