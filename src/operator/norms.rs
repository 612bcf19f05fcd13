//! Norms of operators. Distance of a claimed adjoint from the true one.

use super::linear::LinearOperator;
use crate::device::Device;
use crate::error::Result;
use crate::magnitude::{self, Magnitude};
use crate::number::{Precision, Real};
use crate::sparse::gallery::Random;
use crate::vector::Vector;

/// A vector of seeded numbers in (-1, 1).
fn noise<T: Real>(device: &Device, len: usize, seed: u64) -> Result<Vector<T>> {
    Vector::from_slice(device, &noise_of(len, seed))
}

fn noise_of<T: Real>(len: usize, seed: u64) -> Vec<T> {
    let mut random = Random::new(seed);
    (0..len).map(|_| T::from_f64(2.0 * random.uniform() - 1.0)).collect()
}

/// Distance of `apply` and `apply_adjoint` from being adjoint: `|<A x, y> - <x, A'y>| / (|A x| |y|)` for seeded random `x`
/// and `y`. For a right pair it is a few units of rounding (`1e-7` in `f32`, `1e-16` in `f64`), for a wrong one the
/// order of 1. Least squares with a mismatched pair converge to something else, or not at all.
///
/// # Errors
/// Errors of the operator and of [`Vector`].
pub fn adjoint_error<T: Real>(operator: &dyn LinearOperator<T>, seed: u64) -> Result<f64> {
    let device = operator.device();
    let x = noise::<T>(device, operator.cols(), seed)?;
    let y = noise::<T>(device, operator.rows(), seed.wrapping_add(1))?;
    let (mut ax, mut aty) = (Vector::zeros(device, y.len())?, Vector::zeros(device, x.len())?);
    operator.apply(&x, &mut ax)?;
    operator.apply_adjoint(&y, &mut aty)?;
    let scale = ax.norm2()? * y.norm2()?;
    let difference = (ax.dot(&y)? - x.dot(&aty)?).abs();
    Ok(if scale > 0.0 { difference / scale } else { difference })
}

/// A lower estimate of the 2-norm, by `steps` steps of the power iteration on `A'A` from a seeded start. Ten steps are
/// within some ten percent for most operators.
///
/// # Errors
/// Errors of the operator, which needs an adjoint, and of [`Vector`].
pub fn estimate_norm<T: Real>(operator: &dyn LinearOperator<T>, steps: usize) -> Result<f64> {
    let device = operator.device();
    let (mut x, mut ax) = (Vector::zeros(device, operator.cols())?, Vector::zeros(device, operator.rows())?);
    estimate_norm_in(operator, steps, &mut x, &mut ax)
}

/// [`estimate_norm`] in vectors that are there.
pub(crate) fn estimate_norm_in<T: Real>(
    operator: &dyn LinearOperator<T>,
    steps: usize,
    x: &mut Vector<T>,
    ax: &mut Vector<T>,
) -> Result<f64> {
    x.write(&noise_of::<T>(operator.cols(), 1))?;
    let mut norm = 0.0;
    for _ in 0..steps {
        let length = x.norm2()?;
        if length == 0.0 || !length.is_finite() {
            break;
        }
        let inverse = T::from_f64(1.0 / length);
        if inverse.is_finite() && inverse != T::default() {
            x.scale(inverse)?;
        } else {
            // The inverse of the length is out of range in `T`: a power of two first, which brings the length near 1.
            x.scale_columns(&[-libm::ilogb(length)])?;
        }
        operator.apply(x, ax)?;
        norm = ax.norm2()?;
        operator.apply_adjoint(ax, x)?;
    }
    Ok(norm)
}

/// The order of magnitude of the 2-norm, for scaling: a norm if one is known, else `|A v| / |v|` for one seeded `v`, which
/// is larger or smaller if the result vanishes or overflows.
///
/// Cost: nothing, or a product and two vectors.
pub(crate) fn magnitude<T: Real>(operator: &dyn LinearOperator<T>) -> Result<Magnitude> {
    if let Some(matrix) = operator.as_matrix() {
        return Ok(matrix.frobenius());
    }
    if let Some(bound) = operator.norm_bound().filter(|bound| *bound > 0.0 && bound.is_finite()) {
        return Ok(Magnitude::of(bound));
    }
    // Half of what the exponents of `T` span.
    let far = match T::PRECISION {
        Precision::Single => 60,
        Precision::Double => 500,
    };
    let device = operator.device();
    let mut product = Vector::zeros(device, operator.rows())?;
    for exponent in [0, -far, far] {
        let mut v = noise::<T>(device, operator.cols(), 1)?;
        if exponent != 0 {
            v.scale_columns(&[exponent])?;
        }
        let length = v.norm2()?;
        operator.apply(&v, &mut product)?;
        let found = product.norm2()?;
        if found > 0.0 && found.is_finite() && length > 0.0 {
            return Ok(Magnitude { value: magnitude::scale(found, -libm::ilogb(length)), exponent: 0 });
        }
    }
    Ok(Magnitude::of(0.0))
}

/// The Frobenius norm: exact if the operator [says it](LinearOperator::frobenius_norm), otherwise estimated by products with eight seeded
/// vectors of signs, whose mean square norm it is (Hutchinson 1990).
///
/// # Errors
/// Errors of the operator and of [`Vector`].
pub fn frobenius_norm<T: Real>(operator: &dyn LinearOperator<T>) -> Result<f64> {
    const PROBES: u64 = 8;
    if let Some(norm) = operator.frobenius_norm() {
        return Ok(norm);
    }
    let device = operator.device();
    let mut product = Vector::zeros(device, operator.rows())?;
    let mut square = 0.0;
    for seed in 0..PROBES {
        let mut random = Random::new(seed);
        let sign = |bits: u64| T::from_f64(if bits & 1 == 0 { 1.0 } else { -1.0 });
        let signs: Vec<T> = (0..operator.cols()).map(|_| sign(random.next() >> 40)).collect();
        operator.apply(&Vector::from_slice(device, &signs)?, &mut product)?;
        square += product.norm2()?.powi(2);
    }
    Ok((square / PROBES as f64).sqrt())
}
