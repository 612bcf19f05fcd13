//! Elimination of columns on a device: `cl/precond/elimination.cl`.

use std::sync::Arc;

use super::{
    BAD_PIVOT, Columns, EliminationOps, FAILED, FINISHED, MOST_PIECES, MOST_ROWS, PIECE, Problem, READY, TOO_LONG,
    WRITTEN,
};
use crate::backend::OpenCl;
use crate::backend::run::Run;
use crate::device_info::{DeviceInfo, DeviceKind};
use crate::error::Result;
use crate::kernels::{Common, kernels};
use crate::memory::{Memory, Place};
use crate::number::{Accumulation, Real, Sum};
use crate::ocl::{Context, File};
use crate::reduction::Chunks;
use crate::tuning::Family;

kernels! {
    file precond/elimination, after [common];
    constants [{MOST_ROWS, MOST_PIECES, PIECE, READY, FINISHED, WRITTEN, FAILED, BAD_PIVOT, TOO_LONG}, NONE = i32::MAX, LANES = 16];
    options { capacity: usize => CAPACITY, stabilised: u32 => STABILISED, tile_bytes: usize => TILE_BYTES }
    /// Begins with the identity.
    kernel begin_columns<T> given(capacity: usize) (n: uint, span: uint, columns: out_int[2 * n * capacity],
        values: out_real[2 * n * capacity], state: out_int[n], first: out_int[n], blocked: out_int[n], slot_of: out_int[n]);
    /// Marks the open columns that are not ready.
    kernel mark_blocked given(entries: usize) (n: uint, span: uint, round: uint, offsets: in_uint[n + 1], indices: in_uint[entries],
        state: in_int[n], first: in_int[n], columns: in_int[n], blocked: out_int[n], counters: out_int[COUNTERS]);
    /// Hands out slots to those that are.
    kernel choose_pivots(n: uint, span: uint, round: uint, slots: uint, first: in_int[n], blocked: in_int[n],
        slot_of: out_int[n], pivot_of: out_int[slots], held: out_int[slots], counters: out_int[COUNTERS]);
    /// Collects their rows.
    kernel gather_rows given(slots: usize) (n: uint, span: uint, round: uint, first: in_int[n], blocked: in_int[n], slot_of: in_int[n],
        held: out_int[slots], members: out_int[slots * MOST_ROWS]);
    /// Finishes columns, and changes those that they meet.
    kernel eliminate<T> given(capacity: usize, nonzeros: usize, slots: usize, integer_count: usize, real_count: usize, sum_count: usize)
        (n: uint, from: uint, to: uint, in_order: uint, most_written: uint, drop: in_sum[1], offsets: in_uint[n + 1],
        indices: in_uint[nonzeros], entries: in_real[nonzeros], pivot_of: in_int[slots], held: in_int[slots],
        members: in_int[slots * MOST_ROWS], columns: out_int[2 * n * capacity], values: out_real[2 * n * capacity], state: out_int[n],
        first: out_int[n], counters: out_int[COUNTERS], row_written: out_int[most_written], column_written: out_int[most_written],
        value_written: out_real[most_written], pivots: out_sum[n], integers: out_int[integer_count], reals: out_real[real_count],
        sums: out_sum[sum_count]);
}

pub(in crate::backend) static FILES: &[&File] = &[&elimination::FILE];

/// Rows from which a device pays.
const LEAST_ROWS: usize = 50_000;
/// Columns of two rounds from which a device pays, and from which rounds are faster than columns in order.
const LEAST_COLUMNS: [usize; 2] = [6, 3];
/// Columns of a round at most, and the fewest that there is room for: groups without a column cost time as well.
const SLOTS: [usize; 2] = [4096, 256];
/// Rounds that are queued between two looks at how many columns are finished.
const ROUNDS: usize = 64;
/// Columns of a launch in which they come in order.
const COLUMNS_IN_ORDER: usize = 256;
/// Most open entries of a row at first: the first number that there is memory for.
const CAPACITIES: [usize; 3] = [128, 64, 32];
/// Most open entries of a row in the last try; each has room for twice as many as the one before.
const LAST_CAPACITY: usize = 1024;
/// Launches of columns in order between two looks at how it goes.
const LAUNCHES: usize = 16;
/// Local memory that a group takes besides a tile.
const LOCAL_BYTES: usize = 4 * (2 * 64 + 16);
/// Numbers that are counted.
const COUNTERS: usize = FAILED + 1;

