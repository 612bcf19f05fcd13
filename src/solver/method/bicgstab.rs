//! BiCGSTAB, for square systems of any kind, preconditioned from the right.
//!
//! ```text
//!   p = r + beta (p - omega v),  v = A M p
//!   alpha = rho / r̂.v,           s = r - alpha v
//!   t = A M s,                   omega = t.s / t.t
//!   x += alpha M p + omega M s,  r = s - omega t
//!   rho' = r̂.r,                  beta = (rho' / rho) (alpha / omega)
//! ```
//!
//! Five launches, with a preconditioner that is not diagonal two more. `r̂` is the residual of a start. If a divisor is 0 although
//! the residual is not, the method starts again from the present `x`. The new `r̂` is the residual there. If this happened in the first step,
//! `x` has not moved, and `r̂` is the same as before.
//!
//! Source: H. A. van der Vorst, "Bi-CGSTAB: a fast and smoothly converging variant of Bi-CG", SIAM J. Sci. Stat.
//! Comput. 13(2), 1992.

use super::info::{MethodInfo, SQUARE};
use crate::recurrence::{MINUS_ONE, ONE, ZERO};
use crate::solver::script::Space::Rows;
use crate::solver::script::{Draft, Operand, Preconditioning, Product, Script, Update, X};
use crate::state::stop;

pub(super) const INFO: MethodInfo =
    MethodInfo { name: "bicgstab", preconditioner: true, carries_residual: true, ..SQUARE };

pub(super) fn script(draft: &mut Draft, preconditioning: Preconditioning) -> Script {
    // s is kept in r.
    let [r, shadow, p, v, t] = draft.vectors(Rows);
    let [rr, rho_sum, rv, tt, ts] = draft.sums(Rows);
    let [rho, alpha, minus_alpha, omega, minus_omega, beta, minus_beta_omega] = draft.scalars();
    let [mp, mr] = match preconditioning {
        Preconditioning::None => [p, r],
        _ => draft.vectors(Rows),
    };
    let also = |update: Update, target, of| match preconditioning.diagonal() {
        Some(d) => update.multiply(target, d, of),
        None => update,
    };
    let residual = draft.residual(r, rr);
    let begin = Update::of(Rows).set(shadow, &[(ONE, r)]).set(p, &[(ONE, r)]);
    let begin = draft.call(also(begin, mp, p), |s| {
        let rr = s.fold(rr);
        s.test(rr);
        s.set(rho, rr);
    });
    let apply_p = draft.call(Product::of(Operand::Preconditioner, p, mp), |_| {});
    let product_p = draft.call(Product::of(Operand::A, mp, v).dot(rv, shadow), |_| {});
    let half = Update::of(Rows).set(r, &[(ONE, r), (minus_alpha, v)]);
    let half = draft.call(also(half, mr, r), |s| {
        let rv = s.fold(rv);
        s.require_finite(rv);
        s.stop_at_zero(rv, stop::BREAKDOWN);
        s.set(alpha, rho / rv);
        s.set(minus_alpha, MINUS_ONE * alpha);
    });
    let apply_r = draft.call(Product::of(Operand::Preconditioner, r, mr), |_| {});
    let product_r = draft.call(Product::of(Operand::A, mr, t).square(tt).dot(ts, r), |_| {});
    let update = Update::of(Rows)
        .set(X, &[(ONE, X), (alpha, mp), (omega, mr)])
        .set(r, &[(ONE, r), (minus_omega, t)])
        .dot(rr, r, r)
        .dot(rho_sum, r, shadow);
    let update = draft.call(update, |s| {
        let (tt, ts) = (s.fold(tt), s.fold(ts));
        s.require_finite(tt);
        // t = 0 only if s = 0: the half step has solved the system.
        s.set(omega, ZERO);
        s.set_if_positive(tt, omega, ts / tt);
        s.set(minus_omega, MINUS_ONE * omega);
        s.count();
    });
    let direction = Update::of(Rows).set(p, &[(ONE, r), (beta, p), (minus_beta_omega, v)]);
    let direction = draft.call(also(direction, mp, p), |s| {
        let (rr, next_rho) = (s.fold(rr), s.fold(rho_sum));
        s.test(rr);
        s.stop_at_zero(omega, stop::BREAKDOWN);
        s.stop_at_zero(next_rho, stop::BREAKDOWN);
        s.set(beta, (next_rho / rho) * (alpha / omega));
        s.set(minus_beta_omega, MINUS_ONE * (beta * omega));
        s.set(rho, next_rho);
    });
    let without = draft.call(Update::of(Rows).set(p, &[(ONE, p), (MINUS_ONE, r)]), |_| {});
    let with = Update::of(Rows).set(p, &[(ONE, p), (ONE, r)]).dot(rho_sum, r, shadow);
    let with = draft.call(also(with, mp, p), |_| {});
    let product_exact = draft.call(Product::of(Operand::A, mp, v).dot(rv, shadow), |s| {
        let (rr, next_rho) = (s.fold(rr), s.fold(rho_sum));
        s.test(rr);
        s.stop_at_zero(next_rho, stop::BREAKDOWN);
        s.set(rho, next_rho);
    });
    let (start, step, exact) = match preconditioning {
        Preconditioning::Operator => (
            vec![residual.clone(), begin, apply_p.clone(), product_p.clone()],
            vec![half, apply_r, product_r, update, direction, apply_p.clone(), product_p],
            vec![without, residual, with, apply_p, product_exact],
        ),
        _ => (
            vec![residual.clone(), begin, product_p.clone()],
            vec![half, product_r, update, direction, product_p],
            vec![without, residual, with, product_exact],
        ),
    };
    Script { start, steps: vec![step], exact: vec![exact], ..Script::default() }
}
