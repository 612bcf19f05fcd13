//! Pictures of fields: a byte a pixel and a palette, as they are saved and shown.

use std::path::Path;

use rayon::prelude::*;
use residuum::{Error, Real, Result, io};

/// Colours of the 256 values of a pixel.
pub type Palette = [[u8; 3]; 256];

/// A picture with a palette, row 0 uppermost.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// Width and height in pixels.
    pub size: [usize; 2],
    /// Colours.
    pub palette: Palette,
    /// Place of each pixel's colour in the palette.
    pub pixels: Vec<u8>,
}

/// Value of solid cells: the last of each palette, which fields leave free.
pub const SOLID: u8 = 255;

/// Brightest value of a field.
const LAST: f64 = 254.0;

/// A palette that runs through these colours in equal steps, with that of solid cells at its end.
pub fn palette_through(colours: &[[u8; 3]], solid: [u8; 3]) -> Palette {
    let mut palette = [solid; 256];
    let steps = (colours.len() - 1) as f64;
    for (k, colour) in palette.iter_mut().enumerate().take(255) {
        let place = k as f64 / LAST * steps;
        let first = (place as usize).min(colours.len() - 2);
        let part = place - first as f64;
        for c in 0..3 {
            let (from, to) = (f64::from(colours[first][c]), f64::from(colours[first + 1][c]));
            colour[c] = (from + part * (to - from)).round() as u8;
        }
    }
    palette
}

/// From black over red and yellow to white.
pub fn glowing() -> Palette {
    palette_through(&[[0, 0, 0], [120, 10, 30], [220, 60, 20], [255, 170, 40], [255, 250, 220]], [90, 100, 110])
}

/// From black to white.
pub fn grey() -> Palette {
    palette_through(&[[0, 0, 0], [255, 255, 255]], [150, 60, 50])
}

/// From dark blue water to its glint.
pub fn watery() -> Palette {
    let colours = [[4, 14, 40], [10, 45, 95], [24, 95, 150], [90, 165, 200], [235, 250, 255]];
    palette_through(&colours, [70, 60, 52])
}

/// From blue over white to red, for values of both signs.
pub fn signed() -> Palette {
    let colours = [[20, 40, 130], [70, 130, 200], [240, 240, 240], [210, 90, 60], [120, 10, 30]];
    palette_through(&colours, [60, 60, 60])
}

/// The palettes that a key or an option goes through.
pub const PALETTES: [fn() -> Palette; 4] = [glowing, grey, watery, signed];

impl Picture {
    /// A picture of the first value.
    pub fn new(size: [usize; 2], palette: Palette) -> Self {
        Self { size, palette, pixels: vec![0; size[0] * size[1]] }
    }

    /// Draws `values`, from `low` to `high`, one a pixel; cells that `solid` names are solid.
    pub fn draw<T: Real>(&mut self, values: &[T], [low, high]: [f64; 2], solid: Option<&[bool]>) {
        let scale = if high > low { LAST / (high - low) } else { 0.0 };
        self.pixels.par_iter_mut().zip(values).enumerate().with_min_len(4096).for_each(|(c, (pixel, value))| {
            let value = (value.to_f64() - low) * scale;
            // NaN is 0.
            *pixel = if solid.is_some_and(|solid| solid[c]) { SOLID } else { value.clamp(0.0, LAST).round() as u8 };
        });
    }

    /// Draws the surface of water of these heights, in the light of a lamp from the upper left. `steep` heights a pixel make a slope of 1.
    pub fn draw_surface<T: Real>(&mut self, heights: &[T], steep: f64, solid: Option<&[bool]>) {
        let [width, height] = self.size;
        // Unit vectors to the lamp, and half way between it and the eye, which looks straight down.
        let (lamp, between) = ([-0.45, -0.55, 0.704], [-0.244, -0.298, 0.923]);
        self.pixels.par_chunks_mut(width).enumerate().for_each(|(y, line)| {
            let row = |y: usize| &heights[y * width..][..width];
            let (above, here, below) = (row(y.saturating_sub(1)), row(y), row((y + 1).min(height - 1)));
            for (x, pixel) in line.iter_mut().enumerate() {
                if solid.is_some_and(|solid| solid[y * width + x]) {
                    *pixel = SOLID;
                    continue;
                }
                let dx =
                    (here[(x + 1).min(width - 1)].to_f64() - here[x.saturating_sub(1)].to_f64()) / (2.0 * steep);
                let dy = (below[x].to_f64() - above[x].to_f64()) / (2.0 * steep);
                let inverse = 1.0 / (dx * dx + dy * dy + 1.0).sqrt();
                let along = |v: [f64; 3]| ((v[2] - dx * v[0] - dy * v[1]) * inverse).max(0.0);
                let glint = along(between).powi(60);
                let light = 0.62 * along(lamp) + 0.7 * glint - 0.1;
                *pixel = (LAST * light).clamp(0.0, LAST).round() as u8;
            }
        });
    }

    /// The pixels as words of `0x00RRGGBB`, as windows take them.
    pub fn words(&self) -> impl Iterator<Item = u32> {
        let words = self.palette.map(|[r, g, b]| u32::from_be_bytes([0, r, g, b]));
        self.pixels.iter().map(move |pixel| words[usize::from(*pixel)])
    }

