//! Preconditioners one after another, until a solve succeeds.
//!
//! Only a solve tells which preconditioner is the fastest, so the order is fixed by what is known of the matrix. If a solve fails, the next
//! preconditioner goes on from its best answer. A solve also ends, as slow, if its residual has hardly fallen after a number of iterations that
//! take about as long as making the next preconditioner. So a wrong first choice costs little. Slow preconditioners are tried again if all
//! others fail, the most successful first. This check misses a residual that falls first and stalls later. So a first attempt may use half of
//! the iterations that are left, unless it is the last or the method is CG, FlexibleCG or MINRES. If all fail, `resort.rs` goes on.
//!
//! The time to make a preconditioner is counted in iterations, whose number is the same in every run. A CPU makes
//! adaptive FSAI in the time of 200 to 400 iterations. A GPU leaves that to the CPU beside it, which takes the time
//! of 700 to 5000 iterations on the GPU; larger matrices take more. Only time limits depend on clocks: on one kind
//! of device the same system gives the same bits.

use std::collections::VecDeque;
use std::fmt::{Display, Formatter, Result as FmtResult};
use std::time::Instant;

use super::advice::{Definiteness, Examination};
use crate::device::Device;
use crate::device_info::DeviceKind;
use crate::error::{Error, Result};
use crate::matrix::Matrix;
use crate::number::Real;
use crate::precond::{
    AdaptivePattern, AinvOptions, Built, Factorisation, FsaiOptions, IncompleteOptions, Preconditioner,
    RowOrdering, SweepOptions,
};
use crate::solver::{Method, Observer, Report, Setup, Solver, Stop};
use crate::sparse::{AsCsr, Csr, Partition};
use crate::vector::Vector;

/// Largest over smallest diagonal entry up to which Jacobi's preconditioner gains nothing.
const EVEN_DIAGONAL: f64 = 2.0;

/// Iterations on a CPU before a solve may be called slow.
const PATIENCE: usize = 150;
/// ... on any other device, and one more for so many rows.
const PATIENCE_ELSEWHERE: usize = 1000;
const ROWS_TO_WAIT_FOR: usize = 40;
/// Iterations that a solve may take in any case before the next preconditioner has its share of those that are allowed.
const LEAST_SHARE: usize = 1000;

/// Tried if Jacobi's does not do: on 7 positive definite matrices of 3 900 to 80 800 rows it took 0.31 to 0.82 times the
/// iterations of FSAI in the sparsity pattern of the matrix.
const ADAPTIVE_FSAI: Preconditioner = Preconditioner::Fsai(FsaiOptions::adaptive(AdaptivePattern::NEUTRAL));

impl Examination {
    /// Preconditioners for a solve by `method`, in the order in which [`solve_with_fallbacks`](crate::solve_with_fallbacks) takes them; `None` is none. The first is
    /// the one to use, the others are for a solve that fails. Never empty.
    pub fn fallback_chain(&self, method: &Method) -> Vec<Option<Preconditioner>> {
        let by_rows = Preconditioner::Sweep(SweepOptions::gauss_seidel().with_ordering(RowOrdering::Rows));
        let divides = self.square() && self.zero_diagonal == 0;
        let definite = self.symmetric
            && !matches!(self.definiteness, Definiteness::Indefinite(_) | Definiteness::Semidefinite);
        let jacobi = Some(Preconditioner::Jacobi).filter(|_| self.diagonal_spread > EVEN_DIAGONAL);
        match method {
            // A stationary iteration without one would be Richardson's, which few matrices bear.
            Method::Stationary { .. } => vec![Some(Preconditioner::Jacobi), Some(by_rows)],
            // Columns of one size, from the right, where none does not do.
            _ if method.takes_preconditioner() && method.takes_rectangles() => {
                vec![None, Some(Preconditioner::Jacobi)]
            }
            _ if !method.takes_preconditioner() || !divides => vec![None],
            // Bounds are those of one preconditioned operator, which must not depend on the diagonal.
            Method::Chebyshev { .. } => vec![Some(Preconditioner::Jacobi).filter(|_| definite)],
            Method::Cg | Method::FlexibleCg if definite => {
                let others = [
                    ADAPTIVE_FSAI,
                    Preconditioner::Ainv(AinvOptions::sainv(0.1)),
                    Preconditioner::Incomplete(IncompleteOptions::new(Factorisation::Cholesky)),
                ];
                [jacobi].into_iter().chain(others.map(Some)).collect()
            }
            Method::Cg | Method::FlexibleCg => vec![None],
            Method::Minres if definite => vec![jacobi, Some(ADAPTIVE_FSAI)],
            _ if self.symmetric && !definite => vec![None],
            _ => vec![
                jacobi,
                Some(by_rows),
                Some(Preconditioner::Incomplete(IncompleteOptions::new(Factorisation::Lu))),
            ],
        }
    }

