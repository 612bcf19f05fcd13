//! The vocabulary in Rust on all cores: the reference that every device must match bit for bit.
//!
//! Threads take whole chunks of the reduction tree, so their number changes nothing.

use std::ops::Range;

use rayon::prelude::*;

use super::host_rows::{each_row, row_sums};
use super::host_step;
use super::{
    AnyStored, Blend, CgnrShape, CgnrVectors, Memory, PASS_VECTORS, Part, Pass, Reduction, Run, SolveState,
    StepCall, StepState, Stored, Triangle, Vocabulary,
};
use crate::allocations::count_allocation;
use crate::error::{Result, same_length};
use crate::number::sealed::Sealed;
use crate::number::{Accumulation, Accumulator, Element, Real, Sum};
use crate::reduction::{Chunks, fold, fold_sums};
use crate::sparse::Kind;
use crate::state::{cg, cgnr, stop};

/// The host back end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Host;

/// Most vectors multiplied at once.
pub(crate) const MOST_COLUMNS: usize = 4;

/// Calls a function that is generic over number and accumulator with the accumulator that `$run` asks for.
macro_rules! summing {
    ($run:expr, $t:ty, $function:ident($($arg:expr),* $(,)?)) => {
        match $run.accumulation {
            Accumulation::Double => $function::<$t, f64>($($arg),*),
            Accumulation::Pair => $function::<$t, <$t as Sealed>::Narrow>($($arg),*),
        }
    };
}

/// Calls `$function` with the number of lanes as a constant, so that loops over lanes have a known length.
macro_rules! with_lanes {
    ($lanes:expr, $function:ident::<$t:ty, $a:ty, $k:tt>($($arg:expr),* $(,)?)) => {
        match $lanes {
            0..=32 => $function::<$t, $a, $k, 32>($($arg),*),
            33..=64 => $function::<$t, $a, $k, 64>($($arg),*),
            65..=128 => $function::<$t, $a, $k, 128>($($arg),*),
            129..=256 => $function::<$t, $a, $k, 256>($($arg),*),
            257..=512 => $function::<$t, $a, $k, 512>($($arg),*),
            _ => $function::<$t, $a, $k, 1024>($($arg),*),
        }
    };
}

pub(super) use with_lanes;

/// Lane sums of one chunk folded, `K` of them at once: `terms(i)` yields what element `i` adds to each. `LANES` lanes
/// instead of the chunk's fewer ones only add zeros.
pub(super) fn chunk_sums<T: Real, A: Accumulator<T>, const K: usize, const LANES: usize>(
    range: Range<usize>,
    mut terms: impl FnMut(usize) -> [A; K],
) -> [Sum; K] {
    let mut lanes = [[A::default(); LANES]; K];
    for block in range.clone().step_by(LANES) {
        for l in 0..LANES.min(range.end - block) {
            let term = terms(block + l);
            for k in 0..K {
                lanes[k][l] = lanes[k][l].add(term[k]);
            }
        }
    }
    lanes.map(|mut lane| Sum(fold(&mut lane, A::add).to_bits()))
}

/// The second level of a reduction.
pub(super) fn total<T: Real, A: Accumulator<T>>(sums: &[Sum]) -> A {
    let sums: Vec<A> = sums.iter().map(|s| A::from_bits(s.0)).collect();
    fold_sums(&sums, A::default(), A::add)
}

fn multiply<T: Real, A: Accumulator<T>>(a: &Stored<Host, T>, columns: usize, x: &[T], y: &mut [T]) {
    if columns > 1 {
        return multiply_gathered::<T, A>(a, columns, &|at| x[at], y);
    }
    let chunks = Chunks::of(a.rows);
    y.par_chunks_mut(chunks.chunk).enumerate().for_each(|(g, y)| {
        let range = chunks.range(g);
        let first = range.start;
        each_row::<T, A>(a, range, x, |i, sum| y[i - first] = sum.to_real());
    });
}

