//! Data sets of HDF5 files as volumes, also those that soft and external links lead to, and virtual ones.

use std::path::{Path, PathBuf};

use rust_hdf5::{DatatypeMessage, H5Dataset, H5File, Hdf5Error, LinkClass};

use super::Stack;
use super::source::{Source, volume};
use crate::error::{Error, Result};
use crate::files::file_error;
use crate::io::open::short_name;

/// Most links that are followed to one data set.
const MOST_LINKS: usize = 32;
/// Most data sets that an error message lists.
const MOST_LISTED: usize = 12;

/// An HDF5 file.
pub(crate) struct Hdf5 {
    path: PathBuf,
    name: String,
    bytes: u64,
    file: H5File,
}

/// Kind of the numbers of a data set.
#[derive(Clone, Copy)]
enum Kind {
    Signed,
    Unsigned,
    Float,
}

/// Numbers with the text of their attribute `units`.
pub(crate) struct Numbers {
    pub(crate) numbers: Vec<f64>,
    pub(crate) units: String,
}

impl Hdf5 {
    /// Opens a file, of which only what is asked for is read.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let name = short_name(path);
        let bytes = std::fs::metadata(path).map_err(|e| file_error(path, &e))?.len();
        match H5File::options().best_effort_locking().open(path) {
            Ok(file) => Ok(Self { path: path.into(), name, bytes, file }),
            Err(Hdf5Error::Io(error)) => Err(file_error(path, &error)),
            Err(error) => {
                let reason = format!("it is damaged, or no HDF5 file that can be read: {}", words(&error));
                Err(Error::Format { what: name, reason })
            }
        }
    }

    fn refuse(&self, place: &str, reason: impl Into<String>) -> Error {
        Error::Format { what: format!("{} {place}", self.name), reason: reason.into() }
    }

    fn dataset(&self, place: &str) -> Result<Option<H5Dataset>> {
        match self.file.dataset(place.trim_matches('/')) {
            Ok(dataset) => Ok(Some(dataset)),
            Err(Hdf5Error::NotFound(_)) => Ok(None),
            Err(error) => Err(self.refuse(place, words(&error))),
        }
    }

    /// Tells if there is something at `place`, readable or not.
    pub(crate) fn has(&self, place: &str) -> bool {
        !matches!(self.file.dataset(place), Err(Hdf5Error::NotFound(_)))
    }

    /// The volume at `place`, if there is something.
    pub(crate) fn stack(&self, place: &str) -> Result<Option<Stack>> {
        let Some(dataset) = self.dataset(place)? else { return Ok(None) };
        let lengths = dataset.shape();
        let Some(shape) = volume(&lengths) else {
            return Err(self.refuse(place, format!("it has {} dimensions, a volume has 3", lengths.len())));
        };
        let bytes = self.bytes_behind(place, &dataset)?;
        let kind = self.kind(place, &dataset)?;
        let name = format!("{} {place}", self.name);
        let source = Pictures { name: name.clone(), dataset, lengths, kind };
        Stack::checked(name, shape, bytes, Box::new(source)).map(Some)
    }

    fn kind(&self, place: &str, dataset: &H5Dataset) -> Result<Kind> {
        match dataset.datatype().map_err(|e| self.refuse(place, words(&e)))? {
            DatatypeMessage::FixedPoint { signed: true, .. } => Ok(Kind::Signed),
            DatatypeMessage::FixedPoint { .. } | DatatypeMessage::BitField { .. } => Ok(Kind::Unsigned),
            // The crate multiplies other sizes without a look.
            DatatypeMessage::FloatingPoint { size: 2 | 4 | 8, .. } => Ok(Kind::Float),
            other => {
                let elements = elements(&other);
                Err(self.refuse(place, format!("its elements are {elements}; a volume has numbers")))
            }
        }
    }

    /// The numbers at `place`, at most `most` of them.
    pub(crate) fn numbers(&self, place: &str, most: usize) -> Result<Option<Numbers>> {
        let Some(dataset) = self.dataset(place)? else { return Ok(None) };
        let shape = dataset.shape();
        let count = shape.iter().try_fold(1usize, |all, length| all.checked_mul(*length));
        if count.is_none_or(|count| count > most) {
            return Err(self.refuse(place, format!("{shape:?} numbers are more than {most}")));
        }
        let refuse = |e: Hdf5Error| self.refuse(place, words(&e));
        let numbers = match self.kind(place, &dataset)? {
            Kind::Float => dataset.read_numeric_as::<f64>().map_err(refuse)?,
            Kind::Signed => {
                dataset.read_numeric_as::<i64>().map_err(refuse)?.into_iter().map(|v| v as f64).collect()
            }
            Kind::Unsigned => {
                dataset.read_numeric_as::<u64>().map_err(refuse)?.into_iter().map(|v| v as f64).collect()
            }
        };
        // An attribute that cannot be read says nothing.
        let units = ["units", "unit"].iter().find_map(|name| dataset.attr(name).ok()?.read_string().ok());
        Ok(Some(Numbers { numbers, units: units.unwrap_or_default() }))
    }

    /// Data sets of at least so many dimensions, with their lengths, in words: what could be meant by a name that is not there.
    pub(crate) fn candidates(&self, dimensions: usize) -> String {
        let mut found = Vec::new();
        for name in self.file.dataset_names() {
            // One that cannot be opened can be meant all the same.
            let Ok(dataset) = self.file.dataset(&name) else {
                found.push((name, Vec::new()));
                continue;
            };
            let shape = dataset.shape();
            if shape.len() >= dimensions {
                found.push((name, shape));
            }
        }
        // The largest is most likely meant.
        let numbers = |shape: &[usize]| shape.iter().fold(1usize, |all, length| all.saturating_mul(*length));
        found.sort_by_key(|(name, shape)| (std::cmp::Reverse(numbers(shape)), name.clone()));
        let listed: Vec<String> = found
            .iter()
            .take(MOST_LISTED)
            .map(|(name, shape)| {
                let lengths: Vec<String> = shape.iter().map(ToString::to_string).collect();
                format!("{name} ({})", if shape.is_empty() { "not readable".into() } else { lengths.join(" x ") })
            })
            .collect();
        match found.len() {
            0 => "it holds no volume".into(),
            count if count > MOST_LISTED => {
                format!("it holds {}, and {} more", listed.join(", "), count - MOST_LISTED)
            }
            _ => format!("it holds {}", listed.join(", ")),
        }
    }

    /// The place of the only volume of this file, if there is one alone.
    pub(crate) fn only_volume(&self) -> Option<String> {
        let is_volume = |name: &String| self.file.dataset(name).is_ok_and(|dataset| dataset.shape().len() >= 2);
        let mut volumes = self.file.dataset_names().into_iter().filter(is_volume);
        let first = volumes.next()?;
        volumes.next().is_none().then_some(first)
    }

    /// The place of a data set of this name anywhere in the file, of so many numbers.
    pub(crate) fn named(&self, name: &str, count: usize) -> Option<String> {
        let matches = |place: &String| {
            place.rsplit('/').next() == Some(name)
                && self.file.dataset(place).is_ok_and(|dataset| dataset.shape() == [count])
        };
        self.file.dataset_names().into_iter().find(matches)
    }

    /// Bytes of all files that hold the numbers of a data set. Fails on files that are not there: their numbers would be 0 without a word.
    fn bytes_behind(&self, place: &str, dataset: &H5Dataset) -> Result<u64> {
        let folder = self.path.parent().unwrap_or(Path::new("")).to_path_buf();
        let (linked, folder) = self.linked(place, folder);
        let mut bytes = self.bytes.saturating_add(linked);
        let mappings = dataset.virtual_mappings().map_err(|e| self.refuse(place, words(&e)))?;
        let mut sources: Vec<(&str, &str)> =
            mappings.iter().map(|mapping| (&*mapping.source_file_name, &*mapping.source_dset_name)).collect();
        sources.sort_unstable();
        sources.dedup();
        let mut last = "";
        for (name, source) in sources.into_iter().filter(|(name, _)| *name != ".") {
            if name.contains('%') || source.contains('%') {
                // A name with a number in it, for files that are added while a scan runs.
                bytes = bytes.saturating_add(all_files(&folder));
                continue;
            }
            let path = folder.join(name);
            let lost = |error: &dyn std::fmt::Display| {
                self.refuse(place, format!("a virtual data set with numbers of {name}, {source}: {error}"))
            };
            let about = std::fs::metadata(&path).map_err(|e| lost(&e))?;
            let file = H5File::options().best_effort_locking().open(&path).map_err(|e| lost(&words(&e)))?;
            file.dataset(source.trim_matches('/')).map_err(|e| lost(&words(&e)))?;
            if name != last {
                bytes = bytes.saturating_add(about.len());
            }
            last = name;
        }
        // Raw numbers in files of their own.
        for segment in dataset.external_files().map_err(|e| self.refuse(place, words(&e)))? {
            let about = std::fs::metadata(folder.join(&segment.name));
            bytes = bytes.saturating_add(about.map_or(0, |about| about.len()));
        }
        Ok(bytes)
    }

    /// Bytes of the file that an external link on the way to `place` leads to, and the folder of the last file.
    fn linked(&self, place: &str, folder: PathBuf) -> (u64, PathBuf) {
        let root = self.file.root_group();
        let mut path = place.trim_matches('/').to_string();
        let mut from = 0;
        for _ in 0..MOST_LINKS {
            let Some(end) = path[from..].find('/').map(|k| from + k).or((from < path.len()).then_some(path.len()))
            else {
                break;
            };
            match root.link_class(&path[..end]) {
                Ok(LinkClass::External { file, .. }) => {
                    let target = folder.join(file);
                    let bytes = std::fs::metadata(&target).map_or(0, |about| about.len());
                    let folder = target.parent().map(Path::to_path_buf).unwrap_or(folder);
                    // Files that it links to lie beside it.
                    return (bytes.saturating_add(all_files(&folder)), folder);
                }
                Ok(LinkClass::Soft { path: target }) => {
                    let group = path[..end].rfind('/').map_or("", |k| &path[..k]);
                    let target = match target.strip_prefix('/') {
                        Some(target) => target.to_string(),
                        None => format!("{group}/{target}").trim_matches('/').to_string(),
                    };
                    path = format!("{target}{}", &path[end..]);
                    from = 0;
                }
                _ => from = (end + 1).min(path.len()),
            }
        }
        (0, folder)
    }
}

