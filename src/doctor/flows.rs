//! Kernels of flows.

use super::question::{Question, numbers};
use crate::device::Device;
use crate::error::Result;
use crate::number::Real;
use crate::simulation::{Flow, FlowSetup, Interpolation, Obstacles, Trace};
use crate::solver::Stopping;

pub(super) fn questions<T: Real>() -> Vec<Question> {
    vec![Question::of("flows", flows::<T>)]
}

/// Steps of both interpolations, with pushes and dye, with obstacles and without.
fn flows<T: Real>(device: &Device) -> Result<Vec<f64>> {
    let obstacles = Obstacles::new([11, 9], (0..99).map(|c| c == 40 || c == 41 || c == 52).collect())?;
    let rules =
        [(Interpolation::Linear, Trace::Euler, None), (Interpolation::Cubic, Trace::Midpoint, Some(obstacles))];
    let mut found = Vec::new();
    for (interpolation, trace, obstacles) in rules {
        let mut setup = FlowSetup::new::<T>([11, 9], 1.0 / 9.0, 0.05, 1e-3);
        (setup.interpolation, setup.trace, setup.obstacles) = (interpolation, trace, obstacles);
        setup.stopping = Stopping::after(2);
        let mut flow = Flow::<T>::new(device, setup)?;
        for _ in 0..2 {
            flow.push([4.0, 5.0], 3.0, [1.0, -2.0])?;
            flow.inject([4.0, 5.0], 3.0, 1.0)?;
            let _ = flow.step()?;
        }
        let [u, v] = flow.velocity();
        for field in [u, v, flow.pressure(), flow.dye()] {
            found.extend(numbers(field)?);
        }
    }
    Ok(found)
}
