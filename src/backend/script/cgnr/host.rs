//! The launches of CGNR on the host.

use super::weights::{Grid, Weights};
use super::{CgnrOps, CgnrShape, CorrectionTerm, Edges, Pixels};
use crate::backend::Host;
use crate::backend::linear::product::MOST_COLUMNS;
use crate::backend::run::Run;
use crate::backend::script::host::{HostScript, recur, running};
use crate::backend::script::state::{StepCall, StepLaunch};
use crate::backend::sums::{column_dot, scattered_sum, summing};
use crate::error::Result;
use crate::memory::Memory;
use crate::number::{Accumulator, Real, Sum};
use crate::recurrence::REGISTERS;
use crate::reduction::Chunks;
use crate::threads::{self, LEAST};

/// Interleaved vectors `u + scale v`, with one factor for each column.
#[derive(Clone, Copy)]
struct Formed<'a, T> {
    u: &'a [T],
    v: &'a [T],
    scale: [T; MOST_COLUMNS],
}

impl<T: Real> Formed<'_, T> {
    /// Element `at`, which is one of column `c`.
    #[inline]
    fn element(&self, at: usize, c: usize) -> T {
        self.u[at] + self.scale[c] * self.v[at]
    }
}

/// Weights of each column, in the slot that a launch reads.
fn weights<T: Real, A: Accumulator<T>>(call: StepCall, shape: CgnrShape, registers: &[Sum]) -> Vec<Weights<T, A>> {
    let slot = &registers[call.slot as usize * call.columns * REGISTERS..];
    let of = |c: usize| Weights::of(&slot[c * REGISTERS + shape.weights..], shape.image.edges);
    (0..call.columns).map(of).collect()
}

/// Numbers that a direction reads and writes.
struct Direction<'v, T> {
    s: &'v [T],
    d: &'v [T],
    x: &'v [T],
    phi: &'v [T],
    d_new: &'v mut [T],
}

fn direction<T: Real, A: Accumulator<T>>(
    call: StepCall,
    shape: CgnrShape,
    Direction { s, d, x, phi, d_new }: Direction<'_, T>,
    state: &mut HostScript<'_>,
) {
    let Some(frame) = recur::<T, A>(call, state) else { return };
    let (columns, cols) = (call.columns, Chunks::of(shape.cols));
    let mut direction = Formed { u: s, v: d, scale: [T::default(); MOST_COLUMNS] };
    (0..columns).for_each(|c| direction.scale[c] = frame.coefficient(c, 0).to_real());
    threads::each(&mut *d_new, LEAST, |at, d| *d = direction.element(at, at % columns));
    let (d, grid) = (&*d_new, Grid { width: shape.image.width, n: shape.cols, columns });
    let weights = weights::<T, A>(call, shape, state.registers);
    let sums = &mut state.sums[shape.pixel_sums(0, 0, columns).start..][..columns * cols.count];
    threads::each(sums, 1, |place, sum| {
        let (c, g) = (place / cols.count, place % cols.count);
        let weights = &weights[c];
        let term = |i: usize| {
            let at = i * columns + c;
            let mut sum = weights.neighbours(grid, at, |at| d[at], phi);
            if weights.violated(x[at]).is_some() {
                sum = sum.add(weights.of_box(d[at]));
            }
            A::from_real(d[at]).mul(sum)
        };
        *sum = scattered_sum::<T, A>(cols.lanes, cols.range(g), term);
    });
}

/// Numbers that a step reads and writes.
struct Step<'v, T> {
    x: &'v [T],
    d: &'v [T],
    s: &'v [T],
    x_new: &'v mut [T],
    s_new: &'v mut [T],
    phi: &'v mut [T],
}

fn step_pixels<T: Real, A: Accumulator<T>>(
    call: StepCall,
    shape: CgnrShape,
    starts: bool,
    Step { x, d, s, x_new, s_new, phi }: Step<'_, T>,
    state: &mut HostScript<'_>,
) {
    let (columns, runs) = (call.columns, running(call, state.status));
    if !runs.contains(&true) {
        return;
    }
    let slot = &state.registers[call.slot as usize * columns * REGISTERS..];
    let mut image = Formed { u: x, v: d, scale: [T::default(); MOST_COLUMNS] };
    for c in (0..columns).filter(|c| runs[*c] && !starts) {
        image.scale[c] = A::from_bits(slot[c * REGISTERS + shape.alpha].0).to_real();
    }
    if !starts {
        // A stopped column keeps its bits: x + 0 d would lose the sign of a zero.
        threads::each(x_new, LEAST, |at, new| {
            let c = at % columns;
            *new = if runs[c] { image.element(at, c) } else { x[at] };
        });
    }
    subtract_correction::<T, A>(shape.image, &weights::<T, A>(call, shape, state.registers), &image, phi, s_new);
    let cols = Chunks::of(shape.cols);
    let found = threads::numbers(0..columns * cols.count, 1, |_, place| {
        let (c, g) = (place / cols.count, place % cols.count);
        let mut sums = [Sum::default(); 3];
        for (sum, other) in sums.iter_mut().zip([&*s_new, s, d]) {
            *sum = column_dot::<T, A>(cols.lanes, cols.range(g), [columns, c], s_new, other);
        }
        sums
    });
    for (place, sums) in found.into_iter().enumerate() {
        let (c, g) = (place / cols.count, place % cols.count);
        for (k, sum) in sums.into_iter().enumerate() {
            state.sums[shape.pixel_sums(1 + k, c, columns).start + g] = sum;
        }
    }
}

