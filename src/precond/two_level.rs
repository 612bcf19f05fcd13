//! Two levels: the diagonal, and a coarse system with one unknown for each part of the matrix.
//!
//! ```text
//!   M = D^-1 + P E^-1 P',   E = P'A P,   P = (I - omega D^-1 A) Z,   omega = 4 / (3 max_i sum_j |a_ij| / d_i)
//!
//!   column k of Z is 1 in the rows of part k, and 0 elsewhere
//! ```
//!
//! `D^-1` reduces errors that oscillate inside a part, the coarse system those that are smooth over many parts. For matrices of
//! diffusion the number of iterations of CG grows with the diameter of a part, and not with that of the whole grid. `M` is symmetric positive definite if `A` is, up to the rounding of `E^-1`. It is
//! made of operators: a diagonal, and three stored matrices one after another.
//!
//! Source: R. A. Nicolaides, "Deflation of conjugate gradients with applications to boundary value problems", SIAM J. Numer. Anal. 24
//! (1987), for `Z`; P. Vaněk, J. Mandel, M. Brezina, "Algebraic multigrid by smoothed aggregation for second and fourth order elliptic
//! problems", Computing 56 (1996), for `P`; B. Smith, P. Bjørstad, W. Gropp, "Domain decomposition", 1996, section 2.1 (additive
//! two-level methods).

use std::time::Instant;

use super::kind::{Made, Parameters, PreconditionerKind, Source, Symmetry};
use super::support::{check_symmetric, in_time, operator_in_field};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::matrix::{Matrix, Storage, Transposed};
use crate::number::{Real, per_number};
use crate::operator::{
    Adjoint, Diagonal, LinearOperator, LinearOperatorExt, ProductOperator, SharedOperator, Structure, SumOperator,
};
use crate::setters::setters;
use crate::sparse::{AsCsr, Csr, Format, Partition};
use crate::threads;
use crate::vector::Vector;

const NAME: &str = "two-level";
/// Rows after which the set-up looks at the clock.
const LOOKS: usize = 1024;
/// Most parts: the inverse of the coarse system has their square of numbers.
const MOST_PARTS: usize = 2048;
/// Parts that are aimed at, and least rows of one, if no number of rows is asked for.
const PARTS: usize = 400;
const LEAST_ROWS: usize = 32;

/// Options of [`TwoLevel::new`] by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TwoLevelOptions {
    /// Most rows of a part, of parts that are [grown](Partition::grown); `None` for at least 32 and about 400 parts.
    pub rows: Option<usize>,
}

impl TwoLevelOptions {
    setters! {
        with_rows: rows(impl usize),
    }

    /// Parts of a number of rows that follows from the matrix.
    pub const fn new() -> Self {
        Self { rows: None }
    }
}

/// `P E^-1 P'`.
type Coarse<T> = ProductOperator<Matrix<T>, ProductOperator<Matrix<T>, Adjoint<Matrix<T>>, T>, T>;

/// The sum of an inverse diagonal and a coarse correction, for symmetric positive definite matrices, as an
/// operator. Every device gives the same bits. The coarse system is summed and inverted on the host in `f64`.
///
/// # Cost
/// Held: for `k` parts of `n` rows `k^2` numbers, `P` and its transposed with an entry for each part that a row or its neighbours are in, the
/// diagonal, and two vectors. A product takes 5 launches, and reads these. Set-up: some passes over the entries, and `k^3` operations.
///
/// ```
/// use residuum::precond::{TwoLevel};
/// use residuum::sparse::{Partition, gallery};
/// use residuum::{Device, Format, Matrix, Method, Setup, Solver, Stopping, Vector};
///
/// let device = Device::best()?;
/// let a = gallery::poisson_2d::<f64>(20, 0.0)?;
/// let partition = Partition::natural(a.rows(), 8)?;
/// let m = TwoLevel::new(&device, &a, &partition)?;
/// let matrix = Matrix::new(&device, &a, Format::Auto)?;
/// let b = Vector::filled(&device, a.rows(), 1.0)?;
/// let mut x = Vector::zeros(&device, a.cols())?;
/// let setup = Setup::new(Method::Cg, Stopping::for_precision::<f64>()).with_preconditioner(m);
/// assert!(Solver::with(&matrix, setup)?.solve(&b, &mut x)?.converged());
/// # Ok::<(), residuum::Error>(())
/// ```
#[derive(Debug)]
pub struct TwoLevel<T: Real> {
    sum: SumOperator<Diagonal<T>, Coarse<T>, T>,
    entries: usize,
}

