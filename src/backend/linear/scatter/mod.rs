//! Transposed products by additions to the result, without a transposed matrix.

mod opencl;

pub(in crate::backend) use opencl::FILES;

use super::product::Stored;
use crate::backend::Host;
use crate::backend::run::Run;
use crate::error::Result;
use crate::memory::Memory;
use crate::number::Real;

/// Transposed products.
pub(crate) trait ScatterOps<T: Real>: Send + Sync {
    /// `y = A'x` for compressed rows with 32-bit offsets: in no fixed order on a device, in row order on the host.
    fn scatter(&self, run: Run<'_>, a: &Stored<T>, x: &Memory<T>, y: &mut Memory<T>) -> Result<()>;
}

impl<T: Real> ScatterOps<T> for Host {
    fn scatter(&self, _: Run<'_>, a: &Stored<T>, x: &Memory<T>, y: &mut Memory<T>) -> Result<()> {
        let (a, x, y) = (a.host()?, x.host()?, y.host_mut()?);
        y[..a.cols].fill(T::default());
        for i in 0..a.rows {
            for k in a.pointers[i] as usize..a.pointers[i + 1] as usize {
                let at = a.indices[k] as usize;
                y[at] = y[at] + a.values[k] * x[i];
            }
        }
        Ok(())
    }
}
