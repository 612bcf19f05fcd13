//! Slices of counts, a block at a time: as many as the memory of this machine takes.

use std::ops::Range;
use std::path::Path;

use common::{option, reading_bar};
use residuum::imaging::{CountFiles, Counts, Geometry, Integrals};
use residuum::{Device, Result};

use crate::options::Options;

/// Bytes of a reading, as a count and as a line integral.
const BYTES: usize = 12;
/// Images of a batch; blocks are multiples of it where they can be.
const BATCH: usize = 4;

/// Slices of a file of counts that are still to be read.
pub(crate) struct Blocks {
    files: CountFiles,
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
        };
        let [angles, rows, pixels] = files.shape()?;
        let slices = files.slices.clone().unwrap_or(0..rows);
        let at_once = match options.at_once {
            // Refused with the numbers that were given.
            _ if slices.end > rows => slices.len(),
            Some(0) => return Err(option("at-once", "0 slices are none")),
            Some(count) => count,
            // Half of the memory, since pictures want some as well.
            None => match Device::host().info().memory / 2 {
                0 => slices.len(),
                half => {
                    let fit = half / (angles.saturating_mul(pixels).saturating_mul(BYTES + size)) as u64;
                    let fit = usize::try_from(fit).unwrap_or(usize::MAX);
                    if fit > BATCH { fit / BATCH * BATCH } else { fit }
                }
            },
        };
        Ok(Self {
            files,
            geometry: options.geometry()?,
            named_angles: options.arc.is_some() || options.theta.is_some() || options.geometry_file().is_some(),
            slices,
            at_once: at_once.max(1),
            quiet: options.json,
        })
    }

    /// Number of slices that are left.
    pub(crate) fn left(&self) -> usize {
        self.slices.len()
    }

    /// Slices of a block.
    pub(crate) fn at_once(&self) -> usize {
        self.at_once
    }

    /// Line integrals of the slice in the middle of those that are left, which most likely shows the object.
    pub(crate) fn middle(&self) -> Result<Integrals> {
        let middle = self.slices.start + self.slices.len() / 2;
        self.integrals(middle..middle + 1)
    }

    /// Line integrals of the next block.
    pub(crate) fn next(&mut self) -> Result<Integrals> {
        let end = self.slices.end.min(self.slices.start.saturating_add(self.at_once));
        let block = self.slices.start..end;
        let integrals = self.integrals(block)?;
        self.slices.start = end;
        // A bar of the solve is there from now on.
        self.quiet = true;
        Ok(integrals)
    }

    fn integrals(&self, slices: Range<usize>) -> Result<Integrals> {
        let bar = reading_bar(self.quiet);
        let files = CountFiles { slices: Some(slices), ..self.files.clone() };
        let mut counts = Counts::read(&files, &mut |done, of| {
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
