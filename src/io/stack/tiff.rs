//! TIFF files as volumes, and volumes written as TIFF files.

use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use tiff::decoder::{Decoder, DecodingResult};
use tiff::encoder::TiffEncoder;
use tiff::encoder::colortype::{ColorType as Pixels, Gray16, Gray32Float};
use tiff::tags::{ByteOrder, PhotometricInterpretation, Tag};
use tiff::{ColorType, TiffError};

use super::source::Source;
use crate::error::{Error, Result};
use crate::files::{file_error, write_atomically};
use crate::io::npy::Element;
use crate::io::open::short_name;
use crate::threads;

/// Pictures of one file, or of several.
pub(super) struct Pictures {
    files: Vec<PathBuf>,
    /// Number of the file, and of the picture within it, of every picture.
    places: Vec<(usize, usize)>,
    /// Place of the pictures of a file that has one directory for all of them.
    packed: Option<Packed>,
    /// The scale of each file's values.
    scales: Vec<Option<Scale>>,
    /// The file that is open, with the number of the file and of the picture within it that come next.
    open: Option<(usize, usize, Decoder<BufReader<File>>)>,
}

/// Pixels of many pictures, one after the other: large stacks of ImageJ have a directory for the first picture alone.
#[derive(Clone, Copy)]
struct Packed {
    begin: u64,
    element: Element,
    /// Pixels of a picture.
    size: usize,
}

/// Calibration of the grey values of a file: a pixel `v` stands for `offset + slope v`. ImageJ keeps pictures with signs so, and values of 8 and
/// 16 bits that were measured in a unit.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Scale {
    offset: f64,
    slope: f64,
}

/// Size and number of the pictures of a file.
struct Content {
    rows: usize,
    columns: usize,
    pictures: usize,
    packed: Option<Packed>,
    scale: Option<Scale>,
    /// A remark for users on its values.
    remark: Option<String>,
    bytes: u64,
}

/// A volume of TIFF files.
pub(super) struct Volume {
    pub(super) shape: [usize; 3],
    /// Bytes of all files.
    pub(super) bytes: u64,
    pub(super) source: Pictures,
    pub(super) remarks: Vec<String>,
}

fn failed(path: &Path, error: TiffError) -> Error {
    let reason = match error {
        TiffError::IoError(error) if error.kind() != std::io::ErrorKind::UnexpectedEof => {
            return file_error(path, &error);
        }
        TiffError::IoError(_) => "TIFF: the file ends too early".into(),
        error => format!("TIFF: {error}"),
    };
    refuse(path, reason)
}

fn refuse(path: &Path, reason: impl Into<String>) -> Error {
    Error::Format { what: short_name(path), reason: reason.into() }
}

/// The decoder of a file at its first picture.
fn decoder(path: &Path) -> Result<Decoder<BufReader<File>>> {
    let file = File::open(path).map_err(|e| file_error(path, &e))?;
    Decoder::new(BufReader::new(file)).map_err(|e| failed(path, e))
}

impl Content {
    fn of(path: &Path) -> Result<Self> {
        let about = std::fs::metadata(path).map_err(|e| file_error(path, &e))?;
        if !about.is_file() {
            return Err(refuse(path, "a folder, a pipe or a device, no file of a picture"));
        }
        let mut there = decoder(path)?;
        let first = there.dimensions().map_err(|e| failed(path, e))?;
        let (columns, rows) = (first.0 as usize, first.1 as usize);
        let words = description(&mut there);
        let (scale, remark) = match there.colortype() {
            // ImageJ knows scales of pixels of 8 and 16 bits alone.
            Ok(ColorType::Gray(8 | 16)) => scale(&words),
            _ => (None, None),
        };
        let described = described(&words, rows * columns);
        if let Some(described) = described.filter(|_| !there.more_images()) {
            let packed = Packed::of(path, &mut there, described, [rows, columns], about.len())?;
            let (pictures, packed) = (described, Some(packed));
            return Ok(Self { rows, columns, pictures, packed, scale, remark, bytes: about.len() });
        }
        let mut pictures = 1;
        while there.more_images() {
            there.next_image().map_err(|e| failed(path, e))?;
            let size = there.dimensions().map_err(|e| failed(path, e))?;
            if size != first {
                let reason = format!(
                    "picture {pictures} (from 0) is {} x {} pixels, the first one {rows} x {columns}",
                    size.1, size.0
                );
                return Err(refuse(path, reason));
            }
            pictures += 1;
        }
        Ok(Self { rows, columns, pictures, packed: None, scale, remark, bytes: about.len() })
    }
}

