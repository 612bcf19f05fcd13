//! Spot checks of the launches of CGNR: norms that they write into a history.

use std::ops::Range;

use super::{Checked, Launch, Resident};
use crate::backend::linear::product::Stored;
use crate::backend::run::{Origin, Run};
use crate::backend::script::{CgnrOps, CgnrShape, CgnrVectors, CorrectionTerm, Pixels, StepLaunch};
use crate::error::Result;
use crate::memory::Memory;
use crate::number::Real;

impl<T: Real, D: CgnrOps<T> + Origin> CgnrOps<T> for Checked<D> {
    fn cgnr_direction(&self, step: StepLaunch<'_>, shape: CgnrShape, pixels: Pixels<'_, T>) -> Result<()> {
        self.check_norms::<T>(Launch::Cgnr, step, |step| self.device.cgnr_direction(step, shape, pixels))
    }

    fn cgnr_step(&self, step: StepLaunch<'_>, shape: CgnrShape, starts: bool, pixels: Pixels<'_, T>) -> Result<()> {
        self.device.cgnr_step(step, shape, starts, pixels)
    }

    fn cgnr_correction(
        &self,
        run: Run<'_>,
        term: &CorrectionTerm,
        x: &Memory<T>,
        v: Option<&Memory<T>>,
        out: &mut Memory<T>,
    ) -> Result<()> {
        self.device.cgnr_correction(run, term, x, v, out)
    }

    fn cgnr_fuses(&self, run: Run<'_>, matrices: [&Stored<T>; 2]) -> bool {
        self.device.cgnr_fuses(run, matrices)
    }

    fn cgnr_forward(
        &self,
        step: StepLaunch<'_>,
        shape: CgnrShape,
        a: &Stored<T>,
        vectors: CgnrVectors<'_, T>,
    ) -> Result<()> {
        self.check_norms::<T>(Launch::Cgnr, step, |step| self.device.cgnr_forward(step, shape, a, vectors))
    }

    fn cgnr_backward(
        &self,
        step: StepLaunch<'_>,
        shape: CgnrShape,
        starts: bool,
        at: &Stored<T>,
        vectors: CgnrVectors<'_, T>,
    ) -> Result<()> {
        self.device.cgnr_backward(step, shape, starts, at, vectors)
    }

    fn cgnr_stays_resident(&self, run: Run<'_>, matrices: [&Stored<T>; 2]) -> bool {
        self.device.cgnr_stays_resident(run, matrices)
    }

    fn cgnr_resident(
        &self,
        step: StepLaunch<'_>,
        shape: CgnrShape,
        matrices: [&Stored<T>; 2],
        iterations: (Range<usize>, usize),
        vectors: CgnrVectors<'_, T>,
    ) -> Result<()> {
        self.note_resident::<T>(Resident::Cgnr, step.run);
        self.device.cgnr_resident(step, shape, matrices, iterations, vectors)
    }
}