/// `sweep` of `cl/sweep.cl`.
fn sweep<T: Real, A: Accumulator<T>>(
    levels: Range<usize>,
    keep: Option<T>,
    triangle: &Triangle<'_, Host, T>,
    x: &[T],
    z: &mut [T],
) {
    let Triangle { bounds, list, offsets, indices, values, scale } = *triangle;
    let row = |at: usize, z: &[T]| {
        let mut sum = A::default();
        for k in offsets[at] as usize..offsets[at + 1] as usize {
            sum = sum.add(A::product(values[k], z[indices[k] as usize]));
        }
        let (i, own) = (list[at] as usize, A::from_real(scale[at]));
        match keep {
            None => A::from_real(x[i]).sub(sum).mul(own).to_real(),
            Some(keep) => A::product(keep, z[i]).sub(own.mul(sum)).to_real(),
        }
    };
    for level in levels {
        let rows = bounds[level] as usize..bounds[level + 1] as usize;
        if rows.len() < 4096 {
            for at in rows {
                z[list[at] as usize] = row(at, z);
            }
            continue;
        }
        let before = &*z;
        let after: Vec<T> = rows.clone().into_par_iter().with_min_len(1024).map(|at| row(at, before)).collect();
        for (at, value) in rows.zip(after) {
            z[list[at] as usize] = value;
        }
    }
}

/// `y = A x` for `columns` interleaved vectors whose elements `gather` makes.
fn multiply_gathered<T: Real, A: Accumulator<T>>(
    a: &Stored<Host, T>,
    columns: usize,
    gather: &(impl Fn(usize) -> T + Sync),
    y: &mut [T],
) {
    let chunks = Chunks::of(a.rows);
    y.par_chunks_mut(chunks.chunk * columns).enumerate().for_each(|(g, y)| {
        for (row, i) in y.chunks_mut(columns).zip(chunks.range(g)) {
            let sums = row_sums::<T, A>(a, i, columns, gather);
            for c in 0..columns {
                row[c] = sums[c].to_real();
            }
        }
    });
}

fn residual<T: Real, A: Accumulator<T>>(
    a: &Stored<Host, T>,
    columns: usize,
    x: &[T],
    b: &[T],
    r: &mut [T],
    sums: &mut [Sum],
) {
    let chunks = Chunks::of(a.rows);
    r.par_chunks_mut(chunks.chunk * columns).enumerate().for_each(|(g, r)| {
        let range = chunks.range(g);
        if columns == 1 && a.arrangement.kind != Kind::Outside {
            let first = range.start;
            each_row::<T, A>(a, range, x, |i, sum| r[i - first] = A::from_real(b[i]).sub(sum).to_real());
            return;
        }
        for (row, i) in r.chunks_mut(columns).zip(range) {
            let product = match a.arrangement.kind {
                Kind::Outside => held::<T, A>(row),
                _ => row_sums::<T, A>(a, i, columns, &|at| x[at]),
            };
            for c in 0..columns {
                row[c] = A::from_real(b[i * columns + c]).sub(product[c]).to_real();
            }
        }
    });
    squares::<T, A>(chunks, columns, r, sums);
}

/// A row of a product that was made by others.
pub(super) fn held<T: Real, A: Accumulator<T>>(row: &[T]) -> [A; MOST_COLUMNS] {
    std::array::from_fn(|c| row.get(c).map_or(A::default(), |v| A::from_real(*v)))
}

/// Chunk sums of the squares of each column of `v`, at `sums[c * chunks.count + g]`.
fn squares<T: Real, A: Accumulator<T>>(chunks: Chunks, columns: usize, v: &[T], sums: &mut [Sum]) {
    sums[..chunks.count * columns].par_iter_mut().enumerate().for_each(|(at, sum)| {
        let (c, g) = (at / chunks.count, at % chunks.count);
        let square = |i: usize| [A::product(v[i * columns + c], v[i * columns + c])];
        [*sum] = with_lanes!(chunks.lanes, chunk_sums::<T, A, 1>(chunks.range(g), square));
    });
}

fn reduce<T: Real, A: Accumulator<T>>(
    n: usize,
    [columns, column]: [usize; 2],
    reduction: Reduction,
    x: &[T],
    y: &[T],
) -> f64 {
    let chunks = Chunks::of(n);
    let combine = |a: A, b: A| match reduction {
        Reduction::Product => a.mul(b),
        Reduction::Minimum => {
            if a.less(b) || a.is_nan() {
                a
            } else {
                b
            }
        }
        Reduction::Maximum => {
            if b.less(a) || a.is_nan() {
                a
            } else {
                b
            }
        }
        _ => a.add(b),
    };
    let identity = match reduction {
        Reduction::Product => A::from_f64(1.0),
        Reduction::Minimum => A::from_f64(f64::INFINITY),
        Reduction::Maximum => A::from_f64(f64::NEG_INFINITY),
        _ => A::default(),
    };
    let term = |i: usize| match (reduction, i * columns + column) {
        (Reduction::Dot, at) => A::product(x[at], y[at]),
        (Reduction::AbsoluteSum, at) => A::from_real(x[at].abs()),
        (_, at) => A::from_real(x[at]),
    };
    let sums: Vec<A> = (0..chunks.count)
        .into_par_iter()
        .map(|g| {
            let mut lanes = vec![identity; chunks.lanes];
            for (offset, i) in chunks.range(g).enumerate() {
                let lane = &mut lanes[offset % chunks.lanes];
                *lane = combine(*lane, term(i));
            }
            fold(&mut lanes, combine)
        })
        .collect();
    fold_sums(&sums, identity, combine).to_f64()
}

