//! SIRT, the simultaneous iterative reconstruction technique: a weighted least-squares problem within bounds.
//!
//! ```text
//!   x' = P(x + omega C A'R (b - A x))         P into the bounds, R = 1 / A 1, C = 1 / A'1, element by element
//! ```
//!
//! It minimises `sum_i R_i (b - A x)_i²` over `lower <= x <= upper`, for an `A` without negative entries: that of scanners. It converges with
//! any `omega` between 0 and 2. Rows and columns whose sum is 0 are left alone. The set-up fails if products of `A` and `A'`
//! with random numbers show negative entries; they may miss some. Early iterates are smooth, and noise comes late: `Stopping::atol` ends it at the level of the noise.
//! The residual of the report is `b - A x` without weights. The norm of the gradient is `|x' - x| |A|² / omega`, that of a step in the
//! units of a gradient: 0 at the minimum within the bounds; `|A|²` is taken as its bound, the largest sum of a row times that of a column. The method stops if a
//! step is smaller than `sqrt(omega / (2 - omega))` times the rounding of `x`: then rounding alone moves it.
//!
//! Vectors held: 4 as long as `A` has rows, 5 as it has columns. Launches: 4. Bytes: those of two products, 4 vectors of rows and 8 of
//! columns.
//!
//! Source: P. Gilbert, "Iterative methods for the three-dimensional reconstruction of an object from projections", J. Theor. Biol. 36, 1972;
//! the weights: J. Gregor, T. Benson, "Computational analysis and improvement of SIRT", IEEE Trans. Med. Imaging 27(7), 2008, equation 2.

use super::info::{Bounds, LEAST_SQUARES, MethodInfo};
use crate::recurrence::{MINUS_ONE, ONE, Scalar, Sums};
use crate::solver::script::Space::{Cols, Rows};
use crate::solver::script::{
    Call, Draft, InverseSums, Launch, Operand, Product, Residual, Script, Terms, Update, VectorId, Weight, X,
};
use crate::state::stop;

pub(super) const INFO: MethodInfo =
    MethodInfo { name: "sirt", bounds: Bounds::Both, negative_entries: false, ..LEAST_SQUARES };

/// Vectors, sums and scalars of weighted steps, which SIRT takes after all rows, and SART after each subset.
pub(super) struct Steps {
    r: VectorId,
    weighted: VectorId,
    /// `R` and `C`.
    pub(super) of_rows: VectorId,
    pub(super) of_cols: VectorId,
    last_x: VectorId,
    pub(super) g: VectorId,
    pub(super) bounds: [VectorId; 2],
    rr: Sums,
    pub(super) step2: Sums,
    pub(super) xx: Sums,
    pub(super) square: Scalar,
    pub(super) gradient2: Scalar,
    pub(super) lost: Scalar,
    pub(super) moved: Scalar,
    pub(super) omega: Scalar,
    /// `(subsets omega)^-2`, and the square of the rounding of `x` over that of `x`, as it adds up where each step turns the one before
    /// around.
    pub(super) inverse_omega2: Scalar,
    pub(super) least: Scalar,
}

impl Steps {
    /// `epsilon` is the rounding error of the vectors; `subsets` are the steps that are taken before they are judged.
    pub(super) fn new(draft: &mut Draft, omega: f64, epsilon: f64, subsets: usize) -> Self {
        let subsets = subsets as f64;
        let [r, weighted, of_rows] = draft.vectors(Rows);
        let [last_x, g, of_cols, lower, upper] = draft.vectors(Cols);
        let rr = draft.sum(Rows);
        let [step2, xx] = draft.sums(Cols);
        let [square, gradient2, lost, moved] = draft.scalars();
        let least = subsets * epsilon * epsilon * omega / (2.0 - omega);
        let [inverse_omega2, least] =
            [1.0 / (subsets * omega * subsets * omega), least].map(|value| draft.constant(value));
        let omega = draft.constant(omega);
        let bounds = [lower, upper];
        Self {
            r,
            weighted,
            of_rows,
            of_cols,
            last_x,
            g,
            bounds,
            rr,
            step2,
            xx,
            square,
            gradient2,
            lost,
            moved,
            omega,
            inverse_omega2,
            least,
        }
    }

