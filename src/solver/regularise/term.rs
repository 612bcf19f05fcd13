//! A correction as launches take it.

use super::correction::{Correction, check_widths};
use super::penalty::Penalty;
use crate::backend::fused::cgnr::{CgnrOps, CgnrShape, CorrectionTerm, Part};
use crate::device::Device;
use crate::error::Result;
use crate::number::{Accumulation, Real, Sum};
use crate::solver::method::Method;
use crate::solver::script::Neighbours;
use crate::state::cgnr::{BOX, CONTROL, EPSILON2, LOWER, SMOOTH, TIKHONOV, UPPER, VARIATION};
use crate::vector::Vector;

/// Fails on corrections that cannot be meant, or that differ although all columns must agree. Returns how launches see them.
pub(crate) fn shape_of(corrections: &[Correction], cols: usize) -> Result<CgnrShape> {
    for correction in corrections {
        correction.validate(Method::Cgnr, cols)?;
    }
    let width = corrections.iter().map(|c| c.width).max().unwrap_or(0);
    check_widths(corrections, width, |correction| correction.edges() > 0)?;
    let edges = corrections.iter().map(Correction::edges).max().unwrap_or(0);
    Ok(CgnrShape { columns: corrections.len(), width, edges, part: Part::All })
}

/// Writes the weights of a correction into the words of its column.
pub(crate) fn write_weights(control: &mut [Sum], correction: &Correction, accumulation: Accumulation) {
    // A column without total variation beside one that has it: 0 times phi must be 0.
    let epsilon = if correction.variation > 0.0 { correction.epsilon } else { 1.0 };
    for (field, value) in [
        (TIKHONOV, correction.tikhonov),
        (SMOOTH, correction.smooth),
        (VARIATION, correction.variation),
        (EPSILON2, epsilon * epsilon),
        (BOX, correction.bound_weight),
        (LOWER, correction.lower),
        (UPPER, correction.upper),
    ] {
        control[field] = Sum::of(value, accumulation);
    }
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
        let shape = shape_of(std::slice::from_ref(correction), cols)?;
        let mut weights = vec![Sum::default(); CONTROL];
        write_weights(&mut weights, correction, device.run::<T>().accumulation);
        let term = CorrectionTerm::new(&device.place(), shape, weights)?;
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
        Method::Cgnr => shape_of(corrections, cols).map(|_| ()),
        _ => {
            corrections.iter().try_for_each(|correction| correction.validate(method, cols))?;
            check_widths(corrections, Neighbours::of(corrections).width, Correction::has_neighbours)
        }
    }
}
