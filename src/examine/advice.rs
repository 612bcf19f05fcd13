//! Examination of a matrix before a solve: its properties, a method that suits it with the reason, and what cannot
//! work.

use std::fmt::{Display, Formatter, Result as FmtResult};

use super::entries::{ROWS, asymmetry, dominant, is_empty, multiply, outweighed_pair, row_norms};
use super::envelope::{Envelope, Factored};
use super::spectrum::{extreme_eigenvalues, extreme_singular_values, noise_of};
use crate::error::Result;
use crate::magnitude::Magnitude;
use crate::number::{Precision, Real, per_number};
use crate::precond::Preconditioner;
use crate::solver::{Method, Symmetry};
use crate::sparse::{AsCsr, Csr, structural_rank};
use crate::threads;

/// Verdict on `x'Ax > 0` for every `x`, as far as that can be told without factorising.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Definiteness {
    /// It is, and how that is known.
    Positive(&'static str),
    /// Nothing found against it.
    Likely,
    /// Numerically singular: the smallest eigenvalue seen is lost beside the largest in double precision.
    Semidefinite,
    /// Disproven, and how.
    Indefinite(String),
    /// The matrix is not symmetric or not square.
    NotAsked,
}

/// Properties of a matrix that iterative methods depend on.
///
/// Cost: a few passes over the entries; [`Examination::of`] also takes a matching of rows and columns, a transposed copy of a matrix that
/// is not symmetric, up to `4e8` multiplications for the eigenvalues, and `1e9` for a factorisation: up to a second.
///
/// ```
/// use residuum::sparse::gallery;
/// use residuum::{Examination, Method, Precision};
///
/// let found = Examination::of(&gallery::poisson_2d::<f64>(20, 0.0)?)?;
/// assert!(found.symmetric && found.condition > 100.0);
/// let advice = found.advise(Precision::Double);
/// assert_eq!(advice.method, Method::Cg);
/// println!("{advice}");
/// # Ok::<(), residuum::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Examination {
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// Stored entries that are not 0.
    pub nnz: usize,
    /// True if it equals its transpose, but for rounding: see [`Examination::asymmetry`].
    pub symmetric: bool,
    /// Largest difference of two mirrored entries of a symmetric matrix, as a part of the larger of the two or of the root of their diagonal
    /// entries' product: up to 8 rounding errors count as symmetric. 0 if it is symmetric bit for bit.
    pub asymmetry: f64,
    /// Rows and columns of a square matrix whose diagonal entry is 0 or missing.
    pub zero_diagonal: usize,
    /// Rows without entries.
    pub empty_rows: usize,
    /// Columns without entries.
    pub empty_cols: usize,
    /// The first row and the first column without entries.
    pub first_empty: [Option<usize>; 2],
    /// Largest over smallest size of the diagonal entries that are not 0; 1 if there are none.
    pub diagonal_spread: f64,
    /// Largest over smallest 2-norm of the columns that have one.
    pub column_spread: f64,
    /// The largest rank that any matrix with entries in these places can have; in a quick examination no more than rows and columns with entries.
    pub structural_rank: usize,
    /// True if it is positive definite.
    pub definiteness: Definiteness,
    /// A lower bound of the condition number, rows and columns scaled (see [`Examination::of`]); infinity if a smallest
    /// singular value is lost in rounding, NaN if it is not known.
    pub condition: f64,
}

/// Most multiplications for a Cholesky factorisation.
const CHOLESKY_WORK: f64 = 1e9;

/// A method to use, and the reason.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Advice {
    /// The method.
    pub method: Method,
    /// Preconditioners for it, in the order in which to try them: [`Examination::fallback_chain`].
    pub chain: Vec<Option<Preconditioner>>,
    /// Why, in words.
    pub why: String,
    /// Faults of the matrix, in words.
    pub warnings: Vec<String>,
}

impl Display for Advice {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        let with = self.chain.first().copied().flatten().map_or(String::new(), |first| format!(" with {first}"));
        write!(f, "{}{with}: {}", self.method, self.why)
    }
}

