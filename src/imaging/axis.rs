//! Search for the rotation axis: the place on the detector that it is seen at, from the readings alone.

use super::angles::shares;
use super::scan::Scan;
use super::scanner::Scanner;
use crate::error::{Error, Result};
use crate::fourier::{Complex, Fourier};
use crate::number::Real;
use crate::threads;

/// Pixels that the detector is binned to at first, at most.
const COARSEST: usize = 256;
/// Fewer pixels show no axis.
const FEWEST: usize = 16;
/// Angles that a spectrum is taken of, at most.
const MOST_ANGLES: usize = 256;
/// Share of the window that fades out at either side.
const FADING: f64 = 0.25;

impl Scan {
    /// Place on the detector, in pixels from the middle of the first one, that the rotation axis is seen at. It is searched for in the middle
    /// third, first on a binned detector, and found to about a tenth of a pixel if the readings show a whole object.
    ///
    /// - A full turn: rays that run the same way from either side must read the same. The axis is where the mean square of their
    ///   difference is least.
    /// - A parallel beam over half a turn: the readings are mirrored about the axis to make a full turn. The spectrum of a full turn is nearly
    ///   empty within a double wedge: an object within the distance `R` from the axis has, at the frequency `f` along the
    ///   detector, no more than `2 pi f R` oscillations in a turn. The axis is where least of the spectrum lies there.
    ///
    /// # Errors
    /// [`Error::Option`] if the angles do not cover half a turn (a parallel beam) or a full one (a fan), if the detector has fewer than 16
    /// pixels, and if no axis shows in the middle third; [`Error::Conflict`] for views by vectors.
    ///
    /// # Sources
    /// N. T. Vo, M. Drakopoulos, R. C. Atwood and C. Reinhard, "Reliable method for calculating the center of rotation in parallel-beam
    /// tomography", Opt. Express 22(16), 2014, with windows that fade out instead of overlapping halves; P. R. Edholm, R. M. Lewitt and B.
    /// Lindholm, "Novel properties of the Fourier decomposition of the sinogram", Proc. SPIE 671, 1986.
    pub fn axis(&self) -> Result<f64> {
        self.scanner.check_regular("axis")?;
        let refuse = |reason: String| Err(Error::Option { name: "axis", reason });
        let Scanner { pixels, beam, .. } = &self.scanner;
        if *pixels < FEWEST {
            return refuse(format!("{pixels} pixels are too few to search for it"));
        }
        let arc = shares(&self.scanner.angles, 360.0).1;
        if !self.shows_axis() {
            let needed = if beam.is_parallel() { "half a turn" } else { "a full turn" };
            let [from, to] = self.scanner.arc();
            return refuse(format!("angles from {from} to {to} do not show it, {needed} would: give it"));
        }
        let mut factor = 1;
        while pixels / factor > COARSEST {
            factor *= 2;
        }
        let mut found: Option<f64> = None;
        loop {
            let level = Level::new(self.binned(factor)?, arc);
            let size = level.scan.scanner.pixels;
            // Centre of a binned pixel in the pixels of this detector, and back.
            let middle = 0.5 * (factor as f64 - 1.0);
            let candidates: Vec<f64> = match found {
                None => (size / 3..=size - 1 - size / 3).map(|pixel| pixel as f64).collect(),
                Some(place) => (-2..=2).map(|k| (place - middle) / factor as f64 + f64::from(k)).collect(),
            };
            let (best, _) = level.least(&candidates);
            if found.is_none() && (best == 0 || best + 1 == candidates.len()) {
                return refuse("none shows in the middle third of the detector: give it".into());
            }
            if factor > 1 {
                found = Some(candidates[best] * factor as f64 + middle);
                factor /= 2;
                continue;
            }
            return match level.refined(candidates[best]) {
                Some(place) => Ok(place),
                None => refuse("the readings show none: give it".into()),
            };
        }
    }

    /// Tells if the angles show the rotation axis, so that [`Scan::axis`] may find it: half a turn of a parallel beam, a full one of a fan.
    pub fn shows_axis(&self) -> bool {
        if !self.scanner.is_regular() {
            return false;
        }
        let Some([_, length]) = shares(&self.scanner.angles, 360.0).1 else { return true };
        // The angle after the last one of half a turn is the first one again.
        let step = length / (self.scanner.angles.len().max(2) - 1) as f64;
        self.scanner.beam.is_parallel() && length + 1.5 * step >= 180.0
    }

