//! Approximate inverses in factors: AINV and SAINV.
//!
//! ```text
//!   Z' S A S Z = D approximately,  M = S Z D^-1 Z' S = W W',   Z unit upper triangular, D = diag(p_0, p_1, ...)
//!
//!   for i = 0 .. n-1:                                  the columns of Z are those of the identity at first
//!       v = A z_i  (SAINV),  row i of A  (AINV);       p_j = <v, z_j>  for j >= i
//!       z_j = z_j - (p_j / p_i) z_i                    for j > i with p_j != 0
//!       drop the entries of z_j that this changed and that are smaller than `drop`, but not the diagonal one
//! ```
//!
//! Entries may be dropped by their places as well ([`AinvOptions::pattern`]): all that are not in the sparsity pattern of a power of `A`.
//!
//! `S` scales the diagonal to 1. `Z` is stored by rows. For every row `l` in which `z_i` has an entry, step `i` subtracts that entry times the
//! sparse vector of all `p_j / p_i` from row `l`. Sums run over ascending rows in `f64`; entries of `v` and `z` are rounded to the precision of
//! the matrix. A device makes columns one by one instead, and gets the same bits.
//!
//! [`AinvOptions::factored`] computes the columns of AINV from factors of the matrix (`factored.rs`); without dropping they are the same
//! columns but for rounding. SAINV does not break down if `A` is positive definite, because `p_i = z_i' A z_i`.
//!
//! Source: dedecek-2013, algorithms 6 (AINV) and 7 (SAINV), and 6.2 (rows and the outer product); M. Benzi, J. K. Cullum, M. Tůma,
//! "Robust approximate inverse preconditioning for the conjugate gradient method", SIAM J. Sci. Comput. 22 (2000).

use super::ainv_options::{AinvOptions, GRAMMAR, Orthogonalisation, behind, parameters};
use super::columns::{Pivots, Z, on_host, unit_diagonal};
use super::factored;
use crate::backend::precond::elimination::{Columns, Problem};
use crate::device::Device;
use crate::error::Result;
use crate::matrix::Matrix;
use crate::number::{Real, per_number};
use crate::operator::{LinearOperator, SharedOperator, Structure};
use crate::precond::kind::{LeastSquares, Made, Parameters, PreconditionerKind, Source, Symmetry, finite};
use crate::precond::support::{Square, check_symmetric, in_time, operator_in_field, square};
use crate::sparse::{AsCsr, Csr};
use crate::threads;
use crate::vector::Vector;

/// The approximate inverse `W W'` of a symmetric positive definite matrix as an operator, for
/// [`Setup::preconditioner`](crate::Setup). It is applied by two products with stored matrices, whose rows need no
/// order. Every device gives the same bits. It is made on the host, by all threads if there are enough columns, or
/// on the device ([`AinvOptions::on_device`]). [`AinvOptions::factored`] uses one thread.
///
/// # Cost
/// Held: `W` and its transposed, and a vector. A product reads one of them each, and three vectors.
///
/// ```
/// use residuum::precond::{Ainv, AinvOptions};
/// use residuum::sparse::gallery;
/// use residuum::{Device, Format, Matrix, Method, Setup, Solver, Stopping, Vector};
///
/// let device = Device::best()?;
/// let a = gallery::poisson_2d::<f64>(20, 0.0)?;
/// let m = Ainv::new(&device, &a, AinvOptions::sainv(0.1))?;
/// let matrix = Matrix::new(&device, &a, Format::Auto)?;
/// let b = Vector::filled(&device, a.rows(), 1.0)?;
/// let mut x = Vector::zeros(&device, a.cols())?;
/// let setup = Setup::new(Method::Cg, Stopping::for_precision::<f64>()).with_preconditioner(m);
/// assert!(Solver::with(&matrix, setup)?.solve(&b, &mut x)?.converged());
/// # Ok::<(), residuum::Error>(())
/// ```
#[derive(Debug)]
pub struct Ainv<T: Real> {
    product: Square<T>,
    w: Matrix<T>,
    entries: usize,
    on_device: bool,
}

per_number! {
    fn new<T>(device: &Device, a: &Csr<T>, options: AinvOptions) -> Result<Ainv<T>> = Ainv::new_here;
}

