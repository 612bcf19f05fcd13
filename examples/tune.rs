//! Finds launch parameters for a device, keeps them in the file that the library reads, and draws what it measured.
#![allow(clippy::print_stdout, clippy::print_stderr)]

#[allow(dead_code)] // one chart alone is for other programs
use common::{Overwriting, interrupt, say, tell};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Args, Parser, Subcommand};
use common::plot::{Chart, write_panels};
use residuum::io::check_writable;
use residuum::tuner::{Trial, cases, kernels_checksum, tune};
use residuum::tuning::{Agreement, Case, Entry, Settings, SizeClass, TuneFile, tune_path};
use residuum::{Device, DeviceFilter, Precision, Result};
use serde_json::{Value, json};

use common::option;

/// Find the launch parameters with which a device is fastest. They never change an answer.
///
/// Results go to a file that the library reads when it opens the device: the one that RESIDUUM_TUNE_FILE names, else
/// tuning.toml in the user's configuration folder. A run goes on where the last one ended.
///
/// Exit status: 0 done, 1 settings gave other bits or time ran out before all was measured, 2 bad input.
#[derive(Debug, Parser)]
#[command(name = "tune", version = common::version(), after_help = common::help_of_work(), args_conflicts_with_subcommands = true)]
struct Options {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: Run,
}

