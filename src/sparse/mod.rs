//! Matrices on the host: what users bring, before anything is sent to a device.

mod assembly;
mod checksum;
pub(crate) mod csr;
mod equilibration;
pub(crate) mod formats;
pub mod gallery;
mod graph;
pub(crate) mod interop;
mod normal;
mod pattern;
mod rounding;

pub(crate) use assembly::RowBlock;
pub(crate) use csr::Csr;
pub(crate) use csr::{frobenius, plausible_rows, row_of};
pub(crate) use formats::CODE_BITS;
pub(crate) use formats::Format;
pub(crate) use formats::Reader;
pub(crate) use formats::{
    Arrangement, Entries, Kind, LONG_LANES, Layout, MIDDLE_LANES, MIDDLE_ROW, Packable, Places, SHORT_ROW, SLICE,
    STENCIL_HEADER, STENCIL_TABLE, Sample, Shape, TABLE, TABLE_HEADER, joined, offset_at, pieces,
};
pub(crate) use formats::{Offsets, Packing};
pub use graph::Partition;
pub(crate) use graph::structural_rank;
pub use graph::{Ordering, Permutation};
pub(crate) use graph::{colours, of_symmetric};
pub(crate) use interop::AsCsr;
