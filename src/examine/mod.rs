//! Advice on a matrix before it is solved with, and on a solve that ended.

mod advice;
mod chain;
mod entries;
mod envelope;
mod explanation;
mod fallbacks;
mod resort;
mod rounds;
mod spectrum;
mod verdict;

pub use advice::{Advice, Definiteness, Examination};
pub use chain::{Attempt, FallbackSolve, build_for, build_for_until};
pub use fallbacks::solve_with_fallbacks;
pub use rounds::{HostSystem, solve_scaled_with_fallbacks};
