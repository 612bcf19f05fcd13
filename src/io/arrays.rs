//! Right-hand sides and answers in files of several forms.

use std::path::Path;

use super::columns::FileColumns;
use super::readers::Readers;
use super::{npy, npz};
use crate::error::{Error, Result, same_length};
use crate::files::write_atomically;
use crate::number::{Real, per_number};

per_number! {
    /// Reads vectors of `length` numbers each, as right-hand sides of a system with `length` rows are: the columns of an array of
    /// `length` x k numbers, or its k rows if only those fit (k x `length`). So a square array holds columns. An array of one
    /// dimension is one vector. Files: NumPy (`.npy`, or `.npz` with one array), the vectors
    /// of a binary file of PETSc, or Matrix Market, plain, compressed, or in an archive.
    ///
    /// # Errors
    /// As [`npy::read`] and [`read_vector`](super::matrix_market::read_vector); [`Error::Format`] with the shape if neither columns nor rows fit, for an array
    /// without numbers, and for a file of another kind, which it names.
    pub fn read_columns<T>(path: &Path, length: usize) -> Result<FileColumns<T>> = read_columns_here;

    /// Writes vectors of one length as the columns of an array, or as its rows: one vector as an array of one dimension. The form is that
    /// which the ending of the name stands for ([`ArrayForm`]).
    ///
    /// # Errors
    /// As [`write_array`]; [`Error::Shape`] for vectors of different lengths.
    pub fn write_columns<T>(path: &Path, vectors: &[Vec<T>], by_rows: bool) -> Result<()> = write_columns_here;
}

fn write_columns_here<T: Real>(path: &Path, vectors: &[Vec<T>], by_rows: bool) -> Result<()> {
    let length = vectors.first().map_or(0, Vec::len);
    for vector in vectors {
        same_length("vectors of one file", length, vector.len())?;
    }
    match vectors {
        [one] => write_array(path, &[length], one),
        many if by_rows => write_array(path, &[many.len(), length], &many.concat()),
        many => {
            let numbers: Vec<T> = (0..length).flat_map(|i| many.iter().map(move |vector| vector[i])).collect();
            write_array(path, &[length, many.len()], &numbers)
        }
    }
}

fn read_columns_here<T: Real>(path: &Path, length: usize) -> Result<FileColumns<T>> {
    Readers::pick(path, "vectors", |readers| readers.columns)?(path, length)
}

/// Forms in which arrays are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArrayForm {
    /// NumPy's `.npy`; also for names without an ending.
    Npy,
    /// NumPy's `.npz`, with one array that is called `x`.
    Npz,
    /// Matrix Market, `.mtx`: `array real general`.
    MatrixMarket,
    /// Text, `.txt`: a line for each row, as `numpy.loadtxt` reads it.
    Text,
}

impl ArrayForm {
    /// The form that the ending of a name stands for.
    ///
    /// # Errors
    /// [`Error::File`] for another ending, with those that there are.
    pub fn of(path: &Path) -> Result<Self> {
        let Some(ending) = path.extension() else { return Ok(Self::Npy) };
        let forms = [("npy", Self::Npy), ("npz", Self::Npz), ("mtx", Self::MatrixMarket), ("txt", Self::Text)];
        let known = forms.into_iter().find(|(known, _)| ending.eq_ignore_ascii_case(known));
        known.map(|(_, form)| form).ok_or_else(|| {
            let reason = format!(
                "numbers are written as .npy, .npz, .mtx or .txt, not as .{}",
                ending.to_string_lossy().chars().take(20).collect::<String>()
            );
            Error::File { path: path.into(), reason }
        })
    }

    /// Fails if arrays of so many dimensions cannot be written to `path`: before the work whose result goes there.
    ///
    /// # Errors
    /// [`Error::File`], also as [`ArrayForm::of`].
    pub fn check(path: &Path, dimensions: usize) -> Result<()> {
        match Self::of(path)? {
            Self::MatrixMarket | Self::Text if dimensions > 2 => {
                let reason = format!("{dimensions} dimensions are written as .npy or .npz, not as text");
                Err(Error::File { path: path.into(), reason })
            }
            _ => Ok(()),
        }
    }
}

