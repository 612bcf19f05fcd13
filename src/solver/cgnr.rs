//! Regularised CGNR: conjugate gradients on the normal equations with a correction term.
//!
//! Minimises `J(x) = |A x - b|² / 2 + R(x)`, where the gradient of `R` at `x` is `F(x, x)` and `F(x, v)` is linear in
//! `v`: `F(x, v) = H(x) v`, with `H` symmetric and positive semidefinite, frozen at `x` (lagged diffusivity for
//! total variation, the violated bounds for a box).
//!
//! # Step length
//!
//! Along `x + alpha d`, with `H` frozen at `x`, the gradient is `g + alpha e` with `e = A'A d + F(x, d)`. It is
//! orthogonal to `d` when `d'(g + alpha e) = 0`, so
//!
//! ```text
//!   alpha = -(g'd) / (d'e),      d'e = |A d|² + d'F(x, d)
//! ```
//!
//! Table 1 of stock-koch-2009 prints `alpha = -(g'e) / f` with `f = d'e`: that does not make the new gradient
//! orthogonal to `d` (for one unknown and `A = a`, it overshoots by the factor `a²`). With `s = -g`,
//! `alpha = s'd / d'e`. Since the frozen model lies above `J` for the terms used here (total variation by the
//! concavity of the square root), this step never increases `J` along a descent direction.
//!
//! # Direction
//!
//! The new direction `d⁺ = s⁺ + beta d` is conjugate to `d`, `d⁺'e = 0`, for `beta = g⁺'e / d'e` as printed. With
//! `e = (g⁺ - g) / alpha` and `d'e = s'd / alpha` this is
//!
//! ```text
//!   beta = (s⁺'s⁺ - s⁺'s) / s'd
//! ```
//!
//! which needs no second product. The paper evaluates `F(x, x⁺)` with the old `x` in `g⁺`; here `F(x⁺, x⁺)` is used,
//! so that `s` is the true gradient of `J`, and `beta` is cut off at 0, which starts over with steepest descent
//! wherever the change of `H` would spoil the direction. At a solution the two coincide, and without a correction
//! both are CGLS (`s⁺'s = 0`).
//!
//! # Launches
//!
//! ```text
//!   cgnr_forward    beta;  d = s + beta d (formed as it is gathered);  q = A d;  |q|², d'F(x, d)
//!   cgnr_backward   alpha; r -= alpha q, x += alpha d (formed as they are gathered);  s = A'r - F(x, x);
//!                   s's, s's_old, s'd, |r|²
//! ```
//!
//! Small systems take one launch for many iterations, in which all groups wait for each other three or four times in
//! each (`cgnr_resident`), under the conditions and with the same way out as in [`cg`](super::cg).
//!
//! An operator that is no stored matrix multiplies by launches of its own, between two halves of each of these.
//! The paper fused 14 launches into 6. Source: stock-koch-2009, table 1; C. R. Vogel and M. E. Oman, "Iterative
//! methods for total variation denoising", SIAM J. Sci. Comput. 17(1), 1996 (lagged diffusivity).

use std::cmp::Ordering;
use std::ops::ControlFlow;
use std::ops::Range;

use super::correction::Correction;
use super::driver::{self, Iteration, Observer, Outcome, Status};
use super::engine::copy_columns;
use super::products::Products;
use super::report::Report;
use super::scaling::one_column;
use super::stopping::{Limits, Stopping};
use super::system::{self, System};
use super::workspace::Workspace;
use crate::backend::cgnr::{self as operations, CgnrOps, CgnrShape, CgnrVectors, Part};
use crate::backend::product::{self, MOST_COLUMNS};
use crate::backend::{Run, SolveState};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::memory::Memory;
use crate::number::{Real, Sum, per_number};
use crate::operator::{LinearOperator, SharedOperator};
use crate::reduction::Chunks;
use crate::state::HISTORY;
use crate::state::barrier;
use crate::state::cgnr::{
    BOX, CONTROL, EPSILON2, GRADIENT_LIMIT, GRADIENT_RATIO, HISTORY_MASK, ITERATION, LOWER, MAX_ITERATIONS,
    RESIDUAL_LIMIT, Runs, SMOOTH, STATUS, STOP, TIKHONOV, UPPER, VARIATION,
};
use crate::vector::Vector;

