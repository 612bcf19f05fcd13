//! Products with generated matrices on a device: `cl/linear/generated.cl` behind the text of the user.

use super::{GeneratedOps, Generator};
use crate::backend::OpenCl;
use crate::backend::opencl::PART_BYTES;
use crate::backend::run::Run;
use crate::error::Result;
use crate::kernels::{Common, kernels};
use crate::memory::Memory;
use crate::number::Real;
use crate::ocl::{Defines, File, Plan};
use crate::reduction::Chunks;
use crate::tuning::{AccessPattern, Case, Family, LaunchQuery, SizeClass};

/// Text that the kernel puts in the place of `ENTRY`.
#[derive(Clone, Debug)]
pub(crate) struct EntryText(String);

impl Default for EntryText {
    fn default() -> Self {
        Self("column = k; value = 1;".into())
    }
}

impl EntryText {
    fn define(&self, defines: &mut Defines) {
        defines.put_text("ENTRY", &self.0);
    }
}

kernels! {
    file linear/generated, after [common];
    options { entry: EntryText, staged: usize => STAGED }
    /// `y = A x`.
    kernel generated<T>(n: uint, span: uint, cols: uint, entries: uint, x: in_real[cols], y: out_real[n]);
}

pub(in crate::backend) static FILES: &[&File] = &[&generated::FILE];

impl OpenCl {
    fn plan_generated<T: Real>(&self, run: Run<'_>, a: &Generator<T>) -> Result<Plan> {
        let chunks = Chunks::of(a.rows);
        let reading = Some(AccessPattern::Rows);
        let case = Case { family: Family::Product, reading, precision: T::PRECISION, size: SizeClass::of(a.rows) };
        let asked = LaunchQuery { case, n: a.rows, chunk: chunks.chunk, shared: 0, longest: a.entries, columns: 1 };
        let found = self.parameters(run, &asked);
        let common: Common = self.common::<T>(run, found.work_group, 1);
        // A single item would copy all of the vector for each of its rows.
        let staged = if a.staged && common.work_group > 1 { PART_BYTES / T::PRECISION.bytes() } else { 0 };
        let options = generated::Options { entry: EntryText(a.text.clone()), staged };
        let kernel = generated::generated::prepare(&self.context, common, &options)?;
        let rows = found.in_groups_of(common.work_group).rows_of_group(chunks, common.work_group, self.units());
        Ok(Plan { kernel, groups: a.rows.div_ceil(rows), share: rows })
    }

    fn generated_plan<T: Real>(&self, run: Run<'_>, a: &Generator<T>) -> Result<Plan> {
        a.plans.get(run.key("generated", 1, 0), || self.plan_generated(run, a))
    }
}

impl<T: Real> GeneratedOps<T> for OpenCl {
    fn prepare(&self, run: Run<'_>, a: &Generator<T>) -> Result<()> {
        self.generated_plan(run, a).map(drop)
    }

    fn generated_product(&self, run: Run<'_>, a: &Generator<T>, x: &Memory<T>, y: &mut Memory<T>) -> Result<()> {
        let (plan, on) = (self.generated_plan(run, a)?, &self.context);
        let (x, y) = (x.buffer(on)?, y.buffer_mut(on)?);
        let args =
            generated::generated::Args { n: a.rows, span: plan.share, cols: a.cols, entries: a.entries, x, y };
        generated::generated::launch(&plan.kernel, plan.groups, args)
    }
}
