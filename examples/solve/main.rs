//! Solves a sparse system, or a least-squares problem, from a file: with the method that suits the matrix, or another.

mod columns;
mod compare;
mod options;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use columns::{Solved, System};
use common::plot::Chart;
use common::{Precision, Written, device_json, interrupt, merged, option, say, shown, solving_bar, tell};
use options::{Options, name_of};
use residuum::io::{self, FileColumns};
use residuum::sparse::{Ordering, Permutation};
use residuum::{
    Advice, Attempt, Csr, Definiteness, Device, Examination, FallbackSolve, Format, Matrix, Method, Progress, Real,
    Report, Result, Setup, Stop, Vector, solve_with_fallbacks,
};
use serde_json::{Value, json};

fn main() -> ExitCode {
    common::begin("solve");
    let options = Options::parse();
    let outcome = match options.precision {
        Precision::Fp32 => run::<f32>(&options),
        Precision::Fp64 => run::<f64>(&options),
    };
    common::exit::<Options>("solve", outcome)
}

/// Right-hand sides, and if they are the rows of the file.
fn read_rhs<T: Real>(path: &Path, rows: usize) -> Result<(Vec<Vec<f64>>, bool)> {
    let FileColumns { vectors, by_rows, .. } = io::read_columns::<T>(path, rows)?;
    Ok((vectors.iter().map(|b| b.iter().map(|v| v.to_f64()).collect()).collect(), by_rows))
}

/// System and right-hand side; for a comparison scaled if that was asked for.
struct Problem<T: Real> {
    a: Csr<T>,
    /// Right-hand sides.
    b: Vec<Vec<T>>,
    /// Tells if they are the rows of their file, not the columns.
    by_rows: bool,
    /// Tells if rows and columns are scaled.
    scale: bool,
    /// Order of the rows and columns of `a`, if it is not that of the file.
    order: Option<Permutation>,
    found: Examination,
    advice: Advice,
    /// Warnings that are not of the matrix alone.
    remarks: Vec<String>,
    read_seconds: f64,
    examine_seconds: f64,
}

fn problem<T: Real>(options: &Options) -> Result<Problem<T>> {
    let clock = Instant::now();
    let a: Csr<T> = common::read_matrix(&options.matrix, options.json)?;
    a.check_host_memory()?;
    if a.rows() == 0 || a.cols() == 0 {
        let reason = format!("a matrix of {} x {}: there is nothing to solve", a.rows(), a.cols());
        return Err(option("matrix", reason));
    }
    let (b, by_rows) = match &options.rhs {
        Some(path) => read_rhs::<T>(path, a.rows())?,
        // A smooth answer would flatter what is compared.
        None if options.compare => (vec![vec![1.0; a.rows()]], false),
        None => (vec![a.product(&vec![1.0; a.cols()])?], false),
    };
    if options.compare && b.len() > 1 {
        return Err(option("rhs", format!("{} right-hand sides; --compare takes one", b.len())));
    }
    let read_seconds = clock.elapsed().as_secs_f64();
    let clock = Instant::now();
    let asks = options.scale || options.method == "auto";
    let before = if asks { Examination::spread(&a.column_norms()) } else { 1.0 };
    // Small unknowns are lost beside rows that large as long as the norm of all residuals decides. The diagonal of a symmetric matrix
    // scales it well enough: it is the first preconditioner there.
    let lost = |found: &Examination| before > FAR_APART && found.square() && !found.symmetric && !options.compare;
    let unscaled = (!options.scale).then(|| options.examination(&a)).transpose()?;
    let (scaled, found) = match unscaled.filter(|found| !lost(found)) {
        Some(found) => (None, found),
        None => {
            let system = scaled(&a, &b[0])?;
            let found = options.examination(&system.0)?;
            (Some(system), found)
        }
    };
    let scale = scaled.is_some();
    let mut advice = found.advise(T::PRECISION);
    let mut remarks = Vec::new();
    if before > FAR_APART && options.compare {
        remarks.push(format!(
            "before it was scaled, norms of columns differed by a factor of {before:.0e}: a small residual says little of \
             the unknowns of the small ones"
        ));
    } else if before > FAR_APART && scale {
        remarks.push(format!("norms of columns differ by a factor of {before:.0e}: rows and columns are scaled"));
    }
    if options.rhs.is_none() && !options.compare && a.nnz() > 0 && b[0].iter().all(|v| *v == 0.0) {
        let words = "A times ones is 0, and so is the answer: name a right-hand side by --rhs";
        remarks.push(words.into());
    }
    advice.warnings.extend(remarks.iter().cloned());
    let (a, b) = match scaled {
        // A comparison keeps no answers: it solves the scaled system as it is.
        Some((a, b)) if options.compare => (a, vec![b]),
        _ => (a, b.iter().map(|b| b.iter().map(|v| T::from_f64(*v)).collect()).collect()),
    };
    let order = match options.order {
        Ordering::Natural => None,
        ordering => Some(Permutation::of(&a, ordering)?),
    };
    let (a, b) = match &order {
        Some(order) => (a.permuted(order, order)?, b.iter().map(|b| order.apply(b)).collect::<Result<_>>()?),
        None => (a, b),
    };
    let examine_seconds = clock.elapsed().as_secs_f64();
    Ok(Problem { a, b, by_rows, scale, order, found, advice, remarks, read_seconds, examine_seconds })
}

