//! Bumps that a user adds to a field: drops, dye, pushes.

use super::positive;
use crate::backend::pde::flow::{FLUID, LEFT_OPEN, Splat, UPPER_OPEN};
use crate::error::{Error, Result};
use crate::memory::Memory;
use crate::number::Real;
use crate::vector::Vector;

/// Nodes of a field, one for each cell.
#[derive(Clone, Copy)]
pub(super) enum Nodes {
    /// Middles of cells.
    Middles,
    /// Left faces; those of the first column are walls.
    LeftFaces,
    /// Upper faces; those of the first row are walls.
    UpperFaces,
}

/// `amount (1 - d² / radius²)²` at a distance `d` from a place, up to the radius. Lengths are in cells.
pub(super) struct Bump {
    place: [f64; 2],
    radius: f64,
    amount: f64,
}

impl Bump {
    /// # Errors
    /// [`Error::Option`] for a radius that is not positive, or numbers that are not finite in `T`.
    pub(super) fn new<T: Real>(place: [f64; 2], radius: f64, amount: f64) -> Result<Self> {
        positive("radius", radius)?;
        if !place.iter().chain([&amount]).all(|number| T::from_f64(*number).is_finite()) {
            let reason = format!("{amount} at ({}, {}) is no finite number at a place", place[0], place[1]);
            return Err(Error::Option { name: "amount", reason });
        }
        Ok(Self { place, radius, amount })
    }

    /// Adds the bump to a field on a grid of `[width, height]`, except where `mask` says that there is no fluid.
    pub(super) fn add_to<T: Real>(
        &self,
        field: &mut Vector<T>,
        nodes: Nodes,
        [width, height]: [usize; 2],
        mask: Option<&Memory<u32>>,
    ) -> Result<()> {
        let (node, least, bits) = match nodes {
            Nodes::Middles => ([0.5, 0.5], [0, 0], FLUID),
            Nodes::LeftFaces => ([0.0, 0.5], [1, 0], LEFT_OPEN),
            Nodes::UpperFaces => ([0.5, 0.0], [0, 1], UPPER_OPEN),
        };
        // More on each side: rounding may take a node in.
        let around = |at: f64, least: usize, n: usize| {
            let end = |at: f64| at.clamp(0.0, n as f64) as usize;
            end(at - self.radius - 2.0).max(least)..end(at + self.radius + 2.0)
        };
        let splat = Splat {
            place: self.place.map(T::from_f64),
            node: node.map(T::from_f64),
            inverse: T::from_f64(1.0 / (self.radius * self.radius)),
            amount: T::from_f64(self.amount),
            columns: around(self.place[0], least[0], width),
            rows: around(self.place[1], least[1], height),
            bits,
        };
        let device = field.device().clone();
        device.backend().flow::<T>().splat(device.run::<T>(), width, mask, splat, field.memory_mut())
    }
}
