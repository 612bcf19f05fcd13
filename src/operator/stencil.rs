//! Matrices of constant coefficients on a grid, never stored: the neighbours of a point are found in the kernel.

use std::cmp::Ordering;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::magnitude::{self, Magnitude};
use crate::matrix::Matrix;
use crate::number::{Real, per_number};
use crate::sparse::{Arrangement, Csr, Format, Kind, Layout, STENCIL_HEADER, STENCIL_TABLE, TABLE_HEADER};

/// Most points that kernels know while they are built: more of them fill the registers of a GPU.
const MOST_UNROLLED: usize = 9;

/// Points of an axis up to which coordinates beyond it, and below 0, are told apart from those on it.
const LONGEST_AXIS: usize = 1 << 31;

/// Most words of the table of rows at the boundaries.
const LARGEST_TABLE: usize = 1 << 20;

/// Values beyond the end of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Boundary {
    /// Zeros: Dirichlet's condition one grid distance beyond the last points. A point of the stencil out there is no entry.
    #[default]
    Zero,
    /// Mirror images, with the mirror half a grid distance beyond the last points (`x[-1 - k] = x[k]`): Neumann's condition, nothing
    /// flows through the boundary.
    Reflecting,
    /// The other end of the axis: `x[n + k] = x[k]`.
    Periodic,
}

/// A constant-coefficient stencil on a grid of two or three dimensions, with zeros beyond the boundary, or with other [`Boundary`]s.
///
/// Row `i = x + width (y + height z)` of the matrix has the coefficient of point `(dx, dy, dz)` in column
/// `(x + dx) + width ((y + dy) + height (z + dz))` if that lies on the grid. Coordinates beyond it are no entries, or those that
/// the boundary maps them to; coefficients that so meet in one column are added in `f64`.
///
/// ```
/// use residuum::operator::Stencil;
/// use residuum::{Device, Stopping, Vector, Method, Solver};
///
/// let device = Device::best()?;
/// let a = Stencil::laplacian_3d(20, 20, 20)?.operator::<f64>(&device)?;
/// let b = Vector::filled(&device, a.rows(), 1.0)?;
/// let mut x = Vector::zeros(&device, a.cols())?;
/// assert!(Solver::new(&a, Method::Cg, Stopping::for_precision::<f64>())?.solve(&b, &mut x)?.converged());
/// # Ok::<(), residuum::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Stencil {
    size: [usize; 3],
    /// In ascending order of the column they stand for.
    points: Vec<([i64; 3], f64)>,
    boundaries: [Boundary; 3],
}

/// Points of an axis by the entries that their rows have: those before the inner ones, the inner ones, those behind.
#[derive(Clone, Copy)]
struct Axis {
    before: usize,
    inside: usize,
    /// Kinds of points: each outer one, and all inner ones together.
    kinds: usize,
}

impl Axis {
    /// A point of this kind, and the number of those.
    fn example(self, kind: usize) -> (usize, usize) {
        match (kind.cmp(&self.before), self.inside) {
            (Ordering::Less, _) | (_, 0) => (kind, 1),
            (Ordering::Equal, inside) => (kind, inside),
            (Ordering::Greater, inside) => (kind + inside - 1, 1),
        }
    }
}

per_number! {
    fn operator<T>(stencil: &Stencil, device: &Device) -> Result<Matrix<T>> = Stencil::operator_here;
}

impl Stencil {
    /// The stencil of `points`, `([dx, dy, dz], coefficient)`, on a grid of `size = [width, height, depth]` (`depth = 1`
    /// for two dimensions).
    ///
    /// # Errors
    /// [`Error::Option`] for a grid without points or of more than 2³² of them, a coefficient that is not finite, a
    /// point that is named twice.
    pub fn new(size: [usize; 3], points: &[([i32; 3], f64)]) -> Result<Self> {
        let bad = |reason: String| Err(Error::Option { name: "stencil", reason });
        let cells = size.iter().try_fold(1usize, |product, n| product.checked_mul(*n));
        if let Some(axis) = size.iter().find(|n| **n > LONGEST_AXIS) {
            return bad(format!("an axis of {axis} points exceeds {LONGEST_AXIS}"));
        }
        if cells.is_none_or(|cells| cells == 0 || cells > u32::MAX as usize) {
            return bad(format!("a grid of {size:?} has not between 1 and {} points", u32::MAX));
        }
        let mut kept: Vec<([i64; 3], f64)> = Vec::new();
        for (offset, coefficient) in points {
            if !coefficient.is_finite() {
                return bad(format!("the coefficient of {offset:?} is {coefficient}"));
            }
            let offset = offset.map(i64::from);
            if kept.iter().any(|point| point.0 == offset) {
                return bad(format!("{offset:?} is named twice"));
            }
            kept.push((offset, *coefficient));
        }
        let mut stencil = Self { size, points: kept, boundaries: [Boundary::Zero; 3] };
        let size = stencil.size;
        stencil.points.sort_by_key(|point| place(size, point.0));
        Ok(stencil)
    }

