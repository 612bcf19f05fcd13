//! MRNSD, modified residual norm steepest descent: `min |A x - b|²` over `x >= lower`.
//!
//! ```text
//!   g = A'r,  z = (x - lower) g, element by element
//!   theta = g.z / |A z|²
//!   alpha = min(theta, min_{z_i < 0} (lower_i - x_i) / z_i)
//!   x += alpha z,  r -= alpha A z
//! ```
//!
//! It is steepest descent for the square roots of `x - lower`: unknowns far from their bound move most, and none passes it. The bound of
//! an unknown is 0 unless another one is given. If both bounds of an unknown are equal, they fix its value. An unknown that is at its
//! bound stays there. If all unknowns of a start guess are at their bounds, no step could move them. The method then adds one constant to all
//! that are free: the one that fits `b` best if that is positive, else a small one. It adds nothing if the bounds are the minimum.
//!
//! The norm of the gradient is that of the gradient map, `|P(x + tau g) - x| / tau` with `tau = 1 / |A|²`, as FISTA has it. The method
//! stops if a step is less than the rounding of `x`. It comes near to an answer within some tens of iterations and creeps from there: a
//! noise level in `Stopping::atol` ends it in time. [`nnfcgls`](super::nnfcgls) is the faster one of the two.
//!
//! Vectors held: 2 as long as `A` has rows, 7 as it has columns. Launches: 7. Bytes: those of two products, 3 vectors of rows and 15 of
//! columns.
//!
//! Source: L. Kaufman, "Maximum likelihood, least squares, and penalized least squares for PET", IEEE Trans. Med. Imaging 12(2), 1993;
//! J. G. Nagy and Z. Strakoš, "Enforcing nonnegativity in image reconstruction algorithms", Proc. SPIE 4121, 2000.

use super::fista::LOST;
use super::info::{Bounds, LEAST_SQUARES, MethodInfo};
use crate::recurrence::{MINUS_ONE, ONE, Program, Scalar, Sums, ZERO, sqrt};
use crate::solver::script::Space::{Cols, Rows};
use crate::solver::script::{
    Call, Draft, Operand, Product, Residual, Script, StepLimit, Terms, Update, VectorId, Weight, X,
};
use crate::state::stop;

pub(super) const INFO: MethodInfo =
    MethodInfo { name: "mrnsd", carries_residual: true, bounds: Bounds::Lower, ..LEAST_SQUARES };

/// Steps from unknown to unknown that never pass a bound from below: what MRNSD and its flexible relative have in common.
pub(super) struct Descent {
    r: VectorId,
    /// The product `A d` with the direction `d`.
    pub(super) w: VectorId,
    pub(super) d: VectorId,
    /// `x - lower`.
    pub(super) above: VectorId,
    pub(super) g: VectorId,
    /// Vector of no meaning between launches.
    pub(super) t: VectorId,
    bounds: [VectorId; 2],
    free: VectorId,
    rr: Sums,
    /// `|x|²`, and `|x - lower|²` at a start.
    xx: Sums,
    heights: Sums,
    /// Number of free unknowns.
    frees: Sums,
    step2: Sums,
    /// `g.z` and `z.z` of the scaled gradient `z`.
    pub(super) slopes: [Sums; 2],
    /// `|A d|²` and `r.A d`.
    pub(super) ww: Sums,
    wr: Sums,
    /// Limit of a step along `z`.
    pub(super) most: Sums,
    tau: Scalar,
    square: Scalar,
    /// `g.d` and `d.d`.
    pub(super) along: Scalar,
    pub(super) dd: Scalar,
    /// Height above the bounds that a start at all bounds begins with, before and after it is known if it is wanted.
    found: Scalar,
    lift: Scalar,
    minus_lift: Scalar,
    least_lift: Scalar,
    /// Root of the rounding error.
    small: Scalar,
    gradient2: Scalar,
    least: Scalar,
    lost: Scalar,
    theta: Scalar,
    alpha: Scalar,
    minus_alpha: Scalar,
    beyond: Scalar,
}