    /// A copy whose rotation axis is seen at this place on the detector, in pixels from the middle of the first one.
    ///
    /// # Errors
    /// [`Error::Option`] if the place is no number; [`Error::Conflict`] for views by vectors, which see the axis at places of their own.
    pub fn with_axis(self, place: f64) -> Result<Self> {
        self.scanner.check_regular("axis")?;
        if !place.is_finite() {
            return Err(Error::Option { name: "axis", reason: format!("{place} is no place on the detector") });
        }
        let offset = 0.5 * (self.scanner.pixels as f64 - 1.0) - place;
        Ok(Self { scanner: Scanner { offset, ..self.scanner }, ..self })
    }
}

/// Tells if opposite rays of a full turn of a fan contradict each other, and would agree if the scanner turned the other way.
pub(super) fn turns_the_other_way<T: Real>(scanner: &Scanner, readings: &[T]) -> bool {
    /// Differences of squares below this are those of noise, and of rays between pixels.
    const SMALL: f64 = 1e-3;
    /// The other way has to be so many times better.
    const BETTER: f64 = 4.0;
    if !scanner.is_regular() {
        return false;
    }
    let arc = shares(&scanner.angles, 360.0).1;
    if scanner.beam.is_parallel() || arc.is_some() || scanner.pixels < FEWEST {
        return false;
    }
    let difference = |turned: bool| -> Result<f64> {
        let angles = scanner.angles.iter().map(|angle| if turned { -angle } else { *angle }).collect();
        let sinogram = readings.iter().map(|v| v.to_f64()).collect();
        let scan = Scan::new(Scanner { angles, ..scanner.clone() }, sinogram)?;
        let scan = scan.binned(scanner.pixels.div_ceil(COARSEST))?;
        let axis = scan.scanner.axis();
        Ok(Level::new(scan, None).difference(axis))
    };
    match (difference(false), difference(true)) {
        (Ok(given), Ok(turned)) => given > SMALL && given > BETTER * turned,
        _ => false,
    }
}

/// A scan at one size of its pixels.
struct Level {
    scan: Scan,
    /// Opposite rays are compared, or else the spectrum is looked at.
    full: bool,
    /// Angles in ascending order from the first of the arc on, with their numbers: of a full turn, or of half of one.
    order: Vec<(f64, usize)>,
    /// Rows at evenly spaced angles of half a turn.
    even: Vec<Vec<f64>>,
}

