//! Entries in fewer bytes: columns in 16 bits, values in a table, or in `f32` where that holds them exactly.
//!
//! A product reads every entry once, so on a GPU its time is that of the bytes. Bits do not change: the same columns and the
//! same values are added in the same order.

use std::iter::repeat_n;

use super::arrangement::{Arrangement, Kind};
use super::choice::Reader;
use super::entries::Entries;
use super::format::SLICE;
use super::layout::{Layout, padding};
use crate::error::{Error, Result, unknown};
use crate::number::sealed::Number;
use crate::number::{Precision, Real};
use crate::reduction::Chunks;
use crate::threads;

/// Bits of a word that hold a value's place in the table, `CODE_BITS` of `cl/linear/format.cl`.
pub(crate) const CODE_BITS: usize = 8;
/// Values of a table.
pub(crate) const TABLE: usize = 1 << CODE_BITS;
/// Entries looked at before all are: most matrices have too many values, and show it soon.
const FIRST_LOOK: usize = 4096;

/// Devices on which entries are stored in fewer bytes, where that loses nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Packing {
    /// On GPUs, for matrices of 24 MB and more: there a product waits for memory. Smaller ones stay in the caches, and CPUs wait
    /// for the loads of `x`; packed, both take as long or longer. The plain matrix has to fit, too: it is made first.
    #[default]
    Auto,
    /// On every device with kernels. The host back end reads plain entries always.
    Always,
    /// Nowhere.
    Never,
}

impl std::str::FromStr for Packing {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "auto" => Ok(Self::Auto),
            "always" => Ok(Self::Always),
            "never" => Ok(Self::Never),
            _ => Err(unknown("packing", text, "auto, always, never")),
        }
    }
}

/// Least bytes of a plain matrix that [`Packing::Auto`] packs: smaller ones lie in the caches of an H200 (cfd1, 22 MB: 7.8 us plain,
/// 8.5 packed; Poisson of 1024², 64 MB: 24.6 and 11.5).
const LARGE: u64 = 24_000_000;

/// Matrices that [`Layout::pack`] may change: those of so many bytes and more, or none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packable(Option<u64>);

impl Packable {
    pub(crate) const NOTHING: Self = Self(None);

    /// Matrices of `reader` that `packing` allows.
    pub(crate) fn of(packing: Packing, reader: Reader) -> Self {
        Self(match (packing, reader) {
            (Packing::Auto, Reader::Gpu) => Some(LARGE),
            (Packing::Always, Reader::Gpu | Reader::CompiledCpu) => Some(0),
            _ => None,
        })
    }
}

/// Distinct values with their places, found by their bits.
struct Table<T> {
    values: Vec<T>,
    /// Place of a value plus one at its hash or behind, 0 where there is none.
    slots: [u16; 4 * TABLE],
}

impl<T: Real> Table<T> {
    fn of(values: impl IntoIterator<Item = T>) -> Option<Self> {
        let mut table = Self { values: Vec::new(), slots: [0; 4 * TABLE] };
        for value in values {
            table.take(value)?;
        }
        Some(table)
    }

    fn bits(value: T) -> u64 {
        match value.number() {
            Number::Single(value) => u64::from(value.to_bits()),
            Number::Double(value) => value.to_bits(),
        }
    }

