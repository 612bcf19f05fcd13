//! Rays traced on the host, in the arithmetic and order of `cl/ray.cl`.

use super::HostMatrix;
use super::entries::RowSum;
use crate::number::{Accumulator, Real};
use crate::reduction::fold;
use crate::sparse::{RAY_BITS, RAY_HEADER, RAY_LANES};

/// Detector pixels that the search for rays is wider than it need be, `SLACK` of `cl/ray.cl`.
const SLACK: f32 = 0.02;
/// Growth of that width with each detector pixel, `ROUNDING` of `cl/ray.cl`.
const ROUNDING: f32 = 4.8e-7;
/// One pixel sideways.
const ONE: i64 = 1 << RAY_BITS;

/// Slope of ray `i`, whose bit 0 tells a steep one, and the low word of its start.
fn ray_words<T: Real>(a: &HostMatrix<'_, T>, i: usize) -> (i32, u32) {
    (a.pointers[RAY_HEADER + 2 * i] as i32, a.pointers[RAY_HEADER + 2 * i + 1])
}

/// `walk_ray` of `cl/ray.cl`, with the lanes that `ray_product` gives a ray.
pub(super) fn ray_sums<T: Real, A: Accumulator<T>, const C: usize>(
    a: &HostMatrix<'_, T>,
    i: usize,
    vector: &[[T; C]],
) -> RowSum<A, C> {
    let side = i64::from(a.pointers[0]);
    let rays = a.pointers[1] as usize * a.pointers[2] as usize;
    let (slope, low_word) = ray_words(a, i);
    let start = i64::from(a.pointers[RAY_HEADER + 2 * rays + i] as i32) << 32 | i64::from(low_word);
    let (lines, steep) = ((a.indices[i] & 0xffff)..(a.indices[i] >> 16), slope & 1 == 1);
    let (along, across) = if steep { (side, 1) } else { (1, side) };
    let lanes = if steep { 1 } else { RAY_LANES };
    let mut sums = RowSum::default();
    for (c, sum) in sums.0.iter_mut().enumerate() {
        let mut totals = [A::default(); RAY_LANES];
        for (k, line) in lines.clone().enumerate() {
            let place = start + i64::from(line) * i64::from(slope);
            let (low, part) = (place >> RAY_BITS, place & (ONE - 1));
            let (weight, next_weight) = (T::from_f64((ONE - part) as f64), T::from_f64(part as f64));
            let pixel = i64::from(line) * along + low * across;
            let value = |there: bool, at: i64| if there { vector[at as usize][c] } else { T::default() };
            let x = value((0..side).contains(&low), pixel);
            let next = value((-1..side - 1).contains(&low), pixel + across);
            let total = &mut totals[k % lanes];
            *total = total.add(A::from_real(weight * x + next_weight * next));
        }
        let weight = A::from_real(a.values[i]);
        let mut totals = totals.map(|total| A::default().add(weight.mul(total)));
        *sum = fold(&mut totals[..lanes], A::add);
    }
    sums
}

/// `walk_pixel` of `cl/ray.cl`.
pub(super) fn pixel_sums<T: Real, A: Accumulator<T>, const C: usize>(
    a: &HostMatrix<'_, T>,
    i: usize,
    vector: &[[T; C]],
) -> RowSum<A, C> {
    let (side, pixels, angles) = (a.pointers[0] as usize, a.pointers[1] as usize, a.pointers[2] as usize);
    let (row, column) = ((i / side) as u32, (i % side) as u32);
    let (x, y) = (column as f32, row as f32);
    let lanes = a.arrangement.lanes;
    let mut totals = [[A::default(); RAY_LANES]; C];
    for angle in 0..angles {
        let view = &a.values[(angles * pixels).next_multiple_of(4) + 8 * angle..][..8];
        let [a0, a1, a2, rays, b0, b1, b2, widen]: [f32; 8] = std::array::from_fn(|k| view[k].to_f64() as f32);
        let nearness = 1.0 / (b0 + b1 * x + b2 * y);
        let seen = (a0 + a1 * x + a2 * y) * nearness;
        let (aside, under) = ((a1 - seen * b1).abs(), (a2 - seen * b2).abs());
        let wide = if rays == 1.0 {
            aside
        } else if rays == 2.0 {
            under
        } else {
            aside.max(under)
        };
        let reach = wide * nearness * widen + SLACK + ROUNDING * pixels as f32;
        let from = (seen - reach).ceil().clamp(0.0, pixels as f32) as usize;
        let end = ((seen + reach).floor() + 1.0).clamp(0.0, pixels as f32) as usize;
        let mut parts = [T::default(); C];
        for ray in angle * pixels + from..angle * pixels + end {
            let (slope, start) = ray_words(a, ray);
            let (line, target) = if slope & 1 == 1 { (row, column) } else { (column, row) };
            let distance = start.wrapping_add(line.wrapping_mul(slope as u32)).wrapping_sub(target << RAY_BITS);
            let weight = ONE as i32 - (distance as i32).wrapping_abs();
            if weight <= 0 || distance as i32 == i32::MIN {
                continue;
            }
            let weight = T::from_f64(f64::from(weight));
            for (c, part) in parts.iter_mut().enumerate() {
                *part = *part + weight * (a.values[ray] * vector[ray][c]);
            }
        }
        for (total, part) in totals.iter_mut().zip(parts) {
            total[angle % lanes] = total[angle % lanes].add(A::from_real(part));
        }
    }
    RowSum(totals.map(|mut totals| fold(&mut totals[..lanes], A::add)))
}
