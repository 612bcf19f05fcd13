//! Sparse approximate inverses of matrices that need not be symmetric: SPAI.
//!
//! ```text
//!   minimise |A M - I| in the Frobenius norm over all matrices M with given places
//!
//!   for each column j, with J the places of m_j and I the rows in which the columns J of A have entries:
//!       minimise |A(I, J) m - e_j(I)|        dense least squares by Householder's QR, in f64
//! ```
//!
//! Columns do not depend on each other, so that all threads make them at once. The places are those of a power of `A`. Columns of
//! `A(I, J)` that depend on those before them, but for rounding, are left out, so no division is by nearly 0.
//!
//! Source: M. Benson, P. Frederickson, "Iterative solution of large sparse linear systems arising in certain multidimensional approximation
//! problems", Utilitas Math. 22 (1982); M. J. Grote, T. Huckle, "Parallel preconditioning with sparse approximate inverses", SIAM J. Sci.
//! Comput. 18 (1997), with places known beforehand; Y. Saad, "Iterative methods for sparse linear systems", 2nd ed. 2003, section 10.5.1.

use std::ops::Range;
use std::time::Instant;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::matrix::{Matrix, Transposed};
use crate::number::{Real, per_number};
use crate::operator::{LinearOperator, SharedOperator, Structure, into_shared};
use crate::precond::kind::{LeastSquares, Made, Parameters, PreconditionerKind, Source, Symmetry, stored_bytes};
use crate::precond::support::{
    check_finite, check_power, check_rounded, factor_on, in_time, largest_of_row, made_by_threads,
    neighbourhood_within, rounded,
};
use crate::setters::setters;
use crate::sparse::{AsCsr, Csr, RowBlock};
use crate::vector::Vector;

/// Most places of a column: a dense factorisation takes the cube of them. Columns of more take a lower power, and the longest columns of the
/// matrix keep the largest of their entries.
const MOST_PLACES: usize = 128;
/// Most entries of the columns of a dense problem together.
const MOST_ENTRIES: usize = 1 << 15;
/// Columns that a thread makes one after another.
const COLUMNS_TOGETHER: usize = 256;

/// Options of [`Spai::new`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpaiOptions {
    /// Power of the matrix that has the sparsity pattern of the inverse, 1 to 4. More entries take fewer iterations, and more time in each. A column
    /// that would have more than 128 entries takes a lower power.
    pub power: usize,
    /// Rounds the inverse to `f32` in the end and stores it so, for solves in `f64`: see [`Csr::rounded_to_f32`].
    pub stored_f32: bool,
    /// Stores the transposed inverse too, for `M'x`: methods of least squares need it.
    pub transposed: bool,
    /// Time at which the set-up ends with [`Error::OutOfTime`] if it is not done.
    pub deadline: Option<Instant>,
}

impl Default for SpaiOptions {
    fn default() -> Self {
        Self::NEUTRAL
    }
}

impl SpaiOptions {
    setters! {
        with_power: power(usize),
        with_stored_f32: stored_f32(bool),
        with_transposed: transposed(bool),
        with_deadline: deadline(impl Instant),
    }

    /// The default.
    pub(in crate::precond) const NEUTRAL: Self =
        Self { power: 1, stored_f32: false, transposed: false, deadline: None };
}

/// The approximate inverse `M` of a square matrix as an operator, which is applied by one product. Every device
/// gives the same bits. It is made on the host, by all threads. `M` of a symmetric matrix is not symmetric.
/// [`LinearOperator::update_values`] computes it again from new values of the matrix. That fails if a column of the
/// pattern was cut to its 128 largest entries and the new values would choose others.
///
/// # Cost
/// Held: `M`, with [`SpaiOptions::transposed`] twice. A product reads it and two vectors. The set-up solves a dense least-squares problem for
/// each column: with `p` entries in the rows and columns of the power about `2 p^4` operations.
///
/// ```
/// use residuum::precond::{Spai, SpaiOptions};
/// use residuum::{Csr, Device, Format, Matrix, Method, Setup, Solver, Stopping, Vector};
///
/// let device = Device::best()?;
/// // Diffusion and convection on a ring.
/// let row = |i: usize| [(i, (i + 99) % 100, -2.0), (i, i, 4.0), (i, (i + 1) % 100, -1.0)];
/// let a = Csr::from_triplets(100, 100, &(0..100).flat_map(row).collect::<Vec<_>>())?;
/// let m = Spai::new(&device, &a, SpaiOptions::default())?;
/// let matrix = Matrix::new(&device, &a, Format::Auto)?;
/// let b = Vector::filled(&device, a.rows(), 1.0)?;
/// let mut x = Vector::zeros(&device, a.cols())?;
/// let setup = Setup::new(Method::BiCgStab, Stopping::for_precision::<f64>()).with_preconditioner(m);
/// assert!(Solver::with(&matrix, setup)?.solve(&b, &mut x)?.converged());
/// # Ok::<(), residuum::Error>(())
/// ```
#[derive(Debug)]
pub struct Spai<T: Real> {
    m: Matrix<T>,
    options: SpaiOptions,
    entries: usize,
    /// Checksum of the places of the matrix.
    pattern: u64,
}

