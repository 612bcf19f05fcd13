//! LSQR: least squares by bidiagonalisation, `min |A x - b|² + damp² |x - x_ref|²`.
//!
//! ```text
//!   rho = sqrt(rhobar² + beta²),  c = rhobar / rho,  s = beta / rho
//!   theta = s alpha,  rhobar' = -c alpha,  phi = c phibar,  phibar' = s phibar
//!   x += (phi / rho) w,  w = v - (theta / rho) w
//! ```
//!
//! `phibar` is the norm of the residual (stacked with `damp (x - x_ref)` if there is damping), `phibar alpha |c|` that
//! of the gradient. Three launches, five with damping. `|r|` falls in every iteration.
//!
//! Source: C. C. Paige and M. A. Saunders, "LSQR: an algorithm for sparse linear equations and sparse least squares", ACM
//! TOMS 8(1), 1982.

use super::bidiagonal::Bidiagonal;
use super::info::{LEAST_SQUARES, MethodInfo};
use crate::recurrence::{ONE, sqrt};
use crate::solver::script::Space::Cols;
use crate::solver::script::{Draft, Script, Update, X};

pub(super) const INFO: MethodInfo = MethodInfo { name: "lsqr", preconditioner: true, ..LEAST_SQUARES };

pub(super) fn script(draft: &mut Draft, damp: f64) -> Script {
    let it = Bidiagonal::new(draft, damp);
    let w = draft.vector(Cols);
    let [rhobar, phibar, rho, c, s, theta, phi] = draft.scalars();
    let [to_x, back_w, root] = draft.scalars();
    let begin = Update::of(Cols).set(w, &[(it.inverse_v, it.v[0])]);
    let first = |p: &mut crate::recurrence::Program| {
        p.set(rhobar, it.alpha);
        p.set(phibar, it.beta);
    };
    it.script(draft, begin, first, |draft, t| {
        let update =
            Update::of(Cols).set(X, &[(ONE, X), (to_x, w)]).set(w, &[(it.inverse_v, it.v[t]), (back_w, w)]);
        draft.call(update, |p| {
            it.advance(p);
            p.set(rho, sqrt(rhobar * rhobar + it.beta * it.beta));
            p.set(c, rhobar / rho);
            p.set(s, it.beta / rho);
            p.set(theta, s * it.alpha);
            p.set(rhobar, -(c * it.alpha));
            p.set(phi, c * phibar);
            p.set(phibar, s * phibar);
            p.set(to_x, phi / rho);
            p.set(back_w, -(theta / rho));
            p.set(root, phibar * it.alpha * c);
            it.finish(p, phibar * phibar, root * root);
        })
    })
}
