//! From readings to images: scaling of weights, upload, solve, bounds.

use std::time::Instant;

use crate::error::{Error, Result, same_length};
use crate::magnitude;
use crate::number::{Real, per_number};
use crate::operator::{LinearOperator, SharedOperator, frobenius_norm};
use crate::solver::{Correction, Method, Observer, Report, Setup, Solver, Stop, Stopping};
use crate::vector::Vector;

/// What is wanted of the image beside fitting the readings. A weight suits scans of any size: it is multiplied by the
/// mean diagonal of `A'A`, and for total variation also by the mean brightness.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Regularizer {
    /// Small values.
    Tikhonov(f64),
    /// Small differences between neighbours: blurs edges.
    Smooth(f64),
    /// Few edges: flat regions, sharp borders (total variation by lagged diffusivity).
    TotalVariation(f64),
}

impl std::str::FromStr for Regularizer {
    type Err = Error;

    /// `tikhonov=W`, `smooth=W` or `tv=W`.
    fn from_str(text: &str) -> Result<Self> {
        let bad = || Error::Option {
            name: "regularizer",
            reason: format!("'{text}' is none of tikhonov=W, smooth=W, tv=W, none (W at least 0)"),
        };
        let (name, weight) = text.split_once('=').ok_or_else(bad)?;
        let weight = weight.parse().ok().filter(|w: &f64| *w >= 0.0 && w.is_finite()).ok_or_else(bad)?;
        match name {
            "tikhonov" => Ok(Self::Tikhonov(weight)),
            "smooth" => Ok(Self::Smooth(weight)),
            "tv" => Ok(Self::TotalVariation(weight)),
            _ => Err(bad()),
        }
    }
}

impl std::fmt::Display for Regularizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tikhonov(weight) => write!(f, "tikhonov={weight}"),
            Self::Smooth(weight) => write!(f, "smooth={weight}"),
            Self::TotalVariation(weight) => write!(f, "tv={weight}"),
        }
    }
}

/// How to reconstruct.
#[derive(Clone, Debug, PartialEq)]
pub struct Reconstruction {
    /// What is wanted beside fitting the readings; weights of the same kind add up.
    pub regularizers: Vec<Regularizer>,
    /// Least value of a pixel, `-INFINITY` for none.
    pub lower: f64,
    /// Greatest value of a pixel, `INFINITY` for none.
    pub upper: f64,
    /// Pixels of an image row, 0 where the unknowns are no image.
    pub width: usize,
    /// When to stop.
    pub stopping: Stopping,
}

/// Differences below this share of the mean brightness are noise to total variation, those above are edges.
const EDGE: f64 = 0.01;
/// Weight of the violation of the bounds, in units of the mean diagonal of `A'A`.
const BOUND_WEIGHT: f64 = 1.0;

/// Images with what is to be said of them.
#[derive(Clone, Debug)]
pub struct Solution<T> {
    /// One image per vector of readings.
    pub images: Vec<Vec<T>>,
    /// One report per image.
    pub reports: Vec<Report>,
    /// What speaks against the readings, in words: for each vector of them, those that look like no line integrals.
    pub warnings: Vec<String>,
    /// Seconds by phase.
    pub phases: Phases,
}

/// Seconds by phase.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Phases {
    /// Building programs.
    pub compile: f64,
    /// Iterating and verifying.
    pub solve: f64,
}

impl Reconstruction {
    /// The correction for one vector of readings: weights times the scales of the scan.
    fn correction(&self, scale: f64, brightness: f64) -> Correction {
        let mut correction =
            Correction { lower: self.lower, upper: self.upper, width: self.width, ..Correction::none() };
        for regularizer in &self.regularizers {
            match regularizer {
                Regularizer::Tikhonov(weight) => correction.tikhonov += weight * scale,
                Regularizer::Smooth(weight) => correction.smooth += weight * scale,
                Regularizer::TotalVariation(weight) => correction.variation += weight * scale * brightness,
            }
        }
        correction.epsilon = EDGE * brightness;
        if self.bounded() {
            correction.bound_weight = BOUND_WEIGHT * scale;
        }
        correction
    }

    fn bounded(&self) -> bool {
        self.lower.is_finite() || self.upper.is_finite()
    }
}

