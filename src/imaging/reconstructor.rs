//! From readings to images: weights by the scan, upload, solve, bounds.

use std::ops::ControlFlow;
use std::panic::resume_unwind;

use super::fbp::Fbp;
use super::image::Image;
use super::projected::Check;
use super::reconstruction::Reconstruction;
use super::refusals::out_of_reach;
use super::scan::Scan;
use super::system::System;
use crate::backend::linear::product::MOST_COLUMNS;
use crate::columns::Columns;
use crate::error::{Error, Result, same_length};
use crate::number::{Real, first_not_finite, per_number, violated};
use crate::operator::LinearOperator;
use crate::solver::{
    ChosenWeight, Method, Observer, Progress, Regularization, Report, Setup, SharedPenalty, Solver, Stopping, Times,
};
use crate::threads;

/// Numbers that one thread takes at a time.
const PART: usize = 1 << 14;
/// Most iterations that choose a weight.
const SUBSPACE: usize = 100;

/// Reconstructs images of one system, frame after frame, by regularised least squares. Set up once; a second frame allocates nothing on
/// the device and builds no program.
///
/// The weights of regularisers are multiplied by the mean diagonal of `A'A`, and for total variation also by the mean
/// brightness `|b| / |A 1|`. Every iterate keeps bounds, but with [`Method::Cgnr`] they act as a penalty while iterating; the answer is
/// projected onto them at the end, and its residual is computed after that. A rule ([`Stopping::rule`]) judges the iterates as they are before that.
///
/// ```
/// use residuum::imaging::{Beam, Noise, Phantom, Scanner, Reconstruction, Reconstructor, Regularizer, System};
/// use residuum::{Device, Format};
///
/// let angles = (0..30).map(|k| 6.0 * f64::from(k)).collect();
/// let scanner = Scanner { beam: Beam::Parallel, pixels: 48, pitch: 2.0 / 48.0, offset: 0.0, angles };
/// let scan = Phantom::plate().scan(&scanner, 2.0, Noise { photons: 1e5, gain: 0.0, seed: 1 })?;
/// let system = System::<f32>::new(&Device::best()?, &scanner, scan.grid(32), Format::Auto)?;
/// let how = Reconstruction::of_scans::<f32>().with_regularizers(vec!["tv=0.01".parse::<Regularizer>()?]).with_lower(0.0);
/// let mut reconstructor = Reconstructor::new(&system, how, 1)?;
/// let image = reconstructor.reconstruct(&[&scan])?.remove(0);
/// assert!(image.values.iter().all(|value| *value >= 0.0));
/// println!("{}", image.report);
/// # Ok::<(), residuum::Error>(())
/// ```
pub struct Reconstructor<T: Real> {
    system: System<T>,
    how: Reconstruction,
    solver: Solver<T>,
    /// Tells if a penalty of the user's own is in the place of regularizations.
    penalised: bool,
    /// Chooses the weight of `|x|²`.
    weighing: Option<Solver<T>>,
    /// Makes the pictures that the method starts from.
    start: Option<Fbp<T>>,
    images: usize,
    /// Images that are solved for at once.
    batch: usize,
    b: Columns<T>,
    x: Columns<T>,
    /// Vectors for the residual of a projected answer.
    check: Option<Check<T>>,
}

impl<T: Real> std::fmt::Debug for Reconstructor<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reconstructor")
            .field("system", &self.system)
            .field("how", &self.how)
            .field("images", &self.images)
            .finish_non_exhaustive()
    }
}

per_number! {
    fn set_up<T>(
        system: &System<T>,
        how: Reconstruction,
        images: usize,
        penalty: Option<SharedPenalty<T>>,
    ) -> Result<Reconstructor<T>> = Reconstructor::set_up_here;
    fn reconstruct<T>(
        this: &mut Reconstructor<T>,
        readings: &[&[T]],
        observer: &mut Observer<'_>,
    ) -> Result<Vec<Image<T>>> = Reconstructor::reconstruct_here;
}

