//! oses-2013: systems of an hp finite-element code, `b = A x_sol`, by conjugate gradients in fp64 to 1e-6 (5.4), on the unit cube.

use residuum::fem::{Mesh, Space};
use residuum::operator::{LinearOperator, SharedOperator};
use residuum::precond::Preconditioner;
use residuum::{Csr, Device, Format, Matrix, Result, Stopping};
use serde_json::{Value, json};

use crate::known::{Solved, solution, solve};
use crate::timing::from_memory;
use crate::{Setting, attempt};

pub(crate) const TABLES: &[&str] = &["5.4", "transfer"];

/// Tolerance: "moderate" in the thesis.
const RTOL: f64 = 1e-6;

/// Dimension that static memory allowed (6).
const LIMIT: usize = 40_000;

/// Preconditioners that are tried on the stored matrix; the thesis has Jacobi and SSOR.
const TRIED: [&str; 6] = ["jacobi", "ssor", "chebyshev=4", "fsai", "adaptive-fsai", "sainv=0.1"];

pub(crate) fn tables(setting: &Setting) -> Result<()> {
    // Unknowns are as many for each: 35 cells along a side for p = 1, 7 for 5, 5 for 7; the others are near it.
    for degree in (1..=8).filter(|_| setting.wants("5.4")) {
        attempt(setting, &format!("5.4, p = {degree}"), degree_of(setting, degree));
    }
    for cells in [6, 11, 16, 23, 35, 50, 80].into_iter().filter(|_| setting.wants("transfer")) {
        attempt(setting, &format!("transfer, {cells}^3 cells"), transfer(setting, cells));
    }
    Ok(())
}

/// The unit cube of `cells` along a side.
fn cube(cells: usize, degree: usize) -> Result<Space> {
    let mut mesh = Mesh::boxes([cells; 3], [[0.0, 1.0]; 3])?;
    mesh.set_degree(degree)?;
    Space::new(&mesh)
}

fn stored(device: &Device, a: &Csr<f64>) -> Result<SharedOperator<f64>> {
    Ok(Matrix::new(device, a, Format::Auto)?.into())
}

/// Iterations, and seconds of the solve.
fn cell(outcome: Result<Solved>) -> Value {
    match outcome {
        Ok(Solved { report, seconds, distance }) => {
            let ending = if report.converged() { String::new() } else { format!(", {:?}", report.stop) };
            json!(format!("{} / {:.2} ms (off by {distance:.0e}{ending})", report.iterations, 1e3 * seconds))
        }
        Err(error) => json!(format!("none: {error}")),
    }
}

/// One degree: without a preconditioner and with each that is tried, and without a stored matrix.
fn degree_of(setting: &Setting, degree: usize) -> Result<()> {
    let cells = (((LIMIT as f64).cbrt() + 1.0) / degree as f64).round() as usize;
    let space = cube(cells, degree)?;
    let (x_sol, a) = (solution(space.len()), space.matrix()?);
    let row = |with: &str, of: &dyn Fn(&Device) -> Result<Solved>| {
        let mut row = json!({
            "table": "5.4", "p": degree, "unknowns": space.len(), "entries": a.nnz(), "with": with,
            "oses_iterations": if with == "none" { json!("below 4000") } else { Value::Null },
            "oses_host_over_device": if with == "none" { json!("2 to 3") } else { Value::Null },
        });
        let mut seconds = Vec::new();
        for (place, device) in setting.devices() {
            let found = of(device);
            seconds.extend(found.as_ref().ok().map(|found| found.seconds));
            row[place] = cell(found);
        }
        if let [host, device] = seconds[..] {
            row["host_over_device"] = json!(host / device);
        }
        setting.row(&row);
    };
    row("none", &|device| solve(stored(device, &a)?, None, &x_sol, RTOL));
    for name in TRIED {
        row(name, &|device| {
            let which: Preconditioner = name.parse()?;
            solve(stored(device, &a)?, Some(which.build(device, &a)?.operator), &x_sol, RTOL)
        });
    }
    row("jacobi, not stored", &|device| {
        let jacobi = space.jacobi::<f64>(device)?;
        solve(space.operator::<f64>(device)?.shared(), Some(jacobi.into()), &x_sol, RTOL)
    });
    Ok(())
}

/// Chapter 6: at some thousands of unknowns there is no gain, because of copying. Milliseconds from the matrix and the right-hand side in memory to
/// the answer, p = 1.
fn transfer(setting: &Setting, cells: usize) -> Result<()> {
    let a = cube(cells, 1)?.matrix()?;
    let b = a.product(&solution(a.rows()))?;
    let mut row = json!({"table": "transfer", "unknowns": a.rows(), "entries": a.nnz()});
    for (place, device) in setting.devices() {
        let stopping = Stopping::for_precision::<f64>().with_rtol(RTOL);
        let found = from_memory(device, &a, &b, stopping)?;
        row["iterations"] = json!(found.iterations);
        row[format!("{place}_ms")] = json!(found.ms);
        row[format!("{place}_solve_ms")] = json!(found.solve_ms);
    }
    setting.row(&row);
    Ok(())
}
