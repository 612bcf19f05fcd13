//! Self-test of a device: its answers are compared with the host's bit by bit. Speed of copies, launches and reads.
//!
//! The host back end needs no driver and no kernels. Every result is defined to the last bit (docs/numerics.md). If
//! one bit differs, the device, its driver or a changed kernel is at fault.
//!
//! [`examine`] asks about the abilities that everything rests on, or with [`Extent::EveryKernel`] also the [`battery`].

mod abilities;
mod battery;
#[cfg(feature = "fem")]
mod elements;
#[cfg(feature = "simulation")]
mod flows;
mod inverses;
mod products;
mod question;
#[cfg(feature = "imaging")]
mod scans;
mod solves;
mod vectors;

use crate::backend::kernels_checksum;
use crate::device::Device;
use crate::device_info::DeviceKind;
use crate::error::Result;
use crate::measure;
use crate::number::{Precision, Real};
use crate::tuning::largest_power_of_two;
use crate::vector::Vector;
use question::difference;

pub use battery::battery;
pub use question::Question;

/// One thing that was asked of a device.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Check {
    /// Name of the check.
    pub name: &'static str,
    /// In which numbers.
    pub precision: Precision,
    /// Items of a work-group.
    pub work_group: usize,
    /// Fault of the answer, if any.
    pub fault: Option<String>,
    /// Meaning of a fault.
    pub means: &'static str,
}

/// Speed of a device: copies and answers.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Speed {
    /// GB/s of a copy between two large vectors, read and written.
    pub copy: f64,
    /// Microseconds of a small launch, queued behind others.
    pub launch: f64,
    /// Microseconds until one number is back from the device.
    pub read: f64,
}

/// Extent of an examination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// Rounding, barriers, gathers, atomics, launches in order, and the largest allocation.
    #[default]
    Abilities,
    /// These, and the [`battery`].
    EveryKernel,
}

/// Asks `device` for answers in each precision it has, at several work-group sizes if its work-items wait for each other.
/// `seen` gets each check when it is done. The host's answers are the right ones.
///
/// Cost: mostly building kernels, some sixty variants of them for the abilities and many times as many for all; memory as the largest
/// single allocation, at most an eighth of all, and 4 GiB on a GPU, 256 MiB elsewhere.
pub fn examine(device: &Device, extent: Extent, seen: &mut dyn FnMut(&Check)) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut keep = |check: Check| {
        seen(&check);
        checks.push(check);
    };
    examine_in::<f32>(device, extent, &mut keep);
    if device.info().fp64 {
        examine_in::<f64>(device, extent, &mut keep);
    }
    checks
}

/// Number of checks that [`examine`] makes of `device`.
pub fn checks(device: &Device, extent: Extent) -> usize {
    let sizes = work_groups(device).len();
    let of = |questions: &[Question]| -> usize { questions.iter().map(|q| if q.sizes { sizes } else { 1 }).sum() };
    let single = 1 + of(&questions::<f32>(device, extent));
    if device.info().fp64 { single + 1 + of(&questions::<f64>(device, extent)) } else { single }
}

/// Questions that suit the device.
fn questions<T: Real>(device: &Device, extent: Extent) -> Vec<Question> {
    let mut all = abilities::questions::<T>();
    if extent == Extent::EveryKernel {
        all.extend(battery::<T>());
    }
    all.retain(|question| question.suits(device, T::PRECISION));
    all
}

/// Keeps what was found: a device with faults is ranked last from now on and used only when it is named, until it is found to
/// be well. It holds for this driver and the kernels of this version.
pub fn remember(device: &Device, checks: &[Check]) {
    let faults: Vec<&Check> = checks.iter().filter(|check| check.fault.is_some()).collect();
    let words = faults.first().map(|first| {
        let Check { name, precision, work_group, .. } = first;
        format!(
            "{} of {} checks failed, {name} in {precision} by {work_group} items first",
            faults.len(),
            checks.len()
        )
    });
    if let Ok(kernels) = kernels_checksum() {
        crate::verdict::remember(device.info(), &kernels, words.as_deref());
    }
}

