//! Preconditioners: the operators they claim to be, the same bits everywhere, fewer iterations.

use crate::common::{self, bits, each_case, noise, reference};
use residuum::operator::{LinearOperator, SharedOperator};
use residuum::precond::{
    Ainv, AinvOptions, Bainv, BainvOptions, BlockJacobiOptions, PolynomialOptions, Preconditioner, RowOrdering,
    Sweep, SweepOptions,
};
use residuum::sparse::{Partition, gallery};
use residuum::{
    Accumulation, BackendKind, Columns, Csr, Device, Error, Format, Matrix, Method, Precision, Real, Report, Setup,
    Solver, Stop, Stopping, Vector, measure,
};

const ORDERINGS: [RowOrdering; 2] = [RowOrdering::Rows, RowOrdering::Colours];

/// A random matrix, not symmetric, that its diagonal dominates.
fn dominant<T: Real>(n: usize, seed: u64) -> Csr<T> {
    let a = gallery::random::<T>(n, n, 6 * n, seed).unwrap();
    let mut entries: Vec<(usize, usize, T)> = Vec::new();
    for i in 0..n {
        let (columns, values) = a.row(i);
        let others = columns.iter().zip(values).filter(|(j, _)| **j as usize != i);
        entries.extend(others.map(|(j, v)| (i, *j as usize, T::from_f64(v.to_f64() - 0.4))));
        entries.push((i, i, T::from_f64(3.0 + 0.01 * i as f64)));
    }
    Csr::from_triplets(n, n, &entries).unwrap()
}

/// One sweep as the textbook has it, in the order of the rows: `x_i = (1 - omega) x_i + omega (b_i - sum a_ij x_j) / a_ii`.
fn textbook(a: &Csr<f64>, omega: f64, b: &[f64], x: &mut [f64], rows: impl Iterator<Item = usize>) {
    for i in rows {
        let (columns, values) = a.row(i);
        let (mut sum, mut diagonal) = (b[i], 0.0);
        for (j, v) in columns.iter().zip(values) {
            if *j as usize == i {
                diagonal = *v;
            } else {
                sum -= v * x[*j as usize];
            }
        }
        x[i] = (1.0 - omega) * x[i] + omega * sum / diagonal;
    }
}

#[test]
fn sweeps_are_those_of_the_textbook() {
    // Started from 0, a sweep gives M b; so does one forwards and one back, of SSOR.
    let a = dominant::<f64>(150, 3);
    let b = noise::<f64>(150, 4);
    each_case::<f64>(|device| {
        for omega in [1.0, 0.7, 1.6] {
            let mut wanted = vec![0.0; 150];
            textbook(&a, omega, &b, &mut wanted, 0..150);
            let sweep = Sweep::new(device, &a, SweepOptions::sor(omega).with_ordering(RowOrdering::Rows)).unwrap();
            let ssor = Sweep::new(device, &a, SweepOptions::ssor(omega).with_ordering(RowOrdering::Rows)).unwrap();
            let b = Vector::from_slice(device, &b).unwrap();
            let mut z = Vector::filled(device, 150, f64::NAN).unwrap();
            sweep.apply(&b, &mut z).unwrap();
            let close = |found: &[f64], wanted: &[f64]| {
                for (found, wanted) in found.iter().zip(wanted) {
                    approx::assert_relative_eq!(*found, *wanted, max_relative = 1e-10, epsilon = 1e-12);
                }
            };
            close(&z.to_vec().unwrap(), &wanted);
            textbook(&a, omega, &b.to_vec().unwrap(), &mut wanted, (0..150).rev());
            ssor.apply(&b, &mut z).unwrap();
            close(&z.to_vec().unwrap(), &wanted);
        }
    });
}

fn solve<T: Real>(
    device: &Device,
    a: &Csr<T>,
    method: Method,
    m: Option<&Sweep<T>>,
    most: usize,
) -> (Vector<T>, Report) {
    let matrix = Matrix::new(device, a, Format::Csr).unwrap();
    let stopping = Stopping::for_precision::<T>().with_max_iterations(most);
    let mut setup = Setup::new(method, stopping);
    setup.preconditioner = m.map(Into::into);
    let mut solver = Solver::with(&matrix, setup).unwrap();
    let b = Vector::from_slice(device, &noise::<T>(a.rows(), 9)).unwrap();
    let mut x = Vector::zeros(device, a.rows()).unwrap();
    let report = solver.solve(&b, &mut x).unwrap();
    (x, report)
}

