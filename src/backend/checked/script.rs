//! Spot checks of the launches of scripts.

use std::ops::Range;

use super::spots::Parts;
use super::{Checked, Expected, Launch, Resident};
use crate::backend::Host;
use crate::backend::linear::product::Stored;
use crate::backend::run::{Origin, Run};
use crate::backend::script::{
    Addition, Basis, BasisOps, Blend, CgOps, CgPlaces, CgVectors, Listing, PASS_VECTORS, Pass, RESIDENT_MATRICES,
    RESIDENT_VECTORS, ScriptOps, StepLaunch, cg, product_spots,
};
use crate::error::Result;
use crate::memory::Memory;
use crate::number::Real;

impl<D: Origin> Checked<D> {
    /// Does `work`, a launch that may write norms into the history, and compares these.
    pub(super) fn check_norms<T: Real>(
        &self,
        launch: Launch,
        mut step: StepLaunch<'_>,
        work: impl FnOnce(StepLaunch<'_>) -> Result<()>,
    ) -> Result<()> {
        let run = step.run;
        let expected = self.expect_script::<T>(launch, &step)?;
        work(step.lend())?;
        self.compare_norms::<T>(run, expected, &step.state.history)
    }

    /// The history that a launch of a script should leave.
    fn expect_script<T: Real>(&self, launch: Launch, step: &StepLaunch<'_>) -> Result<Option<Expected<'_>>> {
        let StepLaunch { run, call, ref state } = *step;
        self.expect::<T>(launch, run, || {
            let mut copy = state.on_host()?;
            let before = copy.history.on_host()?;
            ScriptOps::<T>::step_scalars(&Host, StepLaunch { run, call, state: &mut copy })?;
            Ok([before, copy.history])
        })
    }

    /// Does `work`, a product of a script as [`ScriptOps::step_product`] has it, and compares what comes of it.
    fn check_product<T: Real>(
        &self,
        launch: Launch,
        mut step: StepLaunch<'_>,
        (a, blend, [x, w, z]): (&Stored<T>, Blend, [&Memory<T>; 3]),
        y: &mut Memory<T>,
        work: impl FnOnce(StepLaunch<'_>, &mut Memory<T>) -> Result<()>,
    ) -> Result<()> {
        let StepLaunch { run, call, .. } = step;
        let counter = self.product_to_compare(launch, run, a, call.columns);
        let sample = a.sample();
        let before = counter.map(|_| step.state.on_host()).transpose()?;
        let whole = counter.filter(|_| sample.is_none()).map(|_| y.on_host()).transpose()?;
        self.check_norms::<T>(launch, step.lend(), |step| work(step, y))?;
        let StepLaunch { state, .. } = step;
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
        let on_host = StepLaunch { run, call, state: &mut before };
        Host.step_product(on_host, &matrix, blend, [&x, &w, &z], &mut want)?;
        if before.has_stopped(call)? {
            return Ok(());
        }
        self.compare(run, a.arrangement.kind, counter, [y, &want], [&state.sums, &before.sums])
    }
}

impl<T: Real, D: ScriptOps<T> + Origin> ScriptOps<T> for Checked<D> {
    fn step_scalars(&self, step: StepLaunch<'_>) -> Result<()> {
        self.check_norms::<T>(Launch::Scalars, step, |step| self.device.step_scalars(step))
    }

    fn step_product(
        &self,
        step: StepLaunch<'_>,
        a: &Stored<T>,
        blend: Blend,
        vectors: [&Memory<T>; 3],
        y: &mut Memory<T>,
    ) -> Result<()> {
        let launch = if blend.shifted { Launch::StepResidual } else { Launch::StepProduct };
        self.check_product(launch, step, (a, blend, vectors), y, |step, y| {
            self.device.step_product(step, a, blend, vectors, y)
        })
    }

    fn step_vectors(
        &self,
        step: StepLaunch<'_>,
        n: usize,
        pass: &Pass,
        vectors: [&mut Memory<T>; PASS_VECTORS],
    ) -> Result<()> {
        self.check_norms::<T>(Launch::Pass, step, |step| self.device.step_vectors(step, n, pass, vectors))
    }

    fn script_multiplies_apart(&self, run: Run<'_>, a: &Stored<T>) -> bool {
        self.device.script_multiplies_apart(run, a)
    }

    fn script_stays_resident(&self, run: Run<'_>, matrices: &[&Stored<T>], columns: usize) -> bool {
        self.device.script_stays_resident(run, matrices, columns)
    }

    fn step_resident(
        &self,
        step: StepLaunch<'_>,
        listing: &Listing,
        iterations: (Range<usize>, usize),
        matrices: [&Stored<T>; RESIDENT_MATRICES],
        vectors: [&mut Memory<T>; RESIDENT_VECTORS],
    ) -> Result<()> {
        self.note_resident::<T>(Resident::Script, step.run);
        self.device.step_resident(step, listing, iterations, matrices, vectors)
    }
}

impl<T: Real, D: CgOps<T> + Origin> CgOps<T> for Checked<D> {
    fn cg_product(
        &self,
        step: StepLaunch<'_>,
        places: CgPlaces,
        a: &Stored<T>,
        (m, p): (Option<&Memory<T>>, &Memory<T>),
        q: &mut Memory<T>,
    ) -> Result<()> {
        let product = (a, cg::blend(m.is_some()), [p, m.unwrap_or(p), p]);
        self.check_product(Launch::Cg, step, product, q, |step, q| {
            self.device.cg_product(step, places, a, (m, p), q)
        })
    }

    fn cg_update(&self, step: StepLaunch<'_>, places: CgPlaces, n: usize, vectors: CgVectors<'_, T>) -> Result<()> {
        self.device.cg_update(step, places, n, vectors)
    }

    fn cg_stays_resident(&self, run: Run<'_>, a: &Stored<T>) -> bool {
        self.device.cg_stays_resident(run, a)
    }

    fn cg_resident(
        &self,
        step: StepLaunch<'_>,
        places: CgPlaces,
        a: &Stored<T>,
        iterations: (Range<usize>, usize),
        vectors: CgVectors<'_, T>,
    ) -> Result<()> {
        self.note_resident::<T>(Resident::Cg, step.run);
        self.device.cg_resident(step, places, a, iterations, vectors)
    }
}

impl<T: Real, D: BasisOps<T> + Origin> BasisOps<T> for Checked<D> {
    fn basis_project(&self, step: StepLaunch<'_>, count: usize, w: &Memory<T>, basis: &mut Basis<T>) -> Result<()> {
        self.device.basis_project(step, count, w, basis)
    }

    fn basis_fold(&self, step: StepLaunch<'_>, count: usize, again: bool, basis: &mut Basis<T>) -> Result<()> {
        self.device.basis_fold(step, count, again, basis)
    }

    fn basis_add(
        &self,
        step: StepLaunch<'_>,
        addition: Addition,
        v: &mut Memory<T>,
        basis: &mut Basis<T>,
    ) -> Result<()> {
        self.device.basis_add(step, addition, v, basis)
    }

    fn basis_rotate(
        &self,
        mut step: StepLaunch<'_>,
        column: usize,
        triangle: bool,
        basis: &mut Basis<T>,
    ) -> Result<()> {
        let StepLaunch { run, call, ref state } = step;
        let expected = self.expect::<T>(Launch::Rotation, run, || {
            let (mut scalars, mut copy) = (basis.scalars_on_host()?, state.on_host()?);
            let before = copy.history.on_host()?;
            Host.basis_rotate(StepLaunch { run, call, state: &mut copy }, column, triangle, &mut scalars)?;
            Ok([before, copy.history])
        })?;
        self.device.basis_rotate(step.lend(), column, triangle, basis)?;
        self.compare_norms::<T>(run, expected, &step.state.history)
    }

    fn basis_drop(&self, step: StepLaunch<'_>, dropped: (usize, usize), basis: &mut Basis<T>) -> Result<()> {
        self.device.basis_drop(step, dropped, basis)
    }

    fn basis_solve(&self, step: StepLaunch<'_>, depth: usize, basis: &mut Basis<T>) -> Result<()> {
        self.device.basis_solve(step, depth, basis)
    }
}
