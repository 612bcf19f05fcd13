//! Products of a sparse matrix in every format: what each costs on a device, and which one would be chosen.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod case;

use common::{say, tell};
use std::path::PathBuf;
use std::process::ExitCode;

use case::{Product, measure};
use clap::{Parser, ValueEnum};
use residuum::io;
use residuum::sparse::gallery;
use residuum::{Csr, Device, Error, Format, Matrix, Real, Result, Storage, Transposed, measure::copy_bandwidth};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Precision {
    Fp32,
    Fp64,
}

/// Time the product of a sparse matrix with a vector, in every format.
///
/// Each result is compared with the host's bit for bit before it is timed. Exit status: 0 done, 1 a result was wrong,
/// 2 bad input.
#[derive(Debug, Parser)]
#[command(name = "spmv", version = common::version(), after_help = common::ENVIRONMENT)]
struct Options {
    /// Matrix Market files (.mtx or .mtx.gz) or SciPy's (.npz)
    files: Vec<PathBuf>,
    /// Instead of files: poisson2d:G, poisson3d:G, blocks:G:SIZE, diagonals:N:COUNT:SPREAD, random:ROWS:COLS:NNZ, dense:ROWS:COLS,
    /// stock-koch, stock-koch-full (repeatable)
    #[arg(long, value_name = "NAME")]
    gallery: Vec<String>,
    /// Format: auto, coo, csr, csr-scalar, csr-adaptive, ellpack, ellpack-r, sell, sell-SIGMA, hyb, dia, bsr, bsr-SIZE,
    /// dense (repeatable) [default: all]
    #[arg(long, value_name = "NAME")]
    format: Vec<Format>,
    /// Precision (repeatable) [default: all the device has]
    #[arg(long, value_enum)]
    precision: Vec<Precision>,
    /// Also the products with the transposed matrix
    #[arg(long)]
    transposed: bool,
    /// Device: words that name it (gpu, cpu, host, fp64, 0:1, or part of a name, vendor or platform)
    #[arg(long, value_name = "WORDS")]
    device: Option<String>,
    /// Work-group size (repeatable) [default: the device's]
    #[arg(long, value_name = "ITEMS")]
    work_group: Vec<usize>,
    /// Skip formats that would store more than this many times what CSR stores
    #[arg(long, value_name = "FACTOR", default_value_t = 10.0)]
    most_padding: f64,
    /// Print one JSON object a line instead of a table
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    common::begin("spmv");
    let outcome = match run(&Options::parse()) {
        Err(Error::Option { name: "verification", reason }) => {
            tell!("spmv: {reason}");
            Ok(false)
        }
        other => other.map(|()| true),
    };
    common::exit::<Options>("spmv", outcome)
}

fn run(options: &Options) -> Result<()> {
    let device = match &options.device {
        Some(words) => Device::select(words)?,
        None => Device::best()?,
    };
    if options.files.is_empty() && options.gallery.is_empty() {
        let reason = "name a Matrix Market or SciPy file, or a --gallery matrix such as poisson2d:1024".into();
        return Err(Error::Option { name: "matrix", reason });
    }
    let devices: Vec<Device> = match &options.work_group[..] {
        [] => vec![device.clone()],
        sizes => sizes.iter().map(|size| device.with_work_group(*size)).collect::<Result<_>>()?,
    };
    let copy = copy_bandwidth(&device)?;
    if !options.json {
        say!("{}: {}", device.info().name, device.choice());
        say!("copy {copy:.0} GB/s; * marks the format that would be chosen");
    }
    let wanted = |precision| match &options.precision[..] {
        [] => precision == Precision::Fp32 || device.info().fp64,
        list => list.contains(&precision),
    };
    for path in &options.files {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
        let a = io::read_matrix::<f64>(path, &mut |_, _| {})?;
        a.check_host_memory()?;
        if wanted(Precision::Fp64) {
            every_format(&devices, &name, &a, options, copy)?;
        }
        if wanted(Precision::Fp32) {
            every_format(&devices, &name, &a.cast::<f32>(), options, copy)?;
        }
    }
    for name in &options.gallery {
        if wanted(Precision::Fp64) {
            every_format(&devices, name, &gallery::by_name::<f64>(name)?, options, copy)?;
        }
        if wanted(Precision::Fp32) {
            every_format(&devices, name, &gallery::by_name::<f32>(name)?, options, copy)?;
        }
    }
    Ok(())
}

fn every_format<T: Real>(devices: &[Device], name: &str, a: &Csr<T>, options: &Options, copy: f64) -> Result<()> {
    let chosen = Matrix::new(&devices[0], a, Format::Auto)?.format();
    let csr = (a.nnz() * (T::PRECISION.bytes() + 4) + 4 * a.rows()) as f64;
    let formats = if options.format.is_empty() { Format::ALL } else { &options.format };
    let products: &[Product] =
        if options.transposed { &[Product::Forward, Product::Transposed] } else { &[Product::Forward] };
    for (format, bytes) in formats.iter().zip(a.stored_bytes(formats)) {
        let factor = bytes as f64 / csr.max(1.0);
        if options.format.is_empty() && factor > options.most_padding {
            tell!("skipped: {name} as {format} takes {factor:.0} times the bytes of csr");
            continue;
        }
        for device in devices {
            for product in products {
                let storage = Storage::default().with_format(*format).with_transposed(Transposed::Copy);
                let mut row = measure(device, name, a, storage, *product, copy)?;
                row.chosen = row.format == chosen.to_string();
                if options.json { common::print_json(row.json()) } else { say!("{row}") }
            }
        }
    }
    Ok(())
}
