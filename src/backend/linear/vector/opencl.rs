//! Operations on vectors on a device: `cl/linear/fill.cl`, `cl/linear/vector.cl` and `cl/linear/reduce.cl`.

use std::sync::Arc;

use super::{Column, Reduction, Terms, VectorOps};
use crate::backend::OpenCl;
use crate::backend::run::Run;
use crate::error::Result;
use crate::kernels::{Common, kernels};
use crate::memory::Memory;
use crate::number::{Real, Sum};
use crate::ocl::{Buffer, Context, File, Prepared, lock};
use crate::reduction::{Chunks, MOST_CHUNKS};
use crate::tuning::Family;

kernels! {
    file linear/fill, after [common];
    /// `x = value`.
    kernel fill<T>(n: uint, span: uint, value: real, x: out_real[n]);
}

kernels! {
    file linear/vector, after [common];
    /// `y = alpha x`.
    kernel scale<T>(n: uint, span: uint, alpha: real, x: in_real[n], y: out_real[n]);
    /// `x = alpha x`.
    kernel rescale<T>(n: uint, span: uint, alpha: real, x: out_real[n]);
    /// `y = alpha x + beta y`.
    kernel axpby<T>(n: uint, span: uint, alpha: real, beta: real, x: in_real[n], y: out_real[n]);
    /// `z = alpha x + beta y`.
    kernel add_scaled<T>(n: uint, span: uint, alpha: real, beta: real, x: in_real[n], y: in_real[n], z: out_real[n]);
    /// `z = x y`, element by element.
    kernel multiply_elements<T>(n: uint, span: uint, x: in_real[n], y: in_real[n], z: out_real[n]);
    /// `x = min(max(x, lower), upper)`.
    kernel clamp_elements<T>(n: uint, span: uint, lower: real, upper: real, x: out_real[n]);
}

kernels! {
    file linear/reduce, after [common, fold];
    constants [SUM = Reduction::Sum, PRODUCT = Reduction::Product, MINIMUM = Reduction::Minimum, MAXIMUM = Reduction::Maximum, ABSOLUTE_SUM = Reduction::AbsoluteSum];
    options { terms: u32 => TERMS }
    /// One sum (or product, ...) of each chunk.
    kernel reduce_chunks<T>(operation: uint, n: uint, chunk: uint, columns: uint, column: uint, lanes: uint,
        x: in_real[n * columns], y: in_real[n * columns], sums: out_sum[n.div_ceil(chunk)]);
    /// The chunk sums folded into one.
    kernel reduce_sums(operation: uint, count: uint, sums: in_sum[count], result: out_sum[1]);
}

pub(in crate::backend) static FILES: &[&File] = &[&fill::FILE, &vector::FILE, &reduce::FILE];

/// Function that prepares a kernel of a file whose options are `O`.
type Prepare<O> = fn(&Arc<Context>, Common, &O) -> Result<Prepared>;

impl OpenCl {
    /// Kernel, groups and elements of a group for an operation on `n` elements.
    fn elements<T: Real, O: Default>(
        &self,
        run: Run<'_>,
        n: usize,
        kernel: &'static str,
        prepare: Prepare<O>,
    ) -> Result<(Prepared, usize, usize)> {
        let (common, groups, span) = self.without_barriers::<T>(run, n);
        let kernel = self.kernel(kernel, common, 0, || prepare(&self.context, common, &O::default()))?;
        Ok((kernel, groups, span))
    }
}

impl<T: Real> VectorOps<T> for OpenCl {
    fn fill(&self, run: Run<'_>, value: T, x: &mut Memory<T>) -> Result<()> {
        let n = x.len();
        let (kernel, groups, span) = self.elements::<T, _>(run, n, "fill", fill::fill::prepare)?;
        let x = x.buffer_mut(&self.context)?;
        fill::fill::launch(&kernel, groups, fill::fill::Args { n, span, value, x })
    }

    fn scale(&self, run: Run<'_>, alpha: T, x: &Memory<T>, y: &mut Memory<T>) -> Result<()> {
        let n = y.len();
        let (kernel, groups, span) = self.elements::<T, _>(run, n, "scale", vector::scale::prepare)?;
        let (x, y) = (x.buffer(&self.context)?, y.buffer_mut(&self.context)?);
        vector::scale::launch(&kernel, groups, vector::scale::Args { n, span, alpha, x, y })
    }

