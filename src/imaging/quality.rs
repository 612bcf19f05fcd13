//! Agreement of pictures.

use crate::error::{Error, Result, same_length};

/// Agreement of an image with a reference.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Quality {
    /// Pearson correlation, 1 for the same picture up to brightness and contrast.
    pub correlation: f64,
    /// Peak signal to noise ratio in dB, against the range of the reference.
    pub psnr: f64,
    /// Root of the mean squared difference over the root of the reference's mean square.
    pub relative_error: f64,
}

impl Quality {
    /// Compares `image` with `reference`.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) when they differ in length, [`Error::NotFinite`](crate::Error::NotFinite) for a reference
    /// with NaN or infinity in it.
    pub fn of(image: &[f64], reference: &[f64]) -> Result<Self> {
        same_length("image against its reference", reference.len(), image.len())?;
        if let Some(index) = reference.iter().position(|v| !v.is_finite()) {
            return Err(Error::NotFinite { what: "the reference".into(), index });
        }
        let n = image.len().max(1) as f64;
        let mean = |v: &[f64]| v.iter().sum::<f64>() / n;
        let (mean_image, mean_reference) = (mean(image), mean(reference));
        let (mut product, mut image_square, mut reference_square, mut difference, mut power) =
            (0.0, 0.0, 0.0, 0.0, 0.0);
        for (x, y) in image.iter().zip(reference) {
            product += (x - mean_image) * (y - mean_reference);
            image_square += (x - mean_image).powi(2);
            reference_square += (y - mean_reference).powi(2);
            difference += (x - y).powi(2);
            power += y * y;
        }
        let least = reference.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = reference.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Ok(Self {
            correlation: product / (image_square * reference_square).sqrt(),
            psnr: 10.0 * libm::log10((greatest - least).powi(2) / (difference / n)),
            relative_error: (difference / power).sqrt(),
        })
    }
}

/// A square image of side `from` at side `to`: each new pixel is the mean of what it covers.
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) unless `image` has `from²` pixels, and for a side of 0.
pub fn resample(image: &[f64], from: usize, to: usize) -> Result<Vec<f64>> {
    let expected = from.saturating_mul(from);
    same_length("square image", expected, image.len())?;
    for (what, side) in [("side of a picture, at least", from), ("side to resample to, at least", to)] {
        if side == 0 {
            return Err(Error::Shape { what, expected: 1, found: 0 });
        }
    }
    let rows = resample_rows(image, from, to);
    // Transposing twice makes columns of rows and back.
    let turned = transposed(&rows, from, to);
    let both = resample_rows(&turned, from, to);
    Ok(transposed(&both, to, to))
}

fn transposed(image: &[f64], rows: usize, cols: usize) -> Vec<f64> {
    (0..cols).flat_map(|j| (0..rows).map(move |i| image[i * cols + j])).collect()
}

fn resample_rows(image: &[f64], from: usize, to: usize) -> Vec<f64> {
    let ratio = from as f64 / to as f64;
    let mut out = Vec::with_capacity(image.len() / from.max(1) * to);
    for row in image.chunks(from) {
        for k in 0..to {
            let (start, end) = (k as f64 * ratio, (k + 1) as f64 * ratio);
            let mut sum = 0.0;
            for j in start as usize..(end.ceil() as usize).min(from) {
                sum += row[j] * (end.min(j as f64 + 1.0) - start.max(j as f64));
            }
            out.push(sum / ratio);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_agrees_with_itself() {
        let image: Vec<f64> = (0..100).map(|i| f64::from(i % 7)).collect();
        let brighter: Vec<f64> = image.iter().map(|v| 3.0 * v + 1.0).collect();
        let same = Quality::of(&image, &image).expect("same length");
        assert_eq!((same.correlation, same.relative_error), (1.0, 0.0));
        assert!(same.psnr.is_infinite());
        let other = Quality::of(&brighter, &image).expect("same length");
        assert!((other.correlation - 1.0).abs() < 1e-12 && other.psnr < 0.0);
        let shifted: Vec<f64> = image.iter().map(|v| v + 0.6).collect();
        // Range 6, error 0.6: 20 dB.
        assert!((Quality::of(&shifted, &image).expect("same length").psnr - 20.0).abs() < 1e-9);
        assert!(Quality::of(&image, &image[1..]).is_err());
    }

    #[test]
    fn resampling_averages_what_a_pixel_covers() {
        let image = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(resample(&image, 2, 1).expect("square"), [2.5]);
        let up = resample(&image, 2, 4).expect("square");
        assert_eq!(up[..8], [1.0, 1.0, 2.0, 2.0, 1.0, 1.0, 2.0, 2.0]);
        let odd = resample(&[1.0; 25], 5, 3).expect("square");
        assert!(odd.iter().all(|v| (v - 1.0).abs() < 1e-12));
        assert!(resample(&image, 3, 1).is_err());
        assert!(resample(&[], 0, 4).is_err() && resample(&image, 2, 0).is_err());
        assert!(Quality::of(&[1.0, 2.0], &[1.0, f64::NAN]).is_err());
    }
}
