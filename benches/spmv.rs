//! Products on grids, matrices of files, stencils and scanners, each result verified before it is timed.
//!
//! `cargo bench --bench spmv -- [--device WORDS] [--work-group N] [--only poisson|stencil|projector|files] [--data DIR]
//! [--precision fp32|fp64] [--packing auto|always|never] [--quick] [--json]`:
//! a row per case; `--json` prints lines of JSON; `--data` names a folder of Matrix Market files. For a matrix of your own: `cargo run --release --example spmv`.
#![allow(clippy::print_stdout, clippy::print_stderr)]

#[path = "../examples/spmv/case.rs"]
mod case;
mod common;
#[allow(dead_code)] // not every program has all of it
#[path = "../examples/papers/timing.rs"]
mod timing;

use std::path::Path;

use case::{Product, measure};
use common::Setting;
use common::peer::scipy;
use residuum::imaging::{Beam, Grid, Scanner};
use residuum::measure::time;
use residuum::operator::{LinearOperator, Stencil, adjoint_error};
use residuum::sparse::gallery;
use residuum::{Csr, Error, Format, Matrix, Method, Real, Result, Solver, Stopping, Storage, Vector, io};
use serde_json::json;
use timing::iteration_ms;

fn main() -> std::process::ExitCode {
    common::main("spmv", include_str!("spmv.rs"), run)
}

fn run(setting: &Setting) -> Result<()> {
    if setting.wanted("poisson") {
        let sides = if setting.flag("--quick") { vec![1024] } else { vec![64, 512, 1024, 2048, 4096] };
        for side in sides {
            let formats = [Format::CsrScalar, Format::Sell { sigma: 0 }, Format::Dia];
            formats_of(setting, &format!("poisson2d:{side}"), &gallery::poisson_2d::<f64>(side, 0.0)?, &formats)?;
            formats_of(setting, &format!("poisson2d:{side}"), &gallery::poisson_2d::<f32>(side, 0.0)?, &formats)?;
        }
    }
    if let Some(folder) = setting.text("--data").filter(|_| setting.wanted("files")) {
        files(setting, Path::new(folder))?;
    }
    if setting.wanted("stencil") {
        for side in [1024, 4096] {
            stencil::<f64>(setting, &Stencil::laplacian_2d(side, side)?)?;
            stencil::<f32>(setting, &Stencil::laplacian_2d(side, side)?)?;
        }
        stencil::<f64>(setting, &Stencil::laplacian_3d(256, 256, 256)?)?;
        stencil::<f32>(setting, &Stencil::laplacian_3d(256, 256, 256)?)?;
    }
    if setting.wanted("projector") {
        // The last one has as many readings as the system of stock-koch-2009, and nearly as many pixels.
        for (side, angles, pixels) in [(512, 721, 560), (64, 96, 96), (286, 48, 64)] {
            projector::<f32>(setting, side, angles, pixels)?;
            projector::<f64>(setting, side, angles, pixels)?;
        }
    }
    Ok(())
}

fn formats_of<T: Real>(setting: &Setting, name: &str, a: &Csr<T>, formats: &[Format]) -> Result<()> {
    for format in formats {
        let storage = Storage::default().with_format(*format).with_packing(setting.packing()?);
        setting.row(&measure(&setting.device, name, a, storage, Product::Forward, setting.copy)?.json());
    }
    Ok(())
}

/// Least entries of a file's matrix whose product is worth a time.
const SMALLEST: usize = 10_000;

/// Every Matrix Market file of a folder in every format that takes no more than three times the bytes of CSR, beside SciPy; in fp64,
/// or with `--precision fp32`.
fn files(setting: &Setting, folder: &Path) -> Result<()> {
    for (name, path) in common::matrix_files(folder)? {
        let a = io::read_matrix::<f64>(&path, &mut |_, _| {})?;
        if a.nnz() < SMALLEST {
            continue;
        }
        match setting.text("--precision") {
            Some("fp32") => file(setting, &name, &a.cast::<f32>())?,
            _ => file(setting, &name, &a)?,
        }
    }
    Ok(())
}

