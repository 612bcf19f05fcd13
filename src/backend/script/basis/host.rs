//! A block of vectors on the host: `cl/script/basis.cl`.

use super::super::host::{HostScript, recur, run_block, running, take};
use super::{
    Addition, Basis, BasisOps, COSINE, FACTOR, PROJECTION, RIGHT_SIDE, SCALE, SINE, StepCall, StepLaunch, TRIANGLE,
    Then, place,
};
use crate::backend::Host;
use crate::backend::sums::{column_dot, summing, total};
use crate::backend::widest::widest;
use crate::error::Result;
use crate::memory::Memory;
use crate::number::{Accumulator, Real, Sum};
use crate::recurrence::{DIAGONAL2, REGISTERS, RESIDUAL2, Scalar, VECTOR2};
use crate::reduction::Chunks;
use crate::threads;

/// The arrays of one column.
struct Arrays<'a> {
    held: &'a mut [Sum],
    most: usize,
    c: usize,
}

impl Arrays<'_> {
    fn get<T: Real, A: Accumulator<T>>(&self, name: usize, k: usize) -> A {
        A::from_bits(self.held[place(self.most, name, self.c, k)].0)
    }

    fn set<T: Real, A: Accumulator<T>>(&mut self, name: usize, k: usize, value: A) {
        self.held[place(self.most, name, self.c, k)] = Sum(value.to_bits());
    }
}

/// Chunk sums of the products of one chunk of `w` with the same chunk of `vectors`: vector by vector, column by column.
fn projections<T: Real, A: Accumulator<T>>(
    chunks: Chunks,
    columns: usize,
    vectors: &[&[T]],
    g: usize,
    w: &[T],
) -> Vec<Sum> {
    let first = chunks.range(g).start * columns;
    let mut sums = Vec::with_capacity(vectors.len() * columns);
    for vector in vectors {
        let q = &vector[first..][..w.len()];
        for c in 0..columns {
            sums.push(column_dot::<T, A>(chunks.lanes, 0..w.len() / columns, [columns, c], q, w));
        }
    }
    sums
}

/// Spreads the sums of each chunk over the runs of chunk sums.
fn spread(found: &[Vec<Sum>], chunks: Chunks, sums: &mut [Sum]) {
    for (g, found) in found.iter().enumerate() {
        for (run, sum) in found.iter().enumerate() {
            sums[run * chunks.count + g] = *sum;
        }
    }
}

fn project<T: Real, A: Accumulator<T>>(
    chunks: Chunks,
    columns: usize,
    w: &[T],
    vectors: &[&[T]],
    sums: &mut [Sum],
) {
    let project = |g, w: &[T]| projections::<T, A>(chunks, columns, vectors, g, w);
    let found = threads::map(threads::Chunks(w, chunks.chunk * columns), 1, project);
    spread(&found, chunks, sums);
}

fn fold<T: Real, A: Accumulator<T>>(
    [columns, most, count, chunks]: [usize; 4],
    again: bool,
    running: &[bool],
    sums: &[Sum],
    arrays: &mut [Sum],
) {
    for (c, _) in running.iter().enumerate().filter(|(_, runs)| **runs) {
        let mut arrays = Arrays { held: arrays, most, c };
        for k in 0..count {
            let sum = total::<T, A>(&sums[(k * columns + c) * chunks..][..chunks]);
            let scale: A = arrays.get::<T, A>(SCALE, k);
            let part = scale.mul(sum);
            let held = arrays.get::<T, A>(PROJECTION, k);
            arrays.set::<T, A>(PROJECTION, k, if again { held.add(part) } else { part });
            arrays.set::<T, A>(FACTOR, k, A::default().sub(part));
        }
    }
}

/// Shape of the vectors of an addition, and the columns that run.
#[derive(Clone, Copy)]
struct Shape<'a> {
    chunks: Chunks,
    columns: usize,
    running: &'a [bool],
}

