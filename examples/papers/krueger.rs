//! krueger-westermann-2003, section 6, in fp32: operations, and simulations by a few iterations a step. The paper's machine has a Pentium 4 of
//! 2.8 GHz and a Radeon 9800.

use std::time::Instant;

use residuum::measure::time;
use residuum::operator::{Boundary, Stencil};
use residuum::simulation::cases::taylor_green_velocity;
use residuum::simulation::{Flow, FlowSetup, PressureStart, Splitting, TimeAverage, Wall, WaveSetup, Waves};
use residuum::sparse::gallery;
use residuum::{
    Combine, Csr, Device, Format, Matrix, Method, Packing, Reduction, Result, Solver, Stopping, Storage,
    Transposed, Vector,
};
use serde_json::{Value, json};

use crate::timing::iteration_ms;
use crate::{Setting, attempt};

pub(crate) const TABLES: &[&str] = &["vectors", "matrices", "cg", "transposed", "simulations", "time-step"];

/// Function that prints a table.
type Table = fn(&Setting) -> Result<()>;

pub(crate) fn tables(setting: &Setting) -> Result<()> {
    let made: [(&str, Table); 5] = [
        ("vectors", vectors),
        ("matrices", matrices),
        ("cg", cg),
        ("simulations", simulations),
        ("time-step", time_step),
    ];
    for (table, make) in made.into_iter().filter(|(table, _)| setting.wants(table)) {
        attempt(setting, table, make(setting));
    }
    for n in [4096, 1 << 20, 1 << 24].into_iter().filter(|_| setting.wants("transposed")) {
        attempt(setting, &format!("transposed, {n} rows"), transposed(setting, n));
    }
    Ok(())
}

/// A row: milliseconds on the host and on the device, and the share of the device's copy bandwidth that `bytes` are.
fn row(
    setting: &Setting,
    operation: &str,
    paper: Option<f64>,
    bytes: u64,
    mut ms: impl FnMut(&Device) -> Result<f64>,
) -> Result<()> {
    let mut row = json!({"operation": operation, "krueger_gpu_ms": paper});
    let mut last = f64::NAN;
    for (place, device) in setting.devices() {
        let measured = ms(device);
        last = *measured.as_ref().unwrap_or(&f64::NAN);
        row[format!("{place}_ms")] = measured.map_or_else(|error| json!(format!("none: {error}")), |ms| json!(ms));
    }
    row["bytes"] = json!(bytes);
    row["copy_share"] = json!(bytes as f64 / last / 1e6 / setting.copy);
    setting.row(&row);
    Ok(())
}

fn measured(device: &Device, queue: impl FnMut() -> Result<()>) -> Result<f64> {
    Ok(time(device, queue)?.microseconds / 1e3)
}

/// Products of vectors and reductions. The CPU takes 12 to 15 times as long as the GPU for the first in the paper, 3 times for the others.
fn vectors(setting: &Setting) -> Result<()> {
    for (side, paper) in [(512usize, 0.2), (1024, 0.72), (2048, 2.8)] {
        let n = side * side;
        row(setting, &format!("x y, {side}^2"), Some(paper), 12 * n as u64, |device| {
            let (x, y) = (Vector::<f32>::filled(device, n, 0.5)?, Vector::<f32>::filled(device, n, 2.0)?);
            let mut z = Vector::<f32>::zeros(device, n)?;
            measured(device, || z.product_of(&x, &y))
        })?;
    }
    for (side, paper) in [(1024usize, 1.6), (2048, 5.4)] {
        let n = side * side;
        // It returns a number, so its time holds the wait for it.
        row(setting, &format!("reduction of {side}^2 (waits)"), Some(paper), 4 * n as u64, |device| {
            let x = Vector::<f32>::filled(device, n, 1.0)?;
            measured(device, || x.sum().map(|_| ()))
        })?;
        row(setting, &format!("largest x y of {side}^2 (waits)"), None, 8 * n as u64, |device| {
            let (x, y) = (Vector::<f32>::filled(device, n, 0.5)?, Vector::<f32>::filled(device, n, 2.0)?);
            measured(device, || x.reduce_products(Reduction::Maximum, &y).map(|_| ()))
        })?;
    }
    Ok(())
}

fn product(setting: &Setting, name: &str, paper: Option<f64>, a: &Csr<f32>, format: Format) -> Result<()> {
    let storage = Storage::default().with_format(format).with_packing(Packing::Never);
    let bytes = Matrix::stored(&setting.device, a, storage)?.product_bytes();
    row(setting, name, paper, bytes, |device| {
        let matrix = Matrix::stored(device, a, storage)?;
        let x = Vector::filled(device, a.cols(), 0.5)?;
        let mut y = Vector::zeros(device, a.rows())?;
        measured(device, || matrix.multiply(&x, &mut y))
    })
}

