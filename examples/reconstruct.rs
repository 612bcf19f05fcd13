//! Reconstructs an image from sensor data by regularised CGNR, on whatever device is there.
//!
//! Without arguments: a simulated scan, so that it works on a fresh machine. See `--help`.
#![allow(clippy::print_stdout, clippy::print_stderr)]

#[macro_use]
mod common;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::{Parser, ValueEnum};
use common::{
    Precision, Written, check_ending, check_outputs, option, reading_bar, refuse_unused, show, solving_bar,
};
use residuum::imaging::{
    self, Beam, Grid, Noise, Phantom, Quality, Reconstruction, Regularizer, Scan, Scanner, Solution,
};
use residuum::io::{self, FileKind, npy, write_atomically};
use residuum::{Csr, Device, Error, Format, Matrix, Progress, Real, Result, Stop, Stopping};
use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Geometry {
    Fan,
    Parallel,
}

/// Reconstruct an image from sensor data by regularised CGNR.
///
/// Without input: a simulated fan-beam scan with noise and gain errors. Exit status: 0 done, 1 not converged (a
/// tolerance was asked for and not met, or the iteration broke down), 2 bad input.
///
/// Coordinates: x runs to the right of the picture and y upwards; row 0 of the picture is the uppermost. At angle t,
/// anticlockwise, the detector runs along (cos t, sin t) with its pixels in that order, and rays along (-sin t, cos t):
/// at angle 0 the source is below the picture, rays run upwards, and pixel 0 sees the left edge. An array that comes out
/// mirrored was taken with the other sense of rotation: give a negative --arc.
#[derive(Debug, Parser)]
#[command(version)]
struct Options {
    /// Scan: a Helsinki Tomography Challenge 2022 .mat file, or a .npy sinogram of line integrals, -log(I / I0) (angles x
    /// pixels, or images x angles x pixels for several images at once)
    #[arg(long, value_name = "FILE", conflicts_with = "matrix")]
    input: Option<PathBuf>,
    /// System matrix, Matrix Market (.mtx or .mtx.gz) or SciPy's (.npz)
    #[arg(long, value_name = "FILE", requires = "rhs")]
    matrix: Option<PathBuf>,
    /// Right-hand side for --matrix: Matrix Market or .npy (rows, or images x rows)
    #[arg(long, value_name = "FILE", requires = "matrix")]
    rhs: Option<PathBuf>,
    /// Image row length for --matrix, where the unknowns are an image
    #[arg(long, value_name = "PIXELS", requires = "matrix")]
    width: Option<usize>,

    /// Side of the image in pixels [default: 128 simulated, 256 otherwise]
    #[arg(long, value_name = "PIXELS")]
    size: Option<usize>,
    /// Use this many of the angles, evenly spaced [default: all]
    #[arg(long, value_name = "COUNT")]
    angles: Option<usize>,
    /// Average this many neighbouring detector pixels into one [default: 1]
    #[arg(long, value_name = "COUNT")]
    bin: Option<usize>,

    /// Beam of a .npy sinogram [default: parallel]
    #[arg(long, value_enum)]
    geometry: Option<Geometry>,
    /// Angles of a .npy sinogram: this many degrees, evenly divided, anticlockwise from 0; negative for clockwise [default: 180]
    #[arg(long, value_name = "DEGREES", allow_hyphen_values = true)]
    arc: Option<f64>,
    /// Distance between detector pixels of a .npy sinogram [default: 1]
    #[arg(long, value_name = "LENGTH")]
    pitch: Option<f64>,
    /// Shift of the detector's middle in pixels, for a .npy sinogram [default: 0]
    #[arg(long, value_name = "PIXELS", allow_hyphen_values = true)]
    detector_offset: Option<f64>,
    /// Distance from source to rotation centre, for --geometry fan
    #[arg(long, value_name = "LENGTH", required_if_eq("geometry", "fan"))]
    source_origin: Option<f64>,
    /// Distance from source to detector, for --geometry fan
    #[arg(long, value_name = "LENGTH", required_if_eq("geometry", "fan"))]
    source_detector: Option<f64>,
    /// Side length of the imaged square [default: what the detector sees]
    #[arg(long, value_name = "LENGTH")]
    field: Option<f64>,

