//! Statements of a pass on the host, and its dot products: the twin of `cl/script/pass.cl`.
//!
//! All statements are done for one block of elements before the next block, so that vectors come from memory once.

use super::pass::{PASS_VECTORS, Pass, Statement};
use crate::backend::sums::column_dot;
use crate::backend::widest::widest;
use crate::number::{Accumulator, Real, Sum, violated};
use crate::reduction::Chunks;

/// Elements of a block of one column, and of several: whole rows of two to four.
const BLOCK: usize = 512;
const BLOCK_OF_COLUMNS: usize = 192;

/// A pass with the numbers that its launch has found.
pub(super) struct Statements<'p, T> {
    pass: &'p Pass,
    columns: usize,
    /// Columns that run; the others keep their elements.
    running: Vec<bool>,
    /// Factors of each statement: of each column in turn, for as many elements as a block has.
    factors: Vec<[Vec<T>; 3]>,
}

impl<'p, T: Real> Statements<'p, T> {
    /// `factor(c, k)` is coefficient `k` of the pass for column `c`.
    pub(super) fn new(pass: &'p Pass, running: Vec<bool>, factor: impl Fn(usize, usize) -> T) -> Self {
        let columns = running.len();
        let times = if columns == 1 { 1 } else { BLOCK_OF_COLUMNS / columns };
        let mut factors = Vec::with_capacity(pass.statements.len());
        for (s, statement) in pass.statements.iter().enumerate() {
            let terms = if let Statement::Combine { terms, .. } = statement { *terms } else { [None; 3] };
            let mut of_terms = [Vec::new(), Vec::new(), Vec::new()];
            for t in (0..3).filter(|t| terms[*t].is_some()) {
                let of_columns: Vec<T> = (0..columns).map(|c| factor(c, 3 * s + t)).collect();
                of_terms[t] = of_columns.repeat(times);
            }
            factors.push(of_terms);
        }
        Self { pass, columns, running, factors }
    }

    /// Runs the pass over whole chunks, of which `pieces` are the parts of all vectors. `sums` gets the dot products of each chunk: those of
    /// its columns one after another, for each dot product in turn.
    pub(super) fn run<A: Accumulator<T>>(
        &self,
        chunks: Chunks,
        pieces: &mut [&mut [T]; PASS_VECTORS],
        sums: &mut [Sum],
    ) {
        let Self { pass, columns, .. } = *self;
        let len = pieces.iter().map(|piece| piece.len()).max().unwrap_or(0);
        let chunk = chunks.chunk * columns;
        // Short chunks are taken several together.
        let stretch = chunk * (BLOCK / chunk).max(1);
        let block = if columns == 1 { BLOCK } else { BLOCK_OF_COLUMNS };
        let (mut sums, mut scratch) = (sums.iter_mut(), [T::default(); BLOCK]);
        for begin in (0..len).step_by(stretch) {
            let end = len.min(begin + stretch);
            for first in (begin..end).step_by(block) {
                for k in 0..pass.statements.len() {
                    self.run_statement(k, pieces, [first, end.min(first + block)], &mut scratch);
                }
            }
            for first in (begin..end).step_by(chunk) {
                let last = end.min(first + chunk);
                for [x, y] in &pass.dots {
                    let (x, y) = (&pieces[usize::from(*x)][first..last], &pieces[usize::from(*y)][first..last]);
                    for c in 0..columns {
                        if let Some(sum) = sums.next() {
                            *sum = column_dot::<T, A>(chunks.lanes, 0..x.len() / columns, [columns, c], x, y);
                        }
                    }
                }
            }
        }
    }

    /// Runs statement `k` of one column where its target lies, if that is one of two terms, as in `x = x + alpha p`. Tells if it is.
    fn add_in_place(&self, k: usize, pieces: &mut [&mut [T]; PASS_VECTORS], [first, last]: [usize; 2]) -> bool {
        let Statement::Combine { target, terms: [Some(a), Some(b), None] } = self.pass.statements[k] else {
            return false;
        };
        let (own, other) = if a == target { (0, b) } else { (1, a) };
        match pieces.get_disjoint_mut([usize::from(target), usize::from(other)]) {
            Ok([to, other]) if a == target || b == target => {
                // Addition of two is the same both ways.
                let factors = [self.factors[k][own][0], self.factors[k][1 - own][0]];
                add(&mut to[first..last], factors, &other[first..last]);
                true
            }
            _ => false,
        }
    }

