//! SciPy's sparse matrix files (`scipy.sparse.save_npz`): several NumPy arrays in one zip archive.
//!
//! Read: `csr`, `csc`, `coo`, `bsr` and `dia`, compressed or not, sorted or not; entries of the same place are summed.
//! Written: `csr`, uncompressed, which `scipy.sparse.load_npz` takes.

use std::fs::File;
use std::io::{BufReader, Read, Seek, Write};
use std::path::Path;

use zip::CompressionMethod;
use zip::read::ZipArchive;
use zip::write::{SimpleFileOptions, ZipWriter};

use super::archive;
use super::archive::zip_error;
use super::npy::{self, Array};
use super::open::short_name;
use crate::error::{Error, Result};
use crate::files::file_error;
use crate::files::write_atomically;
use crate::number::{Real, per_number};
use crate::sparse::{AsCsr, Csr, plausible_rows};

per_number! {
    /// Reads a matrix.
    ///
    /// Values become `T`; integers and truth values are taken as numbers.
    ///
    /// # Errors
    /// [`Error::File`] when the file cannot be read. [`Error::Format`] when it is no archive of `save_npz`, when an array is
    /// missing or of another length than the others ask for, when an index lies outside the matrix, when a value is not
    /// finite in `T`, for complex values and for formats SciPy does not save either.
    pub fn read_matrix<T>(path: &Path) -> Result<Csr<T>> = read_matrix_here;
}

fn read_matrix_here<T: Real>(path: &Path) -> Result<Csr<T>> {
    let file = File::open(path).map_err(|e| file_error(path, &e))?;
    read_matrix_from(BufReader::new(file), &short_name(path))
}

/// Tells if an archive holds NumPy arrays.
pub(super) fn holds_arrays(path: &Path) -> Result<bool> {
    Ok(archive::zip(path)?.file_names_raw().any(|name| name.ends_with(b".npy")))
}

/// Reads the only array of an archive.
pub(super) fn read_array(path: &Path) -> Result<Array> {
    let name = short_name(path);
    let mut archive = archive::zip(path)?;
    let shown = |raw: &[u8]| String::from_utf8_lossy(raw).into_owned();
    let names: Vec<String> = archive.file_names_raw().map(shown).collect();
    if names.len() != 1 {
        let some = names.iter().take(4).map(|name| name.trim_end_matches(".npy")).collect::<Vec<_>>().join(", ");
        let reason = format!(
            "it holds {} arrays ({some}{}): save one alone by numpy.save",
            names.len(),
            if names.len() > 4 { ", ..." } else { "" }
        );
        return Err(Error::Format { what: name, reason });
    }
    let shown = format!("{name} {}", names[0]);
    let file = archive.by_index(0).map_err(|e| zip_error(&shown, &e))?;
    npy::read_from(BufReader::new(file), &shown)
}

/// Writes one array as `numpy.savez(path, name=array)` does, uncompressed. The same numbers give the same bytes; the file appears complete
/// or not at all.
pub(super) fn write_array<T: Real>(path: &Path, name: &str, shape: &[usize], data: &[T]) -> Result<()> {
    let header = npy::header_bytes(npy::descr::<T>(), shape).ok_or_else(|| Error::Format {
        what: short_name(path),
        reason: format!("a shape of {} dimensions does not fit the header", shape.len()),
    })?;
    write_atomically(path, |out| {
        let mut archive = ZipWriter::new_stream(out);
        archive.start_file(format!("{name}.npy"), stored()).map_err(std::io::Error::other)?;
        archive.write_all(&header)?;
        npy::write_numbers(&mut archive, data)?;
        archive.finish().map_err(std::io::Error::other)?;
        Ok(())
    })
}

