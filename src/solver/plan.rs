//! A method as data: its vectors, scalars and sums, and the launches that make up a start and an iteration.
//!
//! A method file declares what it holds with a [`Plan`] and returns a [`Script`]. Each [`Call`] is one launch: a product
//! ([`Product`]), a pass over vectors ([`Update`]) or scalars alone, and each begins with a program over the scalars
//! (`crate::recurrence`); or it is one or two launches over a block of vectors
//! ([`OverBasis`]), one over an image ([`OverImage`]), or two for the limit of a step ([`StepLimit`]), without a program. A product may be
//! done in several launches ([`Apart`]). The [`Engine`](super::engine) runs scripts on any device.

pub(super) use super::calls::{Field, Gather, OverBasis, OverImage, StepLimit};
pub(super) use super::multiplication::{Apart, Product};
use super::objective::Terms;
use super::penalty::OfPenalty;
use crate::backend::script::basis::MOST_VECTORS;
use crate::backend::script::resident::RESIDENT_VECTORS;
use crate::backend::script::{Blend, MOST_STATEMENTS, PASS_VECTORS, Pass, Statement};
use crate::error::{Error, Result};
use crate::recurrence::{Fault, Program, Registers, Scalar, Sums};
use crate::reduction::Chunks;

/// A space of an operator, or of one of its subsets, to which a vector belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    /// Vectors as long as `A` has rows.
    Rows,
    /// Vectors as long as `A` has columns.
    Cols,
    /// Vectors as long as this subset has rows.
    Subset(u16),
}

impl Space {
    pub(super) fn index(self) -> usize {
        match self {
            Self::Rows => 0,
            Self::Cols => 1,
            Self::Subset(k) => 2 + usize::from(k),
        }
    }
}

/// A vector of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct VectorId(u16);

/// The answer.
pub(super) const X: VectorId = VectorId(0);
/// The right-hand side; a product may be added to it, nothing else takes it.
pub(super) const B: VectorId = VectorId(u16::MAX);

impl VectorId {
    /// Vectors that fill places of a call which are not used.
    pub(super) const FILLER: Self = Self(1);
    pub(super) const SECOND_FILLER: Self = Self(2);

    pub(super) fn index(self) -> usize {
        self.0.into()
    }
}

/// Operator of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operand {
    A,
    Adjoint,
    Preconditioner,
    /// `W'` and `W` of a preconditioner `W W'`.
    RootAdjoint,
    Root,
    /// A subset of the rows of `A`, and its adjoint.
    Subset(u16),
    SubsetAdjoint(u16),
}

impl Operand {
    /// Place among the products of a script.
    pub(super) fn index(self) -> usize {
        match self {
            Self::A => 0,
            Self::Adjoint => 1,
            Self::Preconditioner => 2,
            Self::RootAdjoint => 3,
            Self::Root => 4,
            Self::Subset(k) => Self::count(usize::from(k)),
            Self::SubsetAdjoint(k) => Self::count(usize::from(k)) + 1,
        }
    }

    /// Number of operands of a script with so many subsets.
    pub(super) fn count(subsets: usize) -> usize {
        5 + 2 * subsets
    }
}

/// Way of preconditioning residuals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Preconditioning {
    None,
    /// By a diagonal, held in this vector: done in the pass that makes the residual.
    Diagonal(VectorId),
    /// By a product.
    Operator,
    /// By a product with `W W'`, whose factors CG takes apart.
    Roots,
}

impl Preconditioning {
    /// The vector that holds the diagonal, if it is one.
    pub(super) fn diagonal(self) -> Option<VectorId> {
        match self {
            Self::Diagonal(d) => Some(d),
            Self::None | Self::Operator | Self::Roots => None,
        }
    }
}

/// Statements over vectors of one space, done in order for each element, then dot products of what they leave.
#[derive(Clone, Debug)]
pub(super) struct Update {
    space: Space,
    vectors: Vec<VectorId>,
    pass: Pass,
    coefficients: Vec<Scalar>,
    sums: Vec<Sums>,
    fault: Option<Fault>,
}

impl Update {
    pub(super) fn of(space: Space) -> Self {
        let (vectors, coefficients, sums) = (Vec::new(), Vec::new(), Vec::new());
        Self { space, vectors, pass: Pass::default(), coefficients, sums, fault: None }
    }

