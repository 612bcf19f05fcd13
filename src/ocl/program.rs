//! OpenCL C programs: their texts, and the options they are built with.

use std::fmt::{Display, Write as _};
use std::path::PathBuf;

use flate2::Crc;

use crate::error::{Error, Result};

/// A file of OpenCL C: plain data, embedded in the library.
#[derive(Debug)]
pub(crate) struct File {
    /// Name without ending, after that of its folder in `cl/`.
    pub(crate) name: &'static str,
    /// Files whose texts stand before this one, in this order.
    pub(crate) after: &'static [&'static File],
    /// Numbers that the host knows too, by name: they are defined before the text.
    pub(crate) constants: &'static [(&'static str, i64)],
    pub(crate) text: &'static str,
}

impl File {
    /// Text of the program: each file behind a `#line` mark, so that compilers name file and line.
    ///
    /// If `RESIDUUM_CL_DIR` is set, files are read from that folder instead, so that a kernel is edited without a rebuild.
    ///
    /// # Errors
    /// [`Error::File`] if the folder is named but a file in it cannot be read.
    pub(crate) fn source(&self) -> Result<String> {
        let folder = std::env::var_os("RESIDUUM_CL_DIR").map(PathBuf::from);
        let mut text = String::new();
        for File { name, constants, text: embedded, .. } in self.after.iter().copied().chain([self]) {
            let body = match &folder {
                None => (*embedded).to_string(),
                Some(folder) => {
                    let path = folder.join(format!("{name}.cl"));
                    std::fs::read_to_string(&path).map_err(|e| Error::File {
                        path,
                        reason: format!("{e} (RESIDUUM_CL_DIR names this folder)"),
                    })?
                }
            };
            // Writing to a String cannot fail.
            for (constant, value) in *constants {
                // Beyond 31 bits without a sign; a sign in brackets.
                let _ = match i32::try_from(*value) {
                    Ok(value @ 0..) => writeln!(text, "#define {constant} {value}"),
                    Ok(value) => writeln!(text, "#define {constant} ({value})"),
                    Err(_) => writeln!(text, "#define {constant} {value:#x}"),
                };
            }
            let _ = write!(text, "#line 1 \"cl/{name}.cl\"\n{body}\n");
        }
        Ok(text)
    }
}

/// Checksum of the texts of `files` as they would be built.
///
/// # Errors
/// Errors of [`File::source`].
pub(crate) fn checksum<'f>(files: impl IntoIterator<Item = &'f File>) -> Result<String> {
    let mut crc = Crc::new();
    for file in files {
        crc.update(file.source()?.as_bytes());
    }
    Ok(format!("{:08x}", crc.sum()))
}

/// Options of a build, as one text in a fixed order: it is part of what identifies a program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Defines {
    options: String,
    /// Lines before the text of the program.
    head: String,
}

impl Default for Defines {
    fn default() -> Self {
        Self { options: "-cl-std=CL1.2".into(), head: String::new() }
    }
}

impl Defines {
    /// Adds `-D name=value`.
    pub(crate) fn set(&mut self, name: &str, value: impl Display) {
        let _ = write!(self.options, " -D {name}={value}");
    }

    /// Adds an option of one compiler.
    pub(crate) fn add(&mut self, option: impl Display) {
        let _ = write!(self.options, " {option}");
    }

    /// Adds a line before the text of the program.
    pub(crate) fn put_before(&mut self, line: impl Display) {
        let _ = write!(self.head, "{line}");
    }

    /// Defines a macro as a text with blanks: compilers take none in the value of an option, and a line before the text of the program has it.
    pub(crate) fn put_text(&mut self, name: &str, text: &str) {
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        self.put_before(format_args!("#define {name} {line}\n"));
    }

    pub(crate) fn text(&self) -> &str {
        &self.options
    }

    pub(crate) fn head(&self) -> &str {
        &self.head
    }
}
