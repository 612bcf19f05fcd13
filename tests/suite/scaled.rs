//! Systems scaled over the whole range of their precision, by every method: what is called converged is, nothing that is not
//! finite is returned unsaid, and every solve ends.

use std::time::{Duration, Instant};

use crate::common::problems::{Problem, everything, everything_exact, problems};
use crate::common::{self, bits, noise};
use residuum::sparse::gallery;
use residuum::{
    Accumulation, Columns, Csr, Device, Error, Format, Matrix, Method, Precision, Real, Regularization, Report,
    Setup, Solver, Stop, Stopping, Vector,
};

/// `value 2^exponent`.
fn scale(value: f64, exponent: i32) -> f64 {
    libm::scalbn(value, exponent)
}

/// The binary exponent that brings `values` near 1.
fn towards_one(values: impl Iterator<Item = f64>) -> i32 {
    let largest = values.fold(0.0, |most: f64, v| most.max(v.abs()));
    if largest > 0.0 && largest.is_finite() { -libm::ilogb(largest) } else { 0 }
}

/// Residual and gradient of an answer, computed plainly in numbers near 1.
struct Left {
    /// `|b - A x| / |b|`, or `|b - A x|` near 1 if `b` is 0.
    residual: f64,
    /// `|A'r - damp² (x - x_ref)| / (|A|_F |r|)`.
    gradient: f64,
    /// `|A'r - damp² (x - x_ref)| / (|A|_F (|A|_F |x| + |b|))`.
    rounding: f64,
}

fn left<T: Real>(a: &Csr<T>, b: &[T], x: &[T], damp: f64, reference: Option<&[T]>) -> Left {
    let ka = towards_one(a.values().iter().map(|v| v.to_f64()));
    let kb = towards_one(b.iter().map(|v| v.to_f64()));
    let values: Vec<f64> = a.values().iter().map(|v| scale(v.to_f64(), ka)).collect();
    let x: Vec<f64> = x.iter().map(|v| scale(v.to_f64(), kb - ka)).collect();
    let mut r: Vec<f64> = b.iter().map(|v| scale(v.to_f64(), kb)).collect();
    let rhs = norm(&r);
    let mut s = vec![0.0; a.cols()];
    for i in 0..a.rows() {
        for k in a.offsets()[i]..a.offsets()[i + 1] {
            r[i] -= values[k] * x[a.indices()[k] as usize];
        }
    }
    for i in 0..a.rows() {
        for k in a.offsets()[i]..a.offsets()[i + 1] {
            s[a.indices()[k] as usize] += values[k] * r[i];
        }
    }
    let damp = scale(damp, ka);
    for (j, s) in s.iter_mut().enumerate() {
        let from = reference.map_or(0.0, |reference| scale(reference[j].to_f64(), kb - ka));
        *s -= damp * damp * (x[j] - from);
    }
    let frobenius = norm(&values);
    Left {
        residual: if rhs > 0.0 { norm(&r) / rhs } else { norm(&r) },
        gradient: norm(&s) / (frobenius * norm(&r)),
        rounding: norm(&s) / (frobenius * (frobenius.hypot(damp) * norm(&x) + rhs)),
    }
}

/// Gradient of MLEM's page, over `|A|_F |r|`, and over the size of an image times that.
fn of_likelihood<T: Real>(a: &Csr<T>, b: &[T], x: &[T]) -> (f64, f64) {
    let ka = towards_one(a.values().iter().map(|v| v.to_f64()));
    let kb = towards_one(b.iter().map(|v| v.to_f64()));
    let values = a.values().iter().map(|v| scale(v.to_f64(), ka)).collect();
    let a = Csr::new(a.rows(), a.cols(), a.offsets().to_vec(), a.indices().to_vec(), values).unwrap();
    let (product, back) = (|x: &[f64]| a.product(x).unwrap(), a.transpose());
    let adjoint = |y: &[f64]| back.product(y).unwrap();
    let x: Vec<f64> = x.iter().map(|v| scale(v.to_f64(), kb - ka)).collect();
    let b: Vec<f64> = b.iter().map(|v| scale(v.to_f64(), kb)).collect();
    let [of_rows, of_cols] = [product(&vec![1.0; a.cols()]), adjoint(&vec![1.0; a.rows()])];
    let c: Vec<f64> = of_cols.iter().map(|sum| if *sum > 0.0 { 1.0 / sum } else { 0.0 }).collect();
    let fitted = product(&c);
    let [mut over, mut under] = [0.0; 2];
    for (w, b) in fitted.iter().zip(&b) {
        over += w * b.max(0.0);
        under += w * w;
    }
    let ax = product(&x);
    let excess = |(b, ax): (&f64, &f64)| match (*ax > 0.0, *b > 0.0) {
        (true, _) => b.max(0.0) / ax - 1.0,
        (false, above) => f64::from(u8::from(above)),
    };
    let g = adjoint(&b.iter().zip(&ax).map(excess).collect::<Vec<_>>());
    let moved = |j: usize| ((x[j] + over / under * c[j]) * c[j] * g[j]).max(-x[j]);
    let step = norm(&(0..a.cols()).map(moved).collect::<Vec<_>>());
    let most = |sums: &[f64]| sums.iter().copied().fold(0.0, f64::max);
    let square = most(&of_rows) * most(&of_cols);
    let r = norm(&b.iter().zip(&ax).map(|(b, ax)| b - ax).collect::<Vec<_>>());
    let frobenius = norm(a.values());
    (step * square / (frobenius * r), step * square / (frobenius * (frobenius * norm(&x) + norm(&b))))
}

