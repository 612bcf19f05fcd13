//! Steepest descent.
//!
//! ```text
//!   q = A r
//!   alpha = r.r / r.q,  x += alpha r,  r -= alpha q
//! ```
//!
//! Two launches. Converges as `((kappa - 1) / (kappa + 1))^k` for a symmetric positive definite `A` of condition
//! `kappa`. Other methods are compared with it; it suits systems close to the identity.
//!
//! Source: J. R. Shewchuk, "An introduction to the conjugate gradient method without the agonizing pain", 1994, B1.

use super::info::{MethodInfo, SQUARE, Symmetry};
use crate::recurrence::{MINUS_ONE, ONE};
use crate::solver::script::Space::Rows;
use crate::solver::script::{Draft, Operand, Product, Script, Update, X};

pub(super) const INFO: MethodInfo = MethodInfo {
    name: "steepest-descent",
    symmetry: Symmetry::Definite,
    carries_residual: true,
    lowers_error: true,
    ..SQUARE
};

pub(super) fn script(draft: &mut Draft) -> Script {
    let [r, q] = draft.vectors(Rows);
    let [rr, rq] = draft.sums(Rows);
    let [rho, alpha, minus_alpha] = draft.scalars();
    let residual = draft.residual(r, rr);
    let product = draft.call(Product::of(Operand::A, r, q).dot(rq, r), |s| {
        let rr = s.fold(rr);
        s.test(rr);
        s.set(rho, rr);
    });
    let update =
        Update::of(Rows).set(X, &[(ONE, X), (alpha, r)]).set(r, &[(ONE, r), (minus_alpha, q)]).dot(rr, r, r);
    let update = draft.call(update, |s| {
        let rq = s.fold(rq);
        s.require_positive_curvature(rq);
        s.set(alpha, rho / rq);
        s.set(minus_alpha, MINUS_ONE * alpha);
        s.count();
    });
    let start = vec![residual, product.clone()];
    Script { start: start.clone(), steps: vec![vec![update, product]], exact: vec![start], ..Script::default() }
}
