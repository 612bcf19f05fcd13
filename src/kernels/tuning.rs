//! Launch parameters: they change time, never results.

use crate::error::{Error, Result};
use crate::ocl::{DeviceInfo, DeviceKind};

/// Launch parameters of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Work-items of a work-group where rows and elements are plentiful.
    pub work_group: usize,
    /// Groups that share the chunks of a vector, for each compute unit.
    pub groups_per_unit: usize,
    /// Groups that may rely on running all at once, for launches that do many iterations (1 where groups cannot tell
    /// each other anything while they run, 0 for none).
    pub resident_groups: usize,
    /// Most numbers of a matrix and five vectors for which that is done.
    pub resident_numbers: usize,
    /// Where the values come from: `default` or `user`.
    pub source: &'static str,
    /// Why kernels with barriers run with one item per group instead, on a driver that needs it.
    pub single_items: Option<&'static str>,
}

impl std::fmt::Display for Tuning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "work-group {} ({}", self.work_group, self.source)?;
        match self.single_items {
            Some(why) if self.work_group > 1 => write!(f, "; 1 in kernels with barriers: {why})"),
            _ => f.write_str(")"),
        }
    }
}

impl Tuning {
    /// Good values for a device nobody has tuned: a function of its queried properties only.
    ///
    /// GPUs interleave the 256 items of a group over memory; on CPUs one item runs the lanes of a chunk as a loop.
    pub fn for_device(info: &DeviceInfo) -> Self {
        let (work_group, groups_per_unit) = match info.kind {
            DeviceKind::Cpu | DeviceKind::Host => (1, 4),
            DeviceKind::Gpu | DeviceKind::Accelerator => (256, 16),
        };
        Self {
            work_group: largest_power_of_two(work_group.min(info.max_work_group)),
            groups_per_unit,
            resident_groups: info.resident_groups,
            resident_numbers: match info.kind {
                _ if info.resident_groups > 1 => 20_000 * info.resident_groups,
                DeviceKind::Cpu => 1 << 15,
                _ => 1 << 13,
            },
            source: "default",
            single_items: info.single_items,
        }
    }

    /// Work-group size for rows in chunks of `chunk`, each shared by `lanes` lanes: no more items than a chunk keeps
    /// busy, no fewer than a row does.
    pub(crate) fn for_rows(&self, chunk: usize, lanes: usize, info: &DeviceInfo) -> usize {
        if self.source == "user" || self.work_group == 1 {
            return self.work_group;
        }
        let most = self.work_group.max(lanes).min(largest_power_of_two(info.max_work_group));
        (chunk * lanes).clamp(64.min(most), most)
    }

    /// Work-group size of the launches of CG over chunks of `chunk`, where `items` would do: full chunks keep more items
    /// busy, which hide each other's waits (measured on an H200 from 2048² on; a loss below).
    pub(crate) fn for_chunks(&self, chunk: usize, items: usize, info: &DeviceInfo) -> usize {
        if self.source == "user" || items == 1 || chunk < 4096 {
            return items;
        }
        items.max(512.min(largest_power_of_two(info.max_work_group)))
    }

    /// The same with another work-group size.
    ///
    /// # Errors
    /// [`Error::Option`] unless `size` is a power of two from 1 to the device's largest work-group (at most 1024).
    pub fn with_work_group(&self, size: usize, info: &DeviceInfo) -> Result<Self> {
        let largest = largest_power_of_two(info.max_work_group.min(1024));
        if !size.is_power_of_two() || size > largest {
            return Err(Error::Option {
                name: "work_group",
                reason: format!("{size} is not a power of two from 1 to {largest} ({})", info.name),
            });
        }
        Ok(Self { work_group: size, source: "user", ..self.clone() })
    }

    /// The same with launches of many iterations by up to `groups` groups, whatever the size of the matrix; 0 for none.
    pub(crate) fn with_resident_groups(&self, groups: usize) -> Self {
        Self { resident_groups: groups, resident_numbers: usize::MAX, source: "user", ..self.clone() }
    }

    /// Work-group size of one launch of many iterations over `n` elements: few meetings of large groups, but every
    /// group with work for its items.
    pub(crate) fn resident_items(&self, n: usize, info: &DeviceInfo) -> usize {
        if self.source == "user" || self.work_group == 1 {
            return self.work_group;
        }
        let wanted = (n / self.resident_groups.max(1)).next_power_of_two().clamp(256, 1024);
        largest_power_of_two(wanted.min(info.max_work_group))
    }

    /// Whether a matrix of `rows` rows and `values` values is small enough for one launch of many iterations.
    pub(crate) fn stays_resident(&self, rows: usize, values: usize) -> bool {
        self.resident_groups > 0 && values.saturating_add(5 * rows) <= self.resident_numbers
    }
}

pub(crate) fn largest_power_of_two(limit: usize) -> usize {
    let up = limit.max(1).next_power_of_two();
    if up > limit { (up / 2).max(1) } else { up }
}
