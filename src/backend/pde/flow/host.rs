//! Steps of flows on the host: the kernels of `cl/pde/flow_momentum.cl`, `cl/pde/flow_pressure.cl`, `cl/pde/flow_transport.cl` and `cl/pde/splat.cl`,
//! operation for operation. Nodes whose neighbours are all there are worked on in blocks.

use std::ops::Range;

use super::sampling::{
    BLOCK, Block, By, Rules, Scratch, Velocity, blend, by_rules, cells_block, cubic_weights, floored, real,
    weighted, whole,
};
use super::{FLUID, FlowGrid, FlowOps, FlowStep, LEFT_BURIED, LEFT_OPEN, Splat, UPPER_BURIED, UPPER_OPEN};
use crate::backend::Host;
use crate::backend::run::Run;
use crate::backend::widest::widest;
use crate::error::Result;
use crate::memory::Memory;
use crate::number::Real;
use crate::threads::{self, ChunksMut};

/// Faces of a row that may be open.
#[derive(Clone, Copy)]
struct Row<'a, T> {
    velocity: Velocity<'a, T>,
    mask: Option<&'a [u32]>,
    /// Row of the grid.
    j: usize,
}

impl<T: Real> Row<'_, T> {
    /// Tells if a face of column `i` is open.
    fn is_open(&self, i: usize, bit: u32) -> bool {
        self.mask.is_none_or(|mask| mask[self.j * self.velocity.width + i] & bit != 0)
    }

    /// Columns that have neighbours on all sides, if the row has.
    fn inner(&self) -> Range<usize> {
        let Velocity { width, height, .. } = self.velocity;
        if self.j > 0 && self.j + 1 < height { 1..width - 1 } else { 0..0 }
    }

    /// The other columns.
    fn outer(&self, inner: &Range<usize>) -> impl Iterator<Item = usize> + use<T> {
        (0..inner.start).chain(inner.end..self.velocity.width)
    }

    /// Velocity spread by viscosity, both components, in column `i`.
    fn spread<R: Rules>(&self, viscosity: T, i: usize) -> [T; 2] {
        let Velocity { width, u, v, .. } = self.velocity;
        let (a, b, c) = (i as i32, self.j as i32, self.j * width + i);
        let mut found = [T::default(); 2];
        if i > 0 && self.is_open(i, LEFT_OPEN) {
            found[0] = u.values[c] + viscosity * u.laplacian::<R>(a, b, self.mask, LEFT_BURIED);
        }
        if self.j > 0 && self.is_open(i, UPPER_OPEN) {
            found[1] = v.values[c] + viscosity * v.laplacian::<R>(b, a, self.mask, UPPER_BURIED);
        }
        found
    }

    /// Velocity that the flow carries to both faces of column `i`.
    fn carry<R: Rules>(&self, held: &Velocity<'_, T>, i: usize) -> [T; 2] {
        let Velocity { width, u, v, .. } = self.velocity;
        let (one_half, quarter) = (real::<T>(0.5), real::<T>(0.25));
        let (a, b, c) = (i as i32, self.j as i32, self.j * width + i);
        let mut found = [T::default(); 2];
        if i > 0 && self.is_open(i, LEFT_OPEN) {
            let sum = (v.values[c - 1] + v.values[c]) + (v.node::<R>(b + 1, a - 1) + v.node::<R>(b + 1, a));
            let place = [whole(a), whole::<T>(b) + one_half];
            let [x, y] = self.velocity.trace_back::<R>([u.values[c], quarter * sum], place);
            found[0] = held.u.value_at::<R>(x, y - one_half);
        }
        if self.j > 0 && self.is_open(i, UPPER_OPEN) {
            let sum = (u.values[c - width] + u.values[c]) + (u.node::<R>(a + 1, b - 1) + u.node::<R>(a + 1, b));
            let place = [whole::<T>(a) + one_half, whole(b)];
            let [x, y] = self.velocity.trace_back::<R>([quarter * sum, v.values[c]], place);
            found[1] = held.v.value_at::<R>(y, x - one_half);
        }
        found
    }

    /// [`Row::carry`] for inner columns from `first` on, at most [`BLOCK`]: to left faces.
    #[inline(always)]
    fn carry_along<R: Rules>(&self, held: &Velocity<'_, T>, first: usize, scratch: &mut Scratch<T>, to: &mut [T]) {
        let Velocity { width, u, v, .. } = self.velocity;
        let (one_half, quarter, n) = (real::<T>(0.5), real::<T>(0.25), to.len());
        let c = self.j * width + first;
        scratch.velocity[0][..n].copy_from_slice(&u.values[c..][..n]);
        mean([c - 1, c, c - 1 + width, c + width], v.values, quarter, &mut scratch.velocity[1][..n]);
        scratch.places = [columns(first, T::default()), [whole::<T>(self.j as i32) + one_half; BLOCK]];
        self.velocity.trace_block::<R>(n, scratch, [0, 1], [T::default(), one_half]);
        held.u.value_block::<R>(n, scratch);
        to.copy_from_slice(&scratch.found[..n]);
        close(self.mask.map(|mask| &mask[c..]), LEFT_OPEN, to);
    }

    /// [`Row::carry`] to upper faces.
    #[inline(always)]
    fn carry_down<R: Rules>(&self, held: &Velocity<'_, T>, first: usize, scratch: &mut Scratch<T>, to: &mut [T]) {
        let Velocity { width, u, v, .. } = self.velocity;
        let (one_half, quarter, n) = (real::<T>(0.5), real::<T>(0.25), to.len());
        let c = self.j * width + first;
        mean([c - width, c, c - width + 1, c + 1], u.values, quarter, &mut scratch.velocity[0][..n]);
        scratch.velocity[1][..n].copy_from_slice(&v.values[c..][..n]);
        scratch.places = [columns(first, one_half), [whole(self.j as i32); BLOCK]];
        self.velocity.trace_block::<R>(n, scratch, [1, 0], [one_half, T::default()]);
        held.v.value_block::<R>(n, scratch);
        to.copy_from_slice(&scratch.found[..n]);
        close(self.mask.map(|mask| &mask[c..]), UPPER_OPEN, to);
    }
}

