//! The names of the formats.

use crate::error::{Error, Result, unknown};

/// Rows of a slice, `SLICE` of `cl/linear/format.cl`.
pub(crate) const SLICE: usize = 32;

/// Storage format of a matrix on its device.
///
/// All formats but [`Csr`](Format::Csr), [`CsrAdaptive`](Format::CsrAdaptive) and [`Dense`](Format::Dense) add the
/// entries of a row one after another in ascending column order, so that they agree bit for bit. Those three, and rays, let
/// several lanes share a row; how many comes from the matrix alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Chosen from row lengths and diagonals; [`Matrix::why`](crate::Matrix::why) says what and why.
    #[default]
    Auto,
    /// Row, column and value of each entry, sorted by row (dedecek-2013, 2.2.3 and 5.4.1).
    Coo,
    /// Compressed sparse rows; as many lanes share a row as its mean length makes worth while (1 to 32).
    Csr,
    /// Compressed sparse rows, one lane per row.
    CsrScalar,
    /// Compressed sparse rows; each row has the lanes that its own length asks for: 1, 32 or 512.
    CsrAdaptive,
    /// Every row padded to the longest, entry by entry (stock-koch-2009, variant MemoryLayout).
    Ellpack,
    /// ELLPACK with the length of each row, so that padding is not read (michels-2011, 5.3.1).
    EllpackR,
    /// Slices of 32 rows, each padded to its longest row (SELL-C-sigma of Kreutzer et al. 2014 with C = 32). Rows
    /// are sorted by length within windows of `sigma` rows; 1 keeps their order, 0 chooses.
    Sell {
        /// Rows of a window, a power of two up to the rows of a reduction chunk.
        sigma: usize,
    },
    /// ELLPACK for as many entries as most rows have, coordinates for the rest (Bell and Garland 2009).
    Hyb,
    /// Whole diagonals (krueger-westermann-2003, 2 and 4.1).
    Dia,
    /// Windows of consecutive entries, as many in every row, from a column of its own on, without their columns; entries beside them as coordinates
    /// (dedecek-2013, 2.2.1). The width that stores least is found, of those up to 256 in steps of about an eighth. Never chosen by itself.
    Band,
    /// Dense square blocks.
    Bsr {
        /// Rows and columns of a block, 2 to 8; 0 takes the size that stores least.
        block: usize,
    },
    /// Every place of the matrix, column by column (krueger-westermann-2003, 3.2).
    Dense,
    /// Nothing is stored: rows are made in the kernel (stock-koch-2009, variant OnTheFly). Made by
    /// [`Scanner::projector`](crate::imaging::Scanner::projector) and [`Stencil`](crate::operator::Stencil) alone.
    OnTheFly,
}

impl Format {
    /// Every format a matrix can be stored in, with the parameters it chooses by itself.
    pub const ALL: &'static [Self] = &[
        Self::Coo,
        Self::Csr,
        Self::CsrScalar,
        Self::CsrAdaptive,
        Self::Ellpack,
        Self::EllpackR,
        Self::Sell { sigma: 0 },
        Self::Hyb,
        Self::Dia,
        Self::Band,
        Self::Bsr { block: 0 },
        Self::Dense,
    ];

    /// Tells if a row's entries are added one after another, which gives the same bits in every such format.
    pub fn sequential(&self) -> bool {
        !matches!(self, Self::Auto | Self::Csr | Self::CsrAdaptive | Self::Dense | Self::OnTheFly)
    }
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Coo => f.write_str("coo"),
            Self::Csr => f.write_str("csr"),
            Self::CsrScalar => f.write_str("csr-scalar"),
            Self::CsrAdaptive => f.write_str("csr-adaptive"),
            Self::Ellpack => f.write_str("ellpack"),
            Self::EllpackR => f.write_str("ellpack-r"),
            Self::Sell { sigma: 0 } => f.write_str("sell"),
            Self::Sell { sigma } => write!(f, "sell-{sigma}"),
            Self::Hyb => f.write_str("hyb"),
            Self::Dia => f.write_str("dia"),
            Self::Band => f.write_str("band"),
            Self::Bsr { block: 0 } => f.write_str("bsr"),
            Self::Bsr { block } => write!(f, "bsr-{block}"),
            Self::Dense => f.write_str("dense"),
            Self::OnTheFly => f.write_str("on-the-fly"),
        }
    }
}

impl std::str::FromStr for Format {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let number = |rest: &str| rest.parse::<usize>().ok();
        let found = [Self::Auto, Self::OnTheFly]
            .into_iter()
            .chain(Self::ALL.iter().copied())
            .find(|f| f.to_string() == text);
        let found = found.or_else(|| text.strip_prefix("sell-").and_then(number).map(|sigma| Self::Sell { sigma }));
        let found = found.or_else(|| text.strip_prefix("bsr-").and_then(number).map(|block| Self::Bsr { block }));
        found.ok_or_else(|| {
            let names: Vec<String> = Self::ALL.iter().map(ToString::to_string).collect();
            unknown("format", text, format!("auto, {} (sell-64 and bsr-3 pin a size)", names.join(", ")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_read_back_as_they_are_written() {
        let pinned = [Format::Auto, Format::OnTheFly, Format::Sell { sigma: 64 }, Format::Bsr { block: 3 }];
        for format in Format::ALL.iter().copied().chain(pinned) {
            assert_eq!(format.to_string().parse::<Format>().expect("own text"), format);
        }
        for foreign in ["csc", "bsr-", "sell-x", ""] {
            assert!(foreign.parse::<Format>().is_err(), "{foreign}");
        }
    }
}
