//! Options of the program `solve`, and what they mean.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Parser, ValueEnum};
use common::{DeviceOptions, HistoryOption, Overwriting, Precision, check_outputs, option, plot, refuse_unused};
use residuum::precond::{Preconditioner, RowOrdering, SweepKind};
use residuum::sparse::{Ordering, Partition, Permutation};
use residuum::{Advice, Csr, Examination, Format, Method, Real, Result, Stopping, io};

/// Help text of an option that takes the name of a row of a table.
fn among(others: &str, rows: &[impl ToString]) -> String {
    let names: Vec<String> = rows.iter().map(ToString::to_string).collect();
    format!("{others}, or one of {}", names.join(", "))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RowOrder {
    /// By colours: all rows of one at once
    Colours,
    /// In their own order: rows that do not depend on each other at once
    Rows,
}

/// Solve A x = b, or min |A x - b|, with the method that suits the matrix.
///
/// Exit status: 0 converged, 1 not converged (the text says why, and what to do), 2 bad input.
#[derive(Debug, Parser)]
#[command(name = "solve", version = common::version(), after_help = common::help_of_work())]
pub(crate) struct Options {
    /// Matrix Market file (.mtx, .mtx.gz, or in a .tar.gz, .tar or .zip), SciPy file (.npz), binary file of PETSc, or a gallery name such as poisson2d:512
    pub(crate) matrix: PathBuf,
    /// Right-hand sides: Matrix Market, .npy, .npz with one array, or binary file of PETSc; n numbers, n x k (a column each), or k x n if only that fits [default: A
    /// times ones, so that the answer is known]
    #[arg(long, value_name = "FILE")]
    pub(crate) rhs: Option<PathBuf>,
    #[arg(long, value_name = "NAME", default_value = "auto", help = among("auto", Method::ALL))]
    pub(crate) method: String,
    /// Damping of cgls, lsqr, lsmr: min |Ax - b|^2 + damp^2 |x|^2
    #[arg(long, value_name = "WEIGHT", default_value_t = 0.0)]
    pub(crate) damp: f64,
    /// Factor of each correction, for stationary, and for sirt and sart, below 2 [default: 1]
    #[arg(long, value_name = "FACTOR")]
    pub(crate) omega: Option<f64>,
    /// Directions that gmres and nnfcgls keep before they start again [default: as advised, else 30]
    #[arg(long, value_name = "COUNT")]
    pub(crate) restart: Option<usize>,
    /// Bounds of the eigenvalues, for chebyshev (of the preconditioned matrix)
    #[arg(long, value_name = "LOW,HIGH", value_delimiter = ',', num_args = 1)]
    pub(crate) eigenvalues: Option<Vec<f64>>,
    #[arg(long, value_name = "NAME", default_value = "auto", help = among("auto, none", Preconditioner::ALL))]
    pub(crate) preconditioner: String,
    /// Relaxation factor of sor and ssor, between 0 and 2 [default: 1]
    #[arg(long, value_name = "FACTOR")]
    pub(crate) relaxation: Option<f64>,
    /// Order in which gauss-seidel, sor and ssor take the rows [default: colours]
    #[arg(long, value_enum)]
    pub(crate) ordering: Option<RowOrder>,
    /// Scale by the column norms D before solving: D^-1/2 A D^-1/2, or A D^-1 if A is not square
    #[arg(long)]
    pub(crate) scale: bool,
    #[arg(long, value_name = "NAME", default_value_t, help = among("Order of the unknowns, for factors: natural", &Ordering::ALL[1..]))]
    pub(crate) order: Ordering,
    /// Parts of the rows for bainv, block-jacobi and two-level, as METIS's programs write them: a line for each row of the file with the number of its part
    #[arg(long, value_name = "FILE")]
    pub(crate) partition: Option<PathBuf>,
    /// Save the parts that the preconditioner was made over, as --partition reads them
    #[arg(long, value_name = "FILE")]
    pub(crate) save_partition: Option<PathBuf>,
    /// Stop when |b - Ax| <= RTOL |b| [default: 1e-8 in fp64, 1e-5 in fp32]
    #[arg(long)]
    pub(crate) rtol: Option<f64>,
    /// ... or when |b - Ax| <= ATOL
    #[arg(long, default_value_t = 0.0)]
    pub(crate) atol: f64,
    /// Least squares also stop when |A'r| <= GRADIENT_RTOL |A| |r|, the atol of SciPy's lsqr and lsmr [default: 1e-11 in fp64, 1e-6
    /// in fp32; 0 for never]
    #[arg(long)]
    pub(crate) gradient_rtol: Option<f64>,
    /// ... or when |A'r| has fallen to this part of its first value
    #[arg(long)]
    pub(crate) gradient_reduction: Option<f64>,
    /// Most iterations
    #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
    pub(crate) iterations: usize,

    /// Look at the matrix thoroughly before the solve (definite? how near to singular?), as without a named method; else that is done if the
    /// solve fails
    #[arg(long)]
    pub(crate) examine: bool,
    /// Compute the residual afresh every so many iterations; 0 for never (the end is verified in any case)
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) exact_every: usize,
    /// Longest time for set-up and iterations, of all right-hand sides together; with --compare of each preconditioner [default: none, with
    /// --compare 60]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) time_limit: Option<f64>,

    #[arg(long, value_enum, default_value_t = Precision::Fp64)]
    pub(crate) precision: Precision,
    #[command(flatten)]
    pub(crate) on: DeviceOptions,
    /// Storage of the matrix: auto, or one of csr, csr-scalar, csr-adaptive, ellpack, ellpack-r, sell, hyb, dia, bsr,
    /// dense, coo
    #[arg(long, value_name = "FORMAT", default_value = "auto")]
    pub(crate) format: Format,

    /// Solve with every preconditioner that suits the matrix, one after another: a table of set-up, iterations and time, a line as each is
    /// done; b is 1 everywhere unless --rhs names another
    #[arg(long, conflicts_with_all = ["preconditioner", "save"])]
    pub(crate) compare: bool,
    /// Draw the residual over the iterations (.png or .svg)
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
    /// Save the answer, or n x k answers: .npy, .npz, .mtx (Matrix Market array) or .txt
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) overwriting: Overwriting,
    /// Print one JSON object on stdout instead of text
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) history: HistoryOption,
}

