//! Archives that hold a Matrix Market file, as collections of matrices hand them out: `.tar`, `.tar.gz` and `.zip`.
//!
//! Files are read where they stand: nothing is unpacked to a folder, and memory does not follow the archive.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use tar::{EntryType, Header};
use zip::read::ZipArchive;
use zip::result::ZipError;

use super::open::{open, read_error, short_name};
use crate::error::{Error, Result};
use crate::files::{BUFFER, file_error};

/// Content that is wanted of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Matrix,
    /// Right-hand sides: in a file that is named like that of the matrix, with `_b` behind.
    RightHandSides,
}

/// A Matrix Market file within an archive: a stream, and what error messages call it.
pub(super) type Inside<'a> = (&'a mut (dyn BufRead + Send), &'a str);

/// Most Matrix Market files of an archive that are told apart.
const MOST_FILES: usize = 1000;
/// Longest name that a tar archive may give a file by an entry of its own.
const LONGEST_NAME: u64 = 4096;
/// Bytes of a block of a tar archive.
const BLOCK: u64 = 512;

/// Gives `read` the Matrix Market file of a tar archive, which gzip may have compressed.
pub(super) fn of_tar<R>(path: &Path, wanted: Wanted, read: impl FnOnce(Inside<'_>) -> Result<R>) -> Result<R> {
    let name = short_name(path);
    let mut names = Names { archive: &name, found: Vec::new(), others: Vec::new() };
    let mut tar = Tar { reader: open(path)?, name: &name };
    while let Some((inside, size)) = tar.advance()? {
        names.add(&inside)?;
        // The usual case needs no second pass.
        if wanted == Wanted::Matrix && is_matrix_market(&inside) && names.is_main(&inside) {
            return tar.read(&inside, size, read);
        }
        tar.skip(size)?;
    }
    let chosen = names.choose(wanted)?;
    let mut tar = Tar { reader: open(path)?, name: &name };
    while let Some((inside, size)) = tar.advance()? {
        if inside == chosen {
            return tar.read(&inside, size, read);
        }
        tar.skip(size)?;
    }
    Err(names.refuse(format!("{chosen} has gone from the archive while it was read")))
}

/// Gives `read` the Matrix Market file of a zip archive.
pub(super) fn of_zip<R>(path: &Path, wanted: Wanted, read: impl FnOnce(Inside<'_>) -> Result<R>) -> Result<R> {
    let name = short_name(path);
    let mut archive = zip(path)?;
    let mut names = Names { archive: &name, found: Vec::new(), others: Vec::new() };
    let inside: Vec<String> = archive.file_names_raw().map(|raw| String::from_utf8_lossy(raw).into()).collect();
    inside.iter().try_for_each(|inside| names.add(inside))?;
    let chosen = names.choose(wanted)?;
    let shown = format!("{name} {chosen}");
    let at = inside.iter().position(|inside| *inside == chosen).unwrap_or(0);
    let file = archive.by_index(at).map_err(|e| zip_error(&shown, &e))?;
    read((&mut BufReader::with_capacity(BUFFER, file), &shown))
}

/// Opens a zip archive.
pub(super) fn zip(path: &Path) -> Result<ZipArchive<BufReader<File>>> {
    let file = File::open(path).map_err(|e| file_error(path, &e))?;
    ZipArchive::new(BufReader::new(file)).map_err(|e| zip_error(&short_name(path), &e))
}

/// The error of an archive.
pub(super) fn zip_error(name: &str, error: &ZipError) -> Error {
    let reason = match error {
        ZipError::FileNotFound => "is missing: a matrix of scipy.sparse.save_npz has it".to_string(),
        other => format!("no readable .npz file ({other})"),
    };
    Error::Format { what: name.into(), reason }
}

/// A tar archive that is read from front to back.
struct Tar<'a> {
    reader: Box<dyn BufRead + Send>,
    name: &'a str,
}

impl Tar<'_> {
    /// Name and size of the next regular file, whose content follows; `None` at the end.
    fn advance(&mut self) -> Result<Option<(String, u64)>> {
        let mut long_name = None;
        loop {
            let mut block = [0; BLOCK as usize];
            let held = self.fill(&mut block)?;
            // Two blocks of zeros are the end; some archives have one, or none.
            if held == 0 || block.iter().all(|b| *b == 0) {
                return Ok(None);
            }
            if held < block.len() {
                return Err(self.refuse("the archive is cut off"));
            }
            let header = Header::from_byte_slice(&block);
            let sum = |at: usize| if (148..156).contains(&at) { b' ' } else { block[at] };
            let sum: u32 = (0..block.len()).map(|at| u32::from(sum(at))).sum();
            if header.cksum().ok() != Some(sum) {
                return Err(self.refuse("a header of the archive is damaged"));
            }
            let size = header.entry_size().map_err(|_| self.refuse("a header of the archive is damaged"))?;
            match header.entry_type() {
                EntryType::Regular | EntryType::Continuous => {
                    let stored = || String::from_utf8_lossy(&header.path_bytes()).into_owned();
                    return Ok(Some((long_name.unwrap_or_else(stored), size)));
                }
                EntryType::GNULongName if size <= LONGEST_NAME => {
                    let mut bytes = vec![0; size.next_multiple_of(BLOCK) as usize];
                    if self.fill(&mut bytes)? < bytes.len() {
                        return Err(self.refuse("the archive is cut off"));
                    }
                    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
                    long_name = Some(String::from_utf8_lossy(&bytes[..end]).into_owned());
                }
                _ => self.skip(size)?,
            }
        }
    }

    /// Fills the block as far as the archive goes.
    fn fill(&mut self, block: &mut [u8]) -> Result<usize> {
        let mut held = 0;
        while held < block.len() {
            match self.reader.read(&mut block[held..]) {
                Ok(0) => break,
                Ok(read) => held += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(read_error(self.name, self.name.into(), &error)),
            }
        }
        Ok(held)
    }

    /// Leaves the content of a file out.
    fn skip(&mut self, size: u64) -> Result<()> {
        let size = size.checked_next_multiple_of(BLOCK).ok_or_else(|| self.refuse("a file of it has no end"))?;
        let skipped = io::copy(&mut self.reader.by_ref().take(size), &mut io::sink());
        match skipped {
            Ok(skipped) if skipped == size => Ok(()),
            Ok(_) => Err(self.refuse("the archive is cut off")),
            Err(error) => Err(read_error(self.name, self.name.into(), &error)),
        }
    }

    fn read<R>(&mut self, inside: &str, size: u64, read: impl FnOnce(Inside<'_>) -> Result<R>) -> Result<R> {
        let shown = format!("{} {inside}", self.name);
        read((&mut self.reader.by_ref().take(size), &shown))
    }

    fn refuse(&self, reason: &str) -> Error {
        Error::Format { what: self.name.into(), reason: reason.into() }
    }
}

/// Names of the files of an archive.
struct Names<'a> {
    archive: &'a str,
    /// Matrix Market files, with their folders.
    found: Vec<String>,
    /// The first few others.
    others: Vec<String>,
}

