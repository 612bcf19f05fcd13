//! Set-ups: deadlines, rows shared among threads, rows that are too long.

use std::ops::Range;
use std::time::Instant;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::number::Real;
use crate::sparse::{Csr, RowBlock};
use crate::threads;

/// Fails if the time for a set-up is over.
pub(crate) fn in_time(deadline: Option<Instant>, what: &str) -> Result<()> {
    match deadline {
        Some(deadline) if Instant::now() >= deadline => Err(Error::OutOfTime { what: what.into() }),
        _ => Ok(()),
    }
}

/// Columns of the largest entries of row `i` among those that `wanted` picks, and `i`: `most` in all; ascending. Of equal entries those
/// with the higher columns are taken.
pub(crate) fn largest_of_row<T: Real>(
    a: &Csr<T>,
    i: usize,
    most: usize,
    wanted: impl Fn(usize) -> bool,
) -> Vec<u32> {
    let (columns, values) = a.row(i);
    let picked = columns.iter().zip(values).filter(|(j, _)| wanted(**j as usize));
    let mut entries: Vec<(f64, u32)> = picked.map(|(j, value)| (value.to_f64().abs(), *j)).collect();
    entries.sort_unstable_by(|x, y| y.0.total_cmp(&x.0).then(y.1.cmp(&x.1)));
    entries.truncate(most - 1);
    let mut found: Vec<u32> = entries.into_iter().map(|(_, j)| j).chain([i as u32]).collect();
    found.sort_unstable();
    found
}

/// Highest power of a matrix whose places an inverse may have.
pub(crate) const MOST_POWER: usize = 4;

/// Fails for a power whose places an inverse cannot have.
pub(crate) fn check_power(power: usize) -> Result<()> {
    if (1..=MOST_POWER).contains(&power) {
        return Ok(());
    }
    let reason = format!("the matrix to the power of {power}; 1 to {MOST_POWER} are possible");
    Err(Error::Option { name: "preconditioner", reason })
}

/// The square matrix of `n` rows that threads make, each `together` rows one after another, in room that it keeps. Fails with the
/// first fault in the order of the rows, or if `copies` of it do not fit into the memory of the device.
pub(crate) fn made_by_threads<T: Real, W: Default + Send>(
    device: &Device,
    n: usize,
    (together, copies, deadline): (usize, usize, Option<Instant>),
    make: impl Fn(&mut W, Range<usize>) -> Result<RowBlock<T>> + Sync,
) -> Result<Csr<T>> {
    let of_piece = |blocks: Range<usize>| {
        let mut room = W::default();
        let mut of_block = |block: usize| {
            in_time(deadline, "an approximate inverse")?;
            make(&mut room, block * together..n.min((block + 1) * together))
        };
        blocks.map(&mut of_block).collect()
    };
    let made: Vec<Vec<Result<RowBlock<T>>>> = threads::runs(n.div_ceil(together), 1, of_piece);
    let blocks = made.into_iter().flatten().collect::<Result<Vec<_>>>()?;
    let held: usize = blocks.iter().map(|block| block.indices.len()).sum();
    device.check_memory(0, &[("approximate inverse", (copies * held * (4 + T::PRECISION.bytes())) as u64)])?;
    Csr::from_blocks(n, n, blocks)
}
