//! Solvers: right answers, honest reports, the same bits everywhere, no allocation the second time.

use std::ops::ControlFlow;

use crate::common::problems::{self, everything};
use crate::common::{self, bits, each_case, noise, reference, residencies};
use residuum::operator::Diagonal;
use residuum::precond::Preconditioner;
use residuum::sparse::gallery;
use residuum::{
    BackendKind, Columns, Csr, Device, Error, Format, Matrix, Method, Real, Regularization, Report, Setup, Solver,
    Stop, Stopping, Vector, measure,
};

/// Parts of a result that must not differ between devices, work-groups and look intervals.
fn essence<T: Real>(x: &Vector<T>, report: &Report) -> (Vec<u64>, usize, Stop, Vec<u64>) {
    let mut numbers = vec![report.residual, report.true_residual, report.gradient.unwrap_or(0.0)];
    numbers.extend(&report.history);
    numbers.extend(&report.gradient_history);
    (bits(&x.to_vec().unwrap()), report.iterations, report.stop, bits(&numbers))
}

fn cg<T: Real>(device: &Device, a: &Csr<T>, b: &[T], format: Format, stopping: &Stopping) -> (Vector<T>, Report) {
    let matrix = Matrix::new(device, a, format).unwrap();
    let b = Vector::from_slice(device, b).unwrap();
    let mut x = Vector::zeros(device, a.cols()).unwrap();
    let report = Solver::new(&matrix, Method::Cg, stopping.clone()).unwrap().solve(&b, &mut x).unwrap();
    (x, report)
}

fn side() -> usize {
    70
}

fn cg_everywhere<T: Real>(device: &Device) {
    let a = gallery::poisson_2d::<T>(side(), 0.01).unwrap();
    let b = noise::<T>(a.rows(), 11);
    let stopping = Stopping::for_precision::<T>();
    let mut sequential = Vec::new();
    for format in Format::ALL.iter().copied().filter(|f| *f != Format::Dense) {
        let (x, report) = cg(&reference::<T>(device), &a, &b, format, &stopping);
        assert_eq!(report.stop, Stop::Converged, "{report}");
        assert!(report.true_residual <= stopping.rtol * report.rhs_norm);
        assert_eq!(report.history.len(), report.iterations + 1);
        let wanted = essence(&x, &report);
        sequential.extend(Some(wanted.clone()).filter(|_| format.sequential()));
        let looks = if format == Format::Csr { &[1, 7, 64][..] } else { &[32] };
        for &check_every in looks {
            let (x, report) = cg(device, &a, &b, format, &stopping.clone().with_check_every(check_every));
            assert_eq!(essence(&x, &report), wanted, "{} {format} every {check_every}", device.info().name);
        }
    }
    assert!(sequential.windows(2).all(|pair| pair[0] == pair[1]), "the sequential formats must agree");
}

/// One launch for many iterations, by one group, by several, by more than can run at once (which is noticed), or none.
fn cg_resident_or_not<T: Real>(device: &Device) {
    let b = noise::<T>(45 * 45, 13);
    let a = gallery::poisson_2d::<T>(45, 0.01).unwrap();
    // One negative entry of the diagonal shows after some iterations.
    let mut values = a.values().to_vec();
    let diagonal = a.offsets()[1000] + a.row(1000).0.iter().position(|j| *j == 1000).unwrap();
    values[diagonal] = T::from_f64(-0.5);
    let indefinite = Csr::new(a.rows(), a.cols(), a.offsets().to_vec(), a.indices().to_vec(), values).unwrap();
    for (a, stopping, stop) in [
        (&a, Stopping::for_precision::<T>(), Stop::Converged),
        (&a, Stopping::after(11), Stop::MaxIterations),
        (&indefinite, Stopping::for_precision::<T>(), Stop::Indefinite),
    ] {
        let (x, report) = cg(&reference::<T>(device), a, &b, Format::Csr, &stopping);
        assert_eq!(report.stop, stop, "{report}");
        let wanted = essence(&x, &report);
        for &groups in residencies(device, &[0, 1, 2, 5, 100_000]) {
            let device = device.with_resident_groups(groups);
            let formats = if groups == 5 { &[Format::Csr, Format::CsrAdaptive][..] } else { &[Format::Csr] };
            for &format in formats {
                let wanted = match format {
                    Format::Csr => wanted.clone(),
                    _ => {
                        let (x, report) = cg(&reference::<T>(&device), a, &b, format, &stopping);
                        essence(&x, &report)
                    }
                };
                for check_every in [7, 64] {
                    let (x, report) = cg(&device, a, &b, format, &stopping.clone().with_check_every(check_every));
                    let name = format!("{} {} {format}: {groups} groups", device.info().name, device.tuning());
                    assert_eq!(essence(&x, &report), wanted, "{name}");
                }
            }
        }
    }
}

