//! Formats that store the entries alone: compressed rows, with lanes by row length, and coordinates.

use super::arrangement::{Arrangement, Kind};
use super::layout::{Layout, words};
use crate::error::{Error, Result};
use crate::number::Real;
use crate::reduction::Chunks;
use crate::sparse::{Csr, Format};

/// `SHORT_ROW` and `MIDDLE_ROW` of `cl/linear/format.cl`.
pub(crate) const SHORT_ROW: usize = 16;
pub(crate) const MIDDLE_ROW: usize = 512;
/// Lanes of rows between the two, `MIDDLE_LANES` of `cl/linear/format.cl`.
pub(crate) const MIDDLE_LANES: usize = 32;
/// Lanes of longer rows, `LONG_LANES` of `cl/linear/format.cl`.
pub(crate) const LONG_LANES: usize = 512;

pub(crate) fn csr<T: Real>(a: &Csr<T>, format: Format, lanes: usize, wide: bool) -> Layout<T> {
    let mut layout = Layout::of(a, format, Kind::Csr);
    layout.arrangement = Arrangement { lanes, wide, ..layout.arrangement };
    words(a.offsets().iter().copied(), wide, &mut layout.pointers);
    layout.indices = a.indices().to_vec();
    layout.values = a.values().to_vec();
    layout
}

/// The offsets behind two lists of longer rows: `[offsets' place, first list's starts, second's starts, 0, starts of
/// the first list by chunk, starts of the second, both lists, offsets]`.
pub(crate) fn adaptive<T: Real>(a: &Csr<T>, wide: bool) -> Result<Layout<T>> {
    let chunks = Chunks::of(a.rows());
    let length = |i: usize| a.offsets()[i + 1] - a.offsets()[i];
    let starts = 2 * (chunks.count + 1);
    let mut lists: Vec<u32> = Vec::new();
    let mut pointers = vec![0u32; 4 + starts];
    pointers[1] = 4;
    pointers[2] = 4 + chunks.count as u32 + 1;
    let mut at = 4;
    let mut longer = [0; 2];
    for (class, count) in [SHORT_ROW + 1..=MIDDLE_ROW, MIDDLE_ROW + 1..=usize::MAX].into_iter().zip(&mut longer) {
        let before = lists.len();
        for g in 0..chunks.count {
            pointers[at] = (4 + starts + lists.len()) as u32;
            at += 1;
            lists.extend(chunks.range(g).filter(|i| class.contains(&length(*i))).map(|i| i as u32));
        }
        pointers[at] = (4 + starts + lists.len()) as u32;
        at += 1;
        *count = lists.len() - before;
    }
    pointers.extend(lists);
    if pointers.len() % 2 == 1 {
        pointers.push(0); // offsets of two words start at an even word
    }
    pointers[0] = u32::try_from(pointers.len()).map_err(|_| Error::Structure {
        what: "the lists of longer rows exceed 32-bit positions; use csr".into(),
        row: None,
    })?;
    let mut layout = csr(a, Format::CsrAdaptive, 1, wide);
    words(a.offsets().iter().copied(), wide, &mut pointers);
    layout.arrangement.kind = Kind::Adaptive;
    layout.pointers = pointers;
    layout.stride = chunks.chunk;
    layout.longer = longer;
    Ok(layout)
}

/// `[rows of a chunk, where the entries' rows start, offsets of chunks, row of each entry]`.
pub(crate) fn coordinates<T: Real>(a: &Csr<T>, wide: bool) -> Layout<T> {
    let chunks = Chunks::of(a.rows());
    let mut layout = csr(a, Format::Coo, 1, wide);
    let mut pointers = vec![chunks.chunk as u32, 0];
    let ends = (0..chunks.count).map(|g| a.offsets()[chunks.range(g).end]);
    words(std::iter::once(0).chain(ends), wide, &mut pointers);
    pointers[1] = pointers.len() as u32;
    for i in 0..a.rows() {
        pointers.extend(std::iter::repeat_n(i as u32, a.offsets()[i + 1] - a.offsets()[i]));
    }
    layout.arrangement.kind = Kind::Coordinates;
    layout.pointers = pointers;
    layout
}