    /// The 5-point Laplacian with zero boundary: 4 in the middle, -1 for each neighbour. The matrix of
    /// [`poisson_2d`](crate::sparse::gallery::poisson_2d) if the grid is square.
    ///
    /// # Errors
    /// [`Error::Option`] for a grid that [`Stencil::new`] refuses.
    pub fn laplacian_2d(width: usize, height: usize) -> Result<Self> {
        Self::laplacian([width, height, 1], 2)
    }

    /// The 7-point Laplacian with zero boundary: 6 in the middle, -1 for each neighbour.
    ///
    /// # Errors
    /// [`Error::Option`] for a grid that [`Stencil::new`] refuses.
    pub fn laplacian_3d(width: usize, height: usize, depth: usize) -> Result<Self> {
        Self::laplacian([width, height, depth], 3)
    }

    fn laplacian(size: [usize; 3], dimensions: usize) -> Result<Self> {
        let mut points = vec![([0; 3], 2.0 * dimensions as f64)];
        for d in 0..dimensions {
            for side in [-1, 1] {
                let mut offset = [0; 3];
                offset[d] = side;
                points.push((offset, -1.0));
            }
        }
        Self::new(size, &points)
    }

    /// Number of rows, and of columns.
    pub fn len(&self) -> usize {
        self.size.iter().product()
    }

    /// Tells if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A copy of the stencil with other values beyond the ends of each axis.
    pub fn with_boundaries(self, boundaries: [Boundary; 3]) -> Self {
        Self { boundaries, ..self }
    }

    /// Width, height and depth of the grid.
    pub fn size(&self) -> [usize; 3] {
        self.size
    }

    /// Points that meet the grid from somewhere: others are no entry of any row.
    fn met(&self) -> impl Iterator<Item = &([i64; 3], f64)> {
        let meets = |axis: usize, d: i64| {
            self.boundaries[axis] != Boundary::Zero || d.unsigned_abs() < self.size[axis] as u64
        };
        self.points.iter().filter(move |(offset, _)| (0..3).all(|axis| meets(axis, offset[axis])))
    }

    /// Tells if coordinates beyond the grid are mapped onto it.
    fn has_table(&self) -> bool {
        self.boundaries != [Boundary::Zero; 3]
    }

    /// Place on an axis of a coordinate that may lie beyond it.
    fn mapped(&self, axis: usize, at: i64) -> Option<usize> {
        let n = self.size[axis] as i64;
        match self.boundaries[axis] {
            _ if (0..n).contains(&at) => Some(at as usize),
            Boundary::Zero => None,
            Boundary::Periodic => Some(at.rem_euclid(n) as usize),
            Boundary::Reflecting => {
                let folded = at.rem_euclid(2 * n);
                Some(folded.min(2 * n - 1 - folded) as usize)
            }
        }
    }

    /// Entries of the row of the point `at`: ascending columns and their coefficients.
    fn row(&self, at: [usize; 3], row: &mut Vec<(usize, f64)>) {
        row.clear();
        for (offset, c) in &self.points {
            let place = [0, 1, 2].map(|axis| self.mapped(axis, at[axis] as i64 + offset[axis]));
            let [Some(x), Some(y), Some(z)] = place else { continue };
            let column = x + self.size[0] * (y + self.size[1] * z);
            match row.iter_mut().find(|entry| entry.0 == column) {
                Some(entry) => entry.1 += c,
                None => row.push((column, *c)),
            }
        }
        row.sort_unstable_by_key(|entry| entry.0);
    }

    fn axes(&self) -> [Axis; 3] {
        [0, 1, 2].map(|axis| {
            let n = self.size[axis];
            // The furthest points in either direction, and the coordinates that have both.
            let reach =
                |sign: i64| self.met().map(|p| (sign * p.0[axis]).max(0) as usize).max().unwrap_or(0).min(n);
            let (before, behind) = (reach(-1), reach(1));
            let inside = n.saturating_sub(before + behind);
            Axis { before, inside, kinds: n - inside.saturating_sub(1) }
        })
    }

