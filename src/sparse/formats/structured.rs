//! Formats that store regions rather than entries: diagonals, dense blocks, the whole.

use super::arrangement::Kind;
use super::layout::{Layout, padding, pieces};
use super::profile::{Profile, blocks_of_row};
use crate::error::{Error, Result};
use crate::number::Real;
use crate::sparse::{Csr, Format};
use crate::threads::{self, ChunksMut};

/// Value of row `i` on diagonal `d` at `d * rows + i`; diagonals ascend, so that columns do.
pub(crate) fn diagonals<T: Real>(a: &Csr<T>, profile: &Profile) -> Layout<T> {
    let rows = a.rows();
    let mut layout = Layout::of(a, Format::Dia, Kind::Diagonals);
    layout.values = vec![padding(); profile.diagonals.len() * rows];
    if rows > 0 {
        let diagonals = (ChunksMut(&mut layout.values, rows), &profile.diagonals[..]);
        threads::each(diagonals, 1, |_, (values, offset)| {
            for (i, value) in values.iter_mut().enumerate() {
                let (columns, row) = a.row(i);
                let column = u32::try_from(i as i64 + offset).ok();
                if let Some(Ok(k)) = column.map(|c| columns.binary_search(&c)) {
                    *value = row[k];
                }
            }
        });
    }
    // A handful of diagonals is a loop that compilers unroll.
    layout.arrangement.block = if profile.diagonals.len() <= 12 { profile.diagonals.len().max(1) } else { 1 };
    layout.pointers = vec![profile.diagonals.len() as u32, a.cols() as u32];
    layout.pointers.extend(profile.diagonals.iter().map(|offset| *offset as i32 as u32));
    layout
}

/// Dense `block × block` blocks, row by row.
pub(crate) fn blocks<T: Real>(a: &Csr<T>, block: usize) -> Result<Layout<T>> {
    if !(2..=8).contains(&block) {
        return Err(Error::Option { name: "block", reason: format!("{block} is not a block size from 2 to 8") });
    }
    let block_rows = a.rows().div_ceil(block);
    let found = threads::map(0..block_rows, 256, |_, r| blocks_of_row(a, block, r));
    let mut layout = Layout::of(a, Format::Bsr { block }, Kind::Blocks);
    layout.arrangement.block = block;
    layout.stride = a.cols();
    layout.pointers.push(0);
    let mut end = 0;
    for row in &found {
        end += row.len();
        layout.pointers.push(end as u32);
    }
    layout.values = vec![padding(); end * block * block];
    let mut values = pieces(&mut layout.values, found.iter().map(|row| row.len() * block * block));
    threads::each((&mut values[..], &found[..]), 256, |r, (values, row_blocks)| {
        for i in r * block..a.rows().min((r + 1) * block) {
            let (columns, row) = a.row(i);
            for (column, value) in columns.iter().zip(row) {
                let (left, within) = (*column / block as u32, *column as usize % block);
                let b = row_blocks.partition_point(|c| *c < left);
                values[(b * block + i - r * block) * block + within] = *value;
            }
        }
    });
    layout.indices = found.concat();
    Ok(layout)
}

/// Every place, column by column.
pub(crate) fn dense<T: Real>(a: &Csr<T>, lanes: usize) -> Layout<T> {
    let rows = a.rows();
    let mut layout = Layout::of(a, Format::Dense, Kind::Dense);
    layout.arrangement.lanes = lanes;
    layout.values = vec![padding(); rows * a.cols()];
    if rows > 0 {
        let columns = a.transpose();
        threads::each(ChunksMut(&mut layout.values, rows), 1, |j, values| {
            let (at, entries) = columns.row(j);
            for (i, value) in at.iter().zip(entries) {
                values[*i as usize] = *value;
            }
        });
    }
    layout.pointers = vec![a.cols() as u32];
    layout
}
