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
//! With a preconditioner `M`, symmetric positive definite, the Lanczos vectors are orthogonal in the inner product of `M`: with
//! `z = M v̄`, products are `A z / beta`, `alpha = (A z).z / beta²`, `beta'² = v̄'.z'`, and `z / beta` takes the place of `v̄ / beta` in `w'`.
//! `phi` is then the norm of `r` that belongs to `M`, so that `r` itself is carried for the stopping test:
//!
//! ```text
//!   r' = s'² r - (c' phi / gamma) v̄'
//! ```
//!
//! Vectors held: 6, with a preconditioner 10, and 1 more for a diagonal. A diagonal preconditioner takes three launches, any other takes
//! four, one of which applies `M`. Without a preconditioner the gradient follows from the rotations. With one, only a start computes `|A r|`.
//!
//! Source: C. C. Paige and M. A. Saunders, "Solution of sparse indefinite systems of linear equations", SIAM J. Numer.
//! Anal. 12(4), 1975; H. Elman, D. Silvester, A. Wathen, "Finite elements and fast iterative solvers", 2nd ed. 2014, algorithm 4.1
//! (preconditioned).

use super::info::{MethodInfo, SQUARE, Symmetry};
use crate::recurrence::{MINUS_ONE, ONE, Program, Scalar, Sums, ZERO, sqrt};
use crate::solver::script::Space::Rows;
use crate::solver::script::{Call, Draft, Operand, Preconditioning, Product, Script, Update, VectorId, X};
use crate::state::stop;

/// The gradient tells a system without a solution.
pub(super) const INFO: MethodInfo =
    MethodInfo { name: "minres", symmetry: Symmetry::Symmetric, gradient: true, preconditioner: true, ..SQUARE };

pub(super) fn script(draft: &mut Draft, preconditioning: Preconditioning) -> Script {
    match preconditioning {
        Preconditioning::None => plain(draft),
        _ => preconditioned(draft, preconditioning),
    }
}

/// Scalars of the Lanczos process and of the rotations.
struct Scalars {
    beta: Scalar,
    inverse: Scalar,
    back: Scalar,
    alpha: Scalar,
    turn: Scalar,
    /// `|r|`, in the norm of the preconditioner.
    phi: Scalar,
    last_phi: Scalar,
    c: Scalar,
    s: Scalar,
    d: Scalar,
    e: Scalar,
    last_e: Scalar,
    delta: Scalar,
    g: Scalar,
    gamma: Scalar,
    next_beta: Scalar,
    /// Coefficients of the new `w` and of `x`.
    from_v: Scalar,
    from_old: Scalar,
    from_w: Scalar,
    to_x: Scalar,
}

impl Scalars {
    fn new(draft: &mut Draft) -> Self {
        let [beta, inverse, back, alpha, turn, phi, last_phi, c, s, d] = draft.scalars();
        let [e, last_e, delta, g, gamma, next_beta, from_v, from_old, from_w, to_x] = draft.scalars();
        Self {
            beta,
            inverse,
            back,
            alpha,
            turn,
            phi,
            last_phi,
            c,
            s,
            d,
            e,
            last_e,
            delta,
            g,
            gamma,
            next_beta,
            from_v,
            from_old,
            from_w,
            to_x,
        }
    }

    /// The start, with the square of the first `beta`.
    fn begin(&self, p: &mut Program, beta2: Scalar) {
        p.set(self.beta, sqrt(beta2));
        p.set(self.phi, self.beta);
        p.set(self.c, MINUS_ONE);
        p.set(self.s, ZERO);
        p.set(self.d, ZERO);
        p.set(self.e, ZERO);
        p.set(self.back, ZERO);
    }

    /// `alpha`, of the sum that belongs to it.
    fn orthogonalise(&self, p: &mut Program, v_av: Sums) {
        let v_av = p.fold(v_av);
        p.require_finite(v_av);
        p.set(self.alpha, v_av / self.beta);
        p.set(self.turn, MINUS_ONE * (self.alpha / self.beta));
    }

