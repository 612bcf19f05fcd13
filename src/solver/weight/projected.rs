//! The projected problem of hybrid LSQR and LSMR: `min |B y - beta_1 e_1|² + damp² |y|²`. `B` is lower bidiagonal,
//! with one more row than columns. The host solves it in `f64`.
//!
//! Every operation is an addition, multiplication, division or square root in a fixed order, so that all hosts find the same numbers.
//!
//! Source: C. C. Paige and M. A. Saunders, "LSQR", ACM TOMS 8(1), 1982 (the rotations); G. H. Golub and C. Reinsch, "Singular value
//! decomposition and least squares solutions", Numer. Math. 14, 1970; L. Eldén, "Algorithms for the regularization of ill-conditioned
//! least squares problems", BIT 17, 1977 (damping); J. Chung and K. Palmer, "A hybrid LSMR algorithm for large-scale Tikhonov
//! regularization", SIAM J. Sci. Comput. 37(5), 2015 (least gradients).

/// `B = Q R`, a column at a time: an upper bidiagonal `R`, and `Q'beta_1 e_1`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bidiagonal {
    /// Diagonal of `R`, and what stands to the right of it in each row; the last of these belongs to the next column.
    diagonal: Vec<f64>,
    above: Vec<f64>,
    /// `Q'beta_1 e_1` but for the last entry, which is the residual of LSQR.
    right: Vec<f64>,
    rest: f64,
    rho_bar: f64,
    /// Entries of `B`: `alpha_1` to `alpha_{k+1}`, and `beta_1` to `beta_{k+1}`.
    alpha: Vec<f64>,
    beta: Vec<f64>,
}

/// Singular values of `B`, and the squares of what they see of the right-hand side.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Spectrum {
    /// `s_i` and `c_i²`.
    pub(crate) parts: Vec<[f64; 2]>,
    /// `c_{k+1}²`, which no `y` reaches.
    pub(crate) rest: f64,
}

/// Norm that the answer of a small problem makes least, for one weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Least {
    /// `|b - A x|² + damp² |x - x_0|²`: LSQR.
    Objective,
    /// The norm of its gradient: LSMR.
    Gradient,
}

/// Answer of a small problem.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) y: Vec<f64>,
    /// `|b - A x|²`.
    pub(crate) residual2: f64,
    /// `|A'(b - A x) - damp² (x - x_0)|`.
    pub(crate) gradient: f64,
}

/// Length of `(a, b)`. The one of the system need not be the same everywhere.
fn length(a: f64, b: f64) -> f64 {
    (a * a + b * b).sqrt()
}

/// Cosine, sine and length of the rotation that takes `(a, b)` to `(length, 0)`.
fn rotation(a: f64, b: f64) -> [f64; 3] {
    let r = length(a, b);
    if r > 0.0 { [a / r, b / r, r] } else { [1.0, 0.0, 0.0] }
}

/// Rotates `(a, b)`.
fn rotated([cosine, sine, _]: [f64; 3], a: f64, b: f64) -> [f64; 2] {
    [cosine * a + sine * b, cosine * b - sine * a]
}

impl Bidiagonal {
    /// No columns yet: `beta_1` and `alpha_1`.
    pub(crate) fn new(beta: f64, alpha: f64) -> Self {
        Self { rest: beta, rho_bar: alpha, alpha: vec![alpha], beta: vec![beta], ..Self::default() }
    }

    pub(crate) fn columns(&self) -> usize {
        self.diagonal.len()
    }

    /// Adds the column with `beta_{k+1}` below its diagonal; `alpha_{k+1}` is the diagonal of the next one.
    pub(crate) fn push(&mut self, beta: f64, alpha: f64) {
        let turn = rotation(self.rho_bar, beta);
        let [right, rest] = rotated(turn, self.rest, 0.0);
        self.diagonal.push(turn[2]);
        self.right.push(right);
        self.rest = rest;
        self.above.push(turn[1] * alpha);
        self.rho_bar = turn[0] * alpha;
        self.alpha.push(alpha);
        self.beta.push(beta);
    }

