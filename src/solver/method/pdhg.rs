//! PDHG, the primal-dual hybrid gradient method of Chambolle and Pock:
//!
//! ```text
//!   min |A x - b|² / 2 + tikhonov |x|² / 2 + variation sum_p |D x|_p + directional sum_p |e.D x|_p   over lower <= x <= upper
//!
//!   p' = p + step D (2 x - x_old), then into the disc |p| <= variation             at each pixel
//!   q' = q + step e.D (2 x - x_old), then into |q| <= directional
//!   z' = (z + sigma (b - A (2 x - x_old))) / (1 + sigma)                             z is the residual at the minimum
//!   x' = P((x + tau (A'z' - D'p' - (e.D)'q')) / (1 + tau tikhonov))                  P into the bounds
//! ```
//!
//! `D x` are the first differences to the right and downwards of an image, 0 at its rims, and `|D x|_p` is their length at pixel `p`: the
//! isotropic total variation itself, not a smooth stand-in. `e` is a direction of length 1. `sigma = 1`, and `tau` and
//! `step` give half of `tau (sigma |A|² + step |D|²) <= 1` to each term, with `|D|² <= 8`, 16 with a direction; without neighbours
//! `tau = 1 / |A|²`. `|A|` is estimated when the solver is set up, by 30 steps of the power iteration.
//!
//! The bounds hold in every iterate. `b - A (2 x - x_old)` follows from the residuals of the last two iterates, computed from the iterates
//! themselves, so that the history has true residuals. The norm of the gradient is `sqrt(|x' - x|² / tau² + 8 |p' - p|² + 8 |q' - q|²)`:
//! 0 if `x`, `p` and `q` are optimal together. A start sets `z = b - A x`, its value at the minimum, and keeps `p` and `q`, which
//! are 0 when a solve begins. It ends by itself where a step is less than the rounding of `x`.
//!
//! Vectors held: 3 as long as `A` has rows, 4 as it has columns, 2 more for total variation and 1 more for a direction. Launches: 4, 6
//! with neighbours. Bytes: those of two products, 5 vectors of rows, 7 of columns, and 9 more with total variation.
//!
//! Source: A. Chambolle, T. Pock, "A first-order primal-dual algorithm for convex problems with applications to imaging", J. Math.
//! Imaging Vision 40(1), 2011, algorithm 1; for tomography E. Y. Sidky, J. H. Jørgensen, X. Pan, Phys. Med. Biol. 57, 2012.

use super::fista::LOST;
use crate::recurrence::{MINUS_ONE, ONE};
use crate::solver::objective::{Neighbours, Terms, Weight};
use crate::solver::plan::{
    Field, Operand, OverImage, Plan, Product, Script, Space::Cols, Space::Rows, Update, Work, X,
};
use crate::state::stop;

/// `epsilon` is the rounding error of the vectors.
pub(super) fn script(plan: &mut Plan, neighbours: Neighbours, epsilon: f64) -> Script {
    let [r, last_r, z] = plan.vectors(Rows);
    let [last_x, g, lower, upper] = plan.vectors(Cols);
    let rr = plan.sum(Rows);
    let [step2, xx, change] = plan.sums(Cols);
    let [keep, push, inverse_step2, keep_z, new_r, old_r, gradient2] = plan.scalars();
    let [step, variation, directional, across, down] = plan.scalars();
    let (eight, least) = (plan.constant(8.0), plan.constant((LOST * epsilon).powi(2)));
    let bounds = [lower, upper];
    let field = (neighbours.width > 0).then(|| Field {
        width: neighbours.width,
        p: plan.vectors(Cols),
        q: neighbours.directional.then(|| plan.vector(Cols)),
        weights: step,
        change,
    });

    let feasible = Update::of(Cols).clamp(X, X, bounds).set(last_x, &[(ONE, X)]);
    let feasible = plan.call(feasible, |_| {});
    let residual = plan.residual(r, rr);
    let first = plan.call(Update::of(Rows).set(z, &[(ONE, r)]).set(last_r, &[(ONE, r)]), |_| {});
    let gradient = plan.call(Product::of(Operand::Adjoint, z, g), |_| {});
    let mut gradient = vec![gradient];
    if let Some(field) = field {
        gradient.insert(0, plan.call(OverImage::Ascend { field, x: X, last_x }, |_| {}));
        gradient.push(plan.call(OverImage::Subtract { field, g }, |_| {}));
    }
    let projected = Update::of(Cols).set(g, &[(keep, X), (push, g)]).clamp(g, g, bounds);
    let projected = plan.call(projected.set(g, &[(ONE, X), (MINUS_ONE, g)]).dot(step2, g, g), |_| {});
    let norms = |s: &mut crate::recurrence::Program| {
        let (rr, step2) = (s.fold(rr), s.fold(step2));
        s.set(gradient2, step2 * inverse_step2);
        if field.is_some() {
            let change = s.fold(change);
            s.set(gradient2, gradient2 + eight * change);
        }
        (rr, step2)
    };
    let judged = plan.call(Work::Scalars, |s| {
        let (rr, _) = norms(s);
        s.test_least_squares(rr, gradient2);
    });

    let advance = Update::of(Cols).set(last_x, &[(ONE, X)]).set(X, &[(keep, X), (push, g)]).clamp(X, X, bounds);
    let advance = advance.set(g, &[(ONE, X), (MINUS_ONE, last_x)]).dot(step2, g, g).dot(xx, X, X);
    let advance = plan.call(advance, |_| {});
    let product = plan.residual(r, rr);
    let ascend = Update::of(Rows).set(z, &[(keep_z, z), (new_r, r), (old_r, last_r)]).set(last_r, &[(ONE, r)]);
    let ascend = plan.call(ascend, |s| {
        let (rr, step2) = norms(s);
        let xx = s.fold(xx);
        s.count();
        s.test_least_squares(rr, gradient2);
        // What a start says of the answer decides.
        s.stop_unless_less(least * xx, step2, stop::CONVERGED);
    });
    let weights = [
        (keep, Weight::Keep),
        (push, Weight::Push),
        (inverse_step2, Weight::InverseStep2),
        (keep_z, Weight::KeepDual),
        (new_r, Weight::NewResidual),
        (old_r, Weight::OldResidual),
        (step, Weight::Step),
        (variation, Weight::Variation),
        (directional, Weight::Directional),
        (across, Weight::Across),
        (down, Weight::Down),
    ];
    let dual = field.map_or(Vec::new(), |field| field.p.into_iter().chain(field.q).collect());
    let start = [vec![feasible, residual, first], gradient.clone(), vec![projected, judged]].concat();
    Script {
        start,
        steps: vec![[gradient, vec![advance, product, ascend]].concat()],
        least_squares: true,
        terms: Some(Terms { weights: weights.to_vec(), bounds, dual, neighbours }),
        ..Script::default()
    }
}
