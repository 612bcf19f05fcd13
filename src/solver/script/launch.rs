//! Launches of a script as the engine queues them.

use super::calls::{Alone, OverBasis, OverPixels};
use super::vectors::{Operand, Space, VectorId};
use crate::backend::script::{Blend, CgPlaces, PASS_VECTORS, Pass};
use crate::recurrence::Scalar;

/// A launch, ready to be queued.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// Start of its program.
    pub(crate) block: u32,
    pub(crate) launch: Launch,
    /// A faster kernel that does this call, or this one and the next ones.
    pub(crate) fused: Option<Fused>,
}

impl Call {
    /// A call that a faster kernel can do. The script says where the numbers of that kernel are ([`Script`](super::Script)).
    pub(crate) fn fused(self, fused: Fused) -> Self {
        Self { fused: Some(fused), ..self }
    }
}

/// A kernel that does a call, or that call and the next ones, faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fused {
    /// The product of conjugate gradients.
    CgProduct,
    /// Their updates.
    CgUpdate,
    /// Direction and product of CGNR; `now` as in [`OverPixels`].
    CgnrForward { now: usize },
    /// Update of `r`, product and step of CGNR, without the update at a start.
    CgnrBackward { now: usize, starts: bool },
}

impl Fused {
    /// Number of calls that the kernel stands for, the one that it is told with being the first.
    pub(crate) fn calls(self) -> usize {
        match self {
            Self::CgProduct | Self::CgUpdate => 1,
            Self::CgnrForward { .. } | Self::CgnrBackward { starts: true, .. } => 2,
            Self::CgnrBackward { starts: false, .. } => 3,
        }
    }
}

/// Vectors and numbers of conjugate gradients in a script, for kernels of their own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CgParts {
    /// The diagonal preconditioner, if there is one.
    pub(crate) m: Option<VectorId>,
    pub(crate) r: VectorId,
    pub(crate) p: VectorId,
    pub(crate) q: VectorId,
    pub(crate) places: CgPlaces,
}

#[derive(Clone, Debug)]
pub(crate) enum Launch {
    Scalars,
    Product {
        of: Operand,
        x: VectorId,
        w: VectorId,
        z: VectorId,
        y: VectorId,
        blend: Blend,
        /// Launches that do the same one after another, if there are any.
        apart: Option<Apart>,
    },
    Update {
        space: Space,
        pass: Pass,
        vectors: [VectorId; PASS_VECTORS],
    },
    Basis(Space, OverBasis),
    Pixels(OverPixels),
    Alone(Alone),
}

impl From<OverPixels> for Launch {
    fn from(call: OverPixels) -> Self {
        Self::Pixels(call)
    }
}

impl From<(Space, OverBasis)> for Launch {
    fn from((of, call): (Space, OverBasis)) -> Self {
        Self::Basis(of, call)
    }
}

impl Launch {
    /// Coefficients for what it does after its program.
    pub(crate) fn coefficients(&self) -> Vec<Scalar> {
        match self {
            Self::Pixels(OverPixels::Direction { beta, .. }) => vec![*beta],
            _ => Vec::new(),
        }
    }

    /// Tells if it is a product and nothing else: no program, no blend, no sums.
    pub(crate) fn is_bare_product(&self) -> bool {
        matches!(
            self,
            Self::Product { blend: Blend::PLAIN, apart: Some(Apart { has_program: false, sums: None, .. }), .. }
        )
    }

    /// Tells if it runs a program, which hands the slot on.
    pub(crate) fn runs_program(&self) -> bool {
        match self {
            Self::Basis(_, call) => call.runs_program(),
            Self::Pixels(call) => matches!(call, OverPixels::Direction { .. }),
            Self::Alone(_) => false,
            _ => true,
        }
    }
}

/// A product in launches of their own: its program, the product, its sums.
#[derive(Clone, Debug)]
pub(crate) struct Apart {
    /// Tells if there is a program.
    pub(crate) has_program: bool,
    /// A block with the coefficients of the product, and no program.
    pub(crate) bare: u32,
    /// A pass over `y` and `z` that makes the sums, if there are any.
    pub(crate) sums: Option<Box<Call>>,
}
