//! Sweeps over the rows of incomplete factors.

mod opencl;

pub(in crate::backend) use opencl::FILES;

use crate::backend::Host;
use crate::backend::run::Run;
use crate::backend::sums::summing;
use crate::error::Result;
use crate::memory::Memory;
use crate::number::{Accumulator, Real};
use crate::threads;

/// The places of incomplete factors, and the matrix (`cl/precond/factor_sweep.cl`).
#[derive(Debug)]
pub(crate) struct Places<T> {
    pub(crate) offsets: Memory<u32>,
    pub(crate) indices: Memory<u32>,
    /// Entry on the diagonal of each row.
    pub(crate) diagonal: Memory<u32>,
    /// Offsets of columns, rows of their entries, and their places; `None` for Cholesky, where rows stand for columns.
    pub(crate) columns: Option<[Memory<u32>; 3]>,
    /// Values of the matrix.
    pub(crate) a: Memory<T>,
}

/// Sweeps over factors.
pub(crate) trait FactorSweepOps<T: Real>: Send + Sync {
    /// The rows of one class of the factors in `after`, of those of earlier classes there and the rest in `before`.
    fn factor_sweep(
        &self,
        run: Run<'_>,
        places: &Places<T>,
        class: usize,
        before: &Memory<T>,
        after: &mut Memory<T>,
    ) -> Result<()>;
}

/// Classes of rows, which are taken one after another: row `i` is of class `i % CLASSES`. A sweep then tells a row of the rows before it
/// that are as near. It is part of every result: three sweeps of aft01 need 127, 107, 103 iterations of CG with 1, 4 and 16 classes, exact
/// factors 101.
pub(crate) const CLASSES: usize = 16;

/// Rows of class `class` of `rows` in all.
fn members(rows: usize, class: usize) -> usize {
    rows.saturating_sub(class).div_ceil(CLASSES)
}

/// The numbers of [`Places`] on the host.
struct HostPlaces<'a, T> {
    offsets: &'a [u32],
    indices: &'a [u32],
    diagonal: &'a [u32],
    columns: Option<[&'a [u32]; 3]>,
    a: &'a [T],
}

/// Rows of a thread.
const BATCH: usize = 64;

/// `factor_sweep` of `cl/precond/factor_sweep.cl`.
fn factor_sweep<T: Real, A: Accumulator<T>>(
    places: &HostPlaces<'_, T>,
    class: usize,
    before: &[T],
    after: &mut [T],
) {
    let HostPlaces { offsets, indices, diagonal, columns, a } = *places;
    let [starts, members_of] = columns.map_or([offsets, indices], |[starts, rows, _]| [starts, rows]);
    let held = &*after;
    let row = |member: usize| {
        let i = member * CLASSES + class;
        let begin = offsets[i] as usize;
        let behind = if columns.is_none() { diagonal[i] as usize + 1 } else { offsets[i + 1] as usize };
        let of = |row: usize, place: usize| if row % CLASSES < class { held[place] } else { before[place] };
        let mut made: Vec<T> = Vec::with_capacity(behind - begin);
        for e in begin..behind {
            let k = indices[e] as usize;
            let end = i.min(k) as u32;
            let (mut mine, mut other) = (begin, starts[k] as usize);
            let mut sum = A::from_real(a[e]);
            while indices[mine] < end && members_of[other] < end {
                let (j, l) = (indices[mine], members_of[other]);
                if j == l {
                    let place = columns.map_or(other, |[_, _, places]| places[other] as usize);
                    let row = if columns.is_none() { k } else { j as usize };
                    // The diagonal entry of Cholesky's factor needs its own row.
                    let found = if row == i { made[place - begin] } else { of(row, place) };
                    sum = sum.sub(A::product(made[mine - begin], found));
                }
                mine += usize::from(j <= l);
                other += usize::from(l <= j);
            }
            if k < i {
                sum = sum.div(A::from_real(of(k, diagonal[k] as usize)));
            } else if columns.is_none() {
                sum = sum.sqrt();
            }
            made.push(sum.to_real());
        }
        (begin, made)
    };
    let count = members(diagonal.len(), class);
    for (begin, made) in threads::map(0..count, BATCH, |_, k| row(k)) {
        after[begin..begin + made.len()].copy_from_slice(&made);
    }
}

impl<T: Real> FactorSweepOps<T> for Host {
    fn factor_sweep(
        &self,
        run: Run<'_>,
        places: &Places<T>,
        class: usize,
        before: &Memory<T>,
        after: &mut Memory<T>,
    ) -> Result<()> {
        let columns = match &places.columns {
            None => None,
            Some([starts, members, at]) => Some([starts.host()?, members.host()?, at.host()?]),
        };
        let places = HostPlaces {
            offsets: places.offsets.host()?,
            indices: places.indices.host()?,
            diagonal: places.diagonal.host()?,
            columns,
            a: places.a.host()?,
        };
        let (before, after) = (before.host()?, after.host_mut()?);
        summing!(run, T, factor_sweep(&places, class, before, after));
        Ok(())
    }
}
