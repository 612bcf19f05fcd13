//! Products on the host.

use std::ops::Range;

use rayon::prelude::*;

use super::rows::{each_row, row_sums};
use super::{Gathered, HostMatrix, ProductOps, Stored};
use crate::backend::sums::{squares, summing};
use crate::backend::{Host, Run};
use crate::error::Result;
use crate::memory::Memory;
use crate::number::{Accumulator, Real, Sum};
use crate::reduction::Chunks;
use crate::sparse::Kind;

/// Rows `rows` of a product with `columns` interleaved vectors: `y`, which begins with the first of them, gets what `store(i, c, sum)`
/// makes of each sum. If an operator has computed the product, `y` holds the sums.
pub(in crate::backend) fn chunk_product<T: Real, A: Accumulator<T>>(
    a: &HostMatrix<'_, T>,
    columns: usize,
    rows: Range<usize>,
    vector: &Gathered<'_, T>,
    y: &mut [T],
    store: impl Fn(usize, usize, A) -> T,
) {
    let first = rows.start;
    match vector.plain() {
        _ if a.arrangement.kind == Kind::External => {
            for (k, value) in y.iter_mut().enumerate() {
                *value = store(first + k / columns, k % columns, A::from_real(*value));
            }
        }
        Some(x) if columns == 1 => each_row::<T, A>(a, rows, x, |i, sum| y[i - first] = store(i, 0, sum)),
        plain => {
            for (row, i) in y.chunks_mut(columns).zip(rows) {
                let sums = match plain {
                    Some(_) => row_sums::<T, A, false>(a, i, columns, vector),
                    None => row_sums::<T, A, true>(a, i, columns, vector),
                };
                for c in 0..columns {
                    row[c] = store(i, c, sums[c]);
                }
            }
        }
    }
}

fn multiply<T: Real, A: Accumulator<T>>(a: &HostMatrix<'_, T>, columns: usize, x: &[T], y: &mut [T]) {
    let (chunks, vector) = (Chunks::of(a.rows), Gathered::read(x));
    y.par_chunks_mut(chunks.chunk * columns).enumerate().for_each(|(g, y)| {
        chunk_product::<T, A>(a, columns, chunks.range(g), &vector, y, |_, _, sum| sum.to_real());
    });
}

fn residual<T: Real, A: Accumulator<T>>(
    a: &HostMatrix<'_, T>,
    columns: usize,
    x: &[T],
    b: &[T],
    r: &mut [T],
    sums: &mut [Sum],
) {
    let (chunks, vector) = (Chunks::of(a.rows), Gathered::read(x));
    r.par_chunks_mut(chunks.chunk * columns).enumerate().for_each(|(g, r)| {
        let difference = |i: usize, c: usize, sum: A| A::from_real(b[i * columns + c]).sub(sum).to_real();
        chunk_product(a, columns, chunks.range(g), &vector, r, difference);
    });
    squares::<T, A>(chunks, columns, r, sums);
}

impl<T: Real> ProductOps<T> for Host {
    fn multiply(
        &self,
        run: Run<'_>,
        a: &Stored<T>,
        columns: usize,
        x: &Memory<T>,
        y: &mut Memory<T>,
    ) -> Result<()> {
        let (a, x, y) = (a.host()?, x.host()?, y.host_mut()?);
        summing!(run, T, multiply(&a, columns, x, y));
        Ok(())
    }

    fn residual(
        &self,
        run: Run<'_>,
        a: &Stored<T>,
        columns: usize,
        x: &Memory<T>,
        b: &Memory<T>,
        r: &mut Memory<T>,
        sums: &mut Memory<Sum>,
        place: usize,
    ) -> Result<()> {
        let (a, x, b) = (a.host()?, x.host()?, b.host()?);
        let (r, sums) = (r.host_mut()?, &mut sums.host_mut()?[place..]);
        summing!(run, T, residual(&a, columns, x, b, r, sums));
        Ok(())
    }
}