    /// Runs statement `k` for the elements of a block.
    fn run_statement(
        &self,
        k: usize,
        pieces: &mut [&mut [T]; PASS_VECTORS],
        [first, last]: [usize; 2],
        scratch: &mut [T; BLOCK],
    ) {
        if self.columns == 1 && self.add_in_place(k, pieces, [first, last]) {
            return;
        }
        let (statement, factors, scratch) =
            (&self.pass.statements[k], &self.factors[k], &mut scratch[..last - first]);
        let target = usize::from(statement.target());
        let source = |v: u8| &pieces[usize::from(v)][first..last];
        match statement {
            Statement::Combine { terms, .. } => {
                let of = |t: usize| terms[t].map_or(&[][..], source);
                let count = 1 + usize::from(terms[1].is_some()) + usize::from(terms[2].is_some());
                let number = |t: usize| factors[t].first().copied().unwrap_or_default();
                let (numbers, terms) = ([number(0), number(1), number(2)], [of(0), of(1), of(2)]);
                let factors = [&factors[0][..], &factors[1], &factors[2]];
                match (self.columns, count) {
                    (1, 3) => combine::<T, 3>(scratch, numbers, terms),
                    (1, 2) => combine::<T, 2>(scratch, numbers, terms),
                    (1, _) => combine::<T, 1>(scratch, numbers, terms),
                    (_, 3) => combine_columns::<T, 3>(scratch, factors, terms),
                    (_, 2) => combine_columns::<T, 2>(scratch, factors, terms),
                    _ => combine_columns::<T, 1>(scratch, factors, terms),
                }
            }
            Statement::Multiply { factors: [a, b], .. } => multiply(scratch, source(*a), source(*b)),
            Statement::Clamp { of, bounds: [lower, upper], .. } => {
                let (of, lower, upper) = (source(*of), source(*lower), source(*upper));
                for l in 0..scratch.len() {
                    scratch[l] = violated(of[l], lower[l], upper[l]).unwrap_or(of[l]);
                }
            }
            Statement::Step { from, bounds: [lower, upper], .. } => {
                let (step, from) = (source(statement.target()), source(*from));
                let (lower, upper) = (source(*lower), source(*upper));
                for l in 0..scratch.len() {
                    scratch[l] = violated(step[l], lower[l] - from[l], upper[l] - from[l]).unwrap_or(step[l]);
                }
            }
        }
        let to = &mut pieces[target][first..last];
        if self.running.iter().all(|runs| *runs) {
            to.copy_from_slice(scratch);
        } else {
            for l in 0..to.len() {
                if self.running[l % self.columns] {
                    to[l] = scratch[l];
                }
            }
        }
    }
}

widest! {
    /// `to = k to + l a`.
    fn add<'v; T: Real;>(to: &'v mut [T], factors: [T; 2], a: &'v [T]) -> () {
        let ([k, l], n) = (factors, to.len());
        let a = &a[..n];
        for i in 0..n {
            to[i] = k * to[i] + l * a[i];
        }
    }

    /// `to = k a + ...` for `N` terms of one column.
    fn combine<'v; T: Real; const N>(to: &'v mut [T], factors: [T; 3], terms: [&'v [T]; 3]) -> () {
        let ([k, l, m], n) = (factors, to.len());
        let of = |t: usize| if t < N { &terms[t][..n] } else { &terms[0][..n] };
        let (a, b, c) = (of(0), of(1), of(2));
        for i in 0..n {
            let mut sum = k * a[i];
            if N > 1 {
                sum = sum + l * b[i];
            }
            if N > 2 {
                sum = sum + m * c[i];
            }
            to[i] = sum;
        }
    }

    /// `to = k a + ...` for `N` terms of interleaved columns, with a factor for each element.
    fn combine_columns<'v; T: Real; const N>(to: &'v mut [T], factors: [&'v [T]; 3], terms: [&'v [T]; 3]) -> () {
        let n = to.len();
        let of = |t: usize| if t < N { (&factors[t][..n], &terms[t][..n]) } else { (&factors[0][..n], &terms[0][..n]) };
        let ((k, a), (l, b), (m, c)) = (of(0), of(1), of(2));
        for i in 0..n {
            let mut sum = k[i] * a[i];
            if N > 1 {
                sum = sum + l[i] * b[i];
            }
            if N > 2 {
                sum = sum + m[i] * c[i];
            }
            to[i] = sum;
        }
    }

    /// `to = a b`.
    fn multiply<'v; T: Real;>(to: &'v mut [T], a: &'v [T], b: &'v [T]) -> () {
        let n = to.len();
        let (a, b) = (&a[..n], &b[..n]);
        for i in 0..n {
            to[i] = a[i] * b[i];
        }
    }
}
