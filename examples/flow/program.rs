//! The flow of the program: its set-up from the options, what happens in a frame, what is drawn.

use common::simulate::picture::{Picture, glowing, signed};
use common::simulate::{Change, Drag, Simulation, read_obstacles, vector_bits};
use common::{option, refuse_unused, tell};
use rayon::prelude::*;
use residuum::simulation::cases::{
    cavity, differences_from_ghia, ghia, taylor_green, taylor_green_decay, taylor_green_velocity,
};
use residuum::simulation::{Flow, FlowSetup, Interpolation, PressureStart, Splitting, Trace, Wall};
use residuum::{Device, Real, Report, Result};
use serde_json::{Value, json};

use crate::{Case, InterpolationKind, Options, SplittingKind, StartKind, TraceKind, View};

/// Iterations of a step in the paper.
const ITERATIONS: usize = 4;

/// Greatest difference from a known answer that counts as right.
const RIGHT: f64 = 0.01;

/// Longest time step: the box has length 1, and the fluid velocities about 1.
const LONGEST_STEP: f64 = 10.0;

/// A flow with what the program does to it.
pub(crate) struct Program<T: Real> {
    case: Case,
    reynolds: f64,
    device: Device,
    flow: Flow<T>,
    view: View,
    steps: usize,
}

/// Width and height of the box.
fn size(options: &Options) -> [usize; 2] {
    let known = matches!(options.case, Case::Cavity | Case::TaylorGreen);
    options.show.size.unwrap_or(if known { [128; 2] } else { [512; 2] })
}

/// The Reynolds number, and the set-up of a case.
fn set_up<T: Real>(options: &Options) -> Result<(f64, FlowSetup)> {
    let Options { case, show, .. } = options;
    let known = matches!(case, Case::Cavity | Case::TaylorGreen);
    let reynolds = options.reynolds.unwrap_or(match case {
        Case::Cavity => 100.0,
        Case::TaylorGreen => 50.0,
        Case::Jets | Case::Still => 5000.0,
    });
    if !(reynolds > 0.0 && reynolds.is_finite()) {
        return Err(option("reynolds", format!("{reynolds} is not a positive number")));
    }
    let [width, height] = size(options);
    let mut setup = match case {
        Case::Cavity => cavity::<T>(width, reynolds),
        Case::TaylorGreen => taylor_green::<T>(width, 1.0 / reynolds),
        Case::Jets | Case::Still => {
            let cell = 1.0 / width.min(height) as f64;
            let step = (2.0 * cell).min(0.25 * cell * cell * reynolds);
            FlowSetup::new::<T>([width, height], cell, step, 1.0 / reynolds)
        }
    };
    if known {
        if width != height {
            return Err(option("size", format!("{width} x {height}: this case is a square")));
        }
        refuse_unused(
            "in a case whose answer is known",
            &[("obstacles", options.obstacles.is_some()), ("slip", options.slip), ("swirl", options.swirl != 0.0)],
        )?;
    }
    setup.step = options.dt.unwrap_or(setup.step);
    if setup.step > LONGEST_STEP {
        let reason =
            format!("in a step of {} the fluid would cross the box as often: at most {LONGEST_STEP}", setup.step);
        return Err(option("dt", reason));
    }
    if let Some(kind) = options.interpolation {
        setup.interpolation =
            if kind == InterpolationKind::Cubic { Interpolation::Cubic } else { Interpolation::Linear };
    }
    if let Some(kind) = options.trace {
        setup.trace = if kind == TraceKind::Midpoint { Trace::Midpoint } else { Trace::Euler };
    }
    if options.splitting == SplittingKind::Additive {
        setup.splitting = Splitting::Additive;
    }
    if options.pressure_start == StartKind::Last {
        setup.pressure_start = PressureStart::Last;
    }
    if options.slip {
        setup.wall = Wall::FreeSlip;
    }
    setup.obstacles = options.obstacles.as_deref().map(|path| read_obstacles(path, [width, height])).transpose()?;
    setup.stopping = show.stopping::<T>(Some(ITERATIONS));
    Ok((reynolds, setup))
}

