//! Operators of a script: products with each operand that it names, and the copy of a diagonal preconditioner.

use std::sync::Arc;

use super::penalty::SharedPenalty;
use super::plan::{Launch, Operand, Preconditioning, Script, VectorId};
use super::products::{Products, roots};
use crate::error::Result;
use crate::number::Real;
use crate::operator::SharedOperator;
use crate::runs::Runs;
use crate::vector::Vector;

/// Operators of a script, and the exponents of the powers of two by which both are multiplied (`scaling.rs`).
pub(super) struct Operators<'o, T: Real> {
    pub(super) a: &'o SharedOperator<T>,
    pub(super) preconditioner: Option<&'o SharedOperator<T>>,
    pub(super) penalty: Option<&'o SharedPenalty<T>>,
    pub(super) exponents: [i32; 2],
}

/// The subsets that a script takes steps after: those of an operator that has some, else all rows at once.
pub(super) fn subsets<T: Real>(a: &SharedOperator<T>) -> Vec<SharedOperator<T>> {
    a.as_subsets().map_or_else(|| vec![a.clone()], |subsets| subsets.parts().to_vec())
}

/// Places of the rows of these subsets.
pub(super) fn subset_rows<T: Real>(a: &SharedOperator<T>) -> Vec<Runs> {
    match a.as_subsets() {
        Some(subsets) => (0..subsets.parts().len()).map(|k| subsets.runs(k)).collect(),
        None => vec![Runs { first: 0, len: a.rows(), every: a.rows(), count: 1 }],
    }
}

/// Lengths of the vectors that subsets with these rows need, each once: longer subsets come first.
pub(super) fn distinct_lengths(subsets: &[Runs]) -> Vec<usize> {
    let mut lengths: Vec<usize> = subsets.iter().map(|rows| rows.elements()).collect();
    lengths.dedup();
    lengths
}

/// Products with the operands that `script` names.
pub(super) fn factors<T: Real>(
    operators: &Operators<'_, T>,
    script: &Script,
    columns: usize,
    preconditioning: Preconditioning,
) -> Result<Vec<Option<Products<T>>>> {
    let subsets = subsets(operators.a);
    let mut named = vec![false; Operand::count(subsets.len())];
    for call in script.start.iter().chain(script.steps.iter().flatten()) {
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
pub(super) struct DiagonalCopy<T: Real> {
    pub(super) operator: SharedOperator<T>,
    /// Entries that it has.
    pub(super) copied: Option<Arc<Vector<T>>>,
    pub(super) exponent: i32,
    pub(super) place: VectorId,
}

impl<T: Real> DiagonalCopy<T> {
    /// Copies the entries, if the preconditioner has others by now.
    pub(super) fn refresh(&mut self, columns: usize, vectors: &mut [Vector<T>]) -> Result<()> {
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
