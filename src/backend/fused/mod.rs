//! Methods of two launches an iteration.

pub(crate) mod cgnr;
mod solve_state;

pub(crate) use solve_state::{HostState, SolveState};
