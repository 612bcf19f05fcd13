//! Set-up of a flow.

use super::obstacles::Obstacles;
use crate::number::Real;
use crate::setters::setters;
use crate::solver::Stopping;

/// Behaviour of a flow along walls and obstacles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Wall {
    /// It sticks to them; the upper wall moves to the right with this velocity.
    NoSlip {
        /// Velocity of the upper wall.
        lid: f64,
    },
    /// It slips along them without friction.
    FreeSlip,
}

/// Interpolation between nodes of the grid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interpolation {
    /// Linearly, as the paper has it: stable, and as viscous as half a cell times the velocity where the flow moves less than a cell a step.
    #[default]
    Linear,
    /// By cubic polynomials through sixteen nodes: second order in all.
    Cubic,
}

/// Rule by which a place is traced back in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trace {
    /// By the velocity there.
    #[default]
    Euler,
    /// By the velocity half a step before: second order.
    Midpoint,
}

/// Rule by which a step joins what viscosity and transport do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Splitting {
    /// The velocity that viscosity has spread is carried along: no step adds energy, at any velocity.
    #[default]
    Sequential,
    /// Both of the velocity before, and their changes added, as equations 5 and 6 of the paper have it: waves as short as two cells may grow
    /// where the flow moves half a cell a step or more, since neighbours of a face are none of the place that the flow comes from.
    Additive,
}

/// Start guess of the pressure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PressureStart {
    /// The pressure of the step before, times the number that makes it the best of its direction: a solve that ends after a few iterations never
    /// adds energy to the flow.
    #[default]
    Scaled,
    /// The pressure of the step before, as the paper has it. A solve that ends after a few iterations may add energy.
    Last,
}

/// Set-up of [`Flow`](super::Flow).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FlowSetup {
    /// Width and height in cells.
    pub size: [usize; 2],
    /// Side of a cell, in the unit of length.
    pub cell: f64,
    /// Time step.
    pub step: f64,
    /// Kinematic viscosity, `1 / Re` where velocity and length have the unit 1. `viscosity * step / cell²` may be up to 1/4.
    pub viscosity: f64,
    /// Behaviour along walls and obstacles.
    pub wall: Wall,
    /// Interpolation between nodes.
    pub interpolation: Interpolation,
    /// Rule by which a place is traced back in time.
    pub trace: Trace,
    /// Rule by which viscosity and transport are joined.
    pub splitting: Splitting,
    /// Start guess of the pressure.
    pub pressure_start: PressureStart,
    /// Solid cells.
    pub obstacles: Option<Obstacles>,
    /// When the pressure is solved for.
    pub stopping: Stopping,
}

impl FlowSetup {
    setters! {
        with_size: size([usize; 2]),
        with_cell: cell(f64),
        with_step: step(f64),
        with_viscosity: viscosity(f64),
        with_wall: wall(Wall),
        with_interpolation: interpolation(Interpolation),
        with_trace: trace(Trace),
        with_splitting: splitting(Splitting),
        with_pressure_start: pressure_start(PressureStart),
        with_obstacles: obstacles(impl Obstacles),
        with_stopping: stopping(Stopping),
    }

    /// A closed box of `[width, height]` cells to which the flow sticks, with linear interpolation and Euler's rule; the pressure is solved
    /// for as [`Stopping::for_precision`] says.
    pub fn new<T: Real>(size: [usize; 2], cell: f64, step: f64, viscosity: f64) -> Self {
        Self {
            size,
            cell,
            step,
            viscosity,
            wall: Wall::NoSlip { lid: 0.0 },
            interpolation: Interpolation::default(),
            trace: Trace::default(),
            splitting: Splitting::default(),
            pressure_start: PressureStart::default(),
            obstacles: None,
            stopping: Stopping::for_precision::<T>(),
        }
    }
}
