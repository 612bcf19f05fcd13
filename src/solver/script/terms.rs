//! Parts of a script that depend on the regularizations of the columns.

use super::vectors::VectorId;
use crate::recurrence::Scalar;

/// A scalar that depends on the regularization of its column and on `|A|`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Weight {
    /// `tau` for a `sigma` of 1, by `tau (sigma |A|² + step |D|²) = 1` with half of it for each term, or all of it without neighbours.
    Tau,
    /// The step of the dual variables of total variation for a `sigma` of 1, likewise.
    Step,
    /// `|A|²` and `1 / |A|`.
    Square,
    Inverse,
    Tikhonov,
    /// Weight of the total variation.
    Variation,
    /// Weight of the derivative along a direction.
    Directional,
    /// The direction: across and down.
    Across,
    Down,
}

/// Part of a script that depends on regularizations.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) weights: Vec<(Scalar, Weight)>,
    /// Least and greatest value of each pixel.
    pub(crate) bounds: [VectorId; 2],
    /// Sums that the script weighs by, if it does.
    pub(crate) inverse_sums: Option<InverseSums>,
    /// 1 for each free unknown, and 0 where both bounds are one: in scripts that keep lower bounds alone, 0 where none is given.
    pub(crate) free: Option<VectorId>,
    /// The script maximises the likelihood of counts: no unknown is negative, and the least residual is not what is wanted.
    pub(crate) likelihood: bool,
    /// Vectors that are 0 when a solve begins, and keep what they have when it starts over.
    pub(crate) dual: Vec<VectorId>,
    /// Neighbours of an image that the script was planned for.
    pub(crate) neighbours: Neighbours,
}

/// Vectors of `1 / A 1` and `1 / A'1`, element by element, 0 where a sum is 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InverseSums {
    pub(crate) rows: VectorId,
    pub(crate) cols: VectorId,
    /// The sum of a column is the largest of those of all subsets, instead of the whole one.
    pub(crate) of_subsets: bool,
}

/// Terms over neighbours that a script is planned for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Neighbours {
    /// Pixels of a row; 0 if there are none of these terms.
    pub(crate) width: usize,
    /// True if a derivative along a direction is among them.
    pub(crate) directional: bool,
}

impl Terms {
    /// Bounds, and scalars that go with them.
    pub(crate) fn within(bounds: [VectorId; 2], weights: Vec<(Scalar, Weight)>) -> Self {
        let (inverse_sums, free, dual, neighbours) = (None, None, Vec::new(), Neighbours::default());
        Self { weights, bounds, inverse_sums, free, likelihood: false, dual, neighbours }
    }
}
