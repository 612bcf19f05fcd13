//! Terms that proximal methods minimise in addition to the misfit. Weights of the terms are scalars of the script,
//! one for each right-hand side. Bounds are vectors, with a number for each unknown.

use super::regularization::Regularization;
use crate::error::{Error, Result, same_length};
use crate::magnitude::{self, scale};
use crate::matrix::Matrix;
use crate::number::Real;
use crate::operator::{LinearOperator, SharedOperator, estimate_norm_in};
use crate::recurrence::Scalar;
use crate::solver::method::Method;
use crate::solver::scaling::rescaled;
use crate::solver::script::{InverseSums, Neighbours, Terms, Weight, distinct_lengths, subset_rows, subsets};
use crate::solver::stopping::Limits;
use crate::sparse::gallery::Random;
use crate::vector::Vector;

/// Steps of the power iteration that estimates `|A|`, and the factor for what they leave.
const POWER_STEPS: usize = 30;
const MARGIN: f64 = 1.02;

impl Terms {
    /// Bounds of pixel `i` with a regularization: those of both.
    fn bounds_of<T: Real>(
        &self,
        regularization: &Regularization,
        pixels: Option<&[Vec<T>; 2]>,
        i: usize,
    ) -> [f64; 2] {
        let own = pixels
            .map_or([f64::NEG_INFINITY, f64::INFINITY], |pixels| [0, 1].map(|which| pixels[which][i].to_f64()));
        let [lower, upper] = [own[0].max(regularization.lower), own[1].min(regularization.upper)];
        let from_0 = self.likelihood || (self.free.is_some() && lower == f64::NEG_INFINITY);
        [if from_0 { lower.max(0.0) } else { lower }, upper]
    }

    /// Fails on bounds that no number lies between, that are no numbers, or that the script does not keep.
    fn check_bounds<T: Real>(
        &self,
        regularizations: &[Regularization],
        pixels: Option<&[Vec<T>; 2]>,
    ) -> Result<()> {
        let refuse = |reason: String| Err(Error::Option { name: "bounds", reason });
        if let Some([lower, upper]) = pixels
            && let Some(pixel) = lower.iter().zip(upper).position(|(l, u)| l.partial_cmp(u).is_none())
        {
            return refuse(format!("one of pixel {pixel} is no number"));
        }
        let count = pixels.map_or(1, |pixels| pixels[0].len());
        for regularization in regularizations {
            for pixel in 0..count {
                let bounds = self.bounds_of(regularization, pixels, pixel);
                let [lower, upper] = bounds.map(|bound| T::from_f64(bound).to_f64());
                let some = lower <= upper && lower < f64::INFINITY && upper > f64::NEG_INFINITY;
                if !some {
                    return refuse(format!("no number lies between {lower} and {upper} at pixel {pixel}"));
                }
                if self.free.is_some() && lower == f64::NEG_INFINITY {
                    return refuse(format!("that from below at pixel {pixel} is too large for {}", T::PRECISION));
                }
                if self.free.is_some() && lower < upper && upper < f64::INFINITY {
                    let reason = format!("this method keeps none from above, and pixel {pixel} has {upper}");
                    let others = Method::names(|m| m.keeps_bounds() && !m.keeps_lower_bounds_alone());
                    return refuse(format!("{reason}: {others} do"));
                }
            }
        }
        Ok(())
    }
}

impl Neighbours {
    /// At least `|D|²`, of the differences and of the derivative along a direction of length 1 together.
    fn norm2(self) -> f64 {
        match (self.width, self.directional) {
            (0, _) => 0.0,
            (_, false) => 8.0,
            (_, true) => 16.0,
        }
    }
}

impl Weight {
    /// The value for a regularization in the units of the solve, and the norm of the operator there.
    fn of(self, regularization: &Regularization, neighbours: Neighbours, norm: f64) -> f64 {
        // No step is right for an operator of norm 0, and any is: its gradient is 0.
        let norm = if norm > 0.0 { norm } else { 1.0 };
        let share = if neighbours.width > 0 { 0.5 } else { 1.0 };
        let tau = share / (norm * norm);
        match self {
            Self::Tau => tau,
            Self::Step if neighbours.width > 0 => (1.0 - share) / (tau * neighbours.norm2()),
            Self::Step => 0.0,
            Self::Square => norm * norm,
            Self::Inverse => 1.0 / norm,
            Self::Tikhonov => regularization.tikhonov,
            Self::Variation => regularization.variation,
            Self::Directional => regularization.directional,
            Self::Across => regularization.direction[0],
            Self::Down => regularization.direction[1],
        }
    }
}

