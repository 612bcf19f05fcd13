//! Steps of flows on the host: the functions of `cl/flow_grid.cl` and of the kernels after it, operation for operation.

use rayon::prelude::*;

use super::{
    FLUID, FlowGrid, FlowOps, FlowStep, LEFT_BURIED, LEFT_OPEN, Splat, UPPER_BURIED, UPPER_OPEN,
};
use crate::backend::{Host, Run};
use crate::error::Result;
use crate::memory::Memory;
use crate::number::Real;

/// How values between nodes are found: options of the kernels.
trait Rules: Copy + Send + Sync {
    const CUBIC: bool;
    const MIDPOINT: bool;
    const SLIP: bool;
}

#[derive(Clone, Copy)]
struct By<const CUBIC: bool, const MIDPOINT: bool, const SLIP: bool>;

impl<const C: bool, const M: bool, const S: bool> Rules for By<C, M, S> {
    const CUBIC: bool = C;
    const MIDPOINT: bool = M;
    const SLIP: bool = S;
}

/// Calls a function with the rules of a grid.
macro_rules! by_rules {
    ($grid:expr, $t:ty, $function:ident($($arg:expr),* $(,)?)) => {
        match ($grid.cubic, $grid.midpoint, $grid.slip) {
            (false, false, false) => $function::<$t, By<false, false, false>>($($arg),*),
            (false, false, true) => $function::<$t, By<false, false, true>>($($arg),*),
            (false, true, false) => $function::<$t, By<false, true, false>>($($arg),*),
            (false, true, true) => $function::<$t, By<false, true, true>>($($arg),*),
            (true, false, false) => $function::<$t, By<true, false, false>>($($arg),*),
            (true, false, true) => $function::<$t, By<true, false, true>>($($arg),*),
            (true, true, false) => $function::<$t, By<true, true, false>>($($arg),*),
            (true, true, true) => $function::<$t, By<true, true, true>>($($arg),*),
        }
    };
}

fn real<T: Real>(value: f64) -> T {
    T::from_f64(value)
}

fn whole<T: Real>(value: i32) -> T {
    T::from_f64(f64::from(value))
}

fn floored<T: Real>(x: T) -> i32 {
    let found = x.to_f64() as i32;
    if x < whole(found) { found - 1 } else { found }
}

fn within<T: Real>(x: T, last: T) -> T {
    if x > T::default() {
        if x < last { x } else { last }
    } else {
        T::default()
    }
}

fn blend<T: Real>(from: T, to: T, part: T) -> T {
    from + part * (to - from)
}

fn cubic_weights<T: Real>(f: T) -> [T; 4] {
    let (sixth, one_half) = (real::<T>(1.0 / 6.0), real::<T>(0.5));
    let (before, behind, further) = (f + real(1.0), f - real(1.0), f - real(2.0));
    [
        -(sixth * (f * behind * further)),
        one_half * (before * behind * further),
        -(one_half * (before * f * further)),
        sixth * (before * f * behind),
    ]
}

fn weighted<T: Real>(w: &[T; 4], q: &[T; 4]) -> T {
    (w[0] * q[0] + w[1] * q[1]) + (w[2] * q[2] + w[3] * q[3])
}

/// `component_t`.
#[derive(Clone, Copy)]
struct Component<'a, T> {
    values: &'a [T],
    na: i32,
    nb: i32,
    stride_a: usize,
    stride_b: usize,
    wall: T,
}

