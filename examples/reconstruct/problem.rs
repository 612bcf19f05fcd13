//! Systems and readings of the program `reconstruct`, from files or simulated.

use std::borrow::Cow;
use std::path::Path;
use std::time::Instant;

use common::{option, reading_bar};
use residuum::imaging::{
    BadPixel, Beam, Disc, Flip, Geometry, Grid, Integrals, Noise, Phantom, Scan, Scanner, System, read_reference,
};
use residuum::io::npy;
use residuum::operator::{LinearOperator, Subsets};
use residuum::{Csr, Device, Matrix, Real, Result, Storage, Transposed, io};
use serde_json::{Value, json};

use crate::blocks::Blocks;
use crate::geometry::InputKind;
use crate::options::Options;

/// Angles of a subset, about, if the options name no number of subsets.
const ANGLES_OF_SUBSET: usize = 10;

/// A system with its readings.
pub(crate) struct Problem<T: Real> {
    pub(crate) what: String,
    pub(crate) device: Device,
    pub(crate) system: System<T>,
    /// Number of pictures.
    pub(crate) pictures: usize,
    /// Readings of the first of them, or of all.
    pub(crate) readings: Vec<Vec<T>>,
    /// Tells if readings of a system are the rows of their file, not the columns.
    pub(crate) by_rows: bool,
    /// Slices that follow.
    rest: Option<Rest>,
    /// Pixels that may hold something, if some may not.
    pub(crate) support: Option<Vec<bool>>,
    /// Picture to compare with.
    pub(crate) reference: Option<Vec<f64>>,
    /// Place of the rotation axis on the detector as it was read, and if it was searched for; none without a scan.
    pub(crate) axis: Option<(f64, bool)>,
    /// The scanner as it was read, about that axis; none without a scan.
    pub(crate) geometry: Option<Geometry>,
    /// Angles that were taken; none without a scan.
    pub(crate) angles: Option<Course>,
    /// Readings that were interpolated.
    pub(crate) repaired: usize,
    /// Pixels of counts that do not count, slice by slice.
    pub(crate) bad_pixels: Vec<BadPixel>,
    /// Remarks on the files that a user should know, a line each.
    pub(crate) remarks: Vec<String>,
    pub(crate) read_seconds: f64,
    pub(crate) build_seconds: f64,
}

/// Slices that are still to be read, and the place of the axis if it was named or found.
struct Rest {
    blocks: Blocks,
    place: Option<f64>,
}

impl<T: Real> Problem<T> {
    /// Tells if not all slices are read yet.
    pub(crate) fn goes_on(&self) -> bool {
        self.rest.as_ref().is_some_and(|rest| rest.blocks.left() > 0)
    }

    /// Tells if slices were read block by block.
    pub(crate) fn was_read_in_blocks(&self) -> bool {
        self.rest.is_some()
    }

    /// Readings of the next block of slices; none if there are no more.
    pub(crate) fn next_readings(&mut self, options: &Options) -> Result<Option<Vec<Vec<T>>>> {
        let goes_on = self.goes_on();
        let Some(Rest { blocks, place }) = self.rest.as_mut().filter(|_| goes_on) else { return Ok(None) };
        let clock = Instant::now();
        let integrals = blocks.next()?;
        self.repaired += integrals.repaired;
        self.bad_pixels.extend(integrals.bad_pixels);
        let scans = about(flipped(options, integrals.scans), *place)?;
        let readings = |scan: Scan| Ok(prepared(options, scan)?.readings());
        let readings = scans.into_iter().map(readings).collect::<Result<_>>()?;
        self.read_seconds += clock.elapsed().as_secs_f64();
        Ok(Some(readings))
    }
}

/// Angles of a scan, as they are said.
pub(crate) struct Course {
    count: usize,
    first: f64,
    last: f64,
    /// Least and greatest step from an angle to the next one.
    steps: [f64; 2],
    /// Degrees that the angles cover, and those that show every edge.
    covered: [f64; 2],
    /// Tells if nobody named them.
    assumed: bool,
}

impl Course {
    fn of(scanner: &Scanner, assumed: bool) -> Self {
        let angles = &scanner.angles;
        let steps = angles.windows(2).map(|pair| pair[1] - pair[0]);
        let steps = steps.fold([f64::INFINITY, f64::NEG_INFINITY], |[a, b], step| [a.min(step), b.max(step)]);
        let (first, last) = (angles[0], angles[angles.len() - 1]);
        Self { count: angles.len(), first, last, steps, covered: scanner.coverage(), assumed }
    }

