//! The weight of damping while a script with [`Damping`](crate::solver::script::Damping) runs. The host reads the norms of several iterations at
//! once, applies the rule to each iteration in order, and says which iterate is the answer. So the answer does not depend on how often the
//! host reads.

use super::inputs::Status;
use crate::backend::script::Basis;
use crate::error::Result;
use crate::magnitude::scale;
use crate::number::{Accumulation, Real, Sum};
use crate::solver::regularise::Values;
use crate::solver::script::Space;
use crate::solver::weight::{
    Answer, Bidiagonal, Choice, ChosenWeight, Data, Least, Spectrum, WeightPoint, WeightRule, WeightStop,
};
use crate::state::{HISTORY, stop};

/// The iterations of one column.
#[derive(Clone, Debug, Default)]
struct Column {
    /// `alpha` and `beta` of the iterations so far, one of each more.
    alpha: Vec<f64>,
    beta: Vec<f64>,
    choices: Vec<Choice>,
    /// Squared norms of residual and gradient of each iterate.
    norms: Vec<[f64; 2]>,
    /// Iteration of the answer, and why it is that one.
    end: Option<(usize, WeightStop)>,
}

impl Column {
    /// The iteration of the answer.
    fn last(&self) -> usize {
        self.end.map_or(self.choices.len(), |(iteration, _)| iteration)
    }

    /// The weight of the answer, 0 before the first iteration.
    fn damp(&self) -> f64 {
        self.last().checked_sub(1).map_or(0.0, |k| self.choices[k].damp)
    }

    /// The small problem of an iteration.
    fn problem(&self, iteration: usize) -> Bidiagonal {
        let mut problem = Bidiagonal::new(self.beta[0], self.alpha[0]);
        (1..=iteration).for_each(|k| problem.push(self.beta[k], self.alpha[k]));
        problem
    }

    /// Takes iterations up to `count`, and asks the rule after each of them.
    fn judge(
        &mut self,
        (rule, least): (WeightRule, Least),
        (rows, probe): (usize, Option<&Spectrum>),
        count: usize,
    ) {
        let mut problem = Bidiagonal::new(self.beta[0], self.alpha[0]);
        for k in 1..=count {
            problem.push(self.beta[k], self.alpha[k]);
            if k <= self.choices.len() {
                continue;
            }
            let spectrum = problem.spectrum();
            let data = Data { rows, rhs: self.beta[0], probe, problem: (&problem, least) };
            let choice = rule.choose(&spectrum, data, &self.choices);
            let Answer { residual2, gradient, .. } = problem.solve(least, &spectrum, choice.damp);
            self.choices.push(choice);
            self.norms.push([residual2, gradient * gradient]);
            self.end = rule.end(&self.choices, &spectrum, data, gradient);
            if self.end.is_some() {
                return;
            }
        }
    }
}

/// The weights of all columns, as far as they are known.
#[derive(Debug)]
pub(crate) struct Weighing {
    rule: WeightRule,
    least: Least,
    rows: usize,
    columns: Vec<Column>,
    /// Singular values of the operator by a random right-hand side, and the values of the operator then.
    probe: Option<(Spectrum, Values)>,
    probing: bool,
}

impl Weighing {
    pub(crate) fn new((rule, least): (WeightRule, Least), rows: usize, columns: usize) -> Self {
        Self { rule, least, rows, columns: vec![Column::default(); columns], probe: None, probing: false }
    }

    /// Tells if the rule wants to know the singular values of an operator with these values. The next solve is then one for that.
    pub(crate) fn begin_probe(&mut self, values: Values) -> bool {
        let known = self.probe.as_ref().is_some_and(|(_, of)| *of == values);
        self.probing = self.rule == WeightRule::LeastError && !known;
        self.probing
    }

    /// Keeps the singular values that the last solve has found.
    pub(crate) fn end_probe(&mut self, values: Values) {
        self.probing = false;
        let column = &self.columns[0];
        self.probe = (!column.beta.is_empty()).then(|| (column.problem(column.beta.len() - 1).spectrum(), values));
    }

    /// Forgets the solve before.
    pub(crate) fn clear(&mut self) {
        self.columns.fill(Column::default());
    }

    /// `-damp²` of column `c`.
    pub(crate) fn minus_square(&self, c: usize) -> f64 {
        -(self.columns[c].damp() * self.columns[c].damp())
    }

