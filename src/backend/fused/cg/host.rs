//! The launches of conjugate gradients on the host.

use super::{CgOps, CgVectors};
use crate::backend::Host;
use crate::backend::fused::HostState;
use crate::backend::fused::SolveState;
use crate::backend::linear::product::{HostMatrix, Stored, chunk_product};
use crate::backend::run::Run;
use crate::backend::sums::{chunk_sums, column_dot, summing, total};
use crate::backend::widest::widest;
use crate::error::Result;
use crate::memory::Memory;
use crate::number::{Accumulator, Real, Sum};
use crate::reduction::Chunks;
use crate::state::{cg, stop};
use crate::threads::{self, ChunksMut};

/// `cg_test` of `cl/cg_product.cl`.
fn cg_test<T: Real, A: Accumulator<T>>(count: usize, diagonal: bool, state: &mut HostState<'_>) {
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
        if diagonal {
            let rz: A = total::<T, A>(&state.sums[4 * count..5 * count]);
            if code == stop::RUNNING && !rz.is_finite() {
                code = stop::NOT_FINITE;
            } else if code == stop::RUNNING && !A::default().less(rz) {
                code = stop::INDEFINITE_PRECONDITIONER;
            }
            state.control[cg::RZ] = Sum(rz.to_bits());
        }
    }
    state.control[cg::RR] = rr;
    state.status[cg::STOP] = code;
    state.status[cg::ITERATION] = iteration;
}

/// `cg_direction` of `cl/cg_direction.cl`.
fn cg_direction<T: Real, A: Accumulator<T>>(m: &[T], r: &[T], p: &mut [T], state: &mut HostState<'_>) {
    let chunks = Chunks::of(r.len());
    let sums = &mut state.sums[4 * chunks.count..];
    threads::each((ChunksMut(p, chunks.chunk), &mut sums[..]), 1, |g, (p, sum)| {
        let range = chunks.range(g);
        for (p, i) in p.iter_mut().zip(range.clone()) {
            *p = m[i] * r[i];
        }
        let (r, lanes) = (&r[range], chunks.lanes);
        *sum = column_dot::<T, A>(lanes, 0..r.len(), [1, 0], r, p);
    });
}

fn cg_product<T: Real, A: Accumulator<T>>(
    a: &HostMatrix<'_, T>,
    m: Option<&[T]>,
    p: &[T],
    q: &mut [T],
    state: &mut HostState<'_>,
) {
    let chunks = Chunks::of(a.rows);
    let running = state.status[2 + cg::STOP] == stop::RUNNING;
    let more = state.status[2 + cg::ITERATION] < state.status[cg::MAX_ITERATIONS];
    cg_test::<T, A>(chunks.count, m.is_some(), state);
    // After the last iteration nobody needs another product.
    if !(running && more) {
        return;
    }
    let (pq, rest) = state.sums.split_at_mut(chunks.count);
    threads::each((ChunksMut(q, chunks.chunk), pq, rest), 1, |g, (q, pq, qq)| {
        let range = chunks.range(g);
        chunk_product::<T, A>(a, 1, range.clone(), p, q, |_, _, sum| sum.to_real());
        let p = &p[range.clone()];
        [*pq, *qq] = match m {
            None => chunk_sums(chunks.lanes, [p, q], |[p, q]| [A::product(p, q), A::product(q, q)]),
            Some(m) => {
                chunk_sums(chunks.lanes, [p, q, &m[range]], |[p, q, m]| [A::product(p, q), A::product(q, m * q)])
            }
        };
    });
}

