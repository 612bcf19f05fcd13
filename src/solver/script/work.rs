//! Launches of a script as a method writes them down: products, passes over vectors, and calls.

use super::launch::Launch;
use super::vectors::{Operand, Space, VectorId};
use crate::backend::script::{MOST_STATEMENTS, PASS_VECTORS, Pass, Statement};
use crate::recurrence::{Fault, Scalar, Sums};

/// Statements over vectors of one space, done in order for each element, then dot products of what they leave.
#[derive(Clone, Debug)]
pub(crate) struct Update {
    pub(super) space: Space,
    pub(super) vectors: Vec<VectorId>,
    pub(super) pass: Pass,
    pub(super) coefficients: Vec<Scalar>,
    pub(super) sums: Vec<Sums>,
    pub(super) fault: Option<Fault>,
}

impl Update {
    /// Rust 1.95 and 1.96 take two equal values that are passed on for one (rust-lang/rust#158830), and free it twice. Kept as a call, its
    /// results are different values to them.
    #[inline(never)]
    pub(crate) fn of(space: Space) -> Self {
        let (vectors, coefficients, sums) = (Vec::new(), Vec::new(), Vec::new());
        Self { space, vectors, pass: Pass::default(), coefficients, sums, fault: None }
    }

    /// The first limit that it exceeds.
    pub(super) fn fault(&self) -> Option<Fault> {
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
    pub(crate) fn set(mut self, target: VectorId, terms: &[(Scalar, VectorId)]) -> Self {
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
    pub(crate) fn multiply(mut self, target: VectorId, a: VectorId, b: VectorId) -> Self {
        let factors = [self.place(a), self.place(b)];
        let target = self.place(target);
        self.pass.statements.push(Statement::Multiply { target, factors });
        self
    }

    /// `target = a` within the bounds `lower` and `upper`, element by element.
    pub(crate) fn clamp(mut self, target: VectorId, a: VectorId, [lower, upper]: [VectorId; 2]) -> Self {
        let (of, bounds) = (self.place(a), [self.place(lower), self.place(upper)]);
        let target = self.place(target);
        self.pass.statements.push(Statement::Clamp { target, of, bounds });
        self
    }

    /// Cuts the step `target` from the point `from` where it would leave the bounds. `from` itself is not rounded, so that a step far below the
    /// rounding of `from` is kept.
    pub(crate) fn step(mut self, target: VectorId, from: VectorId, [lower, upper]: [VectorId; 2]) -> Self {
        let (from, bounds) = (self.place(from), [self.place(lower), self.place(upper)]);
        let target = self.place(target);
        self.pass.statements.push(Statement::Step { target, from, bounds });
        self
    }

    /// Sums up `a.b`.
    pub(crate) fn dot(mut self, sums: Sums, a: VectorId, b: VectorId) -> Self {
        let dot = [self.place(a), self.place(b)];
        self.pass.dots.push(dot);
        self.sums.push(sums);
        self
    }
}

/// A launch as a method writes it down, without its program.
pub(crate) enum Work {
    Product(Product),
    Update(Update),
    /// One that is queued as it is written.
    Launch(Launch),
}

impl<L: Into<Launch>> From<L> for Work {
    fn from(launch: L) -> Self {
        Self::Launch(launch.into())
    }
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

/// `y = s A x + k w`, with the sums of `y.y` or `y.(w y)`, and of `y.z`.
#[derive(Clone, Debug)]
pub(crate) struct Product {
    pub(super) of: Operand,
    pub(super) x: VectorId,
    pub(super) y: VectorId,
    pub(super) scale: Option<Scalar>,
    pub(super) shift: Option<(Scalar, VectorId)>,
    pub(super) square: Option<Sums>,
    pub(super) weight: Option<VectorId>,
    pub(super) dot: Option<(Sums, VectorId)>,
}

impl Product {
    pub(crate) fn of(of: Operand, x: VectorId, y: VectorId) -> Self {
        Self { of, x, y, scale: None, shift: None, square: None, weight: None, dot: None }
    }
    /// Multiplies the product by `s`.
    pub(crate) fn scaled(self, s: Scalar) -> Self {
        Self { scale: Some(s), ..self }
    }
    /// Adds `k w`, which is not `y`.
    pub(crate) fn plus(self, k: Scalar, w: VectorId) -> Self {
        Self { shift: Some((k, w)), ..self }
    }
    /// Sums up `y.y`.
    pub(crate) fn square(self, sums: Sums) -> Self {
        Self { square: Some(sums), ..self }
    }
    /// Sums up `y.(w y)` with a diagonal `w`; nothing is added to such a product.
    pub(crate) fn weighted_square(self, sums: Sums, w: VectorId) -> Self {
        Self { square: Some(sums), weight: Some(w), ..self }
    }
    /// Sums up `y.z`.
    pub(crate) fn dot(self, sums: Sums, z: VectorId) -> Self {
        Self { dot: Some((sums, z)), ..self }
    }
}
