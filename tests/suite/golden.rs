//! The golden file: hashes of results that a change of structure must not change, on the host and on every device.
//!
//! The host is always compared. `RESIDUUM_GOLDEN=devices` compares the devices too, at the sizes of work-groups that
//! `RESIDUUM_TEST_WORK_GROUPS` lists; without it they are left to the other suites, which compare them with the host.
//! `RESIDUUM_GOLDEN=write` makes `tests/golden.txt` anew from the host. A line that changes needs an entry under
//! "Numerics" in CHANGELOG.md.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::common::problems::{Essence, Problem, essence, everything, matrices, problems, scanners, storages};
use crate::common::{self, bits, noise, overlapping, reference, residencies};
use residuum::fem::{Mesh, Poisson, Space};
use residuum::imaging::{
    Beam, Disc, Fbp, Filter, Grid, Noise, Phantom, Reconstruction, Reconstructor, Regularizer, Scanner, System,
};
use residuum::operator::{
    Boundary, Deflation, Diagonal, Generated, LinearOperator, LinearOperatorExt, SharedOperator, SplitRows, Stencil,
};
use residuum::precond::{Bainv, BainvOptions, BlockJacobi, Preconditioner, RowOrdering, Sweep, SweepOptions};
use residuum::simulation::{
    Flow, FlowSetup, Heat, HeatSetup, Interpolation, Obstacles, PressureStart, Splitting, Trace, Wall, WaveSetup,
    Waves,
};
use residuum::sparse::{Partition, gallery};
use residuum::{
    Accumulation, BackendKind, Columns, Combine, Csr, Device, Examination, Format, Matrix, Method, Precision, Real,
    Reduction, Regularization, Report, Setup, Solver, StopRule, Stopping, Vector, WeightRule,
};