    /// The last rotation and the next one, with `next_beta`, and the coefficients that follow.
    fn rotate(&self, p: &mut Program) {
        let &Self { alpha, c, s, d, e, delta, g, gamma, next_beta, phi, .. } = self;
        p.set(self.last_e, e);
        p.set(delta, c * d + s * alpha);
        p.set(g, s * d - c * alpha);
        p.set(e, s * next_beta);
        p.set(d, -(c * next_beta));
        p.set(gamma, sqrt(g * g + next_beta * next_beta));
        p.set(self.last_phi, phi);
        // If no rotation is left, the system is singular.
        p.stop_unless_less(ZERO, gamma, stop::BREAKDOWN);
        p.set(c, g / gamma);
        p.set(s, next_beta / gamma);
        p.set(self.to_x, c * phi);
        p.set(phi, s * phi);
        p.set(self.from_v, ONE / (gamma * self.beta));
        p.set(self.from_old, -(self.last_e / gamma));
        p.set(self.from_w, -(delta / gamma));
        p.set(self.back, -(next_beta / self.beta));
        p.set(self.beta, next_beta);
        p.count();
    }
}

/// `w' = from_v v + from_old w_older + from_w w_old` and `x += to_x w'`, in turn `k`.
fn advance(it: &Scalars, k: usize, w: [VectorId; 3], v: VectorId) -> Update {
    let (w_older, w_old, w_new) = (w[(k + 1) % 3], w[(k + 2) % 3], w[k]);
    Update::of(Rows)
        .set(w_new, &[(it.from_v, v), (it.from_old, w_older), (it.from_w, w_old)])
        .set(X, &[(ONE, X), (it.to_x, w_new)])
}

/// Vectors of the turns before the first, which are 0; `any` is one that is finite.
fn zeros(of: [VectorId; 3], any: VectorId) -> Update {
    of.into_iter().fold(Update::of(Rows), |update, v| update.set(v, &[(ZERO, any)]))
}

fn plain(draft: &mut Draft) -> Script {
    let v = draft.vectors::<3>(Rows);
    let w = draft.vectors::<3>(Rows);
    let [rr, gg, vv, v_av] = draft.sums(Rows);
    let [residual2, gradient2] = draft.scalars();
    let it = Scalars::new(draft);

    let residual = draft.residual(v[0], rr);
    // The gradient of the start: later ones follow from the rotations.
    let gradient = draft.call(Product::of(Operand::A, v[0], w[0]).square(gg), |_| {});
    let clear = draft.call(zeros([w[1], w[2], v[2]], w[0]), |p| {
        let (rr, gg) = (p.fold(rr), p.fold(gg));
        p.require_finite_start(rr, gg);
        p.set(residual2, rr);
        p.set(gradient2, gg);
        it.begin(p, rr);
    });
    let mut parts = Vec::new();
    for k in 0..3 {
        let (old, now, new) = (v[(k + 2) % 3], v[k], v[(k + 1) % 3]);
        let lanczos = Product::of(Operand::A, now, new).scaled(it.inverse).plus(it.back, old).dot(v_av, now);
        let lanczos = draft.call(lanczos, |p| {
            p.test_least_squares(residual2, gradient2);
            p.set(it.inverse, ONE / it.beta);
        });
        let orthogonalise = Update::of(Rows).set(new, &[(ONE, new), (it.turn, now)]).dot(vv, new, new);
        let orthogonalise = draft.call(orthogonalise, |p| it.orthogonalise(p, v_av));
        let update = draft.call(advance(&it, k, w, now), |p| {
            let vv = p.fold(vv);
            p.require_finite(vv);
            p.set(it.next_beta, sqrt(vv));
            it.rotate(p);
            p.set(residual2, it.phi * it.phi);
            // Gradient of the answer before: g of the present one is not known yet.
            p.set(gradient2, (it.last_phi * it.last_phi) * (it.g * it.g + it.d * it.d));
        });
        parts.push((vec![orthogonalise, update], lanczos));
    }
    script_of(vec![residual, gradient, clear], &parts)
}

/// Rounding that may make `v̄'.M v̄'` negative, as a part of `v̄.M v̄`.
const ROUNDING: f64 = 1e-4;