impl<T: Real> Reconstructor<T> {
    /// Allocates what it takes to reconstruct `images` images, in batches of up to 4 that share each read of the matrix, or one by one
    /// for an operator that takes one vector. An image has the same bits in any batch, if the solve ends by its iterations or by a limit: with PDHG one
    /// that ends by rounding may take a step of dual variables more while others of its batch go on.
    ///
    /// # Errors
    /// As [`Solver::with`]; [`Error::Option`] for weights of a system whose scale is out of range.
    pub fn new(system: &System<T>, how: Reconstruction, images: usize) -> Result<Self> {
        set_up(system, how, images, None)
    }

    /// [`Reconstructor::new`] with a penalty of the user's own ([`Penalty`](crate::Penalty)) in the place of regularisers, bounds and support, by
    /// [`Method::Cgnr`]. `penalty` makes it for the number of images that a batch has. Its weight is what it says: one of
    /// [`System::mean_diagonal`] weighs an image as much as its readings do.
    ///
    /// # Errors
    /// As [`Reconstructor::new`]; [`Error::Conflict`] for what it takes the place of; those of `penalty`.
    pub fn with_penalty(
        system: &System<T>,
        how: Reconstruction,
        images: usize,
        penalty: impl FnOnce(usize) -> Result<SharedPenalty<T>>,
    ) -> Result<Self> {
        how.check()?;
        how.check_alone()?;
        // No images are an error of the solver.
        let penalty = penalty(batch_of(system, images.max(1)))?;
        set_up(system, how, images, Some(penalty))
    }

    fn set_up_here(
        system: &System<T>,
        how: Reconstruction,
        images: usize,
        penalty: Option<SharedPenalty<T>>,
    ) -> Result<Self> {
        how.check()?;
        let operator = system.operator();
        let (device, rows, cols) = (operator.device(), operator.rows(), operator.cols());
        let batch = batch_of(system, images);
        let mut setup = Setup::new(how.method, how.stopping.clone()).with_columns(batch);
        let penalised = penalty.is_some();
        if !penalised {
            // The scale of the system depends on the weights, but not on the brightness.
            setup = setup.with_regularizations(&[how.regularization(width(system), scale(system, &how)?, 1.0)]);
        }
        setup.penalty = penalty;
        let mut solver = Solver::with(operator.clone(), setup)?;
        if let Some([lower, upper]) = how.bounds() {
            solver.set_bounds(&lower, &upper)?;
        }
        let weighing = match how.weight {
            Some(weight) => {
                let stopping = Stopping { rtol: 0.0, max_iterations: SUBSPACE, rule: None, ..how.stopping.clone() };
                let method = Method::HybridLsqr { weight, subspace: SUBSPACE };
                Some(Solver::with(operator.clone(), Setup::new(method, stopping).with_columns(batch))?)
            }
            None => None,
        };
        let start = match (how.start, system.scan()) {
            (None, _) => None,
            (Some(filter), Some((scanner, grid))) => Some(Fbp::new(device, scanner, grid, filter)?),
            (Some(_), None) => {
                let reason = "filtered back-projection needs a scanner, which the system has none of".into();
                return Err(Error::Conflict { name: "start", reason });
            }
        };
        let b = Columns::zeros(device, rows, batch)?;
        let x = Columns::zeros(device, cols, batch)?;
        let check = if how.projected() { Some(Check::new(device, [rows, cols])?) } else { None };
        Ok(Self { system: system.clone(), how, solver, penalised, weighing, start, images, batch, b, x, check })
    }

    /// Images that are solved for at once. Those of a batch share the seconds of their reports.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// The system it was set up for.
    pub fn system(&self) -> &System<T> {
        &self.system
    }

    /// Reconstructs one image from each scan.
    ///
    /// # Errors
    /// [`Error::Conflict`] for a scan by another scanner than the system's; as [`Reconstructor::reconstruct_readings`].
    pub fn reconstruct(&mut self, scans: &[&Scan]) -> Result<Vec<Image<T>>> {
        self.reconstruct_observed(scans, &mut |_| ControlFlow::Continue(()))
    }

