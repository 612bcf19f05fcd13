//! Meshes: a lattice of boxes, some of them left out, each split into eight as often as is wanted, and mapped into space.

use std::collections::HashMap;
use std::fmt::{self, Debug};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use super::shape::MOST_DEGREE;
use crate::error::{Error, Result};
use crate::machine;

/// Place of a point in space.
pub type Point = [f64; 3];

/// A map of points and its derivatives: row `i` of the second has those of coordinate `i`.
pub type Mapped = (Point, [[f64; 3]; 3]);

type Map = dyn Fn(Point) -> Mapped + Send + Sync;

/// Boxes along an axis if all were as small as the smallest: keys have 19 bits for twice the place of a corner.
const LONGEST_AXIS: u64 = 1 << 17;

/// Most cells: each has 8 coefficients at least, which 32 bits count.
const MOST_CELLS: usize = 1 << 29;

/// Numbers from keys that are spread already.
#[derive(Default)]
pub(super) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }
    fn write_u64(&mut self, key: u64) {
        let mixed = (self.0 ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

/// A table by key.
pub(super) type ByKey<V> = HashMap<u64, V, BuildHasherDefault<KeyHasher>>;

/// A cell: box `at` of the lattice whose boxes are halved `level` times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) level: u8,
    pub(super) degree: u8,
    pub(super) at: [u32; 3],
}

impl Cell {
    pub(super) fn key(self) -> u64 {
        let [x, y, z] = self.at.map(u64::from);
        u64::from(self.level) << 57 | x << 38 | y << 19 | z
    }

    /// The cell that it is a part of.
    pub(super) fn parent(self) -> Option<Self> {
        let level = self.level.checked_sub(1)?;
        Some(Self { level, at: self.at.map(|at| at / 2), ..self })
    }

    /// The eight parts of a cell, the first axis fastest.
    fn children(self) -> [Self; 8] {
        [0, 1, 2, 3, 4, 5, 6, 7].map(|octant: u32| {
            let half = [octant & 1, octant >> 1 & 1, octant >> 2];
            Self { level: self.level + 1, at: [0, 1, 2].map(|d| 2 * self.at[d] + half[d]), ..self }
        })
    }
}

/// A cell as a user sees it.
#[derive(Clone, Copy, Debug)]
pub struct CellView {
    /// The corner with the least coordinates, before the map.
    pub lower: Point,
    /// The corner with the largest coordinates, before the map.
    pub upper: Point,
    /// Number of times that a box of the lattice was split.
    pub level: usize,
    /// Degree of its shape functions.
    pub degree: usize,
}

impl CellView {
    /// The middle, before the map.
    pub fn middle(&self) -> Point {
        [0, 1, 2].map(|d| 0.5 * (self.lower[d] + self.upper[d]))
    }

    /// Tells if a point, before the map, lies in the cell or on its boundary.
    pub fn touches(&self, point: Point) -> bool {
        (0..3).all(|d| (self.lower[d]..=self.upper[d]).contains(&point[d]))
    }
}

/// A mesh of hexahedra: a lattice of boxes, some of which may be left out, each split into eight as often as is wanted, and all of it
/// mapped into space by a smooth function.
///
/// Cells that touch differ by one level at most: [`Mesh::refine`] splits more where that is needed. A face of a cell may so lie beside four
/// of smaller cells, whose nodes on it are constrained ("hanging nodes"). Each cell has a degree of its own, from 1 to 8.
#[derive(Clone)]
pub struct Mesh {
    counts: [usize; 3],
    bounds: [[f64; 2]; 3],
    pub(super) cells: Vec<Cell>,
    map: Option<Arc<Map>>,
}

impl Debug for Mesh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { counts, bounds, cells, map } = self;
        f.debug_struct("Mesh")
            .field("counts", counts)
            .field("bounds", bounds)
            .field("cells", &cells.len())
            .field("mapped", &map.is_some())
            .finish_non_exhaustive()
    }
}

fn bad<T>(name: &'static str, reason: String) -> Result<T> {
    Err(Error::Option { name, reason })
}

