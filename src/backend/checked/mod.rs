//! Spot checks: the first results of each kind that a device computes, computed again by the host from the same numbers.
//!
//! The report of a solve rests on the residual that the device computed last. So the host computes the first [`TIMES`] products of each kind
//! again: by launch, precision, accumulation, kind of matrix and encoding of its entries. Residuals of starts and products of iterations are
//! different kinds. Two residuals are compared, because those of the first start may have numbers too simple to go wrong. The host compares about
//! a thousand rows bit for bit, among them the first, the last, the longest and the emptiest; it keeps their entries (`Sample`). It also compares
//! the partial sum of each chunk, the rows that are summed together, that holds such a row. A driver that compiles kernels wrongly, or a kernel
//! that was changed, is found before it is believed.
//!
//! A launch adds chunk sums up, and stores the norms of each iteration in the history of the solve. The first of these norms are compared as well.
//! A launch of many iterations shows nothing between. After each of the first [`TIMES`] such launches of CG, CGNR and scripts, the next
//! residual that is computed is compared.
//!
//! Cost of a comparison: some tens of small reads, and the vector that is multiplied, or the parts of it that the rows meet. Of a matrix whose rows the
//! host does not keep (stencils, transposed diagonals, dense ones, new values) all is copied and multiplied; if that is more than [`MOST`]
//! entries, the comparison waits for a smaller matrix. Once all comparisons are done, a launch costs one atomic load more.

mod cgnr;
#[cfg(feature = "imaging")]
mod rays;
mod script;
mod spots;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::linear::product::{Sampled, Spots, Stored};
use super::run::{Origin, Run};
use crate::error::{Error, Result};
use crate::memory::Memory;
use crate::number::{Accumulation, Element, Precision, Real, Sum};
use crate::sparse::{Arrangement, Entries, Kind};
use spots::Parts;

/// Entries, or steps of rays, that are done again: some tens of milliseconds.
const MOST: usize = 1 << 23;
/// Results of a kind that are compared.
const TIMES: usize = 2;
/// Launches of a kind that are looked at for norms: some kinds never write any.
const LAUNCHES: usize = 12;

/// Sums kept in pairs of `f32` below this may lose digits if there are no denormal numbers: the last of their 48 bits is
/// then below 1.2e-38.
const FAINT: f64 = 3.4e-24;

/// Kinds of launches. Residuals of starts are told from the products of iterations: they come twice in a solve.
#[derive(Clone, Copy)]
enum Launch {
    StepResidual,
    StepProduct,
    Scalars,
    Pass,
    Rotation,
    Cg,
    Cgnr,
}

const LAUNCH_KINDS: usize = 7;
const MATRIX_KINDS: usize = 16;
const ENTRY_KINDS: usize = Entries::NearSingle as usize + 1;

/// Number of comparisons of products so far, and of launches that were looked at for norms, by precision and accumulation.
#[derive(Debug, Default)]
struct Counts {
    products: [[[[AtomicUsize; ENTRY_KINDS]; MATRIX_KINDS]; LAUNCH_KINDS]; 3],
    norms: [[Norms; LAUNCH_KINDS]; 3],
    /// Products with rays, and those with their transposed.
    #[cfg(feature = "imaging")]
    rays: [[AtomicUsize; 2]; 3],
    /// Launches of many iterations, of CG, CGNR and scripts.
    resident: [[AtomicUsize; 3]; 3],
    /// True if such a launch made an answer whose residual was not compared yet.
    answer_unseen: AtomicBool,
}

/// Kinds of launches of many iterations.
#[derive(Clone, Copy)]
enum Resident {
    Cg,
    Cgnr,
    Script,
}

#[derive(Debug, Default)]
struct Norms {
    launches: AtomicUsize,
    found: AtomicUsize,
}

/// Place of a precision and an accumulation in [`Counts`].
fn numbers<T: Real>(run: Run<'_>) -> usize {
    match (T::PRECISION, run.accumulation) {
        (Precision::Double, _) => 0,
        (Precision::Single, Accumulation::Double) => 1,
        (Precision::Single, Accumulation::Pair) => 2,
    }
}

/// A back end whose first results are compared with the host.
#[derive(Debug)]
pub(crate) struct Checked<D> {
    pub(crate) device: D,
    counts: Counts,
}

/// The history that a launch should leave, and the counter of such comparisons.
struct Expected<'c> {
    history: Memory<Sum>,
    counter: &'c AtomicUsize,
}

impl<D: Origin> Checked<D> {
    pub(super) fn new(device: D) -> Self {
        Self { device, counts: Counts::default() }
    }

