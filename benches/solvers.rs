//! Time per iteration of the solvers, with the bytes each must move and the share of the copy bandwidth reached.
//!
//! `cargo bench --bench solvers -- [--device WORDS] [--work-group N] [--resident N] [--sides N,N]
//! [--system NAME [--images N]] [--only cg|cgnr|gmres] [--packing auto|always|never] [--quick] [--json]`: a row per case. Every
//! answer is verified (its true residual is recomputed) before its time is printed. `--system` names another matrix of the gallery
//! for CGNR.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::unwrap_used, clippy::expect_used)]

mod common;
#[path = "../examples/papers/readings.rs"]
mod readings;

use std::time::Instant;

use common::Setting;
use readings::{no_more_than_0, readings};
use residuum::sparse::gallery;
use residuum::{
    Columns, Csr, Format, Matrix, Method, Real, Report, Result, Setup, Solver, Stopping, Storage, Transposed,
    Vector,
};
use serde_json::json;

fn main() -> std::process::ExitCode {
    common::main("solvers", include_str!("solvers.rs"), run)
}

fn run(setting: &Setting) -> Result<()> {
    let quick = setting.flag("--quick");
    if setting.wanted("cgnr") {
        let systems = match setting.text("--system") {
            Some(name) => vec![(name, setting.number("--images")?.unwrap_or(1))],
            None => ["stock-koch", "stock-koch-full"]
                .into_iter()
                .flat_map(|name| [1, 4, 40].map(|n| (name, n)))
                .collect(),
        };
        for (system, images) in systems {
            stock_koch(setting, system, images)?;
        }
    }
    if setting.wanted("cg") {
        let all = if quick { vec![1024] } else { vec![64, 256, 512, 1024, 2048, 4096] };
        for side in setting.numbers("--sides")?.unwrap_or(all) {
            for format in [Format::Csr, Format::Dia] {
                poisson::<f64>(setting, side, format, "cg")?;
                if !quick {
                    poisson::<f32>(setting, side, format, "cg")?;
                }
            }
        }
    }
    if setting.wanted("gmres") {
        let all = if quick { vec![512] } else { vec![64, 256, 1024, 2048] };
        for side in setting.numbers("--sides")?.unwrap_or(all) {
            poisson::<f64>(setting, side, Format::Csr, "gmres")?;
            if !quick {
                poisson::<f32>(setting, side, Format::Csr, "gmres")?;
            }
        }
    }
    Ok(())
}

/// Median and spread of the time per iteration over five solves, after one to warm up.
fn measure(mut solve: impl FnMut() -> Result<Report>) -> Result<(f64, f64, Report)> {
    let mut report = solve()?;
    let mut times = Vec::new();
    for _ in 0..5 {
        report = solve()?;
        times.push(report.times.solve / report.iterations.max(1) as f64 * 1e6);
    }
    times.sort_by(f64::total_cmp);
    Ok((times[2], times[4] - times[0], report))
}

/// Directions that GMRES keeps.
const RESTART: usize = 30;

/// CG or GMRES.
fn poisson<T: Real>(setting: &Setting, side: usize, format: Format, method: &str) -> Result<()> {
    let (device, copy) = (&setting.device, setting.copy);
    let a: Csr<T> = gallery::poisson_2d(side, 0.01)?;
    let n = a.rows();
    let storage = Storage::default().with_format(format).with_packing(setting.packing()?);
    let matrix = Matrix::stored(device, &a, storage)?;
    let mut random = gallery::Random::new(7);
    let b: Vec<T> = (0..n).map(|_| T::from_f64(random.uniform())).collect();
    let b = Vector::from_slice(device, &b)?;
    let mut x = Vector::zeros(device, n)?;
    let iterations = if method == "gmres" {
        4 * RESTART
    } else if side >= 2048 {
        100
    } else {
        300
    };
    let stopping = Stopping::after(iterations);
    let solved_by = if method == "gmres" { Method::Gmres { restart: RESTART } } else { Method::Cg };
    let mut solver = Solver::new(&matrix, solved_by, stopping)?;
    let (us, spread, report) = measure(|| {
        x.fill(T::default())?;
        solver.solve(&b, &mut x)
    })?;
    let size = T::PRECISION.bytes();
    // GMRES reads its directions, half of them in the mean, three times.
    let vectors = if method == "gmres" { 3.0 * (RESTART + 1) as f64 / 2.0 + 8.0 } else { 7.0 };
    let bytes = matrix.product_bytes() as f64 + vectors * (n * size) as f64;
    let gbps = bytes / us / 1e3;
    setting.row(&json!({
        "method": method, "problem": format!("poisson {side}x{side}"), "n": n, "nnz": a.nnz(),
        "precision": T::PRECISION.to_string(), "format": format.to_string(), "why": matrix.why(),
        "tuning": report.tuning,
        "iterations": report.iterations, "us_per_iteration": us, "spread_us": spread, "bytes": bytes,
        "gbps": gbps, "copy_share": gbps / copy, "launches_per_iteration": report.launches_per_iteration,
        "relative_residual": report.relative_residual(), "stop": format!("{:?}", report.stop),
    }));
    Ok(())
}