    pub(crate) fn json(&self) -> Value {
        let Self { count, first, last, steps, covered, assumed } = self;
        let steps = (*count > 1).then_some(steps);
        json!({
            "count": count, "first": first, "last": last, "steps": steps,
            "covered": covered[0], "needed": covered[1], "assumed": assumed,
        })
    }
}

/// A number of degrees with up to four decimals.
fn degrees(value: f64) -> f64 {
    // Not -0.
    (1e4 * value).round() / 1e4 + 0.0
}

impl std::fmt::Display for Course {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [first, last, least, most] = [self.first, self.last, self.steps[0], self.steps[1]].map(degrees);
        match self.count {
            1 => write!(f, "1, at {first} degrees")?,
            _ if most - least <= 1e-3 * most.abs() => {
                write!(f, "{}, {first} to {last} degrees by steps of {most}", self.count)?;
            }
            _ => write!(f, "{}, {first} to {last} degrees by steps of {least} to {most}", self.count)?,
        }
        let [covered, needed] = self.covered;
        if covered < needed {
            write!(f, "; they cover {covered:.0} of the {needed:.0} degrees that show every edge")?;
        }
        if self.assumed {
            f.write_str("; assumed, half a turn: --arc or --theta names others")?;
        }
        Ok(())
    }
}

/// Question about a sinogram that seems to lie the other way round.
pub(crate) const TURNED: &str =
    "all columns sum to the same, and rows do not: is the array pixels x angles? Then transpose it";

/// The built-in scan: a plate with holes and bars, seen by a fan-beam scanner with noise and gain errors.
fn simulated() -> Result<Scan> {
    let scanner = Scanner {
        beam: Beam::Fan { source_origin: 5.0, source_detector: 8.0 },
        pixels: 256,
        pitch: 0.012,
        offset: 0.0,
        angles: (0..180).map(|k| 2.0 * f64::from(k)).collect(),
    };
    let field = 2.0;
    let noise = Noise { photons: 2e5, gain: 0.003, seed: 2009 };
    Ok(Phantom::plate().scan(&scanner, field, noise)?.with_field(field))
}

/// Scans as they were read.
struct Read {
    scans: Vec<Scan>,
    /// Place of the rotation axis on the detector, and if it was searched for.
    axis: (f64, bool),
    /// Tells if nobody named the angles.
    assumed: bool,
    /// Readings that were interpolated.
    repaired: usize,
    bad_pixels: Vec<BadPixel>,
    remarks: Vec<String>,
    /// Slices that follow.
    rest: Option<Rest>,
}

/// Reads the scans, or the first block of them. In a solve a reading takes `size` bytes, and a picture `of_picture`.
fn read(options: &Options, size: usize, of_picture: u64) -> Result<Read> {
    let Some(path) = &options.input else { return all(options, vec![simulated()?], of_picture) };
    let kind = options.kind(path)?;
    if kind != InputKind::Counts {
        let read = sinograms(options, path, of_picture)?;
        return Ok(Read { assumed: kind == InputKind::Sinograms && !options.names_angles(), ..read });
    }
    let search = options.detector_offset.is_none() && options.geometry_file().is_none();
    let mut blocks = Blocks::new(options, path, size)?;
    let assumed = blocks.assumes_angles();
    check_pictures(blocks.left(), of_picture)?;
    let remarks = blocks.remarks();
    if !blocks.are_many() {
        let Integrals { scans, repaired, bad_pixels, .. } = blocks.next()?;
        let scans = flipped(options, scans);
        // The slice in the middle most likely shows the object.
        let place = axis(options, search, || Ok(Cow::Borrowed(&scans[scans.len() / 2])))?;
        return Ok(Read { assumed, bad_pixels, remarks, ..read_about(scans, place, repaired, None)? });
    }
    if options.support.as_deref() == Some("disc") {
        let reason =
            "the disc is one of all slices, which are more than are read at once: see --at-once, or name a file";
        return Err(option("support", reason));
    }
    let place = axis(options, search, || Ok(Cow::Owned(flipped(options, blocks.middle()?.scans).remove(0))))?;
    let Integrals { scans, repaired, bad_pixels, .. } = blocks.next()?;
    let rest = Rest { blocks, place: place.map(|(place, _)| place) };
    Ok(Read { assumed, bad_pixels, remarks, ..read_about(flipped(options, scans), place, repaired, Some(rest))? })
}

