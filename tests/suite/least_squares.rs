//! Least squares that have no exact solution end as converged, with the answer of a dense factorisation, and in few iterations.
//!
//! `illc1850` and `well1033` (R. Boisvert et al., Matrix Market, set LSQ) are read if they lie beside the project.

use std::path::Path;

use crate::common::{self, bits, distance, noise, norm};
use residuum::io::matrix_market;
use residuum::operator::{
    Diagonal, Identity, LinearOperator, LinearOperatorExt, SharedOperator, Subsets, adjoint_error,
};
use residuum::precond::Preconditioner;
use residuum::sparse::gallery;
use residuum::{
    Answer, Columns, Csr, Device, Error, Format, Matrix, Method, Precision, Real, Regularization, Report, Setup,
    Solver, Stop, Stopping, Storage, Transposed, Vector,
};

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

/// A loose tolerance ends solves with damping too, towards any reference point and from any start: the gradient is measured by the residual
/// that is minimised, which is larger than `b - A x`.
#[test]
fn loose_tolerances_end_damped_solves() {
    let a = gallery::random::<f64>(300, 120, 1500, 5).unwrap();
    let (b, reference) = (noise::<f64>(300, 6), noise::<f64>(120, 7));
    for damp in [0.3, 3.0, 30.0] {
        for device in common::devices_in(Precision::Double) {
            let matrix = Matrix::with_transpose(&device, &a, Format::Csr).unwrap();
            let rhs = Vector::from_slice(&device, &b).unwrap();
            for method in [Method::Lsqr { damp }, Method::Lsmr { damp }, Method::Cgls { damp }] {
                let mut most = 0;
                for gradient_rtol in [1e-10, 1e-5, 1e-3] {
                    let stopping =
                        Stopping::for_precision::<f64>().with_rtol(0.0).with_gradient_rtol(gradient_rtol);
                    let mut solver = Solver::new(&matrix, method, stopping).unwrap();
                    solver.set_reference(&Vector::from_slice(&device, &reference).unwrap()).unwrap();
                    let mut x = Vector::filled(&device, 120, 0.5).unwrap();
                    let report = solver.solve(&rhs, &mut x).unwrap();
                    let words = format!("damp {damp}, {gradient_rtol:e}: {report}");
                    assert_eq!(report.stop, Stop::LeastSquares, "{words}");
                    assert!(most == 0 || report.iterations < most, "{words}, {most} before");
                    most = report.iterations;
                    let x = x.to_vec().unwrap();
                    let residual: Vec<f64> = a.product(&x).unwrap().iter().zip(&b).map(|(y, b)| b - y).collect();
                    let away: Vec<f64> = reference.iter().zip(&x).map(|(r, x)| damp * (r - x)).collect();
                    let back = a.transpose().product(&residual).unwrap();
                    let gradient = norm(back.iter().zip(&away).map(|(g, d)| g + damp * d));
                    let stacked = norm(residual.into_iter().chain(away));
                    let limit = gradient_rtol * norm(a.values().iter().copied()) * stacked;
                    assert!(gradient <= limit, "{words}: {gradient:e} of {limit:e}");
                }
            }
        }
    }
}

/// Columns of very different sizes, and a right-hand side that is no combination of them.
fn uneven_columns() -> (Csr<f64>, Vec<f64>) {
    let a = gallery::random::<f64>(900, 120, 6000, 5).unwrap();
    let sizes: Vec<f64> = (0..120).map(|j| 10f64.powf(f64::from(j % 13) / 3.0 - 2.0)).collect();
    (a.scaled(&[1.0; 900], &sizes).unwrap(), noise(900, 6))
}

/// A method with a preconditioner from the right, from a start that is not 0.
fn preconditioned(
    device: &Device,
    (a, b): (&Csr<f64>, &[f64]),
    method: Method,
    m: impl Into<SharedOperator<f64>>,
    stopping: Stopping,
) -> (Vec<f64>, Report) {
    let matrix = Matrix::with_transpose(device, a, Format::Auto).unwrap();
    let setup = Setup::new(method, stopping).with_preconditioner(m);
    let mut solver = Solver::with(&matrix, setup).unwrap();
    let b = Vector::from_slice(device, b).unwrap();
    let mut x = Vector::filled(device, a.cols(), 0.5).unwrap();
    let report = solver.solve(&b, &mut x).unwrap();
    (x.to_vec().unwrap(), report)
}

fn none(device: &Device, n: usize) -> SharedOperator<f64> {
    Identity::new(device, n).shared()
}

#[test]
fn preconditioners_from_the_right_leave_the_answer_and_save_iterations() {
    let (a, b) = uneven_columns();
    let wanted = dense(&a, &b);
    let stopping = Stopping::for_precision::<f64>().with_gradient_rtol(1e-12);
    for method in METHODS.into_iter().chain([Method::Cgnr]) {
        let mut first: Option<(Vec<u64>, usize, Stop, Vec<u64>)> = None;
        for device in common::devices_in(Precision::Double) {
            let by_norms = Diagonal::inverse_of_norms(&device, &a).unwrap();
            let (_, plain) = preconditioned(&device, (&a, &b), method, none(&device, 120), stopping.clone());
            let (x, report) = preconditioned(&device, (&a, &b), method, by_norms, stopping.clone());
            assert_eq!(report.stop, Stop::LeastSquares, "{report}");
            assert!(distance(&x, &wanted) < 1e-8, "{report}, {:e}", distance(&x, &wanted));
            assert!(3 * report.iterations < plain.iterations, "{report}, not preconditioned {plain}");
            assert_eq!(report.history.len(), report.iterations + 1);
            // The gradient is that of x.
            let residual: Vec<f64> = a.product(&x).unwrap().iter().zip(&b).map(|(ax, b)| b - ax).collect();
            let gradient = norm(a.transpose().product(&residual).unwrap().into_iter());
            assert!((report.true_residual - norm(residual.into_iter())).abs() < 1e-10 * report.true_residual);
            assert!((report.gradient.unwrap() - gradient).abs() < 1e-8 * a.column_norms().iter().sum::<f64>());
            let found = common::problems::essence(&x, &report);
            assert_eq!(first.get_or_insert_with(|| found.clone()), &found, "{method} on {}", device.info().name);
        }
    }
}

/// The root `W` of an approximate inverse of `A'A` makes `A W` nearly orthogonal.
#[test]
fn roots_of_approximate_inverses_precondition_least_squares() {
    let a = gallery::random::<f64>(2000, 500, 12_000, 17).unwrap();
    let b = noise::<f64>(2000, 2);
    let wanted = dense(&a, &b);
    let device = Device::host();
    for name in ["sainv=0.02", "ainv=0.02", "fsai", "adaptive-fsai", "ic0", "ict=20:1e-2"] {
        let m = name.parse::<Preconditioner>().unwrap().build_for_least_squares(&device, &a, None).unwrap();
        for method in METHODS {
            let stopping = Stopping::for_precision::<f64>();
            let (_, plain) = preconditioned(&device, (&a, &b), method, none(&device, 500), stopping.clone());
            let (x, report) = preconditioned(&device, (&a, &b), method, m.operator.clone(), stopping);
            println!("{name}: {report}; without {}", plain.iterations);
            assert!(report.converged() && distance(&x, &wanted) < 1e-7, "{name}: {report}");
            assert!(report.iterations < plain.iterations, "{name}: {report}; without {}", plain.iterations);
        }
    }
}

