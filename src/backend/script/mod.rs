//! Launches of methods that are data: scalars alone, a product with a blend, a pass over vectors. Each first runs the program of its
//! block (`crate::recurrence`).

pub(crate) mod basis;
mod host;
pub(crate) mod limit;
mod opencl;
pub(crate) mod resident;
mod text;
pub(crate) mod variation;

pub(super) use opencl::FILES;
use opencl::PassWords;
#[cfg(test)]
pub(crate) use opencl::{CLAMP, MULTIPLY, NO_DOT, NO_DOTS, NO_STATEMENT, NONE, STEP};

use super::product::Stored;
use std::ops::Range;

use super::{PlanKey, Run};
use crate::error::{Error, Result};
use crate::memory::{Memory, Place, Plans};
use crate::number::{Real, Sum};
use crate::recurrence::{REGISTERS, STATES};
use crate::state::HISTORY;
use resident::{Listing, RESIDENT_MATRICES, RESIDENT_VECTORS};

/// Programs, scalars and sums of a script; the layout is that of `cl/recurrence.cl`.
#[derive(Debug)]
pub(crate) struct ScriptState {
    pub(crate) programs: Memory<u32>,
    pub(crate) sums: Memory<Sum>,
    pub(crate) registers: Memory<Sum>,
    pub(crate) status: Memory<i32>,
    pub(crate) history: Memory<Sum>,
    plans: Plans<PassKey>,
    residence: ResidentState,
}

/// Part of a [`ScriptState`] for resident launches.
#[derive(Debug, Default)]
struct ResidentState {
    /// The list of its calls, on the device once it was launched.
    list: Option<Memory<u32>>,
    plans: Plans<PlanKey>,
}

/// Key of the launches of passes: several of them share the same options.
#[derive(Clone, Copy, Debug, PartialEq)]
struct PassKey {
    launch: PlanKey,
    n: usize,
    words: PassWords,
}

impl ScriptState {
    /// All zero, for `columns` right-hand sides and `sums` chunk sums.
    pub(crate) fn new(place: &Place, programs: Vec<u32>, columns: usize, sums: usize) -> Result<Self> {
        Ok(Self {
            programs: place.take(programs)?,
            sums: place.filled(sums.max(1), Sum::default())?,
            registers: place.filled(2 * columns * REGISTERS, Sum::default())?,
            status: place.take(vec![0; Self::words(columns)])?,
            history: place.filled(2 * HISTORY * columns, Sum::default())?,
            plans: Plans::default(),
            residence: ResidentState::default(),
        })
    }

    /// Words of `status`.
    pub(crate) fn words(columns: usize) -> usize {
        2 * columns * STATES + columns + 1 + resident::STATUS_WORDS
    }

    /// A copy on the host. Waits.
    pub(super) fn on_host(&self) -> Result<Self> {
        Ok(Self {
            programs: self.programs.on_host()?,
            sums: self.sums.on_host()?,
            registers: self.registers.on_host()?,
            status: self.status.on_host()?,
            history: self.history.on_host()?,
            plans: Plans::default(),
            residence: ResidentState::default(),
        })
    }
}

/// A launch of a script: the block of the programs that it runs, the slot that it reads, the number of columns; and the number of
/// chunk sums that the script has in all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepCall {
    pub(crate) block: u32,
    pub(crate) slot: u32,
    pub(crate) columns: usize,
    pub(crate) sums: usize,
}

/// Combination of a product with another vector, and the sums to make: macros of `cl/step.cl`.
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

    /// Macros `BLEND` and `DOTS` of `cl/step.cl`.
    fn macros(&self) -> [u32; 2] {
        let square = if self.weighted { 4 } else { 1 };
        let [squared, dot] = self.dots.map(u32::from);
        [u32::from(self.scaled) | (u32::from(self.shifted) << 1), (squared * square) | (dot << 1)]
    }
}

/// Most statements of a pass, `MOST_STATEMENTS` of `cl/statement.cl`.
pub(crate) const MOST_STATEMENTS: usize = 6;

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

/// Launches of a script.
pub(crate) trait ScriptOps<T: Real>: Send + Sync {
    /// The program alone.
    fn step_scalars(&self, run: Run<'_>, call: StepCall, state: &mut ScriptState) -> Result<()>;
    /// The program, then `y = s A x + k w` with `y.y` (or `y.(w y)`) and `y.z`; `vectors` are `x`, `w` and `z`.
    fn step_product(
        &self,
        run: Run<'_>,
        call: StepCall,
        a: &Stored<T>,
        blend: Blend,
        vectors: [&Memory<T>; 3],
        y: &mut Memory<T>,
        state: &mut ScriptState,
    ) -> Result<()>;
    /// The program, then the statements of `pass` for vectors of `n` rows.
    fn step_vectors(
        &self,
        run: Run<'_>,
        call: StepCall,
        n: usize,
        pass: &Pass,
        vectors: [&mut Memory<T>; PASS_VECTORS],
        state: &mut ScriptState,
    ) -> Result<()>;
    /// Tells if [`ScriptOps::step_resident`] does many iterations with these matrices in one launch, and gains by it.
    fn script_stays_resident(&self, _: Run<'_>, _: &[&Stored<T>], _columns: usize) -> bool {
        false
    }
    /// Tells if a product by this matrix is faster without its program and its sums, in launches of their own.
    fn script_multiplies_apart(&self, _: Run<'_>, _: &Stored<T>) -> bool {
        false
    }
    /// Iterations in one launch, as `listing` says, with the same matrices in each launch of a state. `call` has the slot, which stays the
    /// same. It may give up before it changes anything, and those after it do too: word `DONE` behind the status keeps the number
    /// beside the iterations of the last that did not.
    ///
    /// # Errors
    /// [`Error::Option`](crate::Error::Option) where [`ScriptOps::script_stays_resident`] says no.
    fn step_resident(
        &self,
        _: Run<'_>,
        _call: StepCall,
        _listing: &Listing,
        _iterations: (Range<usize>, usize),
        _matrices: [&Stored<T>; RESIDENT_MATRICES],
        _vectors: [&mut Memory<T>; RESIDENT_VECTORS],
        _state: &mut ScriptState,
    ) -> Result<()> {
        let reason = "this device does not do many iterations in one launch".into();
        Err(Error::Option { name: "resident_groups", reason })
    }
}
operations!(ScriptOps, checked);
