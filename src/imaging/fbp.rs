//! Filtered back-projection: a picture in one step, and a start for methods that iterate.

use std::fmt;

use super::angles::shares;
use super::edges::{Edges, Sides};
use super::scanner::{Beam, FURTHEST, Grid, Scanner};
use crate::backend::tomography::fbp::{self, Views};
use crate::device::Device;
use crate::error::{Error, Result, named, same_length};
use crate::fourier::{Complex, Fourier};
use crate::number::{Real, per_number};
use crate::threads;
use crate::vector::Vector;

/// Window over the ramp filter: what it takes of the fine detail, which is where noise is loudest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Filter {
    /// The ramp alone: sharpest.
    #[default]
    RamLak,
    /// `sin(t) / t` with `t` up to `pi / 2` at the finest detail.
    SheppLogan,
    /// `cos(t)`.
    Cosine,
    /// `0.54 + 0.46 cos(2 t)`.
    Hamming,
    /// `0.5 + 0.5 cos(2 t)`: smoothest.
    Hann,
}

impl Filter {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::RamLak, Self::SheppLogan, Self::Cosine, Self::Hamming, Self::Hann];

    /// Word for it, which [`str::parse`] takes.
    pub fn name(self) -> &'static str {
        match self {
            Self::RamLak => "ram-lak",
            Self::SheppLogan => "shepp-logan",
            Self::Cosine => "cosine",
            Self::Hamming => "hamming",
            Self::Hann => "hann",
        }
    }

    /// Part that is left of detail at the share `frequency`, from 0 to 1, of the finest.
    fn window(self, frequency: f64) -> f64 {
        let t = 0.5 * std::f64::consts::PI * frequency;
        match self {
            Self::RamLak => 1.0,
            Self::SheppLogan if t > 0.0 => libm::sin(t) / t,
            Self::SheppLogan => 1.0,
            Self::Cosine => libm::cos(t),
            Self::Hamming => 0.54 + 0.46 * libm::cos(2.0 * t),
            Self::Hann => 0.5 + 0.5 * libm::cos(2.0 * t),
        }
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Filter {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        named("filter", text, &Self::ALL, Self::name)
    }
}

/// Filtered back-projection of scans by one scanner. Set up once; a second image allocates nothing on the device and builds no program.
///
/// ```text
///   parallel   x(p) = sum over angles t of  dt (h * b_t)(place of p)
///   fan        x(p) = sum over angles t of  dt (D / U)² (h * (w b_t cos c))(place of p)
///   curved     the same with h(n) (n a / sin(n a))² for h(n), and the sum times cos² c before it is read; a: angle between two pixels
/// ```
///
/// `h` is the ramp filter with its window, sampled in space (so that the mean of the picture is right) and applied by the Fourier
/// transform; `dt` is half the angle between the neighbours of an angle, so that angles may lie anywhere; `c` is the angle of a ray to the middle
/// one, `D` the distance from the source to the rotation centre, `U` that of a pixel along the middle ray. The weight `w` shares between a
/// ray and the one that runs the other way: `1/2` for a full turn, and less of what lies near the ends of an arc. Angles that are missing
/// leave streaks.
///
/// # A detector to one side of the axis
/// A full turn by a detector whose middle lies beside the axis (half acquisition, half fan) reads rays far from the axis once, and those near it twice.
/// If an object shows in rays that are read once, `w` grows from 0 to 1 across the rays that are read twice, and is 1 beyond:
///
/// ```text
///   w = (1 + sin(pi c / (2 C))) / 2      for -C <= c <= C, c towards the long side of the detector, C the angle of its short end
/// ```
///
/// A parallel beam has distances from the axis in the place of angles. Rays near an axis that lies off the detector are read by nobody: there the picture has a
/// hole.
///
/// # An object wider than the detector
/// Projections that end in readings far from 0 are cut off; a filter takes that for an edge, which leaves a bright rim and too much inside. Each such end is
/// continued: the squares of the readings of an ellipse are a parabola, and the parabola that fits all of the projection goes on from its end to 0.
///
/// # Sources
/// A. C. Kak and M. Slaney, "Principles of computerized tomographic imaging", IEEE Press 1988, chapter 3; weights of short arcs after D. L.
/// Parker, "Optimal short scan convolution reconstruction for fanbeam CT", Med. Phys. 9(2), 1982, with a sine over the arc instead of one
/// over each end, so that any arc will do. Weights of a detector to one side: G. Wang, "X-ray micro-CT with a displaced detector array", Med. Phys. 29(7),
/// 2002, equation 3. Continued projections: J. Hsieh et al., "A novel reconstruction algorithm to extend the CT scan field-of-view", Med. Phys. 31(9), 2004,
/// with a fitted ellipse instead of a cylinder of water.
pub struct Fbp<T: Real> {
    scanner: Scanner,
    /// For projections that hold all of the object, and for those whose readings are shared or continued.
    plain: Filtering,
    continued: Filtering,
    sharing: Sharing,
    views: Views<T>,
    /// If some rays are read once and others twice.
    beside: Option<Beside<T>>,
    /// Places of a curved detector that a flat one sees, with the weights of what is read there.
    flattening: Option<Vec<(f64, f64)>>,
    /// Filtered readings on the host, and on the device.
    rows: Vec<T>,
    filtered: Vector<T>,
    image: Vector<T>,
}

