//! Checks of an answer by the host, row by row. Norms alone tell of the largest rows.

use crate::magnitude;
use crate::number::Real;
use crate::sparse::Csr;
use crate::threads;

/// Largest backward error of an answer that is exact but for rounding, in units of the precision.
const ROUNDED: f64 = 16.0;
/// Rounding errors that a product may have collected, for each row.
const ROUNDING: f64 = 64.0;
/// Largest `eps size / |b|` of an answer that is exact but for rounding. It is about 1 if the answer of a singular system has grown until rounding
/// hides its residual.
const RUN_AWAY: f64 = 1e-3;

/// The residual of an answer, in `f64`.
#[derive(Clone, Debug)]
pub(super) struct Residual {
    /// `b - A x`, row by row.
    pub(super) r: Vec<f64>,
    /// `|A| |x| + |b|`, row by row.
    scale: Vec<f64>,
    /// `| |A| |x| + |b| |`.
    size: f64,
    /// `|b - A x|`.
    pub(super) norm: f64,
    /// `max_i |b - A x|_i / (|A| |x| + |b|)_i`: `x` solves a system whose entries differ from those of `A` and `b` by this part of themselves.
    /// No scaling of rows changes it. Infinity if a row cannot be told.
    ///
    /// Source: W. Oettli, W. Prager, "Compatibility of approximate solution of linear equations with given error bounds for coefficients and
    /// right-hand sides", Numer. Math. 6, 1964, theorem 2.
    pub(super) backward: f64,
}

impl Residual {
    pub(super) fn of<T: Real>(a: &Csr<T>, b: &[f64], x: &[f64]) -> Self {
        // The product comes first: terms far above b, taken from it one by one, would round it away.
        let row = |_, i: usize| {
            let (columns, values) = a.row(i);
            let terms = columns.iter().zip(values).map(|(j, v)| v.to_f64() * x[*j as usize]);
            let (product, scale) =
                terms.fold((0.0, 0.0), |(sum, scale), term: f64| (sum + term, scale + term.abs()));
            (b[i] - product, scale + b[i].abs())
        };
        let rows = threads::numbers(0..a.rows(), 256, row);
        let (r, scale): (Vec<f64>, Vec<f64>) = rows.into_iter().unzip();
        let errors = r.iter().zip(&scale).map(|(r, scale)| if *r == 0.0 { 0.0 } else { r.abs() / scale });
        // A NaN is no small error.
        let backward = errors.fold(0.0, |most: f64, e| if e.is_finite() { most.max(e) } else { f64::INFINITY });
        let [norm, size] = [&r, &scale].map(|v| magnitude::norm(v.iter().copied()));
        Self { r, scale, size, norm, backward }
    }

    /// Tells if rounding of the products is below `goal`, so that a norm below it is no accident.
    pub(super) fn is_certain(&self, goal: f64) -> bool {
        f64::EPSILON * self.size <= goal
    }

    /// Tells if the answer is exact but for rounding in the precision of `T`, row by row.
    pub(super) fn is_rounding<T: Real>(&self, rhs_norm: f64) -> bool {
        self.backward <= ROUNDED * T::EPSILON && self.size * T::EPSILON <= RUN_AWAY * rhs_norm
    }

    /// Tells if `A` takes the residual to 0, as far as rounding lets it, row by row: then it lies in the null space of a symmetric `A`, and no
    /// other `x` has a smaller one. A test by norms passes too early if rows differ in size.
    pub(super) fn is_in_null_space<T: Real>(&self, a: &Csr<T>) -> bool {
        threads::all(a.rows(), 256, |i| {
            let (columns, values) = a.row(i);
            let (mut image, mut rounding) = (0.0, 0.0);
            for (j, v) in columns.iter().zip(values) {
                let (j, v) = (*j as usize, v.to_f64());
                image += v * self.r[j];
                rounding += v.abs() * (self.r[j].abs() + self.scale[j]);
            }
            image.abs() <= ROUNDING * T::EPSILON * rounding
        })
    }
}

