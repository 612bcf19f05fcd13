//! Arrays of NumPy as volumes.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

use super::source::{Source, volume};
use crate::error::{Error, Result};
use crate::files::file_error;
use crate::io::npy::{CHUNK, Element, read_header};
use crate::io::open::{read_error, short_name};

/// Pictures of a volume, read as they are asked for.
pub(super) struct Pictures {
    file: File,
    name: String,
    element: Element,
    /// Bytes before the first element.
    begin: u64,
    /// Elements of a picture.
    size: usize,
}

impl Pictures {
    /// Opens a file, with its shape; none if it is to be read at once: a pipe, compressed, columns first, no volume or of another length than
    /// its header says.
    pub(super) fn open(path: &Path) -> Result<Option<([usize; 3], Self)>> {
        let name = short_name(path);
        let failed = |e: std::io::Error| file_error(path, &e);
        // A pipe is opened once, by the one who reads it.
        if !std::fs::metadata(path).map_err(failed)?.is_file() {
            return Ok(None);
        }
        let file = File::open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        let mut reader = BufReader::new(&file);
        if reader.fill_buf().map_err(failed)?.starts_with(&[0x1f, 0x8b]) {
            return Ok(None);
        }
        let header = read_header(&mut reader, &name)?;
        let begin = reader.stream_position().map_err(failed)?;
        let refuse = |reason| Error::Format { what: name.clone(), reason };
        let element = Element::from_name(&header.descr).map_err(refuse)?;
        let Some(shape) = volume(&header.shape).filter(|_| !header.fortran_order) else { return Ok(None) };
        let Some(size) = shape[1].checked_mul(shape[2]) else { return Ok(None) };
        let bytes = [shape[0], size, element.bytes].iter().try_fold(1u64, |all, n| all.checked_mul(*n as u64));
        if bytes.and_then(|bytes| bytes.checked_add(begin)) != Some(length) {
            return Ok(None);
        }
        Ok(Some((shape, Self { file, name, element, begin, size })))
    }
}

impl Source for Pictures {
    fn picture(&mut self, k: usize) -> Result<Vec<f32>> {
        let Self { file, name, element, begin, size } = self;
        let failed = |e: std::io::Error| match e.kind() {
            ErrorKind::UnexpectedEof => {
                Error::Format { what: name.clone(), reason: format!("the file ends within picture {k}") }
            }
            _ => read_error(name, name.clone(), &e),
        };
        let place = *begin + k as u64 * *size as u64 * element.bytes as u64;
        file.seek(SeekFrom::Start(place)).map_err(failed)?;
        let mut data = Vec::with_capacity(*size);
        let mut chunk = vec![0; CHUNK.min(*size * element.bytes)];
        while data.len() < *size {
            let wanted = CHUNK.min((*size - data.len()) * element.bytes);
            file.read_exact(&mut chunk[..wanted]).map_err(failed)?;
            element.decode(&chunk[..wanted], &mut data);
        }
        Ok(data.into_iter().map(|v| v as f32).collect())
    }
}
