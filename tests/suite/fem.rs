//! Finite elements: element matrices, patch tests, rates of convergence, the stored matrix against the one that is not, equal bits.

use std::f64::consts::PI;

use crate::common::{bits, each_case, noise, ran_alone, reference};
use residuum::fem::{Errors, Mesh, Point, Poisson, Space, Triangulation, hexahedron};
use residuum::operator::LinearOperator;
use residuum::{Device, Error, Format, Matrix, Method, Precision, Real, Setup, Solver, Stopping, Vector, measure};

const UNIT: [[f64; 2]; 3] = [[0.0, 1.0]; 3];

/// A solve as exact as `f64` lets it be, on the host.
fn solved(space: &Space, b: &[f64]) -> Vec<f64> {
    let device = Device::host();
    let stopping = Stopping::for_precision::<f64>().with_rtol(1e-13);
    let setup = Setup::new(Method::Cg, stopping).with_preconditioner(space.jacobi(&device).unwrap());
    let mut solver = Solver::with(space.operator::<f64>(&device).unwrap().shared(), setup).unwrap();
    let mut x = Vector::zeros(&device, space.len()).unwrap();
    let report = solver.solve(&Vector::from_slice(&device, b).unwrap(), &mut x).unwrap();
    assert!(report.relative_residual() < 1e-11, "{:?} {:e}", report.stop, report.relative_residual());
    x.to_vec().unwrap()
}

/// A mesh with hanging nodes on several levels and degrees from 1 to `most`.
fn ragged(most: usize) -> Mesh {
    let mut mesh = Mesh::boxes([2, 3, 2], [[0.0, 1.0], [0.0, 2.0], [0.0, 1.0]]).unwrap();
    mesh = mesh.keep(|cell| cell.middle()[0] < 0.5 || cell.middle()[1] < 1.0).unwrap();
    let _ = mesh.refine(|cell| cell.touches([0.5, 1.0, 0.5])).unwrap();
    let _ = mesh.refine(|cell| cell.touches([0.5, 1.0, 0.5]) && cell.middle()[2] < 0.5).unwrap();
    let _ = mesh.refine(|cell| cell.touches([0.0, 0.0, 0.0])).unwrap();
    mesh.set_degrees(|cell| 1 + ((cell.middle()[0] * 37.0 + cell.middle()[2] * 11.0) as usize % most)).unwrap();
    mesh
}

/// A hexahedron whose faces are not plane.
fn skew() -> impl Fn(Point) -> residuum::fem::Mapped + Send + Sync + 'static {
    let place = hexahedron([
        [0.0, 0.0, 0.0],
        [1.0, 0.1, -0.1],
        [0.1, 1.2, 0.1],
        [1.1, 1.0, 0.2],
        [0.1, -0.1, 0.9],
        [1.0, 0.2, 1.0],
        [0.0, 1.0, 1.3],
        [1.2, 1.1, 1.1],
    ]);
    move |x| {
        let (point, slopes) = place([x[0], 0.5 * x[1], x[2]]);
        (point, slopes.map(|row| [row[0], 0.5 * row[1], row[2]]))
    }
}

#[test]
fn element_matrices_are_those_of_the_book() {
    // A cube of side h with nothing given: its own matrix, which is h/3, 0 along edges, -h/12 across faces and across the cube.
    let h = 0.25;
    let mesh = Mesh::boxes([1; 3], [[0.0, h]; 3]).unwrap();
    let a = Space::with_boundary(&mesh, |_| false).unwrap().matrix().unwrap();
    // Numbers of its vertices, in the order of the entities.
    for i in 0..8 {
        let dense: Vec<f64> =
            (0..8).map(|j| a.row(i).0.iter().position(|c| *c == j).map_or(0.0, |k| a.row(i).1[k])).collect();
        assert!(dense.iter().sum::<f64>().abs() < 1e-16, "constants are in the kernel");
        for (j, entry) in dense.iter().enumerate() {
            let wanted = match (i ^ j).count_ones() {
                0 => h / 3.0,
                1 => 0.0,
                _ => -h / 12.0,
            };
            assert!((entry - wanted).abs() < 1e-16, "{i} {j}: {entry}");
        }
    }
    // An inner row of the assembled matrix: 8h/3, six zeros, twelve -h/6, eight -h/12.
    let mesh = Mesh::boxes([4; 3], UNIT).unwrap();
    let a = Space::new(&mesh).unwrap().matrix().unwrap();
    let mut row: Vec<f64> = a.row(13).1.to_vec();
    row.sort_by(f64::total_cmp);
    let h = 0.25;
    let wanted: Vec<f64> = [vec![-h / 6.0; 12], vec![-h / 12.0; 8], vec![8.0 * h / 3.0]].concat();
    assert_eq!((a.rows(), row.len()), (27, 21));
    assert!(row.iter().zip(&wanted).all(|(a, b)| (a - b).abs() < 1e-15), "{row:?}");
}

