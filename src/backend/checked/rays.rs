//! Spot checks of products with rays.

use std::sync::atomic::Ordering;

use super::{Checked, MOST, TIMES, numbers};
use crate::backend::Host;
use crate::backend::run::{Origin, Run};
use crate::backend::tomography::rays::{RayOps, StoredRays, images_len};
use crate::error::Result;
use crate::memory::Memory;
use crate::number::Real;

impl<D: Origin> Checked<D> {
    /// Makes a product with rays by `product`, compares it with what the host makes of the same data by `on_host` if that has to be done.
    fn compare_rays<T: Real>(
        &self,
        (run, transposed): (Run<'_>, bool),
        rays: &StoredRays<T>,
        (columns, x, y): (usize, &Memory<T>, &mut Memory<T>),
        product: impl FnOnce(&mut Memory<T>) -> Result<()>,
        on_host: impl FnOnce(&StoredRays<T>, &Memory<T>, &mut Memory<T>) -> Result<()>,
    ) -> Result<()> {
        let counter = &self.counts.rays[numbers::<T>(run)][usize::from(transposed)];
        let steps = rays.rays().saturating_mul(rays.side * columns).max(images_len(rays.side));
        if steps > MOST
            || counter.load(Ordering::Relaxed) >= TIMES
            || counter.fetch_add(1, Ordering::Relaxed) >= TIMES
        {
            return product(y);
        }
        let mut wanted = y.on_host()?;
        product(y)?;
        on_host(&rays.on_host()?, &x.on_host()?, &mut wanted)?;
        let wrong = self.differing(y, &wanted, self.faint::<T>(run), |number| number.to_f64())?;
        if wrong == 0 {
            return Ok(());
        }
        counter.store(0, Ordering::Relaxed);
        let (all, precision) = (wanted.len(), T::PRECISION);
        self.distrusted(format!(
            "{wrong} of {all} numbers of a product with rays in {precision} are not what the host makes of the same data"
        ))
    }
}

impl<T: Real, D: RayOps<T> + Origin> RayOps<T> for Checked<D> {
    fn project(
        &self,
        run: Run<'_>,
        rays: &StoredRays<T>,
        columns: usize,
        x: &Memory<T>,
        y: &mut Memory<T>,
    ) -> Result<()> {
        let product = |y: &mut Memory<T>| self.device.project(run, rays, columns, x, y);
        let on_host = |rays: &_, x: &_, y: &mut _| Host.project(run, rays, columns, x, y);
        self.compare_rays((run, false), rays, (columns, x, y), product, on_host)
    }

    fn backproject(
        &self,
        run: Run<'_>,
        rays: &StoredRays<T>,
        columns: usize,
        y: &Memory<T>,
        x: &mut Memory<T>,
    ) -> Result<()> {
        let product = |x: &mut Memory<T>| self.device.backproject(run, rays, columns, y, x);
        let on_host = |rays: &_, y: &_, x: &mut _| Host.backproject(run, rays, columns, y, x);
        self.compare_rays((run, true), rays, (columns, y, x), product, on_host)
    }
}
