//! Operators: stencils that are never stored, operators made of others, and solves with what is no matrix.

use std::sync::Arc;

use crate::common::{self, bits, each_case, noise, reference};
use residuum::imaging::{Beam, Grid, Scanner};
use residuum::operator::{
    Boundary, Deflation, Diagonal, Identity, LinearOperator, LinearOperatorExt, SharedOperator, Stencil,
    adjoint_error, estimate_norm,
};
use residuum::sparse::gallery;
use residuum::{
    BackendKind, Columns, Csr, Device, Error, Format, Matrix, Method, NullSpace, Real, Regularization, Result,
    Setup, Solver, Stopping, Vector,
};

/// A matrix that does not say it is one: what a user's own operator looks like to a solver.
struct Disguised<T: Real> {
    matrix: Matrix<T>,
    /// Norm that it claims.
    bound: Option<f64>,
    /// True if its adjoint is that of another operator.
    wrong: bool,
    /// Bytes that it says it holds.
    bytes: u64,
}

fn disguised<T: Real>(matrix: &Matrix<T>) -> Disguised<T> {
    Disguised { matrix: matrix.clone(), bound: None, wrong: false, bytes: 0 }
}

impl<T: Real> LinearOperator<T> for Disguised<T> {
    fn device(&self) -> &Device {
        self.matrix.device()
    }
    fn rows(&self) -> usize {
        self.matrix.rows()
    }
    fn cols(&self) -> usize {
        self.matrix.cols()
    }
    fn apply(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        self.matrix.multiply(x, y)
    }
    fn apply_adjoint(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        if self.wrong { self.matrix.multiply(x, y) } else { self.matrix.multiply_transposed(x, y) }
    }
    fn has_adjoint(&self) -> bool {
        true
    }
    fn norm_bound(&self) -> Option<f64> {
        self.bound
    }
    fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// A `f64` that `T` holds exactly.
fn exact<T: Real>(value: f64) -> T {
    T::from_f64(value)
}

fn stencils() -> Vec<Stencil> {
    let upwind = [([0, 0, 0], 3.0), ([-1, 0, 0], -2.0), ([1, 0, 0], -0.5), ([0, 2, 0], 0.25), ([-3, 1, 0], 0.125)];
    let box_of_27: Vec<([i32; 3], f64)> = (0..27)
        .map(|k| ([k % 3 - 1, k / 3 % 3 - 1, k / 9 - 1], if k == 13 { 26.0 } else { -1.0 - f64::from(k) / 32.0 }))
        .collect();
    vec![
        Stencil::laplacian_2d(37, 23).unwrap(),
        Stencil::laplacian_3d(9, 11, 7).unwrap(),
        Stencil::new([41, 29, 1], &upwind).unwrap(),
        Stencil::new([7, 6, 8], &box_of_27).unwrap(),
        Stencil::new([1000, 1, 1], &[([0, 0, 0], 2.0), ([1, 0, 0], 1.0)]).unwrap(),
        Stencil::new([5, 5, 1], &[([0, 0, 0], 2.0)]).unwrap(),
        Stencil::new([5, 5, 1], &[]).unwrap(),
        Stencil::laplacian_2d(37, 23).unwrap().with_boundaries([REFLECTING, REFLECTING, Boundary::Zero]),
        Stencil::laplacian_2d(70, 5).unwrap().with_boundaries([PERIODIC, Boundary::Zero, REFLECTING]),
        Stencil::laplacian_2d(1, 300).unwrap().with_boundaries([PERIODIC, REFLECTING, PERIODIC]),
        Stencil::laplacian_2d(2, 1).unwrap().with_boundaries([PERIODIC, PERIODIC, Boundary::Zero]),
        Stencil::laplacian_3d(9, 11, 7).unwrap().with_boundaries([REFLECTING, PERIODIC, REFLECTING]),
        Stencil::new([41, 29, 1], &upwind).unwrap().with_boundaries([PERIODIC, PERIODIC, PERIODIC]),
        Stencil::new([41, 29, 1], &upwind).unwrap().with_boundaries([REFLECTING, PERIODIC, Boundary::Zero]),
        Stencil::new([2, 3, 1], &upwind).unwrap().with_boundaries([REFLECTING, PERIODIC, Boundary::Zero]),
        Stencil::new([7, 6, 8], &box_of_27).unwrap().with_boundaries([PERIODIC, REFLECTING, Boundary::Zero]),
        Stencil::new([40, 1, 1], &[([0, 0, 0], 2.0), ([3, 0, 0], -1.0), ([-3, 0, 0], -1.0)])
            .unwrap()
            .with_boundaries([REFLECTING; 3]),
    ]
}

const REFLECTING: Boundary = Boundary::Reflecting;
const PERIODIC: Boundary = Boundary::Periodic;

/// The matrix of a stencil by its definition, dense: no code of the library but its points.
fn by_definition(size: [i64; 3], points: &[([i32; 3], f64)], boundaries: [Boundary; 3]) -> Vec<Vec<f64>> {
    let n = (size[0] * size[1] * size[2]) as usize;
    let mut a = vec![vec![0.0; n]; n];
    for (i, row) in a.iter_mut().enumerate() {
        let i = i as i64;
        let at = [i % size[0], i / size[0] % size[1], i / (size[0] * size[1])];
        for (offset, c) in points {
            let mut there = [0; 3];
            let mut found = true;
            for k in 0..3 {
                let mut t = at[k] + i64::from(offset[k]);
                while !(0..size[k]).contains(&t) {
                    match boundaries[k] {
                        Boundary::Zero => {
                            found = false;
                            break;
                        }
                        Boundary::Periodic => t += if t < 0 { size[k] } else { -size[k] },
                        Boundary::Reflecting => t = if t < 0 { -1 - t } else { 2 * size[k] - 1 - t },
                    }
                }
                there[k] = t;
            }
            if found {
                row[(there[0] + size[0] * (there[1] + size[1] * there[2])) as usize] += c;
            }
        }
    }
    a
}

#[test]
fn rims_are_as_they_are_defined() {
    let points = [([0, 0, 0], 4.5), ([-1, 0, 0], -1.0), ([2, 0, 0], -0.5), ([0, 1, 0], -2.0), ([1, -3, 1], 0.25)];
    let kinds = [Boundary::Zero, Boundary::Reflecting, Boundary::Periodic];
    for k in 0..27 {
        let boundaries = [kinds[k % 3], kinds[k / 3 % 3], kinds[k / 9]];
        for size in [[5, 4, 3], [1, 2, 2], [3, 1, 1]] {
            let wanted = by_definition(size, &points, boundaries);
            let stencil = Stencil::new(size.map(|n| n as usize), &points).unwrap().with_boundaries(boundaries);
            let found = stencil.to_csr::<f64>().unwrap();
            for (i, wanted) in wanted.iter().enumerate() {
                let mut row = vec![0.0; wanted.len()];
                let (columns, values) = found.row(i);
                for (j, v) in columns.iter().zip(values) {
                    row[*j as usize] = *v;
                }
                assert_eq!(&row, wanted, "{size:?} {boundaries:?}, row {i}");
            }
        }
    }
    // Nothing is lost through a boundary that reflects, and it tells rows apart only where it must.
    let closed = Stencil::laplacian_2d(40, 30).unwrap().with_boundaries([REFLECTING, REFLECTING, Boundary::Zero]);
    let a = closed.operator::<f64>(&Device::host()).unwrap();
    let (ones, mut y) = (Vector::filled(a.device(), 1200, 1.0).unwrap(), Vector::zeros(a.device(), 1200).unwrap());
    a.multiply(&ones, &mut y).unwrap();
    assert_eq!(y.asum().unwrap(), 0.0);
    let far = [([0, 0, 0], 1.0), ([0, 900, 0], 1.0), ([900, 0, 0], 1.0)];
    let far = Stencil::new([1000, 1000, 1], &far)
        .unwrap()
        .with_boundaries([PERIODIC; 3])
        .operator::<f64>(&Device::host());
    assert!(matches!(far, Err(Error::Option { name: "stencil", .. })));
}

fn stencil_products<T: Real>(device: &Device) {
    for stencil in stencils() {
        let n = stencil.len();
        let stored = Matrix::with_transpose(device, &stencil.to_csr::<T>().unwrap(), Format::CsrScalar).unwrap();
        let made = stencil.operator::<T>(device).unwrap();
        assert_eq!(made.nnz(), stored.nnz());
        assert!((made.frobenius_norm() - stored.frobenius_norm()).abs() <= 1e-6 * stored.frobenius_norm());
        let x = Vector::from_slice(device, &noise::<T>(n, 3)).unwrap();
        let product = |a: &Matrix<T>, transposed: bool| {
            let mut y = Vector::filled(device, n, T::from_f64(f64::NAN)).unwrap();
            if transposed { a.multiply_transposed(&x, &mut y) } else { a.multiply(&x, &mut y) }.unwrap();
            bits(&y.to_vec().unwrap())
        };
        for transposed in [false, true].into_iter().filter(|transposed| !transposed || made.has_adjoint()) {
            assert_eq!(product(&made, transposed), product(&stored, transposed), "{stencil:?} {}", device.tuning());
        }
    }
    let b = Vector::from_slice(device, &noise::<T>(2000, 4)).unwrap();
    let solve = |a: &Matrix<T>| {
        let mut x = Vector::zeros(device, 2000).unwrap();
        let report = Solver::new(a, Method::Cg, Stopping::after(30)).unwrap().solve(&b, &mut x).unwrap();
        (bits(&x.to_vec().unwrap()), bits(&report.history))
    };
    for boundaries in [[Boundary::Zero; 3], [REFLECTING, PERIODIC, Boundary::Zero]] {
        let stencil = Stencil::laplacian_2d(50, 40).unwrap().with_boundaries(boundaries);
        let stored = Matrix::new(device, &stencil.to_csr::<T>().unwrap(), Format::CsrScalar).unwrap();
        assert!(solve(&stencil.operator(device).unwrap()) == solve(&stored), "{boundaries:?} {}", device.tuning());
    }
}

#[test]
fn stencils_f32() {
    each_case::<f32>(stencil_products::<f32>);
}

#[test]
fn stencils_f64() {
    each_case::<f64>(stencil_products::<f64>);
}

/// Solves with what is no matrix take other launches than with a matrix, and give the same bits.
fn unfused<T: Real>(device: &Device) {
    let a = Matrix::new(device, &gallery::poisson_2d::<T>(33, 0.0).unwrap(), Format::Csr).unwrap();
    let b = Vector::from_slice(device, &noise::<T>(33 * 33, 1)).unwrap();
    let solve = |a: SharedOperator<T>| {
        let mut x = Vector::zeros(device, b.len()).unwrap();
        let stopping = Stopping::after(25).with_check_every(3);
        let report = Solver::new(a, Method::Cg, stopping).unwrap().solve(&b, &mut x).unwrap();
        (bits(&x.to_vec().unwrap()), bits(&report.history[..25]))
    };
    assert!(
        solve((&a).into()) == solve(disguised(&a).shared()),
        "cg on {} {}",
        device.info().name,
        device.tuning()
    );

    let wide = gallery::random::<T>(700, 192, 4000, 5).unwrap();
    let a = Matrix::with_transpose(device, &wide, Format::Csr).unwrap();
    let b = Vector::from_slice(device, &noise::<T>(700, 2)).unwrap();
    let regularization = Regularization::none()
        .with_smooth(0.25)
        .with_variation(0.125)
        .with_epsilon(0.01)
        .with_lower(0.0)
        .with_bound_weight(1.0)
        .with_width(16);
    for regularization in [Regularization::none(), regularization] {
        let solve = |a: SharedOperator<T>| {
            let mut x = Vector::zeros(device, 192).unwrap();
            let stopping = Stopping::after(20).with_check_every(3);
            let mut solver = common::cgnr(a, std::slice::from_ref(&regularization), stopping).unwrap();
            let report = solver.solve(&b, &mut x).unwrap();
            (bits(&x.to_vec().unwrap()), bits(&report.history[..20]), bits(&report.gradient_history[..20]))
        };
        assert!(
            solve((&a).into()) == solve(disguised(&a).shared()),
            "cgnr on {} {}",
            device.info().name,
            device.tuning()
        );
    }
}

#[test]
fn unfused_solves_f32() {
    each_case::<f32>(unfused::<f32>);
}

#[test]
fn unfused_solves_f64() {
    each_case::<f64>(unfused::<f64>);
}

/// Images are traced one after another, each by launches of its own.
#[test]
fn a_projector_gives_the_same_image_alone_and_beside_another() {
    each_case::<f32>(|device| {
        let beam = Beam::Fan { source_origin: 90.0, source_detector: 140.0 };
        let angles = (0..40).map(|k| 9.0 * f64::from(k)).collect();
        let scanner = Scanner { beam, pixels: 45, pitch: 1.3, offset: 0.7, angles };
        let a = scanner.projector::<f32>(device, Grid { side: 24, pixel: 40.0 / 24.0 }).unwrap();
        let readings = [noise::<f32>(a.rows(), 1), noise::<f32>(a.rows(), 2)];
        let solve = |readings: &[&[f32]]| {
            let b = Columns::new(device, readings).unwrap();
            let mut x = Columns::zeros(device, a.cols(), readings.len()).unwrap();
            let regularizations = vec![Regularization::none().with_tikhonov(0.5); readings.len()];
            let mut solver = common::cgnr(&a, &regularizations, Stopping::after(12)).unwrap();
            let reports = solver.solve_many(&b, &mut x).unwrap();
            (bits(&x.to_vecs().unwrap()[0]), reports[0].launches_per_iteration)
        };
        let (alone, launches) = solve(&[&readings[0]]);
        let (beside, more) = solve(&[&readings[0], &readings[1]]);
        assert!(alone == beside, "{} {}", device.info().name, device.tuning());
        if device.backend_kind() == BackendKind::OpenCl {
            assert_eq!((launches, more), (8, 12));
        }
    });
}

/// `A x` in exact enough arithmetic.
fn multiply(a: &Csr<f64>, x: &[f64]) -> Vec<f64> {
    (0..a.rows()).map(|i| a.row(i).0.iter().zip(a.row(i).1).map(|(j, v)| v * x[*j as usize]).sum()).collect()
}

#[test]
fn operators_of_operators_multiply_as_written() {
    each_case::<f64>(|device| {
        let (a, b) =
            (gallery::random::<f64>(60, 40, 300, 1).unwrap(), gallery::random::<f64>(60, 40, 500, 2).unwrap());
        let c = gallery::random::<f64>(40, 50, 200, 3).unwrap();
        let matrix = |m: &Csr<f64>| Matrix::with_transpose(device, m, Format::Auto).unwrap();
        let weights: Vec<f64> = noise(60, 9);
        let diagonal = Diagonal::new(Vector::from_slice(device, &weights).unwrap()).unwrap();
        // D (A + 2 B) C, 60 x 50.
        let inner = matrix(&a).plus(matrix(&b).scaled(2.0)).unwrap().times(matrix(&c)).unwrap();
        let operator = diagonal.times(inner).unwrap();
        assert_eq!((operator.rows(), operator.cols()), (60, 50));
        let x: Vec<f64> = noise(50, 4);
        let mut y = Vector::filled(device, 60, f64::NAN).unwrap();
        operator.apply(&Vector::from_slice(device, &x).unwrap(), &mut y).unwrap();
        let between = multiply(&c, &x);
        let (ax, bx) = (multiply(&a, &between), multiply(&b, &between));
        for (i, found) in y.to_vec().unwrap().into_iter().enumerate() {
            let wanted = weights[i] * (ax[i] + 2.0 * bx[i]);
            assert!((found - wanted).abs() <= 1e-12 * (1.0 + wanted.abs()), "{i}: {found} {wanted}");
        }
        assert!(adjoint_error(&operator, 5).unwrap() < 1e-14);
        let norm = estimate_norm(&operator, 30).unwrap();
        let square = |m: &Csr<f64>| m.values().iter().map(|v| v * v).sum::<f64>();
        let bound = (square(&a).sqrt() + 2.0 * square(&b).sqrt()) * square(&c).sqrt();
        assert!(norm > 0.0 && norm <= bound, "{norm} {bound}");
        assert_eq!(operator.norm_bound(), None);
        // (the transposed of the transposed, and transposes of sums)
        let transposed = operator.adjoint().unwrap();
        assert_eq!((transposed.rows(), transposed.cols()), (50, 60));
        assert!(adjoint_error(&transposed, 6).unwrap() < 1e-14);
    });
}

#[test]
fn damped_normal_equations_are_solved_through_operators() {
    each_case::<f64>(|device| {
        // (A'A + I) x = A'b by CG, and the same minimiser by CGNR with Tikhonov weight 1.
        let a =
            Matrix::with_transpose(device, &gallery::random::<f64>(120, 30, 400, 8).unwrap(), Format::Csr).unwrap();
        let b = Vector::from_slice(device, &noise::<f64>(120, 2)).unwrap();
        let normal = a
            .clone()
            .adjoint()
            .unwrap()
            .times(a.clone())
            .unwrap()
            .plus(Identity::new(device, 30).scaled(exact(1.0)));
        let mut rhs = Vector::zeros(device, 30).unwrap();
        a.multiply_transposed(&b, &mut rhs).unwrap();
        let mut x = Vector::zeros(device, 30).unwrap();
        let stopping = Stopping::for_precision::<f64>().with_rtol(1e-12);
        let report = Solver::new(normal.unwrap().shared(), Method::Cg, stopping.clone())
            .unwrap()
            .solve(&rhs, &mut x)
            .unwrap();
        assert!(report.converged(), "{report}");
        let mut z = Vector::zeros(device, 30).unwrap();
        let damped = Regularization::none().with_tikhonov(1.0);
        let stopping = Stopping::after(200).with_gradient_reduction(1e-12);
        let _ = common::cgnr(disguised(&a).shared(), &[damped], stopping).unwrap().solve(&b, &mut z).unwrap();
        for (x, z) in x.to_vec().unwrap().iter().zip(z.to_vec().unwrap()) {
            assert!((x - z).abs() < 1e-9, "{x} {z}");
        }
    });
}

#[test]
fn a_loose_bound_of_the_norm_is_no_convergence() {
    let device = Device::host();
    let a = Stencil::laplacian_2d(200, 200).unwrap().operator::<f32>(&device).unwrap();
    let b = Vector::filled(&device, 40_000, 1.0).unwrap();
    let shared = Arc::new(a.clone());
    let twice = shared.clone().times(shared).unwrap().shared();
    for operator in [twice.clone(), Disguised { bound: Some(f64::INFINITY), ..disguised(&a) }.shared()] {
        for stopping in [Stopping::for_precision::<f32>(), Stopping::after(3)] {
            let stopping = stopping.with_max_iterations(3);
            let mut x = Vector::zeros(&device, 40_000).unwrap();
            let report = common::cgnr(operator.clone(), &[Regularization::none()], stopping)
                .unwrap()
                .solve(&b, &mut x)
                .unwrap();
            assert!(!report.converged() && report.iterations == 3, "{report}");
        }
    }
    // Memory that two factors share is counted by its owner.
    assert!((*twice).bytes() < a.bytes() + 8 * 40_000 && (*twice).bytes() > 0);
}

#[test]
fn what_does_not_fit_is_refused_in_words() {
    let device = reference::<f64>(&Device::host());
    let stencil = Stencil::new([12, 5, 1], &[([0, 0, 0], 1.0), ([1, 0, 0], -0.5)]).unwrap();
    let a = stencil.operator::<f64>(&device).unwrap();
    assert!(adjoint_error(&a, 1).unwrap() < 1e-14);
    assert!(adjoint_error(&Disguised { wrong: true, ..disguised(&a) }, 1).unwrap() > 1e-3);
    let plain = Matrix::new(&device, &gallery::random::<f64>(9, 7, 20, 1).unwrap(), Format::Csr).unwrap();
    assert!((&plain).plus(&a).is_err());
    assert!((&plain).times(&plain).is_err());
    assert!(adjoint_error(&plain, 1).unwrap_err().to_string().contains("transpose"));
    assert!((&plain).adjoint().unwrap_err().to_string().contains("apply_adjoint"));
    let none = Regularization::none();
    assert!(common::cgnr(&plain, std::slice::from_ref(&none), Stopping::after(1)).is_err());
    let two = [none.clone(), none.clone()];
    assert!(
        common::cgnr(disguised(&a).shared(), &two, Stopping::after(1)).unwrap_err().to_string().contains("one")
    );
    // Memory of an operator counts: as operator, as preconditioner, for every kind of method.
    // A product without an adjoint is refused at set-up too, although its last factor, transposed, is stored.
    let square =
        Matrix::with_transpose(&device, &gallery::poisson_2d::<f64>(3, 0.0).unwrap(), Format::Csr).unwrap();
    let half = plain.clone().times(Identity::new(&device, 7)).unwrap();
    let other =
        Matrix::with_transpose(&device, &gallery::random::<f64>(7, 9, 20, 2).unwrap(), Format::Csr).unwrap();
    let product = half.times(other).unwrap().times(square).unwrap().shared();
    assert!(Solver::new(product, Method::Lsqr { damp: 0.0 }, Stopping::after(1)).is_err());
    let huge = Disguised { bytes: 1 << 60, ..disguised(&a) }.shared();
    for method in [Method::Cg, Method::BiCgStab, Method::Cgnr] {
        let refused = Solver::new(huge.clone(), method, Stopping::after(1));
        assert!(matches!(refused, Err(Error::Memory { .. })), "{method}");
    }
    let setup = Setup::new(Method::Gmres { restart: 3 }, Stopping::after(1)).with_preconditioner(huge);
    assert!(matches!(Solver::with(&a, setup), Err(Error::Memory { .. })));
    let flat = Diagonal::new(Vector::filled(&device, 7, 2.0).unwrap()).unwrap();
    let sum = plain.clone().times(flat).unwrap();
    assert!(!sum.has_adjoint());
    assert!(
        common::cgnr(sum.shared(), &[none], Stopping::after(1)).unwrap_err().to_string().contains("apply_adjoint")
    );
}

/// Products of operators, of which the last factor is fused: the answers of the matrix that they are, fewer launches, the same bits
/// everywhere.
#[test]
fn products_of_operators_are_fused() {
    each_case::<f64>(|device| {
        let solve = |device: &Device, method: Method, as_preconditioner: bool, disguise: bool| {
            // Z: upper bidiagonal; Z D Z' is positive definite.
            let entry = |i: usize, row: &mut Vec<(u32, f64)>| {
                row.push((i as u32, 1.0));
                if i + 1 < 300 {
                    row.push((i as u32 + 1, 0.3));
                }
            };
            let z = Csr::from_rows(300, 300, entry).unwrap();
            let z = Arc::new(Matrix::with_transpose(device, &z, Format::Csr).unwrap());
            let entries: Vec<f64> = (0..300).map(|i| 1.0 + 0.5 * f64::from(i % 4)).collect();
            let d = Diagonal::new(Vector::from_slice(device, &entries).unwrap()).unwrap();
            let zdz = z.clone().times(d).unwrap().times(z.clone().adjoint().unwrap()).unwrap().shared();
            // An operator that hides its structure is asked for whole products.
            let zdz = if disguise { common::Opaque(zdz).shared() } else { zdz };
            let b = Vector::from_slice(device, &noise::<f64>(300, 4)).unwrap();
            let mut x = Vector::zeros(device, 300).unwrap();
            let setup = Setup::new(method, Stopping::for_precision::<f64>().with_max_iterations(60));
            let mut solver = if as_preconditioner {
                let poisson = Stencil::new([300, 1, 1], &[([0, 0, 0], 2.1), ([1, 0, 0], -1.0), ([-1, 0, 0], -1.0)]);
                let poisson = poisson.unwrap().operator::<f64>(device).unwrap();
                Solver::with(&poisson, setup.with_preconditioner(zdz)).unwrap()
            } else {
                Solver::with(zdz, setup).unwrap()
            };
            let report = solver.solve(&b, &mut x).unwrap();
            assert!(report.converged(), "{report}");
            (x.to_vec().unwrap(), report)
        };
        for (method, as_preconditioner) in [
            (Method::Cg, false),
            (Method::Minres, false),
            (Method::Lsqr { damp: 0.0 }, false),
            (Method::Cg, true),
            (Method::BiCgStab, true),
        ] {
            let (x, report) = solve(device, method, as_preconditioner, false);
            let (host, wanted) = solve(&reference::<f64>(device), method, as_preconditioner, false);
            let words = format!("{method} on {}", device.info().name);
            assert!(bits(&x) == bits(&host) && report.history == wanted.history, "{words}");
            let (whole, other) = solve(device, method, as_preconditioner, true);
            for (x, whole) in x.iter().zip(&whole) {
                assert!((x - whole).abs() < 1e-6, "{words}: {x} {whole}");
            }
            if device.info().index.is_some() {
                // BiCGSTAB sums nothing beside the products with its preconditioner: a product that is done by an operator has no launch of its own.
                let launches = [report.launches_per_iteration, other.launches_per_iteration];
                if method == Method::BiCgStab {
                    assert_eq!(launches[0], launches[1], "{words}");
                } else {
                    assert!(launches[0] < launches[1], "{words}: {launches:?}");
                }
            }
        }
    });
}

/// A grid without fixed values: rows sum to 0, ones are a null vector.
fn free_grid<T: Real>(side: usize) -> Csr<T> {
    Csr::from_rows(side * side, side * side, |i, row| {
        let (x, y) = (i % side, i / side);
        let near = [(y > 0, -(side as i64)), (x > 0, -1), (x + 1 < side, 1), (y + 1 < side, side as i64)];
        let neighbours: Vec<i64> = near.iter().filter(|n| n.0).map(|n| n.1).collect();
        row.push((i as u32, exact(neighbours.len() as f64)));
        row.extend(neighbours.iter().map(|step| ((i as i64 + step) as u32, exact(-1.0))));
        row.sort_unstable_by_key(|entry| entry.0);
    })
    .unwrap()
}

#[test]
fn deflation_solves_what_is_singular() {
    each_case::<f64>(|device| {
        let side = 15;
        let solve = |device: &Device| {
            let matrix = Matrix::new(device, &free_grid::<f64>(side), Format::Auto).unwrap();
            let ones = || Vector::filled(device, side * side, 1.0).unwrap();
            let p = Arc::new(Deflation::new(ones()).unwrap());
            assert!(adjoint_error(&p, 2).unwrap() < 1e-14);
            let given = Vector::from_slice(device, &noise::<f64>(side * side, 4)).unwrap();
            let mut b = Vector::zeros(device, side * side).unwrap();
            p.apply(&given, &mut b).unwrap();
            assert!(b.dot(&ones()).unwrap().abs() < 1e-12);
            let projected = p.clone().times(matrix.clone()).unwrap().times(p).unwrap().shared();
            let mut x = Vector::zeros(device, side * side).unwrap();
            let report = Solver::new(projected, Method::Cg, Stopping::for_precision::<f64>())
                .unwrap()
                .solve(&b, &mut x)
                .unwrap();
            assert!(report.converged(), "{report}");
            assert!(x.dot(&ones()).unwrap().abs() < 1e-7, "the answer has a share of the null vector");
            let mut product = Vector::zeros(device, side * side).unwrap();
            matrix.multiply(&x, &mut product).unwrap();
            product.axpby(-1.0, &b, 1.0).unwrap();
            assert!(product.norm2().unwrap() < 1e-7 * b.norm2().unwrap());
            (bits(&x.to_vec().unwrap()), bits(&report.history))
        };
        assert!(solve(device) == solve(&reference::<f64>(device)), "{}", device.info().name);
    });
    // Directions and vectors whose products leave the range of the precision.
    let small = Deflation::new(Vector::filled(&Device::host(), 4, 1e-25f32).unwrap()).unwrap();
    let mut y = Vector::zeros(&Device::host(), 4).unwrap();
    small
        .clone()
        .apply(&Vector::from_slice(&Device::host(), &[1e25f32, 3e25, 1e25, 3e25]).unwrap(), &mut y)
        .unwrap();
    approx::assert_relative_eq!(y.to_vec().unwrap()[1], 1e25, max_relative = 1e-6);
    for useless in [0.0, f64::NAN] {
        let direction = Vector::filled(&Device::host(), 3, useless).unwrap();
        assert!(matches!(Deflation::new(direction), Err(Error::Option { name: "direction", .. })));
    }
}

/// Solves of one operator, with scratch memory behind a lock, on several threads at once: none waits for a lock that its own thread
/// holds. On the host they share the threads of every launch.
#[test]
fn one_operator_serves_solves_on_several_threads() {
    let device = Device::host();
    let a = gallery::poisson_2d::<f64>(120, 0.0).unwrap();
    let matrix = Matrix::new(&device, &a, Format::Csr).unwrap();
    let shifted = matrix.plus(Identity::new(&device, a.rows()).scaled(0.01)).unwrap().shared();
    let b = noise::<f64>(a.rows(), 9);
    let solve = || {
        let mut x = Vector::zeros(&device, a.rows()).unwrap();
        let mut solver = Solver::new(shifted.clone(), Method::Cg, Stopping::for_precision::<f64>()).unwrap();
        let report = solver.solve(&Vector::from_slice(&device, &b).unwrap(), &mut x).unwrap();
        assert!(report.converged(), "{report}");
        bits(&x.to_vec().unwrap())
    };
    let wanted = solve();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| (0..5).map(|_| solve()).collect::<Vec<_>>())).collect();
        for thread in threads {
            assert!(thread.join().unwrap().iter().all(|x| *x == wanted));
        }
    });
}

