//! The methods: names, parameters, and what each takes. A file for each has the recurrence, cost and source; [`scripts`] names their scripts.
//!
//! The cost that a file tells is that of one right-hand side. Launches and bytes are those of one iteration; "vectors" are read or
//! written beside the products. For an `A` of `m` rows and `n` columns, vectors of rows have `m` elements, and vectors of columns have `n`.

pub mod bicgstab;
pub mod bicgstab2;
mod bidiagonal;
pub mod cgls;
pub mod cgne;
pub mod cgnr;
pub mod chebyshev;
pub mod fista;
pub mod flexible_cg;
pub mod gmres;
pub mod hybrid_lsmr;
pub mod hybrid_lsqr;
mod info;
pub mod lsmr;
pub mod lsqr;
pub mod minres;
pub mod mlem;
pub mod mrnsd;
pub mod nnfcgls;
pub mod pcg;
pub mod pdhg;
pub mod penalised;
pub mod sart;
pub(crate) mod scripts;
pub mod sirt;
pub mod stationary;
pub mod steepest_descent;

use std::fmt::{Display, Formatter, Result as FmtResult};
use std::str::FromStr;

pub(crate) use info::Symmetry;
use info::{Bounds, MethodInfo};

use super::weight::{Least, WeightRule};
use crate::error::{Error, Result, named};
use crate::text::listed;

/// An iterative method and its parameters. [`methods`](crate::methods) has the recurrence, cost and source of each.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Method {
    /// Conjugate gradients: symmetric positive definite systems.
    Cg,
    /// Flexible conjugate gradients: symmetric positive definite systems, a preconditioner that may change in each iteration.
    FlexibleCg,
    /// Steepest descent: symmetric positive definite systems, slower than CG.
    SteepestDescent,
    /// MINRES: symmetric systems, definite or not, singular or not.
    Minres,
    /// BiCGSTAB: square systems, short recurrences, no guarantee.
    BiCgStab,
    /// BiCGSTAB(2): as BiCGSTAB, for eigenvalues with large imaginary parts too; four products in an iteration.
    BiCgStab2,
    /// GMRES: square systems; the residual never grows, and each direction is kept until a restart.
    Gmres {
        /// Directions kept before it starts again, 1 to 100; each takes a vector.
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
    /// Hybrid LSQR: `min |A x - b|² + damp² |x - x_0|²` with a `damp` that it chooses.
    HybridLsqr {
        /// The rule that chooses `damp`.
        weight: WeightRule,
        /// Most iterations, 1 to 100; each takes a vector of either space.
        subspace: usize,
    },
    /// Hybrid LSMR: the problem of hybrid LSQR, by iterates with the least gradient.
    HybridLsmr {
        /// The rule that chooses `damp`.
        weight: WeightRule,
        /// Most iterations, 1 to 100; each takes a vector of either space.
        subspace: usize,
    },
    /// Regularised CGNR: `min |A x - b|² / 2 + R(x)` with the [`Regularization`](crate::Regularization) `R` of
    /// [`Setup::with_regularizations`](crate::Setup::with_regularizations), or a [`Penalty`](crate::Penalty) of the user's own.
    Cgnr,
    /// FISTA: accelerated projected gradients, `min |A x - b|² / 2 + tikhonov |x|² / 2` within bounds, which every iterate keeps.
    Fista,
    /// PDHG: `min |A x - b|² / 2` with total variation, within bounds, which every iterate keeps.
    Pdhg,
    /// SIRT: `min sum_i (b - A x)_i² / (A 1)_i` within bounds, for an operator without negative entries.
    Sirt {
        /// Length of a step, above 0 and below 2.
        omega: f64,
    },
    /// SART: a step of SIRT after each subset of the rows ([`Subsets`](crate::operator::Subsets)), OS-SIRT or OS-SART where subsets have several angles;
    /// within bounds, for an operator without negative entries. Without subsets a step after all rows.
    Sart {
        /// Length of a step, above 0 and below 2.
        omega: f64,
    },
    /// MLEM: the likelihood of counts with the noise of Poisson, `max sum_i b_i log (A x)_i - (A x)_i` over `x >= 0`, for an operator
    /// without negative entries.
    Mlem,
    /// MRNSD: `min |A x - b|²` within lower bounds, 0 unless others are given; slow and steady.
    Mrnsd,
    /// NNFCGLS: flexible CGLS with the problem of MRNSD.
    Nnfcgls {
        /// Directions kept before it starts again, 1 to 100; each takes a vector of either space.
        restart: usize,
    },
}

