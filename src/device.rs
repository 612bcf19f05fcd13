//! Choosing a device, and what is known of it.

use std::sync::Arc;

use crate::backend::{Host, OpenCl};
use crate::device_info::{DeviceInfo, DeviceKind};
use crate::error::{Error, Result};
use crate::filter::DeviceFilter;
use crate::machine;
use crate::number::{Accumulation, Precision};
use crate::ocl::{Context, Found, Programs, found};
use crate::tuning::{Case, Settings, Tuning};
use crate::verdict::verdict;

/// Where work is done: an OpenCL device, or the host back end. Cloning is cheap and shares the device.
#[derive(Clone, Debug)]
pub struct Device {
    inner: Arc<Inner>,
    tuning: Arc<Tuning>,
    accumulation: Accumulation,
}

#[derive(Debug)]
struct Inner {
    info: DeviceInfo,
    backend: Backend,
    choice: String,
}

/// The one place where host and OpenCL part; see [`on_backend!`](crate::backend::on_backend).
#[derive(Debug)]
pub(crate) enum Backend {
    Host(Host),
    OpenCl(OpenCl),
}

/// A device that could be chosen, in order of preference.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// What the device says of itself.
    pub info: DeviceInfo,
    /// Its place in the ranking in words: what counts for it and against it.
    pub standing: String,
    /// Whether the doctor, or a solve, found that it computes wrongly.
    pub found_wanting: bool,
    handle: Option<&'static Found>,
}

impl Candidate {
    /// Opens it.
    ///
    /// # Errors
    /// [`Error::Api`] for what its driver says.
    pub fn open(&self) -> Result<Device> {
        Device::open(self.info.clone(), self.handle, format!("chosen from the list ({})", self.standing))
    }
}

/// The environment variable that picks the device, in the words of [`DeviceFilter`].
pub const DEVICE_VARIABLE: &str = "RESIDUUM_DEVICE";

pub(crate) fn host_info() -> DeviceInfo {
    let threads = rayon::current_num_threads();
    DeviceInfo {
        name: format!("host ({threads} threads)"),
        vendor: std::env::consts::ARCH.into(),
        platform: "residuum host back end".into(),
        platform_version: env!("CARGO_PKG_VERSION").into(),
        driver: env!("CARGO_PKG_VERSION").into(),
        index: None,
        part: false,
        most_parts: 1,
        kind: DeviceKind::Host,
        fp64: true,
        denormals: true,
        int64_atomics: true,
        compute_units: threads,
        clock_mhz: 0,
        memory: machine::memory(),
        largest_allocation: 0,
        local_memory: 0,
        max_work_group: 1024,
        least_work_group: 1,
        resident_groups: 0,
        single_items: None,
        keeps_programs: false,
        last_resort: None,
    }
}

/// Larger is better: usable at all, kind of hardware, 64-bit, then raw size.
fn rank(info: &DeviceInfo) -> (bool, u8, bool, usize) {
    let kind = match info.kind {
        DeviceKind::Gpu => 3,
        DeviceKind::Accelerator => 2,
        DeviceKind::Cpu => 1,
        DeviceKind::Host => 0,
    };
    (info.last_resort.is_none(), kind, info.fp64, info.compute_units * info.clock_mhz.max(1))
}

fn standing(info: &DeviceInfo) -> String {
    let mut text = format!(
        "{}, {} compute units, {}",
        info.kind,
        info.compute_units,
        if info.fp64 { "fp64" } else { "no fp64" }
    );
    if let Some(why) = &info.last_resort {
        text = format!("{text}; only when named: {why}");
    }
    text
}

/// What was found, with what is held against it.
fn candidate(found: &'static Found) -> Candidate {
    let mut info = found.info.clone();
    let fault = verdict(&info);
    if let Some(fault) = &fault {
        info.last_resort =
            Some(format!("it was found to compute wrongly ({fault}); the program doctor says more").into());
    }
    Candidate { standing: standing(&info), found_wanting: fault.is_some(), info, handle: Some(found) }
}

