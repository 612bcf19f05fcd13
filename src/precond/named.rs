//! Preconditioners by name, with their parameters.

use std::fmt::{Display, Formatter, Result as FmtResult};
use std::str::FromStr;

use super::{AdaptivePlaces, RowOrdering};
use crate::error::{Error, Result};

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
    /// The inverse of the diagonal: [`Diagonal::inverse_of`](crate::operator::Diagonal::inverse_of).
    Jacobi,
    /// The inverses of blocks along the diagonal: [`BlockJacobi::new`](super::BlockJacobi::new). By name `block-jacobi`, of 8 rows, or
    /// `block-jacobi=3`; `block-jacobi=100:metis` has the parts of a partition by METIS of about 100 rows as blocks
    /// ([`BlockJacobi::over`](super::BlockJacobi::over)), as it has those of a partition that is given.
    BlockJacobi {
        /// Rows of a block, 1 to 32 of consecutive ones.
        block: usize,
        /// Blocks are parts of the graph of the matrix.
        by_graph: bool,
    },
    /// A sweep over the rows: [`Sweep::gauss_seidel`](super::Sweep::gauss_seidel).
    GaussSeidel {
        /// Order of the rows.
        ordering: RowOrdering,
    },
    /// A sweep with relaxation: [`Sweep::sor`](super::Sweep::sor).
    Sor {
        /// Relaxation factor, between 0 and 2.
        omega: f64,
        /// Order of the rows.
        ordering: RowOrdering,
    },
    /// A sweep forwards and one back, symmetric, for CG: [`Sweep::ssor`](super::Sweep::ssor).
    Ssor {
        /// Relaxation factor, between 0 and 2.
        omega: f64,
        /// Order of the rows.
        ordering: RowOrdering,
    },
    /// Incomplete Cholesky factors in the places of the matrix: [`Incomplete::new`](super::Incomplete::new). By name `ic0`, or `ic0=0.01` with a shift.
    Ic0 {
        /// Share of the diagonal that is added to it, `None` to search for one.
        shift: Option<f64>,
    },
    /// Incomplete LU factors in the places of the matrix: [`Incomplete::new`](super::Incomplete::new). By name `ilu0`, or `ilu0=0.01` with a shift.
    Ilu0 {
        /// Share of the largest entry of a row that is added to its diagonal entry, `None` to search for one.
        shift: Option<f64>,
    },
    /// Incomplete Cholesky factors in the places of the matrix by sweeps, solved with by sweeps: [`Incomplete::new`](super::Incomplete::new). By name `ic0-sweeps`,
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
    /// Incomplete Cholesky factors with a threshold: [`Fill::Threshold`](super::Fill::Threshold). By name `ict`, or `ict=20:1e-3`, entries of a row and threshold.
    Ict {
        /// Most entries of a row of the factor, off the diagonal.
        most: usize,
        /// Threshold.
        drop: f64,
    },
    /// Incomplete LU factors with a threshold: [`Fill::Threshold`](super::Fill::Threshold). By name `ilut`, or `ilut=20:1e-3`, entries of a row and threshold.
    Ilut {
        /// Most entries of a row of either factor, off the diagonal.
        most: usize,
        /// Threshold.
        drop: f64,
    },
    /// An approximate inverse in factors, stabilised, for symmetric positive definite matrices: [`Ainv::new`](super::Ainv::new). By name `sainv`, which
    /// drops entries below 0.1, or `sainv=0.01`, or `sainv=0.01:2`, which also drops what is not in the places of the square of the
    /// matrix.
    Sainv {
        /// Entries below it are dropped.
        drop: f64,
        /// Power of the matrix whose places are kept, `None` for any place.
        places: Option<usize>,
        /// Factors rounded to `f32` and stored so, for solves in `f64`: [`Csr::rounded_to_single`](crate::Csr::rounded_to_single).
        single: bool,
    },
    /// AINV: without stabilisation, less work, and pivots may fail.
    Ainv {
        /// Entries below it are dropped.
        drop: f64,
        /// Power of the matrix whose places are kept, `None` for any place.
        places: Option<usize>,
        /// Factors rounded to `f32` and stored so, for solves in `f64`: [`Csr::rounded_to_single`](crate::Csr::rounded_to_single).
        single: bool,
    },
    /// AINV from incomplete factors of the matrix: [`AinvOptions::factored`](super::AinvOptions::factored). The least work of the three, made on
    /// the host; pivots may fail. By name `ldl-ainv`, `ldl-ainv=0.01` or `ldl-ainv=0.01:2`.
    LdlAinv {
        /// Entries of factors and inverse below it are dropped.
        drop: f64,
        /// Power of the matrix whose places are kept, `None` for any place.
        places: Option<usize>,
        /// Factors rounded to `f32` and stored so, for solves in `f64`: [`Csr::rounded_to_single`](crate::Csr::rounded_to_single).
        single: bool,
    },
    /// AINV by biconjugation, for matrices that are not symmetric: [`NonsymmetricAinv::new`](super::NonsymmetricAinv::new). By name `nonsymmetric-ainv`, which drops entries
    /// below 0.1, or `nonsymmetric-ainv=0.01`.
    NonsymmetricAinv {
        /// Entries below it are dropped.
        drop: f64,
        /// Power of the matrix whose places are kept, `None` for any place.
        places: Option<usize>,
        /// Factors rounded to `f32` and stored so, for solves in `f64`: [`Csr::rounded_to_single`](crate::Csr::rounded_to_single).
        single: bool,
    },
    /// An approximate inverse over a partition by METIS, for symmetric positive definite matrices: [`Bainv::new`](super::Bainv::new). By name `bainv`, with
    /// parts of about 100 rows, or `bainv=29` with 29 parts. It needs the feature `metis`, or a partition: [`Preconditioner::build_over`].
    Bainv {
        /// Number of parts, `None` for one that makes parts of about 100 rows.
        parts: Option<usize>,
        /// Factors rounded to `f32` and stored so, for solves in `f64`: [`Csr::rounded_to_single`](crate::Csr::rounded_to_single).
        single: bool,
    },
    /// A Chebyshev polynomial in the matrix, for symmetric positive definite matrices:
    /// [`Polynomial::new`](super::Polynomial::new). By name `chebyshev`, of the fourth kind and degree 3, or `chebyshev=5`;
    /// `chebyshev=5:30` is of the first kind, for eigenvalues down to a thirtieth of the largest.
    Chebyshev {
        /// Products with the matrix.
        degree: usize,
        /// Ratio of the ends of the interval of the first kind, `None` for the fourth.
        ratio: Option<f64>,
    },
    /// A factorised sparse approximate inverse, for symmetric positive definite matrices: [`Fsai::new`](super::Fsai::new). By name `fsai`, or `fsai=2`
    /// in the places of the square of the matrix.
    Fsai {
        /// Power of the matrix that has the places, 1 to 4.
        power: usize,
        /// Factors rounded to `f32` and stored so, for solves in `f64`: [`Csr::rounded_to_single`](crate::Csr::rounded_to_single).
        single: bool,
    },
    /// A factorised sparse approximate inverse whose places are found, for symmetric positive definite matrices:
    /// [`FsaiPlaces::Adaptive`](super::FsaiPlaces::Adaptive). By name `adaptive-fsai`, or `adaptive-fsai=10:2`, steps of a row and places of
    /// a step; the name does not say the tolerance, which is 0.01 then.
    AdaptiveFsai {
        /// Steps of a row, and the places of each.
        places: AdaptivePlaces,
        /// Factors rounded to `f32` and stored so, for solves in `f64`: [`Csr::rounded_to_single`](crate::Csr::rounded_to_single).
        single: bool,
    },
    /// A sparse approximate inverse, for square matrices: [`Spai::new`](super::Spai::new). By name `spai`, or `spai=2` in the places of the square of
    /// the matrix. It is not symmetric.
    Spai {
        /// Power of the matrix that has the places, 1 to 4.
        power: usize,
        /// The inverse rounded to `f32` and stored so, for solves in `f64`: [`Csr::rounded_to_single`](crate::Csr::rounded_to_single).
        single: bool,
    },
}

