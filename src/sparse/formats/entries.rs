//! Encodings of entries.

/// Storage of the entries of a format, `ENTRIES` of `cl/linear/format.cl`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub(crate) enum Entries {
    /// A word for the column, and the value.
    #[default]
    Plain = 0,
    /// 16 bits for the column, and the value.
    Short = 1,
    /// 16 bits for the column minus the place of the row, and the value.
    Near = 2,
    /// A word for the column and for the value's place in a table; of [`Kind::Diagonals`] 8 bits for that place alone.
    Coded = 3,
    /// As [`Entries::Plain`], with the value in 32 bits, of which `f32` holds it exactly.
    Single = 4,
    /// As [`Entries::Short`], with such a value.
    ShortSingle = 5,
    /// As [`Entries::Near`], with such a value.
    NearSingle = 6,
}

impl Entries {
    /// Tells if values are in 32 bits where `T` has more.
    pub(crate) fn is_stored_f32(self) -> bool {
        matches!(self, Self::Single | Self::ShortSingle | Self::NearSingle)
    }

    /// Tells if values are packed, as other values may not be: in a table, or in 32 bits.
    pub(crate) fn packs_values(self) -> bool {
        self == Self::Coded || self.is_stored_f32()
    }
}
