//! The first residuals of each kind that a device computes, computed again by the host from the same buffers.
//!
//! What a solve says of its answer rests on the residual that the device computed last. So the first [`TIMES`] that a device
//! computes one in some precision from some kind of matrix, which are those of the start and the end of a solve (the start
//! alone may have numbers too simple to go wrong), every bit of it and of its sums is compared with what the host makes of the
//! same numbers: a driver that compiles the kernels wrongly, or a kernel that was changed, is found before it is
//! believed. So are the first norms that each kind of launch folds from such sums and writes into the history of a solve.
//!
//! Cost: each time what the matrix and the vectors take to come back from the device, and a product on the host.
//! Where that is more than [`MOST`] entries the comparison waits for a smaller matrix.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::host::Host;
use super::opencl::OpenCl;
use super::{Blend, Run, SolveState, StepCall, StepState, Stored, Vocabulary};
use crate::error::{Error, Result};
use crate::number::{Accumulation, Element, Precision, Real, Sum};
use crate::ocl::Buffer;
use crate::sparse::Kind;
use crate::verdict::remember;

/// Entries, or steps of rays, that are done again: some tens of milliseconds.
const MOST: usize = 1 << 23;
const TIMES: usize = 2;

/// Sums kept in pairs of `f32` below this may lose digits where there are no denormal numbers: the last of their 48 bits is
/// then below 1.2e-38.
const FAINT: f64 = 3.4e-24;