impl Host {
    /// The part of [`Vocabulary::cg_product`] that makes the stopping test and writes the norm of `count` chunks.
    pub(super) fn cg_norms<T: Real>(run: Run<'_>, count: usize, state: &mut SolveState<Self>) {
        summing!(run, T, cg_test(count, state));
    }

    /// The part of [`Vocabulary::cgnr_forward`] that does so for a matrix of `rows` by `cols`.
    pub(super) fn cgnr_norms<T: Real>(
        run: Run<'_>,
        columns: usize,
        [rows, cols]: [usize; 2],
        state: &mut SolveState<Self>,
    ) {
        let runs = cgnr::Runs { columns, rows: Chunks::of(rows).count, cols: Chunks::of(cols).count };
        let _betas = summing!(run, T, cgnr_test(columns, runs, state));
    }
}

/// `cg_test` of `cl/cg.cl`.
fn cg_test<T: Real, A: Accumulator<T>>(count: usize, state: &mut SolveState<Host>) {
    let mut code = state.status[2 + cg::STOP];
    let iteration = state.status[2 + cg::ITERATION];
    let mut rr = state.control[cg::SLOT + cg::RR];
    if code == stop::RUNNING {
        let sum: A = total::<T, A>(&state.sums[2 * count..3 * count]);
        let limit = A::from_bits(state.control[cg::TOLERANCE].0);
        rr = Sum(sum.to_bits());
        if !sum.is_finite() {
            code = stop::NOT_FINITE;
        } else if !limit.less(sum) {
            code = stop::CONVERGED;
        } else if iteration >= state.status[cg::MAX_ITERATIONS] {
            code = stop::ITERATIONS_DONE;
        }
        state.history[(iteration & state.status[cg::HISTORY_MASK]) as usize] = rr;
    }
    state.control[cg::RR] = rr;
    state.status[cg::STOP] = code;
    state.status[cg::ITERATION] = iteration;
}

fn cg_product<T: Real, A: Accumulator<T>>(a: &Stored<Host, T>, p: &[T], q: &mut [T], state: &mut SolveState<Host>) {
    let chunks = Chunks::of(a.rows);
    let running = state.status[2 + cg::STOP] == stop::RUNNING;
    cg_test::<T, A>(chunks.count, state);
    if !running {
        return;
    }
    let (pq, rest) = state.sums.split_at_mut(chunks.count);
    q.par_chunks_mut(chunks.chunk).zip(pq.par_iter_mut().zip(rest.par_iter_mut())).enumerate().for_each(
        |(g, (q, (pq, qq)))| {
            let range = chunks.range(g);
            let first = range.start;
            if a.arrangement.kind != Kind::Outside {
                each_row::<T, A>(a, range.clone(), p, |i, sum| q[i - first] = sum.to_real());
            }
            let terms = |i: usize| {
                let value = q[i - first];
                [A::product(p[i], value), A::product(value, value)]
            };
            [*pq, *qq] = with_lanes!(chunks.lanes, chunk_sums::<T, A, 2>(range, terms));
        },
    );
}

