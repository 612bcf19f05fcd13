//! Scaling of rows and columns by powers of two, so that the largest entry of each is about 1.

use super::csr::Csr;
use crate::magnitude::{Magnitude, scale};
use crate::number::{Real, per_number};

/// Sweeps over the entries: each halves the exponents that are left.
const SWEEPS: usize = 12;
/// Largest exponent of a factor: products of two and an entry stay in the range of `f64`.
const FARTHEST: i32 = 500;

impl<T: Real> Csr<T> {
    /// Factors of rows and columns, for [`Csr::scaled`], which are powers of two: the scaled entries have all digits of the given ones.
    ///
    /// Square matrices: the largest entry of each row and each column comes to lie between 1/2 and 4, as far as 12 sweeps reach;
    /// the factors of a symmetric matrix are the same on both sides. Other matrices: the norm of each column comes to lie between 1 and 2, and
    /// rows stay as they are, since their sizes are weights of least squares. Empty rows and columns have the factor 1.
    ///
    /// Source: D. Ruiz, "A scaling algorithm to equilibrate both rows and columns norms in matrices", RAL-TR-2001-034, algorithm 1.
    pub fn equilibration(&self) -> [Vec<f64>; 2] {
        equilibration(self)
    }
}

per_number! {
    fn equilibration<T>(a: &Csr<T>) -> [Vec<f64>; 2] = equilibration_here;
}

fn equilibration_here<T: Real>(a: &Csr<T>) -> [Vec<f64>; 2] {
    let exponent = |v: f64| Magnitude::of(v).exponent();
    if a.rows() != a.cols() {
        let columns = a.column_norms().into_iter().map(|norm| scale(1.0, -exponent(norm).unwrap_or(0)));
        return [vec![1.0; a.rows()], columns.collect()];
    }
    let n = a.rows();
    let exponents: Vec<Option<i32>> = a.values().iter().map(|v| exponent(v.to_f64())).collect();
    let [mut left, mut right] = [vec![0; n], vec![0; n]];
    for _ in 0..SWEEPS {
        let [mut of_rows, mut of_columns] = [vec![None; n], vec![None; n]];
        for i in 0..n {
            let range = a.offsets()[i]..a.offsets()[i + 1];
            for (j, entry) in a.indices()[range.clone()].iter().zip(&exponents[range]) {
                let j = *j as usize;
                let Some(entry) = entry.map(|entry| entry + left[i] + right[j]) else { continue };
                of_rows[i] = of_rows[i].max(Some(entry));
                of_columns[j] = of_columns[j].max(Some(entry));
            }
        }
        let mut moved = false;
        for (factor, largest) in left.iter_mut().zip(of_rows).chain(right.iter_mut().zip(of_columns)) {
            // Half of it, since the other side takes the other half; towards 0, so that nothing moves forever.
            let by = largest.unwrap_or(0) / 2;
            moved |= by != 0;
            *factor = (*factor - by).clamp(-FARTHEST, FARTHEST);
        }
        if !moved {
            break;
        }
    }
    [left, right].map(|factors| factors.into_iter().map(|k| scale(1.0, k)).collect())
}

#[cfg(test)]
mod tests {
    use crate::sparse::gallery;

    #[test]
    fn rows_and_columns_come_to_be_of_one_size() {
        // diag(l) R diag(m), with l and m from 1e-6 to 1e6.
        let n = 40;
        let random = gallery::random::<f64>(n, n, 6 * n, 3).expect("a matrix");
        let factor = |k: usize, by: usize| 10f64.powi((k * by % 13) as i32 - 6);
        let [l, m]: [Vec<f64>; 2] = [5, 7].map(|by| (0..n).map(|k| factor(k, by)).collect());
        let a = random.scaled(&l, &m).expect("factors");
        let [left, right] = a.equilibration();
        let scaled = a.scaled(&left, &right).expect("factors");
        for m in [&scaled, &scaled.transpose()] {
            for i in (0..n).filter(|i| !m.row(*i).0.is_empty()) {
                let largest = m.row(i).1.iter().fold(0.0f64, |most, v| most.max(v.abs()));
                assert!((0.25..4.0).contains(&largest), "row {i}: {largest}");
            }
        }
        // No entry was rounded.
        let inverse = |factors: &[f64]| factors.iter().map(|f| 1.0 / f).collect::<Vec<_>>();
        assert_eq!(scaled.scaled(&inverse(&left), &inverse(&right)).expect("factors"), a);
    }

    #[test]
    fn a_symmetric_matrix_stays_symmetric_and_rows_of_a_rectangle_stay_as_they_are() {
        let a = gallery::poisson_2d::<f64>(5, 0.0).expect("a matrix");
        let d: Vec<f64> = (0..25).map(|k| 1.7f64.powi(k - 12)).collect();
        let [left, right] = a.scaled(&d, &d).expect("factors").equilibration();
        assert_eq!(left, right);
        let tall = gallery::random::<f64>(9, 4, 20, 1).expect("a matrix");
        let [left, right] = tall.equilibration();
        assert_eq!(left, [1.0; 9]);
        let norms = tall.scaled(&left, &right).expect("factors").column_norms();
        assert!(norms.iter().all(|norm| (1.0..2.0).contains(norm)), "{norms:?}");
    }
}
