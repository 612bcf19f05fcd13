//! Rows of products on the host, in the order that `cl/row.cl` adds them.

use std::ops::Range;

use super::{Gathered, HostMatrix, MOST_COLUMNS, rays};
use crate::number::{Accumulator, Real};
use crate::reduction::fold;
use crate::sparse::{Kind, LONG_LANES, MIDDLE_LANES, MIDDLE_ROW, SHORT_ROW, SLICE, STENCIL_HEADER};

/// Sums of one row, one for each column of the vectors.
pub(super) type Sums<A> = [A; MOST_COLUMNS];

/// Adds `length` entries of a row; `entry(k)` is column and value of entry `k`, where NaN stands for no entry.
fn add_row<T: Real, A: Accumulator<T>, const LANES: usize, const FORMED: bool>(
    length: usize,
    columns: usize,
    vector: &Gathered<'_, T>,
    entry: impl Fn(usize) -> (usize, T),
) -> Sums<A> {
    let mut result = [A::default(); MOST_COLUMNS];
    for c in 0..columns {
        let mut lanes = [A::default(); LANES];
        let mut k = 0;
        while k < length {
            for l in 0..LANES.min(length - k) {
                let (column, value) = entry(k + l);
                if !value.is_nan() {
                    lanes[l] = lanes[l].add(A::product(value, vector.at::<FORMED>(column * columns + c, c)));
                }
            }
            k += LANES;
        }
        result[c] = fold(&mut lanes, A::add);
    }
    result
}

/// [`add_row`] with as many lanes as asked for.
fn add_row_in<T: Real, A: Accumulator<T>, const FORMED: bool>(
    lanes: usize,
    length: usize,
    columns: usize,
    vector: &Gathered<'_, T>,
    entry: impl Fn(usize) -> (usize, T),
) -> Sums<A> {
    match lanes {
        1 => add_row::<T, A, 1, FORMED>(length, columns, vector, entry),
        4 => add_row::<T, A, 4, FORMED>(length, columns, vector, entry),
        8 => add_row::<T, A, 8, FORMED>(length, columns, vector, entry),
        16 => add_row::<T, A, 16, FORMED>(length, columns, vector, entry),
        32 => add_row::<T, A, 32, FORMED>(length, columns, vector, entry),
        _ => add_row::<T, A, LONG_LANES, FORMED>(length, columns, vector, entry),
    }
}

/// Offset `i` of those that start at word `base`.
fn offset<T: Real>(a: &HostMatrix<'_, T>, base: usize, i: usize) -> usize {
    if a.arrangement.wide {
        let at = base + 2 * i;
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&a.pointers[at].to_ne_bytes());
        bytes[4..].copy_from_slice(&a.pointers[at + 1].to_ne_bytes());
        u64::from_ne_bytes(bytes) as usize
    } else {
        a.pointers[base + i] as usize
    }
}

/// Rows that diagonals are added to at a time.
const BLOCK: usize = 256;

/// Rows `rows` of a product with one vector, in order: `take(i, sum)` gets each. The same sums as [`row_sums`], made
/// faster for the formats that long vectors mostly come with.
pub(super) fn each_row<T: Real, A: Accumulator<T>>(
    a: &HostMatrix<'_, T>,
    rows: Range<usize>,
    x: &[T],
    mut take: impl FnMut(usize, A),
) {
    match a.arrangement.kind {
        Kind::Csr if a.arrangement.lanes == 1 => {
            let mut start = offset(a, 0, rows.start);
            for i in rows {
                let end = offset(a, 0, i + 1);
                let entries = a.indices[start..end].iter().zip(&a.values[start..end]);
                take(i, entries.fold(A::default(), |sum, (j, v)| sum.add(A::product(*v, x[*j as usize]))));
                start = end;
            }
        }
        Kind::Diagonals => {
            for start in rows.clone().step_by(BLOCK) {
                let count = BLOCK.min(rows.end - start);
                let mut sums = [A::default(); BLOCK];
                for (d, offset) in a.pointers[2..2 + a.pointers[0] as usize].iter().enumerate() {
                    add_diagonal(&mut sums[..count], start, *offset as i32, a.cols, &a.values[d * a.stride..], x);
                }
                for (k, sum) in sums[..count].iter().enumerate() {
                    take(start + k, *sum);
                }
            }
        }
        _ => {
            let vector = Gathered::read(x);
            rows.for_each(|i| take(i, row_sums::<T, A, false>(a, i, 1, &vector)[0]));
        }
    }
}

