//! Rules for the weight of damping in hybrid LSQR and LSMR. Each rule is a function of the weight, which is
//! computed from the projected problem. The weight that is chosen is the minimum of the function, or its zero.
//!
//! The rule of the least error is this library's own. It estimates the error of `x` for each weight, as variance
//! plus squared bias. The variance of the noise comes from generalised cross validation of the whole problem (G.
//! Wahba). The trace that cross validation needs is estimated with one random vector (A. Girard, Numer. Math. 56,
//! 1989), by Gauss quadrature of the Golub-Kahan process of that vector (G. H. Golub and G. Meurant, "Matrices,
//! moments and quadrature with applications", 2010). The bias is estimated with the solution of
//! Tikhonov regularization iterated three times (J. T. King and D. Chillingworth, Numer. Funct. Anal. Optim. 1, 1979) in place of the
//! true one. The expected part of the noise in its square is subtracted.

use super::chosen::{WeightPoint, WeightStop};
use super::projected::{Answer, Bidiagonal, Least, Spectrum};
use super::rule::WeightRule;

/// Allowance of the discrepancy principle for the norm of the noise.
const SAFETY: f64 = 1.01;

/// Weights that are looked at: `s_max` times powers of `2^(-1/4)`.
const STEPS: usize = 120;
/// `2^(-j/4)` for `j` from 0 to 3.
const ROOTS: [f64; 4] = [1.0, 0.840_896_415_253_714_5, 0.707_106_781_186_547_5, 0.594_603_557_501_360_5];
/// The golden section, and how often a bracket is cut by it, or halved.
const GOLDEN: f64 = 0.618_033_988_749_894_8;
const CUTS: usize = 40;
const HALVES: usize = 60;

/// Least change of the measure of progress, as a part of its second value, below which it is flat; and iterations in which its least
/// value must be beaten (Chung, Nagy, O'Leary; IR Tools).
const FLAT: f64 = 1e-6;
const WINDOW: usize = 3;
/// Most that the weight may change in so many iterations, and most that the answer may be away from that of the whole space, to be settled.
const STEADY: f64 = 0.02;
const NEAR: f64 = 0.02;

/// Numbers of a problem that rules need beside its spectrum, in the units of the spectrum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Data<'a> {
    pub(crate) rows: usize,
    pub(crate) rhs: f64,
    /// Singular values of the whole operator, by a random right-hand side: `sum g(s_i²)` is about the sum of `c_i² g(s_i²)`.
    pub(crate) probe: Option<&'a Spectrum>,
    /// The small problem, and what its answers make least.
    pub(crate) problem: (&'a Bidiagonal, Least),
}

impl Data<'_> {
    /// `|r|²` and `|y|²` of the answer with a weight.
    fn squares(&self, spectrum: &Spectrum, damp: f64) -> [f64; 2] {
        match self.problem {
            (_, Least::Objective) => [spectrum.residual2(damp), spectrum.solution2(damp)],
            (problem, Least::Gradient) => {
                let Answer { y, residual2, .. } = problem.solve(Least::Gradient, spectrum, damp);
                [residual2, y.iter().fold(0.0, |sum, y| sum + y * y)]
            }
        }
    }

    /// `|r|` of the answer with a weight.
    fn residual(&self, spectrum: &Spectrum, damp: f64) -> f64 {
        self.squares(spectrum, damp)[0].sqrt()
    }

    /// The sum of `of` a singular value and `damp² / (s² + damp²)` over the whole operator.
    fn sum(&self, damp: f64, of: impl Fn(f64, f64) -> f64) -> f64 {
        self.probe.map_or(0.0, |probe| probe.sum(damp, |[value, seen], left| seen * of(value, left)))
    }

    /// `|r|² / (m - sum f_i)` and `m - sum f_i`, over the whole operator.
    fn variance(&self, spectrum: &Spectrum, damp: f64) -> [f64; 2] {
        let free = self.rows as f64 - self.sum(damp, |_, left| 1.0 - left);
        [spectrum.residual2(damp) / free, free]
    }
}

/// Decision of a rule in one iteration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Choice {
    pub(crate) damp: f64,
    /// True if no weight is better within those looked at.
    pub(crate) at_end: bool,
    /// Measure by which iterations are compared.
    pub(crate) progress: f64,
    /// Number from the data that the rule needs beside the spectrum: `w`, or `sigma²`.
    pub(crate) given: f64,
    /// `w` of weighted cross validation, as this space alone has it.
    own: f64,
}

impl WeightRule {
    /// The function of `damp` that is to be least.
    fn value(&self, spectrum: &Spectrum, data: Data<'_>, given: f64, damp: f64) -> f64 {
        let residual2 = spectrum.residual2(damp);
        let over = |divisor: f64| residual2 / (divisor * divisor);
        match *self {
            Self::LeastError => squared_error(spectrum, data, given, damp),
            Self::WeightedGcv | Self::Gcv => {
                let count = spectrum.parts.len() as f64;
                over(1.0 + count - given * spectrum.trace(damp))
            }
            Self::ModifiedGcv => over(data.rows as f64 - spectrum.trace(damp)),
            Self::LCurve => -curvature(spectrum, damp),
            Self::Discrepancy { noise } => (data.residual(spectrum, damp) - SAFETY * noise * data.rhs).abs(),
            Self::Upre { noise } => {
                let deviation = noise * data.rhs;
                residual2 + 2.0 * spectrum.trace(damp) * (deviation * deviation / data.rows as f64)
            }
        }
    }