#[test]
fn cg_is_the_same_in_one_launch() {
    each_case::<f64>(cg_resident_or_not::<f64>);
    each_case::<f32>(cg_resident_or_not::<f32>);
}

/// CG with a diagonal: by kernels of its own, many iterations in one launch or two for each, and by the general kernels, which several columns
/// take.
fn diagonal_resident_or_not<T: Real>(device: &Device) {
    let a = gallery::poisson_2d::<T>(45, 0.01).unwrap();
    let s: Vec<f64> = (0..a.rows()).map(|i| 1.0 + (i % 7) as f64 / 3.0).collect();
    let a = a.scaled(&s, &s).unwrap();
    let b = noise::<T>(a.rows(), 14);
    let good: Vec<T> = a.diagonal().iter().map(|d| T::from_f64(1.0 / d)).collect();
    // Shows at the start, or after some iterations.
    let mut negative = good.clone();
    negative[1000] = T::from_f64(-0.1);
    let wholly: Vec<T> = good.iter().map(|m| T::from_f64(-m.to_f64())).collect();
    for (m, stopping, stop) in [
        (&good, Stopping::for_precision::<T>(), Stop::Converged),
        (&good, Stopping::after(11), Stop::MaxIterations),
        (&negative, Stopping::for_precision::<T>(), Stop::IndefinitePreconditioner),
        (&wholly, Stopping::for_precision::<T>(), Stop::IndefinitePreconditioner),
    ] {
        let solve = |device: &Device, stopping: Stopping, columns: usize| {
            let matrix = Matrix::new(device, &a, Format::Csr).unwrap();
            let diagonal = Diagonal::new(Vector::from_slice(device, m).unwrap()).unwrap();
            let setup = Setup::new(Method::Cg, stopping).with_preconditioner(diagonal).with_columns(columns);
            let mut x = Columns::zeros(device, a.cols(), columns).unwrap();
            let mut solver = Solver::with(&matrix, setup).unwrap();
            let b = Columns::new(device, &vec![&b[..]; columns]).unwrap();
            let reports = solver.solve_many(&b, &mut x).unwrap();
            assert!(reports.iter().all(|report| report.stop == stop), "{reports:?}");
            problems::essence(&x.to_vecs().unwrap()[columns - 1], &reports[columns - 1])
        };
        let wanted = solve(&reference::<T>(device), stopping.clone(), 1);
        for &groups in residencies(device, &[0, 1, 2, 100_000]) {
            let device = device.with_resident_groups(groups);
            // Afresh so rarely that it never happens.
            for (check_every, exact_every, columns) in [(7, 0, 1), (64, 0, 1), (16, 1 << 20, 1), (16, 0, 2)] {
                let found = solve(
                    &device,
                    stopping.clone().with_check_every(check_every).with_exact_every(exact_every),
                    columns,
                );
                let name = format!("{} {}", device.info().name, device.tuning());
                let words =
                    format!("{groups} groups, every {check_every}, afresh {exact_every}, {columns} columns");
                assert_eq!(found, wanted, "{name}: {words}");
            }
        }
    }
}

#[test]
fn cg_with_a_diagonal_is_the_same_in_one_launch() {
    each_case::<f64>(diagonal_resident_or_not::<f64>);
    each_case::<f32>(diagonal_resident_or_not::<f32>);
}