/// `s -= F(x, x)` with its diffusivities in `phi`. On a device each pixel computes those of its neighbours again instead.
fn subtract_correction<T: Real, A: Accumulator<T>>(
    Edges { width, edges }: Edges,
    weights: &[Weights<T, A>],
    image: &Formed<'_, T>,
    phi: &mut [T],
    s: &mut [T],
) {
    let columns = weights.len();
    let grid = Grid { width, n: s.len() / columns, columns };
    if edges == 2 {
        threads::each(&mut *phi, 256, |at, phi| {
            let c = at % columns;
            *phi = weights[c].diffusivity_at(grid, at, |at| image.element(at, c));
        });
    }
    let phi = &*phi;
    threads::each(s, 256, |at, s| {
        let c = at % columns;
        let weights = &weights[c];
        let mut sum = weights.neighbours(grid, at, |at| image.element(at, c), phi);
        let here = image.element(at, c);
        if let Some(bound) = weights.violated(here) {
            sum = sum.add(weights.of_box(here - bound));
        }
        *s = A::from_real(*s).sub(sum).to_real();
    });
}

/// `out = F(x, v)`, or the gradient if there is no `v`.
fn correct<T: Real, A: Accumulator<T>>(
    Edges { width, edges }: Edges,
    words: &[Sum],
    x: &[T],
    v: Option<&[T]>,
    out: &mut [T],
) {
    let grid = Grid { width, n: x.len(), columns: 1 };
    let weights = Weights::<T, A>::of(words, edges);
    let phi: Vec<T> = match edges {
        2 => threads::numbers(0..x.len(), 256, |_, i| weights.diffusivity_at(grid, i, |at| x[at])),
        _ => Vec::new(),
    };
    let direction = v.unwrap_or(x);
    threads::each(out, 256, |i, out| {
        let mut sum = weights.neighbours(grid, i, |at| direction[at], &phi);
        if let Some(bound) = weights.violated(x[i]) {
            sum = sum.add(weights.of_box(if v.is_none() { x[i] - bound } else { direction[i] }));
        }
        *out = sum.to_real();
    });
}

impl<T: Real> CgnrOps<T> for Host {
    fn cgnr_direction(&self, step: StepLaunch<'_>, shape: CgnrShape, pixels: Pixels<'_, T>) -> Result<()> {
        let StepLaunch { run, call, state } = step;
        let Pixels { x: [x, _], s: [s, _], d: [d, d_new], phi } = pixels;
        let (s, d, x, phi) = (s.host()?, d.host()?, x.host()?, phi.host()?);
        let numbers = Direction { s, d, x, phi, d_new: d_new.host_mut()? };
        let state = &mut state.host()?;
        summing!(run, T, direction(call, shape, numbers, state));
        Ok(())
    }

    fn cgnr_step(&self, step: StepLaunch<'_>, shape: CgnrShape, starts: bool, pixels: Pixels<'_, T>) -> Result<()> {
        let StepLaunch { run, call, state } = step;
        let Pixels { x: [x, x_new], s: [s, s_new], d: [d, _], phi } = pixels;
        let (x, d, s) = (x.host()?, d.host()?, s.host()?);
        let (x_new, s_new, phi) = (x_new.host_mut()?, s_new.host_mut()?, phi.host_mut()?);
        let state = &mut state.host()?;
        summing!(run, T, step_pixels(call, shape, starts, Step { x, d, s, x_new, s_new, phi }, state));
        Ok(())
    }

    fn cgnr_correction(
        &self,
        run: Run<'_>,
        term: &CorrectionTerm,
        x: &Memory<T>,
        v: Option<&Memory<T>>,
        out: &mut Memory<T>,
    ) -> Result<()> {
        let (weights, x, v) = (term.weights.host()?, x.host()?, v.map(Memory::host).transpose()?);
        summing!(run, T, correct(term.image, weights, x, v, out.host_mut()?));
        Ok(())
    }
}
