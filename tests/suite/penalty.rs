//! Penalties and operations of a user's own.

use std::sync::{Arc, Mutex};

use crate::common::penalty::Edges;
use crate::common::problems::{Essence, essence};
use crate::common::{self, noise};
use residuum::operator::{Diagonal, LinearOperator, LinearOperatorExt, SharedOperator};
use residuum::sparse::gallery;
use residuum::{
    Answer, BackendKind, Columns, Csr, Device, Error, Format, Matrix, Method, Penalty, Pointwise, Precision, Real,
    Regularization, Result, Setup, Solver, Stop, StopRule, Stopping, Vector, measure,
};

const SHAPE: [usize; 2] = [9, 7];
const PIXELS: usize = SHAPE[0] * SHAPE[1];
/// Weight and edge.
const TERMS: [f64; 2] = [0.3, 0.05];

/// Fewer readings than pixels.
fn system<T: Real>() -> (Csr<T>, Vec<T>) {
    (gallery::random::<T>(50, PIXELS, 400, 3).unwrap(), noise(50, 5))
}

fn solved<T: Real>(device: &Device, penalty: Edges<T>, b: &[&[T]], stopping: Stopping) -> Vec<Essence> {
    let a = Matrix::with_transpose(device, &system::<T>().0, Format::Csr).unwrap();
    let setup = Setup::new(Method::Cgnr, stopping).with_columns(b.len()).with_penalty(penalty);
    let mut x = Columns::zeros(device, PIXELS, b.len()).unwrap();
    let reports = Solver::with(&a, setup).unwrap().solve_many(&Columns::new(device, b).unwrap(), &mut x);
    let x = x.to_vecs().unwrap();
    x.iter().zip(&reports.unwrap()).map(|(x, report)| essence(x, report)).collect()
}

/// Every device has the same bits, at every size of a work-group and with any number of columns; with a curvature and without.
fn the_same_everywhere<T: Real>() {
    let (_, b) = system::<T>();
    let other = noise::<T>(50, 6);
    for curved in [true, false] {
        let stopping = Stopping::after(60).with_gradient_rtol(T::EPSILON);
        common::each_case::<T>(|device| {
            let solve = |device: &Device, b: &[&[T]]| {
                let penalty = Edges::new(device, SHAPE, TERMS, b.len()).with_curvature(curved);
                solved(device, penalty, b, stopping.clone())
            };
            let wanted = solve(&common::reference::<T>(device), &[&b]);
            assert!(wanted[0].1 > 20, "{} iterations", wanted[0].1);
            assert_eq!(solve(device, &[&b])[0], wanted[0], "{} {}", device.info().name, device.tuning());
            // Launches for two columns are the same without a curvature.
            if curved {
                assert_eq!(solve(device, &[&other, &b])[1], wanted[0], "two columns, {}", device.info().name);
            }
        });
    }
}

#[test]
fn penalties_are_the_same_everywhere_f32() {
    the_same_everywhere::<f32>();
}

#[test]
fn penalties_are_the_same_everywhere_f64() {
    the_same_everywhere::<f64>();
}

