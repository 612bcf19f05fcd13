//! Systems as people bring them, whose ends must be true: badly scaled, singular, symmetric but for rounding, cut short.

use std::ops::ControlFlow;

use crate::common::program;
use residuum::io::{matrix_market, npy};
use residuum::sparse::gallery;
use residuum::{
    Answer, Csr, Device, Examination, FallbackSolve, Format, HostSystem, Matrix, Method, Real, Report, Setup,
    Solver, Stop, Stopping, Vector, solve_scaled_with_fallbacks, solve_with_fallbacks,
};
use serde_json::Value;

fn dense<T: Real>(rows: usize, cols: usize, entry: impl Fn(usize, usize) -> f64 + Sync) -> Csr<T> {
    Csr::from_rows(rows, cols, |i, row| {
        let entries = (0..cols).map(|j| (j as u32, T::from_f64(entry(i, j))));
        row.extend(entries.filter(|(_, v)| v.to_f64() != 0.0));
    })
    .unwrap()
}

/// Diagonal matrix.
fn diagonal<T: Real>(d: &[f64]) -> Csr<T> {
    dense(d.len(), d.len(), |i, j| if i == j { d[i] } else { 0.0 })
}

/// The bar of 60 unknowns that finite-element codes make: stiffness 2e7, the first and the last row replaced by rows of the identity.
fn bar() -> Csr<f64> {
    dense(60, 60, |i, j| match (i, i.abs_diff(j)) {
        (0 | 59, 0) => 1.0,
        (0 | 59, _) => 0.0,
        (_, 0) => 4e7,
        (_, 1) => -2e7,
        _ => 0.0,
    })
}

/// Cells of a square, each with the mean of its neighbours: a Laplacian whose boundaries reflect, and which takes constants to 0.
fn neumann(side: usize) -> Csr<f64> {
    let neighbours = |i: usize| {
        let (x, y) = (i % side, i / side);
        let all = [
            (x > 0, i.wrapping_sub(1)),
            (x + 1 < side, i + 1),
            (y > 0, i.wrapping_sub(side)),
            (y + 1 < side, i + side),
        ];
        all.into_iter().filter(|(there, _)| *there).map(|(_, j)| j).collect::<Vec<_>>()
    };
    Csr::from_rows(side * side, side * side, |i, row| {
        let mut entries: Vec<(u32, f64)> = neighbours(i).into_iter().map(|j| (j as u32, -1.0)).collect();
        entries.push((i as u32, entries.len() as f64));
        entries.sort_by_key(|(j, _)| *j);
        row.extend(entries);
    })
    .unwrap()
}

fn noise(n: usize, seed: u64) -> Vec<f64> {
    let mut random = gallery::Random::new(seed);
    (0..n).map(|_| random.normal()).collect()
}

/// `b - A x`, summed up here.
fn residual<T: Real>(a: &Csr<T>, b: &[T], x: &[T]) -> Vec<f64> {
    let row = |i: usize| {
        let (columns, values) = a.row(i);
        let terms = columns.iter().zip(values).map(|(j, v)| v.to_f64() * x[*j as usize].to_f64());
        b[i].to_f64() - terms.fold(0.0, |sum, term| sum + term)
    };
    (0..a.rows()).map(row).collect()
}

fn norm(v: &[f64]) -> f64 {
    v.iter().map(|v| v * v).sum::<f64>().sqrt()
}

/// Solves as the program does, on the host: by `method` or the one that is advised.
fn solved<T: Real>(a: &Csr<T>, b: &[T], method: Option<Method>) -> (FallbackSolve<T>, Vec<T>) {
    let device = Device::host();
    let found = Examination::of(a).unwrap();
    let method = method.unwrap_or(found.advise(T::PRECISION).method);
    let matrix = if method.takes_rectangles() {
        Matrix::with_transpose(&device, a, Format::Auto)
    } else {
        Matrix::new(&device, a, Format::Auto)
    };
    let b = Vector::from_slice(&device, b).unwrap();
    let mut x = Vector::zeros(&device, a.cols()).unwrap();
    let setup = Setup::new(method, Stopping::for_precision::<T>());
    let go_on = &mut |_: &_| ControlFlow::Continue(());
    let chain = found.fallback_chain(&method);
    let outcome = solve_with_fallbacks((&matrix.unwrap(), a, None), &setup, &chain, (&b, &mut x), go_on).unwrap();
    (outcome, x.to_vec().unwrap())
}

