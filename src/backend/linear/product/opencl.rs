//! Products on a device: `cl/linear/product.cl`, `cl/linear/product_with.cl`.

use super::{Combine, LONG_ROW, Product, ProductOps, Stored};
use crate::backend::OpenCl;
use crate::backend::opencl::PART_BYTES;
use crate::backend::run::Run;
use crate::error::Result;
use crate::kernels::{Common, MatrixOptions, kernels};
use crate::memory::Memory;
use crate::number::{Real, Sum};
use crate::ocl::{File, Plan, Prepared};
use crate::reduction::Chunks;
use crate::sparse::{Kind, LONG_LANES, MIDDLE_LANES};
use crate::tuning::{AccessPattern, Case, Family, LaunchQuery, Parameters, SizeClass};

kernels! {
    file linear/product, after [common, fold, format, row];
    options { matrix: MatrixOptions, in_parts: u32 => IN_PARTS }
    /// `y = A x`.
    kernel multiply<T> given(value_count: usize, columns: usize)
        (n: uint, chunk: uint, stride: uint, cols: uint, rows: in_uint, indices: in_uint,
        values: in_real[value_count], x: in_real[cols * columns], y: out_real[n * columns]);
}

kernels! {
    file linear/product_with, after [common, fold, format, row];
    options { matrix: MatrixOptions }
    /// `y = A x op b`, or `y = b - A x`.
    kernel multiply_with<T> given(value_count: usize, cols: usize, columns: usize)
        (n: uint, chunk: uint, stride: uint, rows: in_uint, indices: in_uint, values: in_real[value_count],
        x: in_real[cols * columns], b: in_real[n * columns], y: out_real[n * columns]);
}

pub(in crate::backend) static FILES: &[&File] = &[&product::FILE, &product_with::FILE];

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
}

impl<T: Real> ProductOps<T> for OpenCl {
    fn multiply(&self, run: Run<'_>, ax: Product<'_, T>, y: &mut Memory<T>) -> Result<()> {
        let (Product { a, columns, x }, on) = (ax, &self.context);
        let key = run.key("multiply", columns, 0).reading(a, a);
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
        ax: Product<'_, T>,
        op: Combine,
        b: &Memory<T>,
        y: &mut Memory<T>,
    ) -> Result<()> {
        let (Product { a, columns, x }, on) = (ax, &self.context);
        let key = run.key("multiply_with", columns, op as u32).reading(a, a);
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
}

/// Least mean entries of a row for which a vector is copied to local memory.
const LEAST_GATHERED: usize = 8;

/// Tells if a format lies by columns, in the order of its rows.
fn is_by_columns(kind: Kind) -> bool {
    matches!(kind, Kind::EllpackR | Kind::Ellpack | Kind::Sliced)
}

impl OpenCl {
    /// Options and launch parameters of a kernel that multiplies by `a` in chunks of `chunk` rows and reduces in `lanes` lanes; for
    /// work on `n` rows in all.
    pub(in crate::backend) fn rows<T: Real>(
        &self,
        run: Run<'_>,
        family: Family,
        a: &Stored<T>,
        n: usize,
        cut: [usize; 2],
        columns: usize,
    ) -> (Common, MatrixOptions, Parameters) {
        let reading = AccessPattern::of(a.arrangement.kind, a.arrangement.lanes);
        self.rows_read(run, (family, reading), a, n, cut, columns)
    }

    /// [`OpenCl::rows`] with the way of reading.
    pub(in crate::backend) fn rows_read<T: Real>(
        &self,
        run: Run<'_>,
        (family, reading): (Family, AccessPattern),
        a: &Stored<T>,
        n: usize,
        [chunk, lanes]: [usize; 2],
        columns: usize,
    ) -> (Common, MatrixOptions, Parameters) {
        let arrangement = a.arrangement;
        let shared = match a.longer {
            // Neighbouring items take neighbouring rows, 32 of them at once.
            [0, 0] if arrangement.kind == Kind::Dense => 32 * arrangement.lanes,
            [0, 0] => arrangement.lanes,
            [_, 0] => MIDDLE_LANES,
            _ => LONG_LANES,
        };
        let case = Case { family, reading: Some(reading), precision: T::PRECISION, size: SizeClass::of(n) };
        let found = self.parameters(run, &LaunchQuery { case, n, chunk, shared, longest: a.longest, columns });
        let common =
            Common { columns, registers: found.registers, ..self.common::<T>(run, found.work_group, lanes) };
        let matrix = MatrixOptions::of(arrangement, found.loads);
        (common, matrix, found.in_groups_of(common.work_group))
    }

    /// Places of local memory for the vector of a product, if each group should copy it there: if it fits, and if neighbouring items gather
    /// from it often enough.
    ///
    /// Measured on an H200: with 2048 to 4096 columns, rows of 10 to 40 entries take .73 to .90 of the time in fp32, and .91 to 1.02
    /// in fp64 with 512 to 2048. A vector of 32 KiB takes 1.08 to 1.16, rows of 5 entries take .95 to 1.08.
    pub(in crate::backend) fn places_to_stage<T: Real>(
        &self,
        run: Run<'_>,
        a: &Stored<T>,
        columns: usize,
    ) -> Option<usize> {
        // Powers of two: one program serves many sizes.
        let places = (a.cols * columns).next_power_of_two();
        let (items, mean) = (run.tuning.work_group, a.places / a.rows.max(1));
        let (bytes, sums) = (places * T::PRECISION.bytes(), columns * items * size_of::<Sum>());
        let info = self.context.info();
        let fits = run.tuning.may_stage(bytes, info) && (bytes + sums) as u64 <= info.local_memory;
        let by_columns = a.arrangement.kind == Kind::Sorted || is_by_columns(a.arrangement.kind);
        let gathers = mean >= LEAST_GATHERED && 2 * mean * items.min(a.rows) >= a.cols;
        (by_columns && fits && gathers).then_some(places)
    }

    /// Places of local memory for a part of the vector of a product that is copied part by part, in formats that can do that: 16 KiB, as in the paper.
    pub(in crate::backend) fn places_of_part<T: Real>(
        &self,
        a: &Stored<T>,
        columns: usize,
        work_group: usize,
    ) -> usize {
        let places = PART_BYTES / T::PRECISION.bytes();
        let bytes = (PART_BYTES + columns * work_group * size_of::<Sum>()) as u64;
        let fits = bytes <= self.context.info().local_memory && work_group > 1;
        if fits && is_by_columns(a.arrangement.kind) { places } else { 0 }
    }

    /// Chunks of a group in a resident launch that multiplies by `a`: the same number for every group, as many as it can work on side
    /// by side or a multiple. Lanes that share a row keep all items busy with one chunk.
    pub(in crate::backend) fn resident_share<T: Real>(
        &self,
        run: Run<'_>,
        chunks: Chunks,
        work_group: usize,
        a: &Stored<T>,
    ) -> usize {
        let row_lanes = if work_group > 1 { a.arrangement.lanes } else { 1 };
        let at_once = (work_group / chunks.lanes / row_lanes).max(1);
        chunks.count.div_ceil(run.tuning.resident_groups.max(1)).next_multiple_of(at_once).max(1)
    }
}
