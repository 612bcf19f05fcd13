//! Stationary iteration, `x += omega M (b - A x)`: Jacobi, Gauss-Seidel, SOR and SSOR are this with their `M`.
//!
//! Three launches, and what `M` takes. The residual is the true one in every iteration.
//!
//! Source: Y. Saad, "Iterative methods for sparse linear systems", 2nd ed. 2003, section 4.1.

use super::info::{MethodInfo, SQUARE};
use crate::recurrence::ONE;
use crate::solver::script::Space::Rows;
use crate::solver::script::{Draft, Launch, Operand, Preconditioning, Product, Script, Update, X};

pub(super) const INFO: MethodInfo = MethodInfo { name: "stationary", preconditioner: true, ..SQUARE };

pub(super) fn script(draft: &mut Draft, preconditioning: Preconditioning, omega: f64) -> Script {
    let r = draft.vector(Rows);
    let z = if preconditioning == Preconditioning::None { r } else { draft.vector(Rows) };
    let rr = draft.sum(Rows);
    let omega = draft.constant(omega);
    let residual = draft.residual(r, rr);
    let test = draft.call(Launch::Scalars, |s| {
        let rr = s.fold(rr);
        s.test(rr);
    });
    let apply = draft.call(Product::of(Operand::Preconditioner, r, z), |_| {});
    let update = match preconditioning {
        Preconditioning::Diagonal(d) => Update::of(Rows).multiply(z, d, r),
        _ => Update::of(Rows),
    };
    let update = draft.call(update.set(X, &[(ONE, X), (omega, z)]), |s| s.count());
    let mut step = vec![update, residual.clone(), test.clone()];
    if preconditioning == Preconditioning::Operator {
        step.insert(0, apply);
    }
    Script { start: vec![residual, test], steps: vec![step], ..Script::default() }
}
