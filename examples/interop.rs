//! A program of the crate `ocl`, with kernels of its own, that has its equation solved on its own queue without a copy.
#![allow(clippy::print_stdout, clippy::print_stderr, unsafe_code)]

use common::{say, tell};
use std::process::ExitCode;

use clap::Parser;
use ocl::core::{ArgVal, DeviceId};
use residuum::sparse::gallery;
use residuum::{Device, DeviceFilter, Format, Matrix, Method, Report, Solver, Stopping, Vector, interop};
use serde_json::json;

/// Find how warm a heated plate gets: kernels of this program place the heat and read the temperature, residuum solves
/// the equation in between, all on one queue and in the same buffers.
#[derive(Debug, Parser)]
#[command(
    name = "interop",
    version = common::version(),
    after_help = common::after_help("Exit status: 0 done, 1 not converged, or not the bits of the same solve with copies, 2 bad input.")
)]
struct Options {
    /// Grid points along each side of the plate
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(2..=4096))]
    size: u32,
    /// The best OpenCL device that matches all these words, as in the program devices
    #[arg(long, value_name = "WORDS", default_value = "")]
    device: String,
    /// Print one JSON object on stdout instead of text
    #[arg(long)]
    json: bool,
}

/// The program's own kernels: two hot spots, and the highest temperature of each row.
const SOURCE: &str = "
__kernel void heat(__global float* b, uint n)
{
    const uint i = get_global_id(0), row = i / n, column = i % n;
    b[i] = row == n / 3 && column == n / 4 ? 1.0f : row == n / 2 && column == 2 * n / 3 ? 0.5f : 0.0f;
}

__kernel void warmest(__global const float* x, uint n, __global float* most)
{
    const uint row = get_global_id(0);
    float found = x[row * n];
    for (uint column = 1; column < n; ++column) found = fmax(found, x[row * n + column]);
    most[row] = found;
}
";

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    common::begin("interop");
    let options = Options::parse();
    match run(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            tell!("interop: {}", error.to_string().lines().next().unwrap_or("failed"));
            ExitCode::from(2)
        }
    }
}

/// The device as `ocl` knows it: both count platforms and devices in the order of the loader.
fn choose(words: &str) -> Result<(ocl::Platform, ocl::Device), Failure> {
    let filter: DeviceFilter = words.parse()?;
    let found = Device::candidates().into_iter().filter(|c| filter.matches(&c.info)).find_map(|c| c.info.index);
    let Some((platform, device)) = found else {
        // Asked before `ocl`, which does not survive a machine without drivers.
        return Err(Device::opencl_missing()
            .map_or(format!("no OpenCL device matches '{words}'"), str::to_string)
            .into());
    };
    let id = *ocl::core::get_platform_ids()?.get(platform).ok_or("the platform is gone")?;
    let ids: Vec<DeviceId> = ocl::core::get_device_ids(id, None, None)?;
    Ok((ocl::Platform::new(id), ocl::Device::from(*ids.get(device).ok_or("the device is gone")?)))
}

fn solve(device: &Device, size: usize, b: &Vector<f32>) -> residuum::Result<(Vector<f32>, Report)> {
    let a = Matrix::new(device, &gallery::poisson_2d::<f32>(size, 0.0)?, Format::Auto)?;
    let mut x = Vector::zeros(device, a.cols())?;
    let report = Solver::new(&a, Method::Cg, Stopping::for_precision::<f32>())?.solve(b, &mut x)?;
    Ok((x, report))
}

/// Tells if all is as it should be.
fn run(options: &Options) -> Result<bool, Failure> {
    let (platform, id) = choose(&options.device)?;
    let (size, points) = (options.size as usize, options.size as usize * options.size as usize);
    let context = ocl::Context::builder().platform(platform).devices(id).build()?;
    let queue = ocl::Queue::new(&context, id, None)?;
    let program = ocl::Program::builder().src(SOURCE).devices(id).build(&context)?;
    let buffer = |len| ocl::Buffer::<f32>::builder().queue(queue.clone()).len(len).build();
    let (load, most) = (buffer(points)?, buffer(size)?);
    let kernel = |name: &'static str, items: usize| {
        let mut builder = ocl::Kernel::builder();
        builder.program(&program).name(name).queue(queue.clone()).global_work_size(items);
        builder
    };

    // SAFETY: the kernel writes element get_global_id(0), of which there are as many as `load` has.
    unsafe { kernel("heat", points).arg(&load).arg(options.size).build()?.enq()? };
    let device = interop::ocl::device(&queue)?;
    let b = interop::ocl::vector(&device, &load)?;
    let (x, report) = solve(&device, size, &b)?;
    let answer = interop::ocl::memory(&x)?;
    let warmest = kernel("warmest", size).arg(&load).arg(options.size).arg(&most).build()?;
    // SAFETY: the argument in place of `load` is a buffer of as many numbers of the same type, and outlives the call.
    unsafe {
        warmest.set_arg_unchecked(0, ArgVal::mem(&answer))?;
        warmest.enq()?;
    }
    let mut rows = vec![0f32; size];
    most.read(&mut rows).enq()?;
    let hottest = rows.iter().copied().fold(f32::MIN, f32::max);

    // Solve with a device of our own and copies, to compare.
    let own = Device::select(&device.info().index.map_or(String::new(), |(p, d)| format!("{p}:{d}")))?;
    let (copied, _) = solve(&own, size, &Vector::from_slice(&own, &b.to_vec()?)?)?;
    let same = copied.to_vec()? == x.to_vec()?;

    if options.json {
        common::print_json(json!({ "device": device.info().name, "size": size, "iterations": report.iterations,
                "converged": report.converged(), "highest": hottest, "same_bits_with_copies": same }));
    } else {
        say!("{}: {report}", device.info().name);
        say!("the highest temperature of {points} points is {hottest:.6}");
        say!("the same solve with copies gives {}", if same { "the same bits" } else { "OTHER BITS" });
    }
    Ok(same && report.converged())
}
