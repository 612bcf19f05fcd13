//! Pictures of solutions: solids seen from outside, surfaces over the plane, slices.

use common::simulate::picture::{PALETTES, Palette, Picture};
use residuum::Result;
use residuum::fem::Point;

use crate::case::{Domain, Shape};

/// Colours of a value, in three shades: one for each direction of a face.
const COLOURS: usize = 84;
const SHADES: [f64; 3] = [0.72, 0.86, 1.0];
const LINE: u8 = 252;
const GROUND: u8 = 253;

/// Reads `z=0.5`.
pub(crate) fn parse_slice(text: &str) -> std::result::Result<(usize, f64), String> {
    let wrong = || format!("'{text}' is not like z=0.5");
    let (axis, position) = text.split_once('=').ok_or_else(wrong)?;
    let axis = ["x", "y", "z"].iter().position(|name| *name == axis).ok_or_else(wrong)?;
    let position: f64 = position.parse().map_err(|_| wrong())?;
    if position.is_finite() { Ok((axis, position)) } else { Err(wrong()) }
}

/// A triangle in space with values at its corners, a shade, and the sides that are drawn: side `k` is opposite to corner `k`.
struct Patch {
    corners: [Point; 3],
    values: [f64; 3],
    shade: usize,
    lines: [bool; 3],
}

/// Direction of view and colours.
pub(crate) struct View {
    size: [usize; 2],
    /// Angles about the vertical and towards the eye.
    angles: [f64; 2],
    pub(crate) cuts: bool,
    colours: usize,
}

impl View {
    pub(crate) fn new(size: [usize; 2], cuts: bool) -> Self {
        Self { size, angles: [0.6, 0.5], cuts, colours: 0 }
    }

    /// Turns the picture by so many pixels.
    pub(crate) fn turn(&mut self, moved: [f64; 2]) {
        self.angles[0] -= 0.01 * moved[0];
        self.angles[1] = (self.angles[1] + 0.01 * moved[1]).clamp(-1.5, 1.5);
    }

    pub(crate) fn next_colours(&mut self) {
        self.colours = (self.colours + 1) % PALETTES.len();
    }

    fn palette(&self) -> Palette {
        let base = PALETTES[self.colours]();
        let mut palette = [[0; 3]; 256];
        for (shade, factor) in SHADES.into_iter().enumerate() {
            for colour in 0..COLOURS {
                // Darkest colours are left to lines.
                let at = 40 + colour * (254 - 40) / (COLOURS - 1);
                palette[shade * COLOURS + colour] = base[at].map(|c| (f64::from(c) * factor).round() as u8);
            }
        }
        palette[usize::from(LINE)] = [30, 30, 36];
        palette[usize::from(GROUND)] = [236, 238, 242];
        palette
    }

    /// Draws an answer.
    pub(crate) fn draw(
        &self,
        domain: &Domain,
        x: &[f64],
        slice: Option<(usize, f64)>,
        picture: &mut Picture,
    ) -> Result<()> {
        picture.palette = self.palette();
        picture.pixels.fill(GROUND);
        match slice {
            Some(slice) => self.draw_slice(domain, x, slice, picture),
            None => {
                self.draw_patches(&self.patches(domain, x)?, picture);
                Ok(())
            }
        }
    }

    fn draw_slice(
        &self,
        domain: &Domain,
        x: &[f64],
        (axis, position): (usize, f64),
        picture: &mut Picture,
    ) -> Result<()> {
        let Shape::Solid { mesh, on: Some((space, load)) } = &domain.shape else { return Ok(()) };
        let solution = load.solution(space, x)?;
        let (along, up, bounds) = ((axis + 1) % 3, (axis + 2) % 3, mesh.bounds());
        let [width, height] = self.size;
        let point = |c: usize| {
            let at = |axis: usize, part: f64| bounds[axis][0] + part * (bounds[axis][1] - bounds[axis][0]);
            let mut point = [position; 3];
            point[along] = at(along, ((c % width) as f64 + 0.5) / width as f64);
            point[up] = at(up, 1.0 - ((c / width) as f64 + 0.5) / height as f64);
            point
        };
        let values: Vec<Option<f64>> = (0..width * height).map(|c| solution.value(point(c))).collect();
        let range = Range::of(values.iter().flatten().copied());
        for (pixel, value) in picture.pixels.iter_mut().zip(&values) {
            *pixel = value.map_or(GROUND, |value| range.colour(value, 2));
        }
        Ok(())
    }

