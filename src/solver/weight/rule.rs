//! Names of the rules for the weight of damping.

use std::fmt::{Display, Formatter, Result as FmtResult};
use std::str::FromStr;

use crate::error::{Error, Result, unknown};

/// Rule that chooses `damp` in `min |A x - b|² + damp² |x - x_0|²`.
///
/// With `f_i = s_i² / (s_i² + damp²)` of the singular values `s_i` that a space of `k` iterations knows, the residual `r(damp)` in it,
/// and `m` rows:
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum WeightRule {
    /// The least estimate of the squared error of `x`, `|q x_3|² + sigma² sum (1 - q_i)² (1 - q_i² (1 + q_i + q_i²)²) / s_i²` with
    /// `q_i = 1 - f_i`, three times iterated damping `x_3`, and the sum over the whole operator, which is estimated once with a random right-hand
    /// side and as many iterations. The variance `sigma²` of a reading, and with it the level of the noise
    /// ([`ChosenWeight::noise`](crate::ChosenWeight::noise)), is that of the least `|r|² / (m - sum f_i)²`. Of weights above the one that is least there, the first
    /// minimum counts. For an unknown level of noise, the same in all readings.
    LeastError,
    /// Weighted generalised cross validation: the least `|r|² / (1 + sum (1 - w f_i))²`, with a `w <= 1` from the data. For an
    /// unknown level of noise. Source: J. Chung, J. G. Nagy, D. P. O'Leary, ETNA 28, 2008.
    WeightedGcv,
    /// Generalised cross validation of the small problem: the same with `w = 1`. It smooths too much, since the small problem knows the
    /// large singular values alone.
    Gcv,
    /// The least `|r|² / (m - sum f_i)²`: the rows are counted that there are. It smooths too little once noise is in the space, since
    /// small singular values that are still unknown are taken for 0.
    ModifiedGcv,
    /// The corner of the curve of `(log |r|, log |x - x_0|)`: the largest curvature. Source: P. C. Hansen, D. P. O'Leary, SIAM J. Sci.
    /// Comput. 14, 1993.
    LCurve,
    /// The discrepancy principle: `|r| = 1.01 noise |b|`, solved exactly in the first space that reaches so far.
    Discrepancy {
        /// The norm of the noise as a part of `|b|`.
        noise: f64,
    },
    /// The unbiased estimate of the predictive risk: the least `|r|² + 2 sigma² sum f_i` with the variance
    /// `sigma² = noise² |b|² / m` of a reading.
    Upre {
        /// The norm of the noise as a part of `|b|`.
        noise: f64,
    },
}

/// Fails on a level of noise that cannot be, given with the option `name`.
impl WeightRule {
    /// Every rule without a parameter, and those that need the level of the noise, with that.
    fn named(name: &str, noise: Option<f64>) -> Option<Self> {
        Some(match (name, noise) {
            ("auto", None) => Self::LeastError,
            ("wgcv", None) => Self::WeightedGcv,
            ("gcv", None) => Self::Gcv,
            ("modified-gcv", None) => Self::ModifiedGcv,
            ("l-curve", None) => Self::LCurve,
            ("discrepancy", Some(noise)) => Self::Discrepancy { noise },
            ("upre", Some(noise)) => Self::Upre { noise },
            _ => return None,
        })
    }

    fn noise(&self) -> Option<f64> {
        match *self {
            Self::Discrepancy { noise } | Self::Upre { noise } => Some(noise),
            _ => None,
        }
    }

    /// Fails on a level of noise that cannot be.
    pub(crate) fn validate(&self) -> Result<()> {
        self.noise().map_or(Ok(()), |noise| check_noise("weight", noise))
    }
}

pub(crate) fn check_noise(name: &'static str, noise: f64) -> Result<()> {
    if noise > 0.0 && noise < 1.0 {
        return Ok(());
    }
    Err(Error::Option { name, reason: format!("{noise} is not between 0 and 1: the part of |b| that is noise") })
}

impl Display for WeightRule {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        let name = match self {
            Self::LeastError => "auto",
            Self::WeightedGcv => "wgcv",
            Self::Gcv => "gcv",
            Self::ModifiedGcv => "modified-gcv",
            Self::LCurve => "l-curve",
            Self::Discrepancy { .. } => "discrepancy",
            Self::Upre { .. } => "upre",
        };
        match self.noise() {
            Some(noise) => write!(f, "{name}={noise}"),
            None => f.write_str(name),
        }
    }
}

impl FromStr for WeightRule {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let rules =
            "wgcv, gcv, modified-gcv, l-curve, discrepancy=NOISE or upre=NOISE, with the noise as a part of |b|";
        let refuse = || unknown("weight", text, rules);
        let rule = match text.split_once('=') {
            None => Self::named(text, None),
            Some((name, noise)) => noise.parse().ok().and_then(|noise| Self::named(name, Some(noise))),
        };
        let rule = rule.ok_or_else(refuse)?;
        rule.validate().map(|()| rule)
    }
}
