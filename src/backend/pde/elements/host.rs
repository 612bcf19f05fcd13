//! Products of finite elements on the host: the kernels of `cl/pde/elements.cl` and `cl/pde/element_sums.cl`, operation for operation. Cells are
//! worked on in blocks, whose values lie interleaved.

use super::{Batch, ElementOps, NO_COEFFICIENT, Sums};
use crate::backend::Host;
use crate::backend::run::Run;
use crate::backend::sums::summing;
use crate::error::Result;
use crate::memory::Memory;
use crate::number::{self, Accumulator, Real};
use crate::threads;

/// Cells of a block.
const WIDE: usize = 8;

/// A value of each cell of a block.
type Lane<T> = [T; WIDE];

/// Values along an axis.
type Column<T, const N: usize> = [Lane<T>; N];

fn zeros<T: Real, const N: usize>() -> Column<T, N> {
    [[T::default(); WIDE]; N]
}

fn add<T: Real>(to: &mut Lane<T>, factor: T, from: &Lane<T>) {
    for l in 0..WIDE {
        to[l] = to[l] + factor * from[l];
    }
}

/// Tells if two shape functions have a common integral along an axis.
const fn coupled(o: usize, i: usize) -> bool {
    if o < 2 || i < 2 { o < 4 && i < 4 } else { o == i || o == i + 2 || i == o + 2 }
}

fn multiply<T: Real, const N: usize>(matrix: &[T], from: &Column<T, N>) -> Column<T, N> {
    let mut to = zeros();
    for (to, row) in to.iter_mut().zip(matrix.chunks_exact(N)) {
        for (factor, from) in row.iter().zip(from) {
            add(to, *factor, from);
        }
    }
    to
}

fn multiply_mass<T: Real, const N: usize>(matrix: &[T], from: &Column<T, N>) -> Column<T, N> {
    let mut to = zeros();
    for (o, (to, row)) in to.iter_mut().zip(matrix.chunks_exact(N)).enumerate() {
        for (i, (factor, from)) in row.iter().zip(from).enumerate() {
            if coupled(o, i) {
                add(to, *factor, from);
            }
        }
    }
    to
}

fn multiply_stiffness<T: Real, const N: usize>(from: &Column<T, N>) -> Column<T, N> {
    let mut to = *from;
    for l in 0..WIDE {
        to[0][l] = from[0][l] - from[1][l];
        to[1][l] = from[1][l] - from[0][l];
    }
    to
}

/// Adds lanes of two columns.
fn sum<T: Real, const N: usize>(a: &Column<T, N>, b: &Column<T, N>) -> Column<T, N> {
    let mut to = *a;
    for (to, b) in to.iter_mut().zip(b) {
        for l in 0..WIDE {
            to[l] = to[l] + b[l];
        }
    }
    to
}

/// Values of a block at all nodes, the first axis fastest.
struct Grid<T, const N: usize>(Vec<Lane<T>>);

impl<T: Real, const N: usize> Grid<T, N> {
    fn new() -> Self {
        Self(vec![[T::default(); WIDE]; N * N * N])
    }

    fn column(&self, first: usize, step: usize) -> Column<T, N> {
        number::array(|k| self.0[first + k * step])
    }

    fn put(&mut self, first: usize, step: usize, column: &Column<T, N>) {
        column.iter().enumerate().for_each(|(k, lane)| self.0[first + k * step] = *lane);
    }
}

/// Room for a block: three values at each node.
struct Room<T, const N: usize> {
    held: [Grid<T, N>; 3],
}

/// First nodes of the columns along an axis, and the distance of their nodes.
fn columns<const N: usize>(axis: usize) -> (impl Iterator<Item = usize>, usize) {
    let steps = [1, N, N * N];
    let others = match axis {
        0 => [N, N * N],
        1 => [1, N * N],
        _ => [1, N],
    };
    ((0..N).flat_map(move |b| (0..N).map(move |a| a * others[0] + b * others[1])), steps[axis])
}

/// Arrays of a batch on the host.
struct Arrays<'a, T> {
    tables: &'a [T],
    geometry: &'a [T],
    /// Number of cells.
    count: usize,
}

impl<T: Real, const N: usize> Room<T, N> {
    fn new() -> Self {
        Self { held: [Grid::new(), Grid::new(), Grid::new()] }
    }