fn norm(values: &[f64]) -> f64 {
    values.iter().map(|v| v * v).sum::<f64>().sqrt()
}

fn times<T: Real>(a: &Csr<T>, by: f64) -> Csr<T> {
    let values = a.values().iter().map(|v| T::from_f64(v.to_f64() * by)).collect();
    Csr::new(a.rows(), a.cols(), a.offsets().to_vec(), a.indices().to_vec(), values).unwrap()
}

/// Scales a problem to `alpha A`, an answer `beta / alpha` times as large, and a preconditioner `gamma M`.
fn scaled<T: Real>(problem: &Problem<T>, alpha: f64, beta: f64, gamma: f64) -> Problem<T> {
    let both = alpha * gamma;
    let method = match problem.method {
        Method::Chebyshev { smallest, largest } => {
            Method::Chebyshev { smallest: smallest * both, largest: largest * both }
        }
        Method::Stationary { omega } => Method::Stationary { omega: omega / both },
        Method::Cgls { damp } => Method::Cgls { damp: damp * alpha },
        Method::Lsqr { damp } => Method::Lsqr { damp: damp * alpha },
        Method::Lsmr { damp } => Method::Lsmr { damp: damp * alpha },
        other => other,
    };
    let answer = |v: &Vec<T>| v.iter().map(|v| T::from_f64(v.to_f64() * (beta / alpha))).collect();
    let times_gamma = |d: &Vec<T>| d.iter().map(|d| T::from_f64(d.to_f64() * gamma)).collect();
    Problem {
        method,
        a: times(&problem.a, alpha),
        diagonal: problem.diagonal.as_ref().map(times_gamma),
        reference: problem.reference.as_ref().map(answer),
        start: answer(&problem.start),
        lower: problem.lower.map(|lower| lower * (beta / alpha)),
        ..problem.clone()
    }
}

fn damp(method: Method) -> f64 {
    match method {
        Method::Cgls { damp } | Method::Lsqr { damp } | Method::Lsmr { damp } => damp,
        _ => 0.0,
    }
}

/// Factors of the matrix, of the right-hand side and of the preconditioner: all over the range of `T`, together and apart.
fn factors<T: Real>(preconditioned: bool) -> Vec<(f64, f64, f64)> {
    let most: &[f64] = match T::PRECISION {
        Precision::Single => &[1e-38, 1e-30, 1e-21, 1e-12, 1.0, 1e12, 1e21, 1e30, 3e36],
        Precision::Double => &[1e-300, 1e-200, 1e-160, 1e-60, 1.0, 1e60, 1e160, 1e200, 1e300],
    };
    let mut found: Vec<(f64, f64)> = most.iter().map(|v| (*v, *v)).collect();
    found.extend(most.iter().map(|v| (1.0, *v)));
    found.extend(most.iter().map(|v| (*v, 1.0)));
    // A matrix at the end of the range with a right-hand side that is only some way off.
    found.extend(match T::PRECISION {
        Precision::Single => [(1e-37, 1e-10), (1e-36, 1e-15), (3e36, 1e10), (1e36, 1e14)],
        Precision::Double => [(1e-300, 1e-35), (1e-290, 1e-30), (1e300, 1e35), (1e290, 1e30)],
    });
    // Matrices that are not scaled, or hardly, with right-hand sides at the other end.
    found.extend(match T::PRECISION {
        Precision::Single => [(1e13, 1e-14), (1e-14, 1e14)],
        Precision::Double => [(1e60, 1e-36), (1e-60, 1e36)],
    });
    // Sums that the range holds, and their squares not.
    found.extend(match T::PRECISION {
        Precision::Single => [(1e9, 1e5), (2e-9, 3e-6)],
        Precision::Double => [(1e58, 1e35), (1e-58, 1e-35)],
    });
    // Answers that `T` cannot hold.
    found.extend([(most[0], most[most.len() - 1]), (most[most.len() - 1], most[0])]);
    let mut found: Vec<(f64, f64, f64)> = found.into_iter().map(|(alpha, beta)| (alpha, beta, 1.0)).collect();
    // Preconditioners far from 1, and from the inverse of the matrix.
    if preconditioned {
        let (few, many): (f64, f64) = match T::PRECISION {
            Precision::Single => (1e-14, 1e14),
            Precision::Double => (1e-100, 1e100),
        };
        for gamma in [few, many] {
            found.extend([
                (1.0, 1.0, gamma),
                (1.0, 1.0 / gamma, gamma),
                (gamma, 1.0, gamma),
                (gamma, 1.0, 1.0 / gamma),
            ]);
        }
    }
    found
}

