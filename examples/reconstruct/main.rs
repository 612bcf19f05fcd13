//! Reconstructs an image from sensor data by regularised least squares, on whatever device is there.
//!
//! Without arguments: a simulated scan, so that it works on a fresh machine. See `--help`.

mod blocks;
mod curve;
mod geometry;
mod options;
mod problem;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use common::{Precision, Written, device_json, interrupt, merged, option, say, show, shown, solving_bar, tell};
use options::Options;
use problem::{Course, Problem, TURNED, from_matrix, from_scan};
use residuum::imaging::{
    BadPixel, Beam, Doubt, Filter, Image, Quality, Reconstruction, Reconstructor, Scanner, Segmentation, Window,
};
use residuum::io::{self, npy};
use residuum::operator::LinearOperator;
use residuum::{Device, Progress, Real, Report, Result, Stop, Times};
use serde_json::{Value, json};

fn main() -> ExitCode {
    common::begin("reconstruct");
    let options = Options::parse();
    let outcome = match options.precision {
        Precision::Fp32 => run::<f32>(&options),
        Precision::Fp64 => run::<f64>(&options),
    };
    common::exit::<Options>("reconstruct", outcome)
}

/// Reads, solves, reports, writes; `Ok(false)` when the solve did not do what was asked.
fn run<T: Real>(options: &Options) -> Result<bool> {
    let start = Instant::now();
    options.check()?;
    let named = options.on.open_if_named::<T>()?;
    // Before the input is read, which may take long.
    options.how::<T>(true, None)?;
    let truth = options.truth.as_ref().map(Segmentation::read).transpose()?;
    let mut problem = match &options.matrix {
        Some(path) => from_matrix::<T>(options, named, path)?,
        None => from_scan::<T>(options, named)?,
    };
    let device = problem.device.clone();
    if !options.json {
        say!("device      {} on {}", device.info().name, device.info().platform);
        say!("            {}", device.choice());
    }
    let how = options.how::<T>(problem.system.shape().is_some(), problem.system.scanner())?;
    let how = how.with_support(problem.support.clone());
    if !options.json {
        introduce(&problem, &how);
    }
    // Now that the number of pictures is known.
    let pictures = match problem.system.shape() {
        Some(_) => options.pictures(problem.pictures),
        None => Vec::new(),
    };
    options.check_files(&pictures)?;
    if let (Some(truth), Some(shape)) = (&truth, problem.system.shape()) {
        fits(truth, shape)?;
    }
    log::info!(
        "read in {:.3} s, set up in {:.3} s: {}, {} pictures by {}",
        problem.read_seconds,
        problem.build_seconds,
        problem.what,
        problem.pictures,
        how.method
    );
    let (whole, times) = reconstruct(options, &mut problem, &how)?;
    let qualities = match &problem.reference {
        Some(reference) => whole.iter().map(|image| image.compare(reference).map(Some)).collect::<Result<_>>()?,
        None => vec![None; whole.len()],
    };
    let images = match &options.roi {
        Some(region) => whole.iter().map(|image| image.cut(region)).collect::<Result<Vec<_>>>()?,
        None => whole,
    };
    // All pixels are sorted for it.
    let shown = !pictures.is_empty() || options.saves_tiff();
    let window = shown.then(|| options.window(&images)).transpose()?;
    let mut written = write(options, (&pictures, problem.pictures), &images, (window, problem.by_rows));
    if let (Some(path), Some(geometry)) = (&options.save_geometry, &problem.geometry) {
        written.add(path, geometry.write(path));
    }
    let cuts = cut(options, &images, &mut written);
    if let (Some(path), Some(Report { weight, rule, .. })) = (&options.plot, images.first().map(|i| &i.report)) {
        let drawn = weight.as_ref().map(|weight| curve::draw(path, weight));
        let drawn = drawn.or_else(|| rule.as_ref().map(|course| curve::draw_course(path, course)));
        drawn.into_iter().for_each(|drawn| written.add(path, drawn));
    }
    let mcc = match &truth {
        Some(truth) => cuts.iter().map(|cut| cut.matthews(truth).map(Some)).collect::<Result<_>>()?,
        None => vec![None; cuts.len()],
    };
    let finished = Finished {
        options,
        device: &device,
        problem,
        how,
        images,
        times,
        qualities,
        cuts,
        mcc,
        window,
        written: &written.paths,
    };
    finished.report(start.elapsed().as_secs_f64());
    let all = finished.images.len() == finished.problem.pictures;
    let cut_off = finished.images.iter().any(|image| image.report.stop == Stop::Cancelled);
    if interrupt::came() && (cut_off || !all) {
        tell!(
            "reconstruct: ended by Ctrl-C: {} of {} pictures, the last {} as far as it had come",
            finished.images.len(),
            finished.problem.pictures,
            if finished.images.len() > 1 { "ones" } else { "one" }
        );
    }
    let done = all
        && finished.images.iter().all(|image| match image.report.stop {
            Stop::Converged | Stop::Semiconverged => true,
            Stop::LeastSquares | Stop::MaxIterations | Stop::Stagnated => {
                options.rtol.is_none() && options.stop.is_none()
            }
            _ => false,
        });
    written.finish()?;
    Ok(done)
}

