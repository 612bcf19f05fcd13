//! Sweeps over the rows of a triangle, level by level.

mod opencl;

pub(in crate::backend) use opencl::FILES;

use std::ops::Range;
use std::sync::Mutex;

use crate::backend::Host;
use crate::backend::run::{PlanKey, Run};
use crate::backend::sums::summing;
use crate::error::Result;
use crate::memory::{Memory, Plans};
use crate::number::{Accumulator, Real};
use crate::threads;

/// A triangle of a matrix, its rows by levels (`cl/precond/sweep.cl`).
#[derive(Debug)]
pub(crate) struct Triangle<T> {
    /// First place of each level in `list`, and the end of the last.
    pub(crate) bounds: Memory<u32>,
    pub(crate) list: Memory<u32>,
    pub(crate) offsets: Memory<u32>,
    pub(crate) indices: Memory<u32>,
    pub(crate) values: Memory<T>,
    pub(crate) scale: Memory<T>,
    pub(crate) plans: Plans<PlanKey>,
    /// Memory of launches whose rows wait for each other, if a sweep is one launch.
    pub(crate) waiting: Option<Mutex<Waiting>>,
}

/// Memory that the groups of a launch share whose rows wait for each other (`cl/precond/sweep_waiting.cl`).
#[derive(Debug)]
pub(crate) struct Waiting {
    /// Rows of a portion at most.
    most: usize,
    /// Values of a row that are asked for together.
    ahead: usize,
    groups: usize,
    /// First place of each portion in the list of rows, and the end of the last.
    starts: Memory<u32>,
    /// Values of two launches.
    told: Memory<i32>,
    tickets: Memory<i32>,
    turn: usize,
}

impl Waiting {
    /// Bytes that it holds.
    pub(crate) fn bytes(&self) -> u64 {
        4 * (self.starts.len() + self.told.len() + self.tickets.len()) as u64
    }
}

/// Sweeps.
pub(crate) trait SweepOps<T: Real>: Send + Sync {
    /// Makes the memory that a sweep needs to be one launch, if that is faster here than a launch for every wide level: over levels with these bounds,
    /// and rows with these offsets, both in the order of the levels.
    fn waiting(&self, run: Run<'_>, bounds: &[u32], offsets: &[u32]) -> Result<Option<Waiting>>;

    /// Runs `levels`, of which the widest has `widest` rows: forwards from `x`, or backwards in place with the share `keep` of what
    /// `z` holds.
    fn sweep(
        &self,
        run: Run<'_>,
        triangle: &Triangle<T>,
        levels: Range<usize>,
        widest: usize,
        keep: Option<T>,
        x: &Memory<T>,
        z: &mut Memory<T>,
    ) -> Result<()>;
}

/// Starts of portions of at most `most` rows of one level, and the end.
fn portions(bounds: &[u32], most: usize) -> Vec<u32> {
    let levels = bounds.windows(2).flat_map(|level| (level[0]..level[1]).step_by(most.max(1)));
    levels.chain(bounds.last().copied()).collect()
}

/// Rows of a level from which threads share them.
const WIDE: usize = 4096;

/// The numbers of a [`Triangle`] on the host.
struct HostTriangle<'a, T> {
    bounds: &'a [u32],
    list: &'a [u32],
    offsets: &'a [u32],
    indices: &'a [u32],
    values: &'a [T],
    scale: &'a [T],
}

/// `sweep` of `cl/precond/sweep.cl`.
fn sweep<T: Real, A: Accumulator<T>>(
    triangle: &HostTriangle<'_, T>,
    levels: Range<usize>,
    keep: Option<T>,
    x: &[T],
    z: &mut [T],
) {
    let HostTriangle { bounds, list, offsets, indices, values, scale } = *triangle;
    let row = |at: usize, z: &[T]| {
        let mut sum = A::default();
        for k in offsets[at] as usize..offsets[at + 1] as usize {
            sum = sum.add(A::product(values[k], z[indices[k] as usize]));
        }
        let (i, own) = (list[at] as usize, A::from_real(scale[at]));
        match keep {
            None => A::from_real(x[i]).sub(sum).mul(own).to_real(),
            Some(keep) => A::product(keep, z[i]).sub(own.mul(sum)).to_real(),
        }
    };
    for level in levels {
        let rows = bounds[level] as usize..bounds[level + 1] as usize;
        if rows.len() < WIDE {
            for at in rows {
                z[list[at] as usize] = row(at, z);
            }
            continue;
        }
        let before = &*z;
        let after = threads::numbers(rows.clone(), 1024, |_, at| row(at, before));
        for (at, value) in rows.zip(after) {
            z[list[at] as usize] = value;
        }
    }
}

impl<T: Real> SweepOps<T> for Host {
    fn waiting(&self, _: Run<'_>, _: &[u32], _: &[u32]) -> Result<Option<Waiting>> {
        Ok(None)
    }

    fn sweep(
        &self,
        run: Run<'_>,
        triangle: &Triangle<T>,
        levels: Range<usize>,
        _: usize,
        keep: Option<T>,
        x: &Memory<T>,
        z: &mut Memory<T>,
    ) -> Result<()> {
        let Triangle { bounds, list, offsets, indices, values, scale, .. } = triangle;
        let triangle = HostTriangle {
            bounds: bounds.host()?,
            list: list.host()?,
            offsets: offsets.host()?,
            indices: indices.host()?,
            values: values.host()?,
            scale: scale.host()?,
        };
        let (x, z) = (x.host()?, z.host_mut()?);
        summing!(run, T, sweep(&triangle, levels, keep, x, z));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::portions;

    #[test]
    fn portions_do_not_cross_levels() {
        assert_eq!(portions(&[0, 10, 20, 23], 4), [0, 4, 8, 10, 14, 18, 20, 23]);
        assert_eq!(portions(&[0, 1], 4), [0, 1]);
        assert_eq!(portions(&[0], 4), [0]);
    }
}
