//! Rays through a square image, in the form that kernels trace. They stand for the matrix `A` of a scan, which is never stored. Its
//! entries are those of Joseph's method.
//!
//! A ray is steep or flat. A steep ray crosses the rows of the image one after another, a flat one its columns; these are its lines.
//! Where a ray crosses line `k`, its place along the line is `start + k slope`, a fixed-point number with 32 binary places. `low` is the
//! whole part of the place, `f` its fraction. The ray meets the pixels `low` and `low + 1` of the line. Their entries in the matrix are
//! `(1 - f) w` and `f w`; the weight `w` is the length of the ray between two lines.
//!
//! # Sums
//!
//! `T` is the precision of the vectors. The wide sum is `f64`, or a pair of `f32` (docs/numerics.md).
//!
//! A product `A x` forms one sum for each ray. Lines 0 to 7 of the image are a block ([`BLOCK`]), lines 8 to 15 the next. A block has
//! two sums in `T`: of `x[low]`, and of `f (x[low + 1] - x[low])`. At its end they are added to each other in `T`, and the result to the wide sum. If a large image is cut into
//! slabs at such lines, a slab has the blocks of the whole image.
//!
//! A product `A'y` forms one sum for each pixel. Up to 32 angles are a sheet; a sheet is summed in `T`, angle by angle. Rays
//! `c, c + K, c + 2 K, ...` of an angle are class `c`. Classes are added one after another, class 0 first. `K` is so large that the rays of a
//! class have different `low` on every line. Each pixel has two sums: one over the rays that meet it as pixel `low`, one over those that meet it as
//! pixel `low + 1`.
//! Therefore no two rays of a class add to the same sum, and the rays of a class may be taken in any order. At the end of a sheet the two
//! sums of a pixel are added to each other, and then to the wide sum.

use crate::number::Real;
use crate::threads;
use crate::tuning::RAYS_AT_ONCE;

/// Number of lines of a block.
pub(crate) const BLOCK: usize = 8;
/// Words of a ray: start and slope, the low word first.
pub(crate) const RAY_WORDS: usize = 4;
/// Words that name the rays of one kind of an angle: the first, the one after the last, the classes, 1 if there are rays of the other
/// kind between them, or behind the last ray of the first class before them.
pub(crate) const FAN_WORDS: usize = 4;
/// Words of a sheet: 1 for steep rays and 0 for flat ones, the first angle, the one after the last, the number of angles of the
/// sheets before it.
pub(crate) const SHEET_WORDS: usize = 4;
/// Most rays of an angle: two of their numbers share a word.
pub(crate) const MOST_PIXELS: usize = u16::MAX as usize;
/// Most rays: 32 bits reach the readings of four images.
pub(crate) const MOST_RAYS: usize = 1 << 30;
/// Most pixels of a line of a tile.
const TILE_WIDTH: usize = 128;
/// Most lines of a tile: an item holds the places of a ray on all of them.
const TILE_LINES: usize = 16;
/// Bytes of the sums of a tile: of a wide one, and of a narrow one, which leaves room for many groups on a compute unit of a GPU.
const TILE_BYTES: usize = 21 << 10;
const NARROW_TILE_BYTES: usize = 12 << 10;
/// One pixel in fixed point.
pub(crate) const ONE: i64 = 1 << 32;
/// Most pixels of the sheets that are held at once.
const MOST_HELD: usize = 1 << 24;
/// Pixels of all sheets that keep the largest device busy.
const PLENTY: usize = 1 << 23;
/// Most angles of a sheet: the sums of their rays are rounded in `T`.
const MOST_ANGLES: usize = 32;

/// A ray in fixed point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ray {
    /// Place on line 0.
    pub(crate) start: i64,
    /// Places per line; bit 0 tells a steep ray.
    pub(crate) slope: i64,
    /// The first line within the image, and the one after the last. Lines between them are within it: a ray is straight.
    pub(crate) lines: (u16, u16),
    /// Length within a line.
    pub(crate) weight: f64,
}