/// Reconstructs one image from each vector of readings, all at once, by regularised CGNR. `system` is the matrix of the
/// scan ([`Scanner::system`](super::Scanner::system)), or any other operator with its adjoint.
///
/// The mean diagonal of `A'A` is `|A|_F² / n`; the mean brightness is taken to be `|b| / |A 1|`, exact for a flat
/// image. Bounds act as a penalty while iterating; the answer is projected onto them at the end, and its residual is
/// computed after that.
///
/// # Errors
/// As [`Solver::with`]; [`Error::Shape`] for readings that do not match the matrix; [`Error::Option`] for a system without entries (no
/// ray meets the image), and for a weight that vanishes in `f64` when it is scaled to the system.
pub fn reconstruct<T: Real>(
    system: impl Into<SharedOperator<T>>,
    readings: &[&[T]],
    how: &Reconstruction,
    observer: &mut Observer<'_>,
) -> Result<Solution<T>> {
    reconstruct_shared(&system.into(), readings, how, observer)
}

per_number! {
    fn reconstruct_shared<T>(
        system: &SharedOperator<T>,
        readings: &[&[T]],
        how: &Reconstruction,
        observer: &mut Observer<'_>,
    ) -> Result<Solution<T>> = reconstruct_here;
}

fn reconstruct_here<T: Real>(
    system: &SharedOperator<T>,
    readings: &[&[T]],
    how: &Reconstruction,
    observer: &mut Observer<'_>,
) -> Result<Solution<T>> {
    for b in readings {
        same_length("readings against rows of the matrix", system.rows(), b.len())?;
        if let Some(index) = b.iter().position(|v| !v.is_finite()) {
            return Err(Error::NotFinite { what: "the readings".into(), index });
        }
    }
    let device = system.device();
    let built = device.programs().seconds;
    let clock = Instant::now();
    let columns = readings.len();
    let frobenius = frobenius_norm(&**system)?;
    if frobenius == 0.0 {
        let reason = "all of it is 0: no ray meets the image (too small a field, or a detector shifted too far?)";
        return Err(Error::Option { name: "system", reason: reason.into() });
    }
    let scale = frobenius * frobenius / system.cols().max(1) as f64;
    let scales = scale > 0.0 && scale.is_finite();
    if !(how.regularizers.is_empty() || scales) {
        let reason =
            format!("weights are taken of |A|² = ({frobenius:e})², which is out of range: scale the system");
        return Err(Error::Option { name: "regularizer", reason });
    }
    let lengths = flat_readings(&**system)?;
    let flat = lengths.norm2()?;
    let corrections: Vec<Correction> = readings
        .iter()
        .map(|b| {
            let norm = magnitude::norm(b.iter().map(|v| v.to_f64()));
            how.correction(scale, if flat > 0.0 && norm > 0.0 { norm / flat } else { 1.0 })
        })
        .collect();
    let lengths = lengths.to_vec()?;
    let doubts = readings.iter().map(|b| doubts(b, &lengths)).collect::<Vec<_>>();
    let many = readings.len() > 1;
    let named = |(c, words): (usize, Option<&'static str>)| {
        words.map(|words| if many { format!("image {}: {words}", c + 1) } else { words.into() })
    };
    let warnings = doubts.into_iter().enumerate().filter_map(named).collect();
    let setup = Setup::new(Method::Cgnr, how.stopping.clone()).with_columns(columns);
    let mut solver = Solver::with(system.clone(), setup.with_corrections(&corrections))?;
    let b = Vector::interleaved(device, readings)?;
    let mut x = Vector::zeros(device, system.cols() * columns)?;
    let mut reports = solver.solve_many_observed(&b, &mut x, observer)?;
    if how.bounded() {
        x.clamp(T::from_f64(how.lower), T::from_f64(how.upper))?;
    }
    let images = x.to_columns(columns)?;
    if how.bounded() {
        for ((report, image), b) in reports.iter_mut().zip(&images).zip(readings) {
            report.true_residual = residual(&**system, image, b)?;
            let limit = (how.stopping.rtol * report.rhs_norm).max(how.stopping.atol);
            if report.stop == Stop::Converged && report.true_residual > limit {
                report.stop = Stop::Projected;
            }
        }
    }
    let compile = device.programs().seconds - built;
    let solve = (clock.elapsed().as_secs_f64() - compile).max(0.0);
    Ok(Solution { images, reports, warnings, phases: Phases { compile, solve } })
}

