//! Linear operators: what a solver multiplies by. A stored [`Matrix`] is one, a stencil or a scanner's projector that is
//! never stored, a user's own [`LinearOperator`], and sums, products, multiples and transposes of any of them.

mod algebra;
mod deflation;
mod diagonal;
mod generated;
mod split;
mod stencil;
mod subsets;

pub use algebra::{Adjoint, Identity, ProductOperator, Scale, SumOperator};
pub use deflation::Deflation;
pub use diagonal::Diagonal;
pub use generated::Generated;
pub use split::SplitRows;
pub use stencil::{Rim, Stencil};
pub use subsets::Subsets;
pub(crate) use subsets::{SubsetsScratch, check_count};

use std::sync::Arc;

use crate::device::Device;
use crate::error::{Error, Result, same_length};
use crate::magnitude::{self, Magnitude};
use crate::matrix::Matrix;
use crate::number::{Precision, Real};
use crate::sparse::gallery::Random;
use crate::sparse::{Csr, Format};
use crate::vector::Vector;

/// A linear map `A` of `cols` numbers to `rows` numbers, on one device.
///
/// A user implements [`apply`](Self::apply) with operations of [`Vector`], [`Matrix`] and other operators, and
/// [`apply_adjoint`](Self::apply_adjoint) with [`has_adjoint`](Self::has_adjoint) if least squares are to be solved;
/// [`adjoint_error`] tells whether the two
/// belong together. Products are queued: nothing in an operator needs to wait for the device.
///
/// ```
/// use residuum::operator::{LinearOperator, Stencil};
/// use residuum::{Device, Result, Stopping, Vector, Method, Solver};
///
/// /// `A + shift`, for any square `A`.
/// struct Shifted<A>(A, f64);
///
/// impl<A: LinearOperator<f64>> LinearOperator<f64> for Shifted<A> {
///     fn device(&self) -> &Device {
///         self.0.device()
///     }
///     fn rows(&self) -> usize {
///         self.0.rows()
///     }
///     fn cols(&self) -> usize {
///         self.0.cols()
///     }
///     fn apply(&self, x: &Vector<f64>, y: &mut Vector<f64>) -> Result<()> {
///         self.0.apply(x, y)?;
///         y.axpby(self.1, x, 1.0)
///     }
/// }
///
/// let device = Device::best()?;
/// let a = Shifted(Stencil::laplacian_2d(40, 30)?.operator::<f64>(&device)?, 0.5);
/// let b = Vector::filled(&device, 1200, 1.0)?;
/// let mut x = Vector::zeros(&device, 1200)?;
/// let mut solver = Solver::new(a.shared(), Method::Cg, Stopping::for_precision::<f64>())?;
/// assert!(solver.solve(&b, &mut x)?.converged());
/// # Ok::<(), residuum::Error>(())
/// ```
pub trait LinearOperator<T: Real>: Send + Sync {
    /// Device that it multiplies on.
    fn device(&self) -> &Device;

    /// Length of `A x`.
    fn rows(&self) -> usize;

    /// Length of `x`.
    fn cols(&self) -> usize;

    /// `y = A x`; `y` is overwritten whatever it held. On the host a solve may call it on another thread than
    /// that which asked.
    ///
    /// # Errors
    /// [`Error::Shape`] unless `x` has `cols` and `y` has `rows` elements,
    /// [`Error::DeviceMismatch`].
    fn apply(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()>;

    /// `y = A'x`.
    ///
    /// # Errors
    /// [`Error::Option`] if there is none; as [`apply`](Self::apply) with the lengths exchanged.
    fn apply_adjoint(&self, _x: &Vector<T>, _y: &mut Vector<T>) -> Result<()> {
        Err(no_adjoint())
    }

    /// Name of the kind of operator, for messages: that of its type unless it is given another.
    fn kind(&self) -> &'static str {
        let name = std::any::type_name::<Self>();
        let plain = name.split('<').next().unwrap_or(name);
        plain.rsplit("::").next().unwrap_or(plain)
    }

    /// Tells if [`apply_adjoint`](Self::apply_adjoint) works. Solvers ask before they start.
    fn has_adjoint(&self) -> bool {
        false
    }

    /// An upper bound of the 2-norm if a close one is known (the Frobenius norm, for one), for stopping tests; solvers
    /// that need one estimate it otherwise.
    fn norm_bound(&self) -> Option<f64> {
        None
    }

    /// Bytes it holds on the device by itself, for the plan of a solve.
    fn bytes(&self) -> u64 {
        0
    }

    /// Kernel launches of one product, as far as they are known.
    fn launches(&self) -> usize {
        1
    }

