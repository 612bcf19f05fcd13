//! Flexible conjugate gradients, for symmetric positive definite systems with a preconditioner that changes from iteration to
//! iteration: an inner iteration, for example.
//!
//! ```text
//!   r = b - A x,  z = M r,  p = z                            start
//!   q = A p
//!   alpha = p.r / p.q,  x += alpha p,  r -= alpha q,  z = M' r
//!   beta = -z'.q / p.q,  p = z' + beta p
//! ```
//!
//! `beta` makes the new direction conjugate to the last one by its definition; [`pcg`](super::pcg) trusts that `M` is the same
//! operator in both. With a fixed `M` the iterates are those of PCG up to rounding. Three launches, with a preconditioner that is
//! not diagonal four, beside those of `M`.
//!
//! Source: Y. Notay, "Flexible conjugate gradients", SIAM J. Sci. Comput. 22(4), 2000, algorithm FCG(1); G. H. Golub and Q. Ye,
//! "Inexact preconditioned conjugate gradient method with inner-outer iteration", SIAM J. Sci. Comput. 21(4), 1999.

use super::info::{MethodInfo, SQUARE, Symmetry};
use crate::recurrence::{MINUS_ONE, ONE, ZERO};
use crate::solver::script::Space::Rows;
use crate::solver::script::{Draft, Operand, Preconditioning, Product, Script, Update, X};
use crate::state::stop;

pub(super) const INFO: MethodInfo = MethodInfo {
    name: "flexible-cg",
    symmetry: Symmetry::Definite,
    preconditioner: true,
    carries_residual: true,
    lowers_error: true,
    ..SQUARE
};

pub(super) fn script(draft: &mut Draft, preconditioning: Preconditioning) -> Script {
    let [r, p, q] = draft.vectors(Rows);
    let z = if preconditioning == Preconditioning::None { r } else { draft.vector(Rows) };
    let [rr, zr, pr, pq, zq] = draft.sums(Rows);
    let [rho, curvature, alpha, minus_alpha, beta] = draft.scalars();
    // z = M r, if that is done in a pass over vectors.
    let preconditioned = |update: Update| match preconditioning {
        Preconditioning::Diagonal(d) => update.multiply(z, d, r),
        _ => update,
    };
    let by_operator = preconditioning == Preconditioning::Operator;

    let residual = draft.residual(r, rr);
    let apply = draft.call(Product::of(Operand::Preconditioner, r, z), |_| {});
    let first =
        draft.call(preconditioned(Update::of(Rows)).set(p, &[(ONE, z)]).dot(pr, p, r).dot(zr, z, r), |_| {});
    let product = draft.call(Product::of(Operand::A, p, q).dot(pq, p), |s| {
        let (rr, zr, pr) = (s.fold(rr), s.fold(zr), s.fold(pr));
        s.test(rr);
        // r.Mr <= 0: the preconditioner is not definite.
        s.require_finite(zr);
        s.stop_unless_less(ZERO, zr, stop::INDEFINITE_PRECONDITIONER);
        // p.r is z.r but for rounding, since the last direction is orthogonal to r.
        s.stop_unless_less(ZERO, pr, stop::BREAKDOWN);
        s.set(rho, pr);
    });
    let update = Update::of(Rows).set(X, &[(ONE, X), (alpha, p)]).set(r, &[(ONE, r), (minus_alpha, q)]);
    let update = preconditioned(update).dot(rr, r, r);
    let update = if by_operator { update } else { update.dot(zq, z, q) };
    let update = draft.call(update, |s| {
        let pq = s.fold(pq);
        s.require_positive_curvature(pq);
        s.set(curvature, pq);
        s.set(alpha, rho / pq);
        s.set(minus_alpha, MINUS_ONE * alpha);
        s.count();
    });
    let apply_and_compare = draft.call(Product::of(Operand::Preconditioner, r, z).dot(zq, q), |_| {});
    let direction = draft.call(Update::of(Rows).set(p, &[(ONE, z), (beta, p)]).dot(pr, p, r).dot(zr, z, r), |s| {
        let zq = s.fold(zq);
        s.set(beta, MINUS_ONE * zq / curvature);
    });
    // The residual afresh: the direction keeps what is not z in it.
    let without = draft.call(Update::of(Rows).set(p, &[(ONE, p), (MINUS_ONE, z)]), |_| {});
    let with = preconditioned(Update::of(Rows)).set(p, &[(ONE, p), (ONE, z)]).dot(pr, p, r).dot(zr, z, r);
    let with = draft.call(with, |_| {});
    let applied = |call| if by_operator { Some(call) } else { None };
    let start = [Some(residual.clone()), applied(apply.clone()), Some(first), Some(product.clone())];
    let step = [Some(update), applied(apply_and_compare), Some(direction), Some(product.clone())];
    let exact = [Some(without), Some(residual), applied(apply), Some(with), Some(product)];
    Script {
        start: start.into_iter().flatten().collect(),
        steps: vec![step.into_iter().flatten().collect()],
        exact: vec![exact.into_iter().flatten().collect()],
        ..Script::default()
    }
}