/// One chunk of `v += Q factors`; `factors` has factor and scale of each vector, column by column. They stay apart, since their
/// product may be too small for `T` in a system far from 1.
fn add_chunk<T: Real>(shape: Shape<'_>, fresh: bool, factors: &[[T; 2]], vectors: &[&[T]], g: usize, v: &mut [T]) {
    let Shape { chunks, columns, running } = shape;
    let first = chunks.range(g).start * columns;
    if fresh {
        v.iter_mut().enumerate().filter(|(at, _)| running[at % columns]).for_each(|(_, v)| *v = T::default());
    }
    for k in 0..vectors.len() {
        let (q, factors) = (&vectors[k][first..][..v.len()], &factors[k * columns..][..columns]);
        match factors {
            // A vector whose factor is 0 may hold anything.
            [[factor, _]] if *factor == T::default() => {}
            [factors] => add_scaled(*factors, q, v),
            factors => {
                for (v, q) in v.chunks_mut(columns).zip(q.chunks(columns)) {
                    for c in (0..columns).filter(|c| running[*c] && factors[*c][0] != T::default()) {
                        let [factor, scale] = factors[c];
                        v[c] = v[c] + factor * (scale * q[c]);
                    }
                }
            }
        }
    }
}

widest! {
    /// `v += factor (scale q)`.
    #[inline]
    fn add_scaled<'v; T: Real>(factors: [T; 2], q: &'v [T], v: &'v mut [T]) -> () {
        let [factor, scale] = factors;
        let q = &q[..v.len()];
        for at in 0..v.len() {
            v[at] = v[at] + factor * (scale * q[at]);
        }
    }
}

fn add<T: Real, A: Accumulator<T>>(
    shape: Shape<'_>,
    addition: Addition,
    most: usize,
    v: &mut [T],
    mut vectors: Vec<&mut [T]>,
    sums: &mut [Sum],
    arrays: &[Sum],
) {
    let (Shape { chunks, columns, running }, Addition { count, adds, fresh, then }) = (shape, addition);
    if !running.contains(&true) {
        return;
    }
    let factor =
        |k: usize, c: usize| [FACTOR, SCALE].map(|name| A::from_bits(arrays[place(most, name, c, k)].0).to_real());
    let factors: Vec<[T; 2]> =
        (0..count).flat_map(|k| (0..columns).map(move |c| (k, c))).map(|(k, c)| factor(k, c)).collect();
    let next = if count < vectors.len() { Some(vectors.remove(count)) } else { None };
    let used: Vec<&[T]> = vectors.iter().take(if adds { count } else { 0 }).map(|vector| &**vector).collect();
    let found = threads::map(threads::ChunksMut(v, chunks.chunk * columns), 1, |g, v| {
        add_chunk(shape, fresh, &factors, &used, g, v);
        match then {
            Then::Nothing => Vec::new(),
            Then::Project => projections::<T, A>(chunks, columns, &used, g, v),
            Then::Append => {
                let square = |c| column_dot::<T, A>(chunks.lanes, 0..v.len() / columns, [columns, c], v, v);
                (0..columns).map(square).collect()
            }
        }
    });
    match then {
        Then::Append => {
            spread(&found, chunks, &mut sums[most * columns * chunks.count..]);
            threads::each((next.unwrap_or_default(), &*v), threads::LEAST, |at, (next, v)| {
                if running[at % columns] {
                    *next = *v;
                }
            });
        }
        _ => spread(&found, chunks, sums),
    }
}

