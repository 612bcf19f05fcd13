//! Hybrid LSQR: `min |A x - b|² + damp² |x - x_0|²` over a Krylov space, with a `damp` that is chosen while the space grows.
//!
//! ```text
//!   beta_1 u_1 = b - A x_0,   alpha_1 v_1 = A'u_1                                  Golub and Kahan, with all vectors kept
//!   beta_{k+1} u_{k+1} = A v_k - U U'(A v_k),   alpha_{k+1} v_{k+1} = A'u_{k+1} - V V'(A'u_{k+1})
//!   A V_k = U_{k+1} B_k                                                            B_k is lower bidiagonal, (k+1) x k
//!   damp_k from a rule for min |B_k y - beta_1 e_1|² + damp² |y|²                  on the host: `weight`
//!   x = x_0 + V_k y                                                                when the rule is done
//! ```
//!
//! Iterates of plain LSQR first come nearer to the solution, and later fit the noise. Here the projected problem in `B_k` is damped, so that the
//! iterates converge. The projected problem is small, so that a rule can compare all weights in every iteration ([`WeightRule`](crate::WeightRule)).
//! All directions are made orthogonal to those before, twice, as in GMRES: without that, copies of singular values would deceive the rule.
//!
//! The history has the residual and the gradient `A'r - damp² (x - x_0)` of the iterate that would be formed with the weight of each
//! iteration. The end is verified like that of any other method.
//!
//! Vectors held: `subspace` of either space, and 3. Launches: 14. Bytes of iteration `k`: those of two products, and `3 k` vectors of either
//! space. The small problem takes `O(k²)` operations of the host in iteration `k`, which reads the norms of the vectors alone.
//! The host sees them at looks, which are closer together than those of other methods: iterations queued beyond the end are wasted.
//!
//! Source: G. H. Golub and W. Kahan, "Calculating the singular values and pseudo-inverse of a matrix", SIAM J. Numer. Anal. 2(2), 1965;
//! J. Chung, J. G. Nagy and D. P. O'Leary, "A weighted-GCV method for Lanczos-hybrid regularization", ETNA 28, 2008; J. Chung and
//! S. Gazzola, "Computational methods for large-scale inverse problems: a survey on hybrid projection methods", SIAM Review 66(2), 2024.

use super::bidiagonal::invert;
use super::info::{LEAST_SQUARES, MethodInfo};
use crate::recurrence::{ONE, Program, Scalar, Sums, VECTOR2, sqrt};
use crate::solver::script::Space::{Cols, Rows};
use crate::solver::script::{
    Call, Damping, Draft, Operand, OverBasis, Product, Script, Space, Update, VectorId, X,
};
use crate::state::stop;

pub(super) const INFO: MethodInfo = MethodInfo { name: "hybrid-lsqr", ..LEAST_SQUARES };

/// Vectors and scalars of the bidiagonalisation, and of the rotations of LSQR that tell how far it has come.
struct Process {
    /// The newest left and right vector, before they are scaled to 1.
    w: VectorId,
    z: VectorId,
    damping: Damping,
    /// `|A v|²` and `|A'u|²` before anything is taken out.
    first: [Sums; 2],
    alpha: Scalar,
    beta: Scalar,
    inverse: [Scalar; 2],
    /// `-damp² / beta_1`.
    back: Scalar,
    rho_bar: Scalar,
    phi_bar: Scalar,
    sine: Scalar,
    cosine: Scalar,
    /// Square of what is left of a vector in the space of others: rounding.
    least: Scalar,
    /// Square of what rounding leaves of the newest left vector.
    rounding: Scalar,
}

impl Process {
    /// The residual, `u_1` and `v_1`.
    fn begin(&self, draft: &mut Draft) -> Vec<Call> {
        let [inverse_alpha, inverse_beta] = self.inverse;
        let residual = draft.residual(self.w, None);
        let left = draft.call((Rows, OverBasis::Append { w: self.w, count: 0 }), |_| {});
        let beta = draft.call((Rows, OverBasis::Norm { step: 0 }), |s| {
            s.set(self.beta, sqrt(VECTOR2));
            s.set(self.phi_bar, self.beta);
            invert(s, inverse_beta, self.beta);
            s.set(self.back, self.damping.minus_square * inverse_beta);
        });
        let gradient = Product::of(Operand::Adjoint, self.w, self.z).scaled(inverse_beta);
        let gradient = draft.call(gradient.plus(self.back, self.damping.change), |_| {});
        let right = draft.call((Cols, OverBasis::Append { w: self.z, count: 0 }), |_| {});
        let alpha = draft.call((Cols, OverBasis::Norm { step: 0 }), |s| {
            s.set(self.alpha, sqrt(VECTOR2));
            s.set(self.rho_bar, self.alpha);
            invert(s, inverse_alpha, self.alpha);
            s.test_least_squares(self.beta * self.beta, self.beta * self.beta * VECTOR2);
        });
        vec![residual, left, beta, gradient, right, alpha]
    }