    /// The singular values.
    pub(crate) fn spectrum(&self) -> Spectrum {
        let count = self.columns().saturating_sub(1);
        let (values, seen) =
            singular_values(self.diagonal.clone(), self.above[..count].to_vec(), self.right.clone());
        let parts = values.into_iter().zip(seen).map(|(value, seen)| [value.abs(), seen * seen]).collect();
        Spectrum { parts, rest: self.rest * self.rest }
    }

    /// The answer for a weight `damp²`; `spectrum` is that of this problem.
    pub(crate) fn solve(&self, least: Least, spectrum: &Spectrum, damp: f64) -> Answer {
        match least {
            Least::Objective => {
                let y = self.damped(damp);
                let last = y.last().map_or(self.rest, |last| -self.beta[self.columns()] * last);
                let gradient = (self.alpha[self.columns()] * last).abs();
                Answer { y, residual2: spectrum.residual2(damp), gradient }
            }
            Least::Gradient => {
                let (y, gradient) = self.of_least_gradient(damp);
                let mut r = vec![0.0; y.len() + 1];
                r[0] = self.beta[0];
                for (i, y) in y.iter().enumerate() {
                    r[i] -= self.alpha[i] * y;
                    r[i + 1] -= self.beta[i + 1] * y;
                }
                Answer { y, residual2: r.iter().fold(0.0, |sum, r| sum + r * r), gradient }
            }
        }
    }

    /// The minimum `y` for a weight `damp²`.
    fn damped(&self, damp: f64) -> Vec<f64> {
        let k = self.columns();
        let (mut diagonal, mut above) = (self.diagonal.clone(), self.above.clone());
        let mut right = self.right.clone();
        // The row of damping at hand: its entry in column i, and its right side.
        let (mut entry, mut side) = (0.0, 0.0);
        for i in 0..k {
            // Two rows of damping meet in this column: what rotations have left of those before, and its own.
            let own = rotation(entry, damp);
            side = rotated(own, side, 0.0)[0];
            let turn = rotation(diagonal[i], own[2]);
            diagonal[i] = turn[2];
            [right[i], side] = rotated(turn, right[i], side);
            [above[i], entry] = rotated(turn, above[i], 0.0);
        }
        let mut y = vec![0.0; k];
        for i in (0..k).rev() {
            let next = if i + 1 < k { above[i] * y[i + 1] } else { 0.0 };
            // A direction that `B` and the damping leave at 0 takes nothing.
            y[i] = if diagonal[i] > 0.0 { (right[i] - next) / diagonal[i] } else { 0.0 };
        }
        y
    }

    /// The `y` of the least `|alpha_1 beta_1 e_1 - (T + damp² I) y|`, and that norm. `T` has the rows of `B'B`, and `alpha_{k+1} beta_{k+1}` below its last column.
    fn of_least_gradient(&self, damp: f64) -> (Vec<f64>, f64) {
        let k = self.columns();
        // Entries of T are products of two: they are kept near 1.
        let unit = self.alpha.iter().chain(&self.beta[1..]).fold(damp, |most, v| most.max(*v));
        let unit = if unit > 0.0 { unit } else { 1.0 };
        let (alpha, beta, damp) = (|i: usize| self.alpha[i] / unit, |i: usize| self.beta[i] / unit, damp / unit);
        let square = |i: usize| alpha(i) * alpha(i) + beta(i + 1) * beta(i + 1) + damp * damp;
        let beside = |i: usize| alpha(i + 1) * beta(i + 1);
        // Rows of the upper triangle, each with three entries, and of the right side.
        let (mut rows, mut right) = (Vec::with_capacity(k), Vec::with_capacity(k));
        let mut row = [if k > 0 { square(0) } else { 0.0 }, if k > 1 { beside(0) } else { 0.0 }];
        let mut rest = alpha(0) * (self.beta[0] / unit);
        for i in 0..k {
            let below = |at: usize, value: &dyn Fn(usize) -> f64| if at < k { value(at) } else { 0.0 };
            let turn = rotation(row[0], beside(i));
            let [second, next] = rotated(turn, row[1], below(i + 1, &square));
            // Two columns further, the row below alone has an entry.
            let [third, further] = rotated(turn, 0.0, if i + 2 < k { beside(i + 1) } else { 0.0 });
            rows.push([turn[2], second, third]);
            let [here, after] = rotated(turn, rest, 0.0);
            right.push(here);
            (row, rest) = ([next, further], after);
        }
        let mut y = vec![0.0; k + 2];
        for (i, ([diagonal, second, third], right)) in rows.iter().zip(right).enumerate().rev() {
            let after = second * y[i + 1] + third * y[i + 2];
            y[i] = if *diagonal > 0.0 { (right - after) / diagonal } else { 0.0 };
        }
        y.truncate(k);
        (y, rest.abs() * unit * unit)
    }
}

