//! Preconditioned conjugate gradients, and conjugate gradients for several right-hand sides at once.
//!
//! ```text
//!   r = b - A x,  z = M r,  p = z                            start
//!   q = A p
//!   alpha = r.z / p.q,  x += alpha p,  r -= alpha q,  z = M r
//!   beta = r'.z' / r.z,  p = z' + beta p
//! ```
//!
//! Without a preconditioner, or with a diagonal one, two launches do an iteration. `q.Mq` is summed beside `p.q`, so that
//! `r'.z' = alpha² q.Mq - r.z` is known before `r'` is, and one pass can update all three vectors. `r.z` itself is summed from `r` in every
//! iteration: the estimate enters `beta` alone, and its error, relative `eps alpha² q.Mq / r'.z'`, does not accumulate. For one right-hand side
//! both launches have kernels of their own (`cl/script/cg_product.cl`, `cl/script/cg_update.cl`). Small systems take one launch for many iterations.
//!
//! With any other preconditioner there are four launches. A preconditioner `M = W W'` with a stored square `W` is a case of its own, for one
//! right-hand side. With `s = W'r`, `r.z` is `s.s`, so that `beta` is known before `z`. The new direction `p = W s + beta p` is one product, and
//! `z` is not stored. This takes four launches too. The stopping test is of `r.r`, not of `r.z`.
//!
//! Source: D. Michels, "Sparse-matrix-CG-solver in CUDA", 2011, algorithm 2; J. Osés Villanueva, "CUDA implementation of the solution of a system
//! of linear equations arising in an hp-finite element code", 2013; Y. Saad, "Iterative methods for sparse linear systems", 2nd ed. 2003, algorithm 9.1; the fusion
//! after Y. Saad, "Practical use of polynomial preconditionings for the conjugate gradient method", SIAM J. Sci. Stat. Comput. 6(4), 1985.

use super::info::{MethodInfo, SQUARE, Symmetry};
use crate::backend::script::CgPlaces;
use crate::recurrence::{MINUS_ONE, ONE, Program, Scalar, Sums, ZERO};
use crate::solver::script::Space::Rows;
use crate::solver::script::{
    CgParts, Draft, Fused, Operand, Preconditioning, Product, Script, Update, VectorId, X,
};
use crate::state::stop;

pub(super) const INFO: MethodInfo = MethodInfo {
    name: "cg",
    symmetry: Symmetry::Definite,
    preconditioner: true,
    carries_residual: true,
    lowers_error: true,
    ..SQUARE
};

pub(super) fn script(draft: &mut Draft, preconditioning: Preconditioning) -> Script {
    match preconditioning {
        Preconditioning::None => plain(draft),
        Preconditioning::Diagonal(d) => by_diagonal(draft, d),
        Preconditioning::Operator => by_operator(draft),
        Preconditioning::Roots => by_roots(draft),
    }
}

fn plain(draft: &mut Draft) -> Script {
    let [r, p, q] = draft.vectors(Rows);
    // In the order of `CgPlaces`.
    let [pq, qq, rr, _] = draft.sums(Rows);
    let [rho, alpha, minus_alpha, beta, next] = draft.scalars();
    let residual = draft.residual(r, rr);
    let direction = draft.call(Update::of(Rows).set(p, &[(ONE, r)]), |_| {});
    let product = draft.call(Product::of(Operand::A, p, q).square(qq).dot(pq, p), |s| {
        let rr = s.fold(rr);
        s.test(rr);
        s.set(rho, rr);
    });
    let product = product.fused(Fused::CgProduct);
    let update = Update::of(Rows)
        .set(X, &[(ONE, X), (alpha, p)])
        .set(r, &[(ONE, r), (minus_alpha, q)])
        .set(p, &[(ONE, r), (beta, p)])
        .dot(rr, r, r);
    let update = draft.call(update, |s| estimate(s, [pq, qq], [rho, alpha, minus_alpha, beta, next]));
    let without = draft.call(Update::of(Rows).set(p, &[(ONE, p), (MINUS_ONE, r)]), |_| {});
    let with = draft.call(Update::of(Rows).set(p, &[(ONE, p), (ONE, r)]), |_| {});
    Script {
        start: vec![residual.clone(), direction, product.clone()],
        steps: vec![vec![update.fused(Fused::CgUpdate), product.clone()]],
        exact: vec![vec![without, residual, with, product]],
        cg: Some(parts(None, [r, p, q], rho, pq)),
        ..Script::default()
    }
}

/// Place of the numbers of a script, for kernels of their own.
fn parts(m: Option<VectorId>, [r, p, q]: [VectorId; 3], rho: Scalar, first: Sums) -> CgParts {
    CgParts { m, r, p, q, places: CgPlaces { rho: rho.0.into(), sums: first.place as usize } }
}

