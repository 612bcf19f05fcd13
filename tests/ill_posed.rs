//! Ill-posed problems: methods that choose their weight or stop in time, beside what IR Tools finds for the same data.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod common;

use common::oracle;
use residuum::{
    Correction, Device, Format, Matrix, Method, Report, Setup, Solver, Stop, Stopping, Vector, WeightRule,
    WeightStop,
};

fn norm(values: impl Iterator<Item = f64>) -> f64 {
    values.map(|v| v * v).sum::<f64>().sqrt()
}

/// Relative distance of `x` from `wanted`.
fn distance(x: &[f64], wanted: &[f64]) -> f64 {
    norm(x.iter().zip(wanted).map(|(x, y)| x - y)) / norm(wanted.iter().copied())
}

/// FISTA within 0 and 1 on the test problem of IR Tools: the errors that IR Tools has after as many iterations.
#[test]
fn fista_is_that_of_ir_tools() {
    let (a, x) = (oracle::matrix(), oracle::head());
    // The problem is the one of the table.
    assert_eq!((a.rows(), a.cols(), a.nnz()), (8190, 4096, 469_640));
    let b = a.product(&x).unwrap();
    for (found, wanted) in [
        (norm(a.values().iter().copied()), 590.5253315),
        (norm(b.iter().copied()), 677.097546),
        (norm(x.iter().copied()), 15.84739726),
    ] {
        approx::assert_relative_eq!(found, wanted, max_relative = 1e-8);
    }
    let device = Device::host();
    let matrix = Matrix::with_transpose(&device, &a, Format::Csr).unwrap();
    for (level, cases) in [(0.01, [(168, 0.03706), (300, 0.04011)]), (0.05, [(58, 0.15016), (300, 0.19293)])] {
        let b = Vector::from_slice(&device, &oracle::noisy(&b, level)).unwrap();
        for (iterations, wanted) in cases {
            let bounds = Correction { lower: 0.0, upper: 1.0, ..Correction::none() };
            let setup = Setup::new(Method::Fista, Stopping::after(iterations)).with_corrections(&[bounds]);
            let mut found = Vector::zeros(&device, a.cols()).unwrap();
            let report = Solver::with(&matrix, setup).unwrap().solve(&b, &mut found).unwrap();
            let error = distance(&found.to_vec().unwrap(), &x);
            println!("{report}: error {error:.5}, IR Tools {wanted}");
            assert!((error - wanted).abs() < 0.01 * wanted, "{error} for {wanted}");
        }
    }
}

fn hybrid(weight: WeightRule, subspace: usize) -> Method {
    Method::HybridLsqr { weight, subspace }
}

/// Hybrid LSQR with each rule on the test problem of IR Tools: iterations, weights and errors of its table.
#[test]
fn hybrid_lsqr_is_that_of_ir_tools() {
    use WeightRule::{Discrepancy, Gcv, LCurve, ModifiedGcv, Upre, WeightedGcv};
    let (a, x) = (oracle::matrix(), oracle::head());
    let b = a.product(&x).unwrap();
    let device = Device::host();
    let matrix = Matrix::with_transpose(&device, &a, Format::Csr).unwrap();
    for noise in [0.01, 0.05] {
        let b = Vector::from_slice(&device, &oracle::noisy(&b, noise)).unwrap();
        for rule in [Gcv, WeightedGcv, ModifiedGcv, Discrepancy { noise }, Upre { noise }, LCurve] {
            let mut solver = Solver::new(&matrix, hybrid(rule, 100), Stopping::for_precision::<f64>()).unwrap();
            let mut found = Vector::zeros(&device, a.cols()).unwrap();
            let report = solver.solve(&b, &mut found).unwrap();
            let error = distance(&found.to_vec().unwrap(), &x);
            println!("{noise} {report}: error {error:.5}");
        }
    }
}