    /// Calls `each` with an example and the number of the points of each kind, those of the first axis fastest.
    fn each_kind(&self, mut each: impl FnMut([usize; 3], usize)) {
        let axes = self.axes();
        for k in 0..axes.iter().map(|axis| axis.kinds).product() {
            let [a, b, _] = axes.map(|axis| axis.kinds);
            let kinds = [k % a, k / a % b, k / (a * b)];
            let found = [0, 1, 2].map(|d| axes[d].example(kinds[d]));
            each(found.map(|(at, _)| at), found.iter().map(|(_, count)| count).product());
        }
    }

    /// Tells if the transposed is the stencil of the mirrored points: with mirrored values beyond an axis, if its coefficients are
    /// alike in both directions.
    fn is_transposable(&self) -> bool {
        let flipped = |offset: [i64; 3], axis: usize| {
            let mut offset = offset;
            offset[axis] = -offset[axis];
            offset
        };
        (0..3).filter(|axis| self.boundaries[*axis] == Boundary::Reflecting).all(|axis| {
            self.points.iter().all(|(offset, c)| {
                let there = flipped(*offset, axis);
                self.points.iter().any(|(other, k)| *other == there && k == c)
            })
        })
    }

    /// Number of entries, and the sum of the squares of the rounded coefficients times `2^exponent`.
    fn entries<T: Real>(&self, exponent: i32) -> (usize, f64) {
        let square = |c: f64| magnitude::scale(T::from_f64(c).to_f64(), exponent).powi(2);
        if !self.has_table() {
            let rows = |offset: &[i64; 3]| {
                offset.iter().zip(self.size).map(|(d, n)| n - d.unsigned_abs() as usize).product::<usize>()
            };
            let nnz = self.met().map(|(offset, _)| rows(offset)).sum();
            return (nnz, self.met().map(|(offset, c)| rows(offset) as f64 * square(*c)).sum());
        }
        let (mut nnz, mut squares, mut row) = (0, 0.0, Vec::new());
        self.each_kind(|at, count| {
            self.row(at, &mut row);
            nnz += count * row.len();
            squares += count as f64 * row.iter().map(|entry| square(entry.1)).sum::<f64>();
        });
        (nnz, squares)
    }

    /// The stencil as a matrix that is not stored. Any solver takes it like a stored one. It has its transposed, unless values are
    /// mirrored beyond an axis along which the coefficients differ.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for `f64` on a device without it, [`Error::Memory`], [`Error::Option`] for a grid that
    /// [`Stencil::new`] would refuse, and for one whose points reach so far beyond boundaries other than zeros that the rows there take
    /// a table of more than 2^20 words.
    ///
    /// # Cost
    /// A product moves the two vectors and nothing else: for five points of `f64` 16 bytes per row, where compressed
    /// rows move 80.
    pub fn operator<T: Real>(&self, device: &Device) -> Result<Matrix<T>> {
        operator(self, device)
    }

    fn operator_here<T: Real>(&self, device: &Device) -> Result<Matrix<T>> {
        let rounded = |c: f64| T::from_f64(c).to_f64();
        if let Some((offset, c)) = self.met().find(|(_, c)| !rounded(*c).is_finite()) {
            let reason = format!("the coefficient {c} of {offset:?} is out of range in {}", T::PRECISION);
            return Err(Error::Option { name: "stencil", reason });
        }
        let checked = self.met().map(|(offset, c)| (offset.map(|d| d as i32), *c)).collect::<Vec<_>>();
        let forward = Self::new(self.size, &checked)?.with_boundaries(self.boundaries);
        if self.has_table() && forward.table_words() > LARGEST_TABLE {
            let reason = "its points reach too far beyond the boundaries".into();
            return Err(Error::Option { name: "stencil", reason });
        }
        let mirrored: Vec<_> = checked.iter().map(|(offset, c)| (offset.map(|d| -d), *c)).collect();
        let backward = match self.is_transposable() {
            true => Some(Self::new(self.size, &mirrored)?.with_boundaries(self.boundaries).layout()),
            false => None,
        };
        let (nnz, _) = forward.entries::<T>(0);
        let largest = || magnitude::largest(forward.points.iter().map(|(_, c)| rounded(*c)));
        let frobenius = Magnitude::of_squares(largest, |exponent| forward.entries::<T>(exponent).1);
        Matrix::of_layouts(device, forward.layout(), backward, nnz, frobenius)
    }

    /// Words of the table of rows by kind.
    fn table_words(&self) -> usize {
        self.axes().iter().fold(self.points.len(), |words, axis| words.saturating_mul(axis.kinds))
    }

