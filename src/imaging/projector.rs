//! A scanner's matrix that is never stored: rays are traced in the kernel, forwards and backwards.
//!
//! Source: stock-koch-2009, variant OnTheFly, which had no transposed product; here the transposed is exact, found for
//! each pixel from the rays that pass it. Weights are those of [`Scanner::matrix`] with slopes rounded to 2⁻²⁸ of a pixel
//! per line, so that a ray is misplaced by at most 2⁻²⁸ `side` pixels.

use rayon::prelude::*;

use super::scanner::{Beam, Grid, Line, Scanner};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::magnitude::{self, Magnitude};
use crate::matrix::Matrix;
use crate::number::{Real, per_number};
use crate::sparse::{Arrangement, Format, Kind, Layout, RAY_BITS, RAY_LANES};

/// Pixels in flight that keep a large device busy; below it, several lanes share a pixel of the transposed product.
const MANY_PIXELS: usize = 1 << 18;

/// One pixel sideways in fixed point.
const ONE: i64 = 1 << RAY_BITS;
/// Pixels that a source must keep from the image: nearer, it sees neighbouring pixels too far apart for the search of the
/// transposed product, which foretells in the first order where the pixels of a tile are seen.
const CLEARANCE: f64 = 32.0;
/// Widest detector pixel in pixels of the image: wider ones make the search's slack too wide for words of fixed point.
const COARSEST: f64 = 25.0;

/// One ray in fixed point with [`RAY_BITS`] binary places.
#[derive(Clone, Copy, Debug)]
struct Ray {
    /// Place on line 0.
    start: i64,
    /// Places per line; bit 0 tells a steep ray.
    slope: i64,
    /// Lines within the image.
    lines: (u16, u16),
    weight: f64,
}

impl Ray {
    fn new(line: &Line, side: usize) -> Self {
        let fixed = |value: f64| (value * ONE as f64).round() as i64;
        let slope = fixed(line.slope) & !1 | i64::from(line.steep);
        let start = fixed(line.other - line.start * line.slope);
        // The lines on which the ray is within a pixel of the image are neighbours: a ray is straight.
        let inside = |k: usize| (-1..side as i64).contains(&((start + k as i64 * slope) >> RAY_BITS));
        let first = (0..side).find(|k| inside(*k)).unwrap_or(side);
        let last = (first..side).rev().find(|k| inside(*k)).map_or(first, |k| k + 1);
        Self { start, slope, lines: (first as u16, last as u16), weight: line.weight }
    }

    /// Number of entries, and the sum of the squares of their shares of the weight.
    fn entries(&self, side: i64) -> (usize, f64) {
        let (mut count, mut square) = (0, 0.0);
        for k in self.lines.0..self.lines.1 {
            let place = self.start + i64::from(k) * self.slope;
            let (low, part) = (place >> RAY_BITS, (place & (ONE - 1)) as f64 / ONE as f64);
            for (at, share) in [(low, 1.0 - part), (low + 1, part)] {
                if (0..side).contains(&at) {
                    count += 1;
                    square += share * share;
                }
            }
        }
        (count, square)
    }
}

/// Most bytes of a matrix and its transposed that [`Scanner::system`] stores unasked: making and sending more takes
/// longer than tracing the rays of a few hundred iterations.
const MOST_STORED: u64 = 1 << 30;

per_number! {
    fn system<T>(scanner: &Scanner, device: &Device, grid: Grid, format: Format) -> Result<Matrix<T>> = Scanner::system_here;
    fn projector<T>(scanner: &Scanner, device: &Device, grid: Grid) -> Result<Matrix<T>> = Scanner::projector_here;
}

impl Scanner {
    /// The matrix of the scan with its transposed, stored or traced: [`Format::OnTheFly`] traces every ray as it is
    /// needed, [`Format::Auto`] stores what takes up to 1 GiB and traces what takes more, any other format stores.
    /// [`Matrix::why`] says what was done.
    ///
    /// # Errors
    /// As [`Scanner::matrix`], [`Scanner::projector`] and [`Matrix::with_transpose`].
    pub fn system<T: Real>(&self, device: &Device, grid: Grid, format: Format) -> Result<Matrix<T>> {
        system(self, device, grid, format)
    }

