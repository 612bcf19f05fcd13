//! A penalty of the user's own, which CGNR minimises beside the misfit.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};
use crate::number::Real;
use crate::solver::stopping::Limits;
use crate::vector::Vector;

/// A penalty `R(x)` of the user's own, for [`Method::Cgnr`](crate::Method::Cgnr): `min |A x - b|² / 2 + R(x)`.
///
/// A user implements the gradient `F(x, x)`, and the curvature `F(x, v) = H(x) v` if there is one that is linear in `v`, with operations
/// of [`Vector`], [`Matrix`](crate::Matrix), [`Pointwise`](crate::Pointwise) and other operators, all on one device. Nothing in it
/// needs to wait for the device. [`Regularization`](crate::Regularization) has penalties of the library, which are fused with the iterations.
///
/// ```
/// use residuum::{Csr, Device, Format, Matrix, Method, Penalty, Pointwise, Result, Setup, Solver, Stopping, Vector};
///
/// /// `R(x) = sum_i sqrt(x_i² + epsilon²)`, which prefers few values.
/// struct Few(Pointwise<f64, 2, 1>, f64);
///
/// impl Penalty<f64> for Few {
///     fn gradient(&mut self, x: &Vector<f64>, out: &mut Vector<f64>) -> Result<()> {
///         self.curvature(x, x, out)
///     }
///     fn has_curvature(&self) -> bool {
///         true
///     }
///     fn curvature(&mut self, x: &Vector<f64>, v: &Vector<f64>, out: &mut Vector<f64>) -> Result<()> {
///         self.0.apply([x, v], [self.1 * self.1], out)
///     }
/// }
///
/// let device = Device::best()?;
/// let weighed = Pointwise::new(&device, "quotient(x1, root(x0 * x0 + p0))", |m, [x, v], [e]| m.quotient(v, m.root(x * x + e)))?;
/// let a = Csr::from_rows(1, 2, |_, row| row.extend([(0, 2.0), (1, 1.0)]))?;
/// let a = Matrix::with_transpose(&device, &a, Format::Csr)?;
/// let setup = Setup::new(Method::Cgnr, Stopping::for_precision::<f64>()).with_penalty(Few(weighed, 1e-3));
/// let b = Vector::from_slice(&device, &[4.0])?;
/// let mut x = Vector::zeros(&device, 2)?;
/// Solver::with(&a, setup)?.solve(&b, &mut x)?;
/// let x = x.to_vec()?;
/// assert!(x[0] > 1.7 && x[1].abs() < 0.01, "{x:?}"); // the cheaper of the two explains the reading
/// # Ok::<(), residuum::Error>(())
/// ```
pub trait Penalty<T: Real>: Send {
    /// `out = F(x, x)`, the gradient of `R` at `x`; `out` is overwritten whatever it held. With several images at once both are
    /// interleaved as [`Columns`](crate::Columns) are.
    ///
    /// # Errors
    /// Those of what it calls; a solve ends with them.
    fn gradient(&mut self, x: &Vector<T>, out: &mut Vector<T>) -> Result<()>;

    /// Tells if [`curvature`](Self::curvature) works. Without it the step is that of a secant: one more gradient, at the end of the
    /// step that would be right without a penalty.
    fn has_curvature(&self) -> bool {
        false
    }

    /// `out = F(x, v) = H(x) v`: `H` symmetric, without negative eigenvalues, and `H(x) x` the gradient at `x` or `H` its derivative. If
    /// `R(x + v) <= R(x) + F(x, x).v + v.H(x) v / 2`, no step increases what is minimised.
    ///
    /// # Errors
    /// As [`gradient`](Self::gradient).
    fn curvature(&mut self, _x: &Vector<T>, _v: &Vector<T>, _out: &mut Vector<T>) -> Result<()> {
        Err(Error::Conflict { name: "penalty", reason: "it has no curvature".into() })
    }

    /// At least the norm of `H`, for the scaling of the system and the smallest gradient that rounding leaves; 0 if none is known.
    fn norm_bound(&self) -> f64 {
        0.0
    }

    /// Images that it takes at once, as many as [`Setup::columns`](crate::Setup::columns) says.
    fn columns(&self) -> usize {
        1
    }

    /// Bytes it holds on the device by itself, for the plan of a solve.
    fn bytes(&self) -> u64 {
        0
    }
}

/// A penalty with any number of owners: a program that keeps one can give it other weights between solves.
pub type SharedPenalty<T> = Arc<Mutex<dyn Penalty<T>>>;

/// The penalty itself, whatever became of a thread that used it.
pub(crate) fn lock<P: ?Sized>(penalty: &Mutex<P>) -> MutexGuard<'_, P> {
    penalty.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The refusal of regularizations beside a penalty.
pub(crate) fn in_place_of_regularizations() -> Error {
    Error::Conflict { name: "penalty", reason: "it takes the place of regularizations".into() }
}

/// A penalty in the units of a solve.
pub(crate) struct Penalised<T: Real> {
    penalty: SharedPenalty<T>,
    /// Exponents of the powers of two that make of `x` what the user gave, and of a gradient what the solve wants, column by column.
    shifts: [Vec<i32>; 2],
    /// `x` and `v` in the units of the user, if those are others.
    given: Option<[Vector<T>; 2]>,
}

impl<T: Real> Penalised<T> {
    pub(crate) fn new(penalty: &SharedPenalty<T>) -> Self {
        Self { penalty: Arc::clone(penalty), shifts: Default::default(), given: None }
    }

    /// Takes the units of a solve: with `A` multiplied by 2^m and `b` by 2^k, `x` is by 2^(k - m), the gradient by 2^(k + m).
    pub(crate) fn take_units(&mut self, limits: &[Limits]) {
        let exponents = || limits.iter().map(|limits| limits.exponents);
        self.shifts = [exponents().map(|[k, m]| m - k).collect(), exponents().map(|[k, m]| k + m).collect()];
    }

    /// `out` = the gradient at `x`, or the product of `v` with the curvature there.
    pub(crate) fn ask(&mut self, x: &Vector<T>, v: Option<&Vector<T>>, out: &mut Vector<T>) -> Result<()> {
        let Self { penalty, shifts: [of_x, of_gradient], given } = self;
        let scaled = |shifts: &[i32]| shifts.iter().any(|shift| *shift != 0);
        let (x, v) = if scaled(of_x) {
            let vector = || Vector::zeros(x.device(), x.len());
            let [held_x, held_v] = match given {
                Some(held) => held,
                None => given.insert([vector()?, vector()?]),
            };
            for (held, of_solve) in [(&mut *held_x, Some(x)), (&mut *held_v, v)] {
                if let Some(of_solve) = of_solve {
                    held.copy_from(of_solve)?;
                    held.scale_columns(of_x)?;
                }
            }
            (&*held_x, v.map(|_| &*held_v))
        } else {
            (x, v)
        };
        match v {
            None => lock(penalty).gradient(x, out)?,
            Some(v) => lock(penalty).curvature(x, v, out)?,
        }
        if scaled(of_gradient) { out.scale_columns(of_gradient) } else { Ok(()) }
    }
}