/// Levels narrower and wider than a launch of several takes, triangles with and without entries.
fn the_same_everywhere<T: Real>(device: &Device) {
    let host = reference::<T>(device);
    let diagonal: Vec<(usize, usize, T)> = (0..50).map(|i| (i, i, T::from_f64(1.0 + i as f64))).collect();
    for a in [
        dominant::<T>(300, 5),
        gallery::poisson_2d::<T>(60, 0.1).unwrap(),
        Csr::from_triplets(50, 50, &diagonal).unwrap(),
    ] {
        let x = noise::<T>(a.rows(), 6);
        for ordering in ORDERINGS {
            let on = |device: &Device| {
                let ssor = Sweep::new(device, &a, SweepOptions::ssor(1.3).with_ordering(ordering)).unwrap();
                let x = Vector::from_slice(device, &x).unwrap();
                let mut z = Vector::zeros(device, a.rows()).unwrap();
                // Each launch makes its memory ready for the next.
                for _ in 0..3 {
                    ssor.apply(&x, &mut z).unwrap();
                }
                bits(&z.to_vec().unwrap())
            };
            let wanted = on(&host);
            assert!(on(device) == wanted, "{} {} {ordering:?}", device.info().name, device.tuning());
            // With launches whose groups wait for each other, where that is not the rule, and without.
            for groups in [0, 2] {
                let device = device.with_resident_groups(groups);
                assert!(on(&device) == wanted, "{} {groups} groups {ordering:?}", device.info().name);
            }
        }
    }
}

#[test]
fn sweeps_are_the_same_everywhere() {
    each_case::<f64>(the_same_everywhere::<f64>);
    each_case::<f32>(the_same_everywhere::<f32>);
}

/// Other values in the same places: the bits of a preconditioner that is made anew, in solvers that hold the old one too.
fn updates_are_new_ones<T: Real>(device: &Device) {
    let old = definite::<T>(500, 7);
    let new = {
        let mut new = old.clone();
        let diagonal: Vec<usize> =
            (0..500).map(|i| old.offsets()[i] + old.row(i).0.binary_search(&(i as u32)).unwrap()).collect();
        for (i, at) in diagonal.into_iter().enumerate() {
            new.values_mut()[at] = T::from_f64(old.values()[at].to_f64() * (1.5 + (i % 5) as f64));
        }
        new
    };
    let elsewhere = [gallery::poisson_2d::<T>(10, 0.0).unwrap(), definite::<T>(500, 8)];
    let x = Vector::from_slice(device, &noise::<T>(500, 6)).unwrap();
    let applied = |m: &SharedOperator<T>| {
        let mut z = Vector::filled(device, 500, T::from_f64(f64::NAN)).unwrap();
        m.apply(&x, &mut z).unwrap();
        bits(&z.to_vec().unwrap())
    };
    let by_rows = Preconditioner::Sweep(SweepOptions::ssor(1.2).with_ordering(RowOrdering::Rows));
    let by_place = Preconditioner::Ainv(AinvOptions::sainv(0.0).with_pattern(Some(2)));
    let by_graph = Preconditioner::BlockJacobi(BlockJacobiOptions::by_graph(30));
    let mut updated = 0;
    for which in Preconditioner::ALL.iter().chain([&by_rows, &by_place, &by_graph]) {
        let m = which.build(device, &old).unwrap().operator;
        let before = applied(&m);
        for other in &elsewhere {
            assert!(matches!(m.update_values(other), Err(Error::Structure { .. })), "{which}");
        }
        assert!(applied(&m) == before, "{which}: what a refused update leaves");
        let wanted = applied(&which.build(device, &new).unwrap().operator);
        assert_ne!(wanted, before, "{which}");
        match m.update_values(&new) {
            Ok(()) => {
                updated += 1;
                assert!(applied(&m) == wanted, "{which} on {} {}", device.info().name, device.tuning());
                let mut bad = new.clone();
                bad.values_mut()[old.offsets()[3]..old.offsets()[4]].fill(T::default());
                assert!(m.update_values(&bad).is_err(), "{which}");
                assert!(applied(&m) == wanted, "{which}: what a refused update leaves");
                // From the second time on places of values are known.
                for (values, wanted) in [(&old, &before), (&new, &wanted)] {
                    m.update_values(values).unwrap();
                    assert!(applied(&m) == *wanted, "{which} on {}: once more", device.info().name);
                }
            }
            Err(error) => {
                assert!(error.to_string().contains("make "), "{which}: {error}");
                assert!(applied(&m) == before, "{which}");
            }
        }
    }
    assert_eq!(updated, UPDATED);
}

