//! Scans.

#[cfg(feature = "imaging")]
pub(crate) mod fbp;
pub(crate) mod rays;
