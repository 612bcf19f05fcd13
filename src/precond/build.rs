//! Preconditioners made by name, and what is known of one that was made.

use std::time::Instant;

use super::support::in_time;
use super::{
    Ainv, AinvOptions, Bainv, BainvOptions, BlockJacobi, Factorisation, Fill, Fsai, FsaiOptions, Incomplete,
    IncompleteOptions, NonsymmetricAinv, Polynomial, PolynomialOptions, Preconditioner, Spai, SpaiOptions, Sweep,
};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::number::Real;
use crate::operator::{Diagonal, SharedOperator};
use crate::sparse::{AsCsr, Csr, Partition};

impl Preconditioner {
    /// Makes it for the matrix `a`. Most of the memory it takes is known before: [`Preconditioner::most_bytes`].
    ///
    /// # Errors
    /// Errors of the functions that the variants name; [`Error::Memory`] before anything is made, where places of the matrix tell.
    pub fn build<T: Real>(&self, device: &Device, a: &(impl AsCsr<T> + ?Sized)) -> Result<Built<T>> {
        self.build_over(device, a, None)
    }

    /// Makes it for the matrix `a` over a partition of its rows that is known already, of those that take one: `bainv` and
    /// `block-jacobi`.
    ///
    /// # Errors
    /// Errors of the functions that the variants name; [`Error::Option`] for a partition and a preconditioner that takes none.
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
        let mut over = None;
        let (operator, entries, shift): Made<T> = match *self {
            Self::Jacobi => (Diagonal::inverse_of(device, a)?.into(), a.rows(), None),
            Self::BlockJacobi { block, by_graph } => {
                let blocks = if block > 0 && (by_graph || partition.is_some()) {
                    let parts = a.rows().div_ceil(block).max(1);
                    BlockJacobi::over(device, a, over.insert(partition_for(a, Some(parts), partition)?))?
                } else {
                    BlockJacobi::new(device, a, block)?
                };
                let entries = blocks.entries();
                (blocks.into(), entries, None)
            }
            Self::GaussSeidel { ordering } => Self::swept(a, Sweep::gauss_seidel(device, a, ordering)?),
            Self::Sor { omega, ordering } => Self::swept(a, Sweep::sor(device, a, omega, ordering)?),
            Self::Ssor { omega, ordering } => Self::swept(a, Sweep::ssor(device, a, omega, ordering)?),
            Self::Ic0 { .. }
            | Self::Ilu0 { .. }
            | Self::Ic0Sweeps { .. }
            | Self::Ilu0Sweeps { .. }
            | Self::Ict { .. }
            | Self::Ilut { .. } => factored(Incomplete::new(device, a, self.factor_options(deadline))?),
            Self::NonsymmetricAinv { .. } => {
                let inverse = NonsymmetricAinv::new(device, a, self.dropping(deadline))?;
                let entries = inverse.entries();
                (inverse.into(), entries, None)
            }
            Self::Spai { power, single } => spai(device, a, [single, false], (power, deadline))?,
            Self::Chebyshev { degree, ratio } => {
                let polynomial = Polynomial::new(device, a, PolynomialOptions { degree, ratio })?;
                (polynomial.into(), a.nnz(), None)
            }
            Self::Sainv { .. }
            | Self::Ainv { .. }
            | Self::LdlAinv { .. }
            | Self::Bainv { .. }
            | Self::Fsai { .. }
            | Self::AdaptiveFsai { .. } => {
                let Rooted { inverse, entries, .. } = self.rooted(device, a, (partition, deadline), &mut over)?;
                (inverse, entries, None)
            }
        };
        Ok(Built::new(self, (operator, entries, shift, over), a, start))
    }

    /// Tells if least-squares methods can take it: [`Preconditioner::build_for_least_squares`].
    pub fn is_for_least_squares(&self) -> bool {
        matches!(
            self,
            Self::Jacobi
                | Self::Sainv { .. }
                | Self::Ainv { .. }
                | Self::LdlAinv { .. }
                | Self::Bainv { .. }
                | Self::Fsai { .. }
                | Self::AdaptiveFsai { .. }
                | Self::Ic0 { .. }
                | Self::Ict { .. }
                | Self::Ilu0 { .. }
                | Self::Ilut { .. }
                | Self::Spai { .. }
        )
    }

    /// Tells if it can be made for least squares of a matrix that is not square, of those that [can be made](Self::is_for_least_squares) for
    /// least squares.
    pub fn takes_rectangles(&self) -> bool {
        self.is_for_least_squares() && !matches!(self, Self::Ilu0 { .. } | Self::Ilut { .. } | Self::Spai { .. })
    }

    /// Makes one for least squares with `a`, which need not be square: an operator `M` over the unknowns such that the columns of `A M`
    /// are nearly orthogonal, for [`Setup::preconditioner`](crate::Setup::preconditioner) of CGLS, LSQR, LSMR and CGNR. `jacobi` divides
    /// the columns by their norms; `sainv`, `ainv`, `ldl-ainv`, `bainv` (over a partition of the columns), `fsai`, `ic0` and `ict` give the root of an
    /// approximate inverse of [`A'A`](Csr::normal_matrix); `ilu0`, `ilut` and `spai` give an approximate inverse of `A`, which must be square.
    /// The unknown of a column that is 0 stays what it was, 0 unless the start guess is another ([`Built::empty_columns`]); `ilu0`, `ilut` and `spai` refuse such columns.
    ///
    /// # Errors
    /// [`Error::Option`] for one that has no root, and as [`Preconditioner::build_over`]; errors of the functions that the variants name, and of [`Csr::normal_matrix`].
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
        let empty = if self.is_for_least_squares() { empty_columns(a) } else { Vec::new() };
        let normal = || normal_matrix(a, &empty);
        let mut over = None;
        let (operator, entries, shift): Made<T> = match *self {
            Self::Jacobi => (Diagonal::inverse_of_norms(device, a)?.into(), a.cols(), None),
            Self::Spai { power, single } => spai(device, a, [single, true], (power, deadline))?,
            Self::Ilu0 { .. } | Self::Ilut { .. } => {
                factored(Incomplete::new(device, a, self.factor_options(deadline).with_transposed(true))?)
            }
            Self::Ic0 { .. } | Self::Ict { .. } => {
                let (root, entries, shift) = Incomplete::root(device, &normal()?, self.factor_options(deadline))?;
                (root, entries, Some(shift))
            }
            _ if self.is_for_least_squares() => {
                let Rooted { root, entries, .. } =
                    self.rooted(device, &normal()?, (partition, deadline), &mut over)?;
                (root, entries, None)
            }
            _ => return Err(self.no_root()),
        };
        let mut built = Built::new(self, (operator, entries, shift, over), a, start);
        built.why += &words_of_empty(&empty);
        built.empty_columns = empty;
        Ok(built)
    }

    /// The approximate inverse of the symmetric positive definite matrix `a` with its root, of those that have one.
    fn rooted<T: Real>(
        &self,
        device: &Device,
        a: &Csr<T>,
        (partition, deadline): (Option<&Partition>, Option<Instant>),
        over: &mut Option<Partition>,
    ) -> Result<Rooted<T>> {
        match *self {
            Self::Sainv { .. } | Self::Ainv { .. } | Self::LdlAinv { .. } => {
                let inverse = Ainv::new(device, a, self.dropping(deadline))?;
                Ok(Rooted { root: inverse.root(), entries: inverse.entries(), inverse: inverse.into() })
            }
            Self::Bainv { parts, single } => {
                let options = BainvOptions::default().with_single(single).with_deadline(deadline);
                let inverse = Bainv::new(device, a, over.insert(partition_for(a, parts, partition)?), options)?;
                Ok(Rooted { root: inverse.root(), entries: inverse.entries(), inverse: inverse.into() })
            }
            Self::Fsai { .. } | Self::AdaptiveFsai { .. } => {
                let inverse = Fsai::new(device, a, self.fsai_options().with_deadline(deadline))?;
                Ok(Rooted { root: inverse.root(), entries: inverse.entries(), inverse: inverse.into() })
            }
            _ => Err(self.no_root()),
        }
    }

    fn no_root(&self) -> Error {
        let names = Self::names_of(Self::is_for_least_squares);
        Error::Option {
            name: "preconditioner",
            reason: format!("{self} is not for least squares: take one of {names}"),
        }
    }

    /// Fails on a partition for a preconditioner that takes none, or with another number of parts.
    fn check_partition(&self, partition: Option<&Partition>) -> Result<()> {
        let Some(given) = partition else { return Ok(()) };
        let reason = match *self {
            Self::Bainv { parts: Some(parts), .. } if parts != given.parts() => {
                format!("{self}, but a partition in {} parts", given.parts())
            }
            Self::Bainv { .. } | Self::BlockJacobi { .. } => return Ok(()),
            _ => format!("{self} takes none; bainv and block-jacobi do"),
        };
        Err(Error::Option { name: "partition", reason })
    }

    fn swept<T: Real>(a: &Csr<T>, sweep: Sweep<T>) -> Made<T> {
        (sweep.into(), a.nnz(), None)
    }

    /// Options of incomplete factors.
    fn factor_options(&self, deadline: Option<Instant>) -> IncompleteOptions {
        let kind = if self.needs_definite() { Factorisation::Cholesky } else { Factorisation::Lu };
        let exact = IncompleteOptions::new(kind).with_deadline(deadline);
        match *self {
            Self::Ic0 { shift } | Self::Ilu0 { shift } => exact.with_shift(shift),
            Self::Ic0Sweeps { factors, solves } | Self::Ilu0Sweeps { factors, solves } => {
                exact.with_fill(Fill::Sweeps(factors)).with_solve_sweeps(Some(solves).filter(|solves| *solves > 0))
            }
            Self::Ict { most, drop } | Self::Ilut { most, drop } => exact.with_fill(Fill::Threshold { most, drop }),
            _ => exact,
        }
    }

    /// Options of FSAI.
    fn fsai_options(&self) -> FsaiOptions {
        match *self {
            Self::Fsai { power, single } => FsaiOptions::power(power).with_single(single),
            Self::AdaptiveFsai { places, single } => FsaiOptions::adaptive(places).with_single(single),
            _ => FsaiOptions::default(),
        }
    }

    /// Options of AINV.
    fn dropping(&self, deadline: Option<Instant>) -> AinvOptions {
        let options = match *self {
            Self::Sainv { drop, places, single } => {
                AinvOptions::sainv(drop).with_places(places).with_single(single)
            }
            Self::LdlAinv { drop, places, single } => {
                AinvOptions::factored(drop).with_places(places).with_single(single)
            }
            Self::Ainv { drop, places, single } | Self::NonsymmetricAinv { drop, places, single } => {
                AinvOptions::ainv(drop).with_places(places).with_single(single)
            }
            _ => AinvOptions::default(),
        };
        options.with_deadline(deadline)
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

/// `A'A`, with 1 on the diagonal for columns that are 0. No method of least squares moves their unknowns.
fn normal_matrix<T: Real>(a: &Csr<T>, empty: &[usize]) -> Result<Csr<T>> {
    let normal = a.normal_matrix()?;
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

/// An operator, its entries, and its shift if it is one of incomplete factors.
type Made<T> = (SharedOperator<T>, usize, Option<f64>);

fn factored<T: Real>(factors: Incomplete<T>) -> Made<T> {
    let (entries, shift) = (factors.entries(), factors.shift());
    (factors.into(), entries, Some(shift))
}

fn spai<T: Real>(
    device: &Device,
    a: &Csr<T>,
    [single, transposed]: [bool; 2],
    (power, deadline): (usize, Option<Instant>),
) -> Result<Made<T>> {
    let options = SpaiOptions::default().with_power(power).with_single(single).with_transposed(transposed);
    let options = options.with_deadline(deadline);
    let inverse = Spai::new(device, a, options)?;
    let entries = inverse.entries();
    Ok((inverse.into(), entries, None))
}

/// An approximate inverse `W W'`, and `W`.
struct Rooted<T: Real> {
    inverse: SharedOperator<T>,
    root: SharedOperator<T>,
    entries: usize,
}

/// Rows of a part where no number of parts is asked for.
const ROWS_OF_A_PART: usize = 100;

/// The partition that is given, or one in `parts`.
fn partition_for<T: Real>(a: &Csr<T>, parts: Option<usize>, given: Option<&Partition>) -> Result<Partition> {
    match given {
        Some(given) => Ok(given.clone()),
        None => parts_of(a, parts.unwrap_or(a.rows().div_ceil(ROWS_OF_A_PART).max(1))),
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
        (operator, entries, shift, partition): (SharedOperator<T>, usize, Option<f64>, Option<Partition>),
        a: &Csr<T>,
        start: Instant,
    ) -> Self {
        let seconds = start.elapsed().as_secs_f64();
        let launches = operator.launches();
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
