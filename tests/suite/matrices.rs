//! Matrices of real problems, from a folder that `RESIDUUM_DATA` names (Matrix Market files, as their publishers give
//! them): whatever the end, the report tells the truth. With `--nocapture` it prints the tables. Says so when skipped.

use std::path::PathBuf;
use std::time::Duration;

use residuum::precond::{Preconditioner, RowOrdering, SweepOptions};
use residuum::{
    Advice, Csr, Device, Examination, Format, Matrix, Method, Real, Report, Setup, Solver, Stop, Stopping, Vector,
    io,
};

/// The matrices of the folder: no right-hand sides.
fn files() -> Vec<PathBuf> {
    let Some(folder) = std::env::var_os("RESIDUUM_DATA").filter(|folder| !folder.is_empty()) else {
        println!("skipped: RESIDUUM_DATA names no folder of matrices");
        return Vec::new();
    };
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("RESIDUUM_DATA is a folder").map(|f| f.unwrap().path()).collect();
    files.retain(|f| f.to_string_lossy().ends_with(".mtx.gz") && !f.to_string_lossy().contains("rhs"));
    files.sort();
    assert!(!files.is_empty(), "RESIDUUM_DATA holds no .mtx.gz");
    files
}

fn device() -> Device {
    Device::best().expect("a device")
}

struct Solved {
    report: Report,
    /// `|b - Ax| / |b|`, formed on the host in double precision.
    residual: f64,
    /// `|x - 1| / |1|`
    error: f64,
}

/// Solves for the right-hand side A times ones, and holds the report to its word.
fn solve<T: Real>(
    name: &str,
    a: &Csr<T>,
    method: Method,
    with: Option<Preconditioner>,
    stopping: &Stopping,
) -> Solved {
    let device = device();
    let ones = vec![1.0; a.cols()];
    let rhs: Vec<T> = a.product(&ones).unwrap().iter().map(|v| T::from_f64(*v)).collect();
    let b = Vector::from_slice(&device, &rhs).unwrap();
    let matrix = Matrix::with_transpose(&device, a, Format::Auto).unwrap();
    let mut setup = Setup::new(method, stopping.clone());
    setup.preconditioner = with.map(|which| which.build(&device, a).unwrap().into());
    let mut x = Vector::zeros(&device, a.cols()).unwrap();
    let report = Solver::with(&matrix, setup).unwrap().solve(&b, &mut x).unwrap();
    let x: Vec<f64> = x.to_vec().unwrap().iter().map(|v| v.to_f64()).collect();
    let norm = |v: &mut dyn Iterator<Item = f64>| v.map(|v| v * v).sum::<f64>().sqrt();
    let product = a.product(&x).unwrap();
    let b_norm = norm(&mut rhs.iter().map(|v| v.to_f64()));
    let residual = norm(&mut rhs.iter().zip(&product).map(|(b, p)| b.to_f64() - p));
    assert!(x.iter().all(|v| v.is_finite()), "{name}: an answer with numbers that are none: {report}");
    // Residuals of the library are rounded once to T.
    assert!(
        (residual - report.true_residual).abs() <= 1e-5 * residual + 4.0 * T::EPSILON * b_norm,
        "{name}: {residual:e} is not what it says: {report}"
    );
    if report.stop == Stop::Converged {
        assert!(residual <= (stopping.rtol * b_norm).max(stopping.atol) * (1.0 + 1e-5), "{name}: {report}");
    }
    let error = norm(&mut x.iter().map(|v| v - 1.0)) / (x.len() as f64).sqrt();
    Solved { report, residual: residual / b_norm, error }
}

fn stopping<T: Real>(iterations: usize) -> Stopping {
    Stopping::for_precision::<T>().with_max_iterations(iterations).with_time_limit(Duration::from_secs(60))
}