/// A user's total variation has the minimum of the library's, with a curvature and without, in any units.
#[test]
fn minima_are_those_of_the_library() {
    let (a, b) = system::<f64>();
    let host = Device::host();
    let stopping = Stopping::for_precision::<f64>().with_rtol(0.0).with_gradient_rtol(1e-12);
    let matrix = Matrix::with_transpose(&host, &a, Format::Csr).unwrap();
    let b = Vector::from_slice(&host, &b).unwrap();
    let [variation, epsilon] = TERMS;
    let ours = Regularization::none().with_variation(variation).with_epsilon(epsilon).with_width(SHAPE[0]);
    let mut wanted = Vector::zeros(&host, PIXELS).unwrap();
    let report = common::cgnr(&matrix, &[ours], stopping.clone()).unwrap().solve(&b, &mut wanted).unwrap();
    assert_eq!(report.stop, Stop::LeastSquares, "{report}");
    let wanted = wanted.to_vec().unwrap();
    for curved in [true, false] {
        // Units in which f64 has to scale both.
        for [of_a, of_b] in [[0, 0], [-600, -200], [450, 100]] {
            let [of_a, of_b] = [of_a, of_b].map(|k| 2.0_f64.powi(k));
            let scaled = Csr::from_rows(a.rows(), a.cols(), |i, row| {
                let (columns, values) = a.row(i);
                row.extend(columns.iter().zip(values).map(|(j, v)| (*j, v * of_a)));
            });
            let scaled = scaled.unwrap();
            let matrix = Matrix::with_transpose(&host, &scaled, Format::Csr).unwrap();
            let mut b = b.try_clone().unwrap();
            b.scale(of_b).unwrap();
            // x is of_b / of_a as large, and all terms are of_b² as large.
            let unit = of_b / of_a;
            let penalty = Edges::new(&host, SHAPE, [TERMS[0] * of_b * of_a, TERMS[1] * unit], 1);
            let setup = Setup::new(Method::Cgnr, stopping.clone()).with_penalty(penalty.with_curvature(curved));
            let by_norms = Diagonal::inverse_of_norms(&host, &scaled).unwrap();
            let mut preconditioned = setup.clone().with_preconditioner(by_norms);
            preconditioned.stopping.gradient_rtol = 1e-10;
            // Secants promise no descent, and with these terms they go on and on in the units of `y`.
            let preconditioned = curved.then_some((preconditioned, 1e-7));
            for (setup, off) in [(setup, 1e-9)].into_iter().chain(preconditioned) {
                let words = format!("curved {curved}, {of_a:e} {of_b:e}, {setup:?}");
                let mut x = Vector::zeros(&host, PIXELS).unwrap();
                let report = Solver::with(&matrix, setup).unwrap().solve(&b, &mut x).unwrap();
                let x: Vec<f64> = x.to_vec().unwrap().iter().map(|v| v / unit).collect();
                let apart = common::distance(&x, &wanted);
                println!("{words}: {report}, apart {apart:.1e}");
                assert_eq!(report.stop, Stop::LeastSquares, "{words}: {report}");
                assert!(apart < off, "{words}: {apart:e}");
            }
        }
    }
}

/// A preconditioner from the right leaves the minimum and saves iterations; the bits are the same on every device. `M` is a diagonal, and
/// a square matrix that is not symmetric.
#[test]
fn preconditioners_leave_the_minimum_and_save_iterations() {
    let (a, b) = system::<f64>();
    // Pixels that the readings see by very different weights.
    let sizes: Vec<f64> = (0..PIXELS).map(|j| 10f64.powf(f64::from(j as u32 % 13) / 6.0 - 1.0)).collect();
    let a = a.scaled(&vec![1.0; a.rows()], &sizes).unwrap();
    let stopping =
        Stopping::for_precision::<f64>().with_rtol(0.0).with_gradient_rtol(1e-10).with_max_iterations(20_000);
    for curved in [true, false] {
        let solve = |device: &Device, preconditioner: Option<SharedOperator<f64>>| {
            let matrix = Matrix::with_transpose(device, &a, Format::Csr).unwrap();
            let penalty = Edges::new(device, SHAPE, [0.05, 0.5], 1).with_curvature(curved);
            let mut setup = Setup::new(Method::Cgnr, stopping.clone()).with_penalty(penalty);
            setup.preconditioner = preconditioner;
            let mut x = Vector::filled(device, PIXELS, 0.25).unwrap();
            let mut solver = Solver::with(&matrix, setup).unwrap();
            let report = solver.solve(&Vector::from_slice(device, &b).unwrap(), &mut x).unwrap();
            (x.to_vec().unwrap(), report)
        };
        let (wanted, plain) = solve(&Device::host(), None);
        assert_eq!(plain.stop, Stop::LeastSquares, "{plain}");
        let mut first: [Option<Essence>; 2] = [None, None];
        for device in common::devices_in(Precision::Double) {
            let by_norms = Diagonal::inverse_of_norms(&device, &a).unwrap().shared();
            let slanted = Csr::from_rows(PIXELS, PIXELS, |i, row| {
                row.extend((i > 0).then(|| (i as u32 - 1, 0.3)));
                row.push((i as u32, 1.0));
            });
            let slanted = Matrix::with_transpose(&device, &slanted.unwrap(), Format::Csr).unwrap();
            let slanted = by_norms.clone().times(SharedOperator::from(slanted)).unwrap().shared();
            for (m, first) in [by_norms, slanted].into_iter().zip(&mut first) {
                let (x, report) = solve(&device, Some(m));
                let apart = common::distance(&x, &wanted);
                println!("curved {curved}: {report}, plain {}, apart {apart:.1e}", plain.iterations);
                assert_eq!(report.stop, Stop::LeastSquares, "{report}");
                assert!(apart < 1e-8, "curved {curved}: {apart:e}");
                assert!(2 * report.iterations < plain.iterations, "{report}, plain {plain}");
                // The gradient is that of both terms.
                let gradient = report.gradient.unwrap();
                assert!(gradient < 1e-9 * report.gradient_history[0], "{gradient:e}");
                let found = essence(&x, &report);
                assert_eq!(first.get_or_insert_with(|| found.clone()), &found, "{}", device.info().name);
            }
        }
    }
}

