//! A matrix laid out as the kernels read it: three arrays and a few numbers, whatever the format.
//!
//! The top of `cl/linear/format.cl` says what the arrays of each format hold. Places without an entry hold NaN, which no
//! matrix holds, so that padding is left out of sums rather than multiplied by zero.

use super::arrangement::{Arrangement, Kind};
use super::format::Format;
use super::sample::Sample;
use crate::number::Real;
use crate::sparse::Csr;

/// Width of row offsets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Offsets {
    /// 32 bits, or 64 if the number of entries needs them.
    #[default]
    Auto,
    /// 64 bits always.
    Wide,
}

impl Offsets {
    /// Tells if so many entries take 64 bits.
    pub(crate) fn are_wide(self, nnz: usize) -> bool {
        self == Self::Wide || nnz > u32::MAX as usize
    }
}

/// A matrix as three arrays.
#[derive(Clone, Debug)]
pub(crate) struct Layout<T> {
    /// The format with its parameters filled in.
    pub(crate) format: Format,
    pub(crate) arrangement: Arrangement,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) pointers: Vec<u32>,
    pub(crate) indices: Vec<u32>,
    pub(crate) values: Vec<T>,
    /// Entries with their padding.
    pub(crate) places: usize,
    pub(crate) stride: usize,
    /// Rows of more than [`SHORT_ROW`], and of more than [`MIDDLE_ROW`] entries in [`Kind::Adaptive`].
    pub(crate) longer: [usize; 2],
    /// Entries of the longest row; 0 if nobody counted.
    pub(crate) longest: usize,
    /// Why this format, in words and numbers.
    pub(crate) why: String,
    /// Some of its rows, if it is for a device.
    pub(crate) sample: Option<Sample<T>>,
}

/// Lanes that share a row of `mean` entries: a row in few steps, by no more lanes than a warp has,
/// whose sums need no barrier; one lane if rows are short.
pub(crate) fn lanes_for(mean: f64) -> usize {
    [(8.0, 1), (16.0, 4), (32.0, 8), (64.0, 16)]
        .into_iter()
        .find(|(below, _)| mean < *below)
        .map_or(32, |(_, lanes)| lanes)
}

impl<T: Real> Layout<T> {
    pub(super) fn of(a: &Csr<T>, format: Format, kind: Kind) -> Self {
        Self {
            format,
            arrangement: Arrangement::of(kind),
            rows: a.rows(),
            cols: a.cols(),
            pointers: Vec::new(),
            indices: Vec::new(),
            values: Vec::new(),
            places: 0,
            stride: a.rows(),
            longer: [0; 2],
            longest: 0,
            why: String::new(),
            sample: None,
        }
    }

    /// Pointers of the transposed of [`Kind::Diagonals`].
    pub(crate) fn shifted_pointers(&self) -> Vec<u32> {
        let opposite = self.pointers[2..].iter().rev().map(|offset| offset.wrapping_neg());
        [self.pointers[0], self.rows as u32].into_iter().chain(opposite).collect()
    }

    /// Bytes of the arrays that a product reads.
    pub(crate) fn read_bytes(&self) -> u64 {
        // The inverse order of sorted rows serves the host alone.
        let unread = if self.arrangement.kind == Kind::Sorted { 4 * self.rows as u64 } else { 0 };
        self.buffers().iter().map(|part| part.1).sum::<u64>() - unread
    }

    /// The arrays and their bytes: what a device must hold.
    pub(crate) fn buffers(&self) -> [(&'static str, u64); 3] {
        [
            ("matrix row pointers", self.pointers.len() as u64 * 4),
            ("matrix columns", self.indices.len() as u64 * 4),
            ("matrix values", self.values.len() as u64 * T::PRECISION.bytes() as u64),
        ]
    }
}

/// Value of a place without an entry.
pub(super) fn padding<T: Real>() -> T {
    T::from_f64(f64::NAN)
}

/// Offsets as the kernels read them: one word each, or two.
pub(super) fn words(offsets: impl Iterator<Item = usize>, wide: bool, into: &mut Vec<u32>) {
    for offset in offsets {
        if wide {
            let bytes = (offset as u64).to_ne_bytes();
            into.extend(bytes.chunks_exact(4).map(|w| u32::from_ne_bytes([w[0], w[1], w[2], w[3]])));
        } else {
            into.push(offset as u32);
        }
    }
}

/// Cuts `data` into pieces of these lengths, so that threads can fill them.
pub(crate) fn pieces<E>(mut data: &mut [E], lengths: impl Iterator<Item = usize>) -> Vec<&mut [E]> {
    lengths
        .map(|length| {
            let (piece, rest) = std::mem::take(&mut data).split_at_mut(length);
            data = rest;
            piece
        })
        .collect()
}
