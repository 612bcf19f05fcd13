//! Solves a sparse system, or a least-squares problem, from a file: with the method that suits the matrix, or another.
#![allow(clippy::print_stdout, clippy::print_stderr)]
#![recursion_limit = "256"] // one JSON object of many fields

#[macro_use]
mod common;
mod plot;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use common::{
    Precision, Written, check_ending, check_outputs, option, reading_bar, refuse_unused, show, solving_bar,
};
use plot::Chart;
use residuum::io::{self, npy};
use residuum::operator::{Diagonal, SharedOperator};
use residuum::precond::{Ordering, Sweep};
use residuum::sparse::gallery;
use residuum::{
    Advice, Csr, Device, Error, Examination, Format, Matrix, Method, Progress, Real, Report, Result, Setup, Solver,
    Stopping, Vector,
};
use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Preconditioner {
    /// Jacobi where the advice names it and the method takes it
    Auto,
    None,
    /// The inverse of the diagonal
    Jacobi,
    /// One sweep over the rows; with stationary the method of that name
    GaussSeidel,
    /// The same with --relaxation
    Sor,
    /// A sweep forwards and one back: symmetric, for cg
    Ssor,
}

impl Preconditioner {
    fn name(self) -> &'static str {
        match self {
            Self::Auto | Self::None => "none",
            Self::Jacobi => "jacobi",
            Self::GaussSeidel => "gauss-seidel",
            Self::Sor => "sor",
            Self::Ssor => "ssor",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RowOrder {
    /// By colours: all rows of one at once
    Colours,
    /// As they are: those that need none of each other at once
    Rows,
}

/// Solve A x = b, or min |A x - b|, with the method that suits the matrix.
///
/// Exit status: 0 converged, 1 not converged (the text says why, and what to do), 2 bad input.
#[derive(Debug, Parser)]
#[command(version)]
struct Options {
    /// Matrix Market (.mtx, .mtx.gz) or SciPy (.npz) file, or a gallery name such as poisson2d:512
    matrix: PathBuf,
    /// Right-hand side: Matrix Market or .npy, n numbers or one column of them [default: A times ones, so that the answer is known]
    #[arg(long, value_name = "FILE")]
    rhs: Option<PathBuf>,
    /// auto, or one of cg, steepest-descent, minres, bicgstab, gmres, chebyshev, stationary, cgls, cgne, lsqr, lsmr
    #[arg(long, value_name = "NAME", default_value = "auto")]
    method: String,
    /// Damping of cgls, lsqr, lsmr: min |Ax - b|^2 + damp^2 |x|^2
    #[arg(long, value_name = "WEIGHT", default_value_t = 0.0)]
    damp: f64,
    /// Factor of each correction, for stationary [default: 1]
    #[arg(long, value_name = "FACTOR")]
    omega: Option<f64>,
    /// Directions that gmres keeps before it starts again [default: as advised, else 30]
    #[arg(long, value_name = "COUNT")]
    restart: Option<usize>,
    /// Bounds of the eigenvalues, for chebyshev (of the preconditioned matrix)
    #[arg(long, value_name = "LOW,HIGH", value_delimiter = ',', num_args = 1)]
    eigenvalues: Option<Vec<f64>>,
    #[arg(long, value_enum, default_value_t = Preconditioner::Auto)]
    preconditioner: Preconditioner,
    /// Relaxation factor of sor and ssor, between 0 and 2
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    relaxation: f64,
    /// In which order gauss-seidel, sor and ssor take the rows [default: colours]
    #[arg(long, value_enum)]
    ordering: Option<RowOrder>,
    /// Scale by the column norms D before solving: D^-1/2 A D^-1/2, or A D^-1 where A is not square
    #[arg(long)]
    scale: bool,
    /// Stop when |b - Ax| <= RTOL |b| [default: 1e-8 in fp64, 1e-5 in fp32]
    #[arg(long)]
    rtol: Option<f64>,
    /// ... or when |b - Ax| <= ATOL
    #[arg(long, default_value_t = 0.0)]
    atol: f64,
    /// Least squares also stop when |A'r| <= GRADIENT_RTOL |A| |r|, the atol of SciPy's lsqr and lsmr [default: 1e-11 in fp64, 1e-6
    /// in fp32; 0 for never]
    #[arg(long)]
    gradient_rtol: Option<f64>,
    /// ... or when |A'r| has fallen to this part of its first value
    #[arg(long)]
    gradient_reduction: Option<f64>,
    /// Most iterations
    #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
    iterations: usize,

    /// Compute the residual afresh every so many iterations; 0 for never (the end is verified in any case)
    #[arg(long, value_name = "N", default_value_t = 0)]
    exact_every: usize,
    /// Longest time to iterate
    #[arg(long, value_name = "SECONDS")]
    time_limit: Option<f64>,

    #[arg(long, value_enum, default_value_t = Precision::Fp64)]
    precision: Precision,
    /// Device: words that must all match, such as gpu, nvidia, !pocl, memory=8G, 0:1, host [default: RESIDUUM_DEVICE, else the best]
    #[arg(long, value_name = "WORDS")]
    device: Option<String>,
    /// Work-items of a work-group: changes time, never the answer
    #[arg(long, value_name = "SIZE")]
    work_group: Option<usize>,
    /// Storage of the matrix: auto, or one of csr, csr-scalar, csr-adaptive, ellpack, ellpack-r, sell, hyb, dia, bsr,
    /// dense, coo
    #[arg(long, value_name = "FORMAT", default_value = "auto")]
    format: Format,

    /// Draw the residual over the iterations (.png or .svg)
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Save the answer (.npy)
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Print one JSON object on stdout instead of text
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    env_logger::init();
    let options = Options::parse();
    let outcome = match options.precision {
        Precision::Fp32 => run::<f32>(&options),
        Precision::Fp64 => run::<f64>(&options),
    };
    common::exit::<Options>("solve", outcome)
}

/// A matrix by the name of a file or of the gallery.
fn read_matrix<T: Real>(options: &Options) -> Result<Csr<T>> {
    let path = &options.matrix;
    if !path.exists() {
        let missing = || Error::File {
            path: path.clone(),
            reason: "no such file, nor a name of the gallery (poisson2d:512 is one)".into(),
        };
        // A name of the gallery that is too large says so.
        return match path.to_str().map(gallery::by_name) {
            Some(Err(Error::Option { .. })) | None => Err(missing()),
            Some(found) => found,
        };
    }
    let bar = reading_bar(options.json);
    let matrix = io::read_matrix(path, &mut |done, of| {
        bar.set_length(of);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    matrix
}

fn read_rhs<T: Real>(path: &Path, rows: usize) -> Result<Vec<f64>> {
    let vectors: Vec<Vec<T>> = io::read_vectors(path)?;
    match &vectors[..] {
        [b] if b.len() == rows => Ok(b.iter().map(|v| v.to_f64()).collect()),
        [b] => Err(option("rhs", format!("{} numbers for {rows} rows", b.len()))),
        many => Err(option("rhs", format!("{} vectors; this program takes one", many.len()))),
    }
}

/// The method that is asked for, with its parameters.
fn method(options: &Options, advice: &Advice) -> Result<Method> {
    let named = if options.method == "auto" { advice.method } else { options.method.parse()? };
    refuse_unused(
        &format!("for {named}"),
        &[
            ("omega", options.omega.is_some() && !matches!(named, Method::Stationary { .. })),
            ("restart", options.restart.is_some() && !matches!(named, Method::Gmres { .. })),
            ("eigenvalues", options.eigenvalues.is_some() && !matches!(named, Method::Chebyshev { .. })),
            ("gradient-rtol", options.gradient_rtol.is_some() && !named.has_gradient()),
            ("gradient-reduction", options.gradient_reduction.is_some() && !named.has_gradient()),
        ],
    )?;
    Ok(match named {
        Method::Cgls { .. } => Method::Cgls { damp: options.damp },
        Method::Lsqr { .. } => Method::Lsqr { damp: options.damp },
        Method::Lsmr { .. } => Method::Lsmr { damp: options.damp },
        Method::Stationary { .. } => Method::Stationary { omega: options.omega.unwrap_or(1.0) },
        Method::Gmres { restart } => Method::Gmres { restart: options.restart.unwrap_or(restart) },
        Method::Chebyshev { .. } => match options.eigenvalues.as_deref() {
            Some(&[smallest, largest]) => Method::Chebyshev { smallest, largest },
            _ => return Err(option("eigenvalues", "chebyshev needs --eigenvalues LOW,HIGH")),
        },
        _ if options.damp != 0.0 => {
            return Err(option("damp", format!("{named} has no damping; cgls, lsqr and lsmr have")));
        }
        other => other,
    })
}

/// The preconditioner that is meant by auto.
fn preconditioner(options: &Options, method: &Method, advice: &Advice) -> Preconditioner {
    // A stationary iteration without one would be Richardson's, which few matrices bear.
    let wanted = advice.jacobi || matches!(method, Method::Stationary { .. });
    match options.preconditioner {
        Preconditioner::Auto if method.takes_preconditioner() && wanted => Preconditioner::Jacobi,
        Preconditioner::Auto => Preconditioner::None,
        named => named,
    }
}

/// It, made for a matrix.
fn prepare<T: Real>(
    options: &Options,
    which: Preconditioner,
    device: &Device,
    a: &Csr<T>,
) -> Result<Option<SharedOperator<T>>> {
    let ordering = match options.ordering {
        Some(RowOrder::Rows) => Ordering::Rows,
        _ => Ordering::Colours,
    };
    let by_rows = matches!(which, Preconditioner::GaussSeidel | Preconditioner::Sor | Preconditioner::Ssor);
    let ordered = options.ordering.is_some() && !by_rows;
    refuse_unused(&format!("for the preconditioner {}", which.name()), &[("ordering", ordered)])?;
    let sweeps = matches!(which, Preconditioner::Sor | Preconditioner::Ssor);
    if options.relaxation != 1.0 && !sweeps {
        return Err(option("relaxation", format!("{} has none; sor and ssor have", which.name())));
    }
    Ok(match which {
        Preconditioner::Auto | Preconditioner::None => None,
        Preconditioner::Jacobi => Some(Diagonal::inverse_of(device, a)?.into()),
        Preconditioner::GaussSeidel => Some(Sweep::gauss_seidel(device, a, ordering)?.into()),
        Preconditioner::Sor => Some(Sweep::sor(device, a, options.relaxation, ordering)?.into()),
        Preconditioner::Ssor => Some(Sweep::ssor(device, a, options.relaxation, ordering)?.into()),
    })
}

/// What was solved, and with what.
struct Finished<'a> {
    options: &'a Options,
    device: &'a Device,
    found: &'a Examination,
    advice: &'a Advice,
    objection: Option<String>,
    explanation: Option<String>,
    preconditioner: &'static str,
    why_format: String,
    /// `|x - ones| / |ones|`, where the right-hand side was A times ones.
    error: Option<f64>,
    report: Report,
    written: Vec<PathBuf>,
    read_seconds: f64,
    examine_seconds: f64,
    upload_seconds: f64,
    total_seconds: f64,
}

fn run<T: Real>(options: &Options) -> Result<bool> {
    let start = Instant::now();
    let inputs: Vec<&Path> =
        [Some(&options.matrix), options.rhs.as_ref()].into_iter().flatten().map(|p| &**p).collect();
    let outputs = [("plot", options.plot.as_deref()), ("save", options.save.as_deref())];
    let outputs: Vec<(&'static str, &Path)> =
        outputs.into_iter().filter_map(|(name, path)| Some((name, path?))).collect();
    check_outputs(&inputs, &outputs)?;
    if let Some(path) = &options.plot {
        check_ending("plot", path, &["png", "svg"])?;
    }
    let device = common::device::<T>(options.device.as_deref(), options.work_group)?;
    let say = |key: &str, text: &str| {
        if !options.json {
            say!("{key:<11} {text}");
        }
    };
    say("device", &format!("{} on {}", device.info().name, device.info().platform));
    say("", device.choice());
    let clock = Instant::now();
    let a: Csr<T> = read_matrix(options)?;
    a.check_host_memory()?;
    let b = match &options.rhs {
        Some(path) => read_rhs::<T>(path, a.rows())?,
        None => a.product(&vec![1.0; a.cols()])?,
    };
    let read_seconds = clock.elapsed().as_secs_f64();
    let clock = Instant::now();
    let (left, right) = scales(options, &a);
    let before = Examination::spread(&a.column_norms());
    let a = if options.scale { a.scaled(&left, &right)? } else { a };
    let found = Examination::of(&a);
    let mut advice = found.advise(T::PRECISION);
    if options.scale && before > 1e6 {
        advice.warnings.push(format!(
            "before it was scaled, norms of columns differed by a factor of {before:.0e}: a small residual says little of \
             the unknowns of the small ones"
        ));
    }
    if options.rhs.is_none() && a.nnz() > 0 && b.iter().all(|v| *v == 0.0) {
        let words = "A times ones is 0, and so is the answer: name a right-hand side by --rhs";
        advice.warnings.push(words.into());
    }
    let examine_seconds = clock.elapsed().as_secs_f64();
    say(
        "matrix",
        &format!(
            "{}: {} x {}, {} entries, {}",
            options.matrix.display(),
            a.rows(),
            a.cols(),
            a.nnz(),
            T::PRECISION
        ),
    );
    say("advice", &advice.to_string());
    for warning in &advice.warnings {
        say("warning", warning);
    }
    let method = method(options, &advice)?;
    let objection = found.objection(&method);
    if let Some(objection) = &objection {
        say("warning", objection);
    }
    let clock = Instant::now();
    let matrix = match method.takes_rectangles() {
        true => Matrix::with_transpose(&device, &a, options.format)?,
        false => Matrix::new(&device, &a, options.format)?,
    };
    let which = preconditioner(options, &method, &advice);
    let prepared = prepare(options, which, &device, &a)?;
    let scaled: Vec<T> = b.iter().zip(&left).map(|(b, l)| T::from_f64(b * l)).collect();
    let b = Vector::from_slice(&device, &scaled)?;
    device.synchronize()?;
    let upload_seconds = clock.elapsed().as_secs_f64();
    let preconditioner = which.name();
    say("method", &format!("{method}, preconditioner {preconditioner}, {} ({})", matrix.format(), matrix.why()));
    let mut x = Vector::zeros(&device, a.cols())?;
    let report = solve(options, &matrix, method, prepared, &b, &mut x)?;
    let answer: Vec<T> = x.to_vec()?.iter().zip(&right).map(|(x, r)| T::from_f64(x.to_f64() * r)).collect();
    let square = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>();
    let nothing = b.norm2()? == 0.0;
    let error = options
        .rhs
        .is_none()
        .then_some(())
        .filter(|()| !nothing)
        .map(|()| (square(&mut answer.iter().map(|x| x.to_f64() - 1.0)) / answer.len().max(1) as f64).sqrt());
    let mut written = Written::default();
    if let Some(path) = &options.save {
        written.add(path, npy::write(path, &[answer.len()], &answer));
    }
    if let Some(path) = &options.plot {
        written.add(path, draw(options, &report).write(path));
    }
    let finished = Finished {
        options,
        device: &device,
        found: &found,
        advice: &advice,
        objection,
        explanation: found.explain(&report),
        preconditioner,
        why_format: matrix.why().to_string(),
        error,
        report,
        written: written.paths.clone(),
        read_seconds,
        examine_seconds,
        upload_seconds,
        total_seconds: start.elapsed().as_secs_f64(),
    };
    if options.json {
        say!("{}", finished.json());
    } else {
        finished.print();
    }
    written.finish()?;
    Ok(finished.report.converged())
}

/// Factors of rows and columns: 1 without `--scale`.
fn scales<T: Real>(options: &Options, a: &Csr<T>) -> (Vec<f64>, Vec<f64>) {
    if !options.scale {
        return (vec![1.0; a.rows()], vec![1.0; a.cols()]);
    }
    let inverse: Vec<f64> = a.column_norms().iter().map(|n| if *n > 0.0 { 1.0 / n } else { 1.0 }).collect();
    if a.rows() == a.cols() {
        let root: Vec<f64> = inverse.iter().map(|v| v.sqrt()).collect();
        (root.clone(), root)
    } else {
        (vec![1.0; a.rows()], inverse)
    }
}

fn solve<T: Real>(
    options: &Options,
    matrix: &Matrix<T>,
    method: Method,
    preconditioner: Option<SharedOperator<T>>,
    b: &Vector<T>,
    x: &mut Vector<T>,
) -> Result<Report> {
    let default = Stopping::for_precision::<T>();
    let limit = options.time_limit.map(Duration::try_from_secs_f64).transpose();
    let stopping = Stopping {
        rtol: options.rtol.unwrap_or(default.rtol),
        atol: options.atol,
        gradient_rtol: options.gradient_rtol.unwrap_or(default.gradient_rtol),
        gradient_reduction: options.gradient_reduction.unwrap_or(default.gradient_reduction),
        max_iterations: options.iterations,
        exact_every: options.exact_every,
        time_limit: limit.map_err(|e| option("time-limit", e.to_string()))?,
        ..default
    };
    let mut setup = Setup::new(method, stopping);
    setup.preconditioner = preconditioner;
    let bar = solving_bar(options.json, options.iterations);
    let report = Solver::with(matrix, setup)?.solve_observed(b, x, &mut |progress: &Progress| {
        show(&bar, progress);
        ControlFlow::Continue(())
    });
    bar.finish_and_clear();
    report
}

/// The residual, and for least squares the gradient, over the iterations.
fn draw(options: &Options, report: &Report) -> Chart<'static> {
    let relative = |history: &[f64], by: f64| {
        let by = if by > 0.0 { by } else { 1.0 };
        history.iter().enumerate().map(|(k, v)| (k as f64, v / by)).collect::<Vec<_>>()
    };
    let mut lines = vec![("|b - Ax| / |b|".to_string(), relative(&report.history, report.rhs_norm))];
    if let Some(first) = report.gradient_history.first() {
        lines.push(("|A'r| / |A'b|".to_string(), relative(&report.gradient_history, *first)));
    }
    Chart {
        title: format!(
            "{}: {}, {}, on {}",
            options.matrix.display(),
            report.method,
            report.precision,
            report.device
        ),
        across: "iteration",
        up: "norm, relative to the first",
        lines,
        goal: options.rtol.map(|rtol| ("rtol", rtol)),
        ..Chart::default()
    }
}

impl Finished<'_> {
    fn true_relative_residual(&self) -> f64 {
        self.report.relative_residual()
    }

    fn print(&self) {
        let report = &self.report;
        say!(
            "result      {} after {} iterations, |b - Ax| / |b| = {:.3e}",
            report.stop,
            report.iterations,
            self.true_relative_residual()
        );
        if let Some(gradient) = report.gradient {
            say!("            |A'r| = {gradient:.3e}");
        }
        if let Some(error) = self.error {
            say!("            |x - 1| / |1| = {error:.3e}");
        }
        if let Some(explanation) = &self.explanation {
            say!("            {explanation}");
        }
        say!(
            "seconds     read {:.3}, examine {:.3}, upload {:.3}, compile {:.3}, solve {:.3}, verify {:.3}, total {:.3}",
            self.read_seconds,
            self.examine_seconds,
            self.upload_seconds,
            report.times.compile,
            report.times.solve,
            report.times.verify,
            self.total_seconds
        );
        for path in &self.written {
            say!("wrote       {}", path.display());
        }
    }

    fn json(&self) -> Value {
        let (report, info, found) = (&self.report, self.device.info(), self.found);
        let relative = if report.rhs_norm > 0.0 { report.residual / report.rhs_norm } else { report.residual };
        let written: Vec<String> = self.written.iter().map(|p| p.display().to_string()).collect();
        let finite = |v: f64| if v.is_finite() { json!(v) } else { Value::Null };
        json!({
            "device": info.name,
            "backend": report.backend,
            "platform": info.platform,
            "driver": info.driver,
            "choice": self.device.choice(),
            "problem": self.options.matrix.display().to_string(),
            "rows": found.rows,
            "cols": found.cols,
            "nnz": found.nnz,
            "symmetric": found.symmetric,
            "definiteness": format!("{:?}", found.definiteness),
            "structural_rank": found.structural_rank,
            "condition_at_least": finite(found.condition),
            "scaled": self.options.scale,
            "advice": self.advice.to_string(),
            "warnings": self.advice.warnings,
            "objection": self.objection,
            "explanation": self.explanation,
            "method": report.method.name(),
            "preconditioner": self.preconditioner,
            "format": report.format.to_string(),
            "why_format": self.why_format,
            "precision": report.precision.to_string(),
            "accumulation": report.accumulation.to_string(),
            "work_group": self.device.tuning().work_group,
            "tuning": report.tuning,
            "max_iterations": self.options.iterations,
            "iterations": report.iterations,
            "stop": format!("{:?}", report.stop),
            "residual": finite(report.residual),
            "true_residual": finite(report.true_residual),
            "relative_residual": finite(relative),
            "true_relative_residual": finite(self.true_relative_residual()),
            "gradient": report.gradient,
            "error": self.error,
            "restarts": report.restarts,
            "launches_per_iteration": report.launches_per_iteration,
            "written": written,
            "seconds": {
                "read": self.read_seconds,
                "examine": self.examine_seconds,
                "upload": self.upload_seconds,
                "compile": report.times.compile,
                "solve": report.times.solve,
                "verify": report.times.verify,
                "total": self.total_seconds,
            },
        })
    }
}