impl Descent {
    /// `epsilon` is the rounding error of the vectors.
    pub(super) fn new(draft: &mut Draft, epsilon: f64) -> Self {
        let [r, w] = draft.vectors(Rows);
        let [d, above, g, t, lower, upper] = draft.vectors(Cols);
        let free = draft.vector(Cols);
        let [rr, ww, wr] = draft.sums(Rows);
        let [xx, heights, frees, step2, most] = draft.sums(Cols);
        let slopes = draft.sums(Cols);
        let [tau, square, along, dd, found, lift, minus_lift, least_lift] = draft.scalars();
        let [gradient2, lost, theta, alpha, minus_alpha] = draft.scalars();
        // A hair beyond the bound, so that rounding leaves no unknown a little above it.
        let [small, least, beyond] =
            [epsilon.sqrt(), (LOST * epsilon).powi(2), 1.0 + 8.0 * epsilon].map(|value| draft.constant(value));
        let bounds = [lower, upper];
        Self {
            r,
            w,
            d,
            above,
            g,
            t,
            bounds,
            free,
            rr,
            xx,
            heights,
            frees,
            step2,
            slopes,
            ww,
            wr,
            most,
            tau,
            square,
            along,
            dd,
            found,
            lift,
            minus_lift,
            least_lift,
            small,
            gradient2,
            least,
            lost,
            theta,
            alpha,
            minus_alpha,
            beyond,
        }
    }

    /// `x` within its bounds, or above them where all of it is there; its residual and the first direction.
    pub(super) fn start(&self, draft: &mut Draft) -> Vec<Call> {
        let &Self { r, w, above, g, free, rr, xx, heights, frees, step2, ww, wr, .. } = self;
        let &Self { found, lift, minus_lift, least_lift, small, .. } = self;
        let [lower, _] = self.bounds;
        let within = Update::of(Cols).clamp(X, X, self.bounds).set(above, &[(ONE, X), (MINUS_ONE, lower)]);
        let within = within.dot(heights, above, above).dot(xx, X, X).dot(frees, free, free);
        let within = draft.call(within, |_| {});
        let residual = draft.residual(r, rr);
        let gradient = draft.call(Product::of(Operand::Adjoint, r, g), |s| {
            let (xx, frees) = (s.fold(xx), s.fold(frees));
            // A height that can be seen beside the bounds.
            s.set(least_lift, small * sqrt(xx / frees));
        });
        let constant = draft.call(Product::of(Operand::A, free, w).square(ww).dot(wr, r), |_| {});
        let map = draft.call(self.map(Update::of(Cols)), |s| {
            let (heights, ww, wr, rr) = (s.fold(heights), s.fold(ww), s.fold(wr), s.fold(rr));
            s.set(found, ZERO);
            s.set_if_positive(ww, found, least_lift + small * sqrt(rr / ww));
            s.set_if_positive(wr, found, wr / ww);
            s.set_if_positive(heights, found, ZERO);
        });
        let raise = Update::of(Cols).set(X, &[(ONE, X), (lift, free)]).set(above, &[(ONE, X), (MINUS_ONE, lower)]);
        let raise = draft.call(raise.dot(xx, X, X), |s| {
            // Nothing is to be gained at the minimum.
            let step2 = s.fold(step2);
            s.set(lift, ZERO);
            s.set_if_positive(step2, lift, found);
            s.set(minus_lift, MINUS_ONE * lift);
        });
        let lower_r = draft.call(Update::of(Rows).set(r, &[(ONE, r), (minus_lift, w)]).dot(rr, r, r), |_| {});
        let mut calls = vec![within, residual, gradient, constant, map, raise, lower_r];
        calls.extend(self.judge(draft));
        calls
    }

    /// `t = P(x + tau g) - x`, from the step alone, with the sum of its square.
    fn map(&self, before: Update) -> Update {
        let &Self { g, t, tau, step2, .. } = self;
        before.set(t, &[(tau, g)]).step(t, X, self.bounds).dot(step2, t, t)
    }

