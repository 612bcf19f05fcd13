//! Matrix Market files: the text format of the SuiteSparse collection.
//!
//! Read: `coordinate` and `array`; `real`, `integer` and `pattern` (every entry 1); `general`, `symmetric` and
//! `skew-symmetric`, the latter two expanded to the whole matrix. `complex` and `hermitian` are refused. Any of
//! them may be compressed with gzip, or stand in an archive (`.tar`, `.tar.gz`, `.zip`). A byte-order mark is skipped.
//!
//! A symmetric file holds one triangle. An entry and its mirror image would be added up, so that a file with both is refused. Which of
//! the triangles is stored does not matter, and may differ from place to place.
//!
//! Large files are parsed by all cores, and memory follows the entries: 16 bytes for each of them in `f64` while it is
//! read, as much again while rows are put in order.
//!
//! Zeros that a coordinate file stores stay entries of the matrix; zeros of an array file do not become any.
//! Entries of the same place are summed in the order of the file.

use std::io::{self, BufRead, Read};
use std::path::Path;

use super::archive::Inside;
use super::columns::{FileColumns, unfit};
use super::open::Watch;
use super::open::{MARK, UTF16, open, read_error, short_name};
use crate::error::{Error, Result};
use crate::files::write_atomically;
use crate::number::{Real, per_number};
use crate::sparse::{AsCsr, Csr, plausible_rows};
use crate::threads;

/// Longest line taken, in bytes. Files have at most a few hundred; a stream without line ends must not fill the
/// memory.
const LONGEST_LINE: u64 = 1 << 20;

/// Reads a matrix.
///
/// Values are parsed as `f64` and then rounded to `T`. Entries of the same place are summed.
///
/// # Errors
/// [`Error::File`] when the file cannot be read, otherwise as [`read_matrix_from`].
pub fn read_matrix<T: Real>(path: &Path) -> Result<Csr<T>> {
    read_matrix_watched(path, &mut |_, _| {})
}

per_number! {
    /// [`read_matrix`] for large files: `watch` sees the progress.
    ///
    /// # Errors
    /// As [`read_matrix`].
    pub fn read_matrix_watched<T>(path: &Path, watch: &mut Watch<'_>) -> Result<Csr<T>> = read_matrix_watched_here;
}

fn read_matrix_watched_here<T: Real>(path: &Path, watch: &mut Watch<'_>) -> Result<Csr<T>> {
    read_content(open(path)?, &short_name(path), Shape::Matrix, watch)?.matrix(&short_name(path))
}

/// Reads a matrix from within an archive.
pub(super) fn of_archive<T: Real>((reader, name): Inside<'_>, watch: &mut Watch<'_>) -> Result<Csr<T>> {
    read_content(reader, name, Shape::Matrix, watch)?.matrix(name)
}

/// Reads columns, or rows, of `length` numbers each.
pub(super) fn read_columns<T: Real>((reader, name): Inside<'_>, length: usize) -> Result<FileColumns<T>> {
    let content = read_content(reader, name, Shape::Columns(length), &mut |_, _| {})?;
    if content.symmetry != Symmetry::General {
        content.check_triangles(name)?;
    }
    let by_rows = content.rows != length;
    let count = if by_rows { content.rows } else { content.cols };
    let mut columns = vec![vec![T::default(); length]; count];
    for (i, j, value) in content.entries.into_iter().flatten() {
        let (i, j) = if by_rows { (j, i) } else { (i, j) };
        let at = &mut columns[j as usize][i as usize];
        *at = *at + value;
    }
    Ok(FileColumns::new(columns, by_rows))
}

/// Reads a matrix from a stream; `name` is what error messages call it.
///
/// # Errors
/// [`Error::Format`], with `name` and the number of the line in `what` (`foo.mtx line 17`): no Matrix Market
/// banner, a kind of matrix that is not supported, both triangles of a symmetric one, indices outside the matrix (they count from 1), values that are
/// not finite in `T`, fewer or more entries than announced, dimensions above `u32::MAX`, and more than 2²² rows
/// with almost nothing in them. [`Error::File`] when reading itself fails.
pub fn read_matrix_from<T: Real>(reader: impl BufRead + Send, name: &str) -> Result<Csr<T>> {
    read_content(reader, name, Shape::Matrix, &mut |_, _| {})?.matrix(name)
}

per_number! {
    /// Reads a vector: an array or a coordinate matrix of one column or one row.
    ///
    /// Places that a coordinate file leaves out are 0, places it repeats are summed.
    ///
    /// # Errors
    /// [`Error::File`] when the file cannot be read, otherwise as [`read_vector_from`].
    pub fn read_vector<T>(path: &Path) -> Result<Vec<T>> = read_vector_here;
}

fn read_vector_here<T: Real>(path: &Path) -> Result<Vec<T>> {
    read_vector_from(open(path)?, &short_name(path))
}

/// Reads a vector from a stream; `name` is what error messages call it.
///
/// # Errors
/// [`Error::Format`] as in [`read_matrix_from`], and for a matrix with several rows and columns.
pub fn read_vector_from<T: Real>(reader: impl BufRead + Send, name: &str) -> Result<Vec<T>> {
    let content = read_content(reader, name, Shape::Vector, &mut |_, _| {})?;
    let mut vector = vec![T::default(); content.rows.max(content.cols)];
    if content.rows == 0 || content.cols == 0 {
        vector.clear();
    }
    for (i, j, value) in content.entries.into_iter().flatten() {
        // One of the two is always 0.
        let at = (i + j) as usize;
        vector[at] = vector[at] + value;
    }
    Ok(vector)
}

/// Writes `a` as `coordinate real general`, rows in order, every value with the fewest decimal digits that read
/// back as the same number. The file appears complete or not at all.
///
/// # Errors
/// [`Error::NotFinite`] for a value the format has no word for, [`Error::Structure`] for a matrix of `sprs` with a dimension beyond 32 bits, [`Error::File`] when the file cannot be written.
pub fn write_matrix<T: Real>(path: &Path, a: &(impl AsCsr<T> + ?Sized)) -> Result<()> {
    write_rows(path, &*a.as_csr()?)
}

per_number! {
    fn write_rows<T>(path: &Path, a: &Csr<T>) -> Result<()> = write_rows_here;
}

/// Fails on a value that readers would refuse.
pub(super) fn check_written<T: Real>(a: &Csr<T>) -> Result<()> {
    let what = || "the matrix to be written".into();
    a.first_not_finite().map_or(Ok(()), |index| Err(Error::NotFinite { what: what(), index }))
}

fn write_rows_here<T: Real>(path: &Path, a: &Csr<T>) -> Result<()> {
    check_written(a)?;
    write_atomically(path, |out| {
        writeln!(out, "%%MatrixMarket matrix coordinate real general")?;
        writeln!(out, "{} {} {}", a.rows(), a.cols(), a.nnz())?;
        for i in 0..a.rows() {
            let (columns, values) = a.row(i);
            for (column, value) in columns.iter().zip(values) {
                // Debug is the shortest form as well, and unlike Display has an exponent: 1e300, not 301 digits.
                writeln!(out, "{} {} {value:?}", i + 1, u64::from(*column) + 1)?;
            }
        }
        Ok(())
    })
}

/// Request of the caller.
#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Matrix,
    Vector,
    /// Columns of a length, or rows if only these fit.
    Columns(usize),
}

