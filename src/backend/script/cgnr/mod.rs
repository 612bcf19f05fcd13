//! Kernels of regularised CGNR: those for the vectors as long as an image, and fused ones that multiply by the matrix too.

mod host;
mod opencl;
mod weights;

pub(in crate::backend) use opencl::FILES;

use std::ops::Range;

use super::cg::not_resident;
use super::state::StepLaunch;
use crate::backend::linear::product::Stored;
use crate::backend::run::{PlanKey, Run};
use crate::error::Result;
use crate::memory::{Memory, Place, Plans};
use crate::number::{Real, Sum};
use crate::reduction::Chunks;

/// The image of a correction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Edges {
    /// Pixels of an image row; 0 without neighbour terms.
    pub(crate) width: usize,
    /// 0 no neighbour terms, 1 smoothness, 2 smoothness and total variation.
    pub(crate) edges: u32,
}

/// Places of the numbers of a CGNR solve in the state of its script, and its image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CgnrShape {
    pub(crate) image: Edges,
    /// Rows and columns of the operator.
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    /// Registers of `s.d` and `alpha`, and the first of the weights ([`correction`](crate::state::correction)).
    pub(crate) descent: usize,
    pub(crate) alpha: usize,
    pub(crate) weights: usize,
    /// Start of the chunk sums, those of all columns together: `q.q` and `r.r` over the rows, then `d.F(x, d)`, `s.s`, `s.s_old` and `s.d`
    /// over pixels.
    pub(crate) sums: usize,
}

impl CgnrShape {
    /// Place of the sums of `quantity` over pixels (`d.F(x, d)`, `s.s`, `s.s_old` or `s.d`) of column `c`, of so many columns.
    fn pixel_sums(&self, quantity: usize, c: usize, columns: usize) -> Range<usize> {
        let (rows, cols) = (Chunks::of(self.rows).count, Chunks::of(self.cols).count);
        let start = self.sums + 2 * columns * rows + (quantity * columns + c) * cols;
        start..start + cols
    }
}

/// Vectors of a CGNR solve for one part of an iteration; of pairs the one that is read, and the one that is written.
#[derive(Debug)]
pub(crate) struct Pixels<'v, T> {
    pub(crate) x: [&'v mut Memory<T>; 2],
    pub(crate) s: [&'v mut Memory<T>; 2],
    pub(crate) d: [&'v mut Memory<T>; 2],
    /// Diffusivities of total variation; of any length without it.
    pub(crate) phi: &'v mut Memory<T>,
}

/// All vectors of a CGNR solve.
#[derive(Debug)]
pub(crate) struct CgnrVectors<'v, T> {
    pub(crate) pixels: Pixels<'v, T>,
    pub(crate) r: [&'v mut Memory<T>; 2],
    pub(crate) q: &'v mut Memory<T>,
}

/// The correction term of one image, for [`CgnrOps::cgnr_correction`].
#[derive(Debug)]
pub(crate) struct CorrectionTerm {
    image: Edges,
    /// [`WEIGHTS`](crate::state::correction::WEIGHTS) numbers.
    weights: Memory<Sum>,
    plans: Plans<PlanKey>,
}

impl CorrectionTerm {
    pub(crate) fn new(place: &Place, image: Edges, weights: Vec<Sum>) -> Result<Self> {
        Ok(Self { image, weights: place.take(weights)?, plans: Plans::default() })
    }
}

/// Launches of CGNR. `d` of a direction part is read from `pixels.d[0]` and written to `pixels.d[1]`; of a step part `x` and `s` likewise.
pub(crate) trait CgnrOps<T: Real>: Send + Sync {
    /// The stopping test and `beta`, the program of the call; `d' = s + beta d` with `d'.F(x, d')`. Reads `pixels.s[0]` and `pixels.x[0]`.
    fn cgnr_direction(&self, step: StepLaunch<'_>, shape: CgnrShape, pixels: Pixels<'_, T>) -> Result<()>;
    /// `x' = x + alpha d`, and `s' - F(x', x')` in the place of `s' = A'r`, with the sums of `s'.s'`, `s'.s` and `s'.d`. Reads `pixels.d[0]`. A
    /// start has `x' = x` and writes no `x`. Runs no program.
    fn cgnr_step(&self, step: StepLaunch<'_>, shape: CgnrShape, starts: bool, pixels: Pixels<'_, T>) -> Result<()>;

    /// `out = F(x, v)`, or with `v` none the gradient `F(x, x)`, which takes the bounds from pixels that violate them.
    fn cgnr_correction(
        &self,
        run: Run<'_>,
        term: &CorrectionTerm,
        x: &Memory<T>,
        v: Option<&Memory<T>>,
        out: &mut Memory<T>,
    ) -> Result<()>;

    /// Tells if [`CgnrOps::cgnr_forward`] and [`CgnrOps::cgnr_backward`] work with A and A transposed, and gain by it.
    fn cgnr_fuses(&self, _: Run<'_>, _: [&Stored<T>; 2]) -> bool {
        false
    }
    /// [`CgnrOps::cgnr_direction`] with `q = A d'` and `q.q`, in one launch.
    ///
    /// # Errors
    /// [`Error::Conflict`](crate::Error::Conflict) where [`CgnrOps::cgnr_fuses`] says no.
    fn cgnr_forward(&self, _: StepLaunch<'_>, _: CgnrShape, _: &Stored<T>, _: CgnrVectors<'_, T>) -> Result<()> {
        Err(not_resident())
    }
    /// `alpha`; `r' = r - alpha q` with `r'.r'`, `s' = A'r'`, then [`CgnrOps::cgnr_step`], in one launch; `at` is A transposed. A start has
    /// `r' = r` and writes no `r`.
    ///
    /// # Errors
    /// [`Error::Conflict`](crate::Error::Conflict) where [`CgnrOps::cgnr_fuses`] says no.
    fn cgnr_backward(
        &self,
        _: StepLaunch<'_>,
        _: CgnrShape,
        _starts: bool,
        _at: &Stored<T>,
        _: CgnrVectors<'_, T>,
    ) -> Result<()> {
        Err(not_resident())
    }
    /// Tells if [`CgnrOps::cgnr_resident`] does many iterations in one launch, and gains by it.
    fn cgnr_stays_resident(&self, _: Run<'_>, _: [&Stored<T>; 2]) -> bool {
        false
    }
    /// [`CgnrOps::cgnr_backward`] and [`CgnrOps::cgnr_forward`] for each of `iterations`, whose numbers give the parity of the vectors, as
    /// [`ScriptOps::step_resident`](super::ScriptOps::step_resident) does others. `matrices` are A and A transposed; pairs of vectors are those of
    /// even and of odd parity.
    ///
    /// # Errors
    /// [`Error::Conflict`](crate::Error::Conflict) where [`CgnrOps::cgnr_stays_resident`] says no.
    fn cgnr_resident(
        &self,
        _: StepLaunch<'_>,
        _: CgnrShape,
        _matrices: [&Stored<T>; 2],
        _iterations: (Range<usize>, usize),
        _: CgnrVectors<'_, T>,
    ) -> Result<()> {
        Err(not_resident())
    }
}
