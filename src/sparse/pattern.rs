//! Checksums of the sparsity pattern of a matrix. Other values must have the same pattern.

use super::Csr;
use crate::error::{Error, Result};
use crate::number::Real;
use crate::threads;

impl<T: Real> Csr<T> {
    /// Checksum of the shape and the places of all entries: of row offsets and columns, not of values. It is computed once: a matrix
    /// on a device and its preconditioners ask for it one after another.
    pub(crate) fn pattern(&self) -> u64 {
        // Not in `OnceLock::get_or_init`: a thread that waits for others there may ask again.
        let known = &self.pattern.0;
        known.get().copied().unwrap_or_else(|| {
            let found = self.checksum();
            let _ = known.set(found);
            found
        })
    }

    fn checksum(&self) -> u64 {
        // FNV-1a of blocks, then of their checksums in order: threads change nothing.
        const BLOCK: usize = 1 << 14;
        let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        let over = |words: &mut dyn Iterator<Item = u64>| words.fold(0xcbf2_9ce4_8422_2325, mix);
        let of_offsets = |_, block: &[usize]| over(&mut block.iter().map(|o| *o as u64));
        let of_columns = |_, block: &[u32]| over(&mut block.iter().map(|j| u64::from(*j)));
        let offsets = threads::numbers(threads::Chunks(self.offsets(), BLOCK), 1, of_offsets);
        let columns = threads::numbers(threads::Chunks(self.indices(), BLOCK), 1, of_columns);
        over(&mut [self.rows() as u64, self.cols() as u64].into_iter().chain(offsets).chain(columns))
    }

    /// Fails unless the entries stand where those stand of which `pattern` is the checksum.
    pub(crate) fn check_pattern(&self, pattern: u64) -> Result<()> {
        if self.pattern() == pattern {
            return Ok(());
        }
        let what = "the entries stand in other places than those of the matrix: make a new one".into();
        Err(Error::Structure { what, row: None })
    }
}
