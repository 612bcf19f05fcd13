//! CGNR with a penalty of the user's own, `min |A x - b|² / 2 + R(x)`: the recurrence of [`cgnr`](super::cgnr). The penalty runs
//! its own launches between those of the method.
//!
//! ```text
//!   q = A d,  h = F(x, d),  alpha = s.d / (q.q + d.h),  r -= alpha q,  x += alpha d
//!   s = A'r - F(x, x)
//!   beta = max(0, (s.s - s.s_old) / s_old.d_old),  d = s + beta d
//! ```
//!
//! `alpha` is negative along a direction that leads upwards. If the penalty does not tell its curvature `F(x, d)`,
//! `d.h` is a difference of its gradients, `d.(F(y, y) - F(x, x)) / t` with `y = x + t d` and `t = s.d / q.q`.
//!
//! Vectors held: 2 as long as `A` has rows, 5 as it has columns, 1 more without curvature. Launches: 6 and two of the penalty, 7 without
//! curvature.
//!
//! Source: that of CGNR, as [`cgnr`](super::cgnr) derives it anew.

use crate::recurrence::{MINUS_ONE, ONE, ZERO};
use crate::solver::script::Space::{Cols, Rows};
use crate::solver::script::{Draft, OfPenalty, Operand, Product, Residual, Script, Update, X};

/// `curved` tells if the penalty has a curvature.
pub(super) fn script(draft: &mut Draft, curved: bool) -> Script {
    let [r, q] = draft.vectors(Rows);
    let [s, last_s, d, f, h] = draft.vectors(Cols);
    let ahead = if curved { X } else { draft.vector(Cols) };
    let [rr, qq] = draft.sums(Rows);
    let [ss, turn, along, dh, df] = draft.sums(Cols);
    let [descent, alpha, minus_alpha, found, beta, curvature] = draft.scalars();
    let trial = draft.constant(1.0);

    let residual = draft.residual(r, rr);
    let penalty = draft.alone(OfPenalty { x: X, v: None, out: f });
    let gradient = Product::of(Operand::Adjoint, r, s).plus(MINUS_ONE, f).square(ss);
    let first_gradient = draft.call(gradient.clone(), |_| {});
    let begin = Update::of(Cols).set(last_s, &[(ONE, s)]).set(d, &[(ONE, s)]).dot(along, s, d);
    let begin = draft.call(begin, |_| {});
    let product = draft.call(Product::of(Operand::A, d, q).square(qq), |t| {
        let (rr, ss, along) = (t.fold(rr), t.fold(ss), t.fold(along));
        t.test_least_squares(rr, ss);
        t.set(descent, along);
    });
    let sideways = if curved {
        let asked = draft.alone(OfPenalty { x: X, v: Some(d), out: h });
        vec![asked, draft.call(Update::of(Cols).dot(dh, d, h), |_| {})]
    } else {
        let forth = draft.call(Update::of(Cols).set(ahead, &[(ONE, X), (trial, d)]), |t| {
            let qq = t.fold(qq);
            // A direction that A maps to 0 tries the step before.
            t.set_if_positive(qq, trial, descent / qq);
        });
        let asked = draft.alone(OfPenalty { x: ahead, v: None, out: h });
        vec![forth, asked, draft.call(Update::of(Cols).dot(dh, d, h).dot(df, d, f), |_| {})]
    };
    let update_r = draft.call(Update::of(Rows).set(r, &[(ONE, r), (minus_alpha, q)]).dot(rr, r, r), |t| {
        let (qq, dh) = (t.fold(qq), t.fold(dh));
        if curved {
            t.set(curvature, qq + dh);
        } else {
            let df = t.fold(df);
            t.set(curvature, qq + (dh - df) / trial);
        }
        t.require_positive_curvature(curvature);
        t.set(alpha, descent / curvature);
        t.set(minus_alpha, MINUS_ONE * alpha);
        if !curved {
            t.set(trial, alpha);
        }
        t.count();
    });
    let advance = Update::of(Cols).set(X, &[(ONE, X), (alpha, d)]).set(last_s, &[(ONE, s)]);
    let advance = draft.call(advance, |_| {});
    let next_gradient = draft.call(gradient.dot(turn, last_s), |_| {});
    let direction = draft.call(Update::of(Cols).set(d, &[(ONE, s), (beta, d)]).dot(along, s, d), |t| {
        let (ss, turn) = (t.fold(ss), t.fold(turn));
        t.set(found, (ss - turn) / descent);
        t.set(beta, ZERO);
        t.set_if_positive(found, beta, found);
    });
    let rest = [update_r, advance, penalty.clone(), next_gradient, direction, product.clone()];
    Script {
        start: vec![residual, penalty, first_gradient, begin, product],
        steps: vec![sideways.into_iter().chain(rest).collect()],
        least_squares: true,
        residual: Residual::Held,
        ..Script::default()
    }
}