/// Bytes of a description that are read.
const LONGEST_DESCRIPTION: usize = 1 << 13;

/// The description of the first picture, or its beginning. Empty if there is none.
fn description(decoder: &mut Decoder<BufReader<File>>) -> String {
    let mut bytes = [0; LONGEST_DESCRIPTION];
    let length = decoder.image_ifd().find_tag_bytes(Tag::ImageDescription, &mut bytes, 0).ok().flatten();
    let text = length.and_then(|length| bytes.get(..length)?.split(|byte| *byte == 0).next());
    // Units of length are often not UTF-8.
    String::from_utf8_lossy(text.unwrap_or_default()).into_owned()
}

/// The text that follows `name` in a description of ImageJ, which has one `name=value` a line.
fn property<'a>(description: &'a str, name: &str) -> Option<&'a str> {
    let properties = description.strip_prefix("ImageJ=")?;
    properties.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix('=')).map(str::trim)
}

/// The scale that a description of ImageJ gives, and what a user should know of it.
fn scale(description: &str) -> (Option<Scale>, Option<String>) {
    // 0 is a straight line. 1 to 19 are curves, 20 is none, 21 the optical density, 22 a table.
    let Some(kind) = property(description, "cf").filter(|kind| *kind != "20") else { return (None, None) };
    let number = |name| property(description, name)?.parse::<f64>().ok().filter(|v: &f64| v.is_finite());
    match (kind, number("c0"), number("c1")) {
        ("0", Some(offset), Some(slope)) if (offset, slope) == (0.0, 1.0) => (None, None),
        ("0", Some(offset), Some(slope)) => {
            let said = format!(
                "grey values are calibrated as ImageJ's words in the file say: {offset} + {slope} v for a pixel v"
            );
            (Some(Scale { offset, slope }), Some(said))
        }
        _ => {
            let said = "ImageJ's calibration of grey values in the file is not linear, and is not applied: raw pixel values are taken";
            (None, Some(said.into()))
        }
    }
}

impl Scale {
    fn apply(self, picture: &mut [f32]) {
        picture.iter_mut().for_each(|v| *v = (self.offset + self.slope * f64::from(*v)) as f32);
    }
}

/// Number of pictures that the description of the first one counts, if more than one: ImageJ's `images=90`, or the shape that tifffile writes
/// with `truncate`.
fn described(text: &str, size: usize) -> Option<usize> {
    let count = if text.starts_with("ImageJ=") {
        property(text, "images")?.parse().ok()?
    } else {
        let shape = text.strip_prefix("{\"shape\": [").filter(|_| text.contains("\"truncated\": true"))?;
        let lengths = shape.split_once(']')?.0.split(',').map(|length| length.trim().parse::<usize>().ok());
        let all = lengths.into_iter().try_fold(1usize, |all, length| all.checked_mul(length?))?;
        all.checked_div(size)?
    };
    (count > 1).then_some(count)
}

