//! The handle of a device. `choose` ranks and picks devices, `filter` holds the words that pick them.

mod choose;
mod filter;
mod host;

pub use choose::{Candidate, DEVICE_VARIABLE};
pub use filter::DeviceFilter;
pub(crate) use host::host_info;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::backend::Host;
use crate::backend::{AnyBackend, Run};
use crate::device_info::{BackendKind, DeviceInfo, DeviceKind};
use crate::error::{Error, Result};
use crate::machine;
use crate::memory::Place;
use crate::number::{Accumulation, Precision, Real};
use crate::ocl::{Context, Found, Programs};
use crate::sparse::Reader;
use crate::tuning::{Case, Settings, Tuning};

/// A place of work: an OpenCL device, or the host back end. Cloning is cheap and shares the device.
///
/// ```
/// use residuum::{Device, Precision, Vector};
///
/// // The host back end, the device that words name (a number, a vendor, `gpu`), and all there are.
/// let host = Device::host();
/// let first = Device::select("0")?;
/// println!("{} {}", first.info().name, first.backend_kind());
/// assert!(Device::select_all("")?.iter().any(|device| device.info().name == host.info().name));
/// // The same bits on each of them.
/// for device in Device::select_all("")?.iter().filter(|device| device.info().fp64) {
///     let x = Vector::from_slice(device, &[0.1, 0.2, 0.3])?;
///     assert_eq!(x.dot(&x)?.to_bits(), 0.14000000000000001_f64.to_bits());
/// }
/// # Ok::<(), residuum::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Device {
    inner: Arc<Inner>,
    tuning: Arc<Tuning>,
    /// Number that no other tuning of this process has.
    tuning_id: u64,
    accumulation: Accumulation,
}

#[derive(Debug)]
struct Inner {
    info: DeviceInfo,
    backend: AnyBackend,
    choice: String,
}

/// Number of the next tuning.
static NEXT_TUNING: AtomicU64 = AtomicU64::new(0);

fn next_tuning() -> u64 {
    NEXT_TUNING.fetch_add(1, Ordering::Relaxed)
}

impl Device {
    /// The host back end: Rust on all cores, no OpenCL needed. Always there.
    pub fn host() -> Self {
        Self::wrap(host_info(), AnyBackend::Host(Host), "asked for by name".into())
    }

    /// Parts of a device, such as the sockets or some cores of a CPU, as devices of their own: one for each entry of
    /// `units`, with so many compute units. What is not named stays free for others. Parts share nothing: a vector of one is
    /// of no use to another.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if there are fewer units or the driver makes no parts (those of GPUs do not), and
    /// for the host back end, whose threads `RAYON_NUM_THREADS` sets.
    pub fn split(&self, units: &[usize]) -> Result<Vec<Self>> {
        let whole = self.info().compute_units;
        let wrap = |part: Arc<Context>| {
            let choice = format!("{}; {} of {whole} compute units", self.choice(), part.info().compute_units);
            Self::on_context(part, choice)
        };
        Ok(self.context()?.split(units)?.into_iter().map(wrap).collect())
    }

    pub(crate) fn on_context(context: Arc<Context>, choice: String) -> Self {
        Self::wrap(context.info().clone(), AnyBackend::opencl(context), choice)
    }

    /// The context, if it has one.
    pub(crate) fn context(&self) -> Result<&Arc<Context>> {
        self.backend().context().ok_or_else(|| Error::Unsupported {
            device: self.info().name.clone(),
            needs: "an OpenCL device, which the host back end is not".into(),
        })
    }

    fn open(info: DeviceInfo, handle: Option<&'static Found>, choice: String) -> Result<Self> {
        let backend = match handle {
            None => AnyBackend::Host(Host),
            Some(handle) => AnyBackend::opencl(Context::open(handle)?),
        };
        Ok(Self::wrap(info, backend, choice))
    }

    fn wrap(info: DeviceInfo, backend: AnyBackend, choice: String) -> Self {
        log::info!("device {}: {choice}", info.name);
        Self {
            tuning: Arc::new(Tuning::of(&info)),
            tuning_id: next_tuning(),
            accumulation: if info.fp64 { Accumulation::Double } else { Accumulation::Pair },
            inner: Arc::new(Inner { info, backend, choice }),
        }
    }

    /// Properties of the device.
    pub fn info(&self) -> &DeviceInfo {
        &self.inner.info
    }

    /// Reason for the choice, in words.
    pub fn choice(&self) -> &str {
        &self.inner.choice
    }

    /// Launch parameters in force.
    pub fn tuning(&self) -> &Tuning {
        &self.tuning
    }

    /// A handle with another work-group size, which changes time but never a result.
    ///
    /// # Errors
    /// [`Error::Option`] unless `size` is a power of two the device allows.
    pub fn with_work_group(&self, size: usize) -> Result<Self> {
        Ok(self.with_tuning(self.tuning.with_work_group(size, self.info())?))
    }