/// Sweeps that are allowed for each singular value; two or three are usual.
const SWEEPS: usize = 60;

/// Singular values of the upper bidiagonal matrix with `d` on the diagonal and `e` above it, in no order and with any sign, and `g` in the
/// basis of left singular vectors: the algorithm of Golub and Reinsch, which here rotates one vector instead of a matrix, in `O(k²)`.
fn singular_values(mut d: Vec<f64>, mut e: Vec<f64>, mut g: Vec<f64>) -> (Vec<f64>, Vec<f64>) {
    let largest = d.iter().chain(&e).fold(0.0_f64, |most, v| most.max(v.abs()));
    let mut end = d.len();
    for _ in 0..SWEEPS * d.len() {
        let negligible =
            |d: &[f64], e: &[f64], i: usize| e[i].abs() <= f64::EPSILON * (d[i].abs() + d[i + 1].abs());
        while end > 1 && negligible(&d, &e, end - 2) {
            e[end - 2] = 0.0;
            end -= 1;
        }
        if end <= 1 {
            break;
        }
        let begin = (0..end - 2).rev().find(|i| negligible(&d, &e, *i)).map_or(0, |i| i + 1);
        match (begin..end - 1).find(|i| d[*i].abs() <= f64::EPSILON * largest) {
            Some(zero) => split(&mut d[..end], &mut e, &mut g, zero),
            None => sweep(&mut d[..end], &mut e, &mut g, begin),
        }
    }
    (d, g)
}

/// Clears the row of a diagonal entry that is 0, by rotations with the rows below it.
fn split(d: &mut [f64], e: &mut [f64], g: &mut [f64], zero: usize) {
    d[zero] = 0.0;
    let mut fill = std::mem::take(&mut e[zero]);
    for j in zero + 1..d.len() {
        let turn = rotation(d[j], fill);
        d[j] = turn[2];
        [g[j], g[zero]] = rotated(turn, g[j], g[zero]);
        if j + 1 < d.len() {
            [e[j], fill] = rotated(turn, e[j], 0.0);
        }
    }
}

/// A step of the QR algorithm on rows `begin ..`, with the shift of Wilkinson.
fn sweep(d: &mut [f64], e: &mut [f64], g: &mut [f64], begin: usize) {
    let end = d.len();
    let before = if end - 2 > begin { e[end - 3] } else { 0.0 };
    let upper = d[end - 2] * d[end - 2] + before * before;
    let lower = d[end - 1] * d[end - 1] + e[end - 2] * e[end - 2];
    let beside = d[end - 2] * e[end - 2];
    let half = 0.5 * (upper - lower);
    let root = length(half, beside);
    let divisor = if half < 0.0 { half - root } else { half + root };
    let shift = if divisor == 0.0 { lower } else { lower - beside * (beside / divisor) };
    let (mut y, mut z) = (d[begin] * d[begin] - shift, d[begin] * e[begin]);
    for k in begin..end - 1 {
        let right = rotation(y, z);
        if k > begin {
            e[k - 1] = right[2];
        }
        let [diagonal, above] = rotated(right, d[k], e[k]);
        let [bulge, next] = rotated(right, 0.0, d[k + 1]);
        let left = rotation(diagonal, bulge);
        d[k] = left[2];
        [e[k], d[k + 1]] = rotated(left, above, next);
        [g[k], g[k + 1]] = rotated(left, g[k], g[k + 1]);
        if k + 2 < end {
            [z, e[k + 1]] = rotated(left, 0.0, e[k + 1]);
            y = e[k];
        }
    }
}

