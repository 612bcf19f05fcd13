//! Rays traced on a device: `cl/tomography/ray_image.cl`, `cl/tomography/ray_trace.cl` and `cl/tomography/ray_spread.cl`.

use super::tables::{BLOCK, FAN_WORDS, RAY_WORDS, SHEET_WORDS, images_len};
use super::{RayOps, StoredRays};
use crate::backend::OpenCl;
use crate::backend::run::Run;
use crate::error::Result;
use crate::kernels::{Common, kernels};
use crate::memory::Memory;
use crate::number::Real;
use crate::ocl::Plan;
use crate::reduction::Chunks;
use crate::tuning::{AccessPattern, Case, Family, LaunchQuery, SizeClass};

kernels! {
    file tomography/ray_image, after [common, rays];
    /// Two copies of one column of an image, with rims.
    kernel copy_image<T>(side: uint, share: uint, columns: uint, column: uint, x: in_real[side * side * columns],
        images: out_real[images_len(side)]);
    /// One column of the sum of sheets.
    kernel add_sheets<T> given(rounds: usize)
        (n: uint, share: uint, columns: uint, column: uint, count: uint, are_first: uint, are_last: uint,
        partial: in_real[count * n], sums: out_sum[if rounds > 1 { n } else { 1 }], x: out_real[n * columns]);
}

kernels! {
    file tomography/ray_trace, after [common, rays];
    constants [{BLOCK}];
    /// One column of `y = A x`.
    kernel trace_rays<T>
        (pixels: uint, angles: uint, share: uint, side: uint, columns: uint, column: uint,
        rays: in_uint[RAY_WORDS * pixels * angles], lines: in_uint[pixels * angles], weights: in_real[pixels * angles],
        images: in_real[images_len(side)], y: out_real[pixels * angles * columns]);
}

kernels! {
    file tomography/ray_spread, after [common, rays];
    options { strip: usize => STRIP, width: usize => WIDTH }
    /// Sheets of one column of `A'y`.
    kernel spread_rays<T> given(held: usize, spanned: usize)
        (side: uint, pixels: uint, angles: uint, first_sheet: uint, columns: uint, column: uint,
        rays: in_uint[RAY_WORDS * pixels * angles], weights: in_real[pixels * angles], fans: in_uint[2 * FAN_WORDS * angles],
        sheets: in_uint[SHEET_WORDS * (first_sheet + held)], spans: in_uint[spanned],
        y: in_real[pixels * angles * columns], partial: out_real[held * side * side]);
}

pub(in crate::backend) static FILES: &[&crate::ocl::File] =
    &[&ray_image::FILE, &ray_trace::FILE, &ray_spread::FILE];

/// Neighbouring rays of an angle that a group of `trace_rays` takes, `BREADTH` of `cl/tomography/ray_trace.cl` if it has as many items.
const NEIGHBOURS: usize = 32;

impl OpenCl {
    /// The kernel of `copy_image` or `add_sheets`, which any group size will do for.
    fn plan_pixels<T: Real>(&self, run: Run<'_>, n: usize, copies: bool) -> Result<Plan> {
        let (common, groups, share) = self.without_barriers::<T>(run, n);
        let prepare = if copies { ray_image::copy_image::prepare } else { ray_image::add_sheets::prepare };
        Ok(Plan { kernel: prepare(&self.context, common, &ray_image::Options {})?, groups, share })
    }

    fn plan_trace<T: Real>(&self, run: Run<'_>, rays: &StoredRays<T>) -> Result<Plan> {
        let n = rays.rays();
        let reading = Some(AccessPattern::Rays);
        let case = Case { family: Family::Product, reading, precision: T::PRECISION, size: SizeClass::of(n) };
        let chunk = Chunks::of(n).chunk;
        let found = self.parameters(run, &LaunchQuery { case, n, chunk, shared: 1, longest: 0, columns: 1 });
        let common = Common { registers: found.registers, ..self.common::<T>(run, found.work_group, 1) };
        let breadth = common.work_group.min(NEIGHBOURS);
        let angles = rays.angles.div_ceil(common.work_group / breadth);
        let kernel = ray_trace::trace_rays::prepare(&self.context, common, &ray_trace::Options {})?;
        Ok(Plan { kernel, groups: rays.pixels.div_ceil(NEIGHBOURS) * angles, share: NEIGHBOURS })
    }

