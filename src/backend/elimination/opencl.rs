//! Elimination of columns on a device: `cl/elimination.cl`.

use std::sync::Arc;

use super::{
    Columns, EliminationOps, FAILED, FINISHED, MOST_COLUMNS, MOST_PLACES, MOST_ROWS, Problem, READY, TABLE_PLACES,
    TILE, WRITTEN,
};
use crate::backend::{OpenCl, Run};
use crate::device_info::DeviceKind;
use crate::error::Result;
use crate::kernels::{Common, kernels};
use crate::memory::{Memory, Place};
use crate::number::{Accumulation, Real, Sum};
use crate::ocl::{Context, File};
use crate::reduction::Chunks;
use crate::tuning::Family;

kernels! {
    file elimination, after [common];
    options { capacity: usize => CAPACITY, stabilised: u32 => STABILISED }
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
    kernel eliminate<T> given(capacity: usize, nonzeros: usize) (n: uint, slots: uint, most_written: uint, drop: in_sum[1], offsets: in_uint[n + 1],
        indices: in_uint[nonzeros], entries: in_real[nonzeros], pivot_of: in_int[slots], held: in_int[slots],
        members: in_int[slots * MOST_ROWS], columns: out_int[2 * n * capacity], values: out_real[2 * n * capacity], state: out_int[n],
        first: out_int[n], counters: out_int[COUNTERS], row_written: out_int[most_written], column_written: out_int[most_written],
        value_written: out_real[most_written], pivots: out_sum[n]);
}

pub(in crate::backend) static FILES: &[&File] = &[&elimination::FILE];

/// Rows from which a device pays.
const LEAST_ROWS: usize = 50_000;
/// Rounds after which a device that finished too few columns a round, because they follow each other, leaves them to the host.
const TRIAL: usize = 512;
/// Columns of a round from which a device pays.
const LEAST_COLUMNS: usize = 3;
/// Columns of a round at most, and the fewest that there is room for: groups without a column cost time as well.
const SLOTS: [usize; 2] = [4096, 256];
/// Rounds that are queued between two looks at how many columns are finished.
const ROUNDS: usize = 64;
/// Local memory that a group takes, with numbers of 8 bytes.
const LOCAL_BYTES: usize = 12 * (MOST_ROWS + MOST_PLACES + MOST_COLUMNS) + 8 * TILE + 64;
const _: () = assert!(4 * TABLE_PLACES <= 8 * TILE && LOCAL_BYTES <= 32 << 10);
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
}

/// Sizes of a run, and which of both methods it is.
#[derive(Clone, Copy)]
struct Sizes {
    n: usize,
    /// Most open entries of a row.
    capacity: usize,
    most_written: usize,
    stabilised: bool,
}

impl Sizes {
    /// Sizes that take at most a third of `memory`.
    fn of<T: Real>(problem: &Problem<'_, T>, [memory, largest]: [u64; 2]) -> Option<Self> {
        let (n, entries) = (problem.offsets.len() - 1, problem.indices.len());
        let most_written = (16 * (entries + n)).min(i32::MAX as usize / 2);
        let element = T::PRECISION.bytes().max(4) as u64;
        let fits = |capacity: usize| {
            let rows = 2 * (n * capacity) as u64;
            let written = most_written as u64;
            rows * element <= largest
                && written * element <= largest
                && (rows + written) * (8 + element) + 24 * n as u64 + 16 * entries as u64 <= memory / 3
        };
        let capacity = [128, 64, 32].into_iter().find(|capacity| fits(*capacity))?;
        Some(Self { n, capacity, most_written, stabilised: problem.stabilised })
    }

    /// Options of the kernels, and the number that tells programs with other ones apart.
    fn options(self) -> (elimination::Options, u32) {
        let stabilised = u32::from(self.stabilised);
        (elimination::Options { capacity: self.capacity, stabilised }, 2 * self.capacity as u32 + stabilised)
    }
}

impl<T: Real> State<T> {
    fn new(context: &Arc<Context>, problem: &Problem<'_, T>, sizes: Sizes) -> Result<Self> {
        let Sizes { n, capacity, most_written, .. } = sizes;
        let place = Place::OpenCl(context.clone());
        Ok(Self {
            offsets: place.take(problem.offsets.iter().map(|o| *o as u32).collect())?,
            indices: place.upload(problem.indices)?,
            entries: place.upload(problem.entries)?,
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
        })
    }
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

    /// Queues the second half: those columns, and what they change.
    fn eliminate_ready<T: Real>(&self, run: Run<'_>, slots: usize, sizes: Sizes, s: &mut State<T>) -> Result<()> {
        let (on, Sizes { n, capacity, most_written, .. }) = (&self.context, sizes);
        let (options, part) = sizes.options();
        let found = self.plain::<T>(run, Family::Sweep, Chunks::of(n));
        let common: Common = self.common::<T>(run, found.work_group, 1);
        let kernel =
            self.kernel("eliminate", common, part, || elimination::eliminate::prepare(on, common, &options))?;
        let args = elimination::eliminate::Args {
            nonzeros: s.indices.len(),
            capacity,
            n,
            slots,
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
        };
        elimination::eliminate::launch(&kernel, slots, args)
    }
}

impl<T: Real> EliminationOps<T> for OpenCl {
    fn columns(&self, run: Run<'_>, problem: &Problem<'_, T>) -> Result<Option<Columns<T>>> {
        let n = problem.offsets.len() - 1;
        let info = self.context.info();
        let pays = problem.forced || (info.kind == DeviceKind::Gpu && n >= LEAST_ROWS);
        let able = run.accumulation == Accumulation::Double && info.local_memory >= LOCAL_BYTES as u64 && n > 0;
        let memory = [info.memory, info.largest_allocation];
        let Some(sizes) = Sizes::of(problem, memory).filter(|_| pays && able) else { return Ok(None) };
        let mut state = State::new(&self.context, problem, sizes)?;
        let (mut counters, mut finished) = ([0; COUNTERS], 0);
        self.begin_elimination(run, sizes, &mut state)?;
        let most = SLOTS[0].min(n.next_power_of_two());
        let (mut round, mut slots) = (0, most);
        while finished < n {
            for _ in 0..ROUNDS.min(n) {
                round += 1;
                self.find_ready(run, (round, slots), sizes, &mut state)?;
                self.eliminate_ready(run, slots, sizes, &mut state)?;
            }
            state.counters.read(0, &mut counters)?;
            // The first open column is always ready: a driver that finishes none did not run the kernels.
            let stuck = counters[FINISHED] as usize <= finished;
            finished = counters[FINISHED] as usize;
            let slow = !problem.forced && round == TRIAL && finished < LEAST_COLUMNS * TRIAL;
            if counters[FAILED] != 0 || stuck || slow {
                return Ok(None);
            }
            slots = (2 * counters[READY] as usize).next_power_of_two().clamp(SLOTS[1].min(most), most);
        }
        let written = counters[WRITTEN] as usize;
        let (mut rows, mut columns, mut values) = (vec![0; written], vec![0; written], vec![T::default(); written]);
        state.row_written.read(0, &mut rows)?;
        state.column_written.read(0, &mut columns)?;
        state.value_written.read(0, &mut values)?;
        let mut pivots = vec![Sum::default(); n];
        state.pivots.read(0, &mut pivots)?;
        let pivots = pivots.into_iter().map(|pivot| pivot.value(Accumulation::Double)).collect();
        Ok(Some(Columns { rows, columns, values, pivots }))
    }
}