    fn patches(&self, domain: &Domain, x: &[f64]) -> Result<Vec<Patch>> {
        let mut patches = Vec::new();
        match &domain.shape {
            Shape::Plane { mesh, on: Some(system) } => {
                let u = system.values(x)?;
                for corners in mesh.triangles() {
                    let at = corners.map(|k| k as usize);
                    let place = |k: usize| [mesh.points()[k][0], mesh.points()[k][1], u[k]];
                    patches.push(Patch {
                        corners: at.map(place),
                        values: at.map(|k| u[k]),
                        shade: 2,
                        lines: [true; 3],
                    });
                }
            }
            Shape::Solid { mesh, on: Some((space, load)) } => {
                let (solution, bounds) = (load.solution(space, x)?, mesh.bounds());
                // Middle of the lattice: the eighth in front of it is cut away.
                let centre = bounds.map(|[low, high]| 0.5 * (low + high));
                let front = |p: Point| p[0] > centre[0] && p[1] < centre[1] && p[2] > centre[2];
                for (c, cell) in mesh.views().enumerate().filter(|(_, cell)| !(self.cuts && front(cell.middle()))) {
                    // Straight pieces of a face: more for what is curved, fewer for small cells.
                    let share = (cell.upper[0] - cell.lower[0]) / (bounds[0][1] - bounds[0][0]);
                    let pieces = ((share * 24.0) as usize).clamp(1, 2 * cell.degree.max(2));
                    for axis in 0..3 {
                        for side in [0.0, 1.0] {
                            face_patches(&solution, c, (axis, side), pieces, &mut patches);
                        }
                    }
                }
            }
            _ => {}
        }
        Ok(patches)
    }

    fn draw_patches(&self, patches: &[Patch], picture: &mut Picture) {
        let range = Range::of(patches.iter().flat_map(|patch| patch.values));
        let ([sin, cos], [lean, rise]) = (angle(self.angles[0]), angle(self.angles[1]));
        // Right, up, towards the eye.
        let turned = |p: Point| {
            let (right, back) = (p[0] * cos + p[1] * sin, p[1] * cos - p[0] * sin);
            [right, p[2] * rise + back * lean, p[2] * lean - back * rise]
        };
        let corners = || patches.iter().flat_map(|patch| patch.corners);
        let bounds = [0, 1, 2].map(|d| Range::of(corners().map(move |p| p[d])));
        let centre = [0, 1, 2].map(|d: usize| 0.5 * (bounds[d].low + bounds[d].high));
        let radius = bounds.iter().map(|range| (range.high - range.low).powi(2)).sum::<f64>().sqrt() / 2.0;
        let [width, height] = self.size;
        let scale = 0.49 * width.min(height) as f64 / radius.max(f64::MIN_POSITIVE);
        let mut depths = vec![f64::NEG_INFINITY; width * height];
        for patch in patches {
            let placed = patch.corners.map(|p| {
                let [right, up, near] = turned([0, 1, 2].map(|d| p[d] - centre[d]));
                [width as f64 / 2.0 + scale * right, height as f64 / 2.0 - scale * up, scale * near]
            });
            raster(patch, placed, &range, self.size, &mut depths, &mut picture.pixels);
        }
    }
}

fn angle(angle: f64) -> [f64; 2] {
    [angle.sin(), angle.cos()]
}

/// Range of values that colours stand for.
struct Range {
    low: f64,
    high: f64,
}

