//! Programs that simulate: options, the loop over frames, films and windows.

pub mod film;
pub mod picture;
#[cfg(feature = "window")]
mod window;

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use film::{Film, Target};
use picture::{Brightness, Picture};
use residuum::simulation::Obstacles;
use residuum::{Device, Error, Real, Report, Result, Stopping, Vector, io};
use serde_json::{Value, json};

use crate::{
    DeviceOptions, Overwriting, Precision, check_outputs, counting_bar, device_json, interrupt, merged, option,
    say, tell,
};

/// Options of every simulation.
#[derive(Clone, Debug, Args)]
pub struct ShowOptions {
    /// Grid points: a number for a square, or WIDTHxHEIGHT
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub size: Option<[usize; 2]>,
    /// Steps in time [default: 200; with --window until it is closed]
    #[arg(long, value_name = "N")]
    pub frames: Option<usize>,
    /// Precision of the fields
    #[arg(long, value_enum, default_value_t = Precision::Fp32)]
    pub precision: Precision,
    #[allow(missing_docs)] // it would stand in the help text
    #[command(flatten)]
    pub on: DeviceOptions,
    /// Save the frames: film.png for one animated picture, frame-%04d.png for a file each
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    #[allow(missing_docs)] // it would stand in the help text
    #[command(flatten)]
    pub overwriting: Overwriting,
    /// Save every Nth frame only
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub every: u32,
    /// Iterations of conjugate gradients in each step, whatever they come to
    #[arg(long, value_name = "N", conflicts_with = "rtol")]
    pub iterations: Option<usize>,
    /// Solve each step until |b - Ax| <= RTOL |b|; exit status 1 if a step does not reach that
    #[arg(long)]
    pub rtol: Option<f64>,
    /// Show the simulation in a window, for mouse and keys (needs the feature `window`)
    #[arg(long)]
    pub window: bool,
    /// Print one JSON object on stdout instead of text
    #[arg(long)]
    pub json: bool,
}

/// Reads a number for a square, or WIDTHxHEIGHT.
///
/// # Errors
/// A text that is neither, with sides from 1 to 65536 and at most 2^31 points.
pub fn parse_size(text: &str) -> std::result::Result<[usize; 2], String> {
    let number = |text: &str| match text.parse::<usize>() {
        Ok(n) if (1..=65_536).contains(&n) => Ok(n),
        _ => Err(format!("'{text}' is not a number of grid points from 1 to 65536")),
    };
    let size = match text.split_once(['x', 'X']) {
        Some((width, height)) => [number(width)?, number(height)?],
        None => [number(text)?; 2],
    };
    match size[0] * size[1] <= 1 << 31 {
        true => Ok(size),
        false => Err(format!("'{text}' has more than 2^31 grid points")),
    }
}

/// Motion of the mouse with a button held, in grid points.
#[derive(Clone, Copy, Debug)]
pub struct Drag {
    /// Place of the pointer.
    pub place: [f64; 2],
    /// Distance that it has moved since the frame before.
    pub moved: [f64; 2],
    /// True for the second button.
    pub second: bool,
    /// True for the first frame of a click.
    pub begins: bool,
}

/// A change that a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The time step, up or down.
    Step(bool),
    /// The other parameter (viscosity, damping, direction of time), up or down.
    Other(bool),
    /// The next colours.
    Colours,
}

