//! Readings with the scanner that took them.

use std::ops::RangeInclusive;

use super::bad_pixels::{BadPixels, repair};
use super::edges::{Edges, Sides};
use super::scanner::{Grid, Scanner};
use crate::error::{Error, Result, same_length};
use crate::number::Real;
use crate::threads;

/// Sensor data with the scanner that took it: one row of `sinogram` per angle, one column per detector pixel.
///
/// ```
/// use residuum::imaging::{Beam, Noise, Phantom, Scanner};
///
/// let angles = (0..30).map(|k| 6.0 * f64::from(k)).collect();
/// let scanner = Scanner { beam: Beam::Parallel, pixels: 48, pitch: 2.0 / 48.0, offset: 0.0, angles };
/// let scan = Phantom::plate().scan(&scanner, 2.0, Noise { photons: 1e5, gain: 0.0, seed: 1 })?;
/// // Half of the pixels, and the angles from 0 to 90 degrees.
/// let smaller = scan.binned(2)?.with_arc(0.0..=90.0)?;
/// assert_eq!((smaller.scanner.pixels, smaller.scanner.angles.len()), (24, 16));
/// let half_turn = scan.axis()?; // the pixel that sees the rotation axis
/// assert!((half_turn - 23.5).abs() < 0.2);
/// # Ok::<(), residuum::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Scan {
    /// The scanner.
    pub scanner: Scanner,
    /// Line integrals, `-log(I / I0)`: `angles × pixels`, row by row.
    pub sinogram: Vec<f64>,
    /// Side of the square that the image shows, in the scanner's unit.
    pub field: f64,
}

impl Scan {
    /// Data with its scanner, checked.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there is one number per ray, [`Error::NotFinite`] for NaN or infinity,
    /// [`Error::Option`] for a scanner that cannot exist.
    pub fn new(scanner: Scanner, sinogram: Vec<f64>) -> Result<Self> {
        scanner.validate()?;
        same_length("sinogram against angles times detector pixels", scanner.rays(), sinogram.len())?;
        if let Some(index) = sinogram.iter().position(|v| !v.is_finite()) {
            return Err(Error::NotFinite { what: "the sinogram".into(), index });
        }
        let field = scanner.field();
        Ok(Self { scanner, sinogram, field })
    }

    /// Median of the readings if they look like counts of a detector, not like line integrals: no reading is below 0, and the ends of the detector, which see
    /// no object, read more than most; or all are whole numbers, and large.
    pub fn looks_like_counts(&self) -> Option<f64> {
        /// Part of the detector at either end.
        const ENDS: usize = 20;
        /// Least counts; line integrals are seldom that large where there is no object.
        const LEAST: f64 = 20.0;
        const LARGE: f64 = 100.0;
        let pixels = self.scanner.pixels;
        let median = |mut values: Vec<f64>| {
            let middle = values.len() / 2;
            *values.select_nth_unstable_by(middle, f64::total_cmp).1
        };
        if self.sinogram.is_empty() || self.sinogram.iter().any(|v| *v < 0.0) {
            return None;
        }
        let width = (pixels / ENDS).max(1);
        let at_end = |j: usize| j < width || j + width >= pixels;
        let ends =
            self.sinogram.iter().enumerate().filter(|(at, _)| at_end(at % pixels)).map(|(_, v)| *v).collect();
        let (all, ends) = (median(self.sinogram.clone()), median(ends));
        let whole = all >= LARGE && self.sinogram.iter().all(|v| v.fract() == 0.0);
        (whole || (ends > LEAST && ends > 1.05 * all)).then_some(all)
    }

    /// Tells if the readings look like `pixels × angles`: each column sums to the same, as all angles see the same object, and rows do not.
    pub fn looks_transposed(&self) -> bool {
        const SAME: f64 = 0.05;
        const OTHER: f64 = 0.3;
        let pixels = self.scanner.pixels;
        let spread = |sums: &[f64]| {
            let mean = sums.iter().sum::<f64>() / sums.len() as f64;
            let off = sums.iter().map(|sum| (sum - mean) * (sum - mean)).sum::<f64>() / sums.len() as f64;
            off.sqrt() / mean.abs()
        };
        let rows: Vec<f64> = self.sinogram.chunks(pixels).map(|row| row.iter().sum()).collect();
        let mut columns = vec![0.0; pixels];
        for row in self.sinogram.chunks(pixels) {
            columns.iter_mut().zip(row).for_each(|(sum, v)| *sum += v);
        }
        rows.len() > 2 && pixels > 2 && spread(&columns) < SAME && spread(&rows) > OTHER
    }

