//! Passes over the entries of a matrix: symmetry, norms of rows, signs against definiteness.

use crate::magnitude;
use crate::number::Real;
use crate::precond::mirrored;
use crate::sparse::Csr;
use crate::threads;

pub(super) fn is_empty<T: Real>(a: &Csr<T>, i: usize) -> bool {
    a.row(i).1.iter().all(|v| v.to_f64() == 0.0)
}

/// Rows that a thread takes at least.
pub(super) const ROWS: usize = 1024;

/// The 2-norm of each row.
pub(super) fn row_norms<T: Real>(a: &Csr<T>) -> Vec<f64> {
    threads::numbers(0..a.rows(), ROWS, |_, i| magnitude::norm(a.row(i).1.iter().map(|v| v.to_f64())))
}

/// Rounding errors that two mirrored entries may differ by.
const ROUNDING: f64 = 8.0;

/// The largest difference of two mirrored entries, in the units of [`Examination::asymmetry`], if rounding explains it.
pub(super) fn asymmetry<T: Real>(a: &Csr<T>, diagonal: &[f64]) -> Option<f64> {
    let (values, columns) = (a.values(), a.indices());
    let of_diagonal = |i: u32, j: u32| (diagonal[i as usize].abs() * diagonal[j as usize].abs()).sqrt();
    let difference = |i: u32, j: u32, x: f64, y: f64| {
        if x == y { 0.0 } else { (x - y).abs() / x.abs().max(y.abs()).max(of_diagonal(i, j)) }
    };
    let limit = ROUNDING * T::EPSILON;
    let mut largest = 0.0f64;
    let found = mirrored(a, |at, mirror| {
        let (x, y) = (values[at].to_f64(), values[mirror].to_f64());
        largest = largest.max(difference(columns[mirror], columns[at], x, y));
    });
    if found {
        return (largest <= limit).then_some(largest);
    }
    // An entry of the size of rounding, or a 0, needs no mirror image.
    let small = |i: usize, j: u32, v: f64| v.abs() <= limit * of_diagonal(i as u32, j);
    let of_row = |i: usize| a.row(i).0.iter().zip(a.row(i).1);
    if threads::all(a.rows(), ROWS, |i| !of_row(i).any(|(j, v)| small(i, *j, v.to_f64()))) {
        return None;
    }
    let transposed = a.transpose();
    let mut largest = 0.0f64;
    for i in 0..a.rows() {
        let mut mirror = transposed.row(i).0.iter().zip(transposed.row(i).1).peekable();
        for (j, v) in of_row(i) {
            let v = v.to_f64();
            // The transposed row may have entries that this one lacks.
            while let Some((k, w)) = mirror.next_if(|(k, _)| *k < j) {
                largest = largest.max(difference(i as u32, *k, 0.0, w.to_f64()));
            }
            let w = mirror.next_if(|(k, _)| *k == j).map_or(0.0, |(_, w)| w.to_f64());
            largest = largest.max(difference(i as u32, *j, v, w));
        }
        largest = mirror.fold(largest, |most, (k, w)| most.max(difference(i as u32, *k, 0.0, w.to_f64())));
        if largest > limit {
            return None;
        }
    }
    Some(largest)
}

/// Entries from which threads share a product: below, they take longer to meet than to multiply.
const SHARED: usize = 40_000;

/// `y = A x`.
pub(super) fn multiply<T: Real>(a: &Csr<T>, x: &[f64], y: &mut [f64]) {
    let product = |i: usize, y: &mut f64| {
        let (columns, values) = a.row(i);
        *y = columns.iter().zip(values).map(|(j, v)| v.to_f64() * x[*j as usize]).sum();
    };
    if a.nnz() < SHARED {
        y.iter_mut().enumerate().for_each(|(i, y)| product(i, y));
    } else {
        threads::each(y, 256, product);
    }
}

/// An entry with `a_ij^2 > a_ii a_jj`, which no positive semidefinite matrix has.
pub(super) fn outweighed_pair<T: Real>(a: &Csr<T>, diagonal: &[f64]) -> Option<(usize, usize)> {
    let pair = |i: usize| {
        let (columns, values) = a.row(i);
        let heavy = |(j, v): (&u32, &T)| {
            let j = *j as usize;
            let square = v.to_f64() * v.to_f64();
            (i != j && square > diagonal[i] * diagonal[j] * (1.0 + 1e-6)).then_some((i, j))
        };
        columns.iter().zip(values).find_map(heavy)
    };
    threads::first(a.rows(), ROWS, |i| pair(i).is_some()).and_then(pair)
}

/// Tells if each diagonal entry is more than the others of its row together.
pub(super) fn dominant<T: Real>(a: &Csr<T>, diagonal: &[f64]) -> bool {
    threads::all(a.rows(), ROWS, |i| {
        let all: f64 = a.row(i).1.iter().map(|v| v.to_f64().abs()).sum();
        2.0 * diagonal[i] > all
    })
}