    fn rescale(&self, run: Run<'_>, alpha: T, x: &mut Memory<T>) -> Result<()> {
        let n = x.len();
        let (kernel, groups, span) = self.elements::<T, _>(run, n, "rescale", vector::rescale::prepare)?;
        let x = x.buffer_mut(&self.context)?;
        vector::rescale::launch(&kernel, groups, vector::rescale::Args { n, span, alpha, x })
    }

    fn axpby(&self, run: Run<'_>, [alpha, beta]: [T; 2], x: &Memory<T>, y: &mut Memory<T>) -> Result<()> {
        let n = y.len();
        let (kernel, groups, span) = self.elements::<T, _>(run, n, "axpby", vector::axpby::prepare)?;
        let (x, y) = (x.buffer(&self.context)?, y.buffer_mut(&self.context)?);
        vector::axpby::launch(&kernel, groups, vector::axpby::Args { n, span, alpha, beta, x, y })
    }

    fn add_scaled(
        &self,
        run: Run<'_>,
        [alpha, beta]: [T; 2],
        [x, y]: [&Memory<T>; 2],
        z: &mut Memory<T>,
    ) -> Result<()> {
        use vector::add_scaled::{Args, launch, prepare};
        let n = z.len();
        let (kernel, groups, span) = self.elements::<T, _>(run, n, "add_scaled", prepare)?;
        let (x, y, z) = (x.buffer(&self.context)?, y.buffer(&self.context)?, z.buffer_mut(&self.context)?);
        launch(&kernel, groups, Args { n, span, alpha, beta, x, y, z })
    }

    fn multiply_elements(&self, run: Run<'_>, [x, y]: [&Memory<T>; 2], z: &mut Memory<T>) -> Result<()> {
        use vector::multiply_elements::{Args, launch, prepare};
        let n = z.len();
        let (kernel, groups, span) = self.elements::<T, _>(run, n, "multiply_elements", prepare)?;
        let (x, y, z) = (x.buffer(&self.context)?, y.buffer(&self.context)?, z.buffer_mut(&self.context)?);
        launch(&kernel, groups, Args { n, span, x, y, z })
    }

    fn clamp_elements(&self, run: Run<'_>, [lower, upper]: [T; 2], x: &mut Memory<T>) -> Result<()> {
        use vector::clamp_elements::{Args, launch, prepare};
        let n = x.len();
        let (kernel, groups, span) = self.elements::<T, _>(run, n, "clamp_elements", prepare)?;
        launch(&kernel, groups, Args { n, span, lower, upper, x: x.buffer_mut(&self.context)? })
    }

    fn reduce(
        &self,
        run: Run<'_>,
        column: Column,
        (reduction, terms): (Reduction, Terms),
        [x, y]: [&Memory<T>; 2],
    ) -> Result<f64> {
        use reduce::{reduce_chunks, reduce_sums};
        let n = x.len() / column.count;
        let (chunks, context) = (Chunks::of(n), &self.context);
        let work_group = self.plain::<T>(run, Family::Reduce, chunks).work_group;
        // Dot products have a program of their own, the fastest.
        let terms = match (terms, reduction) {
            (Terms::Elements, _) => 0,
            (Terms::Products, Reduction::Sum) => 1,
            (Terms::Products, _) => 2,
        };
        let options = reduce::Options { terms };
        // Both kernels of one program, for any number of lanes.
        let common = self.common::<T>(run, work_group, 1);
        let over_chunks =
            self.kernel("reduce_chunks", common, terms, || reduce_chunks::prepare(context, common, &options))?;
        let over_sums =
            self.kernel("reduce_sums", common, terms, || reduce_sums::prepare(context, common, &options))?;
        let operation = reduction as usize;
        let mut scratch = lock(&self.scratch);
        let [sums, result] = match &mut *scratch {
            Some(buffers) => buffers,
            empty => empty.insert([Buffer::new(context, MOST_CHUNKS)?, Buffer::new(context, 1)?]),
        };
        let (x, y) = (x.buffer(context)?, y.buffer(context)?);
        let Column { count: columns, index: column } = column;
        let args = reduce_chunks::Args {
            operation,
            n,
            chunk: chunks.chunk,
            columns,
            column,
            lanes: chunks.lanes,
            x,
            y,
            sums,
        };
        reduce_chunks::launch(&over_chunks, chunks.count, args)?;
        reduce_sums::launch(&over_sums, 1, reduce_sums::Args { operation, count: chunks.count, sums, result })?;
        let mut sum = [Sum::default()];
        context.read(result, 0, &mut sum)?;
        Ok(sum[0].value(run.accumulation))
    }
}
