//! The launches of conjugate gradients on the host.

use rayon::prelude::*;

use super::{CgOps, CgVectors};
use crate::backend::product::{HostMatrix, Stored, chunk_product};
use crate::backend::solve_state::HostState;
use crate::backend::sums::{chunk_sums, summing, total, with_lanes};
use crate::backend::{Host, Run, SolveState};
use crate::error::Result;
use crate::memory::Memory;
use crate::number::{Accumulator, Real, Sum};
use crate::reduction::{Chunks, fold};
use crate::state::{cg, stop};

/// `cg_test` of `cl/cg_product.cl`.
fn cg_test<T: Real, A: Accumulator<T>>(count: usize, state: &mut HostState<'_>) {
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

fn cg_product<T: Real, A: Accumulator<T>>(a: &HostMatrix<'_, T>, p: &[T], q: &mut [T], state: &mut HostState<'_>) {
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
            chunk_product::<T, A>(a, 1, range.clone(), p, q, |_, _, sum| sum.to_real());
            let terms = |i: usize| {
                let value = q[i - first];
                [A::product(p[i], value), A::product(value, value)]
            };
            [*pq, *qq] = with_lanes!(chunks.lanes, chunk_sums::<T, A, 2>(range, terms));
        },
    );
}

fn cg_update<T: Real, A: Accumulator<T>>(n: usize, q: &[T], [x, r, p]: [&mut [T]; 3], state: &mut HostState<'_>) {
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

/// The part of [`CgOps::cg_product`] that makes the stopping test and writes the norm of `count` chunks.
pub(in crate::backend) fn test<T: Real>(run: Run<'_>, count: usize, state: &mut SolveState) -> Result<()> {
    let state = &mut state.host()?;
    summing!(run, T, cg_test(count, state));
    Ok(())
}

impl<T: Real> CgOps<T> for Host {
    fn cg_product(
        &self,
        run: Run<'_>,
        a: &Stored<T>,
        p: &Memory<T>,
        q: &mut Memory<T>,
        state: &mut SolveState,
    ) -> Result<()> {
        let (a, p, q, state) = (a.host()?, p.host()?, q.host_mut()?, &mut state.host()?);
        summing!(run, T, cg_product(&a, p, q, state));
        Ok(())
    }

    fn cg_update(&self, run: Run<'_>, n: usize, vectors: CgVectors<'_, T>, state: &mut SolveState) -> Result<()> {
        let CgVectors { x, r, p, q } = vectors;
        let (q, updated) = (q.host()?, [x.host_mut()?, r.host_mut()?, p.host_mut()?]);
        let state = &mut state.host()?;
        summing!(run, T, cg_update(n, q, updated, state));
        Ok(())
    }
}
