//! Ends of projections: objects that reach beyond the detector, and detectors that are longer on one side of the axis.

use super::angles::shares;
use super::scanner::Scanner;
use crate::number::Real;

/// Part of the brightest reading of a projection, in the median over the angles, from which on readings are far from 0.
const FAR: f64 = 0.05;
/// Share of the projections that end in readings far from 0, from which on the object is said to reach beyond the detector.
const MANY: f64 = 0.1;
/// Share of the readings beyond the short side of a detector that are far from 0, from which on an object is said to show there.
const SOME: f64 = 0.01;
/// Width of an object against that of the detector above which it is not believed.
const WIDEST: f64 = 4.0;
/// Readings at an end of a projection that are looked at: one for so many pixels, and at most so many.
const PIXELS_OF_END: usize = 64;
const MOST_OF_END: usize = 8;

/// Sides of the detector about the axis, of a full turn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sides {
    /// Tells if pixel 0 is the end of the short side.
    pub(super) short_first: bool,
    /// Lengths from the axis to the rims of the outermost pixels, in pixels.
    pub(super) short: f64,
    pub(super) long: f64,
}

impl Sides {
    /// The sides of a detector that are a pixel or more apart; none if they are not, or if the angles do not make a full turn.
    pub(super) fn of(scanner: &Scanner) -> Option<Self> {
        let [before, behind] = [scanner.axis() + 0.5, scanner.pixels as f64 - 0.5 - scanner.axis()];
        let (short, long) = (before.min(behind), before.max(behind));
        let full = scanner.is_regular() && shares(&scanner.angles, 360.0).1.is_none();
        (full && long - short >= 1.0).then_some(Self { short_first: before < behind, short, long })
    }

    /// Distance of a place from the axis, towards the long side, in pixels.
    pub(super) fn towards_long(&self, scanner: &Scanner, place: f64) -> f64 {
        if self.short_first { place - scanner.axis() } else { scanner.axis() - place }
    }

    /// Pixels whose rays are read once in the turn.
    fn once(&self, scanner: &Scanner) -> std::ops::Range<usize> {
        let once = |pixel: &usize| self.towards_long(scanner, *pixel as f64) > self.short;
        let first = (0..scanner.pixels).find(once).unwrap_or(scanner.pixels);
        first..(first..scanner.pixels).find(|pixel| !once(pixel)).unwrap_or(scanner.pixels)
    }
}

/// Findings at the ends of projections.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Edges {
    /// Sides of the detector, if an object shows in rays that are read once in a full turn.
    pub(super) once: Option<Sides>,
    /// Share of the projections that cut the object off at their first pixel, and at their last. An end counts as 0 if rays the other way read what
    /// lies beyond it.
    pub(super) cut: [f64; 2],
    /// Readings above this are far from 0.
    far: f64,
}

impl Edges {
    pub(super) fn of<T: Real>(scanner: &Scanner, readings: &[T]) -> Self {
        let rows = || readings.chunks(scanner.pixels);
        let brightest = |row: &[T]| row.iter().fold(0.0_f64, |most, v| most.max(v.to_f64()));
        let mut of_rows: Vec<f64> = rows().map(brightest).collect();
        let middle = of_rows.len() / 2;
        let far = FAR * *of_rows.select_nth_unstable_by(middle, f64::total_cmp).1;
        let share = |first: bool| {
            let cut = rows().filter(|row| end(row, first) > far).count();
            cut as f64 / scanner.angles.len() as f64
        };
        let mut cut = [share(true), share(false)];
        let once = Sides::of(scanner).filter(|sides| {
            let pixels = sides.once(scanner);
            // Means of neighbours, so that noise alone shows nothing.
            let bright = |part: &&[T]| mean(part) > far;
            let parts = |row: &'_ [T]| {
                let parts = row[pixels.clone()].chunks(count_of_end(scanner.pixels));
                [parts.len(), parts.filter(bright).count()]
            };
            let all = rows().map(parts).fold([0; 2], |[a, b], [c, d]| [a + c, b + d]);
            far > 0.0 && all[1] as f64 > SOME * all[0] as f64
        });
        if let Some(sides) = once {
            cut[usize::from(!sides.short_first)] = 0.0;
        }
        Self { once, cut: cut.map(|share| if far > 0.0 && share >= MANY { share } else { 0.0 }), far }
    }

    /// Tells if the object reaches beyond the detector.
    pub(super) fn are_cut(&self) -> bool {
        self.cut.iter().any(|share| *share > 0.0)
    }

    /// A projection that goes on for `more` places at either end that cuts the object off: the parabola that fits the squares of its readings, down to 0.
    /// It fades over the outer half of these places. If the squares bend upwards it is a level that fades over half as many.
    pub(super) fn continued(&self, row: &[f64], more: usize) -> Vec<f64> {
        let pixels = row.len();
        let mut all = vec![0.0; pixels + 2 * more];
        all[more..more + pixels].copy_from_slice(row);
        let ends = [true, false].map(|first| (first, end(row, first)));
        let within = 0.5 * (count_of_end(pixels) as f64 - 1.0);
        let [bend, slope] = parabola(row);
        for ((first, value), cut) in ends.into_iter().zip(self.cut) {
            if cut == 0.0 || value <= self.far {
                continue;
            }
            // The mean of an end is the reading in its middle.
            let outermost = if first { 0.0 } else { pixels as f64 - 1.0 };
            let here = if first { within } else { outermost - within };
            for k in 1..=more {
                let there = if first { outermost - k as f64 } else { outermost + k as f64 };
                let beyond = k as f64 / more as f64;
                let square = if bend < 0.0 {
                    value * value + slope * (there - here) + bend * (there * there - here * here)
                } else {
                    value * value
                };
                // The other branch of a parabola that has come down to 0 is 0 as well.
                if square <= 0.0 {
                    break;
                }
                let fades_from = if bend < 0.0 { 0.5 } else { 0.0 };
                let fading = ((beyond - fades_from) / 0.5).clamp(0.0, 1.0);
                let fading = 0.5 + 0.5 * libm::cos(std::f64::consts::PI * fading);
                all[if first { more - k } else { more + pixels - 1 + k }] = square.sqrt() * fading;
            }
        }
        all
    }
}

