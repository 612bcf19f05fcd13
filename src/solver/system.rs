//! Steps of every solve around its iterations. Before them: norms, scaling, limits. After them: the answer in the
//! units of the caller.

use std::time::Instant;

use super::method::Method;
use super::run::{Ended, Observer, Outcome, Report, Runner, Stop, Task, Times};
use super::scaling::{Reach, Scaling, needed, rescaled};
use super::stopping::{Limits, Scales, Stopping};
use super::weight::ChosenWeight;
use crate::error::{Error, Result, same_length};
use crate::magnitude::{Magnitude, scale};
use crate::number::{Real, per_number};
use crate::operator::{LinearOperator, SharedOperator, estimate_norm, magnitude};
use crate::vector::{Vector, least_square};

/// An operator, how its systems are scaled, and what their tests are measured by.
pub(super) struct System<T: Real> {
    operator: SharedOperator<T>,
    columns: usize,
    reach: Reach,
    scaling: Scaling<T>,
    /// True if 0 is the answer for `b = 0`, wherever it starts.
    square: bool,
    /// Magnitude of the operator alone, without damping.
    magnitude: Magnitude,
    /// The norm that the operator says it has, as it was last asked.
    known: Option<Magnitude>,
    /// Damping, or the root of all weights of a regularization; `None` if no norm was asked for.
    damp: Option<f64>,
    /// The norm of the scaled operator, or an upper bound of it; 0 if it is not known or not asked for.
    norm: f64,
    /// The norm with damping or weights.
    stacked: f64,
    /// The reference point, as it was given, and the exponents it was last scaled by.
    reference: Option<(Vec<T>, Vec<i32>)>,
}

/// Limits and scaling of one solve.
struct Given<'s> {
    stopping: &'s Stopping,
    limits: Vec<Limits>,
    /// By which powers of two `b` is multiplied.
    exponents: Vec<i32>,
    /// By which powers of two `x` is multiplied.
    shifts: Vec<i32>,
}

per_number! {
    /// Solves by `method` from the start guess in `x`, and leaves the answer there: a report for each column.
    pub(super) fn solve<T>(
        system: &mut System<T>,
        method: Method,
        runner: &mut Runner<T>,
        stopping: &Stopping,
        b: &Vector<T>,
        x: &mut Vector<T>,
        observer: &mut Observer<'_>,
    ) -> Result<Vec<Report>> = solve_here;
}

fn solve_here<T: Real>(
    system: &mut System<T>,
    method: Method,
    runner: &mut Runner<T>,
    stopping: &Stopping,
    b: &Vector<T>,
    x: &mut Vector<T>,
    observer: &mut Observer<'_>,
) -> Result<Vec<Report>> {
    let (operator, columns) = (system.operator.clone(), system.columns);
    let device = operator.device();
    system.check_lengths(b, x)?;
    let (begin, built) = (Instant::now(), device.programs().seconds);
    system.refresh()?;
    let norms = finite_norms(b, columns, "the right-hand side")?;
    let starts = system.start(&norms, x)?;
    let exponents: Vec<i32> =
        norms.iter().zip(&starts).map(|(rhs, start)| system.scaling.column(*rhs, *start)).collect();
    let shifts: Vec<i32> = exponents.iter().map(|k| k - system.exponent()).collect();
    let scaled = shifts.iter().any(|shift| *shift != 0);
    // The start, to come back to where the answer is out of range.
    let original = if scaled { Some(x.to_vec()?) } else { None };
    // MINRES stops by its gradient if there is no solution, not before it has found one.
    let gradient_rtol = if system.square { stopping.gradient_rtol.min(T::EPSILON) } else { stopping.gradient_rtol };
    let stopping = &Stopping { gradient_rtol, ..stopping.clone() };
    let limits = norms.iter().zip(&starts).zip(&exponents).map(|((rhs, start), k)| {
        let scales = Scales {
            rhs: rhs.scaled(*k).to_f64(),
            norm: system.norm,
            stacked: system.stacked,
            from_zero: start.value == 0.0,
            epsilon: T::EPSILON,
            square: system.square,
            least_square: least_square::<T>(device.accumulation(T::PRECISION)),
            exponents: [*k, system.exponent()],
        };
        Limits::new(stopping, scales)
    });
    let limits = limits.collect();
    let given = Given { stopping, limits, exponents, shifts };
    let solved = solve_scaled(system, runner, &given, b, (x, original.as_deref()), observer);
    if let (Err(_), Some(original)) = (&solved, &original) {
        // The start guess in the units of the caller, as far as the device still takes it; the first error is the one to tell.
        let _ = x.write(original);
    }
    let (Ended { outcomes, seconds: solve, .. }, weights) = solved?;
    let compile = device.programs().seconds - built;
    let verify = (begin.elapsed().as_secs_f64() - compile - solve).max(0.0);
    let times = Times { compile, solve, verify };
    let (launches, least_squares) = (runner.launches(), runner.least_squares());
    let report = |(outcome, norm): (Outcome, &Magnitude)| {
        Report::new(method, &*operator, launches, outcome, norm.to_f64(), times, least_squares)
    };
    let weighed = |(report, weight): (Report, _)| Report { weight, ..report };
    Ok(outcomes.into_iter().zip(&norms).map(report).zip(weights).map(weighed).collect())
}