/// Everything that stays on the device.
struct State<T: Real> {
    offsets: Memory<u32>,
    indices: Memory<u32>,
    entries: Memory<T>,
    drop: Memory<Sum>,
    columns: Memory<i32>,
    values: Memory<T>,
    state: Memory<i32>,
    first: Memory<i32>,
    blocked: Memory<i32>,
    slot_of: Memory<i32>,
    pivot_of: Memory<i32>,
    held: Memory<i32>,
    members: Memory<i32>,
    counters: Memory<i32>,
    row_written: Memory<i32>,
    column_written: Memory<i32>,
    value_written: Memory<T>,
    pivots: Memory<Sum>,
    integers: Memory<i32>,
    reals: Memory<T>,
    sums: Memory<Sum>,
}

/// Sizes of a run, and which of both methods it is.
#[derive(Clone, Copy)]
struct Sizes {
    n: usize,
    /// Most open entries of a row.
    capacity: usize,
    most_written: usize,
    tile_bytes: usize,
    /// Groups that take columns.
    groups: usize,
    stabilised: bool,
}

impl Sizes {
    /// Sizes that take at most a third of the device's memory.
    fn of<T: Real>(problem: &Problem<'_, T>, info: &DeviceInfo, capacity: usize) -> Option<Self> {
        let (n, entries) = (problem.a.rows(), problem.a.nnz());
        let growth = (capacity / CAPACITIES[0]).max(1);
        let most_written = (16 * growth * (entries + n)).min(i32::MAX as usize / 2);
        let tile_bytes =
            [32 << 10, 16 << 10].into_iter().find(|tile| (tile + LOCAL_BYTES) as u64 <= info.local_memory)?;
        let groups = (4 * info.compute_units).clamp(1, SLOTS[1]).min((info.memory >> 26) as usize).max(1);
        let found = Self { n, capacity, most_written, tile_bytes, groups, stabilised: problem.stabilised };
        let element = T::PRECISION.bytes() as u64;
        let rows = 2 * (n * capacity) as u64;
        let written = most_written as u64;
        let [integers, reals, sums] = found.of_groups().map(|count| count as u64);
        let held = (rows + written) * (8 + element) + 24 * n as u64 + 16 * entries as u64;
        let bytes = held + 4 * integers + element * reals + 8 * sums;
        let fits = rows <= u64::from(u32::MAX)
            && rows.max(written) * element <= info.largest_allocation
            && bytes <= (info.memory / 3);
        fits.then_some(found)
    }

    /// Most entries of `v`.
    fn most_places(self) -> usize {
        self.tile_bytes / 16
    }

    /// Most columns that meet a pivot.
    fn most_columns(self) -> usize {
        self.tile_bytes / 32
    }

    /// Integers, values and sums that groups hold.
    fn of_groups(self) -> [usize; 3] {
        let places = self.most_places();
        [MOST_ROWS + 5 * places + (PIECE + 1) * MOST_PIECES, MOST_ROWS + places, places + PIECE * MOST_PIECES]
            .map(|count| self.groups * count)
    }

    /// Options of the kernels, and the number that tells programs with other ones apart.
    fn options(self) -> (elimination::Options, u32) {
        let Self { capacity, tile_bytes, .. } = self;
        let stabilised = u32::from(self.stabilised);
        (elimination::Options { capacity, stabilised, tile_bytes }, 2 * capacity as u32 + stabilised)
    }
}

