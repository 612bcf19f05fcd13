//! Approximate inverses: preconditioners that are applied by products alone.

mod ainv;
mod ainv_options;
mod bainv;
mod biconjugation;
mod columns;
mod factored;
mod fsai;
mod spai;

pub use ainv::Ainv;
pub use ainv_options::{AinvOptions, Orthogonalisation};
pub use bainv::{Bainv, BainvOptions};
pub use biconjugation::{NonsymmetricAinv, NonsymmetricAinvOptions};
pub use fsai::{AdaptivePattern, Fsai, FsaiOptions, FsaiPattern};
pub use spai::{Spai, SpaiOptions};