/// A system of stock-koch-2009, few readings and many unknowns: 3 072 x 81 545 with 854 129 entries, or 3 000 x 320 000 with 1 800 000;
/// 400 iterations with their F, for any number of images, up to 4 of them at once. Their budget is 0.44 s for four.
fn stock_koch(setting: &Setting, system: &str, images: usize) -> Result<()> {
    let (device, copy, columns) = (&setting.device, setting.copy, images.clamp(1, 4));
    let a: Csr<f32> = gallery::by_name(system)?;
    let storage = Storage::default().with_transposed(Transposed::Copy).with_packing(setting.packing()?);
    let matrix = Matrix::stored(device, &a, storage)?;
    let readings = readings(a.rows(), images);
    let sign = no_more_than_0(&matrix);
    let setup = Setup::new(Method::Cgnr, Stopping::after(400)).with_columns(columns).with_regularizations(&[sign]);
    let mut solver = Solver::with(&matrix, setup)?;
    let mut x = Columns::zeros(device, a.cols(), columns)?;
    let mut b = Columns::zeros(device, a.rows(), columns)?;
    // Places that are left over are filled with the first images again.
    let batches: Vec<Vec<&[f32]>> = (0..images.div_ceil(columns))
        .map(|k| (0..columns).map(|c| &readings[(k * columns + c) % images][..]).collect())
        .collect();
    let mut wall = f64::INFINITY;
    let (us, spread, report) = measure(|| {
        let (clock, mut seconds, mut last) = (Instant::now(), 0.0, None);
        for batch in &batches {
            b.write(batch)?;
            x.fill(0.0)?;
            let report = solver.solve_many(&b, &mut x)?.remove(0);
            let _answers = x.to_vecs()?;
            seconds += report.times.solve;
            last = Some(report);
        }
        wall = wall.min(clock.elapsed().as_secs_f64());
        let mut report = last.expect("an image at least");
        report.times.solve = seconds / batches.len() as f64;
        Ok(report)
    })?;
    let (m, n) = (a.rows(), a.cols());
    let products = matrix.product_bytes() + matrix.transposed_product_bytes();
    let bytes = products as f64 + (4 * columns * (4 * m + 9 * n)) as f64 - (8 * (m + n)) as f64;
    let gbps = bytes / us / 1e3;
    let theirs = (images == 4).then_some(440.0);
    setting.row(&json!({
        "method": "cgnr", "problem": system, "rows": m, "cols": n, "nnz": a.nnz(), "images": images, "columns": columns,
        "precision": "fp32", "format": report.format.to_string(), "why": matrix.why(), "tuning": report.tuning,
        "iterations": report.iterations, "us_per_iteration": us, "spread_us": spread,
        "milliseconds_from_readings_to_images": wall * 1e3, "milliseconds_per_image": wall * 1e3 / images as f64,
        "theirs_milliseconds": theirs, "bytes": bytes, "gbps": gbps, "copy_share": gbps / copy,
        "launches_per_iteration": report.launches_per_iteration,
        "relative_residual": report.relative_residual(), "stop": format!("{:?}", report.stop),
    }));
    Ok(())
}
