//! Formats in which a matrix is stored, and how each is laid out.

mod arrangement;
mod banded;
mod build;
mod choice;
mod compressed;
mod entries;
mod format;
mod layout;
mod packing;
mod padded;
mod places;
mod profile;
mod sample;
mod structured;

pub(crate) use arrangement::{Arrangement, Kind, STENCIL_HEADER, STENCIL_TABLE, TABLE_HEADER};
pub(crate) use choice::Reader;
pub(crate) use compressed::{LONG_LANES, MIDDLE_LANES, MIDDLE_ROW, SHORT_ROW};
pub(crate) use entries::Entries;
pub(crate) use format::SLICE;
pub(crate) use layout::{Layout, pieces};
pub(crate) use packing::CODE_BITS;
pub(crate) use packing::{Packable, Shape, TABLE, offset_at};
pub(crate) use places::Places;
pub(crate) use sample::{Sample, joined};

pub use format::Format;
pub use layout::Offsets;
pub use packing::Packing;