/// Reads a matrix from what can be read and sought; `name` is what error messages call it.
///
/// # Errors
/// As [`read_matrix`].
pub fn read_matrix_from<T: Real>(reader: impl Read + Seek, name: &str) -> Result<Csr<T>> {
    let archive = ZipArchive::new(reader).map_err(|e| zip_error(name, &e))?;
    let mut content = Content { archive, name };
    let format = content.text("format")?;
    if content.shape("shape")?.1 != 2 {
        return Err(content.refuse("shape has not two numbers".into()));
    }
    let shape = content.array("shape")?;
    let [rows, cols] = shape.data[..] else {
        return Err(content.refuse(format!("shape has {} numbers, not 2", shape.data.len())));
    };
    let size = |value: f64| (value >= 0.0 && value <= f64::from(u32::MAX) && value.fract() == 0.0).then_some(value);
    let (Some(rows), Some(cols)) = (size(rows), size(cols)) else {
        return Err(content.refuse(format!("{rows} x {cols} is no shape of a matrix, up to {} each way", u32::MAX)));
    };
    let (rows, cols) = (rows as usize, cols as usize);
    let entries = match format.as_str() {
        "csr" => content.compressed(rows, cols)?,
        "csc" => content.compressed(cols, rows)?.into_iter().map(|(j, i, v)| (i, j, v)).collect(),
        "coo" => content.coordinates(rows, cols)?,
        "bsr" => content.blocks(rows, cols)?,
        "dia" => content.diagonals(rows, cols)?,
        other => return Err(content.refuse(format!("format '{other}' is none of csr, csc, coo, bsr and dia"))),
    };
    let mut converted: Vec<(u32, u32, T)> = Vec::with_capacity(entries.len());
    for (i, j, value) in entries {
        let rounded = T::from_f64(value);
        if !rounded.is_finite() {
            let reason = format!("the value {value} at ({i}, {j}) is not finite in {}", T::PRECISION);
            return Err(content.refuse(reason));
        }
        converted.push((i, j, rounded));
    }
    if !plausible_rows(rows as u64, converted.len() as u64) {
        return Err(content.refuse(format!("{} entries are too few for {rows} x {cols}", converted.len())));
    }
    Csr::from_stretches(rows, cols, &[converted])
}

/// Entries `(row, column, value)`.
type Entries = Vec<(u32, u32, f64)>;

/// The arrays of a file.
struct Content<'a, R> {
    archive: ZipArchive<R>,
    name: &'a str,
}

