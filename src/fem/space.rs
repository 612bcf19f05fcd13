//! Spaces of continuous functions on a mesh: their degrees of freedom, and the constraints of hanging nodes.
//!
//! Shape functions belong to entities: vertices, edges, faces and cells. An edge or face has the least degree of the cells it
//! belongs to. Where a face or edge of a cell lies beside larger cells, the entities of the smaller ones on it **hang**: their coefficients are
//! combinations of those of the larger entity, whose restriction to a half is known along each axis ([`super::shape::halves`]).
//!
//! Coefficients are numbered in four stretches: free ones that several cells share, free ones inside a cell, hanging ones, given ones
//! (on the boundary).

use std::collections::BTreeMap;
use std::hash::BuildHasherDefault;

use super::mesh::{ByKey, Cell, Mesh, Point};
use super::shape::{MOST_SHAPES, Table, halves};
pub(super) use crate::backend::pde::elements::NO_COEFFICIENT as NONE;
use crate::backend::pde::elements::part_place;
use crate::error::{Error, Result};
use crate::machine;
use crate::threads;

/// Place of an entity on its cell: for each axis 0 at the lower side, 1 along it, 2 at the upper side.
pub(super) type Side = [u8; 3];

/// The entities of a cell but its inside: vertices, edges, faces.
fn sides() -> impl Iterator<Item = Side> {
    (0..27u8).filter(|k| *k != 13).map(|k| [k % 3, k / 3 % 3, k / 9])
}

/// The entities that lie on one, itself among them.
pub(super) fn closure(side: Side) -> impl Iterator<Item = Side> {
    (0..27u8)
        .map(|k| [k % 3, k / 3 % 3, k / 9])
        .filter(move |other| (0..3).all(|d| side[d] == 1 || other[d] == side[d]))
}

/// Entity that the shape function with these numbers along the axes belongs to.
pub(super) fn side_of(mode: [usize; 3]) -> Side {
    mode.map(|k| match k {
        0 => 0,
        1 => 2,
        _ => 1,
    })
}

/// The three numbers of shape function `k` of `points` along each axis.
pub(super) fn mode_of(k: usize, points: usize) -> [usize; 3] {
    [k % points, k / points % points, k / (points * points)]
}

/// Rows of combinations: row `i` has the entries `offsets[i] .. offsets[i + 1]`.
#[derive(Clone, Debug, Default)]
pub(super) struct Combinations {
    pub(super) offsets: Vec<usize>,
    pub(super) entries: Vec<(u32, f64)>,
}

impl Combinations {
    pub(super) fn row(&self, i: usize) -> &[(u32, f64)] {
        &self.entries[self.offsets[i]..self.offsets[i + 1]]
    }

    /// A copy with those entries that `keep` names.
    pub(super) fn kept(&self, keep: impl Fn(u32) -> bool) -> Self {
        let mut kept = Self { offsets: vec![0], entries: Vec::new() };
        for row in self.offsets.windows(2) {
            kept.entries.extend(self.entries[row[0]..row[1]].iter().filter(|(id, _)| keep(*id)));
            kept.offsets.push(kept.entries.len());
        }
        kept
    }
}

/// A vertex, edge or face.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entity {
    /// A cell that it belongs to.
    pub(super) cell: u32,
    pub(super) side: Side,
    pub(super) degree: u8,
    hangs: bool,
    given: bool,
    /// Number of its first coefficient.
    pub(super) first: u32,
}

impl Entity {
    /// Number of its coefficients.
    pub(super) fn count(&self) -> usize {
        let along = self.side.iter().filter(|side| **side == 1).count() as u32;
        usize::from(self.degree - 1).pow(along)
    }

    /// Number of the coefficient of a shape function.
    fn id(&self, mode: [usize; 3]) -> u32 {
        let (most, mut id) = (usize::from(self.degree), 0);
        for d in (0..3).rev().filter(|d| self.side[*d] == 1) {
            if mode[d] > most {
                return NONE;
            }
            id = id * (most - 1) + mode[d] - 2;
        }
        self.first + id as u32
    }
}