    /// Structure of the operator. Solvers use it to fuse products with the rest of an iteration.
    fn structure(&self) -> Structure<'_, T> {
        Structure::Opaque
    }

    /// Takes the values that belong to `a`, whose entries stand in the same places as those of the matrix it was made from: the next
    /// time step of a simulation. Solvers that hold it use them in their next solve, with the bits of one that is made anew.
    /// Matrices do, and those preconditioners that say so. Meant between solves: one under way takes new values of a matrix from its next launch
    /// on, and those of a diagonal from its next start. Least squares with a preconditioner go on measuring gradients by the norm
    /// of `A M` that was estimated when they were set up.
    ///
    /// # Errors
    /// [`Error::Structure`] if it cannot, or if entries stand in other places; errors of the function that made it. What it held stays
    /// then.
    fn update_values(&self, _a: &Csr<T>) -> Result<()> {
        Err(cannot_update())
    }

    /// The operator as solvers hold it.
    fn shared(self) -> SharedOperator<T>
    where
        Self: Sized + 'static,
    {
        Arc::new(self)
    }

    /// `A'`.
    ///
    /// # Errors
    /// [`Error::Option`] if it has no adjoint.
    fn adjoint(self) -> Result<Adjoint<Self>>
    where
        Self: Sized,
    {
        Adjoint::new(self)
    }

    /// `alpha A`.
    fn scaled(self, alpha: T) -> Scale<Self, T>
    where
        Self: Sized,
    {
        Scale::new(self, alpha)
    }

    /// `A + B`.
    ///
    /// # Errors
    /// [`Error::Shape`] unless both have the same shape; as [`Vector::zeros`].
    fn plus<B: LinearOperator<T>>(self, other: B) -> Result<SumOperator<Self, B, T>>
    where
        Self: Sized,
    {
        SumOperator::new(self, other)
    }

    /// `A B`: first `B`, then `A`.
    ///
    /// # Errors
    /// [`Error::Shape`] unless `A` has as many columns as `B` has rows; as [`Vector::zeros`].
    fn times<B: LinearOperator<T>>(self, other: B) -> Result<ProductOperator<Self, B, T>>
    where
        Self: Sized,
    {
        ProductOperator::new(self, other)
    }
}

/// An operator with any number of owners: a solver holds one, and a program may keep another.
///
/// [`LinearOperator::shared`] makes one of any operator; a [`Matrix`] and the preconditioners of the library turn into one by
/// themselves if a solver takes them.
pub type SharedOperator<T> = Arc<dyn LinearOperator<T>>;

