//! Calls of conjugate gradients in kernels of their own.

use std::ops::Range;

use super::Engine;
use crate::backend::script::{CgVectors, StepCall, StepLaunch};
use crate::error::{Error, Result};
use crate::number::Real;
use crate::solver::engine::inputs::Inputs;
use crate::solver::engine::products::Products;
use crate::solver::script::{CgParts, Operand, VectorId, X};
use crate::vector::Vector;

impl<T: Real> Engine<T> {
    /// Queues the product or the updates of conjugate gradients.
    pub(super) fn cg(&mut self, inputs: &Inputs<'_, T>, step: StepCall, multiplies: bool) -> Result<()> {
        let (run, operations) = (inputs.run, inputs.device.backend().cg::<T>());
        let Self { script, products, vectors, state, .. } = self;
        let (cg, a) = parts(script.cg, products)?;
        let [x, r, p, q, m] = cg_vectors(cg, vectors)?;
        let step = StepLaunch { run, call: step, state };
        if multiplies {
            a.apply(p, q)?;
            let m = cg.m.map(|_| m.memory());
            operations.cg_product(step, cg.places, &a.stored(), (m, p.memory()), q.memory_mut())
        } else {
            operations.cg_update(step, cg.places, r.len(), taken(cg, [x, r, p, q, m]))
        }
    }

    /// Tells if iterations of conjugate gradients are one launch.
    pub(super) fn cg_stays_resident(&self, inputs: &Inputs<'_, T>) -> bool {
        let a = self.products[Operand::A.index()].as_ref().filter(|a| a.is_fused());
        a.is_some_and(|a| inputs.device.backend().cg::<T>().cg_stays_resident(inputs.run, &a.stored()))
    }

    /// Queues iterations of conjugate gradients as one launch; the second number of `iterations` is what word `DONE` is set to.
    pub(super) fn reside_cg(
        &mut self,
        inputs: &Inputs<'_, T>,
        step: StepCall,
        iterations: (Range<usize>, usize),
    ) -> Result<()> {
        let Self { script, products, vectors, state, .. } = self;
        let (cg, a) = parts(script.cg, products)?;
        let vectors = taken(cg, cg_vectors(cg, vectors)?);
        let operations = inputs.device.backend().cg::<T>();
        let step = StepLaunch { run: inputs.run, call: step, state };
        operations.cg_resident(step, cg.places, &a.stored(), iterations, vectors)
    }
}

/// Parts of a script of conjugate gradients, and the products with its matrix.
fn parts<T: Real>(cg: Option<CgParts>, products: &[Option<Products<T>>]) -> Result<(CgParts, &Products<T>)> {
    match (cg, &products[Operand::A.index()]) {
        (Some(cg), Some(a)) => Ok((cg, a)),
        _ => Err(no_parts()),
    }
}

/// The vectors `x`, `r`, `p`, `q`, and the diagonal or what stands for it.
fn cg_vectors<T: Real>(cg: CgParts, vectors: &mut [Vector<T>]) -> Result<[&mut Vector<T>; 5]> {
    let places = [X, cg.r, cg.p, cg.q, cg.m.unwrap_or(VectorId::FILLER)].map(VectorId::index);
    vectors.get_disjoint_mut(places).map_err(|_| no_parts())
}

fn taken<T: Real>(cg: CgParts, [x, r, p, q, m]: [&mut Vector<T>; 5]) -> CgVectors<'_, T> {
    let m = cg.m.map(|_| m.memory());
    CgVectors { m, x: x.memory_mut(), r: r.memory_mut(), p: p.memory_mut(), q: q.memory_mut() }
}

fn no_parts() -> Error {
    Error::Shape { what: "parts of a script with kernels of its own", expected: 1, found: 0 }
}