/// Filter of rows with `more` places before and behind them.
struct Filtering {
    more: usize,
    fourier: Fourier,
    /// Transform of the ramp filter, with its window and the lengths of the scanner.
    response: Vec<f64>,
}

/// A full turn by a detector that is longer on one side of the axis: what is seen once beside what is seen twice.
struct Beside<T: Real> {
    sharing: Sharing,
    views: Views<T>,
    /// Places before the first pixel that rows begin.
    before: usize,
    rows: Vec<T>,
    filtered: Vector<T>,
}

impl<T: Real> fmt::Debug for Fbp<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fbp").field("scanner", &self.scanner).finish_non_exhaustive()
    }
}

per_number! {
    fn set_up<T>(device: &Device, scanner: &Scanner, grid: Grid, filter: Filter) -> Result<Fbp<T>> = Fbp::set_up_here;
    fn reconstruct<T>(this: &mut Fbp<T>, readings: &[T]) -> Result<Vec<T>> = Fbp::reconstruct_here;
}

impl<T: Real> Fbp<T> {
    /// Allocates what it takes.
    ///
    /// # Errors
    /// [`Error::Option`] for a scanner or grid that cannot exist, and for a fan's source within a pixel of the image; [`Error::Conflict`] for views by vectors;
    /// [`Error::Memory`], [`Error::Api`].
    ///
    /// # Cost
    /// Readings and image once on the device. An image takes one launch: for each pixel and angle, two readings.
    pub fn new(device: &Device, scanner: &Scanner, grid: Grid, filter: Filter) -> Result<Self> {
        set_up(device, scanner, grid, filter)
    }

