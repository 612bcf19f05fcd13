//! Incomplete factors: IC(0) and ILU(0), exact or by sweeps; IC and ILU with a threshold.
//!
//! ```text
//!   IC(0)    A = L L' in the places of A:   l_ik = (a_ik - sum over j < k of l_ij l_kj) / l_kk,   l_ii = sqrt(a_ii - sum of l_ij^2)
//!   ILU(0)   A = L U in the places of A:    for k < i in row i:   l_ik = a_ik / u_kk,   a_ij -= l_ik u_kj  for j > k in rows i and k
//! ```
//!
//! Sums run in ascending order. A pivot fails if it is not positive (IC) or nearly 0 (ILU). If one fails, all diagonal entries are
//! raised: IC adds a share of the entry itself, ILU a share of the largest entry of its row. The share is the first of
//! [`Incomplete::SHIFTS`] with which no pivot fails.
//!
//! The factors are stored as `(D + N D) D^-1 (D + V)`: `D` has the pivots, `N` is strictly lower and `V` strictly upper triangular. ILU: `L = I + N`
//! and `U = D + V`. IC: the factor is `(D + N D) D^-1/2`, and `V = D N'`. Entries are rounded to the precision of the matrix. A solve takes the
//! rows level by level; rows of a level do not depend on each other.
//! [`IncompleteOptions::solve_sweeps`] solves by Jacobi sweeps instead, which only come close.
//!
//! Source: dedecek-2013, algorithm 5; Y. Saad, "Iterative methods for sparse linear systems", 2nd ed. 2003, algorithms 10.4 (ILU(0)) and
//! 10.6 (ILUT), section 10.3 and 11.6.3 (levels); T. A. Manteuffel, Math. Comp. 34 (1980) (shifts); E. Chow, A. Patel,
//! "Fine-grained parallel incomplete LU factorization", SIAM J. Sci. Comput. 37 (2015) (sweeps, of factors and of solves).

mod exact;
mod kind;
mod options;
mod pivot;
mod relaxed;
mod root;
mod swept;
mod threshold;

use std::sync::{Mutex, PoisonError};

pub use self::options::{Factorisation, Fill, IncompleteOptions};
use self::pivot::{BadPivot, OF_FACTORS, largest};
use self::relaxed::Relaxed;
use self::root::Root;
use self::swept::Swept;
use super::support::{check_finite, check_rounded, first_asymmetry, in_time, mirrored, nearly_equal};
use super::sweep::{RowOrdering, Sweep, SweepOptions};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::number::{Real, per_number};
use crate::operator::{LinearOperator, SharedOperator, into_shared};
use crate::sparse::{AsCsr, Csr};
use crate::threads;
use crate::vector::Vector;

/// Incomplete factors of a matrix, as an operator that solves with both. Every device gives the same bits.
///
/// Factors in the sparsity pattern of the matrix, solved with by levels, take other values ([`LinearOperator::update_values`]). LU factors have an
/// adjoint with [`IncompleteOptions::transposed`].
///
/// # Cost
/// On the host: 8 bytes for each row, and 4 for each entry (Cholesky), besides those of [`Sweep`]. With
/// [`IncompleteOptions::transposed`] all that is held twice.
/// Solves by levels: held are the entries off the diagonal once, and 24 to 32 bytes for each row. Launches as [`Sweep`] in the order of
/// the rows: a long chain of rows that need each other takes as many steps. Solves by `k` sweeps: held are the entries off the diagonal as
/// stored matrices (with the transposed of `L`, of Cholesky), and 3 vectors; `2 k + 1` launches, each of which reads the entries of a
/// factor. Sweeps over factors: 1 (Cholesky) or 3 numbers of 4 bytes and 3 values for each entry while they are made; 16 launches a sweep.
///
/// ```
/// use residuum::precond::{Factorisation, Incomplete, IncompleteOptions};
/// use residuum::sparse::gallery;
/// use residuum::{Device, Format, Matrix, Method, Setup, Solver, Stopping, Vector};
///
/// let device = Device::best()?;
/// let a = gallery::poisson_2d::<f64>(20, 0.0)?;
/// let m = Incomplete::new(&device, &a, IncompleteOptions::new(Factorisation::Cholesky))?;
/// let matrix = Matrix::new(&device, &a, Format::Auto)?;
/// let b = Vector::filled(&device, a.rows(), 1.0)?;
/// let mut x = Vector::zeros(&device, a.cols())?;
/// let setup = Setup::new(Method::Cg, Stopping::for_precision::<f64>()).with_preconditioner(m);
/// assert!(Solver::with(&matrix, setup)?.solve(&b, &mut x)?.converged());
/// # Ok::<(), residuum::Error>(())
/// ```
#[derive(Debug)]
pub struct Incomplete<T: Real> {
    solves: Solves<T>,
    /// Solves with the transposed of LU factors, if they were asked for.
    adjoint: Option<Solves<T>>,
    options: IncompleteOptions,
    /// Places for other values; none if it takes none.
    places: Option<Places>,
    /// Shift of the values that it has now.
    shift: Mutex<f64>,
    entries: usize,
}

