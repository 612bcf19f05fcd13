//! Matrices of constant coefficients on a grid, never stored: the neighbours of a point are found in the kernel.

use crate::device::Device;
use crate::error::{Error, Result};
use crate::magnitude::{self, Magnitude};
use crate::matrix::Matrix;
use crate::number::{Real, per_number};
use crate::sparse::{Arrangement, Csr, Format, Kind, Layout, STENCIL_HEADER};

/// Most points that kernels know while they are built: more of them fill the registers of a GPU.
const MOST_UNROLLED: usize = 9;

/// Points of an axis up to which coordinates beyond it, and below 0, are told apart from those on it.
const LONGEST_AXIS: usize = 1 << 31;

/// A constant-coefficient stencil on a grid of two or three dimensions, with zeros beyond the boundary.
///
/// Row `i = x + width (y + height z)` of the matrix has the coefficient of point `(dx, dy, dz)` in column
/// `(x + dx) + width ((y + dy) + height (z + dz))` if that lies on the grid.
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
        // A point that never meets the grid is no entry of any row.
        kept.retain(|(offset, _)| offset.iter().zip(size).all(|(d, n)| d.unsigned_abs() < n as u64));
        let mut stencil = Self { size, points: kept };
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

    /// Rows that have the entry of this point.
    fn count(&self, offset: [i64; 3]) -> usize {
        offset.iter().zip(self.size).map(|(d, n)| n - d.unsigned_abs() as usize).product()
    }

    /// The stencil as a matrix that is not stored. Any solver takes it like a stored one; it has its transposed.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for `f64` on a device without it, [`Error::Memory`], [`Error::Option`] for a grid that
    /// [`Stencil::new`] would refuse.
    ///
    /// # Cost
    /// A product moves the two vectors and nothing else: for five points of `f64` 16 bytes per row, where compressed
    /// rows move 80.
    pub fn operator<T: Real>(&self, device: &Device) -> Result<Matrix<T>> {
        operator(self, device)
    }

    fn operator_here<T: Real>(&self, device: &Device) -> Result<Matrix<T>> {
        let rounded = |c: f64| T::from_f64(c).to_f64();
        if let Some((offset, c)) = self.points.iter().find(|(_, c)| !rounded(*c).is_finite()) {
            let reason = format!("the coefficient {c} of {offset:?} is out of range in {}", T::PRECISION);
            return Err(Error::Option { name: "stencil", reason });
        }
        let checked = self.points.iter().map(|(offset, c)| (offset.map(|d| d as i32), *c)).collect::<Vec<_>>();
        let forward = Self::new(self.size, &checked)?;
        let mirrored: Vec<_> = checked.iter().map(|(offset, c)| (offset.map(|d| -d), *c)).collect();
        let backward = Self::new(self.size, &mirrored)?;
        let nnz = self.points.iter().map(|(offset, _)| self.count(*offset)).sum();
        let largest = || magnitude::largest(self.points.iter().map(|(_, c)| rounded(*c)));
        let squares = |exponent| {
            let square = |c: f64| magnitude::scale(rounded(c), exponent).powi(2);
            self.points.iter().map(|(offset, c)| self.count(*offset) as f64 * square(*c)).sum()
        };
        let frobenius = Magnitude::of_squares(largest, squares);
        Matrix::of_layouts(device, forward.layout(), Some(backward.layout()), nnz, frobenius)
    }

    /// The matrix of the stencil with every entry stored: for formats, preconditioners and comparisons.
    ///
    /// # Errors
    /// [`Error::Structure`] when the grid exceeds 32-bit indices.
    pub fn to_csr<T: Real>(&self) -> Result<Csr<T>> {
        let [width, height, depth] = self.size;
        Csr::from_rows(self.len(), self.len(), |i, row| {
            let at = [i % width, i / width % height, i / (width * height)];
            for (offset, c) in &self.points {
                let there = [0, 1, 2].map(|k| at[k] as i64 + offset[k]);
                if there.iter().zip([width, height, depth]).all(|(p, n)| (0..n as i64).contains(p)) {
                    row.push(((i as i64 + place(self.size, *offset)) as u32, T::from_f64(*c)));
                }
            }
        })
    }

    /// The arrays of `walk_stencil` in `cl/format.cl`.
    fn layout<T: Real>(&self) -> Layout<T> {
        let [width, height, depth] = self.size.map(|n| n as u32);
        let mut pointers = vec![width, height, depth, self.points.len() as u32];
        for d in 0..3 {
            // The furthest points in either direction, and the coordinates that have both.
            let reach = |sign: i64| self.points.iter().map(|p| (sign * p.0[d]).max(0) as usize).max().unwrap_or(0);
            let (before, behind) = (reach(-1), reach(1));
            pointers.extend([before as u32, self.size[d].saturating_sub(before + behind) as u32]);
        }
        pointers.resize(STENCIL_HEADER, 0);
        for (offset, _) in &self.points {
            pointers.extend(offset.map(|d| d as i32 as u32));
            pointers.push(place(self.size, *offset) as u32);
        }
        let known = self.points.len();
        let block = if (2..=MOST_UNROLLED).contains(&known) { known } else { 1 };
        Layout {
            format: Format::OnTheFly,
            arrangement: Arrangement { block, wide: depth > 1, ..Arrangement::of(Kind::Stencil) },
            rows: self.len(),
            cols: self.len(),
            pointers,
            indices: vec![0],
            values: self.points.iter().map(|point| T::from_f64(point.1)).chain([T::default()]).collect(),
            places: known + 1,
            stride: self.len(),
            longer: [0; 2],
            longest: 0,
            why: format!("{known} constant coefficients, neighbours found in the kernel"),
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
