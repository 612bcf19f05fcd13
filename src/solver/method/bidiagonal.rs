//! Golub-Kahan bidiagonalisation, which LSQR and LSMR share.
//!
//! It solves `min |A x - b|² + damp² |x - x_ref|²` with the stacked operator `[A; damp I]`, whose left vectors have an
//! upper part `u` and a lower part `l`: any start guess and any reference point are then right, not only `x = x_ref`.
//!
//! ```text
//!   beta u' = A v - alpha u,   beta l' = damp v - alpha l
//!   alpha' v' = A'u' + damp l' - beta v
//! ```
//!
//! Vectors are kept unnormalised, `ū = beta u` and `v̄ = |v̄| v`, so that a norm folds into the launch that needs it.
//!
//! Source: G. H. Golub and W. Kahan, "Calculating the singular values and pseudo-inverse of a matrix", SIAM J. Numer.
//! Anal. 2(2), 1965; C. C. Paige and M. A. Saunders, "LSQR", ACM TOMS 8(1), 1982, Bidiag 1.

use crate::recurrence::{Expr, ONE, Program, Scalar, Sums, ZERO, sqrt};
use crate::solver::script::Space::{Cols, Rows};
use crate::solver::script::{Call, Draft, Operand, Product, Script, Update, VectorId, X};

/// Vectors, scalars and sums of the bidiagonalisation.
pub(super) struct Bidiagonal {
    u: [VectorId; 2],
    /// `v̄` in turns.
    pub(super) v: [VectorId; 2],
    lower: Option<[VectorId; 2]>,
    uu: Sums,
    ll: Sums,
    vv: Sums,
    pub(super) alpha: Scalar,
    pub(super) beta: Scalar,
    /// `1 / |v̄|` of the present `v̄`, 0 if that vanished.
    pub(super) inverse_v: Scalar,
    norm_v: Scalar,
    inverse_beta: Scalar,
    back_u: Scalar,
    back_v: Scalar,
    damp: Scalar,
    minus_damp: Scalar,
    into_lower: Scalar,
    from_lower: Scalar,
    /// Squared norms of residual and gradient, for the test.
    pub(super) residual2: Scalar,
    pub(super) gradient2: Scalar,
    /// Squared norm of the residual stacked with `damp (x_ref - x)`, which the recurrences know, if there is damping.
    stacked2: Option<Scalar>,
}

/// `target = 1 / value`, or 0.
pub(super) fn invert(s: &mut Program, target: Scalar, value: Scalar) {
    s.set(target, ZERO);
    s.set_if_positive(value, target, ONE / value);
}

impl Bidiagonal {
    pub(super) fn new(draft: &mut Draft, damp: f64) -> Self {
        Self {
            u: draft.vectors(Rows),
            v: draft.vectors(Cols),
            // The lower part, and the reference point.
            lower: (damp > 0.0).then(|| draft.vectors(Cols)),
            uu: draft.sum(Rows),
            ll: draft.sum(Cols),
            vv: draft.sum(Cols),
            alpha: draft.scalar(),
            beta: draft.scalar(),
            inverse_v: draft.scalar(),
            norm_v: draft.scalar(),
            inverse_beta: draft.scalar(),
            back_u: draft.scalar(),
            back_v: draft.scalar(),
            damp: draft.constant(damp),
            minus_damp: draft.constant(-damp),
            into_lower: draft.scalar(),
            from_lower: draft.scalar(),
            residual2: draft.scalar(),
            gradient2: draft.scalar(),
            stacked2: (damp > 0.0).then(|| draft.scalar()),
        }
    }

    /// Left vector of turn `t + 1` from right vector of turn `t`, after the stopping test.
    fn forward(&self, draft: &mut Draft, t: usize) -> Vec<Call> {
        let product =
            Product::of(Operand::A, self.v[t], self.u[1 - t]).scaled(self.inverse_v).plus(self.back_u, self.u[t]);
        let mut calls = vec![draft.call(product.square(self.uu), |s| {
            s.test_least_squares_by(self.residual2, self.gradient2, self.stacked2);
            s.set(self.back_u, -(self.alpha / self.beta));
            s.set(self.into_lower, self.damp * self.inverse_v);
        })];
        if let Some([l, _]) = self.lower {
            let update =
                Update::of(Cols).set(l, &[(self.into_lower, self.v[t]), (self.back_u, l)]).dot(self.ll, l, l);
            calls.push(draft.call(update, |_| {}));
        }
        calls
    }

