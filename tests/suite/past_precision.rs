//! Runs that go on past the precision of their numbers: they stop by themselves, say why, and keep their best answer.

use crate::common;
use residuum::imaging::{Beam, Grid, Noise, Phantom, Scanner};
use residuum::{
    Csr, Device, Format, Matrix, Method, Real, Regularization, Report, Setup, Solver, Stop, Stopping, Vector,
};

/// A 64 x 64 image of 2 x 2 cm from 96 angles x 96 pixels, with noise: as ill-posed as scans are.
fn scan(device: &Device) -> (Matrix<f32>, Vector<f32>) {
    let scanner = Scanner {
        beam: Beam::Parallel,
        pixels: 96,
        pitch: 2.0 / 64.0,
        offset: 0.0,
        angles: (0..96).map(|k| 180.0 * f64::from(k) / 96.0).collect(),
    };
    let scan = Phantom::plate().scan(&scanner, 2.0, Noise { photons: 2e5, gain: 0.003, seed: 64 }).unwrap();
    let a = scanner.matrix::<f32>(Grid { side: 64, pixel: 2.0 / 64.0 }).unwrap();
    let matrix = Matrix::with_transpose(device, &a, Format::Auto).unwrap();
    let b: Vec<f32> = scan.sinogram.iter().map(|v| *v as f32).collect();
    let b = Vector::from_slice(device, &b).unwrap();
    (matrix, b)
}

fn residual(matrix: &Matrix<f32>, b: &Vector<f32>, x: &Vector<f32>) -> f64 {
    let device = matrix.device();
    let mut r = Vector::zeros(device, matrix.rows()).unwrap();
    matrix.multiply(x, &mut r).unwrap();
    r.axpby(1.0, b, -1.0).unwrap();
    r.norm2().unwrap()
}

#[test]
fn ten_thousand_iterations_of_a_small_scan_end_by_themselves() {
    let device = Device::best().unwrap();
    let (matrix, b) = scan(&device);
    let tikhonov = Regularization::none().with_tikhonov(1e-3 * matrix.frobenius_norm().powi(2) / 4096.0);
    for name in ["cgnr", "regularised cgnr", "cgls", "fista"] {
        let solve = |stopping: &Stopping| -> (Vector<f32>, Report) {
            let mut x = Vector::zeros(&device, 4096).unwrap();
            let regularization = if name == "cgnr" { Regularization::none() } else { tikhonov.clone() };
            let report = match name {
                "fista" => {
                    let setup = Setup::new(Method::Fista, stopping.clone())
                        .with_regularizations(std::slice::from_ref(&tikhonov));
                    Solver::with(&matrix, setup).unwrap().solve(&b, &mut x)
                }
                "cgls" => {
                    Solver::new(&matrix, Method::Cgls { damp: 0.0 }, stopping.clone()).unwrap().solve(&b, &mut x)
                }
                _ => common::cgnr(&matrix, &[regularization], stopping.clone()).unwrap().solve(&b, &mut x),
            };
            (x, report.unwrap())
        };
        let beyond =
            Stopping::for_precision::<f32>().with_max_iterations(10_000).with_gradient_rtol(f32::EPSILON.into());
        let (x, report) = solve(&beyond);
        let (_, earlier) = solve(&Stopping::after(100));
        let gradient = report.gradient.unwrap();
        println!(
            "{name}: {report}; |gradient| {gradient:.2e}, after 100 iterations {:.2e}",
            earlier.gradient.unwrap()
        );
        assert!(matches!(report.stop, Stop::Stagnated | Stop::LeastSquares), "{report}");
        assert!(report.iterations < 10_000, "{report}");
        // The answer kept is the one of the report, and the best there was: a rounding of |A| |r| is left of the gradient.
        let reached = residual(&matrix, &b, &x);
        assert!((reached - report.true_residual).abs() < 1e-5 * reached, "{reached}: {report}");
        // FISTA measures it by steps of x, and has the rounding of x in it.
        let most = if name == "fista" { 20.0 } else { 2.0 };
        assert!(
            gradient < most * f64::from(f32::EPSILON) * matrix.frobenius_norm() * reached,
            "{gradient}: {report}"
        );
        assert!(gradient < 1e-2 * earlier.gradient.unwrap());
        if name != "regularised cgnr" {
            assert!(reached <= earlier.true_residual, "{report} after {earlier}");
        }
    }
}

/// An image with noise, smoothed by total variation for ever: it ends where steps are rounding, near the answer in double precision.
#[test]
fn pdhg_ends_by_itself() {
    fn solve<T: Real>(device: &Device) -> (Vec<f64>, Report) {
        let n = 16 * 12;
        let identity = Csr::from_rows(n, n, |i, row| row.push((i as u32, T::from_f64(1.0)))).unwrap();
        let matrix = Matrix::with_transpose(device, &identity, Format::Csr).unwrap();
        let step = |i: usize| if i % 16 < 7 { 0.2 } else { 1.0 };
        let noise = common::noise::<f64>(n, 4);
        let b: Vec<T> = (0..n).map(|i| T::from_f64(step(i) + 0.1 * noise[i])).collect();
        let terms = Regularization::none().with_variation(0.15).with_lower(0.25).with_width(16);
        let never = Stopping::after(200_000);
        let setup = Setup::new(Method::Pdhg, never).with_regularizations(&[terms]);
        let mut x = Vector::zeros(device, n).unwrap();
        let mut solver = Solver::with(&matrix, setup).unwrap();
        let report = solver.solve(&Vector::from_slice(device, &b).unwrap(), &mut x).unwrap();
        (x.to_vec().unwrap().iter().map(|v| v.to_f64()).collect(), report)
    }
    let (wanted, _) = solve::<f64>(&Device::host());
    let (x, report) = solve::<f32>(&Device::best().unwrap());
    println!("{report}, |gradient| {:.2e}", report.gradient.unwrap());
    assert!(matches!(report.stop, Stop::Stagnated | Stop::LeastSquares), "{report}");
    assert!(x.iter().zip(&wanted).all(|(x, w)| (x - w).abs() < 1e-5), "{report}");
}
