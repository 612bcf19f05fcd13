//! Total variation on the host: `cl/script/variation.cl` and `cl/script/dual.cl`.

use super::super::host::running;
use super::{Dual, Variation, VariationOps};
use crate::backend::Host;
use crate::backend::script::state::{StepCall, StepLaunch};
use crate::backend::sums::{scattered_sum, summing};
use crate::error::Result;
use crate::memory::Memory;
use crate::number::{Accumulator, Real, Sum};
use crate::recurrence::REGISTERS;
use crate::reduction::Chunks;
use crate::state::dual::{ALONG_LIMIT, ALONG_X, ALONG_Y, ASCENT_STEP, LIMIT};
use crate::threads::{self, ChunksMut};

/// Scalars of a column.
#[derive(Clone, Copy)]
struct Weights<T, A> {
    step: T,
    limit: A,
    along_limit: T,
    direction: [T; 2],
}

impl<T: Real, A: Accumulator<T>> Weights<T, A> {
    /// Scalars of every column that runs, with its number.
    fn of_running(call: StepCall, image: Variation, registers: &[Sum], status: &[i32]) -> Vec<(usize, Self)> {
        let running = running(call, status);
        let weights = (0..call.columns).filter(|c| running[*c]).map(|c| {
            let file = &registers[(call.slot as usize * call.columns + c) * REGISTERS..];
            let held = |name: usize| A::from_bits(file[image.first + name].0);
            let real = |name: usize| held(name).to_real();
            let (step, along_limit) = (real(ASCENT_STEP), real(ALONG_LIMIT));
            let direction = [real(ALONG_X), real(ALONG_Y)];
            (c, Self { step, limit: held(LIMIT), along_limit, direction })
        });
        weights.collect()
    }
}

/// Chunks of one column of the dual variables, which are written.
struct Written<'v, T> {
    px: &'v mut [T],
    py: &'v mut [T],
    q: &'v mut [T],
}

/// `ascend_at` of `cl/script/dual.cl` at pixel `i`, whose dual variables are number `at` of a chunk.
#[inline(always)]
fn ascend_at<T: Real, A: Accumulator<T>>(
    image: Variation,
    weights: &Weights<T, A>,
    columns: usize,
    (i, c): (usize, usize),
    [x, x_old]: [&[T]; 2],
    at: usize,
    dual: &mut Written<'_, T>,
) -> A {
    let Variation { n, width, along, .. } = image;
    let (place, two) = (i * columns + c, T::from_f64(2.0));
    let ahead = |place: usize| two * x[place] - x_old[place];
    let here = ahead(place);
    let dx = if i % width + 1 < width { ahead(place + columns) - here } else { T::default() };
    let dy = if i + width < n { ahead(place + width * columns) - here } else { T::default() };
    let (last_x, last_y) = (dual.px[at], dual.py[at]);
    let (mut u, mut v) = (last_x + weights.step * dx, last_y + weights.step * dy);
    let square = A::product(u, u).add(A::product(v, v));
    if weights.limit.mul(weights.limit).less(square) {
        let factor = weights.limit.div(square.sqrt());
        u = factor.mul(A::from_real(u)).to_real();
        v = factor.mul(A::from_real(v)).to_real();
    }
    dual.px[at] = u;
    dual.py[at] = v;
    let mut change = A::product(u - last_x, u - last_x).add(A::product(v - last_y, v - last_y));
    if along {
        let [ex, ey] = weights.direction;
        let (most, last) = (weights.along_limit, dual.q[at]);
        let w = last + weights.step * (ex * dx + ey * dy);
        let w = if w < -most {
            -most
        } else if w > most {
            most
        } else {
            w
        };
        dual.q[at] = w;
        change = change.add(A::product(w - last, w - last));
    }
    change
}

