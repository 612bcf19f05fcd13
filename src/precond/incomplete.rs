//! Incomplete factors in the places of the matrix: IC(0) and ILU(0).
//!
//! ```text
//!   IC(0)    A = L L' in the places of A:   l_ik = (a_ik - sum over j < k of l_ij l_kj) / l_kk,   l_ii = sqrt(a_ii - sum of l_ij^2)
//!   ILU(0)   A = L U in the places of A:    for k < i in row i:   l_ik = a_ik / u_kk,   a_ij -= l_ik u_kj  for j > k in rows i and k
//! ```
//!
//! Sums run in ascending order, in `f64`. If a pivot is not positive (IC), or nearly 0 (ILU), all diagonal entries are raised: by a share
//! of themselves (IC) or of the largest entry of their row (ILU), the first of [`Incomplete::SHIFTS`] that gives good pivots. The factors are rounded
//! to the precision of the matrix once, as `(D + L D) D^-1 (D + U)`, and solved with like the sweeps of SSOR, level by level.
//!
//! Source: dedecek-2013, algorithm 5; Y. Saad, "Iterative methods for sparse linear systems", 2nd ed. 2003, algorithm 10.4 (ILU(0)),
//! section 10.3 and 11.6.3 (levels); T. A. Manteuffel, Math. Comp. 34 (1980) (shifts).

use super::sweep::{RowOrdering, Sweep};
use super::{check_finite, check_symmetry};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::number::{Real, per_number};
use crate::operator::{LinearOperator, SharedOperator};
use crate::sparse::Csr;
use crate::vector::Vector;

/// Kind of incomplete factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Factorisation {
    /// `L L'`, of a symmetric positive definite matrix.
    Cholesky,
    /// `L U`, of any square matrix with a full diagonal.
    Lu,
}

/// Incomplete factors of a matrix in its own places, as an operator that solves with both. Factors and solves have the same bits
/// everywhere. They are made on the host.
///
/// # Cost
/// Held: the entries off the diagonal once, and 24 to 32 bytes for each row. Launches as [`Sweep`] in the order of the rows: a long chain
/// of rows that need each other takes as many steps.
#[derive(Clone, Debug)]
pub struct Incomplete<T: Real> {
    sweep: Sweep<T>,
    shift: f64,
    entries: usize,
}

per_number! {
    fn new<T>(device: &Device, a: &Csr<T>, kind: Factorisation, shift: Option<f64>) -> Result<Incomplete<T>> = Incomplete::new_here;
}

impl<T: Real> Incomplete<T> {
    /// Shifts that are tried, one after another.
    pub const SHIFTS: [f64; 5] = [0.0, 1e-3, 1e-2, 1e-1, 1.0];

    /// Makes the factors of `a` with the given `shift`, or the first of [`Incomplete::SHIFTS`] with which all pivots are good.
    ///
    /// # Errors
    /// [`Error::Shape`] for a matrix that is not square, [`Error::NotFinite`], [`Error::Option`] for a shift that is negative or no number,
    /// [`Error::Structure`] with the row of a diagonal entry that is missing (or not positive: IC), of an entry that is not symmetric (IC), or of
    /// a pivot that is no good with any shift; [`Error::Memory`].
    pub fn new(device: &Device, a: &Csr<T>, kind: Factorisation, shift: Option<f64>) -> Result<Self> {
        new(device, a, kind, shift)
    }

    fn new_here(device: &Device, a: &Csr<T>, kind: Factorisation, shift: Option<f64>) -> Result<Self> {
        let (factors, shift) = factors(a, kind, shift)?;
        let sweep = Sweep::ssor(device, &factors, 1.0, RowOrdering::Rows)?;
        Ok(Self { sweep, shift, entries: a.nnz() })
    }

    /// Shift that was used.
    pub fn shift(&self) -> f64 {
        self.shift
    }

    /// Entries of both factors, the diagonal counted once.
    pub fn entries(&self) -> usize {
        self.entries
    }
}

/// The first pivot that is no good, and its row.
type BadPivot = (usize, f64);