    /// An encoder of pictures of this size and palette.
    pub(super) fn encoder<W: std::io::Write>(&self, to: W, compression: png::Compression) -> png::Encoder<'_, W> {
        let mut encoder = png::Encoder::new(to, self.size[0] as u32, self.size[1] as u32);
        encoder.set_color(png::ColorType::Indexed);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_palette(self.palette.concat());
        encoder.set_compression(compression);
        encoder
    }

    /// Writes the picture as PNG.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn write(&self, path: &Path) -> Result<()> {
        io::write_atomically(path, |file| {
            let encoder = self.encoder(file, png::Compression::Fast);
            let mut writer = encoder.write_header().map_err(std::io::Error::other)?;
            writer.write_image_data(&self.pixels).map_err(std::io::Error::other)
        })
    }
}

/// Brightness of the pixels of a picture, from 0 to 1, row by row, with its width and height.
#[derive(Clone, Debug)]
pub struct Brightness {
    /// Width and height.
    pub size: [usize; 2],
    /// A number for each pixel.
    pub values: Vec<f32>,
}

/// Most pixels of a picture that is read.
const MOST_PIXELS: u64 = 1 << 28;

/// Reads a PNG of any kind. What is transparent is black.
///
/// # Errors
/// [`Error::File`], and [`Error::Format`] for a file that is no PNG or one of more than 2^28 pixels.
pub fn read(path: &Path) -> Result<Brightness> {
    let bad = |reason: String| Error::Format { what: path.display().to_string(), reason };
    let file =
        std::fs::File::open(path).map_err(|error| Error::File { path: path.into(), reason: error.to_string() })?;
    let mut decoder = png::Decoder::new(std::io::BufReader::new(file));
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().map_err(|error| bad(format!("no picture (PNG): {error}")))?;
    let info = reader.info();
    let size = [info.width as usize, info.height as usize];
    if u64::from(info.width) * u64::from(info.height) > MOST_PIXELS {
        return Err(bad(format!("{} x {} pixels are more than 2^28", size[0], size[1])));
    }
    let bytes = reader.output_buffer_size().ok_or_else(|| bad("it is too large".into()))?;
    let mut data = vec![0; bytes];
    let frame = reader.next_frame(&mut data).map_err(|error| bad(format!("a damaged picture: {error}")))?;
    let samples = frame.color_type.samples();
    let brightness = |pixel: &[u8]| {
        let channel = |k: usize| f32::from(pixel[k]) / 255.0;
        match samples {
            1 => channel(0),
            2 => channel(0) * channel(1),
            _ => {
                let opaque = if samples == 4 { channel(3) } else { 1.0 };
                (0.299 * channel(0) + 0.587 * channel(1) + 0.114 * channel(2)) * opaque
            }
        }
    };
    let lines = data.chunks_exact(frame.line_size).take(size[1]);
    let values = lines.flat_map(|line| line.chunks_exact(samples).take(size[0]).map(brightness)).collect();
    Ok(Brightness { size, values })
}

impl Brightness {
    /// The picture in another size: means of the pixels that a new one covers, or the one it lies in.
    pub fn resized(&self, [width, height]: [usize; 2]) -> Self {
        let span = |k: usize, n: usize, from: usize| {
            let first = k * from / n;
            first..((k + 1) * from / n).max(first + 1)
        };
        let values = (0..width * height).map(|c| {
            let (columns, rows) = (span(c % width, width, self.size[0]), span(c / width, height, self.size[1]));
            let count = (columns.len() * rows.len()) as f32;
            let sum: f32 = rows.flat_map(|y| columns.clone().map(move |x| self.values[y * self.size[0] + x])).sum();
            sum / count
        });
        Self { size: [width, height], values: values.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture() -> Picture {
        let mut picture = Picture::new([37, 21], glowing());
        let values: Vec<f64> = (0..37 * 21).map(|c| (c % 37) as f64 * 0.1 - 0.5).collect();
        let solid: Vec<bool> = (0..37 * 21).map(|c| c / 37 == 3).collect();
        picture.draw(&values, [0.0, 3.0], Some(&solid));
        picture
    }

    #[test]
    fn windows_show_the_pixels_of_files() {
        let (picture, folder) = (picture(), tempfile::tempdir().unwrap());
        let path = folder.path().join("picture.png");
        picture.write(&path).unwrap();
        let mut decoder = png::Decoder::new(std::io::BufReader::new(std::fs::File::open(&path).unwrap()));
        decoder.set_transformations(png::Transformations::normalize_to_color8());
        let mut reader = decoder.read_info().unwrap();
        let mut data = vec![0; reader.output_buffer_size().unwrap()];
        assert_eq!(reader.next_frame(&mut data).unwrap().color_type, png::ColorType::Rgb);
        let shown: Vec<u8> = picture.words().flat_map(|word| word.to_be_bytes()[1..].to_vec()).collect();
        assert_eq!(data, shown);
        assert!(shown.chunks(3).any(|pixel| pixel == picture.palette[usize::from(SOLID)]));
        // The brightness that is read from it grows with the values.
        let read = read(&path).unwrap();
        assert_eq!(read.size, [37, 21]);
        assert!(read.values[36] > read.values[20] && read.values[20] > read.values[0]);
    }

    #[test]
    fn what_is_no_picture_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("picture.png");
        assert!(matches!(read(&path), Err(Error::File { .. })));
        picture().write(&path).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for cut in [0, 10, whole.len() / 2, whole.len() - 20] {
            std::fs::write(&path, &whole[..cut]).unwrap();
            assert!(matches!(read(&path), Err(Error::Format { .. })), "{cut}");
        }
    }

    #[test]
    fn pictures_take_any_size() {
        let brightness = Brightness { size: [4, 2], values: vec![0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0] };
        assert_eq!(brightness.resized([2, 1]).values, [0.5, 0.5]);
        assert_eq!(brightness.resized([4, 2]).values, brightness.values);
        assert_eq!(brightness.resized([8, 2]).values[..8], [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0]);
    }
}