fn cg_update<T: Real, A: Accumulator<T>>(
    n: usize,
    m: Option<&[T]>,
    q: &[T],
    [x, r, p]: [&mut [T]; 3],
    state: &mut HostState<'_>,
) {
    let chunks = Chunks::of(n);
    let mut code = state.status[cg::STOP];
    let iteration = state.status[cg::ITERATION];
    let rr = state.control[cg::RR];
    let rho = A::from_bits(if m.is_some() { state.control[cg::RZ].0 } else { rr.0 });
    let (mut pq, mut qq) = (rho, rho);
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
    state.control[cg::SLOT + cg::RR] = rr;
    state.status[2 + cg::STOP] = code;
    if code != stop::RUNNING {
        state.status[2 + cg::ITERATION] = iteration;
        return;
    }
    let alpha_sum = rho.div(pq);
    let next_rho = alpha_sum.mul(alpha_sum.mul(qq)).sub(rho);
    let beta_sum = if A::default().less(next_rho) { next_rho.div(rho) } else { A::default() };
    state.control[cg::SLOT + cg::ALPHA] = Sum(alpha_sum.to_bits());
    state.control[cg::SLOT + cg::BETA] = Sum(beta_sum.to_bits());
    state.status[2 + cg::ITERATION] = iteration + 1;
    let (alpha, beta) = (alpha_sum.to_real(), beta_sum.to_real());
    let chunk = chunks.chunk;
    let (rr_sums, rz_sums) = state.sums[2 * chunks.count..].split_at_mut(2 * chunks.count);
    let vectors = (ChunksMut(x, chunk), ChunksMut(r, chunk), ChunksMut(p, chunk));
    let (factors, lanes) = ([alpha, beta], chunks.lanes);
    match m {
        None => threads::each((vectors, rr_sums), 1, |g, ((x, r, p), rr)| {
            update_chunk::<T, 0>(factors, &[], x, r, p, &q[chunks.range(g)]);
            *rr = column_dot::<T, A>(lanes, 0..r.len(), [1, 0], r, r);
        }),
        Some(m) => threads::each((vectors, rr_sums, rz_sums), 1, |g, ((x, r, p), rr, rz)| {
            let m = &m[chunks.range(g)];
            update_chunk::<T, 1>(factors, m, x, r, p, &q[chunks.range(g)]);
            [*rr, *rz] = chunk_sums(lanes, [r, m], |[r, m]| [A::product(r, r), A::product(r, m * r)]);
        }),
    }
}

widest! {
    /// The vectors of one chunk of `cg_update`; `[alpha, beta]` are given. If `DIAGONAL` is 1, `m` is the preconditioner; else it is not read.
    fn update_chunk<'v; T: Real; const DIAGONAL>(
        factors: [T; 2],
        m: &'v [T],
        x: &'v mut [T],
        r: &'v mut [T],
        p: &'v mut [T],
        q: &'v [T],
    ) -> () {
        let (n, [alpha, beta]) = (q.len(), factors);
        let (m, x, r, p) = (if DIAGONAL == 1 { &m[..n] } else { q }, &mut x[..n], &mut r[..n], &mut p[..n]);
        for l in 0..n {
            let next = r[l] - alpha * q[l];
            let z = if DIAGONAL == 1 { m[l] * next } else { next };
            x[l] = x[l] + alpha * p[l];
            r[l] = next;
            p[l] = z + beta * p[l];
        }
    }
}

/// The part of [`CgOps::cg_product`] that makes the stopping test and writes the norm of `count` chunks.
pub(in crate::backend) fn test<T: Real>(
    run: Run<'_>,
    count: usize,
    diagonal: bool,
    state: &mut SolveState,
) -> Result<()> {
    let state = &mut state.host()?;
    summing!(run, T, cg_test(count, diagonal, state));
    Ok(())
}

impl<T: Real> CgOps<T> for Host {
    fn cg_direction(
        &self,
        run: Run<'_>,
        _: usize,
        m: &Memory<T>,
        r: &Memory<T>,
        p: &mut Memory<T>,
        state: &mut SolveState,
    ) -> Result<()> {
        let (m, r, p, state) = (m.host()?, r.host()?, p.host_mut()?, &mut state.host()?);
        summing!(run, T, cg_direction(m, r, p, state));
        Ok(())
    }

    fn cg_product(
        &self,
        run: Run<'_>,
        a: &Stored<T>,
        vectors: CgVectors<'_, T>,
        state: &mut SolveState,
    ) -> Result<()> {
        let CgVectors { m, p, q, .. } = vectors;
        let m = m.map(Memory::host).transpose()?;
        let (a, p, q, state) = (a.host()?, p.host()?, q.host_mut()?, &mut state.host()?);
        summing!(run, T, cg_product(&a, m, p, q, state));
        Ok(())
    }

    fn cg_update(&self, run: Run<'_>, n: usize, vectors: CgVectors<'_, T>, state: &mut SolveState) -> Result<()> {
        let CgVectors { m, x, r, p, q } = vectors;
        let m = m.map(Memory::host).transpose()?;
        let (q, updated) = (q.host()?, [x.host_mut()?, r.host_mut()?, p.host_mut()?]);
        let state = &mut state.host()?;
        summing!(run, T, cg_update(n, m, q, updated, state));
        Ok(())
    }
}