/// Reads line integrals.
fn sinograms(options: &Options, path: &Path, of_picture: u64) -> Result<Read> {
    let geometry = options.geometry()?;
    if options.kind(path)? == InputKind::Scan {
        return all(options, Scan::read(path, &geometry)?, of_picture);
    }
    let scans = Scan::read_npy_in(path, &geometry, options.order)?;
    if let Some(median) = scans.iter().find_map(Scan::looks_like_counts).filter(|_| !options.line_integrals) {
        let reason = format!(
            "the readings (median {median:.0}) look like counts: name --flat, or say --line-integrals if they are line integrals"
        );
        return Err(option("input", reason));
    }
    let mut remarks = Vec::new();
    if scans.iter().any(Scan::looks_transposed) {
        remarks.push(TURNED.into());
    }
    let bad = options.bad_pixels.clone().unwrap_or_default();
    let mended = scans.into_iter().enumerate().map(|(k, scan)| scan.without_pixels(&bad, k));
    let mended = mended.collect::<Result<Vec<_>>>()?;
    let repaired = mended.iter().map(|(_, repaired)| repaired).sum();
    let scans = mended.into_iter().map(|(scan, _)| scan).collect();
    Ok(Read { repaired, remarks, ..all(options, scans, of_picture)? })
}

/// Fails if so many pictures do not fit this machine.
fn check_pictures(count: usize, of_picture: u64) -> Result<()> {
    let all = of_picture.saturating_mul(count as u64);
    Device::host().check_memory(0, &[("pictures of all slices", all)])
}

/// Scans that were read at once.
fn all(options: &Options, scans: Vec<Scan>, of_picture: u64) -> Result<Read> {
    check_pictures(scans.len(), of_picture)?;
    let scans = flipped(options, scans);
    let place = axis(options, false, || Ok(Cow::Borrowed(&scans[scans.len() / 2])))?;
    read_about(scans, place, 0, None)
}

fn read_about(scans: Vec<Scan>, place: Option<(f64, bool)>, repaired: usize, rest: Option<Rest>) -> Result<Read> {
    let axis = place.unwrap_or_else(|| (scans[0].scanner.axis(), false));
    let scans = about(scans, place.map(|(place, _)| place))?;
    Ok(Read { scans, axis, assumed: false, repaired, bad_pixels: Vec::new(), remarks: Vec::new(), rest })
}

/// Scans with what the options turn round.
fn flipped(options: &Options, scans: Vec<Scan>) -> Vec<Scan> {
    match options.flip {
        Some(flip) => scans.into_iter().map(|scan| scan.flipped(flip)).collect(),
        None => scans,
    }
}

/// A place on the detector of `pixels` pixels in the file, for one of the scan as it is flipped, or the other way round.
fn flipped_place(options: &Options, pixels: usize, place: f64) -> f64 {
    let reversed = options.flip.is_some_and(Flip::reverses_pixels);
    if reversed { pixels as f64 - 1.0 - place } else { place }
}

/// Scans about an axis at this place; left as they are, to the last bit, if none is named.
fn about(scans: Vec<Scan>, place: Option<f64>) -> Result<Vec<Scan>> {
    match place {
        Some(place) => scans.into_iter().map(|scan| scan.with_axis(place)).collect(),
        None => Ok(scans),
    }
}

/// The place of the axis where the options say, or where it shows in the scan that `shown` reads, and if it was searched for; `search` tells if it
/// is without a word of the options, where the angles show it.
fn axis<'s>(
    options: &Options,
    search: bool,
    shown: impl FnOnce() -> Result<Cow<'s, Scan>>,
) -> Result<Option<(f64, bool)>> {
    match (options.axis()?, &options.axis) {
        (Some(place), _) if options.flip.is_some() => {
            let pixels = shown()?.scanner.pixels;
            Ok(Some((flipped_place(options, pixels, place), false)))
        }
        (Some(place), _) => Ok(Some((place, false))),
        (None, None) if !search => Ok(None),
        (None, named) => {
            let shown = shown()?;
            let is_shown = named.is_some() || shown.shows_axis();
            Ok(if is_shown { Some((shown.axis()?, true)) } else { None })
        }
    }
}

