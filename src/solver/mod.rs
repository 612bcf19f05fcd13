//! Iterative methods. [`run`] alone loops, stops, verifies and reports. A method is a script ([`script`]) that [`engine`] runs.
//!
//! - A **launch** is one kernel call on a device. On the host it is the same work as a function.
//! - A **script** lists the calls of a method. A **call** is a step of it: most are one launch.
//! - A **program** is a short list of scalar operations, with which most launches begin (`crate::recurrence`).
//! - A **pass** is a launch that updates several vectors element by element, and sums dot products of them.
//! - A **start** computes `b - A x` from the present `x` and begins the method anew. A solve begins with one. Each claim of convergence is
//!   verified by another.
//! - A **look** reads the status and the last norms from the device. Iterations are queued in batches, with a look after each.
//! - A **resident** launch does many iterations. Its groups wait for each other on the device.
//!
//! Submodules from the lowest level up: [`weight`] and [`script`], [`method`], [`stopping`], [`regularise`],
//! [`run`], [`engine`]. Each imports lower ones alone. The files beside them set a solve up.

mod direct;
mod engine;
mod method;
mod null_space;
mod regularise;
mod right;
mod run;
mod scaling;
mod script;
mod setup;
mod solve;
mod stopping;
mod system;
mod weight;

/// Recurrence, launches and source of every method: a page for each.
pub mod methods {
    pub use super::method::{
        bicgstab, bicgstab2, cgls, cgne, cgnr, chebyshev, fista, flexible_cg, gmres, hybrid_lsmr, hybrid_lsqr,
        lsmr, lsqr, minres, mlem, mrnsd, nnfcgls, pcg, pdhg, penalised, sart, sirt, stationary, steepest_descent,
    };
}

pub use method::Method;
pub(crate) use method::Symmetry;
pub use null_space::NullSpace;
pub use regularise::{Penalty, Regularization, SharedPenalty};
pub use run::{Observer, Progress, Report, Stop, Times};
pub use setup::Setup;
pub use solve::Solver;
pub use stopping::{Answer, RuleCurve, RulePoint, StopRule, Stopping};
pub use weight::{ChosenWeight, WeightPoint, WeightRule, WeightStop};
