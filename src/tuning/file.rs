//! The file of tuned launch parameters.
//!
//! The file is TOML, with one `[[entry]]` for each device, driver and case, and the measurements behind it.
//! `examples/tune` writes it. People may read and edit it:
//!
//! ```toml
//! version = 1
//!
//! [[entry]]
//! device = "NVIDIA H200"
//! platform = "NVIDIA CUDA"
//! driver = "580.159.04"
//! family = "cg-product"
//! reading = "rows"
//! precision = "fp64"
//! size = "large"
//! set = { work_group = 512, registers = 40 } # empty if the rules of the crate are best
//! measured = { problem = "poisson 2048 x 2048, csr", default_us = 176.1, tuned_us = 171.9, band = 0.02, ties = [], kernels = "1f0c5e77" }
//! ```

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Case, Settings, Tuning};
use crate::device_info::{DeviceInfo, DeviceKind};
use crate::error::{Error, Result};
use crate::files::{read_small, settings_folder, write_atomically};

/// The environment variable that names the file of tuned values, or is `off`.
pub const TUNE_VARIABLE: &str = "RESIDUUM_TUNE_FILE";

const VERSION: i64 = 1;
/// More than all devices of a lifetime need.
const MOST_BYTES: u64 = 16 << 20;
/// Measured on the devices we have.
const SHIPPED: &str = include_str!("shipped.toml");

/// Measurements behind an entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// Problem that was timed.
    pub problem: String,
    /// Microseconds by the rules of the crate, of a call or an iteration.
    pub default_us: f64,
    /// With what was set.
    pub tuned_us: f64,
    /// Relative difference below which two times were called a tie.
    pub band: f64,
    /// Other settings as good, within that.
    pub ties: Vec<String>,
    /// Work-group sizes, and microseconds with each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curve: Vec<(usize, f64)>,
    /// Checksum of the kernels that were measured.
    pub kernels: String,
    /// True if the search was ended before it had tried all: `set` is the best of what was tried.
    #[serde(default, skip_serializing_if = "is_false")]
    pub partial: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde asks for a reference
fn is_false(value: &bool) -> bool {
    !value
}

/// Settings that were measured to be best for one case on one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The device's name.
    pub device: String,
    /// Platform of the device.
    pub platform: String,
    /// Version of the driver.
    pub driver: String,
    /// Case that was tuned.
    #[serde(flatten)]
    pub case: Case,
    /// Settings; empty if the rules are best.
    #[serde(default)]
    pub set: Settings,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
    /// Keys that mean nothing here: they are kept when the file is written.
    #[serde(flatten)]
    pub(crate) others: toml::Table,
}

impl Entry {
    /// Tells if it was measured on this device with this driver.
    pub fn is_for(&self, info: &DeviceInfo) -> bool {
        self.fits(info) && self.driver == info.driver
    }

    /// Tells if it was measured with `kernels`, the checksum of those there are now
    /// ([`kernels_checksum`](crate::tuner::kernels_checksum)): others may want other settings.
    pub fn is_of_kernels(&self, kernels: &str) -> bool {
        self.measured.as_ref().is_some_and(|measured| measured.kernels == kernels)
    }

    fn fits(&self, info: &DeviceInfo) -> bool {
        self.device == info.name && self.platform == info.platform
    }

    /// Tells if two runs of the tuner on one subject came to the same: the same settings, or such as are called ties because one
    /// names the other, or because what they gain over the default differs by no more than what the runs could not tell apart.
    pub fn agrees_with(&self, other: &Self) -> Agreement {
        if self.set == other.set {
            return Agreement::Same;
        }
        let (Some(mine), Some(theirs)) = (&self.measured, &other.measured) else { return Agreement::Differ };
        let named = mine.ties.contains(&other.set.to_string()) || theirs.ties.contains(&self.set.to_string());
        let ratio = |m: &Measured| m.tuned_us / m.default_us;
        let near = (ratio(mine) - ratio(theirs)).abs() <= mine.band + theirs.band;
        if named || near { Agreement::Tie } else { Agreement::Differ }
    }