/// Fails unless the report of a solve is true. Whether it converged.
fn is_true<T: Real>(
    problem: &Problem<T>,
    b: &[T],
    x: &[T],
    report: &Report,
    stopping: &Stopping,
    what: &str,
) -> bool {
    let finite = x.iter().all(|v| v.is_finite());
    assert!(finite || report.stop == Stop::NotFinite, "{what}: not finite, {report}");
    assert!(report.iterations <= stopping.max_iterations, "{what}: {report}");
    let left = left(&problem.a, b, x, damp(problem.method), problem.reference.as_deref());
    let slack = 1.0 + 64.0 * T::EPSILON.sqrt();
    match report.stop {
        Stop::Converged => {
            assert!(left.residual <= stopping.rtol * slack, "{what}: {:e} is left, {report}", left.residual);
        }
        Stop::LeastSquares if problem.method == Method::Mlem => {
            let (gradient, rounding) = of_likelihood(&problem.a, b, x);
            let small = gradient <= stopping.gradient_rtol * (1.0 + 1e-3) || rounding <= 16.0 * T::EPSILON;
            assert!(small, "{what}: {gradient:e}, {rounding:e}, {report}");
        }
        Stop::LeastSquares => {
            let small = left.gradient <= stopping.gradient_rtol * (1.0 + 1e-3)
                || (left.rounding <= 16.0 * T::EPSILON && left.gradient <= 2.0 * T::EPSILON.sqrt());
            assert!(small, "{what}: {:e}, {:e}, {report}", left.gradient, left.rounding);
        }
        _ => {}
    }
    // The report's residual is true, unless it is all rounding.
    if finite && left.residual > 1e3 * T::EPSILON && report.rhs_norm > 1e-300 {
        let said = report.relative_residual();
        assert!((said - left.residual).abs() <= 1e-2 * left.residual, "{what}: {:e}, {report}", left.residual);
    }
    report.converged()
}

/// Tells if the system and its answer are numbers of `T` with all their digits.
fn is_normal<T: Real>(alpha: f64, beta: f64) -> bool {
    let (least, most) = match T::PRECISION {
        Precision::Single => (1e-37, 1e37),
        Precision::Double => (1e-306, 1e306),
    };
    [alpha, beta, beta / alpha].iter().all(|v| (least..most).contains(&(0.01 * v)) && *v < 0.001 * most)
}

/// Tells if `device` holds the smallest parts of numbers of these sizes: one without denormal numbers takes them for 0.
fn holds<T: Real>(device: &Device, sizes: [f64; 3]) -> bool {
    device.info().denormals || T::PRECISION == Precision::Double || sizes.iter().all(|size| *size > 1e-32)
}

fn every_method<T: Real>(device: &Device) {
    let stopping =
        Stopping::for_precision::<T>().with_max_iterations(2000).with_time_limit(Duration::from_secs(60));
    let mut converged = 0;
    for problem in problems::<T>() {
        for (alpha, beta, gamma) in factors::<T>(problem.diagonal.is_some()) {
            let problem = scaled(&problem, alpha, beta, gamma);
            let known = problem.reference.iter().flatten().chain(&problem.start).chain(problem.a.values());
            let bounded = match problem.method {
                Method::Chebyshev { smallest, largest } => smallest > 0.0 && largest.is_finite(),
                Method::Stationary { omega } => omega > 0.0 && omega.is_finite(),
                method => damp(method).is_finite(),
            };
            let bounded = bounded && problem.lower.is_none_or(|lower| T::from_f64(lower).is_finite());
            if !bounded || !known.clone().all(|v| v.is_finite()) {
                continue;
            }
            if !holds::<T>(device, [alpha, beta, beta / alpha]) {
                println!("skipped: {alpha:e}, {beta:e} on {}, which has no denormal numbers", device.info().name);
                continue;
            }
            let b: Vec<T> =
                noise::<T>(problem.a.rows(), 30).iter().map(|v| T::from_f64(v.to_f64() * beta)).collect();
            let what = format!(
                "{} ({:?}) of {alpha:e}, {beta:e}, {gamma:e} in {} on {}",
                problem.method,
                problem.diagonal.is_some(),
                T::PRECISION,
                device.info().name
            );
            let clock = Instant::now();
            let solved = problem.solve(device, &[&b], &stopping);
            assert!(clock.elapsed() < Duration::from_secs(300), "{what} took {:?}", clock.elapsed());
            let (x, report) = &solved[0];
            let done = is_true(&problem, &b, x, report, &stopping, &what);
            converged += usize::from(done);
            // If the numbers fit, scaling changes nothing.
            assert!(done || !is_normal::<T>(alpha, beta), "{what}: {report}");
        }
    }
    assert!(converged > 300, "{converged}");
}