/// Approximate inverses of a square matrix precondition it from the right, with their adjoints; the same bits on every device.
#[test]
fn inverses_of_square_matrices_precondition_least_squares() {
    let n = 400;
    let uneven = gallery::random::<f64>(n, n, 5 * n, 11).unwrap();
    let mut entries: Vec<(usize, usize, f64)> = Vec::new();
    for i in 0..n {
        let (columns, values) = uneven.row(i);
        entries.extend(columns.iter().zip(values).map(|(j, v)| (i, *j as usize, v - 0.5)));
        entries.push((i, i, if i % 3 == 0 { -4.0 } else { 2.0 + 0.01 * i as f64 }));
    }
    let a = Csr::from_triplets(n, n, &entries).unwrap();
    let truth = noise::<f64>(n, 3);
    let b = a.product(&truth).unwrap();
    for name in ["ilu0", "ilut=10:1e-2", "spai", "spai=2", "spai,f32", "ic0", "jacobi"] {
        let mut first: Option<Vec<u64>> = None;
        for device in common::devices_in(Precision::Double) {
            let m = name.parse::<Preconditioner>().unwrap().build_for_least_squares(&device, &a, None).unwrap();
            let error = adjoint_error(&*m.operator, 5).unwrap();
            assert!(error < 1e-14, "{name} on {}: {error:e}", device.info().name);
            let method = Method::Lsqr { damp: 0.0 };
            let stopping = Stopping::for_precision::<f64>();
            let (_, plain) = preconditioned(&device, (&a, &b), method, none(&device, n), stopping.clone());
            let (x, report) = preconditioned(&device, (&a, &b), method, m.operator, stopping);
            assert!(report.converged() && distance(&x, &truth) < 1e-6, "{name}: {report}");
            let most = if name == "jacobi" { plain.iterations + 5 } else { 2 * plain.iterations / 3 };
            assert!(report.iterations <= most, "{name}: {report}; without {}", plain.iterations);
            let found = x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!(first.get_or_insert_with(|| found.clone()), &found, "{name} on {}", device.info().name);
        }
    }
    let wide = gallery::random::<f64>(20, 30, 90, 5).unwrap();
    for name in ["ilu0", "spai"] {
        let made = name.parse::<Preconditioner>().unwrap().build_for_least_squares(&Device::host(), &wide, None);
        assert!(matches!(made.map(|_| ()), Err(Error::Shape { .. })), "{name}");
    }
}

/// A preconditioner that leaves an unknown out finds no solution, and nothing says that it did.
#[test]
fn a_preconditioner_that_hides_the_gradient_is_not_believed() {
    let (a, b) = uneven_columns();
    let device = Device::host();
    for hidden in [0.0, 1e-200] {
        let mut scales = vec![1.0; 120];
        scales[7] = hidden;
        for method in METHODS {
            let m = Diagonal::new(Vector::from_slice(&device, &scales).unwrap()).unwrap();
            let (_, report) = preconditioned(&device, (&a, &b), method, m, Stopping::for_precision::<f64>());
            assert!(!report.converged(), "{report}");
        }
    }
}

#[test]
fn preconditioned_least_squares_refuse_what_they_cannot() {
    let (a, _) = uneven_columns();
    let device = Device::host();
    let matrix = Matrix::with_transpose(&device, &a, Format::Auto).unwrap();
    let made = |method: Method, columns: usize, n: usize| {
        let setup = Setup::new(method, Stopping::for_precision::<f64>()).with_columns(columns);
        Solver::with(&matrix, setup.with_preconditioner(none(&device, n))).map(|_| ())
    };
    assert!(made(Method::Lsqr { damp: 0.0 }, 1, 120).is_ok());
    assert!(matches!(made(Method::Lsqr { damp: 0.0 }, 1, 900), Err(Error::Shape { .. })));
    assert!(matches!(made(Method::Lsqr { damp: 0.5 }, 1, 120), Err(Error::Conflict { name: "damp", .. })));
    assert!(matches!(made(Method::Lsqr { damp: 0.0 }, 2, 120), Err(Error::Conflict { name: "columns", .. })));
    assert!(matches!(made(Method::Cgne, 1, 120), Err(Error::Conflict { name: "preconditioner", .. })));
}

/// `A'(b - A x) - tikhonov x` on the host: minus the gradient.
fn downhill(a: &Csr<f64>, b: &[f64], x: &[f64], tikhonov: f64) -> Vec<f64> {
    let residual: Vec<f64> = b.iter().zip(a.product(x).unwrap()).map(|(b, ax)| b - ax).collect();
    a.transpose().product(&residual).unwrap().iter().zip(x).map(|(g, x)| g - tikhonov * x).collect()
}

/// The minimum within bounds is where the gradient vanishes, or points out of the bounds at those that hold a pixel.
#[test]
fn minima_within_bounds_meet_their_conditions() {
    let a = gallery::random::<f64>(90, 40, 700, 3).unwrap();
    let b = noise::<f64>(90, 5);
    let (mut lower, mut upper) = (vec![-0.05; 40], vec![0.05; 40]);
    (lower[7], upper[7]) = (0.0, 0.0);
    (lower[9], upper[9]) = (f64::NEG_INFINITY, f64::INFINITY);
    for method in [Method::Fista, Method::Pdhg] {
        for tikhonov in [0.0, 3.0] {
            let mut first = None;
            for device in common::devices_in(Precision::Double) {
                let matrix = Matrix::with_transpose(&device, &a, Format::Csr).unwrap();
                let stopping = Stopping::for_precision::<f64>().with_gradient_rtol(1e-11).with_rtol(0.0);
                // Bounds of the regularization hold beside those of the pixels.
                let regularization = Regularization::none().with_tikhonov(tikhonov).with_upper(0.04);
                let setup = Setup::new(method, stopping).with_regularizations(&[regularization]);
                let mut solver = Solver::with(&matrix, setup).unwrap();
                solver.set_bounds(&lower, &upper).unwrap();
                let mut x = Vector::filled(&device, 40, 0.5).unwrap();
                let report = solver.solve(&Vector::from_slice(&device, &b).unwrap(), &mut x).unwrap();
                let x = x.to_vec().unwrap();
                assert_eq!(report.stop, Stop::LeastSquares, "{method} {tikhonov}: {report}");
                let (mut low, mut high, mut free) = (0, 0, 0);
                for (i, g) in downhill(&a, &b, &x, tikhonov).into_iter().enumerate() {
                    let (least, most) = (lower[i], upper[i].min(0.04));
                    assert!((least..=most).contains(&x[i]), "{method}: pixel {i} is {}", x[i]);
                    match x[i] {
                        _ if least == most => {}
                        value if value == least => (low, ()) = (low + 1, assert!(g <= 1e-6, "{method}: {i} {g:e}")),
                        value if value == most => {
                            (high, ()) = (high + 1, assert!(g >= -1e-6, "{method}: {i} {g:e}"))
                        }
                        _ => (free, ()) = (free + 1, assert!(g.abs() < 1e-6, "{method}: {i} {g:e}")),
                    }
                }
                assert!(low > 3 && high > 3 && free > 3, "{low} {high} {free}");
                println!("{report}");
                let found = common::problems::essence(&x, &report);
                assert_eq!(first.get_or_insert_with(|| found.clone()), &found, "{method}, {}", device.info().name);
            }
        }
    }
}

/// `sum_p |D x|_p` and `sum_p |e.D x|_p` of an image.
fn variations(x: &[f64], width: usize, [ex, ey]: [f64; 2]) -> [f64; 2] {
    let (mut isotropic, mut directional) = (0.0, 0.0);
    for i in 0..x.len() {
        let dx = if i % width + 1 < width { x[i + 1] - x[i] } else { 0.0 };
        let dy = if i + width < x.len() { x[i + width] - x[i] } else { 0.0 };
        isotropic += dx.hypot(dy);
        directional += (ex * dx + ey * dy).abs();
    }
    [isotropic, directional]
}

