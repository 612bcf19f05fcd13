//! A solve under way: the loop, its books, and its report.

mod column;
mod driver;
mod history;
mod iteration;
mod report;
mod runner;
mod stop;
mod workspace;

pub(crate) use iteration::{Outcome, Status};
pub(crate) use runner::Runner;
pub(crate) use workspace::{Inputs, Look, Workspace, no_bounds, no_corrections, no_residual};

pub use driver::{Observer, Progress};
pub use report::{Report, Times};
pub use stop::Stop;
