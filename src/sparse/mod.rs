//! Matrices on the host: what users bring, before anything is sent to a device.

mod csr;
pub mod gallery;
mod interop;
mod rows;

pub use csr::Csr;
pub use rows::Format;
pub(crate) use rows::{RowOrder, Rows};