#[derive(Debug, Args)]
struct Run {
    /// Device: words that name it, as in the program devices
    #[arg(long, value_name = "WORDS")]
    device: Option<String>,
    /// Time to measure, such as 90s or 10m; a search that it ends is taken up again by the next run
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    budget: Duration,
    /// Only these kinds of launches, such as cg-product (repeatable) [default: all]
    #[arg(long, value_name = "FAMILY")]
    only: Vec<String>,
    /// Measure again what the file holds already
    #[arg(long)]
    again: bool,
    /// Draw time over work-group size, as PNG or SVG by the file's ending (repeatable)
    #[arg(long, value_name = "FILE")]
    plot: Vec<PathBuf>,
    /// File of tuned values [default: RESIDUUM_TUNE_FILE, else tuning.toml in the configuration folder]
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    overwriting: Overwriting,
    /// Print one JSON object on stdout instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show what the file holds, and what in it is ignored
    Show {
        /// File of tuned values
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
        /// Print one JSON object on stdout instead of text
        #[arg(long)]
        json: bool,
    },
    /// Take the entries of other files into the file, and say where they agree
    Merge {
        /// The other files
        #[arg(required = true)]
        others: Vec<PathBuf>,
        /// File of tuned values
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Remove the entries of a device from the file
    Forget {
        /// Words that pick devices of this machine, or part of the name of one that is not here; 'all' for every entry
        device: String,
        /// File of tuned values
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
}

fn duration(text: &str) -> std::result::Result<Duration, String> {
    let number = text.trim_end_matches(['s', 'm', 'h']);
    let unit = match &text[number.len()..] {
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err("a time is a number with s, m or h".into()),
    };
    let seconds = number.parse::<f64>().map_err(|_| "a time is a number with s, m or h".to_string())? * unit;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

fn main() -> ExitCode {
    common::begin("tune");
    let options = Options::parse();
    common::exit::<Options>(
        "tune",
        match &options.command {
            None => run(&options.run),
            Some(Command::Show { file, json }) => show(file.as_deref(), *json),
            Some(Command::Merge { others, file }) => merge(others, file.as_deref()),
            Some(Command::Forget { device, file }) => forget(device, file.as_deref()),
        },
    )
}

fn place(file: Option<&Path>) -> Result<PathBuf> {
    file.map(Path::to_path_buf).or_else(tune_path).ok_or_else(|| {
        option("file", "there is no configuration folder, or RESIDUUM_TUNE_FILE is off: name a file by --file")
    })
}

/// Reads the file and says on stderr what in it is ignored.
fn read(path: &Path) -> Result<TuneFile> {
    let file = TuneFile::read(path)?;
    for remark in &file.remarks {
        tell!("{}: {remark}", path.display());
    }
    Ok(file)
}

fn run(options: &Run) -> Result<bool> {
    let deadline = Instant::now() + options.budget;
    let path = place(options.file.as_deref())?;
    let plots: Vec<(&'static str, &Path)> = options.plot.iter().map(|plot| ("plot", &**plot)).collect();
    common::check_outputs(&[&path], &plots)?;
    options.overwriting.check(&plots)?;
    for plot in &options.plot {
        common::plot::check(plot)?;
    }
    let device = match &options.device {
        Some(words) => Device::select(words)?,
        None => Device::best()?,
    };
    let info = device.info();
    // Nothing is measured for a file that cannot be written.
    TuneFile::update(&path, |_| ())?;
    check_writable(&path)?;
    let mut file = read(&path)?;
    let wanted: Vec<Case> = cases(&device)
        .into_iter()
        .filter(|case| options.only.is_empty() || options.only.iter().any(|only| *only == case.family.to_string()))
        .collect();
    if wanted.is_empty() {
        let names: Vec<String> = cases(&device).iter().map(|case| case.family.to_string()).collect();
        return Err(option(
            if names.is_empty() { "device" } else { "only" },
            match names.is_empty() {
                true => format!("{} has nothing to tune", info.name),
                false => {
                    format!("there is no such kind of launches on {}; there are {}", info.name, distinct(names))
                }
            },
        ));
    }
    if !options.json {
        say!("{} ({}, driver {}), into {}", info.name, info.platform, info.driver, path.display());
    }
    let kernels = kernels_checksum()?;
    let known = |file: &TuneFile, case: &Case| {
        let whole = |e: &Entry| e.measured.as_ref().is_some_and(|measured| !measured.partial);
        file.entries.iter().any(|e| e.is_for(info) && e.case == *case && e.is_of_kernels(&kernels) && whole(e))
    };
    let open: Vec<Case> = wanted.iter().copied().filter(|case| options.again || !known(&file, case)).collect();
    let (mut done, mut faults) = (0, Vec::new());
    let bar = common::counting_bar(options.json, open.len());
    interrupt::keep_work();
    let is_over = || Instant::now() >= deadline || interrupt::came();
    for case in &open {
        if is_over() {
            break;
        }
        let trial = tune(&device, *case, &mut |what| {
            bar.set_message(format!("{case}: {what}"));
            if is_over() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        let Some(Trial { entry, wrong, refused, .. }) = trial else { break };
        log::info!("{case}: {}", entry.set);
        for (settings, why) in &refused {
            log::info!("{case} with {settings}: {why}");
        }
        faults.extend(wrong.iter().map(|(settings, how)| format!("{case} with {settings}: {how}")));
        let whole = entry.measured.as_ref().is_some_and(|measured| !measured.partial);
        // An entry that an earlier run has found to its end is worth more than a part.
        if whole || !known(&file, case) {
            file.put(entry.clone());
            // After each, so that a run that is broken off has not measured in vain; beside what other runs found meanwhile.
            TuneFile::update(&path, |file| file.put(entry))?;
        }
        done += usize::from(whole);
        bar.set_position(done as u64);
    }
    bar.finish_and_clear();
    let mine: Vec<&Entry> = file.entries.iter().filter(|e| e.is_for(info) && wanted.contains(&e.case)).collect();
    let left = open.len() - done;
    if options.json {
        common::print_json(json!({
            "device": info.name, "driver": info.driver, "file": path.display().to_string(), "measured": done, "left": left,
            "entries": mine.iter().map(|e| object(e)).collect::<Vec<_>>(), "wrong": faults,
        }));
    } else {
        table(&mine);
        for fault in &faults {
            say!("WRONG  {fault}: a fault of the driver; run the program doctor");
        }
        if left > 0 {
            let why = if interrupt::came() { "ended by Ctrl-C: " } else { "" };
            say!(
                "{why}{left} of {} are still to be measured: run it again, or with a larger --budget",
                wanted.len()
            );
        }
    }
    for plot in &options.plot {
        if !draw(plot, &device, &mine)? {
            tell!(
                "tune: {} is not written: no sizes of groups were measured yet on {} (run it again, or with a larger --budget)",
                plot.display(),
                info.name
            );
        }
    }
    Ok(faults.is_empty() && left == 0)
}

fn distinct(mut names: Vec<String>) -> String {
    names.sort();
    names.dedup();
    names.join(", ")
}

fn table(entries: &[&Entry]) {
    say!("{:<42} {:>11} {:>11} {:>7}  settings", "launches", "default us", "tuned us", "gain");
    for entry in entries {
        let Some(measured) = &entry.measured else {
            say!("{:<42} {:>11} {:>11} {:>7}  {}", entry.case.to_string(), "-", "-", "-", entry.set);
            continue;
        };
        let gain = 100.0 * (1.0 - measured.tuned_us / measured.default_us);
        let part = if measured.partial { ", not all tried" } else { "" };
        let tie = if entry.set == Settings::default() && !measured.ties.is_empty() { ", a tie" } else { "" };
        say!(
            "{:<42} {:>11.2} {:>11.2} {:>6.1}%  {}{tie}{part}",
            entry.case.to_string(),
            measured.default_us,
            measured.tuned_us,
            gain,
            entry.set
        );
    }
}

fn object(entry: &Entry) -> Value {
    serde_json::to_value(entry).unwrap_or(Value::Null)
}

/// Charts of time over work-group size, kernel by kernel (figure 4 of michels-2011 is of a whole solve: the program `papers` draws it), one for each precision and size, one line for each kind of
/// launches. False if there is nothing to draw.
fn draw(path: &Path, device: &Device, entries: &[&Entry]) -> Result<bool> {
    let mut charts = Vec::new();
    for size in SizeClass::ALL {
        for precision in [Precision::Single, Precision::Double] {
            let lines: Vec<_> = entries
                .iter()
                .filter(|e| e.case.size == size && e.case.precision == precision)
                .filter_map(|e| {
                    let curve = &e.measured.as_ref()?.curve;
                    let points = curve.iter().map(|(items, us)| (*items as f64, *us)).collect::<Vec<_>>();
                    let name = match e.case.reading {
                        Some(reading) => format!("{} of {reading}", e.case.family),
                        None => e.case.family.to_string(),
                    };
                    (!points.is_empty()).then_some((name, points))
                })
                .collect();
            if !lines.is_empty() {
                charts.push(Chart {
                    title: format!("{precision}, {size}"),
                    across: "work-items of a group",
                    up: "microseconds of an iteration or call",
                    doubling: true,
                    lines,
                    ..Chart::default()
                });
            }
        }
    }
    if charts.is_empty() {
        return Ok(false);
    }
    let info = device.info();
    let title = format!("{} ({}, driver {})", info.name, info.platform, info.driver);
    let across = charts.len().min(2);
    write_panels(path, &title, &charts, across)?;
    Ok(true)
}

fn show(file: Option<&Path>, json: bool) -> Result<bool> {
    let path = place(file)?;
    let file = TuneFile::read(&path)?;
    if json {
        let entries: Vec<Value> = file.entries.iter().map(object).collect();
        common::print_json(
            json!({ "file": path.display().to_string(), "entries": entries, "ignored": file.remarks }),
        );
        return Ok(true);
    }
    say!("{}: {} entries that count", path.display(), file.entries.len());
    for remark in &file.remarks {
        say!("  {remark}");
    }
    let kernels = kernels_checksum()?;
    let mut devices: Vec<[&str; 3]> =
        file.entries.iter().map(|e| [e.device.as_str(), e.platform.as_str(), e.driver.as_str()]).collect();
    devices.sort_unstable();
    devices.dedup();
    for device in devices {
        say!("\n{} ({}, driver {})", device[0], device[1], device[2]);
        let mine: Vec<&Entry> = file
            .entries
            .iter()
            .filter(|e| [e.device.as_str(), e.platform.as_str(), e.driver.as_str()] == device)
            .collect();
        table(&mine);
        let old = mine.iter().filter(|e| !e.is_of_kernels(&kernels)).count();
        if old > 0 {
            say!("{old} of them were measured with other kernels than this program has: tune measures them again");
        }
    }
    Ok(true)
}

fn merge(others: &[PathBuf], file: Option<&Path>) -> Result<bool> {
    let path = place(file)?;
    let mut file = read(&path)?;
    let mut taken = Vec::new();
    for other in others {
        if !other.is_file() {
            return Err(option("others", format!("{} is not there", other.display())));
        }
        let (mut fresh, mut same, mut tied, mut differ) = (0, 0, 0, 0);
        for entry in read(other)?.entries {
            match file.entries.iter().find(|mine| mine.same_subject(&entry)) {
                None => fresh += 1,
                Some(mine) => match mine.agrees_with(&entry) {
                    Agreement::Same => same += 1,
                    Agreement::Tie => tied += 1,
                    Agreement::Differ => {
                        differ += 1;
                        say!("{}: {} here, {} in {}", entry.case, mine.set, entry.set, other.display());
                    }
                },
            }
            file.put(entry.clone());
            taken.push(entry);
        }
        say!(
            "{}: {fresh} new entries, {same} that agree, {tied} that call it a tie, {differ} that differ (the later ones are \
             taken)",
            other.display()
        );
    }
    TuneFile::update(&path, |file| taken.into_iter().for_each(|entry| file.put(entry)))?;
    Ok(true)
}

fn forget(device: &str, file: Option<&Path>) -> Result<bool> {
    let path = place(file)?;
    read(&path)?;
    let filter: Option<DeviceFilter> = if device == "all" { None } else { Some(device.parse()?) };
    let here: Vec<_> = Device::candidates();
    let part = device.to_lowercase();
    let is_meant = |entry: &Entry| match &filter {
        None => true,
        Some(filter) => {
            let of_entry =
                |c: &&residuum::Candidate| c.info.name == entry.device && c.info.platform == entry.platform;
            entry.device.to_lowercase().contains(&part)
                || here.iter().filter(of_entry).any(|c| filter.matches(&c.info))
        }
    };
    if !path.exists() {
        return Err(option("file", format!("{} is not there", path.display())));
    }
    let [before, after] = TuneFile::update(&path, |file| {
        let before = file.entries.len();
        file.entries.retain(|entry| !is_meant(entry));
        [before, file.entries.len()]
    })?;
    if before == after {
        return Err(option("device", format!("no entry of {} is of '{device}'", path.display())));
    }
    say!("{} of {before} entries removed from {}", before - after, path.display());
    Ok(true)
}
