//! Rays traced on the host, in the arithmetic and order of `cl/tomography/ray_trace.cl` and `cl/tomography/ray_spread.cl`.

use super::tables::{BLOCK, FAN_WORDS, ONE, RAY_WORDS, SHEET_WORDS};
use super::{RayOps, StoredRays};
use crate::backend::Host;
use crate::backend::run::Run;
use crate::backend::sums::summing;
use crate::error::Result;
use crate::memory::Memory;
use crate::number::{self, Accumulator, Real};
use crate::threads::{self, ChunksMut};

/// Rays that a thread takes at once.
const RAYS_AT_ONCE: usize = 64;
/// Lines of the image that a thread takes at once.
const LINES_AT_ONCE: usize = 16;

/// The arrays of [`StoredRays`].
struct HostRays<'a, T> {
    side: usize,
    pixels: usize,
    angles: usize,
    words: &'a [[u32; RAY_WORDS]],
    lines: &'a [u32],
    weights: &'a [T],
    fans: &'a [[u32; FAN_WORDS]],
    sheets: &'a [[u32; SHEET_WORDS]],
}

impl<'a, T: Real> HostRays<'a, T> {
    fn of(rays: &'a StoredRays<T>) -> Result<Self> {
        Ok(Self {
            side: rays.side,
            pixels: rays.pixels,
            angles: rays.angles,
            words: rays.words.host()?.as_chunks().0,
            lines: rays.lines.host()?,
            weights: rays.weights.host()?,
            fans: rays.fans.host()?.as_chunks().0,
            sheets: rays.sheets.host()?.as_chunks().0,
        })
    }

    /// Place of a ray on a line, counted from the place before its first pixel, and slope.
    #[inline]
    fn ray(&self, i: usize, line: usize) -> (u64, u64) {
        let words: [u64; RAY_WORDS] = number::array(|k| u64::from(self.words[i][k]));
        let [start, start_high, slope, slope_high] = words;
        let (start, slope) = (start | start_high << 32, slope | slope_high << 32);
        (start.wrapping_add(slope.wrapping_mul(line as u64)).wrapping_add(ONE as u64), slope)
    }
}

/// The whole and the fraction of a place, the fraction in units of 2⁻³².
#[inline]
fn parts<T: Real>(place: u64) -> (usize, T) {
    ((place >> 32) as usize, T::from_f64(f64::from(place as u32)))
}

/// `copy_image` of `cl/tomography/ray_image.cl`, of one column.
fn copy_image<T: Real>(side: usize, x: impl Fn(usize) -> T + Sync, images: &mut [[T; 2]]) {
    let (upright, transposed) = images.split_at_mut(side * (side + 1));
    for (image, [across, down]) in [(upright, [1, side]), (transposed, [side, 1])] {
        threads::each(ChunksMut(image, side + 1), 1, |line, places| {
            let mut here = T::default();
            for (k, place) in places.iter_mut().enumerate() {
                let next = if k < side { x(line * down + k * across) } else { T::default() };
                *place = [here, next - here];
                here = next;
            }
        });
    }
}

/// `trace_rays` of `cl/tomography/ray_trace.cl`: the sum of one ray.
fn trace<T: Real, A: Accumulator<T>>(rays: &HostRays<'_, T>, i: usize, images: &[[T; 2]]) -> T {
    let pitch = rays.side + 1;
    let (first, last) = ((rays.lines[i] & 0xffff) as usize, (rays.lines[i] >> 16) as usize);
    let (mut place, slope) = rays.ray(i, first);
    let (upright, transposed) = images.split_at(rays.side * pitch);
    let image = if slope & 1 == 1 { upright } else { transposed };
    let unit = T::from_f64(1.0 / ONE as f64);
    let mut total = A::default();
    let mut line = first;
    while line < last {
        // Blocks begin at multiples of their length.
        let end = (line / BLOCK * BLOCK + BLOCK).min(last);
        let (mut whole, mut share) = (T::default(), T::default());
        let block = &image[line * pitch..];
        let mut add = |k: usize| {
            let (low, part) = parts::<T>(place);
            let [here, rise] = block[k * pitch + low];
            whole = whole + here;
            share = share + part * rise;
            place = place.wrapping_add(slope);
        };
        if end - line == BLOCK {
            (0..BLOCK).for_each(&mut add);
        } else {
            (0..end - line).for_each(&mut add);
        }
        total = total.add(A::from_real(whole + share * unit));
        line = end;
    }
    A::from_real(rays.weights[i] * T::from_f64(ONE as f64)).mul(total).to_real()
}

fn project<T: Real, A: Accumulator<T>>(
    rays: &HostRays<'_, T>,
    columns: usize,
    x: &[T],
    y: &mut [T],
    images: &mut [T],
) {
    let images = images.as_chunks_mut().0;
    for c in 0..columns {
        copy_image(rays.side, |p| x[p * columns + c], images);
        let images = &*images;
        threads::each(ChunksMut(y, RAYS_AT_ONCE * columns), 1, |g, y| {
            for (k, y) in y.chunks_mut(columns).enumerate() {
                y[c] = trace::<T, A>(rays, g * RAYS_AT_ONCE + k, images);
            }
        });
    }
}

