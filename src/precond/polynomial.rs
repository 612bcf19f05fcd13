//! Polynomials in the matrix: Chebyshev's, of the first and of the fourth kind.
//!
//! ```text
//!   z_0 = 0,  z_1 = step_0 D^-1 x,   z_(k+1) = z_k + keep_k (z_k - z_(k-1)) + step_k D^-1 (x - A z_k),   M x = z_degree+1
//!
//!   fourth kind, eigenvalues of D^-1 A up to b:       keep_k = (2k - 1) / (2k + 3),  step_k = (8k + 4) / ((2k + 3) b)
//!   first kind, in [a, b], theta = (a + b) / 2, delta = (b - a) / 2:
//!       rho_0 = delta / theta,  rho_k = 1 / (2 theta / delta - rho_(k-1)),  keep_k = rho_k rho_(k-1),  step_k = 2 rho_k / delta
//!       (step_0 = 1 / theta)
//! ```
//!
//! `b` is Gershgorin's bound for `D^-1/2 A D^-1/2`, whose eigenvalues are those of `D^-1 A`. It is never below the largest of them,
//! so `M` is symmetric positive definite if `A` is. The fourth kind needs `b` alone. The first kind needs `a = b / ratio` as well: it
//! reduces errors of eigenvalues in `[a, b]` more than the fourth kind does, and those of smaller eigenvalues less. A product with `M`
//! computes no dot product, and needs no order of rows.
//!
//! Source: Y. Saad, "Iterative methods for sparse linear systems", 2nd ed. 2003, 12.3.2 (first kind); J. Lottes, "Optimal polynomial
//! smoothers for multigrid V-cycles", Numer. Linear Algebra Appl. 30 (2023), algorithm 1 (fourth kind).

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

use super::kind::{Made, Parameters, PreconditionerKind, Source, Symmetry, stored_bytes};
use super::support::check_symmetric;
use crate::backend::precond::polynomial::Given;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::matrix::Matrix;
use crate::number::{Real, per_number};
use crate::operator::{LinearOperator, SharedOperator, check_shape, into_shared};
use crate::setters::setters;
use crate::sparse::{AsCsr, Csr, Format};
use crate::threads;
use crate::vector::Vector;

/// Highest degree.
const MOST_DEGREE: usize = 64;

/// Options of [`Polynomial::new`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct PolynomialOptions {
    /// Products with the matrix in each product with the polynomial, 1 to 64.
    pub degree: usize,
    /// Ratio of the ends of the interval of the first kind, above 1; `None` for the fourth kind, which needs none.
    pub ratio: Option<f64>,
}

impl Default for PolynomialOptions {
    fn default() -> Self {
        Self::fourth_kind(3)
    }
}

impl PolynomialOptions {
    setters! {
        with_degree: degree(usize),
        with_ratio: ratio(impl f64),
    }

    /// The fourth kind.
    pub const fn fourth_kind(degree: usize) -> Self {
        Self { degree, ratio: None }
    }

    /// The first kind, for eigenvalues between the largest one and that divided by `ratio`.
    pub fn first_kind(degree: usize, ratio: f64) -> Self {
        Self { degree, ratio: Some(ratio) }
    }
}

/// A Chebyshev polynomial in `D^-1 A` times `D^-1`, for a symmetric positive definite `A` with the diagonal `D`, as
/// an operator. Every device gives the same bits. [`LinearOperator::update_values`] writes the new values to its
/// matrix too, which other owners of that matrix see.
///
/// # Cost
/// Held: the matrix, unless it is shared, `D^-1` and two vectors. A product takes `degree` products with the matrix, which read 3 vectors
/// more, read and write 2, and 3 launches besides.
///
/// ```
/// use residuum::precond::{Polynomial, PolynomialOptions};
/// use residuum::sparse::gallery;
/// use residuum::{Device, Format, Matrix, Method, Setup, Solver, Stopping, Vector};
///
/// let device = Device::best()?;
/// let a = gallery::poisson_2d::<f64>(20, 0.0)?;
/// let m = Polynomial::new(&device, &a, PolynomialOptions::fourth_kind(4))?;
/// let matrix = Matrix::new(&device, &a, Format::Auto)?;
/// let b = Vector::filled(&device, a.rows(), 1.0)?;
/// let mut x = Vector::zeros(&device, a.cols())?;
/// let setup = Setup::new(Method::Cg, Stopping::for_precision::<f64>()).with_preconditioner(m);
/// assert!(Solver::with(&matrix, setup)?.solve(&b, &mut x)?.converged());
/// # Ok::<(), residuum::Error>(())
/// ```
#[derive(Debug)]
pub struct Polynomial<T: Real> {
    matrix: Matrix<T>,
    /// True if nobody else holds the matrix.
    owned: bool,
    options: PolynomialOptions,
    /// Held for one product.
    state: Mutex<State<T>>,
}