    /// Every preconditioner that a solve of this matrix by `method` may be tried with, none among them, with those parameters that most
    /// gain by.
    pub fn candidates(&self, method: &Method) -> Vec<Option<Preconditioner>> {
        let rooted = |which: &&Preconditioner| {
            if self.square() { which.is_for_least_squares() } else { which.takes_rectangles() }
        };
        if method.takes_rectangles() {
            return [None]
                .into_iter()
                .chain(Preconditioner::ALL.iter().filter(rooted).copied().map(Some))
                .collect();
        }
        let definite = self.symmetric && !matches!(self.definiteness, Definiteness::Indefinite(_));
        // A definite matrix gets symmetric ones alone.
        let suits =
            |which: &&Preconditioner| if definite { which.keeps_symmetry() } else { !which.needs_definite() };
        let mut all = vec![None];
        all.extend(Preconditioner::ALL.iter().filter(suits).copied().map(Some));
        if definite {
            all.extend([0.03, 0.01].map(|drop| Some(Preconditioner::Ainv(AinvOptions::sainv(drop)))));
            all.push(Some(Preconditioner::Fsai(FsaiOptions::power(2))));
        }
        all
    }
}

/// Makes the preconditioner for `a` that `method` takes: [`Preconditioner::build_over`], or for methods of least squares
/// [`Preconditioner::build_for_least_squares`].
///
/// # Errors
/// Errors of these.
pub fn build_for<T: Real>(
    which: Preconditioner,
    method: &Method,
    device: &Device,
    a: &(impl AsCsr<T> + ?Sized),
    partition: Option<&Partition>,
) -> Result<Built<T>> {
    build_for_until(which, method, device, a, partition, None)
}

/// [`build_for`] that ends at a time if it is not done.
///
/// # Errors
/// As [`build_for`]; [`Error::OutOfTime`].
pub fn build_for_until<T: Real>(
    which: Preconditioner,
    method: &Method,
    device: &Device,
    a: &(impl AsCsr<T> + ?Sized),
    partition: Option<&Partition>,
    deadline: Option<Instant>,
) -> Result<Built<T>> {
    let a = &*a.as_csr()?;
    if method.takes_rectangles() {
        which.build_for_least_squares_until(device, a, partition, deadline)
    } else {
        which.build_until(device, a, partition, deadline)
    }
}

/// A preconditioner that was tried, and how that ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Attempt {
    /// The preconditioner; `None` is none.
    pub which: Option<Preconditioner>,
    /// End of the solve, or the reason why it could not be made.
    pub end: std::result::Result<Stop, String>,
    /// Iterations.
    pub iterations: usize,
    /// Seconds of its set-up and its solve, without building programs.
    pub seconds: f64,
    /// True if rows and columns were scaled ([`solve_scaled_with_fallbacks`](super::solve_scaled_with_fallbacks)).
    pub scaled: bool,
    /// True if a null space was kept out of the solve.
    pub projected: bool,
    /// True if the solve went on with what an earlier one had left of the residual ([`solve_scaled_with_fallbacks`](super::solve_scaled_with_fallbacks)).
    pub refines: bool,
}

impl Attempt {
    /// A solve with `which`, made before, for what is left of the residual.
    pub(super) fn refined(which: Option<Preconditioner>, report: &Report) -> Self {
        Self { refines: true, ..Self::new(which, Ok(report), 0.0) }
    }

    fn new(which: Option<Preconditioner>, end: std::result::Result<&Report, &Error>, setup_seconds: f64) -> Self {
        let solve_seconds = end.map_or(0.0, |report| report.times.solve + report.times.verify);
        Self {
            which,
            end: end.map(|report| report.stop).map_err(Error::to_string),
            iterations: end.map_or(0, |report| report.iterations),
            seconds: setup_seconds + solve_seconds,
            scaled: false,
            projected: end.is_ok_and(|report| report.projected.is_some()),
            refines: false,
        }
    }
}

impl Display for Attempt {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        let mut name = self.which.map_or("none".into(), |which| which.to_string());
        if self.scaled {
            name += ", rows and columns scaled";
        }
        if self.projected {
            name += ", without the null space";
        }
        if self.refines {
            name += ", for what was left of the residual";
        }
        match &self.end {
            Ok(stop) => write!(f, "{name}: {stop} after {} iterations, {:.3} s", self.iterations, self.seconds),
            Err(why) => write!(f, "{name}: {why}"),
        }
    }
}