    /// Reads the norms of the iterations that `status` has, judges them, and puts the verdicts into status and history.
    pub(crate) fn judge<T: Real>(
        &mut self,
        bases: &[Option<Basis<T>>; 2],
        accumulation: Accumulation,
        status: &mut [Status],
        history: &mut [Sum],
    ) -> Result<()> {
        let count = self.columns.len();
        for (c, (column, status)) in self.columns.iter_mut().zip(status).enumerate() {
            if column.end.is_none() {
                let read = |space: Space| -> Result<Vec<f64>> {
                    let mut norms = vec![Sum::default(); status.iteration + 1];
                    if let Some(basis) = &bases[space.index()] {
                        basis.norms(c, &mut norms)?;
                    }
                    Ok(norms.iter().map(|norm| norm.value(accumulation)).collect())
                };
                (column.beta, column.alpha) = (read(Space::Rows)?, read(Space::Cols)?);
                if self.probing {
                    continue;
                }
                let probe = self.probe.as_ref().map(|(probe, _)| probe);
                // An iteration that is not finite has no rule; one before it may have been the last.
                let norms = column.alpha.iter().zip(&column.beta).skip(1);
                let count = norms.take_while(|(alpha, beta)| alpha.is_finite() && beta.is_finite()).count();
                column.judge((self.rule, self.least), (self.rows, probe), count);
                let by_itself = matches!(status.code, stop::CONVERGED | stop::GRADIENT_CONVERGED | stop::BREAKDOWN);
                if column.end.is_none() && by_itself {
                    column.end = Some((column.choices.len(), WeightStop::Exhausted));
                }
            }
            if let Some((iteration, _)) = column.end {
                *status = Status { code: stop::CONVERGED, iteration };
            }
            for (k, norms) in column.norms.iter().enumerate().take(status.iteration) {
                for (which, norm) in norms.iter().enumerate() {
                    history[2 * (((k + 1) % HISTORY) * count + c) + which] = Sum::of(*norm, accumulation);
                }
            }
        }
        Ok(())
    }

    /// The word on an answer that was formed and whose residual is known.
    pub(crate) fn settle(&self, status: &mut [Status]) {
        for (column, status) in self.columns.iter().zip(status) {
            if column.end.is_some() && matches!(status.code, stop::RUNNING | stop::ITERATIONS_DONE) {
                status.code = stop::REGULARISED;
            }
        }
    }

    /// Factors of the right vectors in the answer of each column.
    pub(crate) fn factors(&self, accumulation: Accumulation) -> Vec<Vec<Sum>> {
        let factors = |column: &Column| match column.last() {
            0 => Vec::new(),
            iteration => {
                let problem = column.problem(iteration);
                let answer = problem.solve(self.least, &problem.spectrum(), column.damp());
                answer.y.into_iter().map(|y| Sum::of(y, accumulation)).collect()
            }
        };
        self.columns.iter().map(factors).collect()
    }

    /// The weight of column `c`, in the units of a system whose right-hand side and operator were multiplied by 2 to these powers. None if
    /// there was no iteration.
    pub(crate) fn chosen(&self, c: usize, [rhs, operator]: [i32; 2]) -> Option<ChosenWeight> {
        let column = &self.columns[c];
        let iteration = column.last();
        let used = &column.choices[..iteration];
        let last = used.last()?;
        let probe = self.probe.as_ref().map(|(probe, _)| probe);
        let problem = column.problem(iteration);
        let data = Data { rows: self.rows, rhs: column.beta[0], probe, problem: (&problem, self.least) };
        let curve = self.rule.curve(&problem.spectrum(), data, last.given);
        let given = |point: WeightPoint| WeightPoint {
            damp: scale(point.damp, -operator),
            residual: scale(point.residual, -rhs),
            solution: scale(point.solution, operator - rhs),
            ..point
        };
        Some(ChosenWeight {
            rule: self.rule,
            damp: scale(last.damp, -operator),
            noise: self.rule.noise_of(last, data),
            iteration,
            stop: column.end.map_or(WeightStop::Limit, |(_, why)| why),
            at_end: last.at_end,
            curve: curve.into_iter().map(given).collect(),
            path: used.iter().map(|choice| scale(choice.damp, -operator)).collect(),
        })
    }
}
