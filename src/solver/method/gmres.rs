//! GMRES with restarts, for square systems of any kind, preconditioned from the right.
//!
//! ```text
//!   beta = |r|,  q_1 = r / beta                                 r = b - A x, at a start and a restart
//!   w = A M q_j
//!   h = Q'w,  w -= Q h,  and once more with what rounding left     Q = (q_1 .. q_j)
//!   q_{j+1} = w / |w|;  rotations make (h, |w|) column j of a triangle R, and of beta e_1 the right side g
//!   |r| = |g_{j+1}|
//!   y = R^-1 g,  x += M Q y                                     at a restart, and when it stops
//! ```
//!
//! The residual is the least in the Krylov space of the start. Directions are made orthogonal to all others at once, twice:
//! classical Gram-Schmidt with one repetition is as good as the modified one, and takes three launches, however many directions
//! there are. Each of them reads all directions. The second one subtracts them from `w` and projects `w` on them again, block by block of
//! the rows. If a cache holds the directions in a block, they come from memory three times in an iteration, otherwise four times.
//!
//! Vectors held: the `restart` directions, and 2; a diagonal preconditioner takes 1 more. Launches: 7. A preconditioner that is not
//! diagonal adds 1 beside those of its product. A restart adds 5 to 7; a few more if the directions take several buffers, since none may be larger than the largest
//! allocation of the device. Bytes of iteration `j`: those of the product, and `3 j` vectors.
//!
//! Source: Y. Saad, M. H. Schultz, "GMRES", SIAM J. Sci. Stat. Comput. 7(3), 1986; Y. Saad, "Iterative Methods for Sparse
//! Linear Systems", 2003, algorithm 9.5 and section 6.5.3; L. Giraud, J. Langou, M. Rozložník, J. van den Eshof, "Rounding error
//! analysis of the classical Gram-Schmidt orthogonalization process", Numer. Math. 101, 2005.

use super::info::{MethodInfo, SQUARE};
use crate::recurrence::{DIAGONAL2, ONE, RESIDUAL2, Scalar, Sums, VECTOR2, ZERO, sqrt};
use crate::solver::script::Space::Rows;
use crate::solver::script::{
    Call, Draft, Operand, OverBasis, Preconditioning, Product, Script, Update, VectorId, Work, X,
};
use crate::state::stop;

pub(super) const INFO: MethodInfo = MethodInfo { name: "gmres", preconditioner: true, ..SQUARE };

/// Vectors, sums and scalars of a cycle of GMRES.
struct Cycle {
    preconditioning: Preconditioning,
    /// Residual and directions; with a preconditioner the first alone, and the second takes what it makes of one.
    vectors: [VectorId; 2],
    /// `|A M q|^2` before anything is taken out.
    first: Sums,
    /// 1 over the norm of the newest direction.
    scale: Scalar,
    /// Columns of the triangle.
    depth: Scalar,
    /// Square of what is left of a vector in the space of others: rounding.
    least: Scalar,
}

impl Cycle {
    /// `r = b - A x`, and `q_1`.
    fn begin(&self, draft: &mut Draft) -> Vec<Call> {
        let [r, _] = self.vectors;
        let residual = draft.residual(r, None);
        let first = draft.call((Rows, OverBasis::Append { w: r, count: 0 }), |_| {});
        let rotate = draft.call((Rows, OverBasis::Rotate { step: 0 }), |s| {
            s.set(self.depth, ZERO);
            s.test(RESIDUAL2);
            s.set(self.scale, ONE / sqrt(VECTOR2));
        });
        vec![residual, first, rotate]
    }

    /// Iteration `j` of a cycle, counted from 0.
    fn step(&self, draft: &mut Draft, j: usize) -> Vec<Call> {
        let [u, p] = self.vectors;
        let mut calls = Vec::new();
        let (direction, w) = match self.preconditioning {
            Preconditioning::None => (self.vectors[j % 2], self.vectors[(j + 1) % 2]),
            Preconditioning::Diagonal(d) => {
                calls.push(draft.call(Update::of(Rows).multiply(p, d, u), |_| {}));
                (p, u)
            }
            Preconditioning::Operator | Preconditioning::Roots => {
                calls.push(draft.call(Product::of(Operand::Preconditioner, u, p), |_| {}));
                (p, u)
            }
        };
        let product = Product::of(Operand::A, direction, w).scaled(self.scale).square(self.first);
        calls.push(draft.call(product, |_| {}));
        let count = j + 1;
        for call in
            [OverBasis::Project { w, count }, OverBasis::Reproject { w, count }, OverBasis::Append { w, count }]
        {
            calls.push(draft.call((Rows, call), |_| {}));
        }
        calls.push(draft.call((Rows, OverBasis::Rotate { step: count }), |s| {
            let first = s.fold(self.first);
            s.require_finite(DIAGONAL2);
            // A q depends on those before it: the operator is singular there.
            s.stop_unless_less(self.least * first, DIAGONAL2, stop::BREAKDOWN);
            s.set(self.depth, self.depth + ONE);
            s.count();
            s.test(RESIDUAL2);
            // The space holds the answer, and what is left of the residual is rounding: a start tells.
            s.stop_unless_less(self.least * first, VECTOR2, stop::CONVERGED);
            s.set(self.scale, ONE / sqrt(VECTOR2));
        }));
        calls
    }

    /// `x += M Q y`, for the columns that run and have a triangle.
    fn end(&self, draft: &mut Draft) -> Vec<Call> {
        let [u, p] = self.vectors;
        let mut calls = vec![draft.call((Rows, OverBasis::Solve { depth: self.depth }), |s| {
            s.stop_unless_less(ZERO, self.depth, stop::CONVERGED);
        })];
        let mut call = |work: Work| calls.push(draft.call(work, |_| {}));
        if let Preconditioning::None = self.preconditioning {
            call((Rows, OverBasis::Combine { v: X, fresh: false }).into());
            return calls;
        }
        call((Rows, OverBasis::Combine { v: u, fresh: true }).into());
        let mut add = Update::of(Rows);
        match self.preconditioning {
            Preconditioning::Diagonal(d) => add = add.multiply(p, d, u),
            _ => call(Product::of(Operand::Preconditioner, u, p).into()),
        }
        call(add.set(X, &[(ONE, X), (ONE, p)]).into());
        calls
    }
}

/// `restart` directions are kept; `epsilon` is that of the vectors.
pub(super) fn script(draft: &mut Draft, preconditioning: Preconditioning, restart: usize, epsilon: f64) -> Script {
    draft.basis(Rows, restart);
    let first = draft.sum(Rows);
    let [scale, depth] = draft.scalars();
    let cycle = Cycle {
        preconditioning,
        vectors: draft.vectors(Rows),
        first,
        scale,
        depth,
        least: draft.constant((16.0 * epsilon).powi(2)),
    };
    let start = cycle.begin(draft);
    let mut steps: Vec<Vec<Call>> = (0..restart).map(|j| cycle.step(draft, j)).collect();
    if let Some(last) = steps.last_mut() {
        last.extend(cycle.end(draft));
        last.extend(cycle.begin(draft));
    }
    let finish = cycle.end(draft);
    Script { start, steps, finish, ..Script::default() }
}