/// A solve with the preconditioner that succeeded, or with the one that came nearest if none did.
///
/// ```
/// use std::ops::ControlFlow;
///
/// use residuum::sparse::gallery;
/// use residuum::{Device, Examination, Format, Matrix, Precision, Setup, Stopping, Vector, solve_with_fallbacks};
///
/// let device = Device::best()?;
/// let a = gallery::poisson_2d::<f64>(20, 0.0)?;
/// let advice = Examination::quick(&a)?.advise(Precision::Double);
/// let matrix = Matrix::new(&device, &a, Format::Auto)?;
/// let (b, mut x) = (Vector::filled(&device, 400, 1.0)?, Vector::zeros(&device, 400)?);
/// let setup = Setup::new(advice.method, Stopping::for_precision::<f64>());
/// let solved = solve_with_fallbacks((&matrix, &a, None), &setup, &advice.chain, (&b, &mut x), &mut |_| ControlFlow::Continue(()))?;
/// solved.attempts.iter().for_each(|attempt| println!("{attempt}"));
/// assert!(solved.report.converged());
/// # Ok::<(), residuum::Error>(())
/// ```
#[non_exhaustive]
pub struct FallbackSolve<T: Real> {
    /// Report of the solve that gave the answer.
    pub report: Report,
    /// Preconditioner of that solve; `None` is none.
    pub which: Option<Preconditioner>,
    /// The preconditioner as it was made, for solves that follow ([`Setup::preconditioner`]).
    pub built: Option<Built<T>>,
    /// All that were tried, in their order.
    pub attempts: Vec<Attempt>,
}

impl<T: Real> FallbackSolve<T> {
    /// Seconds of all set-ups and solves, without building programs.
    pub fn seconds(&self) -> f64 {
        self.attempts.iter().map(|attempt| attempt.seconds).sum()
    }
}

/// One preconditioner after another.
pub(super) fn try_chain<T: Real>(
    (matrix, a, partition): (&Matrix<T>, &Csr<T>, Option<&Partition>),
    setup: &Setup<T>,
    chain: &[Option<Preconditioner>],
    (b, x): (&Vector<T>, &mut Vector<T>),
    observer: &mut Observer<'_>,
) -> Result<FallbackSolve<T>> {
    let clock = Instant::now();
    let mut attempts: Vec<Attempt> = Vec::with_capacity(chain.len());
    let mut best: Option<(Report, Option<Preconditioner>, Option<Built<T>>)> = None;
    let mut refused = Error::Option { name: "preconditioner", reason: "a chain of none".into() };
    let mut left: VecDeque<_> = chain.iter().map(|which| (*which, patience(setup, *which, matrix))).collect();
    // Slow ones, with the part of the residual that they have left.
    let mut slow: Vec<(f64, Option<Preconditioner>)> = Vec::new();
    let deadline = setup.stopping.time_limit.and_then(|limit| clock.checked_add(limit));
    loop {
        let remaining =
            setup.stopping.max_iterations - attempts.iter().map(|attempt| attempt.iterations).sum::<usize>();
        if let Some((held, ..)) = best.as_mut().filter(|(held, ..)| remaining == 0 && held.stop == Stop::Slow) {
            held.stop = Stop::MaxIterations;
            break;
        }
        let is_first_time = !left.is_empty();
        let next = left.pop_front().or_else(|| {
            let most = (0..slow.len()).min_by(|i, j| slow[*i].0.total_cmp(&slow[*j].0))?;
            Some((slow.remove(most).1, None))
        });
        let Some((which, patience)) = next else { break };
        let begin = Instant::now();
        let build = |which| build_for_until(which, &setup.method, matrix.device(), a, partition, deadline);
        let built = match which.map(build).transpose() {
            Ok(built) => built,
            Err(error) => {
                attempts.push(Attempt::new(which, Err(&error), begin.elapsed().as_secs_f64()));
                refused = error;
                continue;
            }
        };
        let setup_seconds = built.as_ref().map_or(0.0, |built| built.seconds);
        let mut setup = setup.clone();
        setup.preconditioner = built.as_ref().map(|built| built.operator.clone());
        // Only for something else is anything left.
        let is_last = left.is_empty() && slow.is_empty();
        let shares = is_first_time && !is_last && !stands_alone(&setup.method);
        let share = if shares { (remaining / 2).max(LEAST_SHARE).min(remaining) } else { remaining };
        setup.stopping.max_iterations = share;
        setup.stopping.time_limit = setup.stopping.time_limit.map(|limit| limit.saturating_sub(clock.elapsed()));
        setup.stopping.patience = patience.filter(|_| !is_last);
        let mut solved = Solver::with(matrix, setup).and_then(|mut solver| solver.solve_observed(b, x, observer));
        match &mut solved {
            Ok(report) if share < remaining && report.stop == Stop::MaxIterations => report.stop = Stop::Slow,
            _ => {}
        }
        attempts.push(Attempt::new(which, solved.as_ref(), setup_seconds));
        let report = match solved {
            Ok(report) => report,
            // Without memory for this one, say; an answer from before is not thrown away.
            Err(error) => {
                refused = error;
                continue;
            }
        };
        if report.stop == Stop::Slow {
            let first = report.history.first().copied().unwrap_or(f64::NAN);
            slow.push((report.true_residual / first, which));
        }
        let fails = report.stop.failed();
        // An answer is never worse than the start it was found from: the last that is better is the one in `x`.
        let better = best.as_ref().is_none_or(|(held, ..)| report.true_residual < held.true_residual);
        if better || !fails {
            best = Some((report, which, built));
        }
        if !fails {
            break;
        }
    }
    let (report, which, built) = best.ok_or(refused)?;
    Ok(FallbackSolve { report, which, built, attempts })
}