/// One matrix: lines for its formats, then one that says how the automatic choice compares.
fn file<T: Real>(setting: &Setting, name: &str, a: &Csr<T>) -> Result<()> {
    let peer = scipy(setting, a, "product")?;
    let csr = a.stored_bytes(&[Format::Csr])[0];
    let chosen = Matrix::new(&setting.device, a, Format::Auto)?.format().to_string();
    let mut times = Vec::new();
    for (format, bytes) in Format::ALL.iter().zip(a.stored_bytes(Format::ALL)) {
        if bytes > 3 * csr {
            continue;
        }
        let storage = Storage::default().with_format(*format).with_packing(setting.packing()?);
        let mut row = measure(&setting.device, name, a, storage, Product::Forward, setting.copy)?;
        row.chosen = row.format == chosen;
        setting.row(&row.json());
        times.push((row.microseconds, row.format));
    }
    let missing =
        || Error::Option { name: "format", reason: format!("{chosen}, which was chosen, was not measured") };
    let chosen_us = times.iter().find(|time| time.1 == chosen).ok_or_else(missing)?.0;
    let (best_us, best) = times.iter().min_by(|a, b| a.0.total_cmp(&b.0)).ok_or_else(missing)?;
    setting.row(&json!({
        "matrix": name, "nnz": a.nnz(), "precision": T::PRECISION.to_string(), "chosen": chosen,
        "chosen_us": chosen_us, "best": best, "best_us": best_us, "of_best": chosen_us / best_us,
        "peer_us": peer, "of_peer": peer.map(|us| chosen_us / us),
    }));
    Ok(())
}

/// A Laplacian that is not stored: its product, and an iteration of conjugate gradients.
fn stencil<T: Real>(setting: &Setting, stencil: &Stencil) -> Result<()> {
    let (device, copy) = (&setting.device, setting.copy);
    let a = stencil.operator::<T>(device)?;
    let x = Vector::filled(device, a.cols(), T::from_f64(1.0))?;
    let mut y = Vector::zeros(device, a.rows())?;
    let product = time(device, || a.multiply(&x, &mut y))?;
    let mut solver = Solver::new(&a, Method::Cg, Stopping::after(100))?;
    let cg = 1e3
        * iteration_ms(|| {
            y.fill(T::default())?;
            solver.solve(&x, &mut y)
        })?;
    let vector = a.rows() * T::PRECISION.bytes();
    let share = |vectors: usize, us: f64| (vectors * vector) as f64 / us / 1e3 / copy;
    setting.row(&json!({
        "stencil": format!("{} points, {} rows", a.nnz().div_ceil(a.rows()), a.rows()), "precision": T::PRECISION.to_string(),
        "product_us": product.microseconds, "bytes": 2 * vector, "copy_share": share(2, product.microseconds),
        "cg_iteration_us": cg, "cg_bytes": 9 * vector, "cg_copy_share": share(9, cg),
    }));
    Ok(())
}

/// A scan traced as it is needed: forward, adjoint, and the test that they are adjoint.
fn projector<T: Real>(setting: &Setting, side: usize, angles: usize, pixels: usize) -> Result<()> {
    let device = &setting.device;
    let beam = Beam::Fan { source_origin: 4.0 * side as f64, source_detector: 5.0 * side as f64 };
    let angles = (0..angles).map(|k| 360.0 * k as f64 / angles as f64).collect();
    let scanner = Scanner { beam, pixels, pitch: 1.6 * side as f64 / pixels as f64, offset: 0.0, angles };
    let grid = Grid { side, pixel: 1.0 };
    let a = scanner.projector::<T>(device, grid)?;
    let mut random = gallery::Random::new(3);
    let mut noise = |n: usize| -> Vec<T> { (0..n).map(|_| T::from_f64(random.uniform())).collect() };
    let mut x = Vector::from_slice(device, &noise(a.cols()))?;
    let y = Vector::from_slice(device, &noise(a.rows()))?;
    let (mut ax, mut aty) = (Vector::zeros(device, a.rows())?, Vector::zeros(device, a.cols())?);
    let adjoint = adjoint_error(&a, 3)?;
    let forward = time(device, || a.apply(&x, &mut ax))?;
    let backward = time(device, || a.apply_adjoint(&y, &mut aty))?;
    let mut solver = Solver::new(&a, Method::Cgnr, Stopping::after(50))?;
    let cgnr = 1e3
        * iteration_ms(|| {
            x.fill(T::default())?;
            solver.solve(&y, &mut x)
        })?;
    setting.row(&json!({
        "projector (on the fly)": format!("{side} x {side} from {} x {pixels}", a.rows() / pixels), "nnz": a.nnz(),
        "precision": T::PRECISION.to_string(), "work_group": device.tuning().work_group,
        "forward_us": forward.microseconds, "adjoint_us": backward.microseconds,
        "both_us": forward.microseconds + backward.microseconds, "cgnr_iteration_us": cgnr,
        "adjoint_error": adjoint,
    }));
    Ok(())
}
