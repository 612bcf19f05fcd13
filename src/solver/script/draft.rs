//! The declaration of a script: vectors, scalars and sums that a method holds, and calls made of its launches.

use super::calls::{Alone, OverBasis};
use super::launch::{Call, Launch};
use super::vectors::{B, Space, VectorId, X};
use super::work::Work;
use crate::backend::script::{MOST_VECTORS, PASS_VECTORS, RESIDENT_VECTORS};
use crate::error::{Error, Result};
use crate::recurrence::{Fault, Program, Registers, Scalar, Sums};
use crate::reduction::Chunks;

/// One group may be done before another begins.
pub(crate) const FOLDS_ITS_OWN: Fault = "a launch folds sums that it makes";

/// Declaration of what a method holds: vectors, scalars, sums, programs.
#[derive(Debug)]
pub(crate) struct Draft {
    /// Lengths of the vectors of each space, in the order of [`Space::index`].
    pub(crate) lengths: Vec<usize>,
    columns: usize,
    /// Length class of each vector; the answer first, then those that stand where a pass takes none.
    pub(crate) vectors: Vec<Space>,
    pub(crate) registers: Registers,
    /// Vectors of the bases of both spaces; 0 if there is none.
    pub(crate) bases: [usize; 2],
    /// Number of chunk sums.
    pub(crate) sums: usize,
    pub(crate) programs: Vec<u32>,
    fault: Option<Fault>,
}

impl Draft {
    /// A draft for a `rows × cols` operator and `columns` right-hand sides at once; `subsets` are the rows of its subsets, for a script
    /// that multiplies by these.
    pub(crate) fn new([rows, cols]: [usize; 2], subsets: &[usize], columns: usize) -> Self {
        let mut vectors = vec![Space::Cols];
        vectors.resize(Self::FILLERS.end, Space::Cols);
        let lengths = [rows, cols].iter().chain(subsets).copied().collect();
        Self {
            lengths,
            columns,
            vectors,
            registers: Registers::new(),
            bases: [0; 2],
            sums: 0,
            programs: Vec::new(),
            fault: None,
        }
    }

    /// Fails on a method that exceeds a limit of scripts: in a release build too it must not run.
    pub(crate) fn check(&self) -> Result<()> {
        match self.fault.or(self.registers.fault) {
            None => Ok(()),
            Some(fault) => {
                Err(Error::Conflict { name: "method", reason: format!("its script cannot run: {fault}") })
            }
        }
    }

    pub(crate) fn note(&mut self, fault: Option<Fault>) {
        self.fault = self.fault.or(fault);
    }

    /// Vectors that only fill places of a pass or a resident launch that are not used.
    pub(crate) const FILLERS: std::ops::Range<usize> = 1..1 + RESIDENT_VECTORS;

    pub(crate) fn vector(&mut self, space: Space) -> VectorId {
        if self.vectors.len() + 1 >= usize::from(B.0) {
            self.note(Some("too many vectors"));
            return X;
        }
        self.vectors.push(space);
        VectorId((self.vectors.len() - 1) as u16)
    }

    pub(crate) fn vectors<const N: usize>(&mut self, space: Space) -> [VectorId; N] {
        std::array::from_fn(|_| self.vector(space))
    }

    /// A basis of `most` vectors of a space.
    pub(crate) fn basis(&mut self, space: Space, most: usize) {
        self.note((most > MOST_VECTORS).then_some("too many vectors in a basis"));
        match self.bases.get_mut(space.index()) {
            Some(basis) => *basis = most,
            None => self.note(Some("a basis of a subset")),
        }
    }

    /// A scalar that is 0 when a start begins.
    pub(crate) fn scalar(&mut self) -> Scalar {
        self.registers.scalar(0.0)
    }

    pub(crate) fn scalars<const N: usize>(&mut self) -> [Scalar; N] {
        std::array::from_fn(|_| self.scalar())
    }

    /// A scalar that is `value` when a start begins.
    pub(crate) fn constant(&mut self, value: f64) -> Scalar {
        self.registers.scalar(value)
    }

    pub(crate) fn sum(&mut self, space: Space) -> Sums {
        let count = Chunks::of(self.len(space)).count;
        let place = self.sums;
        self.sums += count * self.columns;
        Sums { place: place as u32, count: count as u32 }
    }

    pub(crate) fn sums<const N: usize>(&mut self, space: Space) -> [Sums; N] {
        std::array::from_fn(|_| self.sum(space))
    }

    pub(crate) fn len(&self, space: Space) -> usize {
        self.lengths.get(space.index()).copied().unwrap_or(0)
    }

    /// A launch of `work` after the program that `write` writes.
    pub(crate) fn call(&mut self, work: impl Into<Work>, write: impl FnOnce(&mut Program)) -> Call {
        let mut program = Program::default();
        write(&mut program);
        self.call_of(work.into(), &program)
    }

    /// A launch without a program.
    pub(crate) fn alone(&mut self, call: impl Into<Alone>) -> Call {
        self.call(Launch::Alone(call.into()), |_| {})
    }

