//! Number of buffers that this process has allocated.

use std::sync::atomic::{AtomicU64, Ordering};

/// Host back end included.
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

/// Number of device buffers that this process has allocated so far, and of host vectors that stand for them.
///
/// A second solve with the same solver allocates nothing: the count before it is the count after it.
pub fn allocations() -> u64 {
    ALLOCATIONS.load(Ordering::Relaxed)
}

/// Counts an allocation.
pub(crate) fn count_allocation() {
    ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
}
