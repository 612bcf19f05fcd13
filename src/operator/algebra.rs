//! Operators made of operators. Those that need a vector in between allocate it once, when they are made.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::linear::{LinearOperator, Structure, check_shape, no_adjoint};
use crate::device::Device;
use crate::error::{Result, same_length};
use crate::matrix::Matrix;
use crate::number::Real;
use crate::vector::Vector;

/// Operators made of others: `A'`, `alpha A`, `A + B`, `A B`. Every operator has these.
///
/// ```
/// use residuum::operator::{Diagonal, LinearOperator, LinearOperatorExt, Stencil};
/// use residuum::{Device, Vector};
///
/// let device = Device::best()?;
/// let a = Stencil::laplacian_2d(8, 8)?.operator::<f64>(&device)?;
/// let d = Diagonal::new(Vector::filled(&device, 64, 0.5)?)?;
/// let operator = a.times(d.clone())?.plus(d.scaled(-2.0))?;
/// assert_eq!((operator.rows(), operator.cols()), (64, 64));
/// # Ok::<(), residuum::Error>(())
/// ```
pub trait LinearOperatorExt<T: Real>: LinearOperator<T> + Sized {
    /// `A'`.
    ///
    /// # Errors
    /// [`Error::Conflict`](crate::Error::Conflict) if it has no adjoint.
    fn adjoint(self) -> Result<Adjoint<Self>> {
        Adjoint::new(self)
    }

    /// `alpha A`.
    fn scaled(self, alpha: T) -> Scale<Self, T> {
        Scale::new(self, alpha)
    }

    /// `A + B`.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) unless both have the same shape; as [`Vector::zeros`].
    fn plus<B: LinearOperator<T>>(self, other: B) -> Result<SumOperator<Self, B, T>> {
        SumOperator::new(self, other)
    }

    /// `A B`: first `B`, then `A`.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) unless `A` has as many columns as `B` has rows; as [`Vector::zeros`].
    fn times<B: LinearOperator<T>>(self, other: B) -> Result<ProductOperator<Self, B, T>> {
        ProductOperator::new(self, other)
    }
}

impl<T: Real, A: LinearOperator<T>> LinearOperatorExt<T> for A {}

/// A vector in between, for one product at a time.
#[derive(Debug)]
struct Scratch<T: Real>(Mutex<Vector<T>>);

impl<T: Real> Scratch<T> {
    fn new(device: &Device, len: usize) -> Result<Self> {
        Ok(Self(Mutex::new(Vector::zeros(device, len)?)))
    }

    fn lock(&self) -> MutexGuard<'_, Vector<T>> {
        // Each product overwrites what another, perhaps one that panicked, left.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn bytes(&self) -> u64 {
        (self.lock().len() * T::PRECISION.bytes()) as u64
    }
}

/// `A'`, see [`LinearOperatorExt::adjoint`].
#[derive(Clone, Copy, Debug)]
pub struct Adjoint<A>(A);

impl<A> Adjoint<A> {
    pub(super) fn new<T: Real>(operator: A) -> Result<Self>
    where
        A: LinearOperator<T>,
    {
        if operator.has_adjoint() { Ok(Self(operator)) } else { Err(no_adjoint()) }
    }
}

impl<T: Real, A: LinearOperator<T>> LinearOperator<T> for Adjoint<A> {
    fn device(&self) -> &Device {
        self.0.device()
    }
    fn rows(&self) -> usize {
        self.0.cols()
    }
    fn cols(&self) -> usize {
        self.0.rows()
    }
    fn apply(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        self.0.apply_adjoint(x, y)
    }
    fn apply_adjoint(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        self.0.apply(x, y)
    }
    fn has_adjoint(&self) -> bool {
        true
    }
    fn takes_columns(&self) -> bool {
        self.0.takes_columns()
    }
    fn apply_columns(&self, columns: usize, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        self.0.apply_adjoint_columns(columns, x, y)
    }
    fn apply_adjoint_columns(&self, columns: usize, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        self.0.apply_columns(columns, x, y)
    }
    fn frobenius_norm(&self) -> Option<f64> {
        self.0.frobenius_norm()
    }
    fn norm_bound(&self) -> Option<f64> {
        self.0.norm_bound()
    }
    fn bytes(&self) -> u64 {
        self.0.bytes()
    }
    fn launches(&self, columns: usize) -> usize {
        self.0.launches(columns)
    }
    fn structure(&self) -> Structure<'_, T> {
        Structure::Adjoint(&self.0)
    }
}

