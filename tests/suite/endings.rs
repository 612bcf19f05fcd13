//! However a solve ends, the answer it leaves is the one of its report; and a solver that an operator's panic went through
//! solves the next system as a new one would.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::problems::{Problem, essence, indefinite, problems};
use crate::common::{bits, devices_in, noise};
use residuum::operator::{LinearOperator, SharedOperator};
use residuum::precond::{Factorisation, IncompleteOptions, Preconditioner};
use residuum::sparse::gallery;
use residuum::{
    Csr, Device, Error, FallbackSolve, Format, HostSystem, Matrix, Method, Precision, Real, Report, Result, Setup,
    Solver, Stop, Stopping, Vector, solve_scaled_with_fallbacks, solve_with_fallbacks,
};

/// The true residual of `x` as a solve of no iterations finds it.
fn residual<T: Real>(problem: &Problem<T>, device: &Device, b: &[T], x: &[T]) -> f64 {
    let problem = Problem { start: x.to_vec(), ..problem.clone() };
    problem.solve(device, &[b], &Stopping::after(0)).remove(0).1.true_residual
}

/// Columns that gain nothing more stop while others go on.
#[test]
fn columns_that_end_early_keep_their_answers() {
    let a = gallery::poisson_2d::<f32>(40, 0.001).unwrap();
    let wave = |i: usize| (std::f32::consts::PI * (i + 1) as f32 / 41.0).sin();
    let mut columns: Vec<Vec<f32>> = (0..2).map(|seed| noise(1600, 20 + seed)).collect();
    columns.push(vec![1.0; 1600]);
    columns.push((0..1600).map(|i| wave(i % 40) * wave(i / 40)).collect());
    let columns: Vec<&[f32]> = columns.iter().map(|c| &c[..]).collect();
    let beyond = Stopping::after(3000).with_rtol(1e-8);
    let mut apart = 0;
    for device in devices_in(Precision::Single) {
        for method in [Method::Gmres { restart: 100 }, Method::BiCgStab, Method::Cg, Method::Minres] {
            let problem = Problem::new(method, &a);
            let found = problem.solve(&device, &columns, &beyond);
            let restarts: Vec<usize> = found.iter().map(|(_, report)| report.restarts).collect();
            apart += usize::from(restarts.iter().any(|n| *n != restarts[0]));
            for ((x, report), b) in found.iter().zip(&columns) {
                assert!(report.stop != Stop::Converged, "{report}");
                assert_eq!(residual(&problem, &device, b, x), report.true_residual, "{report}");
            }
        }
    }
    assert!(apart > 0, "no columns ended apart: nothing was tested");
}

/// A part of the first residual is the same limit as that number, for every method and from any start; with several right-hand sides each has its own.
#[test]
fn a_part_of_the_first_residual_is_a_limit() {
    const PART: f64 = 0.0625;
    let mut converged = 0;
    for device in devices_in(Precision::Double) {
        for problem in problems::<f64>().into_iter().filter(|problem| problem.lower.is_none()) {
            // Far from the answer, so that the first residual is larger than b.
            let start = noise::<f64>(problem.a.cols(), 4).iter().map(|v| 64.0 * v).collect();
            let problem = Problem { start, ..problem };
            let b: Vec<Vec<f64>> = (0..2).map(|seed| noise(problem.a.rows(), 30 + seed)).collect();
            let b: Vec<&[f64]> = b.iter().map(|b| &b[..]).collect();
            let by_part = Stopping::after(200).with_residual_reduction(PART);
            let ends: Vec<_> = b
                .iter()
                .map(|b| {
                    let first = residual(&problem, &device, b, &problem.start);
                    let by_number = Stopping::after(200).with_atol(PART * first);
                    let (wanted, named) = problem.solve(&device, &[b], &by_number).remove(0);
                    let (x, report) = problem.solve(&device, &[b], &by_part).remove(0);
                    assert_eq!(essence(&x, &report), essence(&wanted, &named), "{report} {named}");
                    if report.stop == Stop::Converged {
                        assert!(report.true_residual <= PART * first && report.iterations > 0, "{report}");
                        converged += 1;
                    }
                    (x, report)
                })
                .collect();
            for ((x, report), (alone, own)) in problem.solve(&device, &b, &by_part).iter().zip(&ends) {
                assert_eq!(essence(x, report), essence(alone, own), "{report} {own}");
            }
        }
    }
    assert!(converged >= 40, "{converged}");
}

