//! Simulated scans: ellipses whose line integrals are known exactly, seen by an imperfect sensor.

use super::scan::Scan;
use super::scanner::{Grid, Scanner};
use crate::error::Result;
use crate::sparse::gallery::Random;

/// An ellipse of constant value, added to what lies below it. Lengths as fractions of half the image's side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ellipse {
    /// Centre.
    pub x: f64,
    /// Centre, upwards.
    pub y: f64,
    /// Half axis before rotation along x.
    pub a: f64,
    /// Half axis before rotation along y.
    pub b: f64,
    /// Rotation in degrees, anticlockwise.
    pub turn: f64,
    /// Value it adds.
    pub value: f64,
}

/// Faults of a real sensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// Photons that reach a detector pixel through air: fewer are noisier. Infinite for none.
    pub photons: f64,
    /// Standard deviation of the detector pixels' gain errors, which make rings.
    pub gain: f64,
    /// Seed of both.
    pub seed: u64,
}

/// A test object made of ellipses.
#[derive(Clone, Debug, PartialEq)]
pub struct Phantom {
    /// The ellipses, each added to the ones before.
    pub ellipses: Vec<Ellipse>,
}

impl Phantom {
    /// A plate with holes, bars and faint inclusions: edges, thin parts and low contrast in one picture.
    pub fn plate() -> Self {
        let ellipse = |x, y, a, b, turn, value| Ellipse { x, y, a, b, turn, value };
        Self {
            ellipses: vec![
                ellipse(0.0, 0.0, 0.88, 0.80, 12.0, 1.0),
                ellipse(0.0, 0.0, 0.80, 0.72, 12.0, -0.35),
                ellipse(-0.35, 0.28, 0.20, 0.12, 35.0, -0.65),
                ellipse(0.36, 0.30, 0.15, 0.15, 0.0, 0.55),
                ellipse(0.36, 0.30, 0.07, 0.07, 0.0, -0.8),
                ellipse(0.05, -0.12, 0.42, 0.035, -20.0, 0.6),
                ellipse(0.10, -0.27, 0.42, 0.018, -20.0, 0.6),
                ellipse(-0.42, -0.30, 0.13, 0.20, 0.0, 0.12),
                ellipse(0.45, -0.38, 0.12, 0.12, 0.0, -0.10),
                ellipse(-0.05, 0.52, 0.03, 0.03, 0.0, -0.65),
                ellipse(0.08, 0.52, 0.02, 0.02, 0.0, -0.65),
                ellipse(0.18, 0.52, 0.013, 0.013, 0.0, -0.65),
            ],
        }
    }

    /// The picture, each pixel the mean of 4 × 4 points in it.
    pub fn image(&self, grid: Grid) -> Vec<f64> {
        let shapes: Vec<Shape> = self.ellipses.iter().map(|e| Shape::new(e, 1.0)).collect();
        let points = 4 * grid.side;
        let mut image = vec![0.0; grid.pixels()];
        for i in 0..points {
            for j in 0..points {
                let x = (j as f64 + 0.5) / points as f64 * 2.0 - 1.0;
                let y = 1.0 - (i as f64 + 0.5) / points as f64 * 2.0;
                let value: f64 = shapes.iter().filter(|s| s.contains(x, y)).map(|s| s.value).sum();
                image[(i / 4) * grid.side + j / 4] += value / 16.0;
            }
        }
        image
    }

    /// Simulated readings of the object, which fills a square of side `field`: exact line integrals, then
    /// the sensor's noise and gain errors.
    ///
    /// # Errors
    /// [`Error::Option`](crate::Error::Option) for a scanner that cannot exist.
    pub fn scan(&self, scanner: &Scanner, field: f64, noise: Noise) -> Result<Scan> {
        scanner.validate()?;
        let half = 0.5 * field;
        let shapes: Vec<Shape> = self.ellipses.iter().map(|e| Shape::new(e, half)).collect();
        let mut random = Random::new(noise.seed);
        let gains: Vec<f64> =
            (0..scanner.pixels).map(|_| libm::log((1.0 + noise.gain * random.normal()).max(0.1))).collect();
        let mut sinogram = Vec::with_capacity(scanner.rays());
        for pose in scanner.poses() {
            for pixel in 0..scanner.pixels {
                let (from, way) = pose.ray(scanner.bundle(), scanner.place_of(pixel as f64));
                let exact: f64 = shapes.iter().map(|s| s.integral(from, way)).sum();
                // The count's standard deviation is its root; the logarithm divides it by the count.
                let deviation = libm::exp(0.5 * exact) / noise.photons.sqrt();
                sinogram.push(exact - gains[pixel] + deviation * random.normal());
            }
        }
        Scan::new(scanner.clone(), sinogram)
    }
}

