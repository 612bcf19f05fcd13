//! Finite elements: products that form no matrix beside those of the stored one, and the system of oses-2013, section 5.4.
//!
//! `cargo bench --bench elements -- [--device WORDS] [--only products|mapped|thesis|large] [--unknowns N] [--json]`
//!
//! `products` (boxes) and `mapped`: time and memory of a product over the degree, at about `--unknowns` unknowns (40 000), in fp64. Bytes are those
//! of the formula at `ElementOperator`, with `x` read once, and those that the stored matrix holds with `x` and `y` once.
//! `thesis`: `b = A x_sol` for the three meshes with 39 304 unknowns and for p = 1 to 8, solved to 1e-6 on the device and on the host, with the
//! ratio that section 5.4 asks for, and with the preconditioner that is fastest. `large`: `--unknowns` unknowns, without the matrix.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod common;

use std::time::Instant;

use common::Setting;
use residuum::fem::{Mapped, Mesh, Point, Space, hexahedron};
use residuum::operator::{LinearOperator, SharedOperator};
use residuum::precond::Preconditioner;
use residuum::sparse::gallery::Random;
use residuum::{Csr, Device, Format, Matrix, Method, Report, Result, Setup, Solver, Stopping, Vector, measure};
use serde_json::json;

const UNIT: [[f64; 2]; 3] = [[0.0, 1.0]; 3];

fn main() -> std::process::ExitCode {
    common::main("elements", include_str!("elements.rs"), run)
}

fn run(setting: &Setting) -> Result<()> {
    let asked = setting.number("--unknowns")?;
    let unknowns = |otherwise: usize| asked.unwrap_or(otherwise);
    for (name, mapped) in [("products", false), ("mapped", true)] {
        if setting.wanted(name) {
            products(setting, unknowns(40_000), mapped)?;
        }
    }
    if setting.wanted("thesis") {
        thesis(setting)?;
    }
    if setting.wanted("large") {
        large(setting, unknowns(1_000_000))?;
    }
    Ok(())
}

/// A hexahedron with faces that are not plane.
fn skew() -> impl Fn(Point) -> Mapped + Send + Sync + 'static {
    hexahedron([
        [0.0, 0.0, 0.0],
        [1.0, 0.1, -0.1],
        [0.1, 1.2, 0.1],
        [1.1, 1.0, 0.2],
        [0.1, -0.1, 0.9],
        [1.0, 0.2, 1.0],
        [0.0, 1.0, 1.3],
        [1.2, 1.1, 1.1],
    ])
}

/// The unit cube with about so many unknowns of this degree.
fn cube(unknowns: usize, degree: usize, mapped: bool) -> Result<Space> {
    let along = (unknowns as f64).cbrt() + 1.0;
    let cells = ((along / degree as f64).round() as usize).max(1);
    let mut mesh = Mesh::boxes([cells; 3], UNIT)?;
    mesh.set_degree(degree)?;
    Space::new(&if mapped { mesh.mapped(skew()) } else { mesh })
}

fn products(setting: &Setting, unknowns: usize, mapped: bool) -> Result<()> {
    let device = &setting.device;
    for degree in 1..=8 {
        let space = cube(unknowns, degree, mapped)?;
        let clock = Instant::now();
        let operator = space.operator::<f64>(device)?;
        let set_up = clock.elapsed().as_secs_f64();
        let x = Vector::<f64>::filled(device, space.len(), 1.0)?;
        let mut y = Vector::zeros(device, space.len())?;
        let us = measure::time(device, || operator.apply(&x, &mut y))?.microseconds;
        let share = |bytes: u64, us: f64| bytes as f64 / us / 1e3 / setting.copy;
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let mut row = json!({
            "cells": if mapped { "mapped" } else { "boxes" }, "p": degree, "unknowns": space.len(), "us": us,
            "MB": operator.product_bytes() as f64 / 1e6, "of copy": share(operator.product_bytes(), us), "MiB": mib(operator.bytes()),
            "set-up s": set_up, "format": "too large", "stored us": null, "stored of copy": null, "stored MiB": null, "assembly s": null,
            "stored / not": null,
        });
        // Dense cells couple (2p + 1)^3 functions; boxes far fewer.
        let entries = space.len() as f64 * ((2 * degree + 1) as f64).powi(3) * if mapped { 0.6 } else { 0.2 };
        if entries < 5e8 {
            let clock = Instant::now();
            let matrix = Matrix::new(device, &space.matrix()?, Format::Auto)?;
            let assembly = clock.elapsed().as_secs_f64();
            let stored = measure::time(device, || matrix.multiply(&x, &mut y))?.microseconds;
            row["format"] = json!(matrix.format().to_string());
            row["stored us"] = json!(stored);
            row["stored of copy"] = json!(share(matrix.bytes() + 16 * space.len() as u64, stored));
            row["stored MiB"] = json!(mib(matrix.bytes()));
            row["assembly s"] = json!(assembly);
            row["stored / not"] = json!(stored / us);
        }
        setting.row(&row);
    }
    Ok(())
}

/// A solution to look for.
fn solution(n: usize) -> Vec<f64> {
    let mut random = Random::new(2013);
    (0..n).map(|_| 2.0 * random.uniform() - 1.0).collect()
}