/// Solves in the units of `given`. `original` is the start guess if those are not the units of the caller.
fn solve_scaled<T: Real>(
    system: &mut System<T>,
    runner: &mut Runner<T>,
    given: &Given<'_>,
    b: &Vector<T>,
    (x, original): (&mut Vector<T>, Option<&[T]>),
    observer: &mut Observer<'_>,
) -> Result<(Ended, Vec<Option<ChosenWeight>>)> {
    if original.is_some() {
        x.scale_columns(&given.shifts)?;
    }
    system.scale_reference(runner, &given.shifts)?;
    runner.probe(&system.operator, system.columns)?;
    let b = system.scaling.scaled(b, &given.exponents)?;
    let task = Task { stopping: given.stopping, limits: &given.limits, b };
    let mut ended = runner.solve(&task, x, observer)?;
    let weights = given.limits.iter().enumerate().map(|(c, limits)| runner.chosen(c, limits)).collect();
    look_again(runner, &mut ended)?;
    if let Some(original) = original {
        in_given_units(runner, given, b, (x, original), &mut ended)?;
    }
    Ok((ended, weights))
}

impl<T: Real> System<T> {
    /// `squares` says that vectors of the method hold products with `A` twice, or with `A` and its adjoint.
    fn new(
        operator: &SharedOperator<T>,
        columns: usize,
        [with_adjoint, squares]: [bool; 2],
        damp: f64,
    ) -> Result<Self> {
        let reach = Reach::of::<T>(operator.device().accumulation(T::PRECISION), squares);
        let magnitude = magnitude(&**operator)?;
        let scaling = Scaling::new(magnitude.stacked(Magnitude::of(damp)), &reach);
        Ok(Self {
            operator: operator.clone(),
            columns,
            reach,
            scaling,
            square: !with_adjoint,
            magnitude,
            known: known_norm(&**operator),
            damp: None,
            norm: 0.0,
            stacked: 0.0,
            reference: None,
        })
    }

    pub(super) fn check_lengths(&self, b: &Vector<T>, x: &Vector<T>) -> Result<()> {
        same_length("right-hand side", self.operator.rows() * self.columns, b.len())?;
        same_length("start guess", self.operator.cols() * self.columns, x.len())
    }

    /// System for methods that multiply by `A` alone; `squares` if their vectors hold `A A x`.
    pub(super) fn of_square(operator: &SharedOperator<T>, columns: usize, squares: bool) -> Result<Self> {
        Self::new(operator, columns, [false, squares], 0.0)
    }

