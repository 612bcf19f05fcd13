//! Steps before a row of a product is stored, beside those of bits 0 and 1: `cl/linear/row.cl`.

/// Each product of the program tells its steps.
pub(crate) const TOLD: u32 = 4;
/// `y - A x`: neither bit.
pub(crate) const FROM: isize = 0;
/// `A x + y`.
pub(crate) const PLUS: isize = 5;
/// `A x - y`.
pub(crate) const MINUS: isize = 6;
/// `A x` times `y`.
pub(crate) const TIMES: isize = 7;