/// Rows of the table that take other values: Jacobi, block Jacobi twice, Gauss-Seidel, SOR, SSOR twice, IC(0), ILU(0), FSAI, SPAI, Chebyshev.
const UPDATED: usize = 12;

#[test]
fn updated_preconditioners_are_those_made_anew() {
    each_case::<f64>(updates_are_new_ones::<f64>);
    each_case::<f32>(updates_are_new_ones::<f32>);
}

/// A solver whose matrix and preconditioner take other values, and again: the bits of one that is made anew.
fn solvers_take_new_values<T: Real>(device: &Device) {
    let old = gallery::block_poisson::<T>(8, 3).unwrap();
    let new = {
        let scales: Vec<f64> = (0..old.rows()).map(|i| 1.0 + (i % 7) as f64 / 8.0).collect();
        old.scaled(&scales, &scales).unwrap()
    };
    let tall = gallery::random::<T>(300, old.rows(), 2000, 5).unwrap();
    let short = {
        let mut short = tall.clone();
        short
            .values_mut()
            .iter_mut()
            .enumerate()
            .for_each(|(k, v)| *v = T::from_f64(v.to_f64() * (1 + k % 3) as f64));
        short
    };
    let names = ["jacobi", "block-jacobi=3", "ssor", "ic0", "fsai", "chebyshev"];
    let cases = [
        Method::Cg,
        Method::FlexibleCg,
        Method::Minres,
        Method::BiCgStab,
        Method::BiCgStab2,
        Method::Gmres { restart: 6 },
    ];
    // A diagonal is part of every method's launches, the others are operators to all of them.
    let square = cases.iter().flat_map(|method| names.map(|name| (*method, name, [&old, &new])));
    let square = square.filter(|(method, name, _)| *name == "jacobi" || matches!(method, Method::Cg));
    let by_norms = [(Method::Lsqr { damp: 0.0 }, "jacobi", [&tall, &short])];
    for ((method, name, values), columns) in square.chain(by_norms).flat_map(|case| [1, 2].map(|c| (case, c))) {
        // Several right-hand sides take a diagonal alone; GMRES and least squares take one.
        let several = name == "jacobi" && !matches!(method, Method::Gmres { .. } | Method::Lsqr { .. });
        if columns > 1 && !several {
            continue;
        }
        let words = format!("{method} with {name} for {columns} on {}", device.info().name);
        let which: Preconditioner = name.parse().unwrap();
        let rows = values[0].rows();
        let b: Vec<Vec<T>> = (0..columns as u64).map(|c| noise::<T>(rows, 7 + c)).collect();
        let b: Vec<&[T]> = b.iter().map(|b| &b[..]).collect();
        let b = Columns::new(device, &b).unwrap();
        let made = |a: &Csr<T>| {
            let matrix = Matrix::with_transpose(device, a, Format::Csr).unwrap();
            let m = residuum::build_for(which, &method, device, a, None).unwrap().operator;
            let setup = Setup::new(method, Stopping::after(9)).with_columns(columns).with_preconditioner(m.clone());
            (Solver::with(&matrix, setup).unwrap(), matrix, m)
        };
        let solve = |solver: &mut Solver<T>| {
            let mut x = Columns::zeros(device, values[0].cols(), columns).unwrap();
            let reports = solver.solve_many(&b, &mut x).unwrap();
            let histories: Vec<u64> = reports.iter().flat_map(|report| bits(&report.history)).collect();
            (bits(&x.into_vector().to_vec().unwrap()), histories)
        };
        let (mut solver, matrix, m) = made(values[0]);
        let wanted = values.map(|a| solve(&mut made(a).0));
        assert!(wanted[0] != wanted[1], "{words}");
        assert!(solve(&mut solver) == wanted[0], "{words}");
        for turn in [1, 0, 1] {
            matrix.update_values(values[turn]).unwrap();
            m.update_values(values[turn]).unwrap();
            assert!(solve(&mut solver) == wanted[turn], "{words}: turn {turn}");
        }
    }
}

