//! Scans.

pub(crate) mod fbp;
pub(crate) mod rays;