    /// Replaces the readings of the pixels that are named by those between their neighbours; `number` is that of the slice. Also says how many
    /// readings those were.
    ///
    /// # Errors
    /// [`Error::Option`] for pixels that are not there, or if none is left.
    pub fn without_pixels(mut self, bad: &BadPixels, number: usize) -> Result<(Self, usize)> {
        let pixels = self.scanner.pixels;
        bad.check(pixels)?;
        let named: Vec<usize> = (0..pixels).filter(|pixel| bad.names(number, *pixel)).collect();
        let mut repaired = 0;
        for row in self.sinogram.chunks_mut(pixels) {
            named.iter().for_each(|pixel| row[*pixel] = f64::NAN);
            repaired += repair(row).ok_or_else(|| Error::Option {
                name: "bad_pixels",
                reason: format!("no pixel of {pixels} is left"),
            })?;
        }
        Ok((self, repaired))
    }

    /// The readings in the precision of vectors.
    pub fn readings<T: Real>(&self) -> Vec<T> {
        self.sinogram.iter().map(|v| T::from_f64(*v)).collect()
    }

    /// The square of the image at `side × side` pixels.
    pub fn grid(&self, side: usize) -> Grid {
        Grid { side, pixel: self.field / side as f64 }
    }

    /// A copy for an image of the square of side `field`.
    pub fn with_field(self, field: f64) -> Self {
        Self { field, ..self }
    }

    /// Tells if an object shows in rays that only one side of the detector reads: a full turn by a detector whose middle lies beside the axis, as in a half
    /// acquisition.
    pub fn is_seen_once(&self) -> bool {
        Edges::of(&self.scanner, &self.sinogram).once.is_some()
    }

    /// Side of the square that a full turn sees, by the longer side of the detector; [`Scanner::field`] if the angles make no full turn.
    pub fn seen_field(&self) -> f64 {
        let field = self.scanner.field();
        Sides::of(&self.scanner).map_or(field, |sides| 2.0 * sides.long * field / self.scanner.pixels as f64)
    }

    /// Keeps `count` of the angles, evenly spaced.
    ///
    /// # Errors
    /// [`Error::Option`] unless `count` is between 1 and the angles there are.
    pub fn with_angles(&self, count: usize) -> Result<Self> {
        let there = self.scanner.angles.len();
        if count == 0 || count > there {
            return Err(Error::Option { name: "angles", reason: format!("{count} is not between 1 and {there}") });
        }
        self.with_rows((0..count).map(|k| k * there / count).collect())
    }

    /// Keeps the angles within a range of degrees, both ends included: a scan of limited angle.
    ///
    /// # Errors
    /// [`Error::Option`] if no angle lies there.
    pub fn with_arc(&self, degrees: RangeInclusive<f64>) -> Result<Self> {
        let angles = &self.scanner.angles;
        let kept: Vec<usize> = (0..angles.len()).filter(|k| degrees.contains(&angles[*k])).collect();
        if kept.is_empty() {
            let [least, greatest] = self.scanner.arc();
            let (from, to) = degrees.into_inner();
            let reason =
                format!("no angle lies from {from} to {to}; the scan has those from {least} to {greatest}");
            return Err(Error::Option { name: "keep", reason });
        }
        self.with_rows(kept)
    }

    /// Keeps these rows of the sinogram.
    fn with_rows(&self, kept: Vec<usize>) -> Result<Self> {
        let pixels = self.scanner.pixels;
        let sinogram = kept.iter().flat_map(|k| &self.sinogram[k * pixels..(k + 1) * pixels]).copied().collect();
        let scan = Self::new(self.scanner.with_views(&kept), sinogram)?;
        // A field that nobody named is that of the views that are left.
        Ok(if self.field == self.scanner.field() { scan } else { scan.with_field(self.field) })
    }

