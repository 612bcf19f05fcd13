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
//! An operator that is no stored matrix makes `q = A p` by launches of its own, before `cg_product`.
//!
//! Source: michels-2011, algorithm 2; J. R. Shewchuk, "An introduction to the conjugate gradient method without the
//! agonizing pain", 1994, B2; the fusion after Y. Saad, "Practical use of polynomial preconditionings for the
//! conjugate gradient method", SIAM J. Sci. Stat. Comput. 6(4), 1985.

use std::ops::ControlFlow;

use super::driver::{self, Method, Observer, Outcome, Status};
use super::products::Products;
use super::report::{Report, Times};
use super::stopping::{HISTORY, Stopping};
use crate::accumulator::Accumulation;
use crate::backend::{CgState, Run, Vocabulary, on_backend};
use crate::device::Device;
use crate::error::{Error, Result, same_length};
use crate::ocl::Sum;
use crate::operator::LinearOperator;
use crate::real::Real;
use crate::reduction::Chunks;
use crate::state::cg::{CONTROL, HISTORY_MASK, ITERATION, MAX_ITERATIONS, STATUS, STOP, TOLERANCE};
use crate::vector::{Vector, of, of_mut};

/// Conjugate gradients for `A x = b` with a symmetric positive definite `A`.
///
/// Set up once, solve often: a second solve allocates nothing.
///
/// # Cost
/// Two launches per iteration; the matrix and nine vectors of `n` moved: `p` read and `q` written by the product,
/// `x, r, p, q` read and `x, r, p` written by the update. Four vectors held beside `x` and `b`.
pub struct Cg<'a, T: Real> {
    operator: &'a dyn LinearOperator<T>,
    stopping: Stopping,
    workspace: Box<dyn Workspace<T> + 'a>,
}

impl<T: Real> std::fmt::Debug for Cg<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cg")
            .field("rows", &self.operator.rows())
            .field("stopping", &self.stopping)
            .finish_non_exhaustive()
    }
}

impl<'a, T: Real> Cg<'a, T> {
    /// Allocates the vectors of a solve with `operator`: a [`Matrix`](crate::Matrix), or any other
    /// [`LinearOperator`].
    ///
    /// # Errors
    /// [`Error::Shape`] for a matrix that is not square, [`Error::Option`] for stopping rules out of range,
    /// [`Error::Memory`] when the vectors do not fit beside the matrix.
    pub fn new(operator: &'a dyn LinearOperator<T>, stopping: Stopping) -> Result<Self> {
        stopping.validate()?;
        same_length("columns of a matrix for conjugate gradients", operator.rows(), operator.cols())?;
        let device = operator.device();
        let vector = (operator.rows() * T::PRECISION.bytes()) as u64;
        device.check_memory(operator.bytes(), &["x", "b", "r", "p", "q", "best x"].map(|name| (name, vector)))?;
        let workspace = on_backend!(device, backend => boxed(backend, operator)?);
        Ok(Self { operator, stopping, workspace })
    }

