//! The launches of conjugate gradients on the host.

use super::{CgOps, CgPlaces, CgVectors, blend};
use crate::backend::Host;
use crate::backend::linear::product::Stored;
use crate::backend::script::ScriptOps;
use crate::backend::script::host::{HostScript, recur};
use crate::backend::script::state::{StepCall, StepLaunch};
use crate::backend::sums::{chunk_sums, column_dot, summing};
use crate::backend::widest::widest;
use crate::error::Result;
use crate::memory::Memory;
use crate::number::{Accumulator, Real};
use crate::reduction::Chunks;
use crate::threads::{self, ChunksMut};

/// The program of the call leaves `alpha` and `beta` where its statements have them.
fn cg_update<T: Real, A: Accumulator<T>>(
    call: StepCall,
    places: CgPlaces,
    m: Option<&[T]>,
    q: &[T],
    [x, r, p]: [&mut [T]; 3],
    state: &mut HostScript<'_>,
) {
    let Some(frame) = recur::<T, A>(call, state) else { return };
    // x = 1 x + alpha p, r = 1 r - alpha q, with a preconditioner q = M r, and p = 1 r (or q) + beta p.
    let factors = [1, if m.is_some() { 10 } else { 7 }].map(|k| frame.coefficient(0, k).to_real());
    let chunks = Chunks::of(q.len());
    let (chunk, lanes) = (chunks.chunk, chunks.lanes);
    let vectors = (ChunksMut(x, chunk), ChunksMut(r, chunk), ChunksMut(p, chunk));
    let (rr_sums, rz_sums) = state.sums[places.sums + 2 * chunks.count..].split_at_mut(2 * chunks.count);
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

impl<T: Real> CgOps<T> for Host {
    fn cg_product(
        &self,
        step: StepLaunch<'_>,
        _: CgPlaces,
        a: &Stored<T>,
        (m, p): (Option<&Memory<T>>, &Memory<T>),
        q: &mut Memory<T>,
    ) -> Result<()> {
        self.step_product(step, a, blend(m.is_some()), [p, m.unwrap_or(p), p], q)
    }

    fn cg_update(&self, step: StepLaunch<'_>, places: CgPlaces, _: usize, vectors: CgVectors<'_, T>) -> Result<()> {
        let StepLaunch { run, call, state } = step;
        let CgVectors { m, x, r, p, q } = vectors;
        let m = m.map(Memory::host).transpose()?;
        let (q, updated) = (q.host()?, [x.host_mut()?, r.host_mut()?, p.host_mut()?]);
        let state = &mut state.host()?;
        summing!(run, T, cg_update(call, places, m, q, updated, state));
        Ok(())
    }
}