/// A simulation as the programs run it.
pub trait Simulation {
    /// A step in time.
    ///
    /// # Errors
    /// Those of the library. Not converging is none.
    fn step(&mut self) -> Result<Option<Report>>;
    /// Draws the fields as they are.
    ///
    /// # Errors
    /// Those of the device.
    fn draw(&self, picture: &mut Picture) -> Result<()>;
    /// The fields that the hash is taken of.
    ///
    /// # Errors
    /// Those of the device.
    fn bits(&self) -> Result<Vec<u64>>;
    /// Begins anew.
    ///
    /// # Errors
    /// Those of the library.
    fn reset(&mut self) -> Result<()>;
    /// Acts on the mouse.
    ///
    /// # Errors
    /// Those of the library.
    fn drag(&mut self, drag: Drag) -> Result<()>;
    /// Acts on a key. A value that cannot be stays as it was.
    ///
    /// # Errors
    /// Those of the library.
    fn change(&mut self, change: Change) -> Result<()>;
    /// Parameters in force, for the title of the window.
    fn parameters(&self) -> String;
    /// Words about the answer for the end, as text and JSON, and whether a check failed.
    ///
    /// # Errors
    /// Those of the device.
    fn results(&mut self) -> Result<(Option<String>, Value, bool)>;
    /// Tells if a step solves to a tolerance unless a number of iterations is asked for.
    fn has_tolerance(&self) -> bool {
        false
    }
    /// Options to change if a step fails.
    fn remedy(&self) -> &'static str;
    /// Milliseconds that a film shows a frame.
    fn delay(&self) -> u16 {
        40
    }
    /// Width and height.
    fn size(&self) -> [usize; 2];
    /// Device.
    fn device(&self) -> Device;
}

/// The bits of a vector.
///
/// # Errors
/// Those of the device.
pub fn vector_bits<T: Real>(x: &Vector<T>) -> Result<impl Iterator<Item = u64>> {
    Ok(x.to_vec()?.into_iter().map(|v| v.to_f64().to_bits()))
}

/// FNV-1a of words.
fn hash(words: &[u64]) -> String {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    format!("{hash:016x}")
}

/// Residual of a step, relative to its right-hand side, from which on the answer means nothing: 0 would be a better one.
const LARGEST_RESIDUAL: f64 = 10.0;

/// Counts of the solves of a run.
#[derive(Default)]
struct Tally {
    frames: usize,
    iterations: usize,
    failed: usize,
    residual: f64,
    /// The last report of a step that did not converge, in words.
    failure: Option<String>,
    /// Why the fields are no answer any more.
    fault: Option<String>,
    /// True if Ctrl-C left frames out.
    cut_off: bool,
}

impl Tally {
    fn add(&mut self, report: Option<&Report>) {
        self.frames += 1;
        if let Some(report) = report {
            self.iterations += report.iterations;
            self.residual = report.relative_residual();
            if !report.converged() {
                self.failed += 1;
                self.failure = Some(format!("{}, |b - Ax| / |b| = {:.1e}", report.stop, self.residual));
            }
            if !self.residual.is_finite() || self.residual > LARGEST_RESIDUAL {
                self.fault =
                    Some(format!("step {}: {}, |b - Ax| / |b| = {:.1e}", self.frames, report.stop, self.residual));
            }
        }
    }

    /// Takes what a step came to. Fields that are no longer finite are a fault of the run, not of the program.
    fn take(&mut self, outcome: Result<Option<Report>>) -> Result<()> {
        match outcome {
            Err(Error::NotFinite { .. }) => {
                self.fault = Some(format!("step {}: the fields hold NaN or infinity", self.frames + 1));
            }
            other => self.add(other?.as_ref()),
        }
        Ok(())
    }
}

impl ShowOptions {
    /// Rules for the solve of a step: as asked for, else this number of iterations, else the tolerance of the precision.
    pub fn stopping<T: Real>(&self, iterations: Option<usize>) -> Stopping {
        match (self.iterations.or(iterations.filter(|_| self.rtol.is_none())), self.rtol) {
            (Some(iterations), _) => Stopping::after(iterations),
            (None, Some(rtol)) => Stopping::for_precision::<T>().with_rtol(rtol),
            (None, None) => Stopping::for_precision::<T>(),
        }
    }

    /// Opens the device, after a look at its memory: before anything is made that has a number for each grid point, of which the device will
    /// hold `fields` and the host a few.
    ///
    /// # Errors
    /// Those of [`DeviceOptions::open`] and [`Device::check_memory`].
    pub fn open<T: Real>(&self, [width, height]: [usize; 2], fields: u64) -> Result<Device> {
        let device = self.on.open::<T>()?;
        let bytes = (width * height * T::PRECISION.bytes()) as u64;
        device.check_memory(fields * bytes, &[("a field", bytes)])?;
        Device::host().check_memory(0, &[("pictures and fields on the host", 4 * bytes)])?;
        Ok(device)
    }

