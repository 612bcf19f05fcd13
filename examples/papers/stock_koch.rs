//! stock-koch-2009: products of table 2, the budget of section 1, figure 3, and the experiment with ILU (4), in fp32. The paper's machine is a Xeon of
//! 3.2 GHz with a GeForce 8800 GTS 512.

use std::time::Instant;

use common::plot::Chart;
use residuum::measure::time;
use residuum::operator::{Diagonal, Generated, LinearOperator, SharedOperator};
use residuum::precond::Preconditioner;
use residuum::sparse::gallery;
use residuum::tuning::{AccessPattern, Case, Family, Settings, SizeClass};
use residuum::{
    Columns, Csr, Device, Format, Matrix, Method, Packing, Precision, Regularization, Report, Result, Setup,
    Solver, Stopping, Storage, Transposed, Vector,
};
use serde_json::{Value, json};

use crate::case::{Product, measure};
use crate::readings::{no_more_than_0, readings};
use crate::timing::{fastest, timed};
use crate::{Setting, attempt};

/// Table that is drawn.
pub(crate) const FIGURE: &str = "figure-3";

pub(crate) const TABLES: &[&str] = &["2", "budget", FIGURE, "ilu"];

/// Entries of the system of table 2, of 3 072 x 81 545.
const ENTRIES: usize = 854_129;

/// Iterations of a solve.
const ITERATIONS: usize = 400;

pub(crate) fn tables(setting: &Setting) -> Result<()> {
    if setting.wants("2") {
        attempt(setting, "table 2", variants(setting));
    }
    for system in ["stock-koch", "stock-koch-full"].into_iter().filter(|_| setting.wants("budget")) {
        for images in [1, 4] {
            attempt(setting, &format!("budget, {system}"), budget(setting, system, images));
        }
    }
    if setting.wants(FIGURE) {
        attempt(setting, FIGURE, whole_solves(setting));
    }
    if setting.wants("ilu") {
        attempt(setting, "ilu", preconditioned(setting));
    }
    Ok(())
}

