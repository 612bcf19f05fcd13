//! Rules that end a method before its iterates take up noise. The first iterates of an ill-posed problem come
//! nearer to the solution; later ones fit the noise of the right-hand side instead.

use std::fmt::{Display, Formatter, Result as FmtResult};

use super::periodogram::Periodogram;
use crate::error::{Error, Result};
use crate::solver::method::Method;
use crate::solver::weight::check_noise;

/// Rule that ends a solve before its iterates take up noise ([`Stopping::rule`](crate::Stopping::rule)). The solve
/// returns the iterate that the rule selects, which may be earlier than the last.
/// [`Method::takes_rule`](crate::Method::takes_rule) tells which methods accept a rule; with one they take no
/// preconditioner. If a solve starts over from its answer, the rule begins anew. If the level of noise is known, a
/// limit of the residual does without a rule: `rtol = 1.01 noise`, with the noise as a part of `|b|`, is the
/// discrepancy principle.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum StopRule {
    /// NCP, the normalised cumulative periodogram: an iterate whose residual is as like white noise as any, to a hundredth. For an unknown level of noise, which
    /// must be independent from reading to reading within a series.
    ///
    /// The residual is taken apart into series of `length` rows, each `apart` rows from the next. With `q = length / 2` and the
    /// powers `p_j` of frequency `j` of a series, the value of an iterate is the mean over all series of
    ///
    /// ```text
    ///   sqrt(sum over j from 1 to q of (c_j - j / q)²)       c_j = (p_1 + ... + p_j) / (p_1 + ... + p_q)
    /// ```
    ///
    /// Series of equal values are left out. The rule is asked after each iteration up to 32, then in steps of a 16th to a 32nd of the iterations done.
    ///
    /// An iterate is kept if its value is a hundredth below that of the one kept before. The solve ends if none was kept for half as many iterations
    /// as led to the last one, and for more than 8. Bounds can make minima in passing, which the mean powers of all series do not have: their value must not have
    /// fallen by a hundredth for as long either. Where bounds are wrong it may fall for ever; so the solve also ends after four times the iterations that led to
    /// the last fall of the value itself, and more than 32.
    ///
    /// A second vector of the unknowns is held, and the residual goes to the host when the rule is asked (of SART it is computed for that).
    ///
    /// For readings of a scanner that come angle by angle, series along the angles (`length` angles, `apart` detector pixels:
    /// [`Scanner::ncp`](crate::imaging::Scanner::ncp)) are the better choice: noise of neighbouring pixels is often not independent, and series along the
    /// detector have a minimum that comes far too early for slow methods. On simulated scans of five pictures with 0.5, 2 and 5 % of noise, series along the
    /// angles gave SIRT, SIRT within bounds and CGLS 0.7 to 1.7 times the error of the discrepancy principle, which has to know the noise, 1.02 times in the
    /// geometric mean.
    ///
    /// Source: P. C. Hansen, M. E. Kilmer, R. H. Kjeldsen, "Exploiting residual information in the parameter choice for discrete ill-posed
    /// problems", BIT 46, 2006; P. C. Hansen, J. S. Jørgensen, "AIR Tools II", Numer. Algorithms 79, 2018, which stops at the first value that is no less.
    Ncp {
        /// Rows of a series, at least 4.
        length: usize,
        /// Rows from one element of a series to the next; `length * apart` divides the rows of the system.
        apart: usize,
    },
    /// The monotone error rule: the last iterate of CGLS up to which each step is certain to have made the error smaller, if the noise has that
    /// norm. With `A'w_k = p_k`, the direction of a step, the first `k` for which
    ///
    /// ```text
    ///   w_k.(r_k + r_k+1) / (2 |w_k|) <= noise |b|
    /// ```
    ///
    /// All of it follows from the norms of residuals and gradients in the history. Near the discrepancy principle, and never too late. The host looks after each
    /// iteration, and a second vector of the unknowns is held. Values are in the units of `b`.
    ///
    /// Source: U. Hämarik, U. Tautenhahn, "On the monotone error rule for parameter choice in iterative and continuous regularization
    /// methods", BIT 41(5), 2001.
    MonotoneError {
        /// The norm of the noise as a part of `|b|`.
        noise: f64,
    },
}