    /// Precision of vectors and matrix
    #[arg(long, value_enum, default_value_t = Precision::Fp32)]
    precision: Precision,
    /// Device: words that must all match, such as gpu, nvidia, !pocl, memory=8G, 0:1, host [default: RESIDUUM_DEVICE, else the best]
    #[arg(long, value_name = "WORDS")]
    device: Option<String>,
    /// Work-items of a work-group: changes time, never the image
    #[arg(long, value_name = "SIZE")]
    work_group: Option<usize>,
    /// Storage of the matrix: auto, on-the-fly (scans: rays are traced as they are needed), or one of csr, csr-scalar,
    /// csr-adaptive, ellpack, ellpack-r, sell, hyb, dia, bsr, dense, coo
    #[arg(long, value_name = "FORMAT", default_value = "auto")]
    format: Format,

    /// tikhonov=W, smooth=W, tv=W or none; can be given several times [default: tv=0.05]
    #[arg(long, value_name = "NAME=W")]
    regularizer: Vec<String>,
    /// Least value of a pixel [default: 0 for scans, none for --matrix]
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    lower: Option<f64>,
    /// Greatest value of a pixel [default: none]
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    upper: Option<f64>,
    /// Most iterations
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    iterations: usize,
    /// Stop when |b - Ax| <= RTOL |b|; exit status 1 if that is not reached
    #[arg(long)]
    rtol: Option<f64>,
    /// Stop when the gradient is at most GRADIENT_RTOL |A| |r|: a minimum [default: 1e-6 in fp32, 1e-11 in fp64; 0 for never]
    #[arg(long)]
    gradient_rtol: Option<f64>,
    /// ... or when it has fallen to this part of its first value
    #[arg(long, default_value_t = 0.0)]
    gradient_reduction: f64,

    /// Reference picture of the same field (a challenge .mat file or a square .npy): prints correlation and PSNR
    #[arg(long, value_name = "FILE")]
    reference: Option<PathBuf>,
    /// Picture to write, as PNG [default: reconstruction.png]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Also save the image as numbers (.npy)
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Print one JSON object on stdout instead of text
    #[arg(long)]
    json: bool,
}

/// What is to be solved: a matrix, readings, and what is known of the image.
struct Problem<T: Real> {
    what: String,
    matrix: Matrix<T>,
    readings: Vec<Vec<T>>,
    /// Rows and columns of the picture, where the unknowns are one.
    picture: Option<(usize, usize)>,
    /// What the picture is compared with.
    reference: Option<Vec<f64>>,
    read_seconds: f64,
    build_seconds: f64,
    upload_seconds: f64,
}