    /// System for methods that multiply by the adjoint as well, and look at the residual alone.
    pub(super) fn of_rectangle(operator: &SharedOperator<T>, columns: usize) -> Result<Self> {
        Self::new(operator, columns, [true; 2], 0.0)
    }

    /// System for least squares; `damp` is that of the method, or the root of all weights of a regularization.
    pub(super) fn of_least_squares(operator: &SharedOperator<T>, columns: usize, damp: f64) -> Result<Self> {
        let mut system = Self::new(operator, columns, [true; 2], damp)?.with_norm()?;
        system.damp = Some(damp);
        system.stacked = libm::hypot(system.norm, scale(damp, system.exponent()));
        Ok(system)
    }

    /// With the norm of the operator, estimated if it knows none and has an adjoint.
    pub(super) fn with_norm(mut self) -> Result<Self> {
        self.damp = Some(0.0);
        self.take_known_norm();
        if self.norm == 0.0 && self.operator.has_adjoint() {
            let scaled = rescaled(&self.operator, self.exponent(), 1)?;
            let norm = estimate_norm(&*scaled, 10)?;
            self.norm = if norm.is_finite() { norm } else { 0.0 };
            self.stacked = self.norm;
        }
        Ok(self)
    }

    /// Takes the norm that the operator knows. One that overflowed, or is not known, is 0: no test of a gradient passes by it.
    fn take_known_norm(&mut self) {
        let scaled = self.known.map_or(0.0, |norm| norm.scaled(self.exponent()).to_f64());
        self.norm = if scaled.is_finite() { scaled } else { 0.0 };
        self.stacked = self.norm;
    }

    /// Asks the operator for its norm again, because its values may be others than in the last solve.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the new values need a scaling that the solver was not set up for.
    fn refresh(&mut self) -> Result<()> {
        let known = known_norm(&*self.operator);
        let (Some(found), false) = (known, known == self.known) else { return Ok(()) };
        let damp = self.damp.unwrap_or(0.0);
        if !self.scaling.follow(found.stacked(Magnitude::of(damp)), &self.reach) {
            return Err(out_of_scale("matrix", "its new values"));
        }
        (self.known, self.magnitude) = (known, found);
        if self.damp.is_some() {
            self.take_known_norm();
            self.stacked = libm::hypot(self.norm, scale(damp, self.exponent()));
        }
        Ok(())
    }

    /// Takes other damping, or other weights of a regularization.
    ///
    /// # Errors
    /// [`Error::Conflict`] if they need a scaling that the solver was not set up for.
    pub(super) fn set_damp(&mut self, damp: f64) -> Result<()> {
        if !self.scaling.follow(self.magnitude.stacked(Magnitude::of(damp)), &self.reach) {
            return Err(out_of_scale("regularizations", "the weights"));
        }
        self.damp = Some(damp);
        self.stacked = libm::hypot(self.norm, scale(damp, self.exponent()));
        Ok(())
    }

    pub(super) fn operator(&self) -> &SharedOperator<T> {
        &self.operator
    }

    /// The norm of the operator as it was given, or an upper bound of it; 0 if it is not known.
    pub(super) fn operator_norm(&self) -> f64 {
        scale(self.norm, -self.exponent())
    }

    /// The operator is multiplied by 2 to this power.
    pub(super) fn exponent(&self) -> i32 {
        self.scaling.operator
    }

    /// The exponent that a preconditioner needs by its own magnitude: no method cares how large one is.
    pub(super) fn needed_by(&self, preconditioner: &dyn LinearOperator<T>) -> Result<i32> {
        Ok(needed(magnitude(preconditioner)?.exponent(), &self.reach.operator))
    }

