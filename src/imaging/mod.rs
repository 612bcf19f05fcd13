//! Images from sensor data: [`Counts`] (what a detector counted), [`Scan`] (readings with their scanner), [`System`] (the matrix of a scanner and a grid),
//! [`Reconstructor`] (regularised least squares, frame after frame), [`Image`] (pixels, report, comparison).
//!
//! ```
//! use residuum::imaging::{Beam, Noise, Phantom, Reconstruction, Reconstructor, Scanner, System};
//! use residuum::{Device, Format};
//!
//! let angles = (0..60).map(|k| 3.0 * f64::from(k)).collect();
//! let scanner = Scanner { beam: Beam::Parallel, pixels: 64, pitch: 1.0, offset: 0.0, angles };
//! let noise = Noise { photons: 1e5, gain: 0.0, seed: 1 };
//! let scan = Phantom::plate().scan(&scanner, scanner.field(), noise)?; // or Scan::read, from a file
//! let system = System::<f32>::new(&Device::best()?, &scanner, scan.grid(48), Format::Auto)?;
//! let mut reconstructor = Reconstructor::new(&system, Reconstruction::of_scans::<f32>(), 1)?;
//! let image = reconstructor.reconstruct(&[&scan])?.remove(0); // call it again for the next frame
//! assert!(image.compare(&Phantom::plate().image(scan.grid(48)))?.correlation > 0.9);
//! # Ok::<(), residuum::Error>(())
//! ```
//!
//! # Coordinates
//!
//! The image lies centred at the origin. `x` runs to the right, `y` upwards; row 0 is on top. Pixel `(i, j)` of a grid of side `n`
//! and pixel length `h` is at
//!
//! ```text
//!   x = (j - (n - 1) / 2) h,   y = ((n - 1) / 2 - i) h
//! ```
//!
//! Angles grow anticlockwise. In the view at angle `t` the detector runs along `e`, and parallel rays run along `v`. The source of a fan is
//! at `-source_origin v`. Its detector crosses the line from the source through the origin at the distance `source_detector` from
//! the source.
//!
//! ```text
//!                 ____________             e = (cos t, sin t)
//!   y            | detector    ---> e      v = (-sin t, cos t)
//!   ^            |     ^
//!   |            |     | v                 ray of pixel k of m, parallel beam:
//!   +---> x      |   origin                  (k - (m - 1) / 2 + offset) pitch e + s v
//!                |     ^
//!                |  source                 at t = 0 the source is below, pixel 0 sees the left edge
//! ```
//!
//! A flat detector of a fan ([`Beam::Fan`]) has its pixel `k` at `(k - (m - 1) / 2 + offset) pitch` from that crossing, along `e`. A curved
//! one ([`Beam::Curved`]) lies on the circle of radius `source_detector` about the source. Its pixel `k` is that far from the crossing
//! along the circle: its ray makes the angle `(k - (m - 1) / 2 + offset) pitch / source_detector` with the line through the origin.
//! [`Vectors`] describe each view by numbers of its own.
//!
//! # Line integrals
//!
//! Rays are integrated by Joseph's method. A ray nearer to the vertical takes one step for each row of the image, another one for each
//! column. A step interpolates linearly between the two nearest pixels. The product with the adjoint is that with the transposed
//! matrix: it has the same entries, to the bit.
//!
//! Source: P. M. Joseph, "An improved algorithm for reprojecting rays through pixel images", IEEE Trans. Med. Imaging 1(3), 1982.

mod angles;
mod axis;
mod bad_pixels;
mod count_files;
mod counts;
mod disc;
mod doubt;
mod edges;
mod fbp;
mod fields;
mod flip;
mod geometry;
mod htc;
mod image;
mod parts;
mod phantom;
mod pose;
mod projected;
mod projector;
mod quality;
mod reconstruction;
mod reconstructor;
mod refusals;
mod regularizer;
mod scan;
mod scan_files;
mod scanner;
mod segment;
mod system;
mod vectors;

pub use angles::{AngleUnit, read_angles};
pub use bad_pixels::{BadPixel, BadPixels, Fault};
pub use count_files::{CountFiles, Field, Order};
pub use counts::{CountReader, Counts, Integrals};
pub use disc::Disc;
pub use doubt::Doubt;
pub use fbp::{Fbp, Filter};
pub use flip::Flip;
pub use geometry::{Angles, Geometry};
pub use image::{Image, Region, Window, read_reference};
#[cfg(feature = "tiff")]
pub use image::{TiffPixels, write_tiff, write_tiff_as};
pub use phantom::{Ellipse, Noise, Phantom};
pub use projector::Projector;
pub use quality::{Quality, resample};
pub use reconstruction::Reconstruction;
pub use reconstructor::Reconstructor;
pub use regularizer::Regularizer;
pub use scan::Scan;
pub use scanner::{Beam, Grid, Scanner};
pub use segment::Segmentation;
pub use system::System;
pub use vectors::Vectors;
