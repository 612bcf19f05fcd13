//! Iterations of a script in one launch, as data: the list that `cl/script/step_resident.cl` reads.

use super::pass::{Blend, NO_DOT, NO_DOTS, NO_STATEMENT, PASS_VECTORS, Pass, PassWords, Statement, encoded};
use super::variation::Variation;
use crate::error::{Result, same_length};
use crate::memory::Memory;
use crate::recurrence::{DOT_PLACES, HEADER, INSTRUCTIONS};
use crate::reduction::Chunks;

/// Vectors that a resident launch takes.
pub(crate) const RESIDENT_VECTORS: usize = 13;
/// Matrices that a resident launch takes.
pub(crate) const RESIDENT_MATRICES: usize = 3;

/// Words of a list.
pub(crate) const MOST_WORDS: usize = 2048;
/// Most dot products of a call.
pub(crate) const DOTS: usize = 3;

/// Words of a call before its program, and places of its fields.
pub(crate) const CALL: usize = 17;
pub(crate) const LENGTH: usize = 0;
pub(crate) const WORK: usize = 1;
pub(crate) const SIZE: usize = 2;
pub(crate) const CHUNK: usize = 3;
pub(crate) const OPERANDS: usize = 4;
pub(crate) const BLEND_STEPS: usize = 5;
pub(crate) const STRIDE: usize = 6;
pub(crate) const WEIGHTS: usize = 5;
pub(crate) const WIDTH: usize = 6;
pub(crate) const STATEMENTS: usize = 7;
pub(crate) const SUMMED: usize = 13;
pub(crate) const LOADED: usize = 14;
pub(crate) const WRITTEN: usize = 15;
pub(crate) const GOES_ON: usize = 16;
pub(crate) const SCALARS: u32 = 0;
pub(crate) const PASS: u32 = 1;
pub(crate) const PRODUCT: u32 = 2;
pub(crate) const ASCENT: u32 = 3;
pub(crate) const SUBTRACTION: u32 = 4;

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
    /// A step of the dual variables of an image: `p` (two), `q` (any, if the image has none), `x` and `x_old`.
    Ascent {
        image: Variation,
        vectors: [u8; 5],
    },
    /// `g -= D'p + (e.D)'q`: `p` (two), `q` (any, if the image has none) and `g`.
    Subtraction {
        image: Variation,
        vectors: [u8; 4],
    },
}

impl ResidentWork {
    /// The image that it is over and the vectors that it takes, if it is over one.
    fn over_image(&self) -> Option<(Variation, &[u8])> {
        match self {
            Self::Ascent { image, vectors } => Some((*image, vectors)),
            Self::Subtraction { image, vectors } => Some((*image, vectors)),
            _ => None,
        }
    }
}

impl ResidentCall {
    /// Tells if a group may begin `next` before others have done this call: `next` reads nothing that others write in this call, and
    /// writes nothing that others read in it. After `next` groups always meet, so that they are one call apart at most.
    fn goes_on(&self, next: &Self, programs: &[u32]) -> bool {
        match (&self.work, &next.work) {
            // A product that has nothing to do with the dual variables, without a program that folds the sums of their step.
            (ResidentWork::Ascent { vectors, .. }, ResidentWork::Product { vectors: [x, w, z, y], .. }) => {
                let written = &vectors[..3];
                next.block.is_none_or(|block| programs[block as usize + INSTRUCTIONS] == 0)
                    && !vectors.contains(y)
                    && [x, w, z].iter().all(|v| !written.contains(v))
            }
            // Both go over the same chunks of g, element by element.
            (
                ResidentWork::Subtraction { image, vectors: [px, py, q, _] },
                ResidentWork::Pass { n, pass, vectors },
            ) => {
                let [_, written] = pass.touched();
                let mut written = (0..PASS_VECTORS).filter(|k| written >> k & 1 == 1).map(|k| vectors[k]);
                *n == image.n && written.all(|v| ![px, py, q].contains(&&v))
            }
            _ => false,
        }
    }

    /// Words of its record and its program.
    fn words(&self, programs: &[u32]) -> Vec<u32> {
        let mut block = match self.block {
            Some(block) => {
                let block = &programs[block as usize..];
                block[..HEADER + 4 * block[INSTRUCTIONS] as usize].to_vec()
            }
            None => vec![0; HEADER],
        };
        let mut words = vec![0; CALL];
        words[STATEMENTS..][..super::pass::MOST_STATEMENTS].fill(NO_STATEMENT);
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
                words[OPERANDS] = four_bits_each(&[*matrix, *x, *w, *z, *y]);
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
            ResidentWork::Ascent { image, .. } => {
                over(image.n);
                words[WORK] = ASCENT;
                // The sum of changes stands in the place of the first dot product.
                words[SUMMED] &= !NO_DOT;
                block[DOT_PLACES] = image.place as u32;
            }
            ResidentWork::Subtraction { image, .. } => {
                over(image.n);
                words[WORK] = SUBTRACTION;
            }
        }
        if let Some((image, vectors)) = self.work.over_image() {
            words[OPERANDS] = four_bits_each(vectors);
            words[WEIGHTS] = image.first as u32;
            words[WIDTH] = image.width as u32;
            words[LOADED] = vectors.iter().fold(0, |mask, v| mask | 1 << v);
        }
        words.extend(block);
        words
    }
}

