//! A solve with one preconditioner after another, and what follows if all fail.

use std::time::Instant;

use super::chain::{FallbackSolve, try_chain};
use super::resort;
use crate::error::Result;
use crate::matrix::Matrix;
use crate::number::{Real, per_number};
use crate::precond::Preconditioner;
use crate::solver::{Observer, Setup};
use crate::sparse::{AsCsr, Csr, Partition};
use crate::vector::Vector;

/// Solves `A x = b` with the preconditioners of `chain`, one after another, until a solve converges. `system` is the matrix, what it
/// was made of, and a partition of its rows for `bainv`, if one is known; `vectors` are `b` and `x`; the preconditioner of `setup` is not used.
///
/// The next one is taken, from the best answer so far, if one cannot be made, if its solve stagnates, breaks down, or finds it indefinite, or if its
/// solve is slow, as [`Stopping::patience`](crate::Stopping::patience) says, by default after 150 iterations on CPUs, and after 1000 or one for 40 rows
/// elsewhere (for conjugate gradients and MINRES, only none and Jacobi's are ever slow). Other methods than these leave it as slow too if it has taken half
/// of the iterations that are left, and at least 1000. Slow ones are taken up again after the last, first the one that had gained most. A solve that ends by another limit of [`Setup::stopping`] or its observer is the last. Iterations and time, that of set-ups
/// too, are limited for all of them together. `x` is the start guess and then the best answer; [`Stopping::residual_reduction`](crate::Stopping::residual_reduction) is a part
/// of its residual in all solves.
///
/// If none converges, a square system is looked at once more. A symmetric one that has no solution ends with
/// [`Stop::LeastSquares`](crate::Stop::LeastSquares): its null space, the constants or the part of `b` that it takes to 0, is kept out of the solve, and
/// [`Report::projected`](crate::Report::projected) is the part of `b` in it. Any other is solved with rows and columns scaled ([`solve_scaled_with_fallbacks`](super::solve_scaled_with_fallbacks)), from the best answer so far;
/// so is one whose end as least squares its rows do not confirm. An answer whose residual is rounding in every row ends with
/// [`Stop::Rounded`](crate::Stop::Rounded).
///
/// # Errors
/// [`Error::Option`](crate::Error::Option) for an empty chain; [`Error::Structure`](crate::Error::Structure) for a matrix of `sprs` with a dimension beyond 32 bits; errors of making a preconditioner, [`Error::OutOfTime`](crate::Error::OutOfTime) among them, of [`Solver::with`](crate::Solver::with) and of a solve if no solve gave an answer.
pub fn solve_with_fallbacks<T: Real>(
    system: (&Matrix<T>, &(impl AsCsr<T> + ?Sized), Option<&Partition>),
    setup: &Setup<T>,
    chain: &[Option<Preconditioner>],
    vectors: (&Vector<T>, &mut Vector<T>),
    observer: &mut Observer<'_>,
) -> Result<FallbackSolve<T>> {
    let (matrix, a, partition) = system;
    once((matrix, &*a.as_csr()?, partition), setup, chain, vectors, observer)
}

per_number! {
    fn once<T>(
        system: (&Matrix<T>, &Csr<T>, Option<&Partition>), setup: &Setup<T>, chain: &[Option<Preconditioner>],
        vectors: (&Vector<T>, &mut Vector<T>), observer: &mut Observer<'_>
    ) -> Result<FallbackSolve<T>> = here;
}

fn here<T: Real>(
    system: (&Matrix<T>, &Csr<T>, Option<&Partition>),
    setup: &Setup<T>,
    chain: &[Option<Preconditioner>],
    (b, x): (&Vector<T>, &mut Vector<T>),
    observer: &mut Observer<'_>,
) -> Result<FallbackSolve<T>> {
    let clock = Instant::now();
    let absolute = with_absolute_limit(system.0, setup, (b, x))?;
    let setup = absolute.as_ref().unwrap_or(setup);
    let without_constants = resort::without_constants(system.1, setup, b)?;
    let setup = without_constants.as_ref().unwrap_or(setup);
    let mut outcome = resort::told_whole(try_chain(system, setup, chain, (b, &mut *x), observer)?, setup);
    resort::go_on(system, setup, chain, (b, x), &clock, observer, &mut outcome)?;
    Ok(outcome)
}

/// The set-up with a limit of the residual that is a part of the first one as a number: each solve has a first residual of its own.
fn with_absolute_limit<T: Real>(
    matrix: &Matrix<T>,
    setup: &Setup<T>,
    (b, x): (&Vector<T>, &Vector<T>),
) -> Result<Option<Setup<T>>> {
    if setup.stopping.residual_reduction == 0.0 {
        return Ok(None);
    }
    let mut residual = Vector::zeros(matrix.device(), matrix.rows())?;
    matrix.multiply(x, &mut residual)?;
    residual.axpby(T::from_f64(1.0), b, T::from_f64(-1.0))?;
    let mut setup = setup.clone();
    let first = setup.stopping.residual_reduction * residual.norm2()?;
    (setup.stopping.atol, setup.stopping.residual_reduction) = (setup.stopping.atol.max(first), 0.0);
    Ok(Some(setup))
}
