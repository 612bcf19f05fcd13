//! Preconditioners by name, with their parameters.

use std::fmt::{Display, Formatter, Result as FmtResult};
use std::str::FromStr;

use super::kind::{LeastSquares, Parameters, PreconditionerKind, Symmetry};
use super::{
    AdaptivePattern, AinvOptions, BainvOptions, BlockJacobiOptions, Factorisation, Fill, FsaiOptions,
    IncompleteOptions, NonsymmetricAinvOptions, PolynomialOptions, SpaiOptions, SweepOptions, TwoLevelOptions,
};
use crate::error::{Error, Result, unknown};

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
    /// The inverse of the diagonal: [`Diagonal::inverse_of`](crate::operator::Diagonal::inverse_of). By name `jacobi`.
    Jacobi,
    /// The inverses of blocks along the diagonal: [`BlockJacobi`](super::BlockJacobi). By name `block-jacobi`, of 8 rows, or
    /// `block-jacobi=3`; `block-jacobi=100:metis` has the parts of a partition by METIS of about 100 rows as blocks.
    BlockJacobi(BlockJacobiOptions),
    /// A sweep over the rows, or two: [`Sweep`](super::Sweep). By name `gauss-seidel`, `sor` and `ssor`, with the relaxation factor 1 and rows by
    /// colours; SSOR is symmetric, for CG.
    Sweep(SweepOptions),
    /// Incomplete factors: [`Incomplete`](super::Incomplete). By name, Cholesky factors for symmetric positive definite matrices first:
    /// `ic0` and `ilu0` in the sparsity pattern of the matrix, or `ic0=0.01` with a shift; `ic0-sweeps` and `ilu0-sweeps` by sweeps, or `ic0-sweeps=3:5`,
    /// the sweeps over the factors and those of a solve (0 solves exactly); `ict` and `ilut` with a threshold, or `ict=20:1e-3`, entries of a row and
    /// threshold.
    Incomplete(IncompleteOptions),
    /// An approximate inverse in factors, for symmetric positive definite matrices: [`Ainv`](super::Ainv). By name `sainv` (stabilised), which
    /// drops entries below 0.1, or `sainv=0.01`, or `sainv=0.01:2`, which also drops what is not in the sparsity pattern of the square of the
    /// matrix; likewise `ainv` (less work, and pivots may fail) and `ldl-ainv` (from incomplete factors of the matrix, the least work of the three,
    /// made on the host; pivots may fail).
    Ainv(AinvOptions),
    /// AINV by biconjugation, for matrices that are not symmetric: [`NonsymmetricAinv`](super::NonsymmetricAinv). By name `nonsymmetric-ainv`, which drops entries
    /// below 0.1, or `nonsymmetric-ainv=0.01`.
    NonsymmetricAinv(NonsymmetricAinvOptions),
    /// An approximate inverse over a partition by METIS, for symmetric positive definite matrices: [`Bainv`](super::Bainv). By name `bainv`, with
    /// parts of about 100 rows, or `bainv=29` with 29 parts. It needs the feature `metis`, or a partition: [`Preconditioner::build_over`].
    Bainv(BainvOptions),
    /// A factorised sparse approximate inverse, for symmetric positive definite matrices: [`Fsai`](super::Fsai). By name `fsai`, or `fsai=2`
    /// in the sparsity pattern of the square of the matrix; `adaptive-fsai` finds its sparsity pattern, or `adaptive-fsai=10:2`, steps of a row and entries of
    /// a step (the name does not say the tolerance, which is 0.01 then).
    Fsai(FsaiOptions),
    /// A sparse approximate inverse, for square matrices: [`Spai`](super::Spai). By name `spai`, or `spai=2` in the sparsity pattern of the square of
    /// the matrix. It is not symmetric.
    Spai(SpaiOptions),
    /// A Chebyshev polynomial in the matrix, for symmetric positive definite matrices: [`Polynomial`](super::Polynomial). By name `chebyshev`,
    /// of the fourth kind and degree 3, or `chebyshev=5`; `chebyshev=5:30` is of the first kind, for eigenvalues down to a thirtieth of the
    /// largest.
    Chebyshev(PolynomialOptions),
    /// The diagonal and a coarse system, for symmetric positive definite matrices: [`TwoLevel`](super::TwoLevel). By name `two-level`, over about
    /// 400 parts, or `two-level=200`, over parts of up to 200 rows.
    TwoLevel(TwoLevelOptions),
}

