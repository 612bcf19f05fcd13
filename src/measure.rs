//! Times of work on a device, and the number of allocations: for benchmarks, the tuner and curious users.

use std::time::Instant;

pub use crate::allocations::allocations;
use crate::device::Device;
use crate::device_info::DeviceKind;
use crate::error::Result;
use crate::vector::Vector;

/// Time of one launch, or one call, of many that are queued one after another: that of the fastest batch.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Timing {
    /// Time of the fastest batch in microseconds: whatever else the machine does only adds to it.
    pub microseconds: f64,
    /// Slowest batch less fastest, in microseconds per call.
    pub spread: f64,
    /// Calls in a batch.
    pub calls: usize,
}

/// Seconds a batch should take: long against the resolution of clocks and the latency of a launch.
const BATCH: f64 = 4e-3;
const BATCHES: usize = 9;
/// Seconds of work before anything is measured.
const WARM_UP: f64 = 0.02;

/// Microseconds of one of `calls` calls of `queue`, which queues work and does not wait for it.
///
/// # Errors
/// Errors of `queue`, and of the device.
pub fn batch(device: &Device, calls: usize, queue: &mut dyn FnMut() -> Result<()>) -> Result<f64> {
    let clock = Instant::now();
    for _ in 0..calls {
        queue()?;
    }
    device.synchronize()?;
    Ok(clock.elapsed().as_secs_f64() * 1e6 / calls.max(1) as f64)
}

/// Times `queue`, which queues work and does not wait for it.
///
/// It is called for some time to warm up (an idle device runs at a low clock), then in batches of as many calls as take
/// some milliseconds, waiting at the end of each.
///
/// # Errors
/// Errors of `queue`, and of the device.
pub fn time(device: &Device, mut queue: impl FnMut() -> Result<()>) -> Result<Timing> {
    queue()?;
    device.synchronize()?;
    let mut calls = 1;
    loop {
        let seconds = batch(device, calls, &mut queue)? * calls as f64 * 1e-6;
        if seconds >= BATCH || calls >= 4096 {
            break;
        }
        calls = (calls * 2).max((calls as f64 * BATCH / seconds.max(1e-7)) as usize).min(4096);
    }
    let clock = Instant::now();
    while clock.elapsed().as_secs_f64() < WARM_UP {
        batch(device, calls, &mut queue)?;
    }
    let mut times = Vec::with_capacity(BATCHES);
    for _ in 0..BATCHES {
        times.push(batch(device, calls, &mut queue)?);
    }
    times.sort_by(f64::total_cmp);
    Ok(Timing { microseconds: times[0], spread: times[BATCHES - 1] - times[0], calls })
}

/// GB/s of a copy between two large vectors, bytes read and bytes written counted: the yardstick of every product. CPUs copy by one
/// thread; there a kernel that copies is timed too, and the faster of the two counts.
///
/// # Errors
/// [`Error::Memory`](crate::Error::Memory) when the vectors do not fit.
pub fn copy_bandwidth(device: &Device) -> Result<f64> {
    let info = device.info();
    let wanted = if info.kind == DeviceKind::Gpu { 1u64 << 28 } else { 1 << 24 };
    let largest = |limit: u64| if limit == 0 { wanted } else { limit / 16 };
    let n = wanted.min(largest(info.largest_allocation)).min(largest(info.memory)) as usize;
    let source = Vector::<f32>::filled(device, n, 1.0)?;
    let mut target = Vector::<f32>::zeros(device, n)?;
    let mut fastest = time(device, || target.copy_from(&source))?.microseconds;
    if matches!(info.kind, DeviceKind::Cpu | DeviceKind::Host) {
        fastest = fastest.min(time(device, || target.scaled_from(1.0, &source))?.microseconds);
    }
    Ok(8.0 * n as f64 / fastest / 1e3)
}