/// A diagonal of another order of magnitude needs another scaling than the solver was set up for.
#[test]
fn values_far_from_the_first_are_refused() {
    each_case::<f32>(|device| {
        let diagonal = |first: f32| {
            let entries: Vec<(usize, usize, f32)> =
                (0..50).map(|i| (i, i, if i == 0 { first } else { 1.0 })).collect();
            Csr::from_triplets(50, 50, &entries).unwrap()
        };
        let (far, near) = (diagonal(1e-37), diagonal(2.0));
        let matrix = Matrix::new(device, &far, Format::Csr).unwrap();
        let m = Preconditioner::Jacobi.build(device, &far).unwrap().operator;
        let setup = Setup::new(Method::Cg, Stopping::for_precision::<f32>()).with_preconditioner(m.clone());
        let mut solver = Solver::with(&matrix, setup).unwrap();
        let b = Vector::filled(device, 50, 1.0).unwrap();
        let mut x = Vector::zeros(device, 50).unwrap();
        matrix.update_values(&near).unwrap();
        m.update_values(&near).unwrap();
        let refused = solver.solve(&b, &mut x);
        assert!(matches!(refused, Err(Error::Conflict { name: "preconditioner", .. })), "{refused:?}");
        m.update_values(&far).unwrap();
        assert!(solver.solve(&b, &mut x).is_ok());
    });
}

#[test]
fn solvers_take_the_new_values_of_their_preconditioners() {
    each_case::<f64>(solvers_take_new_values::<f64>);
    each_case::<f32>(solvers_take_new_values::<f32>);
}

/// A random definite matrix.
fn definite<T: Real>(n: usize, seed: u64) -> Csr<T> {
    let a = dominant::<T>(n, seed);
    let t = a.transpose();
    let mut entries: Vec<(usize, usize, T)> = Vec::new();
    for i in 0..n {
        for (a, scale) in [(&a, 0.5), (&t, 0.5)] {
            let (columns, values) = a.row(i);
            entries
                .extend(columns.iter().zip(values).map(|(j, v)| (i, *j as usize, T::from_f64(scale * v.to_f64()))));
        }
    }
    Csr::from_triplets(n, n, &entries).unwrap()
}

/// A definite band matrix, whose columns each need the one before.
fn band<T: Real>(n: usize, width: usize) -> Csr<T> {
    Csr::from_rows(n, n, |i, row| {
        for j in i.saturating_sub(width)..(i + width + 1).min(n) {
            let off = -1.0 / (1.0 + i.abs_diff(j) as f64) + 0.01 * ((i * j) % 7) as f64;
            row.push((j as u32, T::from_f64(if i == j { 6.0 + (i % 5) as f64 } else { off })));
        }
    })
    .unwrap()
}

