//! Rays that are traced as they are needed, forwards and backwards: see [`Rays`] for what is computed.

mod host;
mod opencl;
mod tables;

pub(in crate::backend) use opencl::FILES;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use crate::backend::run::{PlanKey, Run};
use crate::error::Result;
use crate::memory::{Memory, Place, Plans};
use crate::number::{Real, Sum};
use tables::Tiles;
pub(crate) use tables::{MOST_PIXELS, MOST_RAYS, ONE, Ray, Rays, images_len};

/// [`Rays`] in the memory of one back end, with what their products are made in.
#[derive(Debug)]
pub(crate) struct StoredRays<T> {
    pub(crate) side: usize,
    pub(crate) pixels: usize,
    pub(crate) angles: usize,
    held: usize,
    /// Number of sheets.
    count: usize,
    words: Memory<u32>,
    lines: Memory<u32>,
    weights: Memory<T>,
    fans: Memory<u32>,
    sheets: Memory<u32>,
    tiles: Tiles,
    /// Angles of all sheets.
    sheet_angles: usize,
    spans: Memory<u32>,
    /// Held by one product at a time, while it is queued. Rays of several subsets of a scan share it.
    scratch: SharedScratch<T>,
    plans: Plans<PlanKey>,
}

/// Memory that every product overwrites.
#[derive(Debug)]
struct Scratch<T> {
    /// Copies of the image that rays read.
    images: Memory<T>,
    /// The sheets that are held at once, pixel by pixel.
    partial: Memory<T>,
    /// Wide sums of the sheets so far, if not all are held at once.
    sums: Memory<Sum>,
}

/// Memory that every product overwrites, in the hands of all rays whose products are made there.
#[derive(Clone, Debug)]
pub(crate) struct SharedScratch<T>(Arc<Mutex<Scratch<T>>>);

impl<T: Real> Scratch<T> {
    /// For rays through one image, of which `held` sheets are held at once at most; `sums` tells if that is not all of some.
    fn new(place: &Place, side: usize, held: usize, sums: bool) -> Result<Self> {
        let pixels = side * side;
        Ok(Self {
            images: place.filled(images_len(side), T::default())?,
            partial: place.filled(pixels * held, T::default())?,
            sums: place.filled(if sums { pixels } else { 1 }, Sum::default())?,
        })
    }
}

impl<T: Real> SharedScratch<T> {
    /// Memory for products with each of `rays`, which pass through images of one size.
    pub(crate) fn new(place: &Place, rays: &[Rays<T>]) -> Result<Self> {
        let side = rays.iter().map(|rays| rays.side).max().unwrap_or(0);
        let held = rays.iter().map(|rays| rays.held).max().unwrap_or(0);
        let sums = rays.iter().any(|rays| rays.held < rays.sheets());
        Ok(Self(Arc::new(Mutex::new(Scratch::new(place, side, held, sums)?))))
    }
}

impl<T: Real> StoredRays<T> {
    /// Products are made in `scratch`.
    pub(crate) fn new(place: &Place, rays: Rays<T>, scratch: &SharedScratch<T>) -> Result<Self> {
        let (side, held, count, sheet_angles) = (rays.side, rays.held, rays.sheets(), rays.sheet_angles());
        Ok(Self {
            side,
            pixels: rays.pixels,
            angles: rays.angles,
            held,
            count,
            words: place.take(rays.words)?,
            lines: place.take(rays.lines)?,
            weights: place.take(rays.weights)?,
            fans: place.take(rays.fans)?,
            sheets: place.take(rays.sheets)?,
            tiles: rays.tiles,
            sheet_angles,
            spans: place.take(rays.spans)?,
            scratch: scratch.clone(),
            plans: Plans::default(),
        })
    }

    /// A copy on the host. Waits.
    pub(crate) fn on_host(&self) -> Result<Self> {
        Ok(Self {
            words: self.words.on_host()?,
            lines: self.lines.on_host()?,
            weights: self.weights.on_host()?,
            fans: self.fans.on_host()?,
            sheets: self.sheets.on_host()?,
            spans: self.spans.on_host()?,
            scratch: SharedScratch(Arc::new(Mutex::new(self.own_scratch()?))),
            plans: Plans::default(),
            ..*self
        })
    }

    /// Launches that spread rays for one product with the transposed: each for as many sheets as are held. One at least, which writes
    /// zeros if no ray meets the image.
    fn rounds(&self) -> usize {
        self.count.div_ceil(self.held).max(1)
    }

    /// Launches of a product and of one with the transposed, in the mean: sheets are added in rounds.
    pub(crate) fn launches(&self) -> usize {
        1 + self.rounds()
    }

    /// Number of rays.
    pub(crate) fn rays(&self) -> usize {
        self.pixels * self.angles
    }

    /// Scratch memory on the host for these rays alone.
    fn own_scratch(&self) -> Result<Scratch<T>> {
        Scratch::new(&Place::Host, self.side, self.held, self.held < self.count)
    }

    /// The scratch memory. Whoever panicked with it left whole arrays.
    fn scratch(&self) -> MutexGuard<'_, Scratch<T>> {
        self.scratch.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `product` with the scratch memory if it is free, else with some of its own. A product on the host must not wait for
    /// another: the thread that waits may be the one that does a part of the other's work.
    fn with_free_scratch(&self, product: impl FnOnce(&mut Scratch<T>) -> Result<()>) -> Result<()> {
        match self.scratch.0.try_lock() {
            Ok(mut scratch) => product(&mut scratch),
            Err(TryLockError::Poisoned(scratch)) => product(&mut scratch.into_inner()),
            Err(TryLockError::WouldBlock) => product(&mut self.own_scratch()?),
        }
    }
}

/// Products with rays for `columns` interleaved vectors, one after another.
pub(crate) trait RayOps<T: Real>: Send + Sync {
    /// `y = A x`, of an image `x`.
    fn project(
        &self,
        run: Run<'_>,
        rays: &StoredRays<T>,
        columns: usize,
        x: &Memory<T>,
        y: &mut Memory<T>,
    ) -> Result<()>;
    /// `x = A'y`.
    fn backproject(
        &self,
        run: Run<'_>,
        rays: &StoredRays<T>,
        columns: usize,
        y: &Memory<T>,
        x: &mut Memory<T>,
    ) -> Result<()>;
}
