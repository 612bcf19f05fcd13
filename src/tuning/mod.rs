//! Launch parameters: they change time, never results.

mod file;
mod settings;

use std::collections::BTreeMap;
use std::fmt::{Display, Formatter, Result as FmtResult};

pub use file::{Agreement, Entry, Measured, TUNE_VARIABLE, TuneFile, tune_path};
pub use settings::{AccessPattern, Case, Family, Settings, SizeClass};

use crate::device_info::{DeviceInfo, DeviceKind};
use crate::error::{Error, Result};
use crate::number::Precision;
use crate::reduction::Chunks;

/// Origin of launch parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParameterSource {
    /// Rules, and what was measured.
    Rules,
    /// The user, for every launch.
    User,
}

impl Display for ParameterSource {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        f.write_str(match self {
            Self::Rules => "default",
            Self::User => "user",
        })
    }
}

/// Launch parameters of a device. Rules choose them from the properties that the device reports. Measured values
/// take the place of rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Work-items of a work-group if rows and elements are plentiful.
    pub work_group: usize,
    /// Groups that share the chunks of a vector, for each compute unit.
    pub groups_per_unit: usize,
    /// Groups that may rely on running all at once, for launches that do many iterations (1 if groups cannot tell
    /// each other anything while they run, 0 for none).
    pub resident_groups: usize,
    /// Most numbers of a matrix and five vectors for which that is done.
    pub resident_numbers: usize,
    /// Origin of the values.
    pub source: ParameterSource,
    /// Why kernels with barriers run with one item per group instead, on a driver that needs it.
    pub single_items: Option<&'static str>,
    /// Measured settings, and the place that each comes from.
    tuned: BTreeMap<Case, (Settings, &'static str)>,
}

/// Rays that the items of a group spread over an image at once, on a device that has many items.
pub(crate) const RAYS_AT_ONCE: usize = 32;

/// A launch, as far as its parameters depend on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaunchQuery {
    pub(crate) case: Case,
    /// Rows or elements.
    pub(crate) n: usize,
    /// Rows or elements of a chunk.
    pub(crate) chunk: usize,
    /// Items that share a row; 0 if nothing is multiplied.
    pub(crate) shared: usize,
    /// Entries of the longest row, 0 if nobody counted.
    pub(crate) longest: usize,
    /// Vectors that lie interleaved.
    pub(crate) columns: usize,
}

/// Launch parameters of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parameters {
    /// Items of a group.
    pub(crate) work_group: usize,
    /// Groups for each compute unit, if the work may be shared out,
    groups_per_unit: usize,
    /// as long as a group takes no more than so many chunks, or rows for each item.
    most: usize,
    /// `LOADS` of `cl/linear/format.cl`.
    pub(crate) loads: usize,
    /// `-cl-nv-maxrregcount`, 0 if the compiler decides.
    pub(crate) registers: usize,
    /// Tells if a short vector is copied to local memory first.
    pub(crate) staged: bool,
}

