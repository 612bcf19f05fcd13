//! Every method: right answers, honest reasons for stopping, the same bits on every device and for any number of
//! right-hand sides.

use crate::common::problems::{Essence, Problem, essence, everything, problems};
use crate::common::{self, each_case, noise, reference};
use residuum::operator::{Diagonal, LinearOperator, LinearOperatorExt};
use residuum::precond::{Preconditioner, Sweep, SweepOptions};
use residuum::sparse::gallery;
use residuum::{
    BackendKind, Columns, Csr, Device, Format, Matrix, Method, Packing, Precision, Real, Regularization, Report,
    Setup, Solver, Stop, Stopping, Storage, Transposed, Vector,
};

fn stopping<T: Real>() -> Stopping {
    Stopping::for_precision::<T>().with_max_iterations(400)
}

fn the_same_everywhere<T: Real>(device: &Device) {
    for problem in problems::<T>() {
        let b: Vec<Vec<T>> = (0..3).map(|c| noise(problem.a.rows(), 30 + c)).collect();
        let b: Vec<&[T]> = b.iter().map(|v| &v[..]).collect();
        let host = reference::<T>(device);
        let wanted: Vec<Essence> = b
            .iter()
            .map(|b| problem.solve(&host, &[b], &stopping::<T>()))
            .map(|solved| essence(&solved[0].0, &solved[0].1))
            .collect();
        for columns in [1, 3] {
            let looks = stopping::<T>().with_check_every(5);
            let solved = problem.solve(device, &b[..columns], &looks);
            for ((x, report), wanted) in solved.iter().zip(&wanted) {
                assert!(report.iterations > 2, "{report}");
                assert!(
                    &essence(x, report) == wanted,
                    "{} ({:?}, matrix {}) of {columns} on {} {}: {report}",
                    problem.method,
                    problem.diagonal.is_some(),
                    problem.as_matrix,
                    device.info().name,
                    device.tuning()
                );
            }
        }
    }
}

#[test]
fn methods_are_the_same_everywhere_f64() {
    each_case::<f64>(the_same_everywhere::<f64>);
}

#[test]
fn methods_are_the_same_everywhere_f32() {
    each_case::<f32>(the_same_everywhere::<f32>);
}

/// `A x` on the host, plainly.
fn times(a: &Csr<f64>, x: &[f64]) -> Vec<f64> {
    (0..a.rows()).map(|i| a.row(i).0.iter().zip(a.row(i).1).map(|(j, v)| v * x[*j as usize]).sum()).collect()
}

fn norm(x: &[f64]) -> f64 {
    x.iter().map(|v| v * v).sum::<f64>().sqrt()
}

#[test]
fn every_method_solves_its_problem() {
    let device = Device::host();
    for problem in problems::<f64>() {
        let b = match problem.method {
            // Counts that no image explains are no least squares to it.
            Method::Mlem => {
                times(&problem.a, &noise::<f64>(problem.a.cols(), 30).into_iter().map(f64::abs).collect::<Vec<_>>())
            }
            _ => noise::<f64>(problem.a.rows(), 30),
        };
        let strict = stopping::<f64>().with_max_iterations(4000).with_gradient_rtol(f64::EPSILON);
        let solved = problem.solve(&device, &[&b], &strict);
        let (x, report) = &solved[0];
        println!("{report}");
        assert!(report.converged(), "{report}");
        let ax = times(&problem.a, x);
        let r: Vec<f64> = b.iter().zip(&ax).map(|(b, ax)| b - ax).collect();
        approx::assert_relative_eq!(norm(&r), report.true_residual, max_relative = 1e-6, epsilon = 1e-14);
        if report.stop == Stop::Converged {
            assert!(norm(&r) <= 1.0001e-8 * norm(&b), "{report}");
            continue;
        }
        // s = A'r - damp² (x - x_ref) vanishes at a minimum.
        let damp: f64 = if problem.reference.is_some() { 0.7 } else { 0.0 };
        let zero = vec![0.0; x.len()];
        let reference = problem.reference.as_ref().unwrap_or(&zero);
        let at = times(&problem.a.transpose(), &r);
        let s: Vec<f64> = (0..x.len()).map(|i| at[i] - damp * damp * (x[i] - reference[i])).collect();
        assert!(norm(&s) <= 1e-10 * norm(&b), "{report}: {:e}", norm(&s));
        approx::assert_abs_diff_eq!(norm(&s), report.gradient.unwrap(), epsilon = 1e-13);
    }
}

fn each_device(case: impl FnMut(&Device)) {
    common::devices_in(Precision::Double).iter().for_each(case);
}