/// Adds what one diagonal gives to rows `start..`; only padding lies outside the matrix.
fn add_diagonal<T: Real, A: Accumulator<T>>(
    sums: &mut [A],
    start: usize,
    offset: i32,
    cols: usize,
    values: &[T],
    x: &[T],
) {
    let column = start as i64 + i64::from(offset);
    let low = (-column).clamp(0, sums.len() as i64) as usize;
    let high = (cols as i64 - column).clamp(low as i64, sums.len() as i64) as usize;
    if low == high {
        return;
    }
    let x = &x[(column + low as i64) as usize..][..high - low];
    let values = &values[start + low..][..high - low];
    for ((sum, v), x) in sums[low..high].iter_mut().zip(values).zip(x) {
        let next = sum.add(A::product(*v, *x));
        *sum = if v.is_nan() { *sum } else { next };
    }
}

/// Row `i` of a product with `columns` interleaved vectors.
pub(super) fn row_sums<T: Real, A: Accumulator<T>, const FORMED: bool>(
    a: &HostMatrix<'_, T>,
    i: usize,
    columns: usize,
    vector: &Gathered<'_, T>,
) -> Sums<A> {
    let lanes = a.arrangement.lanes;
    let pointers = a.pointers;
    let at = |at: usize| (a.indices[at] as usize, a.values[at]);
    let from = |start: usize, end: usize, lanes: usize| {
        // Slices of the row spare the checks of every index.
        let (indices, values) = (&a.indices[start..end], &a.values[start..end]);
        add_row_in::<T, A, FORMED>(lanes, end - start, columns, vector, |k| (indices[k] as usize, values[k]))
    };
    let padded =
        |length: u32| add_row_in::<T, A, FORMED>(lanes, length as usize, columns, vector, |k| at(k * a.stride + i));
    match a.arrangement.kind {
        Kind::Csr => from(offset(a, 0, i), offset(a, 0, i + 1), lanes),
        Kind::Adaptive => {
            let base = pointers[0] as usize;
            let (start, end) = (offset(a, base, i), offset(a, base, i + 1));
            let lanes = if end - start <= SHORT_ROW {
                1
            } else if end - start <= MIDDLE_ROW {
                MIDDLE_LANES
            } else {
                LONG_LANES
            };
            from(start, end, lanes)
        }
        Kind::Coordinates => {
            let entry_rows = &pointers[pointers[1] as usize..];
            let chunk = i / pointers[0] as usize;
            let (low, high) = (offset(a, 2, chunk), offset(a, 2, chunk + 1));
            let start = low + entry_rows[low..high].partition_point(|r| (*r as usize) < i);
            let end = low + entry_rows[low..high].partition_point(|r| (*r as usize) <= i);
            from(start, end, 1)
        }
        Kind::EllpackR => padded(pointers[i]),
        Kind::Ellpack => padded(pointers[0]),
        Kind::Dense => add_row_in::<T, A, FORMED>(lanes, pointers[0] as usize, columns, vector, |k| {
            (k, a.values[k * a.stride + i])
        }),
        Kind::Sliced | Kind::Sorted => {
            let places = a.rows.div_ceil(SLICE) + 1 + a.rows;
            let place = if a.arrangement.kind == Kind::Sorted { pointers[places + i] as usize } else { i };
            let (start, end) = (pointers[place / SLICE] as usize, pointers[place / SLICE + 1] as usize);
            let first = start * SLICE + place % SLICE;
            add_row_in::<T, A, FORMED>(lanes, end - start, columns, vector, |k| at(first + k * SLICE))
        }
        Kind::Diagonals => {
            let offsets = &pointers[2..2 + pointers[0] as usize];
            add_row_in::<T, A, FORMED>(lanes, offsets.len(), columns, vector, |d| {
                ((i as u32).wrapping_add(offsets[d]) as usize, a.values[d * a.stride + i])
            })
        }
        Kind::Blocks => block_row::<T, A, FORMED>(a, i, columns, vector),
        Kind::Stencil => stencil_row::<T, A, FORMED>(a, i, columns, vector),
        Kind::Hybrid => hybrid_row::<T, A, FORMED>(a, i, columns, vector),
        // The result holds it already: whoever asks for a row of it is wrong, and sees that.
        Kind::External => [A::from_real(T::from_f64(f64::NAN)); MOST_COLUMNS],
        Kind::Project => rays::ray_sums::<T, A, FORMED>(a, i, columns, vector),
        Kind::Backproject => rays::pixel_sums::<T, A, FORMED>(a, i, columns, vector),
    }
}

