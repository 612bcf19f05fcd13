//! A Cholesky factorisation within the envelope of a symmetric matrix, if that is cheap: the certain way to learn
//! whether it is positive definite, and what its smallest eigenvalue is.

use crate::number::Real;
use crate::sparse::{Csr, of_symmetric};

/// The lower triangle of a reordered symmetric matrix, each row from its first entry to the diagonal.
#[derive(Debug)]
pub(crate) struct Envelope {
    /// First column of each row.
    first: Vec<usize>,
    /// Start of each row in `values`.
    start: Vec<usize>,
    values: Vec<f64>,
}

/// End of a factorisation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Factored {
    /// Every pivot is positive.
    Positive,
    /// The first pivot that is not, and what it is.
    Pivot(f64),
}

impl Envelope {
    /// `diag(scale) A diag(scale)` in reverse Cuthill-McKee order, unless factorising it would take more than `most`
    /// multiplications.
    pub(crate) fn of<T: Real>(a: &Csr<T>, scale: &[f64], most: f64) -> Option<Self> {
        let n = a.rows();
        let order: Vec<usize> = of_symmetric(a).into_iter().map(|i| i as usize).collect();
        let mut place = vec![0; n];
        for (k, i) in order.iter().enumerate() {
            place[*i] = k;
        }
        let mut first: Vec<usize> = (0..n).collect();
        for (k, i) in order.iter().enumerate() {
            first[k] = a.row(*i).0.iter().map(|j| place[*j as usize]).min().map_or(k, |f| f.min(k));
        }
        let work: f64 = first.iter().enumerate().map(|(k, f)| ((k - f) as f64).powi(2)).sum();
        if work > most {
            return None;
        }
        let mut start = vec![0; n + 1];
        for k in 0..n {
            start[k + 1] = start[k] + k - first[k] + 1;
        }
        let mut values = vec![0.0; start[n]];
        for (k, i) in order.iter().enumerate() {
            let (columns, entries) = a.row(*i);
            for (j, v) in columns.iter().zip(entries) {
                let (j, l) = (*j as usize, place[*j as usize]);
                if l <= k {
                    values[start[k] + l - first[k]] = v.to_f64() * (scale[*i] * scale[j]);
                }
            }
        }
        Some(Self { first, start, values })
    }

    /// `A = L L'`, in place, row by row; a pivot of at most `least` ends it.
    pub(crate) fn factor(&mut self, least: f64) -> Factored {
        let Self { first, start, values } = self;
        for k in 0..first.len() {
            let (done, row) = values.split_at_mut(start[k]);
            for j in first[k]..k {
                let from = first[k].max(first[j]);
                let above = &done[start[j] + from - first[j]..start[j] + j - first[j]];
                let mine = &row[from - first[k]..j - first[k]];
                let inner: f64 = mine.iter().zip(above).map(|(x, y)| x * y).sum();
                let place = j - first[k];
                row[place] = (row[place] - inner) / done[start[j + 1] - 1];
            }
            let last = k - first[k];
            let pivot = row[last] - row[..last].iter().map(|v| v * v).sum::<f64>();
            if pivot <= least || !pivot.is_finite() {
                return Factored::Pivot(pivot);
            }
            row[last] = pivot.sqrt();
        }
        Factored::Positive
    }

    /// `x = A^-1 x`, after [`Envelope::factor`].
    fn solve(&self, x: &mut [f64]) {
        let Self { first, start, values } = self;
        for k in 0..x.len() {
            let row = &values[start[k]..start[k + 1]];
            let last = row.len() - 1;
            let inner: f64 = row[..last].iter().zip(&x[first[k]..k]).map(|(v, x)| v * x).sum();
            x[k] = (x[k] - inner) / row[last];
        }
        for k in (0..x.len()).rev() {
            let row = &values[start[k]..start[k + 1]];
            let last = row.len() - 1;
            x[k] /= row[last];
            let factor = x[k];
            for (x, v) in x[first[k]..k].iter_mut().zip(row) {
                *x -= factor * v;
            }
        }
    }

    /// The smallest eigenvalue, from above, by `steps` of the inverse power iteration from `x`.
    pub(crate) fn smallest_eigenvalue(&self, mut x: Vec<f64>, steps: usize) -> f64 {
        let norm = |x: &[f64]| x.iter().map(|v| v * v).sum::<f64>().sqrt();
        let mut smallest = f64::INFINITY;
        for _ in 0..steps {
            let length = norm(&x);
            x.iter_mut().for_each(|v| *v /= length);
            self.solve(&mut x);
            smallest = smallest.min(1.0 / norm(&x));
        }
        smallest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparse::gallery;

    #[test]
    fn the_laplacian_has_the_eigenvalue_of_the_books() {
        let side = 14;
        let a: Csr<f64> = gallery::poisson_2d(side, 0.0).expect("a matrix");
        let n = a.rows();
        let mut envelope = Envelope::of(&a, &vec![1.0; n], 1e9).expect("small");
        assert!(envelope.values.len() <= n * (side + 1), "{} places", envelope.values.len());
        assert_eq!(envelope.factor(0.0), Factored::Positive);
        let found = envelope.smallest_eigenvalue((0..n).map(|i| 1.0 + (i % 3) as f64).collect(), 30);
        let wanted = 4.0 - 4.0 * (std::f64::consts::PI / (side + 1) as f64).cos();
        approx::assert_relative_eq!(found, wanted, max_relative = 1e-9);
    }

    #[test]
    fn what_is_not_definite_shows_in_a_pivot() {
        let entries = [(0, 0, 2.0), (0, 2, 1.0), (1, 1, 1.0), (2, 0, 1.0), (2, 2, 0.25)];
        let a = Csr::from_triplets(3, 3, &entries).expect("a matrix");
        let mut envelope = Envelope::of(&a, &[1.0; 3], 1e9).expect("small");
        assert!(matches!(envelope.factor(0.0), Factored::Pivot(p) if p < -0.2));
        assert!(Envelope::of(&a, &[1.0; 3], 0.5).is_none());
    }
}