/// Every script in one launch, by one group, by several (on CPUs more than can run at once, which is noticed), or none; the first
/// matrix in formats whose rows are found in other ways, with a preconditioner of each kind.
fn scripts_resident_or_not<T: Real>(device: &Device) {
    let (square, tall) =
        (gallery::block_poisson::<T>(9, 3).unwrap(), gallery::random::<T>(300, 170, 2400, 3).unwrap());
    // Chunks of rows have more lanes than those of columns, or fewer.
    let (long, wide) = (
        gallery::random::<T>(33_000, 100, 40_000, 5).unwrap(),
        gallery::random::<T>(100, 33_000, 40_000, 6).unwrap(),
    );
    let start = reference::<T>(device);
    let damp = 0.3;
    let exact = common::problems::everything_exact;
    let scripts: [(Method, &str, usize); 21] = [
        (Method::Cg, "", 2),
        (Method::Cg, "jacobi", 1),
        (Method::Cg, "jacobi", 3),
        (Method::Cg, "sainv", 1),
        (Method::Cg, "block-jacobi", 1),
        (Method::SteepestDescent, "", 1),
        (Method::Minres, "", 1),
        (Method::Minres, "", 4),
        (Method::BiCgStab, "", 1),
        (Method::BiCgStab, "sainv", 1),
        (Method::Cgls { damp }, "", 1),
        (Method::Lsmr { damp }, "", 1),
        (Method::Pdhg, "", 2),
        (Method::Pdhg, "variation", 1),
        (Method::Pdhg, "direction", 2),
        (Method::Pdhg, "wide direction", 1),
        (Method::Sirt { omega: 1.0 }, "", 1),
        (Method::Fista, "", 1),
        (Method::Fista, "long", 1),
        (Method::Fista, "wide", 2),
        (Method::Lsmr { damp }, "long", 1),
    ];
    for (method, which, columns) in scripts {
        let (a, preconditioner) = match which {
            "long" => (&long, ""),
            "wide" | "wide direction" => (&wide, ""),
            "variation" | "direction" => (&tall, ""),
            _ => (if method.takes_rectangles() { &tall } else { &square }, which),
        };
        let b = noise::<T>(a.rows() * columns, 17);
        let solve = |device: &Device, format: Format, stopping: Stopping| {
            let matrix = Matrix::with_transpose(device, a, format).unwrap();
            let mut setup = Setup::new(method, stopping).with_columns(columns);
            if !preconditioner.is_empty() {
                let which: Preconditioner = preconditioner.parse().unwrap();
                setup = setup.with_preconditioner(which.build(device, a).unwrap());
            }
            match which {
                "variation" => setup.regularizations = vec![exact(17).with_directional(0.0)],
                "direction" => setup.regularizations = vec![exact(17); columns],
                "wide direction" => setup.regularizations = vec![exact(100)],
                _ => {}
            }
            let mut x = Columns::zeros(device, a.cols(), columns).unwrap();
            let b = Columns::from_vector(Vector::from_slice(device, &b).unwrap(), columns).unwrap();
            let reports = Solver::with(&matrix, setup).unwrap().solve_many(&b, &mut x).unwrap();
            reports.iter().map(|report| essence(x.as_vector(), report)).collect::<Vec<_>>()
        };
        let formats = match (method, columns) {
            (Method::Minres, 1) => &[
                Format::Csr,
                Format::CsrAdaptive,
                Format::Hyb,
                Format::Dia,
                Format::Bsr { block: 0 },
                Format::Dense,
            ][..],
            (Method::Lsmr { .. }, _) if which.is_empty() => {
                &[Format::Csr, Format::Ellpack, Format::Sell { sigma: 0 }]
            }
            _ => &[Format::Csr],
        };
        // PDHG chooses its steps anew after 32 iterations.
        let slow = matches!(method, Method::Fista | Method::Pdhg | Method::Sirt { .. });
        let mut stoppings = vec![Stopping::after(if slow { 35 } else { 10 })];
        if !slow && which != "long" {
            stoppings.push(Stopping::for_precision::<T>().with_exact_every(4));
        }
        for &format in formats {
            for stopping in stoppings.clone() {
                let stopping = match method.carries_residual() {
                    true => stopping,
                    false => stopping.with_exact_every(0),
                };
                let wanted = solve(&start, format, stopping.clone());
                for &groups in residencies(device, &[0, 1, 3]) {
                    let device = device.with_resident_groups(groups);
                    let found = solve(&device, format, stopping.clone().with_check_every(7));
                    let name = format!("{} {}", device.info().name, device.tuning());
                    assert!(found == wanted, "{name} {method} {which} {columns} {format}: {groups} groups");
                }
            }
        }
    }
}

#[test]
fn scripts_are_the_same_in_one_launch() {
    each_case::<f64>(scripts_resident_or_not::<f64>);
    each_case::<f32>(scripts_resident_or_not::<f32>);
}

/// One handle of a matrix, solved with by one preconditioner after another: their factors are stored in other ways.
fn one_matrix_with_many_preconditioners<T: Real>(device: &Device) {
    let a = gallery::block_poisson::<T>(9, 3).unwrap();
    let b = noise::<T>(a.rows(), 19);
    let solve = |device: &Device| {
        let matrix = Matrix::new(device, &a, Format::CsrAdaptive).unwrap();
        let b = Vector::from_slice(device, &b).unwrap();
        let names = ["jacobi", "sainv=0.5", "fsai=3", "sainv=0.01", "jacobi"];
        let solved = names.map(|name| {
            let which: Preconditioner = name.parse().unwrap();
            let setup = Setup::new(Method::Cg, Stopping::after(8));
            let setup = setup.with_preconditioner(which.build(device, &a).unwrap());
            let mut x = Vector::zeros(device, a.cols()).unwrap();
            let report = Solver::with(&matrix, setup).unwrap().solve(&b, &mut x).unwrap();
            essence(&x, &report)
        });
        solved.to_vec()
    };
    let wanted = solve(&reference::<T>(device));
    for &groups in residencies(device, &[0, 1, 3]) {
        let found = solve(&device.with_resident_groups(groups));
        assert!(found == wanted, "{} {}: {groups} groups", device.info().name, device.tuning());
    }
}

