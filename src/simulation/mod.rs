//! Simulations that solve a system in every step: heat flow on a picture, waves on water, incompressible flow.
//!
//! Each is set up once and stepped as often as is wanted: after the first step nothing is allocated and no program is built. Fields lie
//! on the device row by row, row 0 uppermost, and are read with [`Vector::to_vec`](crate::Vector::to_vec). The same set-up gives the
//! same bits on the host and on every device. Steps take the last answer of a solve ([`Answer::Last`]).

mod bump;
pub mod cases;
mod flow;
mod flow_setup;
mod heat;
mod obstacles;
mod waves;

pub use flow::Flow;
pub use flow_setup::{FlowSetup, Interpolation, PressureStart, Splitting, Trace, Wall};
pub use heat::{Heat, HeatSetup};
pub use obstacles::Obstacles;
pub use waves::{TimeAverage, WaveSetup, Waves};

use crate::error::{Error, Result};
use crate::solver::{Answer, Stopping};

/// Rules with the last answer: a step that ends early has the least energy of the error there, whatever its residual is.
fn last(stopping: &Stopping) -> Stopping {
    Stopping { answer: Answer::Last, ..stopping.clone() }
}

/// Cells of a grid.
///
/// # Errors
/// [`Error::Option`] for fewer than `least` along a side, or for more than 2³¹ in all.
fn cells([width, height]: [usize; 2], least: usize) -> Result<usize> {
    let bad = |reason| Err(Error::Option { name: "size", reason });
    if width < least || height < least {
        return bad(format!("a grid of {width} x {height} is smaller than {least} x {least}"));
    }
    match width.checked_mul(height).filter(|cells| *cells <= 1 << 31) {
        Some(cells) => Ok(cells),
        None => bad(format!("a grid of {width} x {height} has more than 2^31 points")),
    }
}

/// Fails unless `value` is positive and finite.
fn positive(name: &'static str, value: f64) -> Result<()> {
    match value > 0.0 && value.is_finite() {
        true => Ok(()),
        false => Err(Error::Option { name, reason: format!("{value} is not a positive number") }),
    }
}
