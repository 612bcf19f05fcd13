//! A penalty of the program's own, on the device: a volume from few readings, whose voxels are alike where their neighbours are.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use common::say;
use std::process::ExitCode;

use clap::Parser;
use residuum::sparse::gallery;
use residuum::{
    Csr, Device, Error, Format, Matrix, Method, Penalty, Pointwise, Precision, Report, Result, Setup, Solver, Stop,
    Stopping, Vector,
};
use serde_json::json;

/// Find a volume from fewer readings than it has voxels, with a penalty of this program on differences between voxels in three
/// directions, and once more without.
#[derive(Debug, Parser)]
#[command(
    name = "penalty",
    version = common::version(),
    after_help = common::after_help("Exit status: 0 done, 1 not converged, or the volume is no better with the penalty, 2 bad input.")
)]
struct Options {
    /// Voxels along each side of the volume
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(4..=256))]
    size: u16,
    /// Weight of the differences
    #[arg(long, value_name = "WEIGHT", default_value_t = 0.02)]
    weight: f64,
    /// The best device that matches all these words, as in the program devices
    #[arg(long, value_name = "WORDS")]
    device: Option<String>,
    /// Print one JSON object on stdout instead of text
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    common::begin("penalty");
    let options = Options::parse();
    common::exit::<Options>("penalty", run(&options))
}

/// Differences below this are noise, those above are edges.
const EDGE: f32 = 0.02;

/// `R(x) = weight sum_p sqrt(|D x|_p² + edge²)` over the voxels of a volume, `D` the differences in three directions.
struct Edges {
    differences: [Matrix<f32>; 3],
    weigh: Pointwise<f32, 4, 2>,
    /// `D x` and `D v`, and one of them weighted.
    of_x: [Vector<f32>; 3],
    of_v: [Vector<f32>; 3],
    weighted: Vector<f32>,
    back: Vector<f32>,
    weight: f32,
}

impl Penalty<f32> for Edges {
    fn has_curvature(&self) -> bool {
        true
    }

    fn gradient(&mut self, x: &Vector<f32>, out: &mut Vector<f32>) -> Result<()> {
        self.curvature(x, x, out)
    }

    /// `F(x, v) = D' B(x) D v` with `B(x) = weight / sqrt(|D x|² + edge²)`.
    fn curvature(&mut self, x: &Vector<f32>, v: &Vector<f32>, out: &mut Vector<f32>) -> Result<()> {
        let Self { differences, weigh, of_x, of_v, weighted, back, weight } = self;
        out.fill(0.0)?;
        for (axis, d) in differences.iter().enumerate() {
            d.multiply(x, &mut of_x[axis])?;
            d.multiply(v, &mut of_v[axis])?;
        }
        for (d, of_v) in differences.iter().zip(of_v) {
            weigh.apply([&of_x[0], &of_x[1], &of_x[2], of_v], [*weight, EDGE * EDGE], weighted)?;
            d.multiply_transposed(weighted, back)?;
            out.axpby(1.0, back, 1.0)?;
        }
        Ok(())
    }

    /// `|D|² <= 12`, and `B` is at most `weight / edge`.
    fn norm_bound(&self) -> f64 {
        12.0 * f64::from(self.weight / EDGE)
    }
}

impl Edges {
    fn new(device: &Device, side: usize, weight: f32) -> Result<Self> {
        let n = side.pow(3);
        let matrix = |axis| Matrix::with_transpose(device, &gallery::differences([side; 3], axis)?, Format::Auto);
        let vector = || Vector::zeros(device, n);
        let text = "quotient(p0 * x3, root(x0 * x0 + x1 * x1 + x2 * x2 + p1))";
        let weigh = Pointwise::new(device, text, |m, [a, b, c, v], [weight, least]| {
            m.quotient(weight * v, m.root(a * a + b * b + c * c + least))
        })?;
        Ok(Self {
            differences: [matrix(0)?, matrix(1)?, matrix(2)?],
            weigh,
            of_x: [vector()?, vector()?, vector()?],
            of_v: [vector()?, vector()?, vector()?],
            weighted: vector()?,
            back: vector()?,
            weight,
        })
    }
}

