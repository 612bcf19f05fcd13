//! Iterative methods. [`driver`] alone loops, stops, verifies and reports; [`run`] is what every method shares. A method
//! is a script of launches ([`plan`]) that [`engine`] runs, or, if two launches suffice, operations of its own ([`cg`],
//! [`cgnr`]).

mod calls;
pub mod cg;
pub mod cgnr;
mod chosen_weight;
mod column;
mod correction;
mod damping;
mod driver;
mod engine;
mod history;
pub(crate) mod method;
mod multiplication;
mod null_space;
mod objective;
mod operands;
mod penalty;
mod periodogram;
mod plan;
mod products;
mod projected;
mod report;
mod residence;
mod right;
mod run;
mod scaling;
mod semiconvergence;
mod setup;
mod solve;
mod stopping;
mod substitution;
mod system;
mod weight;
mod workspace;

pub use chosen_weight::{ChosenWeight, WeightPoint, WeightStop};
pub use correction::Correction;
pub use driver::{Observer, Progress};
pub use method::Method;
pub use null_space::NullSpace;
pub use penalty::{Penalty, SharedPenalty};
pub use report::{Report, Stop, Times};
pub use semiconvergence::{RuleCurve, RulePoint, StopRule};
pub use setup::Setup;
pub use solve::Solver;
pub use stopping::{Answer, Stopping};
pub use weight::WeightRule;
