//! The fast Fourier transform in a fixed order of operations: readings that were filtered, and spectra of residuals, have the
//! same bits on every machine, which crates that choose instructions at run time do not promise.
//!
//! Sources: J. W. Cooley and J. W. Tukey, "An algorithm for the machine calculation of complex Fourier series", Math. Comp. 19, 1965;
//! for any length: L. I. Bluestein, "A linear filtering approach to the computation of discrete Fourier transform", IEEE Trans. Audio
//! Electroacoust. 18(4), 1970.

/// Real and imaginary part.
pub(crate) type Complex = [f64; 2];

/// The product of two numbers.
pub(crate) fn times(a: Complex, b: Complex) -> Complex {
    [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]
}

/// Transforms of one length.
pub(crate) struct Fourier {
    /// `exp(-2 pi i k / n)` for `k` below `n / 2`.
    roots: Vec<Complex>,
}

impl Fourier {
    /// Transforms of `n` numbers, a power of two.
    pub(crate) fn new(n: usize) -> Self {
        let turn = |k: usize| -2.0 * std::f64::consts::PI * k as f64 / n as f64;
        Self { roots: (0..n / 2).map(|k| [libm::cos(turn(k)), libm::sin(turn(k))]).collect() }
    }

    /// Length of the transforms.
    pub(crate) fn len(&self) -> usize {
        (2 * self.roots.len()).max(1)
    }

    /// `values[k] = sum over j of values[j] exp(-2 pi i j k / n)`.
    pub(crate) fn forward(&self, values: &mut [Complex]) {
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
    pub(crate) fn inverse(&self, values: &mut [Complex]) {
        let scale = 1.0 / values.len() as f64;
        values.iter_mut().for_each(|v| v[1] = -v[1]);
        self.forward(values);
        values.iter_mut().for_each(|v| *v = [v[0] * scale, -v[1] * scale]);
    }
}

/// Transforms of one length, whatever it is: by three of a power of two, two of them for each transform.
pub(crate) struct AnyFourier {
    /// `exp(-pi i j² / n)`.
    chirp: Vec<Complex>,
    fourier: Fourier,
    /// Transform of the conjugate of `chirp`, which runs from `1 - n` to `n - 1`.
    response: Vec<Complex>,
}

impl AnyFourier {
    /// Transforms of `n` numbers.
    pub(crate) fn new(n: usize) -> Self {
        let turn = |j: usize| -std::f64::consts::PI * (j * j % (2 * n)) as f64 / n as f64;
        let chirp: Vec<Complex> = (0..n).map(|j| [libm::cos(turn(j)), libm::sin(turn(j))]).collect();
        let fourier = Fourier::new((2 * n).next_power_of_two());
        let mut response = vec![[0.0; 2]; fourier.len()];
        for (j, [re, im]) in chirp.iter().enumerate() {
            let conjugate = [*re, -im];
            response[j] = conjugate;
            response[(fourier.len() - j) % fourier.len()] = conjugate;
        }
        fourier.forward(&mut response);
        Self { chirp, fourier, response }
    }

    /// `sum over j of values[j] exp(-2 pi i j k / n)` for each `k`, in the first places of what is returned; there are as many `values` as
    /// the length that it was made for.
    pub(crate) fn forward(&self, values: impl Iterator<Item = Complex>) -> Vec<Complex> {
        let mut turned: Vec<Complex> = values.zip(&self.chirp).map(|(v, turn)| times(v, *turn)).collect();
        turned.resize(self.fourier.len(), [0.0; 2]);
        self.fourier.forward(&mut turned);
        turned.iter_mut().zip(&self.response).for_each(|(v, factor)| *v = times(*v, *factor));
        self.fourier.inverse(&mut turned);
        turned.iter_mut().zip(&self.chirp).for_each(|(v, turn)| *v = times(*v, *turn));
        turned
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparse::gallery::Random;

    /// The sums that a transform stands for.
    fn sums(values: &[Complex]) -> Vec<Complex> {
        let n = values.len();
        let turn = |j: usize, k: usize| -2.0 * std::f64::consts::PI * (j * k % n) as f64 / n as f64;
        let sum = |k: usize| {
            let terms = values.iter().enumerate().map(|(j, v)| times(*v, [turn(j, k).cos(), turn(j, k).sin()]));
            terms.fold([0.0; 2], |sum, term| [sum[0] + term[0], sum[1] + term[1]])
        };
        (0..n).map(sum).collect()
    }

    #[test]
    fn transforms_have_any_length() {
        let mut random = Random::new(6);
        for n in [1, 2, 3, 5, 16, 91, 181] {
            let values: Vec<Complex> = (0..n).map(|_| [random.uniform() - 0.5, random.uniform() - 0.5]).collect();
            let found = AnyFourier::new(n).forward(values.iter().copied());
            for (k, (found, wanted)) in found.iter().zip(sums(&values)).enumerate() {
                assert!((found[0] - wanted[0]).abs() + (found[1] - wanted[1]).abs() < 1e-11, "{n} {k}");
            }
        }
    }

    #[test]
    fn transforms_are_the_sums_they_stand_for() {
        let mut random = Random::new(5);
        for n in [1, 2, 8, 64] {
            let values: Vec<Complex> = (0..n).map(|_| [random.uniform() - 0.5, random.uniform() - 0.5]).collect();
            let fourier = Fourier::new(n);
            let mut found = values.clone();
            fourier.forward(&mut found);
            for (k, (found, wanted)) in found.iter().zip(sums(&values)).enumerate() {
                assert!((found[0] - wanted[0]).abs() + (found[1] - wanted[1]).abs() < 1e-12, "{n} {k}");
            }
            fourier.inverse(&mut found);
            for (found, wanted) in found.iter().zip(&values) {
                assert!((found[0] - wanted[0]).abs() + (found[1] - wanted[1]).abs() < 1e-14, "{n}");
            }
        }
    }
}
