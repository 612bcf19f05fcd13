//! Files of any content: written whole or not at all, small ones read with care, and where users keep settings and caches.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use directories::ProjectDirs;
use lazy_static::lazy_static;

use crate::error::{Error, Result};

/// The environment variable that names the folder of what is kept between starts, or is `off`.
pub const CACHE_VARIABLE: &str = "RESIDUUM_CACHE";

/// Bytes held by readers and writers: large enough that system calls cost nothing beside the parsing.
pub(crate) const BUFFER: usize = 1 << 18;

lazy_static! {
    static ref FOLDER: Option<PathBuf> = folder();
}

fn folder() -> Option<PathBuf> {
    match std::env::var_os(CACHE_VARIABLE) {
        Some(words) if words == "off" => None,
        Some(path) if !path.is_empty() => Some(PathBuf::from(path)),
        _ => Some(ProjectDirs::from("", "", "residuum")?.cache_dir().to_path_buf()),
    }
}

/// Folder of built programs, in `programs`, and of the doctor's findings about devices: the one that
/// `RESIDUUM_CACHE` names, else one in the user's cache folder; `None` if the variable is `off` or there is no such folder.
pub fn cache_folder() -> Option<&'static Path> {
    FOLDER.as_deref()
}

/// Folder in which users keep settings; `None` if there is no such folder.
pub(crate) fn settings_folder() -> Option<PathBuf> {
    Some(ProjectDirs::from("", "", "residuum")?.config_dir().to_path_buf())
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

/// A text of at most `most` bytes, from a file or a pipe: what has no end, as `/dev/zero`, does not fill the memory. A byte-order mark is left
/// out.
///
/// # Errors
/// The operating system's.
pub(crate) fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("it has more than {most} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|_| io::Error::other("it is no text in UTF-8"))?;
    Ok(text.strip_prefix('\u{feff}').map(String::from).unwrap_or(text))
}

/// Fails where a file could not be written to `path`: before the work whose result goes there. Nothing is changed.
///
/// # Errors
/// [`Error::File`] for a folder, a path whose folder is missing, a name that the file system does not take, and if files cannot be made.
pub fn check_writable(path: &Path) -> Result<()> {
    let failed = |reason: String| Err(Error::File { path: path.into(), reason });
    // `Path` leaves a separator at the end out of the name.
    if path.as_os_str().as_encoded_bytes().last().is_some_and(|last| std::path::is_separator(char::from(*last))) {
        return failed("it ends like a folder: add the name of a file".into());
    }
    let about = fs::metadata(path);
    match &about {
        Ok(about) if about.is_dir() => return failed("it is a folder: add the name of a file".into()),
        // A pipe or a device: opening it may wait for a reader.
        Ok(about) if !about.is_file() => return Ok(()),
        Ok(_) => {}
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => {}
        // A name that is too long, a loop of links.
        Err(error) => return Err(file_error(path, error)),
    }
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return failed("its folder does not exist".into());
    }
    let target = if about.is_ok() { fs::canonicalize(path) } else { Ok(path.to_path_buf()) };
    let possible = target.and_then(|target| {
        if about.is_ok() && is_mount_point(&target) {
            // It will be written in place, as no other file can take its place.
            OpenOptions::new().write(true).open(&target)?;
        }
        Temporary::beside(&target)
    });
    possible.map(drop).map_err(|e| file_error(path, &e))
}

/// Tells if a file is mounted by itself, as containers do with files of settings. Nothing can be renamed onto such a file.
fn is_mount_point(path: &Path) -> bool {
    let Ok(mounts) = fs::read_to_string("/proc/self/mountinfo") else { return false };
    let escaped = path.to_string_lossy().replace('\\', "\\134").replace(' ', "\\040").replace('\t', "\\011");
    mounts.lines().any(|line| line.split(' ').nth(4) == Some(&*escaped))
}

/// Tells if two paths name one file: through links, or by two names of a file. One that does not exist yet is told by its folder.
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

/// [`Error::File`] in the operating system's words.
pub(crate) fn file_error(path: &Path, error: &io::Error) -> Error {
    Error::File { path: path.to_path_buf(), reason: error.to_string() }
}

/// Writes a file in one piece: `write` fills a temporary file in the same folder, which then takes the place of
/// `path`. Whoever reads `path` finds the old content or the new one, never a part; when anything fails the old
/// file stays as it was and the temporary one is removed.
///
/// The writer given to `write` is buffered. A symbolic link is followed, the permissions of an existing file are
/// kept, and something that is no regular file (`/dev/stdout`, a pipe) is written to directly. A file that is mounted by itself cannot be
/// replaced: it gets the complete content in place.
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
    write_file_atomically(path, |out| write(out))
}