/// Elements of a type that is none of numbers, in words. The crate's own words multiply sizes that a damaged file may have made too large.
fn elements(kind: &DatatypeMessage) -> String {
    use DatatypeMessage as D;
    match kind {
        D::FloatingPoint { size, .. } => return format!("floats of {size} bytes"),
        D::FixedString { .. } | D::VarLenString { .. } => "text",
        D::Compound { .. } => "records of several fields, such as complex numbers",
        D::Enum { .. } => "names of an enumeration",
        D::VarLenSequence { .. } | D::Array { .. } => "arrays",
        D::Reference { .. } => "references",
        D::Opaque { .. } => "opaque bytes",
        D::FixedPoint { .. } | D::BitField { .. } => "whole numbers",
    }
    .into()
}

/// Bytes of all files of a folder.
fn all_files(folder: &Path) -> u64 {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    entries.filter_map(|entry| entry.ok()?.metadata().ok()).fold(0, |all, about| all.saturating_add(about.len()))
}

/// An error in words for people.
fn words(error: &Hdf5Error) -> String {
    match error {
        Hdf5Error::DanglingLink { link, target } => {
            format!("the link {link} leads to {target}, which is not there")
        }
        Hdf5Error::ExternalFileNotFound { link, file, .. } => {
            format!("the link {link} leads to the file {file}, which cannot be opened")
        }
        Hdf5Error::Unsupported(what) => format!("it cannot be read: {what}"),
        Hdf5Error::NotFound(name) => format!("there is no data set {name}"),
        other => other.to_string(),
    }
}

struct Pictures {
    name: String,
    dataset: H5Dataset,
    lengths: Vec<usize>,
    kind: Kind,
}

impl Source for Pictures {
    fn picture(&mut self, k: usize) -> Result<Vec<f32>> {
        let refuse = |e: Hdf5Error| Error::Format { what: self.name.clone(), reason: words(&e) };
        let (mut starts, mut counts) = (vec![0; self.lengths.len()], self.lengths.clone());
        if let [_, _, _] = self.lengths[..] {
            (starts[0], counts[0]) = (k, 1);
        }
        let read = &self.dataset;
        Ok(match self.kind {
            Kind::Float => {
                let numbers = read.read_numeric_slice_as::<f64>(&starts, &counts).map_err(refuse)?;
                numbers.into_iter().map(|v| v as f32).collect()
            }
            Kind::Signed => {
                let numbers = read.read_numeric_slice_as::<i64>(&starts, &counts).map_err(refuse)?;
                numbers.into_iter().map(|v| v as f32).collect()
            }
            Kind::Unsigned => {
                let numbers = read.read_numeric_slice_as::<u64>(&starts, &counts).map_err(refuse)?;
                numbers.into_iter().map(|v| v as f32).collect()
            }
        })
    }
}
