//! The trait of linear operators, and what an operator tells of its structure.

use std::sync::Arc;

use crate::device::Device;
use crate::error::{Error, Result, same_length};
use crate::matrix::Matrix;
use crate::number::Real;
use crate::sparse::{Csr, Format};
use crate::vector::Vector;

/// A linear map `A` of `cols` numbers to `rows` numbers, on one device.
///
/// A user implements [`apply`](Self::apply) with operations of [`Vector`], [`Matrix`] and other operators, and
/// [`apply_adjoint`](Self::apply_adjoint) with [`has_adjoint`](Self::has_adjoint) if least squares are to be solved;
/// [`adjoint_error`](super::adjoint_error) tells whether the two
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
    /// [`Error::Conflict`] if there is none; as [`apply`](Self::apply) with the lengths exchanged.
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

    /// Tells if [`apply_columns`](Self::apply_columns) takes several vectors, up to four. Solvers ask before they solve for several right-hand sides.
    fn takes_columns(&self) -> bool {
        false
    }

    /// `Y = A X` for `columns` vectors, interleaved as [`Columns`](crate::Columns) are. Column `c` of the result
    /// has the bits of [`apply`](Self::apply) to vector `c`.
    ///
    /// # Errors
    /// As [`apply`](Self::apply) with lengths `columns` times as large; [`Error::Conflict`] for several vectors unless it
    /// [takes them](Self::takes_columns).
    fn apply_columns(&self, columns: usize, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        if columns == 1 { self.apply(x, y) } else { Err(one_column(columns, self.kind())) }
    }

    /// [`apply_columns`](Self::apply_columns) of the adjoint.
    ///
    /// # Errors
    /// As [`apply_columns`](Self::apply_columns) with the lengths exchanged; [`Error::Conflict`] if there is no adjoint.
    fn apply_adjoint_columns(&self, columns: usize, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        if columns == 1 { self.apply_adjoint(x, y) } else { Err(one_column(columns, self.kind())) }
    }

    /// The Frobenius norm `sqrt(sum of the squares of all entries)`, if it is known.
    fn frobenius_norm(&self) -> Option<f64> {
        None
    }

    /// An upper bound of the 2-norm if a close one is known, for stopping tests; solvers that need one estimate it otherwise.
    fn norm_bound(&self) -> Option<f64> {
        self.frobenius_norm()
    }

    /// Bytes it holds on the device by itself, for the plan of a solve.
    fn bytes(&self) -> u64 {
        0
    }

    /// Kernel launches of one product with `columns` interleaved vectors, as far as they are known.
    fn launches(&self, _columns: usize) -> usize {
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
}

/// An operator with any number of owners: a solver holds one, and a program may keep another.
///
/// [`LinearOperator::shared`] makes one of any operator; a [`Matrix`] and the preconditioners of the library turn into one by
/// themselves if a solver takes them.
pub type SharedOperator<T> = Arc<dyn LinearOperator<T>>;

/// Structure of an operator.
#[non_exhaustive]
pub enum Structure<'a, T: Real> {
    /// A stored matrix, whose products are fused with the rest of an iteration.
    Matrix(&'a Matrix<T>),
    /// A diagonal, which multiplies element by element.
    Diagonal(Arc<Vector<T>>),
    /// The adjoint of an operator.
    Adjoint(&'a dyn LinearOperator<T>),
    /// The product of two operators: first the second, then the first.
    Product([&'a dyn LinearOperator<T>; 2]),
    /// Rows in subsets, each an operator of its own.
    Subsets(RowSubsets<'a, T>),
    /// Nothing that a solver can use: it asks the operator for its products.
    Opaque,
}

/// Subsets of the rows of an operator. Blocks of `run` rows are dealt out to them in turn: see
/// [`Subsets`](super::Subsets).
#[derive(Clone, Copy)]
pub struct RowSubsets<'a, T: Real> {
    /// There is one at least.
    pub(super) parts: &'a [SharedOperator<T>],
    pub(super) run: usize,
}

impl<'a, T: Real> RowSubsets<'a, T> {
    /// The subsets; there is one at least.
    pub fn parts(&self) -> &'a [SharedOperator<T>] {
        self.parts
    }

    /// Consecutive rows that belong to one subset.
    pub fn run(&self) -> usize {
        self.run
    }
}

impl<T: Real> dyn LinearOperator<T> + '_ {
    /// The matrix it is, if it is one.
    pub(crate) fn as_matrix(&self) -> Option<&Matrix<T>> {
        if let Structure::Matrix(matrix) = self.structure() { Some(matrix) } else { None }
    }

    /// The subsets of its rows, if it has some.
    pub(crate) fn as_subsets(&self) -> Option<RowSubsets<'_, T>> {
        if let Structure::Subsets(subsets) = self.structure() { Some(subsets) } else { None }
    }

    /// Format of the matrix it is, or of its first subset; on the fly for all that is not stored.
    pub(crate) fn stored_format(&self) -> Format {
        let first = self.as_subsets().and_then(|subsets| subsets.parts.first());
        let matrix = self.as_matrix().or_else(|| first?.as_matrix());
        matrix.map_or(Format::OnTheFly, Matrix::format)
    }

    /// The diagonal it is, if it multiplies element by element.
    pub(crate) fn as_diagonal(&self) -> Option<Arc<Vector<T>>> {
        if let Structure::Diagonal(entries) = self.structure() { Some(entries) } else { None }
    }
}

