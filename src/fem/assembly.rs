//! The stored matrix of a space, and its diagonal.

use super::cells::{CellTables, Geometry};
use super::space::{Combinations, Space};
use crate::device::Device;
use crate::error::Result;
use crate::number::Real;
use crate::operator::Diagonal;
use crate::sparse::Csr;
use crate::threads;
use crate::vector::Vector;

/// Places where each free or hanging coefficient occurs: a cell and a shape function of it, by ascending cell.
pub(super) struct Occurrences {
    pub(super) offsets: Vec<usize>,
    pub(super) places: Vec<(u32, u32)>,
}

impl Occurrences {
    pub(super) fn of(&self, id: usize) -> &[(u32, u32)] {
        &self.places[self.offsets[id]..self.offsets[id + 1]]
    }
}

/// Items by the number each belongs to, in the order given, with the place where those of each number begin.
fn grouped<V: Copy + Default, I: Iterator<Item = (usize, V)>>(
    count: usize,
    items: impl Fn() -> I,
) -> (Vec<usize>, Vec<V>) {
    let mut offsets = vec![0; count + 1];
    items().for_each(|(number, _)| offsets[number + 1] += 1);
    for i in 0..count {
        offsets[i + 1] += offsets[i];
    }
    let mut next = offsets.clone();
    let mut found = vec![V::default(); offsets[count]];
    for (number, item) in items() {
        found[next[number]] = item;
        next[number] += 1;
    }
    (offsets, found)
}

/// Coefficients that hanging ones give a share to: the transposed of the constraints, for free coefficients.
pub(super) fn transposed(space: &Space) -> Combinations {
    let (offsets, entries) = grouped(space.shared, || {
        let rows =
            (0..space.hanging).flat_map(|row| space.constraints.row(row).iter().map(move |entry| (row, entry)));
        let shares = rows.map(|(row, (id, factor))| (*id as usize, (row as u32, *factor)));
        shares.filter(|(id, _)| *id < space.shared)
    });
    Combinations { offsets, entries }
}

impl Space {
    pub(super) fn occurrences(&self) -> Occurrences {
        let known = self.free + self.hanging;
        let (offsets, places) = grouped(known, || {
            let cells = (0..self.mesh.cells.len()).flat_map(|cell| {
                self.ids(cell).iter().enumerate().map(move |(k, id)| (*id as usize, (cell as u32, k as u32)))
            });
            cells.filter(|(id, _)| *id < known)
        });
        Occurrences { offsets, places }
    }

    /// The matrix `a(phi_j, phi_i) = int grad phi_j . grad phi_i` of the free coefficients, with hanging nodes eliminated: symmetric to the
    /// last bit, and positive definite if values are given somewhere.
    ///
    /// # Errors
    /// [`Error::Option`](crate::Error::Option) for a map whose determinant is not positive;
    /// [`Error::Structure`](crate::Error::Structure), [`Error::Memory`](crate::Error::Memory).
    ///
    /// # Cost
    /// Rows are formed in parallel. Boxes have few entries: 19 to 37 to a row for functions inside of a cell, and more for those of
    /// vertices; mapped cells of degree `p` couple all of their `(p + 1)³` functions. [`Space::operator`] stores nothing of it.
    ///
    /// # Source
    /// oses-2013, section 3.1.1, for its spaces of section 3.1.2.
    pub fn matrix(&self) -> Result<Csr<f64>> {
        let assembler = Assembler::new(self)?;
        let lower = Csr::from_rows(self.free, self.free, |i, row| assembler.row(i, row))?;
        let upper = lower.transpose();
        Csr::from_rows(self.free, self.free, |i, row| {
            let entries = |a: &Csr<f64>, row: &mut Vec<(u32, f64)>, first: usize| {
                let (indices, values) = a.row(i);
                row.extend(indices.iter().copied().zip(values.iter().copied()).skip(first));
            };
            entries(&lower, row, 0);
            // Without the diagonal.
            let diagonal = usize::from(upper.row(i).0.first() == Some(&(i as u32)));
            entries(&upper, row, diagonal);
        })
    }