fn main() -> ExitCode {
    env_logger::init();
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
    check_options(options)?;
    let device = common::device::<T>(options.device.as_deref(), options.work_group)?;
    if !options.json {
        say!("device      {} on {}", device.info().name, device.info().platform);
        say!("            {}", device.choice());
    }
    let how = how::<T>(options)?;
    let problem = match &options.matrix {
        Some(path) => from_matrix::<T>(options, &device, path)?,
        None => from_scan::<T>(options, &device)?,
    };
    let how = Reconstruction {
        width: problem.picture.map_or(0, |p| p.1),
        regularizers: regularizers(options, problem.picture.is_some())?,
        ..how
    };
    if !options.json {
        say!("problem     {}", problem.what);
        say!(
            "system      {} x {}, {} entries, {} right-hand side(s), {}",
            problem.matrix.rows(),
            problem.matrix.cols(),
            problem.matrix.nnz(),
            problem.readings.len(),
            T::PRECISION
        );
        say!("            {}: {}", problem.matrix.format(), problem.matrix.why());
        say!("method      cgnr, {}", words(&how));
    }
    // Now that the number of pictures is known.
    check_files(options, &pictures(options, &problem))?;
    let bar = solving_bar(options.json, options.iterations);
    let readings: Vec<&[T]> = problem.readings.iter().map(|r| &r[..]).collect();
    let solution = imaging::reconstruct(&problem.matrix, &readings, &how, &mut |progress: &Progress| {
        show(&bar, progress);
        ControlFlow::Continue(())
    })?;
    bar.finish_and_clear();
    let written = write(options, &problem, &solution);
    let qualities = qualities(&problem, &solution)?;
    let report = Finished { options, device: &device, problem: &problem, how: &how, solution: &solution };
    if options.json {
        say!("{}", report.json(&qualities, &written.paths, start.elapsed().as_secs_f64()));
    } else {
        report.print(&qualities, &written.paths, start.elapsed().as_secs_f64());
    }
    written.finish()?;
    Ok(solution.reports.iter().all(|r| {
        matches!(r.stop, Stop::Converged)
            || (options.rtol.is_none()
                && matches!(r.stop, Stop::LeastSquares | Stop::MaxIterations | Stop::Stagnated))
    }))
}

fn regularizers(options: &Options, picture: bool) -> Result<Vec<Regularizer>> {
    if options.regularizer.is_empty() {
        return Ok(if picture { vec![Regularizer::TotalVariation(0.05)] } else { Vec::new() });
    }
    options.regularizer.iter().filter(|text| *text != "none").map(|text| text.parse()).collect()
}

fn how<T: Real>(options: &Options) -> Result<Reconstruction> {
    let stopping = Stopping {
        rtol: options.rtol.unwrap_or(0.0),
        max_iterations: options.iterations,
        gradient_rtol: options.gradient_rtol.unwrap_or(Stopping::for_precision::<T>().gradient_rtol),
        gradient_reduction: options.gradient_reduction,
        ..Stopping::for_precision::<T>()
    };
    regularizers(options, true)?;
    let lower = options.lower.unwrap_or(if options.matrix.is_some() { f64::NEG_INFINITY } else { 0.0 });
    let upper = options.upper.unwrap_or(f64::INFINITY);
    if lower.partial_cmp(&upper).is_none_or(|o| o.is_gt()) {
        return Err(option("lower", format!("{lower} is not below upper = {upper}")));
    }
    Ok(Reconstruction { regularizers: Vec::new(), lower, upper, width: 0, stopping })
}

fn words(how: &Reconstruction) -> String {
    let mut words: Vec<String> = how.regularizers.iter().map(ToString::to_string).collect();
    if how.lower.is_finite() {
        words.push(format!("lower={}", how.lower));
    }
    if how.upper.is_finite() {
        words.push(format!("upper={}", how.upper));
    }
    if words.is_empty() { "no correction".into() } else { words.join(", ") }
}

/// The built-in scan: a plate with holes and bars, seen by a fan-beam scanner with noise and gain errors.
fn simulated(side: usize) -> Result<(Scan, f64, Vec<f64>)> {
    let scanner = Scanner {
        beam: Beam::Fan { source_origin: 5.0, source_detector: 8.0 },
        pixels: 256,
        pitch: 0.012,
        offset: 0.0,
        angles: (0..180).map(|k| 2.0 * f64::from(k)).collect(),
    };
    let field = 2.0;
    let scan = Phantom::plate().scan(&scanner, field, Noise { photons: 2e5, gain: 0.003, seed: 2009 })?;
    Ok((scan, field, Phantom::plate().image(Grid { side, pixel: field / side as f64 })))
}