/// Each way of keeping sums on each device, at its own work-group size.
fn each_device<T: Real>(case: impl Fn(&Device)) {
    for device in common::devices_in(T::PRECISION) {
        for accumulation in [Accumulation::Double, Accumulation::Pair] {
            if T::PRECISION == Precision::Double && accumulation == Accumulation::Pair {
                continue;
            }
            match device.with_accumulation(accumulation) {
                Ok(device) => case(&device),
                Err(error) => println!("skipped: {error}"),
            }
        }
    }
}

#[test]
fn every_method_is_right_or_says_why_f64() {
    each_device::<f64>(every_method::<f64>);
}

#[test]
fn every_method_is_right_or_says_why_f32() {
    each_device::<f32>(every_method::<f32>);
}

/// Multiplied by powers of two, a system gives the same bits, times a power of two: also for several right-hand sides of
/// different sizes at once.
#[test]
fn powers_of_two_change_no_bit() {
    let stopping = Stopping::for_precision::<f64>().with_max_iterations(400);
    each_device::<f64>(|device| {
        for problem in problems::<f64>() {
            let b: Vec<Vec<f64>> = (0..3).map(|c| noise(problem.a.rows(), 30 + c)).collect();
            let wanted: Vec<(Vec<f64>, Report)> =
                b.iter().map(|b| problem.solve(device, &[b], &stopping).remove(0)).collect();
            for (m, k) in [
                (-900, -900),
                (900, 900),
                (0, -800),
                (0, 800),
                (-700, 100),
                (700, 0),
                (-220, 0),
                (0, 130),
                (-940, -100),
                (940, 100),
            ] {
                let changed = scaled(&problem, scale(1.0, m), scale(1.0, k), 1.0);
                // With a reference, a start or a bound, those follow the right-hand side: one size for all columns.
                let apart = problem.reference.is_none() && problem.lower.is_none();
                let exponents = if apart { vec![k, k - 60, k + 40] } else { vec![k; 3] };
                let b: Vec<Vec<f64>> =
                    b.iter().zip(&exponents).map(|(b, k)| b.iter().map(|v| scale(*v, *k)).collect()).collect();
                let b: Vec<&[f64]> = b.iter().map(|v| &v[..]).collect();
                for columns in [1, 3] {
                    let solved = changed.solve(device, &b[..columns], &stopping);
                    for (c, ((x, report), (wanted_x, wanted))) in solved.iter().zip(&wanted).enumerate() {
                        let what = format!("{} of 2^{m}, 2^{k}, column {c} of {columns}", problem.method);
                        let found: Vec<f64> = x.iter().map(|v| scale(*v, m - exponents[c])).collect();
                        assert_eq!((report.stop, report.iterations), (wanted.stop, wanted.iterations), "{what}");
                        // An unknown that MLEM lets shrink has other bits once one of the two was a denormal number, also if it
                        // grows again.
                        let tiny = scale(f64::MIN_POSITIVE, m - exponents[c]).max(1e-150);
                        let faint =
                            |l: usize| problem.method == Method::Mlem && (found[l] - wanted_x[l]).abs() < tiny;
                        let same = |l: usize| found[l].to_bits() == wanted_x[l].to_bits() || faint(l);
                        assert!((0..found.len()).all(same), "{what}: {report}");
                        let history: Vec<f64> = report.history.iter().map(|v| scale(*v, -exponents[c])).collect();
                        assert_eq!(bits(&history), bits(&wanted.history), "{what}");
                    }
                }
            }
        }
    });
}