    fn set_up_here(device: &Device, scanner: &Scanner, grid: Grid, filter: Filter) -> Result<Self> {
        scanner.validate()?;
        scanner.check_regular("method")?;
        grid.validate()?;
        scanner.check_source(grid)?;
        let (side, flattening) = (grid.side, flattening(scanner));
        let views_of = |pixels: usize, axis: f64| {
            let angles = 0..scanner.angles.len();
            let words = angles.flat_map(|k| view(scanner, grid, axis, k)).map(T::from_f64).collect();
            Views::new(&device.place(), [side, pixels], scanner.beam.distances().is_some(), words)
        };
        let views = match &flattening {
            Some(places) => views_of(places.len(), 0.5 * (places.len() as f64 - 1.0))?,
            None => views_of(scanner.pixels, scanner.axis())?,
        };
        let beside = match Sides::of(scanner) {
            None => None,
            Some(sides) => {
                // Rows reach as far on the short side of the axis as on the long one, within what is filtered.
                let more = ((sides.long - sides.short).ceil() as usize).min(scanner.pixels);
                let before = if sides.short_first { more } else { 0 };
                let views = match &flattening {
                    // A flat detector in the place of the curved one has both sides already.
                    Some(places) => views_of(places.len(), 0.5 * (places.len() as f64 - 1.0))?,
                    None => views_of(scanner.pixels + more, scanner.axis() + before as f64)?,
                };
                Some(Beside {
                    sharing: Sharing::new(scanner, Some(sides)),
                    rows: vec![T::default(); views.filtered()],
                    filtered: Vector::zeros(device, views.filtered())?,
                    views,
                    before,
                })
            }
        };
        Ok(Self {
            plain: Filtering::new(filter, scanner, 0),
            continued: Filtering::new(filter, scanner, scanner.pixels),
            sharing: Sharing::new(scanner, None),
            flattening,
            rows: vec![T::default(); views.filtered()],
            filtered: Vector::zeros(device, views.filtered())?,
            image: Vector::zeros(device, side * side)?,
            scanner: scanner.clone(),
            views,
            beside,
        })
    }

    /// The image of these readings, row by row: attenuation per unit of length.
    ///
    /// # Errors
    /// [`Error::Shape`] for readings of another scanner; [`Error::NotFinite`]; [`Error::Api`].
    pub fn reconstruct(&mut self, readings: &[T]) -> Result<Vec<T>> {
        reconstruct(self, readings)
    }

    fn reconstruct_here(&mut self, readings: &[T]) -> Result<Vec<T>> {
        same_length("readings against rays of the scanner", self.scanner.rays(), readings.len())?;
        if let Some(index) = readings.iter().position(|v| !v.is_finite()) {
            return Err(Error::NotFinite { what: "the readings".into(), index });
        }
        let edges = Edges::of(&self.scanner, readings);
        let Self { scanner, plain, continued, sharing, views, beside, flattening, rows, filtered, image } = self;
        let beside = beside.as_mut().filter(|_| edges.once.is_some());
        let filtering = if beside.is_some() || edges.are_cut() { continued } else { plain };
        let (sharing, views, before, rows, filtered) = match beside {
            Some(Beside { sharing, views, before, rows, filtered }) => (sharing, views, *before, rows, filtered),
            None => (sharing, views, 0, rows, filtered),
        };
        let (pixels, reach) = (scanner.pixels, filtering.more as f64);
        let projections = (threads::ChunksMut(rows, views.pixels + 1), threads::Chunks(readings, pixels));
        threads::each(projections, 1, |k, (row, readings)| {
            let readings: Vec<f64> = readings.iter().map(|v| v.to_f64()).collect();
            let values = filtering.filtered(scanner, sharing, &edges, k, readings);
            // The number behind the row stays 0.
            match &*flattening {
                None => {
                    let values = &values[filtering.more - before..][..views.pixels];
                    row.iter_mut().zip(values).for_each(|(there, v)| *there = T::from_f64(*v));
                }
                Some(places) => row.iter_mut().zip(places.iter()).for_each(|(there, (place, weight))| {
                    let place = place + reach;
                    let left = (place.max(0.0) as usize).min(values.len().saturating_sub(2));
                    let (a, b) = (values[left], values[(left + 1).min(values.len() - 1)]);
                    let beside = place < 0.0 || place > values.len() as f64 - 1.0;
                    let value = if beside { 0.0 } else { a + (place - left as f64) * (b - a) };
                    *there = T::from_f64(weight * value);
                }),
            }
        });
        filtered.write(rows)?;
        let device = image.device().clone();
        device.backend().fbp().add_views(device.run::<T>(), views, filtered.memory(), image.memory_mut())?;
        image.to_vec()
    }
}