/// `z = M r` stands where `q` was.
fn by_diagonal(draft: &mut Draft, d: VectorId) -> Script {
    let [r, p, q] = draft.vectors(Rows);
    let z = q;
    // In the order of `CgPlaces`.
    let [pq, qz, rr, _, rz, _] = draft.sums(Rows);
    let [rho, alpha, minus_alpha, beta, next] = draft.scalars();
    let residual = draft.residual(r, rr);
    let first = draft.call(Update::of(Rows).multiply(p, d, r).dot(rz, r, p), |_| {});
    let product =
        draft.call(Product::of(Operand::A, p, q).weighted_square(qz, d).dot(pq, p), |s| test(s, [rr, rz], rho));
    let product = product.fused(Fused::CgProduct);
    let update = Update::of(Rows)
        .set(X, &[(ONE, X), (alpha, p)])
        .set(r, &[(ONE, r), (minus_alpha, q)])
        .multiply(z, d, r)
        .set(p, &[(ONE, z), (beta, p)])
        .dot(rr, r, r)
        .dot(rz, r, z);
    let update = draft.call(update, |s| estimate(s, [pq, qz], [rho, alpha, minus_alpha, beta, next]));
    let without = Update::of(Rows).multiply(z, d, r).set(p, &[(ONE, p), (MINUS_ONE, z)]);
    let without = draft.call(without, |_| {});
    let with = Update::of(Rows).multiply(z, d, r).set(p, &[(ONE, p), (ONE, z)]).dot(rz, r, z);
    let with = draft.call(with, |_| {});
    Script {
        start: vec![residual.clone(), first, product.clone()],
        steps: vec![vec![update.fused(Fused::CgUpdate), product.clone()]],
        exact: vec![vec![without, residual, with, product]],
        cg: Some(parts(Some(d), [r, p, q], rho, pq)),
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

fn by_operator(draft: &mut Draft) -> Script {
    let [r, z, p, q] = draft.vectors(Rows);
    let [rr, rz, pq] = draft.sums(Rows);
    let [rho, alpha, minus_alpha, beta] = draft.scalars();
    let residual = draft.residual(r, rr);
    let apply = draft.call(Product::of(Operand::Preconditioner, r, z).dot(rz, r), |_| {});
    let first = draft.call(Update::of(Rows).set(p, &[(ONE, z)]), |_| {});
    let product = draft.call(Product::of(Operand::A, p, q).dot(pq, p), |s| test(s, [rr, rz], rho));
    let update = Update::of(Rows).set(X, &[(ONE, X), (alpha, p)]).set(r, &[(ONE, r), (minus_alpha, q)]);
    let update = draft.call(update.dot(rr, r, r), |s| step(s, pq, [rho, alpha, minus_alpha]));
    let direction = draft.call(Update::of(Rows).set(p, &[(ONE, z), (beta, p)]), |s| {
        let rz = s.fold(rz);
        s.set(beta, rz / rho);
    });
    let without = draft.call(Update::of(Rows).set(p, &[(ONE, p), (MINUS_ONE, z)]), |_| {});
    let with = draft.call(Update::of(Rows).set(p, &[(ONE, p), (ONE, z)]), |_| {});
    Script {
        start: vec![residual.clone(), apply.clone(), first, product.clone()],
        steps: vec![vec![update, apply.clone(), direction, product.clone()]],
        exact: vec![vec![without, residual, apply, with, product]],
        ..Script::default()
    }
}

fn by_roots(draft: &mut Draft) -> Script {
    let [r, s, q] = draft.vectors(Rows);
    let p = draft.vectors::<2>(Rows);
    let [rr, rz, pq] = draft.sums(Rows);
    let [rho, alpha, minus_alpha, beta] = draft.scalars();
    let residual = draft.residual(r, rr);
    let half = draft.call(Product::of(Operand::RootAdjoint, r, s).square(rz), |_| {});
    let first = draft.call(Product::of(Operand::Root, s, p[0]), |_| {});
    let mut parts = Vec::new();
    for k in 0..2 {
        let (now, next) = (p[k], p[1 - k]);
        let product = draft.call(Product::of(Operand::A, now, q).dot(pq, now), |s| test(s, [rr, rz], rho));
        let update = Update::of(Rows).set(X, &[(ONE, X), (alpha, now)]).set(r, &[(ONE, r), (minus_alpha, q)]);
        let update = draft.call(update.dot(rr, r, r), |s| step(s, pq, [rho, alpha, minus_alpha]));
        let direction = draft.call(Product::of(Operand::Root, s, next).plus(beta, now), |s| {
            let rz = s.fold(rz);
            s.set(beta, rz / rho);
        });
        // The other way round, for a residual computed afresh.
        let without = draft.call(Product::of(Operand::Root, s, next).scaled(MINUS_ONE).plus(ONE, now), |_| {});
        let with = draft.call(Product::of(Operand::Root, s, next).plus(ONE, now), |_| {});
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
