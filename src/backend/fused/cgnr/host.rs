//! The launches of CGNR on the host.

use super::correction::{Grid, Weights};
use super::{CgnrOps, CgnrShape, CgnrVectors, CorrectionTerm, Part, by_parity};
use crate::backend::Host;
use crate::backend::fused::HostState;
use crate::backend::fused::SolveState;
use crate::backend::linear::product::{HostMatrix, MOST_COLUMNS, Stored, multiply};
use crate::backend::run::Run;
use crate::backend::sums::{column_dot, scattered_sum, squares, summing, total};
use crate::error::Result;
use crate::memory::Memory;
use crate::number::{Accumulator, Real, Sum};
use crate::reduction::Chunks;
use crate::state::{cgnr, stop};
use crate::threads::{self, LEAST};

/// Tells if every column has stopped, seen from slot `which`.
fn all_stopped(status: &[i32], columns: usize, which: usize) -> bool {
    (0..columns).all(|c| status[c * cgnr::STATUS + which] != stop::RUNNING)
}

/// Group 0 of `cgnr_forward`: the stopping test and beta of each column; `None` if all have stopped.
fn cgnr_test<T: Real, A: Accumulator<T>>(
    columns: usize,
    runs: cgnr::SumPlaces,
    state: &mut HostState<'_>,
) -> Option<[T; MOST_COLUMNS]> {
    let done = all_stopped(state.status, columns, cgnr::LAST_STOP);
    let mut betas = [T::default(); MOST_COLUMNS];
    for c in 0..columns {
        let status = c * cgnr::STATUS;
        let control = c * cgnr::CONTROL;
        let mut code = state.status[status + cgnr::LAST_STOP];
        let iteration = state.status[status + cgnr::NEXT_ITERATION];
        if !done {
            let ss: A = total::<T, A>(&state.sums[runs.ss(c)]);
            let so: A = total::<T, A>(&state.sums[runs.so(c)]);
            let sd: A = total::<T, A>(&state.sums[runs.sd(c)]);
            let rr: A = total::<T, A>(&state.sums[runs.rr(c)]);
            let at = |field: usize| A::from_bits(state.control[control + field].0);
            let mut beta = A::default();
            if iteration > 0 {
                beta = ss.sub(so).div(at(cgnr::LAST_GD));
            }
            if !A::default().less(beta) {
                beta = A::default();
            }
            let mut gd = ss.add(beta.mul(sd));
            if !A::default().less(gd) {
                beta = A::default();
                gd = ss;
            }
            betas[c] = beta.to_real();
            if code == stop::RUNNING {
                if !ss.is_finite() || !rr.is_finite() {
                    code = stop::NOT_FINITE;
                } else if !at(cgnr::RESIDUAL_LIMIT).less(rr) {
                    code = stop::CONVERGED;
                } else if !at(cgnr::GRADIENT_LIMIT).less(ss) || !at(cgnr::GRADIENT_RATIO).mul(rr).less(ss) {
                    code = stop::GRADIENT_CONVERGED;
                } else if iteration >= state.status[status + cgnr::MAX_ITERATIONS] {
                    code = stop::ITERATIONS_DONE;
                }
                let place = (iteration & state.status[status + cgnr::HISTORY_MASK]) as usize;
                state.history[(place * columns + c) * 2] = Sum(rr.to_bits());
                state.history[(place * columns + c) * 2 + 1] = Sum(ss.to_bits());
            }
            for (field, value) in [(cgnr::RR, rr), (cgnr::SS, ss), (cgnr::GD, gd), (cgnr::BETA, beta)] {
                state.control[control + field] = Sum(value.to_bits());
            }
        }
        state.status[status + cgnr::STOP] = code;
        state.status[status + cgnr::ITERATION] = iteration;
    }
    (!done).then_some(betas)
}

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

/// Numbers that `cgnr_forward` reads and writes.
struct Forward<'v, T> {
    s: &'v [T],
    d: &'v [T],
    x: &'v [T],
    phi: &'v [T],
    d_new: &'v mut [T],
    q: &'v mut [T],
}

