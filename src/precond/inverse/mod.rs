//! Approximate inverses: preconditioners that are applied by products alone.

mod ainv;
mod ainv_options;
mod bainv;
mod biconjugation;
mod columns;
mod factored;
mod fsai;
mod spai;

pub(crate) use fsai::MOST_PLACES as PLACES_OF_FSAI;
pub(crate) use spai::MOST_PLACES as PLACES_OF_SPAI;

pub use ainv::Ainv;
pub use ainv_options::{AinvOptions, Orthogonalisation};
pub use bainv::{Bainv, BainvOptions};
pub use biconjugation::NonsymmetricAinv;
pub use fsai::{AdaptivePlaces, Fsai, FsaiOptions, FsaiPlaces};
pub use spai::{Spai, SpaiOptions};