/// Reconstructs all pictures, block by block; also returns the times of each batch.
fn reconstruct<T: Real>(
    options: &Options,
    problem: &mut Problem<T>,
    how: &Reconstruction,
) -> Result<(Vec<Image<T>>, Vec<Times>)> {
    let mut reconstructor = Reconstructor::new(&problem.system, how.clone(), problem.readings.len())?;
    let bar = solving_bar(options.json, how.stopping.max_iterations);
    let (mut images, mut times) = (Vec::with_capacity(problem.pictures), Vec::new());
    let mut block = std::mem::take(&mut problem.readings);
    let (at_once, batch, each) = (block.len(), reconstructor.batch(), how.stopping.max_iterations);
    let [blocks, left] = [problem.pictures / at_once.max(1), problem.pictures % at_once.max(1)];
    let batches = blocks * at_once.div_ceil(batch) + left.div_ceil(batch);
    interrupt::keep_work();
    loop {
        let readings: Vec<&[T]> = block.iter().map(|readings| &readings[..]).collect();
        // Batch after batch, so that Ctrl-C leaves out those that have not begun.
        for readings in readings.chunks(batch.max(1)) {
            let before = times.len() * each;
            let found = reconstructor.reconstruct_readings(readings, &mut |progress: &Progress| {
                let mut all = *progress;
                (all.iteration, all.max_iterations) = (before + progress.iteration, batches * each);
                show(&bar, &all);
                interrupt::flow()
            })?;
            // Images of a batch have the same times.
            times.extend(found.first().map(|image| image.report.times));
            images.extend(found);
            log::info!("{} of {} pictures are done", images.len(), problem.pictures);
            if interrupt::came() {
                bar.finish_and_clear();
                return Ok((images, times));
            }
        }
        match problem.next_readings(options)? {
            Some(next) => block = next,
            None => break,
        }
    }
    bar.finish_and_clear();
    Ok((images, times))
}

/// Number of pixels that may hold something, if some may not.
fn supported(how: &Reconstruction) -> Option<usize> {
    Some(how.support.as_ref()?.iter().filter(|pixel| **pixel).count())
}

fn introduce<T: Real>(problem: &Problem<T>, how: &Reconstruction) {
    say!("problem     {}", problem.what);
    problem.remarks.iter().for_each(|remark| say!("note        {remark}"));
    let (system, count) = (&problem.system, problem.pictures);
    let (rows, cols) = (system.operator().rows(), system.operator().cols());
    let entries = system.entries().unwrap_or(0);
    say!("system      {rows} x {cols}, {entries} entries, {count} right-hand side(s), {}", T::PRECISION);
    if !system.why().is_empty() {
        say!("            {}: {}", system.format(), system.why());
    }
    let bounds = [("lower", how.lower), ("upper", how.upper)];
    let bounds =
        bounds.iter().filter(|(_, bound)| bound.is_finite()).map(|(name, bound)| format!("{name}={bound}"));
    let words: Vec<String> = how.regularizers.iter().map(ToString::to_string).chain(bounds).collect();
    let support = supported(how).map(|count| format!("{count} pixels may hold something"));
    if let Some(angles) = &problem.angles {
        say!("angles      {angles}");
    }
    if let Some((place, found)) = problem.axis {
        let is_middle = problem.geometry.as_ref().is_some_and(|geometry| geometry.offset == 0.0);
        let how = match (found, is_middle) {
            (true, _) => ", found in the readings",
            (false, true) => ", the middle of the detector",
            (false, false) => "",
        };
        say!("axis        pixel {place:.2}{how}");
    }
    if problem.goes_on() {
        say!("slices      {} at a time", problem.readings.len());
    } else {
        say_repaired(problem);
    }
    let weight = how.weight.map(|rule| format!("weight of |x|² by {rule}"));
    let rule = how.stopping.rule.map(|rule| format!("ended by {rule}"));
    let words: Vec<String> = words.into_iter().chain(support).chain(weight).chain(rule).collect();
    let alone = is_one_step(how);
    let words = match words.is_empty() {
        false => format!(", {}", words.join(", ")),
        true if alone => String::new(),
        true => ", no regularizer, no bounds".into(),
    };
    let start = how.start.map(|filter| format!("filtered back-projection ({filter})"));
    match start {
        Some(start) if alone => say!("method      {start}{words}"),
        Some(start) => say!("method      {} from {start}{words}", how.method),
        None => say!("method      {}{words}", how.method),
    }
}

