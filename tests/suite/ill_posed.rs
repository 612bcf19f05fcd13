//! Ill-posed problems: methods that choose their weight or stop in time, beside what IR Tools finds for the same data.

use crate::common::{self, distance, norm, oracle};
use residuum::operator::{LinearOperator, SharedOperator, Subsets};
use residuum::sparse::gallery::Random;
use residuum::{
    Answer, Columns, Csr, Device, Format, Matrix, Method, Real, Regularization, Report, Setup, Solver, Stop,
    StopRule, Stopping, Storage, Transposed, Vector, WeightRule, WeightStop,
};

/// FISTA within 0 and 1 on the test problem of IR Tools: the errors that IR Tools has after as many iterations.
#[test]
fn fista_is_that_of_ir_tools() {
    let (a, x) = (oracle::matrix(), oracle::head());
    // The problem is the one of the table.
    assert_eq!((a.rows(), a.cols(), a.nnz()), (8190, 4096, 469_640));
    let b = a.product(&x).unwrap();
    for (found, wanted) in [
        (norm(a.values().iter().copied()), 590.5253315),
        (norm(b.iter().copied()), 677.097546),
        (norm(x.iter().copied()), 15.84739726),
    ] {
        approx::assert_relative_eq!(found, wanted, max_relative = 1e-8);
    }
    let device = Device::host();
    let matrix = Matrix::with_transpose(&device, &a, Format::Csr).unwrap();
    for (level, cases) in [(0.01, [(168, 0.03706), (300, 0.04011)]), (0.05, [(58, 0.15016), (300, 0.19293)])] {
        let b = Vector::from_slice(&device, &oracle::noisy(&b, level)).unwrap();
        for (iterations, wanted) in cases {
            let bounds = Regularization::none().with_lower(0.0).with_upper(1.0);
            let setup = Setup::new(Method::Fista, Stopping::after(iterations)).with_regularizations(&[bounds]);
            let mut found = Vector::zeros(&device, a.cols()).unwrap();
            let report = Solver::with(&matrix, setup).unwrap().solve(&b, &mut found).unwrap();
            let error = distance(&found.to_vec().unwrap(), &x);
            println!("{report}: error {error:.5}, IR Tools {wanted}");
            assert!((error - wanted).abs() < 0.01 * wanted, "{error} for {wanted}");
        }
    }
}

/// Solves with hybrid LSQR from 0 on the host, in `f64`.
fn hybrid(matrix: &Matrix<f64>, b: &[f64], weight: WeightRule) -> (Vec<f64>, Report) {
    solved(matrix, b, Method::HybridLsqr { weight, subspace: 100 })
}

/// Solves from 0 on the host, in `f64`.
fn solved(matrix: &Matrix<f64>, b: &[f64], method: Method) -> (Vec<f64>, Report) {
    let mut solver = Solver::new(matrix, method, Stopping::for_precision::<f64>()).unwrap();
    let b = Vector::from_slice(matrix.device(), b).unwrap();
    let mut x = Vector::zeros(matrix.device(), matrix.cols()).unwrap();
    let report = solver.solve(&b, &mut x).unwrap();
    (x.to_vec().unwrap(), report)
}

/// Hybrid LSQR with each rule on the test problem of IR Tools, beside its table.
#[test]
fn hybrid_lsqr_is_that_of_ir_tools() {
    use WeightRule::{Discrepancy, Gcv, LeastError, ModifiedGcv, Upre, WeightedGcv};
    let (a, x) = (oracle::matrix(), oracle::head());
    let b = a.product(&x).unwrap();
    let matrix = Matrix::with_transpose(&Device::host(), &a, Format::Csr).unwrap();
    // Iterations and errors of IR Tools, and how far ours may be above. It counts an iteration less than its answer has had where cross
    // validation is flat, and it takes one step towards the weight of the discrepancy principle, which we solve for: our weight is the
    // larger one, and our residual 1.01 times the noise. Our own rule is measured against the best of plain iterations, 0.09023 and 0.25351.
    let cases = [
        (0.01, Gcv, 27, 0.13822, 1.015),
        (0.01, WeightedGcv, 32, 0.11752, 1.0),
        (0.01, ModifiedGcv, 63, 0.09572, 1.0),
        (0.01, Discrepancy { noise: 0.01 }, 19, 0.15181, 1.045),
        (0.01, Upre { noise: 0.01 }, 60, 0.09572, 1.0),
        (0.01, LeastError, 86, 0.09023, 1.0),
        (0.05, Gcv, 10, 0.30155, 1.01),
        (0.05, WeightedGcv, 13, 0.26290, 1.0),
        // IR Tools gives this up too, with 0.48188 after 58 iterations.
        (0.05, ModifiedGcv, 64, 0.48188, 1.035),
        (0.05, Discrepancy { noise: 0.05 }, 8, 0.29241, 1.01),
        (0.05, LeastError, 37, 0.25351, 1.02),
    ];
    for (noise, rule, iterations, wanted, above) in cases {
        let (found, report) = hybrid(&matrix, &oracle::noisy(&b, noise), rule);
        let error = distance(&found, &x);
        println!("{noise} {report}: error {error:.5}, wanted {wanted}");
        assert!(
            report.stop == Stop::Regularised && error < above * wanted && error > 0.95 * wanted,
            "{report}: {error}"
        );
        let most = if rule == ModifiedGcv { 3 } else { 2 };
        assert!(report.iterations.abs_diff(iterations) <= most, "{report}: {iterations}");
        let weight = report.weight.clone().unwrap();
        assert!(weight.iteration == report.iterations && weight.path.len() == report.iterations && !weight.at_end);
        // Residual and weight of the report are true of the answer.
        let residual = norm(a.product(&found).unwrap().iter().zip(oracle::noisy(&b, noise)).map(|(y, b)| b - y));
        approx::assert_relative_eq!(report.true_residual, residual, max_relative = 1e-10);
        approx::assert_relative_eq!(report.residual, residual, max_relative = 1e-6);
        if let Discrepancy { noise } = rule {
            approx::assert_relative_eq!(report.relative_residual(), 1.01 * noise, max_relative = 1e-6);
        }
        if rule == LeastError {
            approx::assert_relative_eq!(weight.noise.unwrap(), noise, max_relative = 0.03);
        }
    }
}

