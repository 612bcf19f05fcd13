//! The OpenCL back end: what every group needs to launch its kernels.

use std::sync::{Arc, Mutex};

use super::run::{Origin, Run};
use crate::device_info::DeviceInfo;
use crate::error::Result;
use crate::kernels::Common;
use crate::memory::Plans;
use crate::number::{Accumulation, Precision, Real, Sum};
use crate::ocl::{Buffer, Context, Prepared, lock};
use crate::reduction::Chunks;
use crate::tuning::{Case, Family, LaunchQuery, Parameters, SizeClass};
use crate::verdict::remember;

/// An opened OpenCL device.
#[derive(Debug)]
pub(crate) struct OpenCl {
    pub(crate) context: Arc<Context>,
    /// Checksum of the kernels that are compared with the host, under which a fault of the device is kept.
    kernels_checksum: fn() -> Result<String>,
    /// Kernels of operations on vectors, which belong to no longer-lived object.
    kernels: Plans<KernelKey, Prepared>,
    /// Chunk sums and result of the reductions that users ask for, made on first use.
    pub(super) scratch: Mutex<Option<[Buffer<Sum>; 2]>>,
    /// A buffer of one word, for kernels that are given none, made on first use.
    #[cfg(any(feature = "fem", feature = "simulation"))]
    words: Mutex<Option<Arc<Buffer<u32>>>>,
    /// Partial results of the groups of a product, made on first use.
    partial: Mutex<Option<Buffer<Sum>>>,
}

/// Key of the kernels of a device.
#[derive(Clone, Copy, Debug, PartialEq)]
struct KernelKey {
    kernel: &'static str,
    precision: Precision,
    accumulation: Accumulation,
    work_group: usize,
    lanes: usize,
    part: u32,
}

impl Origin for OpenCl {
    fn info(&self) -> &DeviceInfo {
        self.context.info()
    }

    fn distrust(&self, fault: &str) {
        if let Ok(kernels) = (self.kernels_checksum)() {
            remember(self.context.info(), &kernels, Some(fault));
        }
    }
}

/// Local memory for a part of a vector.
pub(super) const PART_BYTES: usize = 16 << 10;

impl OpenCl {
    pub(super) fn new(context: Arc<Context>, kernels_checksum: fn() -> Result<String>) -> Self {
        Self {
            context,
            kernels_checksum,
            kernels: Plans::default(),
            scratch: Mutex::new(None),
            #[cfg(any(feature = "fem", feature = "simulation"))]
            words: Mutex::new(None),
            partial: Mutex::new(None),
        }
    }

    /// Does `work` with a buffer of at least `len` partial results, which nobody else gets meanwhile.
    pub(super) fn with_partial<R>(
        &self,
        len: usize,
        work: impl FnOnce(&mut Buffer<Sum>) -> Result<R>,
    ) -> Result<R> {
        let mut partial = lock(&self.partial);
        match &mut *partial {
            Some(buffer) if buffer.len() >= len => work(buffer),
            // Filled, although kernels write what they read: Oclgrind 21 forgets what kernels write to memory that was given back and lent
            // again.
            small => work(small.insert(Buffer::filled(&self.context, len, Sum::default())?)),
        }
    }

    /// Options of a kernel whose items wait for each other, for one column.
    pub(super) fn common<T: Real>(&self, run: Run<'_>, work_group: usize, lanes: usize) -> Common {
        Common {
            precision: T::PRECISION,
            accumulation: run.accumulation,
            work_group: self.context.synchronised(work_group),
            lanes,
            columns: 1,
            registers: 0,
        }
    }

    pub(super) fn parameters(&self, run: Run<'_>, asked: &LaunchQuery) -> Parameters {
        run.tuning.parameters(asked, self.context.info())
    }

    /// Launch parameters of a kernel over `chunks` that multiplies nothing.
    pub(super) fn plain<T: Real>(&self, run: Run<'_>, family: Family, chunks: Chunks) -> Parameters {
        let case = Case { family, reading: None, precision: T::PRECISION, size: SizeClass::of(chunks.len) };
        let asked = LaunchQuery { case, n: chunks.len, chunk: chunks.chunk, shared: 0, longest: 0, columns: 1 };
        self.parameters(run, &asked)
    }

    /// Options, groups and elements of a group for a kernel without barriers over `n` elements: any group size will do, on any
    /// driver.
    pub(super) fn without_barriers<T: Real>(&self, run: Run<'_>, n: usize) -> (Common, usize, usize) {
        let chunks = Chunks::of(n);
        let found = self.plain::<T>(run, Family::Vector, chunks);
        let (groups, per_group) = found.share(chunks, self.units());
        let common = Common { work_group: found.work_group, ..self.common::<T>(run, found.work_group, 1) };
        (common, groups, per_group * chunks.chunk)
    }

    /// A buffer for kernels that are given no words.
    #[cfg(any(feature = "fem", feature = "simulation"))]
    pub(super) fn no_words(&self) -> Result<Arc<Buffer<u32>>> {
        let mut words = lock(&self.words);
        Ok(match &*words {
            Some(buffer) => buffer.clone(),
            None => words.insert(Arc::new(Buffer::filled(&self.context, 1, 0)?)).clone(),
        })
    }

    pub(super) fn units(&self) -> usize {
        self.context.info().compute_units
    }

    /// A kernel that belongs to the device, prepared when it is asked for first; `part` is whatever its options depend on beside
    /// those of all.
    pub(super) fn kernel(
        &self,
        kernel: &'static str,
        common: Common,
        part: u32,
        prepare: impl FnOnce() -> Result<Prepared>,
    ) -> Result<Prepared> {
        let Common { precision, accumulation, work_group, lanes, .. } = common;
        self.kernels.get(KernelKey { kernel, precision, accumulation, work_group, lanes, part }, prepare)
    }
}