impl<R: Read + Seek> Content<'_, R> {
    fn refuse(&self, reason: String) -> Error {
        Error::Format { what: self.name.into(), reason }
    }

    fn array(&mut self, which: &str) -> Result<Array> {
        let name = format!("{} {which}.npy", self.name);
        let file = self.archive.by_name(&format!("{which}.npy")).map_err(|e| zip_error(&name, &e))?;
        npy::read_from(BufReader::new(file), &name)
    }

    /// The shape of an array and its number of elements, without reading them: what an archive of a few bytes unpacks to may be
    /// large, so arrays are compared before they are read.
    fn shape(&mut self, which: &str) -> Result<(Vec<usize>, usize)> {
        let name = format!("{} {which}.npy", self.name);
        let file = self.archive.by_name(&format!("{which}.npy")).map_err(|e| zip_error(&name, &e))?;
        let (shape, count) = npy::read_shape_from(BufReader::new(file), &name)?;
        match count {
            Some(count) => Ok((shape, count)),
            None => Err(self.refuse(format!("shape {shape:?} of {which} is too large"))),
        }
    }

    /// The number of elements that each of `names` has.
    fn count(&mut self, names: &[&str]) -> Result<usize> {
        let expected = self.shape(names[0])?.1;
        for which in &names[1..] {
            let found = self.shape(which)?.1;
            self.same_count(which, expected, found)?;
        }
        Ok(expected)
    }

    /// Fails if so few entries cannot have so many rows.
    fn plausible(&self, rows: usize, cols: usize, entries: usize) -> Result<()> {
        if plausible_rows(rows as u64, entries as u64) {
            return Ok(());
        }
        Err(self.refuse(format!("{entries} entries are too few for {rows} x {cols}")))
    }

    fn text(&mut self, which: &str) -> Result<String> {
        let name = format!("{} {which}.npy", self.name);
        let file = self.archive.by_name(&format!("{which}.npy")).map_err(|e| zip_error(&name, &e))?;
        npy::read_text_from(BufReader::new(file), &name)
    }

    /// Whole numbers below `limit`.
    fn indices(&mut self, which: &str, limit: usize) -> Result<Vec<u32>> {
        let array = self.array(which)?;
        let fits = |v: f64| v >= 0.0 && v < limit as f64 && v.fract() == 0.0;
        if let Some(bad) = array.data.iter().find(|v| !fits(**v)) {
            return Err(self.refuse(format!("{which} holds {bad}, which is no index below {limit}")));
        }
        Ok(array.data.into_iter().map(|v| v as u32).collect())
    }

    /// Offsets of `rows` rows of `count` entries.
    fn offsets(&mut self, rows: usize, count: usize) -> Result<Vec<usize>> {
        let there = self.shape("indptr")?.1;
        if there != rows + 1 {
            return Err(self.refuse(format!("indptr does not divide {count} entries into {rows} rows")));
        }
        let array = self.array("indptr")?;
        let ends_meet = array.data.first() == Some(&0.0) && array.data.last() == Some(&(count as f64));
        if !ends_meet || !array.data.is_sorted() || array.data.iter().any(|v| v.fract() != 0.0) {
            return Err(self.refuse(format!("indptr does not divide {count} entries into {rows} rows")));
        }
        Ok(array.data.into_iter().map(|v| v as usize).collect())
    }

    fn same_count(&self, which: &str, expected: usize, found: usize) -> Result<()> {
        if expected == found {
            return Ok(());
        }
        Err(self.refuse(format!("{which} has {found} elements where the others ask for {expected}")))
    }

    /// Rows of entries; of `csc` they are columns.
    fn compressed(&mut self, rows: usize, cols: usize) -> Result<Entries> {
        let count = self.count(&["indices", "data"])?;
        self.plausible(rows, cols, count)?;
        let offsets = self.offsets(rows, count)?;
        let (indices, data) = (self.indices("indices", cols)?, self.array("data")?.data);
        let row_of =
            offsets.windows(2).enumerate().flat_map(|(i, ends)| std::iter::repeat_n(i as u32, ends[1] - ends[0]));
        Ok(row_of.zip(indices).zip(data).map(|((i, j), v)| (i, j, v)).collect())
    }

    fn coordinates(&mut self, rows: usize, cols: usize) -> Result<Entries> {
        let count = self.count(&["data", "row", "col"])?;
        self.plausible(rows, cols, count)?;
        let (row, col) = (self.indices("row", rows)?, self.indices("col", cols)?);
        let data = self.array("data")?.data;
        Ok(row.into_iter().zip(col).zip(data).map(|((i, j), v)| (i, j, v)).collect())
    }

    /// Dense blocks; the zeros in them are no entries.
    fn blocks(&mut self, rows: usize, cols: usize) -> Result<Entries> {
        let (shape, elements) = self.shape("data")?;
        let [count, high, wide] = shape[..] else {
            return Err(self.refuse(format!("blocks of shape {shape:?} have not three dimensions")));
        };
        if high == 0 || wide == 0 || !rows.is_multiple_of(high) || !cols.is_multiple_of(wide) {
            return Err(self.refuse(format!("blocks of {high} x {wide} do not divide {rows} x {cols}")));
        }
        let found = self.count(&["indices"])?;
        self.same_count("indices", count, found)?;
        self.plausible(rows, cols, elements)?;
        let offsets = self.offsets(rows / high, count)?;
        let (indices, data) = (self.indices("indices", cols / wide)?, self.array("data")?);
        let mut entries = Entries::new();
        for (block_row, ends) in offsets.windows(2).enumerate() {
            for block in ends[0]..ends[1] {
                for (k, value) in data.data[block * high * wide..][..high * wide].iter().enumerate() {
                    if *value != 0.0 {
                        let (i, j) = (block_row * high + k / wide, indices[block] as usize * wide + k % wide);
                        entries.push((i as u32, j as u32, *value));
                    }
                }
            }
        }
        Ok(entries)
    }

    /// Diagonals: element `j` of each belongs to column `j`; the zeros in them are no entries.
    fn diagonals(&mut self, rows: usize, cols: usize) -> Result<Entries> {
        let (shape, elements) = self.shape("data")?;
        let [count, length] = shape[..] else {
            return Err(self.refuse(format!("diagonals of shape {shape:?} have not two dimensions")));
        };
        let found = self.count(&["offsets"])?;
        self.same_count("offsets", count, found)?;
        // Longer ones than the matrix is wide hold nothing of it.
        if length > rows.max(cols) && length > 1 {
            return Err(
                self.refuse(format!("diagonals of {length} numbers are longer than a {rows} x {cols} matrix"))
            );
        }
        self.plausible(rows, cols, elements)?;
        let (offsets, data) = (self.array("offsets")?.data, self.array("data")?);
        if let Some(bad) = offsets.iter().find(|offset| offset.fract() != 0.0 || !offset.is_finite()) {
            return Err(self.refuse(format!("offsets holds {bad}, which is no diagonal")));
        }
        let mut entries = Entries::new();
        for (d, offset) in offsets.into_iter().enumerate() {
            for j in 0..length.min(cols) {
                let (i, value) = (j as f64 - offset, data.data[d * length + j]);
                if i >= 0.0 && i < rows as f64 && value != 0.0 {
                    entries.push((i as u32, j as u32, value));
                }
            }
        }
        Ok(entries)
    }
}

