//! The fused launches of conjugate gradients.

mod host;
mod opencl;

pub(in crate::backend) use host::test;
pub(in crate::backend) use opencl::FILES;

use crate::backend::fused::SolveState;
use crate::backend::linear::product::Stored;
use crate::backend::run::Run;
use crate::error::Result;
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

/// Launches of conjugate gradients.
pub(crate) trait CgOps<T: Real>: Send + Sync {
    /// `p = M r` with `r.p` for the first test, for `n` rows; only with a diagonal.
    fn cg_direction(
        &self,
        run: Run<'_>,
        n: usize,
        m: &Memory<T>,
        r: &Memory<T>,
        p: &mut Memory<T>,
        state: &mut SolveState,
    ) -> Result<()>;
    /// `q = A p` with `p.q` and `q.Mq`; the stopping test of this iteration.
    fn cg_product(
        &self,
        run: Run<'_>,
        a: &Stored<T>,
        vectors: CgVectors<'_, T>,
        state: &mut SolveState,
    ) -> Result<()>;
    /// `alpha`, `beta`; `x += alpha p`, `r -= alpha q`, `p = M r + beta p` with `r.r` and `r.Mr`, for `n` rows.
    fn cg_update(&self, run: Run<'_>, n: usize, vectors: CgVectors<'_, T>, state: &mut SolveState) -> Result<()>;
    /// Tells if [`CgOps::cg_resident`] does many iterations in one launch, and gains by it.
    fn cg_stays_resident(&self, _: Run<'_>, _: &Stored<T>) -> bool {
        false
    }
    /// [`CgOps::cg_update`] and [`CgOps::cg_product`], `iterations` times. On a device this is one launch. It may give up before it
    /// changes anything; word `ABANDONED` of the status is then 1.
    fn cg_resident(
        &self,
        run: Run<'_>,
        a: &Stored<T>,
        iterations: usize,
        vectors: CgVectors<'_, T>,
        state: &mut SolveState,
    ) -> Result<()> {
        let CgVectors { m, x, r, p, q } = vectors;
        (0..iterations).try_for_each(|_| {
            self.cg_update(run, a.rows, CgVectors { m, x, r, p, q }, state)?;
            self.cg_product(run, a, CgVectors { m, x, r, p, q }, state)
        })
    }
}
