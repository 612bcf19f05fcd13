//! NNFCGLS, flexible CGLS for unknowns with lower bounds: `min |A x - b|²` over `x >= lower`.
//!
//! ```text
//!   z = (x - lower) A'r, element by element                    the direction of MRNSD
//!   d = z - sum_l (A z.A d_l / |A d_l|²) d_l                   l over the directions kept: A d is orthogonal to A d_l
//!   d = z, and the directions kept are dropped                 if A'r.d <= A'r.z / 2, or d crosses a bound at once
//!   theta = A'r.d / |A d|²
//!   alpha = min(theta, min_{d_i < 0} (lower_i - x_i) / d_i)
//!   x += alpha d,  r -= alpha A d
//! ```
//!
//! `A'r.d` equals `A'r.z` as long as no step ended at a bound. After a step that did, `A'r.d` is smaller. The scaling by `x - lower` is a preconditioner that changes
//! in each iteration, so that a direction is made conjugate to those before it one by one. Bounds, the first start, the gradient and the
//! end are those of [`mrnsd`](super::mrnsd), which takes two to five times as many iterations to the same residual. An unknown at its bound
//! may leave it here, along a direction kept.
//!
//! Vectors held: `restart + 2` of rows, `restart + 7` of columns. Launches: 18, in the first iteration of a cycle 10. Bytes of iteration `k`
//! of a cycle: those of two products, `2 k + 7` vectors of rows, and `k + 29` of columns.
//!
//! Source: S. Gazzola, Y. Wiaux, "Fast nonnegative least squares through flexible Krylov subspaces", SIAM J. Sci. Comput. 39(2), 2017,
//! algorithm 2. Cycles have a fixed number of iterations here, and dropped directions do not begin another one.

use super::info::{Bounds, LEAST_SQUARES, MethodInfo};
use super::mrnsd::Descent;
use crate::recurrence::{ONE, Scalar, Sums, VECTOR2, ZERO};
use crate::solver::script::Space::{Cols, Rows};
use crate::solver::script::{Call, Draft, OverBasis, Residual, Script, Update};

pub(super) const INFO: MethodInfo =
    MethodInfo { name: "nnfcgls", carries_residual: true, bounds: Bounds::Lower, ..LEAST_SQUARES };

/// Properties of a direction before it is taken.
struct Trial {
    /// `g.d` and `d.d`.
    slopes: [Sums; 2],
    /// Limit of a step along it, and the place that it is kept in.
    limit: Sums,
    most: Scalar,
    /// 1 if `z` takes its place, and 1 if not.
    dropped: Scalar,
    kept: Scalar,
    half: Scalar,
}

impl Trial {
    /// Makes `d` conjugate to the directions kept, `count` at most, unless that leads nowhere.
    fn calls(&self, descent: &Descent, draft: &mut Draft, count: usize) -> Vec<Call> {
        let &Self { slopes, limit, most, dropped, kept, half } = self;
        let &Descent { w, d, above, g, t, along, dd, .. } = descent;
        let project = draft.call((Rows, OverBasis::Project { w, count }), |_| {});
        let follow = draft.call((Cols, OverBasis::Follow { v: d, count }), |_| {});
        let slope = draft.call(Update::of(Cols).dot(slopes[0], g, d).dot(slopes[1], d, d), |_| {});
        let limits = descent.limit(draft, limit);
        let drop = draft.call((Rows, OverBasis::Drop { dropped, count }), |s| {
            let (slope, square, limit) = (s.fold(slopes[0]), s.fold(slopes[1]), s.fold(limit));
            s.set(most, limit);
            s.set(dropped, ONE);
            s.set_if_positive(slope - half * along, dropped, ZERO);
            // No step is short enough.
            s.set_if_positive(-most, dropped, ONE);
            s.set(kept, ONE - dropped);
            s.set_if_positive(kept, along, slope);
            s.set_if_positive(kept, dd, square);
        });
        let choice = Update::of(Cols).multiply(t, above, g).set(d, &[(kept, d), (dropped, t)]);
        vec![project, follow, slope, limits, drop, draft.call(choice, |_| {})]
    }
}

/// `restart` directions are kept; `epsilon` is the rounding error of the vectors.
pub(super) fn script(draft: &mut Draft, restart: usize, epsilon: f64) -> Script {
    draft.basis(Rows, restart);
    draft.basis(Cols, restart);
    let descent = Descent::new(draft, epsilon);
    let [most, kept, dropped, shortest] = draft.scalars();
    let trial =
        Trial { slopes: draft.sums(Cols), limit: draft.sum(Cols), most, dropped, kept, half: draft.constant(0.5) };
    let start = descent.start(draft);
    let steps = (0..restart).map(|count| {
        let mut calls = vec![descent.limit(draft, descent.most)];
        if count > 0 {
            calls.extend(trial.calls(&descent, draft, count));
        }
        calls.push(draft.call((Cols, OverBasis::Keep { v: descent.d, count }), |_| {}));
        calls.push(draft.call((Rows, OverBasis::Append { w: descent.w, count }), |_| {}));
        calls.push(draft.call((Rows, OverBasis::Norm { step: count }), |s| {
            let own = s.fold(descent.most);
            s.set(shortest, own);
            if count > 0 {
                s.set_if_positive(kept, shortest, most);
            }
            descent.choose(s, shortest, VECTOR2);
        }));
        calls.extend(descent.advance(draft, |_| {}));
        calls.extend(descent.judge(draft));
        calls
    });
    let steps = steps.collect();
    let exact = vec![descent.exact(draft)];
    Script {
        start,
        steps,
        exact,
        least_squares: true,
        terms: Some(descent.terms()),
        residual: Residual::Held,
        ..Script::default()
    }
}
