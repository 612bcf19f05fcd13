//! Meaning of the end of a solve, for a matrix that was looked at.

use super::advice::Examination;
use crate::number::Precision;
use crate::solver::{Method, Report, Stop};

impl Examination {
    /// Words for what to try after `method` was slow.
    fn next_step(&self, method: &Method) -> &'static str {
        // A sweep divides by the diagonal. By rows it needed about half of Jacobi's iterations wherever both converged, and
        // converged where Jacobi did not (epb0).
        let sweeps = self.square() && self.zero_diagonal == 0;
        match method {
            Method::Gmres { .. } if sweeps => "gauss-seidel as preconditioner, or more directions between restarts",
            Method::Gmres { .. } => "a better preconditioner, or more directions between restarts",
            Method::BiCgStab | Method::BiCgStab2 if self.symmetric => {
                "cg or minres, which are made for symmetric matrices"
            }
            Method::BiCgStab | Method::BiCgStab2 if sweeps => {
                "gauss-seidel as preconditioner, or gmres, whose residual never grows"
            }
            Method::BiCgStab | Method::BiCgStab2 => "a better preconditioner, or gmres, whose residual never grows",
            Method::Cg if sweeps => "ssor as preconditioner, or a looser tolerance",
            _ => "a preconditioner, or a looser tolerance",
        }
    }

    /// Explains the end of a solve for this matrix, and says what to do, unless it is plain success.
    pub fn explain(&self, report: &Report) -> Option<String> {
        let more = if report.stop == Stop::TimeLimit { "more time" } else { "more iterations" };
        let again = format!("{more}, {}", self.next_step(&report.method));
        let said = match report.stop {
            // A backward error is one of every row.
            Stop::Converged
                if self.column_spread > 1e6 && report.iterations < 3 && report.backward_error.is_none_or(|e| e > 1e-6) =>
            {
                "the largest rows fill |b|, and a residual relative to it says little of the others: scale the matrix".into()
            }
            Stop::Converged | Stop::Semiconverged | Stop::Projected | Stop::Cancelled => return None,
            Stop::Rounded => format!(
                "x exactly solves a system whose entries differ from those given by at most {:.0e} of themselves; {:.1e} of |b| is rounding in \
                 the largest rows",
                report.backward_error.unwrap_or(f64::NAN),
                report.relative_residual()
            ),
            // Damping, bounds and a likelihood leave a residual of their own.
            Stop::LeastSquares
                if report.relative_residual() > 1e-3
                    && self.square()
                    && report.method.damp() == 0.0
                    && !report.method.takes_regularizations()
                    && !report.method.keeps_bounds() =>
            {
                format!(
                    "no x gives a residual below {:.1e} of |b|: b is not in the range of the matrix",
                    report.relative_residual()
                )
            }
            Stop::LeastSquares => return None,
            Stop::Regularised => match &report.weight {
                Some(weight) if weight.at_end => format!("{} found no weight between: try another rule", weight.rule),
                _ => return None,
            },
            Stop::MaxIterations | Stop::TimeLimit | Stop::Slow
                if matches!(report.method, Method::Stationary { .. } | Method::Chebyshev { .. })
                    && report.residual > 10.0 * report.history.first().copied()? =>
            {
                "the iteration diverges: a smaller omega, or bounds that hold all eigenvalues".into()
            }
            Stop::MaxIterations | Stop::TimeLimit | Stop::Slow => {
                let (first, last) = (report.history.first().copied()?, report.residual);
                let pace = libm::log(first / last) / report.iterations.max(1) as f64;
                if pace * report.iterations as f64 > 0.7 {
                    let factor = first / last;
                    let factor =
                        if factor < 1e4 { format!("{factor:.1}") } else { format!("{factor:.0e}") };
                    format!("the residual fell by a factor of {factor}: {again}")
                } else {
                    format!("the residual did not fall: {}", self.cause(&again))
                }
            }
            Stop::Stagnated if report.method.takes_rectangles() && report.gradient.is_some() => {
                let cause = self.cause(undetermined(&report.method));
                format!("rounding in {} ended it before a minimum was certain: {cause}", report.precision)
            }
            Stop::Stagnated => format!(
                "{:.1e} of |b| is what {} can reach here: {}",
                report.relative_residual(),
                report.precision,
                self.cause(if report.precision == Precision::Single {
                    "fp64 reaches further"
                } else {
                    "the data hold no more"
                })
            ),
            Stop::Indefinite => format!("a direction with x'Ax < 0 was met: {}", self.cause("use minres")),
            Stop::IndefinitePreconditioner => "precondition with something positive definite, or not at all".into(),
            Stop::Breakdown => self.cause("use gmres or lsmr, or start from another x"),
            Stop::NotFinite => match report.method {
                Method::Stationary { .. } => "the iteration diverges: a smaller omega, another preconditioner, or gmres".into(),
                Method::Chebyshev { .. } => "the iteration diverges: the bounds do not hold all eigenvalues".into(),
                _ => "the answer, or what leads to it, is out of the range of the precision: scale the system".into(),
            },
        };
        Some(said)
    }

    /// A known fault of the matrix, else `otherwise`.
    fn cause(&self, otherwise: &str) -> String {
        self.warnings(Precision::Double).into_iter().next().unwrap_or_else(|| otherwise.into())
    }
}

/// Words for an answer that rounding leaves undetermined. Methods that weigh by sums have no damping.
fn undetermined(method: &Method) -> &'static str {
    match method.takes_negative_entries() {
        true => "x is not well determined, and a damp of 1e-8 or more of |A| would determine it",
        false => "x is not well determined",
    }
}