/// `D + L D + U` off the diagonal and `D` on it, in the places of `a`, and the shift they were made with.
fn factors<T: Real>(a: &Csr<T>, kind: Factorisation, shift: Option<f64>) -> Result<(Csr<T>, f64)> {
    check_finite(a)?;
    if let Some(shift) = shift.filter(|shift| !(*shift >= 0.0 && shift.is_finite())) {
        return Err(Error::Option { name: "shift", reason: format!("{shift} is not a number from 0 on") });
    }
    let diagonal = diagonal_places(a, kind)?;
    if kind == Factorisation::Cholesky {
        check_symmetry(a)?;
    }
    let tried = shift.map_or(Incomplete::<T>::SHIFTS.to_vec(), |shift| vec![shift]);
    let mut first: Option<BadPivot> = None;
    for shift in &tried {
        let mut values: Vec<f64> = a.values().iter().map(|v| v.to_f64()).collect();
        raise(a, kind, &diagonal, *shift, &mut values);
        let done = match kind {
            Factorisation::Cholesky => cholesky(a, &diagonal, &mut values),
            Factorisation::Lu => lu(a, &diagonal, &mut values),
        };
        match done {
            Ok(()) => return Ok((together(a, kind, &diagonal, &values)?, *shift)),
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

/// Place of each diagonal entry among all.
fn diagonal_places<T: Real>(a: &Csr<T>, kind: Factorisation) -> Result<Vec<usize>> {
    let place = |i: usize| {
        let found = a.row(i).0.binary_search(&(i as u32)).ok();
        let value = found.map_or(0.0, |at| a.row(i).1[at].to_f64());
        match (found, kind) {
            (Some(at), Factorisation::Lu) => Ok(a.offsets()[i] + at),
            (Some(at), Factorisation::Cholesky) if value > 0.0 => Ok(a.offsets()[i] + at),
            (_, Factorisation::Cholesky) => {
                let what = format!("diagonal entry {value:e} is not positive: no Cholesky factors");
                Err(Error::Structure { what, row: Some(i) })
            }
            (None, Factorisation::Lu) => {
                let what = "no entry on the diagonal: no LU factors in the places of the matrix".into();
                Err(Error::Structure { what, row: Some(i) })
            }
        }
    };
    (0..a.rows()).map(place).collect()
}

/// Adds the shift to the diagonal.
fn raise<T: Real>(a: &Csr<T>, kind: Factorisation, diagonal: &[usize], shift: f64, values: &mut [f64]) {
    for (i, at) in diagonal.iter().enumerate() {
        let by = match kind {
            Factorisation::Cholesky => values[*at],
            Factorisation::Lu => {
                let largest = a.row(i).1.iter().fold(0.0f64, |most, v| most.max(v.to_f64().abs()));
                if values[*at] < 0.0 { -largest } else { largest }
            }
        };
        values[*at] += shift * by;
    }
}

/// IC(0): `L` takes the places of the lower triangle of `values`.
fn cholesky<T: Real>(a: &Csr<T>, diagonal: &[usize], values: &mut [f64]) -> std::result::Result<(), BadPivot> {
    let (offsets, columns) = (a.offsets(), a.indices());
    for i in 0..a.rows() {
        for at in offsets[i]..=diagonal[i] {
            let k = columns[at] as usize;
            let mut value = values[at];
            // Entries of rows i and k in the same column before k.
            let (mut mine, mut other) = (offsets[i], offsets[k]);
            while mine < at && other < diagonal[k] {
                match columns[mine].cmp(&columns[other]) {
                    std::cmp::Ordering::Less => mine += 1,
                    std::cmp::Ordering::Greater => other += 1,
                    std::cmp::Ordering::Equal => {
                        value -= values[mine] * values[other];
                        mine += 1;
                        other += 1;
                    }
                }
            }
            if k < i {
                values[at] = value / values[diagonal[k]];
            } else if value > 0.0 && value.is_finite() {
                values[at] = value.sqrt();
            } else {
                return Err((i, value));
            }
        }
    }
    Ok(())
}

/// ILU(0) in place: `L` without its unit diagonal, and `U`.
fn lu<T: Real>(a: &Csr<T>, diagonal: &[usize], values: &mut [f64]) -> std::result::Result<(), BadPivot> {
    const NOWHERE: usize = usize::MAX;
    let (offsets, columns) = (a.offsets(), a.indices());
    let mut place = vec![NOWHERE; a.cols()];
    for i in 0..a.rows() {
        let row = offsets[i]..offsets[i + 1];
        let largest = values[row.clone()].iter().fold(0.0f64, |most, v| most.max(v.abs()));
        row.clone().for_each(|at| place[columns[at] as usize] = at);
        for at in offsets[i]..diagonal[i] {
            let k = columns[at] as usize;
            values[at] /= values[diagonal[k]];
            for other in diagonal[k] + 1..offsets[k + 1] {
                let mine = place[columns[other] as usize];
                if mine != NOWHERE {
                    values[mine] -= values[at] * values[other];
                }
            }
        }
        row.for_each(|at| place[columns[at] as usize] = NOWHERE);
        let pivot = values[diagonal[i]];
        if !(pivot.abs() > f64::EPSILON * largest && pivot.is_finite()) {
            return Err((i, pivot));
        }
    }
    Ok(())
}

/// `D + L D + U` with `L` unit, of factors in place, rounded to `T`. Cholesky's `L L'` is `L_1 D L_1'`.
fn together<T: Real>(a: &Csr<T>, kind: Factorisation, diagonal: &[usize], values: &[f64]) -> Result<Csr<T>> {
    let (offsets, columns) = (a.offsets(), a.indices());
    let pivot = |i: usize| values[diagonal[i]];
    let entry = |i: usize, at: usize| {
        let j = columns[at] as usize;
        match kind {
            Factorisation::Lu if j < i => values[at] * pivot(j),
            Factorisation::Lu => values[at],
            Factorisation::Cholesky if j <= i => values[at] * pivot(j),
            Factorisation::Cholesky => {
                let row = &columns[offsets[j]..offsets[j + 1]];
                // Places are symmetric: the mirror image is there.
                row.binary_search(&(i as u32)).map_or(0.0, |mirror| values[offsets[j] + mirror] * pivot(i))
            }
        }
    };
    let of_row = |i: usize| (offsets[i]..offsets[i + 1]).map(move |at| (i, at));
    let made: Vec<T> = (0..a.rows()).flat_map(of_row).map(|(i, at)| T::from_f64(entry(i, at))).collect();
    if let Some(at) = made.iter().position(|v| !v.is_finite()) {
        let row = offsets.partition_point(|offset| *offset <= at) - 1;
        let what = "an entry of incomplete factors is too large for its precision: scale the matrix".into();
        return Err(Error::Structure { what, row: Some(row) });
    }
    Csr::new(a.rows(), a.cols(), offsets.to_vec(), columns.to_vec(), made)
}

impl<T: Real> From<Incomplete<T>> for SharedOperator<T> {
    fn from(factors: Incomplete<T>) -> Self {
        factors.shared()
    }
}

impl<T: Real> LinearOperator<T> for Incomplete<T> {
    fn device(&self) -> &Device {
        self.sweep.device()
    }
    fn rows(&self) -> usize {
        self.sweep.rows()
    }
    fn cols(&self) -> usize {
        self.sweep.cols()
    }
    fn apply(&self, x: &Vector<T>, z: &mut Vector<T>) -> Result<()> {
        self.sweep.apply(x, z)
    }
    fn bytes(&self) -> u64 {
        self.sweep.bytes()
    }
    fn launches(&self) -> usize {
        self.sweep.launches()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::sparse::gallery;

    fn csr(n: usize, entries: &[(usize, usize, f64)]) -> Csr<f64> {
        Csr::from_triplets(n, n, entries).unwrap()
    }

    #[test]
    fn full_matrices_are_factored_exactly() {
        // [[4, 2], [2, 10]] = L L' with L = [[2, 0], [1, 3]]: D = (4, 9), L D = 2, U = 2.
        let a = csr(2, &[(0, 0, 4.0), (0, 1, 2.0), (1, 0, 2.0), (1, 1, 10.0)]);
        for kind in [Factorisation::Cholesky, Factorisation::Lu] {
            let (found, shift) = factors(&a, kind, None).unwrap();
            assert_eq!((found.values(), shift), (&[4.0, 2.0, 2.0, 9.0][..], 0.0), "{kind:?}");
        }
        // [[2, 4], [6, 5]] = [[1, 0], [3, 1]] [[2, 4], [0, -7]].
        let a = csr(2, &[(0, 0, 2.0), (0, 1, 4.0), (1, 0, 6.0), (1, 1, 5.0)]);
        assert_eq!(factors(&a, Factorisation::Lu, None).unwrap().0.values(), [2.0, 4.0, 6.0, -7.0]);
        let inverse = Incomplete::new(&Device::host(), &a, Factorisation::Lu, None).unwrap();
        let x = Vector::from_slice(&Device::host(), &[10.0, 16.0]).unwrap();
        let mut z = Vector::zeros(&Device::host(), 2).unwrap();
        inverse.apply(&x, &mut z).unwrap();
        assert_eq!(z.to_vec().unwrap(), [1.0, 2.0]);
    }

    /// Dense loops of the book, with the places of `a` alone.
    fn textbook(a: &Csr<f64>, kind: Factorisation) -> Vec<Vec<f64>> {
        let n = a.rows();
        let mut m = vec![vec![0.0; n]; n];
        let mut there = vec![vec![false; n]; n];
        for i in 0..n {
            for (j, value) in a.row(i).0.iter().zip(a.row(i).1) {
                (m[i][*j as usize], there[i][*j as usize]) = (*value, true);
            }
        }
        for i in 0..n {
            for k in 0..=i {
                if !there[i][k] {
                    continue;
                }
                match kind {
                    Factorisation::Cholesky => {
                        for j in 0..k {
                            if there[i][j] && there[k][j] {
                                m[i][k] -= m[i][j] * m[k][j];
                            }
                        }
                        m[i][k] = if k < i { m[i][k] / m[k][k] } else { m[i][k].sqrt() };
                    }
                    Factorisation::Lu if k < i => {
                        m[i][k] /= m[k][k];
                        for j in k + 1..n {
                            if there[i][j] && there[k][j] {
                                m[i][j] -= m[i][k] * m[k][j];
                            }
                        }
                    }
                    Factorisation::Lu => {}
                }
            }
        }
        m
    }

    #[test]
    fn factors_are_those_of_the_textbook_bit_for_bit() {
        let poisson = gallery::poisson_2d::<f64>(8, 0.0).unwrap();
        let blocks = gallery::block_poisson::<f64>(5, 3).unwrap();
        for (a, kinds) in [
            (&poisson, &[Factorisation::Cholesky, Factorisation::Lu][..]),
            (&blocks, &[Factorisation::Cholesky, Factorisation::Lu]),
            (&gallery::diagonals(70, 7, 3, 5).unwrap(), &[Factorisation::Lu]),
        ] {
            for kind in kinds {
                let diagonal = diagonal_places(a, *kind).unwrap();
                let mut values = a.values().to_vec();
                match kind {
                    Factorisation::Cholesky => cholesky(a, &diagonal, &mut values).unwrap(),
                    Factorisation::Lu => lu(a, &diagonal, &mut values).unwrap(),
                }
                let wanted = textbook(a, *kind);
                for i in 0..a.rows() {
                    for at in a.offsets()[i]..a.offsets()[i + 1] {
                        let j = a.indices()[at] as usize;
                        if j <= i || *kind == Factorisation::Lu {
                            assert_eq!(values[at].to_bits(), wanted[i][j].to_bits(), "{kind:?}: {i} {j}");
                        }
                    }
                }
            }
        }
    }

    /// The loops of the book, row by row; the first row whose pivot is no good, if there is one.
    fn sparse_textbook(a: &Csr<f64>, kind: Factorisation) -> std::result::Result<Vec<BTreeMap<usize, f64>>, usize> {
        let mut rows: Vec<BTreeMap<usize, f64>> = Vec::new();
        for i in 0..a.rows() {
            let mut row: BTreeMap<usize, f64> =
                a.row(i).0.iter().map(|j| *j as usize).zip(a.row(i).1.to_vec()).collect();
            let largest = row.values().fold(0.0f64, |most, v| most.max(v.abs()));
            let columns: Vec<usize> = row.keys().copied().collect();
            for k in columns.into_iter().filter(|k| *k < i) {
                let other = &rows[k];
                match kind {
                    Factorisation::Cholesky => {
                        let mut value = row[&k];
                        for (j, l) in row.range(..k) {
                            value -= l * other.get(j).unwrap_or(&0.0);
                        }
                        row.insert(k, value / other[&k]);
                    }
                    Factorisation::Lu => {
                        let factor = row[&k] / other[&k];
                        row.insert(k, factor);
                        for (j, u) in other.range(k + 1..) {
                            row.entry(*j).and_modify(|v| *v -= factor * u);
                        }
                    }
                }
            }
            let mut pivot = row[&i];
            if kind == Factorisation::Cholesky {
                for (_, l) in row.range(..i) {
                    pivot -= l * l;
                }
                if pivot.is_nan() || pivot <= 0.0 {
                    return Err(i);
                }
                pivot = pivot.sqrt();
            } else if pivot.is_nan() || pivot.abs() <= f64::EPSILON * largest {
                return Err(i);
            }
            row.insert(i, pivot);
            rows.push(row);
        }
        Ok(rows)
    }

    /// Every matrix of the folder that `RESIDUUM_DATA` names, without a shift.
    #[test]
    fn factors_of_real_matrices_are_those_of_the_textbook() {
        let Some(folder) = std::env::var_os("RESIDUUM_DATA") else {
            println!("skipped: RESIDUUM_DATA names no folder of matrices");
            return;
        };
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> = files.filter(|path| path.to_string_lossy().ends_with(".mtx.gz")).collect();
        files.sort();
        let mut compared = 0;
        for path in files {
            let Ok(a) = crate::io::matrix_market::read_matrix::<f64>(&path) else { continue };
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            for kind in [Factorisation::Cholesky, Factorisation::Lu] {
                let symmetric = kind == Factorisation::Lu || a.rows() == a.cols() && check_symmetry(&a).is_ok();
                let Some(diagonal) =
                    Some(&a).filter(|a| a.rows() == a.cols() && symmetric).map(|a| diagonal_places(a, kind))
                else {
                    continue;
                };
                let Ok(diagonal) = diagonal else {
                    println!("{name} {kind:?}: no diagonal for it");
                    continue;
                };
                let mut values = a.values().to_vec();
                let done = match kind {
                    Factorisation::Cholesky => cholesky(&a, &diagonal, &mut values),
                    Factorisation::Lu => lu(&a, &diagonal, &mut values),
                };
                compared += 1;
                let wanted = match (sparse_textbook(&a, kind), done) {
                    (Ok(wanted), Ok(())) => wanted,
                    (Err(row), Err((found, _))) => {
                        println!("{name} {kind:?}: breaks down in row {row}");
                        assert_eq!(found, row, "{name} {kind:?}");
                        continue;
                    }
                    (wanted, found) => panic!("{name} {kind:?}: {:?}, {found:?}", wanted.err()),
                };
                println!("{name} {kind:?}: {} entries", a.nnz());
                for i in 0..a.rows() {
                    for at in a.offsets()[i]..a.offsets()[i + 1] {
                        let j = a.indices()[at] as usize;
                        if j <= i || kind == Factorisation::Lu {
                            assert_eq!(values[at].to_bits(), wanted[i][&j].to_bits(), "{name} {kind:?}: {i} {j}");
                        }
                    }
                }
            }
        }
        assert!(compared > 0, "no matrix in that folder");
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
        let (_, shift) = factors(&a, Factorisation::Cholesky, None).unwrap();
        assert!(shift > 0.0 && Incomplete::<f64>::SHIFTS.contains(&shift), "{shift}");
        let row = |a: &Csr<f64>, kind, shift| match factors(a, kind, shift) {
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
        assert!(factors(&zero, Factorisation::Lu, None).unwrap().1 > 0.0);
        assert_eq!(row(&zero, Factorisation::Lu, Some(0.0)), Some(0));
        assert!(matches!(factors(&a, Factorisation::Lu, Some(-1.0)), Err(Error::Option { .. })));
    }
}
