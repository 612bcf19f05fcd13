//! Extreme eigenvalues of symmetric operators, by a Lanczos process, and singular values of others, by a bidiagonalisation.

use crate::sparse::gallery::Random;

/// Seeded numbers to start from.
pub(super) fn noise_of(n: usize) -> Vec<f64> {
    let mut random = Random::new(1950);
    (0..n).map(|_| random.normal()).collect()
}

/// The smallest and largest eigenvalue that a Lanczos process of a symmetric operator finds from a seeded start; `nnz`
/// limits its steps beside `most`. Without re-orthogonalisation: what is lost are copies of eigenvalues, not the extreme ones.
///
/// Source: C. C. Paige, "The computation of eigenvalues and eigenvectors of very large sparse matrices", 1971.
pub(super) fn extreme_eigenvalues(
    n: usize,
    nnz: usize,
    most: usize,
    mut apply: impl FnMut(&[f64], &mut [f64]),
) -> (f64, f64) {
    let steps = steps(nnz, n).min(2 * n).min(most);
    let mut v = noise_of(n);
    let length = norm(&v);
    v.iter_mut().for_each(|x| *x /= length);
    let (mut before, mut w) = (vec![0.0; n], vec![0.0; n]);
    let (mut alphas, mut betas) = (Vec::new(), Vec::new());
    let mut beta = 0.0;
    let mut largest = 0.0f64;
    for _ in 0..steps {
        apply(&v, &mut w);
        let alpha: f64 = v.iter().zip(&w).map(|(v, w)| v * w).sum();
        for ((w, v), before) in w.iter_mut().zip(&v).zip(&before) {
            *w -= alpha * v + beta * before;
        }
        alphas.push(alpha);
        beta = norm(&w);
        largest = largest.max(alpha.abs() + beta);
        if beta <= largest * f64::EPSILON || !beta.is_finite() {
            break;
        }
        betas.push(beta);
        std::mem::swap(&mut before, &mut v);
        for (v, w) in v.iter_mut().zip(&w) {
            *v = w / beta;
        }
    }
    betas.truncate(alphas.len().saturating_sub(1));
    (nth_eigenvalue(&alphas, &betas, 0), nth_eigenvalue(&alphas, &betas, alphas.len().saturating_sub(1)))
}

/// The smallest and largest singular value that a bidiagonalisation of `A` finds from a seeded start; `nnz` limits its steps. `apply` is
/// `y = A x`, `adjoint` is `x = A' y`; `most` limits the steps too. Columns that `takes` excludes stay out of the start. The smallest one found is an upper bound. Up to 400 rows and
/// columns it is exact but for the rounding of the largest, since each vector is made orthogonal to all before it: products with `A'A` would
/// lose it at the root of that.
///
/// `A` must have at least as many rows as columns, else the smallest is the 0 of its null space.
///
/// Source: G. Golub, W. Kahan, "Calculating the singular values and pseudo-inverse of a matrix", SIAM J. Numer. Anal. 2(2), 1965,
/// section 2.
pub(super) fn extreme_singular_values(
    [rows, cols]: [usize; 2],
    (nnz, most): (usize, usize),
    takes: impl Fn(usize) -> bool,
    mut apply: impl FnMut(&[f64], &mut [f64]),
    mut adjoint: impl FnMut(&[f64], &mut [f64]),
) -> (f64, f64) {
    let keeps = rows.max(cols) <= ORTHOGONAL;
    let full = if keeps { rows.min(cols) } else { most.min(2 * rows.min(cols)) };
    let steps = steps(2 * nnz, rows + cols).min(full);
    let mut v = noise_of(cols);
    v.iter_mut().enumerate().filter(|(j, _)| !takes(*j)).for_each(|(_, v)| *v = 0.0);
    let (mut u, mut image) = (vec![0.0; rows], vec![0.0; rows.max(cols)]);
    // Entries of the bidiagonal matrix, alternately of the diagonal and beside it.
    let mut entries = Vec::new();
    let mut largest = 0.0f64;
    let ends = |length: f64, largest: f64| length <= largest * f64::EPSILON || !length.is_finite();
    let mut length = norm(&v);
    let mut beta = 0.0;
    let (mut vs, mut us) = (Vec::new(), Vec::new());
    for _ in 0..steps {
        if length == 0.0 {
            break;
        }
        v.iter_mut().for_each(|x| *x /= length);
        let image_u = &mut image[..rows];
        apply(&v, image_u);
        for (u, image) in u.iter_mut().zip(&*image_u) {
            *u = image - beta * *u;
        }
        if keeps {
            vs.push(v.clone());
            orthogonalise(&mut u, &us);
        }
        let alpha = norm(&u);
        largest = largest.max(alpha);
        entries.push(alpha);
        if ends(alpha, largest) {
            break;
        }
        u.iter_mut().for_each(|x| *x /= alpha);
        let image_v = &mut image[..cols];
        adjoint(&u, image_v);
        for (v, image) in v.iter_mut().zip(&*image_v) {
            *v = image - alpha * *v;
        }
        if keeps {
            us.push(u.clone());
            orthogonalise(&mut v, &vs);
        }
        beta = norm(&v);
        largest = largest.max(beta);
        if ends(beta, largest) {
            break;
        }
        entries.push(beta);
        length = beta;
    }
    // The last entry is one of the diagonal, so that their number is odd.
    if entries.len().is_multiple_of(2) {
        entries.pop();
    }
    let zeros = vec![0.0; entries.len() + 1];
    let half = zeros.len() / 2;
    (nth_eigenvalue(&zeros, &entries, half).max(0.0), nth_eigenvalue(&zeros, &entries, entries.len()))
}