    /// `R r`.
    fn weigh(&self) -> Update {
        Update::of(Rows).multiply(self.weighted, self.of_rows, self.r)
    }

    /// `g = A'R r`.
    fn back(&self, draft: &mut Draft) -> Call {
        draft.call(Product::of(Operand::Adjoint, self.weighted, self.g), |_| {})
    }

    /// `x` into the bounds, `r = b - A x`, and the step after all rows, for the gradient of a start.
    pub(super) fn start(&self, draft: &mut Draft) -> Vec<Call> {
        let &Self { of_cols, g, bounds, rr, step2, square, gradient2, omega, inverse_omega2, .. } = self;
        let feasible = draft.call(Update::of(Cols).clamp(X, X, bounds), |_| {});
        let residual = draft.residual(self.r, rr);
        let weigh = draft.call(self.weigh(), |_| {});
        let back = self.back(draft);
        let trial = Update::of(Cols).multiply(g, of_cols, g).set(g, &[(omega, g)]).step(g, X, bounds);
        let trial = draft.call(trial.dot(step2, g, g), |_| {});
        let judged = draft.call(Launch::Scalars, |s| {
            let (rr, step2) = (s.fold(rr), s.fold(step2));
            s.set(gradient2, step2 * (square * square) * inverse_omega2);
            s.test_least_squares(rr, gradient2);
        });
        vec![feasible, residual, weigh, back, trial, judged]
    }

    /// `x = P(x + omega C g)`; keeps the `x` before it if that is the first of an iteration.
    pub(super) fn advance(&self, is_first: bool) -> Update {
        let &Self { of_cols, g, omega, bounds, last_x, .. } = self;
        let advance = Update::of(Cols).multiply(g, of_cols, g);
        let advance = if is_first { advance.set(last_x, &[(ONE, X)]) } else { advance };
        advance.set(X, &[(ONE, X), (omega, g)]).clamp(X, X, bounds)
    }

    /// [`Steps::advance`] for the last time in an iteration: leaves its step in `g`, the square of that and the one of `x`.
    pub(super) fn advance_last(&self, is_first: bool) -> Update {
        let &Self { g, last_x, step2, xx, .. } = self;
        self.advance(is_first).set(g, &[(ONE, X), (MINUS_ONE, last_x)]).dot(step2, g, g).dot(xx, X, X)
    }

    /// The script with its start and its iteration.
    pub(super) fn script(&self, start: Vec<Call>, step: Vec<Call>, of_subsets: bool) -> Script {
        let inverse_sums = InverseSums { rows: self.of_rows, cols: self.of_cols, of_subsets };
        let terms = Terms::within(self.bounds, vec![(self.square, Weight::Square)]);
        Script {
            start,
            steps: vec![step],
            least_squares: true,
            terms: Some(Terms { inverse_sums: Some(inverse_sums), ..terms }),
            residual: if of_subsets { Residual::Afresh } else { Residual::Held },
            ..Script::default()
        }
    }
}

/// `epsilon` is the rounding error of the vectors.
pub(super) fn script(draft: &mut Draft, omega: f64, epsilon: f64) -> Script {
    let steps = Steps::new(draft, omega, epsilon, 1);
    let &Steps { r, rr, step2, xx, square, gradient2, lost, moved, inverse_omega2, least, .. } = &steps;
    let (b, copied) = draft.own_rhs();
    let start = [vec![copied], steps.start(draft)].concat();
    let back = steps.back(draft);
    let advance = draft.call(steps.advance_last(true), |_| {});
    let product = Product::of(Operand::A, X, r).scaled(MINUS_ONE).plus(ONE, b).square(rr);
    let product = draft.call(product, |_| {});
    // Here, not before the product, whose many groups would each do it.
    let next_weigh = draft.call(steps.weigh(), |s| {
        let [step2, xx, rr] = [step2, xx, rr].map(|sums| s.fold(sums));
        s.set(gradient2, step2 * (square * square) * inverse_omega2);
        s.set(moved, step2);
        s.set(lost, least * xx);
        s.count();
        s.test_least_squares(rr, gradient2);
        // A start then says what the answer is worth.
        s.stop_unless_less(lost, moved, stop::CONVERGED);
    });
    steps.script(start, vec![back, advance, product, next_weigh], false)
}