impl Names<'_> {
    fn add(&mut self, inside: &str) -> Result<()> {
        if is_matrix_market(inside) {
            self.found.push(inside.into());
        } else if self.others.len() < 4 && !inside.ends_with('/') {
            self.others.push(inside.into());
        }
        if self.found.len() > MOST_FILES {
            return Err(self.refuse(format!(
                "it holds more than {MOST_FILES} Matrix Market files: unpack it and name one of them"
            )));
        }
        Ok(())
    }

    /// Tells if a file is named like the archive or like its own folder, as the matrix itself is in the SuiteSparse collection.
    fn is_main(&self, inside: &str) -> bool {
        let folder = inside.rsplit('/').nth(1);
        stem(inside) == stem(self.archive) || folder == Some(stem(inside))
    }

    /// The file that holds what is wanted.
    fn choose(&self, wanted: Wanted) -> Result<String> {
        let names = &self.found;
        if let [only] = &names[..] {
            return Ok(only.clone());
        }
        let is_start = |one: &str| {
            let belongs =
                |other: &str| other.strip_prefix(one).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'));
            names.iter().all(|other| belongs(stem(other)))
        };
        let main =
            names.iter().find(|one| self.is_main(one)).or_else(|| names.iter().find(|one| is_start(stem(one))));
        let chosen = match (main, wanted) {
            (Some(main), Wanted::Matrix) => Some(main),
            (Some(main), Wanted::RightHandSides) => {
                let wanted = format!("{}_b", stem(main));
                names.iter().find(|one| stem(one) == wanted)
            }
            (None, _) => None,
        };
        let listed = |names: &[String]| {
            let more = if names.len() > 4 { ", ..." } else { "" };
            format!("{}{more}", names[..names.len().min(4)].join(", "))
        };
        chosen.cloned().ok_or_else(|| {
            self.refuse(match (&names[..], &self.others[..]) {
                ([], []) => "it holds no file: a Matrix Market file (.mtx) is read from an archive".into(),
                ([], others) => format!("it holds no Matrix Market file (.mtx), but {}", listed(others)),
                (many, _) => format!(
                    "it holds several Matrix Market files ({}): unpack it and name one of them",
                    listed(many)
                ),
            })
        })
    }

    fn refuse(&self, reason: String) -> Error {
        Error::Format { what: self.archive.into(), reason }
    }
}

