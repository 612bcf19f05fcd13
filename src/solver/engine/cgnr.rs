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
//!
//! # Cost
//!
//! Two launches per iteration; `A` and `A'` are read once each, whatever the number of columns. For each column, vectors of
//! `m` rows: 1 written, 3 read as `q` and `r` are updated and gathered; of `n` unknowns: 3 written, 6 read. Held for each
//! column: 4 vectors of `m` with `b`, 8 of `n` with the answer, 9 with total variation. The paper fused 14 launches
//! into 6.
//!
//! Source: stock-koch-2009, table 1; C. R. Vogel and M. E. Oman, "Iterative
//! methods for total variation denoising", SIAM J. Sci. Comput. 17(1), 1996 (lagged diffusivity).

use std::mem::swap;
use std::ops::Range;

use super::products::Products;
use crate::backend::fused::SolveState;
use crate::backend::fused::cgnr::{CgnrOps, CgnrShape, CgnrVectors, Part};
use crate::device::Device;
use crate::error::Result;
use crate::memory::Memory;
use crate::number::{Accumulation, Real, Sum};
use crate::operator::{LinearOperator, SharedOperator};
use crate::reduction::Chunks;
use crate::solver::regularise::{Correction, shape_of, write_weights};
use crate::solver::run::{Inputs, Look, Status, Workspace};
use crate::solver::stopping::Limits;
use crate::state::cgnr::{
    CONTROL, GRADIENT_LIMIT, GRADIENT_RATIO, HISTORY_MASK, ITERATION, MAX_ITERATIONS, RESIDUAL_LIMIT, STATUS, STOP,
    SumPlaces,
};
use crate::state::{HISTORY, barrier};
use crate::vector::Vector;

/// The vectors of a solve. Pairs change places every iteration.
struct Vectors<T: Real> {
    /// The first is the answer between iterations of even number; outside of a solve it is a vector of one element.
    x: [Vector<T>; 2],
    r: [Vector<T>; 2],
    s: [Vector<T>; 2],
    d: [Vector<T>; 2],
    q: Vector<T>,
    /// Diffusivities of total variation; one element without it.
    phi: Vector<T>,
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
            phi: self.phi.memory_mut(),
        }
    }
}

struct CgnrWorkspace<T: Real> {
    a: Products<T>,
    at: Products<T>,
    shape: CgnrShape,
    corrections: Vec<Correction>,
    vectors: Vectors<T>,
    state: SolveState,
    /// The image that is the present one.
    parity: usize,
    /// Status words, as they were last looked at.
    status: Vec<i32>,
    /// True if many iterations may be done in one launch.
    resident: bool,
}

/// The bytes of the vectors that a set-up allocates, with `b` and `x` of the user, by name.
pub(crate) fn held(rows: u64, cols: u64) -> Vec<(&'static str, u64)> {
    let of_rows = ["b", "residuals", "residuals", "q"].map(|name| (name, rows));
    let of_cols =
        ["x", "images", "gradients", "gradients", "directions", "directions", "diffusivities", "best image"];
    of_rows.into_iter().chain(of_cols.map(|name| (name, cols))).collect()
}

/// Regularised CGNR with one correction for each column.
pub(crate) fn boxed<T: Real>(
    operator: &SharedOperator<T>,
    exponent: i32,
    corrections: Vec<Correction>,
) -> Result<Box<dyn Workspace<T>>> {
    let device = operator.device();
    let shape = shape_of(&corrections, operator.cols())?;
    let columns = shape.columns;
    let a = Products::of(operator, exponent, columns)?;
    let at = Products::of_adjoint(operator, exponent, columns)?;
    let (rows, cols) = (operator.rows(), operator.cols());
    let of_rows = || Vector::zeros(device, rows * columns);
    let of_cols = || Vector::zeros(device, cols * columns);
    let runs = SumPlaces { columns, rows: Chunks::of(rows).count, cols: Chunks::of(cols).count };
    let status = STATUS * columns + barrier::WORDS;
    Ok(Box::new(CgnrWorkspace {
        resident: a.is_fused(),
        a,
        at,
        shape,
        corrections,
        vectors: Vectors {
            x: [Vector::zeros(device, 1)?, of_cols()?],
            r: [of_rows()?, of_rows()?],
            s: [of_cols()?, of_cols()?],
            d: [of_cols()?, of_cols()?],
            q: of_rows()?,
            phi: if shape.edges == 2 { of_cols()? } else { Vector::zeros(device, 1)? },
        },
        state: SolveState::zeros(&device.place(), [runs.len(), CONTROL * columns, status, 2 * HISTORY * columns])?,
        parity: 0,
        status: vec![0; status],
    }))
}

fn operations<T: Real>(device: &Device) -> &dyn CgnrOps<T> {
    device.backend().cgnr()
}