    /// The first limit that it exceeds.
    fn fault(&self) -> Option<Fault> {
        let exceeds = |is: bool, what: Fault| is.then_some(what);
        self.fault
            .or(exceeds(self.vectors.len() > PASS_VECTORS, "too many vectors for one pass"))
            .or(exceeds(self.pass.statements.len() > MOST_STATEMENTS, "too many statements for one pass"))
            .or(exceeds(self.pass.dots.len() > 3, "too many dot products for one pass"))
    }

    /// The place of `v` among the vectors of the pass.
    fn place(&mut self, v: VectorId) -> u8 {
        let place = self.vectors.iter().position(|held| *held == v).unwrap_or_else(|| {
            self.vectors.push(v);
            self.vectors.len() - 1
        });
        place as u8
    }

    /// `target = k v + ...`: one to three terms.
    pub(super) fn set(mut self, target: VectorId, terms: &[(Scalar, VectorId)]) -> Self {
        if !(1..=3).contains(&terms.len()) {
            self.fault = self.fault.or(Some("a statement has one to three terms"));
        }
        let mut places = [None; 3];
        self.coefficients.resize(3 * self.pass.statements.len(), crate::recurrence::ZERO);
        for (place, (scalar, v)) in places.iter_mut().zip(terms) {
            *place = Some(self.place(*v));
            self.coefficients.push(*scalar);
        }
        let target = self.place(target);
        self.pass.statements.push(Statement::Combine { target, terms: places });
        self
    }

    /// `target = a b`, element by element.
    pub(super) fn multiply(mut self, target: VectorId, a: VectorId, b: VectorId) -> Self {
        let factors = [self.place(a), self.place(b)];
        let target = self.place(target);
        self.pass.statements.push(Statement::Multiply { target, factors });
        self
    }

    /// `target = a` within the bounds `lower` and `upper`, element by element.
    pub(super) fn clamp(mut self, target: VectorId, a: VectorId, [lower, upper]: [VectorId; 2]) -> Self {
        let (of, bounds) = (self.place(a), [self.place(lower), self.place(upper)]);
        let target = self.place(target);
        self.pass.statements.push(Statement::Clamp { target, of, bounds });
        self
    }

    /// Cuts the step `target` from the point `from` where it would leave the bounds. `from` itself is not rounded, so that a step far below the
    /// rounding of `from` is kept.
    pub(super) fn step(mut self, target: VectorId, from: VectorId, [lower, upper]: [VectorId; 2]) -> Self {
        let (from, bounds) = (self.place(from), [self.place(lower), self.place(upper)]);
        let target = self.place(target);
        self.pass.statements.push(Statement::Step { target, from, bounds });
        self
    }

    /// Sums up `a.b`.
    pub(super) fn dot(mut self, sums: Sums, a: VectorId, b: VectorId) -> Self {
        let dot = [self.place(a), self.place(b)];
        self.pass.dots.push(dot);
        self.sums.push(sums);
        self
    }
}

impl From<OfPenalty> for Work {
    fn from(call: OfPenalty) -> Self {
        Self::Penalty(call)
    }
}

impl From<StepLimit> for Work {
    fn from(call: StepLimit) -> Self {
        Self::Limit(call)
    }
}

/// A launch without its program.
pub(super) enum Work {
    Scalars,
    Product(Product),
    Update(Update),
    /// A call over the basis of a space.
    Basis(Space, OverBasis),
    Image(OverImage),
    Limit(StepLimit),
    Gather(Gather),
    Penalty(OfPenalty),
}

impl From<Product> for Work {
    fn from(product: Product) -> Self {
        Self::Product(product)
    }
}

impl From<Update> for Work {
    fn from(update: Update) -> Self {
        Self::Update(update)
    }
}

/// A launch, ready to be queued.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// Start of its program.
    pub(super) block: u32,
    pub(super) launch: Launch,
}

