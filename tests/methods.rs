//! Every method: right answers, honest reasons for stopping, the same bits on every device and for any number of
//! right-hand sides.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod common;

use common::{bits, each_case, noise, reference};
use residuum::operator::Diagonal;
use residuum::sparse::gallery;
use residuum::{Csr, Device, Format, Matrix, Method, Real, Report, Setup, Solver, Stop, Stopping, Vector};

/// What must not differ between devices, work-groups, look intervals and numbers of right-hand sides.
type Essence = (Vec<u64>, usize, Stop, Vec<u64>);

fn essence<T: Real>(x: &[T], report: &Report) -> Essence {
    let mut numbers = vec![report.residual, report.true_residual, report.gradient.unwrap_or(0.0)];
    numbers.extend(&report.history);
    numbers.extend(&report.gradient_history);
    (bits(x), report.iterations, report.stop, bits(&numbers))
}

/// A problem, and how it is preconditioned.
#[derive(Clone)]
struct Problem<T> {
    method: Method,
    a: Csr<T>,
    /// Entries of a diagonal preconditioner.
    diagonal: Option<Vec<T>>,
    /// Whether that is given as a matrix instead.
    as_matrix: bool,
    reference: Option<Vec<T>>,
    start: Vec<T>,
}

impl<T: Real> Problem<T> {
    fn new(method: Method, a: &Csr<T>) -> Self {
        let start = vec![T::default(); a.cols()];
        Self { method, a: a.clone(), diagonal: None, as_matrix: false, reference: None, start }
    }

    /// Solves for each of `b` at once.
    fn solve(&self, device: &Device, b: &[&[T]], stopping: &Stopping) -> Vec<(Vec<T>, Report)> {
        let storage = if self.method.takes_rectangles() { Matrix::with_transpose } else { Matrix::new };
        let a = storage(device, &self.a, Format::Auto).unwrap();
        let diagonal = self.diagonal.as_ref().map(|d| Vector::from_slice(device, d).unwrap());
        let diagonal = diagonal.map(|d| Diagonal::new(d).unwrap());
        let entries: Vec<(usize, usize, T)> =
            self.diagonal.iter().flatten().enumerate().map(|(i, d)| (i, i, *d)).collect();
        let as_matrix = Csr::from_triplets(self.a.rows(), self.a.rows(), &entries).unwrap();
        let as_matrix = Matrix::new(device, &as_matrix, Format::Csr).unwrap();
        let mut setup = Setup { columns: b.len(), ..Setup::new(self.method, stopping.clone()) };
        if let Some(diagonal) = &diagonal {
            setup.preconditioner = if self.as_matrix { Some(&as_matrix) } else { Some(diagonal) };
        }
        let mut solver = Solver::with(&a, setup).unwrap();
        if let Some(reference) = &self.reference {
            let columns = vec![&reference[..]; b.len()];
            solver.set_reference(&Vector::interleaved(device, &columns).unwrap()).unwrap();
        }
        let rhs = Vector::interleaved(device, b).unwrap();
        let mut x = Vector::interleaved(device, &vec![&self.start[..]; b.len()]).unwrap();
        let reports = solver.solve_many(&rhs, &mut x).unwrap();
        x.to_columns(b.len()).unwrap().into_iter().zip(reports).collect()
    }
}

/// A convection-diffusion matrix: not symmetric.
fn convection<T: Real>(side: usize) -> Csr<T> {
    Csr::from_rows(side * side, side * side, |i, row| {
        let (x, y) = (i % side, i / side);
        let mut put = |at: usize, v: f64| row.push((at as u32, T::from_f64(v)));
        if y > 0 {
            put(i - side, -1.3);
        }
        if x > 0 {
            put(i - 1, -1.5);
        }
        put(i, 4.2);
        if x + 1 < side {
            put(i + 1, -0.5);
        }
        if y + 1 < side {
            put(i + side, -0.7);
        }
    })
    .unwrap()
}

/// Symmetric and indefinite.
fn indefinite<T: Real>(side: usize) -> Csr<T> {
    gallery::poisson_2d::<T>(side, -1.7).unwrap()
}

/// Every method with a problem that suits it, and its variants.
fn problems<T: Real>() -> Vec<Problem<T>> {
    let definite = gallery::poisson_2d::<T>(12, 0.5).unwrap();
    let scaling: Vec<T> = (0..144).map(|i| T::from_f64(0.2 + 0.1 * f64::from(i % 3))).collect();
    let tall = gallery::random::<T>(150, 40, 700, 3).unwrap();
    let wide = tall.transpose();
    let convection = convection::<T>(12);
    let mut found = Vec::new();
    let square = [
        Method::Cg,
        Method::SteepestDescent,
        Method::Chebyshev { smallest: 0.5, largest: 8.5 },
        Method::Stationary { omega: 0.2 },
    ];
    for method in square {
        found.push(Problem::new(method, &definite));
    }
    found.push(Problem::new(Method::Minres, &indefinite(12)));
    found.push(Problem::new(Method::BiCgStab, &convection));
    for (method, a) in [
        (Method::Cg, &definite),
        (Method::BiCgStab, &convection),
        (Method::Chebyshev { smallest: 0.05, largest: 5.0 }, &definite),
        (Method::Stationary { omega: 0.5 }, &definite),
    ] {
        for as_matrix in [false, true] {
            found.push(Problem { diagonal: Some(scaling.clone()), as_matrix, ..Problem::new(method, a) });
        }
    }
    for method in [Method::Cgls { damp: 0.0 }, Method::Lsqr { damp: 0.0 }, Method::Lsmr { damp: 0.0 }] {
        found.push(Problem::new(method, &tall));
    }
    for method in [Method::Cgls { damp: 0.7 }, Method::Lsqr { damp: 0.7 }, Method::Lsmr { damp: 0.7 }] {
        let reference = Some(noise(40, 71));
        found.push(Problem { reference, start: noise(40, 72), ..Problem::new(method, &tall) });
    }
    found.push(Problem::new(Method::Cgne, &wide));
    found
}

fn stopping<T: Real>() -> Stopping {
    Stopping { max_iterations: 400, ..Stopping::for_precision::<T>() }
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
            let looks = Stopping { check_every: 5, ..stopping::<T>() };
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
        let b = noise::<f64>(problem.a.rows(), 30);
        let solved = problem.solve(&device, &[&b], &Stopping { max_iterations: 4000, ..stopping::<f64>() });
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