/// Runs code with the [kind](PreconditionerKind) of a preconditioner, and with the variant that holds such.
macro_rules! with_kind {
    ($which:expr, |$kind:ident| $code:expr) => {
        with_kind!($which, |$kind, _variant| $code)
    };
    ($which:expr, |$kind:ident, $variant:ident| $code:expr) => {
        with_kind! {
            @rows $which, $kind, $variant, $code;
            BlockJacobi Sweep Incomplete Ainv NonsymmetricAinv Bainv Fsai Spai Chebyshev TwoLevel
        }
    };
    (@rows $which:expr, $kind:ident, $variant:ident, $code:expr; $($row:ident)+) => {
        match $which {
            $crate::precond::Preconditioner::Jacobi => {
                let $kind = $crate::precond::jacobi::Jacobi;
                let $variant = |_: $crate::precond::jacobi::Jacobi| $crate::precond::Preconditioner::Jacobi;
                $code
            }
            $($crate::precond::Preconditioner::$row(options) => {
                let ($kind, $variant) = (options, $crate::precond::Preconditioner::$row);
                $code
            })+
        }
    };
}
pub(super) use with_kind;

impl Preconditioner {
    /// Every preconditioner, with neutral parameters: blocks of 8, relaxation factor 1, rows by colours, entries from 0.1 on,
    /// sparsity pattern of the matrix itself.
    pub const ALL: &'static [Self] = &[
        Self::Jacobi,
        Self::BlockJacobi(BlockJacobiOptions::consecutive(8)),
        Self::Sweep(SweepOptions::gauss_seidel()),
        Self::Sweep(SweepOptions::sor(1.0)),
        Self::Sweep(SweepOptions::ssor(1.0)),
        Self::Incomplete(IncompleteOptions::new(Factorisation::Cholesky)),
        Self::Incomplete(IncompleteOptions::new(Factorisation::Lu)),
        Self::Incomplete(by_sweeps(Factorisation::Cholesky)),
        Self::Incomplete(by_sweeps(Factorisation::Lu)),
        Self::Incomplete(IncompleteOptions::new(Factorisation::Cholesky).with_fill(THRESHOLD)),
        Self::Incomplete(IncompleteOptions::new(Factorisation::Lu).with_fill(THRESHOLD)),
        Self::Ainv(AinvOptions::sainv(0.1)),
        Self::Ainv(AinvOptions::ainv(0.1)),
        Self::Ainv(AinvOptions::factored(0.1)),
        Self::NonsymmetricAinv(NonsymmetricAinvOptions::dropping(0.1)),
        #[cfg(feature = "metis")]
        Self::Bainv(BainvOptions::NEUTRAL),
        Self::Fsai(FsaiOptions::power(1)),
        Self::Fsai(FsaiOptions::adaptive(AdaptivePattern::NEUTRAL)),
        Self::Spai(SpaiOptions::NEUTRAL),
        Self::Chebyshev(PolynomialOptions::fourth_kind(3)),
        Self::TwoLevel(TwoLevelOptions::new()),
    ];

    /// Name, as [`Preconditioner::from_str`] reads it.
    pub fn name(&self) -> &'static str {
        with_kind!(*self, |kind| kind.name())
    }

    /// Tells if it is for symmetric positive definite matrices alone.
    pub fn needs_definite(&self) -> bool {
        with_kind!(*self, |kind| kind.symmetry() == Symmetry::Definite)
    }

    /// Tells if it is symmetric for a symmetric matrix.
    pub fn keeps_symmetry(&self) -> bool {
        with_kind!(*self, |kind| kind.symmetry() != Symmetry::Lost)
    }

    /// Tells if it can be made over a partition of the rows: [`Preconditioner::build_over`].
    pub fn takes_partition(&self) -> bool {
        with_kind!(*self, |kind| kind.takes_partition())
    }

    /// Tells if least-squares methods can take it: [`Preconditioner::build_for_least_squares`].
    pub fn is_for_least_squares(&self) -> bool {
        with_kind!(*self, |kind| kind.least_squares() != LeastSquares::None)
    }

    /// Tells if it can be made for least squares of a matrix that is not square, of those that [can be made](Self::is_for_least_squares) for
    /// least squares.
    pub fn takes_rectangles(&self) -> bool {
        with_kind!(*self, |kind| kind.least_squares() == LeastSquares::Any)
    }

    /// A copy whose factors are rounded to `f32` and stored so, if it has stored factors: by name `sainv=0.1,f32`. Products still take and give
    /// vectors of `T` and sum as those do, so that it is a fixed operator too, symmetric and definite as before: CG and MINRES take it as
    /// any other. The entries take 8 bytes instead of 12, or 6 where columns take 16 bits ([`Packing`](crate::Packing)).
    pub fn in_stored_f32(self) -> Option<Self> {
        with_kind!(self, |kind, variant| kind.in_stored_f32().map(variant))
    }

    /// Tells if its factors are rounded to `f32`.
    pub fn is_stored_f32(&self) -> bool {
        self.in_stored_f32().as_ref() == Some(self)
    }

    /// Names of those that `suit`.
    pub(super) fn names_of(suit: impl Fn(&Self) -> bool) -> String {
        Self::ALL.iter().filter(|which| suit(which)).map(Self::name).collect::<Vec<_>>().join(", ")
    }

    /// A copy with the parameters that stand behind the name.
    fn with(self, text: &str) -> Result<Self> {
        let given = Parameters::of(text);
        let (found, grammar) =
            with_kind!(self, |kind, variant| (kind.with_parameters(&given).map(variant), kind.grammar()));
        found.ok_or_else(|| {
            let name = self.name();
            let wanted = match grammar {
                Some([what, example]) => format!("{what} behind it, as in {name}={example}"),
                None => "it takes no parameter".into(),
            };
            Error::Option { name: "preconditioner", reason: format!("{name}={text}: {wanted}") }
        })
    }
}