impl Mesh {
    /// `counts` boxes along each axis of the box `bounds`, of degree 1.
    ///
    /// # Errors
    /// [`Error::Option`] for no boxes, more than 2^17 along an axis or 2^29 in all, bounds that are not finite and ascending; [`Error::Memory`].
    pub fn boxes(counts: [usize; 3], bounds: [[f64; 2]; 3]) -> Result<Self> {
        let all = counts.iter().try_fold(1usize, |product, n| product.checked_mul(*n));
        let Some(all) = all
            .filter(|all| (1..=MOST_CELLS).contains(all))
            .filter(|_| counts.iter().all(|n| *n as u64 <= LONGEST_AXIS))
        else {
            return bad("mesh", format!("{counts:?} boxes: not between 1 and 2^17 along an axis and 2^29 in all"));
        };
        machine::check_memory(format!("a mesh of {all} cells"), 16 * all as u64)?;
        if let Some([low, high]) = bounds.iter().find(|[low, high]| !(low < high && (high - low).is_finite())) {
            return bad("mesh", format!("an axis from {low} to {high} has no length"));
        }
        let [width, height, depth] = counts.map(|n| n as u32);
        let rows = (0..depth).flat_map(|z| (0..height).map(move |y| (y, z)));
        let cells = rows.flat_map(|(y, z)| (0..width).map(move |x| Cell { level: 0, degree: 1, at: [x, y, z] }));
        Ok(Self { counts, bounds, cells: cells.collect(), map: None })
    }

    /// Leaves out the boxes that `keep` does not want. Meant for meshes that are not refined yet.
    ///
    /// # Errors
    /// [`Error::Option`] if none is kept, or if boxes were split already.
    pub fn keep(mut self, keep: impl Fn(&CellView) -> bool) -> Result<Self> {
        if self.cells.iter().any(|cell| cell.level > 0) {
            return bad("mesh", "boxes are left out before any is split".into());
        }
        let kept: Vec<bool> = self.views().map(|view| keep(&view)).collect();
        let mut kept = kept.into_iter();
        self.cells.retain(|_| kept.next().unwrap_or(false));
        if self.cells.is_empty() {
            return bad("mesh", "no box is left".into());
        }
        Ok(self)
    }

    /// The mesh in space: `map` gives the place of a point and the derivatives of the three coordinates, row by row. Their determinant is
    /// to be positive.
    pub fn mapped(self, map: impl Fn(Point) -> Mapped + Send + Sync + 'static) -> Self {
        Self { map: Some(Arc::new(map)), ..self }
    }

    /// Number of cells.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Tells if there are no cells.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Tells if the cells are mapped; else they are boxes.
    pub fn is_mapped(&self) -> bool {
        self.map.is_some()
    }

    /// Bounds of the lattice, before the map.
    pub fn bounds(&self) -> [[f64; 2]; 3] {
        self.bounds
    }