/// The `format` word of the banner.
#[derive(Clone, Copy, PartialEq)]
enum Layout {
    Coordinate,
    Array,
}

/// The `field` word of the banner.
#[derive(Clone, Copy, PartialEq)]
enum Field {
    Real,
    Integer,
    Pattern,
}

/// The `symmetry` word of the banner.
#[derive(Clone, Copy, PartialEq)]
enum Symmetry {
    General,
    Symmetric,
    Skew,
}

impl Symmetry {
    /// Remedy for an array with more values than there is room for.
    fn array(self) -> &'static str {
        match self {
            Self::General => "",
            Self::Symmetric => {
                ": a symmetric array holds the diagonal and what is below it; write general in line 1 if the file holds the whole matrix"
            }
            Self::Skew => {
                ": a skew-symmetric array holds what is below the diagonal; write general in line 1 if the file holds the whole matrix"
            }
        }
    }

    /// Word of the banner.
    fn word(self) -> &'static str {
        match self {
            Self::General => "general",
            Self::Symmetric => "symmetric",
            Self::Skew => "skew-symmetric",
        }
    }
}

/// A file's content, symmetric matrices expanded.
struct Content<T> {
    rows: usize,
    cols: usize,
    symmetry: Symmetry,
    /// Stretches of `(row, column, value)`, in the order of the file.
    entries: Vec<Vec<(u32, u32, T)>>,
    /// Lines of the stretches; none of an array.
    numbers: Vec<Numbers>,
}

impl<T: Real> Content<T> {
    /// The matrix of the entries. A symmetric file holds one triangle: a place with its mirror image is refused, at the line of the second.
    fn matrix(self, name: &str) -> Result<Csr<T>> {
        let count: usize = self.entries.iter().map(Vec::len).sum();
        let matrix = Csr::from_stretches(self.rows, self.cols, &self.entries)?;
        // Places that are there once only have no mirror image in the file.
        if self.symmetry != Symmetry::General && matrix.nnz() < count {
            self.check_triangles(name)?;
        }
        Ok(matrix)
    }

    /// Lines of the file that hold a place beside the diagonal, in stretch `at`: the number of the line, the place and the value.
    fn lines_beside_diagonal(&self, at: usize) -> impl Iterator<Item = (u64, u32, u32, T)> {
        let mut images = false;
        let held = self.entries[at].iter().filter(move |(i, j, _)| {
            // The entry of such a line is followed by its image.
            images = !images && i != j;
            i == j || images
        });
        let lines = held.zip(self.numbers.get(at).into_iter().flat_map(Numbers::iter));
        lines.filter(|((i, j, _), _)| i != j).map(|((i, j, v), line)| (line, *i, *j, *v))
    }

    fn check_triangles(&self, name: &str) -> Result<()> {
        let has = |lower: bool| {
            let in_triangle = |at| self.lines_beside_diagonal(at).any(|(_, i, j, _)| (i > j) == lower);
            threads::first(self.numbers.len(), 1, in_triangle).is_some()
        };
        if !has(false) || !has(true) {
            return Ok(());
        }
        // Place in the lower triangle, line, and the triangle in which the place stands.
        let mut places: Vec<(u64, u64, bool)> = (0..self.numbers.len())
            .flat_map(|at| self.lines_beside_diagonal(at))
            .map(|(line, i, j, _)| (u64::from(i.max(j)) << 32 | u64::from(i.min(j)), line, i > j))
            .collect();
        threads::sort_unstable(&mut places);
        let doubled = |group: &[(u64, u64, bool)]| {
            let first = group.first()?;
            let second = group.iter().find(|other| other.2 != first.2)?;
            Some((second.1, first.1, *second))
        };
        let first = places.chunk_by(|a, b| a.0 == b.0).filter_map(doubled).min();
        let Some((line, other, (place, _, lower))) = first else { return Ok(()) };
        let (high, low) = ((place >> 32) + 1, (place & u64::from(u32::MAX)) + 1);
        let (row, column) = if lower { (high, low) } else { (low, high) };
        let word = self.symmetry.word();
        let value_at = |wanted: u64| {
            let lines = (0..self.numbers.len()).flat_map(|at| self.lines_beside_diagonal(at));
            lines.into_iter().find(|(line, ..)| *line == wanted).map_or(0.0, |(.., value)| value.to_f64())
        };
        let (value, mirrored) = (value_at(line), value_at(other));
        let alike = value == if self.symmetry == Symmetry::Skew { -mirrored } else { mirrored };
        let reason = if alike {
            format!(
                "({row}, {column}) is the mirror image of line {other}, and a {word} file holds one of the two: remove one triangle, or \
                 write general in place of {word} in line 1"
            )
        } else {
            format!(
                "({row}, {column}) is {value}, and its mirror image in line {other} is {mirrored}: this matrix is not {word}; write general in \
                 place of {word} in line 1, or correct the values and remove one triangle"
            )
        };
        Err(Line { name, number: line, text: &[] }.error(reason))
    }
}

/// Numbers of the lines of a stretch that hold data.
#[derive(Default)]
struct Numbers {
    /// Lines that hold data.
    count: u64,
    /// Lines that do not follow the last one with data, and the first: how many with data stand before, and the number.
    starts: Vec<(u64, u64)>,
    /// Number of the last line with data.
    last: u64,
}

impl Numbers {
    fn add(&mut self, number: u64) {
        if self.starts.is_empty() || number != self.last + 1 {
            self.starts.push((self.count, number));
        }
        self.count += 1;
        self.last = number;
    }

    fn iter(&self) -> impl Iterator<Item = u64> {
        let ends = self.starts.iter().skip(1).map(|(before, _)| *before).chain([self.count]);
        self.starts.iter().zip(ends).flat_map(|((before, number), end)| *number..number + (end - before))
    }
}

/// One line of a file.
#[derive(Clone, Copy)]
struct Line<'a> {
    name: &'a str,
    /// From 1.
    number: u64,
    text: &'a [u8],
}

impl<'a> Line<'a> {
    /// Tells if there is something on it: neither blank nor a comment.
    fn holds_data(&self) -> bool {
        self.text.iter().find(|b| !b.is_ascii_whitespace()).is_some_and(|&b| b != b'%')
    }