/// Mark of the values of an operator: of a matrix, or of subsets that are some, how often they were replaced, of others the bound of their norm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Values {
    Matrix(u64),
    Bound(Option<f64>),
}

impl Values {
    pub(crate) fn of<T: Real>(operator: &dyn LinearOperator<T>) -> Self {
        let of_subsets = || operator.as_subsets()?.version();
        match operator.as_matrix().map(Matrix::version).or_else(of_subsets) {
            Some(version) => Self::Matrix(version),
            None => Self::Bound(operator.norm_bound()),
        }
    }
}

/// The terms of a script with their present values.
pub(crate) struct Objective<T: Real> {
    pub(crate) terms: Terms,
    regularizations: Vec<Regularization>,
    /// Bounds of each pixel, for all columns.
    pixels: Option<[Vec<T>; 2]>,
    /// Shifts that the bounds in the vectors were scaled by; none if they are to be written.
    written: Option<Vec<i32>>,
    /// At least `|A|` of the scaled operator, most likely, and the values that it was estimated of.
    norm: f64,
    known: Option<Values>,
    /// Inverse sums of rows and of columns; none if the vectors have them.
    inverse_sums: Option<[Vec<T>; 2]>,
    /// Vectors of the power iteration, so that new values need no new ones.
    power: [Vector<T>; 2],
    /// Likewise for the sums of subsets: one for each length that these have.
    of_subsets: Vec<Vector<T>>,
    operator: SharedOperator<T>,
    exponent: i32,
}

impl<T: Real> Objective<T> {
    /// Estimates the norm of `operator`, which is scaled by 2 to `exponent`.
    pub(crate) fn new(
        terms: Terms,
        regularizations: Vec<Regularization>,
        operator: &SharedOperator<T>,
        exponent: i32,
    ) -> Result<Self> {
        let operator = operator.clone();
        terms.check_bounds::<T>(&regularizations, None)?;
        let (pixels, written, norm, known, inverse_sums) = (None, None, 0.0, None, None);
        let vector = |len: usize| Vector::zeros(operator.device(), len);
        let power = [vector(operator.cols())?, vector(operator.rows())?];
        let by_subsets = terms.inverse_sums.is_some_and(|sums| sums.of_subsets);
        let lengths = distinct_lengths(&subset_rows(&operator));
        let lengths = lengths.into_iter().filter(|_| by_subsets);
        let of_subsets = lengths.map(vector).collect::<Result<_>>()?;
        let mut made = Self {
            terms,
            regularizations,
            pixels,
            written,
            norm,
            known,
            inverse_sums,
            power,
            of_subsets,
            operator,
            exponent,
        };
        made.refresh()?;
        Ok(made)
    }

    /// Estimates the norm anew if the values of the operator are others, as far as it can tell, and sums them up.
    ///
    /// # Errors
    /// [`Error::Conflict`] for negative entries, if the script weighs by sums.
    pub(crate) fn refresh(&mut self) -> Result<()> {
        let found = Values::of(&*self.operator);
        if self.known != Some(found) {
            let [x, ax] = &mut self.power;
            let scaled = rescaled(&self.operator, self.exponent, 1)?;
            if let Some(InverseSums { of_subsets, .. }) = self.terms.inverse_sums {
                let (mut sums, norm) = inverse_sums(&*scaled, x, ax)?;
                self.norm = norm;
                if of_subsets {
                    let subsets = subsets(&self.operator).into_iter();
                    let subsets = subsets.map(|subset| rescaled(&subset, self.exponent, 1));
                    sums[1] = subset_sums(&subsets.collect::<Result<Vec<_>>>()?, &mut self.of_subsets, x)?;
                }
                self.inverse_sums = Some(sums);
            } else {
                self.norm = MARGIN * estimate_norm_in(&*scaled, POWER_STEPS, x, ax)?;
            }
            self.known = Some(found);
        }
        Ok(())
    }

