//! Compile-time constants of kernels.

use crate::number::{Accumulation, Precision};
use crate::ocl::{Context, Defines};
use crate::sparse::Arrangement;

/// Options of every program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Common {
    pub(crate) precision: Precision,
    pub(crate) accumulation: Accumulation,
    /// Work-items of a group.
    pub(crate) work_group: usize,
    /// Lanes of a chunk.
    pub(crate) lanes: usize,
    /// Vectors that lie interleaved.
    pub(crate) columns: usize,
    /// Registers an item may take, for NVIDIA's compiler; 0 if it decides.
    pub(crate) registers: usize,
}

impl Common {
    pub(crate) fn defines(&self, context: &Context) -> Defines {
        let (real, word) = match self.precision {
            Precision::Single => ("float", "uint"),
            Precision::Double => ("double", "ulong"),
        };
        let ptx = context.info().resident_groups > 1;
        let registers = if ptx { self.registers } else { 0 };
        let mut defines = Defines::default();
        defines.set("REAL", real);
        defines.set("WORD", word);
        defines.set("PAIR", u32::from(self.accumulation == Accumulation::Pair));
        defines.set("WG", self.work_group);
        defines.set("LANES", self.lanes);
        defines.set("COLUMNS", self.columns);
        defines.set("PTX", u32::from(ptx));
        defines.set("ITEM_REGISTERS", registers);
        if registers > 0 {
            defines.add(format_args!("-cl-nv-maxrregcount={registers}"));
        }
        defines
    }

    /// A copy for so many columns.
    pub(crate) fn with_columns(self, columns: usize) -> Self {
        Self { columns, ..self }
    }
}

/// Options of kernels that multiply by a matrix: the macros of `cl/linear/format.cl` and `cl/linear/row.cl`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MatrixOptions {
    /// [`Kind`](crate::sparse::Kind) of the matrix.
    pub(crate) format: u32,
    pub(crate) wide: bool,
    pub(crate) block: usize,
    pub(crate) row_lanes: usize,
    pub(crate) entries: u32,
    /// A second and a third matrix; the first if there is none.
    pub(crate) others: [OtherMatrix; 2],
    /// Entries of a row whose loads are under way together.
    pub(crate) loads: usize,
    /// Tells if the vector is `u + scale v`, formed as it is read.
    pub(crate) formed: bool,
    /// Places of local memory for a vector; 0 for none.
    pub(crate) staged: usize,
    /// Steps before a row is stored: 1 it is scaled, 2 a vector is added; [`TOLD`](crate::state::blend::TOLD) if each product says so.
    pub(crate) blend: u32,
}

/// Options of another matrix that the same program multiplies by.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OtherMatrix {
    format: u32,
    row_lanes: usize,
    entries: u32,
}

impl OtherMatrix {
    pub(crate) const fn of(arrangement: Arrangement) -> Self {
        let Arrangement { kind, lanes, entries, .. } = arrangement;
        Self { format: kind as u32, row_lanes: lanes, entries: entries as u32 }
    }
}

impl MatrixOptions {
    /// Options for a matrix, which is read plainly: `loads` entries at a time, nothing formed, staged or added.
    pub(crate) const fn of(arrangement: Arrangement, loads: usize) -> Self {
        let Arrangement { kind, lanes, block, wide, entries } = arrangement;
        Self {
            format: kind as u32,
            wide,
            block,
            row_lanes: lanes,
            entries: entries as u32,
            others: [OtherMatrix::of(arrangement); 2],
            loads,
            formed: false,
            staged: 0,
            blend: 0,
        }
    }

    pub(crate) fn define(&self, defines: &mut Defines) {
        defines.set("FORMAT", self.format);
        defines.set("WIDE", u32::from(self.wide));
        defines.set("BLOCK", self.block);
        defines.set("ROW_LANES", self.row_lanes);
        defines.set("ENTRIES", self.entries);
        let [other, third] = self.others;
        defines.set("OTHER_FORMAT", other.format);
        defines.set("OTHER_LANES", other.row_lanes);
        defines.set("OTHER_ENTRIES", other.entries);
        defines.set("THIRD_FORMAT", third.format);
        defines.set("THIRD_LANES", third.row_lanes);
        defines.set("THIRD_ENTRIES", third.entries);
        defines.set("LOADS", self.loads);
        defines.set("GATHER", 1 + u32::from(self.formed));
        defines.set("STAGED", self.staged);
        defines.set("BLEND", self.blend);
    }
}
