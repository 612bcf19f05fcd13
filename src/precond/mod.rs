//! Preconditioners: approximations of an inverse, each a [`LinearOperator`](crate::operator::LinearOperator) to be put into
//! [`Setup::preconditioner`](crate::Setup). [`Preconditioner`] makes them by name.

mod block_jacobi;
mod build;
mod incomplete;
mod inverse;
mod jacobi;
mod kind;
mod memory;
mod named;
mod polynomial;
mod support;
mod sweep;
mod two_level;

pub(crate) use support::mirrored;

pub use block_jacobi::{BlockJacobi, BlockJacobiOptions};
pub use build::Built;
pub use incomplete::{Factorisation, Fill, Incomplete, IncompleteOptions};
pub use inverse::{
    AdaptivePattern, Ainv, AinvOptions, Bainv, BainvOptions, Fsai, FsaiOptions, FsaiPattern, NonsymmetricAinv,
    NonsymmetricAinvOptions, Orthogonalisation, Spai, SpaiOptions,
};
pub use named::Preconditioner;
pub use polynomial::{Polynomial, PolynomialOptions};
pub use sweep::{RowOrdering, Sweep, SweepKind, SweepOptions};
pub use two_level::{TwoLevel, TwoLevelOptions};