    /// Notes a launch of many iterations. The first [`TIMES`] of each kind ask for the next residual to be compared: that of their answer.
    fn note_resident<T: Real>(&self, kind: Resident, run: Run<'_>) {
        let launches = &self.counts.resident[numbers::<T>(run)][kind as usize];
        if launches.load(Ordering::Relaxed) < TIMES && launches.fetch_add(1, Ordering::Relaxed) < TIMES {
            self.counts.answer_unseen.store(true, Ordering::Relaxed);
        }
    }

    /// The counter of a product that has to be compared, already counted.
    fn product_to_compare<T: Real>(
        &self,
        launch: Launch,
        run: Run<'_>,
        a: &Stored<T>,
        columns: usize,
    ) -> Option<&AtomicUsize> {
        let Arrangement { kind, entries, .. } = a.arrangement;
        let counter = &self.counts.products[numbers::<T>(run)][launch as usize][kind as usize][entries as usize];
        let is_residual = matches!(launch, Launch::StepResidual);
        let unseen = is_residual && self.counts.answer_unseen.load(Ordering::Relaxed);
        if !unseen && counter.load(Ordering::Relaxed) >= TIMES {
            return None;
        }
        let entries = match kind {
            _ if a.sample().is_some() => 0,
            Kind::Stencil => a.rows * a.arrangement.block.max(32),
            _ => a.places.max(a.rows),
        };
        let small = entries.saturating_mul(columns) <= MOST;
        let asked = small && unseen && self.counts.answer_unseen.swap(false, Ordering::Relaxed);
        (asked || small && counter.fetch_add(1, Ordering::Relaxed) < TIMES).then_some(counter)
    }

    /// The history that a launch should leave, if it has to be compared: `fold` gives the history before the launch and the one the
    /// host makes.
    fn expect<T: Real>(
        &self,
        launch: Launch,
        run: Run<'_>,
        fold: impl FnOnce() -> Result<[Memory<Sum>; 2]>,
    ) -> Result<Option<Expected<'_>>> {
        let Norms { launches, found } = &self.counts.norms[numbers::<T>(run)][launch as usize];
        if found.load(Ordering::Relaxed) >= TIMES || launches.load(Ordering::Relaxed) >= LAUNCHES {
            return Ok(None);
        }
        launches.fetch_add(1, Ordering::Relaxed);
        let [before, history] = fold()?;
        if before.host()? == history.host()? {
            return Ok(None);
        }
        found.fetch_add(1, Ordering::Relaxed);
        Ok(Some(Expected { history, counter: found }))
    }

    /// Compares the history after a launch with the expected one.
    fn compare_norms<T: Real>(
        &self,
        run: Run<'_>,
        expected: Option<Expected<'_>>,
        found: &Memory<Sum>,
    ) -> Result<()> {
        let Some(Expected { history, counter }) = expected else { return Ok(()) };
        let wrong = self.differing(found, &history, self.faint::<T>(run), |sum| sum.value(run.accumulation))?;
        if wrong == 0 {
            return Ok(());
        }
        counter.store(0, Ordering::Relaxed);
        let precision = T::PRECISION;
        self.distrusted(format!(
            "{wrong} norms of a solve in {precision} are not what the host makes of the same sums"
        ))
    }

    /// Compares numbers and sums of a product with the expected ones.
    fn compare<T: Real>(
        &self,
        run: Run<'_>,
        kind: Kind,
        counter: &AtomicUsize,
        numbers: [&Memory<T>; 2],
        sums: [&Memory<Sum>; 2],
    ) -> Result<()> {
        let faint = self.faint::<T>(run);
        let wrong = self.differing(numbers[0], numbers[1], faint, |number| number.to_f64())?;
        let wrong_sums = self.differing(sums[0], sums[1], faint, |sum| sum.value(run.accumulation))?;
        self.judge::<T>(counter, kind, [wrong, numbers[0].len(), wrong_sums])
    }

    /// Fails if numbers, of so many, or sums of a product are wrong.
    fn judge<T: Real>(
        &self,
        counter: &AtomicUsize,
        kind: Kind,
        [wrong, compared, wrong_sums]: [usize; 3],
    ) -> Result<()> {
        if wrong == 0 && wrong_sums == 0 {
            return Ok(());
        }
        // It is compared again by the next solve.
        counter.store(0, Ordering::Relaxed);
        let precision = T::PRECISION;
        self.distrusted(format!(
            "{wrong} of {compared} numbers and {wrong_sums} sums of a product in {precision} ({kind:?}) are not what the host makes of the same data"
        ))
    }

    /// Compares spots of a product with what the device has made of them.
    fn compare_spots<T: Real>(
        &self,
        run: Run<'_>,
        kind: Kind,
        counter: &AtomicUsize,
        (sample, parts, spots): (&Sampled<'_, T>, &Parts, &Spots<T>),
        found: (&[T], &Memory<Sum>),
    ) -> Result<()> {
        let (faint, accumulation) = (self.faint::<T>(run), run.accumulation);
        let differs = |a: &T, b: &T| differ(a.to_f64(), b.to_f64(), faint);
        let sums_differ = |a: &Sum, b: &Sum| differ(a.value(accumulation), b.value(accumulation), faint);
        self.judge::<T>(counter, kind, parts.wrong(sample, spots, found, (differs, sums_differ))?)
    }

    /// Magnitude below which the device need not give the host's bits.
    fn faint<T: Real>(&self, run: Run<'_>) -> f64 {
        match run.accumulation {
            _ if self.device.info().denormals || T::PRECISION == Precision::Double => 0.0,
            Accumulation::Double => f64::from(f32::MIN_POSITIVE),
            Accumulation::Pair => FAINT,
        }
    }

    /// Number of elements of `found` that differ from `wanted`; those below `faint` in both may.
    fn differing<E: Element>(
        &self,
        found: &Memory<E>,
        wanted: &Memory<E>,
        faint: f64,
        value: impl Fn(&E) -> f64,
    ) -> Result<usize> {
        let found = found.on_host()?;
        let pairs = found.host()?.iter().zip(wanted.host()?);
        Ok(pairs.filter(|(a, b)| differ(value(a), value(b), faint)).count())
    }

    /// Holds it against the device.
    fn distrusted<R>(&self, what: String) -> Result<R> {
        self.device.distrust(&what);
        Err(Error::Untrustworthy { device: self.device.info().name.clone(), what })
    }
}