per_number! {
    fn examination<T>(a: &Csr<T>) -> Examination = Examination::of_here;
    fn quick_examination<T>(a: &Csr<T>) -> Examination = Examination::quick_here;
}

impl Examination {
    /// Looks at `a`.
    ///
    /// Eigenvalues are those that a Lanczos process finds for `D^-1/2 A D^-1/2`, with the diagonal as `D`, if `A` is
    /// symmetric, and for `B'B` otherwise, where `B` is `A` with columns of norm 1: extreme ones first, so that the
    /// condition is a lower bound, and a negative one is a proof. Where a Cholesky factorisation of the symmetric matrix
    /// takes no more than `1e9` multiplications, it decides.
    ///
    /// # Errors
    /// [`Error::Structure`](crate::Error::Structure) for a matrix of `sprs` with a dimension beyond 32 bits.
    pub fn of<T: Real>(a: &(impl AsCsr<T> + ?Sized)) -> Result<Self> {
        Ok(examination(&*a.as_csr()?))
    }

    /// Looks at `a` no longer than that takes to read it a few times: enough for a method that is known, and its
    /// [chain](Examination::fallback_chain). Nothing is known of eigenvalues then, so that an indefinite matrix may pass for a definite one.
    ///
    /// # Errors
    /// As [`Examination::of`].
    pub fn quick<T: Real>(a: &(impl AsCsr<T> + ?Sized)) -> Result<Self> {
        Ok(quick_examination(&*a.as_csr()?))
    }

    /// `a` in other units, if squares of its numbers would vanish or overflow.
    fn in_other_units<T: Real>(a: &Csr<T>) -> Option<Csr<T>> {
        const FAR: i32 = 300;
        let exponent = Magnitude::of(a.largest()).exponent().filter(|exponent| exponent.abs() > FAR)?;
        Some(a.times_power_of_two(-exponent))
    }

    fn quick_here<T: Real>(a: &Csr<T>) -> Self {
        Self::in_other_units(a).map_or_else(|| Self::seen(a), |a| Self::seen(&a))
    }

    /// Properties that a few passes over the entries tell.
    fn seen<T: Real>(a: &Csr<T>) -> Self {
        let (rows, cols) = (a.rows(), a.cols());
        let square = rows == cols;
        let diagonal = a.diagonal();
        let asymmetry = if square { asymmetry(a, &diagonal) } else { None };
        let symmetric = asymmetry.is_some();
        // Threads share rows, not columns.
        let norms = if symmetric { row_norms(a) } else { a.column_norms() };
        let empty_rows = threads::sum(rows, ROWS, |i| usize::from(is_empty(a, i)));
        // Most matrices have none, and need no second pass.
        let first_empty_row = if empty_rows > 0 { threads::first(rows, ROWS, |i| is_empty(a, i)) } else { None };
        let empty_cols = norms.iter().filter(|n| **n == 0.0).count();
        let mut found = Self {
            rows,
            cols,
            nnz: threads::sum(a.nnz(), threads::LEAST, |k| usize::from(a.values()[k].to_f64() != 0.0)),
            symmetric,
            asymmetry: asymmetry.unwrap_or(0.0),
            zero_diagonal: if square { diagonal.iter().filter(|d| **d == 0.0).count() } else { 0 },
            empty_rows,
            empty_cols,
            first_empty: [first_empty_row, norms.iter().position(|n| *n == 0.0)],
            diagonal_spread: Self::spread(&diagonal.iter().map(|d| d.abs()).collect::<Vec<_>>()),
            column_spread: Self::spread(&norms),
            structural_rank: (rows - empty_rows).min(cols - empty_cols),
            definiteness: Definiteness::NotAsked,
            condition: f64::NAN,
        };
        if found.symmetric {
            found.definiteness = Self::seen_definiteness(a, &diagonal);
        }
        found
    }

