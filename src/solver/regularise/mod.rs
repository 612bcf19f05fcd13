//! Terms that least squares minimise beside the misfit.

mod correction;
mod objective;
mod penalty;
mod refusals;
mod substitution;
mod term;

pub(crate) use correction::damp;
pub(crate) use objective::{Objective, Values};
pub(crate) use penalty::{Penalised, in_place_of_corrections, lock};
pub(crate) use refusals::{no_bounds, no_corrections};
pub(crate) use substitution::Substituted;
pub(crate) use term::{Corrected, check_corrections, edges_of, weights_of};

pub use correction::Correction;
pub use penalty::{Penalty, SharedPenalty};