/// Numbers that belong to the values of the matrix, and room for a product.
#[derive(Debug)]
struct State<T: Real> {
    inverse: Vector<T>,
    coefficients: Coefficients<T>,
    scratch: [Vector<T>; 2],
}

#[derive(Debug)]
struct Coefficients<T> {
    /// Factor of the first term.
    first: T,
    /// `keep` and `step` of each product.
    factors: Vec<[T; 2]>,
}

per_number! {
    fn on<T>(matrix: Matrix<T>, a: &Csr<T>, options: PolynomialOptions) -> Result<Polynomial<T>> = Polynomial::on_here;
    fn update_values<T>(this: &Polynomial<T>, a: &Csr<T>) -> Result<()> = Polynomial::update_values_here;
    fn apply<T>(this: &Polynomial<T>, x: &Vector<T>, z: &mut Vector<T>) -> Result<()> = Polynomial::apply_here;
}

impl<T: Real> Polynomial<T> {
    /// Makes it for the symmetric positive definite matrix `a`, which it stores.
    ///
    /// # Errors
    /// [`Error::Shape`] for a matrix that is not square, [`Error::NotFinite`], [`Error::Option`] for a degree or a ratio out of range,
    /// [`Error::Structure`] with the row of an entry that is not symmetric, or of a diagonal entry that is not positive or whose inverse
    /// overflows; [`Error::Memory`].
    pub fn new(device: &Device, a: &(impl AsCsr<T> + ?Sized), options: PolynomialOptions) -> Result<Self> {
        let a = &*a.as_csr()?;
        Ok(Self { owned: true, ..on(Matrix::new(device, a, Format::Auto)?, a, options)? })
    }

    /// [`Polynomial::new`], with the entries of a matrix that was made from `a` already.
    ///
    /// # Errors
    /// As [`Polynomial::new`]; [`Error::Shape`] for a matrix of another size.
    pub fn sharing(matrix: &Matrix<T>, a: &(impl AsCsr<T> + ?Sized), options: PolynomialOptions) -> Result<Self> {
        let a = &*a.as_csr()?;
        on(matrix.clone(), a, options)
    }

    fn on_here(matrix: Matrix<T>, a: &Csr<T>, options: PolynomialOptions) -> Result<Self> {
        check_symmetric(a)?;
        crate::error::same_length("rows of the matrix of a polynomial", a.rows(), matrix.rows())?;
        options.check()?;
        let device = matrix.device();
        let (inverse, coefficients) = options.found(a)?;
        let vector = || Vector::zeros(device, a.rows());
        let state =
            State { inverse: Vector::from_slice(device, &inverse)?, coefficients, scratch: [vector()?, vector()?] };
        Ok(Self { options, state: Mutex::new(state), matrix, owned: false })
    }

    fn update_values_here(&self, a: &Csr<T>) -> Result<()> {
        self.matrix.check_pattern(a)?;
        check_symmetric(a)?;
        let (inverse, coefficients) = self.options.found(a)?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // Into room of products first: nothing has changed if this fails.
        let State { inverse: held, coefficients: old, scratch: [new, _] } = &mut *state;
        new.write(&inverse)?;
        self.matrix.replace_values(a.values(), || Ok(Cow::Borrowed(a)))?;
        std::mem::swap(held, new);
        *old = coefficients;
        Ok(())
    }