    /// The weight for the space of an iteration, after those whose `choices` are given.
    pub(crate) fn choose(&self, spectrum: &Spectrum, data: Data<'_>, choices: &[Choice]) -> Choice {
        let mut own = 1.0;
        let given = match *self {
            Self::WeightedGcv => {
                own = own_weight(spectrum);
                choices.iter().fold(own, |sum, choice| sum + choice.own) / (choices.len() + 1) as f64
            }
            Self::LeastError => {
                let (damp, _) = least(spectrum.largest(), |damp| cross_validation(spectrum, data, damp));
                data.variance(spectrum, damp)[0]
            }
            _ => 1.0,
        };
        let value = |damp: f64| self.value(spectrum, data, given, damp);
        let (damp, at_end) = match *self {
            Self::Discrepancy { noise } => discrepancy(spectrum, data, SAFETY * noise * data.rhs),
            // One singular value tells nothing about the others.
            _ if spectrum.parts.len() < 2 => (0.0, false),
            Self::LeastError => {
                least_above(spectrum.largest(), |damp| cross_validation(spectrum, data, damp), value)
            }
            _ => least(spectrum.largest(), value),
        };
        let divisor = data.rows as f64 - spectrum.trace(damp);
        Choice { damp, at_end, progress: spectrum.residual2(damp) / (divisor * divisor), given, own }
    }

    /// The end, after the iterations whose `choices` are given, the last of which is the newest: the number of the iteration whose answer
    /// is taken, and why. `gradient` is that of the newest answer.
    pub(crate) fn end(
        &self,
        choices: &[Choice],
        spectrum: &Spectrum,
        data: Data<'_>,
        gradient: f64,
    ) -> Option<(usize, WeightStop)> {
        let [.., before, last] = choices else { return None };
        match *self {
            Self::Discrepancy { noise } => {
                let reached = data.residual(spectrum, 0.0) <= SAFETY * noise * data.rhs;
                return reached.then_some((choices.len(), WeightStop::Discrepancy));
            }
            Self::LeastError => {
                let newest = choices.iter().rev().take(WINDOW);
                let steady = newest.filter(|c| (c.damp - last.damp).abs() <= STEADY * last.damp).count() == WINDOW;
                // The problem is convex: no answer of the whole space is farther away than that.
                let distance = gradient / (last.damp * last.damp);
                let near = distance <= NEAR * spectrum.solution2(last.damp).sqrt();
                return (steady && near).then_some((choices.len(), WeightStop::Settled));
            }
            _ => {}
        }
        if choices.len() > 2 && (last.progress - before.progress).abs() < FLAT * choices[1].progress {
            return Some((choices.len(), WeightStop::Flat));
        }
        // The first iteration has no weight to speak of.
        let (best, _) = choices.iter().enumerate().skip(1).min_by(|a, b| a.1.progress.total_cmp(&b.1.progress))?;
        (choices.len() - best > WINDOW).then_some((best + 1, WeightStop::Least))
    }

    /// All weights that are looked at in a space, with the numbers that a plot shows.
    pub(crate) fn curve(&self, spectrum: &Spectrum, data: Data<'_>, given: f64) -> Vec<WeightPoint> {
        let point = |damp: f64| {
            let [residual, solution] = data.squares(spectrum, damp).map(f64::sqrt);
            WeightPoint { damp, value: self.value(spectrum, data, given, damp), residual, solution }
        };
        grid(spectrum.largest()).map(point).collect()
    }

    /// The level of the noise that the rule has found.
    pub(crate) fn noise_of(&self, choice: &Choice, data: Data<'_>) -> Option<f64> {
        (*self == Self::LeastError).then(|| (data.rows as f64 * choice.given).sqrt() / data.rhs)
    }
}

/// Cross validation of the whole problem.
fn cross_validation(spectrum: &Spectrum, data: Data<'_>, damp: f64) -> f64 {
    let [variance, free] = data.variance(spectrum, damp);
    variance / free
}

/// The estimate of the squared error of `x`: see [`WeightRule::LeastError`].
fn squared_error(spectrum: &Spectrum, data: Data<'_>, variance: f64, damp: f64) -> f64 {
    let repeated = |left: f64| left * (1.0 + left + left * left);
    let bias = spectrum.sum(damp, |[value, seen], left| {
        let x = if value > 0.0 { (1.0 - left) / value * repeated(left) } else { 0.0 };
        x * x * seen
    });
    let noise = data.sum(damp, |value, left| {
        let x = if value > 0.0 { (1.0 - left) / value } else { 0.0 };
        x * x * (1.0 - repeated(left) * repeated(left))
    });
    bias + variance * noise
}

