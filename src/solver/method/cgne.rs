//! CGNE (Craig's method): the solution of least norm, or the one nearest to the start, of a system that has one.
//!
//! ```text
//!   alpha = r.r / p.p,  r' = r - alpha A p,  x += alpha p
//!   beta = r'.r' / r.r,  p' = A'r' + beta p
//! ```
//!
//! Conjugate gradients for `A A'y = b`, `x = A'y`: the error, not the residual, falls in every step. Three launches.
//! Without a solution it does not converge, and says so.
//!
//! Source: Y. Saad, "Iterative methods for sparse linear systems", 2nd ed. 2003, algorithm 8.5; E. J. Craig, "The N-step
//! iteration procedures", J. Math. Phys. 34, 1955.

use super::info::{LEAST_SQUARES, MethodInfo};
use crate::recurrence::{MINUS_ONE, ONE, ZERO};
use crate::solver::script::Space::{Cols, Rows};
use crate::solver::script::{Draft, Operand, Product, Script, Update, X};
use crate::state::stop;

pub(super) const INFO: MethodInfo =
    MethodInfo { name: "cgne", carries_residual: true, gradient: false, lowers_error: true, ..LEAST_SQUARES };

pub(super) fn script(draft: &mut Draft) -> Script {
    let r = draft.vectors::<2>(Rows);
    let p = draft.vectors::<2>(Cols);
    let rr = draft.sum(Rows);
    let pp = draft.sum(Cols);
    let [rho, alpha, minus_alpha, beta] = draft.scalars();
    let residual = draft.residual(r[0], rr);
    let first = draft.call(Product::of(Operand::Adjoint, r[0], p[0]).square(pp), |s| {
        let rr = s.fold(rr);
        s.test(rr);
        s.set(rho, rr);
    });
    let step = |draft: &mut Draft, now: usize| {
        let new = 1 - now;
        let product = Product::of(Operand::A, p[now], r[new]).scaled(minus_alpha).plus(ONE, r[now]).square(rr);
        let product = draft.call(product, |s| {
            let pp = s.fold(pp);
            s.require_finite(pp);
            // A'r = 0 although r is not: the system has no solution.
            s.stop_unless_less(ZERO, pp, stop::BREAKDOWN);
            s.set(alpha, rho / pp);
            s.set(minus_alpha, MINUS_ONE * alpha);
            s.count();
        });
        let advance = draft.call(Update::of(Cols).set(X, &[(ONE, X), (alpha, p[now])]), |_| {});
        let direction = Product::of(Operand::Adjoint, r[new], p[new]).plus(beta, p[now]).square(pp);
        let again = direction.clone();
        let direction = draft.call(direction, |s| {
            let rr = s.fold(rr);
            s.test(rr);
            s.set(beta, rr / rho);
            s.set(rho, rr);
        });
        let residual = draft.residual(r[new], rr);
        let again = draft.call(again, |s| {
            let rr = s.fold(rr);
            s.test(rr);
            s.set(rho, rr);
        });
        [vec![product, advance, direction], vec![residual, again]]
    };
    let [[even, even_exact], [odd, odd_exact]] = [step(draft, 0), step(draft, 1)];
    // After iteration k, counted from 1, lies in place k % 2 what step k - 1 wrote.
    Script {
        start: vec![residual, first],
        steps: vec![even, odd],
        exact: vec![odd_exact, even_exact],
        ..Script::default()
    }
}