    /// `count` vectors of a basis are taken out of `w`, and what is left is the next one, with the program `then`.
    fn append(
        draft: &mut Draft,
        of: Space,
        w: VectorId,
        count: usize,
        then: impl FnOnce(&mut Program),
    ) -> [Call; 4] {
        let mut call = |work: OverBasis| draft.call((of, work), |_| {});
        let project = call(OverBasis::Project { w, count });
        let reproject = call(OverBasis::Reproject { w, count });
        let append = call(OverBasis::Append { w, count });
        [project, reproject, append, draft.call((of, OverBasis::Norm { step: count }), then)]
    }

    /// The step that comes after `count - 1` others.
    fn step(&self, draft: &mut Draft, count: usize) -> Vec<Call> {
        let [inverse_alpha, inverse_beta] = self.inverse;
        let product = Product::of(Operand::A, self.z, self.w).scaled(inverse_alpha).square(self.first[0]);
        let mut calls = vec![draft.call(product, |_| {})];
        calls.extend(Self::append(draft, Rows, self.w, count, |s| {
            let first = s.fold(self.first[0]);
            s.require_finite(VECTOR2);
            s.set(self.rounding, self.least * first);
            s.set(self.beta, sqrt(VECTOR2));
            invert(s, inverse_beta, self.beta);
        }));
        let product = Product::of(Operand::Adjoint, self.w, self.z).scaled(inverse_beta).square(self.first[1]);
        calls.push(draft.call(product, |_| {}));
        calls.extend(Self::append(draft, Cols, self.z, count, |s| {
            let first = s.fold(self.first[1]);
            s.require_finite(VECTOR2);
            s.set(self.alpha, sqrt(VECTOR2));
            invert(s, inverse_alpha, self.alpha);
            // The rotation of LSQR (Paige and Saunders).
            let rho = sqrt(self.rho_bar * self.rho_bar + self.beta * self.beta);
            s.set(self.cosine, self.rho_bar / rho.clone());
            s.set(self.sine, self.beta / rho);
            s.set(self.phi_bar, self.sine * self.phi_bar);
            s.set(self.rho_bar, -(self.cosine * self.alpha));
            s.count();
            let residual2 = self.phi_bar * self.phi_bar;
            s.test_least_squares(residual2.clone(), residual2 * self.rho_bar * self.rho_bar);
            // The spaces hold all that `b` reaches; what is left is rounding.
            s.stop_unless_less(self.rounding, self.beta * self.beta, stop::BREAKDOWN);
            s.stop_unless_less(self.least * first, VECTOR2, stop::BREAKDOWN);
        }));
        calls
    }
}

/// At most `subspace` vectors of either space are kept; `epsilon` is that of the vectors.
pub(super) fn script(draft: &mut Draft, subspace: usize, epsilon: f64) -> Script {
    let subspace = subspace.min(draft.len(Rows)).min(draft.len(Cols)).max(1);
    draft.basis(Rows, subspace);
    draft.basis(Cols, subspace);
    let [alpha, beta, back, rho_bar, phi_bar, sine, cosine, rounding] = draft.scalars();
    let damping = Damping { minus_square: draft.scalar(), change: draft.vector(Cols) };
    let process = Process {
        w: draft.vector(Rows),
        z: draft.vector(Cols),
        damping,
        first: [draft.sum(Rows), draft.sum(Cols)],
        alpha,
        beta,
        inverse: draft.scalars(),
        back,
        rho_bar,
        phi_bar,
        sine,
        cosine,
        least: draft.constant((16.0 * epsilon).powi(2)),
        rounding,
    };
    let start = process.begin(draft);
    let steps = (1..=subspace).map(|count| process.step(draft, count)).collect();
    let v = damping.change;
    let finish = vec![
        draft.call((Cols, OverBasis::Combine { v, fresh: true }), |_| {}),
        draft.call(Update::of(Cols).set(X, &[(ONE, X), (ONE, v)]), |_| {}),
    ];
    Script { start, steps, finish, least_squares: true, damping: Some(damping), ..Script::default() }
}
