//! Files: matrices and vectors in Matrix Market form, scans in MATLAB form, arrays in NumPy form, matrices in SciPy's.
//!
//! Readers take any bytes: what does not hold what it should is an [`Error::Format`], never a panic, and memory
//! follows what a file really holds, not what its header claims. A file that is compressed with gzip is read as
//! if it were not; what is compressed may of course expand. Writers replace a file only by a complete one, see [`write_atomically`].

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Cursor, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use flate2::bufread::MultiGzDecoder;

use crate::error::{Error, Result};
use crate::real::Real;
use crate::sparse::Csr;

pub mod mat5;
pub mod matrix_market;
pub mod npy;
pub mod npz;

/// Called now and then while a matrix is read, with the number of entries read so far and of all.
pub type Watch<'a> = dyn FnMut(u64, u64) + 'a;

/// Reads a matrix from a Matrix Market file (`.mtx`, `.mtx.gz`) or one of SciPy (`.npz`), told apart by the name's
/// ending. `watch` sees the progress.
///
/// # Errors
/// As [`matrix_market::read_matrix`] and [`npz::read_matrix`].
pub fn read_matrix<T: Real>(path: &Path, watch: &mut Watch<'_>) -> Result<Csr<T>> {
    if has_ending(path, "npz") { npz::read_matrix(path) } else { matrix_market::read_matrix_watched(path, watch) }
}

/// Reads vectors of equal length from a NumPy file (`.npy`: one, or one a row) or one from a Matrix Market file.
///
/// # Errors
/// As [`npy::read`] and [`matrix_market::read_vector`].
pub fn read_vectors<T: Real>(path: &Path) -> Result<Vec<Vec<T>>> {
    if !has_ending(path, "npy") {
        return Ok(vec![matrix_market::read_vector(path)?]);
    }
    let array = npy::read(path)?;
    let length = array.shape.last().copied().unwrap_or(1);
    Ok(array.data.chunks(length.max(1)).map(|part| part.iter().map(|v| T::from_f64(*v)).collect()).collect())
}

fn has_ending(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case(ending))
}

/// Bytes held by readers and writers: large enough that system calls cost nothing beside the parsing.
const BUFFER: usize = 1 << 18;

/// Most elements to make room for on the word of a header; beyond it, vectors grow as data arrives.
pub(crate) const TRUSTED_ELEMENTS: usize = 1 << 20;

/// Whether a matrix of `entries` entries may have so many rows. Row offsets take memory even where nothing is stored,
/// so a short file must not ask for a long matrix: 2²² rows are free, 64 more come with every entry.
pub(crate) fn plausible_rows(rows: u64, entries: u64) -> bool {
    rows <= (1u64 << 22).saturating_add(entries.saturating_mul(64))
}

/// Opens a file for reading; one that starts with the two bytes of gzip is decompressed on the way.
///
/// # Errors
/// [`Error::File`] when it cannot be opened or its first bytes cannot be read.
pub(crate) fn open(path: &Path) -> Result<Box<dyn BufRead + Send>> {
    let file = File::open(path).map_err(|e| file_error(path, &e))?;
    let mut start = Vec::with_capacity(2);
    (&file).take(2).read_to_end(&mut start).map_err(|e| file_error(path, &e))?;
    let compressed = start == [0x1f, 0x8b];
    // Chained instead of rewound, so that pipes can be read too.
    let whole = BufReader::with_capacity(BUFFER, Cursor::new(start).chain(file));
    Ok(if compressed {
        Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(whole)))
    } else {
        Box::new(whole)
    })
}

/// The name by which error messages call a file: its last component.
pub(crate) fn short_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// The error of a read that failed in the middle of `name`: damaged compressed data is a fault of the content,
/// everything else one of the file. `what` names the content, with the line where there is one.
pub(crate) fn read_error(name: &str, what: String, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof => {
            Error::Format { what, reason: format!("compressed data is damaged or cut off ({error})") }
        }
        _ => file_error(Path::new(name), error),
    }
}

/// [`Error::File`] in the operating system's words.
fn file_error(path: &Path, error: &io::Error) -> Error {
    Error::File { path: path.to_path_buf(), reason: error.to_string() }
}

/// Writes a file in one piece: `write` fills a temporary file in the same folder, which then takes the place of
/// `path`. Whoever reads `path` finds the old content or the new one, never a part; when anything fails the old
/// file stays as it was and the temporary one is removed.
///
/// The writer given to `write` is buffered. A symbolic link is followed, the permissions of an existing file are
/// kept, and something that is no regular file (`/dev/stdout`, a pipe) is written to directly.
///
/// # Errors
/// [`Error::File`] with `path` and the reason when the folder is missing, a write fails or `write` returns an
/// error.
///
/// ```
/// # fn main() -> residuum::Result<()> {
/// let path = std::env::temp_dir().join("residuum-doc-example.txt");
/// residuum::io::write_atomically(&path, |out| out.write_all(b"complete\n"))?;
/// # let _ = std::fs::remove_file(path);
/// # Ok(())
/// # }
/// ```
pub fn write_atomically(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    replace(path, write).map_err(|e| file_error(path, &e))
}

