//! Products with generated matrices on the host.

use super::{GeneratedOps, Generator};
use crate::backend::Host;
use crate::backend::run::Run;
use crate::backend::sums::summing;
use crate::error::Result;
use crate::memory::Memory;
use crate::number::{Accumulator, Arithmetic, Real};
use crate::threads;

fn product<T: Real, A: Accumulator<T>>(arithmetic: Arithmetic, a: &Generator<T>, x: &[T], y: &mut [T]) {
    let least = (threads::LEAST / a.entries.max(1)).max(1);
    threads::each(y, least, |i, y| {
        let mut sum = A::default();
        for k in 0..a.entries {
            let (column, value) = (a.twin)(arithmetic, i as u32, k as u32);
            let Some(x) = x.get(column as usize) else { break };
            if !value.is_nan() {
                sum = sum.add(A::product(value, *x));
            }
        }
        *y = sum.to_real();
    });
}

impl<T: Real> GeneratedOps<T> for Host {
    fn prepare(&self, _: Run<'_>, _: &Generator<T>) -> Result<()> {
        Ok(())
    }

    fn generated_product(&self, run: Run<'_>, a: &Generator<T>, x: &Memory<T>, y: &mut Memory<T>) -> Result<()> {
        let arithmetic = Arithmetic::of(run.accumulation);
        summing!(run, T, product(arithmetic, a, x.host()?, y.host_mut()?));
        Ok(())
    }
}