#[test]
fn nothing_to_do_is_converged_at_iteration_0() {
    each_device(|device| {
        for problem in problems::<f64>().into_iter().filter(|p| p.reference.is_none()) {
            let zero = vec![0.0; problem.a.rows()];
            let solved = problem.solve(device, &[&zero], &stopping::<f64>());
            assert_eq!((solved[0].1.stop, solved[0].1.iterations), (Stop::Converged, 0), "{}", solved[0].1);
            assert!(solved[0].0.iter().all(|x| *x == 0.0));
            // A start guess that already solves.
            let mut start = noise::<f64>(problem.a.cols(), 8);
            if problem.method == Method::Mlem {
                start.iter_mut().for_each(|x| *x = x.abs());
            }
            let b = times(&problem.a, &start);
            let solved = Problem { start, ..problem }.solve(device, &[&b], &stopping::<f64>());
            assert_eq!((solved[0].1.stop, solved[0].1.iterations), (Stop::Converged, 0), "{}", solved[0].1);
        }
    });
}

/// A solve that has not gained a sixteenth of its digits ends after exactly the iterations of its patience, wherever the host looks; one that
/// has goes on as if there were none.
#[test]
fn slow_solves_end_after_their_patience() {
    each_device(|device| {
        let a = gallery::poisson_2d::<f64>(24, 0.0).unwrap();
        let [b, other]: [Vec<f64>; 2] =
            [0.0, 0.25].map(|slope| (0..a.rows()).map(|i| 1.0 + slope * i as f64).collect());
        for method in [Method::Cg, Method::Minres, Method::BiCgStab, Method::Gmres { restart: 100 }] {
            let run = |patience, check_every, b: &[&[f64]]| {
                let stopping = stopping::<f64>().with_patience(patience).with_check_every(check_every);
                Problem::new(method, &a).solve(device, b, &stopping)
            };
            let whole = &run(None, 64, &[&b])[0];
            assert!(whole.1.converged(), "{}", whole.1);
            // The least iteration after which a sixteenth is gained.
            let needed =
                whole.1.history.iter().position(|norm| *norm <= 0.1f64.sqrt() * whole.1.history[0]).unwrap();
            assert!(needed > 4, "{needed}");
            for check_every in [1, 7, 64] {
                let slow = &run(Some(needed - 1), check_every, &[&b])[0].1;
                assert_eq!((slow.stop, slow.iterations), (Stop::Slow, needed - 1), "{slow}");
                let enough = &run(Some(needed), check_every, &[&b])[0];
                assert!(essence(&enough.0, &enough.1) == essence(&whole.0, &whole.1), "{}", enough.1);
            }
            // Columns are left together: as long as one gains they go on.
            let zero = vec![0.0; a.rows()];
            let both = run(Some(needed - 1), 64, &[&b, &zero]);
            assert_eq!([both[0].1.stop, both[1].1.stop], [Stop::Slow, Stop::Converged]);
            let both = run(Some(4), 64, &[&b, &other]);
            assert!(both.iter().all(|(_, report)| (report.stop, report.iterations) == (Stop::Slow, 4)));
        }
        // Nothing is slow where no end is asked for.
        let stopping = Stopping::after(9).with_patience(2);
        let solved = Problem::new(Method::Cg, &a).solve(device, &[&b], &stopping);
        assert_eq!((solved[0].1.stop, solved[0].1.iterations), (Stop::MaxIterations, 9), "{}", solved[0].1);
    });
}

/// BiCG ends after as many steps as there are unknowns; an iteration of BiCGSTAB(2) has two. Eigenvalues next to the imaginary axis stop
/// BiCGSTAB, whose polynomials have real roots.
#[test]
fn two_steps_of_bicg_are_an_iteration_of_bicgstab2() {
    each_device(|device| {
        let small = Csr::from_rows(8, 8, |i, row| {
            row.extend(
                (0..8).map(|j| (j as u32, f64::from(u8::from(i == j)) * 3.0 + ((3 * i + 5 * j) as f64).sin())),
            );
        });
        let b = noise::<f64>(8, 11);
        let solved = Problem::new(Method::BiCgStab2, &small.unwrap()).solve(device, &[&b], &stopping::<f64>());
        assert!(solved[0].1.converged() && solved[0].1.iterations <= 4, "{}", solved[0].1);

        // The first of the two steps solves this one.
        let double = Csr::from_rows(9, 9, |i, row| row.push((i as u32, 2.0))).unwrap();
        let solved =
            Problem::new(Method::BiCgStab2, &double).solve(device, &[&b[..].repeat(2)[..9]], &stopping::<f64>());
        assert!(solved[0].1.converged() && solved[0].1.iterations == 1, "{}", solved[0].1);

        let skew = Csr::from_rows(400, 400, |i, row| {
            if i > 0 {
                row.push((i as u32 - 1, -1.0));
            }
            row.push((i as u32, 0.02));
            if i < 399 {
                row.push((i as u32 + 1, 1.0));
            }
        });
        let (skew, b) = (skew.unwrap(), noise::<f64>(400, 12));
        let within = |method, most| {
            let stopping = stopping::<f64>().with_max_iterations(most);
            Problem::new(method, &skew).solve(device, &[&b], &stopping).remove(0).1
        };
        let (twice, once) = (within(Method::BiCgStab2, 500), within(Method::BiCgStab, 1000));
        assert!(twice.converged(), "{twice}");
        assert!(!once.converged(), "{once}");
    });
}

