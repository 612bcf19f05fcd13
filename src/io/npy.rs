//! NumPy's array files (`.npy`).
//!
//! Read: format versions 1.0, 2.0 and 3.0; floats of 4 and 8 bytes, integers of 1 to 8 bytes and booleans, in
//! either byte order; rows first or columns first; any number of dimensions. Written: version 1.0, little-endian,
//! rows first.

use std::io::{BufRead, Read, Write};
use std::path::Path;

use super::open::{TRUSTED_ELEMENTS, open, read_error, short_name};
use crate::error::{Error, Result, same_length};
use crate::files::write_atomically;
use crate::number::{Precision, Real, per_number};

/// First bytes of every file.
const MAGIC: [u8; 6] = *b"\x93NUMPY";

/// Longest header taken, in bytes. NumPy itself stops at 10000.
const LONGEST_HEADER: usize = 1 << 16;

/// Bytes converted at a time; a multiple of every element size.
pub(super) const CHUNK: usize = 1 << 16;

/// An array of numbers with its dimensions.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Array {
    /// Length of each dimension; empty for a single number.
    pub shape: Vec<usize>,
    /// The elements in C order: the last index runs fastest. As many as the product of `shape`.
    pub data: Vec<f64>,
}

impl Array {
    /// An array of one dimension.
    pub(super) fn of_vector(data: Vec<f64>) -> Self {
        Self { shape: vec![data.len()], data }
    }
}

/// Reads an array; the elements become `f64` in C order, whatever the order in the file.
///
/// 64-bit integers above 2⁵³ are rounded to nearest. NaN and infinity are taken as they are.
///
/// # Errors
/// [`Error::File`] when the file cannot be read. [`Error::Format`] when it is no `.npy` file, holds another type
/// of element (complex numbers, halves, text, records: refused by name), or fewer or more bytes than its header
/// says.
pub fn read(path: &Path) -> Result<Array> {
    read_from(open(path)?, &short_name(path))
}

/// Reads an array from a stream; `name` is what error messages call it.
///
/// # Errors
/// As [`read`].
pub fn read_from(mut reader: impl BufRead, name: &str) -> Result<Array> {
    let refuse = |reason: String| Error::Format { what: name.into(), reason };
    let failed = |e: &std::io::Error| read_error(name, name.into(), e);
    let header = read_header(&mut reader, name)?;
    let element = Element::from_name(&header.descr).map_err(refuse)?;

    let count = header
        .shape
        .iter()
        .try_fold(1usize, |n, &d| n.checked_mul(d))
        .filter(|n| n.checked_mul(element.bytes).is_some());
    let Some(count) = count else {
        return Err(refuse(format!("shape {:?} is too large", header.shape)));
    };

    let mut data = Vec::with_capacity(count.min(TRUSTED_ELEMENTS));
    let mut chunk = Vec::with_capacity(CHUNK.min(count * element.bytes));
    while data.len() < count {
        chunk.clear();
        let wanted = CHUNK.min((count - data.len()) * element.bytes);
        reader.by_ref().take(wanted as u64).read_to_end(&mut chunk).map_err(|e| failed(&e))?;
        element.decode(&chunk, &mut data);
        if chunk.len() < wanted {
            return Err(refuse(format!("the file ends after {} of {count} elements", data.len())));
        }
    }
    if !reader.fill_buf().map_err(|e| failed(&e))?.is_empty() {
        return Err(refuse(format!("more data follows the {count} elements")));
    }
    if header.fortran_order {
        data = rows_first(&header.shape, &data);
    }
    Ok(Array { shape: header.shape, data })
}

/// The shape that an array says it has, and how many elements that is; `None` if nobody can count so far.
pub(super) fn read_shape_from(mut reader: impl BufRead, name: &str) -> Result<(Vec<usize>, Option<usize>)> {
    let header = read_header(&mut reader, name)?;
    let count = header.shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
    Ok((header.shape, count))
}