/// Tells if a file is one by its name. Names with a dot in front are those that macOS keeps beside files.
fn is_matrix_market(inside: &str) -> bool {
    let name = inside.rsplit('/').next().unwrap_or(inside);
    let ends = name.len() > 4 && name.as_bytes()[name.len() - 4..].eq_ignore_ascii_case(b".mtx");
    ends && !name.starts_with('.')
}

/// The name of a file without folders and without the endings of archives and of Matrix Market files.
fn stem(name: &str) -> &str {
    let name = name.rsplit('/').next().unwrap_or(name);
    let shorter = |ending: &&str| {
        let at = name.len().checked_sub(ending.len())?;
        name.get(at..)?.eq_ignore_ascii_case(ending).then(|| &name[..at])
    };
    [".tar.gz", ".tgz", ".tar", ".zip", ".mtx"].iter().find_map(shorter).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use zip::write::{SimpleFileOptions, ZipWriter};

    use super::*;
    use crate::io::{read_columns, read_matrix};

    /// A matrix of one entry.
    fn one(value: f64) -> String {
        format!("%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 {value}\n2 2 1\n")
    }

    fn tar(files: &[(&str, String)]) -> Vec<u8> {
        let mut archive = tar::Builder::new(Vec::new());
        for (name, content) in files {
            let mut header = Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            if name.ends_with('/') {
                header.set_entry_type(EntryType::Directory);
            }
            archive.append_data(&mut header, name, content.as_bytes()).unwrap();
        }
        archive.into_inner().unwrap()
    }

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    fn zipped(files: &[(&str, String)]) -> Vec<u8> {
        let mut archive = ZipWriter::new(io::Cursor::new(Vec::new()));
        for (name, content) in files {
            if name.ends_with('/') {
                archive.add_directory(*name, SimpleFileOptions::default()).unwrap();
                continue;
            }
            archive.start_file(*name, SimpleFileOptions::default()).unwrap();
            archive.write_all(content.as_bytes()).unwrap();
        }
        archive.finish().unwrap().into_inner()
    }

    /// The first entry of the matrix in an archive of these files, by each kind of archive, or the words of the refusal.
    fn read(archive: &str, files: &[(&str, String)]) -> std::result::Result<f64, String> {
        let folder = tempfile::tempdir().unwrap();
        let kinds = [
            (".tar", tar(files)),
            (".tar.gz", gzip(&tar(files))),
            (".tgz", gzip(&tar(files))),
            (".zip", zipped(files)),
        ];
        let outcomes = kinds.map(|(ending, bytes)| {
            let path = folder.path().join(format!("{archive}{ending}"));
            std::fs::write(&path, bytes).unwrap();
            let read = read_matrix::<f64>(&path, &mut |_, _| {}).map(|a| a.values()[0]).map_err(|e| e.to_string());
            read.map_err(|words| words.replace(&format!("{archive}{ending}"), "ARCHIVE"))
        });
        assert!(outcomes.iter().all(|other| *other == outcomes[0]), "{outcomes:?}");
        outcomes[0].clone()
    }

    #[test]
    fn the_matrix_of_an_archive_is_found() {
        let [a, b, x] = [one(3.0), one(4.0), one(5.0)];
        let long = format!("{}/{}.mtx", "f".repeat(120), "n".repeat(90));
        let sets: [(&str, Vec<(&str, String)>); 9] = [
            ("nos1", vec![("nos1/nos1.mtx", a.clone())]),
            (
                "nos1",
                vec![
                    ("nos1/", String::new()),
                    ("nos1/nos1_b.mtx", b.clone()),
                    ("nos1/nos1.mtx", a.clone()),
                    ("nos1/nos1_x.mtx", x.clone()),
                ],
            ),
            // Under another name of the archive: the folder tells, or the start that all names have.
            ("download", vec![("nos1/nos1_b.mtx", b.clone()), ("nos1/nos1.mtx", a.clone())]),
            ("download", vec![("nos1_coord.mtx", b.clone()), ("nos1.mtx", a.clone())]),
            ("download", vec![("any/thing.mtx", a.clone()), ("any/readme.txt", "words".into())]),
            ("download", vec![("any/THING.MTX", a.clone())]),
            (
                "download",
                vec![
                    ("._nos1.mtx", "junk".into()),
                    ("__MACOSX/._nos1.mtx", "junk".into()),
                    ("nos1.mtx", a.clone()),
                ],
            ),
            ("nos1", vec![("other.mtx", b.clone()), ("nos1.mtx", a.clone())]),
            ("download", vec![(&long, a.clone())]),
        ];
        for (archive, files) in &sets {
            assert_eq!(
                read(archive, files),
                Ok(3.0),
                "{archive} {:?}",
                files.iter().map(|f| f.0).collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn archives_without_one_matrix_are_refused_in_words() {
        let two = [("a.mtx", one(1.0)), ("b.mtx", one(2.0))];
        let words = read("download", &two).unwrap_err();
        assert!(words.contains("several") && words.contains("a.mtx, b.mtx") && words.contains("unpack"), "{words}");
        let words = read("download", &[("readme.txt", String::new()), ("a.mtx.gz", "x".into())]).unwrap_err();
        assert!(words.contains("no Matrix Market file") && words.contains("readme.txt, a.mtx.gz"), "{words}");
        let words =
            read("download", &[("a.mtx", "%%MatrixMarket matrix coordinate real general\n1 1 1\n2 1 1\n".into())])
                .unwrap_err();
        assert!(words.starts_with("ARCHIVE a.mtx line 3:"), "{words}");
    }

    #[test]
    fn right_hand_sides_are_those_beside_the_matrix() {
        let folder = tempfile::tempdir().unwrap();
        let b = "%%MatrixMarket matrix array real general\n2 1\n7\n8\n".to_string();
        let files = [("nos1/nos1.mtx", one(3.0)), ("nos1/nos1_b.mtx", b)];
        for (ending, bytes) in [("tar.gz", gzip(&tar(&files))), ("zip", zipped(&files))] {
            let path = folder.path().join("nos1.").with_extension(ending);
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(read_columns::<f64>(&path, 2).unwrap().vectors, [[7.0, 8.0]]);
        }
    }

    #[test]
    fn damaged_tar_archives_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.tar");
        let whole = tar(&[("y/z.txt", "words".into()), ("y/x.mtx", one(3.0))]);
        let refused = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            read_matrix::<f64>(&path, &mut |_, _| {}).unwrap_err().to_string()
        };
        assert!(refused(&whole[..700]).contains("cut off"));
        let mut damaged = whole.clone();
        damaged[1024] ^= 1;
        assert!(refused(&damaged).contains("header of the archive is damaged"));
        // A size that no archive has.
        let mut damaged = whole;
        damaged[124] = 0x80;
        damaged[125..136].fill(0xff);
        assert!(refused(&damaged).contains("header of the archive is damaged"));
    }
}
