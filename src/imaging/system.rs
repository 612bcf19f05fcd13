//! The matrix of a scan and its grid, and the mean diagonals that weights of regularizations are multiplied by.

use std::sync::Arc;

use super::doubt::{self, Doubt};
use super::projector::Projector;
use super::scanner::{Grid, Scanner};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::magnitude;
use crate::matrix::{Matrix, Storage, Transposed};
use crate::number::{Real, per_number};
use crate::operator::{LinearOperator, SharedOperator, Subsets, check_count, frobenius_norm};
use crate::solver::Report;
use crate::sparse::Format;
use crate::vector::Vector;

/// A linear model of readings, `b = A x` for an image `x`: the matrix of a scanner and a grid, or any operator with its
/// adjoint. Cheap to clone; reconstructors share it.
///
/// ```
/// use residuum::imaging::{Beam, Noise, Phantom, Scanner, System};
/// use residuum::{Device, Format};
///
/// let angles = (0..30).map(|k| 6.0 * f64::from(k)).collect();
/// let scanner = Scanner { beam: Beam::Parallel, pixels: 48, pitch: 2.0 / 48.0, offset: 0.0, angles };
/// let scan = Phantom::plate().scan(&scanner, 2.0, Noise { photons: 1e5, gain: 0.0, seed: 1 })?;
/// // Stored, because it is small; `Format::OnTheFly` traces the rays in every product.
/// let system = System::<f32>::new(&Device::best()?, &scanner, scan.grid(32), Format::Auto)?;
/// println!("{}: {}", system.format(), system.why());
/// assert!(system.entries().is_some_and(|entries| entries > 30 * 48));
/// assert!(system.doubts(&scan.readings::<f32>(), true).is_empty());
/// # Ok::<(), residuum::Error>(())
/// ```
#[derive(Clone)]
pub struct System<T: Real> {
    source: Source,
    /// Mean diagonal of `A'A`: `|A|_F² / n`. Weights of regularisers are taken of it.
    diagonal: f64,
    /// `A 1`, the readings of a flat image of brightness 1: of a scan, the lengths of its rays within the image.
    lengths: Arc<[T]>,
    /// `|A 1|`.
    flat: f64,
    made: Made<T>,
}

/// Origin of a system.
#[derive(Clone)]
enum Source {
    Scan(Arc<Scanner>, Grid),
    Operator(Option<[usize; 2]>),
}

impl<T: Real> std::fmt::Debug for System<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("System")
            .field("rows", &self.made.operator.rows())
            .field("cols", &self.made.operator.cols())
            .finish_non_exhaustive()
    }
}

/// An operator, and how it was made.
#[derive(Clone)]
struct Made<T: Real> {
    operator: SharedOperator<T>,
    /// The operator, if it traces rays and is in one part.
    projector: Option<Projector<T>>,
    entries: Option<usize>,
    /// Why it is stored in its format, or traced.
    why: String,
}

impl<T: Real> Made<T> {
    fn of_matrix(matrix: Matrix<T>) -> Self {
        let (entries, why) = (Some(matrix.nnz()), matrix.why().to_string());
        Self { operator: matrix.into(), projector: None, entries, why }
    }

    fn of_projector(projector: Projector<T>) -> Self {
        let entries = Some(projector.nnz());
        Self { operator: (&projector).into(), projector: Some(projector), entries, why: TRACED.into() }
    }

    fn of_subsets(subsets: Subsets<T>, entries: usize, why: &str) -> Self {
        Self { operator: subsets.shared(), projector: None, entries: Some(entries), why: why.into() }
    }

    /// Puts what was decided before in front of the reason.
    fn because(mut self, reason: &str) -> Self {
        self.why = format!("{reason}; {}", self.why);
        self
    }
}

/// Reason of an operator that traces rays.
const TRACED: &str = "rays are traced anew in each iteration";

/// Most bytes of a matrix and its transposed that a system stores unasked. Products with more are no faster than tracing
/// the rays (two cores: 20 ms for the traced rays of 320 MB, 25 ms for those stored), and making the matrix takes longer than a
/// solve.
const MOST_STORED: u64 = 64 << 20;

per_number! {
    fn of_scan<T>(
        device: &Device,
        scanner: &Scanner,
        grid: Grid,
        format: Format,
        subsets: Option<usize>,
    ) -> Result<System<T>> = System::of_scan_here;
    fn scaled<T>(made: Made<T>, source: Source) -> Result<System<T>> = System::scaled_here;
    fn doubts<T>(system: &System<T>, readings: &[T], iterates: bool) -> Vec<Doubt> = System::doubts_here;
}