/// Reads what stands before the elements.
pub(super) fn read_header(reader: &mut impl BufRead, name: &str) -> Result<Header> {
    let refuse = |reason: String| Error::Format { what: name.into(), reason };
    let failed = |e: &std::io::Error| read_error(name, name.into(), e);
    // Fixed lengths first: a short read is told from a failed one by the count.
    let mut take = |length: usize| -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        reader.by_ref().take(length as u64).read_to_end(&mut bytes).map_err(|e| failed(&e))?;
        if bytes.len() < length {
            return Err(refuse("the file ends within the header".into()));
        }
        Ok(bytes)
    };
    let start = take(8).map_err(|e| match e {
        Error::Format { what, .. } => Error::Format { what, reason: "shorter than any .npy file".into() },
        other => other,
    })?;
    if start[..6] != MAGIC {
        return Err(refuse("a .npy file starts with \\x93NUMPY".into()));
    }
    let length = match start[6] {
        1 => {
            let bytes = take(2)?;
            usize::from(u16::from_le_bytes([bytes[0], bytes[1]]))
        }
        2 | 3 => {
            let bytes = take(4)?;
            u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize
        }
        major => {
            return Err(refuse(format!(
                "format version {major}.{} is not supported, only 1.0, 2.0 and 3.0",
                start[7]
            )));
        }
    };
    if length > LONGEST_HEADER {
        return Err(refuse(format!("a header of {length} bytes exceeds the limit of {LONGEST_HEADER}")));
    }
    let text = take(length)?;
    Parser { rest: &text }.header().map_err(|reason| refuse(format!("header: {reason}")))
}

/// Reads a single text, as `save_npz` of SciPy writes the name of a format.
pub(super) fn read_text_from(mut reader: impl BufRead, name: &str) -> Result<String> {
    let refuse = |reason: String| Error::Format { what: name.into(), reason };
    let header = read_header(&mut reader, name)?;
    let kind = header.descr.trim_start_matches(['<', '>', '|', '=']);
    let (wide, length) = match kind.split_at_checked(1) {
        Some(("S", length)) => (false, length.parse::<usize>().ok()),
        Some(("U", length)) => (true, length.parse::<usize>().ok()),
        _ => (false, None),
    };
    let Some(length) = length.filter(|length| header.shape.is_empty() && *length <= LONGEST_HEADER) else {
        return Err(refuse(format!("expected a text, found elements of type '{}'", header.descr)));
    };
    let mut bytes = Vec::new();
    let wanted = if wide { 4 * length } else { length };
    reader.take(wanted as u64).read_to_end(&mut bytes).map_err(|e| read_error(name, name.into(), &e))?;
    if bytes.len() < wanted {
        return Err(refuse("the file ends within the text".into()));
    }
    // Four bytes a letter: of ASCII, three of them are 0. Padding is 0 as well.
    bytes.retain(|byte| *byte != 0);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

per_number! {
    /// Writes `data`, in C order, as an array of dimensions `shape`: version 1.0, `<f4` or `<f8` after `T`, header
    /// padded to a multiple of 64 bytes. The same data give the same bytes; the file appears complete or not at all.
    ///
    /// # Errors
    /// [`Error::Shape`] unless `data` has as many elements as the product of `shape`, [`Error::Format`] when `shape`
    /// has too many dimensions for a header of version 1.0, [`Error::File`] when the file cannot be written.
    pub fn write<T>(path: &Path, shape: &[usize], data: &[T]) -> Result<()> = write_here;
}

fn write_here<T: Real>(path: &Path, shape: &[usize], data: &[T]) -> Result<()> {
    write_array(path, descr::<T>(), shape, data.len(), |out| write_numbers(out, data))
}

/// Word of a header for numbers of type `T`.
pub(super) fn descr<T: Real>() -> &'static str {
    match T::PRECISION {
        Precision::Single => "<f4",
        Precision::Double => "<f8",
    }
}

/// [`write()`] of bytes, `|u1`: classes of pixels, masks.
///
/// # Errors
/// As [`write()`].
pub fn write_bytes(path: &Path, shape: &[usize], data: &[u8]) -> Result<()> {
    write_array(path, "|u1", shape, data.len(), |out| out.write_all(data))
}

