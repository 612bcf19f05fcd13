//! Operators of a script: the products with `A`, `A'`, the preconditioner and the subsets that it names, and the copy of a diagonal
//! preconditioner as a vector.

use std::sync::Arc;

use super::products::{Products, roots};
use crate::error::Result;
use crate::number::Real;
use crate::operator::SharedOperator;
use crate::solver::regularise::SharedPenalty;
use crate::solver::script::{Launch, Operand, Preconditioning, Script, VectorId, subsets};
use crate::vector::Vector;

/// Operators of a script, and the exponents of the powers of two by which both are multiplied (`scaling.rs`).
pub(crate) struct Operators<'o, T: Real> {
    pub(crate) a: &'o SharedOperator<T>,
    pub(crate) preconditioner: Option<&'o SharedOperator<T>>,
    pub(crate) penalty: Option<&'o SharedPenalty<T>>,
    pub(crate) exponents: [i32; 2],
}

/// Products with the operands that `script` names.
pub(crate) fn factors<T: Real>(
    operators: &Operators<'_, T>,
    script: &Script,
    columns: usize,
    preconditioning: Preconditioning,
) -> Result<Vec<Option<Products<T>>>> {
    let subsets = subsets(operators.a);
    let mut named = vec![false; Operand::count(subsets.len())];
    for call in script.begin.iter().chain(&script.start).chain(script.steps.iter().flatten()) {
        if let Launch::Product { of, .. } = call.launch {
            named[of.index()] = true;
        }
    }
    let multiplies_by = |which: Operand| named[which.index()];
    let [of_operator, of_preconditioner] = operators.exponents;
    let factors = |operator: &SharedOperator<T>, adjoint, exponent| {
        Products::of_factors(operator, adjoint, exponent, columns).map(Some)
    };
    let mut products: Vec<_> = named.iter().map(|_| None).collect();
    products[Operand::A.index()] = factors(operators.a, false, of_operator)?;
    if multiplies_by(Operand::Adjoint) {
        products[Operand::Adjoint.index()] = factors(operators.a, true, of_operator)?;
    }
    for (k, subset) in (0..).zip(&subsets) {
        for (which, adjoint) in [(Operand::Subset(k), false), (Operand::SubsetAdjoint(k), true)] {
            if multiplies_by(which) {
                products[which.index()] = factors(subset, adjoint, of_operator)?;
            }
        }
    }
    if let Some(operator) = operators.preconditioner {
        if multiplies_by(Operand::Preconditioner) {
            products[Operand::Preconditioner.index()] = factors(operator, false, of_preconditioner)?;
        }
        if preconditioning == Preconditioning::Roots {
            let roots = roots(&**operator).map_or([None, None], |roots| roots.map(Some));
            let [adjoint, root] = roots.map(|root| root.map(Products::of_matrix));
            products[Operand::RootAdjoint.index()] = adjoint;
            products[Operand::Root.index()] = root;
        }
    }
    Ok(products)
}

/// A vector with the entries of a diagonal preconditioner, scaled.
pub(crate) struct DiagonalCopy<T: Real> {
    pub(crate) operator: SharedOperator<T>,
    /// Entries that it has.
    pub(crate) copied: Option<Arc<Vector<T>>>,
    pub(crate) exponent: i32,
    pub(crate) place: VectorId,
}

impl<T: Real> DiagonalCopy<T> {
    /// Copies the entries, if the preconditioner has others by now.
    pub(crate) fn refresh(&mut self, columns: usize, vectors: &mut [Vector<T>]) -> Result<()> {
        let Some(entries) = self.operator.as_diagonal() else { return Ok(()) };
        if self.copied.as_ref().is_some_and(|copied| Arc::ptr_eq(copied, &entries)) {
            return Ok(());
        }
        let held = &mut vectors[self.place.index()];
        if columns == 1 {
            held.copy_from(&entries)?;
        } else {
            let entries = entries.to_vec()?;
            held.write_columns(&vec![&entries[..]; columns])?;
        }
        if self.exponent != 0 {
            held.scale_columns(&vec![self.exponent; columns])?;
        }
        self.copied = Some(entries);
        Ok(())
    }
}
