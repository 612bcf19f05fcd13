//! Sparse linear systems and ill-posed least squares on any OpenCL device, with the same bits everywhere.
//!
//! ```
//! use residuum::{Device, Format, Matrix, Method, Solver, Stopping, Vector, sparse::gallery};
//!
//! let device = Device::best()?; // a GPU, else a CPU through OpenCL, else the host back end
//! let a = Matrix::new(&device, &gallery::poisson_2d::<f64>(32, 0.0)?, Format::Auto)?;
//! let b = Vector::filled(&device, a.rows(), 1.0)?;
//! let mut x = Vector::zeros(&device, a.cols())?;
//! let report = Solver::new(&a, Method::Cg, Stopping::for_precision::<f64>())?.solve(&b, &mut x)?;
//! assert!(report.converged(), "{report}");
//! # Ok::<(), residuum::Error>(())
//! ```
// Readers of volumes, and what they share, are called by `imaging` alone.
#![cfg_attr(not(feature = "imaging"), allow(dead_code, unused_imports))]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout))]

/// The code of README.md, compiled and run.
#[cfg(all(doctest, feature = "png"))]
#[doc = include_str!("../README.md")]
struct Readme;

/// The code of docs/matrices.md, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../docs/matrices.md")]
struct Matrices;

mod allocations;
mod backend;
mod columns;
mod device;
mod device_info;
pub mod doctor;
mod error;
mod examine;
#[cfg(feature = "fem")]
pub mod fem;
mod files;
mod fourier;
#[cfg(feature = "imaging")]
pub mod imaging;
pub mod interop;
pub mod io;
mod kernels;
mod machine;
mod magnitude;
mod matrix;
pub mod measure;
mod memory;
mod number;
mod ocl;
pub mod operator;
mod pointwise;
pub mod precond;
mod recurrence;
mod reduction;
mod runs;
mod setters;
#[cfg(feature = "simulation")]
pub mod simulation;
mod solver;
pub mod sparse;
mod state;
mod text;
mod threads;
#[cfg(feature = "tuner")]
pub mod tuner;
pub mod tuning;
mod vector;
mod verdict;

pub use columns::Columns;
pub use device::{Candidate, DEVICE_VARIABLE, Device, DeviceFilter};
pub use device_info::{BackendKind, DeviceInfo, DeviceKind};
pub use error::{Error, Result};
pub use examine::{
    Advice, Attempt, Definiteness, Examination, FallbackSolve, HostSystem, build_for, build_for_until,
    solve_scaled_with_fallbacks, solve_with_fallbacks,
};
pub use files::{CACHE_VARIABLE, cache_folder};
pub use matrix::{Combine, Matrix, Storage, Transposed};
pub use number::{Accumulation, Arithmetic, Precision, Real};
pub use ocl::Programs;
pub use pointwise::Pointwise;
pub use solver::methods;
pub use solver::{
    Answer, ChosenWeight, Method, NullSpace, Observer, Penalty, Progress, Regularization, Report, RuleCurve,
    RulePoint, Setup, SharedPenalty, Solver, Stop, StopRule, Stopping, Times, WeightPoint, WeightRule, WeightStop,
};
pub use sparse::csr::Csr;
pub use sparse::formats::{Format, Offsets, Packing};
pub use sparse::interop::AsCsr;
pub use vector::{Reduction, Vector};
