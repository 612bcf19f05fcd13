//! MATLAB's level 5 files (`.mat` saved with `-v6` or `-v7`): what tomography scans are published in.
//!
//! Read: real numeric and logical arrays of every class and storage type, text, and structs of one element, nested
//! or not; compressed or plain, in either byte order. Everything else (cells, struct arrays, objects, sparse and
//! complex arrays) is skipped and shows up as [`Value::Other`]. MATLAB 7.3 files are HDF5 and are refused.

use std::io::{BufRead, Read};
use std::path::Path;

use flate2::bufread::ZlibDecoder;

use super::open::{open, read_error, short_name};
use crate::error::{Error, Result};

/// Largest element taken, in bytes. MATLAB itself saves no larger variable in this format.
const LARGEST_ELEMENT: u32 = 1 << 31;

/// Structs inside structs, at most.
const DEEPEST: usize = 32;

/// Types of data elements, as numbered by the format.
mod storage {
    pub(super) const INT8: u32 = 1;
    pub(super) const UINT8: u32 = 2;
    pub(super) const INT16: u32 = 3;
    pub(super) const UINT16: u32 = 4;
    pub(super) const INT32: u32 = 5;
    pub(super) const UINT32: u32 = 6;
    pub(super) const SINGLE: u32 = 7;
    pub(super) const DOUBLE: u32 = 9;
    pub(super) const INT64: u32 = 12;
    pub(super) const UINT64: u32 = 13;
    pub(super) const MATRIX: u32 = 14;
    pub(super) const COMPRESSED: u32 = 15;
    pub(super) const UTF8: u32 = 16;
    pub(super) const UTF16: u32 = 17;
    pub(super) const UTF32: u32 = 18;
}

/// The content of a variable or of a struct's field.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Real numbers or truth values of any class.
    Numeric {
        /// Length of each dimension, at least two in files that MATLAB wrote.
        shape: Vec<usize>,
        /// The elements as in the file: the first index runs fastest. As many as the product of `shape`.
        data: Vec<f64>,
    },
    /// Text; the lines of a text array are separated by line feeds and have no spaces at their end.
    Text(
        /// The characters.
        String,
    ),
    /// A struct of one element.
    Struct(
        /// Names and contents of the fields, in the order of the file.
        Vec<(String, Value)>,
    ),
    /// Something that is skipped.
    Other(
        /// Name of its kind, such as `cell` or `complex`.
        &'static str,
    ),
}

impl Value {
    /// The field `name` of a struct; none if there is no such field, or this is no struct.
    pub fn field(&self, name: &str) -> Option<&Value> {
        match self {
            Self::Struct(fields) => fields.iter().find(|f| f.0 == name).map(|f| &f.1),
            _ => None,
        }
    }

    /// The number, if this is a numeric array of exactly one.
    pub fn scalar(&self) -> Option<f64> {
        match self {
            Self::Numeric { data, .. } => match data[..] {
                [number] => Some(number),
                _ => None,
            },
            _ => None,
        }
    }

    /// Rows, columns and the elements in row-major order (element `(i, j)` at `i * columns + j`), if this is a
    /// numeric array of two dimensions.
    pub fn matrix(&self) -> Option<(usize, usize, Vec<f64>)> {
        let Self::Numeric { shape, data } = self else {
            return None;
        };
        let [rows, cols] = shape[..] else {
            return None;
        };
        if rows.checked_mul(cols) != Some(data.len()) {
            return None;
        }
        let mut ordered = Vec::with_capacity(data.len());
        // Without columns there may be any number of rows.
        for i in 0..rows.min(data.len()) {
            ordered.extend((0..cols).map(|j| data[i + j * rows]));
        }
        Some((rows, cols, ordered))
    }

