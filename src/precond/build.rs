//! Preconditioners made by name, and what is known of one that was made.

use std::time::Instant;

use super::Preconditioner;
use super::kind::{Made, PreconditionerKind, Source};
use super::named::with_kind;
use super::support::in_time;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::number::Real;
use crate::operator::SharedOperator;
use crate::sparse::{AsCsr, Csr, Partition};

impl Preconditioner {
    /// Makes it for the matrix `a`. Most of the memory it takes is known before: [`Preconditioner::most_bytes`].
    ///
    /// # Errors
    /// Errors of the functions that the variants name; [`Error::Memory`] before anything is made, where places of the matrix tell.
    pub fn build<T: Real>(&self, device: &Device, a: &(impl AsCsr<T> + ?Sized)) -> Result<Built<T>> {
        self.build_over(device, a, None)
    }

    /// Makes it for the matrix `a` over a partition of its rows that is known already, of those that
    /// [take one](Self::takes_partition).
    ///
    /// # Errors
    /// Errors of the functions that the variants name; [`Error::Conflict`] for a partition and a preconditioner that takes none.
    pub fn build_over<T: Real>(
        &self,
        device: &Device,
        a: &(impl AsCsr<T> + ?Sized),
        partition: Option<&Partition>,
    ) -> Result<Built<T>> {
        self.build_until(device, a, partition, None)
    }

    /// [`Preconditioner::build_over`] that ends at a time if it is not done. METIS, and work on a device, are looked at before they begin.
    ///
    /// # Errors
    /// As [`Preconditioner::build_over`]; [`Error::OutOfTime`] with the name.
    pub fn build_until<T: Real>(
        &self,
        device: &Device,
        a: &(impl AsCsr<T> + ?Sized),
        partition: Option<&Partition>,
        deadline: Option<Instant>,
    ) -> Result<Built<T>> {
        let a = &*a.as_csr()?;
        self.built(device, a, partition, deadline).map_err(|error| self.named(error))
    }

    /// Calls by its name what was not made in time.
    fn named(&self, error: Error) -> Error {
        match error {
            Error::OutOfTime { .. } => Error::OutOfTime { what: format!("the preconditioner {self}") },
            other => other,
        }
    }

    fn built<T: Real>(
        &self,
        device: &Device,
        a: &Csr<T>,
        partition: Option<&Partition>,
        deadline: Option<Instant>,
    ) -> Result<Built<T>> {
        let start = Instant::now();
        self.check_partition(partition)?;
        self.check_fits(device, a)?;
        in_time(deadline, self.name())?;
        let from = Source { device, a, partition, deadline, empty_columns: &[] };
        let made = with_kind!(*self, |kind| kind.build(from))?;
        Ok(Built::new(self, made, a, start))
    }

    /// Makes one for least squares with `a`, which need not be square: an operator `M` over the unknowns such that the columns of `A M`
    /// are nearly orthogonal, for [`Setup::preconditioner`](crate::Setup::preconditioner) of CGLS, LSQR, LSMR and CGNR. `jacobi` divides
    /// the columns by their norms; `sainv`, `ainv`, `ldl-ainv`, `bainv` (over a partition of the columns), `fsai`, `ic0` and `ict` give the root of an
    /// approximate inverse of [`A'A`](Csr::normal_matrix); `ilu0`, `ilut` and `spai` give an approximate inverse of `A`, which must be square.
    /// The unknown of a column that is 0 stays what it was, 0 unless the start guess is another ([`Built::empty_columns`]); `ilu0`, `ilut` and `spai` refuse such columns.
    ///
    /// # Errors
    /// [`Error::Conflict`] for one that has no root, and as [`Preconditioner::build_over`]; errors of the functions that the variants name, and of [`Csr::normal_matrix`].
    pub fn build_for_least_squares<T: Real>(
        &self,
        device: &Device,
        a: &(impl AsCsr<T> + ?Sized),
        partition: Option<&Partition>,
    ) -> Result<Built<T>> {
        self.build_for_least_squares_until(device, a, partition, None)
    }

