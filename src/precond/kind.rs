//! Kinds of preconditioners: each is its options, with its name, its facts and the way it is made.

use std::str::FromStr;
use std::time::Instant;

use crate::device::Device;
#[cfg(any(doc, not(feature = "metis")))]
use crate::error::Error;
use crate::error::Result;
use crate::number::Real;
use crate::operator::SharedOperator;
use crate::sparse::{Csr, Partition};

/// A kind of preconditioner. Its options implement it; [`Preconditioner`](super::Preconditioner) has a variant for each.
pub(crate) trait PreconditionerKind: Copy {
    /// Name without parameters.
    fn name(&self) -> &'static str;

    /// Parameters as they stand behind the name: `3:5`. Empty if there are none.
    fn parameters(&self) -> String {
        String::new()
    }

    /// Words for what stands behind the name, and an example; none if it takes no parameters.
    fn grammar(&self) -> Option<[&'static str; 2]> {
        None
    }

    /// A copy with parameters, `None` if they do not follow the grammar.
    fn with_parameters(self, _given: &Parameters<'_>) -> Option<Self> {
        None
    }

    /// Symmetry that it asks of a matrix, and keeps.
    fn symmetry(&self) -> Symmetry;

    /// Matrices of least squares that it can be made for.
    fn least_squares(&self) -> LeastSquares {
        LeastSquares::None
    }

    /// A copy whose factors are rounded to `f32`, if it has stored factors.
    fn in_stored_f32(self) -> Option<Self> {
        None
    }

    /// Tells if it takes a partition of the rows.
    fn takes_partition(&self) -> bool {
        false
    }

    /// Fails on a partition that contradicts the options.
    ///
    /// # Errors
    /// [`Error::Option`] named `partition`.
    fn check_partition(&self, _given: &Partition) -> Result<()> {
        Ok(())
    }

    /// Most entries for the square matrix `a`, if they are known before it is made.
    fn most_entries<T: Real>(&self, a: &Csr<T>) -> Option<usize>;

    /// Tells if it is sure to hold [`most_entries`](Self::most_entries): they are the places of the matrix, not a limit.
    fn is_sure(&self) -> bool {
        true
    }

    /// Most bytes on a device with `entries` of them, for a matrix with so many rows.
    fn bytes<T: Real>(&self, entries: usize, rows: usize) -> u64 {
        stored_bytes::<T>([entries, rows], 2, 1)
    }

    /// Makes it for a square matrix.
    ///
    /// # Errors
    /// Errors of the preconditioner.
    fn build<T: Real>(&self, from: Source<'_, T>) -> Result<Made<T>>;

    /// Makes it for least squares, of those that [can be](Self::least_squares).
    ///
    /// # Errors
    /// Errors of the preconditioner and of [`Source::normal_matrix`].
    fn build_for_least_squares<T: Real>(&self, from: Source<'_, T>) -> Result<Made<T>> {
        self.build(from)
    }
}

/// Symmetry of matrices and their preconditioners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Symmetry {
    /// For symmetric positive definite matrices alone; it is so itself.
    Definite,
    /// For any matrix; symmetric if the matrix is.
    Kept,
    /// For any matrix; not symmetric.
    Lost,
}

/// Matrices of least squares that a preconditioner can be made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeastSquares {
    None,
    /// An approximate inverse of `A`, or of its transposed.
    Square,
    /// A root of an approximate inverse of `A'A`.
    Any,
}

/// The matrix that a preconditioner is made for, and what is given beside it.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a, T> {
    pub(crate) device: &'a Device,
    pub(crate) a: &'a Csr<T>,
    pub(crate) partition: Option<&'a Partition>,
    /// Time at which the set-up ends with [`Error::OutOfTime`] if it is not done.
    pub(crate) deadline: Option<Instant>,
    /// Columns that are 0, of a matrix of least squares.
    pub(crate) empty_columns: &'a [usize],
}