/// From 0 it is a part of the right-hand side, and a solve from a good start goes on where `rtol` would end it at once.
#[test]
fn a_good_start_does_not_end_a_solve_by_its_reduction() {
    let device = Device::host();
    let a = gallery::poisson_2d::<f64>(20, 0.0).unwrap();
    let b: Vec<f64> = noise(400, 9);
    let solve = |start: &[f64], stopping: Stopping| {
        let problem = Problem { start: start.to_vec(), ..Problem::new(Method::Cg, &a) };
        problem.solve(&device, &[&b], &stopping).remove(0)
    };
    let zero = vec![0.0; 400];
    let (near, by_rtol) = solve(&zero, Stopping::after(500).with_rtol(1e-3));
    let (same, by_part) = solve(&zero, Stopping::after(500).with_residual_reduction(1e-3));
    assert_eq!(essence(&near, &by_rtol), essence(&same, &by_part));
    let (_, again) = solve(&near, Stopping::after(500).with_rtol(1e-3));
    assert_eq!((again.stop, again.iterations), (Stop::Converged, 0));
    let (_, further) = solve(&near, Stopping::after(500).with_residual_reduction(1e-3));
    assert!(further.iterations > 0 && further.relative_residual() <= 1e-6, "{further}");
}

/// In a chain and in rounds of scaled solves it is a part of the first residual of all.
#[test]
fn a_part_of_the_first_residual_holds_for_all_solves_of_a_chain() {
    let device = Device::host();
    let a = gallery::poisson_2d::<f64>(40, 0.0).unwrap();
    let b = vec![1.0; 1600];
    let solved = Problem::new(Method::Cg, &a).solve(&device, &[&b], &Stopping::after(500).with_rtol(1e-12));
    // The residual is 1e-3 b, which is smooth: plain iterations gain little at first.
    let near: Vec<f64> = solved[0].0.iter().map(|v| 0.999 * v).collect();
    let wanted = 1e-3 * 1e-3 * 40.0;
    let stopping = |patience| Stopping::after(500).with_residual_reduction(1e-3).with_patience(patience);
    let (matrix, rhs) = (Matrix::new(&device, &a, Format::Csr).unwrap(), Vector::from_slice(&device, &b).unwrap());
    let mut x = Vector::from_slice(&device, &near).unwrap();
    let chain = [None, Some(Preconditioner::Incomplete(IncompleteOptions::new(Factorisation::Cholesky)))];
    let go_on = &mut |_: &_| ControlFlow::Continue(());
    let setup = Setup::new(Method::Cg, stopping(Some(5)));
    let FallbackSolve { report, attempts, .. } =
        solve_with_fallbacks((&matrix, &a, None), &setup, &chain, (&rhs, &mut x), go_on).unwrap();
    assert_eq!((attempts.len(), report.stop), (3, Stop::Converged), "{report}");
    assert!(report.true_residual <= wanted && report.true_residual > 1e-3 * wanted, "{report}");
    let mut x = near;
    let system = HostSystem { a: &a, b: &b, format: Format::Csr, partition: None };
    let setup = Setup::new(Method::Cg, stopping(None));
    let report = solve_scaled_with_fallbacks(&device, system, &setup, &[None], &mut x, go_on).unwrap().report;
    assert!(report.converged() && report.iterations > 0 && report.true_residual <= wanted, "{report}");
}

/// A matrix that calls `then` with the number and the result of each product.
struct Watched<F> {
    matrix: Matrix<f64>,
    products: Arc<AtomicUsize>,
    then: F,
}

impl<F: Fn(usize, &mut Vector<f64>) -> Result<()> + Send + Sync> LinearOperator<f64> for Watched<F> {
    fn device(&self) -> &Device {
        self.matrix.device()
    }
    fn rows(&self) -> usize {
        self.matrix.rows()
    }
    fn cols(&self) -> usize {
        self.matrix.cols()
    }
    fn apply(&self, x: &Vector<f64>, y: &mut Vector<f64>) -> Result<()> {
        self.matrix.multiply(x, y)?;
        (self.then)(self.products.fetch_add(1, Ordering::Relaxed), y)
    }
    fn apply_adjoint(&self, x: &Vector<f64>, y: &mut Vector<f64>) -> Result<()> {
        self.matrix.multiply_transposed(x, y)?;
        (self.then)(self.products.fetch_add(1, Ordering::Relaxed), y)
    }
    fn has_adjoint(&self) -> bool {
        true
    }
    fn norm_bound(&self) -> Option<f64> {
        self.matrix.norm_bound()
    }
}

