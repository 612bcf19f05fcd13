//! Preconditioned conjugate gradients, and conjugate gradients for several right-hand sides at once.
//!
//! ```text
//!   r = b - A x,  z = M r,  p = z                            start
//!   q = A p
//!   alpha = r.z / p.q,  x += alpha p,  r -= alpha q,  z = M r
//!   beta = r'.z' / r.z,  p = z' + beta p
//! ```
//!
//! Without a preconditioner and with a diagonal one the two launches and the numbers are those of [`cg`](super::super::cg); with any
//! other there are four. Those two estimate `r'.z'` from `q.Mq`. Of a preconditioner `W W'` both factors are known: `r.z` is
//! `s.s` with `s = W'r`, so that `beta` is there before `z` is, and `p = W s + beta p` is one product: four launches with that of `W'`, and
//! no vector `z`. The stopping test is of `r.r`, not of `r.z`.
//!
//! Source: Y. Saad, "Iterative methods for sparse linear systems", 2nd ed. 2003, algorithm 9.1; oses-2013.

use crate::recurrence::{MINUS_ONE, ONE, Program, Scalar, Sums, ZERO};
use crate::solver::plan::{Operand, Plan, Preconditioning, Product, Script, Space::Rows, Update, VectorId, X};
use crate::state::stop;

pub(super) fn script(plan: &mut Plan, preconditioning: Preconditioning) -> Script {
    match preconditioning {
        Preconditioning::None => plain(plan),
        Preconditioning::Diagonal(d) => by_diagonal(plan, d),
        Preconditioning::Operator => by_operator(plan),
        Preconditioning::Roots => by_roots(plan),
    }
}

fn plain(plan: &mut Plan) -> Script {
    let [r, p, q] = plan.vectors(Rows);
    let [rr, pq, qq] = plan.sums(Rows);
    let [rho, alpha, minus_alpha, beta, next] = plan.scalars();
    let residual = plan.residual(r, rr);
    let direction = plan.call(Update::of(Rows).set(p, &[(ONE, r)]), |_| {});
    let product = plan.call(Product::of(Operand::A, p, q).square(qq).dot(pq, p), |s| {
        let rr = s.fold(rr);
        s.test(rr);
        s.set(rho, rr);
    });
    let update = Update::of(Rows)
        .set(X, &[(ONE, X), (alpha, p)])
        .set(r, &[(ONE, r), (minus_alpha, q)])
        .set(p, &[(ONE, r), (beta, p)])
        .dot(rr, r, r);
    let update = plan.call(update, |s| estimate(s, [pq, qq], [rho, alpha, minus_alpha, beta, next]));
    let without = plan.call(Update::of(Rows).set(p, &[(ONE, p), (MINUS_ONE, r)]), |_| {});
    let with = plan.call(Update::of(Rows).set(p, &[(ONE, p), (ONE, r)]), |_| {});
    Script {
        start: vec![residual.clone(), direction, product.clone()],
        steps: vec![vec![update, product.clone()]],
        exact: vec![vec![without, residual, with, product]],
        ..Script::default()
    }
}

fn by_diagonal(plan: &mut Plan, d: VectorId) -> Script {
    let [r, z, p, q] = plan.vectors(Rows);
    let [rr, rz, pq, qz] = plan.sums(Rows);
    let [rho, alpha, minus_alpha, beta, next] = plan.scalars();
    let residual = plan.residual(r, rr);
    let first = plan.call(Update::of(Rows).multiply(z, d, r).set(p, &[(ONE, z)]).dot(rz, r, z), |_| {});
    let product =
        plan.call(Product::of(Operand::A, p, q).weighted_square(qz, d).dot(pq, p), |s| test(s, [rr, rz], rho));
    let update = Update::of(Rows)
        .set(X, &[(ONE, X), (alpha, p)])
        .set(r, &[(ONE, r), (minus_alpha, q)])
        .multiply(z, d, r)
        .set(p, &[(ONE, z), (beta, p)])
        .dot(rr, r, r)
        .dot(rz, r, z);
    let update = plan.call(update, |s| estimate(s, [pq, qz], [rho, alpha, minus_alpha, beta, next]));
    let without = plan.call(Update::of(Rows).set(p, &[(ONE, p), (MINUS_ONE, z)]), |_| {});
    let with = Update::of(Rows).multiply(z, d, r).set(p, &[(ONE, p), (ONE, z)]).dot(rz, r, z);
    let with = plan.call(with, |_| {});
    Script {
        start: vec![residual.clone(), first, product.clone()],
        steps: vec![vec![update, product.clone()]],
        exact: vec![vec![without, residual, with, product]],
        ..Script::default()
    }
}

