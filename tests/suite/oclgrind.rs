//! Every kernel in Oclgrind, which reports races, accesses out of bounds and uninitialised memory: its log must be
//! empty.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::common::{self, bits, noise};
use residuum::fem::{Mesh, Space};
use residuum::imaging::{Beam, Fbp, Filter, Grid, Scanner};
use residuum::operator::{
    Boundary, Diagonal, Generated, LinearOperator, Selection, SharedOperator, SplitRows, Stencil,
};
use residuum::precond::{Ainv, AinvOptions, Bainv, BainvOptions, Preconditioner, RowOrdering, SweepOptions};
use residuum::simulation::{Flow, FlowSetup, Interpolation, Obstacles, Trace};
use residuum::sparse::{Partition, gallery};
use residuum::tuning::{AccessPattern, Case, Family, Settings, SizeClass};
use residuum::{
    Accumulation, BackendKind, Columns, Combine, Csr, Device, Format, Matrix, Method, Packing, Precision, Real,
    Reduction, Regularization, Setup, Solver, Stopping, Storage, Transposed, Vector,
};

/// Oclgrind as an OpenCL driver, if it is installed.
fn simulator() -> Option<PathBuf> {
    ["/usr/lib/oclgrind", "/usr/lib/x86_64-linux-gnu/oclgrind", "/usr/local/lib"]
        .iter()
        .map(|folder| PathBuf::from(folder).join("liboclgrind-rt-icd.so"))
        .find(|path| path.exists())
}

/// Steps of flows of both kinds, with pushes and dye: all kernels of simulations.
fn simulated_fields<T: Real>(device: &Device) -> Vec<Vec<u64>> {
    let mut found = Vec::new();
    let obstacles = Obstacles::new([11, 9], (0..99).map(|c| c == 40 || c == 41 || c == 52).collect()).unwrap();
    let rules =
        [(Interpolation::Linear, Trace::Euler, None), (Interpolation::Cubic, Trace::Midpoint, Some(obstacles))];
    for (interpolation, trace, obstacles) in rules {
        let mut setup = FlowSetup::new::<T>([11, 9], 1.0 / 9.0, 0.05, 1e-3);
        (setup.interpolation, setup.trace, setup.obstacles) = (interpolation, trace, obstacles);
        setup.stopping = Stopping::after(2);
        let mut flow = Flow::<T>::new(device, setup).unwrap();
        for _ in 0..2 {
            flow.push([4.0, 5.0], 3.0, [1.0, -2.0]).unwrap();
            flow.inject([4.0, 5.0], 3.0, 1.0).unwrap();
            let _ = flow.step().unwrap();
        }
        let [u, v] = flow.velocity();
        found.extend([u, v, flow.pressure(), flow.dye()].map(|field| bits(&field.to_vec().unwrap())));
    }
    found
}

/// Products whose vector goes through local memory part by part, of a stored matrix and of one whose entries a text makes.
fn products_in_parts<T: Real>(device: &Device) -> Vec<Vec<u64>> {
    let (rows, cols, entries) = (21, 5000, 9);
    let x = Vector::from_slice(device, &noise::<T>(cols, 6)).unwrap();
    let mut y = Vector::zeros(device, rows).unwrap();
    let twin = |i: u32, k: u32| (550 * k + 13 * i, T::from_f64(f64::from(1 + k)));
    let text = "column = 550u * k + 13u * i; value = 1 + k;";
    let made = || Generated::new(device, [rows, cols], entries, text, move |_, i, k| twin(i, k)).unwrap();
    let mut found = Vec::new();
    for a in [made(), made().staged().unwrap()] {
        a.apply(&x, &mut y).unwrap();
        found.push(bits(&y.to_vec().unwrap()));
    }
    let reading = Some(AccessPattern::Rows);
    let case = Case { family: Family::Product, reading, precision: T::PRECISION, size: SizeClass::Small };
    let device =
        device.with_settings(case, Settings { staged: Some(true), ..Settings::default() }, "test").unwrap();
    let a =
        Csr::from_rows(rows, cols, |i, row| row.extend((0..entries as u32).map(|k| twin(i as u32, k)))).unwrap();
    for format in [Format::EllpackR, Format::Sell { sigma: 1 }] {
        Matrix::new(&device, &a, format).unwrap().multiply(&x, &mut y).unwrap();
        found.push(bits(&y.to_vec().unwrap()));
    }
    assert!(found.windows(2).all(|pair| pair[0] == pair[1]));
    found
}