/// Solves as the program does with `--scale`, on the host and without a preconditioner.
fn solved_scaled(a: &Csr<f64>, b: &[f64], method: Method) -> (FallbackSolve<f64>, Vec<f64>) {
    let setup = Setup::new(method, Stopping::for_precision::<f64>());
    let system = HostSystem { a, b, format: Format::Auto, partition: None };
    let mut x = vec![0.0; a.cols()];
    let go_on = &mut |_: &_| ControlFlow::Continue(());
    let outcome = solve_scaled_with_fallbacks(&Device::host(), system, &setup, &[None], &mut x, go_on).unwrap();
    (outcome, x)
}

/// The report tells of the system as it was given.
fn is_true<T: Real>(report: &Report, a: &Csr<T>, b: &[T], x: &[T]) {
    let r = norm(&residual(a, b, x));
    let terms = a.values().iter().map(|v| v.to_f64().powi(2)).sum::<f64>().sqrt();
    let rounding =
        16.0 * T::EPSILON * (report.rhs_norm + terms * norm(&x.iter().map(|v| v.to_f64()).collect::<Vec<_>>()));
    assert!((report.true_residual - r).abs() <= 1e-6 * r + rounding, "{} is {r}: {report}", report.true_residual);
}

#[test]
fn a_bar_with_rows_of_the_identity_is_solved() {
    let a = bar();
    for b in [a.product(&[1.0; 60]).unwrap(), noise(60, 3), vec![1.0; 60]] {
        let (FallbackSolve { report, .. }, x) = solved(&a, &b, None);
        assert!(report.converged(), "{report}");
        is_true(&report, &a, &b, &x);
        if report.stop == Stop::Rounded {
            assert!(report.backward_error.is_some_and(|error| error <= 16.0 * f64::EPSILON), "{report:?}");
        }
    }
}

#[test]
fn the_residual_of_a_scaled_solve_is_that_of_the_system_that_was_given() {
    let n = 60;
    let exponents = |by: usize| -> Vec<f64> { (0..n).map(|k| 10f64.powi((k * by % 7) as i32 - 3)).collect() };
    let inner = noise(n * n, 7);
    let a: Csr<f64> = dense(n, n, |i, j| inner[i * n + j] + if i == j { 8.0 } else { 0.0 });
    let a = a.scaled(&exponents(3), &exponents(5)).unwrap();
    let b = a.product(&vec![1.0; n]).unwrap();
    let (FallbackSolve { report, .. }, x) = solved_scaled(&a, &b, Method::Gmres { restart: 50 });
    is_true(&report, &a, &b, &x);
    assert!(report.stop == Stop::Converged && report.relative_residual() <= 1e-8, "{report}");
    assert!(report.history.len() > 2 && report.answer_iteration == report.iterations, "{report:?}");
}

#[test]
fn damping_is_one_of_the_unknowns_that_were_given() {
    let a: Csr<f64> = diagonal(&[1.0, 100.0]);
    for method in [Method::Lsqr { damp: 1.0 }, Method::Lsmr { damp: 1.0 }, Method::Cgls { damp: 1.0 }] {
        let (FallbackSolve { report, .. }, x) = solved_scaled(&a, &[1.0, 1.0], method);
        // (A'A + I) x = A'b.
        let wanted = [0.5, 100.0 / 10_001.0];
        assert!(x.iter().zip(wanted).all(|(x, w)| (x - w).abs() < 1e-9), "{method}: {x:?} {report}");
        assert!(report.converged() && report.method == method, "{report}");
        is_true(&report, &a, &[1.0, 1.0], &x);
    }
}