    fn seen_definiteness<T: Real>(a: &Csr<T>, diagonal: &[f64]) -> Definiteness {
        if a.rows() > 0 && diagonal.iter().all(|d| *d < 0.0) {
            let found = "its diagonal is negative: if -A is definite, cg solves -A x = -b";
            Definiteness::Indefinite(found.into())
        } else if let Some(i) = diagonal.iter().position(|d| *d <= 0.0) {
            Definiteness::Indefinite(format!("entry {i} of the diagonal is {}", diagonal[i]))
        } else if let Some((i, j)) = outweighed_pair(a, diagonal) {
            Definiteness::Indefinite(format!("entry ({i}, {j}) outweighs the two of the diagonal beside it"))
        } else if dominant(a, diagonal) {
            Definiteness::Positive("each diagonal entry outweighs its row")
        } else {
            Definiteness::Likely
        }
    }

    fn of_here<T: Real>(a: &Csr<T>) -> Self {
        if let Some(a) = Self::in_other_units(a) {
            return Self::of_here(&a);
        }
        let mut found = Self::seen(a);
        found.structural_rank = structural_rank(a);
        if found.symmetric {
            found.look_for_definiteness(a);
        }
        // Extreme eigenvalues of both signs say nothing of those next to 0.
        match (&found.definiteness, found.symmetric) {
            (Definiteness::Indefinite(_), _) => found.look_for_condition(a, a),
            (_, false) => found.look_for_condition(a, &a.transpose()),
            _ => {}
        }
        found
    }

    /// The condition, by singular values: of the matrix with rows and columns scaled if it is square, else with its columns scaled, since
    /// rows of least squares have weights that count.
    fn look_for_condition<T: Real>(&mut self, a: &Csr<T>, transposed: &Csr<T>) {
        let [left, right] = a.equilibration();
        let scaled = |m: &Csr<T>, [left, right]: [&[f64]; 2], x: &[f64], y: &mut [f64]| {
            let scaled: Vec<f64> = x.iter().zip(right).map(|(x, s)| x * s).collect();
            multiply(m, &scaled, y);
            y.iter_mut().zip(left).for_each(|(y, s)| *y *= s);
        };
        let product = |x: &[f64], y: &mut [f64]| scaled(a, [&left, &right], x, y);
        let adjoint = |x: &[f64], y: &mut [f64]| scaled(transposed, [&right, &left], x, y);
        // The advice on an indefinite matrix depends on no condition: a rough one will do.
        let most = if self.symmetric { 60 } else { usize::MAX };
        let (shape, nnz) = ([a.rows(), a.cols()], (a.nnz(), most));
        // Empty rows and columns are a fault of their own, which is told.
        let (low, high) = if self.rows >= self.cols {
            extreme_singular_values(shape, nnz, |j| !is_empty(transposed, j), product, adjoint)
        } else {
            let shape = [shape[1], shape[0]];
            extreme_singular_values(shape, nnz, |i| !is_empty(a, i), adjoint, product)
        };
        let lost = high * shape[0].max(shape[1]) as f64 * f64::EPSILON;
        self.condition = match (low <= lost, high > 0.0) {
            (_, false) => f64::NAN,
            (true, _) => f64::INFINITY,
            _ => high / low,
        };
    }

