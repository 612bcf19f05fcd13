//! Formats that store a matrix by rows, laid out as the kernels read them.

use super::Csr;
use crate::error::{Error, Result};
use crate::real::Real;

/// How a matrix is stored on its device; part of the result's bits only through the order of its row sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// Chosen from the row lengths.
    #[default]
    Auto,
    /// Compressed sparse rows; as many lanes share a row as its mean length makes worth while (1 to 32).
    Csr,
    /// Compressed sparse rows, one lane per row: entries add in ascending column order.
    CsrScalar,
    /// ELLPACK-R (michels-2011, 4.2): padded to the longest row, entry by entry; ascending column order.
    EllpackR,
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Csr => "csr",
            Self::CsrScalar => "csr-scalar",
            Self::EllpackR => "ellpack-r",
        })
    }
}

impl std::str::FromStr for Format {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        [Self::Auto, Self::Csr, Self::CsrScalar, Self::EllpackR]
            .into_iter()
            .find(|f| f.to_string() == text)
            .ok_or_else(|| Error::Option {
                name: "format",
                reason: format!("'{text}' is none of auto, csr, csr-scalar, ellpack-r"),
            })
    }
}

/// The order in which a row's products are added: what of the format reaches the bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowOrder {
    /// 0: compressed rows, 1: ELLPACK-R (`FORMAT` in `cl/row.cl`).
    pub(crate) layout: u32,
    /// Lane `l` adds entries `l, l + lanes, ...`; lanes fold by halving. A power of two up to 32.
    pub(crate) lanes: usize,
}

/// A matrix stored by rows: the arrays a device holds.
#[derive(Clone, Debug)]
pub(crate) struct Rows<T> {
    pub(crate) format: Format,
    pub(crate) order: RowOrder,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    /// Row offsets (`rows + 1`) or row lengths (`rows`).
    pub(crate) pointers: Vec<u32>,
    pub(crate) indices: Vec<u32>,
    pub(crate) values: Vec<T>,
    /// Distance between entries of a row in ELLPACK-R.
    pub(crate) stride: usize,
    /// Why this format, in words and numbers.
    pub(crate) why: String,
}

/// Lanes that share a row of `mean` entries: a whole row in about four steps, one lane where rows are short.
fn lanes_for(mean: f64) -> usize {
    [(8.0, 1), (16.0, 4), (32.0, 8), (64.0, 16)]
        .into_iter()
        .find(|(below, _)| mean < *below)
        .map_or(32, |(_, lanes)| lanes)
}

impl<T: Real> Rows<T> {
    /// Lays out `a` in `format`.
    ///
    /// # Errors
    /// [`Error::Structure`] when 32-bit offsets do not reach all entries.
    pub(crate) fn new(a: &Csr<T>, format: Format) -> Result<Self> {
        if a.nnz() > u32::MAX as usize {
            return Err(Error::Structure {
                what: format!("{} entries exceed 32-bit row offsets", a.nnz()),
                row: a.rows(),
            });
        }
        let mean = a.nnz() as f64 / a.rows().max(1) as f64;
        let (format, lanes, why) = match format {
            Format::Auto | Format::Csr => {
                let lanes = lanes_for(mean);
                let why = format!("rows hold {mean:.1} entries on average: {lanes} lane(s) per row");
                (Format::Csr, lanes, why)
            }
            other => (other, 1, "asked for".to_string()),
        };
        let mut rows = Self {
            format,
            order: RowOrder { layout: 0, lanes },
            rows: a.rows(),
            cols: a.cols(),
            pointers: a.offsets().iter().map(|&o| o as u32).collect(),
            indices: Vec::new(),
            values: Vec::new(),
            stride: 0,
            why,
        };
        if format == Format::EllpackR {
            rows.pad(a)?;
        } else {
            rows.indices = a.indices().to_vec();
            rows.values = a.values().to_vec();
        }
        Ok(rows)
    }

    /// The arrays of ELLPACK-R: entry `k` of row `i` at `k * stride + i`.
    fn pad(&mut self, a: &Csr<T>) -> Result<()> {
        let longest = a.longest_row();
        let size = longest.checked_mul(a.rows()).filter(|s| *s <= u32::MAX as usize);
        let size = size.ok_or_else(|| Error::Structure {
            what: format!("{} rows padded to {longest} entries exceed 32-bit positions; use csr", a.rows()),
            row: a.rows(),
        })?;
        self.order.layout = 1;
        self.stride = a.rows();
        self.pointers = a.offsets().windows(2).map(|w| (w[1] - w[0]) as u32).collect();
        self.indices = vec![0; size];
        self.values = vec![T::default(); size];
        for i in 0..a.rows() {
            let (columns, values) = a.row(i);
            for k in 0..columns.len() {
                self.indices[k * self.stride + i] = columns[k];
                self.values[k * self.stride + i] = values[k];
            }
        }
        self.why = format!("asked for; {:.2} stored places per entry", size as f64 / a.nnz().max(1) as f64);
        Ok(())
    }

    /// The arrays and their bytes: what a device must hold.
    pub(crate) fn plan(&self) -> [(&'static str, u64); 3] {
        [
            ("matrix row pointers", self.pointers.len() as u64 * 4),
            ("matrix columns", self.indices.len() as u64 * 4),
            ("matrix values", self.values.len() as u64 * T::PRECISION.bytes() as u64),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ellpack_r_pads_column_by_column() {
        let a = Csr::from_triplets(3, 4, &[(0, 1, 1.0), (0, 3, 2.0), (2, 0, 3.0)]).expect("valid");
        let rows = Rows::new(&a, Format::EllpackR).expect("small");
        assert_eq!(rows.pointers, [2, 0, 1]);
        assert_eq!(rows.indices, [1, 0, 0, 3, 0, 0]);
        assert_eq!(rows.values, [1.0, 0.0, 3.0, 2.0, 0.0, 0.0]);
    }

    #[test]
    fn lanes_come_from_the_mean_row_length_alone() {
        let lanes: Vec<usize> = [0.0, 5.0, 7.9, 8.0, 16.0, 40.0, 64.0, 1e9].iter().map(|m| lanes_for(*m)).collect();
        assert_eq!(lanes, [1, 1, 1, 4, 8, 16, 32, 32]);
    }

    #[test]
    fn formats_are_read_back_as_they_are_written() {
        for format in [Format::Auto, Format::Csr, Format::CsrScalar, Format::EllpackR] {
            assert_eq!(format.to_string().parse::<Format>().expect("own text"), format);
        }
        assert!("coo".parse::<Format>().is_err());
    }
}
