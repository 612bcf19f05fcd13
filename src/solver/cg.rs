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
//! Source: michels-2011, algorithm 2; J. R. Shewchuk, "An introduction to the conjugate gradient method without the
//! agonizing pain", 1994, B2; the fusion after Y. Saad, "Practical use of polynomial preconditionings for the
//! conjugate gradient method", SIAM J. Sci. Stat. Comput. 6(4), 1985.

use std::ops::ControlFlow;

use super::driver::{self, Method, Observer, Outcome, Status};
use super::report::{Report, Times};
use super::stopping::{HISTORY, Stopping};
use crate::accumulator::Accumulation;
use crate::backend::{AnyStored, CgState, Memory, Run, Stored, Vocabulary, on_backend, stray};
use crate::device::Device;
use crate::error::{Error, Result, same_length};
use crate::matrix::Matrix;
use crate::ocl::Sum;
use crate::real::Real;
use crate::reduction::Chunks;
use crate::state::cg::{CONTROL, HISTORY_MASK, ITERATION, MAX_ITERATIONS, STATUS, STOP, TOLERANCE};
use crate::vector::Vector;

/// Conjugate gradients for `A x = b` with a symmetric positive definite `A`.
///
/// Set up once, solve often: a second solve allocates nothing.
///
/// # Cost
/// Two launches per iteration; the matrix and nine vectors of `n` moved: `p` read and `q` written by the product,
/// `x, r, p, q` read and `x, r, p` written by the update. Four vectors held beside `x` and `b`.
pub struct Cg<'a, T: Real> {
    matrix: &'a Matrix<T>,
    stopping: Stopping,
    workspace: Box<dyn Workspace<T> + 'a>,
}

impl<T: Real> std::fmt::Debug for Cg<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cg").field("matrix", self.matrix).field("stopping", &self.stopping).finish_non_exhaustive()
    }
}

impl<'a, T: Real> Cg<'a, T> {
    /// Allocates the vectors of a solve with `matrix`.
    ///
    /// # Errors
    /// [`Error::Shape`] for a matrix that is not square, [`Error::Option`] for stopping rules out of range,
    /// [`Error::Memory`] when the vectors do not fit beside the matrix.
    pub fn new(matrix: &'a Matrix<T>, stopping: Stopping) -> Result<Self> {
        stopping.validate()?;
        same_length("columns of a matrix for conjugate gradients", matrix.rows(), matrix.cols())?;
        let device = matrix.device();
        let vector = (matrix.rows() * T::PRECISION.bytes()) as u64;
        device.check_memory(matrix.bytes(), &["x", "b", "r", "p", "q", "best x"].map(|name| (name, vector)))?;
        let workspace = on_backend!(device, backend => boxed(backend, device, matrix.forward())?);
        Ok(Self { matrix, stopping, workspace })
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
        same_length("right-hand side", self.matrix.rows(), b.len())?;
        same_length("start guess", self.matrix.cols(), x.len())?;
        let device = self.matrix.device();
        let norm_b = b.norm2()?;
        for (what, norm) in [("the right-hand side", norm_b), ("the start guess", x.norm2()?)] {
            if !norm.is_finite() {
                return Err(Error::NotFinite { what: what.into(), index: 0 });
            }
        }
        let limit = (self.stopping.rtol * norm_b).max(self.stopping.atol);
        let (outcome, times) =
            self.workspace.solve(device, &self.stopping, limit, b.memory(), x.memory_mut(), observer)?;
        Ok(Report::new("cg", self.matrix, &outcome, norm_b, times))
    }
}

/// A [`Cg`] on one of the back ends.
trait Workspace<T: Real> {
    fn solve(
        &mut self,
        device: &Device,
        stopping: &Stopping,
        limit: f64,
        b: &Memory<T>,
        x: &mut Memory<T>,
        observer: &mut Observer<'_>,
    ) -> Result<(Outcome, Times)>;
}

struct On<'a, B: Vocabulary, T: Real> {
    backend: &'a B,
    a: &'a Stored<B, T>,
    r: B::Buffer<T>,
    p: B::Buffer<T>,
    q: B::Buffer<T>,
    best: B::Buffer<T>,
    state: CgState<B>,
}

fn boxed<'a, B: Vocabulary, T: Real>(
    backend: &'a B,
    device: &'a Device,
    a: &'a AnyStored<T>,
) -> Result<Box<dyn Workspace<T> + 'a>> {
    let a = backend.stored(a).ok_or_else(|| stray("the matrix", device))?;
    let vector = || backend.filled(a.rows, T::default());
    Ok(Box::new(On {
        backend,
        a,
        r: vector()?,
        p: vector()?,
        q: vector()?,
        best: vector()?,
        state: CgState {
            sums: backend.filled(3 * Chunks::of(a.rows).count, Sum::default())?,
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
        b: &Memory<T>,
        x: &mut Memory<T>,
        observer: &mut Observer<'_>,
    ) -> Result<(Outcome, Times)> {
        let b = self.backend.buffer(b).ok_or_else(|| stray("the right-hand side", device))?;
        let x = self.backend.buffer_mut(x).ok_or_else(|| stray("the start guess", device))?;
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
    b: &'s B::Buffer<T>,
    x: &'s mut B::Buffer<T>,
    limit: f64,
}

impl<B: Vocabulary, T: Real> Solve<'_, '_, B, T> {
    fn accumulation(&self) -> Accumulation {
        self.run.accumulation
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
        let on = &mut *self.on;
        let count = Chunks::of(on.a.rows).count;
        on.backend.write(&mut on.state.control, &control)?;
        on.backend.write(&mut on.state.status, &status)?;
        // r = b - A x with the sums of r.r where cg_product looks for them, p = r.
        on.backend.residual(self.run, on.a, 1, self.x, self.b, &mut on.r, &mut on.state.sums, 2 * count)?;
        on.backend.copy(&on.r, &mut on.p)?;
        on.backend.cg_product(self.run, on.a, &on.p, &mut on.q, &mut on.state)
    }

    fn step(&mut self, _: usize) -> Result<()> {
        let on = &mut *self.on;
        on.backend.cg_update(self.run, on.a.rows, &on.q, self.x, &mut on.r, &mut on.p, &mut on.state)?;
        on.backend.cg_product(self.run, on.a, &on.p, &mut on.q, &mut on.state)
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
        self.on.backend.copy(self.x, &mut self.on.best)
    }

    fn restore(&mut self, _: usize) -> Result<()> {
        self.on.backend.copy(&self.on.best, self.x)
    }

    fn residual_decides(&self) -> bool {
        true
    }

    fn build_seconds(&self) -> f64 {
        self.device.build_seconds()
    }
}