impl<T: Real> System<T> {
    /// The matrix of `scanner` and `grid`, stored or traced: [`Format::OnTheFly`] traces every ray as it is needed, [`Format::Auto`]
    /// stores what takes up to 64 MiB with its transposed and traces what takes more, any other format stores. [`System::why`]
    /// says what was done.
    ///
    /// # Errors
    /// As [`Scanner::matrix`], [`Scanner::projector`] and [`Matrix::with_transpose`]; [`Error::Option`] if no ray meets the image.
    pub fn new(device: &Device, scanner: &Scanner, grid: Grid, format: Format) -> Result<Self> {
        of_scan(device, scanner, grid, format, None)
    }

    /// [`System::new`] in `count` subsets of the angles, for [`Method::Sart`](crate::Method::Sart): subset `k` has the angles `k`,
    /// `k + count`, `k + 2 count`, ... Traced subsets make their products in the same memory.
    ///
    /// # Errors
    /// [`Error::Option`] unless `count` is from 1 to the number of angles; as [`System::new`].
    pub fn of_subsets(
        device: &Device,
        scanner: &Scanner,
        grid: Grid,
        format: Format,
        count: usize,
    ) -> Result<Self> {
        of_scan(device, scanner, grid, format, Some(count))
    }

    fn of_scan_here(
        device: &Device,
        scanner: &Scanner,
        grid: Grid,
        format: Format,
        subsets: Option<usize>,
    ) -> Result<Self> {
        scanner.validate()?;
        grid.validate()?;
        if let Some(count) = subsets {
            check_count(count, scanner.angles.len())?;
        }
        let made = match format {
            Format::OnTheFly => traced(device, scanner, grid, subsets)?,
            Format::Auto => stored_or_traced(device, scanner, grid, subsets)?,
            format => stored(device, scanner, grid, format, subsets)?,
        };
        let made = match subsets {
            Some(count) => made.because(&format!("{count} subsets of angles")),
            None => made,
        };
        scaled(made, Source::Scan(Arc::new(scanner.clone()), grid))
    }

    /// Any operator with its adjoint. `shape` is the rows and columns of the image that its unknowns are, row by row;
    /// without one there are no neighbours, and no regularisers that need them.
    ///
    /// # Errors
    /// [`Error::Conflict`] for a shape of another number of unknowns, and for an operator without entries.
    pub fn of_operator(operator: impl Into<SharedOperator<T>>, shape: Option<[usize; 2]>) -> Result<Self> {
        let operator = operator.into();
        if let Some([rows, cols]) = shape.filter(|[rows, cols]| rows.checked_mul(*cols) != Some(operator.cols())) {
            let reason = format!("an image of {rows} x {cols} pixels for {} unknowns", operator.cols());
            return Err(Error::Conflict { name: "shape", reason });
        }
        let entries = match operator.as_subsets() {
            None => operator.as_matrix().map(Matrix::nnz),
            Some(subsets) => subsets.parts().iter().map(|part| Some(part.as_matrix()?.nnz())).sum(),
        };
        let why = operator.as_matrix().map_or("", Matrix::why).to_string();
        scaled(Made { operator, projector: None, entries, why }, Source::Operator(shape))
    }

    fn scaled_here(made: Made<T>, source: Source) -> Result<Self> {
        let operator = &made.operator;
        let frobenius = frobenius_norm(&**operator)?;
        if frobenius == 0.0 {
            let reason =
                "all of it is 0: no ray meets the image (too small a field, or a detector shifted too far?)";
            return Err(Error::Option { name: "system", reason: reason.into() });
        }
        let ones = Vector::filled(operator.device(), operator.cols(), T::from_f64(1.0))?;
        let mut lengths = Vector::zeros(operator.device(), operator.rows())?;
        operator.apply(&ones, &mut lengths)?;
        Ok(Self {
            diagonal: frobenius * frobenius / operator.cols().max(1) as f64,
            flat: lengths.norm2()?,
            lengths: lengths.to_vec()?.into(),
            source,
            made,
        })
    }

    /// The operator that solvers multiply by.
    pub fn operator(&self) -> &SharedOperator<T> {
        &self.made.operator
    }

    /// The matrix, if the operator is a stored one.
    pub fn matrix(&self) -> Option<&Matrix<T>> {
        self.made.operator.as_matrix()
    }

    /// The projector, if the operator traces rays and is in one part.
    pub fn projector(&self) -> Option<&Projector<T>> {
        self.made.projector.as_ref()
    }

    /// Number of entries, if they are known.
    pub fn entries(&self) -> Option<usize> {
        self.made.entries
    }

    /// Format of the matrix, or of its subsets; [`Format::OnTheFly`] if nothing is stored.
    pub fn format(&self) -> Format {
        self.made.operator.stored_format()
    }

    /// Why the operator is stored in its format, or traced; nothing if it is a user's.
    pub fn why(&self) -> &str {
        &self.made.why
    }