/// What speaks against taking `readings` for line integrals of an image of numbers above 0, where `lengths` are those of the rays
/// within it.
fn doubts<T: Real>(readings: &[T], lengths: &[T]) -> Option<&'static str> {
    // Scaled, so that no square overflows.
    let scaled = |values: &[T]| -> Vec<f64> {
        let largest = magnitude::largest(values.iter().map(|v| v.to_f64()));
        values.iter().map(|v| v.to_f64() / if largest > 0.0 { largest } else { 1.0 }).collect()
    };
    let (b, l) = (scaled(readings), scaled(lengths));
    if b.iter().all(|v| *v == 0.0) {
        return Some("all readings are 0, and so is the image");
    }
    // Where no ray is longer than another, nothing can be told from their lengths.
    let n = b.len() as f64;
    let (mean_b, mean_l) = (b.iter().sum::<f64>() / n, l.iter().sum::<f64>() / n);
    let moment =
        |f: &dyn Fn(f64, f64) -> f64| b.iter().zip(&l).map(|(b, l)| f(b - mean_b, l - mean_l)).sum::<f64>();
    let (both, of_b, of_l) = (moment(&|b, l| b * l), moment(&|b, _| b * b), moment(&|_, l| l * l));
    let correlation = both / (of_b * of_l).sqrt();
    let negative = b.iter().filter(|v| **v < 0.0).map(|v| -v).sum::<f64>();
    if negative > 0.5 * b.iter().map(|v| v.abs()).sum::<f64>() {
        return Some(
            "readings are mostly negative: line integrals of an image above 0 are not (is it log(I / I0) without the minus?)",
        );
    }
    // Rays that pass more of the image lose more: their integrals are larger, their intensities smaller.
    (correlation < -0.2 && mean_b > 0.0).then_some(
        "readings are smaller where rays are longer within the image: these look like intensities; take -log(I / I0) first",
    )
}

/// `|b - A x|` afresh.
fn residual<T: Real>(a: &dyn LinearOperator<T>, x: &[T], b: &[T]) -> Result<f64> {
    let device = a.device();
    let x = Vector::from_slice(device, x)?;
    let mut r = Vector::zeros(device, a.rows())?;
    a.apply(&x, &mut r)?;
    r.axpby(T::from_f64(1.0), &Vector::from_slice(device, b)?, T::from_f64(-1.0))?;
    r.norm2()
}

/// `A 1`, what a flat image of brightness 1 would give: of a scan, the lengths of its rays within the image.
fn flat_readings<T: Real>(a: &dyn LinearOperator<T>) -> Result<Vector<T>> {
    let ones = Vector::filled(a.device(), a.cols(), T::from_f64(1.0))?;
    let mut readings = Vector::zeros(a.device(), a.rows())?;
    a.apply(&ones, &mut readings)?;
    Ok(readings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_that_are_no_line_integrals_are_told() {
        // A disc in the middle of a square, seen along parallel rays: lengths fall towards the sides as those through a turned square
        // do, integrals faster.
        let lengths: Vec<f64> = (0..64).map(|k| 1.0 - (f64::from(k) - 31.5).abs() / 40.0).collect();
        let integrals: Vec<f64> = lengths.iter().map(|l| (3.0 * (l - 0.7)).max(0.0)).collect();
        assert_eq!(doubts(&integrals, &lengths), None);
        let words = |f: &dyn Fn(f64) -> f64| {
            doubts(&integrals.iter().map(|v| f(*v)).collect::<Vec<f64>>(), &lengths).unwrap_or("")
        };
        assert!(words(&|v| -v).contains("negative"));
        assert!(words(&|v| 1e5 * (-v).exp()).contains("intensities"));
        assert!(words(&|_| 0.0).contains("all readings are 0"));
        assert_eq!(words(&|v| 1e200 * v), "");
        assert_eq!(doubts(&[1.0, 1.0], &[0.5, 0.5]), None);
    }

    #[test]
    fn regularizers_are_read_back_as_they_are_written() {
        for regularizer in [Regularizer::Tikhonov(0.5), Regularizer::Smooth(2.0), Regularizer::TotalVariation(0.01)]
        {
            assert_eq!(regularizer.to_string().parse::<Regularizer>().expect("own text"), regularizer);
        }
        for bad in ["tv", "tv=", "tv=-1", "tv=nan", "ridge=1", "=1"] {
            assert!(bad.parse::<Regularizer>().is_err(), "{bad}");
        }
    }
}