impl<T: Real> Program<T> {
    pub(crate) fn new(options: &Options) -> Result<Self> {
        let device = options.show.open::<T>(size(options), 16)?;
        let (reynolds, setup) = set_up::<T>(options)?;
        let mut flow = Flow::new(&device, setup)?;
        let swirl = options.swirl;
        if swirl != 0.0 {
            let sides = flow.setup().size.map(|side| side as f64 * flow.setup().cell);
            flow.set_force(Some(&|x, y| taylor_green_velocity(x / sides[0], y / sides[1]).map(|v| swirl * v)))?;
        }
        if flow.filled() > 0 {
            tell!("{} free cells without free neighbours, or in small pockets, were filled", flow.filled());
        }
        let view = options.view.unwrap_or(match options.case {
            Case::Cavity => View::Speed,
            Case::TaylorGreen => View::Vorticity,
            Case::Jets | Case::Still => View::Dye,
        });
        let mut program = Self { case: options.case, reynolds, device, flow, view, steps: 0 };
        program.begin()?;
        Ok(program)
    }

    /// Steps that this time takes.
    pub(crate) fn frames_of(&self, time: f64) -> Result<usize> {
        let frames = (time / self.flow.setup().step).ceil();
        match (1.0..=1e9).contains(&frames) {
            true => Ok(frames as usize),
            false => Err(option("time", format!("{time} is not a time of 1 to 10^9 steps"))),
        }
    }

    fn begin(&mut self) -> Result<()> {
        self.steps = 0;
        match self.case {
            Case::TaylorGreen => self.flow.set_velocity(&taylor_green_velocity),
            Case::Jets | Case::Still | Case::Cavity => Ok(()),
        }
    }

    /// Two jets of dye, which meet.
    fn blow(&mut self) -> Result<()> {
        let [width, height] = self.flow.setup().size.map(|n| n as f64);
        let radius = (height / 18.0).max(2.0);
        for (x, y, speed) in [(0.12, 0.62, 0.35), (0.88, 0.42, -0.3)] {
            let place = [x * width, y * height];
            self.flow.push(place, radius, [speed, -0.15 * speed])?;
            self.flow.inject(place, radius, 0.12)?;
        }
        Ok(())
    }

    /// Values of a view other than the dye, in each cell.
    fn values(&self, view: View) -> Result<Vec<f32>> {
        if view == View::Pressure {
            return Ok(self.flow.pressure().to_vec()?.into_iter().map(|v| v.to_f64() as f32).collect());
        }
        let (width, h) = (self.flow.setup().size[0], self.flow.setup().cell);
        let [u, v] = self.flow.velocity();
        let (u, v) = (u.to_vec()?, v.to_vec()?);
        let right = |c: usize| if (c + 1).is_multiple_of(width) { 0.0 } else { u[c + 1].to_f64() };
        let below = |c: usize| v.get(c + width).map_or(0.0, |v| v.to_f64());
        let value = |c: usize| {
            let here = [u[c].to_f64(), v[c].to_f64()];
            if view == View::Speed {
                return (here[0] + right(c)).hypot(here[1] + below(c)) / 2.0;
            }
            // At the upper left corner of the cell; rows count downwards.
            match c.is_multiple_of(width) || c < width {
                true => 0.0,
                false => ((here[0] - u[c - width].to_f64()) - (here[1] - v[c - 1].to_f64())) / h,
            }
        };
        Ok((0..u.len()).into_par_iter().with_min_len(4096).map(|c| value(c) as f32).collect())
    }

    /// Greatest error of `u` from the exact decay of the vortex, in units of its velocity now.
    fn vortex_error(&self) -> Result<f64> {
        let FlowSetup { size: [width, _], cell, step, viscosity, .. } = self.flow.setup();
        let decay = taylor_green_decay(*viscosity, self.steps as f64 * step);
        let u = self.flow.velocity()[0].to_vec()?;
        let error = |(c, u): (usize, T)| {
            let place = [(c % width) as f64 * cell, ((c / width) as f64 + 0.5) * cell];
            (u.to_f64() / decay - taylor_green_velocity(place[0], place[1])[0]).abs()
        };
        Ok(u.into_iter().enumerate().map(error).fold(0.0, f64::max))
    }
}

impl<T: Real> Simulation for Program<T> {
    fn step(&mut self) -> Result<Option<Report>> {
        if self.case == Case::Jets {
            self.blow()?;
        }
        self.steps += 1;
        self.flow.step().map(Some)
    }