/// Incomplete factors by 3 sweeps, solved with by 5.
const fn by_sweeps(kind: Factorisation) -> IncompleteOptions {
    IncompleteOptions { solve_sweeps: Some(5), ..IncompleteOptions::new(kind).with_fill(Fill::Sweeps(3)) }
}

/// Incomplete factors with 20 entries of a row.
const THRESHOLD: Fill = Fill::Threshold { most: 20, drop: 1e-3 };

/// Ending of the name of a preconditioner whose factors are in `f32`.
const STORED_F32: &str = ",f32";

/// Name and parameter, as [`Preconditioner::from_str`] reads them.
impl Display for Preconditioner {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        f.write_str(self.name())?;
        let parameters = with_kind!(*self, |kind| kind.parameters());
        if !parameters.is_empty() {
            write!(f, "={parameters}")?;
        }
        f.write_str(if self.is_stored_f32() { STORED_F32 } else { "" })
    }
}

impl FromStr for Preconditioner {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let (text, stored_f32) = name.strip_suffix(STORED_F32).map_or((name, false), |text| (text, true));
        let (word, parameter) = text.split_once('=').map_or((text, None), |(word, text)| (word, Some(text)));
        let known = Self::ALL
            .iter()
            .copied()
            .find(|known| known.name() == word)
            .ok_or_else(|| unknown("preconditioner", name, Self::names_of(|_| true)))?;
        let named = parameter.map_or(Ok(known), |text| known.with(text))?;
        if !stored_f32 {
            return Ok(named);
        }
        named.in_stored_f32().ok_or_else(|| {
            let names = Self::names_of(|which| which.in_stored_f32().is_some());
            let reason = format!("{word} has no factors that are stored in f32: take one of {names}");
            Error::Conflict { name: "preconditioner", reason }
        })
    }
}