/// `rotate_column` of `cl/script/basis.cl`: Givens rotations (Saad, 6.5.3) of column `step - 1` of the triangle, and of the right side.
fn rotate_column<T: Real, A: Accumulator<T>>(step: usize, triangle: bool, mut arrays: Arrays<'_>, file: &mut [A]) {
    let at = |scalar: Scalar| usize::from(scalar.0);
    let square = file[at(VECTOR2)];
    let norm = square.sqrt();
    let one = A::from_f64(1.0);
    arrays.set::<T, A>(SCALE, step, one.div(norm));
    if step == 0 || !triangle {
        arrays.set::<T, A>(RIGHT_SIDE, step, norm);
        file[at(RESIDUAL2)] = square;
        return;
    }
    let last = step - 1;
    let mut above: A = arrays.get::<T, A>(PROJECTION, 0);
    for i in 0..last {
        let [below, cosine, sine] =
            [(PROJECTION, i + 1), (COSINE, i), (SINE, i)].map(|(name, k)| arrays.get::<T, A>(name, k));
        arrays.set::<T, A>(TRIANGLE + last, i, cosine.mul(above).add(sine.mul(below)));
        above = cosine.mul(below).sub(sine.mul(above));
    }
    let diagonal2 = above.mul(above).add(square);
    let diagonal = diagonal2.sqrt();
    let (cosine, sine) = (above.div(diagonal), norm.div(diagonal));
    arrays.set::<T, A>(COSINE, last, cosine);
    arrays.set::<T, A>(SINE, last, sine);
    arrays.set::<T, A>(TRIANGLE + last, last, diagonal);
    let right = arrays.get::<T, A>(RIGHT_SIDE, last);
    let rest = A::default().sub(sine.mul(right));
    arrays.set::<T, A>(RIGHT_SIDE, last, cosine.mul(right));
    arrays.set::<T, A>(RIGHT_SIDE, step, rest);
    file[at(DIAGONAL2)] = diagonal2;
    file[at(RESIDUAL2)] = rest.mul(rest);
}

fn rotate<T: Real, A: Accumulator<T>>(
    call: StepCall,
    (step, triangle): (usize, bool),
    [most, chunks]: [usize; 2],
    sums: &[Sum],
    arrays: &mut [Sum],
    state: &mut HostScript<'_>,
) {
    let mut frame = take::<T, A>(call, state);
    for c in 0..call.columns {
        if frame.running(c) {
            let file = &mut frame.file[c * REGISTERS..][..REGISTERS];
            file[usize::from(VECTOR2.0)] = total::<T, A>(&sums[(most * call.columns + c) * chunks..][..chunks]);
            rotate_column::<T, A>(step, triangle, Arrays { held: arrays, most, c }, file);
        }
    }
    run_block::<T, A>(call, &mut frame, state);
}

fn drop_vectors<T: Real, A: Accumulator<T>>(
    call: StepCall,
    (dropped, count): (usize, usize),
    most: usize,
    arrays: &mut [Sum],
    state: &mut HostScript<'_>,
) {
    let Some(frame) = recur::<T, A>(call, state) else { return };
    let drops = |c: &usize| frame.running(*c) && A::default().less(frame.file[c * REGISTERS + dropped]);
    for c in (0..call.columns).filter(drops) {
        let mut arrays = Arrays { held: arrays, most, c };
        for (name, k) in [FACTOR, SCALE].into_iter().flat_map(|name| (0..count).map(move |k| (name, k))) {
            arrays.set::<T, A>(name, k, A::default());
        }
    }
}

fn solve<T: Real, A: Accumulator<T>>(
    call: StepCall,
    depth: usize,
    most: usize,
    arrays: &mut [Sum],
    state: &mut HostScript<'_>,
) {
    let frame = recur::<T, A>(call, state);
    for c in 0..call.columns {
        let runs = frame.as_ref().filter(|frame| frame.running(c));
        let rows = runs.map_or(0, |frame| frame.file[c * REGISTERS + depth].to_f64() as usize);
        let mut arrays = Arrays { held: arrays, most, c };
        let mut right: Vec<A> = (0..rows).map(|k| arrays.get::<T, A>(RIGHT_SIDE, k)).collect();
        (rows..most).for_each(|k| arrays.set::<T, A>(FACTOR, k, A::default()));
        for k in (0..rows).rev() {
            let y = right[k].div(arrays.get::<T, A>(TRIANGLE + k, k));
            for (i, right) in right[..k].iter_mut().enumerate() {
                *right = right.sub(arrays.get::<T, A>(TRIANGLE + k, i).mul(y));
            }
            arrays.set::<T, A>(FACTOR, k, y);
        }
    }
}