/// Regularised CGNR for one or several right-hand sides at once, which share each read of the matrix.
///
/// Set up once, solve often: a second solve allocates nothing.
///
/// # Cost
/// Two launches per iteration; `A` and `A'` read once each, whatever the number of columns. For each column, vectors
/// of `m` rows: 1 written, 3 read as `q` and `r` are updated and gathered; of `n` unknowns: 3 written, 6 read. Held
/// for each column: 4 vectors of `m` with `b`, 10 of `n` with the answer.
pub struct Cgnr<T: Real> {
    system: System<T>,
    stopping: Stopping,
    corrections: Vec<Correction>,
    workspace: Box<dyn Workspace<T>>,
}

impl<T: Real> std::fmt::Debug for Cgnr<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cgnr")
            .field("rows", &self.system.operator().rows())
            .field("cols", &self.system.operator().cols())
            .field("stopping", &self.stopping)
            .field("corrections", &self.corrections)
            .finish_non_exhaustive()
    }
}

impl<T: Real> Cgnr<T> {
    /// Allocates the vectors of a solve with `operator`, for as many right-hand sides at once as there are corrections:
    /// 1 to 4 for a [`Matrix`](crate::Matrix), 1 for any other [`LinearOperator`].
    ///
    /// # Errors
    /// [`Error::Option`] when the operator has no adjoint, the matrix no transposed copy, for a weight or a rule out of range, for a `width`
    /// that does not divide the unknowns; [`Error::Memory`] when the vectors do not fit beside the matrix.
    pub fn new(
        operator: impl Into<SharedOperator<T>>,
        corrections: &[Correction],
        stopping: Stopping,
    ) -> Result<Self> {
        set_up(operator.into(), corrections, stopping)
    }

