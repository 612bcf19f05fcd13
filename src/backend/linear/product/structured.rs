//! Rows of products on the host for matrices that store regions, or nothing but a rule.

use std::ops::Range;

use super::HostMatrix;
use super::entries::RowSum;
use crate::backend::widest::widest;
use crate::number::{self, Accumulator, Real};
use crate::sparse::{Kind, STENCIL_HEADER, STENCIL_TABLE, TABLE_HEADER};

/// Most diagonals, and points of a stencil, that one pass over the rows takes.
const FUSED: usize = 9;

/// Rows from `first` on.
pub(crate) fn diagonals<T: Real, A: Accumulator<T>, const C: usize>(
    a: &HostMatrix<'_, T>,
    first: usize,
    x: &[[T; C]],
    sums: &mut [RowSum<A, C>],
) {
    let offsets = &a.pointers[2..2 + a.pointers[0] as usize];
    let rows = 0..sums.len();
    // Rows in which each diagonal lies in the matrix.
    let all = offsets.iter().fold(rows.clone(), |all, offset| {
        let inside = on_diagonal(a, first, *offset, rows.clone());
        all.start.max(inside.start)..all.end.min(inside.end)
    });
    if !is_unrolled(offsets.len()) || all.is_empty() {
        return along_diagonals(a, first, rows, x, sums);
    }
    along_diagonals(a, first, 0..all.start, x, sums);
    along_diagonals(a, first, all.end..rows.end, x, sums);
    let (mut values, mut xs): ([&[T]; FUSED], [&[[T; C]]; FUSED]) = ([&[]; FUSED], [&[]; FUSED]);
    for (d, offset) in offsets.iter().enumerate() {
        values[d] = &a.values[value_of(a, first + all.start, d)..];
        xs[d] = &x[(first + all.start).wrapping_add_signed(*offset as i32 as isize)..];
    }
    let sums = &mut sums[all];
    match offsets.len() {
        3 => add_diagonals::<T, A, C, 3>(&values, &xs, sums),
        5 => add_diagonals::<T, A, C, 5>(&values, &xs, sums),
        7 => add_diagonals::<T, A, C, 7>(&values, &xs, sums),
        _ => add_diagonals::<T, A, C, 9>(&values, &xs, sums),
    }
}

/// Place of the value of row `i` on diagonal `d`, which lies in the matrix there.
#[inline]
fn value_of<T: Real>(a: &HostMatrix<'_, T>, i: usize, d: usize) -> usize {
    let count = a.pointers[0] as usize;
    match a.arrangement.kind {
        Kind::Shifted => (count - 1 - d) * a.stride + i.wrapping_add_signed(a.pointers[2 + d] as i32 as isize),
        _ => d * a.stride + i,
    }
}

/// Rows, of some behind `first`, for which a diagonal lies in the matrix. Only padding lies outside.
#[inline]
fn on_diagonal<T: Real>(a: &HostMatrix<'_, T>, first: usize, offset: u32, rows: Range<usize>) -> Range<usize> {
    let column = first as i64 + i64::from(offset as i32);
    let (start, end) = (rows.start as i64, rows.end as i64);
    let low = (-column).clamp(start, end);
    low as usize..(a.cols as i64 - column).clamp(low, end) as usize
}

/// Some of the rows behind `first`, diagonal by diagonal.
#[inline]
fn along_diagonals<T: Real, A: Accumulator<T>, const C: usize>(
    a: &HostMatrix<'_, T>,
    first: usize,
    rows: Range<usize>,
    x: &[[T; C]],
    sums: &mut [RowSum<A, C>],
) {
    for (d, offset) in a.pointers[2..2 + a.pointers[0] as usize].iter().enumerate() {
        let inside = on_diagonal(a, first, *offset, rows.clone());
        if inside.is_empty() {
            continue;
        }
        let x = &x[(first + inside.start).wrapping_add_signed(*offset as i32 as isize)..][..inside.len()];
        let values = &a.values[value_of(a, first + inside.start, d)..][..inside.len()];
        add_diagonal(&mut sums[inside], values, x);
    }
}

widest! {
    #[inline]
    fn add_diagonal<'v; T: Real, A: Accumulator<T>; const C>(
        sums: &'v mut [RowSum<A, C>],
        values: &'v [T],
        x: &'v [[T; C]],
    ) -> () {
        for ((sum, value), x) in sums.iter_mut().zip(values).zip(x) {
            sum.add_unless_padding(*value, x);
        }
    }

    /// Rows that have all of `K` diagonals, in one pass, in which sums stay in registers.
    #[inline]
    fn add_diagonals<'v; T: Real, A: Accumulator<T>; const C, const K>(
        values: &'v [&'v [T]],
        xs: &'v [&'v [[T; C]]],
        sums: &'v mut [RowSum<A, C>],
    ) -> () {
        let n = sums.len();
        let (mut held, mut near) = ([values[0]; K], [xs[0]; K]);
        for k in 0..K {
            (held[k], near[k]) = (&values[k][..n], &xs[k][..n]);
        }
        for i in 0..n {
            let mut sum = RowSum::default();
            for k in 0..K {
                sum.add_unless_padding(held[k][i], &near[k][i]);
            }
            sums[i] = sum;
        }
    }

    /// Rows of `K` entries each: `values`, times the elements of `xs`.
    #[inline]
    fn add_points<'v; T: Real, A: Accumulator<T>; const C, const K>(
        values: &'v [T],
        xs: &'v [&'v [[T; C]]],
        sums: &'v mut [RowSum<A, C>],
    ) -> () {
        let n = sums.len();
        let (mut held, mut near) = ([T::default(); K], [xs[0]; K]);
        for k in 0..K {
            (held[k], near[k]) = (values[k], &xs[k][..n]);
        }
        for i in 0..n {
            let mut sum = RowSum::default();
            for k in 0..K {
                sum.add(held[k], &near[k][i]);
            }
            sums[i] = sum;
        }
    }
}

