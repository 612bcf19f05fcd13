//! Check of the devices of this machine: whether they compute what they should, and how fast they copy and answer.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use common::say;
use std::process::ExitCode;

use clap::Parser;
use residuum::doctor::{Check, Speed, examine, measure, remember};
use residuum::{Device, DeviceFilter, Result};
use serde_json::{Value, json};

/// Ask every device for answers that are known to the last bit, and say what passed, what failed and what that means.
#[derive(Debug, Parser)]
#[command(version, after_help = "Exit status: 0 all answers right, 1 some wrong, 2 bad input.")]
struct Options {
    /// Only devices that match all these words, as in the program devices [default: all but last resorts]
    #[arg(long, value_name = "WORDS", default_value = "")]
    device: String,
    /// Print one JSON object on stdout instead of text
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    env_logger::init();
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
    let mut well = true;
    let mut found = Vec::new();
    for candidate in &candidates {
        let info = &candidate.info;
        let device = match candidate.open() {
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
        let device = &device;
        if !options.json {
            say!("{} ({}, driver {})", info.name, info.platform, info.driver);
        }
        let checks = examine(device, &mut |check| {
            if !options.json {
                say!("  {}", line(check));
            }
        });
        let faults = checks.iter().filter(|check| check.fault.is_some()).count();
        well &= faults == 0;
        remember(device, &checks);
        let speed = measure(device);
        if options.json {
            found.push(object(device, &checks, &speed));
            continue;
        }
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
        say!("{}", json!({ "devices": found, "well": well }));
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
