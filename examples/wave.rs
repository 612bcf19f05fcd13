//! Waves on water.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use common::Precision;
use common::simulate::picture::{PALETTES, Picture, watery};
use common::simulate::{Change, Drag, ShowOptions, Simulation, read_obstacles, vector_bits};
use residuum::operator::Boundary;
use residuum::simulation::{TimeAverage, WaveSetup, Waves};
use residuum::sparse::gallery::Random;
use residuum::{Device, Format, Real, Report, Result};
use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum BoundaryKind {
    /// The surface is fixed at the boundary
    Fixed,
    /// Waves come back from the boundary
    Reflecting,
    /// Both ends are one: a side continues on the other
    Periodic,
}

/// Waves on water by implicit steps in time (krueger-westermann-2003, section 6), five iterations of conjugate gradients each.
///
/// Drops fall now and then. With --window the mouse makes waves, and the keys left and right choose how time is discretised. Exit status: 0
/// done, 1 a step did not converge or means nothing, 2 bad input.
#[derive(Debug, Parser)]
#[command(name = "wave", version = common::version(), after_help = common::help_of_work())]
struct Options {
    /// (c dt / dx)^2, the square of the grid distances that a wave goes in a step
    #[arg(long, default_value_t = 0.5, allow_hyphen_values = true)]
    gamma: f64,
    /// Condition at the boundary
    #[arg(long, value_enum, default_value_t = BoundaryKind::Reflecting)]
    boundary: BoundaryKind,
    /// Curvature of the new and the present surface, as in the paper: waves die away. Without it they keep their energy
    #[arg(long)]
    damped: bool,
    /// Picture (PNG) whose dark parts are solid
    #[arg(long, value_name = "FILE")]
    obstacles: Option<PathBuf>,
    /// Storage of the matrix: on-the-fly (a stencil, unless there are obstacles), csr, dia, ...
    #[arg(long, value_name = "FORMAT", default_value = "on-the-fly")]
    format: Format,
    /// Steps between two drops, 0 for the first alone
    #[arg(long, value_name = "N", default_value_t = 40)]
    drops: usize,
    #[command(flatten)]
    show: ShowOptions,
}

fn main() -> ExitCode {
    common::begin("wave");
    let options = Options::parse();
    let outcome = match options.show.precision {
        Precision::Fp32 => simulate::<f32>(&options),
        Precision::Fp64 => simulate::<f64>(&options),
    };
    common::exit::<Options>("wave", outcome)
}

fn simulate<T: Real>(options: &Options) -> Result<bool> {
    options.show.check(options.obstacles.as_deref(), &[])?;
    let mouse = "left button presses the water down, right button lifts it";
    options.show.run(&mut Program::<T>::new(options)?, "wave", mouse)
}

/// Waves, and where the next drop falls.
struct Program<T: Real> {
    setup: WaveSetup,
    device: Device,
    waves: Waves<T>,
    drops: usize,
    frame: usize,
    random: Random,
    colours: usize,
    energy: f64,
}

/// Iterations of a step in the paper.
const ITERATIONS: usize = 5;

impl<T: Real> Program<T> {
    fn new(options: &Options) -> Result<Self> {
        let size = options.show.size.unwrap_or([512; 2]);
        let mut setup = WaveSetup::new::<T>(size, options.gamma);
        setup.boundary = match options.boundary {
            BoundaryKind::Fixed => Boundary::Zero,
            BoundaryKind::Reflecting => Boundary::Reflecting,
            BoundaryKind::Periodic => Boundary::Periodic,
        };
        setup.average = if options.damped { TimeAverage::NewAndPresent } else { TimeAverage::NewAndPrevious };
        let device = options.show.open::<T>(size, 9)?;
        setup.obstacles = options.obstacles.as_deref().map(|path| read_obstacles(path, size)).transpose()?;
        (setup.format, setup.stopping) = (options.format, options.show.stopping::<T>(Some(ITERATIONS)));
        let waves = still(&device, &setup)?;
        let mut program = Self {
            setup,
            device,
            waves,
            drops: options.drops,
            frame: 0,
            random: Random::new(2003),
            colours: 2,
            energy: 0.0,
        };
        program.drop(0.35, 0.4)?;
        program.energy = program.waves.energy()?;
        Ok(program)
    }