impl Filtering {
    /// A filter of rows with `more` places before and behind the pixels of the scanner.
    fn new(filter: Filter, scanner: &Scanner, more: usize) -> Self {
        let places = scanner.pixels + 2 * more;
        let fourier = Fourier::new((2 * places).next_power_of_two());
        Self { more, response: response(&fourier, filter, scanner, places), fourier }
    }

    /// A projection with its weights, continued where it cuts the object off, and filtered: `more` places, the pixels, `more` places.
    fn filtered(
        &self,
        scanner: &Scanner,
        sharing: &Sharing,
        edges: &Edges,
        k: usize,
        readings: Vec<f64>,
    ) -> Vec<f64> {
        let (more, pixels) = (self.more, scanner.pixels);
        let weights = &sharing.of_readings[k * pixels..(k + 1) * pixels];
        let weighted = |(place, v): (usize, f64)| match place.checked_sub(more).and_then(|pixel| weights.get(pixel))
        {
            Some(weight) => [v * weight, 0.0],
            None if v == 0.0 => [0.0; 2],
            None => [v * sharing.weight(scanner, k, place as f64 - more as f64), 0.0],
        };
        let row = if more == 0 { readings } else { edges.continued(&readings, more) };
        let mut values: Vec<Complex> = row.into_iter().enumerate().map(weighted).collect();
        values.resize(self.response.len(), [0.0; 2]);
        self.fourier.forward(&mut values);
        values.iter_mut().zip(&self.response).for_each(|(v, factor)| *v = [v[0] * factor, v[1] * factor]);
        self.fourier.inverse(&mut values);
        values.truncate(pixels + 2 * more);
        values.into_iter().map(|v| v[0]).collect()
    }
}

/// Pixels of a flat detector instead of a curved one, as far apart where the axis is seen: the place on the curved one that each of them sees, and
/// the weight `cos²` of its ray.
fn flattening(scanner: &Scanner) -> Option<Vec<(f64, f64)>> {
    let Beam::Curved { source_detector, .. } = scanner.beam else { return None };
    let ends = [0.0, scanner.pixels as f64 - 1.0].map(|end| libm::tan(scanner.fan_angle(end)).abs());
    let reach = (ends[0].max(ends[1]) * source_detector / scanner.pitch).ceil() as usize;
    let seen = |k: usize| {
        let angle = libm::atan((k as f64 - reach as f64) * scanner.pitch / source_detector);
        let cosine = libm::cos(angle);
        (scanner.axis() + angle * source_detector / scanner.pitch, cosine * cosine)
    };
    Some((0..=2 * reach).map(seen).collect())
}

/// Words of projection `k`, whose axis is seen at the place `axis`: names of `cl/tomography/fbp.cl`.
fn view(scanner: &Scanner, grid: Grid, axis: f64, k: usize) -> [f64; fbp::VIEW_WORDS] {
    let turn = scanner.angles[k].to_radians();
    let (sin, cos) = (libm::sin(turn), libm::cos(turn));
    let places = grid.pixel / scanner.pitch_at_origin();
    let off = scanner.beam.distances().map_or(0.0, |[source_origin, _]| grid.pixel / source_origin);
    let mut words = [0.0; fbp::VIEW_WORDS];
    words[fbp::MIDDLE] = axis;
    words[fbp::RIGHT] = places * cos;
    words[fbp::UP] = places * sin;
    words[fbp::RIGHT_OFF] = -off * sin;
    words[fbp::UP_OFF] = off * cos;
    words
}

