//! Built programs on disk, so that a program that starts again does not compile again.
//!
//! An entry is one file: a magic line, everything that the binary was made from (device, driver, options, all of the
//! source), and the binary with its checksum. Its name is a hash of what it was made from; what stands in the file decides,
//! so a clash of names costs a build and never gives a wrong program. Files appear whole, by renaming: any number of
//! processes may start at once, and at worst each builds the same program. A damaged entry is built anew.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use flate2::Crc;

use crate::files::{cache_folder, write_atomically};

const MAGIC: &[u8] = b"residuum program 1\n";
/// Bytes all entries may take together; beyond, those that were used longest ago are removed, to half of it.
const MOST_BYTES: u64 = 512 << 20;
const ENDING: &str = "program";

fn programs() -> Option<PathBuf> {
    Some(cache_folder()?.join("programs"))
}

/// The binary that was built from what `parts` say, if there is one.
pub(super) fn load(parts: &[&str]) -> Option<Vec<u8>> {
    load_from(&programs()?, parts)
}

/// Keeps a binary. Where that fails the next start builds again: said, and no error.
pub(super) fn store(parts: &[&str], binary: &[u8]) {
    let Some(folder) = programs() else { return };
    if let Err(why) = store_in(&folder, parts, binary) {
        log::warn!("built programs are not kept: {why}");
    }
}

/// All that the binary depends on, told apart by what no part holds.
fn key(parts: &[&str]) -> Vec<u8> {
    parts.join("\0").into_bytes()
}

fn path(folder: &Path, key: &[u8]) -> PathBuf {
    // FNV-1a of 128 bits.
    let hash = key.iter().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128, |hash, byte| {
        (hash ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    });
    folder.join(format!("{hash:032x}.{ENDING}"))
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

fn load_from(folder: &Path, parts: &[&str]) -> Option<Vec<u8>> {
    let key = key(parts);
    let path = path(folder, &key);
    let mut file = File::open(&path).ok()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).ok()?;
    match binary_in(&bytes, &key) {
        Ok(binary) => {
            // Entries used lately stay longest; if the time cannot be set they go a little early.
            let _ = file.set_modified(SystemTime::now());
            Some(binary.to_vec())
        }
        Err(why) => {
            log::warn!("{}: {why}; it is built anew", path.display());
            None
        }
    }
}

/// The binary in an entry made from `key`, or what is wrong with the entry.
fn binary_in<'b>(bytes: &'b [u8], key: &[u8]) -> Result<&'b [u8], &'static str> {
    const DAMAGED: &str = "a damaged entry";
    let rest = bytes.strip_prefix(MAGIC).ok_or(DAMAGED)?;
    let (sizes, rest) = rest.split_first_chunk::<20>().ok_or(DAMAGED)?;
    let number = |at: usize| sizes[at..at + 8].iter().rev().fold(0u64, |n, byte| n << 8 | u64::from(*byte));
    let crc = sizes[16..].iter().rev().fold(0u32, |n, byte| n << 8 | u32::from(*byte));
    if number(0).checked_add(number(8)) != Some(rest.len() as u64) {
        return Err(DAMAGED);
    }
    let (held, binary) = rest.split_at(number(0) as usize);
    if checksum(rest) != crc {
        return Err(DAMAGED);
    }
    if held != key { Err("an entry made from something else") } else { Ok(binary) }
}

fn store_in(folder: &Path, parts: &[&str], binary: &[u8]) -> crate::error::Result<()> {
    let key = key(parts);
    let file_error = |e: std::io::Error| crate::error::Error::File { path: folder.into(), reason: e.to_string() };
    fs::create_dir_all(folder).map_err(file_error)?;
    trim(folder, MOST_BYTES.saturating_sub(binary.len() as u64));
    let mut body = key.clone();
    body.extend_from_slice(binary);
    write_atomically(&path(folder, &key), |out| {
        out.write_all(MAGIC)?;
        out.write_all(&(key.len() as u64).to_le_bytes())?;
        out.write_all(&(binary.len() as u64).to_le_bytes())?;
        out.write_all(&checksum(&body).to_le_bytes())?;
        out.write_all(&body)
    })
}

