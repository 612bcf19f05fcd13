//! Stored matrices, and products with them.

mod entries;
mod host;
mod opencl;
mod rows;
mod structured;

pub(in crate::backend) use host::{Spots, chunk_product, sampled_rows};
pub(in crate::backend) use opencl::FILES;

use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, TryLockError};

use crate::backend::run::{PlanKey, Run};
use crate::error::{Error, Result, same_length};
use crate::memory::{Memory, Place, Plans};
use crate::number::Real;
use crate::sparse::{Arrangement, Entries, Kind, Layout, Sample, Shape, TABLE};
use crate::state::blend::{FROM, MINUS, PLUS, TIMES};

/// Least entries of a row, in the mean, of a matrix with long rows.
pub(in crate::backend) const LONG_ROW: usize = 64;

/// Most vectors multiplied at once.
pub(crate) const MOST_COLUMNS: usize = 4;

/// Fails unless so many interleaved vectors can be multiplied at once.
pub(crate) fn check_columns(columns: usize) -> Result<()> {
    if (1..=MOST_COLUMNS).contains(&columns) {
        return Ok(());
    }
    let reason = format!("{columns} vectors at once; 1 to {MOST_COLUMNS} are possible");
    Err(Error::Option { name: "columns", reason })
}

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
    /// Shared by a matrix and its transposed, if that is read from them too.
    pub(crate) indices: Arc<Memory<u32>>,
    pub(crate) values: Arc<Memory<T>>,
    pub(crate) plans: Plans<PlanKey>,
    /// Some of its rows on the host, until values are replaced.
    sample: Option<Box<Sample<T>>>,
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
            indices: Arc::new(place.take(layout.indices)?),
            values: Arc::new(place.take(layout.values)?),
            plans: Plans::default(),
            sample: layout.sample.map(Box::new),
        })
    }

    /// The transposed of a matrix by diagonals, in the same values.
    pub(crate) fn shifted(place: &Place, forward: &Self, pointers: Vec<u32>) -> Result<Self> {
        Ok(Self {
            arrangement: Arrangement { kind: Kind::Shifted, ..forward.arrangement },
            rows: forward.cols,
            cols: forward.rows,
            pointers: place.take(pointers)?,
            indices: forward.indices.clone(),
            values: forward.values.clone(),
            plans: Plans::default(),
            sample: None,
            ..*forward
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
            indices: Arc::new(place.filled(1, 0)?),
            values: Arc::new(place.filled(1, T::default())?),
            plans: Plans::default(),
            sample: None,
        })
    }

    /// A copy on the host, where nothing is packed. Waits.
    pub(crate) fn on_host(&self) -> Result<Self> {
        let (pointers, mut indices, mut values) =
            (self.pointers.on_host()?, self.indices.on_host()?, self.values.on_host()?);
        let Self { arrangement, rows, places, stride, .. } = *self;
        if arrangement.entries != Entries::Plain {
            let shape = Shape { arrangement, rows, stride, places, pointers: pointers.host()? };
            let unpacked = shape.unpack(indices.host()?, values.host()?);
            (indices, values) = (Place::Host.take(unpacked.0)?, Place::Host.take(unpacked.1)?);
        }
        let arrangement = Arrangement { entries: Entries::Plain, ..arrangement };
        let (indices, values) = (Arc::new(indices), Arc::new(values));
        Ok(Self { arrangement, pointers, indices, values, plans: Plans::default(), sample: None, ..*self })
    }

    fn take_values(&mut self, new: NewValues<T>) -> Result<()> {
        fn own<E>(memory: &mut Arc<Memory<E>>) -> Result<&mut Memory<E>> {
            let reason = "somebody else holds them".into();
            Arc::get_mut(memory).ok_or(Error::Conflict { name: "values", reason })
        }
        self.sample = None;
        match new {
            NewValues::Same(new) => own(&mut self.values)?.write(&new)?,
            NewValues::Table(codes, table) => {
                own(&mut self.indices)?.write(&codes)?;
                own(&mut self.values)?.write(&table)?;
            }
            NewValues::Plain { indices, values, arrangement } => {
                (self.indices, self.values) = (Arc::new(indices), Arc::new(values));
                self.arrangement = arrangement;
            }
        }
        Ok(())
    }

    /// Values that belong to the entries: all, or a table.
    pub(crate) fn value_count(&self) -> usize {
        match self.arrangement.entries {
            Entries::Coded => TABLE,
            entries if entries.is_stored_f32() => self.places.div_ceil(2),
            _ => self.places,
        }
    }

    /// Rows that the host holds, and what launches read of them: to compute these again.
    pub(in crate::backend) fn sample(&self) -> Option<Sampled<'_, T>> {
        let of = self.sample.as_deref()?;
        let (rows, cols) = (of.rows.len(), self.cols);
        let Sample { arrangement, ref pointers, ref indices, ref values, .. } = *of;
        Some(Sampled {
            of,
            matrix: HostMatrix { arrangement, rows, cols, stride: rows, pointers, indices, values },
        })
    }

    /// Arrays of the matrix, if they are on the host.
    pub(crate) fn host(&self) -> Result<HostMatrix<'_, T>> {
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

    /// Puts them there, and into the transposed of this matrix that shares its values, if there is one.
    pub(crate) fn replace_values(&self, new: NewValues<T>, shifted: Option<&Self>) -> Result<()> {
        // Launches lock matrices in the order that they name them: whoever waits here for the second holds no first.
        let (mut stored, mut shifted) = loop {
            let stored = self.0.write().unwrap_or_else(PoisonError::into_inner);
            match shifted.map(|other| other.0.try_write()) {
                None => break (stored, None),
                Some(Ok(other)) => break (stored, Some(other)),
                Some(Err(TryLockError::Poisoned(other))) => break (stored, Some(other.into_inner())),
                Some(Err(TryLockError::WouldBlock)) => drop(stored),
            }
            std::thread::yield_now();
        };
        // Both are locked: nobody sees that the transposed has no values meanwhile.
        if let Some(other) = &mut shifted {
            (other.indices, other.values) =
                (Arc::new(Memory::Host(Vec::new())), Arc::new(Memory::Host(Vec::new())));
        }
        let written = stored.take_values(new);
        if let Some(other) = &mut shifted {
            (other.indices, other.values) = (stored.indices.clone(), stored.values.clone());
            other.arrangement.entries = stored.arrangement.entries;
        }
        written
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
pub(crate) struct HostMatrix<'a, T> {
    pub(crate) arrangement: Arrangement,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) stride: usize,
    pub(crate) pointers: &'a [u32],
    pub(crate) indices: &'a [u32],
    pub(crate) values: &'a [T],
}