    fn system_here<T: Real>(&self, device: &Device, grid: Grid, format: Format) -> Result<Matrix<T>> {
        let stored = |format: Format| Matrix::with_transpose(device, &self.matrix::<T>(grid)?, format);
        match format {
            Format::OnTheFly => self.projector(device, grid),
            Format::Auto => {
                self.validate()?;
                grid.validate()?;
                // A ray has two entries in each of up to `side` lines.
                let entry = 2 * (4 + T::PRECISION.bytes()) as u64;
                let bytes = (2 * grid.side as u64).saturating_mul(self.rays() as u64).saturating_mul(entry);
                let size = format!("stored it would take up to {:.1} GiB", bytes as f64 / f64::from(1 << 30));
                let fits = device.check_total(0, &[("matrix", bytes)]).is_ok();
                if bytes <= MOST_STORED && fits {
                    return Ok(stored(Format::Auto)?.because(&size));
                }
                match self.projector(device, grid) {
                    Ok(traced) => Ok(traced.because(&size)),
                    // A system that cannot be traced says so, and is stored.
                    Err(Error::Option { name, reason }) => {
                        // Before it is made on the host: half of what it may take it surely takes.
                        device.check_total(0, &[("matrix", bytes / 2)])?;
                        Ok(stored(Format::Auto)?.because(&format!("not traced: {name}: {reason}")))
                    }
                    Err(error) => Err(error),
                }
            }
            format => stored(format),
        }
    }

    /// The matrix of the scan, not stored: products trace every ray anew, and products with the transposed find the
    /// rays through every pixel. Any solver takes it like a stored matrix.
    ///
    /// # Errors
    /// [`Error::Option`] for a scanner or grid that cannot exist, or a fan's source within the image;
    /// [`Error::Unsupported`], [`Error::Memory`].
    ///
    /// # Cost
    /// 24 to 28 bytes per ray on the device instead of `2 side (4 + size)`, twice: once for either product.
    pub fn projector<T: Real>(&self, device: &Device, grid: Grid) -> Result<Matrix<T>> {
        projector(self, device, grid)
    }

    fn projector_here<T: Real>(&self, device: &Device, grid: Grid) -> Result<Matrix<T>> {
        self.validate()?;
        grid.validate()?;
        if let Beam::Fan { source_origin, .. } = self.beam {
            let reach = grid.reach() + CLEARANCE * grid.pixel;
            if source_origin <= reach {
                return Err(Error::Option {
                    name: "source_origin",
                    reason: format!(
                        "{source_origin} puts the source within {CLEARANCE} pixels of the image: store its matrix"
                    ),
                });
            }
        }
        let spread = match self.beam {
            Beam::Parallel => self.pitch,
            Beam::Fan { source_origin, source_detector } => {
                self.pitch * (source_origin + grid.reach()) / source_detector
            }
        };
        if spread > COARSEST * grid.pixel {
            return Err(Error::Option {
                name: "pitch",
                reason: format!("{} covers more than {COARSEST} pixels of the image: store its matrix", self.pitch),
            });
        }
        let rays: Vec<Ray> = (0..self.rays())
            .into_par_iter()
            .map(|i| {
                let (from, way) = self.ray(i / self.pixels, i % self.pixels);
                Ray::new(&Line::new(from, way, grid), grid.side)
            })
            .collect();
        let entries: Vec<(usize, f64)> = rays.par_iter().map(|ray| ray.entries(grid.side as i64)).collect();
        let nnz = entries.iter().map(|e| e.0).sum();
        let squares = |exponent| {
            let square = |(ray, entries): (&Ray, &(usize, f64))| {
                let weight = magnitude::scale(ray.weight, exponent);
                entries.1 * weight * weight
            };
            rays.iter().zip(&entries).map(square).sum()
        };
        let frobenius = Magnitude::of_squares(|| magnitude::largest(rays.iter().map(|ray| ray.weight)), squares);
        let forward = self.layout(grid, &rays, Kind::Project, 1);
        let lanes = (MANY_PIXELS / grid.pixels().max(1)).next_power_of_two().clamp(1, RAY_LANES);
        let backward = self.layout(grid, &rays, Kind::Backproject, lanes);
        Matrix::of_layouts(device, forward, Some(backward), nnz, frobenius)
    }

