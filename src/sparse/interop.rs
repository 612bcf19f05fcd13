//! From and to `sprs`.

use super::Csr;
use crate::error::Result;
use crate::number::Real;

impl<T: Real> Csr<T> {
    /// Copies a `sprs` matrix of either storage order; repeated or unsorted entries cannot occur in one.
    ///
    /// # Errors
    /// [`Error::Structure`](crate::Error::Structure) when a dimension exceeds 32 bits.
    pub fn from_sprs(matrix: &sprs::CsMat<T>) -> Result<Self> {
        // `sprs` may hold a slice whose offsets start above 0, so offsets are taken relative to the first.
        let (outer, inner) =
            if matrix.is_csr() { (matrix.rows(), matrix.cols()) } else { (matrix.cols(), matrix.rows()) };
        let offsets = matrix.indptr().into_raw_storage().to_vec();
        let first = offsets.first().copied().unwrap_or(0);
        let by_outer = Self::new(
            outer,
            inner,
            offsets.iter().map(|o| o - first).collect(),
            matrix.indices().iter().map(|&j| j as u32).collect(),
            matrix.data().to_vec(),
        )?;
        Ok(if matrix.is_csr() { by_outer } else { by_outer.transpose() })
    }

    /// Copies to a `sprs` matrix in row order.
    pub fn to_sprs(&self) -> sprs::CsMat<T> {
        sprs::CsMat::new(
            (self.rows(), self.cols()),
            self.offsets().to_vec(),
            self.indices().iter().map(|&j| j as usize).collect(),
            self.values().to_vec(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_storage_orders_of_sprs_come_back() {
        let a = Csr::from_triplets(3, 4, &[(0, 1, 1.0), (0, 3, 2.0), (2, 0, 3.0)]).expect("valid");
        let there = a.to_sprs();
        assert_eq!(Csr::from_sprs(&there).expect("same"), a);
        assert_eq!(Csr::from_sprs(&there.to_csc()).expect("same"), a);
        let slice = there.slice_outer(1..3).to_owned();
        assert_eq!(Csr::from_sprs(&slice).expect("rows 1 and 2").values(), [3.0]);
    }
}