/// Entities by key.
struct Entities {
    index: ByKey<u32>,
    all: Vec<Entity>,
    /// Number of times that a box of the lattice is split at most.
    deepest: u8,
    halves: [Table; 2],
}

impl Entities {
    /// Key of an entity: twice its middle in units of the cell, and its level; vertices are the same on all levels.
    fn key(&self, cell: Cell, side: Side) -> u64 {
        let twice = [0, 1, 2].map(|d| 2 * u64::from(cell.at[d]) + u64::from(side[d]));
        let (level, [x, y, z]) = match side.contains(&1) {
            true => (u64::from(cell.level), twice),
            false => (31, twice.map(|at| at << (self.deepest - cell.level))),
        };
        level << 57 | x << 38 | y << 19 | z
    }

    fn find(&self, cell: Cell, side: Side) -> Option<usize> {
        self.index.get(&self.key(cell, side)).map(|found| *found as usize)
    }

    fn of(mesh: &Mesh) -> Result<Self> {
        let deepest = mesh.deepest();
        // Vertices suffice if nothing hangs and no edge has coefficients.
        let plain = deepest == 0 && mesh.cells.iter().all(|cell| cell.degree == 1);
        let capacity = mesh.cells.len() * if plain { 1 } else { 7 };
        let index = ByKey::with_capacity_and_hasher(capacity, BuildHasherDefault::default());
        let mut this = Self { index, all: Vec::with_capacity(capacity), deepest, halves: halves() };
        for (c, cell) in mesh.cells.iter().enumerate() {
            for side in sides().filter(|side| !plain || !side.contains(&1)) {
                let next = this.all.len() as u32;
                let found = *this.index.entry(this.key(*cell, side)).or_insert(next);
                if found == next {
                    let (cell, degree) = (c as u32, cell.degree);
                    this.all.push(Entity { cell, side, degree, hangs: false, given: false, first: NONE });
                } else {
                    let entity = &mut this.all[found as usize];
                    entity.degree = entity.degree.min(cell.degree);
                }
            }
        }
        if this.all.len() >= NONE as usize {
            return Err(Error::Option { name: "mesh", reason: "it has more than 2^32 edges and faces".into() });
        }
        if deepest > 0 {
            this.find_hanging(mesh);
        }
        Ok(this)
    }

    /// Entity of the parent that one of a cell lies on, with the parent; none for vertices that are the parent's too, and for what lies
    /// inside of it.
    fn above(cell: Cell, side: Side) -> Option<(Cell, Side)> {
        let parent = cell.parent()?;
        let on = [0, 1, 2].map(|d| match 2 * (cell.at[d] % 2) + u32::from(side[d]) {
            0 => 0,
            4 => 2,
            _ => 1,
        });
        (on != [1; 3] && on.contains(&1)).then_some((parent, on))
    }

    fn find_hanging(&mut self, mesh: &Mesh) {
        for cell in mesh.cells.iter().filter(|cell| cell.level > 0) {
            for side in sides() {
                let hangs = Self::above(*cell, side).is_some_and(|(parent, on)| self.find(parent, on).is_some());
                if let Some(found) = self.find(*cell, side).filter(|_| hangs) {
                    self.all[found].hangs = true;
                }
            }
        }
        // A larger entity is not to have what the smaller cells on it cannot express.
        for cell in mesh.cells.iter().filter(|cell| cell.level > 0) {
            for side in sides() {
                if self.find(*cell, side).is_some_and(|found| self.all[found].hangs) {
                    self.limit(*cell, side, cell.degree);
                }
            }
        }
    }

    fn limit(&mut self, cell: Cell, side: Side, degree: u8) {
        let Some(found) = self.find(cell, side) else { return };
        match Self::above(cell, side).filter(|_| self.all[found].hangs) {
            Some((parent, on)) => closure(on).for_each(|side| self.limit(parent, side, degree)),
            None => self.all[found].degree = self.all[found].degree.min(degree),
        }
    }

