//! Tables of dedecek-2013 for the matrices at hand, his figures beside ours, and four more: CG with SSOR beside CG (michels-2011, 8), the
//! set-up of SAINV on the host beside the device, preconditioners that take other values beside those made anew, and factors in f32 beside
//! those in f64.
//!
//! `cargo bench --bench inverse --features metis -- --data FOLDER [--device WORDS] [--only 7.2|7.3|7.4|7.5|7.7|7.8|7.9|ssor|setup|update|f32|parts|sweeps]
//! [--json]`. Tables of the thesis are in fp32 under its conventions (`tests/common/thesis.rs`), its times in ms: a quad-core Core i5 and a
//! GeForce "660 GT". A matrix that is not in the folder is named. Times of a solve are those of the iterations that count.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod common;
#[path = "../tests/common/thesis.rs"]
mod thesis;

use std::path::Path;
use std::time::Instant;

use common::Setting;
use residuum::operator::{LinearOperator, SharedOperator};
use residuum::precond::{Ainv, AinvOptions, Bainv, BainvOptions, Preconditioner, RowOrdering, Sweep};
use residuum::sparse::{Partition, gallery};
use residuum::{Csr, Device, Format, Matrix, Method, Report, Result, Setup, Solver, Stopping, Vector, io, measure};
use serde_json::{Value, json};
use thesis::{counted, system};

fn main() -> std::process::ExitCode {
    common::main("inverse", include_str!("inverse.rs"), run)
}

fn run(setting: &Setting) -> Result<()> {
    if let Some(folder) = setting.text("--data").map(Path::new) {
        if TABLES.iter().any(|table| setting.wanted(table)) {
            tables(setting, folder)?;
        }
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
        eprintln!("tables of the thesis left out: --data names no folder of matrices");
    }
    if setting.wanted("ssor") {
        for side in [16, 32, 64, 128, 256, 512, 1024] {
            ssor(setting, side)?;
        }
    }
    Ok(())
}