impl<T: Real> State<T> {
    fn new(context: &Arc<Context>, problem: &Problem<'_, T>, sizes: Sizes) -> Result<Self> {
        let Sizes { n, capacity, most_written, .. } = sizes;
        let place = Place::OpenCl(context.clone());
        let [integers, reals, sums] = sizes.of_groups();
        let a = problem.a;
        Ok(Self {
            offsets: place.take(a.offsets().iter().map(|o| *o as u32).collect())?,
            indices: place.upload(a.indices())?,
            entries: place.upload(a.values())?,
            drop: place.take(vec![Sum::of(problem.drop, Accumulation::Double)])?,
            columns: place.filled(2 * n * capacity, 0)?,
            values: place.filled(2 * n * capacity, T::default())?,
            state: place.filled(n, 0)?,
            first: place.filled(n, 0)?,
            blocked: place.filled(n, 0)?,
            slot_of: place.filled(n, 0)?,
            pivot_of: place.filled(SLOTS[0], 0)?,
            held: place.filled(SLOTS[0], 0)?,
            members: place.filled(SLOTS[0] * MOST_ROWS, 0)?,
            counters: place.filled(COUNTERS, 0)?,
            row_written: place.filled(most_written, 0)?,
            column_written: place.filled(most_written, 0)?,
            value_written: place.filled(most_written, T::default())?,
            pivots: place.filled(n, Sum::default())?,
            integers: place.filled(integers, 0)?,
            reals: place.filled(reals, T::default())?,
            sums: place.filled(sums, Sum::default())?,
        })
    }

    fn counted(&self) -> Result<[i32; COUNTERS]> {
        let mut counters = [0; COUNTERS];
        self.counters.read(0, &mut counters)?;
        Ok(counters)
    }

    /// Entries of all columns, once they are finished.
    fn found(&self, n: usize, written: usize) -> Result<Columns<T>> {
        let (mut rows, mut columns, mut values) = (vec![0; written], vec![0; written], vec![T::default(); written]);
        self.row_written.read(0, &mut rows)?;
        self.column_written.read(0, &mut columns)?;
        self.value_written.read(0, &mut values)?;
        let mut pivots = vec![Sum::default(); n];
        self.pivots.read(0, &mut pivots)?;
        let pivots = pivots.into_iter().map(|pivot| pivot.value(Accumulation::Double)).collect();
        Ok(Columns { rows, columns, values, pivots })
    }
}

/// Columns that a launch takes.
#[derive(Clone, Copy)]
enum Taken {
    /// Columns that are ready, so many at once.
    Ready(usize),
    /// One after another: the first of them, and the one behind the last.
    InOrder(usize, usize),
}

/// End of a run.
enum End {
    /// All columns are finished; so many entries.
    Done(usize),
    /// A row or the factor has more entries than there is room for.
    Full,
    /// The host is to do it, for this reason.
    Left(String),
}

impl OpenCl {
    /// Queues the start.
    fn begin_elimination<T: Real>(&self, run: Run<'_>, sizes: Sizes, s: &mut State<T>) -> Result<()> {
        let (on, Sizes { n, capacity, .. }) = (&self.context, sizes);
        let (options, part) = sizes.options();
        let (common, groups, span) = self.without_barriers::<T>(run, n);
        let kernel = self
            .kernel("begin_columns", common, part, || elimination::begin_columns::prepare(on, common, &options))?;
        let args = elimination::begin_columns::Args {
            capacity,
            n,
            span,
            columns: s.columns.buffer_mut(on)?,
            values: s.values.buffer_mut(on)?,
            state: s.state.buffer_mut(on)?,
            first: s.first.buffer_mut(on)?,
            blocked: s.blocked.buffer_mut(on)?,
            slot_of: s.slot_of.buffer_mut(on)?,
        };
        elimination::begin_columns::launch(&kernel, groups, args)
    }