    /// Solves from the start guess in `x`, and leaves the answer there. With several right-hand sides, `b` and `x`
    /// are interleaved (see [`Vector::interleaved`]); there is one report for each.
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::NotFinite`] for NaN or infinity in `b` or `x`, [`Error::DeviceMismatch`],
    /// [`Error::Api`]. Not converging is no error: see [`Report::stop`].
    pub fn solve(&mut self, b: &Vector<T>, x: &mut Vector<T>) -> Result<Vec<Report>> {
        self.solve_observed(b, x, &mut |_| ControlFlow::Continue(()))
    }

    /// [`Cgnr::solve`], with an observer that sees the progress and may end it.
    ///
    /// # Errors
    /// As [`Cgnr::solve`].
    pub fn solve_observed(
        &mut self,
        b: &Vector<T>,
        x: &mut Vector<T>,
        observer: &mut Observer<'_>,
    ) -> Result<Vec<Report>> {
        let Self { system, stopping, workspace, .. } = self;
        system::solve(system, "cgnr", &mut **workspace, stopping, b, x, observer)
    }
}

per_number! {
    fn set_up<T>(
        operator: SharedOperator<T>,
        corrections: &[Correction],
        stopping: Stopping,
    ) -> Result<Cgnr<T>> = allocated;
}

fn allocated<T: Real>(
    operator: SharedOperator<T>,
    corrections: &[Correction],
    stopping: Stopping,
) -> Result<Cgnr<T>> {
    stopping.validate()?;
    if stopping.exact_every > 0 {
        let reason = "regularised CGNR has none; Method::Cgls does".into();
        return Err(Error::Option { name: "exact_every", reason });
    }
    let columns = corrections.len();
    if !(1..=MOST_COLUMNS).contains(&columns) {
        return Err(Error::Option {
            name: "corrections",
            reason: format!("{columns} right-hand sides at once; 1 to {MOST_COLUMNS} are possible"),
        });
    }
    for correction in corrections {
        correction.validate(operator.cols())?;
    }
    let width = corrections.iter().map(|c| c.width).max().unwrap_or(0);
    if let Some(other) = corrections.iter().find(|c| c.edges() > 0 && c.width != width) {
        return Err(Error::Option {
            name: "width",
            reason: format!("{} and {width} differ between right-hand sides", other.width),
        });
    }
    let edges = corrections.iter().map(Correction::edges).max().unwrap_or(0);
    let shape = CgnrShape { columns, width, edges, part: Part::All };
    if columns > 1 && operator.as_matrix().is_none() {
        return Err(one_column(columns));
    }
    let device = operator.device();
    let bytes = |len: usize| (len * columns * T::PRECISION.bytes()) as u64;
    let (m, n) = (bytes(operator.rows()), bytes(operator.cols()));
    let plan = [("b", m), ("residuals", m), ("residuals", m), ("q", m), ("images", n), ("images", n)];
    let rest = ["gradients", "gradients", "directions", "directions", "diffusivities", "best image", "x"];
    let plan: Vec<(&str, u64)> = plan.into_iter().chain(rest.map(|name| (name, n))).collect();
    device.check_memory(operator.bytes(), &plan)?;
    let heaviest = corrections.iter().map(Correction::weight).fold(0.0, f64::max).sqrt();
    let system = System::of_least_squares(&operator, columns, heaviest)?;
    let workspace = boxed(&system, shape, corrections)?;
    Ok(Cgnr { system, stopping, corrections: corrections.to_vec(), workspace })
}

/// The vectors of a solve. Pairs change places every iteration.
struct Vectors<T: Real> {
    x: [Vector<T>; 2],
    r: [Vector<T>; 2],
    s: [Vector<T>; 2],
    d: [Vector<T>; 2],
    q: Vector<T>,
    phi: Memory<T>,
}

impl<T: Real> Vectors<T> {
    /// All of them as launches take them.
    fn view(&mut self) -> CgnrVectors<'_, T> {
        let [x0, x1] = &mut self.x;
        let [r0, r1] = &mut self.r;
        let [s0, s1] = &mut self.s;
        let [d0, d1] = &mut self.d;
        CgnrVectors {
            x: [x0.memory_mut(), x1.memory_mut()],
            r: [r0.memory_mut(), r1.memory_mut()],
            s: [s0.memory_mut(), s1.memory_mut()],
            d: [d0.memory_mut(), d1.memory_mut()],
            q: self.q.memory_mut(),
            phi: &mut self.phi,
        }
    }
}

struct CgnrWorkspace<T: Real> {
    a: Products<T>,
    at: Products<T>,
    shape: CgnrShape,
    corrections: Vec<Correction>,
    best: Vector<T>,
    vectors: Vectors<T>,
    state: SolveState,
    /// The norms of the last iterations, as they were last looked at.
    ring: Vec<Sum>,
    /// Whether many iterations may be done in one launch.
    resident: bool,
}

fn boxed<T: Real>(
    system: &System<T>,
    shape: CgnrShape,
    corrections: &[Correction],
) -> Result<Box<dyn Workspace<T>>> {
    let operator = system.operator();
    let (device, exponent) = (operator.device(), system.exponent());
    let a = Products::of(operator, exponent, shape.columns)?;
    let at = Products::of_adjoint(operator, exponent, shape.columns)?;
    let (columns, rows, cols) = (shape.columns, operator.rows(), operator.cols());
    let of_rows = || Vector::zeros(device, rows * columns);
    let of_cols = || Vector::zeros(device, cols * columns);
    let runs = Runs { columns, rows: Chunks::of(rows).count, cols: Chunks::of(cols).count };
    Ok(Box::new(CgnrWorkspace {
        resident: a.is_fused(),
        a,
        at,
        shape,
        corrections: corrections.to_vec(),
        best: of_cols()?,
        vectors: Vectors {
            x: [of_cols()?, of_cols()?],
            r: [of_rows()?, of_rows()?],
            s: [of_cols()?, of_cols()?],
            d: [of_cols()?, of_cols()?],
            q: of_rows()?,
            phi: device.place().filled(if shape.edges == 2 { cols * columns } else { 1 }, T::default())?,
        },
        state: SolveState::zeros(
            &device.place(),
            [runs.len(), CONTROL * columns, STATUS * columns + barrier::WORDS, 2 * HISTORY * columns],
        )?,
        ring: vec![Sum::default(); 2 * HISTORY * columns],
    }))
}

impl<T: Real> CgnrWorkspace<T> {
    /// `alpha`; `r -= alpha q`, `x += alpha d`, `s = A'r - F(x, x)`.
    fn backward(&mut self, run: Run<'_>, device: &Device, parity: usize) -> Result<()> {
        let (operations, Self { at, shape, vectors, state, .. }) = (operations::on::<T>(device.backend()), self);
        let [before, after] = at.parts(Part::Rows, Part::Pixels);
        if let Some(part) = before {
            let shape = CgnrShape { part, ..*shape };
            operations.cgnr_backward(run, shape, &at.stored(), parity, vectors.view(), state)?;
            at.apply_adjoint(&vectors.r[1 - parity], &mut vectors.s[1 - parity])?;
        }
        if let Some(part) = after {
            let shape = CgnrShape { part, ..*shape };
            operations.cgnr_backward(run, shape, &at.stored(), parity, vectors.view(), state)?;
        }
        Ok(())
    }

    /// `beta`; `d = s + beta d`, `q = A d`; the stopping test.
    fn forward(&mut self, run: Run<'_>, device: &Device, parity: usize) -> Result<()> {
        let (operations, Self { a, shape, vectors, state, .. }) = (operations::on::<T>(device.backend()), self);
        let [before, after] = a.parts(Part::Pixels, Part::Rows);
        if let Some(part) = before {
            let shape = CgnrShape { part, ..*shape };
            operations.cgnr_forward(run, shape, &a.stored(), parity, vectors.view(), state)?;
            a.apply(&vectors.d[1 - parity], &mut vectors.q)?;
        }
        if let Some(part) = after {
            let shape = CgnrShape { part, ..*shape };
            operations.cgnr_forward(run, shape, &a.stored(), parity, vectors.view(), state)?;
        }
        Ok(())
    }
}

