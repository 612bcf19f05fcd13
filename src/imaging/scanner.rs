//! Scanners as data, and the matrix of a scan. Coordinates and the rule of integration stand in [`imaging`](crate::imaging).

use std::fmt::{Display, Formatter, Result as FmtResult};

use super::angles::shares;
use super::pose::{Bundle, Pose};
use super::vectors::Vectors;
use crate::error::{Error, Result};
use crate::number::{Real, per_number};
use crate::solver::StopRule;
use crate::sparse::Csr;

/// Course of the rays.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Beam {
    /// Parallel rays, one per detector pixel.
    Parallel,
    /// Rays from a point to a flat detector; lengths in the same unit as [`Scanner::pitch`] (mm, for example).
    Fan {
        /// Distance from source to rotation centre.
        source_origin: f64,
        /// Distance from source to detector.
        source_detector: f64,
    },
    /// Rays from a point to a detector on a circle about it: pixels at even angles, [`Scanner::pitch`] along the circle.
    Curved {
        /// Distance from source to rotation centre.
        source_origin: f64,
        /// Distance from source to detector.
        source_detector: f64,
    },
    /// Source and detector of each view by vectors: see [`Scanner::of_vectors`].
    Vectors(Vectors),
}

impl Beam {
    /// Tells if rays are parallel.
    pub fn is_parallel(&self) -> bool {
        match self {
            Self::Parallel => true,
            Self::Fan { .. } | Self::Curved { .. } => false,
            Self::Vectors(vectors) => vectors.are_parallel(),
        }
    }

    /// Distances from the source to the rotation centre and to the detector, if they are the same in all views.
    pub fn distances(&self) -> Option<[f64; 2]> {
        match *self {
            Self::Parallel | Self::Vectors(_) => None,
            Self::Fan { source_origin, source_detector } | Self::Curved { source_origin, source_detector } => {
                Some([source_origin, source_detector])
            }
        }
    }
}

/// The name in files and options: `parallel`, `fan`, `curved`, `vectors`.
impl Display for Beam {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        f.write_str(match self {
            Self::Parallel => "parallel",
            Self::Fan { .. } => "fan",
            Self::Curved { .. } => "curved",
            Self::Vectors(_) => "vectors",
        })
    }
}

/// A scanner: beam, detector and angles. See [`imaging`](crate::imaging#coordinates) for its coordinates.
#[derive(Clone, Debug, PartialEq)]
pub struct Scanner {
    /// Course of the rays.
    pub beam: Beam,
    /// Detector pixels of one projection.
    pub pixels: usize,
    /// Distance between pixel centres on the detector; of vectors, in steps of theirs: 1, or more if pixels were binned.
    pub pitch: f64,
    /// Shift of the detector's middle along the detector, in pixels.
    pub offset: f64,
    /// Angle of each projection in degrees, anticlockwise. Of vectors, what follows from them.
    pub angles: Vec<f64>,
}

/// A square image: `side × side` pixels of length `pixel`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid {
    /// Pixels of a row, and rows.
    pub side: usize,
    /// Length of a pixel, in the scanner's unit.
    pub pixel: f64,
}

fn not_positive(name: &'static str, value: f64) -> Result<()> {
    if value.is_finite() && value > 0.0 {
        return Ok(());
    }
    Err(Error::Option { name, reason: format!("{value} is not a length above 0") })
}

per_number! {
    fn matrix<T>(scanner: &Scanner, grid: Grid) -> Result<Csr<T>> = Scanner::matrix_here;
}

impl Scanner {
    /// The scanner of views that vectors name, with so many detector pixels. Filtered back-projection and the search for the axis do not
    /// take it; all methods that iterate do.
    ///
    /// # Errors
    /// As [`Scanner::validate`].
    pub fn of_vectors(vectors: Vectors, pixels: usize) -> Result<Self> {
        let angles = vectors.angles();
        let scanner = Self { beam: Beam::Vectors(vectors), pixels, pitch: 1.0, offset: 0.0, angles };
        scanner.validate()?;
        Ok(scanner)
    }

    /// Tells if all views turn about one axis at the same distances; vectors need not.
    pub(super) fn is_regular(&self) -> bool {
        !matches!(self.beam, Beam::Vectors(_))
    }