    fn look_for_definiteness<T: Real>(&mut self, a: &Csr<T>) {
        let mut proof = match self.definiteness {
            Definiteness::Indefinite(_) => return,
            Definiteness::Positive(proof) => Some(proof),
            _ => None,
        };
        let diagonal = a.diagonal();
        let scale: Vec<f64> = diagonal.iter().map(|d| d.sqrt().recip()).collect();
        let envelope = Envelope::of(a, &scale, CHOLESKY_WORK);
        // With a factorisation at hand only the largest eigenvalue is missing, which comes soon.
        let steps = if envelope.is_some() { 60 } else { usize::MAX };
        let (mut low, high) = extreme_eigenvalues(a.rows(), a.nnz(), steps, |x, y| {
            let scaled: Vec<f64> = x.iter().zip(&scale).map(|(x, s)| x * s).collect();
            multiply(a, &scaled, y);
            for (y, s) in y.iter_mut().zip(&scale) {
                *y *= s;
            }
        });
        let noise = high.abs().max(low.abs()) * a.rows() as f64 * f64::EPSILON;
        let mut what = "eigenvalue";
        if let Some(mut envelope) = envelope {
            match envelope.factor(noise) {
                Factored::Positive => {
                    proof = proof.or(Some("a Cholesky factorisation of it ends well"));
                    low = envelope.smallest_eigenvalue(noise_of(a.rows()), 12);
                }
                // A pivot at the level of rounding says only that it is small.
                Factored::Pivot(pivot) if pivot < low && pivot < -1e3 * noise => (low, what) = (pivot, "pivot"),
                Factored::Pivot(_) => low = low.min(0.0),
            }
        }
        if low >= -noise {
            self.condition = if low <= noise { f64::INFINITY } else { high / low };
        }
        self.definiteness = if low < -noise {
            Definiteness::Indefinite(format!("scaled to a diagonal of 1, it has a negative {what}, {low:.1e}"))
        } else if low <= noise {
            Definiteness::Semidefinite
        } else {
            proof.map_or(Definiteness::Likely, Definiteness::Positive)
        };
    }

    /// Largest over smallest of those `norms` that are not 0; 1 if there is none.
    pub fn spread(norms: &[f64]) -> f64 {
        let positive = || norms.iter().copied().filter(|n| *n > 0.0);
        let smallest = positive().fold(f64::INFINITY, f64::min);
        if smallest.is_finite() { positive().fold(0.0, f64::max) / smallest } else { 1.0 }
    }

    /// Tells if it is square.
    pub fn square(&self) -> bool {
        self.rows == self.cols
    }

    /// Faults of the matrix that hold for every method.
    pub(super) fn warnings(&self, precision: Precision) -> Vec<String> {
        let mut warnings = Vec::new();
        let [row, column] = self.first_empty;
        for (count, first, what) in [(self.empty_rows, row, "row"), (self.empty_cols, column, "column")] {
            let Some(first) = first else { continue };
            let which = match count {
                1 => format!("{what} {first} (from 0) is empty"),
                _ => format!("{count} {what}s are empty, the first is {first} (from 0)"),
            };
            warnings.push(format!("{which}: the matrix is singular there"));
        }
        let full = self.rows.min(self.cols);
        if self.structural_rank < full {
            warnings.push(format!(
                "its rank is at most {} of {full}, whatever the values: singular",
                self.structural_rank
            ));
        }
        let (name, epsilon) = match precision {
            Precision::Single => ("fp32", f64::from(f32::EPSILON)),
            Precision::Double => ("fp64", f64::EPSILON),
        };
        if self.definiteness == Definiteness::Semidefinite || self.condition.is_infinite() {
            warnings.push(
                "numerically singular: the smallest singular value is lost in the rounding of the largest, so a small residual does \
                 not mean a small error"
                    .into(),
            );
        } else if self.condition * epsilon > 0.1 {
            warnings.push(format!(
                "a condition of at least {:.0e} after scaling: no digit of the answer is certain in {name}",
                self.condition
            ));
        }
        if self.column_spread > 1e6 {
            warnings.push(format!(
                "norms of columns differ by a factor of {:.0e}: scale the matrix, or precondition",
                self.column_spread
            ));
        }
        warnings
    }

