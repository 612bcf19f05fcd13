//! Distance of a residual from white noise, by its power at each frequency.

use crate::fourier::AnyFourier;
use crate::threads;

/// Part of the powers of two series that is rounding.
const ROUNDING: f64 = 1e-24;

/// Transforms of series of residuals: see [`StopRule::Ncp`](crate::solver::StopRule::Ncp).
pub(crate) struct Periodogram {
    length: usize,
    apart: usize,
    fourier: AnyFourier,
}

impl Periodogram {
    /// Series of `length` elements, `apart` elements from one to the next.
    pub(crate) fn new(length: usize, apart: usize) -> Self {
        Self { length, apart, fourier: AnyFourier::new(length) }
    }

    /// Distances from white noise of the series of column `c` of `count` interleaved ones: their mean, and that of the mean of their powers. Series of
    /// zeros are left out.
    pub(crate) fn distances_from_white(&self, residuals: &[f64], (count, c): (usize, usize)) -> [f64; 2] {
        let &Self { length, apart, .. } = self;
        let series = residuals.len() / (count * length).max(1);
        let first = |series: usize| (series / apart) * length * apart + series % apart;
        // Two series are the real and the imaginary part of one transform.
        let pair = |_, pair: usize| {
            let [one, other] = [2 * pair, (2 * pair + 1).min(series - 1)].map(first);
            let at = |first: usize, k: usize| residuals[(first + k * apart) * count + c];
            let spectrum = self.fourier.forward((0..length).map(|k| [at(one, k), at(other, k)]));
            [self.powers(&spectrum, 1.0), self.powers(&spectrum, -1.0).filter(|_| one != other)]
        };
        let powers = threads::map(0..series.div_ceil(2), 1, pair);
        let (mut sum, mut counted, mut all) = (0.0, 0usize, vec![0.0; length / 2]);
        for powers in powers.into_iter().flatten().flatten() {
            sum += distance(&powers);
            counted += 1;
            all.iter_mut().zip(&powers).for_each(|(all, power)| *all += power);
        }
        if counted == 0 { [0.0; 2] } else { [sum / counted as f64, distance(&all)] }
    }

    /// Powers of the series in the real part (`sign` is 1) or the imaginary part (-1), by the transform of both.
    fn powers(&self, spectrum: &[[f64; 2]], sign: f64) -> Option<Vec<f64>> {
        let n = self.length;
        // The transform of a real series at -j is the conjugate of that at j.
        let power = |j: usize| {
            let ([re, im], [mirrored_re, mirrored_im]) = (spectrum[j], spectrum[n - j]);
            let (re, im) = (re + sign * mirrored_re, im - sign * mirrored_im);
            re * re + im * im
        };
        let powers: Vec<f64> = (1..=n / 2).map(power).collect();
        let total = powers.iter().fold(0.0, |sum, power| sum + power);
        // Beside the other series, one of zeros or of equal values has rounding errors alone.
        let both = spectrum[..n].iter().fold(0.0, |sum, [re, im]| sum + re * re + im * im);
        (total > ROUNDING * both).then_some(powers)
    }
}

/// Distance of powers from equal ones.
fn distance(powers: &[f64]) -> f64 {
    let total = powers.iter().fold(0.0, |sum, power| sum + power);
    let (mut sum, mut square) = (0.0, 0.0);
    for (j, power) in powers.iter().enumerate() {
        sum += power;
        let apart = sum / total - (j + 1) as f64 / powers.len() as f64;
        square += apart * apart;
    }
    square.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparse::gallery::Random;

    /// The powers of one series, by sums of sines and cosines.
    fn plain(series: &[f64]) -> Vec<f64> {
        let (n, most) = (series.len(), series.len() / 2);
        let power = |j: usize| {
            let turn = |k: usize| 2.0 * std::f64::consts::PI * (j * k % n) as f64 / n as f64;
            let sum = |part: &dyn Fn(f64) -> f64| -> f64 {
                series.iter().enumerate().map(|(k, v)| v * part(turn(k))).sum()
            };
            sum(&f64::cos).powi(2) + sum(&f64::sin).powi(2)
        };
        (1..=most).map(power).collect()
    }

    /// The distance of powers from white noise.
    fn apart(powers: &[f64]) -> f64 {
        let (total, most): (f64, usize) = (powers.iter().sum(), powers.len());
        let part = |j: usize| powers[..j].iter().sum::<f64>() / total - j as f64 / most as f64;
        (1..=most).map(|j| part(j).powi(2)).sum::<f64>().sqrt()
    }

    #[test]
    fn distances_are_those_of_sums_of_sines() {
        let mut random = Random::new(9);
        for (length, apart, blocks, count) in [(8, 1, 3, 1), (7, 5, 1, 1), (9, 2, 3, 2), (4, 1, 1, 3)] {
            let rows = length * apart * blocks;
            let residuals: Vec<f64> = (0..rows * count).map(|_| random.uniform() - 0.3).collect();
            let periodogram = Periodogram::new(length, apart);
            for c in 0..count {
                let series = |block: usize, offset: usize| -> Vec<f64> {
                    let at = |k: usize| (block * length * apart + offset + k * apart) * count + c;
                    (0..length).map(|k| residuals[at(k)]).collect()
                };
                let all: Vec<Vec<f64>> =
                    (0..blocks * apart).map(|s| plain(&series(s / apart, s % apart))).collect();
                let mean = all.iter().map(|powers| self::apart(powers)).sum::<f64>() / all.len() as f64;
                let powers: Vec<f64> = (0..length / 2).map(|j| all.iter().map(|powers| powers[j]).sum()).collect();
                let found = periodogram.distances_from_white(&residuals, (count, c));
                for (found, wanted) in found.into_iter().zip([mean, self::apart(&powers)]) {
                    assert!((found - wanted).abs() < 1e-12 * wanted, "{length} {apart}: {found} {wanted}");
                }
            }
        }
    }

    /// White noise is nearer than slow and than fast waves, and series of zeros do not count.
    #[test]
    fn noise_is_white() {
        let mut random = Random::new(4);
        let n = 256;
        let mut noise: Vec<f64> = (0..4 * n).map(|_| random.uniform() - 0.5).collect();
        let periodogram = Periodogram::new(n, 1);
        let white = periodogram.distances_from_white(&noise, (1, 0))[0];
        // One beside noise, and two by themselves.
        noise.extend(vec![0.0; 3 * n]);
        noise.extend_from_within(..n);
        let white = (4.0 * white + periodogram.distances_from_white(&noise[..n], (1, 0))[0]) / 5.0;
        assert!((periodogram.distances_from_white(&noise, (1, 0))[0] - white).abs() < 1e-12);
        assert_eq!(periodogram.distances_from_white(&vec![0.0; n], (1, 0)), [0.0; 2]);
        for turns in [1.0, 120.0] {
            let wave: Vec<f64> =
                (0..n).map(|k| (std::f64::consts::TAU * turns * k as f64 / n as f64).sin()).collect();
            assert!(periodogram.distances_from_white(&wave, (1, 0))[0] > 5.0 * white, "{turns} {white}");
        }
    }
}
