//! michels-2011: conjugate gradients for heat flow on an image, in fp32.
//!
//! The matrix of `n = side²` unknowns is `A = I + s L`, `L` the 5-point Laplacian with a rim where heat is lost (7); `s = dt / dx²` is not printed,
//! nor is the image. Here `s` is [`STEP`], the image a board of squares of 0 and 255, and a solve ends at a residual of 1 (6.1).

use std::time::Instant;

use common::plot::Chart;
use residuum::precond::{RowOrdering, Sweep, SweepOptions};
use residuum::simulation::{Heat, HeatSetup};
use residuum::sparse::gallery;
use residuum::{Csr, Device, Format, Matrix, Method, Result, Setup, Solver, Stopping, Vector};
use serde_json::{Value, json};

use crate::timing::{fastest, from_memory, iteration_ms};
use crate::{Setting, attempt, missing};

/// Table that is drawn.
pub(crate) const FIGURE: &str = "figure-4";

pub(crate) const TABLES: &[&str] = &["6.1", FIGURE, "8.1", "transfer", "7.2"];

/// `dt / dx²`.
const STEP: f64 = 20.0;

/// Milliseconds of an iteration (6.1): sequential CPU (Armadillo, ELLPACK-R), MATLAB, MKL (CRS, threads), the paper's kernels (CUDA, ELLPACK-R,
/// 512 threads), NVIDIA's (CRS). Core i7 860 and GeForce GTX 480.
const TIMES: [(usize, [f64; 5]); 3] = [
    (512, [12.9, 13.3, 3.4, 3.1, 3.0]),
    (1024, [56.6, 40.6, 19.4, 7.3, 4.6]),
    (2048, [238.6, 153.0, 79.9, 21.5, 9.2]),
];

/// Time steps a second with display (7.2).
const STEPS: [(usize, f64); 3] = [(256, 20.0), (512, 10.0), (1024, 7.0)];

/// Steps that are timed.
const TIMED_STEPS: usize = 30;

/// Work-items of a group in figure 4.
const ITEMS: [usize; 6] = [32, 64, 128, 256, 512, 1024];

pub(crate) fn tables(setting: &Setting) -> Result<()> {
    for (side, times) in TIMES.iter().filter(|_| setting.wants("6.1")) {
        attempt(setting, &format!("6.1, {side}^2"), iterations(setting, *side, *times));
    }
    if setting.wants(FIGURE) {
        attempt(setting, FIGURE, groups(setting));
    }
    for side in [16, 32, 64, 128, 256, 512, 1024].into_iter().filter(|_| setting.wants("8.1")) {
        attempt(setting, &format!("8.1, {side}^2"), ssor(setting, side));
    }
    for side in [16, 32, 64, 128, 256, 512].into_iter().filter(|_| setting.wants("transfer")) {
        attempt(setting, &format!("transfer, {side}^2"), transfer(setting, side));
    }
    for (side, steps) in STEPS.iter().filter(|_| setting.wants("7.2")) {
        attempt(setting, &format!("7.2, {side}"), steps_a_second(setting, *side, *steps));
    }
    Ok(())
}

/// `I + s L` is `s` times a Poisson matrix with the shift `1 / s`.
fn heat_matrix(side: usize) -> Result<Csr<f32>> {
    let mut a = gallery::poisson_2d::<f32>(side, 1.0 / STEP)?;
    a.values_mut().iter_mut().for_each(|value| *value *= STEP as f32);
    Ok(a)
}

/// A board of squares of 0 and 255.
fn image(side: usize) -> Vec<f32> {
    let square = (side / 8).max(1);
    (0..side * side)
        .map(|k| if (k % side / square + k / side / square).is_multiple_of(2) { 0.0 } else { 255.0 })
        .collect()
}

/// Until a residual of 1.
fn bounded() -> Stopping {
    Stopping::for_precision::<f32>().with_rtol(0.0).with_atol(1.0)
}

/// Table 6.1.
fn iterations(setting: &Setting, side: usize, paper: [f64; 5]) -> Result<()> {
    let a = heat_matrix(side)?;
    let of = |device: &Device, format: Format| -> Result<f64> {
        let matrix = Matrix::new(device, &a, format)?;
        let b = Vector::from_slice(device, &image(side))?;
        let mut solver = Solver::new(&matrix, Method::Cg, Stopping::after(100))?;
        let mut x = Vector::zeros(device, a.cols())?;
        iteration_ms(|| {
            x.fill(0.0)?;
            solver.solve(&b, &mut x)
        })
    };
    let [cpu, matlab, mkl, cuda, nvidia] = paper;
    let mut row = json!({
        "table": "6.1", "n": format!("{side}^2"), "michels_cpu": cpu, "michels_matlab": matlab, "michels_mkl": mkl, "michels_cuda": cuda,
        "michels_nvidia_crs": nvidia, "host_ellpack_r": of(&setting.host, Format::EllpackR)?,
        "host_csr": of(&setting.host, Format::Csr)?,
    });
    if setting.devices().len() > 1 {
        row["device_ellpack_r_512"] = match setting.device.with_work_group(512) {
            Ok(device) => {
                of(&device, Format::EllpackR).map_or_else(|e| json!(format!("none: {e}")), |ms| json!(ms))
            }
            Err(error) => json!(format!("none: {error}")),
        };
        row["device_csr"] = json!(of(&setting.device, Format::Csr)?);
        row["device_auto"] = json!(of(&setting.device, Format::Auto)?);
    }
    setting.row(&row);
    Ok(())
}

