//! Files of counts, and what is said of them.

use std::ops::Range;
use std::path::PathBuf;

use super::angles::AngleUnit;
use super::bad_pixels::BadPixels;
use crate::error::{Error, Result, unknown};

/// Meaning of the pictures of a volume of counts, and of the first of three dimensions of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// A picture is a projection, `slices × pixels`: one for each angle.
    Angles,
    /// A picture is a sinogram, `angles × pixels`: one for each slice.
    Slices,
}

impl std::str::FromStr for Order {
    type Err = Error;

    /// `angles` or `slices`.
    fn from_str(text: &str) -> Result<Self> {
        match text {
            "angles" => Ok(Self::Angles),
            "slices" => Ok(Self::Slices),
            _ => Err(unknown("order", text, "angles, slices")),
        }
    }
}

/// A flat or dark field.
#[derive(Clone, Debug, PartialEq)]
pub enum Field {
    /// One number for every pixel.
    Number(f64),
    /// A volume of frames, each `slices × pixels`, as [`Stack::open`](crate::io::Stack::open) reads it (of a single slice also `frames × pixels`), or the path of a data set in the
    /// HDF5 file of the projections, or in another one: `FILE.h5:PATH`.
    File(PathBuf),
}

impl std::str::FromStr for Field {
    type Err = std::convert::Infallible;

    /// A number, else a path.
    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        Ok(text.parse().map_or_else(|_| Self::File(text.into()), Self::Number))
    }
}

/// Files of counts, and which of their slices are wanted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CountFiles {
    /// Projections, each `slices × pixels`: a volume ([`Stack::open`](crate::io::Stack::open)), or an HDF5 file, which may have its own fields and angles. A single picture is the
    /// sinogram of one slice, `angles × pixels`.
    pub projections: PathBuf,
    /// Flat field. A DataExchange file needs none, but this one counts.
    pub flat: Option<Field>,
    /// Dark field, 0 without one.
    pub dark: Option<Field>,
    /// Slices that are read, from 0; all if none are named.
    pub slices: Option<Range<usize>>,
    /// Meaning of the pictures: projections if nothing is said, but a single picture is a sinogram.
    pub order: Option<Order>,
    /// Path of the projections in an HDF5 file, `exchange/data` if none is named.
    pub data: Option<String>,
    /// Path of the angles in an HDF5 file, `exchange/theta` if none is named.
    pub theta: Option<String>,
    /// Unit of the angles of an HDF5 file, instead of that of the file.
    pub theta_unit: Option<AngleUnit>,
    /// Pixels that do not count, beside those that are found.
    pub bad_pixels: BadPixels,
}

pub(super) fn refuse(what: &str, reason: String) -> Error {
    Error::Format { what: what.into(), reason }
}
