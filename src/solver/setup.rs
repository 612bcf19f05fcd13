//! Set-up of a solver: method, stopping rules, preconditioner, null space, regularizations or penalty, and number
//! of right-hand sides.

use std::sync::{Arc, Mutex};

use super::method::Method;
use super::null_space::NullSpace;
use super::regularise::{
    Penalty, Regularization, SharedPenalty, check_regularizations, in_place_of_regularizations, lock,
    no_regularizations,
};
use super::stopping::{StopRule, Stopping};
use crate::backend::linear::product::MOST_COLUMNS;
use crate::error::{Error, Result, same_length};
use crate::number::Real;
use crate::operator::{LinearOperator, SharedOperator, one_column};

/// Set-up of a [`Solver`](crate::Solver).
///
/// ```
/// use residuum::precond::{IncompleteOptions, Preconditioner};
/// use residuum::sparse::gallery;
/// use residuum::{Device, Format, Matrix, Method, Setup, Solver, Stopping, Vector};
///
/// let device = Device::best()?;
/// let a = gallery::poisson_2d::<f64>(20, 0.0)?;
/// let matrix = Matrix::new(&device, &a, Format::Auto)?;
/// let made = "ic0".parse::<Preconditioner>()?.build(&device, &a)?;
/// let setup = Setup::new(Method::Cg, Stopping::for_precision::<f64>()).with_preconditioner(made.operator).with_columns(2);
/// // Two right-hand sides at once need a preconditioner that takes several.
/// assert!(Solver::with(&matrix, setup.clone()).is_err());
/// let mut solver = Solver::with(&matrix, setup.with_columns(1))?;
/// let mut x = Vector::zeros(&device, 400)?;
/// assert!(solver.solve(&Vector::filled(&device, 400, 1.0)?, &mut x)?.converged());
/// # Ok::<(), residuum::Error>(())
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct Setup<T: Real> {
    /// The method and its parameters.
    pub method: Method,
    /// When it is done.
    pub stopping: Stopping,
    /// An approximation of the inverse: any operator of the same shape. See
    /// [`Method::takes_preconditioner`]. Least-squares methods take one from the right, a square operator with an adjoint over the
    /// unknowns such that `A M` has a small condition number: they iterate on `y` with `x = x_0 + M y`, and the report's
    /// `gradient_history` is that of `y`; residual, gradient and verdict at the end are those of `x`.
    pub preconditioner: Option<SharedOperator<T>>,
    /// Right-hand sides at once, which share each read of the matrix: 1 to 4 for a [`Matrix`](crate::Matrix), 1 for any
    /// other operator. A preconditioner must take as many: a stored matrix does ([`Spai`](crate::precond::Spai)), and so does a diagonal
    /// (Jacobi's), but not for methods of least squares. With any other one, set the solver up for one right-hand side, and call
    /// [`Solver::solve`](crate::Solver::solve) for each: the second solve allocates nothing.
    pub columns: usize,
    /// The null space of a singular symmetric operator, which the solve keeps out of. For one right-hand side, and methods that want
    /// a square operator.
    pub null_space: Option<NullSpace<T>>,
    /// Regularization terms, for methods that take them ([`Method::takes_regularizations`]): none, one for all columns, or one for each. With a
    /// preconditioner [`Method::Cgnr`] alone takes them; they are still terms of `x`, at the cost of a [`penalty`](Self::penalty).
    pub regularizations: Vec<Regularization>,
    /// A penalty of the user's own for [`Method::Cgnr`], in the place of regularizations. With a preconditioner it is still one of `x`, at the
    /// cost of up to three products with `M` and two with `M'` an iteration.
    pub penalty: Option<SharedPenalty<T>>,
}

impl<T: Real> Setup<T> {
    /// One right-hand side, no preconditioner, no regularization.
    pub fn new(method: Method, stopping: Stopping) -> Self {
        let (preconditioner, null_space, penalty) = (None, None, None);
        Self { method, stopping, preconditioner, columns: 1, null_space, regularizations: Vec::new(), penalty }
    }

