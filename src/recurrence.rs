//! Scalar recurrences as data: what a method does with its scalars between two passes over vectors.
//!
//! A solver's `alpha = rho / p.q`, its rotations and its stopping test are written once, as expressions over
//! [`Scalar`]s; they compile to a short list of instructions that the device runs (`cl/script/recurrence.cl`) and the host runs
//! ([`interpret`]), in the wide arithmetic of sums, operation for operation. So a new method needs no kernel, and its
//! scalars never leave the device.

use std::ops::{Add, Div, Mul, Neg, Sub};

use crate::number::Accumulator;
use crate::state::stop;

/// Scalars of one column.
pub(crate) const REGISTERS: usize = 64;
/// Words before the instructions of a block, laid out in `cl/script/recurrence.cl`.
pub(crate) const HEADER: usize = 32;
pub(crate) const MOST_INSTRUCTIONS: usize = 128;
/// Sums that a block can fold; they land in the first registers.
pub(crate) const FOLDS: usize = 4;
/// Words of a header: `FOLDS` pairs (place, count) follow `FOLDED`.
pub(crate) const FOLDED: usize = 0;
pub(crate) const INSTRUCTIONS: usize = 9;
pub(crate) const COEFFICIENTS: usize = 10;
pub(crate) const DOT_PLACES: usize = 28;
/// Statuses of one column in a slot: why it stopped, iterations done.
pub(crate) const STATES: usize = 2;
pub(crate) const STOP: usize = 0;
pub(crate) const ITERATION: usize = 1;

/// One scalar of a method, the same register in every column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scalar(pub(crate) u8);

pub(crate) const ZERO: Scalar = Scalar(4);
pub(crate) const ONE: Scalar = Scalar(5);
pub(crate) const MINUS_ONE: Scalar = Scalar(6);
/// Squared limits of a solve, set when it starts: of the residual, of the gradient, and of their ratio.
pub(crate) const RESIDUAL_LIMIT: Scalar = Scalar(7);
pub(crate) const GRADIENT_LIMIT: Scalar = Scalar(8);
pub(crate) const GRADIENT_RATIO: Scalar = Scalar(9);
/// The first register that methods may name, and the first that expressions use.
const FIRST: u8 = 10;
const TEMPORARIES: u8 = 52;

/// Results of a rotation of GMRES for its program, which folds one sum at most: the squares of the new vector, of the diagonal of
/// the triangle, and of the residual.
pub(crate) const VECTOR2: Scalar = Scalar(1);
pub(crate) const DIAGONAL2: Scalar = Scalar(2);
pub(crate) const RESIDUAL2: Scalar = Scalar(3);

/// Hands out the registers of a method.
#[derive(Debug)]
pub(crate) struct Registers {
    next: u8,
    pub(crate) initial: Vec<(Scalar, f64)>,
    /// Set if more were asked for than there are.
    pub(crate) fault: Option<Fault>,
}

/// The first limit of scripts that a method exceeds. Kept instead of returned, so that method files read like the formulas they
/// are; the engine refuses a plan that has one.
pub(crate) type Fault = &'static str;

impl Registers {
    pub(crate) fn new() -> Self {
        Self { next: FIRST, initial: vec![(ONE, 1.0), (MINUS_ONE, -1.0)], fault: None }
    }

    /// A scalar that holds `value` when a start begins.
    pub(crate) fn scalar(&mut self, value: f64) -> Scalar {
        let scalar = Scalar(self.next.min(TEMPORARIES - 1));
        if self.next < TEMPORARIES {
            self.next += 1;
        } else {
            self.fault = self.fault.or(Some("too many scalars"));
        }
        self.initial.push((scalar, value));
        scalar
    }
}

/// Operations of instructions: numbers of `cl/script/recurrence.cl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Op {
    Add,
    Sub,
    Mul,
    Div,
    /// `target = sqrt(a)`
    Sqrt,
    /// `target = a`
    Set,
    /// `target = b` if `0 < a`
    SetIfPositive,
    /// stop for reason `target` if `a < b`
    StopIfLess,
    /// stop for reason `target` unless `a < b`
    StopUnlessLess,
    /// stop for reason `target` unless `a` is finite
    StopUnlessFinite,
    /// stop when all iterations are done
    StopAtBudget,
    /// `a` and `b` into the history
    Record,
    /// one iteration more
    Count,
    /// leave out the next `target` instructions unless `0 < a`
    SkipUnlessPositive,
}

