//! Solves a sparse system, or a least-squares problem, from a file: with the method that suits the matrix, or another.

mod compare;
mod options;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use common::plot::Chart;
use common::{
    Precision, Written, device_json, interrupt, merged, option, reading_bar, say, show, shown, solving_bar, tell,
};
use options::{Options, name_of};
use residuum::io::{self, npy};
use residuum::sparse::{Ordering, Permutation, gallery};
use residuum::{
    Advice, Climb, Csr, Definiteness, Device, Error, Examination, Matrix, Method, Progress, Real, Report, Result,
    Rung, Setup, Stop, Vector, climb,
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

/// System and right-hand side, scaled if that was asked for.
struct Problem<T: Real> {
    a: Csr<T>,
    b: Vec<T>,
    /// Factors of the unknowns: the answer is `right x`.
    right: Vec<f64>,
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
    let a: Csr<T> = read_matrix(options)?;
    a.check_host_memory()?;
    let b = match &options.rhs {
        Some(path) => read_rhs::<T>(path, a.rows())?,
        // A smooth answer would flatter what is compared.
        None if options.compare => vec![1.0; a.rows()],
        None => a.product(&vec![1.0; a.cols()])?,
    };
    let read_seconds = clock.elapsed().as_secs_f64();
    let clock = Instant::now();
    let before = if options.scale { Examination::spread(&a.column_norms()) } else { 1.0 };
    let [left, right] = if options.scale { a.equilibration() } else { [vec![1.0; a.rows()], vec![1.0; a.cols()]] };
    let a = if options.scale { a.scaled(&left, &right)? } else { a };
    let found = options.examination(&a);
    let mut advice = found.advise(T::PRECISION);
    let mut remarks = Vec::new();
    if before > 1e6 {
        remarks.push(format!(
            "before it was scaled, norms of columns differed by a factor of {before:.0e}: a small residual says little of \
             the unknowns of the small ones"
        ));
    }
    if options.rhs.is_none() && !options.compare && a.nnz() > 0 && b.iter().all(|v| *v == 0.0) {
        let words = "A times ones is 0, and so is the answer: name a right-hand side by --rhs";
        remarks.push(words.into());
    }
    advice.warnings.extend(remarks.iter().cloned());
    let b: Vec<T> = b.iter().zip(&left).map(|(b, l)| T::from_f64(b * l)).collect();
    let order = match options.order {
        Ordering::Natural => None,
        ordering => Some(Permutation::of(&a, ordering)?),
    };
    let (a, b) = match &order {
        Some(order) => (a.permuted(order, order)?, order.apply(&b)?),
        None => (a, b),
    };
    let examine_seconds = clock.elapsed().as_secs_f64();
    Ok(Problem { a, b, right, order, found, advice, remarks, read_seconds, examine_seconds })
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
            Some(order) => Examination::of(&self.a.permuted(&order.inverse(), &order.inverse())?),
            None => Examination::of(&self.a),
        };
        self.advice = self.found.advise(T::PRECISION);
        self.advice.warnings.extend(self.remarks.iter().cloned());
        self.examine_seconds += clock.elapsed().as_secs_f64();
        Ok(())
    }

    /// The unknowns of the file, of those that were solved for.
    fn given(&self, x: Vec<T>) -> Result<Vec<T>> {
        let x = match &self.order {
            Some(order) => order.undo(&x)?,
            None => x,
        };
        Ok(x.iter().zip(&self.right).map(|(x, r)| T::from_f64(x.to_f64() * r)).collect())
    }
}

