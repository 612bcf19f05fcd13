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
//! isotropic total variation itself, not a smooth stand-in. `e` is a direction of length 1. `tau` and `step` give
//! half of `tau (sigma |A|² + step |D|²) <= 1` to each term, with `|D|² <= 8`, 16 with a direction; without neighbours
//! `tau = 1 / (sigma |A|²)`. `|A|` is estimated when the solver is set up, by 30 steps of the power iteration.
//!
//! `sigma` is 0.01 at first. After 32, 64, 128, ... iterations it becomes the geometric mean of what it was and of `|z| / (|A| |x|)`, within
//! 0.001 and 1, so that `x` and `z` need about as many steps (the primal weight of PDLP). On scans of the Helsinki challenge 0.01 came as
//! near to the minimum in 300 iterations as 1 in more than 2000.
//!
//! The bounds hold in every iterate. `b - A (2 x - x_old)` follows from the residuals of the last two iterates, computed from the iterates
//! themselves, so that the history has true residuals. The square of the norm of the gradient is
//!
//! ```text
//!   |x' - x|² / tau² + 8 |p' - p|² + 8 |q' - q|² + |A|² |b - A (2 x - x_old) - z|²
//! ```
//!
//! The norm is 0 only if `x`, `p`, `q` and `z` are optimal together. The step of `x` alone would not do: it is 0 while every unknown is held at a
//! bound. A start sets `z = b - A x`, its value at the minimum, and goes on with a step of `p` and `q`, which are 0 when a solve begins. The method
//! stops if the norm is no larger than the rounding of `x`, `p`, `q` and `z` can make it.
//!
//! Vectors held: 5 as long as `A` has rows, 4 as it has columns, 2 more for total variation and 1 more for a direction. Launches: 4, 6
//! with neighbours. Bytes: those of two products, 6 vectors of rows, 7 of columns, and 10 more with total variation, 13 with a
//! direction.
//!
//! Source: A. Chambolle, T. Pock, "A first-order primal-dual algorithm for convex problems with applications to imaging", J. Math.
//! Imaging Vision 40(1), 2011, algorithm 1; the choice of `sigma`: D. Applegate et al., "Practical large-scale linear programming using
//! primal-dual hybrid gradient", NeurIPS 2021, section 3.3; for tomography E. Y. Sidky, J. H. Jørgensen, X. Pan, Phys. Med. Biol. 57, 2012.

use super::fista::LOST;
use super::info::{Bounds, LEAST_SQUARES, MethodInfo};
use crate::recurrence::{MINUS_ONE, ONE, Program, Scalar, sqrt};
use crate::solver::script::Space::{Cols, Rows};
use crate::solver::script::{
    Draft, Field, Launch, Neighbours, Operand, OverImage, Product, Script, Terms, Update, Weight, X,
};
use crate::state::stop;

pub(super) const INFO: MethodInfo = MethodInfo {
    name: "pdhg",
    terms: &["tikhonov", "variation", "directional"],
    bounds: Bounds::Both,
    ..LEAST_SQUARES
};

/// `sigma` in the first iterations, and the least and the most that it may become.
const SIGMA: f64 = 0.01;
const SIGMAS: [f64; 2] = [1e-3, 1.0];
/// The iteration after which `sigma` is chosen first.
const CHOICE: f64 = 32.0;

/// Lengths of steps, and the scalars that they are made of.
struct Steps {
    /// The five that launches over the image read: the step of `p` and `q`, the weights, and the direction.
    field: [Scalar; 5],
    sigma: Scalar,
    /// `tau` and the step of `p` and `q` for a `sigma` of 1, `|A|²`, `1 / |A|`, and the weight of `|x|²`.
    tau1: Scalar,
    step1: Scalar,
    square: Scalar,
    inverse: Scalar,
    tikhonov: Scalar,
    /// Factors of `x` and of the gradient, and `1 / tau²`.
    keep: Scalar,
    push: Scalar,
    /// Factor of `x` in a step: `keep - 1`.
    shrink: Scalar,
    inverse_step2: Scalar,
    /// Factors of `z` and of the residuals of the last two iterates, and that of the square of a step of `z` in the gradient's.
    keep_z: Scalar,
    new_r: Scalar,
    old_r: Scalar,
    misfit: Scalar,
    /// The number of iterations, and that after which `sigma` is chosen.
    done: Scalar,
    choice: Scalar,
    limits: [Scalar; 2],
    tau: Scalar,
    /// A bound of `|D|²`.
    eight: Scalar,
}