    /// Fails on views by vectors: for what needs one axis and one distance.
    pub(super) fn check_regular(&self, name: &'static str) -> Result<()> {
        if self.is_regular() {
            return Ok(());
        }
        let reason = "views by vectors have no common axis, distance or angle, which this needs";
        Err(Error::Conflict { name, reason: reason.into() })
    }

    /// A copy with these views, and with the angles that follow from them.
    pub(super) fn with_vectors(&self, vectors: Vectors) -> Self {
        Self { angles: vectors.angles(), beam: Beam::Vectors(vectors), ..*self }
    }

    /// Number of rays: rows of the matrix.
    pub fn rays(&self) -> usize {
        self.angles.len() * self.pixels
    }

    /// Width of the detector as it is seen at the rotation centre: the side of the square of the image, unless another is asked for. A detector whose
    /// [`offset`](Self::offset) is not 0 does not cover all of that square in each projection.
    pub fn field(&self) -> f64 {
        let width = self.pixels as f64 * self.pitch;
        if let Beam::Vectors(vectors) = &self.beam {
            return width * vectors.pitch_at_origin();
        }
        match self.beam.distances() {
            None => width,
            Some([source_origin, source_detector]) => width * source_origin / source_detector,
        }
    }

    /// Distance between pixel centres on the detector as it is seen at the rotation centre.
    pub(super) fn pitch_at_origin(&self) -> f64 {
        self.field() / self.pixels as f64
    }

    /// Place on the detector, in pixels, that the rotation axis is seen at: `(pixels - 1) / 2 - offset`. Views by vectors see it at places of
    /// their own; this is the one of the detector's middle in them.
    pub fn axis(&self) -> f64 {
        0.5 * (self.pixels as f64 - 1.0) - self.offset
    }

    /// The rule that ends a method where the residual of readings by this scanner is most like white noise, along the angles.
    pub fn ncp(&self) -> StopRule {
        StopRule::Ncp { length: self.angles.len(), apart: self.pixels }
    }

    /// Tells if no angles are missing: half a turn of a parallel beam, a full one of a fan, without a gap of more than three times the
    /// median step.
    pub fn sees_all(&self) -> bool {
        let period = if self.beam.is_parallel() { 180.0 } else { 360.0 };
        shares(&self.angles, period).1.is_none()
    }

    /// Degrees that the angles cover, their gaps of up to three times the median step included, and those that show every edge: 180 and the angle of the
    /// fan.
    pub fn coverage(&self) -> [f64; 2] {
        let ends = [-0.5, self.pixels as f64 - 0.5].map(|end| self.fan_angle(end).abs().to_degrees());
        let needed = (180.0 + 2.0 * ends[0].max(ends[1])).min(360.0);
        let covered = match shares(&self.angles, 360.0).1 {
            None => 360.0,
            // An angle stands for a step.
            Some([_, length]) => length * (1.0 + 1.0 / (self.angles.len().max(2) - 1) as f64),
        };
        let half = self.beam.is_parallel() && self.sees_all();
        [if half { covered.max(180.0) } else { covered }, needed]
    }

    /// Fails on a source within a pixel of the image.
    pub(super) fn check_source(&self, grid: Grid) -> Result<()> {
        let (name, nearest) = match &self.beam {
            Beam::Parallel => return Ok(()),
            Beam::Fan { source_origin, .. } | Beam::Curved { source_origin, .. } => {
                ("source_origin", *source_origin)
            }
            Beam::Vectors(vectors) => ("vectors", vectors.nearest_source()),
        };
        if nearest <= grid.rim() {
            let reason = format!("{nearest} puts the source within a pixel of the image");
            return Err(Error::Option { name, reason });
        }
        Ok(())
    }

    /// The scanner of these views alone.
    pub(super) fn with_views(&self, kept: &[usize]) -> Self {
        if let Beam::Vectors(vectors) = &self.beam {
            return self.with_vectors(vectors.select(kept));
        }
        Self { beam: self.beam.clone(), angles: kept.iter().map(|k| self.angles[*k]).collect(), ..*self }
    }

    /// Direction of the detector in the middle of the arc of all angles, in degrees anticlockwise from the right: along it a scan of a
    /// short arc tells every edge, so that what else changes along it is streaks.
    pub fn middle(&self) -> f64 {
        let [least, greatest] = self.arc();
        0.5 * (least + greatest)
    }