/// Places in the matrix that factors are made with.
#[derive(Debug)]
struct Places {
    /// Place of each diagonal entry.
    diagonal: Vec<usize>,
    /// Place of the mirror image of each entry, for Cholesky.
    mirror: Vec<u32>,
}

/// A way of solving with both factors.
#[derive(Debug)]
enum Solves<T: Real> {
    Levels(Sweep<T>),
    Relaxed(Box<Relaxed<T>>),
}

per_number! {
    fn new<T>(device: &Device, a: &Csr<T>, options: IncompleteOptions) -> Result<Incomplete<T>> = Incomplete::new_here;
    fn root<T>(device: &Device, a: &Csr<T>, options: IncompleteOptions) -> Result<(SharedOperator<T>, usize, f64)> = Incomplete::root_here;
    fn update_values<T>(this: &Incomplete<T>, a: &Csr<T>) -> Result<()> = Incomplete::update_values_here;
}

impl<T: Real> Incomplete<T> {
    /// Shifts that are tried, one after another.
    pub const SHIFTS: [f64; 5] = [0.0, 1e-3, 1e-2, 1e-1, 1.0];

    /// Makes the factors of `a` with the given shift, or the first of [`Incomplete::SHIFTS`] with which all pivots are good.
    ///
    /// # Errors
    /// [`Error::Shape`] for a matrix that is not square, [`Error::NotFinite`], [`Error::Option`] for a shift or a threshold that is negative or no
    /// number, no sweeps, or more than 2³² entries, [`Error::Structure`] with the row of a diagonal entry that is missing (or not positive:
    /// IC), of an entry that is not symmetric (IC), or of a pivot that is no good with any shift; [`Error::Memory`].
    pub fn new(device: &Device, a: &(impl AsCsr<T> + ?Sized), options: IncompleteOptions) -> Result<Self> {
        let a = &*a.as_csr()?;
        new(device, a, options)
    }

    fn new_here(device: &Device, a: &Csr<T>, options: IncompleteOptions) -> Result<Self> {
        check(a, options)?;
        let places = Places::of(a, options.kind)?;
        let (factors, shift) = factors(device, a, options, &places)?;
        let entries = factors.nnz();
        let solves = Solves::new(device, &factors, options)?;
        // The transposed of (D + L D) D^-1 (D + U) has the same form.
        let twice = options.transposed && options.kind == Factorisation::Lu;
        let adjoint = twice.then(|| Solves::new(device, &factors.transpose(), options)).transpose()?;
        let options = options.with_deadline(None);
        let in_places = matches!(options.fill, Fill::Exact | Fill::Sweeps(_));
        let places = Some(places).filter(|_| in_places && options.solve_sweeps.is_none() && !twice);
        Ok(Self { solves, adjoint, options, places, shift: Mutex::new(shift), entries })
    }

    /// The root `L'^-1` of the approximate inverse `(L L')^-1` with factors of `a`, the number of their entries, and their shift: what
    /// preconditions least squares from the right, if `a` is [`Csr::normal_matrix`].
    ///
    /// # Errors
    /// As [`Incomplete::new`]; [`Error::Conflict`] for LU factors, and for solves by sweeps.
    pub fn root(
        device: &Device,
        a: &Csr<T>,
        options: IncompleteOptions,
    ) -> Result<(SharedOperator<T>, usize, f64)> {
        root(device, a, options)
    }

