//! The matrix of a space as an operator that is not stored.

use std::sync::{Mutex, PoisonError};

use super::assembly::transposed;
use super::cells::{CellTables, Geometry};
use super::space::{Combinations, Space, by_degree, mode_of};
use crate::backend::pde::elements::{Batch, NO_COEFFICIENT, Sums, part_place};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::memory::{Memory, Place};
use crate::number::{Real, per_number};
use crate::operator::LinearOperator;
use crate::vector::Vector;

/// The matrix of [`Space::matrix`] as an operator that stores none of its entries: it gathers the coefficients of each cell, applies the
/// matrix of the cell an axis at a time (sum factorisation), and adds up, coefficient by coefficient, what the cells give, in the
/// order of their numbers. So there are no atomic operations, and the bits are the same everywhere.
///
/// # Cost
/// For `n` unknowns in cells of degree `p`, with `s = (1 + 1/p)³` coefficients of cells to an unknown, of which a part `1 - (p-1)³ / (p+1)³` is
/// shared: a product reads `x` (from the cache more often) and writes `y`, reads a number of 4 bytes for each coefficient, and for shared
/// ones a part is written, read, and its place read; for mapped cells 6 numbers besides. Dense matrices of
/// mapped cells would take `(p + 1)² / 16` times as many operations, those of boxes 0.7 to 46 times. Held: the same arrays. Launches: one for each degree, one if cells share anything,
/// two more if nodes hang.
///
/// # Source
/// S. A. Orszag, "Spectral methods for problems in complex geometries", J. Comput. Phys. 37 (1980), for sum factorisation.
#[derive(Debug)]
pub struct ElementOperator<T: Real> {
    device: Device,
    free: usize,
    batches: Vec<Batch<T>>,
    shared: Sums<T>,
    /// Rows that hanging coefficients are made of, and rows that collect what is theirs.
    hanging: Option<[Sums<T>; 2]>,
    /// Held for one product.
    room: Mutex<Room<T>>,
    bytes: u64,
    moved: u64,
}

/// Arrays of a product: parts of cells, hanging coefficients, what hanging coefficients collect.
#[derive(Debug)]
struct Room<T> {
    parts: Memory<T>,
    hung: Memory<T>,
    collected: Memory<T>,
}