per_number! {
    fn new<T>(device: &Device, a: &Csr<T>, options: SpaiOptions) -> Result<Spai<T>> = Spai::new_here;
    fn update_values<T>(this: &Spai<T>, a: &Csr<T>) -> Result<()> = Spai::update_values_here;
}

impl<T: Real> Spai<T> {
    /// Makes it for the square matrix `a`.
    ///
    /// # Errors
    /// [`Error::Shape`] for a matrix that is not square, [`Error::Option`] for a power out of range, [`Error::NotFinite`],
    /// [`Error::Structure`] with the number of a column that comes out as 0 (row of that number has no entry in its places) or too large, or
    /// that meets columns with more than 32 768 entries; [`Error::Memory`].
    pub fn new(device: &Device, a: &(impl AsCsr<T> + ?Sized), options: SpaiOptions) -> Result<Self> {
        let a = &*a.as_csr()?;
        new(device, a, options)
    }

    fn new_here(device: &Device, a: &Csr<T>, options: SpaiOptions) -> Result<Self> {
        let inverse = inverse(device, a, options)?;
        let transposed = if options.transposed { Transposed::Copy } else { Transposed::None };
        let m = factor_on(device, &inverse, options.stored_f32, transposed)?;
        Ok(Self { m, options: options.with_deadline(None), entries: inverse.nnz(), pattern: a.pattern() })
    }

    fn update_values_here(&self, a: &Csr<T>) -> Result<()> {
        a.check_pattern(self.pattern)?;
        let inverse = inverse(self.m.device(), a, self.options)?;
        self.m.update_values(&*rounded(&inverse, self.options.stored_f32)?)
    }

    /// Entries of `M`.
    pub fn entries(&self) -> usize {
        self.entries
    }
}

/// `M` by rows.
fn inverse<T: Real>(device: &Device, a: &Csr<T>, options: SpaiOptions) -> Result<Csr<T>> {
    check_finite(a)?;
    let SpaiOptions { power, transposed, deadline, .. } = options;
    check_power(power)?;
    let columns = &a.transpose();
    let sizes = (COLUMNS_TOGETHER, 1 + usize::from(transposed), deadline);
    let by_columns = made_by_threads(device, a.rows(), sizes, |room, wanted| {
        columns_of_inverse(columns, wanted, (power, deadline), room)
    })?;
    check_rounded(by_columns.offsets(), by_columns.values(), "an approximate inverse")?;
    Ok(by_columns.transpose())
}

/// Columns of `M` that follow each other. Row `j` of `columns` is column `j` of `A`.
fn columns_of_inverse<T: Real>(
    columns: &Csr<T>,
    wanted: Range<usize>,
    (power, deadline): (usize, Option<Instant>),
    dense: &mut Dense,
) -> Result<RowBlock<T>> {
    let mut made = RowBlock::default();
    for j in wanted {
        in_time(deadline, "SPAI")?;
        let below = |power| neighbourhood_within(columns, j, power, MOST_PLACES);
        let fitting = (1..=power).rev().find_map(below);
        let places = fitting.unwrap_or_else(|| largest_of_row(columns, j, MOST_PLACES, |i| i != j));
        let entries: usize = places.iter().map(|k| columns.row(*k as usize).0.len()).sum();
        if entries > MOST_ENTRIES {
            let what = format!(
                "column {j} meets columns of {entries} entries, of {MOST_ENTRIES} at most: no SPAI; take ilu0 or jacobi"
            );
            return Err(Error::Structure { what, row: Some(j) });
        }
        dense.gather(columns, &places);
        if !dense.solve(j) {
            let what = format!("row {j} has no entry that column {j} of an approximate inverse could reach");
            return Err(Error::Structure { what, row: Some(j) });
        }
        made.values.extend(dense.m.iter().map(|m| T::from_f64(*m)));
        made.indices.extend_from_slice(&places);
        made.lengths.push(places.len());
    }
    Ok(made)
}

