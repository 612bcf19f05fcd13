//! Steps of flows on the host: the kernels of `cl/flow_momentum.cl`, `cl/flow_pressure.cl`, `cl/flow_transport.cl` and `cl/splat.cl`,
//! operation for operation. Nodes whose neighbours are all there are worked on in blocks.

use rayon::prelude::*;

use super::sampling::{
    BLOCK, By, Rules, Velocity, blend, by_rules, cells_block, cubic_weights, floored, real, weighted, whole,
};
use super::{FLUID, FlowGrid, FlowOps, FlowStep, LEFT_BURIED, LEFT_OPEN, Splat, UPPER_BURIED, UPPER_OPEN};
use crate::backend::{Host, Run};
use crate::error::Result;
use crate::memory::Memory;
use crate::number::Real;

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

    /// Columns that have neighbours on all sides, if the row has; and the others.
    fn inner(&self) -> (std::ops::Range<usize>, impl Iterator<Item = usize> + use<T>) {
        let Velocity { width, height, .. } = self.velocity;
        let inner = if self.j > 0 && self.j + 1 < height { 1..width - 1 } else { 0..0 };
        (inner.clone(), (0..inner.start).chain(inner.end..width))
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
    fn carry_along<R: Rules>(&self, held: &Velocity<'_, T>, first: usize, to: &mut [T]) {
        let Velocity { width, u, v, .. } = self.velocity;
        let (one_half, quarter, n) = (real::<T>(0.5), real::<T>(0.25), to.len());
        let c = self.j * width + first;
        let (here, below) = (&v.values[c - 1..][..n + 1], &v.values[c - 1 + width..][..n + 1]);
        let mut velocity = [[T::default(); BLOCK]; 2];
        velocity[0][..n].copy_from_slice(&u.values[c..][..n]);
        let mut places = [[T::default(); BLOCK], [whole::<T>(self.j as i32) + one_half; BLOCK]];
        for l in 0..n {
            velocity[1][l] = quarter * ((here[l] + here[l + 1]) + (below[l] + below[l + 1]));
            places[0][l] = whole((first + l) as i32);
        }
        self.velocity.trace_block::<R>(n, &mut velocity, &mut places, [T::default(), one_half]);
        held.u.value_block::<R>([&places[0], &places[1]], to);
        self.close(first, LEFT_OPEN, to);
    }

    /// [`Row::carry`] to upper faces.
    #[inline(always)]
    fn carry_down<R: Rules>(&self, held: &Velocity<'_, T>, first: usize, to: &mut [T]) {
        let Velocity { width, u, v, .. } = self.velocity;
        let (one_half, quarter, n) = (real::<T>(0.5), real::<T>(0.25), to.len());
        let c = self.j * width + first;
        let (above, here) = (&u.values[c - width..][..n + 1], &u.values[c..][..n + 1]);
        let mut velocity = [[T::default(); BLOCK]; 2];
        velocity[1][..n].copy_from_slice(&v.values[c..][..n]);
        let mut places = [[T::default(); BLOCK], [whole(self.j as i32); BLOCK]];
        for l in 0..n {
            velocity[0][l] = quarter * ((above[l] + here[l]) + (above[l + 1] + here[l + 1]));
            places[0][l] = whole::<T>((first + l) as i32) + one_half;
        }
        self.velocity.trace_block::<R>(n, &mut velocity, &mut places, [one_half, T::default()]);
        held.v.value_block::<R>([&places[1], &places[0]], to);
        self.close(first, UPPER_OPEN, to);
    }

    /// Sets what lies on faces of walls to 0.
    fn close(&self, first: usize, bit: u32, to: &mut [T]) {
        let Some(mask) = self.mask else { return };
        for (to, word) in to.iter_mut().zip(&mask[self.j * self.velocity.width + first..]) {
            if word & bit == 0 {
                *to = T::default();
            }
        }
    }
}

/// `flow_spread` of `cl/flow_momentum.cl`.
fn spread<T: Real, R: Rules>(
    velocity: Velocity<'_, T>,
    viscosity: T,
    mask: Option<&[u32]>,
    g: &mut [T],
    f: &mut [T],
) {
    let Velocity { width, u, v, .. } = velocity;
    g.par_chunks_mut(width).zip(f.par_chunks_mut(width)).enumerate().for_each(|(j, (g, f))| {
        let row = Row { velocity, mask, j };
        let (inner, outer) = row.inner();
        // Cells beside obstacles have neighbours that are none.
        let inner = if mask.is_some() { 0..0 } else { inner };
        let rest: Vec<usize> = if inner.is_empty() { (0..width).collect() } else { outer.collect() };
        for i in rest {
            [g[i], f[i]] = row.spread::<R>(viscosity, i);
        }
        let c = j * width;
        for (values, to, first_along) in [(u.values, g, true), (v.values, f, false)] {
            if inner.is_empty() {
                continue;
            }
            let line = |c: usize| &values[c..][..width];
            let (above, here, below) = (line(c - width), line(c), line(c + width));
            for i in inner.clone() {
                let middle = here[i];
                let beside = (here[i - 1] - middle) + (here[i + 1] - middle);
                let upright = (above[i] - middle) + (below[i] - middle);
                let sum = if first_along { beside + upright } else { upright + beside };
                to[i] = middle + viscosity * sum;
            }
        }
    });
}

