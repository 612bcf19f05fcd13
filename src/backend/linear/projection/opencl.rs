//! Removal of directions on a device: `cl/linear/projection.cl`.

use super::{Directions, ProjectionOps};
use crate::backend::OpenCl;
use crate::backend::run::Run;
use crate::error::Result;
use crate::kernels::kernels;
use crate::memory::Memory;
use crate::number::Real;
use crate::ocl::File;
use crate::reduction::Chunks;
use crate::tuning::Family;

kernels! {
    file linear/projection, after [common, fold];
    options { constant: u32 => CONSTANT }
    /// Chunk sums of `z.x`.
    kernel component_sums<T> given(words: usize)(n: uint, chunk: uint, groups: uint, per_group: uint, z: in_real[words], x: in_real[n],
        sums: out_sum[groups]);
    /// `x -= (s inverse) z`.
    kernel remove_component<T> given(words: usize)(n: uint, chunk: uint, groups: uint, per_group: uint, place: uint, inverse: in_sum[place + 1],
        sums: in_sum[groups], z: in_real[words], x: out_real[n], removed: out_sum[place + 1]);
}

pub(in crate::backend) static FILES: &[&File] = &[&projection::FILE];

impl<T: Real> ProjectionOps<T> for OpenCl {
    fn remove_component(&self, run: Run<'_>, n: usize, along: Directions<'_, T>, x: &mut Memory<T>) -> Result<()> {
        use projection::{component_sums, remove_component};
        let (chunks, on) = (Chunks::of(n), &self.context);
        let found = self.plain::<T>(run, Family::CgUpdate, chunks);
        let (work_groups, per_group) = found.share(chunks, self.units());
        let common = self.common::<T>(run, found.work_group, chunks.lanes);
        let constant = u32::from(along.z.is_none());
        let options = projection::Options { constant };
        let over_chunks =
            self.kernel("component_sums", common, constant, || component_sums::prepare(on, common, &options))?;
        let removal =
            self.kernel("remove_component", common, constant, || remove_component::prepare(on, common, &options))?;
        let (chunk, groups) = (chunks.chunk, chunks.count);
        // Nothing is read of a z that is constant: any buffer will do.
        let (z, words) = match along.z {
            Some(z) => (z, n),
            None => (along.any, 0),
        };
        let z = z.buffer(on)?;
        let args = component_sums::Args {
            words,
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
            words,
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