    fn tokens(&self) -> impl Iterator<Item = &'a [u8]> {
        self.text.split(u8::is_ascii_whitespace).filter(|token| !token.is_empty())
    }

    /// The first `N` words of the line, which must have no more.
    fn exactly<const N: usize>(&self, expected: &str) -> Result<[&'a [u8]; N]> {
        let mut tokens = self.tokens();
        let mut found = [&[][..]; N];
        for slot in &mut found {
            *slot = tokens
                .next()
                .ok_or_else(|| self.error(format!("expected {expected}, found '{}'", self.shown())))?;
        }
        match tokens.next() {
            None => Ok(found),
            Some(extra) => Err(self.error(format!("expected {expected}, found '{}' after them", printable(extra)))),
        }
    }

    /// The line without surrounding space, for messages.
    fn shown(&self) -> String {
        printable(self.text.trim_ascii())
    }

    /// [`Error::Format`] at this line.
    fn error(&self, reason: impl Into<String>) -> Error {
        Error::Format { what: format!("{} line {}", self.name, self.number), reason: reason.into() }
    }

    /// A dimension or a count.
    fn whole(&self, token: &[u8]) -> Result<u64> {
        parse_whole(token).ok_or_else(|| self.error(format!("'{}' is no whole number", printable(token))))
    }

    /// An index in `1..=dimension`, as one in `0..dimension`.
    fn index(&self, token: &[u8], dimension: usize, which: &str) -> Result<u32> {
        let index = self.whole(token)?;
        if index == 0 || index > dimension as u64 {
            return Err(self.error(format!("{which} {index} lies outside 1..={dimension}")));
        }
        // Dimensions are at most u32::MAX.
        Ok((index - 1) as u32)
    }

    /// A value of the kind the banner announced.
    fn value<T: Real>(&self, token: &[u8], field: Field) -> Result<T> {
        let value: Option<f64> = std::str::from_utf8(token).ok().and_then(|t| t.parse().ok());
        let Some(value) = value else {
            return Err(self.error(format!("'{}' is no number", printable(token))));
        };
        if field == Field::Integer && value.fract() != 0.0 {
            return Err(self.error(format!("'{}' is no integer", printable(token))));
        }
        let rounded = T::from_f64(value);
        if !rounded.is_finite() {
            return Err(self.error(format!("'{}' is not finite in {}", printable(token), T::PRECISION)));
        }
        Ok(rounded)
    }
}

/// The lines a file starts with, in one reused buffer.
struct Lines<'a, R> {
    reader: R,
    name: &'a str,
    /// Number of the line in `buffer`, from 1.
    number: u64,
    buffer: Vec<u8>,
}

impl<R: BufRead> Lines<'_, R> {
    /// Reads the next line; false at the end.
    fn advance(&mut self) -> Result<bool> {
        self.buffer.clear();
        let read = self.reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut self.buffer).map_err(|e| {
            let what = format!("{} line {}", self.name, self.number + 1);
            read_error(self.name, what, &e)
        })?;
        if read == 0 {
            return Ok(false);
        }
        self.number += 1;
        if self.number == 1 && self.buffer.starts_with(MARK) {
            self.buffer.drain(..MARK.len());
        }
        if read as u64 == LONGEST_LINE && self.buffer.last() != Some(&b'\n') {
            return Err(self.line().error(too_long()));
        }
        Ok(true)
    }

    /// Reads on to the next line that is neither blank nor a comment; false at the end.
    fn advance_to_data(&mut self) -> Result<bool> {
        while self.advance()? {
            if self.line().holds_data() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The line in the buffer.
    fn line(&self) -> Line<'_> {
        Line { name: self.name, number: self.number, text: &self.buffer }
    }
}

fn too_long() -> String {
    format!("the line is longer than {LONGEST_LINE} bytes")
}