/// Some rows of a [`Stored`] on the host, as a matrix of their own.
#[derive(Clone, Copy)]
pub(in crate::backend) struct Sampled<'a, T> {
    pub(in crate::backend) of: &'a Sample<T>,
    matrix: HostMatrix<'a, T>,
}

impl<T: Real> Sampled<'_, T> {
    /// Parts of the vector that is multiplied, for one column, that the entries of the rows meet.
    pub(in crate::backend) fn gathered(&self) -> Vec<Range<usize>> {
        self.of.gathered(self.matrix.cols)
    }
}

/// Operation on a product and a vector, element by element, before the result is stored.
// The numbers are those of `BLEND` in `cl/linear/row.cl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Combine {
    /// `A x + y`.
    Plus = PLUS,
    /// `A x - y`.
    Minus = MINUS,
    /// `y - A x`, a residual.
    From = FROM,
    /// `A x` times `y`.
    Times = TIMES,
}

/// A product `A x` to be made, of `columns` interleaved vectors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Product<'v, T> {
    pub(crate) a: &'v Stored<T>,
    pub(crate) columns: usize,
    pub(crate) x: &'v Memory<T>,
}

/// Products with stored matrices.
pub(crate) trait ProductOps<T: Real>: Send + Sync {
    /// `y = A x`.
    fn multiply(&self, run: Run<'_>, ax: Product<'_, T>, y: &mut Memory<T>) -> Result<()>;
    /// `y = A x op b`, or `y = b - A x`.
    fn multiply_with(
        &self,
        run: Run<'_>,
        ax: Product<'_, T>,
        op: Combine,
        b: &Memory<T>,
        y: &mut Memory<T>,
    ) -> Result<()>;
}

impl PlanKey {
    /// The key for a launch that reads these matrices.
    pub(in crate::backend) fn reading<T: Real>(self, a: &Stored<T>, other: &Stored<T>) -> Self {
        self.with_entries([a, other].map(|a| a.arrangement.entries))
    }
}
