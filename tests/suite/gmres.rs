//! GMRES beside what theory says of it: the residuals of MINRES, the end of small Krylov spaces, an answer that is up to date
//! wherever it stops.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::common::problems::{Problem, convection, essence, indefinite};
use crate::common::{devices_in, each_case, noise, reference};
use residuum::operator::{LinearOperator, LinearOperatorExt, Stencil};
use residuum::sparse::gallery;
use residuum::{Csr, Device, Format, Matrix, Method, Precision, Real, Report, Solver, Stop, Stopping, Vector};

fn solve(device: &Device, a: &Csr<f64>, restart: usize, stopping: Stopping, b: &[f64]) -> (Vec<f64>, Report) {
    Problem::new(Method::Gmres { restart }, a).solve(device, &[b], &stopping).remove(0)
}

/// `|b - A x|` on the host.
fn residual(a: &Csr<f64>, x: &[f64], b: &[f64]) -> f64 {
    b.iter().zip(a.product(x).unwrap()).map(|(b, ax)| (b - ax).powi(2)).sum::<f64>().sqrt()
}

#[test]
fn a_symmetric_system_has_the_residuals_of_minres() {
    let (a, b) = (indefinite::<f64>(12), noise(144, 3));
    for device in devices_in(Precision::Double) {
        let iterations = 50;
        let (_, gmres) = solve(&device, &a, 60, Stopping::after(iterations), &b);
        let minres =
            Problem::new(Method::Minres, &a).solve(&device, &[&b], &Stopping::after(iterations)).remove(0).1;
        assert_eq!(gmres.history.len(), iterations + 1);
        for (k, (ours, theirs)) in gmres.history.iter().zip(&minres.history).enumerate() {
            assert!((ours - theirs).abs() < 1e-7 * theirs, "iteration {k}: {ours}, {theirs}");
        }
    }
}

/// The answer is formed at restarts and at the end: whatever ends a solve, its residual is that of the recurrence.
#[test]
fn the_answer_is_up_to_date_wherever_it_stops() {
    let (a, b) = (convection::<f64>(9), noise(81, 4));
    let scaling: Vec<f64> = (0..81).map(|i| 0.2 + 0.1 * f64::from(i % 3)).collect();
    for device in devices_in(Precision::Double) {
        for (diagonal, as_matrix) in [(None, false), (Some(&scaling), false), (Some(&scaling), true)] {
            let method = Method::Gmres { restart: 4 };
            let problem = Problem { diagonal: diagonal.cloned(), as_matrix, ..Problem::new(method, &a) };
            let mut last = f64::INFINITY;
            for iterations in 0..=9 {
                let (x, report) = problem.solve(&device, &[&b], &Stopping::after(iterations)).remove(0);
                assert_eq!((report.iterations, report.stop), (iterations, Stop::MaxIterations));
                let found = residual(&a, &x, &b);
                assert!((found - report.residual).abs() < 1e-12 * report.history[0], "{report}");
                assert!((found - report.true_residual).abs() < 1e-12 * report.history[0], "{report}");
                assert!(found < last, "the residual falls in every iteration: {report}");
                last = found;
            }
        }
    }
}

#[test]
fn a_cancelled_solve_keeps_its_directions() {
    let (a, b) = (convection::<f64>(9), noise(81, 4));
    for device in devices_in(Precision::Double) {
        let matrix = Matrix::new(&device, &a, Format::Csr).unwrap();
        let stopping = Stopping::after(100).with_check_every(1);
        let mut solver = Solver::new(&matrix, Method::Gmres { restart: 20 }, stopping).unwrap();
        let b = Vector::from_slice(&device, &b).unwrap();
        for seen in [1, 7] {
            let mut x = Vector::zeros(&device, 81).unwrap();
            let cancel = &mut |progress: &residuum::Progress| match progress.iteration >= seen {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            };
            let report = solver.solve_observed(&b, &mut x, cancel).unwrap();
            assert_eq!(report.stop, Stop::Cancelled);
            assert!(report.iterations >= seen && report.iterations < 100, "{report}");
            let found = residual(&a, &x.to_vec().unwrap(), &b.to_vec().unwrap());
            assert!((found - report.residual).abs() < 1e-12 * report.history[0], "{report}");
            assert!(found < 0.9 * report.history[0]);
        }
    }
}

/// Takes as many iterations as there are different eigenvalues; then spaces that end before the answer is found.
#[test]
fn small_krylov_spaces_end() {
    let diagonal = |values: &[f64]| {
        let entries: Vec<_> = values.iter().enumerate().map(|(i, v)| (i, i, *v)).collect();
        Csr::from_triplets(values.len(), values.len(), &entries).unwrap()
    };
    let stopping = || Stopping::after(50).with_rtol(1e-12);
    for device in devices_in(Precision::Double) {
        for distinct in 1..4 {
            let values: Vec<f64> = (0..40).map(|i| 1.0 + f64::from(i % distinct)).collect();
            let (_, report) = solve(&device, &diagonal(&values), 30, stopping(), &noise(40, 5));
            assert_eq!((report.stop, report.iterations), (Stop::Converged, distinct as usize), "{report}");
        }
        // A b = 0, and A A b = 0: nothing can be reached.
        let shift = Csr::from_triplets(2, 2, &[(0, 1, 1.0)]).unwrap();
        for b in [[1.0, 0.0], [0.0, 1.0]] {
            let (x, report) = solve(&device, &shift, 30, stopping(), &b);
            assert!(x.iter().all(|x| x.is_finite()), "{report}");
            let expected =
                if b[0] == 1.0 { [Stop::Breakdown, Stop::Breakdown] } else { [Stop::Breakdown, Stop::Stagnated] };
            assert!(expected.contains(&report.stop), "{report}");
            assert_eq!(report.true_residual, 1.0, "{report}");
        }
        // Limits of 0: what is reached is what rounding allows.
        let mut stagnated = 0;
        for distinct in 2..8 {
            let values: Vec<f64> = (0..40).map(|i| 1.0 + 0.37 * f64::from(i % distinct)).collect();
            let (_, report) = solve(&device, &diagonal(&values), 30, Stopping::after(50), &noise(40, 5));
            assert!(report.relative_residual() < 1e-15, "{report}");
            match report.stop {
                Stop::Converged => assert_eq!(report.true_residual, 0.0, "{report}"),
                stop => assert_eq!(stop, Stop::Stagnated, "{report}"),
            }
            stagnated += usize::from(report.stop == Stop::Stagnated);
        }
        assert!(stagnated > 0);
        let (x, report) = solve(&device, &diagonal(&[2.0]), 30, stopping(), &[1.0]);
        assert_eq!((x, report.stop, report.iterations), (vec![0.5], Stop::Converged, 1));
    }
}

