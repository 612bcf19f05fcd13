//! Products on the host.

use std::ops::Range;

use super::entries::{LONG, RowSum, add_row};
use super::rows::{BLOCK, LONG_BLOCK, block_sums, longer_row, offset, order};
use super::{Combine, HostMatrix, MOST_COLUMNS, Product, ProductOps, Sampled};
use crate::backend::Host;
use crate::backend::run::Run;
use crate::backend::sums::summing;
use crate::error::Result;
use crate::memory::Memory;
use crate::number::{Accumulator, Real, Sum};
use crate::reduction::Chunks;
use crate::sparse::{Arrangement, Kind, SHORT_ROW};
use crate::threads::{self, ChunksMut};

/// Rows `rows` of a product with `columns` interleaved vectors, whole chunks of them: `y`, which begins with the first of them,
/// gets what `store(i, c, sum)` makes of each sum. If an operator has computed the product, `y` holds the sums.
pub(in crate::backend) fn chunk_product<T: Real, A: Accumulator<T>>(
    a: &HostMatrix<'_, T>,
    columns: usize,
    rows: Range<usize>,
    x: &[T],
    y: &mut [T],
    store: impl Fn(usize, usize, A) -> T,
) {
    if a.arrangement.kind == Kind::External {
        for (k, value) in y.iter_mut().enumerate() {
            *value = store(rows.start + k / columns, k % columns, A::from_real(*value));
        }
        return;
    }
    match columns {
        1 => chunk_columns::<T, A, 1>(a, rows, x, y, store),
        2 => chunk_columns::<T, A, 2>(a, rows, x, y, store),
        3 => chunk_columns::<T, A, 3>(a, rows, x, y, store),
        _ => chunk_columns::<T, A, MOST_COLUMNS>(a, rows, x, y, store),
    }
}

fn chunk_columns<T: Real, A: Accumulator<T>, const C: usize>(
    a: &HostMatrix<'_, T>,
    rows: Range<usize>,
    x: &[T],
    y: &mut [T],
    store: impl Fn(usize, usize, A) -> T,
) {
    let (x, y) = (x.as_chunks::<C>().0, y.as_chunks_mut::<C>().0);
    match a.arrangement.kind {
        Kind::Csr if has_short_rows(a) => short_rows(a, rows, x, y, store),
        // Work for a block takes longer than a few of their rows.
        Kind::Stencil | Kind::Diagonals | Kind::Shifted => by_blocks::<T, A, C, LONG_BLOCK>(a, rows, x, y, store),
        _ => by_blocks::<T, A, C, BLOCK>(a, rows, x, y, store),
    }
}

/// Rows `rows` of one lane each, one after another: work on a block of such short ones costs more than it saves (2 000 to 5 000 rows of 4 to 9
/// entries: 0.7 to 0.8 of the time). A call of its own, so that its loop stays small.
#[inline(never)]
fn short_rows<T: Real, A: Accumulator<T>, const C: usize>(
    a: &HostMatrix<'_, T>,
    rows: Range<usize>,
    x: &[[T; C]],
    y: &mut [[T; C]],
    store: impl Fn(usize, usize, A) -> T,
) {
    let [start, ends @ ..] = &a.pointers[rows.start..=rows.end] else { return };
    let (mut start, y) = (*start as usize, &mut y[..ends.len()]);
    for k in 0..ends.len() {
        let end = ends[k] as usize;
        let sum = add_row(RowSum::<A, C>::default(), &a.indices[start..end], &a.values[start..end], x);
        start = end;
        for c in 0..C {
            y[k][c] = store(rows.start + k, c, sum.0[c]);
        }
    }
}

/// Rows `rows`, `N` at a time: their sums, then what `store` makes of them. The two are compiled apart: there are many of either.
fn by_blocks<T: Real, A: Accumulator<T>, const C: usize, const N: usize>(
    a: &HostMatrix<'_, T>,
    rows: Range<usize>,
    x: &[[T; C]],
    y: &mut [[T; C]],
    store: impl Fn(usize, usize, A) -> T,
) {
    for start in rows.clone().step_by(N) {
        let places = start..rows.end.min(start + N);
        let mut sums = [RowSum::<A, C>::default(); N];
        let sums = &mut sums[..places.len()];
        row_sums(a, places.clone(), x, sums);
        match order(a) {
            Some(order) => {
                let order = &order[places];
                for k in 0..sums.len() {
                    let i = order[k] as usize;
                    for c in 0..C {
                        y[i - rows.start][c] = store(i, c, sums[k].0[c]);
                    }
                }
            }
            None => {
                let y = &mut y[start - rows.start..][..sums.len()];
                for k in 0..sums.len() {
                    for c in 0..C {
                        y[k][c] = store(start + k, c, sums[k].0[c]);
                    }
                }
            }
        }
    }
}

