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
use crate::real::{Real, per_number};
use crate::sparse::Csr;

pub mod mat5;
pub mod matrix_market;
pub mod npy;
pub mod npz;

/// Called now and then while a matrix is read, with the number of entries read so far and of all.
pub type Watch<'a> = dyn FnMut(u64, u64) + 'a;

per_number! {
    /// Reads a matrix from a Matrix Market file (plain or compressed) or one of SciPy (`save_npz`), told apart by what it holds.
    /// `watch` sees the progress.
    ///
    /// # Errors
    /// As [`matrix_market::read_matrix`] and [`npz::read_matrix`]; [`Error::Format`] for a file of another kind, which it names.
    pub fn read_matrix<T>(path: &Path, watch: &mut Watch<'_>) -> Result<Csr<T>> = read_matrix_here;
}

fn read_matrix_here<T: Real>(path: &Path, watch: &mut Watch<'_>) -> Result<Csr<T>> {
    match FileKind::of(path)? {
        Some(FileKind::Zip) => npz::read_matrix(path),
        Some(FileKind::MatrixMarket) | None => matrix_market::read_matrix_watched(path, watch),
        Some(other) => Err(other.refused(path, "a Matrix Market file or one of scipy.sparse.save_npz")),
    }
}

per_number! {
    /// Reads vectors of equal length from a NumPy file (`.npy`: one, or one a row; a single column is one) or one from a Matrix Market
    /// file, told apart by what they hold.
    ///
    /// # Errors
    /// As [`npy::read`] and [`matrix_market::read_vector`]; [`Error::Format`] for a file of another kind, which it names.
    pub fn read_vectors<T>(path: &Path) -> Result<Vec<Vec<T>>> = read_vectors_here;
}

fn read_vectors_here<T: Real>(path: &Path) -> Result<Vec<Vec<T>>> {
    let array = match FileKind::of(path)? {
        Some(FileKind::Npy) => npy::read(path)?,
        Some(FileKind::MatrixMarket) | None => return Ok(vec![matrix_market::read_vector(path)?]),
        Some(other) => return Err(other.refused(path, "a NumPy array or a Matrix Market file")),
    };
    // As SciPy writes a column: (n, 1).
    let single = array.shape.iter().filter(|n| **n != 1).count() <= 1;
    let length = if single { array.data.len() } else { array.shape.last().copied().unwrap_or(1) };
    Ok(array.data.chunks(length.max(1)).map(|part| part.iter().map(|v| T::from_f64(*v)).collect()).collect())
}

/// What a file holds, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileKind {
    /// A Matrix Market file.
    MatrixMarket,
    /// A NumPy array (`.npy`).
    Npy,
    /// A zip archive, as SciPy's matrices are (`.npz`).
    Zip,
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
        } else if has(124, b"\0\x01IM") || has(124, b"\x01\0MI") {
            Some(Self::Mat5)
        } else {
            None
        })
    }

    /// The error of a file of this kind where `wanted` was expected.
    pub fn refused(self, path: &Path, wanted: &str) -> Error {
        Error::Format { what: path.display().to_string(), reason: format!("this is {self}; expected {wanted}") }
    }
}

impl std::fmt::Display for FileKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::MatrixMarket => "a Matrix Market file",
            Self::Npy => "a NumPy array",
            Self::Zip => "a zip archive, as SciPy's matrices are (.npz)",
            Self::Mat5 => "a MATLAB file",
            Self::Hdf5 => "an HDF5 file (MATLAB 7.3 writes such too: save with -v7)",
            Self::Tiff => "a TIFF picture",
            Self::Png => "a PNG picture",
        })
    }
}

/// Bytes of a small file: one that is not a regular file, or has more than `most` bytes, is refused, so that neither a pipe nor a
/// device is waited for.
///
/// # Errors
/// The operating system's.
pub(crate) fn read_small(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let about = fs::metadata(path)?;
    if !about.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("it has more than {most} bytes")));
    }
    Ok(bytes)
}

/// Fails where a file could not be written to `path`: before the work whose result goes there. Nothing is changed.
///
/// # Errors
/// [`Error::File`] for a folder, a path whose folder is missing, and where files cannot be made.
pub fn check_writable(path: &Path) -> Result<()> {
    let failed = |reason: String| Err(Error::File { path: path.into(), reason });
    let about = fs::metadata(path);
    match &about {
        Ok(about) if about.is_dir() => return failed("it is a folder".into()),
        // A pipe or a device: opening it may wait for a reader.
        Ok(about) if !about.is_file() => return Ok(()),
        _ => {}
    }
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return failed("its folder does not exist".into());
    }
    let target = if about.is_ok() { fs::canonicalize(path) } else { Ok(path.to_path_buf()) };
    target.and_then(|target| Temporary::beside(&target)).map(drop).map_err(|e| file_error(path, &e))
}

