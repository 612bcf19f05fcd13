//! Approximate inverses in factors for matrices that are not symmetric: AINV by biconjugation.
//!
//! ```text
//!   W' A Z = D approximately,   M = Z D^-1 W'       Z, W unit upper triangular
//!
//!   for i = 0 .. n-1:   p_j = <row i of A, z_j>,     z_j = z_j - (p_j / p_i) z_i     for j > i with p_j != 0, with dropping
//!                       q_j = <column i of A, w_j>,  w_j = w_j - (q_j / q_i) w_i     likewise
//! ```
//!
//! The line of `q` is the line of `p` for `A'`: the algorithm of [`Ainv`](crate::precond::Ainv) runs for both. If nothing is dropped, the pivots
//! `p_i` and `q_i` are equal; `D` holds the `p_i`. Rows and columns are divided by the root of the diagonal's magnitude first, unless
//! [`NonsymmetricAinvOptions::scales`] says no.
//!
//! Source: dedecek-2013, 3.2.2; M. Benzi, M. Tůma, "A sparse approximate inverse preconditioner for nonsymmetric linear systems", SIAM J.
//! Sci. Comput. 19 (1998).

use std::time::Instant;

use super::ainv_options::{AinvOptions, GRAMMAR, behind, parameters};
use super::columns::{Pivots, Z, on_host};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::matrix::{Matrix, Transposed};
use crate::number::{Real, per_number};
use crate::operator::{LinearOperator, LinearOperatorExt, ProductOperator, SharedOperator, Structure};
use crate::precond::kind::{
    BYTES_OF_ROW, Made, Parameters, PreconditionerKind, Source, Symmetry, finite, stored_bytes,
};
use crate::precond::support::{check_finite, check_rounded, factor_on, operator_in_field};
use crate::setters::setters;
use crate::sparse::{AsCsr, Csr};
use crate::threads;
use crate::vector::Vector;

/// Options of [`NonsymmetricAinv::new`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct NonsymmetricAinvOptions {
    /// Entries of `Z` and `W` below it are dropped, 0.1 unless set. 0 drops nothing: `M` is the inverse, nearly dense.
    pub drop: f64,
    /// Power of the matrix in whose sparsity pattern `Z` and `W` may have entries, as [`AinvOptions::pattern`].
    pub pattern: Option<usize>,
    /// Rounds the factors to `f32` in the end and stores them so, for solves in `f64`: see [`Csr::rounded_to_f32`](crate::Csr::rounded_to_f32).
    pub stored_f32: bool,
    /// Scales the diagonal of the matrix to 1 first, as it is unless set. Without that `drop` is for the entries of the matrix as it is.
    pub scales: bool,
    /// Time at which the set-up ends with [`Error::OutOfTime`] if it is not done.
    pub deadline: Option<Instant>,
}

impl Default for NonsymmetricAinvOptions {
    fn default() -> Self {
        Self::dropping(0.1)
    }
}

impl NonsymmetricAinvOptions {
    setters! {
        with_drop: drop(f64),
        with_pattern: pattern(impl usize),
        with_stored_f32: stored_f32(bool),
        with_scales: scales(bool),
        with_deadline: deadline(impl Instant),
    }

    /// Factors without entries below `drop`.
    pub const fn dropping(drop: f64) -> Self {
        Self { drop, pattern: None, stored_f32: false, scales: true, deadline: None }
    }

    /// Options of the columns of either factor.
    pub(crate) fn of_columns(self) -> AinvOptions {
        let Self { drop, pattern, stored_f32, scales, deadline } = self;
        AinvOptions { pattern, stored_f32, scales, deadline, ..AinvOptions::ainv(drop) }
    }
}