impl<T: Real> Component<'_, T> {
    #[inline(always)]
    fn at(&self, a: i32, b: i32) -> T {
        self.values[a as usize * self.stride_a + b as usize * self.stride_b]
    }

    #[inline(always)]
    fn node<R: Rules>(&self, a: i32, b: i32) -> T {
        if a >= 0 && a < self.na && b >= 0 && b < self.nb { self.at(a, b) } else { self.mirrored::<R>(a, b) }
    }

    /// A node beyond a rim, or on a far one.
    #[cold]
    fn mirrored<R: Rules>(&self, mut a: i32, mut b: i32) -> T {
        let mut mirrored = false;
        if a < 0 {
            (a, mirrored) = (-a, true);
        }
        if a > self.na {
            (a, mirrored) = (2 * self.na - a, true);
        }
        let before = b < 0;
        let beyond = before || b >= self.nb;
        if before {
            b = -1 - b;
        } else if beyond {
            b = 2 * self.nb - 1 - b;
        }
        let found = if a == self.na { T::default() } else { self.at(a, b) };
        let value = if mirrored { -found } else { found };
        if !beyond || R::SLIP {
            return value;
        }
        let wall = if before { self.wall } else { T::default() };
        (wall + wall) - value
    }

    #[inline(always)]
    fn linear_at<R: Rules>(&self, a: T, b: T) -> T {
        let (a0, b0) = (floored(a), floored(b));
        let (fa, fb) = (a - whole(a0), b - whole(b0));
        let q = |da: i32, db: i32| self.node::<R>(a0 + da, b0 + db);
        blend(blend(q(0, 0), q(1, 0), fa), blend(q(0, 1), q(1, 1), fa), fb)
    }

    fn cubic_at<R: Rules>(&self, a: T, b: T) -> T {
        let (a0, b0) = (floored(a), floored(b));
        let (wa, wb) = (cubic_weights(a - whole(a0)), cubic_weights(b - whole(b0)));
        let line = |k: i32| {
            let q = |l: i32| self.node::<R>(a0 - 1 + l, b0 - 1 + k);
            weighted(&wa, &[q(0), q(1), q(2), q(3)])
        };
        weighted(&wb, &[line(0), line(1), line(2), line(3)])
    }

    #[inline(always)]
    fn value_at<R: Rules>(&self, a: T, b: T) -> T {
        if R::CUBIC { self.cubic_at::<R>(a, b) } else { self.linear_at::<R>(a, b) }
    }

    /// `laplacian` of `cl/flow_momentum.cl`.
    #[inline(always)]
    fn laplacian<R: Rules>(&self, a: i32, b: i32, mask: Option<&[u32]>, buried: u32) -> T {
        let middle = self.node::<R>(a, b);
        let mut sum = T::default();
        for side in [-1, 1] {
            let there = b + side;
            let place = || a as usize * self.stride_a + there as usize * self.stride_b;
            let in_wall = mask.is_some_and(|mask| there >= 0 && there < self.nb && mask[place()] & buried != 0);
            let value = match (in_wall, R::SLIP) {
                (true, true) => middle,
                (true, false) => -middle,
                (false, _) => self.node::<R>(a, there),
            };
            sum = if side < 0 { value - middle } else { sum + (value - middle) };
        }
        ((self.node::<R>(a - 1, b) - middle) + (self.node::<R>(a + 1, b) - middle)) + sum
    }
}

/// Both components of a velocity on a grid.
#[derive(Clone, Copy)]
struct Velocity<'a, T> {
    width: usize,
    height: usize,
    u: Component<'a, T>,
    v: Component<'a, T>,
    step: T,
}

impl<'a, T: Real> Velocity<'a, T> {
    fn new(grid: FlowGrid<'_>, step: FlowStep<T>, u: &'a [T], v: &'a [T]) -> Self {
        let FlowGrid { width, height, .. } = grid;
        let (na, nb) = (width as i32, height as i32);
        Self {
            width,
            height,
            u: Component { values: u, na, nb, stride_a: 1, stride_b: width, wall: step.lid },
            v: Component { values: v, na: nb, nb: na, stride_a: width, stride_b: 1, wall: T::default() },
            step: step.step,
        }
    }

    /// `trace_back` of `cl/flow_grid.cl`.
    #[inline(always)]
    fn trace_back<R: Rules>(&self, mut velocity: [T; 2], [x, y]: [T; 2]) -> [T; 2] {
        let (width, height, one_half) = (whole::<T>(self.width as i32), whole::<T>(self.height as i32), real::<T>(0.5));
        if R::MIDPOINT {
            let half_step = one_half * self.step;
            let mx = within(x - half_step * velocity[0], width);
            let my = within(y - half_step * velocity[1], height);
            velocity = [self.u.linear_at::<R>(mx, my - one_half), self.v.linear_at::<R>(my, mx - one_half)];
        }
        [within(x - self.step * velocity[0], width), within(y - self.step * velocity[1], height)]
    }
}