fn from_scan<T: Real>(options: &Options, device: &Device) -> Result<Problem<T>> {
    let clock = Instant::now();
    let side = options.size.unwrap_or(if options.input.is_some() { 256 } else { 128 });
    Grid { side, pixel: 1.0 }.validate()?;
    // Numbers of the picture and of what it is compared with.
    Device::host().check_memory(0, &[("pictures on the host", 32 * (side as u64).pow(2))])?;
    let mut truth = None;
    let kind = match &options.input {
        Some(path) => FileKind::of(path)?,
        None => None,
    };
    let (scans, field, what) = match &options.input {
        None => {
            let (scan, field, image) = simulated(side)?;
            truth = Some(image);
            (vec![scan], field, "simulated scan (no --input): fan beam, noise, gain errors".to_string())
        }
        Some(path) if kind == Some(FileKind::Npy) => {
            let scans = sinograms(options, path)?;
            let field = options.field.unwrap_or_else(|| seen(&scans[0].scanner));
            (scans, field, path.display().to_string())
        }
        Some(path) => {
            if let Some(other) = kind.filter(|kind| *kind != FileKind::Mat5) {
                return Err(other.refused(path, "a scan (.mat) or a sinogram (.npy)"));
            }
            let (scan, field) = imaging::read_scan(path)?;
            (vec![scan], field, path.display().to_string())
        }
    };
    let field = options.field.unwrap_or(field);
    let mut thinned = Vec::new();
    for scan in scans {
        let scan = match options.angles {
            Some(count) => scan.with_angles(count)?,
            None => scan,
        };
        thinned.push(scan.binned(options.bin.unwrap_or(1))?);
    }
    let read_seconds = clock.elapsed().as_secs_f64();
    let clock = Instant::now();
    let grid = Grid { side, pixel: field / side as f64 };
    let reference = match &options.reference {
        Some(path) => Some(read_reference(path, grid)?),
        None => truth,
    };
    let scanner = &thinned[0].scanner;
    let matrix = scanner.system::<T>(device, grid, options.format)?;
    let build_seconds = clock.elapsed().as_secs_f64();
    let clock = Instant::now();
    device.synchronize()?;
    Ok(Problem {
        what: format!("{what}: {} angles x {} pixels to {side} x {side}", scanner.angles.len(), scanner.pixels),
        matrix,
        readings: thinned.iter().map(|s| s.sinogram.iter().map(|v| T::from_f64(*v)).collect()).collect(),
        picture: Some((side, side)),
        reference,
        read_seconds,
        build_seconds,
        upload_seconds: clock.elapsed().as_secs_f64(),
    })
}

/// Side of the square that every projection covers in the middle.
fn seen(scanner: &Scanner) -> f64 {
    let width = scanner.pixels as f64 * scanner.pitch;
    match scanner.beam {
        Beam::Parallel => width,
        Beam::Fan { source_origin, source_detector } => width * source_origin / source_detector,
    }
}

fn sinograms(options: &Options, path: &Path) -> Result<Vec<Scan>> {
    let array = npy::read(path)?;
    let (images, angles, pixels) = match array.shape[..] {
        [angles, pixels] => (1, angles, pixels),
        [images, angles, pixels] => (images, angles, pixels),
        _ => {
            return Err(Error::Format {
                what: path.display().to_string(),
                reason: format!(
                    "{} dimensions; a sinogram has 2 (angles x pixels) or 3 (images first)",
                    array.shape.len()
                ),
            });
        }
    };
    let geometry = options.geometry.unwrap_or(Geometry::Parallel);
    let beam = match (geometry, options.source_origin, options.source_detector) {
        (Geometry::Parallel, _, _) => Beam::Parallel,
        (Geometry::Fan, Some(source_origin), Some(source_detector)) => Beam::Fan { source_origin, source_detector },
        (Geometry::Fan, _, _) => {
            return Err(option("geometry", "a fan needs --source-origin and --source-detector"));
        }
    };
    if images == 0 || array.data.is_empty() {
        return Err(option("input", "the array holds no sinogram"));
    }
    let scanner = Scanner {
        beam,
        pixels,
        pitch: options.pitch.unwrap_or(1.0),
        offset: options.detector_offset.unwrap_or(0.0),
        angles: (0..angles).map(|k| options.arc.unwrap_or(180.0) * k as f64 / angles as f64).collect(),
    };
    array.data.chunks(angles.max(1) * pixels.max(1)).map(|data| Scan::new(scanner.clone(), data.to_vec())).collect()
}

