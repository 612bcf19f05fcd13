//! Heat that flows through a picture, forwards and backwards in time.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use common::simulate::picture::{PALETTES, Picture};
use common::simulate::{Change, Drag, ShowOptions, Simulation, read_picture, vector_bits};
use common::{Precision, option};
use residuum::operator::Boundary;
use residuum::simulation::{Heat, HeatSetup};
use residuum::{Device, Format, Real, Report, Result};
use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum BoundaryKind {
    /// Cold beyond the boundary: heat is lost
    Lossy,
    /// No heat passes the boundary
    Insulated,
    /// Both ends are one: a side continues on the other
    Periodic,
}

/// Let heat flow through a picture by implicit steps in time, (I + s L) u' = u with the 5-point Laplacian L (michels-2011, section 7).
///
/// The brightness of the picture is its temperature. Without a picture: an emblem. With --window the mouse warms and cools, and the keys
/// left and right turn time round. Exit status: 0 done, 1 a step did not converge or means nothing, 2 bad input.
#[derive(Debug, Parser)]
#[command(name = "heat", version = common::version(), after_help = common::help_of_work())]
struct Options {
    /// Picture (PNG) to begin with, in its own size or that of --size
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Step in time over the square of the grid distance, s = dt / dx^2
    #[arg(long, value_name = "S", default_value_t = 1.0, allow_hyphen_values = true)]
    step: f64,
    /// Condition at the boundary
    #[arg(long, value_enum, default_value_t = BoundaryKind::Lossy)]
    boundary: BoundaryKind,
    /// Go backwards in time: one product a step, which makes noise grow by up to 1 + 8 s
    #[arg(long)]
    backwards: bool,
    /// Storage of the matrix: on-the-fly (a stencil, nothing stored), or ellpack-r (the paper's), csr, dia, ...
    #[arg(long, value_name = "FORMAT", default_value = "on-the-fly")]
    format: Format,
    #[command(flatten)]
    show: ShowOptions,
}

fn main() -> ExitCode {
    common::begin("heat");
    let options = Options::parse();
    let outcome = match options.show.precision {
        Precision::Fp32 => simulate::<f32>(&options),
        Precision::Fp64 => simulate::<f64>(&options),
    };
    common::exit::<Options>("heat", outcome)
}

fn simulate<T: Real>(options: &Options) -> Result<bool> {
    options.show.check(options.input.as_deref(), &[])?;
    options.show.run(&mut Program::<T>::new(options)?, "heat", "left button warms, right button cools")
}

/// Heat with what it began with.
struct Program<T: Real> {
    setup: HeatSetup,
    start: Vec<T>,
    device: Device,
    heat: Heat<T>,
    backwards: bool,
    colours: usize,
    total: f64,
}

/// Bars and a disc on a dark ground.
fn emblem([width, height]: [usize; 2]) -> Vec<f32> {
    let at = |c: usize| {
        let x = ((c % width) as f64 + 0.5) / width as f64 * 2.0 - 1.0;
        let y = ((c / width) as f64 + 0.5) / height as f64 * 2.0 - 1.0;
        let (ring, disc) = ((x * x + y * y).sqrt(), (x * x + y * y) < 0.09);
        let ring = (0.62..0.82).contains(&ring);
        let bar = x.abs() < 0.07 && y.abs() < 0.72 || y.abs() < 0.07 && x.abs() < 0.72;
        let teeth = ring && (8.0 * y.atan2(x)).sin() > 0.0;
        f32::from(u8::from(disc || bar || teeth)) + if ring && !teeth { 0.35 } else { 0.0 }
    };
    (0..width * height).map(at).collect()
}

impl<T: Real> Program<T> {
    fn new(options: &Options) -> Result<Self> {
        let show = &options.show;
        let picture = match &options.input {
            Some(path) => Some(read_picture(path, show.size)?),
            None => None,
        };
        let size = picture.as_ref().map_or(show.size.unwrap_or([512; 2]), |picture| picture.size);
        let device = show.open::<T>(size, 8)?;
        let start = picture.map_or_else(|| emblem(size), |picture| picture.values);
        if options.backwards && (show.iterations.is_some() || show.rtol.is_some()) {
            return Err(option(
                "backwards",
                "a step backwards solves nothing: --iterations and --rtol change nothing",
            ));
        }
        let start: Vec<T> = start.into_iter().map(|v| T::from_f64(f64::from(v))).collect();
        let mut setup = HeatSetup::new::<T>(size, options.step);
        setup.boundary = match options.boundary {
            BoundaryKind::Lossy => Boundary::Zero,
            BoundaryKind::Insulated => Boundary::Reflecting,
            BoundaryKind::Periodic => Boundary::Periodic,
        };
        (setup.format, setup.stopping) = (options.format, show.stopping::<T>(None));
        let heat = Heat::new(&device, &setup, &start)?;
        let total = heat.temperature().sum()?;
        Ok(Self { setup, start, device, heat, backwards: options.backwards, colours: 0, total })
    }
}

impl<T: Real> Simulation for Program<T> {
    fn step(&mut self) -> Result<Option<Report>> {
        if self.backwards {
            return self.heat.step_back().map(|()| None);
        }
        self.heat.step().map(Some)
    }

    fn draw(&self, picture: &mut Picture) -> Result<()> {
        picture.palette = PALETTES[self.colours]();
        picture.draw(&self.heat.temperature().to_vec()?, [0.0, 1.0], None);
        Ok(())
    }

    fn bits(&self) -> Result<Vec<u64>> {
        Ok(vector_bits(self.heat.temperature())?.collect())
    }

    fn reset(&mut self) -> Result<()> {
        self.heat.temperature_mut().write(&self.start)
    }

    fn drag(&mut self, drag: Drag) -> Result<()> {
        let radius = self.setup.size[0].min(self.setup.size[1]) as f64 / 16.0;
        self.heat.warm(drag.place, radius.max(1.5), if drag.second { -0.3 } else { 0.3 })
    }

    fn change(&mut self, change: Change) -> Result<()> {
        match change {
            Change::Colours => self.colours = (self.colours + 1) % PALETTES.len(),
            Change::Other(_) => self.backwards = !self.backwards,
            Change::Step(up) => {
                let step = self.setup.step * if up { 1.5 } else { 1.0 / 1.5 };
                if (1e-6..=1e6).contains(&step) {
                    let now = self.heat.temperature().to_vec()?;
                    self.setup.step = step;
                    self.heat = Heat::new(&self.device, &self.setup, &now)?;
                }
            }
        }
        Ok(())
    }

    fn parameters(&self) -> String {
        format!("s = {:.3}{}", self.setup.step, if self.backwards { ", backwards" } else { "" })
    }

    fn results(&mut self) -> Result<(Option<String>, Value, bool)> {
        let total = self.heat.temperature().sum()?;
        let words = format!("heat in the picture {total:.6e}, {:.6} times that at the start", total / self.total);
        Ok((
            Some(words),
            json!({ "heat": total, "heat_at_first": self.total, "format": self.heat.matrix().format().to_string() }),
            false,
        ))
    }

    fn has_tolerance(&self) -> bool {
        true
    }

    fn remedy(&self) -> &'static str {
        "--step to a smaller one"
    }

    fn size(&self) -> [usize; 2] {
        self.setup.size
    }

    fn device(&self) -> Device {
        self.device.clone()
    }
}
