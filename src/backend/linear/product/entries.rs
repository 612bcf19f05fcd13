//! Entries of rows on the host: lanes of one row, and rows that lie side by side.

use super::HostMatrix;
use crate::number::{self, Accumulator, Real};
use crate::reduction::fold;

/// Sums of one row, one for each column of the vectors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowSum<A, const C: usize>(pub(crate) [A; C]);

impl<A: Default + Copy, const C: usize> Default for RowSum<A, C> {
    #[inline]
    fn default() -> Self {
        Self([A::default(); C])
    }
}

impl<A: Copy, const C: usize> RowSum<A, C> {
    /// Adds `value x` in each column.
    #[inline(always)]
    pub(crate) fn add<T: Real>(&mut self, value: T, x: &[T; C])
    where
        A: Accumulator<T>,
    {
        for c in 0..C {
            self.0[c] = self.0[c].add(A::product(value, x[c]));
        }
    }

    /// [`RowSum::add`], unless the value is padding. Chosen, not branched to.
    #[inline(always)]
    pub(crate) fn add_unless_padding<T: Real>(&mut self, value: T, x: &[T; C])
    where
        A: Accumulator<T>,
    {
        for c in 0..C {
            let next = self.0[c].add(A::product(value, x[c]));
            self.0[c] = if value.is_nan() { self.0[c] } else { next };
        }
    }

    /// Sums of all lanes.
    #[inline(always)]
    pub(crate) fn folded<T: Real>(lanes: &mut [Self]) -> Self
    where
        A: Accumulator<T>,
    {
        fold(lanes, |a, b| Self(number::array(|c| a.0[c].add(b.0[c]))))
    }
}

/// Most lanes that stay in registers, and entries taken together of what whole rounds of all lanes leave behind.
const FEW_LANES: usize = 32;
const PIECE: usize = 8;

/// A row whose entry `k` is added in lane `k % LANES`.
#[inline]
pub(crate) fn lane_row<T: Real, A: Accumulator<T>, const C: usize, const LANES: usize>(
    indices: &[u32],
    values: &[T],
    x: &[[T; C]],
) -> RowSum<A, C> {
    let mut lanes = [RowSum::<A, C>::default(); LANES];
    let (indices, index_rest) = indices.as_chunks::<LANES>();
    let (values, value_rest) = values.as_chunks::<LANES>();
    // By numbers: a `zip` begins with a call, which short rows feel.
    let values = &values[..indices.len()];
    for round in 0..indices.len() {
        let gathered = gather(&indices[round], x);
        for l in 0..LANES {
            lanes[l].add(values[round][l], &gathered[l]);
        }
    }
    if LANES <= PIECE || LANES > FEW_LANES {
        let value_rest = &value_rest[..index_rest.len()];
        for l in 0..index_rest.len().min(LANES) {
            lanes[l].add(value_rest[l], &x[index_rest[l] as usize]);
        }
        return RowSum::folded::<T>(&mut lanes);
    }
    // Written out, so that lanes stay in registers: what was stored one by one waits before it is read as a vector. With up to
    // PIECE lanes that gains nothing.
    let count = index_rest.len();
    macro_rules! piece {
        ($base:literal) => {
            if $base < LANES && $base < count {
                let (indices, values) = (&index_rest[$base..], &value_rest[$base..]);
                if indices.len() >= PIECE {
                    for l in 0..PIECE {
                        lanes[$base + l].add(values[l], &x[indices[l] as usize]);
                    }
                } else {
                    for l in 0..PIECE {
                        if l < indices.len() {
                            lanes[$base + l].add(values[l], &x[indices[l] as usize]);
                        }
                    }
                }
            }
        };
    }
    piece!(0);
    piece!(8);
    piece!(16);
    piece!(24);
    RowSum::folded::<T>(&mut lanes)
}

/// The elements of `x` that `indices` name. A loop: `map` is a call.
#[inline(always)]
fn gather<T: Real, const C: usize, const N: usize>(indices: &[u32; N], x: &[[T; C]]) -> [[T; C]; N] {
    let mut gathered = [[T::default(); C]; N];
    for l in 0..N {
        gathered[l] = x[indices[l] as usize];
    }
    gathered
}

/// Rows added at once, so that one's additions need not wait for each other.
const TOGETHER: usize = 4;
/// Mean length of rows from which on that pays.
pub(crate) const LONG: usize = 32;