    /// Products of boxes from `first` on, from the first grid to the first.
    fn boxes(&mut self, arrays: &Arrays<'_, T>, first: usize) {
        let Arrays { tables, geometry, count } = *arrays;
        let [u, v, _] = &mut self.held;
        let (starts, step) = columns::<N>(2);
        for start in starts {
            let column = u.column(start, step);
            u.put(start, step, &multiply_mass(tables, &column));
            v.put(start, step, &multiply_stiffness(&column));
        }
        let factor = |axis: usize| -> Lane<T> {
            number::array(|l| if first + l < count { geometry[3 * (first + l) + axis] } else { T::default() })
        };
        let [gx, gy, gz] = [factor(0), factor(1), factor(2)];
        let (starts, step) = columns::<N>(1);
        for start in starts {
            let (a, b) = (u.column(start, step), v.column(start, step));
            let (mut d, e) = (multiply_stiffness(&a), multiply_mass(tables, &b));
            for (d, e) in d.iter_mut().zip(&e) {
                for l in 0..WIDE {
                    d[l] = gy[l] * d[l] + gz[l] * e[l];
                }
            }
            u.put(start, step, &multiply_mass(tables, &a));
            v.put(start, step, &d);
        }
        let (starts, step) = columns::<N>(0);
        for start in starts {
            let (mut c, d) =
                (multiply_stiffness(&u.column(start, step)), multiply_mass(tables, &v.column(start, step)));
            for (c, d) in c.iter_mut().zip(&d) {
                for l in 0..WIDE {
                    c[l] = gx[l] * c[l] + d[l];
                }
            }
            u.put(start, step, &c);
        }
    }

    /// Products of mapped cells from `first` on, from the first grid to the first.
    fn mapped(&mut self, arrays: &Arrays<'_, T>, first: usize) {
        let plane = N * N;
        let (values, slopes) = (&arrays.tables[..plane], &arrays.tables[plane..2 * plane]);
        let (values_back, slopes_back) = (&arrays.tables[2 * plane..3 * plane], &arrays.tables[3 * plane..]);
        let [u, v, w] = &mut self.held;
        let (starts, step) = columns::<N>(2);
        for start in starts {
            let column = u.column(start, step);
            u.put(start, step, &multiply(values, &column));
            v.put(start, step, &multiply(slopes, &column));
        }
        let (starts, step) = columns::<N>(1);
        for start in starts {
            let (a, b) = (u.column(start, step), v.column(start, step));
            u.put(start, step, &multiply(values, &a));
            v.put(start, step, &multiply(slopes, &a));
            w.put(start, step, &multiply(values, &b));
        }
        let (starts, step) = columns::<N>(0);
        for (t, start) in starts.enumerate() {
            let mut g = [
                multiply(slopes, &u.column(start, step)),
                multiply(values, &v.column(start, step)),
                multiply(values, &w.column(start, step)),
            ];
            arrays.metric::<N>(first, t, &mut g);
            u.put(start, step, &multiply(slopes_back, &g[0]));
            v.put(start, step, &multiply(values_back, &g[1]));
            w.put(start, step, &multiply(values_back, &g[2]));
        }
        let (starts, step) = columns::<N>(1);
        for start in starts {
            let b = multiply(values_back, &u.column(start, step));
            let c = multiply(slopes_back, &v.column(start, step));
            u.put(start, step, &sum(&b, &c));
            v.put(start, step, &multiply(values_back, &w.column(start, step)));
        }
        let (starts, step) = columns::<N>(2);
        for start in starts {
            let b = multiply(values_back, &u.column(start, step));
            let c = multiply(slopes_back, &v.column(start, step));
            u.put(start, step, &sum(&b, &c));
        }
    }
}

impl<T: Real> Arrays<'_, T> {
    /// Multiplies three slopes in the Gauss points of column `t` by the metric.
    fn metric<const N: usize>(&self, first: usize, t: usize, g: &mut [Column<T, N>; 3]) {
        let (plane, cell) = (N * N, N * N * N);
        for l in (0..WIDE).filter(|l| first + l < self.count) {
            let metric = &self.geometry[(first + l) * 6 * cell + t..];
            for i in 0..N {
                let [xx, xy, xz, yy, yz, zz] = number::array(|c| metric[c * cell + i * plane]);
                let [dx, dy, dz] = [g[0][i][l], g[1][i][l], g[2][i][l]];
                g[0][i][l] = xx * dx + xy * dy + xz * dz;
                g[1][i][l] = xy * dx + yy * dy + yz * dz;
                g[2][i][l] = xz * dx + yz * dy + zz * dz;
            }
        }
    }
}

/// Room for the products of a block.
struct Block<'a, T> {
    /// Number of its first cell.
    first: usize,
    parts: &'a mut [T],
    inside: &'a mut [T],
}

