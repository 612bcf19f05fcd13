//! Values of staggered grids between their nodes, on the host: the functions of `cl/pde/flow_grid.cl`, operation for operation (but
//! [`floored`], which finds the same integer by another way), and loops over blocks of places that the compiler makes vector instructions of.

use std::ops::Range;

use super::{FlowGrid, FlowStep};
use crate::number::Real;

/// Places that are worked on together.
pub(crate) const BLOCK: usize = 64;

/// Rules of interpolation and tracing: options of the kernels.
pub(crate) trait Rules: Copy + Send + Sync {
    const CUBIC: bool;
    const MIDPOINT: bool;
    const SLIP: bool;
}

#[derive(Clone, Copy)]
pub(crate) struct By<const CUBIC: bool, const MIDPOINT: bool, const SLIP: bool>;

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
pub(crate) use by_rules;

#[inline(always)]
pub(crate) fn real<T: Real>(value: f64) -> T {
    T::from_f64(value)
}

#[inline(always)]
pub(crate) fn whole<T: Real>(value: i32) -> T {
    T::of_integer(value)
}

/// The largest integer that is not above `x`.
#[inline(always)]
pub(crate) fn floored<T: Real>(x: T) -> i32 {
    let found = x.nearest();
    found - i32::from(x < whole(found))
}

#[inline(always)]
pub(crate) fn within<T: Real>(x: T, last: T) -> T {
    if x > T::default() { if x < last { x } else { last } } else { T::default() }
}

#[inline(always)]
pub(crate) fn blend<T: Real>(from: T, to: T, part: T) -> T {
    from + part * (to - from)
}

pub(crate) fn cubic_weights<T: Real>(f: T) -> [T; 4] {
    let (sixth, one_half) = (real::<T>(1.0 / 6.0), real::<T>(0.5));
    let (before, behind, further) = (f + real(1.0), f - real(1.0), f - real(2.0));
    [
        -(sixth * (f * behind * further)),
        one_half * (before * behind * further),
        -(one_half * (before * f * further)),
        sixth * (before * f * behind),
    ]
}

pub(crate) fn weighted<T: Real>(w: &[T; 4], q: &[T; 4]) -> T {
    (w[0] * q[0] + w[1] * q[1]) + (w[2] * q[2] + w[3] * q[3])
}

/// `component_t`.
#[derive(Clone, Copy)]
pub(crate) struct Component<'a, T> {
    pub(crate) values: &'a [T],
    pub(crate) na: i32,
    pub(crate) nb: i32,
    pub(crate) stride_a: usize,
    pub(crate) stride_b: usize,
    pub(crate) wall: T,
}

