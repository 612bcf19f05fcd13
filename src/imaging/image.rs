//! Images that were reconstructed, and pictures to compare them with.

use std::path::Path;

use super::doubt::Doubt;
use super::htc;
use super::quality::{Quality, resample};
use super::scanner::Grid;
use super::segment::Segmentation;
use crate::error::{Error, Result};
use crate::io::FileKind;
use crate::io::npy;
use crate::number::Real;
use crate::solver::Report;

/// A reconstructed image with what is to be said of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Image<T> {
    /// Rows of pixels, the uppermost first.
    pub rows: usize,
    /// Pixels of a row; 1 if the unknowns are no image.
    pub cols: usize,
    /// Length of a pixel, in the scanner's unit; 1 if there is no scanner.
    pub pixel: f64,
    /// Place of the picture's middle, to the right and upwards from the axis of rotation: 0 unless it was cut out of a larger one.
    pub centre: [f64; 2],
    /// Pixels, row by row: attenuation per unit of length.
    pub values: Vec<T>,
    /// Report of the solve.
    pub report: Report,
    /// Doubts about the readings, and about what the picture makes of them.
    pub doubts: Vec<Doubt>,
}

/// A rectangle in the plane of a picture, in the scanner's unit: to the right and upwards from the axis of rotation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Region {
    /// From left to right.
    pub x: [f64; 2],
    /// From below to above.
    pub y: [f64; 2],
}

impl Region {
    /// Rows and columns that hold the rectangle, of a picture of `rows x cols` pixels of length `pixel` about `centre`. Pixels that it meets in part are whole.
    ///
    /// # Errors
    /// [`Error::Option`] if the rectangle is empty or reaches beyond the picture.
    pub fn within(
        &self,
        [rows, cols]: [usize; 2],
        pixel: f64,
        centre: [f64; 2],
    ) -> Result<[std::ops::Range<usize>; 2]> {
        /// Part of a pixel that rounding may take.
        const ROUNDING: f64 = 1e-6;
        let refuse = |reason: String| Error::Option { name: "roi", reason };
        let range = |name: &str, [from, to]: [f64; 2], count: usize, middle: f64| {
            let place = |at: f64| (at - middle) / pixel + 0.5 * count as f64;
            let (first, last) = ((place(from) + ROUNDING).floor(), (place(to) - ROUNDING).ceil());
            if from.partial_cmp(&to) != Some(std::cmp::Ordering::Less) {
                return Err(refuse(format!("{name} from {from} to {to} is empty")));
            }
            if !(first >= 0.0 && last <= count as f64) {
                let half = 0.5 * count as f64 * pixel;
                let [least, most] = [middle - half, middle + half];
                return Err(refuse(format!(
                    "{name} from {from} to {to} is not within the picture, {least} to {most}"
                )));
            }
            let first = (first as usize).min(count - 1);
            Ok(first..(last as usize).max(first + 1))
        };
        let upwards = range("y", self.y, rows, centre[1])?;
        Ok([rows - upwards.end..rows - upwards.start, range("x", self.x, cols, centre[0])?])
    }
}

impl std::str::FromStr for Region {
    type Err = Error;

    /// `X0:X1,Y0:Y1`.
    fn from_str(text: &str) -> Result<Self> {
        let pair = |text: &str| -> Option<[f64; 2]> {
            let (from, to) = text.split_once(':')?;
            let ends = [from.trim().parse().ok()?, to.trim().parse().ok()?];
            ends.iter().all(|end: &f64| end.is_finite()).then_some(ends)
        };
        let region = text.split_once(',').and_then(|(x, y)| Some(Self { x: pair(x)?, y: pair(y)? }));
        let reason = || format!("'{text}' is not X0:X1,Y0:Y1, such as -1.5:0.5,2:3");
        region.ok_or_else(|| Error::Option { name: "roi", reason: reason() })
    }
}

