//! Systems whose numbers are far from 1, solved as systems of numbers near 1.
//!
//! A solve sums squares and multiplies such sums. Their exponents can leave the range of the precision: for entries
//! near 1e-200 in `f64` the squares are 0, and a residual of 0 would pass for a solution.
//!
//! ```text
//!   A' = 2^m A,   b' = 2^k b,   A' x' = b',   x' = 2^(k - m) x
//! ```
//!
//! is solved instead, if the norm of `A` or of `b` is outside the range that sums of squares can bear ([`Reach`]);
//! `A'` stands for the scaled matrix here. Multiplying by a power of two rounds nothing. So every number of the
//! solve is a power of two times the number of the unscaled solve, and if that would succeed, its answer has the
//! same bits. `k` differs from column to column. Norms are reported in units of the system that was given.
//!
//! `A'` is an operator that multiplies by about `2^(m/2)`, then by `A`, then by the rest of `2^m`; its adjoint does
//! so too. Numbers in between then stay near 1. A product takes four launches more, two vectors more are held, and
//! products of a stored matrix are launches of their own. A scaled `b` takes one vector more. If both norms are
//! inside the range, nothing is scaled.

use std::ops::RangeInclusive;

use crate::device::Device;
use crate::error::Result;
use crate::magnitude::{self, Magnitude};
use crate::number::{Accumulation, Precision, Real};
use crate::operator::{
    Identity, LinearOperator, LinearOperatorExt, RowSubsets, SharedOperator, SubsetsScratch, one_column,
};
use crate::vector::Vector;

/// The binary exponents of `|A|` and `|b|` that need no scaling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reach {
    pub(super) operator: RangeInclusive<i32>,
    pub(super) rhs: RangeInclusive<i32>,
}

impl Reach {
    /// Reach of vectors of `T` and sums kept in `accumulation`. The largest power that appears is `|A|² |b|²` in methods that
    /// multiply by `A` alone, `|A|⁴ |b|²` in those whose vectors hold `A'A x` or `A A x` (`squares`); what is left of the exponents is for the
    /// fall of the residual (1e-16, squared), the condition, and the digits of the smallest numbers.
    pub(super) fn of<T: Real>(accumulation: Accumulation, squares: bool) -> Self {
        let (operator, rhs) = match (T::PRECISION, accumulation) {
            (Precision::Double, _) => (-200..=200, -120..=120),
            // Vectors are the narrower part: `|A|² |b|` stands in one.
            (Precision::Single, Accumulation::Double) => (-50..=50, -50..=50),
            // The fall of the residual needs room below, not above: |A|_F grows with the number of entries.
            (Precision::Single, Accumulation::Pair) => (-24..=36, -16..=20),
        };
        let half = if squares { 2 } else { 1 };
        Self { operator: operator.start() / half..=operator.end() / half, rhs }
    }
}

/// The exponent to scale by, for numbers of about `2^exponent`.
pub(super) fn needed(exponent: Option<i32>, reach: &RangeInclusive<i32>) -> i32 {
    exponent.filter(|exponent| !reach.contains(exponent)).map_or(0, |exponent| -exponent)
}

/// `2^exponent`, if that is a number of `T`.
fn power<T: Real>(exponent: i32) -> T {
    T::from_f64(magnitude::scale(1.0, exponent))
}

/// `2^exponent A` for `columns` interleaved vectors.
///
/// # Errors
/// [`Error::Conflict`] for several columns of an operator that multiplies one at a time.
pub(super) fn rescaled<T: Real>(
    operator: &SharedOperator<T>,
    exponent: i32,
    columns: usize,
) -> Result<SharedOperator<T>> {
    let whole = if columns > 1 { Interleaved::new(operator, columns)?.shared() } else { operator.clone() };
    if exponent == 0 {
        return Ok(whole);
    }
    let before = exponent / 2;
    let half = |n: usize, exponent: i32| Identity::new(whole.device(), n).scaled(power::<T>(exponent));
    let [first, last] = [half(whole.cols(), before), half(whole.rows(), exponent - before)];
    Ok(last.times(whole.times(first)?)?.shared())
}

/// An operator for interleaved vectors.
struct Interleaved<T: Real> {
    operator: SharedOperator<T>,
    columns: usize,
    /// Vectors that products with subsets are made in.
    scratch: Option<SubsetsScratch<T>>,
}