/// `flow_carry` of `cl/flow_momentum.cl`; `held` is what is carried.
fn carry<T: Real, R: Rules>(
    velocity: Velocity<'_, T>,
    held: Velocity<'_, T>,
    mask: Option<&[u32]>,
    cu: &mut [T],
    cv: &mut [T],
) {
    let width = velocity.width;
    cu.par_chunks_mut(width).zip(cv.par_chunks_mut(width)).enumerate().for_each(|(j, (cu, cv))| {
        let row = Row { velocity, mask, j };
        let (inner, outer) = row.inner();
        for i in outer {
            [cu[i], cv[i]] = row.carry::<R>(&held, i);
        }
        for first in inner.clone().step_by(BLOCK) {
            let block = first..inner.end.min(first + BLOCK);
            row.carry_along::<R>(&held, first, &mut cu[block.clone()]);
            row.carry_down::<R>(&held, first, &mut cv[block]);
        }
    });
}

/// `cell_at` of `cl/flow_transport.cl`.
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
    fn transport_block<R: Rules>(&self, q: &[T], first: usize, to: &mut [T]) {
        let Velocity { width, height, u, v, .. } = self.velocity;
        let (one_half, n, c) = (real::<T>(0.5), to.len(), self.j * width + first);
        let (along, here, below) = (&u.values[c..][..n + 1], &v.values[c..][..n], &v.values[c + width..][..n]);
        let mut velocity = [[T::default(); BLOCK]; 2];
        let mut places = [[T::default(); BLOCK], [whole::<T>(self.j as i32) + one_half; BLOCK]];
        for l in 0..n {
            velocity[0][l] = one_half * (along[l] + along[l + 1]);
            velocity[1][l] = one_half * (here[l] + below[l]);
            places[0][l] = whole::<T>((first + l) as i32) + one_half;
        }
        self.velocity.trace_block::<R>(n, &mut velocity, &mut places, [one_half; 2]);
        if R::CUBIC {
            for (l, to) in to.iter_mut().enumerate() {
                *to = cell_at::<T, R>(q, [width, height], places[0][l], places[1][l]);
            }
        } else {
            cells_block(q, [width, height], [&places[0], &places[1]], to);
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

/// `flow_transport` of `cl/flow_transport.cl`.
fn transport<T: Real, R: Rules>(velocity: Velocity<'_, T>, mask: Option<&[u32]>, q: &[T], carried: &mut [T]) {
    carried.par_chunks_mut(velocity.width).enumerate().for_each(|(j, carried)| {
        let row = Row { velocity, mask, j };
        let (inner, outer) = row.inner();
        for i in outer {
            carried[i] = row.transport::<R>(q, i);
        }
        for first in inner.clone().step_by(BLOCK) {
            row.transport_block::<R>(q, first, &mut carried[first..inner.end.min(first + BLOCK)]);
        }
    });
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
        let (mask, u, v, zero) = (words(&grid)?, u.host()?, v.host()?, T::default());
        let FlowGrid { width, height, .. } = grid;
        b.host_mut()?.par_chunks_mut(width).enumerate().for_each(|(j, b)| {
            for (i, b) in b.iter_mut().enumerate() {
                let c = j * width + i;
                let right = if i + 1 < width { u[c + 1] } else { zero };
                let lower = if j + 1 < height { v[c + width] } else { zero };
                let fluid = mask.is_none_or(|mask| mask[c] & FLUID != 0);
                *b = if fluid { -((right - u[c]) + (lower - v[c])) } else { zero };
            }
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
        let lines = u.host_mut()?.par_chunks_mut(width).zip(v.host_mut()?.par_chunks_mut(width));
        lines.enumerate().for_each(|(j, (u, v))| {
            for (i, (u, v)) in u.iter_mut().zip(v).enumerate() {
                let c = j * width + i;
                let bits = mask.map_or(LEFT_OPEN | UPPER_OPEN, |mask| mask[c]);
                *u = if i > 0 && bits & LEFT_OPEN != 0 { g[c] - (p[c] - p[c - 1]) } else { T::default() };
                *v = if j > 0 && bits & UPPER_OPEN != 0 { f[c] - (p[c] - p[c - width]) } else { T::default() };
            }
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
        q.host_mut()?.par_chunks_mut(width).enumerate().skip(rows.start).take(rows.len()).for_each(|(j, q)| {
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
