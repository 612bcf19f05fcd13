//! Limits of steps on the host: `cl/script/step_limit.cl`.

use std::ops::Range;

use super::super::host::running;
use super::LimitOps;
use crate::backend::Host;
use crate::backend::script::state::StepLaunch;
use crate::error::Result;
use crate::memory::Memory;
use crate::number::{Arithmetic, Real, Sum};
use crate::reduction::Chunks;
use crate::threads;

/// Elements of a piece of work.
const SPAN: usize = 1 << 13;

/// A NaN counts as nothing: other tests tell of it.
fn larger<T: Real>(a: T, b: T) -> T {
    if b > a { b } else { a }
}

impl<T: Real> LimitOps<T> for Host {
    fn step_limit(&self, step: StepLaunch<'_>, n: usize, [above, d]: [&Memory<T>; 2], place: usize) -> Result<()> {
        let StepLaunch { run, call, state } = step;
        let (above, d) = (above.host()?, d.host()?);
        let (status, sums) = (state.status.host()?, state.sums.host_mut()?);
        let (count, columns) = (Chunks::of(n).count, call.columns);
        let (arithmetic, zero) = (Arithmetic::of(run.accumulation), T::default());
        let ratio = |above: T, d: T| match (d < zero, above > zero) {
            (false, _) => zero,
            (true, true) => arithmetic.quotient(zero - d, above),
            (true, false) => T::from_f64(f64::INFINITY),
        };
        let running = running(call, status);
        for c in (0..columns).filter(|c| running[*c]) {
            let of_piece = |rows: Range<usize>| {
                let elements = rows.start * columns..rows.end * columns;
                let own = above[elements.clone()].iter().zip(&d[elements]).skip(c).step_by(columns);
                own.fold(zero, |most, (above, d)| larger(most, ratio(*above, *d)))
            };
            let most = threads::fold(n, SPAN, of_piece, larger).unwrap_or(zero).to_f64();
            let own = &mut sums[place + c * count..][..count];
            own.fill(Sum::default());
            if let Some(first) = own.first_mut() {
                *first = Sum::of(if most.is_finite() { most } else { -1.0 }, run.accumulation);
            }
        }
        Ok(())
    }
}
