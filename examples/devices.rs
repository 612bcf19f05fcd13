//! List of devices: what each can do, which one would be chosen, and why.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use common::say;
use std::process::ExitCode;

use clap::Parser;
use residuum::{Candidate, DEVICE_VARIABLE, Device, DeviceFilter};
use serde_json::json;

/// List the devices of this machine in order of preference, and say which one would be chosen and why.
#[derive(Debug, Parser)]
#[command(name = "devices", version = common::version(), after_help = common::ENVIRONMENT)]
struct Options {
    /// Only devices that match all these words (gpu, cpu, host, fp64, 0:1, memory=8G, name=, vendor=,
    /// platform=, driver=, part of any of these; ! before a word for what it does not match)
    #[arg(long, value_name = "WORDS", default_value = "")]
    device: String,
    /// Print one JSON object on stdout instead of text
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    common::begin("devices");
    common::exit::<Options>("devices", list(&Options::parse()).map(|()| true))
}

fn list(options: &Options) -> residuum::Result<()> {
    let filter: DeviceFilter = options.device.parse()?;
    let candidates: Vec<Candidate> = Device::candidates().into_iter().filter(|c| filter.matches(&c.info)).collect();
    let chosen = if options.device.is_empty() { Device::best()? } else { Device::select(&options.device)? };
    if options.json {
        let devices: Vec<_> = candidates
            .iter()
            .map(|c| {
                let info = &c.info;
                json!({
                    "name": info.name, "vendor": info.vendor, "platform": info.platform,
                    "platform_version": info.platform_version, "driver": info.driver,
                    "index": info.index.map(|(p, d)| format!("{p}:{d}")), "kind": info.kind.to_string(),
                    "fp64": info.fp64, "denormals": info.denormals, "int64_atomics": info.int64_atomics,
                    "compute_units": info.compute_units, "most_parts": info.most_parts, "clock_mhz": info.clock_mhz,
                    "memory": info.memory, "largest_allocation": info.largest_allocation,
                    "local_memory": info.local_memory, "max_work_group": info.max_work_group,
                    "least_work_group": info.least_work_group, "single_items": info.single_items,
                    "resident_groups": info.resident_groups, "keeps_programs": info.keeps_programs,
                    "last_resort": info.last_resort, "standing": c.standing,
                })
            })
            .collect();
        common::print_json(json!({
            "devices": devices,
            "chosen": chosen.info().name,
            "backend": chosen.backend_kind().to_string(),
            "choice": chosen.choice(),
            "opencl_missing": Device::opencl_missing(),
        }));
        return Ok(());
    }
    let mib = |bytes: u64| if bytes == 0 { "-".to_string() } else { (bytes >> 20).to_string() };
    say!(
        "{:<6} {:<12} {:<36} {:<28} {:>5} {:>5} {:>9} {:>9} {:>7} {:>6}",
        "index",
        "kind",
        "device",
        "platform",
        "fp64",
        "units",
        "MiB",
        "MiB/alloc",
        "KiB loc",
        "max wg"
    );
    for candidate in &candidates {
        let info = &candidate.info;
        say!(
            "{:<6} {:<12} {:<36} {:<28} {:>5} {:>5} {:>9} {:>9} {:>7} {:>6}",
            info.index.map_or("host".into(), |(p, d)| format!("{p}:{d}")),
            info.kind.to_string(),
            info.name,
            info.platform,
            if info.fp64 { "yes" } else { "no" },
            info.compute_units,
            mib(info.memory),
            mib(info.largest_allocation),
            info.local_memory >> 10,
            info.max_work_group,
        );
        if !info.denormals {
            say!(
                "       has no denormal numbers in fp32: what is very small (below 3e-24) may differ from the host"
            );
        }
        if let Some(why) = &info.last_resort {
            say!("       used only when named: {why}");
        }
    }
    if let Some(why) = Device::opencl_missing() {
        say!("no OpenCL device: {why}");
    }
    say!("chosen: {}: {}", chosen.info().name, chosen.choice());
    say!("choose another with --device WORDS or {DEVICE_VARIABLE}=WORDS");
    Ok(())
}
