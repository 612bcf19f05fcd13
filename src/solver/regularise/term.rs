//! A regularization in the form that kernels read.

use super::penalty::Penalty;
use super::regularization::{Regularization, check_widths};
use crate::backend::script::{CgnrOps, CorrectionTerm, Edges};
use crate::device::Device;
use crate::error::Result;
use crate::number::{Real, Sum};
use crate::solver::method::Method;
use crate::solver::script::Neighbours;
use crate::state::correction::{BOX, EPSILON2, LOWER, SMOOTH, TIKHONOV, UPPER, VARIATION, WEIGHTS};
use crate::vector::Vector;

/// Fails on regularizations that cannot be meant, or that differ although all columns must agree. Returns the image that they see.
pub(crate) fn edges_of(regularizations: &[Regularization], cols: usize) -> Result<Edges> {
    for regularization in regularizations {
        regularization.validate(Method::Cgnr, cols)?;
    }
    let width = regularizations.iter().map(|c| c.width).max().unwrap_or(0);
    check_widths(regularizations, width, |regularization| regularization.edges() > 0)?;
    Ok(Edges { width, edges: regularizations.iter().map(Regularization::edges).max().unwrap_or(0) })
}

/// The weights of a regularization, in the order of [`regularization`](crate::state::correction).
pub(crate) fn weights_of(regularization: &Regularization) -> [f64; WEIGHTS] {
    // A column without total variation beside one that has it: 0 times phi must be 0.
    let epsilon = if regularization.variation > 0.0 { regularization.epsilon } else { 1.0 };
    let mut weights = [0.0; WEIGHTS];
    for (field, value) in [
        (TIKHONOV, regularization.tikhonov),
        (SMOOTH, regularization.smooth),
        (VARIATION, regularization.variation),
        (EPSILON2, epsilon * epsilon),
        (BOX, regularization.bound_weight),
        (LOWER, regularization.lower),
        (UPPER, regularization.upper),
    ] {
        weights[field] = value;
    }
    weights
}

/// A regularization as a penalty: for CGNR with a preconditioner, whose unknowns are not those of the regularization.
pub(crate) struct Regularized {
    device: Device,
    term: CorrectionTerm,
    norm_bound: f64,
}

impl Regularized {
    /// The regularization of one image of `cols` pixels, in the precision `T`.
    pub(crate) fn new<T: Real>(device: &Device, regularization: &Regularization, cols: usize) -> Result<Self> {
        let image = edges_of(std::slice::from_ref(regularization), cols)?;
        let accumulation = device.run::<T>().accumulation;
        let weights = weights_of(regularization).iter().map(|weight| Sum::of(*weight, accumulation)).collect();
        let term = CorrectionTerm::new(&device.place(), image, weights)?;
        Ok(Self { device: device.clone(), term, norm_bound: regularization.weight(Method::Cgnr) })
    }

    fn ask<T: Real>(&self, x: &Vector<T>, v: Option<&Vector<T>>, out: &mut Vector<T>) -> Result<()> {
        let run = self.device.run::<T>();
        let operations: &dyn CgnrOps<T> = self.device.backend().cgnr();
        operations.cgnr_correction(run, &self.term, x.memory(), v.map(Vector::memory), out.memory_mut())
    }
}

impl<T: Real> Penalty<T> for Regularized {
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

/// Fails on regularizations that cannot be meant, that `method` does not minimise, or that differ although all columns must agree.
pub(crate) fn check_regularizations(method: Method, regularizations: &[Regularization], cols: usize) -> Result<()> {
    match method {
        Method::Cgnr => edges_of(regularizations, cols).map(|_| ()),
        _ => {
            regularizations.iter().try_for_each(|regularization| regularization.validate(method, cols))?;
            check_widths(regularizations, Neighbours::of(regularizations).width, Regularization::has_neighbours)
        }
    }
}