    /// The residual afresh, and the direction after it.
    pub(super) fn exact(&self, draft: &mut Draft) -> Vec<Call> {
        let mut calls = vec![draft.residual(self.r, self.rr)];
        calls.extend(self.judge(draft));
        calls
    }

    /// The gradient, the stopping test, and the product with the gradient times the heights above the bounds.
    pub(super) fn judge(&self, draft: &mut Draft) -> [Call; 3] {
        let &Self { r, w, d, above, g, rr, xx, step2, slopes, square, gradient2, .. } = self;
        let gradient = draft.call(Product::of(Operand::Adjoint, r, g), |s| {
            let xx = s.fold(xx);
            s.set(self.lost, self.least * xx);
        });
        let scale = self.map(Update::of(Cols).multiply(d, above, g));
        let scale = draft.call(scale.dot(slopes[0], g, d).dot(slopes[1], d, d), |_| {});
        let product = draft.call(Product::of(Operand::A, d, w).square(self.ww), |s| {
            let (rr, step2) = (s.fold(rr), s.fold(step2));
            let (along, dd) = (s.fold(slopes[0]), s.fold(slopes[1]));
            s.set(self.along, along);
            s.set(self.dd, dd);
            s.set(gradient2, step2 * (square * square));
            s.test_least_squares(rr, gradient2);
        });
        [gradient, scale, product]
    }

    /// Limit of a step along `d`: 1 over the fold of `most`.
    pub(super) fn limit(&self, draft: &mut Draft, most: Sums) -> Call {
        draft.alone(StepLimit { above: self.above, d: self.d, most })
    }

    /// The length of a step, if its limit is 1 over `most` and `|A d|² = ww`.
    pub(super) fn choose(&self, s: &mut Program, most: Scalar, ww: Scalar) {
        let &Self { theta, alpha, beyond, .. } = self;
        s.require_finite(ww);
        s.set(theta, self.along / ww);
        // Also for a direction of 0, and one that A maps to 0. A start then says what the answer is worth.
        s.stop_unless_less(self.lost, theta * theta * self.dd, stop::CONVERGED);
        s.set(alpha, theta);
        s.set_if_positive(theta * most - beyond, alpha, beyond / most);
        s.set(self.minus_alpha, MINUS_ONE * alpha);
        s.count();
    }

    /// The step, with the program `choose` before it.
    pub(super) fn advance(&self, draft: &mut Draft, choose: impl FnOnce(&mut Program)) -> [Call; 2] {
        let &Self { r, w, d, above, rr, xx, alpha, minus_alpha, .. } = self;
        let [lower, _] = self.bounds;
        let step = Update::of(Cols).set(X, &[(ONE, X), (alpha, d)]).clamp(X, X, self.bounds);
        let step = draft.call(step.set(above, &[(ONE, X), (MINUS_ONE, lower)]).dot(xx, X, X), choose);
        let residual = Update::of(Rows).set(r, &[(ONE, r), (minus_alpha, w)]).dot(rr, r, r);
        [step, draft.call(residual, |_| {})]
    }

    pub(super) fn terms(&self) -> Terms {
        let weights = vec![(self.tau, Weight::Tau), (self.square, Weight::Square)];
        Terms { free: Some(self.free), ..Terms::within(self.bounds, weights) }
    }
}

/// `epsilon` is the rounding error of the vectors.
pub(super) fn script(draft: &mut Draft, epsilon: f64) -> Script {
    let descent = Descent::new(draft, epsilon);
    let start = descent.start(draft);
    let mut step = vec![descent.limit(draft, descent.most)];
    step.extend(descent.advance(draft, |s| {
        let (most, ww) = (s.fold(descent.most), s.fold(descent.ww));
        descent.choose(s, most, ww);
    }));
    step.extend(descent.judge(draft));
    let exact = vec![descent.exact(draft)];
    Script {
        start,
        steps: vec![step],
        exact,
        least_squares: true,
        terms: Some(descent.terms()),
        residual: Residual::Held,
        ..Script::default()
    }
}
