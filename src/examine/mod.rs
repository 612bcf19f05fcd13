//! What can be told of a matrix before it is solved with, and of a solve that ended.

mod advice;
mod envelope;
mod rank;

pub use advice::{Advice, Definiteness, Examination};
