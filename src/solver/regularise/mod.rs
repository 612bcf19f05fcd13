//! Terms that least squares minimise beside the misfit.

mod objective;
mod penalty;
mod refusals;
mod regularization;
mod substitution;
mod term;

pub(crate) use objective::{Objective, Values};
pub(crate) use penalty::{Penalised, in_place_of_regularizations, lock};
pub(crate) use refusals::{no_bounds, no_regularizations};
pub(crate) use regularization::damp;
pub(crate) use substitution::Substituted;
pub(crate) use term::{Regularized, check_regularizations, edges_of, weights_of};

pub use penalty::{Penalty, SharedPenalty};
pub use regularization::Regularization;
