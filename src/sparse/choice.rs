//! The automatic choice of a format: from the matrix alone, explained in words and numbers.

use super::Format;
use super::profile::Profile;
use crate::real::Precision;

/// Padding that a format may add before a closer one is taken.
const LITTLE: f64 = 1.05;

/// The format for a matrix, and why. `smallest_block` yields the best block size and the places it stores.
pub(super) fn choose(
    profile: &Profile,
    precision: Precision,
    smallest_block: impl Fn() -> (usize, usize),
) -> (Format, String) {
    let csr = profile.stored_bytes(Format::Csr, precision);
    let per_product = |format: Format| {
        let bytes = profile.stored_bytes(format, precision);
        format!("{:.2} MB of matrix per product, csr {:.2}", bytes as f64 / 1e6, csr as f64 / 1e6)
    };
    if profile.nnz == 0 {
        return (Format::CsrScalar, "no entries".into());
    }
    let dia = profile.stored_bytes(Format::Dia, precision);
    if dia <= csr {
        let why = format!("{} diagonals hold everything: {}", profile.diagonals.len(), per_product(Format::Dia));
        return (Format::Dia, why);
    }
    let dense = profile.stored_bytes(Format::Dense, precision);
    if dense <= csr {
        return (Format::Dense, format!("nearly full: {}", per_product(Format::Dense)));
    }
    let mean = profile.mean();
    if mean >= 16.0 {
        let (block, places) = smallest_block();
        let bytes = places as f64 * (precision.bytes() as f64 + 4.0 / (block * block) as f64);
        if bytes <= 0.8 * csr as f64 {
            let why = format!(
                "{block} x {block} blocks: {:.2} MB of matrix per product, csr {:.2}",
                bytes / 1e6,
                csr as f64 / 1e6
            );
            return (Format::Bsr { block }, why);
        }
    }
    if profile.longest as f64 > 8.0 * mean.max(8.0) {
        let why = format!("rows of {mean:.1} entries on average, but up to {}", profile.longest);
        return (Format::CsrAdaptive, why);
    }
    if mean < 8.0 {
        let places = profile.sell_places.min(profile.sorted_places) as f64;
        if places <= LITTLE * profile.nnz as f64 {
            let format = Format::Sell { sigma: 0 };
            return (format, format!("short rows of nearly equal length: {}", per_product(format)));
        }
        return (Format::CsrScalar, format!("short rows, {mean:.1} entries on average"));
    }
    (Format::Csr, format!("rows of {mean:.1} entries on average, at most {}", profile.longest))
}