fn from_matrix<T: Real>(options: &Options, device: &Device, path: &Path) -> Result<Problem<T>> {
    let clock = Instant::now();
    let bar = reading_bar(options.json);
    let matrix: Csr<T> = io::read_matrix(path, &mut |done, of| {
        bar.set_length(of);
        bar.set_position(done);
    })?;
    bar.finish_and_clear();
    matrix.check_host_memory()?;
    let rhs = options.rhs.as_ref().ok_or_else(|| option("rhs", "--matrix needs --rhs"))?;
    let readings: Vec<Vec<T>> = io::read_vectors(rhs)?;
    if readings.is_empty() {
        return Err(option("rhs", "the file holds no numbers"));
    }
    if let Some(width) = options.width.filter(|w| *w == 0 || !matrix.cols().is_multiple_of(*w)) {
        return Err(option("width", format!("{width} does not divide {} unknowns", matrix.cols())));
    }
    let read_seconds = clock.elapsed().as_secs_f64();
    let clock = Instant::now();
    let matrix = Matrix::with_transpose(device, &matrix, options.format)?;
    let build_seconds = clock.elapsed().as_secs_f64();
    let clock = Instant::now();
    device.synchronize()?;
    Ok(Problem {
        what: format!("{} with {}", path.display(), rhs.display()),
        picture: options.width.map(|width| (matrix.cols() / width, width)),
        matrix,
        readings,
        reference: None,
        read_seconds,
        build_seconds,
        upload_seconds: clock.elapsed().as_secs_f64(),
    })
}

fn in_double<T: Real>(image: &[T]) -> Vec<f64> {
    image.iter().map(|v| v.to_f64()).collect()
}

/// A reference picture at the side of `grid`.
fn read_reference(path: &Path, grid: Grid) -> Result<Vec<f64>> {
    match FileKind::of(path)? {
        Some(FileKind::Npy) => {
            let array = npy::read(path)?;
            if let Some(index) = array.data.iter().position(|v| !v.is_finite()) {
                return Err(Error::NotFinite { what: path.display().to_string(), index });
            }
            match array.shape[..] {
                [rows, cols] if rows == cols => imaging::resample(&array.data, rows, grid.side),
                _ => Err(option("reference", "a .npy reference is a square array")),
            }
        }
        Some(FileKind::Mat5) | None => imaging::read_reference(path, grid),
        Some(other) => Err(other.refused(path, "a reference picture (.mat or .npy)")),
    }
}

fn qualities<T: Real>(problem: &Problem<T>, solution: &Solution<T>) -> Result<Vec<Option<Quality>>> {
    let images = solution.images.iter();
    images.map(|image| problem.reference.as_ref().map(|r| Quality::of(&in_double(image), r)).transpose()).collect()
}

/// Fails on options that would change nothing, and on outputs that could not be written.
fn check_options(options: &Options) -> Result<()> {
    let of_scans = [
        ("size", options.size.is_some()),
        ("angles", options.angles.is_some()),
        ("bin", options.bin.is_some()),
        ("field", options.field.is_some()),
        ("reference", options.reference.is_some()),
    ];
    let of_sinograms = [
        ("geometry", options.geometry.is_some()),
        ("arc", options.arc.is_some()),
        ("pitch", options.pitch.is_some()),
        ("detector-offset", options.detector_offset.is_some()),
        ("source-origin", options.source_origin.is_some()),
        ("source-detector", options.source_detector.is_some()),
    ];
    if options.matrix.is_some() {
        refuse_unused("with --matrix: there is no scan", &[&of_scans[..], &of_sinograms].concat())?;
        let picture = ("output", options.output.is_some() && options.width.is_none());
        refuse_unused("with --matrix unless --width says that the unknowns are a picture", &[picture])?;
    }
    match &options.input {
        None => refuse_unused("for the simulated scan, which knows its scanner", &of_sinograms)?,
        Some(path) if FileKind::of(path)? != Some(FileKind::Npy) => {
            refuse_unused(
                "for this scan, whose file says how it was taken; it is for .npy sinograms",
                &of_sinograms,
            )?;
        }
        Some(_) if options.geometry.unwrap_or(Geometry::Parallel) == Geometry::Parallel => {
            refuse_unused("for a parallel beam", &of_sinograms[4..])?;
        }
        Some(_) => {}
    }
    check_ending("output", &output(options), &["png"])?;
    // Pictures of several images have names of their own, known once the input is read.
    let written = options.output.is_some() || options.matrix.is_none();
    check_files(options, written.then(|| output(options)).as_slice())
}