/// A box and a ball in an empty volume.
fn volume(side: usize) -> Vec<f32> {
    let place = |i: usize| (i as f64 + 0.5) / side as f64;
    let value = |i: usize| {
        let [x, y, z] = [i % side, i / side % side, i / side / side].map(place);
        let ball = (x - 0.65).powi(2) + (y - 0.6).powi(2) + (z - 0.55).powi(2) < 0.05;
        let inside = [x - 0.35, y - 0.4, z - 0.45].iter().all(|off| off.abs() < 0.2);
        if ball {
            1.0
        } else if inside {
            0.5
        } else {
            0.0
        }
    };
    (0..side.pow(3)).map(value).collect()
}

/// Distance from the true volume, relative to that.
fn error(found: &[f32], truth: &[f32]) -> f64 {
    let square = |v: f64| v * v;
    let apart: f64 = found.iter().zip(truth).map(|(a, b)| square(f64::from(a - b))).sum();
    (apart / truth.iter().map(|v| square(f64::from(*v))).sum::<f64>()).sqrt()
}

fn run(options: &Options) -> Result<bool> {
    let device = match &options.device {
        Some(words) => Device::select(words)?,
        None => Device::best()?,
    };
    device.require(Precision::Single)?;
    if !(options.weight > 0.0 && options.weight.is_finite()) {
        let reason = format!("{} is not a number above 0", options.weight);
        return Err(Error::Option { name: "weight", reason });
    }
    let side = usize::from(options.size);
    let (n, truth) = (side.pow(3), volume(side));
    // Each reading is the weighted sum of eight voxels, and there are four times as many voxels as readings.
    let a: Csr<f32> = gallery::random(n / 4, n, 2 * n, 2009)?;
    let a = Matrix::with_transpose(&device, &a, Format::Auto)?;
    let mut b = Vector::zeros(&device, n / 4)?;
    a.multiply(&Vector::from_slice(&device, &truth)?, &mut b)?;
    let stopping =
        Stopping::for_precision::<f32>().with_rtol(0.0).with_gradient_reduction(1e-4).with_max_iterations(400);
    let setup = Setup::new(Method::Cgnr, stopping);
    let solve = |setup: Setup<f32>| -> Result<(Report, f64)> {
        let mut x = Vector::zeros(&device, n)?;
        let mut solver = Solver::with(&a, setup)?;
        // The first solve builds programs, and drivers load them when they are launched first.
        let _first = solver.solve(&b, &mut x)?;
        x.fill(0.0)?;
        let report = solver.solve(&b, &mut x)?;
        Ok((report, error(&x.to_vec()?, &truth)))
    };
    let (plain, of_plain) = solve(setup.clone())?;
    let (own, of_own) = solve(setup.with_penalty(Edges::new(&device, side, options.weight as f32)?))?;
    let done = own.stop != Stop::MaxIterations && of_own < of_plain;
    let microseconds = |report: &Report| report.times.solve * 1e6 / report.iterations.max(1) as f64;
    if options.json {
        let row = |report: &Report, error: f64| {
            json!({ "iterations": report.iterations, "stop": report.stop.to_string(), "us_per_iteration": microseconds(report),
                "relative_error": error })
        };
        let device = &device.info().name;
        common::print_json(
            json!({ "device": device, "voxels": n, "readings": n / 4, "without": row(&plain, of_plain), "with": row(&own, of_own) }),
        );
        return Ok(done);
    }
    say!("{n} voxels from {} readings, on {}", n / 4, device.info().name);
    for (name, report, error) in [("without a penalty", &plain, of_plain), ("with the penalty", &own, of_own)] {
        let (iterations, us) = (report.iterations, microseconds(report));
        say!("{name}: error {:.1} %, {iterations} iterations of {us:.0} µs ({})", 100.0 * error, report.stop);
    }
    Ok(done)
}
