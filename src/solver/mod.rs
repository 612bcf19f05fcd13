//! Iterative methods. [`driver`] alone loops, stops, verifies and reports; a method is a script of launches ([`plan`])
//! that [`engine`] runs, or, where two launches suffice, operations of its own ([`cg`], [`cgnr`]).

mod bicgstab;
mod bidiagonal;
mod cg;
mod cgls;
mod cgne;
mod cgnr;
mod chebyshev;
mod correction;
mod driver;
mod engine;
mod gmres;
mod lsmr;
mod lsqr;
mod method;
mod minres;
mod pcg;
mod plan;
mod products;
mod report;
mod scaling;
mod solve;
mod stationary;
mod steepest_descent;
mod stopping;
mod system;
mod workspace;

pub use cgnr::Cgnr;
pub use correction::Correction;
pub use driver::{Observer, Progress};
pub use method::Method;
pub use report::{Report, Stop, Times};
pub use solve::{Setup, Solver};
pub use stopping::Stopping;
