//! Slices of counts, a block at a time: as many as the memory of this machine takes.

use std::ops::Range;
use std::path::Path;

use common::reading_bar;
use residuum::imaging::{CountFiles, CountReader, Geometry, Integrals};
use residuum::{Device, Result};

use crate::options::Options;

/// Bytes of a reading, as a count and as a line integral.
const BYTES: usize = 12;
/// Images of a batch; blocks are multiples of it where they can be.
const BATCH: usize = 4;

/// Slices of a file of counts that are still to be read, counted from the first that is wanted.
pub(crate) struct Blocks {
    reader: CountReader,
    geometry: Geometry,
    /// Tells if the angles of the options count more than those of the file.
    named_angles: bool,
    slices: Range<usize>,
    at_once: usize,
    quiet: bool,
}

impl Blocks {
    /// Slices that the options ask for; a reading takes `size` bytes in a solve.
    pub(crate) fn new(options: &Options, path: &Path, size: usize) -> Result<Self> {
        let files = CountFiles {
            projections: path.to_path_buf(),
            flat: options.flat.clone(),
            dark: options.dark.clone(),
            slices: options.slices()?,
            order: options.order,
            data: options.data.clone(),
            theta: options.theta_place(),
            theta_unit: options.theta_unit,
            bad_pixels: options.bad_pixels.clone().unwrap_or_default(),
        };
        let geometry = options.geometry()?;
        let reader = CountReader::open(&files)?;
        let [angles, slices, pixels] = reader.shape();
        let slice = (BYTES + size).saturating_mul(angles).saturating_mul(pixels);
        let at_once = match (options.at_once, Device::host().info().memory / 2) {
            (Some(count), _) => count,
            (None, 0) => slices,
            // Half of the memory, since pictures want some as well.
            (None, half) => {
                let fit = usize::try_from(half / slice.max(1) as u64).unwrap_or(usize::MAX);
                if fit > BATCH { fit / BATCH * BATCH } else { fit }
            }
        };
        Ok(Self {
            reader,
            geometry,
            named_angles: options.names_angles(),
            slices: 0..slices,
            at_once: at_once.max(1),
            quiet: options.json,
        })
    }

    /// Remarks on the files that a user should know.
    pub(crate) fn remarks(&self) -> Vec<String> {
        self.reader.remarks().to_vec()
    }

    /// Number of slices that are left.
    pub(crate) fn left(&self) -> usize {
        self.slices.len()
    }

    /// Tells if neither the file nor the options name the angles.
    pub(crate) fn assumes_angles(&self) -> bool {
        !self.named_angles && !self.reader.has_angles()
    }

    /// Tells if what is left is more than a block.
    pub(crate) fn are_many(&self) -> bool {
        self.slices.len() > self.at_once
    }

    /// Line integrals of the slice in the middle of those that are left.
    pub(crate) fn middle(&mut self) -> Result<Integrals> {
        let middle = self.slices.start + self.slices.len() / 2;
        self.integrals(middle..middle + 1)
    }

    /// Line integrals of the next block.
    pub(crate) fn next(&mut self) -> Result<Integrals> {
        let end = self.slices.end.min(self.slices.start.saturating_add(self.at_once));
        let integrals = self.integrals(self.slices.start..end)?;
        self.slices.start = end;
        // A bar of the solve is there from now on.
        self.quiet = true;
        Ok(integrals)
    }

    fn integrals(&mut self, slices: Range<usize>) -> Result<Integrals> {
        let bar = reading_bar(self.quiet);
        let mut counts = self.reader.read(slices, &mut |done, of| {
            bar.set_length(of);
            bar.set_position(done);
        })?;
        bar.finish_and_clear();
        if self.named_angles {
            counts.angles = None;
        }
        counts.integrals(&self.geometry)
    }
}