/// Columns many at once on the device, beside one after another on the host.
fn inverses_are_those_of_the_host<T: Real>(device: &Device) {
    if device.backend_kind() != BackendKind::OpenCl || device.accumulation(T::PRECISION) != Accumulation::Double {
        return;
    }
    for (name, a) in [
        ("grid", gallery::poisson_2d::<T>(40, 0.1).unwrap()),
        ("blocks", gallery::block_poisson::<T>(9, 3).unwrap()),
        ("random", definite::<T>(400, 7)),
        // Columns follow each other: after some rounds they come in order.
        ("band", band::<T>(500, 6)),
    ] {
        for options in [AinvOptions::sainv(0.1), AinvOptions::sainv(0.01), AinvOptions::ainv(0.05)] {
            let made = |on_device: bool| {
                let mut options = options;
                options.on_device = Some(on_device);
                let inverse = Ainv::new(device, &a, options).unwrap();
                assert_eq!(inverse.made_on_device(), on_device, "{name} {options:?}");
                let x = Vector::from_slice(device, &noise::<T>(a.rows(), 6)).unwrap();
                let mut z = Vector::filled(device, a.rows(), T::from_f64(f64::NAN)).unwrap();
                inverse.apply(&x, &mut z).unwrap();
                (inverse.entries(), bits(&z.to_vec().unwrap()))
            };
            assert!(made(true) == made(false), "{name} {options:?} on {} {}", device.info().name, device.tuning());
        }
    }
    // Rows with more open entries than there is room for at first: the device tries again with more.
    let full = band::<T>(220, 140);
    let made = |on_device: bool| {
        let mut options = AinvOptions::sainv(0.0);
        options.on_device = Some(on_device);
        let inverse = Ainv::new(device, &full, options).unwrap();
        assert_eq!(inverse.made_on_device(), on_device, "more than 128 open entries");
        let x = Vector::from_slice(device, &noise::<T>(full.rows(), 6)).unwrap();
        let mut z = Vector::zeros(device, full.rows()).unwrap();
        inverse.apply(&x, &mut z).unwrap();
        bits(&z.to_vec().unwrap())
    };
    assert!(made(true) == made(false), "on {} {}", device.info().name, device.tuning());
    // A pivot that is not positive is the host's to name.
    let mut indefinite = band::<T>(90, 3);
    indefinite
        .values_mut()
        .iter_mut()
        .for_each(|v| *v = T::from_f64(if v.to_f64() > 5.0 { 0.3 } else { v.to_f64() }));
    let rows = [true, false].map(|on_device| {
        let mut options = AinvOptions::sainv(0.01);
        options.on_device = Some(on_device);
        match Ainv::new(device, &indefinite, options) {
            Err(Error::Structure { row, .. }) => row,
            other => panic!("{other:?}"),
        }
    });
    assert!(rows[0].is_some() && rows[0] == rows[1], "{rows:?}");
    // Parts of even and uneven sizes, one of a row, one empty.
    let uneven = Partition::new((0..400).map(|i| if i == 7 { 3 } else { i * i % 3 }).collect(), 5).unwrap();
    for (a, partition) in [
        (gallery::poisson_2d::<T>(40, 0.1).unwrap(), Partition::natural(1600, 9).unwrap()),
        (definite::<T>(400, 7), uneven),
        (definite::<T>(70, 7), Partition::natural(70, 1).unwrap()),
    ] {
        let made = |on_device: bool| {
            let mut options = BainvOptions::default();
            options.on_device = Some(on_device);
            let inverse = Bainv::new(device, &a, &partition, options).unwrap();
            assert_eq!(inverse.made_on_device(), on_device, "{partition}");
            let x = Vector::from_slice(device, &noise::<T>(a.rows(), 6)).unwrap();
            let mut z = Vector::filled(device, a.rows(), T::from_f64(f64::NAN)).unwrap();
            inverse.apply(&x, &mut z).unwrap();
            (inverse.entries(), bits(&z.to_vec().unwrap()))
        };
        assert!(made(true) == made(false), "{partition} on {} {}", device.info().name, device.tuning());
    }
    // An indefinite matrix: the error is that of the host.
    let entries = [(0, 0, 1.0), (0, 1, 2.0), (1, 0, 2.0), (1, 1, 1.0)].map(|(i, j, v)| (i, j, T::from_f64(v)));
    let mut options = AinvOptions::sainv(0.0);
    options.on_device = Some(true);
    let a = Csr::from_triplets(2, 2, &entries).unwrap();
    let refused = Ainv::new(device, &a, options);
    assert!(matches!(refused, Err(Error::Structure { row: Some(1), .. })));
    let mut options = BainvOptions::default();
    options.on_device = Some(true);
    let refused = Bainv::new(device, &a, &Partition::natural(2, 1).unwrap(), options);
    assert!(matches!(refused, Err(Error::Structure { row: Some(1), .. })));
}

#[test]
fn approximate_inverses_of_the_device_are_those_of_the_host() {
    each_case::<f64>(inverses_are_those_of_the_host::<f64>);
    each_case::<f32>(inverses_are_those_of_the_host::<f32>);
}

