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
//! A diagonal preconditioner `M` changes the formulas and not the launches: `p = M r` at the start (`cg_direction`), `r.z` with
//! `z = M r` for `r.r` in `alpha` and `beta`, `q.Mq` for `q.q` in the estimate. The stopping test is of `r.r` all the same. Each
//! launch reads a vector more.
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

use std::mem::swap;
use std::ops::Range;
use std::sync::Arc;

use super::products::Products;
use crate::backend::fused::SolveState;
use crate::backend::fused::cg::{CgOps, CgVectors};
use crate::device::Device;
use crate::error::Result;
use crate::memory::Memory;
use crate::number::{Real, Sum};
use crate::operator::{LinearOperator, SharedOperator};
use crate::reduction::Chunks;
use crate::solver::run::{Inputs, Look, Status, Workspace};
use crate::solver::stopping::Limits;
use crate::state::HISTORY;
use crate::state::barrier::ABANDONED;
use crate::state::cg::{BARRIER, CONTROL, HISTORY_MASK, ITERATION, MAX_ITERATIONS, RUNS, STATUS, STOP, TOLERANCE};
use crate::vector::Vector;

struct CgWorkspace<T: Real> {
    a: Products<T>,
    /// An operator that is a diagonal.
    preconditioner: Option<SharedOperator<T>>,
    /// Entries of the diagonal, as the solve under way began with them.
    m: Option<Arc<Vector<T>>>,
    /// The answer during a solve, else a vector of one element.
    x: Vector<T>,
    r: Vector<T>,
    p: Vector<T>,
    q: Vector<T>,
    state: SolveState,
    /// Status words, as they were last looked at.
    status: [i32; STATUS],
    /// True if many iterations may be done in one launch.
    resident: bool,
}

/// Conjugate gradients without a preconditioner or with a diagonal one, for one right-hand side.
pub(crate) fn boxed<T: Real>(
    operator: &SharedOperator<T>,
    preconditioner: Option<&SharedOperator<T>>,
) -> Result<Box<dyn Workspace<T>>> {
    let runs = RUNS[usize::from(preconditioner.is_some())];
    let device = operator.device();
    let a = Products::of(operator, 0, 1)?;
    let n = operator.rows();
    let vector = || Vector::zeros(device, n);
    let mut p = vector()?;
    let m = diagonal(preconditioner);
    if let Some(m) = &m {
        // One of another device fails here, and not in a solve.
        p.copy_from(m)?;
    }
    Ok(Box::new(CgWorkspace {
        resident: a.is_fused(),
        a,
        preconditioner: preconditioner.cloned(),
        m,
        x: Vector::zeros(device, 1)?,
        r: vector()?,
        p,
        q: vector()?,
        state: SolveState::zeros(&device.place(), [runs * Chunks::of(n).count, CONTROL, STATUS, HISTORY])?,
        status: [0; STATUS],
    }))
}

fn operations<T: Real>(device: &Device) -> &dyn CgOps<T> {
    device.backend().cg()
}

/// The entries of a diagonal preconditioner.
fn diagonal<T: Real>(preconditioner: Option<&SharedOperator<T>>) -> Option<Arc<Vector<T>>> {
    preconditioner.and_then(|operator| operator.as_diagonal())
}

impl<T: Real> CgWorkspace<T> {
    /// Matrix, vectors and state, as launches take them.
    fn parts(&mut self) -> (&Products<T>, CgVectors<'_, T>, &mut SolveState) {
        let Self { a, m, x, r, p, q, state, .. } = self;
        let m = m.as_deref().map(Vector::memory);
        let vectors = CgVectors { m, x: x.memory_mut(), r: r.memory_mut(), p: p.memory_mut(), q: q.memory_mut() };
        (a, vectors, state)
    }

    /// `q = A p` with its sums, and the stopping test.
    fn product(&mut self, inputs: &Inputs<'_, T>) -> Result<()> {
        let Self { a, p, q, .. } = self;
        a.apply(p, q)?;
        let (a, vectors, state) = self.parts();
        operations(inputs.device).cg_product(inputs.run, &a.stored(), vectors, state)
    }
}

impl<T: Real> Workspace<T> for CgWorkspace<T> {
    fn exchange(&mut self, x: &mut Vector<T>) -> Result<()> {
        swap(x, &mut self.x);
        Ok(())
    }

    fn answer(&mut self) -> &mut Vector<T> {
        &mut self.x
    }

    fn start(&mut self, inputs: &Inputs<'_, T>, limits: &[Limits], budget: &[usize]) -> Result<()> {
        let mut control = [Sum::default(); CONTROL];
        let limit = limits.first().map_or(0.0, |limits| limits.residual);
        control[TOLERANCE] = Sum::of(limit, inputs.run.accumulation);
        let mut status = [0; STATUS];
        status[MAX_ITERATIONS] = budget.first().map_or(0, |b| *b as i32);
        status[HISTORY_MASK] = HISTORY as i32 - 1;
        self.m = diagonal(self.preconditioner.as_ref());
        let Self { a, m, x, r, p, state, .. } = self;
        let count = Chunks::of(inputs.b.len()).count;
        state.control.write(&control)?;
        state.status.write(&status)?;
        // r = b - A x with the sums of r.r where cg_product looks for them, p = M r.
        a.apply(x, r)?;
        let (x, b, products) = (x.memory(), inputs.b.memory(), inputs.device.backend().product::<T>());
        products.residual(inputs.run, &a.stored(), 1, x, b, r.memory_mut(), &mut state.sums, 2 * count)?;
        match m.as_deref().map(Vector::memory) {
            // A start without iterations has no direction.
            None if status[MAX_ITERATIONS] == 0 => {}
            None => p.copy_from(r)?,
            Some(m) => {
                let operations = operations(inputs.device);
                operations.cg_direction(inputs.run, inputs.b.len(), m, r.memory(), p.memory_mut(), state)?;
            }
        }
        self.product(inputs)
    }

    fn steps(&mut self, inputs: &Inputs<'_, T>, indices: Range<usize>) -> Result<()> {
        let operations = operations(inputs.device);
        if self.stays_resident(inputs) {
            let (a, vectors, state) = self.parts();
            return operations.cg_resident(inputs.run, &a.stored(), indices.len(), vectors, state);
        }
        indices.into_iter().try_for_each(|_| {
            let (_, vectors, state) = self.parts();
            operations.cg_update(inputs.run, inputs.b.len(), vectors, state)?;
            self.product(inputs)
        })
    }

    fn look(&mut self, _: &Inputs<'_, T>, history: &mut [Sum]) -> Result<Look> {
        let Self { state, status, .. } = self;
        Memory::read_both((&state.status, status), (&state.history, history))?;
        let column = Status { code: status[STOP], iteration: status[ITERATION] as usize };
        Ok(Look { columns: vec![column], abandoned: status[BARRIER + ABANDONED] != 0 })
    }

    fn numbers(&self) -> usize {
        1
    }

    fn stays_resident(&self, inputs: &Inputs<'_, T>) -> bool {
        self.resident && operations(inputs.device).cg_stays_resident(inputs.run, &self.a.stored())
    }

    fn leave_residence(&mut self) -> Result<()> {
        self.resident = false;
        self.status[BARRIER + ABANDONED] = 0;
        self.state.status.write(&self.status)
    }

    fn residual(&self) -> &Vector<T> {
        &self.r
    }

    fn launches(&self) -> usize {
        2 + self.a.launches()
    }
}