#[test]
fn preconditioners_of_one_matrix_do_not_meet() {
    each_case::<f64>(one_matrix_with_many_preconditioners::<f64>);
    each_case::<f32>(one_matrix_with_many_preconditioners::<f32>);
}

/// Long enough for several lanes per item and several chunks per group.
fn cg_on_a_long_vector<T: Real>(device: &Device) {
    let a = gallery::poisson_2d::<T>(1100, 0.01).unwrap();
    let b = noise::<T>(a.rows(), 11);
    let (x, report) = cg(&reference::<T>(device), &a, &b, Format::Csr, &Stopping::after(4));
    let (y, other) = cg(device, &a, &b, Format::Csr, &Stopping::after(4));
    assert_eq!(essence(&x, &report).3, essence(&y, &other).3, "{} {}", device.info().name, device.tuning());
    assert_eq!(bits(&x.to_vec().unwrap()), bits(&y.to_vec().unwrap()));
}

#[test]
fn cg_is_the_same_on_long_vectors() {
    each_case::<f64>(cg_on_a_long_vector::<f64>);
}

#[test]
fn cg_is_the_same_everywhere_f32() {
    each_case::<f32>(cg_everywhere::<f32>);
}

#[test]
fn cg_is_the_same_everywhere_f64() {
    each_case::<f64>(cg_everywhere::<f64>);
}

#[test]
fn cg_solves_a_system_with_wide_rows() {
    each_case::<f64>(|device| {
        // B'B + I for a random B: about 25 entries a row, so several lanes share one.
        let n = 60;
        let rows: Vec<Vec<f64>> = (0..n).map(|i| noise(n, 100 + i as u64)).collect();
        let entries: Vec<(usize, usize, f64)> = (0..n)
            .flat_map(|i| (0..n).map(move |j| (i, j)))
            .map(|(i, j)| {
                let product: f64 = rows.iter().map(|r| r[i] * r[j]).sum();
                (i, j, product + f64::from(u8::from(i == j)) * 10.0)
            })
            .collect();
        let a = Csr::from_triplets(n, n, &entries).unwrap();
        let truth = noise::<f64>(n, 12);
        let b: Vec<f64> = (0..n).map(|i| a.row(i).1.iter().zip(&truth).map(|(v, x)| v * x).sum()).collect();
        let (x, report) = cg(device, &a, &b, Format::Csr, &Stopping::for_precision::<f64>());
        assert!(report.converged(), "{report}");
        let (y, other) = cg(&reference::<f64>(device), &a, &b, Format::Csr, &Stopping::for_precision::<f64>());
        assert_eq!(essence(&x, &report), essence(&y, &other));
        for (found, wanted) in x.to_vec().unwrap().iter().zip(&truth) {
            approx::assert_abs_diff_eq!(*found, *wanted, epsilon = 1e-6);
        }
    });
}

fn cgnr<T: Real>(
    device: &Device,
    a: &Csr<T>,
    b: &[&[T]],
    regularizations: &[Regularization],
    format: Format,
    stopping: &Stopping,
) -> (Columns<T>, Vec<Report>) {
    let matrix = Matrix::with_transpose(device, a, format).unwrap();
    let b = Columns::new(device, b).unwrap();
    let mut x = Columns::zeros(device, a.cols(), regularizations.len()).unwrap();
    let reports = common::cgnr(&matrix, regularizations, stopping.clone()).unwrap().solve_many(&b, &mut x).unwrap();
    (x, reports)
}

fn cgnr_everywhere<T: Real>(device: &Device) {
    let (m, width, height) = (700, 13, 17);
    let n = width * height;
    let a = gallery::random::<T>(m, n, 9 * m, 3).unwrap();
    let b: Vec<Vec<T>> = (0..4).map(|c| noise::<T>(m, 20 + c)).collect();
    let b: Vec<&[T]> = b.iter().map(|v| &v[..]).collect();
    let plain = Regularization::none();
    let smooth = plain.clone().with_smooth(0.5).with_width(width);
    let sign = plain.clone().with_upper(0.0).with_bound_weight(2.0);
    let cases = [vec![plain.clone()], vec![smooth], vec![sign], vec![everything(width); 4]];
    for regularizations in &cases {
        let b = &b[..regularizations.len()];
        for format in [Format::Csr, Format::EllpackR] {
            let stopping = Stopping::for_precision::<T>().with_max_iterations(40);
            let (x, reports) = cgnr(&reference::<T>(device), &a, b, regularizations, format, &stopping);
            let wanted: Vec<_> = reports.iter().map(|r| essence(x.as_vector(), r)).collect();
            let (x, reports) = cgnr(device, &a, b, regularizations, format, &stopping.with_check_every(5));
            let found: Vec<_> = reports.iter().map(|r| essence(x.as_vector(), r)).collect();
            assert_eq!(found, wanted, "{} {} {format}: {}", device.info().name, device.tuning(), reports[0]);
        }
    }
}