/// Every row of the table: alone, and within a method that takes any preconditioner.
fn every_one_is_the_same_everywhere<T: Real>(device: &Device) {
    // Squares of later residuals are too faint for a device without denormal numbers.
    let iterations = if device.info().denormals || T::PRECISION == Precision::Double { 12 } else { 2 };
    let more = [
        Preconditioner::Ainv(AinvOptions::sainv(0.0).with_pattern(Some(2))),
        Preconditioner::BlockJacobi(BlockJacobiOptions::by_graph(40)),
        Preconditioner::Chebyshev(PolynomialOptions::first_kind(4, 20.0)),
    ];
    for (kind, a) in [("dominant", dominant::<T>(300, 5)), ("grid", gallery::poisson_2d::<T>(60, 0.1).unwrap())] {
        let suits = |which: &&Preconditioner| kind == "grid" || !which.needs_definite();
        for which in Preconditioner::ALL.iter().chain(&more).filter(suits) {
            let on = |device: &Device| {
                let m = which.build(device, &a).unwrap().operator;
                let x = Vector::from_slice(device, &noise::<T>(a.rows(), 6)).unwrap();
                let mut z = Vector::filled(device, a.rows(), T::from_f64(f64::NAN)).unwrap();
                m.apply(&x, &mut z).unwrap();
                let matrix = Matrix::new(device, &a, Format::Csr).unwrap();
                let setup =
                    Setup::new(Method::BiCgStab, Stopping::after(iterations)).with_preconditioner(m.clone());
                let mut y = Vector::zeros(device, a.rows()).unwrap();
                let report = Solver::with(&matrix, setup).unwrap().solve(&x, &mut y).unwrap();
                let enough = if iterations == 12 { 0.1 } else { 1.0 };
                assert!(report.true_residual < enough * report.rhs_norm, "{which} of {kind}: {report}");
                assert!((*m).bytes() > 0 && m.launches(1) > 0, "{which}");
                [bits(&z.to_vec().unwrap()), bits(&y.to_vec().unwrap()), bits(&report.history)]
            };
            assert!(on(device) == on(&reference::<T>(device)), "{which} of {kind} on {}", device.info().name);
        }
    }
}

#[test]
fn every_preconditioner_is_the_same_everywhere() {
    each_case::<f64>(every_one_is_the_same_everywhere::<f64>);
    each_case::<f32>(every_one_is_the_same_everywhere::<f32>);
    for which in Preconditioner::ALL {
        assert_eq!(which.name().parse::<Preconditioner>().unwrap(), *which);
        assert_eq!(which.to_string().parse::<Preconditioner>().unwrap(), *which);
    }
    for name in [
        "block-jacobi=3",
        "block-jacobi=40:metis",
        "sainv=0.05:2",
        "chebyshev=4",
        "chebyshev=5:30",
        "fsai=2,f32",
        "adaptive-fsai=5:3",
        "adaptive-fsai=20:1,f32",
        "sainv=0.1:1,f32",
        "ic0=0.01",
        "ilu0=0",
        "sainv=0.05",
        "ainv=0.001",
    ] {
        assert_eq!(name.parse::<Preconditioner>().unwrap().to_string(), name);
    }
    for name in [
        "block-jacobi=x",
        "block-jacobi=3:x",
        "sainv=",
        "sainv=0.1:x",
        "ic0=nan",
        "jacobi=2",
        "ssor=1.5",
        "adaptive-fsai=3:x",
    ] {
        assert!(name.parse::<Preconditioner>().is_err(), "{name}");
    }
    assert!("none".parse::<Preconditioner>().is_err());
}