/// A solve that fails goes back to its best iterate; if the time runs out on the way, to the better one of its last start and the
/// iterate that it came to.
#[test]
fn time_that_runs_out_on_the_way_back_costs_no_accuracy() {
    let (device, a, b) = (Device::host(), indefinite::<f64>(20), noise::<f64>(400, 3));
    let slow = |n: usize, y: &mut Vector<f64>| match n {
        // In an iteration, and in the start that verifies where it ended.
        80..=81 => y.fill(f64::NAN),
        82.. => {
            std::thread::sleep(Duration::from_millis(20));
            Ok(())
        }
        _ => Ok(()),
    };
    let matrix = Matrix::new(&device, &a, Format::Csr).unwrap();
    let operator = Watched { matrix, products: Arc::default(), then: slow }.shared();
    let method = Method::Gmres { restart: 11 };
    let stopping = Stopping::after(1000).with_time_limit(Duration::from_secs(1)).with_check_every(1);
    let mut solver = Solver::new(operator, method, stopping).unwrap();
    let mut x = Vector::zeros(&device, 400).unwrap();
    let report = solver.solve(&Vector::from_slice(&device, &b).unwrap(), &mut x).unwrap();
    assert_eq!(report.stop, Stop::NotFinite, "{report}");
    assert!(report.true_residual <= report.history[0], "{report}");
    let found = residual(&Problem::new(method, &a), &device, &b, &x.to_vec().unwrap());
    assert_eq!(found, report.true_residual, "{report}");
}

/// A solver of `problem` whose operator calls `then` after each product.
fn watched<F: Fn(usize, &mut Vector<f64>) -> Result<()> + Send + Sync + 'static>(
    problem: &Problem<f64>,
    device: &Device,
    products: &Arc<AtomicUsize>,
    then: F,
) -> Solver<f64> {
    let matrix = Matrix::with_transpose(device, &problem.a, Format::Csr).unwrap();
    let operator: SharedOperator<f64> = Watched { matrix, products: Arc::clone(products), then }.shared();
    Solver::with(operator, Setup::new(problem.method, Stopping::after(40))).unwrap()
}

#[test]
fn a_panic_of_an_operator_leaves_the_solver_as_it_was() {
    let solve = |solver: &mut Solver<f64>, problem: &Problem<f64>, device: &Device| -> (Vec<f64>, Report) {
        let mut x = Vector::from_slice(device, &problem.start).unwrap();
        let b = Vector::from_slice(device, &noise::<f64>(problem.a.rows(), 4)).unwrap();
        let report = solver.solve(&b, &mut x).unwrap();
        (x.to_vec().unwrap(), report)
    };
    for device in devices_in(Precision::Double) {
        for problem in problems::<f64>().iter().filter(|p| p.diagonal.is_none() && p.reference.is_none()) {
            // Products of the set-up do not count.
            let (never, products) = (Arc::default(), Arc::new(AtomicUsize::new(1000)));
            let (x, report) = solve(&mut watched(problem, &device, &never, |_, _| Ok(())), problem, &device);
            let fails_at = 13;
            let mut solver = watched(problem, &device, &products, move |n, _| {
                assert!(n != fails_at, "the operator's own fault");
                Ok(())
            });
            products.store(0, Ordering::Relaxed);
            let failed = catch_unwind(AssertUnwindSafe(|| solve(&mut solver, problem, &device)));
            assert!(failed.is_err(), "{}", problem.method);
            let (again, second) = solve(&mut solver, problem, &device);
            assert_eq!(bits(&again), bits(&x), "{}", problem.method);
            assert!(essence(&again, &second) == essence(&x, &report), "{second} instead of {report}");
        }
    }
}

/// A dense matrix of absolute noise of this size.
fn rectangle(rows: usize, cols: usize, size: f64) -> Csr<f64> {
    let values = noise::<f64>(rows * cols, 5).iter().map(|v| size * v.abs()).collect();
    let pointers = (0..=rows).map(|row| row * cols).collect();
    Csr::new(rows, cols, pointers, (0..rows * cols).map(|k| (k % cols) as u32).collect(), values).unwrap()
}

