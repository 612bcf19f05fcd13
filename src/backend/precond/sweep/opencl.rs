//! Sweeps on a device: `cl/precond/sweep.cl`, `cl/precond/sweep_waiting.cl`.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::{SweepOps, Triangle, Waiting, portions};
use crate::backend::OpenCl;
use crate::backend::run::Run;
use crate::error::Result;
use crate::kernels::{MatrixOptions, kernels};
use crate::memory::{Memory, Place};
use crate::number::{Precision, Real};
use crate::ocl::{File, Plan};
use crate::reduction::Chunks;
use crate::sparse::{Arrangement, Kind};
use crate::tuning::Family;

kernels! {
    file precond/sweep, after [common, fold, format, row];
    options { matrix: MatrixOptions, operation: u32 => OPERATION }
    /// Levels `first_level .. last_level` of a forward or backward sweep.
    kernel sweep<T>(first_level: uint, last_level: uint, keep: real, bounds: in_uint[last_level + 1], list: in_uint,
        offsets: in_uint[list.len() + 1], indices: in_uint, values: in_real[indices.len()], scale: in_real[list.len()],
        x: in_real[list.len()], z: out_real[list.len()]);
}

kernels! {
    file precond/sweep_waiting, after [common];
    options { operation: u32 => OPERATION, ahead: usize => AHEAD }
    /// A whole forward or backward sweep.
    kernel sweep_waiting<T> given(words: usize) (n: uint, portions: uint, turn: uint, keep: real, starts: in_uint[portions + 1], list: in_uint[n],
        offsets: in_uint[n + 1], indices: in_uint, values: in_real[indices.len()], scale: in_real[n], x: in_real[n],
        z: out_real[n], told: out_int[2 * n * words], tickets: out_int[2]);
}

pub(in crate::backend) static FILES: &[&File] = &[&sweep::FILE, &sweep_waiting::FILE];

/// Compressed rows of one lane.
const MATRIX: MatrixOptions = MatrixOptions::of(Arrangement::of(Kind::Csr), 8);

/// Levels from which one launch is faster than one for each.
const LEAST_LEVELS: usize = 3;
/// Rows of a level, in the mean, up to which that holds: measured up to 7 000.
const MOST_ROWS_OF_LEVEL: usize = 1 << 14;
/// Levels whose rows are under way together.
const LEVELS: usize = 16;
/// Groups for each compute unit at most: all of them ask for values while they wait (Poisson 128^3: 1.1 ms with 2 or 3, 1.7 with 16).
const GROUPS_PER_UNIT: usize = 4;
/// Values of a row that are asked for together, at most and at least.
const AHEAD: [usize; 2] = [4, 16];

/// All bits of a value that was not told.
const NOT_TOLD: i32 = -1;

/// Words of 32 bits of a number.
const fn words_of<T: Real>() -> usize {
    T::PRECISION.bytes() / 4
}

impl OpenCl {
    /// Queues a whole sweep as one launch.
    fn sweep_waiting<T: Real>(
        &self,
        run: Run<'_>,
        triangle: &Triangle<T>,
        waiting: &Mutex<Waiting>,
        keep: Option<T>,
        x: &Memory<T>,
        z: &mut Memory<T>,
    ) -> Result<()> {
        let Triangle { list, offsets, indices, values, scale, plans, .. } = triangle;
        let (on, operation) = (&self.context, u32::from(keep.is_some()));
        // Held until the launch is queued: launches take turns in the order of the queue.
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let Waiting { most, ahead, groups, starts, told, tickets, turn } = &mut *waiting;
        let portions = starts.len() - 1;
        let plan = plans.get(run.key("sweep_waiting", 1, operation), || {
            let common = self.common::<T>(run, *most, 1);
            let options = sweep_waiting::Options { operation, ahead: *ahead };
            let kernel = sweep_waiting::sweep_waiting::prepare(on, common, &options)?;
            Ok(Plan { kernel, groups: *groups, share: *most })
        })?;
        let args = sweep_waiting::sweep_waiting::Args {
            words: words_of::<T>(),
            n: scale.len(),
            portions,
            turn: *turn,
            keep: keep.unwrap_or_default(),
            starts: starts.buffer(on)?,
            list: list.buffer(on)?,
            offsets: offsets.buffer(on)?,
            indices: indices.buffer(on)?,
            values: values.buffer(on)?,
            scale: scale.buffer(on)?,
            x: x.buffer(on)?,
            z: z.buffer_mut(on)?,
            told: told.buffer_mut(on)?,
            tickets: tickets.buffer_mut(on)?,
        };
        sweep_waiting::sweep_waiting::launch(&plan.kernel, plan.groups, args)?;
        *turn = 1 - *turn;
        Ok(())
    }
}