impl<T: Real> Interleaved<T> {
    fn new(operator: &SharedOperator<T>, columns: usize) -> Result<Self> {
        if !operator.takes_columns() {
            return Err(one_column(columns, (**operator).kind()));
        }
        let scratch = match operator.as_subsets() {
            Some(subsets) => Some(SubsetsScratch::new(subsets.parts(), columns)?),
            None => None,
        };
        Ok(Self { operator: operator.clone(), columns, scratch })
    }

    /// The subsets, if it is in some, and the vectors that a product is made in.
    fn subsets(&self) -> Option<(RowSubsets<'_, T>, &SubsetsScratch<T>)> {
        Some((self.operator.as_subsets()?, self.scratch.as_ref()?))
    }
}

impl<T: Real> LinearOperator<T> for Interleaved<T> {
    fn device(&self) -> &Device {
        self.operator.device()
    }
    fn rows(&self) -> usize {
        self.operator.rows() * self.columns
    }
    fn cols(&self) -> usize {
        self.operator.cols() * self.columns
    }
    fn apply(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        match self.subsets() {
            Some((subsets, scratch)) => subsets.multiply(scratch, x, y),
            None => self.operator.apply_columns(self.columns, x, y),
        }
    }
    fn apply_adjoint(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        match self.subsets() {
            Some((subsets, scratch)) => subsets.multiply_adjoint(scratch, x, y),
            None => self.operator.apply_adjoint_columns(self.columns, x, y),
        }
    }
    fn launches(&self, columns: usize) -> usize {
        self.operator.launches(self.columns * columns)
    }
    fn has_adjoint(&self) -> bool {
        self.operator.has_adjoint()
    }
}

/// Exponents of a system, and the scaled right-hand side.
#[derive(Debug)]
pub(super) struct Scaling<T: Real> {
    /// `m`.
    pub(super) operator: i32,
    /// Exponents of `b` that need no scaling.
    reach: RangeInclusive<i32>,
    /// Magnitude of the operator before it is scaled.
    magnitude: Magnitude,
    rhs: Option<Vector<T>>,
}

impl<T: Real> Scaling<T> {
    /// Scaling of an operator of about `magnitude` (with its damping), within `reach`. If it is scaled, `b` is too.
    pub(super) fn new(magnitude: Magnitude, reach: &Reach) -> Self {
        let operator = needed(magnitude.exponent(), &reach.operator);
        let reach = if operator == 0 { reach.rhs.clone() } else { 0..=0 };
        Self { operator, reach, magnitude, rhs: None }
    }

    /// Takes another magnitude of the operator; false if that needs another scaling, and nothing changed.
    pub(super) fn follow(&mut self, magnitude: Magnitude, reach: &Reach) -> bool {
        let same = needed(magnitude.exponent(), &reach.operator) == self.operator;
        if same {
            self.magnitude = magnitude;
        }
        same
    }

    /// `k` of a column, from the norms of its right-hand side and of its start.
    pub(super) fn column(&self, rhs: Magnitude, start: Magnitude) -> i32 {
        let image = start.exponent().zip(self.magnitude.exponent()).map(|(x, a)| x + a);
        // `None` is the least.
        needed(rhs.exponent().max(image), &self.reach)
    }

    /// `2^k b`, column by column: `b` itself if nothing is scaled.
    pub(super) fn scaled<'b>(&'b mut self, b: &'b Vector<T>, exponents: &[i32]) -> Result<&'b Vector<T>> {
        if exponents.iter().all(|exponent| *exponent == 0) {
            return Ok(b);
        }
        let held = match self.rhs.take() {
            Some(mut held) => {
                held.copy_from(b)?;
                held
            }
            None => {
                let mut held = Vector::zeros(b.device(), b.len())?;
                held.copy_from(b)?;
                held
            }
        };
        let held = self.rhs.insert(held);
        held.scale_columns(exponents)?;
        Ok(held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_within_reach_are_left_alone() {
        let reach = Reach::of::<f64>(Accumulation::Double, false);
        assert_eq!([needed(Some(3), &reach.operator), needed(None, &reach.operator)], [0, 0]);
        assert_eq!([needed(Some(-664), &reach.operator), needed(Some(664), &reach.operator)], [664, -664]);
        let narrow = Reach::of::<f32>(Accumulation::Pair, true);
        assert!(narrow.operator.end() < reach.operator.end() && narrow.rhs.end() < reach.rhs.end());
        // The largest factors are numbers of `T`, in halves.
        for exponent in [149, -127, 75, -64] {
            assert!(power::<f32>(exponent / 2).is_finite() && power::<f32>(exponent - exponent / 2) > 0.0);
        }
        assert!(power::<f64>(537) > 0.0 && power::<f64>(-512) > 0.0);
    }
}