    /// Sets the preconditioner.
    #[must_use]
    pub fn with_preconditioner(self, preconditioner: impl Into<SharedOperator<T>>) -> Self {
        Self { preconditioner: Some(preconditioner.into()), ..self }
    }

    /// Sets the number of right-hand sides at once.
    #[must_use]
    pub fn with_columns(self, columns: usize) -> Self {
        Self { columns, ..self }
    }

    /// Sets the null space.
    #[must_use]
    pub fn with_null_space(self, null_space: NullSpace<T>) -> Self {
        Self { null_space: Some(null_space), ..self }
    }

    /// Sets the regularizations: one for all columns, or one for each.
    #[must_use]
    pub fn with_regularizations(self, regularizations: &[Regularization]) -> Self {
        Self { regularizations: regularizations.to_vec(), ..self }
    }

    /// Sets a penalty of the user's own.
    #[must_use]
    pub fn with_penalty(self, penalty: impl Penalty<T> + 'static) -> Self {
        Self { penalty: Some(Arc::new(Mutex::new(penalty))), ..self }
    }

    /// One regularization for each column.
    ///
    /// # Errors
    /// [`Error::Conflict`] for another number of them.
    pub(super) fn regularizations_of_columns(
        &self,
        regularizations: &[Regularization],
    ) -> Result<Vec<Regularization>> {
        match regularizations {
            [] => Ok(vec![Regularization::none(); self.columns]),
            [one] => Ok(vec![one.clone(); self.columns]),
            all if all.len() == self.columns => Ok(all.to_vec()),
            all => {
                let reason = format!("{} for {} right-hand sides", all.len(), self.columns);
                Err(Error::Conflict { name: "regularizations", reason })
            }
        }
    }

    /// This set-up for `operator`, with a regularization for each column.
    ///
    /// # Errors
    /// Those of [`Solver::with`](crate::Solver::with), but for the memory.
    pub(super) fn completed(mut self, operator: &dyn LinearOperator<T>) -> Result<Self> {
        self.check(operator)?;
        self.regularizations = self.regularizations_of_columns(&self.regularizations)?;
        check_regularizations(self.method, &self.regularizations, operator.cols())?;
        Ok(self)
    }

    /// Fails on what the method cannot do with `operator`.
    pub(super) fn check(&self, operator: &dyn LinearOperator<T>) -> Result<()> {
        let Self { method, stopping, columns, .. } = self;
        stopping.validate()?;
        method.validate()?;
        if stopping.exact_every > 0 && !method.carries_residual() {
            let reason = format!("{method} carries no residual that could be computed afresh");
            return Err(Error::Conflict { name: "exact_every", reason });
        }
        let (rows, cols) = (operator.rows(), operator.cols());
        if let Some(rule) = &stopping.rule {
            rule.validate(rows)?;
            self.check_rule(rule)?;
        }
        if !method.takes_rectangles() {
            same_length("columns of the operator (the method needs a square one)", rows, cols)?;
        }
        if !(1..=MOST_COLUMNS).contains(columns) {
            let reason = format!("{columns} right-hand sides at once; 1 to {MOST_COLUMNS} are possible");
            return Err(Error::Option { name: "columns", reason });
        }
        if !self.regularizations.is_empty() && !method.takes_regularizations() {
            return Err(no_regularizations(*method));
        }
        if let Some(penalty) = &self.penalty {
            self.check_penalty(&*lock(penalty))?;
        }
        if self.null_space.is_some() && (method.takes_rectangles() || *columns != 1) {
            let reason =
                format!("for one right-hand side of a method for square operators, not {columns} of {method}");
            return Err(Error::Conflict { name: "null_space", reason });
        }
        if let Some(preconditioner) = &self.preconditioner {
            if !method.takes_preconditioner() {
                let reason = format!("{method} takes none");
                return Err(Error::Conflict { name: "preconditioner", reason });
            }
            let rows = if method.takes_rectangles() { cols } else { rows };
            same_length("rows of the preconditioner", rows, preconditioner.rows())?;
            same_length("columns of the preconditioner", cols, preconditioner.cols())?;
        }
        self.check_columns(operator)
    }