    /// [`Preconditioner::build_for_least_squares`] that ends at a time if it is not done. The product `A'A` is looked at before it begins.
    ///
    /// # Errors
    /// As [`Preconditioner::build_for_least_squares`]; [`Error::OutOfTime`] with the name.
    pub fn build_for_least_squares_until<T: Real>(
        &self,
        device: &Device,
        a: &(impl AsCsr<T> + ?Sized),
        partition: Option<&Partition>,
        deadline: Option<Instant>,
    ) -> Result<Built<T>> {
        let a = &*a.as_csr()?;
        let made = self.built_for_least_squares(device, a, partition, deadline);
        made.map_err(|error| self.named(error))
    }

    fn built_for_least_squares<T: Real>(
        &self,
        device: &Device,
        a: &Csr<T>,
        partition: Option<&Partition>,
        deadline: Option<Instant>,
    ) -> Result<Built<T>> {
        let start = Instant::now();
        self.check_partition(partition)?;
        in_time(deadline, self.name())?;
        if !self.is_for_least_squares() {
            return Err(self.no_root());
        }
        let empty_columns = empty_columns(a);
        let from = Source { device, a, partition, deadline, empty_columns: &empty_columns };
        let made = with_kind!(*self, |kind| kind.build_for_least_squares(from))?;
        let mut built = Built::new(self, made, a, start);
        built.why += &words_of_empty(&empty_columns);
        built.empty_columns = empty_columns;
        Ok(built)
    }

    fn no_root(&self) -> Error {
        let names = Self::names_of(Self::is_for_least_squares);
        Error::Conflict {
            name: "preconditioner",
            reason: format!("{self} is not for least squares: take one of {names}"),
        }
    }

    /// Fails on a partition for a preconditioner that takes none, or another one.
    fn check_partition(&self, partition: Option<&Partition>) -> Result<()> {
        let Some(given) = partition else { return Ok(()) };
        if self.takes_partition() {
            return with_kind!(*self, |kind| kind.check_partition(given));
        }
        let reason = format!("{self} takes none: take one of {}", Self::names_of(Self::takes_partition));
        Err(Error::Conflict { name: "partition", reason })
    }
}

/// Columns that hold nothing but 0.
fn empty_columns<T: Real>(a: &Csr<T>) -> Vec<usize> {
    let mut holds = vec![false; a.cols()];
    let entries = a.indices().iter().zip(a.values());
    entries.filter(|(_, v)| **v != T::default()).for_each(|(j, _)| holds[*j as usize] = true);
    (0..a.cols()).filter(|j| !holds[*j]).collect()
}

/// Words about columns that hold nothing.
fn words_of_empty(columns: &[usize]) -> String {
    match columns {
        [] => String::new(),
        [only] => format!(
            "; column {only} of the matrix (from 0) is empty: nothing determines its unknown, which stays 0"
        ),
        [first, ..] => {
            format!(
                "; {} columns of the matrix are empty, the first is {first} (from 0): nothing determines their unknowns, which stay 0",
                columns.len()
            )
        }
    }
}

/// A preconditioner that was made, and what is known of it.
#[non_exhaustive]
pub struct Built<T: Real> {
    /// The preconditioner.
    pub operator: SharedOperator<T>,
    /// Entries that it holds: of both triangles of factors and sweeps, of one of the two factors of an approximate inverse.
    pub entries: usize,
    /// Shift of the diagonal, of incomplete factors.
    pub shift: Option<f64>,
    /// Partition that it was made over, if it is one of those.
    pub partition: Option<Partition>,
    /// Seconds that it took to make it, and its partition.
    pub seconds: f64,
    /// Columns of the matrix that are 0, of one for least squares: their unknowns stay 0.
    pub empty_columns: Vec<usize>,
    /// All this in words.
    pub why: String,
}

impl<T: Real> Built<T> {
    fn new(
        which: &Preconditioner,
        Made { operator, entries, shift, partition }: Made<T>,
        a: &Csr<T>,
        start: Instant,
    ) -> Self {
        let seconds = start.elapsed().as_secs_f64();
        let launches = operator.launches(1);
        let shifted = shift.map_or(String::new(), |shift| format!("shift {shift}, "));
        let fill = entries as f64 / a.nnz().max(1) as f64;
        let why = format!(
            "{which}: {shifted}{entries} entries, {fill:.2} of the matrix, {launches} launches, made in {seconds:.2} s"
        );
        Self { operator, entries, shift, partition, seconds, empty_columns: Vec::new(), why }
    }
}

impl<T: Real> From<Built<T>> for SharedOperator<T> {
    fn from(built: Built<T>) -> Self {
        built.operator
    }
}
