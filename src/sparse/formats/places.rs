//! Places of the entries of a matrix in its layout, so that other values go there without another layout.

use super::layout::{Layout, padding};
use super::profile::Profile;
use crate::error::Result;
use crate::number::{Precision, Real};
use crate::sparse::{Csr, Format};
use crate::threads;

/// Numbers of the entries in the sparsity pattern of a layout.
#[derive(Clone, Debug)]
pub(crate) enum Places {
    /// Entry `k` stands in place `k`.
    InOrder,
    /// The entry of each place, or [`NONE`].
    Listed(Vec<u32>),
}

/// No entry: padding.
const NONE: u32 = u32::MAX;

impl Places {
    /// Places in the layout of `a`, or of its transposed, in a format that is not [`Format::Auto`], for numbers of `precision`. None if
    /// 32 bits do not count the entries.
    pub(crate) fn of<T: Real>(
        a: &Csr<T>,
        transposed: bool,
        format: Format,
        wide: bool,
        precision: Precision,
    ) -> Result<Option<Self>> {
        if a.nnz() >= NONE as usize {
            return Ok(None);
        }
        if !transposed && matches!(format, Format::Csr | Format::CsrScalar | Format::CsrAdaptive | Format::Coo) {
            return Ok(Some(Self::InOrder));
        }
        // Layouts copy values: here the numbers of the entries, which f64 holds exactly.
        let mut numbered = a.with_values(threads::numbers(0..a.nnz(), threads::LEAST, |_, k| k as f64))?;
        if transposed {
            numbered = numbered.transpose();
        }
        let layout = Layout::arranged(&numbered, format, wide, &Profile::of(&numbered), precision)?;
        let number = |_, place: &f64| if place.is_nan() { NONE } else { *place as u32 };
        let places = threads::numbers(&layout.values[..], threads::LEAST, number);
        let in_order =
            places.len() == a.nnz() && threads::all(places.len(), threads::LEAST, |k| k == places[k] as usize);
        Ok(Some(if in_order { Self::InOrder } else { Self::Listed(places) }))
    }

    /// The values of a layout from those of the entries.
    pub(crate) fn values<T: Real>(&self, entries: &[T]) -> Vec<T> {
        match self {
            Self::InOrder => entries.to_vec(),
            Self::Listed(places) => {
                let value = |_, k: &u32| if *k == NONE { padding() } else { entries[*k as usize] };
                threads::numbers(&places[..], threads::LEAST, value)
            }
        }
    }
}
