//! Linear operators: what a solver multiplies by. A stored [`Matrix`](crate::Matrix) is one, a stencil or a scanner's projector that is
//! never stored, a user's own [`LinearOperator`], and sums, products, multiples and transposes of any of them.

mod algebra;
mod deflation;
mod diagonal;
mod generated;
mod linear;
mod norms;
mod selection;
mod split;
mod stencil;
mod subsets;

pub use algebra::{Adjoint, Identity, LinearOperatorExt, ProductOperator, Scale, SumOperator};
pub use deflation::Deflation;
pub use diagonal::Diagonal;
pub use generated::Generated;
pub use linear::{LinearOperator, RowSubsets, SharedOperator, Structure};
pub(crate) use linear::{check_shape, into_shared, no_adjoint, one_column};
pub use norms::{adjoint_error, estimate_norm, frobenius_norm};
pub(crate) use norms::{estimate_norm_in, magnitude};
pub use selection::Selection;
pub use split::SplitRows;
pub use stencil::{Boundary, Stencil};
pub use subsets::Subsets;
pub(crate) use subsets::{SubsetsScratch, check_count};