    fn apply_here(&self, x: &Vector<T>, z: &mut Vector<T>) -> Result<()> {
        check_shape((self.rows(), self.rows()), x, z)?;
        let device = self.matrix.device();
        let (run, operations) = (device.run::<T>(), device.backend().polynomial::<T>());
        // Each product overwrites what another, perhaps one that panicked, left.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { inverse, coefficients: Coefficients { first, factors }, scratch: [other, residual] } =
            &mut *state;
        // Each step writes over the vector before the last: the last one goes into `z`.
        let into_z = |k: usize| (factors.len() - k).is_multiple_of(2);
        let (now, before) = if into_z(0) { (&mut *z, &mut *other) } else { (&mut *other, &mut *z) };
        now.product_of(inverse, x)?;
        now.scale(*first)?;
        before.fill(T::default())?;
        let stored = self.matrix.forward().read();
        for (k, step) in factors.iter().enumerate() {
            let (now, before) = if into_z(k) { (&*z, &mut *other) } else { (&*other, &mut *z) };
            let given = Given { z: now.memory(), b: x.memory(), m: inverse.memory() };
            let (before, residual) = (before.memory_mut(), residual.memory_mut());
            operations.polynomial_step(run, &stored, *step, given, before, residual)?;
        }
        Ok(())
    }
}

impl PolynomialOptions {
    fn check(self) -> Result<()> {
        let Self { degree, ratio } = self;
        let reason = match ratio.filter(|ratio| !(*ratio > 1.0 && ratio.is_finite())) {
            Some(ratio) => format!("the ratio {ratio} of the ends of an interval is not a number above 1"),
            None if (1..=MOST_DEGREE).contains(&degree) => return Ok(()),
            None => format!("degree {degree}; 1 to {MOST_DEGREE} are possible"),
        };
        Err(Error::Option { name: "preconditioner", reason })
    }

    /// The inverse of the diagonal, and the coefficients.
    fn found<T: Real>(self, a: &Csr<T>) -> Result<(Vec<T>, Coefficients<T>)> {
        let diagonal = a.diagonal();
        let inverse: Vec<T> = diagonal.iter().map(|d| T::from_f64(1.0 / d)).collect();
        if let Some(i) =
            (0..a.rows()).find(|i| diagonal[*i].is_nan() || diagonal[*i] <= 0.0 || !inverse[*i].is_finite())
        {
            let what = format!("diagonal entry {:e} is not positive, or too small to divide by", diagonal[i]);
            return Err(Error::Structure { what, row: Some(i) });
        }
        let (first, factors) = self.factors(bound(a, &diagonal));
        let round = |v: f64| T::from_f64(v);
        let factors = factors.into_iter().map(|factors| factors.map(round)).collect();
        Ok((inverse, Coefficients { first: round(first), factors }))
    }

    /// The factor of the first term, and `keep` and `step` of each product, for eigenvalues up to `bound`.
    fn factors(self, bound: f64) -> (f64, Vec<[f64; 2]>) {
        let products = 1..=self.degree;
        let Some(ratio) = self.ratio else {
            let factors = |k: usize| {
                let k = k as f64;
                [(2.0 * k - 1.0) / (2.0 * k + 3.0), (8.0 * k + 4.0) / ((2.0 * k + 3.0) * bound)]
            };
            return (4.0 / (3.0 * bound), products.map(factors).collect());
        };
        let smallest = bound / ratio;
        let [theta, delta] = [0.5 * (bound + smallest), 0.5 * (bound - smallest)];
        let mut rho = delta / theta;
        let factors = products.map(|_| {
            let next = 1.0 / (2.0 * theta / delta - rho);
            let found = [next * rho, 2.0 * next / delta];
            rho = next;
            found
        });
        (1.0 / theta, factors.collect())
    }
}