impl<T: Real> Ainv<T> {
    /// Makes it for the symmetric positive definite matrix `a`.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) for a matrix that is not square, [`Error::Option`](crate::Error::Option) for a `drop` that is negative or no number or places of a
    /// power out of range, [`Error::Structure`](crate::Error::Structure) for a matrix that is not symmetric, an entry of the diagonal that is not positive, and a pivot that is not positive, with
    /// its row; [`Error::Memory`](crate::Error::Memory) as soon as the factor is larger than the device.
    pub fn new(device: &Device, a: &(impl AsCsr<T> + ?Sized), options: AinvOptions) -> Result<Self> {
        let a = &*a.as_csr()?;
        new(device, a, options)
    }

    fn new_here(device: &Device, a: &Csr<T>, options: AinvOptions) -> Result<Self> {
        let (factor, on_device) = factor(device, a, options)?;
        let (w, product) = square(device, &factor, options.stored_f32)?;
        Ok(Self { product, w, entries: factor.nnz(), on_device })
    }

    /// The root `W` of the approximate inverse, which shares its entries: what preconditions least squares from the right, if this was made
    /// from [`Csr::normal_matrix`].
    pub fn root(&self) -> SharedOperator<T> {
        (&self.w).into()
    }

    /// Entries of `Z` with its diagonal, and of `W`.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Tells if the device made it; the bits are the same.
    pub fn made_on_device(&self) -> bool {
        self.on_device
    }
}

/// `W = S Z D^-1/2` by rows, and if the device made it.
pub(crate) fn factor<T: Real>(device: &Device, a: &Csr<T>, options: AinvOptions) -> Result<(Csr<T>, bool)> {
    let n = a.rows();
    check_symmetric(a)?;
    options.check()?;
    let scale = if options.scales { unit_diagonal(a)? } else { vec![1.0; n] };
    let scaled;
    let a = if options.scales {
        scaled = a.scaled(&scale, &scale)?;
        &scaled
    } else {
        a
    };
    let found = on_device(device, a, options)?;
    let by_device = found.is_some();
    let z = match (found, options.orthogonalisation) {
        (Some(found), _) => found,
        (None, Orthogonalisation::Factored) => factored::on_host(device, a, options)?,
        (None, _) => on_host(device, a, options, Pivots::Positive)?,
    };
    let roots: Vec<f64> = z.pivots.iter().map(|pivot| pivot.sqrt()).collect();
    let w = Csr::from_rows(n, n, |l, entries| {
        let scaled = |(j, z): &(u32, T)| (*j, T::from_f64(scale[l] * z.to_f64() / roots[*j as usize]));
        entries.extend(z.rows[l].iter().map(scaled));
    })?;
    Ok((w, by_device))
}

/// The columns that the device finds, many at once, if it does.
fn on_device<T: Real>(device: &Device, a: &Csr<T>, options: AinvOptions) -> Result<Option<Z<T>>> {
    let by_order = options.orthogonalisation == Orthogonalisation::Factored;
    if options.on_device == Some(false) || options.pattern.is_some() || by_order {
        return Ok(None);
    }
    in_time(options.deadline, "an approximate inverse")?;
    let stabilised = options.orthogonalisation == Orthogonalisation::Stabilised;
    let forced = options.on_device == Some(true);
    let problem = Problem { a, stabilised, drop: options.drop, forced };
    let found = device.backend().elimination::<T>().columns(device.run::<T>(), &problem)?;
    Ok(found.map(|columns| by_rows(a.rows(), columns)))
}

/// Entries by rows: each thread collects some of the rows.
fn by_rows<T: Real>(n: usize, found: Columns<T>) -> Z<T> {
    let Columns { rows: row_of, columns, values, pivots } = found;
    let stretch = n.div_ceil(threads::count()).max(1);
    let mut rows: Vec<Vec<(u32, T)>> = vec![Vec::new(); n];
    threads::each(threads::ChunksMut(&mut rows, stretch), 1, |k, rows| {
        let begin = k * stretch;
        for ((l, j), value) in row_of.iter().zip(&columns).zip(&values) {
            if let Some(row) = (*l as usize).checked_sub(begin).and_then(|l| rows.get_mut(l)) {
                row.push((*j as u32, *value));
            }
        }
    });
    Z { rows, pivots }
}

operator_in_field!(Ainv.product, symmetric);

