//! Conjugate gradients.
//!
//! ```text
//!   r = b - A x,  p = r                                      start
//!   q = A p                                                  cg_product
//!   alpha = r.r / p.q,  x += alpha p,  r -= alpha q          cg_update
//!   beta = r'.r' / r.r,  p = r' + beta p                     cg_update
//! ```
//!
//! Two launches: `q.q` is summed beside `p.q`, so that `r'.r' = alpha^2 q.q - r.r` is known before `r'` is, and one
//! pass can update all three vectors. `r.r` itself is summed from `r` in every iteration: the estimate enters `beta`
//! alone, and its error, relative `eps alpha^2 q.q / r'.r'`, does not accumulate.
//!
//! Small systems take one launch for many iterations, in which all groups wait for each other twice in each, where the
//! device is known to keep its promises about that (`cl/global_barrier.cl`); a launch whose groups do not all run at once
//! does nothing, and its iterations are done by the two.
//!
//! An operator that is no stored matrix makes `q = A p` by launches of its own, before `cg_product`.
//!
//! Source: michels-2011, algorithm 2; J. R. Shewchuk, "An introduction to the conjugate gradient method without the
//! agonizing pain", 1994, B2; the fusion after Y. Saad, "Practical use of polynomial preconditionings for the
//! conjugate gradient method", SIAM J. Sci. Stat. Comput. 6(4), 1985.

use std::cmp::Ordering;
use std::ops::Range;

use super::driver::{self, Iteration, Observer, Outcome, Status};
use super::engine::copy_columns;
use super::products::Products;
use super::stopping::{Limits, Stopping};
use super::workspace::Workspace;
use crate::backend::cg::{self as operations, CgOps, CgVectors};
use crate::backend::product;
use crate::backend::{Run, SolveState};
use crate::device::Device;
use crate::error::Result;
use crate::memory::Memory;
use crate::number::{Real, Sum};
use crate::operator::{LinearOperator, SharedOperator};
use crate::reduction::Chunks;
use crate::state::HISTORY;
use crate::state::barrier::ABANDONED;
use crate::state::cg::{BARRIER, CONTROL, HISTORY_MASK, ITERATION, MAX_ITERATIONS, STATUS, STOP, TOLERANCE};
use crate::vector::Vector;

struct CgWorkspace<T: Real> {
    a: Products<T>,
    r: Vector<T>,
    p: Vector<T>,
    q: Vector<T>,
    best: Vector<T>,
    state: SolveState,
    /// `r.r` of the last iterations, as they were last looked at.
    ring: Vec<Sum>,
    /// Whether many iterations may be done in one launch.
    resident: bool,
}

/// Conjugate gradients without a preconditioner, for one right-hand side.
pub(super) fn boxed<T: Real>(operator: &SharedOperator<T>) -> Result<Box<dyn Workspace<T>>> {
    let device = operator.device();
    let a = Products::of(operator, 0, 1)?;
    let n = operator.rows();
    let vector = || Vector::zeros(device, n);
    Ok(Box::new(CgWorkspace {
        resident: a.is_fused(),
        a,
        r: vector()?,
        p: vector()?,
        q: vector()?,
        best: vector()?,
        state: SolveState::zeros(&device.place(), [4 * Chunks::of(n).count, CONTROL, STATUS, HISTORY])?,
        ring: vec![Sum::default(); HISTORY],
    }))
}

impl<T: Real> Workspace<T> for CgWorkspace<T> {
    fn solve(
        &mut self,
        device: &Device,
        stopping: &Stopping,
        limits: &[Limits],
        b: &Vector<T>,
        x: &mut Vector<T>,
        observer: &mut Observer<'_>,
    ) -> Result<(Vec<Outcome>, f64)> {
        let limits = limits.first().cloned().unwrap_or_default();
        let mut solve = CgRun { on: self, run: device.run::<T>(), device, b, x, limits, pending: 0 };
        driver::run(&mut solve, stopping, observer)
    }

    fn residual(&self) -> &Vector<T> {
        &self.r
    }

    fn launches(&self) -> usize {
        2 + self.a.launches()
    }

    fn least_squares(&self) -> bool {
        false
    }
}

/// The vectors as launches take them.
fn vectors<'v, T: Real>(
    x: &'v mut Vector<T>,
    r: &'v mut Vector<T>,
    p: &'v mut Vector<T>,
    q: &'v mut Vector<T>,
) -> CgVectors<'v, T> {
    CgVectors { x: x.memory_mut(), r: r.memory_mut(), p: p.memory_mut(), q: q.memory_mut() }
}

/// A solve under way.
struct CgRun<'s, T: Real> {
    on: &'s mut CgWorkspace<T>,
    run: Run<'s>,
    device: &'s Device,
    b: &'s Vector<T>,
    x: &'s mut Vector<T>,
    limits: Limits,
    /// Iterations in resident launches that have not been looked at yet.
    pending: usize,
}

