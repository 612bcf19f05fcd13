//! Runs of elements at equal distances: parts of a vector that are copied at once.

use crate::error::{Error, Result};

/// `count` runs of `len` elements each, `every` elements from one beginning to the next, from element `first` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Runs {
    pub(crate) first: usize,
    pub(crate) len: usize,
    pub(crate) every: usize,
    pub(crate) count: usize,
}

impl Runs {
    /// Number of elements.
    pub(crate) fn elements(self) -> usize {
        self.count * self.len
    }

    /// Places of these elements if they stand one after another, from the first of a vector on.
    pub(crate) fn packed(self) -> Self {
        Self { first: 0, every: self.len, ..self }
    }

    /// Runs of `columns` interleaved vectors.
    pub(crate) fn times(self, columns: usize) -> Self {
        let Self { first, len, every, count } = self;
        Self { first: first * columns, len: len * columns, every: every * columns, count }
    }

    /// Fails unless all lie in a vector of `len` elements, and no two overlap.
    pub(crate) fn check(self, len: usize) -> Result<()> {
        let last = self.count.saturating_sub(1).checked_mul(self.every);
        let end = last.and_then(|last| last.checked_add(self.first)?.checked_add(self.len));
        let end = end.unwrap_or(usize::MAX);
        if self.every < self.len || (self.count > 0 && end > len) {
            return Err(Error::Shape { what: "runs of a vector", expected: len, found: end });
        }
        Ok(())
    }

    /// First elements of all runs.
    pub(crate) fn starts(self) -> impl Iterator<Item = usize> {
        (0..self.count).map(move |k| self.first + k * self.every)
    }
}