/// An edge whose total variation is weighted keeps its place and loses height: `weight / pixels` on either side of it.
#[test]
fn total_variation_of_an_edge_is_that_of_its_formula() {
    let (width, height, left) = (12, 5, 4);
    let n = width * height;
    let b: Vec<f64> = (0..n).map(|i| if i % width < left { 0.25 } else { 1.0 }).collect();
    let identity = Csr::from_rows(n, n, |i, row| row.push((i as u32, 1.0))).unwrap();
    let device = Device::host();
    let matrix = Matrix::with_transpose(&device, &identity, Format::Csr).unwrap();
    for (variation, directional, direction) in
        [(0.6, 0.0, [0.0; 2]), (0.0, 0.6, [1.0, 0.0]), (0.5, 0.1, [-1.0, 0.0]), (0.6, 7.0, [0.0, 1.0])]
    {
        let terms = Regularization::none()
            .with_variation(variation)
            .with_directional(directional)
            .with_direction(direction)
            .with_width(width);
        let stopping =
            Stopping::for_precision::<f64>().with_gradient_rtol(1e-10).with_rtol(0.0).with_max_iterations(30_000);
        let setup = Setup::new(Method::Pdhg, stopping).with_regularizations(&[terms]);
        let mut solver = Solver::with(&matrix, setup).unwrap();
        let mut x = Vector::zeros(&device, n).unwrap();
        let report = solver.solve(&Vector::from_slice(&device, &b).unwrap(), &mut x).unwrap();
        println!("{report}");
        assert_eq!(report.stop, Stop::LeastSquares, "{report}");
        for (i, value) in x.to_vec().unwrap().into_iter().enumerate() {
            let column = i % width;
            let wanted = match column < left {
                true => 0.25 + 0.6 / left as f64,
                false => 1.0 - 0.6 / (width - left) as f64,
            };
            assert!((value - wanted).abs() < 1e-8, "{variation} {directional} {direction:?}: {i} {value} {wanted}");
        }
    }
}

/// Values of the same Frobenius norm and another 2-norm, and those of an operator made of a matrix: steps are as long as they may be.
#[test]
fn steps_follow_new_values() {
    let device = Device::host();
    let values = |v: [f64; 4]| {
        let [a, b, c, d] = v;
        Csr::from_triplets(2, 2, &[(0, 0, a), (0, 1, b), (1, 0, c), (1, 1, d)]).unwrap()
    };
    let b = Vector::from_slice(&device, &[1.0, 3.0]).unwrap();
    let stopping = Stopping::for_precision::<f64>();
    for method in [Method::Fista, Method::Pdhg] {
        for scaled in [false, true] {
            let matrix = Matrix::with_transpose(&device, &values([1.0, 1.0, 1.0, -1.0]), Format::Csr).unwrap();
            let operator = |matrix: &Matrix<f64>| -> SharedOperator<f64> {
                if scaled { matrix.clone().scaled(1.0).shared() } else { matrix.into() }
            };
            let mut solver = Solver::new(operator(&matrix), method, stopping.clone()).unwrap();
            let mut x = Vector::zeros(&device, 2).unwrap();
            assert!(solver.solve(&b, &mut x).unwrap().converged());
            let next = if scaled { [4.0, 4.0, 4.0, -4.0] } else { [1.0, 1.0, 1.0, 1.0] };
            matrix.update_values(&values(next)).unwrap();
            let mut anew = Solver::new(operator(&matrix), method, stopping.clone()).unwrap();
            let [mut x, mut y] = [(); 2].map(|()| Vector::zeros(&device, 2).unwrap());
            let (report, wanted) = (solver.solve(&b, &mut x).unwrap(), anew.solve(&b, &mut y).unwrap());
            assert!(report.converged(), "{report}");
            assert_eq!(report.history, wanted.history, "{method} {scaled}");
            assert_eq!(x.to_vec().unwrap(), y.to_vec().unwrap());
        }
    }
}

/// A start that leaves no residual is no minimum of an image that is to be smooth.
#[test]
fn a_start_without_a_residual_is_gone_on_from() {
    let device = Device::host();
    let identity = Csr::from_rows(30, 30, |i, row| row.push((i as u32, 1.0))).unwrap();
    let matrix = Matrix::with_transpose(&device, &identity, Format::Csr).unwrap();
    let b = Vector::from_slice(&device, &noise::<f64>(30, 9)).unwrap();
    let stopping = Stopping::for_precision::<f64>().with_rtol(0.0).with_gradient_rtol(1e-8);
    let answer = |start: &Vector<f64>| {
        let terms = Regularization::none().with_variation(0.3).with_width(6);
        let setup = Setup::new(Method::Pdhg, stopping.clone()).with_regularizations(&[terms]);
        let mut x = Vector::zeros(&device, 30).unwrap();
        x.copy_from(start).unwrap();
        let report = Solver::with(&matrix, setup).unwrap().solve(&b, &mut x).unwrap();
        assert!(report.stop == Stop::LeastSquares && report.iterations > 3, "{report}");
        x.to_vec().unwrap()
    };
    let (cold, warm) = (answer(&Vector::zeros(&device, 30).unwrap()), answer(&b));
    assert!(distance(&warm, &cold) < 1e-5, "{}", distance(&warm, &cold));
}

/// All terms of PDHG at once: no neighbour of its answer has a smaller objective, on any device, with the same bits.
#[test]
fn pdhg_minimises_what_it_says() {
    let (width, height) = (9, 8);
    let n = width * height;
    let a = gallery::random::<f64>(60, n, 900, 3).unwrap();
    let b = noise::<f64>(60, 5);
    let terms = common::problems::everything_exact(width);
    let objective = |x: &[f64]| {
        let misfit: f64 = b.iter().zip(a.product(x).unwrap()).map(|(b, ax)| (b - ax).powi(2)).sum();
        let [isotropic, directional] = variations(x, width, terms.direction);
        let square: f64 = x.iter().map(|v| v * v).sum();
        misfit / 2.0 + terms.tikhonov * square / 2.0 + terms.variation * isotropic + terms.directional * directional
    };
    let mut first = None;
    for device in common::devices_in(Precision::Double) {
        let matrix = Matrix::with_transpose(&device, &a, Format::Csr).unwrap();
        let stopping = Stopping::for_precision::<f64>().with_gradient_rtol(1e-10).with_rtol(0.0);
        let setup = Setup::new(Method::Pdhg, stopping).with_columns(2);
        let regularizations = [terms.clone(), Regularization::none()];
        let mut solver = Solver::with(&matrix, setup.with_regularizations(&regularizations)).unwrap();
        let rhs = Columns::new(&device, &[&b, &b]).unwrap();
        let mut x = Columns::zeros(&device, n, 2).unwrap();
        let reports = solver.solve_many(&rhs, &mut x).unwrap();
        let columns = x.to_vecs().unwrap();
        println!("{}\n{}", reports[0], reports[1]);
        assert_eq!(reports[0].stop, Stop::LeastSquares, "{}", reports[0]);
        let found: Vec<_> =
            columns.iter().zip(&reports).map(|(x, report)| common::problems::essence(x, report)).collect();
        assert_eq!(first.get_or_insert_with(|| found.clone()), &found, "{}", device.info().name);
        let (x, least) = (&columns[0], objective(&columns[0]));
        assert!(x.iter().all(|v| (-0.2..=0.4).contains(v)) && x.contains(&0.4) && x.contains(&-0.2));
        let mut rises = 0;
        for k in 0..400 {
            let size = [1e-1, 1e-2, 1e-3, 1e-4][k % 4];
            // One pixel, a patch, or all of them.
            let push = noise::<f64>(n, 100 + k as u64);
            let moved: Vec<f64> = (0..n)
                .map(|i| {
                    let push = match k % 3 {
                        0 => {
                            if i == k % n {
                                push[0]
                            } else {
                                0.0
                            }
                        }
                        1 => {
                            if i % width < k % width {
                                push[0]
                            } else {
                                0.0
                            }
                        }
                        _ => push[i],
                    };
                    (x[i] + size * push).clamp(-0.2, 0.4)
                })
                .collect();
            let there = objective(&moved);
            assert!(there >= least - 1e-9 * least, "{k}: {there} is below {least}");
            rises += usize::from(there > least);
        }
        assert!(rises > 300, "{rises}");
    }
}