/// Factors in `f32` inside solves in `f64`: the same bits everywhere, about as many iterations, fewer bytes where kernels read them.
#[test]
fn factors_in_single_precision_serve_solves_in_double() {
    each_case::<f64>(|device| {
        let a = gallery::poisson_2d::<f64>(60, 0.0).unwrap();
        let matrix = Matrix::new(device, &a, Format::Auto).unwrap();
        let b = Vector::from_slice(device, &noise::<f64>(a.rows(), 6)).unwrap();
        for (name, method) in [
            ("sainv=0.03", Method::Cg),
            ("ainv=0.05", Method::Minres),
            ("fsai=2", Method::Cg),
            ("bainv=40", Method::Cg),
            ("nonsymmetric-ainv=0.05", Method::BiCgStab),
        ] {
            let which: Preconditioner = name.parse().unwrap();
            let parts = Partition::natural(a.rows(), 40).unwrap();
            let parts = Some(&parts).filter(|_| name.starts_with("bainv"));
            let solve = |m: SharedOperator<f64>| {
                let bytes = (*m).bytes();
                let setup = Setup::new(method, Stopping::for_precision::<f64>()).with_preconditioner(m);
                let mut x = Vector::zeros(device, a.rows()).unwrap();
                let report = Solver::with(&matrix, setup).unwrap().solve(&b, &mut x).unwrap();
                assert!(report.converged(), "{name}: {report}");
                (report.iterations, bytes)
            };
            let wide = solve(which.build_over(device, &a, parts).unwrap().operator);
            let narrow = solve(which.in_stored_f32().unwrap().build_over(device, &a, parts).unwrap().operator);
            assert!(wide.0.abs_diff(narrow.0) <= 1 + wide.0 / 50, "{name}: {wide:?} {narrow:?}");
            if device.backend_kind() == BackendKind::OpenCl {
                assert!(4 * narrow.1 < 3 * wide.1, "{name}: {wide:?} {narrow:?}");
            }
            let applied = |device: &Device| {
                let m = which.in_stored_f32().unwrap().build_over(device, &a, parts).unwrap().operator;
                let mut z = Vector::zeros(device, a.rows()).unwrap();
                m.apply(&Vector::from_slice(device, &noise::<f64>(a.rows(), 7)).unwrap(), &mut z).unwrap();
                bits(&z.to_vec().unwrap())
            };
            assert!(applied(device) == applied(&reference::<f64>(device)), "{name} on {}", device.info().name);
        }
        assert!(matches!("ic0,f32".parse::<Preconditioner>(), Err(Error::Conflict { name: "preconditioner", .. })));
        // Far out of the range of f32.
        let far = a.scaled(&[1e-100; 3600], &[1.0; 3600]).unwrap();
        let refused = "sainv,f32".parse::<Preconditioner>().unwrap().build(device, &far);
        assert!(matches!(refused, Err(Error::Structure { row: Some(0), .. })));
    });
}

#[test]
fn sweeps_of_wide_levels_are_the_same_everywhere() {
    // Two colours of 5000 rows: more than one group, more than a batch of the host.
    let a = gallery::poisson_2d::<f32>(100, 0.1).unwrap();
    each_case::<f32>(|device| {
        let on = |device: &Device| {
            let sweep = Sweep::new(device, &a, SweepOptions::gauss_seidel()).unwrap();
            assert_eq!(sweep.launches(1), 2);
            let (x, report) = solve(device, &a, Method::Stationary { omega: 1.0 }, Some(&sweep), 5);
            (bits(&x.to_vec().unwrap()), bits(&report.history))
        };
        assert!(on(device) == on(&reference::<f32>(device)), "{} {}", device.info().name, device.tuning());
    });
}

