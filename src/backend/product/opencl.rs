//! Products and residuals on a device: `cl/product.cl`, `cl/residual.cl`.

use super::{Combine, LONG_ROW, ProductOps, Stored};
use crate::backend::{OpenCl, Run};
use crate::error::Result;
use crate::kernels::{MatrixOptions, kernels};
use crate::memory::Memory;
use crate::number::{Real, Sum};
use crate::ocl::{File, Plan, Prepared};
use crate::reduction::Chunks;
use crate::sparse::{Kind, MIDDLE_LANES};
use crate::tuning::{AccessPattern, Family, Parameters};

kernels! {
    file product, after [common, fold, format, row];
    options { matrix: MatrixOptions, in_parts: u32 => IN_PARTS }
    /// `y = A x`.
    kernel multiply<T> given(value_count: usize, columns: usize)
        (n: uint, chunk: uint, stride: uint, cols: uint, rows: in_uint, indices: in_uint,
        values: in_real[value_count], x: in_real[cols * columns], y: out_real[n * columns]);
}

kernels! {
    file product_with, after [common, fold, format, row];
    options { matrix: MatrixOptions }
    /// `y = A x op b`.
    kernel multiply_with<T> given(value_count: usize, cols: usize, columns: usize)
        (n: uint, chunk: uint, stride: uint, rows: in_uint, indices: in_uint, values: in_real[value_count],
        x: in_real[cols * columns], b: in_real[n * columns], y: out_real[n * columns]);
}

kernels! {
    file residual, after [common, fold, format, row];
    options { matrix: MatrixOptions }
    /// `r = b - A x` with the chunk sums of `r.r`.
    kernel residual<T> given(value_count: usize, cols: usize, columns: usize)
        (n: uint, chunk: uint, stride: uint, place: uint, rows: in_uint, indices: in_uint,
        values: in_real[value_count], x: in_real[cols * columns], b: in_real[n * columns],
        r: out_real[n * columns], sums: out_sum[place + columns * n.div_ceil(chunk)]);
}

pub(in crate::backend) static FILES: &[&File] = &[&product::FILE, &product_with::FILE, &residual::FILE];

/// Least entries of a matrix with long rows by which products are launches of their own; and of one with fewer chunks of rows than there are compute
/// units.
const LONG_PLACES: usize = 1 << 23;
const FEW_LONG_PLACES: usize = 1 << 21;

impl OpenCl {
    /// Tells if products by `a` are faster in launches of their own. Fused ones have a group for each chunk of rows, and each of their groups
    /// runs the program: too few groups, and long ones, if there is much to do in each. On an H200 an iteration of CGNR with 20 million entries
    /// in 45 360 rows took 139 us instead of 197, one of FISTA 170 instead of 191. With 2.5 million entries, where the adjoint has 1024 rows,
    /// one of FISTA took 56 us instead of 90, each launch by itself. With 4.6 million in 22 080 rows it made no difference; with 2.8 million in 16 200 it took 80
    /// instead of 57.
    pub(in crate::backend) fn has_long_rows<T: Real>(&self, run: Run<'_>, a: &Stored<T>) -> bool {
        let few = Chunks::of(a.rows).count < self.units() && a.places >= FEW_LONG_PLACES;
        run.tuning.work_group > 1 && a.places >= LONG_ROW * a.rows && (few || a.places >= LONG_PLACES)
    }

    fn plan_multiply<T: Real>(&self, run: Run<'_>, a: &Stored<T>, columns: usize) -> Result<Plan> {
        let chunks = Chunks::of(a.rows);
        // Lanes do not matter without a reduction: one program for all sizes.
        let cut = [chunks.chunk, 1];
        let staged = self.places_to_stage(run, a, columns);
        let reading = match staged {
            Some(_) => AccessPattern::ShortVector,
            None => AccessPattern::of(a.arrangement.kind, a.arrangement.lanes),
        };
        let (common, matrix, found) = self.rows_read(run, (Family::Product, reading), a, a.rows, cut, columns);
        let places = match staged {
            _ if !found.staged => 0,
            Some(places) => places,
            None => self.places_of_part(a, columns, common.work_group),
        };
        let in_parts = u32::from(places > 0 && staged.is_none());
        let options = product::Options { matrix: MatrixOptions { staged: places, ..matrix }, in_parts };
        let kernel = product::multiply::prepare(&self.context, common, &options)?;
        Ok(self.plan_rows(a, found, kernel))
    }