    fn root_here(
        device: &Device,
        a: &Csr<T>,
        options: IncompleteOptions,
    ) -> Result<(SharedOperator<T>, usize, f64)> {
        if options.kind == Factorisation::Lu || options.solve_sweeps.is_some() {
            let reason = "Cholesky factors that are solved with by levels have a root, no others do".into();
            return Err(Error::Conflict { name: "preconditioner", reason });
        }
        check(a, options)?;
        let (factors, shift) = factors(device, a, options, &Places::of(a, options.kind)?)?;
        let sweep = Sweep::new(device, &factors, SweepOptions::ssor(1.0).with_ordering(RowOrdering::Rows))?;
        Ok((Root::new(sweep, &factors)?.shared(), factors.nnz(), shift))
    }

    fn update_values_here(&self, a: &Csr<T>) -> Result<()> {
        let (Solves::Levels(sweep), Some(places)) = (&self.solves, &self.places) else {
            let what = "factors with a threshold, with Jacobi sweeps, or with their transposed take no other values: make new ones"
                .into();
            return Err(Error::Structure { what, row: None });
        };
        sweep.check_pattern(a)?;
        check(a, self.options)?;
        places.check_values(a, self.options.kind)?;
        let (values, shift) = in_places(self.device(), a, self.options, places)?;
        sweep.write(&values, &places.diagonal)?;
        *self.shift.lock().unwrap_or_else(PoisonError::into_inner) = shift;
        Ok(())
    }

    /// Shift that was used.
    pub fn shift(&self) -> f64 {
        *self.shift.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Entries of both factors, the diagonal counted once.
    pub fn entries(&self) -> usize {
        self.entries
    }

    fn operator(&self) -> &dyn LinearOperator<T> {
        self.solves.operator()
    }
}

impl<T: Real> Solves<T> {
    /// Solves with `D + L D + U`.
    fn new(device: &Device, factors: &Csr<T>, options: IncompleteOptions) -> Result<Self> {
        Ok(match options.solve_sweeps {
            None => {
                Self::Levels(Sweep::new(device, factors, SweepOptions::ssor(1.0).with_ordering(RowOrdering::Rows))?)
            }
            Some(sweeps) => Self::Relaxed(Box::new(Relaxed::new(device, factors, options.kind, sweeps)?)),
        })
    }

