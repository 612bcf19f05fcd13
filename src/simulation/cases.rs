//! Flows whose answer is known.

use super::flow::Flow;
use super::flow_setup::{FlowSetup, Interpolation, Trace, Wall};
use crate::error::{Error, Result};
use crate::number::{Real, per_number};

/// Place along a centre line, from 0 to 1, and the velocity across or along it, which depends on the case.
pub type Profile = [(f64, f64); 17];

/// `u` along the vertical centre line (from the lower wall up) and `v`, upwards, along the horizontal one (from the left wall), of a
/// lid-driven cavity at steady state.
///
/// Source: U. Ghia, K. N. Ghia, C. T. Shin, "High-Re solutions for incompressible flow using the Navier-Stokes equations and a multigrid
/// method", J. Comput. Phys. 48, 1982, tables I and II.
pub fn ghia(reynolds: f64) -> Option<[Profile; 2]> {
    let along = |places: [f64; 17], values: [f64; 17]| std::array::from_fn(|k| (places[k], values[k]));
    let y = [
        0.0, 0.0547, 0.0625, 0.0703, 0.1016, 0.1719, 0.2813, 0.4531, 0.5, 0.6172, 0.7344, 0.8516, 0.9531, 0.9609,
        0.9688, 0.9766, 1.0,
    ];
    let x = [
        0.0, 0.0625, 0.0703, 0.0781, 0.0938, 0.1563, 0.2266, 0.2344, 0.5, 0.8047, 0.8594, 0.9063, 0.9453, 0.9531,
        0.9609, 0.9688, 1.0,
    ];
    if reynolds == 100.0 {
        let u = [
            0.0, -0.03717, -0.04192, -0.04775, -0.06434, -0.10150, -0.15662, -0.21090, -0.20581, -0.13641, 0.00332,
            0.23151, 0.68717, 0.73722, 0.78871, 0.84123, 1.0,
        ];
        let v = [
            0.0, 0.09233, 0.10091, 0.10890, 0.12317, 0.16077, 0.17507, 0.17527, 0.05454, -0.24533, -0.22445,
            -0.16914, -0.10313, -0.08864, -0.07391, -0.05906, 0.0,
        ];
        return Some([along(y, u), along(x, v)]);
    }
    if reynolds == 1000.0 {
        let u = [
            0.0, -0.18109, -0.20196, -0.22220, -0.29730, -0.38289, -0.27805, -0.10648, -0.06080, 0.05702, 0.18719,
            0.33304, 0.46604, 0.51117, 0.57492, 0.65928, 1.0,
        ];
        let v = [
            0.0, 0.27485, 0.29012, 0.30353, 0.32627, 0.37095, 0.33075, 0.32235, 0.02526, -0.31966, -0.42665,
            -0.51550, -0.39188, -0.33714, -0.27669, -0.21388, 0.0,
        ];
        return Some([along(y, u), along(x, v)]);
    }
    None
}

/// A lid-driven cavity: the unit square in `side * side` cells, its upper wall moving to the right at velocity 1, with cubic interpolation
/// and the midpoint rule. The time step is what the viscosity allows, at most half a cell.
pub fn cavity<T: Real>(side: usize, reynolds: f64) -> FlowSetup {
    let cell = 1.0 / side as f64;
    let viscosity = 1.0 / reynolds;
    let step = (0.2 * cell * cell / viscosity).min(0.5 * cell);
    FlowSetup {
        wall: Wall::NoSlip { lid: 1.0 },
        interpolation: Interpolation::Cubic,
        trace: Trace::Midpoint,
        ..FlowSetup::new::<T>([side, side], cell, step, viscosity)
    }
}