/// FNV-1a of 64 bits, over words.
fn hash(words: impl IntoIterator<Item = u64>) -> u64 {
    words
        .into_iter()
        .flat_map(u64::to_le_bytes)
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// Hashes by name.
#[derive(Default)]
struct Golden(BTreeMap<String, u64>);

impl Golden {
    fn put(&mut self, name: String, words: impl IntoIterator<Item = u64>) {
        assert!(self.0.insert(name.clone(), hash(words)).is_none(), "{name} twice");
    }
}

/// Words of what a solve came to.
fn words((x, iterations, stop, numbers): Essence) -> Vec<u64> {
    let stop = format!("{stop:?}").bytes().map(u64::from).collect::<Vec<_>>();
    [x, vec![iterations as u64], stop, numbers].concat()
}

/// Limits that do not follow the defaults of the crate.
fn stopping<T: Real>(max_iterations: usize) -> Stopping {
    let rtol = if T::EPSILON > 1e-10 { 1e-5 } else { 1e-8 };
    Stopping::after(max_iterations)
        .with_rtol(rtol)
        .with_gradient_rtol(T::EPSILON)
        .with_max_iterations(max_iterations)
}

fn vectors<T: Real>(golden: &mut Golden, kind: &str, device: &Device) {
    for n in [0, 1, 31, 33, 1023, 1025, 40_001, 1_100_003] {
        let (a, b) = (noise::<T>(n, 1), noise::<T>(n, 2));
        let x = Vector::from_slice(device, &a).unwrap();
        let mut y = Vector::from_slice(device, &b).unwrap();
        let sums = [x.sum(), x.min(), x.max(), x.asum(), x.dot(&y), x.norm2()].map(|v| v.unwrap().to_bits());
        y.axpby(T::from_f64(0.3), &x, T::from_f64(-1.7)).unwrap();
        y.clamp(T::from_f64(-0.9), T::from_f64(0.9)).unwrap();
        let products = [Reduction::Minimum, Reduction::Maximum, Reduction::AbsoluteSum]
            .map(|which| x.reduce_products(which, &y).unwrap().to_bits());
        golden.put(format!("reduced products {kind} {n}"), products);
        golden.put(format!("vector {kind} {n}"), sums.into_iter().chain(bits(&y.to_vec().unwrap())));
    }
}

fn products<T: Real>(golden: &mut Golden, kind: &str, device: &Device) {
    let product = |a: &dyn LinearOperator<T>| {
        let (x, z) = (noise::<T>(a.cols(), 6), noise::<T>(a.rows(), 7));
        let (x, z) = (Vector::from_slice(device, &x).unwrap(), Vector::from_slice(device, &z).unwrap());
        let (mut y, mut w) = (Vector::zeros(device, a.rows()).unwrap(), Vector::zeros(device, a.cols()).unwrap());
        a.apply(&x, &mut y).unwrap();
        a.apply_adjoint(&z, &mut w).unwrap();
        [bits(&y.to_vec().unwrap()), bits(&w.to_vec().unwrap()), vec![a.frobenius_norm().unwrap().to_bits()]]
            .concat()
    };
    for (name, a) in matrices::<T>() {
        for storage in storages(&a) {
            let matrix = Matrix::stored(device, &a, storage).unwrap();
            let title = format!("{kind} {name} {:?} {:?}", storage.format, storage.offsets);
            golden.put(format!("product {title}"), product(&matrix));
            // One matrix, in formats that store rows by other functions: programs take their time to build.
            let own = [Format::Csr, Format::CsrAdaptive, Format::Dia, Format::Dense];
            if name != "uneven" || !own.contains(&storage.format) {
                continue;
            }
            let [x, b] = [(a.cols(), 6), (a.rows(), 7)]
                .map(|(n, seed)| Vector::from_slice(device, &noise::<T>(n, seed)).unwrap());
            let mut y = Vector::zeros(device, a.rows()).unwrap();
            matrix.multiply_with(&x, Combine::Times, &b, &mut y).unwrap();
            golden.put(format!("product times a vector {title}"), bits(&y.to_vec().unwrap()));
        }
    }
    for (k, (scanner, grid)) in scanners().into_iter().enumerate() {
        golden.put(format!("projector {kind} {k}"), product(&scanner.projector::<T>(device, grid).unwrap()));
    }
    let upwind = [([0, 0, 0], 3.0), ([-1, 0, 0], -2.0), ([1, 0, 0], -0.5), ([0, 2, 0], 0.25)];
    for (k, stencil) in [
        Stencil::laplacian_2d(37, 23).unwrap(),
        Stencil::laplacian_3d(9, 11, 7).unwrap(),
        Stencil::new([41, 29, 1], &upwind).unwrap(),
        Stencil::laplacian_2d(37, 23).unwrap().with_boundaries([
            Boundary::Reflecting,
            Boundary::Periodic,
            Boundary::Zero,
        ]),
        Stencil::laplacian_3d(9, 11, 7).unwrap().with_boundaries([
            Boundary::Periodic,
            Boundary::Zero,
            Boundary::Reflecting,
        ]),
    ]
    .iter()
    .enumerate()
    {
        golden.put(format!("stencil {kind} {k}"), product(&stencil.operator::<T>(device).unwrap()));
    }
}

/// Products of finite elements of several degrees with hanging nodes, and right-hand sides and matrices, which the host makes.
fn finite_elements<T: Real>(golden: &mut Golden, kind: &str, device: &Device) {
    let mut mesh = Mesh::boxes([3, 2, 2], [[0.0, 1.0]; 3]).unwrap();
    for _ in 0..2 {
        let _ = mesh.refine(|cell| cell.touches([1.0, 0.5, 0.5])).unwrap();
    }
    mesh.set_degrees(|cell| 5 - cell.level - usize::from(cell.middle()[2] < 0.5)).unwrap();
    let twisted = mesh.clone().mapped(|[x, y, z]| {
        let slopes = [[1.0, 0.2 * z, 0.2 * y], [0.0, 1.0, -0.3], [0.1 * x, 0.0, 1.0]];
        ([x + 0.2 * y * z, y - 0.3 * z, z + 0.05 * x * x], slopes)
    });
    for (k, mesh) in [mesh, twisted].into_iter().enumerate() {
        let space = Space::with_boundary(&mesh, |x| x[0] < 0.9).unwrap();
        let x = Vector::from_slice(device, &noise::<T>(space.len(), 12)).unwrap();
        let mut y = Vector::zeros(device, space.len()).unwrap();
        space.operator::<T>(device).unwrap().apply(&x, &mut y).unwrap();
        golden.put(format!("finite elements {kind} {k}"), bits(&y.to_vec().unwrap()));
        let problem = Poisson::new(|x| x[0] - x[1] * x[2]).with_values(|x| x[0] * x[1]).with_flux(|_, n| n[0]);
        let load = problem.load(&space).unwrap();
        golden.put(format!("right-hand side of finite elements {kind} {k}"), bits(&load.b));
        golden.put(format!("matrix of finite elements {kind} {k}"), bits(space.matrix().unwrap().values()));
    }
}

/// Fields of the simulations after a few steps.
fn simulations<T: Real>(golden: &mut Golden, kind: &str, device: &Device) {
    let size = [37, 29];
    let picture: Vec<T> = noise(37 * 29, 9);
    let disc = |c: usize| ((c % 37) as f64 - 20.0).powi(2) + ((c / 37) as f64 - 14.0).powi(2) < 30.0;
    let obstacles = Obstacles::new(size, (0..37 * 29).map(disc).collect()).unwrap();
    let mut heat = Heat::new(device, &HeatSetup::new::<T>(size, 1.5), &picture).unwrap();
    let mut setup = WaveSetup::new::<T>(size, 0.6);
    (setup.obstacles, setup.stopping) = (Some(obstacles.clone()), Stopping::after(5));
    let mut waves = Waves::new(device, &setup, &picture).unwrap();
    let flow = |interpolation, trace, wall, obstacles: Option<Obstacles>| {
        let mut setup = FlowSetup::new::<T>(size, 1.0 / 29.0, 0.02, 1e-3);
        (setup.interpolation, setup.trace, setup.wall, setup.obstacles) = (interpolation, trace, wall, obstacles);
        setup.stopping = Stopping::after(4);
        let mut flow = Flow::<T>::new(device, setup).unwrap();
        flow.dye_mut().write(&picture).unwrap();
        flow
    };
    let mut flows = [
        flow(Interpolation::Linear, Trace::Euler, Wall::NoSlip { lid: 0.7 }, None),
        flow(Interpolation::Cubic, Trace::Midpoint, Wall::FreeSlip, Some(obstacles)),
        // The time step of the paper, with a force.
        {
            let mut setup = FlowSetup::new::<T>(size, 1.0 / 29.0, 0.02, 1e-3);
            (setup.splitting, setup.pressure_start) = (Splitting::Additive, PressureStart::Last);
            setup.stopping = Stopping::after(4);
            let mut flow = Flow::<T>::new(device, setup).unwrap();
            flow.set_force(Some(&|x, y| [3.0 * y, -2.0 * x])).unwrap();
            flow.dye_mut().write(&picture).unwrap();
            flow
        },
    ];
    for _ in 0..3 {
        let _ = heat.step().unwrap();
        waves.disturb([5.0, 7.5], 4.0, 0.5).unwrap();
        let _ = waves.step().unwrap();
        for flow in &mut flows {
            flow.push([9.0, 8.0], 6.0, [2.5, -1.0]).unwrap();
            let _ = flow.step().unwrap();
        }
    }
    golden.put(format!("heat {kind}"), bits(&heat.temperature().to_vec().unwrap()));
    golden.put(format!("waves {kind}"), bits(&waves.surface().to_vec().unwrap()));
    for (k, flow) in flows.iter().enumerate() {
        let [u, v] = flow.velocity();
        let fields = [u, v, flow.pressure(), flow.dye()].map(|field| bits(&field.to_vec().unwrap()));
        golden.put(format!("flow {kind} {k}"), fields.concat());
    }
}

fn methods<T: Real>(golden: &mut Golden, kind: &str, device: &Device) {
    for (k, problem) in problems::<T>().into_iter().enumerate() {
        let b: Vec<Vec<T>> = (0..3).map(|c| noise(problem.a.rows(), 30 + c)).collect();
        let b: Vec<&[T]> = b.iter().map(|v| &v[..]).collect();
        for columns in [1, 3] {
            let solved = problem.solve(device, &b[..columns], &stopping::<T>(400));
            let all = solved.iter().flat_map(|(x, report)| words(essence(x, report)));
            golden.put(format!("solve {kind} {k} {} of {columns}", problem.method), all);
        }
        if problem.method.carries_residual() {
            let exact = stopping::<T>(61).with_exact_every(10);
            let (x, report) = &problem.solve(device, &b[..1], &exact)[0];
            golden.put(format!("exact {kind} {k} {}", problem.method), words(essence(x, report)));
        }
        if problem.diagonal.is_none() && problem.reference.is_none() && problem.subsets.is_none() {
            let storage = if problem.method.takes_rectangles() { Matrix::with_transpose } else { Matrix::new };
            let a = storage(device, &problem.a, Format::Auto).unwrap();
            let disguised = common::Opaque((&a).into()).shared();
            let b = Vector::from_slice(device, b[0]).unwrap();
            let mut x = Vector::zeros(device, a.cols()).unwrap();
            let report =
                Solver::new(disguised, problem.method, stopping::<T>(400)).unwrap().solve(&b, &mut x).unwrap();
            golden.put(
                format!("operator {kind} {k} {}", problem.method),
                words(essence(&x.to_vec().unwrap(), &report)),
            );
        }
    }
    // A solve that fails and goes back, and one that stagnates.
    let fails = Problem::new(Method::Cg, &gallery::poisson_2d::<T>(12, -0.15).unwrap());
    let (x, report) = &fails.solve(device, &[&noise(144, 30)], &stopping::<T>(400))[0];
    golden.put(format!("goes back {kind}"), words(essence(x, report)));
    let stagnates = Problem::new(Method::Cg, &gallery::poisson_2d::<T>(12, 0.5).unwrap());
    let strict = stopping::<T>(4000).with_rtol(1e-30);
    let (x, report) = &stagnates.solve(device, &[&noise(144, 30)], &strict)[0];
    golden.put(format!("stagnates {kind}"), words(essence(x, report)));
    // Weights that are chosen, with and without a probe of the operator.
    let tall = overlapping::<T>(150, 40, 700, 3);
    let b: Vec<Vec<T>> = (0..3).map(|c| noise(150, 30 + c)).collect();
    let b: Vec<&[T]> = b.iter().map(|v| &v[..]).collect();
    for weight in [WeightRule::LeastError, WeightRule::WeightedGcv, WeightRule::Discrepancy { noise: 0.9 }] {
        let weighed = Problem::new(Method::HybridLsqr { weight, subspace: 30 }, &tall);
        for columns in [1, 3] {
            let solved = weighed.solve(device, &b[..columns], &stopping::<T>(400));
            let damp = |report: &Report| report.weight.as_ref().map_or(0, |weight| weight.damp.to_bits());
            let all =
                solved.iter().flat_map(|(x, report)| [words(essence(x, report)), vec![damp(report)]].concat());
            golden.put(format!("weight {kind} {weight} of {columns}"), all);
        }
    }
    for weight in [WeightRule::LeastError, WeightRule::Gcv] {
        let weighed = Problem::new(Method::HybridLsmr { weight, subspace: 30 }, &tall);
        let solved = weighed.solve(device, &b, &stopping::<T>(400));
        let all = solved.iter().flat_map(|(x, report)| words(essence(x, report)));
        golden.put(format!("least gradients {kind} {weight}"), all);
    }
    let rule = StopRule::Ncp { length: 15, apart: 10 };
    for method in [Method::Cgls { damp: 0.0 }, Method::Cgnr] {
        let solved = Problem::new(method, &tall).solve(device, &b, &stopping::<T>(400).with_rule(rule));
        let value = |report: &Report| {
            let points = report.rule.iter().flat_map(|course| course.points.iter());
            points.map(|point| point.value.to_bits()).collect::<Vec<u64>>()
        };
        let all = solved.iter().flat_map(|(x, report)| [words(essence(x, report)), value(report)].concat());
        golden.put(format!("rule {kind} {method}"), all);
    }
}

fn fused<T: Real>(golden: &mut Golden, kind: &str, device: &Device) {
    let a = gallery::poisson_2d::<T>(45, 0.01).unwrap();
    let b = Vector::from_slice(device, &noise::<T>(a.rows(), 13)).unwrap();
    for format in [Format::Csr, Format::CsrAdaptive, Format::Dia, Format::Sell { sigma: 1 }] {
        for &groups in residencies(device, &[0, 1, 2, 5]) {
            let device = device.with_resident_groups(groups);
            let matrix = Matrix::new(&device, &a, format).unwrap();
            let mut x = Vector::zeros(&device, a.cols()).unwrap();
            let report = Solver::new(&matrix, Method::Cg, stopping::<T>(500)).unwrap().solve(&b, &mut x).unwrap();
            let found = words(essence(&x.to_vec().unwrap(), &report));
            same(golden, format!("cg {kind} {format}"), found);
        }
    }
    let (m, width, height) = (700, 13, 17);
    let a = overlapping::<T>(m, width * height, 9 * m, 3);
    let b: Vec<Vec<T>> = (0..4).map(|c| noise::<T>(m, 20 + c)).collect();
    let none = Regularization::none();
    let mut early = vec![everything(width); 4];
    early[2] = none.clone().with_tikhonov(1e3);
    for (name, regularizations) in [
        ("plain", vec![none.clone()]),
        ("smooth", vec![none.clone().with_smooth(0.5).with_width(width)]),
        ("sign", vec![none.clone().with_upper(0.0).with_bound_weight(2.0)]),
        ("everything", vec![everything(width)]),
        ("two", vec![everything(width); 2]),
        ("early", early),
    ] {
        let b: Vec<&[T]> = b[..regularizations.len()].iter().map(|v| &v[..]).collect();
        for format in [Format::Csr, Format::EllpackR] {
            for &groups in residencies(device, &[0, 1, 2, 5]) {
                let device = device.with_resident_groups(groups);
                let matrix = Matrix::with_transpose(&device, &a, format).unwrap();
                let solve = |operator: SharedOperator<T>| -> Vec<u64> {
                    let b = Columns::new(&device, &b).unwrap();
                    let mut x = Columns::zeros(&device, a.cols(), regularizations.len()).unwrap();
                    let mut cgnr = common::cgnr(operator, &regularizations, stopping::<T>(30)).unwrap();
                    let reports: Vec<Report> = cgnr.solve_many(&b, &mut x).unwrap();
                    let columns = x.to_vecs().unwrap();
                    columns.iter().zip(&reports).flat_map(|(x, report)| words(essence(x, report))).collect()
                };
                same(golden, format!("cgnr {kind} {name} {format}"), solve((&matrix).into()));
                if regularizations.len() == 1 && groups == 0 {
                    same(
                        golden,
                        format!("cgnr of an operator {kind} {name} {format}"),
                        solve(common::Opaque((&matrix).into()).shared()),
                    );
                }
            }
        }
    }
}

/// Puts what several ways must give alike.
fn same(golden: &mut Golden, name: String, words: Vec<u64>) {
    let hash = hash(words);
    let held = *golden.0.entry(name.clone()).or_insert(hash);
    assert_eq!(held, hash, "{name}");
}

fn preconditioners<T: Real>(golden: &mut Golden, kind: &str, device: &Device) {
    let a = gallery::poisson_2d::<T>(30, 0.1).unwrap();
    let matrix = Matrix::with_transpose(device, &a, Format::Csr).unwrap();
    let b = Vector::from_slice(device, &noise::<T>(a.rows(), 9)).unwrap();
    let mut put = |name: String, preconditioner: SharedOperator<T>, method: Method| {
        let mut z = Vector::zeros(device, a.rows()).unwrap();
        preconditioner.apply(&b, &mut z).unwrap();
        let setup = Setup::new(method, stopping::<T>(60)).with_preconditioner(preconditioner);
        let mut x = Vector::zeros(device, a.rows()).unwrap();
        let report = Solver::with(&matrix, setup).unwrap().solve(&b, &mut x).unwrap();
        let all = [bits(&z.to_vec().unwrap()), words(essence(&x.to_vec().unwrap(), &report))].concat();
        golden.put(name, all);
    };
    for ordering in [RowOrdering::Rows, RowOrdering::Colours] {
        let sor = Sweep::new(device, &a, SweepOptions::sor(1.3).with_ordering(ordering)).unwrap();
        put(format!("sor {kind} {ordering:?}"), (&sor).into(), Method::Stationary { omega: 1.0 });
        let ssor = Sweep::new(device, &a, SweepOptions::ssor(1.3).with_ordering(ordering)).unwrap();
        put(format!("ssor {kind} {ordering:?}"), (&ssor).into(), Method::Cg);
        put(format!("ssor flexible {kind} {ordering:?}"), (&ssor).into(), Method::FlexibleCg);
        put(format!("ssor gmres {kind} {ordering:?}"), (&ssor).into(), Method::Gmres { restart: 8 });
    }
    for block in [1, 4, 7] {
        let blocks = BlockJacobi::new(device, &a, block).unwrap();
        put(format!("block jacobi {kind} {block}"), blocks.into(), Method::Cg);
    }
    for name in [
        "ic0",
        "ilu0",
        "ic0-sweeps=2:3",
        "ilu0-sweeps=2:3",
        "ict=6:1e-2",
        "ilut=6:1e-2",
        "sainv",
        "ainv",
        "ldl-ainv",
        "fsai=2",
        "two-level=25",
    ] {
        let which: Preconditioner = name.parse().unwrap();
        put(format!("{which} {kind}"), which.build(device, &a).unwrap().operator, Method::FlexibleCg);
    }
    for name in [
        "nonsymmetric-ainv",
        "sainv=0.01:1",
        "fsai=2,f32",
        "chebyshev=4",
        "chebyshev=3:20",
        "spai=2",
        "adaptive-fsai=4:3",
    ] {
        let which: Preconditioner = name.parse().unwrap();
        put(format!("{which} {kind}"), which.build(device, &a).unwrap().operator, Method::BiCgStab);
    }
    for name in ["ilu0", "ic0", "spai"] {
        let which: Preconditioner = name.parse().unwrap();
        let made = which.build_for_least_squares(device, &a, None).unwrap().operator;
        put(format!("least squares with {which} {kind}"), made, Method::Lsqr { damp: 0.0 });
    }
    let sainv: Preconditioner = "sainv=0.05".parse().unwrap();
    put(format!("minres with {sainv} {kind}"), sainv.build(device, &a).unwrap().operator, Method::Minres);
    let natural = Partition::natural(a.rows(), 30).unwrap();
    let over = BlockJacobi::over(device, &a, &natural).unwrap();
    put(format!("block jacobi of parts {kind}"), over.into(), Method::Cg);
    let strips =
        Bainv::new(device, &a, &Partition::natural(a.rows(), 11).unwrap(), BainvOptions::default()).unwrap();
    put(format!("bainv {kind}"), strips.into(), Method::Cg);
}

/// Products of operators, whose last factor is fused.
fn composed<T: Real>(golden: &mut Golden, kind: &str, device: &Device) {
    let a = Matrix::with_transpose(device, &overlapping::<T>(300, 200, 1500, 5), Format::Csr).unwrap();
    let (a, b) = (Arc::new(a), Vector::from_slice(device, &noise::<T>(200, 10)).unwrap());
    let normal = a.clone().adjoint().unwrap().times(a.clone()).unwrap().shared();
    let direction = Vector::from_slice(device, &noise::<T>(200, 11)).unwrap();
    let deflation = Arc::new(Deflation::new(direction).unwrap());
    let deflated = deflation.clone().times(normal.clone()).unwrap().times(deflation).unwrap().shared();
    for (name, operator) in [("normal", normal), ("deflated", deflated)] {
        for method in [Method::Cg, Method::Minres, Method::Gmres { restart: 6 }] {
            let mut x = Vector::zeros(device, 200).unwrap();
            let mut solver = Solver::new(operator.clone(), method, stopping::<T>(40)).unwrap();
            let report = solver.solve(&b, &mut x).unwrap();
            golden.put(format!("{name} {kind} {method}"), words(essence(&x.to_vec().unwrap(), &report)));
        }
    }
}

fn images<T: Real>(golden: &mut Golden, kind: &str, device: &Device) {
    let scanner = Scanner {
        beam: Beam::Fan { source_origin: 5.0, source_detector: 8.0 },
        pixels: 96,
        pitch: 0.032,
        offset: 0.0,
        angles: (0..50).map(|k| 7.2 * f64::from(k)).collect(),
    };
    let grid = Grid { side: 40, pixel: 0.05 };
    let scan = Phantom::plate().scan(&scanner, 2.0, Noise { photons: 2e5, gain: 0.003, seed: 2009 }).unwrap();
    let how = Reconstruction::of_scans::<T>().with_stopping(Stopping::after(40).with_gradient_rtol(T::EPSILON));
    let direction = Regularizer::Directional { weight: 0.02, degrees: 30.0 };
    let exact = how
        .clone()
        .with_method(Method::Pdhg)
        .with_regularizers(vec![Regularizer::TotalVariation(0.05), direction])
        .with_support(Disc::of_shadow(&scan).unwrap().pixels(grid));
    for format in [Format::Csr, Format::OnTheFly] {
        let system = System::<T>::new(device, &scanner, grid, format).unwrap();
        for (name, how) in [("image", &how), ("exact image", &exact)] {
            let mut reconstructor = Reconstructor::new(&system, how.clone(), 1).unwrap();
            let image = reconstructor.reconstruct(&[&scan]).unwrap().remove(0);
            golden.put(format!("{name} {kind} {format}"), words(essence(&image.values, &image.report)));
        }
    }
}

/// Filtered back-projections, and a picture that begins with one.
fn back_projections<T: Real>(golden: &mut Golden, kind: &str, device: &Device) {
    let (source_origin, source_detector) = (5.0, 8.0);
    let grid = Grid { side: 40, pixel: 0.05 };
    for (name, beam, arc) in [
        ("parallel", Beam::Parallel, 180.0),
        ("fan", Beam::Fan { source_origin, source_detector }, 360.0),
        ("short fan", Beam::Fan { source_origin, source_detector }, 220.0),
        ("curved", Beam::Curved { source_origin, source_detector }, -360.0),
    ] {
        let angles = (0..50).map(|k| arc / 50.0 * f64::from(k)).collect();
        let scanner = Scanner { beam, pixels: 96, pitch: 0.032, offset: 0.7, angles };
        let scan = Phantom::plate().scan(&scanner, 2.0, Noise { photons: 2e5, gain: 0.0, seed: 2009 }).unwrap();
        let mut fbp = Fbp::<T>::new(device, &scanner, grid, Filter::SheppLogan).unwrap();
        let picture = fbp.reconstruct(&scan.readings()).unwrap();
        golden.put(format!("back-projection {kind} {name}"), bits(&picture));
        if name == "fan" {
            let system = System::<T>::new(device, &scanner, grid, Format::Csr).unwrap();
            let how = Reconstruction::of_scanner::<T>(&scanner).with_start(Filter::Hann);
            let mut reconstructor = Reconstructor::new(&system, how, 1).unwrap();
            let image = reconstructor.reconstruct(&[&scan]).unwrap().remove(0);
            golden
                .put(format!("image from a back-projection {kind}"), words(essence(&image.values, &image.report)));
        }
    }
}

/// CGNR with a penalty of the user's own, with a curvature and without.
fn penalties<T: Real>(golden: &mut Golden, kind: &str, device: &Device) {
    let a = Matrix::with_transpose(device, &gallery::random::<T>(50, 63, 400, 3).unwrap(), Format::Csr).unwrap();
    let b = Vector::from_slice(device, &noise::<T>(50, 5)).unwrap();
    for curved in [true, false] {
        let penalty = common::penalty::Edges::new(device, [9, 7], [0.3, 0.05], 1).with_curvature(curved);
        let setup = Setup::new(Method::Cgnr, stopping::<T>(60)).with_penalty(penalty);
        let mut x = Vector::zeros(device, 63).unwrap();
        let report = Solver::with(&a, setup).unwrap().solve(&b, &mut x).unwrap();
        let name = if curved { "penalty" } else { "penalty without curvature" };
        golden.put(format!("{name} {kind}"), words(essence(&x.to_vec().unwrap(), &report)));
    }
    let term = Regularization::none()
        .with_tikhonov(0.02)
        .with_smooth(0.1)
        .with_variation(0.05)
        .with_epsilon(0.1)
        .with_upper(0.2)
        .with_bound_weight(0.5)
        .with_width(9);
    let weights = (0..63).map(|j| T::from_f64(0.3 + 0.1 * f64::from(j % 5))).collect::<Vec<_>>();
    let diagonal = Diagonal::new(Vector::from_slice(device, &weights).unwrap()).unwrap();
    let setup =
        Setup::new(Method::Cgnr, stopping::<T>(60)).with_regularizations(&[term]).with_preconditioner(diagonal);
    let mut x = Vector::zeros(device, 63).unwrap();
    let report = Solver::with(&a, setup).unwrap().solve(&b, &mut x).unwrap();
    golden.put(format!("corrections with a preconditioner {kind}"), words(essence(&x.to_vec().unwrap(), &report)));
}

/// Products with entries that a text makes, staged and not.
fn generated<T: Real>(golden: &mut Golden, kind: &str, device: &Device) {
    let text = "column = 700u * k + 13u * i; value = (real_t)(i + 1u) - 2 * (real_t)k;";
    let make = || {
        let twin = |_, i: u32, k: u32| (700 * k + 13 * i, T::from_f64(f64::from(i + 1) - 2.0 * f64::from(k)));
        Generated::<T>::new(device, [70, 7300], 10, text, twin).unwrap()
    };
    let x = Vector::from_slice(device, &noise::<T>(7300, 5)).unwrap();
    for (name, a) in [("generated", make()), ("generated and staged", make().staged().unwrap())] {
        let mut y = Vector::zeros(device, 70).unwrap();
        a.apply(&x, &mut y).unwrap();
        golden.put(format!("{name} {kind}"), bits(&y.to_vec().unwrap()));
    }
}

/// A product divided by entries.
fn split<T: Real>(golden: &mut Golden, kind: &str, device: &Device) {
    let length = |i: usize| [0, 5, 40, 1100, 2500][i % 5];
    let a = Csr::<T>::from_rows(30, 2600, |i, row| {
        row.extend((0..length(i)).map(|k| (k as u32, T::from_f64((i as f64 + 1.0) / (k as f64 + 3.0)))));
    });
    let x = Vector::from_slice(device, &noise::<T>(2600, 7)).unwrap();
    let mut y = Vector::zeros(device, 30).unwrap();
    SplitRows::new(device, &a.unwrap()).unwrap().apply(&x, &mut y).unwrap();
    golden.put(format!("split rows {kind}"), bits(&y.to_vec().unwrap()));
}

/// Every kernel in small.
fn battery<T: Real>(golden: &mut Golden, kind: &str, device: &Device) {
    for question in residuum::doctor::battery::<T>() {
        if question.suits(device, T::PRECISION) {
            let answer = question.ask(device).unwrap();
            golden.put(format!("battery {kind} {}", question.name()), bits(&answer));
        }
    }
}

fn words_of_advice(golden: &mut Golden) {
    for (name, a) in matrices::<f64>().into_iter().chain([
        ("indefinite", gallery::poisson_2d::<f64>(12, -1.7).unwrap()),
        ("singular", Csr::from_triplets(2, 2, &[(0, 0, 1.0)]).unwrap()),
    ]) {
        let found = Examination::of(&a).unwrap();
        let advice = found.advise(Precision::Double);
        let text = format!("{found:?} {advice} {:?}", advice.warnings);
        golden.put(format!("advice {name}"), text.bytes().map(u64::from));
    }
}

fn all<T: Real>(golden: &mut Golden, device: &Device) {
    let kind = format!("{} {}", T::PRECISION, device.accumulation(T::PRECISION));
    vectors::<T>(golden, &kind, device);
    products::<T>(golden, &kind, device);
    simulations::<T>(golden, &kind, device);
    finite_elements::<T>(golden, &kind, device);
    methods::<T>(golden, &kind, device);
    fused::<T>(golden, &kind, device);
    preconditioners::<T>(golden, &kind, device);
    composed::<T>(golden, &kind, device);
    images::<T>(golden, &kind, device);
    back_projections::<T>(golden, &kind, device);
    penalties::<T>(golden, &kind, device);
    generated::<T>(golden, &kind, device);
    split::<T>(golden, &kind, device);
    battery::<T>(golden, &kind, device);
}

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden.txt");

fn asked_to(word: &str) -> bool {
    std::env::var("RESIDUUM_GOLDEN").is_ok_and(|asked| asked == word)
}

fn lines(golden: &Golden) -> String {
    golden.0.iter().map(|(name, hash)| format!("{name} = {hash:016x}\n")).collect()
}

/// Fails on each line that `found` says otherwise than the file.
fn compare(found: &Golden, whole: bool, who: &str) {
    let text = std::fs::read_to_string(FILE).unwrap_or_default();
    let held: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.rsplit_once(" = ")).collect();
    let wrong: Vec<&String> = found
        .0
        .iter()
        .filter(|(name, hash)| held.get(name.as_str()) != Some(&format!("{hash:016x}").as_str()))
        .map(|(name, _)| name)
        .collect();
    assert!(wrong.is_empty(), "{who}: {} lines differ from tests/golden.txt: {wrong:#?}", wrong.len());
    assert!(
        !whole || held.len() == found.0.len(),
        "tests/golden.txt has {} lines, not {}",
        held.len(),
        found.0.len()
    );
}