/// Writes `a` as `scipy.sparse.save_npz(path, a, compressed=False)` does: format `csr`, indices of 32 bits. The same
/// matrix gives the same bytes; the file appears complete or not at all.
///
/// # Errors
/// [`Error::Structure`] for more than 2³¹ columns or entries, which SciPy's 32-bit indices do not reach, and for a matrix of `sprs` with a dimension
/// beyond 32 bits, [`Error::File`]
/// when the file cannot be written.
pub fn write_matrix<T: Real>(path: &Path, a: &(impl AsCsr<T> + ?Sized)) -> Result<()> {
    write_rows(path, &*a.as_csr()?)
}

per_number! {
    fn write_rows<T>(path: &Path, a: &Csr<T>) -> Result<()> = write_rows_here;
}

fn write_rows_here<T: Real>(path: &Path, a: &Csr<T>) -> Result<()> {
    if a.nnz().max(a.cols()) > i32::MAX as usize {
        return Err(Error::Structure {
            what: format!("{} entries exceed SciPy's 32-bit indices", a.nnz()),
            row: None,
        });
    }
    write_atomically(path, |out| {
        let mut archive = ZipWriter::new_stream(out);
        let descr = npy::descr::<T>();
        let mut array = |name: &str, descr: &str, shape: &[usize], write: &mut dyn FnMut(&mut dyn Write) -> _| {
            archive.start_file(format!("{name}.npy"), stored()).map_err(std::io::Error::other)?;
            // Two dimensions at most: the header always fits.
            archive.write_all(&npy::header_bytes(descr, shape).unwrap_or_default())?;
            write(&mut archive)
        };
        array("indices", "<i4", &[a.nnz()], &mut |out| write_words(out, a.indices().iter().copied()))?;
        array("indptr", "<i4", &[a.rows() + 1], &mut |out| {
            write_words(out, a.offsets().iter().map(|o| *o as u32))
        })?;
        array("format", "|S3", &[], &mut |out| out.write_all(b"csr"))?;
        array("shape", "<i8", &[2], &mut |out| {
            out.write_all(&(a.rows() as u64).to_le_bytes())?;
            out.write_all(&(a.cols() as u64).to_le_bytes())
        })?;
        array("data", descr, &[a.nnz()], &mut |out| npy::write_numbers(out, a.values()))?;
        archive.finish().map_err(std::io::Error::other)?;
        Ok(())
    })
}

/// Options of an array that is stored as it is, without a time.
fn stored() -> SimpleFileOptions {
    SimpleFileOptions::default()
        .compression_method(CompressionMethod::Stored)
        .last_modified_time(zip::DateTime::DEFAULT)
        .large_file(true)
}

