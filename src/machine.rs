//! The memory of this machine: what the host side of a problem has to fit into.

use lazy_static::lazy_static;

use crate::error::{Error, Result};

lazy_static! {
    /// Asked once: it does not change while a process runs.
    static ref MEMORY: u64 = installed();
}

/// Bytes of memory, as far as this process may use them; 0 if that is not known.
pub(crate) fn memory() -> u64 {
    *MEMORY
}

/// Memory of the machine and of the container around the process, by Linux.
fn installed() -> u64 {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let of_machine = total(&read("/proc/meminfo"));
    let limits = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let of_container = limits.iter().filter_map(|path| read(path).trim().parse::<u64>().ok()).min();
    match (of_machine, of_container) {
        (0, limit) => limit.filter(|limit| *limit < 1 << 60).unwrap_or(0),
        (total, limit) => limit.map_or(total, |limit| limit.min(total)),
    }
}

/// `MemTotal` of `/proc/meminfo` in bytes, 0 if it is missing.
fn total(text: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.map_or(0, |kilobytes| kilobytes.saturating_mul(1024))
}

/// Fails if `bytes` for `what` are more than this machine has: before anything is allocated, which would end the process.
///
/// # Errors
/// [`Error::Memory`].
pub(crate) fn check_memory(what: impl Into<String>, bytes: u64) -> Result<()> {
    let available = memory();
    if available == 0 || bytes <= available {
        return Ok(());
    }
    Err(Error::Memory {
        device: "this machine".into(),
        what: what.into(),
        needed: bytes,
        available,
        help: "that is all its memory: use a smaller problem",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_there_is_is_refused() {
        assert_eq!(total("MemFree: 1 kB\nMemTotal:       24592352 kB\n"), 24_592_352 * 1024);
        assert_eq!([total(""), total("MemTotal: much")], [0, 0]);
        assert!(check_memory("a little", 1000).is_ok());
        if memory() > 0 {
            assert!(matches!(check_memory("all and more", u64::MAX), Err(Error::Memory { .. })));
        }
    }
}