fn forward<T: Real, A: Accumulator<T>>(
    shape: CgnrShape,
    a: &HostMatrix<'_, T>,
    vectors: Forward<'_, T>,
    state: &mut HostState<'_>,
) {
    let columns = shape.columns;
    let (rows, cols) = (Chunks::of(a.rows), Chunks::of(a.cols));
    let runs = cgnr::SumPlaces { columns, rows: rows.count, cols: cols.count };
    let betas = match shape.part {
        Part::Rows if all_stopped(state.status, columns, cgnr::LAST_STOP) => return,
        Part::Rows => [T::default(); MOST_COLUMNS],
        _ => match cgnr_test::<T, A>(columns, runs, state) {
            Some(betas) => betas,
            None => return,
        },
    };
    let Forward { s, d, x, phi, d_new, q } = vectors;
    let direction = Formed { u: s, v: d, scale: betas };
    // Formed once: a product reads each element as often as its column has entries.
    if shape.part != Part::Rows {
        threads::each(&mut *d_new, LEAST, |at, d| *d = direction.element(at, at % columns));
    }
    multiply::<T, A>(a, columns, d_new, q);
    if shape.part != Part::Pixels {
        squares::<T, A>(rows, columns, q, &mut state.sums[runs.all_qq()]);
    }
    if shape.part == Part::Rows {
        return;
    }
    let (d, control, grid) = (&*d_new, &*state.control, Grid { width: shape.width, n: a.cols, columns });
    threads::each(&mut state.sums[runs.all_df()], 1, |place, sum| {
        let (c, g) = (place / cols.count, place % cols.count);
        let weights = Weights::<T, A>::of(control, c, shape.edges);
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

/// `alpha` of each column, and which of them have stopped.
struct StepLength<T> {
    alphas: [T; MOST_COLUMNS],
    /// Factor by which `q` is taken from `r`: `alpha`, or 1 at the start, where `r` is `b`, and `q` is `A x` or 0.
    of_q: [T; MOST_COLUMNS],
    stopped: [bool; MOST_COLUMNS],
}

/// `step_length` of `cl/cgnr_step.cl`; `None` if all columns have stopped.
fn step_length<T: Real, A: Accumulator<T>>(
    shape: CgnrShape,
    runs: cgnr::SumPlaces,
    state: &mut HostState<'_>,
) -> Option<StepLength<T>> {
    let done = all_stopped(state.status, shape.columns, cgnr::STOP);
    let none = [T::default(); MOST_COLUMNS];
    let mut found = StepLength { alphas: none, of_q: none, stopped: [false; MOST_COLUMNS] };
    for c in 0..shape.columns {
        let (status, control) = (c * cgnr::STATUS, c * cgnr::CONTROL);
        let mut code = state.status[status + cgnr::STOP];
        let iteration = state.status[status + cgnr::ITERATION];
        let gd = state.control[control + cgnr::GD];
        let mut alpha = A::default();
        if !done && code == stop::RUNNING && iteration >= 0 {
            let qq: A = total::<T, A>(&state.sums[runs.qq(c)]);
            let curvature = qq.add(total::<T, A>(&state.sums[runs.df(c)]));
            if !curvature.is_finite() {
                code = stop::NOT_FINITE;
            } else if curvature.less(A::default()) {
                code = stop::INDEFINITE;
            } else if !A::default().less(curvature) {
                code = stop::BREAKDOWN;
            } else {
                alpha = A::from_bits(gd.0).div(curvature);
            }
            if code == stop::RUNNING && !alpha.is_finite() {
                code = stop::NOT_FINITE;
            }
        }
        found.stopped[c] = code != stop::RUNNING;
        found.alphas[c] = if found.stopped[c] { T::default() } else { alpha.to_real() };
        let starts = !found.stopped[c] && iteration < 0;
        found.of_q[c] = if starts { T::from_f64(1.0) } else { found.alphas[c] };
        if shape.part == Part::Rows {
            continue;
        }
        state.control[control + cgnr::LAST_GD] = gd;
        state.control[control + cgnr::ALPHA] = Sum(alpha.to_bits());
        state.status[status + cgnr::LAST_STOP] = code;
        state.status[status + cgnr::NEXT_ITERATION] = if code == stop::RUNNING { iteration + 1 } else { iteration };
    }
    (!done).then_some(found)
}

/// Numbers that `cgnr_backward` reads and writes.
struct Backward<'v, T> {
    r: &'v [T],
    q: &'v [T],
    x: &'v [T],
    d: &'v [T],
    s: &'v [T],
    r_new: &'v mut [T],
    x_new: &'v mut [T],
    s_new: &'v mut [T],
    phi: &'v mut [T],
}

fn backward<T: Real, A: Accumulator<T>>(
    shape: CgnrShape,
    transposed: &HostMatrix<'_, T>,
    vectors: Backward<'_, T>,
    state: &mut HostState<'_>,
) {
    let columns = shape.columns;
    let (rows, cols) = (Chunks::of(transposed.cols), Chunks::of(transposed.rows));
    let runs = cgnr::SumPlaces { columns, rows: rows.count, cols: cols.count };
    let Some(StepLength { alphas, of_q, stopped }) = step_length::<T, A>(shape, runs, state) else { return };
    let Backward { r, q, x, d, s, r_new, x_new, s_new, phi } = vectors;
    let residual = Formed { u: r, v: q, scale: of_q.map(|factor| -factor) };
    let image = Formed { u: x, v: d, scale: alphas };
    // A stopped column keeps its bits: x + 0 d would lose the sign of a zero.
    let update = |new: &mut [T], old: &[T], vector: &Formed<'_, T>| {
        threads::each(new, LEAST, |at, new| {
            let c = at % columns;
            *new = if stopped[c] { old[at] } else { vector.element(at, c) };
        });
    };
    if shape.part != Part::Pixels {
        update(r_new, r, &residual);
        squares::<T, A>(rows, columns, r_new, &mut state.sums[runs.all_rr()]);
    }
    if shape.part == Part::Rows {
        return;
    }
    multiply::<T, A>(transposed, columns, r_new, s_new);
    update(x_new, x, &image);
    subtract_correction::<T, A>(shape, state.control, &image, phi, s_new);
    backward_sums::<T, A>(runs, cols, [s_new, s, d], state.sums);
}

/// `s -= F(x, x)` with its diffusivities in `phi`. On a device each pixel computes those of its neighbours again instead.
fn subtract_correction<T: Real, A: Accumulator<T>>(
    shape: CgnrShape,
    control: &[Sum],
    image: &Formed<'_, T>,
    phi: &mut [T],
    s: &mut [T],
) {
    let columns = shape.columns;
    let grid = Grid { width: shape.width, n: s.len() / columns, columns };
    let weights: Vec<_> = (0..columns).map(|c| Weights::<T, A>::of(control, c, shape.edges)).collect();
    if shape.edges == 2 {
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
fn correct<T: Real, A: Accumulator<T>>(shape: CgnrShape, control: &[Sum], x: &[T], v: Option<&[T]>, out: &mut [T]) {
    let grid = Grid { width: shape.width, n: x.len(), columns: 1 };
    let weights = Weights::<T, A>::of(control, 0, shape.edges);
    let phi: Vec<T> = match shape.edges {
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

/// Chunk sums of `s.s`, `s.s_old` and `s.d`.
fn backward_sums<T: Real, A: Accumulator<T>>(
    runs: cgnr::SumPlaces,
    cols: Chunks,
    [s, s_old, d]: [&[T]; 3],
    sums: &mut [Sum],
) {
    let columns = runs.columns;
    let found = threads::numbers(0..columns * cols.count, 1, |_, place| {
        let (c, g) = (place / cols.count, place % cols.count);
        [s, s_old, d].map(|other| column_dot::<T, A>(cols.lanes, cols.range(g), [columns, c], s, other))
    });
    for (place, sum) in found.into_iter().enumerate() {
        let (c, g) = (place / cols.count, place % cols.count);
        for (run, value) in [runs.ss(c), runs.so(c), runs.sd(c)].into_iter().zip(sum) {
            sums[run.start + g] = value;
        }
    }
}

/// The part of [`CgnrOps::cgnr_forward`] that makes the stopping test and writes the norms, for a matrix of `rows` by `cols`.
pub(in crate::backend) fn test<T: Real>(
    run: Run<'_>,
    columns: usize,
    [rows, cols]: [usize; 2],
    state: &mut SolveState,
) -> Result<()> {
    let runs = cgnr::SumPlaces { columns, rows: Chunks::of(rows).count, cols: Chunks::of(cols).count };
    let state = &mut state.host()?;
    let _betas = summing!(run, T, cgnr_test(columns, runs, state));
    Ok(())
}

impl<T: Real> CgnrOps<T> for Host {
    fn cgnr_forward(
        &self,
        run: Run<'_>,
        shape: CgnrShape,
        a: &Stored<T>,
        parity: usize,
        vectors: CgnrVectors<'_, T>,
        state: &mut SolveState,
    ) -> Result<()> {
        let CgnrVectors { x, s, mut d, q, phi, .. } = vectors;
        let (d, d_new) = by_parity(&mut d, parity);
        let vectors = Forward {
            s: s[parity].host()?,
            d: d.host()?,
            x: x[parity].host()?,
            phi: phi.host()?,
            d_new: d_new.host_mut()?,
            q: q.host_mut()?,
        };
        let (a, state) = (a.host()?, &mut state.host()?);
        summing!(run, T, forward(shape, &a, vectors, state));
        Ok(())
    }

    fn cgnr_backward(
        &self,
        run: Run<'_>,
        shape: CgnrShape,
        at: &Stored<T>,
        parity: usize,
        vectors: CgnrVectors<'_, T>,
        state: &mut SolveState,
    ) -> Result<()> {
        let CgnrVectors { mut x, mut r, mut s, d, q, phi } = vectors;
        let (r, r_new) = by_parity(&mut r, parity);
        let (x, x_new) = by_parity(&mut x, parity);
        let (s, s_new) = by_parity(&mut s, parity);
        let vectors = Backward {
            r: r.host()?,
            q: q.host()?,
            x: x.host()?,
            d: d[1 - parity].host()?,
            s: s.host()?,
            r_new: r_new.host_mut()?,
            x_new: x_new.host_mut()?,
            s_new: s_new.host_mut()?,
            phi: phi.host_mut()?,
        };
        let (transposed, state) = (at.host()?, &mut state.host()?);
        summing!(run, T, backward(shape, &transposed, vectors, state));
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
        summing!(run, T, correct(term.shape, weights, x, v, out.host_mut()?));
        Ok(())
    }
}
