//! Passes over vectors and blends of products as data, and their encoding as words for kernels.

pub(crate) use crate::state::statement::{CLAMP, MOST_STATEMENTS, MULTIPLY, NO_DOT, NO_STATEMENT, NONE, STEP};

/// Combination of a product with another vector, and the sums to make: macros of `cl/script/step.cl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blend {
    pub(crate) scaled: bool,
    pub(crate) shifted: bool,
    /// Tells if `y.y` and `y.z` are summed.
    pub(crate) dots: [bool; 2],
    /// Tells if the first of them is `y.(w y)`, with a `w` that is not added.
    pub(crate) weighted: bool,
    /// Rows are cut as suits the product, and no program is run: nothing is summed.
    pub(crate) free: bool,
}

impl Blend {
    /// A product alone.
    pub(crate) const PLAIN: Self =
        Self { scaled: false, shifted: false, dots: [false; 2], weighted: false, free: false };

    /// Tells if it reads `w`.
    pub(crate) fn takes_w(&self) -> bool {
        self.shifted || self.weighted
    }

    /// Macros `BLEND` and `DOTS` of `cl/script/step.cl`.
    pub(super) fn macros(&self) -> [u32; 2] {
        let square = if self.weighted { 4 } else { 1 };
        let [squared, dot] = self.dots.map(u32::from);
        [u32::from(self.scaled) | (u32::from(self.shifted) << 1), (squared * square) | (dot << 1)]
    }
}

/// Vectors that a pass can take.
pub(crate) const PASS_VECTORS: usize = 8;

/// One statement of a pass, element by element: `target = k a + l b + m d`, `a b`, `a` within bounds, or the step `target` from a point, cut
/// where it would leave the bounds; numbers of vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Statement {
    Combine { target: u8, terms: [Option<u8>; 3] },
    Multiply { target: u8, factors: [u8; 2] },
    Clamp { target: u8, of: u8, bounds: [u8; 2] },
    Step { target: u8, from: u8, bounds: [u8; 2] },
}

impl Statement {
    /// Number of the vector that it writes.
    pub(super) fn target(&self) -> u8 {
        match self {
            Self::Combine { target, .. }
            | Self::Multiply { target, .. }
            | Self::Clamp { target, .. }
            | Self::Step { target, .. } => *target,
        }
    }
}

/// A pass over vectors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pass {
    /// Up to six, done in order for each element.
    pub(crate) statements: Vec<Statement>,
    /// Up to three dot products of the results.
    pub(crate) dots: Vec<[u8; 2]>,
}

impl Pass {
    /// Masks of the vectors that are read and that are written.
    pub(crate) fn touched(&self) -> [u32; 2] {
        let mut masks = [0; 2];
        for statement in &self.statements {
            let (target, read) = match statement {
                Statement::Combine { target, terms } => (target, terms.iter().flatten().fold(0, |m, v| m | 1 << v)),
                Statement::Multiply { target, factors } => (target, 1 << factors[0] | 1 << factors[1]),
                Statement::Clamp { target, of, bounds } => (target, 1 << of | 1 << bounds[0] | 1 << bounds[1]),
                Statement::Step { target, from, bounds } => {
                    (target, 1 << target | 1 << from | 1 << bounds[0] | 1 << bounds[1])
                }
            };
            // A vector that was written before is in registers.
            masks[0] |= read & !masks[1];
            masks[1] |= 1 << target;
        }
        masks
    }

    /// Tells if it takes vector `k`, if only for a dot product.
    pub(crate) fn takes(&self, k: usize) -> bool {
        let [read, written] = self.touched();
        (read | written) >> k & 1 == 1 || self.dots.iter().flatten().any(|v| usize::from(*v) == k)
    }
}

/// Constants of `cl/script/pass.cl`: the statements, vectors and dot products of a pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PassWords {
    pub(super) statements: [u32; MOST_STATEMENTS],
    pub(super) touched: u32,
    pub(super) dots: u32,
}

impl Default for PassWords {
    /// Nothing.
    fn default() -> Self {
        Self { statements: [NO_STATEMENT; MOST_STATEMENTS], touched: 0, dots: NO_DOTS }
    }
}

impl PassWords {
    /// Words of a pass whose vectors have these numbers where it is run.
    pub(super) fn of(pass: &Pass, numbers: &[u8; PASS_VECTORS]) -> Self {
        let [read, written] = pass.touched();
        let mut statements = [NO_STATEMENT; MOST_STATEMENTS];
        for (word, statement) in statements.iter_mut().zip(&pass.statements) {
            *word = encoded(statement, numbers);
        }
        let number = |v: u8| u32::from(numbers[usize::from(v)]);
        let dot = |k: usize| pass.dots.get(k).map_or(NO_DOT, |[a, b]| number(*a) | number(*b) << 4) << (8 * k);
        Self { statements, touched: read | written << 8, dots: dot(0) | dot(1) | dot(2) }
    }
}

/// No dot products of a pass.
pub(crate) const NO_DOTS: u32 = NO_DOT | NO_DOT << 8 | NO_DOT << 16;

/// A statement as `cl/script/statement.cl` reads it.
pub(super) fn encoded(statement: &Statement, numbers: &[u8; PASS_VECTORS]) -> u32 {
    let number = |v: u8| u32::from(numbers[usize::from(v)]);
    match statement {
        Statement::Combine { target, terms } => {
            let [a, b, d] = terms.map(|v| v.map_or(NONE, number));
            number(*target) | a << 4 | b << 8 | d << 12
        }
        Statement::Multiply { target, factors: [a, b] } => {
            number(*target) | number(*a) << 4 | number(*b) << 8 | NONE << 12 | MULTIPLY << 16
        }
        Statement::Clamp { target, of, bounds: [lower, upper] } => {
            number(*target) | number(*of) << 4 | number(*lower) << 8 | number(*upper) << 12 | CLAMP << 16
        }
        Statement::Step { target, from, bounds: [lower, upper] } => {
            number(*target) | number(*from) << 4 | number(*lower) << 8 | number(*upper) << 12 | STEP << 16
        }
    }
}
