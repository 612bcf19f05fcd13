//! The host back end: Rust on all cores, the reference that every device must match bit for bit.
//!
//! Threads take whole chunks of the reduction tree, so their number changes nothing.

use std::sync::{Mutex, OnceLock, TryLockError};

use rayon::{ThreadPool, ThreadPoolBuilder};

/// The host back end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Host;

/// Does `work` by one of the threads that share its launches. A thread that is none of those sleeps through every launch, and to be woken
/// takes 5 to 20 us.
///
/// A pool of its own has these threads. It takes one work at a time; others stay on the threads that asked, and so does all if there
/// is no such pool. In a pool that others use too, a thread that waits for the rest of a launch takes up whatever else waits for a
/// thread, and could so wait for a lock whose holder waits for that very launch: several solves with one sum of operators did.
pub(super) fn among_threads<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    static POOL: OnceLock<Option<ThreadPool>> = OnceLock::new();
    static ONE: Mutex<()> = Mutex::new(());
    if rayon::current_thread_index().is_some() {
        return work();
    }
    let _alone = match ONE.try_lock() {
        Ok(alone) => alone,
        // Work that panicked left nothing behind.
        Err(TryLockError::Poisoned(alone)) => alone.into_inner(),
        Err(TryLockError::WouldBlock) => return work(),
    };
    match POOL.get_or_init(|| ThreadPoolBuilder::new().num_threads(rayon::current_num_threads()).build().ok()) {
        Some(pool) => pool.install(work),
        None => work(),
    }
}