    fn operator(&self) -> &dyn LinearOperator<T> {
        match self {
            Self::Levels(sweep) => sweep,
            Self::Relaxed(relaxed) => &**relaxed,
        }
    }
}

/// `D + L D + U` off the diagonal and `D` on it, and the shift they were made with.
fn factors<T: Real>(
    device: &Device,
    a: &Csr<T>,
    options: IncompleteOptions,
    places: &Places,
) -> Result<(Csr<T>, f64)> {
    let Fill::Threshold { most, drop } = options.fill else {
        let (values, shift) = in_places(device, a, options, places)?;
        return Ok((a.with_values(values)?, shift));
    };
    let (factors, shift) = with_shift(a, options, &places.diagonal, |values| {
        let in_time = || in_time(options.deadline, OF_FACTORS);
        match options.kind {
            Factorisation::Cholesky => threshold::cholesky(a, values, (most, drop), in_time),
            Factorisation::Lu => threshold::lu(a, values, (most, drop), in_time),
        }
    })?;
    Ok((factors?, shift))
}

/// The values of [`factors`] that stand in the sparsity pattern of the matrix.
fn in_places<T: Real>(
    device: &Device,
    a: &Csr<T>,
    options: IncompleteOptions,
    places: &Places,
) -> Result<(Vec<T>, f64)> {
    let (kind, diagonal) = (options.kind, &places.diagonal);
    let mut swept = match options.fill {
        Fill::Sweeps(sweeps) => Some(Swept::new(device, a, kind, diagonal, sweeps)?),
        _ => None,
    };
    let (values, shift) = with_shift(a, options, diagonal, |values| {
        let made = match (&mut swept, kind) {
            (Some(swept), _) => swept.factors(values)?,
            (None, Factorisation::Cholesky) => exact::cholesky(a, diagonal, values),
            (None, Factorisation::Lu) => exact::lu(a, diagonal, values),
        };
        Ok(made.map(|()| together(a, kind, places, values)))
    })?;
    Ok((values?, shift))
}

/// Fails on options and a matrix that no factors can be made of.
fn check<T: Real>(a: &Csr<T>, options: IncompleteOptions) -> Result<()> {
    check_finite(a)?;
    let bad = |name, reason| Err(Error::Option { name, reason });
    if let Some(shift) = options.shift.filter(|shift| !(*shift >= 0.0 && shift.is_finite())) {
        return bad("shift", format!("{shift} is not a number from 0 on"));
    }
    match options.fill {
        Fill::Sweeps(0) => bad("sweeps", "no sweeps give no factors".into()),
        Fill::Threshold { drop, .. } if !(drop >= 0.0 && drop.is_finite()) => {
            bad("drop", format!("{drop} is not a number from 0 on"))
        }
        _ if u32::try_from(a.nnz()).is_err() => {
            bad("preconditioner", format!("{} entries; factors count them in 32 bits", a.nnz()))
        }
        _ => Ok(()),
    }
}

/// Result of `make` for the values of the matrix with the first shift that gives good pivots, and that shift.
fn with_shift<T: Real, F>(
    a: &Csr<T>,
    options: IncompleteOptions,
    diagonal: &[usize],
    mut make: impl FnMut(&mut [f64]) -> Result<std::result::Result<F, BadPivot>>,
) -> Result<(F, f64)> {
    let tried = options.shift.map_or(Incomplete::<T>::SHIFTS.to_vec(), |shift| vec![shift]);
    let mut values = vec![0.0; a.nnz()];
    let mut first: Option<BadPivot> = None;
    for shift in &tried {
        in_time(options.deadline, OF_FACTORS)?;
        threads::each((&mut values[..], a.values()), threads::LEAST, |_, (to, v)| *to = v.to_f64());
        if *shift != 0.0 {
            raise(a, options.kind, diagonal, *shift, &mut values);
        }
        match make(&mut values)? {
            Ok(factors) => return Ok((factors, *shift)),
            Err(bad) => first = first.or(Some(bad)),
        }
    }
    let (row, pivot) = first.unwrap_or_default();
    let last = tried.last().copied().unwrap_or_default();
    let what = format!(
        "pivot {pivot:e} of incomplete factors, and none is good with a shift up to {last}: take sainv or jacobi"
    );
    Err(Error::Structure { what, row: Some(row) })
}

impl Places {
    /// Places of a matrix that has factors of this kind.
    fn of<T: Real>(a: &Csr<T>, kind: Factorisation) -> Result<Self> {
        let diagonal = a.diagonal_places();
        if kind == Factorisation::Cholesky {
            check_positive(a, |i| diagonal[i])?;
        }
        if let Some(i) = diagonal.iter().position(Option::is_none) {
            let what = "no entry on the diagonal: no LU factors in the sparsity pattern of the matrix".into();
            return Err(Error::Structure { what, row: Some(i) });
        }
        let mut mirror = Vec::new();
        if kind == Factorisation::Cholesky {
            mirror = (0..a.nnz() as u32).collect();
            if !mirrored(a, |at, other| (mirror[at], mirror[other]) = (other as u32, at as u32)) {
                return Err(first_asymmetry(a));
            }
        }
        let found = Self { diagonal: diagonal.into_iter().flatten().collect(), mirror };
        found.check_values(a, kind)?;
        Ok(found)
    }

