//! Options of a reconstruction.

use super::fbp::Filter;
use super::regularizer::Regularizer;
use super::scanner::Scanner;
use crate::number::Real;
use crate::setters::setters;
use crate::solver::{Method, Regularization, Stopping, WeightRule};

/// Options of a reconstruction.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Reconstruction {
    /// [`Method::Cgnr`], or one that keeps bounds ([`Method::keeps_bounds`]).
    pub method: Method,
    /// Terms beside the misfit of the readings; weights of the same kind add up.
    pub regularizers: Vec<Regularizer>,
    /// The rule that chooses the weight of `|x|²` for each image ([`Method::HybridLsqr`], without bounds, before the method goes on from
    /// its answer); none leaves it to `regularizers`. Takes 100 vectors as long as the readings, and 100 images.
    pub weight: Option<WeightRule>,
    /// Window of the filtered back-projection ([`Fbp`](crate::imaging::Fbp)) that the method starts from; without one it starts from 0. With no iterations the
    /// picture is that of the back-projection. Not together with `weight`, whose rule has an answer to start from.
    pub start: Option<Filter>,
    /// Least value of a pixel, `-INFINITY` for none.
    pub lower: f64,
    /// Greatest value of a pixel, `INFINITY` for none.
    pub upper: f64,
    /// Pixels that may hold something, row by row; all others are 0. Not for CGNR.
    pub support: Option<Vec<bool>>,
    /// When to stop.
    pub stopping: Stopping,
}

/// Differences below this share of the mean brightness are noise to total variation, those above are edges.
const EDGE: f64 = 0.01;
/// Weight of the violation of the bounds, in units of the mean diagonal of `A'A`.
const BOUND_WEIGHT: f64 = 1.0;

impl Reconstruction {
    setters! {
        with_method: method(Method),
        with_regularizers: regularizers(Vec<Regularizer>),
        with_weight: weight(impl WeightRule),
        with_start: start(impl Filter),
        with_lower: lower(f64),
        with_upper: upper(f64),
        with_support: support(impl Vec<bool>),
        with_stopping: stopping(Stopping),
    }

    /// Suits scans in the precision of `T`: CGNR with total variation of weight 0.05, no value below 0, at most 100 iterations, done
    /// early at a minimum. [`Method::Pdhg`] takes 200 to 500 iterations to such a picture, and 2000 if angles are missing.
    pub fn of_scans<T: Real>() -> Self {
        Self {
            method: Method::Cgnr,
            regularizers: vec![Regularizer::TotalVariation(0.05)],
            weight: None,
            start: None,
            lower: 0.0,
            upper: f64::INFINITY,
            support: None,
            stopping: Stopping { rtol: 0.0, max_iterations: 100, ..Stopping::for_precision::<T>() },
        }
    }

    /// [`Reconstruction::of_scans`] for scans by `scanner`: if no angles of it are missing ([`Scanner::sees_all`]), it is done when the gradient has
    /// fallen to 1e-4 of its first value. On full scans of the Helsinki challenge that is after 31 to 40 iterations, from where on pictures
    /// only gain noise; scans with missing angles gain for longer.
    pub fn of_scanner<T: Real>(scanner: &Scanner) -> Self {
        let mut how = Self::of_scans::<T>();
        if scanner.sees_all() {
            how.stopping.gradient_reduction = 1e-4;
        }
        how
    }

    /// The regularization for readings of an image of mean brightness `brightness`: weights times `scale`, the mean diagonal of
    /// `A'A`.
    pub(super) fn regularization(&self, width: usize, scale: f64, brightness: f64) -> Regularization {
        // With a support the bounds of each pixel have them.
        let (lower, upper) = match self.support {
            Some(_) => (f64::NEG_INFINITY, f64::INFINITY),
            None => (self.lower, self.upper),
        };
        let mut regularization = Regularization { lower, upper, width, ..Regularization::none() };
        for regularizer in &self.regularizers {
            match regularizer {
                Regularizer::Tikhonov(weight) => regularization.tikhonov += weight * scale,
                Regularizer::Smooth(weight) => regularization.smooth += weight * scale,
                Regularizer::TotalVariation(weight) => regularization.variation += weight * scale * brightness,
                Regularizer::Directional { weight, degrees } => {
                    let turn = degrees.to_radians();
                    regularization.directional += weight * scale * brightness;
                    // Rows of an image count downwards.
                    regularization.direction = [libm::cos(turn), -libm::sin(turn)];
                }
            }
        }
        let exact = self.method != Method::Cgnr;
        regularization.epsilon = if exact { 0.0 } else { EDGE * brightness };
        if self.projected() {
            regularization.bound_weight = BOUND_WEIGHT * scale;
        }
        regularization
    }

    /// Tells if answers are projected onto bounds at the end.
    pub(super) fn projected(&self) -> bool {
        self.method == Method::Cgnr && (self.lower.is_finite() || self.upper.is_finite())
    }

    /// Least and greatest values of all pixels, if some may hold nothing.
    pub(super) fn bounds<T: Real>(&self) -> Option<[Vec<T>; 2]> {
        let bound = |bound: f64| -> Option<Vec<T>> {
            let within = |pixel: &bool| if *pixel { T::from_f64(bound) } else { T::default() };
            Some(self.support.as_ref()?.iter().map(within).collect())
        };
        Some([bound(self.lower)?, bound(self.upper)?])
    }
}
