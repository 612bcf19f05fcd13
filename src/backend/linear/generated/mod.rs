//! Products with a matrix whose entries the user's own text makes: `cl/linear/generated.cl`.

mod host;
mod opencl;

pub(in crate::backend) use opencl::FILES;

use crate::backend::run::{PlanKey, Run};
use crate::error::Result;
use crate::memory::{Memory, Plans};
use crate::number::{Arithmetic, Real};

/// Entry `k` of row `i` on the host: its column and value.
pub(crate) type EntryTwin<T> = dyn Fn(Arithmetic, u32, u32) -> (u32, T) + Send + Sync;

/// A matrix as a text that makes its entries.
pub(crate) struct Generator<T> {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    /// Entries of a row, at most.
    pub(crate) entries: usize,
    /// Statements of OpenCL C that set `column` and `value` of entry `k` of row `i`.
    pub(crate) text: String,
    pub(crate) twin: Box<EntryTwin<T>>,
    /// Tells if each group copies the vector to local memory, part by part.
    pub(crate) staged: bool,
    pub(crate) plans: Plans<PlanKey>,
}

/// Products with generated matrices.
pub(crate) trait GeneratedOps<T: Real>: Send + Sync {
    /// Builds what a product needs.
    fn prepare(&self, run: Run<'_>, a: &Generator<T>) -> Result<()>;
    /// `y = A x`.
    fn generated_product(&self, run: Run<'_>, a: &Generator<T>, x: &Memory<T>, y: &mut Memory<T>) -> Result<()>;
}
