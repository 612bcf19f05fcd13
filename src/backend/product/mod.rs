//! Stored matrices, and products with them.

mod entries;
mod host;
mod opencl;
mod rows;
mod structured;

pub(super) use host::{chunk_product, multiply};
pub(super) use opencl::FILES;

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use super::{PlanKey, Run};
use crate::error::{Result, same_length};
use crate::memory::{Memory, Place, Plans};
use crate::number::{Real, Sum};
use crate::sparse::{Arrangement, Entries, Kind, Layout, Shape, TABLE};

/// Most vectors multiplied at once.
pub(crate) const MOST_COLUMNS: usize = 4;

/// A matrix in the memory of one back end, in any format.
#[derive(Debug)]
pub(crate) struct Stored<T> {
    pub(crate) arrangement: Arrangement,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    /// Entries with their padding.
    pub(crate) places: usize,
    pub(crate) stride: usize,
    pub(crate) longer: [usize; 2],
    pub(crate) longest: usize,
    pub(crate) pointers: Memory<u32>,
    pub(crate) indices: Memory<u32>,
    pub(crate) values: Memory<T>,
    pub(crate) plans: Plans<PlanKey>,
}

impl<T: Real> Stored<T> {
    pub(crate) fn new(place: &Place, layout: Layout<T>) -> Result<Self> {
        Ok(Self {
            arrangement: layout.arrangement,
            rows: layout.rows,
            cols: layout.cols,
            places: layout.places,
            stride: layout.stride,
            longer: layout.longer,
            longest: layout.longest,
            pointers: place.take(layout.pointers)?,
            indices: place.take(layout.indices)?,
            values: place.take(layout.values)?,
            plans: Plans::default(),
        })
    }

    /// Stand-in for a `rows × cols` operator that computes its products itself: fused operations then find them in their result.
    pub(crate) fn external(place: &Place, rows: usize, cols: usize) -> Result<Self> {
        Ok(Self {
            arrangement: Arrangement::of(Kind::External),
            rows,
            cols,
            places: 1,
            stride: rows,
            longer: [0; 2],
            longest: 0,
            pointers: place.filled(1, 0)?,
            indices: place.filled(1, 0)?,
            values: place.filled(1, T::default())?,
            plans: Plans::default(),
        })
    }

    /// A copy on the host, where nothing is packed. Waits.
    pub(super) fn on_host(&self) -> Result<Self> {
        let (pointers, mut indices, mut values) =
            (self.pointers.on_host()?, self.indices.on_host()?, self.values.on_host()?);
        let Self { arrangement, rows, places, stride, .. } = *self;
        if arrangement.entries != Entries::Plain {
            let shape = Shape { arrangement, rows, stride, places, pointers: pointers.host()? };
            let unpacked = shape.unpack(indices.host()?, values.host()?);
            (indices, values) = (Place::Host.take(unpacked.0)?, Place::Host.take(unpacked.1)?);
        }
        let arrangement = Arrangement { entries: Entries::Plain, ..arrangement };
        Ok(Self { arrangement, pointers, indices, values, plans: Plans::default(), ..*self })
    }

    /// Values that belong to the entries: all, or a table.
    pub(super) fn value_count(&self) -> usize {
        match self.arrangement.entries {
            Entries::Coded => TABLE,
            entries if entries.is_single() => self.places.div_ceil(2),
            _ => self.places,
        }
    }

    /// Arrays of the matrix, if they are on the host.
    pub(super) fn host(&self) -> Result<HostMatrix<'_, T>> {
        let Self { arrangement, rows, cols, stride, .. } = *self;
        let (pointers, indices, values) = (self.pointers.host()?, self.indices.host()?, self.values.host()?);
        Ok(HostMatrix { arrangement, rows, cols, stride, pointers, indices, values })
    }
}

/// A [`Stored`] with any number of owners: matrices and the solvers that hold them. Its values may be replaced between launches.
#[derive(Clone, Debug)]
pub(crate) struct SharedMatrix<T>(Arc<RwLock<Stored<T>>>);

impl<T: Real> SharedMatrix<T> {
    pub(crate) fn new(stored: Stored<T>) -> Self {
        Self(Arc::new(RwLock::new(stored)))
    }

    /// Held for one call, so that values may be replaced between any two. A writer that panicked left whole arrays.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Stored<T>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells if both are the same matrix.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Storage of the entries.
    pub(crate) fn entries(&self) -> Entries {
        self.read().arrangement.entries
    }

    /// Gets the values of `layout` ready to stand in place of those of this matrix, whose entries stand in the same places. Allocates
    /// only if they do not fit into the table that holds the old ones, or into 32 bits.
    pub(crate) fn prepare_values(&self, place: &Place, layout: Layout<T>) -> Result<NewValues<T>> {
        let stored = self.read();
        same_length("stored values of a matrix", stored.places, layout.places)?;
        Ok(match (stored.arrangement.entries, layout.arrangement.entries) {
            (Entries::Coded, Entries::Coded) => NewValues::Table(layout.indices, layout.values),
            (old, new) if old != new && old.packs_values() => NewValues::Plain {
                indices: place.take(layout.indices)?,
                values: place.take(layout.values)?,
                arrangement: layout.arrangement,
            },
            _ => NewValues::Same(layout.values),
        })
    }

    /// Puts them there.
    pub(crate) fn replace_values(&self, new: NewValues<T>) -> Result<()> {
        let mut stored = self.0.write().unwrap_or_else(PoisonError::into_inner);
        match new {
            NewValues::Same(new) => stored.values.write(&new)?,
            NewValues::Table(codes, table) => {
                stored.indices.write(&codes)?;
                stored.values.write(&table)?;
            }
            NewValues::Plain { indices, values, arrangement } => {
                (stored.indices, stored.values, stored.arrangement) = (indices, values, arrangement);
            }
        }
        Ok(())
    }
}

/// Values on their way into a matrix.
#[derive(Debug)]
pub(crate) enum NewValues<T> {
    /// Values for the same columns.
    Same(Vec<T>),
    /// Columns with codes, and the table.
    Table(Vec<u32>, Vec<T>),
    /// Arrays in place of those with packed values.
    Plain { indices: Memory<u32>, values: Memory<T>, arrangement: Arrangement },
}

/// A [`Stored`] on the host.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostMatrix<'a, T> {
    pub(super) arrangement: Arrangement,
    pub(super) rows: usize,
    pub(super) cols: usize,
    pub(super) stride: usize,
    pub(super) pointers: &'a [u32],
    pub(super) indices: &'a [u32],
    pub(super) values: &'a [T],
}

/// Products for `columns` interleaved vectors.
pub(crate) trait ProductOps<T: Real>: Send + Sync {
    /// `y = A x`.
    fn multiply(&self, run: Run<'_>, a: &Stored<T>, columns: usize, x: &Memory<T>, y: &mut Memory<T>)
    -> Result<()>;
    /// `r = b - A x` with the chunk sums of `r.r` in `sums[place + c * chunks + g]`.
    fn residual(
        &self,
        run: Run<'_>,
        a: &Stored<T>,
        columns: usize,
        x: &Memory<T>,
        b: &Memory<T>,
        r: &mut Memory<T>,
        sums: &mut Memory<Sum>,
        place: usize,
    ) -> Result<()>;
}
operations!(ProductOps, checked);