    /// Fails unless the values of a matrix with these places are those of one with factors of this kind.
    fn check_values<T: Real>(&self, a: &Csr<T>, kind: Factorisation) -> Result<()> {
        if kind == Factorisation::Lu {
            return Ok(());
        }
        check_positive(a, |i| Some(self.diagonal[i]))?;
        let values = a.values();
        let near = |k: usize| {
            let entries = k * ENTRIES_TOGETHER..values.len().min((k + 1) * ENTRIES_TOGETHER);
            let pairs = values[entries.clone()].iter().zip(&self.mirror[entries]);
            pairs.fold(true, |all, (v, at)| all & nearly_equal(*v, values[*at as usize]))
        };
        let near = threads::all(values.len().div_ceil(ENTRIES_TOGETHER), 1, near);
        if near { Ok(()) } else { Err(first_asymmetry(a)) }
    }
}

/// Fails with the first row whose diagonal entry, in the given place if there is one, is not positive.
fn check_positive<T: Real>(a: &Csr<T>, place: impl Fn(usize) -> Option<usize>) -> Result<()> {
    let value = |i: usize| place(i).map_or(0.0, |at| a.values()[at].to_f64());
    (0..a.rows()).find(|i| value(*i).is_nan() || value(*i) <= 0.0).map_or(Ok(()), |i| {
        let what = format!("diagonal entry {:e} is not positive: no Cholesky factors", value(i));
        Err(Error::Structure { what, row: Some(i) })
    })
}

/// Adds the shift to the diagonal.
fn raise<T: Real>(a: &Csr<T>, kind: Factorisation, diagonal: &[usize], shift: f64, values: &mut [f64]) {
    for (i, at) in diagonal.iter().enumerate() {
        let by = match kind {
            Factorisation::Cholesky => values[*at],
            Factorisation::Lu => {
                let largest = largest(&values[a.offsets()[i]..a.offsets()[i + 1]]);
                if values[*at] < 0.0 { -largest } else { largest }
            }
        };
        values[*at] += shift * by;
    }
}

/// Entries and rows that a thread takes one after another.
const ENTRIES_TOGETHER: usize = 1 << 14;
const ROWS_TOGETHER: usize = 4096;

/// `D + L D + U` with `L` unit, of factors in place, rounded to `T`. Cholesky's `L L'` is `L_1 D L_1'`.
fn together<T: Real>(a: &Csr<T>, kind: Factorisation, places: &Places, values: &[f64]) -> Result<Vec<T>> {
    let (offsets, columns) = (a.offsets(), a.indices());
    let pivots: Vec<f64> = places.diagonal.iter().map(|at| values[*at]).collect();
    let entry = |i: usize, at: usize| {
        let j = columns[at] as usize;
        match kind {
            Factorisation::Lu if j < i => values[at] * pivots[j],
            Factorisation::Lu => values[at],
            Factorisation::Cholesky if j <= i => values[at] * pivots[j],
            Factorisation::Cholesky => values[places.mirror[at] as usize] * pivots[i],
        }
    };
    let mut made = vec![T::default(); a.nnz()];
    let mut blocks = Vec::new();
    let mut rest = &mut made[..];
    for first in (0..a.rows()).step_by(ROWS_TOGETHER) {
        let rows = first..a.rows().min(first + ROWS_TOGETHER);
        let (block, behind) = rest.split_at_mut(offsets[rows.end] - offsets[first]);
        blocks.push((rows, block));
        rest = behind;
    }
    threads::each(&mut blocks[..], 1, |_, (rows, block)| {
        let begin = offsets[rows.start];
        for i in rows.clone() {
            for at in offsets[i]..offsets[i + 1] {
                block[at - begin] = T::from_f64(entry(i, at));
            }
        }
    });
    check_rounded(offsets, &made, OF_FACTORS)?;
    Ok(made)
}

into_shared!(Incomplete);

impl<T: Real> LinearOperator<T> for Incomplete<T> {
    fn device(&self) -> &Device {
        self.operator().device()
    }
    fn rows(&self) -> usize {
        self.operator().rows()
    }
    fn cols(&self) -> usize {
        self.operator().cols()
    }
    fn apply(&self, x: &Vector<T>, z: &mut Vector<T>) -> Result<()> {
        self.operator().apply(x, z)
    }
    fn apply_adjoint(&self, x: &Vector<T>, z: &mut Vector<T>) -> Result<()> {
        match (&self.adjoint, self.options.kind) {
            (Some(adjoint), _) => adjoint.operator().apply(x, z),
            // Symmetric.
            (None, Factorisation::Cholesky) => self.apply(x, z),
            (None, Factorisation::Lu) => self.operator().apply_adjoint(x, z),
        }
    }
    fn has_adjoint(&self) -> bool {
        self.adjoint.is_some() || self.options.kind == Factorisation::Cholesky
    }
    fn bytes(&self) -> u64 {
        self.operator().bytes() + self.adjoint.as_ref().map_or(0, |adjoint| adjoint.operator().bytes())
    }
    fn update_values(&self, a: &Csr<T>) -> Result<()> {
        update_values(self, a)
    }
    fn launches(&self, columns: usize) -> usize {
        self.operator().launches(columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparse::gallery;

    fn csr(n: usize, entries: &[(usize, usize, f64)]) -> Csr<f64> {
        Csr::from_triplets(n, n, entries).unwrap()
    }

    fn found(a: &Csr<f64>, kind: Factorisation, shift: Option<f64>) -> Result<(Csr<f64>, f64)> {
        made(a, IncompleteOptions::new(kind).with_shift(shift))
    }

    fn made(a: &Csr<f64>, options: IncompleteOptions) -> Result<(Csr<f64>, f64)> {
        check(a, options)?;
        factors(&Device::host(), a, options, &Places::of(a, options.kind)?)
    }

    fn applied(a: &Csr<f64>, options: IncompleteOptions, x: &[f64]) -> Vec<f64> {
        let device = Device::host();
        let mut z = Vector::filled(&device, a.rows(), f64::NAN).unwrap();
        let m = Incomplete::new(&device, a, options).unwrap();
        m.apply(&Vector::from_slice(&device, x).unwrap(), &mut z).unwrap();
        z.to_vec().unwrap()
    }

    fn near(found: &[f64], wanted: &[f64], tolerance: f64) {
        let largest = wanted.iter().fold(0.0f64, |most, v| most.max(v.abs()));
        for (found, wanted) in found.iter().zip(wanted) {
            assert!((found - wanted).abs() <= tolerance * largest, "{found} {wanted}");
        }
    }

    /// A nonsymmetric matrix whose diagonal outweighs the rest.
    fn lopsided(n: usize) -> Csr<f64> {
        let random = gallery::random::<f64>(n, n, 6 * n, 11).unwrap();
        let dominant = Csr::from_rows(n, n, |i, row| {
            let entries = random.row(i).0.iter().copied().zip(random.row(i).1.iter().map(|v| v - 0.4));
            row.extend(entries.filter(|(j, _)| *j as usize != i));
            row.push((i as u32, 3.0 + 0.01 * i as f64));
            row.sort_unstable_by_key(|(j, _)| *j);
        });
        dominant.unwrap()
    }

    #[test]
    fn enough_sweeps_give_the_exact_factors() {
        let grid = gallery::poisson_2d::<f64>(9, 0.0).unwrap();
        let blocks = gallery::block_poisson::<f64>(4, 3).unwrap();
        for (a, kind) in [
            (&grid, Factorisation::Cholesky),
            (&grid, Factorisation::Lu),
            (&blocks, Factorisation::Cholesky),
            (&lopsided(60), Factorisation::Lu),
        ] {
            let exact = IncompleteOptions::new(kind);
            let wanted = made(a, exact).unwrap().0;
            let swept = |sweeps| made(a, exact.with_fill(Fill::Sweeps(sweeps))).unwrap().0;
            let far = |found: &Csr<f64>| {
                let squares = found.values().iter().zip(wanted.values()).map(|(x, y)| (x - y).powi(2));
                squares.sum::<f64>().sqrt()
            };
            near(swept(60).values(), wanted.values(), 1e-14);
            assert!(far(&swept(3)) < 0.2 * far(&swept(1)), "{kind:?}");
            // Solves: as many sweeps as rows are exact too.
            let x: Vec<f64> = (0..a.rows()).map(|k| (k % 7) as f64 - 2.0).collect();
            let wanted = applied(a, exact, &x);
            near(&applied(a, exact.with_solve_sweeps(Some(a.rows())), &x), &wanted, 1e-13);
            for sweeps in [1, 2, 3, 4] {
                let [few, more] = [sweeps, sweeps + 4].map(|k| {
                    let found = applied(a, exact.with_solve_sweeps(Some(k)), &x);
                    found.iter().zip(&wanted).map(|(x, y)| (x - y).powi(2)).sum::<f64>()
                });
                assert!(more < few, "{kind:?} {sweeps}");
            }
        }
    }

    #[test]
    fn without_dropping_a_threshold_solves_exactly() {
        let everything = Fill::Threshold { most: usize::MAX, drop: 0.0 };
        for (a, kind) in [
            (gallery::poisson_2d::<f64>(9, 0.0).unwrap(), Factorisation::Cholesky),
            (gallery::poisson_2d::<f64>(9, 0.0).unwrap(), Factorisation::Lu),
            (lopsided(60), Factorisation::Lu),
        ] {
            let x: Vec<f64> = (0..a.rows()).map(|k| (k % 5) as f64 - 1.0).collect();
            let options = IncompleteOptions::new(kind).with_fill(everything);
            near(&applied(&a, options, &a.product(&x).unwrap()), &x, 1e-12);
        }
    }

    #[test]
    fn a_threshold_drops_what_is_small() {
        // Row 0: 0.1 is below 0.05 of the norm of about 4.1, as is the fill 0.1 * 1 / 4 that it would make.
        let a =
            csr(3, &[(0, 0, 4.0), (0, 1, 1.0), (0, 2, 0.1), (1, 0, 1.0), (1, 1, 4.0), (2, 1, 2.0), (2, 2, 4.0)]);
        let lu = |most, drop| {
            let options = IncompleteOptions::new(Factorisation::Lu).with_fill(Fill::Threshold { most, drop });
            made(&a, options).unwrap().0
        };
        let pattern = |a: &Csr<f64>| (0..a.rows()).map(|i| a.row(i).0.to_vec()).collect::<Vec<_>>();
        assert_eq!(pattern(&lu(9, 0.05)), [vec![0, 1], vec![0, 1], vec![1, 2]]);
        assert_eq!(pattern(&lu(9, 0.0)), [vec![0, 1, 2], vec![0, 1, 2], vec![1, 2]]);
        assert_eq!(pattern(&lu(0, 0.0)), [[0], [1], [2]]);
        // By hand: u_11 = 4 - 1/4, l_21 u_11 = 2, u_22 = 4.
        near(lu(9, 0.05).values(), &[4.0, 1.0, 1.0, 3.75, 2.0, 4.0], 1e-15);
        // IC: of row 0 the largest alone, -2; then 0.5 is less than 0.2 of sqrt(3 * 4) and stays out.
        let entries = [(0, 0, 4.0), (0, 1, -2.0), (0, 2, 1.0), (1, 1, 4.0), (1, 2, 0.5), (2, 2, 4.0)];
        let both: Vec<_> = entries.iter().flat_map(|&(i, j, v)| [(i, j, v), (j, i, v)]).collect();
        let mut both = both;
        both.dedup();
        let a = csr(3, &both);
        let options = IncompleteOptions::new(Factorisation::Cholesky);
        let ic = |most, drop| made(&a, options.with_fill(Fill::Threshold { most, drop })).unwrap().0;
        assert_eq!(pattern(&ic(1, 0.2)), [vec![0, 1], vec![0, 1], vec![2]]);
        near(ic(1, 0.2).values(), &[4.0, -2.0, -2.0, 3.0, 4.0], 1e-15);
        assert_eq!(ic(9, 0.0).nnz(), 9);
    }

    #[test]
    fn sweeps_and_thresholds_are_checked() {
        let a = gallery::poisson_2d::<f64>(3, 0.0).unwrap();
        let options = IncompleteOptions::new(Factorisation::Lu);
        for wrong in [
            options.with_fill(Fill::Sweeps(0)),
            options.with_solve_sweeps(Some(0)),
            options.with_fill(Fill::Threshold { most: 3, drop: -1.0 }),
            options.with_fill(Fill::Threshold { most: 3, drop: f64::NAN }),
        ] {
            let made = Incomplete::new(&Device::host(), &a, wrong);
            assert!(matches!(made, Err(Error::Option { .. })), "{wrong:?}");
        }
        // Sweeps and thresholds find shifts and name rows as the exact factors do.
        let indefinite = csr(2, &[(0, 0, 1.0), (0, 1, 9.0), (1, 0, 9.0), (1, 1, 1.0)]);
        for fill in [Fill::Sweeps(4), Fill::Threshold { most: 5, drop: 0.0 }] {
            let options = IncompleteOptions::new(Factorisation::Cholesky).with_fill(fill);
            let found = made(&indefinite, options);
            assert!(matches!(found, Err(Error::Structure { row: Some(1), .. })), "{fill:?} {found:?}");
        }
        let zero = csr(2, &[(0, 0, 0.0), (0, 1, 1.0), (1, 0, 1.0), (1, 1, 0.0)]);
        for fill in [Fill::Sweeps(4), Fill::Threshold { most: 5, drop: 0.0 }] {
            assert!(made(&zero, options.with_fill(fill)).unwrap().1 > 0.0, "{fill:?}");
        }
        let none = csr(0, &[]);
        for fill in [Fill::Exact, Fill::Sweeps(1), Fill::Threshold { most: 5, drop: 0.0 }] {
            for solve_sweeps in [None, Some(2)] {
                let options = options.with_fill(fill).with_solve_sweeps(solve_sweeps);
                assert_eq!(applied(&none, options, &[]), [0.0; 0], "{fill:?}");
            }
        }
    }

    #[test]
    fn full_matrices_are_factored_exactly() {
        // [[4, 2], [2, 10]] = L L' with L = [[2, 0], [1, 3]]: D = (4, 9), L D = 2, U = 2.
        let a = csr(2, &[(0, 0, 4.0), (0, 1, 2.0), (1, 0, 2.0), (1, 1, 10.0)]);
        for kind in [Factorisation::Cholesky, Factorisation::Lu] {
            let (found, shift) = found(&a, kind, None).unwrap();
            assert_eq!((found.values(), shift), (&[4.0, 2.0, 2.0, 9.0][..], 0.0), "{kind:?}");
        }
        // [[2, 4], [6, 5]] = [[1, 0], [3, 1]] [[2, 4], [0, -7]].
        let a = csr(2, &[(0, 0, 2.0), (0, 1, 4.0), (1, 0, 6.0), (1, 1, 5.0)]);
        assert_eq!(found(&a, Factorisation::Lu, None).unwrap().0.values(), [2.0, 4.0, 6.0, -7.0]);
        let inverse = Incomplete::new(&Device::host(), &a, IncompleteOptions::new(Factorisation::Lu)).unwrap();
        let x = Vector::from_slice(&Device::host(), &[10.0, 16.0]).unwrap();
        let mut z = Vector::zeros(&Device::host(), 2).unwrap();
        inverse.apply(&x, &mut z).unwrap();
        assert_eq!(z.to_vec().unwrap(), [1.0, 2.0]);
    }

    #[test]
    fn a_shift_is_found_and_faults_name_their_row() {
        // Definite, but IC(0) breaks down in its last row: Kershaw's matrix.
        let a = csr(
            4,
            &[
                (0, 0, 3.0),
                (0, 1, -2.0),
                (0, 3, 2.0),
                (1, 0, -2.0),
                (1, 1, 3.0),
                (1, 2, -2.0),
                (2, 1, -2.0),
                (2, 2, 3.0),
                (2, 3, -2.0),
                (3, 0, 2.0),
                (3, 2, -2.0),
                (3, 3, 3.0),
            ],
        );
        let (_, shift) = found(&a, Factorisation::Cholesky, None).unwrap();
        assert!(shift > 0.0 && Incomplete::<f64>::SHIFTS.contains(&shift), "{shift}");
        let row = |a: &Csr<f64>, kind, shift| match found(a, kind, shift) {
            Err(Error::Structure { row, .. }) => row,
            other => panic!("{other:?}"),
        };
        assert_eq!(row(&a, Factorisation::Cholesky, Some(0.0)), Some(3));
        let negative = csr(2, &[(0, 0, 1.0), (1, 1, -1.0)]);
        assert_eq!(row(&negative, Factorisation::Cholesky, None), Some(1));
        let indefinite = csr(2, &[(0, 0, 1.0), (0, 1, 9.0), (1, 0, 9.0), (1, 1, 1.0)]);
        assert_eq!(row(&indefinite, Factorisation::Cholesky, None), Some(1));
        let skew = csr(2, &[(0, 0, 1.0), (0, 1, 0.5), (1, 0, 0.25), (1, 1, 1.0)]);
        assert_eq!(row(&skew, Factorisation::Cholesky, None), Some(0));
        assert_eq!(row(&csr(2, &[(0, 0, 1.0), (1, 0, 1.0)]), Factorisation::Lu, None), Some(1));
        let zero = csr(2, &[(0, 0, 0.0), (0, 1, 1.0), (1, 0, 1.0), (1, 1, 0.0)]);
        assert!(found(&zero, Factorisation::Lu, None).unwrap().1 > 0.0);
        assert_eq!(row(&zero, Factorisation::Lu, Some(0.0)), Some(0));
        assert!(matches!(found(&a, Factorisation::Lu, Some(-1.0)), Err(Error::Option { .. })));
    }
}