/// A product divided by entries: rows within pieces and parts and across them, and rows without entries.
fn split_product<T: Real>(device: &Device) -> Vec<u64> {
    let lengths = [0, 3, 40, 0, 1000, 2100, 0];
    let a = Csr::<T>::from_rows(lengths.len(), 2100, |i, row| {
        row.extend((0..lengths[i]).map(|k| (k as u32, T::from_f64((k % 7) as f64 - 3.0))));
    });
    let x = Vector::from_slice(device, &noise::<T>(2100, 9)).unwrap();
    let mut y = Vector::zeros(device, lengths.len()).unwrap();
    SplitRows::new(device, &a.unwrap()).unwrap().apply(&x, &mut y).unwrap();
    bits(&y.to_vec().unwrap())
}

/// Products of finite elements of several degrees, with hanging nodes, boxes and mapped cells.
fn products_of_elements<T: Real>(device: &Device) -> Vec<Vec<u64>> {
    let mut mesh = Mesh::boxes([2, 1, 1], [[0.0, 1.0]; 3]).unwrap();
    let _ = mesh.refine(|cell| cell.middle()[0] < 0.5).unwrap();
    mesh.set_degrees(|cell| if cell.middle()[1] < 0.5 { 3 } else { 2 }).unwrap();
    let mapped = mesh.clone().mapped(|x| (x.map(|x| 2.0 * x), [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]]));
    let product = |mesh: Mesh| {
        let space = Space::with_boundary(&mesh, |x| x[1] == 0.0).unwrap();
        assert!(space.hanging() > 0);
        let x = Vector::from_slice(device, &noise::<T>(space.len(), 8)).unwrap();
        let mut y = Vector::filled(device, space.len(), T::from_f64(f64::NAN)).unwrap();
        space.operator::<T>(device).unwrap().apply(&x, &mut y).unwrap();
        bits(&y.to_vec().unwrap())
    };
    [mesh, mapped].map(product).into()
}

