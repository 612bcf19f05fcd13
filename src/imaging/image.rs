//! Images that were reconstructed, and pictures to compare them with.

use std::path::Path;

use super::htc;
use super::quality::{Quality, resample};
use super::scanner::Grid;
use super::segment::Segmentation;
use crate::error::{Error, Result};
use crate::io::{FileKind, npy};
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
    /// Pixels, row by row: attenuation per unit of length.
    pub values: Vec<T>,
    /// Report of the solve.
    pub report: Report,
    /// Warning that the readings look like no line integrals.
    pub warning: Option<&'static str>,
}

impl<T: Real> Image<T> {
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

    /// Writes an 8-bit grey picture (PNG) of the values from the 0.5th to the 99.5th percentile.
    ///
    /// # Errors
    /// [`Error::File`].
    #[cfg(feature = "png")]
    pub fn write_png(&self, path: impl AsRef<Path>) -> Result<()> {
        let image = self.in_double();
        let mut sorted: Vec<f64> = image.iter().copied().filter(|v| v.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let quantile = |q: f64| sorted.get(((sorted.len().max(1) - 1) as f64 * q) as usize).copied().unwrap_or(0.0);
        let (low, high) = (quantile(0.005), quantile(0.995));
        let range = if high > low { high - low } else { 1.0 };
        let grey: Vec<u8> =
            image.iter().map(|v| (255.0 * ((v - low) / range).clamp(0.0, 1.0)).round() as u8).collect();
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