/// A grid whose boundaries reflect, with a right-hand side that has a part in the null space, and a start that has one.
fn singular<T: Real>(device: &Device) -> (Vec<u64>, Vec<u64>) {
    let closed = Stencil::laplacian_2d(40, 25).unwrap().with_boundaries([REFLECTING, REFLECTING, Boundary::Zero]);
    let a = closed.operator::<T>(device).unwrap();
    let b = Vector::from_slice(device, &noise::<T>(1000, 5).iter().map(|v| *v + exact(0.5)).collect::<Vec<_>>())
        .unwrap();
    let mut x = Vector::filled(device, 1000, exact(3.0)).unwrap();
    let setup = Setup::new(Method::Cg, Stopping::for_precision::<T>());
    let space = NullSpace::constants(device, 1000).unwrap();
    let report = Solver::with(&a, setup.clone().with_null_space(space)).unwrap().solve(&b, &mut x).unwrap();
    assert!(report.converged(), "{report}");
    // The part that was left out is the mean, and so is what the answer has of it nothing.
    let mean = b.sum().unwrap() / 1000.0;
    assert!((report.projected.unwrap() - mean.abs() * 1000f64.sqrt()).abs() < 1e-5 * mean.abs());
    assert!(x.sum().unwrap().abs() < 1e-4 * x.asum().unwrap(), "{}", x.sum().unwrap());
    let mut r = Vector::zeros(device, 1000).unwrap();
    a.multiply(&x, &mut r).unwrap();
    r.axpby(exact(1.0), &b, exact(-1.0)).unwrap();
    assert!((r.norm2().unwrap() - report.projected.unwrap()).abs() < 1e-4, "what is left is the part left out");
    // Without it there is no solution, and none is claimed.
    let mut x = Vector::zeros(device, 1000).unwrap();
    assert!(!Solver::with(&a, setup).unwrap().solve(&b, &mut x).unwrap().converged());
    (bits(&x.to_vec().unwrap()), bits(&report.history))
}

