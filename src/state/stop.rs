//! Why an iteration stopped, as the device says it.

pub(crate) const RUNNING: i32 = 0;
pub(crate) const CONVERGED: i32 = 1;
pub(crate) const ITERATIONS_DONE: i32 = 2;
pub(crate) const INDEFINITE: i32 = 3;
pub(crate) const BREAKDOWN: i32 = 4;
pub(crate) const NOT_FINITE: i32 = 5;
pub(crate) const GRADIENT_CONVERGED: i32 = 6;
pub(crate) const INDEFINITE_PRECONDITIONER: i32 = 7;
/// The rule for the weight of damping is done: the host says so, no device.
pub(crate) const REGULARISED: i32 = 8;
