//! Preconditioners by name, with their parameters, and what is known of one that was made.

use std::fmt::{Display, Formatter, Result as FmtResult};
use std::str::FromStr;
use std::time::Instant;

use super::{
    Ainv, AinvOptions, Bainv, BlockJacobi, Factorisation, Fill, Fsai, Incomplete, IncompleteOptions, RowOrdering,
    Sweep,
};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::number::Real;
use crate::operator::{Diagonal, SharedOperator};
use crate::sparse::{Csr, Partition};

/// A preconditioner and its parameters.
///
/// ```
/// use residuum::precond::Preconditioner;
/// use residuum::{Device, Format, Matrix, Method, Setup, Solver, Stopping, Vector, sparse::gallery};
///
/// let device = Device::best()?;
/// let a = gallery::poisson_2d::<f64>(32, 0.0)?;
/// let matrix = Matrix::new(&device, &a, Format::Auto)?;
/// let ssor: Preconditioner = "ssor".parse()?;
/// let setup = Setup::new(Method::Cg, Stopping::for_precision::<f64>()).with_preconditioner(ssor.build(&device, &a)?);
/// let b = Vector::filled(&device, a.rows(), 1.0)?;
/// let mut x = Vector::zeros(&device, a.rows())?;
/// assert!(Solver::with(&matrix, setup)?.solve(&b, &mut x)?.converged());
/// # Ok::<(), residuum::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Preconditioner {
    /// The inverse of the diagonal: [`Diagonal::inverse_of`].
    Jacobi,
    /// The inverses of blocks along the diagonal: [`BlockJacobi::new`]. By name `block-jacobi`, of 8 rows, or
    /// `block-jacobi=3`.
    BlockJacobi {
        /// Rows of a block, 1 to 32.
        block: usize,
    },
    /// A sweep over the rows: [`Sweep::gauss_seidel`].
    GaussSeidel {
        /// Order of the rows.
        ordering: RowOrdering,
    },
    /// A sweep with relaxation: [`Sweep::sor`].
    Sor {
        /// Relaxation factor, between 0 and 2.
        omega: f64,
        /// Order of the rows.
        ordering: RowOrdering,
    },
    /// A sweep forwards and one back, symmetric, for CG: [`Sweep::ssor`].
    Ssor {
        /// Relaxation factor, between 0 and 2.
        omega: f64,
        /// Order of the rows.
        ordering: RowOrdering,
    },
    /// Incomplete Cholesky factors in the places of the matrix: [`Incomplete::new`]. By name `ic0`, or `ic0=0.01` with a shift.
    Ic0 {
        /// Share of the diagonal that is added to it, `None` to search for one.
        shift: Option<f64>,
    },
    /// Incomplete LU factors in the places of the matrix: [`Incomplete::new`]. By name `ilu0`, or `ilu0=0.01` with a shift.
    Ilu0 {
        /// Share of the largest entry of a row that is added to its diagonal entry, `None` to search for one.
        shift: Option<f64>,
    },
    /// Incomplete Cholesky factors in the places of the matrix by sweeps, solved with by sweeps: [`Incomplete::new`]. By name `ic0-sweeps`,
    /// or `ic0-sweeps=3:5`, the sweeps over the factors and those of a solve.
    Ic0Sweeps {
        /// Sweeps over the factors.
        factors: usize,
        /// Jacobi sweeps of a solve with a factor; 0 solves exactly, level by level.
        solves: usize,
    },
    /// Incomplete LU factors in the places of the matrix by sweeps, solved with by sweeps, as `ilu0-sweeps=3:5`.
    Ilu0Sweeps {
        /// Sweeps over the factors.
        factors: usize,
        /// Jacobi sweeps of a solve with a factor; 0 solves exactly, level by level.
        solves: usize,
    },
    /// Incomplete Cholesky factors with a threshold: [`Fill::Threshold`]. By name `ict`, or `ict=20:1e-3`, entries of a row and threshold.
    Ict {
        /// Most entries of a row of the factor, off the diagonal.
        most: usize,
        /// Threshold.
        drop: f64,
    },
    /// Incomplete LU factors with a threshold: [`Fill::Threshold`]. By name `ilut`, or `ilut=20:1e-3`, entries of a row and threshold.
    Ilut {
        /// Most entries of a row of either factor, off the diagonal.
        most: usize,
        /// Threshold.
        drop: f64,
    },
    /// An approximate inverse in factors, stabilised, for symmetric positive definite matrices: [`Ainv::new`]. By name `sainv`, which
    /// drops entries below 0.1, or `sainv=0.01`.
    Sainv {
        /// Entries below it are dropped.
        drop: f64,
    },
    /// AINV: without stabilisation, less work, and pivots may fail.
    Ainv {
        /// Entries below it are dropped.
        drop: f64,
    },
    /// An approximate inverse over a partition by METIS, for symmetric positive definite matrices: [`Bainv::new`]. By name `bainv`, with
    /// parts of about 100 rows, or `bainv=29` with 29 parts. It needs the feature `metis`, or a partition: [`Preconditioner::build_over`].
    Bainv {
        /// Number of parts, `None` for one that makes parts of about 100 rows.
        parts: Option<usize>,
    },
    /// A factorised sparse approximate inverse, for symmetric positive definite matrices: [`Fsai::new`]. By name `fsai`, or `fsai=2`
    /// in the places of the square of the matrix.
    Fsai {
        /// Power of the matrix that has the places, 1 to 4.
        power: usize,
    },
}

