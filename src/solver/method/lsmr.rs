//! LSMR: least squares by bidiagonalisation, `min |A x - b|² + damp² |x - x_ref|²`, with a gradient that falls in every
//! iteration: an early stop costs less accuracy than with LSQR.
//!
//! ```text
//!   rho = sqrt(alphabar² + beta²),  c = alphabar / rho,  s = beta / rho,  theta' = s alpha,  alphabar' = c alpha
//!   thetabar = sbar rho,  rhobar' = sqrt((cbar rho)² + theta'²),  cbar' = cbar rho / rhobar',  sbar' = theta' / rhobar'
//!   zeta = cbar' zetabar,  zetabar' = -sbar' zetabar
//!   hbar = h - (thetabar rho / (rho_old rhobar_old)) hbar,  x += (zeta / (rho rhobar')) hbar,  h = v - (theta' / rho) h
//! ```
//!
//! `|zetabar|` is the norm of the gradient; that of the residual follows from two more rotations. Three launches, five
//! with damping.
//!
//! Source: D. C.-L. Fong and M. A. Saunders, "LSMR: an iterative algorithm for sparse least-squares problems", SIAM J. Sci.
//! Comput. 33(5), 2011.

use super::bidiagonal::Bidiagonal;
use super::info::{LEAST_SQUARES, MethodInfo};
use crate::recurrence::{MINUS_ONE, ONE, Program, ZERO, sqrt};
use crate::solver::script::Space::Cols;
use crate::solver::script::{Draft, Script, Update, X};

pub(super) const INFO: MethodInfo = MethodInfo { name: "lsmr", preconditioner: true, ..LEAST_SQUARES };

pub(super) fn script(draft: &mut Draft, damp: f64) -> Script {
    let it = Bidiagonal::new(draft, damp);
    let [h, hbar] = draft.vectors(Cols);
    let [alphabar, zetabar, rho, rhobar, cbar, sbar] = draft.scalars();
    let [c, s, theta, zeta, thetabar, last_rho, last_rhobar, last_zeta] = draft.scalars();
    let [to_hbar, to_x, to_h] = draft.scalars();
    // Scalars of the residual's norm.
    let [beta_d, beta_dd, rho_d, tau, theta_tilde, last_theta_tilde, c_tilde, s_tilde, rho_tilde] = draft.scalars();
    let begin = Update::of(Cols).set(h, &[(it.inverse_v, it.v[0])]).set(hbar, &[(ZERO, h)]);
    let first = |p: &mut Program| {
        p.set(alphabar, it.alpha);
        p.set(zetabar, it.alpha * it.beta);
        for one in [rho, rhobar, cbar, rho_d] {
            p.set(one, ONE);
        }
        for zero in [sbar, zeta, beta_d, tau, theta_tilde] {
            p.set(zero, ZERO);
        }
        p.set(beta_dd, it.beta);
    };
    it.script(draft, begin, first, |draft, t| {
        let update = Update::of(Cols)
            .set(hbar, &[(ONE, h), (to_hbar, hbar)])
            .set(X, &[(ONE, X), (to_x, hbar)])
            .set(h, &[(it.inverse_v, it.v[t]), (to_h, h)]);
        draft.call(update, |p| {
            it.advance(p);
            p.set(last_rho, rho);
            p.set(last_rhobar, rhobar);
            p.set(last_zeta, zeta);
            p.set(rho, sqrt(alphabar * alphabar + it.beta * it.beta));
            p.set(c, alphabar / rho);
            p.set(s, it.beta / rho);
            p.set(theta, s * it.alpha);
            p.set(alphabar, c * it.alpha);
            p.set(thetabar, sbar * rho);
            p.set(rhobar, sqrt((cbar * rho) * (cbar * rho) + theta * theta));
            p.set(cbar, (cbar * rho) / rhobar);
            p.set(sbar, theta / rhobar);
            p.set(zeta, cbar * zetabar);
            p.set(zetabar, -(sbar * zetabar));
            p.set(to_hbar, -((thetabar * rho) / (last_rho * last_rhobar)));
            p.set(to_x, zeta / (rho * rhobar));
            p.set(to_h, -(theta / rho));
            // The residual: section 5.1 of the source without its own damping.
            let beta_hat = c_tilde;
            p.set(beta_hat, c * beta_dd);
            p.set(beta_dd, MINUS_ONE * (s * beta_dd));
            p.set(last_theta_tilde, theta_tilde);
            p.set(rho_tilde, sqrt(rho_d * rho_d + thetabar * thetabar));
            p.set(s_tilde, thetabar / rho_tilde);
            p.set(beta_d, (rho_d / rho_tilde) * beta_hat - s_tilde * beta_d);
            p.set(c_tilde, rho_d / rho_tilde);
            p.set(theta_tilde, s_tilde * rhobar);
            p.set(rho_d, c_tilde * rhobar);
            p.set(tau, (last_zeta - last_theta_tilde * tau) / rho_tilde);
            let short = s_tilde;
            p.set(short, beta_d - (zeta - theta_tilde * tau) / rho_d);
            it.finish(p, short * short + beta_dd * beta_dd, zetabar * zetabar);
        })
    })
}
