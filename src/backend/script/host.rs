//! The launches of scripts on the host: `cl/script/recurrence.cl`, `cl/script/step.cl` and `cl/script/pass.cl`.

use std::array;
use std::ops::Range;

use super::ScriptOps;
use super::pass::{Blend, PASS_VECTORS, Pass};
use super::state::{ScriptState, StepCall, StepLaunch};
use super::statements::Statements;
use crate::backend::Host;
use crate::backend::linear::product::{HostMatrix, Sampled, Spots, Stored, chunk_product, sampled_rows};
use crate::backend::run::Run;
use crate::backend::sums::{chunk_sums, column_dot, scattered_sum, summing, total};
use crate::error::Result;
use crate::memory::Memory;
use crate::number::{Accumulator, Real, Sum};
use crate::recurrence::{COEFFICIENTS, DOT_PLACES, FOLDED, HEADER, INSTRUCTIONS, REGISTERS, STATES, interpret};
use crate::reduction::Chunks;
use crate::state::stop;
use crate::threads::{self, ChunksMut};

/// A [`ScriptState`] on the host.
pub(super) struct HostScript<'a> {
    programs: &'a [u32],
    pub(super) sums: &'a mut [Sum],
    pub(super) registers: &'a mut [Sum],
    pub(super) status: &'a mut [i32],
    history: &'a mut [Sum],
}

impl ScriptState {
    #[inline]
    pub(super) fn host(&mut self) -> Result<HostScript<'_>> {
        Ok(HostScript {
            programs: self.programs.host()?,
            sums: self.sums.host_mut()?,
            registers: self.registers.host_mut()?,
            status: self.status.host_mut()?,
            history: self.history.host_mut()?,
        })
    }
}

/// Scalars and statuses after the program of a launch.
pub(super) struct Frame<A> {
    pub(super) file: Vec<A>,
    state: Vec<i32>,
    /// The header of the block.
    head: [u32; HEADER],
}

impl<A: Copy> Frame<A> {
    /// Coefficient `k` of the pass, for column `c`.
    #[inline]
    pub(super) fn coefficient(&self, c: usize, k: usize) -> A {
        self.file[c * REGISTERS + self.head[COEFFICIENTS + k] as usize]
    }

    #[inline]
    pub(super) fn running(&self, c: usize) -> bool {
        self.state[STATES * c] == stop::RUNNING
    }

    #[inline]
    fn any_runs(&self) -> bool {
        self.state.chunks(STATES).any(|column| column[0] == stop::RUNNING)
    }

    /// Start of the chunk sums of dot product `k` of column `c`.
    #[inline]
    fn place(&self, k: usize, c: usize, count: usize) -> usize {
        self.head[DOT_PLACES + k] as usize + c * count
    }
}

/// Tells for each column if it runs, by the status in the slot of a launch.
#[inline]
pub(super) fn running(call: StepCall, status: &[i32]) -> Vec<bool> {
    let slot = &status[call.slot as usize * call.columns * STATES..][..call.columns * STATES];
    slot.chunks(STATES).map(|column| column[0] == stop::RUNNING).collect()
}

fn values<T: Real, A: Accumulator<T>>(sums: &[Sum]) -> Vec<A> {
    let mut values = Vec::with_capacity(sums.len());
    for sum in sums {
        values.push(A::from_bits(sum.0));
    }
    values
}

/// `take_slot` of `cl/script/recurrence.cl`.
pub(super) fn take<T: Real, A: Accumulator<T>>(call: StepCall, state: &HostScript<'_>) -> Frame<A> {
    let (slot, columns) = (call.slot as usize, call.columns);
    let block = &state.programs[call.block as usize..];
    Frame {
        file: values(&state.registers[slot * columns * REGISTERS..][..columns * REGISTERS]),
        state: state.status[slot * columns * STATES..][..columns * STATES].to_vec(),
        head: array::from_fn(|k| block[k]),
    }
}

