//! Regularised CGNR: conjugate gradients on the normal equations with a correction term.
//!
//! Minimises `J(x) = |A x - b|² / 2 + R(x)`, where the gradient of `R` at `x` is `F(x, x)` and `F(x, v)` is linear in
//! `v`: `F(x, v) = H(x) v`, with `H` symmetric and positive semidefinite, frozen at `x` (lagged diffusivity for
//! total variation, the violated bounds for a box).
//!
//! # Step length
//!
//! Along `x + alpha d`, with `H` frozen at `x`, the gradient is `g + alpha e` with `e = A'A d + F(x, d)`. It is
//! orthogonal to `d` when `d'(g + alpha e) = 0`, so
//!
//! ```text
//!   alpha = -(g'd) / (d'e),      d'e = |A d|² + d'F(x, d)
//! ```
//!
//! Table 1 of Stock and Koch prints `alpha = -(g'e) / f` with `f = d'e`: that does not make the new gradient
//! orthogonal to `d` (for one unknown and `A = a`, it overshoots by the factor `a²`). With `s = -g`,
//! `alpha = s'd / d'e`. Since the frozen model lies above `J` for the terms used here (total variation by the
//! concavity of the square root), this step never increases `J` along a descent direction.
//!
//! # Direction
//!
//! The new direction `d⁺ = s⁺ + beta d` is conjugate to `d`, `d⁺'e = 0`, for `beta = g⁺'e / d'e` as printed. With
//! `e = (g⁺ - g) / alpha` and `d'e = s'd / alpha` this is
//!
//! ```text
//!   beta = (s⁺'s⁺ - s⁺'s) / s'd
//! ```
//!
//! which needs no second product. Stock and Koch evaluate `F(x, x⁺)` with the old `x` in `g⁺`; here `F(x⁺, x⁺)` is used,
//! so that `s` is the true gradient of `J`, and `beta` is cut off at 0, which starts over with steepest descent
//! wherever the change of `H` would spoil the direction. At a solution the two coincide, and without a regularization
//! both are CGLS (`s⁺'s = 0`).
//!
//! # Launches
//!
//! ```text
//!   forward     beta;  d = s + beta d;  q = A d;  |q|², d'F(x, d)
//!   backward    alpha; r -= alpha q;  x += alpha d;  s = A'r - F(x, x);  |r|², s's, s's_old, s'd
//! ```
//!
//! Each half is one launch with a stored matrix, where the device gains by it (`cl/script/cgnr_forward.cl`, `cl/script/cgnr_backward.cl`). A product
//! forms the vector that it multiplies, `s + beta d` or `r - alpha q`, while it reads it, and other groups need the old ones until then. So `x`,
//! `r`, `s` and `d` have two buffers each, which take turns. Small systems take one launch for many
//! iterations. The host, CPUs with OpenCL, and operators that are no stored matrix or have long rows take five launches: `r`, the product with
//! `A'`, the pixels' step, their direction, the product with `A`.
//!
//! # Cost
//!
//! Two launches per iteration; `A` and `A'` are read once each, whatever the number of columns. For each column, vectors of
//! `m` rows: 1 written, 3 read as `q` and `r` are updated and gathered; of `n` unknowns: 3 written, 6 read. Held for each
//! column: 4 vectors of `m` with `b` (3 in five launches), 8 of `n` with the answer, 9 with total variation. Stock and Koch
//! fused 14 launches into 6.
//!
//! Source: F. Stock, A. Koch, "A fast GPU implementation for solving sparse ill-posed linear equation systems", 2009, table 1; C. R. Vogel and M. E. Oman, "Iterative
//! methods for total variation denoising", SIAM J. Sci. Comput. 17(1), 1996 (lagged diffusivity).

use super::info::{Bounds, LEAST_SQUARES, MethodInfo};
use crate::backend::script::Edges;
use crate::recurrence::{MINUS_ONE, ONE, ZERO};
use crate::solver::script::Space::{Cols, Rows};
use crate::solver::script::{
    CgnrKernels, CgnrParts, Draft, Fused, Operand, OverPixels, Product, Residual, Script, Update, VectorId, X,
};
use crate::state::correction::WEIGHTS;

