//! A disc that holds the object, found in the shadow that it throws.

use super::edges::solve;
use super::scan::Scan;
use super::scanner::Grid;
use crate::error::{Error, Result};

/// A disc in the plane of a scan, in the scanner's unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Disc {
    /// Middle: to the right and upwards from the axis of rotation.
    pub centre: [f64; 2],
    /// Radius.
    pub radius: f64,
}

/// Part of the largest reading above which a ray is said to meet the object.
const SHADOW: f64 = 0.08;

impl Disc {
    /// The disc whose tangents are the rims of the shadow, by least squares: in each projection the first and the last ray that meet
    /// something are tangents. A ray at the depth `d` within a disc of radius `r` and attenuation `m` reads `2 m sqrt(2 r d)`, so the squares
    /// of the outermost readings are continued to 0 along a line.
    ///
    /// For a round object; two projections will do that are not opposite ones of parallel rays, and any arc. Those whose rims lie off the detector
    /// are left out.
    ///
    /// # Errors
    /// [`Error::Option`] if fewer than two projections have a shadow with both rims on the detector.
    pub fn of_shadow(scan: &Scan) -> Result<Self> {
        let scanner = &scan.scanner;
        let largest = scan.sinogram.iter().copied().fold(0.0, f64::max);
        // Normal equations of `n.c - side r = n.f`, for a tangent through `f` with the normal `n`.
        let (mut matrix, mut right, mut tangents) = ([[0.0; 3]; 3], [0.0; 3], 0);
        for (angle, readings) in scan.sinogram.chunks(scanner.pixels).enumerate() {
            let reversed: Vec<f64> = readings.iter().rev().copied().collect();
            let rims = (rim(readings, SHADOW * largest), rim(&reversed, SHADOW * largest));
            let (Some(first), Some(last)) = rims else { continue };
            for (place, side) in [(first, 1.0), ((scanner.pixels - 1) as f64 - last, -1.0)] {
                let (from, way) = scanner.ray_at(angle, place);
                // Along the detector, so that the middle lies at the distance r ahead of the first rim.
                let normal = [way[1], -way[0]];
                let row = [normal[0], normal[1], -side];
                let value = normal[0] * from[0] + normal[1] * from[1];
                for i in 0..3 {
                    (0..3).for_each(|j| matrix[i][j] += row[i] * row[j]);
                    right[i] += row[i] * value;
                }
                tangents += 1;
            }
        }
        match solve(matrix, right).filter(|[_, _, radius]| tangents >= 4 && *radius > 0.0) {
            Some([x, y, radius]) => Ok(Self { centre: [x, y], radius }),
            None => {
                let reason =
                    "no disc: too few different projections show something with nothing on both sides of it".into();
                Err(Error::Option { name: "support", reason })
            }
        }
    }

    /// Pixels of `grid` whose middles lie within it, row by row.
    pub fn pixels(&self, grid: Grid) -> Vec<bool> {
        let middle = 0.5 * (grid.side as f64 - 1.0);
        let within = |at: usize| {
            let (i, j) = ((at / grid.side) as f64, (at % grid.side) as f64);
            let [dx, dy] = [(j - middle) * grid.pixel - self.centre[0], (middle - i) * grid.pixel - self.centre[1]];
            dx * dx + dy * dy <= self.radius * self.radius
        };
        (0..grid.pixels()).map(within).collect()
    }
}

/// Place between pixels at which a row of readings rises from 0; none if the first reading is above `least`, or none is, or the one after
/// the first that is rises no further.
fn rim(readings: &[f64], least: f64) -> Option<f64> {
    let first = readings.iter().position(|reading| *reading > least).filter(|first| *first > 0)?;
    let next = readings.get(first + 1).filter(|next| **next > readings[first])?.powi(2);
    let here = readings[first].powi(2);
    // Noise must not put it further off than the pixel before.
    Some(first as f64 - (here / (next - here)).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imaging::{Beam, Ellipse, Noise, Phantom, Scanner};

    #[test]
    fn the_disc_of_a_shadow_is_the_one_that_throws_it() {
        let disc = Ellipse { x: 0.11, y: -0.23, a: 0.6, b: 0.6, turn: 0.0, value: 1.5 };
        let hole = Ellipse { x: 0.2, y: -0.1, a: 0.2, b: 0.3, turn: 23.0, value: -1.5 };
        let phantom = Phantom { ellipses: vec![disc, hole] };
        for (beam, arc) in [
            (Beam::Parallel, 180.0),
            (Beam::Fan { source_origin: 4.0, source_detector: 6.0 }, 360.0),
            (Beam::Fan { source_origin: 4.0, source_detector: 6.0 }, 30.0),
        ] {
            let angles = (0..61).map(|k| 20.0 + arc * f64::from(k) / 61.0).collect();
            let scanner = Scanner { beam: beam.clone(), pixels: 400, pitch: 0.01, offset: 0.7, angles };
            for (photons, within) in [(f64::INFINITY, 2e-3), (1e5, 4e-3)] {
                let scan = phantom.scan(&scanner, 2.0, Noise { photons, gain: 0.0, seed: 5 }).expect("a scan");
                let found = Disc::of_shadow(&scan).expect("a disc");
                let off = (found.centre[0] - 0.11).hypot(found.centre[1] + 0.23).max((found.radius - 0.6).abs());
                assert!(off < within, "{beam:?} {arc} {photons}: {found:?}");
            }
        }
        let grid = Grid { side: 200, pixel: 0.01 };
        let pixels = Disc { centre: [0.11, -0.23], radius: 0.6 }.pixels(grid);
        let area = pixels.iter().filter(|within| **within).count() as f64 * 1e-4;
        assert!((area - std::f64::consts::PI * 0.36).abs() < 0.01, "{area}");
        // The middle of the disc lies to the right and below that of the picture.
        assert!(
            pixels[123 * 200 + 111] && !pixels[40 * 200 + 20] && pixels[182 * 200 + 111] && !pixels[50 * 200 + 111]
        );
    }

    #[test]
    fn what_throws_no_shadow_with_rims_has_no_disc() {
        let scanner = Scanner { beam: Beam::Parallel, pixels: 8, pitch: 1.0, offset: 0.0, angles: vec![0.0, 90.0] };
        let scan = |row: [f64; 8]| Scan::new(scanner.clone(), [row, row].concat()).expect("a scan");
        for row in [
            [0.0; 8],
            [1.0; 8],
            [1.0, 2.0, 3.0, 2.0, 1.0, 0.0, 0.0, 0.0],
            [2.0, 1.9, 2.5, 3.0, 2.0, 1.0, 0.0, 0.0],
            [0.0, 0.0, 2.0, 2.0, 0.0, 0.0, 0.0, 0.0],
        ] {
            assert!(matches!(Disc::of_shadow(&scan(row)), Err(Error::Option { name: "support", .. })), "{row:?}");
        }
        assert!(Disc::of_shadow(&scan([0.0, 0.0, 2.0, 3.0, 3.0, 2.0, 0.0, 0.0])).is_ok());
    }
}
