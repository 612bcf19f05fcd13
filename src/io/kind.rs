//! Kinds of files, told apart by their first bytes.

use std::fs;
use std::io::Read;
use std::path::Path;

use super::open::{MARK, open};
use crate::error::{Error, Result};
use crate::files::file_error;
use crate::text::listed;

/// Kind of a file, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileKind {
    /// A Matrix Market file.
    MatrixMarket,
    /// A NumPy array (`.npy`).
    Npy,
    /// A zip archive, as SciPy's matrices are (`.npz`).
    Zip,
    /// A tar archive.
    Tar,
    /// A file that bzip2 compressed.
    Bzip2,
    /// A file that xz compressed.
    Xz,
    /// A file that zstd compressed.
    Zstandard,
    /// An archive of 7-Zip.
    SevenZip,
    /// A MATLAB file of level 5.
    Mat5,
    /// An HDF5 file, which MATLAB 7.3 files are too.
    Hdf5,
    /// A binary file of PETSc.
    Petsc,
    /// A TIFF picture.
    Tiff,
    /// A PNG picture.
    Png,
}

/// A kind of file, and how it is known.
struct Row {
    kind: FileKind,
    /// Name as a sentence has it.
    name: &'static str,
    /// Places in a file and the bytes that stand there; one of them is enough. Capitals of the first kind do not matter.
    marks: &'static [(usize, &'static [u8])],
    /// Command that unpacks it, of a kind that is not read packed.
    unpacked_by: Option<&'static str>,
}

/// Every kind, in the order in which a file is compared with them.
static ROWS: &[Row] = &[
    Row {
        kind: FileKind::MatrixMarket,
        name: "a Matrix Market file",
        marks: &[(0, b"%%MatrixMarket")],
        unpacked_by: None,
    },
    Row { kind: FileKind::Npy, name: "a NumPy array", marks: &[(0, b"\x93NUMPY")], unpacked_by: None },
    Row {
        kind: FileKind::Zip,
        name: "a zip archive (.npz)",
        marks: &[(0, b"PK\x03\x04"), (0, b"PK\x05\x06")],
        unpacked_by: None,
    },
    Row {
        kind: FileKind::Hdf5,
        name: "an HDF5 file (MATLAB 7.3 writes such too: save with -v7)",
        marks: &[(0, b"\x89HDF\r\n\x1a\n"), (0, b"MATLAB 7.3")],
        unpacked_by: None,
    },
    Row {
        kind: FileKind::Petsc,
        name: "a binary file of PETSc",
        marks: &[
            (0, b"\0\x12\x7b\x50"),
            (0, b"\0\x12\x7b\x4e"),
            (0, b"\0\x12\x7b\x52"),
            (0, b"\0\0\0\0\0\x12\x7b"),
        ],
        unpacked_by: None,
    },
    Row {
        kind: FileKind::Tiff,
        name: "a TIFF picture",
        marks: &[(0, b"II*\0"), (0, b"MM\0*"), (0, b"II+\0"), (0, b"MM\0+")],
        unpacked_by: None,
    },
    Row { kind: FileKind::Png, name: "a PNG picture", marks: &[(0, b"\x89PNG")], unpacked_by: None },
    Row {
        kind: FileKind::Bzip2,
        name: "compressed with bzip2",
        marks: &[(0, b"BZh")],
        unpacked_by: Some("bunzip2"),
    },
    Row { kind: FileKind::Xz, name: "compressed with xz", marks: &[(0, b"\xfd7zXZ\0")], unpacked_by: Some("unxz") },
    Row {
        kind: FileKind::Zstandard,
        name: "compressed with zstd",
        marks: &[(0, b"\x28\xb5\x2f\xfd")],
        unpacked_by: Some("unzstd"),
    },
    Row {
        kind: FileKind::SevenZip,
        name: "an archive of 7-Zip",
        marks: &[(0, b"7z\xbc\xaf\x27\x1c")],
        unpacked_by: Some("7z x"),
    },
    Row { kind: FileKind::Tar, name: "a tar archive", marks: &[(257, b"ustar")], unpacked_by: None },
    Row {
        kind: FileKind::Mat5,
        name: "a MATLAB file",
        marks: &[(124, b"\0\x01IM"), (124, b"\x01\0MI")],
        unpacked_by: None,
    },
];

impl FileKind {
    /// The kind of the file at `path`; `None` for one that is not known. Of a file that gzip compressed, what it holds counts. What is no
    /// regular file (a pipe) can be read only once: there the ending of its name decides between `.npy`, `.mat` and the rest.
    ///
    /// # Errors
    /// [`Error::File`] when it cannot be opened or read.
    pub fn of(path: &Path) -> Result<Option<Self>> {
        let about = fs::metadata(path).map_err(|e| file_error(path, &e))?;
        if !about.is_file() {
            return Ok(match path.extension().and_then(|ending| ending.to_str()) {
                Some("npy") => Some(Self::Npy),
                Some("mat") => Some(Self::Mat5),
                _ => None,
            });
        }
        let mut start = Vec::with_capacity(512);
        // A damaged archive is a matter of whoever reads on.
        let _ = open(path)?.take(512).read_to_end(&mut start);
        if start.starts_with(MARK) {
            start.drain(..MARK.len());
        }
        let stands = |kind: Self, at: usize, mark: &[u8]| {
            let found = start.get(at..at + mark.len());
            found.is_some_and(|found| match kind {
                Self::MatrixMarket => found.eq_ignore_ascii_case(mark),
                _ => found == mark,
            })
        };
        let is = |row: &&Row| row.marks.iter().any(|(at, mark)| stands(row.kind, *at, mark));
        Ok(ROWS.iter().find(is).map(|row| row.kind))
    }

    /// The kinds that are `wanted`, as a sentence lists them.
    pub(super) fn names(wanted: impl Fn(Self) -> bool) -> String {
        let names: Vec<&str> = ROWS.iter().filter(|row| wanted(row.kind)).map(|row| row.name).collect();
        listed(&names, "or")
    }

    /// The error of a file of this kind if `wanted` was expected.
    pub fn refused(self, path: &Path, wanted: &str) -> Error {
        let name = path.display();
        let help = match self {
            Self::Zip if !wanted.contains("zip") => " (an array of an .npz: save it by np.save)",
            _ => "",
        };
        let unpacked_by = self.row().and_then(|row| row.unpacked_by);
        let reason = match unpacked_by {
            Some(command) => format!("this is {self}, which is not read: unpack it ({command} {name})"),
            None => format!("this is {self}; expected {wanted}{help}"),
        };
        Error::Format { what: name.to_string(), reason }
    }

    fn row(self) -> Option<&'static Row> {
        ROWS.iter().find(|row| row.kind == self)
    }
}

impl std::fmt::Display for FileKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.row().map_or("a file", |row| row.name))
    }
}
