//! Least squares that have no exact solution end as converged, with the answer of a dense factorisation, and in few iterations.
//!
//! `illc1850` and `well1033` (R. Boisvert et al., Matrix Market, set LSQ) are read if they lie beside the project.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod common;

use std::path::Path;

use common::noise;
use residuum::io::matrix_market;
use residuum::sparse::gallery;
use residuum::{Csr, Device, Format, Matrix, Method, Precision, Real, Report, Solver, Stop, Stopping, Vector};

/// `argmin |A x - b|` by Householder's QR factorisation, dense.
fn dense(a: &Csr<f64>, b: &[f64]) -> Vec<f64> {
    let (m, n) = (a.rows(), a.cols());
    // By columns, the right-hand side last.
    let mut columns = vec![vec![0.0; m]; n];
    for i in 0..m {
        for (j, v) in a.row(i).0.iter().zip(a.row(i).1) {
            columns[*j as usize][i] = *v;
        }
    }
    columns.push(b.to_vec());
    let mut diagonal = vec![0.0; n];
    for k in 0..n {
        let (done, rest) = columns.split_at_mut(k + 1);
        let v = &mut done[k][k..];
        let norm = v.iter().map(|v| v * v).sum::<f64>().sqrt();
        let alpha = if v[0] > 0.0 { -norm } else { norm };
        diagonal[k] = alpha;
        v[0] -= alpha;
        let square: f64 = v.iter().map(|v| v * v).sum();
        for column in rest {
            let dot: f64 = v.iter().zip(&column[k..]).map(|(a, b)| a * b).sum();
            let factor = 2.0 * dot / square;
            for (c, v) in column[k..].iter_mut().zip(&*v) {
                *c -= factor * v;
            }
        }
    }
    let mut x = columns[n][..n].to_vec();
    for k in (0..n).rev() {
        let sum: f64 = (k + 1..n).map(|j| columns[j][k] * x[j]).sum();
        x[k] = (x[k] - sum) / diagonal[k];
    }
    x
}

fn norm(values: impl Iterator<Item = f64>) -> f64 {
    values.map(|v| v * v).sum::<f64>().sqrt()
}

/// Relative distance of `x` from `wanted`.
fn distance<T: Real>(x: &[T], wanted: &[f64]) -> f64 {
    norm(x.iter().zip(wanted).map(|(x, w)| x.to_f64() - w)) / norm(wanted.iter().copied())
}

fn problems() -> Vec<(&'static str, Csr<f64>, Vec<f64>)> {
    let random = gallery::random::<f64>(2000, 500, 20_000, 17).unwrap();
    let near: Vec<f64> = random
        .product(&noise(500, 3))
        .unwrap()
        .iter()
        .zip(noise::<f64>(2000, 4))
        .map(|(b, e)| b + 1e-7 * e)
        .collect();
    let mut found = vec![("random", random.clone(), noise(2000, 2)), ("random, nearly solvable", random, near)];
    for name in ["illc1850", "well1033"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
        let path = folder.join(format!("{name}.mtx.gz"));
        if !path.exists() {
            println!("skipped: {} is not there", path.display());
            continue;
        }
        let rhs = matrix_market::read_vector(&folder.join(format!("{name}_rhs1.mtx.gz"))).unwrap();
        found.push((name, matrix_market::read_matrix(&path).unwrap(), rhs));
    }
    found
}

fn solve<T: Real>(device: &Device, a: &Csr<f64>, b: &[f64], method: Method) -> (Vec<T>, Report) {
    let matrix = Matrix::with_transpose(device, &a.cast::<T>(), Format::Auto).unwrap();
    let b: Vec<T> = b.iter().map(|v| T::from_f64(*v)).collect();
    let b = Vector::from_slice(device, &b).unwrap();
    let mut x = Vector::zeros(device, a.cols()).unwrap();
    let report = Solver::new(&matrix, method, Stopping::for_precision::<T>()).unwrap().solve(&b, &mut x).unwrap();
    (x.to_vec().unwrap(), report)
}

const METHODS: [Method; 3] = [Method::Lsqr { damp: 0.0 }, Method::Lsmr { damp: 0.0 }, Method::Cgls { damp: 0.0 }];

#[test]
fn least_squares_end_with_the_answer_of_a_factorisation() {
    for (name, a, b) in problems() {
        let wanted = dense(&a, &b);
        for device in common::devices_in(Precision::Double) {
            for method in METHODS {
                let (x, report) = solve::<f64>(&device, &a, &b, method);
                let off = distance(&x, &wanted);
                println!("{name}, {method} on {}: {off:.1e} off, {report}", device.info().name);
                assert_eq!(report.stop, Stop::LeastSquares, "{name}: {report}");
                assert!(off < 1e-8, "{name}: {off:e}, {report}");
                // SciPy's lsmr with atol = btol = 1e-10 takes 2223 for illc1850 and 199 for well1033.
                assert!(report.iterations < 3300, "{name}: {report}");
            }
        }
    }
}

/// In single precision too a least-squares solution is one: as near as its rounding lets it be.
#[test]
fn single_precision_ends_at_its_rounding() {
    for (name, a, b) in problems() {
        let wanted = dense(&a, &b);
        for device in common::devices() {
            for method in METHODS {
                let (x, report) = solve::<f32>(&device, &a, &b, method);
                let off = distance(&x, &wanted);
                println!("{name}, {method} on {}: {off:.1e} off, {report}", device.info().name);
                assert!(report.converged(), "{name}: {report}");
                assert!(report.iterations < 9000, "{name}: {report}");
            }
        }
    }
}