per_number! {
    fn new<T>(device: &Device, a: &Csr<T>, partition: &Partition, deadline: Option<Instant>) -> Result<TwoLevel<T>> = TwoLevel::new_here;
}

impl<T: Real> TwoLevel<T> {
    /// Makes it for the symmetric positive definite matrix `a` over the parts of `partition`.
    ///
    /// # Errors
    /// [`Error::Shape`] for a matrix that is not square, or a partition of another number of rows, [`Error::Option`] for more than 2048
    /// parts, [`Error::NotFinite`], [`Error::Structure`] with the row of an entry that is not symmetric, of a diagonal entry that is 0, or with
    /// the first row of a column of `P` whose pivot is not positive; [`Error::Memory`].
    pub fn new(device: &Device, a: &(impl AsCsr<T> + ?Sized), partition: &Partition) -> Result<Self> {
        let a = &*a.as_csr()?;
        new(device, a, partition, None)
    }

    fn new_here(device: &Device, a: &Csr<T>, partition: &Partition, deadline: Option<Instant>) -> Result<Self> {
        partition.check(a)?;
        check_symmetric(a)?;
        let parts = filled(partition);
        if parts.len() > MOST_PARTS {
            let reason = format!("{} parts of a coarse system; up to {MOST_PARTS} are possible", parts.len());
            return Err(Error::Option { name: "partition", reason });
        }
        let diagonal = Diagonal::inverse_of(device, a)?;
        let p = prolongator(a, partition, &parts)?;
        let inverse = Matrix::new(device, &inverse(a, &p, deadline)?, Format::Auto)?;
        let entries = a.rows() + p.nnz() + inverse.nnz();
        let storage = Storage { transposed: Transposed::Copy, ..Storage::default() };
        let p = Matrix::stored(device, &p, storage)?;
        let coarse = p.clone().times(inverse.times(p.adjoint()?)?)?;
        Ok(Self { sum: diagonal.plus(coarse)?, entries })
    }

    /// Entries of the diagonal, of `P` and of the inverse of the coarse system.
    pub fn entries(&self) -> usize {
        self.entries
    }
}

/// The parts that have rows, ascending.
fn filled(partition: &Partition) -> Vec<u32> {
    let sizes = partition.sizes();
    (0..partition.parts() as u32).filter(|part| sizes[*part as usize] > 0).collect()
}

/// `P` by rows. Terms of an entry are added by ascending column of the matrix.
fn prolongator<T: Real>(a: &Csr<T>, partition: &Partition, parts: &[u32]) -> Result<Csr<T>> {
    let mut number = vec![0; partition.parts()];
    parts.iter().zip(0..).for_each(|(part, k)| number[*part as usize] = k);
    let of = |i: usize| -> u32 { number[partition.of()[i] as usize] };
    let diagonal = a.diagonal();
    let sum = |i: usize| a.row(i).1.iter().map(|v| v.to_f64().abs()).sum::<f64>() / diagonal[i];
    let omega = 4.0 / 3.0 / (0..a.rows()).map(sum).fold(1.0, f64::max);
    Csr::from_rows(a.rows(), parts.len(), |i, row| {
        let mut found = vec![(of(i), 1.0)];
        let (columns, values) = a.row(i);
        for (j, v) in columns.iter().zip(values) {
            let (part, change) = (of(*j as usize), omega * v.to_f64() / diagonal[i]);
            match found.iter_mut().find(|(known, _)| *known == part) {
                Some((_, value)) => *value -= change,
                None => found.push((part, -change)),
            }
        }
        found.sort_unstable_by_key(|(part, _)| *part);
        row.extend(found.into_iter().map(|(part, value)| (part, T::from_f64(value))));
    })
}

