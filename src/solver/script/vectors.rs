//! Names of a script's vectors and operators.

/// A space of an operator, or of one of its subsets, to which a vector belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    /// Vectors as long as `A` has rows.
    Rows,
    /// Vectors as long as `A` has columns.
    Cols,
    /// Vectors as long as this subset has rows.
    Subset(u16),
}

impl Space {
    pub(crate) fn index(self) -> usize {
        match self {
            Self::Rows => 0,
            Self::Cols => 1,
            Self::Subset(k) => 2 + usize::from(k),
        }
    }
}

/// A vector of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VectorId(pub(super) u16);

/// The answer.
pub(crate) const X: VectorId = VectorId(0);
/// The right-hand side; a product may be added to it, nothing else takes it.
pub(crate) const B: VectorId = VectorId(u16::MAX);

impl VectorId {
    /// Vectors that fill places of a call which are not used.
    pub(crate) const FILLER: Self = Self(1);
    pub(crate) const SECOND_FILLER: Self = Self(2);

    pub(crate) fn index(self) -> usize {
        self.0.into()
    }

    /// The vector of this index.
    pub(crate) fn of_index(index: usize) -> Self {
        Self(index as u16)
    }
}

/// Operator of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    A,
    Adjoint,
    Preconditioner,
    /// `W'` and `W` of a preconditioner `W W'`.
    RootAdjoint,
    Root,
    /// A subset of the rows of `A`, and its adjoint.
    Subset(u16),
    SubsetAdjoint(u16),
}

impl Operand {
    /// Place among the products of a script.
    pub(crate) fn index(self) -> usize {
        match self {
            Self::A => 0,
            Self::Adjoint => 1,
            Self::Preconditioner => 2,
            Self::RootAdjoint => 3,
            Self::Root => 4,
            Self::Subset(k) => Self::count(usize::from(k)),
            Self::SubsetAdjoint(k) => Self::count(usize::from(k)) + 1,
        }
    }

    /// Number of operands of a script with so many subsets.
    pub(crate) fn count(subsets: usize) -> usize {
        5 + 2 * subsets
    }
}

/// Way of preconditioning residuals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Preconditioning {
    None,
    /// By a diagonal, held in this vector: done in the pass that makes the residual.
    Diagonal(VectorId),
    /// By a product.
    Operator,
    /// By a product with `W W'`, whose factors CG takes apart.
    Roots,
}

impl Preconditioning {
    /// The vector that holds the diagonal, if it is one.
    pub(crate) fn diagonal(self) -> Option<VectorId> {
        match self {
            Self::Diagonal(d) => Some(d),
            Self::None | Self::Operator | Self::Roots => None,
        }
    }
}