#[test]
fn bounded_methods_refuse_what_they_cannot() {
    let device = Device::host();
    let a = gallery::random::<f64>(30, 12, 100, 3).unwrap();
    let matrix = Matrix::with_transpose(&device, &a, Format::Csr).unwrap();
    let refused = |method: Method, regularization: Regularization, name: &str| {
        let setup = Setup::new(method, Stopping::after(3)).with_regularizations(&[regularization]);
        match Solver::with(&matrix, setup) {
            Err(error) => assert_eq!(error.argument().map(|(found, _)| found), Some(name), "{method} {error}"),
            other => panic!("{method} {name}: {other:?}"),
        }
    };
    let none = Regularization::none;
    refused(Method::Cgnr, none().with_directional(1.0).with_direction([1.0, 0.0]).with_width(4), "directional");
    refused(Method::Fista, none().with_variation(1.0).with_width(4), "variation");
    refused(Method::Fista, none().with_smooth(1.0).with_width(4), "smooth");
    refused(Method::Pdhg, none().with_smooth(1.0).with_width(4), "smooth");
    refused(Method::Pdhg, none().with_variation(1.0).with_epsilon(0.1).with_width(4), "epsilon");
    refused(Method::Pdhg, none().with_variation(1.0), "width");
    refused(Method::Pdhg, none().with_directional(1.0).with_direction([1.0, 1.0]).with_width(4), "direction");
    refused(Method::Pdhg, none().with_lower(1.0).with_upper(0.0), "lower");
    let bounds = |method: Method, lower: &[f64], upper: &[f64]| {
        Solver::new(&matrix, method, Stopping::after(3)).unwrap().set_bounds(lower, upper)
    };
    let (zero, one) = ([0.0; 12], [1.0; 12]);
    assert!(bounds(Method::Fista, &zero, &one).is_ok());
    assert!(matches!(bounds(Method::Fista, &zero[1..], &one), Err(Error::Shape { .. })));
    for (method, lower) in [
        (Method::Cgnr, zero),
        (Method::Lsqr { damp: 0.0 }, zero),
        (Method::Pdhg, [2.0; 12]),
        (Method::Pdhg, [f64::NAN; 12]),
    ] {
        let refused = bounds(method, &lower, &one).unwrap_err();
        assert_eq!(refused.argument().map(|(name, _)| name), Some("bounds"), "{method}");
        assert_eq!(matches!(refused, Error::Conflict { .. }), !method.keeps_bounds(), "{method}");
    }
    // Bounds of both kinds that leave nothing, or nothing that is finite.
    let mut fista = Solver::new(&matrix, Method::Fista, Stopping::after(3)).unwrap();
    fista.set_regularizations(&[none().with_lower(0.5)]).unwrap();
    assert!(matches!(fista.set_bounds(&zero, &zero), Err(Error::Option { name: "bounds", .. })));
    fista.set_bounds(&one, &one).unwrap();
    let above = none().with_lower(1.5);
    assert!(matches!(fista.set_regularizations(&[above]), Err(Error::Option { name: "bounds", .. })));
    refused(Method::Fista, none().with_lower(f64::INFINITY), "bounds");
    refused(Method::Pdhg, none().with_direction([f64::NAN, 0.0]), "direction");
    // Images of different widths.
    let widths = [4, 6].map(|width| none().with_variation(1.0).with_width(width));
    let setup = Setup::new(Method::Pdhg, Stopping::after(3)).with_columns(2).with_regularizations(&widths);
    assert!(matches!(Solver::with(&matrix, setup), Err(Error::Conflict { name: "width", .. })));
    // Terms over neighbours need vectors of their own.
    let mut pdhg = Solver::new(&matrix, Method::Pdhg, Stopping::after(3)).unwrap();
    let variation = none().with_variation(1.0).with_width(4);
    assert!(matches!(pdhg.set_regularizations(&[variation]), Err(Error::Conflict { name: "regularizations", .. })));
    assert!(pdhg.set_regularizations(&[none().with_tikhonov(1.0).with_lower(0.0)]).is_ok());
}

/// The sums of rows and of columns of a matrix.
fn sums(a: &Csr<f64>) -> [Vec<f64>; 2] {
    [a.product(&vec![1.0; a.cols()]).unwrap(), a.transpose().product(&vec![1.0; a.rows()]).unwrap()]
}

/// SIRT is the recurrence of the book, iterate by iterate, and finds the minimum of the weighted problem within bounds.
#[test]
fn sirt_is_that_of_the_book() {
    // Some rows and columns are empty.
    let a = gallery::random::<f64>(60, 40, 90, 3).unwrap();
    let b = noise::<f64>(60, 5);
    let [of_rows, of_cols] = sums(&a);
    assert!(of_rows.iter().chain(&of_cols).any(|sum| *sum == 0.0));
    let (lower, upper, omega) = (-0.3, 0.4, 1.7);
    let step = |x: &[f64]| -> Vec<f64> {
        let weigh = |value: f64, sum: f64| if sum > 0.0 { value / sum } else { 0.0 };
        let ax = a.product(x).unwrap();
        let residual: Vec<f64> = (0..60).map(|i| weigh(b[i] - ax[i], of_rows[i])).collect();
        let back = a.transpose().product(&residual).unwrap();
        (0..40).map(|j| (x[j] + omega * weigh(back[j], of_cols[j])).clamp(lower, upper)).collect()
    };
    let bounds = Regularization::none().with_lower(lower).with_upper(upper);
    for device in common::devices_in(Precision::Double) {
        let matrix = Matrix::with_transpose(&device, &a, Format::Csr).unwrap();
        let b = Vector::from_slice(&device, &b).unwrap();
        let solve = |stopping: Stopping| {
            let setup =
                Setup::new(Method::Sirt { omega }, stopping).with_regularizations(std::slice::from_ref(&bounds));
            let mut x = Vector::filled(&device, 40, 1.0).unwrap();
            let report = Solver::with(&matrix, setup).unwrap().solve(&b, &mut x).unwrap();
            (x.to_vec().unwrap(), report)
        };
        let mut wanted = vec![upper; 40];
        for iterations in 1..12 {
            wanted = step(&wanted);
            let last = Stopping::after(iterations).with_answer(Answer::Last);
            let (x, report) = solve(last);
            assert!(common::distance(&x, &wanted) < 1e-13, "{report}");
        }
        let exact =
            Stopping::for_precision::<f64>().with_gradient_rtol(1e-13).with_rtol(0.0).with_max_iterations(100_000);
        let (x, report) = solve(exact);
        println!("{report}");
        assert_eq!(report.stop, Stop::LeastSquares, "{report}");
        let beyond = step(&x);
        assert!(x.iter().zip(&beyond).all(|(x, y)| (x - y).abs() < 1e-9), "not a fixed point: {report}");
        let free = (0..40).filter(|j| x[*j] > lower && x[*j] < upper && of_cols[*j] > 0.0).count();
        assert!((5..35).contains(&free) && x.contains(&lower) && x.contains(&upper), "{free} free: {x:?}");
    }
}

#[test]
fn sirt_and_sart_refuse_what_they_cannot_do() {
    let host = Device::host();
    let set_up = |a: &Csr<f64>, omega: f64, regularization: Regularization| {
        let storage = Storage::default().with_transposed(Transposed::Copy);
        let whole = Matrix::stored(&host, a, storage).unwrap().shared();
        let subsets = Subsets::of_matrix(&host, a, storage, 2, 1).unwrap().shared();
        let both = [(whole, Method::Sirt { omega }), (subsets, Method::Sart { omega })].map(|(a, method)| {
            let setup =
                Setup::new(method, Stopping::after(3)).with_regularizations(std::slice::from_ref(&regularization));
            Solver::with(a, setup)
        });
        let [sirt, sart] = both;
        assert_eq!(
            sirt.as_ref().err().map(ToString::to_string),
            sart.err().map(|e| e.to_string().replace("sart", "sirt"))
        );
        sirt
    };
    let a = gallery::random::<f64>(20, 10, 50, 3).unwrap();
    let none = Regularization::none();
    for omega in [0.0, -1.0, 2.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(set_up(&a, omega, none.clone()), Err(Error::Option { name: "omega", .. })), "{omega}");
    }
    for regularization in [
        none.clone().with_tikhonov(1.0),
        none.clone().with_smooth(1.0).with_width(5),
        none.clone().with_variation(1.0).with_width(5).with_epsilon(0.1),
    ] {
        assert!(matches!(set_up(&a, 1.0, regularization), Err(Error::Conflict { .. })));
    }
    // Sums that are 0, and one negative entry among many.
    let differences = gallery::differences::<f64>([5, 1, 1], 0).unwrap();
    let mut one = a.clone();
    one.values_mut()[17] *= -1.0;
    for a in [&differences, &gallery::poisson_2d::<f64>(5, 0.0).unwrap(), &one] {
        let refused = set_up(a, 1.0, none.clone()).err().unwrap();
        assert!(refused.to_string().contains("negative entries"), "{refused}");
    }
    assert!(set_up(&a, 1.0, none).is_ok());
}

