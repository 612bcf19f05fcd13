//! Scalars and sums of a solve by one of the fused methods.

use crate::backend::run::PlanKey;
use crate::error::Result;
use crate::memory::{Memory, Place, Plans};
use crate::number::Sum;

/// Scalars and sums of a solve by CG or CGNR; the layouts are those of `cl/cg_parts.cl` and `cl/cgnr_parts.cl` (see `state/`).
#[derive(Debug)]
pub(crate) struct SolveState {
    pub(crate) sums: Memory<Sum>,
    pub(crate) control: Memory<Sum>,
    pub(crate) status: Memory<i32>,
    pub(crate) history: Memory<Sum>,
    pub(crate) plans: Plans<PlanKey>,
}

impl SolveState {
    /// All zero, with so many places each.
    #[inline]
    pub(crate) fn zeros(place: &Place, [sums, control, status, history]: [usize; 4]) -> Result<Self> {
        Ok(Self {
            sums: place.filled(sums, Sum::default())?,
            control: place.filled(control, Sum::default())?,
            status: place.filled(status, 0)?,
            history: place.filled(history, Sum::default())?,
            plans: Plans::default(),
        })
    }

    /// A copy on the host. Waits.
    #[inline]
    pub(crate) fn on_host(&self) -> Result<Self> {
        Ok(Self {
            sums: self.sums.on_host()?,
            control: self.control.on_host()?,
            status: self.status.on_host()?,
            history: self.history.on_host()?,
            plans: Plans::default(),
        })
    }

    /// Numbers of the state, if they are on the host.
    #[inline]
    pub(crate) fn host(&mut self) -> Result<HostState<'_>> {
        Ok(HostState {
            sums: self.sums.host_mut()?,
            control: self.control.host_mut()?,
            status: self.status.host_mut()?,
            history: self.history.host_mut()?,
        })
    }
}

/// A [`SolveState`] on the host.
pub(crate) struct HostState<'a> {
    pub(crate) sums: &'a mut [Sum],
    pub(crate) control: &'a mut [Sum],
    pub(crate) status: &'a mut [i32],
    pub(crate) history: &'a mut [Sum],
}