impl Preconditioner {
    /// Every preconditioner, with neutral parameters: blocks of 8, relaxation factor 1, rows by colours, entries from 0.1 on,
    /// places of the matrix itself.
    pub const ALL: &'static [Self] = &[
        Self::Jacobi,
        Self::BlockJacobi { block: 8, by_graph: false },
        Self::GaussSeidel { ordering: RowOrdering::Colours },
        Self::Sor { omega: 1.0, ordering: RowOrdering::Colours },
        Self::Ssor { omega: 1.0, ordering: RowOrdering::Colours },
        Self::Ic0 { shift: None },
        Self::Ilu0 { shift: None },
        Self::Ic0Sweeps { factors: 3, solves: SOLVE_SWEEPS },
        Self::Ilu0Sweeps { factors: 3, solves: SOLVE_SWEEPS },
        Self::Ict { most: 20, drop: 1e-3 },
        Self::Ilut { most: 20, drop: 1e-3 },
        Self::Sainv { drop: 0.1, places: None, single: false },
        Self::Ainv { drop: 0.1, places: None, single: false },
        Self::LdlAinv { drop: 0.1, places: None, single: false },
        Self::NonsymmetricAinv { drop: 0.1, places: None, single: false },
        #[cfg(feature = "metis")]
        Self::Bainv { parts: None, single: false },
        Self::Fsai { power: 1, single: false },
        Self::AdaptiveFsai { places: AdaptivePlaces::NEUTRAL, single: false },
        Self::Spai { power: 1, single: false },
        Self::Chebyshev { degree: 3, ratio: None },
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
            Self::LdlAinv { .. } => "ldl-ainv",
            Self::NonsymmetricAinv { .. } => "nonsymmetric-ainv",
            Self::Bainv { .. } => "bainv",
            Self::Fsai { .. } => "fsai",
            Self::AdaptiveFsai { .. } => "adaptive-fsai",
            Self::Spai { .. } => "spai",
            Self::Chebyshev { .. } => "chebyshev",
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
                | Self::LdlAinv { .. }
                | Self::Bainv { .. }
                | Self::Fsai { .. }
                | Self::AdaptiveFsai { .. }
                | Self::Chebyshev { .. }
        )
    }

    /// A copy whose factors are rounded to `f32` and stored so, if it has stored factors: by name `sainv=0.1,f32`. Products still take and give
    /// vectors of `T` and sum as those do, so that it is a fixed operator too, symmetric and definite as before: CG and MINRES take it as
    /// any other. The entries take 8 bytes instead of 12, or 6 where columns take 16 bits ([`Packing`](crate::Packing)).
    pub fn in_single(self) -> Option<Self> {
        match self {
            Self::Sainv { drop, places, .. } => Some(Self::Sainv { drop, places, single: true }),
            Self::Ainv { drop, places, .. } => Some(Self::Ainv { drop, places, single: true }),
            Self::LdlAinv { drop, places, .. } => Some(Self::LdlAinv { drop, places, single: true }),
            Self::NonsymmetricAinv { drop, places, .. } => {
                Some(Self::NonsymmetricAinv { drop, places, single: true })
            }
            Self::Bainv { parts, .. } => Some(Self::Bainv { parts, single: true }),
            Self::Fsai { power, .. } => Some(Self::Fsai { power, single: true }),
            Self::AdaptiveFsai { places, .. } => Some(Self::AdaptiveFsai { places, single: true }),
            Self::Spai { power, .. } => Some(Self::Spai { power, single: true }),
            _ => None,
        }
    }

    /// Tells if its factors are rounded to `f32`.
    pub fn is_single(&self) -> bool {
        self.in_single().as_ref() == Some(self)
    }

    /// Names of those that `suit`.
    pub(super) fn names_of(suit: impl Fn(&Self) -> bool) -> String {
        Self::ALL.iter().filter(|which| suit(which)).map(Self::name).collect::<Vec<_>>().join(", ")
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
        let power = || {
            let wanted = format!("a power of the matrix belongs behind it, as in {}=2", self.name());
            text.parse::<usize>().map_err(|_| bad(&wanted))
        };
        // Two parameters, the second of which may be missing.
        let (first, second) = text.split_once(':').map_or((text, None), |(first, second)| (first, Some(second)));
        let counts = |default: usize, what: &str, example: &str| {
            let wanted = format!("{what} belong behind it, as in {}={example}", self.name());
            let one = first.parse::<usize>().map_err(|_| bad(&wanted))?;
            let other = second.map_or(Ok(default), str::parse).map_err(|_| bad(&wanted))?;
            Ok([one, other])
        };
        let sweeps = |solves| counts(solves, "numbers of sweeps", "3:5");
        let threshold = |drop: f64| {
            let wanted =
                format!("entries of a row and a threshold belong behind it, as in {}=20:1e-3", self.name());
            let most = first.parse::<usize>().map_err(|_| bad(&wanted))?;
            let drop = second.map_or(Ok(drop), str::parse).map_err(|_| bad(&wanted))?;
            Ok((most, drop))
        };
        let dropping = || {
            let wanted =
                "what is dropped, and a power of the matrix that has the places, belong behind it, as in 0.1:2";
            let drop = first.parse::<f64>().ok().filter(|drop| drop.is_finite()).ok_or_else(|| bad(wanted))?;
            let places = second.map(str::parse).transpose().map_err(|_| bad(wanted))?;
            Ok((drop, places))
        };
        match self {
            Self::Ic0Sweeps { solves, .. } => {
                sweeps(solves).map(|[factors, solves]| Self::Ic0Sweeps { factors, solves })
            }
            Self::Ilu0Sweeps { solves, .. } => {
                sweeps(solves).map(|[factors, solves]| Self::Ilu0Sweeps { factors, solves })
            }
            Self::Ict { drop, .. } => threshold(drop).map(|(most, drop)| Self::Ict { most, drop }),
            Self::Ilut { drop, .. } => threshold(drop).map(|(most, drop)| Self::Ilut { most, drop }),
            Self::BlockJacobi { .. } => {
                let wanted = "a number of rows belongs behind it, as in block-jacobi=3 or block-jacobi=100:metis";
                let block = first.parse().map_err(|_| bad(wanted))?;
                match second {
                    None | Some("metis") => Ok(Self::BlockJacobi { block, by_graph: second.is_some() }),
                    Some(_) => Err(bad(wanted)),
                }
            }
            Self::Ic0 { .. } => Ok(Self::Ic0 { shift: Some(number()?) }),
            Self::Ilu0 { .. } => Ok(Self::Ilu0 { shift: Some(number()?) }),
            Self::Sainv { single, .. } => dropping().map(|(drop, places)| Self::Sainv { drop, places, single }),
            Self::Ainv { single, .. } => dropping().map(|(drop, places)| Self::Ainv { drop, places, single }),
            Self::LdlAinv { single, .. } => dropping().map(|(drop, places)| Self::LdlAinv { drop, places, single }),
            Self::NonsymmetricAinv { single, .. } => {
                dropping().map(|(drop, places)| Self::NonsymmetricAinv { drop, places, single })
            }
            Self::Bainv { single, .. } => {
                let parts = text.parse().map_err(|_| bad("a number of parts belongs behind it, as in bainv=29"))?;
                Ok(Self::Bainv { parts: Some(parts), single })
            }
            Self::Fsai { single, .. } => power().map(|power| Self::Fsai { power, single }),
            Self::AdaptiveFsai { places, single } => {
                let [steps, per_step] = counts(places.per_step, "steps of a row and places of a step", "10:2")?;
                Ok(Self::AdaptiveFsai { places: AdaptivePlaces { steps, per_step, ..places }, single })
            }
            Self::Spai { single, .. } => power().map(|power| Self::Spai { power, single }),
            Self::Chebyshev { .. } => {
                let wanted = "a degree, and a ratio of eigenvalues for the first kind, belong behind it, as in chebyshev=5:30";
                let degree = first.parse().map_err(|_| bad(wanted))?;
                let ratio = second.map(str::parse).transpose().map_err(|_| bad(wanted))?;
                Ok(Self::Chebyshev { degree, ratio })
            }
            _ => Err(bad("it takes no parameter")),
        }
    }
}