/// Steps of NCP take so many parts of the iterations done, or up to twice as many.
const PARTS: usize = 16;
/// Iterations in which a value must be beaten, if half as many as led to it are not more.
const PATIENCE: usize = 8;
/// Part of a value by which another must be below it: for an iterate to be kept, and for a fall to be one.
const GAIN: f64 = 0.01;
const FALL: f64 = 0.001;
/// The solve ends in any case after so many times the iterations that led to the last fall, and no sooner than after so many.
const OLDEST: usize = 4;
const EARLIEST: usize = 32;

/// A value that was far enough below the one before it.
#[derive(Clone, Copy, Debug)]
struct Low {
    iteration: usize,
    value: f64,
}

impl Low {
    const NONE: Self = Self { iteration: 0, value: f64::INFINITY };

    /// Takes a value that is below by this part. Returns true if it is.
    fn take(&mut self, iteration: usize, value: f64, part: f64) -> bool {
        let is_below = value < (1.0 - part) * self.value;
        if is_below {
            *self = Self { iteration, value };
        }
        is_below
    }

    /// Tells if no other came for long enough.
    fn is_over(&self, iteration: usize) -> bool {
        iteration > self.iteration + PATIENCE.max(self.iteration / 2)
    }
}

/// Lows of NCP in a solve: of the iterates that are kept, of all falls, and of the mean powers.
#[derive(Clone, Copy, Debug)]
struct Lows {
    kept: Low,
    fall: Low,
    of_mean: Low,
}

impl Lows {
    const NONE: Self = Self { kept: Low::NONE, fall: Low::NONE, of_mean: Low::NONE };

    /// Takes the values of an iterate. Tells if it is to be kept.
    fn take(&mut self, iteration: usize, [value, of_mean]: [f64; 2]) -> bool {
        self.fall.take(iteration, value, FALL);
        self.of_mean.take(iteration, of_mean, GAIN);
        self.kept.take(iteration, value, GAIN)
    }

    /// Tells if the iterate that is kept is the answer.
    fn are_over(&self, iteration: usize) -> bool {
        let late = iteration > EARLIEST.max(OLDEST * self.fall.iteration);
        let kept = self.kept.is_over(iteration) && self.of_mean.is_over(iteration);
        kept || (late && self.fall.is_over(iteration))
    }
}

impl Display for StopRule {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        match self {
            Self::Ncp { .. } => f.write_str("ncp"),
            Self::MonotoneError { noise } => write!(f, "monotone-error={noise}"),
        }
    }
}

impl StopRule {
    /// Fails on what cannot be for a system of so many rows.
    pub(crate) fn validate(&self, rows: usize) -> Result<()> {
        let refuse = |reason| Err(Error::Option { name: "rule", reason });
        match *self {
            Self::Ncp { length, apart } => {
                let block = length.checked_mul(apart).filter(|block| length >= 4 && *block > 0);
                if block.is_none_or(|block| !rows.is_multiple_of(block)) {
                    let series = format!("series of {length} rows, {apart} from one to the next");
                    return refuse(format!("ncp: {rows} rows are not made of {series}; 4 at least are a series"));
                }
            }
            Self::MonotoneError { noise } => check_noise("rule", noise)?,
        }
        Ok(())
    }
}

/// Value that a rule looked at.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct RulePoint {
    /// Iteration.
    pub iteration: usize,
    /// Value of that iterate.
    pub value: f64,
}

/// Values of a rule over the iterations of a solve.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RuleCurve {
    /// The rule.
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::text::as_text"))]
    pub rule: StopRule,
    /// Iteration that the rule holds for the best so far. The answer is another one if the solve ended by something else.
    pub best: usize,
    /// All values, by iteration.
    pub points: Vec<RulePoint>,
}

impl Display for RuleCurve {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        write!(f, "by {} the best is iteration {}", self.rule, self.best)?;
        self.points.last().map_or(Ok(()), |last| write!(f, " of {}", last.iteration))
    }
}