pub(super) const INFO: MethodInfo = MethodInfo {
    name: "cgnr",
    preconditioner: true,
    terms: &["tikhonov", "smooth", "variation"],
    bounds: Bounds::Weighed,
    ..LEAST_SQUARES
};

/// `image` is that of the regularizations.
pub(super) fn script(draft: &mut Draft, image: Edges, kernels: CgnrKernels) -> Script {
    let [r, q] = draft.vectors(Rows);
    let next_r = if kernels.halves || kernels.resident { draft.vector(Rows) } else { VectorId::FILLER };
    let (x, s, d) = ([X, draft.vector(Cols)], draft.vectors::<2>(Cols), draft.vectors::<2>(Cols));
    let phi = if image.edges == 2 { draft.vector(Cols) } else { VectorId::SECOND_FILLER };
    // In the order of `CgnrShape`.
    let [qq, rr] = draft.sums(Rows);
    let [df, ss, so, sd] = draft.sums(Cols);
    let [descent, alpha, minus_alpha, beta, found, slope] = draft.scalars();
    let weights = draft.scalars::<WEIGHTS>();

    let residual = draft.residual(r, rr);
    let update_r = draft.call(Update::of(Rows).set(r, &[(ONE, r), (minus_alpha, q)]).dot(rr, r, r), |t| {
        let (qq, df) = (t.fold(qq), t.fold(df));
        t.set(alpha, qq + df);
        t.require_positive_curvature(alpha);
        t.set(alpha, descent / alpha);
        t.require_finite(alpha);
        t.set(minus_alpha, MINUS_ONE * alpha);
        t.count();
    });
    let mut half = |now: usize, starts: bool| {
        let next = if starts { now } else { 1 - now };
        let gradient = draft.call(Product::of(Operand::Adjoint, r, s[next]), |_| {});
        let step = draft.call(OverPixels::Step { now, starts }, |_| {});
        let direction = draft.call(OverPixels::Direction { now: next, beta }, |t| {
            let (ss, so, sd, rr) = (t.fold(ss), t.fold(so), t.fold(sd), t.fold(rr));
            t.test_least_squares(rr, ss);
            t.set(found, ZERO);
            // 0 at a start, and never later.
            t.if_positive(descent, |t| t.set(found, (ss - so) / descent));
            t.set(beta, ZERO);
            t.set_if_positive(found, beta, found);
            t.set(slope, ss + beta * sd);
            t.set(found, beta);
            t.set(beta, ZERO);
            t.set(descent, ss);
            t.if_positive(slope, |t| {
                t.set(beta, found);
                t.set(descent, slope);
            });
        });
        let product = draft.call(Product::of(Operand::A, d[1 - next], q).square(qq), |_| {});
        let forward = [direction.fused(Fused::CgnrForward { now: next }), product];
        let backward = if starts { vec![gradient, step] } else { vec![update_r.clone(), gradient, step] };
        let [first, rest @ ..] = &backward[..] else { return Vec::new() };
        let first = first.clone().fused(Fused::CgnrBackward { now, starts });
        [first].into_iter().chain(rest.iter().cloned()).chain(forward).collect()
    };
    let start = [residual].into_iter().chain(half(0, true)).collect();
    let steps = vec![half(0, false), half(1, false)];
    let zeroed = if kernels.halves { vec![d[0], s[1], q] } else { vec![d[0], s[1]] };
    let parts = CgnrParts {
        x,
        r: [r, next_r],
        s,
        d,
        q,
        phi,
        image,
        kernels,
        descent,
        alpha,
        weights: weights[0],
        sums: qq.place as usize,
    };
    Script {
        start,
        steps,
        zeroed,
        least_squares: true,
        residual: Residual::Held,
        cgnr: Some(parts),
        ..Script::default()
    }
}
