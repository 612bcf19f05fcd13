//! Kinds of arrays, and the order in which their rows are summed.

use super::entries::Entries;

/// `FORMAT` of `cl/linear/format.cl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub(crate) enum Kind {
    Csr = 0,
    EllpackR = 1,
    Ellpack = 2,
    Sliced = 3,
    Sorted = 4,
    Diagonals = 5,
    Blocks = 6,
    Dense = 7,
    Hybrid = 8,
    Coordinates = 9,
    Adaptive = 10,
    Stencil = 11,
    /// An operator has computed the product; the result already holds it.
    External = 12,
    /// The transposed of [`Kind::Diagonals`], in its values: diagonal `k` of `A` is diagonal `-k` of `A'`, read at a shifted place
    /// (krueger-westermann-2003, 2).
    Shifted = 13,
    Banded = 14,
}

/// Arrangement of the arrays: the compile-time constants of the kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrangement {
    pub(crate) kind: Kind,
    /// Lanes that share a row: lane `l` adds entries `l, l + lanes, ...`; lanes fold by halving. A power of two up to
    /// 32. What of the format reaches the bits.
    pub(crate) lanes: usize,
    /// Rows and columns of a block of [`Kind::Blocks`]; the number of diagonals of [`Kind::Diagonals`] and [`Kind::Shifted`], or of points
    /// of [`Kind::Stencil`], if loops over them are better unrolled, else 1.
    pub(crate) block: usize,
    /// True if row offsets take 64 bits, or if the grid of a [`Kind::Stencil`] has three dimensions.
    pub(crate) wide: bool,
    pub(crate) entries: Entries,
}

impl Arrangement {
    /// One lane a row, nothing packed.
    pub(crate) const fn of(kind: Kind) -> Self {
        Self { kind, lanes: 1, block: 1, wide: false, entries: Entries::Plain }
    }
}

/// Words before the points of [`Kind::Stencil`], `STENCIL_HEADER` of `cl/linear/format.cl`.
pub(crate) const STENCIL_HEADER: usize = 12;

/// Word of the header that says where the table of rows by kind starts, 0 if there is none; `STENCIL_TABLE` of `cl/linear/format.cl`.
pub(crate) const STENCIL_TABLE: usize = 10;

/// Words of that table before its rows: kinds of x and y, and by how many the inner points of x, y and z are more than their one kind.
/// `TABLE_HEADER` of `cl/linear/format.cl`.
pub(crate) const TABLE_HEADER: usize = 5;
