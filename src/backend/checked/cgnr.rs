//! Spot checks of the launches of CGNR: norms that they write into a history.

use std::ops::Range;

use super::{Checked, Launch, Resident};
use crate::backend::linear::product::Stored;
use crate::backend::run::{Origin, Run};
use crate::backend::script::{CgnrOps, CgnrShape, CgnrVectors, CorrectionTerm, Pixels, ScriptState, StepCall};
use crate::error::Result;
use crate::memory::Memory;
use crate::number::Real;

impl<T: Real, D: CgnrOps<T> + Origin> CgnrOps<T> for Checked<D> {
    fn cgnr_direction(
        &self,
        run: Run<'_>,
        call: StepCall,
        shape: CgnrShape,
        pixels: Pixels<'_, T>,
        state: &mut ScriptState,
    ) -> Result<()> {
        let expected = self.expect_script::<T>(Launch::Cgnr, run, call, state)?;
        self.device.cgnr_direction(run, call, shape, pixels, state)?;
        self.compare_norms::<T>(run, expected, &state.history)
    }

    fn cgnr_step(
        &self,
        run: Run<'_>,
        call: StepCall,
        shape: CgnrShape,
        starts: bool,
        pixels: Pixels<'_, T>,
        state: &mut ScriptState,
    ) -> Result<()> {
        self.device.cgnr_step(run, call, shape, starts, pixels, state)
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
        run: Run<'_>,
        call: StepCall,
        shape: CgnrShape,
        a: &Stored<T>,
        vectors: CgnrVectors<'_, T>,
        state: &mut ScriptState,
    ) -> Result<()> {
        let expected = self.expect_script::<T>(Launch::Cgnr, run, call, state)?;
        self.device.cgnr_forward(run, call, shape, a, vectors, state)?;
        self.compare_norms::<T>(run, expected, &state.history)
    }

    fn cgnr_backward(
        &self,
        run: Run<'_>,
        call: StepCall,
        shape: CgnrShape,
        starts: bool,
        at: &Stored<T>,
        vectors: CgnrVectors<'_, T>,
        state: &mut ScriptState,
    ) -> Result<()> {
        self.device.cgnr_backward(run, call, shape, starts, at, vectors, state)
    }

    fn cgnr_stays_resident(&self, run: Run<'_>, matrices: [&Stored<T>; 2]) -> bool {
        self.device.cgnr_stays_resident(run, matrices)
    }

    fn cgnr_resident(
        &self,
        run: Run<'_>,
        call: StepCall,
        shape: CgnrShape,
        matrices: [&Stored<T>; 2],
        iterations: (Range<usize>, usize),
        vectors: CgnrVectors<'_, T>,
        state: &mut ScriptState,
    ) -> Result<()> {
        self.note_resident::<T>(Resident::Cgnr, run);
        self.device.cgnr_resident(run, call, shape, matrices, iterations, vectors, state)
    }
}
