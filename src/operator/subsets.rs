//! An operator in subsets of its rows, for methods that take a step after each of them.

use std::sync::{Mutex, TryLockError};

use super::linear::{LinearOperator, RowSubsets, SharedOperator, Structure, check_shape, no_adjoint};
use crate::device::Device;
use crate::error::{Error, Result, same_length};
use crate::matrix::{Matrix, Storage};
use crate::number::Real;
use crate::runs::Runs;
use crate::sparse::{AsCsr, Csr};
use crate::vector::Vector;

/// An operator whose rows are dealt out to subsets in blocks of `run` rows: the first block to subset 0, the next
/// to subset 1, and so on; after the last subset comes subset 0 again. Each subset is an operator of its own.
///
/// If `run` is the rays of an angle of a scan, subset `k` of `s` has the angles `k`, `k + s`, `k + 2 s`, ...; see
/// [`System::of_subsets`](crate::imaging::System::of_subsets). [`Method::Sart`](crate::Method::Sart) takes a step after each subset. To
/// other methods it is an operator like any other.
///
/// Products are those of the subsets, one after another, and a copy of each part of the longer vector; with the adjoint, a sum for each
/// subset as well. Holds up to two vectors as long as a subset has rows, and one as long as it has columns.
///
/// ```
/// use residuum::operator::{LinearOperator, Subsets};
/// use residuum::sparse::gallery;
/// use residuum::{Device, Method, Setup, Solver, Stopping, Storage, Transposed, Vector};
///
/// let device = Device::best()?;
/// let a = gallery::random::<f64>(60, 20, 300, 1)?;
/// let storage = Storage::default().with_transposed(Transposed::Copy);
/// // Four subsets, of 15 rows each, five rows at a time.
/// let subsets = Subsets::of_matrix(&device, &a, storage, 4, 5)?;
/// let (b, mut x) = (Vector::filled(&device, 60, 1.0)?, Vector::zeros(&device, 20)?);
/// let setup = Setup::new("sart".parse()?, Stopping::after(10));
/// let report = Solver::with(subsets.shared(), setup)?.solve(&b, &mut x)?;
/// assert_eq!(report.iterations, 10);
/// # Ok::<(), residuum::Error>(())
/// ```
pub struct Subsets<T: Real> {
    parts: Vec<SharedOperator<T>>,
    rows: usize,
    run: usize,
    scratch: SubsetsScratch<T>,
}

impl<T: Real> std::fmt::Debug for Subsets<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subsets")
            .field("subsets", &self.parts.len())
            .field("run", &self.run)
            .finish_non_exhaustive()
    }
}

/// Vectors that products with all subsets are made in, for `columns` interleaved vectors.
#[derive(Debug)]
pub(crate) struct SubsetsScratch<T: Real> {
    columns: usize,
    held: Mutex<Held<T>>,
}

#[derive(Debug)]
struct Held<T: Real> {
    /// Two vectors: as long as the subsets that have a run more than others, and as long as those that have not. The second is empty if all are
    /// of one length.
    rows: [Vector<T>; 2],
    /// Result of one subset with the adjoint.
    cols: Vector<T>,
}

impl<T: Real> Held<T> {
    fn new(parts: &[SharedOperator<T>], columns: usize) -> Result<Self> {
        let (first, last) = (&parts[0], &parts[parts.len() - 1]);
        let vector = |len: usize| Vector::zeros(first.device(), len * columns);
        let rows = [vector(first.rows())?, vector(if last.rows() == first.rows() { 0 } else { last.rows() })?];
        Ok(Self { rows, cols: vector(first.cols())? })
    }
}

impl<T: Real> SubsetsScratch<T> {
    /// For subsets that are `parts`.
    pub(crate) fn new(parts: &[SharedOperator<T>], columns: usize) -> Result<Self> {
        Ok(Self { columns, held: Mutex::new(Held::new(parts, columns)?) })
    }

    /// Calls `product` with the vectors if they are free, else with some of its own. A product on the host must not wait for another: the
    /// thread that waits may be the one that does a part of the other's work.
    fn lend(&self, parts: &[SharedOperator<T>], product: impl FnOnce(&mut Held<T>) -> Result<()>) -> Result<()> {
        match self.held.try_lock() {
            Ok(mut held) => product(&mut held),
            // Each product overwrites what another, which panicked, left.
            Err(TryLockError::Poisoned(held)) => product(&mut held.into_inner()),
            Err(TryLockError::WouldBlock) => product(&mut Held::new(parts, self.columns)?),
        }
    }
}