impl<T: Real> BasisOps<T> for Host {
    fn basis_project(&self, step: StepLaunch<'_>, count: usize, w: &Memory<T>, basis: &mut Basis<T>) -> Result<()> {
        let StepLaunch { run, call, state } = step;
        if running(call, state.status.host()?).contains(&true) {
            let (chunks, len) = (Chunks::of(basis.n), basis.n * basis.columns);
            let buffers = basis.vectors.iter().map(Memory::host).collect::<Result<Vec<_>>>()?;
            let vectors: Vec<&[T]> = buffers.into_iter().flat_map(|b| b.chunks(len.max(1))).take(count).collect();
            summing!(run, T, project(chunks, basis.columns, w.host()?, &vectors, basis.sums.host_mut()?));
        }
        Ok(())
    }

    fn basis_fold(&self, step: StepLaunch<'_>, count: usize, again: bool, basis: &mut Basis<T>) -> Result<()> {
        let StepLaunch { run, call, state } = step;
        let running = running(call, state.status.host()?);
        let shape = [basis.columns, basis.most, count, Chunks::of(basis.n).count];
        let (sums, arrays) = (basis.sums.host()?, basis.arrays.host_mut()?);
        summing!(run, T, fold(shape, again, &running, sums, arrays));
        Ok(())
    }

    fn basis_add(
        &self,
        step: StepLaunch<'_>,
        addition: Addition,
        v: &mut Memory<T>,
        basis: &mut Basis<T>,
    ) -> Result<()> {
        let StepLaunch { run, call, state } = step;
        let running = running(call, state.status.host()?);
        let Basis { n, columns, most, vectors, sums, arrays, .. } = basis;
        let shape = Shape { chunks: Chunks::of(*n), columns: *columns, running: &running };
        let buffers = vectors.iter_mut().map(Memory::host_mut).collect::<Result<Vec<_>>>()?;
        let len = (*n * *columns).max(1);
        let vectors: Vec<&mut [T]> = buffers.into_iter().flat_map(|buffer| buffer.chunks_mut(len)).collect();
        let (sums, arrays) = (sums.host_mut()?, arrays.host()?);
        summing!(run, T, add(shape, addition, *most, v.host_mut()?, vectors, sums, arrays));
        Ok(())
    }

    fn basis_rotate(
        &self,
        step: StepLaunch<'_>,
        column: usize,
        triangle: bool,
        basis: &mut Basis<T>,
    ) -> Result<()> {
        let StepLaunch { run, call, state } = step;
        let shape = [basis.most, Chunks::of(basis.n).count];
        let (sums, arrays, state) = (basis.sums.host()?, basis.arrays.host_mut()?, &mut state.host()?);
        summing!(run, T, rotate(call, (column, triangle), shape, sums, arrays, state));
        Ok(())
    }

    fn basis_drop(&self, step: StepLaunch<'_>, dropped: (usize, usize), basis: &mut Basis<T>) -> Result<()> {
        let StepLaunch { run, call, state } = step;
        let (most, arrays, state) = (basis.most, basis.arrays.host_mut()?, &mut state.host()?);
        summing!(run, T, drop_vectors(call, dropped, most, arrays, state));
        Ok(())
    }

    fn basis_solve(&self, step: StepLaunch<'_>, depth: usize, basis: &mut Basis<T>) -> Result<()> {
        let StepLaunch { run, call, state } = step;
        let (most, arrays, state) = (basis.most, basis.arrays.host_mut()?, &mut state.host()?);
        summing!(run, T, solve(call, depth, most, arrays, state));
        Ok(())
    }
}