/// CGNR with every regularization, in other units.
#[test]
fn regularised_methods_are_the_same_in_other_units() {
    let (m, width, height) = (150, 7, 8);
    let n = width * height;
    let a = gallery::random::<f64>(m, n, 9 * m, 3).unwrap();
    let none = Regularization::none();
    let (all, exact) = (everything(width), everything_exact(width));
    let stopping = Stopping::for_precision::<f64>().with_max_iterations(60);
    each_device::<f64>(|device| {
        for (method, regularizations) in [
            (Method::Cgnr, vec![none.clone()]),
            (Method::Cgnr, vec![all.clone(); 2]),
            (Method::Cgnr, vec![all.clone(), none.clone()]),
            (Method::Pdhg, vec![exact.clone(), none.clone()]),
            (Method::Mrnsd, vec![none.clone(), none.clone().with_lower(0.25)]),
            (Method::Nnfcgls { restart: 9 }, vec![none.clone().with_lower(0.25), none.clone()]),
        ] {
            let solve = |a: &Csr<f64>, b: &[Vec<f64>], regularizations: &[Regularization]| {
                let matrix = Matrix::with_transpose(device, a, Format::Csr).unwrap();
                let b: Vec<&[f64]> = b.iter().map(|b| &b[..]).collect();
                let b = Columns::new(device, &b).unwrap();
                let mut x = Columns::zeros(device, n, regularizations.len()).unwrap();
                let setup = Setup::new(method, stopping.clone()).with_columns(regularizations.len());
                let mut solver = Solver::with(&matrix, setup.with_regularizations(regularizations)).unwrap();
                let reports = solver.solve_many(&b, &mut x).unwrap();
                (x.to_vecs().unwrap(), reports)
            };
            let b: Vec<Vec<f64>> = (0..regularizations.len()).map(|c| noise(m, 5 + c as u64)).collect();
            let (wanted, reports) = solve(&a, &b, &regularizations);
            // The weights are squares: they bound how far the units can be apart.
            for (ka, kb) in [(-400, -400), (400, 400), (0, -400), (-300, 100), (250, 0)] {
                let units = |f: &Regularization| {
                    f.clone()
                        .with_tikhonov(scale(f.tikhonov, 2 * ka))
                        .with_smooth(scale(f.smooth, 2 * ka))
                        .with_variation(scale(f.variation, ka + kb))
                        .with_epsilon(scale(f.epsilon, kb - ka))
                        .with_directional(scale(f.directional, ka + kb))
                        .with_lower(scale(f.lower, kb - ka))
                        .with_upper(scale(f.upper, kb - ka))
                        .with_bound_weight(scale(f.bound_weight, 2 * ka))
                };
                let changed: Vec<Regularization> = regularizations.iter().map(units).collect();
                let b: Vec<Vec<f64>> = b.iter().map(|b| b.iter().map(|v| scale(*v, kb)).collect()).collect();
                let (found, others) = solve(&times(&a, scale(1.0, ka)), &b, &changed);
                for c in 0..regularizations.len() {
                    let found: Vec<f64> = found[c].iter().map(|v| scale(*v, ka - kb)).collect();
                    let what = format!("2^{ka}, 2^{kb}: {} {}", others[c], reports[c]);
                    assert!(bits(&found) == bits(&wanted[c]), "{what}");
                    assert_eq!(
                        (others[c].stop, others[c].iterations),
                        (reports[c].stop, reports[c].iterations),
                        "{what}"
                    );
                }
            }
        }
    });
}

fn solve<T: Real>(a: &Csr<T>, b: &[T], method: Method, stopping: &Stopping) -> (Vec<T>, Report) {
    Problem::new(method, a).solve(&Device::host(), &[b], stopping).remove(0)
}

/// Systems seen in use: each of these was called converged, not finite, or returned NaN.
#[test]
fn what_was_seen_in_use_is_right() {
    // Squared norms vanish.
    let a = Csr::from_triplets(3, 2, &[(0, 0, 1e-30f32), (1, 1, 2e-30), (2, 0, 3e-30), (2, 1, 1e-30)]).unwrap();
    let (x, report) =
        solve(&a, &[1e-30, 2e-30, 4e-30], Method::Lsmr { damp: 0.0 }, &Stopping::for_precision::<f32>());
    assert!(report.converged(), "{report}");
    assert!(x.iter().all(|v| (v - 1.0).abs() < 1e-4), "{x:?}");
    let a = Csr::from_triplets(2, 2, &[(0, 0, 1e-200), (1, 1, 2e-200)]).unwrap();
    let (x, report) = solve(&a, &[1e-200, 2e-200], Method::Cg, &Stopping::for_precision::<f64>());
    assert!(report.stop == Stop::Converged && x.iter().all(|v| (v - 1.0).abs() < 1e-7), "{x:?} {report}");
    // A squared norm overflows, the norm does not.
    let one = Csr::from_triplets(2, 2, &[(0, 0, 1.0), (1, 1, 1.0)]).unwrap();
    let (x, report) = solve(&one, &[1e160, 2e160], Method::Cg, &Stopping::for_precision::<f64>());
    assert!(report.stop == Stop::Converged && x == [1e160, 2e160], "{x:?} {report}");
    approx::assert_relative_eq!(report.rhs_norm, 5f64.sqrt() * 1e160, max_relative = 1e-15);
    // x was NaN beside a residual of 1.
    let tiny = times(&gallery::poisson_2d::<f32>(5, 0.0).unwrap(), 1e-21);
    // Poisson's matrix has negative entries, which SIRT, SART and MLEM do not take.
    for method in Method::ALL.iter().copied().filter(|m| m.takes_negative_entries()) {
        let method = match method {
            Method::Chebyshev { .. } => Method::Chebyshev { smallest: 0.1e-21, largest: 8e-21 },
            Method::Stationary { .. } => Method::Stationary { omega: 0.2e21 },
            other => other,
        };
        // PDHG gains by the least singular value, not by its root, and MRNSD is a steepest descent.
        let max_iterations = if matches!(method, Method::Pdhg | Method::Mrnsd) { 20_000 } else { 1000 };
        let stopping = Stopping::for_precision::<f32>().with_max_iterations(max_iterations);
        let (x, report) = solve(&tiny, &[1e-21; 25], method, &stopping);
        assert!(report.converged() && x.iter().all(|v| v.is_finite()), "{method}: {x:?} {report}");
    }
    // Residuals whose squares vanish are no zeros.
    let apart = Csr::from_triplets(2, 2, &[(0, 0, 1e-200), (1, 1, 1.0)]).unwrap();
    let exactly = Stopping::for_precision::<f64>().with_rtol(0.0);
    let (_, report) = solve(&apart, &[1e-200, 1.0], Method::Cg, &exactly);
    assert!(report.stop != Stop::Converged || report.true_residual == 0.0, "{report}");
    let (x, report) = solve(&one, &[3.0, 4.0], Method::Cg, &exactly);
    assert!(report.stop == Stop::Converged && x == [3.0, 4.0] && report.true_residual == 0.0, "{report}");
}

