//! A checksum that a matrix keeps.

use std::sync::OnceLock;

/// A checksum that is computed when it is first asked for. It says nothing that the places do not say: all are equal.
#[derive(Clone, Debug, Default)]
pub(crate) struct Checksum(pub(super) OnceLock<u64>);

impl PartialEq for Checksum {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