/// A run past the precision of its numbers ends by itself, where a step is less than the rounding of x.
#[test]
fn sirt_ends_by_itself() {
    for device in common::devices() {
        let a = gallery::random::<f32>(60, 40, 90, 3).unwrap();
        let matrix = Matrix::with_transpose(&device, &a, Format::Csr).unwrap();
        let b = Vector::from_slice(&device, &noise::<f32>(60, 5)).unwrap();
        let stopping =
            Stopping::for_precision::<f32>().with_rtol(0.0).with_gradient_rtol(0.0).with_max_iterations(200_000);
        let mut x = Vector::zeros(&device, 40).unwrap();
        let report =
            Solver::new(&matrix, Method::Sirt { omega: 1.9 }, stopping).unwrap().solve(&b, &mut x).unwrap();
        println!("{report}");
        assert!(report.iterations < 200_000, "{report}");
        assert!(report.gradient.unwrap() < 1e-5 * report.gradient_history[0], "{report}");
    }
}

/// Counts with the noise of Poisson, of some intensity that is 0 here and there; with a matrix whose rows and columns may be empty.
fn counts() -> (Csr<f64>, Vec<f64>) {
    let mut a = gallery::random::<f64>(60, 40, 300, 3).unwrap();
    a.values_mut().iter_mut().for_each(|v| *v = v.abs());
    let wanted: Vec<f64> = noise::<f64>(40, 4).iter().map(|v| (40.0 * v).max(0.0)).collect();
    let spread = noise::<f64>(60, 5);
    let b = a.product(&wanted).unwrap();
    let mut b: Vec<f64> = b.iter().zip(spread).map(|(mean, v)| (mean + mean.sqrt() * v).round().max(0.0)).collect();
    b[7] = 0.0;
    (a, b)
}

