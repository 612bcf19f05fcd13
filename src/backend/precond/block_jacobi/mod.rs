//! Products with dense blocks along the diagonal.

mod opencl;

pub(in crate::backend) use opencl::FILES;

use crate::backend::Host;
use crate::backend::run::Run;
use crate::backend::sums::summing;
use crate::error::Result;
use crate::memory::Memory;
use crate::number::{Accumulator, Real};
use crate::threads;

/// Dense blocks of `block` consecutive rows; the last may have fewer.
#[derive(Debug)]
pub(crate) struct Blocks<T> {
    pub(crate) rows: usize,
    pub(crate) block: usize,
    /// Entry `k` of row `i` of its block, at `k * rows + i`.
    pub(crate) entries: Memory<T>,
}

/// Products with blocks.
pub(crate) trait BlockJacobiOps<T: Real>: Send + Sync {
    /// `z = M x`.
    fn block_jacobi(&self, run: Run<'_>, blocks: &Blocks<T>, x: &Memory<T>, z: &mut Memory<T>) -> Result<()>;
}

/// `block_jacobi` of `cl/precond/block_jacobi.cl`.
fn block_jacobi<T: Real, A: Accumulator<T>>([rows, block]: [usize; 2], entries: &[T], x: &[T], z: &mut [T]) {
    threads::each(z, threads::LEAST, |i, z| {
        let begin = i - i % block;
        let mut sum = A::default();
        for k in 0..block.min(rows - begin) {
            sum = sum.add(A::product(entries[k * rows + i], x[begin + k]));
        }
        *z = sum.to_real();
    });
}

impl<T: Real> BlockJacobiOps<T> for Host {
    fn block_jacobi(&self, run: Run<'_>, blocks: &Blocks<T>, x: &Memory<T>, z: &mut Memory<T>) -> Result<()> {
        let (shape, entries) = ([blocks.rows, blocks.block], blocks.entries.host()?);
        let (x, z) = (x.host()?, z.host_mut()?);
        summing!(run, T, block_jacobi(shape, entries, x, z));
        Ok(())
    }
}