/// The approximate inverse `Z D^-1 W'` of a square matrix as an operator, for [`Method::BiCgStab`](crate::Method) and
/// [`Method::Gmres`](crate::Method). It is applied by two products with stored matrices, whose rows need no order. Every device gives the same bits. It is made on the host.
///
/// # Cost
/// Held: `Z` and `W'`, and a vector. A product reads both, and three vectors. The set-up is twice that of AINV.
///
/// ```
/// use residuum::precond::{NonsymmetricAinv, NonsymmetricAinvOptions};
/// use residuum::{Csr, Device, Format, Matrix, Method, Setup, Solver, Stopping, Vector};
///
/// let device = Device::best()?;
/// // Diffusion and convection on a ring.
/// let row = |i: usize| [(i, (i + 99) % 100, -2.0), (i, i, 4.0), (i, (i + 1) % 100, -1.0)];
/// let a = Csr::from_triplets(100, 100, &(0..100).flat_map(row).collect::<Vec<_>>())?;
/// let m = NonsymmetricAinv::new(&device, &a, NonsymmetricAinvOptions::dropping(0.1))?;
/// let matrix = Matrix::new(&device, &a, Format::Auto)?;
/// let b = Vector::filled(&device, a.rows(), 1.0)?;
/// let mut x = Vector::zeros(&device, a.cols())?;
/// let setup = Setup::new(Method::BiCgStab, Stopping::for_precision::<f64>()).with_preconditioner(m);
/// assert!(Solver::with(&matrix, setup)?.solve(&b, &mut x)?.converged());
/// # Ok::<(), residuum::Error>(())
/// ```
#[derive(Debug)]
pub struct NonsymmetricAinv<T: Real> {
    product: ProductOperator<Matrix<T>, Matrix<T>, T>,
    entries: usize,
}

per_number! {
    fn new<T>(device: &Device, a: &Csr<T>, options: NonsymmetricAinvOptions) -> Result<NonsymmetricAinv<T>> = NonsymmetricAinv::new_here;
}

impl<T: Real> NonsymmetricAinv<T> {
    /// Makes it for the square matrix `a`, on the host.
    ///
    /// # Errors
    /// [`Error::Shape`] for a matrix that is not square, [`Error::NotFinite`], [`Error::Option`] for a `drop` that is negative or no number, or
    /// places out of range, [`Error::Structure`] with the row of a pivot that is 0 or nearly so; [`Error::Memory`] as soon as the
    /// factors are larger than the device.
    pub fn new(device: &Device, a: &(impl AsCsr<T> + ?Sized), options: NonsymmetricAinvOptions) -> Result<Self> {
        let a = &*a.as_csr()?;
        new(device, a, options)
    }

    fn new_here(device: &Device, a: &Csr<T>, options: NonsymmetricAinvOptions) -> Result<Self> {
        let [z, w] = factors(device, a, options)?;
        let entries = z.nnz() + w.nnz();
        let on = |factor: &Csr<T>| factor_on(device, factor, options.stored_f32, Transposed::None);
        let product = on(&z)?.times(on(&w.transpose())?)?;
        Ok(Self { product, entries })
    }

    /// Entries of `Z` and of `W`, with their diagonals.
    pub fn entries(&self) -> usize {
        self.entries
    }
}

/// `S Z D^-1` and `S W` by rows.
fn factors<T: Real>(device: &Device, a: &Csr<T>, options: NonsymmetricAinvOptions) -> Result<[Csr<T>; 2]> {
    check_finite(a)?;
    let options = options.of_columns();
    options.check()?;
    let n = a.rows();
    let scale = if options.scales { scales(a)? } else { vec![1.0; n] };
    let a = a.scaled(&scale, &scale)?;
    let columns = |a: &Csr<T>| on_host(device, a, options, Pivots::NotZero);
    let (z, w) = threads::join(|| columns(&a), || columns(&a.transpose()));
    let (z, w) = (z?, w?);
    let by_rows = |found: &Z<T>, divides: bool| {
        let made = Csr::from_rows(n, n, |l, entries| {
            let divisor = |j: u32| if divides { found.pivots[j as usize] } else { 1.0 };
            let scaled = |(j, v): &(u32, T)| (*j, T::from_f64(scale[l] * v.to_f64() / divisor(*j)));
            entries.extend(found.rows[l].iter().map(scaled));
        })?;
        check_rounded(made.offsets(), made.values(), "an approximate inverse")?;
        Ok(made)
    };
    Ok([by_rows(&z, true)?, by_rows(&w, false)?])
}