impl<T: Real> Workspace<T> for CgnrWorkspace<T> {
    fn solve(
        &mut self,
        device: &Device,
        stopping: &Stopping,
        limits: &[Limits],
        b: &Vector<T>,
        x: &mut Vector<T>,
        observer: &mut Observer<'_>,
    ) -> Result<(Vec<Outcome>, f64)> {
        let limits = limits.to_vec();
        self.vectors.x[0].copy_from(x)?;
        let mut solve = CgnrRun { on: self, run: device.run::<T>(), device, b, limits, parity: 0, pending: 0..0 };
        let result = driver::run(&mut solve, stopping, observer)?;
        let parity = solve.parity;
        x.copy_from(&self.vectors.x[parity])?;
        Ok(result)
    }

    fn residual(&self) -> &Vector<T> {
        // A start writes it there.
        &self.vectors.r[0]
    }

    fn launches(&self) -> usize {
        if self.a.is_fused() { 2 } else { 4 + self.a.launches() + self.at.launches() }
    }

    fn least_squares(&self) -> bool {
        true
    }
}

/// A solve under way.
struct CgnrRun<'s, T: Real> {
    on: &'s mut CgnrWorkspace<T>,
    run: Run<'s>,
    device: &'s Device,
    b: &'s Vector<T>,
    limits: Vec<Limits>,
    /// Which of the two images is the present one.
    parity: usize,
    /// Iterations in resident launches that have not been looked at yet.
    pending: Range<usize>,
}

impl<'s, T: Real> CgnrRun<'s, T> {
    fn operations(&self) -> &'s dyn CgnrOps<T> {
        operations::on(self.device.backend())
    }

    fn write_control(&mut self) -> Result<()> {
        let mut control = vec![Sum::default(); CONTROL * self.limits.len()];
        for ((control, limits), correction) in
            control.chunks_mut(CONTROL).zip(&self.limits).zip(&self.on.corrections)
        {
            let correction = correction.scaled(limits.exponents);
            // A column without total variation beside one that has it: 0 times phi must be 0.
            let epsilon = if correction.variation > 0.0 { correction.epsilon } else { 1.0 };
            for (field, value) in [
                (RESIDUAL_LIMIT, limits.residual),
                (GRADIENT_LIMIT, limits.gradient),
                (GRADIENT_RATIO, limits.ratio),
                (TIKHONOV, correction.tikhonov),
                (SMOOTH, correction.smooth),
                (VARIATION, correction.variation),
                (EPSILON2, epsilon * epsilon),
                (BOX, correction.bound_weight),
                (LOWER, correction.lower),
                (UPPER, correction.upper),
            ] {
                control[field] = Sum::of(value, self.run.accumulation);
            }
        }
        self.on.state.control.write(&control)
    }

    fn write_status(&mut self, budget: &[usize], iteration: i32) -> Result<()> {
        let mut status = vec![0; STATUS * budget.len() + barrier::WORDS];
        for (status, budget) in status.chunks_exact_mut(STATUS).zip(budget) {
            status[ITERATION] = iteration;
            status[MAX_ITERATIONS] = *budget as i32;
            status[HISTORY_MASK] = HISTORY as i32 - 1;
        }
        self.on.state.status.write(&status)
    }

    /// Whether many iterations are one launch.
    fn stays_resident(&self) -> bool {
        let CgnrWorkspace { a, at, resident, .. } = &*self.on;
        *resident && self.operations().cgnr_stays_resident(self.run, &a.stored(), &at.stored())
    }

    /// Waits, and reads status and history.
    fn look(&mut self, status: &mut [i32]) -> Result<()> {
        let CgnrWorkspace { state, ring, .. } = &mut *self.on;
        Memory::read_both((&state.status, status), (&state.history, ring))
    }

    fn begin(&mut self, budget: &[usize]) -> Result<()> {
        self.write_control()?;
        self.write_status(budget, -1)?;
        let (run, device) = (self.run, self.device);
        let CgnrWorkspace { a, shape, vectors, state, .. } = &mut *self.on;
        let [even, odd] = &mut vectors.x;
        if self.parity == 0 {
            odd.copy_from(even)?;
        }
        // The start is a backward pass with alpha = 0: what it multiplies by 0 must be finite.
        vectors.d[0].fill(T::default())?;
        vectors.q.fill(T::default())?;
        vectors.s[1].fill(T::default())?;
        a.apply(odd, &mut vectors.r[1])?;
        let (x, b, r) = (odd.memory(), self.b.memory(), vectors.r[1].memory_mut());
        let products = product::on::<T>(device.backend());
        products.residual(run, &a.stored(), shape.columns, x, b, r, &mut state.sums, 0)?;
        self.on.backward(run, device, 1)?;
        self.parity = 0;
        self.on.forward(run, device, 0)
    }
}