fn block_row<T: Real, A: Accumulator<T>, const FORMED: bool>(
    a: &HostMatrix<'_, T>,
    i: usize,
    columns: usize,
    vector: &Gathered<'_, T>,
) -> Sums<A> {
    let (size, pointers) = (a.arrangement.block, a.pointers);
    let (first, last) = (pointers[i / size] as usize, pointers[i / size + 1] as usize);
    add_row_in::<T, A, FORMED>(a.arrangement.lanes, (last - first) * size, columns, vector, |k| {
        let b = first + k / size;
        let column = a.indices[b] as usize * size + k % size;
        (column, a.values[(b * size + i % size) * size + k % size])
    })
}

fn stencil_row<T: Real, A: Accumulator<T>, const FORMED: bool>(
    a: &HostMatrix<'_, T>,
    i: usize,
    columns: usize,
    vector: &Gathered<'_, T>,
) -> Sums<A> {
    let pointers = a.pointers;
    let [width, height, depth] = [pointers[0], pointers[1], pointers[2]];
    let (x, line) = (i as u32 % width, i as u32 / width);
    let (y, z) = (line % height, line / height);
    add_row_in::<T, A, FORMED>(a.arrangement.lanes, pointers[3] as usize, columns, vector, |k| {
        let point = &pointers[STENCIL_HEADER + 4 * k..][..4];
        let on_grid = [(x, width), (y, height), (z, depth)]
            .into_iter()
            .zip(point)
            .all(|((at, size), d)| at.wrapping_add(*d) < size);
        if on_grid { ((i as u32).wrapping_add(point[3]) as usize, a.values[k]) } else { (0, T::from_f64(f64::NAN)) }
    })
}

fn hybrid_row<T: Real, A: Accumulator<T>, const FORMED: bool>(
    a: &HostMatrix<'_, T>,
    i: usize,
    columns: usize,
    vector: &Gathered<'_, T>,
) -> Sums<A> {
    let width = a.pointers[0] as usize;
    let full = width == 0 || !a.values[(width - 1) * a.stride + i].is_nan();
    let tail_rows = &a.pointers[2..];
    let tail = if full { tail_rows.partition_point(|r| (*r as usize) < i) } else { 0 };
    let length = if full { tail_rows[tail..].iter().take_while(|r| **r as usize == i).count() } else { 0 };
    add_row_in::<T, A, FORMED>(a.arrangement.lanes, width + length, columns, vector, |k| {
        let at = if k < width { k * a.stride + i } else { width * a.stride + tail + k - width };
        (a.indices[at] as usize, a.values[at])
    })
}
