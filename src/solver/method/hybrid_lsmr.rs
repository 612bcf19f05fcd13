//! Hybrid LSMR: [`hybrid_lsqr`](super::hybrid_lsqr) with iterates that have the least gradient.
//!
//! ```text
//!   x_k = x_0 + V_k y,   y = argmin |A'(b - A x) - damp_k² (x - x_0)|               LSMR for the damped problem, in the same space
//!       = argmin |alpha_1 beta_1 e_1 - (T_k + damp_k² I) y|                         T_k = B_k'B_k and the row alpha_{k+1} beta_{k+1} e_k'
//! ```
//!
//! The space, the weight and its rules, the vectors held and the cost are those of hybrid LSQR: the spaces of the damped problem are
//! those of the one without damping, so that `damp` may change in each iteration. Both come to the same answer as the space grows. On the way the
//! gradient never rises while the weight stays the same, and iterates are smoother: if the weight is too small, they take up less noise than
//! those of LSQR. If a larger space no longer changes the answer when the rule is done, LSQR and LSMR give the same answer. The discrepancy
//! principle looks at the residual of LSMR's own iterate, which falls to the level of the noise an iteration or two later than that of LSQR.
//!
//! Vectors held: `subspace` of either space, and 3. Launches: 14. Bytes: those of hybrid LSQR.
//!
//! Source: J. Chung and K. Palmer, "A hybrid LSMR algorithm for large-scale Tikhonov regularization", SIAM J. Sci. Comput. 37(5), 2015;
//! D. C.-L. Fong and M. A. Saunders, "LSMR: an iterative algorithm for sparse least-squares problems", SIAM J. Sci. Comput. 33(5), 2011.

pub(super) use super::hybrid_lsqr::script;
use super::info::{LEAST_SQUARES, MethodInfo};

pub(super) const INFO: MethodInfo = MethodInfo { name: "hybrid-lsmr", ..LEAST_SQUARES };
