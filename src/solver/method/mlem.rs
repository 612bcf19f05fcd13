//! MLEM, maximum likelihood by expectation maximisation: counts with the noise of Poisson, emission tomography.
//!
//! ```text
//!   x' = x + x C A'((b - A x) / A x)  =  x C A'(b / A x)         element by element, C = 1 / A'1
//! ```
//!
//! It maximises the likelihood of counts `b` whose expectations are `A x`, `sum_i b_i log (A x)_i - (A x)_i`, over `x >= 0`, for an `A`
//! without negative entries. Each iteration raises the likelihood, and makes the sum of `A x` that of `b`. A reading below 0 counts as 0. A
//! reading whose expectation is 0 moves nothing; if the reading is above 0, the gradient shows it. An unknown whose column in `A` is 0 keeps its
//! value. An unknown that starts at 0 or below stays 0. If this holds for every unknown whose column is not 0, the method starts instead from the
//! multiple of `C` that fits `b` best in least squares. Each step is cut at the bounds. If a bound is met, the answer need not have the greatest
//! likelihood within the bounds, and the sum of `A x` may differ from that of `b`. MLEM is slow after the first tens of iterations, and takes up
//! noise late: `Stopping::atol` ends it at the level of the noise, or a number of iterations does.
//!
//! The residual of the report is `b - A x` without weights; an iterate with a smaller one is not taken for a better answer. The norm of the
//! gradient is `|p - x| |A|²` with `p = x + (x + f C) C A'((b - A x) / A x)` cut at the bounds, in the units of a gradient of least squares.
//! `f C` is the multiple of `C` that fits `b` best. The gradient is 0 only at the maximum: by the term `f C` it differs from 0 also for an
//! unknown that is 0 although the likelihood would rise with it. `|A|²` is taken as its bound, the largest sum of a row times that of a column.
//! The method stops if a step is no more than the rounding of `x`.
//!
//! Vectors held: 4 as long as `A` has rows, 6 as it has columns. Launches: 7. Bytes: those of two products, 6 vectors of rows and 14 of columns.
//!
//! Source: L. A. Shepp, Y. Vardi, "Maximum likelihood reconstruction for emission tomography", IEEE Trans. Med. Imaging 1(2), 1982;
//! K. Lange, R. Carson, "EM reconstruction algorithms for emission and transmission tomography", J. Comput. Assist. Tomogr. 8(2), 1984.

use super::info::{Bounds, LEAST_SQUARES, MethodInfo};
use crate::recurrence::{MINUS_ONE, ONE, ZERO};
use crate::solver::script::Space::{Cols, Rows};
use crate::solver::script::{
    B, Draft, ElementFormula, InverseSums, Launch, OfElements, Operand, Product, Residual, Script, Terms, Update,
    Weight, X,
};
use crate::state::stop;

pub(super) const INFO: MethodInfo =
    MethodInfo { name: "mlem", bounds: Bounds::Both, negative_entries: false, ..LEAST_SQUARES };

/// `epsilon` is the rounding error of the vectors.
pub(super) fn script(draft: &mut Draft, epsilon: f64) -> Script {
    let [r, y, q] = draft.vectors(Rows);
    let [g, t, of_cols, size, lower, upper] = draft.vectors(Cols);
    let [rr, ww, wr] = draft.sums(Rows);
    let [slope2, step2, xx, seen] = draft.sums(Cols);
    let [square, gradient2, lost, moved, fitted, lift] = draft.scalars();
    let least = draft.constant(epsilon * epsilon);
    let bounds = [lower, upper];
    let (b, copied) = draft.own_rhs();

    // The start guess, and the multiple of C that fits b best: the size of an image.
    let within = Update::of(Cols).clamp(X, X, bounds).multiply(t, of_cols, X).dot(seen, t, X);
    let within = draft.call(within, |_| {});
    let positive = draft.alone(OfElements { formula: ElementFormula::Positive, of: Rows, x: [B, B], y: q });
    let fit = draft.call(Product::of(Operand::A, of_cols, y).square(ww).dot(wr, q), |_| {});
    let raise = Update::of(Cols).set(size, &[(fitted, of_cols)]).set(X, &[(ONE, X), (lift, of_cols)]);
    let raise = draft.call(raise.clamp(X, X, bounds), |s| {
        let (seen, ww, wr) = (s.fold(seen), s.fold(ww), s.fold(wr));
        s.set(fitted, ZERO);
        s.set_if_positive(wr, fitted, wr / ww);
        s.set(lift, fitted);
        s.set_if_positive(seen, lift, ZERO);
    });

    // A x, C times the slope of the likelihood, and the gradient, in which an unknown counts that is 0 and should not be.
    let forward = draft.call(Product::of(Operand::A, X, y), |_| {});
    let excess = draft.alone(OfElements { formula: ElementFormula::Excess, of: Rows, x: [b, y], y: q });
    let back = draft.call(Product::of(Operand::Adjoint, q, g), |_| {});
    let slope = Update::of(Cols).multiply(g, of_cols, g).set(t, &[(ONE, X), (ONE, size)]).multiply(t, t, g);
    let slope = draft.call(slope.step(t, X, bounds).dot(slope2, t, t), |_| {});

    let residual = draft.residual(r, rr);
    let judged = draft.call(Launch::Scalars, |s| {
        let (rr, slope2) = (s.fold(rr), s.fold(slope2));
        s.set(gradient2, slope2 * (square * square));
        s.test_least_squares(rr, gradient2);
    });
    let begin = vec![within, positive, fit, raise];
    let start = vec![copied, residual, forward.clone(), excess.clone(), back.clone(), slope.clone(), judged];

    // Taken from the step alone: the rounding of x' may hide it.
    let advance = Update::of(Cols).multiply(t, X, g).step(t, X, bounds).set(X, &[(ONE, X), (ONE, t)]);
    let advance = advance.clamp(X, X, bounds).dot(step2, t, t).dot(xx, X, X);
    let advance = draft.call(advance, |_| {});
    let differ = draft.call(Update::of(Rows).set(r, &[(ONE, b), (MINUS_ONE, y)]).dot(rr, r, r), |_| {});
    let judge = draft.call(Launch::Scalars, |s| {
        let [slope2, step2, xx, rr] = [slope2, step2, xx, rr].map(|sums| s.fold(sums));
        s.set(gradient2, slope2 * (square * square));
        s.set(moved, step2);
        s.set(lost, least * xx);
        s.count();
        s.test_least_squares(rr, gradient2);
        // A start then says what the answer is worth.
        s.stop_unless_less(lost, moved, stop::CONVERGED);
    });
    let step = vec![advance, forward, differ, excess, back, slope, judge];
    // Sums of rows are not needed: anything else is written over them.
    let inverse_sums = InverseSums { rows: q, cols: of_cols, of_subsets: false };
    let terms = Terms::within(bounds, vec![(square, Weight::Square)]);
    Script {
        begin,
        start,
        steps: vec![step],
        least_squares: true,
        terms: Some(Terms { inverse_sums: Some(inverse_sums), likelihood: true, ..terms }),
        residual: Residual::Held,
        ..Script::default()
    }
}