/// `run_block` of `cl/script/recurrence.cl`. Tells if any column still runs.
pub(super) fn run_block<T: Real, A: Accumulator<T>>(
    call: StepCall,
    frame: &mut Frame<A>,
    state: &mut HostScript<'_>,
) -> bool {
    let (slot, columns) = (call.slot as usize, call.columns);
    let code = &state.programs[call.block as usize + HEADER..][..4 * frame.head[INSTRUCTIONS] as usize];
    if frame.any_runs() && !code.is_empty() {
        let (limits, mask) = state.status[2 * columns * STATES..].split_at(columns);
        for c in 0..columns {
            let file = &mut frame.file[c * REGISTERS..][..REGISTERS];
            for f in 0..frame.head[FOLDED] as usize {
                let [place, count] = [1, 2].map(|k| frame.head[FOLDED + k + 2 * f] as usize);
                file[f] = total::<T, A>(&state.sums[place + c * count..][..count]);
            }
            let history = &mut *state.history;
            interpret::<T, A>(code, file, &mut frame.state[c * STATES..][..STATES], limits[c], |k, a, b| {
                let entry = 2 * ((k & mask[0]) as usize * columns + c);
                history[entry] = Sum(a.to_bits());
                history[entry + 1] = Sum(b.to_bits());
            });
        }
    }
    let registers = &mut state.registers[(1 - slot) * columns * REGISTERS..][..frame.file.len()];
    for k in 0..registers.len() {
        registers[k] = Sum(frame.file[k].to_bits());
    }
    state.status[(1 - slot) * columns * STATES..][..columns * STATES].copy_from_slice(&frame.state);
    frame.any_runs()
}

/// `recur` of `cl/script/recurrence.cl`; nothing once every column has stopped.
#[inline]
pub(super) fn recur<T: Real, A: Accumulator<T>>(call: StepCall, state: &mut HostScript<'_>) -> Option<Frame<A>> {
    let mut frame = take::<T, A>(call, state);
    run_block::<T, A>(call, &mut frame, state).then_some(frame)
}

#[inline]
fn scalars<T: Real, A: Accumulator<T>>(call: StepCall, state: &mut HostScript<'_>) {
    let _: Option<Frame<A>> = recur::<T, A>(call, state);
}

/// The sum of `x (w y)`, or of `x y` without a `w`, over some rows of column `c` of so many: one chunk.
fn rows_dot<T: Real, A: Accumulator<T>>(
    lanes: usize,
    rows: Range<usize>,
    [columns, c]: [usize; 2],
    (x, w, y): (&[T], Option<&[T]>, &[T]),
) -> Sum {
    let Some(w) = w else { return column_dot::<T, A>(lanes, rows, [columns, c], x, y) };
    let term = |i: usize| {
        let at = i * columns + c;
        A::product(x[at], w[at] * y[at])
    };
    scattered_sum::<T, A>(lanes, rows, term)
}

/// Coefficients of a product, for each column: of `A x` and of what is added.
fn factors<A: Copy>(frame: &Frame<A>, columns: usize) -> Vec<[A; 2]> {
    (0..columns).map(|c| [0, 1].map(|k| frame.coefficient(c, k))).collect()
}

/// `s A x + k w` of a sum, for [`chunk_product`].
fn blended<T: Real, A: Accumulator<T>>(blend: Blend, factors: &[[A; 2]], w: &[T]) -> impl Fn(usize, usize, A) -> T {
    move |i, c, sum| {
        let mut value = sum;
        if blend.scaled {
            value = factors[c][0].mul(value);
        }
        if blend.shifted {
            value = value.add(factors[c][1].mul(A::from_real(w[i * factors.len() + c])));
        }
        value.to_real()
    }
}