    /// The characters, if this is text.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// Reads all variables of a file, with their names, in the order of the file.
///
/// Numbers become `f64`; 64-bit integers above 2⁵³ are rounded to nearest.
///
/// # Errors
/// [`Error::File`] when the file cannot be read. [`Error::Format`] when it is no level 5 file (version 7.3 and
/// level 4 are named), is cut off or damaged, or nests structs more than 32 deep; `what` holds the file's name
/// and, past the header, the variable's number from 1.
pub fn read(path: &Path) -> Result<Vec<(String, Value)>> {
    read_from(open(path)?, &short_name(path))
}

/// Reads all variables from a stream; `name` is what error messages call it.
///
/// # Errors
/// As [`read`].
pub fn read_from(mut reader: impl BufRead, name: &str) -> Result<Vec<(String, Value)>> {
    let big_endian = read_header(&mut reader, name)?;
    let mut variables = Vec::new();
    let mut number = 0;
    loop {
        number += 1;
        let what = || format!("{name} variable {number}");
        let refuse = |reason: String| Error::Format { what: what(), reason };
        let mut get = |length: u64| -> Result<Vec<u8>> {
            // The buffer grows with what is there, not with what the tag claims.
            let mut bytes = Vec::new();
            reader.by_ref().take(length).read_to_end(&mut bytes).map_err(|e| read_error(name, what(), &e))?;
            Ok(bytes)
        };
        let tag = get(8)?;
        if tag.is_empty() {
            return Ok(variables);
        }
        let Some((kind, length)) = read_tag(&tag, big_endian) else {
            return Err(refuse("the file ends within a tag".into()));
        };
        check_length(length).map_err(refuse)?;
        let stored = get(u64::from(length))?;
        if stored.len() < length as usize {
            return Err(refuse(format!("the file ends after {} of {length} bytes", stored.len())));
        }
        let parsed = match kind {
            storage::MATRIX => {
                // Missing at the end of some files, where it does not matter.
                get(u64::from(padding(length)))?;
                read_array(&stored, big_endian, 0)
            }
            storage::COMPRESSED => {
                decompress(&stored, big_endian).and_then(|array| read_array(&array, big_endian, 0))
            }
            other => Err(format!("expected an array, found an element of type {other}")),
        };
        let (variable, value) = parsed.map_err(refuse)?;
        // Without a name it is the hidden store of objects and functions, no variable.
        if !variable.is_empty() {
            variables.push((variable, value));
        }
    }
}

/// Checks the first 128 bytes; true if the numbers that follow are big-endian.
fn read_header(reader: &mut impl BufRead, name: &str) -> Result<bool> {
    const HEADER: usize = 128;
    let refuse = |reason: &str| Err(Error::Format { what: name.into(), reason: reason.into() });
    const HDF5: &str = "MATLAB 7.3 files are HDF5: save with -v7";
    let mut header = Vec::new();
    reader.by_ref().take(HEADER as u64).read_to_end(&mut header).map_err(|e| read_error(name, name.into(), &e))?;
    if header.starts_with(b"\x89HDF\r\n\x1a\n") || header.starts_with(b"MATLAB 7.3") {
        return refuse(HDF5);
    }
    let big_endian = match header.get(126..) {
        Some(b"IM") => false,
        Some(b"MI") => true,
        // Level 4 starts with small numbers instead of text, and such a file may be shorter than this header.
        _ if header.iter().take(4).any(|b| *b == 0) => {
            return refuse("this may be a MATLAB 4 file, which is not supported: save with -v7");
        }
        Some(_) if header.len() == HEADER => {
            return refuse("the mark IM or MI of a MATLAB 5 file is missing");
        }
        _ => return refuse("shorter than the header of a MATLAB 5 file"),
    };
    let version = if big_endian { [header[124], header[125]] } else { [header[125], header[124]] };
    match version {
        [1, _] => Ok(big_endian),
        [2, _] => refuse(HDF5),
        _ => refuse("the version is not that of a MATLAB 5 file"),
    }
}

/// Type and length of an element with a full tag.
fn read_tag(bytes: &[u8], big_endian: bool) -> Option<(u32, u32)> {
    let kind = word(bytes, big_endian)?;
    let length = word(bytes.get(4..)?, big_endian)?;
    Some((kind, length))
}

/// The first four bytes as a number.
fn word(bytes: &[u8], big_endian: bool) -> Option<u32> {
    let first = *bytes.first_chunk::<4>()?;
    Some(if big_endian { u32::from_be_bytes(first) } else { u32::from_le_bytes(first) })
}

/// Bytes between an element and the next multiple of eight.
fn padding(length: u32) -> u32 {
    length.wrapping_neg() % 8
}

/// Refuses lengths that no file has.
fn check_length(length: u32) -> std::result::Result<(), String> {
    if length > LARGEST_ELEMENT {
        return Err(format!("an element of {length} bytes exceeds the limit of {LARGEST_ELEMENT}"));
    }
    Ok(())
}

/// Unpacks a compressed element: the array it holds, without its tag.
fn decompress(stored: &[u8], big_endian: bool) -> std::result::Result<Vec<u8>, String> {
    let damaged = |e: std::io::Error| format!("compressed data is damaged or cut off ({e})");
    let mut decoder = ZlibDecoder::new(stored);
    let mut get = |length: u64| -> std::result::Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        decoder.by_ref().take(length).read_to_end(&mut bytes).map_err(damaged)?;
        Ok(bytes)
    };
    let Some((kind, length)) = read_tag(&get(8)?, big_endian) else {
        return Err("compressed data ends within a tag".into());
    };
    if kind != storage::MATRIX {
        return Err(format!("expected a compressed array, found an element of type {kind}"));
    }
    check_length(length)?;
    let array = get(u64::from(length))?;
    if array.len() < length as usize {
        return Err(format!("compressed data ends after {} of {length} bytes", array.len()));
    }
    // Reading on to the end also checks the checksum.
    if get(8)?.iter().any(|b| *b != 0) {
        return Err("compressed data goes on after the array".into());
    }
    Ok(array)
}

/// One element within an array.
struct Element<'a> {
    kind: u32,
    data: &'a [u8],
}

/// The elements of an array, one after the other.
struct Elements<'a> {
    rest: &'a [u8],
    big_endian: bool,
}