    /// [`Reconstructor::reconstruct`], with an observer that sees the progress over all batches, and may end the batch at hand.
    ///
    /// # Errors
    /// As [`Reconstructor::reconstruct`].
    pub fn reconstruct_observed(&mut self, scans: &[&Scan], observer: &mut Observer<'_>) -> Result<Vec<Image<T>>> {
        if scans.iter().any(|scan| self.system.scanner() != Some(&scan.scanner)) {
            let reason = "it was taken by another scanner than the system's".into();
            return Err(Error::Conflict { name: "scan", reason });
        }
        let readings: Vec<Vec<T>> = scans.iter().map(|scan| scan.readings()).collect();
        let readings: Vec<&[T]> = readings.iter().map(|readings| &readings[..]).collect();
        self.reconstruct_readings(&readings, observer)
    }

    /// Reconstructs one image from each vector of readings, whatever they come from. Fewer of them than it was set up for may come, as at the
    /// end of a stack that goes through block by block.
    ///
    /// # Errors
    /// [`Error::Shape`] for readings that do not match the system, for none of them, or for more than it was set up for;
    /// [`Error::NotFinite`]; [`Error::DeviceMismatch`], [`Error::Api`].
    pub fn reconstruct_readings(
        &mut self,
        readings: &[&[T]],
        observer: &mut Observer<'_>,
    ) -> Result<Vec<Image<T>>> {
        reconstruct(self, readings, observer)
    }

    fn reconstruct_here(&mut self, readings: &[&[T]], observer: &mut Observer<'_>) -> Result<Vec<Image<T>>> {
        if !(1..=self.images).contains(&readings.len()) {
            same_length("vectors of readings", self.images, readings.len())?;
        }
        for readings in readings {
            same_length("readings against rows of the matrix", self.system.operator().rows(), readings.len())?;
            let not_finite = first_not_finite(readings);
            if let Some(index) = not_finite {
                return Err(Error::NotFinite { what: "the readings".into(), index });
            }
        }
        let batches = readings.len().div_ceil(self.batch.max(1));
        let each = self.how.stopping.max_iterations;
        let mut images = Vec::with_capacity(readings.len());
        for (k, readings) in readings.chunks(self.batch.max(1)).enumerate() {
            let mut observe = |progress: &Progress| {
                let (iteration, max_iterations) = (k * each + progress.iteration, batches * each);
                observer(&Progress { iteration, max_iterations, ..*progress })
            };
            images.extend(self.reconstruct_batch(readings, &mut observe)?);
        }
        Ok(images)
    }