/// Most rows or columns for which all vectors of a bidiagonalisation are kept.
const ORTHOGONAL: usize = 400;

/// Takes the directions `of`, of norm 1 and orthogonal, out of `v`, twice, since the first time leaves rounding.
fn orthogonalise(v: &mut [f64], of: &[Vec<f64>]) {
    for _ in 0..2 {
        for direction in of {
            let part: f64 = v.iter().zip(direction).map(|(v, d)| v * d).sum();
            v.iter_mut().zip(direction).for_each(|(v, d)| *v -= part * d);
        }
    }
}

/// Steps of a process with products of `nnz` entries and vectors of `n` elements, up to `4e8` multiplications.
fn steps(nnz: usize, n: usize) -> usize {
    const WORK: usize = 400_000_000;
    (WORK / (2 * nnz + 8 * n).max(1)).clamp(20, 3000)
}

fn norm(v: &[f64]) -> f64 {
    v.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// Eigenvalue `index`, counted from the smallest, of a symmetric tridiagonal matrix, by bisection with Sturm sequences.
fn nth_eigenvalue(alphas: &[f64], betas: &[f64], index: usize) -> f64 {
    let bound =
        alphas.iter().fold(0.0f64, |m, a| m.max(a.abs())) + 2.0 * betas.iter().fold(0.0f64, |m, b| m.max(*b));
    let below = |x: f64| {
        let mut count = 0;
        let mut pivot = 1.0;
        for (k, alpha) in alphas.iter().enumerate() {
            let beta = if k > 0 { betas[k - 1] } else { 0.0 };
            pivot = alpha - x - beta * beta / pivot;
            if pivot == 0.0 {
                pivot = -f64::MIN_POSITIVE;
            }
            count += usize::from(pivot < 0.0);
        }
        count
    };
    let (mut low, mut high) = (-bound, bound);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if below(middle) > index {
            high = middle;
        } else {
            low = middle;
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn singular_values_far_below_the_root_of_rounding_are_found() {
        // Diagonal, 1 to 1e-12: A'A would lose all below 1e-8.
        for rows in [13, 17] {
            let values: Vec<f64> = (0..13).map(|k| 10f64.powi(-k)).collect();
            let apply = |x: &[f64], y: &mut [f64]| {
                y.fill(0.0);
                y.iter_mut().zip(x.iter().zip(&values)).for_each(|(y, (x, s))| *y = x * s);
            };
            let adjoint = |y: &[f64], x: &mut [f64]| {
                x.iter_mut().zip(y.iter().zip(&values)).for_each(|(x, (y, s))| *x = y * s);
            };
            let (low, high) = extreme_singular_values([rows, 13], (13, usize::MAX), |_| true, apply, adjoint);
            approx::assert_relative_eq!(high, 1.0, max_relative = 1e-12);
            approx::assert_relative_eq!(low, 1e-12, max_relative = 1e-2);
            // Without the last three columns.
            let (low, _) = extreme_singular_values([rows, 13], (13, usize::MAX), |j| j < 10, apply, adjoint);
            approx::assert_relative_eq!(low, 1e-9, max_relative = 1e-5);
        }
    }
}
