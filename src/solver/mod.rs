//! Iterative methods: each is state and step; [`driver`] alone loops, stops, verifies and reports.

mod cg;
mod cgnr;
mod driver;
mod products;
mod report;
mod stopping;

pub use cg::Cg;
pub use cgnr::{Cgnr, Correction};
pub use driver::{Observer, Progress};
pub use report::{Report, Stop, Times};
pub use stopping::Stopping;
