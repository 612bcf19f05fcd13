//! Products with divided rows on a device.

use super::{PART, PIECE, SplitMatrix, SplitOps};
use crate::backend::OpenCl;
use crate::backend::run::Run;
use crate::error::Result;
use crate::kernels::kernels;
use crate::memory::Memory;
use crate::number::Real;
use crate::ocl::{File, Plan};
use crate::tuning::{AccessPattern, Case, Family, LaunchQuery, SizeClass};

kernels! {
    file linear/split, after [common];
    constants [{PART, PIECE}];
    /// Rows within a part, and what each part has of others.
    kernel split<T> given(cols: usize, parts: usize)
        (n: uint, nnz: uint, offsets: in_uint[n + 1], starts: in_uint[parts + 1], indices: in_uint[nnz], values: in_real[nnz],
        x: in_real[cols], y: out_real[n], shared: out_sum[2 * parts]);
    /// Rows of several parts.
    kernel finish_split<T> given(rows: usize)
        (parts: uint, offsets: in_uint[rows + 1], starts: in_uint[parts + 1], shared: in_sum[2 * parts], y: out_real[rows]);
}

pub(in crate::backend) static FILES: &[&File] = &[&split::FILE];

impl OpenCl {
    fn plan_split<T: Real>(&self, run: Run<'_>, a: &SplitMatrix<T>) -> Result<Plan> {
        let reading = Some(AccessPattern::LongRows);
        let case = Case { family: Family::Product, reading, precision: T::PRECISION, size: SizeClass::of(a.rows) };
        let asked = LaunchQuery { case, n: a.rows, chunk: PART, shared: 1, longest: PART, columns: 1 };
        let common = self.common::<T>(run, self.parameters(run, &asked).work_group, 1);
        let kernel = split::split::prepare(&self.context, common, &split::Options::default())?;
        Ok(Plan { kernel, groups: a.parts, share: 1 })
    }

    fn plan_finish_split<T: Real>(&self, run: Run<'_>, a: &SplitMatrix<T>) -> Result<Plan> {
        let (common, ..) = self.without_barriers::<T>(run, a.parts);
        let groups = a.parts.div_ceil(common.work_group);
        let kernel = split::finish_split::prepare(&self.context, common, &split::Options::default())?;
        Ok(Plan { kernel, groups, share: 1 })
    }
}

impl<T: Real> SplitOps<T> for OpenCl {
    fn split_product(&self, run: Run<'_>, a: &SplitMatrix<T>, x: &Memory<T>, y: &mut Memory<T>) -> Result<()> {
        let on = &self.context;
        let within = a.plans.get(run.key("split", 1, 0), || self.plan_split(run, a))?;
        let across = a.plans.get(run.key("finish_split", 1, 0), || self.plan_finish_split(run, a))?;
        let (parts, offsets, starts) = (a.parts, a.offsets.buffer(on)?, a.starts.buffer(on)?);
        // Locked for both launches: another thread's product stands before them or behind.
        self.with_partial(2 * parts, |shared| {
            let args = split::split::Args {
                cols: a.cols,
                parts,
                n: a.rows,
                nnz: a.values.len(),
                offsets,
                starts,
                indices: a.indices.buffer(on)?,
                values: a.values.buffer(on)?,
                x: x.buffer(on)?,
                y: y.buffer_mut(on)?,
                shared,
            };
            split::split::launch(&within.kernel, within.groups, args)?;
            if parts == 1 {
                return Ok(());
            }
            let args =
                split::finish_split::Args { rows: a.rows, parts, offsets, starts, shared, y: y.buffer_mut(on)? };
            split::finish_split::launch(&across.kernel, across.groups, args)
        })
    }
}
