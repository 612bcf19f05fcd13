//! Filtered back-projection: the sum of projections along their rays, pixel by pixel, as `cl/tomography/fbp.cl` has it.

mod host;
mod opencl;

#[cfg(test)]
pub(in crate::backend) use opencl::FILES;

use crate::backend::run::{PlanKey, Run};
use crate::error::Result;
use crate::memory::{Memory, Place, Plans};
use crate::number::Real;

/// Numbers of a projection in [`Views::words`], and their places: names of `cl/tomography/fbp.cl`.
pub(crate) const VIEW_WORDS: usize = 5;
pub(crate) const MIDDLE: usize = 0;
pub(crate) const RIGHT: usize = 1;
pub(crate) const UP: usize = 2;
pub(crate) const RIGHT_OFF: usize = 3;
pub(crate) const UP_OFF: usize = 4;

/// Projections that pixels are seen in, in the memory of one back end.
#[derive(Debug)]
pub(crate) struct Views<T> {
    /// Side of the image.
    pub(crate) side: usize,
    /// Pixels of the detector.
    pub(crate) pixels: usize,
    pub(crate) angles: usize,
    /// Rays come from a point.
    pub(crate) fan: bool,
    /// [`VIEW_WORDS`] for each projection.
    words: Memory<T>,
    plans: Plans<PlanKey>,
}

impl<T: Real> Views<T> {
    pub(crate) fn new(place: &Place, [side, pixels]: [usize; 2], fan: bool, words: Vec<T>) -> Result<Self> {
        let angles = words.len() / VIEW_WORDS;
        Ok(Self { side, pixels, angles, fan, words: place.take(words)?, plans: Plans::default() })
    }

    /// Length of the filtered projections: a number behind each row.
    pub(crate) fn filtered(&self) -> usize {
        self.angles * (self.pixels + 1)
    }
}

/// Sums of filtered projections.
pub(crate) trait FbpOps<T: Real>: Send + Sync {
    /// `x` = for each pixel, the sum of what the projections hold where its rays meet the detector, interpolated linearly; 0 beside it.
    fn add_views(&self, run: Run<'_>, views: &Views<T>, filtered: &Memory<T>, x: &mut Memory<T>) -> Result<()>;
}