    /// A handle with launch parameters set for one kind of launches, which changes time but never a result: what the
    /// tuner tries. `place` says in reports where they come from.
    ///
    /// # Errors
    /// [`Error::Option`] for values that the device or the kernels cannot take.
    pub fn with_settings(&self, case: Case, settings: Settings, place: &'static str) -> Result<Self> {
        let tuning = Tuning::clone(&self.tuning).with_settings(case, settings, place, self.info())?;
        Ok(self.with_tuning(tuning))
    }

    /// A handle with the rules of the crate, without measured or chosen settings.
    pub fn with_rules(&self) -> Self {
        self.with_tuning(Tuning::for_device(self.info()))
    }

    /// Tells if both are handles of one opened device.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// A handle that does many iterations of a small solve in one launch of up to `groups` groups that wait for each
    /// other, 0 for none; with two groups and more, sweeps of many levels are one launch too. This changes time but never a result. A launch
    /// of iterations whose groups do not all run at once is noticed, and its work done otherwise. Nothing changes on devices that cannot do it ([`DeviceInfo::resident_groups`]).
    pub fn with_resident_groups(&self, groups: usize) -> Self {
        match self.info().resident_groups {
            0 => self.clone(),
            _ => self.with_tuning(self.tuning.with_resident_groups(groups)),
        }
    }

    /// A handle that keeps sums of `f32` in another way: to reproduce on any device, or the host, the bits of
    /// one without 64-bit arithmetic.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for [`Accumulation::Double`] on a device without `f64`.
    pub fn with_accumulation(&self, accumulation: Accumulation) -> Result<Self> {
        if accumulation == Accumulation::Double {
            self.require(Precision::Double)?;
        }
        Ok(Self { accumulation, ..self.clone() })
    }

    /// Accumulation of sums of numbers of `precision`.
    pub fn accumulation(&self, precision: Precision) -> Accumulation {
        match precision {
            Precision::Double => Accumulation::Double,
            Precision::Single => self.accumulation,
        }
    }

    /// `opencl` or `host`.
    pub fn backend_kind(&self) -> BackendKind {
        if self.backend().context().is_some() { BackendKind::OpenCl } else { BackendKind::Host }
    }

    /// Reader of the matrices in its memory.
    pub(crate) fn reader(&self) -> Reader {
        match self.backend().context() {
            None => Reader::Host,
            Some(_) if self.info().kind == DeviceKind::Cpu => Reader::CompiledCpu,
            Some(_) => Reader::Gpu,
        }
    }

    /// Number of programs built or found on disk for this device so far, and the seconds that took.
    pub fn programs(&self) -> Programs {
        self.backend().context().map(|context| context.programs()).unwrap_or_default()
    }

