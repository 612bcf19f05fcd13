//! Terms that proximal methods minimise beside the misfit: the weights of each column as scalars of the script, and bounds of each pixel as
//! vectors.

use super::correction::Correction;
use super::plan::VectorId;
use super::scaling::rescaled;
use super::stopping::Limits;
use crate::error::{Error, Result, same_length};
use crate::magnitude::{Magnitude, scale};
use crate::matrix::Matrix;
use crate::number::Real;
use crate::operator::{SharedOperator, estimate_norm};
use crate::recurrence::Scalar;
use crate::vector::Vector;

/// Steps of the power iteration that estimates `|A|`, and the factor for what they leave.
const POWER_STEPS: usize = 30;
const MARGIN: f64 = 1.02;

/// A scalar that depends on the correction of its column and on `|A|`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Weight {
    /// `tau` for a `sigma` of 1, by `tau (sigma |A|² + step |D|²) = 1` with half of it for each term, or all of it without neighbours.
    Tau,
    /// The step of the dual variables of total variation for a `sigma` of 1, likewise.
    Step,
    /// `|A|²` and `1 / |A|`.
    Square,
    Inverse,
    Tikhonov,
    /// Weight of the total variation.
    Variation,
    /// Weight of the derivative along a direction.
    Directional,
    /// The direction: across and down.
    Across,
    Down,
}

/// Part of a script that depends on corrections.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    pub(super) weights: Vec<(Scalar, Weight)>,
    /// Least and greatest value of each pixel.
    pub(super) bounds: [VectorId; 2],
    /// Vectors that are 0 when a solve begins, and keep what they have when it starts over.
    pub(super) dual: Vec<VectorId>,
    /// Neighbours of an image that the script was planned for.
    pub(super) neighbours: Neighbours,
}

/// Terms over neighbours that a script is planned for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Neighbours {
    /// Pixels of a row; 0 if there are none of these terms.
    pub(super) width: usize,
    /// True if a derivative along a direction is among them.
    pub(super) directional: bool,
}

impl Neighbours {
    /// Terms that some of `corrections` have.
    pub(super) fn of(corrections: &[Correction]) -> Self {
        let width = corrections.iter().filter(|c| c.variation > 0.0 || c.directional > 0.0).map(|c| c.width).max();
        Self { width: width.unwrap_or(0), directional: corrections.iter().any(|c| c.directional > 0.0) }
    }

    /// At least `|D|²`, of the differences and of the derivative along a direction of length 1 together.
    fn norm2(self) -> f64 {
        match (self.width, self.directional) {
            (0, _) => 0.0,
            (_, false) => 8.0,
            (_, true) => 16.0,
        }
    }
}

impl Weight {
    /// The value for a correction in the units of the solve, and the norm of the operator there.
    fn of(self, correction: &Correction, neighbours: Neighbours, norm: f64) -> f64 {
        // No step is right for an operator of norm 0, and any is: its gradient is 0.
        let norm = if norm > 0.0 { norm } else { 1.0 };
        let share = if neighbours.width > 0 { 0.5 } else { 1.0 };
        let tau = share / (norm * norm);
        match self {
            Self::Tau => tau,
            Self::Step if neighbours.width > 0 => (1.0 - share) / (tau * neighbours.norm2()),
            Self::Step => 0.0,
            Self::Square => norm * norm,
            Self::Inverse => 1.0 / norm,
            Self::Tikhonov => correction.tikhonov,
            Self::Variation => correction.variation,
            Self::Directional => correction.directional,
            Self::Across => correction.direction[0],
            Self::Down => correction.direction[1],
        }
    }
}

/// The terms of a script with their present values.
pub(super) struct Objective<T: Real> {
    pub(super) terms: Terms,
    corrections: Vec<Correction>,
    /// Bounds of each pixel, for all columns.
    pixels: Option<[Vec<T>; 2]>,
    /// Shifts that the bounds in the vectors were scaled by; none if they are to be written.
    written: Option<Vec<i32>>,
    /// At least `|A|` of the scaled operator, most likely, and what the operator said of itself then.
    norm: f64,
    known: Option<Magnitude>,
    operator: SharedOperator<T>,
    exponent: i32,
}

impl<T: Real> Objective<T> {
    /// Estimates the norm of `operator`, which is scaled by 2 to `exponent`.
    pub(super) fn new(
        terms: Terms,
        corrections: Vec<Correction>,
        operator: &SharedOperator<T>,
        exponent: i32,
    ) -> Result<Self> {
        let operator = operator.clone();
        let (pixels, written, norm, known) = (None, None, 0.0, None);
        let mut made = Self { terms, corrections, pixels, written, norm, known, operator, exponent };
        made.estimate()?;
        Ok(made)
    }