#[test]
fn patch_tests_are_passed_at_rounding_level() {
    // Linear functions on any mesh, and polynomials of the degree of the space on boxes.
    let linear = |x: Point| 0.3 + x[0] - 2.0 * x[1] + 0.5 * x[2];
    for (name, mesh) in [("boxes", ragged(4)), ("mapped", ragged(3).mapped(skew()))] {
        for all_given in [true, false] {
            let space = Space::with_boundary(&mesh, |x| all_given || x[2] < 0.6).unwrap();
            println!("{name}: {} unknowns, {} hang", space.len(), space.hanging());
            assert!(space.hanging() > 20);
            let problem =
                Poisson::new(|_| 0.0).with_values(linear).with_flux(|_, n| n[0] - 2.0 * n[1] + 0.5 * n[2]);
            let load = problem.load(&space).unwrap();
            let solution = load.solution(&space, &solved(&space, &load.b)).unwrap();
            let Errors { energy, l2, .. } = solution.errors(|x| (linear(x), [1.0, -2.0, 0.5]));
            assert!(energy < 1e-11 && l2 < 1e-11, "{name} {all_given}: {energy:e} {l2:e}");
            assert!(
                (solution.value([0.3, 0.7, 0.2]).unwrap() - linear(solution_place(&mesh, [0.3, 0.7, 0.2]))).abs()
                    < 1e-11
            );
        }
    }
    for degree in 2..=8i32 {
        let mut mesh = ragged(1);
        mesh.set_degree(degree as usize).unwrap();
        let space = Space::new(&mesh).unwrap();
        let u = move |x: Point| x[0].powi(degree) + x[1].powi(degree) * x[2];
        let slopes = move |x: Point| {
            let d = f64::from(degree);
            [d * x[0].powi(degree - 1), d * x[1].powi(degree - 1) * x[2], x[1].powi(degree)]
        };
        let f = move |x: Point| {
            let d = f64::from(degree * (degree - 1));
            -d * (x[0].powi(degree - 2) + x[1].powi(degree - 2) * x[2])
        };
        let load = Poisson::new(f).with_values(u).load(&space).unwrap();
        let solution = load.solution(&space, &solved(&space, &load.b)).unwrap();
        let found = solution.errors(|x| (u(x), slopes(x)));
        let size = 2f64.powi(degree);
        assert!(found.energy < 1e-11 * size, "{degree}: {found:?}");
    }
}

/// Place in space of a point of the lattice.
fn solution_place(mesh: &Mesh, point: Point) -> Point {
    if mesh.is_mapped() { skew()(point).0 } else { point }
}

fn bubble(x: Point) -> f64 {
    x.iter().map(|x| (PI * x).sin()).product()
}

/// The errors for `u = sin(pi x) sin(pi y) sin(pi z)` in `cells³` cells, and `3 pi² / 8 - b'x`.
fn smooth(cells: usize, degree: usize) -> (Errors, f64) {
    let mut mesh = Mesh::boxes([cells; 3], UNIT).unwrap();
    mesh.set_degree(degree).unwrap();
    let space = Space::new(&mesh).unwrap();
    let load = Poisson::new(|x| 3.0 * PI * PI * bubble(x)).load(&space).unwrap();
    let x = solved(&space, &load.b);
    let energy: f64 = load.b.iter().zip(&x).map(|(b, x)| b * x).sum();
    let solution = load.solution(&space, &x).unwrap();
    assert!((solution.energy().unwrap() - energy).abs() < 1e-11);
    let gradient = |x: Point| {
        [0, 1, 2].map(|d| PI * (PI * x[d]).cos() * (PI * x[(d + 1) % 3]).sin() * (PI * x[(d + 2) % 3]).sin())
    };
    (solution.errors(|x| (bubble(x), gradient(x))), 3.0 * PI * PI / 8.0 - energy)
}

