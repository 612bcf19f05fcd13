//! PETSc's binary files: matrices (`MatView`) and vectors (`VecView`) one after another, as `-ksp_view_mat binary` and
//! `PetscBinaryIO.py` write them.
//!
//! ```text
//!   matrix        1211216, rows, columns, entries, entries of each row, column of each entry, value of each entry
//!   dense matrix  1211216, rows, columns, -1, values row by row
//!   vector        1211214, length, values
//!   index set     1211218, length, indices                                        passed over
//! ```
//!
//! Integers have 32 bits, or 64 bits from a PETSc with 64-bit indices: the first integer of the file shows which. Values are `f64`. The highest
//! byte of a number comes first. A file does not say if its values are complex or of another precision. The reader finds out: behind an object
//! another one must begin or the file must end, otherwise the file is refused.

use std::io::{BufRead, Read};
use std::path::Path;

use super::columns::{FileColumns, unfit};
use super::npy::Array;
use super::open::{TRUSTED_ELEMENTS, Watch, open, read_error, short_name};
use crate::error::{Error, Result};
use crate::files::write_atomically;
use crate::number::Real;
use crate::sparse::{Csr, plausible_rows};

/// Bytes that are read at once.
const CHUNK: usize = 1 << 16;

/// Numbers that objects begin with.
const MATRIX: i64 = 1_211_216;
const VECTOR: i64 = 1_211_214;
const INDICES: i64 = 1_211_218;

/// Head of an object.
#[derive(Clone, Copy)]
enum Head {
    Matrix { rows: usize, cols: usize, entries: usize },
    Dense { rows: usize, cols: usize },
    Vector { length: usize },
    Indices { length: usize },
}

/// Vectors of a file, or its first dense matrix if it has no vectors.
enum Numbers {
    Vectors(Vec<Vec<f64>>),
    Dense(Array),
}

/// Reads the first matrix.
///
/// # Errors
/// [`Error::File`]; [`Error::Format`] for a file without a matrix, or one that does not hold what it says, for a value that is not finite in `T`,
/// and for too few entries for so many rows.
pub(super) fn read_matrix<T: Real>(path: &Path, watch: &mut Watch<'_>) -> Result<Csr<T>> {
    let mut file = Objects::open(path)?;
    while let Some(head) = file.next()? {
        match head {
            Head::Matrix { rows, cols, entries } => return file.matrix(rows, cols, entries, watch),
            Head::Dense { rows, cols } => {
                let count = file.product(rows, cols)?;
                file.plausible(rows, cols, count)?;
                let values = file.values(count)?;
                let places = (0..rows).flat_map(|i| (0..cols).map(move |j| (i as u32, j as u32)));
                let entries = places.zip(values).filter(|(_, v)| *v != 0.0).map(|((i, j), v)| (i, j, v)).collect();
                return file.assembled(rows, cols, entries);
            }
            other => file.pass(other)?,
        }
    }
    Err(file.refuse("it holds no matrix".into()))
}

/// Reads the vectors, one a row if there are several, or else the first dense matrix.
///
/// # Errors
/// [`Error::File`]; [`Error::Format`] for a file with neither, or one that does not hold what it says, and for vectors of different lengths.
pub(super) fn read_array(path: &Path) -> Result<Array> {
    Ok(match read_numbers(path)? {
        Numbers::Dense(array) => array,
        Numbers::Vectors(mut vectors) if vectors.len() == 1 => Array::of_vector(vectors.swap_remove(0)),
        Numbers::Vectors(vectors) => Array { shape: vec![vectors.len(), vectors[0].len()], data: vectors.concat() },
    })
}

/// Reads the vectors as columns of `length` numbers, or else the columns of the first dense matrix.
///
/// # Errors
/// As [`read_array`]; [`Error::Format`] for another length.
pub(super) fn read_columns<T: Real>(path: &Path, length: usize) -> Result<FileColumns<T>> {
    let name = short_name(path);
    match read_numbers(path)? {
        Numbers::Dense(array) => FileColumns::of_array(&array, length, &name),
        Numbers::Vectors(vectors) if vectors[0].len() == length => {
            let rounded = |vector: &Vec<f64>| vector.iter().map(|v| T::from_f64(*v)).collect();
            Ok(FileColumns::new(vectors.iter().map(rounded).collect(), false))
        }
        Numbers::Vectors(vectors) => Err(Error::Format { what: name, reason: unfit(&[vectors[0].len()], length) }),
    }
}

