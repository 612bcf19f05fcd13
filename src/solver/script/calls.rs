//! Steps of a method other than products and updates of vectors. They work on a Krylov basis, on the pixels of an image, or are kernels without
//! scalar operations ([`Alone`]).

use super::vectors::{Space, VectorId};
use crate::backend::script::{Edges, Variation};
use crate::number::{Arithmetic, Real};
use crate::recurrence::{Scalar, Sums};
use crate::runs::Runs;

/// A call without a program. Each kind has a row here, and an arm in `engine/scripted/alone.rs`, which queues it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alone {
    Image(OverImage),
    Limit(StepLimit),
    Gather(Gather),
    Penalty(OfPenalty),
    Elements(OfElements),
}

/// Calls as values of [`Alone`].
macro_rules! alone {
    ($($kind:ident($call:ty)),+) => {
        $(impl From<$call> for Alone {
            fn from(call: $call) -> Self {
                Self::$kind(call)
            }
        })+
    };
}
alone!(Image(OverImage), Limit(StepLimit), Gather(Gather), Penalty(OfPenalty), Elements(OfElements));

impl Alone {
    /// Launches on a device.
    pub(crate) fn launches(self) -> usize {
        if let Self::Limit(_) = self { 2 } else { 1 }
    }
}

/// A call over a basis of a draft (`Draft::basis`), whose first `count` vectors are `Q`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OverBasis {
    /// `h = Q'w`.
    Project { w: VectorId, count: usize },
    /// `w -= Q h`, then the same with what rounding has left: `d = Q'w`, `h += d`.
    Reproject { w: VectorId, count: usize },
    /// `w -= Q d`; the result is the next vector of the basis, if there is room.
    Append { w: VectorId, count: usize },
    /// `v += Q factors` with the factors of the other space's basis, whose first `count` vectors those of this one go with.
    Follow { v: VectorId, count: usize },
    /// `v` is the next vector of the basis, behind `count` others.
    Keep { v: VectorId, count: usize },
    /// After the program, columns in which `dropped` is above 0 forget the first `count` vectors: their factors and scales are 0.
    Drop { dropped: Scalar, count: usize },
    /// Rotations make `h` and `|w|` a column of GMRES's triangle; for `step` 0 the residual begins it. The program comes after, with
    /// [`VECTOR2`](crate::recurrence::VECTOR2) and its like.
    Rotate { step: usize },
    /// Keeps the norm of vector `step`, and scales it to 1. The program comes after, with [`VECTOR2`](crate::recurrence::VECTOR2).
    Norm { step: usize },
    /// Solves the triangle, of as many columns as `depth` says.
    Solve { depth: Scalar },
    /// `v += Q y` with the solution of the triangle; `v = Q y` if `fresh`.
    Combine { v: VectorId, fresh: bool },
}

impl OverBasis {
    /// Tells if it runs a program.
    pub(crate) fn runs_program(self) -> bool {
        matches!(self, Self::Drop { .. } | Self::Rotate { .. } | Self::Norm { .. } | Self::Solve { .. })
    }

    /// Launches on a device, if one buffer holds the basis.
    pub(crate) fn launches(self) -> usize {
        match self {
            Self::Project { .. } | Self::Reproject { .. } => 2,
            _ => 1,
        }
    }
}

/// The largest `-d / above` over the elements with `d < 0`, vectors of the columns' space: 1 over the most that a step along `d` may be
/// before an element of `above` is 0. It is the fold of `most`; -1 if no step is short enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StepLimit {
    pub(crate) above: VectorId,
    pub(crate) d: VectorId,
    pub(crate) most: Sums,
}

/// The dual variables of the total variation of an image ([`variation`](crate::backend::script::variation)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    /// Pixels of a row.
    pub(crate) width: usize,
    pub(crate) p: [VectorId; 2],
    /// Dual numbers of the derivative along a direction, if that has a term.
    pub(crate) q: Option<VectorId>,
    /// The first of the scalars that the launches read.
    pub(crate) weights: Scalar,
    /// Sums of the squares of a step.
    pub(crate) change: Sums,
}