    /// Fails before the work on options that cannot be, on frames that would replace the input, and on two outputs in one file; `others` are
    /// outputs beside the frames.
    ///
    /// # Errors
    /// [`residuum::Error::Option`], and those of [`check_outputs`].
    pub fn check(&self, input: Option<&Path>, others: &[(&'static str, &Path)]) -> Result<()> {
        if self.window && cfg!(not(feature = "window")) {
            return Err(option("window", "this program was built without it: add --features window"));
        }
        let Some(save) = &self.save else {
            check_outputs(input.as_slice(), others)?;
            return self.overwriting.check(others);
        };
        let target = Target::named(save)?;
        let first = target.path(0);
        let outputs = [&[("save", &*first)], others].concat();
        check_outputs(input.as_slice(), &outputs)?;
        self.overwriting.check(&outputs)?;
        // The number of frames may be unknown yet.
        let count = self.frames.map_or(usize::MAX, |frames| frames.div_ceil(self.every as usize));
        for frame in target.existing(count) {
            self.overwriting.check(&[("save", &frame)])?;
            if let Some(input) = input.filter(|input| io::same_file(input, &frame)) {
                let reason = format!(
                    "{} is the input ({}), and a frame would replace it: name another pattern",
                    frame.display(),
                    input.display()
                );
                return Err(option("save", reason));
            }
        }
        if let Some((other, path)) = others.iter().find(|(_, path)| target.writes(path, count)) {
            return Err(option(
                "save",
                format!("a frame would replace {}, which is that of --{other}", path.display()),
            ));
        }
        Ok(())
    }

    /// Runs a simulation to its end, and prints what came of it. `mouse` says what the mouse does in a window. True if all was done.
    ///
    /// # Errors
    /// Those of the simulation, and of the files.
    pub fn run(&self, simulation: &mut dyn Simulation, program: &str, mouse: &str) -> Result<bool> {
        let mut tally = Tally::default();
        let begin = Instant::now();
        let (seconds, timed) = if self.window {
            self.show(simulation, (program, mouse), &mut tally)?
        } else {
            self.loop_over(simulation, &mut tally)?
        };
        let per_second = if seconds > 0.0 { timed as f64 / seconds } else { 0.0 };
        let (words, results, check_failed) = simulation.results()?;
        let bits = simulation.bits()?;
        // In a window a user may turn time round until the fields overflow, and sees it.
        if tally.fault.is_none() && !self.window && bits.iter().any(|bits| !f64::from_bits(*bits).is_finite()) {
            tally.fault = Some("the fields hold NaN or infinity".into());
        }
        let hash = hash(&bits);
        // A fixed number of iterations asks for no tolerance.
        let asks = self.iterations.is_none() && (self.rtol.is_some() || simulation.has_tolerance());
        let unsolved = tally.failure.take().filter(|_| asks && !interrupt::came());
        let unsolved = unsolved.map(|last| {
            format!("{} of {} steps did not reach their tolerance (the last: {last})", tally.failed, tally.frames)
        });
        let fault = tally.fault.take().or(unsolved);
        if let Some(fault) = &fault {
            tell!("{program}: {fault}: change {}", simulation.remedy());
        }
        let fails = check_failed || fault.is_some() || tally.cut_off || interrupt::came() && tally.failed > 0;
        let [width, height] = simulation.size();
        let mean = tally.iterations as f64 / tally.frames.max(1) as f64;
        if self.json {
            let common = json!({
                "program": program, "width": width, "height": height, "precision": format!("{:?}", self.precision).to_lowercase(),
                "frames": tally.frames, "frames_per_second": per_second, "seconds": begin.elapsed().as_secs_f64(),
                "iterations_per_frame": mean, "not_converged": tally.failed, "relative_residual": tally.residual, "hash": hash, "fault": fault,
            });
            crate::print_json(merged([common, device_json(&simulation.device()), results]));
        } else {
            say!(
                "{width} x {height}, {} frames, {per_second:.1} a second (the first not counted), {mean:.1} iterations each, |b - Ax| / |b| = {:.2e} at last",
                tally.frames,
                tally.residual
            );
            words.into_iter().for_each(|words| say!("{words}"));
            say!("hash of the fields {hash}");
            let device = simulation.device();
            say!("{}: {}", device.info().name, device.choice());
        }
        Ok(!fails)
    }

    /// Frames without a window. Returns the seconds of those after the first, without what went into building programs, and their number.
    fn loop_over(&self, simulation: &mut dyn Simulation, tally: &mut Tally) -> Result<(f64, usize)> {
        let frames = self.frames.unwrap_or(200);
        let target = self.save.as_deref().map(Target::named).transpose()?;
        let every = self.every as usize;
        if let Some(target) = &target {
            film::check_film(target, simulation.size(), frames.div_ceil(every))?;
        }
        let mut film = target.as_ref().map(|target| Film::new(target, frames.div_ceil(every), simulation.delay()));
        let device = simulation.device();
        let mut picture = Picture::new(simulation.size(), picture::glowing());
        let bar = counting_bar(self.json, frames);
        let mut clock = (Instant::now(), 0.0);
        interrupt::keep_work();
        log::info!("{frames} frames of {:?}", simulation.size());
        for k in 0..frames {
            if interrupt::came() {
                tell!("ended by Ctrl-C after {k} of {frames} frames; those that were saved are whole");
                tally.cut_off = true;
                break;
            }
            tally.take(simulation.step())?;
            if tally.fault.is_some() {
                break;
            }
            if let Some(film) = film.as_mut().filter(|_| k.is_multiple_of(every)) {
                simulation.draw(&mut picture)?;
                film.add(k / every, picture.clone())?;
            }
            bar.set_position(k as u64 + 1);
            if k == 0 {
                device.synchronize()?;
                clock = (Instant::now(), device.programs().seconds);
            }
        }
        device.synchronize()?;
        if let Some(film) = film {
            film.finish()?;
        }
        let built = device.programs().seconds - clock.1;
        bar.finish_and_clear();
        Ok(((clock.0.elapsed().as_secs_f64() - built).max(0.0), tally.frames.saturating_sub(1)))
    }

    #[cfg(feature = "window")]
    fn show(
        &self,
        simulation: &mut dyn Simulation,
        names: (&str, &str),
        tally: &mut Tally,
    ) -> Result<(f64, usize)> {
        let target = self.save.as_deref().map(Target::named).transpose()?;
        window::show(simulation, names, self.frames, target.as_ref(), &mut |report| tally.add(report))
    }

    #[cfg(not(feature = "window"))]
    fn show(&self, _: &mut dyn Simulation, _: (&str, &str), _: &mut Tally) -> Result<(f64, usize)> {
        Err(option("window", "this program was built without it"))
    }
}

/// Reads a picture in the size that was asked for, else in its own.
///
/// # Errors
/// Those of [`picture::read`]; [`residuum::Error::Option`] for one larger than 65536 along a side.
pub fn read_picture(path: &Path, size: Option<[usize; 2]>) -> Result<Brightness> {
    let found = picture::read(path)?;
    if size.is_none() && found.size.iter().any(|n| *n > 65_536) {
        return Err(option(
            "size",
            format!("{} x {} pixels are too many: name a size", found.size[0], found.size[1]),
        ));
    }
    Ok(match size {
        Some(size) if size != found.size => found.resized(size),
        _ => found,
    })
}

/// The dark parts of a picture as obstacles on a grid of `size`.
///
/// # Errors
/// Those of [`picture::read`]; [`residuum::Error::Option`] if all is dark.
pub fn read_obstacles(path: &Path, size: [usize; 2]) -> Result<Obstacles> {
    let picture = picture::read(path)?.resized(size);
    Obstacles::new(size, picture.values.iter().map(|v| *v < 0.5).collect())
}