impl<T: Real> Subsets<T> {
    /// Subset `k` of an operator with `run` rows at a time is `parts[k]`.
    ///
    /// # Errors
    /// [`Error::Option`] without subsets, and for a `run` of 0; [`Error::Shape`] unless all have the same columns, and the rows that
    /// fall to them in turn; [`Error::DeviceMismatch`]; as [`Vector::zeros`].
    pub fn new(parts: Vec<SharedOperator<T>>, run: usize) -> Result<Self> {
        let (Some(first), true, 1..=MOST_SUBSETS) = (parts.first(), run > 0, parts.len()) else {
            let reason =
                format!("{} of them with {run} rows at a time: 1 to {MOST_SUBSETS} are possible", parts.len());
            return Err(Error::Option { name: "subsets", reason });
        };
        let device = first.device().clone();
        let rows: usize = parts.iter().map(|part| part.rows()).sum();
        let runs = rows.div_ceil(run);
        for (k, part) in parts.iter().enumerate() {
            same_length("columns of a subset", first.cols(), part.cols())?;
            let falls_to_it = (runs + parts.len() - 1 - k) / parts.len() * run;
            same_length("rows of a subset", falls_to_it, part.rows())?;
            if !part.device().is_same(&device) {
                return Err(Error::DeviceMismatch { what: "a subset", expected: device.info().name.clone() });
            }
        }
        let scratch = SubsetsScratch::new(&parts, 1)?;
        Ok(Self { parts, rows, run, scratch })
    }

    /// The rows of a matrix in `count` subsets, `run` rows at a time, each stored with its transposed as `storage` says.
    ///
    /// # Errors
    /// [`Error::Option`] unless `count` is from 1 to the number of runs; [`Error::Shape`] for rows that `run` does not divide; as
    /// [`Matrix::stored`].
    pub fn of_matrix(
        device: &Device,
        a: &(impl AsCsr<T> + ?Sized),
        storage: Storage,
        count: usize,
        run: usize,
    ) -> Result<Self> {
        let a = &*a.as_csr()?;
        let runs = a.rows().checked_div(run).unwrap_or(0);
        check_count(count, runs)?;
        same_length("rows in whole runs", runs * run, a.rows())?;
        let rows_of = |k: usize| (k * run..a.rows()).step_by(count * run).flat_map(move |first| first..first + run);
        let part = |k: usize| -> Result<SharedOperator<T>> {
            let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
            for i in rows_of(k) {
                let (columns, entries) = a.row(i);
                indices.extend_from_slice(columns);
                values.extend_from_slice(entries);
                offsets.push(indices.len());
            }
            let part = Csr::new(offsets.len() - 1, a.cols(), offsets, indices, values)?;
            Ok(Matrix::stored(device, &part, storage)?.into())
        };
        Self::new((0..count).map(part).collect::<Result<_>>()?, run)
    }

    /// The subsets.
    pub fn parts(&self) -> &[SharedOperator<T>] {
        &self.parts
    }

    fn rows_in_turn(&self) -> RowSubsets<'_, T> {
        RowSubsets { parts: &self.parts, run: self.run }
    }
}