/// Room for the least-squares problem of a column.
#[derive(Default)]
struct Dense {
    /// Rows that take part, ascending.
    rows: Vec<u32>,
    /// Columns of the matrix, one after another; then of `R` with the vectors of the reflections below.
    b: Vec<f64>,
    /// Right-hand side, then its image.
    e: Vec<f64>,
    /// Solution.
    m: Vec<f64>,
    /// Power of 2 that the matrix was multiplied by.
    scale: f64,
}

impl Dense {
    /// Takes the columns `places` of `A`.
    fn gather<T: Real>(&mut self, columns: &Csr<T>, places: &[u32]) {
        let Self { rows, b, m, .. } = self;
        rows.clear();
        rows.extend(places.iter().flat_map(|k| columns.row(*k as usize).0));
        // Columns are ascending: a stable sort merges them.
        rows.sort();
        rows.dedup();
        let height = rows.len();
        b.clear();
        b.resize(height * places.len(), 0.0);
        m.clear();
        m.resize(places.len(), 0.0);
        for (k, column) in places.iter().enumerate() {
            let (found, values) = columns.row(*column as usize);
            let mut at = 0;
            for (l, i) in found.iter().enumerate() {
                while rows[at] < *i {
                    at += 1;
                }
                b[k * height + at] = values[l].to_f64();
            }
        }
        // Numbers near 1, so that no sum of squares leaves the range; a power of 2 changes no digit.
        let largest = b.iter().fold(0.0f64, |most, v| most.max(v.abs()));
        let exponent = (largest.to_bits() >> 52) as i32 - 1023;
        self.scale = 2f64.powi(-exponent);
        b.iter_mut().for_each(|v| *v *= self.scale);
    }

    /// Solves for the unit vector of row `j`; tells if the solution is not 0.
    fn solve(&mut self, j: usize) -> bool {
        let Self { rows, b, e, m, scale } = self;
        let (height, width) = (rows.len(), m.len());
        let Ok(own) = rows.binary_search(&(j as u32)) else { return false };
        // The solution is 0 if no column has an entry in that row.
        if (0..width).all(|k| b[k * height + own] == 0.0) {
            return false;
        }
        e.clear();
        e.resize(height, 0.0);
        e[own] = 1.0;
        // Number of the unknown that each row of R belongs to.
        let mut of_row = Vec::with_capacity(width);
        for k in 0..width {
            let top = of_row.len();
            let (before, after) = b.split_at_mut((k + 1) * height);
            let column = &mut before[k * height..];
            let square = |part: &[f64]| {
                let mut sum = 0.0;
                for v in part {
                    sum += v * v;
                }
                sum
            };
            let (rest, whole) = (square(&column[top.min(height)..]).sqrt(), square(column).sqrt());
            // A column that depends on those before it.
            if top == height || rest <= DEPENDENT * whole {
                continue;
            }
            let alpha = if column[top] > 0.0 { -rest } else { rest };
            column[top] -= alpha;
            let reflection = &column[top..];
            let norm2 = square(reflection);
            // Loops by number: the set-up is mostly these, and `zip` and `fold` are calls.
            let reflect = |x: &mut [f64]| {
                let x = &mut x[..reflection.len()];
                let mut product = 0.0;
                for l in 0..x.len() {
                    product += reflection[l] * x[l];
                }
                let factor = 2.0 * product / norm2;
                for l in 0..x.len() {
                    x[l] -= factor * reflection[l];
                }
            };
            after.chunks_mut(height).for_each(|x| reflect(&mut x[top..]));
            reflect(&mut e[top..]);
            column[top] = alpha;
            of_row.push(k);
        }
        // Back substitution with R, unknowns that were left out being 0.
        for (row, k) in of_row.iter().enumerate().rev() {
            let later = &of_row[row + 1..];
            let value = later.iter().fold(e[row], |value, l| value - b[l * height + row] * m[*l]);
            m[*k] = value / b[k * height + row];
        }
        m.iter_mut().for_each(|m| *m *= *scale);
        m.iter().any(|m| *m != 0.0)
    }
}