/// The vortex `u = sin(pi x) cos(pi y)`, `v = -cos(pi x) sin(pi y)` in the unit square, along whose walls it slips: it keeps its shape
/// and decays as [`taylor_green_decay`]. In `side * side` cells, with cubic interpolation and the midpoint rule and a time step of a fifth
/// of `cell² / viscosity`, at most half a cell. The velocity is that of [`taylor_green_velocity`].
///
/// Source: G. I. Taylor, A. E. Green, Proc. R. Soc. Lond. A 158, 1937.
pub fn taylor_green<T: Real>(side: usize, viscosity: f64) -> FlowSetup {
    let cell = 1.0 / side as f64;
    let step = (0.2 * cell * cell / viscosity).min(0.5 * cell);
    FlowSetup {
        wall: Wall::FreeSlip,
        interpolation: Interpolation::Cubic,
        trace: Trace::Midpoint,
        ..FlowSetup::new::<T>([side, side], cell, step, viscosity)
    }
}

/// Velocity at which [`taylor_green`] begins.
pub fn taylor_green_velocity(x: f64, y: f64) -> [f64; 2] {
    use std::f64::consts::PI;
    [libm::sin(PI * x) * libm::cos(PI * y), -libm::cos(PI * x) * libm::sin(PI * y)]
}

/// Factor of that velocity after a time: `exp(-2 pi² viscosity time)`.
pub fn taylor_green_decay(viscosity: f64, time: f64) -> f64 {
    libm::exp(-2.0 * std::f64::consts::PI * std::f64::consts::PI * viscosity * time)
}

per_number! {
    /// Velocities along the centre lines of a box with the lid on top: `u` along the vertical one, from the lower wall up, and `v`,
    /// upwards, along the horizontal one, from the left wall; with those of the walls. Places from 0 to 1.
    ///
    /// # Errors
    /// [`Error::Option`] for an odd number of cells along a side, whose middle no face meets; [`Error::Api`].
    pub fn centre_lines<T>(flow: &Flow<T>) -> Result<[Vec<(f64, f64)>; 2]> = centre_lines_here;
}

fn centre_lines_here<T: Real>(flow: &Flow<T>) -> Result<[Vec<(f64, f64)>; 2]> {
    let [width, height] = flow.setup().size;
    if !width.is_multiple_of(2) || !height.is_multiple_of(2) {
        return Err(Error::Option {
            name: "size",
            reason: format!("{width} x {height}: centre lines need even sides"),
        });
    }
    let [u, v] = flow.velocity();
    let (u, v) = (u.to_vec()?, v.to_vec()?);
    let lid = match flow.setup().wall {
        Wall::NoSlip { lid } => lid,
        Wall::FreeSlip => u[width / 2].to_f64(),
    };
    let middle = |k: usize, n: usize| (k as f64 + 0.5) / n as f64;
    let up = (0..height).map(|k| (middle(k, height), u[(height - 1 - k) * width + width / 2].to_f64()));
    let right = (0..width).map(|k| (middle(k, width), -v[height / 2 * width + k].to_f64()));
    let with_walls = |inner: Vec<(f64, f64)>, end: f64| [vec![(0.0, 0.0)], inner, vec![(1.0, end)]].concat();
    Ok([with_walls(up.collect(), lid), with_walls(right.collect(), 0.0)])
}

/// Value of a line of points, in ascending order, between two of them.
fn between(line: &[(f64, f64)], at: f64) -> f64 {
    let k = line.partition_point(|point| point.0 < at).clamp(1, line.len() - 1);
    let ((x0, y0), (x1, y1)) = (line[k - 1], line[k]);
    y0 + (at - x0) / (x1 - x0) * (y1 - y0)
}

/// Greatest differences of the centre lines of a cavity from those of [`ghia`], in units of the lid's velocity.
///
/// # Errors
/// [`Error::Option`] for a Reynolds number that is not in the tables; as [`centre_lines`].
pub fn differences_from_ghia<T: Real>(flow: &Flow<T>, reynolds: f64) -> Result<[f64; 2]> {
    let Some(tables) = ghia(reynolds) else {
        return Err(Error::Option {
            name: "reynolds",
            reason: format!("{reynolds}: the tables have 100 and 1000"),
        });
    };
    let lines = centre_lines(flow)?;
    let greatest = |k: usize| {
        let differences = tables[k].iter().map(|(at, value)| (between(&lines[k], *at) - value).abs());
        differences.fold(0.0, f64::max)
    };
    Ok([greatest(0), greatest(1)])
}
