//! Setting a method up, and solving with it.

use std::ops::ControlFlow;

use super::correction::{Correction, check_corrections, damp};
use super::driver::Observer;
use super::engine;
use super::method::{Method, Task};
use super::null_space::Projection;
use super::objective::Neighbours;
use super::operands::{Operators, distinct_lengths, subset_rows};
use super::penalty::{in_place_of_corrections, lock};
use super::plan::{Plan, Preconditioning, Script, Space};
use super::report::Report;
use super::right::Right;
use super::run::Runner;
use super::setup::Setup;
use super::stopping::Stopping;
use super::system::{self, System};
use super::workspace::{Workspace, no_bounds, no_corrections};
use super::{cg, cgnr, products};
use crate::backend::script::basis;
use crate::error::{Error, Result};
use crate::number::{Real, per_number};
use crate::operator::{LinearOperator, SharedOperator};
use crate::vector::Vector;

/// An iterative method, set up for one operator: solves as often as is wanted, and allocates nothing the second time.
///
/// # Cost
/// Launches and vectors moved are stated by each method's file; [`Report::launches_per_iteration`] counts the launches.
pub struct Solver<T: Real> {
    setup: Setup<T>,
    way: Way<T>,
    projection: Option<Projection<T>>,
}

/// Way in which a set-up is solved.
enum Way<T: Real> {
    Direct(Box<Direct<T>>),
    /// Least squares with a preconditioner.
    Right(Box<Right<T>>),
}

struct Direct<T: Real> {
    system: System<T>,
    runner: Runner<T>,
    /// Exponent by which the preconditioner is scaled.
    of_preconditioner: i32,
}

impl<T: Real> std::fmt::Debug for Solver<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let operator = match &self.way {
            Way::Direct(direct) => direct.system.operator(),
            Way::Right(right) => right.operator(),
        };
        f.debug_struct("Solver")
            .field("rows", &operator.rows())
            .field("cols", &operator.cols())
            .field("setup", &self.setup)
            .finish_non_exhaustive()
    }
}

impl<T: Real> Solver<T> {
    /// Sets `method` up for one right-hand side, without a preconditioner.
    ///
    /// # Errors
    /// As [`Solver::with`].
    pub fn new(operator: impl Into<SharedOperator<T>>, method: Method, stopping: Stopping) -> Result<Self> {
        Self::with(operator, Setup::new(method, stopping))
    }

    /// Allocates what a solve with `operator` needs.
    ///
    /// # Errors
    /// [`Error::Shape`] for an operator that is not square if the method asks for that, or a preconditioner of another
    /// shape; [`Error::Option`] for parameters out of range, a preconditioner that the method cannot use, an operator
    /// without an adjoint if one is needed, exact residuals for a method that carries none,
    /// a rule that cannot end the method ([`Stopping::rule`]); [`Error::Memory`] when the vectors do not fit beside the matrix.
    pub fn with(operator: impl Into<SharedOperator<T>>, setup: Setup<T>) -> Result<Self> {
        let operator = operator.into();
        let (rows, cols) = (operator.rows(), operator.cols());
        set_up(operator, setup).map_err(|error| match error {
            // Some methods have no script for no unknowns.
            Error::Option { name: "method", .. } if rows == 0 || cols == 0 => {
                let what = format!("a matrix of {rows} x {cols}: there is nothing to solve");
                Error::Structure { what, row: None }
            }
            other => other,
        })
    }

    /// Sets the point that damping pulls the answer to, which is 0 at first: `x_ref` in
    /// `min |A x - b|² + damp² |x - x_ref|²`. It is not the start guess.
    ///
    /// # Errors
    /// [`Error::Option`] for a method without damping (or with `damp = 0`), [`Error::Shape`],
    /// [`Error::NotFinite`].
    pub fn set_reference(&mut self, reference: &Vector<T>) -> Result<()> {
        system::finite_norms(reference, self.setup.columns, "the reference point")?;
        match &mut self.way {
            Way::Direct(direct) => {
                direct.runner.set_reference(reference)?;
                direct.system.set_reference(reference)
            }
            Way::Right(_) => Err(no_damping(self.setup.method)),
        }
    }

