//! Values rounded to single precision.

use super::{Csr, row_of};
use crate::error::{Error, Result};
use crate::number::{self, Real, per_number};
use crate::threads;

per_number! {
    fn rounded_to_f32<T>(a: &Csr<T>) -> Result<Csr<T>> = rounded_to_single_here;
}

impl<T: Real> Csr<T> {
    /// The matrix with its values rounded to `f32`, still in `T`: stored packed ([`Packing`](crate::Packing)) it takes 8 bytes an entry or
    /// less, in products with vectors of `f64`. Values below 1.2e-38 become 0.
    ///
    /// # Errors
    /// [`Error::Structure`] with the row of a value that is out of the range of `f32`.
    pub fn rounded_to_f32(&self) -> Result<Self> {
        rounded_to_f32(self)
    }
}

fn rounded_to_single_here<T: Real>(a: &Csr<T>) -> Result<Csr<T>> {
    let round = |_, v: &T| {
        let rounded = v.to_f64() as f32;
        T::from_f64(if rounded.is_subnormal() { 0.0 } else { f64::from(rounded) })
    };
    let values: Vec<T> = threads::numbers(a.values(), threads::LEAST, round);
    match number::first_not_finite(&values) {
        None => a.with_values(values),
        Some(at) => {
            let row = row_of(a.offsets(), at);
            let what = format!("value {:e} is out of the range of f32", a.values()[at].to_f64());
            Err(Error::Structure { what, row: Some(row) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_f32_or_refused() {
        let of = |v: f64| Csr::from_triplets(2, 1, &[(0, 0, 1.0), (1, 0, v)]).unwrap().rounded_to_f32();
        for (v, wanted) in [(0.1, f64::from(0.1f32)), (-3.5, -3.5), (1e-40, 0.0), (3e38, f64::from(3e38f32))] {
            assert_eq!(of(v).unwrap().values()[1].to_bits(), wanted.to_bits());
        }
        assert!(matches!(of(-1e39), Err(Error::Structure { row: Some(1), .. })));
        let same = Csr::from_triplets(1, 1, &[(0, 0, 0.3f32)]).unwrap();
        assert_eq!(same.rounded_to_f32().unwrap().values(), same.values());
    }
}
