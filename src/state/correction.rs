//! Weights of a correction, one after another: `cl/script/correction.cl`.

pub(crate) const TIKHONOV: usize = 0;
pub(crate) const SMOOTH: usize = 1;
pub(crate) const VARIATION: usize = 2;
pub(crate) const EPSILON2: usize = 3;
/// Weight of the violation of bounds.
pub(crate) const BOX: usize = 4;
pub(crate) const LOWER: usize = 5;
pub(crate) const UPPER: usize = 6;
pub(crate) const WEIGHTS: usize = 7;
