//! Calls of regularised CGNR: over pixels, and halves of an iteration as one launch.

use std::mem::take;
use std::ops::Range;

use super::Engine;
use crate::backend::script::{CgnrShape, CgnrVectors, Pixels, StepCall, StepLaunch};
use crate::error::{Error, Result};
use crate::memory::Memory;
use crate::number::Real;
use crate::solver::engine::inputs::Inputs;
use crate::solver::engine::products::Products;
use crate::solver::engine::regularised::Regularised;
use crate::solver::regularise::{Regularization, edges_of};
use crate::solver::script::{CgnrParts, Operand, Space, VectorId};
use crate::vector::Vector;

/// A vector of each pair, and the others, as a call takes them: `x`, `s`, `d`, `phi`, `r` and `q`.
type Taken<'v, T> = ([[&'v mut Vector<T>; 2]; 4], &'v mut Vector<T>, &'v mut Vector<T>);

impl<T: Real> Engine<T> {
    /// Takes other regularizations.
    pub(super) fn set_weights(&mut self, regularizations: Vec<Regularization>) -> Result<()> {
        let (columns, cols) = (self.columns, self.length(Space::Cols));
        let Some(regularised) = &mut self.regularised else { return Ok(()) };
        let image = edges_of(&regularizations, cols)?;
        if image.edges == 2 && regularised.parts.phi == VectorId::SECOND_FILLER {
            // Other calls name fillers too, which keep their one element.
            self.vectors.push(Vector::zeros(self.spare.device(), cols * columns)?);
            regularised.parts.phi = VectorId::of_index(self.vectors.len() - 1);
        }
        regularised.set_regularizations(image, regularizations);
        Ok(())
    }

    /// Lets the first vector of the pair have the answer.
    pub(super) fn settle_answer(&mut self) -> Result<()> {
        let Some(Regularised { parts, parity, .. }) = &mut self.regularised else { return Ok(()) };
        let pair = parts.x;
        if take(parity) == 1 { self.copy_back(pair) } else { Ok(()) }
    }

    /// Lets the first vector of its pair have the residual after `done` iterations in resident launches, if those to come write that one alone.
    pub(super) fn settle_residual(&mut self, done: usize) -> Result<()> {
        let Some(Regularised { parts, .. }) = &self.regularised else { return Ok(()) };
        let pair = parts.r;
        if !parts.kernels.halves && done % 2 == 1 { self.copy_back(pair) } else { Ok(()) }
    }

    /// Copies the second vector of a pair to the first.
    fn copy_back(&mut self, pair: [VectorId; 2]) -> Result<()> {
        let [even, odd] = self.vectors.get_disjoint_mut(pair.map(VectorId::index)).map_err(|_| not_different())?;
        even.copy_from(odd)
    }

    /// Queues half an iteration, or what it does for pixels if it does not `multiply`: from the vectors of number `now` on, a direction, or a step,
    /// of which `starts` tells if it is that of a start.
    pub(super) fn half(
        &mut self,
        inputs: &Inputs<'_, T>,
        step: StepCall,
        (now, starts): (usize, Option<bool>),
        multiply: bool,
    ) -> Result<()> {
        let (run, operations) = (inputs.run, inputs.device.backend().cgnr::<T>());
        let (shape, parts) = self.cgnr_shape()?;
        let Self { products, vectors, state, .. } = self;
        let vectors = ordered(taken(parts, vectors)?, now, starts);
        let step = StepLaunch { run, call: step, state };
        match (multiply, starts) {
            (false, None) => operations.cgnr_direction(step, shape, vectors.pixels),
            (false, Some(starts)) => operations.cgnr_step(step, shape, starts, vectors.pixels),
            (true, None) => {
                let [a, _] = matrices(products)?;
                operations.cgnr_forward(step, shape, &a.stored(), vectors)
            }
            (true, Some(starts)) => {
                let [_, at] = matrices(products)?;
                operations.cgnr_backward(step, shape, starts, &at.stored(), vectors)
            }
        }
    }