    fn draw(&self, picture: &mut Picture) -> Result<()> {
        let obstacles = self.flow.setup().obstacles.as_ref();
        let solid = obstacles.map(|obstacles| obstacles.solid());
        picture.palette = match self.view {
            View::Dye | View::Speed => glowing(),
            View::Vorticity | View::Pressure => signed(),
        };
        match self.view {
            View::Dye => picture.draw(&self.flow.dye().to_vec()?, [0.0, 1.0], solid),
            View::Speed => picture.draw(&self.values(View::Speed)?, [0.0, 1.0], solid),
            view => {
                // Three times the root of the mean square, in both signs.
                let values = self.values(view)?;
                let square = values.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() / values.len() as f64;
                let most = 3.0 * square.sqrt().max(1e-9);
                picture.draw(&values, [-most, most], solid);
            }
        }
        Ok(())
    }

    fn bits(&self) -> Result<Vec<u64>> {
        let [u, v] = self.flow.velocity();
        let mut bits = Vec::new();
        for field in [u, v, self.flow.pressure(), self.flow.dye()] {
            bits.extend(vector_bits(field)?);
        }
        Ok(bits)
    }

    fn reset(&mut self) -> Result<()> {
        self.flow.reset()?;
        self.begin()
    }

    fn drag(&mut self, drag: Drag) -> Result<()> {
        let radius = (self.flow.setup().size[1] as f64 / 24.0).max(2.0);
        self.flow.inject(drag.place, radius, 0.3)?;
        if drag.second || drag.begins {
            return Ok(());
        }
        // The fluid goes with the pointer.
        let speed = self.flow.setup().cell / self.flow.setup().step;
        let change = drag.moved.map(|moved| (0.3 * moved * speed).clamp(-1.0, 1.0));
        self.flow.push(drag.place, radius, change)
    }

    fn change(&mut self, change: Change) -> Result<()> {
        let (step, viscosity) = (self.flow.setup().step, self.flow.setup().viscosity);
        let factor = |up: bool| if up { 1.5 } else { 1.0 / 1.5 };
        match change {
            Change::Colours => {
                self.view = match self.view {
                    View::Dye => View::Speed,
                    View::Speed => View::Vorticity,
                    View::Vorticity => View::Pressure,
                    View::Pressure => View::Dye,
                };
            }
            // A value that would be unstable stays as it was.
            Change::Step(up) => drop(self.flow.set_step(step * factor(up), viscosity)),
            Change::Other(up) => drop(self.flow.set_step(step, viscosity * factor(up))),
        }
        Ok(())
    }

    fn parameters(&self) -> String {
        let FlowSetup { step, viscosity, .. } = self.flow.setup();
        format!("dt = {step:.2e}, Re = {:.0}", 1.0 / viscosity)
    }

    fn results(&mut self) -> Result<(Option<String>, Value, bool)> {
        let divergence = self.flow.divergence()?;
        let time = self.steps as f64 * self.flow.setup().step;
        let mut words = format!("time {time:.4}, greatest divergence {divergence:.2e}");
        let mut fields = json!({
            "time": time, "dt": self.flow.setup().step, "reynolds": self.reynolds, "divergence": divergence,
            "filled_cells": self.flow.filled(), "format": self.flow.matrix().format().to_string(),
        });
        let mut wrong = false;
        match self.case {
            Case::Cavity if ghia(self.reynolds).is_some() => {
                let [u, v] = differences_from_ghia(&self.flow, self.reynolds)?;
                words +=
                    &format!("; centre lines differ from Ghia, Ghia and Shin by at most {u:.4} (u) and {v:.4} (v)");
                fields["ghia_differences"] = json!([u, v]);
                wrong = u.max(v) > RIGHT;
            }
            Case::TaylorGreen => {
                let error = self.vortex_error()?;
                words += &format!("; greatest error of u {error:.2e} of the velocity that is left");
                fields["vortex_error"] = json!(error);
                wrong = error > RIGHT;
            }
            _ => {}
        }
        Ok((Some(words), fields, wrong))
    }

    fn remedy(&self) -> &'static str {
        "--dt or --reynolds"
    }

    fn size(&self) -> [usize; 2] {
        self.flow.setup().size
    }

    fn device(&self) -> Device {
        self.device.clone()
    }
}
