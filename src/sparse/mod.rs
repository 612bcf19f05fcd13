//! Matrices on the host: what users bring, before anything is sent to a device.

mod assembly;
mod choice;
mod csr;
mod format;
pub mod gallery;
mod interop;
mod layout;
mod profile;
mod rays;

pub(crate) use choice::Reader;
pub use csr::Csr;
pub(crate) use csr::plausible_rows;
pub use format::Format;
pub use layout::Offsets;
pub(crate) use layout::{
    Arrangement, Kind, LONG_LANES, Layout, MIDDLE_LANES, MIDDLE_ROW, SHORT_ROW, SLICE, STENCIL_HEADER,
};
pub(crate) use rays::{
    BLOCK, FAN_WORDS, MOST_PIXELS, MOST_RAYS, ONE, RAY_WORDS, Ray, Rays, SHEET_WORDS, Tiles, images_len,
};
