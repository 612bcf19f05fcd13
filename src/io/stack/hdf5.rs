//! Data sets of HDF5 files as volumes.

use std::path::Path;

use hdf5_pure::{AttrValue, Dataset, File, FormatError};

use super::{Source, Stack};
use crate::error::{Error, Result};
use crate::files::file_error;
use crate::io::short_name;

/// An HDF5 file.
pub(crate) struct Hdf5 {
    name: String,
    bytes: u64,
    file: File,
}

impl Hdf5 {
    /// Opens a file, of which only what is asked for is read.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let name = short_name(path);
        let bytes = std::fs::metadata(path).map_err(|e| file_error(path, &e))?.len();
        match File::open_streaming(path) {
            Ok(file) => Ok(Self { name, bytes, file }),
            Err(hdf5_pure::Error::Io(error)) => Err(file_error(path, &error)),
            Err(error) => Err(Error::Format { what: name, reason: error.to_string() }),
        }
    }

    fn refuse(&self, place: &str, error: &dyn std::fmt::Display) -> Error {
        Error::Format { what: self.name.clone(), reason: format!("{place}: {error}") }
    }

    fn dataset(&self, place: &str) -> Result<Option<Dataset>> {
        match self.file.dataset(place) {
            Ok(dataset) => Ok(Some(dataset)),
            Err(hdf5_pure::Error::Format(FormatError::PathNotFound(_))) => Ok(None),
            Err(error) => Err(self.refuse(place, &error)),
        }
    }

    /// The volume at `place`, if there is something.
    pub(crate) fn stack(&self, place: &'static str) -> Result<Option<Stack>> {
        let Some(dataset) = self.dataset(place)? else { return Ok(None) };
        let shape = dataset.shape().map_err(|e| self.refuse(place, &e))?;
        let lengths: Vec<usize> = shape.iter().filter_map(|length| usize::try_from(*length).ok()).collect();
        let [pictures, rows, columns] = lengths[..] else {
            return Err(self.refuse(place, &format!("it has {} dimensions, a volume has 3", shape.len())));
        };
        let name = format!("{} {place}", self.name);
        let source = Pictures { name: name.clone(), dataset };
        Stack::checked(name, [pictures, rows, columns], self.bytes, Box::new(source)).map(Some)
    }

    /// The numbers at `place`, at most `most` of them, with the text of the attribute `units`.
    pub(crate) fn numbers(&self, place: &'static str, most: usize) -> Result<Option<(Vec<f64>, String)>> {
        let Some(dataset) = self.dataset(place)? else { return Ok(None) };
        let shape = dataset.shape().map_err(|e| self.refuse(place, &e))?;
        let count = shape.iter().try_fold(1u64, |all, length| all.checked_mul(*length));
        if count.is_none_or(|count| count > most as u64) {
            return Err(self.refuse(place, &format!("{shape:?} numbers are more than {most}")));
        }
        let numbers = dataset.read_f64().map_err(|e| self.refuse(place, &e))?;
        // An attribute that cannot be read says nothing.
        let units = dataset.attrs().ok().and_then(|mut attributes| attributes.remove("units"));
        let units = match units {
            Some(
                AttrValue::String(text)
                | AttrValue::AsciiString(text)
                | AttrValue::VarLenString(text)
                | AttrValue::VarLenAsciiString(text)
                | AttrValue::StringSized { value: text, .. }
                | AttrValue::AsciiStringSized { value: text, .. },
            ) => text,
            _ => String::new(),
        };
        Ok(Some((numbers, units)))
    }
}

struct Pictures {
    name: String,
    dataset: Dataset,
}

impl Source for Pictures {
    fn picture(&mut self, k: usize) -> Result<Vec<f32>> {
        let refuse = |e: hdf5_pure::Error| Error::Format { what: self.name.clone(), reason: e.to_string() };
        self.dataset.read_f32_rows(k as u64, 1).map_err(refuse)
    }
}
