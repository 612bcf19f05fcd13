//! Incomplete factors as a kind of preconditioner.

use super::{Factorisation, Fill, Incomplete, IncompleteOptions};
use crate::error::Result;
use crate::number::Real;
use crate::precond::kind::{
    LeastSquares, Made, Parameters, PreconditionerKind, Source, Symmetry, finite, stored_bytes,
};
use crate::sparse::Csr;

impl PreconditionerKind for IncompleteOptions {
    fn name(&self) -> &'static str {
        match (self.kind, self.fill) {
            (Factorisation::Cholesky, Fill::Exact) => "ic0",
            (Factorisation::Lu, Fill::Exact) => "ilu0",
            (Factorisation::Cholesky, Fill::Sweeps(_)) => "ic0-sweeps",
            (Factorisation::Lu, Fill::Sweeps(_)) => "ilu0-sweeps",
            (Factorisation::Cholesky, Fill::Threshold { .. }) => "ict",
            (Factorisation::Lu, Fill::Threshold { .. }) => "ilut",
        }
    }

    fn parameters(&self) -> String {
        match self.fill {
            Fill::Exact => self.shift.map_or(String::new(), |shift| shift.to_string()),
            Fill::Sweeps(factors) => format!("{factors}:{}", self.solve_sweeps.unwrap_or(0)),
            Fill::Threshold { most, drop } => format!("{most}:{drop}"),
        }
    }

    fn grammar(&self) -> Option<[&'static str; 2]> {
        Some(match self.fill {
            Fill::Exact => ["a number belongs", "0.01"],
            Fill::Sweeps(_) => ["numbers of sweeps belong", "3:5"],
            Fill::Threshold { .. } => ["entries of a row and a threshold belong", "20:1e-3"],
        })
    }

    fn with_parameters(self, given: &Parameters<'_>) -> Option<Self> {
        Some(match self.fill {
            Fill::Exact => self.with_shift(Some(finite(given.only()?)?)),
            Fill::Sweeps(_) => {
                let solves = given.second()?.or(self.solve_sweeps).filter(|solves| *solves > 0);
                self.with_fill(Fill::Sweeps(given.first()?)).with_solve_sweeps(solves)
            }
            Fill::Threshold { drop, .. } => {
                self.with_fill(Fill::Threshold { most: given.first()?, drop: given.second()?.unwrap_or(drop) })
            }
        })
    }

    fn symmetry(&self) -> Symmetry {
        match self.kind {
            Factorisation::Cholesky => Symmetry::Definite,
            Factorisation::Lu => Symmetry::Lost,
        }
    }

    fn least_squares(&self) -> LeastSquares {
        match (self.kind, self.fill) {
            (_, Fill::Sweeps(_)) => LeastSquares::None,
            (Factorisation::Cholesky, _) => LeastSquares::Any,
            (Factorisation::Lu, _) => LeastSquares::Square,
        }
    }

    fn most_entries<T: Real>(&self, a: &Csr<T>) -> Option<usize> {
        let rows = a.rows();
        Some(match self.fill {
            // A diagonal that is not there is made.
            Fill::Exact | Fill::Sweeps(_) => a.nnz().saturating_add(rows),
            // Both triangles and the diagonal.
            Fill::Threshold { most, .. } => rows.saturating_mul(2 * most.min(rows) + 1),
        })
    }

    fn is_sure(&self) -> bool {
        !matches!(self.fill, Fill::Threshold { .. })
    }

    fn bytes<T: Real>(&self, entries: usize, rows: usize) -> u64 {
        let (copies, vectors) = if self.solve_sweeps.is_some() { (2, 6) } else { (1, 10) };
        let times = 1 + usize::from(self.transposed && self.kind == Factorisation::Lu);
        stored_bytes::<T>([entries, rows], times * copies, times * vectors)
    }

    fn build<T: Real>(&self, from: Source<'_, T>) -> Result<Made<T>> {
        let factors = Incomplete::new(from.device, from.a, self.with_deadline(from.until(self.deadline)))?;
        let (entries, shift) = (factors.entries(), Some(factors.shift()));
        Ok(Made { shift, ..Made::new(factors, entries) })
    }

    fn build_for_least_squares<T: Real>(&self, from: Source<'_, T>) -> Result<Made<T>> {
        if self.kind == Factorisation::Lu {
            return self.with_transposed(true).build(from);
        }
        let options = self.with_deadline(from.until(self.deadline));
        let (root, entries, shift) = Incomplete::root(from.device, &from.normal_matrix()?, options)?;
        Ok(Made { shift: Some(shift), ..Made::new(root, entries) })
    }
}
