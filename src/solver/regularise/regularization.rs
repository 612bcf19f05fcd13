//! Regularization: the penalty of regularised least squares that the library computes itself.

use crate::error::{Error, Result};
use crate::magnitude::scale;
use crate::setters::setters;
use crate::solver::method::Method;
use crate::solver::script::Neighbours;

/// The penalty of one right-hand side, a sum of the parts below. A weight of 0 switches a part off.
///
/// ```text
///   R(x) = tikhonov |x|² / 2 + smooth |D x|² / 2 + variation sum_p sqrt(|D x|_p² + epsilon²)
///          + directional sum_p |e.D x|_p + bound_weight |x - P x|² / 2
/// ```
///
/// `D x` are the first differences to the right and downwards in an image of `width` pixels a row, `e` a `direction`, `P` the
/// projection onto `lower <= x <= upper`. Weights are absolute; [`imaging`](crate::imaging) scales them to the scan.
///
/// | Method | Terms | Bounds |
/// |---|---|---|
/// | [`Method::Cgnr`] | all but `directional` | by their weight |
/// | [`Method::Fista`] | `tikhonov` | kept exactly, rounded to the precision of vectors |
/// | [`Method::Sirt`], [`Method::Sart`] | none | likewise |
/// | [`Method::Mlem`] | none | likewise; a `lower` below 0 is taken as 0 |
/// | [`Method::Mrnsd`], [`Method::Nnfcgls`] | none | likewise, from below: 0 without a `lower`; an `upper` must be the `lower` |
/// | [`Method::Pdhg`] | `tikhonov`, `variation` with an `epsilon` of 0, `directional` | likewise |
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Regularization {
    /// Weight of `|x|²`.
    pub tikhonov: f64,
    /// Weight of the squared first differences.
    pub smooth: f64,
    /// Weight of the total variation.
    pub variation: f64,
    /// Differences below this count as smooth rather than as an edge; for CGNR, above 0 if `variation` is.
    pub epsilon: f64,
    /// Weight of the derivative along `direction`, for a scan that lacks the angles that would tell of it.
    pub directional: f64,
    /// Direction across (to the right) and down, of length 1 if there is a weight.
    pub direction: [f64; 2],
    /// Least value of a pixel; `-INFINITY` for none.
    pub lower: f64,
    /// Greatest value of a pixel; `INFINITY` for none. The paper's `x_i <= 0` is `upper = 0`.
    pub upper: f64,
    /// Weight of the squared violation of the bounds, for CGNR.
    pub bound_weight: f64,
    /// Pixels of an image row; needed by `smooth`, `variation` and `directional`, else 0.
    pub width: usize,
}

impl Regularization {
    setters! {
        with_tikhonov: tikhonov(f64),
        with_smooth: smooth(f64),
        with_variation: variation(f64),
        with_epsilon: epsilon(f64),
        with_directional: directional(f64),
        with_direction: direction([f64; 2]),
        with_lower: lower(f64),
        with_upper: upper(f64),
        with_bound_weight: bound_weight(f64),
        with_width: width(usize),
    }

    /// No regularization: plain CGNR.
    pub fn none() -> Self {
        Self {
            tikhonov: 0.0,
            smooth: 0.0,
            variation: 0.0,
            epsilon: 0.0,
            directional: 0.0,
            direction: [0.0; 2],
            lower: f64::NEG_INFINITY,
            upper: f64::INFINITY,
            bound_weight: 0.0,
            width: 0,
        }
    }

    /// Tells if it adds nothing to the misfit, whatever the edges, bounds and widths of terms without weight.
    pub(crate) fn is_nothing(&self) -> bool {
        let Self { tikhonov, smooth, variation, directional, bound_weight, .. } = self;
        [tikhonov, smooth, variation, directional, bound_weight].iter().all(|weight| **weight == 0.0)
    }

    /// 0 no neighbour terms, 1 smoothness, 2 smoothness and total variation.
    pub(crate) fn edges(&self) -> u32 {
        if self.variation > 0.0 { 2 } else { u32::from(self.smooth > 0.0) }
    }

    /// Tells if a method with dual variables has terms over neighbours.
    pub(crate) fn has_neighbours(&self) -> bool {
        self.variation > 0.0 || self.directional > 0.0
    }

