//! Images from sensor data: scanners, the matrix of a scan, regularised reconstruction, and how good the picture is.

mod htc;
mod phantom;
mod projector;
mod quality;
mod reconstruction;
mod scanner;

pub use htc::{read_reference, read_scan};
pub use phantom::{Ellipse, Noise, Phantom};
pub use quality::{Quality, resample};
pub use reconstruction::{Phases, Reconstruction, Regularizer, Solution, reconstruct};
pub use scanner::{Beam, Grid, Scan, Scanner};
