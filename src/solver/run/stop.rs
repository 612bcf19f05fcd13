//! Ends of a solve.

use std::fmt::{Display, Formatter, Result as FmtResult};

/// Why a solve stopped.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// The true residual `b - A x`, recomputed at the end, meets `max(rtol |b|, atol)`.
    Converged,
    /// The gradient of the objective, recomputed at the end, is small enough, whatever the residual: a solution in the least-squares
    /// sense, or the greatest likelihood ([`Method::Mlem`](crate::Method::Mlem)).
    LeastSquares,
    /// The rule that chooses the weight of damping is done ([`Method::HybridLsqr`](crate::Method::HybridLsqr), [`Method::HybridLsmr`](crate::Method::HybridLsmr)); [`Report::weight`](crate::Report::weight) has what it chose.
    Regularised,
    /// The rule for ill-posed problems says that later iterates would take up noise ([`Stopping::rule`](crate::Stopping::rule));
    /// [`Report::rule`](crate::Report::rule) has what it looked at. The answer is the iterate that is the best by the rule.
    Semiconverged,
    /// The residual does not meet the tolerance, but it is rounding in every row ([`Report::backward_error`](crate::Report::backward_error)): the answer is exact for entries that
    /// differ from those given by a few rounding errors each, and no solver can do more. Said where the matrix is at hand
    /// ([`solve_with_fallbacks`](crate::solve_with_fallbacks), [`solve_scaled_with_fallbacks`](crate::solve_scaled_with_fallbacks)).
    Rounded,
    /// All iterations that were allowed are done.
    MaxIterations,
    /// The recurrence met the tolerance but the true residual did not, and starting over from there no longer
    /// improved it: the attainable accuracy in this precision.
    Stagnated,
    /// A direction of negative curvature: the matrix is not positive definite.
    Indefinite,
    /// A divisor vanished although the residual did not, and starting over from there gained nothing: the matrix is
    /// singular, or the method does not suit it.
    Breakdown,
    /// The preconditioner is not positive definite, which this method needs.
    IndefinitePreconditioner,
    /// The time allowed is over.
    TimeLimit,
    /// Too little was gained for the iterations of [`Stopping::patience`](crate::Stopping::patience).
    Slow,
    /// NaN or infinity appeared.
    NotFinite,
    /// The observer asked to stop.
    Cancelled,
    /// Converged, but the answer was then projected onto bounds, and its residual no longer meets the tolerance.
    Projected,
}

impl Stop {
    /// Tells if a solve with another preconditioner may succeed where one has ended so; not if a limit that was asked for has ended it.
    pub fn failed(self) -> bool {
        matches!(
            self,
            Self::Stagnated | Self::Breakdown | Self::IndefinitePreconditioner | Self::NotFinite | Self::Slow
        )
    }
}

impl Display for Stop {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        f.write_str(match self {
            Self::Converged => "converged",
            Self::LeastSquares => "converged by its gradient",
            Self::Regularised => "the weight of damping is chosen",
            Self::Semiconverged => "ended before noise comes in",
            Self::Rounded => "solved as far as rounding allows",
            Self::MaxIterations => "limit of iterations reached",
            Self::Stagnated => "stagnated at the attainable accuracy",
            Self::Indefinite => "the matrix is not positive definite",
            Self::Breakdown => "breakdown: a divisor vanished although the residual did not",
            Self::IndefinitePreconditioner => "the preconditioner is not positive definite",
            Self::TimeLimit => "the time allowed is over",
            Self::Slow => "too slow",
            Self::NotFinite => "NaN or infinity appeared",
            Self::Cancelled => "cancelled",
            Self::Projected => "converged before the projection onto the bounds",
        })
    }
}