    /// Takes the background out: readings of rays that met nothing, which a source brighter or darker than it was taken for moves off 0.
    /// It is the value within `-0.1 ..= 0.1` around which most readings lie, by a histogram of 200 bins.
    ///
    /// # Errors
    /// [`Error::Option`] if no reading lies there.
    pub fn without_background(self) -> Result<Self> {
        const NEAR: f64 = 0.1;
        const BINS: usize = 200;
        let width = 2.0 * NEAR / BINS as f64;
        let bin = |v: f64| (((v + NEAR) / width) as usize).min(BINS - 1);
        let near = || self.sinogram.iter().copied().filter(|v| v.abs() <= NEAR);
        let mut counts = [0usize; BINS];
        near().for_each(|v| counts[bin(v)] += 1);
        // The one nearest to 0 of equal bins.
        let off = |b: usize| (2 * b + 1).abs_diff(BINS);
        let peak = (0..BINS).max_by(|a, b| counts[*a].cmp(&counts[*b]).then(off(*b).cmp(&off(*a)))).unwrap_or(0);
        let around: Vec<f64> = near().filter(|v| bin(*v).abs_diff(peak) <= 1).collect();
        if around.is_empty() {
            let reason = format!("no reading lies between -{NEAR} and {NEAR}: no ray passes beside the object");
            return Err(Error::Option { name: "background", reason });
        }
        let background = around.iter().sum::<f64>() / around.len() as f64;
        let sinogram = self.sinogram.iter().map(|v| v - background).collect();
        Ok(Self { sinogram, ..self })
    }

    /// Replaces each reading `p` by `c_0 + c_1 p + c_2 p² + ...`: the correction of beam hardening, which makes thick parts read too
    /// little.
    ///
    /// # Errors
    /// [`Error::Option`] without coefficients, [`Error::NotFinite`] if a reading becomes none.
    pub fn with_polynomial(self, coefficients: &[f64]) -> Result<Self> {
        if coefficients.is_empty() {
            return Err(Error::Option { name: "polynomial", reason: "it has no coefficients".into() });
        }
        let corrected = |p: &f64| coefficients.iter().rev().fold(0.0, |sum, c| sum * p + c);
        let sinogram: Vec<f64> = self.sinogram.iter().map(corrected).collect();
        Ok(Self::new(self.scanner, sinogram)?.with_field(self.field))
    }

    /// Keeps pixels `first .. last` of the detector. A field that was set ([`Scan::with_field`]) stays; another follows the detector.
    ///
    /// # Errors
    /// [`Error::Option`] if that is none of those there are.
    pub fn cropped(&self, first: usize, last: usize) -> Result<Self> {
        let there = self.scanner.pixels;
        if first >= last || last > there {
            return Err(Error::Option { name: "crop", reason: format!("{first}:{last} of {there} pixels") });
        }
        let pixels = last - first;
        let offset = self.scanner.offset + first as f64 + 0.5 * (pixels as f64 - there as f64);
        let sinogram = self.sinogram.chunks(there).flat_map(|row| &row[first..last]).copied().collect();
        let cropped = Self::new(Scanner { pixels, offset, ..self.scanner.clone() }, sinogram)?;
        Ok(if self.field == self.scanner.field() { cropped } else { cropped.with_field(self.field) })
    }

    /// Takes out what single pixels read too much or too little at all angles, which makes rings: the readings of each pixel are sorted by
    /// size; each is replaced by the median of those of the same rank in `width` neighbouring pixels.
    ///
    /// # Errors
    /// [`Error::Option`] for a width that is even, or above the pixels there are.
    ///
    /// # Source
    /// N. T. Vo, R. C. Atwood and M. Drakopoulos, "Superior techniques for eliminating ring artifacts in X-ray micro-tomography", Opt. Express
    /// 26(22), 2018, algorithm 3.
    pub fn without_rings(self, width: usize) -> Result<Self> {
        let pixels = self.scanner.pixels;
        if width.is_multiple_of(2) || width > pixels {
            let reason = format!("{width} is no odd number of up to {pixels} pixels");
            return Err(Error::Option { name: "rings", reason });
        }
        let angles = self.scanner.angles.len();
        let column = |_, j: usize| -> Vec<(f64, usize)> {
            let mut column: Vec<(f64, usize)> = (0..angles).map(|k| (self.sinogram[k * pixels + j], k)).collect();
            column.sort_by(|a, b| a.0.total_cmp(&b.0));
            column
        };
        let columns = threads::map(0..pixels, 1, column);
        let median = |_, j: usize| -> Vec<f64> {
            // At the ends the window stays whole.
            let from = j.saturating_sub(width / 2).min(pixels - width);
            let mut window = Vec::with_capacity(width);
            let of_rank = |rank: usize| {
                window.clear();
                window.extend(columns[from..from + width].iter().map(|column| column[rank].0));
                *window.select_nth_unstable_by(width / 2, f64::total_cmp).1
            };
            (0..angles).map(of_rank).collect()
        };
        let medians = threads::map(0..pixels, 1, median);
        let mut sinogram = vec![0.0; self.sinogram.len()];
        for (j, (column, medians)) in columns.iter().zip(&medians).enumerate() {
            column.iter().zip(medians).for_each(|((_, k), median)| sinogram[k * pixels + j] = *median);
        }
        Ok(Self { sinogram, ..self })
    }

