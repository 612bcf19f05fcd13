//! Kernels of vectors: elementwise operations, reductions, selections.

use super::question::{Needs, Question, noisy, numbers, product, unwritten};
use crate::device::Device;
use crate::error::Result;
use crate::number::Real;
use crate::operator::{LinearOperator, Selection};
use crate::pointwise::Pointwise;
use crate::vector::{Reduction, Vector};

pub(super) fn questions<T: Real>() -> Vec<Question> {
    vec![
        Question::of("operations of vectors", elementwise::<T>),
        Question::of("reductions", reductions::<T>),
        Question::of("a product of small numbers", small_product::<T>).with_needs(Needs::Denormals),
        Question::of("selections", selections::<T>),
        Question::of("a formula of the user's", formula::<T>),
    ]
}

const N: usize = 77;

fn elementwise<T: Real>(device: &Device) -> Result<Vec<f64>> {
    let (x, mut y) = (noisy::<T>(device, N, 1)?, noisy(device, N, 2)?);
    y.axpby(T::from_f64(0.5), &x, T::from_f64(2.0))?;
    let mut sum = unwritten(device, N)?;
    sum.sum_of(T::from_f64(0.5), &x, T::from_f64(2.0), &y)?;
    let mut scaled = unwritten(device, N)?;
    scaled.scaled_from(T::from_f64(3.0), &y)?;
    let mut product = unwritten(device, N)?;
    product.product_of(&x, &y)?;
    product.clamp(T::from_f64(-0.5), T::from_f64(0.5))?;
    Ok([numbers(&y)?, numbers(&sum)?, numbers(&scaled)?, numbers(&product)?].concat())
}

fn reductions<T: Real>(device: &Device) -> Result<Vec<f64>> {
    let (x, y) = (noisy::<T>(device, N, 1)?, noisy(device, N, 2)?);
    let near: Vec<T> = x.to_vec()?.iter().map(|v| T::from_f64(1.0 + v.to_f64() / 8.0)).collect();
    Ok(vec![
        x.sum()?,
        Vector::from_slice(device, &near)?.product()?,
        x.min()?,
        x.max()?,
        x.asum()?,
        x.dot(&y)?,
        x.reduce_products(Reduction::AbsoluteSum, &y)?,
        x.reduce_products(Reduction::Maximum, &y)?,
    ])
}

/// If sums are pairs of `f32`, the low words of this product are denormal numbers.
fn small_product<T: Real>(device: &Device) -> Result<Vec<f64>> {
    Ok(vec![noisy::<T>(device, N, 1)?.product()?])
}

fn selections<T: Real>(device: &Device) -> Result<Vec<f64>> {
    let selection = Selection::<T>::new(device, &[5, 0, 76, 31], N)?;
    let mut back = unwritten(device, N)?;
    selection.apply_adjoint(&noisy(device, 4, 2)?, &mut back)?;
    Ok([product(device, &selection, 1)?, numbers(&back)?].concat())
}

fn formula<T: Real>(device: &Device) -> Result<Vec<f64>> {
    let text = "quotient(p0 * x2, root(x0 * x0 + x1 * x1 + p1))";
    let weigh = Pointwise::new(device, text, |m, [a, b, v], [weight, least]: [T; 2]| {
        m.quotient(weight * v, m.root(a * a + b * b + least))
    })?;
    let x: [_; 3] = [noisy(device, N, 1)?, noisy(device, N, 2)?, noisy(device, N, 3)?];
    let mut y = unwritten(device, N)?;
    weigh.apply(x.each_ref(), [T::from_f64(0.3), T::from_f64(0.1)], &mut y)?;
    numbers(&y)
}