struct Solved {
    report: Report,
    seconds: f64,
    distance: f64,
}

/// Solves `A x = A x_sol`, and once more for the time.
fn solve(
    operator: SharedOperator<f64>,
    preconditioner: Option<SharedOperator<f64>>,
    x_sol: &[f64],
    rtol: f64,
) -> Result<Solved> {
    let device = operator.device().clone();
    let mut setup =
        Setup::new(Method::Cg, Stopping { rtol, max_iterations: 4000, ..Stopping::for_precision::<f64>() });
    setup.preconditioner = preconditioner;
    let wanted = Vector::from_slice(&device, x_sol)?;
    let (mut b, mut x) = (Vector::zeros(&device, x_sol.len())?, Vector::zeros(&device, x_sol.len())?);
    operator.apply(&wanted, &mut b)?;
    let mut solver = Solver::with(operator, setup)?;
    let mut best: Option<(Report, f64)> = None;
    for _ in 0..3 {
        x.fill(0.0)?;
        device.synchronize()?;
        let clock = Instant::now();
        let report = solver.solve(&b, &mut x)?;
        device.synchronize()?;
        let seconds = clock.elapsed().as_secs_f64();
        if best.as_ref().is_none_or(|best| seconds < best.1) {
            best = Some((report, seconds));
        }
    }
    x.axpby(-1.0, &wanted, 1.0)?;
    let distance = x.norm2()? / wanted.norm2()?;
    let (report, seconds) = best.unwrap_or_else(|| unreachable!("three solves"));
    Ok(Solved { report, seconds, distance })
}

/// Preconditioners that are tried on the stored matrix.
const TRIED: [&str; 6] = ["jacobi", "ssor", "chebyshev=4", "fsai", "adaptive-fsai", "sainv=0.1"];

fn thesis(setting: &Setting) -> Result<()> {
    const RTOL: f64 = 1e-6;
    let (device, host) = (&setting.device, &Device::host());
    for degree in 1..=8 {
        let space = cube(39_304, degree, false)?;
        let (x_sol, a) = (solution(space.len()), space.matrix()?);
        let on =
            |device: &Device| -> Result<SharedOperator<f64>> { Ok(Matrix::new(device, &a, Format::Auto)?.into()) };
        let row = |with: &str, set_up: f64, here: &Solved, there: Option<&Solved>| {
            setting.row(&json!({
                "p": degree, "unknowns": space.len(), "entries": a.nnz(), "with": with, "set-up s": set_up,
                "iterations": here.report.iterations, "stop": format!("{:?}", here.report.stop), "device s": here.seconds,
                "host s": there.map(|there| there.seconds), "device / host": there.map(|there| here.seconds / there.seconds),
                "distance": here.distance,
            }));
        };
        let plain = solve(on(device)?, None, &x_sol, RTOL)?;
        row("none", 0.0, &plain, Some(&solve(on(host)?, None, &x_sol, RTOL)?));
        let mut best: Option<(&str, f64, Solved)> = None;
        for name in TRIED {
            let clock = Instant::now();
            // Some do not exist for some matrices.
            let Ok(made) = preconditioner(name, device, &a) else { continue };
            let set_up = clock.elapsed().as_secs_f64();
            let found = solve(on(device)?, Some(made), &x_sol, RTOL)?;
            if found.report.converged() && best.as_ref().is_none_or(|best| found.seconds < best.2.seconds) {
                best = Some((name, set_up, found));
            }
        }
        if let Some((name, set_up, found)) = best {
            let there = solve(on(host)?, Some(preconditioner(name, host, &a)?), &x_sol, RTOL)?;
            row(name, set_up, &found, Some(&there));
        }
        let not_stored = |device: &Device| {
            solve(space.operator::<f64>(device)?.shared(), Some(space.jacobi::<f64>(device)?.into()), &x_sol, RTOL)
        };
        row("jacobi, not stored", 0.0, &not_stored(device)?, Some(&not_stored(host)?));
    }
    Ok(())
}

fn preconditioner(name: &str, device: &Device, a: &Csr<f64>) -> Result<SharedOperator<f64>> {
    Ok(name.parse::<Preconditioner>()?.build(device, a)?.operator)
}

/// Large systems whose matrix is not stored.
fn large(setting: &Setting, unknowns: usize) -> Result<()> {
    let device = &setting.device;
    for degree in [1, 2, 4, 6, 8] {
        let clock = Instant::now();
        let space = cube(unknowns, degree, false)?;
        let operator = space.operator::<f64>(device)?;
        let jacobi = space.jacobi::<f64>(device)?;
        let (set_up, held) = (clock.elapsed().as_secs_f64(), operator.bytes());
        let found = solve(operator.shared(), Some(jacobi.into()), &solution(space.len()), 1e-6)?;
        setting.row(&json!({
            "p": degree, "unknowns": space.len(), "set-up s": set_up, "iterations": found.report.iterations,
            "stop": format!("{:?}", found.report.stop), "solve s": found.seconds,
            "us / iteration": found.seconds * 1e6 / found.report.iterations.max(1) as f64, "MiB": held as f64 / f64::from(1 << 20),
            "distance": found.distance,
        }));
    }
    Ok(())
}