#[test]
fn mlem_is_that_of_the_book() {
    let (a, b) = counts();
    let [_, of_cols] = sums(&a);
    let ratio = |value: f64, by: f64| if value > 0.0 && by > 0.0 { value / by } else { 0.0 };
    let step = |x: &[f64]| -> Vec<f64> {
        let ax = a.product(x).unwrap();
        let back = a.transpose().product(&(0..60).map(|i| ratio(b[i], ax[i])).collect::<Vec<_>>()).unwrap();
        (0..40).map(|j| x[j] * ratio(back[j], of_cols[j])).collect()
    };
    let likelihood = |x: &[f64]| -> f64 {
        let ax = a.product(x).unwrap();
        (0..60).map(|i| if b[i] > 0.0 { b[i] * ax[i].ln() - ax[i] } else { -ax[i] }).sum()
    };
    let expected = |x: &[f64]| a.product(x).unwrap().iter().sum::<f64>();
    for device in common::devices_in(Precision::Double) {
        let matrix = Matrix::with_transpose(&device, &a, Format::Csr).unwrap();
        let rhs = Vector::from_slice(&device, &b).unwrap();
        let solve = |start: f64, stopping: Stopping| {
            let mut x = Vector::filled(&device, 40, start).unwrap();
            let report = Solver::new(&matrix, Method::Mlem, stopping).unwrap().solve(&rhs, &mut x).unwrap();
            (x.to_vec().unwrap(), report)
        };
        let (mut wanted, mut last) = (vec![2.5; 40], f64::NEG_INFINITY);
        for iterations in 1..12 {
            wanted = step(&wanted);
            let (x, report) = solve(2.5, Stopping::after(iterations).with_answer(Answer::Last));
            assert!(common::distance(&x, &wanted) < 1e-13, "{report}");
            let now = likelihood(&x);
            assert!(now > last, "the likelihood falls from {last} to {now} in iteration {iterations}");
            last = now;
            // Each iteration keeps the number of counts.
            assert!((expected(&x) / b.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
        // A start of zeros is none of its fixed points, and a negative one is as good.
        for start in [0.0, -3.0] {
            let (x, report) = solve(start, Stopping::after(200).with_answer(Answer::Last));
            assert!(likelihood(&x) > last && x.iter().all(|x| *x >= 0.0), "{report}");
        }
        let exact =
            Stopping::for_precision::<f64>().with_gradient_rtol(1e-10).with_rtol(0.0).with_max_iterations(300_000);
        let (x, report) = solve(1.0, exact);
        println!("{report}");
        assert_eq!(report.stop, Stop::LeastSquares, "{report}");
        let (ax, back) = (a.product(&x).unwrap(), a.transpose());
        let back = back.product(&(0..60).map(|i| ratio(b[i], ax[i])).collect::<Vec<_>>()).unwrap();
        // The conditions of Karush, Kuhn and Tucker: the slope is 0 where x is above 0, and not upwards elsewhere.
        for j in (0..40).filter(|j| of_cols[*j] > 0.0) {
            let slope = back[j] / of_cols[j] - 1.0;
            assert!(slope < 1e-3 && (x[j] < 1e-3 || slope > -1e-3), "unknown {j} is {} with slope {slope}", x[j]);
        }
    }
}

#[test]
fn mlem_keeps_bounds_and_ends_by_itself() {
    let (a, b) = counts();
    let host = Device::host();
    let matrix = Matrix::with_transpose(&host, &a, Format::Csr).unwrap();
    let rhs = Vector::from_slice(&host, &b).unwrap();
    let bounds = Regularization::none().with_lower(2.0).with_upper(30.0);
    let setup = Setup::new(Method::Mlem, Stopping::after(300)).with_regularizations(&[bounds]);
    let mut x = Vector::zeros(&host, 40).unwrap();
    let _ = Solver::with(&matrix, setup).unwrap().solve(&rhs, &mut x).unwrap();
    let x = x.to_vec().unwrap();
    assert!(x.iter().all(|x| (2.0..=30.0).contains(x)) && x.contains(&2.0) && x.contains(&30.0), "{x:?}");
    // Counts that an intensity explains: it is found, and no more is made of it than rounding.
    let wanted: Vec<f64> = noise::<f64>(40, 9).iter().map(|v| 3.0 + v.abs()).collect();
    let rhs = Vector::from_slice(&host, &a.product(&wanted).unwrap()).unwrap();
    let stopping =
        Stopping::for_precision::<f64>().with_rtol(0.0).with_gradient_rtol(0.0).with_max_iterations(3_000_000);
    let mut x = Vector::zeros(&host, 40).unwrap();
    let report = Solver::new(&matrix, Method::Mlem, stopping).unwrap().solve(&rhs, &mut x).unwrap();
    println!("{report}");
    assert!(report.iterations < 3_000_000, "{report}");
    let [_, of_cols] = sums(&a);
    let x = x.to_vec().unwrap();
    for j in (0..40).filter(|j| of_cols[*j] > 0.0) {
        assert!((x[j] - wanted[j]).abs() < 1e-6 * wanted[j], "unknown {j}: {} for {}; {report}", x[j], wanted[j]);
    }
    // The image of least residual is no better an answer than the one that is more likely.
    let rhs = Vector::from_slice(&host, &b).unwrap();
    let mut x = Vector::zeros(&host, 40).unwrap();
    let _ =
        Solver::new(&matrix, Method::Nnfcgls { restart: 30 }, Stopping::after(200)).unwrap().solve(&rhs, &mut x);
    let before = x.to_vec().unwrap();
    let report = Solver::new(&matrix, Method::Mlem, Stopping::after(50)).unwrap().solve(&rhs, &mut x).unwrap();
    assert!(report.iterations == 50 && common::distance(&x.to_vec().unwrap(), &before) > 1e-3, "{report}");
    // Background was taken away: more is negative than positive, and what is positive is still explained.
    let taken: Vec<f64> = b.iter().enumerate().map(|(i, v)| if i % 4 == 0 { *v } else { -9.0 - v }).collect();
    let rhs = Vector::from_slice(&host, &taken).unwrap();
    let mut x = Vector::zeros(&host, 40).unwrap();
    let _ = Solver::new(&matrix, Method::Mlem, Stopping::after(50)).unwrap().solve(&rhs, &mut x).unwrap();
    let expected = a.product(&x.to_vec().unwrap()).unwrap();
    let counted: f64 = taken.iter().map(|v| v.max(0.0)).sum();
    assert!((expected.iter().sum::<f64>() / counted - 1.0).abs() < 1e-10, "{expected:?}");
    // An unknown that starts at 0 stays there. If it should not, that is no end.
    let identity = Csr::new(2, 2, vec![0, 1, 2], vec![0, 1], vec![1.0; 2]).unwrap();
    let matrix_of_2 = Matrix::with_transpose(&host, &identity, Format::Csr).unwrap();
    let rhs_of_2 = Vector::from_slice(&host, &[1.0, 5.0]).unwrap();
    let mut x = Vector::from_slice(&host, &[1.0, 0.0]).unwrap();
    let stopping = Stopping::for_precision::<f64>().with_max_iterations(50);
    let report = Solver::new(&matrix_of_2, Method::Mlem, stopping).unwrap().solve(&rhs_of_2, &mut x).unwrap();
    assert!(!report.converged() && x.to_vec().unwrap() == [1.0, 0.0], "{report}");
    // No image lies below 0.
    let below = Regularization::none().with_upper(-1.0);
    let setup = Setup::new(Method::Mlem, Stopping::after(3)).with_regularizations(&[below]);
    assert!(matches!(Solver::with(&matrix, setup), Err(Error::Option { name: "bounds", .. })));
    let poisson = gallery::poisson_2d::<f64>(5, 0.0).unwrap();
    let poisson = Matrix::with_transpose(&host, &poisson, Format::Csr).unwrap();
    let refused = Solver::new(&poisson, Method::Mlem, Stopping::after(3)).err().unwrap();
    assert!(refused.to_string().contains("negative entries"), "{refused}");
}

/// SART with `count` subsets of `run` rows at a time as its page has it, plainly.
struct PlainSart<'a> {
    a: &'a Csr<f64>,
    b: &'a [f64],
    count: usize,
    run: usize,
    omega: f64,
    bounds: [f64; 2],
}

impl PlainSart<'_> {
    fn rows(&self, subset: usize) -> Vec<usize> {
        (0..self.a.rows()).filter(|i| i / self.run % self.count == subset).collect()
    }

    /// One pass through all subsets, which are taken in the order `subsets`.
    fn pass(&self, subsets: &[usize], x: &mut [f64]) {
        let Self { a, b, omega, bounds: [lower, upper], .. } = *self;
        let entries = |i: usize| a.row(i).0.iter().map(|j| *j as usize).zip(a.row(i).1.iter().copied());
        let back = |rows: &[usize], value: &dyn Fn(usize) -> f64| {
            let mut sums = vec![0.0; a.cols()];
            rows.iter().for_each(|i| entries(*i).for_each(|(j, v)| sums[j] += v * value(*i)));
            sums
        };
        let inverse = |sum: f64| if sum > 0.0 { 1.0 / sum } else { 0.0 };
        let mut largest = vec![0.0_f64; a.cols()];
        for subset in subsets {
            let sums = back(&self.rows(*subset), &|_| 1.0);
            largest.iter_mut().zip(sums).for_each(|(most, sum)| *most = most.max(sum));
        }
        for subset in subsets {
            let weighted = |i: usize| {
                let ax: f64 = entries(i).map(|(j, v)| v * x[j]).sum();
                (b[i] - ax) * inverse(entries(i).map(|(_, v)| v).sum())
            };
            let step = back(&self.rows(*subset), &weighted);
            for ((x, step), most) in x.iter_mut().zip(step).zip(&largest) {
                *x = (*x + omega * inverse(*most) * step).clamp(lower, upper);
            }
        }
    }
}

/// SART is the recurrence of the book, pass by pass, with subsets of different lengths, stored or not; with one subset it is SIRT.
#[test]
fn sart_is_that_of_the_book() {
    // Some rows and columns are empty.
    let a = gallery::random::<f64>(60, 40, 90, 3).unwrap();
    let b = noise::<f64>(60, 5);
    let bounds = Regularization::none().with_lower(-0.3).with_upper(0.4);
    let last = |iterations| Stopping::after(iterations).with_answer(Answer::Last);
    for device in common::devices_in(Precision::Double) {
        let b_of_device = Vector::from_slice(&device, &b).unwrap();
        let solve = |operator: SharedOperator<f64>, method: Method, stopping: Stopping| {
            let setup = Setup::new(method, stopping).with_regularizations(std::slice::from_ref(&bounds));
            let mut x = Vector::filled(&device, 40, 1.0).unwrap();
            let report = Solver::with(operator, setup).unwrap().solve(&b_of_device, &mut x).unwrap();
            (x.to_vec().unwrap(), report)
        };
        let storage = Storage::default().with_transposed(Transposed::Copy);
        for (count, run, order) in [
            (7, 3, vec![0, 4, 1, 5, 2, 6, 3]),
            (5, 1, vec![0, 3, 1, 4, 2]),
            (60, 1, (0..60).map(|k| k * 37 % 60).collect()),
        ] {
            let subsets = || Subsets::of_matrix(&device, &a, storage, count, run).unwrap();
            let omega = 1.7;
            let plain = PlainSart { a: &a, b: &b, count, run, omega, bounds: [-0.3, 0.4] };
            let mut wanted = vec![0.4; 40];
            for iterations in 1..8 {
                plain.pass(&order, &mut wanted);
                let (x, report) = solve(subsets().shared(), Method::Sart { omega }, last(iterations));
                assert!(common::distance(&x, &wanted) < 1e-13, "{count} subsets: {report}");
            }
            // Operators of a user's own, of which nothing is known.
            let hidden = subsets().parts().iter().map(|part| common::Opaque(part.clone()).shared()).collect();
            let hidden = Subsets::new(hidden, run).unwrap();
            let (x, report) = solve(hidden.shared(), Method::Sart { omega }, last(7));
            assert!(common::distance(&x, &wanted) < 1e-13, "{count} subsets: {report}");
        }
        let matrix = || Matrix::with_transpose(&device, &a, Format::Csr).unwrap().shared();
        for iterations in 1..5 {
            let [one, whole] = [Method::Sart { omega: 1.9 }, Method::Sirt { omega: 1.9 }]
                .map(|method| solve(matrix(), method, last(iterations)).0);
            assert_eq!(bits(&one), bits(&whole));
        }
    }
}

/// Readings that an image within the bounds explains are met, with any length of the steps; others lead into a cycle, which ends by itself.
#[test]
fn sart_converges_where_it_can() {
    for device in common::devices() {
        let a = gallery::random::<f32>(60, 40, 90, 3).unwrap();
        let x: Vec<f32> = noise::<f32>(40, 7).iter().map(|v| v.abs()).collect();
        let b = a.cast::<f64>().product(&x.iter().map(|v| f64::from(*v)).collect::<Vec<_>>()).unwrap();
        let b: Vec<f32> = b.iter().map(|v| *v as f32).collect();
        let storage = Storage::default().with_transposed(Transposed::Copy);
        let subsets = Subsets::of_matrix(&device, &a, storage, 6, 5).unwrap().shared();
        let solve = |b: &[f32], omega: f64, stopping: Stopping| {
            let bounds = Regularization::none().with_lower(0.0);
            let setup = Setup::new(Method::Sart { omega }, stopping).with_regularizations(&[bounds]);
            let b = Vector::from_slice(&device, b).unwrap();
            let mut x = Vector::zeros(&device, 40).unwrap();
            Solver::with(subsets.clone(), setup).unwrap().solve(&b, &mut x).unwrap()
        };
        let exactly = Stopping::for_precision::<f32>().with_rtol(1e-5).with_max_iterations(100_000);
        for omega in [0.3, 1.0, 1.9] {
            let report = solve(&b, omega, exactly.clone());
            assert_eq!(report.stop, Stop::Converged, "{report}");
            assert!(report.relative_residual() <= 1e-5, "{report}");
        }
        let forever =
            Stopping::for_precision::<f32>().with_rtol(0.0).with_gradient_rtol(0.0).with_max_iterations(200_000);
        let report = solve(&noise::<f32>(60, 5), 1.0, forever);
        println!("{report}");
        assert!(report.iterations < 200_000, "{report}");
        assert!(!report.converged(), "{report}");
    }
}

/// Numbers far from 1 are scaled, with the bits of those near 1; new values of a subset are weighed anew, even if their norm is the old one.
#[test]
fn sart_follows_its_operator() {
    let a = gallery::random::<f64>(60, 40, 90, 3).unwrap();
    let b = noise::<f64>(60, 5);
    let storage = Storage::default().with_transposed(Transposed::Copy);
    let parts_of = |a: &Csr<f64>| -> Vec<Csr<f64>> {
        let of = |k: usize| {
            Csr::from_rows(20, 40, |i, row| {
                let (columns, values) = a.row(3 * i + k);
                row.extend(columns.iter().copied().zip(values.iter().copied()));
            })
        };
        (0..3).map(|k| of(k).unwrap()).collect()
    };
    // The entries of each subset in another order.
    let turned = |a: &Csr<f64>| {
        let mut turned = a.clone();
        turned.values_mut().rotate_left(7);
        turned
    };
    for device in common::devices_in(Precision::Double) {
        let rhs = Vector::from_slice(&device, &b).unwrap();
        let solve = |solver: &mut Solver<f64>| {
            let mut x = Vector::zeros(&device, 40).unwrap();
            let report = solver.solve(&rhs, &mut x).unwrap();
            (x.to_vec().unwrap(), report)
        };
        let last = Stopping::after(6).with_answer(Answer::Last);
        let solver = |operator: SharedOperator<f64>| {
            Solver::new(operator, Method::Sart { omega: 1.3 }, last.clone()).unwrap()
        };
        let of_parts = |parts: &[Csr<f64>]| {
            let parts = parts.iter().map(|part| Matrix::stored(&device, part, storage).unwrap());
            let parts: Vec<Matrix<f64>> = parts.collect();
            let shared = parts.iter().map(SharedOperator::from).collect();
            (Subsets::new(shared, 1).unwrap().shared(), parts)
        };
        let plain = parts_of(&a);
        let (operator, parts) = of_parts(&plain);
        let mut on = solver(operator);
        let (wanted, _) = solve(&mut on);
        let mut tiny = a.clone();
        tiny.values_mut().iter_mut().for_each(|v| *v *= 2f64.powi(-300));
        let (found, report) = solve(&mut solver(of_parts(&parts_of(&tiny)).0));
        let back: Vec<f64> = found.iter().map(|v| v * 2f64.powi(-300)).collect();
        assert_eq!(bits(&back), bits(&wanted), "{report}");
        let others: Vec<Csr<f64>> = plain.iter().map(turned).collect();
        parts.iter().zip(&others).for_each(|(part, other)| part.update_values(other).unwrap());
        let (found, report) = solve(&mut on);
        let (wanted, fresh) = solve(&mut solver(of_parts(&others).0));
        assert_eq!((bits(&found), bits(&report.gradient_history)), (bits(&wanted), bits(&fresh.gradient_history)));
    }
    // No rows at a time.
    let refused = Subsets::of_matrix(&Device::host(), &a, storage, 1, 0).err().unwrap();
    assert!(matches!(refused, Error::Option { name: "subsets", .. }), "{refused}");
}

/// Recurrence of NNFCGLS as its page has it, plainly, with `restart` directions; of MRNSD with none.
struct Plain<'a> {
    a: &'a Csr<f64>,
    restart: usize,
    lower: f64,
    /// Unknowns that are free to move.
    free: Vec<bool>,
    x: Vec<f64>,
    r: Vec<f64>,
    directions: Vec<[Vec<f64>; 2]>,
    done: usize,
    /// Steps that ended at a bound, and times that directions were dropped within a cycle.
    bounded: usize,
    dropped: usize,
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

impl Plain<'_> {
    /// 1 over the most that a step along `d` may be.
    fn most(&self, d: &[f64]) -> f64 {
        let falling = d.iter().zip(&self.x).filter(|(d, _)| **d < 0.0);
        falling.map(|(d, x)| -d / (x - self.lower)).fold(0.0, f64::max)
    }

    fn step(&mut self) {
        let g = self.a.transpose().product(&self.r).unwrap();
        let height = |j: usize| if self.free[j] { self.x[j] - self.lower } else { 0.0 };
        let z: Vec<f64> = g.iter().enumerate().map(|(j, g)| height(j) * g).collect();
        let az = self.a.product(&z).unwrap();
        if self.restart == 0 || self.done.is_multiple_of(self.restart) {
            self.directions.clear();
        }
        let (mut d, mut w) = (z.clone(), az.clone());
        for [q, aq] in &self.directions {
            let factor = dot(&az, aq) / dot(aq, aq);
            d.iter_mut().zip(q).for_each(|(d, q)| *d -= factor * q);
            w.iter_mut().zip(aq).for_each(|(w, aq)| *w -= factor * aq);
        }
        if self.most(&d).is_infinite() || dot(&g, &d) <= 0.5 * dot(&g, &z) {
            self.dropped += 1;
            self.directions.clear();
            (d, w) = (z, az);
        }
        let (theta, most) = (dot(&g, &d) / dot(&w, &w), self.most(&d));
        self.bounded += usize::from(theta * most > 1.0);
        let alpha = if theta * most > 1.0 { (1.0 + 8.0 * f64::EPSILON) / most } else { theta };
        let lower = self.lower;
        self.x.iter_mut().zip(&d).for_each(|(x, d)| *x = (*x + alpha * d).max(lower));
        self.r.iter_mut().zip(&w).for_each(|(r, w)| *r -= alpha * w);
        self.directions.push([d, w]);
        self.done += 1;
    }
}

