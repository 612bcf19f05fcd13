//! Readings and the regularization of the systems of stock-koch-2009.

use residuum::sparse::gallery::Random;
use residuum::{Matrix, Regularization};

/// Seeded readings, most of them below 0, as images of no value above 0 have.
pub(crate) fn readings(rows: usize, images: usize) -> Vec<Vec<f32>> {
    let mut random = Random::new(11);
    (0..images).map(|_| (0..rows).map(|_| (random.uniform() - 0.8) as f32).collect()).collect()
}

/// The F of the paper, `x_i <= 0`.
pub(crate) fn no_more_than_0(matrix: &Matrix<f32>) -> Regularization {
    let scale = matrix.frobenius_norm().powi(2) / matrix.cols() as f64;
    Regularization::none().with_upper(0.0).with_bound_weight(scale)
}