    /// The method for this matrix in numbers of `precision`.
    pub fn advise(&self, precision: Precision) -> Advice {
        let lsmr = Method::Lsmr { damp: 0.0 };
        let (method, why) = if self.rows > self.cols {
            (lsmr, "more rows than columns: the least-squares solution".to_string())
        } else if self.rows < self.cols {
            (lsmr, "fewer rows than columns: the solution of least norm".to_string())
        } else if self.structural_rank < self.rows {
            (lsmr, "square but singular by its structure: the least-squares solution".to_string())
        } else if self.symmetric {
            match &self.definiteness {
                Definiteness::Indefinite(how) => (Method::Minres, format!("symmetric, not definite ({how})")),
                Definiteness::Semidefinite => {
                    (Method::Minres, "symmetric and numerically singular: MINRES needs no definiteness".into())
                }
                Definiteness::Positive(how) => (Method::Cg, format!("symmetric positive definite ({how})")),
                _ => (Method::Cg, "symmetric, and nothing speaks against positive definite".into()),
            }
        } else {
            // BiCGSTAB is cheaper, but nothing tells beforehand whether it breaks down; this cannot diverge.
            let gmres = Method::Gmres { restart: if self.rows > 1_000_000 { 20 } else { 50 } };
            let zeros = match self.zero_diagonal {
                0 => String::new(),
                count => format!(", {count} zeros on the diagonal"),
            };
            (gmres, format!("square, not symmetric{zeros}"))
        };
        let why = match self.asymmetry {
            0.0 => why,
            most => format!("{why}; mirrored entries differ by up to {most:.1e}, which is taken for rounding"),
        };
        Advice { chain: self.fallback_chain(&method), method, why, warnings: self.warnings(precision) }
    }

    /// Other methods that may solve what `failed` did not, the likelier one first.
    pub fn alternatives(&self, failed: &Method) -> Vec<Method> {
        let gmres = Method::Gmres { restart: if self.rows > 1_000_000 { 20 } else { 50 } };
        let all = match (self.square(), self.symmetric) {
            (true, true) if matches!(self.definiteness, Definiteness::Indefinite(_)) => [Method::Minres, gmres],
            (true, true) => [Method::Cg, Method::Minres],
            (true, false) => [gmres, Method::BiCgStab2],
            (false, _) => [Method::Lsmr { damp: failed.damp() }, Method::Lsqr { damp: failed.damp() }],
        };
        let same = |one: &Method| std::mem::discriminant(one) == std::mem::discriminant(failed);
        all.into_iter().filter(|one| !same(one)).collect()
    }