/// Course of a rule over the iterations of one column since a start.
#[derive(Clone, Debug, Default)]
pub(crate) struct Course {
    /// Iterations before the start.
    base: usize,
    /// Values so far, in the units of the solve; with those of earlier starts.
    points: Vec<RulePoint>,
    /// The iteration since the start that is the best so far.
    pub(crate) best: usize,
    /// The answer is the best one.
    pub(crate) ended: bool,
    steps: Option<Steps>,
    lows: Option<Lows>,
}

impl Course {
    /// The course of a start after `base` iterations, which keeps the values of those before it.
    pub(crate) fn begun_anew(self, base: usize) -> Self {
        Self { base, points: self.points, ..Self::default() }
    }

    /// The values for a report; `norm` takes a norm of residuals to the units that the system was given in.
    pub(crate) fn into_curve(self, rule: StopRule, norm: impl Fn(f64) -> f64) -> RuleCurve {
        let value = |value: f64| match rule {
            StopRule::Ncp { .. } => value,
            StopRule::MonotoneError { .. } => value.signum() * norm(value),
        };
        let points = self.points.into_iter().map(|point| RulePoint { value: value(point.value), ..point });
        RuleCurve { rule, best: self.base + self.best, points: points.collect() }
    }
}

/// Products of the vectors of CGLS in one iteration: `|r|²`, `gamma = |s|²`, `w.r / |r|²` and `|w|²` with `A'w = p`.
///
/// From `p_k = gamma_k (s_0 / gamma_0 + ... + s_k / gamma_k)` follows that `w_k` is the same sum of the `r_j`; and `r_k` is orthogonal to the steps
/// before it, so that `r_k.r_j = |r_k|²` for `j <= k`. Nothing cancels.
#[derive(Clone, Copy, Debug)]
struct Steps {
    rr: f64,
    gamma: f64,
    of_r: f64,
    ww: f64,
}

impl Steps {
    fn first([rr, gamma]: [f64; 2]) -> Self {
        Self { rr, gamma, of_r: 1.0, ww: rr }
    }

    /// Products of the next iteration, with its norms, and the most noise that leaves no doubt of the step between.
    fn next(self, [rr, gamma]: [f64; 2]) -> (Self, f64) {
        let bound = self.of_r * (self.rr + rr) / (2.0 * self.ww.sqrt());
        let beta = gamma / self.gamma;
        // w' = r' + beta w
        let of_w = beta * self.of_r;
        let ww = rr * (1.0 + 2.0 * of_w) + beta * beta * self.ww;
        (Self { rr, gamma, of_r: 1.0 + of_w, ww }, bound)
    }
}

/// Numbers of a column that a rule may look at.
pub(crate) struct Seen<'a> {
    pub(crate) iteration: usize,
    /// Squared norms of residual and gradient.
    pub(crate) norms: [f64; 2],
    /// `|b|`.
    pub(crate) rhs: f64,
    /// The residuals of all columns, if the rule looks at them, the number of the columns, and that of this one.
    pub(crate) residuals: &'a [f64],
    pub(crate) column: (usize, usize),
}

/// A rule, with what it takes to follow it.
pub(crate) enum Judge {
    Ncp(Periodogram),
    MonotoneError { noise: f64 },
}

impl Judge {
    pub(crate) fn new(rule: StopRule) -> Self {
        match rule {
            StopRule::Ncp { length, apart } => Self::Ncp(Periodogram::new(length, apart)),
            StopRule::MonotoneError { noise } => Self::MonotoneError { noise },
        }
    }

    /// Tells if it looks at residuals themselves.
    pub(crate) fn wants_residuals(&self) -> bool {
        matches!(self, Self::Ncp(_))
    }

    /// Iterations from one in which it is asked to the next.
    fn step(&self, iteration: usize) -> usize {
        let part = if self.wants_residuals() { iteration / PARTS } else { 1 };
        // A power of two, so that all of them meet where a longer step begins.
        1 << part.max(1).ilog2()
    }

    /// Tells if it is asked in an iteration. A start is no iterate: its residual may well be whiter than those of the first iterates.
    pub(crate) fn is_asked(&self, iteration: usize) -> bool {
        let is_start = iteration == 0 && self.wants_residuals();
        !is_start && iteration.is_multiple_of(self.step(iteration))
    }