/// Neither the iterations nor the time that are allowed may be passed, whatever breaks down.
#[test]
fn every_solve_ends() {
    let turn = Csr::from_triplets(2, 2, &[(0, 1, 1.0), (1, 0, -1.0)]).unwrap();
    let singular = Csr::from_triplets(2, 2, &[(0, 0, 1.0), (0, 1, 1.0), (1, 0, 1.0), (1, 1, 1.0)]).unwrap();
    let nilpotent = Csr::from_triplets(2, 2, &[(0, 1, 1.0)]).unwrap();
    let nothing = Csr::from_triplets(2, 2, &[]).unwrap();
    for device in common::devices_in(Precision::Double) {
        for a in [&turn, &singular, &nilpotent, &nothing] {
            let negative = a.values().iter().any(|v| *v < 0.0);
            for method in Method::ALL.iter().copied().filter(|m| !negative || m.takes_negative_entries()) {
                for rtol in [0.0, 1e-8] {
                    let limit = Some(Duration::from_secs(20));
                    let stopping = Stopping::for_precision::<f64>()
                        .with_rtol(rtol)
                        .with_time_limit(limit)
                        .with_max_iterations(500);
                    let clock = Instant::now();
                    let (x, report) = Problem::new(method, a).solve(&device, &[&[1.0, 0.0]], &stopping).remove(0);
                    let what = format!("{method}, rtol {rtol}: {report}");
                    assert!(clock.elapsed() < Duration::from_secs(60), "{what}");
                    assert!(report.iterations <= 500, "{what}");
                    assert!(x.iter().all(|v| v.is_finite()), "{what}: {x:?}");
                    // A solve that goes on to the last start has gained something on the way.
                    assert!(report.restarts <= 500, "{what}");
                }
            }
        }
    }
}

/// `b = 0` from another start: the answer is 0 for a square system; rectangles measure by their first residual.
#[test]
fn nothing_on_the_right_is_answered_at_once() {
    for device in common::devices_in(Precision::Double) {
        for problem in problems::<f64>().into_iter().filter(|p| p.reference.is_none()) {
            let start = noise::<f64>(problem.a.cols(), 8);
            let zero = vec![0.0; problem.a.rows()];
            let problem = Problem { start, ..problem };
            let (x, report) = problem.solve(&device, &[&zero], &Stopping::for_precision::<f64>()).remove(0);
            let what = format!("{} on {}: {report}", problem.method, device.info().name);
            assert!(report.converged() && report.rhs_norm == 0.0, "{what}");
            if problem.method.takes_rectangles() {
                assert!(report.iterations < if problem.method == Method::Pdhg { 4000 } else { 400 }, "{what}");
                assert!(
                    report.true_residual <= 1e-8 * report.history[0] || report.stop == Stop::LeastSquares,
                    "{what}"
                );
            } else {
                assert_eq!((report.stop, report.iterations), (Stop::Converged, 0), "{what}");
                assert!(x.iter().all(|v| *v == 0.0), "{what}");
            }
            // Beside a column that has something to solve.
            let b = noise::<f64>(problem.a.rows(), 30);
            let both = problem.solve(&device, &[&zero, &b], &Stopping::for_precision::<f64>());
            assert_eq!(both[0].1.iterations, report.iterations, "{what}");
            assert!(bits(&both[0].0) == bits(&x), "{what}");
        }
        let a = gallery::random::<f64>(150, 40, 700, 3).unwrap();
        let matrix = Matrix::with_transpose(&device, &a, Format::Auto).unwrap();
        let mut x = Vector::from_slice(&device, &noise::<f64>(40, 8)).unwrap();
        let b = Vector::zeros(&device, 150).unwrap();
        let mut cgnr = common::cgnr(&matrix, &[Regularization::none()], Stopping::for_precision::<f64>()).unwrap();
        let report = cgnr.solve(&b, &mut x).unwrap();
        assert!(report.converged() && report.iterations < 200, "{report}");
    }
}