    /// The least and the greatest angle.
    pub(super) fn arc(&self) -> [f64; 2] {
        let angles = || self.angles.iter().copied();
        [angles().fold(f64::INFINITY, f64::min), angles().fold(f64::NEG_INFINITY, f64::max)]
    }

    /// Fails on a scanner that cannot exist.
    ///
    /// # Errors
    /// [`Error::Option`] naming the length or angle.
    pub fn validate(&self) -> Result<()> {
        not_positive("pitch", self.pitch)?;
        if let Some([source_origin, source_detector]) = self.beam.distances() {
            not_positive("source_origin", source_origin)?;
            not_positive("source_detector", source_detector)?;
            if source_detector <= source_origin {
                return Err(Error::Option {
                    name: "source_detector",
                    reason: format!("{source_detector} puts the detector before the origin ({source_origin})"),
                });
            }
        }
        if self.pixels == 0 || self.angles.is_empty() {
            return Err(Error::Option { name: "scanner", reason: "no pixels or no angles".into() });
        }
        if let Some(angle) = self.angles.iter().find(|a| !a.is_finite()) {
            return Err(Error::Option { name: "angles", reason: format!("{angle} is no angle") });
        }
        if let Beam::Vectors(vectors) = &self.beam
            && vectors.rows().len() != self.angles.len()
        {
            let reason = format!("{} views for {} angles", vectors.rows().len(), self.angles.len());
            return Err(Error::Option { name: "vectors", reason });
        }
        if !self.offset.is_finite() {
            return Err(Error::Option { name: "offset", reason: "not a number".into() });
        }
        let ends = [0.0, self.pixels as f64 - 1.0];
        if matches!(self.beam, Beam::Curved { .. }) && !ends.iter().all(|end| self.fan_angle(*end).abs() < FURTHEST)
        {
            let reason = "a curved detector reaches less than a quarter turn to either side of its axis";
            return Err(Error::Option { name: "pixels", reason: reason.into() });
        }
        Ok(())
    }

    /// Angle of the ray to a place between pixels against the middle ray, in radians; 0 for a parallel beam.
    pub(super) fn fan_angle(&self, place: f64) -> f64 {
        let along = (place - self.axis()) * self.pitch;
        match self.beam {
            Beam::Parallel => 0.0,
            Beam::Fan { source_detector, .. } => libm::atan(along / source_detector),
            Beam::Curved { source_detector, .. } => along / source_detector,
            // The widest view counts.
            Beam::Vectors(ref vectors) => vectors.widest(along),
        }
    }

    /// A point on ray `pixel` of projection `angle`, and its direction (unit length).
    pub fn ray(&self, angle: usize, pixel: usize) -> ([f64; 2], [f64; 2]) {
        self.ray_at(angle, pixel as f64)
    }

    /// The ray to a place between pixels.
    pub(super) fn ray_at(&self, angle: usize, place: f64) -> ([f64; 2], [f64; 2]) {
        self.pose(angle).ray(self.bundle(), self.place_of(place))
    }

    /// Rays of a view.
    pub(super) fn bundle(&self) -> Bundle {
        match self.beam {
            Beam::Parallel => Bundle::Parallel,
            Beam::Fan { .. } => Bundle::Flat,
            Beam::Curved { .. } => Bundle::Curved,
            Beam::Vectors(ref vectors) if vectors.are_parallel() => Bundle::Parallel,
            Beam::Vectors(_) => Bundle::Flat,
        }
    }

    /// Source and detector of a view.
    fn pose(&self, view: usize) -> Pose {
        if let Beam::Vectors(vectors) = &self.beam {
            return vectors.pose(view);
        }
        Pose::at_angle(self.angles[view].to_radians(), self.beam.distances().unwrap_or([0.0, 1.0]))
    }

    /// Source and detector of each view.
    pub(super) fn poses(&self) -> Vec<Pose> {
        (0..self.angles.len()).map(|view| self.pose(view)).collect()
    }

    /// Place on the detector of a place between pixels, from the detector's place 0: what [`Pose::ray`] takes.
    pub(super) fn place_of(&self, pixel: f64) -> f64 {
        (pixel - 0.5 * (self.pixels as f64 - 1.0) + self.offset) * self.pitch
    }

