//! Methods on a device: what runs scripts ([`scripted`]), and the operators that they name.

mod damping;
mod inputs;
mod operands;
mod products;
mod regularised;
mod residence;
mod scripted;

pub(crate) use inputs::{Inputs, Status};
pub(crate) use operands::Operators;
pub(crate) use products::{between, cgnr_kernels, roots};
pub(crate) use scripted::{Engine, set_up};
