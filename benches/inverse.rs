//! Set-ups of preconditioners: SAINV and BAINV on the host beside the device, other values beside a set-up made anew, factors in f32 beside
//! those in f64, and sweeps. Tables of the papers: `cargo run --release --features papers --example papers`.
//!
//! `cargo bench --bench inverse -- --data FOLDER [--device WORDS] [--only setup|update|f32|parts|sweeps] [--json]`.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod common;
#[allow(dead_code)] // not every program has all of it
#[path = "../examples/papers/timing.rs"]
mod timing;

use std::path::Path;
use std::time::Instant;

use common::Setting;
use residuum::operator::LinearOperator;
use residuum::precond::{Ainv, AinvOptions, Bainv, BainvOptions, Preconditioner, RowOrdering, Sweep, SweepOptions};
use residuum::sparse::{Partition, gallery};
use residuum::{Csr, Format, Matrix, Method, Report, Result, Setup, Solver, Stopping, Vector, io, measure};
use serde_json::{Value, json};
use timing::timed;

fn main() -> std::process::ExitCode {
    common::main("inverse", include_str!("inverse.rs"), run)
}

fn run(setting: &Setting) -> Result<()> {
    if let Some(folder) = setting.text("--data").map(Path::new) {
        if setting.wanted("setup") {
            each_matrix(setting, folder, setup)?;
        }
        if setting.wanted("update") {
            each_matrix(setting, folder, update)?;
        }
        if setting.wanted("f32") {
            each_matrix(setting, folder, single)?;
        }
        if setting.wanted("parts") {
            each_matrix(setting, folder, parts)?;
        }
        if setting.wanted("sweeps") {
            each_matrix(setting, folder, sweeps)?;
        }
    } else {
        eprintln!("nothing to measure: --data names no folder of matrices");
    }
    Ok(())
}

/// Every square matrix of the folder from 3 000 rows on, and grids, in f64.
fn each_matrix(
    setting: &Setting,
    folder: &Path,
    measure: impl Fn(&Setting, &str, &Csr<f64>) -> Result<()>,
) -> Result<()> {
    for (name, path) in common::matrix_files(folder)? {
        let a = io::read_matrix::<f64>(&path, &mut |_, _| ())?;
        if a.rows() >= 3000 && a.rows() == a.cols() {
            measure(setting, &name, &a)?;
        }
    }
    measure(setting, "poisson 1024^2", &gallery::poisson_2d(1024, 0.0)?)?;
    measure(setting, "poisson 64^3", &gallery::poisson_3d(64)?)?;
    measure(setting, "poisson 128^3", &gallery::poisson_3d(128)?)
}

/// Milliseconds of the first set-up in this process for this matrix, of one made anew, and of other values for the first.
fn update(setting: &Setting, name: &str, a: &Csr<f64>) -> Result<()> {
    for which in ["jacobi", "block-jacobi=4", "ssor", "gauss-seidel", "ic0", "ilu0", "fsai", "spai", "chebyshev"] {
        let which: Preconditioner = which.parse()?;
        let build = || {
            let clock = Instant::now();
            let built = which.build(&setting.device, a)?;
            setting.device.synchronize()?;
            Ok((1e3 * clock.elapsed().as_secs_f64(), built.operator))
        };
        let (first, held) = match build() {
            Ok(made) => made,
            Err(residuum::Error::Structure { .. }) => continue,
            Err(error) => return Err(error),
        };
        let anew = (0..3).map(|_| Ok(build()?.0)).collect::<Result<Vec<f64>>>()?.into_iter().fold(first, f64::min);
        let mut other = a.clone();
        other.values_mut().iter_mut().for_each(|value| *value *= 1.25);
        let update = || {
            let clock = Instant::now();
            held.update_values(&other)?;
            setting.device.synchronize()?;
            Ok(1e3 * clock.elapsed().as_secs_f64())
        };
        let updates = (0..3).map(|_| update()).collect::<Result<Vec<f64>>>()?;
        let best = updates.into_iter().fold(f64::INFINITY, f64::min);
        setting.row(&json!({
            "update": name, "rows": a.rows(), "preconditioner": which.to_string(), "first_ms": first, "anew_ms": anew,
            "update_ms": best, "of_first": best / first, "of_anew": best / anew,
        }));
    }
    Ok(())
}