    /// Averages each `factor` neighbouring detector pixels into one; pixels left over at the end are dropped.
    ///
    /// # Errors
    /// [`Error::Option`] unless `factor` is between 1 and the pixels there are.
    pub fn binned(&self, factor: usize) -> Result<Self> {
        let there = self.scanner.pixels;
        if factor == 0 || factor > there {
            return Err(Error::Option { name: "bin", reason: format!("{factor} is not between 1 and {there}") });
        }
        let pixels = there / factor;
        // Dropped pixels move the middle of the detector.
        let offset = (self.scanner.offset - 0.5 * (there - pixels * factor) as f64) / factor as f64;
        let sinogram = self
            .sinogram
            .chunks(there)
            .flat_map(|row| row.chunks_exact(factor).map(|bin| bin.iter().sum::<f64>() / factor as f64))
            .collect();
        let pitch = self.scanner.pitch * factor as f64;
        Ok(Self::new(Scanner { pixels, pitch, offset, ..self.scanner.clone() }, sinogram)?.with_field(self.field))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imaging::{Beam, Noise, Phantom};

    fn parallel(angles: Vec<f64>) -> Scanner {
        Scanner { beam: Beam::Parallel, pixels: 5, pitch: 1.0, offset: 0.0, angles }
    }

    #[test]
    fn binning_and_thinning_keep_the_geometry() {
        let scanner = Scanner { pixels: 7, angles: vec![0.0, 10.0, 20.0, 30.0], ..parallel(vec![]) };
        let data: Vec<f64> = (0..28).map(f64::from).collect();
        let scan = Scan::new(scanner, data).expect("valid");
        let binned = scan.binned(2).expect("valid");
        assert_eq!(binned.scanner.pixels, 3);
        assert_eq!(&binned.sinogram[..4], [0.5, 2.5, 4.5, 7.5]);
        // The first bin's centre must stay between the first two pixels.
        let place = |s: &Scanner, k: f64| (k - 0.5 * (s.pixels as f64 - 1.0) + s.offset) * s.pitch;
        assert_eq!(place(&binned.scanner, 0.0), place(&scan.scanner, 0.5));
        let thin = scan.with_angles(2).expect("valid");
        assert_eq!(thin.scanner.angles, [0.0, 20.0]);
        assert_eq!(thin.sinogram[7], 14.0);
        assert!(scan.with_angles(5).is_err() && scan.binned(0).is_err());
        let limited = scan.with_arc(10.0..=20.0).expect("two angles");
        assert_eq!((&limited.scanner.angles[..], limited.sinogram[0]), (&[10.0, 20.0][..], 7.0));
        assert_eq!(scan.with_arc(-5.0..=100.0).expect("all"), scan);
        assert!(matches!(scan.with_arc(20.0..=10.0), Err(Error::Option { name: "keep", .. })));
    }

    #[test]
    fn readings_are_corrected() {
        // Most rays pass beside the object, and read 0.021 with a little noise.
        let data = vec![0.0211, 1.0, 2.0, 0.0209, 0.021, -0.08, 0.021, 1.5, 0.5, 0.0213];
        let scan = Scan::new(parallel(vec![0.0, 90.0]), data).expect("valid").with_field(3.0);
        let corrected = scan.clone().without_background().expect("a background");
        let background = (0.0211 + 0.0209 + 0.021 + 0.021 + 0.0213) / 5.0;
        approx::assert_relative_eq!(corrected.sinogram[2], 2.0 - background, max_relative = 1e-14);
        assert_eq!(corrected.field, 3.0);
        let inside = Scan::new(parallel(vec![0.0]), vec![1.0; 5]).expect("valid");
        assert!(matches!(inside.without_background(), Err(Error::Option { name: "background", .. })));
        let hardened = scan.clone().with_polynomial(&[0.5, 2.0, 0.25]).expect("finite");
        assert_eq!((hardened.sinogram[2], hardened.field), (0.5 + 4.0 + 1.0, 3.0));
        assert!(matches!(scan.clone().with_polynomial(&[]), Err(Error::Option { name: "polynomial", .. })));
        assert!(matches!(scan.with_polynomial(&[1.0, f64::INFINITY]), Err(Error::NotFinite { .. })));
    }

    #[test]
    fn cropping_keeps_every_ray_where_it_is() {
        let scan = Scan::new(parallel(vec![0.0, 30.0]), (0..10).map(f64::from).collect()).expect("valid");
        let cropped = scan.cropped(1, 3).expect("two pixels");
        assert_eq!(cropped.sinogram, [1.0, 2.0, 6.0, 7.0]);
        assert_eq!(cropped.scanner.ray(1, 0), scan.scanner.ray(1, 1));
        assert_eq!(cropped.scanner.ray(0, 1), scan.scanner.ray(0, 2));
        for (first, last) in [(2, 2), (3, 2), (0, 6)] {
            assert!(matches!(scan.cropped(first, last), Err(Error::Option { name: "crop", .. })));
        }
    }

    #[test]
    fn rings_go_and_the_object_stays() {
        use crate::imaging::{Noise, Phantom};
        let angles: Vec<f64> = (0..90).map(|k| 2.0 * f64::from(k)).collect();
        let scanner = Scanner { beam: Beam::Parallel, pixels: 128, pitch: 0.023, offset: 0.0, angles };
        let silent = Noise { photons: f64::INFINITY, gain: 0.0, seed: 1 };
        let clean = Phantom::plate().scan(&scanner, 2.0, silent).expect("a scan");
        let mut dirty = clean.clone();
        for (pixel, by) in [(30, 0.2), (64, -0.15), (65, 0.1), (90, 0.3)] {
            dirty.sinogram.iter_mut().skip(pixel).step_by(128).for_each(|reading| *reading += by);
        }
        let off = |scan: &Scan| -> f64 {
            scan.sinogram.iter().zip(&clean.sinogram).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
        };
        let before = off(&dirty);
        let after = off(&dirty.clone().without_rings(9).expect("a width"));
        let harm = off(&clean.clone().without_rings(9).expect("a width"));
        assert!(after < 0.5 * before && harm < 0.35 * before, "{before} {after} {harm}");
        for width in [0, 4, 129] {
            assert!(matches!(dirty.clone().without_rings(width), Err(Error::Option { name: "rings", .. })));
        }
        assert_eq!(dirty.clone().without_rings(1).expect("a width"), dirty);
    }

    #[test]
    fn readings_that_do_not_fit_the_scanner_are_refused() {
        assert!(matches!(Scan::new(parallel(vec![0.0]), vec![0.0; 4]), Err(Error::Shape { .. })));
        assert!(matches!(
            Scan::new(parallel(vec![0.0]), vec![f64::NAN; 5]),
            Err(Error::NotFinite { index: 0, .. })
        ));
    }

    #[test]
    fn counts_and_turned_arrays_show_themselves() {
        let scanner = Scanner { pixels: 64, ..parallel((0..90).map(|k| 2.0 * f64::from(k)).collect()) };
        let silent = Noise { photons: f64::INFINITY, gain: 0.0, seed: 1 };
        let scan =
            Phantom::plate().scan(&Scanner { pitch: 0.035, ..scanner.clone() }, 2.0, silent).expect("a scan");
        assert!(scan.looks_like_counts().is_none() && !scan.looks_transposed());
        // Lengths in pixels are as large as counts, and none.
        let scaled = |factor: f64| {
            let readings = scan.sinogram.iter().map(|v| (factor * v).max(0.0)).collect();
            Scan::new(scanner.clone(), readings).expect("a scan")
        };
        assert!(scaled(500.0).looks_like_counts().is_none());
        let counts = scan.sinogram.iter().map(|v| 2e4 * (-v).exp()).collect();
        assert!(Scan::new(scanner.clone(), counts).expect("a scan").looks_like_counts().is_some());
        let whole = Scan::new(scanner.clone(), vec![700.0; 64 * 90]).expect("a scan");
        assert_eq!(whole.looks_like_counts(), Some(700.0));
        let turned = (0..64 * 90).map(|at| scan.sinogram[(at % 90) * 64 + at / 90]).collect();
        let turned_scanner = Scanner { pixels: 90, ..parallel((0..64).map(f64::from).collect()) };
        assert!(Scan::new(turned_scanner, turned).expect("a scan").looks_transposed());
        // Pixels that are named are drawn from their neighbours.
        let bad = "3,2:5".parse().expect("a list");
        let (mended, repaired) = scan.clone().without_pixels(&bad, 1).expect("pixels");
        assert_eq!((repaired, mended.sinogram[3]), (90, scan.sinogram[2] + (scan.sinogram[4] - scan.sinogram[2])));
        assert_eq!(scan.clone().without_pixels(&bad, 2).expect("pixels").1, 180);
        assert!(scan.clone().without_pixels(&"64".parse().expect("a list"), 0).is_err());
        assert!(scan.without_pixels(&"0-63".parse().expect("a list"), 0).is_err());
    }
}