impl Device {
    /// The host back end: Rust on all cores, no OpenCL needed. Always there.
    pub fn host() -> Self {
        Self::wrap(host_info(), Backend::Host(Host), "asked for by name".into())
    }

    /// All devices of this machine in order of preference; the first is what [`Device::best`] opens.
    pub fn candidates() -> Vec<Candidate> {
        let mut all: Vec<_> = found().0.iter().map(candidate).collect();
        let info = host_info();
        all.push(Candidate { standing: standing(&info), found_wanting: false, info, handle: None });
        // Stable: equal devices keep the order of enumeration.
        all.sort_by_key(|candidate| std::cmp::Reverse(rank(&candidate.info)));
        all
    }

    /// Why no OpenCL device was found, if none was.
    pub fn opencl_missing() -> Option<&'static str> {
        found().1
    }

    /// The device named by `RESIDUUM_DEVICE` if that is set, else the best there is: a GPU before a CPU before the
    /// host back end. [`Device::choice`] says what was chosen and why.
    ///
    /// # Errors
    /// [`Error::NoDevice`] when the variable names a device that is not there: it is never silently replaced;
    /// [`Error::Option`] for words that cannot be meant.
    pub fn best() -> Result<Self> {
        match std::env::var(DEVICE_VARIABLE) {
            Ok(words) if !words.trim().is_empty() => Self::select_as(&words, &format!("{DEVICE_VARIABLE}={words}")),
            _ => Self::first(&DeviceFilter::default(), ""),
        }
    }

    /// The best device that matches `words` (see [`DeviceFilter`]).
    ///
    /// # Errors
    /// [`Error::NoDevice`] when none matches; the error lists what was seen. [`Error::Option`] for words that cannot be
    /// meant.
    pub fn select(words: &str) -> Result<Self> {
        Self::select_as(words, &format!("'{words}'"))
    }

    /// Every device that matches `words`, best first: for several threads, each with a device of its own. One device may
    /// also serve several threads.
    ///
    /// # Errors
    /// As [`Device::select`].
    pub fn select_all(words: &str) -> Result<Vec<Self>> {
        let filter: DeviceFilter = words.parse()?;
        let matching: Vec<_> = Self::candidates().into_iter().filter(|one| filter.matches(&one.info)).collect();
        if matching.is_empty() {
            return Err(Error::NoDevice { wanted: words.into(), seen: seen() });
        }
        let reason = format!("one of {} that match '{words}'", matching.len());
        let open = |one: Candidate| Self::open(one.info, one.handle, reason.clone())?.limited_to(filter.units());
        matching.into_iter().map(open).collect()
    }

    fn select_as(words: &str, asked: &str) -> Result<Self> {
        Self::first(&words.parse()?, asked)
    }

    fn first(filter: &DeviceFilter, asked: &str) -> Result<Self> {
        let all = Self::candidates();
        let total = all.len();
        let mut matching = all.into_iter().filter(|one| filter.matches(&one.info));
        let Some(Candidate { info, handle, standing, .. }) = matching.next() else {
            return Err(Error::NoDevice { wanted: asked.trim_matches('\'').into(), seen: seen() });
        };
        let others = matching.count();
        let reason = if asked.is_empty() {
            match (found().1, info.kind) {
                (Some(why), DeviceKind::Host) => format!("host back end, because {why}"),
                (None, DeviceKind::Host) => "host back end: every OpenCL device is a last resort".into(),
                _ => format!("best of {total} ({standing}), host included"),
            }
        } else if others == 0 {
            format!("the only one that matches {asked}")
        } else {
            format!("best of {} that match {asked} ({standing})", others + 1)
        };
        Self::open(info, handle, reason)?.limited_to(filter.units())
    }

    /// A part of it, if so much is wanted and it has more.
    fn limited_to(self, units: Option<usize>) -> Result<Self> {
        match units {
            Some(units) if units < self.info().compute_units => {
                let part = self.split(&[units])?;
                part.into_iter()
                    .next()
                    .ok_or_else(|| Error::NoDevice { wanted: format!("units={units}"), seen: seen() })
            }
            _ => Ok(self),
        }
    }

    /// Parts of a device, such as the sockets or some cores of a CPU, as devices of their own: one for each entry of
    /// `units`, with so many compute units. What is not named stays free for others. Parts share nothing: a vector of one is
    /// of no use to another.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where there are fewer units or the driver makes no parts (those of GPUs do not), and
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
        Self::wrap(context.info().clone(), Backend::OpenCl(OpenCl::new(context)), choice)
    }

    /// Its context, where it has one.
    pub(crate) fn context(&self) -> Result<&Arc<Context>> {
        match self.backend() {
            Backend::OpenCl(opencl) => Ok(&opencl.context),
            Backend::Host(_) => Err(Error::Unsupported {
                device: self.info().name.clone(),
                needs: "an OpenCL device, which the host back end is not".into(),
            }),
        }
    }

    fn open(info: DeviceInfo, handle: Option<&'static Found>, choice: String) -> Result<Self> {
        let backend = match handle {
            None => Backend::Host(Host),
            Some(handle) => Backend::OpenCl(OpenCl::new(Context::open(handle)?)),
        };
        Ok(Self::wrap(info, backend, choice))
    }

    fn wrap(info: DeviceInfo, backend: Backend, choice: String) -> Self {
        log::info!("device {}: {choice}", info.name);
        Self {
            tuning: Arc::new(Tuning::of(&info)),
            accumulation: if info.fp64 { Accumulation::Double } else { Accumulation::Pair },
            inner: Arc::new(Inner { info, backend, choice }),
        }
    }

    /// What the device says of itself.
    pub fn info(&self) -> &DeviceInfo {
        &self.inner.info
    }

    /// What was chosen and why, in words.
    pub fn choice(&self) -> &str {
        &self.inner.choice
    }

    /// Launch parameters in force.
    pub fn tuning(&self) -> &Tuning {
        &self.tuning
    }

    /// The same device with another work-group size, which changes time but never a result.
    ///
    /// # Errors
    /// [`Error::Option`] unless `size` is a power of two the device allows.
    pub fn with_work_group(&self, size: usize) -> Result<Self> {
        Ok(Self { tuning: Arc::new(self.tuning.with_work_group(size, self.info())?), ..self.clone() })
    }

    /// The same device with launch parameters set for one kind of launches, which changes time but never a result: what the
    /// tuner tries. `place` says in reports where they come from.
    ///
    /// # Errors
    /// [`Error::Option`] for values that the device or the kernels cannot take.
    pub fn with_settings(&self, case: Case, settings: Settings, place: &'static str) -> Result<Self> {
        let tuning = Tuning::clone(&self.tuning).with_settings(case, settings, place, self.info())?;
        Ok(Self { tuning: Arc::new(tuning), ..self.clone() })
    }

    /// The same device by the rules of the crate, without anything that was measured or set.
    pub fn with_rules(&self) -> Self {
        Self { tuning: Arc::new(Tuning::for_device(self.info())), ..self.clone() }
    }

    /// Whether both are handles of one opened device.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// The same device, doing many iterations of a small solve in one launch of up to `groups` groups that wait for each
    /// other, 0 for none: which changes time but never a result. A launch whose groups do not all run at once is
    /// noticed, and its work done otherwise. Nothing changes on devices that cannot do it ([`DeviceInfo::resident_groups`]).
    pub fn with_resident_groups(&self, groups: usize) -> Self {
        match self.info().resident_groups {
            0 => self.clone(),
            _ => Self { tuning: Arc::new(self.tuning.with_resident_groups(groups)), ..self.clone() },
        }
    }

    /// The same device keeping sums of `f32` in another way: to reproduce on any device, or the host, the bits of
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

    /// How sums of numbers of `precision` are kept.
    pub fn accumulation(&self, precision: Precision) -> Accumulation {
        match precision {
            Precision::Double => Accumulation::Double,
            Precision::Single => self.accumulation,
        }
    }

    /// `opencl` or `host`.
    pub fn backend_name(&self) -> &'static str {
        match self.inner.backend {
            Backend::Host(_) => "host",
            Backend::OpenCl(_) => "opencl",
        }
    }

    /// How many programs were built or found on disk for this device so far, and how long that took.
    pub fn programs(&self) -> Programs {
        match &self.inner.backend {
            Backend::Host(_) => Programs::default(),
            Backend::OpenCl(opencl) => opencl.context.programs(),
        }
    }

    /// Waits for everything queued so far: for timing, never needed for a right answer.
    ///
    /// # Errors
    /// [`Error::Api`] when queued work failed.
    pub fn synchronize(&self) -> Result<()> {
        match &self.inner.backend {
            Backend::Host(_) => Ok(()),
            Backend::OpenCl(opencl) => opencl.context.finish(),
        }
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
                    "that is its largest single allocation: use fewer rows or angles, a smaller image, or --device host",
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
        Ok(())
    }

    pub(crate) fn backend(&self) -> &Backend {
        &self.inner.backend
    }
}

