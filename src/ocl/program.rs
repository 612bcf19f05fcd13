//! OpenCL C programs: where their source comes from and with which options they are built.

use std::fmt::Write as _;
use std::path::PathBuf;

use flate2::Crc;

use crate::error::{Error, Result};
use crate::number::{Accumulation, Precision};

/// What kernels that multiply are joined to.
const ROWS: &[&str] = &["common", "format", "ray", "row"];

/// The kernel files, embedded: `(name, files joined before it, text)`.
pub(crate) const FILES: &[(&str, &[&str], &str)] = &[
    ("common", &[], include_str!("../../cl/common.cl")),
    ("format", &["common"], include_str!("../../cl/format.cl")),
    ("ray", &["common", "format"], include_str!("../../cl/ray.cl")),
    ("row", &["common", "format", "ray"], include_str!("../../cl/row.cl")),
    ("vector", &["common"], include_str!("../../cl/vector.cl")),
    ("reduce", &["common"], include_str!("../../cl/reduce.cl")),
    ("scatter", &["common"], include_str!("../../cl/scatter.cl")),
    ("product", ROWS, include_str!("../../cl/product.cl")),
    ("resident", &["common"], include_str!("../../cl/resident.cl")),
    ("cg", &["common", "format", "ray", "row", "resident"], include_str!("../../cl/cg.cl")),
    ("cgnr", &["common", "format", "ray", "row", "resident"], include_str!("../../cl/cgnr.cl")),
    ("sweep", ROWS, include_str!("../../cl/sweep.cl")),
    ("recurrence", &["common"], include_str!("../../cl/recurrence.cl")),
    ("pass", &["common", "recurrence"], include_str!("../../cl/pass.cl")),
    ("step", &["common", "format", "ray", "row", "recurrence"], include_str!("../../cl/step.cl")),
];

/// The compile-time constants of a kernel: one value of each, the neutral one where a file does not use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Variant {
    pub(crate) precision: Precision,
    pub(crate) accumulation: Accumulation,
    pub(crate) work_group: u32,
    pub(crate) lanes: u32,
    /// Those of a second length.
    pub(crate) pixel_lanes: u32,
    pub(crate) format: u32,
    pub(crate) wide: u32,
    pub(crate) block: u32,
    pub(crate) row_lanes: u32,
    /// Those of a second matrix; the same as the first where there is none.
    pub(crate) other_format: u32,
    pub(crate) other_lanes: u32,
    /// Places of local memory for a vector.
    pub(crate) staged: u32,
    /// Entries of a row whose loads are under way together.
    pub(crate) loads: u32,
    pub(crate) columns: u32,
    pub(crate) gather: u32,
    pub(crate) edges: u32,
    pub(crate) part: u32,
    pub(crate) operation: u32,
    pub(crate) blend: u32,
    pub(crate) statements: [u32; 4],
    pub(crate) touched: u32,
    pub(crate) dots: u32,
    pub(crate) ptx: u32,
    /// Registers an item may take, for NVIDIA's compiler; 0 where it decides.
    pub(crate) registers: u32,
}

impl Variant {
    /// The options of a build, in a fixed order: they are part of what identifies a program.
    pub(crate) fn options(&self) -> String {
        let mut text = String::from("-cl-std=CL1.2");
        let (real, word) = match self.precision {
            Precision::Single => ("float", "uint"),
            Precision::Double => ("double", "ulong"),
        };
        let pair = u32::from(self.accumulation == Accumulation::Pair);
        for (name, value) in [
            ("REAL", real.to_string()),
            ("WORD", word.to_string()),
            ("PAIR", pair.to_string()),
            ("WG", self.work_group.to_string()),
            ("LANES", self.lanes.to_string()),
            ("PIXEL_LANES", self.pixel_lanes.to_string()),
            ("FORMAT", self.format.to_string()),
            ("WIDE", self.wide.to_string()),
            ("BLOCK", self.block.to_string()),
            ("ROW_LANES", self.row_lanes.to_string()),
            ("OTHER_FORMAT", self.other_format.to_string()),
            ("OTHER_LANES", self.other_lanes.to_string()),
            ("STAGED", self.staged.to_string()),
            ("LOADS", self.loads.to_string()),
            ("COLUMNS", self.columns.to_string()),
            ("GATHER", self.gather.to_string()),
            ("EDGES", self.edges.to_string()),
            ("PART", self.part.to_string()),
            ("OPERATION", self.operation.to_string()),
            ("BLEND", self.blend.to_string()),
            ("STATEMENT_0", self.statements[0].to_string()),
            ("STATEMENT_1", self.statements[1].to_string()),
            ("STATEMENT_2", self.statements[2].to_string()),
            ("STATEMENT_3", self.statements[3].to_string()),
            ("TOUCHED", self.touched.to_string()),
            ("DOTS", self.dots.to_string()),
            ("PTX", self.ptx.to_string()),
            ("ITEM_REGISTERS", self.registers.to_string()),
        ] {
            // Writing to a String cannot fail.
            let _ = write!(text, " -D {name}={value}");
        }
        if self.registers > 0 {
            let _ = write!(text, " -cl-nv-maxrregcount={}", self.registers);
        }
        text
    }
}

/// The text of a program: the files it needs, each behind a `#line` mark so that compilers name file and line.
///
/// With `RESIDUUM_CL_DIR` set, files are read from that folder instead, so that a kernel is edited without a rebuild.
///
/// # Errors
/// [`Error::File`] when the folder is named but a file in it cannot be read, or for a file that is not in [`FILES`].
pub(crate) fn source(file: &str) -> Result<String> {
    let folder = std::env::var_os("RESIDUUM_CL_DIR").map(PathBuf::from);
    let mut text = String::new();
    let known = |name: &str| {
        FILES.iter().find(|f| f.0 == name).ok_or_else(|| Error::File {
            path: format!("cl/{name}.cl").into(),
            reason: "it is none of the kernel files of the library".into(),
        })
    };
    for name in known(file)?.1.iter().chain([&file]) {
        let embedded = known(name)?.2;
        let body = match &folder {
            None => embedded.to_string(),
            Some(folder) => {
                let path = folder.join(format!("{name}.cl"));
                std::fs::read_to_string(&path)
                    .map_err(|e| Error::File { path, reason: format!("{e} (RESIDUUM_CL_DIR names this folder)") })?
            }
        };
        let _ = write!(text, "#line 1 \"cl/{name}.cl\"\n{body}\n");
    }
    Ok(text)
}

/// Checksum of all kernels as they would be built, for what was measured with them.
///
/// # Errors
/// As [`source`].
pub(crate) fn kernels_checksum() -> Result<String> {
    let mut crc = Crc::new();
    for (file, _, _) in FILES {
        crc.update(source(file)?.as_bytes());
    }
    Ok(format!("{:08x}", crc.sum()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_there_is_no_empty_program() {
        assert!(matches!(source("cgg"), Err(Error::File { .. })));
        for (file, needs, text) in FILES {
            let whole = source(file).expect("embedded");
            assert!(!text.is_empty() && whole.ends_with(&format!("{text}\n")));
            assert_eq!(whole.matches("#line 1 ").count(), needs.len() + 1, "{file}");
        }
    }
}
