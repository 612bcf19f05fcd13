//! Rows as windows of consecutive columns, and the entries beside these as coordinates (dedecek-2013, 2.2.1).

use super::arrangement::Kind;
use super::layout::{Layout, padding};
use crate::number::{Precision, Real};
use crate::sparse::{Csr, Format};
use crate::threads;

/// Widest window that is tried.
const WIDEST: usize = 256;

/// Value of column `start_i + k` of row `i` at `k * rows + i`; behind those the entries beside the windows, by rows and then by columns. Pointers:
/// width, number of those entries, starts of the windows, offsets of those entries by rows.
pub(crate) fn layout<T: Real>(a: &Csr<T>, precision: Precision) -> Layout<T> {
    let (rows, width) = (a.rows(), width(a, precision));
    let mut layout = Layout::of(a, Format::Band, Kind::Banded);
    layout.values = vec![padding(); width * rows];
    layout.pointers = vec![width as u32, 0];
    let start = |_, i| window(a.row(i).0, width).0.min((a.cols() - width) as u32);
    layout.pointers.extend(threads::numbers(0..rows, 1024, start));
    layout.pointers.push(0);
    for i in 0..rows {
        let (columns, values) = a.row(i);
        let start = layout.pointers[2 + i];
        for (column, value) in columns.iter().zip(values) {
            match column.checked_sub(start).filter(|k| (*k as usize) < width) {
                Some(k) => layout.values[k as usize * rows + i] = *value,
                None => {
                    layout.indices.push(*column);
                    layout.values.push(*value);
                }
            }
        }
        layout.pointers.push(layout.indices.len() as u32);
    }
    layout.pointers[1] = layout.indices.len() as u32;
    layout
}

/// First column of the window of `width` columns that holds most entries of a row, and their number; of equal ones the first.
fn window(columns: &[u32], width: usize) -> (u32, usize) {
    let (mut best, mut end) = ((0, 0), 0);
    for (at, first) in columns.iter().enumerate() {
        while columns.get(end).is_some_and(|column| ((column - first) as usize) < width) {
            end += 1;
        }
        if end - at > best.1 {
            best = (*first, end - at);
        }
    }
    best
}

/// Bytes of the layout: what a product must read of it.
pub(crate) fn stored_bytes<T: Real>(a: &Csr<T>) -> u64 {
    best(a, T::PRECISION).0 as u64 + 4 * (2 * a.rows() + 3) as u64
}

fn width<T: Real>(a: &Csr<T>, precision: Precision) -> usize {
    best(a, precision).1
}

/// Bytes of values and columns, and the width, for windows that take the fewest with the entries beside them, of the widths that are tried.
fn best<T: Real>(a: &Csr<T>, precision: Precision) -> (usize, usize) {
    let span = |i: usize| match a.row(i).0 {
        [] => 0,
        columns => (columns[columns.len() - 1] - columns[0]) as usize + 1,
    };
    let widest = threads::maximum(a.rows(), 1024, span).min(WIDEST);
    let (value, beside) = (precision.bytes(), precision.bytes() + 4);
    let bytes = |width: usize| {
        let inside = threads::sum(a.rows(), 1024, |i| window(a.row(i).0, width).1);
        width * a.rows() * value + (a.nnz() - inside) * beside
    };
    // Every width up to 16, then steps of about an eighth.
    let widths = std::iter::successors(Some(1), |width| Some(width + (width / 8).max(1)));
    let tried = widths.take_while(|width| *width < widest).chain([widest]);
    tried.map(|width| (bytes(width), width)).min().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_hold_the_most_entries_and_the_rest_lies_beside() {
        let first = [(0, 1, 1.0), (0, 3, 2.0), (0, 4, 3.0), (1, 0, 4.0), (1, 5, 5.0)];
        let last = [(2, 2, 8.0), (2, 3, 9.0), (3, 4, 6.0), (3, 5, 7.0)];
        let entries = [&first[..], &last].concat();
        let a = Csr::from_triplets(4, 6, &entries).expect("valid");
        let found = layout(&a, Precision::Double);
        assert_eq!(found.pointers, [2, 2, 3, 0, 2, 4, 0, 1, 2, 2, 2]);
        assert_eq!(stored_bytes(&a), 8 * (8 + 2) + 4 * 2 + 4 * 11);
        assert_eq!(found.indices, [1, 5]);
        let places: Vec<Option<f64>> = found.values.iter().map(|v| Some(*v).filter(|v| !v.is_nan())).collect();
        let one = [Some(2.0), Some(4.0), Some(8.0), Some(6.0)];
        let two = [Some(3.0), None, Some(9.0), Some(7.0)];
        assert_eq!(places, [&one[..], &two, &[Some(1.0), Some(5.0)]].concat());
        let empty = Csr::<f64>::from_triplets(3, 2, &[]).expect("valid");
        assert_eq!(layout(&empty, Precision::Double).pointers, [0; 9]);
    }
}