/// MRNSD and NNFCGLS are their recurrences, iterate by iterate, from a start and from the constant that fits best.
#[test]
fn nonnegative_methods_are_those_of_the_book() {
    let a = gallery::random::<f64>(60, 40, 300, 3).unwrap();
    let b: Vec<f64> = noise::<f64>(60, 5).iter().map(|v| v + 0.4).collect();
    let (lower, fixed) = (0.05, 7);
    for (restart, method) in [(0, Method::Mrnsd), (6, Method::Nnfcgls { restart: 6 })] {
        for from_bound in [false, true] {
            let start: Vec<f64> = match from_bound {
                true => vec![lower - 1.0; 40],
                false => (0..40).map(|j| if j == 3 { -1.0 } else { 0.1 + 0.02 * f64::from(j) }).collect(),
            };
            let mut x: Vec<f64> = start.iter().map(|v| v.max(lower)).collect();
            x[fixed] = lower;
            let free: Vec<bool> = (0..40).map(|j| j != fixed).collect();
            let residual =
                |x: &[f64]| -> Vec<f64> { b.iter().zip(a.product(x).unwrap()).map(|(b, ax)| b - ax).collect() };
            if from_bound {
                let one: Vec<f64> = free.iter().map(|free| f64::from(u8::from(*free))).collect();
                let (r, of_one) = (residual(&x), a.product(&one).unwrap());
                let lift = dot(&of_one, &r) / dot(&of_one, &of_one);
                assert!(lift > 0.0);
                x.iter_mut().zip(&one).for_each(|(x, one)| *x += lift * one);
            }
            let r = residual(&x);
            let (directions, done, bounded, dropped) = (Vec::new(), 0, 0, 0);
            let mut plain = Plain { a: &a, restart, lower, free, x, r, directions, done, bounded, dropped };
            let wanted: Vec<Vec<f64>> = (0..30)
                .map(|_| {
                    plain.step();
                    plain.x.clone()
                })
                .collect();
            assert!(plain.bounded > 0 && (restart == 0 || plain.dropped > 0), "nothing is tested");
            for device in common::devices_in(Precision::Double) {
                let matrix = Matrix::with_transpose(&device, &a, Format::Csr).unwrap();
                let rhs = Columns::new(&device, &[&b[..], &b[..]]).unwrap();
                for iterations in [1, 2, 5, 6, 7, 12, 13, 20, 30] {
                    let last = Stopping::after(iterations).with_answer(Answer::Last);
                    let regularization = Regularization::none().with_lower(lower);
                    let setup = Setup::new(method, last).with_columns(2);
                    let setup = setup.with_regularizations(&[regularization.clone(), regularization]);
                    let mut solver = Solver::with(&matrix, setup).unwrap();
                    let mut upper = vec![f64::INFINITY; 40];
                    upper[fixed] = lower;
                    solver.set_bounds(&[f64::NEG_INFINITY; 40], &upper).unwrap();
                    let mut x = Columns::new(&device, &[&start[..], &start[..]]).unwrap();
                    let reports = solver.solve_many(&rhs, &mut x).unwrap();
                    for x in x.to_vecs().unwrap() {
                        let apart = common::distance(&x, &wanted[iterations - 1]);
                        assert!(apart < 1e-9, "{apart:e} after {iterations} of {method}: {}", reports[0]);
                        assert!(x.iter().all(|v| *v >= lower) && x[fixed] == lower, "{x:?}");
                    }
                }
            }
        }
    }
}

