//! The projector of a scan: the product with its matrix, which is never stored. Kernels trace the rays, forwards and backwards.
//!
//! The weights are those of [`Scanner::matrix`], with slopes rounded to 2⁻³¹ of a pixel per line, so that a ray is misplaced by at most
//! 2⁻³¹ `side` pixels. In the transposed product each ray adds its reading to the pixels that it crosses, with the same weights, so that it is
//! exactly the transposed.
//!
//! Source: stock-koch-2009, variant OnTheFly, whose transposed product tests every ray for every pixel.

use std::ops::Range;
use std::sync::Arc;

use super::scanner::{Grid, Line, Scanner};
use crate::backend::linear::product::check_columns;
use crate::backend::tomography::rays::{MOST_PIXELS, MOST_RAYS, ONE, Ray, Rays, SharedScratch, StoredRays};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::magnitude::{self, Magnitude};
use crate::number::{Real, per_number};
use crate::operator::{LinearOperator, SharedOperator, check_shape, into_shared};
use crate::threads;
use crate::vector::Vector;

/// Places that fixed point reaches, in pixels.
const FURTHEST: f64 = (1u64 << 30) as f64;

impl Ray {
    fn of(line: &Line, side: usize) -> Self {
        let fixed = |value: f64| (value * ONE as f64).round() as i64;
        let slope = fixed(line.slope) & !1 | i64::from(line.steep);
        let start = fixed(line.other - line.start * line.slope);
        let lines = lines_between(start, slope, side, [-1, side as i64]);
        Self { start, slope, lines: (lines.start as u16, lines.end as u16), weight: line.weight }
    }

    /// Number of entries, and the sum of the squares of their shares of the weight.
    fn entries(&self, side: usize) -> (usize, f64) {
        let lines = usize::from(self.lines.0)..usize::from(self.lines.1);
        let part = |place: i64| (place & (ONE - 1)) as f64 / ONE as f64;
        // Both pixels of a line are there, but for some of the first and the last lines.
        let both = lines_between(self.start, self.slope, side, [0, side as i64 - 1]);
        let both = if both.is_empty() { lines.start..lines.start } else { both };
        let (mut count, mut square) = (2 * both.len(), 0.0);
        for k in both.clone() {
            let part = part(self.place(k as i64));
            square += 1.0 - 2.0 * part + 2.0 * part * part;
        }
        for k in (lines.start..both.start).chain(both.end..lines.end) {
            let place = self.place(k as i64);
            for (at, share) in [(place >> 32, 1.0 - part(place)), ((place >> 32) + 1, part(place))] {
                if (0..side as i64).contains(&at) {
                    count += 1;
                    square += share * share;
                }
            }
        }
        (count, square)
    }
}

/// Lines of an image of `side` lines on which the whole of `start + k slope` is from `least` to below `end`.
fn lines_between(start: i64, slope: i64, side: usize, [least, end]: [i64; 2]) -> Range<usize> {
    // Distances of line 0 from the first place and behind the last: k slope lies between them, in wider numbers than they are.
    let low = (i128::from(least) << 32) - i128::from(start);
    let high = (i128::from(end) << 32) - 1 - i128::from(start);
    let slope = i128::from(slope);
    let (first, last) = match slope.signum() {
        1 => (-(-low).div_euclid(slope), high.div_euclid(slope)),
        -1 => (-high.div_euclid(-slope), (-low).div_euclid(-slope)),
        _ if low <= 0 && high >= 0 => (0, side as i128),
        _ => (0, -1),
    };
    let first = first.clamp(0, side as i128) as usize;
    let last = (last + 1).clamp(first as i128, side as i128) as usize;
    first..last
}