/// The matrix of a wave step, `I + (gamma / 2) L` with gamma = 1 and a fixed rim, by its five diagonals.
fn wave_matrix(side: usize) -> Result<Csr<f32>> {
    let mut a = gallery::poisson_2d::<f32>(side, 2.0)?;
    a.values_mut().iter_mut().for_each(|value| *value *= 0.5);
    Ok(a)
}

fn matrices(setting: &Setting) -> Result<()> {
    let full = gallery::by_name::<f32>("dense:4096:4096")?;
    product(setting, "full 4096 x 4096 matrix", Some(230.0), &full, Format::Dense)?;
    let banded = gallery::diagonals::<f32>(4096, 10, 64, 2003)?;
    product(setting, "ten diagonals of 4096", Some(0.72), &banded, Format::Dia)?;
    let large = gallery::diagonals::<f32>(4096 * 4096, 10, 4096, 2003)?;
    product(setting, "ten diagonals of 4096^2", None, &large, Format::Dia)?;
    let wave = wave_matrix(1024)?;
    product(setting, "wave matrix of 1024^2", Some(4.54), &wave, Format::Dia)?;
    let storage = Storage::default().with_format(Format::Dia).with_packing(Packing::Never);
    let bytes = Matrix::stored(&setting.device, &wave, storage)?.product_bytes() + 4 * wave.rows() as u64;
    row(setting, "wave matrix of 1024^2: A x - y", None, bytes, |device| {
        let matrix = Matrix::stored(device, &wave, storage)?;
        let (x, y) = (Vector::filled(device, wave.cols(), 0.5)?, Vector::filled(device, wave.rows(), 2.0)?);
        let mut z = Vector::zeros(device, wave.rows())?;
        measured(device, || matrix.multiply_with(&x, Combine::Minus, &y, &mut z))
    })
}

/// An iteration of conjugate gradients with 1024² unknowns: the wave matrix stored by diagonals, and not stored.
fn cg(setting: &Setting) -> Result<()> {
    let side = 1024;
    let (wave, n) = (wave_matrix(side)?, side * side);
    let solve = |device: &Device, matrix: &Matrix<f32>| {
        let b = Vector::filled(device, n, 1.0)?;
        let mut x = Vector::zeros(device, n)?;
        let mut solver = Solver::new(matrix, Method::Cg, Stopping::after(100))?;
        iteration_ms(|| {
            x.fill(0.0)?;
            solver.solve(&b, &mut x)
        })
    };
    // Seven vectors are read or written beside the product.
    let storage = Storage::default().with_format(Format::Dia).with_packing(Packing::Never);
    let bytes = Matrix::stored(&setting.device, &wave, storage)?.product_bytes() + 28 * n as u64;
    row(setting, "CG iteration of 1024^2, wave matrix", Some(15.4), bytes, |device| {
        solve(device, &Matrix::stored(device, &wave, storage)?)
    })?;
    row(setting, "CG iteration of 1024^2, not stored", None, 36 * n as u64, |device| {
        solve(device, &Stencil::laplacian_2d(side, side)?.operator::<f32>(device)?)
    })
}

/// Section 2: the transposed of diagonals is read at shifted places. Bytes and times of `A'x` over those of `A x`, and equal bits of `A'x`.
fn transposed(setting: &Setting, n: usize) -> Result<()> {
    let a = gallery::diagonals::<f32>(n, 10, 64.min(n / 4), 2003)?;
    let storage =
        Storage::default().with_format(Format::Dia).with_transposed(Transposed::Copy).with_packing(Packing::Never);
    let mut row: Value = json!({"transposed": format!("ten diagonals of {n}")});
    let (mut bits, mut gallery_noise) = (Vec::new(), gallery::Random::new(5));
    let data: Vec<f32> = (0..n).map(|_| gallery_noise.uniform() as f32).collect();
    for (place, device) in setting.devices() {
        let alone = Matrix::stored(device, &a, storage.with_transposed(Transposed::None))?;
        let both = Matrix::stored(device, &a, storage)?;
        let x = Vector::from_slice(device, &data)?;
        let mut y = Vector::zeros(device, n)?;
        let forward = measured(device, || both.multiply(&x, &mut y))?;
        let backward = measured(device, || both.multiply_transposed(&x, &mut y))?;
        bits.push(y.to_vec()?);
        let copied = Matrix::stored(device, &a, storage.with_format(Format::CsrScalar))?;
        copied.multiply_transposed(&x, &mut y)?;
        bits.push(y.to_vec()?);
        row[format!("{place}_bytes_ratio")] = json!(both.bytes() as f64 / alone.bytes() as f64);
        row[format!("{place}_ms")] = json!(forward);
        row[format!("{place}_transposed_ms")] = json!(backward);
        row[format!("{place}_time_ratio")] = json!(backward / forward);
    }
    let word = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    row["equal_bits"] = json!(bits.iter().all(|found| word(found) == word(&bits[0])));
    setting.row(&row);
    Ok(())
}

