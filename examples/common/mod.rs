//! Parts that the programs share: exit status, devices, checks before the work, progress bars, plots.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod about;
pub mod interrupt;
pub mod plot;
mod progress;
#[cfg(feature = "simulation")]
pub mod simulate;
pub mod table;

use std::io::{self as std_io, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::SystemTime;

use clap::{Args, CommandFactory, ValueEnum};
use residuum::sparse::gallery;
use residuum::tuning::{TuneFile, tune_path};
use residuum::{BackendKind, Csr, DEVICE_VARIABLE, Device, Error, Real, Report, Result, io};
use serde_json::{Value, json};

pub use about::{ENVIRONMENT, after_help, help_of_work, version};
pub use progress::{counting_bar, reading_bar, show, solving_bar};

/// Precision of vectors and matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Precision {
    /// `f32`
    Fp32,
    /// `f64`
    Fp64,
}

/// Prints a line on stdout. A reader that has gone (`| head -1`) ends no work: what is to be saved is. Any other failure, such as a full disk,
/// is told by [`exit`] in the end.
#[macro_export]
macro_rules! say {
    ($($arg:tt)*) => { $crate::print_line(format_args!($($arg)*)) };
}

/// The first reason why something could not be printed.
static UNPRINTED: Mutex<Option<String>> = Mutex::new(None);

#[doc(hidden)]
pub fn print_line(line: std::fmt::Arguments<'_>) {
    note(writeln!(std_io::stdout(), "{line}"));
}

/// Keeps the reason why something could not be printed, unless the reader has gone.
fn note(outcome: std_io::Result<()>) {
    let Err(error) = outcome else { return };
    if error.kind() != std_io::ErrorKind::BrokenPipe
        && let Ok(mut unprinted) = UNPRINTED.lock()
    {
        unprinted.get_or_insert_with(|| error.to_string());
    }
}

/// Prints a JSON object, with the fields that tell where it comes from before its own.
pub fn print_json(object: Value) {
    say!("{}", merged([about::provenance(), json!({ "interrupted": interrupt::came() }), object]));
}

/// Begins a program: its name, and its log on stderr, which `RUST_LOG` asks for.
pub fn begin(program: &'static str) {
    about::set_name(program);
    let line = |to: &mut env_logger::fmt::Formatter, record: &log::Record<'_>| {
        let (level, time) = (record.level(), humantime::format_rfc3339_millis(SystemTime::now()));
        let style = to.default_level_style(level);
        writeln!(to, "[{time} {style}{level:<5}{style:#} {}] {}", record.target(), record.args())
    };
    env_logger::Builder::from_default_env().format(line).init();
}

/// Prints a line on stderr, likewise.
#[macro_export]
macro_rules! tell {
    ($($arg:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($arg)*);
    }};
}

/// Exit status 0 if all was done, 1 if not, 2 with one line for an error or if the output could not be written.
pub fn exit<P: CommandFactory>(program: &str, outcome: Result<bool>) -> ExitCode {
    note(std_io::stdout().flush());
    let unprinted = UNPRINTED.lock().ok().and_then(|unprinted| unprinted.clone());
    match outcome {
        Ok(_) if unprinted.is_some() => {
            tell!("{program}: the output could not be written to stdout: {}", unprinted.unwrap_or_default());
            ExitCode::from(2)
        }
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            tell!("{program}: {}", in_words_of_the_program(&error, &P::command()));
            ExitCode::from(2)
        }
    }
}

/// An error with the name of the option that a user knows, if the library names a field of its own.
fn in_words_of_the_program(error: &Error, command: &clap::Command) -> String {
    let Some((name, reason)) = error.argument() else { return error.to_string() };
    // The terms of a regularization are values of one option, and a variable of the environment is none.
    let (name, reason) = match name {
        name @ ("tikhonov" | "smooth" | "directional") => ("regularizer", format!("{name}: {reason}")),
        "variation" => ("regularizer", format!("tv: {reason}")),
        name if name.starts_with("RESIDUUM_") => return format!("{name}: {reason}"),
        name => (name, reason),
    };
    let known = match name {
        "max_iterations" => "iterations",
        "smallest" | "largest" => "eigenvalues",
        "sigma" | "block" | "transposed" => "format",
        "regularizations" | "columns" => "rhs",
        "pixel" => "field",
        "scanner" => "input",
        "gallery" => "matrix",
        "bounds" => "lower",
        other => other,
    };
    let hyphened = known.replace('_', "-");
    let named = |a: &clap::Arg| a.get_long() == Some(&hyphened) || (a.is_positional() && a.get_id() == known);
    let found = command
        .get_arguments()
        .chain(command.get_subcommands().flat_map(|sub| sub.get_arguments()))
        .find(|a| named(a));
    match found {
        Some(argument) if argument.is_positional() => format!("{}: {reason}", argument.get_id()),
        Some(_) => format!("--{hyphened}: {reason}"),
        None => format!("{hyphened}: {reason}"),
    }
}