    /// The cells, in the order of their numbers.
    pub fn views(&self) -> impl Iterator<Item = CellView> + '_ {
        self.cells.iter().map(|cell| self.view(*cell))
    }

    pub(super) fn view(&self, cell: Cell) -> CellView {
        let corner = |add: u32| {
            [0, 1, 2].map(|d| {
                let [low, high] = self.bounds[d];
                let boxes = (self.counts[d] as u64) << cell.level;
                let at = u64::from(cell.at[d] + add);
                // The ends of the axis to the last bit.
                if at == boxes { high } else { low + (high - low) * (at as f64 / boxes as f64) }
            })
        };
        CellView {
            lower: corner(0),
            upper: corner(1),
            level: usize::from(cell.level),
            degree: usize::from(cell.degree),
        }
    }

    /// Lengths of the sides of a cell.
    pub(super) fn sides(&self, cell: Cell) -> [f64; 3] {
        [0, 1, 2].map(|d| {
            let [low, high] = self.bounds[d];
            (high - low) / (((self.counts[d] as u64) << cell.level) as f64)
        })
    }

    /// Place in space, and derivatives, of a point of the lattice.
    pub(super) fn place(&self, point: Point) -> Mapped {
        match &self.map {
            Some(map) => map(point),
            None => (point, [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
        }
    }

    /// Place in space of the point of a cell whose coordinates are `t` in `[0, 1]`, and derivatives for those.
    pub(super) fn place_in(&self, cell: Cell, t: Point) -> Mapped {
        let (view, sides) = (self.view(cell), self.sides(cell));
        let at = [0, 1, 2].map(|d| view.lower[d] + t[d] * (view.upper[d] - view.lower[d]));
        let (place, slopes) = self.place(at);
        (place, slopes.map(|row| [0, 1, 2].map(|d| row[d] * sides[d])))
    }

    /// Sets the degree of all cells.
    ///
    /// # Errors
    /// [`Error::Option`] unless `degree` is between 1 and 8.
    pub fn set_degree(&mut self, degree: usize) -> Result<()> {
        self.set_degrees(|_| degree)
    }

    /// Sets the degree of each cell. On an edge or face that several share the least of their degrees counts.
    ///
    /// # Errors
    /// [`Error::Option`] unless every degree is between 1 and 8; none is changed then.
    pub fn set_degrees(&mut self, degree: impl Fn(&CellView) -> usize) -> Result<()> {
        let degrees: Vec<usize> = self.views().map(|view| degree(&view)).collect();
        if let Some(degree) = degrees.iter().find(|degree| !(1..=MOST_DEGREE).contains(*degree)) {
            return bad("degree", format!("{degree} is not between 1 and {MOST_DEGREE}"));
        }
        self.cells.iter_mut().zip(degrees).for_each(|(cell, degree)| cell.degree = degree as u8);
        Ok(())
    }

    /// Splits the cells that `wanted` names into eight each, and others where cells that touch would differ by more than a level.
    /// Children have the degree of what was split. Returns the number of cells that were split.
    ///
    /// # Errors
    /// [`Error::Option`] for cells so small that more than 2^17 would lie along an axis, or more than 2^29 cells in all; the mesh stays then.
    pub fn refine(&mut self, wanted: impl Fn(&CellView) -> bool) -> Result<usize> {
        let mut marks: Vec<bool> = self.views().map(|view| wanted(&view)).collect();
        let (mut cells, mut split) = (self.cells.clone(), 0);
        while marks.contains(&true) {
            let count = marks.iter().filter(|mark| **mark).count();
            let longest = self.counts.iter().max().map_or(0, |n| *n as u64);
            let fits = |cell: &Cell| longest << (cell.level + 1) <= LONGEST_AXIS;
            let last = cells.iter().zip(&marks).any(|(cell, mark)| *mark && !fits(cell));
            if last || cells.len() + 7 * count > MOST_CELLS {
                return bad("mesh", "it cannot be refined further".into());
            }
            split += count;
            let of = |(cell, mark): (&Cell, &bool)| {
                let parts = if *mark { cell.children().to_vec() } else { vec![*cell] };
                parts.into_iter()
            };
            cells = cells.iter().zip(&marks).flat_map(of).collect();
            marks = self.out_of_balance(&cells);
        }
        self.cells = cells;
        Ok(split)
    }

    /// Marks cells that touch one of two levels more.
    fn out_of_balance(&self, cells: &[Cell]) -> Vec<bool> {
        let index = index(cells);
        let mut marks = vec![false; cells.len()];
        for cell in cells.iter().filter(|cell| cell.level >= 2) {
            for at in self.around(*cell) {
                for up in 2..=cell.level {
                    let larger = Cell { level: cell.level - up, at: at.map(|at| at >> up), ..*cell };
                    if let Some(found) = index.get(&larger.key()) {
                        marks[*found as usize] = true;
                    }
                }
            }
        }
        marks
    }

    /// Places that touch a cell, of its own level.
    fn around(&self, cell: Cell) -> impl Iterator<Item = [u32; 3]> + '_ {
        (0..27).filter(|k| *k != 13).filter_map(move |k| {
            let step = [k % 3, k / 3 % 3, k / 9];
            self.beside(cell, step.map(|step: i64| step - 1))
        })
    }

    /// Place that lies `step` beside a cell, unless it lies beyond the lattice.
    fn beside(&self, cell: Cell, step: [i64; 3]) -> Option<[u32; 3]> {
        let mut found = cell.at;
        for d in 0..3 {
            let at = i64::from(cell.at[d]) + step[d];
            if !(0..(self.counts[d] as i64) << cell.level).contains(&at) {
                return None;
            }
            found[d] = at as u32;
        }
        Some(found)
    }

    /// Finds cells by place.
    pub(super) fn finder(&self) -> Finder<'_> {
        Finder { mesh: self, index: index(&self.cells), deepest: self.deepest() }
    }

    /// Largest number of times that a box was split.
    pub(super) fn deepest(&self) -> u8 {
        self.cells.iter().map(|cell| cell.level).max().unwrap_or(0)
    }
}