/// Tells if the picture is the filtered back-projection alone.
fn is_one_step(how: &Reconstruction) -> bool {
    how.start.is_some() && how.stopping.max_iterations == 0
}

/// Says how many readings were interpolated, and which pixels do not count.
fn say_repaired<T: Real>(problem: &Problem<T>) {
    /// Most pixels that are named; JSON has them all.
    const MOST: usize = 8;
    if problem.repaired > 0 {
        say!("repaired    {} readings had no counts, and were interpolated", problem.repaired);
    }
    let bad = &problem.bad_pixels;
    if !bad.is_empty() {
        let word = |bad: &BadPixel| format!("{} of slice {} ({})", bad.pixel, bad.slice, bad.fault);
        let named: Vec<String> = bad.iter().take(MOST).map(word).collect();
        let more = if bad.len() > MOST { format!(", and {} more", bad.len() - MOST) } else { String::new() };
        say!(
            "{:<12}{} bad pixel(s) replaced from neighbours, counted from 0: {}{more}",
            if problem.repaired > 0 { "" } else { "repaired" },
            bad.len(),
            named.join(", ")
        );
    }
}

/// Writes numbers first, which nothing else holds; what fails keeps nothing else from being written.
fn write<T: Real>(
    options: &Options,
    (pictures, count): (&[PathBuf], usize),
    images: &[Image<T>],
    (window, by_rows): (Option<Window>, bool),
) -> Written {
    let mut written = Written::default();
    if let Some(path) = options.save.as_ref().filter(|_| !options.saves_tiff()) {
        let outcome = if pictures.is_empty() {
            // Answers of a system stand as its right-hand sides do.
            let answers: Vec<Vec<T>> = images.iter().map(|image| image.values.clone()).collect();
            io::write_columns(path, &answers, by_rows)
        } else {
            let numbers: Vec<T> = images.iter().flat_map(|image| &image.values).copied().collect();
            let mut shape = vec![images[0].rows, images[0].cols];
            // Also if Ctrl-C has left one of many.
            if count > 1 {
                shape.insert(0, images.len());
            }
            io::write_array(path, &shape, &numbers)
        };
        written.add(path, outcome);
    }
    let Some(window) = window else { return written };
    #[cfg(feature = "tiff")]
    if let Some(path) = options.save.as_ref().filter(|_| options.saves_tiff()) {
        use residuum::imaging::{TiffPixels, write_tiff_as};
        let pixels = if options.bits == "32" { TiffPixels::Float } else { TiffPixels::Sixteen };
        written.add(path, write_tiff_as(path, images, window, pixels));
    }
    for (path, image) in pictures.iter().zip(images) {
        written.add(path, image.write_png_within(path, window));
    }
    written
}

/// Fails on a truth of another size than the pictures.
fn fits(truth: &Segmentation, [rows, cols]: [usize; 2]) -> Result<()> {
    match (truth.rows, truth.cols) == (rows, cols) {
        true => Ok(()),
        false => {
            let reason =
                format!("{} x {} pixels for pictures of {rows} x {cols}: see --size", truth.rows, truth.cols);
            Err(option("truth", reason))
        }
    }
}

/// Cuts the images into classes, if that is asked for, and writes those. None for pictures that cannot be cut: that is an error in
/// the end, when all else is written and said.
fn cut<T: Real>(options: &Options, images: &[Image<T>], written: &mut Written) -> Vec<Segmentation> {
    let Some(path) = options.segment.as_ref().or(options.truth.as_ref()) else { return Vec::new() };
    let cuts = images.iter().map(|image| image.segment(options.classes.unwrap_or(2))).collect::<Result<Vec<_>>>();
    let result = cuts.and_then(|cuts| {
        options.segment.as_ref().map_or(Ok(()), |path| write_cuts(path, &cuts))?;
        Ok(cuts)
    });
    match result {
        Ok(cuts) => {
            options.segment.iter().for_each(|path| written.add(path, Ok(())));
            cuts
        }
        Err(error) => {
            written.add(path, Err(error));
            Vec::new()
        }
    }
}