/// The library's regularizations beside a preconditioner: the minimum is that without one, in fewer iterations, the bits are the same on every
/// device, and others may take their place.
#[test]
fn corrections_stand_beside_a_preconditioner() {
    let (a, b) = system::<f64>();
    let sizes: Vec<f64> = (0..PIXELS).map(|j| 10f64.powf(f64::from(j as u32 % 13) / 6.0 - 1.0)).collect();
    let a = a.scaled(&vec![1.0; a.rows()], &sizes).unwrap();
    let stopping =
        Stopping::for_precision::<f64>().with_rtol(0.0).with_gradient_rtol(1e-10).with_max_iterations(20_000);
    let (none, width) = (Regularization::none(), SHAPE[0]);
    let terms = [
        none.clone().with_tikhonov(0.01),
        none.clone().with_smooth(0.02).with_width(width),
        none.clone().with_variation(0.05).with_epsilon(0.5).with_tikhonov(1e-3).with_width(width),
        // The paper's x_i <= 0, and the other side.
        none.with_smooth(0.01).with_bound_weight(0.3).with_lower(-0.05).with_upper(0.0).with_width(width),
    ];
    let set_up = |device: &Device, term: &Regularization, preconditioner: Option<SharedOperator<f64>>| {
        let matrix = Matrix::with_transpose(device, &a, Format::Csr).unwrap();
        let mut setup = Setup::new(Method::Cgnr, stopping.clone()).with_regularizations(std::slice::from_ref(term));
        setup.preconditioner = preconditioner;
        Solver::with(&matrix, setup).unwrap()
    };
    let solve = |device: &Device, solver: &mut Solver<f64>| {
        let mut x = Vector::filled(device, PIXELS, 0.25).unwrap();
        let report = solver.solve(&Vector::from_slice(device, &b).unwrap(), &mut x).unwrap();
        (x.to_vec().unwrap(), report)
    };
    let mut first: Vec<Option<Essence>> = vec![None; terms.len()];
    for device in common::devices_in(Precision::Double) {
        let by_norms = Diagonal::inverse_of_norms(&device, &a).unwrap().shared();
        let mut changed = set_up(&device, &terms[0], Some(by_norms.clone()));
        for (term, first) in terms.iter().zip(&mut first) {
            let (wanted, plain) = solve(&device, &mut set_up(&device, term, None));
            let (x, report) = solve(&device, &mut set_up(&device, term, Some(by_norms.clone())));
            let apart = common::distance(&x, &wanted);
            println!("{term:?}: {report}, plain {}, apart {apart:.1e}", plain.iterations);
            assert_eq!((plain.stop, report.stop), (Stop::LeastSquares, Stop::LeastSquares), "{plain} {report}");
            assert!(apart < 1e-7, "{apart:e}");
            assert!(report.iterations < plain.iterations, "{report}, plain {plain}");
            let found = essence(&x, &report);
            assert_eq!(first.get_or_insert_with(|| found.clone()), &found, "{}", device.info().name);
            changed.set_regularizations(std::slice::from_ref(term)).unwrap();
            let (x, report) = solve(&device, &mut changed);
            assert_eq!(essence(&x, &report), found);
        }
        let wrong = Regularization::none().with_smooth(1.0).with_width(SHAPE[0] + 1);
        assert!(matches!(changed.set_regularizations(&[wrong]), Err(Error::Option { name: "width", .. })));
    }
}