fn count_of_end(pixels: usize) -> usize {
    (pixels / PIXELS_OF_END).clamp(1, MOST_OF_END)
}

/// Side of the square about the axis that holds the object, by the ellipses that fit the projections which cut it off; none if they fit too few of them.
pub(super) fn width_of_cut<T: Real>(scanner: &Scanner, readings: &[T], edges: &Edges) -> Option<f64> {
    let mut reaches = Vec::new();
    for row in readings.chunks(scanner.pixels) {
        let row: Vec<f64> = row.iter().map(|v| v.to_f64()).collect();
        let [bend, slope] = parabola(&row);
        for (first, cut) in [true, false].into_iter().zip(edges.cut) {
            let value = end(&row, first);
            if cut == 0.0 || value <= edges.far || bend >= 0.0 {
                continue;
            }
            let within = 0.5 * (count_of_end(row.len()) as f64 - 1.0);
            let here = if first { within } else { row.len() as f64 - 1.0 - within };
            // The foot is a zero of value² + slope (t - here) + bend (t² - here²).
            let middle = -0.5 * slope / bend;
            let away = ((here - middle) * (here - middle) - value * value / bend).sqrt();
            let foot = if first { middle - away } else { middle + away };
            reaches.push((foot - scanner.axis()).abs());
        }
    }
    let few = reaches.len() as f64 * 2.0 < edges.cut[0].max(edges.cut[1]) * scanner.angles.len() as f64;
    if few || reaches.is_empty() {
        return None;
    }
    let most = (reaches.len() * 9 / 10).min(reaches.len() - 1);
    let reach = *reaches.select_nth_unstable_by(most, f64::total_cmp).1;
    // A projection that one end alone cuts off tells little of its ellipse.
    let width = 2.0 * reach * scanner.pitch_at_origin();
    (width < WIDEST * scanner.field()).then_some(width)
}

/// Mean of the outermost readings at an end of a projection.
fn end<T: Real>(row: &[T], first: bool) -> f64 {
    let count = count_of_end(row.len());
    let of_end = if first { &row[..count] } else { &row[row.len() - count..] };
    mean(of_end)
}

fn mean<T: Real>(values: &[T]) -> f64 {
    values.iter().map(|v| v.to_f64()).sum::<f64>() / values.len() as f64
}

/// Factors of the square of the place and of the place in the parabola that fits the squares of readings above 0, by least squares.
fn parabola(row: &[f64]) -> [f64; 2] {
    let middle = 0.5 * (row.len() as f64 - 1.0);
    let half = middle.max(1.0);
    // Legendre polynomials of places from -1 to 1, which are nearly orthogonal at even distances.
    let basis = |j: usize| {
        let t = (j as f64 - middle) / half;
        [1.0, t, 1.5 * t * t - 0.5]
    };
    let (mut matrix, mut right) = ([[0.0; 3]; 3], [0.0; 3]);
    for (j, v) in row.iter().enumerate().filter(|(_, v)| **v > 0.0) {
        let terms = basis(j);
        for a in 0..3 {
            (0..3).for_each(|b| matrix[a][b] += terms[a] * terms[b]);
            right[a] += terms[a] * v * v;
        }
    }
    let Some([_, first, second]) = solve(matrix, right) else { return [0.0; 2] };
    // In pixels from the first one.
    let bend = 1.5 * second / (half * half);
    [bend, first / half - 2.0 * bend * middle]
}