/// One orthogonalisation is not enough where directions nearly depend on each other: the residual of the recurrence would leave
/// the true one behind.
#[test]
fn directions_stay_orthogonal() {
    let n = 60;
    let entries: Vec<(usize, usize, f64)> = (0..n)
        .flat_map(|i| {
            let diagonal = 10f64.powf(-(i as f64) / 5.0);
            [(i, i, diagonal), (i, (i + 1) % n, 0.5 * diagonal)]
        })
        .collect();
    let a = Csr::from_triplets(n, n, &entries).unwrap();
    let b = a.product(&vec![1.0; n]).unwrap();
    for device in devices_in(Precision::Double) {
        let (x, report) = solve(&device, &a, n, Stopping::after(n - 5), &b);
        let found = residual(&a, &x, &b);
        assert!((found - report.residual).abs() < 1e-13 * report.history[0], "{report}: {found:e}");
        assert!(report.history.windows(2).all(|pair| pair[1] <= pair[0] * (1.0 + 1e-12)), "{report}");
    }
}

/// Vectors of more chunks than one, whose lanes an item shares among several: the same bits at every work-group size.
#[test]
fn long_vectors_give_the_same_bits_everywhere() {
    fn check<T: Real>(device: &Device) {
        let a = convection::<T>(200);
        let columns: Vec<Vec<T>> = (0..2).map(|seed| noise(40_000, 60 + seed)).collect();
        let columns: Vec<&[T]> = columns.iter().map(|c| &c[..]).collect();
        for count in 1..=2 {
            let solve = |device: &Device| {
                let problem = Problem::new(Method::Gmres { restart: 7 }, &a);
                let found = problem.solve(device, &columns[..count], &Stopping::after(17));
                found.iter().map(|(x, report)| essence(x, report)).collect::<Vec<_>>()
            };
            assert!(solve(device) == solve(&reference::<T>(device)), "{}: {count} columns", device.info().name);
        }
    }
    each_case::<f64>(check::<f64>);
    each_case::<f32>(check::<f32>);
}

/// Right-hand sides that stop at different iterations, in the middle of a cycle and at its end, each as if alone.
#[test]
fn columns_stop_apart() {
    let a = gallery::poisson_2d::<f64>(9, 0.5).unwrap();
    let smooth: Vec<f64> = (0..81)
        .map(|i| {
            let wave = |k: usize| (std::f64::consts::PI * (k as f64 + 1.0) / 10.0).sin();
            wave(i % 9) * wave(i / 9)
        })
        .collect();
    // An eigenvector takes one iteration, one with a little noise some, noise many; 0 none.
    let mixed: Vec<f64> = smooth.iter().zip(noise::<f64>(81, 8)).map(|(s, n)| s + 1e-6 * n).collect();
    let columns = [smooth, mixed, noise(81, 9), vec![0.0; 81]];
    let columns: Vec<&[f64]> = columns.iter().map(|c| &c[..]).collect();
    let problem = Problem::new(Method::Gmres { restart: 5 }, &a);
    let stopping = Stopping::after(200).with_rtol(1e-9);
    for device in devices_in(Precision::Double) {
        let together = problem.solve(&device, &columns, &stopping);
        let iterations: Vec<usize> = together.iter().map(|(_, report)| report.iterations).collect();
        assert!(
            iterations[0] < iterations[1] && iterations[1] < iterations[2] && iterations[3] == 0,
            "{iterations:?}"
        );
        for ((x, report), b) in together.iter().zip(&columns) {
            let (alone, single) = problem.solve(&device, &[b], &stopping).remove(0);
            assert_eq!((&alone, single.iterations, single.stop), (x, report.iterations, report.stop));
            assert_eq!(report.stop, Stop::Converged);
        }
    }
}

/// Directions, and vectors between the factors of an operator, are counted before anything is allocated.
#[test]
fn memory_is_planned() {
    let device = Device::host();
    let stencil =
        Stencil::new([1 << 31, 1, 1], &[([0, 0, 0], 2.0), ([1, 0, 0], -1.0), ([-1, 0, 0], -1.0)]).unwrap();
    let a = Arc::new(stencil.operator::<f64>(&device).unwrap());
    let square = a.clone().times(a).unwrap().shared();
    let error = Solver::new(square, Method::Gmres { restart: 100 }, Stopping::after(1)).unwrap_err().to_string();
    assert!(error.contains("directions (a smaller restart or subspace has fewer) 17"), "{error}");
    assert!(error.contains("a vector between factors 17179869184"), "{error}");
}
