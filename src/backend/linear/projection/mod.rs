//! Removal of directions from a vector.

mod opencl;

pub(in crate::backend) use opencl::FILES;

use crate::backend::Host;
use crate::backend::run::Run;
use crate::backend::sums::{chunk_sums, column_dot, summing, total};
use crate::error::Result;
use crate::memory::Memory;
use crate::number::{Accumulator, Real, Sum};
use crate::reduction::Chunks;
use crate::threads;

/// Directions to remove, and what was removed.
pub(crate) struct Directions<'v, T> {
    /// The direction of this launch; ones if there is none.
    pub(crate) z: Option<&'v Memory<T>>,
    /// A vector of numbers, whatever they are.
    pub(crate) any: &'v Memory<T>,
    /// `1 / z.z` of each direction.
    pub(crate) inverse: &'v Memory<Sum>,
    /// Number of this direction.
    pub(crate) place: usize,
    /// Chunk sums.
    pub(crate) sums: &'v mut Memory<Sum>,
    /// `z.x` of each direction.
    pub(crate) removed: &'v mut Memory<Sum>,
}

/// Removal of directions.
pub(crate) trait ProjectionOps<T: Real>: Send + Sync {
    /// `x -= (z.x / z.z) z` for vectors of `n` elements.
    fn remove_component(&self, run: Run<'_>, n: usize, along: Directions<'_, T>, x: &mut Memory<T>) -> Result<()>;
}

/// Both kernels of `cl/linear/projection.cl`. Returns `z.x`.
fn remove_component<T: Real, A: Accumulator<T>>(chunks: Chunks, z: Option<&[T]>, inverse: Sum, x: &mut [T]) -> Sum {
    let dot = |_, g: usize| match z {
        Some(z) => column_dot::<T, A>(chunks.lanes, chunks.range(g), [1, 0], z, x),
        None => {
            let [sum] = chunk_sums(chunks.lanes, [&x[chunks.range(g)]], |[x]| [A::from_real(x)]);
            sum
        }
    };
    let share = total::<T, A>(&threads::numbers(0..chunks.count, 4, dot));
    let factor = share.mul(A::from_bits(inverse.0));
    threads::each(threads::ChunksMut(x, chunks.chunk), 1, |g, x| match z {
        Some(z) => {
            for (x, z) in x.iter_mut().zip(&z[chunks.range(g)]) {
                *x = A::from_real(*x).sub(factor.mul(A::from_real(*z))).to_real();
            }
        }
        None => x.iter_mut().for_each(|x| *x = A::from_real(*x).sub(factor).to_real()),
    });
    Sum(share.to_bits())
}

impl<T: Real> ProjectionOps<T> for Host {
    fn remove_component(&self, run: Run<'_>, n: usize, along: Directions<'_, T>, x: &mut Memory<T>) -> Result<()> {
        let z = along.z.map(Memory::host).transpose()?;
        let (inverse, x) = (along.inverse.host()?[along.place], x.host_mut()?);
        let removed = summing!(run, T, remove_component(Chunks::of(n), z, inverse, &mut x[..n]));
        along.removed.host_mut()?[along.place] = removed;
        Ok(())
    }
}