/// The transform of the ramp filter for rows of so many places: real, since the filter is even.
fn response(fourier: &Fourier, filter: Filter, scanner: &Scanner, places: usize) -> Vec<f64> {
    let (length, pitch) = (fourier.len(), scanner.pitch_at_origin());
    let angle = match scanner.beam {
        Beam::Curved { source_detector, .. } => scanner.pitch / source_detector,
        _ => 0.0,
    };
    let ramp = |k: usize| {
        let k = k.min(length - k);
        // The sine of the angle between them counts for pixels on a circle.
        let apart = if angle > 0.0 { libm::sin(k as f64 * angle) / angle } else { k as f64 };
        match k {
            0 => 0.25,
            _ if k.is_multiple_of(2) || k >= places => 0.0,
            _ => -1.0 / (std::f64::consts::PI * apart * (std::f64::consts::PI * apart)),
        }
    };
    let mut values: Vec<Complex> = (0..length).map(|k| [ramp(k), 0.0]).collect();
    fourier.forward(&mut values);
    let half = (length / 2) as f64;
    let frequency = |k: usize| k.min(length - k) as f64 / half;
    values.iter().enumerate().map(|(k, v)| v[0] * filter.window(frequency(k)) / pitch).collect()
}

/// Weights of readings before they are filtered: the cosine of the ray, and what is shared between rays that read the same.
struct Sharing {
    /// Shares of the angles in the turn, and the arc that they cover if some are missing.
    shares: Vec<f64>,
    arc: Option<[f64; 2]>,
    sides: Option<Sides>,
    /// Weight of each reading.
    of_readings: Vec<f64>,
}

impl Sharing {
    /// `sides` are those of a detector whose rays beyond the short one are read once in a full turn.
    fn new(scanner: &Scanner, sides: Option<Sides>) -> Self {
        let half = scanner.beam.is_parallel() && sides.is_none();
        let (shares, arc) = shares(&scanner.angles, if half { 180.0 } else { 360.0 });
        let mut sharing = Self { shares, arc, sides, of_readings: Vec::new() };
        let row = |k: usize| (0..scanner.pixels).map(move |pixel| (k, pixel as f64));
        let places = (0..scanner.angles.len()).flat_map(row);
        sharing.of_readings = places.map(|(k, place)| sharing.weight(scanner, k, place)).collect();
        sharing
    }

    /// Weight of what projection `k` reads at a place on the detector, which may lie beside it.
    fn weight(&self, scanner: &Scanner, k: usize, place: f64) -> f64 {
        let share = self.shares[k];
        let aside = scanner.fan_angle(place);
        if matches!(scanner.beam, Beam::Curved { .. }) && aside.abs() > FURTHEST {
            return 0.0;
        }
        if let Some(sides) = self.sides {
            return share * libm::cos(aside) * seen_once(&sides, scanner, place);
        }
        if scanner.beam.is_parallel() {
            return share;
        }
        let (angle, cosine) = (scanner.angles[k], libm::cos(aside));
        let Some([first, length]) = self.arc else { return 0.5 * share * cosine };
        // The longest arc that the angles may stand for, so that none of them has no weight.
        let within = |angle: f64| {
            let step = share.to_degrees();
            let place = ((angle - first + 0.5 * step).rem_euclid(360.0)) / (length + step);
            let sine = if place < 1.0 { libm::sin(std::f64::consts::PI * place) } else { 0.0 };
            sine * sine
        };
        let opposite = angle + 180.0 - 2.0 * aside.to_degrees();
        let own = within(angle);
        share * cosine * own / (own + within(opposite))
    }
}