    /// The scalars of column `c`, scaled by these exponents.
    pub(crate) fn scalars(&self, c: usize, exponents: [i32; 2]) -> Vec<(Scalar, f64)> {
        let regularization = self.regularizations[c].scaled(exponents);
        let value = |weight: Weight| weight.of(&regularization, self.terms.neighbours, self.norm);
        self.terms.weights.iter().map(|(scalar, weight)| (*scalar, value(*weight))).collect()
    }

    /// Tells if the least residual is what is wanted.
    pub(crate) fn is_misfit(&self) -> bool {
        self.regularizations.iter().all(|c| c.tikhonov == 0.0 && !c.has_neighbours())
    }

    /// Takes other regularizations.
    ///
    /// # Errors
    /// [`Error::Conflict`] for terms over neighbours that the script was not planned for.
    pub(crate) fn set_regularizations(&mut self, regularizations: Vec<Regularization>) -> Result<()> {
        let (planned, asked) = (self.terms.neighbours, Neighbours::of(&regularizations));
        if (asked.width != 0 && asked.width != planned.width) || (asked.directional && !planned.directional) {
            let reason = "terms over neighbours are new, or of another width: set the solver up again".into();
            return Err(Error::Conflict { name: "regularizations", reason });
        }
        let bounds = |regularizations: &[Regularization]| -> Vec<[f64; 2]> {
            regularizations.iter().map(|regularization| [regularization.lower, regularization.upper]).collect()
        };
        if bounds(&regularizations) != bounds(&self.regularizations) {
            self.terms.check_bounds(&regularizations, self.pixels.as_ref())?;
            self.written = None;
        }
        self.regularizations = regularizations;
        Ok(())
    }

    /// Takes bounds of each pixel, which hold beside those of the regularizations.
    ///
    /// # Errors
    /// [`Error::Shape`]; [`Error::Option`] for bounds that no number lies between.
    pub(crate) fn set_bounds(&mut self, lower: &[T], upper: &[T], cols: usize) -> Result<()> {
        same_length("lower bounds of pixels", cols, lower.len())?;
        same_length("upper bounds of pixels", cols, upper.len())?;
        let pixels = [lower.to_vec(), upper.to_vec()];
        self.terms.check_bounds(&self.regularizations, Some(&pixels))?;
        self.pixels = Some(pixels);
        self.written = None;
        Ok(())
    }

    /// Writes inverse sums into their vectors, for all columns, if they are not there yet.
    pub(crate) fn write_inverse_sums(&mut self, vectors: &mut [Vector<T>]) -> Result<()> {
        if let (Some(InverseSums { rows, cols, .. }), Some(sums)) = (&self.terms.inverse_sums, &self.inverse_sums) {
            for (place, sums) in [rows, cols].into_iter().zip(sums) {
                vectors[place.index()].write_columns(&vec![&sums[..]; self.regularizations.len()])?;
            }
            self.inverse_sums = None;
        }
        Ok(())
    }

    /// Writes the bounds in the units of a solve, and which unknowns they leave free, into their vectors, if they are not there yet.
    pub(crate) fn write_bounds(&mut self, limits: &[Limits], vectors: &mut [Vector<T>]) -> Result<()> {
        let shifts: Vec<i32> = limits.iter().map(|limits| limits.exponents[0] - limits.exponents[1]).collect();
        if self.written.as_ref() == Some(&shifts) {
            return Ok(());
        }
        // None of them stand if the second cannot be written.
        self.written = None;
        let columns = self.regularizations.len();
        for (which, place) in self.terms.bounds.iter().enumerate() {
            let held = &mut vectors[place.index()];
            let bound = |at: usize| {
                let (i, c) = (at / columns, at % columns);
                let regularization = &self.regularizations[c];
                let value = self.terms.bounds_of(regularization, self.pixels.as_ref(), i)[which];
                T::from_f64(scale(value, shifts[c]))
            };
            held.write(&(0..held.len()).map(bound).collect::<Vec<T>>())?;
        }
        if let Some(free) = self.terms.free {
            let held = &mut vectors[free.index()];
            let is_free = |at: usize| {
                let (i, c) = (at / columns, at % columns);
                let bounds = self.terms.bounds_of(&self.regularizations[c], self.pixels.as_ref(), i);
                let [lower, upper] = bounds.map(|bound| T::from_f64(bound).to_f64());
                T::from_f64(if lower < upper { 1.0 } else { 0.0 })
            };
            held.write(&(0..held.len()).map(is_free).collect::<Vec<T>>())?;
        }
        self.written = Some(shifts);
        Ok(())
    }
}