    /// The scanner, if it is a scan.
    pub fn scanner(&self) -> Option<&Scanner> {
        match &self.source {
            Source::Scan(scanner, _) => Some(scanner),
            Source::Operator(_) => None,
        }
    }

    /// The scanner and the grid, if it is a scan.
    pub(super) fn scan(&self) -> Option<(&Scanner, Grid)> {
        match &self.source {
            Source::Scan(scanner, grid) => Some((scanner, *grid)),
            Source::Operator(_) => None,
        }
    }

    /// Rows and columns of the image, if the unknowns are one.
    pub fn shape(&self) -> Option<[usize; 2]> {
        match &self.source {
            Source::Scan(_, grid) => Some([grid.side; 2]),
            Source::Operator(shape) => *shape,
        }
    }

    /// Length of a pixel, 1 without a scanner.
    pub fn pixel(&self) -> f64 {
        match &self.source {
            Source::Scan(_, grid) => grid.pixel,
            Source::Operator(_) => 1.0,
        }
    }

    /// Mean diagonal of `A'A`, which the weights of regularisers are multiplied by.
    pub fn mean_diagonal(&self) -> f64 {
        self.diagonal
    }

    /// Mean brightness of the image that `readings` are of, `|b| / |A 1|`: exact for a flat image; 1 if either norm is 0. Total variation
    /// multiplies its weight by it.
    pub fn brightness(&self, readings: &[T]) -> f64 {
        let norm = magnitude::norm(readings.iter().map(|v| v.to_f64()));
        if self.flat > 0.0 && norm > 0.0 { norm / self.flat } else { 1.0 }
    }

    /// Doubts if `readings` look like no line integrals of an image of numbers above 0, or do not go with the scanner and the grid. An object that reaches
    /// beyond the detector is one for a method that `iterates` only if the picture has no room for it.
    pub fn doubts(&self, readings: &[T], iterates: bool) -> Vec<Doubt> {
        doubts(self, readings, iterates)
    }

    fn doubts_here(&self, readings: &[T], iterates: bool) -> Vec<Doubt> {
        let mut doubts: Vec<Doubt> = kind(readings, &self.lengths).into_iter().collect();
        if let (Some((scanner, grid)), true) = (self.scan(), doubts.is_empty()) {
            doubts = doubt::of_scan(scanner, grid, &self.lengths, readings, iterates);
        }
        doubts
    }

    /// These doubts, or if there are none a doubt if the residual of an answer near its minimum is far above the noise of these readings of a scan. A
    /// back-projection alone leaves a residual of its own.
    pub(super) fn with_misfit(&self, mut doubts: Vec<Doubt>, readings: &[T], report: &Report) -> Vec<Doubt> {
        let [last, first] = [report.gradient_history.last(), report.gradient_history.first()];
        let near = last.zip(first).is_some_and(|(last, first)| *last <= doubt::NEAR_MINIMUM * first);
        if let (Some((scanner, _)), true) = (self.scan(), doubts.is_empty() && near && report.iterations > 0) {
            doubts.extend(doubt::misfit(scanner, readings, report.relative_residual()));
        }
        doubts
    }
}

/// The scanner of each subset of the angles.
fn parts(scanner: &Scanner, count: usize) -> Vec<Scanner> {
    let views = |k: usize| (k..scanner.angles.len()).step_by(count).collect::<Vec<_>>();
    (0..count).map(|k| scanner.with_views(&views(k))).collect()
}

fn stored<T: Real>(
    device: &Device,
    scanner: &Scanner,
    grid: Grid,
    format: Format,
    subsets: Option<usize>,
) -> Result<Made<T>> {
    let a = scanner.matrix::<T>(grid)?;
    let Some(count) = subsets else { return Ok(Made::of_matrix(Matrix::with_transpose(device, &a, format)?)) };
    let storage = Storage { format, transposed: Transposed::Copy, ..Storage::default() };
    let subsets = Subsets::of_matrix(device, &a, storage, count, scanner.pixels)?;
    let why = subsets.parts()[0].as_matrix().map_or("", Matrix::why).to_string();
    Ok(Made::of_subsets(subsets, a.nnz(), &why))
}

fn traced<T: Real>(device: &Device, scanner: &Scanner, grid: Grid, subsets: Option<usize>) -> Result<Made<T>> {
    let Some(count) = subsets else { return Ok(Made::of_projector(scanner.projector(device, grid)?)) };
    let parts = Projector::of_parts(device, &parts(scanner, count), grid)?;
    let entries = parts.iter().map(Projector::nnz).sum();
    let subsets = Subsets::new(parts.into_iter().map(SharedOperator::from).collect(), scanner.pixels)?;
    Ok(Made::of_subsets(subsets, entries, TRACED))
}