impl<T: Real> Iteration for CgnrRun<'_, T> {
    fn columns(&self) -> usize {
        self.limits.len()
    }

    fn start(&mut self, budget: &[usize]) -> Result<()> {
        self.begin(budget)?;
        if self.limits.iter().any(Limits::waits) {
            // The first norms set the limits that depend on them; the start is repeated with those in force.
            self.status()?;
            for c in 0..self.limits.len() {
                let first = self.norms(c, 0);
                self.limits[c].set_first(first);
            }
            self.begin(budget)?;
        }
        Ok(())
    }

    fn steps(&mut self, mut indices: Range<usize>) -> Result<()> {
        if !self.stays_resident() {
            return indices.try_for_each(|index| {
                self.on.backward(self.run, self.device, index % 2)?;
                self.on.forward(self.run, self.device, (index + 1) % 2)
            });
        }
        let start = if self.pending.is_empty() { indices.start } else { self.pending.start };
        self.pending = start..indices.end;
        let operations = self.operations();
        let CgnrWorkspace { a, at, shape, vectors, state, .. } = &mut *self.on;
        let (a, at) = (a.stored(), at.stored());
        operations.cgnr_resident(self.run, *shape, [&a, &at], indices, vectors.view(), state)
    }

    fn status(&mut self) -> Result<Vec<Status>> {
        let met = STATUS * self.limits.len();
        let mut status = vec![0; met + barrier::WORDS];
        self.look(&mut status)?;
        let again = std::mem::take(&mut self.pending);
        if status[met + barrier::ABANDONED] != 0 {
            // The groups do not all run at once here: two launches for each iteration, from now on.
            log::info!("{}: groups cannot wait for each other; CGNR goes on without", self.device.info().name);
            self.on.resident = false;
            status[met + barrier::ABANDONED] = 0;
            self.on.state.status.write(&status)?;
            self.steps(again)?;
            self.look(&mut status)?;
        }
        let statuses: Vec<Status> = status
            .chunks_exact(STATUS)
            .take(self.limits.len())
            .map(|s| Status { code: s[STOP], iteration: s[ITERATION].max(0) as usize })
            .collect();
        self.parity = statuses.iter().map(|s| s.iteration).max().unwrap_or(0) % 2;
        Ok(statuses)
    }

    fn stops_at_once(&self) -> bool {
        self.stays_resident()
    }

    fn norms(&self, c: usize, k: usize) -> [f64; 2] {
        let at = 2 * ((k % HISTORY) * self.limits.len() + c);
        [at, at + 1].map(|at| self.on.ring[at].value(self.run.accumulation))
    }

    fn excess(&self, c: usize, norms: [f64; 2]) -> f64 {
        self.limits[c].excess(norms, true)
    }

    fn keep(&mut self, columns: &[usize]) -> Result<()> {
        let CgnrWorkspace { best, vectors, .. } = &mut *self.on;
        copy_columns(self.limits.len(), columns, &vectors.x[self.parity], best)
    }

    fn restore(&mut self, columns: &[usize]) -> Result<()> {
        let CgnrWorkspace { best, vectors, .. } = &mut *self.on;
        copy_columns(self.limits.len(), columns, best, &mut vectors.x[self.parity])
    }

    fn residual_decides(&self) -> bool {
        // With a correction the answer is not the one of the least residual.
        self.on.corrections.iter().all(|c| *c == Correction::none())
    }

    fn compare(&self, norms: [f64; 2], others: [f64; 2]) -> Ordering {
        Limits::compare::<T>(norms, others, true)
    }

    fn is_rounding(&mut self, c: usize, norms: [f64; 2]) -> Result<bool> {
        let x = self.on.vectors.x[self.parity].column_norms(self.limits.len())?;
        Ok(self.limits[c].is_rounding(norms, x[c].to_f64()))
    }

    fn in_given_units(&self, c: usize, norms: [f64; 2]) -> [f64; 2] {
        self.limits[c].in_given_units(norms)
    }

    fn build_seconds(&self) -> f64 {
        self.device.programs().seconds
    }
}
