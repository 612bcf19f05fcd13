//! Statements of a pass, in words: `cl/script/statement.cl`.

/// Most statements of a pass.
pub(crate) const MOST_STATEMENTS: usize = 6;
/// No vector.
pub(crate) const NONE: u32 = 15;
/// No statement.
pub(crate) const NO_STATEMENT: u32 = u32::MAX;
/// No dot product.
pub(crate) const NO_DOT: u32 = 0xff;
/// Kinds of statements; 0 is a combination.
pub(crate) const MULTIPLY: u32 = 1;
pub(crate) const CLAMP: u32 = 2;
pub(crate) const STEP: u32 = 3;