    /// Replaces the corrections, for the solves that follow: none, one for all columns, or one for each. Allocates only if total
    /// variation is new to [`Method::Cgnr`], or if there is a preconditioner.
    ///
    /// # Errors
    /// [`Error::Option`] for a method without corrections, for another number of them, a weight out of range, or weights
    /// of another order of magnitude than those of the set-up, if that decides how the system is scaled; for terms over neighbours
    /// that [`Method::Pdhg`] was not set up for. With a preconditioner those of [`Solver::with`]: the new set-up is made beside the old one,
    /// which stays if there is no room.
    pub fn set_corrections(&mut self, corrections: &[Correction]) -> Result<()> {
        if !self.setup.method.takes_corrections() {
            return Err(no_corrections(self.setup.method));
        }
        if self.setup.penalty.is_some() {
            return Err(in_place_of_corrections());
        }
        let (method, corrections) = (self.setup.method, self.setup.corrections_of_columns(corrections)?);
        let cols = match &self.way {
            Way::Direct(direct) => direct.system.operator().cols(),
            Way::Right(right) => right.operator().cols(),
        };
        check_corrections(method, &corrections, cols)?;
        self.setup.check_rule_beside(&corrections)?;
        let Direct { system, runner, .. } = match &mut self.way {
            Way::Direct(direct) => &mut **direct,
            Way::Right(right) => {
                right.set_corrections(&Setup { corrections: corrections.clone(), ..self.setup.clone() })?;
                self.setup.corrections = corrections;
                return Ok(());
            }
        };
        system.set_damp(damp(method, &corrections))?;
        if let Err(error) = runner.set_corrections(corrections.clone()) {
            system.set_damp(damp(method, &self.setup.corrections))?;
            return Err(error);
        }
        self.setup.corrections = corrections;
        Ok(())
    }

    /// Sets the least and the greatest value of each unknown, beside the bounds of the corrections, for the solves that follow: a
    /// mask has both 0 where nothing is. For methods that keep them exactly ([`Method::keeps_bounds`]).
    ///
    /// # Errors
    /// [`Error::Shape`]; [`Error::Option`] for another method, or bounds that no number lies between.
    pub fn set_bounds(&mut self, lower: &[T], upper: &[T]) -> Result<()> {
        match &mut self.way {
            Way::Direct(direct) => direct.runner.set_bounds(lower, upper),
            Way::Right(_) => Err(no_bounds()),
        }
    }

