//! Incomplete factors whose places the values choose: ILUT and IC with a threshold.
//!
//! ```text
//!   ILUT   for i:  w = row i of A
//!                  for k < i with w_k != 0, ascending:  w_k = w_k / u_kk;  if |w_k| < drop |a_i|: w_k = 0, else w = w - w_k u_k
//!                  drop the entries of w below drop |a_i|; keep the `most` largest before the diagonal and behind it, and the diagonal
//!   IC     for k:  drop the entries of row k of what is left with |a_kj| <= drop sqrt(a_kk a_jj); keep the `most` largest
//!                  a_ij = a_ij - a_ki a_kj / a_kk  for all i, j > k among the columns that are kept
//! ```
//!
//! `|a_i|` is the 2-norm of row `i` of `A`; `most` entries are kept on each side of the diagonal, which is always kept. Of entries of equal
//! magnitude those with the smaller column are kept. IC changes the matrix that is left after each `k`; an entry of it is dropped
//! by the same rule when it is changed. All is computed in `f64`.
//!
//! Source: Y. Saad, "Iterative methods for sparse linear systems", 2nd ed. 2003, algorithm 10.6; dedecek-2013, 3.1 (IC by value);
//! N. Munksgaard, ACM Trans. Math. Softw. 6 (1980).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::pivot::{BadPivot, OF_FACTORS, largest};
use crate::error::Result;
use crate::number::Real;
use crate::precond::support::check_rounded;
use crate::sparse::Csr;

/// Factors together, or the first pivot that is no good.
type Made<T> = Result<std::result::Result<Result<Csr<T>>, BadPivot>>;
/// A row of a factor: columns, ascending, and values.
type Row = Vec<(u32, f64)>;

/// Keeps the `most` largest entries of a row.
fn shorten(row: &mut Row, most: usize) {
    if row.len() > most {
        row.sort_unstable_by(|x, y| y.1.abs().total_cmp(&x.1.abs()).then(x.0.cmp(&y.0)));
        row.truncate(most);
        row.sort_unstable_by_key(|(column, _)| *column);
    }
}

/// Rows of `L D`, `D` and `U` as one matrix.
fn together<T: Real>(lower: &[Row], pivots: &[f64], upper: &[Row]) -> Result<Csr<T>> {
    let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for (i, pivot) in pivots.iter().enumerate() {
        for (column, value) in lower[i].iter().chain([&(i as u32, *pivot)]).chain(&upper[i]) {
            columns.push(*column);
            values.push(T::from_f64(*value));
        }
        offsets.push(columns.len());
    }
    check_rounded(&offsets, &values, OF_FACTORS)?;
    Csr::new(pivots.len(), pivots.len(), offsets, columns, values)
}

/// ILUT of the matrix with the places of `a` and the entries `values`.
pub(super) fn lu<T: Real>(
    a: &Csr<T>,
    values: &[f64],
    (most, drop): (usize, f64),
    in_time: impl Fn() -> Result<()>,
) -> Made<T> {
    let n = a.rows();
    let (mut lower, mut upper): (Vec<Row>, Vec<Row>) = (Vec::with_capacity(n), Vec::with_capacity(n));
    let mut pivots: Vec<f64> = Vec::with_capacity(n);
    // The row at hand, spread out, and its columns.
    let (mut w, mut there) = (vec![0.0; n], vec![false; n]);
    let mut columns: Vec<u32> = Vec::new();
    let mut before: BinaryHeap<Reverse<u32>> = BinaryHeap::new();
    for i in 0..n {
        in_time()?;
        let row = a.offsets()[i]..a.offsets()[i + 1];
        let norm = values[row.clone()].iter().fold(0.0, |sum, v| libm::hypot(sum, *v));
        let largest = largest(&values[row.clone()]);
        for e in row {
            let j = a.indices()[e];
            (w[j as usize], there[j as usize]) = (values[e], true);
            columns.push(j);
            if (j as usize) < i {
                before.push(Reverse(j));
            }
        }
        while let Some(Reverse(k)) = before.pop() {
            let k = k as usize;
            w[k] /= pivots[k];
            if w[k].abs() < drop * norm {
                w[k] = 0.0;
                continue;
            }
            for (j, u) in &upper[k] {
                let at = *j as usize;
                if !there[at] {
                    there[at] = true;
                    columns.push(*j);
                    if at < i {
                        before.push(Reverse(*j));
                    }
                }
                w[at] -= w[k] * u;
            }
        }
        columns.sort_unstable();
        let (mut left, mut right, mut pivot) = (Row::new(), Row::new(), 0.0);
        for j in columns.drain(..) {
            let at = j as usize;
            let value = std::mem::take(&mut w[at]);
            there[at] = false;
            if at == i {
                pivot = value;
            } else if value != 0.0 && value.abs() >= drop * norm {
                if at < i { left.push((j, value)) } else { right.push((j, value)) }
            }
        }
        if !(pivot.abs() > f64::EPSILON * largest && pivot.is_finite()) {
            return Ok(Err((i, pivot)));
        }
        shorten(&mut left, most);
        shorten(&mut right, most);
        left.iter_mut().for_each(|(j, value)| *value *= pivots[*j as usize]);
        lower.push(left);
        upper.push(right);
        pivots.push(pivot);
    }
    Ok(Ok(together(&lower, &pivots, &upper)))
}

