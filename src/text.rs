//! Values in serialised reports, and lists of names, as text.

/// Serialises what has a name by that name.
#[cfg(feature = "serde")]
pub(crate) fn as_text<D: std::fmt::Display, S: serde::Serializer>(
    value: &D,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// Names as a sentence lists them: `a, b or c`.
pub(crate) fn listed(names: &[&str], last_by: &str) -> String {
    match names.split_last() {
        Some((last, [])) => (*last).into(),
        Some((last, others)) => format!("{} {last_by} {last}", others.join(", ")),
        None => String::new(),
    }
}
