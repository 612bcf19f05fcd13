//! Files: matrices and vectors in Matrix Market form and in PETSc's, scans in MATLAB form, arrays in NumPy form, matrices in SciPy's.
//!
//! Readers take any bytes: what does not hold what it should is an [`Error::Format`], never a panic, and memory
//! follows what a file really holds, not what its header claims. A file that is compressed with gzip is read as
//! if it were not; what is compressed may of course expand. A Matrix Market file may also stand in an archive (`.tar`, `.tar.gz`, `.zip`). If an
//! archive holds several, one of these is read: the file named like the archive or its folder, or else the file whose name begins all the other
//! names, as `nos1.mtx` does beside `nos1_b.mtx`.
//! Files that bzip2, xz, zstd or 7-Zip compressed are refused with the command that unpacks them. Writers replace a file only by a complete one, see [`write_atomically`].

use std::io::Read;
use std::path::Path;

use crate::error::{Error, Result};
use crate::number::{Real, per_number};
use crate::sparse::Csr;
use readers::Readers;

pub use crate::files::{check_writable, same_file, write_atomically, write_file_atomically};

mod archive;
mod arrays;
mod columns;
mod kind;
pub mod mat5;
mod matrices;
pub mod matrix_market;
pub mod npy;
pub mod npz;
mod open;
mod partition;
mod petsc;
mod readers;
mod stack;

pub use arrays::{ArrayForm, read_columns, write_array, write_columns};
pub use columns::FileColumns;
pub use kind::FileKind;
pub use matrices::{MatrixForm, write_matrix};
pub use open::Watch;
pub(crate) use open::short_name;
pub use partition::{read_partition, write_partition};
pub use stack::Stack;
#[cfg(feature = "hdf5")]
pub(crate) use stack::hdf5::Hdf5;
#[cfg(feature = "tiff")]
pub(crate) use stack::tiff::{write as write_tiff16, write_floats as write_tiff32};
#[cfg(not(feature = "hdf5"))]
pub(crate) use stack::without;

per_number! {
    /// Reads a matrix from a Matrix Market file (plain, compressed, or in an archive) or one of SciPy (`save_npz`) or of PETSc, told apart by what it
    /// holds. `watch` sees the progress.
    ///
    /// # Errors
    /// As [`matrix_market::read_matrix`] and [`npz::read_matrix`]; [`Error::Format`] for a file of another kind, which it names.
    pub fn read_matrix<T>(path: &Path, watch: &mut Watch<'_>) -> Result<Csr<T>> = read_matrix_here;
}

fn read_matrix_here<T: Real>(path: &Path, watch: &mut Watch<'_>) -> Result<Csr<T>> {
    Readers::pick(path, "a matrix", |readers| readers.matrix)?(path, watch)
}

per_number! {
    /// Reads vectors of equal length from a NumPy file (`.npy`, or `.npz` with one array: one, or one a row; a single column is one), the
    /// vectors of a binary file of PETSc, or one from a Matrix Market file, told apart by what they hold. Right-hand sides of a system, whose length is known, are a matter of [`read_columns`].
    ///
    /// # Errors
    /// As [`npy::read`] and [`matrix_market::read_vector`]; [`Error::Format`] for a file of another kind, which it names.
    pub fn read_vectors<T>(path: &Path) -> Result<Vec<Vec<T>>> = read_vectors_here;
}

fn read_vectors_here<T: Real>(path: &Path) -> Result<Vec<Vec<T>>> {
    let array = Readers::<T>::pick(path, "vectors", |readers| readers.array)?(path)?;
    // Shape of a column as SciPy writes it: (n, 1).
    let single = array.shape.iter().filter(|n| **n != 1).count() <= 1;
    let length = if single { array.data.len() } else { array.shape.last().copied().unwrap_or(1) };
    Ok(array.data.chunks(length.max(1)).map(|part| part.iter().map(|v| T::from_f64(*v)).collect()).collect())
}

/// Longest text of numbers that is read, in bytes.
const LONGEST_TEXT: u64 = 1 << 26;

/// Reads a list of numbers: a text of one number a line (or of one line; empty lines and those that begin with `#` or `%` say nothing), a
/// `.npy` array (or `.npz` with one array), or a Matrix Market vector, told apart by what they hold.
///
/// # Errors
/// [`Error::File`]; [`Error::Format`] for what is no such list, with the line; as [`npy::read`] and [`matrix_market::read_vector`].
pub fn read_numbers(path: &Path) -> Result<Vec<f64>> {
    if FileKind::of(path)?.is_some() {
        return Ok(array_of(path)?.data);
    }
    numbers_of_text(path, 1)
}

/// Reads a table of numbers, row after row: a text of `columns` numbers a line, with blanks, commas or semicolons between them, or an
/// array of `rows x columns`, in the forms that [`read_numbers`] reads.
///
/// # Errors
/// As [`read_numbers`]; [`Error::Format`] for a line, or an array, with another number of columns.
pub fn read_table(path: &Path, columns: usize) -> Result<Vec<f64>> {
    if FileKind::of(path)?.is_none() {
        return numbers_of_text(path, columns);
    }
    let array = array_of(path)?;
    if array.shape.len() != 2 || array.shape[1] != columns {
        let reason = format!("an array of {:?} numbers; expected rows of {columns}", array.shape);
        return Err(Error::Format { what: short_name(path), reason });
    }
    Ok(array.data)
}

fn array_of(path: &Path) -> Result<npy::Array> {
    Readers::<f64>::pick(path, "numbers, one a line of text, or", |readers| readers.array)?(path)
}

/// The numbers of a text with `columns` of them a line. A text of one line may hold a list.
fn numbers_of_text(path: &Path, columns: usize) -> Result<Vec<f64>> {
    let name = short_name(path);
    let refuse = |reason: String| Error::Format { what: name.clone(), reason };
    let mut bytes = Vec::new();
    open::open(path)?
        .take(LONGEST_TEXT + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| open::read_error(&name, name.clone(), &e))?;
    if bytes.len() as u64 > LONGEST_TEXT {
        return Err(refuse(format!("this is more text than {LONGEST_TEXT} bytes, and no list of numbers")));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| refuse("this is neither a text of numbers nor a NumPy array".into()))?;
    let lines = text.trim_start_matches('\u{feff}').lines().enumerate();
    let lines: Vec<(usize, &str)> = lines
        .map(|(k, line)| (k + 1, line.trim()))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with(['#', '%']))
        .collect();
    let mut numbers = Vec::new();
    for (k, line) in &lines {
        let words: Vec<&str> = line.split([' ', '\t', ',', ';']).filter(|word| !word.is_empty()).collect();
        if words.len() != columns && (columns > 1 || lines.len() > 1) {
            let expected = if columns == 1 { "one".to_string() } else { columns.to_string() };
            return Err(refuse(format!("line {k}: {} numbers; expected {expected} a line", words.len())));
        }
        for word in words {
            let number = word.parse();
            numbers.push(number.map_err(|_| refuse(format!("line {k}: '{}' is no number", clipped(word))))?);
        }
    }
    if numbers.is_empty() {
        return Err(refuse("the file holds no numbers".into()));
    }
    Ok(numbers)
}