    /// Slot of a value, or the empty one where it belongs.
    fn slot(&self, value: T) -> usize {
        let bits = Self::bits(value);
        // Multiplied by the golden ratio: its upper bits depend on all of the value's.
        let mut slot = (bits.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % self.slots.len();
        while let Some(held) = self.slots[slot].checked_sub(1)
            && Self::bits(self.values[held as usize]) != bits
        {
            slot = (slot + 1) % self.slots.len();
        }
        slot
    }

    /// Adds a value, unless it is there or the table is full.
    fn take(&mut self, value: T) -> Option<()> {
        let slot = self.slot(value);
        if self.slots[slot] == 0 {
            if self.values.len() == TABLE {
                return None;
            }
            self.values.push(value);
            self.slots[slot] = self.values.len() as u16;
        }
        Some(())
    }

    /// Place of a value that was added.
    fn code(&self, value: T) -> u32 {
        u32::from(self.slots[self.slot(value)]).saturating_sub(1)
    }
}

/// The distinct values, ascending by their bits, or nothing if a table does not hold them.
fn table<T: Real>(values: &[T]) -> Option<Table<T>> {
    Table::of(values.iter().copied().take(FIRST_LOOK))?;
    let parts = threads::map(threads::Chunks(values, 1 << 16), 1, |_, part| Table::of(part.iter().copied()));
    let parts: Option<Vec<Table<T>>> = parts.into_iter().collect();
    let mut found = Table::of(parts?.into_iter().flat_map(|part| part.values))?.values;
    found.sort_unstable_by_key(|value| Table::bits(*value));
    Table::of(found)
}

/// Offset `i` of those that start at word `base` of the row pointers.
#[inline]
pub(crate) fn offset_at(pointers: &[u32], wide: bool, base: usize, i: usize) -> usize {
    if !wide {
        return pointers[base + i] as usize;
    }
    let at = base + 2 * i;
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&pointers[at].to_ne_bytes());
    bytes[4..].copy_from_slice(&pointers[at + 1].to_ne_bytes());
    u64::from_ne_bytes(bytes) as usize
}

/// Shape of a layout: what tells whose entry stands where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape<'a> {
    pub(crate) arrangement: Arrangement,
    pub(crate) rows: usize,
    pub(crate) stride: usize,
    /// Entries with their padding.
    pub(crate) places: usize,
    pub(crate) pointers: &'a [u32],
}

impl Shape<'_> {
    /// The place of the row of each entry: its row, or where that lies among the slices.
    fn rows_of_entries(&self) -> Vec<u32> {
        let Self { arrangement: Arrangement { kind, wide, .. }, rows, stride, places, pointers, .. } = *self;
        let by_rows = |base: usize| {
            let offset = |i| offset_at(pointers, wide, base, i);
            (0..rows).flat_map(|i| repeat_n(i as u32, offset(i + 1) - offset(i))).collect()
        };
        let by_columns = |places: usize| (0..places).map(|at| (at % stride.max(1)) as u32);
        match kind {
            Kind::Csr => by_rows(0),
            Kind::Adaptive => by_rows(pointers[0] as usize),
            Kind::Coordinates => pointers[pointers[1] as usize..].to_vec(),
            Kind::Hybrid => {
                by_columns(pointers[0] as usize * stride).chain(pointers[2..].iter().copied()).collect()
            }
            Kind::Sliced | Kind::Sorted => {
                let starts = &pointers[..=rows.div_ceil(SLICE)];
                let slice = |(s, ends): (usize, &[u32])| {
                    (ends[0]..ends[1]).flat_map(move |_| (0..SLICE).map(move |l| (s * SLICE + l) as u32))
                };
                starts.windows(2).enumerate().flat_map(slice).collect()
            }
            _ => by_columns(places).collect(),
        }
    }

    /// Columns and values of packed entries, a word and a number for each.
    pub(crate) fn unpack<T: Real>(&self, indices: &[u32], values: &[T]) -> (Vec<u32>, Vec<T>) {
        let single;
        let values = if self.arrangement.entries.is_stored_f32() {
            single = from_single(values, self.places);
            &single
        } else {
            values
        };
        let halves = || indices.iter().flat_map(|word| halves(*word)).take(self.places);
        let value = |code: u32| values[code as usize];
        match self.arrangement.entries {
            Entries::Plain | Entries::Single => (indices.to_vec(), values.to_vec()),
            Entries::Short | Entries::ShortSingle => (halves().map(u32::from).collect(), values.to_vec()),
            Entries::Near | Entries::NearSingle => {
                let columns = halves().zip(self.rows_of_entries());
                (columns.map(|(near, row)| row.wrapping_add(near as i16 as u32)).collect(), values.to_vec())
            }
            Entries::Coded if matches!(self.arrangement.kind, Kind::Diagonals | Kind::Shifted) => {
                let codes = indices.iter().flat_map(|word| word.to_ne_bytes()).take(self.places);
                (Vec::new(), codes.map(|code| value(u32::from(code))).collect())
            }
            Entries::Coded => {
                let codes = indices.iter().map(|word| value(word % TABLE as u32));
                (indices.iter().map(|word| word >> CODE_BITS).collect(), codes.collect())
            }
        }
    }
}