impl Display for Tuning {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        write!(f, "work-group {} ({}", self.work_group, self.source)?;
        if let Some(why) = self.single_items.filter(|_| self.work_group > 1) {
            write!(f, "; 1 in kernels with barriers: {why}")?;
        }
        f.write_str(")")
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
            work_group: largest_power_of_two(work_group.min(info.max_work_group)).max(info.least_work_group),
            groups_per_unit,
            resident_groups: info.resident_groups,
            resident_numbers: match info.kind {
                _ if info.resident_groups > 1 => 20_000 * info.resident_groups,
                DeviceKind::Cpu => 1 << 15,
                _ => 1 << 13,
            },
            source: ParameterSource::Rules,
            single_items: info.single_items,
            tuned: BTreeMap::new(),
        }
    }

    /// A copy with measured settings for `case` from `place` (`shipped`, `file`, `trial`); later calls win.
    ///
    /// # Errors
    /// [`Error::Option`] for values the device or the kernels cannot take.
    pub fn with_settings(
        mut self,
        case: Case,
        settings: Settings,
        place: &'static str,
        info: &DeviceInfo,
    ) -> Result<Self> {
        settings.check(&case)?;
        if let Some(size) = settings.work_group {
            check_work_group(size, info)?;
        }
        self.tuned.insert(case, (settings, place));
        Ok(self)
    }

    /// Settings of a case, and the place that they come from.
    pub fn settings(&self, case: &Case) -> Option<(Settings, &'static str)> {
        self.tuned.get(case).copied()
    }

    /// In words, what of it is in force for work on `n` rows in `precision`.
    pub fn in_force(&self, precision: Precision, n: usize) -> String {
        let size = SizeClass::of(n);
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        for (_, (settings, place)) in
            self.tuned.iter().filter(|(case, _)| case.precision == precision && case.size == size)
        {
            if *settings != Settings::default() {
                *places.entry(place).or_default() += 1;
            }
        }
        let parts: Vec<String> = places
            .iter()
            .map(|(place, count)| format!("tuned values for {count} kinds of launches ({place})"))
            .collect();
        if parts.is_empty() { self.to_string() } else { format!("{self}, {}", parts.join(", ")) }
    }

    /// The parameters of a launch: the user's, else what was measured, else a rule.
    pub(crate) fn parameters(&self, asked: &LaunchQuery, info: &DeviceInfo) -> Parameters {
        let tuned = self.tuned.get(&asked.case).map_or(Settings::default(), |tuned| tuned.0);
        let family = asked.case.family;
        let user = self.source == ParameterSource::User;
        let work_group = match tuned.work_group {
            _ if user => self.work_group,
            Some(size) => size,
            None => self.items(asked, info),
        };
        // The sums of several columns leave room for half as many.
        let crowded = family == Family::CgnrResident && asked.columns > 1;
        let work_group = if crowded { (work_group / 2).max(1) } else { work_group };
        // Every group of CG's update folds all sums before it begins: up to four chunks to each, as long as all units have two
        // groups. A product alone is cut finer, to balance a device, but leaves the items of a group enough rows.
        let (groups_per_unit, most) = match family {
            Family::CgUpdate if self.work_group > 1 => (2, 4),
            // Pixels' parts of CGNR around a product. Two chunks to each: 459 us an iteration with one, 442 with two, 449 with four (512² from
            // 721 x 560 readings, H100).
            Family::CgnrForward | Family::CgnrBackward if self.work_group > 1 => (2, 2),
            Family::Product => (32, 4),
            _ => (self.groups_per_unit, usize::MAX),
        };
        Parameters {
            work_group,
            groups_per_unit: tuned.groups_per_unit.unwrap_or(groups_per_unit),
            most: if tuned.groups_per_unit.is_some() { usize::MAX } else { most },
            loads: tuned.loads.unwrap_or(match family {
                // No more than there are: 6 instead of 8 gains 3 to 20 % for rows of 5 on an H200.
                Family::CgProduct | Family::Product | Family::StepProduct if (1..=6).contains(&asked.longest) => 6,
                // Every entry of several columns is as many loads.
                Family::CgnrResident if asked.columns > 1 => 4,
                _ => 8,
            }),
            registers: tuned.registers.unwrap_or(match family {
                // Measured on an H200, from 1024² to 4096²: told nothing but the size of a group, the compiler saves registers
                // for more groups at a time, and reads fewer numbers together (up to a quarter slower). Where the entries of
                // a row have to be found before they are read, large groups gain from a third group at a time.
                Family::CgProduct if work_group >= 512 && asked.case.reading != Some(AccessPattern::Places) => 40,
                Family::CgProduct => 64,
                // With fewer, loads wait for each other: 151 instead of 124 us for 176 million steps of rays.
                Family::Product if asked.case.reading == Some(AccessPattern::Rays) => 64,
                _ => 0,
            }),
            // Part by part a long vector costs more than it saves: see `Settings::staged`.
            staged: tuned.staged.unwrap_or(asked.case.reading == Some(AccessPattern::ShortVector)),
        }
    }

    /// Work-group size by rule.
    fn items(&self, asked: &LaunchQuery, info: &DeviceInfo) -> usize {
        let largest = largest_power_of_two(info.max_work_group);
        if self.work_group == 1 {
            return 1;
        }
        // No more items than the rows of a chunk keep busy, no fewer than a row does.
        let rows = || {
            let most = self.work_group.max(asked.shared).min(largest);
            (asked.chunk * asked.shared).clamp(64.min(most), most)
        };
        // Full chunks keep more items busy, which hide each other's waits (measured on an H200 from 2048² on; a loss below).
        let full = |items: usize| if asked.chunk < 4096 { items } else { items.max(512.min(largest)) };
        match asked.case.family {
            Family::Vector | Family::Reduce | Family::Sweep | Family::StepVectors => self.work_group,
            // Columns of one cell or several: few items are left over.
            Family::Elements if (33..=64).contains(&asked.shared) => self.work_group.min(64),
            Family::Elements => self.work_group.min(128),
            // Rows of a level that a group takes: one warp, which waits for no other.
            Family::SweepWaiting => self.work_group.min(32),
            Family::Scatter => self.work_group.max(512).min(largest),
            // The rays of some angles that lie near each other; rays of a class that meet a tile.
            Family::Product if asked.case.reading == Some(AccessPattern::Rays) => self.work_group.min(128),
            Family::Backproject => self.work_group.min(RAYS_AT_ONCE),
            Family::Product | Family::CgnrForward | Family::CgnrBackward | Family::StepProduct => rows(),
            Family::CgProduct => full(rows()),
            Family::CgUpdate => full(self.work_group),
            // Few meetings of large groups, but every group with work for its items. Lanes that share a row are work: with 1024
            // items instead of 256 an iteration of CGNR takes 24 instead of 33 us (64² from 96 x 96 readings, H200).
            Family::CgResident | Family::CgnrResident | Family::StepResident => {
                let items = asked.n.saturating_mul(asked.shared) / self.resident_groups.max(1);
                let wanted = items.next_power_of_two().clamp(256, 1024);
                largest_power_of_two(wanted.min(info.max_work_group))
            }
        }
    }

    /// Items of a group that works alone, where several groups would have `items` each: as many as there may be, unless the user chose.
    pub(crate) fn largest_group(&self, items: usize, info: &DeviceInfo) -> usize {
        if items == 1 || self.source == ParameterSource::User {
            items
        } else {
            largest_power_of_two(info.max_work_group.min(MOST_ITEMS))
        }
    }

    /// A copy with another work-group size for all launches, and no measured settings.
    ///
    /// # Errors
    /// [`Error::Option`] unless `size` is a power of two from the device's least work-group to its largest (at most 1024).
    pub fn with_work_group(&self, size: usize, info: &DeviceInfo) -> Result<Self> {
        check_work_group(size, info)?;
        Ok(Self { work_group: size, source: ParameterSource::User, tuned: BTreeMap::new(), ..self.clone() })
    }

    /// A copy with resident launches of up to `groups` groups, whatever the size of the matrix; 0 for none.
    pub(crate) fn with_resident_groups(&self, groups: usize) -> Self {
        Self { resident_groups: groups, resident_numbers: usize::MAX, ..self.clone() }
    }

    /// Tells if groups of several items may hold a vector of so many bytes in local memory, and leave room for other groups.
    pub(crate) fn may_stage(&self, bytes: usize, info: &DeviceInfo) -> bool {
        self.work_group > 1 && self.single_items.is_none() && bytes as u64 <= info.local_memory / 3
    }

    /// Tells if matrices of `rows` rows and `values` values are small enough for one launch of many iterations, which may have `times` as many
    /// as those of conjugate gradients where several groups do it.
    pub(crate) fn stays_resident(&self, times: usize, rows: usize, values: usize) -> bool {
        let times = if self.resident_groups > 1 { times } else { 1 };
        self.resident_groups > 0 && values.saturating_add(5 * rows) <= self.resident_numbers.saturating_mul(times)
    }
}