#[derive(Clone, Debug)]
pub(super) enum Launch {
    Scalars,
    Product {
        of: Operand,
        x: VectorId,
        w: VectorId,
        z: VectorId,
        y: VectorId,
        blend: Blend,
        /// Launches that do the same one after another, if there are any.
        apart: Option<Apart>,
    },
    Update {
        space: Space,
        pass: Pass,
        vectors: [VectorId; PASS_VECTORS],
    },
    Basis(Space, OverBasis),
    Image(OverImage),
    Limit(StepLimit),
    Gather(Gather),
    Penalty(OfPenalty),
}

impl Launch {
    /// Tells if it runs a program, which hands the slot on.
    pub(super) fn runs_program(&self) -> bool {
        match self {
            Self::Basis(_, call) => call.runs_program(),
            Self::Image(_) | Self::Limit(_) | Self::Gather(_) | Self::Penalty(_) => false,
            _ => true,
        }
    }
}

/// One group may be done before another begins.
pub(super) const FOLDS_ITS_OWN: Fault = "a launch folds sums that it makes";

/// Declaration of what a method holds: vectors, scalars, sums, programs.
#[derive(Debug)]
pub(super) struct Plan {
    /// Lengths of the vectors of each space, in the order of [`Space::index`].
    pub(super) lengths: Vec<usize>,
    columns: usize,
    /// Length class of each vector; the answer first, then those that stand where a pass takes none.
    pub(super) vectors: Vec<Space>,
    pub(super) registers: Registers,
    /// Vectors of the bases of both spaces; 0 if there is none.
    pub(super) bases: [usize; 2],
    /// Number of chunk sums.
    pub(super) sums: usize,
    pub(super) programs: Vec<u32>,
    fault: Option<Fault>,
}