    /// The matrix of the stencil with every entry stored: for formats, preconditioners and comparisons.
    ///
    /// # Errors
    /// [`Error::Structure`] when the grid exceeds 32-bit indices.
    pub fn to_csr<T: Real>(&self) -> Result<Csr<T>> {
        let [width, height, _] = self.size;
        Csr::from_rows(self.len(), self.len(), |i, row| {
            let mut entries = Vec::new();
            self.row([i % width, i / width % height, i / (width * height)], &mut entries);
            row.extend(entries.into_iter().map(|(column, c)| (column as u32, T::from_f64(c))));
        })
    }

    /// The arrays of `walk_stencil` in `cl/linear/format.cl`.
    fn layout<T: Real>(&self) -> Layout<T> {
        let [width, height, depth] = self.size.map(|n| n as u32);
        let points: Vec<_> = self.met().collect();
        let mut pointers = vec![width, height, depth, points.len() as u32];
        for axis in self.axes() {
            pointers.extend([axis.before as u32, axis.inside as u32]);
        }
        pointers.resize(STENCIL_HEADER, 0);
        for (offset, _) in &points {
            pointers.extend(offset.map(|d| d as i32 as u32));
            pointers.push(place(self.size, *offset) as u32);
        }
        let mut values: Vec<T> = points.iter().map(|point| T::from_f64(point.1)).chain([T::default()]).collect();
        if self.has_table() {
            pointers[STENCIL_TABLE] = pointers.len() as u32;
            let axes = self.axes();
            let header: [usize; TABLE_HEADER] = [
                axes[0].kinds,
                axes[1].kinds,
                self.size[0] - axes[0].kinds,
                self.size[1] - axes[1].kinds,
                self.size[2] - axes[2].kinds,
            ];
            pointers.extend(header.map(|word| word as u32));
            let mut row = Vec::new();
            self.each_kind(|at, _| {
                self.row(at, &mut row);
                let here = at[0] + self.size[0] * (at[1] + self.size[1] * at[2]);
                // Rows that have fewer entries than points end in padding.
                for k in 0..points.len() {
                    let entry = row.get(k);
                    pointers.push(entry.map_or(0, |entry| (entry.0 as i64 - here as i64) as u32));
                    values.push(T::from_f64(entry.map_or(f64::NAN, |entry| entry.1)));
                }
            });
        }
        let known = points.len();
        let block = if (2..=MOST_UNROLLED).contains(&known) { known } else { 1 };
        Layout {
            format: Format::OnTheFly,
            arrangement: Arrangement { block, wide: depth > 1, ..Arrangement::of(Kind::Stencil) },
            rows: self.len(),
            cols: self.len(),
            pointers,
            indices: vec![0],
            places: values.len(),
            values,
            stride: self.len(),
            longer: [0; 2],
            longest: 0,
            why: format!("{known} constant coefficients, neighbours found in the kernel"),
            sample: None,
        }
    }
}

/// Distance of a point from the middle in a vector.
fn place(size: [usize; 3], offset: [i64; 3]) -> i64 {
    offset[0] + size[0] as i64 * (offset[1] + size[1] as i64 * offset[2])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparse::gallery;

    #[test]
    fn laplacians_are_those_of_the_gallery() {
        assert_eq!(
            Stencil::laplacian_2d(7, 7).unwrap().to_csr::<f64>().unwrap(),
            gallery::poisson_2d(7, 0.0).unwrap()
        );
        assert_eq!(
            Stencil::laplacian_3d(5, 5, 5).unwrap().to_csr::<f32>().unwrap(),
            gallery::poisson_3d(5).unwrap()
        );
    }

    #[test]
    fn what_is_no_stencil_is_refused() {
        for (size, points) in [
            ([0, 4, 1], vec![([0, 0, 0], 1.0)]),
            ([1 << 20, 1 << 20, 1], vec![([0, 0, 0], 1.0)]),
            ([1 << 22, 1 << 21, 1 << 21], vec![([0, 0, 0], 1.0)]),
            ([u32::MAX as usize, 1, 1], vec![([2, 0, 0], 1.0)]),
            ([4, 4, 1], vec![([0, 0, 0], f64::NAN)]),
            ([4, 4, 1], vec![([1, 0, 0], 1.0), ([1, 0, 0], 2.0)]),
        ] {
            assert!(Stencil::new(size, &points).is_err(), "{size:?} {points:?}");
        }
        // Points that never meet the grid are no entries.
        let flat = Stencil::new([3, 1, 1], &[([0, 0, 0], 2.0), ([0, 1, 0], 1.0), ([i32::MIN, 0, 0], 1.0)]).unwrap();
        assert_eq!(flat.to_csr::<f64>().unwrap().nnz(), 3);
    }
}
