//! MLEM, maximum likelihood by expectation maximisation: counts with the noise of Poisson, emission tomography.
//!
//! ```text
//!   x' = x C A'(b / A x)         element by element, C = 1 / A'1
//! ```
//!
//! It maximises the likelihood of counts `b` whose expectations are `A x`, `sum_i b_i log (A x)_i - (A x)_i`, over `x >= 0`, for an `A`
//! without negative entries. Each iteration raises it, and keeps the sum of `A x` at that of `b`. Where a reading or its
//! expectation is 0 or less, the ratio counts as 0. Unknowns stay above 0 by themselves; one that starts at 0 stays there. A start of zeros
//! alone begins with the multiple of `C` that fits `b` best. Bounds are kept by cutting each iterate, which is no longer the maximum
//! within bounds that are active. It creeps after the first tens of iterations, and noise comes late: `Stopping::atol` ends it at the level of
//! the noise, or a number of iterations does.
//!
//! The residual of the report is `b - A x` without weights. The norm of the gradient is `|x' - x| |A|²`, that of a step in the units of a
//! gradient of least squares: 0 at the maximum; `|A|²` is taken as its bound, the largest sum of a row times that of a column. It ends by
//! itself where a step is no more than the rounding of `x`.
//!
//! Vectors held: 5 as long as `A` has rows, 5 as it has columns. Launches: 6. Bytes: those of two products, 7 vectors of rows and 8 of columns.
//!
//! Source: L. A. Shepp, Y. Vardi, "Maximum likelihood reconstruction for emission tomography", IEEE Trans. Med. Imaging 1(2), 1982;
//! K. Lange, R. Carson, "EM reconstruction algorithms for emission and transmission tomography", J. Comput. Assist. Tomogr. 8(2), 1984.

use super::info::{Bounds, LEAST_SQUARES, MethodInfo};
use crate::recurrence::{MINUS_ONE, ONE, ZERO};
use crate::solver::script::Space::{Cols, Rows};
use crate::solver::script::{
    Draft, ElementFormula, InverseSums, Launch, OfElements, Operand, Product, Residual, Script, Terms, Update,
    Weight, X,
};
use crate::state::stop;

pub(super) const INFO: MethodInfo =
    MethodInfo { name: "mlem", bounds: Bounds::Both, negative_entries: false, ..LEAST_SQUARES };

/// `epsilon` is the rounding error of the vectors.
pub(super) fn script(draft: &mut Draft, epsilon: f64) -> Script {
    let [r, y, q, of_rows] = draft.vectors(Rows);
    let [g, t, of_cols, lower, upper] = draft.vectors(Cols);
    let [rr, ww, wr] = draft.sums(Rows);
    let [step2, xx] = draft.sums(Cols);
    let [square, gradient2, lost, moved, lift] = draft.scalars();
    let least = draft.constant(epsilon * epsilon);
    let bounds = [lower, upper];
    let (b, copied) = draft.own_rhs();

    // A x, the residual, and the ratio that goes back.
    let forward = draft.call(Product::of(Operand::A, X, y), |_| {});
    let differ = draft.call(Update::of(Rows).set(r, &[(ONE, b), (MINUS_ONE, y)]).dot(rr, r, r), |_| {});
    let ratio = draft.alone(OfElements { formula: ElementFormula::Ratio, of: Rows, x: [b, y], y: q });
    let back = draft.call(Product::of(Operand::Adjoint, q, g), |_| {});
    let through = [forward, differ, ratio, back];

    let within = draft.call(Update::of(Cols).clamp(X, X, bounds), |_| {});
    let positive = draft.alone(OfElements { formula: ElementFormula::Positive, of: Cols, x: [X, X], y: t });
    let taken = draft.call(Update::of(Cols).set(X, &[(ONE, t)]).dot(xx, X, X), |_| {});
    let residual = draft.residual(r, rr);
    let constant = draft.call(Product::of(Operand::A, of_cols, y).square(ww).dot(wr, r), |_| {});
    let raise = Update::of(Cols).set(X, &[(ONE, X), (lift, of_cols)]).clamp(X, X, bounds);
    let raise = draft.call(raise, |s| {
        let (xx, ww, wr) = (s.fold(xx), s.fold(ww), s.fold(wr));
        s.set(lift, ZERO);
        s.set_if_positive(wr, lift, wr / ww);
        s.set_if_positive(xx, lift, ZERO);
    });
    let trial = Update::of(Cols).multiply(t, of_cols, g).multiply(t, X, t).clamp(t, t, bounds);
    let trial = draft.call(trial.set(t, &[(ONE, t), (MINUS_ONE, X)]).dot(step2, t, t), |_| {});
    let judged = draft.call(Launch::Scalars, |s| {
        let (rr, step2) = (s.fold(rr), s.fold(step2));
        s.set(gradient2, step2 * (square * square));
        s.test_least_squares(rr, gradient2);
    });
    let mut start = vec![copied, within, positive, taken, residual, constant, raise];
    start.extend(through.clone());
    start.extend([trial, judged]);

    let advance = Update::of(Cols).multiply(g, of_cols, g).multiply(g, X, g).clamp(g, g, bounds);
    let advance = advance.set(t, &[(ONE, g), (MINUS_ONE, X)]).set(X, &[(ONE, g)]);
    let advance = draft.call(advance.dot(step2, t, t).dot(xx, X, X), |_| {});
    let judge = draft.call(Launch::Scalars, |s| {
        let [step2, xx, rr] = [step2, xx, rr].map(|sums| s.fold(sums));
        s.set(gradient2, step2 * (square * square));
        s.set(moved, step2);
        s.set(lost, least * xx);
        s.count();
        s.test_least_squares(rr, gradient2);
        // A start then says what the answer is worth.
        s.stop_unless_less(lost, moved, stop::CONVERGED);
    });
    let mut step = vec![advance];
    step.extend(through);
    step.push(judge);
    let inverse_sums = InverseSums { rows: of_rows, cols: of_cols, of_subsets: false };
    let terms = Terms::within(bounds, vec![(square, Weight::Square)]);
    Script {
        start,
        steps: vec![step],
        least_squares: true,
        terms: Some(Terms { inverse_sums: Some(inverse_sums), ..terms }),
        residual: Residual::Held,
        ..Script::default()
    }
}
