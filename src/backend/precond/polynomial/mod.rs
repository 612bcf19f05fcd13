//! Steps of polynomials in a stored matrix.

mod opencl;

pub(in crate::backend) use opencl::FILES;

use crate::backend::Host;
use crate::backend::linear::product::{HostMatrix, Stored, chunk_product};
use crate::backend::run::Run;
use crate::backend::sums::summing;
use crate::error::Result;
use crate::memory::Memory;
use crate::number::{Accumulator, Real};
use crate::reduction::Chunks;
use crate::threads::{self, ChunksMut};

/// Vectors that a step reads.
#[derive(Clone, Copy)]
pub(crate) struct Given<'v, T> {
    pub(crate) z: &'v Memory<T>,
    pub(crate) b: &'v Memory<T>,
    /// A diagonal.
    pub(crate) m: &'v Memory<T>,
}

/// Steps of polynomials.
pub(crate) trait PolynomialOps<T: Real>: Send + Sync {
    /// `before = z + keep (z - before) + step m (b - A z)`, element by element, with `keep` and `step` in `factors`; `w` gets `b - A z`.
    fn polynomial_step(
        &self,
        run: Run<'_>,
        a: &Stored<T>,
        factors: [T; 2],
        given: Given<'_, T>,
        before: &mut Memory<T>,
        w: &mut Memory<T>,
    ) -> Result<()>;
}

/// `polynomial_step` of `cl/precond/polynomial.cl`.
fn polynomial_step<T: Real, A: Accumulator<T>>(
    a: &HostMatrix<'_, T>,
    [keep, step]: [T; 2],
    [z, b, m]: [&[T]; 3],
    before: &mut [T],
    w: &mut [T],
) {
    let chunks = Chunks::of(a.rows);
    threads::each((ChunksMut(w, chunks.chunk), ChunksMut(before, chunks.chunk)), 1, |g, (w, before)| {
        let rows = chunks.range(g);
        let difference = |i: usize, _: usize, sum: A| A::from_real(b[i]).sub(sum).to_real();
        chunk_product(a, 1, rows.clone(), z, w, difference);
        for ((i, before), w) in rows.zip(before).zip(w) {
            let kept = A::product(keep, z[i] - *before);
            let stepped = A::product(step, m[i]).mul(A::from_real(*w));
            *before = A::from_real(z[i]).add(kept.add(stepped)).to_real();
        }
    });
}

impl<T: Real> PolynomialOps<T> for Host {
    fn polynomial_step(
        &self,
        run: Run<'_>,
        a: &Stored<T>,
        factors: [T; 2],
        given: Given<'_, T>,
        before: &mut Memory<T>,
        w: &mut Memory<T>,
    ) -> Result<()> {
        let (a, vectors) = (a.host()?, [given.z.host()?, given.b.host()?, given.m.host()?]);
        let (before, w) = (before.host_mut()?, w.host_mut()?);
        summing!(run, T, polynomial_step(&a, factors, vectors, before, w));
        Ok(())
    }
}