/// Operators that know no norm are asked for a product, however large or small they are.
#[test]
fn operators_without_a_norm_are_scaled_too() {
    use residuum::operator::LinearOperator;
    struct Quiet(Matrix<f64>);
    impl LinearOperator<f64> for Quiet {
        fn device(&self) -> &Device {
            self.0.device()
        }
        fn rows(&self) -> usize {
            self.0.rows()
        }
        fn cols(&self) -> usize {
            self.0.cols()
        }
        fn apply(&self, x: &Vector<f64>, y: &mut Vector<f64>) -> residuum::Result<()> {
            self.0.multiply(x, y)
        }
        fn apply_adjoint(&self, x: &Vector<f64>, y: &mut Vector<f64>) -> residuum::Result<()> {
            self.0.multiply_transposed(x, y)
        }
        fn has_adjoint(&self) -> bool {
            true
        }
    }
    let device = Device::host();
    let a = gallery::poisson_2d::<f64>(9, 0.1).unwrap();
    for factor in [1e-305, 1e-200, 1e200, 1e303] {
        let a = times(&a, factor);
        let matrix = Matrix::with_transpose(&device, &a, Format::Csr).unwrap();
        let b: Vec<f64> = a.product(&[1.0; 81]).unwrap();
        for method in [Method::Cg, Method::Lsqr { damp: 0.0 }, Method::Gmres { restart: 30 }] {
            let quiet = Quiet(matrix.clone()).shared();
            let rhs = Vector::from_slice(&device, &b).unwrap();
            let mut x = Vector::zeros(&device, 81).unwrap();
            let mut solver = Solver::new(quiet, method, Stopping::for_precision::<f64>()).unwrap();
            let report = solver.solve(&rhs, &mut x).unwrap();
            let x = x.to_vec().unwrap();
            assert!(
                report.converged() && x.iter().all(|v| (v - 1.0).abs() < 1e-5),
                "{factor:e} {method}: {report}"
            );
        }
    }
}

#[test]
fn what_is_not_finite_is_refused() {
    let one =
        Matrix::new(&Device::host(), &Csr::from_triplets(2, 2, &[(0, 0, 1.0), (1, 1, 1.0)]).unwrap(), Format::Csr)
            .unwrap();
    let mut solver = Solver::with(&one, Setup::new(Method::Cg, Stopping::for_precision::<f64>())).unwrap();
    for bad in [f64::NAN, f64::INFINITY, f64::MAX] {
        let b = Vector::from_slice(&Device::host(), &[bad; 2]).unwrap();
        let mut x = Vector::zeros(&Device::host(), 2).unwrap();
        // Numbers whose norm no number of fp64 holds are finite.
        let refused = |error| {
            if bad == f64::MAX {
                matches!(error, Error::Option { .. })
            } else {
                matches!(error, Error::NotFinite { .. })
            }
        };
        assert!(refused(solver.solve(&b, &mut x).unwrap_err()), "{bad}");
        let b = Vector::zeros(&Device::host(), 2).unwrap();
        let mut x = Vector::from_slice(&Device::host(), &[0.0, bad]).unwrap();
        if bad.is_nan() || bad.is_infinite() {
            assert!(matches!(solver.solve(&b, &mut x), Err(Error::NotFinite { .. })), "{bad}");
        }
    }
}

/// A singular system without a solution is none in the least-squares sense either while its gradient is large.
#[test]
fn answers_that_ran_away_are_not_called_rounding() {
    let a = Csr::from_triplets(3, 3, &[(0, 0, 1.0), (0, 1, 1.0), (1, 0, 1.0), (1, 1, 1.0), (2, 2, 1.0)]).unwrap();
    for method in Method::ALL.iter().copied().filter(|m| !matches!(m, Method::Chebyshev { .. })) {
        let (x, report) = solve(&a, &[1.0, 2.0, 1.0], method, &Stopping::for_precision::<f64>());
        // The objective may have a weight that the method has chosen.
        let damp = report.weight.as_ref().map_or(0.0, |weight| weight.damp);
        let left = left(&a, &[1.0, 2.0, 1.0], &x, damp, None);
        assert!(report.stop != Stop::Converged, "{report}");
        assert!(report.stop != Stop::LeastSquares || left.gradient < 1e-10, "{:e} {report}", left.gradient);
    }
}