/// The system with rows and columns scaled.
fn scaled<T: Real>(a: &Csr<T>, b: &[f64]) -> Result<(Csr<T>, Vec<T>)> {
    let [left, right] = a.equilibration();
    let b = b.iter().zip(&left).map(|(b, l)| T::from_f64(b * l)).collect();
    Ok((a.scaled(&left, &right)?, b))
}

impl<T: Real> Problem<T> {
    /// Faults of the matrix, and of `method` for it, in words.
    fn warnings(&self, method: &Method) -> Vec<String> {
        self.advice.warnings.iter().cloned().chain(self.found.objection(method)).collect()
    }

    /// Examines the matrix thoroughly, in the order of the file.
    fn examine(&mut self) -> Result<()> {
        let clock = Instant::now();
        self.found = match &self.order {
            Some(order) => Examination::of(&self.a.permuted(&order.inverse(), &order.inverse())?)?,
            None => Examination::of(&self.a)?,
        };
        self.advice = self.found.advise(T::PRECISION);
        self.advice.warnings.extend(self.remarks.iter().cloned());
        self.examine_seconds += clock.elapsed().as_secs_f64();
        Ok(())
    }

    /// The unknowns of the file, of those that were solved for.
    fn given(&self, x: Vec<T>) -> Result<Vec<T>> {
        self.order.as_ref().map_or(Ok(x.clone()), |order| order.undo(&x))
    }
}