    /// The matrix of the scan: row `angle * pixels + pixel` holds the weights of the image's pixels in that ray's
    /// line integral, in the unit of `grid.pixel`. Rows are generated one by one, as a sensor delivers them, in
    /// parallel.
    ///
    /// # Errors
    /// [`Error::Option`] for a scanner or grid that cannot exist, [`Error::Structure`] beyond 32-bit indices.
    ///
    /// # Cost
    /// Up to `2 side` entries per ray.
    pub fn matrix<T: Real>(&self, grid: Grid) -> Result<Csr<T>> {
        matrix(self, grid)
    }

    fn matrix_here<T: Real>(&self, grid: Grid) -> Result<Csr<T>> {
        self.validate()?;
        grid.validate()?;
        let (bundle, poses) = (self.bundle(), self.poses());
        Csr::from_rows(self.rays(), grid.side * grid.side, |row, entries| {
            let place = self.place_of((row % self.pixels) as f64);
            let (from, way) = poses[row / self.pixels].ray(bundle, place);
            trace(from, way, grid, entries);
            entries.sort_unstable_by_key(|e| e.0);
        })
    }
}

impl Grid {
    /// Number of pixels: columns of the matrix.
    pub fn pixels(&self) -> usize {
        self.side * self.side
    }

    /// Distance of the corners from the centre.
    pub(super) fn reach(&self) -> f64 {
        0.5 * self.side as f64 * self.pixel * std::f64::consts::SQRT_2
    }

    /// Distance from the centre to the corners of the image with the half pixels around it that rays are followed through.
    pub(super) fn rim(&self) -> f64 {
        Self { side: self.side + 1, ..*self }.reach()
    }

    /// Fails on a grid that cannot be: sides from 1 to 32768 pixels, of a length above 0.
    ///
    /// # Errors
    /// [`Error::Option`].
    pub fn validate(&self) -> Result<()> {
        if self.side == 0 || self.side > 1 << 15 {
            return Err(Error::Option {
                name: "size",
                reason: format!("{} is not between 1 and 32768", self.side),
            });
        }
        not_positive("pixel", self.pixel)
    }
}

/// Greatest angle of a ray to the middle one on a curved detector: a little less than a quarter turn.
pub(super) const FURTHEST: f64 = 1.5;

/// Shares of a pixel below this come from rounding of a ray that runs through pixel centres.
const ROUNDING: f64 = 1e-12;

/// A ray as Joseph's method sees it: image rows (steep rays) or columns (flat ones) are its lines.
pub(super) struct Line {
    pub(super) steep: bool,
    /// Place of the ray's known point: line, and position along that line.
    pub(super) start: f64,
    pub(super) other: f64,
    /// Places sideways per line.
    pub(super) slope: f64,
    /// Length of the ray within a line.
    pub(super) weight: f64,
}

impl Line {
    pub(super) fn new(from: [f64; 2], way: [f64; 2], grid: Grid) -> Self {
        let middle = 0.5 * (grid.side as f64 - 1.0);
        // In pixels: column j grows with x, row i against y.
        let (column, row) = (from[0] / grid.pixel + middle, middle - from[1] / grid.pixel);
        let (along, down) = (way[0], -way[1]);
        let steep = down.abs() > along.abs();
        let (start, other, speed, drift) =
            if steep { (row, column, down, along) } else { (column, row, along, down) };
        Self { steep, start, other, slope: drift / speed, weight: grid.pixel / speed.abs() }
    }
}

