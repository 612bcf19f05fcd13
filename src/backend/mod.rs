//! The back ends: groups of operations, each a trait with two implementations.
//!
//! A group is a folder: its trait and data, its host side, its OpenCL side with the kernels it declares. [`Host`] is the
//! reference; [`OpenCl`] launches kernels. Both follow the numerics contract, so that each operation gives the same bits. The rest
//! of the crate meets a group by its function `on`, which hands out the back end of a device.

mod checked;
mod host;
mod opencl;
mod solve_state;
mod sums;
mod widest;

use checked::Checked;
pub(crate) use host::Host;
pub(crate) use opencl::OpenCl;
pub(crate) use solve_state::SolveState;

use std::sync::Arc;

use crate::device_info::DeviceInfo;
use crate::error::Result;
use crate::memory::Place;
use crate::number::{Accumulation, Real};
use crate::ocl::{Context, File, checksum};
use crate::sparse::Entries;
use crate::threads;
use crate::tuning::Tuning;
use product::Stored;

/// Hands out the implementation of a group on the back end of a device, by a function `on`. With `checked` it hands out the
/// [`Checked`] itself, which compares first results with the host.
macro_rules! operations {
    ($operations:ident) => {
        crate::backend::operations!(@ $operations, |checked| &checked.device);
    };
    ($operations:ident, checked) => {
        crate::backend::operations!(@ $operations, |checked| &**checked);
    };
    (@ $operations:ident, |$checked:ident| $device:expr) => {
        crate::number::per_number! {
            /// The operations on this back end.
            pub(crate) fn on<'b, T>(backend: &'b crate::backend::AnyBackend) -> &'b dyn $operations<T> = dispatch;
        }

        fn dispatch<T: crate::number::Real>(backend: &crate::backend::AnyBackend) -> &dyn $operations<T> {
            match backend {
                crate::backend::AnyBackend::Host(host) => host,
                crate::backend::AnyBackend::OpenCl($checked) => $device,
            }
        }
    };
}
pub(crate) use operations;

macro_rules! groups {
    ($($group:ident),+ $(,)?) => {
        $(pub(crate) mod $group;)+

        /// Every file of kernels.
        pub(crate) fn kernel_files() -> impl Iterator<Item = &'static File> {
            [$($group::FILES),+].into_iter().flatten().copied()
        }
    };
}
groups! { vector, pointwise, product, generated, split, rays, fbp, scatter, sweep, block_jacobi, factor_sweep, elimination, parts, polynomial, projection, flow, elements, script, cg, cgnr }

/// Checksum of all kernels as they would be built: for what was measured or found with them.
///
/// # Errors
/// [`Error::File`](crate::Error::File) if `RESIDUUM_CL_DIR` names a folder without them.
pub fn kernels_checksum() -> Result<String> {
    checksum(kernel_files())
}

/// The back end of a device.
#[derive(Debug)]
pub(crate) enum AnyBackend {
    Host(Host),
    // Boxed, because the host back end beside it is small.
    OpenCl(Box<Checked<OpenCl>>),
}

impl AnyBackend {
    pub(crate) fn opencl(context: Arc<Context>) -> Self {
        Self::OpenCl(Box::new(Checked::new(OpenCl::new(context))))
    }

    /// Place of its memory.
    pub(crate) fn place(&self) -> Place {
        match self {
            Self::Host(_) => Place::Host,
            Self::OpenCl(checked) => Place::OpenCl(checked.device.context.clone()),
        }
    }

    /// Does `work`, which queues many launches: on the host by one of the threads that share each of them ([`threads::among_threads`]).
    pub(crate) fn queue<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match self {
            Self::Host(_) => threads::among_threads(work),
            Self::OpenCl(_) => work(),
        }
    }

    /// The OpenCL context, if it has one.
    pub(crate) fn context(&self) -> Option<&Arc<Context>> {
        match self {
            Self::Host(_) => None,
            Self::OpenCl(checked) => Some(&checked.device.context),
        }
    }
}

/// A back end that knows which device it is.
pub(crate) trait Origin {
    fn info(&self) -> &DeviceInfo;
    /// Keeps a fault of the device, so that it is used only if it is named.
    fn distrust(&self, fault: &str);
}

/// Settings of a run: the accumulation, which changes bits, and the tuning, which does not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run<'a> {
    pub(crate) accumulation: Accumulation,
    pub(crate) tuning: &'a Tuning,
    /// Number that no other tuning of this process has.
    pub(crate) tuning_id: u64,
}

/// Key of the launches of one object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PlanKey {
    kernel: &'static str,
    tuning_id: u64,
    accumulation: Accumulation,
    columns: usize,
    /// Number of anything else that its options depend on.
    part: u32,
    /// Storage of the entries of its matrices, which new values may change.
    entries: [Entries; 2],
}

impl PlanKey {
    /// The key for a launch that reads these matrices.
    fn reading<T: Real>(self, a: &Stored<T>, other: &Stored<T>) -> Self {
        Self { entries: [a, other].map(|a| a.arrangement.entries), ..self }
    }
}

impl Run<'_> {
    fn key(&self, kernel: &'static str, columns: usize, part: u32) -> PlanKey {
        let Self { accumulation, tuning_id, .. } = *self;
        PlanKey { kernel, tuning_id, accumulation, columns, part, entries: [Entries::Plain; 2] }
    }
}