/// Decimal digits and nothing else.
fn parse_whole(token: &[u8]) -> Option<u64> {
    token.iter().try_fold(0u64, |number, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// The start of a word, for messages.
fn printable(token: &[u8]) -> String {
    const LONGEST: usize = 40;
    let text = String::from_utf8_lossy(&token[..token.len().min(LONGEST)]);
    let shown: String = text.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    if token.len() > LONGEST { format!("{shown}...") } else { shown }
}

/// Reads the banner, which is the first line.
fn read_banner<R: BufRead>(lines: &mut Lines<'_, R>) -> Result<(Layout, Field, Symmetry)> {
    if !lines.advance()? {
        return Err(Error::Format { what: format!("{} line 1", lines.name), reason: "the file is empty".into() });
    }
    let line = lines.line();
    let mut words: Vec<String> = line.tokens().take(5).map(|t| printable(t).to_ascii_lowercase()).collect();
    if line.text.starts_with(UTF16[0]) || line.text.starts_with(UTF16[1]) {
        return Err(line.error("the file is text in UTF-16: save it as ASCII or UTF-8"));
    }
    if words.first().is_none_or(|w| w != "%%matrixmarket") {
        return Err(line.error("a Matrix Market file starts with %%MatrixMarket"));
    }
    words.resize(5, String::new());
    let refuse = |what: &str, word: &str, known: &str| {
        Err(line.error(format!("{what} '{word}' is not supported, only {known}")))
    };
    if words[1] != "matrix" {
        return refuse("object", &words[1], "matrix");
    }
    let layout = match words[2].as_str() {
        "coordinate" => Layout::Coordinate,
        "array" => Layout::Array,
        word => return refuse("format", word, "coordinate and array"),
    };
    let field = match words[3].as_str() {
        "real" => Field::Real,
        "integer" => Field::Integer,
        "pattern" => Field::Pattern,
        word => return refuse("field", word, "real, integer and pattern"),
    };
    let symmetry = match words[4].as_str() {
        "general" => Symmetry::General,
        "symmetric" => Symmetry::Symmetric,
        "skew-symmetric" => Symmetry::Skew,
        word => return refuse("symmetry", word, "general, symmetric and skew-symmetric"),
    };
    if field == Field::Pattern && layout == Layout::Array {
        return Err(line.error("a pattern has no array form"));
    }
    if field == Field::Pattern && symmetry == Symmetry::Skew {
        return Err(line.error("a pattern has no signs, so it cannot be skew-symmetric"));
    }
    Ok((layout, field, symmetry))
}

/// Reads banner, sizes and entries.
fn read_content<T: Real>(
    reader: impl BufRead + Send,
    name: &str,
    shape: Shape,
    watch: &mut Watch<'_>,
) -> Result<Content<T>> {
    let mut lines = Lines { reader, name, number: 0, buffer: Vec::new() };
    let (layout, field, symmetry) = read_banner(&mut lines)?;
    if !lines.advance_to_data()? {
        return Err(lines.line().error("the file ends before the line with the sizes"));
    }
    let (rows, cols, count) = read_sizes(&lines.line(), layout, symmetry, shape)?;
    let (entries, numbers) = match layout {
        Layout::Coordinate => read_items(lines, (count, ""), watch, |line, found| {
            let (row, col, value) = if field == Field::Pattern {
                let [row, col] = line.exactly("row and column")?;
                (row, col, T::from_f64(1.0))
            } else {
                let [row, col, token] = line.exactly("row, column and value")?;
                (row, col, line.value(token, field)?)
            };
            let (i, j) = (line.index(row, rows, "row")?, line.index(col, cols, "column")?);
            if i == j && symmetry == Symmetry::Skew && value != T::default() {
                return Err(line.error("the diagonal of a skew-symmetric matrix is 0"));
            }
            expand(symmetry, i, j, value, found);
            Ok(())
        })?,
        Layout::Array => {
            let (values, _) = read_items(lines, (count, symmetry.array()), watch, |line, found: &mut Vec<T>| {
                let [token] = line.exactly("one value")?;
                found.push(line.value(token, field)?);
                Ok(())
            })?;
            (vec![place(rows, symmetry, values.into_iter().flatten())], Vec::new())
        }
    };
    Ok(Content { rows, cols, symmetry, entries, numbers })
}

/// An entry, and its mirror image if only one of the two is in the file.
fn expand<T: Real>(symmetry: Symmetry, i: u32, j: u32, value: T, into: &mut Vec<(u32, u32, T)>) {
    into.push((i, j, value));
    match symmetry {
        Symmetry::Symmetric if i != j => into.push((j, i, value)),
        Symmetry::Skew if i != j => into.push((j, i, -value)),
        _ => {}
    }
}

/// The entries of an array: down the columns, only the lower triangle of symmetric ones. Zeros are left out: a vector
/// does not care, and a sparse matrix is what is not zero.
fn place<T: Real>(rows: usize, symmetry: Symmetry, values: impl Iterator<Item = T>) -> Vec<(u32, u32, T)> {
    let first_row = |j: usize| match symmetry {
        Symmetry::General => 0,
        Symmetry::Symmetric => j,
        Symmetry::Skew => j + 1,
    };
    let (mut i, mut j) = (first_row(0), 0);
    let mut entries = Vec::new();
    for value in values {
        if value != T::default() {
            expand(symmetry, i as u32, j as u32, value, &mut entries);
        }
        i += 1;
        if i == rows {
            j += 1;
            i = first_row(j);
        }
    }
    entries
}

/// Bytes read, and decompressed, before they are parsed.
const BLOCK: usize = 1 << 22;
/// Bytes that one thread parses at a time.
const PIECE: usize = 1 << 18;

/// Content of a stretch of whole lines.
struct Piece<E> {
    items: Vec<E>,
    /// Lines with data before the first that could not be read.
    numbers: Numbers,
    fault: Option<Error>,
}

/// Reads `count` lines of data: `parse` adds what a line holds to a vector. One thread reads and decompresses while the
/// others parse; the order of what is found, and the fault that is reported, are those of the file. `remedy` is what to do about more lines.
fn read_items<E: Send>(
    lines: Lines<'_, impl BufRead + Send>,
    (count, remedy): (u64, &str),
    watch: &mut Watch<'_>,
    parse: impl Fn(&Line<'_>, &mut Vec<E>) -> Result<()> + Sync,
) -> Result<(Vec<Vec<E>>, Vec<Numbers>)> {
    let Lines { reader, name, mut number, .. } = lines;
    let (mut found, mut numbers) = (Vec::new(), Vec::new());
    let mut held = 0;
    std::thread::scope(|scope| {
        let (sender, receiver) = std::sync::mpsc::sync_channel(2);
        scope.spawn(move || send_blocks(reader, &sender));
        for block in receiver {
            let block: Vec<u8> = block.map_err(|e| read_error(name, format!("{name} line {}", number + 1), &e))?;
            let texts = cut(&block);
            let lines = threads::numbers(&texts[..], 1, |_, text| count_lines(text));
            let mut starts = Vec::with_capacity(lines.len());
            for lines in lines {
                starts.push(number);
                number += lines;
            }
            let read = |_, (text, start): (&&[u8], &u64)| read_piece(lines_of(name, text, *start), &parse);
            let pieces = threads::map((&texts[..], &starts[..]), 1, read);
            for ((piece, text), start) in pieces.into_iter().zip(&texts).zip(&starts) {
                if held + piece.numbers.count + u64::from(piece.fault.is_some()) > count {
                    let first_extra = (count - held) as usize;
                    if let Some(line) = lines_of(name, text, *start).filter(Line::holds_data).nth(first_extra) {
                        let reason =
                            format!("expected the end after {count} entries, found '{}'{remedy}", line.shown());
                        return Err(line.error(reason));
                    }
                }
                if let Some(fault) = piece.fault {
                    return Err(fault);
                }
                held += piece.numbers.count;
                found.push(piece.items);
                numbers.push(piece.numbers);
            }
            watch(held, count);
        }
        if held < count {
            let last = Line { name, number, text: &[] };
            return Err(last.error(format!("the file ends after {held} of {count} entries")));
        }
        Ok((found, numbers))
    })
}

/// Sends a stream in blocks that end with a line, until it ends, fails, or nobody wants more.
fn send_blocks(mut reader: impl Read, sender: &std::sync::mpsc::SyncSender<io::Result<Vec<u8>>>) {
    let mut block = Vec::new();
    loop {
        let read = reader.by_ref().take((BLOCK - block.len()) as u64).read_to_end(&mut block);
        let line_end = block.iter().rposition(|b| *b == b'\n').map(|at| at + 1);
        // The last line may have no end. One longer than a block is refused by whoever gets it, in parts or not.
        let whole = match read {
            Ok(0) => block.len(),
            Ok(_) => line_end.unwrap_or(block.len()),
            Err(_) => line_end.unwrap_or(0),
        };
        let rest = block.split_off(whole);
        if !block.is_empty() && sender.send(Ok(block)).is_err() {
            return;
        }
        match read {
            Ok(0) => return,
            Ok(_) => block = rest,
            Err(error) => {
                // It does not matter whether anyone still listens.
                let _ = sender.send(Err(error));
                return;
            }
        }
    }
}

/// Pieces of about [`PIECE`] bytes, each of whole lines.
fn cut(mut block: &[u8]) -> Vec<&[u8]> {
    let mut pieces = Vec::new();
    while block.len() > PIECE {
        let end = block[PIECE..].iter().position(|b| *b == b'\n').map_or(block.len(), |at| PIECE + at + 1);
        let (piece, rest) = block.split_at(end);
        pieces.push(piece);
        block = rest;
    }
    if !block.is_empty() {
        pieces.push(block);
    }
    pieces
}

/// Lines of a text, whether or not the last one is ended.
fn count_lines(text: &[u8]) -> u64 {
    let ends = text.iter().filter(|b| **b == b'\n').count() as u64;
    ends + u64::from(text.last().is_some_and(|b| *b != b'\n'))
}

/// The lines of a text that follow line number `start`.
fn lines_of<'a>(name: &'a str, text: &'a [u8], start: u64) -> impl Iterator<Item = Line<'a>> {
    text.split_inclusive(|b| *b == b'\n').zip(start + 1..).map(move |(text, number)| Line { name, number, text })
}

fn read_piece<'a, E>(
    lines: impl Iterator<Item = Line<'a>>,
    parse: impl Fn(&Line<'_>, &mut Vec<E>) -> Result<()>,
) -> Piece<E> {
    let mut piece = Piece { items: Vec::new(), numbers: Numbers::default(), fault: None };
    for line in lines {
        let read = if line.text.len() as u64 >= LONGEST_LINE {
            Err(line.error(too_long()))
        } else if line.holds_data() {
            parse(&line, &mut piece.items).map(|()| piece.numbers.add(line.number))
        } else {
            Ok(())
        };
        if let Err(fault) = read {
            piece.fault = Some(fault);
            break;
        }
    }
    piece
}

/// Parses and checks the line with the sizes: rows, columns and the number of entries that follow.
fn read_sizes(line: &Line<'_>, layout: Layout, symmetry: Symmetry, shape: Shape) -> Result<(usize, usize, u64)> {
    let (rows, cols, count) = match layout {
        Layout::Coordinate => {
            let [rows, cols, count] = line.exactly("rows, columns and entries")?;
            let count = line.whole(count)?;
            (line.whole(rows)?, line.whole(cols)?, Some(count))
        }
        Layout::Array => {
            let [rows, cols] = line.exactly("rows and columns")?;
            (line.whole(rows)?, line.whole(cols)?, None)
        }
    };
    let limit = u64::from(u32::MAX);
    if rows > limit || cols > limit {
        return Err(line.error(format!("{rows} x {cols} exceeds the limit of {limit}")));
    }
    if symmetry != Symmetry::General && rows != cols {
        return Err(line.error(format!("{rows} x {cols} cannot be symmetric")));
    }
    // Below 2^64, as both are below 2^32.
    let count = count.unwrap_or(match symmetry {
        Symmetry::General => rows * cols,
        Symmetry::Symmetric => rows * (rows + 1) / 2,
        Symmetry::Skew => rows * rows.saturating_sub(1) / 2,
    });
    let length = match shape {
        Shape::Matrix => rows,
        Shape::Vector if rows > 1 && cols > 1 => {
            return Err(line.error(format!("{rows} x {cols} is no vector")));
        }
        Shape::Vector => rows.max(cols),
        Shape::Columns(length) if ![rows, cols].contains(&(length as u64)) => {
            return Err(line.error(unfit(&[rows as usize, cols as usize], length)));
        }
        // Each of them takes some memory, even if it is empty.
        Shape::Columns(_) => rows.saturating_mul(cols).max(rows).max(cols),
    };
    if !plausible_rows(length, count) {
        return Err(line.error(format!("{count} entries are too few for {rows} x {cols}")));
    }
    Ok((rows as usize, cols as usize, count))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

    use super::*;
    use proptest::prelude::*;
    use std::io::Write as _;

    fn matrix(text: &str) -> Result<Csr<f64>> {
        read_matrix_from(text.as_bytes(), "foo.mtx")
    }

    fn dense(a: &Csr<f64>) -> Vec<Vec<f64>> {
        let mut rows = vec![vec![0.0; a.cols()]; a.rows()];
        for i in 0..a.rows() {
            let (columns, values) = a.row(i);
            for (c, v) in columns.iter().zip(values) {
                rows[i][*c as usize] = *v;
            }
        }
        rows
    }

    /// Fails unless reading `text` fails at line `number` with a reason that contains `words`.
    fn refused_at(text: &str, number: u64, words: &str) {
        check_refusal(matrix(text).map(|_| ()), text, number, words);
    }

    fn check_refusal(result: Result<()>, text: &str, number: u64, words: &str) {
        match result {
            Err(Error::Format { what, reason }) => {
                assert_eq!(what, format!("foo.mtx line {number}"), "{text:?}: {reason}");
                assert!(reason.contains(words), "{text:?}: {reason}");
            }
            other => panic!("{text:?}: {other:?}"),
        }
    }

    #[test]
    fn coordinates_with_comments_blank_lines_and_any_case() {
        let a = matrix(
            "%%matrixmarket MATRIX Coordinate REAL General\r\n% words\n\n  % more\n 2 3 4 \n\n1 1 1.5\n\
             %between\n2 3 -2e-1\n\t2\t1\t+.5\n1 3 0\n\n% end",
        )
        .expect("valid");
        assert_eq!(dense(&a), [[1.5, 0.0, 0.0], [0.5, 0.0, -0.2]]);
        assert_eq!(a.nnz(), 4, "a stored zero stays an entry");
    }

    #[test]
    fn integers_and_patterns() {
        let a = matrix("%%MatrixMarket matrix coordinate integer general\n2 2 2\n1 2 -7\n2 1 3\n");
        assert_eq!(dense(&a.expect("valid")), [[0.0, -7.0], [3.0, 0.0]]);
        let a = matrix("%%MatrixMarket matrix coordinate pattern symmetric\n2 2 2\n1 1\n2 1\n");
        assert_eq!(dense(&a.expect("valid")), [[1.0, 1.0], [1.0, 0.0]]);
    }

    #[test]
    fn symmetric_and_skew_symmetric_matrices_are_expanded() {
        // The second entry lies in the upper triangle.
        let text = "%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n2 1 4\n1 3 5\n2 2 6\n";
        let expected = [[0.0, 4.0, 5.0], [4.0, 6.0, 0.0], [5.0, 0.0, 0.0]];
        assert_eq!(dense(&matrix(text).expect("valid")), expected);
        let text = "%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 2\n2 1 4\n1 3 5\n";
        let expected = [[0.0, -4.0, 5.0], [4.0, 0.0, 0.0], [-5.0, 0.0, 0.0]];
        assert_eq!(dense(&matrix(text).expect("valid")), expected);
    }

    #[test]
    fn zeros_on_the_diagonal_of_a_skew_symmetric_matrix_are_read() {
        let text =
            "%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 4\n1 1 0\n2 1 4\n2 2 -0.0\n3 3 0.0e5\n";
        let a = matrix(text).expect("valid");
        assert_eq!(dense(&a), [[0.0, -4.0, 0.0], [4.0, 0.0, 0.0], [0.0, 0.0, 0.0]]);
        assert_eq!(a.nnz(), 5, "a stored zero stays an entry, once");
    }

    #[test]
    fn a_symmetric_file_with_both_triangles_is_refused() {
        for kind in ["real symmetric", "integer symmetric", "real skew-symmetric", "pattern symmetric"] {
            let value = |v: &'static str| if kind.starts_with("pattern") { "" } else { v };
            let word = kind.split_once(' ').unwrap().1;
            let start = format!("%%MatrixMarket matrix coordinate {kind}\n% words\n3 3");
            let lower = format!("2 1 {}\n\n%\n3 1 {}\n", value("4"), value("5"));
            // Equal values, other ones, and 0: all would be added up.
            for other in [value("4"), value("-4"), value("7"), value("0")] {
                let text = format!("{start} 3\n{lower}1 2 {other}\n");
                let wanted = value(if kind.contains("skew") { "-4" } else { "4" });
                let words = if other == wanted {
                    format!(
                        "(1, 2) is the mirror image of line 4, and a {word} file holds one of the two: remove one triangle"
                    )
                } else {
                    format!("(1, 2) is {other}, and its mirror image in line 4 is 4: this matrix is not {word};")
                };
                refused_at(&text, 8, &words);
                refused_at(&text, 8, &format!("write general in place of {word} in line 1"));
            }
            // The first line that doubles another is told, whichever triangle it is of.
            let text = format!("{start} 5\n1 3 {v}\n1 2 {v}\n%\n3 2 {v}\n3 1 {v}\n2 1 {v}\n", v = value("1"));
            refused_at(
                &text,
                8,
                if kind.contains("skew") { "(3, 1) is 1, and" } else { "(3, 1) is the mirror image of line 4" },
            );
            // Each place in one triangle, which may be either.
            let text = format!("{start} 3\n2 1 {v}\n1 3 {v}\n3 2 {v}\n", v = value("1"));
            assert_eq!(matrix(&text).expect("valid").nnz(), 6);
            // Repeated places of one triangle are summed, also beside places of the other.
            let text = format!("{start} 4\n2 1 {v}\n1 3 {v}\n2 1 {v}\n1 3 {v}\n", v = value("1"));
            let a = matrix(&text).expect("valid");
            assert_eq!((a.nnz(), dense(&a)[1][0]), (4, 2.0), "{kind}");
        }
        // A general file may hold what it likes.
        let text = "%%MatrixMarket matrix coordinate real general\n2 2 2\n2 1 4\n1 2 4\n";
        assert_eq!(dense(&matrix(text).expect("valid")), [[0.0, 4.0], [4.0, 0.0]]);
        // An array has room for one triangle.
        let text = "%%MatrixMarket matrix array real symmetric\n2 2\n1\n2\n2\n4\n";
        refused_at(text, 6, "write general in line 1 if the file holds the whole matrix");
        let text = "%%MatrixMarket matrix array real skew-symmetric\n2 2\n0\n2\n-2\n0\n";
        refused_at(text, 4, "holds what is below the diagonal; write general");
        // Entries of the diagonal are no images of themselves.
        let text = "%%MatrixMarket matrix coordinate real symmetric\n2 2 3\n1 1 1\n1 1 2\n2 1 3\n";
        assert_eq!(dense(&matrix(text).expect("valid")), [[3.0, 3.0], [3.0, 0.0]]);
    }

    #[test]
    fn a_byte_order_mark_is_skipped() {
        let text = "\u{feff}%%MatrixMarket matrix coordinate real general\r\n1 1 1\r\n1 1 2\r\n";
        assert_eq!(dense(&matrix(text).expect("valid")), [[2.0]]);
        refused_at(&text.replace("1 1 2", "1 1 x"), 3, "'x'");
        // Once, and at the start alone.
        refused_at(&format!("\u{feff}{text}"), 1, "starts with %%MatrixMarket");
        for order in [u16::to_le_bytes as fn(u16) -> [u8; 2], u16::to_be_bytes] {
            let wide: Vec<u8> = text.encode_utf16().flat_map(order).collect();
            let refused = read_matrix_from::<f64>(&wide[..], "foo.mtx").unwrap_err().to_string();
            assert!(refused.contains("UTF-16"), "{refused}");
        }
    }

    #[test]
    fn arrays_run_down_the_columns() {
        let a = matrix("%%MatrixMarket matrix array real general\n2 3\n1\n2\n0\n4\n5\n6\n");
        let a = a.expect("valid");
        assert_eq!(dense(&a), [[1.0, 0.0, 5.0], [2.0, 4.0, 6.0]]);
        assert_eq!(a.nnz(), 5, "zeros of an array are no entries");
        let a = matrix("%%MatrixMarket matrix array integer symmetric\n2 2\n1\n2\n3\n");
        assert_eq!(dense(&a.expect("valid")), [[1.0, 2.0], [2.0, 3.0]]);
        let a = matrix("%%MatrixMarket matrix array real skew-symmetric\n3 3\n1\n2\n3\n");
        let expected = [[0.0, -1.0, -2.0], [1.0, 0.0, -3.0], [2.0, 3.0, 0.0]];
        assert_eq!(dense(&a.expect("valid")), expected);
    }

    #[test]
    fn repeated_places_are_summed() {
        let a = matrix("%%MatrixMarket matrix coordinate real general\n1 2 3\n1 2 1\n1 1 2\n1 2 4\n");
        let a = a.expect("valid");
        assert_eq!((dense(&a), a.nnz()), (vec![vec![2.0, 5.0]], 2));
    }

    #[test]
    fn empty_matrices() {
        for sizes in ["0 0 0", "3 0 0", "0 3 0", "2 2 0"] {
            let a = matrix(&format!("%%MatrixMarket matrix coordinate real general\n{sizes}\n"));
            assert_eq!(a.expect("valid").nnz(), 0);
        }
        let a = matrix("%%MatrixMarket matrix array real skew-symmetric\n1 1\n").expect("valid");
        assert_eq!((a.rows(), a.nnz()), (1, 0));
        let a = matrix("%%MatrixMarket matrix array real general\n0 4294967295\n").expect("valid");
        assert_eq!((a.rows(), a.cols()), (0, u32::MAX as usize));
    }

    #[test]
    fn banners_that_cannot_be_read_are_refused_by_name() {
        refused_at("", 1, "empty");
        refused_at("1 1 1\n", 1, "%%MatrixMarket");
        refused_at("\n%%MatrixMarket matrix array real general\n", 1, "%%MatrixMarket");
        for (banner, word) in [
            ("vector coordinate real general", "'vector'"),
            ("matrix elemental real general", "'elemental'"),
            ("matrix coordinate complex hermitian", "'complex'"),
            ("matrix coordinate Complex general", "'complex'"),
            ("matrix coordinate real Hermitian", "'hermitian'"),
            ("matrix coordinate real", "symmetry ''"),
            ("matrix array pattern general", "pattern"),
            ("matrix coordinate pattern skew-symmetric", "pattern"),
        ] {
            refused_at(&format!("%%MatrixMarket {banner}\n1 1 1\n1 1 1\n"), 1, word);
        }
    }

    #[test]
    fn sizes_that_cannot_be_are_refused() {
        let banner = "%%MatrixMarket matrix coordinate real general\n%\n";
        refused_at(banner, 2, "before the line with the sizes");
        for (sizes, words) in [
            ("2 2", "expected rows, columns and entries"),
            ("2 2 1 1", "found '1' after them"),
            ("two 2 1", "'two' is no whole number"),
            ("-2 2 1", "'-2'"),
            ("2 2.0 1", "'2.0'"),
            ("2 2 99999999999999999999", "is no whole number"),
            ("4294967296 2 1", "exceeds the limit"),
            ("2 4294967296 1", "exceeds the limit"),
            ("4294967295 2 1", "too few"),
        ] {
            refused_at(&format!("{banner}{sizes}\n1 1 1\n"), 3, words);
        }
        refused_at("%%MatrixMarket matrix array real symmetric\n2 3\n", 2, "symmetric");
        refused_at("%%MatrixMarket matrix coordinate real skew-symmetric\n2 3 0\n", 2, "symmetric");
    }

    #[test]
    fn entries_that_cannot_be_are_refused_at_their_line() {
        let start = "%%MatrixMarket matrix coordinate real general\n2 3 2\n1 1 1\n%\n";
        for (entry, words) in [
            ("0 1 1", "row 0 lies outside 1..=2"),
            ("3 1 1", "row 3 lies outside 1..=2"),
            ("1 0 1", "column 0 lies outside 1..=3"),
            ("1 4 1", "column 4 lies outside 1..=3"),
            ("1 2", "expected row, column and value, found '1 2'"),
            ("1 2 3 4", "found '4' after them"),
            ("1 2 x", "'x' is no number"),
            ("1 2 1.0.0", "is no number"),
            ("1 2 0x10", "is no number"),
            ("1 2 nan", "not finite"),
            ("1 2 -inf", "not finite"),
            ("1 2 1e999", "not finite in fp64"),
            ("1 b 1", "'b' is no whole number"),
            ("1 \u{1} 1", "'?'"),
        ] {
            refused_at(&format!("{start}{entry}\n"), 5, words);
        }
        refused_at(start, 4, "ends after 1 of 2 entries");
        refused_at(&format!("{start}2 2 2\n\n%\n1 3 1\n"), 8, "expected the end");
        let integer = "%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 1.5\n";
        refused_at(integer, 3, "no integer");
        let skew = "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 2 1\n";
        refused_at(skew, 3, "the diagonal of a skew-symmetric matrix is 0");
        let pattern = "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n2 2 1\n";
        refused_at(pattern, 3, "after them");
        let array = "%%MatrixMarket matrix array real general\n2 1\n1\n";
        refused_at(array, 3, "ends after 1 of 2");
        refused_at(&format!("{array}2 3\n"), 4, "expected one value");
        refused_at(&format!("{array}2\n3\n"), 5, "expected the end");
    }

    #[test]
    fn values_beyond_single_precision_are_refused() {
        let text = "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 1e39\n";
        assert!(matrix(text).is_ok());
        let single = read_matrix_from::<f32>(text.as_bytes(), "foo.mtx").map(|_| ());
        check_refusal(single, text, 3, "not finite in fp32");
    }

    #[test]
    fn lines_without_end_are_refused() {
        let mut text = String::from("%%MatrixMarket matrix coordinate real general\n%");
        text.push_str(&"x".repeat(3 << 20));
        refused_at(&text, 2, "longer than");
    }

    /// Longer than the blocks that are read and the pieces that are parsed at once.
    #[test]
    fn long_files_are_the_same_in_pieces() {
        let n = 400_000;
        let mut text = format!("%%MatrixMarket matrix coordinate real general\n% a comment\n{n} {n} {}\n", 2 * n);
        for i in 1..=n {
            // Blank lines and comments in between, and entries out of order.
            let gap = if i % 1000 == 0 { "\n  % in between\n" } else { "" };
            text += &format!("{i} {i} {}.5\n{gap}{i} 1 -1\n", i % 7);
        }
        assert!(text.len() > 2 * BLOCK);
        let mut seen = Vec::new();
        let content =
            read_content::<f64>(text.as_bytes(), "foo.mtx", Shape::Matrix, &mut |done, of| seen.push((done, of)));
        let content = content.unwrap();
        assert!(
            seen.len() > 2 && seen.is_sorted() && seen.last() == Some(&(2 * n as u64, 2 * n as u64)),
            "{seen:?}"
        );
        let a = Csr::from_stretches(content.rows, content.cols, &content.entries).unwrap();
        assert_eq!(a.nnz(), 2 * n - 1);
        for i in [0, 1, 999, 123_456, n - 1] {
            let diagonal = ((i + 1) % 7) as f64 + 0.5;
            let wanted = if i == 0 { vec![(0, diagonal - 1.0)] } else { vec![(0, -1.0), (i as u32, diagonal)] };
            let (columns, values) = a.row(i);
            assert_eq!(columns.iter().copied().zip(values.iter().copied()).collect::<Vec<_>>(), wanted, "row {i}");
        }
        // Faults are found at their line, the first one first, wherever pieces begin.
        let lines: Vec<&str> = text.lines().collect();
        for (at, second) in [(3, 4), (77_777, 500_000), (500_001, 500_002), (lines.len() - 1, lines.len() - 1)] {
            let mut damaged = lines.clone();
            damaged[at] = "1 x 1";
            damaged[second] = if second == at { damaged[at] } else { "0 0 0" };
            let error = matrix(&damaged.join("\n")).unwrap_err().to_string();
            assert!(error.contains(&format!("line {}:", at + 1)) && error.contains("'x'"), "{error}");
        }
        let fewer = matrix(&lines[..lines.len() - 1].join("\n")).unwrap_err().to_string();
        assert!(
            fewer.contains(&format!("line {}", lines.len() - 1)) && fewer.contains("799999 of 800000"),
            "{fewer}"
        );
        let more = matrix(&format!("{text}\n\n2 2 9\nnonsense")).unwrap_err().to_string();
        assert!(more.contains(&format!("line {}", lines.len() + 3)) && more.contains("'2 2 9'"), "{more}");
    }

    /// Line numbers are right in files of several blocks and pieces, with gaps.
    #[test]
    fn doubled_places_are_found_in_long_files() {
        let n = 300_000;
        let mut text = format!("%%MatrixMarket matrix coordinate real symmetric\n{n} {n} {}\n", 2 * n - 1);
        for i in 1..=n {
            text += if i % 1000 == 0 { "\n% in between\n" } else { "" };
            text += &format!("{i} {i} 2.5\n");
            if i > 1 {
                // Either triangle.
                text += &if i % 2 == 0 { format!("{i} {} -1\n", i - 1) } else { format!("{} {i} -1\n", i - 1) };
            }
        }
        assert!(text.len() > BLOCK);
        assert_eq!(matrix(&text).unwrap().nnz(), 3 * n - 2);
        let lines: Vec<&str> = text.lines().collect();
        let (first, second) =
            (lines.iter().position(|l| *l == "1234 1233 -1"), lines.iter().position(|l| *l == "250000 249999 -1"));
        let (first, second) = (first.unwrap(), second.unwrap());
        let mut doubled = lines.clone();
        doubled[second] = "1233 1234 -1";
        refused_at(
            &doubled.join("\n"),
            second as u64 + 1,
            &format!("(1233, 1234) is the mirror image of line {}", first + 1),
        );
    }

    #[test]
    fn headers_that_promise_too_much_cost_nothing() {
        let sizes = "4000000000 4000000000 18446744073709551615";
        let text = format!("%%MatrixMarket matrix coordinate real symmetric\n{sizes}\n1 1 1\n");
        refused_at(&text, 3, "ends after 1 of");
        let text = "%%MatrixMarket matrix array real general\n4294967295 4294967295\n1\n";
        refused_at(text, 3, "ends after 1 of");
        refused_at("%%MatrixMarket matrix array real general\n4294967295 0\n", 2, "too few");
    }

    #[test]
    fn vectors() {
        let vector = |text: &str| read_vector_from::<f64>(text.as_bytes(), "foo.mtx");
        let array = "%%MatrixMarket matrix array real general\n";
        for sizes in ["3 1", "1 3"] {
            let v = vector(&format!("{array}{sizes}\n1\n0\n2\n")).expect("valid");
            assert_eq!(v, [1.0, 0.0, 2.0]);
        }
        let coordinate = "%%MatrixMarket matrix coordinate real general\n";
        let v = vector(&format!("{coordinate}4 1 3\n3 1 2\n1 1 5\n3 1 1\n")).expect("valid");
        assert_eq!(v, [5.0, 0.0, 3.0, 0.0]);
        let v = vector(&format!("{coordinate}1 4 1\n1 3 2\n")).expect("valid");
        assert_eq!(v, [0.0, 0.0, 2.0, 0.0]);
        assert!(vector(&format!("{coordinate}4 0 0\n")).expect("valid").is_empty());
        let text = format!("{coordinate}2 2 1\n1 1 1\n");
        check_refusal(vector(&text).map(|_| ()), &text, 2, "no vector");
        let text = format!("{coordinate}1 4000000000 1\n1 1 1\n");
        check_refusal(vector(&text).map(|_| ()), &text, 2, "too few");
    }

    #[test]
    fn files_plain_compressed_damaged_and_missing() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("foo.mtx");
        assert!(matches!(read_matrix::<f64>(&path), Err(Error::File { .. })));
        assert!(matches!(read_vector::<f64>(&path), Err(Error::File { .. })));
        let text = "%%MatrixMarket matrix coordinate real general\n2 1 1\n1 1 0.1\n";
        std::fs::write(&path, text).expect("write");
        let plain = read_matrix::<f64>(&path).expect("valid");
        assert_eq!(read_vector::<f64>(&path).expect("valid"), [0.1, 0.0]);
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(text.as_bytes()).expect("memory");
        let compressed = encoder.finish().expect("memory");
        std::fs::write(&path, &compressed).expect("write");
        assert_eq!(read_matrix::<f64>(&path).expect("valid"), plain);
        std::fs::write(&path, &compressed[..compressed.len() - 12]).expect("write");
        let cut = read_matrix::<f64>(&path);
        let Err(Error::Format { what, .. }) = cut else {
            panic!("{cut:?}");
        };
        assert!(what.starts_with("foo.mtx line "), "{what}");
    }

    #[test]
    fn what_has_no_decimal_form_is_not_written() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("foo.mtx");
        let a = Csr::from_triplets(1, 2, &[(0, 0, 1.0), (0, 1, f64::NAN)]).expect("valid");
        let written = write_matrix(&path, &a);
        assert!(matches!(written, Err(Error::NotFinite { index: 1, .. })));
        assert!(!path.exists());
    }

    #[test]
    fn written_files_are_short_and_always_the_same() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("foo.mtx");
        let a = Csr::from_triplets(2, 2, &[(1, 0, 0.1f32), (0, 1, 1e30), (0, 0, -2.0)]);
        write_matrix(&path, &a.expect("valid")).expect("writable");
        let text = std::fs::read_to_string(&path).expect("text");
        let expected = "%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 -2.0\n1 2 1e30\n2 1 0.1\n";
        assert_eq!(text, expected);
    }

    fn written_and_read<T: Real>(entries: &[(usize, usize, T)]) -> (Csr<T>, Csr<T>) {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("foo.mtx");
        let a = Csr::from_triplets(7, 5, entries).expect("valid");
        write_matrix(&path, &a).expect("writable");
        let back = read_matrix(&path).expect("just written");
        (a, back)
    }

    const SEEDS: [&str; 3] = [
        "%%MatrixMarket matrix coordinate real symmetric\n% c\n3 3 3\n1 1 1.5\n2 1 -2e1\n3 3 0\n",
        "%%MatrixMarket matrix array integer general\n2 2\n1\n2\n3\n4\n",
        "%%MatrixMarket matrix coordinate pattern general\n2 9 2\n1 1\n2 9\n",
    ];

    proptest! {
        #[test]
        fn double_precision_survives_a_file(
            entries in prop::collection::btree_map(
                (0usize..7, 0usize..5),
                any::<f64>().prop_filter("finite", |v| v.is_finite()),
                0..20,
            )
        ) {
            let entries: Vec<_> = entries.into_iter().map(|((i, j), v)| (i, j, v)).collect();
            let (a, back) = written_and_read(&entries);
            let bits = |a: &Csr<f64>| a.values().iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            prop_assert_eq!(bits(&a), bits(&back));
            prop_assert_eq!(a, back);
        }

        #[test]
        fn single_precision_survives_a_file(
            entries in prop::collection::btree_map(
                (0usize..7, 0usize..5),
                any::<f32>().prop_filter("finite", |v| v.is_finite()),
                0..20,
            )
        ) {
            let entries: Vec<_> = entries.into_iter().map(|((i, j), v)| (i, j, v)).collect();
            let (a, back) = written_and_read(&entries);
            let bits = |a: &Csr<f32>| a.values().iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            prop_assert_eq!(bits(&a), bits(&back));
            prop_assert_eq!(a, back);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = read_matrix_from::<f64>(&bytes[..], "foo.mtx");
            let mut with_banner = SEEDS[0].as_bytes()[..48].to_vec();
            with_banner.extend(bytes);
            let _ = read_matrix_from::<f32>(&with_banner[..], "foo.mtx");
            let _ = read_vector_from::<f64>(&with_banner[..], "foo.mtx");
        }

        #[test]
        fn damaged_files_are_read_or_refused(
            seed in 0usize..SEEDS.len(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
            digits in prop::collection::vec((any::<prop::sample::Index>(), b'0'..=b'9'), 0..6),
            end in any::<prop::sample::Index>(),
            cut in any::<bool>(),
        ) {
            let mut bytes = SEEDS[seed].as_bytes().to_vec();
            for (at, byte) in changes.into_iter().chain(digits) {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            if cut {
                bytes.truncate(end.index(bytes.len()));
            }
            let _ = read_matrix_from::<f64>(&bytes[..], "foo.mtx");
            let _ = read_vector_from::<f32>(&bytes[..], "foo.mtx");
        }
    }
}