impl<'a> Elements<'a> {
    /// The next element; `what` names it if it is missing.
    fn next(&mut self, what: &str) -> std::result::Result<Element<'a>, String> {
        let cut = || format!("the array ends within its {what}");
        let first = word(self.rest, self.big_endian).ok_or_else(cut)?;
        // Up to four bytes of data may share the tag's eight: length and type are halves of the first word then.
        let small = (first >> 16) as usize;
        if small != 0 {
            let data = self.rest.get(4..4 + small).filter(|_| small <= 4);
            let data = data.ok_or_else(cut)?;
            self.rest = self.rest.get(8..).unwrap_or_default();
            return Ok(Element { kind: first & 0xffff, data });
        }
        let (kind, length) = read_tag(self.rest, self.big_endian).ok_or_else(cut)?;
        let end = 8 + length as usize;
        let data = self.rest.get(8..end).ok_or_else(cut)?;
        self.rest = self.rest.get(end + padding(length) as usize..).unwrap_or_default();
        Ok(Element { kind, data })
    }

    /// The next element, which holds 32-bit numbers.
    fn next_words(&mut self, what: &str) -> std::result::Result<Vec<u32>, String> {
        let element = self.next(what)?;
        if element.kind != storage::INT32 && element.kind != storage::UINT32 {
            return Err(format!("{what} are of type {}", element.kind));
        }
        let words = element.data.chunks_exact(4);
        Ok(words.filter_map(|c| word(c, self.big_endian)).collect())
    }

    /// The next element, which holds text of one byte per character.
    fn next_name(&mut self, what: &str) -> std::result::Result<&'a [u8], String> {
        let element = self.next(what)?;
        match element.kind {
            storage::INT8 | storage::UINT8 | storage::UTF8 => Ok(element.data),
            other => Err(format!("{what} is of type {other}")),
        }
    }
}

