//! Products of finite elements on a device: `cl/elements.cl` and `cl/element_sums.cl`.

use super::{Batch, ElementOps, Sums};
use crate::backend::{OpenCl, Run};
use crate::device_info::DeviceKind;
use crate::error::Result;
use crate::kernels::kernels;
use crate::memory::Memory;
use crate::number::Real;
use crate::ocl::File;
use crate::reduction::Chunks;
use crate::tuning::Family;

kernels! {
    file elements, after [common];
    options { points: usize => POINTS, mapped: bool => MAPPED, wide: usize => WIDE, sets: usize => SETS }
    /// Products of the cells of a batch.
    kernel apply_elements<T> given(points: usize, geometries: usize, hanging: usize)
        (count: uint, start: uint, batches: uint, free: uint, ids: in_uint[count * points.pow(3)], tables: in_real[points * points],
        geometry: in_real[geometries], x: in_real[free], hung: in_real[hanging], parts: out_real[start + count * points.pow(3)],
        y: out_real[free]);
}

kernels! {
    file element_sums, after [common];
    options { shared: bool => SHARED, combined: bool => COMBINED }
    /// Sums of parts, and combinations.
    kernel sum_elements<T> given(total: usize, terms: usize)
        (n: uint, span: uint, offsets: in_uint, places: in_uint, parts: in_real[total], rows: in_uint, columns: in_uint[terms],
        factors: in_real[terms], values: in_real[1], to: out_real[n]);
}

pub(in crate::backend) static FILES: &[&File] = &[&elements::FILE, &element_sums::FILE];

/// Cells that a group works on at once.
#[derive(Clone, Copy)]
struct Share {
    /// Cells of an item.
    wide: usize,
    sets: usize,
    /// Batches of `wide * sets` cells.
    batches: usize,
}

impl OpenCl {
    /// Shares out the cells of a batch among groups of `work_group` items.
    fn share_cells<T: Real>(&self, batch: &Batch<T>, work_group: usize) -> Share {
        let Batch { points, mapped, count, .. } = *batch;
        let info = self.context.info();
        let buffers = if mapped { 3 } else { 2 };
        let bytes = buffers * points * points * (points | 1) * T::PRECISION.bytes();
        let fits = |cells: usize, part: u64| (cells * bytes) as u64 <= info.local_memory / part;
        if work_group == 1 || info.kind == DeviceKind::Cpu {
            // An item runs over cells that lie interleaved, which a vector register holds.
            let wide = if fits(8, 2) { 8 } else { 1 };
            let batches = count.div_ceil(wide).div_ceil(16 * self.units()).clamp(1, 64);
            return Share { wide, sets: 1, batches };
        }
        // Cells for all items, as long as some groups have room on a unit.
        let most = work_group / (points * points);
        let sets = (1..=most.max(1)).rev().find(|sets| fits(*sets, 3)).unwrap_or(1);
        Share { wide: 1, sets, batches: 1 }
    }
}

impl<T: Real> ElementOps<T> for OpenCl {
    fn apply_elements(
        &self,
        run: Run<'_>,
        batch: &Batch<T>,
        free: usize,
        [x, hung]: [&Memory<T>; 2],
        parts: &mut Memory<T>,
        y: &mut Memory<T>,
    ) -> Result<()> {
        use elements::apply_elements::{Args, launch, prepare};
        let Batch { points, count, start, mapped, .. } = *batch;
        let on = &self.context;
        let found = self.plain::<T>(run, Family::Vector, Chunks::of(count * points * points));
        let common = self.common::<T>(run, found.work_group, 1);
        let Share { wide, sets, batches } = self.share_cells(batch, common.work_group);
        let options = elements::Options { points, mapped, wide, sets };
        let part = (points + 16 * usize::from(mapped) + 32 * wide) as u32;
        let kernel = self.kernel("apply_elements", common, part, || prepare(on, common, &options))?;
        let args = Args {
            points,
            geometries: count * if mapped { 6 * points.pow(3) } else { 3 },
            hanging: hung.len(),
            count,
            start,
            batches,
            free,
            ids: batch.ids.buffer(on)?,
            tables: batch.tables.buffer(on)?,
            geometry: batch.geometry.buffer(on)?,
            x: x.buffer(on)?,
            hung: hung.buffer(on)?,
            parts: parts.buffer_mut(on)?,
            y: y.buffer_mut(on)?,
        };
        launch(&kernel, count.div_ceil(wide * sets * batches), args)
    }

    fn sum_elements(
        &self,
        run: Run<'_>,
        sums: &Sums<T>,
        parts: &Memory<T>,
        values: &Memory<T>,
        to: &mut Memory<T>,
    ) -> Result<()> {
        use element_sums::sum_elements::{Args, launch, prepare};
        let (on, n) = (&self.context, sums.rows);
        let (common, groups, span) = self.without_barriers::<T>(run, n);
        let options = element_sums::Options { shared: sums.shared.is_some(), combined: sums.combined.is_some() };
        let part = u32::from(options.shared) + 2 * u32::from(options.combined);
        let kernel = self.kernel("sum_elements", common, part, || prepare(on, common, &options))?;
        let none = self.no_words()?;
        let (offsets, places) = match &sums.shared {
            Some([offsets, places]) => (offsets.buffer(on)?, places.buffer(on)?),
            None => (&*none, &*none),
        };
        let (rows, columns, factors, terms) = match &sums.combined {
            Some(([rows, columns], factors)) => {
                (rows.buffer(on)?, columns.buffer(on)?, factors.buffer(on)?, factors.len())
            }
            None => (&*none, &*none, parts.buffer(on)?, 0),
        };
        let args = Args {
            total: usize::from(options.shared),
            terms,
            n,
            span,
            offsets,
            places,
            parts: parts.buffer(on)?,
            rows,
            columns,
            factors,
            values: values.buffer(on)?,
            to: to.buffer_mut(on)?,
        };
        launch(&kernel, groups, args)
    }
}