    /// Fails if the values of a preconditioner that knows its norm need another exponent by now.
    ///
    /// # Errors
    /// [`Error::Conflict`].
    pub(super) fn check_preconditioner(&self, preconditioner: &dyn LinearOperator<T>, exponent: i32) -> Result<()> {
        match known_norm(preconditioner) {
            Some(norm) if needed(norm.exponent(), &self.reach.operator) != exponent => {
                Err(out_of_scale("preconditioner", "its new values"))
            }
            _ => Ok(()),
        }
    }

    /// Keeps a reference point that the method was given, to scale it with the right-hand side.
    pub(super) fn set_reference(&mut self, reference: &Vector<T>) -> Result<()> {
        self.reference = Some((reference.to_vec()?, vec![0; self.columns]));
        Ok(())
    }

    /// Norms of the columns of the start guess. Where 0 is the answer, it is put there: the limit of a residual is 0 then, which
    /// no iteration would reach from elsewhere.
    fn start(&self, norms: &[Magnitude], x: &mut Vector<T>) -> Result<Vec<Magnitude>> {
        let columns = self.columns;
        let solved: Vec<bool> = norms.iter().map(|rhs| self.square && rhs.value == 0.0).collect();
        let zero = Magnitude::of(0.0);
        let unscaled = |rhs: &Magnitude| rhs.value != 0.0 && self.scaling.column(*rhs, zero) == 0;
        // Most starts are 0. One whose squares vanish is as good as that if nothing is scaled, unless 0 is the answer.
        if self.exponent() == 0 && norms.iter().all(unscaled) && x.dot(x)? == 0.0 {
            return Ok(vec![zero; columns]);
        }
        let mut starts = finite_norms(x, columns, "the start guess")?;
        if solved.iter().all(|solved| *solved) {
            x.fill(T::default())?;
        } else if solved.contains(&true) {
            let mut data = x.to_vec()?;
            for (v, solved) in data.iter_mut().zip(solved.iter().cycle()) {
                if *solved {
                    *v = T::default();
                }
            }
            x.write(&data)?;
        }
        for (start, solved) in starts.iter_mut().zip(solved) {
            if solved {
                *start = zero;
            }
        }
        Ok(starts)
    }

    /// Gives the method the reference point in the units of this solve.
    fn scale_reference(&mut self, runner: &mut Runner<T>, shifts: &[i32]) -> Result<()> {
        let Some((data, held)) = &mut self.reference else { return Ok(()) };
        if held == shifts {
            return Ok(());
        }
        let mut reference = Vector::from_slice(self.operator.device(), data)?;
        reference.scale_columns(shifts)?;
        held.copy_from_slice(shifts);
        runner.set_reference(&reference)
    }
}

/// Refusal of numbers that need another scaling than that of the set-up.
fn out_of_scale(name: &'static str, what: &str) -> Error {
    Error::Conflict { name, reason: format!("{what} are of another order of magnitude: set the solver up again") }
}

/// The norm that an operator says it has.
fn known_norm<T: Real>(operator: &dyn LinearOperator<T>) -> Option<Magnitude> {
    match operator.as_matrix() {
        Some(matrix) => Some(matrix.frobenius()),
        None => operator.norm_bound().map(Magnitude::of),
    }
}

/// Norms of the interleaved columns of a vector of the caller, called `what`.
///
/// # Errors
/// [`Error::NotFinite`] with the place of a value that is not finite.
pub(super) fn finite_norms<T: Real>(v: &Vector<T>, columns: usize, what: &str) -> Result<Vec<Magnitude>> {
    let norms = v.column_norms(columns)?;
    if norms.iter().all(|norm| norm.to_f64().is_finite()) {
        return Ok(norms);
    }
    Err(not_finite(&v.to_vec()?, columns, what))
}

/// The error of a vector whose norm is not finite.
pub(super) fn not_finite<T: Real>(v: &[T], columns: usize, what: &str) -> Error {
    match v.iter().position(|v| !v.is_finite()) {
        Some(at) if columns > 1 => {
            Error::NotFinite { what: format!("column {} of {what}", at % columns), index: at / columns }
        }
        Some(index) => Error::NotFinite { what: what.into(), index },
        None => {
            let reason = format!("the norm of {what} is above the largest number of fp64: take another unit");
            Error::Option { name: "vector", reason }
        }
    }
}