    /// Fails on several right-hand sides at once if the operator or the preconditioner takes one.
    fn check_columns(&self, operator: &dyn LinearOperator<T>) -> Result<()> {
        let columns = self.columns;
        if columns == 1 {
            return Ok(());
        }
        if !operator.takes_columns() {
            return Err(one_column(columns, &format!("the operator ({})", operator.kind())));
        }
        // A diagonal multiplies element by element, whatever is interleaved.
        let takes = |p: &SharedOperator<T>| {
            !self.method.takes_rectangles() && (p.as_diagonal().is_some() || p.takes_columns())
        };
        match self.preconditioner.as_ref().filter(|p| !takes(p)) {
            Some(preconditioner) => {
                let kind = (**preconditioner).kind();
                Err(one_column(columns, &format!("the preconditioner ({kind})")))
            }
            None => Ok(()),
        }
    }

    /// Fails on a rule that cannot end the method.
    fn check_rule(&self, rule: &StopRule) -> Result<()> {
        let refuse = |reason| Err(Error::Conflict { name: "rule", reason });
        if !self.method.takes_rule(rule) {
            let those = Method::names(|method| method.takes_rule(rule));
            let damping = if matches!(rule, StopRule::MonotoneError { .. }) { ", without damping" } else { "" };
            return refuse(format!("{rule} does not end {}; it ends {those}{damping}", self.method));
        }
        if self.preconditioner.is_some() {
            return refuse(format!("{rule} is for methods without a preconditioner"));
        }
        self.check_rule_beside(&self.regularizations)
    }

    /// Fails on regularizations beside a rule that is for the misfit alone.
    pub(super) fn check_rule_beside(&self, regularizations: &[Regularization]) -> Result<()> {
        match self.stopping.rule {
            Some(rule @ StopRule::MonotoneError { .. })
                if self.penalty.is_some() || !regularizations.iter().all(Regularization::is_nothing) =>
            {
                let reason = format!("{rule} is for a misfit with nothing beside it: no weights, no bounds");
                Err(Error::Conflict { name: "rule", reason })
            }
            _ => Ok(()),
        }
    }

    /// Fails on a penalty that the method cannot take.
    fn check_penalty(&self, penalty: &dyn Penalty<T>) -> Result<()> {
        let refuse = |reason| Err(Error::Conflict { name: "penalty", reason });
        if self.method != Method::Cgnr {
            return refuse(format!("{} takes none", self.method));
        }
        if self.regularizations.iter().any(|regularization| *regularization != Regularization::none()) {
            return Err(in_place_of_regularizations());
        }
        let (images, bound) = (penalty.columns(), penalty.norm_bound());
        if !(bound >= 0.0 && bound.is_finite()) {
            let reason = format!("the bound of its norm, {bound}, is not a number of at least 0");
            return Err(Error::Option { name: "penalty", reason });
        }
        if images != self.columns {
            return refuse(format!("it is for {images} images at once, not for {}", self.columns));
        }
        Ok(())
    }
}

impl<T: Real> std::fmt::Debug for Setup<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Setup")
            .field("method", &self.method)
            .field("stopping", &self.stopping)
            .field("preconditioned", &self.preconditioner.is_some())
            .field("columns", &self.columns)
            .field("null_space", &self.null_space.as_ref().map(NullSpace::dimension))
            .field("regularizations", &self.regularizations)
            .field("penalised", &self.penalty.is_some())
            .finish_non_exhaustive()
    }
}