impl Ray {
    /// Tells if its lines are image rows.
    pub(crate) fn steep(&self) -> bool {
        self.slope & 1 == 1
    }

    /// Place on a line.
    pub(crate) fn place(&self, line: i64) -> i64 {
        self.start + line * self.slope
    }
}

/// Rays of all angles, with the order in which they are added.
#[derive(Clone, Debug)]
pub(crate) struct Rays<T> {
    /// Pixels of an image row, and rows.
    pub(crate) side: usize,
    /// Rays of an angle.
    pub(crate) pixels: usize,
    pub(crate) angles: usize,
    /// [`RAY_WORDS`] for each ray.
    pub(crate) words: Vec<u32>,
    /// The first line of each ray in the low half, the one after its last in the high half.
    pub(crate) lines: Vec<u32>,
    /// Weight of each ray over [`ONE`].
    pub(crate) weights: Vec<T>,
    /// [`FAN_WORDS`] for the flat rays of each angle, then for the steep ones.
    pub(crate) fans: Vec<u32>,
    /// [`SHEET_WORDS`] for each sheet.
    pub(crate) sheets: Vec<u32>,
    /// Sheets that are held at once.
    pub(crate) held: usize,
    /// Tiles of the image.
    pub(crate) tiles: Tiles,
    /// For each tile of each sheet, one after another, and each angle of the sheet, the rays that meet the tile: the first in the low
    /// half, or one of class 0 before it, the one after the last in the high half.
    pub(crate) spans: Vec<u32>,
}

/// Tiles that an image is cut into to be added to: the lines of a tile are image rows for steep rays, columns for flat ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Tiles {
    /// Lines of a tile. The last tiles hold lines of those before, so that all have as many.
    pub(crate) lines: usize,
    /// Pixels of each line, fewer in the last tile of a line.
    pub(crate) width: usize,
    /// Tiles side by side, and such rows of them.
    pub(crate) across: usize,
    pub(crate) down: usize,
}

impl Tiles {
    /// Tiles of an image of `side` by `side` pixels whose numbers have `bytes` bytes: small ones for small images, to keep a device busy.
    /// If there is a `distance`, that of the rays of a class, they are so narrow that [`RAYS_AT_ONCE`] rays of a class meet one.
    fn new(side: usize, bytes: usize, distance: Option<f64>) -> Self {
        let mut lines = if side * side < 1 << 16 { TILE_LINES / 4 } else { TILE_LINES };
        // Rays at a slope meet a tile with its diagonal.
        let narrow = |distance: f64| {
            let diagonal = RAYS_AT_ONCE as f64 * distance;
            (diagonal * diagonal - (lines * lines) as f64).max(0.0).sqrt() as usize
        };
        // No more than some 32 side by side: each tile has a word for each angle.
        let least = (side / 32).clamp(TILE_WIDTH / 16, TILE_WIDTH);
        let width = distance.map_or(TILE_WIDTH, narrow).clamp(least, TILE_WIDTH).min(side.max(1));
        // One as wide as the other; narrow ones in steps of four, because each width is a program.
        let even = side.div_ceil(side.div_ceil(width).max(1)).max(1);
        let width = if distance.is_some() { even.next_multiple_of(4) } else { even };
        let most = if distance.is_some() { NARROW_TILE_BYTES } else { TILE_BYTES };
        while lines > 1 && (lines > side || 2 * lines * (width + 1 + 2 * lines) * bytes > most) {
            lines /= 2;
        }
        Self { lines, width, across: side.div_ceil(width), down: side.div_ceil(lines) }
    }

    /// Number of tiles.
    pub(crate) fn count(&self) -> usize {
        self.across * self.down
    }

    /// First line of the tiles of a row of them.
    fn first_line(&self, row: usize, side: usize) -> usize {
        (row * self.lines).min(side - self.lines)
    }
}