impl<T: Real> Image<T> {
    /// The part of the image that a rectangle meets, with its place. Report and doubts are those of the whole.
    ///
    /// # Errors
    /// As [`Region::within`].
    pub fn cut(&self, region: &Region) -> Result<Self> {
        let [rows, cols] = region.within([self.rows, self.cols], self.pixel, self.centre)?;
        let values = rows.clone().flat_map(|row| &self.values[row * self.cols..][cols.clone()]).copied().collect();
        // From the middle of all pixels to that of those that are left, rows downwards.
        let moved = |part: &std::ops::Range<usize>, all: usize| {
            0.5 * self.pixel * (part.start as f64 + part.end as f64 - all as f64)
        };
        let centre = [self.centre[0] + moved(&cols, self.cols), self.centre[1] - moved(&rows, self.rows)];
        let (report, doubts) = (self.report.clone(), self.doubts.clone());
        Ok(Self { rows: rows.len(), cols: cols.len(), pixel: self.pixel, centre, values, report, doubts })
    }

    /// Compares the image with a reference of the same size.
    ///
    /// # Errors
    /// As [`Quality::of`].
    pub fn compare(&self, reference: &[f64]) -> Result<Quality> {
        Quality::of(&self.in_double(), reference)
    }

    /// Cuts the image into classes of pixels.
    ///
    /// # Errors
    /// As [`Segmentation::otsu`].
    pub fn segment(&self, classes: usize) -> Result<Segmentation> {
        Segmentation::otsu(&self.in_double(), [self.rows, self.cols], classes)
    }

    /// Writes the pixels as a `.npy` array of `rows × cols`.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn write_npy(&self, path: impl AsRef<Path>) -> Result<()> {
        npy::write(path.as_ref(), &[self.rows, self.cols], &self.values)
    }

    /// Writes an 8-bit grey picture (PNG) of the values within the image's own [`Window`].
    ///
    /// # Errors
    /// [`Error::File`].
    #[cfg(feature = "png")]
    pub fn write_png(&self, path: impl AsRef<Path>) -> Result<()> {
        self.write_png_within(path, Window::of(std::slice::from_ref(self)))
    }

    /// Writes an 8-bit grey picture (PNG) of the values within `window`: black at its lower end and below, white at its upper end and above.
    ///
    /// # Errors
    /// [`Error::File`].
    #[cfg(feature = "png")]
    pub fn write_png_within(&self, path: impl AsRef<Path>, window: Window) -> Result<()> {
        let grey: Vec<u8> = self.values.iter().map(|v| (255.0 * window.share(v.to_f64())).round() as u8).collect();
        crate::io::write_atomically(path.as_ref(), |file| {
            let mut encoder = png::Encoder::new(file, self.cols as u32, self.rows as u32);
            encoder.set_color(png::ColorType::Grayscale);
            encoder.set_depth(png::BitDepth::Eight);
            let mut writer = encoder.write_header().map_err(std::io::Error::other)?;
            writer.write_image_data(&grey).map_err(std::io::Error::other)
        })
    }

    fn in_double(&self) -> Vec<f64> {
        self.values.iter().map(|v| v.to_f64()).collect()
    }
}

/// Values that pictures show: one window for all slices, so that they can be compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Shown black, like all below.
    pub low: f64,
    /// Shown white, like all above.
    pub high: f64,
}

impl Window {
    /// The window from the 0.5th to the 99.5th percentile of all values that are numbers.
    pub fn of<T: Real>(images: &[Image<T>]) -> Self {
        let mut values: Vec<T> = images.iter().flat_map(|image| &image.values).copied().collect();
        values.retain(|v| v.is_finite());
        let last = (values.len().max(1) - 1) as f64;
        // All values are many: none is sorted but the two that are asked for.
        let mut quantile = |q: f64| {
            let k = (last * q) as usize;
            let found = values
                .get(k)
                .is_some()
                .then(|| *values.select_nth_unstable_by(k, |a, b| a.to_f64().total_cmp(&b.to_f64())).1);
            found.map_or(0.0, Real::to_f64)
        };
        Self { low: quantile(0.005), high: quantile(0.995) }
    }

