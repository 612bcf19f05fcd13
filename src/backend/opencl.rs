//! The OpenCL back end: what every group needs to launch its kernels.

use std::sync::{Arc, Mutex};

use super::product::Stored;
use super::{Origin, Run, kernels_checksum};
use crate::device_info::DeviceInfo;
use crate::error::Result;
use crate::kernels::{Common, MatrixOptions};
use crate::memory::Plans;
use crate::number::{Accumulation, Precision, Real, Sum};
use crate::ocl::{Buffer, Context, Prepared, lock};
use crate::reduction::Chunks;
use crate::sparse::{Kind, LONG_LANES, MIDDLE_LANES};
use crate::tuning::{AccessPattern, Case, Family, LaunchQuery, Parameters, SizeClass};
use crate::verdict::remember;

/// Least mean entries of a row for which a vector is copied to local memory.
const LEAST_GATHERED: usize = 8;

/// An opened OpenCL device.
#[derive(Debug)]
pub(crate) struct OpenCl {
    pub(crate) context: Arc<Context>,
    /// Kernels of operations on vectors, which belong to no longer-lived object.
    kernels: Plans<KernelKey, Prepared>,
    /// Chunk sums and result of the reductions that users ask for, made on first use.
    pub(super) scratch: Mutex<Option<[Buffer<Sum>; 2]>>,
    /// A buffer of one word, for kernels that are given none, made on first use.
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
        if let Ok(kernels) = kernels_checksum() {
            remember(self.context.info(), &kernels, Some(fault));
        }
    }
}

/// Local memory for a part of a vector.
pub(super) const PART_BYTES: usize = 16 << 10;

/// Tells if a format lies by columns, in the order of its rows.
fn is_by_columns(kind: Kind) -> bool {
    matches!(kind, Kind::EllpackR | Kind::Ellpack | Kind::Sliced)
}

impl OpenCl {
    pub(super) fn new(context: Arc<Context>) -> Self {
        Self {
            context,
            kernels: Plans::default(),
            scratch: Mutex::new(None),
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

    /// Options and launch parameters of a kernel that multiplies by `a` in chunks of `chunk` rows and reduces in `lanes` lanes; for
    /// work on `n` rows in all.
    pub(super) fn rows<T: Real>(
        &self,
        run: Run<'_>,
        family: Family,
        a: &Stored<T>,
        n: usize,
        cut: [usize; 2],
        columns: usize,
    ) -> (Common, MatrixOptions, Parameters) {
        let reading = AccessPattern::of(a.arrangement.kind, a.arrangement.lanes);
        self.rows_read(run, (family, reading), a, n, cut, columns)
    }

    /// [`OpenCl::rows`] with the way of reading.
    pub(super) fn rows_read<T: Real>(
        &self,
        run: Run<'_>,
        (family, reading): (Family, AccessPattern),
        a: &Stored<T>,
        n: usize,
        [chunk, lanes]: [usize; 2],
        columns: usize,
    ) -> (Common, MatrixOptions, Parameters) {
        let arrangement = a.arrangement;
        let shared = match a.longer {
            // Neighbouring items take neighbouring rows, 32 of them at once.
            [0, 0] if arrangement.kind == Kind::Dense => 32 * arrangement.lanes,
            [0, 0] => arrangement.lanes,
            [_, 0] => MIDDLE_LANES,
            _ => LONG_LANES,
        };
        let case = Case { family, reading: Some(reading), precision: T::PRECISION, size: SizeClass::of(n) };
        let found = self.parameters(run, &LaunchQuery { case, n, chunk, shared, longest: a.longest, columns });
        let common =
            Common { columns, registers: found.registers, ..self.common::<T>(run, found.work_group, lanes) };
        let matrix = MatrixOptions::of(arrangement, found.loads);
        (common, matrix, found.in_groups_of(common.work_group))
    }

    /// Places of local memory for the vector of a product, if each group should copy it there: if it fits, and if neighbouring items gather
    /// from it often enough.
    ///
    /// Measured on an H200: with 2048 to 4096 columns, rows of 10 to 40 entries take .73 to .90 of the time in fp32, and .91 to 1.02
    /// in fp64 with 512 to 2048. A vector of 32 KiB takes 1.08 to 1.16, rows of 5 entries take .95 to 1.08.
    pub(super) fn places_to_stage<T: Real>(&self, run: Run<'_>, a: &Stored<T>, columns: usize) -> Option<usize> {
        // Powers of two: one program serves many sizes.
        let places = (a.cols * columns).next_power_of_two();
        let (items, mean) = (run.tuning.work_group, a.places / a.rows.max(1));
        let (bytes, sums) = (places * T::PRECISION.bytes(), columns * items * size_of::<Sum>());
        let info = self.context.info();
        let fits = run.tuning.may_stage(bytes, info) && (bytes + sums) as u64 <= info.local_memory;
        let by_columns = a.arrangement.kind == Kind::Sorted || is_by_columns(a.arrangement.kind);
        let gathers = mean >= LEAST_GATHERED && 2 * mean * items.min(a.rows) >= a.cols;
        (by_columns && fits && gathers).then_some(places)
    }

    /// Places of local memory for a part of the vector of a product that is copied part by part, in formats that can do that: 16 KiB, as in the paper.
    pub(super) fn places_of_part<T: Real>(&self, a: &Stored<T>, columns: usize, work_group: usize) -> usize {
        let places = PART_BYTES / T::PRECISION.bytes();
        let bytes = (PART_BYTES + columns * work_group * size_of::<Sum>()) as u64;
        let fits = bytes <= self.context.info().local_memory && work_group > 1;
        if fits && is_by_columns(a.arrangement.kind) { places } else { 0 }
    }

    /// Chunks of a group in a resident launch that multiplies by `a`: the same number for every group, as many as it can work on side
    /// by side or a multiple. Lanes that share a row keep all items busy with one chunk.
    pub(super) fn resident_share<T: Real>(
        &self,
        run: Run<'_>,
        chunks: Chunks,
        work_group: usize,
        a: &Stored<T>,
    ) -> usize {
        let row_lanes = if work_group > 1 { a.arrangement.lanes } else { 1 };
        let at_once = (work_group / chunks.lanes / row_lanes).max(1);
        chunks.count.div_ceil(run.tuning.resident_groups.max(1)).next_multiple_of(at_once).max(1)
    }

    /// A buffer for kernels that are given no words.
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