/// [`write_atomically`] for a format whose beginning depends on its end: the writer can also seek, unless `path` is a pipe.
///
/// # Errors
/// As [`write_atomically`].
pub fn write_file_atomically(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<()> {
    // Called once: `replace` is compiled once for all writers.
    let mut write = Some(write);
    replace(path, &mut |out| write.take().map_or(Ok(()), |write| write(out))).map_err(|e| file_error(path, &e))
}

/// [`write_file_atomically`] with the operating system's error.
fn replace(path: &Path, write: &mut dyn FnMut(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
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
    let start = format!("{}.", hidden(name).to_string_lossy());
    let Ok(files) = fs::read_dir(folder) else { return };
    for file in files.flatten() {
        let name = file.file_name().to_string_lossy().into_owned();
        let numbers = name.strip_prefix(&start).and_then(|rest| rest.strip_suffix(TEMPORARY));
        let Some((process, _)) = numbers.and_then(|numbers| numbers.split_once('-')) else { continue };
        let Ok(process) = process.parse::<u32>() else { continue };
        let age = file.metadata().and_then(|about| about.modified()).ok().and_then(|then| then.elapsed().ok());
        // A process of another machine, on a shared folder, is not listed here.
        let lives = process == std::process::id() || Path::new(&format!("/proc/{process}")).exists();
        if age.is_some_and(|age| age > STALE) && !lives {
            // Another process may have removed it already.
            let _ = fs::remove_file(file.path());
        }
    }
}

/// Longest name that a temporary file carries in its own: file systems take 255 bytes in all.
const LONGEST_NAME: usize = 200;

/// Beginning of the names of temporary files for a file of this name: with its hash (FNV-1a) if it is long.
fn hidden(name: &OsStr) -> OsString {
    let mut hidden = OsString::from(".");
    let bytes = name.as_encoded_bytes();
    if bytes.len() > LONGEST_NAME {
        let hash = bytes
            .iter()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3));
        hidden.push(format!("residuum-{hash:016x}"));
    } else {
        hidden.push(name);
    }
    hidden
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
            let mut hidden = hidden(name);
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
        match fs::rename(&self.path, target) {
            // A file that is mounted by itself.
            Err(error) if matches!(error.kind(), io::ErrorKind::ResourceBusy | io::ErrorKind::CrossesDevices) => {
                let mut to = OpenOptions::new().write(true).truncate(true).open(target)?;
                io::copy(&mut File::open(&self.path)?, &mut to)?;
                to.sync_all()
            }
            Ok(()) => {
                self.renamed = true;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.renamed {
            // Nothing more can be done if even this fails.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .expect("folder")
            .map(|e| e.expect("entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
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
        let long = "n".repeat(300);
        for bad in [
            folder.path().to_path_buf(),
            folder.path().join("absent/file"),
            folder.path().join("new/"),
            folder.path().join(long),
        ] {
            assert!(matches!(check_writable(&bad), Err(Error::File { .. })), "{bad:?}");
        }
        assert_eq!(names(folder.path()), Vec::<String>::new());
    }

    #[test]
    fn a_name_may_be_as_long_as_the_file_system_takes() {
        let folder = tempfile::tempdir().expect("folder");
        let name = "n".repeat(255);
        let path = folder.path().join(&name);
        check_writable(&path).expect("writable");
        write_atomically(&path, |out| out.write_all(b"old")).expect("writable");
        // Temporary files of killed processes are found under the name that such files have.
        let stale = format!("{}.4294967295-0{TEMPORARY}", hidden(OsStr::new(&name)).to_string_lossy());
        let file = File::create(folder.path().join(stale)).expect("made");
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).expect("a time");
        write_atomically(&path, |out| out.write_all(b"new")).expect("writable");
        assert_eq!(fs::read(&path).expect("file"), b"new");
        assert_eq!(names(folder.path()), [name]);
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

    #[test]
    fn small_files_are_read_whole_and_others_refused() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("file");
        fs::write(&path, [7; 20]).expect("write");
        assert_eq!(read_small(&path, 20).expect("small"), [7; 20]);
        for (path, most) in [(path.as_path(), 19), (folder.path(), 100), (Path::new("/dev/zero"), 100)] {
            assert!(read_small(path, most).is_err(), "{path:?}");
        }
    }
}
