//! The stored matrix of a space, and its diagonal.

use rayon::prelude::*;

use super::cells::{CellTables, Geometry};
use super::space::{Combinations, Space};
use crate::error::Result;
use crate::sparse::Csr;

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

/// Coefficients that hanging ones give a share to: the transposed of the constraints, for free coefficients.
pub(super) fn transposed(space: &Space) -> Combinations {
    let shared = space.shared;
    let mut offsets = vec![0; shared + 1];
    let entries = || {
        let rows = (0..space.hanging).map(|row| (row, space.constraints.row(row)));
        rows.flat_map(|(row, entries)| entries.iter().map(move |entry| (row, *entry)))
            .filter(|(_, (id, _))| (*id as usize) < shared)
    };
    entries().for_each(|(_, (id, _))| offsets[id as usize + 1] += 1);
    for i in 0..shared {
        offsets[i + 1] += offsets[i];
    }
    let mut next = offsets.clone();
    let mut found = vec![(0, 0.0); offsets[shared]];
    for (row, (id, factor)) in entries() {
        found[next[id as usize]] = (row as u32, factor);
        next[id as usize] += 1;
    }
    Combinations { offsets, entries: found }
}

impl Space {
    pub(super) fn occurrences(&self) -> Occurrences {
        let known = self.free + self.hanging;
        let mut offsets = vec![0; known + 1];
        self.ids.iter().filter(|id| (**id as usize) < known).for_each(|id| offsets[*id as usize + 1] += 1);
        for i in 0..known {
            offsets[i + 1] += offsets[i];
        }
        let mut next = offsets.clone();
        let mut places = vec![(0, 0); offsets[known]];
        for cell in 0..self.mesh.cells.len() {
            for (k, id) in self.ids(cell).iter().enumerate().filter(|(_, id)| (**id as usize) < known) {
                places[next[*id as usize]] = (cell as u32, k as u32);
                next[*id as usize] += 1;
            }
        }
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
        let lower = Csr::from_rows(self.free, self.free, |i, row| assembler.row(i, i, row))?;
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

    /// The diagonal of [`Space::matrix`], without forming it: for Jacobi's preconditioner.
    ///
    /// # Errors
    /// As [`Space::matrix`].
    pub fn diagonal(&self) -> Result<Vec<f64>> {
        let assembler = Assembler::new(self)?;
        let of_cell = |(cell, geometry): (usize, &Geometry)| {
            assembler.tables[usize::from(self.mesh.cells[cell].degree)].diagonal(geometry)
        };
        let parts: Vec<Vec<f64>> = assembler.geometries.par_iter().enumerate().map(of_cell).collect();
        let entry = |i: usize| {
            if i < self.shared && !assembler.shares.row(i).is_empty() {
                let mut row = Vec::new();
                assembler.row(i, i, &mut row);
                return row.last().filter(|(column, _)| *column as usize == i).map_or(0.0, |(_, entry)| *entry);
            }
            assembler.occurrences.of(i).iter().map(|(cell, k)| parts[*cell as usize][*k as usize]).sum()
        };
        Ok((0..self.free).into_par_iter().map(entry).collect())
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

    /// Entries of row `i` up to column `last`, which is free, by ascending column.
    fn row(&self, i: usize, last: usize, row: &mut Vec<(u32, f64)>) {
        let space = self.space;
        let mut found: Vec<(u32, f64)> = Vec::new();
        let mut add = |id: usize, share: f64| {
            for (cell, k) in self.occurrences.of(id) {
                let (cell, k) = (*cell as usize, *k as usize);
                let ids = space.ids(cell);
                let degree = usize::from(space.mesh.cells[cell].degree);
                for (column, entry) in self.tables[degree].row(&self.geometries[cell], k) {
                    let (column, known) = (ids[column], space.free + space.hanging);
                    // Given ones are no unknowns; what lies right of `last` is left out.
                    if column as usize <= last {
                        found.push((column, share * entry));
                    } else if (space.free..known).contains(&(column as usize)) {
                        let combined = space.constraints.row(column as usize - space.free).iter();
                        let wanted = combined.filter(|(id, _)| *id as usize <= last);
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