impl<T: Real> SweepOps<T> for OpenCl {
    fn waiting(&self, run: Run<'_>, bounds: &[u32], offsets: &[u32]) -> Result<Option<Waiting>> {
        let (levels, rows) = (bounds.len() - 1, offsets.len() - 1);
        // Places of entries are counted on past the end, in 32 bits.
        let countable = offsets.last().is_none_or(|end| *end <= u32::MAX - AHEAD[1] as u32);
        let narrow = levels >= LEAST_LEVELS && rows / levels <= MOST_ROWS_OF_LEVEL;
        // A value is told as one word.
        let whole = T::PRECISION == Precision::Single || self.context.info().int64_atomics;
        if run.tuning.resident_groups < 2 || !narrow || !countable || !whole {
            return Ok(None);
        }
        let found = self.plain::<T>(run, Family::SweepWaiting, Chunks::of(rows));
        let most = self.context.synchronised(found.work_group);
        let starts = portions(bounds, most);
        let longest = offsets.windows(2).map(|row| (row[1] - row[0]) as usize).max().unwrap_or(0);
        let groups = (LEVELS * (starts.len() - 1)).div_ceil(levels).min(GROUPS_PER_UNIT * self.units());
        let place = Place::OpenCl(self.context.clone());
        Ok(Some(Waiting {
            most,
            ahead: longest.next_power_of_two().clamp(AHEAD[0], AHEAD[1]),
            groups: groups.max(1),
            starts: place.take(starts)?,
            told: place.filled(2 * rows * words_of::<T>(), NOT_TOLD)?,
            tickets: place.filled(2, 0)?,
            turn: 0,
        }))
    }

    fn sweep(
        &self,
        run: Run<'_>,
        triangle: &Triangle<T>,
        levels: Range<usize>,
        widest: usize,
        keep: Option<T>,
        x: &Memory<T>,
        z: &mut Memory<T>,
    ) -> Result<()> {
        if let Some(waiting) = &triangle.waiting {
            return self.sweep_waiting(run, triangle, waiting, keep, x, z);
        }
        let Triangle { bounds, list, offsets, indices, values, scale, plans, .. } = triangle;
        let (on, operation) = (&self.context, u32::from(keep.is_some()));
        // `groups` is the most that share a level, `share` the items of a group.
        let plan = plans.get(run.key("sweep", 1, operation), || {
            let found = self.plain::<T>(run, Family::Sweep, Chunks::of(scale.len()));
            let common = self.common::<T>(run, found.work_group, 1);
            let kernel = sweep::sweep::prepare(on, common, &sweep::Options { matrix: MATRIX, operation })?;
            Ok(Plan { kernel, groups: found.most_groups(self.units()), share: common.work_group })
        })?;
        let groups = if levels.len() > 1 { 1 } else { widest.div_ceil(plan.share).clamp(1, plan.groups) };
        let args = sweep::sweep::Args {
            first_level: levels.start,
            last_level: levels.end,
            keep: keep.unwrap_or_default(),
            bounds: bounds.buffer(on)?,
            list: list.buffer(on)?,
            offsets: offsets.buffer(on)?,
            indices: indices.buffer(on)?,
            values: values.buffer(on)?,
            scale: scale.buffer(on)?,
            x: x.buffer(on)?,
            z: z.buffer_mut(on)?,
        };
        sweep::sweep::launch(&plan.kernel, groups, args)
    }
}