/// One launch for many iterations, by one group, by several, by more than can run at once (which is noticed), or none.
fn cgnr_resident_or_not<T: Real>(device: &Device) {
    let (m, width, height) = (700, 13, 17);
    let a = gallery::random::<T>(m, width * height, 9 * m, 3).unwrap();
    let b: Vec<Vec<T>> = (0..4).map(|c| noise::<T>(m, 20 + c)).collect();
    let b: Vec<&[T]> = b.iter().map(|v| &v[..]).collect();
    let stopping = Stopping::for_precision::<T>().with_max_iterations(30);
    // The third column stops before the others, the fourth is done at the start.
    let mut early = vec![everything(width); 4];
    early[2] = Regularization::none().with_tikhonov(1e3);
    let zeros = vec![T::default(); m];
    let with_zeros = [b[0], b[1], b[2], &zeros[..]];
    let plain = vec![Regularization::none()];
    for (regularizations, b, format) in [
        (&plain, &b[..1], Format::Auto),
        (&vec![everything(width)], &b[..1], Format::Csr),
        (&early, &with_zeros[..], Format::EllpackR),
        (&vec![everything(width); 2], &b[..2], Format::Ellpack),
    ] {
        let (x, reports) = cgnr(&reference::<T>(device), &a, b, regularizations, format, &stopping);
        let wanted: Vec<_> = reports.iter().map(|r| essence(x.as_vector(), r)).collect();
        for &groups in residencies(device, &[0, 1, 2, 5, 100_000]) {
            let device = device.with_resident_groups(groups);
            for check_every in [7, 64] {
                let stopping = stopping.clone().with_check_every(check_every);
                let (x, reports) = cgnr(&device, &a, b, regularizations, format, &stopping);
                let found: Vec<_> = reports.iter().map(|r| essence(x.as_vector(), r)).collect();
                let name = format!("{} {} {format}: {groups} groups", device.info().name, device.tuning());
                for (c, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
                    let same = [found.0 == wanted.0, found.1 == wanted.1, found.2 == wanted.2, found.3 == wanted.3];
                    assert_eq!(same, [true; 4], "{name} every {check_every}, column {c}: {}", reports[c]);
                }
            }
        }
    }
}

#[test]
fn cgnr_is_the_same_in_one_launch() {
    each_case::<f64>(cgnr_resident_or_not::<f64>);
    each_case::<f32>(cgnr_resident_or_not::<f32>);
}

#[test]
fn cgnr_is_the_same_everywhere_f32() {
    each_case::<f32>(cgnr_everywhere::<f32>);
}

#[test]
fn cgnr_is_the_same_everywhere_f64() {
    each_case::<f64>(cgnr_everywhere::<f64>);
}

/// `J` of [`Regularization`], plainly.
fn objective(a: &Csr<f64>, b: &[f64], x: &[f64], f: &Regularization) -> f64 {
    let mut value = 0.0;
    for i in 0..a.rows() {
        let (columns, values) = a.row(i);
        let product: f64 = columns.iter().zip(values).map(|(j, v)| v * x[*j as usize]).sum();
        value += 0.5 * (product - b[i]).powi(2);
    }
    for (i, v) in x.iter().enumerate() {
        value += 0.5 * f.tikhonov * v * v + 0.5 * f.bound_weight * (v - v.clamp(f.lower, f.upper)).powi(2);
        if f.width > 0 {
            let right = if i % f.width + 1 < f.width { x[i + 1] - v } else { 0.0 };
            let down = if i + f.width < x.len() { x[i + f.width] - v } else { 0.0 };
            let square = right * right + down * down;
            value += 0.5 * f.smooth * square + f.variation * (square + f.epsilon * f.epsilon).sqrt();
        }
    }
    value
}

#[test]
fn cgnr_finds_the_minimum_of_its_objective() {
    let (m, width, height) = (150, 7, 8);
    let n = width * height;
    let a = gallery::random::<f64>(m, n, 9 * m, 3).unwrap();
    let b = noise::<f64>(m, 5);
    let parts = everything(width);
    let none = Regularization::none();
    for f in [
        none.clone(),
        none.clone().with_tikhonov(0.7),
        none.clone().with_smooth(0.7).with_width(width),
        none.clone().with_variation(0.7).with_epsilon(0.1).with_width(width),
        none.clone().with_upper(0.0).with_bound_weight(5.0),
        parts,
    ] {
        let stopping = Stopping::for_precision::<f64>().with_gradient_rtol(1e-9);
        let (x, reports) = cgnr(&Device::host(), &a, &[&b], std::slice::from_ref(&f), Format::Auto, &stopping);
        assert_eq!(reports[0].stop, Stop::LeastSquares, "{f:?} {}", reports[0]);
        let x = x.as_vector().to_vec().unwrap();
        let least = objective(&a, &b, &x, &f);
        let mut steepest: f64 = 0.0;
        for i in 0..n {
            let mut moved = x.clone();
            let h = 1e-4;
            moved[i] += h;
            let up = objective(&a, &b, &moved, &f);
            moved[i] -= 2.0 * h;
            let down = objective(&a, &b, &moved, &f);
            assert!(up >= least && down >= least, "{f:?}: pixel {i} can be improved");
            steepest = steepest.max(((up - down) / (2.0 * h)).abs());
        }
        assert!(steepest < 1e-4, "{f:?}: gradient {steepest}");
    }
}

