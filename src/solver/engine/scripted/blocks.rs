//! Queues products, in one launch or several, and calls over a Krylov basis.

use super::{Engine, Written};
use crate::backend::script::{Addition, Basis, Blend, StepCall, StepLaunch, Then};
use crate::error::{Result, same_length};
use crate::number::Real;
use crate::solver::engine::inputs::Inputs;
use crate::solver::script::{Apart, B, Call, Launch, Operand, OverBasis, Space, VectorId};
use crate::vector::Vector;

impl<T: Real> Engine<T> {
    /// Part of a product that operators compute, into the spare vector.
    pub(super) fn apply(&mut self, inputs: &Inputs<'_, T>, launch: &Launch) -> Result<()> {
        let Launch::Product { of: which, x, .. } = launch else { return Ok(()) };
        let Self { products, vectors, spare: y, .. } = self;
        let Some(products) = &mut products[which.index()] else {
            return same_length("operators of a script", 1, 0);
        };
        let x = if *x == B { inputs.b } else { &vectors[x.index()] };
        match which {
            Operand::Adjoint | Operand::SubsetAdjoint(_) => products.apply_adjoint(x, y),
            _ => products.apply(x, y),
        }
    }

    /// A product, into the spare vector.
    pub(super) fn product(
        &mut self,
        inputs: &Inputs<'_, T>,
        step: StepCall,
        launch: &Launch,
        blend: Blend,
    ) -> Result<()> {
        self.apply(inputs, launch)?;
        let Launch::Product { of: which, x, w, z, .. } = launch else { return Ok(()) };
        let Self { products, vectors, spare: y, state, .. } = self;
        let Some(products) = &mut products[which.index()] else {
            return same_length("operators of a script", 1, 0);
        };
        let vector = |v: &VectorId| if *v == B { inputs.b } else { &vectors[v.index()] };
        let (stored, x) = products.apply_factors(vector(x))?;
        let read = [x, vector(w), vector(z)].map(Vector::memory);
        let operations = inputs.device.backend().script::<T>();
        let step = StepLaunch { run: inputs.run, call: step, state };
        operations.step_product(step, &stored.read(), blend, read, y.memory_mut())
    }

    /// A product whose program and sums are launches of their own.
    pub(super) fn product_apart(&mut self, inputs: &Inputs<'_, T>, call: &Call, apart: &Apart) -> Result<()> {
        let Launch::Product { y, blend, .. } = &call.launch else { return Ok(()) };
        let (run, operations) = (inputs.run, inputs.device.backend().script::<T>());
        if apart.has_program {
            let step = self.step_call(call.block, true);
            operations.step_scalars(StepLaunch { run, call: step, state: &mut self.state })?;
        }
        let step = self.step_call(apart.bare, true);
        let blend = Blend { dots: [false; 2], free: true, ..*blend };
        Written::new(self, y.index()).engine.product(inputs, step, &call.launch, blend)?;
        apart.sums.iter().try_for_each(|sums| self.call(inputs, sums))
    }

    pub(super) fn over_basis(
        &mut self,
        inputs: &Inputs<'_, T>,
        step: StepCall,
        (of, call): (Space, OverBasis),
    ) -> Result<()> {
        let (run, operations) = (inputs.run, inputs.device.backend().basis::<T>());
        let Self { bases, vectors, state, .. } = self;
        let [basis, other] = match (of, bases) {
            (Space::Cols, [rows, cols]) => [cols, rows],
            (_, [rows, cols]) => [rows, cols],
        };
        let Some(basis) = basis else { return same_length("bases of a space", 1, 0) };
        let most = basis.most();
        let mut step = StepLaunch { run, call: step, state };
        let mut add = |addition: Addition, v: VectorId, basis: &mut Basis<T>| {
            operations.basis_add(step.lend(), addition, vectors[v.index()].memory_mut(), basis)
        };
        match call {
            OverBasis::Project { w, count } => {
                operations.basis_project(step.lend(), count, vectors[w.index()].memory(), basis)?;
                operations.basis_fold(step, count, false, basis)
            }
            OverBasis::Reproject { w, count } => {
                add(Addition { count, adds: true, fresh: false, then: Then::Project }, w, basis)?;
                operations.basis_fold(step, count, true, basis)
            }
            OverBasis::Append { w, count } => {
                add(Addition { count, adds: true, fresh: false, then: Then::Append }, w, basis)
            }
            OverBasis::Follow { v, count } => {
                let Some(other) = other else { return same_length("bases of a script", 2, 1) };
                basis.exchange_arrays(other);
                let done = add(Addition { count, adds: true, fresh: false, then: Then::Nothing }, v, basis);
                basis.exchange_arrays(other);
                done
            }
            OverBasis::Keep { v, count } => {
                add(Addition { count, adds: false, fresh: false, then: Then::Append }, v, basis)
            }
            OverBasis::Drop { dropped, count } => operations.basis_drop(step, (dropped.0.into(), count), basis),
            OverBasis::Rotate { step: column } => operations.basis_rotate(step, column, true, basis),
            OverBasis::Norm { step: column } => operations.basis_rotate(step, column, false, basis),
            OverBasis::Solve { depth } => operations.basis_solve(step, depth.0.into(), basis),
            OverBasis::Combine { v, fresh } => {
                add(Addition { count: most, adds: true, fresh, then: Then::Nothing }, v, basis)
            }
        }
    }
}