fn run<T: Real>(options: &Options) -> Result<bool> {
    let start = Instant::now();
    options.check()?;
    let named = options.on.open_if_named::<T>()?;
    let say = |key: &str, text: &str| {
        log::info!("{key}: {text}");
        if !options.json {
            say!("{key:<11} {text}");
        }
    };
    let mut problem = problem::<T>(options)?;
    let a = &problem.a;
    let device = named.map_or_else(|| options.on.open_for::<T>(a.nnz()), Ok)?;
    say("device", &format!("{} on {}", device.info().name, device.info().platform));
    say("", device.choice());
    let (rows, cols, entries) = (a.rows(), a.cols(), a.nnz());
    let name = options.matrix.display();
    say("matrix", &format!("{name}: {rows} x {cols}, {entries} entries, {}", T::PRECISION));
    if options.rhs.is_none() {
        say("rhs", "none named: b = A times ones, so that the error of x is known");
    }
    let quick = if options.examines() { "" } else { " (by a quick look)" };
    say("advice", &format!("{}{quick}", problem.advice));
    let method = options.method(&problem.advice)?;
    let chain = options.chain(&method, &problem.found)?;
    problem.warnings(&method).iter().for_each(|warning| say("warning", warning));
    let clock = Instant::now();
    let matrix = match method.takes_rectangles() {
        true => Matrix::with_transpose(&device, a, options.format)?,
        false => Matrix::new(&device, a, options.format)?,
    };
    let setup = Setup::new(method, options.stopping::<T>()?);
    if options.compare {
        let b = Vector::from_slice(&device, &problem.b[0])?;
        return compare(options, &device, &problem, (&matrix, &b), &setup);
    }
    device.synchronize()?;
    let upload_seconds = clock.elapsed().as_secs_f64();
    say("method", &format!("{method}, {} ({})", matrix.format(), matrix.why()));
    let names: Vec<String> = chain.iter().map(|which| name_of(which.as_ref())).collect();
    say("", &format!("preconditioner {}", names.join(", or if that fails or is slow ")));
    let partition = options.partition(problem.order.as_ref(), &chain)?;
    let bar = solving_bar(options.json, options.iterations);
    let system = System {
        matrix: &matrix,
        a,
        partition: partition.as_ref(),
        setup: &setup,
        chain: &chain,
        scale: problem.scale.then_some(options.scale),
        bar: &bar,
    };
    interrupt::keep_work();
    let solved = system.solve(&problem.b);
    bar.finish_and_clear();
    let Solved { answers, reports, which, built, attempts, seconds: answer_seconds, way } = solved?;
    attempts.iter().filter(|_| attempts.len() > 1).for_each(|attempt| say("tried", &attempt.to_string()));
    say("precond.", built.as_ref().map_or("none", |built| &built.why));
    way.iter().for_each(|way| say("", way));
    let answers = answers.into_iter().map(|x| problem.given(x)).collect::<Result<Vec<_>>>()?;
    let mut written = write(options, &answers, problem.by_rows, &reports);
    let converged = reports.iter().all(Report::converged);
    if let (Some(path), Some(parts)) = (&options.save_partition, built.as_ref().and_then(|b| b.partition.as_ref()))
    {
        // Rows of the file.
        let saved = match &problem.order {
            Some(order) => parts.permuted(&order.inverse()).and_then(|parts| io::write_partition(path, &parts)),
            None => io::write_partition(path, parts),
        };
        written.add(path, saved);
    }
    let most_bytes = match which.filter(|_| !method.takes_rectangles()) {
        Some(which) => which.most_bytes(a)?,
        None => None,
    };
    if !converged && !options.examines() {
        problem.examine()?;
        problem.warnings(&method).iter().for_each(|warning| say("warning", warning));
    }
    // Advice that was tried is worth more than advice.
    let tried = match reports.iter().position(|report| !report.converged()) {
        Some(k) if !matches!(reports[k].stop, Stop::Cancelled | Stop::TimeLimit) => {
            let b = Vector::from_slice(&device, &problem.b[k])?;
            instead(&device, &problem, options.format, &setup, &reports[k], &b)?
        }
        _ => Tried::default(),
    };
    tried.words.iter().for_each(|words| say("tried", words));
    let known = options.rhs.is_none() && reports[0].rhs_norm > 0.0;
    let finished = Finished {
        options,
        device: &device,
        found: &problem.found,
        advice: &problem.advice,
        scaled: problem.scale,
        objection: problem.found.objection(&method),
        preconditioner: json!({
            "preconditioner": name_of(which.as_ref()),
            "preconditioner_entries": built.as_ref().map(|built| built.entries),
            "preconditioner_bytes": built.as_ref().map(|built| built.operator.bytes()),
            "preconditioner_most_bytes": most_bytes,
            "shift": built.as_ref().and_then(|built| built.shift),
            "setup_seconds": built.as_ref().map_or(0.0, |built| built.seconds),
            "answer_seconds": answer_seconds,
            "why_preconditioner": built.as_ref().map(|built| built.why.clone()),
            "tried": attempts.iter().map(Attempt::to_string).collect::<Vec<_>>(),
            "tried_instead": tried.words,
            "better_instead": tried.better,
        }),
        why_format: matrix.why(),
        better: tried.better.as_deref(),
        error: known.then(|| error(&answers[0])),
        report: worst(&reports),
        reports: &reports,
        written: &written.paths,
        seconds: [problem.read_seconds, problem.examine_seconds, upload_seconds, start.elapsed().as_secs_f64()],
    };
    if options.json {
        common::print_json(finished.json());
    } else {
        finished.print();
    }
    let cancelled = reports.iter().find(|report| report.stop == Stop::Cancelled);
    if let Some(report) = cancelled.filter(|_| interrupt::came()) {
        let kept = match options.save.as_ref().filter(|path| written.paths.contains(path)) {
            Some(path) => format!("the answer so far is in {}", path.display()),
            None => "the answer so far is not kept, since no --save names a file".into(),
        };
        tell!("solve: ended by Ctrl-C after {} iterations: {kept}", report.iterations);
    }
    written.finish()?;
    Ok(converged)
}