#[test]
fn many_right_hand_sides_give_the_bits_of_one() {
    each_case::<f32>(|device| {
        let (m, width, height) = (90, 5, 6);
        let a = gallery::random::<f32>(m, width * height, 8 * m, 3).unwrap();
        let b: Vec<Vec<f32>> = (0..4).map(|c| noise::<f32>(m, 30 + c)).collect();
        let stopping = Stopping::for_precision::<f32>().with_max_iterations(25).with_rtol(0.4);
        let all: Vec<&[f32]> = b.iter().map(|v| &v[..]).collect();
        let f = everything(width);
        let (x, together) = cgnr(device, &a, &all, &vec![f.clone(); 4], Format::Auto, &stopping);
        let columns = x.to_vecs().unwrap();
        for c in 0..4 {
            let (x, alone) = cgnr(device, &a, &[all[c]], std::slice::from_ref(&f), Format::Auto, &stopping);
            assert_eq!(
                bits(&columns[c]),
                bits(&x.as_vector().to_vec().unwrap()),
                "{} column {c}",
                device.info().name
            );
            assert_eq!((together[c].iterations, together[c].stop), (alone[0].iterations, alone[0].stop));
            assert_eq!(bits(&together[c].history), bits(&alone[0].history));
        }
    });
}

#[test]
fn a_second_solve_allocates_nothing() {
    if common::ran_alone(concat!(module_path!(), "::", "a_second_solve_allocates_nothing")) {
        return;
    }
    for device in common::devices() {
        let a = gallery::poisson_2d::<f32>(side(), 0.0).unwrap();
        let matrix = Matrix::with_transpose(&device, &a, Format::Auto).unwrap();
        let b = Vector::from_slice(&device, &noise::<f32>(a.rows(), 1)).unwrap();
        let mut x = Vector::zeros(&device, a.cols()).unwrap();
        let mut cg = Solver::new(&matrix, Method::Cg, Stopping::for_precision::<f32>()).unwrap();
        let f = everything(side());
        let mut cgnr = common::cgnr(&matrix, &[f], Stopping::after(20)).unwrap();
        let first = cg.solve(&b, &mut x).unwrap();
        let _ = cgnr.solve(&b, &mut x).unwrap();
        let before = measure::allocations();
        assert!(before > 0);
        x.fill(0.0).unwrap();
        let second = cg.solve(&b, &mut x).unwrap();
        let _ = cgnr.solve(&b, &mut x).unwrap();
        assert_eq!(measure::allocations(), before, "{}", device.info().name);
        // For SIRT and SART, which take no negative entries.
        let positive = gallery::random::<f32>(a.rows(), a.cols(), a.nnz(), 4).unwrap();
        let of_positive = Matrix::with_transpose(&device, &positive, Format::Auto).unwrap();
        for method in Method::ALL.iter().copied() {
            let takes_all = method.takes_negative_entries();
            let (a, matrix) = if takes_all { (&a, &matrix) } else { (&positive, &of_positive) };
            let mut solver = Solver::new(matrix, method, Stopping::after(3)).unwrap();
            let _first = solver.solve(&b, &mut x).unwrap();
            x.fill(0.0).unwrap();
            let before = measure::allocations();
            let _second = solver.solve(&b, &mut x).unwrap();
            // Nor do new values of the same pattern.
            matrix.update_values(a).unwrap();
            let _third = solver.solve(&b, &mut x).unwrap();
            assert_eq!(measure::allocations(), before, "{method} on {}", device.info().name);
        }
        assert_eq!(first.history, second.history);
    }
}

// Every reason to stop, provoked.