/// Hybrid LSMR takes the weights of hybrid LSQR in the same iterations, where gradients do not decide; it has smaller gradients all the way, and comes
/// to the same answer where the space does.
#[test]
fn hybrid_lsmr_has_smaller_gradients() {
    use WeightRule::{Discrepancy, Gcv, LeastError, WeightedGcv};
    let (a, x) = (oracle::matrix(), oracle::head());
    let b = a.product(&x).unwrap();
    let matrix = Matrix::with_transpose(&Device::host(), &a, Format::Csr).unwrap();
    for level in [0.01, 0.05] {
        for weight in [WeightedGcv, Gcv, LeastError, Discrepancy { noise: level }] {
            let noisy = oracle::noisy(&b, level);
            let [(one, of_lsqr), (other, of_lsmr)] =
                [Method::HybridLsqr { weight, subspace: 100 }, Method::HybridLsmr { weight, subspace: 100 }]
                    .map(|method| solved(&matrix, &noisy, method));
            let [error, error_of_lsmr] = [&one, &other].map(|found| distance(found, &x));
            println!(
                "{level} {weight}: {error:.5} and {error_of_lsmr:.5} after {} and {}",
                of_lsqr.iterations, of_lsmr.iterations
            );
            assert_eq!((of_lsqr.stop, of_lsmr.stop), (Stop::Regularised, Stop::Regularised));
            // The end of the history is true.
            let residual = norm(a.product(&other).unwrap().iter().zip(&noisy).map(|(y, b)| b - y));
            approx::assert_relative_eq!(of_lsmr.true_residual, residual, max_relative = 1e-10);
            approx::assert_relative_eq!(of_lsmr.residual, residual, max_relative = 1e-6);
            approx::assert_relative_eq!(
                of_lsmr.gradient.unwrap(),
                of_lsmr.gradient_history[of_lsmr.iterations],
                max_relative = 1e-4
            );
            assert!((error_of_lsmr - error).abs() < 0.08 * error, "{level} {weight}: {error_of_lsmr} {error}");
            let pairs = of_lsqr.gradient_history.iter().zip(&of_lsmr.gradient_history).skip(1);
            let [one, other] = [&of_lsqr, &of_lsmr].map(|report| report.weight.as_ref().unwrap());
            match weight {
                // It asks for the residual of the method's own answers.
                Discrepancy { noise } => {
                    assert!(other.iteration >= one.iteration && other.iteration <= one.iteration + 2);
                    approx::assert_relative_eq!(of_lsmr.relative_residual(), 1.01 * noise, max_relative = 1e-6);
                    continue;
                }
                LeastError => assert!(other.iteration <= one.iteration),
                _ => assert_eq!((one.iteration, &one.path), (other.iteration, &other.path)),
            }
            assert!(pairs.clone().all(|(of_lsqr, of_lsmr)| of_lsmr <= of_lsqr) && pairs.len() > 5);
        }
    }
}

/// Five pictures of 64 x 64 pixels: the head, smooth hills, grains, holes in a disc, bars.
fn pictures() -> Vec<(&'static str, Vec<f64>)> {
    let side = oracle::SIDE;
    let middle = (side as f64 - 1.0) / 2.0;
    let picture = |value: &dyn Fn(f64, f64) -> f64| -> Vec<f64> {
        (0..side * side)
            .map(|at| value(((at / side) as f64 - middle) / middle, (middle - (at % side) as f64) / middle))
            .collect()
    };
    let mut random = Random::new(3);
    let mut within = |least: f64, most: f64| least + (most - least) * random.uniform();
    let hills = [(0.2, 0.3, 0.25, 1.0), (-0.4, 0.1, 0.2, 0.7), (0.1, -0.5, 0.3, 0.8), (-0.3, -0.4, 0.1, 1.2)];
    let seeds: Vec<[f64; 3]> = (0..40).map(|_| [within(-0.9, 0.9), within(-0.9, 0.9), within(0.2, 1.0)]).collect();
    let holes: Vec<[f64; 3]> =
        (0..12).map(|_| [within(-0.55, 0.55), within(-0.55, 0.55), within(0.05, 0.15)]).collect();
    let apart = |x: f64, y: f64, p: &[f64; 3]| (x - p[0]).hypot(y - p[1]);
    let disc = |x: f64, y: f64| if x.hypot(y) < 0.9 { 1.0 } else { 0.0 };
    vec![
        ("head", oracle::head()),
        (
            "hills",
            picture(&|x, y| {
                let hill = |(a, b, s, h): &(f64, f64, f64, f64)| {
                    h * (-((x - a).powi(2) + (y - b).powi(2)) / (2.0 * s * s)).exp()
                };
                disc(x, y) * hills.iter().map(hill).sum::<f64>()
            }),
        ),
        (
            "grains",
            picture(&|x, y| {
                let nearest = seeds.iter().min_by(|p, q| apart(x, y, p).total_cmp(&apart(x, y, q)));
                disc(x, y) * nearest.map_or(0.0, |seed| seed[2])
            }),
        ),
        (
            "holes",
            picture(&|x, y| if holes.iter().any(|hole| apart(x, y, hole) < hole[2]) { 0.0 } else { disc(x, y) }),
        ),
        (
            "bars",
            picture(&|x, y| {
                let bar = (0..5).any(|k| (x + 0.5 - 0.25 * f64::from(k)).abs() < 0.04 && y.abs() < 0.4);
                let plate = x.abs() < 0.7 && y.abs() < 0.6;
                if bar {
                    1.0
                } else if plate {
                    0.5
                } else {
                    0.0
                }
            }),
        ),
    ]
}

