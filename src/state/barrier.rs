//! Words of a resident launch: those of its global barrier (`cl/script/global_barrier.cl`), and one for the host.

/// Set by a launch whose groups did not all run at once.
pub(crate) const ABANDONED: usize = 3;
/// Iterations of all launches that were not abandoned.
pub(crate) const DONE: usize = 4;
pub(crate) const WORDS: usize = 5;