impl<T: Real> Rays<T> {
    /// Rays of angles of `pixels` rays each, through an image of `side` by `side` pixels. `many_items` says that a group follows
    /// many rays at once.
    pub(crate) fn new(rays: &[Ray], pixels: usize, side: usize, many_items: bool) -> Self {
        let angles = rays.len() / pixels.max(1);
        let (mut fans, mut distances) = (Vec::with_capacity(2 * FAN_WORDS * angles), Vec::new());
        for steep in [false, true] {
            for fan in rays.chunks(pixels.max(1)) {
                let (words, distance) = fan_of(fan, steep);
                fans.extend(words);
                distances.extend(distance);
            }
        }
        let mean = distances.iter().sum::<f64>() / distances.len().max(1) as f64;
        let sheets = sheets_of(&fans, angles, side * side);
        let count = sheets.len() / SHEET_WORDS;
        let tiles = Tiles::new(side, T::PRECISION.bytes(), (many_items && !distances.is_empty()).then_some(mean));
        let spans = threads::map(threads::Chunks(&sheets, SHEET_WORDS), 1, |_, sheet| {
            let fans = &fans[sheet[0] as usize * FAN_WORDS * angles..];
            spans_of(rays, fans, pixels, side, &tiles, sheet)
        });
        let spans = spans.concat();
        let words = |ray: &Ray| [ray.start, ray.start >> 32, ray.slope, ray.slope >> 32].map(|word| word as u32);
        Self {
            side,
            pixels,
            angles,
            words: rays.iter().flat_map(words).collect(),
            lines: rays.iter().map(|ray| u32::from(ray.lines.0) | u32::from(ray.lines.1) << 16).collect(),
            weights: rays.iter().map(|ray| T::from_f64(ray.weight / ONE as f64)).collect(),
            fans,
            sheets,
            tiles,
            spans,
            held: (MOST_HELD / (side * side).max(1)).clamp(1, count.max(1)),
        }
    }

    /// Number of sheets.
    pub(crate) fn sheets(&self) -> usize {
        self.sheets.len() / SHEET_WORDS
    }

    /// Number of angles of all sheets.
    pub(crate) fn sheet_angles(&self) -> usize {
        self.sheets.chunks(SHEET_WORDS).map(|sheet| (sheet[2] - sheet[1]) as usize).sum()
    }