/// IC with a threshold of the symmetric matrix with the places of `a` and the entries `values`.
pub(super) fn cholesky<T: Real>(
    a: &Csr<T>,
    values: &[f64],
    (most, drop): (usize, f64),
    in_time: impl Fn() -> Result<()>,
) -> Made<T> {
    let n = a.rows();
    let mut pivots = vec![0.0; n];
    // Rows of what is left, behind the diagonal.
    let mut rest: Vec<Row> = Vec::with_capacity(n);
    for i in 0..n {
        let entries = (a.offsets()[i]..a.offsets()[i + 1]).map(|e| (a.indices()[e], values[e]));
        let (mut own, mut behind) = (0.0, Row::new());
        for (j, value) in entries {
            match (j as usize).cmp(&i) {
                std::cmp::Ordering::Less => {}
                std::cmp::Ordering::Equal => own = value,
                std::cmp::Ordering::Greater => behind.push((j, value)),
            }
        }
        pivots[i] = own;
        rest.push(behind);
    }
    let mut lower: Vec<Row> = vec![Row::new(); n];
    for k in 0..n {
        in_time()?;
        let pivot = pivots[k];
        if !(pivot > 0.0 && pivot.is_finite()) {
            return Ok(Err((k, pivot)));
        }
        let small = |i: usize, j: usize, value: f64, pivots: &[f64]| {
            value == 0.0 || value.abs() <= drop * (pivots[i] * pivots[j]).abs().sqrt()
        };
        let mut row = std::mem::take(&mut rest[k]);
        row.retain(|(j, value)| !small(k, *j as usize, *value, &pivots));
        shorten(&mut row, most);
        for (i, value) in &row {
            pivots[*i as usize] -= value * value / pivot;
            lower[*i as usize].push((k as u32, *value));
        }
        for (first, (i, value)) in row.iter().enumerate() {
            let (i, factor) = (*i as usize, value / pivot);
            let behind = &row[first + 1..];
            if behind.is_empty() {
                break;
            }
            let old = std::mem::take(&mut rest[i]);
            let mut new = Row::with_capacity(old.len() + behind.len());
            let mut at = 0;
            for (j, other) in behind {
                while old.get(at).is_some_and(|(there, _)| there < j) {
                    new.push(old[at]);
                    at += 1;
                }
                let held = old.get(at).filter(|(there, _)| there == j);
                let value = held.map_or(0.0, |(_, value)| *value) - factor * other;
                at += usize::from(held.is_some());
                if !small(i, *j as usize, value, &pivots) {
                    new.push((*j, value));
                }
            }
            new.extend_from_slice(&old[at..]);
            rest[i] = new;
        }
        rest[k] = row;
    }
    Ok(Ok(together(&lower, &pivots, &rest)))
}
