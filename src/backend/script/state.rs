//! The state of a script on a device.

use super::pass::PassWords;
use crate::backend::{PlanKey, Run};
use crate::error::Result;
use crate::memory::{Memory, Place, Plans};
use crate::number::Sum;
use crate::recurrence::{REGISTERS, STATES, STOP};
use crate::state::{HISTORY, barrier, stop};

/// Programs, scalars and sums of a script; the layout is that of `cl/script/recurrence.cl`.
#[derive(Debug)]
pub(crate) struct ScriptState {
    pub(crate) programs: Memory<u32>,
    pub(crate) sums: Memory<Sum>,
    pub(crate) registers: Memory<Sum>,
    pub(crate) status: Memory<i32>,
    pub(crate) history: Memory<Sum>,
    /// Plans of passes, of launches over images, and of all others that the script keeps.
    pub(super) passes: Plans<PassKey>,
    pub(super) plans: Plans<PlanKey>,
    /// The list of the calls of resident launches, on the device once there was one.
    pub(super) list: Option<Memory<u32>>,
}

/// Key of the launches of passes: several of them share the same options.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PassKey {
    pub(super) launch: PlanKey,
    pub(super) n: usize,
    pub(super) words: PassWords,
}

impl ScriptState {
    /// All zero, for `columns` right-hand sides and `sums` chunk sums.
    pub(crate) fn new(place: &Place, programs: Vec<u32>, columns: usize, sums: usize) -> Result<Self> {
        Ok(Self {
            programs: place.take(programs)?,
            sums: place.filled(sums.max(1), Sum::default())?,
            registers: place.filled(2 * columns * REGISTERS, Sum::default())?,
            status: place.take(vec![0; Self::words(columns)])?,
            history: place.filled(2 * HISTORY * columns, Sum::default())?,
            passes: Plans::default(),
            plans: Plans::default(),
            list: None,
        })
    }

    /// Words of `status`.
    pub(crate) fn words(columns: usize) -> usize {
        2 * columns * STATES + columns + 1 + barrier::WORDS
    }

    /// Tells if every column has stopped when `call` hands the slot on. The state is on the host.
    pub(in crate::backend) fn has_stopped(&self, call: StepCall) -> Result<bool> {
        let slot =
            &self.status.host()?[(1 - call.slot as usize) * call.columns * STATES..][..call.columns * STATES];
        Ok(slot.chunks(STATES).all(|column| column[STOP] != stop::RUNNING))
    }

    /// A copy on the host. Waits.
    pub(in crate::backend) fn on_host(&self) -> Result<Self> {
        Ok(Self {
            programs: self.programs.on_host()?,
            sums: self.sums.on_host()?,
            registers: self.registers.on_host()?,
            status: self.status.on_host()?,
            history: self.history.on_host()?,
            passes: Plans::default(),
            plans: Plans::default(),
            list: None,
        })
    }
}

/// A launch of a script: the block of the programs that it runs, the slot that it reads, the number of columns; and the number of
/// chunk sums that the script has in all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepCall {
    pub(crate) block: u32,
    pub(crate) slot: u32,
    pub(crate) columns: usize,
    pub(crate) sums: usize,
}

/// A launch of a script, with the settings of its run and the state that it reads and writes.
#[derive(Debug)]
pub(crate) struct StepLaunch<'a> {
    pub(crate) run: Run<'a>,
    pub(crate) call: StepCall,
    pub(crate) state: &'a mut ScriptState,
}

impl StepLaunch<'_> {
    /// Lends the launch, for one of several parts of its work.
    pub(crate) fn lend(&mut self) -> StepLaunch<'_> {
        StepLaunch { run: self.run, call: self.call, state: self.state }
    }
}