/// An upper bound of the eigenvalues of `D^-1/2 A D^-1/2`: the largest sum of magnitudes of a row.
fn bound<T: Real>(a: &Csr<T>, diagonal: &[f64]) -> f64 {
    let roots: Vec<f64> = diagonal.iter().map(|d| d.sqrt()).collect();
    let sum = |i: usize| {
        let (columns, values) = a.row(i);
        // The sum of no terms is -0.
        let mut sum = -0.0;
        for (k, j) in columns.iter().enumerate() {
            sum += values[k].to_f64().abs() / roots[*j as usize];
        }
        sum / roots[i]
    };
    // Any number will do for no rows.
    threads::numbers(0..a.rows(), 1024, |_, i| sum(i)).into_iter().fold(1.0, f64::max)
}

into_shared!(Polynomial);

impl<T: Real> LinearOperator<T> for Polynomial<T> {
    fn device(&self) -> &Device {
        self.matrix.device()
    }
    fn rows(&self) -> usize {
        self.matrix.rows()
    }
    fn cols(&self) -> usize {
        self.matrix.rows()
    }
    fn apply(&self, x: &Vector<T>, z: &mut Vector<T>) -> Result<()> {
        apply(self, x, z)
    }
    fn apply_adjoint(&self, x: &Vector<T>, z: &mut Vector<T>) -> Result<()> {
        apply(self, x, z)
    }
    fn has_adjoint(&self) -> bool {
        true
    }
    fn bytes(&self) -> u64 {
        let vectors = 3 * self.rows() * T::PRECISION.bytes();
        vectors as u64 + if self.owned { self.matrix.bytes() } else { 0 }
    }
    fn launches(&self, _columns: usize) -> usize {
        self.options.degree + 3
    }
    fn update_values(&self, a: &Csr<T>) -> Result<()> {
        update_values(self, a)
    }
}

