//! Conversion of matrices and right-hand sides between kinds of files, and a picture of the places of entries.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use common::{Overwriting, Precision, Written, merged, say, shown};
use residuum::io::{self, ArrayForm, MatrixForm};
use residuum::{Csr, Real, Result};
use serde_json::{Value, json};

/// Read a matrix or right-hand sides, tell what the file holds, and write it as another kind of file.
#[derive(Debug, Parser)]
#[command(
    name = "convert",
    version = common::version(),
    after_help = common::after_help("Exit status: 0 done, 2 bad input.")
)]
struct Options {
    /// A Matrix Market file (.mtx, .gz, .tar.gz), SciPy's .npz, PETSc's binary file, or a name of the gallery such as poisson2d:512; with
    /// --rhs a NumPy array (.npy, .npz), PETSc's vectors, or one vector of Matrix Market
    input: PathBuf,
    /// File to write: .mtx, .npz, .petsc or .dat for a matrix, .npy, .npz, .mtx or .txt for right-hand sides
    output: Option<PathBuf>,
    /// Convert right-hand sides instead of a matrix
    #[arg(long, conflicts_with_all = ["transpose", "picture"])]
    rhs: bool,
    /// Write the transposed matrix
    #[arg(long)]
    transpose: bool,
    /// Precision of the values that are written
    #[arg(long, value_enum, default_value_t = Precision::Fp64)]
    precision: Precision,
    /// Picture of the places of entries, darker where there are more
    #[arg(long, value_name = "FILE.png")]
    picture: Option<PathBuf>,
    #[command(flatten)]
    overwriting: Overwriting,
    /// Print one JSON object on stdout instead of text
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    common::begin("convert");
    let options = Options::parse();
    let outcome = match options.precision {
        Precision::Fp32 => run::<f32>(&options),
        Precision::Fp64 => run::<f64>(&options),
    };
    common::exit::<Options>("convert", outcome.map(|()| true))
}

/// Pixels along the longer side of a picture, at most.
const PIXELS: usize = 768;

fn run<T: Real>(options: &Options) -> Result<()> {
    check(options)?;
    let (found, written) = if options.rhs { vectors::<T>(options)? } else { matrix::<T>(options)? };
    if options.json {
        common::print_json(merged([found, json!({ "written": shown(&written.paths) })]));
    } else {
        for path in &written.paths {
            say!("written     {}", path.display());
        }
    }
    written.finish()
}

/// Fails before the work on outputs that cannot be written.
fn check(options: &Options) -> Result<()> {
    let outputs = [("output", &options.output), ("picture", &options.picture)];
    let outputs: Vec<(&str, &Path)> =
        outputs.into_iter().filter_map(|(name, path)| Some((name, path.as_deref()?))).collect();
    if let Some(path) = &options.output {
        if options.rhs {
            ArrayForm::of(path)?;
        } else {
            MatrixForm::of(path)?;
        }
    }
    if let Some(path) = &options.picture {
        common::check_ending("picture", path, &["png"])?;
    }
    common::check_outputs(&[&options.input], &outputs)?;
    options.overwriting.check(&outputs)
}

fn matrix<T: Real>(options: &Options) -> Result<(Value, Written)> {
    let a = common::read_matrix::<T>(&options.input, options.json)?;
    a.check_host_memory()?;
    let a = if options.transpose { a.transpose() } else { a };
    let longest = (0..a.rows()).map(|i| a.row(i).0.len()).max().unwrap_or(0);
    if !options.json {
        let name = options.input.display();
        say!("matrix      {name}: {} x {}, {} entries, up to {longest} a row", a.rows(), a.cols(), a.nnz());
    }
    let mut written = Written::default();
    if let Some(path) = &options.output {
        written.add(path, io::write_matrix(path, &a));
    }
    if let Some(path) = &options.picture {
        written.add(path, draw(&a, path));
    }
    let found = json!({ "rows": a.rows(), "cols": a.cols(), "nnz": a.nnz(), "longest_row": longest });
    Ok((found, written))
}

fn vectors<T: Real>(options: &Options) -> Result<(Value, Written)> {
    let vectors: Vec<Vec<T>> = io::read_vectors(&options.input)?;
    let (rows, length) = (vectors.len(), vectors.first().map_or(0, Vec::len));
    if !options.json {
        let shape = if rows == 1 { format!("{length} numbers") } else { format!("{rows} x {length} numbers") };
        say!("array       {}: {shape}", options.input.display());
    }
    let mut written = Written::default();
    if let Some(path) = &options.output {
        // Rows stay rows.
        written.add(path, io::write_columns(path, &vectors, true));
    }
    Ok((json!({ "rows": rows, "length": length }), written))
}

/// Numbers of entries in the fields of a picture of the matrix.
fn counts<T: Real>(a: &Csr<T>, [width, height]: [usize; 2]) -> Vec<usize> {
    let mut counts = vec![0; width * height];
    for i in 0..a.rows() {
        let y = i * height / a.rows();
        for j in a.row(i).0 {
            counts[y * width + *j as usize * width / a.cols()] += 1;
        }
    }
    counts
}

/// Draws where entries stand: white for none, black for the fullest field.
fn draw<T: Real>(a: &Csr<T>, path: &Path) -> Result<()> {
    let longer = a.rows().max(a.cols()).max(1);
    let scaled = |n: usize| if longer <= PIXELS { n } else { n * PIXELS / longer }.max(1);
    let [width, height] = [scaled(a.cols()), scaled(a.rows())];
    // Small matrices have several pixels for each entry.
    let zoom = (PIXELS / longer).clamp(1, 16);
    let counts = counts(a, [width, height]);
    let most = counts.iter().max().copied().unwrap_or(0).max(1) as f64;
    let shade = |count: usize| if count == 0 { 255 } else { (160.0 * (1.0 - (count as f64 / most).sqrt())) as u8 };
    let across = width * zoom;
    let field = |pixel: usize| pixel / across / zoom * width + pixel % across / zoom;
    let pixels: Vec<u8> = (0..across * height * zoom).map(|pixel| shade(counts[field(pixel)])).collect();
    io::write_atomically(path, |file| {
        let mut encoder = png::Encoder::new(file, across as u32, (height * zoom) as u32);
        encoder.set_color(png::ColorType::Grayscale);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header().map_err(std::io::Error::other)?;
        writer.write_image_data(&pixels).map_err(std::io::Error::other)
    })
}
