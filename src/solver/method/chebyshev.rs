//! Chebyshev iteration, for a symmetric positive definite `M A` with eigenvalues in `[smallest, largest]`.
//!
//! ```text
//!   theta = (largest + smallest) / 2,  delta = (largest - smallest) / 2,  sigma = theta / delta
//!   rho_0 = 1 / sigma,  d = M r / theta                                         start
//!   x += d,  r -= A d
//!   rho' = 1 / (2 sigma - rho),  d = rho' rho d + (2 rho' / delta) M r
//! ```
//!
//! No dot product decides a step: two launches. With a preconditioner that is not diagonal there are four, one of which is its product.
//! Bounds that do not contain the spectrum make it diverge, which is seen and reported.
//!
//! Source: Y. Saad, "Iterative methods for sparse linear systems", 2nd ed. 2003, algorithm 12.1.

use super::info::{MethodInfo, SQUARE, Symmetry};
use crate::recurrence::{MINUS_ONE, ONE};
use crate::solver::script::Space::Rows;
use crate::solver::script::{Draft, Operand, Preconditioning, Product, Script, Update, X};

pub(super) const INFO: MethodInfo = MethodInfo {
    name: "chebyshev",
    symmetry: Symmetry::Definite,
    preconditioner: true,
    carries_residual: true,
    ..SQUARE
};

pub(super) fn script(draft: &mut Draft, preconditioning: Preconditioning, [smallest, largest]: [f64; 2]) -> Script {
    let [r, d, q] = draft.vectors(Rows);
    let z = if preconditioning == Preconditioning::None { r } else { draft.vector(Rows) };
    let rr = draft.sum(Rows);
    let [theta, delta] = [0.5 * (largest + smallest), 0.5 * (largest - smallest)];
    let [inverse_theta, two_sigma, two_over_delta] =
        [1.0 / theta, 2.0 * theta / delta, 2.0 / delta].map(|v| draft.constant(v));
    let rho = draft.constant(delta / theta);
    let [next_rho, keep, add, minus_add] = draft.scalars();
    let residual = draft.residual(r, rr);
    let apply = draft.call(Product::of(Operand::Preconditioner, r, z), |_| {});
    let also = |update: Update| match preconditioning {
        Preconditioning::Diagonal(m) => update.multiply(z, m, r),
        _ => update,
    };
    let first = draft.call(also(Update::of(Rows)).set(d, &[(inverse_theta, z)]), |_| {});
    let product = draft.call(Product::of(Operand::A, d, q), |s| {
        let rr = s.fold(rr);
        s.test(rr);
    });
    let advance = Update::of(Rows).set(X, &[(ONE, X), (ONE, d)]).set(r, &[(ONE, r), (MINUS_ONE, q)]);
    let turn = [(keep, d), (add, z)];
    let coefficients = |s: &mut crate::recurrence::Program| {
        s.set(next_rho, ONE / (two_sigma - rho));
        s.set(keep, next_rho * rho);
        s.set(add, two_over_delta * next_rho);
        s.set(rho, next_rho);
        s.count();
    };
    let without = draft.call(Update::of(Rows).set(d, &[(ONE, d), (minus_add, z)]), |s| {
        s.set(minus_add, MINUS_ONE * add);
    });
    let with = draft.call(also(Update::of(Rows)).set(d, &[(ONE, d), (add, z)]), |_| {});
    let (start, step, exact) = if preconditioning == Preconditioning::Operator {
        let advance = draft.call(advance.dot(rr, r, r), |_| {});
        let direction = draft.call(Update::of(Rows).set(d, &turn), coefficients);
        (
            vec![residual.clone(), apply.clone(), first, product.clone()],
            vec![advance, apply.clone(), direction, product.clone()],
            vec![without, residual, apply, with, product],
        )
    } else {
        let pass = draft.call(also(advance).set(d, &turn).dot(rr, r, r), coefficients);
        (
            vec![residual.clone(), first, product.clone()],
            vec![pass, product.clone()],
            vec![without, residual, with, product],
        )
    };
    Script { start, steps: vec![step], exact: vec![exact], ..Script::default() }
}