impl Preconditioner {
    /// Every preconditioner, with neutral parameters: blocks of 8, relaxation factor 1, rows by colours, entries from 0.1 on,
    /// places of the matrix itself.
    pub const ALL: &'static [Self] = &[
        Self::Jacobi,
        Self::BlockJacobi { block: 8 },
        Self::GaussSeidel { ordering: RowOrdering::Colours },
        Self::Sor { omega: 1.0, ordering: RowOrdering::Colours },
        Self::Ssor { omega: 1.0, ordering: RowOrdering::Colours },
        Self::Ic0 { shift: None },
        Self::Ilu0 { shift: None },
        Self::Ic0Sweeps { factors: 3, solves: SOLVE_SWEEPS },
        Self::Ilu0Sweeps { factors: 3, solves: SOLVE_SWEEPS },
        Self::Ict { most: 20, drop: 1e-3 },
        Self::Ilut { most: 20, drop: 1e-3 },
        Self::Sainv { drop: 0.1 },
        Self::Ainv { drop: 0.1 },
        #[cfg(feature = "metis")]
        Self::Bainv { parts: None },
        Self::Fsai { power: 1 },
    ];

    /// Name, as [`Preconditioner::from_str`] reads it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Jacobi => "jacobi",
            Self::BlockJacobi { .. } => "block-jacobi",
            Self::GaussSeidel { .. } => "gauss-seidel",
            Self::Sor { .. } => "sor",
            Self::Ssor { .. } => "ssor",
            Self::Ic0 { .. } => "ic0",
            Self::Ilu0 { .. } => "ilu0",
            Self::Ic0Sweeps { .. } => "ic0-sweeps",
            Self::Ilu0Sweeps { .. } => "ilu0-sweeps",
            Self::Ict { .. } => "ict",
            Self::Ilut { .. } => "ilut",
            Self::Sainv { .. } => "sainv",
            Self::Ainv { .. } => "ainv",
            Self::Bainv { .. } => "bainv",
            Self::Fsai { .. } => "fsai",
        }
    }

    /// Tells if it is for symmetric positive definite matrices alone.
    pub fn needs_definite(&self) -> bool {
        matches!(
            self,
            Self::Ic0 { .. }
                | Self::Ic0Sweeps { .. }
                | Self::Ict { .. }
                | Self::Sainv { .. }
                | Self::Ainv { .. }
                | Self::Bainv { .. }
                | Self::Fsai { .. }
        )
    }

    /// A copy with the parameter that stands behind the name.
    fn with(self, text: &str) -> Result<Self> {
        let bad = |wanted: &str| Error::Option {
            name: "preconditioner",
            reason: format!("{}={text}: {wanted}", self.name()),
        };
        let number = || {
            let found = text.parse::<f64>().ok().filter(|number| number.is_finite());
            found.ok_or_else(|| bad(&format!("a number belongs behind it, as in {}=0.01", self.name())))
        };
        // Two parameters, the second of which may be missing.
        let (first, second) = text.split_once(':').map_or((text, None), |(first, second)| (first, Some(second)));
        let sweeps = |solves: usize| {
            let wanted = format!("numbers of sweeps belong behind it, as in {}=3:5", self.name());
            let factors = first.parse().map_err(|_| bad(&wanted))?;
            let solves = second.map_or(Ok(solves), str::parse).map_err(|_| bad(&wanted))?;
            Ok([factors, solves])
        };
        let threshold = |drop: f64| {
            let wanted =
                format!("entries of a row and a threshold belong behind it, as in {}=20:1e-3", self.name());
            let most = first.parse::<usize>().map_err(|_| bad(&wanted))?;
            let drop = second.map_or(Ok(drop), str::parse).map_err(|_| bad(&wanted))?;
            Ok((most, drop))
        };
        match self {
            Self::Ic0Sweeps { solves, .. } => {
                let [factors, solves] = sweeps(solves)?;
                Ok(Self::Ic0Sweeps { factors, solves })
            }
            Self::Ilu0Sweeps { solves, .. } => {
                let [factors, solves] = sweeps(solves)?;
                Ok(Self::Ilu0Sweeps { factors, solves })
            }
            Self::Ict { drop, .. } => {
                let (most, drop) = threshold(drop)?;
                Ok(Self::Ict { most, drop })
            }
            Self::Ilut { drop, .. } => {
                let (most, drop) = threshold(drop)?;
                Ok(Self::Ilut { most, drop })
            }
            Self::BlockJacobi { .. } => {
                let block =
                    text.parse().map_err(|_| bad("a number of rows belongs behind it, as in block-jacobi=3"))?;
                Ok(Self::BlockJacobi { block })
            }
            Self::Ic0 { .. } => Ok(Self::Ic0 { shift: Some(number()?) }),
            Self::Ilu0 { .. } => Ok(Self::Ilu0 { shift: Some(number()?) }),
            Self::Sainv { .. } => Ok(Self::Sainv { drop: number()? }),
            Self::Ainv { .. } => Ok(Self::Ainv { drop: number()? }),
            Self::Bainv { .. } => {
                let parts = text.parse().map_err(|_| bad("a number of parts belongs behind it, as in bainv=29"))?;
                Ok(Self::Bainv { parts: Some(parts) })
            }
            Self::Fsai { .. } => {
                let power =
                    text.parse().map_err(|_| bad("a power of the matrix belongs behind it, as in fsai=2"))?;
                Ok(Self::Fsai { power })
            }
            _ => Err(bad("it takes no parameter")),
        }
    }

    /// Makes it for the matrix `a`.
    ///
    /// # Errors
    /// Errors of the functions that the variants name.
    pub fn build<T: Real>(&self, device: &Device, a: &Csr<T>) -> Result<Built<T>> {
        self.build_over(device, a, None)
    }

    /// Makes it for the matrix `a` over a partition of its rows that is known already, of those that take one: `bainv`.
    ///
    /// # Errors
    /// Errors of the functions that the variants name; [`Error::Option`] for a partition and a preconditioner that takes none.
    pub fn build_over<T: Real>(
        &self,
        device: &Device,
        a: &Csr<T>,
        partition: Option<&Partition>,
    ) -> Result<Built<T>> {
        let start = Instant::now();
        self.check_partition(partition)?;
        let mut over = None;
        let (operator, entries, shift): (SharedOperator<T>, usize, Option<f64>) = match *self {
            Self::Jacobi => (Diagonal::inverse_of(device, a)?.into(), a.rows(), None),
            Self::BlockJacobi { block } => (BlockJacobi::new(device, a, block)?.into(), a.rows() * block, None),
            Self::GaussSeidel { ordering } => Self::swept(a, Sweep::gauss_seidel(device, a, ordering)?),
            Self::Sor { omega, ordering } => Self::swept(a, Sweep::sor(device, a, omega, ordering)?),
            Self::Ssor { omega, ordering } => Self::swept(a, Sweep::ssor(device, a, omega, ordering)?),
            Self::Ic0 { .. }
            | Self::Ilu0 { .. }
            | Self::Ic0Sweeps { .. }
            | Self::Ilu0Sweeps { .. }
            | Self::Ict { .. }
            | Self::Ilut { .. } => {
                let factors = Incomplete::new(device, a, self.factor_options())?;
                let (entries, shift) = (factors.entries(), factors.shift());
                (factors.into(), entries, Some(shift))
            }
            Self::Sainv { drop } => Self::inverted(Ainv::new(device, a, AinvOptions::sainv(drop))?),
            Self::Ainv { drop } => Self::inverted(Ainv::new(device, a, AinvOptions::ainv(drop))?),
            Self::Bainv { parts } => {
                let inverse = Bainv::new(device, a, over.insert(partition_for(a, parts, partition)?))?;
                let entries = inverse.entries();
                (inverse.into(), entries, None)
            }
            Self::Fsai { power } => {
                let inverse = Fsai::new(device, a, power)?;
                let entries = inverse.entries();
                (inverse.into(), entries, None)
            }
        };
        Ok(Built::new(self, (operator, entries, shift, over), a, start))
    }

    /// Tells if least-squares methods can take it: [`Preconditioner::build_for_least_squares`].
    pub fn is_for_least_squares(&self) -> bool {
        matches!(
            self,
            Self::Jacobi | Self::Sainv { .. } | Self::Ainv { .. } | Self::Bainv { .. } | Self::Fsai { .. }
        )
    }

    /// Makes one for least squares with `a`, which need not be square: an operator `M` over the unknowns such that the columns of `A M`
    /// are nearly orthogonal, for [`Setup::preconditioner`](crate::Setup::preconditioner) of CGLS, LSQR, LSMR and CGNR. `jacobi` divides
    /// the columns by their norms; `sainv`, `ainv`, `bainv` (over a partition of the columns) and `fsai` give the root of an
    /// approximate inverse of [`A'A`](Csr::normal_matrix).
    ///
    /// # Errors
    /// [`Error::Option`] for one that has no root, and as [`Preconditioner::build_over`]; [`Error::Structure`] with the number of a column that
    /// is 0; errors of the functions that the variants name, and of [`Csr::normal_matrix`].
    pub fn build_for_least_squares<T: Real>(
        &self,
        device: &Device,
        a: &Csr<T>,
        partition: Option<&Partition>,
    ) -> Result<Built<T>> {
        let start = Instant::now();
        self.check_partition(partition)?;
        let mut over = None;
        let (operator, entries): (SharedOperator<T>, usize) = match *self {
            Self::Jacobi => (Diagonal::inverse_of_norms(device, a)?.into(), a.cols()),
            Self::Sainv { drop } => Self::rooted(Ainv::new(device, &a.normal_matrix()?, AinvOptions::sainv(drop))?),
            Self::Ainv { drop } => Self::rooted(Ainv::new(device, &a.normal_matrix()?, AinvOptions::ainv(drop))?),
            Self::Bainv { parts } => {
                let normal = a.normal_matrix()?;
                let inverse = Bainv::new(device, &normal, over.insert(partition_for(&normal, parts, partition)?))?;
                (inverse.root(), inverse.entries())
            }
            Self::Fsai { power } => {
                let inverse = Fsai::new(device, &a.normal_matrix()?, power)?;
                (inverse.root()?, inverse.entries())
            }
            _ => {
                let reason =
                    format!("{self} has no root: for least squares take jacobi, sainv, ainv, bainv or fsai");
                return Err(Error::Option { name: "preconditioner", reason });
            }
        };
        Ok(Built::new(self, (operator, entries, None, over), a, start))
    }

    /// Fails on a partition for a preconditioner that takes none, or with another number of parts.
    fn check_partition(&self, partition: Option<&Partition>) -> Result<()> {
        let Some(given) = partition else { return Ok(()) };
        let reason = match *self {
            Self::Bainv { parts: Some(parts) } if parts != given.parts() => {
                format!("{self}, but a partition in {} parts", given.parts())
            }
            Self::Bainv { .. } => return Ok(()),
            _ => format!("{self} takes none; bainv does"),
        };
        Err(Error::Option { name: "partition", reason })
    }

    fn rooted<T: Real>(inverse: Ainv<T>) -> (SharedOperator<T>, usize) {
        (inverse.root(), inverse.entries())
    }

    fn swept<T: Real>(a: &Csr<T>, sweep: Sweep<T>) -> (SharedOperator<T>, usize, Option<f64>) {
        (sweep.into(), a.nnz(), None)
    }

    /// Options of incomplete factors.
    fn factor_options(&self) -> IncompleteOptions {
        let kind = if self.needs_definite() { Factorisation::Cholesky } else { Factorisation::Lu };
        let exact = IncompleteOptions::new(kind);
        match *self {
            Self::Ic0 { shift } | Self::Ilu0 { shift } => exact.with_shift(shift),
            Self::Ic0Sweeps { factors, solves } | Self::Ilu0Sweeps { factors, solves } => {
                exact.with_fill(Fill::Sweeps(factors)).with_solve_sweeps(Some(solves).filter(|solves| *solves > 0))
            }
            Self::Ict { most, drop } | Self::Ilut { most, drop } => exact.with_fill(Fill::Threshold { most, drop }),
            _ => exact,
        }
    }

    fn inverted<T: Real>(inverse: Ainv<T>) -> (SharedOperator<T>, usize, Option<f64>) {
        let entries = inverse.entries();
        (inverse.into(), entries, None)
    }
}

