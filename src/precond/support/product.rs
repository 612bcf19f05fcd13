//! Preconditioners that are a product of stored matrices.

use std::borrow::Cow;

use crate::device::Device;
use crate::error::Result;
use crate::matrix::{Matrix, Storage, Transposed};
use crate::number::{Precision, Real};
use crate::operator::{Adjoint, LinearOperatorExt, ProductOperator};
use crate::sparse::{Csr, Packing};

/// `W W'` of a stored `W`.
pub(crate) type Square<T> = ProductOperator<Matrix<T>, Adjoint<Matrix<T>>, T>;

/// `W` with its transposed on the device, and `W W'` as an operator, which shares them.
pub(crate) fn square<T: Real>(device: &Device, w: &Csr<T>, stored_f32: bool) -> Result<(Matrix<T>, Square<T>)> {
    let w = factor_on(device, w, stored_f32, Transposed::Copy)?;
    Ok((w.clone(), w.clone().times(w.adjoint()?)?))
}

/// A factor of an approximate inverse on the device; `stored_f32` rounds its values to `f32` and stores them so.
pub(crate) fn factor_on<T: Real>(
    device: &Device,
    w: &Csr<T>,
    stored_f32: bool,
    transposed: Transposed,
) -> Result<Matrix<T>> {
    let packing = if rounds::<T>(stored_f32) { Packing::Always } else { Packing::default() };
    Matrix::stored(device, &*rounded(w, stored_f32)?, Storage { transposed, packing, ..Storage::default() })
}

/// Tells if a factor is rounded to `f32`: one that is in `f32` need not be.
pub(crate) fn rounds<T: Real>(stored_f32: bool) -> bool {
    stored_f32 && T::PRECISION == Precision::Double
}

/// The factor as it is stored.
pub(crate) fn rounded<T: Real>(w: &Csr<T>, stored_f32: bool) -> Result<Cow<'_, Csr<T>>> {
    if rounds::<T>(stored_f32) { w.rounded_to_f32().map(Cow::Owned) } else { Ok(Cow::Borrowed(w)) }
}

/// Implements an operator for a type that holds one in a field. With `symmetric` the field is its own adjoint. With
/// a function, new values of the matrix are taken by it.
macro_rules! operator_in_field {
    ($name:ident.$field:ident, symmetric $(, $update:ident)?) => {
        operator_in_field!($name.$field {
            fn apply_adjoint(&self, x: &Vector<T>, z: &mut Vector<T>) -> Result<()> {
                self.$field.apply(x, z)
            }
            fn has_adjoint(&self) -> bool {
                true
            }
            $(fn update_values(&self, a: &Csr<T>) -> Result<()> {
                $update(self, a)
            })?
        });
    };
    ($name:ident.$field:ident { $($more:item)* }) => {
        crate::operator::into_shared!($name);

        impl<T: Real> LinearOperator<T> for $name<T> {
            fn device(&self) -> &Device {
                self.$field.device()
            }
            fn rows(&self) -> usize {
                self.$field.rows()
            }
            fn cols(&self) -> usize {
                self.$field.cols()
            }
            fn apply(&self, x: &Vector<T>, z: &mut Vector<T>) -> Result<()> {
                self.$field.apply(x, z)
            }
            fn bytes(&self) -> u64 {
                self.$field.bytes()
            }
            fn launches(&self, columns: usize) -> usize {
                self.$field.launches(columns)
            }
            fn structure(&self) -> Structure<'_, T> {
                self.$field.structure()
            }
            $($more)*
        }
    };
}
pub(crate) use operator_in_field;
