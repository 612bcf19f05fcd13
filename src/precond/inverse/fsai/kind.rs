//! FSAI as a kind of preconditioner.

use super::adaptive::{AdaptivePattern, MOST_PLACES};
use super::{Fsai, FsaiOptions, FsaiPattern};
use crate::error::Result;
use crate::number::Real;
use crate::precond::kind::{LeastSquares, Made, Parameters, PreconditionerKind, Source, Symmetry};
use crate::precond::support::{reached, sum};
use crate::sparse::Csr;

impl PreconditionerKind for FsaiOptions {
    fn name(&self) -> &'static str {
        match self.pattern {
            FsaiPattern::Power(_) => "fsai",
            FsaiPattern::Adaptive(_) => "adaptive-fsai",
        }
    }

    fn parameters(&self) -> String {
        match self.pattern {
            FsaiPattern::Power(power) => power.to_string(),
            FsaiPattern::Adaptive(AdaptivePattern { steps, per_step, .. }) => format!("{steps}:{per_step}"),
        }
    }

    fn grammar(&self) -> Option<[&'static str; 2]> {
        Some(match self.pattern {
            FsaiPattern::Power(_) => ["a power of the matrix belongs", "2"],
            FsaiPattern::Adaptive(_) => ["steps of a row and entries of a step belong", "10:2"],
        })
    }

    fn with_parameters(self, given: &Parameters<'_>) -> Option<Self> {
        let pattern = match self.pattern {
            FsaiPattern::Power(_) => FsaiPattern::Power(given.only()?),
            FsaiPattern::Adaptive(places) => FsaiPattern::Adaptive(AdaptivePattern {
                steps: given.first()?,
                per_step: given.second()?.unwrap_or(places.per_step),
                ..places
            }),
        };
        Some(Self { pattern, ..self })
    }

    fn symmetry(&self) -> Symmetry {
        Symmetry::Definite
    }

    fn least_squares(&self) -> LeastSquares {
        LeastSquares::Any
    }

    fn in_stored_f32(self) -> Option<Self> {
        Some(self.with_stored_f32(true))
    }

    fn most_entries<T: Real>(&self, a: &Csr<T>) -> Option<usize> {
        let rows = a.rows();
        Some(match self.pattern {
            FsaiPattern::Power(1) => (0..rows).map(|i| (entries_below(a, i) + 1).min(MOST_PLACES)).sum(),
            FsaiPattern::Power(power) => {
                sum(reached(a, power).enumerate().map(|(i, n)| n.min(MOST_PLACES).min(i + 1)))
            }
            FsaiPattern::Adaptive(AdaptivePattern { steps, per_step, .. }) => {
                let most = steps.saturating_mul(per_step).saturating_add(1);
                (0..rows).map(|i| most.min(i + 1)).sum()
            }
        })
    }

    fn is_sure(&self) -> bool {
        self.pattern == FsaiPattern::Power(1)
    }

    fn build<T: Real>(&self, from: Source<'_, T>) -> Result<Made<T>> {
        let inverse = Fsai::new(from.device, from.a, self.with_deadline(from.until(self.deadline)))?;
        let entries = inverse.entries();
        Ok(Made::new(inverse, entries))
    }

    fn build_for_least_squares<T: Real>(&self, from: Source<'_, T>) -> Result<Made<T>> {
        let inverse =
            Fsai::new(from.device, &from.normal_matrix()?, self.with_deadline(from.until(self.deadline)))?;
        Ok(Made::new(inverse.root(), inverse.entries()))
    }
}

/// Entries of a row before the diagonal.
fn entries_below<T: Real>(a: &Csr<T>, i: usize) -> usize {
    a.row(i).0.partition_point(|j| (*j as usize) < i)
}