impl Packed {
    /// Place of so many `pictures` in a file of so many `bytes`.
    fn of(
        path: &Path,
        decoder: &mut Decoder<BufReader<File>>,
        pictures: usize,
        [rows, columns]: [usize; 2],
        bytes: u64,
    ) -> Result<Self> {
        let says = format!("its description says {pictures} pictures, and it has one directory");
        let number = |decoder: &mut Decoder<BufReader<File>>, tag| -> Option<u64> {
            decoder.find_tag_unsigned::<u64>(tag).ok().flatten()
        };
        if number(decoder, Tag::Compression).is_some_and(|kind| kind != 1) {
            return Err(refuse(path, format!("{says}, but its pixels are compressed: save it anew, uncompressed")));
        }
        if number(decoder, Tag::PhotometricInterpretation)
            == Some(PhotometricInterpretation::WhiteIsZero.to_u16().into())
        {
            return Err(refuse(path, format!("{says}, and its white is 0: save it anew, with black 0")));
        }
        let kind = decoder.colortype().map_err(|e| failed(path, e))?;
        let format = decoder.find_tag_unsigned_vec::<u16>(Tag::SampleFormat).ok().flatten();
        let letter = match format.as_deref() {
            None | Some([1, ..]) => 'u',
            Some([2, ..]) => 'i',
            Some([3, ..]) => 'f',
            Some(_) => '?',
        };
        let order = if decoder.byte_order() == ByteOrder::BigEndian { '>' } else { '<' };
        let element = match kind {
            ColorType::Gray(bits @ (8 | 16 | 32 | 64)) => {
                Element::from_name(&format!("{order}{letter}{}", bits / 8)).ok()
            }
            _ => None,
        };
        let Some(element) = element else {
            return Err(refuse(path, format!("its pixels are {kind:?}; a volume has one number for each")));
        };
        let vector = |decoder: &mut Decoder<BufReader<File>>, tag| -> Result<Vec<u64>> {
            let found = decoder.find_tag_unsigned_vec::<u64>(tag).map_err(|e| failed(path, e))?;
            found.filter(|found| !found.is_empty()).ok_or_else(|| refuse(path, format!("{says}, but no strips")))
        };
        let offsets = vector(decoder, Tag::StripOffsets)?;
        // A single strip may have any length: some writers give that of all pictures.
        if offsets.len() > 1 {
            let lengths = vector(decoder, Tag::StripByteCounts)?;
            let joined = |k: usize| Some(offsets[k].checked_add(*lengths.get(k)?)? == offsets[k + 1]);
            if !(0..offsets.len() - 1).all(|k| joined(k) == Some(true)) {
                let reason = "but the strips of the first one do not follow each other: save it anew";
                return Err(refuse(path, format!("{says}, {reason}")));
            }
        }
        let begin = offsets[0];
        let each = (rows as u64).checked_mul(columns as u64).and_then(|n| n.checked_mul(element.bytes as u64));
        let end = each.and_then(|each| each.checked_mul(pictures as u64)?.checked_add(begin));
        if end.is_none_or(|end| end > bytes) {
            let there = bytes.saturating_sub(begin).checked_div(each.unwrap_or(0)).unwrap_or(0);
            return Err(refuse(path, format!("{says}, but its {bytes} bytes hold {there} of them")));
        }
        Ok(Self { begin, element, size: rows * columns })
    }

    fn picture(self, path: &Path, file: &mut File, k: usize) -> Result<Vec<f32>> {
        let Self { begin, element, size } = self;
        let length = size * element.bytes;
        let place = begin + k as u64 * length as u64;
        file.seek(SeekFrom::Start(place)).map_err(|e| file_error(path, &e))?;
        let mut bytes = Vec::new();
        file.take(length as u64).read_to_end(&mut bytes).map_err(|e| file_error(path, &e))?;
        if bytes.len() < length {
            return Err(refuse(path, format!("the file ends within picture {k}")));
        }
        let mut numbers = Vec::with_capacity(size);
        element.decode(&bytes, &mut numbers);
        Ok(numbers.into_iter().map(|v| v as f32).collect())
    }
}

/// Opens files, each of one picture or several, all of one size.
pub(super) fn open(files: Vec<PathBuf>) -> Result<Volume> {
    let contents = threads::try_map(&files[..], 1, |_, path| Content::of(path))?;
    let (rows, columns) = (contents[0].rows, contents[0].columns);
    let mut places = Vec::new();
    for (k, (content, path)) in contents.iter().zip(&files).enumerate() {
        if (content.rows, content.columns) != (rows, columns) {
            let first = short_name(&files[0]);
            let reason = format!(
                "{} x {} pixels (rows x columns), but {first} has {rows} x {columns}",
                content.rows, content.columns
            );
            return Err(refuse(path, reason));
        }
        if files.len() > 1 && content.packed.is_some() {
            return Err(refuse(path, "a stack of ImageJ with one directory among several files"));
        }
        places.extend((0..content.pictures).map(|within| (k, within)));
    }
    let mut remarks = Vec::new();
    if files.len() > 1 && places.len() > files.len() {
        remarks.push(format!("{} pictures in {} files: all pages count", places.len(), files.len()));
    }
    remarks.extend(remark_on_scales(&contents, &files));
    let bytes = contents.iter().fold(0u64, |all, content| all.saturating_add(content.bytes));
    let shape = [places.len(), rows, columns];
    let scales = contents.iter().map(|content| content.scale).collect();
    let source = Pictures { files, places, packed: contents[0].packed, scales, open: None };
    Ok(Volume { shape, bytes, source, remarks })
}