/// Numbers of cells by key.
fn index(cells: &[Cell]) -> ByKey<u32> {
    let mut index = ByKey::with_capacity_and_hasher(cells.len(), BuildHasherDefault::default());
    index.extend(cells.iter().enumerate().map(|(c, cell)| (cell.key(), c as u32)));
    index
}

/// Finds cells of a mesh by place.
#[derive(Debug)]
pub(super) struct Finder<'m> {
    mesh: &'m Mesh,
    index: ByKey<u32>,
    deepest: u8,
}

impl Finder<'_> {
    /// Tells if there are cells on this side of one: `side` is -1 or 1.
    pub(super) fn goes_on(&self, cell: Cell, axis: usize, side: i64) -> bool {
        let mut step = [0; 3];
        step[axis] = side;
        let Some(at) = self.mesh.beside(cell, step) else { return false };
        let has = |level: u8, at: [u32; 3]| self.index.contains_key(&Cell { level, at, ..cell }.key());
        let mut part = at.map(|at| 2 * at);
        part[axis] += u32::from(side < 0);
        (0..=cell.level).any(|up| has(cell.level - up, at.map(|at| at >> up)))
            || (cell.level < self.deepest && has(cell.level + 1, part))
    }

    /// Number of the cell that has a point of the lattice, and its coordinates in `[0, 1]` there. On a boundary between cells it is the one
    /// behind, if there is one.
    pub(super) fn locate(&self, point: Point) -> Option<(usize, Point)> {
        let Mesh { counts, bounds, .. } = self.mesh;
        for before in 0..8u32 {
            for level in 0..=self.deepest {
                let scaled = [0, 1, 2].map(|d| {
                    let [low, high] = bounds[d];
                    let boxes = ((counts[d] as u64) << level) as f64;
                    let scaled = (point[d] - low) / (high - low) * boxes;
                    // Corners of cells, which rounding may have moved, lie between boxes.
                    let corner = (scaled - scaled.round()).abs() < 1e-12 * boxes;
                    if corner { scaled.round() } else { scaled }
                });
                // On a boundary, the box before it on the axes whose bit is set.
                let at = [0, 1, 2].map(|d| {
                    let step = before >> d & 1 == 1 && scaled[d] == scaled[d].floor();
                    let last = (((counts[d] as u64) << level) - 1) as f64;
                    (scaled[d].floor() - f64::from(u8::from(step))).min(last)
                });
                if (0..3).any(|d| !(at[d] >= 0.0 && scaled[d] <= at[d] + 1.0)) {
                    continue;
                }
                let cell = Cell { level, degree: 1, at: at.map(|at| at as u32) };
                if let Some(found) = self.index.get(&cell.key()) {
                    return Some((*found as usize, [0, 1, 2].map(|d| (scaled[d] - at[d]).clamp(0.0, 1.0))));
                }
            }
        }
        None
    }
}

