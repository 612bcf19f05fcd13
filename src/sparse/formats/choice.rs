//! The automatic choice of a format: from the matrix alone, explained in words and numbers.

use super::profile::Profile;
use crate::number::Precision;
use crate::sparse::Format;

/// Padding that slices may add before compressed rows are taken.
const LITTLE: f64 = 1.1;
/// Rows from which on one lane a row keeps a large device busy.
const MANY_ROWS: usize = 1 << 16;
/// Diagonals that kernels unroll.
const FEW_DIAGONALS: usize = 9;
/// A row this many times as long as the mean is worth lanes of its own.
const SKEW: f64 = 8.0;

/// Reader of a matrix, as far as a choice depends on it. Choices for all of them give the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    Gpu,
    /// The host back end.
    Host,
    /// A CPU through OpenCL.
    CompiledCpu,
}

/// The format for a matrix, and why.
///
/// BSR is never chosen: on every device measured, lanes that share a row of CSR did better, however full the blocks.
pub(crate) fn choose(profile: &Profile, precision: Precision, reader: Reader) -> (Format, String) {
    match (choose_for_any(profile, precision), reader) {
        // Slices gain nothing there over rows read from end to end. cfd1, fp64, two cores, sell and csr-scalar: PoCL 3.1 421 and 320 us,
        // host 608 and 436; PoCL 5 on another machine 1144 and 584.
        ((Format::Sell { .. }, why), Reader::Host | Reader::CompiledCpu) => {
            (Format::CsrScalar, format!("{why}; by rows on a CPU, with the same bits"))
        }
        (chosen, _) => chosen,
    }
}

fn choose_for_any(profile: &Profile, precision: Precision) -> (Format, String) {
    let csr = profile.stored_bytes(Format::Csr, precision);
    let per_product = |format: Format| {
        let bytes = profile.stored_bytes(format, precision);
        format!("{:.2} MB of matrix per product, csr {:.2}", bytes as f64 / 1e6, csr as f64 / 1e6)
    };
    if profile.nnz == 0 {
        return (Format::CsrScalar, "no entries".into());
    }
    let dia = profile.stored_bytes(Format::Dia, precision);
    if dia <= csr && (profile.diagonals.len() <= FEW_DIAGONALS || profile.rows >= MANY_ROWS) {
        let why = format!("all entries lie on {} diagonals: {}", profile.diagonals.len(), per_product(Format::Dia));
        return (Format::Dia, why);
    }
    let dense = profile.stored_bytes(Format::Dense, precision);
    if dense <= csr {
        return (Format::Dense, format!("nearly full: {}", per_product(Format::Dense)));
    }
    let mean = profile.mean();
    if profile.longest as f64 > SKEW * mean.max(8.0) {
        let why = format!("rows of {mean:.1} entries on average, but up to {}", profile.longest);
        return (Format::CsrAdaptive, why);
    }
    let sell = Format::Sell { sigma: 0 };
    let places = profile.sell_places.min(profile.sorted_places) as f64;
    if (mean < 8.0 || profile.rows >= MANY_ROWS) && places <= LITTLE * profile.nnz as f64 {
        return (sell, format!("rows of {mean:.1} entries, neighbours alike: {}", per_product(sell)));
    }
    if mean < 8.0 {
        return (Format::CsrScalar, format!("short rows, {mean:.1} entries on average"));
    }
    (Format::Csr, format!("rows of {mean:.1} entries on average, at most {}", profile.longest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::Real;
    use crate::sparse::{Csr, gallery};

    fn chosen<T: Real>(a: &Csr<T>) -> (Format, String) {
        choose(&Profile::of(a), T::PRECISION, Reader::Gpu)
    }

    #[test]
    fn each_kind_of_matrix_gets_the_format_that_suits_it() {
        let poisson = gallery::poisson_2d::<f64>(50, 0.0).expect("small");
        assert_eq!(chosen(&poisson).0, Format::Dia);
        assert!(chosen(&poisson).1.contains("5 diagonals"), "{}", chosen(&poisson).1);
        let full = gallery::by_name::<f32>("dense:20:30").expect("small");
        assert_eq!(chosen(&full).0, Format::Dense);
        let even = gallery::random::<f32>(3000, 3000, 12_000, 1).expect("small");
        assert_eq!(chosen(&even).0, Format::Sell { sigma: 0 });
        for reader in [Reader::Host, Reader::CompiledCpu] {
            let (on_cpu, why) = choose(&Profile::of(&even), Precision::Single, reader);
            assert!(on_cpu == Format::CsrScalar && why.contains("same bits"), "{why}");
        }
        let longer = gallery::random::<f32>(300, 3000, 12_000, 1).expect("small");
        assert_eq!(chosen(&longer).0, Format::Csr);
        let skewed = Csr::from_rows(400, 3000, |i, row| {
            let length = if i == 7 { 2000 } else { 1 + i as u32 % 6 };
            row.extend((0..length).map(|k| (k * 3001 % 3000, 1.0f32)));
            row.sort_unstable_by_key(|e| e.0);
        });
        assert_eq!(chosen(&skewed.expect("valid")).0, Format::CsrAdaptive);
        let uneven = Csr::from_rows(400, 3000, |i, row| {
            row.extend((0..1 + i as u32 % 6).map(|k| ((k * 401 * (i as u32 + 1)) % 2999, 1.0f32)));
            row.sort_unstable_by_key(|e| e.0);
            row.dedup_by_key(|e| e.0);
        });
        assert_eq!(chosen(&uneven.expect("valid")).0, Format::CsrScalar);
        let empty = Csr::<f64>::from_triplets(4, 5, &[]).expect("empty");
        assert_eq!(chosen(&empty).0, Format::CsrScalar);
    }
}
