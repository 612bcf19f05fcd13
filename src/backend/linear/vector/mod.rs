//! Element-wise operations and reductions of vectors (krueger-westermann-2003, section 3).

mod host;
mod opencl;

pub(in crate::backend) use opencl::FILES;

use crate::backend::run::Run;
use crate::error::Result;
use crate::memory::Memory;
use crate::number::Real;

/// A reduction of all elements of a vector to one number (krueger-westermann-2003, 3.3).
// The numbers are those of `cl/linear/reduce.cl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// Their sum, 0 for none.
    Sum,
    /// Their product, 1 for none.
    Product,
    /// The least, infinity for none, NaN if one is NaN.
    Minimum,
    /// The greatest, minus infinity for none, NaN if one is NaN.
    Maximum,
    /// The sum of their magnitudes, 0 for none.
    AbsoluteSum,
}

/// Numbers that are reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Terms {
    /// Elements of a vector.
    Elements,
    /// Products of the elements of two.
    Products,
}

/// One of several interleaved columns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) count: usize,
    pub(crate) index: usize,
}

impl Column {
    /// A vector that is not interleaved.
    pub(crate) const ALONE: Self = Self { count: 1, index: 0 };
}

/// Operations on vectors of one length.
pub(crate) trait VectorOps<T: Real>: Send + Sync {
    /// `x = value`.
    fn fill(&self, run: Run<'_>, value: T, x: &mut Memory<T>) -> Result<()>;
    /// `y = alpha x`.
    fn scale(&self, run: Run<'_>, alpha: T, x: &Memory<T>, y: &mut Memory<T>) -> Result<()>;
    /// `x = alpha x`.
    fn rescale(&self, run: Run<'_>, alpha: T, x: &mut Memory<T>) -> Result<()>;
    /// `y = alpha x + beta y`.
    fn axpby(&self, run: Run<'_>, factors: [T; 2], x: &Memory<T>, y: &mut Memory<T>) -> Result<()>;
    /// `z = alpha x + beta y`.
    fn add_scaled(&self, run: Run<'_>, factors: [T; 2], xy: [&Memory<T>; 2], z: &mut Memory<T>) -> Result<()>;
    /// `z = x y`, element by element.
    fn multiply_elements(&self, run: Run<'_>, xy: [&Memory<T>; 2], z: &mut Memory<T>) -> Result<()>;
    /// `x = min(max(x, lower), upper)`, element by element.
    fn clamp_elements(&self, run: Run<'_>, bounds: [T; 2], x: &mut Memory<T>) -> Result<()>;
    /// Reduces one column of `x`, or of `x y`. Waits for the device.
    fn reduce(&self, run: Run<'_>, column: Column, of: (Reduction, Terms), xy: [&Memory<T>; 2]) -> Result<f64>;
}