#[test]
fn reasons_for_stopping_are_their_own() {
    each_device(|device| {
        let turn = Csr::from_triplets(2, 2, &[(0, 1, 1.0), (1, 0, -1.0)]).unwrap();
        let solved = Problem::new(Method::BiCgStab, &turn).solve(device, &[&[1.0, 2.0]], &stopping::<f64>());
        assert_eq!(solved[0].1.stop, Stop::Breakdown, "{}", solved[0].1);
        assert_eq!(solved[0].0, [0.0, 0.0]);

        let definite = gallery::poisson_2d::<f64>(12, 0.5).unwrap();
        let b = noise::<f64>(144, 30);
        let negative = Some(vec![-1.0; 144]);
        let solved = Problem { diagonal: negative, ..Problem::new(Method::Cg, &definite) }.solve(
            device,
            &[&b],
            &stopping::<f64>(),
        );
        assert_eq!(solved[0].1.stop, Stop::IndefinitePreconditioner, "{}", solved[0].1);

        let now = stopping::<f64>().with_time_limit(std::time::Duration::ZERO).with_check_every(2);
        let solved = Problem::new(Method::SteepestDescent, &definite).solve(device, &[&b], &now);
        assert_eq!((solved[0].1.stop, solved[0].1.iterations), (Stop::TimeLimit, 2), "{}", solved[0].1);
        assert!(solved[0].1.true_residual < norm(&b));

        // Bounds that do not contain the spectrum: it diverges, and the best iterate is the start.
        let wrong = Method::Chebyshev { smallest: 0.1, largest: 1.0 };
        let many = stopping::<f64>().with_max_iterations(5000);
        let solved = Problem::new(wrong, &definite).solve(device, &[&b], &many);
        assert!(!solved[0].1.converged(), "{}", solved[0].1);
        assert!(solved[0].1.true_residual <= norm(&b) * 1.000_001, "{}", solved[0].1);

        // Tolerances below rounding end at the attainable accuracy.
        let strict = many.with_rtol(1e-30);
        let solved = Problem::new(Method::Cg, &definite).solve(device, &[&b], &strict);
        assert_eq!(solved[0].1.stop, Stop::Stagnated, "{}", solved[0].1);
        assert!(solved[0].1.true_residual < 1e-13 * norm(&b));
    });
}

/// With exact residuals the recurrence says what is true, beyond the precision too, and looks change nothing.
#[test]
fn exact_residuals_hold_the_recurrence_to_the_truth() {
    let run = |device: &Device, problem: &Problem<f32>, columns: usize, exact_every: usize, check_every: usize| {
        let b: Vec<Vec<f32>> = (0..2).map(|c| noise(problem.a.rows(), 30 + c)).collect();
        let b: Vec<&[f32]> = b.iter().take(columns).map(|v| &v[..]).collect();
        problem.solve(device, &b, &Stopping::after(61).with_exact_every(exact_every).with_check_every(check_every))
    };
    let gap = |report: &Report| report.true_residual / report.residual;
    each_device(|device| {
        let host = reference::<f32>(device);
        let mut drifted = 0;
        for problem in problems::<f32>().iter().filter(|p| p.method.carries_residual()) {
            let wanted = run(&host, problem, 2, 10, 512);
            // The last iteration has nothing computed afresh after it; four products lower the residual further than two.
            let most = if problem.method == Method::BiCgStab2 { 100.0 } else { 10.0 };
            for (columns, check_every) in [(1, 3), (2, 7)] {
                for ((x, report), wanted) in run(device, problem, columns, 10, check_every).iter().zip(&wanted) {
                    assert!((0.1..most).contains(&gap(report)), "{report}, not {:e}", report.residual);
                    assert!(essence(x, report) == essence(&wanted.0, &wanted.1), "{report} on {}", device.tuning());
                }
            }
            drifted += usize::from(gap(&run(device, problem, 1, 0, 512)[0].1) > 100.0);
        }
        // Without them it drifts away, or this test tests nothing.
        assert!(drifted >= 3, "{drifted}");
    });
}

