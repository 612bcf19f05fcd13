//! Finite elements and flows.

pub(crate) mod elements;
pub(crate) mod flow;
