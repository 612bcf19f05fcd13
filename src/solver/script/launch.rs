//! Launches of a script as the engine queues them.

use super::calls::{Gather, OfPenalty, OverBasis, OverImage, StepLimit};
use super::vectors::{Operand, Space, VectorId};
use crate::backend::script::{Blend, PASS_VECTORS, Pass};

/// A launch, ready to be queued.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// Start of its program.
    pub(crate) block: u32,
    pub(crate) launch: Launch,
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
    Image(OverImage),
    Limit(StepLimit),
    Gather(Gather),
    Penalty(OfPenalty),
}

impl Launch {
    /// Tells if it runs a program, which hands the slot on.
    pub(crate) fn runs_program(&self) -> bool {
        match self {
            Self::Basis(_, call) => call.runs_program(),
            Self::Image(_) | Self::Limit(_) | Self::Gather(_) | Self::Penalty(_) => false,
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
