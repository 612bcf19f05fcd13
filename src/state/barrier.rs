//! Words of the global barrier of a resident launch (`cl/global_barrier.cl`).
/// Set by a launch whose groups did not all run at once.
pub(crate) const ABANDONED: usize = 3;
pub(crate) const WORDS: usize = 4;
