//! Matrices on the host: what users bring, before anything is sent to a device.

mod assembly;
mod choice;
mod csr;
#[cfg(feature = "metis")]
mod dissection;
mod equilibration;
mod format;
pub mod gallery;
mod interop;
mod layout;
mod matching;
mod normal;
mod order;
mod partition;
mod pattern;
mod profile;
mod rays;
mod single;

pub(crate) use assembly::RowBlock;
pub(crate) use choice::Reader;
pub use csr::Csr;
pub(crate) use csr::{frobenius, plausible_rows, row_of};
pub use format::Format;
pub use interop::AsCsr;
#[cfg(test)]
pub(crate) use layout::CODE_BITS;
pub(crate) use layout::{
    Arrangement, Entries, Kind, LONG_LANES, Layout, MIDDLE_LANES, MIDDLE_ROW, Packable, Places, SHORT_ROW, SLICE,
    STENCIL_HEADER, STENCIL_TABLE, Shape, TABLE, TABLE_HEADER, offset_at, pieces,
};
pub use layout::{Offsets, Packing};
pub(crate) use matching::structural_rank;
pub use order::{Ordering, Permutation};
pub(crate) use order::{colours, of_symmetric};
pub use partition::Partition;
pub(crate) use rays::{
    BLOCK, FAN_WORDS, MOST_PIXELS, MOST_RAYS, ONE, RAY_WORDS, Ray, Rays, SHEET_WORDS, TILE_RAYS, Tiles, images_len,
};
