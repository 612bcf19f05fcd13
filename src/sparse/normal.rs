//! The matrix of the normal equations.

use std::ops::Range;

use super::{Csr, RowBlock};
use crate::error::Result;
use crate::number::{Real, per_number};
use crate::{machine, threads};

/// Rows that a thread makes one after another.
const ROWS_TOGETHER: usize = 64;
const NOWHERE: u32 = u32::MAX;

per_number! {
    fn normal_matrix<T>(a: &Csr<T>) -> Result<Csr<T>> = normal_matrix_here;
}

impl<T: Real> Csr<T> {
    /// `A'A`, the matrix of the normal equations: what preconditioners of least squares are made from. Row `j` is the sum over ascending
    /// `i` of `a_ij` times row `i` of `A`, in `f64`, rounded once; it is exactly symmetric. By all threads, the same for any number of them.
    ///
    /// # Cost
    /// Twice the sum over the rows of `A` of their squared lengths. A full row of `A` makes `A'A` full.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory) if its entries are more than the machine's memory, before they are allocated.
    pub fn normal_matrix(&self) -> Result<Self> {
        normal_matrix(self)
    }
}

fn normal_matrix_here<T: Real>(a: &Csr<T>) -> Result<Csr<T>> {
    let (n, t) = (a.cols(), a.transpose());
    // The rows of A that row j meets.
    let rows_of = |j: usize| {
        let (rows, values) = t.row(j);
        rows.iter().zip(values).map(|(i, v)| (a.row(*i as usize), v.to_f64()))
    };
    let count = |rows: Range<usize>| {
        let (mut seen, mut found) = (vec![NOWHERE; n], 0);
        for j in rows {
            for ((columns, _), _) in rows_of(j) {
                for k in columns {
                    found += usize::from(seen[*k as usize] != j as u32);
                    seen[*k as usize] = j as u32;
                }
            }
        }
        found
    };
    let entries = threads::fold(n, ROWS_TOGETHER, count, |a, b| a + b).unwrap_or(0);
    // Twice: rows are collected by blocks before they are put together.
    let bytes = 2 * entries as u64 * (4 + T::PRECISION.bytes() as u64);
    machine::check_memory(format!("{entries} entries of A'A"), bytes)?;
    let make = |blocks: Range<usize>| {
        let (mut seen, mut sums) = (vec![NOWHERE; n], vec![0.0; n]);
        let mut of_rows = |rows: Range<usize>| {
            let mut made = RowBlock::default();
            let RowBlock { lengths, indices, values } = &mut made;
            for j in rows {
                let begin = indices.len();
                for ((columns, entries), factor) in rows_of(j) {
                    for (k, v) in columns.iter().zip(entries) {
                        let at = *k as usize;
                        if seen[at] != j as u32 {
                            (seen[at], sums[at]) = (j as u32, 0.0);
                            indices.push(*k);
                        }
                        sums[at] += factor * v.to_f64();
                    }
                }
                indices[begin..].sort_unstable();
                values.extend(indices[begin..].iter().map(|k| T::from_f64(sums[*k as usize])));
                lengths.push(indices.len() - begin);
            }
            made
        };
        blocks.map(|block| of_rows(block * ROWS_TOGETHER..n.min((block + 1) * ROWS_TOGETHER))).collect()
    };
    let blocks: Vec<Vec<RowBlock<T>>> = threads::runs(n.div_ceil(ROWS_TOGETHER), 1, make);
    Csr::from_blocks(n, n, blocks.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparse::gallery;

    #[test]
    fn it_is_the_transposed_times_the_matrix() {
        let a = gallery::random::<f64>(300, 170, 1500, 9).unwrap();
        let normal = a.normal_matrix().unwrap();
        let x: Vec<f64> = (0..170).map(|i| f64::from(i).sin()).collect();
        let wanted = a.transpose().product(&a.product(&x).unwrap()).unwrap();
        for (found, wanted) in normal.product(&x).unwrap().iter().zip(&wanted) {
            assert!((found - wanted).abs() < 1e-12 * wanted.abs().max(1.0));
        }
        let t = normal.transpose();
        assert_eq!((t.offsets(), t.indices(), t.values()), (normal.offsets(), normal.indices(), normal.values()));
        let none = Csr::<f64>::from_triplets(3, 0, &[]).unwrap().normal_matrix().unwrap();
        assert_eq!((none.rows(), none.cols(), none.nnz()), (0, 0, 0));
    }
}