/// The error of the answer with the best weight of damping: a sweep over weights, each solved to its end.
fn best_error(matrix: &Matrix<f64>, b: &[f64], x: &[f64]) -> f64 {
    let b = Vector::from_slice(matrix.device(), b).unwrap();
    // The best error between two weights, 2^(1/2) apart, is hardly less.
    let weights = (0..10).map(|k| 0.5 * 2_f64.powf(0.5 * f64::from(k)));
    let error = |damp: f64| {
        let stopping = Stopping::for_precision::<f64>().with_gradient_rtol(1e-5);
        let mut solver = Solver::new(matrix, Method::Lsqr { damp }, stopping).unwrap();
        let mut found = Vector::zeros(matrix.device(), matrix.cols()).unwrap();
        let report = solver.solve(&b, &mut found).unwrap();
        assert!(report.gradient.unwrap() < 1e-4 * report.gradient_history[0], "{report}");
        distance(&found.to_vec().unwrap(), x)
    };
    weights.map(error).fold(f64::INFINITY, f64::min)
}

/// The weight that is chosen without a level of noise gives an error within 10 % of that of the best weight, and the level is found.
#[test]
fn the_weight_is_chosen_well() {
    let a = oracle::matrix();
    let matrix = Matrix::with_transpose(&Device::host(), &a, Format::Csr).unwrap();
    for (name, x) in pictures() {
        let b = a.product(&x).unwrap();
        for noise in [0.01, 0.02, 0.05] {
            let noisy = oracle::noisy(&b, noise);
            let best = best_error(&matrix, &noisy, &x);
            let (found, report) = hybrid(&matrix, &noisy, WeightRule::LeastError);
            let error = distance(&found, &x);
            let weighted = distance(&hybrid(&matrix, &noisy, WeightRule::WeightedGcv).0, &x);
            let weight = report.weight.clone().unwrap();
            println!(
                "{name} {noise}: auto {:.3}, wgcv {:.3} of the best error {best:.4}; noise {:.4}; {report}",
                error / best,
                weighted / best,
                weight.noise.unwrap()
            );
            assert!(report.stop == Stop::Regularised && weight.stop == WeightStop::Settled, "{report}");
            assert!(error < 1.1 * best, "{name} {noise}: {error} for {best}");
            approx::assert_relative_eq!(weight.noise.unwrap(), noise, max_relative = 0.04);
        }
    }
}

/// A small problem with noise: a blur by a Gaussian, of 60 points.
fn blur<T: Real>() -> Csr<T> {
    Csr::from_rows(60, 50, |i, row| {
        let weight = |j: usize| (-0.5 * ((i as f64 * 50.0 / 60.0 - j as f64) / 2.5).powi(2)).exp();
        row.extend((0..50).filter(|j| weight(*j) > 1e-6).map(|j| (j as u32, T::from_f64(weight(j)))));
    })
    .unwrap()
}

/// A box that is blurred, with noise of these parts of its norm.
fn blurred<T: Real>(levels: [f64; 3]) -> Vec<Vec<T>> {
    let x = (0..50).map(|j| T::from_f64(if (15..30).contains(&j) { 1.0 } else { 0.2 }).to_f64());
    let clean = blur::<f64>().product(&x.collect::<Vec<_>>()).unwrap();
    let noise: Vec<f64> = common::noise::<f64>(60, 5);
    let noisy = |level: f64| {
        let factor = level * norm(clean.iter().copied()) / norm(noise.iter().copied());
        clean.iter().zip(&noise).map(|(b, e)| T::from_f64(b + factor * e)).collect()
    };
    levels.map(noisy).to_vec()
}

/// Every rule.
fn rules() -> [WeightRule; 7] {
    use WeightRule::{Discrepancy, Gcv, LCurve, LeastError, ModifiedGcv, Upre, WeightedGcv};
    [LeastError, WeightedGcv, Gcv, ModifiedGcv, LCurve, Discrepancy { noise: 0.02 }, Upre { noise: 0.02 }]
}