    /// Why `method` cannot work for this matrix, or is not to be trusted, if so.
    pub fn objection(&self, method: &Method) -> Option<String> {
        let (rows, cols) = (self.rows, self.cols);
        if rows != cols && !method.takes_rectangles() {
            return Some(format!("{method} wants a square matrix; this one is {rows} x {cols}"));
        }
        if method.symmetry() != Symmetry::None && !self.symmetric {
            return Some(format!("{method} wants a symmetric matrix, and this one is not"));
        }
        match (method, &self.definiteness) {
            (_, Definiteness::Indefinite(how)) if method.symmetry() == Symmetry::Definite => {
                Some(format!("{method} wants a positive definite matrix, and this one is not: {how}"))
            }
            (Method::Cgne, _) if rows > cols => Some(format!(
                "{method} wants a system that has a solution, and {rows} rows for {cols} columns rarely do"
            )),
            (Method::BiCgStab | Method::BiCgStab2, _) if self.structural_rank < rows => {
                Some(format!("{method} wants a regular matrix; the rank is at most {}", self.structural_rank))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparse::gallery;

    fn of<T: Real>(a: &Csr<T>) -> Examination {
        Examination::of(a).expect("a matrix")
    }

    fn quick<T: Real>(a: &Csr<T>) -> Examination {
        Examination::quick(a).expect("a matrix")
    }

    fn dense(rows: &[&[f64]]) -> Csr<f64> {
        Csr::from_rows(rows.len(), rows[0].len(), |i, row| {
            row.extend((0..).zip(rows[i]).filter(|(_, v)| **v != 0.0).map(|(j, v)| (j, *v)));
        })
        .expect("a matrix")
    }

    #[test]
    fn eigenvalues_are_those_of_the_laplacian() {
        // 2 - 2 cos(k pi / (n + 1)), over the diagonal 2.
        let n = 50;
        let a: Csr<f64> = Csr::from_rows(n, n, |i, row| {
            for j in i.saturating_sub(1)..(i + 2).min(n) {
                row.push((j as u32, if i == j { 2.0 } else { -1.0 }));
            }
        })
        .expect("a matrix");
        let found = of(&a);
        let angle = std::f64::consts::PI / (n + 1) as f64;
        let wanted = (1.0 + angle.cos()) / (1.0 - angle.cos());
        approx::assert_relative_eq!(found.condition, wanted, max_relative = 1e-9);
        assert!(matches!(found.definiteness, Definiteness::Positive(how) if how.contains("Cholesky")));
        assert_eq!(found.advise(Precision::Double).method, Method::Cg);
    }

    #[test]
    fn methods_follow_the_matrix() {
        let cg = (Method::Cg, None);
        let jacobi = Some(Preconditioner::Jacobi);
        let minres = (Method::Minres, None);
        let lsmr = (Method::Lsmr { damp: 0.0 }, None);
        for (rows, wanted) in [
            (&[&[4.0, 1.0][..], &[1.0, 3.0]][..], cg),
            (&[&[9.0, 1.0][..], &[1.0, 3.0]][..], (Method::Cg, jacobi)),
            (&[&[4.0, 1.0], &[1.0, -3.0]], minres),
            (&[&[1.0, 2.0], &[2.0, 1.0]], minres),
            (&[&[1.0, 1.0], &[1.0, 1.0]], minres),
            (&[&[4.0, 1.0], &[0.5, 9.0]], (Method::Gmres { restart: 50 }, jacobi)),
            (&[&[0.0, 1.0], &[0.5, 3.0]], (Method::Gmres { restart: 50 }, None)),
            (&[&[1.0, 2.0], &[0.0, 0.0]], lsmr),
            (&[&[1.0, 2.0, 3.0]], lsmr),
            (&[&[1.0], &[2.0]], lsmr),
        ] {
            let advice = of(&dense(rows)).advise(Precision::Double);
            assert_eq!((advice.method, advice.chain[0]), wanted, "{rows:?}: {advice}");
        }
    }

    #[test]
    fn a_quick_examination_tells_what_a_chain_needs() {
        let matrices = [
            gallery::poisson_2d::<f64>(9, 0.0).unwrap(),
            dense(&[&[4.0, 1.0], &[1.0, 3.0]]).times_power_of_two(900),
            dense(&[&[4.0, 1.0], &[0.5, 3.0]]),
            dense(&[&[4.0, 1.0], &[1.0, -3.0]]),
            dense(&[&[1.0, 3.0], &[3.0, 1.0]]),
            dense(&[&[1.0, 2.0, 3.0], &[0.0, 1.0, 2.0]]),
            dense(&[&[1.0, 2.0], &[0.0, 0.0]]),
        ];
        for a in matrices {
            let (quick, found) = (quick(&a), of(&a));
            assert!(quick.condition.is_nan() && quick.structural_rank >= found.structural_rank, "{quick:?}");
            for method in [Method::Cg, Method::Minres, Method::BiCgStab, Method::Lsqr { damp: 0.0 }] {
                assert_eq!(quick.fallback_chain(&method), found.fallback_chain(&method), "{method} {quick:?}");
                assert_eq!(quick.objection(&method), found.objection(&method), "{method} {quick:?}");
            }
            let properties = |e: &Examination| (e.nnz, e.symmetric, e.zero_diagonal, e.empty_rows, e.empty_cols);
            assert_eq!(properties(&quick), properties(&found));
        }
        // Zeros that are stored have no part in it, wherever they are.
        let with_zero = |below: &[(usize, usize, f64)]| {
            let entries = [&[(0, 0, 2.0), (1, 1, 3.0), (2, 2, 4.0), (0, 2, 0.0), (0, 1, 1.0)], below].concat();
            quick(&Csr::from_triplets(3, 3, &entries).unwrap()).symmetric
        };
        assert!(with_zero(&[(1, 0, 1.0)]) && with_zero(&[(1, 0, 1.0), (2, 0, -0.0)]));
        assert!(!with_zero(&[]) && !with_zero(&[(1, 0, -1.0)]) && !with_zero(&[(1, 0, 1.0), (2, 0, 1.0)]));
        // No pair of entries disproves that it is definite; a factorisation does.
        let hidden = dense(&[&[1.0, 0.9, -0.9], &[0.9, 1.0, 0.9], &[-0.9, 0.9, 1.0]]);
        assert_eq!(quick(&hidden).definiteness, Definiteness::Likely);
        assert!(matches!(of(&hidden).definiteness, Definiteness::Indefinite(_)));
    }

    #[test]
    fn sizes_of_numbers_change_no_advice() {
        let rows: [&[&[f64]]; 3] =
            [&[&[4.0, 1.0], &[1.0, 3.0]], &[&[4.0, 1.0], &[0.5, 3.0]], &[&[1.0, 2.0, 3.0], &[0.0, 1.0, 2.0]]];
        for rows in rows {
            let a = dense(rows);
            let wanted = of(&a).advise(Precision::Double);
            for exponent in [-1020, -700, 700, 1020] {
                let found = of(&a.times_power_of_two(exponent));
                let advice = found.advise(Precision::Double);
                assert_eq!(format!("{advice} {:?}", advice.warnings), format!("{wanted} {:?}", wanted.warnings));
                assert_eq!(found.empty_cols, 0);
            }
        }
        let tiny = of(&dense(&[&[1e-200, 0.0], &[0.0, 2e-200]]));
        assert_eq!((tiny.empty_cols, tiny.empty_rows), (0, 0));
        assert!(tiny.advise(Precision::Double).warnings.is_empty());
    }

    #[test]
    fn what_is_wrong_is_said() {
        let singular = of(&dense(&[&[1.0, 1.0], &[1.0, 1.0]]));
        assert_eq!(singular.definiteness, Definiteness::Semidefinite);
        assert!(singular.advise(Precision::Double).warnings.iter().any(|w| w.contains("numerically singular")));
        let empty = of(&dense(&[&[1.0, 2.0], &[0.0, 0.0]]));
        assert!(empty.advise(Precision::Double).warnings[0].contains("row 1 (from 0) is empty"));
        let empty = of(&dense(&[&[1.0, 0.0, 0.0], &[1.0, 0.0, 0.0], &[2.0, 0.0, 0.0]]));
        let words = "2 columns are empty, the first is 1 (from 0)";
        assert!(empty.advise(Precision::Double).warnings[0].contains(words));
        assert_eq!(empty.structural_rank, 1);
        let hilbert: Vec<Vec<f64>> = (0..9).map(|i| (0..9).map(|j| 1.0 / f64::from(i + j + 1)).collect()).collect();
        let hilbert = of(&dense(&hilbert.iter().map(|r| &r[..]).collect::<Vec<_>>()));
        assert!(hilbert.condition > 1e9, "{}", hilbert.condition);
        assert!(hilbert.advise(Precision::Single).warnings[0].contains("fp32"));
        assert!(hilbert.advise(Precision::Double).warnings.is_empty());
    }

    /// The bar of 60 unknowns that finite-element codes make: stiffness 2e7, the first and the last row replaced by rows of the identity.
    fn bar() -> Csr<f64> {
        Csr::from_rows(60, 60, |i, row| {
            let (i, k) = (i as u32, 2e7);
            match i {
                0 | 59 => row.push((i, 1.0)),
                _ => row.extend([(i - 1, -k), (i, 2.0 * k), (i + 1, -k)]),
            }
        })
        .expect("a matrix")
    }

    #[test]
    fn what_is_indefinite_or_badly_scaled_is_not_called_singular() {
        let hidden = dense(&[&[1.0, 0.9, -0.9], &[0.9, 1.0, 0.9], &[-0.9, 0.9, 1.0]]);
        // A Laplacian shifted to between two eigenvalues: condition 1.5e3.
        let side = 20;
        let eigenvalue = |k: usize| 2.0 - 2.0 * (k as f64 * std::f64::consts::PI / (side + 1) as f64).cos();
        let shift = eigenvalue(4) + eigenvalue(5) + 5e-3;
        let shifted = gallery::poisson_2d::<f64>(side, -shift).expect("a matrix");
        let scaled: Vec<f64> = (0..60).map(|k| 10f64.powi(k % 7 - 3)).collect();
        let random = gallery::random::<f64>(60, 60, 900, 5).expect("a matrix").scaled(&scaled, &scaled);
        let mut both = vec![(hidden, 1.0..4.0), (shifted, 500.0..2000.0), (bar(), 100.0..3000.0)];
        both.push((random.expect("factors"), 10.0..1e5));
        for (a, condition) in both {
            let found = of(&a);
            assert!(condition.contains(&found.condition), "{:?}", found.condition);
            let warnings = found.advise(Precision::Double).warnings;
            assert!(!warnings.iter().any(|w| w.contains("singular")), "{warnings:?}");
        }
        // A condition beyond the root of rounding is one, and a lost singular value is told.
        let vandermonde = |n: i32| -> Vec<Vec<f64>> {
            (0..n).map(|i| (0..n).map(|j| (1.0 + f64::from(i) / f64::from(n)).powi(j)).collect()).collect()
        };
        for (n, lost) in [(9, false), (24, true)] {
            let rows = vandermonde(n);
            let found = of(&dense(&rows.iter().map(|r| &r[..]).collect::<Vec<_>>()));
            assert_eq!(found.condition.is_infinite(), lost, "{n}: {}", found.condition);
            assert!(lost || found.condition > 1e8, "{}", found.condition);
        }
        // Wide matrices have a condition too.
        let wide = of(&dense(&[&[1.0, 2.0, 3.0], &[0.0, 1.0, 2.0]]));
        assert!((1.0..100.0).contains(&wide.condition), "{}", wide.condition);
    }

    #[test]
    fn symmetric_to_rounding_is_symmetric() {
        let a = gallery::poisson_2d::<f64>(9, 0.0).unwrap();
        let near = |by: f64| {
            let factor: Vec<f64> = (0..81).map(|k| 1.0 + by * f64::from(k % 3)).collect();
            of(&a.scaled(&factor, &[1.0; 81]).unwrap())
        };
        let found = near(f64::EPSILON);
        assert!(found.symmetric && found.asymmetry > 0.0, "{}", found.asymmetry);
        let advice = found.advise(Precision::Double);
        assert!(advice.method == Method::Cg && advice.why.contains("taken for rounding"), "{advice}");
        assert!(!near(1e-12).symmetric && near(0.0).asymmetry == 0.0);
        // An entry of the size of rounding without a mirror image.
        let with = |v: f64| {
            let entries = [(0, 0, 4.0), (0, 1, 1.0), (0, 2, v), (1, 0, 1.0), (1, 1, 3.0), (2, 2, 5.0)];
            quick(&Csr::from_triplets(3, 3, &entries).unwrap()).symmetric
        };
        assert!(with(1e-15) && with(0.0) && !with(1e-12));
    }

    #[test]
    fn objections_name_the_reason() {
        let indefinite = of(&dense(&[&[4.0, 1.0], &[1.0, -3.0]]));
        assert!(indefinite.objection(&Method::Cg).is_some_and(|o| o.contains("entry 1 of the diagonal is -3")));
        assert!(indefinite.objection(&Method::FlexibleCg).is_some());
        assert!(indefinite.objection(&Method::Minres).is_none());
        let wide = of(&dense(&[&[1.0, 2.0, 3.0]]));
        assert!(wide.objection(&Method::BiCgStab).is_some_and(|o| o.contains("1 x 3")));
        assert!(wide.objection(&Method::Cgne).is_none());
        let skew = of(&dense(&[&[4.0, 1.0], &[0.5, 3.0]]));
        assert!(skew.objection(&Method::Minres).is_some() && skew.objection(&Method::Cg).is_some());
        let poisson = of(&gallery::poisson_2d::<f32>(12, 0.01).expect("a matrix"));
        assert!(matches!(poisson.definiteness, Definiteness::Positive(how) if how.contains("outweighs")));
        assert!(poisson.objection(&Method::Cg).is_none());
    }
}