impl Range {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        values.fold(Self { low: f64::INFINITY, high: f64::NEG_INFINITY }, |range, value| Self {
            low: range.low.min(value),
            high: range.high.max(value),
        })
    }

    fn colour(&self, value: f64, shade: usize) -> u8 {
        let last = (COLOURS - 1) as f64;
        let part = if self.high > self.low { (value - self.low) / (self.high - self.low) } else { 0.5 };
        (shade * COLOURS) as u8 + (part * last).clamp(0.0, last).round() as u8
    }
}

/// Triangles of a face of a cell, with the sides of the face as lines.
fn face_patches(
    solution: &residuum::fem::Solution<'_>,
    cell: usize,
    (axis, side): (usize, f64),
    pieces: usize,
    patches: &mut Vec<Patch>,
) {
    let (along, up) = ((axis + 1) % 3, (axis + 2) % 3);
    let node = |i: usize, j: usize| {
        let mut t = [side; 3];
        (t[along], t[up]) = (i as f64 / pieces as f64, j as f64 / pieces as f64);
        (solution.place_in(cell, t), solution.value_in(cell, t))
    };
    let nodes: Vec<(Point, f64)> =
        (0..=pieces).flat_map(|j| (0..=pieces).map(move |i| (i, j))).map(|(i, j)| node(i, j)).collect();
    let at = |i: usize, j: usize| nodes[i + (pieces + 1) * j];
    for j in 0..pieces {
        for i in 0..pieces {
            let [a, b, c, d] = [at(i, j), at(i + 1, j), at(i + 1, j + 1), at(i, j + 1)];
            let mut add = |corners: [(Point, f64); 3], lines: [bool; 3]| {
                patches.push(Patch {
                    corners: corners.map(|c| c.0),
                    values: corners.map(|c| c.1),
                    shade: axis,
                    lines,
                });
            };
            add([a, b, c], [i + 1 == pieces, false, j == 0]);
            add([a, c, d], [j + 1 == pieces, i == 0, false]);
        }
    }
}

/// Fills a triangle whose corners lie at these pixels and depths, where nothing lies in front of it.
fn raster(
    patch: &Patch,
    p: [Point; 3],
    range: &Range,
    [width, height]: [usize; 2],
    depths: &mut [f64],
    pixels: &mut [u8],
) {
    let twice = (p[1][0] - p[0][0]) * (p[2][1] - p[0][1]) - (p[1][1] - p[0][1]) * (p[2][0] - p[0][0]);
    if twice.abs() < 1e-9 {
        return;
    }
    let ends = |d: usize, n: usize| {
        let found = Range::of(p.iter().map(|p| p[d]));
        (found.low.floor().max(0.0) as usize)..((found.high.ceil() + 1.0).clamp(0.0, n as f64) as usize)
    };
    // Height of the triangle over each side in pixels: lines are one pixel wide whatever its size.
    let heights = [0, 1, 2].map(|k| {
        let (a, b) = (p[(k + 1) % 3], p[(k + 2) % 3]);
        twice.abs() / ((a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2)).sqrt().max(1e-9)
    });
    for y in ends(1, height) {
        for x in ends(0, width) {
            let (px, py) = (x as f64 + 0.5, y as f64 + 0.5);
            let part = |k: usize| {
                let (a, b) = (p[(k + 1) % 3], p[(k + 2) % 3]);
                ((a[0] - px) * (b[1] - py) - (a[1] - py) * (b[0] - px)) / twice
            };
            let parts = [part(0), part(1), part(2)];
            if parts.iter().any(|part| *part < -1e-9) {
                continue;
            }
            let depth: f64 = (0..3).map(|k| parts[k] * p[k][2]).sum();
            let at = y * width + x;
            if depth > depths[at] {
                depths[at] = depth;
                let line = (0..3).any(|k| patch.lines[k] && heights[k] > 6.0 && parts[k] * heights[k] < 0.7);
                let value = (0..3).map(|k| parts[k] * patch.values[k]).sum();
                pixels[at] = if line { LINE } else { range.colour(value, patch.shade) };
            }
        }
    }
}