/// A remark for users on the scales of several files, which names the first one that has any.
fn remark_on_scales(contents: &[Content], files: &[PathBuf]) -> Option<String> {
    let first = contents.iter().position(|content| content.remark.is_some())?;
    let said = contents[first].remark.as_ref()?;
    let alike = contents.iter().all(|content| content.remark.as_ref() == Some(said));
    Some(if alike { said.clone() } else { format!("{}: {said}; other files differ", short_name(&files[first])) })
}

impl Source for Pictures {
    fn picture(&mut self, k: usize) -> Result<Vec<f32>> {
        let mut picture = self.pixels(k)?;
        if let Some(scale) = self.scales[self.places[k].0] {
            scale.apply(&mut picture);
        }
        Ok(picture)
    }
}

impl Pictures {
    /// The pixels of picture `k` as they stand in the file.
    fn pixels(&mut self, k: usize) -> Result<Vec<f32>> {
        let (file, within) = self.places[k];
        let path = &self.files[file];
        if let Some(packed) = self.packed {
            let mut open = File::open(path).map_err(|e| file_error(path, &e))?;
            return packed.picture(path, &mut open, within);
        }
        let (mut place, mut decoder) = match self.open.take() {
            Some((open, place, decoder)) if open == file && place <= within => (place, decoder),
            _ => (0, decoder(path)?),
        };
        while place < within {
            decoder.next_image().map_err(|e| failed(path, e))?;
            place += 1;
        }
        let kind = decoder.colortype().map_err(|e| failed(path, e))?;
        if !matches!(kind, ColorType::Gray(_)) {
            return Err(refuse(path, format!("its pixels are {kind:?}; a volume has one number for each")));
        }
        let picture = numbers(decoder.read_image().map_err(|e| failed(path, e))?);
        self.open = Some((file, place, decoder));
        Ok(picture)
    }
}

/// The pixels as floats.
fn numbers(pixels: DecodingResult) -> Vec<f32> {
    use DecodingResult as D;
    match pixels {
        D::U8(v) => v.into_iter().map(f32::from).collect(),
        D::U16(v) => v.into_iter().map(f32::from).collect(),
        D::U32(v) => v.into_iter().map(|v| v as f32).collect(),
        D::U64(v) => v.into_iter().map(|v| v as f32).collect(),
        D::I8(v) => v.into_iter().map(f32::from).collect(),
        D::I16(v) => v.into_iter().map(f32::from).collect(),
        D::I32(v) => v.into_iter().map(|v| v as f32).collect(),
        D::I64(v) => v.into_iter().map(|v| v as f32).collect(),
        D::F16(v) => v.into_iter().map(|v| v.to_f32()).collect(),
        D::F32(v) => v,
        D::F64(v) => v.into_iter().map(|v| v as f32).collect(),
    }
}

/// Writes pictures of `rows × columns` pixels of 16 bits as one file, with the values that 0 and 65535 stand for, in words that ImageJ reads.
pub(crate) fn write(path: &Path, size: [usize; 2], pictures: &[Vec<u16>], [low, high]: [f64; 2]) -> Result<()> {
    let slope = (high - low) / 65535.0;
    let scale = format!("cf=0\nc0={low:e}\nc1={slope:e}\nvunit=value\nmin=0.0\nmax=65535.0\n");
    write_as::<Gray16>(path, size, pictures, &scale)
}

/// Writes pictures of `rows × columns` floats as one file. `low` and `high` are what programs show black and white.
pub(crate) fn write_floats(
    path: &Path,
    size: [usize; 2],
    pictures: &[Vec<f32>],
    [low, high]: [f64; 2],
) -> Result<()> {
    write_as::<Gray32Float>(path, size, pictures, &format!("min={low:e}\nmax={high:e}\n"))
}

