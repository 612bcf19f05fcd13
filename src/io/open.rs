//! Files as readers meet them: opened, decompressed, named in errors.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use crate::error::{Error, Result};
use crate::files::{BUFFER, file_error};

/// Called now and then while a matrix is read, with the number of entries read so far and of all.
pub type Watch<'a> = dyn FnMut(u64, u64) + 'a;

/// Mark with which some editors begin a text in UTF-8.
pub(crate) const MARK: &[u8] = b"\xef\xbb\xbf";
/// Marks of text in UTF-16, by the order of its bytes.
pub(crate) const UTF16: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];

/// Most elements to make room for on the word of a header; beyond it, vectors grow as data arrives.
pub(crate) const TRUSTED_ELEMENTS: usize = 1 << 20;

/// Opens a file for reading; one that starts with the two bytes of gzip is decompressed on the way.
///
/// # Errors
/// [`Error::File`] when it cannot be opened or its first bytes cannot be read.
pub(crate) fn open(path: &Path) -> Result<Box<dyn BufRead + Send>> {
    let file = File::open(path).map_err(|e| file_error(path, &e))?;
    let mut start = Vec::with_capacity(2);
    (&file).take(2).read_to_end(&mut start).map_err(|e| file_error(path, &e))?;
    let compressed = start == [0x1f, 0x8b];
    // Chained instead of rewound, so that pipes can be read too.
    let whole = BufReader::with_capacity(BUFFER, Cursor::new(start).chain(file));
    Ok(if compressed {
        Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(whole)))
    } else {
        Box::new(whole)
    })
}

/// The name by which error messages call a file: its last component.
pub(crate) fn short_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// The error of a read that failed in the middle of `name`: damaged compressed data is a fault of the content,
/// everything else one of the file. `what` names the content, with the line if there is one.
pub(crate) fn read_error(name: &str, what: String, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof => {
            Error::Format { what, reason: format!("compressed data is damaged or cut off ({error})") }
        }
        _ => file_error(Path::new(name), error),
    }
}