#[test]
fn errors_fall_with_h_and_exponentially_with_p() {
    for degree in 1..=4 {
        let [(coarse, _), (fine, rest)] = [4, 8].map(|cells| smooth(cells, degree));
        let rates = [coarse.energy / fine.energy, coarse.l2 / fine.l2].map(f64::log2);
        println!("p = {degree}: energy h^{:.3}, L2 h^{:.3}", rates[0], rates[1]);
        assert!((rates[0] - degree as f64).abs() < 0.1, "{degree}: {rates:?}");
        assert!((rates[1] - degree as f64 - 1.0).abs() < 0.15, "{degree}: {rates:?}");
        // The squared error is what the energy lacks.
        let difference = (rest.sqrt() / fine.energy - 1.0).abs();
        assert!(difference < 1e-2, "{degree}: {difference}");
    }
    let errors: Vec<f64> = (1..=8).map(|degree| smooth(2, degree).0.energy).collect();
    println!("energy error for p = 1 to 8: {errors:?}");
    // Two degrees gain one order of magnitude at least; the function is even about the middle, so that degrees come in pairs.
    assert!(errors.windows(3).all(|e| e[2] < 0.1 * e[0]), "{errors:?}");
}

#[test]
fn the_operator_is_the_matrix() {
    for mesh in [ragged(5), ragged(4).mapped(skew())] {
        for all_given in [true, false] {
            let space = Space::with_boundary(&mesh, |x| all_given || x[0] < 0.2).unwrap();
            let a = space.matrix().unwrap();
            assert_eq!(a, a.transpose(), "symmetric to the last bit");
            let x = noise::<f64>(space.len(), 3);
            let wanted = a.product(&x).unwrap();
            let device = Device::host();
            let operator = space.operator::<f64>(&device).unwrap();
            let mut y = Vector::filled(&device, space.len(), f64::NAN).unwrap();
            operator.apply(&Vector::from_slice(&device, &x).unwrap(), &mut y).unwrap();
            let (found, largest) = (y.to_vec().unwrap(), wanted.iter().fold(0.0, |a: f64, b| a.max(b.abs())));
            for (found, wanted) in found.iter().zip(&wanted) {
                assert!((found - wanted).abs() < 1e-13 * largest, "{found} {wanted}");
            }
            let diagonal = space.diagonal().unwrap();
            let distance = |(a, b): (&f64, f64)| (a - b).abs() / b;
            assert!(diagonal.iter().zip(a.diagonal()).map(distance).fold(0.0, f64::max) < 1e-13);
        }
    }
}

#[test]
fn values_given_on_half_of_a_larger_edge_are_given_on_all_of_it() {
    // The edge x = 1, y = 0 of the second box has given values beside its lower half only.
    let mut mesh = Mesh::boxes([2, 1, 1], [[0.0, 2.0], [0.0, 1.0], [0.0, 1.0]]).unwrap();
    let _ = mesh.refine(|cell| cell.middle()[0] < 1.0).unwrap();
    for degree in 1..=3 {
        mesh.set_degree(degree).unwrap();
        let space = Space::with_boundary(&mesh, |x| x[1] == 0.0 && x[0] < 1.0 && x[2] < 0.5).unwrap();
        let load = Poisson::new(|_| 0.0).with_values(|_| 1.0).load(&space).unwrap();
        let solution = load.solution(&space, &solved(&space, &load.b)).unwrap();
        let found = solution.errors(|_| (1.0, [0.0; 3]));
        assert!(found.l2 < 1e-11 && found.energy < 1e-11, "{degree}: {found:?}");
    }
}

/// Boxes that meet in an edge, the middle of which is the one coefficient that hangs.
fn hanging_once() -> Space {
    let mesh = Mesh::boxes([2, 2, 1], [[0.0, 2.0], [0.0, 2.0], [0.0, 1.0]]).unwrap();
    let mut mesh = mesh.keep(|cell| (cell.middle()[0] < 1.0) == (cell.middle()[1] < 1.0)).unwrap();
    let _ = mesh.refine(|cell| cell.middle()[0] < 1.0).unwrap();
    let space = Space::with_boundary(&mesh, |x| x[2] == 0.0).unwrap();
    assert_eq!(space.hanging(), 1);
    space
}

