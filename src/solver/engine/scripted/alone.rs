//! Queues calls without scalar operations ([`Alone`]), a function for each kind.

use super::{Engine, Written};
use crate::backend::linear::pointwise::Formula;
use crate::backend::script::{Dual, StepCall, StepLaunch};
use crate::error::{Error, Result, same_length};
use crate::number::Real;
use crate::solver::engine::inputs::Inputs;
use crate::solver::script::{Alone, B, Gather, OfElements, OfPenalty, OverImage, Space, StepLimit, VectorId};
use crate::vector::Vector;

impl<T: Real> Engine<T> {
    pub(super) fn alone(&mut self, inputs: &Inputs<'_, T>, step: StepCall, call: Alone) -> Result<()> {
        match call {
            Alone::Image(call) => self.over_image(inputs, step, call),
            Alone::Limit(call) => self.limit_step(inputs, step, call),
            Alone::Gather(call) => Written::new(self, call.to.index()).engine.gather(inputs, call),
            Alone::Penalty(call) => Written::new(self, call.out.index()).engine.ask_penalty(call),
            Alone::Elements(call) => Written::new(self, call.y.index()).engine.evaluate(inputs, call),
        }
    }

    fn over_image(&mut self, inputs: &Inputs<'_, T>, step: StepCall, call: OverImage) -> Result<()> {
        let (run, operations) = (inputs.run, inputs.device.backend().variation::<T>());
        let (OverImage::Ascend { field, .. } | OverImage::Subtract { field, .. }) = call;
        let variation = field.variation(self.length(Space::Cols));
        let others = match call {
            OverImage::Ascend { x, last_x, .. } => [x, last_x],
            OverImage::Subtract { g, .. } => [g, VectorId::FILLER],
        };
        let Self { vectors, state, .. } = self;
        let places = [field.p[0], field.p[1], field.q.unwrap_or(VectorId::SECOND_FILLER), others[0], others[1]];
        let different = |_| Error::Shape { what: "different vectors of a call", expected: places.len(), found: 0 };
        let held = vectors.get_disjoint_mut(places.map(VectorId::index)).map_err(different)?;
        let [px, py, q, first, second] = held.map(Vector::memory_mut);
        let dual = Dual { p: [px, py], q };
        let step = StepLaunch { run, call: step, state };
        match call {
            OverImage::Ascend { .. } => operations.variation_ascend(step, variation, [&*first, &*second], dual),
            OverImage::Subtract { .. } => operations.variation_subtract(step, variation, dual, first),
        }
    }

    /// A copy of some elements, into the spare vector.
    fn gather(&mut self, inputs: &Inputs<'_, T>, Gather { from, runs, .. }: Gather) -> Result<()> {
        let Self { vectors, spare, columns, .. } = self;
        let from = if from == B { inputs.b } else { &vectors[from.index()] };
        let runs = runs.times(*columns);
        spare.memory_mut().copy_runs(runs.packed(), from.memory(), runs)
    }

    fn limit_step(&mut self, inputs: &Inputs<'_, T>, step: StepCall, call: StepLimit) -> Result<()> {
        let n = self.length(Space::Cols);
        let Self { vectors, state, .. } = self;
        let read = [call.above, call.d].map(|v| vectors[v.index()].memory());
        let operations = inputs.device.backend().limit::<T>();
        let step = StepLaunch { run: inputs.run, call: step, state };
        operations.step_limit(step, n, read, call.most.place as usize)
    }

    /// Asks the penalty, into the spare vector.
    fn ask_penalty(&mut self, OfPenalty { x, v, .. }: OfPenalty) -> Result<()> {
        let Self { penalty, vectors, spare, .. } = self;
        let Some(penalty) = penalty else { return same_length("penalties of a script", 1, 0) };
        penalty.ask(&vectors[x.index()], v.map(|v| &vectors[v.index()]), spare)
    }

    /// A formula of elements, into the spare vector.
    fn evaluate(&mut self, inputs: &Inputs<'_, T>, OfElements { formula, of, x, .. }: OfElements) -> Result<()> {
        let n = self.length(of) * self.columns;
        let Self { formulas, vectors, spare, .. } = self;
        let place = formulas.iter().position(|held| held.0 == formula).unwrap_or_else(|| {
            let twin = move |arithmetic, x: [&[T]; 4], _: [T; 4], y: &mut [T]| {
                for (i, y) in y.iter_mut().enumerate() {
                    *y = formula.value(arithmetic, [x[0][i], x[1][i]]);
                }
            };
            formulas.push((formula, Formula::new(formula.text().into(), Box::new(twin))));
            formulas.len() - 1
        });
        let [first, second] = x.map(|v| if v == B { inputs.b } else { &vectors[v.index()] }.memory());
        let operations = inputs.device.backend().pointwise::<T>();
        let numbers = [T::default(); 4];
        operations.evaluate(
            inputs.run,
            n,
            &formulas[place].1,
            [first, second, second, second],
            numbers,
            spare.memory_mut(),
        )
    }
}
