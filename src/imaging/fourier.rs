//! The fast Fourier transform of lengths that are powers of two, in a fixed order of operations: readings that were filtered have the
//! same bits on every machine, which crates that choose instructions at run time do not promise.
//!
//! Source: J. W. Cooley and J. W. Tukey, "An algorithm for the machine calculation of complex Fourier series", Math. Comp. 19, 1965.

/// Real and imaginary part.
pub(super) type Complex = [f64; 2];

/// The product of two numbers.
pub(super) fn times(a: Complex, b: Complex) -> Complex {
    [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]
}

/// Transforms of one length.
pub(super) struct Fourier {
    /// `exp(-2 pi i k / n)` for `k` below `n / 2`.
    roots: Vec<Complex>,
}

impl Fourier {
    /// Transforms of `n` numbers, a power of two.
    pub(super) fn new(n: usize) -> Self {
        let turn = |k: usize| -2.0 * std::f64::consts::PI * k as f64 / n as f64;
        Self { roots: (0..n / 2).map(|k| [libm::cos(turn(k)), libm::sin(turn(k))]).collect() }
    }

    /// Length of the transforms.
    pub(super) fn len(&self) -> usize {
        (2 * self.roots.len()).max(1)
    }

    /// `values[k] = sum over j of values[j] exp(-2 pi i j k / n)`.
    pub(super) fn forward(&self, values: &mut [Complex]) {
        let n = values.len();
        let bits = n.trailing_zeros();
        for k in 0..n {
            let reversed = if bits == 0 { k } else { k.reverse_bits() >> (usize::BITS - bits) };
            if k < reversed {
                values.swap(k, reversed);
            }
        }
        let mut half = 1;
        while half < n {
            let step = n / (2 * half);
            for pair in values.chunks_exact_mut(2 * half) {
                let (left, right) = pair.split_at_mut(half);
                for (k, (a, b)) in left.iter_mut().zip(right).enumerate() {
                    let turned = times(*b, self.roots[k * step]);
                    *b = [a[0] - turned[0], a[1] - turned[1]];
                    *a = [a[0] + turned[0], a[1] + turned[1]];
                }
            }
            half *= 2;
        }
    }

    /// The inverse: `values[j] = sum over k of values[k] exp(2 pi i j k / n) / n`.
    pub(super) fn inverse(&self, values: &mut [Complex]) {
        let scale = 1.0 / values.len() as f64;
        values.iter_mut().for_each(|v| v[1] = -v[1]);
        self.forward(values);
        values.iter_mut().for_each(|v| *v = [v[0] * scale, -v[1] * scale]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparse::gallery::Random;

    #[test]
    fn transforms_are_the_sums_they_stand_for() {
        let mut random = Random::new(5);
        for n in [1, 2, 8, 64] {
            let values: Vec<Complex> = (0..n).map(|_| [random.uniform() - 0.5, random.uniform() - 0.5]).collect();
            let fourier = Fourier::new(n);
            let mut found = values.clone();
            fourier.forward(&mut found);
            for (k, found) in found.iter().enumerate() {
                let turn = |j: usize| -2.0 * std::f64::consts::PI * (j * k % n) as f64 / n as f64;
                let terms = values.iter().enumerate().map(|(j, v)| times(*v, [turn(j).cos(), turn(j).sin()]));
                let wanted = terms.fold([0.0; 2], |sum, term| [sum[0] + term[0], sum[1] + term[1]]);
                assert!((found[0] - wanted[0]).abs() + (found[1] - wanted[1]).abs() < 1e-12, "{n} {k}");
            }
            fourier.inverse(&mut found);
            for (found, wanted) in found.iter().zip(&values) {
                assert!((found[0] - wanted[0]).abs() + (found[1] - wanted[1]).abs() < 1e-14, "{n}");
            }
        }
    }
}