fn same_everywhere<T: Real>() {
    let a = blur::<T>();
    let rhs = blurred::<T>([0.02, 0.005, 0.0]);
    let solve = |device: &Device, method: Method, rhs: &[Vec<T>], check_every: usize| {
        let matrix = Matrix::with_transpose(device, &a, Format::Csr).unwrap();
        let stopping = Stopping::for_precision::<T>().with_check_every(check_every);
        let setup = Setup::new(method, stopping);
        let mut solver = Solver::with(&matrix, setup.with_columns(rhs.len())).unwrap();
        let columns: Vec<&[T]> = rhs.iter().map(|b| &b[..]).collect();
        let b = Columns::new(device, &columns).unwrap();
        let mut x = Columns::zeros(device, 50, rhs.len()).unwrap();
        let reports = solver.solve_many(&b, &mut x).unwrap();
        let told =
            reports.into_iter().map(|report| (report.stop, report.history, report.gradient_history, report.weight));
        x.to_vecs().unwrap().into_iter().zip(told).collect::<Vec<_>>()
    };
    let of_lsqr = rules().map(|weight| Method::HybridLsqr { weight, subspace: 40 });
    let of_lsmr = [WeightRule::LeastError, WeightRule::Gcv];
    let of_lsmr = of_lsmr.map(|weight| Method::HybridLsmr { weight, subspace: 40 });
    let methods: Vec<Method> = of_lsqr.into_iter().chain(of_lsmr).collect();
    common::each_case::<T>(|device| {
        for method in &methods {
            let wanted = solve(&common::reference::<T>(device), *method, &rhs, 1);
            assert!(solve(device, *method, &rhs, 16) == wanted, "{method:?} on {}", device.info().name);
        }
    });
    let host = Device::host();
    for method in methods {
        let wanted = solve(&host, method, &rhs, 1);
        for (c, (_, (stop, history, _, weight))) in wanted.iter().enumerate() {
            println!("{method} {c}: {stop} {} {}", history.len() - 1, weight.as_ref().unwrap());
        }
        // A look more or less changes nothing, nor do neighbours.
        assert!(solve(&host, method, &rhs, 7) == wanted, "{method:?}");
        for (b, wanted) in rhs.iter().zip(&wanted) {
            assert!(solve(&host, method, std::slice::from_ref(b), 3)[0] == *wanted, "{method:?}");
        }
    }
}

#[test]
fn hybrids_are_the_same_everywhere_f64() {
    same_everywhere::<f64>();
}

#[test]
fn hybrids_are_the_same_everywhere_f32() {
    same_everywhere::<f32>();
}

/// An answer from another start is the minimum of the distance from that start; a system in other units has the same answer; one that is
/// solved exactly, one without rows that count, and one that ends by its limits say so.
#[test]
fn weights_are_told_truly() {
    let device = Device::host();
    let a = blur::<f64>();
    let matrix = Matrix::with_transpose(&device, &a, Format::Csr).unwrap();
    let b: Vec<f64> = a.product(&common::noise::<f64>(50, 9)).unwrap();
    let (_, report) = hybrid(&matrix, &b, WeightRule::Discrepancy { noise: 1e-12 });
    println!("{report}");
    assert!(report.converged() && report.relative_residual() < 1e-5, "{report}");
    let noisy: Vec<f64> = b.iter().zip(common::noise::<f64>(60, 8)).map(|(b, e)| b + 0.05 * e).collect();
    let (x, report) = hybrid(&matrix, &noisy, WeightRule::WeightedGcv);
    let weight = report.weight.clone().unwrap();
    // Far from 1, where squares leave the range of sums.
    for units in [1e-160, 1e140] {
        let scaled = Csr::from_rows(60, 50, |i, row| {
            row.extend(a.row(i).0.iter().zip(a.row(i).1).map(|(j, v)| (*j, *v * units)));
        });
        let scaled = Matrix::with_transpose(&device, &scaled.unwrap(), Format::Csr).unwrap();
        let (there, told) = hybrid(&scaled, &noisy, WeightRule::WeightedGcv);
        let back: Vec<f64> = there.iter().map(|v| v * units).collect();
        assert!(distance(&back, &x) < 1e-6, "{units}: {told}");
        approx::assert_relative_eq!(told.weight.unwrap().damp, weight.damp * units, max_relative = 1e-6);
    }
    // A subspace that is too small.
    let method = Method::HybridLsqr { weight: WeightRule::LeastError, subspace: 2 };
    let mut solver = Solver::new(&matrix, method, Stopping::for_precision::<f64>()).unwrap();
    let rhs = Vector::from_slice(&device, &noisy).unwrap();
    let mut y = Vector::zeros(&device, 50).unwrap();
    let report = solver.solve(&rhs, &mut y).unwrap();
    assert_eq!((report.stop, report.iterations), (Stop::MaxIterations, 2));
    assert_eq!(report.weight.unwrap().stop, WeightStop::Limit);
    // Nothing to do, and nothing on the right.
    let report =
        solver.solve(&Vector::zeros(&device, 60).unwrap(), &mut Vector::zeros(&device, 50).unwrap()).unwrap();
    assert!(report.converged() && report.iterations == 0 && report.weight.is_none(), "{report}");
    for bad in ["discrepancy", "discrepancy=0", "discrepancy=nan", "upre=2", "gcv=1", "best", ""] {
        assert!(bad.parse::<WeightRule>().is_err(), "{bad}");
    }
    for rule in rules() {
        assert_eq!(rule.to_string().parse::<WeightRule>().unwrap(), rule);
    }
}