/// Figure 4: a whole solve on the 512² matrix in ELLPACK-R over the items of a group.
fn groups(setting: &Setting) -> Result<()> {
    let side = 512;
    let a = heat_matrix(side)?;
    if setting.devices().len() == 1 {
        missing("figure 4: the host has no groups; choose a device with --device");
        return Ok(());
    }
    let mut line = Vec::new();
    for items in ITEMS {
        let device = match setting.device.with_work_group(items) {
            Ok(device) => device,
            Err(error) => {
                missing(&format!("figure 4, {items} items: {error}"));
                continue;
            }
        };
        let solve = || {
            let matrix = Matrix::new(&device, &a, Format::EllpackR)?;
            let b = Vector::from_slice(&device, &image(side))?;
            let mut solver = Solver::new(&matrix, Method::Cg, bounded())?;
            fastest(5, || {
                let mut x = Vector::zeros(&device, a.cols())?;
                solver.solve(&b, &mut x)
            })
        };
        let report = match solve() {
            Ok(report) => report,
            Err(error) => {
                attempt(setting, &format!("figure 4, {items} items"), Err(error));
                continue;
            }
        };
        let ms = 1e3 * report.times.solve;
        line.push((items as f64, ms));
        setting.row(&json!({"figure": 4, "items": items, "iterations": report.iterations, "solve_ms": ms}));
    }
    let Some(path) = &setting.options.plot else { return Ok(()) };
    Chart {
        title: format!(
            "Figure 4: CG on the {side} x {side} heat matrix, ELLPACK-R, {}",
            setting.device.info().name
        ),
        across: "work-items of a group",
        up: "milliseconds of a solve",
        doubling: true,
        lines: vec![("whole solve".into(), line)],
        ..Chart::default()
    }
    .write(path)
}

/// Claim of 8.1: SSOR needs far fewer iterations, but less time only for n > 1000 and a bad condition. A Poisson matrix, in fp64 where
/// the device has it, to 1e-8.
fn ssor(setting: &Setting, side: usize) -> Result<()> {
    let a = gallery::poisson_2d::<f64>(side, 0.0)?;
    let mut row = json!({"table": "8.1", "n": a.rows()});
    for (place, device) in setting.devices() {
        if device.require(residuum::Precision::Double).is_err() {
            missing("8.1: the device has no f64");
            continue;
        }
        let matrix = Matrix::new(device, &a, Format::Auto)?;
        let b = Vector::filled(device, a.rows(), 1.0)?;
        let mut enter = |name: &str, ordering: Option<RowOrdering>| -> Result<()> {
            let stopping = Stopping::for_precision::<f64>().with_rtol(1e-8);
            let mut setup = Setup::new(Method::Cg, stopping);
            if let Some(ordering) = ordering {
                setup = setup.with_preconditioner(Sweep::new(
                    device,
                    &a,
                    SweepOptions::ssor(1.0).with_ordering(ordering),
                )?);
            }
            let mut solver = Solver::with(&matrix, setup)?;
            let report = fastest(2, || {
                let mut x = Vector::zeros(device, a.cols())?;
                solver.solve(&b, &mut x)
            })?;
            row[format!("{place}_{name}")] =
                json!(format!("{:.2} ms / {}", 1e3 * report.times.solve, report.iterations));
            Ok(())
        };
        enter("cg", None)?;
        enter("ssor", Some(RowOrdering::Rows))?;
        enter("ssor_colours", Some(RowOrdering::Colours))?;
    }
    setting.row(&row);
    Ok(())
}

/// Claim of 6: the way to the device and back pays for n > 1000. Milliseconds from the matrix and the image in memory to the answer.
fn transfer(setting: &Setting, side: usize) -> Result<()> {
    let a = heat_matrix(side)?;
    let mut row: Value = json!({"table": "transfer", "n": a.rows()});
    for (place, device) in setting.devices() {
        let found = from_memory(device, &a, &image(side), bounded())?;
        row["iterations"] = json!(found.iterations);
        row[format!("{place}_ms")] = json!(found.ms);
    }
    setting.row(&row);
    Ok(())
}

/// Section 7.2: steps a second, with the picture's way to the host, and without.
fn steps_a_second(setting: &Setting, side: usize, paper: f64) -> Result<()> {
    let mut row = json!({"table": "7.2", "side": side, "michels_steps_with_display": paper});
    for (place, device) in setting.devices() {
        let mut setup = HeatSetup::new::<f32>([side; 2], STEP);
        setup.stopping = bounded();
        for (name, fetches) in [("steps", false), ("steps_fetched", true)] {
            // Steps are the same everywhere: heat is lost, and later ones are cheaper. The first builds the programs.
            let mut heat = Heat::new(device, &setup, &image(side))?;
            let _warm = heat.step()?;
            let (clock, mut iterations) = (Instant::now(), 0);
            for _ in 0..TIMED_STEPS {
                iterations += heat.step()?.iterations;
                if fetches {
                    let _picture = heat.temperature().to_vec()?;
                }
            }
            device.synchronize()?;
            row["iterations_a_step"] = json!(iterations as f64 / TIMED_STEPS as f64);
            row[format!("{place}_{name}")] = json!(TIMED_STEPS as f64 / clock.elapsed().as_secs_f64());
        }
    }
    setting.row(&row);
    Ok(())
}