impl Spectrum {
    /// `|r|²` of the answer with the weight `damp²`.
    pub(crate) fn residual2(&self, damp: f64) -> f64 {
        self.sum(damp, |[_, seen], left| left * left * seen) + self.rest
    }

    /// `|y|²` of it.
    pub(crate) fn solution2(&self, damp: f64) -> f64 {
        // A value of 0 sees nothing that an answer could have.
        self.sum(
            damp,
            |[value, seen], left| {
                if value > 0.0 { (1.0 - left) * (1.0 - left) * seen / (value * value) } else { 0.0 }
            },
        )
    }

    /// Sum of the filter factors `s² / (s² + damp²)`.
    pub(crate) fn trace(&self, damp: f64) -> f64 {
        self.sum(damp, |_, left| 1.0 - left)
    }

    /// Sum of `of` the part and `damp² / (s² + damp²)`.
    pub(crate) fn sum(&self, damp: f64, of: impl Fn([f64; 2], f64) -> f64) -> f64 {
        let square = damp * damp;
        let left =
            |value: f64| if square > 0.0 { square / (value * value + square) } else { f64::from(value == 0.0) };
        self.parts.iter().map(|part| of(*part, left(part[0]))).sum()
    }

    pub(crate) fn largest(&self) -> f64 {
        self.parts.iter().fold(0.0, |most, part| most.max(part[0]))
    }