/// Writes the classes of all images as one array.
fn write_cuts(path: &Path, cuts: &[Segmentation]) -> Result<()> {
    match cuts {
        [cut] => cut.write_npy(path),
        _ => {
            let classes: Vec<u8> = cuts.iter().flat_map(|cut| &cut.classes).copied().collect();
            npy::write_bytes(path, &[cuts.len(), cuts[0].rows, cuts[0].cols], &classes)
        }
    }
}

/// The scanner as the solve takes it, cropped and binned.
fn geometry(scanner: &Scanner) -> Value {
    let distances = scanner.beam.distances();
    let vectors = if let Beam::Vectors(vectors) = &scanner.beam { Some(vectors.rows()) } else { None };
    json!({
        "vectors": vectors, "beam": scanner.beam.to_string(), "source_origin": distances.map(|d| d[0]), "source_detector": distances.map(|d| d[1]),
        "pixels": scanner.pixels, "pitch": scanner.pitch, "offset": scanner.offset, "angles": scanner.angles,
    })
}

/// Part of its first value that the gradient has fallen to, if all iterations were done before it was small.
fn far_from_minimum(report: &Report) -> Option<f64> {
    /// Pictures change visibly above this, by what was seen of total variation.
    const LARGE: f64 = 1e-3;
    let part = report.gradient_history.last()? / report.gradient_history.first()?;
    (report.stop == Stop::MaxIterations && report.iterations > 0 && part > LARGE).then_some(part)
}

/// A doubt with the options that help; filtered back-projection `alone` has less of them.
fn remedy(doubt: &Doubt, alone: bool) -> String {
    let options = match doubt {
        Doubt::CutOff { .. } if alone => {
            " (a wider --field, with an iterative method; if air does not read 0: --background)"
        }
        Doubt::CutOff { .. } => " (a wider --field; if air does not read 0: --background)",
        Doubt::BesideField { .. } => "; leave --field out or widen it, and cut the picture by --roi",
        Doubt::OtherTurn => " (--flip angles)",
        _ => "",
    };
    format!("{doubt}{options}")
}

/// Everything there is to say at the end.
struct Finished<'a, T: Real> {
    options: &'a Options,
    device: &'a Device,
    problem: Problem<T>,
    how: Reconstruction,
    images: Vec<Image<T>>,
    /// Times of each batch.
    times: Vec<Times>,
    qualities: Vec<Option<Quality>>,
    /// Classes of the pixels of each image, if they were asked for, and their correlation with the truth.
    cuts: Vec<Segmentation>,
    mcc: Vec<Option<f64>>,
    /// Values that the pictures show.
    window: Option<Window>,
    written: &'a [PathBuf],
}