/// Longest time of a preconditioner in a comparison, unless another is asked for.
const SECONDS_OF_CANDIDATE: f64 = 60.0;

/// The method whose name alone says too little.
const CHEBYSHEV: &str = "chebyshev";

impl Options {
    /// The method that is asked for, with its parameters.
    pub(crate) fn method(&self, advice: &Advice) -> Result<Method> {
        let named = match (&*self.method, self.eigenvalues.as_deref()) {
            ("auto", _) => advice.method,
            (CHEBYSHEV, Some(&[smallest, largest])) => Method::Chebyshev { smallest, largest },
            (CHEBYSHEV, _) => return Err(option("eigenvalues", "chebyshev needs --eigenvalues LOW,HIGH")),
            (name, _) => name.parse()?,
        };
        let takes_omega = matches!(named, Method::Stationary { .. } | Method::Sirt { .. } | Method::Sart { .. });
        refuse_unused(
            &format!("for {named}"),
            &[
                ("omega", self.omega.is_some() && !takes_omega),
                (
                    "restart",
                    self.restart.is_some() && !matches!(named, Method::Gmres { .. } | Method::Nnfcgls { .. }),
                ),
                ("eigenvalues", self.eigenvalues.is_some() && !matches!(named, Method::Chebyshev { .. })),
                ("gradient-rtol", self.gradient_rtol.is_some() && !named.has_gradient()),
                ("gradient-reduction", self.gradient_reduction.is_some() && !named.has_gradient()),
            ],
        )?;
        let takes_damp = matches!(named, Method::Cgls { .. } | Method::Lsqr { .. } | Method::Lsmr { .. });
        if self.damp != 0.0 && !takes_damp {
            return Err(option("damp", format!("{named} has no damping; cgls, lsqr and lsmr have")));
        }
        Ok(match named {
            Method::Cgls { .. } => Method::Cgls { damp: self.damp },
            Method::Lsqr { .. } => Method::Lsqr { damp: self.damp },
            Method::Lsmr { .. } => Method::Lsmr { damp: self.damp },
            Method::Stationary { omega } => Method::Stationary { omega: self.omega.unwrap_or(omega) },
            Method::Sirt { omega } => Method::Sirt { omega: self.omega.unwrap_or(omega) },
            Method::Sart { omega } => Method::Sart { omega: self.omega.unwrap_or(omega) },
            Method::Gmres { restart } => Method::Gmres { restart: self.restart.unwrap_or(restart) },
            Method::Nnfcgls { restart } => Method::Nnfcgls { restart: self.restart.unwrap_or(restart) },
            other => other,
        })
    }

    /// Properties of the matrix that are known before the solve. Only an advice on the method needs all that can be told.
    pub(crate) fn examination<T: Real>(&self, a: &Csr<T>) -> Result<Examination> {
        if self.examines() { Examination::of(a) } else { Examination::quick(a) }
    }

    /// Tells if the matrix is examined thoroughly before the solve.
    pub(crate) fn examines(&self) -> bool {
        self.examine || self.method == "auto"
    }

