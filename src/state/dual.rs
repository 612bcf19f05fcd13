//! Registers of the terms of an image: `cl/script/dual.cl`. They follow each other for each column.

/// Length of a step of `p` and `q`.
pub(crate) const ASCENT_STEP: usize = 0;
/// Most that `|p|` may be: the weight of total variation.
pub(crate) const LIMIT: usize = 1;
/// Most that `|q|` may be.
pub(crate) const ALONG_LIMIT: usize = 2;
/// The direction `e`.
pub(crate) const ALONG_X: usize = 3;
pub(crate) const ALONG_Y: usize = 4;