/// What was launched, in which numbers, and from what kind of matrix.
type Subject = (&'static str, Precision, Accumulation, Kind);

/// What was launched, in which numbers.
type Launched = (&'static str, Precision, Accumulation);

/// How often what of a device was seen to be right.
#[derive(Debug, Default)]
pub(super) struct Seen {
    products: Mutex<HashMap<Subject, usize>>,
    norms: Mutex<HashMap<Launched, Asked>>,
}

/// How often launches were looked at for norms, and how often there were some.
#[derive(Debug, Default)]
struct Asked {
    launches: usize,
    norms: usize,
}

/// Launches of a kind that are looked at for norms: some kinds never write any.
const LAUNCHES: usize = 12;

/// A launch that will be compared: its place in [`Seen`], and what it will overwrite.
pub(super) struct Pending<T> {
    word: &'static str,
    held: Vec<T>,
    state: Option<StepState<Host>>,
}

impl OpenCl {
    fn copied<E: Element>(&self, buffer: &Buffer<E>) -> Result<Vec<E>> {
        let mut data = vec![E::default(); buffer.len()];
        self.context.read(buffer, 0, &mut data)?;
        Ok(data)
    }

    fn copied_matrix<T: Real>(&self, a: &Stored<Self, T>) -> Result<Stored<Host, T>> {
        Ok(Stored {
            arrangement: a.arrangement,
            rows: a.rows,
            cols: a.cols,
            stride: a.stride,
            longer: a.longer,
            longest: a.longest,
            pointers: self.copied(&a.pointers)?,
            indices: self.copied(&a.indices)?,
            values: self.copied(&a.values)?,
        })
    }

    /// To be called before `word` is launched: `None` where it need not be compared. `y` is what it overwrites.
    pub(super) fn pending<T: Real>(
        &self,
        word: &'static str,
        run: Run<'_>,
        a: &Stored<Self, T>,
        columns: usize,
        y: &Buffer<T>,
        state: Option<&StepState<Self>>,
    ) -> Result<Option<Pending<T>>> {
        let entries = match a.arrangement.kind {
            Kind::Project | Kind::Backproject => a.rows.max(a.cols).saturating_mul(2 * a.rows.min(a.cols).isqrt()),
            Kind::Stencil => a.rows * a.arrangement.block.max(32),
            _ => a.values.len().max(a.rows),
        };
        if entries.saturating_mul(columns) > MOST {
            return Ok(None);
        }
        let mut seen = self.products_seen();
        let times = seen.entry((word, T::PRECISION, run.accumulation, a.arrangement.kind)).or_default();
        if *times >= TIMES {
            return Ok(None);
        }
        *times += 1;
        drop(seen);
        let state = state.map(|state| self.copied_steps(state)).transpose()?;
        Ok(Some(Pending { word, held: self.copied(y)?, state }))
    }

    fn copied_steps(&self, state: &StepState<Self>) -> Result<StepState<Host>> {
        Ok(StepState {
            programs: self.copied(&state.programs)?,
            sums: self.copied(&state.sums)?,
            registers: self.copied(&state.registers)?,
            status: self.copied(&state.status)?,
            history: self.copied(&state.history)?,
        })
    }

    fn products_seen(&self) -> MutexGuard<'_, HashMap<Subject, usize>> {
        self.seen.products.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn norms_seen(&self) -> MutexGuard<'_, HashMap<Launched, Asked>> {
        self.seen.norms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The history as it should be after `word`, where that has to be compared: what `fold` makes of a host's copy of the
    /// state, given with the history before.
    fn wanted_norms<T: Real>(
        &self,
        word: &'static str,
        run: Run<'_>,
        fold: impl FnOnce() -> Result<[Vec<Sum>; 2]>,
    ) -> Result<Option<Vec<Sum>>> {
        let launched = (word, T::PRECISION, run.accumulation);
        let mut seen = self.norms_seen();
        let asked = seen.entry(launched).or_default();
        if asked.norms >= TIMES || asked.launches >= LAUNCHES {
            return Ok(None);
        }
        asked.launches += 1;
        drop(seen);
        let [before, after] = fold()?;
        if before == after {
            return Ok(None);
        }
        self.norms_seen().entry(launched).or_default().norms += 1;
        Ok(Some(after))
    }

    /// To be called before a launch of CG that tests.
    pub(super) fn cg_norms<T: Real>(
        &self,
        run: Run<'_>,
        count: usize,
        state: &SolveState<Self>,
    ) -> Result<Option<Vec<Sum>>> {
        self.solve_norms::<T>("CG", run, state, |held| Host::cg_norms::<T>(run, count, held))
    }

    /// The same of CGNR, with a matrix of `rows` by `cols`.
    pub(super) fn cgnr_norms<T: Real>(
        &self,
        run: Run<'_>,
        columns: usize,
        shape: [usize; 2],
        state: &SolveState<Self>,
    ) -> Result<Option<Vec<Sum>>> {
        self.solve_norms::<T>("CGNR", run, state, |held| Host::cgnr_norms::<T>(run, columns, shape, held))
    }

    /// What `test` makes of a host's copy of `state`.
    fn solve_norms<T: Real>(
        &self,
        word: &'static str,
        run: Run<'_>,
        state: &SolveState<Self>,
        test: impl FnOnce(&mut SolveState<Host>),
    ) -> Result<Option<Vec<Sum>>> {
        self.wanted_norms::<T>(word, run, || {
            let mut held = SolveState::<Host> {
                sums: self.copied(&state.sums)?,
                control: self.copied(&state.control)?,
                status: self.copied(&state.status)?,
                history: self.copied(&state.history)?,
            };
            let before = held.history.clone();
            test(&mut held);
            Ok([before, held.history])
        })
    }

    /// The same of a launch whose program is data.
    pub(super) fn step_norms<T: Real>(
        &self,
        word: &'static str,
        run: Run<'_>,
        call: StepCall,
        state: &StepState<Self>,
    ) -> Result<Option<Vec<Sum>>> {
        self.wanted_norms::<T>(word, run, || {
            let mut held = self.copied_steps(state)?;
            let before = held.history.clone();
            Host.step_scalars::<T>(run, call, &mut held)?;
            Ok([before, held.history])
        })
    }

    /// Compares the history after a launch with what it should be, if that is to be known.
    pub(super) fn compare_norms<T: Real>(
        &self,
        word: &'static str,
        run: Run<'_>,
        wanted: Option<Vec<Sum>>,
        history: &Buffer<Sum>,
    ) -> Result<()> {
        let Some(wanted) = wanted else { return Ok(()) };
        let found = self.copied(history)?;
        let wrong = differing(&found, &wanted, self.faint::<T>(run), |sum| sum.value(run.accumulation));
        if wrong == 0 {
            return Ok(());
        }
        self.norms_seen().remove(&(word, T::PRECISION, run.accumulation));
        let precision = T::PRECISION;
        self.distrusted(format!(
            "{wrong} norms of a solve in {precision} are not what the host makes of the same sums"
        ))
    }

    /// Below what the device need not give the host's bits.
    fn faint<T: Real>(&self, run: Run<'_>) -> f64 {
        match run.accumulation {
            _ if self.context.info().denormals || T::PRECISION == Precision::Double => 0.0,
            Accumulation::Double => f64::from(f32::MIN_POSITIVE),
            Accumulation::Pair => FAINT,
        }
    }

    /// Holds it against the device.
    fn distrusted<R>(&self, what: String) -> Result<R> {
        remember(self.context.info(), Some(&what));
        Err(Error::Untrustworthy { device: self.context.info().name.clone(), what })
    }

    /// Compares `r` and `sums`, where `pending` was launched, with the host's `r = b - A x`.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn compare_residual<T: Real>(
        &self,
        pending: Pending<T>,
        run: Run<'_>,
        a: &Stored<Self, T>,
        columns: usize,
        [x, b, r]: [&Buffer<T>; 3],
        sums: &Buffer<Sum>,
        place: usize,
    ) -> Result<()> {
        let mut wanted = pending.held;
        let found = self.copied(sums)?;
        let mut wanted_sums = found.clone();
        let (matrix, x, b) = (self.copied_matrix(a)?, self.copied(x)?, self.copied(b)?);
        Host.residual(run, &matrix, columns, &x, &b, &mut wanted, &mut wanted_sums, place)?;
        self.judge(pending.word, run, a, (&self.copied(r)?, &wanted), (&found, &wanted_sums))
    }

    /// Compares `y` and the sums of `state`, where `pending` was launched, with the host's.
    pub(super) fn compare_step<T: Real>(
        &self,
        pending: Pending<T>,
        run: Run<'_>,
        call: StepCall,
        a: &Stored<Self, T>,
        blend: Blend,
        [x, w, z, y]: [&Buffer<T>; 4],
        sums: &Buffer<Sum>,
    ) -> Result<()> {
        let Pending { word, held: mut wanted, state: Some(mut state) } = pending else { return Ok(()) };
        let (matrix, x, w, z) = (self.copied_matrix(a)?, self.copied(x)?, self.copied(w)?, self.copied(z)?);
        Host.step_product(run, call, &matrix, blend, [&x, &w, &z], &mut wanted, &mut state)?;
        self.judge(word, run, a, (&self.copied(y)?, &wanted), (&self.copied(sums)?, &state.sums))
    }

    fn judge<T: Real>(
        &self,
        word: &'static str,
        run: Run<'_>,
        a: &Stored<Self, T>,
        (found, wanted): (&[T], &[T]),
        (sums, wanted_sums): (&[Sum], &[Sum]),
    ) -> Result<()> {
        let faint = self.faint::<T>(run);
        let numbers = differing(found, wanted, faint, |number| number.to_f64());
        let folded = differing(sums, wanted_sums, faint, |sum| sum.value(run.accumulation));
        if numbers == 0 && folded == 0 {
            return Ok(());
        }
        // It is compared again by the next solve.
        let kind = a.arrangement.kind;
        self.products_seen().remove(&(word, T::PRECISION, run.accumulation, kind));
        let what = format!(
            "{numbers} of {} numbers and {folded} sums of a product in {} ({kind:?}) are not what the host makes of the same data",
            found.len(),
            T::PRECISION
        );
        self.distrusted(what)
    }
}

/// How many of `found` differ from `wanted`, where what is below `faint` in both may.
fn differing<N>(found: &[N], wanted: &[N], faint: f64, value: impl Fn(&N) -> f64) -> usize {
    let differ = |a: f64, b: f64| {
        a.to_bits() != b.to_bits() && !(a.is_nan() && b.is_nan()) && !(a.abs() < faint && b.abs() < faint)
    };
    found.iter().zip(wanted).filter(|(a, b)| differ(value(a), value(b))).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_faint_for_a_device_is_not_held_against_it() {
        let differ = |a: f64, b: f64, faint: f64| differing(&[a, 1.0], &[b, 1.0], faint, |v| *v);
        assert_eq!(differ(1e-30, 1.5e-30, 0.0), 1);
        assert_eq!(differ(1e-30, 1.5e-30, FAINT), 0);
        assert_eq!(differ(1e-30, 1e-3, FAINT), 1);
        assert_eq!(differ(0.5, 0.5 + f64::EPSILON, FAINT), 1);
        assert_eq!(differ(f64::NAN, -f64::NAN, FAINT), 0);
        assert_eq!(differ(f64::NAN, 1e-30, FAINT), 1);
    }
}