/// Squares of residuals below a limit that is next to nothing may have vanished although the residuals did not: their norms
/// are then computed with an exponent of their own.
fn look_again<T: Real>(runner: &mut Runner<T>, Ended { outcomes, limits, .. }: &mut Ended) -> Result<()> {
    let doubtful = |(outcome, limits): (&Outcome, &Limits)| outcome.stop == Stop::Converged && !limits.is_certain();
    if !outcomes.iter().zip(&*limits).any(doubtful) {
        return Ok(());
    }
    let norms = runner.residual().column_norms(outcomes.len())?;
    for ((outcome, limits), norm) in outcomes.iter_mut().zip(limits).zip(norms) {
        if !doubtful((outcome, limits)) {
            continue;
        }
        let norm = norm.to_f64();
        outcome.true_residual = scale(norm, -limits.exponents[0]);
        if norm > limits.residual_norm {
            outcome.stop = Stop::Stagnated;
        }
    }
    Ok(())
}

/// Brings the answers in `x` back to the units of the caller. Where that rounds, because `T` does not reach so far, what the
/// rounded answer leaves of the residual decides; if it overflows, the start is returned.
fn in_given_units<T: Real>(
    runner: &mut Runner<T>,
    given: &Given<'_>,
    b: &Vector<T>,
    (x, original): (&mut Vector<T>, &[T]),
    Ended { outcomes, limits, .. }: &mut Ended,
) -> Result<()> {
    let columns = outcomes.len();
    let back: Vec<i32> = given.shifts.iter().map(|shift| -shift).collect();
    let before = x.to_vec()?;
    x.scale_columns(&back)?;
    let mut answer = x.to_vec()?;
    let mut again = answer.clone();
    let (mut rounded, mut lost) = (vec![false; columns], vec![false; columns]);
    let in_units_of_solve = |v: T, c: usize| T::from_f64(scale(v.to_f64(), given.shifts[c]));
    for (i, (here, there)) in again.iter_mut().zip(&before).enumerate() {
        let c = i % columns;
        *here = in_units_of_solve(*here, c);
        rounded[c] |= *here != *there;
        lost[c] |= !answer[i].is_finite() && there.is_finite();
    }
    if rounded.contains(&true) {
        // One more verified start, from what was rounded, and from the start where the answer is lost.
        for (i, here) in again.iter_mut().enumerate() {
            let c = i % columns;
            if lost[c] {
                answer[i] = original[i];
                *here = in_units_of_solve(original[i], c);
            } else if !rounded[c] {
                *here = before[i];
            }
        }
        x.write(&again)?;
        let verified = runner.verify(&Task { stopping: given.stopping, limits, b }, x)?;
        if lost.contains(&true) {
            // A method may have cut the start at bounds: what it has looked at is returned.
            for (i, (here, there)) in again.iter().zip(x.to_vec()?).enumerate().filter(|(i, _)| lost[i % columns]) {
                if *here != there {
                    answer[i] = T::from_f64(scale(there.to_f64(), back[i % columns]));
                }
            }
        }
        for (c, verified) in verified.into_iter().enumerate().filter(|(c, _)| rounded[*c]) {
            let outcome = &mut outcomes[c];
            (outcome.true_residual, outcome.gradient) = (verified.true_residual, verified.gradient);
            let claimed = matches!(outcome.stop, Stop::Converged | Stop::LeastSquares);
            if lost[c] {
                (outcome.stop, outcome.answer) = (Stop::NotFinite, 0);
            } else if claimed && !matches!(verified.stop, Stop::Converged | Stop::LeastSquares) {
                outcome.stop = Stop::Stagnated;
            }
        }
    }
    x.write(&answer)
}