fn cg_update<T: Real, A: Accumulator<T>>(
    n: usize,
    q: &[T],
    x: &mut [T],
    r: &mut [T],
    p: &mut [T],
    state: &mut SolveState<Host>,
) {
    let chunks = Chunks::of(n);
    let mut code = state.status[cg::STOP];
    let iteration = state.status[cg::ITERATION];
    let rr = A::from_bits(state.control[cg::RR].0);
    let (mut pq, mut qq) = (rr, rr);
    if code == stop::RUNNING {
        pq = total::<T, A>(&state.sums[..chunks.count]);
        qq = total::<T, A>(&state.sums[chunks.count..2 * chunks.count]);
        if !pq.is_finite() || !qq.is_finite() {
            code = stop::NOT_FINITE;
        } else if pq.less(A::default()) {
            code = stop::INDEFINITE;
        } else if !A::default().less(pq) {
            code = stop::BREAKDOWN;
        }
    }
    state.control[cg::SLOT + cg::RR] = Sum(rr.to_bits());
    state.status[2 + cg::STOP] = code;
    if code != stop::RUNNING {
        state.status[2 + cg::ITERATION] = iteration;
        return;
    }
    let alpha_sum = rr.div(pq);
    let next_rr = alpha_sum.mul(alpha_sum.mul(qq)).sub(rr);
    let beta_sum = if A::default().less(next_rr) { next_rr.div(rr) } else { A::default() };
    state.control[cg::SLOT + cg::ALPHA] = Sum(alpha_sum.to_bits());
    state.control[cg::SLOT + cg::BETA] = Sum(beta_sum.to_bits());
    state.status[2 + cg::ITERATION] = iteration + 1;
    let (alpha, beta) = (alpha_sum.to_real(), beta_sum.to_real());
    let chunk = chunks.chunk;
    x.par_chunks_mut(chunk)
        .zip(r.par_chunks_mut(chunk))
        .zip(p.par_chunks_mut(chunk).zip(q.par_chunks(chunk)))
        .zip(state.sums[2 * chunks.count..].par_iter_mut())
        .for_each(|(((x, r), (p, q)), sum)| {
            [*sum] = with_lanes!(chunks.lanes, cg_update_chunk::<T, A, 1>(alpha, beta, x, r, p, q));
        });
}

/// One chunk of `cg_update`, block by block of `LANES` elements so that the inner loop has no dependences.
fn cg_update_chunk<T: Real, A: Accumulator<T>, const K: usize, const LANES: usize>(
    alpha: T,
    beta: T,
    x: &mut [T],
    r: &mut [T],
    p: &mut [T],
    q: &[T],
) -> [Sum; 1] {
    let mut lanes = [A::default(); LANES];
    let blocks = x.chunks_mut(LANES).zip(r.chunks_mut(LANES)).zip(p.chunks_mut(LANES).zip(q.chunks(LANES)));
    for ((x, r), (p, q)) in blocks {
        let n = x.len();
        let (r, p, q, lanes) = (&mut r[..n], &mut p[..n], &q[..n], &mut lanes[..n]);
        for l in 0..n {
            let next = r[l] - alpha * q[l];
            x[l] = x[l] + alpha * p[l];
            r[l] = next;
            p[l] = next + beta * p[l];
            lanes[l] = lanes[l].add(A::product(next, next));
        }
    }
    [Sum(fold(&mut lanes, A::add).to_bits())]
}

/// The regularisation weights of one column.
#[derive(Clone, Copy)]
struct Weights<A> {
    tikhonov: A,
    smooth: A,
    variation: A,
    epsilon2: A,
    in_box: A,
    edges: u32,
}

impl<A: Copy> Weights<A> {
    fn of<T: Real>(control: &[Sum], c: usize, edges: u32) -> (Self, T, T)
    where
        A: Accumulator<T>,
    {
        let at = |field: usize| A::from_bits(control[c * cgnr::CONTROL + field].0);
        let weights = Self {
            tikhonov: at(cgnr::TIKHONOV),
            smooth: at(cgnr::SMOOTH),
            variation: at(cgnr::VARIATION),
            epsilon2: at(cgnr::EPSILON2),
            in_box: at(cgnr::BOX),
            edges,
        };
        (weights, at(cgnr::LOWER).to_real(), at(cgnr::UPPER).to_real())
    }

    /// `edge` of `cl/cgnr.cl`.
    fn edge<T: Real>(&self, here: T, there: T, phi: T) -> A
    where
        A: Accumulator<T>,
    {
        let mut weight = self.smooth;
        if self.edges == 2 {
            weight = weight.add(self.variation.mul(A::from_real(phi)));
        }
        weight.mul(A::from_real(here - there))
    }

    /// `diffusivity` of `cl/cgnr.cl`; 0 where there is no total variation.
    fn diffusivity<T: Real>(&self, here: T, right: T, down: T) -> T
    where
        A: Accumulator<T>,
    {
        if self.edges != 2 {
            return T::default();
        }
        let (dx, dy) = (right - here, down - here);
        let square = A::product(dx, dx).add(A::product(dy, dy)).add(self.epsilon2);
        A::from_real(T::from_f64(1.0)).div(square.sqrt()).to_real()
    }
}

fn violated<T: Real>(x: T, lower: T, upper: T) -> Option<T> {
    if x < lower {
        Some(lower)
    } else if x > upper {
        Some(upper)
    } else {
        None
    }
}

