//! Norms whose square does not fit into `f64`: numbers with an exponent of their own.

/// A number of at least 0 that may lie outside the range of `f64`: `value 2^exponent`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Magnitude {
    pub(crate) value: f64,
    pub(crate) exponent: i32,
}

/// 2^-900: what sums of squares from here on have lost of a term by underflow is below their rounding.
pub(crate) const LEAST_SQUARE: f64 = f64::from_bits((1023 - 900) << 52);

/// Tells if a sum of squares has neither overflowed nor lost digits to underflow.
pub(crate) fn has_all_digits(square: f64) -> bool {
    (LEAST_SQUARE..=f64::MAX).contains(&square)
}

impl Magnitude {
    pub(crate) const fn of(value: f64) -> Self {
        Self { value, exponent: 0 }
    }

    /// Value as `f64`: infinity or 0 if it is out of range.
    pub(crate) fn to_f64(self) -> f64 {
        scale(self.value, self.exponent)
    }

    /// The largest `k` with `2^k` not above it; `None` for 0 and for what is not finite.
    pub(crate) fn exponent(self) -> Option<i32> {
        (self.value != 0.0 && self.value.is_finite()).then(|| libm::ilogb(self.value) + self.exponent)
    }

    /// `self 2^exponent`.
    pub(crate) fn scaled(self, exponent: i32) -> Self {
        Self { exponent: self.exponent + exponent, ..self }
    }

    /// `sqrt(self² + other²)`, the norm of two operators one above the other.
    pub(crate) fn stacked(self, other: Self) -> Self {
        let exponent = match (self.exponent(), other.exponent()) {
            (Some(a), Some(b)) => a.max(b),
            (one, another) => one.or(another).unwrap_or(0),
        };
        let [a, b] = [self, other].map(|part| part.scaled(-exponent).to_f64());
        Self { value: libm::hypot(a, b), exponent }
    }

    /// The norm of numbers of which `squares(k)` sums up the squares after multiplying each by `2^k`, and of which
    /// `largest` is the largest magnitude. Sums that neither overflow nor vanish are taken as they are, with `k = 0`.
    pub(crate) fn of_squares(largest: impl FnOnce() -> f64, squares: impl Fn(i32) -> f64) -> Self {
        let plain = squares(0);
        if has_all_digits(plain) {
            return Self::of(plain.sqrt());
        }
        let largest = Self::of(largest());
        match largest.exponent() {
            Some(exponent) => Self { value: squares(-exponent).sqrt(), exponent },
            None => largest,
        }
    }
}

/// `value 2^exponent`, rounded once.
#[inline]
pub(crate) fn scale(value: f64, exponent: i32) -> f64 {
    if exponent == 0 { value } else { libm::scalbn(value, exponent) }
}

/// The largest magnitude among `values`; NaN if there is one.
pub(crate) fn largest(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, |most: f64, v| if v.abs() > most || v.is_nan() { v.abs() } else { most })
}

/// The 2-norm of `values`, summed up in order.
pub(crate) fn norm(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let squares = |exponent| values.clone().map(|v| scale(v, exponent)).map(|v| v * v).sum();
    Magnitude::of_squares(|| largest(values.clone()), squares).to_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn norms_reach_as_far_as_the_numbers() {
        for factor in [1.0, 1e-320, 1e-300, 1e-160, 1e160, 1e300, f64::MIN_POSITIVE] {
            let found = norm([3.0 * factor, -4.0 * factor].into_iter());
            approx::assert_relative_eq!(found, 5.0 * factor, max_relative = 1e-3);
            if factor > 1e-305 {
                approx::assert_relative_eq!(found, 5.0 * factor, max_relative = 1e-15);
            }
        }
        assert_eq!(norm([0.0, -0.0].into_iter()), 0.0);
        assert_eq!(norm(std::iter::empty()), 0.0);
        assert_eq!(norm([1.0, f64::INFINITY].into_iter()), f64::INFINITY);
        assert!(norm([f64::NAN, 1.0].into_iter()).is_nan() && norm([1.0, f64::NAN].into_iter()).is_nan());
        // Beyond `f64` there is still a magnitude.
        let beyond = [f64::MAX; 4];
        let found =
            Magnitude::of_squares(|| f64::MAX, |k| beyond.iter().map(|v| scale(*v, k)).map(|v| v * v).sum());
        assert_eq!((found.to_f64(), found.exponent()), (f64::INFINITY, Some(1024)));
        // The plain sum, if nothing is wrong.
        let plain: Vec<f64> = (1..100).map(|k| 1.0 / f64::from(k)).collect();
        let sum: f64 = plain.iter().map(|v| v * v).sum();
        assert_eq!(norm(plain.iter().copied()).to_bits(), sum.sqrt().to_bits());
    }

    #[test]
    fn magnitudes_add_as_legs_of_a_triangle() {
        let at = |value, exponent| Magnitude { value, exponent };
        let both = at(3.0, -2000).stacked(at(4.0, -2000));
        assert_eq!(both.scaled(2000).to_f64(), 5.0);
        assert_eq!(at(3.0, -2000).stacked(Magnitude::of(0.0)).scaled(2000).to_f64(), 3.0);
        assert_eq!(at(3.0, -2000).stacked(Magnitude::of(1.0)).to_f64(), 1.0);
        assert_eq!(Magnitude::of(0.0).stacked(Magnitude::of(0.0)).to_f64(), 0.0);
    }
}