fn read_numbers(path: &Path) -> Result<Numbers> {
    let mut file = Objects::open(path)?;
    let (mut vectors, mut dense) = (Vec::<Vec<f64>>::new(), None);
    while let Some(head) = file.next()? {
        match head {
            Head::Vector { length } => vectors.push(file.values(length)?),
            Head::Dense { rows, cols } if dense.is_none() => {
                let data = file.values(file.product(rows, cols)?)?;
                dense = Some(Array { shape: vec![rows, cols], data });
            }
            other => file.pass(other)?,
        }
    }
    let Some(first) = vectors.first() else {
        return dense.map(Numbers::Dense).ok_or_else(|| file.refuse("it holds no vector".into()));
    };
    match vectors.iter().find(|vector| vector.len() != first.len()) {
        Some(other) => Err(file.refuse(format!("it holds vectors of {} and {} numbers", first.len(), other.len()))),
        None => Ok(Numbers::Vectors(vectors)),
    }
}

/// Writes a matrix as `MatView` does, with integers of 32 bits, or of 64 if the entries do not fit. Values become `f64`.
///
/// # Errors
/// [`Error::File`].
pub(super) fn write_matrix<T: Real>(path: &Path, a: &Csr<T>) -> Result<()> {
    let wide = a.nnz().max(a.rows()).max(a.cols()) > i32::MAX as usize;
    write_atomically(path, |out| {
        let mut integer = |number: usize| {
            let bytes = (number as u64).to_be_bytes();
            out.write_all(&bytes[if wide { 0 } else { 4 }..])
        };
        for number in [MATRIX as usize, a.rows(), a.cols(), a.nnz()] {
            integer(number)?;
        }
        for rows in a.offsets().windows(2) {
            integer(rows[1] - rows[0])?;
        }
        for column in a.indices() {
            integer(*column as usize)?;
        }
        for value in a.values() {
            out.write_all(&value.to_f64().to_be_bytes())?;
        }
        Ok(())
    })
}

/// A file, read object by object.
struct Objects {
    reader: Box<dyn BufRead + Send>,
    name: String,
    /// Bytes of an integer; 0 before the first.
    integer: usize,
}

impl Objects {
    fn open(path: &Path) -> Result<Self> {
        Ok(Self { reader: open(path)?, name: short_name(path), integer: 0 })
    }

    fn refuse(&self, reason: String) -> Error {
        Error::Format { what: self.name.clone(), reason }
    }