/// Whether every column has stopped, seen from slot `which`.
fn all_stopped(status: &[i32], columns: usize, which: usize) -> bool {
    (0..columns).all(|c| status[c * cgnr::STATUS + which] != stop::RUNNING)
}

/// Group 0 of `cgnr_forward`: the stopping test and beta of each column, or nothing where all have stopped.
fn cgnr_test<T: Real, A: Accumulator<T>>(
    columns: usize,
    runs: cgnr::Runs,
    state: &mut SolveState<Host>,
) -> Option<[T; MOST_COLUMNS]> {
    let done = all_stopped(&state.status, columns, cgnr::LAST_STOP);
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

fn cgnr_forward<T: Real, A: Accumulator<T>>(
    shape: CgnrShape,
    a: &Stored<Host, T>,
    turn: usize,
    vectors: CgnrVectors<'_, Host, T>,
    state: &mut SolveState<Host>,
) {
    let columns = shape.columns;
    let (rows, cols) = (Chunks::of(a.rows), Chunks::of(a.cols));
    let runs = cgnr::Runs { columns, rows: rows.count, cols: cols.count };
    let CgnrVectors { x, s, mut d, q, phi, .. } = vectors;
    let betas = match shape.part {
        Part::Rows if all_stopped(&state.status, columns, cgnr::LAST_STOP) => return,
        Part::Rows => [T::default(); MOST_COLUMNS],
        _ => match cgnr_test::<T, A>(columns, runs, state) {
            Some(betas) => betas,
            None => return,
        },
    };
    let (d_old, d_new) = turned(&mut d, turn);
    let s = &*s[turn];
    let direction = |at: usize| s[at] + betas[at % columns] * d_old[at];
    if a.arrangement.kind != Kind::Outside {
        multiply_gathered::<T, A>(a, columns, &direction, q);
    }
    if shape.part != Part::Pixels {
        squares::<T, A>(rows, columns, q, &mut state.sums[runs.all_qq()]);
    }
    if shape.part == Part::Rows {
        return;
    }
    d_new.par_iter_mut().enumerate().for_each(|(at, d)| *d = direction(at));
    let (d, x, width, n) = (&*d_new, &*x[turn], shape.width, a.cols);
    let control = &state.control;
    state.sums[runs.all_df()].par_iter_mut().enumerate().for_each(|(place, sum)| {
        let (c, g) = (place / cols.count, place % cols.count);
        let (weights, lower, upper) = Weights::<A>::of::<T>(control, c, shape.edges);
        let phi_at = |at: usize| if shape.edges == 2 { phi[at] } else { T::default() };
        let term = |i: usize| {
            let at = i * columns + c;
            let here = d[at];
            let mut sum = weights.tikhonov.mul(A::from_real(here));
            if shape.edges > 0 {
                let mine = phi_at(at);
                if i % width + 1 < width {
                    sum = sum.add(weights.edge(here, d[at + columns], mine));
                }
                if i + width < n {
                    sum = sum.add(weights.edge(here, d[at + width * columns], mine));
                }
                if !i.is_multiple_of(width) {
                    sum = sum.add(weights.edge(here, d[at - columns], phi_at(at - columns)));
                }
                if i >= width {
                    let up = at - width * columns;
                    sum = sum.add(weights.edge(here, d[up], phi_at(up)));
                }
            }
            if violated(x[at], lower, upper).is_some() {
                sum = sum.add(weights.in_box.mul(A::from_real(here)));
            }
            [A::from_real(here).mul(sum)]
        };
        [*sum] = with_lanes!(cols.lanes, chunk_sums::<T, A, 1>(cols.range(g), term));
    });
}

fn cgnr_backward<T: Real, A: Accumulator<T>>(
    shape: CgnrShape,
    at_matrix: &Stored<Host, T>,
    turn: usize,
    vectors: CgnrVectors<'_, Host, T>,
    state: &mut SolveState<Host>,
) {
    let columns = shape.columns;
    let (rows, cols) = (Chunks::of(at_matrix.cols), Chunks::of(at_matrix.rows));
    let runs = cgnr::Runs { columns, rows: rows.count, cols: cols.count };
    let done = all_stopped(&state.status, columns, cgnr::STOP);
    let mut stopped = [false; MOST_COLUMNS];
    let mut alphas = [T::default(); MOST_COLUMNS];
    for c in 0..columns {
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
        stopped[c] = code != stop::RUNNING;
        alphas[c] = if stopped[c] { T::default() } else { alpha.to_real() };
        if shape.part == Part::Rows {
            continue;
        }
        state.control[control + cgnr::LAST_GD] = gd;
        state.control[control + cgnr::ALPHA] = Sum(alpha.to_bits());
        state.status[status + cgnr::LAST_STOP] = code;
        state.status[status + cgnr::NEXT_ITERATION] = if code == stop::RUNNING { iteration + 1 } else { iteration };
    }
    if done {
        return;
    }
    let CgnrVectors { mut x, mut r, mut s, d, q, phi } = vectors;
    let (r, r_new) = turned(&mut r, turn);
    let (x, x_new) = turned(&mut x, turn);
    let (s, s_new) = turned(&mut s, turn);
    let (d, q) = (&*d[1 - turn], &*q);
    let residual = |at: usize| r[at] + -alphas[at % columns] * q[at];
    let image = |at: usize| x[at] + alphas[at % columns] * d[at];
    if shape.part != Part::Pixels {
        r_new.par_iter_mut().enumerate().for_each(|(at, new)| {
            *new = if stopped[at % columns] { r[at] } else { residual(at) };
        });
        squares::<T, A>(rows, columns, r_new, &mut state.sums[runs.all_rr()]);
    }
    if shape.part == Part::Rows {
        return;
    }
    if at_matrix.arrangement.kind != Kind::Outside {
        multiply_gathered::<T, A>(at_matrix, columns, &residual, s_new);
    }
    x_new.par_iter_mut().enumerate().for_each(|(at, new)| {
        *new = if stopped[at % columns] { x[at] } else { image(at) };
    });
    let (width, n, control) = (shape.width, at_matrix.rows, &state.control);
    // phi first, then F: on the device each pixel works out the phi of its neighbours again instead.
    if shape.edges == 2 {
        phi.par_iter_mut().enumerate().for_each(|(at, phi)| {
            let (i, c) = (at / columns, at % columns);
            let (weights, _, _) = Weights::<A>::of::<T>(control, c, shape.edges);
            let here = image(at);
            let right = if i % width + 1 < width { image(at + columns) } else { here };
            let down = if i + width < n { image(at + width * columns) } else { here };
            *phi = weights.diffusivity(here, right, down);
        });
    }
    let phi = &*phi;
    let phi_at = |at: usize| if shape.edges == 2 { phi[at] } else { T::default() };
    s_new.par_iter_mut().enumerate().for_each(|(at, s_new)| {
        let (i, c) = (at / columns, at % columns);
        let (weights, lower, upper) = Weights::<A>::of::<T>(control, c, shape.edges);
        let here = image(at);
        let mut sum = weights.tikhonov.mul(A::from_real(here));
        if shape.edges > 0 {
            let mine = phi_at(at);
            if i % width + 1 < width {
                sum = sum.add(weights.edge(here, image(at + columns), mine));
            }
            if i + width < n {
                sum = sum.add(weights.edge(here, image(at + width * columns), mine));
            }
            if i % width > 0 {
                sum = sum.add(weights.edge(here, image(at - columns), phi_at(at - columns)));
            }
            if i >= width {
                let up = at - width * columns;
                sum = sum.add(weights.edge(here, image(up), phi_at(up)));
            }
        }
        if let Some(bound) = violated(here, lower, upper) {
            sum = sum.add(weights.in_box.mul(A::from_real(here - bound)));
        }
        *s_new = A::from_real(*s_new).sub(sum).to_real();
    });
    let s_new = &*s_new;
    let sums: Vec<[Sum; 3]> = (0..columns * cols.count)
        .into_par_iter()
        .map(|place| {
            let (c, g) = (place / cols.count, place % cols.count);
            let terms = |i: usize| {
                let at = i * columns + c;
                let new = s_new[at];
                [A::product(new, new), A::product(new, s[at]), A::product(new, d[at])]
            };
            with_lanes!(cols.lanes, chunk_sums::<T, A, 3>(cols.range(g), terms))
        })
        .collect();
    for (place, sum) in sums.into_iter().enumerate() {
        let (c, g) = (place / cols.count, place % cols.count);
        for (run, value) in [runs.ss(c), runs.so(c), runs.sd(c)].into_iter().zip(sum) {
            state.sums[run.start + g] = value;
        }
    }
}

/// The buffer that is read in this turn, and the one that is written.
fn turned<'t, T>(pair: &'t mut [&mut Vec<T>; 2], turn: usize) -> (&'t [T], &'t mut Vec<T>) {
    let [even, odd] = pair;
    if turn == 0 { (even, odd) } else { (odd, even) }
}