/// The `w` with which weighted cross validation would choose the least singular value, 1 at most. With `k` in place of `k + 1`, as
/// IR Tools has it: with `k + 1` it stays 1 for many iterations of mild problems, which are then smoothed too much.
fn own_weight(spectrum: &Spectrum) -> f64 {
    let damp = spectrum.smallest();
    let square = damp * damp;
    let over = |value: f64| 1.0 / (value * value + square);
    let count = spectrum.parts.len() as f64;
    let trace = spectrum.trace(damp);
    let spread = spectrum.sum(damp, |[value, _], _| value * value * over(value) * over(value));
    let bend = square
        * spectrum.sum(damp, |[value, seen], _| value * value * seen * over(value) * over(value) * over(value));
    let own = count * bend / (trace * bend + spread * spectrum.residual2(damp));
    // A spectrum with a 0 has no least value to choose.
    if own < 1.0 { own } else { 1.0 }
}

/// Curvature of the L-curve (Hansen and O'Leary).
fn curvature(spectrum: &Spectrum, damp: f64) -> f64 {
    let square = damp * damp;
    let (e, p) = (spectrum.solution2(damp), spectrum.residual2(damp));
    let change = spectrum.sum(damp, |[value, seen], left| {
        if value > 0.0 { left * (1.0 - left) * (1.0 - left) * seen / (value * value) } else { 0.0 }
    });
    let slope = -4.0 / damp * change;
    let length2 = square * e * e + p * p;
    let bend = square * slope * p + 2.0 * damp * e * p + square * square * e * slope;
    let found = 2.0 * (e * p / slope) * bend / (length2 * length2.sqrt());
    if found.is_finite() { found } else { f64::NEG_INFINITY }
}

/// Weights that are looked at, in descending order.
fn grid(largest: f64) -> impl Iterator<Item = f64> {
    let scales = std::iter::successors(Some(largest), |scale| Some(0.5 * scale));
    scales.flat_map(|scale| ROOTS.map(|root| root * scale)).take(STEPS + 1)
}

/// Place of the least of `values`.
fn least_of(values: &[f64]) -> usize {
    (0..values.len()).min_by(|i, j| values[*i].total_cmp(&values[*j])).unwrap_or(0)
}

/// The weight between 0 and `largest` for which `value` is least: the best of the grid, then golden sections between its neighbours.
/// And whether it is an end of the grid.
fn least(largest: f64, value: impl Fn(f64) -> f64) -> (f64, bool) {
    let weights: Vec<f64> = grid(largest).collect();
    let values: Vec<f64> = weights.iter().map(|damp| value(*damp)).collect();
    refined(&weights, least_of(&values), value)
}

/// The first minimum of `value` above the weight for which `floor` is least.
fn least_above(largest: f64, floor: impl Fn(f64) -> f64, value: impl Fn(f64) -> f64) -> (f64, bool) {
    let weights: Vec<f64> = grid(largest).collect();
    let floors: Vec<f64> = weights.iter().map(|damp| floor(*damp)).collect();
    let mut best = least_of(&floors);
    let mut held = value(weights[best]);
    while best > 0 {
        let next = value(weights[best - 1]);
        if next >= held {
            break;
        }
        (best, held) = (best - 1, next);
    }
    refined(&weights, best, value)
}

/// Golden sections between the neighbours of the weight in place `best`; an end has but one.
fn refined(weights: &[f64], best: usize, value: impl Fn(f64) -> f64) -> (f64, bool) {
    if best == 0 || best + 1 == weights.len() {
        return (weights[best], true);
    }
    let (mut high, mut low) = (weights[best - 1], weights[best + 1]);
    let at = |low: f64, high: f64, part: f64| low + part * (high - low);
    let (mut a, mut b) = (at(low, high, 1.0 - GOLDEN), at(low, high, GOLDEN));
    let (mut of_a, mut of_b) = (value(a), value(b));
    for _ in 0..CUTS {
        if of_a <= of_b {
            (high, b, of_b) = (b, a, of_a);
            a = at(low, high, 1.0 - GOLDEN);
            of_a = value(a);
        } else {
            (low, a, of_a) = (a, b, of_b);
            b = at(low, high, GOLDEN);
            of_b = value(b);
        }
    }
    (0.5 * (low + high), false)
}

/// The weight with `|r| = target`, or 0 if the space does not reach so far; and whether no weight does it.
fn discrepancy(spectrum: &Spectrum, data: Data<'_>, target: f64) -> (f64, bool) {
    let is_above = |damp: f64| data.residual(spectrum, damp) > target;
    if is_above(0.0) {
        return (0.0, true);
    }
    let mut high = spectrum.largest();
    for _ in 0..HALVES {
        if is_above(high) {
            break;
        }
        high *= 2.0;
    }
    let mut low = 0.0;
    for _ in 0..HALVES {
        let middle = 0.5 * (low + high);
        if is_above(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    (low, !is_above(high))
}