    /// The next bytes, as many as there are up to `count`.
    fn bytes(&mut self, count: usize) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(count.min(CHUNK));
        let read = self.reader.by_ref().take(count as u64).read_to_end(&mut bytes);
        read.map_err(|e| read_error(&self.name, self.name.clone(), &e))?;
        Ok(bytes)
    }

    /// Numbers of `size` bytes, a part of all at a time.
    fn numbers<V>(&mut self, count: usize, size: usize, decode: impl Fn(&[u8]) -> Result<V>) -> Result<Vec<V>> {
        let mut numbers = Vec::with_capacity(count.min(TRUSTED_ELEMENTS));
        while numbers.len() < count {
            let wanted = size * (count - numbers.len()).min(CHUNK / size);
            let bytes = self.bytes(wanted)?;
            if bytes.len() < wanted {
                return Err(self.refuse(format!(
                    "it ends after {} of {count} numbers; values of single precision are not read",
                    numbers.len() + bytes.len() / size
                )));
            }
            for part in bytes.chunks_exact(size) {
                numbers.push(decode(part)?);
            }
        }
        Ok(numbers)
    }

    fn values(&mut self, count: usize) -> Result<Vec<f64>> {
        self.numbers(count, 8, |bytes| Ok(f64::from_be_bytes(bytes.try_into().unwrap_or_default())))
    }

    /// Integers from 0 to `most`; `what` names them.
    fn integers(&mut self, count: usize, most: usize, what: &str) -> Result<Vec<usize>> {
        let name = self.name.clone();
        self.numbers(count, self.integer, |bytes| {
            let number = integer_of(bytes);
            usize::try_from(number).ok().filter(|number| *number <= most).ok_or_else(|| Error::Format {
                what: name.clone(),
                reason: format!("{number} is no {what} up to {most}"),
            })
        })
    }

    /// The head of the next object, none at the end of the file.
    fn next(&mut self) -> Result<Option<Head>> {
        let mut class = self.bytes(4)?;
        if self.integer == 0 {
            // The upper half of a class of 64 bits is 0.
            self.integer = if class == [0; 4] { 8 } else { 4 };
        }
        if class.is_empty() {
            return Ok(None);
        }
        class.extend(self.bytes(self.integer - 4)?);
        let rows_limit = u32::MAX as usize;
        Ok(Some(match integer_of(&class) {
            MATRIX => {
                let shape = self.integers(2, rows_limit, "number of rows or columns")?;
                let (rows, cols) = (shape[0], shape[1]);
                let entries = self.numbers(1, self.integer, |bytes| Ok(integer_of(bytes)))?;
                match entries[..] {
                    [-1] => Head::Dense { rows, cols },
                    [entries] => {
                        let entries = usize::try_from(entries)
                            .map_err(|_| self.refuse(format!("{entries} is no number of entries")))?;
                        Head::Matrix { rows, cols, entries }
                    }
                    _ => return Err(self.refuse("it ends in a head".into())),
                }
            }
            VECTOR => Head::Vector { length: self.integers(1, usize::MAX >> 4, "length")?[0] },
            INDICES => Head::Indices { length: self.integers(1, usize::MAX >> 4, "length")?[0] },
            other => {
                return Err(self.refuse(format!(
                    "{other} stands where a matrix or a vector of PETSc begins; complex values are not read"
                )));
            }
        }))
    }

    /// Number of elements of a dense matrix.
    fn product(&self, rows: usize, cols: usize) -> Result<usize> {
        let count = rows.checked_mul(cols).filter(|count| *count <= usize::MAX >> 4);
        count.ok_or_else(|| self.refuse(format!("{rows} x {cols} numbers are too many")))
    }

    /// Reads what belongs to a head, and keeps nothing of it.
    fn pass(&mut self, head: Head) -> Result<()> {
        let integer = self.integer as u64;
        let bytes = match head {
            Head::Matrix { rows, entries, .. } => {
                (rows as u64).saturating_mul(integer).saturating_add((entries as u64).saturating_mul(integer + 8))
            }
            Head::Dense { rows, cols } => 8 * self.product(rows, cols)? as u64,
            Head::Vector { length } => 8 * length as u64,
            Head::Indices { length } => integer * length as u64,
        };
        let passed = std::io::copy(&mut self.reader.by_ref().take(bytes), &mut std::io::sink());
        match passed.map_err(|e| read_error(&self.name, self.name.clone(), &e))? {
            passed if passed == bytes => Ok(()),
            _ => Err(self.refuse("it ends in the middle of an object".into())),
        }
    }

    /// Fails if so few entries cannot have so many rows: memory follows what a file holds.
    fn plausible(&self, rows: usize, cols: usize, entries: usize) -> Result<()> {
        if plausible_rows(rows as u64, entries as u64) {
            return Ok(());
        }
        Err(self.refuse(format!("{entries} entries are too few for {rows} x {cols}")))
    }

    /// The matrix that follows its head.
    fn matrix<T: Real>(
        &mut self,
        rows: usize,
        cols: usize,
        entries: usize,
        watch: &mut Watch<'_>,
    ) -> Result<Csr<T>> {
        self.plausible(rows, cols, entries)?;
        let lengths = self.integers(rows, cols, "number of entries of a row")?;
        if lengths.iter().sum::<usize>() != entries {
            return Err(self.refuse(format!("the rows have not {entries} entries in all, as its head says")));
        }
        watch(0, entries as u64);
        let columns = self.integers(entries, cols.saturating_sub(1), "column")?;
        watch(entries as u64 / 3, entries as u64);
        let values = self.values(entries)?;
        watch(entries as u64, entries as u64);
        // Values of another size are told by what follows them.
        self.next()?;
        let row_of = lengths.iter().enumerate().flat_map(|(i, length)| std::iter::repeat_n(i as u32, *length));
        let entries = row_of.zip(columns).zip(values).map(|((i, j), v)| (i, j as u32, v)).collect();
        self.assembled(rows, cols, entries)
    }

    /// The matrix of these entries, rounded to `T`.
    fn assembled<T: Real>(&self, rows: usize, cols: usize, entries: Vec<(u32, u32, f64)>) -> Result<Csr<T>> {
        self.plausible(rows, cols, entries.len())?;
        let mut rounded = Vec::with_capacity(entries.len());
        for (i, j, value) in entries {
            let number = T::from_f64(value);
            if !number.is_finite() {
                let reason = format!("the value {value:e} at ({i}, {j}) is not finite in {}", T::PRECISION);
                return Err(self.refuse(reason));
            }
            rounded.push((i, j, number));
        }
        Csr::from_stretches(rows, cols, &[rounded])
    }
}

