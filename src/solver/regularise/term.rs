//! A correction as launches take it.

use super::correction::{Correction, check_widths};
use super::penalty::Penalty;
use crate::backend::script::{CgnrOps, CorrectionTerm, Edges};
use crate::device::Device;
use crate::error::Result;
use crate::number::{Real, Sum};
use crate::solver::method::Method;
use crate::solver::script::Neighbours;
use crate::state::correction::{BOX, EPSILON2, LOWER, SMOOTH, TIKHONOV, UPPER, VARIATION, WEIGHTS};
use crate::vector::Vector;

/// Fails on corrections that cannot be meant, or that differ although all columns must agree. Returns the image that they see.
pub(crate) fn edges_of(corrections: &[Correction], cols: usize) -> Result<Edges> {
    for correction in corrections {
        correction.validate(Method::Cgnr, cols)?;
    }
    let width = corrections.iter().map(|c| c.width).max().unwrap_or(0);
    check_widths(corrections, width, |correction| correction.edges() > 0)?;
    Ok(Edges { width, edges: corrections.iter().map(Correction::edges).max().unwrap_or(0) })
}

/// The weights of a correction, in the order of [`correction`](crate::state::correction).
pub(crate) fn weights_of(correction: &Correction) -> [f64; WEIGHTS] {
    // A column without total variation beside one that has it: 0 times phi must be 0.
    let epsilon = if correction.variation > 0.0 { correction.epsilon } else { 1.0 };
    let mut weights = [0.0; WEIGHTS];
    for (field, value) in [
        (TIKHONOV, correction.tikhonov),
        (SMOOTH, correction.smooth),
        (VARIATION, correction.variation),
        (EPSILON2, epsilon * epsilon),
        (BOX, correction.bound_weight),
        (LOWER, correction.lower),
        (UPPER, correction.upper),
    ] {
        weights[field] = value;
    }
    weights
}

/// A correction as a penalty: for CGNR with a preconditioner, whose unknowns are not those of the correction.
pub(crate) struct Corrected {
    device: Device,
    term: CorrectionTerm,
    norm_bound: f64,
}

impl Corrected {
    /// The correction of one image of `cols` pixels, in the precision `T`.
    pub(crate) fn new<T: Real>(device: &Device, correction: &Correction, cols: usize) -> Result<Self> {
        let image = edges_of(std::slice::from_ref(correction), cols)?;
        let accumulation = device.run::<T>().accumulation;
        let weights = weights_of(correction).iter().map(|weight| Sum::of(*weight, accumulation)).collect();
        let term = CorrectionTerm::new(&device.place(), image, weights)?;
        Ok(Self { device: device.clone(), term, norm_bound: correction.weight(Method::Cgnr) })
    }

    fn ask<T: Real>(&self, x: &Vector<T>, v: Option<&Vector<T>>, out: &mut Vector<T>) -> Result<()> {
        let run = self.device.run::<T>();
        let operations: &dyn CgnrOps<T> = self.device.backend().cgnr();
        operations.cgnr_correction(run, &self.term, x.memory(), v.map(Vector::memory), out.memory_mut())
    }
}

impl<T: Real> Penalty<T> for Corrected {
    fn gradient(&mut self, x: &Vector<T>, out: &mut Vector<T>) -> Result<()> {
        self.ask(x, None, out)
    }

    fn has_curvature(&self) -> bool {
        true
    }

    fn curvature(&mut self, x: &Vector<T>, v: &Vector<T>, out: &mut Vector<T>) -> Result<()> {
        self.ask(x, Some(v), out)
    }

    fn norm_bound(&self) -> f64 {
        self.norm_bound
    }
}

/// Fails on corrections that cannot be meant, that `method` does not minimise, or that differ although all columns must agree.
pub(crate) fn check_corrections(method: Method, corrections: &[Correction], cols: usize) -> Result<()> {
    match method {
        Method::Cgnr => edges_of(corrections, cols).map(|_| ()),
        _ => {
            corrections.iter().try_for_each(|correction| correction.validate(method, cols))?;
            check_widths(corrections, Neighbours::of(corrections).width, Correction::has_neighbours)
        }
    }
}
