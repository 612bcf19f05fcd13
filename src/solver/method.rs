//! Which method a solve uses.

use std::fmt::{Display, Formatter, Result as FmtResult};
use std::str::FromStr;

use crate::error::{Error, Result};

/// An iterative method and its parameters. The file of the same name in `solver/` states recurrence, cost and source.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Method {
    /// Conjugate gradients: symmetric positive definite systems.
    Cg,
    /// Steepest descent: the same, slowly.
    SteepestDescent,
    /// MINRES: symmetric systems, definite or not, singular or not.
    Minres,
    /// BiCGSTAB: square systems, short recurrences, no guarantee.
    BiCgStab,
    /// GMRES: square systems; the residual never grows, and each direction is kept until a restart.
    Gmres {
        /// Directions kept before it starts again, 1 to 100; each takes two vectors.
        restart: usize,
    },
    /// Chebyshev iteration: symmetric positive definite systems with known bounds of the eigenvalues of `M A`.
    Chebyshev {
        /// At most the smallest eigenvalue, above 0.
        smallest: f64,
        /// At least the largest eigenvalue.
        largest: f64,
    },
    /// `x += omega M (b - A x)`: Jacobi, Gauss-Seidel, SOR and SSOR with the preconditioner of that name.
    Stationary {
        /// The factor of the correction; 1 leaves it to the preconditioner.
        omega: f64,
    },
    /// CGLS: `min |A x - b|² + damp² |x - x_ref|²`.
    Cgls {
        /// 0 for none.
        damp: f64,
    },
    /// CGNE, Craig's method: the solution nearest to the start guess, of a system that has one.
    Cgne,
    /// LSQR: `min |A x - b|² + damp² |x - x_ref|²`.
    Lsqr {
        /// 0 for none.
        damp: f64,
    },
    /// LSMR: `min |A x - b|² + damp² |x - x_ref|²`.
    Lsmr {
        /// 0 for none.
        damp: f64,
    },
}

impl Method {
    /// Every method, with neutral parameters (bounds 1 and 2 for Chebyshev's, which have none; 30 directions for GMRES).
    pub const ALL: [Self; 11] = [
        Self::Cg,
        Self::SteepestDescent,
        Self::Minres,
        Self::BiCgStab,
        Self::Gmres { restart: 30 },
        Self::Chebyshev { smallest: 1.0, largest: 2.0 },
        Self::Stationary { omega: 1.0 },
        Self::Cgls { damp: 0.0 },
        Self::Cgne,
        Self::Lsqr { damp: 0.0 },
        Self::Lsmr { damp: 0.0 },
    ];

    /// Its name, as [`Method::from_str`] reads it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Cg => "cg",
            Self::SteepestDescent => "steepest-descent",
            Self::Minres => "minres",
            Self::BiCgStab => "bicgstab",
            Self::Gmres { .. } => "gmres",
            Self::Chebyshev { .. } => "chebyshev",
            Self::Stationary { .. } => "stationary",
            Self::Cgls { .. } => "cgls",
            Self::Cgne => "cgne",
            Self::Lsqr { .. } => "lsqr",
            Self::Lsmr { .. } => "lsmr",
        }
    }

    /// Whether the operator may be rectangular; such methods need its adjoint.
    pub fn takes_rectangles(&self) -> bool {
        matches!(self, Self::Cgls { .. } | Self::Cgne | Self::Lsqr { .. } | Self::Lsmr { .. })
    }

    /// Whether its recurrence carries the residual, which can then be computed afresh now and then
    /// ([`Stopping::exact_every`](crate::Stopping::exact_every)). The others have none, or an exact one already.
    pub fn carries_residual(&self) -> bool {
        matches!(
            self,
            Self::Cg
                | Self::SteepestDescent
                | Self::BiCgStab
                | Self::Chebyshev { .. }
                | Self::Cgls { .. }
                | Self::Cgne
        )
    }

    /// Whether it may also stop by the gradient ([`Stopping::gradient_rtol`](crate::Stopping::gradient_rtol)).
    pub fn has_gradient(&self) -> bool {
        matches!(self, Self::Cgls { .. } | Self::Lsqr { .. } | Self::Lsmr { .. } | Self::Minres)
    }

    /// Whether a preconditioner can be used.
    pub fn takes_preconditioner(&self) -> bool {
        matches!(
            self,
            Self::Cg | Self::BiCgStab | Self::Gmres { .. } | Self::Chebyshev { .. } | Self::Stationary { .. }
        )
    }

    /// Fails on a parameter that cannot be meant.
    pub(super) fn validate(&self) -> Result<()> {
        let refuse = |name, reason| Err(Error::Option { name, reason });
        match *self {
            Self::Cgls { damp } | Self::Lsqr { damp } | Self::Lsmr { damp }
                if !(damp >= 0.0 && damp.is_finite()) =>
            {
                refuse("damp", format!("{damp} is not a number of at least 0"))
            }
            Self::Stationary { omega } if !(omega > 0.0 && omega.is_finite()) => {
                refuse("omega", format!("{omega} is not a number above 0"))
            }
            Self::Gmres { restart } if !(1..=100).contains(&restart) => {
                refuse("restart", format!("{restart} is not between 1 and 100"))
            }
            Self::Chebyshev { smallest, largest }
                if !(smallest > 0.0 && smallest < largest && largest.is_finite()) =>
            {
                refuse("smallest", format!("0 < {smallest} < {largest} does not hold"))
            }
            _ => Ok(()),
        }
    }
}

impl Display for Method {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        f.write_str(self.name())
    }
}

impl FromStr for Method {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|m| m.name() == name).ok_or_else(|| Error::Option {
            name: "method",
            reason: format!("'{name}' is none of {}", Self::ALL.map(|m| m.name()).join(", ")),
        })
    }
}