per_number! {
    fn projectors<T>(device: &Device, parts: &[Scanner], grid: Grid) -> Result<Vec<Projector<T>>> = Projector::of_parts_here;
    fn product<T>(this: &Projector<T>, way: Way, columns: usize, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> = Projector::product_here;
}

/// Product with a projector: of an image, or of readings with the adjoint.
#[derive(Clone, Copy, Debug)]
enum Way {
    Forward,
    Backward,
}

/// The matrix of a scan, not stored: products trace every ray anew, and products with the adjoint spread every ray over the image. Any
/// solver takes it like a matrix. [`Scanner::projector`] makes it. Cloning is cheap and shares the memory.
///
/// ```
/// use residuum::imaging::{Beam, Noise, Phantom, Scanner};
/// use residuum::operator::{LinearOperator, adjoint_error};
/// use residuum::{Device, Method, Solver, Stopping, Vector};
///
/// let angles = (0..30).map(|k| 6.0 * f64::from(k)).collect();
/// let scanner = Scanner { beam: Beam::Parallel, pixels: 48, pitch: 2.0 / 48.0, offset: 0.0, angles };
/// let scan = Phantom::plate().scan(&scanner, 2.0, Noise { photons: 1e5, gain: 0.0, seed: 1 })?;
/// let device = Device::best()?;
/// let a = scanner.projector::<f32>(&device, scan.grid(32))?;
/// assert!(adjoint_error(&a, 1)? < 1e-5);
/// let b = Vector::from_slice(&device, &scan.readings::<f32>())?;
/// let mut x = Vector::zeros(&device, a.cols())?;
/// let report = Solver::new(&a, Method::Lsqr { damp: 0.0 }, Stopping::after(10))?.solve(&b, &mut x)?;
/// assert!(report.relative_residual() < 0.1);
/// # Ok::<(), residuum::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Projector<T: Real> {
    device: Device,
    rays: Arc<StoredRays<T>>,
    entries: usize,
    frobenius: f64,
    bytes: u64,
    /// Bytes that a product reads and writes beside its vectors, and one with the adjoint.
    read_bytes: [u64; 2],
}

impl<T: Real> Projector<T> {
    /// A projector for each of `parts`, which all make their products in the same memory. Checks before that all fit.
    pub(super) fn of_parts(device: &Device, parts: &[Scanner], grid: Grid) -> Result<Vec<Self>> {
        projectors(device, parts, grid)
    }

    fn of_parts_here(device: &Device, parts: &[Scanner], grid: Grid) -> Result<Vec<Self>> {
        let made: Vec<_> = parts.iter().map(|part| part.rays_for(device, grid)).collect::<Result<_>>()?;
        device.require(T::PRECISION)?;
        let (rays, others): (Vec<_>, Vec<_>) = made.into_iter().map(|(rays, n, norm)| (rays, (n, norm))).unzip();
        Self::of_rays(device, rays, &others)
    }

    fn of_rays(device: &Device, rays: Vec<Rays<T>>, others: &[(usize, Magnitude)]) -> Result<Vec<Self>> {
        let mut plan = rays.first().map_or([("", 0); 4], Rays::buffers);
        for (k, (_, bytes)) in rays.iter().skip(1).flat_map(|rays| rays.buffers().into_iter().enumerate()) {
            plan[k].1 = if k < 2 { plan[k].1 + bytes } else { bytes.max(plan[k].1) };
        }
        rays.iter().try_for_each(|rays| device.check_memory(0, &rays.buffers()))?;
        device.check_total(0, &plan)?;
        let scratch = SharedScratch::new(&device.place(), &rays)?;
        let number = T::PRECISION.bytes() as u64;
        let parts = rays.into_iter().zip(others).enumerate();
        let part = |(k, (rays, (entries, frobenius))): (usize, (Rays<T>, &(usize, Magnitude)))| {
            // The first counts the bytes of what all share.
            let plan = rays.buffers();
            let held = if k == 0 { &plan[..] } else { &plan[..2] };
            let (pixels, read) = (rays.side * rays.side, plan[0].1 + plan[1].1);
            log::info!("projector {} x {pixels}, {entries} entries", rays.angles * rays.pixels);
            Ok(Self {
                device: device.clone(),
                entries: *entries,
                frobenius: frobenius.to_f64(),
                bytes: held.iter().map(|part| part.1).sum(),
                // The copies of the image are written and read; of the sheets likewise.
                read_bytes: [read + 2 * plan[2].1, read + 2 * number * (pixels * rays.sheets()) as u64],
                rays: Arc::new(StoredRays::new(&device.place(), rays, &scratch)?),
            })
        };
        parts.map(part).collect()
    }

    /// Number of entries that the matrix would have.
    pub fn nnz(&self) -> usize {
        self.entries
    }

    /// Bytes that a product must move: the rays, copies of the image, both vectors.
    pub fn product_bytes(&self) -> u64 {
        self.read_bytes[0] + self.vector_bytes()
    }

    /// Bytes that a product with the adjoint must move: the rays, the sheets of the image, both vectors.
    pub fn transposed_product_bytes(&self) -> u64 {
        self.read_bytes[1] + self.vector_bytes()
    }

    fn vector_bytes(&self) -> u64 {
        ((self.rows() + self.cols()) * T::PRECISION.bytes()) as u64
    }