pub(super) fn cannot_update() -> Error {
    let what = "this operator takes no other values: make a new one".into();
    Error::Structure { what, row: None }
}

/// The error of several right-hand sides for an operator, called `what`, that takes one.
pub(crate) fn one_column(columns: usize, what: &str) -> Error {
    let reason = format!(
        "{columns} right-hand sides at once, of which {what} takes one: solve for one after another (at once take: a matrix, \
         a projector, subsets of these, and Jacobi's preconditioner)"
    );
    Error::Conflict { name: "columns", reason }
}

pub(crate) fn no_adjoint() -> Error {
    let reason = "it has no product with its transposed: a Matrix or SplitRows needs with_transpose, an operator of your own \
                  apply_adjoint and has_adjoint";
    Error::Conflict { name: "operator", reason: reason.into() }
}

/// Makes an operator turn into a shared one by itself; with `cloned` a reference to it too, by a cheap clone that shares its memory.
macro_rules! into_shared {
    ($name:ident) => {
        impl<T: Real> From<$name<T>> for SharedOperator<T> {
            fn from(operator: $name<T>) -> Self {
                operator.shared()
            }
        }
    };
    ($name:ident cloned) => {
        into_shared!($name);

        impl<T: Real> From<&$name<T>> for SharedOperator<T> {
            fn from(operator: &$name<T>) -> Self {
                operator.clone().shared()
            }
        }
    };
}
pub(crate) use into_shared;

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
            fn takes_columns(&self) -> bool {
                (**self).takes_columns()
            }
            fn apply_columns(&self, columns: usize, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
                (**self).apply_columns(columns, x, y)
            }
            fn apply_adjoint_columns(&self, columns: usize, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
                (**self).apply_adjoint_columns(columns, x, y)
            }
            fn frobenius_norm(&self) -> Option<f64> {
                (**self).frobenius_norm()
            }
            fn norm_bound(&self) -> Option<f64> {
                (**self).norm_bound()
            }
            fn bytes(&self) -> u64 {
                let bytes: fn(&Self) -> u64 = $bytes;
                bytes(self)
            }
            fn launches(&self, columns: usize) -> usize {
                (**self).launches(columns)
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

into_shared!(Matrix cloned);

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
    fn takes_columns(&self) -> bool {
        true
    }
    fn apply_columns(&self, columns: usize, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        self.multiply_interleaved(columns, x, y)
    }
    fn apply_adjoint_columns(&self, columns: usize, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        if columns == 1 {
            self.multiply_transposed(x, y)
        } else {
            self.multiply_interleaved_transposed(columns, x, y)
        }
    }
    fn frobenius_norm(&self) -> Option<f64> {
        Some(self.frobenius_norm())
    }
    fn bytes(&self) -> u64 {
        self.bytes()
    }
    fn structure(&self) -> Structure<'_, T> {
        Structure::Matrix(self)
    }
    fn update_values(&self, a: &Csr<T>) -> Result<()> {
        Matrix::update_values(self, a)
    }
}

/// Fails unless `x` and `y` fit an operator of this shape.
pub(crate) fn check_shape<T: Real>((rows, cols): (usize, usize), x: &Vector<T>, y: &Vector<T>) -> Result<()> {
    same_length("vector to multiply", cols, x.len())?;
    same_length("result of a product", rows, y.len())
}
