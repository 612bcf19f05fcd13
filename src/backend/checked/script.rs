//! Spot checks of the launches of scripts.

use std::ops::Range;

use super::spots::Parts;
use super::{Checked, Expected, Launch, Resident};
use crate::backend::Host;
use crate::backend::linear::product::Stored;
use crate::backend::run::{Origin, Run};
use crate::backend::script::{
    Addition, Basis, BasisOps, Blend, CgOps, CgPlaces, CgVectors, Listing, PASS_VECTORS, Pass, RESIDENT_MATRICES,
    RESIDENT_VECTORS, ScriptOps, ScriptState, StepCall, cg, product_spots,
};
use crate::error::Result;
use crate::memory::Memory;
use crate::number::Real;

impl<D: Origin> Checked<D> {
    /// The history that a launch of a script should leave.
    pub(super) fn expect_script<T: Real>(
        &self,
        launch: Launch,
        run: Run<'_>,
        call: StepCall,
        state: &ScriptState,
    ) -> Result<Option<Expected<'_>>> {
        self.expect::<T>(launch, run, || {
            let mut copy = state.on_host()?;
            let before = copy.history.on_host()?;
            ScriptOps::<T>::step_scalars(&Host, run, call, &mut copy)?;
            Ok([before, copy.history])
        })
    }
}

impl<D: Origin> Checked<D> {
    /// Does `work`, a product of a script as [`ScriptOps::step_product`] has it, and compares what comes of it.
    fn check_product<T: Real>(
        &self,
        launch: Launch,
        run: Run<'_>,
        call: StepCall,
        a: &Stored<T>,
        blend: Blend,
        [x, w, z]: [&Memory<T>; 3],
        y: &mut Memory<T>,
        state: &mut ScriptState,
        work: impl FnOnce(&mut Memory<T>, &mut ScriptState) -> Result<()>,
    ) -> Result<()> {
        let counter = self.product_to_compare(launch, run, a, call.columns);
        let sample = a.sample();
        let before = counter.map(|_| state.on_host()).transpose()?;
        let whole = counter.filter(|_| sample.is_none()).map(|_| y.on_host()).transpose()?;
        let expected = self.expect_script::<T>(launch, run, call, state)?;
        work(y, state)?;
        self.compare_norms::<T>(run, expected, &state.history)?;
        let (Some(counter), Some(mut before)) = (counter, before) else { return Ok(()) };
        if let Some(sample) = sample {
            let parts = Parts::of(&sample, a.rows, call.columns);
            let beside =
                |vector: &Memory<T>, is_read: bool| vector.parts(if is_read { &parts.beside } else { &[] });
            let (w, z) = (beside(w, blend.takes_w())?, beside(z, blend.dots[1])?);
            let (x, y) = (x.parts(&parts.gathered)?, y.parts(&parts.beside)?);
            let vectors = ([&x[..], &w, &z], &y[..]);
            let spots = product_spots(run, call, (&sample, a.rows), blend, vectors, &parts.chunks, &mut before)?;
            // Nothing is left to compare if every column has stopped: kernels may multiply before they know.
            return spots.map_or(Ok(()), |spots| {
                let found = (&y[..], &state.sums);
                self.compare_spots(run, a.arrangement.kind, counter, (&sample, &parts, &spots), found)
            });
        }
        let Some(mut want) = whole else { return Ok(()) };
        let (matrix, x, w, z) = (a.on_host()?, x.on_host()?, w.on_host()?, z.on_host()?);
        Host.step_product(run, call, &matrix, blend, [&x, &w, &z], &mut want, &mut before)?;
        if before.has_stopped(call)? {
            return Ok(());
        }
        self.compare(run, a.arrangement.kind, counter, [y, &want], [&state.sums, &before.sums])
    }
}

impl<T: Real, D: ScriptOps<T> + Origin> ScriptOps<T> for Checked<D> {
    fn step_scalars(&self, run: Run<'_>, call: StepCall, state: &mut ScriptState) -> Result<()> {
        let expected = self.expect_script::<T>(Launch::Scalars, run, call, state)?;
        self.device.step_scalars(run, call, state)?;
        self.compare_norms::<T>(run, expected, &state.history)
    }

    fn step_product(
        &self,
        run: Run<'_>,
        call: StepCall,
        a: &Stored<T>,
        blend: Blend,
        vectors: [&Memory<T>; 3],
        y: &mut Memory<T>,
        state: &mut ScriptState,
    ) -> Result<()> {
        let launch = if blend.shifted { Launch::StepResidual } else { Launch::StepProduct };
        self.check_product(launch, run, call, a, blend, vectors, y, state, |y, state| {
            self.device.step_product(run, call, a, blend, vectors, y, state)
        })
    }

    fn step_vectors(
        &self,
        run: Run<'_>,
        call: StepCall,
        n: usize,
        pass: &Pass,
        vectors: [&mut Memory<T>; PASS_VECTORS],
        state: &mut ScriptState,
    ) -> Result<()> {
        let expected = self.expect_script::<T>(Launch::Pass, run, call, state)?;
        self.device.step_vectors(run, call, n, pass, vectors, state)?;
        self.compare_norms::<T>(run, expected, &state.history)
    }

