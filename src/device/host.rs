//! Facts about the host back end as a device.

use crate::device_info::{DeviceInfo, DeviceKind};
use crate::{machine, threads};

/// The host back end, with all cores and the memory of the machine.
pub(crate) fn host_info() -> DeviceInfo {
    let threads = threads::count();
    DeviceInfo {
        name: format!("host ({threads} threads)"),
        vendor: std::env::consts::ARCH.into(),
        platform: "residuum host back end".into(),
        platform_version: env!("CARGO_PKG_VERSION").into(),
        driver: env!("CARGO_PKG_VERSION").into(),
        index: None,
        part: false,
        most_parts: 1,
        kind: DeviceKind::Host,
        fp64: true,
        denormals: true,
        int64_atomics: true,
        compute_units: threads,
        clock_mhz: 0,
        memory: machine::memory(),
        largest_allocation: 0,
        local_memory: 0,
        max_work_group: 1024,
        least_work_group: 1,
        resident_groups: 0,
        single_items: None,
        keeps_programs: false,
        last_resort: None,
    }
}