/// Places of a row's nodes from column `first` on, `offset` beyond.
#[inline(always)]
fn columns<T: Real>(first: usize, offset: T) -> Block<T> {
    let mut places = [offset; BLOCK];
    for l in 0..BLOCK {
        places[l] = whole::<T>((first + l) as i32) + offset;
    }
    places
}

/// The mean of four nodes: `quarter ((q[0] + q[1]) + (q[2] + q[3]))` of those from `starts` on.
#[inline(always)]
fn mean<T: Real>(starts: [usize; 4], values: &[T], quarter: T, to: &mut [T]) {
    let n = to.len();
    let [a, b, c, d] = starts.map(|start| &values[start..][..n]);
    for l in 0..n {
        to[l] = quarter * ((a[l] + b[l]) + (c[l] + d[l]));
    }
}

widest! {
    /// Spreads both components of the velocity in one row.
    fn spread_row<'v; T: Real, R: Rules>(row: Row<'v, T>, viscosity: T, g: &'v mut [T], f: &'v mut [T]) -> () {
        let Velocity { width, u, v, .. } = row.velocity;
        // Cells beside obstacles have neighbours that are none.
        let inner = if row.mask.is_some() { 0..0 } else { row.inner() };
        for i in row.outer(&inner) {
            [g[i], f[i]] = row.spread::<R>(viscosity, i);
        }
        let c = row.j * width;
        for (values, to, first_along) in [(u.values, g, true), (v.values, f, false)] {
            if inner.is_empty() {
                continue;
            }
            let n = inner.len();
            let line = |c: usize| &values[c + inner.start..][..n];
            let (above, before, here, behind, below) =
                (line(c - width), line(c - 1), line(c), line(c + 1), line(c + width));
            let to = &mut to[inner.clone()][..n];
            for i in 0..n {
                let middle = here[i];
                let beside = (before[i] - middle) + (behind[i] - middle);
                let upright = (above[i] - middle) + (below[i] - middle);
                let sum = if first_along { beside + upright } else { upright + beside };
                to[i] = middle + viscosity * sum;
            }
        }
    }
}

/// `flow_spread` of `cl/pde/flow_momentum.cl`.
fn spread<T: Real, R: Rules>(
    velocity: Velocity<'_, T>,
    viscosity: T,
    mask: Option<&[u32]>,
    g: &mut [T],
    f: &mut [T],
) {
    let width = velocity.width;
    threads::each((ChunksMut(g, width), ChunksMut(f, width)), 1, |j, (g, f)| {
        spread_row::<T, R>(Row { velocity, mask, j }, viscosity, g, f);
    });
}