    /// Marks an entity as given.
    fn give(&mut self, cell: Cell, side: Side) {
        let Some(found) = self.find(cell, side) else { return };
        match Self::above(cell, side).filter(|_| self.all[found].hangs) {
            Some((parent, on)) => closure(on).for_each(|side| self.give(parent, side)),
            None => self.all[found].given = true,
        }
    }

    /// Adds `factor` times the coefficient of a shape function of a cell, as a combination of free and given ones. `most` is the
    /// largest degree that takes part.
    fn expand(&self, cell: Cell, mode: [usize; 3], most: usize, factor: f64, sums: &mut BTreeMap<u32, f64>) {
        let side = side_of(mode);
        let Some(found) = self.find(cell, side) else { return };
        let entity = &self.all[found];
        let Some((parent, on)) = Self::above(cell, side).filter(|_| entity.hangs) else {
            let id = entity.id(mode);
            if id != NONE {
                *sums.entry(id).or_insert(0.0) += factor;
            }
            return;
        };
        let along = |d: usize| match on[d] {
            0 => 0..1,
            2 => 1..2,
            _ => 0..most + 1,
        };
        let half = |d: usize, k: usize| self.halves[cell.at[d] as usize % 2].at(k, mode[d]);
        for k in along(2) {
            for j in along(1) {
                for i in along(0) {
                    let share = half(0, i) * half(1, j) * half(2, k);
                    if share != 0.0 {
                        self.expand(parent, [i, j, k], most, factor * share, sums);
                    }
                }
            }
        }
    }

    /// The combinations that hanging coefficients are, in their order.
    fn constraints(&self, mesh: &Mesh, first: usize, count: usize) -> Combinations {
        let hanging: Vec<&Entity> = self.all.iter().filter(|entity| entity.hangs).collect();
        let of_entity = |_, entity: &&Entity| {
            let cell = mesh.cells[entity.cell as usize];
            let modes = (0..MOST_SHAPES.pow(3)).map(|k| mode_of(k, MOST_SHAPES));
            let mut rows: Vec<(u32, Vec<(u32, f64)>)> = modes
                .filter(|mode| side_of(*mode) == entity.side)
                .filter_map(|mode| Some((entity.id(mode), mode)).filter(|(id, _)| *id != NONE))
                .map(|(id, mode)| {
                    let mut sums = BTreeMap::new();
                    self.expand(cell, mode, usize::from(entity.degree), 1.0, &mut sums);
                    (id, sums.into_iter().filter(|(_, factor)| *factor != 0.0).collect())
                })
                .collect();
            rows.sort_unstable_by_key(|row| row.0);
            rows
        };
        let mut rows = threads::map(&hanging[..], 1, of_entity).concat();
        rows.sort_unstable_by_key(|row| row.0);
        debug_assert!(rows.len() == count && rows.first().is_none_or(|row| row.0 as usize == first));
        let mut found = Combinations { offsets: vec![0], entries: Vec::new() };
        for (_, row) in rows {
            found.entries.extend(row);
            found.offsets.push(found.entries.len());
        }
        found
    }
}

/// A face of a cell on the boundary.
#[derive(Clone, Copy, Debug)]
pub(super) struct Face {
    pub(super) cell: u32,
    pub(super) side: Side,
}

