//! Stopping rules: tolerances and limits, and rules for ill-posed problems.

mod limits;
mod periodogram;
mod rules;
mod semiconvergence;

pub(crate) use limits::{Limits, Scales, rounded};
pub(crate) use semiconvergence::{Course, Judge, Seen};

pub use rules::{Answer, Stopping};
pub use semiconvergence::{RuleCurve, RulePoint, StopRule};
