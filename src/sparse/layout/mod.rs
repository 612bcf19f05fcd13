//! A matrix laid out as the kernels read it: three arrays and a few numbers, whatever the format.
//!
//! The top of `cl/format.cl` says what the arrays of each format hold. Places without an entry hold NaN, which no
//! matrix holds, so that padding is left out of sums rather than multiplied by zero.

mod banded;
mod compressed;
mod packing;
mod padded;
mod places;
mod structured;

pub(crate) use compressed::{LONG_LANES, MIDDLE_LANES, MIDDLE_ROW, SHORT_ROW};
#[cfg(test)]
pub(crate) use packing::CODE_BITS;
pub use packing::Packing;
pub(crate) use packing::{Entries, Packable, Shape, TABLE, offset_at};
pub(crate) use padded::SLICE;
pub(crate) use places::Places;

use super::choice::{Reader, choose};
use super::profile::Profile;
use super::{Csr, Format};
use crate::error::{Error, Result};
use crate::number::{Precision, Real};

/// `FORMAT` of `cl/format.cl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub(crate) enum Kind {
    Csr = 0,
    EllpackR = 1,
    Ellpack = 2,
    Sliced = 3,
    Sorted = 4,
    Diagonals = 5,
    Blocks = 6,
    Dense = 7,
    Hybrid = 8,
    Coordinates = 9,
    Adaptive = 10,
    Stencil = 11,
    /// An operator has computed the product; the result already holds it.
    External = 12,
    /// The transposed of [`Kind::Diagonals`], in its values: diagonal `k` of `A` is diagonal `-k` of `A'`, read at a shifted place
    /// (krueger-westermann-2003, 2).
    Shifted = 13,
    Banded = 14,
}

/// Arrangement of the arrays: the compile-time constants of the kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrangement {
    pub(crate) kind: Kind,
    /// Lanes that share a row: lane `l` adds entries `l, l + lanes, ...`; lanes fold by halving. A power of two up to
    /// 32. What of the format reaches the bits.
    pub(crate) lanes: usize,
    /// Rows and columns of a block of [`Kind::Blocks`]; the number of diagonals of [`Kind::Diagonals`] and [`Kind::Shifted`], or of points
    /// of [`Kind::Stencil`], if loops over them are better unrolled, else 1.
    pub(crate) block: usize,
    /// True if row offsets take 64 bits, or if the grid of a [`Kind::Stencil`] has three dimensions.
    pub(crate) wide: bool,
    pub(crate) entries: Entries,
}

impl Arrangement {
    /// One lane a row, nothing packed.
    pub(crate) const fn of(kind: Kind) -> Self {
        Self { kind, lanes: 1, block: 1, wide: false, entries: Entries::Plain }
    }
}

/// Words before the points of [`Kind::Stencil`], `STENCIL_HEADER` of `cl/format.cl`.
pub(crate) const STENCIL_HEADER: usize = 12;

/// Word of the header that says where the table of rows by kind starts, 0 if there is none; `STENCIL_TABLE` of `cl/format.cl`.
pub(crate) const STENCIL_TABLE: usize = 10;

/// Words of that table before its rows: kinds of x and y, and by how many the inner points of x, y and z are more than their one kind.
/// `TABLE_HEADER` of `cl/format.cl`.
pub(crate) const TABLE_HEADER: usize = 5;

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
}

/// Lanes that share a row of `mean` entries: a row in few steps, by no more lanes than a warp has,
/// whose sums need no barrier; one lane if rows are short.
pub(super) fn lanes_for(mean: f64) -> usize {
    [(8.0, 1), (16.0, 4), (32.0, 8), (64.0, 16)]
        .into_iter()
        .find(|(below, _)| mean < *below)
        .map_or(32, |(_, lanes)| lanes)
}

/// Bytes of a matrix in a format: what a product must read of it. BSR counts as if its blocks were full.
pub(super) fn stored_bytes<T: Real>(a: &Csr<T>, profile: &Profile, format: Format) -> u64 {
    match format {
        Format::Band => banded::stored_bytes(a),
        _ => profile.stored_bytes(format, T::PRECISION),
    }
}

impl<T: Real> Layout<T> {
    /// Lays `a` out in `format`, or in the one that suits `reader`.
    ///
    /// # Errors
    /// [`Error::Option`] for a parameter that is out of range, [`Error::Structure`] when 32-bit positions do not
    /// reach all entries and the format has no wider ones, [`Error::Memory`] when the arrays exceed `limit` bytes:
    /// checked before they are made.
    pub(crate) fn new(
        a: &Csr<T>,
        format: Format,
        offsets: Offsets,
        packable: Packable,
        reader: Reader,
        limit: impl Fn(u64) -> Result<()>,
    ) -> Result<Self> {
        let profile = Profile::of(a);
        let wide = offsets.are_wide(a.nnz());
        let (format, why) = match format {
            Format::Auto => choose(&profile, T::PRECISION, reader),
            pinned => (pinned, "asked for".to_string()),
        };
        limit(stored_bytes(a, &profile, format))?;
        let mut layout = Self::arranged(a, format, wide, &profile, T::PRECISION)?;
        layout.why = why;
        layout.longest = profile.longest;
        if layout.arrangement.lanes > 1 {
            layout.why += &format!("; each row is summed in {} parts", layout.arrangement.lanes);
        }
        layout.places = layout.values.len();
        if layout.places != a.nnz() {
            layout.why +=
                &format!("; {:.3} numbers stored for each entry", layout.places as f64 / a.nnz().max(1) as f64);
        }
        layout.pack(packable, &profile.diagonals);
        Ok(layout)
    }