impl Plan {
    /// A plan for a `rows × cols` operator and `columns` right-hand sides at once; `subsets` are the rows of its subsets, for a script
    /// that multiplies by these.
    pub(super) fn new([rows, cols]: [usize; 2], subsets: &[usize], columns: usize) -> Self {
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
    pub(super) fn check(&self) -> Result<()> {
        match self.fault.or(self.registers.fault) {
            None => Ok(()),
            Some(fault) => Err(Error::Option { name: "method", reason: format!("its script cannot run: {fault}") }),
        }
    }

    pub(super) fn note(&mut self, fault: Option<Fault>) {
        self.fault = self.fault.or(fault);
    }

    /// Vectors that only fill places of a pass or a resident launch that are not used.
    pub(super) const FILLERS: std::ops::Range<usize> = 1..1 + RESIDENT_VECTORS;

    pub(super) fn vector(&mut self, space: Space) -> VectorId {
        if self.vectors.len() + 1 >= usize::from(B.0) {
            self.note(Some("too many vectors"));
            return X;
        }
        self.vectors.push(space);
        VectorId((self.vectors.len() - 1) as u16)
    }

    pub(super) fn vectors<const N: usize>(&mut self, space: Space) -> [VectorId; N] {
        std::array::from_fn(|_| self.vector(space))
    }

    /// A basis of `most` vectors of a space.
    pub(super) fn basis(&mut self, space: Space, most: usize) {
        self.note((most > MOST_VECTORS).then_some("too many vectors in a basis"));
        match self.bases.get_mut(space.index()) {
            Some(basis) => *basis = most,
            None => self.note(Some("a basis of a subset")),
        }
    }

    /// A scalar that is 0 when a start begins.
    pub(super) fn scalar(&mut self) -> Scalar {
        self.registers.scalar(0.0)
    }

    pub(super) fn scalars<const N: usize>(&mut self) -> [Scalar; N] {
        std::array::from_fn(|_| self.scalar())
    }

    /// A scalar that is `value` when a start begins.
    pub(super) fn constant(&mut self, value: f64) -> Scalar {
        self.registers.scalar(value)
    }

    pub(super) fn sum(&mut self, space: Space) -> Sums {
        let count = Chunks::of(self.len(space)).count;
        let place = self.sums;
        self.sums += count * self.columns;
        Sums { place: place as u32, count: count as u32 }
    }

    pub(super) fn sums<const N: usize>(&mut self, space: Space) -> [Sums; N] {
        std::array::from_fn(|_| self.sum(space))
    }

    pub(super) fn len(&self, space: Space) -> usize {
        self.lengths.get(space.index()).copied().unwrap_or(0)
    }

    /// A launch of `work` after the program that `write` writes.
    pub(super) fn call(&mut self, work: impl Into<Work>, write: impl FnOnce(&mut Program)) -> Call {
        let mut program = Program::default();
        write(&mut program);
        let (launch, words) = match work.into() {
            Work::Scalars => (Launch::Scalars, program.words(&[], &[])),
            Work::Product(product) => self.product(product, &program),
            Work::Update(update) => {
                self.note(update.fault());
                self.note(program.folds_any(&update.sums).then_some(FOLDS_ITS_OWN));
                let words = program.words(&update.coefficients, &update.sums);
                let vectors = Self::taken(&update.vectors);
                (Launch::Update { space: update.space, pass: update.pass, vectors }, words)
            }
            Work::Image(call) => (Launch::Image(call), program.words(&[], &[])),
            Work::Limit(call) => (Launch::Limit(call), program.words(&[], &[])),
            Work::Gather(call) => (Launch::Gather(call), program.words(&[], &[])),
            Work::Penalty(call) => (Launch::Penalty(call), program.words(&[], &[])),
            Work::Basis(of, call) => {
                let rotates = matches!(call, OverBasis::Rotate { .. } | OverBasis::Norm { .. });
                self.note((rotates && program.folds() > 1).then_some("too many sums for a rotation"));
                (Launch::Basis(of, call), program.words(&[], &[]))
            }
        };
        let block = self.programs.len() as u32;
        self.note((!launch.runs_program() && !program.is_empty()).then_some("a call that runs no program has one"));
        self.note(program.fault());
        self.programs.extend(words);
        Call { block, launch }
    }

    /// Vectors of a pass, with those in the places that it does not need.
    pub(super) fn taken(vectors: &[VectorId]) -> [VectorId; PASS_VECTORS] {
        let filler = |k: usize| VectorId((Self::FILLERS.start + k) as u16);
        std::array::from_fn(|k| vectors.get(k).copied().unwrap_or(filler(k)))
    }

    /// Adds a block to the programs. Where it begins.
    pub(super) fn block(&mut self, words: &[u32]) -> u32 {
        let place = self.programs.len() as u32;
        self.programs.extend(words);
        place
    }
}

/// A method: what is queued when it starts from `X`, and in each iteration.
#[derive(Debug, Default)]
pub(super) struct Script {
    pub(super) start: Vec<Call>,
    /// Iteration `k` queues `steps[k % steps.len()]`. The last call of each makes the stopping test.
    pub(super) steps: Vec<Vec<Call>>,
    /// Brings the answer up to date, if iterations leave it behind. Each column that has something to add is to run then;
    /// the program stops those that have not.
    pub(super) finish: Vec<Call>,
    /// After iteration `k`, `exact[k % exact.len()]` computes the residual afresh and turns the direction after it; it ends
    /// with the stopping test like an iteration. Empty for methods that carry no residual.
    pub(super) exact: Vec<Vec<Call>>,
    /// True if the second number of the history is the norm of a gradient.
    pub(super) least_squares: bool,
    /// The reference point of a damped problem, which the user may set.
    pub(super) reference: Option<VectorId>,
    /// Terms that depend on corrections.
    pub(super) terms: Option<Terms>,
    /// The weight of damping is chosen while it runs.
    pub(super) damping: Option<Damping>,
    /// The vector that the first product of the start makes, between iterations.
    pub(super) residual: Residual,
}

impl Script {
    /// The first product of the start, which makes the residual, and the vector that holds it.
    pub(super) fn first_product(&self) -> Option<(&Call, VectorId)> {
        self.start.iter().find_map(|call| match call.launch {
            Launch::Product { y, .. } => Some((call, y)),
            _ => None,
        })
    }
}

/// Use that the iterations of a script make of the vector in which the start has the residual.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Residual {
    /// It holds other things.
    #[default]
    Lost,
    /// It holds the residual of the present iterate.
    Held,
    /// None: the residual can be computed there at any time.
    Afresh,
}

