//! Finite elements and flows.

#[cfg(feature = "fem")]
pub(crate) mod elements;
#[cfg(feature = "simulation")]
pub(crate) mod flow;
