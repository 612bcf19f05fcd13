//! SIRT, the simultaneous iterative reconstruction technique: a weighted least-squares problem within bounds.
//!
//! ```text
//!   x' = P(x + omega C A'R (b - A x))         P into the bounds, R = 1 / A 1, C = 1 / A'1, element by element
//! ```
//!
//! It minimises `sum_i R_i (b - A x)_i²` over `lower <= x <= upper`, for an `A` without negative entries: that of scanners. It converges with
//! any `omega` between 0 and 2. Rows and columns whose sum is 0 are left alone. A set-up is refused if two products with random numbers tell
//! of negative entries. Early iterates are smooth, and noise comes late: `Stopping::atol` ends it at the level of the noise.
//! The residual of the report is `b - A x` without weights. The norm of the gradient is `|x' - x| |A|² / omega`, that of a step in the
//! units of a gradient: 0 at the minimum within the bounds. It ends by itself where a step
//! is no more than rounding makes of it, `sqrt(omega / (2 - omega))` times the rounding of `x`.
//!
//! Vectors held: 3 as long as `A` has rows, 5 as it has columns. Launches: 5. Bytes: those of two products, 5 vectors of rows and 13 of
//! columns.
//!
//! Source: P. Gilbert, "Iterative methods for the three-dimensional reconstruction of an object from projections", J. Theor. Biol. 36, 1972;
//! the weights: J. Gregor, T. Benson, "Computational analysis and improvement of SIRT", IEEE Trans. Med. Imaging 27(7), 2008, equation 2.

use crate::recurrence::{MINUS_ONE, ONE};
use crate::solver::objective::{Terms, Weight};
use crate::solver::plan::{B, Operand, Plan, Product, Script, Space::Cols, Space::Rows, Update, Work, X};
use crate::state::stop;

/// `epsilon` is the rounding error of the vectors.
pub(super) fn script(plan: &mut Plan, omega: f64, epsilon: f64) -> Script {
    let [r, weighted, of_rows] = plan.vectors(Rows);
    let [last_x, g, of_cols, lower, upper] = plan.vectors(Cols);
    let rr = plan.sum(Rows);
    let [step2, xx] = plan.sums(Cols);
    let [square, gradient2, lost, moved] = plan.scalars();
    // Rounding of x, as it adds up where each step turns the one before around.
    let least = epsilon * epsilon * omega / (2.0 - omega);
    let [inverse_omega2, least] = [1.0 / (omega * omega), least].map(|value| plan.constant(value));
    let omega = plan.constant(omega);
    let bounds = [lower, upper];

    let feasible = plan.call(Update::of(Cols).clamp(X, X, bounds), |_| {});
    let residual = plan.residual(r, rr);
    let weigh = || Update::of(Rows).multiply(weighted, of_rows, r);
    let first_weigh = plan.call(weigh(), |_| {});
    let back = plan.call(Product::of(Operand::Adjoint, weighted, g), |_| {});
    // The step that an iteration would make, for the gradient of the start.
    let trial = Update::of(Cols).multiply(g, of_cols, g).set(g, &[(ONE, X), (omega, g)]).clamp(g, g, bounds);
    let trial = plan.call(trial.set(g, &[(ONE, g), (MINUS_ONE, X)]).dot(step2, g, g), |_| {});
    let judged = plan.call(Work::Scalars, |s| {
        let (rr, step2) = (s.fold(rr), s.fold(step2));
        s.set(gradient2, step2 * (square * square) * inverse_omega2);
        s.test_least_squares(rr, gradient2);
    });

    let advance = Update::of(Cols).multiply(g, of_cols, g).set(last_x, &[(ONE, X)]);
    let advance = plan.call(advance.set(X, &[(ONE, X), (omega, g)]).clamp(X, X, bounds), |_| {});
    let compare = Update::of(Cols).set(g, &[(ONE, X), (MINUS_ONE, last_x)]);
    let compare = plan.call(compare.dot(step2, g, g).dot(xx, X, X), |_| {});
    let product = Product::of(Operand::A, X, r).scaled(MINUS_ONE).plus(ONE, B).square(rr);
    let product = plan.call(product, |s| {
        let (step2, xx) = (s.fold(step2), s.fold(xx));
        s.set(gradient2, step2 * (square * square) * inverse_omega2);
        s.set(moved, step2);
        s.set(lost, least * xx);
    });
    let next_weigh = plan.call(weigh(), |s| {
        let rr = s.fold(rr);
        s.count();
        s.test_least_squares(rr, gradient2);
        // A start then says what the answer is worth.
        s.stop_unless_less(lost, moved, stop::CONVERGED);
    });
    Script {
        start: vec![feasible, residual, first_weigh, back.clone(), trial, judged],
        steps: vec![vec![back, advance, compare, product, next_weigh]],
        least_squares: true,
        terms: Some(Terms {
            inverse_sums: Some([of_rows, of_cols]),
            ..Terms::within(bounds, vec![(square, Weight::Square)])
        }),
        ..Script::default()
    }
}
