//! Scanners described by vectors: six numbers for each view, instead of an angle.

use std::path::Path;
use std::sync::Arc;

use super::pose::{Pose, length};
use crate::error::{Error, Result};
use crate::io;

/// Count of the numbers that describe a view.
const NUMBERS: usize = 6;

/// Lengths whose squares are in range.
const LENGTHS: std::ops::RangeInclusive<f64> = 1e-100..=1e100;
/// Sine of the least angle between the middle ray and the detector.
const EDGE_ON: f64 = 1e-6;

/// A scanner described view by view: six numbers tell where the rays of a view come from, and where its detector lies.
///
/// The source may move along any path. The detector may be shifted or tilted from view to view, as a calibration has measured it.
/// The numbers are those of ASTRA's `fanflat_vec` and `parallel_vec`. They are three pairs `(x, y)` in the plane of the slice, in one
/// unit of length, with `x` to the right and `y` up:
///
/// | numbers | rays from a point ([`Vectors::from_sources`]) | parallel rays ([`Vectors::from_directions`]) |
/// |---|---|---|
/// | 1, 2 | the source | direction of the rays; its sign and length do not matter |
/// | 3, 4 | middle of the detector | middle of the detector |
/// | 5, 6 | step from the first pixel's centre to the second's | step from the first pixel's centre to the second's |
///
/// [`Scanner::angles`](super::Scanner::angles) follow from the numbers. The angle `t` of a view with parallel rays is the one at which the
/// step runs along `(cos t, sin t)`. With rays from a point, the line from the source to the middle of the detector runs along
/// `(-sin t, cos t)`. Angles serve the choice of views and words about the scan; rays are made from the numbers alone.
///
/// ```
/// use residuum::imaging::{Grid, Noise, Phantom, Scanner, System, Vectors};
/// use residuum::{Device, Format};
///
/// // 63 views by a source on an ellipse, and a detector of 64 pixels of width 0.1 on the other side of the object.
/// let view = |k: u32| {
///     let (sin, cos) = (f64::from(k) * 0.1).sin_cos();
///     [4.0 * sin, -5.0 * cos, -2.0 * sin, 2.0 * cos, 0.1 * cos, 0.1 * sin]
/// };
/// let scanner = Scanner::of_vectors(Vectors::from_sources((0..63).map(view).collect())?, 64)?;
/// let scan = Phantom::plate().scan(&scanner, 2.0, Noise { photons: 1e5, gain: 0.0, seed: 1 })?;
/// let system = System::<f32>::new(&Device::host(), &scanner, Grid { side: 32, pixel: 2.0 / 32.0 }, Format::Auto)?;
/// assert_eq!(system.operator().rows(), scan.sinogram.len());
/// # Ok::<(), residuum::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Vectors {
    are_parallel: bool,
    rows: Arc<[[f64; NUMBERS]]>,
}

impl Vectors {
    /// Rays from a point in each view.
    ///
    /// # Errors
    /// [`Error::Option`] with the view, for numbers that are not finite, a source on the middle of its detector, a step of length 0, rays along the
    /// detector, and if the origin is not between source and detector.
    pub fn from_sources(rows: Vec<[f64; NUMBERS]>) -> Result<Self> {
        Self::new(false, rows)
    }

    /// Parallel rays in each view.
    ///
    /// # Errors
    /// [`Error::Option`] with the view, for numbers that are not finite, a direction or step of length 0, and rays along the detector.
    pub fn from_directions(rows: Vec<[f64; NUMBERS]>) -> Result<Self> {
        Self::new(true, rows)
    }

    /// Reads a text with six numbers a line, or a NumPy array of `views x 6`.
    ///
    /// # Errors
    /// As [`io::read_table`] and [`Vectors::from_sources`].
    pub fn read(path: impl AsRef<Path>, are_parallel: bool) -> Result<Self> {
        let numbers = io::read_table(path.as_ref(), NUMBERS)?;
        Self::new(are_parallel, numbers.as_chunks().0.to_vec())
    }

    pub(super) fn new(are_parallel: bool, rows: Vec<[f64; NUMBERS]>) -> Result<Self> {
        let vectors = Self { are_parallel, rows: rows.into() };
        for view in 0..vectors.rows.len() {
            if let Some(fault) = vectors.fault(view) {
                return Err(Error::Option { name: "vectors", reason: format!("view {view}: {fault}") });
            }
        }
        Ok(vectors)
    }