fn preconditioned(draft: &mut Draft, preconditioning: Preconditioning) -> Script {
    let v = draft.vectors::<3>(Rows);
    let z = draft.vectors::<3>(Rows);
    let w = draft.vectors::<3>(Rows);
    let r = draft.vector(Rows);
    let [rr, gg, vz, z_az] = draft.sums(Rows);
    let [gradient2, from_r, to_r] = draft.scalars();
    let rounding = draft.constant(-ROUNDING);
    let it = Scalars::new(draft);
    let diagonal = preconditioning.diagonal();
    // z = M v in the pass that made v, or as a product.
    let in_pass = |update: Update, v, z| match diagonal {
        Some(m) => update.multiply(z, m, v).dot(vz, v, z),
        None => update,
    };
    let apply = |draft: &mut Draft, v, z| {
        let product = Product::of(Operand::Preconditioner, v, z).dot(vz, v);
        if diagonal.is_some() { None } else { Some(draft.call(product, |_| {})) }
    };

    let residual = draft.residual(r, rr);
    let gradient = draft.call(Product::of(Operand::A, r, w[0]).square(gg), |_| {});
    let copy = draft.call(in_pass(Update::of(Rows).set(v[0], &[(ONE, r)]), v[0], z[0]), |_| {});
    let first = apply(draft, v[0], z[0]);
    let clear = draft.call(zeros([w[1], w[2], v[2]], w[0]), |p| {
        let (rr, gg, vz) = (p.fold(rr), p.fold(gg), p.fold(vz));
        p.require_finite_start(rr, gg);
        p.require_finite(vz);
        p.set(gradient2, gg);
        p.stop_if_less(vz, ZERO, stop::INDEFINITE_PRECONDITIONER);
        it.begin(p, vz);
    });
    let mut parts = Vec::new();
    for k in 0..3 {
        let (old, now, new) = (v[(k + 2) % 3], v[k], v[(k + 1) % 3]);
        let (z_now, z_new) = (z[k], z[(k + 1) % 3]);
        let lanczos = Product::of(Operand::A, z_now, new).scaled(it.inverse).plus(it.back, old).dot(z_az, z_now);
        let lanczos = draft.call(lanczos, |p| {
            let rr = p.fold(rr);
            p.test_least_squares(rr, gradient2);
            // beta = 0 with a residual left: M is singular.
            p.stop_unless_less(ZERO, it.beta, stop::INDEFINITE_PRECONDITIONER);
            p.set(it.inverse, ONE / it.beta);
        });
        let orthogonalise = in_pass(Update::of(Rows).set(new, &[(ONE, new), (it.turn, now)]), new, z_new);
        let orthogonalise = draft.call(orthogonalise, |p| it.orthogonalise(p, z_az));
        let precondition = apply(draft, new, z_new);
        let update = advance(&it, k, w, z_now).set(r, &[(from_r, r), (to_r, new)]).dot(rr, r, r);
        let update = draft.call(update, |p| {
            let vz = p.fold(vz);
            p.require_finite(vz);
            p.stop_if_less(vz, rounding * (it.beta * it.beta), stop::INDEFINITE_PRECONDITIONER);
            p.set(it.next_beta, ZERO);
            p.set_if_positive(vz, it.next_beta, sqrt(vz));
            it.rotate(p);
            p.set(from_r, it.s * it.s);
            p.set(to_r, -(it.to_x / it.gamma));
        });
        let calls = [Some(orthogonalise), precondition, Some(update)];
        parts.push((calls.into_iter().flatten().collect(), lanczos));
    }
    let start = [Some(residual), Some(gradient), Some(copy), first, Some(clear)];
    script_of(start.into_iter().flatten().collect(), &parts)
}

/// A script of a start, and the calls of each turn with the product that the turn begins with: iteration `k` ends with that of the next.
fn script_of(start: Vec<Call>, parts: &[(Vec<Call>, Call)]) -> Script {
    let step = |k: usize| [&parts[k].0[..], &[parts[(k + 1) % parts.len()].1.clone()]].concat();
    Script {
        start: [&start[..], &[parts[0].1.clone()]].concat(),
        steps: (0..parts.len()).map(step).collect(),
        least_squares: true,
        ..Script::default()
    }
}
