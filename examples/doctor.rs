//! Check of the devices of this machine: whether they compute what they should, and how fast they copy and answer.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;
use std::thread;

use clap::Parser;
use common::{counting_bar, say, tell};
use residuum::doctor::{Check, Extent, Speed, checks, examine, measure, remember};
use residuum::{Candidate, Device, DeviceFilter, Result};
use serde_json::{Value, json};

/// Ask every device for answers that are known to the last bit, and say what passed, what failed and what that means.
#[derive(Debug, Parser)]
#[command(name = "doctor", version = common::version(), after_help = common::after_help("Exit status: 0 all answers right, 1 some wrong, 2 bad input."))]
struct Options {
    /// Only devices that match all these words, as in the program devices [default: all but last resorts]
    #[arg(long, value_name = "WORDS", default_value = "")]
    device: String,
    /// Launch every kernel of the library, which takes minutes: most of it for building them
    #[arg(long)]
    all: bool,
    /// Print one JSON object on stdout instead of text
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    common::begin("doctor");
    common::exit::<Options>("doctor", run(&Options::parse()))
}

/// Tells if all is well.
fn run(options: &Options) -> Result<bool> {
    let filter: DeviceFilter = options.device.parse()?;
    let mut candidates = Device::candidates();
    // Simulators take hours, and some drivers abort: only when they are named. One that was found wanting is looked at again.
    let named = !options.device.is_empty();
    candidates.retain(|c| filter.matches(&c.info) && (named || c.info.last_resort.is_none() || c.found_wanting));
    if candidates.is_empty() {
        // Selects for its error alone, which says what devices there are.
        Device::select(&options.device)?;
    }
    let opened: Vec<(&Candidate, Result<Device>)> = candidates.iter().map(|c| (c, c.open())).collect();
    // Devices side by side, since most of the time goes into building kernels; then one after another what is timed.
    let devices = || opened.iter().filter_map(|(_, device)| device.as_ref().ok());
    let extent = if options.all { Extent::EveryKernel } else { Extent::Abilities };
    let bar = counting_bar(options.json, devices().map(|device| checks(device, extent)).sum());
    bar.set_message("checks");
    let mut examined = thread::scope(|scope| {
        let bar = &bar;
        let started: Vec<_> =
            devices().map(|device| scope.spawn(move || examine(device, extent, &mut |_| bar.inc(1)))).collect();
        started.into_iter().map(thread::ScopedJoinHandle::join).collect::<Vec<_>>().into_iter()
    });
    bar.finish_and_clear();
    let mut well = true;
    let mut found = Vec::new();
    for (candidate, device) in &opened {
        let info = &candidate.info;
        let device = match device {
            Ok(device) => device,
            Err(error) => {
                well = false;
                if options.json {
                    found.push(json!({ "name": info.name, "platform": info.platform, "fault": error.to_string() }));
                } else {
                    say!("{} ({})\n  cannot be opened: {error}\n", info.name, info.platform);
                }
                continue;
            }
        };
        let Some(Ok(checks)) = examined.next() else {
            tell!("doctor: {}: its checks ended early, by a fault of this program", info.name);
            well = false;
            continue;
        };
        let faults = checks.iter().filter(|check| check.fault.is_some()).count();
        well &= faults == 0;
        remember(device, &checks);
        let speed = measure(device);
        if options.json {
            found.push(object(device, &checks, &speed));
            continue;
        }
        say!("{} ({}, driver {})", info.name, info.platform, info.driver);
        checks.iter().for_each(|check| say!("  {}", line(check)));
        match speed {
            Ok(Speed { copy, launch, read, .. }) => {
                say!("  copies {copy:.0} GB/s; a queued launch takes {launch:.1} us, an answer {read:.1} us");
            }
            Err(error) => say!("  not measured: {error}"),
        }
        let verdict = match faults {
            0 => format!("all {} answers are right to the last bit", checks.len()),
            _ => format!("{faults} of {} answers are wrong: do not trust it", checks.len()),
        };
        say!("  {verdict}\n");
    }
    if options.json {
        common::print_json(json!({ "devices": found, "well": well }));
    } else if let Some(why) = Device::opencl_missing() {
        say!("no OpenCL device: {why}");
    }
    Ok(well)
}

fn line(check: &Check) -> String {
    let what = format!("{}, {}, work-group {}", check.name, check.precision, check.work_group);
    match &check.fault {
        None => format!("ok     {what}"),
        Some(fault) => format!("WRONG  {what}: {fault}\n         {}", check.means),
    }
}

fn object(device: &Device, checks: &[Check], speed: &Result<Speed>) -> Value {
    let info = device.info();
    let checks: Vec<Value> = checks
        .iter()
        .map(|check| {
            json!({
                "name": check.name, "precision": check.precision.to_string(), "work_group": check.work_group,
                "fault": check.fault, "means": check.fault.as_ref().map(|_| check.means),
            })
        })
        .collect();
    let speed = speed.as_ref().ok();
    json!({
        "name": info.name, "platform": info.platform, "driver": info.driver,
        "index": info.index.map(|(p, d)| format!("{p}:{d}")), "checks": checks,
        "copy_gbps": speed.map(|s| s.copy), "launch_us": speed.map(|s| s.launch), "read_us": speed.map(|s| s.read),
    })
}