/// The report that says least good: the first that did not converge, else that of most iterations.
fn worst(reports: &[Report]) -> &Report {
    let failed = reports.iter().find(|report| !report.converged());
    // The first of equal ones.
    let longest = || reports.iter().rev().max_by_key(|report| report.iterations);
    failed.or_else(longest).unwrap_or(&reports[0])
}

/// Ends of other methods in words, and the options of the first one that led to an answer.
#[derive(Default)]
struct Tried {
    words: Vec<String>,
    better: Option<String>,
}

/// Tries other methods with what suits them, each for as long as the solve took that failed, and a second at least: what became of them, in words.
fn instead<T: Real>(
    device: &Device,
    problem: &Problem<T>,
    format: Format,
    setup: &Setup<T>,
    failed: &Report,
    b: &Vector<T>,
) -> Result<Tried> {
    let limit = Duration::from_secs_f64(failed.times.solve.clamp(1.0, 60.0));
    let mut tried = Tried::default();
    for method in problem.found.alternatives(&failed.method) {
        let matrix = match method.takes_rectangles() {
            true => Matrix::with_transpose(device, &problem.a, format)?,
            false => Matrix::new(device, &problem.a, format)?,
        };
        let time_limit = Some(setup.stopping.time_limit.map_or(limit, |own| own.min(limit)));
        let setup = Setup::new(method, setup.stopping.clone().with_time_limit(time_limit));
        let mut x = Vector::zeros(device, problem.a.cols())?;
        let chain = problem.found.fallback_chain(&method);
        let observer = &mut |_: &Progress| interrupt::flow();
        tried.words.push(
            match solve_with_fallbacks((&matrix, &problem.a, None), &setup, &chain, (b, &mut x), observer) {
                Ok(FallbackSolve { report, which, .. }) => {
                    let options = format!("--method {method} --preconditioner {}", name_of(which.as_ref()));
                    let (stop, iterations, residual) = (report.stop, report.iterations, report.relative_residual());
                    let words = format!(
                        "{options} instead: {stop} after {iterations} iterations, |b - Ax| / |b| = {residual:.1e}"
                    );
                    if report.converged() {
                        tried.better.get_or_insert(format!("{options} ({stop}, |b - Ax| / |b| = {residual:.1e})"));
                    }
                    words
                }
                Err(error) => format!("--method {method} instead: {error}"),
            },
        );
    }
    Ok(tried)
}

/// Factor between norms of columns above which a system is scaled without being asked.
const FAR_APART: f64 = 1e6;