/// `E^-1`, all its entries. Sums run over ascending rows and columns.
fn inverse<T: Real>(a: &Csr<T>, p: &Csr<T>, deadline: Option<Instant>) -> Result<Csr<T>> {
    let count = p.cols();
    let mut e = vec![0.0; count * count];
    let (mut product, mut touched) = (vec![0.0; count], Vec::new());
    for i in 0..a.rows() {
        if i % LOOKS == 0 {
            in_time(deadline, NAME)?;
        }
        // Row i of A P.
        let (columns, values) = a.row(i);
        for (j, v) in columns.iter().zip(values) {
            let (parts, weights) = p.row(*j as usize);
            for (l, w) in parts.iter().zip(weights) {
                touched.push(*l as usize);
                product[*l as usize] += v.to_f64() * w.to_f64();
            }
        }
        touched.sort_unstable();
        touched.dedup();
        let (parts, weights) = p.row(i);
        for (k, w) in parts.iter().zip(weights) {
            touched.iter().for_each(|l| e[*k as usize * count + l] += w.to_f64() * product[*l]);
        }
        touched.drain(..).for_each(|l| product[l] = 0.0);
    }
    factor(&mut e, count, count as f64 * T::EPSILON, deadline)?.map_err(|k| Error::Structure {
        what: "a part of the coarse system has no positive pivot in this precision: the matrix is not definite enough, or the part is on its own".into(),
        row: (0..a.rows()).find(|i| p.row(*i).0.contains(&(k as u32))),
    })?;
    // Column j from row j on; the upper triangle mirrors it.
    let columns = threads::map(0..count, 1, |_, j: usize| column(&e, count, j));
    Csr::from_rows(count, count, |i, row| {
        let entry = |j: usize| columns[i.min(j)][i.max(j) - i.min(j)];
        row.extend((0..count).map(|j| (j as u32, T::from_f64(entry(j)))));
    })
}

/// Cholesky factor of the lower triangle of `e`, in place. Fails with the row of a pivot that is at most `least` times its diagonal entry.
fn factor(
    e: &mut [f64],
    n: usize,
    least: f64,
    deadline: Option<Instant>,
) -> Result<std::result::Result<(), usize>> {
    for i in 0..n {
        in_time(deadline, NAME)?;
        let (above, row) = e.split_at_mut(i * n);
        for j in 0..i {
            let other = &above[j * n..][..j + 1];
            let known: f64 = row[..j].iter().zip(other).map(|(x, y)| x * y).sum();
            row[j] = (row[j] - known) / other[j];
        }
        let pivot = row[i] - row[..i].iter().map(|v| v * v).sum::<f64>();
        // Rounding is all that is left of a singular system.
        if !(pivot > least * row[i] && pivot.is_finite()) {
            return Ok(Err(i));
        }
        row[i] = pivot.sqrt();
    }
    Ok(Ok(()))
}

/// Rows `j ..` of column `j` of the inverse of `L L'`.
fn column(l: &[f64], n: usize, j: usize) -> Vec<f64> {
    let mut x = vec![0.0; n - j];
    for i in j..n {
        let known: f64 = (j..i).map(|k| l[i * n + k] * x[k - j]).sum();
        x[i - j] = (f64::from(u8::from(i == j)) - known) / l[i * n + i];
    }
    for i in (j..n).rev() {
        x[i - j] /= l[i * n + i];
        let done = x[i - j];
        (j..i).for_each(|k| x[k - j] -= l[i * n + k] * done);
    }
    x
}

impl PreconditionerKind for TwoLevelOptions {
    fn name(&self) -> &'static str {
        NAME
    }

    fn parameters(&self) -> String {
        self.rows.map_or(String::new(), |rows| rows.to_string())
    }

    fn grammar(&self) -> Option<[&'static str; 2]> {
        Some(["rows of a part belong", "200"])
    }

    fn with_parameters(self, given: &Parameters<'_>) -> Option<Self> {
        Some(self.with_rows(given.only::<usize>()?))
    }

    fn symmetry(&self) -> Symmetry {
        Symmetry::Definite
    }

    fn takes_partition(&self) -> bool {
        true
    }

    fn most_entries<T: Real>(&self, _a: &Csr<T>) -> Option<usize> {
        None
    }

    fn build<T: Real>(&self, Source { device, a, partition, deadline, .. }: Source<'_, T>) -> Result<Made<T>> {
        let partition = match partition {
            Some(given) => given.clone(),
            None => Partition::grown(a, self.rows.unwrap_or(LEAST_ROWS.max(a.rows().div_ceil(PARTS))))?,
        };
        in_time(deadline, self.name())?;
        let made = new(device, a, &partition, deadline)?;
        let entries = made.entries();
        Ok(Made { partition: Some(partition), ..Made::new(made, entries) })
    }
}

