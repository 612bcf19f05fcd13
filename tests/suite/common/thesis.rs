//! Conventions of dedecek-2013, for its tables.

use residuum::{Csr, Result};

/// Conventions of the thesis, found by experiment: explicit zeros go, `D = diag(|A e_j|)`, the matrix is `D^-1/2 A D^-1/2`, the right-hand side
/// `D^-1 A 1`, all in fp32.
pub(crate) fn system(a: &Csr<f64>) -> Result<(Csr<f32>, Vec<f32>)> {
    let entries =
        (0..a.rows()).flat_map(|i| a.row(i).0.iter().zip(a.row(i).1).map(move |(j, v)| (i, *j as usize, *v)));
    let entries: Vec<(usize, usize, f64)> = entries.filter(|entry| entry.2 != 0.0).collect();
    let a = Csr::from_triplets(a.rows(), a.cols(), &entries)?;
    let norms = a.column_norms();
    let root: Vec<f64> = norms.iter().map(|norm| norm.sqrt().recip()).collect();
    let sums = a.product(&vec![1.0; a.cols()])?;
    let rhs = sums.iter().zip(&norms).map(|(sum, norm)| (sum / norm) as f32).collect();
    Ok((a.scaled(&root, &root)?.cast(), rhs))
}

/// The thesis counts from 0 and to 1000: one less than the first iteration whose residual is 1e-5 of the first.
pub(crate) fn counted(history: &[f64]) -> usize {
    let first = history.iter().position(|r| *r <= 1e-5 * history[0]);
    first.filter(|k| *k <= 1000).map_or(1000, |k| k.saturating_sub(1))
}