/// Solves with every preconditioner that suits the matrix.
fn compare<T: Real>(
    options: &Options,
    device: &Device,
    problem: &Problem<T>,
    system: (&Matrix<T>, &Vector<T>),
    setup: &Setup<T>,
) -> Result<bool> {
    if !setup.method.takes_preconditioner() {
        return Err(option("compare", format!("{} takes no preconditioner", setup.method)));
    }
    let asked = (&setup.method, &setup.stopping, &problem.found);
    let comparison = compare::run(device, &problem.a, system, asked, options.json)?;
    let candidates = &comparison.candidates;
    let mut written = Written::default();
    if let Some(path) = &options.plot {
        let title = format!("{}: {}, {}", options.matrix.display(), setup.method, device.info().name);
        written.add(path, compare::draw(title, candidates).write(path));
    }
    if options.json {
        let name = json!({ "problem": options.matrix.display().to_string(), "method": setup.method.to_string() });
        let found = json!({ "rows": problem.a.rows(), "nnz": problem.a.nnz(), "written": shown(&written.paths) });
        common::print_json(merged([device_json(device), name, found, comparison.json()]));
    } else {
        comparison.print_best();
    }
    if interrupt::came() {
        let not_tried = &comparison.not_tried;
        let left = if not_tried.is_empty() {
            "all were tried".into()
        } else {
            format!("not tried: {}", not_tried.join(", "))
        };
        tell!(
            "solve: ended by Ctrl-C in candidate {} of {}; {left}",
            candidates.len(),
            candidates.len() + not_tried.len()
        );
    }
    written.finish()?;
    Ok(!interrupt::came() && candidates.iter().any(|one| one.seconds().is_some()))
}

/// A right-hand side of several.
fn column_json(report: &Report) -> Value {
    let residual = json!({ "relative_residual": report.relative_residual(), "converged": report.converged() });
    merged([json!(report), residual])
}

/// `|x - ones| / |ones|`.
fn error<T: Real>(x: &[T]) -> f64 {
    let squares: f64 = x.iter().map(|x| (x.to_f64() - 1.0).powi(2)).sum();
    (squares / x.len().max(1) as f64).sqrt()
}

fn write<T: Real>(options: &Options, answers: &[Vec<T>], by_rows: bool, reports: &[Report]) -> Written {
    let mut written = Written::default();
    if let Some(path) = &options.save {
        written.add(path, io::write_columns(path, answers, by_rows));
    }
    if let Some(path) = &options.plot {
        written.add(path, draw(options, reports).write(path));
    }
    written
}

/// Points of a line over the iterations, relative to `by`.
fn relative(report: &Report, history: &[f64], by: f64) -> Vec<(f64, f64)> {
    let by = if by > 0.0 { by } else { 1.0 };
    report.history_iterations().zip(history).map(|(k, v)| (k as f64, v / by)).collect()
}

/// The residual, and for least squares the gradient, over the iterations.
fn draw(options: &Options, reports: &[Report]) -> Chart<'static> {
    let report = &reports[0];
    let mut lines = Vec::new();
    for (k, report) in reports.iter().enumerate() {
        let of = if reports.len() > 1 { format!(", {}", k + 1) } else { String::new() };
        lines.push((format!("|b - Ax| / |b|{of}"), relative(report, &report.history, report.rhs_norm)));
        if let Some(first) = report.gradient_history.first() {
            lines.push((format!("|A'r| / |A'b|{of}"), relative(report, &report.gradient_history, *first)));
        }
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
        ..Default::default()
    }
}

/// A verdict in words of the field, and how it is known.
fn definiteness(found: &Definiteness) -> (&'static str, Option<&str>) {
    match found {
        Definiteness::Positive(why) => ("positive definite", Some(why)),
        Definiteness::Likely => ("likely positive definite", None),
        Definiteness::Semidefinite => ("numerically singular", None),
        Definiteness::Indefinite(why) => ("indefinite", Some(why)),
        Definiteness::NotAsked => ("not symmetric", None),
        _ => ("unknown", None),
    }
}