/// Writes 32-bit words.
fn write_words(out: &mut dyn Write, words: impl Iterator<Item = u32>) -> std::io::Result<()> {
    const CHUNK: usize = 1 << 16;
    let mut bytes = Vec::with_capacity(CHUNK);
    for word in words {
        bytes.extend(word.to_le_bytes());
        if bytes.len() >= CHUNK {
            out.write_all(&bytes)?;
            bytes.clear();
        }
    }
    out.write_all(&bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

    use super::*;
    use proptest::prelude::*;
    use std::io::Cursor;

    /// Files that SciPy 1.17 wrote, of `[[1, 0, 0, 2.5, 0, 0], [0, -3, 0, 0, 0, 1e-3], [0; 6], [4, 0, 5, 0, 0, 7]]`; that of
    /// `coo` backwards, with 0.5 and 0.25 once more at the first and the last place.
    const FILES: [(&str, &[u8]); 5] = [
        ("csr", include_bytes!("../../tests/data/scipy_csr.npz")),
        ("csc", include_bytes!("../../tests/data/scipy_csc.npz")),
        ("coo", include_bytes!("../../tests/data/scipy_coo.npz")),
        ("bsr", include_bytes!("../../tests/data/scipy_bsr.npz")),
        ("dia", include_bytes!("../../tests/data/scipy_dia.npz")),
    ];

    fn read<T: Real>(bytes: &[u8]) -> Result<Csr<T>> {
        read_matrix_from(Cursor::new(bytes), "foo.npz")
    }

    #[test]
    fn every_format_of_scipy_is_read() {
        for (format, bytes) in FILES {
            let (first, last) = if format == "coo" { (1.5, 7.25) } else { (1.0, 7.0) };
            // SciPy stored csr in single precision.
            let small = if format == "csr" { f64::from(1e-3f32) } else { 1e-3 };
            let entries =
                [(0, 0, first), (0, 3, 2.5), (1, 1, -3.0), (1, 5, small), (3, 0, 4.0), (3, 2, 5.0), (3, 5, last)];
            assert_eq!(read::<f64>(bytes).unwrap(), Csr::from_triplets(4, 6, &entries).unwrap(), "{format}");
        }
        let integers = read::<f32>(include_bytes!("../../tests/data/scipy_array_int.npz")).unwrap();
        assert_eq!(integers, Csr::from_triplets(2, 2, &[(0, 1, 2.0), (1, 0, 3.0)]).unwrap());
    }

    #[test]
    fn what_cannot_be_read_is_refused_by_name() {
        let complex = read::<f64>(include_bytes!("../../tests/data/scipy_complex.npz")).unwrap_err().to_string();
        assert!(complex.contains("c16") && complex.contains("data.npy"), "{complex}");
        let none = read::<f64>(b"PK nothing of the kind").unwrap_err().to_string();
        assert!(none.contains(".npz"), "{none}");
        // An archive that holds other arrays.
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        archive.start_file("x.npy", SimpleFileOptions::default()).unwrap();
        let other = archive.finish().unwrap().into_inner();
        let missing = read::<f64>(&other).unwrap_err().to_string();
        assert!(missing.contains("format.npy") && missing.contains("missing"), "{missing}");
    }

    /// An archive with the arrays of a `csr` matrix of two rows.
    fn archive(shape: [i64; 2], indptr: &[i32], indices: &[i32], data: &[f64]) -> Vec<u8> {
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        let mut add = |name: &str, descr: &str, shape: &[usize], bytes: Vec<u8>| {
            archive.start_file(format!("{name}.npy"), SimpleFileOptions::default()).unwrap();
            archive.write_all(&npy::header_bytes(descr, shape).unwrap()).unwrap();
            archive.write_all(&bytes).unwrap();
        };
        add("format", "<U3", &[], "csr".bytes().flat_map(|b| [b, 0, 0, 0]).collect());
        add("shape", "<i8", &[2], shape.iter().flat_map(|n| n.to_le_bytes()).collect());
        add("indptr", "<i4", &[indptr.len()], indptr.iter().flat_map(|n| n.to_le_bytes()).collect());
        add("indices", "<i4", &[indices.len()], indices.iter().flat_map(|n| n.to_le_bytes()).collect());
        add("data", "<f8", &[data.len()], data.iter().flat_map(|n| n.to_le_bytes()).collect());
        archive.finish().unwrap().into_inner()
    }

    #[test]
    fn arrays_that_contradict_each_other_are_refused() {
        assert_eq!(read::<f64>(&archive([2, 3], &[0, 1, 2], &[2, 0], &[1.0, 2.0])).unwrap().nnz(), 2);
        for (bytes, word) in [
            (archive([2, 3], &[0, 1, 2], &[3, 0], &[1.0, 2.0]), "below 3"),
            (archive([2, 3], &[0, 1, 2], &[-1, 0], &[1.0, 2.0]), "-1"),
            (archive([2, 3], &[0, 1, 2], &[0], &[1.0, 2.0]), "2 elements"),
            (archive([2, 3], &[0, 2], &[0, 1], &[1.0, 2.0]), "2 rows"),
            (archive([2, 3], &[0, 3, 2], &[0, 1], &[1.0, 2.0]), "2 rows"),
            (archive([1 << 31, 3], &[0, 1, 2], &[0, 1], &[1.0, 2.0]), "too few"),
            (archive([2, 3], &[0, 1, 2], &[0, 1], &[1.0, f64::NAN]), "not finite"),
            (archive([-2, 3], &[0, 1, 2], &[0, 1], &[1.0, 2.0]), "no shape"),
            (archive([2, i64::MAX], &[0, 1, 2], &[0, 1], &[1.0, 2.0]), "no shape"),
        ] {
            let error = read::<f64>(&bytes).unwrap_err().to_string();
            assert!(error.contains(word), "{word}: {error}");
        }
        let large = read::<f32>(&archive([2, 3], &[0, 1, 2], &[0, 1], &[1.0, 1e300])).unwrap_err().to_string();
        assert!(large.contains("fp32"), "{large}");
    }

    /// Headers are compared before arrays are read: a short archive may hold a long array.
    #[test]
    fn long_arrays_are_refused_unread() {
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        let mut add = |name: &str, descr: &str, shape: &[usize], bytes: &[u8]| {
            archive.start_file(format!("{name}.npy"), SimpleFileOptions::default()).unwrap();
            archive.write_all(&npy::header_bytes(descr, shape).unwrap()).unwrap();
            archive.write_all(bytes).unwrap();
        };
        add("format", "|S3", &[], b"csr");
        add("shape", "<i8", &[2], &[7u64.to_le_bytes(), 7u64.to_le_bytes()].concat());
        add("indptr", "<i4", &[8], &(0..8i32).flat_map(i32::to_le_bytes).collect::<Vec<u8>>());
        add("indices", "<i4", &[7], &(0..7i32).flat_map(i32::to_le_bytes).collect::<Vec<u8>>());
        // The elements of this one are not even there.
        add("data", "<f8", &[500_000_000], &[]);
        let error = read::<f64>(&archive.finish().unwrap().into_inner()).unwrap_err().to_string();
        assert!(error.contains("data has 500000000 elements where the others ask for 7"), "{error}");
    }

    proptest! {
        #[test]
        fn matrices_survive_a_file(entries in prop::collection::vec((0usize..40, 0usize..30, -1e9f64..1e9), 0..200)) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.npz");
            let a = Csr::from_triplets(40, 30, &entries).unwrap();
            write_matrix(&path, &a).unwrap();
            prop_assert_eq!(read_matrix::<f64>(&path).unwrap(), a);
            let single: Vec<_> = entries.iter().map(|e| (e.0, e.1, e.2 as f32)).collect();
            let a = Csr::from_triplets(40, 30, &single).unwrap();
            write_matrix(&path, &a).unwrap();
            prop_assert_eq!(read_matrix::<f32>(&path).unwrap(), a);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = read::<f64>(&bytes);
        }

        #[test]
        fn damaged_files_are_read_or_refused(which in 0usize..5, at in 0usize..2000, with in any::<u8>(), cut in 0usize..4000) {
            let mut bytes = FILES[which].1.to_vec();
            let place = at % bytes.len();
            bytes[place] = with;
            bytes.truncate(cut.max(1));
            let _ = read::<f64>(&bytes);
        }
    }
}
