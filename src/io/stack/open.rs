//! Volumes opened: the kind of each file, files of a folder in order.

use std::fs;
use std::path::{Path, PathBuf};

use super::array;
#[cfg(feature = "hdf5")]
use super::hdf5;
use super::source::{Stack, Whole, volume};
#[cfg(feature = "tiff")]
use super::tiff;
use crate::error::{Error, Result};
use crate::files::file_error;
use crate::io::kind::FileKind;
use crate::io::npy;
use crate::io::open::short_name;

/// The error of a file that needs a feature.
#[cfg(not(all(feature = "hdf5", feature = "tiff")))]
pub(crate) fn without(path: &Path, kind: &str, feature: &str) -> Error {
    let reason = format!("this is {kind}, which needs a build with --features {feature}");
    Error::Format { what: short_name(path), reason }
}

impl Stack {
    /// Opens a `.npy` array of one dimension (a row), two (one picture) or three, a TIFF file, or a folder of TIFF files, in the order of their names
    /// (numbers in names count as numbers).
    ///
    /// # Errors
    /// [`Error::File`] for what cannot be read; [`Error::Format`] for files of another kind, which it names, of another shape, or that need a feature
    /// which this build lacks.
    pub fn open(path: &Path) -> Result<Self> {
        if fs::metadata(path).map_err(|e| file_error(path, &e))?.is_dir() {
            return Self::open_folder(path);
        }
        match FileKind::of(path)? {
            Some(FileKind::Npy) => {
                if let Some((shape, pictures)) = array::Pictures::open(path)? {
                    let bytes = fs::metadata(path).map_err(|e| file_error(path, &e))?.len();
                    return Self::checked(short_name(path), shape, bytes, Box::new(pictures));
                }
                let array = npy::read(path)?;
                let Some(shape) = volume(&array.shape) else {
                    let reason = format!("{} dimensions; a volume has 3, a picture 2", array.shape.len());
                    return Err(Error::Format { what: short_name(path), reason });
                };
                let (bytes, size) = (array.data.len() as u64, shape[1] * shape[2]);
                Self::checked(short_name(path), shape, bytes, Box::new(Whole { data: array.data, size }))
            }
            Some(FileKind::Tiff) => Self::open_tiff(path, vec![path.to_path_buf()]),
            #[cfg(feature = "hdf5")]
            Some(FileKind::Hdf5) => {
                let file = hdf5::Hdf5::open(path)?;
                let only = file.only_volume().map(|place| file.stack(&place)).transpose()?.flatten();
                only.ok_or_else(|| {
                    let reason = format!("{}: name one, as {}:PLACE", file.candidates(2), short_name(path));
                    Error::Format { what: short_name(path), reason }
                })
            }
            Some(other) => Err(other.refused(path, "a volume: .npy, TIFF or a folder of TIFF files")),
            None => {
                let reason = "this is neither a .npy array nor TIFF".into();
                Err(Error::Format { what: short_name(path), reason })
            }
        }
    }

    fn open_folder(path: &Path) -> Result<Self> {
        let failed = |e: std::io::Error| file_error(path, &e);
        let mut files = Vec::new();
        for entry in fs::read_dir(path).map_err(failed)? {
            let file = entry.map_err(failed)?.path();
            let ending = file.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
            if ["tif", "tiff"].iter().any(|known| ending.eq_ignore_ascii_case(known)) {
                files.push(file);
            }
        }
        if files.is_empty() {
            let reason = "this folder holds no .tif files".into();
            return Err(Error::Format { what: path.display().to_string(), reason });
        }
        files.sort_by_cached_key(|file| pieces(&short_name(file)));
        let names: Vec<String> = files.iter().map(|file| short_name(file)).collect();
        let gap = gap(&names);
        let mut stack = Self::open_tiff(path, files)?;
        stack.remarks.extend(gap.clone());
        stack.gap = gap;
        Ok(stack)
    }

    #[cfg(feature = "tiff")]
    fn open_tiff(path: &Path, files: Vec<PathBuf>) -> Result<Self> {
        let volume = tiff::open(files)?;
        let mut stack = Self::checked(short_name(path), volume.shape, volume.bytes, Box::new(volume.source))?;
        stack.remarks = volume.remarks;
        Ok(stack)
    }

    #[cfg(not(feature = "tiff"))]
    fn open_tiff(path: &Path, _: Vec<PathBuf>) -> Result<Self> {
        Err(without(path, "TIFF", "tiff"))
    }
}

/// Gaps among numbers of files are those above so many times the median step.
const GAP: f64 = 1.5;