/// Factors that scale the diagonal to 1 or -1; where it is 0, the largest entry of the row.
fn scales<T: Real>(a: &Csr<T>) -> Result<Vec<f64>> {
    let factor = |(i, d): (usize, f64)| {
        let size =
            if d != 0.0 { d.abs() } else { a.row(i).1.iter().fold(0.0, |most, v| v.to_f64().abs().max(most)) };
        if size > 0.0 {
            Ok(size.sqrt().recip())
        } else {
            Err(Error::Structure { what: "a row without an entry: the matrix is singular".into(), row: Some(i) })
        }
    };
    a.diagonal().into_iter().enumerate().map(factor).collect()
}

operator_in_field!(NonsymmetricAinv.product {});

impl PreconditionerKind for NonsymmetricAinvOptions {
    fn name(&self) -> &'static str {
        "nonsymmetric-ainv"
    }

    fn parameters(&self) -> String {
        parameters(self.drop, self.pattern)
    }

    fn grammar(&self) -> Option<[&'static str; 2]> {
        Some(GRAMMAR)
    }

    fn with_parameters(self, given: &Parameters<'_>) -> Option<Self> {
        Some(Self { drop: finite(given.first()?)?, pattern: given.second()?, ..self })
    }

    fn symmetry(&self) -> Symmetry {
        Symmetry::Lost
    }

    fn in_stored_f32(self) -> Option<Self> {
        Some(self.with_stored_f32(true))
    }

    fn most_entries<T: Real>(&self, a: &Csr<T>) -> Option<usize> {
        self.pattern.map(|power| behind(a, power).saturating_add(behind(&a.transpose(), power)))
    }

    fn is_sure(&self) -> bool {
        false
    }

    fn bytes<T: Real>(&self, entries: usize, rows: usize) -> u64 {
        stored_bytes::<T>([entries, rows], 1, 1) + (rows * BYTES_OF_ROW) as u64
    }

    fn build<T: Real>(&self, from: Source<'_, T>) -> Result<Made<T>> {
        let inverse = NonsymmetricAinv::new(from.device, from.a, self.with_deadline(from.until(self.deadline)))?;
        let entries = inverse.entries();
        Ok(Made::new(inverse, entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparse::gallery;
    use crate::{Format, Method, Setup, Solver, Stopping};

    fn device() -> Device {
        Device::host()
    }

    /// Central differences of a flow that turns the grid's matrix far from symmetric.
    fn flow(side: usize) -> Csr<f64> {
        Csr::from_rows(side * side, side * side, |i, row| {
            let (x, y) = (i % side, i / side);
            let mut put = |there: bool, at: usize, v: f64| {
                if there {
                    row.push((at as u32, v))
                }
            };
            put(y > 0, i.wrapping_sub(side), -1.8);
            put(x > 0, i.wrapping_sub(1), -1.6);
            put(true, i, 4.0);
            put(x + 1 < side, i + 1, -0.4);
            put(y + 1 < side, i + side, -0.2);
        })
        .unwrap()
    }

    #[test]
    fn without_dropping_it_is_the_inverse() {
        // [[2, 4], [6, 5]]: Z = [[1, -2], [0, 1]], W = [[1, -3], [0, 1]], D = (2, -7).
        let a = Csr::<f64>::from_triplets(2, 2, &[(0, 0, 2.0), (0, 1, 4.0), (1, 0, 6.0), (1, 1, 5.0)]).unwrap();
        let options = NonsymmetricAinvOptions { scales: false, ..NonsymmetricAinvOptions::dropping(0.0) };
        let [z, w] = factors(&device(), &a, options).unwrap();
        assert_eq!((z.values(), w.values()), (&[0.5, 2.0 / 7.0, -1.0 / 7.0][..], &[1.0, -3.0, 1.0][..]));
        for scales in [false, true] {
            let a = flow(7);
            let inverse = NonsymmetricAinv::new(
                &device(),
                &a,
                NonsymmetricAinvOptions { scales, ..NonsymmetricAinvOptions::dropping(0.0) },
            )
            .unwrap();
            let x: Vec<f64> = (0..49).map(|k| f64::from(k % 7) - 2.5).collect();
            let ax = Vector::from_slice(&device(), &a.product(&x).unwrap()).unwrap();
            let mut found = Vector::zeros(&device(), 49).unwrap();
            inverse.apply(&ax, &mut found).unwrap();
            for (found, wanted) in found.to_vec().unwrap().iter().zip(&x) {
                approx::assert_relative_eq!(*found, *wanted, epsilon = 1e-11);
            }
        }
    }

    /// Factors of a symmetric matrix are both those of AINV.
    #[test]
    fn of_a_symmetric_matrix_both_factors_are_the_same() {
        let a = gallery::poisson_2d::<f64>(9, 0.0).unwrap();
        let options = NonsymmetricAinvOptions::dropping(0.05);
        let [z, w] = factors(&device(), &a, options).unwrap();
        let (root, _) = super::super::ainv::factor(&device(), &a, options.of_columns()).unwrap();
        assert_eq!((z.indices(), w.indices()), (root.indices(), root.indices()));
        for ((z, w), root) in z.values().iter().zip(w.values()).zip(root.values()) {
            approx::assert_relative_eq!(z * w, root * root, max_relative = 1e-14);
        }
    }

    #[test]
    fn nonsymmetric_systems_take_fewer_iterations() {
        let a = flow(40);
        let matrix = Matrix::new(&device(), &a, Format::Auto).unwrap();
        let b = Vector::filled(&device(), a.rows(), 1.0).unwrap();
        for method in [Method::BiCgStab, Method::Gmres { restart: 30 }] {
            let iterations = |options: Option<NonsymmetricAinvOptions>| {
                let mut setup = Setup::new(method, Stopping::for_precision::<f64>());
                if let Some(options) = options {
                    setup = setup.with_preconditioner(NonsymmetricAinv::new(&device(), &a, options).unwrap());
                }
                let mut x = Vector::zeros(&device(), a.rows()).unwrap();
                let report = Solver::with(&matrix, setup).unwrap().solve(&b, &mut x).unwrap();
                assert!(report.converged(), "{report}");
                report.iterations
            };
            let coarse = NonsymmetricAinvOptions::dropping(0.1);
            let found = [None, Some(coarse), Some(NonsymmetricAinvOptions::dropping(0.01))].map(iterations);
            assert!(found[1] < found[0] && 2 * found[2] < found[0], "{method} {found:?}");
            assert!(iterations(Some(NonsymmetricAinvOptions::dropping(0.0).with_pattern(Some(2)))) < found[0]);
        }
    }

    #[test]
    fn what_has_none_is_refused() {
        let csr = |entries: &[(usize, usize, f64)]| Csr::from_triplets(2, 2, entries).unwrap();
        let row = |a: &Csr<f64>| match NonsymmetricAinv::new(&device(), a, NonsymmetricAinvOptions::dropping(0.1)) {
            Err(Error::Structure { row, .. }) => row,
            other => panic!("{other:?}"),
        };
        assert_eq!(row(&csr(&[(0, 0, 1.0), (0, 1, 2.0), (1, 0, 2.0), (1, 1, 4.0)])), Some(1), "singular");
        assert_eq!(row(&csr(&[(0, 1, 2.0), (1, 0, 2.0), (1, 1, 4.0)])), Some(0), "no first pivot");
        assert_eq!(row(&csr(&[(0, 0, 1.0)])), Some(1), "an empty row");
        let options = NonsymmetricAinvOptions::dropping(f64::NAN);
        let made = NonsymmetricAinv::new(&device(), &csr(&[(0, 0, 1.0), (1, 1, 1.0)]), options);
        assert!(matches!(made, Err(Error::Option { .. })));
        let wide = Csr::<f64>::from_triplets(2, 3, &[(0, 0, 1.0)]).unwrap();
        assert!(matches!(
            NonsymmetricAinv::new(&device(), &wide, NonsymmetricAinvOptions::dropping(0.1)),
            Err(Error::Shape { .. })
        ));
    }
}