/// Iterations after which a slow solve with `which` is left.
fn patience<T: Real>(setup: &Setup<T>, which: Option<Preconditioner>, matrix: &Matrix<T>) -> Option<usize> {
    let plain = matches!(which, None | Some(Preconditioner::Jacobi));
    let usual = match matrix.device().info().kind {
        DeviceKind::Cpu | DeviceKind::Host => PATIENCE,
        DeviceKind::Gpu | DeviceKind::Accelerator => PATIENCE_ELSEWHERE.max(matrix.rows() / ROWS_TO_WAIT_FOR),
    };
    setup.stopping.patience.or_else(|| (plain || !stands_alone(&setup.method)).then_some(usual))
}

/// Tells if a preconditioner beyond Jacobi's is better for `method` than any that follow, and plain solves gain pace as they go.
fn stands_alone(method: &Method) -> bool {
    matches!(method, Method::Cg | Method::FlexibleCg | Method::Minres)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examine::solve_with_fallbacks;
    use crate::solver::Stopping;
    use crate::sparse::{Format, gallery};

    fn dense(rows: &[&[f64]]) -> Csr<f64> {
        let entries =
            rows.iter().enumerate().flat_map(|(i, row)| row.iter().enumerate().map(move |(j, v)| (i, j, *v)));
        let entries: Vec<_> = entries.filter(|entry| entry.2 != 0.0).collect();
        Csr::from_triplets(rows.len(), rows[0].len(), &entries).unwrap()
    }

    #[test]
    fn a_chain_follows_matrix_and_method() {
        let (jacobi, gmres) = (Some(Preconditioner::Jacobi), Method::Gmres { restart: 30 });
        let even = Examination::of(&gallery::poisson_2d::<f64>(5, 0.0).unwrap()).unwrap();
        let uneven = Examination::of(&dense(&[&[9.0, 1.0], &[1.0, 3.0]])).unwrap();
        let lopsided = Examination::of(&dense(&[&[9.0, 1.0], &[2.0, 3.0]])).unwrap();
        let indefinite = Examination::of(&dense(&[&[9.0, 1.0], &[1.0, -3.0]])).unwrap();
        let zero = Examination::of(&dense(&[&[0.0, 1.0], &[2.0, 3.0]])).unwrap();
        for (found, method, first, all) in [
            (&even, Method::Cg, None, 4),
            (&uneven, Method::Cg, jacobi, 4),
            (&uneven, Method::Minres, jacobi, 2),
            (&indefinite, Method::Minres, None, 1),
            (&uneven, Method::BiCgStab, jacobi, 3),
            (&even, Method::Stationary { omega: 1.0 }, jacobi, 2),
            (&lopsided, gmres, jacobi, 3),
            (&indefinite, Method::Cg, None, 1),
            (&indefinite, gmres, None, 1),
            (&zero, gmres, None, 1),
            (&zero, Method::Lsqr { damp: 0.0 }, None, 2),
            (&zero, Method::Cgne, None, 1),
        ] {
            let chain = found.fallback_chain(&method);
            assert_eq!((chain[0], chain.len()), (first, all), "{method} {chain:?}");
        }
        assert!(even.candidates(&Method::Cg).len() > lopsided.candidates(&gmres).len());
    }

    #[test]
    fn what_is_slow_is_left_for_something_else() {
        let a = gallery::poisson_2d::<f64>(30, 0.0).unwrap();
        let device = Device::host();
        let matrix = Matrix::new(&device, &a, Format::Csr).unwrap();
        let b = Vector::from_slice(&device, &vec![1.0; a.rows()]).unwrap();
        let run = |patience, chain: &[Option<Preconditioner>]| {
            let mut x = Vector::zeros(&device, a.rows()).unwrap();
            let watch = &mut |_: &_| std::ops::ControlFlow::Continue(());
            let stopping = Stopping { patience, ..Stopping::for_precision::<f64>() };
            solve_with_fallbacks((&matrix, &a, None), &Setup::new(Method::Cg, stopping), chain, (&b, &mut x), watch)
                .unwrap()
        };
        let FallbackSolve { report, which, attempts, .. } = run(Some(9), &[None, Some(ADAPTIVE_FSAI)]);
        assert!(report.converged(), "{report}");
        assert_eq!((which, attempts.len()), (Some(ADAPTIVE_FSAI), 2));
        assert_eq!((&attempts[0].end, attempts[0].iterations), (&Ok(Stop::Slow), 9), "{}", attempts[0]);
        // 150 iterations are enough for this one; and without something else nothing is too slow.
        assert_eq!(run(None, &[None, Some(ADAPTIVE_FSAI)]).attempts.len(), 1);
        assert_eq!(run(Some(5), &[None]).attempts.len(), 1);
        // Nothing else can be made.
        let wrong = Some(Preconditioner::Fsai(FsaiOptions::power(99)));
        let FallbackSolve { report, which, attempts, .. } = run(Some(5), &[None, wrong]);
        assert!(report.converged(), "{report}");
        assert_eq!((which, attempts.len(), attempts[0].iterations), (None, 3, 5));
        assert!(attempts[1].end.is_err() && attempts[2].iterations > 5, "{} {}", attempts[1], attempts[2]);
    }

    /// D. S. Kershaw's example, J. Comput. Phys. 26 (1978): positive definite, and a pivot of its incomplete factors is negative.
    #[test]
    fn what_fails_is_followed_by_the_next() {
        let a = dense(&[
            &[3.0, -2.0, 0.0, 2.0],
            &[-2.0, 3.0, -2.0, 0.0],
            &[0.0, -2.0, 3.0, -2.0],
            &[2.0, 0.0, -2.0, 3.0],
        ]);
        let device = Device::host();
        let matrix = Matrix::new(&device, &a, Format::Csr).unwrap();
        let b = Vector::from_slice(&device, &[1.0, -2.0, 0.5, 7.0]).unwrap();
        let run = |chain: &[Option<Preconditioner>], stopping: Stopping| {
            let mut x = Vector::zeros(&device, 4).unwrap();
            let watch = &mut |_: &_| std::ops::ControlFlow::Continue(());
            let outcome = solve_with_fallbacks(
                (&matrix, &a, None),
                &Setup::new(Method::Cg, stopping),
                chain,
                (&b, &mut x),
                watch,
            );
            (outcome, x.to_vec().unwrap())
        };
        let bad = [
            Some(Preconditioner::Incomplete(IncompleteOptions::new(Factorisation::Cholesky).with_shift(Some(0.0)))),
            Some(Preconditioner::Incomplete(IncompleteOptions::new(Factorisation::Lu).with_shift(Some(0.0)))),
        ];
        let chain = [bad[0], bad[1], Some(Preconditioner::Jacobi), None];
        let (solved, x) = run(&chain, Stopping::for_precision::<f64>());
        let FallbackSolve { report, which, built, attempts } = solved.unwrap();
        assert!(report.converged() && built.is_some(), "{report}");
        assert_eq!((which, attempts.len()), (chain[2], 3), "the last was not needed");
        assert!(matches!(&attempts[0].end, Err(why) if why.contains("pivot")), "{}", attempts[0]);
        assert_eq!(attempts[1].end, Ok(Stop::IndefinitePreconditioner), "{}", attempts[1]);
        let product = a.product(&x).unwrap();
        assert!(product.iter().zip([1.0, -2.0, 0.5, 7.0]).all(|(p, b)| (p - b).abs() < 1e-7), "{product:?}");
        // A limit is no failure; where nothing can be made the error says why.
        let (limited, _) = run(&[None, Some(Preconditioner::Jacobi)], Stopping::after(1));
        assert_eq!(limited.unwrap().attempts.len(), 1);
        assert!(matches!(run(&bad[..1], Stopping::after(1)).0, Err(Error::Structure { .. })));
        assert!(matches!(run(&[], Stopping::after(1)).0, Err(Error::Option { .. })));
    }
}