/// All operations on `device`: what they compute, as bits; with what only devices with denormals can hold, if wanted.
fn battery<T: Real>(device: &Device, denormals: bool) -> Vec<Vec<u64>> {
    let mut found = products_of_elements::<T>(device);
    let n = 77;
    let (a, b) = (noise::<T>(n, 1), noise::<T>(n, 2));
    let x = Vector::from_slice(device, &a).unwrap();
    let mut y = Vector::from_slice(device, &b).unwrap();
    y.axpby(T::from_f64(0.5), &x, T::from_f64(2.0)).unwrap();
    let mut sum = Vector::zeros(device, n).unwrap();
    sum.sum_of(T::from_f64(0.5), &x, T::from_f64(2.0), &y).unwrap();
    found.push(bits(&sum.to_vec().unwrap()));
    let mut z = Vector::zeros(device, n).unwrap();
    z.scaled_from(T::from_f64(3.0), &y).unwrap();
    z.product_of(&x, &y).unwrap();
    z.clamp(T::from_f64(-0.5), T::from_f64(0.5)).unwrap();
    found.push(bits(&z.to_vec().unwrap()));
    // The low words of this one are as small as that.
    if denormals || T::PRECISION == Precision::Double {
        found.push(bits(&[x.product().unwrap()]));
    }
    let near: Vec<T> = a.iter().map(|v| T::from_f64(1.0 + v.to_f64() / 8.0)).collect();
    found.push(bits(&[
        x.sum().unwrap(),
        Vector::from_slice(device, &near).unwrap().product().unwrap(),
        x.min().unwrap(),
        x.max().unwrap(),
        x.asum().unwrap(),
        x.dot(&y).unwrap(),
        x.reduce_products(Reduction::AbsoluteSum, &y).unwrap(),
        x.reduce_products(Reduction::Maximum, &y).unwrap(),
    ]));
    let selection = Selection::<T>::new(device, &[5, 0, 76, 31], n).unwrap();
    let mut back = Vector::filled(device, n, T::from_f64(f64::NAN)).unwrap();
    let mut some = Vector::filled(device, 4, T::from_f64(f64::NAN)).unwrap();
    selection.apply(&x, &mut some).unwrap();
    selection.apply_adjoint(&some, &mut back).unwrap();
    found.extend([bits(&some.to_vec().unwrap()), bits(&back.to_vec().unwrap())]);
    let poisson = gallery::poisson_2d::<T>(7, 0.1).unwrap();
    let wide = gallery::random::<T>(40, 30, 40 * 10, 3).unwrap();
    // Rows of every class of lanes.
    let skewed = Csr::from_rows(40, 600, |i, row| {
        let length = [3, 0, 20, 5, 520, 17][i % 6];
        row.extend((0..length).map(|k| (k, T::from_f64(((k as usize + i) as f64).sqrt()))));
    });
    let skewed = skewed.unwrap();
    for format in Format::ALL.iter().copied() {
        let matrix = Matrix::with_transpose(device, &skewed, format).unwrap();
        let mut y = Vector::filled(device, 40, T::from_f64(f64::NAN)).unwrap();
        let mut w = Vector::filled(device, 600, T::from_f64(f64::NAN)).unwrap();
        let wide = Vector::from_slice(device, &noise::<T>(600, 6)).unwrap();
        matrix.multiply(&wide, &mut y).unwrap();
        if [Format::Csr, Format::CsrAdaptive, Format::Dia].contains(&format) {
            let mut combined = Vector::filled(device, 40, T::from_f64(f64::NAN)).unwrap();
            for op in [Combine::Minus, Combine::From] {
                matrix.multiply_with(&wide, op, &y, &mut combined).unwrap();
                found.push(bits(&combined.to_vec().unwrap()));
            }
        }
        matrix.multiply_transposed(&Vector::from_slice(device, &noise::<T>(40, 7)).unwrap(), &mut w).unwrap();
        found.extend([bits(&y.to_vec().unwrap()), bits(&w.to_vec().unwrap())]);
        // In two launches for each iteration; for two formats also in one for all. Only by one group in the simulator, which
        // takes what groups read of each other for races: it does not know that they met.
        let most = match format {
            Format::CsrScalar | Format::CsrAdaptive if simulated() => 1,
            Format::CsrScalar | Format::CsrAdaptive => 2,
            _ => 0,
        };
        for groups in 0..=most {
            let device = &device.with_resident_groups(groups);
            let matrix = Matrix::new(device, &poisson, format).unwrap();
            let b = Vector::from_slice(device, &noise::<T>(49, 5)).unwrap();
            let mut x = Vector::zeros(device, 49).unwrap();
            let stopping = Stopping::after(2).with_check_every(2);
            let report = Solver::new(&matrix, Method::Cg, stopping).unwrap().solve(&b, &mut x).unwrap();
            found.extend([bits(&x.to_vec().unwrap()), bits(&report.history)]);
        }
    }
    // Packed: few values, many in few columns, many near the diagonal.
    let few = gallery::poisson_2d::<T>(9, 0.1).unwrap();
    let near = Csr::from_rows(20, 70_000, |i, row| {
        row.extend([i, i + 1, i + 3].map(|j| (j as u32, T::from_f64(0.3 * i as f64 + j as f64))));
    });
    let near = near.unwrap();
    let single = near.rounded_to_f32().unwrap();
    let slices = Format::Sell { sigma: 1 };
    for (a, formats) in [
        (&single, &[Format::Csr, slices, Format::Coo][..]),
        (&few, &[Format::Csr, Format::Coo, slices, Format::Hyb, Format::Dia][..]),
        (&skewed, &[Format::CsrAdaptive]),
        (&near, &[Format::Csr, slices]),
    ] {
        for format in formats.iter().copied() {
            let storage = Storage::default().with_format(format).with_packing(Packing::Always);
            let matrix = Matrix::stored(device, a, storage).unwrap();
            let mut y = Vector::filled(device, a.rows(), T::from_f64(f64::NAN)).unwrap();
            matrix.multiply(&Vector::from_slice(device, &noise::<T>(a.cols(), 6)).unwrap(), &mut y).unwrap();
            found.push(bits(&y.to_vec().unwrap()));
        }
    }
    // Additions in no fixed order: for the log alone.
    let storage = Storage::default().with_format(Format::CsrScalar).with_transposed(Transposed::Scatter);
    let matrix = Matrix::stored(device, &skewed, storage).unwrap();
    let mut w = Vector::zeros(device, 600).unwrap();
    matrix.multiply_transposed(&Vector::from_slice(device, &noise::<T>(40, 7)).unwrap(), &mut w).unwrap();
    // Scatter in local memory: more entries than two groups hold places.
    let narrow = gallery::random::<T>(90, 7, 300, 3).unwrap();
    let matrix = Matrix::stored(device, &narrow, storage).unwrap();
    let mut w = Vector::zeros(device, 7).unwrap();
    matrix.multiply_transposed(&Vector::from_slice(device, &noise::<T>(90, 7)).unwrap(), &mut w).unwrap();
    found.extend(simulated_fields::<T>(device));
    let closed = [Boundary::Reflecting, Boundary::Periodic, Boundary::Zero];
    for stencil in [
        Stencil::laplacian_2d(9, 7).unwrap(),
        Stencil::laplacian_3d(5, 3, 4).unwrap(),
        Stencil::laplacian_2d(41, 5).unwrap().with_boundaries(closed),
    ] {
        let a = stencil.operator::<T>(device).unwrap();
        let b = Vector::from_slice(device, &noise::<T>(a.rows(), 5)).unwrap();
        let mut x = Vector::zeros(device, a.cols()).unwrap();
        let report = Solver::new(&a, Method::Cg, Stopping::after(2)).unwrap().solve(&b, &mut x).unwrap();
        x.scale(T::from_f64(0.5)).unwrap();
        found.extend([bits(&x.to_vec().unwrap()), bits(&report.history)]);
    }
    // One script of each kind of launch: blended products of both ways, passes with statements of every kind.
    let square = Matrix::new(device, &poisson, Format::Csr).unwrap();
    let tall = Matrix::with_transpose(device, &wide, Format::EllpackR).unwrap();
    let diagonal = Diagonal::new(Vector::filled(device, 49, T::from_f64(0.2)).unwrap()).unwrap();
    let factored: SharedOperator<T> =
        Preconditioner::Ainv(AinvOptions::sainv(0.1)).build(device, &poisson).unwrap().into();
    // By launches of their own, and in one for all iterations.
    let residencies = if simulated() { 0..=1 } else { 0..=2 };
    let scripts = [
        (Method::Cg, &square, Some("diagonal"), 1),
        (Method::Cg, &square, Some("diagonal"), 2),
        (Method::Cg, &square, Some("factors"), 1),
        (Method::Cg, &square, None, 3),
        (Method::Minres, &square, None, 1),
        (Method::BiCgStab, &square, Some("factors"), 1),
        (Method::Gmres { restart: 2 }, &square, Some("diagonal"), 1),
        (Method::Gmres { restart: 3 }, &square, None, 2),
        (Method::Stationary { omega: 0.2 }, &square, None, 1),
        (Method::Cgls { damp: 0.5 }, &tall, None, 1),
        (Method::Lsmr { damp: 0.5 }, &tall, None, 1),
    ];
    for (groups, (method, a, preconditioned, columns)) in
        residencies.flat_map(|groups| scripts.iter().map(move |script| (groups, *script)))
    {
        // One launch for all iterations does the same for many methods: some are enough.
        if groups > 0
            && matches!(
                method,
                Method::Minres | Method::Gmres { .. } | Method::Stationary { .. } | Method::Cgls { .. }
            )
        {
            continue;
        }
        let device = &device.with_resident_groups(groups);
        let a = &a.on(device).unwrap();
        let stopping = Stopping::after(2).with_check_every(2);
        let mut setup = Setup::new(method, stopping).with_columns(columns);
        match preconditioned {
            Some("diagonal") => setup.preconditioner = Some((&diagonal).into()),
            Some(_) => setup.preconditioner = Some(factored.clone()),
            None => {}
        }
        let b = Vector::from_slice(device, &noise::<T>(a.rows() * columns, 5)).unwrap();
        let b = Columns::from_vector(b, columns).unwrap();
        let mut x = Columns::zeros(device, a.cols(), columns).unwrap();
        let reports = Solver::with(a, setup).unwrap().solve_many(&b, &mut x).unwrap();
        found.extend([bits(&x.into_vector().to_vec().unwrap()), bits(&reports[0].history)]);
    }
    // Columns many at once on a device, and those of a chain in order after some rounds; the host makes them one after another.
    let chain = Csr::from_rows(68, 68, |i, row| {
        let near = i.saturating_sub(1)..(i + 2).min(68);
        row.extend(near.map(|j| (j as u32, T::from_f64(if i == j { 2.5 } else { -1.0 }))));
    })
    .unwrap();
    let grid = |side: usize| gallery::poisson_2d::<T>(side, 0.1).unwrap();
    for (small, mut options) in
        [(grid(5), AinvOptions::sainv(0.02)), (grid(3), AinvOptions::ainv(0.1)), (chain, AinvOptions::sainv(0.1))]
    {
        options.on_device = Some(true);
        let inverse = Ainv::new(device, &small, options).unwrap();
        let doubles = device.accumulation(T::PRECISION) == Accumulation::Double;
        assert_eq!(inverse.made_on_device(), device.backend_kind() == BackendKind::OpenCl && doubles);
        let mut z = Vector::zeros(device, small.rows()).unwrap();
        inverse.apply(&Vector::from_slice(device, &noise::<T>(small.rows(), 5)).unwrap(), &mut z).unwrap();
        found.push(bits(&z.to_vec().unwrap()));
    }
    let mut options = BainvOptions::default();
    options.on_device = Some(true);
    let inverse = Bainv::new(device, &poisson, &Partition::natural(poisson.rows(), 3).unwrap(), options).unwrap();
    let doubles = device.accumulation(T::PRECISION) == Accumulation::Double;
    assert_eq!(inverse.made_on_device(), device.backend_kind() == BackendKind::OpenCl && doubles);
    let mut z = Vector::zeros(device, poisson.rows()).unwrap();
    inverse.apply(&Vector::from_slice(device, &noise::<T>(poisson.rows(), 5)).unwrap(), &mut z).unwrap();
    found.push(bits(&z.to_vec().unwrap()));
    let by_rows = Preconditioner::Sweep(SweepOptions::ssor(1.2).with_ordering(RowOrdering::Rows));
    // A sweep in one launch, twice: groups draw tickets, so that one after another may run.
    let waiting = by_rows.build(&device.with_resident_groups(2), &poisson).unwrap().operator;
    for _ in 0..2 {
        let mut z = Vector::zeros(device, poisson.rows()).unwrap();
        waiting.apply(&Vector::from_slice(device, &noise::<T>(poisson.rows(), 5)).unwrap(), &mut z).unwrap();
        found.push(bits(&z.to_vec().unwrap()));
    }
    for which in Preconditioner::ALL.iter().chain([&by_rows]) {
        let mut z = Vector::zeros(device, 49).unwrap();
        which
            .build(device, &poisson)
            .unwrap()
            .operator
            .apply(&Vector::from_slice(device, &noise::<T>(49, 5)).unwrap(), &mut z)
            .unwrap();
        found.push(bits(&z.to_vec().unwrap()));
    }
    let scanner = Scanner {
        beam: Beam::Fan { source_origin: 40.0, source_detector: 60.0 },
        pixels: 9,
        pitch: 2.0,
        offset: 0.3,
        angles: vec![10.0, 50.0, 80.0],
    };
    for beam in [Beam::Parallel, scanner.beam.clone()] {
        let scanner = Scanner { beam, ..scanner.clone() };
        let mut fbp = Fbp::<T>::new(device, &scanner, Grid { side: 11, pixel: 1.0 }, Filter::Hann).unwrap();
        found.push(bits(&fbp.reconstruct(&noise::<T>(27, 12)).unwrap()));
    }
    // A penalty and an operation of the user's own.
    let penalty = common::penalty::Edges::new(device, [6, 5], [0.3, 0.1], 1);
    let setup = Setup::new(Method::Cgnr, Stopping::after(2).with_check_every(2)).with_penalty(penalty);
    let few = Matrix::with_transpose(device, &gallery::random::<T>(20, 30, 90, 4).unwrap(), Format::Csr).unwrap();
    let mut x = Vector::zeros(device, 30).unwrap();
    let mut solver = Solver::with(&few, setup).unwrap();
    let report = solver.solve(&Vector::from_slice(device, &noise::<T>(20, 8)).unwrap(), &mut x).unwrap();
    found.extend([bits(&x.to_vec().unwrap()), bits(&report.history)]);
    let rays = scanner.projector::<T>(device, Grid { side: 11, pixel: 1.0 }).unwrap();
    let b = Vector::from_slice(device, &noise::<T>(27, 8)).unwrap();
    let mut x = Vector::zeros(device, 121).unwrap();
    let report =
        common::cgnr(&rays, &[Regularization::none()], Stopping::after(2)).unwrap().solve(&b, &mut x).unwrap();
    found.extend([bits(&x.to_vec().unwrap()), bits(&report.history)]);
    let stopping = |iterations| Stopping::after(iterations).with_check_every(2);
    // In two launches for each iteration, and in one for all, as CG above.
    let most = if simulated() { 1 } else { 2 };
    // More columns than entries: of the vectors that are gathered, one launch forms the residual in local memory.
    let flat = gallery::random::<T>(40, 300, 200, 4).unwrap();
    for groups in 0..=most {
        let device = &device.with_resident_groups(groups);
        let matrix = Matrix::with_transpose(device, &flat, Format::CsrScalar).unwrap();
        let b = Vector::from_slice(device, &noise::<T>(40, 9)).unwrap();
        let mut x = Vector::zeros(device, 300).unwrap();
        let report =
            common::cgnr(&matrix, &[Regularization::none()], stopping(3)).unwrap().solve(&b, &mut x).unwrap();
        found.extend([bits(&x.to_vec().unwrap()), bits(&report.gradient_history)]);
    }
    // A short vector that each group copies to local memory.
    let tall = gallery::random::<T>(90, 24, 900, 4).unwrap();
    for format in [Format::EllpackR, Format::Sell { sigma: 32 }] {
        let mut y = Columns::zeros(device, 90, 2).unwrap();
        let x = Vector::from_slice(device, &noise::<T>(48, 6)).unwrap();
        let x = Columns::from_vector(x, 2).unwrap();
        Matrix::new(device, &tall, format).unwrap().multiply_columns(&x, &mut y).unwrap();
        found.push(bits(&y.into_vector().to_vec().unwrap()));
    }
    found.extend(products_in_parts::<T>(device));
    found.push(split_product::<T>(device));
    // Corrections beside a preconditioner: their term by itself.
    let term = Regularization::none()
        .with_variation(0.2)
        .with_epsilon(0.1)
        .with_upper(0.3)
        .with_bound_weight(0.5)
        .with_width(6);
    let by_norms = Diagonal::new(Vector::filled(device, 30, T::from_f64(0.4)).unwrap()).unwrap();
    let setup = Setup::new(Method::Cgnr, stopping(2)).with_regularizations(&[term]).with_preconditioner(by_norms);
    let mut x = Vector::zeros(device, 30).unwrap();
    let mut solver = Solver::with(&few, setup).unwrap();
    let report = solver.solve(&Vector::from_slice(device, &noise::<T>(20, 8)).unwrap(), &mut x).unwrap();
    found.extend([bits(&x.to_vec().unwrap()), bits(&report.history)]);
    for (format, groups) in (0..=most).map(|groups| (Format::Csr, groups)).chain([(Format::EllpackR, 0)]) {
        let device = &device.with_resident_groups(groups);
        let matrix = Matrix::with_transpose(device, &wide, format).unwrap();
        let mut y = Vector::zeros(device, 40).unwrap();
        matrix.multiply(&Vector::from_slice(device, &noise::<T>(30, 6)).unwrap(), &mut y).unwrap();
        found.push(bits(&y.to_vec().unwrap()));
        let all = Regularization::none()
            .with_tikhonov(0.1)
            .with_smooth(0.1)
            .with_variation(0.2)
            .with_epsilon(0.1)
            .with_lower(-0.1)
            .with_upper(0.2)
            .with_bound_weight(1.0)
            .with_width(6);
        for regularizations in [vec![Regularization::none()], vec![all.clone(); 2], vec![all.clone(); 4]] {
            let columns: Vec<Vec<T>> = (0..regularizations.len()).map(|c| noise(40, 10 + c as u64)).collect();
            let columns: Vec<&[T]> = columns.iter().map(|c| &c[..]).collect();
            let b = Columns::new(device, &columns).unwrap();
            let mut x = Columns::zeros(device, 30, regularizations.len()).unwrap();
            let reports =
                common::cgnr(&matrix, &regularizations, stopping(2)).unwrap().solve_many(&b, &mut x).unwrap();
            found.push(bits(&x.into_vector().to_vec().unwrap()));
            found.push(bits(&reports[0].gradient_history));
        }
    }
    // Steps of PDHG, which has most launches of methods that keep bounds, with boundaries, corners and two columns, and the same in one launch.
    // NNFCGLS beside it, which keeps directions of both spaces, drops them and begins again.
    let b = Columns::new(device, &[noise::<T>(40, 10), noise::<T>(40, 11)]).unwrap();
    let exact = || vec![common::battery::everything_exact(6)];
    for (method, regularizations, iterations, groups) in [
        (Method::Pdhg, exact(), 2, 0),
        (Method::Pdhg, exact(), 2, 1),
        (Method::Nnfcgls { restart: 3 }, vec![], 4, 0),
    ] {
        let device = &device.with_resident_groups(groups);
        let matrix = Matrix::with_transpose(device, &wide, Format::Csr).unwrap();
        let setup = Setup::new(method, stopping(iterations)).with_columns(2);
        let setup = if regularizations.is_empty() { setup } else { setup.with_regularizations(&regularizations) };
        let mut x = Columns::zeros(device, 30, 2).unwrap();
        let reports = Solver::with(&matrix, setup).unwrap().solve_many(&b, &mut x).unwrap();
        found.extend([bits(&x.into_vector().to_vec().unwrap()), bits(&reports[0].gradient_history)]);
    }
    found
}

