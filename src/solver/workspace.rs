//! What a set-up method can do, whatever its back end.

use super::driver::{Observer, Outcome};
use super::stopping::{Limits, Stopping};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::number::Real;
use crate::vector::Vector;

/// The vectors and scalars of a method on one of the back ends.
pub(super) trait Workspace<T: Real>: Send {
    /// Solves from the start guess in `x`, one outcome for each of `limits`, and the seconds that the
    /// iterations took: `A'`, `b'` and `x'` of `scaling.rs`.
    fn solve(
        &mut self,
        device: &Device,
        stopping: &Stopping,
        limits: &[Limits],
        b: &Vector<T>,
        x: &mut Vector<T>,
        observer: &mut Observer<'_>,
    ) -> Result<(Vec<Outcome>, f64)>;

    /// The point that damping pulls the answer to.
    fn set_reference(&mut self, _: &Vector<T>) -> Result<()> {
        Err(Error::Option { name: "reference", reason: "this method has no damping".into() })
    }

    /// `b - A x` of the last start.
    fn residual(&self) -> &Vector<T>;

    /// Launches of one iteration on a device, those of operators that are no matrix included.
    fn launches(&self) -> usize;

    /// Whether the second number of a history is the norm of a gradient.
    fn least_squares(&self) -> bool;
}