/// Steps a second: waves by 5 iterations of CG, flow by 4, with a picture's way to the host and without.
fn simulations(setting: &Setting) -> Result<()> {
    let line = |name: &str, paper: f64, run: &dyn Fn(&Device, bool) -> Result<f64>| -> Result<()> {
        let mut row: Value = json!({"simulation": name, "krueger_frames_a_second": paper});
        for (place, device) in setting.devices() {
            row[format!("{place}_steps")] = json!(run(device, false)?);
            row[format!("{place}_steps_fetched")] = json!(run(device, true)?);
        }
        setting.row(&row);
        Ok(())
    };
    for (side, paper) in [(512, 43.0), (1024, 13.0)] {
        line(&format!("waves {side}^2, 5 iterations"), paper, &|device, fetches| {
            let mut surface = vec![0.0_f32; side * side];
            surface[side * side / 2 + side / 2] = 1.0;
            let mut setup = WaveSetup::new::<f32>([side; 2], 1.0);
            (setup.boundary, setup.average, setup.stopping) =
                (Boundary::Zero, TimeAverage::NewAndPresent, Stopping::after(5));
            let mut waves = Waves::new(device, &setup, &surface)?;
            a_second(device, || {
                let _report = waves.step()?;
                if fetches { waves.surface().to_vec().map(|_| ()) } else { Ok(()) }
            })
        })?;
    }
    line("flow 1024^2, 4 iterations", 9.0, &|device, fetches| {
        let side = 1024;
        let mut setup = FlowSetup::new::<f32>([side; 2], 1.0 / side as f64, 0.2 / side as f64, 1e-4);
        setup.stopping = Stopping::after(4);
        let mut flow = Flow::<f32>::new(device, setup)?;
        let middle = side as f64 / 2.0;
        flow.push([middle; 2], middle / 5.0, [1.0, 0.2])?;
        // A force keeps the fluid moving, so that no step has nothing to solve for.
        flow.set_force(Some(&|x, y| taylor_green_velocity(x, y).map(|v| 0.1 * v)))?;
        a_second(device, || {
            let _report = flow.step()?;
            if fetches { flow.dye().to_vec().map(|_| ()) } else { Ok(()) }
        })
    })
}

/// Steps of a vortex whose energy is looked at.
const STEPS: usize = 300;

/// Most energy that a vortex has in [`STEPS`] steps, as a part of the first: by the paper's time step, where viscosity and transport are
/// added, and by that of the crate; on the device.
fn time_step(setting: &Setting) -> Result<()> {
    for cells in [0.25, 0.5, 1.0, 1.5, 2.0, 4.0] {
        let most = |splitting: Splitting, start: PressureStart| -> Result<f64> {
            let side = 128;
            let cell = 1.0 / side as f64;
            let step = cells * cell;
            let mut setup = FlowSetup::new::<f32>([side; 2], cell, step, 0.2 * cell * cell / step);
            (setup.wall, setup.splitting, setup.pressure_start) = (Wall::FreeSlip, splitting, start);
            setup.stopping = Stopping::after(4);
            let mut flow = Flow::<f32>::new(&setting.device, setup)?;
            flow.set_velocity(&taylor_green_velocity)?;
            let (first, mut most) = (flow.energy()?, 0.0_f64);
            for _ in 0..STEPS {
                let _report = flow.step()?;
                let energy = flow.energy()? / first;
                most = if energy.is_finite() { most.max(energy) } else { f64::INFINITY };
                if most > 1e9 {
                    break;
                }
            }
            Ok(most)
        };
        use PressureStart::{Last, Scaled};
        use Splitting::{Additive, Sequential};
        let number = |value: f64| if value > 1e9 { json!("over 1e9") } else { json!(value) };
        setting.row(&json!({
            "table": "time step", "cells_a_step": cells, "krueger_step": number(most(Additive, Last)?),
            "krueger_step_scaled_start": number(most(Additive, Scaled)?), "ours_last_start": number(most(Sequential, Last)?),
            "ours": number(most(Sequential, Scaled)?),
        }));
    }
    Ok(())
}

/// Number of steps in a second.
fn a_second(device: &Device, mut step: impl FnMut() -> Result<()>) -> Result<f64> {
    step()?;
    device.synchronize()?;
    let (clock, mut steps) = (Instant::now(), 0);
    while clock.elapsed().as_secs_f64() < 0.5 {
        step()?;
        steps += 1;
    }
    device.synchronize()?;
    Ok(f64::from(steps) / clock.elapsed().as_secs_f64())
}
