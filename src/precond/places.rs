//! Places of a row that an approximate inverse may fill.

/// Columns from the diagonal on in which a row may have entries.
pub(super) enum Places {
    /// Ascending columns.
    Few(Vec<u32>),
    /// A bit for each column from the diagonal on, where these take less.
    Many(Vec<u64>),
}

impl Places {
    /// Columns `found`, ascending, of row `l` of `n`.
    pub(super) fn new(found: Vec<u32>, l: usize, n: usize) -> Self {
        let words = (n - l).div_ceil(64);
        if found.len() <= 2 * words {
            return Self::Few(found);
        }
        let mut bits = vec![0u64; words];
        found.iter().map(|j| *j as usize - l).for_each(|at| bits[at / 64] |= 1 << (at % 64));
        Self::Many(bits)
    }

    /// Tells if column `j` of row `l` is one of them.
    pub(super) fn has(&self, l: u32, j: u32) -> bool {
        match self {
            Self::Few(columns) => columns.binary_search(&j).is_ok(),
            Self::Many(bits) => {
                let at = (j - l) as usize;
                bits.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
            }
        }
    }
}

/// Most bytes that the places of a row take, of `entries` from the diagonal on, with `behind` columns from there.
pub(super) fn bytes_of_places(entries: u64, behind: u64) -> u64 {
    (4 * entries).min(8 * behind.div_ceil(64)) + size_of::<Places>() as u64
}