impl PreconditionerKind for AinvOptions {
    fn name(&self) -> &'static str {
        match self.orthogonalisation {
            Orthogonalisation::Stabilised => "sainv",
            Orthogonalisation::Plain => "ainv",
            Orthogonalisation::Factored => "ldl-ainv",
        }
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
        Symmetry::Definite
    }

    fn least_squares(&self) -> LeastSquares {
        LeastSquares::Any
    }

    fn in_stored_f32(self) -> Option<Self> {
        Some(self.with_stored_f32(true))
    }

    fn most_entries<T: Real>(&self, a: &Csr<T>) -> Option<usize> {
        self.pattern.map(|power| behind(a, power))
    }

    fn is_sure(&self) -> bool {
        false
    }

    fn build<T: Real>(&self, from: Source<'_, T>) -> Result<Made<T>> {
        let inverse = Ainv::new(from.device, from.a, self.with_deadline(from.until(self.deadline)))?;
        let entries = inverse.entries();
        Ok(Made::new(inverse, entries))
    }

    fn build_for_least_squares<T: Real>(&self, from: Source<'_, T>) -> Result<Made<T>> {
        let inverse =
            Ainv::new(from.device, &from.normal_matrix()?, self.with_deadline(from.until(self.deadline)))?;
        Ok(Made::new(inverse.root(), inverse.entries()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::precond::support::neighbourhood;
    use crate::sparse::gallery;
    use crate::{Format, Matrix, Method, Setup, Solver, Stopping};

    fn device() -> Device {
        Device::host()
    }

    /// A symmetric matrix of about `2 per_row` random entries a row with a diagonal that outweighs them.
    fn definite<T: Real>(n: usize, per_row: usize, seed: u64) -> Csr<T> {
        let mut random = gallery::Random::new(seed);
        let mut entries: Vec<(usize, usize, T)> = Vec::new();
        let mut sums = vec![0.1; n];
        for i in 0..n {
            for _ in 0..per_row {
                let (j, value) = ((random.uniform() * n as f64) as usize, random.uniform() - 0.6);
                if i != j {
                    entries.extend([(i, j, T::from_f64(value)), (j, i, T::from_f64(value))]);
                    [i, j].into_iter().for_each(|k| sums[k] += value.abs());
                }
            }
        }
        entries.extend(sums.iter().enumerate().map(|(i, sum)| (i, i, T::from_f64(*sum))));
        Csr::from_triplets(n, n, &entries).unwrap()
    }

    /// Columns of `Z` and pivots by the left-looking algorithm of the thesis, one column after another.
    fn textbook<T: Real>(a: &Csr<T>, options: AinvOptions) -> (Vec<Vec<T>>, Vec<f64>) {
        let n = a.rows();
        let (mut z, mut v, mut pivots): (Vec<Vec<T>>, Vec<Vec<f64>>, Vec<f64>) = Default::default();
        let dot = |v: &[f64], z: &[T]| {
            let terms = v.iter().zip(z).filter(|(v, z)| **v != 0.0 && z.to_f64() != 0.0);
            terms.fold(0.0, |sum, (v, z)| sum + v * z.to_f64())
        };
        for j in 0..n {
            let mut column = vec![T::default(); n];
            column[j] = T::from_f64(1.0);
            for i in 0..j {
                let s = dot(&v[i], &column);
                if s == 0.0 {
                    continue;
                }
                let c = s / pivots[i];
                for (l, entry) in column.iter_mut().enumerate() {
                    let old = entry.to_f64();
                    if z[i][l].to_f64() != 0.0 {
                        *entry = T::from_f64(old - c * z[i][l].to_f64());
                        let elsewhere =
                            options.pattern.is_some_and(|power| !neighbourhood(a, l, power).contains(&(j as u32)));
                        if (elsewhere || entry.to_f64().abs() < options.drop) && l != j {
                            *entry = T::default();
                        }
                    }
                }
            }
            let mut against = vec![0.0; n];
            match options.orthogonalisation {
                Orthogonalisation::Plain | Orthogonalisation::Factored => {
                    a.row(j).0.iter().zip(a.row(j).1).for_each(|(l, value)| against[*l as usize] = value.to_f64());
                }
                Orthogonalisation::Stabilised => {
                    for (k, z) in column.iter().enumerate().filter(|(_, z)| z.to_f64() != 0.0) {
                        for (l, value) in a.row(k).0.iter().zip(a.row(k).1) {
                            against[*l as usize] += value.to_f64() * z.to_f64();
                        }
                    }
                    against.iter_mut().for_each(|v| *v = T::from_f64(*v).to_f64());
                }
            }
            pivots.push(dot(&against, &column));
            z.push(column);
            v.push(against);
        }
        (z, pivots)
    }

    fn columns_are_those_of_the_textbook<T: Real>() {
        let matrices = [gallery::poisson_2d::<T>(9, 0.0).unwrap(), definite(120, 6, 3), definite(90, 20, 5)];
        for a in matrices {
            for options in [
                AinvOptions::sainv(0.1),
                AinvOptions::sainv(0.0),
                AinvOptions::ainv(0.05),
                AinvOptions { scales: false, ..AinvOptions::sainv(0.02) },
                AinvOptions::sainv(0.0).with_pattern(Some(1)),
                AinvOptions::sainv(0.02).with_pattern(Some(2)),
                AinvOptions::ainv(0.0).with_pattern(Some(1)),
            ] {
                let (w, _) = factor(&device(), &a, options).unwrap();
                let scale = if options.scales { unit_diagonal(&a).unwrap() } else { vec![1.0; a.rows()] };
                let (z, pivots) =
                    textbook(&if options.scales { a.scaled(&scale, &scale).unwrap() } else { a.clone() }, options);
                let mut found = vec![vec![T::default(); a.rows()]; a.rows()];
                for l in 0..a.rows() {
                    w.row(l).0.iter().zip(w.row(l).1).for_each(|(j, value)| found[*j as usize][l] = *value);
                }
                for (j, (found, z)) in found.iter().zip(&z).enumerate() {
                    for (l, (found, z)) in found.iter().zip(z).enumerate() {
                        let wanted = T::from_f64(scale[l] * z.to_f64() / pivots[j].sqrt());
                        assert_eq!(
                            found.to_f64().to_bits(),
                            wanted.to_f64().to_bits(),
                            "{options:?}: entry {l} {j}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn columns_are_those_of_the_textbook_bit_for_bit() {
        columns_are_those_of_the_textbook::<f32>();
        columns_are_those_of_the_textbook::<f64>();
    }

    #[test]
    fn without_dropping_it_is_the_inverse() {
        // A = [[2, 1], [1, 2]]: S = 1 / sqrt 2, Z = [[1, -1/2], [0, 1]], D = (1, 3/4).
        let a = Csr::<f64>::from_triplets(2, 2, &[(0, 0, 2.0), (0, 1, 1.0), (1, 0, 1.0), (1, 1, 2.0)]).unwrap();
        let (w, _) = factor(&device(), &a, AinvOptions::sainv(0.0)).unwrap();
        let root = 0.75f64.sqrt();
        let s = 0.5f64.sqrt();
        for (found, wanted) in w.values().iter().zip([s, -0.5 * s / root, s / root]) {
            approx::assert_relative_eq!(*found, wanted, max_relative = 1e-15);
        }
        let a = definite::<f64>(60, 5, 1);
        let inverse = Ainv::new(&device(), &a, AinvOptions::ainv(0.0)).unwrap();
        let x: Vec<f64> = (0..60).map(|k| f64::from(k % 7) - 2.5).collect();
        let ax = Vector::from_slice(&device(), &a.product(&x).unwrap()).unwrap();
        let mut found = Vector::zeros(&device(), 60).unwrap();
        inverse.apply(&ax, &mut found).unwrap();
        for (found, wanted) in found.to_vec().unwrap().iter().zip(&x) {
            approx::assert_relative_eq!(*found, *wanted, epsilon = 1e-9);
        }
    }

    /// From factors: `Z` and pivots of AINV without dropping; with it, a factor of about its size that preconditions as well.
    #[test]
    fn factors_of_the_matrix_give_the_same_columns() {
        for a in [gallery::poisson_2d::<f64>(9, 0.0).unwrap(), definite(90, 8, 5)] {
            let [(wanted, _), (found, _)] = [AinvOptions::ainv(0.0), AinvOptions::factored(0.0)]
                .map(|options| factor(&device(), &a, options).unwrap());
            let n = a.rows();
            let dense = |w: &Csr<f64>| {
                let mut dense = vec![0.0; n * n];
                for l in 0..n {
                    w.row(l).0.iter().zip(w.row(l).1).for_each(|(j, v)| dense[l * n + *j as usize] = *v);
                }
                dense
            };
            let largest = wanted.values().iter().fold(0.0_f64, |most, v| most.max(v.abs()));
            for (found, wanted) in dense(&found).iter().zip(dense(&wanted)) {
                approx::assert_abs_diff_eq!(*found, wanted, epsilon = 1e-13 * largest);
            }
        }
        let a = gallery::poisson_2d::<f64>(40, 0.0).unwrap();
        let solved = |options: AinvOptions| {
            let inverse = Ainv::new(&device(), &a, options).unwrap();
            let entries = inverse.entries();
            let stopping = Stopping { rtol: 1e-8, ..Stopping::for_precision::<f64>() };
            let setup = Setup::new(Method::Cg, stopping).with_preconditioner(inverse);
            let matrix = Matrix::new(&device(), &a, Format::Auto).unwrap();
            let mut x = Vector::zeros(&device(), 1600).unwrap();
            let b = Vector::filled(&device(), 1600, 1.0).unwrap();
            let report = Solver::with(&matrix, setup).unwrap().solve(&b, &mut x).unwrap();
            assert!(report.converged(), "{report}");
            (entries as f64, report.iterations as f64)
        };
        for drop in [0.1, 0.02] {
            let (plain, factored) = (solved(AinvOptions::ainv(drop)), solved(AinvOptions::factored(drop)));
            println!("drop {drop}: {plain:?} {factored:?}");
            assert!((0.5..1.5).contains(&(factored.0 / plain.0)), "entries at {drop}: {plain:?} {factored:?}");
            assert!(factored.1 < 1.3 * plain.1, "iterations at {drop}: {plain:?} {factored:?}");
        }
    }

    #[test]
    fn conjugate_gradients_take_fewer_iterations() {
        let a = gallery::poisson_2d::<f64>(40, 0.0).unwrap();
        let iterations = |drop: f64| {
            let stopping = Stopping { rtol: 1e-8, ..Stopping::for_precision::<f64>() };
            let mut setup = Setup::new(Method::Cg, stopping);
            if drop < 1.0 {
                setup = setup.with_preconditioner(Ainv::new(&device(), &a, AinvOptions::sainv(drop)).unwrap());
            }
            let matrix = Matrix::new(&device(), &a, Format::Auto).unwrap();
            let b = Vector::filled(&device(), 1600, 1.0).unwrap();
            let mut x = Vector::zeros(&device(), 1600).unwrap();
            let report = Solver::with(&matrix, setup).unwrap().solve(&b, &mut x).unwrap();
            assert!(report.converged(), "{report}");
            report.iterations
        };
        let [none, coarse, fine] = [1.0, 0.1, 0.01].map(iterations);
        assert!(coarse < none && 2 * fine < coarse, "{none} {coarse} {fine}");
    }

    #[test]
    fn matrices_that_have_none_are_refused_with_the_row() {
        let entries = |d: f64, off: f64| vec![(0, 0, 1.0), (0, 1, off), (1, 0, off), (1, 1, d)];
        let make = |entries: &[(usize, usize, f64)], options| {
            factor(&device(), &Csr::<f64>::from_triplets(2, 2, entries).unwrap(), options).err()
        };
        for options in [AinvOptions::sainv(0.0), AinvOptions::ainv(0.0), AinvOptions::factored(0.0)] {
            let row = |entries: &[(usize, usize, f64)]| match make(entries, options) {
                Some(Error::Structure { row, .. }) => row,
                other => panic!("{other:?}"),
            };
            assert_eq!(row(&entries(1.0, 2.0)), Some(1), "indefinite");
            assert_eq!(row(&entries(-1.0, 0.5)), Some(1), "a negative diagonal");
            assert_eq!(row(&entries(0.0, 0.5)), Some(1), "a zero");
            assert_eq!(row(&[(0, 0, 1.0), (1, 0, 0.5), (1, 1, 1.0)]), Some(0), "not symmetric");
            assert!(matches!(make(&entries(f64::NAN, 0.5), options), Some(Error::NotFinite { .. })));
        }
        assert!(matches!(make(&entries(2.0, 1.0), AinvOptions::sainv(-0.5)), Some(Error::Option { .. })));
        let nowhere = AinvOptions::sainv(0.1).with_pattern(Some(0));
        assert!(matches!(make(&entries(2.0, 1.0), nowhere), Some(Error::Option { name: "pattern", .. })));
        assert!(make(&entries(2.0, 1.0), AinvOptions::sainv(0.5)).is_none());
    }
}
