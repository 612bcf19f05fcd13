//! FISTA: accelerated projected gradients, `min |A x - b|² / 2 + tikhonov |x|² / 2` over `lower <= x <= upper`.
//!
//! ```text
//!   y = x + beta (x - x_old)
//!   x' = P((y + tau A'(b - A y)) / (1 + tau tikhonov))           P into the bounds, tau = 1 / |A|²
//!   t' = (1 + sqrt(1 + 4 t²)) / 2,  beta' = (t - 1) / t'
//!   t' = 1, beta' = 0                                             if (y - x').(x' - x) > 0
//! ```
//!
//! The bounds hold in every iterate, pixel by pixel. `b - A y` follows from the residuals of the last two iterates, which are computed
//! from the iterates themselves, so that the history has true residuals. The norm of the gradient is that of the gradient map,
//! `|y - x'| / tau`: 0 at the minimum within the bounds, and there alone. A start computes the step `P(...) - x` itself: the difference of
//! the rounded `x'` and `x` could lose a small one. The method stops if a step is less than the rounding of `x`.
//! The objective falls as `1 / k²`. `|A|` is estimated when the solver is set up, by 30 steps of the power iteration.
//!
//! Vectors held: 4 as long as `A` has rows, 5 as it has columns. Launches: 4. Bytes: those of two products, 5 vectors of rows and 9 of
//! columns.
//!
//! Source: A. Beck, M. Teboulle, "A fast iterative shrinkage-thresholding algorithm for linear inverse problems", SIAM J. Imaging
//! Sci. 2(1), 2009, section 4; the restart: B. O'Donoghue, E. Candès, "Adaptive restart for accelerated gradient schemes", Found.
//! Comput. Math. 15, 2015, section 3.2.

use super::info::{Bounds, LEAST_SQUARES, MethodInfo};
use crate::recurrence::{MINUS_ONE, ONE, ZERO, sqrt};
use crate::solver::script::Space::{Cols, Rows};
use crate::solver::script::{Draft, Launch, Operand, Product, Residual, Script, Terms, Update, Weight, X};
use crate::state::stop;

pub(super) const INFO: MethodInfo =
    MethodInfo { name: "fista", terms: &["tikhonov"], bounds: Bounds::Both, ..LEAST_SQUARES };

/// Part of the rounding error of `x` below which a step is lost.
pub(super) const LOST: f64 = 0.25;

/// `epsilon` is the rounding error of the vectors.
pub(super) fn script(draft: &mut Draft, epsilon: f64) -> Script {
    let [r, last_r, ahead_r] = draft.vectors(Rows);
    let [last_x, y, g, lower, upper] = draft.vectors(Cols);
    let rr = draft.sum(Rows);
    let [step2, turn, xx] = draft.sums(Cols);
    let [tau, tikhonov, keep, push, shrink, inverse_step2, beta, next, gradient2, lost, moved] = draft.scalars();
    let [minus_beta, ahead] = [draft.constant(0.0), draft.constant(1.0)];
    let (t, half, four) = (draft.constant(1.0), draft.constant(0.5), draft.constant(4.0));
    let least = draft.constant((LOST * epsilon).powi(2));
    let bounds = [lower, upper];

    let (b, copied) = draft.own_rhs();
    let feasible = draft.call(Update::of(Cols).clamp(X, X, bounds), |_| {});
    let residual = draft.residual(r, rr);
    let first = Update::of(Rows).set(last_r, &[(ONE, r)]).set(ahead_r, &[(ONE, r)]);
    let first = draft.call(first, |s| {
        s.set(keep, ONE / (ONE + tau * tikhonov));
        s.set(push, tau * keep);
        s.set(shrink, MINUS_ONE * (push * tikhonov));
        s.set(inverse_step2, ONE / (tau * tau));
    });
    let gradient = draft.call(Product::of(Operand::Adjoint, ahead_r, g), |_| {});
    let projected = Update::of(Cols).set(last_x, &[(ONE, X)]).set(g, &[(shrink, X), (push, g)]).step(g, X, bounds);
    let projected = draft.call(projected.dot(step2, g, g), |_| {});
    let judged = draft.call(Launch::Scalars, |s| {
        let (rr, step2) = (s.fold(rr), s.fold(step2));
        s.set(gradient2, step2 * inverse_step2);
        s.test_least_squares(rr, gradient2);
    });

    let advance = Update::of(Cols).set(y, &[(ahead, X), (minus_beta, last_x)]).set(last_x, &[(ONE, X)]);
    let advance = advance.set(X, &[(keep, y), (push, g)]).clamp(X, X, bounds);
    let advance = advance.set(y, &[(ONE, y), (MINUS_ONE, X)]).set(g, &[(ONE, X), (MINUS_ONE, last_x)]);
    let advance = draft.call(advance.dot(step2, y, y).dot(turn, y, g).dot(xx, X, X), |_| {});
    let product = Product::of(Operand::A, X, r).scaled(MINUS_ONE).plus(ONE, b).square(rr);
    let product = draft.call(product, |_| {});
    let look_ahead = Update::of(Rows).set(ahead_r, &[(ahead, r), (minus_beta, last_r)]).set(last_r, &[(ONE, r)]);
    // Here, not before the product, whose many groups would each do it.
    let look_ahead = draft.call(look_ahead, |s| {
        let [step2, turn, xx, rr] = [step2, turn, xx, rr].map(|sums| s.fold(sums));
        s.set(gradient2, step2 * inverse_step2);
        s.set(moved, step2);
        s.set(lost, least * xx);
        s.set(next, (ONE + sqrt(ONE + four * (t * t))) * half);
        s.set(beta, (t - ONE) / next);
        s.set(t, next);
        s.set_if_positive(turn, beta, ZERO);
        s.set_if_positive(turn, t, ONE);
        s.set(minus_beta, MINUS_ONE * beta);
        s.set(ahead, ONE + beta);
        s.count();
        s.test_least_squares(rr, gradient2);
        // A start then says what the answer is worth.
        s.stop_unless_less(lost, moved, stop::CONVERGED);
    });
    Script {
        start: vec![copied, feasible, residual, first, gradient.clone(), projected, judged],
        steps: vec![vec![gradient, advance, product, look_ahead]],
        least_squares: true,
        terms: Some(Terms::within(bounds, vec![(tau, Weight::Tau), (tikhonov, Weight::Tikhonov)])),
        residual: Residual::Held,
        ..Script::default()
    }
}