/// Structure of an operator.
#[non_exhaustive]
pub enum Structure<'a, T: Real> {
    /// A stored or traced matrix, whose products are fused with the rest of an iteration.
    Matrix(&'a Matrix<T>),
    /// A diagonal, which multiplies element by element.
    Diagonal(Arc<Vector<T>>),
    /// The adjoint of an operator.
    Adjoint(&'a dyn LinearOperator<T>),
    /// The product of two operators: first the second, then the first.
    Product([&'a dyn LinearOperator<T>; 2]),
    /// Rows in subsets, each an operator of its own.
    Subsets(&'a Subsets<T>),
    /// Nothing that a solver can use: it asks the operator for its products.
    Opaque,
}

impl<T: Real> dyn LinearOperator<T> + '_ {
    /// The matrix it is, if it is one.
    pub(crate) fn as_matrix(&self) -> Option<&Matrix<T>> {
        if let Structure::Matrix(matrix) = self.structure() { Some(matrix) } else { None }
    }

    /// The subsets of its rows, if it has some.
    pub(crate) fn as_subsets(&self) -> Option<&Subsets<T>> {
        if let Structure::Subsets(subsets) = self.structure() { Some(subsets) } else { None }
    }

    /// Format of the matrix it is, or of its first subset; on the fly for all that is not stored.
    pub(crate) fn stored_format(&self) -> Format {
        let first = self.as_subsets().and_then(|subsets| subsets.parts().first());
        let matrix = self.as_matrix().or_else(|| first?.as_matrix());
        matrix.map_or(Format::OnTheFly, Matrix::format)
    }

    /// Tells if it multiplies several interleaved vectors at once.
    pub(crate) fn takes_columns(&self) -> bool {
        self.as_matrix().is_some() || self.as_subsets().is_some_and(Subsets::takes_columns)
    }

    /// The diagonal it is, if it multiplies element by element.
    pub(crate) fn as_diagonal(&self) -> Option<Arc<Vector<T>>> {
        if let Structure::Diagonal(entries) = self.structure() { Some(entries) } else { None }
    }
}

/// The cheap clone of a matrix: both share its entries.
impl<T: Real> From<&Matrix<T>> for SharedOperator<T> {
    fn from(matrix: &Matrix<T>) -> Self {
        Arc::new(matrix.clone())
    }
}

impl<T: Real> From<Matrix<T>> for SharedOperator<T> {
    fn from(matrix: Matrix<T>) -> Self {
        Arc::new(matrix)
    }
}

impl<T: Real> From<Diagonal<T>> for SharedOperator<T> {
    fn from(diagonal: Diagonal<T>) -> Self {
        Arc::new(diagonal)
    }
}

/// The cheap clone: both share their entries.
impl<T: Real> From<&Diagonal<T>> for SharedOperator<T> {
    fn from(diagonal: &Diagonal<T>) -> Self {
        Arc::new(diagonal.clone())
    }
}

fn cannot_update() -> Error {
    let what = "this operator takes no other values: make a new one".into();
    Error::Structure { what, row: None }
}

pub(crate) fn no_adjoint() -> Error {
    let reason = "it has no product with its transposed: a Matrix or SplitRows needs with_transpose, an operator of your own \
                  apply_adjoint and has_adjoint";
    Error::Option { name: "operator", reason: reason.into() }
}

/// Operators behind pointers. What is shared is counted by its owner alone, so that `A'A` takes the bytes of one `A`.
macro_rules! forward_operator {
    ($($type:ty: $bytes:expr),+) => {
        $(impl<T: Real, A: LinearOperator<T> + ?Sized> LinearOperator<T> for $type {
            fn device(&self) -> &Device {
                (**self).device()
            }
            fn rows(&self) -> usize {
                (**self).rows()
            }
            fn cols(&self) -> usize {
                (**self).cols()
            }
            fn apply(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
                (**self).apply(x, y)
            }
            fn apply_adjoint(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
                (**self).apply_adjoint(x, y)
            }
            fn has_adjoint(&self) -> bool {
                (**self).has_adjoint()
            }
            fn norm_bound(&self) -> Option<f64> {
                (**self).norm_bound()
            }
            fn bytes(&self) -> u64 {
                let bytes: fn(&Self) -> u64 = $bytes;
                bytes(self)
            }
            fn launches(&self) -> usize {
                (**self).launches()
            }
            fn structure(&self) -> Structure<'_, T> {
                (**self).structure()
            }
            fn update_values(&self, a: &Csr<T>) -> Result<()> {
                (**self).update_values(a)
            }
        })+
    };
}
forward_operator!(&A: |_| 0, Arc<A>: |_| 0, Box<A>: |this| (**this).bytes());

impl<T: Real> LinearOperator<T> for Matrix<T> {
    fn device(&self) -> &Device {
        self.device()
    }
    fn rows(&self) -> usize {
        self.rows()
    }
    fn cols(&self) -> usize {
        self.cols()
    }
    fn apply(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        self.multiply(x, y)
    }
    fn apply_adjoint(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        self.multiply_transposed(x, y)
    }
    fn has_adjoint(&self) -> bool {
        self.has_transposed()
    }
    fn norm_bound(&self) -> Option<f64> {
        Some(self.frobenius_norm())
    }
    fn bytes(&self) -> u64 {
        self.bytes()
    }
    fn launches(&self) -> usize {
        self.product_launches(1)
    }
    fn structure(&self) -> Structure<'_, T> {
        Structure::Matrix(self)
    }
    fn update_values(&self, a: &Csr<T>) -> Result<()> {
        Matrix::update_values(self, a)
    }
}

/// A vector of seeded numbers in (-1, 1).
fn noise<T: Real>(device: &Device, len: usize, seed: u64) -> Result<Vector<T>> {
    Vector::from_slice(device, &noise_of(len, seed))
}

fn noise_of<T: Real>(len: usize, seed: u64) -> Vec<T> {
    let mut random = Random::new(seed);
    (0..len).map(|_| T::from_f64(2.0 * random.uniform() - 1.0)).collect()
}

/// Distance of `apply` and `apply_adjoint` from being adjoint: `|<A x, y> - <x, A'y>| / (|A x| |y|)` for seeded random `x`
/// and `y`. For a right pair it is a few units of rounding (`1e-7` in `f32`, `1e-16` in `f64`), for a wrong one the
/// order of 1. Least squares with a mismatched pair converge to something else, or not at all.
///
/// # Errors
/// Errors of the operator and of [`Vector`].
pub fn adjoint_error<T: Real>(operator: &dyn LinearOperator<T>, seed: u64) -> Result<f64> {
    let device = operator.device();
    let x = noise::<T>(device, operator.cols(), seed)?;
    let y = noise::<T>(device, operator.rows(), seed.wrapping_add(1))?;
    let (mut ax, mut aty) = (Vector::zeros(device, y.len())?, Vector::zeros(device, x.len())?);
    operator.apply(&x, &mut ax)?;
    operator.apply_adjoint(&y, &mut aty)?;
    let scale = ax.norm2()? * y.norm2()?;
    let difference = (ax.dot(&y)? - x.dot(&aty)?).abs();
    Ok(if scale > 0.0 { difference / scale } else { difference })
}

/// A lower estimate of the 2-norm, by `steps` steps of the power iteration on `A'A` from a seeded start. Ten steps are
/// within some ten percent for most operators.
///
/// # Errors
/// Errors of the operator, which needs an adjoint, and of [`Vector`].
pub fn estimate_norm<T: Real>(operator: &dyn LinearOperator<T>, steps: usize) -> Result<f64> {
    let device = operator.device();
    let (mut x, mut ax) = (Vector::zeros(device, operator.cols())?, Vector::zeros(device, operator.rows())?);
    estimate_norm_in(operator, steps, &mut x, &mut ax)
}

/// [`estimate_norm`] in vectors that are there.
pub(crate) fn estimate_norm_in<T: Real>(
    operator: &dyn LinearOperator<T>,
    steps: usize,
    x: &mut Vector<T>,
    ax: &mut Vector<T>,
) -> Result<f64> {
    x.write(&noise_of::<T>(operator.cols(), 1))?;
    let mut norm = 0.0;
    for _ in 0..steps {
        let length = x.norm2()?;
        if length == 0.0 || !length.is_finite() {
            break;
        }
        let inverse = T::from_f64(1.0 / length);
        if inverse.is_finite() && inverse != T::default() {
            x.scale(inverse)?;
        } else {
            // The inverse of the length is out of range in `T`: a power of two first, which brings the length near 1.
            x.scale_columns(&[-libm::ilogb(length)])?;
        }
        operator.apply(x, ax)?;
        norm = ax.norm2()?;
        operator.apply_adjoint(ax, x)?;
    }
    Ok(norm)
}

/// The order of magnitude of the 2-norm, for scaling: a norm if one is known, else `|A v| / |v|` for one seeded `v`, which
/// is larger or smaller if the result vanishes or overflows.
///
/// Cost: nothing, or a product and two vectors.
pub(crate) fn magnitude<T: Real>(operator: &dyn LinearOperator<T>) -> Result<Magnitude> {
    if let Some(matrix) = operator.as_matrix() {
        return Ok(matrix.frobenius());
    }
    if let Some(bound) = operator.norm_bound().filter(|bound| *bound > 0.0 && bound.is_finite()) {
        return Ok(Magnitude::of(bound));
    }
    // Half of what the exponents of `T` span.
    let far = match T::PRECISION {
        Precision::Single => 60,
        Precision::Double => 500,
    };
    let device = operator.device();
    let mut product = Vector::zeros(device, operator.rows())?;
    for exponent in [0, -far, far] {
        let mut v = noise::<T>(device, operator.cols(), 1)?;
        if exponent != 0 {
            v.scale_columns(&[exponent])?;
        }
        let length = v.norm2()?;
        operator.apply(&v, &mut product)?;
        let found = product.norm2()?;
        if found > 0.0 && found.is_finite() && length > 0.0 {
            return Ok(Magnitude { value: magnitude::scale(found, -libm::ilogb(length)), exponent: 0 });
        }
    }
    Ok(Magnitude::of(0.0))
}

/// The Frobenius norm: exact for a [`Matrix`] and [`Subsets`] of some, otherwise estimated by products with eight seeded vectors of signs, whose
/// mean square norm it is (Hutchinson 1990).
///
/// # Errors
/// Errors of the operator and of [`Vector`].
pub fn frobenius_norm<T: Real>(operator: &dyn LinearOperator<T>) -> Result<f64> {
    const PROBES: u64 = 8;
    if let Some(matrix) = operator.as_matrix() {
        return Ok(matrix.frobenius_norm());
    }
    if let Some(norm) = operator.as_subsets().filter(|s| s.takes_columns()).and_then(|s| s.norm_bound()) {
        return Ok(norm);
    }
    let device = operator.device();
    let mut product = Vector::zeros(device, operator.rows())?;
    let mut square = 0.0;
    for seed in 0..PROBES {
        let mut random = Random::new(seed);
        let sign = |bits: u64| T::from_f64(if bits & 1 == 0 { 1.0 } else { -1.0 });
        let signs: Vec<T> = (0..operator.cols()).map(|_| sign(random.next() >> 40)).collect();
        operator.apply(&Vector::from_slice(device, &signs)?, &mut product)?;
        square += product.norm2()?.powi(2);
    }
    Ok((square / PROBES as f64).sqrt())
}

/// Fails unless `x` and `y` fit an operator of this shape.
pub(crate) fn check_shape<T: Real>((rows, cols): (usize, usize), x: &Vector<T>, y: &Vector<T>) -> Result<()> {
    same_length("vector to multiply", cols, x.len())?;
    same_length("result of a product", rows, y.len())
}