    /// A handle of this projector, in the same memory, used with the launch parameters of `device`: another handle of the device
    /// it lives on.
    ///
    /// # Errors
    /// [`Error::DeviceMismatch`].
    pub fn on(&self, device: &Device) -> Result<Self> {
        if !self.device.is_same(device) {
            let expected = device.info().name.clone();
            return Err(Error::DeviceMismatch { what: "the projector", expected });
        }
        Ok(Self { device: device.clone(), ..self.clone() })
    }

    fn product_here(&self, way: Way, columns: usize, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        check_columns(columns)?;
        let (rows, cols) = (self.rows() * columns, self.cols() * columns);
        let (run, rays) = (self.device.run::<T>(), self.device.backend().rays::<T>());
        match way {
            Way::Forward => {
                check_shape((rows, cols), x, y)?;
                rays.project(run, &self.rays, columns, x.memory(), y.memory_mut())
            }
            Way::Backward => {
                check_shape((cols, rows), x, y)?;
                rays.backproject(run, &self.rays, columns, x.memory(), y.memory_mut())
            }
        }
    }
}

into_shared!(Projector cloned);

impl<T: Real> LinearOperator<T> for Projector<T> {
    fn device(&self) -> &Device {
        &self.device
    }
    fn rows(&self) -> usize {
        self.rays.rays()
    }
    fn cols(&self) -> usize {
        self.rays.side * self.rays.side
    }
    fn apply(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        product(self, Way::Forward, 1, x, y)
    }
    fn apply_adjoint(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        product(self, Way::Backward, 1, x, y)
    }
    fn has_adjoint(&self) -> bool {
        true
    }
    fn takes_columns(&self) -> bool {
        true
    }
    fn apply_columns(&self, columns: usize, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        product(self, Way::Forward, columns, x, y)
    }
    fn apply_adjoint_columns(&self, columns: usize, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        product(self, Way::Backward, columns, x, y)
    }
    fn frobenius_norm(&self) -> Option<f64> {
        Some(self.frobenius)
    }
    fn bytes(&self) -> u64 {
        self.bytes
    }
    // Images are traced one after another.
    fn launches(&self, columns: usize) -> usize {
        self.rays.launches() * columns
    }
}

impl Scanner {
    /// The matrix of the scan, not stored: products trace every ray anew, and products with the transposed find the
    /// rays through every pixel. Any solver takes it like a stored matrix.
    ///
    /// # Errors
    /// [`Error::Option`] for a scanner or grid that cannot exist, a fan's source within a pixel of the image, rays that pass it 10⁹ pixels off;
    /// [`Error::Unsupported`], [`Error::Memory`].
    ///
    /// # Cost
    /// 24 to 28 bytes per ray on the device instead of `2 side (4 + size)`, twice; `4 side² size` for copies of the image, up to
    /// 2²⁴ numbers for sheets of it, at least an image, and 8 bytes for each pixel; 4 bytes for each angle and each
    /// tile, twice (2048 pixels on CPUs; on GPUs about 32 tiles side by side at most, 4 to 16 lines high).
    /// A product takes two launches for each of several vectors; with the transposed, two for as many sheets as are held at once.
    ///
    /// # Range
    /// Weights are kept over 2³²: in `f32`, readings times pixels below 1e-28 lose digits, and images above 1e28 overflow.
    pub fn projector<T: Real>(&self, device: &Device, grid: Grid) -> Result<Projector<T>> {
        Ok(Projector::of_parts(device, std::slice::from_ref(self), grid)?.swap_remove(0))
    }

    /// The rays for `device`, with the number of entries of their matrix and its norm.
    fn rays_for<T: Real>(&self, device: &Device, grid: Grid) -> Result<(Rays<T>, usize, Magnitude)> {
        self.validate()?;
        grid.validate()?;
        if self.pixels > MOST_PIXELS {
            let reason = format!("{} are more than {MOST_PIXELS}: store its matrix", self.pixels);
            return Err(Error::Option { name: "pixels", reason });
        }
        if self.rays() > MOST_RAYS {
            let reason = format!("{} rays are more than {MOST_RAYS}: trace fewer angles at once", self.rays());
            return Err(Error::Option { name: "angles", reason });
        }
        self.check_source(grid)?;
        let rays = self.traced(grid)?;
        let entries = threads::numbers(&rays[..], 64, |_, ray| ray.entries(grid.side));
        let nnz = entries.iter().map(|e| e.0).sum();
        let squares = |exponent| {
            let square = |(ray, entries): (&Ray, &(usize, f64))| {
                let weight = magnitude::scale(ray.weight, exponent);
                entries.1 * weight * weight
            };
            rays.iter().zip(&entries).map(square).sum()
        };
        let frobenius = Magnitude::of_squares(|| magnitude::largest(rays.iter().map(|ray| ray.weight)), squares);
        let many_items = device.tuning().work_group > 1 && device.tuning().single_items.is_none();
        Ok((Rays::new(&rays, self.pixels, grid.side, many_items), nnz, frobenius))
    }