    /// The preconditioner that is asked for, with its parameters, or those that suit the matrix.
    pub(crate) fn chain(&self, method: &Method, found: &Examination) -> Result<Vec<Option<Preconditioner>>> {
        let named = match &*self.preconditioner {
            "none" | "auto" => None,
            name => Some(name.parse()?),
        };
        let ordering = match self.ordering {
            Some(RowOrder::Rows) => RowOrdering::Rows,
            _ => RowOrdering::Colours,
        };
        let omega = self.relaxation.unwrap_or(1.0);
        if !(omega > 0.0 && omega < 2.0) {
            return Err(option("relaxation", format!("{omega} is not above 0 and below 2")));
        }
        let (made, [orders, relaxes]) = match named {
            Some(Preconditioner::Sweep(sweep)) => {
                let made = sweep.with_ordering(ordering).with_omega(omega);
                (Some(Preconditioner::Sweep(made)), [true, sweep.kind != SweepKind::GaussSeidel])
            }
            other => (other, [false; 2]),
        };
        let name = name_of(made.as_ref());
        refuse_unused(
            &format!("for the preconditioner {name}"),
            &[
                ("ordering", self.ordering.is_some() && !orders),
                ("relaxation", self.relaxation.is_some() && !relaxes),
            ],
        )?;
        Ok(if self.preconditioner == "auto" { found.fallback_chain(method) } else { vec![made] })
    }

    /// The parts of the rows that were asked for. `order` is that of the rows in the solve, if it is not that of the file.
    pub(crate) fn partition(
        &self,
        order: Option<&Permutation>,
        chain: &[Option<Preconditioner>],
    ) -> Result<Option<Partition>> {
        if !matches!(chain, [Some(which)] if which.takes_partition()) {
            let name = name_of(chain.first().and_then(Option::as_ref));
            let asked =
                [("partition", self.partition.is_some()), ("save-partition", self.save_partition.is_some())];
            refuse_unused(&format!("for the preconditioner {name}"), &asked)?;
        }
        let given = self.partition.as_deref().map(io::read_partition).transpose()?;
        match (given, order) {
            (Some(given), Some(order)) => given.permuted(order).map(Some),
            (given, _) => Ok(given),
        }
    }

    /// When to stop.
    pub(crate) fn stopping<T: Real>(&self) -> Result<Stopping> {
        let default = Stopping::for_precision::<T>();
        let rtol = self.rtol.unwrap_or(default.rtol);
        let gradient_rtol = self.gradient_rtol.unwrap_or(default.gradient_rtol);
        let gradient_reduction = self.gradient_reduction.unwrap_or(default.gradient_reduction);
        let limit = self.time_limit.or(self.compare.then_some(SECONDS_OF_CANDIDATE));
        let limit = limit.map(Duration::try_from_secs_f64).transpose();
        Ok(default
            .with_rtol(rtol)
            .with_atol(self.atol)
            .with_gradient_rtol(gradient_rtol)
            .with_gradient_reduction(gradient_reduction)
            .with_max_iterations(self.iterations)
            .with_exact_every(self.exact_every)
            .with_time_limit(limit.map_err(|e| option("time-limit", e.to_string()))?))
    }

    /// Fails on names that are not known, on outputs that are inputs, cannot be written, or that this build cannot draw.
    pub(crate) fn check(&self) -> Result<()> {
        let inputs: Vec<&Path> = [Some(&self.matrix), self.rhs.as_ref(), self.partition.as_ref()]
            .into_iter()
            .flatten()
            .map(|p| &**p)
            .collect();
        let outputs = [
            ("plot", self.plot.as_deref()),
            ("save", self.save.as_deref()),
            ("save-partition", self.save_partition.as_deref()),
        ];
        let outputs: Vec<(&'static str, &Path)> =
            outputs.into_iter().filter_map(|(name, path)| Some((name, path?))).collect();
        check_outputs(&inputs, &outputs)?;
        if let Some(path) = &self.save {
            io::ArrayForm::check(path, 2)?;
        }
        self.overwriting.check(&outputs)?;
        if !matches!(&*self.preconditioner, "auto" | "none") {
            self.preconditioner.parse::<Preconditioner>()?;
        }
        if !matches!(&*self.method, "auto" | CHEBYSHEV) {
            self.method.parse::<Method>()?;
        }
        self.plot.as_deref().map_or(Ok(()), plot::check)
    }
}

/// The name of a preconditioner with its parameter, or `none`.
pub(crate) fn name_of(preconditioner: Option<&Preconditioner>) -> String {
    preconditioner.map_or("none".into(), Preconditioner::to_string)
}