/// The continuous functions on a mesh that have on each cell the degree of the cell, along each axis.
///
/// Unknowns are the coefficients that are free: those of hanging nodes follow from others, and those on the part of the boundary whose
/// values are given are known.
#[derive(Debug)]
pub struct Space {
    pub(super) mesh: Mesh,
    /// Free coefficients that several cells share; these come first.
    pub(super) shared: usize,
    /// Free coefficients.
    pub(super) free: usize,
    pub(super) hanging: usize,
    pub(super) given: usize,
    /// Number of the first entry of `ids` of each cell, and of all.
    pub(super) starts: Vec<usize>,
    /// Number of the coefficient of each shape function of each cell, the first axis fastest.
    pub(super) ids: Vec<u32>,
    /// Combinations of free and given coefficients that hanging ones are.
    pub(super) constraints: Combinations,
    /// Entities with given coefficients.
    pub(super) given_entities: Vec<Entity>,
    /// Faces on the boundary whose values are not given.
    pub(super) open_faces: Vec<Face>,
}

impl Space {
    /// The functions on `mesh` with given values on the whole boundary.
    ///
    /// # Errors
    /// [`Error::Option`] for a mesh with more than 2^32 coefficients; [`Error::Memory`].
    pub fn new(mesh: &Mesh) -> Result<Self> {
        Self::with_boundary(mesh, |_| true)
    }

    /// The functions on `mesh` with given values on those faces of the boundary whose middle, in space, `is_given` names (Dirichlet); on
    /// the others the flux is given (Neumann). Where such a face begins in the middle of an edge of a larger cell, values are given on the whole
    /// edge.
    ///
    /// # Errors
    /// As [`Space::new`].
    pub fn with_boundary(mesh: &Mesh, is_given: impl Fn(Point) -> bool) -> Result<Self> {
        let points = |cell: &Cell| usize::from(cell.degree) + 1;
        let mut starts = vec![0];
        let mut total = 0;
        for cell in &mesh.cells {
            total += points(cell).pow(3);
            starts.push(total);
        }
        let too_many = || Error::Option { name: "mesh", reason: "it has more than 2^32 coefficients".into() };
        if total >= NONE as usize {
            return Err(too_many());
        }
        // Numbers, and a table of vertices, edges and faces.
        machine::check_memory(
            format!("a space of {} cells", mesh.cells.len()),
            4 * total as u64 + 64 * mesh.cells.len() as u64,
        )?;
        let mut entities = Entities::of(mesh)?;
        let open_faces = give_boundary(mesh, &mut entities, is_given);
        let count = |wanted: fn(&Entity) -> bool| -> usize {
            entities.all.iter().filter(|entity| wanted(entity)).map(Entity::count).sum()
        };
        let shared = count(|entity| !entity.hangs && !entity.given);
        let (hanging, given) = (count(|entity| entity.hangs), count(|entity| !entity.hangs && entity.given));
        let inside: usize = mesh.cells.iter().map(|cell| (points(cell) - 2).pow(3)).sum();
        let free = shared + inside;
        if free + hanging + given >= NONE as usize {
            return Err(too_many());
        }
        let mut next = [0, free, free + hanging];
        for entity in &mut entities.all {
            let stretch = if entity.hangs { 1 } else { 2 * usize::from(entity.given) };
            entity.first = next[stretch] as u32;
            next[stretch] += entity.count();
        }
        let ids = number(mesh, &entities, &starts, shared);
        let constraints = match hanging {
            0 => Combinations { offsets: vec![0], entries: Vec::new() },
            _ => entities.constraints(mesh, free, hanging),
        };
        let given_entities = entities.all.into_iter().filter(|entity| entity.given && !entity.hangs).collect();
        let mesh = mesh.clone();
        Ok(Self { mesh, shared, free, hanging, given, starts, ids, constraints, given_entities, open_faces })
    }

    /// Number of unknowns.
    pub fn len(&self) -> usize {
        self.free
    }

    /// Tells if there are no unknowns.
    pub fn is_empty(&self) -> bool {
        self.free == 0
    }

    /// Number of coefficients of hanging nodes, which follow from unknowns.
    pub fn hanging(&self) -> usize {
        self.hanging
    }

    /// The mesh.
    pub fn mesh(&self) -> &Mesh {
        &self.mesh
    }

    /// Numbers of the coefficients of a cell.
    pub(super) fn ids(&self, cell: usize) -> &[u32] {
        &self.ids[self.starts[cell]..self.starts[cell + 1]]
    }