    /// Tells if two entries say something of the same case on the same device.
    pub fn same_subject(&self, other: &Self) -> bool {
        let names = |e: &Self| [e.device.clone(), e.platform.clone(), e.driver.clone()];
        self.case == other.case && names(self) == names(other)
    }
}

/// Agreement of two runs of the tuner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// Equal settings.
    Same,
    /// Others, as good.
    Tie,
    /// Others, and one is better.
    Differ,
}

/// A file of tuned values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TuneFile {
    /// Entries of the file, in order.
    pub entries: Vec<Entry>,
    /// Remarks on parts that could not be understood and are ignored.
    pub remarks: Vec<String>,
    /// True if nothing could be understood: another version, or no file of tuned values. Such a file is not written over.
    pub foreign: bool,
    /// Entries that were not understood, or say again what another says: they are kept when the file is written.
    unknown: Vec<toml::Table>,
    /// Keys of the file that mean nothing here: kept too.
    others: toml::Table,
}

/// Path of tuned values: the file that `RESIDUUM_TUNE_FILE` names, else `tuning.toml` in the user's configuration folder;
/// `None` if the variable is `off` or there is no such folder.
pub fn tune_path() -> Option<PathBuf> {
    match std::env::var_os(TUNE_VARIABLE) {
        Some(words) if words == "off" => None,
        Some(path) if !path.is_empty() => Some(PathBuf::from(path)),
        _ => Some(settings_folder()?.join("tuning.toml")),
    }
}

impl TuneFile {
    /// Understands what it can of `text`; the rest becomes [`remarks`](Self::remarks).
    pub fn parse(text: &str) -> Self {
        let mut file = Self::default();
        let table: toml::Table = match text.parse() {
            Ok(table) => table,
            Err(error) => {
                let line = error.span().map_or(0, |span| text[..span.start].lines().count());
                file.remarks.push(format!("no TOML, near line {line}: {}; all of it is ignored", error.message()));
                file.foreign = true;
                return file;
            }
        };
        match table.get("version").map(toml::Value::as_integer) {
            Some(Some(VERSION)) => {}
            other => {
                let found = other.flatten().map_or("none".into(), |v| v.to_string());
                file.remarks.push(format!("version {found}, not {VERSION}: all of it is ignored"));
                // An empty file is one that nobody has written yet.
                file.foreign = !table.is_empty() || !text.trim().is_empty();
                return file;
            }
        }
        for (key, value) in table {
            match (key.as_str(), value) {
                ("version", _) => {}
                ("entry", toml::Value::Array(entries)) if entries.iter().all(toml::Value::is_table) => {
                    for (number, value) in entries.into_iter().enumerate() {
                        if let toml::Value::Table(fields) = value {
                            file.take(number + 1, fields);
                        }
                    }
                }
                ("entry", _) => {
                    file.remarks
                        .push("entries are written [[entry]], with two brackets: all of it is ignored".into());
                    file.foreign = true;
                }
                (_, value) => {
                    file.remarks.push(format!("'{key}' means nothing here: ignored"));
                    file.others.insert(key, value);
                }
            }
        }
        file
    }

    fn take(&mut self, number: usize, fields: toml::Table) {
        match fields.clone().try_into::<Entry>() {
            Ok(entry) if self.entries.iter().any(|other| other.same_subject(&entry)) => {
                self.remarks.push(format!("entry {number} says again what stands above ({}): ignored", entry.case));
                self.unknown.push(fields);
            }
            Ok(entry) if entry.set.check(&entry.case).is_err() => {
                if let Err(Error::Option { name, reason }) = entry.set.check(&entry.case) {
                    self.remarks.push(format!("entry {number}: {name}: {reason}: the entry is ignored"));
                }
                self.unknown.push(fields);
            }
            Ok(entry) => {
                for key in entry.others.keys() {
                    self.remarks.push(format!("entry {number}: '{key}' means nothing here: ignored"));
                }
                self.entries.push(entry);
            }
            Err(error) => {
                self.remarks.push(format!("entry {number}: {}: ignored", error.message().replace('\n', " ")));
                self.unknown.push(fields);
            }
        }
    }