/// `flow_spread` of `cl/flow_momentum.cl`.
fn spread<T: Real, R: Rules>(velocity: Velocity<'_, T>, viscosity: T, mask: Option<&[u32]>, g: &mut [T], f: &mut [T]) {
    let Velocity { width, u, v, .. } = velocity;
    g.par_chunks_mut(width).zip(f.par_chunks_mut(width)).enumerate().for_each(|(row, (g, f))| {
        let j = row as i32;
        for (column, (g, f)) in g.iter_mut().zip(f).enumerate() {
            let (i, c) = (column as i32, row * width + column);
            let bits = mask.map_or(LEFT_OPEN | UPPER_OPEN, |mask| mask[c]);
            *g = T::default();
            if i > 0 && bits & LEFT_OPEN != 0 {
                *g = u.values[c] + viscosity * u.laplacian::<R>(i, j, mask, LEFT_BURIED);
            }
            *f = T::default();
            if j > 0 && bits & UPPER_OPEN != 0 {
                *f = v.values[c] + viscosity * v.laplacian::<R>(j, i, mask, UPPER_BURIED);
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
    let Velocity { width, u, v, .. } = velocity;
    let (one_half, quarter) = (real::<T>(0.5), real::<T>(0.25));
    cu.par_chunks_mut(width).zip(cv.par_chunks_mut(width)).enumerate().for_each(|(row, (cu, cv))| {
        let j = row as i32;
        for (column, (cu, cv)) in cu.iter_mut().zip(cv).enumerate() {
            let (i, c) = (column as i32, row * width + column);
            let bits = mask.map_or(LEFT_OPEN | UPPER_OPEN, |mask| mask[c]);
            *cu = T::default();
            if i > 0 && bits & LEFT_OPEN != 0 {
                let sum = (v.values[c - 1] + v.values[c]) + (v.node::<R>(j + 1, i - 1) + v.node::<R>(j + 1, i));
                let place = [whole(i), whole::<T>(j) + one_half];
                let [x, y] = velocity.trace_back::<R>([u.values[c], quarter * sum], place);
                *cu = held.u.value_at::<R>(x, y - one_half);
            }
            *cv = T::default();
            if j > 0 && bits & UPPER_OPEN != 0 {
                let sum = (u.values[c - width] + u.values[c]) + (u.node::<R>(i + 1, j - 1) + u.node::<R>(i + 1, j));
                let place = [whole::<T>(i) + one_half, whole(j)];
                let [x, y] = velocity.trace_back::<R>([quarter * sum, v.values[c]], place);
                *cv = held.v.value_at::<R>(y, x - one_half);
            }
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

/// `flow_transport` of `cl/flow_transport.cl`.
fn transport<T: Real, R: Rules>(velocity: Velocity<'_, T>, mask: Option<&[u32]>, q: &[T], carried: &mut [T]) {
    let Velocity { width, height, u, v, .. } = velocity;
    let one_half = real::<T>(0.5);
    carried.par_chunks_mut(width).enumerate().for_each(|(row, line)| {
        let j = row as i32;
        for (column, carried) in line.iter_mut().enumerate() {
            let (i, c) = (column as i32, row * width + column);
            if mask.is_some_and(|mask| mask[c] & FLUID == 0) {
                *carried = q[c];
                continue;
            }
            let vx = one_half * (u.values[c] + u.node::<R>(i + 1, j));
            let vy = one_half * (v.values[c] + v.node::<R>(j + 1, i));
            let place = [whole::<T>(i) + one_half, whole::<T>(j) + one_half];
            let [x, y] = velocity.trace_back::<R>([vx, vy], place);
            *carried = cell_at::<T, R>(q, [width, height], x - one_half, y - one_half);
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

    fn splat(&self, _: Run<'_>, grid: FlowGrid<'_>, bump: Splat<T>, q: &mut Memory<T>) -> Result<()> {
        let (mask, width) = (words(&grid)?, grid.width);
        let Splat { place, node, inverse, amount, from, bits } = bump;
        q.host_mut()?.par_chunks_mut(width).enumerate().skip(from[1]).for_each(|(j, q)| {
            let ay = (whole::<T>(j as i32) + node[1]) - place[1];
            for (i, q) in q.iter_mut().enumerate().skip(from[0]) {
                let ax = (whole::<T>(i as i32) + node[0]) - place[0];
                let rest = real::<T>(1.0) - inverse * (ax * ax + ay * ay);
                if rest > T::default() && mask.is_none_or(|mask| mask[j * width + i] & bits != 0) {
                    *q = *q + amount * (rest * rest);
                }
            }
        });
        Ok(())
    }
}