/// Tells if each row of a square matrix adds up to 0, as far as rounding lets it: then the constants are in its null space.
pub(super) fn takes_constants_to_0<T: Real>(a: &Csr<T>) -> bool {
    let adds_up = |i: usize| {
        let values = a.row(i).1.iter().map(|v| v.to_f64());
        let (sum, size) = values.fold((0.0, 0.0), |(sum, size), v: f64| (sum + v, size + v.abs()));
        sum.abs() <= 4.0 * T::EPSILON * size
    };
    a.rows() == a.cols() && a.nnz() > 0 && (0..a.rows()).all(adds_up)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(rows: &[&[f64]]) -> Csr<f64> {
        let row = |i: usize| rows[i].iter().enumerate().map(move |(j, v)| (i, j, *v));
        let entries: Vec<_> = (0..rows.len()).flat_map(row).filter(|entry| entry.2 != 0.0).collect();
        Csr::from_triplets(rows.len(), rows[0].len(), &entries).unwrap()
    }

    #[test]
    fn backward_errors_do_not_depend_on_the_sizes_of_rows() {
        let a = matrix(&[&[2e7, -1e7], &[0.0, 1.0]]);
        let off = Residual::of(&a, &[1e7, 1.0], &[1.0 + 1e-12, 1.0]);
        approx::assert_relative_eq!(off.backward, 2e-5 / 4e7, max_relative = 1e-3);
        let same = Residual::of(&a.scaled(&[1e-9, 1.0], &[1.0; 2]).unwrap(), &[1e-2, 1.0], &[1.0 + 1e-12, 1.0]);
        approx::assert_relative_eq!(same.backward, off.backward, max_relative = 1e-2);
        assert_eq!(Residual::of(&a, &[1e7, 1.0], &[1.0, 1.0]).backward, 0.0);
        assert_eq!(Residual::of(&a, &[1e7, 1.0], &[f64::NAN, 1.0]).backward, f64::INFINITY);
        assert_eq!(Residual::of(&a, &[1e7, 1.0], &[0.0, 0.0]).backward, 1.0);
    }

    #[test]
    fn answers_that_run_away_are_no_answers() {
        // b is not in the range; taken from b one by one, the terms would leave 0.
        let a = matrix(&[&[1.0, 1.0], &[1.0, 1.0]]);
        let b = [1.0, 2.0];
        let away = Residual::of(&a, &b, &[1e17, -1e17]);
        assert!(away.norm > 2.0 && !away.is_certain(1e-8) && !away.is_rounding::<f64>(5f64.sqrt()), "{away:?}");
        let near = Residual::of(&a, &[2.0, 2.0], &[1.0, 1.0]);
        assert!(near.norm == 0.0 && near.is_certain(1e-8) && near.is_rounding::<f64>(8f64.sqrt()));
    }

    #[test]
    fn null_vectors_are_told_row_by_row() {
        let a = matrix(&[&[1.0, -1.0, 0.0], &[-1.0, 2.0, -1.0], &[0.0, -1.0, 1.0]]);
        assert!(takes_constants_to_0(&a) && !takes_constants_to_0(&matrix(&[&[1.0, -1.0], &[0.0, 1.0]])));
        assert!(Residual::of(&a, &[1.0, 1.0, 1.0], &[0.0; 3]).is_in_null_space(&a));
        assert!(!Residual::of(&a, &[1.0, 1.0, 1.0 + 1e-9], &[0.0; 3]).is_in_null_space(&a));
        // The large entry hides the small one from a test by norms.
        let wide = matrix(&[&[1.0, 0.0], &[0.0, -1e18]]);
        assert!(!Residual::of(&wide, &[1.0, 0.0], &[0.0; 2]).is_in_null_space(&wide));
    }
}
