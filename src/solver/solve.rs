//! Setting a method up, and solving with it.

use std::ops::ControlFlow;

use super::driver::Observer;
use super::engine::{self, Operators};
use super::method::Method;
use super::plan::{Plan, Preconditioning, Space};
use super::report::Report;
use super::stopping::Stopping;
use super::system::{self, System};
use super::workspace::Workspace;
use super::{bicgstab, cg, cgls, cgne, chebyshev, gmres, lsmr, lsqr, minres, pcg, stationary, steepest_descent};
use crate::backend::product::MOST_COLUMNS;
use crate::error::{Error, Result, same_length};
use crate::magnitude::scale;
use crate::number::{Real, per_number};
use crate::operator::{LinearOperator, SharedOperator};
use crate::vector::Vector;

/// What a [`Solver`] is to do.
#[derive(Clone)]
#[non_exhaustive]
pub struct Setup<T: Real> {
    /// The method and its parameters.
    pub method: Method,
    /// When it is done.
    pub stopping: Stopping,
    /// An approximation of the inverse: any operator of the same shape. See
    /// [`Method::takes_preconditioner`].
    pub preconditioner: Option<SharedOperator<T>>,
    /// Right-hand sides at once, which share each read of the matrix: 1 to 4 for a [`Matrix`](crate::Matrix), 1 for any
    /// other operator.
    pub columns: usize,
}

impl<T: Real> Setup<T> {
    /// One right-hand side, no preconditioner.
    pub fn new(method: Method, stopping: Stopping) -> Self {
        Self { method, stopping, preconditioner: None, columns: 1 }
    }

    /// The same with a preconditioner.
    pub fn with_preconditioner(self, preconditioner: impl Into<SharedOperator<T>>) -> Self {
        Self { preconditioner: Some(preconditioner.into()), ..self }
    }

    /// The same for so many right-hand sides at once.
    pub fn with_columns(self, columns: usize) -> Self {
        Self { columns, ..self }
    }
}

impl<T: Real> std::fmt::Debug for Setup<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Setup")
            .field("method", &self.method)
            .field("stopping", &self.stopping)
            .field("preconditioned", &self.preconditioner.is_some())
            .field("columns", &self.columns)
            .finish_non_exhaustive()
    }
}

/// An iterative method, set up for one operator: solves as often as is wanted, and allocates nothing the second time.
///
/// # Cost
/// Launches and vectors moved are stated by each method's file; [`Report::launches_per_iteration`] counts the launches.
pub struct Solver<T: Real> {
    system: System<T>,
    setup: Setup<T>,
    workspace: Box<dyn Workspace<T>>,
}