    /// Reads a file; one that is not there holds nothing.
    ///
    /// # Errors
    /// [`Error::File`] when it is there and cannot be read.
    pub fn read(path: &Path) -> Result<Self> {
        match read_small(path, MOST_BYTES) {
            Ok(bytes) => Ok(Self::parse(&String::from_utf8_lossy(&bytes))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(Error::File { path: path.into(), reason: error.to_string() }),
        }
    }

    /// The entries that come with the crate.
    pub fn shipped() -> Self {
        Self::parse(SHIPPED)
    }

    /// Puts an entry in, in place of one on the same subject, whose keys without a meaning stay.
    pub fn put(&mut self, mut entry: Entry) {
        match self.entries.iter_mut().find(|other| other.same_subject(&entry)) {
            Some(place) => {
                entry.others.extend(std::mem::take(&mut place.others));
                *place = entry;
            }
            None => self.entries.push(entry),
        }
    }

    /// The text of the file, with what was not understood as it was; comments are not kept.
    pub fn text(&self) -> String {
        let mut text = format!(
            "# Launch parameters of residuum: they change time, never results. Made by the program tune; an entry without\n\
             # anything set says that the rules of the crate were best.\nversion = {VERSION}\n"
        );
        write_fields(&mut text, &self.others);
        for entry in &self.entries {
            let Ok(toml::Value::Table(fields)) = toml::Value::try_from(entry) else { continue };
            text.push_str("\n[[entry]]\n");
            for key in ["device", "platform", "driver", "family", "reading", "precision", "size", "set", "measured"]
            {
                if let Some(value) = fields.get(key) {
                    // Writing to a String cannot fail.
                    let _ = writeln!(text, "{key} = {value}");
                }
            }
            write_fields(&mut text, &entry.others);
        }
        for fields in &self.unknown {
            text.push_str("\n[[entry]]\n");
            write_fields(&mut text, fields);
        }
        text
    }

    /// Changes the file at `path`: reads it, lets `change` do its work, and writes it whole, with its folder, if that changed anything.
    /// Processes take turns, so that each finds what the others wrote.
    ///
    /// # Errors
    /// [`Error::File`]; also for a file that is [`foreign`](Self::foreign), which stays as it is.
    pub fn update<R>(path: &Path, change: impl FnOnce(&mut Self) -> R) -> Result<R> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder)
                .map_err(|error| Error::File { path: folder.into(), reason: error.to_string() })?;
        }
        // Released when it is dropped, or when the process ends.
        let _turn = Self::lock(path);
        let mut file = Self::read(path)?;
        if file.foreign {
            let reason =
                format!("{}; it is not written over: name another file, or move it away", file.remarks.join("; "));
            return Err(Error::File { path: path.into(), reason });
        }
        let before = file.entries.clone();
        let done = change(&mut file);
        if file.entries != before {
            file.write(path)?;
        }
        Ok(done)
    }

    /// Waits for a lock beside `path`, if the file system has locks: the file itself is replaced, and with it a lock on it.
    fn lock(path: &Path) -> Option<std::fs::File> {
        let mut name = std::ffi::OsString::from(".");
        name.push(path.file_name()?);
        name.push(".lock");
        let path = path.with_file_name(name);
        let locked = std::fs::File::options().create(true).truncate(false).write(true).open(&path);
        let locked = locked.and_then(|file| file.lock().map(|()| file));
        locked.map_err(|error| log::warn!("{}: {error}; going on without a lock", path.display())).ok()
    }

    /// Writes the file whole.
    fn write(&self, path: &Path) -> Result<()> {
        let text = self.text();
        write_atomically(path, |out| out.write_all(text.as_bytes()))
    }
}