/// An error of the option `name`.
pub fn option(name: &'static str, reason: impl Into<String>) -> Error {
    Error::Option { name, reason: reason.into() }
}

/// Fails if an option was given that changes nothing: `given` names those that may be, with whether they are there.
pub fn refuse_unused(why: &str, given: &[(&'static str, bool)]) -> Result<()> {
    match given.iter().find(|(_, there)| *there) {
        Some((name, _)) => Err(option(name, format!("it changes nothing {why}"))),
        None => Ok(()),
    }
}

/// Options that choose a device.
#[derive(Clone, Debug, Args)]
pub struct DeviceOptions {
    /// Device: words that must all match, such as gpu, nvidia, !pocl, memory=8G, 0:1, host [default: RESIDUUM_DEVICE, else the best]
    #[arg(long, value_name = "WORDS")]
    device: Option<String>,
    /// Work-items of a work-group: changes time, never a result
    #[arg(long, value_name = "SIZE")]
    work_group: Option<usize>,
}

impl DeviceOptions {
    /// The device that the words name, else the best one, for numbers of type `T`.
    pub fn open<T: Real>(&self) -> Result<Device> {
        let device = self.device.as_ref().map_or_else(Device::best, |words| Device::select(words))?;
        self.prepared::<T>(device)
    }

    /// The device that --device or RESIDUUM_DEVICE names, if one does: before anything is read that may take long.
    pub fn open_if_named<T: Real>(&self) -> Result<Option<Device>> {
        let named =
            self.device.is_some() || std::env::var_os(DEVICE_VARIABLE).is_some_and(|words| !words.is_empty());
        if named { self.open::<T>().map(Some) } else { Ok(None) }
    }

    /// The best device for products with so many entries of a matrix ([`Device::best_for`]), for numbers of type `T`.
    pub fn open_for<T: Real>(&self, entries: usize) -> Result<Device> {
        self.prepared::<T>(Device::best_for(entries)?)
    }

    fn prepared<T: Real>(&self, device: Device) -> Result<Device> {
        tell_of_tuned_values(&device);
        device.require(T::PRECISION)?;
        self.work_group.map_or_else(|| Ok(device.clone()), |size| device.with_work_group(size))
    }
}

/// Says what of the file of tuned values is ignored.
fn tell_of_tuned_values(device: &Device) {
    let (Some(path), BackendKind::OpenCl) = (tune_path(), device.backend_kind()) else { return };
    let file = match TuneFile::read(&path) {
        Ok(file) => file,
        Err(error) => return tell!("tuned values are ignored: {error}"),
    };
    let ignored = |why: &str| tell!("tuned values: {}: {why}", path.display());
    file.remarks.iter().for_each(|remark| ignored(remark));
    for entry in file.entries.iter().filter(|entry| entry.is_for(device.info())) {
        if let Err(error) = device.with_settings(entry.case, entry.set, "file") {
            ignored(&format!("{error}: the entry is ignored"));
        }
    }
}

/// The matrix of a file, or of the gallery by its name; `quiet` shows no progress.
///
/// # Errors
/// [`Error::File`] for a name that is neither; those of [`io::read_matrix`] and [`gallery::by_name`].
pub fn read_matrix<T: Real>(path: &Path, quiet: bool) -> Result<Csr<T>> {
    if !path.exists() {
        let reason = "no such file, nor a name of the gallery (poisson2d:512 is one)".into();
        let missing = || Error::File { path: path.into(), reason };
        // A name of the gallery that is too large says so.
        return match path.to_str().map(gallery::by_name) {
            Some(Err(Error::Name { .. })) | None => Err(missing()),
            Some(found) => found,
        };
    }
    let bar = reading_bar(quiet);
    let matrix = io::read_matrix(path, &mut |done, of| {
        bar.set_length(of);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    matrix
}

/// Fails before the work rather than after it if an output cannot be written, is one of the inputs, or if two are one file.
pub fn check_outputs(inputs: &[&Path], outputs: &[(&'static str, &Path)]) -> Result<()> {
    for (k, (name, path)) in outputs.iter().enumerate() {
        io::check_writable(path)?;
        // Pipes and devices hold nothing that could be lost.
        if std::fs::metadata(path).is_ok_and(|about| !about.is_file()) {
            continue;
        }
        if let Some(input) = inputs.iter().find(|input| io::same_file(input, path)) {
            return Err(option(name, format!("{} is an input ({})", path.display(), input.display())));
        }
        if let Some((other, _)) = outputs[..k].iter().find(|(_, other)| io::same_file(other, path)) {
            return Err(option(name, format!("{} is that of --{other} too", path.display())));
        }
    }
    Ok(())
}

/// Option of every program that writes files.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Overwriting {
    /// Refuse to write onto files that exist; without this they are replaced, each by a complete one when the work is done
    #[arg(long)]
    no_overwrite: bool,
}

impl Overwriting {
    /// Fails before the work if one of these files exists and must not be replaced. Pipes and devices are no such files.
    pub fn check(self, outputs: &[(&'static str, &Path)]) -> Result<()> {
        let there = |path: &Path| std::fs::metadata(path).is_ok_and(|about| about.is_file());
        match outputs.iter().find(|(_, path)| self.no_overwrite && there(path)) {
            Some((name, path)) => {
                let reason = format!("{} exists, and --no-overwrite keeps it: name another file", path.display());
                Err(option(name, reason))
            }
            None => Ok(()),
        }
    }
}

/// Fails if a picture would be written under the name of another format.
pub fn check_ending(name: &'static str, path: &Path, endings: &[&str]) -> Result<()> {
    let Some(ending) = path.extension() else { return Ok(()) };
    if endings.iter().any(|known| ending.eq_ignore_ascii_case(known)) || path.starts_with("/dev") {
        return Ok(());
    }
    let known = endings.join(" and .");
    Err(option(name, format!("'{}': pictures are written as .{known}", path.display())))
}

/// Writes all that can be written; the first failure is returned when all were tried.
#[derive(Default)]
pub struct Written {
    /// Files that were written.
    pub paths: Vec<PathBuf>,
    failure: Option<Error>,
}

impl Written {
    /// Takes what became of one file.
    pub fn add(&mut self, path: &Path, outcome: Result<()>) {
        match outcome {
            Ok(()) => self.paths.push(path.into()),
            Err(error) => self.failure = self.failure.take().or(Some(error)),
        }
    }

    /// Fails with the first failure.
    pub fn finish(self) -> Result<()> {
        self.failure.map_or(Ok(()), Err)
    }
}

/// Option of programs whose JSON has the course of a solve.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct HistoryOption {
    /// Leave the residuals of the iterations out of the JSON object
    #[arg(long, requires = "json")]
    no_history: bool,
}

impl HistoryOption {
    /// A report in JSON, with its history if that is wanted.
    pub fn of(self, report: &Report) -> Value {
        let mut report = json!(report);
        if let (true, Some(fields)) = (self.no_history, report.as_object_mut()) {
            fields.retain(|name, _| !matches!(&**name, "history" | "gradient_history" | "history_every"));
            if let Some(rule) = fields.get_mut("rule").and_then(Value::as_object_mut) {
                let _ = rule.remove("points");
            }
        }
        report
    }
}

/// Words of every program about its device, in JSON.
pub fn device_json(device: &Device) -> Value {
    let info = device.info();
    json!({
        "device": info.name, "backend": device.backend_kind().to_string(), "platform": info.platform, "driver": info.driver,
        "choice": device.choice(), "work_group": device.tuning().work_group,
    })
}

/// Paths as text, also those that are not UTF-8.
pub fn shown(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().map(|path| path.display().to_string()).collect()
}

/// One object of the fields of several; later ones win.
pub fn merged<const N: usize>(objects: [Value; N]) -> Value {
    let fields = objects.into_iter().flat_map(|object| match object {
        Value::Object(fields) => fields.into_iter().collect(),
        _ => Vec::new(),
    });
    Value::Object(fields.collect())
}