fn run<T: Real>(options: &Options) -> Result<bool> {
    let start = Instant::now();
    options.check()?;
    let device = options.on.open::<T>()?;
    let say = |key: &str, text: &str| {
        log::info!("{key}: {text}");
        if !options.json {
            say!("{key:<11} {text}");
        }
    };
    say("device", &format!("{} on {}", device.info().name, device.info().platform));
    say("", device.choice());
    let mut problem = problem::<T>(options)?;
    let a = &problem.a;
    let (rows, cols, entries) = (a.rows(), a.cols(), a.nnz());
    let name = options.matrix.display();
    say("matrix", &format!("{name}: {rows} x {cols}, {entries} entries, {}", T::PRECISION));
    let glance = if options.examines() { "" } else { " (at a glance)" };
    say("advice", &format!("{}{glance}", problem.advice));
    let method = options.method(&problem.advice)?;
    let ladder = options.ladder(&method, &problem.found)?;
    problem.warnings(&method).iter().for_each(|warning| say("warning", warning));
    let clock = Instant::now();
    let matrix = match method.takes_rectangles() {
        true => Matrix::with_transpose(&device, a, options.format)?,
        false => Matrix::new(&device, a, options.format)?,
    };
    let setup = Setup::new(method, options.stopping::<T>()?);
    if options.compare {
        let b = Vector::from_slice(&device, &problem.b)?;
        return compare(options, &device, &problem, (&matrix, &b), &setup);
    }
    let b = Vector::from_slice(&device, &problem.b)?;
    let mut x = Vector::zeros(&device, cols)?;
    device.synchronize()?;
    let upload_seconds = clock.elapsed().as_secs_f64();
    say("method", &format!("{method}, {} ({})", matrix.format(), matrix.why()));
    let names: Vec<String> = ladder.iter().map(|which| name_of(which.as_ref())).collect();
    say("", &format!("preconditioner {}", names.join(", or if that fails or is slow ")));
    let partition = options.partition(problem.order.as_ref(), &ladder)?;
    let bar = solving_bar(options.json, options.iterations);
    interrupt::keep_work();
    let climb =
        climb((&matrix, a, partition.as_ref()), &setup, &ladder, (&b, &mut x), &mut |progress: &Progress| {
            show(&bar, progress);
            interrupt::flow()
        });
    bar.finish_and_clear();
    let climb = climb?;
    let answer_seconds = climb.seconds();
    let Climb { report, which, built, rungs, .. } = climb;
    rungs.iter().filter(|_| rungs.len() > 1).for_each(|rung| say("tried", &rung.to_string()));
    say("precond.", built.as_ref().map_or("none", |built| &built.why));
    let answer = problem.given(x.to_vec()?)?;
    let mut written = write(options, &answer, &report);
    if let (Some(path), Some(parts)) = (&options.save_partition, built.as_ref().and_then(|b| b.partition.as_ref()))
    {
        // Rows of the file.
        let saved = match &problem.order {
            Some(order) => parts.permuted(&order.inverse()).and_then(|parts| io::write_partition(path, &parts)),
            None => io::write_partition(path, parts),
        };
        written.add(path, saved);
    }
    let most_bytes = which.filter(|_| !method.takes_rectangles()).and_then(|which| which.most_bytes(a));
    if !report.converged() && !options.examines() {
        problem.examine()?;
        problem.warnings(&method).iter().for_each(|warning| say("warning", warning));
    }
    let known = options.rhs.is_none() && report.rhs_norm > 0.0;
    let finished = Finished {
        options,
        device: &device,
        found: &problem.found,
        advice: &problem.advice,
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
            "tried": rungs.iter().map(Rung::to_string).collect::<Vec<_>>(),
        }),
        why_format: matrix.why(),
        error: known.then(|| error(&answer)),
        report: &report,
        written: &written.paths,
        seconds: [problem.read_seconds, problem.examine_seconds, upload_seconds, start.elapsed().as_secs_f64()],
    };
    if options.json {
        common::print_json(finished.json());
    } else {
        finished.print();
    }
    if interrupt::came() && report.stop == Stop::Cancelled {
        let kept = match options.save.as_ref().filter(|path| written.paths.contains(path)) {
            Some(path) => format!("the answer so far is in {}", path.display()),
            None => "the answer so far is not kept, since no --save names a file".into(),
        };
        tell!("solve: ended by Ctrl-C after {} iterations: {kept}", report.iterations);
    }
    written.finish()?;
    Ok(report.converged())
}

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
    let candidates = compare::run(device, &problem.a, system, asked, options.json)?;
    let mut written = Written::default();
    if let Some(path) = &options.plot {
        let title = format!("{}: {}, {}", options.matrix.display(), setup.method, device.info().name);
        written.add(path, compare::draw(title, &candidates).write(path));
    }
    if options.json {
        let name = json!({ "problem": options.matrix.display().to_string(), "method": setup.method.to_string() });
        let found = json!({ "rows": problem.a.rows(), "nnz": problem.a.nnz(), "written": shown(&written.paths) });
        common::print_json(merged([device_json(device), name, found, compare::json(&candidates)]));
    } else {
        compare::print(&candidates);
    }
    written.finish()?;
    Ok(candidates.iter().any(|one| one.seconds().is_some()))
}

/// `|x - ones| / |ones|`.
fn error<T: Real>(x: &[T]) -> f64 {
    let squares: f64 = x.iter().map(|x| (x.to_f64() - 1.0).powi(2)).sum();
    (squares / x.len().max(1) as f64).sqrt()
}

fn write<T: Real>(options: &Options, answer: &[T], report: &Report) -> Written {
    let mut written = Written::default();
    if let Some(path) = &options.save {
        written.add(path, npy::write(path, &[answer.len()], answer));
    }
    if let Some(path) = &options.plot {
        written.add(path, draw(options, report).write(path));
    }
    written
}

/// Points of a line over the iterations, relative to `by`.
fn relative(report: &Report, history: &[f64], by: f64) -> Vec<(f64, f64)> {
    let by = if by > 0.0 { by } else { 1.0 };
    report.history_iterations().zip(history).map(|(k, v)| (k as f64, v / by)).collect()
}

/// The residual, and for least squares the gradient, over the iterations.
fn draw(options: &Options, report: &Report) -> Chart<'static> {
    let mut lines = vec![("|b - Ax| / |b|".to_string(), relative(report, &report.history, report.rhs_norm))];
    if let Some(first) = report.gradient_history.first() {
        lines.push(("|A'r| / |A'b|".to_string(), relative(report, &report.gradient_history, *first)));
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
    objection: Option<String>,
    preconditioner: Value,
    why_format: &'a str,
    /// `|x - ones| / |ones|`, if the right-hand side was A times ones.
    error: Option<f64>,
    report: &'a Report,
    written: &'a [PathBuf],
    /// Reading, examining, uploading, all.
    seconds: [f64; 4],
}

impl Finished<'_> {
    fn print(&self) {
        let report = self.report;
        let relative = report.relative_residual();
        say!("result      {} after {} iterations, |b - Ax| / |b| = {relative:.3e}", report.stop, report.iterations);
        if let Some(gradient) = report.gradient {
            say!("            |A'r| = {gradient:.3e}");
        }
        if let Some(error) = self.error {
            say!("            |x - 1| / |1| = {error:.3e}");
        }
        if let Some(explanation) = self.found.explain(report) {
            say!("            {explanation}");
        }
        let ([read, examine, upload, total], times) = (self.seconds, report.times);
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
            "scaled": self.options.scale,
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
        merged([
            device_json(self.device),
            self.options.history.of(report),
            own,
            self.preconditioner.clone(),
            json!({ "seconds": seconds }),
        ])
    }
}