fn differ(a: f64, b: f64, faint: f64) -> bool {
    a.to_bits() != b.to_bits() && !(a.is_nan() && b.is_nan()) && !(a.abs() < faint && b.abs() < faint)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::backend::Host;
    use crate::backend::script::{Blend, PASS_VECTORS, Pass, ScriptOps, ScriptState, StepCall, StepLaunch};
    use crate::device::{Device, host_info};
    use crate::device_info::DeviceInfo;
    use crate::memory::Place;
    use crate::recurrence::{ONE, Program, Sums, ZERO};
    use crate::reduction::Chunks;
    use crate::sparse::{Format, Layout, Offsets, Packable, Reader, gallery};

    /// The host, except that its residuals have a wrong bit if `lies` is true.
    struct Liar {
        info: DeviceInfo,
        lies: bool,
        products: AtomicUsize,
        faults: Mutex<Vec<String>>,
    }

    impl Liar {
        fn new(lies: bool) -> Checked<Self> {
            let (products, faults) = (AtomicUsize::new(0), Mutex::default());
            Checked::new(Self { info: host_info(), lies, products, faults })
        }
    }

    impl Origin for Liar {
        fn info(&self) -> &DeviceInfo {
            &self.info
        }

        fn distrust(&self, fault: &str) {
            self.faults.lock().expect("not poisoned").push(fault.into());
        }
    }

    impl ScriptOps<f64> for Liar {
        fn step_scalars(&self, step: StepLaunch<'_>) -> Result<()> {
            ScriptOps::<f64>::step_scalars(&Host, step)
        }

        fn step_product(
            &self,
            step: StepLaunch<'_>,
            a: &Stored<f64>,
            blend: Blend,
            vectors: [&Memory<f64>; 3],
            y: &mut Memory<f64>,
        ) -> Result<()> {
            self.products.fetch_add(1, Ordering::Relaxed);
            Host.step_product(step, a, blend, vectors, y)?;
            if self.lies {
                let last = y.host_mut()?.last_mut().expect("a row");
                *last = f64::from_bits(last.to_bits() ^ 1);
            }
            Ok(())
        }

        fn step_vectors(
            &self,
            step: StepLaunch<'_>,
            n: usize,
            pass: &Pass,
            vectors: [&mut Memory<f64>; PASS_VECTORS],
        ) -> Result<()> {
            Host.step_vectors(step, n, pass, vectors)
        }
    }

    /// Asks for three residuals `w + A x` with their squares, and tells how many were called wrong.
    fn wrong_residuals(liar: &Checked<Liar>, side: usize, reader: Reader) -> usize {
        let device = Device::host();
        let layout = gallery::poisson_2d(side, 0.1)
            .and_then(|a| Layout::new(&a, Format::Csr, Offsets::Auto, Packable::NOTHING, reader, |_| Ok(())))
            .expect("a small matrix");
        let (n, place) = (layout.rows, Place::Host);
        let a = Stored::new(&place, layout).expect("room");
        let vector = |value| place.filled(n, value).expect("room");
        let (x, w, mut r) = (vector(0.3), vector(1.0), vector(0.0));
        let sums = Chunks::of(n).count;
        let programs = Program::default().words(&[ZERO, ONE], &[Sums { place: 0, count: sums as u32 }]);
        let mut state = ScriptState::new(&place, programs, 1, sums).expect("room");
        state.registers.host_mut().expect("the host")[usize::from(ONE.0)] = Sum(1f64.to_bits());
        let call = StepCall { block: 0, slot: 0, columns: 1, sums };
        let blend = Blend { shifted: true, dots: [true, false], ..Blend::PLAIN };
        let asked = (0..3).map(|_| {
            let step = StepLaunch { run: device.run::<f64>(), call, state: &mut state };
            liar.step_product(step, &a, blend, [&x, &w, &x], &mut r)
        });
        asked.filter(|found| matches!(found, Err(Error::Untrustworthy { .. }))).count()
    }

    #[test]
    fn a_device_that_lies_is_found_each_time_and_an_honest_one_is_asked_twice() {
        let liar = Liar::new(true);
        assert_eq!(wrong_residuals(&liar, 9, Reader::Host), 3);
        let faults = liar.device.faults.lock().expect("not poisoned");
        assert_eq!(faults.len(), 3);
        assert!(faults[0].contains("1 of 81 numbers and 0 sums") && faults[0].contains("Csr"), "{}", faults[0]);

        let honest = Liar::new(false);
        assert_eq!(wrong_residuals(&honest, 9, Reader::Host), 0);
        let counter = &honest.counts.products[0][Launch::StepResidual as usize][Kind::Csr as usize][0];
        assert_eq!([counter, &honest.device.products].map(|n| n.load(Ordering::Relaxed)), [TIMES, 3]);
    }

    /// A wrong bit in the last row of a large matrix is among the spots.
    #[test]
    fn spots_of_a_large_matrix_find_a_wrong_row() {
        let liar = Liar::new(true);
        assert_eq!(wrong_residuals(&liar, 1300, Reader::Gpu), 3);
        let faults = liar.device.faults.lock().expect("not poisoned");
        let (numbers, _) = faults[0].split_once(" numbers and ").expect("a count");
        let compared: usize = numbers.trim_start_matches("1 of ").parse().expect("a number");
        assert!((800..1_100).contains(&compared), "{}", faults[0]);
        let honest = Liar::new(false);
        for side in [1, 9, 40, 400] {
            assert_eq!(wrong_residuals(&honest, side, Reader::Gpu), 0, "{side}");
        }
    }

    #[test]
    fn the_answer_of_a_launch_of_many_iterations_is_looked_at() {
        let (device, honest) = (Device::host(), Liar::new(false));
        let (run, columns) = (device.run::<f64>(), 1);
        let a = Stored::<f64>::external(&Place::Host, 9, 9).expect("small");
        let compared = || honest.product_to_compare(Launch::StepResidual, run, &a, columns).is_some();
        assert_eq!([0; 4].map(|_| compared()), [true, true, false, false]);
        for asks in [true, true, false] {
            honest.note_resident::<f64>(Resident::Cgnr, run);
            assert_eq!([compared(), compared()], [asks, false]);
        }
        honest.note_resident::<f64>(Resident::Script, run);
        assert!(
            honest.product_to_compare(Launch::StepProduct, run, &a, columns).is_some(),
            "the first of its kind"
        );
        assert!(compared(), "no product of an iteration stands for the residual");
    }

    #[test]
    fn what_is_too_large_waits_for_a_smaller_matrix() {
        let liar = Liar::new(true);
        assert_eq!(wrong_residuals(&liar, 1300, Reader::Host), 0, "8 million entries and more are not done again");
        assert_eq!(wrong_residuals(&liar, 5, Reader::Host), 3);
    }

    #[test]
    fn what_is_too_faint_for_a_device_is_not_held_against_it() {
        for (a, b, faint, wrong) in [
            (1e-30, 1.5e-30, 0.0, true),
            (1e-30, 1.5e-30, FAINT, false),
            (1e-30, 1e-3, FAINT, true),
            (0.5, 0.5 + f64::EPSILON, FAINT, true),
            (f64::NAN, -f64::NAN, FAINT, false),
            (f64::NAN, 1e-30, FAINT, true),
            (1.0, 1.0, 0.0, false),
        ] {
            assert_eq!(differ(a, b, faint), wrong, "{a} {b} {faint}");
        }
    }
}