impl Vocabulary for Host {
    type Buffer<E: Element> = Vec<E>;

    fn buffer<'a, E: Element>(&self, memory: &'a Memory<E>) -> Option<&'a Vec<E>> {
        match memory {
            Memory::Host(buffer) => Some(buffer),
            Memory::OpenCl(_) => None,
        }
    }

    fn buffer_mut<'a, E: Element>(&self, memory: &'a mut Memory<E>) -> Option<&'a mut Vec<E>> {
        match memory {
            Memory::Host(buffer) => Some(buffer),
            Memory::OpenCl(_) => None,
        }
    }

    fn memory<E: Element>(buffer: Vec<E>) -> Memory<E> {
        Memory::Host(buffer)
    }

    fn stored<'a, T: Real>(&self, any: &'a AnyStored<T>) -> Option<&'a Stored<Self, T>> {
        match any {
            AnyStored::Host(stored) => Some(stored),
            AnyStored::OpenCl(_) => None,
        }
    }

    fn any<T: Real>(stored: Stored<Self, T>) -> AnyStored<T> {
        AnyStored::Host(stored)
    }

    fn upload<E: Element>(&self, data: &[E]) -> Result<Vec<E>> {
        self.take(data.to_vec())
    }

    fn take<E: Element>(&self, data: Vec<E>) -> Result<Vec<E>> {
        count_allocation();
        Ok(data)
    }

    fn filled<E: Element>(&self, len: usize, value: E) -> Result<Vec<E>> {
        count_allocation();
        Ok(vec![value; len])
    }

    fn write<E: Element>(&self, buffer: &mut Vec<E>, data: &[E]) -> Result<()> {
        if data.len() > buffer.len() {
            return same_length("write to a buffer", buffer.len(), data.len());
        }
        buffer[..data.len()].copy_from_slice(data);
        Ok(())
    }

    fn read<E: Element>(&self, buffer: &Vec<E>, offset: usize, data: &mut [E]) -> Result<()> {
        let Some(found) = buffer.get(offset..offset + data.len()) else {
            return same_length("read of a buffer", buffer.len(), offset + data.len());
        };
        data.copy_from_slice(found);
        Ok(())
    }

    fn copy<E: Element>(&self, source: &Vec<E>, target: &mut Vec<E>) -> Result<()> {
        same_length("copy between buffers", source.len(), target.len())?;
        target.copy_from_slice(source);
        Ok(())
    }

    fn fill<T: Real>(&self, _: Run<'_>, n: usize, value: T, x: &mut Vec<T>) -> Result<()> {
        x[..n].fill(value);
        Ok(())
    }

    fn scale<T: Real>(&self, _: Run<'_>, n: usize, alpha: T, x: &Vec<T>, y: &mut Vec<T>) -> Result<()> {
        y[..n].par_iter_mut().zip(&x[..n]).with_min_len(4096).for_each(|(y, x)| *y = alpha * *x);
        Ok(())
    }

    fn rescale<T: Real>(&self, _: Run<'_>, n: usize, alpha: T, x: &mut Vec<T>) -> Result<()> {
        x[..n].par_iter_mut().with_min_len(4096).for_each(|x| *x = alpha * *x);
        Ok(())
    }

    fn axpby<T: Real>(&self, _: Run<'_>, n: usize, alpha: T, beta: T, x: &Vec<T>, y: &mut Vec<T>) -> Result<()> {
        y[..n].par_iter_mut().zip(&x[..n]).with_min_len(4096).for_each(|(y, x)| *y = alpha * *x + beta * *y);
        Ok(())
    }

    fn multiply_elements<T: Real>(
        &self,
        _: Run<'_>,
        n: usize,
        x: &Vec<T>,
        y: &Vec<T>,
        z: &mut Vec<T>,
    ) -> Result<()> {
        let factors = x[..n].par_iter().zip(&y[..n]);
        z[..n].par_iter_mut().zip(factors).with_min_len(4096).for_each(|(z, (x, y))| *z = *x * *y);
        Ok(())
    }

    fn clamp_elements<T: Real>(&self, _: Run<'_>, n: usize, lower: T, upper: T, x: &mut Vec<T>) -> Result<()> {
        x[..n].par_iter_mut().with_min_len(4096).for_each(|x| *x = violated(*x, lower, upper).unwrap_or(*x));
        Ok(())
    }

    fn reduce<T: Real>(
        &self,
        run: Run<'_>,
        n: usize,
        column: [usize; 2],
        reduction: Reduction,
        x: &Vec<T>,
        y: &Vec<T>,
    ) -> Result<f64> {
        Ok(summing!(run, T, reduce(n, column, reduction, x, y)))
    }

    fn multiply<T: Real>(
        &self,
        run: Run<'_>,
        a: &Stored<Self, T>,
        columns: usize,
        x: &Vec<T>,
        y: &mut Vec<T>,
    ) -> Result<()> {
        summing!(run, T, multiply(a, columns, x, y));
        Ok(())
    }

    fn sweep<T: Real>(
        &self,
        run: Run<'_>,
        levels: Range<usize>,
        _: usize,
        keep: Option<T>,
        triangle: &Triangle<'_, Self, T>,
        x: &Vec<T>,
        z: &mut Vec<T>,
    ) -> Result<()> {
        summing!(run, T, sweep(levels, keep, triangle, x, z));
        Ok(())
    }

    fn scatter<T: Real>(&self, _: Run<'_>, a: &Stored<Self, T>, x: &Vec<T>, y: &mut Vec<T>) -> Result<()> {
        y[..a.cols].fill(T::default());
        for i in 0..a.rows {
            for k in a.pointers[i] as usize..a.pointers[i + 1] as usize {
                let at = a.indices[k] as usize;
                y[at] = y[at] + a.values[k] * x[i];
            }
        }
        Ok(())
    }

    fn residual<T: Real>(
        &self,
        run: Run<'_>,
        a: &Stored<Self, T>,
        columns: usize,
        x: &Vec<T>,
        b: &Vec<T>,
        r: &mut Vec<T>,
        sums: &mut Vec<Sum>,
        place: usize,
    ) -> Result<()> {
        summing!(run, T, residual(a, columns, x, b, r, &mut sums[place..]));
        Ok(())
    }

    fn cg_product<T: Real>(
        &self,
        run: Run<'_>,
        a: &Stored<Self, T>,
        p: &Vec<T>,
        q: &mut Vec<T>,
        state: &mut SolveState<Self>,
    ) -> Result<()> {
        summing!(run, T, cg_product(a, p, q, state));
        Ok(())
    }

    fn cg_update<T: Real>(
        &self,
        run: Run<'_>,
        n: usize,
        q: &Vec<T>,
        x: &mut Vec<T>,
        r: &mut Vec<T>,
        p: &mut Vec<T>,
        state: &mut SolveState<Self>,
    ) -> Result<()> {
        summing!(run, T, cg_update(n, q, x, r, p, state));
        Ok(())
    }

    fn cgnr_forward<T: Real>(
        &self,
        run: Run<'_>,
        shape: CgnrShape,
        a: &Stored<Self, T>,
        turn: usize,
        vectors: CgnrVectors<'_, Self, T>,
        state: &mut SolveState<Self>,
    ) -> Result<()> {
        summing!(run, T, cgnr_forward(shape, a, turn, vectors, state));
        Ok(())
    }

    fn cgnr_backward<T: Real>(
        &self,
        run: Run<'_>,
        shape: CgnrShape,
        at: &Stored<Self, T>,
        turn: usize,
        vectors: CgnrVectors<'_, Self, T>,
        state: &mut SolveState<Self>,
    ) -> Result<()> {
        summing!(run, T, cgnr_backward(shape, at, turn, vectors, state));
        Ok(())
    }

    fn step_scalars<T: Real>(&self, run: Run<'_>, call: StepCall, state: &mut StepState<Self>) -> Result<()> {
        use host_step::scalars;
        summing!(run, T, scalars(call, state));
        Ok(())
    }

    fn step_product<T: Real>(
        &self,
        run: Run<'_>,
        call: StepCall,
        a: &Stored<Self, T>,
        blend: Blend,
        [x, w, z]: [&Vec<T>; 3],
        y: &mut Vec<T>,
        state: &mut StepState<Self>,
    ) -> Result<()> {
        use host_step::product;
        summing!(run, T, product(call, a, blend, [x, w, z], y, state));
        Ok(())
    }

    fn step_vectors<T: Real>(
        &self,
        run: Run<'_>,
        call: StepCall,
        n: usize,
        pass: &Pass,
        buffers: [&mut Vec<T>; PASS_VECTORS],
        state: &mut StepState<Self>,
    ) -> Result<()> {
        use host_step::vectors;
        summing!(run, T, vectors(call, n, pass, buffers.map(|b| &mut b[..]), state));
        Ok(())
    }
}
