//! Where the groups of a resident launch meet (`cl/resident.cl`).

/// Set by a launch whose groups did not all run at once.
pub(crate) const ABANDONED: usize = 3;
pub(crate) const WORDS: usize = 4;