impl Op {
    const ALL: [Self; 14] = [
        Self::Add,
        Self::Sub,
        Self::Mul,
        Self::Div,
        Self::Sqrt,
        Self::Set,
        Self::SetIfPositive,
        Self::StopIfLess,
        Self::StopUnlessLess,
        Self::StopUnlessFinite,
        Self::StopAtBudget,
        Self::Record,
        Self::Count,
        Self::SkipUnlessPositive,
    ];
}

/// An expression over scalars.
#[derive(Clone, Debug)]
pub(crate) enum Expr {
    Scalar(Scalar),
    Of(Op, Box<Expr>, Box<Expr>),
}

impl From<Scalar> for Expr {
    fn from(scalar: Scalar) -> Self {
        Self::Scalar(scalar)
    }
}

impl Expr {
    fn of(op: Op, a: impl Into<Self>, b: impl Into<Self>) -> Self {
        Self::Of(op, Box::new(a.into()), Box::new(b.into()))
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $op:ident),+) => {
        $(impl<R: Into<Expr>> $trait<R> for Scalar {
            type Output = Expr;
            fn $method(self, other: R) -> Expr {
                Expr::of(Op::$op, self, other)
            }
        }
        impl<R: Into<Expr>> $trait<R> for Expr {
            type Output = Expr;
            fn $method(self, other: R) -> Expr {
                Expr::of(Op::$op, self, other)
            }
        })+
    };
}
operators!(Add add Add, Sub sub Sub, Mul mul Mul, Div div Div);

impl Neg for Scalar {
    type Output = Expr;
    fn neg(self) -> Expr {
        MINUS_ONE * self
    }
}

impl Neg for Expr {
    type Output = Expr;
    fn neg(self) -> Expr {
        MINUS_ONE * self
    }
}

/// `sqrt(a)`.
pub(crate) fn sqrt(a: impl Into<Expr>) -> Expr {
    Expr::of(Op::Sqrt, a, ZERO)
}

/// Chunk sums of a quantity: `count` for each column, from `place` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sums {
    pub(crate) place: u32,
    pub(crate) count: u32,
}

/// One program: the sums it folds first, then instructions in order. A column that stops leaves it there.
#[derive(Debug, Default)]
pub(crate) struct Program {
    folds: Vec<Sums>,
    code: Vec<[u32; 4]>,
    fault: Option<Fault>,
}

impl Program {
    /// The value of `sums`, all chunks added up.
    pub(crate) fn fold(&mut self, sums: Sums) -> Scalar {
        if self.folds.len() < FOLDS {
            self.folds.push(sums);
        } else {
            self.fault = self.fault.or(Some("too many sums for one program"));
        }
        Scalar(self.folds.len() as u8 - 1)
    }

    /// The first limit that it exceeds.
    pub(crate) fn fault(&self) -> Option<Fault> {
        self.fault.or((self.code.len() > MOST_INSTRUCTIONS).then_some("a program too long"))
    }

    /// Tells if it folds any of `sums`.
    pub(crate) fn folds_any(&self, sums: &[Sums]) -> bool {
        self.folds.iter().any(|f| sums.contains(f))
    }

    /// Number of sums that it folds.
    pub(crate) fn folds(&self) -> usize {
        self.folds.len()
    }