/// Part of a ray in what it and the one that runs the other way read: 1 beyond the short side of the detector, and the sine of Wang between.
fn seen_once(sides: &Sides, scanner: &Scanner, place: f64) -> f64 {
    let distance = sides.towards_long(scanner, place);
    if distance >= sides.short || sides.short <= 0.0 {
        return 1.0;
    }
    if distance <= -sides.short {
        return 0.0;
    }
    let at = |distance: f64| match scanner.beam {
        Beam::Parallel => distance,
        _ => scanner.fan_angle(scanner.axis() + distance),
    };
    0.5 + 0.5 * libm::sin(0.5 * std::f64::consts::PI * at(distance) / at(sides.short))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imaging::{Noise, Phantom, Quality};

    const SILENT: Noise = Noise { photons: f64::INFINITY, gain: 0.0, seed: 0 };

    fn picture(scanner: &Scanner, grid: Grid, filter: Filter) -> Vec<f64> {
        let scan = Phantom::plate().scan(scanner, grid.pixel * grid.side as f64, SILENT).expect("a scan");
        let mut fbp = Fbp::<f64>::new(&Device::host(), scanner, grid, filter).expect("a scanner");
        fbp.reconstruct(&scan.sinogram).expect("a picture")
    }

    fn angles(count: usize, from: f64, arc: f64) -> Vec<f64> {
        (0..count).map(|k| from + arc * k as f64 / count as f64).collect()
    }

    /// Correlation with the phantom, and how bright the picture is in the mean against it.
    fn quality(scanner: &Scanner) -> [f64; 2] {
        let grid = Grid { side: 96, pixel: 2.0 / 96.0 };
        let (found, wanted) = (picture(scanner, grid, Filter::RamLak), Phantom::plate().image(grid));
        let mean = |values: &[f64]| values.iter().sum::<f64>();
        [Quality::of(&found, &wanted).expect("same size").correlation, mean(&found) / mean(&wanted)]
    }

    #[test]
    fn pictures_are_those_of_the_phantom_whatever_the_angles() {
        let parallel = |angles| Scanner { beam: Beam::Parallel, pixels: 256, pitch: 0.012, offset: 3.7, angles };
        let fan = |angles| {
            let beam = Beam::Fan { source_origin: 5.0, source_detector: 8.0 };
            Scanner { beam, pixels: 256, pitch: 0.021, offset: -2.3, angles }
        };
        let curved = Beam::Curved { source_origin: 5.0, source_detector: 8.0 };
        let uneven: Vec<f64> =
            angles(240, 10.0, 180.0).iter().enumerate().map(|(k, a)| a + 0.3 * (k % 3) as f64).collect();
        let twice: Vec<f64> = [angles(240, -5.0, 180.0), angles(240, -5.0, 180.0)].concat();
        let both_ends: Vec<f64> = (0..=240).map(|k| f64::from(k) * 0.75).collect();
        for (name, scanner) in [
            ("half a turn", parallel(angles(240, 10.0, 180.0))),
            ("backwards", parallel(angles(240, 10.0, -180.0))),
            ("a full turn", parallel(angles(480, 0.0, 360.0))),
            ("uneven", parallel(uneven)),
            ("twice", parallel(twice)),
            ("both ends", parallel(both_ends)),
            ("fan", fan(angles(480, 33.0, 360.0))),
            ("fan both ends", fan((0..=480).map(|k| f64::from(k) * 0.75).collect())),
            ("short arc", fan(angles(280, 5.0, 215.0))),
            ("short arc backwards", fan(angles(280, 5.0, -215.0))),
            ("long arc", fan(angles(370, 0.0, 290.0))),
            ("half acquisition", Scanner { pixels: 150, offset: 55.0, ..parallel(angles(480, 0.0, 360.0)) }),
            ("on the other side", Scanner { pixels: 150, offset: -65.0, ..parallel(angles(480, 40.0, -360.0)) }),
            ("half fan", Scanner { pixels: 150, offset: 55.0, ..fan(angles(480, 33.0, 360.0)) }),
            (
                "half fan on the other side",
                Scanner { pixels: 150, offset: -65.0, ..fan(angles(480, 33.0, -360.0)) },
            ),
            (
                "curved half fan",
                Scanner { pixels: 150, offset: 55.0, beam: curved.clone(), ..fan(angles(480, 0.0, 360.0)) },
            ),
            ("curved", Scanner { beam: curved.clone(), ..fan(angles(480, 33.0, 360.0)) }),
            ("curved short arc", Scanner { beam: curved.clone(), ..fan(angles(280, 5.0, 215.0)) }),
        ] {
            let [correlation, brightness] = quality(&scanner);
            assert!(correlation > 0.955, "{name}: {correlation}");
            assert!((brightness - 1.0).abs() < 0.01, "{name}: {brightness}");
        }
    }

    /// Relative error within the circle that every projection sees, and that of the mean.
    fn errors(scanner: &Scanner, phantom: &Phantom) -> [f64; 2] {
        let grid = Grid { side: 96, pixel: scanner.field() / 96.0 };
        // Lengths of a phantom are those of half a field of 2.
        let scan = phantom.scan(scanner, 2.0, SILENT).expect("a scan");
        let mut fbp = Fbp::<f64>::new(&Device::host(), scanner, grid, Filter::RamLak).expect("a scanner");
        let (found, radius) = (fbp.reconstruct(&scan.sinogram).expect("a picture"), 0.48 * scanner.field());
        let (mut difference, mut square, mut sums) = (0.0, 0.0, [0.0; 2]);
        let truth = |x: f64, y: f64| -> f64 {
            let inside = |e: &&crate::imaging::Ellipse| {
                let (sin, cos) = e.turn.to_radians().sin_cos();
                let (dx, dy) = (x - e.x, y - e.y);
                let (u, v) = ((cos * dx + sin * dy) / e.a, (cos * dy - sin * dx) / e.b);
                u * u + v * v <= 1.0
            };
            phantom.ellipses.iter().filter(inside).map(|e| e.value).sum()
        };
        for (p, found) in found.iter().enumerate() {
            let x = ((p % 96) as f64 - 47.5) * grid.pixel;
            let y = (47.5 - (p / 96) as f64) * grid.pixel;
            if x.hypot(y) < radius {
                let wanted = truth(x, y);
                difference += (found - wanted) * (found - wanted);
                square += wanted * wanted;
                sums = [sums[0] + found, sums[1] + wanted];
            }
        }
        [(difference / square).sqrt(), sums[0] / sums[1] - 1.0]
    }

    #[test]
    fn objects_wider_than_the_detector_have_neither_a_rim_nor_too_large_values() {
        let ellipse = |x, y, a, b, turn, value| crate::imaging::Ellipse { x, y, a, b, turn, value };
        let wide = Phantom {
            ellipses: vec![
                ellipse(0.1, 0.0, 1.3, 1.2, 12.0, 1.0),
                ellipse(0.0, 0.1, 1.0, 0.9, 30.0, -0.3),
                ellipse(0.2, -0.2, 0.3, 0.2, 0.0, 0.4),
            ],
        };
        let beam = Beam::Fan { source_origin: 5.0, source_detector: 8.0 };
        let curved = Beam::Curved { source_origin: 5.0, source_detector: 8.0 };
        let parallel = Scanner {
            beam: Beam::Parallel,
            pixels: 200,
            pitch: 0.009,
            offset: 0.0,
            angles: angles(240, 0.0, 180.0),
        };
        let fan = Scanner { beam, pitch: 0.0144, angles: angles(480, 0.0, 360.0), ..parallel.clone() };
        for (name, scanner) in [
            ("parallel", parallel.clone()),
            ("fan", fan.clone()),
            ("short arc", Scanner { angles: angles(280, 5.0, 225.0), ..fan.clone() }),
            ("curved", Scanner { beam: curved.clone(), ..fan.clone() }),
        ] {
            let [error, mean] = errors(&scanner, &wide);
            assert!(error < 0.1 && mean.abs() < 0.07, "{name}: {error} {mean}");
        }
        // The axis near one end, and the object wider than the other.
        let beside = Scanner { pixels: 120, offset: 45.0, angles: angles(480, 0.0, 360.0), ..parallel };
        let [error, mean] = errors(&beside, &wide);
        assert!(error < 0.1 && mean.abs() < 0.07, "beside: {error} {mean}");
    }

    #[test]
    fn windows_make_pictures_smoother() {
        let scanner =
            Scanner { beam: Beam::Parallel, pixels: 128, pitch: 0.02, offset: 0.0, angles: angles(90, 0.0, 180.0) };
        let grid = Grid { side: 64, pixel: 2.0 / 64.0 };
        let rough = |filter: Filter| -> f64 {
            picture(&scanner, grid, filter).windows(2).map(|pair| (pair[0] - pair[1]).abs()).sum()
        };
        let all: Vec<f64> = Filter::ALL.iter().map(|filter| rough(*filter)).collect();
        assert!(all.windows(2).all(|pair| pair[1] < pair[0]), "{all:?}");
        for filter in Filter::ALL {
            assert_eq!(filter.name().parse::<Filter>().expect("own name"), filter);
        }
        assert!(matches!("boxcar".parse::<Filter>(), Err(Error::Name { name: "filter", .. })));
    }

    #[test]
    fn bits_are_those_of_the_host_on_every_device() {
        let (source_origin, source_detector) = (5.0, 8.0);
        let [flat, curved] =
            [Beam::Fan { source_origin, source_detector }, Beam::Curved { source_origin, source_detector }];
        for beam in [Beam::Parallel, flat, curved] {
            let all = Scanner { beam, pixels: 50, pitch: 0.06, offset: 0.3, angles: angles(31, 0.0, 300.0) };
            let half = Scanner { offset: -13.7, angles: angles(31, 0.0, 360.0), ..all.clone() };
            let cut = Scanner { pitch: 0.03, ..all.clone() };
            for (scanner, side) in [(&all, 1), (&all, 37), (&half, 37), (&cut, 37)] {
                each::<f32>(scanner, side);
                each::<f64>(scanner, side);
            }
        }
    }

    fn each<T: Real>(scanner: &Scanner, side: usize) {
        let grid = Grid { side, pixel: 2.0 / side as f64 };
        let scan = Phantom::plate().scan(scanner, 2.0, SILENT).expect("a scan");
        for device in Device::select_all("").expect("the host at least") {
            if device.require(T::PRECISION).is_err() {
                continue;
            }
            let host = Device::host().with_accumulation(device.accumulation(T::PRECISION)).expect("any way");
            let picture = |device: &Device| -> Vec<u64> {
                let mut fbp = Fbp::<T>::new(device, scanner, grid, Filter::SheppLogan).expect("a scanner");
                let first = fbp.reconstruct(&scan.readings()).expect("a picture");
                let again = fbp.reconstruct(&scan.readings()).expect("a picture");
                assert!(first == again);
                first.iter().map(|v| v.to_f64().to_bits()).collect()
            };
            let wanted = picture(&host);
            for work_group in [1, 32, 256] {
                let Ok(device) = device.with_work_group(work_group) else { continue };
                assert_eq!(picture(&device), wanted, "{} {work_group}", device.info().name);
            }
        }
    }

    #[test]
    fn readings_and_scanners_that_do_not_fit_are_refused() {
        let scanner = Scanner { beam: Beam::Parallel, pixels: 8, pitch: 1.0, offset: 0.0, angles: vec![0.0, 90.0] };
        let grid = Grid { side: 8, pixel: 1.0 };
        let mut fbp = Fbp::<f32>::new(&Device::host(), &scanner, grid, Filter::Hann).expect("a scanner");
        assert!(matches!(fbp.reconstruct(&[0.0; 8]), Err(Error::Shape { .. })));
        let mut readings = [0.0f32; 16];
        readings[3] = f32::NAN;
        assert!(matches!(fbp.reconstruct(&readings), Err(Error::NotFinite { index: 3, .. })));
        let beam = Beam::Fan { source_origin: 4.0, source_detector: 8.0 };
        let within = Scanner { beam, ..scanner };
        let refused = Fbp::<f32>::new(&Device::host(), &within, grid, Filter::Hann);
        assert!(matches!(refused, Err(Error::Option { name: "source_origin", .. })));
    }
}