/// Writes an array of `len` elements of type `descr`.
fn write_array(
    path: &Path,
    descr: &str,
    shape: &[usize],
    len: usize,
    elements: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<()> {
    let count = shape.iter().fold(1usize, |n, &d| n.saturating_mul(d));
    same_length("elements against the shape", count, len)?;
    let Some(header) = header_bytes(descr, shape) else {
        return Err(Error::Format {
            what: short_name(path),
            reason: format!("{} dimensions do not fit the header", shape.len()),
        });
    };
    write_atomically(path, |out| {
        out.write_all(&header)?;
        elements(out)
    })
}

/// Bytes before the elements in a file of version 1.0; none if they do not fit.
pub(super) fn header_bytes(descr: &str, shape: &[usize]) -> Option<Vec<u8>> {
    let dimensions = match shape {
        // Python's way to tell a tuple of one from a number in brackets.
        [only] => format!("{only},"),
        _ => {
            let numbers: Vec<String> = shape.iter().map(usize::to_string).collect();
            numbers.join(", ")
        }
    };
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({dimensions}), }}");
    let before = MAGIC.len() + 4;
    let padded = (before + text.len() + 1).next_multiple_of(64) - before;
    let mut header = MAGIC.to_vec();
    header.extend([1, 0]);
    header.extend(u16::try_from(padded).ok()?.to_le_bytes());
    header.extend(text.bytes());
    header.extend(std::iter::repeat_n(b' ', padded - 1 - text.len()));
    header.push(b'\n');
    Some(header)
}

/// Writes numbers as the elements of an array.
pub(super) fn write_numbers<T: Real>(out: &mut dyn Write, data: &[T]) -> std::io::Result<()> {
    let mut bytes = Vec::with_capacity(CHUNK);
    for part in data.chunks(CHUNK / 8) {
        bytes.clear();
        for value in part {
            match T::PRECISION {
                // Exact: the value was an f32 before.
                Precision::Single => bytes.extend((value.to_f64() as f32).to_le_bytes()),
                Precision::Double => bytes.extend(value.to_f64().to_le_bytes()),
            }
        }
        out.write_all(&bytes)?;
    }
    Ok(())
}

/// Reorders elements stored columns first (the first index runs fastest) to rows first.
fn rows_first(shape: &[usize], data: &[f64]) -> Vec<f64> {
    let mut strides = Vec::with_capacity(shape.len());
    let mut stride = 1;
    for dimension in shape {
        strides.push(stride);
        stride *= dimension;
    }
    let mut index = vec![0usize; shape.len()];
    let mut from = 0;
    let mut ordered = Vec::with_capacity(data.len());
    for _ in 0..data.len() {
        ordered.push(data[from]);
        // Count up from the last index, carrying to the ones before it.
        for d in (0..shape.len()).rev() {
            index[d] += 1;
            from += strides[d];
            if index[d] < shape[d] {
                break;
            }
            from -= index[d] * strides[d];
            index[d] = 0;
        }
    }
    ordered
}

/// Storage of one element.
#[derive(Clone, Copy)]
pub(super) struct Element {
    kind: Kind,
    pub(super) bytes: usize,
    big_endian: bool,
}

#[derive(Clone, Copy)]
enum Kind {
    Float,
    Signed,
    Unsigned,
    Boolean,
}

impl Element {
    /// Parses the `descr` of a header, such as `<f8`.
    pub(super) fn from_name(descr: &str) -> std::result::Result<Self, String> {
        let refuse =
            || Err(format!("elements of type '{descr}' are not supported, only f4, f8, i1 to i8, u1 to u8 and b1"));
        let (order, kind) = match descr.as_bytes() {
            [order @ (b'<' | b'>' | b'|' | b'='), kind @ ..] => (*order, kind),
            kind => (b'=', kind),
        };
        let (kind, bytes) = match kind {
            b"f4" => (Kind::Float, 4),
            b"f8" => (Kind::Float, 8),
            b"i1" => (Kind::Signed, 1),
            b"i2" => (Kind::Signed, 2),
            b"i4" => (Kind::Signed, 4),
            b"i8" => (Kind::Signed, 8),
            b"u1" => (Kind::Unsigned, 1),
            b"u2" => (Kind::Unsigned, 2),
            b"u4" => (Kind::Unsigned, 4),
            b"u8" => (Kind::Unsigned, 8),
            b"b1" => (Kind::Boolean, 1),
            _ => return refuse(),
        };
        let big_endian = match order {
            b'>' => true,
            b'<' => false,
            b'=' => cfg!(target_endian = "big"),
            // No order is right only if there is none.
            _ if bytes == 1 => false,
            _ => return refuse(),
        };
        Ok(Self { kind, bytes, big_endian })
    }