/// A solve that fails gives back the iterate with the least residual, beside columns that do not fail.
#[test]
fn failures_keep_their_best_iterate() {
    each_device(|device| {
        // One eigenvalue is negative.
        let problem = Problem::new(Method::Cg, &gallery::poisson_2d::<f64>(12, -0.15).unwrap());
        let fails = noise::<f64>(144, 30);
        let zero = vec![0.0; 144];
        let alone = problem.solve(device, &[&fails], &stopping::<f64>());
        let beside = problem.solve(device, &[&zero, &fails], &stopping::<f64>());
        assert_eq!(beside[0].1.stop, Stop::Converged);
        for (x, report) in [&alone[0], &beside[1]] {
            assert_eq!(report.stop, Stop::Indefinite, "{report}");
            let least = report.history.iter().copied().fold(f64::INFINITY, f64::min);
            let last = report.history[report.history.len() - 1];
            assert!(least < 0.5 * last && least < 0.5 * report.history[0], "{report}");
            approx::assert_relative_eq!(report.true_residual, least, max_relative = 1e-10);
            let ax = times(&problem.a, x);
            let r: Vec<f64> = fails.iter().zip(&ax).map(|(b, ax)| b - ax).collect();
            approx::assert_relative_eq!(norm(&r), least, max_relative = 1e-10);
        }
        assert_eq!(alone[0].0, beside[1].0);
    });
}

#[test]
fn set_ups_that_cannot_work_are_refused() {
    let device = Device::host();
    let a = Matrix::new(&device, &gallery::poisson_2d::<f64>(4, 0.5).unwrap(), Format::Auto).unwrap();
    let wide = Matrix::new(&device, &gallery::random::<f64>(16, 20, 60, 3).unwrap(), Format::Auto).unwrap();
    let setup = |method| Setup::<f64>::new(method, stopping::<f64>());
    let refused = |name: &str, setup: Setup<f64>| match Solver::with(&a, setup) {
        Err(error) => assert_eq!(error.argument().map(|(found, _)| found), Some(name), "{error}"),
        other => panic!("{name}: {other:?}"),
    };
    refused("damp", setup(Method::Lsqr { damp: f64::NAN }));
    refused("omega", setup(Method::Stationary { omega: 0.0 }));
    refused("smallest", setup(Method::Chebyshev { smallest: 2.0, largest: 1.0 }));
    refused("columns", setup(Method::Cg).with_columns(5));
    refused("preconditioner", setup(Method::SteepestDescent).with_preconditioner(&a));
    refused("transpose", setup(Method::Lsmr { damp: 0.0 }));
    for method in Method::ALL.iter().copied().filter(|m| !m.takes_rectangles() && !m.carries_residual()) {
        let stopping = stopping::<f64>().with_exact_every(10);
        refused("exact_every", Setup::new(method, stopping));
    }
    assert!(matches!(Solver::with(&wide, setup(Method::BiCgStab)), Err(residuum::Error::Shape { .. })));
    let wrong = setup(Method::Cg).with_preconditioner(&wide);
    assert!(matches!(Solver::with(&a, wrong), Err(residuum::Error::Shape { .. })));
    let reference = Vector::zeros(&device, 16).unwrap();
    let mut plain = Solver::with(&a, setup(Method::Cg)).unwrap();
    assert!(matches!(plain.set_reference(&reference), Err(residuum::Error::Conflict { name: "reference", .. })));
    for method in Method::ALL {
        match method.name().parse::<Method>() {
            Ok(parsed) => assert_eq!(parsed, *method),
            // Without bounds it would diverge.
            Err(error) => assert!(matches!(method, Method::Chebyshev { .. }), "{error}"),
        }
    }
    assert!("newton".parse::<Method>().is_err() && "chebyshev".parse::<Method>().is_err());
}

#[test]
fn several_threads_solve_on_one_device() {
    each_device(|device| {
        let wanted: Vec<Essence> = problems::<f64>()
            .iter()
            .map(|p| p.solve(&Device::host(), &[&noise::<f64>(p.a.rows(), 30)], &stopping::<f64>()))
            .map(|solved| essence(&solved[0].0, &solved[0].1))
            .collect();
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|thread| {
                    scope.spawn(move || {
                        let solve = |(k, p): (usize, Problem<f64>)| {
                            let b = noise::<f64>(p.a.rows(), 30);
                            let solved = p.solve(device, &[&b], &stopping::<f64>());
                            (k, essence(&solved[0].0, &solved[0].1))
                        };
                        problems::<f64>()
                            .into_iter()
                            .enumerate()
                            .skip(thread)
                            .step_by(4)
                            .map(solve)
                            .collect::<Vec<_>>()
                    })
                })
                .collect();
            for thread in threads {
                for (k, found) in thread.join().unwrap() {
                    assert!(found == wanted[k], "problem {k} on {}", device.info().name);
                }
            }
        });
    });
}

/// A program's solvers, stored beside what they solve with.
struct Simulation {
    matrix: Matrix<f64>,
    solvers: Vec<Solver<f64>>,
}

