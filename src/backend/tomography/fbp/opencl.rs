//! Filtered back-projection on a device: `cl/tomography/fbp.cl`.

use super::{FbpOps, MIDDLE, RIGHT, RIGHT_OFF, UP, UP_OFF, VIEW_WORDS, Views};
use crate::backend::OpenCl;
use crate::backend::run::Run;
use crate::error::Result;
use crate::kernels::kernels;
use crate::memory::Memory;
use crate::number::Real;
use crate::ocl::Plan;

kernels! {
    file tomography/fbp, after [common];
    constants [{VIEW_WORDS, MIDDLE, RIGHT, UP, RIGHT_OFF, UP_OFF}];
    options { fan: bool => FAN }
    /// The sum of filtered projections.
    kernel add_views<T>(side: uint, pixels: uint, angles: uint, share: uint, views: in_real[VIEW_WORDS * angles],
        filtered: in_real[angles * (pixels + 1)], x: out_real[side * side]);
}

#[cfg(test)]
pub(in crate::backend) static FILES: &[&crate::ocl::File] = &[&fbp::FILE];

impl<T: Real> FbpOps<T> for OpenCl {
    fn add_views(&self, run: Run<'_>, views: &Views<T>, filtered: &Memory<T>, x: &mut Memory<T>) -> Result<()> {
        let on = &self.context;
        let plan = views.plans.get(run.key("add_views", 1, 0), || {
            let (common, groups, share) = self.without_barriers::<T>(run, views.side * views.side);
            let kernel = fbp::add_views::prepare(on, common, &fbp::Options { fan: views.fan })?;
            Ok(Plan { kernel, groups, share })
        })?;
        let args = fbp::add_views::Args {
            side: views.side,
            pixels: views.pixels,
            angles: views.angles,
            share: plan.share,
            views: views.words.buffer(on)?,
            filtered: filtered.buffer(on)?,
            x: x.buffer_mut(on)?,
        };
        fbp::add_views::launch(&plan.kernel, plan.groups, args)
    }
}