    /// The arrays and their bytes: what a device must hold. Several parts of a scan share what products overwrite, which are the last two.
    pub(crate) fn buffers(&self) -> [(&'static str, u64); 4] {
        let number = T::PRECISION.bytes() as u64;
        let pixels = (self.side * self.side) as u64;
        [
            ("rays", 4 * (self.words.len() + self.lines.len()) as u64 + number * self.weights.len() as u64),
            ("angles", 4 * (self.fans.len() + self.sheets.len() + self.spans.len()) as u64),
            ("copies of the image", number * images_len(self.side) as u64),
            ("sheets of the image, and their sums", (number * self.held as u64 + 8) * pixels),
        ]
    }
}

/// Elements of the two copies of an image that rays read, upright and transposed: for each place of a line, from the one before the
/// first pixel on, its pixel and how much larger the next one is. Places outside of the image hold 0.
pub(crate) fn images_len(side: usize) -> usize {
    4 * side * (side + 1)
}

/// The rays of one kind of an angle, [`FAN_WORDS`], and the least distance of those of a class in pixels, if it is known.
fn fan_of(fan: &[Ray], steep: bool) -> ([u32; FAN_WORDS], Option<f64>) {
    let there = |ray: &Ray| ray.steep() == steep && ray.lines.0 < ray.lines.1;
    let Some(first) = fan.iter().position(there) else { return ([0; FAN_WORDS], None) };
    let last = fan.iter().rposition(there).map_or(first, |last| last + 1);
    let nearest = nearest_rays(&fan[first..last], steep);
    let classes = nearest.map_or(last - first, |nearest| classes_of(nearest, last - first));
    let distance = nearest.filter(|nearest| *nearest < i64::MAX);
    let distance = distance.map(|nearest| classes as f64 * nearest as f64 / ONE as f64);
    // Tiles are added to from a ray of the first class on.
    let mixed = fan[first / classes * classes..last].iter().any(|ray| ray.steep() != steep);
    ([first as u32, last as u32, classes as u32, u32::from(mixed)], distance)
}

/// Classes that keep the rays of a class a pixel apart if neighbours are `nearest` apart, of `count` rays.
fn classes_of(nearest: i64, count: usize) -> usize {
    (ONE as u64).div_ceil(nearest as u64).min(count as u64) as usize
}

/// The least distance of neighbours. Rays of an angle do not cross within the image, so that it bounds the distance of all. Where it
/// cannot be told, each ray is a class: if neighbours cross, because the source stands there, and if rays of the other kind lie
/// between them, as in a fan of more than 90 degrees.
fn nearest_rays(fan: &[Ray], steep: bool) -> Option<i64> {
    if fan.iter().any(|ray| ray.steep() != steep) {
        return None;
    }
    let mut nearest = i64::MAX;
    let mut way = 0;
    for pair in fan.windows(2) {
        let [a, b] = pair else { continue };
        let lines = i64::from(a.lines.0.max(b.lines.0))..i64::from(a.lines.1.min(b.lines.1));
        if lines.is_empty() {
            continue;
        }
        // Their distance is linear in the line.
        for line in [lines.start, lines.end - 1] {
            let distance = b.place(line) - a.place(line);
            if way == 0 {
                way = distance.signum();
            }
            if distance.signum() != way || distance == 0 {
                return None;
            }
            nearest = nearest.min(distance.abs());
        }
    }
    Some(nearest)
}

/// Sheets of angles that have rays of a kind, flat ones first: so many that a device has work, so few that they take little memory.
fn sheets_of(fans: &[u32], angles: usize, pixels: usize) -> Vec<u32> {
    let share = (pixels.saturating_mul(angles) / PLENTY).next_power_of_two().clamp(4, MOST_ANGLES);
    let (mut sheets, mut before) = (Vec::new(), 0);
    for (steep, fans) in fans.chunks((FAN_WORDS * angles).max(1)).enumerate() {
        for (sheet, fans) in fans.chunks(FAN_WORDS * share).enumerate() {
            if fans.chunks(FAN_WORDS).any(|fan| fan[1] > fan[0]) {
                let first = sheet * share;
                let last = (first + share).min(angles);
                sheets.extend([steep as u32, first as u32, last as u32, before as u32]);
                before += last - first;
            }
        }
    }
    sheets
}

/// The rays of a sheet that meet each tile, from one of class 0 on; `fans` are those of its kind.
fn spans_of(rays: &[Ray], fans: &[u32], pixels: usize, side: usize, tiles: &Tiles, sheet: &[u32]) -> Vec<u32> {
    let (steep, first, last) = (sheet[0] == 1, sheet[1] as usize, sheet[2] as usize);
    let mut spans = vec![0; tiles.count() * (last - first)];
    for (k, fan) in rays[first * pixels..last * pixels].chunks(pixels).enumerate() {
        let classes = fans[(first + k) * FAN_WORDS + 2].max(1);
        for (i, ray) in fan.iter().enumerate().filter(|(_, ray)| ray.steep() == steep) {
            for row in 0..tiles.down {
                let line = tiles.first_line(row, side);
                let (from, to) = (line.max(ray.lines.0.into()), (line + tiles.lines).min(ray.lines.1.into()));
                if from >= to {
                    continue;
                }
                // The pixels it meets lie between those of the first line and those of the last.
                let [a, b] = [from, to - 1].map(|line| ray.place(line as i64) >> 32);
                let left = (a.min(b).max(0) as usize / tiles.width).min(tiles.across - 1);
                let right = ((a.max(b) + 1).clamp(0, side as i64 - 1) as usize / tiles.width).max(left);
                for tile in left..=right {
                    let span = &mut spans[(row * tiles.across + tile) * (last - first) + k];
                    let begin = if *span == 0 { i as u32 / classes * classes } else { *span & 0xffff };
                    *span = begin | (i as u32 + 1) << 16;
                }
            }
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ray along image rows 0 to 9, `place` pixels from the first column on line 0.
    fn ray(place: f64, slope: f64) -> Ray {
        let fixed = |value: f64| (value * ONE as f64) as i64;
        Ray { start: fixed(place), slope: fixed(slope) & !1 | 1, lines: (0, 10), weight: 1.0 }
    }

    #[test]
    fn rays_of_a_class_begin_in_different_pixels() {
        for (spacing, classes) in [(0.3, 4), (0.4, 3), (0.8, 2), (1.0, 1), (1.4, 1), (5.0, 1)] {
            let fan: Vec<Ray> = (0..20).map(|k| ray(spacing * f64::from(k), 0.25)).collect();
            // Fixed point may bring rays nearer by its last place.
            let found = classes_of(nearest_rays(&fan, true).expect("rays that do not cross"), fan.len());
            assert!((classes..=classes + 1).contains(&found), "{found} classes at {spacing}");
            for line in 0..10 {
                let far = |k: usize| (fan[k + found].place(line) - fan[k].place(line)).abs() >= ONE;
                assert!((0..20 - found.min(20)).all(far));
            }
        }
        // Rays that cross on line 5.
        let crossing = [ray(0.0, 0.4), ray(2.0, 0.0), ray(4.0, 0.2)];
        assert_eq!(nearest_rays(&crossing, true), None);
        let parted = [ray(0.0, 0.0), Ray { slope: 0, ..ray(3.0, 0.0) }, ray(6.0, 0.0)];
        assert_eq!(nearest_rays(&parted, true), None);
        assert_eq!(fan_of(&parted, true).0, [0, 3, 3, 1]);
        // Tiles of 16 lines that 32 rays 1.75 pixels apart meet: up to 53 pixels wide, ten of them side by side in 512.
        let width = |side, distance| Tiles::new(side, 4, distance).width;
        assert_eq!(
            [Some(1.75), Some(1.6), Some(0.0), None].map(|distance| width(512, distance)),
            [52, 48, 16, 128]
        );
        assert_eq!([1024, 4096, 32768].map(|side| width(side, Some(1.0))), [32, 128, 128]);
        // Rays that cross tell no distance.
        let crossing = Rays::<f32>::new(&crossing.map(|ray| Ray { lines: (0, 200), ..ray }), 3, 200, true);
        assert_eq!(crossing.tiles.width, 100);
    }

    #[test]
    fn sheets_hold_the_angles_that_have_rays() {
        let flat = Ray { slope: 0, ..ray(3.0, 0.0) };
        let rays = [vec![ray(1.0, 0.0), ray(3.0, 0.0)], vec![flat, ray(3.0, 0.0)], vec![flat; 10]].concat();
        let rays = Rays::<f32>::new(&rays, 2, 10, false);
        assert_eq!(rays.angles, 7);
        // Flat rays in angles 1 to 6, steep ones in 0 and 1; four angles to a sheet.
        assert_eq!(rays.sheets, [0, 0, 4, 0, 0, 4, 7, 4, 1, 0, 4, 7]);
        assert_eq!(rays.fans[4..8], [0, 1, 1, 0]);
        // Tiles of 4 lines of 10 pixels: every ray meets each of them.
        assert_eq!((rays.tiles.lines, rays.tiles.width, rays.tiles.count()), (4, 10, 3));
        assert_eq!(rays.spans[..4], [0, 1 << 16, 2 << 16, 2 << 16]);
        assert_eq!(rays.spans.len(), 3 * 11);
        assert_eq!(rays.fans[4 * 8..4 * 9], [1, 2, 1, 0]);
    }
}
