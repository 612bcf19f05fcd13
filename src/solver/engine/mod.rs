//! Methods on a device: what runs scripts ([`scripted`]), and methods of two launches an iteration ([`cgnr`]).

pub mod cgnr;
mod damping;
mod operands;
mod products;
mod residence;
mod scripted;

pub(crate) use operands::Operators;
pub(crate) use products::{between, roots};
pub(crate) use scripted::boxed;
