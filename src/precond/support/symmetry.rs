//! Checks of the entries of a matrix: symmetric, finite.

use crate::error::{Error, Result, same_length};
use crate::number::{Real, first_not_finite};
use crate::sparse::{Csr, row_of};
use crate::threads;

/// Fails with the row of an entry that rounding to `T` made infinite. `of` is what has these entries.
pub(crate) fn check_rounded<T: Real>(offsets: &[usize], values: &[T], of: &str) -> Result<()> {
    first_not_finite(values).map_or(Ok(()), |at| {
        let what = format!("an entry of {of} is too large for its precision: scale the matrix");
        Err(Error::Structure { what, row: Some(row_of(offsets, at)) })
    })
}

/// Fails unless the matrix is square and its entries are finite.
pub(crate) fn check_finite<T: Real>(a: &Csr<T>) -> Result<()> {
    same_length("columns of a square matrix", a.rows(), a.cols())?;
    a.first_not_finite().map_or(Ok(()), |index| Err(Error::NotFinite { what: "the matrix".into(), index }))
}

/// Fails unless the matrix is square, finite and symmetric.
pub(crate) fn check_symmetric<T: Real>(a: &Csr<T>) -> Result<()> {
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
pub(crate) fn check_symmetry<T: Real>(a: &Csr<T>) -> Result<()> {
    let (values, mut all_near) = (a.values(), true);
    if mirrored(a, |at, mirror| all_near &= nearly_equal(values[at], values[mirror])) && all_near {
        return Ok(());
    }
    Err(first_asymmetry(a))
}

/// Tells if two numbers differ by rounding alone.
#[inline]
pub(crate) fn nearly_equal<T: Real>(x: T, y: T) -> bool {
    let (x, y) = (x.to_f64(), y.to_f64());
    (x - y).abs() <= T::EPSILON.sqrt() * (x.abs() + y.abs())
}

/// The first row that differs from its column.
pub(crate) fn first_asymmetry<T: Real>(a: &Csr<T>) -> Error {
    let t = a.transpose();
    let row = threads::first(a.rows(), 1024, |i| {
        let ((columns, values), (t_columns, t_values)) = (a.row(i), t.row(i));
        columns != t_columns || !values.iter().zip(t_values).all(|(x, y)| nearly_equal(*x, *y))
    });
    Error::Structure { what: "the matrix is not symmetric".into(), row }
}
