//! A matrix laid out in a format.

use super::choice::{Reader, choose};
use super::format::Format;
use super::layout::{Layout, Offsets, lanes_for};
use super::packing::Packable;
use super::profile::{Profile, smallest_block};
use super::sample::Sample;
use super::{banded, compressed, padded, structured};
use crate::error::{Error, Result};
use crate::number::{Precision, Real, per_number};
use crate::sparse::Csr;

per_number! {
    fn stored_bytes<T>(this: &Csr<T>, formats: &[Format]) -> Vec<u64> = Csr::stored_bytes_here;
}

/// Bytes of a matrix in a format: what a product must read of it. BSR counts as if its blocks were full.
fn bytes_in<T: Real>(a: &Csr<T>, profile: &Profile, format: Format) -> u64 {
    match format {
        Format::Band => banded::stored_bytes(a),
        _ => profile.stored_bytes(format, T::PRECISION),
    }
}

impl<T: Real> Csr<T> {
    /// Bytes this matrix takes in each of `formats`, which a product must read; blocks of BSR counted as if they were
    /// full. Cost: one pass over the row lengths and one over the columns, however many formats; for `band` up to 40 passes over the columns.
    pub fn stored_bytes(&self, formats: &[Format]) -> Vec<u64> {
        stored_bytes(self, formats)
    }

    fn stored_bytes_here(&self, formats: &[Format]) -> Vec<u64> {
        let profile = Profile::of(self);
        formats.iter().map(|format| bytes_in(self, &profile, *format)).collect()
    }
}

impl<T: Real> Layout<T> {
    /// Lays `a` out in `format`, or in the one that suits `reader`.
    ///
    /// # Errors
    /// [`Error::Option`] for a parameter that is out of range, [`Error::Conflict`] for [`Format::OnTheFly`], [`Error::Structure`] when 32-bit positions do not
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
        limit(bytes_in(a, &profile, format))?;
        let mut layout = Self::arranged(a, format, wide, &profile, T::PRECISION)?;
        layout.why = why;
        layout.longest = profile.longest;
        if layout.arrangement.lanes > 1 {
            layout.why += &format!("; each row is summed in {} parts", layout.arrangement.lanes);
        }
        layout.sample = if reader == Reader::Host { None } else { Sample::of(a, layout.arrangement) };
        layout.places = layout.values.len();
        if layout.places != a.nnz() {
            layout.why +=
                &format!("; {:.3} numbers stored for each entry", layout.places as f64 / a.nnz().max(1) as f64);
        }
        layout.pack(packable, &profile.diagonals);
        Ok(layout)
    }

    /// The plain arrays in a format that is chosen, of the width that it has for numbers of `precision`.
    pub(super) fn arranged(
        a: &Csr<T>,
        format: Format,
        wide: bool,
        profile: &Profile,
        precision: Precision,
    ) -> Result<Self> {
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
                return Err(Error::Conflict { name: "format", reason });
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
                let block = if block == 0 { smallest_block(a).0 } else { block };
                structured::blocks(a, block)?
            }
            Format::Dense => structured::dense(a, lanes_for(a.cols() as f64)),
        })
    }
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