/// Share of the norm of a column below which what the columns before leave of it is rounding.
const DEPENDENT: f64 = 1e-14;

into_shared!(Spai);

impl<T: Real> LinearOperator<T> for Spai<T> {
    fn device(&self) -> &Device {
        self.m.device()
    }
    fn rows(&self) -> usize {
        self.m.rows()
    }
    fn cols(&self) -> usize {
        self.m.cols()
    }
    fn apply(&self, x: &Vector<T>, z: &mut Vector<T>) -> Result<()> {
        self.m.apply(x, z)
    }
    fn apply_adjoint(&self, x: &Vector<T>, z: &mut Vector<T>) -> Result<()> {
        self.m.apply_adjoint(x, z)
    }
    fn has_adjoint(&self) -> bool {
        self.m.has_adjoint()
    }
    fn bytes(&self) -> u64 {
        LinearOperator::bytes(&self.m)
    }
    fn takes_columns(&self) -> bool {
        self.m.takes_columns()
    }
    fn apply_columns(&self, columns: usize, x: &Vector<T>, z: &mut Vector<T>) -> Result<()> {
        self.m.apply_columns(columns, x, z)
    }
    fn apply_adjoint_columns(&self, columns: usize, x: &Vector<T>, z: &mut Vector<T>) -> Result<()> {
        self.m.apply_adjoint_columns(columns, x, z)
    }
    fn frobenius_norm(&self) -> Option<f64> {
        LinearOperator::frobenius_norm(&self.m)
    }
    fn launches(&self, columns: usize) -> usize {
        self.m.launches(columns)
    }
    fn structure(&self) -> Structure<'_, T> {
        self.m.structure()
    }
    fn update_values(&self, a: &Csr<T>) -> Result<()> {
        update_values(self, a)
    }
}