/// A scan with all that the options do to it.
fn prepared(options: &Options, scan: Scan) -> Result<Scan> {
    let scan = match options.kept()? {
        Some(degrees) => scan.with_arc(degrees)?,
        None => scan,
    };
    let scan = match options.angles {
        Some(count) => scan.with_angles(count)?,
        None => scan,
    };
    let scan = if options.background { scan.without_background()? } else { scan };
    let scan = match &options.polynomial[..] {
        [] => scan,
        coefficients => scan.with_polynomial(coefficients)?,
    };
    let scan = match options.rings {
        Some(width) => scan.without_rings(width)?,
        None => scan,
    };
    let scan = match options.crop()? {
        Some(pixels) => scan.cropped(pixels.start, pixels.end)?,
        None => scan,
    };
    let scan = scan.binned(options.bin.unwrap_or(1))?;
    let field = options.field.unwrap_or(scan.field);
    Ok(scan.with_field(field))
}

/// The system of a scan, on the device that was named, or on the best one for its size.
pub(crate) fn from_scan<T: Real>(options: &Options, named: Option<Device>) -> Result<Problem<T>> {
    let clock = Instant::now();
    let side = options.size.unwrap_or(if options.input.is_some() { 256 } else { 128 });
    Grid { side, pixel: 1.0 }.validate()?;
    // Numbers of the picture and of what it is compared with.
    Device::host().check_memory(0, &[("pictures on the host", 32 * (side as u64).pow(2))])?;
    let what = match &options.input {
        None => "simulated scan (no --input): fan beam, noise, gain errors".to_string(),
        Some(path) => path.display().to_string(),
    };
    // Pictures in the precision of the solve, and once more as they are written.
    let of_picture = 2 * (T::PRECISION.bytes() * side * side) as u64;
    let Read { scans, axis, assumed, repaired, bad_pixels, remarks, rest } =
        read(options, T::PRECISION.bytes(), of_picture)?;
    if assumed && !scans[0].scanner.beam.is_parallel() {
        let reason = "the angles of this fan are not given: --arc 360 for a full turn, --theta FILE for others";
        return Err(option("arc", reason));
    }
    // Saved for the readings of the file: the same flip makes the same scan of them again.
    let scanner = scans[0].scanner.clone();
    let axis = (flipped_place(options, scanner.pixels, axis.0), axis.1);
    // Views by vectors see it at places of their own.
    let scans_have_axis = !matches!(scanner.beam, Beam::Vectors(_));
    let geometry = Geometry::of(&options.flip.map_or(scanner.clone(), |flip| scanner.flipped(flip)));
    let mut scans = scans.into_iter().map(|scan| prepared(options, scan)).collect::<Result<Vec<Scan>>>()?;
    let wider = options.field.is_none() && scans.iter().any(Scan::is_seen_once);
    if wider {
        let field = scans[0].seen_field();
        scans = scans.into_iter().map(|scan| scan.with_field(field)).collect();
    }
    let pictures = scans.len() + rest.as_ref().map_or(0, |rest| rest.blocks.left());
    let (scanner, grid) = (&scans[0].scanner, scans[0].grid(side));
    if let Some(region) = &options.roi {
        region.within([side; 2], grid.pixel, [0.0; 2])?;
    }
    let reference = match (&options.reference, &options.input) {
        (Some(path), _) => Some(read_reference(path, grid)?),
        (None, None) => Some(Phantom::plate().image(grid)),
        (None, Some(_)) => None,
    };
    let support = options.support.as_ref().map(|name| support(name, &scans, grid)).transpose()?;
    let read_seconds = clock.elapsed().as_secs_f64();
    // A ray meets about two pixels in each line of the picture.
    let entries = scanner.rays().saturating_mul(2 * side);
    let device = named.map_or_else(|| options.on.open_for::<T>(entries), Ok)?;
    let clock = Instant::now();
    let system = match options.takes_subsets() {
        true => {
            let count = options.subsets.unwrap_or_else(|| scanner.angles.len().div_ceil(ANGLES_OF_SUBSET));
            System::of_subsets(&device, scanner, grid, options.format, count)?
        }
        false => System::new(&device, scanner, grid, options.format)?,
    };
    device.synchronize()?;
    let field = if wider {
        format!(", {:.4} wide: what the long side of the detector sees", scans[0].field)
    } else {
        String::new()
    };
    Ok(Problem {
        what: format!(
            "{what}: {} angles x {} pixels to {side} x {side}{field}",
            scanner.angles.len(),
            scanner.pixels
        ),
        device,
        system,
        pictures,
        readings: scans.iter().map(Scan::readings).collect(),
        by_rows: false,
        rest,
        support,
        reference,
        axis: scans_have_axis.then_some(axis),
        angles: Some(Course::of(scanner, assumed)),
        geometry: Some(geometry),
        repaired,
        bad_pixels,
        remarks,
        read_seconds,
        build_seconds: clock.elapsed().as_secs_f64(),
    })
}

