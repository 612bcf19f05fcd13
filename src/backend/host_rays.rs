//! Rays traced on the host, in the arithmetic and order of `cl/ray.cl`.

use super::Stored;
use super::host::{Host, MOST_COLUMNS};
use super::host_rows::Sums;
use crate::accumulator::Accumulator;
use crate::real::{Precision, Real};
use crate::reduction::fold;
use crate::sparse::{RAY_HEADER, RAY_LANES};

/// Number `which` of ray `i`: 0 its place on line 0, 1 its slope with the flag of steepness.
fn ray_number<T: Real>(a: &Stored<Host, T>, i: usize, which: usize) -> i64 {
    let at = RAY_HEADER + 4 * i + 2 * which;
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&a.pointers[at].to_ne_bytes());
    bytes[4..].copy_from_slice(&a.pointers[at + 1].to_ne_bytes());
    i64::from_ne_bytes(bytes)
}

/// Detector pixels that the search for rays is wider than it need be, `SLACK` of `cl/ray.cl`.
const SLACK: f32 = 0.02;

/// The fraction of a place, as a weight; exact in `T`.
pub(crate) fn fraction<T: Real>(place: i64) -> T {
    T::from_f64(match T::PRECISION {
        Precision::Single => f64::from((place as u32) >> 8) / 16_777_216.0,
        Precision::Double => f64::from(place as u32) / 4_294_967_296.0,
    })
}

/// `walk_ray` of `cl/ray.cl`, with the lanes that `ray_product` gives a ray.
pub(super) fn ray_sums<T: Real, A: Accumulator<T>>(
    a: &Stored<Host, T>,
    i: usize,
    columns: usize,
    gather: &impl Fn(usize) -> T,
) -> Sums<A> {
    let side = i64::from(a.pointers[0]);
    let (start, slope) = (ray_number(a, i, 0), ray_number(a, i, 1));
    let (lines, steep) = ((a.indices[i] & 0xffff)..(a.indices[i] >> 16), slope & 1 == 1);
    let (along, across) = if steep { (side, 1) } else { (1, side) };
    let lanes = if steep { 1 } else { RAY_LANES };
    let one = T::from_f64(1.0);
    let mut sums = [A::default(); MOST_COLUMNS];
    for (c, sum) in sums.iter_mut().enumerate().take(columns) {
        let mut totals = [A::default(); RAY_LANES];
        for (k, line) in lines.clone().enumerate() {
            let place = start + i64::from(line) * slope;
            let low = place >> 32;
            let part = fraction::<T>(place);
            let pixel = i64::from(line) * along + low * across;
            let value = |there: bool, at: i64| {
                if there { gather(at as usize * columns + c) } else { T::default() }
            };
            let x = value((0..side).contains(&low), pixel);
            let next = value((-1..side - 1).contains(&low), pixel + across);
            let total = &mut totals[k % lanes];
            *total = total.add(A::from_real((one - part) * x + part * next));
        }
        let weight = A::from_real(a.values[i]);
        let mut totals = totals.map(|total| A::default().add(weight.mul(total)));
        *sum = fold(&mut totals[..lanes], A::add);
    }
    sums
}

/// `walk_pixel` of `cl/ray.cl`.
pub(super) fn pixel_sums<T: Real, A: Accumulator<T>>(
    a: &Stored<Host, T>,
    i: usize,
    columns: usize,
    gather: &impl Fn(usize) -> T,
) -> Sums<A> {
    let (side, pixels, angles) = (a.pointers[0] as usize, a.pointers[1] as usize, a.pointers[2] as usize);
    let (row, column) = ((i / side) as i64, (i % side) as i64);
    let lanes = a.arrangement.lanes;
    let one = T::from_f64(1.0);
    let mut totals = [[A::default(); RAY_LANES]; MOST_COLUMNS];
    for angle in 0..angles {
        let view = &a.values[(angles * pixels).next_multiple_of(4) + 8 * angle..][..8];
        let [a0, a1, a2, rays, b0, b1, b2, _]: [f32; 8] = std::array::from_fn(|k| view[k].to_f64() as f32);
        let nearness = 1.0 / (b0 + b1 * column as f32 + b2 * row as f32);
        let seen = (a0 + a1 * column as f32 + a2 * row as f32) * nearness;
        let aside = ((a1 - seen * b1) * nearness).abs() * (1.0 + 2.0 * (b1 * nearness).abs());
        let under = ((a2 - seen * b2) * nearness).abs() * (1.0 + 2.0 * (b2 * nearness).abs());
        let wide = if rays == 1.0 {
            aside
        } else if rays == 2.0 {
            under
        } else {
            aside.max(under)
        };
        let from = (seen - wide - SLACK).ceil().clamp(0.0, pixels as f32) as usize;
        let end = ((seen + wide + SLACK).floor() + 1.0).clamp(0.0, pixels as f32) as usize;
        for k in from..end {
            let ray = angle * pixels + k;
            let slope = ray_number(a, ray, 1);
            let (line, target) = if slope & 1 == 1 { (row, column) } else { (column, row) };
            let place = ray_number(a, ray, 0) + line * slope;
            let nearest = place >> 32;
            let part = fraction::<T>(place);
            let weight = match target - nearest {
                0 => one - part,
                1 => part,
                _ => continue,
            };
            if weight == T::default() {
                continue;
            }
            for (c, total) in totals.iter_mut().enumerate().take(columns) {
                let share = weight * (a.values[ray] * gather(ray * columns + c));
                total[angle % lanes] = total[angle % lanes].add(A::from_real(share));
            }
        }
    }
    std::array::from_fn(|c| fold(&mut totals[c][..lanes], A::add))
}