    /// [`Draft::call`], compiled once.
    fn call_of(&mut self, work: Work, program: &Program) -> Call {
        let (launch, words) = match work {
            Work::Product(product) => self.product(product, program),
            Work::Update(update) => {
                self.note(update.fault());
                self.note(program.folds_any(&update.sums).then_some(FOLDS_ITS_OWN));
                let words = program.words(&update.coefficients, &update.sums);
                let vectors = Self::taken(&update.vectors);
                (Launch::Update { space: update.space, pass: update.pass, vectors }, words)
            }
            Work::Launch(launch) => {
                let rotates = matches!(launch, Launch::Basis(_, OverBasis::Rotate { .. } | OverBasis::Norm { .. }));
                self.note((rotates && program.folds() > 1).then_some("too many sums for a rotation"));
                let words = program.words(&launch.coefficients(), &[]);
                (launch, words)
            }
        };
        let block = self.programs.len() as u32;
        self.note((!launch.runs_program() && !program.is_empty()).then_some("a call that runs no program has one"));
        self.note(program.fault());
        self.programs.extend(words);
        Call { block, launch, fused: None }
    }

    /// Vectors of a pass, with those in the places that it does not need.
    pub(crate) fn taken(vectors: &[VectorId]) -> [VectorId; PASS_VECTORS] {
        let filler = |k: usize| VectorId((Self::FILLERS.start + k) as u16);
        std::array::from_fn(|k| vectors.get(k).copied().unwrap_or(filler(k)))
    }

    /// Adds a block to the programs. Where it begins.
    pub(crate) fn block(&mut self, words: &[u32]) -> u32 {
        let place = self.programs.len() as u32;
        self.programs.extend(words);
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::script::MOST_STATEMENTS;
    use crate::recurrence::{Expr, MINUS_ONE, ONE};
    use crate::solver::script::{Operand, Product, Update};

    /// Each limit of scripts, exceeded: refused in words in every build.
    #[test]
    fn scripts_beyond_their_limits_are_refused() {
        let fault = |write: &dyn Fn(&mut Draft)| {
            let mut draft = Draft::new([10, 10], &[], 1);
            write(&mut draft);
            draft.check().err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert_eq!(fault(&|_| {}), "");
        let rows = Space::Rows;
        let terms = |n: usize, v: VectorId| vec![(ONE, v); n];
        for (words, write) in [
            (
                "too many scalars",
                &(|draft: &mut Draft| {
                    (0..60).for_each(|_| {
                        draft.scalar();
                    })
                }) as &dyn Fn(&mut Draft),
            ),
            ("too many vectors", &|draft| {
                (0..1 << 16).for_each(|_| {
                    draft.vector(rows);
                })
            }),
            ("too many sums for one program", &|draft| {
                let sums: [Sums; 5] = draft.sums(rows);
                draft.call(Launch::Scalars, |s| {
                    sums.iter().for_each(|sum| {
                        s.fold(*sum);
                    })
                });
            }),
            ("a program too long", &|draft| {
                let a = draft.scalar();
                draft.call(Launch::Scalars, |s| (0..200).for_each(|_| s.set(a, a + ONE)));
            }),
            ("an expression too deep", &|draft| {
                let a = draft.scalar();
                let deep = (0..20).fold(Expr::from(a), |expr, _| a * ONE + expr);
                draft.call(Launch::Scalars, |s| s.set(a, deep));
            }),
            ("too many vectors for one pass", &|draft| {
                let v: [VectorId; 9] = draft.vectors(rows);
                let pass = v.iter().skip(1).step_by(2).zip(v.iter().skip(2).step_by(2));
                let pass =
                    pass.fold(Update::of(rows), |pass, (a, b)| pass.set(v[0], &[(ONE, *a), (MINUS_ONE, *b)]));
                draft.call(pass, |_| {});
            }),
            ("too many statements for one pass", &|draft| {
                let v = draft.vector(rows);
                let pass = (0..=MOST_STATEMENTS).fold(Update::of(rows), |pass, _| pass.set(v, &terms(1, v)));
                draft.call(pass, |_| {});
            }),
            ("too many dot products", &|draft| {
                let (v, sum) = (draft.vector(rows), draft.sum(rows));
                let pass = (0..4).fold(Update::of(rows), |pass, _| pass.dot(sum, v, v));
                draft.call(pass, |_| {});
            }),
            ("one to three terms", &|draft| {
                let v = draft.vector(rows);
                draft.call(Update::of(rows).set(v, &terms(4, v)), |_| {});
            }),
            ("folds sums that it makes", &|draft| {
                let (v, sum) = (draft.vector(rows), draft.sum(rows));
                draft.call(Update::of(rows).dot(sum, v, v), |s| {
                    s.fold(sum);
                });
            }),
            ("too many vectors in a basis", &|draft| draft.basis(rows, MOST_VECTORS + 1)),
            ("a basis of a subset", &|draft| draft.basis(Space::Subset(0), 1)),
            ("a call that runs no program has one", &|draft| {
                let (w, a) = (draft.vector(rows), draft.scalar());
                draft.call((rows, OverBasis::Project { w, count: 1 }), |s| s.set(a, ONE));
            }),
            ("too many sums for a rotation", &|draft| {
                let sums: [Sums; 2] = draft.sums(rows);
                draft.call((rows, OverBasis::Rotate { step: 0 }), |s| {
                    sums.iter().for_each(|sum| {
                        s.fold(*sum);
                    })
                });
            }),
            ("folds sums that it makes", &|draft| {
                let (v, w, sum) = (draft.vector(rows), draft.vector(rows), draft.sum(rows));
                draft.call(Product::of(Operand::A, v, w).square(sum), |s| {
                    s.fold(sum);
                });
            }),
        ] {
            let found = fault(write);
            assert!(found.contains(words), "{words}: '{found}'");
        }
    }
}
