//! Kinds of files, told apart by their first bytes.

use std::fs::{self};
use std::io::Read;
use std::path::Path;

use super::open::{MARK, open};
use crate::error::{Error, Result};
use crate::files::file_error;

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
    /// A TIFF picture.
    Tiff,
    /// A PNG picture.
    Png,
}

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
        let starts = |magic: &[u8]| start.starts_with(magic);
        let has = |at: usize, mark: &[u8]| start.get(at..at + mark.len()) == Some(mark);
        Ok(if start.get(..14).is_some_and(|banner| banner.eq_ignore_ascii_case(b"%%MatrixMarket")) {
            Some(Self::MatrixMarket)
        } else if starts(b"\x93NUMPY") {
            Some(Self::Npy)
        } else if starts(b"PK\x03\x04") || starts(b"PK\x05\x06") {
            Some(Self::Zip)
        } else if starts(b"\x89HDF\r\n\x1a\n") || starts(b"MATLAB 7.3") {
            Some(Self::Hdf5)
        } else if starts(b"II*\0") || starts(b"MM\0*") || starts(b"II+\0") || starts(b"MM\0+") {
            Some(Self::Tiff)
        } else if starts(b"\x89PNG") {
            Some(Self::Png)
        } else if starts(b"BZh") {
            Some(Self::Bzip2)
        } else if starts(b"\xfd7zXZ\0") {
            Some(Self::Xz)
        } else if starts(b"\x28\xb5\x2f\xfd") {
            Some(Self::Zstandard)
        } else if starts(b"7z\xbc\xaf\x27\x1c") {
            Some(Self::SevenZip)
        } else if has(257, b"ustar") {
            Some(Self::Tar)
        } else if has(124, b"\0\x01IM") || has(124, b"\x01\0MI") {
            Some(Self::Mat5)
        } else {
            None
        })
    }

    /// The error of a file of this kind if `wanted` was expected.
    pub fn refused(self, path: &Path, wanted: &str) -> Error {
        let name = path.display();
        let help = match self {
            Self::Zip if !wanted.contains("save_npz") => " (an array of an .npz: save it by np.save)",
            _ => "",
        };
        let reason = match self.unpacked_by() {
            Some(command) => format!("this is {self}, which is not read: unpack it ({command} {name})"),
            None => format!("this is {self}; expected {wanted}{help}"),
        };
        Error::Format { what: name.to_string(), reason }
    }

    /// Command that unpacks a file which is not read packed.
    fn unpacked_by(self) -> Option<&'static str> {
        match self {
            Self::Bzip2 => Some("bunzip2"),
            Self::Xz => Some("unxz"),
            Self::Zstandard => Some("unzstd"),
            Self::SevenZip => Some("7z x"),
            _ => None,
        }
    }
}

impl std::fmt::Display for FileKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::MatrixMarket => "a Matrix Market file",
            Self::Npy => "a NumPy array",
            Self::Zip => "a zip archive, as SciPy's matrices are (.npz)",
            Self::Tar => "a tar archive",
            Self::Bzip2 => "compressed with bzip2",
            Self::Xz => "compressed with xz",
            Self::Zstandard => "compressed with zstd",
            Self::SevenZip => "an archive of 7-Zip",
            Self::Mat5 => "a MATLAB file",
            Self::Hdf5 => "an HDF5 file (MATLAB 7.3 writes such too: save with -v7)",
            Self::Tiff => "a TIFF picture",
            Self::Png => "a PNG picture",
        })
    }
}
