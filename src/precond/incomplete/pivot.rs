//! Pivots of incomplete factors.

/// Owner of entries in messages.
pub(super) const OF_FACTORS: &str = "incomplete factors";

/// The first pivot that is no good, and its row.
pub(super) type BadPivot = (usize, f64);

/// The largest magnitude of a row, which pivots are measured by.
pub(super) fn largest(row: &[f64]) -> f64 {
    row.iter().fold(0.0, |most, v| most.max(v.abs()))
}