/// Rows from `first` on: what lies before their windows, the windows, and what lies behind.
pub(crate) fn bands<T: Real, A: Accumulator<T>, const C: usize>(
    a: &HostMatrix<'_, T>,
    first: usize,
    x: &[[T; C]],
    sums: &mut [RowSum<A, C>],
) {
    let width = a.pointers[0] as usize;
    let starts = &a.pointers[2 + first..][..sums.len()];
    let (offsets, values) = (&a.pointers[2 + a.stride + first..], &a.values[width * a.stride..]);
    let add_beside = |sums: &mut [RowSum<A, C>], before: bool| {
        for (i, sum) in sums.iter_mut().enumerate() {
            for k in offsets[i] as usize..offsets[i + 1] as usize {
                let column = a.indices[k];
                if (column < starts[i]) == before {
                    sum.add(values[k], &x[column as usize]);
                }
            }
        }
    };
    add_beside(sums, true);
    for k in 0..width {
        let values = &a.values[k * a.stride + first..][..sums.len()];
        for ((sum, value), start) in sums.iter_mut().zip(values).zip(starts) {
            sum.add_unless_padding(*value, &x[*start as usize + k]);
        }
    }
    add_beside(sums, false);
}

/// Rows of dense blocks.
pub(crate) fn blocks<T: Real, A: Accumulator<T>, const C: usize>(
    a: &HostMatrix<'_, T>,
    rows: Range<usize>,
    x: &[[T; C]],
    sums: &mut [RowSum<A, C>],
) {
    let size = a.arrangement.block;
    let mut i = rows.start;
    while i < rows.end {
        // The rest of a block row, as far as it is asked for.
        let (block_row, within) = (i / size, i % size);
        let count = (size - within).min(rows.end - i);
        let sums = &mut sums[i - rows.start..][..count];
        for b in a.pointers[block_row] as usize..a.pointers[block_row + 1] as usize {
            let block = &a.values[(b * size + within) * size..][..count * size];
            // Places beyond the last column hold padding.
            let x = &x[a.indices[b] as usize * size..];
            let wide = size.min(x.len());
            for (sum, values) in sums.iter_mut().zip(block.chunks_exact(size)) {
                for (value, x) in values.iter().zip(&x[..wide]) {
                    sum.add_unless_padding(*value, x);
                }
            }
        }
        i += count;
    }
}

/// Rows of a stencil, line by line of its grid.
pub(crate) fn stencil<T: Real, A: Accumulator<T>, const C: usize>(
    a: &HostMatrix<'_, T>,
    rows: Range<usize>,
    x: &[[T; C]],
    sums: &mut [RowSum<A, C>],
) {
    let [width, height, depth] = [0, 1, 2].map(|k| a.pointers[k] as usize);
    let points = a.pointers[STENCIL_HEADER..].as_chunks::<4>().0;
    let mut i = rows.start;
    while i < rows.end {
        // The rest of a line, as far as it is asked for.
        let (column, line) = (i % width, i / width);
        let (y, z) = (line % height, line / height);
        let count = (width - column).min(rows.end - i);
        let sums = &mut sums[i - rows.start..][..count];
        if a.pointers[STENCIL_TABLE] > 0 {
            line_with_rims(a, i, [column, y, z], x, sums);
            i += count;
            continue;
        }
        let points = &points[..a.pointers[3] as usize];
        if fused_line(a, points, i, [column, y, z], x, sums) {
            i += count;
            continue;
        }
        for (point, value) in points.iter().zip(a.values) {
            let [dx, dy, dz]: [i64; 3] = number::array(|axis| i64::from(point[axis] as i32));
            let on_grid = |at: usize, d: i64, size: usize| (0..size as i64).contains(&(at as i64 + d));
            if !on_grid(y, dy, height) || !on_grid(z, dz, depth) {
                continue;
            }
            let from = column as i64 + dx;
            let low = (-from).clamp(0, count as i64) as usize;
            let high = (width as i64 - from).clamp(low as i64, count as i64) as usize;
            if low == high {
                continue;
            }
            let start = (i + low) as i64 + i64::from(point[3] as i32);
            for (sum, x) in sums[low..high].iter_mut().zip(&x[start as usize..][..high - low]) {
                sum.add(*value, x);
            }
        }
        i += count;
    }
}

