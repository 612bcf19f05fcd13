//! Extreme eigenvalues of symmetric operators, by a Lanczos process.

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
    const WORK: usize = 400_000_000;
    let steps = (WORK / (2 * nnz + 8 * n).max(1)).clamp(20, 3000).min(2 * n).min(most);
    let mut v = noise_of(n);
    let norm = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
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