    /// Appends the whole elements of `chunk`.
    pub(super) fn decode(self, chunk: &[u8], data: &mut Vec<f64>) {
        macro_rules! each {
            ($type:ty) => {
                data.extend(chunk.chunks_exact(size_of::<$type>()).map(|element| {
                    let mut bytes = [0; size_of::<$type>()];
                    bytes.copy_from_slice(element);
                    (if self.big_endian { <$type>::from_be_bytes(bytes) } else { <$type>::from_le_bytes(bytes) })
                        as f64
                }))
            };
        }
        match (self.kind, self.bytes) {
            (Kind::Float, 4) => each!(f32),
            (Kind::Float, _) => each!(f64),
            (Kind::Signed, 1) => each!(i8),
            (Kind::Signed, 2) => each!(i16),
            (Kind::Signed, 4) => each!(i32),
            (Kind::Signed, _) => each!(i64),
            (Kind::Unsigned, 1) => each!(u8),
            (Kind::Unsigned, 2) => each!(u16),
            (Kind::Unsigned, 4) => each!(u32),
            (Kind::Unsigned, _) => each!(u64),
            (Kind::Boolean, _) => {
                data.extend(chunk.iter().map(|b| f64::from(u8::from(*b != 0))));
            }
        }
    }
}

/// Content of a header.
pub(super) struct Header {
    pub(super) descr: String,
    pub(super) fortran_order: bool,
    pub(super) shape: Vec<usize>,
}

/// Reads the header, a Python dictionary of three known keys in any order.
struct Parser<'a> {
    rest: &'a [u8],
}