#[test]
fn solvers_are_owned_stored_and_sent() {
    fn sendable<S: Send + 'static>() {}
    sendable::<Solver<f64>>();
    each_device(|device| {
        let a = gallery::poisson_2d::<f64>(20, 0.1).unwrap();
        let ssor = Sweep::new(device, &a, SweepOptions::ssor(1.4)).unwrap();
        let setup = || Setup::new(Method::Cg, stopping::<f64>());
        let matrix = Matrix::with_transpose(device, &a, Format::Auto).unwrap();
        let mut simulation = Simulation {
            solvers: vec![
                Solver::with(&matrix, setup()).unwrap(),
                Solver::with(&matrix, setup().with_preconditioner(&ssor)).unwrap(),
                // The adjoint of a symmetric matrix, which is fused like the matrix.
                Solver::new(matrix.clone().adjoint().unwrap().shared(), Method::Cg, stopping::<f64>()).unwrap(),
            ],
            matrix,
        };
        let b = Vector::from_slice(device, &noise::<f64>(400, 3)).unwrap();
        let solve = |mut solver: Solver<f64>, b: &Vector<f64>| {
            let mut x = Vector::zeros(b.device(), 400).unwrap();
            let report = solver.solve(b, &mut x).unwrap();
            assert!(report.converged(), "{report}");
            (x.to_vec().unwrap(), report.iterations, report.launches_per_iteration)
        };
        let last = simulation.solvers.pop().unwrap();
        let first = simulation.solvers.remove(0);
        // The matrix that the program held is gone before the solvers that share it.
        let rows = simulation.matrix.rows();
        drop(simulation.matrix);
        let (plain, adjoint) = std::thread::scope(|scope| {
            let thread = scope.spawn(|| solve(first, &b));
            (thread.join().unwrap(), solve(last, &b))
        });
        assert_eq!(plain.0.len(), rows);
        assert!(plain.2 <= 2, "{} launches", plain.2);
        assert!(plain == adjoint, "a symmetric matrix and its adjoint on {}", device.info().name);
        let preconditioned = solve(simulation.solvers.remove(0), &b);
        assert!(preconditioned.1 < plain.1, "{} {}", preconditioned.1, plain.1);
    });
}

#[test]
fn new_values_need_no_new_set_up() {
    each_device(|device| {
        let first = gallery::poisson_2d::<f64>(14, 0.1).unwrap();
        let mut second = first.clone();
        second.values_mut().iter_mut().enumerate().for_each(|(k, v)| *v *= 1.0 + 0.01 * (k % 7) as f64);
        let b = Vector::from_slice(device, &noise::<f64>(196, 3)).unwrap();
        // More values than a table holds, where the first ones were in one.
        let mut third = first.clone();
        third.values_mut().iter_mut().enumerate().for_each(|(k, v)| *v *= 1.0 + 1e-5 * k as f64);
        // Values that `f32` holds, and others of these.
        let single = third.rounded_to_f32().unwrap();
        let mut other_single = single.clone();
        other_single.values_mut().iter_mut().for_each(|v| *v *= 2.0);
        let plain = Format::ALL.iter().copied().chain([Format::Auto]);
        let stored = |(format, packing)| {
            Storage::default().with_format(format).with_packing(packing).with_transposed(Transposed::Copy)
        };
        let packed = [Format::Csr, Format::Dia].map(|format| (format, Packing::Always));
        for storage in plain.map(|format| (format, Packing::Auto)).chain(packed).map(stored) {
            // From a table to none and back; from values in 32 bits to others of these, and to others.
            let packed = [(&first, &[&second, &third, &first][..]), (&single, &[&other_single, &third, &single])];
            let starts = if storage.packing == Packing::Always {
                &packed[..]
            } else {
                &[(&first, &[&second, &third, &first][..])]
            };
            let methods = [Method::Cg, Method::BiCgStab, Method::Lsqr { damp: 0.0 }];
            for (method, (start, sequence)) in
                methods.iter().flat_map(|method| starts.iter().map(|s| (*method, *s)))
            {
                let solve = |solver: &mut Solver<f64>| {
                    let mut x = Vector::zeros(device, 196).unwrap();
                    let report = solver.solve(&b, &mut x).unwrap();
                    essence(&x.to_vec().unwrap(), &report)
                };
                let fresh = |a: &Csr<f64>| {
                    let matrix = Matrix::stored(device, a, storage).unwrap();
                    solve(&mut Solver::new(&matrix, method, stopping::<f64>()).unwrap())
                };
                let matrix = Matrix::stored(device, start, storage).unwrap();
                let mut solver = Solver::new(&matrix, method, stopping::<f64>()).unwrap();
                let words = format!("{method} with {storage:?} on {}", device.info().name);
                assert!(solve(&mut solver) == fresh(start), "{words}");
                for values in sequence.iter().copied() {
                    // A clone, as a program would keep it.
                    matrix.clone().update_values(values).unwrap();
                    approx::assert_relative_eq!(
                        matrix.frobenius_norm(),
                        norm(values.values()),
                        max_relative = 1e-12
                    );
                    assert!(solve(&mut solver) == fresh(values), "new values: {words}");
                }
            }
        }
        let matrix = Matrix::new(device, &first, Format::Auto).unwrap();
        let mut solver = Solver::new(&matrix, Method::Cg, stopping::<f64>()).unwrap();
        let structure = |a: &Csr<f64>| matches!(matrix.update_values(a), Err(residuum::Error::Structure { .. }));
        assert!(structure(&gallery::poisson_2d(15, 0.1).unwrap()));
        let (offsets, mut columns, values) = first.clone().into_parts();
        columns[1] += 1;
        assert!(structure(&Csr::new(196, 196, offsets, columns, values).unwrap()), "one entry elsewhere");
        let traced = residuum::operator::Stencil::laplacian_2d(14, 14).unwrap().operator::<f64>(device).unwrap();
        assert!(traced.update_values(&first).is_err());
        second.values_mut()[5] = f64::NAN;
        assert!(matches!(matrix.update_values(&second), Err(residuum::Error::NotFinite { index: 5, .. })));
        // Values far from those that the solver was set up for need another scaling.
        second.values_mut().iter_mut().for_each(|v| *v = 1e-250);
        matrix.update_values(&second).unwrap();
        let mut x = Vector::zeros(device, 196).unwrap();
        let refused = solver.solve(&b, &mut x);
        assert!(matches!(refused, Err(residuum::Error::Conflict { name: "matrix", .. })), "{refused:?}");
    });
}

