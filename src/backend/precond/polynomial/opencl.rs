//! Steps of polynomials on a device: `cl/precond/polynomial.cl`.

use super::{Given, PolynomialOps};
use crate::backend::OpenCl;
use crate::backend::linear::product::Stored;
use crate::backend::run::Run;
use crate::error::Result;
use crate::kernels::{MatrixOptions, kernels};
use crate::memory::Memory;
use crate::number::Real;
use crate::ocl::{File, Plan};
use crate::reduction::Chunks;
use crate::tuning::Family;

kernels! {
    file precond/polynomial, after [common, fold, format, row];
    options { matrix: MatrixOptions }
    /// `before = z + keep (z - before) + step m (b - A z)`.
    kernel polynomial_step<T> given(value_count: usize)
        (n: uint, chunk: uint, stride: uint, keep: real, step: real, rows: in_uint, indices: in_uint,
        values: in_real[value_count], z: in_real[n], b: in_real[n], m: in_real[n], before: out_real[n], w: out_real[n]);
}

pub(in crate::backend) static FILES: &[&File] = &[&polynomial::FILE];

impl OpenCl {
    fn plan_polynomial_step<T: Real>(&self, run: Run<'_>, a: &Stored<T>) -> Result<Plan> {
        let chunks = Chunks::of(a.rows);
        let cut = [chunks.chunk, chunks.lanes];
        let (common, matrix, _) = self.rows(run, Family::StepProduct, a, a.rows, cut, 1);
        let options = polynomial::Options { matrix };
        let kernel = polynomial::polynomial_step::prepare(&self.context, common, &options)?;
        Ok(Plan { kernel, groups: chunks.count, share: chunks.chunk })
    }
}

impl<T: Real> PolynomialOps<T> for OpenCl {
    fn polynomial_step(
        &self,
        run: Run<'_>,
        a: &Stored<T>,
        [keep, step]: [T; 2],
        given: Given<'_, T>,
        before: &mut Memory<T>,
        w: &mut Memory<T>,
    ) -> Result<()> {
        let (key, on) = (run.key("polynomial_step", 1, 0).reading(a, a), &self.context);
        let plan = a.plans.get(key, || self.plan_polynomial_step(run, a))?;
        let args = polynomial::polynomial_step::Args {
            value_count: a.value_count(),
            n: a.rows,
            chunk: plan.share,
            stride: a.stride,
            keep,
            step,
            rows: a.pointers.buffer(on)?,
            indices: a.indices.buffer(on)?,
            values: a.values.buffer(on)?,
            z: given.z.buffer(on)?,
            b: given.b.buffer(on)?,
            m: given.m.buffer(on)?,
            before: before.buffer_mut(on)?,
            w: w.buffer_mut(on)?,
        };
        polynomial::polynomial_step::launch(&plan.kernel, plan.groups, args)
    }
}