/// One line for each field, whatever it holds.
fn write_fields(text: &mut String, fields: &toml::Table) {
    for (key, value) in fields {
        let bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
        let key = if bare { key.clone() } else { toml::Value::String(key.clone()).to_string() };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{key} = {value}");
    }
}

impl Tuning {
    /// The rules for a device, under what was measured on it: what comes with the crate for this device, whatever its
    /// driver, and the user's file for this device and driver.
    ///
    /// Entries that are damaged, meant for another driver or cannot be taken are left out and named in `log`.
    pub(crate) fn of(info: &DeviceInfo) -> Self {
        Self::with_file(info, tune_path().as_deref())
    }

    /// Tuning of a device with the user's file at `path`, if there is one.
    fn with_file(info: &DeviceInfo, path: Option<&Path>) -> Self {
        let mut tuning = Self::for_device(info);
        if info.kind == DeviceKind::Host {
            return tuning;
        }
        for entry in TuneFile::shipped().entries.iter().filter(|entry| entry.fits(info)) {
            tuning.put(entry, "shipped", info);
        }
        let Some(path) = path else { return tuning };
        let file = match TuneFile::read(path) {
            Ok(file) => file,
            Err(error) => {
                log::warn!("tuned values are ignored: {error}");
                return tuning;
            }
        };
        for remark in &file.remarks {
            log::warn!("{}: {remark}", path.display());
        }
        let mut others = 0;
        for entry in file.entries.iter().filter(|entry| entry.fits(info)) {
            if entry.is_for(info) {
                tuning.put(entry, "file", info);
            } else {
                others += 1;
            }
        }
        if others > 0 {
            let driver = &info.driver;
            log::warn!(
                "{}: {others} entries of other drivers than {driver} of {} are ignored",
                path.display(),
                info.name
            );
        }
        tuning
    }