/// `1 / A 1` and `1 / A'1`, 0 where a sum is 0; `x` and `ax` are as long as `A` has columns and rows. Beside them a bound of `|A|`, which costs
/// no products: the root of the largest sum of a row times that of a column.
///
/// # Errors
/// [`Error::Conflict`] if some entries are negative, as far as two products tell.
fn inverse_sums<T: Real>(
    a: &dyn LinearOperator<T>,
    x: &mut Vector<T>,
    ax: &mut Vector<T>,
) -> Result<([Vec<T>; 2], f64)> {
    let mut random = Random::new(1972);
    let mut parts = |n: usize| -> Vec<T> { (0..n).map(|_| T::from_f64(random.uniform())).collect() };
    x.write(&parts(x.len()))?;
    a.apply(x, ax)?;
    let part = ax.to_vec()?;
    x.fill(T::from_f64(1.0))?;
    a.apply(x, ax)?;
    let of_rows = ax.to_vec()?;
    let rows = inverses("row", &of_rows, &part)?;
    ax.write(&parts(ax.len()))?;
    a.apply_adjoint(ax, x)?;
    let part = x.to_vec()?;
    ax.fill(T::from_f64(1.0))?;
    a.apply_adjoint(ax, x)?;
    let of_cols = x.to_vec()?;
    let cols = inverses("column", &of_cols, &part)?;
    let largest = [of_rows, of_cols].map(|sums| magnitude::largest(sums.iter().map(|sum| sum.to_f64())));
    Ok(([rows, cols], largest[0].sqrt() * largest[1].sqrt()))
}

/// 1 over the largest sum that each column has in a subset, 0 where all are 0. `ones` has a vector
/// for each length of a subset, `x` is as long as all have columns.
fn subset_sums<T: Real>(
    subsets: &[SharedOperator<T>],
    ones: &mut [Vector<T>],
    x: &mut Vector<T>,
) -> Result<Vec<T>> {
    let mut largest = vec![0.0; x.len()];
    ones.iter_mut().try_for_each(|ones| ones.fill(T::from_f64(1.0)))?;
    for subset in subsets {
        let ones = ones.iter().find(|ones| ones.len() == subset.rows());
        let Some(ones) = ones else { return same_length("lengths of subsets", 1, 0).map(|()| Vec::new()) };
        subset.apply_adjoint(ones, x)?;
        largest.iter_mut().zip(x.to_vec()?).for_each(|(most, sum)| *most = sum.to_f64().max(*most));
    }
    let inverse = |sum: &f64| T::from_f64(if *sum > 0.0 { 1.0 / sum } else { 0.0 });
    Ok(largest.iter().map(inverse).collect())
}

/// The inverse of each sum, 0 where that is 0. `parts` are sums of the same entries times numbers between 0 and 1: no more than the whole,
/// unless entries are negative.
fn inverses<T: Real>(what: &str, sums: &[T], parts: &[T]) -> Result<Vec<T>> {
    let inverse = |(i, (sum, part)): (usize, (&T, &T))| {
        let (sum, part) = (sum.to_f64(), part.to_f64());
        if !(part >= 0.0 && part <= sum * (1.0 + 16.0 * T::EPSILON) && sum.is_finite()) {
            let reason = format!("this method weighs by sums, and takes no negative entries; {what} {i} has some");
            return Err(Error::Conflict { name: "method", reason });
        }
        Ok(T::from_f64(if sum > 0.0 { 1.0 / sum } else { 0.0 }))
    };
    sums.iter().zip(parts).enumerate().map(inverse).collect()
}