/// `D^-1/2 A D^-1/2`, D the 2-norms of the columns (dedecek-2013, 7.1.1).
fn scaled(a: &Csr<f64>) -> Csr<f64> {
    let root: Vec<f64> = a.column_norms().iter().map(|n| if *n > 0.0 { n.sqrt().recip() } else { 1.0 }).collect();
    a.scaled(&root, &root).unwrap()
}

fn row(solved: &Solved) -> String {
    let stop = format!("{:?}", solved.report.stop);
    format!("{:>6} {stop:<14} {:.1e} {:.1e}", solved.report.iterations, solved.residual, solved.error)
}

#[test]
fn definite_matrices() {
    println!("CG without preconditioner, scaled, b = A ones, on {}", device().info().name);
    println!(
        "{:<12} {:>6} {:>8}  fp64: its stop |r|/|b| error | fp32 | rtol 1e-5, 1000 its, fp32",
        "matrix", "n", "nnz"
    );
    for path in files() {
        let name = path.file_name().unwrap().to_string_lossy().replace(".mtx.gz", "");
        let a: Csr<f64> = io::read_matrix(&path, &mut |_, _| ()).unwrap();
        if a.rows() != a.cols() || a != a.transpose() || a.diagonal().iter().any(|d| *d <= 0.0) {
            continue;
        }
        let a = scaled(&a);
        let found = Examination::of(&a).unwrap();
        let double = solve(&name, &a, Method::Cg, None, &stopping::<f64>(10_000));
        let single = a.cast::<f32>();
        let half = solve(&name, &single, Method::Cg, None, &stopping::<f32>(10_000));
        let theirs = solve(&name, &single, Method::Cg, None, &stopping::<f32>(1000));
        println!(
            "{name:<12} {:>6} {:>8} | {} | {} | {} | condition {:.1e}, {:?}",
            a.rows(),
            a.nnz(),
            row(&double),
            row(&half),
            theirs.report.iterations,
            found.condition,
            found.definiteness
        );
        for solved in [&double, &half] {
            if let Some(why) = found.explain(&solved.report) {
                println!("{:>12}   {}: {why}", "", solved.report.precision);
            }
        }
    }
}

fn advised<T: Real>(name: &str, a: &Csr<f64>, advice: &Advice) -> Solved {
    solve(name, &a.cast::<T>(), advice.method, advice.chain[0], &stopping::<T>(10_000))
}

#[test]
fn other_matrices_with_the_method_that_is_advised() {
    println!("b = A ones, on {}", device().info().name);
    println!("{:<12} {:>13}  fp64: its stop |r|/|b| error | fp32", "matrix", "shape");
    for path in files() {
        let name = path.file_name().unwrap().to_string_lossy().replace(".mtx.gz", "");
        let a: Csr<f64> = io::read_matrix(&path, &mut |_, _| ()).unwrap();
        let found = Examination::of(&a).unwrap();
        let definite = a.rows() == a.cols() && found.symmetric && a.diagonal().iter().all(|d| *d > 0.0);
        if definite {
            continue;
        }
        let advice = found.advise(residuum::Precision::Double);
        let (double, single) = (advised::<f64>(&name, &a, &advice), advised::<f32>(&name, &a, &advice));
        println!(
            "{name:<12} {:>13} | {} | {} | {advice}",
            format!("{} x {}", a.rows(), a.cols()),
            row(&double),
            row(&single)
        );
        if advice.chain[0].is_some() {
            let sweep = solve(
                &name,
                &a,
                advice.method,
                Some(Preconditioner::Sweep(SweepOptions::gauss_seidel().with_ordering(RowOrdering::Rows))),
                &stopping::<f64>(10_000),
            );
            println!("{:>26} | {} with gauss-seidel, by rows", "", row(&sweep));
        }
        for warning in &advice.warnings {
            println!("{:>12}   {warning}", "");
        }
        for solved in [&double, &single] {
            if let Some(why) = found.explain(&solved.report) {
                println!("{:>12}   {}: {why}", "", solved.report.precision);
            }
        }
    }
}
