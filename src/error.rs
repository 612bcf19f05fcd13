//! The one error type: variants a caller can act on, fields instead of sentences.

use std::path::PathBuf;

/// Errors before or during the work. Not converging is no error: it is a
/// [`Stop`](crate::Stop) in the report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Two things that must fit each other do not.
    #[error("{what}: expected {expected}, found {found}")]
    Shape {
        /// Name of the length or dimension.
        what: &'static str,
        /// The length that would fit.
        expected: usize,
        /// The length that was given.
        found: usize,
    },
    /// A sparse matrix whose arrays contradict each other.
    #[error("matrix structure: {what}{}", row.map_or(String::new(), |row| format!(" (row {row})")))]
    Structure {
        /// The fault.
        what: String,
        /// The row in which it was seen, if it is one of a row.
        row: Option<usize>,
    },
    /// NaN or infinity in input data.
    #[error("{what} holds a value that is not finite at index {index} (from 0)")]
    NotFinite {
        /// Name of the array.
        what: String,
        /// The first such index.
        index: usize,
    },
    /// A value outside its range.
    #[error("option {name}: {reason}")]
    Option {
        /// Name of the argument or field.
        name: &'static str,
        /// The value, and those that are possible.
        reason: String,
    },
    /// A text that names none of the things it may name.
    #[error("option {name}: '{text}' is none of {known}")]
    Name {
        /// Name of the argument or field.
        name: &'static str,
        /// The text.
        text: String,
        /// Names that are known, with commas between them, or words that say what is.
        known: String,
    },
    /// Values, or objects, that are right one by one and cannot be used together: a method and a preconditioner, an operator and a
    /// product that it does not have. Another choice of one of them helps.
    #[error("option {name}: {reason}")]
    Conflict {
        /// Name of the argument or field that cannot be used beside the others.
        name: &'static str,
        /// The reason, and what to take instead if something is known.
        reason: String,
    },
    /// No device matches what was asked for.
    #[error("no device matches '{wanted}': {seen}")]
    NoDevice {
        /// The filter, as given.
        wanted: String,
        /// Fault that was seen, or the reason why nothing could be read.
        seen: String,
    },
    /// The device lacks something the work needs.
    #[error("{device} cannot do this: {needs}")]
    Unsupported {
        /// The device's name.
        device: String,
        /// Feature that is missing, and what would help.
        needs: String,
    },
    /// A device gave another answer than the host, which has the same bits if all is well.
    #[error(
        "{device} cannot be trusted: {what}; run the program doctor, or name another device in RESIDUUM_DEVICE"
    )]
    Untrustworthy {
        /// The device's name.
        device: String,
        /// The fault.
        what: String,
    },
    /// The buffers of a problem do not fit the device.
    #[error("{device}: {what} needs {needed} bytes, the limit is {available} bytes; {help}")]
    Memory {
        /// The device's name.
        device: String,
        /// Name of the buffer, or words for all of them together.
        what: String,
        /// Bytes needed.
        needed: u64,
        /// Bytes there are.
        available: u64,
        /// Advice.
        help: &'static str,
    },
    /// A set-up that was not done when its time was over.
    #[error("{what} was not made within the time limit: allow more time, or take another")]
    OutOfTime {
        /// Name of what was being made.
        what: String,
    },
    /// Objects of different devices were used together.
    #[error("{what} lives on another device than the rest of this operation ({expected})")]
    DeviceMismatch {
        /// The stray object.
        what: &'static str,
        /// The device of the operation.
        expected: String,
    },
    /// An OpenCL C program did not build.
    #[error("{device} could not build {file} with '{options}':\n{log}")]
    Build {
        /// The device's name.
        device: String,
        /// The kernel file.
        file: String,
        /// The options it was built with.
        options: String,
        /// The compiler's words.
        log: String,
    },
    /// An OpenCL call failed.
    #[error("{device}: {call} failed with {name} ({code})")]
    Api {
        /// The device's name, or `OpenCL` before one was chosen.
        device: String,
        /// The call, with the kernel's name if there is one.
        call: String,
        /// The code's name in the OpenCL headers.
        name: &'static str,
        /// The code.
        code: i32,
    },
    /// A file that cannot be read or written.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The operating system's words.
        reason: String,
    },
    /// A file, or a stream, that does not hold what it should.
    #[error("{what}: {reason}")]
    Format {
        /// The file format, with the line if one is known.
        what: String,
        /// The fault, and what would be right.
        reason: String,
    },
}

impl Error {
    /// Name of the argument or field at fault, and the reason; none unless this is [`Error::Option`], [`Error::Name`] or
    /// [`Error::Conflict`].
    ///
    /// ```
    /// use residuum::Method;
    ///
    /// let error = "cq".parse::<Method>().unwrap_err();
    /// let (name, reason) = error.argument().expect("a name that is unknown");
    /// assert_eq!(name, "method");
    /// assert!(reason.starts_with("'cq' is none of cg, "));
    /// ```
    pub fn argument(&self) -> Option<(&'static str, String)> {
        match self {
            Self::Option { name, reason } | Self::Conflict { name, reason } => Some((name, reason.clone())),
            Self::Name { name, text, known } => Some((name, format!("'{text}' is none of {known}"))),
            _ => None,
        }
    }
}

/// `Result` with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// The error of a text that is none of the `known` names.
pub(crate) fn unknown(name: &'static str, text: &str, known: impl Into<String>) -> Error {
    Error::Name { name, text: text.into(), known: known.into() }
}

/// The one of `all` that `text` names.
pub(crate) fn named<V: Copy>(
    name: &'static str,
    text: &str,
    all: &[V],
    name_of: impl Fn(V) -> &'static str,
) -> Result<V> {
    all.iter().copied().find(|known| name_of(*known) == text).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|known| name_of(*known)).collect();
        unknown(name, text, names.join(", "))
    })
}

/// Fails unless two lengths agree.
pub(crate) fn same_length(what: &'static str, expected: usize, found: usize) -> Result<()> {
    if expected == found { Ok(()) } else { Err(Error::Shape { what, expected, found }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_a_row_only_where_there_is_one() {
        let words = |row| Error::Structure { what: "it is wrong".into(), row }.to_string();
        assert_eq!(words(None), "matrix structure: it is wrong");
        assert_eq!(words(Some(7)), "matrix structure: it is wrong (row 7)");
    }
}