#[test]
fn nothing_to_do_is_done_at_iteration_0() {
    each_case::<f64>(|device| {
        let a = gallery::poisson_2d::<f64>(9, 0.0).unwrap();
        let (x, report) = cg(device, &a, &[0.0; 81], Format::Auto, &Stopping::for_precision::<f64>());
        assert_eq!((report.stop, report.iterations), (Stop::Converged, 0));
        assert!(x.to_vec().unwrap().iter().all(|v| *v == 0.0));
        // A start guess that solves already.
        let ones: Vec<f64> = (0..81).map(|i| a.row(i).1.iter().sum()).collect();
        let matrix = Matrix::with_transpose(device, &a, Format::Auto).unwrap();
        let b = Vector::from_slice(device, &ones).unwrap();
        let mut x = Vector::filled(device, 81, 1.0).unwrap();
        let report =
            Solver::new(&matrix, Method::Cg, Stopping::for_precision::<f64>()).unwrap().solve(&b, &mut x).unwrap();
        assert_eq!((report.stop, report.iterations), (Stop::Converged, 0));
        let mut cgnr = common::cgnr(&matrix, &[Regularization::none()], Stopping::for_precision::<f64>()).unwrap();
        let report = cgnr.solve(&b, &mut x).unwrap();
        assert_eq!((report.stop, report.iterations), (Stop::Converged, 0));
        assert!(x.to_vec().unwrap().iter().all(|v| *v == 1.0));
    });
}

#[test]
fn iterations_run_out() {
    each_case::<f32>(|device| {
        let a = gallery::poisson_2d::<f32>(20, 0.0).unwrap();
        let b = noise::<f32>(400, 1);
        for allowed in [0, 1, 5] {
            let stopping = Stopping::for_precision::<f32>().with_max_iterations(allowed);
            let (_, report) = cg(device, &a, &b, Format::Auto, &stopping);
            assert_eq!((report.stop, report.iterations), (Stop::MaxIterations, allowed), "{report}");
            let (_, reports) = cgnr(device, &a, &[&b], &[Regularization::none()], Format::Auto, &stopping);
            assert_eq!((reports[0].stop, reports[0].iterations), (Stop::MaxIterations, allowed));
            assert_eq!(reports[0].history.len(), allowed + 1);
        }
    });
}

#[test]
fn an_indefinite_matrix_is_called_so() {
    each_case::<f64>(|device| {
        let a = Csr::from_triplets(2, 2, &[(0, 0, 1.0), (1, 1, -2.0)]).unwrap();
        let (x, report) = cg(device, &a, &[1.0, 1.0], Format::Auto, &Stopping::for_precision::<f64>());
        assert_eq!(report.stop, Stop::Indefinite, "{report}");
        assert!(!report.converged());
        // The best iterate is the start: nothing better was found.
        assert_eq!(x.to_vec().unwrap(), [0.0, 0.0]);
        assert_eq!(report.true_residual, 2.0f64.sqrt());
    });
}

#[test]
fn a_singular_matrix_breaks_down() {
    each_case::<f64>(|device| {
        let a = Csr::from_triplets(2, 2, &[(0, 0, 1.0)]).unwrap();
        let (_, report) = cg(device, &a, &[0.0, 1.0], Format::Auto, &Stopping::for_precision::<f64>());
        assert_eq!(report.stop, Stop::Breakdown, "{report}");
        // In the least-squares sense there is an answer.
        let (x, reports) = cgnr(
            device,
            &a,
            &[&[2.0, 1.0]],
            &[Regularization::none()],
            Format::Auto,
            &Stopping::for_precision::<f64>(),
        );
        assert_eq!(reports[0].stop, Stop::LeastSquares, "{}", reports[0]);
        assert_eq!(x.as_vector().to_vec().unwrap(), [2.0, 0.0]);
    });
}

#[test]
fn overflow_is_seen_and_the_best_iterate_kept() {
    each_case::<f32>(|device| {
        // Each entry is finite, the product is not: the system is scaled.
        let a = Csr::from_triplets(2, 2, &[(0, 0, 3e38f32), (0, 1, 1e38), (1, 0, 1e38), (1, 1, 3e38)]).unwrap();
        let (x, report) = cg(device, &a, &[1.0, 1.0], Format::Auto, &Stopping::for_precision::<f32>());
        assert_eq!(report.stop, Stop::Converged, "{report}");
        assert!(x.to_vec().unwrap().iter().all(|v| (v / 0.25e-38 - 1.0).abs() < 1e-5));
        // The answer is 1e60, which no f32 is: the start is what is left.
        let a = Csr::from_triplets(2, 2, &[(0, 0, 1e-30f32), (1, 1, 1e-30)]).unwrap();
        let (x, report) = cg(device, &a, &[1e30, 0.0], Format::Auto, &Stopping::for_precision::<f32>());
        assert_eq!(report.stop, Stop::NotFinite, "{report}");
        assert_eq!(x.to_vec().unwrap(), [0.0, 0.0]);
        approx::assert_relative_eq!(report.true_residual, report.rhs_norm, max_relative = 1e-6);
    });
}