/// The two halves of a word, in the order of memory.
fn halves(word: u32) -> [u16; 2] {
    let [a, b, c, d] = word.to_ne_bytes();
    [u16::from_ne_bytes([a, b]), u16::from_ne_bytes([c, d])]
}

/// Words of so many halves.
fn joined(halves: &[u16]) -> Vec<u32> {
    let word = |_, pair: &[u16]| {
        let [a, b] = pair[0].to_ne_bytes();
        let [c, d] = pair.get(1).copied().unwrap_or_default().to_ne_bytes();
        u32::from_ne_bytes([a, b, c, d])
    };
    threads::numbers(threads::Chunks(halves, 2), threads::LEAST, word)
}

/// Two values of 32 bits in the place of each of 64, if `f32` holds all values exactly; padding stays.
fn to_single<T: Real>(values: &[T]) -> Option<Vec<T>> {
    if T::PRECISION == Precision::Single {
        return None;
    }
    // A number below the normal ones may be 0 to a device.
    let single = |v: &T| {
        let (v, rounded) = (v.to_f64(), v.to_f64() as f32);
        (v.is_nan() || f64::from(rounded) == v && (v == 0.0 || rounded.is_normal())).then_some(rounded)
    };
    values.iter().take(FIRST_LOOK).map(single).collect::<Option<Vec<f32>>>()?;
    if !threads::all(values.len(), threads::LEAST, |k| single(&values[k]).is_some()) {
        return None;
    }
    let pair = |_, pair: &[T]| {
        let [low, high] = [Some(&pair[0]), pair.get(1)].map(|v| v.map_or(0.0, |v| v.to_f64() as f32));
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&low.to_ne_bytes());
        bytes[4..].copy_from_slice(&high.to_ne_bytes());
        T::from_f64(f64::from_ne_bytes(bytes))
    };
    Some(threads::numbers(threads::Chunks(values, 2), threads::LEAST, pair))
}

/// The first `count` of the values that [`to_single`] packed.
fn from_single<T: Real>(values: &[T], count: usize) -> Vec<T> {
    let pair = |v: &T| {
        let [a, b, c, d, e, f, g, h] = v.to_f64().to_ne_bytes();
        [[a, b, c, d], [e, f, g, h]].map(|bytes| T::from_f64(f64::from(f32::from_ne_bytes(bytes))))
    };
    values.iter().flat_map(pair).take(count).collect()
}