    /// The diagonal of [`Space::matrix`], without forming it.
    ///
    /// # Errors
    /// As [`Space::matrix`].
    pub fn diagonal(&self) -> Result<Vec<f64>> {
        let assembler = Assembler::new(self)?;
        let of_cell = |cell: usize, geometry: &Geometry| {
            assembler.tables[usize::from(self.mesh.cells[cell].degree)].diagonal(geometry)
        };
        let parts = threads::map(&assembler.geometries[..], 16, of_cell);
        let entry = |_, i: usize| {
            if i < self.shared && !assembler.shares.row(i).is_empty() {
                let mut row = Vec::new();
                assembler.row(i, &mut row);
                return row.last().filter(|(column, _)| *column as usize == i).map_or(0.0, |(_, entry)| *entry);
            }
            assembler.occurrences.of(i).iter().map(|(cell, k)| parts[*cell as usize][*k as usize]).sum()
        };
        Ok(threads::numbers(0..self.free, 64, entry))
    }

    /// Jacobi's preconditioner: the inverse of [`Space::diagonal`].
    ///
    /// # Errors
    /// As [`Space::matrix`]; those of [`Vector`].
    pub fn jacobi<T: Real>(&self, device: &Device) -> Result<Diagonal<T>> {
        let inverse: Vec<T> = self.diagonal()?.into_iter().map(|d| T::from_f64(1.0 / d)).collect();
        Diagonal::new(Vector::from_slice(device, &inverse)?)
    }
}

/// Forms rows of the matrix.
struct Assembler<'s> {
    space: &'s Space,
    geometries: Vec<Geometry>,
    tables: Vec<CellTables>,
    occurrences: Occurrences,
    shares: Combinations,
}

impl<'s> Assembler<'s> {
    fn new(space: &'s Space) -> Result<Self> {
        Ok(Self {
            space,
            geometries: space.geometries()?,
            tables: CellTables::all(),
            occurrences: space.occurrences(),
            shares: transposed(space),
        })
    }

    /// Entries of row `i` up to the diagonal, by ascending column.
    fn row(&self, i: usize, row: &mut Vec<(u32, f64)>) {
        let space = self.space;
        let mut found: Vec<(u32, f64)> = Vec::new();
        let mut add = |id: usize, share: f64| {
            for (cell, k) in self.occurrences.of(id) {
                let (cell, k) = (*cell as usize, *k as usize);
                let ids = space.ids(cell);
                let degree = usize::from(space.mesh.cells[cell].degree);
                for (column, entry) in self.tables[degree].row(&self.geometries[cell], k) {
                    let (column, known) = (ids[column], space.free + space.hanging);
                    // Given ones are no unknowns; what lies right of the diagonal is left out.
                    if column as usize <= i {
                        found.push((column, share * entry));
                    } else if (space.free..known).contains(&(column as usize)) {
                        let combined = space.constraints.row(column as usize - space.free).iter();
                        let wanted = combined.filter(|(id, _)| *id as usize <= i);
                        found.extend(wanted.map(|(id, factor)| (*id, share * entry * factor)));
                    }
                }
            }
        };
        add(i, 1.0);
        if i < space.shared {
            self.shares.row(i).iter().for_each(|(hanging, share)| add(space.free + *hanging as usize, *share));
        }
        found.sort_by_key(|entry| entry.0);
        for (column, entry) in found {
            match row.last_mut() {
                Some(before) if before.0 == column => before.1 += entry,
                _ => row.push((column, entry)),
            }
        }
        // Sums that cancel are no entries; the diagonal always is one.
        row.retain(|(column, entry)| *entry != 0.0 || *column as usize == i);
    }
}
