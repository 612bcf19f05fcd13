//! A method on the system that was given, without a preconditioner from the right: sets it up, checks the memory that it needs, and
//! solves.

use super::engine::{Engine, Operators, between, cgnr_kernels, roots, set_up};
use super::method::Method;
use super::method::scripts::Task;
use super::null_space::Projection;
use super::regularise::{Regularization, damp, edges_of, lock};
use super::run::{Observer, Report, Runner};
use super::script::{
    CgnrKernels, Draft, Neighbours, Preconditioning, Script, Space, distinct_lengths, subset_rows,
};
use super::setup::Setup;
use super::stopping::Stopping;
use super::system::{self, System};
use crate::backend::script::{Edges, basis};
use crate::error::{Error, Result};
use crate::number::Real;
use crate::operator::{LinearOperator, SharedOperator};
use crate::vector::Vector;

/// A method, set up for one operator.
pub(super) struct Direct<T: Real> {
    setup: Setup<T>,
    system: System<T>,
    runner: Runner<T>,
    /// Exponent by which the preconditioner is scaled.
    of_preconditioner: i32,
    projection: Option<Projection<T>>,
}

impl<T: Real> Direct<T> {
    /// Sets up what `setup` asks for, which [`Setup::completed`] has checked.
    pub(super) fn new(operator: &SharedOperator<T>, setup: Setup<T>) -> Result<Self> {
        // Before the norm of the operator is asked for, which may take vectors.
        check_memory(operator, &setup, &planned(operator, &setup, [0; 2]))?;
        let (method, columns) = (setup.method, setup.columns);
        let system = match (method.takes_rectangles(), method.has_gradient()) {
            (true, true) => {
                let of_penalty = setup.penalty.as_ref().map_or(0.0, |penalty| lock(penalty).norm_bound().sqrt());
                let damp = method.damp().max(damp(method, &setup.regularizations)).max(of_penalty);
                System::of_least_squares(operator, columns, damp)?
            }
            (true, false) => System::of_rectangle(operator, columns)?,
            (false, true) => System::of_square(operator, columns, method.squares())?.with_norm()?,
            (false, false) => System::of_square(operator, columns, method.squares())?,
        };
        // Scaled like the operator, whatever its own scale: Chebyshev's and stationary iterations alone depend on its size, and
        // are told.
        let of_preconditioner = match &setup.preconditioner {
            Some(preconditioner) => system.needed_by(&**preconditioner)?,
            None => 0,
        };
        let engine = engine(&system, &setup, of_preconditioner)?;
        let keeps = (setup.stopping.rule.is_some(), method.lowers_error());
        let runner = Runner::new(operator, columns, engine, keeps)?;
        let projection = match &setup.null_space {
            Some(space) => Some(Projection::new(&**operator, space)?),
            None => None,
        };
        Ok(Self { setup, system, runner, of_preconditioner, projection })
    }

    pub(super) fn setup(&self) -> &Setup<T> {
        &self.setup
    }

    pub(super) fn operator(&self) -> &SharedOperator<T> {
        self.system.operator()
    }

    /// The norm of the operator, or an upper bound of it; 0 if it is not known.
    pub(super) fn operator_norm(&self) -> f64 {
        self.system.operator_norm()
    }

    /// Takes another rule for the solves that follow; the caller has it validated.
    pub(super) fn set_stopping(&mut self, stopping: Stopping) {
        self.setup.stopping = stopping;
    }

    pub(super) fn set_reference(&mut self, reference: &Vector<T>) -> Result<()> {
        self.runner.set_reference(reference)?;
        self.system.set_reference(reference)
    }

    /// Takes other regularizations, one for each column, which are checked.
    pub(super) fn set_regularizations(&mut self, regularizations: Vec<Regularization>) -> Result<()> {
        let Self { setup, system, runner, .. } = self;
        let method = setup.method;
        system.set_damp(damp(method, &regularizations))?;
        if let Err(error) = runner.set_regularizations(regularizations.clone()) {
            system.set_damp(damp(method, &setup.regularizations))?;
            return Err(error);
        }
        setup.regularizations = regularizations;
        Ok(())
    }

    pub(super) fn set_bounds(&mut self, lower: &[T], upper: &[T]) -> Result<()> {
        self.runner.set_bounds(lower, upper)
    }