    /// All rays in fixed point.
    fn traced(&self, grid: Grid) -> Result<Vec<Ray>> {
        let (bundle, poses) = (self.bundle(), self.poses());
        let ray = |_, i: usize| {
            let (from, way) = poses[i / self.pixels].ray(bundle, self.place_of((i % self.pixels) as f64));
            let line = Line::new(from, way, grid);
            let furthest = line.other.abs() + line.start.abs();
            let finite = [furthest, line.slope, line.weight].iter().all(|number| number.is_finite());
            if !finite || furthest > FURTHEST {
                let reason = format!("ray {i} has no direction, or passes 10⁹ pixels off the image");
                return Err(Error::Option { name: "scanner", reason });
            }
            Ok(Ray::of(&line, grid.side))
        };
        threads::try_map(0..self.rays(), 256, ray)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imaging::{Beam, Vectors};
    use crate::operator::adjoint_error;
    use crate::sparse::gallery::Random;
    use crate::vector::Vector;

    #[test]
    fn lines_within_the_image_are_those_found_one_by_one() {
        let mut random = Random::new(3);
        for k in 0..2000 {
            let side = 1 + k % 9;
            let start = ((random.uniform() - 0.5) * 30.0 * ONE as f64) as i64;
            let slope = if k % 7 == 0 { 0 } else { ((random.uniform() - 0.5) * 2.0 * ONE as f64) as i64 };
            for bounds in [[-1, side as i64], [0, side as i64 - 1]] {
                let within = |k: &usize| (bounds[0]..bounds[1]).contains(&((start + *k as i64 * slope) >> 32));
                let wanted: Vec<usize> = (0..side).filter(within).collect();
                let found: Vec<usize> = lines_between(start, slope, side, bounds).collect();
                assert_eq!(found, wanted, "{start} {slope} {side} {bounds:?}");
            }
        }
    }

    /// Scanners with rays of both kinds in an angle, coarse, fine and wide detectors, a source next to the image, and images
    /// narrower than a tile and wider.
    fn scanners() -> Vec<(Scanner, Grid)> {
        let fan = |origin: f64, detector: f64| Beam::Fan { source_origin: origin, source_detector: detector };
        let angles: Vec<f64> = (0..13).map(|k| f64::from(k) * 29.0 - 40.0).collect();
        let scanner = |beam, pixels, pitch| Scanner { beam, pixels, pitch, offset: 0.4, angles: angles.clone() };
        // A source on an ellipse, and a detector that is tilted.
        let view = |angle: &f64| {
            let (sin, cos) = angle.to_radians().sin_cos();
            [40.0 * sin, -33.0 * cos, -20.0 * sin, 20.0 * cos, 0.9 * cos - 0.2 * sin, 0.9 * sin + 0.2 * cos]
        };
        let vectors = Vectors::from_sources(angles.iter().map(view).collect()).expect("views");
        [
            (Scanner::of_vectors(vectors, 90).expect("a scanner"), 40),
            (scanner(Beam::Parallel, 9, 5.0), 1),
            (scanner(Beam::Parallel, 40, 0.9), 7),
            (scanner(fan(29.2, 60.0), 70, 1.7), 40),
            (scanner(fan(29.1, 30.0), 25, 1.1), 40),
            (scanner(fan(57.0, 58.0), 9, 20.0), 1),
            (scanner(fan(38.0, 39.0), 15, 7.0), 3),
            (scanner(fan(60.0, 90.0), 300, 0.2), 150),
            (scanner(fan(60.0, 90.0), 11, 7.0), 150),
            (scanner(Beam::Curved { source_origin: 35.0, source_detector: 90.0 }, 130, 1.4), 40),
        ]
        .map(|(scanner, side)| (scanner, Grid { side, pixel: 40.0 / side as f64 }))
        .to_vec()
    }

    fn noise(len: usize, seed: u64) -> Vec<f64> {
        let mut random = Random::new(seed);
        (0..len).map(|_| random.uniform() - 0.5).collect()
    }

    #[test]
    fn traced_products_are_those_of_the_matrix_whatever_is_held_at_once() {
        for (scanner, grid) in scanners() {
            let a = scanner.matrix::<f64>(grid).expect("a scanner");
            let (x, y) = (noise(a.cols(), 1), noise(a.rows(), 2));
            let wanted =
                [a.product(&x), a.transpose().product(&y)].map(|product| product.expect("lengths that fit"));
            let mut bits: Option<Vec<u64>> = None;
            for device in Device::select_all("").expect("the host at least").iter().filter(|d| d.info().fp64) {
                let rays = scanner.traced(grid).expect("rays near the image");
                for (held, narrow) in [(1, false), (2, true), (usize::MAX, false), (usize::MAX, true)] {
                    let mut rays = Rays::<f64>::new(&rays, scanner.pixels, grid.side, narrow);
                    rays.held = rays.held.min(held);
                    let traced = Projector::of_rays(device, vec![rays], &[(a.nnz(), a.frobenius())])
                        .expect("it fits")
                        .remove(0);
                    let vector = |data: &[f64]| Vector::from_slice(device, data).expect("it fits");
                    let (mut ax, mut aty) = (vector(&y), vector(&x));
                    traced.apply(&vector(&x), &mut ax).expect("a product");
                    traced.apply_adjoint(&vector(&y), &mut aty).expect("a product");
                    let found = [ax, aty].map(|v| v.to_vec().expect("a read"));
                    for (found, wanted) in found.iter().zip(&wanted) {
                        let most = wanted.iter().fold(0.0_f64, |most, v| most.max(v.abs()));
                        for (f, w) in found.iter().zip(wanted) {
                            assert!((f - w).abs() <= 1e-7 * most, "{scanner:?} {grid:?}: {f} {w}");
                        }
                    }
                    assert!(adjoint_error(&traced, 4).expect("a number") < 1e-14, "{scanner:?} {grid:?}");
                    let found: Vec<u64> = found.concat().iter().map(|v| v.to_bits()).collect();
                    assert_eq!(*bits.get_or_insert_with(|| found.clone()), found, "{} {held}", device.info().name);
                }
            }
        }
    }

    /// Slabs of an image that begin at multiples of eight lines have the blocks of the whole image.
    #[test]
    fn lines_are_added_in_blocks_that_begin_at_multiples_of_eight() {
        for (scanner, grid) in scanners() {
            let side = grid.side;
            let x = noise(side * side, 5);
            let pixel = |steep: bool, line: i64, place: i64| {
                let inside = (0..side as i64).contains(&place);
                let at = if steep { line * side as i64 + place } else { place * side as i64 + line };
                if inside { x[at as usize] } else { 0.0 }
            };
            let sum_of = |ray: &Ray| {
                let (mut total, mut block) = (0.0, [0.0, 0.0]);
                for line in i64::from(ray.lines.0)..i64::from(ray.lines.1) {
                    let place = ray.place(line);
                    let [here, next] = [0, 1].map(|k| pixel(ray.steep(), line, (place >> 32) + k));
                    block = [block[0] + here, block[1] + (place & (ONE - 1)) as f64 * (next - here)];
                    if line % 8 == 7 || line + 1 == i64::from(ray.lines.1) {
                        total += block[0] + block[1] / ONE as f64;
                        block = [0.0, 0.0];
                    }
                }
                ray.weight * total
            };
            let wanted: Vec<f64> = scanner.traced(grid).expect("rays near the image").iter().map(sum_of).collect();
            let device = Device::host();
            let traced = scanner.projector::<f64>(&device, grid).expect("a projector");
            let mut y = Vector::zeros(&device, traced.rows()).expect("it fits");
            traced.apply(&Vector::from_slice(&device, &x).expect("it fits"), &mut y).expect("a product");
            assert_eq!(y.to_vec().expect("a read"), wanted, "{scanner:?} {grid:?}");
        }
    }

    #[test]
    fn no_two_rays_of_a_class_begin_in_one_pixel() {
        let mut random = Random::new(11);
        for _ in 0..4000 {
            let side = 1 + (random.uniform() * 8.0) as usize;
            let grid = Grid { side, pixel: 1.0 };
            // Sources next to the image see it under up to 180 degrees.
            let source_origin = grid.rim() * (1.0 + 0.1 * random.uniform()) + 1e-9;
            let beam = Beam::Fan { source_origin, source_detector: source_origin * (1.0 + random.uniform()) };
            let (pixels, pitch) = (2 + (random.uniform() * 9.0) as usize, 8.0 * random.uniform() + 0.01);
            let scanner = Scanner {
                beam,
                pixels,
                pitch,
                offset: random.uniform() - 0.5,
                angles: vec![360.0 * random.uniform()],
            };
            let rays = scanner.traced(grid).expect("rays near the image");
            let fans = Rays::<f32>::new(&rays, pixels, side, true).fans;
            for (steep, fan) in [(false, &fans[..4]), (true, &fans[4..])] {
                for i in fan[0] as usize..fan[1] as usize {
                    for j in (i + fan[2] as usize..fan[1] as usize).step_by(fan[2] as usize) {
                        let [a, b] = [&rays[i], &rays[j]];
                        let both = a.lines.0.max(b.lines.0)..a.lines.1.min(b.lines.1);
                        let meet = |k: u16| a.place(k.into()) >> 32 == b.place(k.into()) >> 32;
                        let of_one_kind = a.steep() == steep && b.steep() == steep;
                        assert!(!of_one_kind || !both.clone().any(meet), "{scanner:?} {grid:?}: {i} {j}");
                    }
                }
            }
        }
    }

    #[test]
    fn products_of_one_projector_run_side_by_side() {
        let (scanner, grid) = scanners().remove(3);
        for device in Device::select_all("").expect("the host at least") {
            let traced = scanner.projector::<f32>(&device, grid).expect("a projector");
            let x = Vector::filled(&device, traced.cols(), 1.0f32).expect("it fits");
            let product = |k: usize| {
                let mut y = Vector::filled(&device, traced.rows(), k as f32).expect("it fits");
                let mut back = Vector::zeros(&device, traced.cols()).expect("it fits");
                traced.apply(&x, &mut y).expect("a product");
                traced.apply_adjoint(&y, &mut back).expect("a product");
                back.to_vec().expect("a read")
            };
            let wanted = product(0);
            // On the threads that the host's products share.
            assert!(threads::all(40, 1, |k| product(k) == wanted), "{}", device.info().name);
        }
    }

    #[test]
    fn rays_that_miss_the_image_give_zeros() {
        let (scanner, grid) = scanners().remove(2);
        let beside = Scanner { offset: 1e5, ..scanner };
        for device in Device::select_all("").expect("the host at least") {
            let traced = beside.projector::<f32>(&device, grid).expect("a projector");
            assert_eq!(traced.nnz(), 0);
            let ones = |n: usize| Vector::filled(&device, n, 1.0f32).expect("it fits");
            let (mut y, mut x) = (ones(traced.rows()), ones(traced.cols()));
            traced.apply(&ones(traced.cols()), &mut y).expect("a product");
            traced.apply_adjoint(&ones(traced.rows()), &mut x).expect("a product");
            for found in [y, x] {
                assert!(found.to_vec().expect("a read").iter().all(|v| *v == 0.0));
            }
        }
    }

    #[test]
    fn entries_are_counted_as_they_are_stored() {
        for (scanner, grid) in scanners() {
            let device = Device::host();
            let a = scanner.matrix::<f64>(grid).expect("a scanner");
            let traced = scanner.projector::<f64>(&device, grid).expect("a projector");
            // Shares of nearly 0 are not stored.
            let off = traced.nnz().abs_diff(a.nnz());
            assert!(off <= traced.nnz() / 100, "{} {} {scanner:?}", traced.nnz(), a.nnz());
            approx::assert_relative_eq!(
                traced.frobenius_norm().expect("known"),
                a.frobenius().to_f64(),
                max_relative = 1e-7
            );
        }
    }

    #[test]
    fn scanners_that_cannot_be_traced_are_refused() {
        let (device, grid) = (Device::host(), Grid { side: 40, pixel: 1.0 });
        let good = scanners().remove(3).0;
        let within = Beam::Fan { source_origin: 28.0, source_detector: 60.0 };
        for bad in [
            Scanner { beam: within, ..good.clone() },
            Scanner { pixels: 1 << 16, ..good.clone() },
            Scanner { beam: Beam::Fan { source_origin: 60.0, source_detector: 1e200 }, ..good.clone() },
            Scanner { beam: Beam::Parallel, pitch: 1e12, ..good.clone() },
            Scanner { pixels: 65_535, angles: vec![0.0; 16_400], ..good.clone() },
        ] {
            assert!(matches!(bad.projector::<f32>(&device, grid), Err(Error::Option { .. })), "{:?}", bad.beam);
        }
    }
}