#[test]
fn results_are_those_of_the_golden_file() {
    let mut golden = Golden::default();
    words_of_advice(&mut golden);
    let host = Device::host();
    all::<f64>(&mut golden, &host);
    for accumulation in [Accumulation::Double, Accumulation::Pair] {
        all::<f32>(&mut golden, &host.with_accumulation(accumulation).unwrap());
    }
    if asked_to("write") {
        std::fs::write(FILE, lines(&golden)).unwrap();
        return;
    }
    compare(&golden, true, "host");
}

/// Each device in one precision and one way of keeping sums.
fn devices<T: Real>(accumulation: Accumulation) {
    if !asked_to("devices") {
        println!("skipped: devices are compared with the golden file where RESIDUUM_GOLDEN=devices");
        return;
    }
    for device in common::devices_in(T::PRECISION) {
        if device.backend_kind() == BackendKind::Host {
            continue;
        }
        let device = match device.with_accumulation(accumulation) {
            Ok(device) => device,
            Err(error) => {
                println!("skipped: {}: {error}", device.info().name);
                continue;
            }
        };
        assert_eq!(reference::<T>(&device).accumulation(T::PRECISION), accumulation);
        let sizes = match std::env::var_os("RESIDUUM_TEST_WORK_GROUPS") {
            Some(_) => common::work_groups(&device),
            None => vec![device],
        };
        for device in sizes {
            let mut golden = Golden::default();
            all::<T>(&mut golden, &device);
            let who = format!("{}, {}", device.info().name, device.tuning());
            println!("{who}: {} hashes", golden.0.len());
            // The residual that CG carries goes on shrinking there, until its square is a denormal number.
            if !device.info().denormals {
                golden.0.retain(|name, _| {
                    let faint = name.starts_with("stagnates ");
                    if faint {
                        println!("skipped: {name} on {who}, which has no denormal numbers");
                    }
                    !faint
                });
            }
            compare(&golden, false, &who);
        }
    }
}

#[test]
fn devices_give_what_the_golden_file_says_f64() {
    devices::<f64>(Accumulation::Double);
}

#[test]
fn devices_give_what_the_golden_file_says_f32() {
    devices::<f32>(Accumulation::Double);
}

#[test]
fn devices_give_what_the_golden_file_says_f32_in_pairs() {
    devices::<f32>(Accumulation::Pair);
}
