//! The script of each method.

use super::{
    Method, bicgstab, bicgstab2, cgls, cgne, cgnr, chebyshev, fista, flexible_cg, gmres, hybrid_lsmr, hybrid_lsqr,
    lsmr, lsqr, minres, mlem, mrnsd, nnfcgls, pcg, pdhg, penalised, sart, sirt, stationary, steepest_descent,
};
use crate::backend::script::Edges;
use crate::magnitude::scale;
use crate::runs::Runs;
use crate::solver::script::{CgnrKernels, Draft, Neighbours, Preconditioning, Script};

/// Problem that a script is made for.
pub(crate) struct Task {
    pub(crate) preconditioning: Preconditioning,
    pub(crate) rows: usize,
    /// Rounding error of the vectors.
    pub(crate) epsilon: f64,
    /// Exponent of the power of two by which the operator is multiplied.
    pub(crate) operator: i32,
    /// Exponent by which the preconditioned operator is multiplied.
    pub(crate) preconditioned: i32,
    /// Terms over neighbours of an image.
    pub(crate) neighbours: Neighbours,
    /// Tells if a penalty of the user's own has a curvature, if there is one.
    pub(crate) curved: Option<bool>,
    /// The image of CGNR's regularizations, and the kernels that it has.
    pub(crate) edges: Edges,
    pub(crate) kernels: CgnrKernels,
    /// Places of the rows of each subset.
    pub(crate) subsets: Vec<Runs>,
}

impl Method {
    /// The script of the method.
    pub(crate) fn script(&self, draft: &mut Draft, task: &Task) -> Script {
        let &Task {
            preconditioning,
            rows,
            epsilon,
            operator,
            preconditioned,
            neighbours,
            curved,
            edges,
            kernels,
            ref subsets,
        } = task;
        match *self {
            Self::Cg => pcg::script(draft, preconditioning),
            Self::FlexibleCg => flexible_cg::script(draft, preconditioning),
            Self::SteepestDescent => steepest_descent::script(draft),
            Self::Minres => minres::script(draft, preconditioning),
            Self::BiCgStab => bicgstab::script(draft, preconditioning),
            Self::BiCgStab2 => bicgstab2::script(draft, preconditioning),
            Self::Gmres { restart } => gmres::script(draft, preconditioning, restart.min(rows.max(1)), epsilon),
            Self::Chebyshev { smallest, largest } => {
                let bounds = [smallest, largest].map(|bound| scale(bound, preconditioned));
                chebyshev::script(draft, preconditioning, bounds)
            }
            Self::Stationary { omega } => stationary::script(draft, preconditioning, scale(omega, -preconditioned)),
            Self::Cgls { damp } => cgls::script(draft, scale(damp, operator)),
            Self::Cgne => cgne::script(draft),
            Self::Lsqr { damp } => lsqr::script(draft, scale(damp, operator)),
            Self::Lsmr { damp } => lsmr::script(draft, scale(damp, operator)),
            Self::HybridLsqr { subspace, .. } => hybrid_lsqr::script(draft, subspace, epsilon),
            Self::HybridLsmr { subspace, .. } => hybrid_lsmr::script(draft, subspace, epsilon),
            Self::Cgnr => match curved {
                Some(curved) => penalised::script(draft, curved),
                None => cgnr::script(draft, edges, kernels),
            },
            Self::Fista => fista::script(draft, epsilon),
            Self::Pdhg => pdhg::script(draft, neighbours, epsilon),
            Self::Sirt { omega } => sirt::script(draft, omega, epsilon),
            Self::Sart { omega } => sart::script(draft, omega, epsilon, subsets),
            Self::Mlem => mlem::script(draft, epsilon),
            Self::Mrnsd => mrnsd::script(draft, epsilon),
            Self::Nnfcgls { restart } => nnfcgls::script(draft, restart, epsilon),
        }
    }
}
