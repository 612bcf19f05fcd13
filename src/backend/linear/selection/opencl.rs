//! Selection of elements on a device.

use super::SelectionOps;
use crate::backend::OpenCl;
use crate::backend::run::Run;
use crate::error::Result;
use crate::kernels::kernels;
use crate::memory::Memory;
use crate::number::Real;
use crate::ocl::File;

kernels! {
    file linear/selection, after [common];
    /// `y[i] = x[indices[i]]`.
    kernel select_elements<T>(n: uint, span: uint, cols: uint, columns: uint, indices: in_uint[n],
        x: in_real[cols * columns], y: out_real[n * columns]);
}

pub(in crate::backend) static FILES: &[&File] = &[&selection::FILE];

impl<T: Real> SelectionOps<T> for OpenCl {
    fn select(
        &self,
        run: Run<'_>,
        columns: usize,
        indices: &Memory<u32>,
        x: &Memory<T>,
        y: &mut Memory<T>,
    ) -> Result<()> {
        use selection::select_elements::{Args, launch, prepare};
        let (n, on) = (indices.len(), &self.context);
        let (common, groups, span) = self.without_barriers::<T>(run, n);
        let kernel =
            self.kernel("select_elements", common, 0, || prepare(on, common, &selection::Options::default()))?;
        let cols = x.len() / columns;
        let (indices, x, y) = (indices.buffer(on)?, x.buffer(on)?, y.buffer_mut(on)?);
        launch(&kernel, groups, Args { n, span, cols, columns, indices, x, y })
    }
}