/// Sums of the rows at `places`, one block of them; they come as zeros.
#[inline(never)]
fn row_sums<T: Real, A: Accumulator<T>, const C: usize>(
    a: &HostMatrix<'_, T>,
    places: Range<usize>,
    x: &[[T; C]],
    sums: &mut [RowSum<A, C>],
) {
    if a.arrangement.kind != Kind::Adaptive {
        return block_sums(a, places, x, sums);
    }
    let base = a.pointers[0] as usize;
    let mut start = offset(a, base, places.start);
    for k in 0..sums.len() {
        let end = offset(a, base, places.start + k + 1);
        let (indices, values) = (&a.indices[start..end], &a.values[start..end]);
        start = end;
        sums[k] = if indices.len() > SHORT_ROW {
            longer_row(indices, values, x)
        } else {
            add_row(RowSum::<A, C>::default(), indices, values, x)
        };
    }
}

/// Tells if compressed rows have one lane each and are short.
fn has_short_rows<T: Real>(a: &HostMatrix<'_, T>) -> bool {
    let Arrangement { lanes, wide, .. } = a.arrangement;
    lanes == 1 && !wide && a.values.len() < LONG * a.rows
}

/// Products with fewer stored places than this are done by the thread that asks: to wake the others takes about as long
/// (10 us; two cores, products of 14 000 to 60 000 entries).
const SHARED: usize = 40_000;

/// Calls `work(g, y)` for every chunk `g` of `y`, `len` elements each.
fn for_each_chunk<T: Real>(a: &HostMatrix<'_, T>, len: usize, y: &mut [T], work: impl Fn(usize, &mut [T]) + Sync) {
    if a.values.len().max(a.rows) < SHARED {
        y.chunks_mut(len).enumerate().for_each(|(g, y)| work(g, y));
    } else {
        threads::each(ChunksMut(y, len), 1, work);
    }
}

/// `y = A x` for `columns` interleaved vectors, unless an operator has computed it.
pub(in crate::backend) fn multiply<T: Real, A: Accumulator<T>>(
    a: &HostMatrix<'_, T>,
    columns: usize,
    x: &[T],
    y: &mut [T],
) {
    let chunks = Chunks::of(a.rows);
    for_each_chunk(a, chunks.chunk * columns, y, |g, y| {
        chunk_product::<T, A>(a, columns, chunks.range(g), x, y, |_, _, sum| sum.to_real());
    });
}

fn multiply_with<T: Real, A: Accumulator<T>>(
    a: &HostMatrix<'_, T>,
    columns: usize,
    op: Combine,
    x: &[T],
    b: &[T],
    y: &mut [T],
) {
    let chunks = Chunks::of(a.rows);
    let combined = |i: usize, c: usize, sum: A| {
        let b = A::from_real(b[i * columns + c]);
        let value = match op {
            Combine::Plus => sum.add(b),
            Combine::Minus => sum.sub(b),
            Combine::From => b.sub(sum),
            Combine::Times => sum.mul(b),
        };
        value.to_real()
    };
    for_each_chunk(a, chunks.chunk * columns, y, |g, y| {
        chunk_product(a, columns, chunks.range(g), x, y, combined);
    });
}

/// Rows of a sample, one after another: those of a product for `columns` interleaved vectors, of which `store(i, c, sum)` makes the result.
pub(in crate::backend) fn sampled_rows<T: Real, A: Accumulator<T>>(
    a: &Sampled<'_, T>,
    columns: usize,
    x: &[T],
    store: impl Fn(usize, usize, A) -> T,
) -> Vec<T> {
    let mut y = vec![T::default(); a.matrix.rows * columns];
    let rows = &a.of.rows;
    chunk_product(&a.matrix, columns, 0..rows.len(), x, &mut y, |k, c, sum| store(rows[k] as usize, c, sum));
    y
}

/// Parts of a product that are computed again: rows of a sample, and chunk sums by their places.
#[derive(Debug)]
pub(in crate::backend) struct Spots<T> {
    pub(in crate::backend) rows: Vec<T>,
    pub(in crate::backend) sums: Vec<(usize, Sum)>,
}

impl<T: Real> ProductOps<T> for Host {
    fn multiply(&self, run: Run<'_>, ax: Product<'_, T>, y: &mut Memory<T>) -> Result<()> {
        let (a, x, y) = (ax.a.host()?, ax.x.host()?, y.host_mut()?);
        summing!(run, T, multiply(&a, ax.columns, x, y));
        Ok(())
    }

    fn multiply_with(
        &self,
        run: Run<'_>,
        ax: Product<'_, T>,
        op: Combine,
        b: &Memory<T>,
        y: &mut Memory<T>,
    ) -> Result<()> {
        let (a, x, b, y) = (ax.a.host()?, ax.x.host()?, b.host()?, y.host_mut()?);
        summing!(run, T, multiply_with(&a, ax.columns, op, x, b, y));
        Ok(())
    }
}