fn ascend<T: Real, A: Accumulator<T>>(
    call: StepCall,
    image: Variation,
    images: [&[T]; 2],
    (px, py, q): (&mut [T], &mut [T], &mut [T]),
    (registers, status, sums): (&[Sum], &[i32], &mut [Sum]),
) {
    let (chunks, columns) = (Chunks::of(image.n), call.columns);
    let span = chunks.chunk * columns;
    for (c, weights) in Weights::<T, A>::of_running(call, image, registers, status) {
        // Without a term along a direction there are no chunks of q.
        let q = if image.along { &mut *q } else { &mut [][..] };
        let mut parts: Vec<&mut [T]> = q.chunks_mut(span).collect();
        parts.resize_with(chunks.count, Default::default);
        let place = image.place + c * chunks.count;
        let dual = (ChunksMut(px, span), ChunksMut(py, span), &mut parts[..]);
        let sums = &mut sums[place..][..chunks.count];
        threads::each((sums, dual), 1, |g, (sum, (px, py, q))| {
            let (rows, mut dual) = (chunks.range(g), Written { px, py, q });
            let step = |(k, i): (usize, usize)| {
                ascend_at::<T, A>(image, &weights, columns, (i, c), images, k * columns + c, &mut dual)
            };
            let changes: Vec<A> = rows.enumerate().map(step).collect();
            *sum = scattered_sum::<T, A>(chunks.lanes, 0..changes.len(), |k| changes[k]);
        });
    }
}

fn subtract<T: Real, A: Accumulator<T>>(
    call: StepCall,
    image: Variation,
    [px, py, q]: [&[T]; 3],
    g: &mut [T],
    (registers, status): (&[Sum], &[i32]),
) {
    let Variation { n, width, along, .. } = image;
    let (chunks, columns) = (Chunks::of(n), call.columns);
    let all = Weights::<T, A>::of_running(call, image, registers, status);
    let below = |is: bool, v: &[T], at: usize, back: usize| if is { v[at - back] } else { T::default() };
    threads::each(ChunksMut(g, chunks.chunk * columns), 1, |chunk, g| {
        for ((k, i), (c, weights)) in
            chunks.range(chunk).enumerate().flat_map(|pixel| all.iter().map(move |column| (pixel, column)))
        {
            let (at, up, column) = (i * columns + c, width * columns, i % width);
            let value = below(column > 0, px, at, columns) - px[at];
            let mut value = value + (below(i >= width, py, at, up) - py[at]);
            if along {
                let own = |is: bool| if is { q[at] } else { T::default() };
                let across = below(column > 0, q, at, columns) - own(column + 1 < width);
                let down = below(i >= width, q, at, up) - own(i + width < n);
                value = value + (weights.direction[0] * across + weights.direction[1] * down);
            }
            let own = &mut g[k * columns + c];
            *own = *own - value;
        }
    });
}

impl<T: Real> VariationOps<T> for Host {
    #[inline]
    fn variation_ascend(
        &self,
        step: StepLaunch<'_>,
        image: Variation,
        [x, x_old]: [&Memory<T>; 2],
        Dual { p: [px, py], q }: Dual<'_, T>,
    ) -> Result<()> {
        let StepLaunch { run, call, state } = step;
        let dual = (px.host_mut()?, py.host_mut()?, q.host_mut()?);
        let scalars = (state.registers.host()?, state.status.host()?, state.sums.host_mut()?);
        summing!(run, T, ascend(call, image, [x.host()?, x_old.host()?], dual, scalars));
        Ok(())
    }

    #[inline]
    fn variation_subtract(
        &self,
        step: StepLaunch<'_>,
        image: Variation,
        Dual { p: [px, py], q }: Dual<'_, T>,
        g: &mut Memory<T>,
    ) -> Result<()> {
        let StepLaunch { run, call, state } = step;
        let dual = [px.host()?, py.host()?, q.host()?];
        let scalars = (state.registers.host()?, state.status.host()?);
        summing!(run, T, subtract(call, image, dual, g.host_mut()?, scalars));
        Ok(())
    }
}