#[test]
fn null_spaces_are_left_out() {
    fn all<T: Real>() {
        each_case::<T>(|device| {
            assert!(singular::<T>(device) == singular::<T>(&reference::<T>(device)), "{}", device.tuning())
        });
    }
    all::<f32>();
    all::<f64>();
}

#[test]
fn what_is_no_null_space_is_refused() {
    let device = Device::host();
    let vector =
        |f: &dyn Fn(usize) -> f64| Vector::from_slice(&device, &(0..30).map(f).collect::<Vec<_>>()).unwrap();
    let halves = [vector(&|i| if i < 15 { 1.0 } else { 0.0 }), vector(&|i| if i < 15 { 0.0 } else { 1.0 })];
    for bad in
        [vec![], vec![vector(&|_| 0.0)], vec![vector(&|_| f64::NAN)], vec![vector(&|_| 1.0), vector(&|i| i as f64)]]
    {
        assert!(matches!(NullSpace::of(bad), Err(Error::Option { name: "null_space", .. })));
    }
    let space = NullSpace::of(halves.into()).unwrap();
    assert_eq!(space.dimension(), 2);
    let setup = Setup::new(Method::Cg, Stopping::for_precision::<f64>()).with_null_space(space.clone());
    let refused = |a: &Matrix<f64>, setup: Setup<f64>| {
        assert!(matches!(Solver::with(a, setup), Err(Error::Conflict { name: "null_space", .. })));
    };
    // Two grids that do not touch have it; one grid, and one with fixed values, have not.
    let line = Stencil::laplacian_2d(30, 1).unwrap();
    refused(&line.clone().operator(&device).unwrap(), setup.clone());
    let closed = line.with_boundaries([REFLECTING, REFLECTING, Boundary::Zero]).operator(&device).unwrap();
    refused(&closed, setup.clone());
    let two = gallery_of_two(&device);
    let mut x = Vector::zeros(&device, 30).unwrap();
    let b = vector(&|i| (i % 7) as f64);
    let report = Solver::with(&two, setup.clone()).unwrap().solve(&b, &mut x).unwrap();
    assert!(report.converged() && report.projected.unwrap() > 1.0, "{report}");
    refused(&two, setup.with_columns(2));
    refused(&two, Setup::new(Method::Lsqr { damp: 0.0 }, Stopping::after(1)).with_null_space(space));
}

/// Two lines of 15 points whose ends reflect.
fn gallery_of_two(device: &Device) -> Matrix<f64> {
    let a = Csr::from_rows(30, 30, |i, row| {
        let there = |j: usize| j < 30 && j / 15 == i / 15;
        let neighbours = [i.wrapping_sub(1), i + 1].map(there);
        let count = neighbours.iter().filter(|there| **there).count();
        if neighbours[0] {
            row.push((i as u32 - 1, -1.0));
        }
        row.push((i as u32, count as f64));
        if neighbours[1] {
            row.push((i as u32 + 1, -1.0));
        }
    });
    Matrix::new(device, &a.unwrap(), Format::Csr).unwrap()
}
