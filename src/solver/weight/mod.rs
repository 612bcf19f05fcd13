//! Rules that choose the weight of damping of a projected problem, and what they chose.

mod choice;
mod chosen;
mod projected;
mod rule;

pub(crate) use choice::{Choice, Data};
pub(crate) use projected::{Answer, Bidiagonal, Least, Spectrum};
pub(crate) use rule::check_noise;

pub use chosen::{ChosenWeight, WeightPoint, WeightStop};
pub use rule::WeightRule;
