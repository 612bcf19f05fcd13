//! Settings of a launch, and keys of what is kept for the next one.

use crate::device_info::DeviceInfo;
use crate::number::Accumulation;
use crate::sparse::Entries;
use crate::tuning::Tuning;

/// A back end that knows which device it is.
pub(crate) trait Origin {
    fn info(&self) -> &DeviceInfo;
    /// Keeps a fault of the device, so that it is used only if it is named.
    fn distrust(&self, fault: &str);
}

/// Settings of a run: the accumulation, which changes bits, and the tuning, which does not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run<'a> {
    pub(crate) accumulation: Accumulation,
    pub(crate) tuning: &'a Tuning,
    /// Number that no other tuning of this process has.
    pub(crate) tuning_id: u64,
}

/// Key of the launches of one object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PlanKey {
    kernel: &'static str,
    tuning_id: u64,
    accumulation: Accumulation,
    columns: usize,
    /// Number of anything else that its options depend on.
    part: u32,
    /// Storage of the entries of its matrices, which new values may change.
    entries: [Entries; 2],
}

impl Run<'_> {
    pub(super) fn key(&self, kernel: &'static str, columns: usize, part: u32) -> PlanKey {
        let Self { accumulation, tuning_id, .. } = *self;
        PlanKey { kernel, tuning_id, accumulation, columns, part, entries: [Entries::Plain; 2] }
    }
}

impl PlanKey {
    /// The key for a launch that reads matrices whose entries are stored so.
    pub(super) fn with_entries(self, entries: [Entries; 2]) -> Self {
        Self { entries, ..self }
    }
}