/// Ending of the name of a preconditioner whose factors are in `f32`.
const IN_SINGLE: &str = ",f32";
/// Jacobi sweeps of a solve with a factor where no number is asked for.
const SOLVE_SWEEPS: usize = 5;

/// Name and parameter, as [`Preconditioner::from_str`] reads them.
impl Display for Preconditioner {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        let name = self.name();
        match self {
            Self::BlockJacobi { block, by_graph } => {
                write!(f, "{name}={block}{}", if *by_graph { ":metis" } else { "" })
            }
            Self::Ic0 { shift: Some(number) } | Self::Ilu0 { shift: Some(number) } => write!(f, "{name}={number}"),
            Self::Ic0Sweeps { factors, solves } | Self::Ilu0Sweeps { factors, solves } => {
                write!(f, "{name}={factors}:{solves}")
            }
            Self::Ict { most, drop } | Self::Ilut { most, drop } => write!(f, "{name}={most}:{drop}"),
            Self::Sainv { drop, places, .. }
            | Self::Ainv { drop, places, .. }
            | Self::LdlAinv { drop, places, .. }
            | Self::NonsymmetricAinv { drop, places, .. } => {
                write!(f, "{name}={drop}")?;
                places.map_or(Ok(()), |power| write!(f, ":{power}"))
            }
            Self::Bainv { parts: Some(parts), .. } => write!(f, "{name}={parts}"),
            Self::Fsai { power, .. } | Self::Spai { power, .. } => write!(f, "{name}={power}"),
            Self::AdaptiveFsai { places, .. } => write!(f, "{name}={}:{}", places.steps, places.per_step),
            Self::Chebyshev { degree, ratio: None } => write!(f, "{name}={degree}"),
            Self::Chebyshev { degree, ratio: Some(ratio) } => write!(f, "{name}={degree}:{ratio}"),
            _ => f.write_str(name),
        }?;
        f.write_str(if self.is_single() { IN_SINGLE } else { "" })
    }
}

impl FromStr for Preconditioner {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let (text, single) = name.strip_suffix(IN_SINGLE).map_or((name, false), |text| (text, true));
        let (word, parameter) = text.split_once('=').map_or((text, None), |(word, text)| (word, Some(text)));
        let known = Self::ALL.iter().copied().find(|known| known.name() == word).ok_or_else(|| {
            let reason = format!("'{name}' is none of {}", Self::names_of(|_| true));
            Error::Option { name: "preconditioner", reason }
        })?;
        let named = parameter.map_or(Ok(known), |text| known.with(text))?;
        if !single {
            return Ok(named);
        }
        named.in_single().ok_or_else(|| {
            let names = Self::names_of(|which| which.in_single().is_some());
            let reason = format!("{word} has no factors that are stored in f32: take one of {names}");
            Error::Option { name: "preconditioner", reason }
        })
    }
}
