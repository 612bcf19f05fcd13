//! Products of a solver: fused with the rest of an iteration, or computed by an operator.

use std::sync::RwLockReadGuard;

use crate::backend::linear::product::{SharedMatrix, Stored};
use crate::error::Result;
use crate::number::Real;
use crate::operator::{LinearOperator, SharedOperator, Structure, no_adjoint};
use crate::solver::scaling::rescaled;
use crate::solver::script::CgnrKernels;
use crate::vector::Vector;

/// The stored matrix by which `operator`, or its adjoint, multiplies, if it is one whose products are fused.
fn fused<T: Real>(operator: &dyn LinearOperator<T>, adjoint: bool) -> Option<SharedMatrix<T>> {
    match operator.structure() {
        Structure::Matrix(matrix) => {
            if adjoint {
                matrix.transposed().ok().cloned()
            } else {
                Some(matrix.forward().clone())
            }
        }
        Structure::Adjoint(operator) => fused(operator, !adjoint),
        _ => None,
    }
}

/// Kernels that CGNR has for an operator.
pub(crate) fn cgnr_kernels<T: Real>(operator: &dyn LinearOperator<T>) -> CgnrKernels {
    let (Some(a), Some(at)) = (fused(operator, false), fused(operator, true)) else {
        return CgnrKernels::default();
    };
    let (device, matrices) = (operator.device(), [&*a.read(), &*at.read()]);
    let (run, operations) = (device.run::<T>(), device.backend().cgnr::<T>());
    CgnrKernels {
        halves: operations.cgnr_fuses(run, matrices),
        resident: operations.cgnr_stays_resident(run, matrices),
    }
}

/// An operator, and whether its adjoint is meant.
type Factor<'a, T> = (&'a dyn LinearOperator<T>, bool);

/// The factors of `operator`, or of its adjoint, in the order in which they are applied.
fn factors<'a, T: Real>(operator: &'a dyn LinearOperator<T>, adjoint: bool, found: &mut Vec<Factor<'a, T>>) {
    match operator.structure() {
        Structure::Product([left, right]) => {
            let [first, second] = if adjoint { [left, right] } else { [right, left] };
            factors(first, adjoint, found);
            factors(second, adjoint, found);
        }
        Structure::Adjoint(operator) => factors(operator, !adjoint, found),
        _ => found.push((operator, adjoint)),
    }
}

/// The matrix that `operator` multiplies by last, if it is a product of which that one is fused.
fn last_factor<T: Real>(operator: &dyn LinearOperator<T>, adjoint: bool) -> Option<SharedMatrix<T>> {
    let mut found = Vec::new();
    factors(operator, adjoint, &mut found);
    match found[..] {
        [_, .., (last, adjoint)] => fused(last, adjoint),
        _ => None,
    }
}

/// `W'` and `W` of an operator that is `W W'` with a stored square matrix.
pub(crate) fn roots<T: Real>(operator: &dyn LinearOperator<T>) -> Option<[SharedMatrix<T>; 2]> {
    let mut found = Vec::new();
    factors(operator, false, &mut found);
    let [(first, first_adjoint), (last, last_adjoint)] = found[..] else { return None };
    let [first, last, mirrored] = [(first, first_adjoint), (last, last_adjoint), (last, !last_adjoint)]
        .map(|(factor, adjoint)| fused(factor, adjoint));
    let (first, last) = (first?, last?);
    let square = first.read().rows == first.read().cols;
    (square && mirrored?.is(&first)).then_some([first, last])
}

/// Lengths of the vectors that [`Products::of_factors`] keeps: one after each factor but the last.
pub(crate) fn between<T: Real>(operator: &dyn LinearOperator<T>, adjoint: bool) -> Vec<usize> {
    if last_factor(operator, adjoint).is_none() {
        return Vec::new();
    }
    let mut found = Vec::new();
    factors(operator, adjoint, &mut found);
    found.pop();
    found.iter().map(|(factor, adjoint)| if *adjoint { factor.cols() } else { factor.rows() }).collect()
}

/// Products with one operator, or with its adjoint.
pub(crate) struct Products<T: Real> {
    stored: SharedMatrix<T>,
    /// The operator that computes a product, or a part of it, before the launches; without it the launches multiply by themselves.
    before: Option<Before<T>>,
}

enum Before<T: Real> {
    /// The whole product. `stored` then tells the launches to find it in their result.
    Whole(SharedOperator<T>),
    /// All factors but the last, which is `stored`; a vector after each of them.
    Factors { operator: SharedOperator<T>, adjoint: bool, between: Vec<Vector<T>> },
}

impl<T: Real> Products<T> {
    fn new(operator: &SharedOperator<T>, adjoint: bool, exponent: i32, columns: usize) -> Result<Self> {
        if let Some(stored) = fused(&**operator, adjoint).filter(|_| exponent == 0) {
            return Ok(Self { stored, before: None });
        }
        let (rows, cols) = (operator.rows(), operator.cols());
        let (rows, cols) = if adjoint { (cols, rows) } else { (rows, cols) };
        let stored = Stored::external(&operator.device().place(), rows, cols)?;
        let before = Some(Before::Whole(rescaled(operator, exponent, columns)?));
        Ok(Self { stored: SharedMatrix::new(stored), before })
    }

    /// Products with a stored matrix.
    pub(crate) fn of_matrix(stored: SharedMatrix<T>) -> Self {
        Self { stored, before: None }
    }