    /// The weights as those of a term that `method` adds to `|A|²`: for scaling, and for what rounding leaves of a gradient.
    pub(crate) fn weight(&self, method: Method) -> f64 {
        if method != Method::Cgnr {
            // Dual variables have the others.
            return self.tikhonov;
        }
        // D'D has a norm of at most 8, and the diffusivities of total variation are at most 1 / epsilon.
        let edges = self.smooth + if self.variation > 0.0 { self.variation / self.epsilon } else { 0.0 };
        self.tikhonov + 8.0 * edges + self.bound_weight
    }

    /// The regularization of the system multiplied by `2^m`, its right-hand side by `2^k`: the same one, in other units.
    pub(crate) fn scaled(&self, [k, m]: [i32; 2]) -> Self {
        Self {
            tikhonov: scale(self.tikhonov, 2 * m),
            smooth: scale(self.smooth, 2 * m),
            variation: scale(self.variation, k + m),
            epsilon: scale(self.epsilon, k - m),
            directional: scale(self.directional, k + m),
            direction: self.direction,
            lower: scale(self.lower, k - m),
            upper: scale(self.upper, k - m),
            bound_weight: scale(self.bound_weight, 2 * m),
            width: self.width,
        }
    }

    /// Fails on what cannot be meant, or what `method` does not minimise.
    pub(crate) fn validate(&self, method: Method, cols: usize) -> Result<()> {
        for (name, value) in [
            ("tikhonov", self.tikhonov),
            ("smooth", self.smooth),
            ("variation", self.variation),
            ("epsilon", self.epsilon),
            ("directional", self.directional),
            ("bound_weight", self.bound_weight),
        ] {
            if !(value >= 0.0 && value.is_finite()) {
                return Err(Error::Option { name, reason: format!("{value} is not a number of at least 0") });
            }
        }
        if self.lower.partial_cmp(&self.upper).is_none_or(|order| order.is_gt()) {
            return Err(Error::Option {
                name: "lower",
                reason: format!("{} is not at most upper = {}", self.lower, self.upper),
            });
        }
        let terms = [
            ("tikhonov", self.tikhonov),
            ("smooth", self.smooth),
            ("variation", self.variation),
            ("directional", self.directional),
        ];
        let refused = terms.iter().find(|(name, weight)| *weight != 0.0 && !method.has_term(name));
        // Dual variables give total variation as it is.
        let rounded_edges = (method == Method::Pdhg && self.epsilon != 0.0).then_some("epsilon");
        if let Some(name) = refused.map(|(name, _)| *name).or(rounded_edges) {
            return Err(Error::Conflict { name, reason: format!("{method} has no such term") });
        }
        if method == Method::Cgnr && self.variation > 0.0 && self.epsilon == 0.0 {
            return Err(Error::Option { name: "epsilon", reason: "total variation needs one above 0".into() });
        }
        let [across, down] = self.direction;
        let is_unit = (libm::hypot(across, down) - 1.0).abs() <= 1e-6;
        let is_finite = across.is_finite() && down.is_finite();
        if !is_finite || (self.directional > 0.0 && !is_unit) {
            let reason = format!("({across}, {down}) is not of length 1");
            return Err(Error::Option { name: "direction", reason });
        }
        if (self.edges() > 0 || self.has_neighbours()) && (self.width == 0 || !cols.is_multiple_of(self.width)) {
            return Err(Error::Option {
                name: "width",
                reason: format!("{} does not divide {cols} unknowns into image rows", self.width),
            });
        }
        Ok(())
    }
}

impl Neighbours {
    /// Terms that some of `regularizations` have.
    pub(crate) fn of(regularizations: &[Regularization]) -> Self {
        let width = regularizations.iter().filter(|c| c.has_neighbours()).map(|c| c.width).max();
        Self { width: width.unwrap_or(0), directional: regularizations.iter().any(|c| c.directional > 0.0) }
    }
}

/// Fails if those that `count` are for images of another width.
pub(crate) fn check_widths(
    regularizations: &[Regularization],
    width: usize,
    count: impl Fn(&Regularization) -> bool,
) -> Result<()> {
    match regularizations.iter().find(|regularization| count(regularization) && regularization.width != width) {
        None => Ok(()),
        Some(other) => {
            let reason = format!("{} and {width} differ between right-hand sides", other.width);
            Err(Error::Conflict { name: "width", reason })
        }
    }
}

/// The root of the largest weight: what a regularization adds to the norm of the operator.
pub(crate) fn damp(method: Method, regularizations: &[Regularization]) -> f64 {
    regularizations.iter().map(|regularization| regularization.weight(method)).fold(0.0, f64::max).sqrt()
}