/// A few iterations with a preconditioner are better than their start, although their residual may be larger.
#[test]
fn few_preconditioned_iterations_are_kept() {
    let (a, b) = system::<f64>();
    let device = Device::host();
    let matrix = Matrix::with_transpose(&device, &a, Format::Csr).unwrap();
    let rhs = Vector::from_slice(&device, &b).unwrap();
    // The start explains the readings, and nothing of the penalty.
    let mut start = Vector::zeros(&device, PIXELS).unwrap();
    let mut plain = Solver::new(&matrix, Method::Cgls { damp: 0.0 }, Stopping::after(40)).unwrap();
    assert_eq!(plain.solve(&rhs, &mut start).unwrap().iterations, 40);
    let objective = |x: &[f64]| {
        let misfit: f64 = a.product(x).unwrap().iter().zip(&b).map(|(y, b)| (b - y) * (b - y)).sum();
        let size = |p: usize| {
            let [i, j] = [p / SHAPE[0], p % SHAPE[0]];
            let across = if j + 1 < SHAPE[0] { x[p + 1] - x[p] } else { 0.0 };
            let down = if i + 1 < SHAPE[1] { x[p + SHAPE[0]] - x[p] } else { 0.0 };
            across.hypot(down).hypot(TERMS[1])
        };
        misfit / 2.0 + 3.0 * (0..PIXELS).map(size).sum::<f64>()
    };
    let setup = Setup::new(Method::Cgnr, Stopping::after(4))
        .with_penalty(Edges::new(&device, SHAPE, [3.0, TERMS[1]], 1))
        .with_preconditioner(Diagonal::inverse_of_norms(&device, &a).unwrap());
    let mut x = start.try_clone().unwrap();
    let report = Solver::with(&matrix, setup).unwrap().solve(&rhs, &mut x).unwrap();
    let [before, after] = [start, x].map(|x| objective(&x.to_vec().unwrap()));
    println!("{before} {after} {report}");
    assert_eq!((report.stop, report.iterations), (Stop::MaxIterations, 4));
    assert!(after < 0.9 * before && report.true_residual > 0.0, "{before} {after}");
}

/// A run that goes on past the precision of its numbers ends by itself at the minimum.
#[test]
fn runs_past_the_precision_end_by_themselves() {
    for curved in [true, false] {
        for device in common::devices() {
            let (a, b) = system::<f32>();
            let a = Matrix::with_transpose(&device, &a, Format::Csr).unwrap();
            let stopping = Stopping::for_precision::<f32>()
                .with_rtol(0.0)
                .with_gradient_rtol(f32::EPSILON.into())
                .with_max_iterations(20_000);
            let penalty = Edges::new(&device, SHAPE, TERMS, 1).with_curvature(curved);
            let setup = Setup::new(Method::Cgnr, stopping).with_penalty(penalty);
            let mut x = Vector::zeros(&device, PIXELS).unwrap();
            let report =
                Solver::with(&a, setup).unwrap().solve(&Vector::from_slice(&device, &b).unwrap(), &mut x).unwrap();
            println!("{report}, gradient {:?}", report.gradient);
            assert!(report.iterations < 20_000, "{report}");
            let gradient = report.gradient.unwrap();
            assert!(
                gradient < 1e-5 * report.gradient_history[0],
                "{gradient:e} of {:e}",
                report.gradient_history[0]
            );
        }
    }
}

/// A program that keeps its penalty gives it another weight between solves; nothing is allocated.
#[test]
fn a_kept_penalty_changes_between_solves() {
    if common::ran_alone(concat!(module_path!(), "::", "a_kept_penalty_changes_between_solves")) {
        return;
    }
    for device in common::devices() {
        let (a, b) = system::<f32>();
        let a = Matrix::with_transpose(&device, &a, Format::Csr).unwrap();
        let b = Vector::from_slice(&device, &b).unwrap();
        let kept = Arc::new(Mutex::new(Edges::<f32>::new(&device, SHAPE, TERMS, 1)));
        let mut setup = Setup::new(Method::Cgnr, Stopping::after(30));
        setup.penalty = Some(kept.clone());
        let mut solver = Solver::with(&a, setup).unwrap();
        let mut x = Vector::zeros(&device, PIXELS).unwrap();
        let mut answers = Vec::new();
        let mut allocated = Vec::new();
        for weight in [0.3, 0.03, 0.3] {
            kept.lock().unwrap().weight = weight;
            x.fill(0.0).unwrap();
            let before = measure::allocations();
            let report = solver.solve(&b, &mut x).unwrap();
            allocated.push(measure::allocations() - before);
            answers.push((x.to_vec().unwrap(), report.history));
        }
        assert!(answers[0] == answers[2] && answers[0] != answers[1]);
        assert_eq!(allocated[1..], [0, 0], "{}", device.info().name);
    }
}