impl<T: Real> Finished<'_, T> {
    fn report(&self, total: f64) {
        let Self { problem, images, .. } = self;
        let solve: f64 = self.times.iter().map(|times| times.solve + times.verify).sum();
        let compile: f64 = self.times.iter().map(|times| times.compile).sum();
        if self.options.json {
            let seconds = json!({
                "read": problem.read_seconds, "build": problem.build_seconds, "compile": compile,
                "solve": solve, "total": total,
            });
            return common::print_json(merged([
                device_json(self.device),
                self.json(),
                json!({ "seconds": seconds }),
            ]));
        }
        let turned = problem.remarks.iter().any(|remark| remark == TURNED);
        for (k, (image, quality)) in images.iter().zip(&self.qualities).enumerate() {
            let report = &image.report;
            // Filtered back-projection alone has no iterations to tell of.
            let end = match is_one_step(&self.how) {
                true => "one step".to_string(),
                false => format!("{} after {} iterations", report.stop, report.iterations),
            };
            say!("result      {end}, |b - Ax| / |b| = {:.4e}", report.relative_residual());
            if let Some(part) = far_from_minimum(report).filter(|_| !turned) {
                say!(
                    "            not yet converged: the gradient has fallen to {part:.1e} of its first value: raise --iterations"
                );
            } else if report.stop == Stop::MaxIterations && self.options.matrix.is_some() {
                say!("            not yet converged: raise --iterations");
            }
            if let Some(weight) = &report.weight {
                say!("            {weight}");
            }
            if let Some(rule) = report.rule_in_words() {
                say!("            {rule}");
            }
            if let Some(quality) = quality {
                say!("            correlation {:.4}, PSNR {:.2} dB", quality.correlation, quality.psnr);
            }
            if let Some(cut) = self.cuts.get(k) {
                let thresholds: Vec<String> = cut.thresholds.iter().map(|t| format!("{t:.4e}")).collect();
                let mcc = self.mcc[k].map(|mcc| format!(", Matthews correlation {mcc:.4}")).unwrap_or_default();
                say!("            {} classes, threshold {}{mcc}", thresholds.len() + 1, thresholds.join(", "));
            }
        }
        if turned {
            say!("warning     {TURNED}");
        }
        for (k, image) in images.iter().enumerate() {
            let which = if images.len() > 1 { format!("image {}: ", k + 1) } else { String::new() };
            self.warnings(image).iter().for_each(|words| say!("warning     {which}{words}"));
        }
        if problem.was_read_in_blocks() {
            say_repaired(problem);
        }
        if let Some(image) = images.first().filter(|_| self.options.roi.is_some()) {
            let [half_x, half_y] = [image.cols, image.rows].map(|count| 0.5 * count as f64 * image.pixel);
            let [x, y] = image.centre;
            say!(
                "roi         {} x {} pixels, x {:.6} to {:.6}, y {:.6} to {:.6}",
                image.rows,
                image.cols,
                x - half_x,
                x + half_x,
                y - half_y,
                y + half_y
            );
        }
        if let Some(Window { low, high }) = self.window {
            say!("window      {low:.4e} (black) to {high:.4e} (white)");
        }
        let Problem { read_seconds: read, build_seconds: build, .. } = problem;
        say!(
            "seconds     read {read:.3}, build {build:.3}, compile {compile:.3}, solve {solve:.3}, total {total:.3}"
        );
        self.written.iter().for_each(|path| say!("wrote       {}", path.display()));
        if self.written.is_empty() {
            say!("            the answer is not kept: --save names a file for it");
        }
    }

    /// Doubts about an image, with the options that help.
    fn warnings(&self, image: &Image<T>) -> Vec<String> {
        let alone = is_one_step(&self.how);
        image.doubts.iter().map(|doubt| remedy(doubt, alone)).collect()
    }

    fn json(&self) -> Value {
        let Self { problem, how, .. } = self;
        let operator = problem.system.operator();
        let bad_pixel =
            |bad: &BadPixel| json!({ "slice": bad.slice, "pixel": bad.pixel, "fault": bad.fault.to_string() });
        let each = |(k, (image, quality)): (usize, (&Image<T>, &Option<Quality>))| {
            let warnings = self.warnings(image);
            let relative = json!({
                "relative_residual": image.report.relative_residual(),
                "rule_in_words": image.report.rule_in_words(),
                "not_converged": far_from_minimum(&image.report),
                "warning": warnings.first(),
                "warnings": warnings,
            });
            let quality = quality.as_ref().map_or_else(|| json!({}), |quality| json!(quality));
            let cut = self.cuts.get(k).map(|cut| json!({ "thresholds": cut.thresholds, "mcc": self.mcc[k] }));
            merged([self.options.history.of(&image.report), relative, quality, cut.unwrap_or_else(|| json!({}))])
        };
        json!({
            "problem": problem.what,
            "method": if is_one_step(how) { "fbp" } else { how.method.name() },
            "start": how.start.map(Filter::name),
            "geometry": problem.system.scanner().map(geometry),
            "size": problem.system.shape(),
            "angles": problem.angles.as_ref().map(Course::json),
            "axis": problem.axis.map(|(place, _)| place),
            "axis_found": problem.axis.map(|(_, found)| found),
            "repaired": problem.repaired,
            "bad_pixels": problem.bad_pixels.iter().map(bad_pixel).collect::<Vec<_>>(),
            "remarks": problem.remarks,
            "window": self.window.map(|window| [window.low, window.high]),
            "regularizers": how.regularizers.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "weight_rule": how.weight.map(|rule| rule.to_string()),
            "stop_rule": self.options.stop.map(|stop| stop.to_string()),
            "lower": how.lower.is_finite().then_some(how.lower),
            "upper": how.upper.is_finite().then_some(how.upper),
            "support": supported(how),
            "picture": self.images.first().map(|image| {
                json!({ "rows": image.rows, "cols": image.cols, "pixel": image.pixel, "centre": image.centre })
            }),
            "rows": operator.rows(),
            "cols": operator.cols(),
            "nnz": problem.system.entries(),
            "why_format": Some(problem.system.why()).filter(|why| !why.is_empty()),
            "max_iterations": how.stopping.max_iterations,
            "images": self.images.iter().zip(&self.qualities).enumerate().map(each).collect::<Vec<_>>(),
            "written": shown(self.written),
        })
    }
}