per_number! {
    fn operator<T>(space: &Space, device: &Device) -> Result<ElementOperator<T>> = operator_here;
    fn apply<T>(this: &ElementOperator<T>, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> = ElementOperator::apply_here;
}

/// Offsets of 32 bits.
fn words(offsets: impl Iterator<Item = usize>) -> Result<Vec<u32>> {
    let word = |offset: usize| {
        u32::try_from(offset)
            .map_err(|_| Error::Option { name: "mesh", reason: "it has more than 2^32 constraints".into() })
    };
    offsets.map(word).collect()
}

fn rounded<T: Real>(values: impl Iterator<Item = f64>) -> Vec<T> {
    values.map(T::from_f64).collect()
}

fn combined<T: Real>(place: &Place, rows: &Combinations) -> Result<([Memory<u32>; 2], Memory<T>)> {
    let offsets = place.take(words(rows.offsets.iter().copied())?)?;
    // A buffer has at least one element.
    let entries = || rows.entries.iter().copied().chain(rows.entries.is_empty().then_some((0, 0.0)));
    let columns = place.take(entries().map(|entry| entry.0).collect())?;
    Ok(([offsets, columns], place.take(rounded(entries().map(|entry| entry.1)))?))
}

/// Cells of one degree as products take them. `start` is the place of their first part.
fn batch<T: Real>(space: &Space, place: &Place, cells: &[usize], start: usize) -> Result<Batch<T>> {
    let degree = usize::from(space.mesh.cells[cells[0]].degree);
    let (points, mapped) = (degree + 1, space.mesh.is_mapped());
    let known = (space.free + space.hanging) as u32;
    let ids = cells.iter().flat_map(|c| space.ids(*c)).map(|id| if *id < known { *id } else { NO_COEFFICIENT });
    let mut geometry = Vec::with_capacity(cells.len() * if mapped { 6 * points.pow(3) } else { 3 });
    for c in cells {
        match space.geometry(space.mesh.cells[*c])? {
            Geometry::Box(factors) => geometry.extend(factors.map(T::from_f64)),
            Geometry::Mapped(metric) => {
                let mut ordered = vec![T::default(); 6 * metric.len()];
                for (q, entries) in metric.iter().enumerate() {
                    let at = part_place(mode_of(q, points), points, false);
                    entries.iter().enumerate().for_each(|(c, v)| ordered[c * metric.len() + at] = T::from_f64(*v));
                }
                geometry.extend(ordered);
            }
        }
    }
    Ok(Batch {
        points,
        count: cells.len(),
        start,
        mapped,
        ids: place.take(ids.collect())?,
        tables: rounded(CellTables::new(degree).numbers(mapped).into_iter()),
        geometry: place.take(geometry)?,
    })
}

/// Bytes that a product moves.
fn moved<T: Real>(space: &Space) -> u64 {
    let number = T::PRECISION.bytes() as u64;
    let (vectors, known) = (2 * space.free as u64 * number, (space.free + space.hanging) as u32);
    let ids = 4 * space.ids.len() as u64;
    let inside = |id: u32| (space.shared..space.free).contains(&(id as usize));
    let of_parts = |id: &u32| if inside(*id) { 0 } else { number + if *id < known { number + 4 } else { 0 } };
    let parts: u64 = space.ids.iter().map(of_parts).sum();
    let geometry = if space.mesh.is_mapped() { 6 * space.ids.len() } else { 3 * space.mesh.cells.len() } as u64;
    // An offset for each row, and for hanging ones two vectors and their combinations, twice.
    let offsets = 4 * (space.shared + 2 * space.hanging) as u64;
    let factors = space.constraints.entries.len() as u64 * 2 * (4 + 2 * number);
    vectors + ids + parts + geometry * number + offsets + factors + 4 * space.hanging as u64 * number
}

fn operator_here<T: Real>(space: &Space, device: &Device) -> Result<ElementOperator<T>> {
    device.require(T::PRECISION)?;
    let (place, number) = (device.place(), T::PRECISION.bytes() as u64);
    let (total, mapped) = (space.ids.len() as u64, space.mesh.is_mapped());
    let metric = if mapped { 6 * total * number } else { 3 * number * space.mesh.cells.len() as u64 };
    let plan = [
        ("numbers of coefficients", 4 * total),
        ("parts", total * number),
        ("places", 4 * total),
        ("geometry", metric),
    ];
    device.check_memory(0, &plan)?;
    let order = by_degree(&space.mesh);
    let (mut batches, mut start) = (Vec::new(), 0);
    // Place of the parts of each cell.
    let mut first_part = vec![0; space.mesh.cells.len()];
    for cells in order.chunk_by(|a, b| space.mesh.cells[*a].degree == space.mesh.cells[*b].degree) {
        batches.push(batch(space, &place, cells, start)?);
        for c in cells {
            first_part[*c] = start;
            start += space.ids(*c).len();
        }
    }
    let occurrences = space.occurrences();
    let places = |rows: std::ops::Range<usize>| -> Result<[Memory<u32>; 2]> {
        let first = occurrences.offsets[rows.start];
        let offsets = words(occurrences.offsets[rows.start..=rows.end].iter().map(|offset| offset - first))?;
        let part = |(cell, k): &(u32, u32)| {
            let points = usize::from(space.mesh.cells[*cell as usize].degree) + 1;
            (first_part[*cell as usize] + part_place(mode_of(*k as usize, points), points, mapped)) as u32
        };
        let mut places: Vec<u32> =
            occurrences.places[first..occurrences.offsets[rows.end]].iter().map(part).collect();
        if places.is_empty() {
            places.push(0);
        }
        Ok([place.take(offsets)?, place.take(places)?])
    };
    let (shared, free, hanging) = (space.shared, space.free, space.hanging);
    let known = space.constraints.kept(|id| (id as usize) < free);
    let shared_rows = Sums {
        rows: shared,
        shared: Some(places(0..shared)?),
        combined: if hanging > 0 { Some(combined(&place, &transposed(space))?) } else { None },
    };
    let hanging_rows = match hanging {
        0 => None,
        _ => Some([
            Sums { rows: hanging, shared: None, combined: Some(combined(&place, &known)?) },
            Sums { rows: hanging, shared: Some(places(free..free + hanging)?), combined: None },
        ]),
    };
    let room = Room {
        parts: place.filled(start, T::default())?,
        // One more, so that no buffer is empty.
        hung: place.filled(hanging + 1, T::default())?,
        collected: place.filled(hanging.max(1), T::default())?,
    };
    Ok(ElementOperator {
        device: device.clone(),
        free,
        batches,
        shared: shared_rows,
        hanging: hanging_rows,
        room: Mutex::new(room),
        bytes: plan.iter().map(|part| part.1).sum(),
        moved: moved::<T>(space),
    })
}

impl Space {
    /// The matrix of [`Space::matrix`] as an operator that is not stored.
    ///
    /// # Errors
    /// [`Error::Option`] for a map whose determinant is not positive; [`Error::Unsupported`] for `f64` on a device without it,
    /// [`Error::Memory`], [`Error::Api`].
    pub fn operator<T: Real>(&self, device: &Device) -> Result<ElementOperator<T>> {
        operator(self, device)
    }
}

impl<T: Real> ElementOperator<T> {
    /// Bytes that a product moves, by formula, if each number of `x` is read from memory once.
    pub fn product_bytes(&self) -> u64 {
        self.moved
    }

    fn apply_here(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        crate::operator::check_shape((self.free, self.free), x, y)?;
        let (operations, run) = (self.device.backend().elements::<T>(), self.device.run::<T>());
        let mut room = self.room.lock().unwrap_or_else(PoisonError::into_inner);
        let Room { parts, hung, collected } = &mut *room;
        let (x, y) = (x.memory(), y.memory_mut());
        if let Some([combine, _]) = &self.hanging {
            operations.sum_elements(run, combine, parts, x, hung)?;
        }
        for batch in &self.batches {
            operations.apply_elements(run, batch, self.free, [x, hung], parts, y)?;
        }
        if let Some([_, collect]) = &self.hanging {
            operations.sum_elements(run, collect, parts, hung, collected)?;
        }
        if self.shared.rows > 0 {
            operations.sum_elements(run, &self.shared, parts, collected, y)?;
        }
        Ok(())
    }
}

impl<T: Real> LinearOperator<T> for ElementOperator<T> {
    fn device(&self) -> &Device {
        &self.device
    }
    fn rows(&self) -> usize {
        self.free
    }
    fn cols(&self) -> usize {
        self.free
    }
    fn apply(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        apply(self, x, y)
    }
    fn apply_adjoint(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        apply(self, x, y)
    }
    fn has_adjoint(&self) -> bool {
        true
    }
    fn bytes(&self) -> u64 {
        self.bytes
    }
    fn launches(&self, _columns: usize) -> usize {
        self.batches.len() + usize::from(self.shared.rows > 0) + 2 * usize::from(self.hanging.is_some())
    }
}