/// Stores what takes little, and what cannot be traced.
fn stored_or_traced<T: Real>(
    device: &Device,
    scanner: &Scanner,
    grid: Grid,
    subsets: Option<usize>,
) -> Result<Made<T>> {
    let stored = || stored(device, scanner, grid, Format::Auto, subsets);
    // A ray has two entries in each of up to `side` lines.
    let entry = 2 * (4 + T::PRECISION.bytes()) as u64;
    let bytes = (2 * grid.side as u64).saturating_mul(scanner.rays() as u64).saturating_mul(entry);
    let size = format!("stored it would take up to {:.1} MiB", bytes as f64 / f64::from(1 << 20));
    let fits = device.check_total(0, &[("matrix", bytes)]).is_ok();
    if bytes <= MOST_STORED && fits {
        return Ok(stored()?.because(&size));
    }
    match traced(device, scanner, grid, subsets) {
        Ok(traced) => Ok(traced.because(&size)),
        // Few rays through a large image: its copies take more than the matrix.
        Err(error @ Error::Memory { .. }) if fits => Ok(stored()?.because(&format!("not traced: {error}"))),
        // A system that cannot be traced says so, and is stored.
        Err(Error::Option { name, reason }) => {
            // Before it is made on the host: half of what it may take it surely takes.
            device.check_total(0, &[("matrix", bytes / 2)])?;
            Ok(stored()?.because(&format!("not traced: {name}: {reason}")))
        }
        Err(error) => Err(error),
    }
}

/// Readings that are summed up at a time.
const PART: usize = 1 << 14;

/// Doubt if `readings` look like no line integrals of an image of numbers above 0. `lengths` are those of the rays
/// within it.
fn kind<T: Real>(readings: &[T], lengths: &[T]) -> Option<Doubt> {
    // Scaled, so that no square overflows.
    let scale = |values: &[T]| {
        let largest = values.iter().fold(0.0_f64, |most, v| most.max(v.to_f64().abs()));
        // The reciprocal of a denormal number is none.
        if largest > 0.0 { (1.0 / largest).min(f64::MAX) } else { 0.0 }
    };
    let (of_readings, of_lengths) = (scale(readings), scale(lengths));
    if of_readings == 0.0 {
        return Some(Doubt::Nothing);
    }
    // If all rays are of one length, nothing can be told from their lengths.
    let n = readings.len() as f64;
    let sums = |term: &dyn Fn(f64, f64) -> [f64; 3]| -> [f64; 3] {
        let parts = readings.chunks(PART).zip(lengths.chunks(PART)).map(|(readings, lengths)| {
            let pairs = readings.iter().zip(lengths);
            let terms = pairs.map(|(b, l)| term(b.to_f64() * of_readings, l.to_f64() * of_lengths));
            terms.fold([0.0; 3], |sums, terms| [0, 1, 2].map(|k| sums[k] + terms[k]))
        });
        parts.fold([0.0; 3], |sums, part| [0, 1, 2].map(|k| sums[k] + part[k]))
    };
    let [sum_b, sum_l, size] = sums(&|b, l| [b, l, b.abs()]);
    let (mean_b, mean_l) = (sum_b / n, sum_l / n);
    let [both, of_b, of_l] = sums(&|b, l| {
        let (b, l) = (b - mean_b, l - mean_l);
        [b * l, b * b, l * l]
    });
    let correlation = both / (of_b * of_l).sqrt();
    // Half of what the magnitudes exceed the sum by is negative.
    if 0.5 * (size - sum_b) > 0.5 * size {
        return Some(Doubt::Negative);
    }
    // Rays that pass more of the image lose more: their integrals are larger, their intensities smaller.
    (correlation < -0.2 && mean_b > 0.0).then_some(Doubt::Intensities)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_that_are_no_line_integrals_are_told() {
        // A disc in the middle of a square, seen along parallel rays: lengths fall towards the sides as those through a turned square
        // do, integrals faster.
        let lengths: Vec<f64> = (0..64).map(|k| 1.0 - (f64::from(k) - 31.5).abs() / 40.0).collect();
        let integrals: Vec<f64> = lengths.iter().map(|l| (3.0 * (l - 0.7)).max(0.0)).collect();
        assert_eq!(kind(&integrals, &lengths), None);
        let words = |f: &dyn Fn(f64) -> f64| {
            let doubt = kind(&integrals.iter().map(|v| f(*v)).collect::<Vec<f64>>(), &lengths);
            doubt.map_or_else(String::new, |doubt| doubt.to_string())
        };
        assert!(words(&|v| -v).contains("negative"));
        assert!(words(&|v| 1e5 * (-v).exp()).contains("intensities"));
        assert!(words(&|_| 0.0).contains("all readings are 0"));
        assert_eq!([words(&|v| 1e200 * v), words(&|v| 1e-310 * v)], ["", ""]);
        assert_eq!(kind(&[1.0, 1.0], &[0.5, 0.5]), None);
    }
}