/// The entries of one ray, unsorted: `(pixel, weight)`.
fn trace<T: Real>(from: [f64; 2], way: [f64; 2], grid: Grid, entries: &mut Vec<(u32, T)>) {
    let Line { steep, start, other, slope, weight } = Line::new(from, way, grid);
    for step in 0..grid.side {
        let place = other + (step as f64 - start) * slope;
        let low = place.floor();
        let part = place - low;
        for (at, share) in [(low, 1.0 - part), (low + 1.0, part)] {
            if at >= 0.0 && at < grid.side as f64 && share > ROUNDING {
                let (i, j) = if steep { (step, at as usize) } else { (at as usize, step) };
                entries.push(((i * grid.side + j) as u32, T::from_f64(weight * share)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parallel(angles: Vec<f64>) -> Scanner {
        Scanner { beam: Beam::Parallel, pixels: 5, pitch: 1.0, offset: 0.0, angles }
    }

    #[test]
    fn axis_parallel_rays_sum_rows_and_columns() {
        let grid = Grid { side: 5, pixel: 1.0 };
        let a = parallel(vec![0.0, 90.0]).matrix::<f64>(grid).expect("valid");
        // At 0 degrees rays run along y: detector pixel k sees column k.
        for k in 0..5u32 {
            let (columns, values) = a.row(k as usize);
            assert_eq!(columns, [k, 5 + k, 10 + k, 15 + k, 20 + k]);
            assert_eq!(values, [1.0; 5]);
            // At 90 degrees the detector runs along y upwards, and row 0 is on top.
            let (columns, values) = a.row(5 + k as usize);
            let row = 4 - k;
            assert_eq!(columns, [5 * row, 5 * row + 1, 5 * row + 2, 5 * row + 3, 5 * row + 4]);
            for v in values {
                approx::assert_abs_diff_eq!(*v, 1.0, epsilon = 1e-12);
            }
        }
    }

    #[test]
    fn a_disc_casts_the_same_shadow_from_everywhere() {
        let grid = Grid { side: 64, pixel: 0.5 };
        let disc: Vec<f64> = (0..64 * 64)
            .map(|p| {
                let (x, y) = ((p % 64) as f64 - 31.5, (p / 64) as f64 - 31.5);
                f64::from(u8::from(x * x + y * y < 20.0 * 20.0))
            })
            .collect();
        let beam = Beam::Fan { source_origin: 60.0, source_detector: 90.0 };
        let angles: Vec<f64> = (0..8).map(|k| f64::from(k) * 45.0 + 10.0).collect();
        let scanner = Scanner { beam, pixels: 3, pitch: 0.1, offset: 0.0, angles };
        let a = scanner.matrix::<f64>(grid).expect("valid");
        for angle in 0..8 {
            let (columns, values) = a.row(angle * 3 + 1);
            let shadow: f64 = columns.iter().zip(values).map(|(j, v)| v * disc[*j as usize]).sum();
            // The central ray crosses the diameter, 40 pixels of 0.5.
            assert!((shadow - 20.0).abs() < 0.5, "{shadow} at {angle}");
        }
    }

    #[test]
    fn rays_to_a_curved_detector_are_those_to_the_places_of_a_flat_one() {
        let (source_origin, source_detector) = (60.0, 90.0);
        let curved = Scanner {
            beam: Beam::Curved { source_origin, source_detector },
            pixels: 41,
            pitch: 2.5,
            offset: 3.3,
            angles: vec![25.0],
        };
        let flat = Scanner { beam: Beam::Fan { source_origin, source_detector }, ..curved.clone() };
        for pixel in [0, 7, 40] {
            let along = source_detector * curved.fan_angle(pixel as f64).tan() / flat.pitch;
            let (wanted, found) = (flat.ray_at(0, along + flat.axis()), curved.ray(0, pixel));
            for (found, wanted) in [(found.0, wanted.0), (found.1, wanted.1)] {
                approx::assert_abs_diff_eq!(found[0], wanted[0], epsilon = 1e-12);
                approx::assert_abs_diff_eq!(found[1], wanted[1], epsilon = 1e-12);
            }
        }
    }

    #[test]
    fn scanners_that_cannot_exist_are_refused() {
        let good = parallel(vec![0.0]);
        let fan = |o, d| Scanner { beam: Beam::Fan { source_origin: o, source_detector: d }, ..good.clone() };
        for bad in [
            Scanner { pitch: 0.0, ..good.clone() },
            Scanner { pixels: 0, ..good.clone() },
            Scanner { angles: vec![], ..good.clone() },
            Scanner { angles: vec![f64::NAN], ..good.clone() },
            fan(10.0, 5.0),
            fan(-1.0, 5.0),
            Scanner { beam: Beam::Curved { source_origin: 1.0, source_detector: 1.2 }, ..good.clone() },
        ] {
            assert!(matches!(bad.validate(), Err(Error::Option { .. })), "{bad:?}");
        }
    }
}