/// The battery against the host's.
fn compare<T: Real>(device: &Device) {
    let denormals = device.info().denormals;
    let (found, wanted) =
        (battery::<T>(device, denormals), battery::<T>(&common::reference::<T>(device), denormals));
    let different: Vec<usize> = (0..wanted.len()).filter(|i| found[*i] != wanted[*i]).collect();
    assert!(different.is_empty(), "{} {}: results {different:?}", device.info().name, device.tuning());
}

/// Cases that a process in the simulator tries, as `size:number`; set there alone.
const CASES: &str = "RESIDUUM_SIMULATED_CASES";

/// Tells if this process runs in the simulator.
fn simulated() -> bool {
    std::env::var_os(CASES).is_some()
}

/// The battery on every device with this size of work-groups: one of the numbers `single`, `pairs` and `double`.
fn compare_case(size: usize, number: &str) {
    for device in common::devices() {
        if simulated() && device.backend_kind() == BackendKind::OpenCl {
            assert_eq!(device.info().platform, "Oclgrind");
        }
        let least = device.info().least_work_group;
        // CPUs run a text of their own, with one item to a group.
        if size == 1 && least > 1 {
            continue;
        }
        let device = device.with_work_group(size.max(least)).unwrap();
        match number {
            "single" => compare::<f32>(&device),
            "pairs" => compare::<f32>(&device.with_accumulation(Accumulation::Pair).unwrap()),
            "double" if device.require(Precision::Double).is_ok() => compare::<f64>(&device),
            "double" => println!("skipped: {} has no double precision", device.info().name),
            other => panic!("{other} is no number"),
        }
    }
}

