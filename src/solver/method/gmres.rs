//! GMRES with restarts, for square systems of any kind, preconditioned from the right.
//!
//! ```text
//!   p = M z,  q = A p                                        z = r at a restart
//!   twice, for the directions since the restart:  q -= (q_i.q) q_i,  p -= (q_i.q) p_i
//!   p /= |q|,  q /= |q|
//!   alpha = q.r,  x += alpha p,  r -= alpha q
//!   z = r where |r| fell enough, else q
//! ```
//!
//! The residual is the least in the Krylov space, as in the method of Saad and Schultz, of which this is another form: it
//! keeps the directions beside their images, `2 m` vectors instead of `m`, and has `x` and the true recursion of `r` in
//! every iteration, so that nothing is left to be done at a restart or an end. Taking `z = r` alone (GCR) breaks down
//! where `r` does not fall, taking `q` alone (ORTHODIR, Simpler GMRES) loses digits where it falls fast; the choice between
//! them has neither fault.
//!
//! Launches: 4, and 4 for every three directions that are held (2 for each of two passes over them), with a
//! preconditioner that is not diagonal one more. Bytes of a pass over a direction: 4 vectors read and, for every three, 2
//! written.
//!
//! Source: Y. Saad, M. H. Schultz, "GMRES", SIAM J. Sci. Stat. Comput. 7(3), 1986; S. C. Eisenstat, H. C. Elman,
//! M. H. Schultz, "Variational iterative methods for nonsymmetric systems of linear equations", SIAM J. Numer. Anal.
//! 20(2), 1983; P. Jiránek, M. Rozložník, "Adaptive version of Simpler GMRES", Numer. Algorithms 53, 2010.

use crate::recurrence::{MINUS_ONE, ONE, Scalar, Sums, ZERO, sqrt};
use crate::solver::plan::{
    Call, Operand, Plan, Preconditioning, Product, Script, Space::Rows, Update, VectorId, X,
};
use crate::state::stop;

/// `|r|^2` must fall to this part, or the next direction comes from `q`: the 0.9 of the source, squared.
const ENOUGH: f64 = 0.81;

/// Directions that one pass takes out of a new one: as many as it has room for.
const TOGETHER: usize = 3;

/// Takes the directions before `j` out of `q[j]`, and the same parts out of `p[j]`, twice: what rounding leaves the first time goes
/// the second.
fn orthogonalise(
    plan: &mut Plan,
    [p, q]: [&[VectorId]; 2],
    j: usize,
    dots: [Sums; TOGETHER],
    minus: [Scalar; TOGETHER],
) -> Vec<Call> {
    let mut calls = Vec::new();
    for _ in 0..2 {
        for held in (0..j).collect::<Vec<_>>().chunks(TOGETHER) {
            let mut measure = Update::of(Rows);
            for (k, i) in held.iter().enumerate() {
                measure = measure.dot(dots[k], q[*i], q[j]);
            }
            calls.push(plan.call(measure, |_| {}));
            let mut remove = Update::of(Rows);
            for (target, from) in [(q[j], q), (p[j], p)] {
                for (pair, two) in held.chunks(2).enumerate() {
                    let mut terms = vec![(ONE, target)];
                    terms.extend(two.iter().enumerate().map(|(k, i)| (minus[2 * pair + k], from[*i])));
                    remove = remove.set(target, &terms);
                }
            }
            calls.push(plan.call(remove, |s| {
                for k in 0..held.len() {
                    let dot = s.fold(dots[k]);
                    s.set(minus[k], MINUS_ONE * dot);
                }
            }));
        }
    }
    calls
}

/// `restart` directions are kept; `epsilon` is that of the vectors.
pub(super) fn script(plan: &mut Plan, preconditioning: Preconditioning, restart: usize, epsilon: f64) -> Script {
    let r = plan.vector(Rows);
    let z = match preconditioning {
        Preconditioning::None => None,
        _ => Some(plan.vector(Rows)),
    };
    let p: Vec<VectorId> = (0..restart).map(|_| plan.vector(Rows)).collect();
    let q: Vec<VectorId> = (0..restart).map(|_| plan.vector(Rows)).collect();
    let [rr, first, qq, qr] = plan.sums(Rows);
    let dots: [Sums; TOGETHER] = plan.sums(Rows);
    let minus: [Scalar; TOGETHER] = plan.scalars();
    let [rho, inverse, alpha, minus_alpha, of_r, of_q] = plan.scalars();
    let enough = plan.constant(ENOUGH);
    // What is left of a direction that lies in the space of the others is rounding.
    let least = plan.constant((16.0 * epsilon).powi(2));

    // z, made of the terms given, and p = M z.
    let direction = |update: Update, terms: &[(Scalar, VectorId)], p: VectorId| match (z, preconditioning) {
        (Some(z), Preconditioning::Diagonal(d)) => update.set(z, terms).multiply(p, d, z),
        (Some(z), _) => update.set(z, terms),
        _ => update.set(p, terms),
    };
    let residual = plan.residual(r, rr);
    let begin = plan.call(direction(Update::of(Rows), &[(ONE, r)], p[0]), |s| {
        let rr = s.fold(rr);
        s.test(rr);
        s.set(rho, rr);
    });
    let steps = (0..restart)
        .map(|j| {
            let mut calls: Vec<Call> = Vec::new();
            if let (Some(z), Preconditioning::Operator) = (z, preconditioning) {
                calls.push(plan.call(Product::of(Operand::Preconditioner, z, p[j]), |_| {}));
            }
            calls.push(plan.call(Product::of(Operand::A, p[j], q[j]).square(first), |_| {}));
            calls.extend(orthogonalise(plan, [&p, &q], j, dots, minus));
            calls.push(plan.call(Update::of(Rows).dot(qq, q[j], q[j]).dot(qr, q[j], r), |_| {}));
            let advance = Update::of(Rows)
                .set(q[j], &[(inverse, q[j])])
                .set(p[j], &[(inverse, p[j])])
                .set(X, &[(ONE, X), (alpha, p[j])])
                .set(r, &[(ONE, r), (minus_alpha, q[j])])
                .dot(rr, r, r);
            calls.push(plan.call(advance, |s| {
                let (first, qq, qr) = (s.fold(first), s.fold(qq), s.fold(qr));
                s.require_finite(qq);
                s.stop_unless_less(least * first, qq, stop::BREAKDOWN);
                s.set(inverse, ONE / sqrt(qq));
                s.set(alpha, qr * inverse);
                s.set(minus_alpha, MINUS_ONE * alpha);
                s.count();
            }));
            let last = j + 1 == restart;
            let terms: &[(Scalar, VectorId)] = if last { &[(ONE, r)] } else { &[(of_r, r), (of_q, q[j])] };
            let next = p[(j + 1) % restart];
            calls.push(plan.call(direction(Update::of(Rows), terms, next), |s| {
                let rr = s.fold(rr);
                s.test(rr);
                s.set(of_r, ZERO);
                s.set(of_q, ONE);
                let fell = enough * rho - rr;
                s.set_if_positive(fell.clone(), of_r, ONE);
                s.set_if_positive(fell, of_q, ZERO);
                s.set(rho, rr);
            }));
            calls
        })
        .collect();
    Script { start: vec![residual, begin], steps, ..Script::default() }
}