impl<T: Real> Layout<T> {
    pub(crate) fn shape(&self) -> Shape<'_> {
        let Self { arrangement, rows, stride, places, .. } = *self;
        Shape { arrangement, rows, stride, places, pointers: &self.pointers }
    }

    /// Stores the entries in fewer bytes, as far as `packable` allows and the format has a way. `diagonals` are those in use.
    pub(crate) fn pack(&mut self, packable: Packable, diagonals: &[i64]) {
        let by_entries = match self.arrangement.kind {
            Kind::Csr | Kind::Adaptive | Kind::Coordinates | Kind::EllpackR | Kind::Ellpack => true,
            Kind::Sliced | Kind::Sorted | Kind::Hybrid => true,
            Kind::Diagonals => false,
            Kind::Blocks | Kind::Banded | Kind::Dense | Kind::Stencil | Kind::External | Kind::Shifted => return,
        };
        if packable.0.is_none_or(|least| self.buffers().iter().map(|part| part.1).sum::<u64>() < least) {
            return;
        }
        let coded = self.places > TABLE && (!by_entries || self.cols <= 1 << (32 - CODE_BITS));
        if coded && let Some(table) = table(&self.values) {
            self.indices = match by_entries {
                true => {
                    let entries = (&self.indices[..], &self.values[..]);
                    let word = |_, (column, value): (&u32, &T)| column << CODE_BITS | table.code(*value);
                    threads::numbers(entries, threads::LEAST, word)
                }
                false => {
                    let word = |_, values: &[T]| {
                        let code = |k| values.get(k).map_or(0, |value| table.code(*value) as u8);
                        u32::from_ne_bytes(std::array::from_fn(code))
                    };
                    threads::numbers(threads::Chunks(&self.values, 4), threads::LEAST, word)
                }
            };
            self.why += &format!("; {} distinct values, in a table", table.values.len());
            self.values = table.values;
            self.values.resize(TABLE, padding());
            self.arrangement.entries = Entries::Coded;
        } else if self.places > 0 {
            if by_entries {
                self.pack_columns(diagonals);
            }
            self.pack_values();
        }
    }

    /// Stores values of `f64` in 32 bits each, if `f32` holds all of them.
    fn pack_values(&mut self) {
        if let Some(single) = to_single(&self.values) {
            self.values = single;
            self.arrangement.entries = match self.arrangement.entries {
                Entries::Short => Entries::ShortSingle,
                Entries::Near => Entries::NearSingle,
                _ => Entries::Single,
            };
            self.why += "; values in 32 bits, which hold them";
        }
    }

    fn pack_columns(&mut self, diagonals: &[i64]) {
        if self.cols <= 1 << 16 {
            let columns = threads::numbers(&self.indices[..], threads::LEAST, |_, column| *column as u16);
            self.indices = joined(&columns);
            self.arrangement.entries = Entries::Short;
            self.why += "; columns in 16 bits";
            return;
        }
        // A row's place is no further from the row than the chunk that it is sorted in.
        let most = (1 << 15) + Chunks::of(self.rows).chunk as i64;
        // They ascend.
        if diagonals.first().is_some_and(|offset| *offset < -most)
            || diagonals.last().is_some_and(|offset| *offset > most)
        {
            return;
        }
        let last = self.cols as u32 - 1;
        let rows = self.shape().rows_of_entries();
        let near = |_, (row, column, value): (&u32, &u32, &T)| {
            // Padding names a column that is there.
            let column = if value.is_nan() { last.min(*row) } else { *column };
            i16::try_from(i64::from(column) - i64::from(*row)).ok().map(|near| near as u16)
        };
        let entries = (&rows[..], &self.indices[..], &self.values[..]);
        let near = threads::numbers(entries, threads::LEAST, near);
        if let Some(near) = near.into_iter().collect::<Option<Vec<u16>>>() {
            self.indices = joined(&near);
            self.arrangement.entries = Entries::Near;
            self.why += "; columns in 16 bits, counted from the row";
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::layout::Offsets;
    use super::*;
    use crate::sparse::{Csr, Format, Reader, gallery};

    fn layout(a: &Csr<f64>, format: Format, offsets: Offsets, packable: Packable) -> Layout<f64> {
        Layout::new(a, format, offsets, packable, Reader::Gpu, |_| Ok(())).expect("valid")
    }

    /// The entries of each format after packing, which must be unpacked to what they were.
    fn packed(a: &Csr<f64>) -> Vec<(Format, Entries)> {
        let wide = [Format::Csr, Format::Coo, Format::CsrAdaptive].map(|format| (format, Offsets::Wide));
        let formats = Format::ALL.iter().map(|format| (*format, Offsets::Auto)).chain(wide);
        let check = |(format, offsets)| {
            let plain = layout(a, format, offsets, Packable::NOTHING);
            let packed = layout(a, format, offsets, Packable::of(Packing::Always, Reader::Gpu));
            let (indices, values) = packed.shape().unpack(&packed.indices, &packed.values);
            let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&values), bits(&plain.values), "{format}");
            for ((found, wanted), value) in indices.iter().zip(&plain.indices).zip(&values) {
                assert!(found == wanted || value.is_nan(), "{format}: column {found}, not {wanted}");
            }
            assert_eq!(indices.len(), plain.indices.len(), "{format}");
            let smaller = packed.arrangement.entries != Entries::Plain;
            assert_eq!(smaller, packed.read_bytes() < plain.read_bytes(), "{format}: {}", packed.why);
            (format, packed.arrangement.entries)
        };
        formats.map(check).collect()
    }

    #[test]
    fn what_is_packed_is_found_again() {
        let cannot = |format: &Format| matches!(format, Format::Band | Format::Bsr { .. } | Format::Dense);
        let of = |found: Vec<(Format, Entries)>, by_entries: Entries, of_diagonals: Entries| {
            for (format, entries) in found {
                let wanted = match format {
                    format if cannot(&format) => Entries::Plain,
                    Format::Dia => of_diagonals,
                    _ => by_entries,
                };
                assert_eq!(entries, wanted, "{format}");
            }
        };
        // Three values; many in few columns; many near the diagonal of many columns; many far from it.
        let few = gallery::poisson_2d::<f64>(21, 0.3).expect("small");
        of(packed(&few), Entries::Coded, Entries::Coded);
        let spread = gallery::random::<f64>(90, 400, 2000, 1).expect("small");
        let (offsets, columns, values) = spread.into_parts();
        let values = values.iter().enumerate().map(|(k, value)| value + k as f64).collect();
        let many = Csr::new(90, 400, offsets, columns, values).expect("valid");
        of(packed(&many), Entries::Short, Entries::Plain);
        let line = |i: usize, far: usize| {
            let columns = [i / 2, i + 7, i + 700 + far].map(|j| j as u32);
            columns.map(|j| (j, f64::from(j) + 0.3 * i as f64))
        };
        let near = Csr::from_rows(100, 70_000, |i, row| row.extend(line(i, 0))).expect("valid");
        let far = Csr::from_rows(100, 70_000, |i, row| row.extend(line(i, 40_000))).expect("valid");
        // Without the formats that would store 70 000 columns, and those whose padding decides.
        let entries = |a: &Csr<f64>| packed(a).into_iter().filter(|f| f.0 != Format::Dia).collect::<Vec<_>>();
        of(entries(&near), Entries::Near, Entries::Plain);
        of(entries(&far), Entries::Plain, Entries::Plain);
        // Values of `f32` in these places, an odd number of them; and one that `f32` does not hold.
        let single = |a: &Csr<f64>| a.rounded_to_f32().expect("in its range");
        of(packed(&single(&many)), Entries::ShortSingle, Entries::Single);
        of(entries(&single(&near)), Entries::NearSingle, Entries::Plain);
        of(entries(&single(&far)), Entries::Single, Entries::Plain);
        for other in [0.1, 1e39, 1e-40] {
            let mut one = single(&many);
            *one.values_mut().last_mut().expect("entries") = other;
            of(packed(&one), Entries::Short, Entries::Plain);
        }
    }

    #[test]
    fn a_table_holds_so_many_values_and_no_more() {
        let values = |count: usize| (0..3 * count).map(|k| (k % count) as f64 - 0.0).collect::<Vec<_>>();
        assert_eq!(table(&values(TABLE)).map(|table| table.values.len()), Some(TABLE));
        assert!(table(&values(TABLE + 1)).is_none());
        // Zeros of either sign, and padding, are values of their own.
        let signs = table(&[0.0, -0.0, f64::NAN, -0.0, f64::NAN]).expect("three");
        assert_eq!(signs.values.iter().map(|v| v.to_bits()).collect::<Vec<_>>(), [0, f64::NAN.to_bits(), 1 << 63]);
        assert_eq!([0.0, f64::NAN, -0.0].map(|v| signs.code(v)), [0, 1, 2]);
    }
}