    /// Solves from the start guess in `x`, and leaves the answer there.
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::NotFinite`] for NaN or infinity in `b` or `x`, [`Error::DeviceMismatch`],
    /// [`Error::Api`]; [`Error::Option`] if the set-up is for several right-hand sides. Not converging is no error: see
    /// [`Report::stop`].
    pub fn solve(&mut self, b: &Vector<T>, x: &mut Vector<T>) -> Result<Report> {
        self.solve_observed(b, x, &mut |_| ControlFlow::Continue(()))
    }

    /// [`Solver::solve`], with an observer that sees the progress and may end it.
    ///
    /// # Errors
    /// As [`Solver::solve`].
    pub fn solve_observed(
        &mut self,
        b: &Vector<T>,
        x: &mut Vector<T>,
        observer: &mut Observer<'_>,
    ) -> Result<Report> {
        if self.setup.columns > 1 {
            let reason = format!("{}: solve_many gives a report for each", self.setup.columns);
            return Err(Error::Option { name: "columns", reason });
        }
        let reports = self.solve_many_observed(b, x, observer)?;
        reports.into_iter().next().ok_or(Error::Shape { what: "reports of a solve", expected: 1, found: 0 })
    }

    /// Solves for several right-hand sides, interleaved in `b` as in `x` (see [`Vector::interleaved`]): one report each.
    ///
    /// # Errors
    /// As [`Solver::solve`].
    pub fn solve_many(&mut self, b: &Vector<T>, x: &mut Vector<T>) -> Result<Vec<Report>> {
        self.solve_many_observed(b, x, &mut |_| ControlFlow::Continue(()))
    }

    /// [`Solver::solve_many`], with an observer that sees the progress and may end it.
    ///
    /// # Errors
    /// As [`Solver::solve`].
    pub fn solve_many_observed(
        &mut self,
        b: &Vector<T>,
        x: &mut Vector<T>,
        observer: &mut Observer<'_>,
    ) -> Result<Vec<Report>> {
        let Self { setup, way, projection } = self;
        match way {
            Way::Direct(direct) => {
                let Direct { system, runner, of_preconditioner } = &mut **direct;
                if let Some(preconditioner) = &setup.preconditioner {
                    system.check_preconditioner(&**preconditioner, *of_preconditioner)?;
                }
                let Some(projection) = projection else {
                    return system::solve(system, setup.method, runner, &setup.stopping, b, x, observer);
                };
                system.check_lengths(b, x)?;
                // Removal of a component spreads NaN over all places.
                system::finite_norms(b, 1, "the right-hand side")?;
                system::finite_norms(x, 1, "the start guess")?;
                let b = projection.project(b, x)?;
                let mut reports = system::solve(system, setup.method, runner, &setup.stopping, b, x, observer)?;
                for report in &mut reports {
                    report.projected = Some(projection.removed()?);
                }
                Ok(reports)
            }
            Way::Right(right) => Ok(vec![right.solve(b, x, observer)?]),
        }
    }
}

impl<T: Real> Solver<T> {
    /// Takes another rule for the solves that follow; the caller has it validated.
    pub(super) fn set_stopping(&mut self, stopping: Stopping) {
        self.setup.stopping = stopping;
    }

    /// The norm of the operator, or an upper bound of it; 0 if it is not known.
    pub(super) fn operator_norm(&self) -> f64 {
        match &self.way {
            Way::Direct(direct) => direct.system.operator_norm(),
            Way::Right(right) => right.operator_norm(),
        }
    }
}

per_number! {
    fn set_up<T>(operator: SharedOperator<T>, setup: Setup<T>) -> Result<Solver<T>> = allocated;
}

/// The refusal of weights for the unknowns of a preconditioned problem.
pub(super) fn no_damping(method: Method) -> Error {
    let reason = format!(
        "{method}: the weight of x would be one of y = M^-1 x with a preconditioner; corrections of cgnr stay those of x"
    );
    Error::Option { name: "damp", reason }
}

fn allocated<T: Real>(operator: SharedOperator<T>, mut setup: Setup<T>) -> Result<Solver<T>> {
    setup.check(&*operator)?;
    setup.corrections = setup.corrections_of_columns(&setup.corrections)?;
    check_corrections(setup.method, &setup.corrections, operator.cols())?;
    if let Some(preconditioner) = setup.preconditioner.clone().filter(|_| setup.method.takes_rectangles()) {
        let right = Right::new(&operator, preconditioner, &setup)?;
        return Ok(Solver { setup, way: Way::Right(Box::new(right)), projection: None });
    }
    // Before the norm of the operator is asked for, which may take vectors.
    check_memory(&operator, &setup, &planned(&operator, &setup, [0; 2]))?;
    let (method, columns) = (setup.method, setup.columns);
    let system = match (method.takes_rectangles(), method.has_gradient()) {
        (true, true) => {
            let of_penalty = setup.penalty.as_ref().map_or(0.0, |penalty| lock(penalty).norm_bound().sqrt());
            let damp = method.damp().max(damp(method, &setup.corrections)).max(of_penalty);
            System::of_least_squares(&operator, columns, damp)?
        }
        (true, false) => System::of_rectangle(&operator, columns)?,
        (false, true) => System::of_square(&operator, columns)?.with_norm()?,
        (false, false) => System::of_square(&operator, columns)?,
    };
    // Scaled like the operator, whatever its own scale: Chebyshev's and stationary iterations alone depend on its size, and
    // are told.
    let of_preconditioner = match &setup.preconditioner {
        Some(preconditioner) => system.needed_by(&**preconditioner)?,
        None => 0,
    };
    let workspace = workspace(&system, &setup, of_preconditioner)?;
    let keeps = (setup.stopping.rule.is_some(), method.lowers_error());
    let runner = Runner::new(&operator, columns, workspace, keeps)?;
    let projection = match &setup.null_space {
        Some(space) => Some(Projection::new(&*operator, space)?),
        None => None,
    };
    Ok(Solver { setup, way: Way::Direct(Box::new(Direct { system, runner, of_preconditioner })), projection })
}

impl<T: Real> Setup<T> {
    /// Tells if it is conjugate gradients by launches of their own ([`cg`]), if nothing is scaled. The script fuses the last
    /// factor of a product of operators, which those cannot, and computes residuals afresh.
    fn is_fused_cg(&self, operator: &SharedOperator<T>) -> bool {
        let by_element = self.preconditioner.as_ref().is_none_or(|operator| operator.as_diagonal().is_some());
        let alone = self.columns == 1 && self.stopping.exact_every == 0 && !products::is_composed(&**operator);
        self.method == Method::Cg && by_element && alone
    }
}

/// Bytes that an operator takes. The `Arc` itself says 0, since others share it.
fn held<T: Real>(operator: &SharedOperator<T>) -> u64 {
    (**operator).bytes()
}

/// A method with its script, if it has one.
struct Planned {
    plan: Plan,
    preconditioning: Preconditioning,
    /// The script; none for a method with launches of its own.
    script: Option<Script>,
}

/// Plans the script of a set-up. `exponents` are those by which the operator and the preconditioner are scaled.
fn planned<T: Real>(operator: &SharedOperator<T>, setup: &Setup<T>, exponents: [i32; 2]) -> Planned {
    let subsets = subset_rows(operator);
    let lengths: Vec<usize> = subsets.iter().map(|rows| rows.elements()).collect();
    let mut plan = Plan::new([operator.rows(), operator.cols()], &lengths, setup.columns);
    let preconditioning = match &setup.preconditioner {
        None => Preconditioning::None,
        Some(operator) if operator.as_diagonal().is_some() => Preconditioning::Diagonal(plan.vector(Space::Rows)),
        Some(operator) => {
            let apart = setup.method == Method::Cg && setup.columns == 1 && exponents[1] == 0;
            let roots = apart.then(|| products::roots(&**operator)).flatten();
            roots.map_or(Preconditioning::Operator, |_| Preconditioning::Roots)
        }
    };
    let task = Task {
        preconditioning,
        rows: operator.rows(),
        epsilon: T::EPSILON,
        operator: exponents[0],
        preconditioned: exponents[0] + exponents[1],
        neighbours: Neighbours::of(&setup.corrections),
        curved: setup.penalty.as_ref().map(|penalty| lock(penalty).has_curvature()),
        subsets,
    };
    let script = setup.method.script(&mut plan, &task);
    Planned { plan, preconditioning, script }
}

/// Checks the memory of a set-up, before anything as long as its vectors is allocated.
fn check_memory<T: Real>(operator: &SharedOperator<T>, setup: &Setup<T>, planned: &Planned) -> Result<()> {
    let (columns, Planned { plan, script, .. }) = (setup.columns, planned);
    let bytes = |len: usize| (len * columns * T::PRECISION.bytes()) as u64;
    if script.is_none() {
        let mut vectors = cgnr::held(bytes(operator.rows()), bytes(operator.cols()));
        vectors.extend(setup.stopping.rule.map(|_| ("x held for the rule", bytes(operator.cols()))));
        return operator.device().check_memory(held(operator), &vectors);
    }
    let mut vectors = vec![("b", bytes(operator.rows())), ("best x", bytes(operator.cols()))];
    vectors.extend(setup.stopping.rule.map(|_| ("x held for the rule", bytes(operator.cols()))));
    if script.as_ref().is_some_and(|script| script.terms.is_some()) {
        let one = |len: usize| (len * T::PRECISION.bytes()) as u64;
        vectors.extend([operator.rows(), operator.cols()].map(|len| ("a vector for the norm", one(len))));
    }
    if script.as_ref().and_then(|script| script.terms.as_ref()?.inverse_sums).is_some_and(|sums| sums.of_subsets) {
        let one = |len: usize| (len * T::PRECISION.bytes()) as u64;
        vectors.extend(
            distinct_lengths(&subset_rows(operator))
                .into_iter()
                .map(|len| ("a vector for sums of columns", one(len))),
        );
    }
    if let Some(subsets) = operator.as_subsets().filter(|_| columns > 1) {
        // One for products, and one for those with the adjoint.
        vectors.extend([("vectors of the subsets", subsets.vector_bytes(columns)); 2]);
    }
    let own = plan.vectors.iter().enumerate().filter(|(k, _)| !Plan::FILLERS.contains(k));
    vectors.extend(own.map(|(_, space)| ("a vector of the method", bytes(plan.len(*space)))));
    let adjoint = Some(operator).filter(|_| setup.method.takes_rectangles());
    let preconditioner =
        setup.preconditioner.as_ref().filter(|_| planned.preconditioning == Preconditioning::Operator);
    for (operator, adjoint) in [(Some(operator), false), (adjoint, true), (preconditioner, false)] {
        let lengths = operator.map_or(Vec::new(), |operator| products::between(&**operator, adjoint));
        vectors.extend(lengths.into_iter().map(|len| ("a vector between factors", bytes(len))));
    }
    let largest = operator.device().info().largest_allocation;
    for (most, rows) in plan.bases.into_iter().zip([operator.rows(), operator.cols()]).filter(|(most, _)| *most > 0)
    {
        let buffers = basis::held(rows, columns, most, T::PRECISION.bytes(), largest);
        vectors.extend(
            buffers.into_iter().map(|bytes| ("directions (a smaller restart or subspace has fewer)", bytes)),
        );
    }
    let of_penalty = setup.penalty.as_ref().map_or(0, |penalty| lock(penalty).bytes());
    let matrices = held(operator) + setup.preconditioner.as_ref().map_or(0, held) + of_penalty;
    operator.device().check_memory(matrices, &vectors)
}

/// The vectors and scalars that a set-up needs.
fn workspace<T: Real>(
    system: &System<T>,
    setup: &Setup<T>,
    of_preconditioner: i32,
) -> Result<Box<dyn Workspace<T>>> {
    let (operator, exponent) = (system.operator(), system.exponent());
    let exponents = [exponent, of_preconditioner];
    if exponents == [0; 2] && setup.is_fused_cg(operator) {
        return cg::boxed(operator, setup.preconditioner.as_ref());
    }
    match planned(operator, setup, exponents) {
        Planned { script: None, .. } => cgnr::boxed(system, setup.corrections.clone()),
        Planned { plan, preconditioning, script: Some(script) } => {
            let (preconditioner, penalty) = (setup.preconditioner.as_ref(), setup.penalty.as_ref());
            let operators = Operators { a: operator, preconditioner, penalty, exponents };
            let weight = setup.method.weighs();
            engine::boxed(&operators, setup.corrections.clone(), weight, plan, script, preconditioning)
        }
    }
}