    fn script_multiplies_apart(&self, run: Run<'_>, a: &Stored<T>) -> bool {
        self.device.script_multiplies_apart(run, a)
    }

    fn script_stays_resident(&self, run: Run<'_>, matrices: &[&Stored<T>], columns: usize) -> bool {
        self.device.script_stays_resident(run, matrices, columns)
    }

    fn step_resident(
        &self,
        run: Run<'_>,
        call: StepCall,
        listing: &Listing,
        iterations: (Range<usize>, usize),
        matrices: [&Stored<T>; RESIDENT_MATRICES],
        vectors: [&mut Memory<T>; RESIDENT_VECTORS],
        state: &mut ScriptState,
    ) -> Result<()> {
        self.note_resident::<T>(Resident::Script, run);
        self.device.step_resident(run, call, listing, iterations, matrices, vectors, state)
    }
}

impl<T: Real, D: CgOps<T> + Origin> CgOps<T> for Checked<D> {
    fn cg_product(
        &self,
        run: Run<'_>,
        call: StepCall,
        places: CgPlaces,
        a: &Stored<T>,
        (m, p): (Option<&Memory<T>>, &Memory<T>),
        q: &mut Memory<T>,
        state: &mut ScriptState,
    ) -> Result<()> {
        let (blend, vectors) = (cg::blend(m.is_some()), [p, m.unwrap_or(p), p]);
        self.check_product(Launch::Cg, run, call, a, blend, vectors, q, state, |q, state| {
            self.device.cg_product(run, call, places, a, (m, p), q, state)
        })
    }

    fn cg_update(
        &self,
        run: Run<'_>,
        call: StepCall,
        places: CgPlaces,
        n: usize,
        vectors: CgVectors<'_, T>,
        state: &mut ScriptState,
    ) -> Result<()> {
        self.device.cg_update(run, call, places, n, vectors, state)
    }

    fn cg_stays_resident(&self, run: Run<'_>, a: &Stored<T>) -> bool {
        self.device.cg_stays_resident(run, a)
    }

    fn cg_resident(
        &self,
        run: Run<'_>,
        call: StepCall,
        places: CgPlaces,
        a: &Stored<T>,
        iterations: (Range<usize>, usize),
        vectors: CgVectors<'_, T>,
        state: &mut ScriptState,
    ) -> Result<()> {
        self.note_resident::<T>(Resident::Cg, run);
        self.device.cg_resident(run, call, places, a, iterations, vectors, state)
    }
}

impl<T: Real, D: BasisOps<T> + Origin> BasisOps<T> for Checked<D> {
    fn basis_project(
        &self,
        run: Run<'_>,
        call: StepCall,
        count: usize,
        w: &Memory<T>,
        basis: &mut Basis<T>,
        state: &ScriptState,
    ) -> Result<()> {
        self.device.basis_project(run, call, count, w, basis, state)
    }

    fn basis_fold(
        &self,
        run: Run<'_>,
        call: StepCall,
        count: usize,
        again: bool,
        basis: &mut Basis<T>,
        state: &ScriptState,
    ) -> Result<()> {
        self.device.basis_fold(run, call, count, again, basis, state)
    }

    fn basis_add(
        &self,
        run: Run<'_>,
        call: StepCall,
        addition: Addition,
        v: &mut Memory<T>,
        basis: &mut Basis<T>,
        state: &ScriptState,
    ) -> Result<()> {
        self.device.basis_add(run, call, addition, v, basis, state)
    }

    fn basis_rotate(
        &self,
        run: Run<'_>,
        call: StepCall,
        step: usize,
        triangle: bool,
        basis: &mut Basis<T>,
        state: &mut ScriptState,
    ) -> Result<()> {
        let expected = self.expect::<T>(Launch::Rotation, run, || {
            let (mut scalars, mut copy) = (basis.scalars_on_host()?, state.on_host()?);
            let before = copy.history.on_host()?;
            Host.basis_rotate(run, call, step, triangle, &mut scalars, &mut copy)?;
            Ok([before, copy.history])
        })?;
        self.device.basis_rotate(run, call, step, triangle, basis, state)?;
        self.compare_norms::<T>(run, expected, &state.history)
    }

    fn basis_drop(
        &self,
        run: Run<'_>,
        call: StepCall,
        dropped: (usize, usize),
        basis: &mut Basis<T>,
        state: &mut ScriptState,
    ) -> Result<()> {
        self.device.basis_drop(run, call, dropped, basis, state)
    }

    fn basis_solve(
        &self,
        run: Run<'_>,
        call: StepCall,
        depth: usize,
        basis: &mut Basis<T>,
        state: &mut ScriptState,
    ) -> Result<()> {
        self.device.basis_solve(run, call, depth, basis, state)
    }
}