    /// Solves from the start guess in `x`, and leaves the answer there.
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::NotFinite`] for NaN or infinity in `b` or `x`, [`Error::DeviceMismatch`],
    /// [`Error::Api`]. Not converging is no error: see [`Report::stop`].
    pub fn solve(&mut self, b: &Vector<T>, x: &mut Vector<T>) -> Result<Report> {
        self.solve_observed(b, x, &mut |_| ControlFlow::Continue(()))
    }

    /// [`Cg::solve`], with an observer that sees the progress and may end it.
    ///
    /// # Errors
    /// As [`Cg::solve`].
    pub fn solve_observed(
        &mut self,
        b: &Vector<T>,
        x: &mut Vector<T>,
        observer: &mut Observer<'_>,
    ) -> Result<Report> {
        same_length("right-hand side", self.operator.rows(), b.len())?;
        same_length("start guess", self.operator.cols(), x.len())?;
        let device = self.operator.device();
        let norm_b = b.norm2()?;
        for (what, norm) in [("the right-hand side", norm_b), ("the start guess", x.norm2()?)] {
            if !norm.is_finite() {
                return Err(Error::NotFinite { what: what.into(), index: 0 });
            }
        }
        let limit = (self.stopping.rtol * norm_b).max(self.stopping.atol);
        let (outcome, times) = self.workspace.solve(device, &self.stopping, limit, b, x, observer)?;
        let launches = 2 + if self.operator.as_matrix().is_some() { 0 } else { self.operator.launches() };
        Ok(Report::new("cg", self.operator, launches, &outcome, norm_b, times))
    }
}

/// A [`Cg`] on one of the back ends.
trait Workspace<T: Real> {
    fn solve(
        &mut self,
        device: &Device,
        stopping: &Stopping,
        limit: f64,
        b: &Vector<T>,
        x: &mut Vector<T>,
        observer: &mut Observer<'_>,
    ) -> Result<(Outcome, Times)>;
}

struct On<'a, B: Vocabulary, T: Real> {
    backend: &'a B,
    a: Products<'a, B, T>,
    r: Vector<T>,
    p: Vector<T>,
    q: Vector<T>,
    best: Vector<T>,
    state: CgState<B>,
}

fn boxed<'a, B: Vocabulary, T: Real>(
    backend: &'a B,
    operator: &'a dyn LinearOperator<T>,
) -> Result<Box<dyn Workspace<T> + 'a>> {
    let device = operator.device();
    let a = match operator.as_matrix() {
        Some(matrix) => Products::fused(backend, device, matrix.forward())?,
        None => Products::made_by(backend, operator)?,
    };
    let n = operator.rows();
    let vector = || Vector::zeros(device, n);
    Ok(Box::new(On {
        backend,
        a,
        r: vector()?,
        p: vector()?,
        q: vector()?,
        best: vector()?,
        state: CgState {
            sums: backend.filled(3 * Chunks::of(n).count, Sum::default())?,
            control: backend.filled(CONTROL, Sum::default())?,
            status: backend.filled(STATUS, 0)?,
            history: backend.filled(HISTORY, Sum::default())?,
        },
    }))
}

impl<B: Vocabulary, T: Real> Workspace<T> for On<'_, B, T> {
    fn solve(
        &mut self,
        device: &Device,
        stopping: &Stopping,
        limit: f64,
        b: &Vector<T>,
        x: &mut Vector<T>,
        observer: &mut Observer<'_>,
    ) -> Result<(Outcome, Times)> {
        let mut solve = Solve { on: self, run: Run::of::<T>(device), device, b, x, limit };
        let (outcomes, times) = driver::run(&mut solve, stopping, observer)?;
        // One column in, one out.
        let outcome = outcomes.into_iter().next();
        outcome.map(|o| (o, times)).ok_or(Error::Shape { what: "outcomes of a solve", expected: 1, found: 0 })
    }
}

/// A solve under way.
struct Solve<'s, 'a, B: Vocabulary, T: Real> {
    on: &'s mut On<'a, B, T>,
    run: Run<'s>,
    device: &'s Device,
    b: &'s Vector<T>,
    x: &'s mut Vector<T>,
    limit: f64,
}

impl<B: Vocabulary, T: Real> Solve<'_, '_, B, T> {
    fn accumulation(&self) -> Accumulation {
        self.run.accumulation
    }

    /// `q = A p` with its sums, and the stopping test.
    fn product(&mut self) -> Result<()> {
        let On { backend, a, p, q, state, .. } = &mut *self.on;
        a.apply(p, q)?;
        let (p, q) = (of(*backend, self.device, p)?, of_mut(*backend, self.device, q)?);
        backend.cg_product(self.run, a.stored(), p, q, state)
    }
}

impl<B: Vocabulary, T: Real> Method for Solve<'_, '_, B, T> {
    fn columns(&self) -> usize {
        1
    }

    fn start(&mut self, budget: &[usize]) -> Result<()> {
        let mut control = [Sum::default(); CONTROL];
        control[TOLERANCE] = Sum::of(self.limit * self.limit, self.accumulation());
        let mut status = [0; STATUS];
        status[MAX_ITERATIONS] = budget.first().map_or(0, |b| *b as i32);
        status[HISTORY_MASK] = HISTORY as i32 - 1;
        let (run, device) = (self.run, self.device);
        let On { backend, a, r, p, state, .. } = &mut *self.on;
        let count = Chunks::of(self.x.len()).count;
        backend.write(&mut state.control, &control)?;
        backend.write(&mut state.status, &status)?;
        // r = b - A x with the sums of r.r where cg_product looks for them, p = r.
        a.apply(self.x, r)?;
        let (x, b) = (of(*backend, device, self.x)?, of(*backend, device, self.b)?);
        backend.residual(run, a.stored(), 1, x, b, of_mut(*backend, device, r)?, &mut state.sums, 2 * count)?;
        p.copy_from(r)?;
        self.product()
    }

    fn step(&mut self, _: usize) -> Result<()> {
        let device = self.device;
        let On { backend, r, p, q, state, .. } = &mut *self.on;
        let n = self.x.len();
        let (q, x) = (of(*backend, device, q)?, of_mut(*backend, device, self.x)?);
        let (r, p) = (of_mut(*backend, device, r)?, of_mut(*backend, device, p)?);
        backend.cg_update(self.run, n, q, x, r, p, state)?;
        self.product()
    }

    fn status(&mut self) -> Result<Vec<Status>> {
        let mut status = [0; STATUS];
        self.on.backend.read(&self.on.state.status, 0, &mut status)?;
        Ok(vec![Status { code: status[STOP], iteration: status[ITERATION] as usize }])
    }

    fn history(&mut self, _: usize, from: usize, to: usize) -> Result<Vec<[f64; 2]>> {
        let mut ring = vec![Sum::default(); HISTORY];
        self.on.backend.read(&self.on.state.history, 0, &mut ring)?;
        Ok((from..=to).map(|k| [ring[k % HISTORY].value(self.accumulation()), 0.0]).collect())
    }

    fn excess(&self, _: usize, norms: [f64; 2]) -> f64 {
        if norms[0] == 0.0 { 0.0 } else { norms[0] / (self.limit * self.limit) }
    }

    fn keep(&mut self, _: usize) -> Result<()> {
        self.on.best.copy_from(self.x)
    }

    fn restore(&mut self, _: usize) -> Result<()> {
        self.x.copy_from(&self.on.best)
    }

    fn residual_decides(&self) -> bool {
        true
    }

    fn build_seconds(&self) -> f64 {
        self.device.build_seconds()
    }
}