impl Level {
    /// A scan whose angles cover `arc`, or a full turn.
    fn new(scan: Scan, arc: Option<[f64; 2]>) -> Self {
        let (angles, full) = (&scan.scanner.angles, arc.is_none());
        let first = arc.map_or(0.0, |[first, _]| first);
        let within = angles.iter().enumerate().map(|(k, angle)| ((angle - first).rem_euclid(360.0), k));
        // The first half will do of more than half a turn.
        let mut order: Vec<(f64, usize)> = within.filter(|(angle, _)| full || *angle < 180.0).collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0));
        order.dedup_by(|a, b| a.0 == b.0);
        let mut level = Self { scan, full, order, even: Vec::new() };
        if !full {
            level.even = level.evenly_spaced();
        }
        level
    }

    fn row(&self, k: usize) -> &[f64] {
        let pixels = self.scan.scanner.pixels;
        &self.scan.sinogram[self.order[k].1 * pixels..][..pixels]
    }

    /// Rows at evenly spaced angles of half a turn, interpolated linearly; between the last one and the end of the half turn they go on as
    /// they went before.
    fn evenly_spaced(&self) -> Vec<Vec<f64>> {
        let count = self.order.len().next_power_of_two().min(MOST_ANGLES);
        let row = |k: usize| {
            let angle = 180.0 * k as f64 / count as f64;
            let right =
                self.order.partition_point(|(there, _)| *there <= angle).clamp(1, self.order.len().max(2) - 1);
            let (left, right) = (right - 1, right.min(self.order.len() - 1));
            let step = self.order[right].0 - self.order[left].0;
            let share = if step > 0.0 { ((angle - self.order[left].0) / step).min(2.0) } else { 0.0 };
            self.row(left).iter().zip(self.row(right)).map(|(a, b)| a + share * (b - a)).collect()
        };
        (0..count).map(row).collect()
    }

    /// The candidate that fits best, and how little each of them fits: not a number if nothing can be said.
    fn least(&self, candidates: &[f64]) -> (usize, Vec<f64>) {
        // One window for all of them.
        let last = self.scan.scanner.pixels as f64 - 1.0;
        let half = candidates.iter().fold(last, |half, place| half.min(*place).min(last - place)) - 1.0;
        let misfit =
            |place: &f64| if self.full { self.difference(*place) } else { self.within_wedge(*place, half) };
        let misfits = threads::numbers(candidates, 1, |_, place| misfit(place));
        let order = |k: &usize| if misfits[*k].is_nan() { f64::INFINITY } else { misfits[*k] };
        let best = (0..misfits.len()).min_by(|a, b| order(a).total_cmp(&order(b)));
        (best.unwrap_or(0), misfits)
    }

    /// The place near `place`, by steps of a quarter of a pixel and the parabola through the least and its neighbours.
    fn refined(&self, place: f64) -> Option<f64> {
        const STEP: f64 = 0.25;
        let candidates: Vec<f64> = (-6..=6).map(|k| place + STEP * f64::from(k)).collect();
        let (best, misfits) = self.least(&candidates);
        let inner = best.clamp(1, candidates.len() - 2);
        let [left, here, right] = [misfits[inner - 1], misfits[inner], misfits[inner + 1]];
        let bend = left - 2.0 * here + right;
        let flat = misfits.iter().any(|misfit| misfit.is_nan()) || bend <= 0.0;
        (!flat).then(|| candidates[inner] + (STEP * 0.5 * (left - right) / bend).clamp(-STEP, STEP))
    }

    /// Mean square difference of opposite rays over their mean square.
    fn difference(&self, place: f64) -> f64 {
        let scanner = &self.scan.scanner;
        let (pixels, count) = (scanner.pixels, self.order.len());
        let offset = scanner.offset + scanner.axis() - place;
        let centred = Scanner { offset, ..scanner.with_views(&[]) };
        let (mut differences, mut squares) = (0.0, 0.0);
        for k in 0..count {
            let row = self.row(k);
            for (pixel, value) in row.iter().enumerate() {
                let along = pixel as f64 - place;
                let mirrored = place - along;
                if !(1.0..pixels as f64 - 2.0).contains(&mirrored) {
                    continue;
                }
                let turn = 180.0 - 2.0 * centred.fan_angle(pixel as f64).to_degrees();
                let other = self.between((self.order[k].0 + turn).rem_euclid(360.0), mirrored);
                differences += (value - other) * (value - other);
                squares += value * value + other * other;
            }
        }
        differences / squares
    }

    /// The reading at an angle within a full turn and a place on the detector.
    fn between(&self, angle: f64, place: f64) -> f64 {
        let count = self.order.len();
        let right = self.order.partition_point(|(there, _)| *there <= angle);
        let (left, right) = ((right + count - 1) % count, right % count);
        let ahead = |from: f64, to: f64| (to - from).rem_euclid(360.0);
        let step = ahead(self.order[left].0, self.order[right].0);
        let share = if step > 0.0 { ahead(self.order[left].0, angle) / step } else { 0.0 };
        let [a, b] = [cubic(self.row(left), place), cubic(self.row(right), place)];
        a + share * (b - a)
    }

    /// Share of the spectrum of a full turn that lies where that of an object within `half` pixels of `place` does not.
    fn within_wedge(&self, place: f64, half: f64) -> f64 {
        if half < 2.0 {
            return f64::NAN;
        }
        let width = ((2.0 * half).ceil() as usize).next_power_of_two();
        let step = 2.0 * half / width as f64;
        let along = |j: usize| (j as f64 - 0.5 * (width as f64 - 1.0)) * step;
        let window = |j: usize| {
            let beyond = (along(j).abs() / half - (1.0 - FADING)) / FADING;
            if beyond > 0.0 { 0.5 + 0.5 * libm::cos(std::f64::consts::PI * beyond) } else { 1.0 }
        };
        let window: Vec<f64> = (0..width).map(window).collect();
        // Rows of half a turn, then those mirrored.
        let (count, kept) = (self.even.len(), width / 2 + 1);
        let rows = Fourier::new(width);
        let mut columns = vec![vec![[0.0; 2]; 2 * count]; kept];
        for (k, row) in self.even.iter().enumerate() {
            let sample = |j: usize| [cubic(row, place + along(j)) * window[j], 0.0];
            let mut values: Vec<Complex> = (0..width).map(sample).collect();
            let mut mirrored: Vec<Complex> = values.iter().rev().copied().collect();
            rows.forward(&mut values);
            rows.forward(&mut mirrored);
            for (f, column) in columns.iter_mut().enumerate() {
                column[k] = values[f];
                column[count + k] = mirrored[f];
            }
        }
        let turns = Fourier::new(2 * count);
        let slowest = (0.1 * count as f64).clamp(1.0, 20.0);
        let (mut outside, mut all) = (0.0, 0.0);
        for (f, column) in columns.iter_mut().enumerate() {
            turns.forward(column);
            let widest = 2.0 * std::f64::consts::PI * f as f64 / (width as f64 * step) * half;
            for (k, value) in column.iter().enumerate() {
                let oscillations = k.min(2 * count - k) as f64;
                let size = (value[0] * value[0] + value[1] * value[1]).sqrt();
                all += size;
                if oscillations > widest && oscillations > slowest {
                    outside += size;
                }
            }
        }
        outside / all
    }
}