/// Rows that have all points, from `first` on: one pass, in which sums stay in registers.
#[inline]
fn inner_rows<T: Real, A: Accumulator<T>, const C: usize>(
    distances: impl Iterator<Item = u32>,
    values: &[T],
    first: usize,
    x: &[[T; C]],
    sums: &mut [RowSum<A, C>],
) {
    let mut held = [x; FUSED];
    for (held, distance) in held.iter_mut().zip(distances) {
        *held = &x[first.wrapping_add_signed(distance as i32 as isize)..];
    }
    match values.len() {
        3 => add_points::<T, A, C, 3>(values, &held, sums),
        5 => add_points::<T, A, C, 5>(values, &held, sums),
        7 => add_points::<T, A, C, 7>(values, &held, sums),
        9 => add_points::<T, A, C, 9>(values, &held, sums),
        _ => {}
    }
}

/// Numbers of points, and of diagonals, for which there is a loop of their own.
#[inline]
fn is_unrolled(points: usize) -> bool {
    matches!(points, 3 | 5 | 7 | 9)
}

/// Coordinates of an axis that have all neighbours.
#[inline]
fn inner_points<T: Real>(a: &HostMatrix<'_, T>, axis: usize) -> Range<usize> {
    let (before, inside) = (a.pointers[4 + 2 * axis] as usize, a.pointers[5 + 2 * axis] as usize);
    before..before + inside
}

/// Rows from `first` on, all of one line, if all points lie on the grid: tells if they were added.
fn fused_line<T: Real, A: Accumulator<T>, const C: usize>(
    a: &HostMatrix<'_, T>,
    points: &[[u32; 4]],
    first: usize,
    at: [usize; 3],
    x: &[[T; C]],
    sums: &mut [RowSum<A, C>],
) -> bool {
    if !is_unrolled(points.len()) || [1, 2].iter().any(|k| !inner_points(a, *k).contains(&at[*k])) {
        return false;
    }
    let Range { start: low, end: high } = inner_points(a, 0);
    // Rows of this line that have all points; those at its ends have fewer.
    let count = sums.len();
    let from = low.saturating_sub(at[0]).min(count);
    let to = high.saturating_sub(at[0]).clamp(from, count);
    let distances = || points.iter().map(|point| point[3]);
    inner_rows(distances(), &a.values[..points.len()], first + from, x, &mut sums[from..to]);
    let width = a.pointers[0] as usize;
    for row in (0..from).chain(to..count) {
        for (point, value) in points.iter().zip(a.values) {
            let there = (at[0] + row) as i64 + i64::from(point[0] as i32);
            if (0..width as i64).contains(&there) {
                let place = (first + row).wrapping_add_signed(point[3] as i32 as isize);
                sums[row].add(*value, &x[place]);
            }
        }
    }
    true
}

/// `rim_kind` of `cl/linear/format.cl`, and how many points have it from `at` on.
#[inline]
fn rim_kind(at: usize, inner: &Range<usize>) -> (usize, usize) {
    if inner.contains(&at) {
        return (inner.start, inner.end - at);
    }
    (if at < inner.start { at } else { at - inner.len().saturating_sub(1) }, 1)
}

/// Rows from `first` on, all of one line, of a stencil with rims: `walk_rim` of `cl/linear/format.cl`.
fn line_with_rims<T: Real, A: Accumulator<T>, const C: usize>(
    a: &HostMatrix<'_, T>,
    first: usize,
    [column, y, z]: [usize; 3],
    x: &[[T; C]],
    sums: &mut [RowSum<A, C>],
) {
    let table = &a.pointers[a.pointers[STENCIL_TABLE] as usize..];
    let kinds = [table[0] as usize, table[1] as usize];
    let inner = inner_points(a, 0);
    let of_line = [(1, y), (2, z)].map(|(axis, at)| rim_kind(at, &inner_points(a, axis)).0);
    let known = a.pointers[3] as usize;
    let mut done = 0;
    while done < sums.len() {
        let (kind, alike) = rim_kind(column + done, &inner);
        let count = alike.min(sums.len() - done);
        let row = (kind + kinds[0] * (of_line[0] + kinds[1] * of_line[1])) * known;
        let distances = &table[TABLE_HEADER + row..][..known];
        let coefficients = &a.values[known + 1 + row..][..known];
        let entries = coefficients.iter().position(|value| value.is_nan()).unwrap_or(known);
        let (distances, coefficients) = (&distances[..entries], &coefficients[..entries]);
        if is_unrolled(entries) {
            let sums = &mut sums[done..done + count];
            inner_rows(distances.iter().copied(), coefficients, first + done, x, sums);
            done += count;
            continue;
        }
        for (distance, value) in distances.iter().zip(coefficients) {
            let start = (first + done).wrapping_add_signed(*distance as i32 as isize);
            for (sum, x) in sums[done..done + count].iter_mut().zip(&x[start..]) {
                sum.add(*value, x);
            }
        }
        done += count;
    }
}
