//! MINRES, for symmetric systems that need not be definite.
//!
//! Lanczos vectors are kept unnormalised: `v̄_k = beta_k v_k`, so that their norms fold into the next launch.
//!
//! ```text
//!   v̄' = A v̄ / beta - (beta / beta_old) v̄_old                       Lanczos
//!   alpha = v̄'.v̄ / beta,  v̄' -= (alpha / beta) v̄,  beta' = |v̄'|
//!   delta = c d + s alpha,  g = s d - c alpha,  d' = -c beta',  e' = s beta'   the last rotation
//!   gamma = sqrt(g² + beta'²),  c' = g / gamma,  s' = beta' / gamma            the next one
//!   w' = (v̄ / beta - e w_old - delta w) / gamma,  x += c' phi w',  phi' = s' phi
//! ```
//!
//! `phi` is `|r|`. Three launches. For a singular system that has no solution it stops on the gradient `|A r|`, which is
//! `phi sqrt(g² + d²)`.
//!
//! Source: C. C. Paige and M. A. Saunders, "Solution of sparse indefinite systems of linear equations", SIAM J. Numer.
//! Anal. 12(4), 1975.

use crate::recurrence::{MINUS_ONE, ONE, ZERO, sqrt};
use crate::solver::plan::{Operand, Plan, Product, Script, Space::Rows, Update, X};
use crate::state::stop;

pub(super) fn script(plan: &mut Plan) -> Script {
    let v = plan.vectors::<3>(Rows);
    let w = plan.vectors::<3>(Rows);
    let [rr, gg, vv, v_av] = plan.sums(Rows);
    let [beta, inverse, back, alpha, turn, phi, residual2, gradient2] = plan.scalars();
    let [c, s, d, e, delta, g, gamma, last_phi] = plan.scalars();
    let [next_beta, from_v, from_old, from_w, to_x, last_e] = plan.scalars();

    let residual = plan.residual(v[0], rr);
    // The gradient of the start: later ones follow from the rotations.
    let gradient = plan.call(Product::of(Operand::A, v[0], w[0]).square(gg), |_| {});
    let clear = Update::of(Rows).set(w[1], &[(ZERO, w[0])]).set(w[2], &[(ZERO, w[0])]).set(v[2], &[(ZERO, w[0])]);
    let clear = plan.call(clear, |p| {
        let (rr, gg) = (p.fold(rr), p.fold(gg));
        p.require_finite_start(rr, gg);
        p.set(residual2, rr);
        p.set(gradient2, gg);
        p.set(beta, sqrt(rr));
        p.set(phi, beta);
        p.set(c, MINUS_ONE);
        p.set(s, ZERO);
        p.set(d, ZERO);
        p.set(e, ZERO);
        p.set(back, ZERO);
    });
    let mut parts = Vec::new();
    for k in 0..3 {
        let (old, now, new) = (v[(k + 2) % 3], v[k], v[(k + 1) % 3]);
        let lanczos = Product::of(Operand::A, now, new).scaled(inverse).plus(back, old).dot(v_av, now);
        let lanczos = plan.call(lanczos, |p| {
            p.test_least_squares(residual2, gradient2);
            p.set(inverse, ONE / beta);
        });
        let orthogonalise = Update::of(Rows).set(new, &[(ONE, new), (turn, now)]).dot(vv, new, new);
        let orthogonalise = plan.call(orthogonalise, |p| {
            let v_av = p.fold(v_av);
            p.require_finite(v_av);
            p.set(alpha, v_av / beta);
            p.set(turn, MINUS_ONE * (alpha / beta));
        });
        let (w_older, w_old, w_new) = (w[(k + 1) % 3], w[(k + 2) % 3], w[k]);
        let update = Update::of(Rows)
            .set(w_new, &[(from_v, now), (from_old, w_older), (from_w, w_old)])
            .set(X, &[(ONE, X), (to_x, w_new)]);
        let update = plan.call(update, |p| {
            let vv = p.fold(vv);
            p.require_finite(vv);
            p.set(next_beta, sqrt(vv));
            p.set(last_e, e);
            p.set(delta, c * d + s * alpha);
            p.set(g, s * d - c * alpha);
            p.set(e, s * next_beta);
            p.set(d, -(c * next_beta));
            p.set(gamma, sqrt(g * g + next_beta * next_beta));
            p.set(last_phi, phi);
            // If no rotation is left, the system is singular.
            p.stop_unless_less(ZERO, gamma, stop::BREAKDOWN);
            p.set(c, g / gamma);
            p.set(s, next_beta / gamma);
            p.set(to_x, c * phi);
            p.set(phi, s * phi);
            p.set(residual2, phi * phi);
            // Gradient of the answer before: g of the present one is not known yet.
            p.set(gradient2, (last_phi * last_phi) * (g * g + d * d));
            p.set(from_v, ONE / (gamma * beta));
            p.set(from_old, -(last_e / gamma));
            p.set(from_w, -(delta / gamma));
            p.set(back, -(next_beta / beta));
            p.set(beta, next_beta);
            p.count();
        });
        parts.push([orthogonalise, update, lanczos]);
    }
    let start = vec![residual, gradient, clear, parts[0][2].clone()];
    // Iteration k ends with the product of the next one.
    let next = |k: usize| parts[(k + 1) % 3][2].clone();
    let steps = (0..3).map(|k| vec![parts[k][0].clone(), parts[k][1].clone(), next(k)]).collect();
    Script { start, steps, least_squares: true, ..Script::default() }
}
