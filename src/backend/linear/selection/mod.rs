//! Elements of a vector in another order, and their return to their places: `cl/linear/selection.cl`.

mod opencl;

pub(in crate::backend) use opencl::FILES;

use crate::backend::Host;
use crate::backend::run::Run;
use crate::error::Result;
use crate::memory::Memory;
use crate::number::Real;
use crate::threads::{self, ChunksMut, LEAST};

/// Selection of elements of vectors with `columns` interleaved columns.
pub(crate) trait SelectionOps<T: Real>: Send + Sync {
    /// `y[i] = x[indices[i]]`, or 0 if the index is beyond `x`.
    fn select(
        &self,
        run: Run<'_>,
        columns: usize,
        indices: &Memory<u32>,
        x: &Memory<T>,
        y: &mut Memory<T>,
    ) -> Result<()>;
}

impl<T: Real> SelectionOps<T> for Host {
    fn select(
        &self,
        _: Run<'_>,
        columns: usize,
        indices: &Memory<u32>,
        x: &Memory<T>,
        y: &mut Memory<T>,
    ) -> Result<()> {
        let (indices, x) = (indices.host()?, x.host()?);
        threads::each((ChunksMut(y.host_mut()?, columns), indices), LEAST, |_, (y, from)| {
            let from = *from as usize * columns;
            match x.get(from..from + columns) {
                Some(x) => y.copy_from_slice(x),
                None => y.fill(T::default()),
            }
        });
        Ok(())
    }
}
