//! Text of values in serialised reports.

use std::fmt::Display;

/// Serialises what has a name by that name.
pub(crate) fn as_text<D: Display, S: serde::Serializer>(
    value: &D,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}