/// An error at any product, those after the iterations among them, leaves the start guess in the caller's units.
#[test]
fn an_error_of_an_operator_leaves_the_start_guess() {
    let (a, device) = (rectangle(30, 8, 1e10), Device::host());
    let b: Vec<f64> = noise::<f64>(30, 4).iter().map(|v| 1e-300 * v).collect();
    // The answer is rounded to multiples of the least number, and so looked at again.
    let start: Vec<f64> = noise::<f64>(8, 6).iter().map(|v| 1e-310 * v).collect();
    for method in [Method::Cgls { damp: 0.0 }, Method::Lsqr { damp: 0.0 }, Method::Sirt { omega: 1.0 }] {
        for fails_at in 0.. {
            let fails = move |n: usize, _: &mut Vector<f64>| match n == fails_at {
                true => Err(Error::Shape { what: "the operator's own fault", expected: 0, found: n }),
                false => Ok(()),
            };
            let products = Arc::new(AtomicUsize::new(usize::MAX / 2));
            let problem = Problem::new(method, &a);
            let mut solver = watched(&problem, &device, &products, fails);
            products.store(0, Ordering::Relaxed);
            let mut x = Vector::from_slice(&device, &start).unwrap();
            let solved = solver.solve(&Vector::from_slice(&device, &b).unwrap(), &mut x);
            let Err(error) = solved else {
                assert!(x.to_vec().unwrap() != start && fails_at > 10, "{method}: {fails_at} failures");
                break;
            };
            assert!(error.to_string().contains("own fault"), "{error}");
            assert_eq!(x.to_vec().unwrap(), start, "{method}, product {fails_at}");
        }
    }
}

/// A limit that is a part of the first gradient holds for an answer that its units round.
#[test]
fn a_part_of_the_first_gradient_holds_for_a_rounded_answer() {
    let (a, device) = (rectangle(30, 8, 1.0), Device::host());
    let b: Vec<f64> = noise::<f64>(30, 4).iter().map(|v| 1e-312 * v).collect();
    let stopping = Stopping::after(100).with_rtol(0.0).with_gradient_rtol(0.0).with_gradient_reduction(1e-4);
    for method in [Method::Cgls { damp: 0.0 }, Method::Lsmr { damp: 0.0 }] {
        let solved = Problem::new(method, &a).solve(&device, &[&b], &stopping);
        let report = &solved[0].1;
        assert_eq!(report.stop, Stop::LeastSquares, "{report}");
        assert!(report.gradient.unwrap() <= 1.001e-4 * report.gradient_history[0], "{report}");
    }
}

/// An answer beyond the largest number is given up for the start guess, cut at the bounds if the method keeps some.
#[test]
fn an_answer_out_of_range_gives_the_start_guess_back() {
    let (a, device) = (rectangle(30, 8, 1e-200), Device::host());
    let b: Vec<f64> = noise::<f64>(30, 4).iter().map(|v| 1e150 * v).collect();
    let start: Vec<f64> = noise::<f64>(8, 6).iter().map(|v| 1e300 * (v - 0.5)).collect();
    for (method, lower) in [(Method::Cgls { damp: 0.0 }, None), (Method::Sirt { omega: 1.0 }, Some(0.0))] {
        let matrix = Matrix::with_transpose(&device, &a, Format::Csr).unwrap().shared();
        let mut solver = Solver::with(matrix, Setup::new(method, Stopping::after(40))).unwrap();
        if let Some(lower) = lower {
            solver.set_bounds(&[lower; 8], &[f64::INFINITY; 8]).unwrap();
        }
        let mut x = Vector::from_slice(&device, &start).unwrap();
        let report = solver.solve(&Vector::from_slice(&device, &b).unwrap(), &mut x).unwrap();
        assert_eq!((report.stop, report.answer_iteration), (Stop::NotFinite, 0), "{report}");
        let found = x.to_vec().unwrap();
        let cut: Vec<f64> = start.iter().map(|v| v.max(lower.unwrap_or(f64::NEG_INFINITY))).collect();
        assert_eq!(found, cut, "{report}");
        let left = (0..30).map(|i| (b[i] - (0..8).map(|j| a.values()[8 * i + j] * found[j]).sum::<f64>()) / 1e150);
        let left = 1e150 * left.map(|r| r * r).sum::<f64>().sqrt();
        assert!((report.true_residual - left).abs() <= 1e-9 * left, "{left:e}, {report}");
    }
}
