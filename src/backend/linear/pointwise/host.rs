//! Operations of the user's own on the host.

use super::{Formula, MOST, PointwiseOps};
use crate::backend::Host;
use crate::backend::run::Run;
use crate::error::Result;
use crate::memory::Memory;
use crate::number::{Arithmetic, Real};
use crate::threads;

/// Elements that a thread takes at least.
const LEAST: usize = 1024;

impl<T: Real> PointwiseOps<T> for Host {
    fn prepare(&self, _: Run<'_>, _: usize, _: &Formula<T>) -> Result<()> {
        Ok(())
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
        let [a, b, c, d] = x;
        let x = [&a.host()?[..n], &b.host()?[..n], &c.host()?[..n], &d.host()?[..n]];
        let arithmetic = Arithmetic::of(run.accumulation);
        threads::each(threads::ChunksMut(&mut y.host_mut()?[..n], LEAST), 1, |k, y| {
            let share = k * LEAST..k * LEAST + y.len();
            formula.values(arithmetic, x.map(|x| &x[share.clone()]), p, y);
        });
        Ok(())
    }
}