    /// Solves from the start guess in `x`, and leaves the answer there: a report for each column.
    pub(super) fn solve(
        &mut self,
        b: &Vector<T>,
        x: &mut Vector<T>,
        observer: &mut Observer<'_>,
    ) -> Result<Vec<Report>> {
        let Self { setup, system, runner, of_preconditioner, projection } = self;
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

    /// The report of a solve of one column.
    pub(super) fn solve_one(
        &mut self,
        b: &Vector<T>,
        x: &mut Vector<T>,
        observer: &mut Observer<'_>,
    ) -> Result<Report> {
        only(self.solve(b, x, observer)?)
    }
}

/// The report of a solve of one column.
pub(super) fn only(reports: Vec<Report>) -> Result<Report> {
    reports.into_iter().next().ok_or(Error::Shape { what: "reports of a solve", expected: 1, found: 0 })
}

/// Bytes that an operator takes. The `Arc` itself says 0, since others share it.
fn held<T: Real>(operator: &SharedOperator<T>) -> u64 {
    (**operator).bytes()
}

/// A method with its script.
struct Planned {
    draft: Draft,
    preconditioning: Preconditioning,
    script: Script,
}

/// Plans the script of a set-up. `exponents` are those by which the operator and the preconditioner are scaled.
fn planned<T: Real>(operator: &SharedOperator<T>, setup: &Setup<T>, exponents: [i32; 2]) -> Planned {
    let subsets = subset_rows(operator);
    let lengths: Vec<usize> = subsets.iter().map(|rows| rows.elements()).collect();
    let mut draft = Draft::new([operator.rows(), operator.cols()], &lengths, setup.columns);
    let preconditioning = match &setup.preconditioner {
        None => Preconditioning::None,
        Some(operator) if operator.as_diagonal().is_some() => Preconditioning::Diagonal(draft.vector(Space::Rows)),
        Some(operator) => {
            let apart = setup.method == Method::Cg && setup.columns == 1 && exponents[1] == 0;
            let roots = apart.then(|| roots(&**operator)).flatten();
            roots.map_or(Preconditioning::Operator, |_| Preconditioning::Roots)
        }
    };
    let (mut edges, mut kernels) = (Edges::default(), CgnrKernels::default());
    if setup.method == Method::Cgnr {
        // The regularizations are checked.
        edges = edges_of(&setup.regularizations, operator.cols()).unwrap_or_default();
        if exponents[0] == 0 {
            kernels = cgnr_kernels(&**operator);
        }
    }
    let task = Task {
        preconditioning,
        rows: operator.rows(),
        epsilon: T::EPSILON,
        operator: exponents[0],
        preconditioned: exponents[0] + exponents[1],
        neighbours: Neighbours::of(&setup.regularizations),
        curved: setup.penalty.as_ref().map(|penalty| lock(penalty).has_curvature()),
        edges,
        kernels,
        subsets,
    };
    let script = setup.method.script(&mut draft, &task);
    Planned { draft, preconditioning, script }
}

/// Checks the memory of a set-up, before anything as long as its vectors is allocated.
fn check_memory<T: Real>(operator: &SharedOperator<T>, setup: &Setup<T>, planned: &Planned) -> Result<()> {
    let (columns, Planned { draft, script, .. }) = (setup.columns, planned);
    let bytes = |len: usize| (len * columns * T::PRECISION.bytes()) as u64;
    let mut vectors = vec![("b", bytes(operator.rows())), ("best x", bytes(operator.cols()))];
    vectors.extend(setup.stopping.rule.map(|_| ("x held for the rule", bytes(operator.cols()))));
    if script.terms.is_some() {
        let one = |len: usize| (len * T::PRECISION.bytes()) as u64;
        vectors.extend([operator.rows(), operator.cols()].map(|len| ("a vector for the norm", one(len))));
    }
    if script.terms.as_ref().and_then(|terms| terms.inverse_sums).is_some_and(|sums| sums.of_subsets) {
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
    let own = draft.vectors.iter().enumerate().filter(|(k, _)| !Draft::FILLERS.contains(k));
    vectors.extend(own.map(|(_, space)| ("a vector of the method", bytes(draft.len(*space)))));
    let adjoint = Some(operator).filter(|_| setup.method.takes_rectangles());
    let preconditioner =
        setup.preconditioner.as_ref().filter(|_| planned.preconditioning == Preconditioning::Operator);
    for (operator, adjoint) in [(Some(operator), false), (adjoint, true), (preconditioner, false)] {
        let lengths = operator.map_or(Vec::new(), |operator| between(&**operator, adjoint));
        vectors.extend(lengths.into_iter().map(|len| ("a vector between factors", bytes(len))));
    }
    let largest = operator.device().info().largest_allocation;
    for (most, rows) in
        draft.bases.into_iter().zip([operator.rows(), operator.cols()]).filter(|(most, _)| *most > 0)
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
fn engine<T: Real>(system: &System<T>, setup: &Setup<T>, of_preconditioner: i32) -> Result<Engine<T>> {
    let (operator, exponent) = (system.operator(), system.exponent());
    let exponents = [exponent, of_preconditioner];
    let Planned { draft, preconditioning, script } = planned(operator, setup, exponents);
    let (preconditioner, penalty) = (setup.preconditioner.as_ref(), setup.penalty.as_ref());
    let operators = Operators { a: operator, preconditioner, penalty, exponents };
    set_up(&operators, setup.regularizations.clone(), setup.method.weighs(), draft, script, preconditioning)
}
