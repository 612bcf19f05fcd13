//! Setting a method up, and solving with it.

use std::ops::ControlFlow;

use super::direct::{Direct, only};
use super::method::Method;
use super::regularise::{
    Regularization, check_regularizations, in_place_of_regularizations, no_bounds, no_regularizations,
};
use super::right::{Right, no_damping};
use super::run::{Observer, Report};
use super::setup::Setup;
use super::stopping::Stopping;
use super::system;
use crate::columns::Columns;
use crate::error::{Error, Result, same_length};
use crate::number::{Real, per_number};
use crate::operator::{LinearOperator, SharedOperator};
use crate::vector::Vector;

/// An iterative method, set up for one operator: solves as often as is wanted, and allocates nothing the second time.
///
/// # Cost
/// Launches and vectors moved are stated by each method's file; [`Report::launches_per_iteration`] counts the launches.
///
/// ```
/// use residuum::sparse::gallery;
/// use residuum::{Device, Format, Matrix, Method, Solver, Stopping, Vector};
///
/// let device = Device::best()?;
/// let matrix = Matrix::new(&device, &gallery::poisson_2d::<f64>(20, 0.0)?, Format::Auto)?;
/// let mut solver = Solver::new(&matrix, Method::Cg, Stopping::for_precision::<f64>())?;
/// let mut x = Vector::zeros(&device, 400)?;
/// // One right-hand side after another; the start guess is what `x` holds.
/// for load in [1.0, 2.0] {
///     let report = solver.solve(&Vector::filled(&device, 400, load)?, &mut x)?;
///     assert!(report.converged(), "{report}");
/// }
/// # Ok::<(), residuum::Error>(())
/// ```
pub struct Solver<T: Real> {
    way: Way<T>,
}

/// Way in which a set-up is solved.
enum Way<T: Real> {
    Direct(Box<Direct<T>>),
    /// Least squares with a preconditioner.
    Right(Box<Right<T>>),
}