/// Part of a script whose damping the host chooses ([`weight`](super::weight)): a bidiagonalisation with both bases kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Damping {
    /// `-damp²`, 0 until it is chosen.
    pub(super) minus_square: Scalar,
    /// `x - x_0`, 0 when a solve begins.
    pub(super) change: VectorId,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recurrence::{Expr, MINUS_ONE, ONE};

    /// Each limit of scripts, exceeded: refused in words in every build.
    #[test]
    fn scripts_beyond_their_limits_are_refused() {
        let fault = |write: &dyn Fn(&mut Plan)| {
            let mut plan = Plan::new([10, 10], &[], 1);
            write(&mut plan);
            plan.check().err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert_eq!(fault(&|_| {}), "");
        let rows = Space::Rows;
        let terms = |n: usize, v: VectorId| vec![(ONE, v); n];
        for (words, write) in [
            (
                "too many scalars",
                &(|plan: &mut Plan| {
                    (0..60).for_each(|_| {
                        plan.scalar();
                    })
                }) as &dyn Fn(&mut Plan),
            ),
            ("too many vectors", &|plan| {
                (0..1 << 16).for_each(|_| {
                    plan.vector(rows);
                })
            }),
            ("too many sums for one program", &|plan| {
                let sums: [Sums; 5] = plan.sums(rows);
                plan.call(Work::Scalars, |s| {
                    sums.iter().for_each(|sum| {
                        s.fold(*sum);
                    })
                });
            }),
            ("a program too long", &|plan| {
                let a = plan.scalar();
                plan.call(Work::Scalars, |s| (0..200).for_each(|_| s.set(a, a + ONE)));
            }),
            ("an expression too deep", &|plan| {
                let a = plan.scalar();
                let deep = (0..20).fold(Expr::from(a), |expr, _| a * ONE + expr);
                plan.call(Work::Scalars, |s| s.set(a, deep));
            }),
            ("too many vectors for one pass", &|plan| {
                let v: [VectorId; 9] = plan.vectors(rows);
                let pass = v.iter().skip(1).step_by(2).zip(v.iter().skip(2).step_by(2));
                let pass =
                    pass.fold(Update::of(rows), |pass, (a, b)| pass.set(v[0], &[(ONE, *a), (MINUS_ONE, *b)]));
                plan.call(pass, |_| {});
            }),
            ("too many statements for one pass", &|plan| {
                let v = plan.vector(rows);
                let pass = (0..=MOST_STATEMENTS).fold(Update::of(rows), |pass, _| pass.set(v, &terms(1, v)));
                plan.call(pass, |_| {});
            }),
            ("too many dot products", &|plan| {
                let (v, sum) = (plan.vector(rows), plan.sum(rows));
                let pass = (0..4).fold(Update::of(rows), |pass, _| pass.dot(sum, v, v));
                plan.call(pass, |_| {});
            }),
            ("one to three terms", &|plan| {
                let v = plan.vector(rows);
                plan.call(Update::of(rows).set(v, &terms(4, v)), |_| {});
            }),
            ("folds sums that it makes", &|plan| {
                let (v, sum) = (plan.vector(rows), plan.sum(rows));
                plan.call(Update::of(rows).dot(sum, v, v), |s| {
                    s.fold(sum);
                });
            }),
            ("too many vectors in a basis", &|plan| plan.basis(rows, MOST_VECTORS + 1)),
            ("a basis of a subset", &|plan| plan.basis(Space::Subset(0), 1)),
            ("a call that runs no program has one", &|plan| {
                let (w, a) = (plan.vector(rows), plan.scalar());
                plan.call((rows, OverBasis::Project { w, count: 1 }), |s| s.set(a, ONE));
            }),
            ("too many sums for a rotation", &|plan| {
                let sums: [Sums; 2] = plan.sums(rows);
                plan.call((rows, OverBasis::Rotate { step: 0 }), |s| {
                    sums.iter().for_each(|sum| {
                        s.fold(*sum);
                    })
                });
            }),
            ("folds sums that it makes", &|plan| {
                let (v, w, sum) = (plan.vector(rows), plan.vector(rows), plan.sum(rows));
                plan.call(Product::of(Operand::A, v, w).square(sum), |s| {
                    s.fold(sum);
                });
            }),
        ] {
            let found = fault(write);
            assert!(found.contains(words), "{words}: '{found}'");
        }
    }
}