fn write_as<C: Pixels>(
    path: &Path,
    [rows, columns]: [usize; 2],
    pictures: &[Vec<C::Inner>],
    words: &str,
) -> Result<()>
where
    [C::Inner]: tiff::encoder::TiffValue,
{
    let mut bytes = Cursor::new(Vec::new());
    let encode = |bytes: &mut Cursor<Vec<u8>>| -> std::result::Result<(), TiffError> {
        let mut encoder = TiffEncoder::new(bytes)?;
        for (k, picture) in pictures.iter().enumerate() {
            let mut image = encoder.new_image::<C>(columns as u32, rows as u32)?;
            // ImageJ reads what stands with the first picture. A number of pictures there would tell it that their pixels follow each other.
            if k == 0 {
                image.encoder().write_tag(Tag::ImageDescription, &*format!("ImageJ=1.53t\n{words}"))?;
            }
            image.write_data(picture)?;
        }
        Ok(())
    };
    encode(&mut bytes).map_err(|e| failed(path, e))?;
    write_atomically(path, |file| file.write_all(bytes.get_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::Stack;

    /// The range of 16 bits that stand for themselves.
    const PLAIN: [f64; 2] = [0.0, 65535.0];

    #[test]
    fn pictures_are_read_back_one_by_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.tif");
        let pictures: Vec<Vec<u16>> = (0..3).map(|k| (0..12).map(|i| 1000 * k + i).collect()).collect();
        write(&path, [3, 4], &pictures, PLAIN).expect("written");
        let mut stack = Stack::open(&path).expect("a volume");
        assert_eq!(stack.shape(), [3, 3, 4]);
        for k in [2, 0, 1, 1] {
            let wanted: Vec<f32> = pictures[k].iter().map(|v| f32::from(*v)).collect();
            assert_eq!(stack.picture(k).expect("there"), wanted);
        }
        // A folder of files, by the numbers in their names.
        let several = folder.path().join("several");
        std::fs::create_dir(&several).expect("made");
        for (name, picture) in [("s10.tif", 2), ("s2.TIFF", 1), ("s1.tif", 0)] {
            write(&several.join(name), [3, 4], &pictures[picture..=picture], PLAIN).expect("written");
        }
        std::fs::write(several.join("notes.txt"), "no picture").expect("written");
        let mut stack = Stack::open(&several).expect("a volume");
        assert_eq!(stack.shape(), [3, 3, 4]);
        assert_eq!((0..3).map(|k| stack.picture(k).expect("there")[0]).collect::<Vec<_>>(), [0.0, 1000.0, 2000.0]);
        // A picture of another size is refused by its name, also one of as many pixels.
        for (size, words) in [
            ([4, 4], "s2.TIFF: 4 x 4 pixels (rows x columns), but s1.tif has 3 x 4"),
            ([4, 3], "s2.TIFF: 4 x 3 pixels"),
        ] {
            write(&several.join("s2.TIFF"), size, &[vec![0; size[0] * size[1]]], PLAIN).expect("written");
            let error = Stack::open(&several).expect_err("two sizes").to_string();
            assert!(error.contains(words), "{error}");
        }
        // All pages of a file count.
        write(&several.join("s2.TIFF"), [3, 4], &pictures[1..], PLAIN).expect("written");
        let mut stack = Stack::open(&several).expect("a volume");
        assert_eq!(stack.shape(), [4, 3, 4]);
        assert_eq!(
            (0..4).map(|k| stack.picture(k).expect("there")[0]).collect::<Vec<_>>(),
            [0.0, 1000.0, 2000.0, 2000.0]
        );
        assert_eq!(stack.remarks(), ["4 pictures in 3 files: all pages count"]);
        // A pipe is not waited for.
        #[cfg(unix)]
        {
            assert!(
                std::process::Command::new("mkfifo")
                    .arg(several.join("s3.tif"))
                    .status()
                    .expect("a pipe")
                    .success()
            );
            let error = Stack::open(&several).expect_err("a pipe").to_string();
            assert!(error.contains("s3.tif: a folder, a pipe or a device"), "{error}");
        }
        std::fs::write(&path, b"II*\0 and no more").expect("written");
        assert!(matches!(Stack::open(&path), Err(Error::Format { .. })));
    }

    /// A stack as ImageJ writes large ones: one directory, whose description counts the pictures that follow each other.
    fn packed(count: usize, bits: u16, format: u16, big: bool, description: &str, data: &[u8]) -> Vec<u8> {
        let short = |v: u16| if big { v.to_be_bytes() } else { v.to_le_bytes() };
        let long = |v: u32| if big { v.to_be_bytes() } else { v.to_le_bytes() };
        let description = description.replace('#', &count.to_string());
        // Latin letters, as old files have them.
        let mut description: Vec<u8> = description.chars().map(|c| c as u8).collect();
        description.push(0);
        let entries = 10;
        let directory = 2 + 12 * entries + 4;
        let text_at = 8 + directory as u32;
        let data_at = text_at + description.len() as u32;
        let mut file = if big { b"MM".to_vec() } else { b"II".to_vec() };
        file.extend(short(42));
        file.extend(long(8));
        file.extend(short(entries as u16));
        let mut entry = |tag: u16, kind: u16, count: u32, value: u32| {
            file.extend([short(tag), short(kind)].concat());
            file.extend(long(count));
            // A short stands at the beginning of its four bytes.
            file.extend(if kind == 3 { [short(value as u16), [0, 0]].concat() } else { long(value).to_vec() });
        };
        entry(256, 3, 1, 4);
        entry(257, 3, 1, 3);
        entry(258, 3, 1, u32::from(bits));
        entry(259, 3, 1, 1);
        entry(262, 3, 1, 1);
        entry(270, 2, description.len() as u32, text_at);
        entry(273, 4, 1, data_at);
        entry(277, 3, 1, 1);
        entry(279, 4, 1, 12 * u32::from(bits) / 8);
        entry(339, 3, 1, u32::from(format));
        file.extend(long(0));
        file.extend(description);
        file.extend(data);
        file
    }

    #[test]
    fn stacks_with_one_directory_are_read_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("stack.tif");
        let imagej = "ImageJ=1.54f\nunit=\u{b5}m\nimages=#\nslices=#\nloop=false\n";
        let shaped = "{\"shape\": [#, 3, 4], \"truncated\": true}";
        let wanted: Vec<f32> = (0..60).map(|k| (3 * k) as f32).collect();
        let bytes = |bits: u16, format: u16, big: bool| -> Vec<u8> {
            let one = |v: &f32| -> Vec<u8> {
                let mut bytes = match (bits, format) {
                    (8, _) => vec![*v as u8],
                    (16, _) => (*v as u16).to_le_bytes().to_vec(),
                    (32, 3) => v.to_le_bytes().to_vec(),
                    _ => (*v as u32).to_le_bytes().to_vec(),
                };
                if big {
                    bytes.reverse();
                }
                bytes
            };
            wanted.iter().flat_map(one).collect()
        };
        for description in [imagej, shaped] {
            for (bits, format) in [(8, 1), (16, 1), (16, 2), (32, 1), (32, 3)] {
                for big in [false, true] {
                    let file = packed(5, bits, format, big, description, &bytes(bits, format, big));
                    std::fs::write(&path, &file).expect("written");
                    let mut stack = Stack::open(&path).expect("a volume");
                    assert_eq!(stack.shape(), [5, 3, 4], "{bits} bits");
                    for k in [4, 0, 2] {
                        assert_eq!(
                            stack.picture(k).expect("there"),
                            wanted[12 * k..12 * (k + 1)],
                            "{bits} bits, {k}"
                        );
                    }
                    // A file that ends early says how many pictures there are.
                    std::fs::write(&path, &file[..file.len() - 1]).expect("written");
                    let error = Stack::open(&path).expect_err("too short").to_string();
                    assert!(error.contains("says 5 pictures") && error.contains("hold 4 of them"), "{error}");
                }
            }
        }
        // A single picture needs no such thing.
        std::fs::write(&path, packed(1, 8, 1, false, imagej, &[7; 12])).expect("written");
        assert_eq!(Stack::open(&path).expect("a picture").shape(), [1, 3, 4]);
    }

    #[test]
    fn the_scale_stands_in_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.tif");
        let description =
            || decoder(&path).expect("a file").get_tag_ascii_string(Tag::ImageDescription).expect("text");
        write(&path, [1, 2], &[vec![0, 65535], vec![1, 2]], [-0.5, 1.5]).expect("written");
        let text = description();
        let value = |name: &str| -> f64 {
            text.lines().find_map(|line| line.strip_prefix(name)).expect("there").parse().expect("a number")
        };
        assert!(text.starts_with("ImageJ=") && !text.contains("images="), "{text}");
        assert_eq!((value("cf="), value("c0=")), (0.0, -0.5));
        approx::assert_abs_diff_eq!(value("c0=") + 65535.0 * value("c1="), 1.5, epsilon = 1e-12);
        write_floats(&path, [1, 2], &[vec![-0.25, 1e-9]], [0.0, 1.0]).expect("written");
        assert!(description().contains("max=1e0"));
        assert_eq!(Stack::open(&path).expect("a picture").picture(0).expect("there"), [-0.25, 1e-9]);
    }

    #[test]
    fn pixels_stand_for_what_the_scale_in_the_file_says() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.tif");
        let opened = || Stack::open(&path).expect("a volume");
        // Values that the library writes come back, to half a step.
        let step = 2.0 / 65535.0;
        write(&path, [1, 2], &[vec![0, 65535], vec![1, 2]], [-0.5, 1.5]).expect("written");
        assert_eq!(opened().picture(0).expect("there"), [-0.5, 1.5]);
        assert_eq!(opened().picture(1).expect("there"), [(step - 0.5) as f32, (2.0 * step - 0.5) as f32]);
        assert!(opened().remarks()[0].contains("say: -0.5 + "), "{:?}", opened().remarks());
        // ImageJ keeps 16 bits with signs as 16 bits without, and so in stacks of one directory.
        let signed = "ImageJ=1.54f\nimages=#\nslices=#\ncf=0\nc0=-32768.0\nc1=1.0\nvunit=gray value\n";
        let data: Vec<u8> = (0..60u16).flat_map(|k| (32768 - 20 + k).to_le_bytes()).collect();
        std::fs::write(&path, packed(5, 16, 1, false, signed, &data)).expect("written");
        let wanted: Vec<f32> = (48..60).map(|k| (k - 20) as f32).collect();
        assert_eq!(opened().picture(4).expect("there"), wanted);
        // Scales that change nothing, none, and such as are not ImageJ's; floats have none.
        for words in [
            "ImageJ=1.54f\ncf=0\nc0=0.0\nc1=1.0\n",
            "ImageJ=1.54f\ncf=20\n",
            "ImageJ=1.54f\nc0=4\n",
            "OptImageJ=1\ncf=0\nc0=4\nc1=2\n",
        ] {
            std::fs::write(&path, packed(1, 8, 1, false, words, &[7; 12])).expect("written");
            assert_eq!(opened().picture(0).expect("there"), [7.0; 12], "{words}");
            assert!(opened().remarks().is_empty(), "{words}");
        }
        let floats: Vec<u8> = [7.0f32; 12].iter().flat_map(|v| v.to_le_bytes()).collect();
        std::fs::write(&path, packed(1, 32, 3, false, "ImageJ=1.54f\ncf=0\nc0=4\nc1=2\n", &floats))
            .expect("written");
        assert_eq!(opened().picture(0).expect("there"), [7.0; 12]);
        // Curves are said, and so is what cannot be read.
        for words in ["ImageJ=1.54f\ncf=21\n", "ImageJ=1.54f\ncf=0\nc0=nan\nc1=1\n", "ImageJ=1.54f\ncf=2\nc0=1\n"] {
            std::fs::write(&path, packed(1, 8, 1, false, words, &[7; 12])).expect("written");
            assert_eq!(opened().picture(0).expect("there"), [7.0; 12]);
            assert!(opened().remarks()[0].contains("is not linear"), "{words}");
        }
        // Files with scales of their own.
        let several = folder.path().join("several");
        std::fs::create_dir(&several).expect("made");
        for (name, range) in [("0.tif", PLAIN), ("1.tif", [0.0, 655.35])] {
            write(&several.join(name), [1, 2], &[vec![0, 100]], range).expect("written");
        }
        let mut stack = Stack::open(&several).expect("a volume");
        assert_eq!((0..2).map(|k| stack.picture(k).expect("there")[1]).collect::<Vec<_>>(), [100.0, 1.0]);
        assert!(
            stack.remarks()[0].contains("1.tif: grey values are calibrated")
                && stack.remarks()[0].contains("other files differ")
        );
    }
}
