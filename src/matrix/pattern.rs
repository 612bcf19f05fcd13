//! Places of the entries of a stored matrix.

use std::sync::{Arc, Mutex};

use crate::error::Result;
use crate::number::Real;
use crate::sparse::{Csr, Format, Offsets, Packable, Places};

/// Origin of the entries of a stored matrix, so that other values can be put there.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    pub(super) checksum: u64,
    /// Format of the matrix, and of its transposed copy.
    pub(super) formats: [Format; 2],
    pub(super) offsets: Offsets,
    pub(super) packable: Packable,
    /// Places of the entries in the matrix and in its transposed copy, from the first other values on.
    pub(super) places: Arc<Mutex<Option<[Places; 2]>>>,
}

impl Pattern {
    /// Places of the entries of `a` in both copies; None if they are too many.
    pub(super) fn places_of<T: Real>(&self, a: &Csr<T>, backward: bool) -> Result<Option<[Places; 2]>> {
        let wide = self.offsets.are_wide(a.nnz());
        let places =
            |transposed| Places::of(a, transposed, self.formats[usize::from(transposed)], wide, T::PRECISION);
        let forward = places(false)?;
        let transposed = if backward { places(true)? } else { Some(Places::InOrder) };
        Ok(forward.zip(transposed).map(|(forward, transposed)| [forward, transposed]))
    }
}
