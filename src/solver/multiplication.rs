//! Products of a script as calls: in one launch, or in several.

use super::plan::{B, Call, FOLDS_ITS_OWN, Gather, Launch, Operand, Plan, Space, VectorId, X};
use crate::backend::script::{Blend, Pass};
use crate::recurrence::{MINUS_ONE, ONE, Program, Scalar, Sums};
use crate::runs::Runs;

/// `y = s A x + k w`, with the sums of `y.y` or `y.(w y)`, and of `y.z`.
#[derive(Clone, Debug)]
pub(super) struct Product {
    of: Operand,
    x: VectorId,
    y: VectorId,
    scale: Option<Scalar>,
    shift: Option<(Scalar, VectorId)>,
    square: Option<Sums>,
    weight: Option<VectorId>,
    dot: Option<(Sums, VectorId)>,
}

impl Product {
    pub(super) fn of(of: Operand, x: VectorId, y: VectorId) -> Self {
        Self { of, x, y, scale: None, shift: None, square: None, weight: None, dot: None }
    }
    /// Multiplies the product by `s`.
    pub(super) fn scaled(self, s: Scalar) -> Self {
        Self { scale: Some(s), ..self }
    }
    /// Adds `k w`, which is not `y`.
    pub(super) fn plus(self, k: Scalar, w: VectorId) -> Self {
        Self { shift: Some((k, w)), ..self }
    }
    /// Sums up `y.y`.
    pub(super) fn square(self, sums: Sums) -> Self {
        Self { square: Some(sums), ..self }
    }
    /// Sums up `y.(w y)` with a diagonal `w`; nothing is added to such a product.
    pub(super) fn weighted_square(self, sums: Sums, w: VectorId) -> Self {
        Self { square: Some(sums), weight: Some(w), ..self }
    }
    /// Sums up `y.z`.
    pub(super) fn dot(self, sums: Sums, z: VectorId) -> Self {
        Self { dot: Some((sums, z)), ..self }
    }
}

/// A product in launches of their own: its program, the product, its sums.
#[derive(Clone, Debug)]
pub(super) struct Apart {
    /// Tells if there is a program.
    pub(super) has_program: bool,
    /// A block with the coefficients of the product, and no program.
    pub(super) bare: u32,
    /// A pass over `y` and `z` that makes the sums, if there are any.
    pub(super) sums: Option<Box<Call>>,
}

impl Plan {
    /// A product with `program`, and the words of that.
    pub(super) fn product(&mut self, product: Product, program: &Program) -> (Launch, Vec<u32>) {
        let Product { of, x, y, scale, shift, square, weight, dot } = product;
        self.note((shift.is_some() && weight.is_some()).then_some("a weighted square of a sum"));
        let doubly = weight.is_some_and(|w| w == y || dot.is_some_and(|dot| dot.1 == w));
        self.note(doubly.then_some("a weight that is summed too"));
        let coefficients = [scale.unwrap_or(ONE), shift.map_or(ONE, |s| s.0)];
        let nowhere = Sums { place: 0, count: 0 };
        let places = [square.unwrap_or(nowhere), dot.map_or(nowhere, |d| d.0)];
        let made: Vec<Sums> = square.into_iter().chain(dot.map(|d| d.0)).collect();
        self.note(program.folds_any(&made).then_some(FOLDS_ITS_OWN));
        let blend = Blend {
            scaled: scale.is_some(),
            shifted: shift.is_some(),
            dots: [square.is_some(), dot.is_some()],
            weighted: weight.is_some(),
            free: false,
        };
        let w = shift.map(|s| s.1).or(weight).unwrap_or(x);
        let z = dot.map_or(x, |d| d.1);
        let taken = if dot.is_some() { vec![y, z] } else { vec![y] };
        let apart = (weight.is_none() && dot.is_none_or(|dot| dot.1 != B && dot.1 != y)).then(|| {
            let bare = self.block(&Program::default().words(&coefficients, &[]));
            let pairs = [square.map(|_| [0, 0]), dot.map(|_| [0, 1])];
            let pass = Pass { dots: pairs.into_iter().flatten().collect(), ..Pass::default() };
            let sums = (!made.is_empty()).then(|| {
                let (space, vectors) = (self.vectors[y.index()], Self::taken(&taken));
                let block = self.block(&Program::default().words(&[], &made));
                Box::new(Call { block, launch: Launch::Update { space, pass, vectors } })
            });
            Apart { has_program: !program.is_empty(), bare, sums }
        });
        (Launch::Product { of, x, w, z, y, blend, apart }, program.words(&coefficients, &places))
    }

    /// The right-hand side in a vector of the script, and the call that copies it at a start: launches of many iterations take such vectors
    /// alone.
    pub(super) fn own_rhs(&mut self) -> (VectorId, Call) {
        let (b, len) = (self.vector(Space::Rows), self.len(Space::Rows));
        let copy = Gather { from: B, to: b, runs: Runs { first: 0, len, every: len, count: 1 } };
        (b, self.call(copy, |_| {}))
    }

    /// `r = b - A x`, with the sum of `r.r` if it is asked for.
    pub(super) fn residual(&mut self, r: VectorId, rr: impl Into<Option<Sums>>) -> Call {
        let residual = Product::of(Operand::A, X, r).scaled(MINUS_ONE).plus(ONE, B);
        self.call(Product { square: rr.into(), ..residual }, |_| {})
    }
}