/// Where the picture goes.
fn output(options: &Options) -> PathBuf {
    options.output.clone().unwrap_or_else(|| "reconstruction.png".into())
}

/// The pictures of a problem.
fn pictures<T: Real>(options: &Options, problem: &Problem<T>) -> Vec<PathBuf> {
    let count = problem.readings.len();
    match problem.picture {
        Some(_) => (0..count).map(|c| numbered(&output(options), c, count)).collect(),
        None => Vec::new(),
    }
}

fn check_files(options: &Options, pictures: &[PathBuf]) -> Result<()> {
    let inputs = [&options.input, &options.matrix, &options.rhs, &options.reference];
    let inputs: Vec<&Path> = inputs.into_iter().flatten().map(|path| &**path).collect();
    let pictures = pictures.iter().map(|path| ("output", &**path));
    let outputs: Vec<(&'static str, &Path)> =
        pictures.chain(options.save.as_deref().map(|path| ("save", path))).collect();
    check_outputs(&inputs, &outputs)
}

/// `name.png` for one image, `name-1.png`, `name-2.png`, ... for several.
fn numbered(path: &Path, c: usize, count: usize) -> PathBuf {
    if count == 1 {
        return path.into();
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let ending = path.extension().map(|e| format!(".{}", e.to_string_lossy())).unwrap_or_default();
    path.with_file_name(format!("{stem}-{}{ending}", c + 1))
}

/// Writes numbers first, which nothing else holds; what fails keeps nothing else from being written.
fn write<T: Real>(options: &Options, problem: &Problem<T>, solution: &Solution<T>) -> Written {
    let count = solution.images.len();
    let mut written = Written::default();
    if let Some(path) = &options.save {
        let (rows, cols) = problem.picture.unwrap_or((problem.matrix.cols(), 1));
        let mut shape = if problem.picture.is_some() { vec![rows, cols] } else { vec![rows] };
        if count > 1 {
            shape.insert(0, count);
        }
        written.add(path, npy::write(path, &shape, &solution.images.concat()));
    }
    if let Some((rows, cols)) = problem.picture {
        for (path, image) in pictures(options, problem).iter().zip(&solution.images) {
            written.add(path, write_picture(path, rows, cols, &in_double(image)));
        }
    }
    written
}

/// An 8-bit grey picture from the 0.5th to the 99.5th percentile.
fn write_picture(path: &Path, rows: usize, cols: usize, image: &[f64]) -> Result<()> {
    let mut sorted: Vec<f64> = image.iter().copied().filter(|v| v.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let quantile = |q: f64| sorted.get(((sorted.len().max(1) - 1) as f64 * q) as usize).copied().unwrap_or(0.0);
    let (low, high) = (quantile(0.005), quantile(0.995));
    let range = if high > low { high - low } else { 1.0 };
    let grey: Vec<u8> = image.iter().map(|v| (255.0 * ((v - low) / range).clamp(0.0, 1.0)).round() as u8).collect();
    write_atomically(path, |file| {
        let mut encoder = png::Encoder::new(file, cols as u32, rows as u32);
        encoder.set_color(png::ColorType::Grayscale);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header().map_err(std::io::Error::other)?;
        writer.write_image_data(&grey).map_err(std::io::Error::other)
    })
}

/// Everything there is to say at the end.
struct Finished<'a, T: Real> {
    options: &'a Options,
    device: &'a Device,
    problem: &'a Problem<T>,
    how: &'a Reconstruction,
    solution: &'a Solution<T>,
}

impl<T: Real> Finished<'_, T> {
    fn print(&self, qualities: &[Option<Quality>], written: &[PathBuf], total: f64) {
        for (report, quality) in self.solution.reports.iter().zip(qualities) {
            say!(
                "result      {} after {} iterations, |b - Ax| / |b| = {:.4e}, {} launches per iteration",
                report.stop,
                report.iterations,
                report.relative_residual(),
                report.launches_per_iteration
            );
            if let Some(quality) = quality {
                say!("            correlation {:.4}, PSNR {:.2} dB", quality.correlation, quality.psnr);
            }
        }
        for warning in &self.solution.warnings {
            say!("warning     {warning}");
        }
        let phases = self.solution.phases;
        say!(
            "seconds     read {:.3}, build {:.3}, upload {:.3}, compile {:.3}, solve {:.3}, total {total:.3}",
            self.problem.read_seconds,
            self.problem.build_seconds,
            self.problem.upload_seconds,
            phases.compile,
            phases.solve
        );
        for path in written {
            say!("wrote       {}", path.display());
        }
    }

    fn json(&self, qualities: &[Option<Quality>], written: &[PathBuf], total: f64) -> Value {
        let info = self.device.info();
        let phases = self.solution.phases;
        // One image: its numbers as such; several: arrays.
        let one = |values: Vec<Value>| match <[Value; 1]>::try_from(values) {
            Ok([value]) => value,
            Err(values) => Value::Array(values),
        };
        let each =
            |value: &dyn Fn(&residuum::Report) -> Value| one(self.solution.reports.iter().map(value).collect());
        let quality = |value: &dyn Fn(&Quality) -> f64| {
            one(qualities.iter().map(|q| q.as_ref().map_or(Value::Null, |q| json!(value(q)))).collect())
        };
        let first = &self.solution.reports[0];
        json!({
            "device": info.name,
            "backend": self.device.backend_name(),
            "platform": info.platform,
            "driver": info.driver,
            "choice": self.device.choice(),
            "problem": self.problem.what,
            "method": first.method.name(),
            "regularizers": self.how.regularizers.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "lower": self.how.lower.is_finite().then_some(self.how.lower),
            "upper": self.how.upper.is_finite().then_some(self.how.upper),
            "rows": self.problem.matrix.rows(),
            "cols": self.problem.matrix.cols(),
            "nnz": self.problem.matrix.nnz(),
            "images": self.solution.images.len(),
            "format": first.format.to_string(),
            "why_format": self.problem.matrix.why(),
            "precision": T::PRECISION.to_string(),
            "accumulation": first.accumulation.to_string(),
            "work_group": self.device.tuning().work_group,
            "tuning": first.tuning,
            "max_iterations": self.options.iterations,
            "iterations": each(&|r| json!(r.iterations)),
            "stop": each(&|r| json!(format!("{:?}", r.stop))),
            "residual": each(&|r| json!(r.residual)),
            "true_residual": each(&|r| json!(r.true_residual)),
            "relative_residual": each(&|r| json!(r.relative_residual())),
            "gradient": each(&|r| json!(r.gradient)),
            "restarts": each(&|r| json!(r.restarts)),
            "correlation": quality(&|q| q.correlation),
            "psnr": quality(&|q| q.psnr),
            "relative_error": quality(&|q| q.relative_error),
            "warnings": self.solution.warnings,
            "launches_per_iteration": first.launches_per_iteration,
            "written": written.iter().map(|p| p.display().to_string()).collect::<Vec<_>>(),
            "seconds": {
                "read": self.problem.read_seconds,
                "build": self.problem.build_seconds,
                "upload": self.problem.upload_seconds,
                "compile": phases.compile,
                "solve": phases.solve,
                "total": total,
            },
        })
    }
}