    /// Tells if it does nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.folds.is_empty() && self.code.is_empty()
    }

    fn push(&mut self, op: Op, target: u32, a: Scalar, b: Scalar) {
        self.code.push([op as u32, target, a.0.into(), b.0.into()]);
    }

    /// Compiles `expr`; temporaries from `free` on may be used. Where its value is then.
    fn compile(&mut self, expr: &Expr, target: Option<Scalar>, free: u8) -> Scalar {
        match expr {
            Expr::Scalar(scalar) => match target {
                Some(target) => {
                    self.push(Op::Set, target.0.into(), *scalar, ZERO);
                    target
                }
                None => *scalar,
            },
            Expr::Of(op, a, b) => {
                if free as usize >= REGISTERS {
                    self.fault = self.fault.or(Some("an expression too deep"));
                    return ZERO;
                }
                let left = self.compile(a, None, free);
                let right = self.compile(b, None, free + u8::from(left == Scalar(free)));
                let target = target.unwrap_or(Scalar(free));
                self.push(*op, target.0.into(), left, right);
                target
            }
        }
    }

    fn value(&mut self, expr: impl Into<Expr>) -> Scalar {
        self.compile(&expr.into(), None, TEMPORARIES)
    }

    fn values(&mut self, a: impl Into<Expr>, b: impl Into<Expr>) -> [Scalar; 2] {
        let a = self.value(a);
        [a, self.compile(&b.into(), None, TEMPORARIES + u8::from(a.0 >= TEMPORARIES))]
    }

    /// `target = value`.
    pub(crate) fn set(&mut self, target: Scalar, value: impl Into<Expr>) {
        self.compile(&value.into(), Some(target), TEMPORARIES);
    }

    /// `target = value` if `0 < condition`.
    pub(crate) fn set_if_positive(&mut self, condition: impl Into<Expr>, target: Scalar, value: impl Into<Expr>) {
        let [condition, value] = self.values(condition, value);
        self.push(Op::SetIfPositive, target.0.into(), condition, value);
    }

    /// Does what `then` says if `0 < condition`.
    pub(crate) fn if_positive(&mut self, condition: impl Into<Expr>, then: impl FnOnce(&mut Self)) {
        let condition = self.value(condition);
        let at = self.code.len();
        self.push(Op::SkipUnlessPositive, 0, condition, ZERO);
        then(self);
        self.code[at][1] = (self.code.len() - at - 1) as u32;
    }

    /// Stops for `reason`, one of [`stop`], if `a < b`.
    pub(crate) fn stop_if_less(&mut self, a: impl Into<Expr>, b: impl Into<Expr>, reason: i32) {
        let [a, b] = self.values(a, b);
        self.push(Op::StopIfLess, reason as u32, a, b);
    }

    /// Stops for `reason` unless `a < b`.
    pub(crate) fn stop_unless_less(&mut self, a: impl Into<Expr>, b: impl Into<Expr>, reason: i32) {
        let [a, b] = self.values(a, b);
        self.push(Op::StopUnlessLess, reason as u32, a, b);
    }

    /// Stops for `reason` if `value` is 0 or no number. Its square is not asked: that may be beyond the range.
    pub(crate) fn stop_at_zero(&mut self, value: Scalar, reason: i32) {
        let magnitude = self.value(MINUS_ONE * value);
        self.push(Op::SetIfPositive, magnitude.0.into(), value, value);
        self.push(Op::StopUnlessLess, reason as u32, ZERO, magnitude);
    }

    /// Stops unless `a` is finite.
    pub(crate) fn require_finite(&mut self, a: impl Into<Expr>) {
        let a = self.value(a);
        self.push(Op::StopUnlessFinite, stop::NOT_FINITE as u32, a, ZERO);
    }

    /// Stops unless a curvature `p.Ap` is positive: below zero the matrix is not definite, at zero it is singular.
    pub(crate) fn require_positive_curvature(&mut self, curvature: Scalar) {
        self.require_finite(curvature);
        self.stop_if_less(curvature, ZERO, stop::INDEFINITE);
        self.stop_unless_less(ZERO, curvature, stop::BREAKDOWN);
    }

    /// The stopping test of a linear system, of the squared residual.
    pub(crate) fn test(&mut self, residual2: impl Into<Expr>) {
        let residual2 = self.value(residual2);
        self.push(Op::Record, 0, residual2, ZERO);
        self.require_finite(residual2);
        self.stop_unless_less(RESIDUAL_LIMIT, residual2, stop::CONVERGED);
        self.push(Op::StopAtBudget, 0, ZERO, ZERO);
    }

    /// Records the squared norms of residual and gradient before the first test of a start, which goes no further unless both
    /// are finite.
    pub(crate) fn require_finite_start(&mut self, residual2: Scalar, gradient2: Scalar) {
        self.push(Op::Record, 0, residual2, gradient2);
        self.require_finite(residual2);
        self.require_finite(gradient2);
    }

    /// The stopping test of least squares, of the squared norms of residual and gradient.
    pub(crate) fn test_least_squares(&mut self, residual2: impl Into<Expr>, gradient2: impl Into<Expr>) {
        self.test_least_squares_by(residual2, gradient2, None);
    }

    /// [`Program::test_least_squares`], with the gradient measured by another residual, given squared as well.
    pub(crate) fn test_least_squares_by(
        &mut self,
        residual2: impl Into<Expr>,
        gradient2: impl Into<Expr>,
        measure2: Option<Scalar>,
    ) {
        let [residual2, gradient2] = self.values(residual2, gradient2);
        let ratio = Scalar(TEMPORARIES + 4);
        self.push(Op::Record, 0, residual2, gradient2);
        self.require_finite(residual2);
        self.require_finite(gradient2);
        self.push(Op::StopUnlessLess, stop::CONVERGED as u32, RESIDUAL_LIMIT, residual2);
        self.push(Op::StopUnlessLess, stop::GRADIENT_CONVERGED as u32, GRADIENT_LIMIT, gradient2);
        self.push(Op::Mul, ratio.0.into(), GRADIENT_RATIO, measure2.unwrap_or(residual2));
        self.push(Op::StopUnlessLess, stop::GRADIENT_CONVERGED as u32, ratio, gradient2);
        self.push(Op::StopAtBudget, 0, ZERO, ZERO);
    }

    /// One iteration more.
    pub(crate) fn count(&mut self) {
        self.push(Op::Count, 0, ZERO, ZERO);
    }

    /// The program as words, behind a header that also names the coefficients of the pass that follows and where its dot
    /// products go.
    pub(crate) fn words(&self, coefficients: &[Scalar], dots: &[Sums]) -> Vec<u32> {
        let mut words = vec![0; HEADER];
        words[FOLDED] = self.folds.len() as u32;
        for (k, fold) in self.folds.iter().enumerate() {
            words[FOLDED + 1 + 2 * k] = fold.place;
            words[FOLDED + 2 + 2 * k] = fold.count;
        }
        words[INSTRUCTIONS] = self.code.len() as u32;
        for (word, coefficient) in words[COEFFICIENTS..DOT_PLACES].iter_mut().zip(coefficients) {
            *word = coefficient.0.into();
        }
        for (word, dot) in words[DOT_PLACES..].iter_mut().zip(dots) {
            *word = dot.place;
        }
        words.extend(self.code.iter().flatten());
        words
    }
}

