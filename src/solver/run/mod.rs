//! A solve under way: the loop, its books, and its report.

mod column;
mod driver;
mod history;
mod iteration;
mod report;
mod runner;
mod stop;

pub(crate) use iteration::Outcome;
pub(crate) use runner::{Ended, Runner, Task};

pub use driver::{Observer, Progress};
pub use report::{Report, Times};
pub use stop::Stop;
