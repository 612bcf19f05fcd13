//! The main job: an iteration of CGNR for the matrix of a scan, stored and traced, beside SciPy's CGLS on the same matrix.
//!
//! `cargo bench --bench scan -- [--device WORDS] [--angles 81] [--pixels 560] [--side 256] [--formats auto,csr-scalar,on-the-fly]
//! [--precision fp32|fp64] [--alone] [--methods [--iterations N]]`:
//! a row per case (`--json`: a line of JSON; `over_iterations_ms`: of a frame but the first, what is not iterations; `fbp_ms`: a
//! filtered back-projection from readings to pixels on the host), after one of SciPy (a thread; where `python3` has it; not with `--alone`). The scanner is that of the Helsinki tomography
//! challenge 2022; without options the size is that of its scans of 40 degrees. With `--methods` instead: an iteration of each method for
//! images in `f32` beside that of CGNR (with total variation beside that of CGNR with it), and beside the two products alone.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod common;

use std::ops::ControlFlow;
use std::time::Instant;

use common::Setting;
use common::peer::scipy;
use residuum::imaging::{Beam, Fbp, Filter, Grid, Reconstruction, Reconstructor, Scanner, System};
use residuum::{Format, Method, Real, Regularization, Result, Setup, Solver, Stopping, Vector, measure};
use serde_json::json;

fn main() -> std::process::ExitCode {
    common::main("scan", include_str!("scan.rs"), run)
}

/// Iterations of a solve.
const ITERATIONS: usize = 20;

fn run(setting: &Setting) -> Result<()> {
    let size = |name, usual| setting.number(name).map(|n| n.unwrap_or(usual));
    let (angles, pixels, side) = (size("--angles", 81)?, size("--pixels", 560)?, size("--side", 256)?);
    let beam = Beam::Fan { source_origin: 410.66, source_detector: 553.74 };
    let angles = (0..angles).map(|k| 0.5 * k as f64).collect();
    let scanner = Scanner { beam, pixels, pitch: 0.2, offset: 0.0, angles };
    let grid = Grid { side, pixel: scanner.field() / side as f64 };
    if setting.flag("--methods") {
        return methods(setting, &scanner, grid);
    }
    let formats = match setting.text("--formats") {
        None => vec![Format::Auto, Format::CsrScalar, Format::OnTheFly],
        Some(names) => names.split(',').map(str::parse).collect::<Result<_>>()?,
    };
    for (name, wanted) in [("fp32", true), ("fp64", setting.device.info().fp64)] {
        if wanted && setting.text("--precision").is_none_or(|only| only == name) {
            match name {
                "fp32" => precision::<f32>(setting, &scanner, grid, &formats)?,
                _ => precision::<f64>(setting, &scanner, grid, &formats)?,
            }
        }
    }
    Ok(())
}

fn precision<T: Real>(setting: &Setting, scanner: &Scanner, grid: Grid, formats: &[Format]) -> Result<()> {
    let peer = if setting.flag("--alone") { None } else { scipy::<T>(setting, &scanner.matrix(grid)?, "cgls")? };
    for format in formats {
        case::<T>(setting, scanner, grid, *format, peer)?;
    }
    Ok(())
}

/// Least and greatest milliseconds of an iteration over five solves, after one to warm up.
fn fastest(mut solve: impl FnMut() -> Result<f64>) -> Result<[f64; 2]> {
    solve()?;
    let mut found = [f64::INFINITY, 0.0];
    for _ in 0..5 {
        let ms = 1e3 * solve()?;
        found = [found[0].min(ms), found[1].max(ms)];
    }
    Ok(found)
}

