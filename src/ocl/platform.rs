//! OpenCL platforms and devices of this machine, looked up once per process.

use std::borrow::Cow;

use lazy_static::lazy_static;
use opencl3::device::{
    CL_DEVICE_TYPE_ACCELERATOR, CL_DEVICE_TYPE_ALL, CL_DEVICE_TYPE_CPU, CL_DEVICE_TYPE_GPU, CL_FP_DENORM, Device,
};
use opencl3::error_codes::error_text;
use opencl3::platform::{Platform, get_platforms};
use opencl3::types::{cl_device_id, cl_device_type};

use super::quirks;
use crate::device_info::{DeviceInfo, DeviceKind};

/// A device together with the handle it is opened by.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) info: DeviceInfo,
    pub(super) id: usize,
}

impl Found {
    pub(super) fn handle(&self) -> cl_device_id {
        self.id as cl_device_id
    }
}

lazy_static! {
    /// Enumerating loads drivers, which is slow and not always safe to repeat: once per process.
    static ref FOUND: (Vec<Found>, Option<String>) = enumerate();
}

/// All OpenCL devices of the machine, and why there are none if there are none.
pub(crate) fn found() -> (&'static [Found], Option<&'static str>) {
    (&FOUND.0, FOUND.1.as_deref())
}

fn enumerate() -> (Vec<Found>, Option<String>) {
    let platforms = match get_platforms() {
        Ok(platforms) => platforms,
        Err(error) => return (Vec::new(), Some(reason(error.0))),
    };
    let mut devices = Vec::new();
    let mut silent = Vec::new();
    for (p, platform) in platforms.iter().enumerate() {
        let name = platform.name().unwrap_or_default();
        let version = platform.version().unwrap_or_default();
        // A platform without a device answers CL_DEVICE_NOT_FOUND: nothing to report but its name.
        let ids = platform.get_devices(CL_DEVICE_TYPE_ALL).unwrap_or_default();
        if ids.is_empty() {
            silent.push(format!("{name}{}", quirks::reveal(&name)));
        }
        for (d, id) in ids.into_iter().enumerate() {
            match describe(id, &name, &version, Some((p, d))) {
                Ok(info) => devices.push(Found { info, id: id as usize }),
                Err(code) => log::warn!("device {p}:{d} of {name} left out: {}", error_text(code)),
            }
        }
    }
    let why = devices.is_empty().then(|| {
        if silent.is_empty() {
            "the OpenCL loader knows no platform (no driver is installed)".into()
        } else {
            format!("OpenCL platforms without a device: {}", silent.join(", "))
        }
    });
    (devices, why)
}

/// Properties of a device that a program named by its handle: one of those found, or a part of one.
pub(super) fn identify(id: cl_device_id) -> Result<DeviceInfo, i32> {
    let index_of = |id: cl_device_id| found().0.iter().find(|f| f.handle() == id).and_then(|f| f.info.index);
    let device = Device::new(id);
    // Null, or no answer from drivers of OpenCL 1.1, if the device is no part.
    let parent = device.parent_device().unwrap_or(std::ptr::null_mut());
    let platform = Platform::new(device.platform().map_err(|error| error.0)?);
    let mut info = describe(
        id,
        &platform.name().unwrap_or_default(),
        &platform.version().unwrap_or_default(),
        index_of(id).or_else(|| index_of(parent)),
    )?;
    info.part = !parent.is_null();
    Ok(info)
}

fn reason(code: i32) -> String {
    match code {
        -2000 => "no OpenCL library could be loaded (libOpenCL.so.1); install an OpenCL loader and a driver, \
                  on Debian: apt-get install ocl-icd-libopencl1 pocl-opencl-icd"
            .into(),
        -1001 => {
            "the OpenCL loader found no driver; install one, on Debian: apt-get install pocl-opencl-icd".into()
        }
        _ => format!("OpenCL could not list its platforms: {} ({code})", error_text(code)),
    }
}

/// Anything unheard of is an accelerator.
fn kind_of(bits: cl_device_type) -> DeviceKind {
    if bits & CL_DEVICE_TYPE_GPU != 0 {
        DeviceKind::Gpu
    } else if bits & (CL_DEVICE_TYPE_ACCELERATOR | CL_DEVICE_TYPE_CPU) == CL_DEVICE_TYPE_CPU {
        DeviceKind::Cpu
    } else {
        DeviceKind::Accelerator
    }
}

fn describe(
    id: cl_device_id,
    platform: &str,
    version: &str,
    index: Option<(usize, usize)>,
) -> Result<DeviceInfo, i32> {
    let device = Device::new(id);
    let text = |value: opencl3::Result<String>| value.map(|s| s.trim().to_string());
    let read = || -> opencl3::Result<DeviceInfo> {
        let kind = kind_of(device.dev_type()?);
        let name = text(device.name())?;
        let compute_units = device.max_compute_units()? as usize;
        Ok(DeviceInfo {
            resident_groups: quirks::resident_groups(
                platform,
                &name,
                // Other vendors' devices do not know the question.
                device.compute_capability_major_nv().unwrap_or(0),
                compute_units,
            ),
            last_resort: quirks::last_resort(platform, &name).map(Cow::Borrowed),
            single_items: quirks::single_items(platform, kind),
            vendor: text(device.vendor())?,
            platform: platform.trim().into(),
            platform_version: version.trim().into(),
            driver: text(device.driver_version())?,
            index,
            kind,
            // Some 1.1 drivers fail the query instead of answering 0: no fp64 then.
            fp64: device.double_fp_config().unwrap_or(0) != 0,
            denormals: device.single_fp_config().unwrap_or(0) & CL_FP_DENORM != 0,
            int64_atomics: device.extensions().unwrap_or_default().contains("cl_khr_int64_base_atomics"),
            compute_units,
            part: false,
            most_parts: device.partition_max_sub_devices().map_or(1, |parts| parts.max(1) as usize),
            keeps_programs: quirks::keeps_programs(platform),
            clock_mhz: device.max_clock_frequency().unwrap_or(0) as usize,
            memory: device.global_mem_size()?,
            largest_allocation: device.max_mem_alloc_size()?,
            local_memory: device.local_mem_size()?,
            max_work_group: device.max_work_group_size()?,
            least_work_group: quirks::least_work_group(&name),
            name,
        })
    };
    read().map_err(|error| error.0)
}