    /// The arrays of `cl/ray.cl`.
    fn layout<T: Real>(&self, grid: Grid, rays: &[Ray], kind: Kind, lanes: usize) -> Layout<T> {
        let mut pointers = vec![grid.side as u32, self.pixels as u32, self.angles.len() as u32, 0];
        pointers.extend(rays.iter().flat_map(|ray| [ray.slope as u32, ray.start as u32]));
        pointers.extend(rays.iter().map(|ray| (ray.start >> 32) as u32));
        let mut values: Vec<T> = rays.iter().map(|ray| T::from_f64(ray.weight / ONE as f64)).collect();
        values.resize(rays.len().next_multiple_of(4), T::default());
        for (angle, seen) in rays.chunks(self.pixels).enumerate() {
            let any = |steep: i64| seen.iter().any(|ray| ray.slope & 1 == steep);
            // Places k pixels further are seen 1 / (1 - k / D) times as far off as in the first order, at most, from a
            // source D pixels away; k is up to 4 in a tile, D at least CLEARANCE.
            let widen = match self.beam {
                Beam::Parallel => 1.0,
                Beam::Fan { source_origin, .. } => 1.0 + 8.0 * grid.pixel / (source_origin - grid.reach()),
            };
            let kinds = f64::from(u8::from(any(1))) + 2.0 * f64::from(u8::from(any(0)));
            let [a0, a1, a2, b0, b1, b2] = self.view(angle, grid);
            values.extend([a0, a1, a2, kinds, b0, b1, b2, widen].map(T::from_f64));
        }
        let (rows, cols) = match kind {
            Kind::Backproject => (grid.pixels(), rays.len()),
            _ => (rays.len(), grid.pixels()),
        };
        Layout {
            format: Format::OnTheFly,
            arrangement: Arrangement { kind, lanes, block: 1, wide: false },
            rows,
            cols,
            pointers,
            indices: rays.iter().map(|ray| u32::from(ray.lines.0) | u32::from(ray.lines.1) << 16).collect(),
            values,
            stride: rows,
            longer: [0; 2],
            longest: 0,
            why: format!("rays traced in the kernel, {lanes} lane(s) to a row"),
        }
    }

    /// `[a0, a1, a2, b0, b1, b2]`: pixel `(i, j)` is seen at detector place `(a0 + a1 j + a2 i) / (b0 + b1 j + b2 i)`.
    fn view(&self, angle: usize, grid: Grid) -> [f64; 6] {
        let turn = self.angles[angle].to_radians();
        let (sin, cos) = (libm::sin(turn), libm::cos(turn));
        let centre = 0.5 * (self.pixels as f64 - 1.0) - self.offset;
        let (h, middle) = (grid.pixel, 0.5 * (grid.side as f64 - 1.0));
        // Along the detector and towards it: constant, per column, per row.
        let along = [middle * h * (sin - cos), h * cos, -h * sin];
        let towards = [middle * h * (sin + cos), -h * sin, -h * cos];
        match self.beam {
            Beam::Parallel => {
                let [a0, a1, a2] = along.map(|a| a / self.pitch);
                [a0 + centre, a1, a2, 1.0, 0.0, 0.0]
            }
            Beam::Fan { source_origin, source_detector } => {
                let depth =
                    [1.0 + towards[0] / source_origin, towards[1] / source_origin, towards[2] / source_origin];
                let scale = source_detector / (source_origin * self.pitch);
                let [a0, a1, a2] = [0, 1, 2].map(|k| scale * along[k] + centre * depth[k]);
                [a0, a1, a2, depth[0], depth[1], depth[2]]
            }
        }
    }
}
