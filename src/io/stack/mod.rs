//! Volumes of `pictures × rows × columns` numbers, read picture by picture: NumPy arrays, TIFF files of several pictures, folders of TIFF
//! files, and data sets of HDF5 files.
//!
//! TIFF and HDF5 need the features of these names. TIFF: one number for each pixel, integers of 8 to 64 bits or floats. Large stacks of ImageJ are
//! read although only their first picture has a directory in the file. If ImageJ's description in the file has a linear scale, it is applied to
//! pixels of 8 and 16 bits. HDF5: numbers of any kind, compressed or not, in other files too (soft and external links, virtual data sets).

mod array;
#[cfg(feature = "hdf5")]
pub(crate) mod hdf5;
mod open;
mod source;
#[cfg(feature = "tiff")]
pub(crate) mod tiff;

#[cfg(not(feature = "hdf5"))]
pub(crate) use open::without;

pub use source::Stack;