    /// A group for each tile of a sheet; `groups` are those of one sheet.
    fn plan_spread<T: Real>(&self, run: Run<'_>, rays: &StoredRays<T>) -> Result<Plan> {
        let found = self.plain::<T>(run, Family::Backproject, Chunks::of(rays.side * rays.side));
        let common = self.common::<T>(run, found.work_group, 1);
        let options = ray_spread::Options { strip: rays.tiles.lines, width: rays.tiles.width };
        let kernel = ray_spread::spread_rays::prepare(&self.context, common, &options)?;
        Ok(Plan { kernel, groups: rays.tiles.count(), share: 1 })
    }
}

impl<T: Real> RayOps<T> for OpenCl {
    fn project(
        &self,
        run: Run<'_>,
        rays: &StoredRays<T>,
        columns: usize,
        x: &Memory<T>,
        y: &mut Memory<T>,
    ) -> Result<()> {
        let (on, side) = (&self.context, rays.side);
        let key = |kernel| run.key(kernel, 1, 0);
        let copying = rays.plans.get(key("copy_image"), || self.plan_pixels::<T>(run, side * (side + 1), true))?;
        let tracing = rays.plans.get(key("trace_rays"), || self.plan_trace(run, rays))?;
        let mut scratch = rays.scratch();
        for column in 0..columns {
            let args = ray_image::copy_image::Args {
                side,
                share: copying.share,
                columns,
                column,
                x: x.buffer(on)?,
                images: scratch.images.buffer_mut(on)?,
            };
            ray_image::copy_image::launch(&copying.kernel, copying.groups, args)?;
            let args = ray_trace::trace_rays::Args {
                pixels: rays.pixels,
                angles: rays.angles,
                share: tracing.share,
                side,
                columns,
                column,
                rays: rays.words.buffer(on)?,
                lines: rays.lines.buffer(on)?,
                weights: rays.weights.buffer(on)?,
                images: scratch.images.buffer(on)?,
                y: y.buffer_mut(on)?,
            };
            ray_trace::trace_rays::launch(&tracing.kernel, tracing.groups, args)?;
        }
        Ok(())
    }

    fn backproject(
        &self,
        run: Run<'_>,
        rays: &StoredRays<T>,
        columns: usize,
        y: &Memory<T>,
        x: &mut Memory<T>,
    ) -> Result<()> {
        let (on, side, n) = (&self.context, rays.side, rays.side * rays.side);
        let key = |kernel| run.key(kernel, 1, 0);
        let spreading = rays.plans.get(key("spread_rays"), || self.plan_spread(run, rays))?;
        let adding = rays.plans.get(key("add_sheets"), || self.plan_pixels::<T>(run, n, false))?;
        let mut scratch = rays.scratch();
        let rounds = rays.rounds();
        for (column, round) in (0..columns).flat_map(|column| (0..rounds).map(move |round| (column, round))) {
            let first_sheet = round * rays.held;
            let held = rays.held.min(rays.count - first_sheet);
            if held > 0 {
                let args = ray_spread::spread_rays::Args {
                    held,
                    // Every angle of every sheet.
                    spanned: rays.tiles.count() * rays.sheet_angles,
                    side,
                    pixels: rays.pixels,
                    angles: rays.angles,
                    first_sheet,
                    columns,
                    column,
                    rays: rays.words.buffer(on)?,
                    weights: rays.weights.buffer(on)?,
                    fans: rays.fans.buffer(on)?,
                    sheets: rays.sheets.buffer(on)?,
                    spans: rays.spans.buffer(on)?,
                    y: y.buffer(on)?,
                    partial: scratch.partial.buffer_mut(on)?,
                };
                ray_spread::spread_rays::launch(&spreading.kernel, held * spreading.groups, args)?;
            }
            let scratch = &mut *scratch;
            let args = ray_image::add_sheets::Args {
                rounds,
                n,
                share: adding.share,
                columns,
                column,
                count: held,
                are_first: usize::from(round == 0),
                are_last: usize::from(round + 1 == rounds),
                partial: scratch.partial.buffer(on)?,
                sums: scratch.sums.buffer_mut(on)?,
                x: x.buffer_mut(on)?,
            };
            ray_image::add_sheets::launch(&adding.kernel, adding.groups, args)?;
        }
        Ok(())
    }
}