/// [`write_atomically`] with the operating system's error.
fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let permissions = match fs::metadata(path) {
        Ok(existing) if !existing.is_file() => {
            // Renaming onto a device would replace the device.
            let mut out = BufWriter::with_capacity(BUFFER, OpenOptions::new().write(true).open(path)?);
            write(&mut out)?;
            return out.flush();
        }
        Ok(existing) => Some(existing.permissions()),
        Err(_) => None,
    };
    // Renaming onto a link would replace the link and leave the file it points to. A link that points to nothing
    // cannot be resolved and is replaced.
    let target = match permissions {
        Some(_) => fs::canonicalize(path)?,
        None => path.to_path_buf(),
    };
    let (temporary, file) = Temporary::beside(&target)?;
    let mut out = BufWriter::with_capacity(BUFFER, file);
    write(&mut out)?;
    let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    if let Some(permissions) = permissions {
        file.set_permissions(permissions)?;
    }
    // Without this a power cut after the rename can leave the new name with no content.
    file.sync_all()?;
    drop(file);
    temporary.rename(&target)
}

/// A file that is removed when dropped, also when the code that fills it panics.
struct Temporary {
    path: PathBuf,
    renamed: bool,
}

impl Temporary {
    /// Creates an empty file in the folder of `target`, under a name nobody uses.
    fn beside(target: &Path) -> io::Result<(Self, File)> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = target
            .file_name()
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"))?;
        loop {
            let mut hidden = OsString::from(".");
            hidden.push(name);
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            hidden.push(format!(".{}-{number}.tmp", std::process::id()));
            let path = target.with_file_name(hidden);
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => {
                    let temporary = Self { path, renamed: false };
                    return Ok((temporary, file));
                }
                // Left behind by a killed process that had the same number.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Moves the file to its place.
    fn rename(mut self, target: &Path) -> io::Result<()> {
        fs::rename(&self.path, target)?;
        self.renamed = true;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.renamed {
            // Nothing more can be done where even this fails.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(content).expect("memory");
        encoder.finish().expect("memory")
    }

    fn read_all(path: &Path) -> Vec<u8> {
        let mut content = Vec::new();
        open(path).expect("exists").read_to_end(&mut content).expect("readable");
        content
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .expect("folder")
            .map(|e| e.expect("entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn compressed_and_plain_files_read_the_same() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("content");
        for content in [&b""[..], b"1", b"ab", b"some more bytes"] {
            fs::write(&path, content).expect("write");
            assert_eq!(read_all(&path), content);
            fs::write(&path, gzip(content)).expect("write");
            assert_eq!(read_all(&path), content);
        }
        // Several members in a row are one stream.
        fs::write(&path, [gzip(b"one "), gzip(b"two")].concat()).expect("write");
        assert_eq!(read_all(&path), b"one two");
    }

    #[test]
    fn a_missing_file_is_named_with_its_folder() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("absent.mtx");
        let Err(Error::File { path: named, .. }) = open(&path) else {
            panic!("opened a file that is not there");
        };
        assert_eq!(named, path);
        assert!(matches!(open(folder.path()), Err(Error::File { .. })));
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("kept");
        write_atomically(&path, |out| out.write_all(b"old")).expect("writable");
        let failed = write_atomically(&path, |out| {
            out.write_all(b"half")?;
            Err(io::Error::other("no more"))
        });
        match failed {
            Err(Error::File { path: named, reason }) => {
                assert_eq!(named, path);
                assert_eq!(reason, "no more");
            }
            other => panic!("{other:?}"),
        }
        let panicked = std::panic::catch_unwind(|| write_atomically(&path, |_| panic!("inside")));
        assert!(panicked.is_err());
        assert_eq!(fs::read(&path).expect("kept"), b"old");
        assert_eq!(names(folder.path()), ["kept"]);
        write_atomically(&path, |out| out.write_all(b"new")).expect("writable");
        assert_eq!(fs::read(&path).expect("kept"), b"new");
        assert_eq!(names(folder.path()), ["kept"]);
    }

    #[test]
    fn folders_that_do_not_exist_and_folders_as_files_are_refused() {
        let folder = tempfile::tempdir().expect("folder");
        for path in [folder.path().join("absent/file"), folder.path().to_path_buf(), PathBuf::new()] {
            let written = write_atomically(&path, |out| out.write_all(b"x"));
            assert!(matches!(written, Err(Error::File { .. })), "{path:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_permissions_and_devices_survive() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().expect("folder");
        let (path, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&path, b"old").expect("write");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("mode");
        symlink(&path, &link).expect("link");
        write_atomically(&link, |out| out.write_all(b"new")).expect("writable");
        assert!(fs::symlink_metadata(&link).expect("link").is_symlink());
        assert_eq!(fs::read(&path).expect("file"), b"new");
        let mode = fs::metadata(&path).expect("file").permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        let null = Path::new("/dev/null");
        write_atomically(null, |out| out.write_all(b"gone")).expect("writable");
        assert!(!fs::metadata(null).expect("device").is_file());
    }
}