/// Removes the entries used longest ago where all together take more than `most` bytes, down to half of that.
fn trim(folder: &Path, most: u64) {
    let Ok(files) = fs::read_dir(folder) else { return };
    let mut entries: Vec<(SystemTime, u64, PathBuf)> = files
        .filter_map(|file| {
            let path = file.ok()?.path();
            let about = fs::metadata(&path).ok()?;
            let ours = path.extension().is_some_and(|ending| ending == ENDING);
            (ours && about.is_file())
                .then(|| (about.modified().unwrap_or(SystemTime::UNIX_EPOCH), about.len(), path))
        })
        .collect();
    let mut held: u64 = entries.iter().map(|entry| entry.1).sum();
    if held <= most {
        return;
    }
    entries.sort();
    for (_, size, path) in entries {
        if held <= most / 2 {
            break;
        }
        // Another process may have removed it already.
        if fs::remove_file(&path).is_ok() {
            held -= size;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_comes_back_only_for_what_it_was_made_from() {
        let folder = tempfile::tempdir().expect("a folder");
        let parts = ["device", "driver", "-D WG=1", "source"];
        assert_eq!(load_from(folder.path(), &parts), None);
        store_in(folder.path(), &parts, b"binary").expect("a folder to write to");
        assert_eq!(load_from(folder.path(), &parts).as_deref(), Some(&b"binary"[..]));
        for other in [
            ["device2", "driver", "-D WG=1", "source"],
            ["device", "driver2", "-D WG=1", "source"],
            ["device", "driver", "-D WG=2", "source"],
            ["device", "driver", "-D WG=1", "source "],
        ] {
            assert_eq!(load_from(folder.path(), &other), None, "{other:?}");
        }
        // The names of two entries clash: what stands in the file decides.
        let clash = ["another", "program"];
        fs::rename(path(folder.path(), &key(&parts)), path(folder.path(), &key(&clash))).expect("renamed");
        assert_eq!(load_from(folder.path(), &clash), None);
    }

    #[test]
    fn no_damage_goes_unseen() {
        let folder = tempfile::tempdir().expect("a folder");
        let parts = ["device", "source"];
        store_in(folder.path(), &parts, b"binary").expect("a folder to write to");
        let path = path(folder.path(), &key(&parts));
        let whole = fs::read(&path).expect("an entry");
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            fs::write(&path, &damaged).expect("written");
            assert_eq!(load_from(folder.path(), &parts), None, "byte {at}");
            fs::write(&path, &whole[..at]).expect("written");
            assert_eq!(load_from(folder.path(), &parts), None, "cut at {at}");
        }
        store_in(folder.path(), &parts, b"binary").expect("built anew");
        assert!(load_from(folder.path(), &parts).is_some());
    }

    #[test]
    fn what_was_used_longest_ago_goes_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let names = ["a", "b", "c", "d"];
        for (age, name) in names.iter().enumerate() {
            store_in(folder.path(), &[name], &[0; 1000]).expect("stored");
            let file = File::options().write(true).open(path(folder.path(), name.as_bytes())).expect("an entry");
            file.set_modified(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(age as u64)).expect("a time");
        }
        fs::write(folder.path().join("notes.txt"), [0; 100_000]).expect("a stranger");
        trim(folder.path(), 1 << 20);
        assert!(names.iter().all(|name| path(folder.path(), name.as_bytes()).exists()));
        assert!(load_from(folder.path(), &["a"]).is_some());
        trim(folder.path(), 4100);
        let left: Vec<_> = names.iter().filter(|name| path(folder.path(), name.as_bytes()).exists()).collect();
        assert_eq!(left, [&"a"], "a was read a moment ago; a third entry would exceed the half");
        assert!(folder.path().join("notes.txt").exists());
    }
}