/// Description of the system and of the set-up.
struct Finished<'a> {
    options: &'a Options,
    device: &'a Device,
    found: &'a Examination,
    advice: &'a Advice,
    scaled: bool,
    objection: Option<String>,
    preconditioner: Value,
    why_format: &'a str,
    /// Options of another method that led to an answer where this one did not.
    better: Option<&'a str>,
    /// `|x - ones| / |ones|`, if the right-hand side was A times ones.
    error: Option<f64>,
    /// The worst of all.
    report: &'a Report,
    /// One for each right-hand side.
    reports: &'a [Report],
    written: &'a [PathBuf],
    /// Reading, examining, uploading, all.
    seconds: [f64; 4],
}

impl Finished<'_> {
    fn print(&self) {
        let report = self.report;
        for (k, report) in self.reports.iter().enumerate() {
            let relative = report.relative_residual();
            let of = if self.reports.len() > 1 { format!("{}: ", k + 1) } else { String::new() };
            say!(
                "{:<11} {of}{} after {} iterations, |b - Ax| / |b| = {relative:.3e}",
                if k == 0 { "result" } else { "" },
                report.stop,
                report.iterations
            );
            if let Some(gradient) = report.gradient {
                say!("            {of}|A'r| = {gradient:.3e}");
            }
        }
        if let Some(error) = self.error {
            let found = self.found;
            let singular = found.structural_rank < found.cols || found.condition.is_infinite();
            let others = if singular { ": the matrix is singular, and other x solve it too" } else { "" };
            say!("            |x - 1| / |1| = {error:.3e}{others}");
        }
        if let Some(words) = report.which_answer() {
            say!("            {words}");
        }
        if let Some(part) = report.projected {
            let percent = 100.0 * part / report.rhs_norm;
            say!(
                "            the part of b in the null space has norm {part:.3e} ({percent:.1} % of |b|): no x reaches it"
            );
        }
        let explanation = self.found.explain(report);
        // Words that stand above as a warning are not said again.
        if let Some(explanation) = explanation.filter(|words| !self.advice.warnings.contains(words)) {
            say!("            {explanation}");
        }
        if let Some(better) = self.better {
            say!("            another method has an answer: {better}");
        }
        let ([read, examine, upload, total], times) = (self.seconds, self.reports[0].times);
        say!(
            "seconds     read {read:.3}, examine {examine:.3}, upload {upload:.3}, compile {:.3}, solve {:.3}, verify {:.3}, \
             total {total:.3}",
            times.compile,
            times.solve,
            times.verify
        );
        self.written.iter().for_each(|path| say!("wrote       {}", path.display()));
    }

    fn json(&self) -> Value {
        let (report, found) = (self.report, self.found);
        let [read, examine, upload, total] = self.seconds;
        let own = json!({
            "problem": self.options.matrix.display().to_string(),
            "rows": found.rows,
            "cols": found.cols,
            "nnz": found.nnz,
            "symmetric": found.symmetric,
            "definiteness": definiteness(&found.definiteness).0,
            "why_definiteness": definiteness(&found.definiteness).1,
            "structural_rank": found.structural_rank,
            "condition_at_least": found.condition,
            "scaled": self.scaled,
            "order": self.options.order.name(),
            "advice": self.advice.to_string(),
            "warnings": self.advice.warnings,
            "objection": self.objection,
            "explanation": found.explain(report),
            "why_format": self.why_format,
            "max_iterations": self.options.iterations,
            "relative_residual": report.relative_residual(),
            "error": self.error,
            "written": shown(self.written),
        });
        let seconds = json!({
            "read": read, "examine": examine, "upload": upload, "compile": report.times.compile,
            "solve": report.times.solve, "verify": report.times.verify, "total": total,
        });
        // With several right-hand sides the fields of the report are those of the worst.
        let columns: Vec<Value> = self.reports.iter().map(column_json).collect();
        merged([
            device_json(self.device),
            self.options.history.of(report),
            json!({ "right_hand_sides": columns.len(), "columns": columns }),
            own,
            self.preconditioner.clone(),
            json!({ "seconds": seconds }),
        ])
    }
}
