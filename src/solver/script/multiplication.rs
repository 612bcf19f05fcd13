//! Products of a draft as calls: in one launch, or in several.

use super::calls::Gather;
use super::draft::{Draft, FOLDS_ITS_OWN};
use super::launch::{Apart, Call, Launch};
use super::vectors::{B, Operand, Space, VectorId, X};
use super::work::Product;
use crate::backend::script::{Blend, Pass};
use crate::recurrence::{MINUS_ONE, ONE, Program, Sums};
use crate::runs::Runs;

impl Draft {
    /// A product with `program`, and the words of that.
    pub(crate) fn product(&mut self, product: Product, program: &Program) -> (Launch, Vec<u32>) {
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
                Box::new(Call { block, launch: Launch::Update { space, pass, vectors }, fused: None })
            });
            Apart { has_program: !program.is_empty(), bare, sums }
        });
        (Launch::Product { of, x, w, z, y, blend, apart }, program.words(&coefficients, &places))
    }

    /// The right-hand side in a vector of the script, and the call that copies it at a start: launches of many iterations take such vectors
    /// alone.
    pub(crate) fn own_rhs(&mut self) -> (VectorId, Call) {
        let (b, len) = (self.vector(Space::Rows), self.len(Space::Rows));
        let copy = Gather { from: B, to: b, runs: Runs { first: 0, len, every: len, count: 1 } };
        (b, self.alone(copy))
    }

    /// `r = b - A x`, with the sum of `r.r` if it is asked for.
    pub(crate) fn residual(&mut self, r: VectorId, rr: impl Into<Option<Sums>>) -> Call {
        let residual = Product::of(Operand::A, X, r).scaled(MINUS_ONE).plus(ONE, B);
        self.call(Product { square: rr.into(), ..residual }, |_| {})
    }
}
