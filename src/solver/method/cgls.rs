//! CGLS: conjugate gradients for least squares, `min |A x - b|² + damp² |x - x_ref|²`.
//!
//! ```text
//!   q = A p,   alpha = s.s / (q.q + damp² p.p),  r -= alpha q,  x += alpha p
//!   s = A'r - damp² (x - x_ref)
//!   beta = s'.s' / s.s,  p = s' + beta p
//! ```
//!
//! `s` is half the negative gradient. Four launches, five with damping. The same minimiser as LSQR, from a recurrence
//! that keeps `r` and `s` themselves; the regularised, fused sibling is [`cgnr`](super::cgnr).
//!
//! Source: Å. Björck, "Numerical methods for least squares problems", SIAM 1996, algorithm 7.4.1.

use super::info::{LEAST_SQUARES, MethodInfo};
use crate::recurrence::{MINUS_ONE, ONE, ZERO};
use crate::solver::script::Space::{Cols, Rows};
use crate::solver::script::{Draft, Operand, Product, Residual, Script, Update, X};
use crate::state::stop;

pub(super) const INFO: MethodInfo =
    MethodInfo { name: "cgls", preconditioner: true, carries_residual: true, ..LEAST_SQUARES };

pub(super) fn script(draft: &mut Draft, damp: f64) -> Script {
    let damped = damp > 0.0;
    let [r, q] = draft.vectors(Rows);
    let [s, p] = draft.vectors(Cols);
    let [rr, qq] = draft.sums(Rows);
    let [ss, pp] = draft.sums(Cols);
    let [gamma, alpha, minus_alpha, beta] = draft.scalars();
    let [damp2, minus_damp2] = [damp * damp, -damp * damp].map(|v| draft.constant(v));
    let [reference, apart] = if damped { draft.vectors(Cols) } else { [X; 2] };

    let residual = draft.residual(r, rr);
    let from_reference = Update::of(Cols).set(apart, &[(ONE, X), (MINUS_ONE, reference)]);
    let from_reference = damped.then(|| draft.call(from_reference, |_| {}));
    let gradient = Product::of(Operand::Adjoint, r, s).square(ss);
    let gradient = if damped { gradient.plus(minus_damp2, apart) } else { gradient };
    let gradient = draft.call(gradient, |_| {});
    let with_norm = |update: Update| if damped { update.dot(pp, p, p) } else { update };
    let first = draft.call(with_norm(Update::of(Cols).set(p, &[(ONE, s)])), |_| {});
    let product = draft.call(Product::of(Operand::A, p, q).square(qq), |t| {
        let (rr, ss) = (t.fold(rr), t.fold(ss));
        t.test_least_squares(rr, ss);
        t.set(gamma, ss);
    });
    let update_r = draft.call(Update::of(Rows).set(r, &[(ONE, r), (minus_alpha, q)]).dot(rr, r, r), |t| {
        let qq = t.fold(qq);
        t.require_finite(qq);
        let curvature = if damped {
            let pp = t.fold(pp);
            qq + damp2 * pp
        } else {
            qq + ZERO
        };
        t.set(alpha, curvature);
        t.stop_unless_less(ZERO, alpha, stop::BREAKDOWN);
        t.set(alpha, gamma / alpha);
        t.set(minus_alpha, MINUS_ONE * alpha);
        t.count();
    });
    let advance = Update::of(Cols).set(X, &[(ONE, X), (alpha, p)]);
    let direction = |update: Update| with_norm(update.set(p, &[(ONE, s), (beta, p)]));
    let (advance, direction) = if damped {
        // x - x_ref enters the gradient, so it has to be there before.
        let advance = advance.set(apart, &[(ONE, apart), (alpha, p)]);
        (Some(draft.call(advance, |_| {})), direction(Update::of(Cols)))
    } else {
        (None, direction(advance))
    };
    let direction = draft.call(direction, |t| {
        let ss = t.fold(ss);
        t.set(beta, ss / gamma);
    });
    let without = draft.call(Update::of(Cols).set(p, &[(ONE, p), (MINUS_ONE, s)]), |_| {});
    let with = draft.call(with_norm(Update::of(Cols).set(p, &[(ONE, p), (ONE, s)])), |_| {});
    let begin = [Some(residual), from_reference, Some(gradient.clone())];
    let start = begin.clone().into_iter().chain([Some(first), Some(product.clone())]);
    let step = [Some(update_r), advance, Some(gradient), Some(direction), Some(product.clone())];
    let exact = [Some(without)].into_iter().chain(begin).chain([Some(with), Some(product)]);
    Script {
        start: start.flatten().collect(),
        steps: vec![step.into_iter().flatten().collect()],
        exact: vec![exact.flatten().collect()],
        least_squares: true,
        reference: damped.then_some(reference),
        residual: Residual::Held,
        ..Script::default()
    }
}