    /// Queues the first half of a round: what is ready, and the rows of that.
    fn find_ready<T: Real>(
        &self,
        run: Run<'_>,
        (round, slots): (usize, usize),
        sizes: Sizes,
        s: &mut State<T>,
    ) -> Result<()> {
        let (on, Sizes { n, .. }) = (&self.context, sizes);
        let (options, part) = sizes.options();
        let (common, groups, span) = self.without_barriers::<T>(run, n);
        let kernel =
            self.kernel("mark_blocked", common, part, || elimination::mark_blocked::prepare(on, common, &options))?;
        let args = elimination::mark_blocked::Args {
            entries: s.indices.len(),
            n,
            span,
            round,
            offsets: s.offsets.buffer(on)?,
            indices: s.indices.buffer(on)?,
            state: s.state.buffer(on)?,
            first: s.first.buffer(on)?,
            columns: s.columns.buffer(on)?,
            blocked: s.blocked.buffer_mut(on)?,
            counters: s.counters.buffer_mut(on)?,
        };
        elimination::mark_blocked::launch(&kernel, groups, args)?;
        let kernel = self
            .kernel("choose_pivots", common, part, || elimination::choose_pivots::prepare(on, common, &options))?;
        let args = elimination::choose_pivots::Args {
            n,
            span,
            round,
            slots,
            first: s.first.buffer(on)?,
            blocked: s.blocked.buffer(on)?,
            slot_of: s.slot_of.buffer_mut(on)?,
            pivot_of: s.pivot_of.buffer_mut(on)?,
            held: s.held.buffer_mut(on)?,
            counters: s.counters.buffer_mut(on)?,
        };
        elimination::choose_pivots::launch(&kernel, groups, args)?;
        let kernel =
            self.kernel("gather_rows", common, part, || elimination::gather_rows::prepare(on, common, &options))?;
        let args = elimination::gather_rows::Args {
            slots,
            n,
            span,
            round,
            first: s.first.buffer(on)?,
            blocked: s.blocked.buffer(on)?,
            slot_of: s.slot_of.buffer(on)?,
            held: s.held.buffer_mut(on)?,
            members: s.members.buffer_mut(on)?,
        };
        elimination::gather_rows::launch(&kernel, groups, args)
    }

    /// Queues the second half of a round, or columns in order: the columns, and what they change.
    fn eliminate<T: Real>(&self, run: Run<'_>, taken: Taken, sizes: Sizes, s: &mut State<T>) -> Result<()> {
        let (on, Sizes { n, capacity, most_written, .. }) = (&self.context, sizes);
        let (options, part) = sizes.options();
        let found = self.plain::<T>(run, Family::Sweep, Chunks::of(n));
        // A group alone takes all the items that it can have. Several at once: 512 items take 0.3 and 5.6 s for two large matrices on an
        // H200, 256 items 0.5 and 17 s, 1024 items 0.33 and 4.4 s; with few entries a column 512 are as good as 256.
        let largest = run.tuning.largest_group(found.work_group, self.context.info());
        let several = if largest > found.work_group { largest.min(512) } else { largest };
        let (work_group, groups, from, to, in_order) = match taken {
            Taken::Ready(slots) => (several, sizes.groups.min(slots), 0, slots, 0),
            Taken::InOrder(from, to) => (largest, 1, from, to, 1),
        };
        let common: Common = self.common::<T>(run, work_group, 1);
        let kernel =
            self.kernel("eliminate", common, part, || elimination::eliminate::prepare(on, common, &options))?;
        let [integer_count, real_count, sum_count] = sizes.of_groups();
        let args = elimination::eliminate::Args {
            nonzeros: s.indices.len(),
            capacity,
            slots: SLOTS[0],
            integer_count,
            real_count,
            sum_count,
            n,
            from,
            to,
            in_order,
            most_written,
            drop: s.drop.buffer(on)?,
            offsets: s.offsets.buffer(on)?,
            indices: s.indices.buffer(on)?,
            entries: s.entries.buffer(on)?,
            pivot_of: s.pivot_of.buffer(on)?,
            held: s.held.buffer(on)?,
            members: s.members.buffer(on)?,
            columns: s.columns.buffer_mut(on)?,
            values: s.values.buffer_mut(on)?,
            state: s.state.buffer_mut(on)?,
            first: s.first.buffer_mut(on)?,
            counters: s.counters.buffer_mut(on)?,
            row_written: s.row_written.buffer_mut(on)?,
            column_written: s.column_written.buffer_mut(on)?,
            value_written: s.value_written.buffer_mut(on)?,
            pivots: s.pivots.buffer_mut(on)?,
            integers: s.integers.buffer_mut(on)?,
            reals: s.reals.buffer_mut(on)?,
            sums: s.sums.buffer_mut(on)?,
        };
        elimination::eliminate::launch(&kernel, groups, args)
    }

