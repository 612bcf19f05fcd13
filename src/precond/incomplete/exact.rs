//! Incomplete factors in the sparsity pattern of the matrix, entry after entry: IC(0) and ILU(0).

use super::pivot::{BadPivot, largest};
use crate::number::Real;
use crate::sparse::Csr;

/// Place of a column that the row does not have. Places are counted in 32 bits.
const NOWHERE: u32 = u32::MAX;

/// IC(0): `L` takes the places of the lower triangle of `values`.
pub(super) fn cholesky<T: Real>(
    a: &Csr<T>,
    diagonal: &[usize],
    values: &mut [f64],
) -> std::result::Result<(), BadPivot> {
    let (offsets, columns) = (a.offsets(), a.indices());
    // Row i of L, 0 in other places: a product with 0 changes no sum, unless that is -0.
    let mut own = vec![0.0; a.cols()];
    for i in 0..a.rows() {
        let row = offsets[i]..diagonal[i];
        for at in row.clone() {
            let k = columns[at] as usize;
            let mut value = values[at];
            let may_lose_sign = value.to_bits() == (-0.0f64).to_bits();
            // Entries of rows i and k in the same column before k.
            for before in offsets[k]..diagonal[k] {
                let j = columns[before];
                if !may_lose_sign || columns[row.clone()].binary_search(&j).is_ok() {
                    value -= own[j as usize] * values[before];
                }
            }
            values[at] = value / values[diagonal[k]];
            own[k] = values[at];
        }
        let mut pivot = values[diagonal[i]];
        for at in row.clone() {
            pivot -= values[at] * values[at];
        }
        if !(pivot > 0.0 && pivot.is_finite()) {
            return Err((i, pivot));
        }
        values[diagonal[i]] = pivot.sqrt();
        row.for_each(|at| own[columns[at] as usize] = 0.0);
    }
    Ok(())
}

/// ILU(0) in place: `L` without its unit diagonal, and `U`.
pub(super) fn lu<T: Real>(a: &Csr<T>, diagonal: &[usize], values: &mut [f64]) -> std::result::Result<(), BadPivot> {
    let (offsets, columns) = (a.offsets(), a.indices());
    let mut place = vec![NOWHERE; a.cols()];
    for i in 0..a.rows() {
        let row = offsets[i]..offsets[i + 1];
        let largest = largest(&values[row.clone()]);
        row.clone().for_each(|at| place[columns[at] as usize] = at as u32);
        for at in offsets[i]..diagonal[i] {
            let k = columns[at] as usize;
            values[at] /= values[diagonal[k]];
            for other in diagonal[k] + 1..offsets[k + 1] {
                let mine = place[columns[other] as usize];
                if mine != NOWHERE {
                    values[mine as usize] -= values[at] * values[other];
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::{Factorisation, Places};
    use super::*;
    use crate::sparse::gallery;

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
        // Entries that are 0, with both signs.
        let zeros = Csr::from_rows(blocks.rows(), blocks.cols(), |i, row| {
            let (columns, values) = blocks.row(i);
            row.extend(columns.iter().zip(values).map(|(j, v)| match (i != *j as usize, (i + *j as usize) % 3) {
                (true, 1) => (*j, 0.0),
                (true, 2) => (*j, -0.0),
                _ => (*j, *v),
            }));
        });
        let zeros = zeros.unwrap();
        for (a, kinds) in [
            (&poisson, &[Factorisation::Cholesky, Factorisation::Lu][..]),
            (&blocks, &[Factorisation::Cholesky, Factorisation::Lu]),
            (&gallery::diagonals(70, 7, 3, 5).unwrap(), &[Factorisation::Lu]),
            (&zeros, &[Factorisation::Cholesky, Factorisation::Lu]),
        ] {
            for kind in kinds {
                let diagonal = Places::of(a, *kind).unwrap().diagonal;
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
                if a.rows() != a.cols() {
                    continue;
                }
                let diagonal = match Places::of(&a, kind) {
                    Ok(places) => places.diagonal,
                    Err(error) => {
                        println!("{name} {kind:?}: {error}");
                        continue;
                    }
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
}