#[test]
fn systems_without_a_solution_end_with_the_least_residual() {
    // Without constants as null vectors: that of a Laplacian scaled from both sides.
    let side = 12;
    let weights: Vec<f64> = (0..side * side).map(|k| 1.0 + (k % 5) as f64).collect();
    let weighed = neumann(side).scaled(&weights, &weights).unwrap();
    let inverse: Vec<f64> = weights.iter().map(|w| 1.0 / w).collect();
    let part = |z: &[f64], b: &[f64]| z.iter().zip(b).map(|(z, b)| z * b).sum::<f64>().abs() / norm(z);
    let cases = [
        (diagonal(&[1.0, 2.0, 3.0, 0.0]), vec![0.0, 0.0, 0.0, 1.0], vec![1.0; 4]),
        (neumann(20), vec![1.0; 400], noise(400, 5)),
        (weighed, inverse, noise(side * side, 6)),
    ];
    for (a, null, b) in cases {
        let least = part(&null, &b);
        for method in [Some(Method::Minres), None] {
            let (FallbackSolve { report, .. }, x) = solved(&a, &b, method);
            is_true(&report, &a, &b, &x);
            assert_eq!(report.stop, Stop::LeastSquares, "{report}");
            assert!((report.true_residual - least).abs() <= 1e-6 * least, "{} {least}", report.true_residual);
            assert!(norm(&x) < 1e6, "{}", norm(&x));
            let words = Examination::quick(&a).unwrap().explain(&report).unwrap();
            assert!(words.contains("not in the range"), "{words}");
        }
    }
    // One that has a solution is solved as ever.
    let a = neumann(20);
    let b = a.product(&noise(400, 8)).unwrap();
    let (FallbackSolve { report, .. }, _) = solved(&a, &b, Some(Method::Minres));
    assert!(report.stop == Stop::Converged && report.projected.is_none(), "{report}");
}

#[test]
fn no_answer_that_runs_away_is_called_one() {
    let a: Csr<f64> = dense(3, 3, |i, j| if i.max(j) < 2 || i == j { 1.0 } else { 0.0 });
    let b = [1.0, 2.0, 1.0];
    for method in [Method::Cg, Method::BiCgStab, Method::Gmres { restart: 30 }, Method::FlexibleCg] {
        let (FallbackSolve { report, .. }, x) = solved(&a, &b, Some(method));
        assert!(!report.converged(), "{report} {x:?}");
        let report = solved_scaled(&a, &b, method).0.report;
        assert!(!report.converged(), "{report}");
    }
}

#[test]
fn an_end_as_least_squares_is_confirmed_row_by_row() {
    let a: Csr<f32> = diagonal(&[1.0, -1e8]);
    let (FallbackSolve { report, attempts, .. }, x) = solved(&a, &[1.0, 0.0], None);
    assert!(report.stop == Stop::Converged && x == [1.0, 0.0], "{x:?} {report}");
    assert!(attempts.last().unwrap().scaled);
    assert!(Examination::of(&a).unwrap().explain(&report).is_none());
}

#[test]
fn what_is_symmetric_to_rounding_is_solved_by_conjugate_gradients() {
    let a = gallery::poisson_2d::<f64>(40, 0.0).unwrap();
    let factors: Vec<f64> = (0..a.rows()).map(|k| 1.0 + (k % 4) as f64 * 2.2e-16).collect();
    let near = a.scaled(&factors, &vec![1.0; a.cols()]).unwrap();
    let b = near.product(&vec![1.0; a.cols()]).unwrap();
    let (FallbackSolve { report, .. }, _) = solved(&near, &b, None);
    assert!(report.method == Method::Cg && report.stop == Stop::Converged, "{report}");
}

#[test]
fn the_printed_chain_is_the_one_that_is_climbed() {
    // GMRES(50) crawls on this one; ILU(0) does it.
    let n = 60;
    let a: Csr<f64> = {
        let grid = gallery::poisson_2d::<f64>(n, 0.0).unwrap();
        let wind: Vec<(usize, usize, f64)> = (0..n * n)
            .flat_map(|i| {
                let (columns, values) = grid.row(i);
                let entry =
                    |(j, v): (&u32, &f64)| (i, *j as usize, v + if *j as usize == i + 1 { 0.3 } else { 0.0 });
                columns.iter().zip(values).map(entry).collect::<Vec<_>>()
            })
            .collect();
        Csr::from_triplets(n * n, n * n, &wind).unwrap()
    };
    let b = vec![1.0; n * n];
    for method in [Method::Gmres { restart: 5 }, Method::Gmres { restart: 50 }] {
        let (FallbackSolve { report, attempts, .. }, _) = solved(&a, &b, Some(method));
        assert!(report.converged(), "{report}");
        let first = &attempts[0];
        assert!(first.iterations <= 150 || first.end == Ok(Stop::Converged), "{first}");
        if first.end == Ok(Stop::Slow) {
            assert!(attempts.len() > 1 && first.iterations == 150, "{first}");
        }
    }
}

