//! Advice on a matrix before it is solved with, and on a solve that ended.

mod advice;
mod envelope;
mod ladder;
mod spectrum;

pub use advice::{Advice, Definiteness, Examination};
pub use ladder::{Climb, Rung, build_for, build_for_until, climb};
