//! The launches of scripts on the host: `cl/recurrence.cl`, `cl/step.cl` and `cl/pass.cl`.

use std::array;

use super::ScriptOps;
use super::pass::{Blend, PASS_VECTORS, Pass, Statement};
use super::state::{ScriptState, StepCall};
use crate::backend::Host;
use crate::backend::linear::product::{HostMatrix, Sampled, Spots, Stored, chunk_product, sampled_rows};
use crate::backend::run::Run;
use crate::backend::sums::{column_dot, scattered_sum, summing, total};
use crate::error::Result;
use crate::memory::Memory;
use crate::number::{Accumulator, Real, Sum, violated};
use crate::recurrence::{COEFFICIENTS, DOT_PLACES, FOLDED, HEADER, INSTRUCTIONS, REGISTERS, STATES, interpret};
use crate::reduction::Chunks;
use crate::state::stop;
use crate::threads::{self, ChunksMut};

/// A [`ScriptState`] on the host.
pub(super) struct HostScript<'a> {
    programs: &'a [u32],
    sums: &'a mut [Sum],
    registers: &'a mut [Sum],
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
    fn coefficient(&self, c: usize, k: usize) -> A {
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

/// `take_slot` of `cl/recurrence.cl`.
pub(super) fn take<T: Real, A: Accumulator<T>>(call: StepCall, state: &HostScript<'_>) -> Frame<A> {
    let (slot, columns) = (call.slot as usize, call.columns);
    let block = &state.programs[call.block as usize..];
    Frame {
        file: state.registers[slot * columns * REGISTERS..][..columns * REGISTERS]
            .iter()
            .map(|s| A::from_bits(s.0))
            .collect(),
        state: state.status[slot * columns * STATES..][..columns * STATES].to_vec(),
        head: array::from_fn(|k| block[k]),
    }
}

/// `run_block` of `cl/recurrence.cl`. Tells if any column still runs.
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
    for (to, from) in state.registers[(1 - slot) * columns * REGISTERS..].iter_mut().zip(&frame.file) {
        *to = Sum(from.to_bits());
    }
    state.status[(1 - slot) * columns * STATES..][..columns * STATES].copy_from_slice(&frame.state);
    frame.any_runs()
}

/// `recur` of `cl/recurrence.cl`; nothing once every column has stopped.
#[inline]
pub(super) fn recur<T: Real, A: Accumulator<T>>(call: StepCall, state: &mut HostScript<'_>) -> Option<Frame<A>> {
    let mut frame = take::<T, A>(call, state);
    run_block::<T, A>(call, &mut frame, state).then_some(frame)
}

#[inline]
fn scalars<T: Real, A: Accumulator<T>>(call: StepCall, state: &mut HostScript<'_>) {
    let _: Option<Frame<A>> = recur::<T, A>(call, state);
}

/// Chunk sums of `x (w y)`, or of `x y` without a `w`, column by column, at `place(c)`.
fn dots<T: Real, A: Accumulator<T>>(
    chunks: Chunks,
    columns: usize,
    vectors: (&[T], Option<&[T]>, &[T]),
    place: impl Fn(usize) -> usize,
    sums: &mut [Sum],
) {
    for c in 0..columns {
        threads::each(&mut sums[place(c)..][..chunks.count], 1, |g, sum| {
            *sum = chunk_dot::<T, A>(chunks, [columns, c], vectors, g);
        });
    }
}

/// The sum of chunk `g` in [`dots`].
fn chunk_dot<T: Real, A: Accumulator<T>>(
    chunks: Chunks,
    [columns, c]: [usize; 2],
    (x, w, y): (&[T], Option<&[T]>, &[T]),
    g: usize,
) -> Sum {
    let rows = chunks.range(g);
    let Some(w) = w else { return column_dot::<T, A>(chunks.lanes, rows, [columns, c], x, y) };
    let term = |i: usize| {
        let at = i * columns + c;
        A::product(x[at], w[at] * y[at])
    };
    scattered_sum::<T, A>(chunks.lanes, rows, term)
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
            let sum = chunk_dot::<T, A>(chunks, [columns, c], (y, weight, other), g);
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
    threads::each(ChunksMut(y, chunks.chunk * columns), 1, |g, y| {
        chunk_product(a, columns, chunks.range(g), x, y, blended(blend, &factors, w));
    });
    for (k, other) in [&*y, z].into_iter().enumerate() {
        if blend.dots[k] {
            let weight = (k == 0 && blend.weighted).then_some(w);
            dots::<T, A>(chunks, columns, (y, weight, other), |c| frame.place(k, c, chunks.count), state.sums);
        }
    }
}

/// Elements that are combined at once, so that a statement's loop has no dependences.
const BLOCK: usize = 256;

/// Elements of a piece of work, unless a chunk has more.
const SPAN: usize = 2048;