/// A penalty that fails, or is no number.
struct Faulty(bool);

impl Penalty<f64> for Faulty {
    fn gradient(&mut self, _: &Vector<f64>, out: &mut Vector<f64>) -> Result<()> {
        if self.0 {
            return Err(Error::Option { name: "faulty", reason: "it fails".into() });
        }
        out.fill(f64::NAN)
    }
}

#[test]
fn faults_of_a_penalty_are_said() {
    let (a, b) = system::<f64>();
    for device in common::devices_in(Precision::Double) {
        let matrix = Matrix::with_transpose(&device, &a, Format::Csr).unwrap();
        let b = Vector::from_slice(&device, &b).unwrap();
        let mut x = Vector::zeros(&device, PIXELS).unwrap();
        let set_up = |setup: Setup<f64>| Solver::with(&matrix, setup);
        let setup = || Setup::new(Method::Cgnr, Stopping::after(5));
        let failed = set_up(setup().with_penalty(Faulty(true))).unwrap().solve(&b, &mut x).unwrap_err();
        assert!(failed.to_string().contains("it fails"), "{failed}");
        let report = set_up(setup().with_penalty(Faulty(false))).unwrap().solve(&b, &mut x).unwrap();
        assert_eq!(report.stop, Stop::NotFinite, "{report}");
        assert_eq!(x.to_vec().unwrap(), vec![0.0; PIXELS]);
        for (fails, stop) in [(true, None), (false, Some(Stop::NotFinite))] {
            let by_norms = Diagonal::inverse_of_norms(&device, &a).unwrap();
            let setup = setup().with_penalty(Faulty(fails)).with_preconditioner(by_norms);
            let found = set_up(setup).unwrap().solve(&b, &mut x).map(|report| report.stop).ok();
            assert_eq!((found, x.to_vec().unwrap()), (stop, vec![0.0; PIXELS]));
        }
        let refused = |setup: Setup<f64>| match set_up(setup) {
            Err(Error::Conflict { name: "penalty", reason } | Error::Option { name: "penalty", reason }) => {
                println!("{reason}")
            }
            other => panic!("{other:?}"),
        };
        let edges = |columns| Edges::<f64>::new(&device, SHAPE, TERMS, columns);
        refused(Setup::new(Method::Fista, Stopping::after(5)).with_penalty(edges(1)));
        refused(setup().with_penalty(edges(2)));
        refused(setup().with_penalty(Edges::new(&device, SHAPE, [1e200, 1e-200], 1)));
        let tikhonov = Regularization::none().with_tikhonov(1.0);
        refused(setup().with_penalty(edges(1)).with_regularizations(std::slice::from_ref(&tikhonov)));
        let mut solver = set_up(setup().with_penalty(edges(1))).unwrap();
        assert!(matches!(solver.set_regularizations(&[tikhonov]), Err(Error::Conflict { name: "penalty", .. })));
        // A penalty for images of another size.
        let shape = [SHAPE[0], SHAPE[1] + 1];
        let mut solver = set_up(setup().with_penalty(Edges::new(&device, shape, TERMS, 1))).unwrap();
        assert!(matches!(solver.solve(&b, &mut x), Err(Error::Shape { .. })));
        assert_eq!(x.to_vec().unwrap(), vec![0.0; PIXELS]);
    }
}

/// A formula on devices and its twin on the host.
fn formulas<T: Real>() {
    let samples = [noise::<T>(1000, 3), noise::<T>(1000, 4), noise::<T>(1000, 5), noise::<T>(1000, 6)];
    let x = samples.each_ref().map(|x| &x[..]);
    let p = [0.25, 3.0, -1.0, 1e-3].map(T::from_f64);
    common::each_case::<T>(|device| {
        let text = "quotient(x0 * p0 + x1, root(x2 * x2 +\n\tp3)) * (x3 < p2 * x0 ? p1 : x3)";
        let twin = |m: residuum::Arithmetic, x: [T; 4], p: [T; 4]| {
            let other = if x[3] < p[2] * x[0] { p[1] } else { x[3] };
            m.quotient(x[0] * p[0] + x[1], m.root(x[2] * x[2] + p[3])) * other
        };
        let formula = Pointwise::new(device, text, twin).unwrap();
        formula.check(x, p).unwrap();
        let of_host = Pointwise::new(&common::reference::<T>(device), text, twin).unwrap();
        let apply = |formula: &Pointwise<T, 4, 4>, device: &Device| {
            let held = x.map(|x| Vector::from_slice(device, x).unwrap());
            let mut y = Vector::filled(device, 1000, T::from_f64(f64::NAN)).unwrap();
            formula.apply(held.each_ref(), p, &mut y).unwrap();
            common::bits(&y.to_vec().unwrap())
        };
        assert_eq!(
            apply(&formula, device),
            apply(&of_host, &common::reference::<T>(device)),
            "{}",
            device.tuning()
        );
    });
}