impl PreconditionerKind for PolynomialOptions {
    fn name(&self) -> &'static str {
        "chebyshev"
    }

    fn parameters(&self) -> String {
        let Self { degree, ratio } = self;
        ratio.map_or(degree.to_string(), |ratio| format!("{degree}:{ratio}"))
    }

    fn grammar(&self) -> Option<[&'static str; 2]> {
        Some(["a degree, and a ratio of eigenvalues for the first kind, belong", "5:30"])
    }

    fn with_parameters(self, given: &Parameters<'_>) -> Option<Self> {
        Some(Self { degree: given.first()?, ratio: given.second()? })
    }

    fn symmetry(&self) -> Symmetry {
        Symmetry::Definite
    }

    fn most_entries<T: Real>(&self, a: &Csr<T>) -> Option<usize> {
        Some(a.nnz())
    }

    fn bytes<T: Real>(&self, entries: usize, rows: usize) -> u64 {
        stored_bytes::<T>([entries, rows], 1, 3)
    }

    fn build<T: Real>(&self, Source { device, a, .. }: Source<'_, T>) -> Result<Made<T>> {
        Ok(Made::new(Polynomial::new(device, a, *self)?, a.nnz()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparse::gallery;
    use crate::{Method, Setup, Solver, Stopping};

    fn device() -> Device {
        Device::host()
    }

    /// `1 - lambda p(lambda)` of both kinds, against their formulas, on a diagonal matrix with the eigenvalues.
    #[test]
    fn residual_polynomials_are_those_of_chebyshev() {
        // A scaled diagonal is 1: eigenvalues come from pairs [[1, c], [c, 1]], 1 - c and 1 + c; the bound is 2.
        let c = [1.0, 0.7, 0.2, 0.95];
        let entries = c.iter().enumerate().flat_map(|(k, c)| {
            let (i, j) = (2 * k, 2 * k + 1);
            [(i, i, 1.0), (i, j, *c), (j, i, *c), (j, j, 1.0)]
        });
        let a = Csr::from_triplets(8, 8, &entries.collect::<Vec<_>>()).unwrap();
        let chebyshev = |k: usize, x: f64| {
            if x.abs() <= 1.0 { (k as f64 * x.acos()).cos() } else { (k as f64 * x.acosh()).cosh() }
        };
        for degree in [1, 2, 5] {
            let terms = degree + 1;
            // W_k(cos t) = sin((k + 1/2) t) / sin(t / 2), scaled to 1 at 0.
            let fourth = |lambda: f64| {
                let t = (1.0 - lambda).clamp(-1.0, 1.0).acos();
                let w = if t == 0.0 {
                    2.0 * terms as f64 + 1.0
                } else {
                    ((terms as f64 + 0.5) * t).sin() / (0.5 * t).sin()
                };
                w / (2.0 * terms as f64 + 1.0)
            };
            let first = |lambda: f64| {
                let (theta, delta) = (1.1, 0.9);
                chebyshev(terms, (theta - lambda) / delta) / chebyshev(terms, theta / delta)
            };
            let kinds: [(PolynomialOptions, &dyn Fn(f64) -> f64); 2] = [
                (PolynomialOptions::fourth_kind(degree), &fourth),
                (PolynomialOptions::first_kind(degree, 10.0), &first),
            ];
            for (options, wanted) in kinds {
                let m = Polynomial::new(&device(), &a, options).unwrap();
                for (k, sign) in (0..4).flat_map(|k| [(k, 1.0), (k, -1.0)]) {
                    let lambda = 1.0 + sign * c[k];
                    let mut x = vec![0.0; 8];
                    (x[2 * k], x[2 * k + 1]) = (1.0, sign);
                    let mut z = Vector::zeros(&device(), 8).unwrap();
                    m.apply(&Vector::from_slice(&device(), &x).unwrap(), &mut z).unwrap();
                    let found = 1.0 - lambda * z.to_vec().unwrap()[2 * k];
                    approx::assert_relative_eq!(found, wanted(lambda), epsilon = 1e-13);
                }
            }
        }
    }

    #[test]
    fn higher_degrees_take_fewer_iterations() {
        let a = gallery::poisson_2d::<f64>(40, 0.0).unwrap();
        let matrix = Matrix::new(&device(), &a, Format::Auto).unwrap();
        let b = Vector::filled(&device(), 1600, 1.0).unwrap();
        for ratio in [None, Some(30.0)] {
            let iterations = |degree: usize| {
                let m = Polynomial::sharing(&matrix, &a, PolynomialOptions { degree, ratio }).unwrap();
                let setup = Setup::new(Method::Cg, Stopping::for_precision::<f64>()).with_preconditioner(m);
                let mut x = Vector::zeros(&device(), 1600).unwrap();
                let report = Solver::with(&matrix, setup).unwrap().solve(&b, &mut x).unwrap();
                assert!(report.converged(), "{report}");
                report.iterations
            };
            let found = [1, 3, 7].map(iterations);
            assert!(found[1] < found[0] && found[2] < found[1], "{found:?}");
            assert!(found[2] < 30, "{found:?}");
        }
    }

    #[test]
    fn what_has_none_is_refused() {
        let csr = |entries: &[(usize, usize, f64)]| Csr::from_triplets(2, 2, entries).unwrap();
        let row = |a: &Csr<f64>| match Polynomial::new(&device(), a, PolynomialOptions::default()) {
            Err(Error::Structure { row, .. }) => row,
            other => panic!("{other:?}"),
        };
        assert_eq!(row(&csr(&[(0, 0, 1.0)])), Some(1));
        assert_eq!(row(&csr(&[(0, 0, -1.0), (1, 1, 1.0)])), Some(0));
        assert_eq!(row(&csr(&[(0, 0, 1.0), (0, 1, 2.0), (1, 1, 1.0)])), Some(0));
        let a = csr(&[(0, 0, 1.0), (1, 1, 1.0)]);
        for wrong in [
            PolynomialOptions::fourth_kind(0),
            PolynomialOptions::fourth_kind(65),
            PolynomialOptions::first_kind(3, 1.0),
            PolynomialOptions::first_kind(3, f64::NAN),
        ] {
            assert!(matches!(Polynomial::new(&device(), &a, wrong), Err(Error::Option { .. })), "{wrong:?}");
        }
        let none = Csr::<f64>::from_triplets(0, 0, &[]).unwrap();
        assert!(Polynomial::new(&device(), &none, PolynomialOptions::default()).is_ok());
    }
}