/// `spread_rays` of `cl/tomography/ray_spread.cl`: what the rays of `sheet` add to lines `first ..` of the image, to the pixel before each place of a
/// line and to the one behind it. A line has one place more than pixels.
fn spread<T: Real>(
    rays: &HostRays<'_, T>,
    [steep, from, to, _]: [u32; SHEET_WORDS],
    first: usize,
    value: impl Fn(usize) -> T,
    lines: &mut [[T; 2]],
) {
    let breadth = rays.side + 1;
    let one = T::from_f64(ONE as f64);
    for angle in from as usize..to as usize {
        let fan = &rays.fans[steep as usize * rays.angles + angle];
        let [begin, end, classes, _]: [usize; FAN_WORDS] = number::array(|k| fan[k] as usize);
        for class in 0..classes {
            // Rays class, class + classes, ... of the angle.
            let begin = begin + (class + classes - begin % classes) % classes;
            for i in (begin..end).step_by(classes) {
                let i = angle * rays.pixels + i;
                let (mut place, slope) = rays.ray(i, first);
                if slope & 1 != u64::from(steep) {
                    continue;
                }
                let value = rays.weights[i] * value(i);
                let whole = value * one;
                for line in lines.chunks_exact_mut(breadth) {
                    let (cell, part) = parts::<T>(place);
                    if let Some([low, high]) = line.get_mut(cell) {
                        let share = part * value;
                        *low = *low + (whole - share);
                        *high = *high + share;
                    }
                    place = place.wrapping_add(slope);
                }
            }
        }
    }
}

/// Sheets of column `c` of `columns` of `A'y`, kept line by line: those of flat rays transposed.
fn spread_sheets<T: Real>(
    rays: &HostRays<'_, T>,
    sheets: &[[u32; SHEET_WORDS]],
    (columns, c): (usize, usize),
    y: &[T],
    partial: &mut [T],
) {
    let side = rays.side;
    let bands = side.div_ceil(LINES_AT_ONCE);
    let mut pieces: Vec<&mut [T]> =
        partial.chunks_mut(side * side).flat_map(|sheet| sheet.chunks_mut(LINES_AT_ONCE * side)).collect();
    let sheets_begun = pieces.len().min(bands * sheets.len());
    threads::each(&mut pieces[..sheets_begun], 1, |k, piece| {
        let mut lines = vec![[T::default(); 2]; piece.len() / side * (side + 1)];
        spread(rays, sheets[k / bands], k % bands * LINES_AT_ONCE, |i| y[i * columns + c], &mut lines);
        for (line, found) in piece.chunks_mut(side).zip(lines.chunks(side + 1)) {
            let found = &found[..=line.len()];
            for k in 0..line.len() {
                line[k] = found[k + 1][0] + found[k][1];
            }
        }
    });
}

/// `add_sheets` of `cl/tomography/ray_image.cl`: adds the sheets to the wide sums of all pixels.
fn add_sheets<T: Real, A: Accumulator<T>>(
    side: usize,
    sheets: &[[u32; SHEET_WORDS]],
    partial: &[T],
    totals: &mut [A],
) {
    threads::each(ChunksMut(totals, LINES_AT_ONCE * side), 1, |band, totals| {
        for (sheet, [steep, ..]) in partial.chunks(side * side).zip(sheets) {
            for (line, totals) in totals.chunks_mut(side).enumerate() {
                let i = band * LINES_AT_ONCE + line;
                for (k, total) in totals.iter_mut().enumerate() {
                    let at = if *steep == 1 { i * side + k } else { k * side + i };
                    *total = total.add(A::from_real(sheet[at]));
                }
            }
        }
    });
}

fn backproject<T: Real, A: Accumulator<T>>(
    rays: &HostRays<'_, T>,
    columns: usize,
    y: &[T],
    x: &mut [T],
    partial: &mut [T],
    held: usize,
) {
    let pixels = rays.side * rays.side;
    for c in 0..columns {
        let mut totals = vec![A::default(); pixels];
        for sheets in rays.sheets.chunks(held) {
            let partial = &mut partial[..sheets.len() * pixels];
            spread_sheets(rays, sheets, (columns, c), y, partial);
            add_sheets(rays.side, sheets, partial, &mut totals);
        }
        for (x, total) in x.chunks_mut(columns).zip(totals) {
            x[c] = total.to_real();
        }
    }
}

impl<T: Real> RayOps<T> for Host {
    #[inline]
    fn project(
        &self,
        run: Run<'_>,
        rays: &StoredRays<T>,
        columns: usize,
        x: &Memory<T>,
        y: &mut Memory<T>,
    ) -> Result<()> {
        let (of, x, y) = (HostRays::of(rays)?, x.host()?, y.host_mut()?);
        rays.with_free_scratch(|scratch| {
            let images = scratch.images.host_mut()?;
            summing!(run, T, project(&of, columns, x, y, images));
            Ok(())
        })
    }

    #[inline]
    fn backproject(
        &self,
        run: Run<'_>,
        rays: &StoredRays<T>,
        columns: usize,
        y: &Memory<T>,
        x: &mut Memory<T>,
    ) -> Result<()> {
        let (of, y, x) = (HostRays::of(rays)?, y.host()?, x.host_mut()?);
        rays.with_free_scratch(|scratch| {
            let partial = scratch.partial.host_mut()?;
            summing!(run, T, backproject(&of, columns, y, x, partial, rays.held));
            Ok(())
        })
    }
}