impl Field {
    /// The field for an image of `n` pixels, as the back end takes it.
    pub(crate) fn variation(&self, n: usize) -> Variation {
        let (first, place) = (self.weights.0.into(), self.change.place as usize);
        Variation { n, width: self.width, along: self.q.is_some(), first, place }
    }
}

/// A call over an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OverImage {
    /// `p += step D (2 x - x_old)`, then into its disc; `q` likewise.
    Ascend { field: Field, x: VectorId, last_x: VectorId },
    /// `g -= D'p + (e.D)'q`.
    Subtract { field: Field, g: VectorId },
}

/// A call of CGNR over pixels. Its vectors are pairs: it reads those of number `now` (0 or 1), and writes the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OverPixels {
    /// After the program: `d' = s + beta d` with `d'.F(x, d')`.
    Direction { now: usize, beta: Scalar },
    /// `x' = x + alpha d` and `s' - F(x', x')` with its sums, without a program. At a start `x` stays as it is, and `s` of number `now` is written.
    Step { now: usize, starts: bool },
}

/// Kernels that CGNR has for an operator on its device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CgnrKernels {
    /// Half an iteration is one launch.
    pub(crate) halves: bool,
    /// Many iterations are one launch.
    pub(crate) resident: bool,
}

/// Vectors and numbers of CGNR in a script.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CgnrParts {
    /// Pairs that change places every iteration. The second of `r` is there for kernels that multiply.
    pub(crate) x: [VectorId; 2],
    pub(crate) r: [VectorId; 2],
    pub(crate) s: [VectorId; 2],
    pub(crate) d: [VectorId; 2],
    pub(crate) q: VectorId,
    /// Diffusivities; a filler without total variation.
    pub(crate) phi: VectorId,
    pub(crate) image: Edges,
    pub(crate) kernels: CgnrKernels,
    pub(crate) descent: Scalar,
    pub(crate) alpha: Scalar,
    /// The first of the weights.
    pub(crate) weights: Scalar,
    /// Start of the chunk sums.
    pub(crate) sums: usize,
}

/// The elements `runs` of `from`, counted in elements of one column, one after another in `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gather {
    pub(crate) from: VectorId,
    pub(crate) to: VectorId,
    pub(crate) runs: Runs,
}

/// A call that asks the penalty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OfPenalty {
    pub(crate) x: VectorId,
    /// The vector whose product with `H(x)` is asked for; none for the gradient.
    pub(crate) v: Option<VectorId>,
    pub(crate) out: VectorId,
}

/// `y_i` = a formula of the elements `i` of two vectors, all of one space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OfElements {
    pub(crate) formula: ElementFormula,
    pub(crate) of: Space,
    pub(crate) x: [VectorId; 2],
    pub(crate) y: VectorId,
}

/// A formula as OpenCL C and as its twin on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ElementFormula {
    /// `(x0 - x1) / x1`, of a reading `x0` and its expectation `x1`: -1 for a reading that is not above 0. For an expectation that is not above
    /// 0: 1 if the reading is, else 0.
    Excess,
    /// `x0` if it is above 0, else 0.
    Positive,
}

impl ElementFormula {
    /// The formula of `x0` and `x1` in OpenCL C.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Excess => {
                "x1 > 0 ? (x0 > 0 ? quotient(x0 - x1, x1) : (real_t)-1) : (x0 > 0 ? (real_t)1 : (real_t)0)"
            }
            Self::Positive => "x0 > 0 ? x0 : (real_t)0",
        }
    }

    /// Value on the host.
    pub(crate) fn value<T: Real>(self, arithmetic: Arithmetic, [x0, x1]: [T; 2]) -> T {
        let zero = T::default();
        match self {
            Self::Excess if x1 > zero && x0 > zero => arithmetic.quotient(x0 - x1, x1),
            Self::Excess if x1 > zero => T::from_f64(-1.0),
            Self::Excess if x0 > zero => T::from_f64(1.0),
            Self::Positive if x0 > zero => x0,
            _ => zero,
        }
    }
}