impl<T: Real> std::fmt::Debug for Solver<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Solver")
            .field("rows", &self.operator().rows())
            .field("cols", &self.operator().cols())
            .field("setup", self.setup())
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
    /// [`Error::Shape`] for an operator that is not square if the method asks for that, or a preconditioner of another shape;
    /// [`Error::Option`] for parameters out of range; [`Error::Conflict`] for a preconditioner that the method cannot use, an
    /// operator without an adjoint if one is needed, exact residuals for a method that carries none, a rule that cannot end the
    /// method ([`Stopping::rule`]); [`Error::Memory`] when the vectors do not fit beside the matrix.
    pub fn with(operator: impl Into<SharedOperator<T>>, setup: Setup<T>) -> Result<Self> {
        let operator = operator.into();
        let (rows, cols) = (operator.rows(), operator.cols());
        set_up(operator, setup).map_err(|error| match error {
            // Some methods have no script for no unknowns.
            Error::Conflict { name: "method", .. } if rows == 0 || cols == 0 => {
                let what = format!("a matrix of {rows} x {cols}: there is nothing to solve");
                Error::Structure { what, row: None }
            }
            other => other,
        })
    }

    /// Sets the point that damping pulls the answer to, which is 0 at first: `x_ref` in
    /// `min |A x - b|² + damp² |x - x_ref|²`. It is not the start guess. For several right-hand sides `reference` holds one for each,
    /// interleaved ([`Columns::as_vector`]).
    ///
    /// # Errors
    /// [`Error::Conflict`] for a method without damping (or with `damp = 0`), [`Error::Shape`],
    /// [`Error::NotFinite`].
    pub fn set_reference(&mut self, reference: &Vector<T>) -> Result<()> {
        system::finite_norms(reference, self.setup().columns, "the reference point")?;
        match &mut self.way {
            Way::Direct(direct) => direct.set_reference(reference),
            Way::Right(right) => Err(no_damping(right.setup().method)),
        }
    }

    /// Replaces the regularizations, for the solves that follow: none, one for all columns, or one for each. Allocates only if total
    /// variation is new to [`Method::Cgnr`], or if there is a preconditioner.
    ///
    /// # Errors
    /// [`Error::Option`] for a weight out of range; [`Error::Conflict`] for a method without regularizations, for another number of
    /// them, for terms over neighbours that [`Method::Pdhg`] was not set up for, and for weights of another order of magnitude than
    /// those of the set-up, if that decides how the system is scaled. With a preconditioner those of [`Solver::with`]: the new set-up is made beside the old one, which stays if there is no room.
    pub fn set_regularizations(&mut self, regularizations: &[Regularization]) -> Result<()> {
        let setup = self.setup();
        if !setup.method.takes_regularizations() {
            return Err(no_regularizations(setup.method));
        }
        if setup.penalty.is_some() {
            return Err(in_place_of_regularizations());
        }
        let regularizations = setup.regularizations_of_columns(regularizations)?;
        check_regularizations(setup.method, &regularizations, self.operator().cols())?;
        setup.check_rule_beside(&regularizations)?;
        match &mut self.way {
            Way::Direct(direct) => direct.set_regularizations(regularizations),
            Way::Right(right) => right.set_regularizations(regularizations),
        }
    }

    /// Sets the least and the greatest value of each unknown, beside the bounds of the regularizations, for the solves that follow: a
    /// mask has both 0 where nothing is. For methods that keep them exactly ([`Method::keeps_bounds`]).
    ///
    /// # Errors
    /// [`Error::Shape`]; [`Error::Conflict`] for another method; [`Error::Option`] for bounds that no number lies between.
    pub fn set_bounds(&mut self, lower: &[T], upper: &[T]) -> Result<()> {
        match &mut self.way {
            Way::Direct(direct) => direct.set_bounds(lower, upper),
            Way::Right(_) => Err(no_bounds()),
        }
    }

    /// Solves from the start guess in `x`, and leaves the answer there.
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::NotFinite`] for NaN or infinity in `b` or `x`, [`Error::DeviceMismatch`],
    /// [`Error::Api`]; [`Error::Conflict`] if the set-up is for several right-hand sides. Not converging is no error: see
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
        let columns = self.setup().columns;
        if columns > 1 {
            let reason = format!("{columns}: solve_many gives a report for each");
            return Err(Error::Conflict { name: "columns", reason });
        }
        only(self.solve_interleaved(b, x, observer)?)
    }

    /// Solves for several right-hand sides at once: one report for each column. Start guesses are read from `x`.
    ///
    /// # Errors
    /// [`Error::Shape`] unless `b` and `x` have as many columns as the set-up; as [`Solver::solve`].
    pub fn solve_many(&mut self, b: &Columns<T>, x: &mut Columns<T>) -> Result<Vec<Report>> {
        self.solve_many_observed(b, x, &mut |_| ControlFlow::Continue(()))
    }

    /// [`Solver::solve_many`], with an observer that sees the progress and may end it.
    ///
    /// # Errors
    /// As [`Solver::solve_many`].
    pub fn solve_many_observed(
        &mut self,
        b: &Columns<T>,
        x: &mut Columns<T>,
        observer: &mut Observer<'_>,
    ) -> Result<Vec<Report>> {
        let columns = self.setup().columns;
        same_length("columns of the right-hand sides", columns, b.count())?;
        same_length("columns of the answers", columns, x.count())?;
        self.solve_interleaved(b.as_vector(), x.as_vector_mut(), observer)
    }

    fn solve_interleaved(
        &mut self,
        b: &Vector<T>,
        x: &mut Vector<T>,
        observer: &mut Observer<'_>,
    ) -> Result<Vec<Report>> {
        match &mut self.way {
            Way::Direct(direct) => direct.solve(b, x, observer),
            Way::Right(right) => Ok(vec![right.solve(b, x, observer)?]),
        }
    }

    fn setup(&self) -> &Setup<T> {
        match &self.way {
            Way::Direct(direct) => direct.setup(),
            Way::Right(right) => right.setup(),
        }
    }

    fn operator(&self) -> &SharedOperator<T> {
        match &self.way {
            Way::Direct(direct) => direct.operator(),
            Way::Right(right) => right.operator(),
        }
    }
}

per_number! {
    fn set_up<T>(operator: SharedOperator<T>, setup: Setup<T>) -> Result<Solver<T>> = allocated;
}

fn allocated<T: Real>(operator: SharedOperator<T>, setup: Setup<T>) -> Result<Solver<T>> {
    let setup = setup.completed(&*operator)?;
    let preconditioner = setup.preconditioner.clone().filter(|_| setup.method.takes_rectangles());
    let way = match preconditioner {
        Some(preconditioner) => Way::Right(Box::new(Right::new(&operator, preconditioner, setup)?)),
        None => Way::Direct(Box::new(Direct::new(&operator, setup)?)),
    };
    Ok(Solver { way })
}
