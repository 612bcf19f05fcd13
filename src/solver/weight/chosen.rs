//! The weight of damping that a rule has chosen, and why.

use std::fmt::{Display, Formatter, Result as FmtResult};

use super::rule::WeightRule;

/// Reason why the Krylov space of a hybrid method stopped growing.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WeightStop {
    /// Cross validation of the iterates no longer changes.
    Flat,
    /// Cross validation of the iterates had its least value here, and was higher in each of the next three.
    Least,
    /// The residual has come down to the noise.
    Discrepancy,
    /// Neither the weight nor the answer changes any more.
    Settled,
    /// The iteration converged without damping, or the space holds all that `b` reaches.
    Exhausted,
    /// The rule was not done: the last iterate, with its weight.
    Limit,
}

impl Display for WeightStop {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        f.write_str(match self {
            Self::Flat => "cross validation is flat",
            Self::Least => "cross validation was least there",
            Self::Discrepancy => "the residual came down to the noise",
            Self::Settled => "weight and answer no longer change",
            Self::Exhausted => "the space has all that the data reach",
            Self::Limit => "the last iterate: the rule was not done",
        })
    }
}

/// A weight that was looked at.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct WeightPoint {
    /// The weight.
    pub damp: f64,
    /// The function that the rule minimises, up to a factor: `|r| - 1.01 noise |b|` without its sign for the discrepancy principle, the
    /// negative curvature for the L-curve.
    pub value: f64,
    /// `|r|` with it.
    pub residual: f64,
    /// `|x - x_0|` with it.
    pub solution: f64,
}

/// The weight that a rule has chosen, and why.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ChosenWeight {
    /// The rule.
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::text::as_text"))]
    pub rule: WeightRule,
    /// `damp`.
    pub damp: f64,
    /// The norm of the noise as a part of `|b|`, for the rule that estimates it.
    pub noise: Option<f64>,
    /// Iteration of the answer.
    pub iteration: usize,
    /// The reason why it is that one.
    pub stop: WeightStop,
    /// True if it is the largest or the least weight that was looked at: the rule found no weight between.
    pub at_end: bool,
    /// All weights that the rule looked at in that iteration, in descending order.
    pub curve: Vec<WeightPoint>,
    /// The weight of each iteration up to it.
    pub path: Vec<f64>,
}

impl Display for ChosenWeight {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        write!(f, "damp = {:.4e} by {} in iteration {} ({})", self.damp, self.rule, self.iteration, self.stop)?;
        if let Some(noise) = self.noise {
            write!(f, "; noise is {:.2} % of |b|", 100.0 * noise)?;
        }
        if self.at_end { f.write_str("; at the end of the weights looked at: doubtful") } else { Ok(()) }
    }
}