impl<T: Real> Component<'_, T> {
    #[inline(always)]
    fn at(&self, a: i32, b: i32) -> T {
        self.values[a as usize * self.stride_a + b as usize * self.stride_b]
    }

    #[inline(always)]
    pub(crate) fn node<R: Rules>(&self, a: i32, b: i32) -> T {
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
    pub(crate) fn linear_at<R: Rules>(&self, a: T, b: T) -> T {
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
    pub(crate) fn value_at<R: Rules>(&self, a: T, b: T) -> T {
        if R::CUBIC { self.cubic_at::<R>(a, b) } else { self.linear_at::<R>(a, b) }
    }

    /// `laplacian` of `cl/pde/flow_momentum.cl`.
    #[inline(always)]
    pub(crate) fn laplacian<R: Rules>(&self, a: i32, b: i32, mask: Option<&[u32]>, buried: u32) -> T {
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
pub(crate) struct Velocity<'a, T> {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) u: Component<'a, T>,
    pub(crate) v: Component<'a, T>,
    pub(crate) step: T,
}

impl<'a, T: Real> Velocity<'a, T> {
    pub(crate) fn new(grid: FlowGrid<'_>, step: FlowStep<T>, u: &'a [T], v: &'a [T]) -> Self {
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

    /// `trace_back` of `cl/pde/flow_grid.cl`.
    #[inline(always)]
    pub(crate) fn trace_back<R: Rules>(&self, mut velocity: [T; 2], [x, y]: [T; 2]) -> [T; 2] {
        let (width, height, one_half) =
            (whole::<T>(self.width as i32), whole::<T>(self.height as i32), real::<T>(0.5));
        if R::MIDPOINT {
            let half_step = one_half * self.step;
            let mx = within(x - half_step * velocity[0], width);
            let my = within(y - half_step * velocity[1], height);
            velocity = [self.u.linear_at::<R>(mx, my - one_half), self.v.linear_at::<R>(my, mx - one_half)];
        }
        [within(x - self.step * velocity[0], width), within(y - self.step * velocity[1], height)]
    }
}

/// Numbers of a block.
pub(crate) type Block<T> = [T; BLOCK];

/// Numbers that blocks are worked on with. Made once for many blocks: to make it takes as long as half a block.
pub(crate) struct Scratch<T> {
    /// Velocity at the places, and the places.
    pub(crate) velocity: [Block<T>; 2],
    pub(crate) places: [Block<T>; 2],
    /// Values found there.
    pub(crate) found: Block<T>,
    nodes: [[i32; BLOCK]; 2],
    parts: [Block<T>; 2],
    corners: [Block<T>; 4],
}

impl<T: Real> Scratch<T> {
    pub(crate) fn new() -> Self {
        let zero = [T::default(); BLOCK];
        let (nodes, two) = ([[0; BLOCK]; 2], [zero; 2]);
        Self { velocity: two, places: two, found: zero, nodes, parts: two, corners: [zero; 4] }
    }
}

/// Values of nodes that lie on lines in memory.
struct Lines<'a, T> {
    values: &'a [T],
    /// Distances of neighbours in memory, along both axes. One is 1.
    strides: [usize; 2],
    /// Nodes with less than this have three neighbours further on.
    inside: [u32; 2],
}

/// Nodes that are looked at together: if all lie side by side, their values are moved as vectors.
const PIECE: usize = 16;

impl<T: Real> Lines<'_, T> {
    /// Linear values at the first `n` places of a block, in `found`. `other` finds any node.
    #[inline(always)]
    fn blend_block(&self, n: usize, scratch: &mut Scratch<T>, other: impl Fn(i32, i32) -> T) {
        let Scratch { places, found, nodes, parts, corners, .. } = scratch;
        // Whole blocks, whatever stands beyond `n`: loops of a known length become vector instructions.
        for k in 0..2 {
            for l in 0..BLOCK {
                nodes[k][l] = floored(places[k][l]);
                parts[k][l] = places[k][l] - whole(nodes[k][l]);
            }
        }
        for first in (0..n).step_by(PIECE) {
            self.fetch(first..n.min(first + PIECE), nodes, corners, &other);
        }
        for l in 0..BLOCK {
            let near = blend(corners[0][l], corners[1][l], parts[0][l]);
            found[l] = blend(near, blend(corners[2][l], corners[3][l], parts[0][l]), parts[1][l]);
        }
    }

    /// Values of nodes and of their neighbours: along the first axis, the second, both.
    #[inline(always)]
    fn fetch(
        &self,
        piece: Range<usize>,
        nodes: &[[i32; BLOCK]; 2],
        corners: &mut [Block<T>; 4],
        other: impl Fn(i32, i32) -> T,
    ) {
        let [along, across] = self.strides;
        let distances = [0, along, across, along + across];
        let at = |l: usize| {
            let node = [nodes[0][l], nodes[1][l]];
            let inside = (node[0] as u32) < self.inside[0] && (node[1] as u32) < self.inside[1];
            inside.then(|| node[0] as usize * along + node[1] as usize * across)
        };
        let (first, last) = (piece.start, piece.end - 1);
        let side_by_side = if along == 1 { [1, 0] } else { [0, 1] };
        let is_next = |l: usize| {
            let next = |k: usize| nodes[k][l] == nodes[k][first] + side_by_side[k] * (l - first) as i32;
            next(0) & next(1)
        };
        if let (Some(start), Some(_)) = (at(first), at(last))
            && piece.clone().fold(true, |all, l| all & is_next(l))
        {
            for (corner, distance) in corners.iter_mut().zip(distances) {
                let (to, from) = (&mut corner[piece.clone()], &self.values[start + distance..]);
                match (to.first_chunk_mut::<PIECE>(), from.first_chunk::<PIECE>()) {
                    (Some(to), Some(from)) => *to = *from,
                    // The last piece of a row.
                    _ => to.copy_from_slice(&from[..piece.len()]),
                }
            }
            return;
        }
        for l in piece {
            let found = match at(l).and_then(|at| self.values.get(at..=at + along + across)) {
                Some(four) => distances.map(|distance| four[distance]),
                None => {
                    let (i, j) = (nodes[0][l], nodes[1][l]);
                    [other(i, j), other(i + 1, j), other(i, j + 1), other(i + 1, j + 1)]
                }
            };
            for (corner, found) in corners.iter_mut().zip(found) {
                corner[l] = found;
            }
        }
    }
}

impl<T: Real> Component<'_, T> {
    /// [`Component::linear_at`] for the first `n` places of a block.
    #[inline(always)]
    fn linear_block<R: Rules>(&self, n: usize, scratch: &mut Scratch<T>) {
        let inside = [(self.na - 1) as u32, (self.nb - 1) as u32];
        let lines = Lines { values: self.values, strides: [self.stride_a, self.stride_b], inside };
        lines.blend_block(n, scratch, |a, b| self.node::<R>(a, b));
    }

    /// [`Component::value_at`] for the first `n` places of a block.
    #[inline(always)]
    pub(crate) fn value_block<R: Rules>(&self, n: usize, scratch: &mut Scratch<T>) {
        if !R::CUBIC {
            return self.linear_block::<R>(n, scratch);
        }
        let Scratch { places: [a, b], found, .. } = scratch;
        for ((found, a), b) in found[..n].iter_mut().zip(a).zip(b) {
            *found = self.cubic_at::<R>(*a, *b);
        }
    }
}

