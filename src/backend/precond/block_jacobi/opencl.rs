//! Products with blocks on a device: `cl/precond/block_jacobi.cl`.

use super::{BlockJacobiOps, Blocks};
use crate::backend::OpenCl;
use crate::backend::run::Run;
use crate::error::Result;
use crate::kernels::kernels;
use crate::memory::Memory;
use crate::number::Real;
use crate::ocl::File;

kernels! {
    file precond/block_jacobi, after [common];
    options { block: usize => BLOCK }
    /// `z = M x`.
    kernel block_jacobi<T> given(block: usize)
        (n: uint, span: uint, inverses: in_real[block * n], x: in_real[n], z: out_real[n]);
}

pub(in crate::backend) static FILES: &[&File] = &[&block_jacobi::FILE];

impl<T: Real> BlockJacobiOps<T> for OpenCl {
    fn block_jacobi(&self, run: Run<'_>, blocks: &Blocks<T>, x: &Memory<T>, z: &mut Memory<T>) -> Result<()> {
        let (on, block) = (&self.context, blocks.block);
        let (common, groups, span) = self.without_barriers::<T>(run, blocks.rows);
        let kernel = self.kernel("block_jacobi", common, block as u32, || {
            block_jacobi::block_jacobi::prepare(on, common, &block_jacobi::Options { block })
        })?;
        let args = block_jacobi::block_jacobi::Args {
            block,
            n: blocks.rows,
            span,
            inverses: blocks.entries.buffer(on)?,
            x: x.buffer(on)?,
            z: z.buffer_mut(on)?,
        };
        block_jacobi::block_jacobi::launch(&kernel, groups, args)
    }
}