    pub(crate) fn smallest(&self) -> f64 {
        self.parts.iter().fold(f64::INFINITY, |least, part| least.min(part[0]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `alpha` and `beta` of a small problem, one of each more than columns.
    fn problem(k: usize, seed: u64) -> [Vec<f64>; 2] {
        let mut state = seed;
        let mut draw = || {
            state = 16807 * state % 2_147_483_647;
            state as f64 / 2_147_483_647.0
        };
        [0.0; 2].map(|_| (0..=k).map(|_| 0.01 + draw()).collect())
    }

    fn made(alpha: &[f64], beta: &[f64]) -> Bidiagonal {
        let mut made = Bidiagonal::new(beta[0], alpha[0]);
        (1..alpha.len()).for_each(|k| made.push(beta[k], alpha[k]));
        made
    }

    /// `beta_1 e_1 - B y`.
    fn residual(alpha: &[f64], beta: &[f64], y: &[f64]) -> Vec<f64> {
        let mut r = vec![0.0; y.len() + 1];
        r[0] = beta[0];
        for (i, y) in y.iter().enumerate() {
            r[i] -= alpha[i] * y;
            r[i + 1] -= beta[i + 1] * y;
        }
        r
    }

    fn square(v: &[f64]) -> f64 {
        v.iter().map(|v| v * v).sum()
    }

    fn close(found: f64, wanted: f64, by: f64) -> bool {
        (found - wanted).abs() <= by * wanted.abs().max(1e-300)
    }

    /// The answer is the minimum: the gradient of the damped problem is 0. Its residual and norm are those that the spectrum has.
    #[test]
    fn answers_are_minima_and_spectra_know_them() {
        for k in [1, 2, 3, 7, 30, 100] {
            let [alpha, beta] = problem(k, 7 + k as u64);
            let small = made(&alpha, &beta);
            let spectrum = small.spectrum();
            assert_eq!(small.columns(), k);
            for damp in [0.0, 1e-3, 0.1, 1.0, 30.0] {
                let Answer { y, gradient: norm, .. } = small.solve(Least::Objective, &spectrum, damp);
                let r = residual(&alpha, &beta, &y);
                for i in 0..k {
                    let gradient = alpha[i] * r[i] + beta[i + 1] * r[i + 1] - damp * damp * y[i];
                    assert!(gradient.abs() < 1e-12, "{k} {damp}: {gradient}");
                }
                // Beyond the space the gradient has one more part.
                assert!((norm - (alpha[k] * r[k]).abs()).abs() < 1e-12, "{k} {damp}: {norm}");
                assert!(close(spectrum.residual2(damp), square(&r), 1e-10), "{k} {damp}");
                assert!(close(spectrum.solution2(damp), square(&y), 1e-8), "{k} {damp}");
            }
            let all: f64 = spectrum.parts.iter().map(|part| part[1]).sum();
            assert!(close(all + spectrum.rest, beta[0] * beta[0], 1e-12), "{k}");
            // The squares of all entries are those of all singular values.
            let entries = square(&alpha[..k]) + square(&beta[1..]);
            assert!(close(spectrum.parts.iter().map(|part| part[0] * part[0]).sum(), entries, 1e-12), "{k}");
        }
    }

    /// No small change of an answer of the least gradient has a smaller one, its numbers are true, and it is no larger than that of LSQR.
    #[test]
    fn gradients_are_least() {
        for k in [1, 2, 3, 8, 40] {
            let [alpha, beta] = problem(k, 90 + k as u64);
            let small = made(&alpha, &beta);
            let spectrum = small.spectrum();
            for damp in [0.0, 0.1, 1.0] {
                let gradient = |y: &[f64]| {
                    let r = residual(&alpha, &beta, y);
                    let part = |i: usize| alpha[i] * r[i] + beta[i + 1] * r[i + 1] - damp * damp * y[i];
                    ((0..k).map(|i| part(i).powi(2)).sum::<f64>() + (alpha[k] * r[k]).powi(2)).sqrt()
                };
                let found = small.solve(Least::Gradient, &spectrum, damp);
                let is_near = |one: f64, other: f64| (one - other).abs() < 1e-13 + 1e-9 * other;
                assert!(is_near(found.gradient, gradient(&found.y)), "{k} {damp}: {}", found.gradient);
                assert!(close(found.residual2, square(&residual(&alpha, &beta, &found.y)), 1e-12), "{k} {damp}");
                let other = small.solve(Least::Objective, &spectrum, damp);
                assert!(found.gradient <= other.gradient && is_near(other.gradient, gradient(&other.y)));
                for i in 0..k {
                    for step in [-1e-4, 1e-4] {
                        let mut near = found.y.clone();
                        near[i] += step;
                        assert!(gradient(&near) > found.gradient, "{k} {damp} {i}");
                    }
                }
            }
        }
    }

    /// Zeros on the diagonal and above it, equal values, and a space that has ended: no NaN, and the same sums.
    #[test]
    fn degenerate_problems_have_spectra() {
        for (alpha, beta) in [
            (vec![1.0, 0.0, 1.0, 1.0], vec![1.0, 0.0, 1.0, 1.0]),
            (vec![1.0; 6], vec![1.0; 6]),
            (vec![2.0, 1e-18, 0.5], vec![3.0, 0.0, 1e-20]),
            (vec![0.0, 0.0], vec![1.0, 0.0]),
            (vec![1e-150, 1e-150, 1e-150], vec![1e-150; 3]),
        ] {
            let spectrum = made(&alpha, &beta).spectrum();
            let all: f64 = spectrum.parts.iter().map(|part| part[1]).sum::<f64>() + spectrum.rest;
            assert!(close(all, beta[0] * beta[0], 1e-12), "{alpha:?}: {spectrum:?}");
            assert!(spectrum.parts.iter().flatten().all(|v| v.is_finite()), "{alpha:?}: {spectrum:?}");
            for least in [Least::Objective, Least::Gradient] {
                let Answer { y, residual2, gradient } = made(&alpha, &beta).solve(least, &spectrum, 0.5);
                let all = [residual2, gradient];
                assert!(y.iter().chain(&all).all(|v| v.is_finite()), "{alpha:?} {least:?}: {y:?} {all:?}");
            }
        }
        // A singular value that is 0 exactly: (1, 1) in the first row alone.
        let (mut values, _) = singular_values(vec![1.0, 0.0], vec![1.0], vec![1.0, 0.0]);
        values.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
        assert!(values[0].abs() < 1e-15 && close(values[1].abs(), 2.0_f64.sqrt(), 1e-14), "{values:?}");
    }
}