/// Minima with some unknowns at their bounds meet their conditions, and runs past the precision end by themselves, on every device alike.
#[test]
fn nonnegative_methods_end_at_the_minimum() {
    fn solve<T: Real>(device: &Device, method: Method) -> (Vec<T>, Report) {
        let a = gallery::random::<T>(60, 40, 300, 3).unwrap();
        let matrix = Matrix::with_transpose(device, &a, Format::Csr).unwrap();
        let b: Vec<T> = noise::<T>(60, 5).iter().map(|v| *v + T::from_f64(0.2)).collect();
        let never =
            Stopping::for_precision::<T>().with_rtol(0.0).with_gradient_rtol(0.0).with_max_iterations(200_000);
        let mut x = Vector::zeros(device, 40).unwrap();
        let mut solver = Solver::new(&matrix, method, never).unwrap();
        let report = solver.solve(&Vector::from_slice(device, &b).unwrap(), &mut x).unwrap();
        (x.to_vec().unwrap(), report)
    }
    for method in [Method::Mrnsd, Method::Nnfcgls { restart: 10 }] {
        let (x, report) = solve::<f64>(&Device::host(), method);
        println!("{report}, |gradient| {:.2e} of {:.2e}", report.gradient.unwrap(), report.gradient_history[0]);
        assert!(report.iterations < 200_000, "{report}");
        assert!(report.gradient.unwrap() < 1e-6 * report.gradient_history[0], "{report}");
        let held = x.iter().filter(|x| **x < 1e-9).count();
        assert!((3..37).contains(&held), "{held}");
        for device in common::devices() {
            let (wanted, report) = solve::<f32>(&common::reference::<f32>(&device), method);
            println!("{report}, |gradient| {:.2e}", report.gradient.unwrap());
            assert!(report.iterations < 200_000, "{report}");
            let (x, other) = solve::<f32>(&device, method);
            assert!(common::bits(&x) == common::bits(&wanted), "{method} on {}", device.info().name);
            assert_eq!((other.stop, other.iterations), (report.stop, report.iterations));
        }
    }
}

/// Starts at all bounds: a minimum that is there is seen at once, and one beside it is found though no constant fits.
#[test]
fn nonnegative_methods_start_from_all_bounds() {
    let identity = Csr::from_triplets(2, 2, &[(0, 0, 1.0f32), (1, 1, 1.0)]).unwrap();
    for device in common::devices() {
        let matrix = Matrix::with_transpose(&device, &identity, Format::Csr).unwrap();
        for method in [Method::Mrnsd, Method::Nnfcgls { restart: 5 }] {
            for (b, lower, wanted) in [
                ([-1.0, -2.0], 0.0, [0.0, 0.0]),
                ([2.0, -5.0], 1.0, [2.0, 1.0]),
                ([2e-6, -5.0], 0.0, [2e-6, 0.0]),
                ([1002.0, -5.0], 1000.0, [1002.0, 1000.0]),
            ] {
                let regularizations = [Regularization::none().with_lower(lower)];
                let stopping = Stopping::for_precision::<f32>().with_rtol(0.0);
                let setup = Setup::new(method, stopping).with_regularizations(&regularizations);
                let mut x = Vector::zeros(&device, 2).unwrap();
                let b = Vector::from_slice(&device, &b).unwrap();
                let report = Solver::with(&matrix, setup).unwrap().solve(&b, &mut x).unwrap();
                let found = x.to_vec().unwrap();
                println!("{found:?}, wanted {wanted:?}: {report}");
                for (x, wanted) in found.iter().zip(wanted) {
                    assert!((x - wanted).abs() <= 1e-3 * wanted, "{found:?}, wanted {wanted:?}: {report}");
                }
                if wanted == [0.0, 0.0] {
                    assert_eq!((report.stop, report.iterations), (Stop::LeastSquares, 0), "{report}");
                }
            }
        }
    }
}

#[test]
fn nonnegative_methods_refuse_what_they_cannot_do() {
    let host = Device::host();
    let a = Matrix::with_transpose(&host, &gallery::random::<f64>(20, 10, 50, 3).unwrap(), Format::Csr).unwrap();
    for method in [Method::Mrnsd, Method::Nnfcgls { restart: 5 }] {
        let set_up = |regularization: Regularization| {
            Solver::with(&a, Setup::new(method, Stopping::after(3)).with_regularizations(&[regularization]))
        };
        let refused = |regularization: Regularization, words: &str| {
            let error = set_up(regularization).err().unwrap();
            assert!(error.to_string().contains(words), "{error}");
        };
        let none = Regularization::none();
        refused(none.clone().with_tikhonov(1.0), "no such term");
        refused(none.clone().with_variation(1.0).with_width(5).with_epsilon(0.1), "no such term");
        refused(none.clone().with_upper(3.0), "none from above, and pixel 0 has 3");
        refused(none.clone().with_upper(-1.0), "no number lies between 0 and -1");
        assert!(set_up(none.clone().with_lower(2.0).with_upper(2.0)).is_ok());
        let narrow = gallery::random::<f32>(20, 10, 50, 3).unwrap();
        let narrow = Matrix::with_transpose(&host, &narrow, Format::Csr).unwrap();
        let regularization = none.clone().with_lower(-1e300);
        let setup = Setup::new(method, Stopping::after(3)).with_regularizations(&[regularization]);
        assert!(Solver::with(&narrow, setup).err().unwrap().to_string().contains("too large for fp32"));
        let mut solver = set_up(none).unwrap();
        let mut upper = vec![f64::INFINITY; 10];
        solver.set_bounds(&[-1.0; 10], &upper).unwrap();
        upper[4] = 1.0;
        let error = solver.set_bounds(&[-1.0; 10], &upper).err().unwrap();
        assert!(error.to_string().contains("pixel 4 has 1"), "{error}");
    }
    for restart in [0, 101] {
        let setup = Setup::new(Method::Nnfcgls { restart }, Stopping::after(3));
        assert!(matches!(Solver::with(&a, setup), Err(Error::Option { name: "restart", .. })), "{restart}");
    }
}
