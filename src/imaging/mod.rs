//! Images from sensor data: [`Scan`] (readings with their scanner), [`System`] (the matrix of a scanner and a grid),
//! [`Reconstructor`] (regularised CGNR, frame after frame), [`Image`] (pixels, report, comparison).

mod htc;
mod image;
mod phantom;
mod projector;
mod quality;
mod reconstructor;
mod regularizer;
mod scan;
mod scanner;
mod system;

pub use image::{Image, read_reference};
pub use phantom::{Ellipse, Noise, Phantom};
pub use quality::{Quality, resample};
pub use reconstructor::{Reconstruction, Reconstructor};
pub use regularizer::Regularizer;
pub use scan::{Geometry, Scan};
pub use scanner::{Beam, Grid, Scanner};
pub use system::System;