    fn estimate(&mut self) -> Result<()> {
        self.known = self.operator.as_matrix().map(Matrix::frobenius);
        self.norm = MARGIN * estimate_norm(&*rescaled(&self.operator, self.exponent, 1)?, POWER_STEPS)?;
        Ok(())
    }

    /// Estimates the norm anew if the values of a matrix are others.
    pub(super) fn refresh(&mut self) -> Result<()> {
        match self.operator.as_matrix().map(Matrix::frobenius) {
            Some(found) if self.known != Some(found) => self.estimate(),
            _ => Ok(()),
        }
    }

    /// The scalars of column `c`, scaled by these exponents.
    pub(super) fn scalars(&self, c: usize, exponents: [i32; 2]) -> Vec<(Scalar, f64)> {
        let correction = self.corrections[c].scaled(exponents);
        let value = |weight: Weight| weight.of(&correction, self.terms.neighbours, self.norm);
        self.terms.weights.iter().map(|(scalar, weight)| (*scalar, value(*weight))).collect()
    }

    /// Tells if the least residual is what is wanted.
    pub(super) fn is_misfit(&self) -> bool {
        self.corrections.iter().all(|c| c.tikhonov == 0.0 && c.variation == 0.0 && c.directional == 0.0)
    }

    /// Takes other corrections.
    ///
    /// # Errors
    /// [`Error::Option`] for terms over neighbours that the script was not planned for.
    pub(super) fn set_corrections(&mut self, corrections: Vec<Correction>) -> Result<()> {
        let (planned, asked) = (self.terms.neighbours, Neighbours::of(&corrections));
        if (asked.width != 0 && asked.width != planned.width) || (asked.directional && !planned.directional) {
            let reason = "terms over neighbours are new, or of another width: set the solver up again".into();
            return Err(Error::Option { name: "corrections", reason });
        }
        let bounds = |corrections: &[Correction]| -> Vec<[f64; 2]> {
            corrections.iter().map(|correction| [correction.lower, correction.upper]).collect()
        };
        if bounds(&corrections) != bounds(&self.corrections) {
            self.written = None;
        }
        self.corrections = corrections;
        Ok(())
    }

    /// Takes bounds of each pixel, which hold beside those of the corrections.
    ///
    /// # Errors
    /// [`Error::Shape`]; [`Error::Option`] for bounds that no number lies between.
    pub(super) fn set_bounds(&mut self, lower: &[T], upper: &[T], cols: usize) -> Result<()> {
        same_length("lower bounds of pixels", cols, lower.len())?;
        same_length("upper bounds of pixels", cols, upper.len())?;
        let ordered = |(l, u): (&T, &T)| l <= u;
        if let Some(pixel) = lower.iter().zip(upper).position(|bounds| !ordered(bounds)) {
            let reason = format!("{} is not at most {} at pixel {pixel}", lower[pixel], upper[pixel]);
            return Err(Error::Option { name: "bounds", reason });
        }
        self.pixels = Some([lower.to_vec(), upper.to_vec()]);
        self.written = None;
        Ok(())
    }

    /// Writes the bounds in the units of a solve into their vectors, if they are not there yet.
    pub(super) fn write_bounds(&mut self, limits: &[Limits], vectors: &mut [Vector<T>]) -> Result<()> {
        let shifts: Vec<i32> = limits.iter().map(|limits| limits.exponents[0] - limits.exponents[1]).collect();
        if self.written.as_ref() == Some(&shifts) {
            return Ok(());
        }
        let columns = self.corrections.len();
        for (which, place) in self.terms.bounds.iter().enumerate() {
            let held = &mut vectors[place.index()];
            let bound = |at: usize| {
                let (i, c) = (at / columns, at % columns);
                let correction = &self.corrections[c];
                let own = self.pixels.as_ref().map(|pixels| pixels[which][i].to_f64());
                let value = match which {
                    0 => own.map_or(correction.lower, |own| own.max(correction.lower)),
                    _ => own.map_or(correction.upper, |own| own.min(correction.upper)),
                };
                T::from_f64(scale(value, shifts[c]))
            };
            held.write(&(0..held.len()).map(bound).collect::<Vec<T>>())?;
        }
        self.written = Some(shifts);
        Ok(())
    }
}