/// An integer of 4 or 8 bytes, or of fewer at the end of a file.
fn integer_of(bytes: &[u8]) -> i64 {
    match bytes.len() {
        4 => i64::from(i32::from_be_bytes(bytes.try_into().unwrap_or_default())),
        _ => i64::from_be_bytes(bytes.try_into().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io;
    use crate::sparse::gallery;

    /// Integers of 4 or 8 bytes.
    fn integers(wide: bool, numbers: &[i64]) -> Vec<u8> {
        let bytes = |n: &i64| if wide { n.to_be_bytes().to_vec() } else { (*n as i32).to_be_bytes().to_vec() };
        numbers.iter().flat_map(bytes).collect()
    }

    fn values(numbers: &[f64]) -> Vec<u8> {
        numbers.iter().flat_map(|v| v.to_be_bytes()).collect()
    }

    fn matrix(wide: bool, a: &Csr<f64>) -> Vec<u8> {
        let mut head = vec![1_211_216, a.rows() as i64, a.cols() as i64, a.nnz() as i64];
        head.extend(a.offsets().windows(2).map(|ends| (ends[1] - ends[0]) as i64));
        head.extend(a.indices().iter().map(|j| i64::from(*j)));
        [integers(wide, &head), values(a.values())].concat()
    }

    fn vector(wide: bool, numbers: &[f64]) -> Vec<u8> {
        [integers(wide, &[1_211_214, numbers.len() as i64]), values(numbers)].concat()
    }

    fn dense(wide: bool, [rows, cols]: [i64; 2], numbers: &[f64]) -> Vec<u8> {
        [integers(wide, &[1_211_216, rows, cols, -1]), values(numbers)].concat()
    }

    fn written(bytes: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("system.petsc");
        std::fs::write(&path, bytes).unwrap();
        (folder, path)
    }

    fn matrix_in(bytes: &[u8]) -> std::result::Result<Csr<f64>, String> {
        let (_folder, path) = written(bytes);
        io::read_matrix(&path, &mut |_, _| {}).map_err(|e| e.to_string())
    }

    fn columns_in(bytes: &[u8], length: usize) -> std::result::Result<Vec<Vec<f64>>, String> {
        let (_folder, path) = written(bytes);
        io::read_columns(&path, length).map(|columns| columns.vectors).map_err(|e| e.to_string())
    }

    #[test]
    fn a_file_holds_a_system() {
        let a = gallery::poisson_2d::<f64>(5, 0.25).unwrap();
        let b: Vec<f64> = (0..25).map(|i| f64::from(i) / 3.0).collect();
        for wide in [false, true] {
            let indices = [integers(wide, &[1_211_218, 2, 7, 8])].concat();
            let file = [indices, matrix(wide, &a), vector(wide, &b), vector(wide, &b[..25])].concat();
            let read = matrix_in(&file).unwrap();
            assert_eq!((read.offsets(), read.indices(), read.values()), (a.offsets(), a.indices(), a.values()));
            assert_eq!(columns_in(&file, 25).unwrap(), [&b[..], &b]);
            assert!(columns_in(&file, 24).unwrap_err().contains("25 numbers, and the system has 24 rows"));
            let (_folder, path) = written(&vector(wide, &b));
            assert_eq!(io::read_numbers(&path).unwrap(), b);
            assert_eq!(io::read_vectors::<f64>(&path).unwrap(), [&b[..]]);
        }
    }

    #[test]
    fn dense_matrices_and_unsorted_rows_are_read() {
        let file = dense(false, [3, 2], &[1.0, 2.0, 0.0, 4.0, 5.0, 6.0]);
        assert_eq!(columns_in(&file, 3).unwrap(), [[1.0, 0.0, 5.0], [2.0, 4.0, 6.0]]);
        let read = matrix_in(&file).unwrap();
        assert_eq!((read.nnz(), read.row(1)), (5, (&[1u32][..], &[4.0][..])));
        let head = integers(false, &[1_211_216, 1, 3, 3, 3, 2, 0, 2]);
        let read = matrix_in(&[head, values(&[1.0, 5.0, 2.0])].concat()).unwrap();
        assert_eq!(read.row(0), (&[0u32, 2][..], &[5.0, 3.0][..]));
    }

    #[test]
    fn what_does_not_hold_what_it_says_is_refused() {
        let a = gallery::poisson_2d::<f64>(3, 0.0).unwrap();
        let whole = matrix(false, &a);
        for end in 0..whole.len() {
            assert!(matrix_in(&whole[..end]).is_err(), "{end}");
        }
        let complex = [whole.clone(), values(&vec![1.5; a.nnz()])].concat();
        assert!(matrix_in(&complex).unwrap_err().contains("complex values are not read"));
        assert!(matrix_in(&vector(true, &[1.0])).unwrap_err().contains("it holds no matrix"));
        assert!(columns_in(&whole, 9).unwrap_err().contains("it holds no vector"));
        let uneven = [vector(false, &[1.0]), vector(false, &[1.0, 2.0])].concat();
        assert!(columns_in(&uneven, 1).unwrap_err().contains("vectors of 1 and 2 numbers"));
        for (head, words) in [
            (&[1_211_216, 2, 2, 2, 1, 1, 0, 2][..], "2 is no column up to 1"),
            (&[1_211_216, 2, 2, 3, 1, 1, 0, 1], "have not 3 entries"),
            (&[1_211_216, 2, 2, 3, 3, 0, 0, 1], "3 is no number of entries of a row"),
            (&[1_211_216, -2, 2, 2], "-2 is no number of rows"),
            (&[1_211_216, 2, 2, -7], "-7 is no number of entries"),
            (&[1_211_216, 4_000_000_000 - (1 << 32), 2, 2], "is no number of rows"),
            (&[1_211_216, 2_000_000_000, 2, 1], "too few"),
            (&[1_211_216, 2_000_000_000, 0, -1], "too few"),
            (&[1_211_216, 2_000_000_000, 2_000_000_000, -1], "are too many"),
        ] {
            let told = matrix_in(&[integers(false, head), values(&[1.0; 3])].concat()).unwrap_err();
            assert!(told.starts_with("system.petsc: ") && told.contains(words), "{told}");
        }
        let huge = dense(true, [1 << 31, 1 << 28], &[]);
        assert!(columns_in(&huge, 3).unwrap_err().contains("ends after 0 of"));
        let infinite = [integers(false, &[1_211_216, 1, 1, 1, 1, 0]), values(&[f64::INFINITY])].concat();
        assert!(matrix_in(&infinite).unwrap_err().contains("not finite"));
        let (_folder, path) = written(&[integers(false, &[1_211_216, 1, 1, 1, 1, 0]), values(&[1e300])].concat());
        let told = io::read_matrix::<f32>(&path, &mut |_, _| {}).unwrap_err().to_string();
        assert!(told.contains("not finite in fp32"), "{told}");
    }
}