    /// Names of the kernels made for this device so far.
    pub fn kernels(&self) -> BTreeSet<&'static str> {
        self.backend().context().map(|context| context.kernels()).unwrap_or_default()
    }

    /// Waits for everything queued so far: for timing, never needed for a right answer.
    ///
    /// # Errors
    /// [`Error::Api`] when queued work failed.
    pub fn synchronize(&self) -> Result<()> {
        self.backend().context().map_or(Ok(()), |context| context.finish())
    }

    /// Fails unless the device computes in `precision`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] naming the device.
    pub fn require(&self, precision: Precision) -> Result<()> {
        if precision == Precision::Double && !self.info().fp64 {
            return Err(Error::Unsupported {
                device: self.info().name.clone(),
                needs: "no 64-bit floating point; use single precision (f32) or another device".into(),
            });
        }
        Ok(())
    }

    /// Checks a plan of buffers `(what, bytes)` against the device's memory, of which `held` bytes are taken by the
    /// same problem already, and its largest single allocation: before anything is uploaded.
    ///
    /// # Errors
    /// [`Error::Memory`] with the number needed and the number there is.
    pub fn check_memory(&self, held: u64, plan: &[(&str, u64)]) -> Result<()> {
        let info = self.info();
        let fail = |what: String, needed: u64, available: u64, help: &'static str| {
            Err(Error::Memory { device: info.name.clone(), what, needed, available, help })
        };
        for (what, bytes) in plan {
            if info.largest_allocation != 0 && *bytes > info.largest_allocation {
                return fail(
                    (*what).into(),
                    *bytes,
                    info.largest_allocation,
                    "that is its largest single allocation: use fewer rows or angles, a smaller image, or the host",
                );
            }
        }
        self.check_total(held, plan)
    }

    /// The part of [`Device::check_memory`] that needs sums only.
    pub(crate) fn check_total(&self, held: u64, plan: &[(&str, u64)]) -> Result<()> {
        let info = self.info();
        let total = plan.iter().fold(held, |sum, part| sum.saturating_add(part.1));
        if info.memory != 0 && total > info.memory {
            let parts: Vec<String> = plan.iter().map(|(what, bytes)| format!("{what} {bytes}")).collect();
            return Err(Error::Memory {
                device: info.name.clone(),
                what: format!("the problem ({})", parts.join(", ")),
                needed: total,
                available: info.memory,
                help: "that is all its memory: use fewer rows or angles, a smaller image, or another device",
            });
        }
        // Memory that is held already is not free; these devices take from that of the machine.
        let new = plan.iter().fold(0u64, |sum, part| sum.saturating_add(part.1));
        if new < machine::SURELY_FREE || !matches!(info.kind, DeviceKind::Host | DeviceKind::Cpu) {
            return Ok(());
        }
        match machine::free() {
            Some(free) if new > free => {
                let parts: Vec<String> = plan.iter().map(|(what, bytes)| format!("{what} {bytes}")).collect();
                Err(Error::Memory {
                    device: info.name.clone(),
                    what: format!("the problem ({})", parts.join(", ")),
                    needed: new,
                    available: free,
                    help: "that is what is free now: end other programs, or use a smaller problem",
                })
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn backend(&self) -> &AnyBackend {
        &self.inner.backend
    }

    /// Place of its memory.
    pub(crate) fn place(&self) -> Place {
        self.backend().place()
    }

    /// Settings of a run for numbers of type `T`.
    pub(crate) fn run<T: Real>(&self) -> Run<'_> {
        Run { accumulation: self.accumulation(T::PRECISION), tuning: &self.tuning, tuning_id: self.tuning_id }
    }

    fn with_tuning(&self, tuning: Tuning) -> Self {
        Self { tuning: Arc::new(tuning), tuning_id: next_tuning(), ..self.clone() }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::device_info::DeviceKind;

    pub(crate) fn gpu() -> DeviceInfo {
        DeviceInfo {
            name: "NVIDIA H200".into(),
            vendor: "NVIDIA Corporation".into(),
            platform: "NVIDIA CUDA".into(),
            platform_version: "OpenCL 3.0 CUDA 13.0".into(),
            index: Some((1, 0)),
            kind: DeviceKind::Gpu,
            clock_mhz: 1980,
            compute_units: 132,
            memory: 1000,
            largest_allocation: 250,
            ..host_info()
        }
    }

    /// A device of which no buffer may be larger than `bytes`.
    pub(crate) fn with_largest_allocation(device: Device, bytes: u64) -> Device {
        let inner = Arc::into_inner(device.inner).expect("the only one");
        Device::wrap(DeviceInfo { largest_allocation: bytes, ..inner.info }, inner.backend, inner.choice)
    }

    /// A device with so many bytes of memory.
    pub(crate) fn with_memory(device: Device, bytes: u64) -> Device {
        let inner = Arc::into_inner(device.inner).expect("the only one");
        Device::wrap(DeviceInfo { memory: bytes, ..inner.info }, inner.backend, inner.choice)
    }

    #[test]
    fn a_driver_that_ends_loops_gets_groups_large_enough() {
        let info = DeviceInfo { kind: DeviceKind::Cpu, least_work_group: 32, ..gpu() };
        let tuning = Tuning::for_device(&info);
        assert_eq!(tuning.work_group, 32);
        let words = tuning.with_work_group(16, &info).expect_err("too few").to_string();
        assert!(words.contains("from 32 to 1024"), "{words}");
        assert_eq!(Tuning::for_device(&DeviceInfo { least_work_group: 1, ..info }).work_group, 1);
        // Nor many iterations in one launch, whoever asks.
        assert_eq!(Device::host().with_resident_groups(4).tuning().resident_groups, 0);
    }

    #[test]
    fn memory_is_checked_before_anything_is_sent() {
        let device = Device::wrap(gpu(), AnyBackend::Host(Host), "test".into());
        assert!(device.check_memory(0, &[("a", 250), ("b", 250)]).is_ok());
        let single = device.check_memory(0, &[("values", 251)]);
        assert!(matches!(single, Err(Error::Memory { needed: 251, available: 250, .. })));
        let total = device.check_memory(1, &[("a", 250), ("b", 250), ("c", 250), ("d", 250)]);
        assert!(matches!(total, Err(Error::Memory { needed: 1001, available: 1000, .. })));
    }

    #[test]
    fn double_precision_is_refused_where_there_is_none() {
        let device = Device::wrap(DeviceInfo { fp64: false, ..gpu() }, AnyBackend::Host(Host), "test".into());
        assert!(matches!(device.require(Precision::Double), Err(Error::Unsupported { .. })));
        assert!(device.require(Precision::Single).is_ok());
        assert_eq!(device.accumulation(Precision::Single), Accumulation::Pair);
        assert!(device.with_accumulation(Accumulation::Double).is_err());
    }
}