/// Whether two paths name one file: through links, or by two names of a file. One that does not exist yet is told by its folder.
pub fn same_file(one: &Path, other: &Path) -> bool {
    let resolved = |path: &Path| {
        fs::canonicalize(path).ok().or_else(|| {
            let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
            Some(fs::canonicalize(folder).ok()?.join(path.file_name()?))
        })
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        if let (Ok(a), Ok(b)) = (fs::metadata(one), fs::metadata(other)) {
            return (a.dev(), a.ino()) == (b.dev(), b.ino());
        }
    }
    resolved(one).zip(resolved(other)).is_some_and(|(a, b)| a == b)
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
    remove_stale(&target);
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

const TEMPORARY: &str = ".tmp";

/// Age from which a temporary file that nobody has written to is taken for one that a killed process left behind.
const STALE: std::time::Duration = std::time::Duration::from_secs(60);

/// Removes temporary files that killed processes left behind beside `target`. Whoever writes one keeps it young, or lives.
fn remove_stale(target: &Path) {
    let (Some(folder), Some(name)) = (target.parent(), target.file_name()) else { return };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let start = format!(".{}.", name.to_string_lossy());
    let Ok(files) = fs::read_dir(folder) else { return };
    for file in files.flatten() {
        let name = file.file_name().to_string_lossy().into_owned();
        let numbers = name.strip_prefix(&start).and_then(|rest| rest.strip_suffix(TEMPORARY));
        let Some((process, _)) = numbers.and_then(|numbers| numbers.split_once('-')) else { continue };
        let Ok(process) = process.parse::<u32>() else { continue };
        let age = file.metadata().and_then(|about| about.modified()).ok().and_then(|then| then.elapsed().ok());
        // Where processes are listed: one of another machine, on a shared folder, is not.
        let lives = process == std::process::id() || Path::new(&format!("/proc/{process}")).exists();
        if age.is_some_and(|age| age > STALE) && !lives {
            // Another process may have removed it already.
            let _ = fs::remove_file(file.path());
        }
    }
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
            hidden.push(format!(".{}-{number}{TEMPORARY}", std::process::id()));
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
    fn what_killed_processes_left_behind_is_removed() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("kept");
        // No process has this number.
        let old = [".kept.4294967295-0.tmp", ".kept.4294967295-7.tmp"];
        let others = [".kept.4294967295-x", ".other.4294967295-0.tmp", "kept.tmp", ".kept.old-0.tmp"];
        let young = ".kept.4294967295-9.tmp";
        let living = format!(".kept.{}-99.tmp", std::process::id());
        for name in old.iter().chain(&others).copied().chain([young, &living]) {
            let file = File::create(folder.path().join(name)).expect("made");
            if name != young {
                file.set_modified(std::time::SystemTime::UNIX_EPOCH).expect("a time");
            }
        }
        write_atomically(&path, |out| out.write_all(b"new")).expect("writable");
        let mut left: Vec<String> =
            others.iter().map(ToString::to_string).chain([young.into(), living, "kept".into()]).collect();
        left.sort();
        assert_eq!(names(folder.path()), left);
    }

    #[test]
    fn what_cannot_be_written_is_known_before() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("file");
        assert!(check_writable(&path).is_ok());
        assert!(check_writable(Path::new("/dev/null")).is_ok());
        assert_eq!(names(folder.path()), Vec::<String>::new());
        for bad in [folder.path().to_path_buf(), folder.path().join("absent/file")] {
            assert!(matches!(check_writable(&bad), Err(Error::File { .. })), "{bad:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn one_file_has_many_names() {
        let folder = tempfile::tempdir().expect("folder");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("a"), b"a").expect("write");
        fs::write(at("b"), b"a").expect("write");
        std::os::unix::fs::symlink(at("a"), at("link")).expect("link");
        fs::hard_link(at("a"), at("hard")).expect("link");
        fs::create_dir(at("d")).expect("folder");
        for (other, same) in
            [("a", true), ("link", true), ("hard", true), ("d/../a", true), ("b", false), ("c", false)]
        {
            assert_eq!(same_file(&at("a"), &at(other)), same, "{other}");
        }
        assert!(same_file(&at("new"), &at("d/../new")) && !same_file(&at("new"), &at("d/new")));
    }

    #[test]
    fn kinds_of_files_are_told_by_what_they_hold() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("anything.dat");
        for (start, kind) in [
            (&b"%%MatrixMarket matrix coordinate real general\n"[..], Some(FileKind::MatrixMarket)),
            (b"\x93NUMPY\x01\0", Some(FileKind::Npy)),
            (b"PK\x03\x04....", Some(FileKind::Zip)),
            (b"\x89HDF\r\n\x1a\n", Some(FileKind::Hdf5)),
            (b"II*\0", Some(FileKind::Tiff)),
            (b"\x89PNG\r\n", Some(FileKind::Png)),
            (b"", None),
            (b"1 2 3\n", None),
        ] {
            for content in [start.to_vec(), gzip(start)] {
                fs::write(&path, content).expect("write");
                assert_eq!(FileKind::of(&path).expect("readable"), kind, "{start:?}");
            }
        }
        fs::write(&path, b"\x89HDF\r\n\x1a\n").expect("write");
        let words = read_vectors::<f64>(&path).expect_err("no vector").to_string();
        assert!(words.contains("HDF5") && words.contains("NumPy"), "{words}");
        assert!(read_matrix::<f64>(&path, &mut |_, _| {}).is_err());
        // A column, as SciPy writes it, is one vector; rows are many.
        for (shape, count) in [(&[3, 1][..], 1), (&[1, 3], 1), (&[3], 1), (&[], 1), (&[3, 2], 3), (&[1, 1], 1)] {
            let data = vec![1.0; shape.iter().product()];
            npy::write(&path, shape, &data).expect("write");
            assert_eq!(read_vectors::<f64>(&path).expect("vectors").len(), count, "{shape:?}");
        }
        assert!(read_small(Path::new("/dev/zero"), 100).is_err());
        assert!(read_small(&path, 10).is_err() && read_small(&path, 1 << 20).is_ok());
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
