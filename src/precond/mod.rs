//! Preconditioners: approximations of an inverse, each a [`LinearOperator`] to be put into
//! [`Setup::preconditioner`](crate::Setup). [`Preconditioner`] makes them by name.

mod ainv;
mod bainv;
mod biconjugation;
mod block_jacobi;
mod build;
mod factored;
mod fsai;
mod gathered;
mod incomplete;
mod levels;
mod memory;
mod named;
mod places;
mod polynomial;
mod spai;
mod sweep;

pub use ainv::{Ainv, AinvOptions, Orthogonalisation};
pub use bainv::{Bainv, BainvOptions};
pub use biconjugation::NonsymmetricAinv;
pub use block_jacobi::BlockJacobi;
pub use build::Built;
pub use fsai::{AdaptivePlaces, Fsai, FsaiOptions, FsaiPlaces};
pub use incomplete::{Factorisation, Fill, Incomplete, IncompleteOptions};
pub use named::Preconditioner;
pub use polynomial::{Polynomial, PolynomialOptions};
pub use spai::{Spai, SpaiOptions};
pub use sweep::{RowOrdering, Sweep};

use std::borrow::Cow;
use std::ops::Range;
use std::time::Instant;

use crate::device::Device;
use crate::error::{Error, Result, same_length};
use crate::matrix::{Matrix, Storage, Transposed};
use crate::number::{Precision, Real, first_not_finite};
use crate::operator::{Adjoint, LinearOperator, ProductOperator};
use crate::sparse::{Csr, Packing, RowBlock, row_of};
use crate::threads;

/// `W W'` of a stored `W`.
type Square<T> = ProductOperator<Matrix<T>, Adjoint<Matrix<T>>, T>;

/// `W` with its transposed on the device, and `W W'` as an operator, which shares them.
fn square<T: Real>(device: &Device, w: &Csr<T>, single: bool) -> Result<(Matrix<T>, Square<T>)> {
    let w = factor_on(device, w, single, Transposed::Copy)?;
    Ok((w.clone(), w.clone().times(w.adjoint()?)?))
}

/// A factor of an approximate inverse on the device; `single` rounds its values to `f32` and stores them so.
fn factor_on<T: Real>(device: &Device, w: &Csr<T>, single: bool, transposed: Transposed) -> Result<Matrix<T>> {
    let packing = if rounds::<T>(single) { Packing::Always } else { Packing::default() };
    Matrix::stored(device, &*rounded(w, single)?, Storage { transposed, packing, ..Storage::default() })
}

/// Tells if a factor is rounded to `f32`: one that is in `f32` need not be.
fn rounds<T: Real>(single: bool) -> bool {
    single && T::PRECISION == Precision::Double
}

/// The factor as it is stored.
fn rounded<T: Real>(w: &Csr<T>, single: bool) -> Result<Cow<'_, Csr<T>>> {
    if rounds::<T>(single) { w.rounded_to_single().map(Cow::Owned) } else { Ok(Cow::Borrowed(w)) }
}

/// Makes an operator of a type whose field `product` is a product of two matrices: one that is its own adjoint if `symmetric` follows the
/// name, with a function that takes other values if there is one.
macro_rules! product_of_matrices {
    ($name:ident, symmetric $(, $update:ident)?) => {
        product_of_matrices!($name {
            fn apply_adjoint(&self, x: &Vector<T>, z: &mut Vector<T>) -> Result<()> {
                self.product.apply(x, z)
            }
            fn has_adjoint(&self) -> bool {
                true
            }
            $(fn update_values(&self, a: &Csr<T>) -> Result<()> {
                $update(self, a)
            })?
        });
    };
    ($name:ident { $($more:item)* }) => {
        impl<T: Real> From<$name<T>> for SharedOperator<T> {
            fn from(inverse: $name<T>) -> Self {
                inverse.shared()
            }
        }

        impl<T: Real> LinearOperator<T> for $name<T> {
            fn device(&self) -> &Device {
                self.product.device()
            }
            fn rows(&self) -> usize {
                self.product.rows()
            }
            fn cols(&self) -> usize {
                self.product.cols()
            }
            fn apply(&self, x: &Vector<T>, z: &mut Vector<T>) -> Result<()> {
                self.product.apply(x, z)
            }
            fn bytes(&self) -> u64 {
                self.product.bytes()
            }
            fn launches(&self) -> usize {
                self.product.launches()
            }
            fn structure(&self) -> Structure<'_, T> {
                self.product.structure()
            }
            $($more)*
        }
    };
}
use product_of_matrices;

/// Fails if the time for a set-up is over.
fn in_time(deadline: Option<Instant>, what: &str) -> Result<()> {
    match deadline {
        Some(deadline) if Instant::now() >= deadline => Err(Error::OutOfTime { what: what.into() }),
        _ => Ok(()),
    }
}

/// Columns of the largest entries of row `i` among those that `wanted` picks, and `i`: `most` in all; ascending. Of equal entries those
/// with the higher columns are taken.
fn largest_of_row<T: Real>(a: &Csr<T>, i: usize, most: usize, wanted: impl Fn(usize) -> bool) -> Vec<u32> {
    let (columns, values) = a.row(i);
    let picked = columns.iter().zip(values).filter(|(j, _)| wanted(**j as usize));
    let mut entries: Vec<(f64, u32)> = picked.map(|(j, value)| (value.to_f64().abs(), *j)).collect();
    entries.sort_unstable_by(|x, y| y.0.total_cmp(&x.0).then(y.1.cmp(&x.1)));
    entries.truncate(most - 1);
    let mut found: Vec<u32> = entries.into_iter().map(|(_, j)| j).chain([i as u32]).collect();
    found.sort_unstable();
    found
}