    /// Right vector of turn `t + 1`.
    fn backward(&self, draft: &mut Draft, t: usize) -> Vec<Call> {
        let new = self.v[1 - t];
        let product = Product::of(Operand::Adjoint, self.u[1 - t], new)
            .scaled(self.inverse_beta)
            .plus(self.back_v, self.v[t]);
        let product = if self.lower.is_some() { product } else { product.square(self.vv) };
        let mut calls = vec![draft.call(product, |s| {
            let uu = s.fold(self.uu);
            s.require_finite(uu);
            if self.lower.is_some() {
                let ll = s.fold(self.ll);
                s.set(self.beta, sqrt(uu + ll));
            } else {
                s.set(self.beta, sqrt(uu));
            }
            invert(s, self.inverse_beta, self.beta);
            s.set(self.back_v, -(self.beta * self.inverse_v));
            s.set(self.from_lower, self.damp * self.inverse_beta);
        })];
        if let Some([l, _]) = self.lower {
            let update = Update::of(Cols).set(new, &[(ONE, new), (self.from_lower, l)]).dot(self.vv, new, new);
            calls.push(draft.call(update, |_| {}));
        }
        calls
    }

    /// The squared norms of (stacked) residual and gradient after an iteration: the last thing a method's update does.
    pub(super) fn finish(&self, s: &mut Program, residual2: impl Into<Expr>, gradient2: impl Into<Expr>) {
        s.set(self.residual2, residual2);
        s.set(self.gradient2, gradient2);
        if let Some(stacked2) = self.stacked2 {
            s.set(stacked2, self.residual2);
        }
        s.count();
    }

    /// `alpha` from the norm of the new `v̄`: the first thing a method's update does.
    pub(super) fn advance(&self, s: &mut Program) {
        let vv = s.fold(self.vv);
        s.require_finite(vv);
        s.set(self.alpha, sqrt(vv));
        s.set(self.norm_v, self.alpha);
        invert(s, self.inverse_v, self.norm_v);
    }

    /// The script of a method that sets its own vectors with `begin` and updates the answer with `update(turn of v)`.
    pub(super) fn script(
        &self,
        draft: &mut Draft,
        begin: Update,
        first: impl FnOnce(&mut Program),
        update: impl Fn(&mut Draft, usize) -> Call,
    ) -> Script {
        let mut start = vec![draft.residual(self.u[0], self.uu)];
        let gradient = Product::of(Operand::Adjoint, self.u[0], self.v[0]).square(self.vv);
        if let Some([l, reference]) = self.lower {
            let lower = [(self.damp, reference), (self.minus_damp, X)];
            start.push(draft.call(Update::of(Cols).set(l, &lower).dot(self.ll, l, l), |_| {}));
            start.push(draft.call(gradient.plus(self.damp, l), |_| {}));
        } else {
            start.push(draft.call(gradient, |_| {}));
        }
        start.push(draft.call(begin, |s| {
            let (uu, vv) = (s.fold(self.uu), s.fold(self.vv));
            s.require_finite_start(uu, vv);
            s.set(self.residual2, uu);
            s.set(self.gradient2, vv);
            if self.lower.is_some() {
                let ll = s.fold(self.ll);
                s.set(self.beta, sqrt(uu + ll));
                if let Some(stacked2) = self.stacked2 {
                    s.set(stacked2, uu + ll);
                }
            } else {
                s.set(self.beta, sqrt(uu));
            }
            s.set(self.norm_v, sqrt(vv));
            invert(s, self.inverse_v, self.norm_v);
            invert(s, self.inverse_beta, self.beta);
            s.set(self.alpha, self.norm_v * self.inverse_beta);
            first(s);
        }));
        let mut steps = Vec::new();
        for t in 0..2 {
            let mut calls = self.backward(draft, t);
            calls.push(update(draft, 1 - t));
            let forward = self.forward(draft, t);
            if t == 0 {
                start.extend(forward.iter().cloned());
            }
            steps.push((calls, forward));
        }
        let forwards = [steps[1].1.clone(), steps[0].1.clone()];
        let steps = steps.into_iter().zip(forwards).map(|((calls, _), next)| [calls, next].concat()).collect();
        let reference = self.lower.map(|lower| lower[1]);
        Script { start, steps, least_squares: true, reference, ..Script::default() }
    }
}