/// The beginning of a word, to be quoted.
fn clipped(word: &str) -> String {
    const LONGEST: usize = 32;
    let clean = |text: &str| text.chars().map(|c| if c.is_control() { '?' } else { c }).collect::<String>();
    match word.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", clean(&word[..end])),
        None => clean(word),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

    use std::io::Write;

    use std::fs;

    use super::open::open;
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
    fn numbers_are_read_from_text() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("angles.txt");
        let read = |text: &[u8]| {
            fs::write(&path, text).expect("write");
            read_numbers(&path)
        };
        for text in
            ["0\n1.5\n-2e1\n", "\u{feff}# degrees\r\n0\r\n\r\n1.5\r\n-20", "% x\n0, 1.5 -20\n", "  0\n1.5,\n-20;\n"]
        {
            assert_eq!(read(text.as_bytes()).expect(text), [0.0, 1.5, -20.0], "{text}");
            assert_eq!(read(&gzip(text.as_bytes())).expect(text), [0.0, 1.5, -20.0], "{text}");
        }
        for (text, words) in [
            (&b"angle\n0\n"[..], "line 1: 'angle' is no number"),
            (b"0 0\n1 2\n", "line 1: 2 numbers; expected one a line"),
            (b"1\n2\x003\n", "line 2: '2?3' is no number"),
            (b"\xff\xfe1\n", "neither a text of numbers"),
            (b"# nothing\n\n", "holds no numbers"),
            (b"PK\x03\x04....", "archive"),
        ] {
            let error = read(text).expect_err(words).to_string();
            assert!(error.contains(words), "{error}");
        }
        npy::write(&path, &[2, 1], &[3.0, 4.0]).expect("write");
        assert_eq!(read_numbers(&path).expect("an array"), [3.0, 4.0]);
        fs::write(&path, "%%MatrixMarket matrix array real general\n2 1\n5\n6\n").expect("write");
        assert_eq!(read_numbers(&path).expect("a vector"), [5.0, 6.0]);
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
            (b"\xef\xbb\xbf%%MatrixMarket matrix", Some(FileKind::MatrixMarket)),
            (b"BZh91AY&SY", Some(FileKind::Bzip2)),
            (b"\xfd7zXZ\0\0", Some(FileKind::Xz)),
            (b"\x28\xb5\x2f\xfd\x04", Some(FileKind::Zstandard)),
            (b"7z\xbc\xaf\x27\x1c\0", Some(FileKind::SevenZip)),
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
        // Programs that compress are named with the one that unpacks, to whoever reads anything.
        for (start, words) in
            [(&b"BZh91AY&SY"[..], "bunzip2"), (b"\xfd7zXZ\0\0", "unxz"), (b"\x28\xb5\x2f\xfd\x04", "unzstd")]
        {
            fs::write(&path, start).expect("write");
            for told in [
                read_matrix::<f64>(&path, &mut |_, _| {}).expect_err("packed").to_string(),
                read_vectors::<f64>(&path).expect_err("packed").to_string(),
                read_columns::<f64>(&path, 3).expect_err("packed").to_string(),
            ] {
                assert!(told.contains(&format!("unpack it ({words} ")), "{told}");
            }
        }
        // A column, as SciPy writes it, is one vector; rows are many.
        for (shape, count) in [(&[3, 1][..], 1), (&[1, 3], 1), (&[3], 1), (&[], 1), (&[3, 2], 3), (&[1, 1], 1)] {
            let data = vec![1.0; shape.iter().product()];
            npy::write(&path, shape, &data).expect("write");
            assert_eq!(read_vectors::<f64>(&path).expect("vectors").len(), count, "{shape:?}");
        }
    }
}