impl Method {
    /// Every method, with neutral parameters (bounds 1 and 2 as placeholders for Chebyshev's, which has no neutral ones; 30 directions for GMRES and NNFCGLS; weighted GCV and 100 for hybrid LSQR and LSMR).
    pub const ALL: &'static [Self] = &[
        Self::Cg,
        Self::FlexibleCg,
        Self::SteepestDescent,
        Self::Minres,
        Self::BiCgStab,
        Self::BiCgStab2,
        Self::Gmres { restart: 30 },
        Self::Chebyshev { smallest: 1.0, largest: 2.0 },
        Self::Stationary { omega: 1.0 },
        Self::Cgls { damp: 0.0 },
        Self::Cgne,
        Self::Lsqr { damp: 0.0 },
        Self::Lsmr { damp: 0.0 },
        Self::HybridLsqr { weight: WeightRule::WeightedGcv, subspace: 100 },
        Self::HybridLsmr { weight: WeightRule::WeightedGcv, subspace: 100 },
        Self::Cgnr,
        Self::Fista,
        Self::Pdhg,
        Self::Sirt { omega: 1.0 },
        Self::Sart { omega: 1.0 },
        Self::Mlem,
        Self::Mrnsd,
        Self::Nnfcgls { restart: 30 },
    ];

    fn info(&self) -> MethodInfo {
        match self {
            Self::Cg => pcg::INFO,
            Self::FlexibleCg => flexible_cg::INFO,
            Self::SteepestDescent => steepest_descent::INFO,
            Self::Minres => minres::INFO,
            Self::BiCgStab => bicgstab::INFO,
            Self::BiCgStab2 => bicgstab2::INFO,
            Self::Gmres { .. } => gmres::INFO,
            Self::Chebyshev { .. } => chebyshev::INFO,
            Self::Stationary { .. } => stationary::INFO,
            Self::Cgls { .. } => cgls::INFO,
            Self::Cgne => cgne::INFO,
            Self::Lsqr { .. } => lsqr::INFO,
            Self::Lsmr { .. } => lsmr::INFO,
            Self::HybridLsqr { .. } => hybrid_lsqr::INFO,
            Self::HybridLsmr { .. } => hybrid_lsmr::INFO,
            Self::Cgnr => cgnr::INFO,
            Self::Fista => fista::INFO,
            Self::Pdhg => pdhg::INFO,
            Self::Sirt { .. } => sirt::INFO,
            Self::Sart { .. } => sart::INFO,
            Self::Mlem => mlem::INFO,
            Self::Mrnsd => mrnsd::INFO,
            Self::Nnfcgls { .. } => nnfcgls::INFO,
        }
    }

    /// The names of those that are wanted, as a sentence lists them.
    pub(crate) fn names(wanted: impl Fn(&Self) -> bool) -> String {
        let names: Vec<&str> = Self::ALL.iter().filter(|method| wanted(method)).map(Self::name).collect();
        listed(&names, "and")
    }

    /// Name, as [`Method::from_str`] reads it.
    pub fn name(&self) -> &'static str {
        self.info().name
    }

    /// Tells if the operator may be rectangular; such methods need its adjoint.
    pub fn takes_rectangles(&self) -> bool {
        self.info().rectangles
    }

    /// Tells if its vectors hold products with the operator, or with it and its adjoint, twice.
    pub(crate) fn squares(&self) -> bool {
        self.info().squares
    }

    /// Symmetry that it asks of the operator.
    pub(crate) fn symmetry(&self) -> Symmetry {
        self.info().symmetry
    }

    /// Tells if its recurrence carries the residual, which can then be computed afresh now and then
    /// ([`Stopping::exact_every`](crate::Stopping::exact_every)). The others have none, or an exact one already.
    pub fn carries_residual(&self) -> bool {
        self.info().carries_residual
    }

    /// Tells if it may also stop by the gradient ([`Stopping::gradient_rtol`](crate::Stopping::gradient_rtol)).
    pub fn has_gradient(&self) -> bool {
        self.info().gradient
    }

    /// Tells if a preconditioner can be used: of the system, or from the right
    /// ([`Setup::preconditioner`](crate::Setup::preconditioner)) if it takes rectangles.
    pub fn takes_preconditioner(&self) -> bool {
        self.info().preconditioner
    }

    /// Tells if it makes the error `x - A^-1 b` smaller in every iteration, in a norm of its own, while the residual may rise: then the last
    /// iterate is the best one, whatever its residual.
    pub fn lowers_error(&self) -> bool {
        self.info().lowers_error
    }

    /// Tells if it minimises terms beside the misfit ([`Setup::with_regularizations`](crate::Setup::with_regularizations)).
    pub fn takes_regularizations(&self) -> bool {
        self.info().bounds != Bounds::None
    }

    /// Tells if it minimises the term of this name of a [`Regularization`](crate::Regularization).
    pub(crate) fn has_term(&self, name: &str) -> bool {
        self.info().terms.contains(&name)
    }

    /// Tells if every iterate keeps bounds of each unknown ([`Solver::set_bounds`](crate::Solver::set_bounds)): lower ones alone, or both.
    pub fn keeps_bounds(&self) -> bool {
        matches!(self.info().bounds, Bounds::Lower | Bounds::Both)
    }

    /// Tells if it keeps lower bounds and none from above, 0 where none is given.
    pub fn keeps_lower_bounds_alone(&self) -> bool {
        self.info().bounds == Bounds::Lower
    }

    /// Tells if the operator may have negative entries: not for methods that weigh by sums of rows and columns.
    pub fn takes_negative_entries(&self) -> bool {
        self.info().negative_entries
    }

    /// The damping of a least-squares method that has it as a parameter, else 0.
    pub(crate) fn damp(&self) -> f64 {
        match *self {
            Self::Cgls { damp } | Self::Lsqr { damp } | Self::Lsmr { damp } => damp,
            _ => 0.0,
        }
    }

    /// This method without damping.
    pub(crate) fn undamped(self) -> Self {
        match self {
            Self::Cgls { .. } => Self::Cgls { damp: 0.0 },
            Self::Lsqr { .. } => Self::Lsqr { damp: 0.0 },
            Self::Lsmr { .. } => Self::Lsmr { damp: 0.0 },
            other => other,
        }
    }

    /// The rule of a method that chooses the weight of its damping, and what its iterates make least.
    pub(super) fn weighs(&self) -> Option<(WeightRule, Least)> {
        match *self {
            Self::HybridLsqr { weight, .. } => Some((weight, Least::Objective)),
            Self::HybridLsmr { weight, .. } => Some((weight, Least::Gradient)),
            _ => None,
        }
    }

    /// Fails on a parameter that cannot be meant.
    pub(super) fn validate(&self) -> Result<()> {
        let refuse = |name, reason| Err(Error::Option { name, reason });
        let damp = self.damp();
        match *self {
            _ if !(damp >= 0.0 && damp.is_finite()) => {
                refuse("damp", format!("{damp} is not a number of at least 0"))
            }
            Self::Stationary { omega } if !(omega > 0.0 && omega.is_finite()) => {
                refuse("omega", format!("{omega} is not a number above 0"))
            }
            Self::Sirt { omega } | Self::Sart { omega } if !(omega > 0.0 && omega < 2.0) => {
                refuse("omega", format!("{omega} is not above 0 and below 2"))
            }
            Self::Gmres { restart } | Self::Nnfcgls { restart } if !(1..=100).contains(&restart) => {
                refuse("restart", format!("{restart} is not between 1 and 100"))
            }
            Self::HybridLsqr { subspace, .. } | Self::HybridLsmr { subspace, .. }
                if !(1..=100).contains(&subspace) =>
            {
                refuse("subspace", format!("{subspace} is not between 1 and 100"))
            }
            Self::HybridLsqr { weight, .. } | Self::HybridLsmr { weight, .. } => weight.validate(),
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
        match named("method", name, Self::ALL, |method| method.name())? {
            // The bounds in `ALL` are placeholders.
            Self::Chebyshev { .. } => {
                let reason = format!("{name} needs bounds of the eigenvalues: name them in Method::Chebyshev");
                Err(Error::Option { name: "method", reason })
            }
            method => Ok(method),
        }
    }
}