/// The text before the first zero byte.
fn name_from(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Reads what follows the tag of an array: its name, which only variables have, and its content. `depth` counts
/// the structs around it.
fn read_array(bytes: &[u8], big_endian: bool, depth: usize) -> std::result::Result<(String, Value), String> {
    const COMPLEX: u32 = 1 << 11;
    let no_numbers = || Value::Numeric { shape: vec![0, 0], data: Vec::new() };
    // Bytes that MATLAB writes for [] in a field.
    if bytes.is_empty() {
        return Ok((String::new(), no_numbers()));
    }
    if depth > DEEPEST {
        return Err(format!("structs are nested more than {DEEPEST} deep"));
    }
    let mut elements = Elements { rest: bytes, big_endian };
    let flags = elements.next_words("flags")?;
    let flags = *flags.first().ok_or("the array has no flags")?;
    let class = flags & 0xff;
    // Objects of newer classes have no dimensions.
    if class == 17 {
        return Ok((name_from(elements.next_name("name")?), Value::Other("opaque")));
    }
    let shape: Vec<usize> = elements.next_words("dimensions")?.iter().map(|d| *d as usize).collect();
    // Lengths are signed in the file.
    let count = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
    let count = count
        .filter(|_| shape.iter().all(|d| *d <= i32::MAX as usize))
        .ok_or_else(|| format!("dimensions {shape:?} are out of range"))?;
    let name = name_from(elements.next_name("name")?);
    let value = match class {
        1 => Value::Other("cell"),
        2 if count != 1 => Value::Other("struct array"),
        2 => read_struct(&mut elements, depth)?,
        3 => Value::Other("object"),
        4 => Value::Text(read_text(&mut elements, &shape, count)?),
        5 => Value::Other("sparse"),
        6..=15 if flags & COMPLEX != 0 => Value::Other("complex"),
        6..=15 => Value::Numeric { data: read_numbers(&mut elements, count)?, shape },
        16 => Value::Other("function handle"),
        _ => return Err(format!("arrays of class {class} are unknown")),
    };
    Ok((name, value))
}

/// Reads the fields of a struct of one element.
fn read_struct(elements: &mut Elements<'_>, depth: usize) -> std::result::Result<Value, String> {
    let length = elements.next_words("length of field names")?;
    let names = elements.next_name("field names")?;
    let length = *length.first().ok_or("the struct has no length of field names")? as usize;
    if length == 0 {
        return match names {
            [] => Ok(Value::Struct(Vec::new())),
            _ => Err("field names have no length".into()),
        };
    }
    let mut fields = Vec::new();
    for name in names.chunks_exact(length) {
        let name = name_from(name);
        let element = elements.next("fields")?;
        if element.kind != storage::MATRIX {
            return Err(format!("field '{name}' is of type {}, not an array", element.kind));
        }
        let (_, value) = read_array(element.data, elements.big_endian, depth + 1)
            .map_err(|reason| format!("field '{name}': {reason}"))?;
        fields.push((name, value));
    }
    Ok(Value::Struct(fields))
}

/// Reads `count` real numbers; the storage type need not be that of the class, since MATLAB stores small whole
/// numbers in fewer bytes.
fn read_numbers(elements: &mut Elements<'_>, count: usize) -> std::result::Result<Vec<f64>, String> {
    if count == 0 && elements.rest.is_empty() {
        return Ok(Vec::new());
    }
    let big_endian = elements.big_endian;
    let Element { kind, data } = elements.next("data")?;
    macro_rules! each {
        ($type:ty) => {
            data.chunks_exact(size_of::<$type>())
                .map(|element| {
                    let mut bytes = [0; size_of::<$type>()];
                    bytes.copy_from_slice(element);
                    (if big_endian { <$type>::from_be_bytes(bytes) } else { <$type>::from_le_bytes(bytes) }) as f64
                })
                .collect::<Vec<f64>>()
        };
    }
    let numbers = match kind {
        storage::INT8 => each!(i8),
        storage::UINT8 => each!(u8),
        storage::INT16 => each!(i16),
        storage::UINT16 => each!(u16),
        storage::INT32 => each!(i32),
        storage::UINT32 => each!(u32),
        storage::SINGLE => each!(f32),
        storage::DOUBLE => each!(f64),
        storage::INT64 => each!(i64),
        storage::UINT64 => each!(u64),
        other => return Err(format!("numbers of type {other} are unknown")),
    };
    if numbers.len() != count {
        return Err(format!("expected {count} numbers, found {}", numbers.len()));
    }
    Ok(numbers)
}

/// Reads text; what is no valid character becomes U+FFFD.
fn read_text(elements: &mut Elements<'_>, shape: &[usize], count: usize) -> std::result::Result<String, String> {
    if count == 0 {
        return Ok(String::new());
    }
    let big_endian = elements.big_endian;
    let Element { kind, data } = elements.next("text")?;
    let wide = || {
        data.chunks_exact(2).map(|c| {
            let bytes = [c[0], c[1]];
            if big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
        })
    };
    let text: String = match kind {
        storage::INT8 | storage::UINT8 | storage::UTF8 => String::from_utf8_lossy(data).into(),
        storage::UINT16 | storage::UTF16 => {
            char::decode_utf16(wide()).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
        }
        storage::UINT32 | storage::UTF32 => data
            .chunks_exact(4)
            .filter_map(|c| word(c, big_endian))
            .map(|c| char::from_u32(c).unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect(),
        other => return Err(format!("text of type {other} is unknown")),
    };
    let rows = shape.first().copied().unwrap_or(1);
    if rows == 1 {
        return Ok(text);
    }
    // Stored column by column, every line filled up with spaces to the same length.
    let characters: Vec<char> = text.chars().collect();
    if characters.len() != count {
        return Err(format!("expected {count} characters, found {}", characters.len()));
    }
    let lines: Vec<String> = (0..rows)
        .map(|i| {
            let line: String = characters.iter().skip(i).step_by(rows).collect();
            line.trim_end_matches(' ').to_owned()
        })
        .collect();
    Ok(lines.join("\n"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

    use super::*;
    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use proptest::prelude::*;
    use std::io::Write as _;

    /// Builds files by hand, in either byte order.
    #[derive(Clone, Copy)]
    struct Maker {
        big_endian: bool,
    }

    const LITTLE: Maker = Maker { big_endian: false };
    const BIG: Maker = Maker { big_endian: true };

    impl Maker {
        fn word(self, value: u32) -> [u8; 4] {
            if self.big_endian { value.to_be_bytes() } else { value.to_le_bytes() }
        }

        fn words(self, values: &[u32]) -> Vec<u8> {
            values.iter().flat_map(|v| self.word(*v)).collect()
        }

        fn doubles(self, values: &[f64]) -> Vec<u8> {
            let bytes = |v: &f64| {
                if self.big_endian { v.to_be_bytes() } else { v.to_le_bytes() }
            };
            values.iter().flat_map(bytes).collect()
        }

        fn element(self, kind: u32, data: &[u8]) -> Vec<u8> {
            let mut bytes = self.words(&[kind, data.len() as u32]);
            bytes.extend(data);
            bytes.resize(bytes.len().next_multiple_of(8), 0);
            bytes
        }

        fn small(self, kind: u32, data: &[u8]) -> Vec<u8> {
            let mut bytes = self.words(&[(data.len() as u32) << 16 | kind]);
            bytes.extend(data);
            bytes.resize(8, 0);
            bytes
        }

        /// Flags, dimensions and name.
        fn start(self, flags: u32, shape: &[u32], name: &str) -> Vec<u8> {
            let mut bytes = self.element(storage::UINT32, &self.words(&[flags, 0]));
            bytes.extend(self.element(storage::INT32, &self.words(shape)));
            bytes.extend(match name.len() {
                1..=4 => self.small(storage::INT8, name.as_bytes()),
                _ => self.element(storage::INT8, name.as_bytes()),
            });
            bytes
        }

        fn array(self, flags: u32, shape: &[u32], name: &str, content: &[u8]) -> Vec<u8> {
            let mut bytes = self.start(flags, shape, name);
            bytes.extend(content);
            self.element(storage::MATRIX, &bytes)
        }

        fn numbers(self, shape: &[u32], name: &str, values: &[f64]) -> Vec<u8> {
            let content = self.element(storage::DOUBLE, &self.doubles(values));
            self.array(6, shape, name, &content)
        }

        fn structure(self, name: &str, fields: &[(&str, Vec<u8>)]) -> Vec<u8> {
            let mut content = self.small(storage::INT32, &self.word(16));
            let mut names = Vec::new();
            for (field, _) in fields {
                names.extend(field.as_bytes());
                names.resize(names.len().next_multiple_of(16), 0);
            }
            content.extend(self.element(storage::INT8, &names));
            for (_, value) in fields {
                content.extend(value);
            }
            self.array(2, &[1, 1], name, &content)
        }

        fn compressed(self, element: &[u8]) -> Vec<u8> {
            let packed = zlib(element);
            let mut bytes = self.words(&[storage::COMPRESSED, packed.len() as u32]);
            bytes.extend(packed);
            bytes
        }

        fn file(self, elements: &[Vec<u8>]) -> Vec<u8> {
            let mut bytes = vec![b' '; 124];
            bytes[..20].copy_from_slice(b"MATLAB 5.0 MAT-file,");
            bytes.extend(if self.big_endian { b"\x01\x00MI" } else { b"\x00\x01IM" });
            bytes.extend(elements.concat());
            bytes
        }
    }

    fn zlib(content: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(content).expect("memory");
        encoder.finish().expect("memory")
    }

    fn parse(bytes: &[u8]) -> Result<Vec<(String, Value)>> {
        read_from(bytes, "a.mat")
    }

    /// The only variable of a file.
    fn only(bytes: &[u8]) -> Value {
        let mut variables = parse(bytes).expect("valid");
        assert_eq!(variables.len(), 1);
        variables.remove(0).1
    }

    fn refused(bytes: &[u8], at: &str, words: &str) {
        match parse(bytes) {
            Err(Error::Format { what, reason }) => {
                assert_eq!(what, format!("a.mat{at}"), "{reason}");
                assert!(reason.contains(words), "{reason}");
            }
            other => panic!("{words}: {other:?}"),
        }
    }

    #[test]
    fn plain_and_compressed_in_both_byte_orders() {
        for maker in [LITTLE, BIG] {
            let a = maker.numbers(&[2, 3], "a", &[1.0, 2.0, 3.0, 4.0, 5.0, 6.5]);
            let long = maker.numbers(&[1, 1], "a_long_name", &[-1e300]);
            for file in [
                maker.file(&[a.clone(), long.clone()]),
                maker.file(&[maker.compressed(&a), maker.compressed(&long)]),
                maker.file(&[a.clone(), maker.compressed(&long)]),
            ] {
                let variables = parse(&file).expect("valid");
                assert_eq!(variables.len(), 2);
                assert_eq!((&*variables[0].0, &*variables[1].0), ("a", "a_long_name"));
                let expected = (2, 3, vec![1.0, 3.0, 5.0, 2.0, 4.0, 6.5]);
                assert_eq!(variables[0].1.matrix(), Some(expected));
                assert_eq!(variables[1].1.scalar(), Some(-1e300));
            }
        }
    }

    #[test]
    fn every_storage_type() {
        macro_rules! check {
            ($kind:expr, $class:expr, $type:ty, $values:expr) => {
                let values: [$type; 3] = $values;
                let little: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
                let big: Vec<u8> = values.iter().flat_map(|v| v.to_be_bytes()).collect();
                let expected: Vec<f64> = values.iter().map(|v| *v as f64).collect();
                for (maker, bytes) in [(LITTLE, little), (BIG, big)] {
                    // The class of the storage type, and double with this storage.
                    for class in [$class, 6] {
                        let data = maker.element($kind, &bytes);
                        let value = only(&maker.file(&[maker.array(class, &[3, 1], "a", &data)]));
                        let shape = vec![3, 1];
                        assert_eq!(value, Value::Numeric { shape, data: expected.clone() });
                    }
                }
            };
        }
        check!(storage::INT8, 8, i8, [-128, 0, 127]);
        check!(storage::UINT8, 9, u8, [0, 128, 255]);
        check!(storage::INT16, 10, i16, [i16::MIN, 258, i16::MAX]);
        check!(storage::UINT16, 11, u16, [0, 258, u16::MAX]);
        check!(storage::INT32, 12, i32, [i32::MIN, 65538, i32::MAX]);
        check!(storage::UINT32, 13, u32, [0, 65538, u32::MAX]);
        check!(storage::INT64, 14, i64, [i64::MIN, 1 << 40, i64::MAX]);
        check!(storage::UINT64, 15, u64, [0, 1 << 40, u64::MAX]);
        check!(storage::SINGLE, 7, f32, [1.5, -0.1, f32::MAX]);
        check!(storage::DOUBLE, 6, f64, [1.5, -0.1, f64::INFINITY]);
    }

    #[test]
    fn small_elements_logicals_and_more_dimensions() {
        for maker in [LITTLE, BIG] {
            let logical = 1 << 9 | 9;
            let data = maker.small(storage::UINT8, &[1, 0, 1]);
            let value = only(&maker.file(&[maker.array(logical, &[1, 3], "abcd", &data)]));
            assert_eq!(value.matrix(), Some((1, 3, vec![1.0, 0.0, 1.0])));
            let data = maker.small(storage::UINT8, &[1, 2, 3, 4]);
            let value = only(&maker.file(&[maker.array(6, &[1, 2, 2], "a", &data)]));
            let shape = vec![1, 2, 2];
            let data = vec![1.0, 2.0, 3.0, 4.0];
            assert_eq!(value.matrix(), None);
            assert_eq!(value, Value::Numeric { shape, data });
        }
    }

    #[test]
    fn empty_arrays_and_empty_files() {
        assert_eq!(parse(&LITTLE.file(&[])).expect("valid"), []);
        let nothing = LITTLE.element(storage::DOUBLE, &[]);
        for content in [&nothing[..], &[]] {
            let value = only(&LITTLE.file(&[LITTLE.array(6, &[0, 3], "a", content)]));
            assert_eq!(value.matrix(), Some((0, 3, vec![])));
            assert_eq!(value.scalar(), None);
        }
        let field = LITTLE.structure("s", &[("none", LITTLE.element(storage::MATRIX, &[]))]);
        let value = only(&LITTLE.file(&[field]));
        let none = value.field("none").and_then(Value::matrix);
        assert_eq!(none, Some((0, 0, vec![])));
        let value = only(&LITTLE.file(&[LITTLE.array(4, &[0, 0], "t", &[])]));
        assert_eq!(value.text(), Some(""));
        assert_eq!(only(&LITTLE.file(&[LITTLE.structure("s", &[])])), Value::Struct(vec![]));
    }

    #[test]
    fn text_in_every_encoding() {
        for maker in [LITTLE, BIG] {
            let wide: Vec<u8> = "h\u{e9}\u{1d11e}"
                .encode_utf16()
                .flat_map(|c| if maker.big_endian { c.to_be_bytes() } else { c.to_le_bytes() })
                .collect();
            let widest: Vec<u8> = "h\u{e9}\u{1d11e}".chars().flat_map(|c| maker.word(c.into())).collect();
            for (kind, bytes) in [
                (storage::UTF8, "h\u{e9}\u{1d11e}".as_bytes()),
                (storage::UTF16, &wide),
                (storage::UINT16, &wide),
                (storage::UTF32, &widest),
            ] {
                let content = maker.element(kind, bytes);
                let value = only(&maker.file(&[maker.array(4, &[1, 4], "t", &content)]));
                assert_eq!(value.text(), Some("h\u{e9}\u{1d11e}"));
                assert_eq!((value.scalar(), value.matrix()), (None, None));
            }
            let content = maker.element(storage::UTF8, b"adbecf  ");
            let value = only(&maker.file(&[maker.array(4, &[2, 4], "t", &content)]));
            assert_eq!(value.text(), Some("abc\ndef"));
            let content = maker.element(storage::UINT16, &[0xd8; 2]);
            let value = only(&maker.file(&[maker.array(4, &[1, 1], "t", &content)]));
            assert_eq!(value.text(), Some("\u{fffd}"));
        }
    }

    #[test]
    fn structs_inside_structs() {
        for maker in [LITTLE, BIG] {
            let text = maker.array(4, &[1, 2], "", &maker.small(storage::UTF8, b"mm"));
            let inner = maker.structure("", &[("pixels", maker.numbers(&[1, 1], "", &[560.0])), ("unit", text)]);
            let data = maker.numbers(&[1, 2], "", &[1.0, 2.0]);
            let outer = maker.structure("scan", &[("sinogram", data), ("parameters", inner)]);
            for file in [maker.file(std::slice::from_ref(&outer)), maker.file(&[maker.compressed(&outer)])] {
                let value = only(&file);
                let parameters = value.field("parameters").expect("field");
                assert_eq!(parameters.field("pixels").and_then(Value::scalar), Some(560.0));
                assert_eq!(parameters.field("unit").and_then(Value::text), Some("mm"));
                let sinogram = value.field("sinogram").expect("field");
                assert_eq!(sinogram.matrix(), Some((1, 2, vec![1.0, 2.0])));
                assert_eq!(value.field("absent"), None);
                assert_eq!(sinogram.field("pixels"), None);
                assert_eq!((value.text(), value.scalar(), value.matrix()), (None, None, None));
            }
        }
    }

    #[test]
    fn what_is_not_supported_is_skipped_by_name() {
        let after = LITTLE.numbers(&[1, 1], "after", &[7.0]);
        let doubles = LITTLE.element(storage::DOUBLE, &LITTLE.doubles(&[1.0]));
        for (class, shape, name) in [
            (1, [1, 1], "cell"),
            (2, [1, 2], "struct array"),
            (3, [1, 1], "object"),
            (5, [1, 1], "sparse"),
            (16, [1, 1], "function handle"),
            (1 << 11 | 6, [1, 1], "complex"),
        ] {
            let array = LITTLE.array(class, &shape, "v", &doubles);
            let variables = parse(&LITTLE.file(&[array, after.clone()])).expect(name);
            assert_eq!(variables[0], ("v".into(), Value::Other(name)));
            assert_eq!(variables[1].1.scalar(), Some(7.0));
        }
        let mut opaque = LITTLE.element(storage::UINT32, &LITTLE.words(&[17, 0]));
        opaque.extend(LITTLE.small(storage::INT8, b"v"));
        let opaque = LITTLE.element(storage::MATRIX, &opaque);
        let hidden = LITTLE.array(9, &[1, 1], "", &LITTLE.small(storage::UINT8, &[1]));
        let variables = parse(&LITTLE.file(&[opaque, hidden, after])).expect("valid");
        assert_eq!(variables.len(), 2);
        assert_eq!(variables[0], ("v".into(), Value::Other("opaque")));
    }

    #[test]
    fn other_formats_are_refused_by_name() {
        let mut file = LITTLE.file(&[]);
        file[124..126].copy_from_slice(&[0, 2]);
        refused(&file, "", "MATLAB 7.3 files are HDF5: save with -v7");
        let mut file = BIG.file(&[]);
        file[124..126].copy_from_slice(&[2, 0]);
        refused(&file, "", "HDF5");
        file[124..126].copy_from_slice(&[3, 0]);
        refused(&file, "", "version");
        refused(b"\x89HDF\r\n\x1a\n and so on", "", "HDF5");
        refused(&[0; 200], "", "MATLAB 4");
        refused(&[0; 20], "", "MATLAB 4");
        refused(&[b'x'; 200], "", "IM or MI");
        refused(b"", "", "shorter than");
        refused(&LITTLE.file(&[])[..127], "", "shorter than");
    }

    #[test]
    fn files_that_are_cut_off_are_refused() {
        let a = LITTLE.numbers(&[2, 1], "a", &[1.0, 2.0]);
        for element in [a.clone(), LITTLE.compressed(&a)] {
            let file = LITTLE.file(&[element.clone(), element]);
            let middle = 128 + (file.len() - 128) / 2;
            for end in 129..file.len() {
                let number = if end <= middle { 1 } else { 2 };
                if end != middle {
                    refused(&file[..end], &format!(" variable {number}"), "file ends");
                }
            }
        }
        let mut claims = LITTLE.file(&[]);
        claims.extend(LITTLE.words(&[storage::MATRIX, 1 << 31, 0, 0]));
        refused(&claims, " variable 1", "ends after 8 of 2147483648");
        let mut claims = LITTLE.file(&[]);
        claims.extend(LITTLE.words(&[storage::MATRIX, u32::MAX]));
        refused(&claims, " variable 1", "exceeds the limit");
    }

    #[test]
    fn compressed_data_that_is_damaged_or_lies_is_refused() {
        let a = LITTLE.numbers(&[2, 1], "a", &[1.0, 2.0]);
        let packed = |content: &[u8]| LITTLE.element(storage::COMPRESSED, content);
        let check = |content: &[u8], words: &str| {
            refused(&LITTLE.file(&[packed(content)]), " variable 1", words);
        };
        check(b"no stream at all", "damaged");
        let good = zlib(&a);
        check(&good[..good.len() - 6], "damaged");
        let mut wrong_sum = good.clone();
        let last = wrong_sum.len() - 1;
        wrong_sum[last] ^= 1;
        check(&wrong_sum, "damaged");
        check(&zlib(&a[..4]), "within a tag");
        check(&zlib(&a[..40]), "ends after 32 of");
        check(&zlib(&[&a[..], &[1]].concat()), "goes on");
        check(&zlib(&good), "element of type");
        check(&zlib(&LITTLE.words(&[storage::MATRIX, u32::MAX])), "exceeds the limit");
        // A bomb: 32 MB of zeros in 32 kB are no array, however they are tagged.
        let mut zeros = LITTLE.words(&[storage::MATRIX, 1 << 25]);
        zeros.resize(8 + (1 << 25), 0);
        check(&zlib(&zeros), "flags");
    }

    #[test]
    fn arrays_that_contradict_themselves_are_refused() {
        let check = |element: Vec<u8>, words: &str| {
            refused(&LITTLE.file(&[element]), " variable 1", words);
        };
        let one = LITTLE.element(storage::DOUBLE, &LITTLE.doubles(&[1.0]));
        check(LITTLE.array(6, &[2, 1], "a", &one), "expected 2 numbers, found 1");
        check(LITTLE.array(6, &[1, 1], "a", &[]), "within its data");
        check(LITTLE.array(6, &[u32::MAX, 1], "a", &one), "out of range");
        check(LITTLE.array(6, &[0x7fff_ffff; 3], "a", &one), "out of range");
        check(LITTLE.array(99, &[1, 1], "a", &one), "class 99");
        check(LITTLE.array(4, &[1, 1], "a", &one), "text of type 9");
        check(LITTLE.array(6, &[1, 1], "a", &LITTLE.element(77, &[0; 8])), "type 77");
        check(LITTLE.array(4, &[2, 2], "a", &LITTLE.small(storage::UTF8, b"abc")), "4 characters");
        check(LITTLE.element(storage::DOUBLE, &[0; 8]), "element of type 9");
        check(LITTLE.element(storage::MATRIX, &one), "flags are of type 9");
        check(LITTLE.element(storage::MATRIX, &[0; 4]), "within its flags");
        let long_small = LITTLE.words(&[5 << 16 | storage::UINT8, 0, 0]);
        check(LITTLE.array(9, &[5, 1], "a", &long_small), "within its data");
        let inner = LITTLE.array(6, &[2, 1], "", &one);
        check(LITTLE.structure("s", &[("bad", inner)]), "field 'bad': expected 2 numbers");
        check(LITTLE.structure("s", &[("bad", one.clone())]), "field 'bad' is of type 9");
        check(LITTLE.structure("s", &[("bad", vec![])]), "within its fields");
        let mut no_length = LITTLE.small(storage::INT32, &LITTLE.word(0));
        no_length.extend(LITTLE.element(storage::INT8, b"name"));
        check(LITTLE.array(2, &[1, 1], "s", &no_length), "no length");
    }

    #[test]
    fn structs_nested_too_deep_are_refused() {
        let nested = |depth: usize| {
            (0..depth).fold(LITTLE.numbers(&[1, 1], "", &[1.0]), |inner, level| {
                let name = if level + 1 == depth { "s" } else { "" };
                LITTLE.structure(name, &[("f", inner)])
            })
        };
        assert!(parse(&LITTLE.file(&[nested(DEEPEST)])).is_ok());
        let deep = LITTLE.file(&[nested(DEEPEST + 1)]);
        refused(&deep, " variable 1", "nested more than 32 deep");
        assert!(parse(&LITTLE.file(&[nested(5000)])).is_err());
    }

    #[test]
    fn files_on_disk() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("a.mat");
        assert!(matches!(read(&path), Err(Error::File { .. })));
        let a = LITTLE.numbers(&[1, 1], "a", &[3.0]);
        std::fs::write(&path, LITTLE.file(&[a])).expect("write");
        assert_eq!(read(&path).expect("valid")[0].1.scalar(), Some(3.0));
    }

    /// A file with some of everything.
    fn seed(maker: Maker, packed: bool) -> Vec<u8> {
        let text = maker.array(4, &[2, 2], "", &maker.small(storage::UTF8, b"abcd"));
        let fields = [("x", maker.numbers(&[1, 2], "", &[1.0, 2.0])), ("t", text)];
        let inner = maker.structure("", &fields);
        let scan = maker.structure("scan", &[("in", inner), ("y", maker.numbers(&[1, 1], "", &[1.0]))]);
        let bytes = maker.array(9, &[2, 2], "n", &maker.small(storage::UINT8, &[1, 2, 3, 4]));
        let elements = [scan, bytes];
        if packed { maker.file(&elements.map(|e| maker.compressed(&e))) } else { maker.file(&elements) }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            big_endian in any::<bool>(),
        ) {
            let _ = parse(&bytes);
            let maker = Maker { big_endian };
            let _ = parse(&maker.file(std::slice::from_ref(&bytes)));
            let _ = parse(&maker.file(&[maker.element(storage::MATRIX, &bytes)]));
            let _ = parse(&maker.file(&[maker.compressed(&maker.element(storage::MATRIX, &bytes))]));
        }

        #[test]
        fn damaged_files_are_read_or_refused(
            big_endian in any::<bool>(),
            packed in any::<bool>(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
            tweaks in prop::collection::vec((any::<prop::sample::Index>(), 0u8..20), 0..8),
            end in any::<prop::sample::Index>(),
            cut in any::<bool>(),
        ) {
            let mut bytes = seed(Maker { big_endian }, packed);
            // The header's words are tested elsewhere.
            for (at, byte) in changes.into_iter().chain(tweaks) {
                let at = 124 + at.index(bytes.len() - 124);
                bytes[at] = byte;
            }
            if cut {
                bytes.truncate(end.index(bytes.len()));
            }
            for (_, value) in parse(&bytes).unwrap_or_default() {
                let _ = (value.matrix(), value.scalar(), value.field("in"));
            }
        }

        #[test]
        fn numbers_survive(
            values in prop::collection::vec(any::<f64>(), 1..50),
            big_endian in any::<bool>(),
            packed in any::<bool>(),
        ) {
            let maker = Maker { big_endian };
            let mut element = maker.numbers(&[values.len() as u32, 1], "a", &values);
            if packed {
                element = maker.compressed(&element);
            }
            let (_, _, back) = only(&maker.file(&[element])).matrix().expect("two dimensions");
            let bits = |v: &[f64]| v.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            prop_assert_eq!(bits(&back), bits(&values));
        }
    }
}