/// `n x n` of condition `condition`: two reflections about a diagonal that falls evenly in its logarithm.
fn of_condition<T: Real>(n: usize, condition: f64, symmetric: bool) -> Csr<T> {
    let reflection = |seed: u64| {
        let v: Vec<f64> = noise::<f64>(n, seed);
        let square: f64 = v.iter().map(|v| v * v).sum();
        move |i: usize, j: usize| f64::from(u8::from(i == j)) - 2.0 * v[i] * v[j] / square
    };
    let (left, right) = (reflection(1), reflection(if symmetric { 1 } else { 2 }));
    let diagonal: Vec<f64> = (0..n).map(|k| condition.powf(-(k as f64) / (n - 1) as f64)).collect();
    let entry = |i: usize, j: usize| (0..n).map(|k| left(i, k) * diagonal[k] * right(k, j)).sum::<f64>();
    let entries: Vec<(usize, usize, T)> =
        (0..n * n).map(|at| (at / n, at % n, T::from_f64(entry(at / n, at % n)))).collect();
    Csr::from_triplets(n, n, &entries).unwrap()
}

/// If a system has a solution and rounding keeps a method from the accuracy that was asked for, it says so.
#[test]
fn rounding_is_not_called_least_squares() {
    fn check<T: Real>(a: &Csr<T>, b: &[T], methods: &[Method], stopping: &Stopping) {
        for method in methods {
            let (x, report) = solve(a, b, *method, stopping);
            let left = left(a, b, &x, 0.0, None);
            assert!(left.residual <= stopping.rtol || !report.converged(), "{:e} {report}", left.residual);
        }
    }
    let least_squares = [Method::Lsqr { damp: 0.0 }, Method::Lsmr { damp: 0.0 }, Method::Cgls { damp: 0.0 }];
    let stopping = Stopping::for_precision::<f32>();
    check(&of_condition::<f32>(30, 1e5, false), &noise(30, 3), &least_squares, &stopping);
    check(&of_condition::<f32>(30, 1e5, true), &noise(30, 3), &[Method::Minres, Method::Cg], &stopping);
    let hilbert: Vec<(usize, usize, f64)> =
        (0..64).map(|at| (at / 8, at % 8, 1.0 / (1 + at / 8 + at % 8) as f64)).collect();
    let hilbert = Csr::from_triplets(8, 8, &hilbert).unwrap();
    check(&hilbert, &[1.0; 8], &[Method::Minres], &Stopping::for_precision::<f64>());
    let finer = Stopping::for_precision::<f64>().with_rtol(1e-16);
    check(&gallery::poisson_2d(32, 0.0).unwrap(), &[1.0; 1024], &[Method::Minres], &finer);
}

/// A solve that cannot even start says what is left of the right-hand side, as far as that is a number.
#[test]
fn a_start_that_is_not_finite_tells_no_residual() {
    use residuum::operator::LinearOperator;
    /// The identity, times one factor forward and another back.
    struct Wild(Device, [f64; 2]);
    impl LinearOperator<f64> for Wild {
        fn device(&self) -> &Device {
            &self.0
        }
        fn rows(&self) -> usize {
            3
        }
        fn cols(&self) -> usize {
            3
        }
        fn apply(&self, x: &Vector<f64>, y: &mut Vector<f64>) -> residuum::Result<()> {
            y.copy_from(x)?;
            y.scale(self.1[0])
        }
        fn apply_adjoint(&self, x: &Vector<f64>, y: &mut Vector<f64>) -> residuum::Result<()> {
            y.copy_from(x)?;
            y.scale(self.1[1])
        }
        fn has_adjoint(&self) -> bool {
            true
        }
        fn norm_bound(&self) -> Option<f64> {
            Some(1.0)
        }
    }
    for method in
        [Method::Lsqr { damp: 0.0 }, Method::Lsmr { damp: 0.0 }, Method::Cgls { damp: 0.0 }, Method::Minres]
    {
        for (factors, left) in [([1.0, f64::NAN], Some(5.0)), ([f64::NAN, 1.0], None)] {
            let device = Device::host();
            let operator = Wild(device.clone(), factors).shared();
            let b = Vector::from_slice(&device, &[3.0, 4.0, 0.0]).unwrap();
            let mut x = Vector::zeros(&device, 3).unwrap();
            let mut solver = Solver::new(operator, method, Stopping::for_precision::<f64>()).unwrap();
            // Twice: what the first solve left behind must not be taken for the second's.
            for _ in 0..2 {
                let report = solver.solve(&b, &mut x).unwrap();
                if matches!(method, Method::Minres) && left.is_some() {
                    continue; // It needs no adjoint.
                }
                assert_eq!(report.stop, Stop::NotFinite, "{report}");
                match left {
                    Some(left) => assert_eq!(report.true_residual, left, "{report}"),
                    None => assert!(report.true_residual.is_nan(), "{report}"),
                }
                x.fill(0.0).unwrap();
            }
        }
    }
}
