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
    kilobytes(text, "MemTotal:").unwrap_or(0)
}

/// A line of `/proc/meminfo` in bytes.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()?.saturating_mul(1024))
}

/// Bytes that can be had at this moment without taking them from other programs, with what can be swapped; `None` if that is not known.
pub(crate) fn free() -> Option<u64> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let of_machine = of_machine(&read("/proc/meminfo"))?;
    let of_container = of_container(
        &read("/sys/fs/cgroup/memory.max"),
        &read("/sys/fs/cgroup/memory.current"),
        &read("/sys/fs/cgroup/memory.stat"),
    );
    Some(of_container.map_or(of_machine, |limit| limit.min(of_machine)))
}

/// Free bytes by `/proc/meminfo`.
fn of_machine(meminfo: &str) -> Option<u64> {
    Some(kilobytes(meminfo, "MemAvailable:")?.saturating_add(kilobytes(meminfo, "SwapFree:").unwrap_or(0)))
}

/// Bytes left to a container of control groups: its limit less what it holds, of which files in the cache can be given up.
fn of_container(limit: &str, held: &str, about: &str) -> Option<u64> {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let cached = about.lines().find_map(|line| number(line.strip_prefix("inactive_file ")?)).unwrap_or(0);
    Some(number(limit)?.saturating_sub(number(held)?.saturating_sub(cached)))
}

/// Bytes that are not held against what is free: the system is asked for that each time.
pub(crate) const SURELY_FREE: u64 = 1 << 26;

/// Fails if `bytes` for `what` are more than is free on this machine: before anything is allocated, which would end the process.
///
/// # Errors
/// [`Error::Memory`].
pub(crate) fn check_memory(what: impl Into<String>, bytes: u64) -> Result<()> {
    let refuse = |available, help| {
        let (device, what) = ("this machine".into(), what.into());
        Err(Error::Memory { device, what, needed: bytes, available, help })
    };
    let all = memory();
    if all != 0 && bytes > all {
        return refuse(all, "that is all its memory: use a smaller problem");
    }
    let asked = if bytes < SURELY_FREE { None } else { free() };
    match asked.filter(|free| bytes > *free) {
        Some(free) => refuse(free, "that is what is free now: end other programs, or use a smaller problem"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_there_is_is_refused() {
        assert_eq!(total("MemFree: 1 kB\nMemTotal:       24592352 kB\n"), 24_592_352 * 1024);
        assert_eq!([total(""), total("MemTotal: much")], [0, 0]);
        let meminfo = "MemTotal: 100 kB\nMemFree: 1 kB\nMemAvailable:  30 kB\nSwapFree: 4 kB\n";
        assert_eq!([of_machine(meminfo), of_machine("MemTotal: 100 kB\n")], [Some(34 * 1024), None]);
        assert_eq!(of_container("1000\n", "900\n", "anon 5\ninactive_file 300\n"), Some(400));
        assert_eq!([of_container("max\n", "900\n", ""), of_container("", "", "")], [None; 2]);
        assert_eq!(of_container("100\n", "900\n", ""), Some(0));
        if let Some(free) = free() {
            assert!(free > 0 && free < u64::MAX / 2);
        }
        if free().is_some_and(|free| free < memory()) {
            let words = check_memory("more than is free", memory()).unwrap_err().to_string();
            assert!(words.contains("free now"), "{words}");
        }
        assert!(check_memory("a little", 1000).is_ok());
        if memory() > 0 {
            assert!(matches!(check_memory("all and more", u64::MAX), Err(Error::Memory { .. })));
        }
    }
}
