//! The host back end: Rust on all cores, the reference that every device must match bit for bit.
//!
//! Threads take whole chunks of the reduction tree, so their number changes nothing.

/// The host back end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Host;
