//! Spot checks of the fused launches: norms that they write into a history.

use std::ops::Range;

use super::{Checked, Launch, Resident};
use crate::backend::fused::SolveState;
use crate::backend::fused::cgnr::{self, CgnrOps, CgnrShape, CgnrVectors, CorrectionTerm, Part};
use crate::backend::linear::product::Stored;
use crate::backend::run::{Origin, Run};
use crate::error::Result;
use crate::memory::Memory;
use crate::number::Real;

impl<T: Real, D: CgnrOps<T> + Origin> CgnrOps<T> for Checked<D> {
    fn cgnr_forward(
        &self,
        run: Run<'_>,
        shape: CgnrShape,
        a: &Stored<T>,
        parity: usize,
        vectors: CgnrVectors<'_, T>,
        state: &mut SolveState,
    ) -> Result<()> {
        let expected = match shape.part {
            Part::Rows => None, // the other part tests
            _ => self.expect::<T>(Launch::Cgnr, run, || {
                let mut copy = state.on_host()?;
                let before = copy.history.on_host()?;
                cgnr::test::<T>(run, shape.columns, [a.rows, a.cols], &mut copy)?;
                Ok([before, copy.history])
            })?,
        };
        self.device.cgnr_forward(run, shape, a, parity, vectors, state)?;
        self.compare_norms::<T>(run, expected, &state.history)
    }

    fn cgnr_backward(
        &self,
        run: Run<'_>,
        shape: CgnrShape,
        at: &Stored<T>,
        parity: usize,
        vectors: CgnrVectors<'_, T>,
        state: &mut SolveState,
    ) -> Result<()> {
        self.device.cgnr_backward(run, shape, at, parity, vectors, state)
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

    fn cgnr_launches(&self, run: Run<'_>, matrices: [&Stored<T>; 2]) -> usize {
        self.device.cgnr_launches(run, matrices)
    }

    fn cgnr_stays_resident(&self, run: Run<'_>, a: &Stored<T>, at: &Stored<T>) -> bool {
        self.device.cgnr_stays_resident(run, a, at)
    }

    fn cgnr_resident(
        &self,
        run: Run<'_>,
        shape: CgnrShape,
        matrices: [&Stored<T>; 2],
        iterations: Range<usize>,
        vectors: CgnrVectors<'_, T>,
        state: &mut SolveState,
    ) -> Result<()> {
        self.note_resident::<T>(Resident::Cgnr, run);
        self.device.cgnr_resident(run, shape, matrices, iterations, vectors, state)
    }
}