/// An ellipse in the scanner's unit, with its rotation worked out.
struct Shape {
    centre: [f64; 2],
    axes: [f64; 2],
    sin: f64,
    cos: f64,
    value: f64,
}

impl Shape {
    fn new(ellipse: &Ellipse, half: f64) -> Self {
        let turn = ellipse.turn.to_radians();
        Self {
            centre: [ellipse.x * half, ellipse.y * half],
            axes: [ellipse.a * half, ellipse.b * half],
            sin: libm::sin(turn),
            cos: libm::cos(turn),
            // Values are attenuation per half side, so that a scan does not depend on the unit of length.
            value: ellipse.value / half,
        }
    }

    /// A point or direction in the ellipse's own frame, scaled to the unit circle.
    fn inward(&self, v: [f64; 2]) -> [f64; 2] {
        [(self.cos * v[0] + self.sin * v[1]) / self.axes[0], (-self.sin * v[0] + self.cos * v[1]) / self.axes[1]]
    }

    fn contains(&self, x: f64, y: f64) -> bool {
        let p = self.inward([x - self.centre[0], y - self.centre[1]]);
        p[0] * p[0] + p[1] * p[1] <= 1.0
    }

    /// Value times the length of the chord that a ray cuts out.
    fn integral(&self, from: [f64; 2], way: [f64; 2]) -> f64 {
        let p = self.inward([from[0] - self.centre[0], from[1] - self.centre[1]]);
        let d = self.inward(way);
        let (dd, pd, pp) = (d[0] * d[0] + d[1] * d[1], p[0] * d[0] + p[1] * d[1], p[0] * p[0] + p[1] * p[1]);
        let square = pd * pd - dd * (pp - 1.0);
        if square > 0.0 { self.value * 2.0 * square.sqrt() / dd } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imaging::Beam;

    const SILENT: Noise = Noise { photons: f64::INFINITY, gain: 0.0, seed: 1 };

    fn scanner() -> Scanner {
        Scanner {
            beam: Beam::Fan { source_origin: 3.0, source_detector: 5.0 },
            pixels: 81,
            pitch: 0.05,
            offset: 0.0,
            angles: (0..30).map(|k| f64::from(k) * 12.0).collect(),
        }
    }

    #[test]
    fn the_matrix_of_the_scan_agrees_with_exact_integrals() {
        // Two independent derivations of the same geometry: pixels traced by rays, and chords of ellipses.
        let grid = Grid { side: 200, pixel: 2.0 / 200.0 };
        let phantom = Phantom { ellipses: vec![Phantom::plate().ellipses[0]] };
        let exact = phantom.scan(&scanner(), 2.0, SILENT).expect("valid").sinogram;
        let image = phantom.image(grid);
        let a = scanner().matrix::<f64>(grid).expect("valid");
        let mut error = 0.0;
        for (row, exact) in exact.iter().enumerate() {
            let (columns, values) = a.row(row);
            let traced: f64 = columns.iter().zip(values).map(|(j, v)| v * image[*j as usize]).sum();
            error += (traced - exact).powi(2);
        }
        let norm: f64 = exact.iter().map(|v| v * v).sum();
        assert!((error / norm).sqrt() < 5e-3, "{}", (error / norm).sqrt());
    }

    #[test]
    fn noise_is_seeded_and_as_strong_as_asked() {
        let phantom = Phantom { ellipses: vec![] };
        let noise = Noise { photons: 1e4, gain: 0.0, seed: 3 };
        let one = phantom.scan(&scanner(), 2.0, noise).expect("valid").sinogram;
        assert_eq!(one, phantom.scan(&scanner(), 2.0, noise).expect("valid").sinogram);
        let deviation = (one.iter().map(|v| v * v).sum::<f64>() / one.len() as f64).sqrt();
        assert!((deviation - 0.01).abs() < 0.001, "{deviation}");
        let rings = phantom.scan(&scanner(), 2.0, Noise { gain: 0.02, ..SILENT }).expect("valid").sinogram;
        // A gain error belongs to the pixel: the same at every angle.
        assert_eq!(rings[..81], rings[81..162]);
        assert!(rings[..81].iter().any(|v| v.abs() > 0.01));
    }
}
