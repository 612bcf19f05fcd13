//! Abilities of a device that everything rests on: rounding, barriers, gathers, atomics, launches in order.

use super::question::{Needs, Question, noisy, numbers, product, scattered_sums, solution};
use crate::device::Device;
use crate::error::Result;
use crate::matrix::Matrix;
use crate::number::Real;
use crate::solver::{Method, Regularization, Setup, Stopping};
use crate::sparse::{Format, gallery};
use crate::vector::Vector;

const SOLVES: &str = "what solves are made of is wrong (see above), or launches do not follow each other in order, or groups of \
                      one launch do not see each other's results";

/// Questions about abilities of a device that everything rests on, at sizes that keep it busy.
pub(super) fn questions<T: Real>() -> Vec<Question> {
    vec![
        Question {
            name: "arithmetic",
            means: "it rounds or contracts where it must not: no result of it can be reproduced elsewhere",
            sizes: false,
            needs: Needs::Nothing,
            ask: arithmetic::<T>,
        },
        Question {
            name: "reductions and barriers",
            means: "items of a work-group do not wait for each other, or local memory is lost: no norm and no solver of it is to \
                    be trusted",
            sizes: true,
            needs: Needs::Nothing,
            ask: reductions::<T>,
        },
        Question {
            name: "products in every format",
            means: "gathers or the loops over a row are compiled wrongly: no product of it is to be trusted",
            sizes: false,
            needs: Needs::Nothing,
            ask: products::<T>,
        },
        Question {
            name: "additions by atomics",
            means: "atomic additions get lost: A'x needs a transposed copy there",
            sizes: false,
            needs: Needs::Atomics,
            ask: scattered::<T>,
        },
        Question {
            name: "conjugate gradients",
            means: SOLVES,
            sizes: true,
            needs: Needs::Nothing,
            ask: conjugate_gradients::<T>,
        },
        Question {
            name: "regularised CGNR",
            means: SOLVES,
            sizes: true,
            needs: Needs::Nothing,
            ask: regularised::<T>,
        },
    ]
}

fn arithmetic<T: Real>(device: &Device) -> Result<Vec<f64>> {
    let n = 5000;
    let (x, y) = (noisy::<T>(device, n, 1)?, noisy(device, n, 2)?);
    let mut sum = Vector::zeros(device, n)?;
    sum.copy_from(&y)?;
    sum.axpby(T::from_f64(0.3), &x, T::from_f64(-1.7))?;
    let mut product = Vector::filled(device, n, T::from_f64(7.0))?;
    product.product_of(&x, &y)?;
    product.clamp(T::from_f64(-0.5), T::from_f64(0.5))?;
    Ok([numbers(&sum)?, numbers(&product)?].concat())
}

fn reductions<T: Real>(device: &Device) -> Result<Vec<f64>> {
    let mut answers = Vec::new();
    for n in [1, 31, 1025, 300_000] {
        let (x, y) = (noisy::<T>(device, n, 3)?, noisy(device, n, 4)?);
        answers.extend([x.sum()?, x.min()?, x.max()?, x.asum()?, x.dot(&y)?, x.norm2()?]);
    }
    Ok(answers)
}

fn products<T: Real>(device: &Device) -> Result<Vec<f64>> {
    let mut answers = Vec::new();
    for (a, formats) in [
        (gallery::random::<T>(700, 500, 9000, 5)?, Format::ALL),
        (gallery::poisson_2d::<T>(23, 0.1)?, &[Format::Dia, Format::CsrScalar, Format::Sell { sigma: 0 }][..]),
    ] {
        for format in formats {
            answers.extend(product(device, &Matrix::new(device, &a, *format)?, 6)?);
        }
    }
    Ok(answers)
}

fn scattered<T: Real>(device: &Device) -> Result<Vec<f64>> {
    scattered_sums::<T>(device, [3000, 90, 20_000])
}

fn conjugate_gradients<T: Real>(device: &Device) -> Result<Vec<f64>> {
    let a = Matrix::new(device, &gallery::poisson_2d::<T>(48, 0.02)?, Format::Auto)?;
    solution(device, &a, Setup::new(Method::Cg, Stopping::after(60)), 8)
}

fn regularised<T: Real>(device: &Device) -> Result<Vec<f64>> {
    let a = Matrix::with_transpose(device, &gallery::random::<T>(900, 400, 6000, 9)?, Format::Auto)?;
    let regularization = Regularization::none()
        .with_tikhonov(0.01)
        .with_variation(0.05)
        .with_epsilon(0.01)
        .with_upper(0.0)
        .with_bound_weight(0.5)
        .with_width(20);
    let setup = Setup::new(Method::Cgnr, Stopping::after(40)).with_regularizations(&[regularization]);
    solution(device, &a, setup, 10)
}
