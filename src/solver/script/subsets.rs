//! Subsets of the rows. SART takes a step after each.

use crate::number::Real;
use crate::operator::SharedOperator;
use crate::runs::Runs;

/// The subsets that a script takes steps after: those of an operator that has some, else all rows at once.
pub(crate) fn subsets<T: Real>(a: &SharedOperator<T>) -> Vec<SharedOperator<T>> {
    a.as_subsets().map_or_else(|| vec![a.clone()], |subsets| subsets.parts().to_vec())
}

/// Places of the rows of these subsets.
pub(crate) fn subset_rows<T: Real>(a: &SharedOperator<T>) -> Vec<Runs> {
    match a.as_subsets() {
        Some(subsets) => (0..subsets.parts().len()).map(|k| subsets.runs(k)).collect(),
        None => vec![Runs { first: 0, len: a.rows(), every: a.rows(), count: 1 }],
    }
}

/// Lengths of the vectors that subsets with these rows need, each once: longer subsets come first.
pub(crate) fn distinct_lengths(subsets: &[Runs]) -> Vec<usize> {
    let mut lengths: Vec<usize> = subsets.iter().map(|rows| rows.elements()).collect();
    lengths.dedup();
    lengths
}