/// Runs the instructions of one column; `record` takes what goes into the history.
pub(crate) fn interpret<T, A: Accumulator<T>>(
    code: &[u32],
    file: &mut [A],
    state: &mut [i32],
    max_iterations: i32,
    mut record: impl FnMut(i32, A, A),
) {
    let mut skipped = 0;
    for word in code.chunks_exact(4) {
        if state[0] != stop::RUNNING {
            return;
        }
        if skipped > 0 {
            skipped -= 1;
            continue;
        }
        let (target, a, b) = (word[1] as usize, file[word[2] as usize], file[word[3] as usize]);
        let reason = word[1] as i32;
        match Op::ALL[word[0] as usize] {
            Op::Add => file[target] = a.add(b),
            Op::Sub => file[target] = a.sub(b),
            Op::Mul => file[target] = a.mul(b),
            Op::Div => file[target] = a.div(b),
            Op::Sqrt => file[target] = a.sqrt(),
            Op::Set => file[target] = a,
            Op::SetIfPositive if A::default().less(a) => file[target] = b,
            Op::StopIfLess if a.less(b) => state[0] = reason,
            Op::StopUnlessLess if !a.less(b) => state[0] = reason,
            Op::StopUnlessFinite if !a.is_finite() => state[0] = reason,
            Op::StopAtBudget if state[1] >= max_iterations => state[0] = stop::ITERATIONS_DONE,
            Op::Record => record(state[1], a, b),
            Op::Count => state[1] += 1,
            Op::SkipUnlessPositive if !A::default().less(a) => skipped = target,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(program: &Program, file: &mut [f64; REGISTERS], state: &mut [i32; 2]) -> Vec<(i32, f64, f64)> {
        let mut history = Vec::new();
        let words = program.words(&[], &[]);
        interpret::<f64, f64>(&words[HEADER..], file, state, 3, |k, a, b| history.push((k, a, b)));
        history
    }

    #[test]
    fn what_is_done_if_a_value_is_positive_is_left_out_otherwise() {
        let mut registers = Registers::new();
        let [a, b, inner, outer, after] = [0.0; 5].map(|v| registers.scalar(v));
        let mut program = Program::default();
        program.if_positive(a + ZERO, |s| {
            s.if_positive(b, |s| s.set(inner, ONE + ONE));
            s.set(outer, ONE);
        });
        program.set(after, ONE);
        program.if_positive(a, |s| s.stop_if_less(b, ONE, stop::BREAKDOWN));
        for (values, wanted, reason) in [
            ([1.0, 1.0], [2.0, 1.0, 1.0], stop::RUNNING),
            ([1.0, 0.0], [0.0, 1.0, 1.0], stop::BREAKDOWN),
            ([-0.0, 1.0], [0.0, 0.0, 1.0], stop::RUNNING),
            ([f64::NAN, 1.0], [0.0, 0.0, 1.0], stop::RUNNING),
        ] {
            let mut file = [0.0; REGISTERS];
            for (scalar, value) in registers.initial.iter().chain(&[(a, values[0]), (b, values[1])]) {
                file[usize::from(scalar.0)] = *value;
            }
            let mut state = [0; 2];
            run(&program, &mut file, &mut state);
            assert_eq!([inner, outer, after].map(|v| file[usize::from(v.0)]), wanted, "{values:?}");
            assert_eq!(state[0], reason, "{values:?}");
        }
    }

    #[test]
    fn expressions_keep_their_order() {
        let mut registers = Registers::new();
        let [a, b, c, d] = [3.0, 5.0, 7.0, 2.0].map(|v| registers.scalar(v));
        let result = registers.scalar(0.0);
        let mut file = [0.0; REGISTERS];
        for (scalar, value) in &registers.initial {
            file[scalar.0 as usize] = *value;
        }
        let mut program = Program::default();
        program.set(result, (a + b * c) / (sqrt(d * d) - a * (b - c)) - -(c / d));
        run(&program, &mut file, &mut [0; 2]);
        assert_eq!(file[result.0 as usize], (3.0 + 5.0 * 7.0) / (2.0 - 3.0 * (5.0 - 7.0)) - -(7.0 / 2.0));
    }

    #[test]
    fn tests_stop_in_their_order() {
        let residual = Scalar(FIRST);
        let mut program = Program::default();
        program.test(residual);
        program.count();
        for (value, limit, iteration, code, after) in [
            (2.0, 1.0, 0, stop::RUNNING, 1),
            (1.0, 1.0, 3, stop::CONVERGED, 3),
            (f64::NAN, 1.0, 0, stop::NOT_FINITE, 0),
            (2.0, 1.0, 3, stop::ITERATIONS_DONE, 3),
        ] {
            let mut file = [0.0; REGISTERS];
            file[residual.0 as usize] = value;
            file[RESIDUAL_LIMIT.0 as usize] = limit;
            let mut state = [0, iteration];
            let history = run(&program, &mut file, &mut state);
            assert_eq!(state, [code, after], "{value} {limit}");
            assert_eq!(history.len(), 1);
            assert_eq!(history[0].0, iteration);
        }
        let mut program = Program::default();
        program.require_positive_curvature(residual);
        for (value, code) in [(1.0, stop::RUNNING), (0.0, stop::BREAKDOWN), (-1.0, stop::INDEFINITE)] {
            let mut file = [0.0; REGISTERS];
            file[residual.0 as usize] = value;
            let mut state = [0, 0];
            run(&program, &mut file, &mut state);
            assert_eq!(state[0], code);
        }
    }
}
