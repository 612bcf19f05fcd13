//! Ranking and choice of devices.

use super::Device;
use super::filter::DeviceFilter;
use super::host::host_info;
use crate::backend::kernels_checksum;
use crate::device_info::{DeviceInfo, DeviceKind};
use crate::error::{Error, Result};
use crate::ocl::{Found, found};
use crate::verdict::verdict;

/// A device that could be chosen, in order of preference.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Candidate {
    /// Properties of the device.
    pub info: DeviceInfo,
    /// Place in the ranking, in words: what counts for the device and against it.
    pub standing: String,
    /// True if the doctor, or a solve, found that it computes wrongly.
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

/// Entries of a matrix from which on kernels for a CPU are worth building.
const WORTH_BUILDING: usize = 20_000_000;

/// The environment variable that picks the device, in the words of [`DeviceFilter`].
pub const DEVICE_VARIABLE: &str = "RESIDUUM_DEVICE";

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

/// Devices that were found, with what is held against them.
fn candidate(found: &'static Found) -> Candidate {
    let mut info = found.info.clone();
    let fault = kernels_checksum().ok().and_then(|kernels| verdict(&info, &kernels));
    if let Some(fault) = &fault {
        info.last_resort =
            Some(format!("it was found to compute wrongly ({fault}); the program doctor says more").into());
    }
    Candidate { standing: standing(&info), found_wanting: fault.is_some(), info, handle: Some(found) }
}

impl Device {
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
    /// [`Error::Option`] for words that cannot be meant, or that are no text.
    pub fn best() -> Result<Self> {
        match std::env::var(DEVICE_VARIABLE) {
            Err(std::env::VarError::NotUnicode(words)) => {
                let reason =
                    format!("{words:?} is no UTF-8 text: set it to words of a device, such as gpu, or unset it");
                Err(Error::Option { name: DEVICE_VARIABLE, reason })
            }
            Ok(words) if !words.trim().is_empty() => Self::select_as(&words, &format!("{DEVICE_VARIABLE}={words}")),
            _ => Self::first(&DeviceFilter::default(), ""),
        }
    }

    /// [`Device::best`] for a problem whose products read `entries` of a matrix. Below 20 million the host is chosen instead of a CPU through OpenCL,
    /// unless `RESIDUUM_DEVICE` names a device: there the kernels of a first solve take 5 to 25 s to build, and an iteration about as long
    /// as on the host.
    ///
    /// # Errors
    /// As [`Device::best`].
    pub fn best_for(entries: usize) -> Result<Self> {
        let named = std::env::var_os(DEVICE_VARIABLE).is_some_and(|words| !words.is_empty());
        let first = Self::candidates().into_iter().next();
        let builds = first.is_some_and(|first| first.info.kind == DeviceKind::Cpu);
        if named || !builds || entries >= WORTH_BUILDING {
            return Self::best();
        }
        let choice = format!(
            "host back end: {entries} entries are too few for the kernels of a CPU to be worth building (from {WORTH_BUILDING} on); a device that \
             is named is taken"
        );
        Self::open(host_info(), None, choice)
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
}

/// List of devices for the error that says which one is missing.
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
        Some(why) => format!("name host, the CPU without OpenCL, or nothing: there is no other, because {why}"),
        None => format!("name a part of one of {}", names.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::tests::gpu;
    use crate::device_info::BackendKind;

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
    fn a_device_that_is_not_there_is_an_error_that_lists_what_is() {
        let error = Device::select("no-such-device").expect_err("nothing is called that");
        let text = error.to_string();
        assert!(text.contains("no-such-device") && text.contains("host"), "{text}");
        assert_eq!(Device::select_all("no-such-device").expect_err("nor any of these").to_string(), text);
        assert_eq!(Device::host().backend_kind(), BackendKind::Host);
    }

    #[test]
    fn small_problems_wait_for_no_compiler() {
        let best = Device::best().expect("a device");
        let large = Device::best_for(WORTH_BUILDING).expect("a device");
        assert_eq!((large.info().name.as_str(), large.choice()), (best.info().name.as_str(), best.choice()));
        let small = Device::best_for(1000).expect("a device");
        let named = std::env::var_os(DEVICE_VARIABLE).is_some_and(|words| !words.is_empty());
        if best.info().kind == DeviceKind::Cpu && !named {
            assert_eq!(small.backend_kind(), BackendKind::Host);
            assert!(small.choice().contains("1000 entries"), "{}", small.choice());
        } else {
            assert_eq!(small.info().name, best.info().name);
        }
    }

    #[test]
    fn all_that_match_are_opened_best_first() {
        let all = Device::select_all("").expect("the host at least");
        let infos = Device::candidates();
        assert_eq!(all.len(), infos.len());
        assert!(all.iter().zip(&infos).all(|(device, candidate)| device.info().name == candidate.info.name));
        let host = Device::select_all("host").expect("the host");
        assert_eq!((host.len(), host[0].backend_kind()), (1, BackendKind::Host));
        assert_eq!(host[0].choice(), "one of 1 that match 'host'");
    }
}
