//! Removal of directions on a device: `cl/projection.cl`.

use super::{Directions, ProjectionOps};
use crate::backend::{OpenCl, Run};
use crate::error::Result;
use crate::kernels::kernels;
use crate::memory::Memory;
use crate::number::Real;
use crate::ocl::File;
use crate::reduction::Chunks;
use crate::tuning::Family;

kernels! {
    file projection, after [common, fold];
    /// Chunk sums of `z.x`.
    kernel component_sums<T>(n: uint, chunk: uint, groups: uint, per_group: uint, z: in_real[n], x: in_real[n],
        sums: out_sum[groups]);
    /// `x -= (s inverse) z`.
    kernel remove_component<T>(n: uint, chunk: uint, groups: uint, per_group: uint, place: uint, inverse: in_sum[place + 1],
        sums: in_sum[groups], z: in_real[n], x: out_real[n], removed: out_sum[place + 1]);
}

pub(in crate::backend) static FILES: &[&File] = &[&projection::FILE];

impl<T: Real> ProjectionOps<T> for OpenCl {
    fn remove_component(&self, run: Run<'_>, n: usize, along: Directions<'_, T>, x: &mut Memory<T>) -> Result<()> {
        use projection::{component_sums, remove_component};
        let (chunks, on) = (Chunks::of(n), &self.context);
        let found = self.plain::<T>(run, Family::CgUpdate, chunks);
        let (work_groups, per_group) = found.share(chunks, self.units());
        let common = self.common::<T>(run, found.work_group, chunks.lanes);
        let options = projection::Options {};
        let over_chunks =
            self.kernel("component_sums", common, 0, || component_sums::prepare(on, common, &options))?;
        let removal =
            self.kernel("remove_component", common, 0, || remove_component::prepare(on, common, &options))?;
        let (chunk, groups, z) = (chunks.chunk, chunks.count, along.z.buffer(on)?);
        let args = component_sums::Args {
            n,
            chunk,
            groups,
            per_group,
            z,
            x: x.buffer(on)?,
            sums: along.sums.buffer_mut(on)?,
        };
        component_sums::launch(&over_chunks, work_groups, args)?;
        let args = remove_component::Args {
            n,
            chunk,
            groups,
            per_group,
            place: along.place,
            inverse: along.inverse.buffer(on)?,
            sums: along.sums.buffer(on)?,
            z,
            x: x.buffer_mut(on)?,
            removed: along.removed.buffer_mut(on)?,
        };
        remove_component::launch(&removal, work_groups, args)
    }
}