impl<T: Real> std::fmt::Debug for Solver<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Solver")
            .field("rows", &self.system.operator().rows())
            .field("cols", &self.system.operator().cols())
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
    /// [`Error::Shape`] for an operator that is not square where the method asks for that, or a preconditioner of another
    /// shape; [`Error::Option`] for parameters out of range, a preconditioner that the method cannot use, an operator
    /// without an adjoint where one is needed, exact residuals for a method that carries none; [`Error::Memory`] when the vectors do not fit beside the matrix.
    pub fn with(operator: impl Into<SharedOperator<T>>, setup: Setup<T>) -> Result<Self> {
        set_up(operator.into(), setup)
    }

    /// Sets the point that damping pulls the answer to, which is 0 at first: `x_ref` in
    /// `min |A x - b|² + damp² |x - x_ref|²`. It is not the start guess.
    ///
    /// # Errors
    /// [`Error::Option`] for a method without damping (or with `damp = 0`), [`Error::Shape`],
    /// [`Error::NotFinite`].
    pub fn set_reference(&mut self, reference: &Vector<T>) -> Result<()> {
        if !reference.norm2()?.is_finite() {
            return Err(Error::NotFinite { what: "the reference point".into(), index: 0 });
        }
        self.workspace.set_reference(reference)?;
        self.system.set_reference(reference)
    }

    /// Solves from the start guess in `x`, and leaves the answer there.
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::NotFinite`] for NaN or infinity in `b` or `x`, [`Error::DeviceMismatch`],
    /// [`Error::Api`]; [`Error::Option`] where the set-up is for several right-hand sides. Not converging is no error: see
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
        let Self { system, setup, workspace } = self;
        system::solve(system, setup.method.name(), &mut **workspace, &setup.stopping, b, x, observer)
    }
}

per_number! {
    fn set_up<T>(operator: SharedOperator<T>, setup: Setup<T>) -> Result<Solver<T>> = allocated;
}

fn allocated<T: Real>(operator: SharedOperator<T>, setup: Setup<T>) -> Result<Solver<T>> {
    setup.stopping.validate()?;
    setup.method.validate()?;
    if setup.stopping.exact_every > 0 && !setup.method.carries_residual() {
        let reason = format!("{} carries no residual that could be computed afresh", setup.method);
        return Err(Error::Option { name: "exact_every", reason });
    }
    let (rows, cols, columns) = (operator.rows(), operator.cols(), setup.columns);
    if !setup.method.takes_rectangles() {
        same_length("columns of the operator (the method needs a square one)", rows, cols)?;
    }
    if !(1..=MOST_COLUMNS).contains(&columns) {
        let reason = format!("{columns} right-hand sides at once; 1 to {MOST_COLUMNS} are possible");
        return Err(Error::Option { name: "columns", reason });
    }
    if let Some(preconditioner) = &setup.preconditioner {
        if !setup.method.takes_preconditioner() {
            let reason = format!("{} takes none", setup.method);
            return Err(Error::Option { name: "preconditioner", reason });
        }
        same_length("rows of the preconditioner", rows, preconditioner.rows())?;
        same_length("columns of the preconditioner", cols, preconditioner.cols())?;
    }
    let system = match setup.method {
        Method::Cgls { damp } | Method::Lsqr { damp } | Method::Lsmr { damp } => {
            System::of_least_squares(&operator, columns, damp)?
        }
        Method::Cgne => System::of_rectangle(&operator, columns)?,
        // Its gradient tells a system without a solution.
        Method::Minres => System::of_square(&operator, columns)?.with_norm()?,
        _ => System::of_square(&operator, columns)?,
    };
    let workspace = workspace(&system, &setup)?;
    Ok(Solver { system, setup, workspace })
}

/// The vectors and scalars that a set-up needs.
fn workspace<T: Real>(system: &System<T>, setup: &Setup<T>) -> Result<Box<dyn Workspace<T>>> {
    let (operator, exponent) = (system.operator(), system.exponent());
    let (device, columns) = (operator.device(), setup.columns);
    let bytes = |len: usize| (len * columns * T::PRECISION.bytes()) as u64;
    let exact = setup.stopping.exact_every > 0;
    if setup.method == Method::Cg && setup.preconditioner.is_none() && columns == 1 && !exact && exponent == 0 {
        let plan = ["x", "b", "r", "p", "q", "best x"].map(|name| (name, bytes(operator.rows())));
        device.check_memory(operator.bytes(), &plan)?;
        return cg::boxed(operator);
    }
    let mut plan = Plan::new(operator.rows(), operator.cols(), columns);
    let preconditioning = match &setup.preconditioner {
        None => Preconditioning::None,
        Some(operator) if operator.as_diagonal().is_some() => Preconditioning::Diagonal(plan.vector(Space::Rows)),
        Some(_) => Preconditioning::Operator,
    };
    // Scaled like the operator, whatever its own scale: no method but these two cares how large it is.
    let of_preconditioner = match &setup.preconditioner {
        Some(preconditioner) => system.needed_by(&**preconditioner)?,
        None => 0,
    };
    let both = exponent + of_preconditioner;
    let damped = |damp| scale(damp, exponent);
    let script = match setup.method {
        Method::Cg => pcg::script(&mut plan, preconditioning),
        Method::SteepestDescent => steepest_descent::script(&mut plan),
        Method::Minres => minres::script(&mut plan),
        Method::BiCgStab => bicgstab::script(&mut plan, preconditioning),
        Method::Gmres { restart } => {
            gmres::script(&mut plan, preconditioning, restart.min(operator.rows().max(1)), T::EPSILON)
        }
        Method::Chebyshev { smallest, largest } => {
            chebyshev::script(&mut plan, preconditioning, [scale(smallest, both), scale(largest, both)])
        }
        Method::Stationary { omega } => stationary::script(&mut plan, preconditioning, scale(omega, -both)),
        Method::Cgls { damp } => cgls::script(&mut plan, damped(damp)),
        Method::Cgne => cgne::script(&mut plan),
        Method::Lsqr { damp } => lsqr::script(&mut plan, damped(damp)),
        Method::Lsmr { damp } => lsmr::script(&mut plan, damped(damp)),
    };
    let mut held = vec![("b", bytes(operator.rows())), ("best x", bytes(operator.cols()))];
    let own = plan.vectors.iter().enumerate().filter(|(k, _)| !Plan::FILLERS.contains(k));
    held.extend(own.map(|(_, space)| ("a vector of the method", bytes(plan.len(*space)))));
    let matrices =
        operator.bytes() + setup.preconditioner.as_ref().map_or(0, |preconditioner| preconditioner.bytes());
    device.check_memory(matrices, &held)?;
    let exponents = [exponent, of_preconditioner];
    let operators = Operators { a: operator, preconditioner: setup.preconditioner.as_ref(), exponents };
    engine::boxed(&operators, columns, plan, script, preconditioning)
}