impl Steps {
    fn new(draft: &mut Draft) -> Self {
        let field = draft.scalars();
        let [tau1, step1, square, inverse, tikhonov, keep, push, shrink, inverse_step2] = draft.scalars();
        let [keep_z, new_r, old_r, misfit, done, tau] = draft.scalars();
        let [sigma, choice, eight] = [SIGMA, CHOICE, 8.0].map(|v| draft.constant(v));
        let limits = SIGMAS.map(|v| draft.constant(v));
        Self {
            field,
            sigma,
            tau1,
            step1,
            square,
            inverse,
            tikhonov,
            keep,
            push,
            shrink,
            inverse_step2,
            keep_z,
            new_r,
            old_r,
            misfit,
            done,
            choice,
            limits,
            tau,
            eight,
        }
    }

    /// Scalars that regularizations set.
    fn weights(&self) -> Vec<(Scalar, Weight)> {
        let [_, variation, directional, across, down] = self.field;
        vec![
            (self.tau1, Weight::Tau),
            (self.step1, Weight::Step),
            (self.square, Weight::Square),
            (self.inverse, Weight::Inverse),
            (self.tikhonov, Weight::Tikhonov),
            (variation, Weight::Variation),
            (directional, Weight::Directional),
            (across, Weight::Across),
            (down, Weight::Down),
        ]
    }

    /// Sets all lengths by `sigma`.
    fn derive(&self, s: &mut Program) {
        s.set(self.tau, self.tau1 / self.sigma);
        s.set(self.field[0], self.step1 * self.sigma);
        s.set(self.keep, ONE / (ONE + self.tau * self.tikhonov));
        s.set(self.push, self.tau * self.keep);
        s.set(self.inverse_step2, ONE / (self.tau * self.tau));
        s.set(self.keep_z, ONE / (ONE + self.sigma));
        s.set(self.old_r, MINUS_ONE * (self.sigma * self.keep_z));
        s.set(self.new_r, MINUS_ONE * (self.old_r + self.old_r));
        s.set(self.misfit, self.square / (self.old_r * self.old_r));
    }

    /// Takes what steps of `p` and `q` add to the square of the gradient; 0 without them.
    fn take_change(&self, s: &mut Program, of_field: Scalar, field: Option<Field>) {
        if let Some(field) = field {
            let change = s.fold(field.change);
            s.set(of_field, self.eight * change);
        }
    }

    /// Chooses `sigma` if it is time to: the geometric mean of what it was and of `|z| / (|A| |x|)`, within limits. That is NaN if `x` is
    /// 0, and so not above 0.
    fn choose(&self, s: &mut Program, z2: Scalar, x2: Scalar) {
        let [least, most] = self.limits;
        s.set(self.done, self.done + ONE);
        s.if_positive(self.done - self.choice, |s| {
            s.set(z2, sqrt(z2 / x2) * self.inverse);
            s.set_if_positive(z2, self.sigma, sqrt(self.sigma * z2));
            s.set_if_positive(least - self.sigma, self.sigma, least);
            s.set_if_positive(self.sigma - most, self.sigma, most);
            s.set(self.choice, self.choice + self.choice);
            self.derive(s);
        });
    }
}