/// CG in f64 with approximate inverses in f64 and in f32 (b = 1, rtol 1e-8): iterations, milliseconds of the solve, bytes an iteration reads of
/// them.
fn single(setting: &Setting, name: &str, a: &Csr<f64>) -> Result<()> {
    let device = &setting.device;
    let matrix = Matrix::new(device, a, Format::Auto)?;
    let b = Vector::filled(device, a.rows(), 1.0)?;
    for which in ["sainv", "fsai"] {
        let mut row = json!({"f32": name, "rows": a.rows(), "preconditioner": which});
        for (kind, text) in [("f64", which.to_string()), ("f32", format!("{which},f32"))] {
            let built = match text.parse::<Preconditioner>()?.build(device, a) {
                Ok(built) => built,
                Err(residuum::Error::Structure { .. }) => return Ok(()),
                Err(error) => return Err(error),
            };
            row[format!("{kind}_mb")] = Value::from((*built.operator).bytes() as f64 / 1e6);
            let stopping = Stopping::for_precision::<f64>().with_rtol(1e-8).with_max_iterations(5000);
            let setup = Setup::new(Method::Cg, stopping).with_preconditioner(built.operator);
            let report = fastest(3, &mut Solver::with(&matrix, setup)?, &b)?;
            row[format!("{kind}_iterations")] = Value::from(report.iterations);
            row[format!("{kind}_converged")] = Value::from(report.converged());
            row[format!("{kind}_ms")] = Value::from(1e3 * report.times.solve);
        }
        let ms = |kind: &str| row[format!("{kind}_ms")].as_f64().unwrap_or(f64::NAN);
        row["f32_of_f64"] = Value::from(ms("f32") / ms("f64"));
        setting.row(&row);
    }
    Ok(())
}

/// One application of SSOR: microseconds by a launch for every wide level, and by one launch where the device can, share of the copy
/// bandwidth.
fn sweeps(setting: &Setting, name: &str, a: &Csr<f64>) -> Result<()> {
    for (words, ordering) in [("rows", RowOrdering::Rows), ("colours", RowOrdering::Colours)] {
        let mut row = json!({"ssor": name, "order": words, "rows": a.rows()});
        for (kind, device) in [("levels", &setting.device.with_resident_groups(0)), ("one", &setting.device)] {
            let sweep = match Sweep::new(device, a, SweepOptions::ssor(1.0).with_ordering(ordering)) {
                Ok(sweep) => sweep,
                Err(residuum::Error::Structure { .. }) => return Ok(()),
                Err(error) => return Err(error),
            };
            let x = Vector::filled(device, a.rows(), 1.0)?;
            let mut z = Vector::zeros(device, a.rows())?;
            let us = measure::time(device, || sweep.apply(&x, &mut z))?.microseconds;
            row[format!("{kind}_launches")] = Value::from(sweep.launches(1));
            row[format!("{kind}_us")] = Value::from(us);
            row[format!("{kind}_of_copy")] = Value::from(sweep.bytes() as f64 / us / 1e3 / setting.copy);
        }
        let us = |kind: &str| row[format!("{kind}_us")].as_f64().unwrap_or(f64::NAN);
        row["one_of_levels"] = Value::from(us("one") / us("levels"));
        setting.row(&row);
    }
    Ok(())
}

/// SAINV(0.1): set-up on the host and on the device.
fn setup(setting: &Setting, name: &str, a: &Csr<f64>) -> Result<()> {
    let made = |on_device: bool| {
        let mut options = AinvOptions::sainv(0.1);
        options.on_device = Some(on_device);
        timed(|| Ainv::new(&setting.device, a, options))
    };
    let (host, inverse) = match made(false) {
        Ok(made) => made,
        Err(error) => {
            eprintln!("{name}: {error}");
            return Ok(());
        }
    };
    let (device, by_device) = made(true)?;
    let device = by_device.made_on_device().then_some(device);
    setting.row(&json!({
        "setup": name, "rows": a.rows(), "nz": inverse.entries(), "host_ms": host, "device_ms": device,
        "device_of_host": device.map(|ms| ms / host),
    }));
    Ok(())
}

/// BAINV over parts of rows that follow each other: set-up on the host and on the device.
fn parts(setting: &Setting, name: &str, a: &Csr<f64>) -> Result<()> {
    for rows in [16, 128, 512] {
        let partition = Partition::natural(a.rows(), a.rows().div_ceil(rows))?;
        let made = |on_device: bool| {
            let mut options = BainvOptions::default();
            options.on_device = Some(on_device);
            timed(|| Bainv::new(&setting.device, a, &partition, options))
        };
        let (host, inverse) = match made(false) {
            Ok(made) => made,
            Err(error) => {
                eprintln!("{name}: {error}");
                continue;
            }
        };
        let (device, by_device) = made(true)?;
        let device = by_device.made_on_device().then_some(device);
        setting.row(&json!({
            "bainv": name, "rows": a.rows(), "rows_of_part": rows, "nz": inverse.entries(), "host_ms": host, "device_ms": device,
            "device_of_host": device.map(|ms| ms / host),
        }));
    }
    Ok(())
}

/// Report of the fastest of so many solves from 0.
fn fastest(runs: usize, solver: &mut Solver<f64>, b: &Vector<f64>) -> Result<Report> {
    let mut best: Option<Report> = None;
    for _ in 0..runs {
        let mut x = Vector::zeros(b.device(), b.len())?;
        let report = solver.solve(b, &mut x)?;
        best = best.filter(|best| best.times.solve <= report.times.solve).or(Some(report));
    }
    best.ok_or_else(|| residuum::Error::Option { name: "runs", reason: "there was none".into() })
}