    /// Place of a value within the window, from 0 to 1; NaN lies at 0.
    pub fn share(self, value: f64) -> f64 {
        let range = if self.high > self.low { self.high - self.low } else { 1.0 };
        ((value - self.low) / range).clamp(0.0, 1.0).max(0.0)
    }
}

/// Pixels of a TIFF file.
#[cfg(feature = "tiff")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TiffPixels {
    /// Whole numbers of 16 bits: 0 at the lower end of the window and below, 65535 at its upper end and above. The file says in ImageJ's words what
    /// they stand for.
    Sixteen,
    /// Floats of 32 bits: the values themselves.
    Float,
}

/// [`write_tiff_as`] with pixels of 16 bits.
///
/// # Errors
/// As [`write_tiff_as`].
#[cfg(feature = "tiff")]
pub fn write_tiff<T: Real>(path: impl AsRef<Path>, images: &[Image<T>], window: Window) -> Result<()> {
    write_tiff_as(path, images, window, TiffPixels::Sixteen)
}

/// Writes images of one size as the pictures of one TIFF file, which says the window too.
///
/// # Errors
/// [`Error::File`]; [`Error::Shape`] for images of several sizes.
#[cfg(feature = "tiff")]
pub fn write_tiff_as<T: Real>(
    path: impl AsRef<Path>,
    images: &[Image<T>],
    window: Window,
    pixels: TiffPixels,
) -> Result<()> {
    let Some(first) = images.first() else { return Ok(()) };
    for image in images {
        crate::error::same_length(
            "pixels of an image against the first one",
            first.values.len(),
            image.values.len(),
        )?;
    }
    let (path, size) = (path.as_ref(), [first.rows, first.cols]);
    // A window without width shows its value black.
    let ends = [window.low, if window.high > window.low { window.high } else { window.low + 1.0 }];
    match pixels {
        TiffPixels::Sixteen => {
            let pixel = |v: &T| (65535.0 * window.share(v.to_f64())).round() as u16;
            let pictures: Vec<Vec<u16>> =
                images.iter().map(|image| image.values.iter().map(pixel).collect()).collect();
            crate::io::write_tiff16(path, size, &pictures, ends)
        }
        TiffPixels::Float => {
            let pixel = |v: &T| v.to_f64() as f32;
            let pictures: Vec<Vec<f32>> =
                images.iter().map(|image| image.values.iter().map(pixel).collect()).collect();
            crate::io::write_tiff32(path, size, &pictures, ends)
        }
    }
}

/// Reads a picture of the same field as `grid`, at its side: a challenge `.mat` file (whose values are made those per unit of
/// length) or a square `.npy` array.
///
/// # Errors
/// [`Error::File`] and [`Error::Format`] for a file that holds no square picture, [`Error::NotFinite`].
pub fn read_reference(path: impl AsRef<Path>, grid: Grid) -> Result<Vec<f64>> {
    let path = path.as_ref();
    match FileKind::of(path)? {
        Some(FileKind::Npy) => {
            let array = npy::read(path)?;
            if let Some(index) = array.data.iter().position(|v| !v.is_finite()) {
                return Err(Error::NotFinite { what: path.display().to_string(), index });
            }
            match array.shape[..] {
                [rows, cols] if rows == cols => resample(&array.data, rows, grid.side),
                _ => Err(Error::Format {
                    what: path.display().to_string(),
                    reason: "a reference picture is a square array".into(),
                }),
            }
        }
        Some(FileKind::Mat5) | None => htc::read_reference(path, grid),
        Some(other) => Err(other.refused(path, "a reference picture (.mat or .npy)")),
    }
}