/// Value of a row between its pixels: cubic by Catmull and Rom.
fn cubic(row: &[f64], place: f64) -> f64 {
    let last = row.len() as i64 - 1;
    let left = place.floor();
    let t = place - left;
    let at = |k: i64| row[(left as i64 + k).clamp(0, last) as usize];
    let [a, b, c, d] = [at(-1), at(0), at(1), at(2)];
    b + 0.5 * t * (c - a + t * (2.0 * a - 5.0 * b + 4.0 * c - d + t * (3.0 * (b - c) + d - a)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imaging::Beam;
    use crate::imaging::{Noise, Phantom};

    fn scanner(beam: Beam, offset: f64, pixels: usize, angles: Vec<f64>) -> Scanner {
        // The plate is 2 wide and lies within the detector.
        let pitch = match beam {
            Beam::Parallel => 2.9 / pixels as f64,
            _ => 4.9 / pixels as f64,
        };
        Scanner { beam, pixels, pitch, offset, angles }
    }

    fn turn(count: usize, arc: f64) -> Vec<f64> {
        (0..count).map(|k| 7.0 + arc * k as f64 / count as f64).collect()
    }

    #[test]
    fn the_axis_is_found_from_the_readings() {
        let fan = Beam::Fan { source_origin: 5.0, source_detector: 8.0 };
        for (beam, pixels, angles) in [
            (Beam::Parallel, 320, turn(180, 180.0)),
            (Beam::Parallel, 256, turn(60, 180.0)),
            (Beam::Parallel, 700, turn(90, -180.0)),
            (Beam::Parallel, 320, (0..=180).map(f64::from).collect()),
            (Beam::Parallel, 300, turn(200, 360.0)),
            (Beam::Parallel, 300, turn(240, 240.0)),
            (Beam::Parallel, 300, turn(180, 180.0).iter().map(|angle| (angle + 200.0).rem_euclid(360.0)).collect()),
            (fan.clone(), 320, turn(180, 360.0)),
            (fan, 600, turn(91, -360.0)),
            (Beam::Curved { source_origin: 5.0, source_detector: 8.0 }, 320, turn(180, 360.0)),
        ] {
            for offset in [0.0, 0.035 * pixels as f64, -0.055 * pixels as f64] {
                let given = scanner(beam.clone(), offset, pixels, angles.clone());
                let noise = Noise { photons: 1e4, gain: 0.0, seed: 3 };
                let scan = Phantom::plate().scan(&given, 2.0, noise).expect("a scan");
                let found = scan.axis().expect("an axis");
                let off = found - given.axis();
                assert!(off.abs() < 0.3, "{beam:?} {pixels} {offset}: {off}");
                let moved = scan.with_axis(found).expect("a place").scanner.offset;
                approx::assert_relative_eq!(moved, offset - off, epsilon = 1e-9);
            }
        }
    }

    #[test]
    fn scans_that_show_no_axis_say_so() {
        let fan = Beam::Fan { source_origin: 5.0, source_detector: 8.0 };
        let noise = Noise { photons: f64::INFINITY, gain: 0.0, seed: 3 };
        for (beam, pixels, angles) in [
            (Beam::Parallel, 64, turn(30, 120.0)),
            (fan, 64, turn(60, 180.0)),
            (Beam::Parallel, 8, turn(30, 180.0)),
        ] {
            let scan =
                Phantom::plate().scan(&scanner(beam.clone(), 0.0, pixels, angles), 2.0, noise).expect("a scan");
            assert!(matches!(scan.axis(), Err(Error::Option { name: "axis", .. })), "{beam:?}");
        }
        for angles in [turn(30, 180.0), turn(30, 360.0), vec![3.0]] {
            let empty = scanner(Beam::Parallel, 0.0, 64, angles);
            let scan = Scan::new(empty.clone(), vec![0.0; empty.rays()]).expect("a scan");
            assert!(matches!(scan.axis(), Err(Error::Option { name: "axis", .. })));
            assert!(matches!(scan.with_axis(f64::NAN), Err(Error::Option { name: "axis", .. })));
        }
    }
}