impl<T: Real> Source<'_, T> {
    /// The earlier of the deadline of the set-up and one that options have.
    pub(crate) fn until(&self, own: Option<Instant>) -> Option<Instant> {
        [self.deadline, own].into_iter().flatten().min()
    }

    /// `A'A`, with 1 on the diagonal for columns that are 0. No method of least squares moves their unknowns.
    ///
    /// # Errors
    /// As [`Csr::normal_matrix`].
    pub(crate) fn normal_matrix(&self) -> Result<Csr<T>> {
        let (normal, empty) = (self.a.normal_matrix()?, self.empty_columns);
        if empty.is_empty() {
            return Ok(normal);
        }
        Csr::from_rows(normal.rows(), normal.cols(), |j, row| {
            if empty.binary_search(&j).is_ok() {
                row.push((j as u32, T::from_f64(1.0)));
            } else {
                let (columns, values) = normal.row(j);
                // Zeros that stand in such a column have places too.
                let stays = |(k, _): &(u32, T)| empty.binary_search(&(*k as usize)).is_err();
                row.extend(columns.iter().copied().zip(values.iter().copied()).filter(stays));
            }
        })
    }

    /// The partition that is given, or one by METIS in `parts`.
    ///
    /// # Errors
    /// As [`Partition::metis`]; [`Error::Option`] if a partition is needed and this build has no METIS.
    pub(crate) fn partition_in(&self, parts: usize) -> Result<Partition> {
        match self.partition {
            Some(given) => Ok(given.clone()),
            None => parts_of(self.a, parts),
        }
    }
}

/// Parts of nearly equal size with few entries between them.
#[cfg(feature = "metis")]
fn parts_of<T: Real>(a: &Csr<T>, parts: usize) -> Result<Partition> {
    Partition::metis(a, parts)
}

#[cfg(not(feature = "metis"))]
fn parts_of<T: Real>(_: &Csr<T>, _: usize) -> Result<Partition> {
    let reason = "this build has no METIS (feature metis), and no partition was given".into();
    Err(Error::Option { name: "partition", reason })
}

/// A preconditioner that was made.
pub(crate) struct Made<T: Real> {
    pub(crate) operator: SharedOperator<T>,
    pub(crate) entries: usize,
    /// Shift of the diagonal, of incomplete factors.
    pub(crate) shift: Option<f64>,
    /// Partition that it was made over.
    pub(crate) partition: Option<Partition>,
}

impl<T: Real> Made<T> {
    pub(crate) fn new(operator: impl Into<SharedOperator<T>>, entries: usize) -> Self {
        Self { operator: operator.into(), entries, shift: None, partition: None }
    }
}

/// Parameters behind a name: one, or two with a colon between them.
pub(crate) struct Parameters<'t> {
    text: &'t str,
    first: &'t str,
    second: Option<&'t str>,
}

impl<'t> Parameters<'t> {
    pub(crate) fn of(text: &'t str) -> Self {
        let (first, second) = text.split_once(':').map_or((text, None), |(first, second)| (first, Some(second)));
        Self { text, first, second }
    }

    /// The only parameter.
    pub(crate) fn only<V: FromStr>(&self) -> Option<V> {
        self.text.parse().ok()
    }

    /// The first of two parameters.
    pub(crate) fn first<V: FromStr>(&self) -> Option<V> {
        self.first.parse().ok()
    }

    /// The second of two parameters; `None` inside if it is missing.
    pub(crate) fn second<V: FromStr>(&self) -> Option<Option<V>> {
        self.second.map(str::parse).transpose().ok()
    }

    /// The second of two parameters as it stands.
    pub(crate) fn second_word(&self) -> Option<&'t str> {
        self.second
    }
}

/// The number, if it is finite.
pub(crate) fn finite(number: f64) -> Option<f64> {
    Some(number).filter(|number| number.is_finite())
}

/// Places of a stored format for each entry: those of slices are padded up to this.
const PADDING: f64 = 1.1;
/// Bytes for each row beside its entries: offsets, order of the rows, lists of long ones.
pub(crate) const BYTES_OF_ROW: usize = 24;

/// Bytes of stored matrices with so many entries and rows, and of vectors.
pub(crate) fn stored_bytes<T: Real>([entries, rows]: [usize; 2], copies: usize, vectors: usize) -> u64 {
    let value = T::PRECISION.bytes();
    let per_entry = PADDING * (copies * (value + 4)) as f64;
    (per_entry * entries as f64) as u64 + (rows * (copies * BYTES_OF_ROW + vectors * value)) as u64
}