widest! {
    /// Carries both components of `held` to one row.
    fn carry_row<'v; T: Real, R: Rules>(row: Row<'v, T>, held: Velocity<'v, T>, cu: &'v mut [T], cv: &'v mut [T]) -> () {
        let inner = row.inner();
        for i in row.outer(&inner) {
            [cu[i], cv[i]] = row.carry::<R>(&held, i);
        }
        let mut scratch = Scratch::new();
        for first in inner.clone().step_by(BLOCK) {
            let block = first..inner.end.min(first + BLOCK);
            row.carry_along::<R>(&held, first, &mut scratch, &mut cu[block.clone()]);
            row.carry_down::<R>(&held, first, &mut scratch, &mut cv[block]);
        }
    }
}

/// `flow_carry` of `cl/pde/flow_momentum.cl`; `held` is what is carried.
fn carry<T: Real, R: Rules>(
    velocity: Velocity<'_, T>,
    held: Velocity<'_, T>,
    mask: Option<&[u32]>,
    cu: &mut [T],
    cv: &mut [T],
) {
    let width = velocity.width;
    threads::each((ChunksMut(cu, width), ChunksMut(cv, width)), 1, |j, (cu, cv)| {
        carry_row::<T, R>(Row { velocity, mask, j }, held, cu, cv);
    });
}

/// `cell_at` of `cl/pde/flow_transport.cl`.
#[inline(always)]
fn cell_at<T: Real, R: Rules>(q: &[T], [width, height]: [usize; 2], x: T, y: T) -> T {
    let (i, j) = (floored(x), floored(y));
    let (fx, fy) = (x - whole(i), y - whole(j));
    let cell = |di: i32, dj: i32| {
        let x = (i + di).clamp(0, width as i32 - 1) as usize;
        let y = (j + dj).clamp(0, height as i32 - 1) as usize;
        q[y * width + x]
    };
    let (q00, q10, q01, q11) = (cell(0, 0), cell(1, 0), cell(0, 1), cell(1, 1));
    if !R::CUBIC {
        return blend(blend(q00, q10, fx), blend(q01, q11, fx), fy);
    }
    let (wx, wy) = (cubic_weights(fx), cubic_weights(fy));
    let line = |k: i32| weighted(&wx, &[cell(-1, k), cell(0, k), cell(1, k), cell(2, k)]);
    let value = weighted(&wy, &[line(-1), line(0), line(1), line(2)]);
    let lesser = |a: T, b: T| if b < a { b } else { a };
    let greater = |a: T, b: T| if a < b { b } else { a };
    let low = lesser(lesser(q00, q10), lesser(q01, q11));
    let high = greater(greater(q00, q10), greater(q01, q11));
    if value < low {
        low
    } else if value > high {
        high
    } else {
        value
    }
}

impl<T: Real> Row<'_, T> {
    /// Value that the flow carries to cell `i` of the row.
    fn transport<R: Rules>(&self, q: &[T], i: usize) -> T {
        let Velocity { width, height, u, v, .. } = self.velocity;
        let (one_half, c) = (real::<T>(0.5), self.j * width + i);
        if !self.is_open(i, FLUID) {
            return q[c];
        }
        let (a, b) = (i as i32, self.j as i32);
        let vx = one_half * (u.values[c] + u.node::<R>(a + 1, b));
        let vy = one_half * (v.values[c] + v.node::<R>(b + 1, a));
        let place = [whole::<T>(a) + one_half, whole::<T>(b) + one_half];
        let [x, y] = self.velocity.trace_back::<R>([vx, vy], place);
        cell_at::<T, R>(q, [width, height], x - one_half, y - one_half)
    }

    /// [`Row::transport`] for inner columns from `first` on, at most [`BLOCK`].
    #[inline(always)]
    fn transport_block<R: Rules>(&self, q: &[T], first: usize, scratch: &mut Scratch<T>, to: &mut [T]) {
        let Velocity { width, height, u, v, .. } = self.velocity;
        let (one_half, n, c) = (real::<T>(0.5), to.len(), self.j * width + first);
        for (k, (from, further)) in [(u.values, 1), (v.values, width)].into_iter().enumerate() {
            let (here, there) = (&from[c..][..n], &from[c + further..][..n]);
            for ((velocity, here), there) in scratch.velocity[k][..n].iter_mut().zip(here).zip(there) {
                *velocity = one_half * (*here + *there);
            }
        }
        scratch.places = [columns(first, one_half), [whole::<T>(self.j as i32) + one_half; BLOCK]];
        self.velocity.trace_block::<R>(n, scratch, [0, 1], [one_half; 2]);
        if R::CUBIC {
            let [x, y] = &scratch.places;
            for ((to, x), y) in to.iter_mut().zip(x).zip(y) {
                *to = cell_at::<T, R>(q, [width, height], *x, *y);
            }
        } else {
            cells_block(q, [width, height], n, scratch);
            to.copy_from_slice(&scratch.found[..n]);
        }
        if let Some(mask) = self.mask {
            for ((to, word), q) in to.iter_mut().zip(&mask[c..]).zip(&q[c..]) {
                if word & FLUID == 0 {
                    *to = *q;
                }
            }
        }
    }
}