    /// Reason why the numbers of a view describe none.
    fn fault(&self, view: usize) -> Option<&'static str> {
        let row = &self.rows[view];
        if row.iter().any(|number| !number.is_finite()) {
            return Some("not all of its numbers are finite");
        }
        let pose = self.pose(view);
        let way = if self.are_parallel { [row[0], row[1]] } else { pose.toward };
        let [step, far] = [pose.across, way].map(length);
        if !LENGTHS.contains(&step) {
            return Some("the step from pixel to pixel has no length, or one out of range");
        }
        if !LENGTHS.contains(&far) {
            return Some(if self.are_parallel {
                "the direction of its rays has no length, or one out of range"
            } else {
                "its source lies on the middle of its detector, or out of range"
            });
        }
        let unit = way.map(|part| part / far);
        if (pose.across[0] * unit[1] - pose.across[1] * unit[0]).abs() < EDGE_ON * step {
            return Some("its rays run along its detector");
        }
        let depth = -(pose.source[0] * unit[0] + pose.source[1] * unit[1]);
        let between = depth > 0.0 && depth < far;
        if !self.are_parallel && !between {
            return Some("the origin, about which the picture lies, is not between its source and its detector");
        }
        None
    }

    /// The numbers of each view.
    pub fn rows(&self) -> &[[f64; NUMBERS]] {
        &self.rows
    }

    /// Tells if rays are parallel.
    pub fn are_parallel(&self) -> bool {
        self.are_parallel
    }

    pub(super) fn pose(&self, view: usize) -> Pose {
        let [a, b, x, y, u, v] = self.rows[view];
        let (middle, across) = ([x, y], [u, v]);
        if self.are_parallel {
            let far = length([a, b]);
            return Pose { source: middle, toward: [a / far, b / far], across };
        }
        Pose { source: [a, b], toward: [x - a, y - b], across }
    }

    fn poses(&self) -> impl Iterator<Item = Pose> {
        (0..self.rows.len()).map(|view| self.pose(view))
    }

    /// Angles of the views in degrees. If each view is within a quarter turn of the one before, they go on from it, so that a path has no jumps;
    /// else they are from 0 to 360.
    pub(super) fn angles(&self) -> Vec<f64> {
        let angle = |pose: Pose| {
            let [x, y] = if self.are_parallel { pose.across } else { [pose.toward[1], -pose.toward[0]] };
            libm::atan2(y, x).to_degrees()
        };
        let mut angles: Vec<f64> = self.poses().map(angle).collect();
        let step = |pair: &[f64]| (pair[1] - pair[0] + 180.0).rem_euclid(360.0) - 180.0;
        if angles.windows(2).any(|pair| step(pair).abs() > 90.0) {
            return angles.iter().map(|angle| angle.rem_euclid(360.0)).collect();
        }
        for k in 1..angles.len() {
            angles[k] += 360.0 * ((angles[k - 1] - angles[k]) / 360.0).round();
        }
        angles
    }

    /// These views alone.
    pub(super) fn select(&self, kept: &[usize]) -> Self {
        Self { rows: kept.iter().map(|k| self.rows[*k]).collect(), ..*self }
    }

    /// The views at the negative of their angles: all is mirrored at the vertical axis, and pixels run the other way.
    pub(super) fn turned(&self) -> Self {
        let turned = |[a, b, x, y, u, v]: &[f64; NUMBERS]| [-a, *b, -x, *y, *u, -v];
        Self { rows: self.rows.iter().map(turned).collect(), ..*self }
    }

    /// Least distance of pixel centres over all views, as it is seen at the origin: across the middle ray, and nearer than the detector if
    /// rays come from a point.
    pub(super) fn pitch_at_origin(&self) -> f64 {
        let pitch = |pose: Pose| {
            let far = length(pose.toward);
            let unit = pose.toward.map(|part| part / far);
            let step = (pose.across[0] * unit[1] - pose.across[1] * unit[0]).abs();
            let depth = -(pose.source[0] * unit[0] + pose.source[1] * unit[1]);
            if self.are_parallel { step } else { step * (depth / far).abs() }
        };
        self.poses().map(pitch).fold(f64::INFINITY, f64::min)
    }

    /// Least distance of a source from the origin, infinite for parallel rays.
    pub(super) fn nearest_source(&self) -> f64 {
        let distances =
            self.poses().map(|pose| if self.are_parallel { f64::INFINITY } else { length(pose.source) });
        distances.fold(f64::INFINITY, f64::min)
    }

    /// Greatest angle, in radians, of the ray to a place on the detector to the ray to its middle.
    pub(super) fn widest(&self, place: f64) -> f64 {
        if self.are_parallel {
            return 0.0;
        }
        let angle = |pose: Pose| {
            let [x, y] = [0, 1].map(|k| pose.toward[k] + place * pose.across[k]);
            let [u, v] = pose.toward;
            libm::atan2(u * y - v * x, u * x + v * y).abs()
        };
        self.poses().map(angle).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imaging::{Beam, Flip, Geometry, Grid, Noise, Phantom, Scan, Scanner};

    const SILENT: Noise = Noise { photons: f64::INFINITY, gain: 0.0, seed: 0 };

    /// A scanner, and the vectors of its views.
    fn pairs() -> Vec<(Scanner, Scanner)> {
        let angles: Vec<f64> = (0..23).map(|k| 20.0 + 16.0 * f64::from(k)).collect();
        let fan = Beam::Fan { source_origin: 4.0, source_detector: 6.5 };
        let mut found = Vec::new();
        for beam in [Beam::Parallel, fan] {
            let scanner = Scanner { beam, pixels: 40, pitch: 0.09, offset: 1.3, angles: angles.clone() };
            let row = |angle: &f64| {
                let (sin, cos) = (libm::sin(angle.to_radians()), libm::cos(angle.to_radians()));
                let [far, depth] = match scanner.beam.distances() {
                    None => [2.0, 0.0],
                    Some([origin, detector]) => [origin, detector - origin],
                };
                [far * sin, -far * cos, -depth * sin, depth * cos, scanner.pitch * cos, scanner.pitch * sin]
            };
            let rows = angles.iter().map(row).collect();
            let vectors = Vectors::new(scanner.beam.is_parallel(), rows).expect("vectors");
            let of_vectors = Scanner::of_vectors(vectors, 40).expect("a scanner");
            let of_vectors = Scanner { offset: scanner.offset, ..of_vectors };
            found.push((scanner, of_vectors));
        }
        found
    }

    fn near(a: &[f64], b: &[f64], within: f64) {
        assert_eq!(a.len(), b.len());
        a.iter().zip(b).for_each(|(a, b)| approx::assert_abs_diff_eq!(*a, *b, epsilon = within));
    }

    fn readings(scanner: &Scanner) -> Vec<f64> {
        Phantom::plate().scan(scanner, 2.0, SILENT).expect("a scan").sinogram
    }

    #[test]
    fn vectors_of_a_scanner_are_that_scanner() {
        for (scanner, of_vectors) in pairs() {
            near(&of_vectors.angles, &scanner.angles, 1e-12);
            near(&readings(&of_vectors), &readings(&scanner), 1e-12);
            let grid = Grid { side: 24, pixel: 2.0 / 24.0 };
            let [a, b] = [&scanner, &of_vectors].map(|scanner| scanner.matrix::<f64>(grid).expect("a matrix"));
            assert_eq!(a.indices(), b.indices());
            near(a.values(), b.values(), 1e-12);
            approx::assert_relative_eq!(of_vectors.field(), scanner.field(), max_relative = 1e-12);
            near(&of_vectors.coverage(), &scanner.coverage(), 1e-9);
            assert_eq!(of_vectors.sees_all(), scanner.sees_all());
        }
    }

    #[test]
    fn scans_by_vectors_are_cropped_binned_and_flipped_like_others() {
        for (scanner, of_vectors) in pairs() {
            let sinogram = readings(&scanner);
            let scans = [scanner, of_vectors].map(|scanner| Scan::new(scanner, sinogram.clone()).expect("a scan"));
            let changes: [&dyn Fn(&Scan) -> Scan; 7] = [
                &|scan| scan.cropped(3, 31).expect("pixels"),
                &|scan| scan.binned(2).expect("pixels"),
                &|scan| scan.cropped(1, 40).and_then(|scan| scan.binned(3)).expect("pixels"),
                &|scan| scan.with_angles(7).expect("angles"),
                &|scan| scan.clone().flipped(Flip::Pixels),
                &|scan| scan.clone().flipped(Flip::Angles),
                &|scan| scan.clone().flipped(Flip::Picture),
            ];
            for (k, change) in changes.iter().enumerate() {
                let [a, b] = [&scans[0], &scans[1]].map(change);
                assert_eq!(a.sinogram, b.sinogram);
                let [a, b] = [a, b].map(|scan| readings(&scan.scanner));
                let apart = a.iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                assert!(a.len() == b.len() && apart <= 1e-11, "change {k}: {apart}");
            }
        }
    }

    #[test]
    fn files_of_vectors_are_read_back_bit_for_bit() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("geometry.toml");
        for (_, scanner) in pairs() {
            let scanner = Scanner { offset: 0.7, pitch: 2.0, ..scanner };
            Geometry::of(&scanner).write(&path).expect("written");
            let read = Geometry::read(&path).expect("a geometry");
            assert_eq!(read.scanner(23, 40).expect("a scanner"), scanner);
            assert!(read.scanner(22, 40).is_err());
        }
        // Vectors in a file beside it.
        let (_, scanner) = pairs().remove(1);
        let scanner = Scanner { offset: 0.0, ..scanner };
        let Beam::Vectors(vectors) = &scanner.beam else { panic!("vectors") };
        let lines: Vec<String> = vectors.rows().iter().map(|row| row.map(|v| v.to_string()).join(", ")).collect();
        std::fs::write(folder.path().join("poses.csv"), format!("# views\n{}\n", lines.join("\n")))
            .expect("written");
        std::fs::write(&path, "beam = \"vectors\"\nvectors = \"poses.csv\"\n").expect("written");
        assert_eq!(Geometry::read(&path).expect("a geometry").scanner(23, 40).expect("a scanner"), scanner);
    }

    #[test]
    fn angles_go_on_from_view_to_view_unless_they_jump() {
        let angles = |given: &[f64]| {
            let row = |angle: &f64| {
                let (sin, cos) = angle.to_radians().sin_cos();
                [4.0 * sin, -4.0 * cos, -2.0 * sin, 2.0 * cos, 0.1 * cos, 0.1 * sin]
            };
            Vectors::from_sources(given.iter().map(row).collect()).expect("views").angles()
        };
        near(&angles(&[-30.0, -10.0, 15.0]), &[-30.0, -10.0, 15.0], 1e-12);
        near(&angles(&[170.0, 200.0, 280.0, 350.0, 400.0]), &[170.0, 200.0, 280.0, 350.0, 400.0], 1e-12);
        near(&angles(&[0.0, 222.5, 445.0, 667.5]), &[0.0, 222.5, 85.0, 307.5], 1e-12);
    }

    #[test]
    fn what_is_no_view_is_refused() {
        let good = [4.0, 0.0, -2.0, 0.0, 0.0, 0.1];
        let refused = |row: [f64; 6], words: &str| {
            let error = Vectors::from_sources(vec![good, row]).expect_err("no view").to_string();
            assert!(error.contains("view 1") && error.contains(words), "{error}");
        };
        refused([f64::NAN, 0.0, 0.0, 0.0, 0.0, 1.0], "finite");
        refused([4.0, 0.0, 4.0, 0.0, 0.0, 0.1], "its source lies on the middle");
        refused([4.0, 0.0, -2.0, 0.0, 0.0, 0.0], "step from pixel to pixel");
        refused([4.0, 0.0, -2.0, 0.0, 1e200, 0.1], "out of range");
        refused([4.0, 0.0, -2.0, 0.0, 0.5, 0.0], "rays run along its detector");
        refused([4.0, 0.0, 6.0, 0.0, 0.0, 0.1], "not between its source and its detector");
        refused([4.0, 0.0, 1.0, 0.0, 0.0, 0.1], "not between its source and its detector");
        let error = Vectors::from_directions(vec![[0.0, 0.0, 0.0, 0.0, 1.0, 0.0]]).expect_err("no direction");
        assert!(error.to_string().contains("direction of its rays"), "{error}");
        assert!(matches!(
            Scanner::of_vectors(Vectors::from_sources(vec![]).expect("none"), 4),
            Err(Error::Option { .. })
        ));
    }
}
