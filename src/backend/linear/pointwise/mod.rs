//! Operations of the user's own, element by element: `cl/linear/pointwise.cl`.

mod host;
mod opencl;

pub(in crate::backend) use opencl::FILES;

use crate::backend::run::{PlanKey, Run};
use crate::error::Result;
use crate::memory::{Memory, Plans};
use crate::number::{Arithmetic, Real};

/// Vectors, and parameters, that a formula can name.
pub(crate) const MOST: usize = 4;

/// A formula on the host, for as many elements as are given: a call for each would cost more than most formulas.
pub(crate) type Twin<T> = dyn Fn(Arithmetic, [&[T]; MOST], [T; MOST], &mut [T]) + Send + Sync;

/// A formula as OpenCL C and as a function of the host.
pub(crate) struct Formula<T> {
    text: String,
    twin: Box<Twin<T>>,
    plans: Plans<PlanKey>,
}

impl<T: Real> Formula<T> {
    pub(crate) fn new(text: String, twin: Box<Twin<T>>) -> Self {
        Self { text, twin, plans: Plans::default() }
    }

    /// The formula as OpenCL C.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// `y` = the values on the host.
    pub(crate) fn values(&self, arithmetic: Arithmetic, x: [&[T]; MOST], p: [T; MOST], y: &mut [T]) {
        (self.twin)(arithmetic, x, p, y);
    }
}

/// Evaluation of a formula on the first `n` elements.
pub(crate) trait PointwiseOps<T: Real>: Send + Sync {
    /// Builds what an evaluation on `n` elements needs.
    fn prepare(&self, run: Run<'_>, n: usize, formula: &Formula<T>) -> Result<()>;
    /// `y_i` = the formula of `x_i` and `p`.
    fn evaluate(
        &self,
        run: Run<'_>,
        n: usize,
        formula: &Formula<T>,
        x: [&Memory<T>; MOST],
        p: [T; MOST],
        y: &mut Memory<T>,
    ) -> Result<()>;
}