    /// The next iteration after this one in which it is asked.
    pub(crate) fn next(&self, iteration: usize) -> usize {
        let later = iteration + 1;
        later.next_multiple_of(self.step(later))
    }

    /// Judges an iterate. Returns true if it is the best so far, and is to be kept.
    pub(crate) fn judge(&self, course: &mut Course, seen: &Seen<'_>) -> bool {
        let (is_better, is_last) = match self {
            Self::MonotoneError { noise } => {
                let (steps, bound) = match course.steps {
                    None => (Steps::first(seen.norms), None),
                    Some(steps) => {
                        let (steps, bound) = steps.next(seen.norms);
                        (steps, Some(bound))
                    }
                };
                course.steps = Some(steps);
                let iteration = course.base + seen.iteration.saturating_sub(1);
                course.points.extend(bound.map(|value| RulePoint { iteration, value }));
                // Also if it is no number.
                let is_certain = bound.is_none_or(|bound| bound > noise * seen.rhs);
                (is_certain, !is_certain)
            }
            Self::Ncp(periodogram) => {
                let iteration = seen.iteration;
                let values = periodogram.distances_from_white(seen.residuals, seen.column);
                course.points.push(RulePoint { iteration: course.base + iteration, value: values[0] });
                let lows = course.lows.get_or_insert(Lows::NONE);
                (lows.take(iteration, values), lows.are_over(iteration))
            }
        };
        if is_better {
            course.best = seen.iteration;
        }
        course.ended = is_last;
        is_better
    }
}

impl Method {
    /// Tells if a rule for ill-posed problems may end it ([`Stopping::rule`](crate::Stopping::rule)).
    pub fn takes_rule(&self, rule: &StopRule) -> bool {
        match (self, rule) {
            (Self::Cgls { damp } | Self::Lsqr { damp }, StopRule::MonotoneError { .. }) => *damp == 0.0,
            (Self::Cgnr, _) => true,
            (_, StopRule::MonotoneError { .. }) => false,
            (Self::Cgls { .. } | Self::Fista | Self::Sirt { .. } | Self::Sart { .. }, StopRule::Ncp { .. }) => true,
            (Self::Mrnsd | Self::Nnfcgls { .. }, StopRule::Ncp { .. }) => true,
            (_, StopRule::Ncp { .. }) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_cannot_be_meant_are_refused() {
        assert!(StopRule::Ncp { length: 6, apart: 5 }.validate(60).is_ok());
        assert!(StopRule::MonotoneError { noise: 0.1 }.validate(1).is_ok());
        for bad in [
            StopRule::Ncp { length: 3, apart: 5 },
            StopRule::Ncp { length: 6, apart: 0 },
            StopRule::Ncp { length: 7, apart: 5 },
            StopRule::Ncp { length: usize::MAX, apart: 2 },
            StopRule::MonotoneError { noise: 0.0 },
            StopRule::MonotoneError { noise: 1.0 },
            StopRule::MonotoneError { noise: f64::NAN },
        ] {
            assert!(bad.validate(60).is_err(), "{bad:?}");
        }
    }

    /// All iterations up to 32, then those that steps of a 32nd to a 16th reach, whichever of them it is asked after.
    #[test]
    fn ncp_is_asked_now_and_then() {
        let judge = Judge::new(StopRule::Ncp { length: 4, apart: 1 });
        let mut asked = vec![0];
        while asked[asked.len() - 1] < 3000 {
            asked.push(judge.next(asked[asked.len() - 1]));
        }
        assert!(asked[..33].iter().copied().eq(0..33));
        assert!(asked.len() < 33 + 32 * 7, "{}", asked.len());
        for pair in asked.windows(2) {
            assert!(pair[1] - pair[0] <= (pair[1] / 16).max(1), "{pair:?}");
            for between in pair[0]..pair[1] {
                let is_asked = between == pair[0] && between > 0;
                assert_eq!((judge.next(between), judge.is_asked(between)), (pair[1], is_asked));
            }
        }
    }
}