/// `alpha` from `p.q`, and `beta` from the estimate of the next `rho` by `q.Mq` (`q.q` without a preconditioner).
fn estimate(s: &mut Program, [pq, qz]: [Sums; 2], [rho, alpha, minus_alpha, beta, next]: [Scalar; 5]) {
    let (pq, qz) = (s.fold(pq), s.fold(qz));
    s.require_finite(qz);
    s.require_positive_curvature(pq);
    s.set(alpha, rho / pq);
    s.set(next, alpha * (alpha * qz) - rho);
    s.set(beta, ZERO);
    s.set_if_positive(next, beta, next / rho);
    s.set(minus_alpha, MINUS_ONE * alpha);
    s.count();
}

/// The stopping test on `r.r`, then one for `r.z <= 0`, a preconditioner that is not definite; `rho = r.z`.
fn test(s: &mut Program, [rr, rz]: [Sums; 2], rho: Scalar) {
    let (rr, rz) = (s.fold(rr), s.fold(rz));
    s.test(rr);
    s.require_finite(rz);
    s.stop_unless_less(ZERO, rz, stop::INDEFINITE_PRECONDITIONER);
    s.set(rho, rz);
}

/// `alpha` from `p.q`.
fn step(s: &mut Program, pq: Sums, [rho, alpha, minus_alpha]: [Scalar; 3]) {
    let pq = s.fold(pq);
    s.require_positive_curvature(pq);
    s.set(alpha, rho / pq);
    s.set(minus_alpha, MINUS_ONE * alpha);
    s.count();
}

fn by_operator(plan: &mut Plan) -> Script {
    let [r, z, p, q] = plan.vectors(Rows);
    let [rr, rz, pq] = plan.sums(Rows);
    let [rho, alpha, minus_alpha, beta] = plan.scalars();
    let residual = plan.residual(r, rr);
    let apply = plan.call(Product::of(Operand::Preconditioner, r, z).dot(rz, r), |_| {});
    let first = plan.call(Update::of(Rows).set(p, &[(ONE, z)]), |_| {});
    let product = plan.call(Product::of(Operand::A, p, q).dot(pq, p), |s| test(s, [rr, rz], rho));
    let update = Update::of(Rows).set(X, &[(ONE, X), (alpha, p)]).set(r, &[(ONE, r), (minus_alpha, q)]);
    let update = plan.call(update.dot(rr, r, r), |s| step(s, pq, [rho, alpha, minus_alpha]));
    let direction = plan.call(Update::of(Rows).set(p, &[(ONE, z), (beta, p)]), |s| {
        let rz = s.fold(rz);
        s.set(beta, rz / rho);
    });
    let without = plan.call(Update::of(Rows).set(p, &[(ONE, p), (MINUS_ONE, z)]), |_| {});
    let with = plan.call(Update::of(Rows).set(p, &[(ONE, p), (ONE, z)]), |_| {});
    Script {
        start: vec![residual.clone(), apply.clone(), first, product.clone()],
        steps: vec![vec![update, apply.clone(), direction, product.clone()]],
        exact: vec![vec![without, residual, apply, with, product]],
        ..Script::default()
    }
}

fn by_roots(plan: &mut Plan) -> Script {
    let [r, s, q] = plan.vectors(Rows);
    let p = plan.vectors::<2>(Rows);
    let [rr, rz, pq] = plan.sums(Rows);
    let [rho, alpha, minus_alpha, beta] = plan.scalars();
    let residual = plan.residual(r, rr);
    let half = plan.call(Product::of(Operand::RootAdjoint, r, s).square(rz), |_| {});
    let first = plan.call(Product::of(Operand::Root, s, p[0]), |_| {});
    let mut parts = Vec::new();
    for k in 0..2 {
        let (now, next) = (p[k], p[1 - k]);
        let product = plan.call(Product::of(Operand::A, now, q).dot(pq, now), |s| test(s, [rr, rz], rho));
        let update = Update::of(Rows).set(X, &[(ONE, X), (alpha, now)]).set(r, &[(ONE, r), (minus_alpha, q)]);
        let update = plan.call(update.dot(rr, r, r), |s| step(s, pq, [rho, alpha, minus_alpha]));
        let direction = plan.call(Product::of(Operand::Root, s, next).plus(beta, now), |s| {
            let rz = s.fold(rz);
            s.set(beta, rz / rho);
        });
        // The other way round, for a residual computed afresh.
        let without = plan.call(Product::of(Operand::Root, s, next).scaled(MINUS_ONE).plus(ONE, now), |_| {});
        let with = plan.call(Product::of(Operand::Root, s, next).plus(ONE, now), |_| {});
        parts.push([product, update, direction, without, with]);
    }
    let call = |k: usize, which: usize| parts[k % 2][which].clone();
    let [product, update, direction, without, with] = [0, 1, 2, 3, 4];
    Script {
        start: vec![residual.clone(), half.clone(), first, call(0, product)],
        steps: (0..2)
            .map(|k| vec![call(k, update), half.clone(), call(k, direction), call(k + 1, product)])
            .collect(),
        // p goes to the other place and back.
        exact: (0..2)
            .map(|k| vec![call(k, without), residual.clone(), half.clone(), call(k + 1, with), call(k, product)])
            .collect(),
        ..Script::default()
    }
}
