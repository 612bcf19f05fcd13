//! Many iterations of a script as one launch. If its groups cannot wait for each other, the iterations that are missing are done again as
//! launches of their own.

use std::mem::take;
use std::ops::Range;

use super::{Engine, Resident};
use crate::backend::linear::product::SharedMatrix;
use crate::backend::script::{RESIDENT_VECTORS, StepCall, StepLaunch};
use crate::error::{Result, same_length};
use crate::number::Real;
use crate::solver::engine::inputs::Inputs;
use crate::solver::engine::products::Products;
use crate::solver::engine::residence::Held;
use crate::solver::script::Draft;
use crate::state::barrier;
use crate::vector::Vector;

impl<T: Real> Engine<T> {
    /// Queues iterations as one launch.
    pub(super) fn reside(&mut self, inputs: &Inputs<'_, T>, indices: Range<usize>) -> Result<()> {
        self.resided = self.resided.wrapping_add(indices.len() as u32);
        let done = self.resided as usize;
        let (run, operations) = (inputs.run, inputs.device.backend().script::<T>());
        let step = StepCall { block: 0, slot: self.slot, columns: self.columns, sums: self.sums };
        let Self { residence: Some(Resident::Listed(residence)), vectors, products, state, .. } = self else {
            return match self.residence {
                Some(Resident::Cgnr) => self.reside_cgnr(inputs, step, (indices, done)),
                _ => self.reside_cg(inputs, step, (indices, done)),
            };
        };
        let stored: Vec<_> = residence.matrices.iter().map(SharedMatrix::read).collect();
        // Places that the script does not need hold the first matrix, and vectors of one element.
        let matrices = std::array::from_fn(|k| &**stored.get(k).unwrap_or(&stored[0]));
        let mut vectors: Vec<Option<&mut Vector<T>>> = vectors.iter_mut().map(Some).collect();
        let between = products.iter_mut().map(|products| {
            let between = products.as_mut().map_or(Default::default(), Products::between_mut);
            between.iter_mut().map(Some).collect::<Vec<_>>()
        });
        let mut between: Vec<_> = between.collect();
        let mut taken = Vec::with_capacity(RESIDENT_VECTORS);
        for held in &residence.vectors {
            taken.extend(match *held {
                Held::Vector(v) => vectors[v.index()].take(),
                Held::Between(which, k) => between[which.index()][k].take(),
            });
        }
        let fillers = vectors[Draft::FILLERS].iter_mut().filter_map(Option::take);
        taken.extend(fillers.take(RESIDENT_VECTORS.saturating_sub(residence.vectors.len())));
        let found = taken.len();
        let Ok(taken) = <[&mut Vector<T>; RESIDENT_VECTORS]>::try_from(taken) else {
            return same_length("vectors of a resident launch", RESIDENT_VECTORS, found);
        };
        let taken = taken.map(Vector::memory_mut);
        let step = StepLaunch { run, call: step, state };
        operations.step_resident(step, &residence.listing, (indices, done), matrices, taken)
    }

    /// Does what resident launches should have done and gave up, if status words that were read say so.
    pub(super) fn settle(&mut self, inputs: &Inputs<'_, T>) -> Result<bool> {
        let asked = take(&mut self.resident);
        let done = self.seen[self.seen.len() - barrier::WORDS + barrier::DONE] as u32;
        let missing = if asked.is_empty() { 0 } else { self.resided.wrapping_sub(done) as usize };
        let missing = asked.end - missing.min(asked.len())..asked.end;
        if missing.is_empty() {
            return Ok(false);
        }
        // The groups do not all run at once here: several launches for each iteration, from now on.
        log::info!("{}: groups cannot wait for each other; solves go on without", inputs.device.info().name);
        self.residence = None;
        self.settle_residual(missing.start)?;
        self.steps(inputs, missing)?;
        Ok(true)
    }
}