/// Spots of [`ScriptOps::step_product`], of which `state` is the state before it on the host: rows of a sample, and sums of the chunks `of` over
/// the result `y`. Of vectors only the parts are read that the spots need. Nothing if every column has stopped.
pub(in crate::backend) fn product_spots<T: Real>(
    run: Run<'_>,
    call: StepCall,
    (a, n): (&Sampled<'_, T>, usize),
    blend: Blend,
    vectors: ([&[T]; 3], &[T]),
    of: &[usize],
    state: &mut ScriptState,
) -> Result<Option<Spots<T>>> {
    let state = &mut state.host()?;
    Ok(summing!(run, T, spots(call, (a, n), blend, vectors, of, state)))
}

fn spots<T: Real, A: Accumulator<T>>(
    call: StepCall,
    (a, n): (&Sampled<'_, T>, usize),
    blend: Blend,
    ([x, w, z], y): ([&[T]; 3], &[T]),
    of: &[usize],
    state: &mut HostScript<'_>,
) -> Option<Spots<T>> {
    let frame = recur::<T, A>(call, state)?;
    let (chunks, columns) = (Chunks::of(n), call.columns);
    let rows = sampled_rows(a, columns, x, blended::<T, A>(blend, &factors(&frame, columns), w));
    let mut sums = Vec::new();
    for (k, other) in [y, z].into_iter().enumerate().filter(|(k, _)| blend.dots[*k]) {
        let weight = (k == 0 && blend.weighted).then_some(w);
        for (c, g) in (0..columns).flat_map(|c| of.iter().map(move |g| (c, *g))) {
            let sum = rows_dot::<T, A>(chunks.lanes, chunks.range(g), [columns, c], (y, weight, other));
            sums.push((frame.place(k, c, chunks.count) + g, sum));
        }
    }
    Some(Spots { rows, sums })
}

fn product<T: Real, A: Accumulator<T>>(
    call: StepCall,
    a: &HostMatrix<'_, T>,
    blend: Blend,
    [x, w, z]: [&[T]; 3],
    y: &mut [T],
    state: &mut HostScript<'_>,
) {
    let Some(frame) = recur::<T, A>(call, state) else { return };
    let (chunks, columns) = (Chunks::of(a.rows), call.columns);
    let factors = factors(&frame, columns);
    // Sums of each chunk together, one place at least.
    let each = (columns * blend.dots.iter().filter(|dot| **dot).count()).max(1);
    let mut sums = vec![Sum::default(); chunks.count * each];
    threads::each((ChunksMut(y, chunks.chunk * columns), ChunksMut(&mut sums, each)), 1, |g, (y, sums)| {
        let rows = chunks.range(g);
        chunk_product(a, columns, rows.clone(), x, y, blended(blend, &factors, w));
        // While the chunk is in the cache. Vectors that are not read may be shorter.
        let part = rows.start * columns..rows.end * columns;
        let (w, z) = (w.get(part.clone()).unwrap_or_default(), z.get(part).unwrap_or_default());
        row_dots::<T, A>(chunks.lanes, columns, blend, [y, w, z], sums);
    });
    let dots = (0..2).filter(|k| blend.dots[*k]);
    for (at, (k, c)) in dots.flat_map(|k| (0..columns).map(move |c| (k, c))).enumerate() {
        let place = &mut state.sums[frame.place(k, c, chunks.count)..][..chunks.count];
        for g in 0..chunks.count {
            place[g] = sums[g * each + at];
        }
    }
}

/// Sums of a chunk of a product `y` that `blend` asks for: `y.y` of each column, or `y.(w y)`, then `y.z`.
fn row_dots<T: Real, A: Accumulator<T>>(
    lanes: usize,
    columns: usize,
    blend: Blend,
    [y, w, z]: [&[T]; 3],
    sums: &mut [Sum],
) {
    if columns == 1 && blend.dots == [true; 2] {
        let [square, dot] = if blend.weighted {
            chunk_sums(lanes, [y, w, z], |[y, w, z]| [A::product(y, w * y), A::product(y, z)])
        } else {
            chunk_sums(lanes, [y, z], |[y, z]| [A::product(y, y), A::product(y, z)])
        };
        (sums[0], sums[1]) = (square, dot);
        return;
    }
    let (rows, mut at) = (0..y.len() / columns, 0);
    for (k, other) in [y, z].into_iter().enumerate().filter(|(k, _)| blend.dots[*k]) {
        let weight = (k == 0 && blend.weighted).then_some(w);
        for c in 0..columns {
            sums[at] = rows_dot::<T, A>(lanes, rows.clone(), [columns, c], (y, weight, other));
            at += 1;
        }
    }
}

/// Elements of a piece of work, unless a chunk has more.
const SPAN: usize = 2048;

fn vectors<T: Real, A: Accumulator<T>>(
    call: StepCall,
    n: usize,
    pass: &Pass,
    vectors: [&mut [T]; PASS_VECTORS],
    state: &mut HostScript<'_>,
) {
    let Some(frame) = recur::<T, A>(call, state) else { return };
    let (chunks, columns) = (Chunks::of(n), call.columns);
    let running = (0..columns).map(|c| frame.running(c)).collect();
    let statements = Statements::new(pass, running, |c, k| frame.coefficient(c, k).to_real());
    // Chunks may be as short as 32 elements: several of them are one piece of work.
    let chunks_each = (SPAN / chunks.chunk).max(1);
    let mut all = vectors.map(|v| v.chunks_mut(chunks_each * chunks.chunk * columns));
    let mut pieces: Vec<[&mut [T]; PASS_VECTORS]> = (0..chunks.count.div_ceil(chunks_each))
        .map(|_| all.each_mut().map(|v| v.next().unwrap_or_default()))
        .collect();
    // Sums of each chunk together, one place at least, so that pieces without sums are still pieces.
    let each = pass.dots.len() * columns;
    let of_piece = (chunks_each * each).max(1);
    let mut sums = vec![Sum::default(); pieces.len() * of_piece];
    threads::each((&mut pieces[..], ChunksMut(&mut sums, of_piece)), 1, |_, (pieces, sums)| {
        statements.run::<A>(chunks, pieces, sums);
    });
    for (g, sums) in sums.chunks(each.max(1)).take(chunks.count).enumerate().filter(|_| each > 0) {
        for (at, sum) in sums.iter().enumerate() {
            state.sums[frame.place(at / columns, at % columns, chunks.count) + g] = *sum;
        }
    }
}

impl<T: Real> ScriptOps<T> for Host {
    #[inline]
    fn step_scalars(&self, step: StepLaunch<'_>) -> Result<()> {
        let StepLaunch { run, call, state } = step;
        let state = &mut state.host()?;
        summing!(run, T, scalars(call, state));
        Ok(())
    }

    #[inline]
    fn step_product(
        &self,
        step: StepLaunch<'_>,
        a: &Stored<T>,
        blend: Blend,
        [x, w, z]: [&Memory<T>; 3],
        y: &mut Memory<T>,
    ) -> Result<()> {
        let StepLaunch { run, call, state } = step;
        let (a, vectors, y) = (a.host()?, [x.host()?, w.host()?, z.host()?], y.host_mut()?);
        let state = &mut state.host()?;
        summing!(run, T, product(call, &a, blend, vectors, y, state));
        Ok(())
    }

    fn step_vectors(
        &self,
        step: StepLaunch<'_>,
        n: usize,
        pass: &Pass,
        [v0, v1, v2, v3, v4, v5, v6, v7]: [&mut Memory<T>; PASS_VECTORS],
    ) -> Result<()> {
        let StepLaunch { run, call, state } = step;
        let (low, high) = (
            [v0.host_mut()?, v1.host_mut()?, v2.host_mut()?, v3.host_mut()?],
            [v4.host_mut()?, v5.host_mut()?, v6.host_mut()?, v7.host_mut()?],
        );
        let ([v0, v1, v2, v3], [v4, v5, v6, v7]) = (low, high);
        let state = &mut state.host()?;
        summing!(run, T, vectors(call, n, pass, [v0, v1, v2, v3, v4, v5, v6, v7], state));
        Ok(())
    }
}