per_number! {
    /// Writes an array, in C order, in the form that the ending of the name stands for ([`ArrayForm`]). Numbers of texts have the fewest
    /// digits that read back as the same. The file appears complete or not at all.
    ///
    /// # Errors
    /// As [`ArrayForm::check`] and [`npy::write()`]; [`Error::NotFinite`] for a value that a Matrix Market file has no word for.
    pub fn write_array<T>(path: &Path, shape: &[usize], data: &[T]) -> Result<()> = write_array_here;
}

fn write_array_here<T: Real>(path: &Path, shape: &[usize], data: &[T]) -> Result<()> {
    ArrayForm::check(path, shape.len())?;
    let form = ArrayForm::of(path)?;
    let count = shape.iter().fold(1usize, |n, &d| n.saturating_mul(d));
    same_length("elements against the shape", count, data.len())?;
    let rows = shape.first().copied().unwrap_or(1);
    let cols = shape.get(1).copied().unwrap_or(1);
    match form {
        ArrayForm::Npy => npy::write(path, shape, data),
        ArrayForm::Npz => npz::write_array(path, "x", shape, data),
        ArrayForm::MatrixMarket => {
            if let Some(index) = data.iter().position(|v| !v.is_finite()) {
                return Err(Error::NotFinite { what: "the array to be written".into(), index });
            }
            write_atomically(path, |out| {
                writeln!(out, "%%MatrixMarket matrix array real general\n{rows} {cols}")?;
                (0..cols).flat_map(|j| data.iter().skip(j).step_by(cols)).try_for_each(|v| writeln!(out, "{v:?}"))
            })
        }
        ArrayForm::Text => write_atomically(path, |out| {
            for row in data.chunks(cols.max(1)) {
                for (j, v) in row.iter().enumerate() {
                    write!(out, "{}{v:?}", if j > 0 { " " } else { "" })?;
                }
                writeln!(out)?;
            }
            Ok(())
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_with(name: &str, bytes: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        (folder, path)
    }

    #[test]
    fn what_fits_tells_columns_from_rows() {
        let (_folder, path) = folder_with("b.npy", b"");
        let read = |shape: &[usize], length: usize| {
            let data: Vec<f64> = (0..shape.iter().product::<usize>()).map(|k| k as f64).collect();
            npy::write(&path, shape, &data).unwrap();
            read_columns::<f64>(&path, length).map(|found| found.vectors).map_err(|e| e.to_string())
        };
        assert_eq!(read(&[3], 3), Ok(vec![vec![0.0, 1.0, 2.0]]));
        assert_eq!(read(&[3, 1], 3), Ok(vec![vec![0.0, 1.0, 2.0]]));
        assert_eq!(read(&[1, 3], 3), Ok(vec![vec![0.0, 1.0, 2.0]]));
        assert_eq!(read(&[3, 2], 3), Ok(vec![vec![0.0, 2.0, 4.0], vec![1.0, 3.0, 5.0]]));
        assert_eq!(read(&[2, 3], 3), Ok(vec![vec![0.0, 1.0, 2.0], vec![3.0, 4.0, 5.0]]));
        // Both fit: columns.
        assert_eq!(read(&[2, 2], 2), Ok(vec![vec![0.0, 2.0], vec![1.0, 3.0]]));
        assert_eq!(read(&[1, 2], 1), Ok(vec![vec![0.0], vec![1.0]]));
        assert_eq!(read(&[2, 1], 1), Ok(vec![vec![0.0], vec![1.0]]));
        assert_eq!(read(&[2, 2, 2], 2).map(|vectors| vectors.len()), Ok(4));
        assert_eq!(read(&[0], 0), Ok(vec![vec![]]));
        for (shape, words) in [
            (&[4][..], "4 numbers, and the system has 3 rows"),
            (&[4, 2], "4 x 2 numbers, and the system has 3 rows: right-hand sides are the columns of 3 x k"),
            (&[0, 3], "no numbers"),
            (&[3, 0], "no numbers"),
            (&[3, 2, 2], "3 x 2 x 2"),
        ] {
            let told = read(shape, 3).unwrap_err();
            assert!(told.starts_with("b.npy: ") && told.contains(words), "{told}");
        }
    }

    #[test]
    fn matrix_market_files_hold_columns_too() {
        let read = |text: &str, length: usize| {
            let (_folder, path) = folder_with("b.mtx", text.as_bytes());
            read_columns::<f64>(&path, length).map(|found| found.vectors).map_err(|e| e.to_string())
        };
        let array = "%%MatrixMarket matrix array real general\n3 2\n1\n0\n3\n4\n5\n6\n";
        assert_eq!(read(array, 3), Ok(vec![vec![1.0, 0.0, 3.0], vec![4.0, 5.0, 6.0]]));
        assert_eq!(read(array, 2), Ok(vec![vec![1.0, 4.0], vec![0.0, 5.0], vec![3.0, 6.0]]));
        let coordinate = "%%MatrixMarket matrix coordinate real general\n3 2 3\n3 1 2\n1 2 5\n3 1 1\n";
        assert_eq!(read(coordinate, 3), Ok(vec![vec![0.0, 0.0, 3.0], vec![5.0, 0.0, 0.0]]));
        let told = read(array, 5).unwrap_err();
        assert!(told.contains("b.mtx line 2: it holds 3 x 2 numbers, and the system has 5 rows"), "{told}");
        // A short file asks for little.
        let told = read("%%MatrixMarket matrix coordinate real general\n9 4000000000 1\n1 1 1\n", 9).unwrap_err();
        assert!(told.contains("too few"), "{told}");
        let both = "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 2 3\n2 1 3\n";
        assert!(read(both, 2).unwrap_err().contains("line 4"));
    }

    #[test]
    fn every_form_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let data = [0.1, -2.0, 1e300, 4.0, 5e-324, 6.0];
        let columns = [[0.1, 1e300, 5e-324], [-2.0, 4.0, 6.0]];
        for name in ["x.npy", "x", "x.npz", "x.NPZ", "x.mtx"] {
            let path = folder.path().join(name);
            write_array(&path, &[3, 2], &data).unwrap();
            assert_eq!(read_columns::<f64>(&path, 3).unwrap().vectors, columns, "{name}");
            write_array(&path, &[3], &data[..3]).unwrap();
            assert_eq!(read_columns::<f64>(&path, 3).unwrap().vectors, [&data[..3]], "{name}");
            write_array::<f32>(&path, &[1], &[0.1]).unwrap();
            assert_eq!(read_columns::<f32>(&path, 1).unwrap().vectors, [[0.1]], "{name}");
            let vectors = columns.map(|column| column.to_vec());
            for by_rows in [false, true] {
                write_columns(&path, &vectors, by_rows).unwrap();
                let found = read_columns::<f64>(&path, 3).unwrap();
                assert_eq!((&found.vectors[..], found.by_rows), (&vectors[..], by_rows), "{name}");
            }
            write_columns(&path, &vectors[..1], true).unwrap();
            assert!(!read_columns::<f64>(&path, 3).unwrap().by_rows, "one is neither");
        }
        let path = folder.path().join("x.txt");
        write_array(&path, &[3, 2], &data).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "0.1 -2.0\n1e300 4.0\n5e-324 6.0\n");
        let path = folder.path().join("x.mtx");
        write_array(&path, &[2, 1], &data[..2]).unwrap();
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            "%%MatrixMarket matrix array real general\n2 1\n0.1\n-2.0\n"
        );
        for name in ["x.h5", "x.mat", "x.csv", "x.mtx.gz"] {
            let path = folder.path().join(name);
            let told = write_array(&path, &[3, 2], &data).unwrap_err().to_string();
            assert!(told.contains(".npy, .npz, .mtx or .txt") && !path.exists(), "{told}");
        }
        for name in ["x.txt", "x.mtx"] {
            let told = write_array(&folder.path().join(name), &[1, 2, 3], &data).unwrap_err().to_string();
            assert!(told.contains("3 dimensions"), "{told}");
        }
        let told = write_array(&folder.path().join("x.mtx"), &[2], &[1.0, f64::NAN]).unwrap_err();
        assert!(matches!(told, Error::NotFinite { index: 1, .. }));
    }
}