impl<'s, T: Real> CgRun<'s, T> {
    fn operations(&self) -> &'s dyn CgOps<T> {
        operations::on(self.device.backend())
    }

    /// Whether many iterations are one launch.
    fn stays_resident(&self) -> bool {
        let CgWorkspace { a, resident, .. } = &*self.on;
        *resident && self.operations().cg_stays_resident(self.run, &a.stored())
    }

    /// Queues `count` iterations.
    fn iterations(&mut self, count: usize) -> Result<()> {
        if !self.stays_resident() {
            return (0..count).try_for_each(|_| self.step());
        }
        let operations = self.operations();
        let CgWorkspace { a, r, p, q, state, .. } = &mut *self.on;
        self.pending += count;
        operations.cg_resident(self.run, &a.stored(), count, vectors(self.x, r, p, q), state)
    }

    /// Waits, and reads status and history.
    fn look(&mut self, status: &mut [i32]) -> Result<()> {
        let CgWorkspace { state, ring, .. } = &mut *self.on;
        Memory::read_both((&state.status, status), (&state.history, ring))
    }

    /// One iteration.
    fn step(&mut self) -> Result<()> {
        let operations = self.operations();
        let CgWorkspace { r, p, q, state, .. } = &mut *self.on;
        let n = self.x.len();
        operations.cg_update(self.run, n, vectors(self.x, r, p, q), state)?;
        self.product()
    }

    /// `q = A p` with its sums, and the stopping test.
    fn product(&mut self) -> Result<()> {
        let operations = self.operations();
        let CgWorkspace { a, p, q, state, .. } = &mut *self.on;
        a.apply(p, q)?;
        operations.cg_product(self.run, &a.stored(), p.memory(), q.memory_mut(), state)
    }
}

impl<T: Real> Iteration for CgRun<'_, T> {
    fn columns(&self) -> usize {
        1
    }

    fn start(&mut self, budget: &[usize]) -> Result<()> {
        let mut control = [Sum::default(); CONTROL];
        control[TOLERANCE] = Sum::of(self.limits.residual, self.run.accumulation);
        let mut status = [0; STATUS];
        status[MAX_ITERATIONS] = budget.first().map_or(0, |b| *b as i32);
        status[HISTORY_MASK] = HISTORY as i32 - 1;
        let (run, backend) = (self.run, self.device.backend());
        let CgWorkspace { a, r, p, state, .. } = &mut *self.on;
        let count = Chunks::of(self.x.len()).count;
        state.control.write(&control)?;
        state.status.write(&status)?;
        // r = b - A x with the sums of r.r where cg_product looks for them, p = r.
        a.apply(self.x, r)?;
        let (x, b, products) = (self.x.memory(), self.b.memory(), product::on::<T>(backend));
        products.residual(run, &a.stored(), 1, x, b, r.memory_mut(), &mut state.sums, 2 * count)?;
        p.copy_from(r)?;
        self.product()
    }

    fn steps(&mut self, indices: Range<usize>) -> Result<()> {
        self.iterations(indices.len())
    }

    fn status(&mut self) -> Result<Vec<Status>> {
        let mut status = [0; STATUS];
        self.look(&mut status)?;
        let again = std::mem::take(&mut self.pending);
        if status[BARRIER + ABANDONED] != 0 {
            // The groups do not all run at once here: two launches for each iteration, from now on.
            log::info!("{}: groups cannot wait for each other; CG goes on without", self.device.info().name);
            self.on.resident = false;
            status[BARRIER + ABANDONED] = 0;
            self.on.state.status.write(&status)?;
            self.iterations(again)?;
            self.look(&mut status)?;
        }
        Ok(vec![Status { code: status[STOP], iteration: status[ITERATION] as usize }])
    }

    fn stops_at_once(&self) -> bool {
        self.stays_resident()
    }

    fn norms(&self, _: usize, k: usize) -> [f64; 2] {
        [self.on.ring[k % HISTORY].value(self.run.accumulation), 0.0]
    }

    fn excess(&self, _: usize, norms: [f64; 2]) -> f64 {
        self.limits.excess(norms, false)
    }

    fn keep(&mut self, columns: &[usize]) -> Result<()> {
        copy_columns(1, columns, self.x, &mut self.on.best)
    }

    fn restore(&mut self, columns: &[usize]) -> Result<()> {
        copy_columns(1, columns, &self.on.best, self.x)
    }

    fn residual_decides(&self) -> bool {
        true
    }

    fn compare(&self, norms: [f64; 2], others: [f64; 2]) -> Ordering {
        Limits::compare::<T>(norms, others, false)
    }

    fn is_rounding(&mut self, _: usize, _: [f64; 2]) -> Result<bool> {
        Ok(false) // there is no gradient
    }

    fn in_given_units(&self, _: usize, norms: [f64; 2]) -> [f64; 2] {
        self.limits.in_given_units(norms)
    }

    fn build_seconds(&self) -> f64 {
        self.device.programs().seconds
    }
}