#[test]
fn corrections_of_a_solver_can_be_replaced() {
    each_device(|device| {
        let a = gallery::random::<f32>(150, 40, 700, 3).unwrap();
        let matrix = Matrix::with_transpose(device, &a, Format::Auto).unwrap();
        let b: Vec<Vec<f32>> = (0..2).map(|c| noise(150, 30 + c)).collect();
        let b = Columns::new(device, &[&b[0][..], &b[1][..]]).unwrap();
        let setup = || Setup::new(Method::Cgnr, Stopping::after(25)).with_columns(2);
        let solve = |solver: &mut Solver<f32>| {
            let mut x = Columns::zeros(device, 40, 2).unwrap();
            let reports = solver.solve_many(&b, &mut x).unwrap();
            let columns = x.to_vecs().unwrap();
            columns.iter().zip(&reports).map(|(x, report)| essence(x, report)).collect::<Vec<_>>()
        };
        let smooth = Regularization::none().with_smooth(0.5).with_width(8);
        let mut solver = Solver::with(&matrix, setup()).unwrap();
        // One for all, one for each (total variation is new), none again.
        for regularizations in [vec![smooth.clone()], vec![everything(8), smooth.clone()], vec![]] {
            solver.set_regularizations(&regularizations).unwrap();
            let fresh = solve(&mut Solver::with(&matrix, setup().with_regularizations(&regularizations)).unwrap());
            assert!(solve(&mut solver) == fresh, "{regularizations:?} on {}", device.info().name);
        }
        let refused = |solver: &mut Solver<f32>, regularizations: &[Regularization], name: &str| {
            let error = solver.set_regularizations(regularizations).unwrap_err();
            assert!(error.argument().is_some_and(|(found, _)| found == name), "{error}");
        };
        refused(&mut solver, &vec![smooth.clone(); 3], "regularizations");
        refused(&mut solver, &[smooth.clone().with_width(7)], "width");
        refused(&mut solver, &[Regularization::none().with_tikhonov(1e30)], "regularizations");
        let mut cgls = Solver::new(&matrix, Method::Cgls { damp: 0.0 }, Stopping::after(2)).unwrap();
        refused(&mut cgls, std::slice::from_ref(&smooth), "regularizations");
        assert!(
            Solver::with(&matrix, Setup::new(Method::Cgne, Stopping::after(2)).with_regularizations(&[smooth]))
                .is_err()
        );
        // A refusal changes nothing.
        assert!(solve(&mut solver) == solve(&mut Solver::with(&matrix, setup()).unwrap()));
    });
}

/// A preconditioner that is another one each time: a few iterations of another method.
struct Inner<T: Real> {
    matrix: Matrix<T>,
    solver: std::sync::Mutex<Solver<T>>,
}

impl<T: Real> Inner<T> {
    fn new(matrix: &Matrix<T>, method: Method, iterations: usize) -> Self {
        let solver = Solver::new(matrix, method, Stopping::after(iterations)).unwrap();
        Self { matrix: matrix.clone(), solver: std::sync::Mutex::new(solver) }
    }
}

