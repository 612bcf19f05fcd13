//! Iterations of a script in one launch, as data: the list that `cl/step_resident.cl` reads.

use super::opencl::{NO_DOT, NO_DOTS, NO_STATEMENT, encoded};
use super::{Blend, PASS_VECTORS, Pass, PassWords, Statement};
use crate::error::{Result, same_length};
use crate::memory::Memory;
use crate::recurrence::{HEADER, INSTRUCTIONS};
use crate::reduction::Chunks;
use crate::state::barrier;

/// Vectors that a resident launch takes.
pub(crate) const RESIDENT_VECTORS: usize = 12;
/// Matrices that a resident launch takes.
pub(crate) const RESIDENT_MATRICES: usize = 3;

/// Words of a list.
pub(crate) const MOST_WORDS: usize = 2048;
/// Most dot products of a call.
pub(crate) const DOTS: usize = 3;

/// Words of a call before its program, and places of its fields.
pub(crate) const CALL: usize = 16;
pub(crate) const LENGTH: usize = 0;
pub(crate) const WORK: usize = 1;
pub(crate) const SIZE: usize = 2;
pub(crate) const CHUNK: usize = 3;
pub(crate) const OPERANDS: usize = 4;
pub(crate) const BLEND_STEPS: usize = 5;
pub(crate) const STRIDE: usize = 6;
pub(crate) const STATEMENTS: usize = 7;
pub(crate) const SUMMED: usize = 13;
pub(crate) const LOADED: usize = 14;
pub(crate) const WRITTEN: usize = 15;
pub(crate) const SCALARS: u32 = 0;
pub(crate) const PASS: u32 = 1;
pub(crate) const PRODUCT: u32 = 2;

/// Words behind the status, for resident launches: those of the barrier, and iterations of all launches that were not abandoned.
pub(crate) const STATUS_WORDS: usize = barrier::WORDS + 1;
pub(crate) const DONE: usize = barrier::WORDS;

/// A launch that a resident launch stands for.
#[derive(Clone, Debug)]
pub(crate) struct ResidentCall {
    /// Start of its program, if it runs one.
    pub(crate) block: Option<u32>,
    pub(crate) work: ResidentWork,
}

/// Work of a call; vectors and matrices by number.
#[derive(Clone, Debug)]
pub(crate) enum ResidentWork {
    Scalars,
    /// A pass over vectors of `n` rows. `vectors` has the numbers of those that the pass takes.
    Pass {
        n: usize,
        pass: Pass,
        vectors: [u8; PASS_VECTORS],
    },
    /// `y = s A x + k w` with `y.y` (or `y.(w y)`) and `y.z`, of a matrix with `rows` rows.
    Product {
        matrix: u8,
        rows: usize,
        stride: usize,
        vectors: [u8; 4],
        blend: Blend,
    },
}

