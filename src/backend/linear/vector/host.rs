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
    n: usize,
    column: Column,
    (reduction, terms): (Reduction, Terms),
    x: &[T],
    y: &[T],
) -> f64 {
    let chunks = Chunks::of(n);
    let Column { count, index } = column;
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
    fn fill(&self, _: Run<'_>, n: usize, value: T, x: &mut Memory<T>) -> Result<()> {
        x.host_mut()?[..n].fill(value);
        Ok(())
    }

    fn scale(&self, _: Run<'_>, n: usize, alpha: T, x: &Memory<T>, y: &mut Memory<T>) -> Result<()> {
        let (x, y) = (&x.host()?[..n], &mut y.host_mut()?[..n]);
        threads::each((y, x), LEAST, |_, (y, x)| *y = alpha * *x);
        Ok(())
    }

    fn rescale(&self, _: Run<'_>, n: usize, alpha: T, x: &mut Memory<T>) -> Result<()> {
        threads::each(&mut x.host_mut()?[..n], LEAST, |_, x| *x = alpha * *x);
        Ok(())
    }

    fn axpby(&self, _: Run<'_>, n: usize, alpha: T, beta: T, x: &Memory<T>, y: &mut Memory<T>) -> Result<()> {
        let (x, y) = (&x.host()?[..n], &mut y.host_mut()?[..n]);
        threads::each((y, x), LEAST, |_, (y, x)| *y = alpha * *x + beta * *y);
        Ok(())
    }

    fn add_scaled(
        &self,
        _: Run<'_>,
        n: usize,
        [alpha, beta]: [T; 2],
        x: &Memory<T>,
        y: &Memory<T>,
        z: &mut Memory<T>,
    ) -> Result<()> {
        let vectors = (&mut z.host_mut()?[..n], &x.host()?[..n], &y.host()?[..n]);
        threads::each(vectors, LEAST, |_, (z, x, y)| *z = alpha * *x + beta * *y);
        Ok(())
    }

    fn multiply_elements(
        &self,
        _: Run<'_>,
        n: usize,
        x: &Memory<T>,
        y: &Memory<T>,
        z: &mut Memory<T>,
    ) -> Result<()> {
        let vectors = (&mut z.host_mut()?[..n], &x.host()?[..n], &y.host()?[..n]);
        threads::each(vectors, LEAST, |_, (z, x, y)| *z = *x * *y);
        Ok(())
    }

    fn clamp_elements(&self, _: Run<'_>, n: usize, lower: T, upper: T, x: &mut Memory<T>) -> Result<()> {
        let x = &mut x.host_mut()?[..n];
        threads::each(x, LEAST, |_, x| *x = violated(*x, lower, upper).unwrap_or(*x));
        Ok(())
    }

    fn reduce(
        &self,
        run: Run<'_>,
        n: usize,
        column: Column,
        of: (Reduction, Terms),
        x: &Memory<T>,
        y: &Memory<T>,
    ) -> Result<f64> {
        let (x, y) = (x.host()?, y.host()?);
        Ok(summing!(run, T, reduce(n, column, of, x, y)))
    }
}