/// Highest power of a matrix whose places an inverse may have.
const MOST_POWER: usize = 4;

/// Fails for a power whose places an inverse cannot have.
fn check_power(power: usize) -> Result<()> {
    if (1..=MOST_POWER).contains(&power) {
        return Ok(());
    }
    let reason = format!("the matrix to the power of {power}; 1 to {MOST_POWER} are possible");
    Err(Error::Option { name: "preconditioner", reason })
}

/// The square matrix of `n` rows that threads make, each `together` rows one after another, in room that it keeps. Fails with the
/// first fault in the order of the rows, or if `copies` of it do not fit into the memory of the device.
fn made_by_threads<T: Real, W: Default + Send>(
    device: &Device,
    n: usize,
    (together, copies, deadline): (usize, usize, Option<Instant>),
    make: impl Fn(&mut W, Range<usize>) -> Result<RowBlock<T>> + Sync,
) -> Result<Csr<T>> {
    let of_piece = |blocks: Range<usize>| {
        let mut room = W::default();
        let mut of_block = |block: usize| {
            in_time(deadline, "an approximate inverse")?;
            make(&mut room, block * together..n.min((block + 1) * together))
        };
        blocks.map(&mut of_block).collect()
    };
    let made: Vec<Vec<Result<RowBlock<T>>>> = threads::runs(n.div_ceil(together), 1, of_piece);
    let blocks = made.into_iter().flatten().collect::<Result<Vec<_>>>()?;
    let held: usize = blocks.iter().map(|block| block.indices.len()).sum();
    device.check_memory(0, &[("approximate inverse", (copies * held * (4 + T::PRECISION.bytes())) as u64)])?;
    Csr::from_blocks(n, n, blocks)
}

/// Fails with the row of an entry that rounding to `T` made infinite. `of` is what has these entries.
fn check_rounded<T: Real>(offsets: &[usize], values: &[T], of: &str) -> Result<()> {
    first_not_finite(values).map_or(Ok(()), |at| {
        let what = format!("an entry of {of} is too large for its precision: scale the matrix");
        Err(Error::Structure { what, row: Some(row_of(offsets, at)) })
    })
}

/// Fails unless the matrix is square and its entries are finite.
fn check_finite<T: Real>(a: &Csr<T>) -> Result<()> {
    same_length("columns of a square matrix", a.rows(), a.cols())?;
    a.first_not_finite().map_or(Ok(()), |index| Err(Error::NotFinite { what: "the matrix".into(), index }))
}

/// Fails unless the matrix is square, finite and symmetric.
fn check_symmetric<T: Real>(a: &Csr<T>) -> Result<()> {
    check_finite(a)?;
    check_symmetry(a)
}

/// Calls `each` with the place of every entry below the diagonal of a square matrix and that of its mirror image, row by row. Tells if
/// the places are symmetric; it stops at the first entry without a mirror image.
pub(crate) fn mirrored<T: Real>(a: &Csr<T>, mut each: impl FnMut(usize, usize)) -> bool {
    let (offsets, columns) = (a.offsets(), a.indices());
    // The first entry behind the diagonal of each row that no entry below was found for: they are met in ascending order.
    let mut next = Vec::with_capacity(a.rows());
    for i in 0..a.rows() {
        let mut at = offsets[i];
        while at < offsets[i + 1] && (columns[at] as usize) < i {
            let j = columns[at] as usize;
            let mirror: usize = next[j];
            if mirror == offsets[j + 1] || columns[mirror] as usize != i {
                return false;
            }
            each(at, mirror);
            next[j] += 1;
            at += 1;
        }
        next.push(at + usize::from(at < offsets[i + 1] && columns[at] as usize == i));
    }
    (0..a.rows()).all(|j| next[j] == offsets[j + 1])
}

/// Fails with the first row that differs from its column. Rounding of what was meant to be symmetric passes.
fn check_symmetry<T: Real>(a: &Csr<T>) -> Result<()> {
    let (values, mut all_near) = (a.values(), true);
    if mirrored(a, |at, mirror| all_near &= nearly_equal(values[at], values[mirror])) && all_near {
        return Ok(());
    }
    Err(first_asymmetry(a))
}

/// Tells if two numbers differ by rounding alone.
fn nearly_equal<T: Real>(x: T, y: T) -> bool {
    let (x, y) = (x.to_f64(), y.to_f64());
    (x - y).abs() <= T::EPSILON.sqrt() * (x.abs() + y.abs())
}

/// The first row that differs from its column.
fn first_asymmetry<T: Real>(a: &Csr<T>) -> Error {
    let t = a.transpose();
    let row = threads::first(a.rows(), 1024, |i| {
        let ((columns, values), (t_columns, t_values)) = (a.row(i), t.row(i));
        columns != t_columns || !values.iter().zip(t_values).all(|(x, y)| nearly_equal(*x, *y))
    });
    Error::Structure { what: "the matrix is not symmetric".into(), row }
}