/// Compressed rows with one lane each, which start at `offsets`; the last one is the end.
pub(crate) fn packed_rows<T: Real, A: Accumulator<T>, const C: usize>(
    a: &HostMatrix<'_, T>,
    offsets: &[usize],
    x: &[[T; C]],
    sums: &mut [RowSum<A, C>],
) {
    let long = offsets[sums.len()] - offsets[0] >= LONG * sums.len();
    let row = |i: usize| (&a.indices[offsets[i]..offsets[i + 1]], &a.values[offsets[i]..offsets[i + 1]]);
    let (together, rest) = if long { sums.as_chunks_mut::<TOGETHER>() } else { (&mut [][..], sums) };
    let first_of_rest = TOGETHER * together.len();
    for (k, sums) in together.iter_mut().enumerate() {
        let rows: [(&[u32], &[T]); TOGETHER] = number::array(|l| row(TOGETHER * k + l));
        let common = rows.iter().map(|row| row.0.len()).min().unwrap_or(0);
        let short: [(&[u32], &[T]); TOGETHER] = number::array(|l| (&rows[l].0[..common], &rows[l].1[..common]));
        // In registers while they are added to.
        let mut own = *sums;
        for at in 0..common {
            for l in 0..TOGETHER {
                own[l].add(short[l].1[at], &x[short[l].0[at] as usize]);
            }
        }
        for l in 0..TOGETHER {
            sums[l] = add_row(own[l], &rows[l].0[common..], &rows[l].1[common..], x);
        }
    }
    for (k, sum) in rest.iter_mut().enumerate() {
        let (indices, values) = row(first_of_rest + k);
        *sum = add_row(*sum, indices, values, x);
    }
}

/// `sum` with the entries of a row added one after another.
#[inline(always)]
pub(crate) fn add_row<T: Real, A: Accumulator<T>, const C: usize>(
    mut sum: RowSum<A, C>,
    indices: &[u32],
    values: &[T],
    x: &[[T; C]],
) -> RowSum<A, C> {
    // Four at a time: CG on rows of five fp64 entries takes 0.85 of the time of one at a time.
    let values = &values[..indices.len()];
    let ((fours, rest), (four_values, rest_values)) = (indices.as_chunks::<4>(), values.as_chunks::<4>());
    for k in 0..fours.len() {
        let (indices, values) = (&fours[k], &four_values[k]);
        for l in 0..4 {
            sum.add(values[l], &x[indices[l] as usize]);
        }
    }
    for k in 0..rest.len() {
        sum.add(rest_values[k], &x[rest[k] as usize]);
    }
    sum
}

/// Rows whose loads are done together.
const SIDE: usize = 16;

/// Adds `value x` for rows that lie side by side; padding among the values is left out.
#[inline(always)]
fn add_side<T: Real, A: Accumulator<T>, const C: usize>(
    sums: &mut [RowSum<A, C>; SIDE],
    indices: &[u32; SIDE],
    values: &[T; SIDE],
    x: &[[T; C]],
) {
    let gathered = gather(indices, x);
    if values.iter().fold(false, |any, value| any | value.is_nan()) {
        for l in 0..SIDE {
            sums[l].add_unless_padding(values[l], &gathered[l]);
        }
    } else {
        for l in 0..SIDE {
            sums[l].add(values[l], &gathered[l]);
        }
    }
}

/// Adds `length` places of rows that lie side by side: place `k` of row `l` at `first + k * step + l`.
pub(crate) fn add_places<T: Real, A: Accumulator<T>, const C: usize>(
    a: &HostMatrix<'_, T>,
    first: usize,
    step: usize,
    length: usize,
    x: &[[T; C]],
    sums: &mut [RowSum<A, C>],
) {
    let rows = sums.len();
    let whole = rows - rows % SIDE;
    let (sums, sum_rest) = sums.as_chunks_mut::<SIDE>();
    for (s, sums) in sums.iter_mut().enumerate() {
        // In registers while they are added to.
        let mut own = *sums;
        for k in 0..length {
            let at = first + k * step + s * SIDE;
            if let (Some(indices), Some(values)) = (a.indices[at..].first_chunk(), a.values[at..].first_chunk()) {
                add_side(&mut own, indices, values, x);
            }
        }
        *sums = own;
    }
    for (l, sum) in sum_rest.iter_mut().enumerate() {
        for k in 0..length {
            let at = first + k * step + whole + l;
            sum.add_unless_padding(a.values[at], &x[a.indices[at] as usize]);
        }
    }
}

/// Rows from `first` on of a matrix that stores every place, column by column; lanes share a row.
pub(crate) fn add_places_of_lanes<T: Real, A: Accumulator<T>, const C: usize>(
    a: &HostMatrix<'_, T>,
    first: usize,
    x: &[[T; C]],
    sums: &mut [RowSum<A, C>],
) {
    let (rows, lanes) = (sums.len(), a.arrangement.lanes);
    // Lane l of row r at l * rows + r, so that neighbours are added together.
    let mut totals = vec![RowSum::<A, C>::default(); lanes * rows];
    for (k, x) in x.iter().enumerate() {
        let values = &a.values[k * a.stride + first..][..rows];
        for (sum, value) in totals[k % lanes * rows..][..rows].iter_mut().zip(values) {
            sum.add_unless_padding(*value, x);
        }
    }
    for (r, sum) in sums.iter_mut().enumerate() {
        let mut of_row = [RowSum::<A, C>::default(); 32];
        for l in 0..lanes {
            of_row[l] = totals[l * rows + r];
        }
        *sum = RowSum::folded::<T>(&mut of_row[..lanes]);
    }
}
