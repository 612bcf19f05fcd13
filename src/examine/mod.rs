//! Advice on a matrix before it is solved with, and on a solve that ended.

mod advice;
mod climb;
mod entries;
mod envelope;
mod explanation;
mod ladder;
mod resort;
mod rounds;
mod spectrum;
mod verdict;

pub use advice::{Advice, Definiteness, Examination};
pub use climb::climb;
pub use ladder::{Climb, Rung, build_for, build_for_until};
pub use rounds::{HostSystem, climb_scaled};
