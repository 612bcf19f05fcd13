//! Readers of each kind of file.

use std::path::Path;

use super::archive::{self, Wanted};
use super::columns::FileColumns;
use super::kind::FileKind;
use super::npy::Array;
use super::open::{Watch, open, short_name};
use super::{matrix_market, npy, npz, petsc};
use crate::error::Result;
use crate::number::Real;
use crate::sparse::Csr;

type ReadMatrix<T> = fn(&Path, &mut Watch<'_>) -> Result<Csr<T>>;
type ReadColumns<T> = fn(&Path, usize) -> Result<FileColumns<T>>;

/// Readers of a kind of file; none for what such a file does not hold.
#[derive(Clone, Copy)]
pub(super) struct Readers<T> {
    pub(super) matrix: Option<ReadMatrix<T>>,
    /// Vectors of a length that is known.
    pub(super) columns: Option<ReadColumns<T>>,
    /// Numbers of any shape.
    pub(super) array: Option<fn(&Path) -> Result<Array>>,
}

impl<T: Real> Readers<T> {
    const NONE: Self = Self { matrix: None, columns: None, array: None };

    /// Readers of files of this kind.
    pub(super) fn of(kind: FileKind) -> Self {
        match kind {
            FileKind::MatrixMarket => Self {
                matrix: Some(matrix_market::read_matrix_watched),
                columns: Some(|path, length| {
                    matrix_market::read_columns((&mut open(path)?, &short_name(path)), length)
                }),
                array: Some(|path| matrix_market::read_vector(path).map(Array::of_vector)),
            },
            FileKind::Npy => Self {
                columns: Some(|path, length| FileColumns::of_array(&npy::read(path)?, length, &short_name(path))),
                array: Some(npy::read),
                ..Self::NONE
            },
            FileKind::Zip => Self {
                matrix: Some(|path, watch| match npz::holds_arrays(path)? {
                    true => npz::read_matrix(path),
                    false => archive::of_zip(path, Wanted::Matrix, |file| matrix_market::of_archive(file, watch)),
                }),
                columns: Some(|path, length| match npz::holds_arrays(path)? {
                    true => FileColumns::of_array(&npz::read_array(path)?, length, &short_name(path)),
                    false => archive::of_zip(path, Wanted::RightHandSides, |file| {
                        matrix_market::read_columns(file, length)
                    }),
                }),
                array: Some(npz::read_array),
            },
            FileKind::Tar => Self {
                matrix: Some(|path, watch| {
                    archive::of_tar(path, Wanted::Matrix, |file| matrix_market::of_archive(file, watch))
                }),
                columns: Some(|path, length| {
                    archive::of_tar(path, Wanted::RightHandSides, |file| matrix_market::read_columns(file, length))
                }),
                array: None,
            },
            FileKind::Petsc => Self {
                matrix: Some(petsc::read_matrix),
                columns: Some(petsc::read_columns),
                array: Some(petsc::read_array),
            },
            _ => Self::NONE,
        }
    }

    /// The reader of `what` that `which` picks among those of the kind of a file. A file of no known kind is taken for a Matrix Market file.
    ///
    /// # Errors
    /// [`Error::File`](crate::Error::File); [`Error::Format`](crate::Error::Format) for a kind without such a reader, with the kinds that have one.
    pub(super) fn pick<R>(path: &Path, what: &str, which: impl Fn(Self) -> Option<R>) -> Result<R> {
        let kind = FileKind::of(path)?.unwrap_or(FileKind::MatrixMarket);
        which(Self::of(kind)).ok_or_else(|| {
            let kinds = FileKind::names(|kind| which(Self::of(kind)).is_some());
            kind.refused(path, &format!("{what} in {kinds}"))
        })
    }
}
