//! BiCGSTAB(2), for square systems of any kind, preconditioned from the right.
//!
//! ```text
//!   u = r - beta u,  v = A M u                                beta = alpha (r̂.r) / rho
//!   x += alpha M u,  r -= alpha v,  s = A M r                 alpha = rho / r̂.v
//!   v = s - beta v,  u = r - beta u,  w = A M v               beta = alpha (r̂.s) / rho
//!   r -= alpha v,  s -= alpha w,  t = A M s                   alpha = rho / r̂.w
//!   omega_1, omega_2 = argmin |r - omega_1 s - omega_2 t|
//!   x += alpha M u + omega_1 M r + omega_2 M s
//!   r -= omega_1 s + omega_2 t,  u -= omega_1 v + omega_2 w
//! ```
//!
//! `rho` is the previous `r̂.r` or `r̂.s`. At the end of an iteration it is multiplied by `-omega_2`. An iteration has four products: two steps of BiCG, and one that makes the residual
//! least over a polynomial of degree two. [`bicgstab`](super::bicgstab) uses two polynomials of degree one there, whose roots are real, and
//! stagnates where eigenvalues have large imaginary parts: convection that dominates, or a nearly skew matrix.
//! `M r` and `M u` follow the recurrences of `r` and `u`, so that four products with `M` suffice.
//!
//! Vectors held: 7, with a preconditioner 11. Launches: 10, with a diagonal preconditioner 11, with any other 15. `r̂` is the residual of a start. If a divisor is 0 although
//! the residual is not, the method starts again from the present `x`. The new `r̂` is the residual there. If this happened in the first step,
//! `x` has not moved, and `r̂` is the same as before.
//!
//! Source: G. L. G. Sleijpen, D. R. Fokkema, "BiCGstab(l) for linear equations involving unsymmetric matrices with complex spectrum",
//! Electron. Trans. Numer. Anal. 1, 1993; G. L. G. Sleijpen, H. A. van der Vorst, "Hybrid bi-conjugate gradient methods for CFD problems", in
//! "Computational Fluid Dynamics Review 1995", algorithm BiCGstab(2).

use super::info::{MethodInfo, SQUARE};
use crate::recurrence::{MINUS_ONE, ONE, Program, Scalar, Sums, ZERO};
use crate::solver::script::Space::Rows;
use crate::solver::script::{Call, Draft, Operand, Preconditioning, Product, Script, Update, VectorId, X};
use crate::state::stop;

pub(super) const INFO: MethodInfo =
    MethodInfo { name: "bicgstab2", squares: true, preconditioner: true, carries_residual: true, ..SQUARE };

/// Vectors, sums and scalars of both halves of an iteration.
struct Held {
    preconditioning: Preconditioning,
    r: VectorId,
    s: VectorId,
    t: VectorId,
    u: VectorId,
    v: VectorId,
    w: VectorId,
    shadow: VectorId,
    /// `M` times `r`, `s`, `u` and `v`.
    mr: VectorId,
    ms: VectorId,
    mu: VectorId,
    mv: VectorId,
    rr: Sums,
    rho_sum: Sums,
    gamma: Sums,
    rho: Scalar,
    alpha: Scalar,
    minus_alpha: Scalar,
    minus_beta: Scalar,
}

impl Held {
    /// `target = M of`, if that is done in a pass over vectors.
    fn by_element(&self, update: Update, target: VectorId, of: VectorId) -> Update {
        match self.preconditioning.diagonal() {
            Some(d) => update.multiply(target, d, of),
            None => update,
        }
    }

    /// `target = M of`, if that is a product of its own.
    fn by_product(&self, draft: &mut Draft, target: VectorId, of: VectorId) -> Option<Call> {
        let product = Product::of(Operand::Preconditioner, of, target);
        (self.preconditioning == Preconditioning::Operator).then(|| draft.call(product, |_| {}))
    }

    /// A combination of products with `M`: a vector of its own if there is one.
    fn follow(&self, update: Update, target: VectorId, terms: &[(Scalar, VectorId)]) -> Update {
        if self.preconditioning == Preconditioning::None { update } else { update.set(target, terms) }
    }