/// What there is, for the error that says what was not there.
fn seen() -> String {
    let (devices, missing) = found();
    let mut names: Vec<String> = devices
        .iter()
        .map(|f| {
            let (p, d) = f.info.index.unwrap_or_default();
            format!("{p}:{d} {} ({})", f.info.name, f.info.platform)
        })
        .collect();
    names.push("host".into());
    match missing {
        Some(why) => format!("there is only the host back end, because {why}"),
        None => format!("there are {}", names.join("; ")),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

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
    fn a_gpu_outranks_a_cpu_and_a_simulator_comes_last() {
        let cpu = DeviceInfo { kind: DeviceKind::Cpu, ..gpu() };
        let simulator = DeviceInfo { last_resort: Some("slow".into()), ..gpu() };
        assert!(rank(&gpu()) > rank(&cpu) && rank(&cpu) > rank(&host_info()));
        assert!(rank(&host_info()) > rank(&simulator));
        let weak = DeviceInfo { fp64: false, ..gpu() };
        assert!(rank(&gpu()) > rank(&weak));
    }

    #[test]
    fn memory_is_checked_before_anything_is_sent() {
        let device = Device::wrap(gpu(), Backend::Host(Host), "test".into());
        assert!(device.check_memory(0, &[("a", 250), ("b", 250)]).is_ok());
        let single = device.check_memory(0, &[("values", 251)]);
        assert!(matches!(single, Err(Error::Memory { needed: 251, available: 250, .. })));
        let total = device.check_memory(1, &[("a", 250), ("b", 250), ("c", 250), ("d", 250)]);
        assert!(matches!(total, Err(Error::Memory { needed: 1001, available: 1000, .. })));
    }

    #[test]
    fn double_precision_is_refused_where_there_is_none() {
        let device = Device::wrap(DeviceInfo { fp64: false, ..gpu() }, Backend::Host(Host), "test".into());
        assert!(matches!(device.require(Precision::Double), Err(Error::Unsupported { .. })));
        assert!(device.require(Precision::Single).is_ok());
        assert_eq!(device.accumulation(Precision::Single), Accumulation::Pair);
        assert!(device.with_accumulation(Accumulation::Double).is_err());
    }

    #[test]
    fn a_device_that_is_not_there_is_an_error_that_lists_what_is() {
        let error = Device::select("no-such-device").expect_err("nothing is called that");
        let text = error.to_string();
        assert!(text.contains("no-such-device") && text.contains("host"), "{text}");
        assert_eq!(Device::select_all("no-such-device").expect_err("nor any of these").to_string(), text);
        assert_eq!(Device::host().backend_name(), "host");
    }

    #[test]
    fn all_that_match_are_opened_best_first() {
        let all = Device::select_all("").expect("the host at least");
        let infos = Device::candidates();
        assert_eq!(all.len(), infos.len());
        assert!(all.iter().zip(&infos).all(|(device, candidate)| device.info().name == candidate.info.name));
        let host = Device::select_all("host").expect("the host");
        assert_eq!((host.len(), host[0].backend_name()), (1, "host"));
        assert_eq!(host[0].choice(), "one of 1 that match 'host'");
    }
}
