//! Inputs of a solve, and what the host reads of a device.

use crate::backend::Run;
use crate::device::Device;
use crate::number::Real;
use crate::vector::Vector;

/// The inputs of one solve: `A'`, `b'` and `x'` of `scaling.rs`.
#[derive(Clone, Copy)]
pub(crate) struct Inputs<'s, T: Real> {
    pub(crate) device: &'s Device,
    pub(crate) run: Run<'s>,
    pub(crate) b: &'s Vector<T>,
}

/// One column, as the device has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Status {
    /// One of [`stop`](crate::state::stop).
    pub(crate) code: i32,
    /// Iterations done and tested since the last start.
    pub(crate) iteration: usize,
}