fn case<T: Real>(
    setting: &Setting,
    scanner: &Scanner,
    grid: Grid,
    format: Format,
    peer: Option<f64>,
) -> Result<()> {
    let (device, copy) = (&setting.device, setting.copy);
    let system: System<T> = System::new(device, scanner, grid, format)?;
    let a = system.operator();
    let entries = system.entries().unwrap_or(0);
    let mut x = Vector::filled(device, a.cols(), T::from_f64(1.0))?;
    let mut b = Vector::zeros(device, a.rows())?;
    a.apply(&x, &mut b)?;
    let readings = b.to_vec()?;
    let forward = measure::time(device, || a.apply(&x, &mut b))?.microseconds;
    let mut image = Vector::zeros(device, a.cols())?;
    let back = measure::time(device, || a.apply_adjoint(&b, &mut image))?.microseconds;
    let stopping = Stopping::after(ITERATIONS).with_rtol(0.0);
    let mut solver = Solver::with(a.clone(), Setup::new(Method::Cgnr, stopping.clone()))?;
    let plain = fastest(|| {
        x.fill(T::default())?;
        let report = solver.solve(&b, &mut x)?;
        Ok(report.times.solve / report.iterations.max(1) as f64)
    })?;
    let how = Reconstruction::of_scans::<T>().with_stopping(stopping);
    let mut reconstructor = Reconstructor::new(&system, how.clone(), 1)?;
    let regularised = fastest(|| {
        let image = reconstructor.reconstruct_readings(&[&readings], &mut |_| ControlFlow::Continue(()))?.remove(0);
        Ok(image.report.times.solve / image.report.iterations.max(1) as f64)
    })?;
    // Milliseconds of a whole frame by so many iterations, but the first.
    let frame = |iterations: usize| {
        let stopping = how.stopping.clone().with_max_iterations(iterations);
        let mut reconstructor = Reconstructor::new(&system, how.clone().with_stopping(stopping), 1)?;
        fastest(|| {
            let clock = Instant::now();
            let _ = reconstructor.reconstruct_readings(&[&readings], &mut |_| ControlFlow::Continue(()))?;
            Ok(clock.elapsed().as_secs_f64())
        })
    };
    let (short, long) = (frame(ITERATIONS)?[0], frame(2 * ITERATIONS)?[0]);
    let mut fbp = Fbp::<T>::new(device, scanner, grid, Filter::RamLak)?;
    let back_projection = fastest(|| {
        let clock = Instant::now();
        let _ = fbp.reconstruct(&readings)?;
        Ok(clock.elapsed().as_secs_f64())
    })?;
    let stored = if format == Format::OnTheFly { 0 } else { 2 * entries * (4 + T::PRECISION.bytes()) };
    let bytes = (stored + T::PRECISION.bytes() * (4 * a.rows() + 9 * a.cols())) as f64;
    setting.row(&json!({
        "problem": format!("{} x {} readings to {}x{}", scanner.angles.len(), scanner.pixels, grid.side, grid.side),
        "precision": T::PRECISION.to_string(), "nnz": entries, "format": system.format().to_string(), "asked": format.to_string(),
        "ms_per_iteration": plain[0], "most_ms": plain[1], "regularised_ms": regularised[0],
        "frame_ms": short, "over_iterations_ms": 2.0 * short - long, "fbp_ms": back_projection[0],
        "forward_us": forward, "back_us": back, "bytes": bytes, "copy_share": bytes / plain[0] / 1e6 / copy,
        "peer_ms": peer.map(|us| us / 1e3), "of_peer": peer.map(|us| plain[0] / (us / 1e3)),
    }));
    Ok(())
}

/// Vectors of rows and of columns that an iteration reads or writes beside its products.
fn vectors(method: Method, variation: bool, subsets: usize) -> [usize; 2] {
    match method {
        Method::Cgnr => [2, 7],
        Method::Fista => [5, 9],
        Method::Pdhg if variation => [6, 17],
        Method::Pdhg => [6, 7],
        Method::Sirt { .. } => [4, 8],
        Method::Sart { .. } => [4, 7 * subsets + 2],
        Method::Mrnsd => [3, 15],
        Method::Mlem => [6, 14],
        // Half a cycle of directions in the mean.
        Method::Nnfcgls { restart } => [7 + restart, 29 + restart / 2],
        _ => [0, 0],
    }
}