    /// The plain arrays in a format that is chosen, of the width that it has for numbers of `precision`.
    fn arranged(a: &Csr<T>, format: Format, wide: bool, profile: &Profile, precision: Precision) -> Result<Self> {
        let too_long = |what: &str| Error::Structure {
            what: format!("{} entries exceed the 32-bit positions of {what}; use csr", a.nnz()),
            row: None,
        };
        if a.nnz() > u32::MAX as usize && matches!(format, Format::Hyb | Format::Band | Format::Bsr { .. }) {
            return Err(too_long(&format.to_string()));
        }
        Ok(match format {
            Format::Csr => compressed::csr(a, Format::Csr, lanes_for(profile.mean()), wide),
            Format::OnTheFly => {
                let reason = "a matrix with entries is stored: see Scanner::projector and operator::Stencil".into();
                return Err(Error::Option { name: "format", reason });
            }
            Format::Auto | Format::CsrScalar => compressed::csr(a, Format::CsrScalar, 1, wide),
            Format::CsrAdaptive => compressed::adaptive(a, wide)?,
            Format::Coo => compressed::coordinates(a, wide),
            Format::Ellpack => padded::ellpack(a),
            Format::EllpackR => padded::ellpack_r(a),
            Format::Sell { sigma } => padded::sell(a, padded::window(profile, sigma)?)?,
            Format::Hyb => padded::hybrid(a, profile.hybrid_width(precision)),
            Format::Dia => structured::diagonals(a, profile),
            Format::Band => banded::layout(a, precision),
            Format::Bsr { block } => {
                let block = if block == 0 { super::profile::smallest_block(a).0 } else { block };
                structured::blocks(a, block)?
            }
            Format::Dense => structured::dense(a, lanes_for(a.cols() as f64)),
        })
    }

    fn of(a: &Csr<T>, format: Format, kind: Kind) -> Self {
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
fn padding<T: Real>() -> T {
    T::from_f64(f64::NAN)
}

/// Offsets as the kernels read them: one word each, or two.
fn words(offsets: impl Iterator<Item = usize>, wide: bool, into: &mut Vec<u32>) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(format: Format) -> Layout<f64> {
        let a = Csr::from_triplets(3, 4, &[(0, 1, 1.0), (0, 3, 2.0), (2, 0, 3.0)]).expect("valid");
        Layout::new(&a, format, Offsets::Auto, Packable::NOTHING, Reader::Host, |_| Ok(())).expect("small")
    }

    /// Values with padding as `None`.
    fn places(values: &[f64]) -> Vec<Option<f64>> {
        values.iter().map(|v| Some(*v).filter(|v| !v.is_nan())).collect()
    }

    #[test]
    fn ellpack_r_pads_column_by_column() {
        let rows = layout(Format::EllpackR);
        assert_eq!(rows.pointers, [2, 0, 1]);
        assert_eq!(rows.indices, [1, 0, 0, 3, 0, 0]);
        assert_eq!(places(&rows.values), [Some(1.0), None, Some(3.0), Some(2.0), None, None]);
    }

    #[test]
    fn diagonals_ascend_and_keep_the_row() {
        let rows = layout(Format::Dia);
        assert_eq!(rows.pointers, [3, 4, (-2i32) as u32, 1, 3]);
        let expected = [None, None, Some(3.0), Some(1.0), None, None, Some(2.0), None, None];
        assert_eq!(places(&rows.values), expected);
    }

    #[test]
    fn blocks_are_dense_and_row_major() {
        let rows = layout(Format::Bsr { block: 2 });
        assert_eq!(rows.pointers, [0, 2, 3]);
        assert_eq!(rows.indices, [0, 1, 0]);
        let expected = [None, Some(1.0), None, None, None, Some(2.0), None, None, Some(3.0), None, None, None];
        assert_eq!(places(&rows.values), expected);
    }

    #[test]
    fn coordinates_name_the_rows_of_entries_and_the_offsets_of_chunks() {
        let rows = layout(Format::Coo);
        assert_eq!(rows.pointers, [32, 4, 0, 3, 0, 0, 2]);
        assert_eq!(rows.indices, [1, 3, 0]);
    }

    #[test]
    fn lanes_come_from_the_mean_row_length_alone() {
        let lanes: Vec<usize> =
            [0.0, 5.0, 7.9, 8.0, 16.0, 40.0, 64.0, 128.0, 1e9].iter().map(|m| lanes_for(*m)).collect();
        assert_eq!(lanes, [1, 1, 1, 4, 8, 16, 32, 32, 32]);
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        let a = Csr::from_triplets(3, 4, &[(0, 1, 1.0)]).expect("valid");
        for format in [Format::Sell { sigma: 3 }, Format::Sell { sigma: 64 }, Format::Bsr { block: 9 }] {
            let found = Layout::new(&a, format, Offsets::Auto, Packable::NOTHING, Reader::Host, |_| Ok(()));
            assert!(matches!(found, Err(Error::Option { .. })), "{format}");
        }
    }
}