widest! {
    /// Carries values of cells to one row.
    fn transport_row<'v; T: Real, R: Rules>(row: Row<'v, T>, q: &'v [T], carried: &'v mut [T]) -> () {
        let inner = row.inner();
        for i in row.outer(&inner) {
            carried[i] = row.transport::<R>(q, i);
        }
        let mut scratch = Scratch::new();
        for first in inner.clone().step_by(BLOCK) {
            let block = first..inner.end.min(first + BLOCK);
            row.transport_block::<R>(q, first, &mut scratch, &mut carried[block]);
        }
    }
}

/// `flow_transport` of `cl/pde/flow_transport.cl`.
fn transport<T: Real, R: Rules>(velocity: Velocity<'_, T>, mask: Option<&[u32]>, q: &[T], carried: &mut [T]) {
    threads::each(ChunksMut(carried, velocity.width), 1, |j, carried| {
        transport_row::<T, R>(Row { velocity, mask, j }, q, carried);
    });
}

widest! {
    /// `flow_divergence` of `cl/pde/flow_pressure.cl` in one row; `below` is the row of `v` after it.
    fn divergence_row<'v; T: Real>(u: &'v [T], v: &'v [T], below: Option<&'v [T]>, b: &'v mut [T]) -> () {
        let (n, zero) = (b.len() - 1, T::default());
        let (left, right, upper) = (&u[..n], &u[1..][..n], &v[..n]);
        match below {
            Some(below) => {
                let (b, lower) = (&mut b[..n], &below[..n]);
                for i in 0..n {
                    b[i] = -((right[i] - left[i]) + (lower[i] - upper[i]));
                }
            }
            None => {
                let b = &mut b[..n];
                for i in 0..n {
                    b[i] = -((right[i] - left[i]) + (zero - upper[i]));
                }
            }
        }
        // Nothing flows through the far rims.
        b[n] = -((zero - u[n]) + (below.map_or(zero, |below| below[n]) - v[n]));
    }
}

widest! {
    /// `to = from - (p - other)`.
    fn subtract_difference<'v; T: Real>(from: &'v [T], p: &'v [T], other: &'v [T], to: &'v mut [T]) -> () {
        let n = to.len();
        let (from, p, other) = (&from[..n], &p[..n], &other[..n]);
        for i in 0..n {
            to[i] = from[i] - (p[i] - other[i]);
        }
    }
}

/// Sets what lies where a bit of the mask is missing to 0.
fn close<T: Real>(mask: Option<&[u32]>, bit: u32, to: &mut [T]) {
    for (to, word) in to.iter_mut().zip(mask.unwrap_or_default()) {
        if word & bit == 0 {
            *to = T::default();
        }
    }
}

fn words<'a>(grid: &FlowGrid<'a>) -> Result<Option<&'a [u32]>> {
    grid.mask.map(Memory::host).transpose()
}

impl<T: Real> FlowOps<T> for Host {
    fn flow_spread(
        &self,
        _: Run<'_>,
        grid: FlowGrid<'_>,
        step: FlowStep<T>,
        [u, v]: [&Memory<T>; 2],
        [g, f]: [&mut Memory<T>; 2],
    ) -> Result<()> {
        let velocity = Velocity::new(grid, step, u.host()?, v.host()?);
        let (mask, g, f) = (words(&grid)?, g.host_mut()?, f.host_mut()?);
        by_rules!(grid, T, spread(velocity, step.viscosity, mask, g, f));
        Ok(())
    }

