//! Rows of products on the host, in the order that `cl/linear/row.cl` adds them.
//!
//! Up to [`BLOCK`] rows are computed together, of diagonals and stencils up to [`LONG_BLOCK`]. Short rows of CSR are the exception: `host.rs`
//! computes them one after another. Inner loops have a known length and no dependences but the order of a lane's own additions, so that the
//! compiler makes vector instructions of them. The loads of `x` are in loops of their own.

use std::ops::Range;

use super::entries::{RowSum, add_places, add_places_of_lanes, add_row, lane_row, packed_rows};
use super::{HostMatrix, structured};
use crate::number::{Accumulator, Real};
use crate::sparse::{Kind, LONG_LANES, MIDDLE_LANES, MIDDLE_ROW, SLICE, offset_at};

/// Most rows done at a time, a multiple of [`SLICE`].
pub(crate) const BLOCK: usize = 64;

/// Most rows done at a time of matrices that store no rows.
pub(crate) const LONG_BLOCK: usize = 512;

/// Offset `i` of those that start at word `base`.
#[inline]
pub(crate) fn offset<T: Real>(a: &HostMatrix<'_, T>, base: usize, i: usize) -> usize {
    offset_at(a.pointers, a.arrangement.wide, base, i)
}

/// Offsets of `rows` and the end of the last, of those that start at word `base`.
#[inline]
fn offsets<T: Real>(a: &HostMatrix<'_, T>, base: usize, rows: &Range<usize>) -> [usize; BLOCK + 1] {
    let mut found = [0; BLOCK + 1];
    if a.arrangement.wide {
        for (to, i) in found.iter_mut().zip(rows.start..=rows.end) {
            *to = offset(a, base, i);
        }
    } else {
        for (to, from) in found.iter_mut().zip(&a.pointers[base + rows.start..=base + rows.end]) {
            *to = *from as usize;
        }
    }
    found
}

/// Sums of the rows at places `places`, at most [`BLOCK`] or [`LONG_BLOCK`] from a multiple of [`SLICE`] on; [`order`] tells which row
/// is at a place. `sums` come as zeros.
pub(crate) fn block_sums<T: Real, A: Accumulator<T>, const C: usize>(
    a: &HostMatrix<'_, T>,
    places: Range<usize>,
    x: &[[T; C]],
    sums: &mut [RowSum<A, C>],
) {
    let first = places.start;
    match a.arrangement.kind {
        Kind::Csr => {
            let offsets = &offsets(a, 0, &places)[..=sums.len()];
            match a.arrangement.lanes {
                1 => packed_rows(a, offsets, x, sums),
                4 => shared_rows::<T, A, C, 4>(a, offsets, x, sums),
                8 => shared_rows::<T, A, C, 8>(a, offsets, x, sums),
                16 => shared_rows::<T, A, C, 16>(a, offsets, x, sums),
                _ => shared_rows::<T, A, C, 32>(a, offsets, x, sums),
            }
        }
        Kind::Coordinates => {
            let entry_rows = &a.pointers[a.pointers[1] as usize..];
            let chunk = first / a.pointers[0] as usize;
            let (low, high) = (offset(a, 2, chunk), offset(a, 2, chunk + 1));
            let mut start = low + entry_rows[low..high].partition_point(|r| (*r as usize) < first);
            for (i, sum) in places.zip(sums) {
                let length = entry_rows[start..high].iter().take_while(|r| **r as usize == i).count();
                let entries = start..start + length;
                *sum = add_row(RowSum::default(), &a.indices[entries.clone()], &a.values[entries], x);
                start += length;
            }
        }
        Kind::EllpackR => {
            let longest = a.pointers[places].iter().max().map_or(0, |length| *length as usize);
            add_places(a, first, a.stride, longest, x, sums);
        }
        Kind::Ellpack => add_places(a, first, a.stride, a.pointers[0] as usize, x, sums),
        Kind::Sliced | Kind::Sorted => {
            for (slice, sums) in (first / SLICE..).zip(sums.chunks_mut(SLICE)) {
                let (start, end) = (a.pointers[slice] as usize, a.pointers[slice + 1] as usize);
                add_places(a, start * SLICE, SLICE, end - start, x, sums);
            }
        }
        Kind::Hybrid => {
            let width = a.pointers[0] as usize;
            add_places(a, first, a.stride, width, x, sums);
            let tail_rows = &a.pointers[2..];
            let tail = tail_rows.partition_point(|r| (*r as usize) < first);
            let (indices, values) = (&a.indices[width * a.stride..], &a.values[width * a.stride..]);
            for ((i, j), v) in tail_rows[tail..].iter().zip(&indices[tail..]).zip(&values[tail..]) {
                let Some(sum) = sums.get_mut(*i as usize - first) else { break };
                sum.add(*v, &x[*j as usize]);
            }
        }
        Kind::Banded => structured::bands(a, first, x, sums),
        Kind::Dense => add_places_of_lanes(a, first, x, sums),
        Kind::Diagonals | Kind::Shifted => structured::diagonals(a, first, x, sums),
        Kind::Blocks => structured::blocks(a, places, x, sums),
        Kind::Stencil => structured::stencil(a, places, x, sums),
        // The result holds it already, or rows are added one by one: whoever asks for a block of them is wrong, and sees that.
        Kind::External | Kind::Adaptive => sums.fill(RowSum([A::from_real(T::from_f64(f64::NAN)); C])),
    }
}

/// The row at each place, if rows are not stored in their own order.
#[inline]
pub(crate) fn order<'a, T: Real>(a: &HostMatrix<'a, T>) -> Option<&'a [u32]> {
    (a.arrangement.kind == Kind::Sorted).then(|| &a.pointers[a.rows.div_ceil(SLICE) + 1..][..a.rows])
}

/// Compressed rows with `LANES` lanes each.
#[inline]
fn shared_rows<T: Real, A: Accumulator<T>, const C: usize, const LANES: usize>(
    a: &HostMatrix<'_, T>,
    offsets: &[usize],
    x: &[[T; C]],
    sums: &mut [RowSum<A, C>],
) {
    for (i, sum) in sums.iter_mut().enumerate() {
        let entries = offsets[i]..offsets[i + 1];
        *sum = lane_row::<T, A, C, LANES>(&a.indices[entries.clone()], &a.values[entries], x);
    }
}

/// Half of [`MIDDLE_LANES`].
const HALF_LANES: usize = MIDDLE_LANES / 2;

/// A row of more than [`SHORT_ROW`](crate::sparse::SHORT_ROW) entries, with as many lanes as its length asks for. A call of its own, so
/// that the loop over rows that are not so long stays small.
#[inline(never)]
pub(crate) fn longer_row<T: Real, A: Accumulator<T>, const C: usize>(
    indices: &[u32],
    values: &[T],
    x: &[[T; C]],
) -> RowSum<A, C> {
    if A::KEEPS_PRODUCTS && indices.len() <= MIDDLE_LANES {
        // No lane has a second entry: the first halving of the lanes adds what half as many lanes add.
        lane_row::<T, A, C, HALF_LANES>(indices, values, x)
    } else if indices.len() <= MIDDLE_ROW {
        lane_row::<T, A, C, MIDDLE_LANES>(indices, values, x)
    } else {
        lane_row::<T, A, C, LONG_LANES>(indices, values, x)
    }
}
