//! Kernels of finite elements.

use super::question::{Question, product};
use crate::device::Device;
use crate::error::Result;
use crate::fem::{Mesh, Space};
use crate::number::Real;

pub(super) fn questions<T: Real>() -> Vec<Question> {
    vec![Question::of("finite elements", elements::<T>)]
}

/// Several degrees, with hanging nodes, boxes and mapped cells.
fn elements<T: Real>(device: &Device) -> Result<Vec<f64>> {
    let mut mesh = Mesh::boxes([2, 1, 1], [[0.0, 1.0]; 3])?;
    let _ = mesh.refine(|cell| cell.middle()[0] < 0.5)?;
    mesh.set_degrees(|cell| if cell.middle()[1] < 0.5 { 3 } else { 2 })?;
    let mapped = mesh.clone().mapped(|x| (x.map(|x| 2.0 * x), [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]]));
    let mut found = Vec::new();
    for mesh in [mesh, mapped] {
        let space = Space::with_boundary(&mesh, |x| x[1] == 0.0)?;
        found.extend(product(device, &space.operator::<T>(device)?, 8)?);
    }
    Ok(found)
}