/// Every method for images, with bounds that each of them keeps.
fn methods(setting: &Setting, scanner: &Scanner, grid: Grid) -> Result<()> {
    let device = &setting.device;
    let many = setting.number("--iterations")?.unwrap_or(100);
    let format = setting.text("--formats").map_or(Ok(Format::Auto), str::parse)?;
    let system: System<f32> = System::new(device, scanner, grid, format)?;
    let a = system.operator();
    // Something that no constant is.
    let picture: Vec<f32> = (0..a.cols()).map(|i| (0.3 + (0.37 * i as f64).sin()).max(0.0) as f32).collect();
    let mut x = Vector::from_slice(device, &picture)?;
    let mut b = Vector::zeros(device, a.rows())?;
    a.apply(&x, &mut b)?;
    let mut image = Vector::zeros(device, a.cols())?;
    let forward = measure::time(device, || a.apply(&x, &mut b))?.microseconds;
    let back = measure::time(device, || a.apply_adjoint(&b, &mut image))?.microseconds;
    let of_matrix = system.matrix().map(|a| a.product_bytes() + a.transposed_product_bytes());
    let products = of_matrix
        .or_else(|| Some(system.projector()?.product_bytes() + system.projector()?.transposed_product_bytes()));
    let products = products.unwrap_or(0) as f64;
    let (above, none) = (Regularization::none().with_lower(0.0), Regularization::none());
    let variation = above.clone().with_variation(1.0).with_width(grid.side);
    let smoothed = variation.clone().with_epsilon(0.01);
    let cases = [
        (Method::Cgnr, &none, 1),
        (Method::Fista, &above, 1),
        (Method::Pdhg, &above, 1),
        (Method::Cgnr, &smoothed, 1),
        (Method::Pdhg, &variation, 1),
        (Method::Sirt { omega: 1.0 }, &above, 1),
        (Method::Sart { omega: 1.0 }, &above, scanner.angles.len().div_ceil(10)),
        (Method::Sart { omega: 1.0 }, &above, scanner.angles.len()),
        (Method::Mrnsd, &above, 1),
        (Method::Mlem, &above, 1),
        (Method::Nnfcgls { restart: 30 }, &above, 1),
    ];
    // Without and with total variation.
    let mut of_cgnr = [None; 2];
    for (method, regularization, subsets) in cases {
        let setup = Setup::new(method, Stopping::after(many.div_ceil(subsets)).with_rtol(0.0));
        let in_subsets = match subsets {
            1 => None,
            count => Some(System::<f32>::of_subsets(device, scanner, grid, format, count)?),
        };
        let operator = in_subsets.as_ref().unwrap_or(&system).operator().clone();
        let mut solver = Solver::with(operator, setup.with_regularizations(std::slice::from_ref(regularization)))?;
        let (mut launches, mut done) = (0, 0);
        let [ms, most] = fastest(|| {
            x.fill(0.0)?;
            let report = solver.solve(&b, &mut x)?;
            (launches, done) = (report.launches_per_iteration, report.iterations);
            Ok(report.times.solve / report.iterations.max(1) as f64)
        })?;
        let varied = regularization.variation > 0.0;
        let [rows, cols] = vectors(method, varied, subsets);
        // Each product with a subset reads or writes the whole image.
        let more = 2 * (subsets - 1) * 4 * a.cols();
        let bytes = products + more as f64 + (4 * (rows * a.rows() + cols * a.cols())) as f64;
        let cgnr = *of_cgnr[usize::from(varied)].get_or_insert(ms);
        setting.row(&json!({
            "problem": format!("{} x {}, {} entries, {}", a.rows(), a.cols(), system.entries().unwrap_or(0), system.format()),
            "method": format!("{method}{}", if varied { " with total variation" } else { "" }), "subsets": subsets,
            "iterations": done, "us_per_iteration": 1e3 * ms, "most_us": 1e3 * most, "of_cgnr": ms / cgnr,
            "products_us": forward + back, "launches": launches, "bytes": bytes,
            "copy_share": bytes / ms / 1e6 / setting.copy,
        }));
    }
    Ok(())
}
