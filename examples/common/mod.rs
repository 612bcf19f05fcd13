//! What the programs share: their exit status, devices, checks before the work, progress bars.
#![allow(dead_code)] // not every program needs all of it

use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};
use residuum::{Device, Error, Progress, Real, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Precision {
    Fp32,
    Fp64,
}

/// Exit status 0 where all was done, 1 where not, 2 with one line for an error.
pub(crate) fn exit(program: &str, outcome: Result<bool>) -> ExitCode {
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("{program}: {error}");
            ExitCode::from(2)
        }
    }
}

pub(crate) fn option(name: &'static str, reason: impl Into<String>) -> Error {
    Error::Option { name, reason: reason.into() }
}

/// The device that `words` name, else the best one, for numbers of type `T`.
pub(crate) fn device<T: Real>(words: Option<&str>, work_group: Option<usize>) -> Result<Device> {
    let device = match words {
        Some(words) => Device::select(words)?,
        None => Device::best()?,
    };
    device.require(T::PRECISION)?;
    match work_group {
        Some(size) => device.with_work_group(size),
        None => Ok(device),
    }
}

/// Fails before the work rather than after it when the folder of an output is not there.
pub(crate) fn check_writable(path: &Path) -> Result<()> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return Err(Error::File { path: path.into(), reason: "its folder does not exist".into() });
    }
    Ok(())
}

fn bar(quiet: bool, length: Option<u64>, template: &str) -> ProgressBar {
    if quiet || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = length.map_or_else(ProgressBar::no_length, ProgressBar::new);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

/// While a file is read.
pub(crate) fn reading_bar(quiet: bool) -> ProgressBar {
    bar(quiet, None, "{bar:40} {pos}/{len} entries, {eta} left")
}

/// While `count` things are done one after the other.
pub(crate) fn counting_bar(quiet: bool, count: usize) -> ProgressBar {
    bar(quiet, Some(count as u64), "{bar:30} {pos}/{len}, {msg}")
}

/// While a solve runs, of at most `iterations`.
pub(crate) fn solving_bar(quiet: bool, iterations: usize) -> ProgressBar {
    bar(quiet, Some(iterations as u64), "{bar:40} {pos}/{len} iterations, {eta} left, {msg}")
}

/// Shows how far a solve has come.
pub(crate) fn show(bar: &ProgressBar, progress: &Progress) {
    bar.set_position(progress.iteration as u64);
    bar.set_message(format!("|r| {:.3e}", progress.residual));
}