/// MRNSD and NNFCGLS on the test problem of IR Tools: its errors where the residual is 1.01 times the noise, and the best there are.
#[test]
fn nonnegative_methods_are_those_of_ir_tools() {
    let (a, x) = (oracle::matrix(), oracle::head());
    let b = a.product(&x).unwrap();
    let device = Device::host();
    let matrix = Matrix::with_transpose(&device, &a, Format::Csr).unwrap();
    let solve = |method: Method, level: f64, stopping: Stopping| -> (f64, Report) {
        let b = Vector::from_slice(&device, &oracle::noisy(&b, level)).unwrap();
        let mut found = Vector::zeros(&device, a.cols()).unwrap();
        let report = Solver::new(&matrix, method, stopping).unwrap().solve(&b, &mut found).unwrap();
        let found = found.to_vec().unwrap();
        assert!(found.iter().all(|v| *v >= 0.0), "{report}");
        (distance(&found, &x), report)
    };
    let flexible = Method::Nnfcgls { restart: 30 };
    // Iterations and error at the level of the noise, then the least error and its iteration.
    for (method, level, iterations, wanted, best) in [
        (Method::Mrnsd, 0.01, 137, 0.05272, (500, 0.03872)),
        (flexible, 0.01, 30, 0.05192, (93, 0.03765)),
        (Method::Mrnsd, 0.05, 28, 0.15846, (65, 0.13648)),
        (flexible, 0.05, 12, 0.16177, (24, 0.13628)),
    ] {
        let stop = Stopping::for_precision::<f64>().with_rtol(1.01 * level).with_max_iterations(500);
        let (error, report) = solve(method, level, stop);
        println!("{report}: error {error:.5}, IR Tools {wanted} after {iterations}");
        assert_eq!((report.stop, report.iterations), (Stop::Converged, iterations), "{report}");
        assert!((error - wanted).abs() < 0.01 * wanted, "{error} for {wanted}");
        let (error, report) = solve(method, level, Stopping::after(best.0));
        println!("{report}: error {error:.5}, IR Tools at its best {}", best.1);
        assert!((error - best.1).abs() < 0.01 * best.1, "{error} for {}", best.1);
    }
}

/// SART with subsets of angles comes as near to the image as fast as the recurrence of its page in NumPy, and much faster than SIRT.
#[test]
fn sart_with_subsets_of_angles_is_faster_than_sirt() {
    let (a, x) = (oracle::matrix(), oracle::head());
    let b = a.product(&x).unwrap();
    let device = Device::host();
    let storage = Storage::default().with_transposed(Transposed::Copy);
    let solve = |subsets: usize, omega: f64, level: f64, iterations: usize| {
        let operator = Subsets::of_matrix(&device, &a, storage, subsets, oracle::RAYS).unwrap();
        let bounds = Regularization::none().with_lower(0.0);
        let stopping = Stopping::after(iterations).with_answer(Answer::Last);
        let setup = Setup::new(Method::Sart { omega }, stopping).with_regularizations(&[bounds]);
        let b = Vector::from_slice(&device, &oracle::noisy(&b, level)).unwrap();
        let mut found = Vector::zeros(&device, a.cols()).unwrap();
        let report = Solver::with(operator.shared(), setup).unwrap().solve(&b, &mut found).unwrap();
        let error = distance(&found.to_vec().unwrap(), &x);
        println!("{subsets} subsets, omega {omega}, noise {level}: error {error:.5}; {report}");
        error
    };
    for (subsets, omega, level, iterations, wanted) in [
        (10, 1.0, 0.01, 52, 0.07441),
        (30, 1.0, 0.01, 60, 0.04028),
        (90, 1.0, 0.01, 39, 0.03966),
        (30, 1.0, 0.05, 18, 0.15088),
        (90, 0.3, 0.05, 24, 0.14942),
    ] {
        let error = solve(subsets, omega, level, iterations);
        assert!((error - wanted).abs() < 0.01 * wanted, "{error} for {wanted}");
    }
    // All rows at once: SIRT.
    assert!(solve(1, 1.0, 0.01, 300) > 2.0 * solve(30, 1.0, 0.01, 60));
}

/// Solves on the host from 0, with a rule, and as many iterations as its answer has had without one.
fn ruled(
    setup: &dyn Fn(Stopping) -> Setup<f64>,
    operator: &SharedOperator<f64>,
    b: &[f64],
    rule: StopRule,
) -> (Vec<f64>, Report) {
    let solve = |stopping: Stopping| {
        let mut solver = Solver::with(operator.clone(), setup(stopping)).unwrap();
        let b = Vector::from_slice(operator.device(), b).unwrap();
        let mut again = || {
            let mut x = Vector::zeros(operator.device(), operator.cols()).unwrap();
            let report = solver.solve(&b, &mut x).unwrap();
            (x.to_vec().unwrap(), report)
        };
        let first = again();
        let second = again();
        assert!(first.0 == second.0 && first.1.rule == second.1.rule, "the second solve is another one");
        second
    };
    let (x, report) = solve(Stopping::after(2000).with_rule(rule));
    let course = report.rule.clone().unwrap();
    println!("{report}");
    assert_eq!(
        (report.stop, report.iterations, report.rule.as_ref().unwrap().rule),
        (Stop::Semiconverged, course.best, rule)
    );
    let (wanted, plain) = solve(Stopping::after(course.best).with_answer(Answer::Last));
    assert!(x == wanted && report.true_residual == plain.true_residual, "{report}: {plain}");
    assert!(plain.rule.is_none() && report.history.len() == course.best + 1);
    (x, report)
}

