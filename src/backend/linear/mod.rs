//! Vectors, matrices and operators: what every method uses.

pub(crate) mod generated;
pub(crate) mod pointwise;
pub(crate) mod product;
pub(crate) mod projection;
pub(crate) mod scatter;
pub(crate) mod selection;
pub(crate) mod split;
pub(crate) mod vector;