    /// All coefficients: the free ones `x`, those that hang, and the given ones.
    pub(super) fn complete(&self, x: &[f64], given: &[f64]) -> Vec<f64> {
        let mut all = vec![0.0; self.free + self.hanging + self.given];
        all[..self.free].copy_from_slice(x);
        all[self.free + self.hanging..].copy_from_slice(given);
        let combined = |_, row: usize| -> f64 {
            self.constraints.row(row).iter().map(|(id, factor)| factor * all[*id as usize]).sum()
        };
        let hanging = threads::numbers(0..self.hanging, 256, combined);
        all[self.free..self.free + self.hanging].copy_from_slice(&hanging);
        all
    }
}

/// Marks what is given on the boundary, and returns the faces that are not.
fn give_boundary(mesh: &Mesh, entities: &mut Entities, is_given: impl Fn(Point) -> bool) -> Vec<Face> {
    let finder = mesh.finder();
    let faces = |c: usize, cell: &Cell| {
        let mut found = Vec::new();
        for axis in 0..3 {
            for upper in [0, 2] {
                if !finder.goes_on(*cell, axis, i64::from(upper) - 1) {
                    let mut side = [1; 3];
                    side[axis] = upper;
                    found.push(Face { cell: c as u32, side });
                }
            }
        }
        found
    };
    let boundary = threads::map(&mesh.cells[..], 64, faces).into_iter().flatten();
    let mut open = Vec::new();
    for face in boundary {
        let cell = mesh.cells[face.cell as usize];
        let middle = face.side.map(|side| f64::from(side) / 2.0);
        if is_given(mesh.place_in(cell, middle).0) {
            closure(face.side).for_each(|side| entities.give(cell, side));
        } else {
            open.push(face);
        }
    }
    open
}

/// The cells, those of each degree together: the order in which products take them, and in which insides are numbered.
pub(super) fn by_degree(mesh: &Mesh) -> Vec<usize> {
    let mut order: Vec<usize> = (0..mesh.cells.len()).collect();
    order.sort_by_key(|c| mesh.cells[*c].degree);
    order
}

/// Numbers of the coefficients of all cells; `shared` is that of the first inside of a cell.
fn number(mesh: &Mesh, entities: &Entities, starts: &[usize], shared: usize) -> Vec<u32> {
    let (mut inside, mut first_inside) = (shared, vec![0; mesh.cells.len()]);
    for c in by_degree(mesh) {
        first_inside[c] = inside;
        inside += usize::from(mesh.cells[c].degree - 1).pow(3);
    }
    let mut ids = vec![NONE; starts.last().copied().unwrap_or(0)];
    let mut parts = Vec::with_capacity(mesh.cells.len());
    let mut rest = ids.as_mut_slice();
    for pair in starts.windows(2) {
        let (part, others) = rest.split_at_mut(pair[1] - pair[0]);
        parts.push(part);
        rest = others;
    }
    let cells = (&mut parts[..], &mesh.cells[..], &first_inside[..]);
    threads::each(cells, 64, |_, (ids, cell, first_inside)| {
        let points = usize::from(cell.degree) + 1;
        let mut of: [Option<&Entity>; 27] = [None; 27];
        let place = |side: Side| usize::from(side[0] + 3 * side[1] + 9 * side[2]);
        for side in sides() {
            of[place(side)] = entities.find(*cell, side).map(|found| &entities.all[found]);
        }
        for (k, id) in ids.iter_mut().enumerate() {
            let mode = mode_of(k, points);
            let side = side_of(mode);
            *id = match of[place(side)] {
                Some(entity) => entity.id(mode),
                None if side == [1; 3] => {
                    let inside = part_place(mode.map(|k| k - 2), points - 2, mesh.is_mapped());
                    (first_inside + inside) as u32
                }
                None => NONE,
            };
        }
    });
    ids
}
