//! Operations of the user's own on a device: `cl/linear/pointwise.cl` behind the text of the formula.

use super::{Formula, MOST, PointwiseOps};
use crate::backend::OpenCl;
use crate::backend::run::Run;
use crate::error::Result;
use crate::kernels::kernels;
use crate::memory::Memory;
use crate::number::Real;
use crate::ocl::{Defines, File, Plan};

/// Text that a kernel puts in the place of `FORMULA`.
#[derive(Clone, Debug)]
pub(crate) struct FormulaText(String);

impl Default for FormulaText {
    fn default() -> Self {
        Self("x0".into())
    }
}

impl FormulaText {
    fn define(&self, defines: &mut Defines) {
        defines.put_text("FORMULA", &format!("({})", self.0.trim()));
    }
}

kernels! {
    file linear/pointwise, after [common];
    options { formula: FormulaText }
    /// `y` = the formula of each element.
    kernel pointwise<T>(n: uint, span: uint, p0: real, p1: real, p2: real, p3: real, x0: in_real[n], x1: in_real[n], x2: in_real[n],
        x3: in_real[n], y: out_real[n]);
}

pub(in crate::backend) static FILES: &[&File] = &[&pointwise::FILE];

impl OpenCl {
    /// The kernel of a formula, and elements of a group, for `n` elements.
    fn formula<T: Real>(&self, run: Run<'_>, n: usize, formula: &Formula<T>) -> Result<Plan> {
        let (common, groups, share) = self.without_barriers::<T>(run, n);
        let key = run.key("pointwise", 1, common.work_group as u32);
        let plan = formula.plans.get(key, || {
            let options = pointwise::Options { formula: FormulaText(formula.text.clone()) };
            let kernel = pointwise::pointwise::prepare(&self.context, common, &options)?;
            Ok(Plan { kernel, groups, share })
        })?;
        Ok(Plan { groups, share, ..plan })
    }
}

impl<T: Real> PointwiseOps<T> for OpenCl {
    fn prepare(&self, run: Run<'_>, n: usize, formula: &Formula<T>) -> Result<()> {
        self.formula(run, n, formula).map(drop)
    }

    fn evaluate(
        &self,
        run: Run<'_>,
        n: usize,
        formula: &Formula<T>,
        x: [&Memory<T>; MOST],
        p: [T; MOST],
        y: &mut Memory<T>,
    ) -> Result<()> {
        let (plan, on) = (self.formula(run, n, formula)?, &self.context);
        let ([p0, p1, p2, p3], [x0, x1, x2, x3]) = (p, x);
        let (x0, x1, x2, x3) = (x0.buffer(on)?, x1.buffer(on)?, x2.buffer(on)?, x3.buffer(on)?);
        let y = y.buffer_mut(on)?;
        let args = pointwise::pointwise::Args { n, span: plan.share, p0, p1, p2, p3, x0, x1, x2, x3, y };
        pointwise::pointwise::launch(&plan.kernel, plan.groups, args)
    }
}