    /// Tells if iterations of CGNR are one launch.
    pub(super) fn cgnr_stays_resident(&self, inputs: &Inputs<'_, T>) -> bool {
        matrices(&self.products).is_ok_and(|[a, at]| {
            let operations = inputs.device.backend().cgnr::<T>();
            operations.cgnr_stays_resident(inputs.run, [&a.stored(), &at.stored()])
        })
    }

    /// Queues iterations of CGNR as one launch; the second number of `iterations` is what word `DONE` is set to.
    pub(super) fn reside_cgnr(
        &mut self,
        inputs: &Inputs<'_, T>,
        step: StepCall,
        iterations: (Range<usize>, usize),
    ) -> Result<()> {
        let (shape, parts) = self.cgnr_shape()?;
        let Self { products, vectors, state, .. } = self;
        // Pairs as they are.
        let vectors = ordered(taken(parts, vectors)?, 0, None);
        let [a, at] = matrices(products)?;
        let operations = inputs.device.backend().cgnr::<T>();
        let step = StepLaunch { run: inputs.run, call: step, state };
        operations.cgnr_resident(step, shape, [&a.stored(), &at.stored()], iterations, vectors)
    }

    fn cgnr_shape(&self) -> Result<(CgnrShape, CgnrParts)> {
        let parts = self.regularised.as_ref().ok_or_else(not_different)?.parts;
        let CgnrParts { image, descent, alpha, weights, sums, .. } = parts;
        let [descent, alpha, weights] = [descent, alpha, weights].map(|scalar| usize::from(scalar.0));
        let (rows, cols) = (self.lengths[0], self.lengths[1]);
        Ok((CgnrShape { image, rows, cols, descent, alpha, weights, sums }, parts))
    }
}

/// Products with `A` and with its adjoint.
fn matrices<T: Real>(products: &[Option<Products<T>>]) -> Result<[&Products<T>; 2]> {
    match (&products[Operand::A.index()], &products[Operand::Adjoint.index()]) {
        (Some(a), Some(at)) => Ok([a, at]),
        _ => Err(not_different()),
    }
}

fn taken<T: Real>(parts: CgnrParts, vectors: &mut [Vector<T>]) -> Result<Taken<'_, T>> {
    let CgnrParts { x, s, d, r, q, phi, .. } = parts;
    let places = [x[0], x[1], s[0], s[1], d[0], d[1], r[0], r[1], phi, q].map(VectorId::index);
    let [x0, x1, s0, s1, d0, d1, r0, r1, phi, q] = vectors.get_disjoint_mut(places).map_err(|_| not_different())?;
    Ok(([[x0, x1], [s0, s1], [d0, d1], [r0, r1]], phi, q))
}

fn numbers<T: Real>([even, odd]: [&mut Vector<T>; 2]) -> [&mut Memory<T>; 2] {
    [even.memory_mut(), odd.memory_mut()]
}

/// Vectors as a call that begins with those of number `now` takes them: a direction, or a step, of which `starts` tells if it is that of a start.
fn ordered<T: Real>(([x, s, d, r], phi, q): Taken<'_, T>, now: usize, starts: Option<bool>) -> CgnrVectors<'_, T> {
    let turned = |turns: bool, [a, b]: [_; 2]| if turns { [b, a] } else { [a, b] };
    let odd = now == 1;
    // A step takes the direction that was made last, and a start the gradient of its own number as the new one.
    let (of_s, of_d) = match starts {
        None => (odd, odd),
        Some(true) => (!odd, odd),
        Some(false) => (odd, !odd),
    };
    let (x, s, d) = (turned(odd, numbers(x)), turned(of_s, numbers(s)), turned(of_d, numbers(d)));
    CgnrVectors { pixels: Pixels { x, s, d, phi: phi.memory_mut() }, r: turned(odd, numbers(r)), q: q.memory_mut() }
}

fn not_different() -> Error {
    Error::Shape { what: "vectors of a CGNR script", expected: 10, found: 0 }
}
