//! Kernels of scans: traced rays, filtered back-projection.

use super::question::{Question, noise, solution};
use crate::device::Device;
use crate::error::Result;
use crate::imaging::{Beam, Fbp, Filter, Grid, Scanner};
use crate::number::Real;
use crate::solver::{Method, Setup, Stopping};

pub(super) fn questions<T: Real>() -> Vec<Question> {
    vec![Question::of("traced rays", traced::<T>), Question::of("filtered back-projections", back_projections::<T>)]
}

const GRID: Grid = Grid { side: 11, pixel: 1.0 };

fn scanner(beam: Beam) -> Scanner {
    Scanner { beam, pixels: 9, pitch: 2.0, offset: 0.3, angles: vec![10.0, 50.0, 80.0] }
}

fn fan() -> Beam {
    Beam::Fan { source_origin: 40.0, source_detector: 60.0 }
}

fn traced<T: Real>(device: &Device) -> Result<Vec<f64>> {
    let rays = scanner(fan()).projector::<T>(device, GRID)?;
    solution(device, &rays, Setup::new(Method::Cgnr, Stopping::after(2)), 8)
}

fn back_projections<T: Real>(device: &Device) -> Result<Vec<f64>> {
    let mut found = Vec::new();
    for beam in [Beam::Parallel, fan()] {
        let mut fbp = Fbp::<T>::new(device, &scanner(beam), GRID, Filter::Hann)?;
        found.extend(fbp.reconstruct(&noise::<T>(27, 12))?.iter().map(|v| v.to_f64()));
    }
    Ok(found)
}
