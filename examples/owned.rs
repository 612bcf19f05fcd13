//! A simulation that keeps its solvers in a struct beside their matrices, gives them new values in every frame, and sends one to
//! another thread.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use common::say;
use std::process::ExitCode;
use std::thread;

use clap::Parser;
use residuum::{Device, Error, Format, Matrix, Method, Precision, Report, Result, Solver, Stopping, Vector};
use serde_json::json;
use sprs::{CsMat, TriMat, kronecker_product};

/// Heat flow through a plate whose conductivity changes from frame to frame, by implicit steps in time: (I + A) u' = u. Beside it,
/// another thread computes the plate at rest.
#[derive(Debug, Parser)]
#[command(
    name = "owned",
    version = common::version(),
    after_help = common::after_help("Exit status: 0 done, 1 not converged or other bits than fresh solvers, 2 bad input.")
)]
struct Options {
    /// Grid points along each side of the plate
    #[arg(long, value_name = "N", default_value_t = 96, value_parser = clap::value_parser!(u16).range(2..=2048))]
    size: u16,
    /// Steps in time
    #[arg(long, value_name = "N", default_value_t = 10)]
    frames: usize,
    /// The best device that matches all these words, as in the program devices
    #[arg(long, value_name = "WORDS")]
    device: Option<String>,
    /// Print one JSON object on stdout instead of text
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    common::begin("owned");
    let options = Options::parse();
    common::exit::<Options>("owned", run(&options))
}

/// `shift I + conductivity times the Laplacian` on a `side × side` grid, built by sprs: the sum of two Kronecker products.
fn heat(side: usize, shift: f64, conductivity: f64) -> CsMat<f64> {
    let mut rod = TriMat::new((side, side));
    for i in 0..side {
        rod.add_triplet(i, i, 2.0);
        if i > 0 {
            rod.add_triplet(i, i - 1, -1.0);
            rod.add_triplet(i - 1, i, -1.0);
        }
    }
    let (rod, eye): (CsMat<f64>, CsMat<f64>) = (rod.to_csr(), CsMat::eye(side));
    let across = kronecker_product(eye.view(), rod.view());
    let down = kronecker_product(rod.view(), eye.view());
    let laplacian = (&across + &down).map(|value| conductivity * value);
    let whole: CsMat<f64> = CsMat::eye(side * side);
    &laplacian + &whole.map(|value| shift * value)
}

/// A plate with all that moves it: the solver shares the matrix it stands beside.
struct Plate {
    matrix: Matrix<f64>,
    solver: Solver<f64>,
    temperature: Vector<f64>,
    next: Vector<f64>,
}

impl Plate {
    fn new(device: &Device, a: &CsMat<f64>, start: &[f64]) -> Result<Self> {
        let matrix = Matrix::new(device, a, Format::Auto)?;
        let solver = Solver::new(&matrix, Method::Cg, Stopping::for_precision::<f64>())?;
        let temperature = Vector::from_slice(device, start)?;
        let next = Vector::zeros(device, start.len())?;
        Ok(Self { matrix, solver, temperature, next })
    }

    /// One frame: new values in the matrix, one solve from the temperature of the last frame. Nothing is allocated on the device.
    fn advance(&mut self, a: &CsMat<f64>) -> Result<Report> {
        self.matrix.update_values(a)?;
        self.next.copy_from(&self.temperature)?;
        let report = self.solver.solve(&self.temperature, &mut self.next)?;
        std::mem::swap(&mut self.temperature, &mut self.next);
        Ok(report)
    }
}

fn run(options: &Options) -> Result<bool> {
    let device = match &options.device {
        Some(words) => Device::select(words)?,
        // The best device may compute in fp32 alone.
        None => Device::best()
            .and_then(|best| best.require(Precision::Double).map(|()| best))
            .or_else(|_| Device::select("fp64"))?,
    };
    let side = usize::from(options.size);
    let conductivity = |frame: usize| 1.0 + 0.25 * (frame % 4) as f64;
    let start: Vec<f64> = (0..side * side).map(|i| if i == side * side / 2 { 100.0 } else { 0.0 }).collect();
    let mut plate = Plate::new(&device, &heat(side, 1.0, conductivity(0)), &start)?;

    // A solver of its own for the plate at rest, sent to another thread with its right-hand side.
    let mut rest = Solver::new(
        Matrix::new(&device, &heat(side, 0.0, 1.0), Format::Auto)?,
        Method::Cg,
        Stopping::for_precision::<f64>(),
    )?;
    let source = Vector::from_slice(&device, &start)?;
    let at_rest = thread::spawn(move || {
        let mut x = Vector::zeros(source.device(), source.len())?;
        Ok::<_, Error>((rest.solve(&source, &mut x)?, x.max()?))
    });

    let (mut converged, mut same, mut iterations) = (true, true, Vec::new());
    for frame in 1..=options.frames {
        let a = heat(side, 1.0, conductivity(frame));
        let before = plate.temperature.to_vec()?;
        let report = plate.advance(&a)?;
        // A plate made anew for this frame comes to the same bits.
        let mut fresh = Plate::new(&device, &a, &before)?;
        let again = fresh.advance(&a)?;
        same &= fresh.temperature.to_vec()? == plate.temperature.to_vec()? && again.history == report.history;
        converged &= report.converged();
        iterations.push(report.iterations);
        if !options.json {
            say!("frame {frame}: {report}, hottest {:.4}", plate.temperature.max()?);
        }
    }
    let (report, hottest) = at_rest
        .join()
        .unwrap_or_else(|_| Err(Error::Option { name: "frames", reason: "the other thread has failed".into() }))?;
    converged &= report.converged();
    if options.json {
        common::print_json(
            json!({ "device": device.info().name, "size": side, "iterations": iterations, "converged": converged,
                "same_bits_as_fresh_solvers": same, "at_rest": { "iterations": report.iterations, "hottest": hottest } }),
        );
    } else {
        say!("at rest: {report}, hottest {hottest:.4}");
        say!("solvers made anew for each frame give {}", if same { "the same bits" } else { "OTHER BITS" });
    }
    Ok(converged && same)
}
