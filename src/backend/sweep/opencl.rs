//! Sweeps on a device: `cl/sweep.cl`.

use std::ops::Range;

use super::{SweepOps, Triangle};
use crate::backend::{OpenCl, Run};
use crate::error::Result;
use crate::kernels::{MatrixOptions, kernels};
use crate::memory::Memory;
use crate::number::Real;
use crate::ocl::{File, Plan};
use crate::reduction::Chunks;
use crate::sparse::{Arrangement, Kind};
use crate::tuning::Family;

kernels! {
    file sweep, after [common, fold, format, row];
    options { matrix: MatrixOptions, operation: u32 => OPERATION }
    /// Levels `first_level .. last_level` of a forward or backward sweep.
    kernel sweep<T>(first_level: uint, last_level: uint, keep: real, bounds: in_uint[last_level + 1], list: in_uint,
        offsets: in_uint[list.len() + 1], indices: in_uint, values: in_real[indices.len()], scale: in_real[list.len()],
        x: in_real[list.len()], z: out_real[list.len()]);
}

pub(in crate::backend) static FILES: &[&File] = &[&sweep::FILE];

/// Compressed rows of one lane.
const MATRIX: MatrixOptions = MatrixOptions::of(Arrangement::of(Kind::Csr), 8);

impl<T: Real> SweepOps<T> for OpenCl {
    fn sweep(
        &self,
        run: Run<'_>,
        triangle: &Triangle<T>,
        levels: Range<usize>,
        widest: usize,
        keep: Option<T>,
        x: &Memory<T>,
        z: &mut Memory<T>,
    ) -> Result<()> {
        let Triangle { bounds, list, offsets, indices, values, scale, plans } = triangle;
        let (on, operation) = (&self.context, u32::from(keep.is_some()));
        // `groups` is the most that share a level, `share` the items of a group.
        let plan = plans.get(run.key("sweep", 1, operation), || {
            let found = self.plain::<T>(run, Family::Sweep, Chunks::of(scale.len()));
            let common = self.common::<T>(run, found.work_group, 1);
            let kernel = sweep::sweep::prepare(on, common, &sweep::Options { matrix: MATRIX, operation })?;
            Ok(Plan { kernel, groups: found.most_groups(self.units()), share: common.work_group })
        })?;
        let groups = if levels.len() > 1 { 1 } else { widest.div_ceil(plan.share).clamp(1, plan.groups) };
        let args = sweep::sweep::Args {
            first_level: levels.start,
            last_level: levels.end,
            keep: keep.unwrap_or_default(),
            bounds: bounds.buffer(on)?,
            list: list.buffer(on)?,
            offsets: offsets.buffer(on)?,
            indices: indices.buffer(on)?,
            values: values.buffer(on)?,
            scale: scale.buffer(on)?,
            x: x.buffer(on)?,
            z: z.buffer_mut(on)?,
        };
        sweep::sweep::launch(&plan.kernel, groups, args)
    }
}
