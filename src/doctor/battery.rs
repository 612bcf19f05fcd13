//! The battery: every kernel of the library on problems of a few dozen unknowns.

#[cfg(feature = "fem")]
use super::elements;
#[cfg(feature = "simulation")]
use super::flows;
use super::question::Question;
#[cfg(feature = "imaging")]
use super::scans;
use super::{inverses, products, solves, vectors};
use crate::number::Real;

/// Questions that launch every kernel of the library at least once, in one precision.
///
/// The doctor asks them of a device if it is to look at everything. The tests compare the answers of every device with the host's and
/// with the golden file, and let the simulator Oclgrind look for races and for accesses out of bounds.
pub fn battery<T: Real>() -> Vec<Question> {
    let mut all = vectors::questions::<T>();
    all.extend(products::questions::<T>());
    all.extend(solves::questions::<T>());
    all.extend(inverses::questions::<T>());
    #[cfg(feature = "imaging")]
    all.extend(scans::questions::<T>());
    #[cfg(feature = "simulation")]
    all.extend(flows::questions::<T>());
    #[cfg(feature = "fem")]
    all.extend(elements::questions::<T>());
    all
}