/// `alpha A`, see [`LinearOperatorExt::scaled`].
#[derive(Clone, Copy, Debug)]
pub struct Scale<A, T> {
    operator: A,
    alpha: T,
}

impl<A, T> Scale<A, T> {
    pub(super) fn new(operator: A, alpha: T) -> Self {
        Self { operator, alpha }
    }
}

impl<T: Real, A: LinearOperator<T>> LinearOperator<T> for Scale<A, T> {
    fn device(&self) -> &Device {
        self.operator.device()
    }
    fn rows(&self) -> usize {
        self.operator.rows()
    }
    fn cols(&self) -> usize {
        self.operator.cols()
    }
    fn apply(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        self.operator.apply(x, y)?;
        y.scale(self.alpha)
    }
    fn apply_adjoint(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        self.operator.apply_adjoint(x, y)?;
        y.scale(self.alpha)
    }
    fn has_adjoint(&self) -> bool {
        self.operator.has_adjoint()
    }
    fn norm_bound(&self) -> Option<f64> {
        self.operator.norm_bound().map(|norm| norm * self.alpha.to_f64().abs())
    }
    fn bytes(&self) -> u64 {
        self.operator.bytes()
    }
    fn launches(&self, columns: usize) -> usize {
        self.operator.launches(columns) + 1
    }
}

/// `A + B`, see [`LinearOperatorExt::plus`]. Holds a vector of `rows` and, if there are adjoints, one of `cols`.
#[derive(Debug)]
pub struct SumOperator<A, B, T: Real> {
    left: A,
    right: B,
    scratch: [Scratch<T>; 2],
}

impl<T: Real, A: LinearOperator<T>, B: LinearOperator<T>> SumOperator<A, B, T> {
    pub(super) fn new(left: A, right: B) -> Result<Self> {
        same_length("rows of operators to add", left.rows(), right.rows())?;
        same_length("columns of operators to add", left.cols(), right.cols())?;
        let both = left.has_adjoint() && right.has_adjoint();
        let device = left.device();
        let scratch =
            [Scratch::new(device, left.rows())?, Scratch::new(device, if both { left.cols() } else { 0 })?];
        Ok(Self { left, right, scratch })
    }
}

impl<T: Real, A: LinearOperator<T>, B: LinearOperator<T>> LinearOperator<T> for SumOperator<A, B, T> {
    fn device(&self) -> &Device {
        self.left.device()
    }
    fn rows(&self) -> usize {
        self.left.rows()
    }
    fn cols(&self) -> usize {
        self.left.cols()
    }
    fn apply(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        let mut other = self.scratch[0].lock();
        self.right.apply(x, &mut other)?;
        self.left.apply(x, y)?;
        y.axpby(T::from_f64(1.0), &other, T::from_f64(1.0))
    }
    fn apply_adjoint(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        if !self.has_adjoint() {
            return Err(no_adjoint());
        }
        let mut other = self.scratch[1].lock();
        self.right.apply_adjoint(x, &mut other)?;
        self.left.apply_adjoint(x, y)?;
        y.axpby(T::from_f64(1.0), &other, T::from_f64(1.0))
    }
    fn has_adjoint(&self) -> bool {
        self.left.has_adjoint() && self.right.has_adjoint()
    }
    fn norm_bound(&self) -> Option<f64> {
        Some(self.left.norm_bound()? + self.right.norm_bound()?)
    }
    fn bytes(&self) -> u64 {
        self.left.bytes() + self.right.bytes() + self.scratch.iter().map(Scratch::bytes).sum::<u64>()
    }
    fn launches(&self, columns: usize) -> usize {
        self.left.launches(columns) + self.right.launches(columns) + 1
    }
}

