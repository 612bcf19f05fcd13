//! Operations on vectors on the host.

use std::ops::Range;

use super::{Column, Reduction, Terms, VectorOps};
use crate::backend::Host;
use crate::backend::run::Run;
use crate::backend::sums::{chunk_sums, column_dot, scattered_sum, summing, total};
use crate::error::Result;
use crate::memory::Memory;
use crate::number::{Accumulator, Real, Sum, violated};
use crate::reduction::{Chunks, fold, fold_sums};
use crate::threads::{self, LEAST};

/// The sum of what `sum` finds in each chunk.
fn sum<T: Real, A: Accumulator<T>>(chunks: Chunks, sum: impl Fn(Range<usize>) -> Sum + Sync) -> f64 {
    let sums = threads::numbers(0..chunks.count, 4, |_, g| sum(chunks.range(g)));
    total::<T, A>(&sums).to_f64()
}

/// The sum of `term` over a column.
fn column_sum<T: Real, A: Accumulator<T>>(
    chunks: Chunks,
    Column { count, index }: Column,
    x: &[T],
    term: impl Fn(T) -> A + Sync,
) -> f64 {
    sum::<T, A>(chunks, |rows| match count {
        1 => {
            let [sum] = chunk_sums(chunks.lanes, [&x[rows]], |[x]| [term(x)]);
            sum
        }
        _ => scattered_sum::<T, A>(chunks.lanes, rows, |i| term(x[i * count + index])),
    })
}

fn reduce<T: Real, A: Accumulator<T>>(
    column: Column,
    (reduction, terms): (Reduction, Terms),
    x: &[T],
    y: &[T],
) -> f64 {
    let Column { count, index } = column;
    let chunks = Chunks::of(x.len() / count);
    match (terms, reduction) {
        (Terms::Products, Reduction::Sum) => {
            let dot = |rows| column_dot::<T, A>(chunks.lanes, rows, [count, index], x, y);
            return sum::<T, A>(chunks, dot);
        }
        (Terms::Elements, Reduction::Sum) => return column_sum::<T, A>(chunks, column, x, A::from_real),
        (Terms::Elements, Reduction::AbsoluteSum) => {
            return column_sum::<T, A>(chunks, column, x, |x| A::from_real(x.abs()));
        }
        _ => {}
    }
    let combine = |a: A, b: A| match reduction {
        Reduction::Product => a.mul(b),
        Reduction::Minimum => {
            if a.less(b) || a.is_nan() {
                a
            } else {
                b
            }
        }
        Reduction::Maximum => {
            if b.less(a) || a.is_nan() {
                a
            } else {
                b
            }
        }
        Reduction::Sum | Reduction::AbsoluteSum => a.add(b),
    };
    let identity = match reduction {
        Reduction::Product => A::from_f64(1.0),
        Reduction::Minimum => A::from_f64(f64::INFINITY),
        Reduction::Maximum => A::from_f64(f64::NEG_INFINITY),
        _ => A::default(),
    };
    let term = |i: usize| {
        let at = i * count + index;
        match terms {
            Terms::Elements => A::from_real(x[at]),
            Terms::Products => {
                let product = A::product(x[at], y[at]);
                let negative = reduction == Reduction::AbsoluteSum && product.less(A::default());
                if negative { A::default().sub(product) } else { product }
            }
        }
    };
    let sums = threads::numbers(0..chunks.count, 1, |_, g| {
        let mut lanes = vec![identity; chunks.lanes];
        for (offset, i) in chunks.range(g).enumerate() {
            let lane = &mut lanes[offset % chunks.lanes];
            *lane = combine(*lane, term(i));
        }
        fold(&mut lanes, combine)
    });
    fold_sums(&sums, identity, combine).to_f64()
}

impl<T: Real> VectorOps<T> for Host {
    fn fill(&self, _: Run<'_>, value: T, x: &mut Memory<T>) -> Result<()> {
        x.host_mut()?.fill(value);
        Ok(())
    }

    fn scale(&self, _: Run<'_>, alpha: T, x: &Memory<T>, y: &mut Memory<T>) -> Result<()> {
        threads::each((y.host_mut()?, x.host()?), LEAST, |_, (y, x)| *y = alpha * *x);
        Ok(())
    }

    fn rescale(&self, _: Run<'_>, alpha: T, x: &mut Memory<T>) -> Result<()> {
        threads::each(x.host_mut()?, LEAST, |_, x| *x = alpha * *x);
        Ok(())
    }

    fn axpby(&self, _: Run<'_>, [alpha, beta]: [T; 2], x: &Memory<T>, y: &mut Memory<T>) -> Result<()> {
        threads::each((y.host_mut()?, x.host()?), LEAST, |_, (y, x)| *y = alpha * *x + beta * *y);
        Ok(())
    }

    fn add_scaled(
        &self,
        _: Run<'_>,
        [alpha, beta]: [T; 2],
        [x, y]: [&Memory<T>; 2],
        z: &mut Memory<T>,
    ) -> Result<()> {
        let vectors = (z.host_mut()?, x.host()?, y.host()?);
        threads::each(vectors, LEAST, |_, (z, x, y)| *z = alpha * *x + beta * *y);
        Ok(())
    }

    fn multiply_elements(&self, _: Run<'_>, [x, y]: [&Memory<T>; 2], z: &mut Memory<T>) -> Result<()> {
        threads::each((z.host_mut()?, x.host()?, y.host()?), LEAST, |_, (z, x, y)| *z = *x * *y);
        Ok(())
    }

    fn clamp_elements(&self, _: Run<'_>, [lower, upper]: [T; 2], x: &mut Memory<T>) -> Result<()> {
        threads::each(x.host_mut()?, LEAST, |_, x| *x = violated(*x, lower, upper).unwrap_or(*x));
        Ok(())
    }

    fn reduce(&self, run: Run<'_>, column: Column, of: (Reduction, Terms), [x, y]: [&Memory<T>; 2]) -> Result<f64> {
        let (x, y) = (x.host()?, y.host()?);
        Ok(summing!(run, T, reduce(column, of, x, y)))
    }
}