    /// Products with `2^exponent operator` for `columns` vectors: fused if that is a matrix as it is.
    pub(crate) fn of(operator: &SharedOperator<T>, exponent: i32, columns: usize) -> Result<Self> {
        Self::new(operator, false, exponent, columns)
    }

    /// [`Products::of`] the adjoint of `operator`.
    ///
    /// # Errors
    /// [`Error::Conflict`](crate::Error::Conflict) if there is none.
    pub(crate) fn of_adjoint(operator: &SharedOperator<T>, exponent: i32, columns: usize) -> Result<Self> {
        if let Some(matrix) = operator.as_matrix() {
            // Asked of every matrix: one that scatters has no transposed copy.
            matrix.transposed()?;
        }
        if !operator.has_adjoint() {
            return Err(no_adjoint());
        }
        Self::new(operator, true, exponent, columns)
    }

    /// [`Products::of`], if the launches may read another vector than the one that is multiplied: of a product of operators, such as
    /// `Z D Z'` or `A'A`, the last factor is fused.
    ///
    /// # Errors
    /// [`Error::Conflict`](crate::Error::Conflict) if the adjoint is asked for and there is none.
    pub(crate) fn of_factors(
        operator: &SharedOperator<T>,
        adjoint: bool,
        exponent: i32,
        columns: usize,
    ) -> Result<Self> {
        if let (Some(stored), 0, 1) = (last_factor(&**operator, adjoint), exponent, columns) {
            if adjoint && !operator.has_adjoint() {
                return Err(no_adjoint());
            }
            let lengths = between(&**operator, adjoint).into_iter();
            let between = lengths.map(|len| Vector::zeros(operator.device(), len)).collect::<Result<Vec<_>>>()?;
            let before = Some(Before::Factors { operator: operator.clone(), adjoint, between });
            return Ok(Self { stored, before });
        }
        if adjoint { Self::of_adjoint(operator, exponent, columns) } else { Self::of(operator, exponent, columns) }
    }

    /// Tells if an operator computes products, and no launch is left to do.
    pub(crate) fn is_external(&self) -> bool {
        matches!(self.before, Some(Before::Whole(_)))
    }

    /// Tells if launches multiply by the last of several factors.
    pub(crate) fn is_composed(&self) -> bool {
        matches!(self.before, Some(Before::Factors { .. }))
    }

    /// Tells if the launches multiply by themselves.
    pub(crate) fn is_fused(&self) -> bool {
        self.before.is_none()
    }

    /// The matrix that launches are given.
    pub(crate) fn stored(&self) -> RwLockReadGuard<'_, Stored<T>> {
        self.stored.read()
    }

    /// `y = A x`, if the launches that follow do not multiply by themselves.
    pub(crate) fn apply(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        match &self.before {
            Some(Before::Whole(operator)) => operator.apply(x, y),
            _ => Ok(()),
        }
    }

    /// `y = A'x` likewise.
    pub(crate) fn apply_adjoint(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        match &self.before {
            Some(Before::Whole(operator)) => operator.apply_adjoint(x, y),
            _ => Ok(()),
        }
    }

    /// Applies all factors but the last to `x`. Returns the last, and the vector that launches multiply by it: `x` itself if
    /// there are no other factors.
    pub(crate) fn apply_factors<'a>(
        &'a mut self,
        x: &'a Vector<T>,
    ) -> Result<(&'a SharedMatrix<T>, &'a Vector<T>)> {
        let Some(Before::Factors { operator, adjoint, between }) = &mut self.before else {
            return Ok((&self.stored, x));
        };
        let mut found = Vec::new();
        factors(&**operator, *adjoint, &mut found);
        for (k, (factor, adjoint)) in found[..between.len()].iter().enumerate() {
            let (done, rest) = between.split_at_mut(k);
            let (x, y) = (done.last().unwrap_or(x), &mut rest[0]);
            if *adjoint { factor.apply_adjoint(x, y)? } else { factor.apply(x, y)? }
        }
        Ok((&self.stored, between.last().unwrap_or(x)))
    }

    /// The matrices that a product multiplies by, one after another; none if an operator does a part of it.
    pub(crate) fn chain(&self) -> Option<Vec<SharedMatrix<T>>> {
        match &self.before {
            None => Some(vec![self.stored.clone()]),
            Some(Before::Whole(_)) => None,
            Some(Before::Factors { operator, adjoint, .. }) => {
                let mut found = Vec::new();
                factors(&**operator, *adjoint, &mut found);
                found.into_iter().map(|(factor, adjoint)| fused(factor, adjoint)).collect()
            }
        }
    }

    /// The vectors between the factors.
    pub(crate) fn between_mut(&mut self) -> &mut [Vector<T>] {
        match &mut self.before {
            Some(Before::Factors { between, .. }) => between,
            _ => &mut [],
        }
    }

    /// Launches that a product takes beside the one that sums it up.
    pub(crate) fn launches(&self) -> usize {
        match &self.before {
            None => 0,
            Some(Before::Whole(operator)) => operator.launches(1),
            Some(Before::Factors { operator, adjoint, between }) => {
                let mut found = Vec::new();
                factors(&**operator, *adjoint, &mut found);
                found[..between.len()].iter().map(|(factor, _)| factor.launches(1)).sum()
            }
        }
    }
}