#[test]
fn a_solve_that_falls_and_then_crawls_leaves_half_to_the_others() {
    // The residual of the first rows falls at once, that of the others hardly ever.
    let (n, easy) = (3000, 100);
    let a = Csr::<f64>::from_rows(n, n, |i, row| {
        if i < easy {
            row.push((i as u32, 2.0));
            return;
        }
        if i > easy {
            row.push((i as u32 - 1, -1.0));
        }
        row.push((i as u32, 2.0));
        if i + 1 < n {
            row.push((i as u32 + 1, -1.001));
        }
    })
    .unwrap();
    let b: Vec<f64> = (0..n).map(|i| if i < easy { 1e4 } else { 1.0 }).collect();
    let (FallbackSolve { report, attempts, which, .. }, x) = solved(&a, &b, Some(Method::Gmres { restart: 10 }));
    assert!(report.converged() && which.is_some(), "{report}");
    is_true(&report, &a, &b, &x);
    assert_eq!((&attempts[0].end, attempts[0].iterations), (&Ok(Stop::Slow), 5000), "{}", attempts[0]);
}

#[test]
fn a_solve_that_is_cut_short_says_whose_iterate_the_answer_is() {
    let device = Device::host();
    // The residual of CG rises at first here, while the error falls.
    let n = 300;
    let a = Csr::<f64>::from_rows(n, n, |i, row| {
        let stiffness = |k: usize| if k < n / 2 { 1e6 } else { 1.0 };
        let (left, right) = (stiffness(i), stiffness(i + 1));
        if i > 0 {
            row.push((i as u32 - 1, -left));
        }
        row.push((i as u32, left + right));
        if i + 1 < n {
            row.push((i as u32 + 1, -right));
        }
    })
    .unwrap();
    let matrix = Matrix::new(&device, &a, Format::Csr).unwrap();
    let b = Vector::from_slice(&device, &(0..n).map(|k| if k == n - 1 { 1.0 } else { 1e-9 }).collect::<Vec<_>>())
        .unwrap();
    let run = |answer: Answer, method: Method| {
        let stopping = Stopping::for_precision::<f64>().with_answer(answer).with_check_every(1);
        let mut x = Vector::zeros(&device, n).unwrap();
        let mut solver = Solver::with(&matrix, Setup::new(method, stopping)).unwrap();
        let report = solver
            .solve_observed(&b, &mut x, &mut |p| {
                if p.iteration >= 40 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
            .unwrap();
        (report, x.to_vec().unwrap())
    };
    let (report, x) = run(Answer::ByMethod, Method::Cg);
    assert_eq!((report.stop, report.answer_iteration), (Stop::Cancelled, report.iterations), "{report}");
    assert!(report.which_answer().is_some_and(|words| words.contains("the last one")), "{report}");
    assert!(report.relative_residual() > 1.0 && x.iter().any(|v| *v != 0.0), "{report}");
    let (report, x) = run(Answer::Best, Method::Cg);
    assert!(report.answer_iteration == 0 && x.iter().all(|v| *v == 0.0), "{report}");
    assert!(report.to_string().contains("start guess"), "{report}");
    // The residual of MINRES never rises.
    let (report, _) = run(Answer::ByMethod, Method::Minres);
    assert_eq!(report.answer_iteration, report.iterations, "{report}");
}

#[test]
fn least_squares_never_end_by_a_gradient_that_rounding_made_0() {
    let device = Device::host();
    let a: Csr<f32> = diagonal(&[100.0, 0.01]);
    let matrix = Matrix::with_transpose(&device, &a, Format::Auto).unwrap();
    let b = Vector::from_slice(&device, &[1.0, 1.0]).unwrap();
    for method in
        [Method::Fista, Method::Pdhg, Method::Mrnsd, Method::Sirt { omega: 1.0 }, Method::Nnfcgls { restart: 30 }]
    {
        let mut x = Vector::zeros(&device, 2).unwrap();
        let stopping = Stopping::for_precision::<f32>().with_max_iterations(200_000);
        let mut solver = Solver::with(&matrix, Setup::new(method, stopping)).unwrap();
        solver.set_bounds(&[0.0; 2], &[f32::INFINITY; 2]).unwrap();
        let report = solver.solve(&b, &mut x).unwrap();
        let x = x.to_vec().unwrap();
        let left = residual(&a, &[1.0, 1.0], &x);
        // The gradient of the answer is the one that is told.
        let gradient = norm(&[100.0 * left[0], 0.01 * left[1]]);
        assert!(report.stop != Stop::LeastSquares || gradient <= 1e-4 * 100.0 * norm(&left), "{report} {x:?}");
        if report.converged() {
            assert!(norm(&left) < 0.1, "{report} {x:?}");
        }
        println!("{method}: {} x {x:?} gradient {gradient:e} told {:?}", report.stop, report.gradient);
    }
}

#[test]
fn a_fit_that_is_not_the_least_is_not_said_to_be_one() {
    let device = Device::host();
    let a: Csr<f64> = dense(30, 12, |i, j| 1.0 / (i + j + 1) as f64);
    let b: Vec<f64> = (0..30).map(|i| (1.7 * f64::from(i)).sin()).collect();
    let matrix = Matrix::with_transpose(&device, &a, Format::Auto).unwrap();
    let rhs = Vector::from_slice(&device, &b).unwrap();
    let jacobi = residuum::build_for(
        residuum::precond::Preconditioner::Jacobi,
        &Method::Cgls { damp: 0.0 },
        &device,
        &a,
        None,
    )
    .unwrap();
    for preconditioner in [None, Some(jacobi.operator)] {
        let mut setup = Setup::new(Method::Cgls { damp: 0.0 }, Stopping::for_precision::<f64>());
        setup.preconditioner = preconditioner;
        let mut x = Vector::zeros(&device, 12).unwrap();
        let report = Solver::with(&matrix, setup).unwrap().solve(&rhs, &mut x).unwrap();
        // The least sum of squares, by an orthogonal factorisation: 11.7.
        let squares = report.true_residual.powi(2);
        assert!(!report.converged() || squares < 1.01 * 12.0, "{report}: {squares}");
    }
}

fn json(output: &std::process::Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text)
        .unwrap_or_else(|e| panic!("{e}: {text} {}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn the_program_tells_of_the_file_and_tries_its_own_advice() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    matrix_market::write_matrix(&path("d.mtx"), &diagonal::<f64>(&[1.0, 100.0])).unwrap();
    npy::write(&path("b.npy"), &[2], &[1.0, 1.0]).unwrap();
    let solve = |args: &[&str]| {
        program("solve")
            .current_dir(folder.path())
            .args(args)
            .args(["--device", "host", "--json"])
            .output()
            .unwrap()
    };
    let args = ["d.mtx", "--rhs", "b.npy", "--method", "lsqr", "--damp", "1", "--scale", "--save", "x.npy"];
    let output = solve(&args);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let x = npy::read(&path("x.npy")).unwrap().data;
    assert!((x[0] - 0.5).abs() < 1e-9 && (x[1] - 100.0 / 10_001.0).abs() < 1e-9, "{x:?}");
    assert!(json(&output)["explanation"].is_null());
    // Pairs of unknowns that turn around each other: BiCGSTAB breaks down at once.
    let turn: Csr<f64> = dense(4, 4, |i, j| match (i, j) {
        (0, 1) | (2, 3) => 1.0,
        (1, 0) | (3, 2) => -1.0,
        _ => 0.0,
    });
    matrix_market::write_matrix(&path("turn.mtx"), &turn).unwrap();
    let output = solve(&["turn.mtx", "--method", "bicgstab"]);
    let value = json(&output);
    assert_eq!(output.status.code(), Some(1), "{value}");
    let tried = value["tried_instead"].as_array().unwrap();
    assert!(
        tried[0].as_str().unwrap().contains("--method gmres") && tried[0].as_str().unwrap().contains("converged"),
        "{tried:?}"
    );
}