    /// `alpha = rho / r̂.A M p`.
    fn set_alpha(&self, p: &mut Program) {
        let gamma = p.fold(self.gamma);
        p.require_finite(gamma);
        p.stop_at_zero(gamma, stop::BREAKDOWN);
        p.set(self.alpha, self.rho / gamma);
        p.set(self.minus_alpha, MINUS_ONE * self.alpha);
    }

    /// Two steps of BiCG, without the second step along `u`. `rs` and `ss` are sums of `r.s` and `s.s`.
    fn steps(&self, draft: &mut Draft, [rs, ss]: [Sums; 2]) -> Vec<Call> {
        let &Self { r, s, u, v, w, shadow, mr, ms, mu, mv, rr, rho_sum, gamma, rho, .. } = self;
        let &Self { alpha, minus_alpha, minus_beta, .. } = self;
        let done = draft.scalar();
        let first = Update::of(Rows).set(X, &[(ONE, X), (alpha, mu)]).set(r, &[(ONE, r), (minus_alpha, v)]);
        let first = draft.call(self.by_element(first, mr, r).dot(rr, r, r), |p| self.set_alpha(p));
        let apply_r = self.by_product(draft, mr, r);
        let product_r = draft.call(Product::of(Operand::A, mr, s).dot(rho_sum, shadow), |_| {});

        let second = Update::of(Rows).set(v, &[(ONE, s), (minus_beta, v)]).set(u, &[(ONE, r), (minus_beta, u)]);
        let second = self.follow(second, mu, &[(ONE, mr), (minus_beta, mu)]);
        let second = draft.call(self.by_element(second, mv, v), |p| {
            let (rr, next) = (p.fold(rr), p.fold(rho_sum));
            // The first step may solve the system.
            p.set(done, ONE);
            p.set_if_positive(rr, done, ZERO);
            p.if_positive(done, |p| {
                p.count();
                p.test(rr);
            });
            p.stop_at_zero(next, stop::BREAKDOWN);
            p.set(minus_beta, MINUS_ONE * (alpha * (next / rho)));
            p.set(rho, next);
        });
        let apply_v = self.by_product(draft, mv, v);
        let product_v = draft.call(Product::of(Operand::A, mv, w).dot(gamma, shadow), |_| {});

        let third = Update::of(Rows).set(r, &[(ONE, r), (minus_alpha, v)]).set(s, &[(ONE, s), (minus_alpha, w)]);
        let third = self.follow(third, mr, &[(ONE, mr), (minus_alpha, mv)]);
        let third = self.by_element(third, ms, s).dot(rs, r, s).dot(ss, s, s);
        let third = draft.call(third, |p| self.set_alpha(p));
        let apply_s = self.by_product(draft, ms, s);
        let calls =
            [Some(first), apply_r, Some(product_r), Some(second), apply_v, Some(product_v), Some(third), apply_s];
        calls.into_iter().flatten().collect()
    }

    /// The least residual over polynomials of degree two, and the second step along `u`. Returns `omega_2`.
    fn polynomial(&self, draft: &mut Draft, [rs, ss]: [Sums; 2]) -> (Vec<Call>, Scalar) {
        let &Self { r, s, t, u, v, w, shadow, mr, ms, mu, rr, rho_sum, alpha, .. } = self;
        let [st, tt, rt] = draft.sums(Rows);
        let [omega1, omega2, minus_omega1, minus_omega2] = draft.scalars();
        let [r_s, s_s, s_t, rest, tau] = draft.scalars();
        let product = draft.call(Product::of(Operand::A, ms, t).square(tt).dot(st, s), |_| {});
        let least = draft.call(Update::of(Rows).dot(rt, r, t), |p| {
            let (rs, ss, st, tt) = (p.fold(rs), p.fold(ss), p.fold(st), p.fold(tt));
            p.require_finite(tt);
            p.set(r_s, rs);
            p.set(s_s, ss);
            p.set(s_t, st);
            // The part of |t|² that s does not explain; 0 if s is 0.
            p.set(tau, ZERO);
            p.set_if_positive(ss, tau, tt - st * (st / ss));
        });
        let combine = |p: &mut Program| {
            let rt = p.fold(rt);
            p.set(omega1, ZERO);
            p.set(omega2, ZERO);
            p.set_if_positive(s_s, omega1, r_s / s_s);
            p.set_if_positive(s_s, rest, rt - s_t * omega1);
            p.set_if_positive(tau, omega2, rest / tau);
            p.set_if_positive(tau, omega1, (r_s - s_t * omega2) / s_s);
            p.set(minus_omega1, MINUS_ONE * omega1);
            p.set(minus_omega2, MINUS_ONE * omega2);
            p.count();
        };
        let answer =
            Update::of(Rows).set(X, &[(ONE, X), (omega1, mr), (omega2, ms)]).set(X, &[(ONE, X), (alpha, mu)]);
        let mut calls = vec![product, least];
        let turned = if self.preconditioning == Preconditioning::None {
            // One launch has room for all vectors.
            answer
        } else {
            calls.push(draft.call(answer, combine));
            Update::of(Rows)
        };
        let turned = turned
            .set(r, &[(ONE, r), (minus_omega1, s), (minus_omega2, t)])
            .set(u, &[(ONE, u), (minus_omega1, v), (minus_omega2, w)])
            .dot(rr, r, r)
            .dot(rho_sum, r, shadow);
        calls.push(match self.preconditioning {
            Preconditioning::None => draft.call(turned, combine),
            _ => draft.call(turned, |_| {}),
        });
        (calls, omega2)
    }
}