    /// Reconstructs the images of one batch, or of fewer.
    fn reconstruct_batch(&mut self, readings: &[&[T]], observer: &mut Observer<'_>) -> Result<Vec<Image<T>>> {
        let Self { system, how, solver, penalised, weighing, start, batch, b, x, check, .. } = self;
        // Places that are left over repeat the last image.
        let last = readings.last().copied().unwrap_or_default();
        let left_over = batch.saturating_sub(readings.len());
        let filled: Vec<&[T]> = readings.iter().copied().chain(std::iter::repeat_n(last, left_over)).collect();
        let (width, scale) = (width(system), scale(system, how)?);
        let regularization = |b: &&[T]| how.regularization(width, scale, system.brightness(b));
        // The sums of the brightness are done while the readings are on their way.
        let corrected = if *penalised { &[][..] } else { &filled };
        let (regularizations, written) =
            threads::join(|| corrected.iter().map(regularization).collect(), || b.write(&filled));
        let mut regularizations: Vec<Regularization> = regularizations;
        written?;
        match start {
            Some(fbp) => {
                let pictures = filled.iter().map(|b| fbp.reconstruct(b)).collect::<Result<Vec<_>>>()?;
                x.write(&pictures)?;
            }
            None => x.fill(T::default())?,
        }
        let mut weights: Vec<(Option<ChosenWeight>, Times)> = Vec::new();
        if let Some(weighing) = weighing {
            let mut observe = |progress: &Progress| observer(&Progress { iteration: 0, ..*progress });
            let reports = weighing.solve_many_observed(b, x, &mut observe)?;
            weights.extend(reports.into_iter().map(|report| (report.weight, report.times)));
        }
        for (regularization, (weight, _)) in regularizations.iter_mut().zip(&weights) {
            regularization.tikhonov = weight.as_ref().map_or(0.0, |weight| weight.damp * weight.damp);
        }
        if !*penalised {
            let outcome = solver.set_regularizations(&regularizations);
            // Weights that a rule has chosen are none of the user's.
            let chosen = regularizations.iter().map(|c| c.tikhonov).fold(0.0, f64::max);
            outcome.map_err(|error| match (error, how.weight) {
                (Error::Option { .. } | Error::Conflict { .. }, Some(rule)) => out_of_reach(rule, chosen),
                (error, _) => error,
            })?;
        }
        // Doubts are summed up while the device iterates: by a thread that needs no other of a pool, since the caller may be one that waits.
        let (reports, doubts) = std::thread::scope(|scope| {
            let doubt =
                || readings.iter().map(|b| system.doubts(b, how.stopping.max_iterations > 0)).collect::<Vec<_>>();
            let doubts = std::thread::Builder::new().spawn_scoped(scope, doubt);
            let reports = solver.solve_many_observed(b, x, observer);
            match doubts {
                Ok(doubts) => (reports, doubts.join().unwrap_or_else(|panic| resume_unwind(panic))),
                // No thread is left.
                Err(_) => (reports, doubt()),
            }
        });
        let mut reports = reports?;
        for (report, (weight, times)) in reports.iter_mut().zip(weights) {
            report.weight = weight;
            report.times.compile += times.compile;
            report.times.solve += times.solve;
            report.times.verify += times.verify;
        }
        let mut columns = x.to_vecs()?;
        if let Some(check) = check {
            let [lower, upper] = [how.lower, how.upper].map(T::from_f64);
            for ((report, image), readings) in reports.iter_mut().zip(&mut columns).zip(readings) {
                threads::each(&mut image[..], PART, |_, pixel| {
                    *pixel = violated(*pixel, lower, upper).unwrap_or(*pixel);
                });
                check.projected(&**system.operator(), image, readings, &how.stopping, report)?;
            }
        }
        let [rows, cols] = system.shape().unwrap_or([system.operator().cols(), 1]);
        let images = columns.into_iter().zip(reports).zip(doubts).zip(readings);
        let image = |(((values, report), doubts), readings): (((_, Report), _), &&[T])| {
            let doubts = system.with_misfit(doubts, readings, &report);
            Image { rows, cols, pixel: system.pixel(), centre: [0.0; 2], values, report, doubts }
        };
        Ok(images.map(image).collect())
    }
}

/// Images that are solved for at once: batches as even as can be, since places that are left over in the last one cost as much.
fn batch_of<T: Real>(system: &System<T>, images: usize) -> usize {
    let most = if system.operator().takes_columns() { MOST_COLUMNS } else { 1 };
    images.div_ceil(images.div_ceil(most).max(1))
}

/// Pixels of an image row, 0 if the unknowns are no image.
fn width<T: Real>(system: &System<T>) -> usize {
    system.shape().map_or(0, |[_, cols]| cols)
}

/// The factor of all weights.
///
/// # Errors
/// [`Error::Option`] if it is out of range, and there are weights.
fn scale<T: Real>(system: &System<T>, how: &Reconstruction) -> Result<f64> {
    let scale = system.mean_diagonal();
    if how.regularizers.is_empty() || (scale > 0.0 && scale.is_finite()) {
        return Ok(scale);
    }
    let reason = format!("weights are multiplied by |A|² / n = {scale:e}, which is out of range: scale the system");
    Err(Error::Option { name: "regularizer", reason })
}