/// Sign that files are missing, if the names differ by one number alone, and its steps are larger in some places than elsewhere.
fn gap(names: &[String]) -> Option<String> {
    let all: Vec<Vec<(String, u64)>> = names.iter().map(|name| pieces(name)).collect();
    let first = all.first()?;
    let same_words =
        |other: &Vec<(String, u64)>| other.len() == first.len() && other.iter().zip(first).all(|(a, b)| a.0 == b.0);
    let counts = |k: &usize| all.iter().any(|name| name[*k].1 != first[*k].1);
    if !all.iter().all(same_words) {
        return None;
    }
    let counting: Vec<usize> = (0..first.len()).filter(counts).collect();
    let [piece] = counting[..] else { return None };
    let steps: Vec<u64> = all.windows(2).map(|pair| pair[1][piece].1.saturating_sub(pair[0][piece].1)).collect();
    let mut sorted = steps.clone();
    sorted.sort_unstable();
    let median = *sorted.get(steps.len() / 2)?;
    let wide = |step: &u64| *step as f64 > GAP * median as f64;
    let at = steps.iter().position(wide)?;
    let others = steps.iter().filter(|step| wide(step)).count() - 1;
    let more = if others > 0 { format!(", and {others} more such gaps") } else { String::new() };
    Some(format!("a file seems to be missing: {} follows {}{more}", names[at + 1], names[at]))
}

/// A name in pieces that sort as people would: numbers by value, then text.
fn pieces(name: &str) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let text = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let digits = rest[text..].find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len() - text);
        let number = rest[text..text + digits].parse().unwrap_or(u64::MAX);
        found.push((rest[..text].to_string(), number));
        rest = &rest[text + digits..];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_by_their_numbers() {
        let mut names = ["p10.tif", "p9.tif", "p100.tif", "a.tif", "p9b.tif"];
        names.sort_by_cached_key(|name| pieces(name));
        assert_eq!(names, ["a.tif", "p9.tif", "p9b.tif", "p10.tif", "p100.tif"]);
    }

    #[test]
    fn gaps_among_numbered_files_are_seen() {
        let names = |numbers: &[u32]| numbers.iter().map(|k| format!("p{k:03}.tif")).collect::<Vec<_>>();
        let words = gap(&names(&[0, 1, 2, 3, 4, 6, 7, 8, 9])).expect("a gap");
        assert!(words.contains("p006.tif follows p004.tif") && !words.contains("more"), "{words}");
        assert!(gap(&names(&[0, 2, 4, 6, 10, 12, 20])).expect("a gap").contains("1 more"));
        for whole in [&[0, 1, 2, 3][..], &[10, 20, 30], &[0, 33, 67, 100, 133], &[5], &[]] {
            assert!(gap(&names(whole)).is_none(), "{whole:?}");
        }
        // Names that say two things, or different ones, say nothing of gaps.
        let names = ["a1b2.tif", "a2b7.tif", "a3b9.tif"].map(String::from);
        assert!(gap(&names).is_none() && gap(&["x1.tif".into(), "y9.tif".into()]).is_none());
    }

    #[test]
    fn arrays_are_volumes() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.npy");
        let data: Vec<f64> = (0..24).map(f64::from).collect();
        npy::write(&path, &[2, 3, 4], &data).expect("written");
        let mut stack = Stack::open(&path).expect("a volume");
        assert_eq!(stack.shape(), [2, 3, 4]);
        assert_eq!(stack.picture(1).expect("there")[..2], [12.0, 13.0]);
        assert!(matches!(stack.picture(2), Err(Error::Shape { .. })));
        let second = stack.picture(1).expect("there");
        // Numbers columns first, which are read at once.
        let header = "{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3, 4), }";
        let mut content =
            [&b"\x93NUMPY\x01\x00"[..], &(header.len() as u16).to_le_bytes(), header.as_bytes()].concat();
        let by_columns = (0..24).map(|k| data[(k % 2) * 12 + (k / 2 % 3) * 4 + k / 6]);
        content.extend(by_columns.flat_map(f64::to_le_bytes));
        fs::write(&path, &content).expect("written");
        let mut other = Stack::open(&path).expect("a volume");
        assert_eq!(other.picture(1).expect("there"), second);
        content.pop();
        fs::write(&path, &content).expect("written");
        assert!(Stack::open(&path).expect_err("short").to_string().contains("after 23 of 24"));
        npy::write(&path, &[6, 4], &data).expect("written");
        assert_eq!(Stack::open(&path).expect("a picture").shape(), [1, 6, 4]);
        assert_eq!(Stack::open(&path).expect("a picture").remarks().len(), 0);
        npy::write(&path, &[24], &data).expect("written");
        assert_eq!(Stack::open(&path).expect("a row").shape(), [1, 1, 24]);
        for shape in [&[2, 3, 2, 2][..], &[0, 3, 4]] {
            npy::write(&path, shape, &data[..shape.iter().product()]).expect("written");
            assert!(matches!(Stack::open(&path), Err(Error::Format { .. })), "{shape:?}");
        }
        let source = || Box::new(Whole { data: Vec::new(), size: 0 });
        for shape in [[usize::MAX, 2, 3], [1 << 20, 1 << 10, 4]] {
            let error = Stack::checked("claims".into(), shape, 500, source()).expect_err("too many");
            assert!(error.to_string().contains("more than 500 bytes can hold"), "{error}");
        }
        assert!(matches!(Stack::open(folder.path()), Err(Error::Format { .. })));
        assert!(matches!(Stack::open(&folder.path().join("absent")), Err(Error::File { .. })));
    }
}