/// `epsilon` is the rounding error of the vectors.
pub(super) fn script(draft: &mut Draft, neighbours: Neighbours, epsilon: f64) -> Script {
    let [r, last_r, z, turn] = draft.vectors(Rows);
    let [last_x, g, lower, upper] = draft.vectors(Cols);
    let [rr, turn2, zz] = draft.sums(Rows);
    let [step2, xx, change] = draft.sums(Cols);
    let steps = Steps::new(draft);
    let &Steps { field: [first_of_field, variation, directional, ..], keep, push, shrink, .. } = &steps;
    let &Steps { inverse_step2, misfit, .. } = &steps;
    let [gradient2, behind, of_field, z2] = draft.scalars();
    let (least, eight_n) = (draft.constant((LOST * epsilon).powi(2)), draft.constant(8.0 * draft.len(Cols) as f64));
    let bounds = [lower, upper];
    let field = (neighbours.width > 0).then(|| Field {
        width: neighbours.width,
        p: draft.vectors(Cols),
        q: neighbours.directional.then(|| draft.vector(Cols)),
        weights: first_of_field,
        change,
    });

    let (b, copied) = draft.own_rhs();
    let feasible = Update::of(Cols).clamp(X, X, bounds).set(last_x, &[(ONE, X)]);
    let feasible = draft.call(feasible, |_| {});
    let residual = draft.residual(r, rr);
    let first = Update::of(Rows).set(z, &[(ONE, r)]).set(last_r, &[(ONE, r)]);
    let first = first.set(turn, &[(ONE, r), (MINUS_ONE, z)]).dot(turn2, turn, turn).dot(zz, z, z);
    let first = draft.call(first, |s| {
        steps.derive(s);
        s.set(shrink, MINUS_ONE * (push * steps.tikhonov));
    });
    let mut gradient = vec![draft.call(Product::of(Operand::Adjoint, z, g), |_| {})];
    if let Some(field) = field {
        gradient.insert(0, draft.alone(OverImage::Ascend { field, x: X, last_x }));
        gradient.push(draft.alone(OverImage::Subtract { field, g }));
    }
    let projected = Update::of(Cols).set(g, &[(shrink, X), (push, g)]).step(g, X, bounds);
    let projected = draft.call(projected.dot(step2, g, g), |_| {});
    let judged = draft.call(Launch::Scalars, |s| {
        let (rr, step2) = (s.fold(rr), s.fold(step2));
        steps.take_change(s, of_field, field);
        s.set(gradient2, step2 * inverse_step2 + of_field);
        s.test_least_squares(rr, gradient2);
    });

    let advance = Update::of(Cols).set(last_x, &[(ONE, X)]).set(X, &[(keep, X), (push, g)]).clamp(X, X, bounds);
    let advance = advance.set(g, &[(ONE, X), (MINUS_ONE, last_x)]).dot(step2, g, g).dot(xx, X, X);
    // Programs are run by passes, not before the products, whose many groups would each do it.
    let advance = draft.call(advance, |s| {
        let (turn2, zz) = (s.fold(turn2), s.fold(zz));
        s.set(behind, turn2 * misfit);
        s.set(z2, zz);
        steps.take_change(s, of_field, field);
    });
    let product = Product::of(Operand::A, X, r).scaled(MINUS_ONE).plus(ONE, b).square(rr);
    let product = draft.call(product, |_| {});
    let next_z = [(steps.keep_z, z), (steps.new_r, r), (steps.old_r, last_r)];
    let ascend = Update::of(Rows).set(turn, &[(ONE, z)]).set(z, &next_z).set(last_r, &[(ONE, r)]);
    let ascend = ascend.set(turn, &[(ONE, z), (MINUS_ONE, turn)]).dot(turn2, turn, turn).dot(zz, z, z);
    let ascend = draft.call(ascend, |s| {
        let [rr, xx, step2] = [rr, xx, step2].map(|sums| s.fold(sums));
        s.set(gradient2, step2 * inverse_step2 + of_field + behind);
        s.count();
        s.test_least_squares(rr, gradient2);
        // A start then says what the answer is worth.
        let of_dual = eight_n * (variation * variation + directional * directional);
        let of_all = xx * inverse_step2 + z2 * misfit + of_dual;
        s.stop_unless_less(least * of_all, gradient2, stop::CONVERGED);
        steps.choose(s, z2, xx);
    });
    let dual = field.map_or(Vec::new(), |field| field.p.into_iter().chain(field.q).collect());
    let start = [vec![copied, feasible, residual, first], gradient.clone(), vec![projected, judged]].concat();
    Script {
        start,
        steps: vec![[gradient, vec![advance, product, ascend]].concat()],
        least_squares: true,
        terms: Some(Terms { dual, neighbours, ..Terms::within(bounds, steps.weights()) }),
        ..Script::default()
    }
}
