//! Matrices written in the form that the ending of a name stands for.

use std::path::Path;

use super::matrix_market::{self, check_written};
use super::{npz, petsc};
use crate::error::{Error, Result};
use crate::number::{Real, per_number};
use crate::sparse::{AsCsr, Csr};

/// Form in which a matrix is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MatrixForm {
    /// A Matrix Market file, `.mtx`: text, with the fewest digits that read back as the same numbers.
    MatrixMarket,
    /// A file of SciPy, `.npz`, that `scipy.sparse.load_npz` reads.
    Npz,
    /// A binary file of PETSc, `.petsc` or `.dat`, that `MatLoad` reads. Values are `f64`.
    Petsc,
}

impl MatrixForm {
    /// The form that the ending of a name stands for.
    ///
    /// # Errors
    /// [`Error::File`] for another ending, with those that there are.
    pub fn of(path: &Path) -> Result<Self> {
        let ending = path.extension().unwrap_or_default();
        let forms = [("mtx", Self::MatrixMarket), ("npz", Self::Npz), ("petsc", Self::Petsc), ("dat", Self::Petsc)];
        let known = forms.into_iter().find(|(known, _)| ending.eq_ignore_ascii_case(known));
        known.map(|(_, form)| form).ok_or_else(|| {
            let reason = "matrices are written as .mtx, .npz, .petsc or .dat".into();
            Error::File { path: path.into(), reason }
        })
    }
}

/// Writes a matrix in the form that the ending of the name stands for ([`MatrixForm`]). The same matrix gives the same bytes. The file
/// appears complete or not at all.
///
/// # Errors
/// [`Error::NotFinite`] for a value that readers would refuse; as [`MatrixForm::of`], [`matrix_market::write_matrix`] and
/// [`npz::write_matrix`].
///
/// ```
/// use residuum::{io, sparse::gallery};
///
/// let a = gallery::poisson_2d::<f64>(16, 0.0)?;
/// let path = std::env::temp_dir().join("residuum_poisson_16.petsc");
/// io::write_matrix(&path, &a)?;
/// assert_eq!(io::read_matrix::<f64>(&path, &mut |_, _| ())?, a);
/// # Ok::<(), residuum::Error>(())
/// ```
pub fn write_matrix<T: Real>(path: &Path, a: &(impl AsCsr<T> + ?Sized)) -> Result<()> {
    write_rows(path, &*a.as_csr()?)
}

per_number! {
    fn write_rows<T>(path: &Path, a: &Csr<T>) -> Result<()> = write_rows_here;
}

fn write_rows_here<T: Real>(path: &Path, a: &Csr<T>) -> Result<()> {
    match MatrixForm::of(path)? {
        MatrixForm::MatrixMarket => matrix_market::write_matrix(path, a),
        MatrixForm::Npz => check_written(a).and_then(|()| npz::write_matrix(path, a)),
        MatrixForm::Petsc => check_written(a).and_then(|()| petsc::write_matrix(path, a)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::read_matrix;
    use crate::sparse::gallery;

    #[test]
    fn matrices_come_back_from_every_form() {
        let folder = tempfile::tempdir().unwrap();
        let same = |a: &Csr<f64>| {
            for ending in ["mtx", "npz", "petsc", "dat", "MTX"] {
                let path = folder.path().join(format!("a.{ending}"));
                write_matrix(&path, a).unwrap();
                assert_eq!(&read_matrix::<f64>(&path, &mut |_, _| ()).unwrap(), a, "{ending}");
            }
        };
        same(&gallery::random(7, 11, 30, 3).unwrap());
        same(&gallery::poisson_2d(5, 0.25).unwrap());
        // Rows without entries.
        same(&Csr::from_triplets(4, 3, &[(2, 1, -0.1)]).unwrap());
        let single = gallery::random::<f32>(7, 11, 30, 3).unwrap();
        for ending in ["mtx", "npz", "petsc"] {
            let path = folder.path().join(format!("single.{ending}"));
            write_matrix(&path, &single).unwrap();
            assert_eq!(read_matrix::<f32>(&path, &mut |_, _| ()).unwrap(), single, "{ending}");
        }
    }

    #[test]
    fn other_endings_are_refused_with_those_that_there_are() {
        let a = gallery::poisson_2d::<f64>(2, 0.0).unwrap();
        for name in ["a", "a.mat", "a.npy"] {
            let refused = write_matrix(Path::new(name), &a).unwrap_err().to_string();
            assert!(refused.contains(".mtx, .npz, .petsc or .dat"), "{refused}");
        }
    }

    /// Bytes of a small matrix, written by hand from the layout that `PetscBinaryIO.py` documents.
    #[test]
    fn petsc_has_the_layout_of_its_script() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.petsc");
        write_matrix(&path, &Csr::from_triplets(2, 3, &[(0, 2, 1.0), (1, 0, -2.0)]).unwrap()).unwrap();
        let integers = [1_211_216i32, 2, 3, 2, 1, 1, 2, 0].iter().flat_map(|n| n.to_be_bytes());
        let values = [1.0f64, -2.0].iter().flat_map(|v| v.to_be_bytes());
        assert_eq!(std::fs::read(&path).unwrap(), integers.chain(values).collect::<Vec<u8>>());
    }
}