    fn flow_carry(
        &self,
        _: Run<'_>,
        grid: FlowGrid<'_>,
        step: FlowStep<T>,
        [u, v]: [&Memory<T>; 2],
        [g, f]: [&Memory<T>; 2],
        [cu, cv]: [&mut Memory<T>; 2],
    ) -> Result<()> {
        let velocity = Velocity::new(grid, step, u.host()?, v.host()?);
        let held = Velocity::new(grid, step, g.host()?, f.host()?);
        let (mask, cu, cv) = (words(&grid)?, cu.host_mut()?, cv.host_mut()?);
        by_rules!(grid, T, carry(velocity, held, mask, cu, cv));
        Ok(())
    }

    fn flow_divergence(
        &self,
        _: Run<'_>,
        grid: FlowGrid<'_>,
        [u, v]: [&Memory<T>; 2],
        b: &mut Memory<T>,
    ) -> Result<()> {
        let (mask, u, v, width) = (words(&grid)?, u.host()?, v.host()?, grid.width);
        threads::each(ChunksMut(b.host_mut()?, width), 1, |j, b| {
            let c = j * width;
            let below = (j + 1 < grid.height).then(|| &v[c + width..][..width]);
            divergence_row(&u[c..][..width], &v[c..][..width], below, b);
            close(mask.map(|mask| &mask[c..]), FLUID, b);
        });
        Ok(())
    }

    fn subtract_gradient(
        &self,
        _: Run<'_>,
        grid: FlowGrid<'_>,
        p: &Memory<T>,
        [g, f]: [&Memory<T>; 2],
        [u, v]: [&mut Memory<T>; 2],
    ) -> Result<()> {
        let (mask, p, g, f, width) = (words(&grid)?, p.host()?, g.host()?, f.host()?, grid.width);
        let lines = (ChunksMut(u.host_mut()?, width), ChunksMut(v.host_mut()?, width));
        threads::each(lines, 1, |j, (u, v)| {
            let c = j * width;
            let p_here = &p[c..][..width];
            subtract_difference(&g[c + 1..], &p_here[1..], p_here, &mut u[1..]);
            u[0] = T::default();
            match j {
                0 => v.fill(T::default()),
                _ => subtract_difference(&f[c..], p_here, &p[c - width..], v),
            }
            let mask = mask.map(|mask| &mask[c..]);
            close(mask, LEFT_OPEN, u);
            close(mask, UPPER_OPEN, v);
        });
        Ok(())
    }

    fn flow_transport(
        &self,
        _: Run<'_>,
        grid: FlowGrid<'_>,
        step: FlowStep<T>,
        [u, v]: [&Memory<T>; 2],
        q: &Memory<T>,
        carried: &mut Memory<T>,
    ) -> Result<()> {
        let velocity = Velocity::new(grid, step, u.host()?, v.host()?);
        let (mask, q, carried) = (words(&grid)?, q.host()?, carried.host_mut()?);
        by_rules!(grid, T, transport(velocity, mask, q, carried));
        Ok(())
    }

    fn splat(
        &self,
        _: Run<'_>,
        width: usize,
        mask: Option<&Memory<u32>>,
        bump: Splat<T>,
        q: &mut Memory<T>,
    ) -> Result<()> {
        let mask = mask.map(Memory::host).transpose()?;
        let Splat { place, node, inverse, amount, columns, rows, bits } = bump;
        let reached = &mut q.host_mut()?[rows.start * width..rows.end * width];
        threads::each(ChunksMut(reached, width), 1, |j, q| {
            let j = rows.start + j;
            let ay = (whole::<T>(j as i32) + node[1]) - place[1];
            for i in columns.clone() {
                let ax = (whole::<T>(i as i32) + node[0]) - place[0];
                let rest = real::<T>(1.0) - inverse * (ax * ax + ay * ay);
                if rest > T::default() && mask.is_none_or(|mask| mask[j * width + i] & bits != 0) {
                    q[i] = q[i] + amount * (rest * rest);
                }
            }
        });
        Ok(())
    }
}