/// NCP along the angles ends every method near the discrepancy principle, which knows the noise.
#[test]
fn residuals_like_white_noise_end_methods() {
    let (a, x) = (oracle::matrix(), oracle::head());
    let b = a.product(&x).unwrap();
    let device = Device::host();
    let matrix: SharedOperator<f64> = (&Matrix::with_transpose(&device, &a, Format::Csr).unwrap()).into();
    let storage = Storage::default().with_transposed(Transposed::Copy);
    let subsets = Subsets::of_matrix(&device, &a, storage, 10, oracle::RAYS).unwrap().shared();
    let free = Regularization::none();
    let within = Regularization::none().with_lower(0.0).with_upper(1.0);
    let above = Regularization::none().with_lower(0.0);
    let ncp = StopRule::Ncp { length: 90, apart: oracle::RAYS };
    let errors = |level: f64, method: Method, terms: &Regularization| {
        let operator = if matches!(method, Method::Sart { .. }) { &subsets } else { &matrix };
        let setup = |stopping: Stopping| {
            let setup = Setup::new(method, stopping);
            if method.takes_regularizations() {
                setup.with_regularizations(std::slice::from_ref(terms))
            } else {
                setup
            }
        };
        let noisy = oracle::noisy(&b, level);
        let (found, report) = ruled(&setup, operator, &noisy, ncp);
        // The discrepancy principle.
        let noise = distance(&noisy, &b) * norm(b.iter().copied()) / norm(noisy.iter().copied());
        let stopping = Stopping::after(0).with_rtol(1.01 * noise).with_max_iterations(2000);
        let rhs = Vector::from_slice(&device, &noisy).unwrap();
        let mut other = Vector::zeros(&device, a.cols()).unwrap();
        let known = Solver::with(operator.clone(), setup(stopping)).unwrap().solve(&rhs, &mut other).unwrap();
        assert_eq!(known.stop, Stop::Converged, "{known}");
        let [error, of_known] = [found, other.to_vec().unwrap()].map(|found| distance(&found, &x));
        println!(
            "{level} {method}: error {error:.5} after {}; discrepancy {of_known:.5} after {}",
            report.iterations, known.iterations
        );
        assert!(error < 1.25 * of_known, "{error} {of_known}");
        (error, report.iterations)
    };
    // Iterations and errors of the same rule in NumPy.
    for (level, method, iterations, wanted) in [
        (0.01, Method::Sirt { omega: 1.9 }, 152, 0.1872),
        (0.05, Method::Sirt { omega: 1.9 }, 64, 0.2790),
        (0.01, Method::Cgls { damp: 0.0 }, 15, 0.1886),
        (0.05, Method::Cgls { damp: 0.0 }, 10, 0.2660),
    ] {
        let (error, found) = errors(level, method, &free);
        assert!(found.abs_diff(iterations) <= 4 && (error - wanted).abs() < 0.004, "{method}: {found} {error}");
    }
    for level in [0.01, 0.05] {
        for (method, terms) in [
            (Method::Cgnr, &free),
            (Method::Fista, &within),
            (Method::Sart { omega: 1.0 }, &above),
            (Method::Mrnsd, &above),
            (Method::Nnfcgls { restart: 30 }, &above),
        ] {
            errors(level, method, terms);
        }
    }
    // Along the detector, the first minimum of SIRT is that of AIR Tools II, which stops after 31 iterations (error 0.31704, with the weights of Cimmino).
    let along = StopRule::Ncp { length: oracle::RAYS, apart: 1 };
    let sirt = |stopping| Setup::new(Method::Sirt { omega: 1.9 }, stopping);
    let (_, report) = ruled(&sirt, &matrix, &oracle::noisy(&b, 0.01), along);
    let points = report.rule.unwrap().points;
    let least = points.iter().min_by(|one, other| one.value.total_cmp(&other.value)).unwrap();
    assert!(least.iteration.abs_diff(30) <= 1, "{least:?}");
    // From NumPy.
    let at_31 = points.iter().find(|point| point.iteration == 31).unwrap();
    approx::assert_relative_eq!(at_31.value, 0.6865676, max_relative = 1e-6);
}