impl Parser<'_> {
    /// The whole dictionary, with nothing but space after it.
    fn header(mut self) -> std::result::Result<Header, String> {
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        self.expect(b'{')?;
        while !self.accept(b'}') {
            let key = self.string()?;
            self.expect(b':')?;
            match key.as_str() {
                "descr" if self.peek() == Some(b'[') => {
                    return Err("records are not supported, only plain numbers".into());
                }
                "descr" => descr = Some(self.string()?),
                "fortran_order" => fortran_order = Some(self.boolean()?),
                "shape" => shape = Some(self.tuple()?),
                other => return Err(format!("unknown key '{other}'")),
            }
            if !self.accept(b',') {
                self.expect(b'}')?;
                break;
            }
        }
        if self.peek().is_some() {
            return Err("more text follows the dictionary".into());
        }
        match (descr, fortran_order, shape) {
            (Some(descr), Some(fortran_order), Some(shape)) => Ok(Header { descr, fortran_order, shape }),
            _ => Err("one of descr, fortran_order and shape is missing".into()),
        }
    }

    /// The next byte that is not space, without taking it.
    fn peek(&mut self) -> Option<u8> {
        self.rest = self.rest.trim_ascii_start();
        self.rest.first().copied()
    }

    /// Takes `byte` if it comes next.
    fn accept(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.rest = &self.rest[1..];
        }
        found
    }

    /// Takes `byte` or fails.
    fn expect(&mut self, byte: u8) -> std::result::Result<(), String> {
        if self.accept(byte) { Ok(()) } else { Err(format!("expected '{}'", char::from(byte))) }
    }

    /// Takes the longest start of what is left whose bytes satisfy `is_part`.
    fn take_while(&mut self, is_part: impl Fn(u8) -> bool) -> &[u8] {
        let end = self.rest.iter().position(|b| !is_part(*b));
        let (taken, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        taken
    }

    /// Text in single or double quotes; none of the known words needs an escape.
    fn string(&mut self) -> std::result::Result<String, String> {
        let quote = match self.peek() {
            Some(quote @ (b'\'' | b'"')) => quote,
            _ => return Err("expected a string".into()),
        };
        self.rest = &self.rest[1..];
        let text = String::from_utf8_lossy(self.take_while(|b| b != quote)).into_owned();
        if self.rest.is_empty() {
            return Err("a string does not end".into());
        }
        self.rest = &self.rest[1..];
        Ok(text)
    }

    /// `True` or `False`.
    fn boolean(&mut self) -> std::result::Result<bool, String> {
        self.peek();
        match self.take_while(|b| b.is_ascii_alphanumeric()) {
            b"True" => Ok(true),
            b"False" => Ok(false),
            _ => Err("fortran_order is neither True nor False".into()),
        }
    }

    /// Whole numbers in brackets.
    fn tuple(&mut self) -> std::result::Result<Vec<usize>, String> {
        let mut numbers = Vec::new();
        self.expect(b'(')?;
        while !self.accept(b')') {
            let digits = self.take_while(|b| b.is_ascii_digit());
            let number = std::str::from_utf8(digits).ok().and_then(|d| d.parse().ok());
            numbers.push(number.ok_or("shape holds something other than lengths")?);
            // Python 2 wrote long integers like this.
            self.accept(b'L');
            if !self.accept(b',') {
                self.expect(b')')?;
                break;
            }
        }
        Ok(numbers)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

    use super::*;
    use proptest::prelude::*;

    /// A file with this version, dictionary and data.
    fn file(major: u8, header: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([major, 0]);
        if major == 1 {
            bytes.extend((header.len() as u16).to_le_bytes());
        } else {
            bytes.extend((header.len() as u32).to_le_bytes());
        }
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    fn dictionary(descr: &str, fortran: &str, shape: &str) -> String {
        format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}   \n")
    }

    fn parse(bytes: &[u8]) -> Result<Array> {
        read_from(bytes, "a.npy")
    }

    fn refused(bytes: &[u8], words: &str) {
        match parse(bytes) {
            Err(Error::Format { what, reason }) => {
                assert_eq!(what, "a.npy");
                assert!(reason.contains(words), "{reason}");
            }
            other => panic!("{words}: {other:?}"),
        }
    }

    #[test]
    fn every_type_in_both_orders() {
        macro_rules! check {
            ($name:literal, $type:ty, $values:expr) => {
                let values: [$type; 3] = $values;
                let expected: Vec<f64> = values.iter().map(|v| *v as f64).collect();
                let little: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
                let big: Vec<u8> = values.iter().flat_map(|v| v.to_be_bytes()).collect();
                for (order, bytes) in [("<", little), (">", big)] {
                    let descr = format!("{order}{}", $name);
                    let array = parse(&file(1, &dictionary(&descr, "False", "(3,)"), &bytes));
                    assert_eq!(array.expect($name).data, expected, "{descr}");
                }
            };
        }
        check!("f4", f32, [1.5, -0.1, f32::MAX]);
        check!("f8", f64, [1.5, -0.1, f64::INFINITY]);
        check!("i1", i8, [-128, 0, 127]);
        check!("i2", i16, [i16::MIN, 258, i16::MAX]);
        check!("i4", i32, [i32::MIN, 65538, i32::MAX]);
        check!("i8", i64, [i64::MIN, 1 << 40, i64::MAX]);
        check!("u1", u8, [0, 128, 255]);
        check!("u2", u16, [0, 258, u16::MAX]);
        check!("u4", u32, [0, 65538, u32::MAX]);
        check!("u8", u64, [0, 1 << 40, u64::MAX]);
        let booleans = parse(&file(1, &dictionary("|b1", "False", "(3,)"), &[0, 1, 2]));
        assert_eq!(booleans.expect("b1").data, [0.0, 1.0, 1.0]);
    }

    #[test]
    fn every_version_and_every_way_to_write_a_header() {
        for major in 1..=3 {
            let array = parse(&file(major, &dictionary("|u1", "False", "(1, 2)"), &[3, 4]));
            let array = array.expect("valid");
            assert_eq!((array.shape, array.data), (vec![1, 2], vec![3.0, 4.0]));
        }
        for header in [
            "{\"shape\":(2L,),\"descr\":\"|u1\",\"fortran_order\":True}",
            "  { 'fortran_order' : False , 'descr' : 'u1' , 'shape' : ( 2 ) } ",
        ] {
            assert_eq!(parse(&file(1, header, &[3, 4])).expect(header).data, [3.0, 4.0]);
        }
        let scalar = parse(&file(1, &dictionary("|u1", "False", "()"), &[7])).expect("valid");
        assert_eq!((scalar.shape, scalar.data), (vec![], vec![7.0]));
        let empty = parse(&file(1, &dictionary("<f8", "True", "(0, 5)"), &[])).expect("valid");
        assert_eq!((empty.shape, empty.data), (vec![0, 5], vec![]));
    }

    #[test]
    fn columns_first_becomes_rows_first() {
        let bytes: Vec<u8> = (0..6).collect();
        let array = parse(&file(1, &dictionary("|u1", "True", "(2, 3)"), &bytes)).expect("valid");
        assert_eq!(array.data, [0.0, 2.0, 4.0, 1.0, 3.0, 5.0]);
        let bytes: Vec<u8> = (0..24).collect();
        let array = parse(&file(1, &dictionary("|u1", "True", "(2, 3, 4)"), &bytes)).expect("valid");
        for i in 0..2 {
            for j in 0..3 {
                for k in 0..4 {
                    assert_eq!(array.data[(i * 3 + j) * 4 + k], (i + 2 * j + 6 * k) as f64);
                }
            }
        }
    }

    #[test]
    fn files_that_are_something_else_are_refused() {
        refused(b"", "shorter than any");
        refused(b"\x93NUMP", "shorter than any");
        refused(b"PK\x03\x04 zip archive", "\\x93NUMPY");
        refused(&file(4, "", &[]), "version 4.0");
        refused(&file(1, &dictionary("<f8", "False", "(1,)"), &[])[..40], "within the header");
        refused(&file(1, &dictionary("<f8", "False", "(1,)"), &[])[..9], "within the header");
        let mut long = MAGIC.to_vec();
        long.extend([2, 0, 255, 255, 255, 255]);
        refused(&long, "exceeds the limit");
    }

    #[test]
    fn headers_that_make_no_sense_are_refused() {
        for (header, words) in [
            ("", "expected '{'"),
            ("{}", "is missing"),
            ("{'descr': '<f8', 'shape': (1,)}", "is missing"),
            ("{'descr': '<f8'", "expected '}'"),
            ("{'descr': '<f8", "does not end"),
            ("{descr: '<f8'}", "expected a string"),
            ("{'descr' '<f8'}", "expected ':'"),
            ("{'other': 1}", "unknown key 'other'"),
            ("{'descr': [('a', '<f8')]}", "records"),
            ("{'descr': 3}", "expected a string"),
            ("{'fortran_order': 0}", "neither True nor False"),
            ("{'shape': 3}", "expected '('"),
            ("{'shape': (-3,)}", "other than lengths"),
            ("{'shape': (3 4)}", "expected ')'"),
            ("{'shape': (99999999999999999999,)}", "other than lengths"),
        ] {
            refused(&file(1, header, &[0; 8]), words);
        }
        let good = dictionary("<f8", "False", "(1,)");
        refused(&file(1, &format!("{good}x"), &[0; 8]), "follows the dictionary");
        for descr in ["<f2", "<c16", "|O", "<U3", "<f", "", "|f8", "<M8[ns]"] {
            let bytes = file(1, &dictionary(descr, "False", "(1,)"), &[0; 16]);
            refused(&bytes, &format!("'{descr}'"));
        }
    }

    #[test]
    fn data_of_another_length_is_refused() {
        let header = dictionary("<f4", "False", "(2, 2)");
        refused(&file(1, &header, &[0; 15]), "ends after 3 of 4");
        refused(&file(1, &header, &[0; 17]), "more data follows");
        let large = dictionary("<f8", "True", "(1000000000, 1000000)");
        refused(&file(1, &large, &[0; 16]), "ends after 2 of");
        let overflow = dictionary("<f8", "True", "(4294967296, 4294967296)");
        refused(&file(1, &overflow, &[0; 16]), "too large");
        let bytes_overflow = dictionary("<f8", "True", "(4611686018427387904,)");
        refused(&file(1, &bytes_overflow, &[0; 16]), "too large");
    }

    #[test]
    fn arrays_longer_than_a_chunk() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("a.npy");
        let data: Vec<f32> = (0..50_000).map(|i| i as f32 * 0.5).collect();
        write(&path, &[500, 100], &data).expect("writable");
        let array = read(&path).expect("just written");
        assert_eq!(array.shape, [500, 100]);
        assert!(array.data.iter().zip(&data).all(|(a, b)| *a == f64::from(*b)));
        assert_eq!(array.data.len(), data.len());
    }

    #[test]
    fn written_bytes_are_what_numpy_writes() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("a.npy");
        write(&path, &[2], &[1.0f32, -2.0]).expect("writable");
        let bytes = std::fs::read(&path).expect("file");
        let mut expected = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
        expected.extend(b"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }");
        expected.resize(127, b' ');
        expected.push(b'\n');
        expected.extend([0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0]);
        assert_eq!(bytes, expected);
        for (shape, text) in [(&[][..], "()"), (&[1, 1], "(1, 1)")] {
            write(&path, shape, &[1.0f64]).expect("writable");
            let bytes = std::fs::read(&path).expect("file");
            assert_eq!((bytes.len() - 8) % 64, 0);
            let wanted = format!("'descr': '<f8', 'fortran_order': False, 'shape': {text}, }}");
            assert!(String::from_utf8_lossy(&bytes).contains(&wanted));
        }
    }

    #[test]
    fn shapes_that_do_not_fit_are_not_written() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("a.npy");
        for shape in [&[3][..], &[], &[usize::MAX, usize::MAX]] {
            let written = write(&path, shape, &[1.0, 2.0]);
            assert!(matches!(written, Err(Error::Shape { found: 2, .. })));
        }
        let written = write(&path, &vec![1; 40_000], &[1.0]);
        assert!(matches!(written, Err(Error::Format { .. })));
        assert!(!path.exists());
        assert!(matches!(read(&path), Err(Error::File { .. })));
    }

    proptest! {
        #[test]
        fn arrays_survive_a_file(
            shape in prop::collection::vec(0usize..5, 0..5),
            seed in any::<u64>(),
        ) {
            let folder = tempfile::tempdir().expect("folder");
            let path = folder.path().join("a.npy");
            let count: usize = shape.iter().product();
            let bits = |i: usize| seed.wrapping_mul(i as u64 * 2 + 1).rotate_left(17);
            let double: Vec<f64> = (0..count).map(|i| f64::from_bits(bits(i))).collect();
            write(&path, &shape, &double).expect("writable");
            let back = read(&path).expect("just written");
            prop_assert_eq!(&back.shape, &shape);
            let same = back.data.iter().zip(&double).all(|(a, b)| a.to_bits() == b.to_bits());
            prop_assert!(same && back.data.len() == count);
            let single: Vec<f32> = double.iter().map(|v| *v as f32).collect();
            write(&path, &shape, &single).expect("writable");
            let back = read(&path).expect("just written");
            let same = back.data.iter().zip(&single).all(|(a, b)| {
                (*a as f32).to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
            });
            prop_assert!(same && back.data.len() == count);
        }

        #[test]
        fn any_bytes_are_read_or_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            major in 0u8..5,
        ) {
            let _ = parse(&bytes);
            let _ = parse(&file(major, &String::from_utf8_lossy(&bytes), &[0; 9]));
        }

        #[test]
        fn damaged_files_are_read_or_refused(
            version in 1u8..4,
            fortran in any::<bool>(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
            digits in prop::collection::vec((any::<prop::sample::Index>(), b'0'..=b'9'), 0..4),
            end in any::<prop::sample::Index>(),
            cut in any::<bool>(),
        ) {
            let order = if fortran { "True" } else { "False" };
            let mut bytes = file(version, &dictionary("<f4", order, "(3, 2, 2)"), &[1; 48]);
            for (at, byte) in changes.into_iter().chain(digits) {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            if cut {
                bytes.truncate(end.index(bytes.len()));
            }
            let _ = parse(&bytes);
        }
    }
}