/// The battery on every device at three work-group sizes, against the host. In the simulator, what matters is its log.
#[test]
fn every_kernel_in_small() {
    let words =
        std::env::var(CASES).unwrap_or("1:single 8:single 8:pairs 8:double 64:single 64:pairs 64:double".into());
    for case in words.split(' ') {
        let (size, number) = case.split_once(':').unwrap();
        compare_case(size.parse().unwrap(), number);
    }
}

#[test]
fn oclgrind_finds_nothing() {
    let Some(icd) = simulator() else {
        assert!(
            std::env::var_os("REQUIRE_OCLGRIND").is_none(),
            "REQUIRE_OCLGRIND is set, but Oclgrind is not there"
        );
        println!("skipped: Oclgrind is not installed");
        return;
    };
    // Races and uninitialised memory in runs of their own, side by side: reports of one kind can hide the other. The second
    // takes three times as long, and is shared between two. Numbers of another kind need no other barriers: each size has those
    // that differ most, so that every size and every number is there.
    let runs = [
        ("OCLGRIND_UNINITIALIZED", "8:single 8:pairs"),
        ("OCLGRIND_UNINITIALIZED", "1:single 64:double"),
        ("OCLGRIND_DATA_RACES", "1:single 8:single 8:pairs 64:double"),
    ];
    let runs = runs.map(|(check, cases)| {
        let log = tempfile::NamedTempFile::new().unwrap();
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "oclgrind::every_kernel_in_small", "--test-threads=1", "--nocapture"])
            .env(check, "1")
            .env("OCLGRIND_LOG", log.path())
            .env("OCL_ICD_VENDORS", &icd)
            .env(CASES, cases)
            .env("RESIDUUM_TEST_DEVICES", "oclgrind")
            .env("REQUIRE_DEVICES", "1")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        (check, log, child)
    });
    for (check, log, child) in runs {
        let output = child.wait_with_output().unwrap();
        let words = String::from_utf8_lossy(&output.stdout);
        let found = std::fs::read_to_string(log.path()).unwrap();
        assert!(found.is_empty(), "{check}: {}", &found[..found.len().min(3000)]);
        assert!(output.status.success(), "{check}: {words}");
    }
}