/// Jacobi sweeps of a solve with a factor where no number is asked for.
const SOLVE_SWEEPS: usize = 5;
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
        Self { operator, entries, shift, partition, seconds, why }
    }
}

impl<T: Real> From<Built<T>> for SharedOperator<T> {
    fn from(built: Built<T>) -> Self {
        built.operator
    }
}

/// Name and parameter, as [`Preconditioner::from_str`] reads them.
impl Display for Preconditioner {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        let name = self.name();
        match self {
            Self::BlockJacobi { block } => write!(f, "{name}={block}"),
            Self::Ic0 { shift: Some(number) } | Self::Ilu0 { shift: Some(number) } => write!(f, "{name}={number}"),
            Self::Ic0Sweeps { factors, solves } | Self::Ilu0Sweeps { factors, solves } => {
                write!(f, "{name}={factors}:{solves}")
            }
            Self::Ict { most, drop } | Self::Ilut { most, drop } => write!(f, "{name}={most}:{drop}"),
            Self::Sainv { drop } | Self::Ainv { drop } => write!(f, "{name}={drop}"),
            Self::Bainv { parts: Some(parts) } => write!(f, "{name}={parts}"),
            Self::Fsai { power } => write!(f, "{name}={power}"),
            _ => f.write_str(name),
        }
    }
}

impl FromStr for Preconditioner {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let (word, parameter) = name.split_once('=').map_or((name, None), |(word, text)| (word, Some(text)));
        let known = Self::ALL.iter().copied().find(|known| known.name() == word).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(Self::name).collect();
            Error::Option { name: "preconditioner", reason: format!("'{name}' is none of {}", names.join(", ")) }
        })?;
        parameter.map_or(Ok(known), |text| known.with(text))
    }
}