/// A row of table 2: name, format, a copy of the vector in local memory, microseconds of the paper for `A x` and `A'y`.
type Variant = (&'static str, Format, Option<bool>, [Option<u32>; 2]);

const VARIANTS: [Variant; 13] = [
    ("Simple", Format::CsrScalar, Some(false), [Some(13_356), Some(1_744)]),
    ("MemoryLayout (ELLPACK)", Format::Ellpack, Some(false), [Some(1_726), None]),
    ("MemoryLayout (ELLPACK-R)", Format::EllpackR, Some(false), [None, None]),
    // A'y: y fits as a whole. A x: x in parts of 16 KiB, which the paper describes and does not measure.
    ("MemoryLayout & LocalMemory (ELLPACK)", Format::Ellpack, Some(true), [None, Some(160)]),
    ("MemoryLayout & LocalMemory (ELLPACK-R)", Format::EllpackR, Some(true), [None, Some(160)]),
    ("MemoryLayout & LocalMemory (SELL)", Format::Sell { sigma: 1 }, Some(true), [None, Some(160)]),
    ("prior ELL (with row lengths)", Format::EllpackR, Some(false), [Some(606), Some(198)]),
    ("prior CSR (with lanes to a row)", Format::Csr, Some(false), [Some(1_183), Some(1_439)]),
    ("prior COO", Format::Coo, Some(false), [Some(750), Some(549)]),
    ("prior HYB", Format::Hyb, Some(false), [Some(793), Some(289)]),
    ("CSR, lanes by row length", Format::CsrAdaptive, Some(false), [None, None]),
    ("SELL", Format::Sell { sigma: 0 }, Some(false), [None, None]),
    ("chosen", Format::Auto, None, [None, None]),
];

/// A handle whose products in fp32 read the vector from local memory, or do not.
fn staging(device: &Device, staged: bool) -> Result<Device> {
    let readings = [AccessPattern::ShortVector, AccessPattern::Rows];
    let cases = readings.into_iter().flat_map(|reading| SizeClass::ALL.iter().map(move |size| (reading, *size)));
    cases.into_iter().try_fold(device.clone(), |device, (reading, size)| {
        let case = Case { family: Family::Product, reading: Some(reading), precision: Precision::Single, size };
        device.with_settings(case, Settings { staged: Some(staged), ..Settings::default() }, "papers")
    })
}

/// Table 2 on a seeded matrix of its size.
fn variants(setting: &Setting) -> Result<()> {
    let a = gallery::by_name::<f32>("stock-koch")?;
    for (variant, format, staged, paper) in VARIANTS {
        for (product, paper) in [Product::Forward, Product::Transposed].into_iter().zip(paper) {
            let storage = Storage::default()
                .with_format(format)
                .with_transposed(Transposed::Copy)
                .with_packing(Packing::Never);
            row(setting, variant, product, paper, |device| {
                let device = staged.map_or_else(|| Ok(device.clone()), |staged| staging(device, staged))?;
                Ok(measure(&device, "stock-koch", &a, storage, product, setting.copy)?.microseconds)
            });
        }
    }
    row(setting, "A'y by atomic additions (not reproducible)", Product::Transposed, None, |device| {
        let storage = Storage::default().with_format(Format::CsrScalar).with_transposed(Transposed::Scatter);
        Ok(measure(device, "stock-koch", &a, storage, Product::Transposed, setting.copy)?.microseconds)
    });
    for (variant, staged, paper) in [("OnTheFly", false, 400), ("OnTheFly & LocalMemory", true, 807)] {
        row(setting, variant, Product::Forward, Some(paper), |device| {
            let made = rows_on_the_fly(device)?;
            generated(device, &if staged { made.staged()? } else { made })
        });
    }
    row(setting, "OnTheFly", Product::Transposed, Some(11_292_080), |device| {
        generated(device, &columns_on_the_fly(device)?)
    });
    Ok(())
}

/// A row: microseconds of the paper, of the host, and of the device.
fn row(
    setting: &Setting,
    variant: &str,
    product: Product,
    paper: Option<u32>,
    mut us: impl FnMut(&Device) -> Result<f64>,
) {
    let side = if product == Product::Forward { "A x" } else { "A'y" };
    let mut row = json!({"table": "2", "variant": variant, "product": side, "stock_koch_us": paper});
    for (place, device) in setting.devices() {
        row[format!("{place}_us")] = us(device).map_or_else(|e| json!(format!("none: {e}")), |us| json!(us));
    }
    setting.row(&row);
}

/// Rows, columns and entries of a row of the matrix that is made when it is needed: a column in each stretch of [`STRETCH`].
const MADE: [usize; 3] = [3_072, 81_454, 278];
const STRETCH: u32 = 293;

/// Place in its stretch, and value, of entry `k` of row `i`: from the bits of a product.
fn entry(i: u32, k: u32) -> (u32, f32) {
    let hash = (i.wrapping_mul(278).wrapping_add(k).wrapping_add(1)).wrapping_mul(2_654_435_761);
    let hash = (hash ^ (hash >> 15)).wrapping_mul(2_246_822_519);
    ((hash >> 8) % STRETCH, (hash % 1024) as f32 * (1.0 / 1024.0) + 0.5)
}

/// [`entry`] as OpenCL C.
const HASH: &str =
    "uint hash = (ROW * 278u + STRATUM + 1u) * 2654435761u; hash = (hash ^ (hash >> 15)) * 2246822519u;
    const uint place = (hash >> 8) % 293u;";

/// The rows of `A`.
fn rows_on_the_fly(device: &Device) -> Result<Generated<f32>> {
    let [rows, cols, entries] = MADE;
    let hash = HASH.replace("ROW", "i").replace("STRATUM", "k");
    let text = format!(
        "{hash} column = k * 293u + place; value = (real_t)(hash % 1024u) * (real_t)(1.0 / 1024.0) + (real_t)0.5;"
    );
    Generated::new(device, [rows, cols], entries, &text, |_, i, k| {
        let (place, value) = entry(i, k);
        (k * STRETCH + place, value)
    })
}

/// The columns of `A`, as rows of its transposed: each row of `A` is asked whether it has an entry there, as in the paper.
fn columns_on_the_fly(device: &Device) -> Result<Generated<f32>> {
    let [rows, cols, _] = MADE;
    let hash = HASH.replace("ROW", "k").replace("STRATUM", "i / 293u");
    let text = format!(
        "{hash} column = k; value = place == i % 293u ? (real_t)(hash % 1024u) * (real_t)(1.0 / 1024.0) + (real_t)0.5 : NAN;"
    );
    Generated::new(device, [cols, rows], rows, &text, |_, i, k| {
        let (place, value) = entry(k, i / STRETCH);
        (k, if place == i % STRETCH { value } else { f32::NAN })
    })
}

/// Time of a product with a generated matrix, whose bits are those of the twin.
fn generated(device: &Device, a: &Generated<f32>) -> Result<f64> {
    a.check()?;
    let x = Vector::filled(device, a.cols(), 0.5)?;
    let mut y = Vector::zeros(device, a.rows())?;
    Ok(time(device, || a.apply(&x, &mut y))?.microseconds)
}

/// A solve of 400 iterations with the paper's F, from readings to images: 0.44 s for four are allowed.
fn budget(setting: &Setting, system: &str, images: usize) -> Result<()> {
    let a: Csr<f32> = gallery::by_name(system)?;
    let readings = readings(a.rows(), images);
    let readings: Vec<&[f32]> = readings.iter().map(Vec::as_slice).collect();
    let mut row = json!({
        "table": "budget", "system": format!("{} x {}, {} entries", a.rows(), a.cols(), a.nnz()), "images": images,
        "stock_koch_budget_ms": (images == 4).then_some(440.0),
    });
    for (place, device) in setting.devices() {
        let matrix = with_transposed(device, &a)?;
        let setup = Setup::new(Method::Cgnr, Stopping::after(ITERATIONS)).with_columns(images);
        let mut solver = Solver::with(&matrix, setup.with_regularizations(&[no_more_than_0(&matrix)]))?;
        let mut least = f64::INFINITY;
        for _ in 0..4 {
            let clock = Instant::now();
            let b = Columns::new(device, &readings)?;
            let mut x = Columns::zeros(device, a.cols(), images)?;
            let reports = solver.solve_many(&b, &mut x)?;
            let _images = x.to_vecs()?;
            // Each report has the same time.
            let compile = reports.first().map_or(0.0, |report| report.times.compile);
            least = least.min(clock.elapsed().as_secs_f64() - compile);
        }
        row[format!("{place}_ms")] = json!(1e3 * least);
        // Two products an iteration, two operations an entry.
        row[format!("{place}_gflops")] = json!(4e-9 * (a.nnz() * images * ITERATIONS) as f64 / least);
    }
    setting.row(&row);
    Ok(())
}

fn with_transposed(device: &Device, a: &Csr<f32>) -> Result<Matrix<f32>> {
    Matrix::stored(device, a, Storage::default().with_transposed(Transposed::Copy))
}

/// Figure 3: milliseconds from the readings to the image, and from the matrix, over the number of entries at equal density. The curves
/// are lost; the CPU wins for very small matrices, and its knee is at about 450 000 entries.
fn whole_solves(setting: &Setting) -> Result<()> {
    let mut lines: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    for entries in [50_000, 100_000, 200_000, 450_000, ENTRIES, 2_000_000] {
        let a = of_density(entries)?;
        let mut row = json!({"figure": 3, "entries": entries, "rows": a.rows(), "cols": a.cols()});
        for (place, device) in setting.devices() {
            let [without, with_matrix] = whole_solve(device, &a)?;
            row[format!("{place}_ms")] = json!(without);
            row[format!("{place}_with_matrix_ms")] = json!(with_matrix);
            for (words, ms) in [("", without), (", with the matrix", with_matrix)] {
                let name = format!("{place}{words}");
                let at = lines.iter().position(|line| line.0 == name).unwrap_or_else(|| {
                    lines.push((name, Vec::new()));
                    lines.len() - 1
                });
                lines[at].1.push((entries as f64, ms));
            }
        }
        setting.row(&row);
    }
    let Some(path) = &setting.options.plot else { return Ok(()) };
    Chart {
        title: format!("Figure 3: {ITERATIONS} iterations of CGNR, {}", setting.device.info().name),
        across: "entries of the matrix",
        up: "milliseconds",
        doubling: true,
        lines,
        ..Chart::default()
    }
    .write(path)
}

/// A system of the paper's density and proportions with fewer entries, or more.
fn of_density(entries: usize) -> Result<Csr<f32>> {
    let side = (entries as f64 / ENTRIES as f64).sqrt();
    let [rows, cols] = [3_072.0, 81_545.0].map(|full: f64| (full * side).round() as usize);
    gallery::random::<f32>(rows, cols, entries, 2009)
}

fn whole_solve(device: &Device, a: &Csr<f32>) -> Result<[f64; 2]> {
    let readings = readings(a.rows(), 1).remove(0);
    let mut least = [f64::INFINITY; 2];
    for _ in 0..4 {
        let clock = Instant::now();
        let matrix = with_transposed(device, a)?;
        let setup = Setup::new(Method::Cgnr, Stopping::after(ITERATIONS));
        let mut solver = Solver::with(&matrix, setup.with_regularizations(&[no_more_than_0(&matrix)]))?;
        let made = clock.elapsed().as_secs_f64();
        let clock = Instant::now();
        let b = Vector::from_slice(device, &readings)?;
        let mut x = Vector::zeros(device, a.cols())?;
        let report = solver.solve(&b, &mut x)?;
        let _image = x.to_vec()?;
        // The first builds programs.
        let seconds = clock.elapsed().as_secs_f64() - report.times.compile;
        least = [least[0].min(1e3 * seconds), least[1].min(1e3 * (made + seconds))];
    }
    Ok(least)
}

/// Preconditioners of the experiment, which stand for the paper's ILU: of `A'A` or its diagonal, and of the diagonal of `A'A + F` at pixels that violate
/// their bound.
const TRIED: [&str; 6] = ["jacobi", "ic0", "ict=10:1e-3", "sainv=0.1", "fsai", OF_BOTH];

/// Name of the last one.
const OF_BOTH: &str = "jacobi of A'A + F";

/// Root of the inverse of the diagonal of `A'A + weight`.
fn of_both(device: &Device, a: &Csr<f32>, weight: f64) -> Result<SharedOperator<f32>> {
    let mut squares = vec![weight; a.cols()];
    for (column, value) in a.indices().iter().zip(a.values()) {
        squares[*column as usize] += f64::from(*value) * f64::from(*value);
    }
    let roots: Vec<f32> = squares.iter().map(|square| square.sqrt().recip() as f32).collect();
    Ok(Diagonal::new(Vector::from_slice(device, &roots)?)?.into())
}

/// The paper tried ILU, which "did not improve convergence" because F is applied in between. Iterations (400 at most) and time until the gradient has
/// fallen to a part of 1e-4, without F and with F, without a preconditioner and with some.
fn preconditioned(setting: &Setting) -> Result<()> {
    let a = of_density(50_000)?;
    let readings = readings(a.rows(), 1).remove(0);
    let solve = |device: &Device, f: bool, name: Option<&str>| -> Result<Value> {
        let matrix = with_transposed(device, &a)?;
        let stopping = Stopping::for_precision::<f32>()
            .with_rtol(0.0)
            .with_gradient_rtol(0.0)
            .with_gradient_reduction(1e-4)
            .with_max_iterations(ITERATIONS);
        let regularization = if f { no_more_than_0(&matrix) } else { Regularization::none() };
        let mut setup = Setup::new(Method::Cgnr, stopping).with_regularizations(&[regularization]);
        let mut set_up = 0.0;
        if let Some(name) = name {
            let (ms, operator) = timed(|| match name {
                OF_BOTH => of_both(device, &a, no_more_than_0(&matrix).bound_weight),
                _ => Ok(name.parse::<Preconditioner>()?.build_for_least_squares(device, &a, None)?.operator),
            })?;
            (set_up, setup.preconditioner) = (ms, Some(operator));
        }
        let mut solver = Solver::with(&matrix, setup)?;
        let b = Vector::from_slice(device, &readings)?;
        let report: Report = fastest(2, || {
            let mut x = Vector::zeros(device, a.cols())?;
            solver.solve(&b, &mut x)
        })?;
        let [iterations, ms] = [report.iterations as f64, 1e3 * report.times.solve];
        let ending = if report.converged() { String::new() } else { format!(" ({:?})", report.stop) };
        Ok(json!(format!("{iterations}{ending}, {ms:.1} ms, set-up {set_up:.0} ms")))
    };
    for name in std::iter::once(None).chain(TRIED.map(Some)) {
        let mut row = json!({"table": "ilu", "preconditioner": name.unwrap_or("none")});
        for (place, device) in setting.devices() {
            for (f, words) in [(false, "without_f"), (true, "with_f")] {
                let found = solve(device, f, name);
                row[format!("{place}_{words}")] = found.unwrap_or_else(|error| json!(format!("none: {error}")));
            }
        }
        setting.row(&row);
    }
    Ok(())
}