/// Figures of the thesis for a matrix, as it prints them: time in ms / iterations, or time, entries of `Z`, iterations.
struct Printed {
    matrix: &'static str,
    cg: [&'static str; 3],
    sainv: [&'static str; 3],
    entries: &'static str,
    fine: [&'static str; 2],
    coarse: [&'static str; 2],
}

/// Tables 7.2 and 7.3 (CPU; GPU with CSR; GPU with COO; entries of `Z`), 7.8 and 7.9 (CPU; GPU).
const PRINTED: [Printed; 5] = [
    Printed {
        matrix: "1138_bus",
        cg: ["20 / 620", "70 / 620", "70 / 620"],
        sainv: ["10 / 67", "10 / 65", "20 / 65"],
        entries: "4865",
        fine: ["-", "-"],
        coarse: ["-", "-"],
    },
    Printed {
        matrix: "bcsstk15",
        cg: ["170 / 1000", "130 / 1000", "140 / 1000"],
        sainv: ["60 / 169", "30 / 167", "40 / 167"],
        entries: "25822",
        fine: ["1490, 264434, 58", "200, 267679, 53"],
        coarse: ["90, 25646, 173", "120, 25819, 170"],
    },
    Printed {
        matrix: "apache1",
        cg: ["-", "-", "-"],
        sainv: ["-", "-", "-"],
        entries: "-",
        fine: ["5440, 2810010, 1000", "3120, 2810139, 1000"],
        coarse: ["370, 367347, 1000", "2240, 367339, 1000"],
    },
    Printed {
        matrix: "cvxbqp1",
        cg: ["1060 / 1000", "380 / 1000", "230 / 1000"],
        sainv: ["2770 / 1000", "1320 / 1000", "860 / 1000"],
        entries: "435078",
        fine: ["91480, 4828354, 1000", "28430, 5961674, 1000"],
        coarse: ["890, 427316, 1000", "3890, 434813, 1000"],
    },
    Printed {
        matrix: "cfd1",
        cg: ["2930 / 1000", "540 / 1000", "490 / 1000"],
        sainv: ["5870 / 1000", "1100 / 775", "750 / 774"],
        entries: "793660",
        fine: ["87570, 10749225, 1000", "10230, 10741461, 1000"],
        coarse: ["1920, 793662, 1000", "2290, 793744, 1000"],
    },
];

/// Tables of the thesis.
const TABLES: [&str; 7] = ["7.2", "7.3", "7.4", "7.5", "7.7", "7.8", "7.9"];

/// Parts of tables 7.4 and 7.7.
const PARTS: [usize; 6] = [128, 256, 512, 1024, 2048, 4096];

/// A system under the conventions of the thesis.
struct System<'a> {
    device: &'a Device,
    a: Csr<f32>,
    rhs: Vec<f32>,
}

impl System<'_> {
    /// Milliseconds and iterations as the thesis counts them.
    fn solve(&self, format: Format, preconditioner: Option<SharedOperator<f32>>) -> Result<(f64, usize)> {
        let matrix = Matrix::new(self.device, &self.a, format)?;
        let b = Vector::from_slice(self.device, &self.rhs)?;
        let mut setup = Setup::new(Method::Cg, Stopping::after(1001));
        if let Some(preconditioner) = preconditioner {
            setup = setup.with_preconditioner(preconditioner);
        }
        let mut solver = Solver::with(&matrix, setup)?;
        let mut solve = || {
            let mut x = Vector::zeros(self.device, self.a.cols())?;
            solver.solve(&b, &mut x)
        };
        let _warm = solve()?;
        let report = solve()?;
        let iterations = counted(&report.history);
        let share = ((iterations + 1) as f64 / report.iterations.max(1) as f64).min(1.0);
        Ok((1e3 * share * report.times.solve, iterations))
    }

    /// Milliseconds of the set-up and the inverse.
    fn sainv(&self, drop: f64, on_device: bool) -> Result<(f64, Ainv<f32>)> {
        let mut options = AinvOptions::sainv(drop);
        (options.scales, options.on_device) = (false, Some(on_device));
        timed(|| Ainv::new(self.device, &self.a, options))
    }
}

/// Milliseconds of the faster of two runs, and the result.
fn timed<R>(mut work: impl FnMut() -> Result<R>) -> Result<(f64, R)> {
    let mut run = || {
        let clock = Instant::now();
        let result = work()?;
        Ok((1e3 * clock.elapsed().as_secs_f64(), result))
    };
    let (first, _) = run()?;
    let (second, result) = run()?;
    Ok((first.min(second), result))
}

fn ours((ms, iterations): (f64, usize)) -> String {
    format!("{ms:.1} / {iterations}")
}

fn tables(setting: &Setting, folder: &Path) -> Result<()> {
    let wanted = |table: &str| setting.wanted(table);
    for printed in &PRINTED {
        let name = printed.matrix;
        let path = folder.join(format!("{name}.mtx.gz"));
        if !path.exists() {
            eprintln!("{name} is not in the folder");
            continue;
        }
        let (a, rhs) = system(&io::read_matrix(&path, &mut |_, _| ())?)?;
        let system = System { device: &setting.device, a, rhs };
        if wanted("7.2") {
            let [cpu, csr, coo] = printed.cg;
            setting.row(&json!({
                "table": "7.2", "matrix": name, "cg_csr": ours(system.solve(Format::Csr, None)?),
                "cg_coo": ours(system.solve(Format::Coo, None)?), "cg_auto": ours(system.solve(Format::Auto, None)?),
                "thesis_cpu": cpu, "thesis_csr": csr, "thesis_coo": coo,
            }));
        }
        if wanted("7.3") {
            let (_, inverse) = system.sainv(0.1, false)?;
            let entries = inverse.entries();
            let inverse: SharedOperator<f32> = inverse.into();
            let [cpu, csr, coo] = printed.sainv;
            let [by_csr, by_coo, by_auto] = [Format::Csr, Format::Coo, Format::Auto]
                .map(|format| system.solve(format, Some(inverse.clone())).map(ours));
            setting.row(&json!({
                "table": "7.3", "matrix": name, "nz": entries, "thesis_nz": printed.entries, "pcg_csr": by_csr?,
                "pcg_coo": by_coo?, "pcg_auto": by_auto?, "thesis_cpu": cpu, "thesis_csr": csr, "thesis_coo": coo,
            }));
        }
        for (table, drop, figures) in [("7.8", 0.01, printed.fine), ("7.9", 0.1, printed.coarse)] {
            if wanted(table) && figures[0] != "-" {
                sainv(setting, &system, (table, name, drop), figures)?;
            }
        }
        bainv(setting, &system, name)?;
    }
    Ok(())
}

/// A row of table 7.8 or 7.9: set-up in ms, entries, iterations.
fn sainv(setting: &Setting, system: &System<'_>, row: (&str, &str, f64), thesis: [&str; 2]) -> Result<()> {
    let (table, name, drop) = row;
    let (host, inverse) = system.sainv(drop, false)?;
    let (device, by_device) = system.sainv(drop, true)?;
    let device = by_device.made_on_device().then_some(device);
    let entries = inverse.entries();
    let (solve, iterations) = system.solve(Format::Auto, Some(inverse.into()))?;
    setting.row(&json!({
        "table": table, "matrix": name, "host_ms": host, "device_ms": device, "nz": entries, "iterations": iterations,
        "solve_ms": solve, "thesis_cpu": thesis[0], "thesis_gpu": thesis[1],
    }));
    Ok(())
}

/// Rows of tables 7.4 and 7.7 (set-up in ms with the partition and without, entries, iterations, solve in ms, over the number of parts),
/// and of 7.5 and 7.6 (`k` = 29 for bcsstk15).
#[cfg(feature = "metis")]
fn bainv(setting: &Setting, system: &System<'_>, name: &str) -> Result<()> {
    let row = |table: &str, parts: usize, thesis: &str| -> Result<()> {
        let (partition_ms, partition) = timed(|| Partition::metis(&system.a, parts))?;
        let (ms, inverse) = timed(|| Bainv::new(system.device, &system.a, &partition, BainvOptions::default()))?;
        let entries = inverse.entries();
        let (solve, iterations) = system.solve(Format::Auto, Some(inverse.into()))?;
        setting.row(&json!({
            "table": table, "matrix": name, "parts": parts, "partition_ms": partition_ms, "setup_ms": ms, "nz": entries,
            "iterations": iterations, "solve_ms": solve, "thesis": thesis,
        }));
        Ok(())
    };
    if setting.wanted("7.5") && name == "bcsstk15" {
        row("7.5 7.6", 29, "30 + 20, 261510, 210")?;
    }
    // Parts of fewer than 16 rows, or of more than 600, are no use; blocks are dense.
    for parts in PARTS.into_iter().filter(|parts| (16..=600).contains(&(system.a.rows() / parts))) {
        if setting.wanted("7.4") || setting.wanted("7.7") {
            row("7.4 7.7", parts, "none for this matrix")?;
        }
    }
    Ok(())
}

#[cfg(not(feature = "metis"))]
fn bainv(_: &Setting, _: &System<'_>, name: &str) -> Result<()> {
    eprintln!("{name}: tables 7.4 to 7.7 left out, without the feature metis");
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
            let stopping = Stopping { rtol: 1e-8, max_iterations: 5000, ..Stopping::for_precision::<f64>() };
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
            let sweep = match Sweep::ssor(device, a, 1.0, ordering) {
                Ok(sweep) => sweep,
                Err(residuum::Error::Structure { .. }) => return Ok(()),
                Err(error) => return Err(error),
            };
            let x = Vector::filled(device, a.rows(), 1.0)?;
            let mut z = Vector::zeros(device, a.rows())?;
            let us = measure::time(device, || sweep.apply(&x, &mut z))?.microseconds;
            row[format!("{kind}_launches")] = Value::from(sweep.launches());
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

/// CG with SSOR(1), rows by levels and by colours, beside CG: milliseconds until the residual is 1e-8 of the first, in f64.
fn ssor(setting: &Setting, side: usize) -> Result<()> {
    let device = &setting.device;
    let a = gallery::poisson_2d::<f64>(side, 0.0)?;
    let matrix = Matrix::new(device, &a, Format::Auto)?;
    let b = Vector::filled(device, a.rows(), 1.0)?;
    let solve = |preconditioner: Option<Sweep<f64>>| -> Result<Report> {
        let stopping = Stopping { rtol: 1e-8, ..Stopping::for_precision::<f64>() };
        let mut setup = Setup::new(Method::Cg, stopping);
        if let Some(preconditioner) = preconditioner {
            setup = setup.with_preconditioner(preconditioner);
        }
        fastest(4, &mut Solver::with(&matrix, setup)?, &b)
    };
    let plain = solve(None)?;
    let mut row = json!({"ssor": format!("poisson {side}^2"), "n": a.rows()});
    let enter = |row: &mut Value, name: &str, report: &Report| {
        row[format!("{name}_ms")] = Value::from(1e3 * report.times.solve);
        row[format!("{name}_iterations")] = Value::from(report.iterations);
    };
    enter(&mut row, "cg", &plain);
    for (name, ordering) in [("levels", RowOrdering::Rows), ("colours", RowOrdering::Colours)] {
        let report = solve(Some(Sweep::ssor(device, &a, 1.0, ordering)?))?;
        enter(&mut row, name, &report);
        row[format!("{name}_of_cg")] = Value::from(report.times.solve / plain.times.solve);
    }
    setting.row(&row);
    Ok(())
}