    /// Lets a drop fall at these parts of width and height.
    fn drop(&mut self, x: f64, y: f64) -> Result<()> {
        let [width, height] = self.setup.size.map(|n| n as f64);
        self.waves.disturb([x * width, y * height], (width.min(height) / 24.0).max(2.0), -4.0)
    }
}

fn still<T: Real>(device: &Device, setup: &WaveSetup) -> Result<Waves<T>> {
    Waves::new(device, setup, &vec![T::default(); setup.size[0] * setup.size[1]])
}

impl<T: Real> Simulation for Program<T> {
    fn step(&mut self) -> Result<Option<Report>> {
        self.frame += 1;
        if self.drops > 0 && self.frame.is_multiple_of(self.drops) {
            let (x, y) = (self.random.uniform(), self.random.uniform());
            self.drop(0.1 + 0.8 * x, 0.1 + 0.8 * y)?;
        }
        self.waves.step().map(Some)
    }

    fn draw(&self, picture: &mut Picture) -> Result<()> {
        let heights = self.waves.surface().to_vec()?;
        let solid = self.setup.obstacles.as_ref().map(|obstacles| obstacles.solid());
        picture.palette = if self.colours == 2 { watery() } else { PALETTES[self.colours]() };
        match self.colours {
            2 => picture.draw_surface(&heights, 0.35, solid),
            _ => picture.draw(&heights, [-2.0, 2.0], solid),
        }
        Ok(())
    }

    fn bits(&self) -> Result<Vec<u64>> {
        Ok(vector_bits(self.waves.surface())?.collect())
    }

    fn reset(&mut self) -> Result<()> {
        self.waves.surface_mut().fill(T::default())?;
        self.waves.before_mut().fill(T::default())?;
        self.drop(0.35, 0.4)
    }

    fn drag(&mut self, drag: Drag) -> Result<()> {
        let radius = (self.setup.size[0].min(self.setup.size[1]) as f64 / 40.0).max(2.0);
        self.waves.disturb(drag.place, radius, if drag.second { 0.6 } else { -0.6 })
    }

    fn change(&mut self, change: Change) -> Result<()> {
        match change {
            Change::Colours => {
                self.colours = (self.colours + 1) % PALETTES.len();
                return Ok(());
            }
            Change::Other(_) => {
                self.setup.average = match self.setup.average {
                    TimeAverage::NewAndPrevious => TimeAverage::NewAndPresent,
                    _ => TimeAverage::NewAndPrevious,
                };
            }
            Change::Step(up) => {
                let gamma = self.setup.gamma * if up { 1.5 } else { 1.0 / 1.5 };
                if !(1e-4..=1e4).contains(&gamma) {
                    return Ok(());
                }
                self.setup.gamma = gamma;
            }
        }
        let mut waves = still(&self.device, &self.setup)?;
        waves.surface_mut().copy_from(self.waves.surface())?;
        waves.before_mut().copy_from(self.waves.surface())?;
        self.waves = waves;
        Ok(())
    }

    fn parameters(&self) -> String {
        let damped = if self.setup.average == TimeAverage::NewAndPresent { ", damped" } else { "" };
        format!("gamma = {:.3}{damped}", self.setup.gamma)
    }

    fn results(&mut self) -> Result<(Option<String>, Value, bool)> {
        let energy = self.waves.energy()?;
        let words = format!("energy {energy:.6e}, of the first drop {:.6e}", self.energy);
        Ok((
            Some(words),
            json!({ "energy": energy, "energy_at_first": self.energy, "format": self.waves.matrix().format().to_string() }),
            false,
        ))
    }

    fn remedy(&self) -> &'static str {
        "--gamma to a smaller one"
    }

    fn size(&self) -> [usize; 2] {
        self.setup.size
    }

    fn device(&self) -> Device {
        self.device.clone()
    }
}