impl ResidentCall {
    /// Words of its record and its program.
    fn words(&self, programs: &[u32]) -> Vec<u32> {
        let block = match self.block {
            Some(block) => {
                let block = &programs[block as usize..];
                block[..HEADER + 4 * block[INSTRUCTIONS] as usize].to_vec()
            }
            None => vec![0; HEADER],
        };
        let mut words = vec![0; CALL];
        words[STATEMENTS..][..super::MOST_STATEMENTS].fill(NO_STATEMENT);
        words[SUMMED] = NO_DOTS;
        words[LENGTH] = (CALL + block.len()) as u32;
        let mut over = |n: usize| {
            words[SIZE] = n as u32;
            words[CHUNK] = Chunks::of(n).chunk as u32;
        };
        match &self.work {
            ResidentWork::Scalars => words[WORK] = SCALARS,
            ResidentWork::Pass { n, pass, vectors } => {
                over(*n);
                let PassWords { statements, dots, .. } = PassWords::of(pass, vectors);
                words[WORK] = PASS;
                words[STATEMENTS..][..statements.len()].copy_from_slice(&statements);
                words[SUMMED] = dots;
                let [read, written] = pass.touched();
                let mask =
                    |of: u32| (0..PASS_VECTORS).filter(|k| of >> k & 1 == 1).fold(0, |m, k| m | 1 << vectors[k]);
                let summed = pass.dots.iter().flatten().fold(0, |m, v| m | 1 << v);
                words[LOADED] = mask(read | summed & !written);
                words[WRITTEN] = mask(written);
            }
            ResidentWork::Product { matrix, rows, stride, vectors: [x, w, z, y], blend } => {
                over(*rows);
                words[WORK] = PRODUCT;
                let numbers = [matrix, x, w, z, y].into_iter().enumerate();
                words[OPERANDS] = numbers.map(|(k, number)| u32::from(*number) << (4 * k)).sum();
                words[BLEND_STEPS] = blend.macros()[0];
                words[STRIDE] = *stride as u32;
                // w = w y, for the dot product alone.
                let square = if blend.weighted { w } else { y };
                if blend.weighted {
                    let statement = Statement::Multiply { target: 0, factors: [0, 1] };
                    words[STATEMENTS] = encoded(&statement, &[*w, *y, 0, 0, 0, 0, 0, 0]);
                    words[LOADED] |= 1 << w;
                }
                for (k, other) in [square, z].into_iter().enumerate().filter(|(k, _)| blend.dots[*k]) {
                    let dot = u32::from(*y) | u32::from(*other) << 4;
                    words[SUMMED] = words[SUMMED] & !(NO_DOT << (8 * k)) | dot << (8 * k);
                    words[LOADED] |= 1 << y | 1 << other;
                }
            }
        }
        words.extend(block);
        words
    }
}

/// Calls of each kind of iteration: iteration `k` makes the calls `calls[k % calls.len()]`.
#[derive(Debug)]
pub(crate) struct Listing {
    calls: Vec<Vec<ResidentCall>>,
    /// The list that the kernel reads: all calls with their programs.
    pub(crate) words: Vec<u32>,
}

impl Listing {
    /// Lists these calls, which run blocks of `programs`. None if they are too many.
    pub(crate) fn new(calls: Vec<Vec<ResidentCall>>, programs: &[u32]) -> Option<Self> {
        let head = 2 + calls.len();
        let mut words = vec![0; head];
        words[0] = calls.len() as u32;
        for (kind, calls) in calls.iter().enumerate() {
            words[1 + kind] = words.len() as u32;
            calls.iter().for_each(|call| words.extend(call.words(programs)));
        }
        words[head - 1] = words.len() as u32;
        (words.len() <= MOST_WORDS).then_some(Self { calls, words })
    }

    /// Number of kinds of iterations.
    pub(crate) fn kinds(&self) -> usize {
        self.calls.len()
    }
}

/// Checks the lengths of the vectors that calls for `columns` columns name.
pub(super) fn check<T>(listing: &Listing, columns: usize, vectors: &[&mut Memory<T>]) -> Result<()>
where
    T: crate::number::Element,
{
    let of_length = |number: u8, n: usize| {
        let found = vectors.get(usize::from(number)).map_or(0, |vector| vector.len());
        same_length("a vector of a resident launch", n * columns, found)
    };
    for call in listing.calls.iter().flatten() {
        match &call.work {
            ResidentWork::Scalars => {}
            ResidentWork::Pass { n, pass, vectors } => {
                let taken = (0..PASS_VECTORS).filter(|k| pass.takes(*k));
                taken.map(|k| vectors[k]).try_for_each(|number| of_length(number, *n))?;
            }
            ResidentWork::Product { rows, vectors: [_, w, z, y], blend, .. } => {
                of_length(*y, *rows)?;
                if blend.takes_w() {
                    of_length(*w, *rows)?;
                }
                if blend.dots[1] {
                    of_length(*z, *rows)?;
                }
            }
        }
    }
    Ok(())
}
