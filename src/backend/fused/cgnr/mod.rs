//! The fused launches of regularised CGNR.

mod correction;
mod host;
mod opencl;

pub(in crate::backend) use host::test;
pub(in crate::backend) use opencl::FILES;

use std::ops::Range;

use crate::backend::fused::SolveState;
use crate::backend::linear::product::Stored;
use crate::backend::run::{PlanKey, Run};
use crate::error::Result;
use crate::memory::{Memory, Place, Plans};
use crate::number::{Real, Sum};
use crate::state::cgnr::{ALL, PIXELS_ONLY, ROWS_ONLY};

/// The part of an iteration that a launch does: all, or the part before or after a product that an operator computes, `PART` in
/// `cl/cgnr_parts.cl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    All = ALL,
    Rows = ROWS_ONLY,
    Pixels = PIXELS_ONLY,
}

/// The vector that each group of a resident launch forms in its local memory; the numbers are those of `cl/cgnr_resident.cl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Staged {
    Nothing = 0,
    Direction = 1,
    Residual = 2,
}

/// Properties that are fixed while a CGNR solve runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CgnrShape {
    /// Right-hand sides at once.
    pub(crate) columns: usize,
    /// Pixels of an image row; 0 without neighbour terms.
    pub(crate) width: usize,
    /// 0 no neighbour terms, 1 smoothness, 2 smoothness and total variation.
    pub(crate) edges: u32,
    /// The part of the work that a launch does.
    pub(crate) part: Part,
}

/// The vectors of a CGNR solve. Pairs change places every iteration.
#[derive(Debug)]
pub(crate) struct CgnrVectors<'v, T> {
    pub(crate) x: [&'v mut Memory<T>; 2],
    pub(crate) r: [&'v mut Memory<T>; 2],
    pub(crate) s: [&'v mut Memory<T>; 2],
    pub(crate) d: [&'v mut Memory<T>; 2],
    pub(crate) q: &'v mut Memory<T>,
    pub(crate) phi: &'v mut Memory<T>,
}

impl<T> CgnrVectors<'_, T> {
    /// A view of these vectors for one launch of several.
    fn again(&mut self) -> CgnrVectors<'_, T> {
        let Self { x: [x0, x1], r: [r0, r1], s: [s0, s1], d: [d0, d1], q, phi } = self;
        CgnrVectors { x: [x0, x1], r: [r0, r1], s: [s0, s1], d: [d0, d1], q, phi }
    }
}

/// The vector of a pair that is read at this parity, and the one that is written.
fn by_parity<'t, V>(pair: &'t mut [&mut V; 2], parity: usize) -> (&'t V, &'t mut V) {
    let [even, odd] = pair;
    if parity == 0 { (even, odd) } else { (odd, even) }
}

/// The correction term of one image, for [`CgnrOps::cgnr_correction`].
#[derive(Debug)]
pub(crate) struct CorrectionTerm {
    shape: CgnrShape,
    /// The words of [`cgnr`](crate::state::cgnr) from `TIKHONOV` to `UPPER` count.
    weights: Memory<Sum>,
    plans: Plans<PlanKey>,
}

impl CorrectionTerm {
    pub(crate) fn new(place: &Place, shape: CgnrShape, weights: Vec<Sum>) -> Result<Self> {
        Ok(Self { shape, weights: place.take(weights)?, plans: Plans::default() })
    }
}

/// Launches of CGNR.
pub(crate) trait CgnrOps<T: Real>: Send + Sync {
    /// `beta`; `d' = s + beta d`, `q = A d'` with `q.q` and `d'.F(x, d')`, where `d = d[parity]`, `d' = d[1 - parity]`.
    fn cgnr_forward(
        &self,
        run: Run<'_>,
        shape: CgnrShape,
        a: &Stored<T>,
        parity: usize,
        vectors: CgnrVectors<'_, T>,
        state: &mut SolveState,
    ) -> Result<()>;
    /// `alpha`; `x' = x + alpha d'`, `r' = r - alpha q`, `s' = A'r' - F(x', x')` with their sums; `at` is A transposed.
    fn cgnr_backward(
        &self,
        run: Run<'_>,
        shape: CgnrShape,
        at: &Stored<T>,
        parity: usize,
        vectors: CgnrVectors<'_, T>,
        state: &mut SolveState,
    ) -> Result<()>;

    /// `out = F(x, v)`, or with `v` none the gradient `F(x, x)`, which takes the bounds from pixels that violate them.
    fn cgnr_correction(
        &self,
        run: Run<'_>,
        term: &CorrectionTerm,
        x: &Memory<T>,
        v: Option<&Memory<T>>,
        out: &mut Memory<T>,
    ) -> Result<()>;

    /// Launches of an iteration with matrices A and A transposed.
    fn cgnr_launches(&self, _: Run<'_>, _: [&Stored<T>; 2]) -> usize {
        2
    }

    /// Tells if [`CgnrOps::cgnr_resident`] does many iterations in one launch, and gains by it.
    fn cgnr_stays_resident(&self, _: Run<'_>, _: &Stored<T>, _: &Stored<T>) -> bool {
        false
    }
    /// [`CgnrOps::cgnr_backward`] and [`CgnrOps::cgnr_forward`] for `iterations`, whose numbers give the parity of the vectors;
    /// `matrices` are A and A transposed. On a device this is one launch. It may give up before it changes anything; word
    /// `ABANDONED` of the status is then 1.
    fn cgnr_resident(
        &self,
        run: Run<'_>,
        shape: CgnrShape,
        matrices: [&Stored<T>; 2],
        iterations: Range<usize>,
        mut vectors: CgnrVectors<'_, T>,
        state: &mut SolveState,
    ) -> Result<()> {
        let [a, at] = matrices;
        iterations.into_iter().try_for_each(|k| {
            self.cgnr_backward(run, shape, at, k % 2, vectors.again(), state)?;
            self.cgnr_forward(run, shape, a, (k + 1) % 2, vectors.again(), state)
        })
    }
}