fn apply<T: Real, const N: usize>(
    batch: &Batch<T>,
    free: usize,
    given: [&Memory<T>; 2],
    parts: &mut Memory<T>,
    y: &mut Memory<T>,
) -> Result<()> {
    let [x, hung] = [given[0].host()?, given[1].host()?];
    let (ids, cell, inside) = (batch.ids.host()?, N * N * N, (N - 2) * (N - 2) * (N - 2));
    let arrays = Arrays { tables: &batch.tables, geometry: batch.geometry.host()?, count: batch.count };
    let parts = &mut parts.host_mut()?[batch.start..batch.start + batch.count * cell];
    // Numbers inside of cells of a batch follow each other.
    let first_inside = if inside > 0 { ids[cell - 1] as usize + 1 - inside } else { 0 };
    let mut rest = &mut y.host_mut()?[first_inside..first_inside + batch.count * inside];
    let mut blocks: Vec<Block<'_, T>> = parts
        .chunks_mut(WIDE * cell)
        .enumerate()
        .map(|(k, parts)| {
            let (inside, others) = std::mem::take(&mut rest).split_at_mut(parts.len() / cell * inside);
            rest = others;
            Block { first: k * WIDE, parts, inside }
        })
        .collect();
    let value = |id: u32| match id {
        NO_COEFFICIENT => T::default(),
        id if (id as usize) < free => x[id as usize],
        id => hung[id as usize - free],
    };
    let of_block = |room: &mut Room<T, N>, block: &mut Block<'_, T>| {
        let cells = block.parts.len() / cell;
        for l in 0..WIDE {
            let ids = ids.get((block.first + l) * cell..).filter(|_| l < cells).unwrap_or(&[]);
            for (node, lane) in room.held[0].0.iter_mut().enumerate() {
                lane[l] = ids.get(node).map_or(T::default(), |id| value(*id));
            }
        }
        if batch.mapped {
            room.mapped(&arrays, block.first)
        } else {
            room.boxes(&arrays, block.first)
        }
        for (node, lane) in room.held[0].0.iter().enumerate() {
            let mode = [node % N, node / N % N, node / (N * N)];
            let place = super::part_place(mode, N, batch.mapped);
            if mode.iter().all(|k| *k > 1) {
                let place = super::part_place(mode.map(|k| k - 2), N - 2, batch.mapped);
                (0..cells).for_each(|l| block.inside[l * inside + place] = lane[l]);
            } else {
                (0..cells).for_each(|l| block.parts[l * cell + place] = lane[l]);
            }
        }
    };
    threads::share(&mut blocks[..], 4, &|_, blocks: &mut [Block<'_, T>]| {
        let mut room = Room::new();
        blocks.iter_mut().for_each(|block| of_block(&mut room, block));
    });
    Ok(())
}

fn sum_elements<T: Real, A: Accumulator<T>>(
    sums: &Sums<T>,
    parts: &Memory<T>,
    values: &Memory<T>,
    to: &mut Memory<T>,
) -> Result<()> {
    let (parts, values) = (parts.host()?, values.host()?);
    let shared = match &sums.shared {
        Some([offsets, places]) => Some((offsets.host()?, places.host()?)),
        None => None,
    };
    let combined = match &sums.combined {
        Some(([rows, columns], factors)) => Some((rows.host()?, columns.host()?, factors.host()?)),
        None => None,
    };
    threads::each(&mut to.host_mut()?[..sums.rows], 1024, |r, to| {
        let mut sum = A::default();
        if let Some((offsets, places)) = shared {
            for place in &places[offsets[r] as usize..offsets[r + 1] as usize] {
                sum = sum.add(A::from_real(parts[*place as usize]));
            }
        }
        if let Some((rows, columns, factors)) = combined {
            for k in rows[r] as usize..rows[r + 1] as usize {
                sum = sum.add(A::product(factors[k], values[columns[k] as usize]));
            }
        }
        *to = sum.to_real();
    });
    Ok(())
}

impl<T: Real> ElementOps<T> for Host {
    fn apply_elements(
        &self,
        _: Run<'_>,
        batch: &Batch<T>,
        free: usize,
        given: [&Memory<T>; 2],
        parts: &mut Memory<T>,
        y: &mut Memory<T>,
    ) -> Result<()> {
        let apply = match batch.points {
            2 => apply::<T, 2>,
            3 => apply::<T, 3>,
            4 => apply::<T, 4>,
            5 => apply::<T, 5>,
            6 => apply::<T, 6>,
            7 => apply::<T, 7>,
            8 => apply::<T, 8>,
            _ => apply::<T, 9>,
        };
        apply(batch, free, given, parts, y)
    }

    fn sum_elements(
        &self,
        run: Run<'_>,
        sums: &Sums<T>,
        parts: &Memory<T>,
        values: &Memory<T>,
        to: &mut Memory<T>,
    ) -> Result<()> {
        summing!(run, T, sum_elements(sums, parts, values, to))
    }
}