    /// Rounds as long as they find columns enough, then column after column.
    fn all_columns<T: Real>(&self, run: Run<'_>, forced: bool, sizes: Sizes, s: &mut State<T>) -> Result<End> {
        let n = sizes.n;
        self.begin_elimination(run, sizes, s)?;
        let most = SLOTS[0].min(n.next_power_of_two());
        let (mut round, mut slots, mut finished) = (0, most, 0);
        let left = |counters: [i32; COUNTERS]| match counters[FAILED] {
            0 => None,
            BAD_PIVOT => Some(End::Left("a pivot is not positive".into())),
            TOO_LONG => Some(End::Left(format!(
                "a column has more than {MOST_ROWS} entries, {} places or {} partners, or {MOST_PIECES} pieces",
                sizes.most_places(),
                sizes.most_columns()
            ))),
            _ => Some(End::Full),
        };
        while finished < n {
            for _ in 0..ROUNDS.min(n) {
                round += 1;
                self.find_ready(run, (round, slots), sizes, s)?;
                self.eliminate(run, Taken::Ready(slots), sizes, s)?;
            }
            let counters = s.counted()?;
            if let Some(end) = left(counters) {
                return Ok(end);
            }
            // The first open column is always ready: a driver that finishes none did not run the kernels.
            if counters[FINISHED] as usize <= finished {
                return Ok(End::Left("the kernels did nothing".into()));
            }
            finished = counters[FINISHED] as usize;
            if !forced && 2 * finished < LEAST_COLUMNS[0] * round {
                return Ok(End::Left(format!("{round} rounds finished {finished} columns")));
            }
            if 2 * finished < LEAST_COLUMNS[1] * round {
                break;
            }
            slots = (2 * counters[READY] as usize).next_power_of_two().clamp(SLOTS[1].min(most), most);
        }
        // Finished columns are left out.
        for from in (0..n).step_by(COLUMNS_IN_ORDER).filter(|_| finished < n) {
            self.eliminate(run, Taken::InOrder(from, (from + COLUMNS_IN_ORDER).min(n)), sizes, s)?;
            if (from / COLUMNS_IN_ORDER + 1).is_multiple_of(LAUNCHES)
                && let Some(end) = left(s.counted()?)
            {
                return Ok(end);
            }
        }
        let counters = s.counted()?;
        Ok(left(counters).unwrap_or(match counters[FINISHED] as usize == n {
            true => End::Done(counters[WRITTEN] as usize),
            false => End::Left("the kernels did nothing".into()),
        }))
    }
}

impl<T: Real> EliminationOps<T> for OpenCl {
    fn columns(&self, run: Run<'_>, problem: &Problem<'_, T>) -> Result<Option<Columns<T>>> {
        let n = problem.a.rows();
        let info = self.context.info();
        let pays = problem.forced || (info.kind == DeviceKind::Gpu && n >= LEAST_ROWS);
        if !pays || n == 0 {
            return Ok(None);
        }
        let leave = |why: &str| {
            log::info!("the host makes the columns of an approximate inverse, not {}: {why}", info.name);
            Ok(None)
        };
        if run.accumulation != Accumulation::Double {
            return leave("its sums are not in f64");
        }
        let mut found = CAPACITIES.into_iter().find_map(|capacity| Sizes::of(problem, info, capacity));
        loop {
            let Some(sizes) = found else { return leave("there is no room for them") };
            let mut state = State::new(&self.context, problem, sizes)?;
            match self.all_columns(run, problem.forced, sizes, &mut state)? {
                End::Done(written) => return Ok(Some(state.found(n, written)?)),
                End::Left(why) => return leave(&why),
                End::Full if sizes.capacity >= LAST_CAPACITY => return leave("a row has too many open entries"),
                End::Full => found = Sizes::of(problem, info, 2 * sizes.capacity),
            }
        }
    }
}