#[test]
fn formulas_are_the_same_everywhere() {
    formulas::<f32>();
    formulas::<f64>();
}

#[test]
fn formulas_that_cannot_be_are_refused() {
    for device in common::devices() {
        let new = |text: &str| Pointwise::<f32, 1, 0>::new(&device, text, |_, [x], []| x + x);
        for text in ["", "  ", "x0 // more", "x0 /* more */", "x0)\n#define FORMULA (x0", "x0 \\"] {
            let refused = new(text).unwrap_err();
            assert!(matches!(refused, Error::Option { name: "formula", .. }), "{text}: {refused}");
        }
        let x = Vector::from_slice(&device, &[1.0_f32, 2.0]).unwrap();
        let twice = new("x0 + x0").unwrap();
        twice.check([&[1.0, f32::INFINITY]], []).unwrap();
        let mut y = Vector::zeros(&device, 2).unwrap();
        twice.apply([&x], [], &mut y).unwrap();
        assert_eq!(y.to_vec().unwrap(), [2.0, 4.0]);
        let mut long = Vector::zeros(&device, 3).unwrap();
        assert!(matches!(twice.apply([&x], [], &mut long), Err(Error::Shape { .. })));
        let mut none = Vector::zeros(&device, 0).unwrap();
        twice.apply([&Vector::zeros(&device, 0).unwrap()], [], &mut none).unwrap();
        if device.backend_kind() == BackendKind::OpenCl {
            let host = Device::host();
            let mut elsewhere = Vector::zeros(&host, 2).unwrap();
            assert!(matches!(twice.apply([&x], [], &mut elsewhere), Err(Error::DeviceMismatch { .. })));
            // Another formula than the twin, and one that no compiler takes.
            let other = new("x0 - x0").unwrap().check([&[0.0, 3.0]], []).unwrap_err();
            assert!(other.to_string().contains("at sample 1"), "{other}");
            let wrong = new("x0 + unknown").unwrap_err();
            assert!(matches!(&wrong, Error::Build { log, .. } if log.contains("unknown")), "{wrong}");
        }
    }
}

/// A rule that looks at residuals ends a solve with a penalty at an iterate of that solve.
#[test]
fn rules_end_solves_with_penalties() {
    let (a, b) = system::<f64>();
    let device = Device::host();
    let matrix = Matrix::with_transpose(&device, &a, Format::Csr).unwrap();
    let rhs = Vector::from_slice(&device, &b).unwrap();
    let solve = |stopping: Stopping| {
        let penalty = Edges::new(&device, SHAPE, [1e-3, 0.05], 1).with_curvature(true);
        let setup = Setup::new(Method::Cgnr, stopping).with_penalty(penalty);
        let mut x = Vector::zeros(&device, PIXELS).unwrap();
        let report = Solver::with(&matrix, setup).unwrap().solve(&rhs, &mut x).unwrap();
        (x.to_vec().unwrap(), report)
    };
    let rule = StopRule::Ncp { length: 50, apart: 1 };
    let (found, report) = solve(Stopping::after(200).with_rule(rule));
    println!("{report}");
    let course = report.rule.clone().unwrap();
    assert_eq!((report.stop, report.iterations), (Stop::Semiconverged, course.best));
    assert!(found == solve(Stopping::after(course.best).with_answer(Answer::Last)).0, "{report}");
    let residual = a.product(&found).unwrap();
    let square: f64 = residual.iter().zip(&b).map(|(y, b)| (b - y) * (b - y)).sum();
    approx::assert_relative_eq!(report.true_residual, square.sqrt(), max_relative = 1e-12);
}