    fn put(&mut self, entry: &Entry, place: &'static str, info: &DeviceInfo) {
        match self.clone().with_settings(entry.case, entry.set, place, info) {
            Ok(tuning) => *self = tuning,
            Err(error) => log::warn!("tuned values ({place}): {error}: ignored"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::tests::gpu;
    use crate::number::Precision;
    use crate::tuning::{AccessPattern, Family, SizeClass};

    fn entry(work_group: usize) -> Entry {
        let info = gpu();
        Entry {
            device: info.name,
            platform: info.platform,
            driver: info.driver,
            case: Case {
                family: Family::CgProduct,
                reading: Some(AccessPattern::LongRows),
                precision: Precision::Double,
                size: SizeClass::Large,
            },
            set: Settings { work_group: Some(work_group), loads: Some(6), ..Settings::default() },
            measured: Some(Measured {
                problem: "a \"grid\"".into(),
                default_us: 12.5,
                tuned_us: 11.0,
                band: 0.02,
                ties: vec!["work-group 64".into()],
                curve: vec![(32, 13.0), (64, 11.1)],
                kernels: "0".into(),
                partial: false,
            }),
            others: toml::Table::new(),
        }
    }

    #[test]
    fn a_file_says_again_what_was_put_in() {
        let mut file = TuneFile::default();
        file.put(entry(256));
        file.put(Entry {
            case: Case { precision: Precision::Single, ..entry(1).case },
            measured: None,
            ..entry(512)
        });
        file.put(entry(128));
        assert_eq!((file.entries.len(), file.entries[0].set.work_group), (2, Some(128)));
        assert_eq!(TuneFile::parse(&file.text()), file, "{}", file.text());
        let shipped = TuneFile::shipped();
        assert!(shipped.remarks.is_empty(), "{:?}", shipped.remarks);
    }

    /// Tuners at work on one file at once: every entry is kept.
    #[test]
    fn all_that_is_put_in_at_once_is_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("new/tuning.toml");
        std::thread::scope(|scope| {
            for tuner in 0..5 {
                let path = &path;
                scope.spawn(move || {
                    for k in 0..4 {
                        let entry = Entry { device: format!("device {tuner} {k}"), ..entry(256) };
                        TuneFile::update(path, |file| file.put(entry)).expect("a file to write");
                    }
                });
            }
        });
        assert_eq!(TuneFile::read(&path).expect("a file").entries.len(), 20);
    }

    #[test]
    fn what_is_not_understood_is_not_written_over() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tuning.toml");
        for text in [
            "version = 2\n[[entry]]\nx = 1\n",
            "precious notes",
            "[package]\nname = \"x\"\n",
            "# a comment\n",
            "version = 1\n[entry]\ndevice = \"x\"\n",
            "version = 1\nentry = [1, 2]\n",
        ] {
            std::fs::write(&path, text).expect("written");
            let error =
                TuneFile::update(&path, |file| file.put(entry(256))).expect_err("it is of others").to_string();
            assert!(error.contains("not written over"), "{error}");
            assert_eq!(std::fs::read_to_string(&path).expect("still there"), text);
        }
        // An empty file is a new one; an entry of another version of the crate stays.
        std::fs::write(&path, " \n").expect("written");
        TuneFile::update(&path, |file| file.put(entry(256))).expect("written");
        let strange = "\n[[entry]]\ndevice = \"x\"\nfamily = \"later\"\nset = { colour = \"blue\" }\n";
        let text = std::fs::read_to_string(&path).expect("written") + strange;
        std::fs::write(&path, text).expect("written");
        TuneFile::update(&path, |file| file.put(entry(512))).expect("written");
        let text = std::fs::read_to_string(&path).expect("written");
        assert!(text.contains("later") && text.contains("blue") && text.contains("512"), "{text}");
        assert_eq!(TuneFile::read(&path).expect("a file").remarks.len(), 1);
        // Keys without a meaning stay too, an entry that repeats another, and all that is there if nothing changes.
        let twice = text.split("[[entry]]").nth(1).expect("an entry");
        let strange = text
            .replace("version = 1", "# mine\nversion = 1\nnote = \"keep\"")
            .replace("[[entry]]\ndevice = \"x\"", "[[entry]]\nfirst = true\ndevice = \"x\"")
            .replacen("[[entry]]", "[[entry]]\nsaid = \"by me\"", 1)
            + "\n[[entry]]"
            + twice
            + "\n[defaults]\nrow = { a = 1 }\n";
        std::fs::write(&path, &strange).expect("written");
        TuneFile::update(&path, |file| file.entries.retain(|entry| entry.device != "another")).expect("unchanged");
        assert_eq!(std::fs::read_to_string(&path).expect("there"), strange);
        TuneFile::update(&path, |file| file.put(entry(64))).expect("written");
        let text = std::fs::read_to_string(&path).expect("there");
        for kept in
            ["note = \"keep\"", "first = true", "said = \"by me\"", "work_group = 512", "work_group = 64", "row"]
        {
            assert!(text.contains(kept), "{kept}: {text}");
        }
        assert_eq!(TuneFile::parse(&text).text(), text, "written again, it is the same");
        // A device is no file, and is not waited for.
        assert!(TuneFile::read(Path::new("/dev/zero")).is_err());
    }

    #[test]
    fn what_is_damaged_is_named_and_the_rest_is_kept() {
        let mut file = TuneFile::default();
        file.put(entry(256));
        let good = file.text();
        for (from, to, why) in [
            ("version = 1", "version = 2", "version 2, not 1"),
            ("version = 1", "", "version none"),
            ("[[entry]]", "[[entry", "no TOML, near line 5"),
            ("cg-product", "cg-produce", "entry 1: unknown variant `cg-produce`"),
            ("work_group = 256", "work_groop = 256", "entry 1: unknown field `work_groop`"),
            ("work_group = 256", "work_group = -1", "entry 1:"),
            ("precision = ", "precisely = ", "missing field `precision`"),
            ("version = 1", "version = 1\nunits = 3", "'units' means nothing here"),
        ] {
            let text = good.replacen(from, to, 1);
            assert_ne!(text, good);
            let found = TuneFile::parse(&text);
            assert!(found.remarks.len() == 1 && found.remarks[0].contains(why), "{to}: {:?}", found.remarks);
            assert_eq!(found.entries.len(), usize::from(to.contains("units")), "{to}");
        }
        // A bad entry does not take the good one with it; the second of two on one subject does not count.
        let other = good.replacen("version = 1", "", 1).replacen("cg-product", "nonsense", 1);
        let both = TuneFile::parse(&format!("{good}{other}"));
        assert_eq!((both.entries.len(), both.remarks.len()), (1, 1));
        let twice = TuneFile::parse(&format!("{good}{}", good.replacen("version = 1", "", 1)));
        assert!(twice.entries.len() == 1 && twice.remarks[0].contains("says again"), "{:?}", twice.remarks);
    }

    /// In a container there is often no home, and so no configuration folder.
    #[test]
    fn shipped_values_need_no_folder() {
        let shipped = TuneFile::shipped().entries;
        let entry = shipped.iter().find(|entry| entry.set != Settings::default()).expect("something is shipped");
        let info = DeviceInfo { name: entry.device.clone(), platform: entry.platform.clone(), ..gpu() };
        for path in [None, Some(Path::new("/no such folder/tuning.toml"))] {
            let tuning = Tuning::with_file(&info, path);
            assert_eq!(tuning.settings(&entry.case), Some((entry.set, "shipped")), "{path:?}");
        }
    }

    #[test]
    fn only_what_the_device_can_take_is_in_force() {
        let info = gpu();
        let mut tuning = Tuning::for_device(&info);
        tuning.put(&entry(512), "file", &info);
        let case = entry(1).case;
        assert_eq!(tuning.settings(&case), Some((entry(512).set, "file")));
        for set in [
            Settings { work_group: Some(300), ..Settings::default() },
            Settings { work_group: Some(4096), ..Settings::default() },
            Settings { loads: Some(0), ..Settings::default() },
            Settings { registers: Some(3), ..Settings::default() },
            Settings { groups_per_unit: Some(4), ..Settings::default() },
            Settings { staged: Some(true), ..Settings::default() },
        ] {
            tuning.put(&Entry { set, ..entry(1) }, "file", &info);
            assert_eq!(tuning.settings(&case), Some((entry(512).set, "file")), "{set} was taken");
        }
        assert!(
            tuning.in_force(Precision::Double, 1 << 22).contains("tuned values for 1 kinds of launches (file)")
        );
        assert_eq!(tuning.in_force(Precision::Double, 1 << 12), tuning.to_string());
        let with = |set: Settings, tuned_us: f64| Entry {
            set,
            measured: entry(1).measured.map(|m| Measured { tuned_us, ..m }),
            ..entry(1)
        };
        let [a, b] = [8, 16].map(|n| Settings { loads: Some(n), ..Settings::default() });
        assert_eq!(with(a, 11.0).agrees_with(&with(a, 9.0)), Agreement::Same);
        assert_eq!(with(a, 11.0).agrees_with(&with(b, 11.4)), Agreement::Tie);
        assert_eq!(with(a, 11.0).agrees_with(&with(b, 12.0)), Agreement::Differ);
        let size = Settings { work_group: Some(64), ..Settings::default() };
        assert_eq!(with(a, 11.0).agrees_with(&with(size, 12.0)), Agreement::Tie, "named among the ties");
        assert!(entry(1).is_for(&info) && !entry(1).is_for(&DeviceInfo { driver: "another".into(), ..info }));
    }
}