#[test]
fn maps_that_fold_are_refused() {
    let mesh = Mesh::boxes([2; 3], UNIT).unwrap().mapped(|x| {
        ([x[0] * x[0] - 0.6 * x[0], x[1], x[2]], [[2.0 * x[0] - 0.6, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    });
    let space = Space::new(&mesh).unwrap();
    let refused = |what: Option<Error>| matches!(what, Some(Error::Option { name: "map", .. }));
    assert!(refused(space.matrix().err()) && refused(space.operator::<f64>(&Device::host()).err()));
    assert!(refused(Poisson::new(|_| 1.0).load(&space).err()) && refused(space.diagonal().err()));
    // A space without unknowns is one, and so is its matrix.
    let space = Space::new(&Mesh::boxes([1; 3], UNIT).unwrap()).unwrap();
    assert!(space.is_empty() && space.matrix().unwrap().rows() == 0);
}

#[test]
fn products_allocate_nothing_and_build_nothing_after_the_first() {
    if ran_alone(concat!(module_path!(), "::", "products_allocate_nothing_and_build_nothing_after_the_first")) {
        return;
    }
    each_case::<f64>(|device| {
        let space = Space::new(&ragged(3)).unwrap();
        let operator = space.operator::<f64>(device).unwrap();
        let x = Vector::filled(device, space.len(), 1.0).unwrap();
        let mut y = Vector::zeros(device, space.len()).unwrap();
        operator.apply(&x, &mut y).unwrap();
        let built = || device.programs().built + device.programs().loaded;
        let before = (measure::allocations(), built());
        for _ in 0..3 {
            operator.apply(&x, &mut y).unwrap();
        }
        assert_eq!((measure::allocations(), built()), before);
    });
}

#[test]
fn products_have_equal_bits() {
    fn products<T: Real>(device: &Device, mesh: &Mesh) -> Vec<u64> {
        products_in::<T>(device, &Space::new(mesh).unwrap())
    }
    fn products_in<T: Real>(device: &Device, space: &Space) -> Vec<u64> {
        let operator = space.operator::<T>(device).unwrap();
        let x = Vector::from_slice(device, &noise::<T>(space.len(), 7)).unwrap();
        let mut y = Vector::filled(device, space.len(), T::from_f64(f64::NAN)).unwrap();
        operator.apply(&x, &mut y).unwrap();
        let first = y.to_vec().unwrap();
        let mut z = Vector::zeros(device, space.len()).unwrap();
        operator.apply(&y, &mut z).unwrap();
        bits(&first).into_iter().chain(bits(&z.to_vec().unwrap())).collect()
    }
    fn check<T: Real>(device: &Device) {
        let once = hanging_once();
        assert_eq!(products_in::<T>(device, &once), products_in::<T>(&reference::<T>(device), &once), "one hangs");
        // A program for each degree: some compilers take seconds for one.
        let every = if T::PRECISION == Precision::Double { 1 } else { 3 };
        for degree in (1..=8).step_by(every) {
            let mut mesh = Mesh::boxes([3, 2, 4], UNIT).unwrap();
            mesh.set_degree(degree).unwrap();
            assert_eq!(products::<T>(device, &mesh), products::<T>(&reference::<T>(device), &mesh), "{degree}");
            let mesh = mesh.mapped(skew());
            assert_eq!(
                products::<T>(device, &mesh),
                products::<T>(&reference::<T>(device), &mesh),
                "mapped {degree}"
            );
        }
        for mesh in [ragged(3), ragged(3).mapped(skew())] {
            assert_eq!(products::<T>(device, &mesh), products::<T>(&reference::<T>(device), &mesh), "ragged");
        }
    }
    each_case::<f32>(check::<f32>);
    each_case::<f64>(check::<f64>);
}

/// `u = r^(1/2)` about the corner of a cube that lacks an eighth, with the gradient.
fn corner(x: Point) -> (f64, Point) {
    let r = x.iter().map(|x| x * x).sum::<f64>().sqrt();
    (r.sqrt(), x.map(|x| 0.5 * x / (r * r.sqrt())))
}

/// Unknowns and energy error on a mesh of the cube that lacks an eighth.
fn at_the_corner(mesh: &Mesh) -> (usize, f64) {
    let space = Space::new(mesh).unwrap();
    // Laplace r^(1/2) = 3/4 r^(-3/2).
    let f = |x: Point| -0.75 * x.iter().map(|x| x * x).sum::<f64>().powf(-0.75);
    let load = Poisson::new(f).with_values(|x| corner(x).0).load(&space).unwrap();
    let solution = load.solution(&space, &solved(&space, &load.b)).unwrap();
    (space.len(), solution.errors(corner).energy)
}

#[test]
fn errors_at_a_corner_fall_exponentially_with_graded_meshes_and_degrees() {
    let start = || {
        let mesh = Mesh::boxes([2; 3], [[-1.0, 1.0]; 3]).unwrap();
        mesh.keep(|cell| cell.middle().iter().any(|x| *x < 0.0)).unwrap()
    };
    let touches = |cell: &residuum::fem::CellView| cell.touches([0.0; 3]);
    // Everything halved; degrees raised everywhere; both, towards the corner.
    let mut mesh = start();
    let mut by_h = Vec::new();
    for _ in 0..3 {
        let _ = mesh.refine(|_| true).unwrap();
        by_h.push(at_the_corner(&mesh));
    }
    let mut by_p = Vec::new();
    for degree in 2..=7 {
        let mut mesh = start();
        mesh.set_degree(degree).unwrap();
        by_p.push(at_the_corner(&mesh));
    }
    // Halved at the corner alone, with one degree: the cells far away stop it.
    let (mut mesh, mut graded) = (start(), Vec::new());
    for _ in 0..8 {
        let _ = mesh.refine(touches).unwrap();
        mesh.set_degree(2).unwrap();
        graded.push(at_the_corner(&mesh));
    }
    let (mut mesh, mut by_hp) = (start(), Vec::new());
    for layers in 1..=7 {
        let _ = mesh.refine(touches).unwrap();
        mesh.set_degrees(|cell| 2 + (layers - cell.level) / 2).unwrap();
        by_hp.push(at_the_corner(&mesh));
    }
    println!("h: {by_h:?}\np: {by_p:?}\ngraded: {graded:?}\nhp: {by_hp:?}");
    // exp(-c n^(1/4)): the number of layers times the third power of the degrees.
    for pair in by_hp.windows(2) {
        let [(n, before), (m, after)] = [pair[0], pair[1]];
        let rate = (before / after).ln() / ((m as f64).powf(0.25) - (n as f64).powf(0.25));
        assert!(rate > 0.4, "{pair:?}: {rate}");
    }
    // The others: h^1 and p^-2, and no more than the cells far away allow.
    assert!(by_h.windows(2).all(|e| e[1].1 > 0.5 * e[0].1));
    assert!(by_p.windows(2).skip(2).all(|e| e[1].1 > 0.65 * e[0].1));
    let ((n, graded), (m, hp)) = (graded[7], by_hp[3]);
    assert!(m < 2 * n && hp < 0.7 * graded && by_hp[6].1 < 0.12 * graded);
}

/// Values at the points of a triangulation.
fn on_triangles(mesh: &Triangulation, problem: &Poisson, is_given: impl Fn([f64; 2]) -> bool) -> Vec<f64> {
    let system = mesh.system(problem, is_given).unwrap();
    assert_eq!(system.matrix, system.matrix.transpose());
    let device = Device::host();
    let matrix = Matrix::new(&device, &system.matrix, Format::Csr).unwrap();
    let b = Vector::from_slice(&device, &system.b).unwrap();
    let mut x = Vector::zeros(&device, b.len()).unwrap();
    let stopping = Stopping::for_precision::<f64>().with_rtol(1e-13);
    let report = Solver::new(&matrix, Method::Cg, stopping).unwrap().solve(&b, &mut x).unwrap();
    assert!(report.relative_residual() < 1e-11);
    system.values(&x.to_vec().unwrap()).unwrap()
}

#[test]
fn triangles_pass_the_patch_test_and_converge() {
    let linear = |x: Point| 1.0 + 2.0 * x[0] - 3.0 * x[1];
    let disc = Triangulation::disc(7).unwrap();
    for all_given in [true, false] {
        let problem = Poisson::new(|_| 0.0).with_values(linear).with_flux(|_, n| 2.0 * n[0] - 3.0 * n[1]);
        let u = on_triangles(&disc, &problem, |x| all_given || x[0] < 0.0);
        assert!(disc.points().iter().zip(&u).all(|([x, y], u)| (linear([*x, *y, 0.0]) - u).abs() < 1e-12));
    }
    // Figure 2.1: -Laplace u = 4 with u = 0 on the rim; in the disc u = 1 - r^2. On the square the series of sines gives 4 * 0.0736713...
    let worst = |rings: usize| {
        let disc = Triangulation::disc(rings).unwrap();
        let u = on_triangles(&disc, &Poisson::new(|_| 4.0), |_| true);
        disc.points().iter().zip(&u).map(|([x, y], u)| (1.0 - x * x - y * y - u).abs()).fold(0.0, f64::max)
    };
    let order = (worst(16) / worst(32)).log2();
    assert!((order - 2.0).abs() < 0.3, "{order}");
    let mut square = Triangulation::square(2).unwrap();
    for _ in 0..5 {
        square = square.refined().unwrap();
    }
    let u = on_triangles(&square, &Poisson::new(|_| 4.0), |_| true);
    let middle = square.points().iter().position(|p| *p == [0.5, 0.5]).unwrap();
    assert!((u[middle] - 4.0 * 0.073_671_353).abs() < 2e-4, "{}", u[middle]);
}
