//! Time of a program from its start to its first answer, with and without programs kept on disk; and whether many
//! that start at once get in each other's way.
//!
//! `cargo bench --bench start -- [--device WORDS] [--processes 16] [--json]`: a row per case. Each case is a process of its own
//! that opens the device, solves a system and fetches the answer. The drivers' own caches are moved to folders of the
//! benchmark, so that cold is cold.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(unreachable_pub)] // public in the library of the programs
#[path = "../examples/common/table.rs"]
mod table;

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use residuum::sparse::gallery;
use residuum::{Device, Format, Matrix, Method, Real, Result, Solver, Stopping, Vector};
use serde_json::{Value, json};
use table::Table;

const CHILD: &str = "--first-answer";

fn value(args: &[String], name: &str) -> Option<String> {
    args.iter().position(|a| a == name).and_then(|i| args.get(i + 1)).cloned()
}

fn main() -> ExitCode {
    env_logger::init();
    if table::helped(include_str!("start.rs")) {
        return ExitCode::SUCCESS;
    }
    let args: Vec<String> = std::env::args().collect();
    let words = value(&args, "--device").unwrap_or_default();
    if let Some(option) = table::unknown_option(&table::help(include_str!("start.rs")), &["--bench", CHILD]) {
        eprintln!("start: there is no {option}: see --help");
        return ExitCode::from(2);
    }
    let outcome = if args.iter().any(|a| a == CHILD) {
        answer(&words)
    } else {
        let processes = value(&args, "--processes").map_or(16, |n| n.parse().expect("a number of processes"));
        compare(&words, processes, &Table::new(args.iter().any(|a| a == "--json")));
        Ok(())
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("start: {error}");
            ExitCode::from(2)
        }
    }
}

/// First work of a program: open a device, solve, look at the answer.
fn answer(words: &str) -> Result<()> {
    let clock = Instant::now();
    let device = if words.is_empty() { Device::best()? } else { Device::select(words)? };
    let opened = clock.elapsed().as_secs_f64();
    let sum = if device.info().fp64 { solve::<f64>(&device)? } else { solve::<f32>(&device)? };
    let programs = device.programs();
    println!(
        "{}",
        json!({
            "device": device.info().name, "driver": device.info().driver, "open": opened,
            "first_answer": clock.elapsed().as_secs_f64(), "built": programs.built, "loaded": programs.loaded,
            "programs": programs.seconds, "bits": sum, "keeps": device.info().keeps_programs,
        })
    );
    Ok(())
}

fn solve<T: Real>(device: &Device) -> Result<String> {
    let a = Matrix::new(device, &gallery::poisson_2d::<T>(256, 0.01)?, Format::Auto)?;
    let b = Vector::filled(device, a.rows(), T::from_f64(1.0))?;
    let mut x = Vector::zeros(device, a.cols())?;
    let stopping = Stopping::for_precision::<T>().with_max_iterations(1000);
    let report = Solver::new(&a, Method::Cg, stopping)?.solve(&b, &mut x)?;
    assert!(report.converged(), "{report}");
    let sum = x.to_vec()?.iter().fold(0u64, |sum, v| sum.rotate_left(1) ^ v.to_f64().to_bits());
    Ok(format!("{sum:016x}"))
}

/// Starts a process whose programs are kept in `ours`, and whose driver keeps its own in `theirs`.
fn start(words: &str, ours: &Path, theirs: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a benchmark has a path"));
    command.args([CHILD, "--device", words]).stdout(Stdio::piped());
    command.env("RESIDUUM_CACHE", ours).env("POCL_CACHE_DIR", theirs).env("CUDA_CACHE_PATH", theirs);
    command
}

fn result(output: std::process::Output) -> Value {
    assert!(output.status.success(), "a process failed");
    serde_json::from_slice(&output.stdout).expect("a line of JSON")
}

fn compare(words: &str, processes: usize, table: &Table) {
    let [ours, theirs, empty] = [(); 3].map(|()| tempfile::tempdir().expect("a folder"));
    let (ours, theirs, empty) = (ours.path(), theirs.path(), empty.path());
    let off = Path::new("off");
    let fresh = |name: &str| {
        let path = empty.join(name);
        std::fs::create_dir(&path).expect("a folder");
        path
    };
    let mut bits = None;
    // Off first, so that the driver's cache is cold in the first case and warm in the second.
    for (case, ours, theirs) in [
        ("cold", off, theirs.to_path_buf()),
        ("driver's cache", off, theirs.to_path_buf()),
        ("cold, keeping programs", ours, fresh("a")),
        ("kept programs", ours, fresh("b")),
        ("kept programs and driver's cache", ours, theirs.to_path_buf()),
    ] {
        let runs = if case.starts_with("cold") { 1 } else { 3 };
        let mut best: Option<(f64, Value)> = None;
        for run in 0..runs {
            // The driver's own cache stays cold where it is not what is measured.
            let cold = theirs.join(run.to_string());
            let theirs = if case == "kept programs" { &cold } else { &theirs };
            let clock = Instant::now();
            let found = result(start(words, ours, theirs).output().expect("a process"));
            let wall = clock.elapsed().as_secs_f64();
            assert_eq!(*bits.get_or_insert(found["bits"].clone()), found["bits"], "another answer");
            if best.as_ref().is_none_or(|(fastest, _)| wall < *fastest) {
                best = Some((wall, found));
            }
        }
        let (wall, found) = best.expect("one run at least");
        let mut line = json!({ "case": case, "seconds": wall });
        for name in ["open", "first_answer", "programs", "built", "loaded", "driver", "device"] {
            line[name] = found[name].clone();
        }
        table.row(&line);
    }
    let shared = fresh("c");
    let clock = Instant::now();
    let all: Vec<_> = (0..processes)
        .map(|k| start(words, &shared, &fresh(&format!("p{k}"))).spawn().expect("a process"))
        .collect();
    let found: Vec<Value> = all.into_iter().map(|one| result(one.wait_with_output().expect("a process"))).collect();
    let wall = clock.elapsed().as_secs_f64();
    assert!(found.iter().all(|one| Some(&one["bits"]) == bits.as_ref()), "another answer");
    let after = result(start(words, &shared, &fresh("last")).output().expect("a process"));
    assert!(after["keeps"] == false || after["built"] == 0, "an entry is missing or damaged: {after}");
    let count = |name: &str| found.iter().map(|one| one[name].as_u64().unwrap_or(0)).sum::<u64>();
    table.row(&json!({
        "case": "at once on an empty cache", "processes": processes, "seconds": wall, "built": count("built"),
        "loaded": count("loaded"), "entries": std::fs::read_dir(shared.join("programs")).map_or(0, Iterator::count),
        "built_after": after["built"],
    }));
}