/// The trilinear map of `[0, 1]³` to the hexahedron with these corners, the first axis fastest: a map for [`Mesh::mapped`] that any
/// straight-sided hexahedron comes from.
pub fn hexahedron(corners: [Point; 8]) -> impl Fn(Point) -> Mapped + Send + Sync + 'static {
    move |t| {
        let along = t.map(|t| [1.0 - t, t]);
        let (mut place, mut slopes) = ([0.0; 3], [[0.0; 3]; 3]);
        for (k, corner) in corners.iter().enumerate() {
            let side = [k & 1, k >> 1 & 1, k >> 2];
            let value = along[0][side[0]] * along[1][side[1]] * along[2][side[2]];
            for (i, corner) in corner.iter().enumerate() {
                place[i] += value * corner;
                for (d, slope) in slopes[i].iter_mut().enumerate() {
                    let others = [(d + 1) % 3, (d + 2) % 3].map(|e| along[e][side[e]]);
                    let sign = if side[d] == 1 { 1.0 } else { -1.0 };
                    *slope += sign * others[0] * others[1] * corner;
                }
            }
        }
        (place, slopes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: [[f64; 2]; 3] = [[0.0, 1.0]; 3];

    #[test]
    fn cells_that_touch_differ_by_a_level() {
        let mut mesh = Mesh::boxes([2, 1, 1], [[0.0, 2.0], [0.0, 1.0], [0.0, 1.0]]).unwrap();
        for _ in 0..5 {
            let _ = mesh.refine(|cell| cell.touches([1.0, 0.0, 0.0]) && cell.upper[0] <= 1.0).unwrap();
        }
        let volume: f64 = mesh.views().map(|v| (0..3).map(|d| v.upper[d] - v.lower[d]).product::<f64>()).sum();
        assert!((volume - 2.0).abs() < 1e-14);
        let views: Vec<CellView> = mesh.views().collect();
        let touch =
            |a: &CellView, b: &CellView| (0..3).all(|d| a.lower[d] <= b.upper[d] && b.lower[d] <= a.upper[d]);
        assert!(views.iter().any(|v| v.level == 5) && views.iter().any(|v| v.level <= 1));
        for a in &views {
            for b in views.iter().filter(|b| touch(a, b)) {
                assert!(a.level.abs_diff(b.level) <= 1, "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn points_are_found_in_their_cells() {
        let mut mesh =
            Mesh::boxes([2; 3], UNIT).unwrap().keep(|cell| cell.middle().iter().any(|x| *x < 0.5)).unwrap();
        let _ = mesh.refine(|cell| cell.touches([0.5; 3])).unwrap();
        let _ = mesh.refine(|cell| cell.touches([0.5; 3])).unwrap();
        let finder = mesh.finder();
        for point in [[0.1, 0.2, 0.9], [0.5; 3], [1.0, 1.0, 0.5], [1.0, 0.0, 0.0], [0.5, 0.25, 0.125]] {
            let (cell, t) = finder.locate(point).unwrap();
            let view = mesh.view(mesh.cells[cell]);
            for d in 0..3 {
                let at = view.lower[d] + t[d] * (view.upper[d] - view.lower[d]);
                assert!((at - point[d]).abs() < 1e-15, "{point:?} {view:?}");
            }
        }
        assert!(finder.locate([0.7, 0.7, 0.7]).is_none() && finder.locate([-0.1, 0.0, 0.0]).is_none());
        assert!(finder.locate([f64::NAN, 0.0, 0.0]).is_none());
        // A corner that rounding moves into a box that is left out.
        let mesh = Mesh::boxes([49, 1, 1], UNIT).unwrap().keep(|cell| cell.middle()[0] > 1.0 / 49.0).unwrap();
        assert!(mesh.finder().locate([1.0 / 49.0, 0.5, 0.5]).is_some());
    }

    #[test]
    fn what_is_no_mesh_is_refused() {
        for counts in [[0, 1, 1], [1 << 19, 1, 1], [1 << 11, 1 << 11, 1 << 11]] {
            assert!(Mesh::boxes(counts, UNIT).is_err(), "{counts:?}");
        }
        assert!(Mesh::boxes([1; 3], [[0.0, 1.0], [1.0, 1.0], [0.0, 1.0]]).is_err());
        assert!(Mesh::boxes([1; 3], [[0.0, 1.0], [f64::NAN, 1.0], [0.0, 1.0]]).is_err());
        let mut mesh = Mesh::boxes([1; 3], UNIT).unwrap();
        assert!(mesh.set_degree(0).is_err() && mesh.set_degree(9).is_err());
        assert!(mesh.clone().keep(|_| false).is_err());
        for _ in 0..17 {
            let _ = mesh.refine(|cell| cell.touches([0.0; 3])).unwrap();
        }
        let cells = mesh.len();
        assert!(mesh.refine(|cell| cell.touches([0.0; 3])).is_err());
        assert_eq!(mesh.len(), cells);
        assert!(mesh.keep(|_| true).is_err());
    }

    #[test]
    fn derivatives_of_hexahedra_are_differences() {
        let corners = [
            [0.0, 0.0, 0.0],
            [1.0, 0.1, 0.0],
            [0.0, 1.2, 0.1],
            [1.1, 1.0, 0.2],
            [0.1, 0.0, 0.9],
            [1.0, 0.2, 1.0],
            [0.0, 1.0, 1.3],
            [1.2, 1.1, 1.1],
        ];
        let map = hexahedron(corners);
        assert_eq!(map([1.0, 1.0, 0.0]).0, corners[3]);
        let (h, t) = (1e-6, [0.3, 0.6, 0.2]);
        for d in 0..3 {
            let moved = |by: f64| {
                let mut t = t;
                t[d] += by;
                map(t).0
            };
            for i in 0..3 {
                let difference = (moved(h)[i] - moved(-h)[i]) / (2.0 * h);
                assert!((difference - map(t).1[i][d]).abs() < 1e-9);
            }
        }
    }
}