impl<T: Real> LinearOperator<T> for Inner<T> {
    fn device(&self) -> &Device {
        self.matrix.device()
    }
    fn rows(&self) -> usize {
        self.matrix.rows()
    }
    fn cols(&self) -> usize {
        self.matrix.cols()
    }
    fn apply(&self, x: &Vector<T>, z: &mut Vector<T>) -> residuum::Result<()> {
        z.fill(T::default())?;
        let _report = self.solver.lock().unwrap().solve(x, z)?;
        Ok(())
    }
}

#[test]
fn flexible_cg_takes_a_preconditioner_that_changes() {
    each_case::<f64>(|device| {
        let a = gallery::poisson_2d::<f64>(40, 0.0).unwrap();
        let entries: Vec<f64> = (0..1600).map(|i| 0.2 + 0.05 * f64::from(i % 3)).collect();
        let solve = |device: &Device, method: Method, which: &str, exact_every: usize| {
            let matrix = Matrix::new(device, &a, Format::Csr).unwrap();
            let setup = Setup::new(method, stopping::<f64>().with_exact_every(exact_every));
            let setup = match which {
                "none" => setup,
                "diagonal" => {
                    let entries = Vector::from_slice(device, &entries).unwrap();
                    setup.with_preconditioner(Diagonal::new(entries).unwrap())
                }
                "sweep" => setup.with_preconditioner(Sweep::new(device, &a, SweepOptions::ssor(1.2)).unwrap()),
                _ => setup.with_preconditioner(Inner::new(&matrix, Method::Minres, 6).shared()),
            };
            let b = Vector::from_slice(device, &noise::<f64>(1600, 3)).unwrap();
            let mut x = Vector::zeros(device, 1600).unwrap();
            let report = Solver::with(&matrix, setup).unwrap().solve(&b, &mut x).unwrap();
            (essence(&x.to_vec().unwrap(), &report), report)
        };
        for (which, exact_every) in [("none", 0), ("diagonal", 0), ("sweep", 0), ("inner", 0), ("sweep", 7)] {
            let (found, report) = solve(device, Method::FlexibleCg, which, exact_every);
            assert!(report.converged(), "{which}: {report}");
            let host = solve(&reference::<f64>(device), Method::FlexibleCg, which, exact_every);
            assert!(found == host.0, "{which} on {}", device.info().name);
            if device.info().index.is_none() {
                let (_, cg) = solve(device, Method::Cg, which, exact_every);
                println!("{which}: flexible {}, cg {} ({})", report.iterations, cg.iterations, cg.stop);
                match which {
                    // CG loses what it knows of its directions.
                    "inner" => assert!(4 * report.iterations < 3 * cg.iterations, "{report}; {cg}"),
                    _ => assert!(report.iterations.abs_diff(cg.iterations) <= 1, "{which}: {report}; {cg}"),
                }
            }
        }
    });
}

/// An indefinite matrix, preconditioned by what suits its definite part.
#[test]
fn minres_takes_a_definite_preconditioner() {
    each_case::<f64>(|device| {
        let definite = gallery::poisson_2d::<f64>(30, 0.0).unwrap();
        let a = gallery::poisson_2d::<f64>(30, -0.3).unwrap();
        let entries: Vec<f64> = (0..900).map(|i| 0.5 + 0.3 * f64::from(i % 5)).collect();
        let solve = |device: &Device, which: &str| {
            let matrix = Matrix::new(device, &a, Format::Auto).unwrap();
            let diagonal = |entries: &[f64]| Diagonal::new(Vector::from_slice(device, entries).unwrap()).unwrap();
            let setup = Setup::new(Method::Minres, stopping::<f64>());
            let setup = match which {
                "none" => setup,
                "identity" => setup.with_preconditioner(diagonal(&[1.0; 900])),
                "diagonal" => setup.with_preconditioner(diagonal(&entries)),
                "matrix" => {
                    let triplets: Vec<_> = entries.iter().enumerate().map(|(i, d)| (i, i, *d)).collect();
                    let m = Csr::from_triplets(900, 900, &triplets).unwrap();
                    setup.with_preconditioner(Matrix::new(device, &m, Format::Csr).unwrap())
                }
                "sainv" => setup.with_preconditioner(
                    "sainv".parse::<Preconditioner>().unwrap().build(device, &definite).unwrap(),
                ),
                "ssor" => {
                    setup.with_preconditioner(Sweep::new(device, &definite, SweepOptions::ssor(1.0)).unwrap())
                }
                _ => setup.with_preconditioner(diagonal(&[-1.0; 900])),
            };
            let b = Vector::from_slice(device, &noise::<f64>(900, 3)).unwrap();
            let mut x = Vector::zeros(device, 900).unwrap();
            let report = Solver::with(&matrix, setup).unwrap().solve(&b, &mut x).unwrap();
            (essence(&x.to_vec().unwrap(), &report), report)
        };
        let mut found = std::collections::BTreeMap::new();
        for which in ["none", "identity", "diagonal", "matrix", "sainv", "ssor"] {
            let (essence, report) = solve(device, which);
            assert!(report.converged(), "{which}: {report}");
            // The recurrence carries the residual itself.
            assert!(
                (report.residual - report.true_residual).abs() < 1e-3 * report.true_residual,
                "{which}: {report}"
            );
            assert!(report.history.windows(2).all(|pair| pair[1] < 3.0 * pair[0]), "{which}");
            assert!(essence == solve(&reference::<f64>(device), which).0, "{which} on {}", device.info().name);
            found.insert(which, report.iterations);
        }
        println!("{found:?}");
        assert!(found["identity"].abs_diff(found["none"]) <= 1 && found["diagonal"].abs_diff(found["matrix"]) <= 1);
        assert!(found["none"] < found["diagonal"], "that one is of no use");
        assert!(3 * found["ssor"] < 2 * found["none"] && found["sainv"] < found["none"], "{found:?}");
        assert_eq!(solve(device, "negative").1.stop, Stop::IndefinitePreconditioner);
    });
}

