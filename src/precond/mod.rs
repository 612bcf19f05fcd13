//! Preconditioners: approximations of an inverse, each a [`LinearOperator`](crate::operator::LinearOperator) to be put into
//! [`Setup::preconditioner`](crate::Setup). Jacobi's is [`Diagonal::inverse_of`](crate::operator::Diagonal::inverse_of).

mod levels;
mod sweep;

pub use sweep::{Ordering, Sweep};
