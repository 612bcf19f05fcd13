//! Inverse factors of parts on a device: `cl/precond/parts.cl`.

use super::{Inverses, Parts, PartsOps};
use crate::backend::OpenCl;
use crate::backend::run::Run;
use crate::device_info::DeviceKind;
use crate::error::Result;
use crate::kernels::kernels;
use crate::memory::Place;
use crate::number::{Accumulation, Real, Sum};
use crate::ocl::File;
use crate::reduction::Chunks;
use crate::tuning::Family;

kernels! {
    file precond/parts, after [common];
    /// The inverse factor of each part.
    kernel invert_parts<T> given(rows: usize, places: usize) (parts: uint, starts: in_uint[parts + 1], bases: in_uint[parts + 1],
        offsets: in_uint[rows + 1], indices: in_uint, entries: in_real[indices.len()], triangles: out_real[places],
        sums: out_sum[rows], pivots: out_sum[rows], failed: out_int[1]);
}

pub(in crate::backend) static FILES: &[&File] = &[&parts::FILE];

/// Rows of all parts from which a GPU pays, if there is a part for each compute unit. On an H100 the whole set-up takes 0.46 to 1.1 of
/// the time of 16 threads then, and up to 1.6 of it below.
const LEAST_ROWS: usize = 50_000;
/// Rows of a part up to which it is left to one group, unless that is asked for: more take seconds in one launch.
const MOST_ROWS: usize = 1024;

impl<T: Real> PartsOps<T> for OpenCl {
    fn invert_parts(&self, run: Run<'_>, parts: &Parts<T>, forced: bool) -> Result<Option<Inverses<T>>> {
        let (on, info) = (&self.context, self.context.info());
        let (rows, bases) = (parts.offsets.len() - 1, parts.bases());
        let places = bases.last().copied().unwrap_or(0);
        let bytes = (places * T::PRECISION.bytes()) as u64;
        let fits = bytes <= info.largest_allocation && bytes <= info.memory / 2 && u32::try_from(places).is_ok();
        let many = rows >= LEAST_ROWS && parts.count() >= self.units();
        let many = many && (0..parts.count()).all(|part| parts.rows(part) <= MOST_ROWS);
        let pays = forced || (info.kind == DeviceKind::Gpu && many);
        if !(fits && pays && run.accumulation == Accumulation::Double && places > 0) {
            return Ok(None);
        }
        let place = Place::OpenCl(on.clone());
        let (starts, offsets) = (place.upload(&parts.starts)?, place.upload(&parts.offsets)?);
        let bases = place.take(bases.into_iter().map(|base| base as u32).collect())?;
        let (indices, entries) = (place.upload(&parts.indices)?, place.upload(&parts.entries)?);
        let mut triangles = place.filled(places, T::default())?;
        let mut sums = place.filled(rows, Sum::default())?;
        let mut pivots = place.filled(rows, Sum::default())?;
        let mut failed = place.filled(1, 0)?;
        let found = self.plain::<T>(run, Family::Sweep, Chunks::of(rows));
        let common = self.common::<T>(run, found.work_group, 1);
        let kernel = self.kernel("invert_parts", common, 0, || {
            parts::invert_parts::prepare(on, common, &parts::Options::default())
        })?;
        let args = parts::invert_parts::Args {
            rows,
            places,
            parts: parts.count(),
            starts: starts.buffer(on)?,
            bases: bases.buffer(on)?,
            offsets: offsets.buffer(on)?,
            indices: indices.buffer(on)?,
            entries: entries.buffer(on)?,
            triangles: triangles.buffer_mut(on)?,
            sums: sums.buffer_mut(on)?,
            pivots: pivots.buffer_mut(on)?,
            failed: failed.buffer_mut(on)?,
        };
        parts::invert_parts::launch(&kernel, parts.count(), args)?;
        let mut word = [0];
        failed.read(0, &mut word)?;
        if word != [0] {
            return Ok(None);
        }
        let (mut made, mut found) = (vec![T::default(); places], vec![Sum::default(); rows]);
        triangles.read(0, &mut made)?;
        pivots.read(0, &mut found)?;
        let pivots = found.into_iter().map(|pivot| pivot.value(Accumulation::Double)).collect();
        Ok(Some(Inverses { triangles: made, pivots }))
    }
}