/// The pixels of the discs found in all scans, or those that are not 0 in a file.
fn support(name: &str, scans: &[Scan], grid: Grid) -> Result<Vec<bool>> {
    if name == "disc" {
        let mut all = vec![false; grid.pixels()];
        for scan in scans {
            let pixels = Disc::of_shadow(scan)?.pixels(grid);
            all.iter_mut().zip(pixels).for_each(|(all, pixel)| *all |= pixel);
        }
        return Ok(all);
    }
    let array = npy::read(Path::new(name))?;
    if array.shape != [grid.side, grid.side] {
        let reason =
            format!("{:?} numbers for a picture of {} x {}: see --size", array.shape, grid.side, grid.side);
        return Err(option("support", reason));
    }
    if let Some(at) = array.data.iter().position(|v| v.is_nan()) {
        let reason =
            format!("{name} holds NaN at pixel {at}: write 0 for pixels that hold nothing, and 1 for the others");
        return Err(option("support", reason));
    }
    if array.data.iter().all(|v| *v == 0.0) {
        return Err(option("support", format!("{name} is 0 everywhere: no pixel could hold anything")));
    }
    Ok(array.data.iter().map(|v| *v != 0.0).collect())
}

/// The system of a matrix, likewise.
pub(crate) fn from_matrix<T: Real>(options: &Options, named: Option<Device>, path: &Path) -> Result<Problem<T>> {
    let clock = Instant::now();
    let bar = reading_bar(options.json);
    let matrix: Csr<T> = io::read_matrix(path, &mut |done, of| {
        bar.set_length(of);
        bar.set_position(done);
    })?;
    bar.finish_and_clear();
    matrix.check_host_memory()?;
    let rhs = options.rhs.as_ref().ok_or_else(|| option("rhs", "--matrix needs --rhs"))?;
    if matrix.rows() == 0 || matrix.cols() == 0 {
        let reason = format!("a matrix of {} x {}: there is nothing to solve", matrix.rows(), matrix.cols());
        return Err(option("matrix", reason));
    }
    let io::FileColumns { vectors: readings, by_rows, .. } = io::read_columns::<T>(rhs, matrix.rows())?;
    if let Some(width) = options.width.filter(|w| *w == 0 || !matrix.cols().is_multiple_of(*w)) {
        return Err(option("width", format!("{width} does not divide {} unknowns", matrix.cols())));
    }
    let read_seconds = clock.elapsed().as_secs_f64();
    let clock = Instant::now();
    let device = named.map_or_else(|| options.on.open_for::<T>(matrix.nnz()), Ok)?;
    let shape = options.width.map(|width| [matrix.cols() / width, width]);
    let system = if options.takes_subsets() {
        let storage = Storage::default().with_format(options.format).with_transposed(Transposed::Copy);
        let subsets = Subsets::of_matrix(&device, &matrix, storage, options.subsets.unwrap_or(1), 1)?;
        System::of_operator(subsets.shared(), shape)?
    } else {
        System::of_operator(&Matrix::with_transpose(&device, &matrix, options.format)?, shape)?
    };
    device.synchronize()?;
    Ok(Problem {
        what: format!("{} with {}", path.display(), rhs.display()),
        device,
        system,
        pictures: readings.len(),
        readings,
        by_rows,
        rest: None,
        support: None,
        reference: None,
        axis: None,
        angles: None,
        geometry: None,
        repaired: 0,
        bad_pixels: Vec::new(),
        remarks: Vec::new(),
        read_seconds,
        build_seconds: clock.elapsed().as_secs_f64(),
    })
}