/// The monotone error rule, from norms alone, is that of the vectors of CGLS.
#[test]
fn errors_fall_up_to_the_monotone_error_rule() {
    let (a, x) = (oracle::matrix(), oracle::head());
    let b = a.product(&x).unwrap();
    let matrix: SharedOperator<f64> = (&Matrix::with_transpose(&Device::host(), &a, Format::Csr).unwrap()).into();
    let transposed = a.transpose();
    let dot = |u: &[f64], v: &[f64]| u.iter().zip(v).map(|(u, v)| u * v).sum::<f64>();
    for (level, iterations) in [(0.01, 18), (0.05, 7)] {
        let noisy = oracle::noisy(&b, level);
        let noise = level * norm(b.iter().copied()) / norm(noisy.iter().copied());
        // CGLS with w, and the bounds of its steps.
        let (mut r, mut s) = (noisy.clone(), transposed.product(&noisy).unwrap());
        let (mut p, mut w, mut y, mut gamma) = (s.clone(), r.clone(), vec![0.0; a.cols()], dot(&s, &s));
        let (mut bounds, mut errors) = (Vec::new(), vec![1.0]);
        for _ in 0..iterations + 2 {
            let q = a.product(&p).unwrap();
            let alpha = gamma / dot(&q, &q);
            let before = dot(&w, &r);
            r.iter_mut().zip(&q).for_each(|(r, q)| *r -= alpha * q);
            y.iter_mut().zip(&p).for_each(|(y, p)| *y += alpha * p);
            bounds.push((before + dot(&w, &r)) / (2.0 * norm(w.iter().copied())));
            errors.push(distance(&y, &x));
            s = transposed.product(&r).unwrap();
            let beta = dot(&s, &s) / gamma;
            gamma = dot(&s, &s);
            p.iter_mut().zip(&s).for_each(|(p, s)| *p = s + beta * *p);
            w.iter_mut().zip(&r).for_each(|(w, r)| *w = r + beta * *w);
        }
        let rule = StopRule::MonotoneError { noise };
        for method in [Method::Cgls { damp: 0.0 }, Method::Lsqr { damp: 0.0 }, Method::Cgnr] {
            let (found, report) = ruled(&|stopping| Setup::new(method, stopping), &matrix, &noisy, rule);
            let course = report.rule.unwrap();
            assert_eq!((report.iterations, course.points.len()), (iterations, iterations + 1));
            for (point, wanted) in course.points.iter().zip(&bounds) {
                // Later, gradients are no longer orthogonal to those long before, and runs with other rounding are apart by some percent.
                if point.iteration < 12 {
                    approx::assert_relative_eq!(point.value, *wanted, max_relative = 1e-6);
                }
            }
            approx::assert_relative_eq!(distance(&found, &x), errors[iterations], max_relative = 0.02);
        }
        assert!(errors[..=iterations].is_sorted_by(|one, next| one > next), "{errors:?}");
    }
}

/// Rules say the same on every device, with every work-group size, for one and for several right-hand sides, however often the host looks.
fn rules_say_the_same_everywhere<T: Real>() {
    let a = blur::<T>();
    let rhs = blurred::<T>([0.02, 0.3, 0.005]);
    let solve = |device: &Device, (method, rule): (Method, StopRule), rhs: &[Vec<T>], check_every: usize| {
        let storage = Storage::default().with_transposed(Transposed::Copy);
        let operator: SharedOperator<T> = match method {
            Method::Sart { .. } => Subsets::of_matrix(device, &a, storage, 4, 1).unwrap().shared(),
            _ => (&Matrix::with_transpose(device, &a, Format::Csr).unwrap()).into(),
        };
        let stopping = Stopping::after(60).with_check_every(check_every).with_rule(rule).with_answer(Answer::Last);
        let setup = Setup::new(method, stopping).with_columns(rhs.len());
        let columns: Vec<&[T]> = rhs.iter().map(|b| &b[..]).collect();
        let b = Columns::new(device, &columns).unwrap();
        let mut x = Columns::zeros(device, 50, rhs.len()).unwrap();
        let reports = Solver::with(operator, setup).unwrap().solve_many(&b, &mut x).unwrap();
        let told = reports.into_iter().map(|report| (report.stop, report.history, report.rule));
        x.to_vecs().unwrap().into_iter().zip(told).collect::<Vec<_>>()
    };
    let ncp = StopRule::Ncp { length: 30, apart: 2 };
    let monotone = StopRule::MonotoneError { noise: 0.02 };
    let (cgls, sirt, sart) = (Method::Cgls { damp: 0.0 }, Method::Sirt { omega: 1.5 }, Method::Sart { omega: 1.0 });
    let (mrnsd, nnfcgls, lsqr) = (Method::Mrnsd, Method::Nnfcgls { restart: 8 }, Method::Lsqr { damp: 0.0 });
    let with_ncp = [cgls, Method::Cgnr, Method::Fista, sirt, sart, mrnsd, nnfcgls].map(|method| (method, ncp));
    let cases = [&with_ncp[..], &[cgls, Method::Cgnr, lsqr].map(|method| (method, monotone))].concat();
    let host = Device::host();
    let mut ends = Vec::new();
    for case in cases.iter().copied() {
        let wanted = solve(&host, case, &rhs, 16);
        for (b, wanted) in rhs.iter().zip(&wanted) {
            let (_, (stop, history, course)) = wanted;
            println!("{} {stop} {} {}", case.0, history.len() - 1, course.as_ref().unwrap());
            ends.push((*stop, history.len() - 1));
            // Neighbours change nothing.
            assert!(solve(&host, case, std::slice::from_ref(b), 1)[0] == *wanted, "{}", case.0);
        }
    }
    assert!(ends.iter().filter(|(stop, _)| *stop == Stop::Semiconverged).count() > 20, "{ends:?}");
    common::each_case::<T>(|device| {
        for case in cases.iter().copied() {
            let wanted = solve(&common::reference::<T>(device), case, &rhs, 1);
            assert!(solve(device, case, &rhs, 16) == wanted, "{} on {}", case.0, device.info().name);
            assert!(solve(device, case, &rhs[..1], 3)[0] == wanted[0], "{} on {}", case.0, device.info().name);
        }
    });
}

#[test]
fn rules_say_the_same_everywhere_f64() {
    rules_say_the_same_everywhere::<f64>();
}

#[test]
fn rules_say_the_same_everywhere_f32() {
    rules_say_the_same_everywhere::<f32>();
}

