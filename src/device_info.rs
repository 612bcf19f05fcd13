//! Properties of devices: plain data, without a driver.

use std::borrow::Cow;

/// Kind of hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeviceKind {
    /// A graphics processor.
    Gpu,
    /// A dedicated accelerator.
    Accelerator,
    /// The processor, through an OpenCL driver.
    Cpu,
    /// The processor, through this crate's own host back end.
    Host,
}

impl std::fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Gpu => "gpu",
            Self::Accelerator => "accelerator",
            Self::Cpu => "cpu",
            Self::Host => "host",
        })
    }
}

/// Code that does the work of a device.
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "lowercase"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BackendKind {
    /// Rust on the threads of the processor.
    Host,
    /// Kernels of an OpenCL device.
    OpenCl,
}

impl std::fmt::Display for BackendKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Host => "host",
            Self::OpenCl => "opencl",
        })
    }
}

/// Properties of a device.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// Name, as the driver gives it.
    pub name: String,
    /// Maker of the device.
    pub vendor: String,
    /// The platform (driver family) it belongs to.
    pub platform: String,
    /// The platform's version text.
    pub platform_version: String,
    /// The driver's version.
    pub driver: String,
    /// `platform:device` position in the enumeration; of a part, that of the whole; `None` for the host.
    pub index: Option<(usize, usize)>,
    /// True if it is a part of a device, see [`Device::split`](crate::Device::split).
    pub part: bool,
    /// Parts it can be split into; 1 if it cannot.
    pub most_parts: usize,
    /// Kind of hardware.
    pub kind: DeviceKind,
    /// 64-bit floating point.
    pub fp64: bool,
    /// True if numbers of `f32` below 1.2e-38 keep their digits; if not, results that small may be 0, and sums kept in pairs
    /// of `f32` lose digits below 3e-24.
    pub denormals: bool,
    /// 64-bit atomics: what additions of `f64` by many work-items at once are made of.
    pub int64_atomics: bool,
    /// Number of compute units (cores of a CPU, multiprocessors of a GPU).
    pub compute_units: usize,
    /// Clock in MHz, 0 if unknown.
    pub clock_mhz: usize,
    /// Bytes of global memory, 0 if unknown.
    pub memory: u64,
    /// Bytes of the largest single allocation, 0 if unlimited.
    pub largest_allocation: u64,
    /// Bytes of local memory of a work-group.
    pub local_memory: u64,
    /// Largest work-group.
    pub max_work_group: usize,
    /// Smallest that gives right answers; 1 but for drivers that end long loops.
    pub least_work_group: usize,
    /// Groups of one launch that can be told to wait for each other; 1 if that is not known to be safe, 0 if a launch
    /// cannot do many iterations at all.
    pub resident_groups: usize,
    /// Why kernels with barriers run with one work-item per group whatever size is asked for, if they do.
    pub single_items: Option<&'static str>,
    /// True if its programs are kept on disk, see [`cache_folder`](crate::cache_folder).
    pub keeps_programs: bool,
    /// Why the device is used only when it is named, if so.
    pub last_resort: Option<Cow<'static, str>>,
}
