//! Incompressible flow: dye and pushes, a lid-driven cavity, a vortex whose decay is known.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod program;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use common::Precision;
use common::simulate::ShowOptions;
use program::Program;
use residuum::{Real, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Case {
    /// A box into which dye is blown from two sides
    Jets,
    /// A box without anything, for the mouse
    Still,
    /// A box whose upper wall moves; compared with Ghia, Ghia and Shin 1982 at Reynolds numbers 100 and 1000
    Cavity,
    /// A vortex that keeps its shape, compared with the exact decay
    TaylorGreen,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum View {
    /// The dye
    Dye,
    /// The magnitude of the velocity
    Speed,
    /// The rotation of the velocity, red to the left
    Vorticity,
    /// The pressure
    Pressure,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InterpolationKind {
    /// Between four nodes, the paper's
    Linear,
    /// Between sixteen nodes, second order
    Cubic,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceKind {
    /// By the velocity where the flow arrives, the paper's
    Euler,
    /// By the velocity half a step before, second order
    Midpoint,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SplittingKind {
    /// Transport of what viscosity has spread: never grows
    Sequential,
    /// The sum of both changes, the paper's: may grow from half a cell a step on
    Additive,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StartKind {
    /// The last pressure times the best number: never adds energy
    Scaled,
    /// The last pressure, the paper's
    Last,
}

/// Incompressible flow in a closed box by the equations of Navier and Stokes (krueger-westermann-2003, section 6), four iterations of
/// conjugate gradients for the pressure in each step.
///
/// The shorter side of the box has the length 1; the singular system of the pressure is solved with the constants projected out. With
/// --window the left button pushes the fluid and blows dye into it, the right button dye alone, and the keys left and right change the
/// viscosity. Exit status: 0 done, 1 a step did not converge or means nothing or a case is far from its known answer, 2 bad input.
#[derive(Debug, Parser)]
#[command(name = "flow", version = common::version(), after_help = common::help_of_work())]
pub(crate) struct Options {
    /// Kind of flow
    #[arg(long, value_enum, default_value_t = Case::Jets)]
    pub(crate) case: Case,
    /// Reynolds number: of velocity and length 1
    #[arg(long, value_name = "RE", allow_hyphen_values = true)]
    pub(crate) reynolds: Option<f64>,
    /// Time step [default: two cells at velocity 1; what the viscosity allows in the cases that are compared]
    #[arg(long, value_name = "DT", allow_hyphen_values = true)]
    pub(crate) dt: Option<f64>,
    /// Simulate this time, instead of a number of frames
    #[arg(long, conflicts_with = "frames")]
    pub(crate) time: Option<f64>,
    /// Picture (PNG) whose dark parts are solid
    #[arg(long, value_name = "FILE")]
    pub(crate) obstacles: Option<PathBuf>,
    /// Interpolation between nodes of the grid [default: linear; cubic in the cases that are compared]
    #[arg(long, value_enum)]
    pub(crate) interpolation: Option<InterpolationKind>,
    /// Rule by which the flow is traced back [default: euler; midpoint in the cases that are compared]
    #[arg(long, value_enum)]
    pub(crate) trace: Option<TraceKind>,
    /// Order of viscosity and transport
    #[arg(long, value_enum, default_value_t = SplittingKind::Sequential)]
    pub(crate) splitting: SplittingKind,
    /// Start guess of the pressure
    #[arg(long, value_enum, default_value_t = StartKind::Scaled)]
    pub(crate) pressure_start: StartKind,
    /// Force of this size that turns the fluid about the middle of the box: S (sin(pi x) cos(pi y), -cos(pi x) sin(pi y)), x and y from 0 to 1
    #[arg(long, value_name = "S", default_value_t = 0.0, allow_hyphen_values = true)]
    pub(crate) swirl: f64,
    /// The flow slips along walls, instead of sticking to them
    #[arg(long)]
    pub(crate) slip: bool,
    /// Field that is drawn [default: dye; speed in the cavity, vorticity of the vortex]
    #[arg(long, value_enum)]
    pub(crate) view: Option<View>,
    #[command(flatten)]
    pub(crate) show: ShowOptions,
}

fn main() -> ExitCode {
    common::begin("flow");
    let options = Options::parse();
    let outcome = match options.show.precision {
        Precision::Fp32 => simulate::<f32>(options),
        Precision::Fp64 => simulate::<f64>(options),
    };
    common::exit::<Options>("flow", outcome)
}

fn simulate<T: Real>(mut options: Options) -> Result<bool> {
    options.show.check(options.obstacles.as_deref(), &[])?;
    let mut program = Program::<T>::new(&options)?;
    if let Some(time) = options.time {
        options.show.frames = Some(program.frames_of(time)?);
    }
    options.show.run(&mut program, "flow", "left button pushes and blows dye, right button dye alone")
}