/// `A B`, see [`LinearOperatorExt::times`]. Holds the vector between the two.
#[derive(Debug)]
pub struct ProductOperator<A, B, T: Real> {
    left: A,
    right: B,
    scratch: Scratch<T>,
}

impl<T: Real, A: LinearOperator<T>, B: LinearOperator<T>> ProductOperator<A, B, T> {
    pub(super) fn new(left: A, right: B) -> Result<Self> {
        same_length("rows of the right operator of a product", left.cols(), right.rows())?;
        let scratch = Scratch::new(left.device(), left.cols())?;
        Ok(Self { left, right, scratch })
    }
}

impl<T: Real, A: LinearOperator<T>, B: LinearOperator<T>> LinearOperator<T> for ProductOperator<A, B, T> {
    fn device(&self) -> &Device {
        self.left.device()
    }
    fn rows(&self) -> usize {
        self.left.rows()
    }
    fn cols(&self) -> usize {
        self.right.cols()
    }
    fn apply(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        let mut between = self.scratch.lock();
        self.right.apply(x, &mut between)?;
        self.left.apply(&between, y)
    }
    fn apply_adjoint(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        let mut between = self.scratch.lock();
        self.left.apply_adjoint(x, &mut between)?;
        self.right.apply_adjoint(&between, y)
    }
    fn has_adjoint(&self) -> bool {
        self.left.has_adjoint() && self.right.has_adjoint()
    }
    // No bound: the product of two is often so far above the norm that a test against it passes at once.
    fn bytes(&self) -> u64 {
        // A matrix and its adjoint are held once.
        let shared = match (matrix_of(&self.left), matrix_of(&self.right)) {
            (Some(left), Some(right)) => left.forward().is(right.forward()),
            _ => false,
        };
        self.left.bytes() + if shared { 0 } else { self.right.bytes() } + self.scratch.bytes()
    }
    fn launches(&self, columns: usize) -> usize {
        self.left.launches(columns) + self.right.launches(columns)
    }
    fn structure(&self) -> Structure<'_, T> {
        Structure::Product([&self.left, &self.right])
    }
}

/// The stored matrix by which `operator` or its adjoint multiplies.
fn matrix_of<T: Real>(operator: &dyn LinearOperator<T>) -> Option<&Matrix<T>> {
    match operator.structure() {
        Structure::Matrix(matrix) => Some(matrix),
        Structure::Adjoint(operator) => matrix_of(operator),
        _ => None,
    }
}

/// The identity of `n` numbers: `A + damp I`, for one, is `a.plus(Identity::new(&device, n).scaled(damp))`.
#[derive(Clone, Debug)]
pub struct Identity {
    device: Device,
    n: usize,
}

impl Identity {
    /// The identity of `n` numbers on `device`.
    pub fn new(device: &Device, n: usize) -> Self {
        Self { device: device.clone(), n }
    }
}

impl<T: Real> LinearOperator<T> for Identity {
    fn device(&self) -> &Device {
        &self.device
    }
    fn rows(&self) -> usize {
        self.n
    }
    fn cols(&self) -> usize {
        self.n
    }
    fn apply(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        check_shape((self.n, self.n), x, y)?;
        y.copy_from(x)
    }
    fn apply_adjoint(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        self.apply(x, y)
    }
    fn has_adjoint(&self) -> bool {
        true
    }
    fn norm_bound(&self) -> Option<f64> {
        Some(1.0)
    }
}