#[test]
fn flexible_cg_blames_no_preconditioner_that_it_has_not() {
    // A system so ill-conditioned that a residual computed afresh is another one than that of the recurrence.
    let hilbert =
        Csr::from_rows(8, 8, |i, row| row.extend((0..8u32).map(|j| (j, 1.0 / (1.0 + i as f64 + f64::from(j))))));
    let matrix = Matrix::new(&Device::host(), &hilbert.unwrap(), Format::Csr).unwrap();
    for (seed, exact_every) in (1..9).flat_map(|seed| [(seed, 0), (seed, 5), (seed, 50)]) {
        let stopping = stopping::<f64>().with_rtol(1e-30).with_exact_every(exact_every);
        let mut solver = Solver::new(&matrix, Method::FlexibleCg, stopping).unwrap();
        let b = Vector::from_slice(&Device::host(), &noise::<f64>(8, seed)).unwrap();
        let mut x = Vector::zeros(&Device::host(), 8).unwrap();
        let report = solver.solve(&b, &mut x).unwrap();
        assert!(report.stop != Stop::IndefinitePreconditioner, "{seed} {exact_every}: {report}");
    }
}

/// A matrix with so few and so long rows that a GPU multiplies by it in launches of their own: the bits of the host's.
#[test]
fn long_rows_are_multiplied_apart_with_the_same_bits() {
    let (rows, cols) = (30, 80_000);
    let a = Csr::from_rows(rows, cols, |i, row| {
        let entry = |j: usize| (j as u32, (1.0 + ((i * j) % 7) as f32) / 64.0);
        row.extend((0..cols).filter(|j| (i + j) % 8 != 0).map(entry));
    })
    .unwrap();
    let b = noise::<f32>(rows, 4);
    let bounded = |method| matches!(method, Method::Fista | Method::Nnfcgls { .. });
    let methods = [Method::Lsqr { damp: 0.5 }, Method::Fista, Method::Nnfcgls { restart: 4 }, Method::Cgnr];
    let solve = |device: &Device, method: Method, format: Format| -> (Vec<u32>, Report) {
        let matrix = Matrix::with_transpose(device, &a, format).unwrap();
        let mut setup = Setup::new(method, Stopping::after(3));
        if bounded(method) {
            setup.regularizations = vec![Regularization::none().with_lower(0.0)];
        }
        let mut x = Vector::zeros(device, cols).unwrap();
        let b = Vector::from_slice(device, &b).unwrap();
        let report = Solver::with(&matrix, setup).unwrap().solve(&b, &mut x).unwrap();
        (x.to_vec().unwrap().into_iter().map(f32::to_bits).collect(), report)
    };
    for device in common::devices() {
        // One chunk of rows: fewer than compute units. CPUs have a way of their own, with one item to a group.
        if device.backend_kind() != BackendKind::OpenCl || device.info().compute_units < 2 {
            println!("skipped: {}", device.info().name);
            continue;
        }
        let device = &device.with_work_group(256).unwrap();
        let host = reference::<f32>(device);
        let formats = [Format::Csr, Format::CsrAdaptive, Format::Ellpack];
        for (method, format) in methods.iter().flat_map(|method| formats.map(|format| (*method, format))) {
            let (x, report) = solve(device, method, format);
            let (of_host, other) = solve(&host, method, format);
            assert!(x == of_host, "{method}, {format} on {} {}", device.info().name, device.tuning());
            assert_eq!(report.history, other.history);
            if method == Method::Fista && format == Format::Csr {
                // Four, and the sums of one of its products.
                assert_eq!(report.launches_per_iteration, 5, "{report}");
            }
        }
    }
}
