//! The vector that a product reads, or forms as it reads it.

use super::MOST_COLUMNS;
use crate::number::Real;

/// `u`, or `u + scale v` with one factor for each column: the twin of `vector_t` in `cl/format.cl`.
#[derive(Clone, Copy, Debug)]
pub(in crate::backend) struct Gathered<'a, T> {
    u: &'a [T],
    v: &'a [T],
    scale: [T; MOST_COLUMNS],
    formed: bool,
}

impl<'a, T: Real> Gathered<'a, T> {
    /// `u`.
    pub(in crate::backend) fn read(u: &'a [T]) -> Self {
        Self { u, v: &[], scale: [T::default(); MOST_COLUMNS], formed: false }
    }

    /// `u + scale v`.
    pub(in crate::backend) fn formed(u: &'a [T], v: &'a [T], scale: [T; MOST_COLUMNS]) -> Self {
        Self { u, v, scale, formed: true }
    }

    /// The vector itself, if nothing is added to it.
    pub(super) fn plain(&self) -> Option<&'a [T]> {
        (!self.formed).then_some(self.u)
    }

    /// Element `at` of the interleaved vectors, which is one of column `c`. `FORMED` tells if something is added to `u`.
    pub(super) fn at<const FORMED: bool>(&self, at: usize, c: usize) -> T {
        if FORMED { self.u[at] + self.scale[c] * self.v[at] } else { self.u[at] }
    }

    /// Element `at` of the interleaved vectors, which is one of column `c`.
    pub(in crate::backend) fn element(&self, at: usize, c: usize) -> T {
        if self.formed { self.at::<true>(at, c) } else { self.at::<false>(at, c) }
    }
}
