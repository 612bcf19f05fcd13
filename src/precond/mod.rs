//! Preconditioners: approximations of an inverse, each a [`LinearOperator`](crate::operator::LinearOperator) to be put into
//! [`Setup::preconditioner`](crate::Setup). [`Preconditioner`] makes them by name.

mod block_jacobi;
mod levels;
mod sweep;

pub use block_jacobi::BlockJacobi;
pub use sweep::{RowOrdering, Sweep};

use std::fmt::{Display, Formatter, Result as FmtResult};
use std::str::FromStr;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::number::Real;
use crate::operator::{Diagonal, SharedOperator};
use crate::sparse::Csr;

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
    /// `block-jacobi-3`.
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
}

impl Preconditioner {
    /// Every preconditioner, with neutral parameters: blocks of 8, relaxation factor 1, rows by colours.
    pub const ALL: &'static [Self] = &[
        Self::Jacobi,
        Self::BlockJacobi { block: 8 },
        Self::GaussSeidel { ordering: RowOrdering::Colours },
        Self::Sor { omega: 1.0, ordering: RowOrdering::Colours },
        Self::Ssor { omega: 1.0, ordering: RowOrdering::Colours },
    ];

    /// Name, as [`Preconditioner::from_str`] reads it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Jacobi => "jacobi",
            Self::BlockJacobi { .. } => "block-jacobi",
            Self::GaussSeidel { .. } => "gauss-seidel",
            Self::Sor { .. } => "sor",
            Self::Ssor { .. } => "ssor",
        }
    }

    /// Makes it for the matrix `a`.
    ///
    /// # Errors
    /// Errors of the functions that the variants name.
    pub fn build<T: Real>(&self, device: &Device, a: &Csr<T>) -> Result<SharedOperator<T>> {
        Ok(match *self {
            Self::Jacobi => Diagonal::inverse_of(device, a)?.into(),
            Self::BlockJacobi { block } => BlockJacobi::new(device, a, block)?.into(),
            Self::GaussSeidel { ordering } => Sweep::gauss_seidel(device, a, ordering)?.into(),
            Self::Sor { omega, ordering } => Sweep::sor(device, a, omega, ordering)?.into(),
            Self::Ssor { omega, ordering } => Sweep::ssor(device, a, omega, ordering)?.into(),
        })
    }
}

impl Display for Preconditioner {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        f.write_str(self.name())
    }
}

impl FromStr for Preconditioner {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        if let Some(block) = name.strip_prefix("block-jacobi-").and_then(|block| block.parse().ok()) {
            return Ok(Self::BlockJacobi { block });
        }
        Self::ALL.iter().copied().find(|known| known.name() == name).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(Self::name).collect();
            Error::Option { name: "preconditioner", reason: format!("'{name}' is none of {}", names.join(", ")) }
        })
    }
}