    /// Groups for the rows of a product that nothing is reduced of.
    fn plan_rows<T: Real>(&self, a: &Stored<T>, found: Parameters, kernel: Prepared) -> Plan {
        let items = found.work_group;
        let rows = found.rows_of_group(Chunks::of(a.rows), (items / a.arrangement.lanes).max(1), self.units());
        let longer_groups = match a.arrangement.kind {
            Kind::Adaptive if items > 1 => a.longer[0].div_ceil((items / MIDDLE_LANES).max(1)) + a.longer[1],
            _ => 0,
        };
        Plan { kernel, groups: a.rows.div_ceil(rows) + longer_groups, share: rows }
    }

    fn plan_multiply_with<T: Real>(
        &self,
        run: Run<'_>,
        a: &Stored<T>,
        columns: usize,
        op: Combine,
    ) -> Result<Plan> {
        let cut = [Chunks::of(a.rows).chunk, 1];
        let (common, matrix, found) = self.rows(run, Family::Product, a, a.rows, cut, columns);
        let matrix = MatrixOptions { blend: op as u32, ..matrix };
        let options = product_with::Options { matrix };
        let kernel = product_with::multiply_with::prepare(&self.context, common, &options)?;
        Ok(self.plan_rows(a, found, kernel))
    }

    fn plan_residual<T: Real>(&self, run: Run<'_>, a: &Stored<T>, columns: usize) -> Result<Plan> {
        let chunks = Chunks::of(a.rows);
        let cut = [chunks.chunk, chunks.lanes];
        let (common, matrix, _) = self.rows(run, Family::StepProduct, a, a.rows, cut, columns);
        let kernel = residual::residual::prepare(&self.context, common, &residual::Options { matrix })?;
        Ok(Plan { kernel, groups: chunks.count, share: chunks.chunk })
    }
}

impl<T: Real> ProductOps<T> for OpenCl {
    fn multiply(
        &self,
        run: Run<'_>,
        a: &Stored<T>,
        columns: usize,
        x: &Memory<T>,
        y: &mut Memory<T>,
    ) -> Result<()> {
        let (key, on) = (run.key("multiply", columns, 0).reading(a, a), &self.context);
        let plan = a.plans.get(key, || self.plan_multiply(run, a, columns))?;
        let args = product::multiply::Args {
            value_count: a.value_count(),
            columns,
            n: a.rows,
            chunk: plan.share,
            stride: a.stride,
            cols: a.cols,
            rows: a.pointers.buffer(on)?,
            indices: a.indices.buffer(on)?,
            values: a.values.buffer(on)?,
            x: x.buffer(on)?,
            y: y.buffer_mut(on)?,
        };
        product::multiply::launch(&plan.kernel, plan.groups, args)
    }

    fn multiply_with(
        &self,
        run: Run<'_>,
        a: &Stored<T>,
        columns: usize,
        op: Combine,
        x: &Memory<T>,
        b: &Memory<T>,
        y: &mut Memory<T>,
    ) -> Result<()> {
        let (key, on) = (run.key("multiply_with", columns, op as u32).reading(a, a), &self.context);
        let plan = a.plans.get(key, || self.plan_multiply_with(run, a, columns, op))?;
        let args = product_with::multiply_with::Args {
            value_count: a.value_count(),
            cols: a.cols,
            columns,
            n: a.rows,
            chunk: plan.share,
            stride: a.stride,
            rows: a.pointers.buffer(on)?,
            indices: a.indices.buffer(on)?,
            values: a.values.buffer(on)?,
            x: x.buffer(on)?,
            b: b.buffer(on)?,
            y: y.buffer_mut(on)?,
        };
        product_with::multiply_with::launch(&plan.kernel, plan.groups, args)
    }

    fn residual(
        &self,
        run: Run<'_>,
        a: &Stored<T>,
        columns: usize,
        x: &Memory<T>,
        b: &Memory<T>,
        r: &mut Memory<T>,
        sums: &mut Memory<Sum>,
        place: usize,
    ) -> Result<()> {
        let (key, on) = (run.key("residual", columns, 0).reading(a, a), &self.context);
        let plan = a.plans.get(key, || self.plan_residual(run, a, columns))?;
        let args = residual::residual::Args {
            value_count: a.value_count(),
            cols: a.cols,
            columns,
            n: a.rows,
            chunk: plan.share,
            stride: a.stride,
            place,
            rows: a.pointers.buffer(on)?,
            indices: a.indices.buffer(on)?,
            values: a.values.buffer(on)?,
            x: x.buffer(on)?,
            b: b.buffer(on)?,
            r: r.buffer_mut(on)?,
            sums: sums.buffer_mut(on)?,
        };
        residual::residual::launch(&plan.kernel, plan.groups, args)
    }
}