/// The answer is that of the rule, also where the start had the smaller residual; a solve that ends by something else has its last iterate.
#[test]
fn rules_decide_alone() {
    let (a, x) = (oracle::matrix(), oracle::head());
    let b = oracle::noisy(&a.product(&x).unwrap(), 0.05);
    let device = Device::host();
    let matrix = Matrix::with_transpose(&device, &a, Format::Csr).unwrap();
    let rhs = Vector::from_slice(&device, &b).unwrap();
    // A picture of the noise.
    let mut noisy = Vector::zeros(&device, a.cols()).unwrap();
    let _report = Solver::new(&matrix, Method::Cgls { damp: 0.0 }, Stopping::after(80))
        .unwrap()
        .solve(&rhs, &mut noisy)
        .unwrap();
    let rule = StopRule::Ncp { length: 90, apart: oracle::RAYS };
    let solve = |stopping: Stopping| {
        let mut found = noisy.try_clone().unwrap();
        let within = [Regularization::none().with_lower(0.0).with_upper(1.0)];
        let setup = Setup::new(Method::Sirt { omega: 1.9 }, stopping).with_regularizations(&within);
        let report = Solver::with(&matrix, setup).unwrap().solve(&rhs, &mut found).unwrap();
        println!("{report}: error {:.4}", distance(&found.to_vec().unwrap(), &x));
        (found.to_vec().unwrap(), report)
    };
    let (found, report) = solve(Stopping::after(1000).with_rule(rule));
    let best = report.rule.as_ref().unwrap().best;
    assert_eq!((report.stop, report.iterations), (Stop::Semiconverged, best));
    assert!(found == solve(Stopping::after(best).with_answer(Answer::Last)).0);
    let (found, report) = solve(Stopping::after(best + 1).with_rule(rule).with_answer(Answer::Last));
    assert_eq!((report.stop, report.iterations), (Stop::MaxIterations, best + 1));
    assert!(found == solve(Stopping::after(best + 1).with_answer(Answer::Last)).0);
}

/// A system that is scaled by powers of two has the course of one that is not, in units of its own; what cannot be is refused.
#[test]
fn rules_follow_the_scale_and_refuse_what_cannot_be() {
    let (device, a) = (Device::host(), blur::<f64>());
    let b: Vec<f64> =
        common::noise::<f64>(60, 3).iter().enumerate().map(|(i, e)| (i as f64 / 9.0).sin() + 0.05 * e).collect();
    let solve = |exponents: [i32; 2], rule: StopRule| {
        let [of_a, of_b] = exponents.map(|exponent| 2.0_f64.powi(exponent));
        let values = a.values().iter().map(|v| v * of_a).collect();
        let scaled = Csr::new(60, 50, a.offsets().to_vec(), a.indices().to_vec(), values).unwrap();
        let matrix = Matrix::with_transpose(&device, &scaled, Format::Csr).unwrap();
        let stopping = Stopping::after(40).with_rule(rule);
        let b: Vec<f64> = b.iter().map(|b| b * of_b).collect();
        let mut x = Vector::zeros(&device, 50).unwrap();
        let mut solver = Solver::new(&matrix, Method::Cgls { damp: 0.0 }, stopping).unwrap();
        let report = solver.solve(&Vector::from_slice(&device, &b).unwrap(), &mut x).unwrap();
        let course = report.rule.unwrap();
        assert_eq!(report.stop, Stop::Semiconverged);
        (course.best, course.points.iter().map(|point| point.value).collect::<Vec<_>>())
    };
    let (ncp, monotone) = (StopRule::Ncp { length: 60, apart: 1 }, StopRule::MonotoneError { noise: 0.05 });
    for exponents in [[-300, 7], [200, -400]] {
        assert_eq!(solve(exponents, ncp), solve([0, 0], ncp));
        let (best, values) = solve(exponents, monotone);
        let back: Vec<f64> = values.iter().map(|v| v * 2.0_f64.powi(-exponents[1])).collect();
        assert_eq!((best, back), solve([0, 0], monotone));
    }
    let matrix = Matrix::with_transpose(&device, &a, Format::Csr).unwrap();
    let refused = |method: Method, rule: StopRule, terms: &[Regularization]| {
        let setup = Setup::new(method, Stopping::after(5).with_rule(rule)).with_regularizations(terms);
        let error = Solver::<f64>::with(&matrix, setup).unwrap_err().to_string();
        println!("{error}");
        assert!(error.contains("rule"), "{error}");
    };
    let damped = Regularization::none().with_tikhonov(0.1);
    refused(Method::Lsqr { damp: 0.0 }, ncp, &[]);
    refused(Method::Lsmr { damp: 0.0 }, monotone, &[]);
    refused(Method::Cgls { damp: 0.1 }, monotone, &[]);
    refused(Method::Pdhg, ncp, &[]);
    refused(Method::Cgnr, monotone, std::slice::from_ref(&damped));
    refused(Method::Cgnr, StopRule::Ncp { length: 7, apart: 1 }, &[]);
    refused(Method::Cgnr, StopRule::MonotoneError { noise: 1.5 }, &[]);
    let setup = Setup::new(Method::Cgnr, Stopping::after(5).with_rule(monotone));
    let mut solver = Solver::<f64>::with(&matrix, setup).unwrap();
    assert!(solver.set_regularizations(&[damped]).is_err() && solver.set_regularizations(&[]).is_ok());
}