impl<T: Real> CgnrWorkspace<T> {
    /// `alpha`; `r -= alpha q`, `x += alpha d`, `s = A'r - F(x, x)`.
    fn backward(&mut self, inputs: &Inputs<'_, T>, parity: usize) -> Result<()> {
        let (operations, run) = (operations::<T>(inputs.device), inputs.run);
        let Self { at, shape, vectors, state, .. } = self;
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
    fn forward(&mut self, inputs: &Inputs<'_, T>, parity: usize) -> Result<()> {
        let (operations, run) = (operations::<T>(inputs.device), inputs.run);
        let Self { a, shape, vectors, state, .. } = self;
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

    fn write_control(&mut self, limits: &[Limits], accumulation: Accumulation) -> Result<()> {
        let mut control = vec![Sum::default(); CONTROL * limits.len()];
        for ((control, limits), correction) in control.chunks_mut(CONTROL).zip(limits).zip(&self.corrections) {
            let bounds = [
                (RESIDUAL_LIMIT, limits.residual),
                (GRADIENT_LIMIT, limits.gradient),
                (GRADIENT_RATIO, limits.ratio),
            ];
            for (field, value) in bounds {
                control[field] = Sum::of(value, accumulation);
            }
            write_weights(control, &correction.scaled(limits.exponents), accumulation);
        }
        self.state.control.write(&control)
    }

    fn write_status(&mut self, budget: &[usize], iteration: i32) -> Result<()> {
        self.status.fill(0);
        for (status, budget) in self.status.chunks_exact_mut(STATUS).zip(budget) {
            status[ITERATION] = iteration;
            status[MAX_ITERATIONS] = *budget as i32;
            status[HISTORY_MASK] = HISTORY as i32 - 1;
        }
        self.state.status.write(&self.status)
    }

    /// Index of the word that a resident launch sets if it gives up.
    fn abandoned(&self) -> usize {
        STATUS * self.shape.columns + barrier::ABANDONED
    }
}

impl<T: Real> Workspace<T> for CgnrWorkspace<T> {
    fn exchange(&mut self, x: &mut Vector<T>) -> Result<()> {
        let [even, odd] = &mut self.vectors.x;
        // The user gets the vector back that was handed in, even if the copy fails.
        let copied = if std::mem::take(&mut self.parity) == 1 { even.copy_from(odd) } else { Ok(()) };
        swap(x, even);
        copied
    }

    fn answer(&mut self) -> &mut Vector<T> {
        &mut self.vectors.x[self.parity]
    }

    fn start(&mut self, inputs: &Inputs<'_, T>, limits: &[Limits], budget: &[usize]) -> Result<()> {
        self.write_control(limits, inputs.run.accumulation)?;
        self.write_status(budget, -1)?;
        let Self { a, shape, vectors, state, parity, .. } = self;
        let [even, odd] = &mut vectors.x;
        if *parity == 0 {
            odd.copy_from(even)?;
        }
        // The start is a backward pass that leaves x as it is and takes q from r once: what it multiplies by 0 must be finite.
        vectors.d[0].fill(T::default())?;
        vectors.s[1].fill(T::default())?;
        if a.is_fused() {
            vectors.q.fill(T::default())?;
            let (x, b, r) = (odd.memory(), inputs.b.memory(), vectors.r[1].memory_mut());
            let products = inputs.device.backend().product::<T>();
            products.residual(inputs.run, &a.stored(), shape.columns, x, b, r, &mut state.sums, 0)?;
        } else {
            // An operator has rounded A x already: its residual needs no program of its own.
            vectors.r[1].copy_from(inputs.b)?;
            a.apply(odd, &mut vectors.q)?;
        }
        self.backward(inputs, 1)?;
        self.parity = 0;
        self.forward(inputs, 0)
    }

    fn steps(&mut self, inputs: &Inputs<'_, T>, mut indices: Range<usize>) -> Result<()> {
        if !self.stays_resident(inputs) {
            return indices.try_for_each(|index| {
                self.backward(inputs, index % 2)?;
                self.forward(inputs, (index + 1) % 2)
            });
        }
        let Self { a, at, shape, vectors, state, .. } = self;
        let (a, at) = (a.stored(), at.stored());
        operations(inputs.device).cgnr_resident(inputs.run, *shape, [&a, &at], indices, vectors.view(), state)
    }

    fn look(&mut self, _: &Inputs<'_, T>, history: &mut [Sum]) -> Result<Look> {
        Memory::read_both((&self.state.status, &mut self.status), (&self.state.history, history))?;
        let columns: Vec<Status> = self
            .status
            .chunks_exact(STATUS)
            .take(self.shape.columns)
            .map(|s| Status { code: s[STOP], iteration: s[ITERATION].max(0) as usize })
            .collect();
        self.parity = columns.iter().map(|s| s.iteration).max().unwrap_or(0) % 2;
        Ok(Look { columns, abandoned: self.status[self.abandoned()] != 0 })
    }

    fn stays_resident(&self, inputs: &Inputs<'_, T>) -> bool {
        let (a, at) = (&self.a, &self.at);
        self.resident && operations(inputs.device).cgnr_stays_resident(inputs.run, &a.stored(), &at.stored())
    }

    fn leave_residence(&mut self) -> Result<()> {
        self.resident = false;
        let abandoned = self.abandoned();
        self.status[abandoned] = 0;
        self.state.status.write(&self.status)
    }

    fn residual_decides(&self) -> bool {
        // With a correction the answer is not the one of the least residual.
        self.corrections.iter().all(|c| *c == Correction::none())
    }

    fn set_corrections(&mut self, corrections: Vec<Correction>) -> Result<()> {
        let cols = self.vectors.s[0].len() / self.shape.columns;
        let shape = shape_of(&corrections, cols)?;
        let phi = &mut self.vectors.phi;
        if shape.edges == 2 && phi.len() != self.vectors.s[0].len() {
            *phi = Vector::zeros(phi.device(), self.vectors.s[0].len())?;
        }
        (self.shape, self.corrections) = (shape, corrections);
        Ok(())
    }

    fn residual(&self) -> &Vector<T> {
        // A start writes it there.
        &self.vectors.r[0]
    }

    fn present_residual(&mut self, _: &Inputs<'_, T>) -> Result<&Vector<T>> {
        Ok(&self.vectors.r[self.parity])
    }

    fn launches(&self) -> usize {
        let device = self.vectors.q.device();
        if self.a.is_fused() {
            operations::<T>(device).cgnr_launches(device.run::<T>(), [&self.a.stored(), &self.at.stored()])
        } else {
            4 + self.a.launches() + self.at.launches()
        }
    }

    fn least_squares(&self) -> bool {
        true
    }
}
