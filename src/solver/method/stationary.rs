//! Stationary iteration, `x += omega M (b - A x)`: Jacobi, Gauss-Seidel, SOR and SSOR are this with their `M`.
//!
//! Three launches, and what `M` takes. The residual is the true one in every iteration.
//!
//! Source: Y. Saad, "Iterative methods for sparse linear systems", 2nd ed. 2003, section 4.1.

use crate::recurrence::ONE;
use crate::solver::plan::{Operand, Plan, Preconditioning, Product, Script, Space::Rows, Update, Work, X};

pub(super) fn script(plan: &mut Plan, preconditioning: Preconditioning, omega: f64) -> Script {
    let r = plan.vector(Rows);
    let z = if preconditioning == Preconditioning::None { r } else { plan.vector(Rows) };
    let rr = plan.sum(Rows);
    let omega = plan.constant(omega);
    let residual = plan.residual(r, rr);
    let test = plan.call(Work::Scalars, |s| {
        let rr = s.fold(rr);
        s.test(rr);
    });
    let apply = plan.call(Product::of(Operand::Preconditioner, r, z), |_| {});
    let update = match preconditioning {
        Preconditioning::Diagonal(d) => Update::of(Rows).multiply(z, d, r),
        _ => Update::of(Rows),
    };
    let update = plan.call(update.set(X, &[(ONE, X), (omega, z)]), |s| s.count());
    let mut step = vec![update, residual.clone(), test.clone()];
    if preconditioning == Preconditioning::Operator {
        step.insert(0, apply);
    }
    Script { start: vec![residual, test], steps: vec![step], ..Script::default() }
}
