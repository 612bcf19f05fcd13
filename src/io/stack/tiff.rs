//! TIFF files as volumes, and volumes written as TIFF files.

use std::fs::File;
use std::io::BufReader;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use tiff::decoder::{Decoder, DecodingResult};
use tiff::{ColorType, TiffError};

use super::Source;
use crate::error::{Error, Result};
use crate::files::{file_error, write_atomically};
use crate::io::short_name;

/// Pictures of one file, or of several that hold one each.
pub(super) struct Pictures {
    files: Vec<PathBuf>,
    /// The file that is open, with the number of the file and of the picture within it that come next.
    open: Option<(usize, usize, Decoder<BufReader<File>>)>,
}

fn failed(path: &Path, error: TiffError) -> Error {
    let reason = match error {
        TiffError::IoError(error) if error.kind() != std::io::ErrorKind::UnexpectedEof => {
            return file_error(path, &error);
        }
        TiffError::IoError(_) => "TIFF: the file ends too early".into(),
        error => format!("TIFF: {error}"),
    };
    Error::Format { what: short_name(path), reason }
}

/// The decoder of a file at its first picture.
fn decoder(path: &Path) -> Result<Decoder<BufReader<File>>> {
    let file = File::open(path).map_err(|e| file_error(path, &e))?;
    Decoder::new(BufReader::new(file)).map_err(|e| failed(path, e))
}

/// Opens files: a single one may hold several pictures. Also says the bytes of all, if they are as large as the first one.
pub(super) fn open(files: Vec<PathBuf>) -> Result<([usize; 3], u64, Pictures)> {
    let first = &files[0];
    let bytes = std::fs::metadata(first).map_err(|e| file_error(first, &e))?.len();
    let mut there = decoder(first)?;
    let (columns, rows) = there.dimensions().map_err(|e| failed(first, e))?;
    let mut pictures = files.len();
    if files.len() == 1 {
        while there.more_images() {
            there.next_image().map_err(|e| failed(first, e))?;
            pictures += 1;
        }
    }
    let bytes = bytes.saturating_mul(files.len() as u64);
    Ok(([pictures, rows as usize, columns as usize], bytes, Pictures { files, open: None }))
}

impl Source for Pictures {
    fn picture(&mut self, k: usize) -> Result<Vec<f32>> {
        let (file, within) = if self.files.len() == 1 { (0, k) } else { (k, 0) };
        let path = &self.files[file];
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
            let reason = format!("its pixels are {kind:?}; a volume has one number for each");
            return Err(Error::Format { what: short_name(path), reason });
        }
        let picture = numbers(decoder.read_image().map_err(|e| failed(path, e))?);
        self.open = Some((file, place, decoder));
        picture.ok_or_else(|| Error::Format { what: short_name(path), reason: "it holds half floats".into() })
    }
}

/// The pixels as floats.
fn numbers(pixels: DecodingResult) -> Option<Vec<f32>> {
    use DecodingResult as D;
    Some(match pixels {
        D::U8(v) => v.into_iter().map(f32::from).collect(),
        D::U16(v) => v.into_iter().map(f32::from).collect(),
        D::U32(v) => v.into_iter().map(|v| v as f32).collect(),
        D::U64(v) => v.into_iter().map(|v| v as f32).collect(),
        D::I8(v) => v.into_iter().map(f32::from).collect(),
        D::I16(v) => v.into_iter().map(f32::from).collect(),
        D::I32(v) => v.into_iter().map(|v| v as f32).collect(),
        D::I64(v) => v.into_iter().map(|v| v as f32).collect(),
        D::F32(v) => v,
        D::F64(v) => v.into_iter().map(|v| v as f32).collect(),
        _ => return None,
    })
}

/// Writes pictures of `rows × columns` pixels of 16 bits as one file.
pub(crate) fn write(path: &Path, [rows, columns]: [usize; 2], pictures: &[Vec<u16>]) -> Result<()> {
    let mut bytes = Cursor::new(Vec::new());
    let encode = |bytes: &mut Cursor<Vec<u8>>| -> std::result::Result<(), TiffError> {
        let mut encoder = tiff::encoder::TiffEncoder::new(bytes)?;
        for picture in pictures {
            encoder.write_image::<tiff::encoder::colortype::Gray16>(columns as u32, rows as u32, picture)?;
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

    #[test]
    fn pictures_are_read_back_one_by_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.tif");
        let pictures: Vec<Vec<u16>> = (0..3).map(|k| (0..12).map(|i| 1000 * k + i).collect()).collect();
        write(&path, [3, 4], &pictures).expect("written");
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
            write(&several.join(name), [3, 4], &pictures[picture..=picture]).expect("written");
        }
        std::fs::write(several.join("notes.txt"), "no picture").expect("written");
        let mut stack = Stack::open(&several).expect("a volume");
        assert_eq!(stack.shape(), [3, 3, 4]);
        assert_eq!((0..3).map(|k| stack.picture(k).expect("there")[0]).collect::<Vec<_>>(), [0.0, 1000.0, 2000.0]);
        // A picture of another size is refused when it is read.
        write(&several.join("s2.TIFF"), [4, 4], &[vec![0; 16]]).expect("written");
        let mut stack = Stack::open(&several).expect("a volume");
        assert!(matches!(stack.picture(1), Err(Error::Shape { .. })));
        std::fs::write(&path, b"II*\0 and no more").expect("written");
        assert!(matches!(Stack::open(&path), Err(Error::Format { .. })));
    }
}