#[test]
fn relaxation_pays() {
    let device = Device::host();
    let a = gallery::poisson_2d::<f64>(30, 0.0).unwrap();
    // The best factor for this grid, of Young's theory.
    let best = 2.0 / (1.0 + (std::f64::consts::PI / 31.0).sin());
    let stationary = Method::Stationary { omega: 1.0 };
    let count = |method, sweep: Option<&Sweep<f64>>| {
        let (_, report) = solve(&device, &a, method, sweep, 10_000);
        assert_eq!(report.stop, Stop::Converged, "{report}");
        report.iterations
    };
    for ordering in ORDERINGS {
        let gauss_seidel = count(
            stationary,
            Some(&Sweep::new(&device, &a, SweepOptions::gauss_seidel().with_ordering(ordering)).unwrap()),
        );
        let sor = count(
            stationary,
            Some(&Sweep::new(&device, &a, SweepOptions::sor(best).with_ordering(ordering)).unwrap()),
        );
        // With two colours, SSOR gains nothing from a factor, and with 1 it is Gauss-Seidel: what it does twice changes nothing.
        let omega = if ordering == RowOrdering::Rows { best } else { 1.0 };
        let ssor = count(
            stationary,
            Some(&Sweep::new(&device, &a, SweepOptions::ssor(omega).with_ordering(ordering)).unwrap()),
        );
        println!("{ordering:?}: gauss-seidel {gauss_seidel}, sor {sor}, ssor {ssor}");
        assert!(10 * sor < gauss_seidel && sor < 130, "{ordering:?}: {sor} against {gauss_seidel}");
        match ordering {
            RowOrdering::Rows => assert!(10 * ssor < gauss_seidel, "{ssor} against {gauss_seidel}"),
            RowOrdering::Colours => assert_eq!(ssor, gauss_seidel),
        }
    }
    let plain = count(Method::Cg, None);
    for ordering in ORDERINGS {
        let omega = if ordering == RowOrdering::Rows { 1.7 } else { 1.0 };
        let preconditioned = count(
            Method::Cg,
            Some(&Sweep::new(&device, &a, SweepOptions::ssor(omega).with_ordering(ordering)).unwrap()),
        );
        println!("cg {plain}, with ssor by {ordering:?} {preconditioned}");
        let (ten, most) = if ordering == RowOrdering::Rows { (10, 6) } else { (10, 8) };
        assert!(ten * preconditioned < most * plain, "{ordering:?}: {preconditioned} against {plain}");
    }
}

#[test]
fn what_cannot_be_swept_is_refused() {
    let device = Device::host();
    let a = gallery::poisson_2d::<f64>(3, 0.0).unwrap();
    for omega in [0.0, 2.0, -1.0, f64::NAN] {
        let refused = Sweep::new(&device, &a, SweepOptions::sor(omega));
        assert!(matches!(refused, Err(Error::Option { name: "omega", .. })), "{omega}");
    }
    let hollow = Csr::<f64>::from_triplets(2, 2, &[(0, 1, 1.0), (1, 0, 1.0), (0, 0, 1.0)]).unwrap();
    assert!(matches!(
        Sweep::new(&device, &hollow, SweepOptions::gauss_seidel().with_ordering(RowOrdering::Rows)),
        Err(Error::Structure { row: Some(1), .. })
    ));
    let wide = gallery::random::<f64>(3, 4, 6, 1).unwrap();
    assert!(matches!(
        Sweep::new(&device, &wide, SweepOptions::gauss_seidel().with_ordering(RowOrdering::Rows)),
        Err(Error::Shape { .. })
    ));
}

#[test]
fn later_solves_and_values_allocate_nothing() {
    if common::ran_alone(concat!(module_path!(), "::", "later_solves_and_values_allocate_nothing")) {
        return;
    }
    for device in common::devices() {
        let a = gallery::poisson_2d::<f32>(20, 0.0).unwrap();
        for name in ["ssor", "jacobi", "block-jacobi=3", "ic0", "fsai", "chebyshev"] {
            let matrix = Matrix::new(&device, &a, Format::Auto).unwrap();
            let m = name.parse::<Preconditioner>().unwrap().build(&device, &a).unwrap().operator;
            let setup = Setup::new(Method::Cg, Stopping::after(5)).with_preconditioner(m.clone());
            let mut solver = Solver::with(&matrix, setup).unwrap();
            let b = Vector::filled(&device, a.rows(), 1.0).unwrap();
            let mut x = Vector::zeros(&device, a.rows()).unwrap();
            let words = format!("{name} on {}", device.info().name);
            let _first = solver.solve(&b, &mut x).unwrap();
            let before = measure::allocations();
            let _second = solver.solve(&b, &mut x).unwrap();
            assert!(before > 0);
            assert_eq!(measure::allocations(), before, "{words}");
            // The first other values may take a second vector.
            let mut step = || {
                matrix.update_values(&a).unwrap();
                m.update_values(&a).unwrap();
                let _report = solver.solve(&b, &mut x).unwrap();
                measure::allocations()
            };
            let second = step();
            assert_eq!([step(), step()], [second; 2], "{words}");
        }
    }
}
