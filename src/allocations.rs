//! Number of buffers that this process has allocated. Tests read it to see that a second solve allocates nothing.

use std::sync::atomic::{AtomicU64, Ordering};

/// Host back end included.
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

/// Number of device buffers (and host vectors that stand for them) this process has allocated so far.
///
/// A second solve with the same solver allocates nothing; this count is how that is tested.
pub fn allocations() -> u64 {
    ALLOCATIONS.load(Ordering::Relaxed)
}

/// Counts an allocation.
pub(crate) fn count_allocation() {
    ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
}