/// Solves three equations by elimination with pivots; none if they are singular.
pub(super) fn solve(mut a: [[f64; 3]; 3], mut b: [f64; 3]) -> Option<[f64; 3]> {
    let scale = a.iter().flatten().fold(0.0f64, |most, v| most.max(v.abs()));
    for k in 0..3 {
        let pivot = (k..3).max_by(|i, j| a[*i][k].abs().total_cmp(&a[*j][k].abs()))?;
        a.swap(k, pivot);
        b.swap(k, pivot);
        let regular = a[k][k].abs() > 1e-12 * scale;
        if !regular {
            return None;
        }
        for i in k + 1..3 {
            let factor = a[i][k] / a[k][k];
            (k..3).for_each(|j| a[i][j] -= factor * a[k][j]);
            b[i] -= factor * b[k];
        }
    }
    let mut x = [0.0; 3];
    for k in (0..3).rev() {
        x[k] = (b[k] - (k + 1..3).map(|j| a[k][j] * x[j]).sum::<f64>()) / a[k][k];
    }
    Some(x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imaging::{Beam, Ellipse, Noise, Phantom};

    const SILENT: Noise = Noise { photons: f64::INFINITY, gain: 0.0, seed: 0 };

    fn disc(radius: f64) -> Phantom {
        Phantom { ellipses: vec![Ellipse { x: 0.05, y: -0.1, a: radius, b: radius, turn: 0.0, value: 1.0 }] }
    }

    fn turn(arc: f64) -> Vec<f64> {
        (0..120).map(|k| arc * f64::from(k) / 120.0).collect()
    }

    #[test]
    fn objects_beyond_the_detector_are_noticed_at_the_ends_that_cut_them_off() {
        let of = |radius: f64, offset: f64, arc: f64, photons: f64| {
            let scanner = Scanner { beam: Beam::Parallel, pixels: 200, pitch: 0.01, offset, angles: turn(arc) };
            let noise = Noise { photons, gain: 0.0, seed: 7 };
            Edges::of(&scanner, &disc(radius).scan(&scanner, 2.0, noise).expect("a scan").sinogram)
        };
        for photons in [f64::INFINITY, 1e3] {
            let within = of(0.8, 0.0, 180.0, photons);
            assert_eq!((within.cut, within.once), ([0.0; 2], None));
            // Off the middle, but all of it is read twice.
            assert_eq!(of(0.7, 10.0, 360.0, photons).once, None);
            assert_eq!(of(1.2, 0.0, 180.0, photons).cut, [1.0; 2]);
            // Half a turn misses what a full one sees from the other side.
            assert_eq!(of(0.6, 60.0, 180.0, photons).cut, [1.0, 0.0]);
            for (offset, short_first) in [(60.0, true), (-60.0, false)] {
                let full = of(0.6, offset, 360.0, photons);
                assert_eq!(full.cut, [0.0; 2]);
                assert_eq!(full.once, Some(Sides { short_first, short: 40.0, long: 160.0 }));
            }
            assert_eq!(of(1.8, 60.0, 360.0, photons).cut, [0.0, 1.0]);
        }
        let scanner = Scanner { beam: Beam::Parallel, pixels: 200, pitch: 0.01, offset: 60.0, angles: turn(360.0) };
        let nothing = Edges::of(&scanner, &vec![0.0; scanner.rays()]);
        assert_eq!((nothing.cut, nothing.once), ([0.0; 2], None));
    }

    #[test]
    fn projections_of_ellipses_are_continued_as_they_are() {
        let scanner = Scanner { beam: Beam::Parallel, pixels: 200, pitch: 0.01, offset: 0.0, angles: turn(180.0) };
        let wide = Scanner { pixels: 600, ..scanner.clone() };
        let [cut, all] =
            [&scanner, &wide].map(|scanner| disc(1.3).scan(scanner, 2.0, SILENT).expect("a scan").sinogram);
        let edges = Edges::of(&scanner, &cut);
        assert_eq!(edges.cut, [1.0; 2]);
        let width = width_of_cut(&scanner, &cut, &edges).expect("ellipses");
        // The middle of the disc lies 0.11 from the axis.
        assert!((width - 2.82).abs() < 0.06, "{width}");
        for (cut, all) in cut.chunks(200).zip(all.chunks(600)) {
            let continued = edges.continued(cut, 200);
            assert_eq!(continued[200..400], *cut);
            // The end is the mean of three readings.
            let off = continued.iter().zip(all).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(off < 0.1, "{off}");
        }
    }
}