#[test]
fn attainable_accuracy_is_not_called_convergence() {
    each_case::<f32>(|device| {
        let a = gallery::poisson_2d::<f32>(40, 0.0).unwrap();
        let b = noise::<f32>(a.rows(), 2);
        let stopping = Stopping::for_precision::<f32>().with_rtol(1e-12);
        let (x, report) = cg(device, &a, &b, Format::Auto, &stopping);
        assert_eq!(report.stop, Stop::Stagnated, "{report}");
        assert!(report.true_residual > 1e-12 * report.rhs_norm && report.relative_residual() < 1e-4);
        let (y, other) = cg(&reference::<f32>(device), &a, &b, Format::Auto, &stopping);
        assert_eq!(essence(&x, &report), essence(&y, &other));
    });
}

#[test]
fn an_observer_can_cancel() {
    for device in common::devices() {
        let a = gallery::poisson_2d::<f32>(30, 0.0).unwrap();
        let matrix = Matrix::new(&device, &a, Format::Auto).unwrap();
        let b = Vector::from_slice(&device, &noise::<f32>(900, 1)).unwrap();
        let mut x = Vector::zeros(&device, 900).unwrap();
        let mut seen = 0;
        let stopping = Stopping::for_precision::<f32>().with_check_every(4).with_rtol(0.0);
        let report = Solver::new(&matrix, Method::Cg, stopping)
            .unwrap()
            .solve_observed(&b, &mut x, &mut |progress| {
                seen = progress.iteration;
                if progress.iteration >= 8 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
            .unwrap();
        assert_eq!(report.stop, Stop::Cancelled);
        assert_eq!(report.iterations, seen);
        assert!(report.true_residual < report.rhs_norm);
    }
}

// Every error, provoked.

#[test]
fn bad_input_is_refused_before_work_starts() {
    for device in common::devices() {
        let a = gallery::poisson_2d::<f32>(4, 0.0).unwrap();
        let matrix = Matrix::new(&device, &a, Format::Auto).unwrap();
        let short = Vector::<f32>::zeros(&device, 15).unwrap();
        let mut x = Vector::<f32>::zeros(&device, 16).unwrap();
        let stopping = Stopping::for_precision::<f32>();
        let mut cg = Solver::new(&matrix, Method::Cg, stopping.clone()).unwrap();
        assert!(matches!(cg.solve(&short, &mut x), Err(Error::Shape { expected: 16, found: 15, .. })));
        let nan = Vector::from_slice(&device, &[f32::NAN; 16]).unwrap();
        assert!(matches!(cg.solve(&nan, &mut x), Err(Error::NotFinite { .. })));
        assert!(matches!(matrix.multiply(&short, &mut x), Err(Error::Shape { .. })));
        assert!(matches!(matrix.multiply_transposed(&nan, &mut x), Err(Error::Conflict { name: "transpose", .. })));
        assert!(matches!(
            common::cgnr(&matrix, &[Regularization::none()], stopping.clone()),
            Err(Error::Conflict { name: "transpose", .. })
        ));
        let wide = Matrix::with_transpose(&device, &gallery::random(4, 9, 12, 1).unwrap(), Format::Auto).unwrap();
        assert!(matches!(Solver::<f32>::new(&wide, Method::Cg, stopping.clone()), Err(Error::Shape { .. })));
        for bad in [
            Regularization::none().with_tikhonov(f64::NAN),
            Regularization::none().with_smooth(1.0).with_width(4),
            Regularization::none().with_variation(1.0).with_width(3),
            Regularization::none().with_lower(1.0).with_upper(0.0),
        ] {
            assert!(matches!(common::cgnr(&wide, &[bad], stopping.clone()), Err(Error::Option { .. })));
        }
        assert!(matches!(common::cgnr(&wide, &[], stopping.clone()), Err(Error::Option { .. })));
        let values = Csr::from_triplets(1, 1, &[(0, 0, f32::INFINITY)]).unwrap();
        assert!(matches!(Matrix::new(&device, &values, Format::Auto), Err(Error::NotFinite { .. })));
        assert!(matches!(device.with_work_group(3), Err(Error::Option { name: "work_group", .. })));
        assert!(matches!(device.with_work_group(1 << 20), Err(Error::Option { name: "work_group", .. })));
        if device.backend_kind() == BackendKind::OpenCl {
            let elsewhere = Vector::<f32>::zeros(&Device::host(), 16).unwrap();
            assert!(matches!(matrix.multiply(&elsewhere, &mut x), Err(Error::DeviceMismatch { .. })));
            let largest = device.info().largest_allocation;
            if largest < 4 * u64::from(u32::MAX) {
                let too_many = usize::try_from(largest / 4 + 1).unwrap();
                assert!(matches!(Vector::<f32>::zeros(&device, too_many), Err(Error::Memory { .. })));
            }
        }
    }
}