fn four_bits_each(numbers: &[u8]) -> u32 {
    numbers.iter().enumerate().map(|(k, number)| u32::from(*number) << (4 * k)).sum()
}

/// Calls of each kind of iteration: iteration `k` makes the calls `calls[k % calls.len()]`.
#[derive(Debug)]
pub(crate) struct Listing {
    calls: Vec<Vec<ResidentCall>>,
    /// The list that the kernel reads: all calls with their programs.
    pub(crate) words: Vec<u32>,
}

impl Listing {
    /// Lists these calls, which run blocks of `programs`. None if they are too many, or over different images.
    pub(crate) fn new(calls: Vec<Vec<ResidentCall>>, programs: &[u32]) -> Option<Self> {
        let head = 2 + calls.len();
        let mut words = vec![0; head];
        words[0] = calls.len() as u32;
        for (kind, calls) in calls.iter().enumerate() {
            words[1 + kind] = words.len() as u32;
            for (k, call) in calls.iter().enumerate() {
                let mut of_call = call.words(programs);
                of_call[GOES_ON] = calls.get(k + 1).is_some_and(|next| call.goes_on(next, programs)).into();
                words.extend(of_call);
            }
        }
        words[head - 1] = words.len() as u32;
        let listing = Self { calls, words };
        // One program has one way of taking images.
        let alike =
            |call: &ResidentCall| call.work.over_image().is_none_or(|(image, _)| listing.image() == Some(image));
        let fits = listing.words.len() <= MOST_WORDS && listing.calls.iter().flatten().all(alike);
        fits.then_some(listing)
    }

    /// The image that calls are over, if there are any.
    pub(super) fn image(&self) -> Option<Variation> {
        self.calls.iter().flatten().find_map(|call| call.work.over_image()).map(|(image, _)| image)
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
        if let Some((image, vectors)) = call.work.over_image() {
            vectors.iter().try_for_each(|v| of_length(*v, image.n))?;
        }
        match &call.work {
            ResidentWork::Scalars | ResidentWork::Ascent { .. } | ResidentWork::Subtraction { .. } => {}
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recurrence::{Program, Registers, Sums};

    #[test]
    fn groups_go_on_only_where_others_have_nothing_to_do_with_it() {
        let image = Variation { n: 100, width: 10, along: true, first: 20, place: 7 };
        let of = |work: ResidentWork| ResidentCall { block: Some(0), work };
        let product = |vectors: [u8; 4], block: u32| ResidentCall {
            block: Some(block),
            work: ResidentWork::Product { matrix: 0, rows: 100, stride: 0, vectors, blend: Blend::PLAIN },
        };
        let pass = |n: usize, target: u8| {
            let statements = vec![Statement::Combine { target: 1, terms: [Some(0), None, None] }];
            let vectors = [5, target, 9, 9, 9, 9, 9, 9];
            of(ResidentWork::Pass { n, pass: Pass { statements, dots: vec![] }, vectors })
        };
        let ascent = || of(ResidentWork::Ascent { image, vectors: [1, 2, 3, 4, 5] });
        let subtraction = || of(ResidentWork::Subtraction { image, vectors: [1, 2, 3, 6] });
        // A program of nothing, and one that folds sums.
        let scalar = Registers::new().scalar(0.0);
        let mut program = Program::default();
        let sum = program.fold(Sums { place: 7, count: 1 });
        program.set(scalar, sum);
        let nothing = Program::default().words(&[], &[]);
        let folds = nothing.len() as u32;
        let programs = [nothing, program.words(&[], &[])].concat();
        for (call, next, wanted) in [
            (ascent(), product([7, 8, 8, 6], 0), 1),
            (ascent(), product([7, 8, 8, 6], folds), 0), // the sums of the step may be among those
            (ascent(), product([7, 8, 8, 4], 0), 0),     // writes x
            (ascent(), product([2, 8, 8, 6], 0), 0),     // reads p
            (ascent(), subtraction(), 0),
            (subtraction(), pass(100, 6), 1),
            (subtraction(), pass(100, 2), 0), // writes p, which others still read
            (subtraction(), pass(90, 6), 0),  // other chunks
            (subtraction(), product([7, 8, 8, 5], 0), 0),
            (pass(100, 6), pass(100, 7), 0),
        ] {
            let what = format!("{call:?}, then {next:?}");
            let list = Listing::new(vec![vec![call, next]], &programs).unwrap().words;
            let second = 3 + list[3 + LENGTH] as usize;
            assert_eq!([list[3 + GOES_ON], list[second + GOES_ON]], [wanted, 0], "{what}");
        }
    }
}