pub(super) fn script(draft: &mut Draft, preconditioning: Preconditioning) -> Script {
    let [r, s, t, u, v, w, shadow] = draft.vectors(Rows);
    let [rr, rho_sum, gamma, rs, ss] = draft.sums(Rows);
    let [rho, alpha, minus_alpha, minus_beta] = draft.scalars();
    let [mr, ms, mu, mv] = match preconditioning {
        Preconditioning::None => [r, s, u, v],
        _ => draft.vectors(Rows),
    };
    let held = Held {
        preconditioning,
        r,
        s,
        t,
        u,
        v,
        w,
        shadow,
        mr,
        ms,
        mu,
        mv,
        rr,
        rho_sum,
        gamma,
        rho,
        alpha,
        minus_alpha,
        minus_beta,
    };
    let residual = draft.residual(r, rr);
    let begin = Update::of(Rows).set(shadow, &[(ONE, r)]).set(u, &[(ONE, r)]);
    let begin = draft.call(held.by_element(begin, mu, u), |p| {
        let rr = p.fold(rr);
        p.test(rr);
        p.set(rho, rr);
    });
    let apply = held.by_product(draft, mu, u);
    let product = draft.call(Product::of(Operand::A, mu, v).dot(gamma, shadow), |_| {});
    let steps = held.steps(draft, [rs, ss]);
    let (polynomial, omega2) = held.polynomial(draft, [rs, ss]);
    let direction = Update::of(Rows).set(u, &[(ONE, r), (minus_beta, u)]);
    let direction = draft.call(held.by_element(direction, mu, u), |p| {
        let (rr, next) = (p.fold(rr), p.fold(rho_sum));
        p.test(rr);
        p.stop_at_zero(omega2, stop::BREAKDOWN);
        p.stop_at_zero(next, stop::BREAKDOWN);
        p.set(minus_beta, (next / rho) * (alpha / omega2));
        p.set(rho, next);
    });
    // The residual afresh: the direction keeps what is not r in it.
    let without = draft.call(Update::of(Rows).set(u, &[(ONE, u), (MINUS_ONE, r)]), |_| {});
    let with = Update::of(Rows).set(u, &[(ONE, u), (ONE, r)]).dot(rho_sum, r, shadow);
    let with = draft.call(held.by_element(with, mu, u), |_| {});
    let product_exact = draft.call(Product::of(Operand::A, mu, v).dot(gamma, shadow), |p| {
        let (rr, next) = (p.fold(rr), p.fold(rho_sum));
        p.test(rr);
        p.stop_at_zero(next, stop::BREAKDOWN);
        p.set(rho, next);
    });
    let some = |calls: [Option<Call>; 3]| calls.into_iter().flatten().collect::<Vec<_>>();
    let start = [vec![residual.clone()], some([Some(begin), apply.clone(), Some(product.clone())])];
    let step = [steps, polynomial, some([Some(direction), apply.clone(), Some(product)])];
    let exact = [vec![without, residual], some([Some(with), apply, Some(product_exact)])];
    Script { start: start.concat(), steps: vec![step.concat()], exact: vec![exact.concat()], ..Script::default() }
}