fn examine_in<T: Real>(device: &Device, extent: Extent, keep: &mut dyn FnMut(Check)) {
    let host = Device::host().with_accumulation(device.accumulation(T::PRECISION));
    for Question { name, means, sizes, ask, .. } in questions::<T>(device, extent) {
        let wanted =
            host.as_ref().map_err(ToString::to_string).and_then(|host| ask(host).map_err(|e| e.to_string()));
        let several = if sizes { work_groups(device) } else { vec![device.clone()] };
        for device in &several {
            let found = ask(device).map_err(|e| e.to_string());
            let fault = match (&found, &wanted) {
                (Ok(found), Ok(wanted)) => difference(found, wanted),
                (Err(error), _) | (_, Err(error)) => Some(error.clone()),
            };
            keep(Check { name, precision: T::PRECISION, work_group: device.tuning().work_group, fault, means });
        }
    }
    let fault = largest_allocation::<T>(device).unwrap_or_else(|error| Some(error.to_string()));
    keep(Check {
        name: "the largest allocation",
        precision: T::PRECISION,
        work_group: device.tuning().work_group,
        fault,
        means: "it promises more memory than it gives: use smaller problems than it says it can hold",
    });
}

/// The device with the work-group size it has, and with one as large as it goes.
fn work_groups(device: &Device) -> Vec<Device> {
    let own = device.tuning().work_group;
    let mut sizes = vec![own, largest_power_of_two(device.info().max_work_group.min(1024))];
    sizes.sort_unstable();
    sizes.dedup();
    sizes.iter().filter_map(|size| device.with_work_group(*size).ok()).collect()
}

/// Fills one allocation, as large as it may be, and looks at what arrived.
fn largest_allocation<T: Real>(device: &Device) -> Result<Option<String>> {
    let info = device.info();
    // A CPU's memory is everyone's.
    let most = if info.kind == DeviceKind::Gpu { 4u64 << 30 } else { 1 << 28 };
    let bytes = match (info.largest_allocation, info.memory) {
        (0, _) | (_, 0) => 1 << 24,
        (largest, memory) => largest.min(memory / 8).min(most),
    };
    let n = bytes as usize / T::PRECISION.bytes();
    let ones = Vector::filled(device, n, T::from_f64(1.0))?;
    let (least, greatest) = (ones.min()?, ones.max()?);
    Ok((least != 1.0 || greatest != 1.0)
        .then(|| format!("{n} ones were written, and numbers from {least} to {greatest} are there")))
}

/// Measures a device.
///
/// # Errors
/// [`Error::Memory`](crate::Error::Memory) when two vectors of some size do not fit; what the device reports.
pub fn measure(device: &Device) -> Result<Speed> {
    let mut small = Vector::<f32>::zeros(device, 1)?;
    let launch = measure::time(device, || small.fill(1.0))?.microseconds;
    let read = measure::time(device, || small.to_vec().map(|_| ()))?.microseconds;
    Ok(Speed { copy: measure::copy_bandwidth(device)?, launch, read })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_well() {
        let mut seen = 0;
        let checks = examine(&Device::host(), Extent::Abilities, &mut |_| seen += 1);
        assert_eq!(checks.len(), seen);
        assert_eq!(checks.len(), 20);
        assert_eq!(super::checks(&Device::host(), Extent::Abilities), 20);
        for check in &checks {
            assert_eq!(check.fault, None, "{}", check.name);
        }
        for precision in [Precision::Single, Precision::Double] {
            assert!(checks.iter().any(|check| check.precision == precision && check.work_group == 1));
        }
    }

    #[test]
    fn one_wrong_bit_is_a_difference() {
        let right = [1.0, -0.0, f64::NAN];
        assert_eq!(difference(&right, &right), None);
        assert!(difference(&[1.0, 0.0, f64::NAN], &right).is_some_and(|d| d.contains("number 1 is 0e0, not -0e0")));
        let off = difference(&[1.0 + f64::EPSILON, -0.0, 1.0], &right);
        assert!(off.is_some_and(|d| d.starts_with("2 of 3 numbers are wrong; number 0")));
        assert!(difference(&right[..2], &right).is_some_and(|d| d.contains("2 numbers where 3 belong")));
    }

    #[test]
    fn speeds_are_numbers() {
        let speed = measure(&Device::host()).expect("the host copies");
        assert!(speed.copy > 0.01 && speed.launch > 0.0 && speed.read > 0.0, "{speed:?}");
    }
}
