//! Sweeps over factors on a device: `cl/precond/factor_sweep.cl`.

use super::{CLASSES, FactorSweepOps, Places, members};
use crate::backend::OpenCl;
use crate::backend::run::Run;
use crate::error::Result;
use crate::kernels::kernels;
use crate::memory::Memory;
use crate::number::Real;
use crate::ocl::File;

kernels! {
    file precond/factor_sweep, after [common];
    options { cholesky: u32 => CHOLESKY, classes: usize => CLASSES }
    /// The rows of one class, of those of earlier classes and of the sweep before.
    kernel factor_sweep<T> given(entries: usize) (kind: uint, count: uint, span: uint, offsets: in_uint[diagonal.len() + 1],
        indices: in_uint[entries], diagonal: in_uint[count], columns: in_uint[diagonal.len() + 1], members: in_uint[entries],
        places: in_uint[entries], a: in_real[entries], before: in_real[entries], after: out_real[entries]);
}

pub(in crate::backend) static FILES: &[&File] = &[&factor_sweep::FILE];

impl<T: Real> FactorSweepOps<T> for OpenCl {
    fn factor_sweep(
        &self,
        run: Run<'_>,
        places: &Places<T>,
        class: usize,
        before: &Memory<T>,
        after: &mut Memory<T>,
    ) -> Result<()> {
        let count = members(places.diagonal.len(), class);
        if count == 0 {
            return Ok(());
        }
        let (on, cholesky) = (&self.context, u32::from(places.columns.is_none()));
        let (common, groups, span) = self.without_barriers::<T>(run, count);
        let kernel = self.kernel("factor_sweep", common, cholesky, || {
            factor_sweep::factor_sweep::prepare(on, common, &factor_sweep::Options { cholesky, classes: CLASSES })
        })?;
        let Places { offsets, indices, diagonal, a, .. } = places;
        let [columns, rows, at] = match &places.columns {
            None => [offsets, indices, indices],
            Some([columns, rows, at]) => [columns, rows, at],
        };
        let args = factor_sweep::factor_sweep::Args {
            entries: indices.len(),
            kind: class,
            count,
            span,
            offsets: offsets.buffer(on)?,
            indices: indices.buffer(on)?,
            diagonal: diagonal.buffer(on)?,
            columns: columns.buffer(on)?,
            members: rows.buffer(on)?,
            places: at.buffer(on)?,
            a: a.buffer(on)?,
            before: before.buffer(on)?,
            after: after.buffer_mut(on)?,
        };
        factor_sweep::factor_sweep::launch(&kernel, groups, args)
    }
}
