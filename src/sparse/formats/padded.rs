//! Formats that pad rows: to the longest of all, of a slice, or of most.

use super::arrangement::Kind;
use super::format::SLICE;
use super::layout::{Layout, padding, pieces};
use super::profile::Profile;
use crate::error::{Error, Result};
use crate::number::Real;
use crate::reduction::Chunks;
use crate::sparse::{Csr, Format};
use crate::threads::{self, ChunksMut};

/// Entry `k` of row `i` at `k * rows + i`, for the first `width` entries of each row.
fn columns_of_entries<T: Real>(a: &Csr<T>, width: usize, layout: &mut Layout<T>) {
    let rows = a.rows();
    layout.indices = vec![0; width * rows];
    layout.values = vec![padding(); width * rows];
    if rows == 0 {
        return;
    }
    let columns = (ChunksMut(&mut layout.indices, rows), ChunksMut(&mut layout.values, rows));
    threads::each(columns, 1, |k, (indices, values)| {
        for i in 0..rows {
            let (from, to) = (a.offsets()[i], a.offsets()[i + 1]);
            if from + k < to {
                indices[i] = a.indices()[from + k];
                values[i] = a.values()[from + k];
            }
        }
    });
}

pub(crate) fn ellpack<T: Real>(a: &Csr<T>) -> Layout<T> {
    let mut layout = Layout::of(a, Format::Ellpack, Kind::Ellpack);
    let width = a.longest_row();
    columns_of_entries(a, width, &mut layout);
    layout.pointers = vec![width as u32];
    layout
}

pub(crate) fn ellpack_r<T: Real>(a: &Csr<T>) -> Layout<T> {
    let mut layout = Layout::of(a, Format::EllpackR, Kind::EllpackR);
    columns_of_entries(a, a.longest_row(), &mut layout);
    layout.pointers = a.offsets().windows(2).map(|w| (w[1] - w[0]) as u32).collect();
    layout
}

/// The first `width` entries of each row as ELLPACK, the others as coordinates behind them.
pub(crate) fn hybrid<T: Real>(a: &Csr<T>, width: usize) -> Layout<T> {
    let mut layout = Layout::of(a, Format::Hyb, Kind::Hybrid);
    columns_of_entries(a, width, &mut layout);
    layout.pointers = vec![width as u32, 0];
    for i in 0..a.rows() {
        let (columns, values) = a.row(i);
        for k in width..columns.len() {
            layout.pointers.push(i as u32);
            layout.indices.push(columns[k]);
            layout.values.push(values[k]);
        }
    }
    layout.pointers[1] = (layout.pointers.len() - 2) as u32;
    layout
}

/// The window of rows that SELL sorts by length: `sigma`, or for 0 none if slices pad little anyway.
pub(crate) fn window(profile: &Profile, sigma: usize) -> Result<usize> {
    let most = Chunks::of(profile.rows).chunk;
    match sigma {
        0 if profile.sell_places as f64 <= 1.05 * profile.nnz as f64 || most <= SLICE => Ok(1),
        0 => Ok(most),
        1 => Ok(1),
        sigma if sigma.is_power_of_two() && sigma <= most => Ok(sigma),
        sigma => Err(Error::Option {
            name: "sigma",
            reason: format!("{sigma} is not a power of two up to {most}, the rows of a reduction chunk"),
        }),
    }
}

/// Slices of [`SLICE`] rows. With a window above 1 the rows' order follows the slice starts, and then its inverse,
/// through which the host finds a row.
pub(crate) fn sell<T: Real>(a: &Csr<T>, window: usize) -> Result<Layout<T>> {
    let rows = a.rows();
    let length = |i: usize| a.offsets()[i + 1] - a.offsets()[i];
    let mut order: Vec<u32> = (0..rows as u32).collect();
    if window > 1 {
        // Stable: rows of equal length keep their order.
        let windows = ChunksMut(&mut order, window);
        threads::each(windows, 1, |_, rows| rows.sort_by_key(|i| std::cmp::Reverse(length(*i as usize))));
    }
    let widths: Vec<usize> =
        order.chunks(SLICE).map(|slice| slice.iter().map(|i| length(*i as usize)).max().unwrap_or(0)).collect();
    let kind = if window > 1 { Kind::Sorted } else { Kind::Sliced };
    let mut layout = Layout::of(a, Format::Sell { sigma: window }, kind);
    let mut starts = vec![0u32];
    let mut end = 0usize;
    for width in &widths {
        end += width;
        starts.push(u32::try_from(end).map_err(|_| Error::Structure {
            what: format!("slices of {SLICE} rows hold more than 2^37 places; use csr"),
            row: None,
        })?);
    }
    layout.indices = vec![0; end * SLICE];
    layout.values = vec![padding(); end * SLICE];
    let mut indices = pieces(&mut layout.indices, widths.iter().map(|w| w * SLICE));
    let mut values = pieces(&mut layout.values, widths.iter().map(|w| w * SLICE));
    let slices = (threads::Chunks(&order, SLICE), &mut indices[..], &mut values[..]);
    threads::each(slices, 16, |_, (slice, indices, values)| {
        for (place, i) in slice.iter().enumerate() {
            let (columns, row) = a.row(*i as usize);
            for k in 0..columns.len() {
                indices[k * SLICE + place] = columns[k];
                values[k * SLICE + place] = row[k];
            }
        }
    });
    layout.pointers = starts;
    if window > 1 {
        let mut place = vec![0u32; rows];
        for (at, i) in order.iter().enumerate() {
            place[*i as usize] = at as u32;
        }
        layout.pointers.extend(order);
        layout.pointers.extend(place);
    }
    Ok(layout)
}