/// Values of cells between their middles, linearly, for the first `n` places of a block.
#[inline(always)]
pub(crate) fn cells_block<T: Real>(values: &[T], [width, height]: [usize; 2], n: usize, scratch: &mut Scratch<T>) {
    let lines = Lines { values, strides: [1, width], inside: [width as u32 - 1, height as u32 - 1] };
    lines.blend_block(n, scratch, |i, j| {
        let x = i.clamp(0, width as i32 - 1) as usize;
        values[j.clamp(0, height as i32 - 1) as usize * width + x]
    });
}

impl<T: Real> Velocity<'_, T> {
    /// [`Velocity::trace_back`] for the first `n` places of a block, in place. The coordinates of the places come out in the order
    /// `axes`, less `offset` each.
    #[inline(always)]
    pub(crate) fn trace_block<R: Rules>(
        &self,
        n: usize,
        scratch: &mut Scratch<T>,
        axes: [usize; 2],
        offset: [T; 2],
    ) {
        let ends = [whole::<T>(self.width as i32), whole::<T>(self.height as i32)];
        let one_half = real::<T>(0.5);
        let (velocity, begin) = (scratch.velocity, scratch.places);
        let mut carrying = velocity;
        if R::MIDPOINT {
            let half_step = one_half * self.step;
            let mut middle = begin;
            for k in 0..2 {
                for l in 0..BLOCK {
                    middle[k][l] = within(begin[k][l] - half_step * velocity[k][l], ends[k]);
                }
            }
            for (k, component) in [self.u, self.v].into_iter().enumerate() {
                scratch.places[0] = middle[k];
                for l in 0..BLOCK {
                    scratch.places[1][l] = middle[1 - k][l] - one_half;
                }
                component.linear_block::<R>(n, scratch);
                carrying[k] = scratch.found;
            }
        }
        for (k, place) in axes.into_iter().zip(&mut scratch.places) {
            for l in 0..BLOCK {
                place[l] = within(begin[k][l] - self.step * carrying[k][l], ends[k]) - offset[k];
            }
        }
    }
}