impl Parameters {
    /// A copy for a driver that wants groups of `work_group` items.
    pub(crate) fn in_groups_of(self, work_group: usize) -> Self {
        Self { work_group, ..self }
    }

    /// Groups that share chunks among `units` compute units, and how many chunks each takes.
    pub(crate) fn share(&self, chunks: Chunks, units: usize) -> (usize, usize) {
        let per_group = chunks.count.div_ceil(self.most_groups(units)).clamp(1, self.most);
        (chunks.count.div_ceil(per_group), per_group)
    }

    /// Most groups worth having on `units` compute units.
    pub(crate) fn most_groups(&self, units: usize) -> usize {
        self.groups_per_unit * units.max(1)
    }

    /// Rows of a group if no reduction ties groups to chunks and a group works on `at_once` of them together. On CPUs,
    /// whole chunks.
    pub(crate) fn rows_of_group(&self, rows: Chunks, at_once: usize, units: usize) -> usize {
        if self.work_group == 1 {
            return rows.chunk;
        }
        let wanted = rows.len / self.most_groups(units);
        wanted.next_power_of_two().clamp(at_once, at_once.saturating_mul(self.most))
    }
}

impl Settings {
    /// Fails on values that no device and no kernel of `case` can take.
    pub(crate) fn check(&self, case: &Case) -> Result<()> {
        let family = case.family;
        if let Some(size) = self.work_group.filter(|size| !size.is_power_of_two() || *size > MOST_ITEMS) {
            let reason = format!("{size} is not a power of two from 1 to {MOST_ITEMS} ({case})");
            return Err(Error::Option { name: "work_group", reason });
        }
        for (name, value, right, whose, allowed) in [
            ("groups_per_unit", self.groups_per_unit, 1..=1024, "share out their work", family.shares()),
            ("loads", self.loads, 1..=32, "multiply", family.multiplies()),
            ("registers", self.registers.filter(|n| *n != 0), 16..=255, "multiply", family.multiplies()),
        ] {
            if let Some(value) = value.filter(|value| !allowed || !right.contains(value)) {
                let zero = if name == "registers" { "0 or " } else { "" };
                let (least, most) = (right.start(), right.end());
                let reason = match allowed {
                    true => format!("{value} is not {zero}{least} to {most} ({case})"),
                    false => format!("{case}: it is for kernels that {whose}"),
                };
                return Err(Error::Option { name, reason });
            }
        }
        let takes = matches!(case.reading, Some(AccessPattern::ShortVector | AccessPattern::Rows));
        if self.staged.is_some() && !(takes && family == Family::Product) {
            let reason = format!("{case}: it is for products with a lane to a row");
            return Err(Error::Option { name: "staged", reason });
        }
        Ok(())
    }
}

/// Largest work-group of any device that is asked for.
const MOST_ITEMS: usize = 1024;

fn check_work_group(size: usize, info: &DeviceInfo) -> Result<()> {
    let (least, largest) = (info.least_work_group, largest_power_of_two(info.max_work_group.min(MOST_ITEMS)));
    if !size.is_power_of_two() || !(least..=largest).contains(&size) {
        return Err(Error::Option {
            name: "work_group",
            reason: format!("{size} is not a power of two from {least} to {largest} ({})", info.name),
        });
    }
    Ok(())
}

pub(crate) fn largest_power_of_two(limit: usize) -> usize {
    let up = limit.max(1).next_power_of_two();
    if up > limit { (up / 2).max(1) } else { up }
}