impl PreconditionerKind for SpaiOptions {
    fn name(&self) -> &'static str {
        "spai"
    }

    fn parameters(&self) -> String {
        self.power.to_string()
    }

    fn grammar(&self) -> Option<[&'static str; 2]> {
        Some(["a power of the matrix belongs", "2"])
    }

    fn with_parameters(self, given: &Parameters<'_>) -> Option<Self> {
        Some(self.with_power(given.only()?))
    }

    fn symmetry(&self) -> Symmetry {
        Symmetry::Lost
    }

    fn least_squares(&self) -> LeastSquares {
        LeastSquares::Square
    }

    fn in_stored_f32(self) -> Option<Self> {
        Some(self.with_stored_f32(true))
    }

    fn most_entries<T: Real>(&self, a: &Csr<T>) -> Option<usize> {
        match self.power {
            1 => Some(a.nnz().saturating_add(a.rows())),
            // A column may be as long as a row of the transposed matrix.
            _ => Some(a.rows().saturating_mul(MOST_PLACES.min(a.rows()))),
        }
    }

    fn is_sure(&self) -> bool {
        self.power == 1
    }

    fn bytes<T: Real>(&self, entries: usize, rows: usize) -> u64 {
        stored_bytes::<T>([entries, rows], 1 + usize::from(self.transposed), 0)
    }

    fn build<T: Real>(&self, from: Source<'_, T>) -> Result<Made<T>> {
        let inverse = Spai::new(from.device, from.a, self.with_deadline(from.until(self.deadline)))?;
        let entries = inverse.entries();
        Ok(Made::new(inverse, entries))
    }

    fn build_for_least_squares<T: Real>(&self, from: Source<'_, T>) -> Result<Made<T>> {
        self.with_transposed(true).build(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparse::gallery;

    fn options() -> SpaiOptions {
        SpaiOptions::default()
    }

    fn made<T: Real>(a: &Csr<T>, power: usize) -> Result<Csr<T>> {
        inverse(&Device::host(), a, options().with_power(power))
    }

    /// `A M` less the identity, column by column, in the Frobenius norm; `M` by its columns.
    fn residual(a: &Csr<f64>, m: &Csr<f64>) -> Vec<f64> {
        let columns = m.transpose();
        let norm = |j: usize| {
            let mut x = vec![0.0; a.cols()];
            columns.row(j).0.iter().zip(columns.row(j).1).for_each(|(i, v)| x[*i as usize] = *v);
            let mut y = a.product(&x).unwrap();
            y[j] -= 1.0;
            y.iter().map(|y| y * y).sum::<f64>().sqrt()
        };
        (0..a.cols()).map(norm).collect()
    }

    #[test]
    fn a_full_matrix_is_inverted() {
        let entries = [(0, 0, 1.0), (0, 1, 2.0), (1, 0, 3.0), (1, 1, 4.0)];
        let a = Csr::<f64>::from_triplets(2, 2, &entries).unwrap();
        let found = made(&a, 1).unwrap();
        for (found, wanted) in found.values().iter().zip([-2.0, 1.0, 1.5, -0.5]) {
            assert!((found - wanted).abs() < 1e-13, "{found} {wanted}");
        }
    }

    #[test]
    fn no_change_of_an_entry_brings_it_nearer() {
        let a = gallery::random::<f64>(60, 60, 300, 5).unwrap();
        let entries: Vec<_> = (0..60)
            .flat_map(|i| a.row(i).0.iter().zip(a.row(i).1).map(move |(j, v)| (i, *j as usize, *v)))
            .chain((0..60).map(|i| (i, i, 2.0)))
            .collect();
        let a = Csr::from_triplets(60, 60, &entries).unwrap();
        let mut last = f64::INFINITY;
        for power in 1..=3 {
            let m = made(&a, power).unwrap();
            let least = residual(&a, &m);
            let total: f64 = least.iter().map(|r| r * r).sum();
            assert!(total < last, "power {power}: {total} {last}");
            last = total;
            for at in (0..m.nnz()).step_by(7) {
                let j = m.indices()[at] as usize;
                for by in [1e-4, -1e-4] {
                    let mut values = m.values().to_vec();
                    values[at] += by;
                    let moved = residual(&a, &m.with_values(values).unwrap())[j];
                    assert!(moved >= least[j] - 1e-12, "power {power}, entry {at}: {moved} {}", least[j]);
                }
            }
        }
    }

    #[test]
    fn faults_name_what_is_wrong() {
        let csr = |entries: &[(usize, usize, f64)]| Csr::from_triplets(2, 2, entries).unwrap();
        let row = |a: &Csr<f64>| match made(a, 1) {
            Err(Error::Structure { row, .. }) => row,
            other => panic!("{other:?}"),
        };
        assert_eq!(row(&csr(&[(0, 0, 1.0), (0, 1, 1.0)])), Some(1), "an empty row");
        assert_eq!(row(&csr(&[(0, 0, 1.0), (0, 1, 1.0), (1, 0, 0.0), (1, 1, 0.0)])), Some(1), "a row of zeros");
        for size in [1e-170, 1e160] {
            let m = made(&csr(&[(0, 0, size), (1, 1, 2.0 * size)]), 1).unwrap();
            assert!(
                m.values().iter().zip([1.0, 0.5]).all(|(m, wanted)| (m * size - wanted).abs() < 1e-15),
                "{m:?}"
            );
        }
        let arrow: Vec<_> =
            (1..40_000).flat_map(|i| [(0, i, 1.0), (i, 0, 1.0), (i, i, 4.0)]).chain([(0, 0, 4.0)]).collect();
        let arrow = Csr::<f64>::from_triplets(40_000, 40_000, &arrow).unwrap();
        assert!(matches!(made(&arrow, 1), Err(Error::Structure { row: Some(0), .. })));
        // Two equal columns: one is left out.
        let singular = made(&csr(&[(0, 0, 1.0), (0, 1, 1.0), (1, 0, 1.0), (1, 1, 1.0)]), 1).unwrap();
        assert!(singular.values().iter().all(|v| v.is_finite()));
        assert!(matches!(made(&csr(&[(0, 0, 1.0)]), 5), Err(Error::Option { .. })));
        assert!(matches!(made(&csr(&[(0, 0, f64::NAN), (1, 1, 1.0)]), 1), Err(Error::NotFinite { .. })));
        let wide = Csr::<f64>::from_triplets(1, 2, &[(0, 0, 1.0)]).unwrap();
        assert!(matches!(made(&wide, 1), Err(Error::Shape { .. })));
        assert_eq!(made(&Csr::<f64>::from_triplets(0, 0, &[]).unwrap(), 1).unwrap().nnz(), 0);
        // Columns longer than the most keep their largest entries.
        let full = gallery::random::<f64>(200, 200, 30_000, 5).unwrap();
        let found = made(&full, 1).unwrap().transpose();
        assert!((0..200).any(|j| found.row(j).0.len() == MOST_PLACES));
    }
}