operator_in_field!(TwoLevel.sum, symmetric);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::precond::Preconditioner;
    use crate::sparse::gallery;
    use crate::{Method, Setup, Solver, Stopping};

    fn device() -> Device {
        Device::host()
    }

    /// `M` by its definition, with a coarse system that is solved by elimination.
    #[test]
    fn it_is_the_sum_of_both_levels() {
        let a = gallery::poisson_2d::<f64>(6, 0.3).unwrap();
        // Part 1 has no rows.
        let of: Vec<u32> = (0..36).map(|i| [0, 2, 3][i / 12]).collect();
        let partition = Partition::new(of.clone(), 4).unwrap();
        let m = TwoLevel::new(&device(), &a, &partition).unwrap();
        let x: Vec<f64> = (0..36).map(|i| f64::from(i * i % 11) - 4.0).collect();
        let mut z = Vector::zeros(&device(), 36).unwrap();
        m.apply(&Vector::from_slice(&device(), &x).unwrap(), &mut z).unwrap();
        let z = z.to_vec().unwrap();
        // y = z - D^-1 x is P c, and P'A y = P'x.
        let diagonal = a.diagonal();
        let y: Vec<f64> = (0..36).map(|i| z[i] - x[i] / diagonal[i]).collect();
        let residual: Vec<f64> = a.product(&y).unwrap().iter().zip(&x).map(|(ay, x)| x - ay).collect();
        // Row sums are at most twice the diagonal entry.
        let largest =
            (0..36).map(|i| a.row(i).1.iter().map(|v| v.abs()).sum::<f64>() / diagonal[i]).fold(1.0, f64::max);
        for part in [0, 2, 3] {
            let column: Vec<f64> = (0..36).map(|i| f64::from(u8::from(of[i] == part))).collect();
            let product = a.product(&column).unwrap();
            let column = (0..36).map(|i| column[i] - 4.0 / (3.0 * largest) * product[i] / diagonal[i]);
            let found: f64 = column.zip(&residual).map(|(p, r)| p * r).sum();
            assert!(found.abs() < 1e-12, "{part}: {found}");
        }
    }

    #[test]
    fn iterations_follow_the_size_of_a_part() {
        let a = gallery::poisson_2d::<f64>(96, 0.0).unwrap();
        let matrix = Matrix::new(&device(), &a, Format::Csr).unwrap();
        let b = Vector::filled(&device(), a.rows(), 1.0).unwrap();
        let iterations = |name: &str| {
            let which: Preconditioner = name.parse().unwrap();
            let setup = Setup::new(Method::Cg, Stopping::for_precision::<f64>());
            let setup = setup.with_preconditioner(which.build(&device(), &a).unwrap());
            let mut x = Vector::zeros(&device(), a.rows()).unwrap();
            let report = Solver::with(&matrix, setup).unwrap().solve(&b, &mut x).unwrap();
            assert!(report.converged(), "{report}");
            report.iterations
        };
        let found = ["jacobi", "two-level=100", "two-level=25"].map(iterations);
        assert!(found.windows(2).all(|pair| pair[1] < pair[0]), "{found:?}");
        assert!(3 * found[2] < found[0], "{found:?}");
    }

    #[test]
    fn what_has_none_is_refused() {
        let a = gallery::poisson_2d::<f64>(50, 0.0).unwrap();
        let fine = Partition::natural(2500, 2500).unwrap();
        assert!(matches!(TwoLevel::new(&device(), &a, &fine), Err(Error::Option { name: "partition", .. })));
        let negative = gallery::poisson_2d::<f64>(8, -7.0).unwrap();
        let parts = Partition::natural(64, 4).unwrap();
        assert!(matches!(TwoLevel::new(&device(), &negative, &parts), Err(Error::Structure { row: Some(0), .. })));
        let short = Partition::natural(63, 4).unwrap();
        assert!(matches!(TwoLevel::new(&device(), &negative, &short), Err(Error::Shape { .. })));
        assert!("two-level=0".parse::<Preconditioner>().unwrap().build(&device(), &a).is_err());
        assert!("two-level=x".parse::<Preconditioner>().is_err());
    }
}