impl<T: Real> RowSubsets<'_, T> {
    fn rows(&self) -> usize {
        self.parts.iter().map(|part| part.rows()).sum()
    }

    fn cols(&self) -> usize {
        self.parts[0].cols()
    }

    /// Rows of subset `k`.
    fn rows_of(&self, k: usize) -> usize {
        self.parts[k].rows()
    }

    /// Places of the rows of subset `k`.
    pub(crate) fn runs(&self, k: usize) -> Runs {
        let (first, every) = (k * self.run, self.parts.len() * self.run);
        Runs { first, len: self.run, every, count: self.rows_of(k) / self.run }
    }

    /// Bytes of the vectors that products for `columns` interleaved vectors are made in.
    pub(crate) fn vector_bytes(&self, columns: usize) -> u64 {
        let (first, last) = (self.rows_of(0), self.rows_of(self.parts.len() - 1));
        let rows = first + if last == first { 0 } else { last };
        ((rows + self.cols()) * columns * T::PRECISION.bytes()) as u64
    }

    /// Launches of a product for `columns` interleaved vectors, copies of parts counted.
    pub(crate) fn launches_of(&self, columns: usize) -> usize {
        let launches = self.parts.iter().map(|part| 1 + part.launches(columns));
        // Sums of products with the adjoint, in the mean.
        launches.sum::<usize>() + self.parts.len() / 2
    }

    /// `y = A x` for the columns of `scratch`.
    pub(crate) fn multiply(&self, scratch: &SubsetsScratch<T>, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        let columns = scratch.columns;
        check_shape((self.rows() * columns, self.cols() * columns), x, y)?;
        scratch.lend(self.parts, |Held { rows, .. }| {
            for (k, part) in self.parts.iter().enumerate() {
                let runs = self.runs(k).times(columns);
                let of_part = &mut rows[usize::from(self.rows_of(k) != self.rows_of(0))];
                part.apply_columns(columns, x, of_part)?;
                y.memory_mut().copy_runs(runs, of_part.memory(), runs.packed())?;
            }
            Ok(())
        })
    }

    /// `y = A'x` for the columns of `scratch`.
    pub(crate) fn multiply_adjoint(
        &self,
        scratch: &SubsetsScratch<T>,
        x: &Vector<T>,
        y: &mut Vector<T>,
    ) -> Result<()> {
        let columns = scratch.columns;
        check_shape((self.cols() * columns, self.rows() * columns), x, y)?;
        scratch.lend(self.parts, |Held { rows, cols }| {
            for (k, part) in self.parts.iter().enumerate() {
                let runs = self.runs(k).times(columns);
                let of_part = &mut rows[usize::from(self.rows_of(k) != self.rows_of(0))];
                of_part.memory_mut().copy_runs(runs.packed(), x.memory(), runs)?;
                let result = if k == 0 { &mut *y } else { &mut *cols };
                part.apply_adjoint_columns(columns, of_part, result)?;
                if k > 0 {
                    y.axpby(T::from_f64(1.0), cols, T::from_f64(1.0))?;
                }
            }
            Ok(())
        })
    }

    /// Number of times that values of subsets were replaced, if all are matrices.
    pub(crate) fn version(&self) -> Option<u64> {
        self.parts.iter().map(|part| Some(part.as_matrix()?.version())).sum()
    }
}

/// Most subsets: methods name them and their vectors in 16 bits.
const MOST_SUBSETS: usize = 1 << 14;

/// Fails unless `count` subsets can share `runs` runs of rows.
pub(crate) fn check_count(count: usize, runs: usize) -> Result<()> {
    let most = runs.min(MOST_SUBSETS);
    if (1..=most).contains(&count) {
        return Ok(());
    }
    Err(Error::Option { name: "subsets", reason: format!("{count} is not between 1 and {most}") })
}

impl<T: Real> LinearOperator<T> for Subsets<T> {
    fn device(&self) -> &Device {
        self.parts[0].device()
    }
    fn rows(&self) -> usize {
        self.rows
    }
    fn cols(&self) -> usize {
        self.parts[0].cols()
    }
    fn apply(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        self.rows_in_turn().multiply(&self.scratch, x, y)
    }
    fn apply_adjoint(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        if !self.has_adjoint() {
            return Err(no_adjoint());
        }
        self.rows_in_turn().multiply_adjoint(&self.scratch, x, y)
    }
    fn has_adjoint(&self) -> bool {
        self.parts.iter().all(|part| part.has_adjoint())
    }
    fn takes_columns(&self) -> bool {
        self.parts.iter().all(|part| part.takes_columns())
    }
    // Solvers keep vectors for several columns; here they are made for each product.
    fn apply_columns(&self, columns: usize, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        if columns == 1 {
            return self.apply(x, y);
        }
        self.rows_in_turn().multiply(&SubsetsScratch::new(&self.parts, columns)?, x, y)
    }
    fn apply_adjoint_columns(&self, columns: usize, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        if columns == 1 {
            return self.apply_adjoint(x, y);
        }
        self.rows_in_turn().multiply_adjoint(&SubsetsScratch::new(&self.parts, columns)?, x, y)
    }
    fn frobenius_norm(&self) -> Option<f64> {
        self.parts.iter().try_fold(0.0, |norm, part| Some(libm::hypot(norm, (**part).frobenius_norm()?)))
    }
    fn norm_bound(&self) -> Option<f64> {
        self.parts.iter().try_fold(0.0, |norm, part| Some(libm::hypot(norm, part.norm_bound()?)))
    }
    fn bytes(&self) -> u64 {
        let held: u64 = self.parts.iter().map(|part| (**part).bytes()).sum();
        held + self.rows_in_turn().vector_bytes(1)
    }
    fn launches(&self, columns: usize) -> usize {
        self.rows_in_turn().launches_of(columns)
    }
    fn structure(&self) -> Structure<'_, T> {
        Structure::Subsets(self.rows_in_turn())
    }
}