/// One statement for one piece of all vectors.
fn run_statement<T: Real>(
    statement: &Statement,
    pieces: &mut [&mut [T]; PASS_VECTORS],
    columns: usize,
    coefficients: &[[T; 3]],
    running: &[bool],
) {
    let target = match statement {
        Statement::Combine { target, .. }
        | Statement::Multiply { target, .. }
        | Statement::Clamp { target, .. }
        | Statement::Step { target, .. } => usize::from(*target),
    };
    let own = std::mem::take(&mut pieces[target]);
    let mut at = 0;
    while at < own.len() {
        let len = BLOCK.min(own.len() - at);
        let mut out = [T::default(); BLOCK];
        let source = |v: u8| {
            if usize::from(v) == target { &own[at..at + len] } else { &pieces[usize::from(v)][at..at + len] }
        };
        match statement {
            Statement::Combine { terms, .. } => {
                for (t, term) in terms.iter().enumerate() {
                    let Some(term) = term else { continue };
                    let source = source(*term);
                    for (l, (out, value)) in out.iter_mut().zip(source).enumerate() {
                        let c = if columns == 1 { 0 } else { (at + l) % columns };
                        let product = coefficients[c][t] * *value;
                        *out = if t == 0 { product } else { *out + product };
                    }
                }
            }
            Statement::Multiply { factors: [a, b], .. } => {
                for (out, (a, b)) in out.iter_mut().zip(source(*a).iter().zip(source(*b))) {
                    *out = *a * *b;
                }
            }
            Statement::Clamp { of, bounds: [lower, upper], .. } => {
                let bounds = source(*lower).iter().zip(source(*upper));
                for (out, (value, (lower, upper))) in out.iter_mut().zip(source(*of).iter().zip(bounds)) {
                    *out = violated(*value, *lower, *upper).unwrap_or(*value);
                }
            }
            Statement::Step { from, bounds: [lower, upper], .. } => {
                let bounds = source(*lower).iter().zip(source(*upper));
                let steps = own[at..at + len].iter().zip(source(*from));
                for (out, ((step, from), (lower, upper))) in out.iter_mut().zip(steps.zip(bounds)) {
                    *out = violated(*step, *lower - *from, *upper - *from).unwrap_or(*step);
                }
            }
        }
        for (l, (own, out)) in own[at..at + len].iter_mut().zip(out).enumerate() {
            if columns == 1 || running[(at + l) % columns] {
                *own = out;
            }
        }
        at += len;
    }
    pieces[target] = own;
}

fn vectors<T: Real, A: Accumulator<T>>(
    call: StepCall,
    n: usize,
    pass: &Pass,
    vectors: [&mut [T]; PASS_VECTORS],
    state: &mut HostScript<'_>,
) {
    let Some(frame) = recur::<T, A>(call, state) else { return };
    let (chunks, columns) = (Chunks::of(n), call.columns);
    let running: Vec<bool> = (0..columns).map(|c| frame.running(c)).collect();
    let coefficients: Vec<Vec<[T; 3]>> = (0..pass.statements.len())
        .map(|s| (0..columns).map(|c| array::from_fn(|t| frame.coefficient(c, 3 * s + t).to_real())).collect())
        .collect();
    // Chunks may be as short as 32 elements: several of them are one piece of work.
    let span = chunks.chunk * (SPAN / chunks.chunk).max(1);
    let mut all = vectors.map(|v| v.chunks_mut(span * columns));
    let mut pieces: Vec<[&mut [T]; PASS_VECTORS]> =
        (0..n.div_ceil(span)).map(|_| all.each_mut().map(|v| v.next().unwrap_or_default())).collect();
    let sums = threads::map(&mut pieces[..], 1, |_, pieces| {
        for (statement, coefficients) in pass.statements.iter().zip(&coefficients) {
            run_statement(statement, pieces, columns, coefficients, &running);
        }
        let mut sums = Vec::with_capacity(pass.dots.len() * columns * span / chunks.chunk);
        for dot in &pass.dots {
            let [x, y] = dot.map(|v| pieces[usize::from(v)].chunks(chunks.chunk * columns));
            for (x, y) in x.zip(y) {
                let rows = x.len() / columns;
                sums.extend((0..columns).map(|c| column_dot::<T, A>(chunks.lanes, 0..rows, [columns, c], x, y)));
            }
        }
        sums
    });
    for (piece, sums) in sums.iter().enumerate() {
        let first = piece * span / chunks.chunk;
        let each = sums.len() / pass.dots.len().max(1);
        for (at, sum) in sums.iter().enumerate() {
            let (k, at) = (at / each, at % each);
            state.sums[frame.place(k, at % columns, chunks.count) + first + at / columns] = *sum;
        }
    }
}

impl<T: Real> ScriptOps<T> for Host {
    #[inline]
    fn step_scalars(&self, run: Run<'_>, call: StepCall, state: &mut ScriptState) -> Result<()> {
        let state = &mut state.host()?;
        summing!(run, T, scalars(call, state));
        Ok(())
    }

    #[inline]
    fn step_product(
        &self,
        run: Run<'_>,
        call: StepCall,
        a: &Stored<T>,
        blend: Blend,
        [x, w, z]: [&Memory<T>; 3],
        y: &mut Memory<T>,
        state: &mut ScriptState,
    ) -> Result<()> {
        let (a, vectors, y) = (a.host()?, [x.host()?, w.host()?, z.host()?], y.host_mut()?);
        let state = &mut state.host()?;
        summing!(run, T, product(call, &a, blend, vectors, y, state));
        Ok(())
    }

    fn step_vectors(
        &self,
        run: Run<'_>,
        call: StepCall,
        n: usize,
        pass: &Pass,
        [v0, v1, v2, v3, v4, v5, v6, v7]: [&mut Memory<T>; PASS_VECTORS],
        state: &mut ScriptState,
    ) -> Result<()> {
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
