//! Doubts about readings: signs that they do not fit the geometry of their scanner, or the picture.

use std::fmt;

use super::axis;
use super::edges::{Edges, width_of_cut};
use super::scanner::{Grid, Scanner};
use crate::number::Real;

/// A warning about readings, or about a picture of them.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Doubt {
    /// All readings are 0.
    Nothing,
    /// Most readings are below 0.
    Negative,
    /// Readings are smaller where rays are longer.
    Intensities,
    /// Projections end in readings far from 0.
    CutOff {
        /// Share of the projections that do, the larger one of both ends.
        share: f64,
        /// Side of the square about the axis that holds the object, about, if the projections look like those of an ellipse.
        width: Option<f64>,
    },
    /// The axis lies beside the detector.
    AxisBeside {
        /// Distance from the axis within which no ray passes, in the scanner's unit.
        distance: f64,
    },
    /// Rays that pass beside the picture read something.
    BesideField {
        /// Share of the squares of all readings that these have.
        share: f64,
    },
    /// Rays that run opposite ways read the same if the scanner turns the other way, and not as its angles say.
    OtherTurn,
    /// The residual of the answer is far above the noise of the readings.
    Misfit {
        /// Residual, as a part of `|b|`.
        residual: f64,
        /// Noise of the readings, as a part of `|b|`.
        noise: f64,
    },
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("all readings are 0, and so is the image"),
            Self::Negative => f.write_str(
                "readings are mostly negative: line integrals of an image above 0 are not (is it log(I / I0) without the minus?)",
            ),
            Self::Intensities => f.write_str(
                "readings are smaller where rays are longer within the image: these look like intensities; take -log(I / I0) first",
            ),
            Self::CutOff { share, width } => {
                let share = (100.0 * share).max(1.0);
                write!(
                    f,
                    "the object reaches beyond the detector, or air does not read 0: {share:.0} % of the projections end in readings far from 0"
                )?;
                width.map_or(Ok(()), |width| write!(f, "; by their shape the object needs a picture {width:.3} wide"))
            }
            Self::AxisBeside { distance } => write!(
                f,
                "the axis lies beside the detector: no ray passes within {distance:.3} of it, and pictures have a hole there"
            ),
            Self::BesideField { share } => write!(
                f,
                "the object is larger than the picture: rays that miss the picture hold {:.0} % of the signal (sum of squares of the readings)",
                (100.0 * share).max(1.0)
            ),
            Self::OtherTurn => f.write_str(
                "opposite rays contradict each other, and would agree if the scanner turned the other way: reverse the angles or the pixels",
            ),
            Self::Misfit { residual, noise } => write!(
                f,
                "the picture does not explain the readings: residual {residual:.1e}, their noise {noise:.1e}; check axis, angles, distances and pitch, then bounds and weights"
            ),
        }
    }
}

/// Width of the picture against that of the detector from which on it has room for an object wider than the detector.
const ROOM: f64 = 1.1;
/// Share of the squares of the readings beside the picture from which on they are no noise.
const BESIDE: f64 = 0.01;

/// Part of its first value that the gradient must have fallen to before the residual is held against the readings.
pub(super) const NEAR_MINIMUM: f64 = 1e-2;
/// Residual, as a part of `|b|`, from which on it may be a misfit, and how many times the noise of the readings it must be.
const MISFIT: f64 = 0.05;
const FAR_ABOVE: f64 = 5.0;

/// Shorter side of a detector against the longer one from which on both are sides of one middle.
const EVEN: f64 = 0.9;

/// Doubts about readings of a scan, whose rays have these lengths within the picture. `iterates` tells if the method finds a picture that explains the
/// readings, so that an object wider than the detector has room in a wide picture.
pub(super) fn of_scan<T: Real>(
    scanner: &Scanner,
    grid: Grid,
    lengths: &[T],
    readings: &[T],
    iterates: bool,
) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    let edges = Edges::of(scanner, readings);
    // Views by vectors have no common axis: the middle of the detector counts.
    let axis = if scanner.is_regular() { scanner.axis() } else { 0.5 * (scanner.pixels as f64 - 1.0) };
    let sides = [axis + 0.5, scanner.pixels as f64 - 0.5 - axis];
    let longer = sides[0].max(sides[1]);
    let distance = -sides[0].min(sides[1]) * scanner.pitch_at_origin();
    if distance > 0.0 {
        doubts.push(Doubt::AxisBeside { distance });
    }
    let half = 0.5 * grid.side as f64 * grid.pixel / scanner.pitch_at_origin();
    // No picture makes up for what half a turn misses beside the axis.
    let has_room = |side: f64| iterates && side > EVEN * longer && half > ROOM * side;
    let cut = edges.cut.into_iter().zip(sides).filter(|(_, side)| !has_room(*side));
    let share = cut.map(|(share, _)| share).fold(0.0, f64::max);
    if share > 0.0 {
        doubts.push(Doubt::CutOff { share, width: width_of_cut(scanner, readings, &edges) });
    }
    let square = |v: &T| v.to_f64() * v.to_f64();
    let all: f64 = readings.iter().map(square).sum();
    let beside = readings.iter().zip(lengths).filter(|(_, length)| length.to_f64() == 0.0);
    let share = beside.map(|(v, _)| square(v)).sum::<f64>() / all;
    if share > BESIDE && share.is_finite() {
        doubts.push(Doubt::BesideField { share });
    }
    if axis::turns_the_other_way(scanner, readings) {
        doubts.push(Doubt::OtherTurn);
    }
    doubts
}

/// Standard deviation of the noise of readings over their root mean square: the median of second differences along the detector, of which few meet an edge.
pub(super) fn noise<T: Real>(scanner: &Scanner, readings: &[T]) -> f64 {
    /// Second differences of noise of standard deviation 1 have the variance 6, and the median of their sizes is this part of their deviation.
    const MEDIAN: f64 = 0.6745;
    let rows = readings.chunks(scanner.pixels).flat_map(|row| row.windows(3));
    let second = |v: &[T]| (v[0].to_f64() - 2.0 * v[1].to_f64() + v[2].to_f64()).abs();
    let mut sizes: Vec<f64> = rows.map(second).collect();
    if sizes.is_empty() {
        return 0.0;
    }
    let middle = sizes.len() / 2;
    let median = *sizes.select_nth_unstable_by(middle, f64::total_cmp).1;
    let mean = readings.iter().map(|v| v.to_f64() * v.to_f64()).sum::<f64>() / readings.len() as f64;
    if mean > 0.0 { median / (MEDIAN * 6.0_f64.sqrt() * mean.sqrt()) } else { 0.0 }
}

/// Doubt if a residual is far above the noise of the readings.
pub(super) fn misfit<T: Real>(scanner: &Scanner, readings: &[T], residual: f64) -> Option<Doubt> {
    let noise = noise(scanner, readings);
    (residual > MISFIT.max(FAR_ABOVE * noise)).then_some(Doubt::Misfit { residual, noise })
}
