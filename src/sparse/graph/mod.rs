//! The graph of a matrix: orders, partitions, matchings.

#[cfg(feature = "metis")]
mod dissection;
mod matching;
mod minimum_degree;
mod order;
mod partition;
mod permutation;

pub(crate) use matching::structural_rank;
pub(crate) use order::{colours, of_symmetric};

pub use order::Ordering;
pub use partition::Partition;
pub use permutation::Permutation;
